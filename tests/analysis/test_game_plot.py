"""The plot of a game: curve, marks, labels and title."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from matplotlib.axes import Axes

from keisei.analysis import GameAnalysis, analyze_game
from keisei.analysis.game_plot import draw_game
from keisei.plotting import png, svg
from keisei.shogi.types import Color
from tests.analysis.games import short_game
from tests.predictors import KnownPredictor, by_place


@pytest.fixture(scope="module")
def game() -> GameAnalysis:
    return analyze_game(short_game(), KnownPredictor(by_place), name="material", simulations=64)


def axes_of(game: GameAnalysis, blunder: float) -> Axes:
    [axes] = draw_game(game, blunder=blunder).axes
    return axes


def test_the_line_is_black_s_chances(game: GameAnalysis) -> None:
    axes = axes_of(game, 0.2)
    line = next(line for line in axes.lines if len(line.get_xdata()) == len(game.positions))  # type: ignore[arg-type]
    assert list(line.get_xdata()) == list(range(7))  # type: ignore[arg-type]
    expected = [100 * position.chances(Color.BLACK) for position in game.positions]
    assert list(line.get_ydata()) == pytest.approx(expected)  # type: ignore[arg-type]
    assert axes.get_title(loc="left") == "Akane - Botan, analysed by material, 64 simulations"


def test_blunders_are_marked_and_named(game: GameAnalysis) -> None:
    axes = axes_of(game, 0.2)
    [marks] = [line for line in axes.lines if line.get_label() == "blunders of Black"]
    assert list(marks.get_xdata()) == [3]  # type: ignore[arg-type]
    assert [text.get_text() for text in axes.texts] == ["3. 8h3c+"]
    quiet = axes_of(game, 0.99)
    assert not quiet.texts
    assert not any(str(line.get_label()).startswith("blunders") for line in quiet.lines)


@pytest.mark.parametrize(
    ("names", "title"),
    [
        (("羽生善治", "Botan"), "Black - Botan"),
        (("", ""), "Black - White"),
        (("Ak$a$ne", "Çelik"), r"Ak\$a\$ne - Çelik"),
    ],
)
def test_names_that_the_font_lacks(game: GameAnalysis, names: tuple[str, str], title: str) -> None:
    headers = dict(zip(("black", "white"), names, strict=True))
    renamed = replace(game, record=replace(game.record, headers=headers))
    figure = draw_game(renamed, blunder=0.3)
    assert figure.axes[0].get_title(loc="left").startswith(f"{title}, analysed by")
    assert png(figure).startswith(b"\x89PNG")  # and no warning about glyphs


def test_files_are_the_same_each_time(game: GameAnalysis) -> None:
    one, other = (svg(draw_game(game, blunder=0.3)) for _ in range(2))
    assert one == other
    assert ElementTree.fromstring(one).tag.endswith("svg")
    assert png(draw_game(game, blunder=0.3)) == png(draw_game(game, blunder=0.3))
