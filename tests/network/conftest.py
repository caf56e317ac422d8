"""What the tests of networks share."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def torch_settings() -> Iterator[None]:
    """One thread and a fixed seed; what a test sets for the whole process is undone."""
    threads = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    benchmark = torch.backends.cudnn.benchmark
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(deterministic)
    torch.backends.cudnn.benchmark = benchmark
