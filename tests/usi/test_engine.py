"""The engine as GUIs drive it: every ``go`` has one answer, a legal one, at the right moment."""

import os
import random
import re
import time
from collections.abc import Callable
from threading import Event, Thread

import pytest

from keisei.errors import KeiseiError
from keisei.levels import LEVELS
from keisei.network.loading import LoadedNetwork
from keisei.network.predictor import Predictor
from keisei.search.game_search import GameSearch
from keisei.search.tsume import MateSolver, MateStatus
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import Move
from keisei.usi import thinker
from keisei.usi.engine import Engine
from keisei.usi.options import Settings
from keisei.usi.thinker import MATE_SLICE
from keisei.usi.usi_io import TooLongLine, UsiWriter, read_lines
from tests.usi.gui import ANSWERS, Gui, MaterialPredictor, _LineQueue
from tests.usi.test_sparse_engine import SparseGui

MATE_IN_THREE = "position sfen 3sks3/9/4+P4/9/9/9/9/9/4K4 b 2G2r2b2g2s4n4l17p 1"
MATED = "position sfen 4k4/4G4/4P4/9/9/9/9/9/4K4 w - 2"
REPETITION = "8k/9/8p/9/9/9/9/9/R8 b - 1"
"""No mate is found, but only because positions repeat."""

HARD = "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1"
MATE_SOLVE = MateSolver.solve
ENTERED = "position sfen 4K4/+R+B7/PPPPPPPPP/9/9/9/9/9/4k4 b RB 1"


def test_it_introduces_itself_and_every_option_can_be_set_to_what_it_announces() -> None:
    with Gui() as gui:
        gui.send("usi")
        lines = gui.until("usiok")
        assert lines[0].startswith("id name Keisei ")
        options = [line for line in lines if line.startswith("option ")]
        assert len(options) > 5
        for line in options:
            found = re.match(r"option name (\S+) type \w+ default (\S+)", line)
            assert found is not None
            gui.send(f"setoption name {found[1]} value {found[2]}")
        for name, value in (("USI_Hash", "64"), ("USI_Ponder", "true"), ("usi_multipv", "2")):
            gui.send(f"setoption name {name} value {value}")
        gui.send("isready")
        assert gui.until("readyok") == ["readyok"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("setoption name Nonsense value 1", "unknown option 'Nonsense'"),
        ("setoption name Threads value 0", "from 1 to 512"),
        ("setoption name Threads value many", "whole number"),
        ("setoption name USI_Ponder value perhaps", "true, false"),
        ("setoption name EnteringKingRule value Mine", "CSARule27"),
        ("setoption Threads 2", "expected name NAME value VALUE"),
        ("position startpos moves 7g7e", "cannot go from 7g to 7e"),
        ("position startpos moves 7g7f nonsense", "move 2 of the list"),
        ("position sfen 9/9/9 b - 1", "3 ranks"),
        ("position", "an SFEN has"),
        ("hello\tworld", "unknown command"),
        ("go nodes many nodes 1", "unknown arguments: 'nodes many'"),
    ],
)
def test_mistakes_are_explained_and_change_nothing_else(line: str, message: str) -> None:
    with Gui() as gui:
        gui.send(line)
        line = gui.next()
        assert line.startswith("info string ")
        assert message in line
        assert gui.best_move("position startpos", "go nodes 5") != "resign"


def test_without_a_legal_position_it_resigns_and_recovers() -> None:
    with Gui() as gui:
        assert gui.best_move("position startpos moves 7g7e", "go nodes 5") == "resign"
        assert gui.best_move("position startpos moves 7g7f", "go nodes 5") != "resign"


def test_a_game_against_itself_is_legal_and_its_lines_can_be_played() -> None:
    with Gui() as gui:
        game = ShogiGame()
        gui.send("usi", "isready", "usinewgame", "setoption name MultiPV value 3")
        gui.until("readyok")
        for _ in range(12):
            gui.send(game.usi_position(), "go nodes 40")
            *thoughts, answer = gui.until("bestmove")
            lines = [line for line in thoughts if " pv " in line]
            assert {f" multipv {number} " in "".join(lines) for number in (1, 2, 3)} == {True}
            for line in lines:
                trial = game.copy()
                for move in line.partition(" pv ")[2].split():
                    trial.push(move)
            first = next(line for line in reversed(lines) if " multipv 1 " in line)
            assert first.partition(" pv ")[2].split()[0] == answer.split()[1]
            game.push(answer.split()[1])


def test_the_numbers_of_simulations_are_kept() -> None:
    with Gui(settings=Settings(simulations=7)) as gui:
        gui.send("position startpos", "go byoyomi 100000")
        assert " nodes 7 " in gui.until("bestmove")[-2]
        gui.send("go nodes 3")
        assert " nodes 3 " in gui.until("bestmove")[-2]
        gui.send("setoption name Simulations value -1", "go depth 2")
        assert re.search(r" depth ([2-9]|\d\d)", gui.until("bestmove")[-2])


def test_by_the_policy_alone_it_asks_the_network_once_and_sees_a_mate_in_one() -> None:
    predictor = MaterialPredictor()
    with Gui(predictor, Settings(simulations=0)) as gui:
        gui.send("isready")
        gui.until("readyok")
        calls: list[int] = []
        predictor.on_call = lambda: calls.append(1)
        gui.best_move("position startpos", "go byoyomi 1000")
        assert len(calls) == 1
        sfen = "position sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1"
        assert gui.best_move(sfen, "go byoyomi 1000") == "G*5b"
        assert len(calls) == 1


def test_temperature_varies_the_moves_and_a_seed_repeats_them() -> None:
    def moves(seed: int) -> list[str]:
        settings = Settings(simulations=0, temperature=100, seed=seed)
        with Gui(settings=settings) as gui:
            return [gui.best_move("position startpos", "go") for _ in range(8)]

    assert len(set(moves(1))) > 2
    assert moves(1) == moves(1)
    assert moves(1) != moves(2)


def test_levels_limit_thought_and_leave_the_clock_alone() -> None:
    """Level 1 plays by its policy with much chance and overlooks mates, level 10 does not."""
    mate = "position sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1"
    with Gui(settings=Settings(level=1, seed=1)) as gui:
        go = "go btime 600000 wtime 600000 byoyomi 60000"
        assert len({gui.best_move("position startpos", go) for _ in range(8)}) > 3
        assert {gui.best_move(mate, go) for _ in range(8)} != {"G*5b"}
        gui.send("setoption name Level value 8", "position startpos", go)
        assert f" nodes {LEVELS[8].simulations} " in gui.until("bestmove")[-2]
        assert gui.best_move(mate, go) == "G*5b"
        assert gui.best_move("setoption name Level value 10", mate, "go nodes 5") == "G*5b"
    assert Settings(simulations=7).at_level().simulations == 7


def test_only_the_moves_that_are_asked_for_are_searched() -> None:
    with Gui() as gui:
        chosen = gui.best_move("position startpos", "go nodes 50 searchmoves 9g9f 1g1f 5a5b")
        assert chosen in ("9g9f", "1g1f")
        assert gui.best_move("go searchmoves 1g1f nodes 3") == "1g1f"


def test_a_mate_is_announced_with_its_length_and_all_its_moves() -> None:
    with Gui() as gui:
        gui.send(MATE_IN_THREE, "go nodes 100")
        line = gui.until("bestmove")[-2]
        found = re.search(r"score mate (\d+) .* pv (.*)", line)
        assert found is not None
        game = ShogiGame(MATE_IN_THREE)
        moves = found[2].split()
        assert len(moves) == int(found[1])
        for move in moves:
            game.push(move)
        assert game.outcome() is not None


def test_mated_it_resigns_and_with_an_entered_king_it_declares() -> None:
    with Gui() as gui:
        assert gui.best_move(MATED, "go nodes 5") == "resign"
        assert gui.best_move(ENTERED, "go nodes 5") == "win"
        rule = "setoption name EnteringKingRule value NoEnteringKing"
        assert gui.best_move(rule, "go nodes 5") not in ("win", "resign")


def test_it_resigns_when_its_score_is_below_the_value_for_that() -> None:
    behind = "position sfen 4k4/9/9/9/9/9/9/9/4K4 b 2r2b4g4s4n4l18p 1"
    with Gui() as gui:
        assert gui.best_move(behind, "go nodes 5") != "resign"
        assert gui.best_move("setoption name ResignValue value 500", "go nodes 5") == "resign"
        assert gui.best_move("position startpos", "go nodes 5") != "resign"


@pytest.mark.parametrize("position", ["position startpos", MATE_IN_THREE, MATED, ENTERED])
@pytest.mark.parametrize("go", ["go infinite", "go ponder btime 0 wtime 0 byoyomi 1"])
def test_no_answer_comes_before_it_is_expected(position: str, go: str) -> None:
    """Even if the answer is known long before."""
    predictor = MaterialPredictor()
    with Gui(predictor) as gui:
        gui.send("isready")
        gui.until("readyok")
        predictor.is_called.clear()
        gui.send(position, go)
        if position == "position startpos":
            assert predictor.is_called.wait(60)
        assert gui.is_silent()
        gui.send("stop")
        gui.until("bestmove")
        assert gui.is_silent()


def test_it_gets_ready_while_it_thinks() -> None:
    predictor = MaterialPredictor()
    with Gui(predictor) as gui:
        gui.send("isready")
        gui.until("readyok")
        predictor.is_called.clear()
        predictor.gate.clear()
        gui.send("position startpos", "go infinite")
        assert predictor.is_called.wait(60)
        gui.send("isready", "usi")  # the network does not answer at all
        assert gui.next() == "readyok"
        gui.until("usiok")
        gui.send("stop")
        predictor.gate.set()
        gui.until("bestmove")


def test_a_ponder_hit_starts_the_clock_and_a_miss_is_answered_once() -> None:
    with Gui(settings=Settings(ponder=True)) as gui:
        gui.send("position startpos moves 7g7f", "go ponder btime 0 wtime 0 byoyomi 200")
        assert gui.is_silent()
        gui.send("ponderhit")
        answer = gui.until("bestmove")[-1]
        assert " ponder " in answer
        gui.send("position startpos moves 2g2f", "go ponder btime 0 wtime 0 byoyomi 200", "stop")
        gui.until("bestmove")
        gui.send("ponderhit", "stop")
        assert gui.is_silent()


def test_a_ponder_hit_may_bring_the_clock_along() -> None:
    with Gui() as gui:
        gui.send("position startpos", "go ponder", "ponderhit btime 0 wtime 0 byoyomi 50")
        gui.until("bestmove")
        assert gui.is_silent()


def test_stops_and_ponder_hits_race_with_answers_but_each_go_has_exactly_one() -> None:
    """The network is quick, so that answers come at any moment around the stop."""
    rng = random.Random(5)
    with Gui() as gui:
        gui.send("isready")
        gui.until("readyok")
        for _ in range(150):
            gui.send("position startpos moves 7g7f")
            gui.send(
                rng.choice(["go ponder byoyomi 5", "go infinite", "go byoyomi 3", "go nodes 9"])
            )
            gui.send(*rng.choice([["ponderhit", "stop"], ["stop"], ["stop", "ponderhit", "stop"]]))
            lines = gui.until("bestmove")
            assert sum(line.startswith("bestmove") for line in lines) == 1
        assert gui.is_silent()


def test_searches_that_end_wait_for_each_other_and_those_that_do_not_are_ended() -> None:
    with Gui() as gui:
        gui.send("position startpos", "go nodes 20", "go infinite", "go nodes 10", "gameover win")
        for _ in range(3):
            gui.until("bestmove")
        assert gui.is_silent()


def test_threads_are_for_the_network_which_is_loaded_again_when_they_change() -> None:
    with Gui() as gui:
        gui.send("isready")
        gui.until("readyok")
        gui.send("setoption name Threads value 2", "isready")
        gui.until("readyok")
        gui.send("isready")
        gui.until("readyok")
        gui.quit()
        assert gui.loads == [1, 2]


def test_quit_ends_a_search_without_an_answer() -> None:
    gui = Gui()
    gui.send("isready")
    gui.until("readyok")
    gui.send("position startpos", "go infinite")
    assert all(not line.startswith("bestmove") for line in gui.quit())


def test_at_the_end_of_its_input_it_finishes_what_has_an_end() -> None:
    gui = Gui()
    gui.send("position startpos", "go nodes 30", "go infinite")
    lines = gui.end()
    assert sum(line.startswith("bestmove") for line in lines) == 2


def test_a_network_that_cannot_be_loaded_ends_the_engine_with_its_reason() -> None:
    gui = Gui()
    gui.quit()

    def fail(threads: int) -> LoadedNetwork:
        raise KeiseiError(f"no network, not even with {threads} threads")

    engine = Engine(fail, UsiWriter(_LineQueue(gui.answers)))
    with pytest.raises(KeiseiError, match="no network"):
        engine.run(["isready"] * 3)


def test_a_failure_while_thinking_is_answered_and_the_engine_goes_on() -> None:
    predictor = MaterialPredictor()
    with Gui(predictor) as gui:
        gui.send("isready")
        gui.until("readyok")

        def fail() -> None:
            predictor.on_call = lambda: None
            raise RuntimeError("a flash in the machine")

        predictor.on_call = fail
        gui.send("position startpos", "go nodes 10")
        lines = gui.until("bestmove")
        assert lines[-1] == "bestmove resign"
        assert "a flash in the machine" in " ".join(lines)
        assert gui.best_move("position startpos moves 7g7f", "go nodes 10") != "resign"


# ---- mates ----


@pytest.mark.parametrize(
    ("position", "answer"),
    [
        ("sfen 4k4/9/4P4/9/9/9/9/9/9 b G2r2b3g4s4n4l17p 1", "G*5b"),
        ("sfen 4k4/9/9/9/9/9/9/9/4K4 b G2r2b3g4s4n4l18p 1", "nomate"),
        ("startpos", "nomate"),
        ("startpos moves 7g7e", "notimplemented"),
    ],
)
def test_mates_are_asked_for(position: str, answer: str) -> None:
    with Gui() as gui:
        gui.send(f"position {position}", "go mate 60000")
        assert gui.until("checkmate")[-1] == f"checkmate {answer}"


def test_a_search_for_a_mate_can_be_stopped_and_without_a_king_nothing_else_is_done() -> None:
    with Gui() as gui:
        gui.send("position sfen 4k4/9/4P4/9/9/9/9/9/9 b G2r2b3g4s4n4l17p 1", "go nodes 5")
        assert gui.until("bestmove")[-1] == "bestmove resign"
        gui.send("position startpos", "go mate infinite", "stop")
        assert gui.until("checkmate")[-1] in ("checkmate nomate", "checkmate timeout")


def test_where_the_only_escape_is_a_repetition_it_does_not_wait_for_the_end_of_its_time() -> None:
    with Gui() as gui:
        gui.send(f"position sfen {REPETITION}", "go mate 1000000000")
        assert gui.until("checkmate")[-1] == "checkmate timeout"


def test_where_nothing_more_can_be_found_it_waits_without_looking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[MateStatus] = []
    is_decided = Event()

    def solve(solver: MateSolver, game: ShogiGame, nodes: int) -> tuple[MateStatus, list[Move]]:
        verdict, line = MATE_SOLVE(solver, game, nodes)
        calls.append(verdict)
        if nodes == MATE_SLICE and verdict is not MateStatus.UNKNOWN:
            is_decided.set()
        return verdict, line

    monkeypatch.setattr(MateSolver, "solve", solve)
    with Gui() as gui:
        gui.send(f"position sfen {REPETITION}", "go mate infinite")
        assert is_decided.wait(60)
        assert gui.is_silent()
        looked = len(calls)
        gui.send("stop")
        assert gui.until("checkmate")[-1] == "checkmate timeout"
        assert len(calls) == looked


def test_a_search_for_a_mate_looks_at_the_clock_often() -> None:
    """A slice takes far less than 50 ms of the processor: what else it does is not counted."""
    game, solver, verdict = ShogiGame(HARD), MateSolver(), MateStatus.UNKNOWN
    spent: list[float] = []
    while verdict is MateStatus.UNKNOWN and len(spent) < 9:
        begun = time.thread_time()
        verdict, _ = solver.solve(game, MATE_SLICE)
        spent.append(time.thread_time() - begun)
    assert sorted(spent)[len(spent) // 2] < 0.05


# ---- memory ----


@pytest.mark.parametrize("is_first", [True, False])
def test_more_memory_than_there_is_is_explained(
    monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    """The tree is smaller then, and the engine continues."""
    made: list[int] = []

    class Greedy(GameSearch):
        def __init__(self, predictor: Predictor, *, batch_size: int, megabytes: int) -> None:
            made.append(megabytes)
            if megabytes > 1000:
                raise MemoryError("Unable to allocate 290. GiB")
            super().__init__(predictor, batch_size=batch_size, megabytes=megabytes)

    monkeypatch.setattr(thinker, "GameSearch", Greedy)
    with Gui(settings=Settings(megabytes=1 << 20) if is_first else None) as gui:
        if not is_first:
            gui.send("isready")
            gui.until("readyok")
            gui.send("setoption name USI_Hash value 1048576")
        gui.send("isready")
        assert [line for line in gui.until("readyok") if "memory" in line] == [
            "info string not enough memory for a tree of 1048576 MB, using 256 MB"
        ]
        assert gui.best_move("position startpos", "go nodes 10") != "resign"
        assert made == [256] * (not is_first) + [1 << 20, 256], "it is tried once"


def test_too_little_memory_for_anything_ends_the_engine_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> GameSearch:
        raise MemoryError

    monkeypatch.setattr(thinker, "GameSearch", fail)
    gui = Gui()
    gui.send("isready")
    with pytest.raises(KeiseiError, match="not enough memory for a tree of 256 MB"):
        gui.end()


def test_the_tree_is_used_again_after_the_expected_reply() -> None:
    with Gui() as gui:
        gui.send("setoption name USI_Ponder value true", "position startpos", "go nodes 300")
        *_, move, _, reply = gui.until("bestmove")[-1].split()
        gui.send(f"position startpos moves {move} {reply}", "go nodes 1")
        info = gui.until("bestmove")[-2]
        gui.send("usinewgame", f"position startpos moves {move} {reply}", "go nodes 1")
        fresh = gui.until("bestmove")[-2]
    assert int(info.split()[2]) > int(fresh.split()[2]) == 1


# ---- lines ----


def lines_of(data: bytes) -> list[str]:
    """The lines that arrive when a GUI writes `data`."""
    reader, writer = os.pipe()

    def write() -> None:
        with os.fdopen(writer, "wb") as file:
            file.write(data)

    thread = Thread(target=write)
    thread.start()
    try:
        return list(read_lines(reader))
    finally:
        thread.join()
        os.close(reader)


def test_lines_end_with_lf_or_cr_or_both() -> None:
    assert [line for line in lines_of(b"usi\nisready\rgo\r\nquit") if line] == [
        "usi", "isready", "go", "quit",
    ]  # fmt: skip


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_that_is_too_long_is_named(end: bytes) -> None:
    long = b"position startpos moves" + b" 7g7f" * 250_000
    first, *rest = lines_of(long + end + b"go\n" * len(end))
    assert isinstance(first, TooLongLine)
    assert first.startswith("position startpos moves 7g7f")
    assert [line for line in rest if line] == ["go"] * len(end)


def test_the_position_before_a_line_that_is_too_long_is_not_played() -> None:
    with Gui() as gui:
        gui.send("position startpos", TooLongLine("position startpos moves 7g7f"), "go nodes 5")
        lines = gui.until("bestmove")
    assert lines[-1] == "bestmove resign"
    assert any("ignored a line of more than 1048576 bytes" in line for line in lines)
    assert any("there is no legal position" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("name Threads value", "option Threads is ''"),
        ("name Threads", "option Threads is ''"),
        ("name No Such Thing value 3", "unknown option 'No Such Thing'"),
        ("name value value 3", "unknown option 'value'"),
        ("value 3", "expected name NAME value VALUE"),
    ],
)
def test_options_are_blamed_by_their_names(arguments: str, message: str) -> None:
    with Gui() as gui:
        gui.send(f"setoption {arguments}")
        assert message in gui.next()


def test_an_answer_without_a_search_tells_nothing_of_the_last_one() -> None:
    with Gui() as gui:
        gui.best_move("position startpos", "go nodes 300")
        gui.send("position sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1", "go nodes 300")
        info = gui.until("bestmove")[-2]
    assert "depth 1 seldepth 1 " in info
    assert " nodes 0 " in info
    assert " hashfull 0 " in info


# ---- garbage ----

_WORDS = (
    "usi isready setoption name value position startpos sfen moves go stop ponderhit gameover win "
    "lose draw usinewgame btime wtime byoyomi binc winc nodes depth infinite ponder mate movetime "
    "searchmoves 7g7f 3c3d 8h2b+ P*5e 0 1 -1 10 99999999999999999999999 Threads MultiPV USI_Hash "
    "Temperature Simulations true false lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL "
    "b w - 4k4/9/9/9/9/9/9/9/4K4 % \x00 \x1b[31m \ufeff \u8a70\u5c06\u68cb \U0001f600 quit\u00a0 "
    "Quit usi\x0bok ... //// info string bestmove resign"
)
_USUAL = (
    "position startpos moves 7g7f 3c3d 2g2f",
    "position sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1",
    "go nodes 3",
    "go infinite",
    "go ponder byoyomi 1",
    "go mate 5",
    "stop",
    "ponderhit",
    "isready",
    "usinewgame",
)


def fuzzed_lines(number: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    lines: list[str] = []
    while len(lines) < number:
        kind = rng.random()
        if kind < 0.3:
            line = rng.choice(_USUAL)
        elif kind < 0.8:
            line = " ".join(rng.choices(_WORDS.split(" "), k=rng.randrange(12)))
        elif kind < 0.9:
            line = bytes(rng.choices(range(256), k=rng.randrange(80))).decode("utf-8", "replace")
        else:
            broken = list(rng.choice(_USUAL))
            broken[rng.randrange(len(broken))] = chr(rng.randrange(1, 0x3000))
            line = "".join(broken)
        # The machine must not be used up, and 'quit' ends the test early.
        if not re.search(r"Threads|USI_Hash|BatchSize|\n|\r", line) and line.split() != ["quit"]:
            lines.append(line)
    return lines


@pytest.mark.parametrize("new_gui", [Gui, SparseGui], ids=["any network", "sparse"])
def test_ten_thousand_lines_of_garbage(new_gui: Callable[[], Gui]) -> None:
    lines = fuzzed_lines(10_000, seed=1)
    searches = sum(line.strip().partition(" ")[0] == "go" for line in lines)
    assert searches > 500
    gui = new_gui()
    for line in lines:
        gui.send(line)
        if line.strip().partition(" ")[0] == "go":
            gui.send("stop")  # a clock of 10 ** 12 ms would be respected
    gui.send("stop", "position startpos", "isready", "setoption name Simulations value -1")
    gui.send("setoption name MultiPV value 1", "go nodes 20")
    sent = gui.end()
    wrong = [line for line in sent if not ANSWERS.fullmatch(line)]
    assert wrong == []
    answers = [line for line in sent if line.split()[0] in ("bestmove", "checkmate")]
    assert len(answers) == searches + 1
    ShogiGame().push(answers[-1].split()[1])
    assert not [line for line in sent if "internal error" in line]
