"""A tiny learner to test with."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Small networks gain nothing from threads, and other tests run beside these."""
    torch.set_num_threads(1)
