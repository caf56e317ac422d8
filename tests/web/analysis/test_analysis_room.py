"""Analysis rooms without a browser: the tree, the search, reviews, files, and set-up positions."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui")

from keisei.analysis import AnalysisSession, SearchStatus
from keisei.constants import BUILTIN
from keisei.errors import IllegalMoveError, KeiseiError
from keisei.network.loading import LoadedNetwork
from keisei.network.predictor import Prediction
from keisei.play.move_text import move_texts
from keisei.play.transfer import read_tree
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation import GameNode, GameTree, read_csa, read_kif
from keisei.shogi.notation.record import STARTPOS, GameRecord, RecordedMove, Variation
from keisei.shogi.notation.sfen import format_sfen
from keisei.shogi.packed import Positions
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import Color, Diagram, Piece, PieceKind, parse_square
from keisei.web.analysis.analysis_room import AnalysisRoom
from keisei.web.analysis.editor_page import Position
from keisei.web.analysis.elements import EvaluationGraph, arrows_of, facts_text, score_text
from keisei.web.analysis.position_check import position_error
from keisei.web.analysis.room_files import Snapshot, file_content
from keisei.web.analysis.tree_rows import grade, tree_rows
from keisei.web.play.catalogue import Catalogue
from keisei.web.play.error_templates import POSITIONS
from keisei.web.play.error_wording import error_text
from keisei.web.rooms import Rooms
from tests.cpu_time import allowed
from tests.predictors import KnownPredictor

BLUNDER = ["7g7f", "3c3d", "8h3c+", "2a3c", "2g2f", "4a3b"]
"""Black gives a bishop for a pawn."""


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 120))


async def until(done: Callable[[], bool]) -> None:
    while not done():
        await asyncio.sleep(0.01)


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return Catalogue(tmp_path)


@pytest.fixture
def room(catalogue: Catalogue) -> AnalysisRoom:
    headers = {"black": "Akane", "white": "Botan"}
    return AnalysisRoom(catalogue, GameRecord.from_moves(BLUNDER, headers=headers))


def texts(room: AnalysisRoom) -> list[tuple[int, str]]:
    return [
        (row["depth"], " ".join(move["text"] for move in row["moves"]))
        for row in tree_rows(room, "letters")
    ]


# ---- the tree ----


def test_moves_become_variations_which_can_be_promoted_and_removed(room: AnalysisRoom) -> None:
    room.step("forward")
    room.step("forward")
    room.move("2g2f")
    room.move("8c8d")
    room.step("back")
    assert texts(room)[2:5] == [(0, "B-3c+"), (1, "P-2f P-8d"), (0, "Nx3c")]
    room.promote()
    assert texts(room)[2:5] == [(0, "P-2f"), (1, "B-3c+ Nx3c P-2f G-3b"), (0, "P-8d")]
    room.remove()
    assert [str(node.move) for node in room.tree.main_line()] == BLUNDER
    assert room.node.ply == 2
    with pytest.raises(IllegalMoveError):
        room.move("7g7f")


def test_steps_stay_in_the_line_on_the_board(room: AnalysisRoom) -> None:
    room.step("last")
    assert room.node.ply == 6
    room.step("forward")
    assert room.node.ply == 6
    room.go_to_ply(1)
    room.move("8c8d")
    room.move("2g2f")
    room.step("first")
    room.step("back")
    assert room.node is room.tree.root
    room.go_to_number(10_000)
    room.go_to_number(-1)
    assert room.node is room.tree.root


def test_a_node_that_was_removed_cannot_be_reached(room: AnalysisRoom) -> None:
    room.go_to_ply(3)
    gone = room.number_of(room.node)
    room.remove()
    room.go_to_number(gone)
    assert room.node.ply == 2


def test_comments_are_kept_with_their_moves(room: AnalysisRoom) -> None:
    room.go_to_ply(3)
    before = room.revision
    room.comment("too greedy\r\n\rreally")
    assert room.revision > before
    assert room.tree.record().moves[2].comment == "too greedy\n\nreally"
    room.comment("x" * 100_000)
    assert len(room.node.comment) == 4_000
    assert tree_rows(room, "kanji")[2]["moves"][0]["comment"] == room.node.comment


def test_deep_and_wide_trees_have_rows(catalogue: Catalogue) -> None:
    tree = GameTree()
    node = tree.root
    for number in range(100):  # each move has an alternative, which has one, and so on
        moves = tree.game(node).legal_moves
        tree.add_move(node, moves[0])
        node = tree.add_move(node, moves[min(1 + number % 5, len(moves) - 1)])
    room = AnalysisRoom(catalogue, tree.record())
    rows = tree_rows(room, "letters")
    assert sum(len(row["moves"]) for row in rows) == sum(1 for _ in tree.nodes()) - 1 > 180
    assert max(row["depth"] for row in rows) > 90


def test_the_rows_of_many_variations_take_linear_time(catalogue: Catalogue) -> None:
    """Before, the whole line was played again for each of them: 15 s, in the event loop."""
    shuffle = ["2h3h", "8b7b", "3h2h", "7b8b"]
    record = GameRecord.from_moves([shuffle[ply % 4] for ply in range(500)])
    games = [ShogiGame() for _ in shuffle]
    for ply, game in enumerate(games):
        for move in shuffle[:ply]:
            game.push(move)
    others = [
        [move for move in game.legal_moves if move.usi != shuffle[ply]][:5]
        for ply, game in enumerate(games)
    ]
    record.variations = [
        Variation(ply + 1, [RecordedMove(move)])
        for ply in reversed(range(500))
        for move in others[ply % 4]
    ]
    room = AnalysisRoom(catalogue, record)
    letterings: tuple[Lettering, ...] = ("letters", "kanji")
    for lettering in letterings:
        start = time.thread_time()
        rows = tree_rows(room, lettering)
        assert time.thread_time() - start < allowed(1.0)
        assert sum(len(row["moves"]) for row in rows) == 3000
        nodes = list(room.tree.nodes())[1:]
        for node in nodes[:: len(nodes) // 20]:
            moves = [one.move for one in node.line() if one.move is not None]
            assert room.text_of(node, lettering) == move_texts(STARTPOS, moves, lettering)[-1]


def test_the_end_of_a_game_is_listed_but_not_a_position(catalogue: Catalogue) -> None:
    record = read_kif("手合割：平手\n   1 ７六歩(77)\n   2 投了\n")
    room = AnalysisRoom(catalogue, record)
    end = tree_rows(room, "kanji")[-1]["moves"][0]
    assert end["text"] == "resignation"
    room.go_to_number(end["id"])
    assert room.node.ply == 1
    room.move("3c3d")
    assert room.tree.record().result is not None


# ---- the search ----


def test_the_search_follows_the_board_and_fills_the_curve(room: AnalysisRoom) -> None:
    redraws: list[int] = []

    def page() -> None:
        redraws.append(1)

    async def story() -> None:
        room.run(True)  # without a page nothing is loaded
        assert not room.is_loading
        room.attach(page)
        await until(lambda: room.info is not None and bool(room.info.lines))
        assert room.poll()
        assert room.curve()[0] is not None
        room.go_to_ply(3)
        await until(lambda: room.info is not None and bool(room.info.lines))
        info = room.info
        assert info is not None
        assert info.turn is Color.WHITE
        assert info.lines[0].moves[0].usi in ("2a3c", "2b3c")
        arrows = arrows_of(info, 3)
        assert arrows[0][0] == info.lines[0].moves[0].usi
        assert 0.5 < arrows[0][1] <= 1, "White takes a bishop"
        assert "simulations" in facts_text(info)
        room.add_line(0)
        assert len(room.node.children) >= 1
        room.run(False)
        stopped = room.info
        assert stopped is not None
        assert stopped.status is SearchStatus.STOPPED
        with pytest.raises(KeiseiError, match="not there any more"):
            room.add_line(99)
        await until(lambda: room.review is not None and room.review.simulations > 0)
        assert room.pending_depth is None
        assert [value is not None for value in room.curve()] == [True] * 7
        losses = room.losses()
        blunder = room.tree.main_line()[2]
        assert max(losses, key=lambda node: losses[node]) is blunder
        assert tree_rows(room, "letters")[2]["moves"][0]["sign"] in ("?", "??")
        await room.detach(page)
        assert (room.is_watched, room.info, bool(redraws)) == (False, None, True)

    run(story())


def test_a_change_of_the_main_line_keeps_what_was_reviewed_before_it(room: AnalysisRoom) -> None:
    def page() -> None:
        """Redraw of a page that shows nothing."""

    async def story() -> None:
        room.attach(page)
        await until(lambda: room.review is not None and room.pending_depth is None)
        room.go_to_ply(2)
        room.move("2g2f")
        room.promote()
        assert [value is not None for value in room.curve()] == [True] * 3 + [False]
        assert len(room.losses()) == 2
        room.open(GameTree())
        assert room.curve() == [None]
        room.problem = "old"
        room.show_lines(0)
        assert room.lines == 1
        room.show_lines(99)
        assert room.lines == 10
        with pytest.raises(KeiseiError, match="no player"):
            await room.analyse_with("nothing")
        await room.close()

    run(story())


def test_a_review_that_was_broken_off_is_made_when_a_page_comes_back(room: AnalysisRoom) -> None:
    def page() -> None:
        """Redraw of a page that shows nothing."""

    def depths() -> tuple[int | None, int | None]:
        return (None if room.review is None else room.review.simulations), room.pending_depth

    async def story() -> None:
        room.attach(page)
        await until(lambda: depths() == (256, None))
        await room.close()
        room.attach(page)
        room.run(True)
        await until(lambda: room.info is not None)
        assert depths() == (256, None), "what is there is not made again"
        room.start_review(1024)
        assert depths() == (256, 1024)
        await room.close()
        assert depths() == (256, None)
        room.attach(page)
        await until(lambda: depths() == (1024, None))
        room.start_review(4096)
        room.analyst = "another network"
        await room.analyse_with(BUILTIN)
        assert depths() == (None, None), "it is loaded first"
        await room.close()

    run(story())


def test_reviews_of_the_game_before_are_dropped(room: AnalysisRoom) -> None:
    def pending() -> int | None:
        return room.pending_depth

    async def story() -> None:
        room.attach(lambda: None)
        await until(lambda: room.review is not None and pending() is None)
        for _ in range(16):
            room.start_review(1 << 15)
        room.open(GameTree.from_record(GameRecord.from_moves(["2g2f", "8c8d"])))
        assert pending() == 256
        await asyncio.wait_for(until(lambda: pending() is None), 20)  # not minutes
        review = room.review
        assert review is not None
        assert (review.simulations, len(review.moves)) == (256, 2)
        room.start_review(1 << 15)
        room.open(GameTree())
        assert room.review is None
        assert pending() is None, "there is nothing to review"
        await room.close()

    run(story())


def test_a_graph_is_drawn_in_linear_time(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves = ["7g7f", "3c3d", *["2h3h", "8b7b", "3h2h", "7b8b"] * 2, "2g2f", "8c8d"]
    hashed: list[GameNode] = []

    def count(node: GameNode) -> int:
        hashed.append(node)
        return id(node)

    monkeypatch.setattr(GameNode, "__hash__", count)
    monkeypatch.setattr(EvaluationGraph, "update", lambda _: None)
    graph = EvaluationGraph.__new__(EvaluationGraph)
    graph._props = {}  # type: ignore[assignment]
    room = AnalysisRoom(catalogue, GameRecord.from_moves(moves))
    room.step("last")
    graph.show(room, "letters")
    hashed.clear()
    graph.show(room, "letters")
    assert graph._props["cursor"] == len(moves)
    assert len(hashed) < 8 * len(moves)
    room.step("back")
    room.move("8b7b")
    room.move("2f2e")
    graph.show(room, "letters")
    assert graph._props["cursor"] == len(moves) - 1, "where the variation begins"


def test_a_position_without_a_king_is_explained(catalogue: Catalogue) -> None:
    def page() -> None:
        """Redraw of a page that shows nothing."""

    async def story() -> None:
        start = ShogiGame("4k4/9/4P4/9/9/9/9/9/9 b G 1").start
        room = AnalysisRoom(catalogue, GameRecord(start))
        room.attach(page)
        room.run(True)
        await until(lambda: bool(room.problem))
        assert "Black's king is missing" in room.problem
        await room.close()

    run(story())


def test_a_search_that_fails_is_stopped_and_explained(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(KnownPredictor):
        def predict(self, positions: Positions) -> Prediction:
            raise RuntimeError("the cable is loose")

    network = LoadedNetwork(Broken(), "broken", "broken", 0.0, 3, 512)
    monkeypatch.setattr(AnalysisSession, "load", lambda path: AnalysisSession(network, megabytes=1))

    def page() -> None:
        """Redraw of a page that shows nothing."""

    async def story() -> None:
        room = AnalysisRoom(catalogue)
        room.attach(page)
        room.run(True)
        await until(lambda: room.poll() or bool(room.problem))
        await until(lambda: room.poll() or bool(room.problem))
        assert "the cable is loose" in room.problem
        assert not room.is_running
        await room.close()

    run(story())


def test_rooms_are_found_again(room: AnalysisRoom) -> None:
    async def story() -> None:
        rooms = Rooms[AnalysisRoom]()
        rooms.enter(room, lambda: None)
        assert rooms.find(room.id) is room
        assert room.analyst == BUILTIN
        await rooms.close()

    run(story())


def test_scores_are_blacks() -> None:
    assert score_text(0.5, None, Color.BLACK) == "+659"
    assert score_text(-1.0, -4, Color.BLACK) == "-mate 4"
    assert score_text(-1.0, -4, Color.WHITE) == "+mate 4"
    assert [grade(loss) for loss in (0.05, 0.1, 0.25)] == ["", "?", "??"]


# ---- files ----


def content(room: AnalysisRoom, name: str, *, as_text: bool = False, **look: Any) -> bytes:
    return file_content(Snapshot.of(room), name, as_text=as_text, **look)[0]


def test_the_game_is_saved_with_its_variations(room: AnalysisRoom) -> None:
    room.go_to_ply(2)
    room.move("2g2f")
    room.comment("instead")
    kif = content(room, "game.kif").decode("cp932")
    assert "変化：3手" in kif
    assert "*instead" in kif
    assert read_tree(content(room, "game.kif"), "a.kif").record() == room.tree.record()
    assert read_tree(content(room, "game.ki2"), "a.ki2").record().variations
    [main] = read_csa(content(room, "game.csa").decode())
    assert main.main_line == room.tree.record().main_line
    assert content(room, "game.kif", as_text=True).decode() == kif.replace("\r\n", "\n")
    assert content(room, "game.usi").decode().endswith("moves 7g7f 3c3d 2g2f")
    assert content(room, "position.sfen").decode() == room.game.sfen()
    assert Snapshot.of(room).title == "akane-vs-botan"


def test_names_that_shift_jis_lacks_are_saved_as_utf8(catalogue: Catalogue) -> None:
    record = GameRecord.from_moves(["7g7f"], headers={"black": "Ødegård 😀"})
    room = AnalysisRoom(catalogue, record)
    assert "Ødegård" in content(room, "game.kif").decode()


def test_pictures_show_the_position_and_the_view(room: AnalysisRoom) -> None:
    room.go_to_ply(3)
    pictures = {
        content(room, "board.png", labels=labels, flip=flip)
        for labels in ("japanese", "letters")
        for flip in (False, True)
    }
    assert len(pictures) == 4
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert b"Last move 8h3c+." in content(room, "board.svg")
    assert content(room, "game.gif").startswith(b"GIF89a")
    assert b"acTL" in content(room, "game.apng")


@pytest.mark.parametrize("name", ["game.exe", "board.kif", "../game.kif", "game", "position.png"])
def test_other_files_do_not_exist(room: AnalysisRoom, name: str) -> None:
    with pytest.raises(KeiseiError, match="there is no file"):
        content(room, name)


# ---- positions that people set up ----


def diagram(
    sfen_board: str, turn: Color = Color.BLACK, black: str = "", white: str = ""
) -> Diagram:
    """A diagram, legal or not."""
    board: list[Piece | None] = []
    promoted = False
    kinds = {kind.symbol: kind for kind in PieceKind}
    for sign in sfen_board.replace("/", ""):
        if sign == "+":
            promoted = True
        elif sign.isdigit():
            board += [None] * int(sign)
        else:
            kind = kinds[("+" if promoted else "") + sign.upper()]
            board.append(Piece(Color.BLACK if sign.isupper() else Color.WHITE, kind))
            promoted = False
    hands = tuple(tuple(hand.count(sign) for sign in "PLNSGBR") for hand in (black, white))
    return Diagram(tuple(board), (hands[0], hands[1]), turn)


KINGS = "4k4/9/9/9/9/9/9/9/4K4"
WRONG = {
    POSITIONS[0]: diagram("4kk3/9/9/9/9/9/9/9/4K4"),
    POSITIONS[1]: diagram("9/9/9/9/9/9/9/9/9"),
    POSITIONS[2]: diagram("4k4/9/9/9/9/9/9/9/9"),
    POSITIONS[3]: diagram("4k4/9/9/9/P8/P8/9/9/4K4"),
    POSITIONS[4]: diagram("N3k4/9/9/9/9/9/9/9/4K4"),
    POSITIONS[5]: diagram(KINGS, black="RRR"),
    POSITIONS[6]: diagram("4k4/4R4/9/9/9/9/9/9/4K4"),
    POSITIONS[7]: diagram("4k4/4G4/4P4/9/9/9/9/9/4K4", Color.WHITE),
}


@pytest.mark.parametrize("reason", POSITIONS)
def test_each_wrong_position_is_explained_in_every_language(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = position_error(WRONG[reason])
    assert error is not None
    english = error_text(error)
    assert english.split()[-1] == str(error).split()[-1]
    for module in ("languages", "play.error_wording"):
        monkeypatch.setattr(f"keisei.web.{module}.page_language", lambda: "ja")
    japanese = error_text(error)
    assert not any(character.isascii() and character.isalpha() for character in japanese), japanese


def test_right_positions_have_no_error() -> None:
    for right in (STARTPOS, diagram(KINGS), diagram(KINGS, Color.WHITE, "RRBB", "GGGG")):
        assert position_error(right) is None


def test_pieces_are_put_moved_turned_and_removed() -> None:
    position = Position()
    origin, target = parse_square("7g"), parse_square("7f")
    position.carry(origin, target)
    assert position.diagram.board[origin] is None
    assert position.diagram.board[target] == Piece(Color.BLACK, PieceKind.PAWN)
    position.carry(origin, target)
    position.carry(target, target)
    assert position.diagram.board[target] == Piece(Color.BLACK, PieceKind.PAWN)
    seen = []
    for _ in range(4):
        position.turn_piece(target)
        piece = position.diagram.board[target]
        assert piece is not None
        seen.append(piece.symbol)
    assert seen == ["+P", "p", "+p", "P"]
    position.put(target, None)
    position.turn_piece(target)
    assert position.diagram.board[target] is None


def test_hands_are_counted_within_a_set() -> None:
    position = Position()
    position.empty()
    assert format_sfen(position.diagram) == f"{KINGS} b - 1"
    for _ in range(5):
        position.hold(Color.BLACK, PieceKind.ROOK, 1)
    assert position.diagram.hands[Color.BLACK][PieceKind.ROOK] == 2
    position.hold(Color.BLACK, PieceKind.PAWN, -1)
    position.hold_rest(Color.WHITE)
    assert format_sfen(position.diagram) == f"{KINGS} b 2R2b4g4s4n4l18p 1"
    assert position_error(position.diagram) is None
    position.exchange_sides()
    assert format_sfen(position.diagram) == f"{KINGS} w 2B4G4S4N4L18P2r 1"
