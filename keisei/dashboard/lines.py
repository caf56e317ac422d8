"""Reading a file that another process appends to, without ever reading a line twice.

Only whole lines are handed out: what the writer has begun is left for the next time. A file that
was cut or replaced, as a resumed run does with its journal, is read anew.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO, Final, NamedTuple

PIECE_BYTES: Final = 2 << 20
"""How much is read at a time: some ten milliseconds of work. No line is as long."""

_SEEN_BYTES: Final = 64
"""So much before the place where reading goes on has to be what it was."""


class Piece(NamedTuple):
    """What has been read."""

    data: bytes
    """Whole lines, each with its newline."""

    is_anew: bool
    """Whether the file is another one now: what was read from it before is void."""

    left: int
    """Bytes of the file that have not been read yet."""

    @property
    def lines(self) -> list[bytes]:
        """Without their newlines."""
        return self.data.split(b"\n")[:-1]


class LineReader:
    """Remembers how far a file was read."""

    def __init__(self, open_file: Callable[[], AbstractContextManager[BinaryIO]]) -> None:
        self._open = open_file
        self._offset = 0
        self._identity: tuple[int, int] | None = None
        self._seen = b""
        self.size = 0
        """How large the file was when it was last looked at."""

    @property
    def offset(self) -> int:
        """How far the file has been read."""
        return self._offset

    def read(self, most: int = PIECE_BYTES) -> Piece:
        """The next whole lines, from at most so many bytes.

        Raises `OSError` if the file cannot be read.
        """
        with self._open() as file:
            status = os.fstat(file.fileno())
            is_anew = self._was_replaced(file, status)
            if is_anew:
                self._offset, self._seen = 0, b""
            self._identity = (status.st_dev, status.st_ino)
            self.size = status.st_size
            file.seek(self._offset)
            data = file.read(min(most, max(0, self.size - self._offset)))
        end = data.rfind(b"\n") + 1
        if end == 0:
            # No line ends here. Either it will, or this is no line: then it is passed over.
            if len(data) < most:
                return Piece(b"", is_anew, 0)
            self._advance(data)
            return Piece(b"", is_anew, self.size - self._offset)
        data = data[:end]
        self._advance(data)
        return Piece(data, is_anew, self.size - self._offset)

    def _advance(self, data: bytes) -> None:
        self._offset += len(data)
        self._seen = (self._seen + data[-_SEEN_BYTES:])[-_SEEN_BYTES:]

    def _was_replaced(self, file: BinaryIO, status: os.stat_result) -> bool:
        if self._identity is None:
            return False
        if self._identity != (status.st_dev, status.st_ino) or status.st_size < self._offset:
            return True
        file.seek(self._offset - len(self._seen))
        return file.read(len(self._seen)) != self._seen
