"""Rows of the sparse network, slowly: facts of a game, written from the meaning of each group.

Boards are absolute, pieces are looked up one by one, and moves are played. Only at the very end are
squares turned into the mover's view. A fact is the name of a group and its values, as indices on
the axes of the group.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from keisei.shogi.attacks import Board, attacked_squares
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import Color, Diagram, Move, Piece, PieceKind, in_view_of

Fact = tuple[str, tuple[int, ...]]
PROMOTING = "PLNSBR"
DROPPED = "PLNSGBR"
NEIGHBOURS = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]


def at_most(number: int, limit: int) -> int:
    return min(number, limit)


class Attacks:
    """Who attacks what on a board."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.of = {
            sq: attacked_squares(board, sq, piece)
            for sq, piece in enumerate(board)
            if piece is not None
        }

        self._attackers: dict[tuple[int, Color], list[int]] = {}
        for place, reached in self.of.items():
            for sq in reached:
                self._attackers.setdefault((sq, self.piece(place).color), []).append(place)

    def attackers(self, sq: int, color: Color) -> list[int]:
        """Squares of the pieces of a colour that attack a square."""
        return self._attackers.get((sq, color), [])

    def piece(self, sq: int) -> Piece:
        piece = self.board[sq]
        assert piece is not None
        return piece


class SlowRows:
    """The facts of the current position of a game and of its legal moves."""

    def __init__(self, game: ShogiGame) -> None:
        self.game = game
        self.mover = game.turn
        self.enemy = game.turn.opponent
        self.diagram = game.diagram
        self.attacks = Attacks(game.diagram.board)

    # ---- What both tables use ----

    def seen(self, sq: int) -> int:
        """A square in the mover's view."""
        return in_view_of(self.mover, sq)

    def king(self, color: Color) -> int | None:
        king = Piece(color, PieceKind.KING)
        return self.diagram.board.index(king) if king in self.diagram.board else None

    def is_attacked(self, sq: int, by: Color) -> bool:
        return bool(self.attacks.attackers(sq, by))

    def distance(self, sq: int, king: int) -> tuple[int, int]:
        """Rows and columns from a king to a square, in the mover's view."""
        row, column = divmod(self.seen(sq), 9)
        king_row, king_column = divmod(self.seen(king), 9)
        return row - king_row, column - king_column

    def code(self, move: Move) -> int:
        """What moves: 14 kinds, 6 kinds that promote, 7 kinds that are dropped."""
        if move.drop is not None:
            return 14 + 6 + DROPPED.index(move.drop.symbol)
        assert move.from_square is not None
        kind = self.attacks.piece(move.from_square).kind
        return 14 + PROMOTING.index(kind.symbol) if move.promote else int(kind)

    @cached_property
    def mate_threats(self) -> list[Move]:
        """The moves by which the opponent would mate if the mover passed."""
        if self.game.in_check:
            return []
        board, hands = self.diagram.board, self.diagram.hands
        passed = ShogiGame(Diagram(board, hands, self.enemy))
        found = []
        for move in passed.legal_moves:
            passed.push(move)
            if passed.in_check and not passed.legal_moves:
                found.append(move)
            passed.pop()
        return found

    # ---- The position ----

    def position_facts(self) -> "Counter[Fact]":
        return Counter(self._position_facts())

    def _position_facts(self) -> Iterator[Fact]:
        board, game = self.diagram.board, self.game
        for sq, piece in enumerate(board):
            if piece is not None:
                yield from self._piece_facts(sq, piece)
        for color in Color:
            yield from self._king_facts(color)
            side = int(color is self.enemy)
            for kind, held in enumerate(self.diagram.hands[color]):
                for number in range(1, held + 1):
                    yield "hands", (side, kind, number - 1)
            for sq in self._pinned(color):
                yield "pins", (side, int(self.attacks.piece(sq).kind))
        if self.mate_threats:
            yield "mate_threat", (self.code(self.mate_threats[0]),)
        if game.in_check:
            yield "check", (0,)
        yield "turn", (int(self.mover is Color.WHITE),)
        if game.repetitions:
            yield "repetition", (at_most(game.repetitions, 3) - 1,)
        yield "ply", (at_most(16 * game.ply // game.ply_limit, 15),)

    def _piece_facts(self, sq: int, piece: Piece) -> Iterator[Fact]:
        color, other = piece.color, piece.color.opponent
        name = int(piece.kind) + 14 * (color is self.enemy)
        attacked, protected = self.is_attacked(sq, other), self.is_attacked(sq, color)
        yield "pieces", (name, self.seen(sq), int(attacked), int(protected))
        for target in self.attacks.of[sq]:
            victim = self.diagram.board[target]
            if victim is not None and victim.color is other:
                yield "threats", (name, int(victim.kind), int(self.is_attacked(target, other)))
        for group, king in (
            ("own_king", self.king(self.mover)),
            ("enemy_king", self.king(self.enemy)),
        ):
            if king is not None:
                rows, columns = self.distance(sq, king)
                if max(abs(rows), abs(columns)) <= 3:
                    yield group, (name, rows + 3, columns + 3)

    def _king_facts(self, color: Color) -> Iterator[Fact]:
        king, other = self.king(color), color.opponent
        if king is None:
            return
        side = int(color is self.enemy)
        escapes = 0
        for sq in range(81):
            if self.distance(sq, king) not in NEIGHBOURS:
                continue
            attackers = len(self.attacks.attackers(sq, other))
            defenders = len([place for place in self.attacks.attackers(sq, color) if place != king])
            piece = self.diagram.board[sq]
            occupant = 0 if piece is None else 1 if piece.color is color else 2
            direction = NEIGHBOURS.index(self.distance(sq, king))
            yield (
                "king_zone",
                (side, direction, at_most(attackers, 2), at_most(defenders, 2), occupant),
            )
            escapes += occupant != 1 and not attackers
        yield "king_escapes", (side, escapes, at_most(sum(self.diagram.hands[other]), 3))

    def _pinned(self, color: Color) -> Iterator[int]:
        """Pieces without which the king would be attacked by one more piece."""
        king = self.king(color)
        if king is None:
            return
        before = self.attacks.attackers(king, color.opponent)
        for sq, piece in enumerate(self.diagram.board):
            if piece is not None and piece.color is color and sq != king:
                board = list(self.diagram.board)
                board[sq] = None
                if set(Attacks(board).attackers(king, color.opponent)) - set(before):
                    yield sq

    # ---- Moves ----

    def move_facts(self) -> "list[Counter[Fact]]":
        """Facts of each legal move, in the order of ``game.legal_moves``."""
        return [Counter(self._move_facts(move)) for move in self.game.legal_moves]

    def _move_facts(self, move: Move) -> Iterator[Fact]:
        code, to, origin = self.code(move), move.to_square, move.from_square
        enemies = self.attacks.attackers(to, self.enemy)
        friends = [sq for sq in self.attacks.attackers(to, self.mover) if sq != origin]
        attacked, protected = int(bool(enemies)), int(bool(friends))
        captured = self.diagram.board[to]
        yield "target", (code, self.seen(to))
        yield (
            "capture",
            (
                code,
                0 if captured is None else 1 + captured.kind,
                at_most(len(enemies), 2),
                protected,
            ),
        )
        for group, king in (
            ("to_enemy_king", self.king(self.enemy)),
            ("to_own_king", self.king(self.mover)),
        ):
            if king is not None:
                rows, columns = self.distance(to, king)
                yield group, (code, rows + 8, columns + 8)
        if origin is not None:
            yield from self._origin_facts(origin, attacked)
        for kind in {self.attacks.piece(sq).kind for sq in enemies}:
            yield "exchange", (code, int(kind), protected)
        last = self.game.last_move
        if last is not None and to == last.to_square:
            yield "recapture", (code,)
        if self.game.in_check:
            yield "evasion", (self._evasion(move), attacked)
        yield from self._facts_after(move, attacked, protected)

    def _origin_facts(self, origin: int, target_is_attacked: int) -> Iterator[Fact]:
        kind = int(self.attacks.piece(origin).kind)
        enemies = self.attacks.attackers(origin, self.enemy)
        protected = int(self.is_attacked(origin, self.mover))
        yield "origin", (kind, self.seen(origin))
        yield "leaving", (kind, at_most(len(enemies), 2), protected, target_is_attacked)
        for attacker in {self.attacks.piece(sq).kind for sq in enemies}:
            yield "escape", (kind, int(attacker), protected)

    def _moves_king(self, move: Move) -> bool:
        return (
            move.from_square is not None
            and self.attacks.piece(move.from_square).kind is PieceKind.KING
        )

    def _evasion(self, move: Move) -> int:
        if self._moves_king(move):
            return 0
        if self.diagram.board[move.to_square] is not None:
            return 1
        return 2 if move.drop is None else 3

    def _facts_after(self, move: Move, attacked: int, protected: int) -> Iterator[Fact]:
        """Facts that need the position after the move."""
        code, to, origin = self.code(move), move.to_square, move.from_square
        self.game.push(move)
        after = Attacks(self.game.diagram.board)
        gives_check = self.game.in_check
        self.game.pop()
        enemy_king = self.king(self.enemy)
        attacks, before = after.of[to], set() if origin is None else self.attacks.of[origin]
        if gives_check:
            yield "gives_check", (code, attacked, protected, int(enemy_king in attacks))
        safe = int(bool(protected) or not attacked)
        for sq, piece in enumerate(self.diagram.board):
            if piece is None or sq in (to, origin):
                continue
            kind = int(piece.kind)
            if piece.color is self.enemy and sq in attacks and sq not in before:
                own_kind = int(after.piece(to).kind)
                yield "new_threat", (own_kind, kind, int(self.is_attacked(sq, self.enemy)), safe)
            if piece.color is self.mover and self.is_attacked(sq, self.enemy):
                protectors = self.attacks.attackers(sq, self.mover)
                if not protectors and sq in attacks:
                    yield "defends", (kind, safe)
                if protectors == [origin] and sq not in attacks:
                    yield "abandons", (kind,)
        if self.mate_threats:
            yield "mate_defence", (self._defence(move, attacks, gives_check), attacked)

    def _defence(self, move: Move, attacks: set[int], gives_check: bool) -> int:
        mate = self.mate_threats[0]
        if self._moves_king(move):
            return 0
        if move.to_square == mate.from_square:
            return 1
        if move.to_square == mate.to_square:
            return 2
        if mate.to_square in attacks:
            return 3
        return 4 if gives_check else 5
