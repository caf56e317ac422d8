"""Analysis in a thread: positions are searched until they are stopped, games are reviewed."""

import time
from collections.abc import Callable, Iterator
from threading import Event

import pytest

from keisei.analysis import AnalysisSession, GameAnalysis, SearchInfo, SearchStatus
from keisei.errors import KeiseiError
from keisei.network.loading import LoadedNetwork
from keisei.network.predictor import Prediction, Predictor
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import Positions
from keisei.shogi.types import Color
from tests.analysis.games import short_game
from tests.predictors import KnownPredictor

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
MATED = "4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1"


def network(predictor: Predictor | None = None) -> LoadedNetwork:
    return LoadedNetwork(predictor or KnownPredictor(), "known", "known", 0.0, 3, 512)


@pytest.fixture
def session() -> Iterator[AnalysisSession]:
    session = AnalysisSession(network(), megabytes=256)
    yield session
    session.close()


def wait(session: AnalysisSession, until: Callable[[SearchInfo], bool]) -> SearchInfo:
    end = time.monotonic() + 120  # kernels may have to be compiled, on a busy machine
    while time.monotonic() < end:
        info = session.info
        if info is not None and until(info):
            return info
        assert session.problem == ""
        time.sleep(0.005)
    raise AssertionError(f"nothing happened: {session.info}")


def has_ended(info: SearchInfo) -> bool:
    return info.status is not SearchStatus.RUNNING


def test_a_search_deepens_until_it_is_stopped(session: AnalysisSession) -> None:
    game = ShogiGame("startpos moves 7g7f 3c3d 8h3c+")
    session.analyse(game)
    first = wait(session, lambda info: bool(info.lines))
    later = wait(session, lambda info: info.simulations > first.simulations)
    assert later.seconds > first.seconds
    session.stop()
    stopped = wait(session, has_ended)
    assert stopped.status is SearchStatus.STOPPED
    best = stopped.lines[0]
    assert best.moves[0].usi in ("2a3c", "2b3c"), "the bishop is taken"
    black, white = stopped.chances(Color.BLACK), stopped.chances(Color.WHITE)
    assert black is not None
    assert white is not None
    assert black < 0.5 < white
    assert black + white == pytest.approx(1)
    for line in stopped.lines:
        replay = game.copy()
        for move in line.moves:
            replay.push(move)
    last = None
    while last is not session.info:  # it may end with the report of the batch in progress
        last = session.info
        time.sleep(0.1)


def test_every_line_is_searched(session: AnalysisSession) -> None:
    game = ShogiGame("startpos moves 7g7f 3c3d 8h3c+")
    session.lines = 3
    session.analyse(game)
    info = wait(
        session,
        lambda info: len(info.lines) > 2 and all(line.visits >= 100 for line in info.lines[:3]),
    )
    session.stop()
    shown = info.lines[:3]
    assert {line.moves[0].usi for line in shown[:2]} == {"2a3c", "2b3c"}, "both take the bishop"
    assert len({line.moves[0] for line in info.lines}) == len(info.lines)
    assert shown[2].value < shown[1].value
    for line in shown:
        replay = game.copy()
        for move in line.moves:
            replay.push(move)


def test_there_are_no_more_lines_than_moves(session: AnalysisSession) -> None:
    game = ShogiGame("k8/9/9/9/9/9/9/9/8K b - 1")
    session.lines = 10
    session.analyse(game)
    info = wait(session, lambda info: bool(info.lines))
    assert len(info.lines) == len(game.legal_moves) < 10


def test_a_search_that_is_started_again_keeps_its_tree(session: AnalysisSession) -> None:
    session.analyse(ShogiGame())
    known = wait(session, lambda info: info.simulations > 300).simulations
    session.stop()
    wait(session, has_ended)
    session.analyse(ShogiGame())
    assert wait(session, lambda info: bool(info.lines)).simulations >= known


def test_another_position_takes_the_place_of_the_first(session: AnalysisSession) -> None:
    session.analyse(ShogiGame())
    wait(session, lambda info: bool(info.lines))
    game = ShogiGame("startpos moves 7g7f")
    session.analyse(game)
    info = wait(session, lambda info: bool(info.lines))
    assert info.turn is Color.WHITE
    assert all(game.is_legal(line.moves[0]) for line in info.lines)


def test_mates_ends_and_a_full_memory_end_the_search() -> None:
    session = AnalysisSession(network(), megabytes=1)
    session.analyse(ShogiGame(MATE_IN_ONE))
    info = wait(session, has_ended)
    assert info.status is SearchStatus.PROVEN
    assert (info.lines[0].mate, info.chances(Color.BLACK)) == (1, 1.0)
    session.analyse(ShogiGame(MATED))
    info = wait(session, has_ended)
    assert (info.status, info.lines) == (SearchStatus.OVER, ())
    assert info.chances(Color.BLACK) is None
    session.analyse(ShogiGame())
    assert wait(session, has_ended).status is SearchStatus.FULL
    session.close()


def test_positions_without_both_kings_are_refused(session: AnalysisSession) -> None:
    with pytest.raises(KeiseiError, match="Black's king is missing"):
        session.analyse(ShogiGame("4k4/9/4P4/9/9/9/9/9/9 b G 1"))


def test_a_game_is_reviewed_in_between(session: AnalysisSession) -> None:
    session.analyse(ShogiGame())
    wait(session, lambda info: bool(info.lines))
    answers: list[GameAnalysis | KeiseiError] = []
    for simulations in (0, 16):
        session.review(short_game(), simulations, answers.append)
    end = time.monotonic() + 120  # kernels may have to be compiled, on a busy machine
    while len(answers) < 2 and time.monotonic() < end:
        time.sleep(0.005)
    quick, searched = answers
    assert isinstance(quick, GameAnalysis)
    assert isinstance(searched, GameAnalysis)
    assert (quick.simulations, searched.simulations, searched.network) == (0, 16, "known")
    assert len(searched.positions) == 7
    known = session.info
    assert known is not None
    wait(session, lambda info: info.simulations > known.simulations)  # the search goes on


def test_errors_are_told(session: AnalysisSession) -> None:
    answers: list[GameAnalysis | KeiseiError] = []
    empty = short_game()
    empty.moves.clear()
    session.review(empty, 0, answers.append)
    end = time.monotonic() + 120  # kernels may have to be compiled, on a busy machine
    while not answers and time.monotonic() < end:
        time.sleep(0.005)
    assert isinstance(answers[0], KeiseiError)

    class Broken(KnownPredictor):
        def predict(self, positions: Positions) -> Prediction:
            raise RuntimeError("the cable is loose")

    broken = AnalysisSession(network(Broken()), megabytes=1)
    broken.analyse(ShogiGame())
    while not broken.problem and time.monotonic() < end:
        time.sleep(0.005)
    assert "the cable is loose" in broken.problem
    broken.review(short_game(), 0, answers.append)
    while len(answers) < 2 and time.monotonic() < end:
        time.sleep(0.005)
    assert "the cable is loose" in str(answers[1])
    broken.close()


def test_reviews_can_be_stopped() -> None:
    searching = Event()

    class Slow(KnownPredictor):
        def predict(self, positions: Positions) -> Prediction:
            if len(self.batches) > 8:
                searching.set()
            time.sleep(0.001)
            return super().predict(positions)

    session = AnalysisSession(network(Slow()), megabytes=1)
    answers: list[GameAnalysis | KeiseiError] = []
    for _ in range(2):
        session.review(short_game(), 30_000, answers.append)
    assert searching.wait(120)
    session.stop_reviews()
    session.review(short_game(), 0, answers.append)
    end = time.monotonic() + 20
    while not answers and time.monotonic() < end:
        time.sleep(0.005)
    (answer,) = answers
    assert isinstance(answer, GameAnalysis)
    assert answer.simulations == 0, "the others are not answered"
    searching.clear()
    session.review(short_game(), 30_000, answers.append)
    assert searching.wait(120)
    session.close()
    assert not session._thread.is_alive(), "it does not wait for the review"
    assert len(answers) == 1


def test_a_closed_session_has_no_thread() -> None:
    session = AnalysisSession(network(), megabytes=1)
    session.analyse(ShogiGame())
    session.close()
    assert not session._thread.is_alive()
