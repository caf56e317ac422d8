"""`RowReader`: the rows of positions and moves as lists, for people, for tests and for export.

>>> text = RowReader().describe(ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b G 1"))
>>> print(text[text.index("G*5b") : text.index("G*4b")].rstrip())
G*5b:
target: G dropped, 5b
capture: G dropped, none, attackers 1, protected
to_enemy_king: G dropped, rows +1, columns +0
to_own_king: G dropped, rows -7, columns +0
exchange: G dropped, K, protected
gives_check: G dropped, attacked, protected, direct
new_threat: G, K, unprotected, safe
"""

from typing import NamedTuple

import numpy as np

from keisei.constants import MAX_LEGAL_MOVES
from keisei.network.sparse.forward import BLOCK, PluginRows, Rows, Workspace, set_up, write_rows
from keisei.shogi.game import ShogiGame
from keisei.shogi.jit import jit
from keisei.shogi.packed import Positions, pack_game, require_valid
from keisei.shogi.position import Array, Record
from keisei.shogi.row_groups import MOVE_ROWS, POSITION_ROWS
from keisei.shogi.row_numbering import RowSpec


class ActiveRows(NamedTuple):
    """The rows that hold in a position."""

    position: list[int]
    """Rows of the position table."""

    moves: list[list[int]]
    """Rows of the move table for each legal move, in the order of the legal list."""


class RowReader:
    """Writes rows as a sparse network does, and returns them."""

    def __init__(
        self, position_spec: RowSpec = POSITION_ROWS, move_spec: RowSpec = MOVE_ROWS
    ) -> None:
        """Make a reader.

        Args:
            position_spec: rows of the position table.
            move_spec: rows of the move table.
        """
        self.position_spec = position_spec
        self.move_spec = move_spec
        self.work = Workspace.of(
            BLOCK,
            BLOCK,
            BLOCK,
            position_plugins=position_spec.max_plugin_rows,
            move_plugins=move_spec.max_plugin_rows,
        )
        """Scratch memory; after a call it holds what belongs to the last position."""

        self._rows = Rows.of(position_spec, move_spec)

    def read(self, positions: Positions) -> list[ActiveRows]:
        """Return the rows of each of ``B`` positions and of its legal moves."""
        require_valid(positions.packed)
        if len(positions.packed) and positions.legal_counts.max() > MAX_LEGAL_MOVES:
            raise ValueError(f"a position has more than {MAX_LEGAL_MOVES} legal moves")
        plugins = PluginRows(
            self.position_spec.plugin_rows(positions), self.move_spec.plugin_rows(positions)
        )
        found = []
        for index, count in enumerate(positions.legal_counts.tolist()):
            write_rows_of(
                positions.packed[index],
                positions.legal_actions[index],
                count,
                self._rows,
                plugins.position[index],
                plugins.move[index],
                self.work,
            )
            ends = [0, *self.work.move_ends[:count].tolist()]
            rows = self.work.move_rows.tolist()
            found.append(
                ActiveRows(
                    self.work.position_rows[: self.work.counts[0]].tolist(),
                    [rows[ends[k] : ends[k + 1]] for k in range(count)],
                )
            )
        return found

    def read_game(self, game: ShogiGame) -> ActiveRows:
        """Return the rows of the current position of a game and of its `legal_actions`."""
        legal = game.legal_actions[None]
        counts = np.array([legal.shape[1]], dtype=np.int32)
        return self.read(Positions(pack_game(game), legal, counts))[0]

    def describe(self, game: ShogiGame) -> str:
        """Return all rows of the current position of a game and of its moves in words."""
        rows = self.read_game(game)
        lines = [self.position_spec.describe(row) for row in rows.position]
        for move, rows_of_move in zip(game.legal_moves, rows.moves, strict=True):
            lines += ["", f"{move}:"]
            lines += [self.move_spec.describe(row) for row in rows_of_move]
        return "\n".join(lines)


@jit
def write_rows_of(
    packed: Record,
    legal: Array,
    count: int,
    rows: Rows,
    position_plugins: Array,
    move_plugins: Array,
    work: Workspace,
) -> None:
    """Write the rows of a packed position and of its moves ``legal[:count]`` into `work`."""
    position = set_up(packed, work)
    write_rows(position, packed, legal, count, rows, position_plugins, move_plugins, work)
