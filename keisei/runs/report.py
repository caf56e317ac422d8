"""``report.html``: a run on one page, written from the run's files alone.

It can therefore be written again at any time, by ``write_report``.
"""

import base64
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from keisei import __version__, run_files
from keisei import metric_names as names
from keisei.errors import KeiseiError
from keisei.evaluation.calibration import Calibration
from keisei.evaluation.measure import manner_of_play
from keisei.formats import (
    NOTHING,
    count,
    duration,
    percent,
    short_count,
)
from keisei.runs.history import History
from keisei.runs.journal import elo_estimate, score_estimates
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.files import load_game
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.render.svg import board_svg
from keisei.system import FileAccessError, read_bytes, write_atomically

logger = logging.getLogger(__name__)

BOARD_SIZE: Final = 420
"""Height of the sample game's board in pixels."""

MAX_GAMES: Final = 60
"""Maximum number of games that the report links to, newest first."""


@dataclass(frozen=True)
class Picture:
    """A plot as a PNG file."""

    name: str
    title: str
    caption: str
    png: bytes


@dataclass(frozen=True)
class SampleGame:
    """A sample game that the report shows."""

    file: str
    """Path relative to the report."""

    title: str
    ending: str
    """Result, such as ``mate: Black won after 87 moves``."""

    moves: str
    """All moves in USI notation."""

    svg: str
    """Final position as SVG."""


@dataclass(frozen=True)
class Report:
    """Content of the page."""

    name: str
    config: Mapping[str, Any]
    history: History
    pictures: tuple[Picture, ...]
    sample: SampleGame | None
    games: tuple[str, ...]
    """Paths of the games relative to the report."""


_STYLE = """
:root { color-scheme: light; --ink: #2b2a27; --soft: #6d6a62; --line: #e3ddcf; --paper: #fbf9f4;
  --accent: #b3392b; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
header { border-bottom: 3px solid var(--accent); padding-bottom: 1rem; }
h1 { margin: 0; font-size: 2rem; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { margin: 2.75rem 0 0.5rem; font-size: 1.3rem; }
p, figcaption { color: var(--soft); margin: 0.35rem 0; max-width: 46rem; }
a { color: var(--accent); }
.kicker { color: var(--accent); font-weight: 600; letter-spacing: 0.08em; font-size: 0.8rem;
  text-transform: uppercase; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.2rem, 1fr)); gap: 0.7rem;
  margin: 1.5rem 0 0; }
.card { background: #fff; border: 1px solid var(--line); border-radius: 0.6rem;
  padding: 0.7rem 0.8rem; }
.card dt { color: var(--soft); font-size: 0.85rem; }
.card dd { margin: 0.1rem 0 0; font-size: 1.4rem; font-weight: 650; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.card small { display: block; white-space: normal; font-size: 0.8rem; font-weight: 400;
  color: var(--soft); }
.card.strong { border-color: var(--accent); }
figure { margin: 0.75rem 0 0; background: #fff; border: 1px solid var(--line);
  border-radius: 0.6rem; padding: 1rem; overflow-x: auto; }
figure img, figure svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
table { border-collapse: collapse; width: 100%; background: #fff; font-size: 0.92rem;
  font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.4rem 0.75rem; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; }
thead th { color: var(--soft); font-weight: 600; }
td.number, th.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
.settings { columns: 19rem auto; column-gap: 1rem; margin-top: 0.75rem; }
.settings table { border: 1px solid var(--line); break-inside: avoid; margin-bottom: 0.75rem; }
.settings th { font-weight: 400; color: var(--soft); width: 1%; white-space: nowrap; }
caption { text-align: left; font-weight: 650; padding: 0.5rem 0; }
code { font: 0.85em/1.6 ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace;
  overflow-wrap: anywhere; }
details { margin-top: 0.75rem; }
summary { cursor: pointer; color: var(--accent); }
ul.games { columns: 19rem auto; column-gap: 1rem; padding-left: 1.1rem; }
ul.games li { break-inside: avoid; }
footer { margin-top: 3rem; color: var(--soft); font-size: 0.85rem; }
"""


def page(report: Report) -> str:
    """Return the report as HTML."""
    history = report.history
    parts = [
        _header(report),
        _cards(history),
        *_strength_table(history, report.config),
        *(_figure(picture) for picture in report.pictures),
        _nothing_yet(history),
        _game(report.sample) if report.sample else "",
        _game_list(report.games) if report.games else "",
        _settings(report.config),
        _facts(history.facts) if history.facts else "",
        f"<footer>Written by Keisei {escape(__version__)} from config.json and metrics.jsonl."
        f"{_broken_lines(history)}</footer>",
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.name)} - Keisei</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _header(report: Report) -> str:
    history = report.history
    if history.end is not None:
        state = f"Ended: {history.end.reason}."
    else:
        state = "This run has not ended, or was killed: the report shows its last known state."
    sessions = len(history.starts)
    resumed = f" Sessions: {sessions}." if sessions > 1 else ""
    return (
        '<header><div class="kicker">Keisei training report</div>'
        f"<h1>{escape(report.name)}</h1><p>{escape(state + resumed)}</p></header>"
    )


def _cards(history: History) -> str:
    """Return the cards with the most important figures."""
    cards = []
    if history.evaluations:
        if (rating := elo_estimate(history.evaluations[-1].metrics)) is not None:
            number = NOTHING if rating.bound else f"{rating.elo:.0f}"
            interval = rating.bound or f"{rating.low:.0f} to {rating.high:.0f}"
            cards.append(_card("Elo", number, interval, strong=True))
        for opponent, result in score_estimates(history.evaluations[-1].metrics).items():
            interval = f"{percent(result.low)} to {percent(result.high)}"
            cards.append(
                _card(f"against {opponent}", percent(result.score, 1), interval, strong=True)
            )
    if history.entries:
        last = history.furthest
        _, speeds = history.series(names.SPS)
        mean = sum(speeds) / len(speeds) if speeds else None
        cards += [
            _card("plies", short_count(last.timestep), f"of {short_count(last.total_timesteps)}"),
            _card("games", count(last.games), "of self-play"),
            _card("time", duration(last.seconds), f"{count(last.update)} updates"),
            _card("plies/s", NOTHING if mean is None else count(mean), "on average"),
        ]
    if parameters := history.facts.get("parameters"):
        cards.append(_card("parameters", short_count(float(parameters)), "of the network"))
    return f'<dl class="cards">{"".join(cards)}</dl>'


def _card(label: str, value: str, note: str, *, strong: bool = False) -> str:
    kind = "card strong" if strong else "card"
    return (
        f'<div class="{kind}"><dt>{escape(label)}</dt>'
        f"<dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
    )


def _strength_table(history: History, config: Mapping[str, Any]) -> Iterable[str]:
    """Yield the table of the last evaluation, with how the network played in it."""
    if not history.evaluations:
        return
    settings = config.get("evaluation", {})
    manner = ""
    if {"temperature", "mate_plies"} <= settings.keys():
        manner = f" It played {manner_of_play(settings['temperature'], settings['mate_plies'])}."
    last = history.evaluations[-1]
    rows = []
    for opponent, result in score_estimates(last.metrics).items():
        record = [
            last.metrics.get(names.evaluation_metric(opponent, figure), 0.0)
            for figure in ("wins", "draws", "losses")
        ]
        cells = [
            f"{percent(result.score, 1)}",
            f"{percent(result.low, 1)} to {percent(result.high, 1)}",
            " - ".join(count(number) for number in record),
            percent(result.as_black, 1),
            percent(result.as_white, 1),
        ]
        numbers = "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
        rows.append(f'<tr><th scope="row">{escape(opponent)}</th>{numbers}</tr>')
    headings = ("score", "95 % interval", "won - drawn - lost", "as Black", "as White")
    head = "".join(f'<th scope="col" class="number">{heading}</th>' for heading in headings)
    yield (
        f"<h2>Final strength</h2><p>The last evaluation, after update {count(last.update)}."
        f"{escape(manner)}</p>"
        f'<figure><table><thead><tr><th scope="col">opponent</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></figure>"
    )


def _figure(picture: Picture) -> str:
    data = base64.b64encode(picture.png).decode()
    return (
        f"<h2>{escape(picture.title)}</h2><p>{escape(picture.caption)}</p>"
        f'<figure><img alt="{escape(picture.title)}: {escape(picture.caption)}" '
        f'src="data:image/png;base64,{data}"></figure>'
    )


def _nothing_yet(history: History) -> str:
    missing = []
    if not history.steps:
        missing.append("No training step has finished yet.")
    if not history.evaluations:
        missing.append("There has been no evaluation yet.")
    return f"<p>{' '.join(missing)}</p>" if missing else ""


def _game(sample: SampleGame) -> str:
    return (
        f"<h2>A game</h2><p>{escape(sample.title)}; {escape(sample.ending)}. "
        f'<a href="{escape(sample.file)}">KIF</a></p><figure>{sample.svg}</figure>'
        f"<details><summary>All moves</summary><p><code>{escape(sample.moves)}</code></p></details>"
    )


def _game_list(games: tuple[str, ...]) -> str:
    """Return links to the games of each evaluation, in both formats."""
    items = []
    # File names are update-000123-title.
    for update, files in groupby(map(PurePosixPath, games), key=lambda file: file.stem[7:13]):
        links = "; ".join(_game_links(file, file.stem[14:]) for file in files)
        items.append(f"<li>update {escape(update.lstrip('0'))}: {links}</li>")
    return (
        "<h2>Sample games</h2><p><code>keisei convert</code> converts them to other formats.</p>"
        f'<ul class="games">{"".join(items)}</ul>'
    )


def _game_links(file: PurePosixPath, title: str) -> str:
    links = " ".join(
        f'<a href="{escape(str(file.with_suffix(suffix)))}">{suffix[1:].upper()}</a>'
        for suffix in (".kif", ".csa")
    )
    return f"{escape(title.replace('-', ' '))} ({links})"


def _settings(config: Mapping[str, Any]) -> str:
    """Return all settings, one table per section."""
    tables = []
    for section, settings in config.items():
        values = settings if isinstance(settings, Mapping) else {section: settings}
        tables.append(_pair_table(section, values))
    return f'<h2>Settings</h2><div class="settings">{"".join(tables)}</div>'


def _facts(facts: Mapping[str, Any]) -> str:
    return f'<h2>Facts</h2><div class="settings">{_pair_table("of the last session", facts)}</div>'


def _pair_table(caption: str, values: Mapping[str, Any]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(str(name))}</th><td>{escape(_value(value))}</td></tr>'
        for name, value in values.items()
    )
    return f"<table><caption>{escape(caption)}</caption><tbody>{rows}</tbody></table>"


def _value(value: Any) -> str:
    if value is None or value == "":
        return NOTHING
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value) or NOTHING
    return str(value)


def _broken_lines(history: History) -> str:
    if not history.broken_lines:
        return ""
    return f" Lines that could not be read: {count(history.broken_lines)}."


def write_report(run_directory: Path) -> Path:
    """Write ``report.html`` and ``plots/*.png`` of a run from its other files; return the path.

    Raises `KeiseiError` if the settings or the journal cannot be read, or if files of the run lead
    out of it.
    """
    run_directory = run_directory.resolve()
    run_files.require_own_files(run_directory)
    config = run_files.read_config(run_directory)
    history = History.read(run_directory)
    games = _game_files(run_directory)
    report = Report(
        name=run_directory.name,
        config=config,
        history=history,
        pictures=_draw(history, run_directory),
        sample=_sample(run_directory, games),
        games=games[:MAX_GAMES],
    )
    path = run_directory / run_files.REPORT
    write_atomically(path, page(report).encode())
    return path


def _draw(history: History, run_directory: Path) -> tuple[Picture, ...]:
    from keisei.runs.run_plots import PLOTS, draw_calibration, png

    pictures = []
    for plot in PLOTS:
        if (figure := plot.draw(history)) is not None:
            pictures.append(Picture(plot.name, plot.title, plot.caption, png(figure)))
    if (calibration := _calibration(run_directory)) is not None:
        pictures.append(
            Picture(
                "calibration",
                "Are its values right?",
                "New games of the network against itself: positions by the score that it expected, "
                "and what they scored. On the dashed line both are equal.",
                png(draw_calibration(calibration)),
            )
        )
    directory = run_directory / run_files.PLOTS
    for picture in pictures:
        directory.mkdir(exist_ok=True)
        write_atomically(directory / f"{picture.name}.png", picture.png)
    return tuple(pictures)


def _calibration(run_directory: Path) -> Calibration | None:
    """Read ``calibration.json``; None if there is none, or none that can be read."""
    path = run_directory / run_files.CALIBRATION
    try:
        return TypeAdapter(Calibration).validate_json(read_bytes(path))
    except FileAccessError:
        return None
    except ValidationError:
        logger.warning("%s is left out of the report: it is damaged", path)
        return None


def _game_files(run_directory: Path) -> tuple[str, ...]:
    """Return the KIF files of the sample games, newest evaluation first."""
    names = sorted(path.name for path in (run_directory / run_files.GAMES).glob("update-*.kif"))
    newest_first = sorted(names, key=_update_of, reverse=True)  # stable
    return tuple(f"{run_files.GAMES}/{name}" for name in newest_first)


def _update_of(name: str) -> str:
    """Return the ``update-000123`` of the name of a game's file."""
    return name[: len("update-000000")]


def _sample(run_directory: Path, games: tuple[str, ...]) -> SampleGame | None:
    """Return the newest sample game that can be read."""
    for file in games:
        try:
            record = load_game(run_directory / file)
            game = ShogiGame(record.start)
            for move in record.main_line:
                game.push(move)
        except KeiseiError as error:
            logger.warning("%s is left out of the report: %s", file, error)
            continue
        return SampleGame(
            file=file,
            title=record.event or Path(file).stem,
            ending=_ending(record),
            moves=" ".join(move.usi for move in record.main_line),
            svg=board_svg(
                game.diagram,
                last_move=game.last_move,
                size=BOARD_SIZE,
                labels="western",
                check_square=game.checked_king,
            ),
        )
    return None


def _ending(record: GameRecord) -> str:
    moves = f"{len(record.moves)} moves"
    if record.result is None:
        return f"unfinished after {moves}"
    winner = record.winner
    result = "a draw" if winner is None else f"{winner.name.title()} won"
    return f"{record.result.ending.value}: {result} after {moves}"
