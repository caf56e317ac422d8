"""A server as users start it, and a real browser: fixtures of the tests of pages."""

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psutil
import pytest

from tests.tiny_runs import tiny_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

THIS_MACHINE_ONLY = Path(__file__).with_name("this_machine_only")
"""A module that a Python imports first; it refuses connections to other machines."""

NO_OTHER_HOST = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
"""The browser's argument that leaves it nothing but loopback, for sockets and prefetching too."""

DESK = (1280, 860)
PHONE = (360, 740)
FINGER = 44
"""Pixels that a target has at least, across and down, where fingers touch it."""

OpenPage = Callable[..., "Page"]

ENGINE = """
import pathlib, sys, time
alive = pathlib.Path(sys.argv[1])
alive.write_text("yes")
plies = 0
for line in sys.stdin:
    words = line.split()
    if words[0] == "usi":
        print("id name stub\\nusiok", flush=True)
    elif words[0] == "isready":
        print("readyok", flush=True)
    elif words[0] == "position":
        plies = len(words) - words.index("moves") - 1 if "moves" in words else 0
    elif words[0] == "go":
        time.sleep(float(sys.argv[2]))
        print("bestmove", ["7g7f", "", "2g2f", "", "2f2e", "", "2e2d"][plies], flush=True)
    elif words[0] == "quit":
        break
alive.unlink()
"""
"""A USI engine with four fixed moves of Black; a file exists while it runs."""


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one run and a directory that is not a run."""
    directory = tmp_path_factory.mktemp("runs")
    tiny_run(directory / "tiny", checkpoints=2)
    (directory / "no-run").mkdir()
    return directory


class Engine:
    """The engine with fixed moves: its player spec, and whether it runs."""

    def __init__(self, directory: Path, *, seconds: float = 0.0) -> None:
        """Write the program, which takes some seconds for each move."""
        program = directory / "engine.py"
        program.write_text(ENGINE)
        self._program, self._alive = program, directory / "alive"
        self.spec = f'usi:"{sys.executable}" "{program}" "{self._alive}" {seconds}'

    def remove(self) -> None:
        """Remove the program, so that it cannot start any more."""
        self._program.unlink()

    def is_running(self) -> bool:
        return self._alive.exists()


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def without_network() -> dict[str, str]:
    """Return the environment of a Python that can reach this machine only."""
    places = [str(THIS_MACHINE_ONLY), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(place for place in places if place)}


class Server:
    """``keisei play`` or ``keisei dashboard`` as users start it, without any other machine."""

    def __init__(
        self,
        command: str,
        *arguments: str,
        games: Path | None = None,
        program: Sequence[str] = ("-m", "keisei"),
    ) -> None:
        self._has_own_games = games is None
        self.games = games or Path(tempfile.mkdtemp(prefix="keisei-games-"))
        self._process = subprocess.Popen(
            [sys.executable, *program, command, "--no-browser", "--port=0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            env=without_network()
            | {"OMP_NUM_THREADS": "1", "COLUMNS": "200", "KEISEI_GAMES": str(self.games)},
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        assert self._process.stdout is not None
        self.printed = ""
        self.address = ""
        for line in self._process.stdout:
            self.printed += line
            if found := re.search(r"http://\S+", line):
                self.address = found[0]
                return
        raise AssertionError(f"no address was printed: {self.printed}")

    def memory(self) -> int:
        """Return the bytes that the process keeps in memory."""
        return int(psutil.Process(self._process.pid).memory_info().rss)

    def request(
        self, path: str, *, method: str = "GET", body: bytes = b"", **headers: str
    ) -> tuple[int, str]:
        """Return status and text of a response; the path is sent as it is."""
        parts = urlsplit(self.address)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            if body:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()

    def interrupt(self) -> int:
        """Send Ctrl-C and return the exit code; what was printed meanwhile is kept."""
        if self._process.poll() is None:
            # On Windows only Ctrl-Break can be sent to another process group.
            self._process.send_signal(getattr(signal, "CTRL_BREAK_EVENT", signal.SIGINT))
        try:
            printed, _ = self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        self.printed += printed
        if self._has_own_games:
            shutil.rmtree(self.games, ignore_errors=True)
        assert "Traceback" not in self.printed, self.printed
        assert "refused to reach" not in self.printed, self.printed
        return self._process.returncode


@pytest.fixture(scope="session")
def server(runs: Path) -> Iterator[Server]:
    """``keisei play``; tests of another server have a fixture of their own."""
    pytest.importorskip("nicegui")
    server = Server("play", "--runs", str(runs), "--seed", "1")
    yield server
    server.interrupt()


def chromium() -> str | None:
    """Return the path of the system's browser; none is downloaded."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


REQUIRE_BROWSER = "KEISEI_REQUIRE_BROWSER"
"""Variable of the environment: if it is set, tests fail where they would be skipped otherwise,
because there is no browser, or nothing that drives or examines it."""


def missing_tools() -> list[str]:
    """Return what the tests in a browser lack."""
    modules = ("nicegui", "playwright", "axe_playwright_python")
    missing = [name for name in modules if find_spec(name) is None]
    return missing if chromium() else [*missing, "Chromium"]


def require_browser() -> None:
    """Fail if a browser is required, and something is missing."""
    if os.environ.get(REQUIRE_BROWSER) and (missing := missing_tools()):
        pytest.fail(f"{REQUIRE_BROWSER} is set, but these are missing: {', '.join(missing)}")


@pytest.fixture(scope="session", autouse=True)
def browser_is_there_where_required() -> None:
    require_browser()


# Not for the session: while Playwright is open, an event loop runs, and other tests need their own.
@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    playwright = pytest.importorskip("playwright.sync_api")
    program = chromium()
    if program is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as play:
        launched: Any = play.chromium.launch(
            executable_path=program, args=["--no-sandbox", NO_OTHER_HOST]
        )
        yield launched
        launched.close()


def settle(page: "Page") -> None:
    """Wait until colours and sizes are as they will stay."""
    # What has just appeared begins to move two frames later.
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_function(
        "document.getAnimations().every(one => one.playState !== 'running'"
        " || one.effect.getTiming().iterations === Infinity)"
    )


def accessibility_problems(page: "Page", *, popup: bool = False, within: str = "") -> list[str]:
    """Return what axe-core finds on a page: rule, and the elements that break it.

    An open menu (`popup`) is outside the landmarks: the widgets attach it to the document's body.
    `within` limits it to what a selector finds, which must be something.
    """
    settle(page)
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    results: Any = axe.run(
        page,
        within or None,
        options={
            "rules": {"region": {"enabled": not (popup or within)}},
            "resultTypes": ["violations"],  # reporting all that passes takes a third of the time
        },
    ).response
    return [
        f"{violation['id']}: {node['html'][:160]}"
        for violation in results["violations"]
        for node in violation["nodes"]
    ]


def small_targets(page: "Page") -> list[str]:
    """Return what is too small for fingers on a page: name, width and height.

    The squares of boards are as large as the window allows.
    """
    settle(page)
    found: list[str] = page.eval_on_selector_all(
        "button, a, [role=menuitem], [role=option], [role=checkbox], .q-slider, .kb-slot,"
        " .q-field__control, .q-expansion-item .q-item, th.sortable",
        """(all, least) => all.filter(one => one.checkVisibility() &&
            !one.closest(".kb-holds, .kx-board")).map(one => {
            const box = one.getBoundingClientRect(), name = one.ariaLabel ?? one.textContent;
            return [box, `${name || one.getAttribute("class")} ${box.width}x${box.height}`];
        }).filter(([box]) => Math.min(box.width, box.height) < least).map(([, text]) => text)""",
        FINGER,
    )
    return found


LATIN = re.compile("[A-Za-z]{3,}")
IDENTIFIER = re.compile(r"[\w@:-]*([._/][\w@:-]*)+")
"""Paths, settings and metrics, which have one name in all languages."""

NAMES = {
    "APNG", "CPU", "CSA", "CSV", "Elo", "End", "English", "Enter", "Esc", "GIF", "GPU", "Home",
    "KIF", "Keisei", "PNG", "SFEN", "SVG", "Shift", "Space", "Tab", "USI", "evaluate", "keisei",
    "tiny",
}  # fmt: skip
"""Words that are the same in every language."""


def texts_of(page: "Page") -> str:
    """Return all that can be read or heard on a page, without commands and settings."""
    return str(
        page.evaluate(
            """() => {
                const copy = document.body.cloneNode(true), texts = [document.title];
                copy.querySelectorAll("i, script, style, .d-code, [id$=popup]").forEach(
                    one => one.remove());
                for (const one of copy.querySelectorAll("[aria-label], [placeholder], [title]"))
                    texts.push(one.ariaLabel, one.placeholder, one.title);
                const walker = document.createTreeWalker(copy, NodeFilter.SHOW_TEXT);
                while (walker.nextNode()) texts.push(walker.currentNode.data);
                return texts.filter(text => text).join(" ");
            }"""
        )
    )


def english_words(page: "Page", names: Collection[str] = ()) -> list[str]:
    """Return the words in Latin letters on a page that are neither identifiers nor names."""
    text = IDENTIFIER.sub(" ", texts_of(page))
    return sorted(set(LATIN.findall(text)) - NAMES - set(names))


class PageCheck:
    """What is wrong with a page and its dialogs.

    That is axe-core's findings, English in Japanese, and on a phone what is too small for fingers.
    Menus and dialogs, which are the same there, are left to axe-core on the desk: it is slow.
    """

    def __init__(self, page: "Page", names: Collection[str] = ()) -> None:
        """Start; `names` are words of any language, such as those of runs."""
        self._page, self._names = page, names
        self.problems: dict[str, list[str]] = {}
        self._is_touched = bool(page.evaluate("matchMedia('(pointer: coarse)').matches"))

    def look(self, name: str, *, popup: bool = False, axe: bool = True) -> None:
        """Look at the page as it is now; `popup`: with an open menu."""
        found = accessibility_problems(self._page, popup=popup) if axe else []
        if self._is_touched:
            found += small_targets(self._page)
        if self._page.evaluate("document.documentElement.lang") == "ja":
            found += english_words(self._page, self._names)
        if found:
            self.problems[name] = found

    def look_at_menu(self, name: str, opener: "Locator") -> None:
        """Look at a menu that a click opens, and close it."""
        opener.click()
        self._page.wait_for_selector(".q-menu")
        self.look(name, popup=True, axe=not self._is_touched)
        self._page.keyboard.press("Escape")
        self._page.wait_for_selector(".q-menu", state="detached")

    def look_at_dialog(self, name: str, open_it: Callable[[], None]) -> None:
        """Look at a dialog, and close it."""
        open_it()
        self._page.wait_for_selector(".kp-dialog")
        self.look(name, axe=not self._is_touched)
        self._page.keyboard.press("Escape")
        self._page.wait_for_selector(".q-dialog", state="detached")


@contextmanager
def open_pages(browser: "Browser", server: Server, ready: str) -> Iterator[OpenPage]:
    """Yield a function that opens a page and waits for the selector `ready`.

    At the end, checks that no page had an error or sent a request to another server.
    """
    contexts = []
    problems: list[str] = []

    def block_others(route: Any, request: Any) -> None:
        """Nothing but this server can be reached."""
        if request.url.startswith((server.address, "data:", "blob:")):
            route.continue_()
        else:
            problems.append(request.url)
            route.abort()

    def open_page(
        path: str = "",
        size: tuple[int, int] = DESK,
        *,
        dark: bool = False,
        touch: bool = False,
        language: str = "en-US",
        motion: bool = False,
    ) -> "Page":
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            has_touch=touch or size == PHONE,
            is_mobile=touch,
            locale=language,
            reduced_motion="no-preference" if motion else "reduce",
        )
        context.route("**", block_others)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda message: problems.append(message.text) if message.type == "error" else None,
        )
        page.goto(server.address + path)
        page.wait_for_selector(ready)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
