"""Take the pictures of ``docs/pages.md``: each page at five sizes of window, in both languages.

    python scripts/screenshots.py [--to DIR] [--width PIXELS] [--only play ...]
    python scripts/screenshots.py --manual

It starts a board and a dashboard with runs that never were, opens their pages in Chromium as the
browser tests do, and writes ``PAGE-WIDTHxHEIGHT-LANGUAGE.webp``. Look at them: on every one, the
board and both hands fit the window, nothing overlaps or is cut, and the Japanese ones have no
English. ``--width 0`` keeps the size of the windows, to look closely. It takes fonts with kanji,
such as those of Debian's ``fonts-noto-cjk``. ``--manual`` takes those of the manual's other pages
that need no game: of the dashboard and of a mate problem.
"""

import argparse
import io
import math
import random
import sys
import tempfile
from argparse import RawDescriptionHelpFormatter as RawDescription
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for the runs and servers of the tests

from keisei.callbacks import EvaluationEnd, EventBus, PhaseProgress, TrainingEnd  # noqa: E402
from keisei.evaluation.match import write_games  # noqa: E402
from keisei.evaluation.placing import Placement  # noqa: E402
from keisei.run_files import GAMES, HEARTBEAT, METRICS  # noqa: E402
from keisei.runs.heartbeat import RunHeartbeat  # noqa: E402
from keisei.system import write_atomically  # noqa: E402
from keisei.training.trackers import JsonlTracker  # noqa: E402
from tests.runs.journals import new_run  # noqa: E402
from tests.training.fake_run import fake_events, random_record  # noqa: E402
from tests.web.conftest import Server, chromium  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RUNS: Final = "runs"
PICTURES: Final = ROOT / "docs" / "images" / "pages"
MANUAL_PICTURES: Final = PICTURES.parent
SIZES: Final = ((390, 844), (844, 390), (820, 1180), (1280, 800), (1920, 1080))
FINGERS: Final = 900
"""Windows below this width belong to devices that are touched."""

LANGUAGES: Final = {"en": "en-US", "ja": "ja-JP"}
WIDTH: Final = 480
QUALITY: Final = 60
SETTLING: Final = 700
"""Milliseconds until nothing moves any more."""

TIMEOUT: Final = 120_000
"""Milliseconds that a page has: the machine may be busy."""

HAS_KANJI: Final = """() => {
    const drawn = kanji => {
        const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
        pen.font = "20px serif";
        pen.fillText(kanji, 0, 20);
        return canvas.toDataURL();
    };
    return drawn("歩") !== drawn("飛");
}"""
"""Whether the fonts of the machine have kanji: without them all look the same, an empty box."""

OPENING: Final = (
    "startpos moves 7g7f 3c3d 2g2f 8c8d 2f2e 8d8e 6i7h 4a3b 2e2d 2c2d 2h2d 8e8f 8g8f 8b8f "
    "2d3d 2b3c 3d3f 3a2b P*8g 8f8e 5i5h 5a4a 3i3h 6a5b"
)
"""A side pawn opening: both sides have pawns in hand, and Black is to move."""


@dataclass(frozen=True)
class Shot:
    """A page to photograph."""

    command: str
    """The command that serves it."""

    path: str
    """Its address on the server."""

    prepare: "Callable[[Page], None]"
    """Waits until the page is as it is to be shown."""


def is_drawn(page: "Page") -> None:
    """Wait for the pieces."""
    page.wait_for_selector(".kb-piece")


def is_playing(page: "Page") -> None:
    """Let the person make a move, and wait for the answer."""
    is_drawn(page)
    page.wait_for_selector('.kb-own[data-square="9g"]')
    page.locator('[data-cell="9g"]').press("Enter")
    page.locator('[data-cell="9f"]').press("Enter")
    page.wait_for_selector('.km-move[data-ply="26"]')
    page.evaluate("document.activeElement.blur()")


def is_analysed(page: "Page") -> None:
    """Wait for the review and for lines of the search, and end it."""
    is_drawn(page)
    page.wait_for_selector(".ke-line")
    page.keyboard.press("End")
    page.locator('[data-tool="run"]').click()
    page.wait_for_selector(".kl-line:nth-child(3)")
    page.wait_for_timeout(3000)
    page.locator('[data-tool="run"]').click()
    page.evaluate("document.activeElement.blur()")


def is_plotted(page: "Page") -> None:
    """Wait for a chart and the rows of a table."""
    page.wait_for_selector(".d-chart svg path", state="attached")
    page.wait_for_selector(".d-table tbody tr", state="attached")


SHOTS: Final = {
    "play": Shot("play", f"?start={quote(OPENING)}", is_playing),
    "analysis": Shot("play", f"analysis?sfen={quote(OPENING)}", is_analysed),
    "tsume": Shot("play", "tsume?problem=3", is_drawn),
    "dashboard": Shot("dashboard", "?runs=first/second", is_plotted),
    "run": Shot("dashboard", "run/second", is_plotted),
}


MANUAL: Final = {
    "tsume": ("tsume", (1000, 680), "en"),
    "dashboard-runs": ("dashboard", (1200, 960), "en"),
    "dashboard-run": ("run", (1200, 1560), "en"),
    "dashboard-japanese": ("run", (390, 844), "ja"),
}
"""Pictures of other pages of the manual: name, page, size, language."""


def rated(event: EvaluationEnd, strength: float) -> EvaluationEnd:
    """Return an evaluation whose rating rises as a real one does, with some noise."""
    update = event.progress.update
    noise = random.Random(f"{update} {strength}").gauss(0.0, 25.0)
    elo = strength * (1.0 - math.exp(-update / 18.0)) + noise
    return replace(event, placement=Placement(elo, elo - 60.0, elo + 60.0, games=200))


def write_run(root: Path, name: str, *, last: int, updates: int, strength: float) -> Path:
    """Write a run that has come to the update `last` of `updates`."""
    run = new_run(root, name)
    (run / METRICS).unlink()
    bus = EventBus([JsonlTracker(run)])
    for event in fake_events(run, updates=updates, last=last):
        if isinstance(event, EvaluationEnd):
            bus.emit(rated(event, strength))
        elif last == updates or not isinstance(event, TrainingEnd):
            bus.emit(event)
    write_games([random_record("greedy", "network", 2)], run / GAMES,
                prefix=f"update-{last:06}", event=name)  # fmt: skip
    return run


@contextmanager
def servers(folder: Path) -> Iterator[dict[str, Server]]:
    """Start a board, and a dashboard with a run that has finished and one that trains."""
    write_run(folder / RUNS, "first", last=60, updates=60, strength=1700.0)
    write_run(folder / RUNS, "second", last=40, updates=90, strength=2300.0)
    with chdir(folder):  # the pages show the folder's name
        started = {
            "play": Server("play", "--runs", RUNS, "--seed", "1", games=folder / "games"),
            "dashboard": Server("dashboard", RUNS),
        }
    yield started
    for server in started.values():
        server.interrupt()


def show_sign_of_life(folder: Path) -> None:
    """Write that the second run is training, now."""
    heartbeat = RunHeartbeat.now(PhaseProgress("playing", 2, 5), is_stopping=False)
    write_atomically(folder / RUNS / "second" / HEARTBEAT, heartbeat.to_json())


def require_kanji(browser: "Browser") -> None:
    """End if the pieces would be empty boxes."""
    page = browser.new_page()
    if not page.evaluate(HAS_KANJI):
        raise SystemExit("error: no font has kanji; install one, such as fonts-noto-cjk")
    page.close()


def take(browser: "Browser", address: str, shot: Shot, size: tuple[int, int], locale: str) -> bytes:
    """Return a picture of a page's window, as PNG."""
    width, height = size
    is_touched = width < FINGERS
    context = browser.new_context(
        viewport={"width": width, "height": height},
        locale=locale,
        has_touch=is_touched,
        is_mobile=is_touched,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(TIMEOUT)
    page.goto(address + shot.path)
    shot.prepare(page)
    page.evaluate("window.scrollTo(0, 0)")
    page.mouse.move(0, 0)  # no tooltip
    page.wait_for_timeout(SETTLING)
    picture = page.screenshot()
    context.close()
    return picture


def shrink(picture: bytes, width: int) -> Image.Image:
    """Return a picture that is at most so wide; 0: as it is."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    if 0 < width < image.width:
        image = image.resize(
            (width, round(image.height * width / image.width)), Image.Resampling.LANCZOS
        )
    return image


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=RawDescription)
    parser.add_argument("--to", type=Path, default=PICTURES, help="folder of the pictures")
    parser.add_argument("--width", type=int, default=WIDTH, help="their width at most; 0: all")
    parser.add_argument("--only", nargs="+", choices=SHOTS, default=list(SHOTS), help="pages")
    parser.add_argument("--manual", action="store_true", help="those of the manual's other pages")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        servers(Path(folder)) as started,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        require_kanji(browser)
        wanted = arguments.only
        if arguments.manual:
            wanted = []
            for name, (page, size, language) in MANUAL.items():
                show_sign_of_life(Path(folder))
                shot, locale = SHOTS[page], LANGUAGES[language]
                picture = take(browser, started[shot.command].address, shot, size, locale)
                # 256 colours keep it small; the other methods lose those of small texts.
                image = shrink(picture, 0).quantize(method=Image.Quantize.FASTOCTREE)
                image.save(MANUAL_PICTURES / f"{name}.png", optimize=True)
        for name in wanted:
            shot = SHOTS[name]
            for size in SIZES:
                for language, locale in LANGUAGES.items():
                    show_sign_of_life(Path(folder))
                    picture = take(browser, started[shot.command].address, shot, size, locale)
                    file = arguments.to / f"{name}-{size[0]}x{size[1]}-{language}.webp"
                    shrink(picture, arguments.width).save(file, quality=QUALITY, method=6)
        browser.close()


if __name__ == "__main__":
    main()
