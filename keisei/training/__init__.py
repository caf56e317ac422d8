"""Training by self-play: the training loop, and runs from their start to their report.

`start_run` and `resume_run` do what ``keisei train`` does. `Trainer` is the training loop itself,
and `Callback` the base class of everything that follows a run by its events.
"""

from typing import TYPE_CHECKING

from keisei.callbacks import Callback, EventBus
from keisei.front_door import imported_on_use

if TYPE_CHECKING:
    from keisei.training.run import RunSummary, resume_run, start_run
    from keisei.training.trainer import Trainer

__all__ = ["Callback", "EventBus", "RunSummary", "Trainer", "resume_run", "start_run"]

# Plug-ins need `Callback` only.
__getattr__, __dir__ = imported_on_use(
    __name__, {"Trainer": "trainer", "RunSummary": "run", "resume_run": "run", "start_run": "run"}
)
