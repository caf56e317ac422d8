"""The windows of a browser, in which tests open pages."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

    from tests.web.conftest import Server

DESK = (1280, 860)
PHONE = (360, 740)
TIMEOUT = 30_000
"""Milliseconds that anything on a page may take: the machine may be busy."""

OpenPage = Callable[..., "Page"]


class Kind(NamedTuple):
    """What cannot be changed any more when a window is open."""

    language: str
    has_touch: bool
    is_mobile: bool


class Windows:
    """The browser's windows, which one test after the other uses.

    A window of its own for each would take a second of work: a process starts, and reads the
    scripts of the pages. What a test has left in one is removed.
    """

    def __init__(self, browser: "Browser") -> None:
        self._browser = browser
        self._free: defaultdict[Kind, list[Page]] = defaultdict(list)

    @contextmanager
    def open(
        self,
        size: tuple[int, int] = DESK,
        *,
        dark: bool = False,
        touch: bool = False,
        language: str = "en-US",
        motion: bool = False,
    ) -> Iterator["Page"]:
        """Yield a blank page; it is used again unless the test fails."""
        kind = Kind(language, has_touch=touch or size == PHONE, is_mobile=touch)
        page = self._free[kind].pop() if self._free[kind] else self._new(kind)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(
            color_scheme="dark" if dark else "light",
            reduced_motion="no-preference" if motion else "reduce",
        )
        page.set_default_timeout(TIMEOUT)
        yield page
        clear(page)
        self._free[kind].append(page)

    def _new(self, kind: Kind) -> "Page":
        context = self._browser.new_context(
            locale=kind.language,
            has_touch=kind.has_touch,
            is_mobile=kind.is_mobile,
            reduced_motion="reduce",
        )
        return context.new_page()


def clear(page: "Page") -> None:
    """Remove what a test has left: other pages, what pages have stored, permissions, the mouse."""
    context = page.context
    for other in context.pages:
        if other != page:
            other.close()
    if page.url.startswith("http"):
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.goto("about:blank")
    page.mouse.move(0, 0)
    context.clear_cookies()
    context.clear_permissions()


@contextmanager
def open_pages(windows: Windows, server: "Server", ready: str) -> Iterator[OpenPage]:
    """Yield a function that opens a page and waits for the selector `ready`.

    At the end, checks that no page had an error or sent a request to another server.
    """
    problems: list[str] = []

    def note_request(request: "Request") -> None:
        if not request.url.startswith((server.address, "data:", "blob:", "about:blank")):
            problems.append(request.url)

    def note_message(message: "ConsoleMessage") -> None:
        if message.type == "error":
            problems.append(message.text)

    def note_error(error: Exception) -> None:
        problems.append(str(error))

    @contextmanager
    def watched(page: "Page") -> Iterator[None]:
        page.context.on("request", note_request)
        page.on("console", note_message)
        page.on("pageerror", note_error)
        yield
        page.evaluate("0")  # what has happened until now has been noted
        page.remove_listener("pageerror", note_error)
        page.remove_listener("console", note_message)
        page.context.remove_listener("request", note_request)

    with ExitStack() as opened:

        def open_page(
            path: str = "",
            size: tuple[int, int] = DESK,
            *,
            dark: bool = False,
            touch: bool = False,
            language: str = "en-US",
            motion: bool = False,
        ) -> "Page":
            page = opened.enter_context(
                windows.open(size, dark=dark, touch=touch, language=language, motion=motion)
            )
            opened.enter_context(watched(page))
            page.goto(server.address + path)
            page.wait_for_selector(ready)
            # What is done before may reach the server in another order; people are not that fast.
            page.wait_for_function("window.did_handshake !== false")
            return page

        yield open_page
    assert problems == []
