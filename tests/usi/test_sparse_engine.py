"""The engine as it ships: a sparse network, simulations in one kernel, threads in one tree."""

import itertools
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import keisei
from keisei.constants import BUILTIN
from keisei.network.loading import LoadedNetwork, open_network
from keisei.search.trees import ROOT, Trees
from keisei.shogi.game import ShogiGame
from keisei.usi import thinker
from keisei.usi.options import NEVER_RESIGNS, Settings
from tests.usi.gui import Gui

OPEN_NETWORK: Final = cache(open_network)

START = "position startpos"
LOPSIDED = "position sfen 4k4/9/9/9/9/9/9/8R/4K4 b - 1"
HOPELESS = "position sfen 4k4/9/9/9/9/9/9/9/4K4 b 2r2b4g4s4n4l18p 1"
MATED_SOON = "position sfen 4k4/9/3GPG3/9/9/9/9/9/4K4 w G 2"
"""Whatever White plays, a gold mates."""

MANY_DROPS = "position sfen 3gkg3/3sss3/ppppppppp/9/9/9/PPPPPPPPP/4S4/3GKG3 b RB4N4Lrb 1"
"""Nodes have so many moves that memory for edges runs out first."""

QUICK_INFO: Final = 0.02
LONG = "go byoyomi 3600000"

both = pytest.mark.parametrize("threads", [1, 2])


class SparseGui(Gui):
    """Talks to an engine with the network in the package."""

    def __init__(self, **settings: int) -> None:
        usual = {"threads": 2, "megabytes": 16}
        super().__init__(settings=Settings(**{**usual, **settings}))  # type: ignore[arg-type]

    def load(self, threads: int) -> LoadedNetwork:
        self.loads.append(threads)
        return OPEN_NETWORK(Path(BUILTIN))(threads)

    @property
    def trees(self) -> Trees:
        """The memory of the search."""
        return self.engine._thinker._search._batch.trees

    def infos(self, *lines: str) -> list[str]:
        """Send lines, the last of which is a ``go``; return the reports before the answer."""
        self.send(*lines)
        return [line for line in self.until("bestmove") if line.startswith("info depth")]


@pytest.fixture
def quick_info(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports come so often that a search need not take long to be seen."""
    monkeypatch.setattr(thinker, "INFO_INTERVAL", QUICK_INFO)


def number(name: str, info: str) -> int:
    """A number of an ``info`` line."""
    found = re.search(rf" {name} (-?\d+)", info)
    assert found is not None, info
    return int(found[1])


def moves_of(info: str) -> list[str]:
    return info.partition(" pv ")[2].split()


@both
def test_the_number_of_nodes_is_exact(threads: int) -> None:
    """Whether the tree is new or kept, and wherever the steps of a search end."""
    with SparseGui(threads=threads) as gui:
        total = 0
        for nodes in (1, 2, 255, 513, 2_000):
            total += nodes
            info = gui.infos(START, f"go nodes {nodes}")[-1]
            assert number("nodes", info) == nodes
            trees = gui.trees
            assert trees.visits[0, ROOT] == total + 1
            tried = trees.children[0, : int(trees.tried_counts[0, ROOT])]
            assert trees.visits[0, tried].sum() == total
            assert not trees.in_flight.any()
        assert gui.loads == [threads]


def test_several_lines_are_reported_best_first_and_can_be_played() -> None:
    with SparseGui(multipv=3) as gui:
        game = ShogiGame()
        for _ in range(6):
            gui.send(game.usi_position(), "go nodes 600")
            *lines, answer = gui.until("bestmove")
            last = lines[-3:]
            assert [number("multipv", line) for line in last] == [1, 2, 3]
            assert len({moves_of(line)[0] for line in last}) == 3
            for line in last:
                trial = game.copy()
                for move in moves_of(line):
                    trial.push(move)
            assert moves_of(last[0])[0] == answer.split()[1]
            game.push(answer.split()[1])


@pytest.mark.usefixtures("quick_info")
def test_it_thinks_until_it_is_stopped() -> None:
    with SparseGui() as gui:
        gui.send(START, "go infinite")
        first, second = gui.next(), gui.next()
        assert 0 < number("nodes", first) < number("nodes", second)
        assert gui.is_silent()
        gui.send("stop")
        *_, last, answer = gui.until("bestmove")
        assert number("nodes", last) >= number("nodes", second)
        ShogiGame().push(answer.split()[1])
        assert gui.is_silent()


@pytest.mark.usefixtures("quick_info")
def test_what_it_found_while_pondering_counts_after_the_hit() -> None:
    with SparseGui(ponder=True) as gui:
        gui.send(f"{START} moves 7g7f", "go ponder btime 0 wtime 0 byoyomi 100")
        pondered = number("nodes", gui.next())
        assert gui.is_silent()
        gui.send("ponderhit")
        *_, last, answer = gui.until("bestmove")
        assert number("nodes", last) >= pondered > 0
        game = ShogiGame("startpos moves 7g7f")
        _, move, word, reply = answer.split()
        assert word == "ponder"
        game.push(move)
        game.push(reply)
        gui.send(game.usi_position(), "go ponder btime 0 wtime 0 byoyomi 100")
        gui.next()
        gui.send("stop", "ponderhit")
        gui.until("bestmove")
        assert gui.is_silent()


def test_every_go_has_one_answer_whenever_it_is_stopped() -> None:
    with SparseGui() as gui:
        gui.send("isready")
        gui.until("readyok")
        for turn in range(30):
            gui.send(START, ("go infinite", "go ponder byoyomi 3", "go byoyomi 3")[turn % 3])
            gui.send(*(("stop",), ("ponderhit", "stop"), ("stop", "ponderhit"))[turn // 3 % 3])
            gui.until("bestmove")
        assert gui.is_silent()
        assert not gui.trees.in_flight.any()


@both
def test_only_the_moves_that_are_asked_for_are_searched(threads: int) -> None:
    with SparseGui(threads=threads, multipv=3) as gui:
        infos = gui.infos(START, "go nodes 500 searchmoves 9g9f 1g1f")
        assert {moves_of(line)[0] for line in infos} == {"9g9f", "1g1f"}
        infos = gui.infos("go nodes 500")
        assert len(infos) == 3, "the next search knows all moves again"
        assert number("nodes", infos[0]) == 500


@both
@pytest.mark.parametrize("position", [START, MANY_DROPS])
def test_the_tree_stays_in_its_memory_and_the_search_ends_when_it_is_full(
    threads: int, position: str
) -> None:
    with SparseGui(threads=threads, megabytes=1) as gui:
        gui.send(position, "isready")
        gui.until("readyok")
        memory = [array.ctypes.data for array in gui.trees]
        info = gui.infos(LONG)[-1]
        assert number("hashfull", info) == 1000
        assert 1_000 < number("nodes", info) < 3_000
        info = gui.infos(LONG)[-1]
        assert (number("nodes", info), number("hashfull", info)) == (0, 1000)
        assert [array.ctypes.data for array in gui.trees] == memory
        assert sum(array.nbytes for array in gui.trees) < 1_100_000


def test_with_a_full_tree_a_game_goes_on() -> None:
    """What is left of the tree after a move and its reply is kept, the rest makes room."""
    with SparseGui(megabytes=1) as gui:
        game = ShogiGame()
        for _ in range(6):
            info = gui.infos(game.usi_position(), LONG)[-1]
            assert number("nodes", info) > 0
            assert number("hashfull", info) == 1000
            for move in moves_of(info)[:2]:
                game.push(move)


def test_a_full_tree_does_not_answer_before_it_may() -> None:
    with SparseGui(megabytes=1) as gui:
        gui.send(START, "go infinite")
        while number("hashfull", gui.next()) < 1000:
            pass
        assert gui.is_silent()
        gui.send("stop")
        assert gui.until("bestmove")[0].startswith("bestmove ")


def test_at_the_ply_of_a_draw_no_advantage_counts() -> None:
    with SparseGui() as gui:
        assert number("cp", gui.infos(LOPSIDED, "go nodes 200")[0]) > 50
        gui.send("setoption name MaxMovesToDraw value 1")
        assert number("cp", gui.infos("go nodes 200")[0]) == 0
        gui.send("setoption name MaxMovesToDraw value 400")
        assert number("cp", gui.infos("go nodes 200")[0]) > 50, "the tree of other rules is gone"


@both
def test_it_resigns_below_the_value_for_that_and_before_a_sure_mate(threads: int) -> None:
    go = "go nodes 300"
    with SparseGui(threads=threads) as gui:
        assert gui.best_move(HOPELESS, go) != "resign"
        assert gui.best_move("setoption name ResignValue value 1000", go) == "resign"
        assert gui.best_move(START, go) != "resign"
        gui.send(f"setoption name ResignValue value {NEVER_RESIGNS - 1}")
        assert gui.best_move(HOPELESS, go) != "resign"
        gui.send(MATED_SOON, "go nodes 5000")
        *_, info, answer = gui.until("bestmove")
        assert number("mate", info) < 0
        assert answer == "bestmove resign"
        gui.send(f"setoption name ResignValue value {NEVER_RESIGNS}")
        assert gui.best_move("go nodes 5000") != "resign"


def test_reports_are_apart_by_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    interval = 50
    monkeypatch.setattr(thinker, "INFO_INTERVAL", interval / 1000)
    with SparseGui(network_delay=0) as gui:
        gui.send("isready")
        gui.until("readyok")
        infos = gui.infos(START, "go movetime 400")
        times = [number("time", info) for info in infos]
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert 2 < len(infos) <= 400 / interval + 1
        # Only the last one comes at once; one that was late leaves less time to the next.
        assert min(gaps[:-1]) >= interval / 2
        nodes = [number("nodes", info) for info in infos]
        assert nodes == sorted(nodes)
        assert len(gui.infos("go nodes 50")) == 1, "a short search has one report"


def test_a_depth_is_reached() -> None:
    with SparseGui() as gui:
        assert number("depth", gui.infos(START, "go depth 6")[-1]) >= 6


def test_without_an_argument_it_is_the_player_in_the_package() -> None:
    """It has no name beside Keisei's, and finds what the network in the package finds."""
    lines = ["usi", START, "go nodes 100"]
    done = subprocess.run(
        [sys.executable, "-m", "keisei", "usi"],
        check=False,
        cwd=Path(keisei.__file__).parents[1],
        input="\n".join([*lines, ""]),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0] == f"id name Keisei {keisei.__version__}"
    with SparseGui(threads=1) as gui:
        expected = gui.infos(*lines[1:])[-1]
    info = next(line for line in said if line.startswith("info depth"))
    assert moves_of(info) == moves_of(expected)
    assert [number(name, info) for name in ("depth", "cp", "nodes")] == [
        number(name, expected) for name in ("depth", "cp", "nodes")
    ]
