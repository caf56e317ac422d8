"""Analysis rooms: a game as a tree of variations, a network that analyses it, and its pages.

The network computes in the thread of an `AnalysisSession`, which is made when analysis starts and
closed when the last page is. Methods are called in the event loop's thread only.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from keisei.analysis import AnalysisSession, GameAnalysis, SearchInfo, SearchStatus
from keisei.analysis.analysis_session import MAX_LINES
from keisei.errors import KeiseiError
from keisei.play.move_text import move_text
from keisei.shogi.notation.game_tree import GameNode, GameTree
from keisei.shogi.notation.record import STARTPOS, GameRecord, Replay
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import Color, Move
from keisei.web.languages import mark
from keisei.web.play.catalogue import Catalogue, CatalogueEntry, network_path
from keisei.web.rooms import NO_NETWORK, Room

DEPTHS: Final = (0, 256, 1024, 4096)
"""Simulations of each position with which games can be reviewed; the first two come by themselves.
"""

_DEFAULT_DEPTH: Final = DEPTHS[1]

BLUNDER: Final = 0.2
"""Expected score that a blunder costs at least, as in ``keisei annotate``."""

MISTAKE: Final = 0.1
"""Expected score that a mistake costs at least."""

DEFAULT_LINES: Final = 3

MAX_COMMENT: Final = 4_000
"""Characters of a comment."""


logger = logging.getLogger(__name__)


class NodeValue(NamedTuple):
    """The value of a position."""

    black: float
    """Expected score of Black, from 0 to 1."""

    simulations: int


class AnalysisRoom(Room):
    """A game under analysis, and the pages that show it."""

    def __init__(
        self, catalogue: Catalogue, record: GameRecord | None = None, *, analyst: str | None = None
    ) -> None:
        """Open a room.

        Args:
            catalogue: where the networks are that can analyse.
            record: the game; None: the starting position.
            analyst: key of the network that analyses; None: the first of the catalogue.
        """
        super().__init__()
        self.catalogue = catalogue
        self.lines = DEFAULT_LINES
        """Number of lines shown."""

        self.is_running = False
        """Whether the position on the board is to be searched."""

        self.is_loading = False
        self.problem = ""
        """The last error, as text; empty if there is none."""

        self.review: GameAnalysis | None = None
        """The last review of the main line."""

        self.pending_depth: int | None = None
        """Simulations of the review that is being made; None: none is."""

        self._wanted_depth = _DEFAULT_DEPTH
        """Simulations of the last review that was asked for."""

        self._session: AnalysisSession | None = None
        self._previous: tuple[GameTree, GameNode] | None = None
        self._texts: dict[tuple[GameNode, Lettering], str] = {}
        self._values: dict[GameNode, NodeValue] = {}
        self._seen: SearchInfo | None = None
        self.analyst = analyst or self._default_analyst()
        """Key of the network."""

        self._entry: CatalogueEntry = catalogue.find(self.analyst)
        self._show_tree(GameTree.from_record(record or GameRecord()))

    def _default_analyst(self) -> str:
        return next(entry.key for entry in self.catalogue.entries() if entry.is_network)

    # ---- the game ----

    def open(self, tree: GameTree) -> None:
        """Show another game, from its start; the one before is kept for `restore`."""
        self._replace(tree, tree.root)

    @property
    def offers_restore(self) -> bool:
        """Whether another game was on the board before this one."""
        return self._previous is not None

    def restore(self) -> None:
        """Bring back the game that was replaced; it changes places with the one on the board."""
        if self._previous is None:
            raise KeiseiError(mark("there is no earlier game"))
        previous, self._previous = self._previous, None
        self._replace(*previous)

    def _replace(self, tree: GameTree, node: GameNode) -> None:
        if self.tree.root.children or self.tree.root.comment or self.tree.start != STARTPOS:
            self._previous = self.tree, self.node
        self.pending_depth = None
        if self._session is not None:
            self._session.stop_reviews()
        self._show_tree(tree)
        self.go_to(node)
        self.start_review()

    def _show_tree(self, tree: GameTree) -> None:
        self.tree = tree
        self.node = tree.root
        """The position on the board is the one after this move."""

        self.game = tree.game(tree.root)
        """The game up to there."""

        self.revision = 0
        """Number of changes of the tree: of its moves, comments or values."""

        self._numbers: dict[GameNode, int] = {}
        self._nodes: list[GameNode] = []
        self._texts.clear()
        self._values.clear()
        self.review = None

    def number_of(self, node: GameNode) -> int:
        """Return the number by which pages name a node."""
        if node not in self._numbers:
            self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
        return self._numbers[node]

    def go_to(self, node: GameNode) -> None:
        """Show the position after a move; an end is shown as the move before it."""
        while node.result is not None and node.parent is not None:
            node = node.parent
        self.node, self.game = node, self.tree.game(node)
        self._changed()

    def go_to_number(self, number: int) -> None:
        """Show the position of the node that a page names; unknown numbers are ignored."""
        if 0 <= number < len(self._nodes) and self.tree.has(self._nodes[number]):
            self.go_to(self._nodes[number])

    def go_to_ply(self, ply: int) -> None:
        """Show a position of the main line, or the nearest that exists."""
        line = [self.tree.root, *self.tree.main_line()]
        self.go_to(line[max(0, min(ply, len(line) - 1))])

    def step(self, where: str) -> None:
        """Go ``first``, ``back``, ``forward`` or ``last``, within the line on the board."""
        node = self.node
        following = [child for child in node.children if child.move is not None]
        if where == "first":
            node = self.tree.root
        elif where == "back":
            node = node.parent or node
        elif where == "forward":
            node = following[0] if following else node
        else:
            node = node.last()
        self.go_to(node)

    def move(self, move: str | Move) -> None:
        """Play a move after the position on the board: the next one, or a new variation.

        Raises:
            KeiseiError: It is illegal, or the game has too many moves.
        """
        known = len(self.node.children)
        node = self.tree.add_move(self.node, move)
        self.revision += len(node.parent.children if node.parent else ()) != known
        self.go_to(node)

    def add_line(self, index: int) -> None:
        """Add one of the search's lines to the tree, after the position on the board."""
        info = self.info
        if info is None or not 0 <= index < len(info.lines):
            raise KeiseiError(mark("this line is not there any more"))
        self.tree.add_line(self.node, info.lines[index].moves)
        self.revision += 1
        self._changed()

    def remove(self) -> None:
        """Remove the move on the board and all that follows it."""
        parent = self.tree.remove(self.node)
        self.revision += 1
        self.go_to(parent)

    def put_back(self) -> None:
        """Bring back what was removed last."""
        node = self.tree.put_back()
        self.revision += 1
        self.go_to(node)

    def promote(self) -> None:
        """Make the line on the board the main line."""
        self.tree.promote(self.node)
        self.revision += 1
        self._changed()

    def comment(self, text: str) -> None:
        """Change the comment on the position on the board."""
        text = text[:MAX_COMMENT].replace("\r\n", "\n").replace("\r", "\n")
        if text != self.node.comment:
            self.node.comment = text
            self.revision += 1
            self._redraw()

    def text_of(self, node: GameNode, lettering: Lettering) -> str:
        """Return a move in the notation that goes with the pieces."""
        if (node, lettering) not in self._texts:
            self._find_texts(lettering)
        return self._texts[node, lettering]

    def _find_texts(self, lettering: Lettering) -> None:
        """Find the texts that are missing, in one walk through the tree.

        That takes a time proportional to its moves: no line is played again for each variation.
        """
        replay = Replay(self.tree.start)
        line: list[Move] = []
        pending = [(child, 0) for child in self.tree.root.children[::-1]]
        while pending:
            node, length = pending.pop()
            if node.move is None:
                continue
            del line[length:]
            if replay.length > length:
                replay.rewind(length)
            if (node, lettering) not in self._texts:
                for move in line[replay.length :]:
                    replay.play(move)
                self._texts[node, lettering] = move_text(replay, node.move, lettering)
            line.append(node.move)
            pending += [(child, length + 1) for child in node.children[::-1]]

    # ---- values ----

    @property
    def _common(self) -> int:
        """Moves that the main line and the reviewed game begin with."""
        if self.review is None:
            return 0
        count = 0
        for node, move in zip(self.tree.main_line(), self.review.record.main_line, strict=False):
            if node.move != move:
                break
            count += 1
        return count

    def curve(self) -> list[NodeValue | None]:
        """Return the values of the start and of the positions after each move of the main line.

        That is the search's value where it has looked longer than the review.
        """
        line = [self.tree.root, *self.tree.main_line()]
        values = [self._values.get(node) for node in line]
        if self.review is not None:
            for ply, position in enumerate(self.review.positions[: self._common + 1]):
                reviewed = NodeValue(position.chances(Color.BLACK), self.review.simulations)
                known = values[ply]
                if known is None or known.simulations < reviewed.simulations:
                    values[ply] = reviewed
        return values

    def losses(self) -> dict[GameNode, float]:
        """Return what the moves of the main line cost, as far as they were reviewed."""
        if self.review is None:
            return {}
        moves = self.review.moves[: self._common]
        return {node: move.loss for node, move in zip(self.tree.main_line(), moves, strict=False)}

    # ---- the search ----

    @property
    def info(self) -> SearchInfo | None:
        """The last report on the position on the board; None if there is none."""
        info = None if self._session is None else self._session.info
        if info is None or info.game.start != self.game.start:
            return None
        return info if info.game.moves == self.game.moves else None

    def entries(self) -> list[CatalogueEntry]:
        """Return the networks that can analyse, with the present one."""
        entries = [entry for entry in self.catalogue.entries() if entry.is_network]
        if all(entry.key != self._entry.key for entry in entries):
            entries.append(self._entry)  # the run may have been deleted meanwhile
        return entries

    def run(self, running: bool) -> None:
        """Start or stop the search of the position on the board."""
        self.is_running = running
        self._changed()

    def show_lines(self, number: int) -> None:
        """Show more or fewer lines."""
        self.lines = max(1, min(number, MAX_LINES))
        if self._session is not None:
            self._session.lines = self.lines
        self._redraw()

    async def analyse_with(self, key: str) -> None:
        """Let another network analyse."""
        entry = self.catalogue.find(key)
        if not entry.is_network:
            raise KeiseiError(NO_NETWORK.format(player=key))
        if key == self.analyst:
            return
        self.analyst, self._entry = key, entry
        session, self._session = self._session, None
        self._values.clear()
        self.review = self.pending_depth = None
        self._changed()
        if session is not None:
            await asyncio.to_thread(session.close)
        self.start_review()

    def start_review(self, simulations: int = _DEFAULT_DEPTH) -> None:
        """Review the main line with `simulations` a move; a new game quickly before."""
        self._wanted_depth = simulations
        if not self._pages or not self.tree.main_line():
            return
        if self._session is None:
            self._load()
            return
        tree, record = self.tree, self.tree.record()
        loop, session = asyncio.get_running_loop(), self._session
        for depth in sorted({0, simulations}) if self.review is None else (simulations,):
            self.pending_depth = depth
            session.review(
                record,
                depth,
                lambda answer: _call(loop, lambda: self._reviewed(session, tree, answer)),
            )
        self._redraw()

    def _complete_review(self) -> None:
        """Start the review that was asked for last, unless it is there or being made."""
        depth = -1 if self.review is None else self.review.simulations
        if self.pending_depth is None and depth < self._wanted_depth:
            self.start_review(self._wanted_depth)

    def _reviewed(
        self, session: AnalysisSession, tree: GameTree, answer: GameAnalysis | KeiseiError
    ) -> None:
        if session is not self._session or tree is not self.tree:
            return
        if isinstance(answer, KeiseiError):
            self.problem, self.pending_depth = str(answer), None
        else:
            self.review = answer
            if answer.simulations == self.pending_depth:
                self.pending_depth = None
        self.revision += 1
        self._redraw()

    def poll(self) -> bool:
        """Take over the search's last report; return whether it is new."""
        info, session = self.info, self._session
        if session is not None and session.problem and self.is_running:
            self.problem, self.is_running = session.problem, False
            self._redraw()
        if info is None or info is self._seen:
            return False
        self._seen = info
        black = info.chances(Color.BLACK)
        if black is not None:
            known = self._values.get(self.node)
            simulations = max(info.simulations, 1)
            if known is None or simulations >= known.simulations:
                self._values[self.node] = NodeValue(black, simulations)
        return True

    def _changed(self) -> None:
        """Search the position on the board if the search is running, and redraw."""
        self.problem = ""
        session = self._session
        if self._pages and self.is_running and session is None:
            self._load()
        elif session is not None and self.is_running:
            try:
                if self.info is None or self.info.status is SearchStatus.STOPPED:
                    session.analyse(self.game)
            except KeiseiError as error:
                session.stop()
                self.problem = str(error)
        elif session is not None:
            session.stop()
        self._redraw()

    def _load(self) -> None:
        """Load the network, once, and continue with what is wanted then."""
        if self.is_loading:
            return
        self.is_loading = True
        task = asyncio.get_running_loop().create_task(self._load_session(self._entry))
        task.add_done_callback(_log_failure)
        self._redraw()

    async def _load_session(self, entry: CatalogueEntry) -> None:
        try:
            session = await asyncio.to_thread(AnalysisSession.load, network_path(entry.spec))
        except KeiseiError as error:
            self.is_running, self.problem = False, str(error)
            return
        finally:
            self.is_loading = False
            self._redraw()
        if not self._pages or entry is not self._entry:  # closed, or changed, in the meantime
            await asyncio.to_thread(session.close)
            if self._pages:
                self._load()
            return
        self._session = session
        session.lines = self.lines
        self._changed()
        self._complete_review()

    # ---- pages ----

    def _resume(self) -> None:
        if self._pages:
            self._complete_review()
            self._changed()

    async def _release(self) -> None:
        """Stop the search and release the network."""
        self.is_running, self.pending_depth = False, None
        session, self._session = self._session, None
        if session is not None:
            await asyncio.to_thread(session.close)


def _call(loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
    """Call something in the event loop's thread, unless the server has shut down."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(act)


def _log_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("in an analysis room: %s", error, exc_info=error)
