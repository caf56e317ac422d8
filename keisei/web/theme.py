"""The look of all pages: light and dark colours, a header, a button to switch between them.

>>> @ui.page("/")  # doctest: +SKIP
... def index() -> None:
...     with frame("Runs"):
...         ui.label("Everything is fine").classes("k-card")

Pages add their own rules with the colours of ``static/theme.css``: ``var(--k-surface)`` and so on.
Tailwind is not used.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Final, Literal

from nicegui import ui

from keisei.web.languages import LANGUAGE_COOKIE, languages, mark, page_language, tr

STATIC: Final = Path(__file__).parent / "static"
"""Directory of style sheets and scripts."""

FAVICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
    '<path d="M16 2 26 8 30 30H2L6 8Z" fill="#f3d08e" stroke="#7c5220" stroke-width="1.5" '
    'stroke-linejoin="round"/><path d="M10 13h12M16 13v11M9 24h14M17 18h4" fill="none" '
    'stroke="#1c120a" stroke-width="2.4" stroke-linecap="round"/></svg>'
)
"""A Shogi piece."""

_TOAST: Final = "toast"
_THEME_COOKIE: Final = "keisei-theme"
_THEMES: Final[dict[str, bool | None]] = {"auto": None, "light": False, "dark": True}
_THEME_TEXTS: Final = {
    "auto": mark("System theme"),
    "light": mark("Light theme"),
    "dark": mark("Dark theme"),
}
_THEME_ICONS: Final = {"auto": "brightness_auto", "light": "light_mode", "dark": "dark_mode"}


@contextmanager
def frame(title: str, *, links: dict[str, str] | None = None) -> Iterator[ui.element]:
    """Add a page's header; the page's content is made in the ``with`` block.

    Args:
        title: title of the page, shown next to the program's name.
        links: further pages, label to address.

    Yields:
        The right part of the header, where a page can add buttons.
    """
    page_language()  # before the document is written, which names it
    add_style("theme.css")
    ui.add_body_html(f"<script>{_text('modal.js')}</script>")
    # A module runs when Quasar's script has run, and before the page is built.
    ui.add_body_html(f'<script type="module">{_text("motion.js")}</script>')
    ui.page_title(f"{title} · Keisei" if title else "Keisei")
    with ui.element("header").classes("k-header"):
        home = tr("Keisei, home")
        with ui.element("a").props(f'href="/" aria-label="{home}"').classes("k-brand"):
            ui.html(FAVICON, sanitize=False)
            ui.label("Keisei")
        shown = ui.label(title).classes("k-title")
        if title:
            shown.tag = "h1"
        ui.element("div").classes("k-space")
        for name, address in (links or {}).items():
            ui.link(name, address).classes("k-soft")
        tools = ui.element("div").style("display: flex; align-items: center; gap: 2px")
        _language_menu()
        _theme_switch()
    with ui.element("div").classes("k-page"):  # within the document's <main>, which NiceGUI makes
        yield tools


def toast(message: str, *, kind: Literal["warning", "positive"] = "warning") -> None:
    """Show a message for some seconds, in place of the one before."""
    storage = ui.context.client.storage
    before = storage.get(_TOAST)
    if before is not None and not before.is_deleted:
        before.dismiss()
    storage[_TOAST] = ui.notification(message, type=kind, position="top", multi_line=True)


def tool_button(icon: str, text: str, act: Callable[[], object], name: str) -> ui.button:
    """Add a round button with a tooltip; `name` is for tests."""
    button = ui.button(icon=icon, on_click=act).props("flat round dense color=primary")
    button.props(f'aria-label="{text}" data-tool="{name}"')
    with button:
        ui.tooltip(text)
    return button


def add_style(name: str) -> None:
    """Add one of the package's style sheets to the page."""
    ui.add_head_html(f"<style>{_text(name)}</style>")


def read_cookie(name: str, default: str) -> str:
    """Return the value of a cookie, which any page of this host may have set."""
    return ui.context.client.request.cookies.get(name, default)


def set_cookie(name: str, value: str) -> None:
    """Set a cookie for a year."""
    ui.run_javascript(
        f"document.cookie = '{name}={value}; Path=/; Max-Age=31536000; SameSite=Strict'"
    )


@cache
def _text(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _language_menu() -> None:
    """Add a menu of the languages; the page is loaded again in the one that is chosen."""

    def choose(code: str) -> None:
        set_cookie(LANGUAGE_COOKIE, code)
        ui.run_javascript("location.reload()")

    button = ui.button(icon="language")
    button.props(f'flat round dense color=primary aria-label="{tr("Language")}"')
    with button:
        ui.tooltip(tr("Language"))
        with ui.menu():
            for code, name in languages().items():
                item = ui.menu_item(name, partial(choose, code))
                item.props(f'role=menuitem lang="{code}"')
                item.props("active" if code == page_language() else "")


def _theme_switch() -> None:
    """Add a button that switches between the system's theme, light and dark."""
    names = list(_THEMES)
    name = read_cookie(_THEME_COOKIE, "auto")
    name = name if name in _THEMES else "auto"
    mode = ui.dark_mode(_THEMES[name])

    def switch() -> None:
        nonlocal name
        name = names[(names.index(name) + 1) % len(names)]
        mode.value = _THEMES[name]
        button.props(f"icon={_THEME_ICONS[name]}")
        tooltip.text = tr(_THEME_TEXTS[name])
        set_cookie(_THEME_COOKIE, name)

    button = ui.button(icon=_THEME_ICONS[name], on_click=switch)
    button.props(f'flat round dense color=primary aria-label="{tr("Theme")}"')
    with button:
        tooltip = ui.tooltip(tr(_THEME_TEXTS[name]))
