"""What is wrong with a page: axe-core's findings, English in Japanese, targets too small to tap."""

import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

FINGER = 44
"""Pixels that a target has at least, across and down, where fingers touch it."""


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
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe.Axe().axe_script)
    options = {
        "rules": {"region": {"enabled": not (popup or within)}},
        "resultTypes": ["violations"],  # reporting all that passes takes a third of the time
    }
    found: list[str] = page.evaluate(
        """async ([within, options]) => {
            const { violations } = await axe.run(within || document, options);
            return violations.flatMap(({ id, nodes }) =>
                nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
        }""",
        [within, options],
    )
    return found


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
