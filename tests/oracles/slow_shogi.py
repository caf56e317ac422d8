"""A slow, obvious Shogi, written from the rule book alone: dictionaries, make and test.

It shares no table, no kernel and no square numbering trick with the package: a square is a
(file, rank) pair, a move is USI text.
"""

from dataclasses import dataclass, field

Square = tuple[int, int]

STEPS = {
    "P": [(0, 1)],
    "N": [(-1, 2), (1, 2)],
    "S": [(-1, 1), (0, 1), (1, 1), (-1, -1), (1, -1)],
    "G": [(-1, 1), (0, 1), (1, 1), (-1, 0), (1, 0), (0, -1)],
    "K": [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if (x, y) != (0, 0)],
    "+B": [(0, 1), (0, -1), (1, 0), (-1, 0)],
    "+R": [(1, 1), (1, -1), (-1, 1), (-1, -1)],
}
for _gold in ("+P", "+L", "+N", "+S"):
    STEPS[_gold] = STEPS["G"]
STRAIGHT = [(0, 1), (0, -1), (1, 0), (-1, 0)]
DIAGONAL = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
SLIDES = {"L": [(0, 1)], "B": DIAGONAL, "R": STRAIGHT, "+B": DIAGONAL, "+R": STRAIGHT}
"""(files, ranks forward): forward is towards the opponent."""


@dataclass
class SlowShogi:
    """Board ``{(file, rank): (black?, kind)}``, hands ``{(black?, kind): count}``."""

    board: dict[Square, tuple[bool, str]]
    hands: dict[tuple[bool, str], int]
    black_to_move: bool
    history: list[tuple[object, bool]] = field(default_factory=list)
    """(position, whether its mover was in check) of the game so far."""

    @classmethod
    def from_sfen(cls, sfen: str) -> "SlowShogi":
        rows, side, hand = sfen.split()[:3]
        board: dict[Square, tuple[bool, str]] = {}
        for rank, row in enumerate(rows.split("/"), 1):
            file, plus = 9, ""
            for letter in row:
                if letter == "+":
                    plus = "+"
                elif letter.isdigit():
                    file -= int(letter)
                else:
                    board[file, rank] = (letter.isupper(), plus + letter.upper())
                    file, plus = file - 1, ""
        hands: dict[tuple[bool, str], int] = {}
        number = ""
        for letter in hand.replace("-", ""):
            if letter.isdigit():
                number += letter
            else:
                hands[letter.isupper(), letter.upper()] = int(number or 1)
                number = ""
        return cls(board, hands, side == "b")

    def targets(self, square: Square) -> set[Square]:
        """Squares that the piece on a square attacks, including those of own pieces."""
        black, kind = self.board[square]
        forward = -1 if black else 1
        reached = {
            (square[0] + files, square[1] + forward * ranks) for files, ranks in STEPS.get(kind, [])
        }
        for files, ranks in SLIDES.get(kind, []):
            file, rank = square
            while True:
                file, rank = file + files, rank + forward * ranks
                reached.add((file, rank))
                if not (1 <= file <= 9 and 1 <= rank <= 9) or (file, rank) in self.board:
                    break
        return {(file, rank) for file, rank in reached if 1 <= file <= 9 and 1 <= rank <= 9}

    def in_check(self, black: bool) -> bool:
        kings = [sq for sq, piece in self.board.items() if piece == (black, "K")]
        return any(
            kings and kings[0] in self.targets(sq)
            for sq, piece in self.board.items()
            if piece[0] is not black
        )

    def legal_moves(self, *, forbid_pawn_drop_mates: bool = True) -> set[str]:
        return {move for move in self._moves() if self._is_safe(move, forbid_pawn_drop_mates)}

    def play(self, move: str) -> "SlowShogi":
        """A new game state after a move (in USI)."""
        board, hands = dict(self.board), dict(self.hands)
        target = _square(move[2:4])
        if move[1] == "*":
            hands[self.black_to_move, move[0]] -= 1
            board[target] = (self.black_to_move, move[0])
        else:
            if target in board:
                taken = (self.black_to_move, board[target][1].removeprefix("+"))
                hands[taken] = hands.get(taken, 0) + 1
            black, kind = board.pop(_square(move[:2]))
            board[target] = (black, "+" + kind if move.endswith("+") else kind)
        return SlowShogi(
            board,
            hands,
            not self.black_to_move,
            [*self.history, (self._position(), self._checked())],
        )

    def outcome(self) -> str | None:
        """'repetition', 'black' or 'white' (who wins by perpetual check, or by mate), or None."""
        if not self.legal_moves():
            return "white" if self.black_to_move else "black"
        entries = [*self.history, (self._position(), self._checked())]
        here = self._position()
        places = [index for index, (position, _) in enumerate(entries) if position == here]
        if len(places) < 4:
            return None
        stretch = entries[places[0] + 1 :]
        mover_gave: list[bool] = []
        other_gave: list[bool] = []
        for index, (_, checked) in enumerate(stretch):
            # The last entry is the mover's position: the other side has just moved.
            (other_gave if (len(stretch) - 1 - index) % 2 == 0 else mover_gave).append(checked)
        if all(mover_gave) == all(other_gave):
            return "repetition"
        loser_is_mover = all(mover_gave)
        return "white" if loser_is_mover is self.black_to_move else "black"

    def _position(self) -> object:
        hands = frozenset(item for item in self.hands.items() if item[1])
        return (frozenset(self.board.items()), hands, self.black_to_move)

    def _checked(self) -> bool:
        return self.in_check(self.black_to_move)

    def _moves(self) -> set[str]:
        moves = set()
        for square, (black, kind) in self.board.items():
            if black is not self.black_to_move:
                continue
            for target in self.targets(square):
                if target in self.board and self.board[target][0] is black:
                    continue
                text = _name(square) + _name(target)
                if kind in "PLNSBR" and (_in_zone(square, black) or _in_zone(target, black)):
                    moves.add(text + "+")
                if _rows_left(target, black) >= {"P": 1, "L": 1, "N": 2}.get(kind, 0):
                    moves.add(text)
        for (black, kind), number in self.hands.items():
            if black is self.black_to_move and number:
                moves |= {f"{kind}*{_name(target)}" for target in self._drop_targets(kind, black)}
        return moves

    def _drop_targets(self, kind: str, black: bool) -> list[Square]:
        squares = [(file, rank) for file in range(1, 10) for rank in range(1, 10)]
        squares = [sq for sq in squares if sq not in self.board]
        squares = [
            sq for sq in squares if _rows_left(sq, black) >= {"P": 1, "L": 1, "N": 2}.get(kind, 0)
        ]
        if kind == "P":
            files = {sq[0] for sq, piece in self.board.items() if piece == (black, "P")}
            squares = [sq for sq in squares if sq[0] not in files]
        return squares

    def _is_safe(self, move: str, forbid_pawn_drop_mates: bool) -> bool:
        after = self.play(move)
        if after.in_check(self.black_to_move):
            return False
        if forbid_pawn_drop_mates and move[:2] == "P*" and after.in_check(after.black_to_move):
            # No pawn drop answers the check of an adjacent pawn: the answers need no such test.
            return bool(after.legal_moves(forbid_pawn_drop_mates=False))
        return True


def _square(name: str) -> Square:
    return int(name[0]), "abcdefghi".index(name[1]) + 1


def _name(square: Square) -> str:
    return f"{square[0]}{'abcdefghi'[square[1] - 1]}"


def _rows_left(square: Square, black: bool) -> int:
    return square[1] - 1 if black else 9 - square[1]


def _in_zone(square: Square, black: bool) -> bool:
    return _rows_left(square, black) < 3
