"""Tsume shogi: mate problems, found in games, checked by search and solved move by move.

A problem is a position whose shortest mate by continuous checks is unique: at each turn of the
attacker along the longest defence, exactly one move keeps its length. They are stored as USI
positions, one in a line, whose moves are the solution.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from keisei.errors import KeiseiError
from keisei.search.mates import MAX_MATE_PLIES, MateSearch
from keisei.search.tsume import MateSolver, MateStatus
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.types import Color, Move
from keisei.system import read_bytes, write_atomically

MIN_PLIES: Final = 3
"""Length of the shortest problems: a mate in one is seen at once."""

BUILTIN_PROBLEMS: Final = Path(__file__).parent / "data" / "mate_problems.txt"
"""Problems in the package, from games of its own network."""

_SOLVER_NODES: Final = 20_000
"""Positions that the solver visits to see whether there is a mate at all."""

_SEARCH_NODES: Final = 200_000
"""Positions that are visited to find the shortest mate after a move."""

_LAST_PLIES: Final = 30
"""Plies before the end of a game in which problems are looked for."""


@dataclass(frozen=True)
class MateProblem:
    """A position and the shortest mate in it, against the longest defence."""

    sfen: str
    solution: tuple[Move, ...]

    @property
    def plies(self) -> int:
        """Length of the mate, the last move included: 3, 5, 7 or 9."""
        return len(self.solution)

    @property
    def attacker(self) -> Color:
        """The side that mates."""
        return Color.BLACK if self.sfen.split()[1] == "b" else Color.WHITE

    @property
    def grade(self) -> int:
        """Difficulty by length: 1 for three plies, 2 for five and so on."""
        return (self.plies - 1) // 2

    def __str__(self) -> str:
        return f"{self.sfen} moves {' '.join(move.usi for move in self.solution)}"

    @classmethod
    def parse(cls, text: str) -> "MateProblem":
        """Return the problem in a line of a file.

        Raises:
            KeiseiError: It is not a position with the moves of a mate.
        """
        sfen, _, moves = text.partition(" moves ")
        game = ShogiGame(sfen)
        problem = cls(game.sfen(), tuple(Move.from_usi(move) for move in moves.split()))
        if not MIN_PLIES <= problem.plies <= MAX_MATE_PLIES or problem.plies % 2 == 0:
            raise KeiseiError(
                f"{problem.plies} moves: a problem has the {MIN_PLIES}, 5, 7 or {MAX_MATE_PLIES} "
                "moves of its mate after 'moves'"
            )
        attacker = game.turn
        for move in problem.solution:
            game.push(move)
        outcome = game.outcome()
        if outcome is None or outcome.winner is not attacker:
            raise KeiseiError("its moves do not end in mate")
        return problem


def find_problem(game: ShogiGame, *, max_plies: int = MAX_MATE_PLIES) -> MateProblem | None:
    """Return the problem that a position is; None if it has no mate, or not a unique one.

    Moves are pushed to `game` and popped again.

    Args:
        game: the position; the side to move attacks.
        max_plies: length of the longest mate to look for: 3, 5, 7 or 9.
    """
    if MateSolver(1 << 16).solve(game, _SOLVER_NODES)[0] is not MateStatus.MATE:
        return None
    line = MateSearch(max_plies, _SEARCH_NODES).line(game)
    if not MIN_PLIES <= len(line) <= max_plies:
        return None
    pushed = 0
    is_unique = True
    for ply, move in enumerate(line):
        if ply % 2 == 0:
            is_unique = shortest_moves(game, len(line) - ply) == [move]
            if not is_unique:
                break
        game.push(move)
        pushed += 1
    for _ in range(pushed):
        game.pop()
    return MateProblem(game.sfen(), tuple(line)) if is_unique else None


def shortest_moves(game: ShogiGame, plies: int) -> list[Move]:
    """Return all moves that mate within `plies`, whatever the defence."""
    return [move for move in game.legal_moves if mates_within(game, move, plies)]


def mates_within(game: ShogiGame, move: Move, plies: int) -> bool:
    """Return whether a check mates within `plies`, itself included, whatever the defence."""
    game.push(move)
    try:
        if not game.in_check:
            return False
        defences = game.legal_moves
        return all(_is_mated_after(game, defence, plies - 2) for defence in defences)
    finally:
        game.pop()


def _is_mated_after(game: ShogiGame, defence: Move, plies: int) -> bool:
    if plies < 1:
        return False
    game.push(defence)
    found = game.outcome() is None and bool(MateSearch(plies, _SEARCH_NODES).line(game))
    game.pop()
    return found


def problems_in(
    records: Iterable[GameRecord], *, max_plies: int = MAX_MATE_PLIES
) -> Iterator[MateProblem]:
    """Yield the problems at the ends of games, at most one for each of a game's mates.

    A mate of nine plies contains those of seven, five and three along its line: only the first
    position of a line that is a problem is taken.
    """
    for record in records:
        game = ShogiGame(record.start)
        moves = record.main_line
        first = max(0, len(moves) - _LAST_PLIES)
        for move in moves[:first]:
            game.push(move)
        ply, skipped_until = first, 0
        while game.outcome() is None:
            if ply >= skipped_until and (found := find_problem(game, max_plies=max_plies)):
                yield found
                skipped_until = ply + found.plies
            if ply >= len(moves):
                break
            game.push(moves[ply])
            ply += 1


def read_problems(path: Path = BUILTIN_PROBLEMS) -> list[MateProblem]:
    """Return the problems of a file, the shortest first; a ``#`` begins a comment.

    Raises:
        KeiseiError: The file cannot be read, or a line is not a problem; the message names it.
    """
    try:
        lines = read_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise KeiseiError(f"{path} is not UTF-8 text: {error}") from error
    problems = []
    for number, line in enumerate(lines, start=1):
        if text := line.partition("#")[0].strip():
            try:
                problems.append(MateProblem.parse(text))
            except KeiseiError as error:
                raise KeiseiError(f"{path}, line {number}: {error}") from error
    if not problems:
        raise KeiseiError(f"{path} holds no problems; keisei tsume --generate 20 finds some")
    return sorted(problems, key=lambda problem: problem.plies)


def write_problems(path: Path, problems: Sequence[MateProblem]) -> None:
    """Write problems to a file that `read_problems` reads, the shortest first."""
    ordered = sorted(problems, key=lambda problem: problem.plies)
    text = "".join(f"{problem}\n" for problem in ordered)
    write_atomically(path, f"# Mate problems: position, then the solution.\n{text}".encode())


Answer = Literal["right", "solved", "no check", "escape", "slower"]
"""What a move of the person who solves a problem is worth."""


@dataclass
class ProblemSession:
    """A person solves a problem: right moves are answered by the longest defence."""

    problem: MateProblem
    game: ShogiGame = field(init=False)
    hints: int = 0
    """Hints that were taken."""

    mistakes: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Go back to the position of the problem."""
        self.game = ShogiGame(self.problem.sfen)

    @property
    def plies_left(self) -> int:
        """Length of the mate from here."""
        return self.problem.plies - len(self.game.actions)

    @property
    def is_solved(self) -> bool:
        """Whether the king is mated."""
        return self.plies_left == 0

    @property
    def hint(self) -> Move | None:
        """The move that mates; None if the problem is solved."""
        if self.is_solved:
            return None
        line = MateSearch(self.plies_left, _SEARCH_NODES).line(self.game)
        return line[0] if line else None

    def answer(self, move: Move) -> Answer:
        """Play a move if it keeps the shortest mate, and the defence to it; say what it is worth.

        Raises:
            KeiseiError: The move is illegal.
        """
        self.game.push(move)
        is_check = self.game.in_check
        self.game.pop()
        if not is_check:
            self.mistakes += 1
            return "no check"
        if not mates_within(self.game, move, self.plies_left):
            self.mistakes += 1
            self.game.push(move)
            defences = self.game.legal_moves
            slower = all(
                _is_mated_after(self.game, defence, MAX_MATE_PLIES) for defence in defences
            )
            self.game.pop()
            return "slower" if slower else "escape"
        self.game.push(move)
        if self.game.outcome() is not None:
            return "solved"
        self.game.push(self._longest_defence())
        return "right"

    def _longest_defence(self) -> Move:
        lengths = []
        for defence in self.game.legal_moves:
            self.game.push(defence)
            line = MateSearch(max(1, self.plies_left), _SEARCH_NODES).line(self.game)
            self.game.pop()
            lengths.append((len(line), defence))
        return max(lengths, key=lambda found: found[0])[1]
