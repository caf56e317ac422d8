"""GNU Shogi as a USI engine: ``python scripts/gnushogi_usi.py [PROGRAM]``.

Speaks USI on its standard input and output, and drives ``gnushogi -X``, which has a protocol of its
own. How deep it looks is the option ``Depth``, or what ``go depth N`` asks for; other limits change
nothing. It needs nothing but Python and GNU Shogi (Debian: ``apt install gnushogi``, which puts it
into ``/usr/games``).

For every move GNU Shogi is told the whole game anew, in the same order each time, so that its state
is known. What there is to know about it (version 1.4.2):

- ``new`` turns the opening book on, ``book`` turns it off again; ``force`` is a toggle that ``new``
  resets, and it makes both sides' moves ours.
- ``black`` or ``white`` says whose move it is to find; it would also find one out of turn.
- Its own moves are the lines with ``...``. Where it takes the game for over, it prints none. So
  ``bd`` is sent right after ``go``: the board comes when the search is done, with a move before it
  or without. Then it is asked again about the bare position: its rules are not everybody's.
- It hangs after some 350 plies. Of longer games only the end is replayed, from a set-up position.

Whatever goes wrong, the answer is ``bestmove resign``, and an ``info string`` says why.
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
DEEPEST = 29
MOVE_SECONDS = 50.0
"""How long GNU Shogi may think; a GUI usually waits a minute."""

REPLAYED_MOVES = 200

START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
RANKS = "abcdefghi"
BOARD_SHOWN = re.compile(r"Black \d+:\d+ +White \d+:\d+")
OWN_MOVE = re.compile(r"\d+\. \.\.\. (\S+)")
MOVE = re.compile(r"([1-9][a-i][1-9][a-i]\+?|[PLNSGBR]\*[1-9][a-i])")

Event = tuple[IO[str], str | None]
"""From where a line came, and the line; None when there is no more to come."""


class TroubleError(Exception):
    """Why there is no move."""


class Position:
    """A board, just good enough to play moves on and to be described to GNU Shogi."""

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
        """Play a move that is taken to be legal."""
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
        """The commands that make it GNU Shogi's position."""
        commands = ["edit", "#"]
        for is_own in (str.isupper, str.islower):
            for square, symbol in self.pieces.items():
                if is_own(symbol[-1]):
                    commands.append(f"{symbol[-1].lower()}{square}{symbol[:-1]}")
            commands += [f"{symbol.lower()}*" for symbol in self.hands if is_own(symbol)]
            commands.append("c")
        return [*commands, ".", colour(self.turn)]


def colour(turn: str) -> str:
    """The command that gives GNU Shogi a side."""
    return "black" if turn == "b" else "white"


class Bridge:
    """Between a GUI and GNU Shogi."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.gui = io.TextIOWrapper(sys.stdin.buffer, errors="replace")
        self.depth = DEFAULT_DEPTH
        self.position = ["startpos"]
        self.events: SimpleQueue[Event] = SimpleQueue()
        self.waiting: list[str] = []
        self.process: subprocess.Popen[str] | None = None

    def run(self) -> None:
        """Answer the GUI until it has no more to say."""
        listen(self.gui, self.events)
        try:
            while (line := self.next_command()) is not None:
                self.answer(line.split())
        except EOFError:
            pass
        finally:
            self.stop()

    def next_command(self) -> str | None:
        """The GUI's next line; those that came during a search come first."""
        if self.waiting:
            return self.waiting.pop(0)
        while True:
            source, line = self.events.get()
            if source is self.gui:
                return line

    def answer(self, words: list[str]) -> None:
        """Do what a line of the GUI asks for; EOFError if it leaves meanwhile."""
        match words:
            case ["usi"]:
                say("id name GNU Shogi")
                say("id author the authors of GNU Shogi")
                say(f"option name Depth type spin default {DEFAULT_DEPTH} min 1 max {DEEPEST}")
                say("usiok")
            case ["isready"]:
                say("readyok")
            case ["setoption", "name", name, "value", value] if name.lower() == "depth":
                self.depth = as_depth(value, self.depth)
            case ["position", *position]:
                self.position = position
            case ["go", *limits]:
                self.go(limits)

    def go(self, limits: list[str]) -> None:
        """Find a move and tell it."""
        depth = self.depth
        if "depth" in limits[:-1]:
            depth = as_depth(limits[limits.index("depth") + 1], depth)
        try:
            move = self.search(depth, REPLAYED_MOVES) or self.search(depth, 0)
            if move is None:
                raise TroubleError("GNU Shogi takes the game for over")
            say(f"bestmove {move}")
        except TroubleError as trouble:
            self.stop()
            say(f"info string {trouble}")
            say("bestmove resign")

    def search(self, depth: int, replayed: int) -> str | None:
        """GNU Shogi's move, None if it has none."""
        commands, turn = self.described(replayed)
        self.tell(["new", "book", "depth", str(depth), *commands, colour(turn), "go", "bd"])
        deadline = time.monotonic() + MOVE_SECONDS
        move = None
        while not BOARD_SHOWN.match(line := self.next_line(deadline)):
            if "Illegal" in line:
                raise TroubleError(f"GNU Shogi does not accept the position: {line}")
            if "Resigns" in line:
                return "resign"
            if (own := OWN_MOVE.search(line)) is not None:
                move = own[1]
        if move is not None and MOVE.fullmatch(move) is None:
            raise TroubleError(f"GNU Shogi plays {move}, which is no move")
        return move

    def described(self, replayed: int) -> tuple[list[str], str]:
        """The commands that bring GNU Shogi into the position, and whose turn it is then.

        All but the last `replayed` moves are hidden from it: it sees the position they led to.
        """
        words = self.position
        split = words.index("moves") if "moves" in words else len(words)
        start, moves = words[:split], words[split + 1 :]
        if wrong := [move for move in moves if MOVE.fullmatch(move) is None]:
            raise TroubleError(f"{wrong[0]} is no move")
        try:
            position = Position(START if start == ["startpos"] else " ".join(start[1:]))
            hidden = max(len(moves) - replayed, 0)
            for move in moves[:hidden]:
                position.play(move)
            set_up = [] if start == ["startpos"] and not hidden else position.set_up()
            for move in moves[hidden:]:
                position.play(move)
        except (KeyError, ValueError):
            raise TroubleError("the position makes no sense") from None
        return [*set_up, "force", *moves[hidden:]], position.turn

    # ---- GNU Shogi's process ----

    def tell(self, commands: list[str]) -> None:
        """Send lines. They fit into the pipe, so that this can't wait for ever."""
        if self.process is None or self.process.poll() is not None:
            self.start()
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write("".join(f"{command}\n" for command in commands))
            self.process.stdin.flush()
        except OSError as error:
            raise TroubleError(f"GNU Shogi does not listen: {error}") from None

    def next_line(self, deadline: float) -> str:
        """GNU Shogi's next line; what the GUI says meanwhile has to wait."""
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
                    raise TroubleError("GNU Shogi has ended")
                return line
        raise TroubleError(f"GNU Shogi found no move within {MOVE_SECONDS:g} s")

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
            raise TroubleError(f"GNU Shogi can't be started: {error}") from None
        assert self.process.stdout is not None
        listen(self.process.stdout, self.events)

    def stop(self) -> None:
        """End GNU Shogi."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def listen(stream: IO[str], events: "SimpleQueue[Event]") -> None:
    """Put the lines of a stream into the queue as they come, up to ``quit``.

    A thread that still reads when Python ends would make it abort.
    """

    def run() -> None:
        for line in stream:
            if line.strip() == "quit":
                break
            events.put((stream, line.strip()))
        events.put((stream, None))

    Thread(target=run, daemon=True).start()


def as_depth(text: str, default: int) -> int:
    """A depth that GNU Shogi takes."""
    return min(max(int(text), 1), DEEPEST) if text.isdecimal() else default


def say(line: str) -> None:
    """Tell the GUI."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Find GNU Shogi and begin."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else "gnushogi"
    program = shutil.which(wanted) or shutil.which(wanted, path="/usr/games")
    if program is None:
        sys.exit(f"no program {wanted}; is it installed and on the PATH?")
    Bridge(program).run()


if __name__ == "__main__":
    main()
