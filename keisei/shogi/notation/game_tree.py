"""`GameTree`: a game with its variations as a tree of moves, for looking through and editing.

>>> tree = GameTree.from_record(GameRecord.from_moves(["7g7f", "3c3d"]))
>>> other = tree.add_move(tree.root, "2g2f")
>>> other.comment = "also played often"
>>> [str(node.move) for node in tree.root.children]
['7g7f', '2g2f']
>>> [variation.ply for variation in tree.record().variations]
[1]

`GameRecord` has the variations in the order of a KIF file, each branching off the line before it;
`GameTree.from_record` and `GameTree.record` convert between the two.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from keisei.errors import KeiseiError
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import (
    STARTPOS,
    GameRecord,
    RecordedMove,
    Result,
    Variation,
)
from keisei.shogi.types import Diagram, Move

MAX_NODES: Final = 10_000
"""Moves and ends of a tree, all its variations included: fifty games of 200 moves."""

MAX_REMOVED: Final = 100
"""Removed nodes that a tree can bring back."""


@dataclass(eq=False, slots=True)
class GameNode:
    """A move of the tree, or the end of a line; the root is neither. Compared by identity."""

    move: Move | None
    """None for the root and for an end."""

    parent: "GameNode | None" = field(default=None, repr=False)

    result: Result | None = None
    """The end, if the node is one; it has no children then."""

    seconds: float | None = None
    """Time the player used; None if it was not recorded."""

    comment: str = ""
    """Comment on the move, or on the start of the game for the root."""

    bookmark: str = ""
    """A name for the position after the move (KIF and KI2 only)."""

    starting_comment: str = ""
    """Comment before the first move of a variation."""

    children: "list[GameNode]" = field(default_factory=list, repr=False)
    """The moves that follow; the first continues the line, the others begin variations."""

    @property
    def ply(self) -> int:
        """Number of the move, counted from 1; 0 for the root."""
        return sum(1 for _ in self.line()) - 1

    @property
    def is_main(self) -> bool:
        """Whether the node is on the main line."""
        return all(node.is_first for node in self.line())

    @property
    def is_first(self) -> bool:
        """Whether no sibling comes before it."""
        return self.parent is None or self.parent.children[0] is self

    def line(self) -> "list[GameNode]":
        """Return the nodes from the root to this one."""
        nodes, node = [self], self.parent
        while node is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    def continuation(self) -> "Iterator[GameNode]":
        """Yield the nodes after this one, along the first children."""
        node = self
        while node.children:
            node = node.children[0]
            yield node

    def descendants(self) -> "Iterator[GameNode]":
        """Yield this node and all that follow it, parents before their children."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending += reversed(node.children)

    def last(self) -> "GameNode":
        """Return the last move of the line that continues from here; an end does not count."""
        node = self
        while node.children and node.children[0].move is not None:
            node = node.children[0]
        return node


@dataclass(eq=False)
class GameTree:
    """A game from its start position, with variations. Every move in it is legal."""

    start: Diagram = STARTPOS

    headers: dict[str, str] = field(default_factory=dict)
    """As in `GameRecord.headers`."""

    root: GameNode = field(default_factory=lambda: GameNode(None))

    _removed: list[tuple[GameNode, int]] = field(default_factory=list, init=False, repr=False)
    """Removed nodes, the last one last, with their places among their siblings."""

    @classmethod
    def from_record(cls, record: GameRecord) -> "GameTree":
        """Make the tree of a record; moves that two of its lines share become one node.

        Raises:
            KeiseiError: There are more moves and ends than `MAX_NODES`.
        """
        _require_size(
            sum(len(line.moves) + (line.result is not None) for line in record.variations)
            + len(record.moves)
        )
        tree = cls(record.start, dict(record.headers))
        tree.root.comment = record.comment
        known: _Known = {}
        path = [tree.root, *_append(known, tree.root, record.moves, record.result)]
        for variation in record.variations:
            stem = path[: variation.ply]
            added = list(_append(known, stem[-1], variation.moves, variation.result))
            if added and variation.comment:
                _comment_before(added[0], variation.comment)
            path = [*stem, *added]
        return tree

    def record(self) -> GameRecord:
        """Return the tree as a record, its variations in the order of a KIF file.

        That is the last branch of a line first, so that each one branches off the line before it.
        """
        moves, result = _line_after(self.root)
        variations: list[Variation] = []
        pending = _branches(self.root, 0)
        while pending:
            node, ply = pending.pop()
            following, end = _line_after(node)
            own = [] if node.move is None else [_recorded(node)]
            end = node.result or end
            variations.append(Variation(ply, [*own, *following], end, node.starting_comment))
            pending += _branches(node, ply)
        return GameRecord(
            self.start, moves, dict(self.headers), self.root.comment, result, variations
        )

    # ---- looking through ----

    def nodes(self) -> Iterator[GameNode]:
        """Yield all nodes, parents before their children."""
        return self.root.descendants()

    def game(self, node: GameNode) -> ShogiGame:
        """Return the game up to a node."""
        game = ShogiGame(self.start)
        for passed in node.line():
            if passed.move is not None:
                game.push(passed.move)
        return game

    def main_line(self) -> list[GameNode]:
        """Return the moves of the main line, without its end."""
        return [node for node in self.root.continuation() if node.move is not None]

    def has(self, node: GameNode) -> bool:
        """Return whether a node is in the tree: it may have been removed."""
        line = node.line()
        return line[0] is self.root and all(
            child in parent.children for parent, child in pairwise(line)
        )

    # ---- editing ----

    def add_move(self, node: GameNode, move: Move | str) -> GameNode:
        """Play a move after a node; return its node, which may have been there before.

        Raises:
            KeiseiError: The move is illegal, nothing can follow an end, or the tree is full.
        """
        if node.result is not None:
            raise KeiseiError("nothing can follow the end of a game")
        game = self.game(node)
        game.push(move)
        played = game.moves[-1]
        for child in node.children:
            if child.move == played:
                return child
        _require_size(_count(self.root))  # the root counts as the new move
        child = GameNode(played, node)
        node.children.append(child)
        return child

    def add_line(self, node: GameNode, moves: Iterable[Move | str]) -> GameNode:
        """Play several moves after a node; return the node of the last one."""
        for move in moves:
            node = self.add_move(node, move)
        return node

    def remove(self, node: GameNode) -> GameNode:
        """Remove a node and all that follows it; return its parent."""
        if node.parent is None:
            raise KeiseiError("the start of a game cannot be removed")
        siblings = node.parent.children
        self._removed = [*self._removed, (node, siblings.index(node))][-MAX_REMOVED:]
        siblings.remove(node)
        return node.parent

    @property
    def removed(self) -> GameNode | None:
        """The node that was removed last; None if there is none, or it was played again since."""
        if not self._removed:
            return None
        node, _ = self._removed[-1]
        assert node.parent is not None
        is_played = any(
            (child.move, child.result) == (node.move, node.result) for child in node.parent.children
        )
        return node if self.has(node.parent) and not is_played else None

    def put_back(self) -> GameNode:
        """Bring back the node `removed`, with all that follows it; return it.

        Raises:
            KeiseiError: There is none, or the tree is full.
        """
        node = self.removed
        if node is None or node.parent is None:
            raise KeiseiError("nothing was removed that could be put back")
        _require_size(_count(self.root) + _count(node) - 1)
        _, place = self._removed.pop()
        node.parent.children.insert(place, node)
        return node

    def promote(self, node: GameNode) -> None:
        """Make the line through a node the main line."""
        for passed in node.line():
            if passed.parent is not None:
                siblings = passed.parent.children
                siblings.remove(passed)
                siblings.insert(0, passed)
                _comment_before(passed, "")


_Known = dict[tuple[int, Move | Result], GameNode]
"""The children of nodes, by the identity of the parent and the move or the end."""


def _append(
    known: _Known, node: GameNode, moves: Iterable[RecordedMove], result: Result | None
) -> Iterator[GameNode]:
    """Add a line after a node; yield its nodes."""
    for recorded in moves:
        node = _child(known, node, recorded.move)
        node.seconds = recorded.seconds if node.seconds is None else node.seconds
        node.comment = _joined(node.comment, recorded.comment)
        node.bookmark = node.bookmark or recorded.bookmark
        yield node
    if result is not None:
        yield _child(known, node, result)


def _child(known: _Known, parent: GameNode, what: Move | Result) -> GameNode:
    """Return the child of a node with a move or an end; add it if there is none."""
    key = (id(parent), what)
    if key not in known:
        known[key] = (
            GameNode(None, parent, what) if isinstance(what, Result) else GameNode(what, parent)
        )
        parent.children.append(known[key])
    return known[key]


def _comment_before(node: GameNode, comment: str) -> None:
    """Add a comment before a move, where there is a place for it: before that of a variation."""
    comment = _joined(node.starting_comment, comment)
    node.starting_comment = ""
    if not node.is_first:
        node.starting_comment = comment
    elif node.result is not None:
        node.result = replace(node.result, comment=_joined(comment, node.result.comment))
    else:
        node.comment = _joined(comment, node.comment)


def _branches(node: GameNode, ply: int) -> list[tuple[GameNode, int]]:
    """Return the branches off the line that continues a node: those to write first come last."""
    branches = []
    for number, passed in enumerate([node, *node.continuation()], start=ply + 1):
        branches += [(child, number) for child in passed.children[:0:-1]]
    return branches


def _line_after(node: GameNode) -> tuple[list[RecordedMove], Result | None]:
    """Return the moves along the first children of a node, and the end of that line."""
    moves: list[RecordedMove] = []
    for later in node.continuation():
        if later.result is not None:
            return moves, later.result
        moves.append(_recorded(later))
    return moves, None


def _recorded(node: GameNode) -> RecordedMove:
    assert node.move is not None
    return RecordedMove(node.move, node.seconds, node.comment, node.bookmark)


def _joined(first: str, second: str) -> str:
    return first if first == second else "\n".join(text for text in (first, second) if text)


def _count(node: GameNode) -> int:
    return sum(1 for _ in node.descendants())


def _require_size(moves: int) -> None:
    if moves > MAX_NODES:
        raise KeiseiError(f"a game with variations has up to {MAX_NODES:,} moves here, not {moves}")
