"""What all tests share."""

import gc
import signal

import pytest
from hypothesis import settings

from tests.soak.summary import note_outcome

# The first example of a test may compile a kernel, and the machine may be busy: time is no verdict.
settings.register_profile("keisei", deadline=None)
settings.load_profile("keisei")

# A shell without job control starts background jobs with SIGINT ignored, and their children inherit
# it: tests of Ctrl-C would wait in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


gc.disable()  # until everything is imported and collected


def pytest_collection_finish() -> None:
    """Leave modules and thousands of collected tests out of garbage collection.

    It would look through them again and again, half a second each time, also while a test measures
    how long something takes.
    """
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep how the soak tests ended; of the processes of xdist, only the one that ran a test."""
    if "soak" not in report.keywords or hasattr(report, "node"):
        return
    if report.when == "call" or report.outcome != "passed":  # also what failed before or after
        test = report.nodeid.partition("[")[0].removeprefix("tests/")
        note_outcome(test, report.outcome, report.duration)


@pytest.fixture(params=["resnet", "sparse"])
def family(request: pytest.FixtureRequest) -> str:
    """A setting for `tests.tiny`: a network of each family, one computed by torch, one by kernels.

    Tests that say something about the network under training run for both.
    """
    return f"model.type={request.param}"
