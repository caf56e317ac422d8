"""Notes, tags and the archive: what people write about a run, kept in ``notes.json`` beside it.

Training neither reads nor writes the file. Runs in the archive are left out of lists, unless asked
for; nothing else happens to them.
"""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from keisei import run_files
from keisei.errors import KeiseiError
from keisei.system import FileAccessError, read_bytes, write_atomically

MAX_TEXT: Final = 20_000
"""Characters of a note."""

MAX_TAGS: Final = 20
MAX_TAG: Final = 40
"""Characters of a tag."""


@dataclass(frozen=True)
class RunNotes:
    """Notes of a run; empty by default."""

    text: str = ""
    tags: tuple[str, ...] = ()
    is_archived: bool = False

    @classmethod
    def of(cls, text: str, tags: str, *, is_archived: bool) -> "RunNotes":
        """Return notes as someone typed them, the tags with commas or spaces between them.

        >>> RunNotes.of("good", "baseline, seed-1  baseline", is_archived=False).tags
        ('baseline', 'seed-1')

        Raises:
            KeiseiError: The text or a tag is too long, or there are too many tags.
        """
        found = tuple(dict.fromkeys(re.findall(r"[^\s,、]+", tags)))
        if len(text) > MAX_TEXT:
            raise KeiseiError(f"the note has {len(text):,} characters; {MAX_TEXT:,} are the limit")
        if len(found) > MAX_TAGS:
            raise KeiseiError(f"a run can have up to {MAX_TAGS} tags, not {len(found)}")
        if long := next((tag for tag in found if len(tag) > MAX_TAG), None):
            raise KeiseiError(f"the tag {long[:MAX_TAG]}... is longer than {MAX_TAG} characters")
        return cls(text, found, is_archived)


EMPTY_NOTES: Final = RunNotes()


def parse_notes(data: bytes | None) -> RunNotes:
    """Return the notes in a file; those that are missing or cannot be parsed are empty."""
    try:
        fields: Any = json.loads(data or b"")
        tags = tuple(str(tag)[:MAX_TAG] for tag in fields["tags"])[:MAX_TAGS]
        return RunNotes(str(fields["text"])[:MAX_TEXT], tags, bool(fields["is_archived"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return EMPTY_NOTES


def read_notes(run_directory: Path) -> RunNotes:
    """Return the notes of a run."""
    try:
        return parse_notes(read_bytes(run_directory / run_files.NOTES))
    except FileAccessError:
        return EMPTY_NOTES


def write_notes(run_directory: Path, notes: RunNotes) -> None:
    """Replace the notes of a run; empty ones have no file.

    Raises:
        KeiseiError: The file cannot be written, or is a link that leads out of the run.
    """
    path = run_directory / run_files.NOTES
    run_files.require_own(path, run_directory)
    if notes == EMPTY_NOTES:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise KeiseiError(f"cannot remove {path}: {error.strerror or error}") from error
        return
    write_atomically(path, json.dumps(asdict(notes), indent=2, ensure_ascii=False).encode())
