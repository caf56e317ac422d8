"""Training runs on disk: what a run leaves behind, and how it is read.

`list_runs` gives an overview of all runs, `read_status` the present state of one, `History` every
step of it. `JournalReader` follows a run that is still training. `write_report` writes its report.
"""

from typing import TYPE_CHECKING

from keisei.front_door import imported_on_use
from keisei.run_files import find_run
from keisei.runs.history import History, RunStatus, read_status
from keisei.runs.journal import JournalEntry, JournalReader
from keisei.runs.listing import RunOverview, list_runs

if TYPE_CHECKING:
    from keisei.runs.report import write_report

__all__ = [
    "History",
    "JournalEntry",
    "JournalReader",
    "RunOverview",
    "RunStatus",
    "find_run",
    "list_runs",
    "read_status",
    "write_report",
]

# It needs Numba, which ``keisei runs`` does not.
__getattr__, __dir__ = imported_on_use(__name__, {"write_report": "report"})
