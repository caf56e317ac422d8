"""GNU Shogi as a USI engine: ``python scripts/gnushogi_usi.py [PROGRAM]``.

It speaks USI on standard input and output, and drives ``gnushogi -X``, which has a protocol of its
own. The search depth is the option ``Depth``, or that of ``go depth N``; other limits are ignored.
It needs nothing but Python and GNU Shogi (Debian: ``apt install gnushogi``, which installs it in
``/usr/games``).

For every move the whole game is sent to GNU Shogi again, in the same order each time, so that its
state is known. Its quirks (version 1.4.2):

- ``new`` turns the opening book on, ``book`` turns it off again; ``force`` is a toggle that ``new``
  resets, and it lets us enter the moves of both sides.
- ``black`` or ``white`` sets the side that it plays, even out of turn.
- Its own moves are the lines with ``...``. If it considers the game over, it prints none. So ``bd``
  is sent right after ``go``: the board is printed after the search, with or without a move before
  it. Without one, the bare position is searched again, as its rules for repetition differ.
- It hangs after some 350 plies. Of longer games only the end is replayed, from a set-up position.

After any failure the answer is ``bestmove resign``, with the reason in an ``info string``.
"""

import io
import re
import shutil
import subprocess
import sys
import time
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO

DEFAULT_DEPTH = 2
MAX_DEPTH = 29
MOVE_TIMEOUT = 50.0
"""Seconds for a move; a GUI usually waits a minute."""

REPLAYED_MOVES = 200

START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
RANKS = "abcdefghi"
BOARD_SHOWN = re.compile(r"Black \d+:\d+ +White \d+:\d+")
OWN_MOVE = re.compile(r"\d+\. \.\.\. (\S+)")
MOVE = re.compile(r"([1-9][a-i][1-9][a-i]\+?|[PLNSGBR]\*[1-9][a-i])")

Event = tuple[IO[str], str | None]
"""A stream and a line that it received, None at its end."""


class NoMoveError(Exception):
    """The reason why there is no move."""


class Position:
    """A board without rules: it can play legal moves and be sent to GNU Shogi."""

    def __init__(self, sfen: str) -> None:
        board, self.turn, hands = [*sfen.split(), "b", "-"][:3]
        self.pieces: dict[str, str] = {}
        for rank, row in zip(RANKS, board.split("/"), strict=True):
            file = 9
            for symbol in re.findall(r"\+?[A-Za-z]|[1-9]", row):
                if symbol.isdigit():
                    file -= int(symbol)
                else:
                    self.pieces[f"{file}{rank}"] = symbol
                    file -= 1
        self.hands: list[str] = []
        for number, symbol in re.findall(r"(\d*)([A-Za-z])", hands):
            self.hands += [symbol] * int(number or 1)

    def play(self, move: str) -> None:
        """Play a move, which must be legal."""
        own = str.upper if self.turn == "b" else str.lower
        if move[1] == "*":
            self.hands.remove(own(move[0]))
            self.pieces[move[2:4]] = own(move[0])
        else:
            captured = self.pieces.pop(move[2:4], None)
            if captured is not None:
                self.hands.append(own(captured[-1]))
            self.pieces[move[2:4]] = move[4:] + self.pieces.pop(move[:2])
        self.turn = "w" if self.turn == "b" else "b"

    def set_up(self) -> list[str]:
        """Return the commands that set up this position in GNU Shogi."""
        commands = ["edit", "#"]
        for is_own in (str.isupper, str.islower):
            for square, symbol in self.pieces.items():
                if is_own(symbol[-1]):
                    commands.append(f"{symbol[-1].lower()}{square}{symbol[:-1]}")
            commands += [f"{symbol.lower()}*" for symbol in self.hands if is_own(symbol)]
            commands.append("c")
        return [*commands, ".", colour(self.turn)]


def colour(turn: str) -> str:
    """Return the command that sets GNU Shogi's side."""
    return "black" if turn == "b" else "white"


class Bridge:
    """Translates between a GUI and GNU Shogi."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.gui = io.TextIOWrapper(sys.stdin.buffer, errors="replace")
        self.depth = DEFAULT_DEPTH
        self.position = ["startpos"]
        self.events: SimpleQueue[Event] = SimpleQueue()
        self.waiting: list[str] = []
        self.process: subprocess.Popen[str] | None = None

    def run(self) -> None:
        """Answer the GUI until its input ends."""
        listen(self.gui, self.events)
        try:
            while (line := self.next_command()) is not None:
                self.answer(line.split())
        except EOFError:
            pass
        finally:
            self.stop()

    def next_command(self) -> str | None:
        """Return the GUI's next line, including those that arrived during a search."""
        if self.waiting:
            return self.waiting.pop(0)
        while True:
            source, line = self.events.get()
            if source is self.gui:
                return line

    def answer(self, words: list[str]) -> None:
        """Handle a line of the GUI; raise EOFError if its input ends meanwhile."""
        match words:
            case ["usi"]:
                reply("id name GNU Shogi")
                reply("id author the authors of GNU Shogi")
                reply(f"option name Depth type spin default {DEFAULT_DEPTH} min 1 max {MAX_DEPTH}")
                reply("usiok")
            case ["isready"]:
                reply("readyok")
            case ["setoption", "name", name, "value", value] if name.lower() == "depth":
                self.depth = as_depth(value, self.depth)
            case ["position", *position]:
                self.position = position
            case ["go", *limits]:
                self.go(limits)

    def go(self, limits: list[str]) -> None:
        """Find a move and send it."""
        depth = self.depth
        if "depth" in limits[:-1]:
            depth = as_depth(limits[limits.index("depth") + 1], depth)
        try:
            move = self.search(depth, REPLAYED_MOVES) or self.search(depth, 0)
            if move is None:
                raise NoMoveError("GNU Shogi considers the game over")
            reply(f"bestmove {move}")
        except NoMoveError as reason:
            self.stop()
            reply(f"info string {reason}")
            reply("bestmove resign")

    def search(self, depth: int, replayed: int) -> str | None:
        """Return GNU Shogi's move; None if it has none."""
        commands, turn = self.described(replayed)
        self.send(["new", "book", "depth", str(depth), *commands, colour(turn), "go", "bd"])
        deadline = time.monotonic() + MOVE_TIMEOUT
        move = None
        while not BOARD_SHOWN.match(line := self.next_line(deadline)):
            if "Illegal" in line:
                raise NoMoveError(f"GNU Shogi does not accept the position: {line}")
            if "Resigns" in line:
                return "resign"
            if (own := OWN_MOVE.search(line)) is not None:
                move = own[1]
        if move is not None and MOVE.fullmatch(move) is None:
            raise NoMoveError(f"GNU Shogi plays {move}, which is not a move")
        return move

    def described(self, replayed: int) -> tuple[list[str], str]:
        """Return the commands that set up the position in GNU Shogi, and the side to move.

        All but the last `replayed` moves are replaced by the position they lead to.
        """
        words = self.position
        split = words.index("moves") if "moves" in words else len(words)
        start, moves = words[:split], words[split + 1 :]
        if wrong := [move for move in moves if MOVE.fullmatch(move) is None]:
            raise NoMoveError(f"{wrong[0]} is not a move")
        try:
            position = Position(START if start == ["startpos"] else " ".join(start[1:]))
            hidden = max(len(moves) - replayed, 0)
            for move in moves[:hidden]:
                position.play(move)
            set_up = [] if start == ["startpos"] and not hidden else position.set_up()
            for move in moves[hidden:]:
                position.play(move)
        except (KeyError, ValueError):
            raise NoMoveError("the position is invalid") from None
        return [*set_up, "force", *moves[hidden:]], position.turn

    # ---- GNU Shogi's process ----

    def send(self, commands: list[str]) -> None:
        """Send lines; they fit into the pipe, so this does not block."""
        if self.process is None or self.process.poll() is not None:
            self.start()
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write("".join(f"{command}\n" for command in commands))
            self.process.stdin.flush()
        except OSError as error:
            raise NoMoveError(f"GNU Shogi has closed its input: {error}") from None

    def next_line(self, deadline: float) -> str:
        """Return GNU Shogi's next line; lines of the GUI are queued."""
        while (seconds := deadline - time.monotonic()) > 0.0:
            try:
                source, line = self.events.get(timeout=seconds)
            except Empty:
                break
            if source is self.gui:
                if line is None:
                    raise EOFError
                self.waiting.append(line)
            elif self.process is not None and source is self.process.stdout:
                if line is None:
                    raise NoMoveError("GNU Shogi has ended")
                return line
        raise NoMoveError(f"GNU Shogi found no move within {MOVE_TIMEOUT:g} s")

    def start(self) -> None:
        """Start GNU Shogi."""
        try:
            self.process = subprocess.Popen(
                (self.program, "-X"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise NoMoveError(f"GNU Shogi can't be started: {error}") from None
        assert self.process.stdout is not None
        listen(self.process.stdout, self.events)

    def stop(self) -> None:
        """End GNU Shogi."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def listen(stream: IO[str], events: "SimpleQueue[Event]") -> None:
    """Put the lines of a stream into the queue as they arrive, up to ``quit``.

    A thread that still reads when Python exits would make it abort.
    """

    def run() -> None:
        for line in stream:
            if line.strip() == "quit":
                break
            events.put((stream, line.strip()))
        events.put((stream, None))

    Thread(target=run, daemon=True).start()


def as_depth(text: str, default: int) -> int:
    """Parse a search depth, clipped to what GNU Shogi accepts."""
    return min(max(int(text), 1), MAX_DEPTH) if text.isdecimal() else default


def reply(line: str) -> None:
    """Send a line to the GUI."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Find GNU Shogi and run the bridge."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else "gnushogi"
    program = shutil.which(wanted) or shutil.which(wanted, path="/usr/games")
    if program is None:
        sys.exit(f"program {wanted} not found; is it installed and on the PATH?")
    Bridge(program).run()


if __name__ == "__main__":
    main()
