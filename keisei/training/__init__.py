"""Training by self-play: the training loop, and runs from their start to their report.

`start_run` and `resume_run` do what ``keisei train`` does. `Trainer` is the training loop itself,
and `Callback` the base class of everything that follows a run by its events.
"""

from typing import TYPE_CHECKING, Any

from keisei.callbacks import Callback, EventBus

if TYPE_CHECKING:
    from keisei.training.run import RunSummary, resume_run, start_run
    from keisei.training.trainer import Trainer

__all__ = ["Callback", "EventBus", "RunSummary", "Trainer", "resume_run", "start_run"]


def __getattr__(name: str) -> Any:
    """Import the heavy names on first use: plug-ins need `Callback` only."""
    if name == "Trainer":
        from keisei.training.trainer import Trainer

        return Trainer
    if name in ("RunSummary", "resume_run", "start_run"):
        from keisei.training import run

        return getattr(run, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
