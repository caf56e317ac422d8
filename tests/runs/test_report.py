"""The report: made from files alone, at every stage of a run."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from keisei.callbacks import Callback, EventBus
from keisei.errors import KeiseiError
from keisei.runs import run_plots as plots
from keisei.runs.curves import smooth
from keisei.runs.history import History
from keisei.runs.journal import JournalEntry
from keisei.runs.report import write_report
from keisei.shogi.notation.files import save_game
from keisei.shogi.notation.record import GameRecord
from keisei.training.trackers import JsonlTracker
from keisei.training.writers import ReportWriter, SampleGamesWriter
from tests.runs.journals import entry, new_run
from tests.training.fake_run import fake_events

PNG = b"\x89PNG\r\n\x1a\n"


class Page(HTMLParser):
    """What a browser would find in a page: tags that are open, addresses, text."""

    VOID = frozenset({"meta", "img", "br", "link"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def play_through(
    directory: Path,
    callbacks: list[Callback],
    *,
    first: int = 0,
    last: int = 30,
    evaluation_interval: int = 5,
) -> None:
    bus = EventBus(callbacks)
    for event in fake_events(
        directory, updates=30, first=first, last=last, evaluation_interval=evaluation_interval
    ):
        bus.emit(event)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that went well."""
    directory = tmp_path_factory.mktemp("my <run>")
    play_through(
        directory,
        [JsonlTracker(directory), SampleGamesWriter(directory, 2), ReportWriter(directory)],
    )
    return directory


def page_of(directory: Path) -> Page:
    return Page((directory / "report.html").read_text("utf-8"))


def test_the_report_shows_the_run(finished: Path) -> None:
    page = page_of(finished)
    for part in (
        "my <run>",
        "Ended: finished.",
        "against greedy",
        "won - drawn - lost",
        "492 k",
        "214 k",
        "Final strength",
        "How games end",
        "Speed",
        "learning_rate_schedule",
        "core46",
        "fp32",
        "mate: ",
        "greedy vs network",
    ):
        assert part in page.text
    assert page.tags.count("img") == len(plots.PLOTS) + 1  # and the calibration
    assert "svg" in page.tags


def test_the_report_needs_nothing_from_elsewhere(finished: Path) -> None:
    page = page_of(finished)
    assert "script" not in page.tags
    assert "link" not in page.tags
    inline = [address for address in page.addresses if address.startswith("data:")]
    assert len(inline) == len(plots.PLOTS) + 1
    for address in set(page.addresses) - set(inline):
        assert (finished / address).is_file()  # the games
    html = (finished / "report.html").read_text("utf-8")
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html)


def test_plots_are_also_files(finished: Path) -> None:
    assert sorted(path.name for path in (finished / "plots").iterdir()) == sorted(
        f"{name}.png" for name in ("calibration", *(plot.name for plot in plots.PLOTS))
    )
    for path in (finished / "plots").iterdir():
        assert path.read_bytes().startswith(PNG)


def test_a_run_without_evaluation_has_a_report(tmp_path: Path) -> None:
    play_through(tmp_path, [JsonlTracker(tmp_path)], last=1, evaluation_interval=0)
    page = Page(write_report(tmp_path).read_text("utf-8"))
    assert "There has been no evaluation yet." in page.text
    assert page.tags.count("img") == len(plots.PLOTS) - 2
    assert "svg" not in page.tags


def test_a_run_that_has_not_begun_has_a_report(tmp_path: Path) -> None:
    start = next(iter(fake_events(tmp_path)))
    EventBus([JsonlTracker(tmp_path)]).emit(start)
    page = Page(write_report(tmp_path).read_text("utf-8"))
    assert "No training step has finished yet." in page.text
    assert "has not ended, or was killed" in page.text
    assert not (tmp_path / "plots").exists()
    (tmp_path / "metrics.jsonl").write_bytes(b"")
    assert "No training step" in Page(write_report(tmp_path).read_text("utf-8")).text


def test_a_torn_journal_and_a_broken_game_are_skipped(
    tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "PLOTS", ())
    directory = tmp_path / "copy"
    shutil.copytree(finished, directory)
    with (directory / "metrics.jsonl").open("ab") as file:
        file.write(b'{"event":"start","upda')
    (directory / "games" / "update-000030-greedy-vs-network.kif").write_bytes(b"no game")
    page = Page(write_report(directory).read_text("utf-8"))
    assert "Lines that could not be read: 1." in page.text
    assert "svg" in page.tags  # another game is shown


def test_a_game_without_end_can_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "PLOTS", ())
    play_through(tmp_path, [JsonlTracker(tmp_path)], last=1)
    (tmp_path / "games").mkdir()
    record = GameRecord.from_moves(["7g7f", "3c3d"])
    save_game(record, tmp_path / "games" / "update-000001-mine.kif")
    text = Page(write_report(tmp_path).read_text("utf-8")).text
    assert "update-000001-mine; unfinished after 2 moves" in text


def test_a_resumed_run_counts_its_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "PLOTS", ())
    tracker = JsonlTracker(tmp_path)
    play_through(tmp_path, [tracker], last=2)
    play_through(tmp_path, [tracker], first=2, last=4)
    assert "Sessions: 2." in Page(write_report(tmp_path).read_text("utf-8")).text


@pytest.mark.parametrize("config", [None, b"{", b"[]"])
def test_a_directory_that_is_not_a_run_is_refused(tmp_path: Path, config: bytes | None) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b"")
    if config is not None:
        (tmp_path / "config.json").write_bytes(config)
    with pytest.raises(KeiseiError, match=r"config\.json"):
        write_report(tmp_path)


def history_of(*metrics: dict[str, float]) -> History:
    return History(
        tuple(
            JournalEntry("step", update, 100 * update, 1_000, 0, 1.0, 0.0, metrics=values)
            for update, values in enumerate(metrics, 1)
        )
    )


def test_plots_leave_out_values_that_are_not_finite() -> None:
    nan = float("nan")
    outcomes = {"games/black_wins": 0.5, "games/white_wins": 0.25, "games/draws": 0.25}
    nothing = dict.fromkeys([*outcomes, "charts/SPS", "losses/policy", "games/mean_plies"], nan)
    history = history_of(nothing, {**outcomes, "games/ply_limit_rate": 0.1}, nothing)
    figure = plots.draw_outcomes(history)
    assert figure is not None
    areas = [area.get_paths()[0].get_extents().height for area in figure.axes[0].collections]
    assert areas == pytest.approx([0.5, 0.15, 0.1, 0.25])
    for draw in (plots.draw_learning, plots.draw_lengths, plots.draw_speed, plots.draw_strength):
        assert draw(history) is None


ABOVE = {
    "eval/elo": 4400.0, "eval/elo_low": 4100.0, "eval/elo_high": 4700.0, "eval/elo_position": 1.0,
}  # fmt: skip


def test_a_rating_beyond_the_scale_is_a_bound(tmp_path: Path) -> None:
    run = new_run(tmp_path, "mine", entry("evaluation", 1, metrics=ABOVE).to_line())
    write_report(run)
    text = page_of(run).text
    assert "above the scale: 4100 or more" in text
    assert "4400" not in text


def test_triangles_are_bounds() -> None:
    known = {"eval/elo": 900.0, "eval/elo_low": 800.0, "eval/elo_high": 990.0}
    history = History(
        tuple(entry("evaluation", at, metrics=m) for at, m in enumerate((known, ABOVE), 1))
    )
    figure = plots.draw_elo(history)
    assert figure is not None
    curve, triangles = figure.axes[0].lines
    assert np.array(curve.get_xydata()).tolist() == [[100.0, 900.0], [200.0, 4400.0]]
    assert np.array(triangles.get_xydata()).tolist() == [[200.0, 4100.0]]


def test_noisy_curves_are_smoothed_without_lag() -> None:
    line = [float(number) for number in range(300)]
    smoothed = smooth(np.array(line))
    assert smoothed[50:250] == pytest.approx(line[50:250])


def test_the_same_run_gives_the_same_picture() -> None:
    history = history_of(*({"games/mean_plies": 100.0 + number} for number in range(30)))
    first, second = (plots.draw_lengths(history) for _ in range(2))
    assert first is not None
    assert second is not None
    assert plots.png(first) == plots.png(second)
