"""What all tests share."""

import signal

import pytest
from hypothesis import settings

# The first example of a test may compile a kernel, and the machine may be busy: time is no verdict.
settings.register_profile("keisei", deadline=None)
settings.load_profile("keisei")

# A shell without job control starts background jobs with SIGINT ignored, and their children inherit
# it: tests of Ctrl-C would wait in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["resnet", "sparse"])
def family(request: pytest.FixtureRequest) -> str:
    """A setting for `tests.tiny`: a network of each family, one computed by torch, one by kernels.

    Tests that say something about the network under training run for both.
    """
    return f"model.type={request.param}"
