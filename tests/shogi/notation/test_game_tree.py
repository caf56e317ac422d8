"""Trees of variations: from records and back, and editing."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.errors import IllegalMoveError, KeiseiError
from keisei.shogi.notation import GameTree, read_kif, write_csa, write_kif
from keisei.shogi.notation.game_tree import MAX_NODES, GameNode
from keisei.shogi.notation.record import Ending, GameRecord, RecordedMove, Result, Variation
from keisei.shogi.types import Move
from tests.cpu_time import allowed
from tests.shogi.notation.record_strategies import records

KIF = """手合割：平手
*before the game
   1 ７六歩(77)   ( 0:01/00:00:01)+
*the usual move
   2 ３四歩(33)   ( 0:02/00:00:02)+
   3 ２六歩(27)   ( 0:03/00:00:04)+
   4 投了

変化：3手
*a swap of bishops
   3 ２二角成(88)
   4 同　銀(31)+
   5 ４五角打

変化：4手
   4 同　飛(82)

変化：3手
   3 ６六歩(67)

変化：2手
   2 ８四歩(83)

変化：1手
   1 ２六歩(27)
   2 投了
"""


def texts(tree: GameTree) -> list[str]:
    """All lines of the tree from the root to their ends, in order."""
    leaves = [node for node in tree.nodes() if not node.children]
    return [
        " ".join(
            str(node.move) if node.result is None else node.result.ending.value
            for node in leaf.line()[1:]
        )
        for leaf in leaves
    ]


def shape(node: GameNode) -> list[object]:
    """Everything below a node that can be compared."""
    return [
        (child.move, child.result, child.seconds, child.comment, child.bookmark,
         child.starting_comment, shape(child))
        for child in node.children
    ]  # fmt: skip


def test_the_variations_of_a_file_become_a_tree_and_the_same_file_again() -> None:
    record = read_kif(KIF)
    tree = GameTree.from_record(record)
    assert texts(tree) == [
        "7g7f 3c3d 2g2f resignation",
        "7g7f 3c3d 8h2b+ 3a2b B*4e",
        "7g7f 3c3d 8h2b+ 8b2b",
        "7g7f 3c3d 6g6f",
        "7g7f 8c8d",
        "2g2f resignation",
    ]
    assert tree.root.comment == "before the game"
    first = tree.root.children[0]
    assert (first.comment, first.seconds, first.ply, first.is_main) == (
        "the usual move",
        1,
        1,
        True,
    )
    swap = tree.root.children[0].children[0].children[1]
    assert (swap.starting_comment, swap.is_main, swap.ply) == ("a swap of bishops", False, 3)
    assert tree.record() == record
    assert read_kif(write_kif(tree.record())) == record


@given(records())
def test_any_record_survives(record: GameRecord) -> None:
    tree = GameTree.from_record(record)
    again = GameTree.from_record(tree.record())
    assert shape(again.root) == shape(tree.root)
    assert (again.root.comment, again.start, again.headers) == (
        record.comment, record.start, record.headers,
    )  # fmt: skip
    assert tree.record().main_line[: len(record.moves)] == record.main_line


@given(st.integers(0, 10_000))
def test_any_tree_survives_a_kif_file(seed: int) -> None:
    rng = random.Random(seed)
    tree = GameTree()
    nodes: list[GameNode] = []
    for number in range(25):
        node = rng.choice([tree.root, *nodes])
        game = tree.game(node)
        added = tree.add_move(node, rng.choice(game.legal_moves))
        if added not in nodes:
            added.comment = f"number {number}"
            nodes.append(added)
    again = GameTree.from_record(read_kif(write_kif(tree.record())))
    assert shape(again.root) == shape(tree.root)


def test_an_end_can_be_a_variation_and_have_moves_beside_it() -> None:
    record = GameRecord(
        moves=[RecordedMove(Move.from_usi("7g7f")), RecordedMove(Move.from_usi("3c3d"))],
        result=Result(Ending.RESIGNATION),
        variations=[
            Variation(3, [RecordedMove(Move.from_usi("2g2f"))]),
            Variation(2, [], Result(Ending.INTERRUPTED)),
        ],
    )
    tree = GameTree.from_record(record)
    assert tree.record() == record
    last = tree.root.last()
    assert str(last.move) == "3c3d", "the end is not a move"
    assert tree.main_line() == [tree.root.children[0], last]


def test_moves_are_added_once_and_only_if_legal() -> None:
    tree = GameTree()
    first = tree.add_move(tree.root, "7g7f")
    assert tree.add_move(tree.root, "7g7f") is first
    with pytest.raises(IllegalMoveError):
        tree.add_move(first, "7f7e")
    assert tree.add_line(first, ["3c3d", "2g2f"]).ply == 3
    end = GameNode(None, first, Result(Ending.RESIGNATION))
    first.children.append(end)
    with pytest.raises(KeiseiError, match="nothing can follow"):
        tree.add_move(end, "3c3d")


def test_a_line_can_be_promoted_and_removed() -> None:
    tree = GameTree.from_record(read_kif(KIF))
    deep = tree.root.children[0].children[0].children[1].children[1]
    tree.promote(deep)
    assert [str(node.move) for node in tree.main_line()] == ["7g7f", "3c3d", "8h2b+", "8b2b"]
    assert GameTree.from_record(tree.record()).record() == tree.record()
    assert tree.remove(deep) is deep.parent
    assert "8b2b" not in " ".join(texts(tree))
    with pytest.raises(KeiseiError, match="start"):
        tree.remove(tree.root)


def test_what_was_removed_can_be_put_back_in_its_place() -> None:
    tree = GameTree.from_record(read_kif(KIF))
    before = texts(tree)
    for _ in range(3):  # ever more of the main line, as by a button that was pressed too often
        tree.remove(tree.main_line()[-1])
    assert tree.removed is not None
    assert not tree.has(tree.removed)
    for _ in range(3):
        node = tree.put_back()
        assert tree.has(node)
    assert texts(tree) == before
    with pytest.raises(KeiseiError, match="nothing was removed"):
        tree.put_back()


def test_a_removed_move_that_was_played_again_stays_removed() -> None:
    tree = GameTree()
    tree.add_line(tree.root, ["7g7f", "3c3d"])
    tree.remove(tree.root.children[0])
    again = tree.add_move(tree.root, "7g7f")
    assert tree.removed is None
    tree.remove(again)
    assert tree.put_back() is again


def test_csa_keeps_the_main_line_and_its_comments() -> None:
    tree = GameTree.from_record(read_kif(KIF))
    text = write_csa(tree.record())
    assert "'*the usual move" in text
    assert "8822UM" not in text


def test_a_tree_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keisei.shogi.notation.game_tree.MAX_NODES", 5)
    with pytest.raises(KeiseiError, match="up to 5 moves"):
        GameTree.from_record(read_kif(KIF))
    tree = GameTree()
    tree.add_line(tree.root, ["7g7f", "3c3d", "2g2f", "8c8d", "2f2e"])
    assert len(GameTree.from_record(tree.record()).record().moves) == 5, "as many as are said"
    with pytest.raises(KeiseiError, match="up to 5 moves"):
        tree.add_move(tree.root, "2g2f")
    assert MAX_NODES > 1_000


def test_ends_count_too_and_are_found_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, 256 kB of them, each other than those before it, held up the server for 6 s."""
    ends = [Variation(1, [], Result(Ending.MATE, float(second))) for second in range(9_000)]
    start = time.thread_time()
    tree = GameTree.from_record(GameRecord(variations=ends))
    assert time.thread_time() - start < allowed(1.0)
    assert len(tree.root.children) == 9_000
    monkeypatch.setattr("keisei.shogi.notation.game_tree.MAX_NODES", 8_999)
    with pytest.raises(KeiseiError, match="up to 8,999 moves"):
        GameTree.from_record(GameRecord(variations=ends))
