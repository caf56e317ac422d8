"""The layout of the live display: with panels on large terminals, without frames on small ones.

The parts that are laid out come from `keisei.display.panels`.
"""

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from keisei.display import panels as parts
from keisei.display.panels import Glyphs
from keisei.display.run_state import RunState

BOARD_WIDTHS: Final = {"kanji": 42, "letters": 40}
BOARD_HEIGHT: Final = 15
COLUMN_WIDTH: Final = 36
"""Width of a column of readouts."""

GAP: Final = 2
FRAME: Final = 4
"""Columns of a panel that are not content: two borders, two spaces."""

PANEL_HEIGHT: Final = BOARD_HEIGHT + 2
PANELS_SIZE: Final = (120, 28)
"""Minimum columns and lines of a terminal for panels."""

MAX_OPPONENTS: Final = 4
MAX_WORKERS: Final = 4
MAX_MESSAGES: Final = 12


def render_run(state: RunState, width: int, height: int, glyphs: Glyphs) -> Group:
    """Return the whole display, at most `width` columns wide and `height` lines high."""
    if width >= PANELS_SIZE[0] and height >= PANELS_SIZE[1]:
        return _panels(state, width, height, glyphs)
    return _plain(state, width, height, glyphs)


def _plain(state: RunState, width: int, height: int, glyphs: Glyphs) -> Group:
    """Return the display without frames, for terminals of 80 x 24 and smaller ones."""
    head = parts.header(state, width, glyphs)
    strength = parts.strength_lines(state, width, glyphs)[:MAX_OPPONENTS]
    free = height - len(head) - BOARD_HEIGHT - 1 - len(strength)
    workers = parts.worker_lines(state, width, min(MAX_WORKERS, max(1, free)), glyphs)
    tail = [parts.time_line(state, width, glyphs), *workers, *strength]
    tail = tail[: max(0, height - len(head))]
    room = max(0, height - len(head) - len(tail))
    board_width = BOARD_WIDTHS[glyphs.lettering]
    body: Text | Table
    if width >= board_width + GAP + COLUMN_WIDTH and room >= BOARD_HEIGHT:
        readouts = _all_readouts(state, width - board_width - GAP, glyphs)[:room]
        body = _side_by_side(parts.board(state, glyphs), board_width, _stacked(readouts))
        used = BOARD_HEIGHT
    else:
        body, used = _readouts_only(state, width, room, glyphs)
    messages = parts.message_lines(state, width, min(MAX_MESSAGES, room - used), glyphs)
    return Group(*head, *([body] if used else []), *tail, *messages)


def _readouts_only(
    state: RunState, width: int, room: int, glyphs: Glyphs
) -> tuple[Text | Table, int]:
    """Return (readouts without a board, in two columns if there is room; their height)."""
    if width < 2 * COLUMN_WIDTH + GAP:
        lines = _all_readouts(state, width, glyphs)[:room]
        return _stacked(lines), len(lines)
    column = (width - GAP) // 2
    left = _games(state, column, glyphs)[:room]
    right = _learning(state, column, glyphs)[:room]
    body = _side_by_side(_stacked(left), column, _stacked(right))
    return body, max(len(left), len(right))


def _panels(state: RunState, width: int, height: int, glyphs: Glyphs) -> Group:
    """Return the display with frames, for large terminals."""
    board_width = BOARD_WIDTHS[glyphs.lettering] + FRAME
    left = (width - board_width) // 2
    right = width - board_width - left
    play = [
        *_games(state, left - FRAME, glyphs),
        Text(),
        *parts.time_lines(state, left - FRAME, glyphs),
    ]
    learning = _learning(state, right - FRAME, glyphs)
    body = Table.grid()
    body.add_row(
        _panel(parts.board(state, glyphs), "a game in progress", board_width, PANEL_HEIGHT),
        _panel(_stacked(play), "self-play", left, PANEL_HEIGHT),
        _panel(_stacked(learning), "learning", right, PANEL_HEIGHT),
    )
    head = parts.header(state, width, glyphs)
    inside = width - FRAME
    strength = parts.strength_lines(state, inside, glyphs)[:MAX_OPPONENTS]
    strength = strength or [Text("no evaluation yet", "dim")]
    room = height - len(head) - PANEL_HEIGHT - (len(strength) + 2) - 2
    messages = parts.message_lines(state, inside, min(MAX_MESSAGES, room), glyphs)
    bottom = [_panel(_stacked(strength), "strength", width, len(strength) + 2)]
    if messages:
        bottom.append(_panel(_stacked(messages), "log", width, len(messages) + 2))
    return Group(*head, body, *bottom)


def _all_readouts(state: RunState, width: int, glyphs: Glyphs) -> list[Text]:
    """Return a column as high as the board, the most important readouts first."""
    return [*_games(state, width, glyphs), *_learning(state, width, glyphs)][:BOARD_HEIGHT]


def _learning(state: RunState, width: int, glyphs: Glyphs) -> list[Text]:
    """Return the lines of losses and scheduled settings."""
    readouts = [*parts.learning_readouts(state), *parts.schedule_readouts(state)]
    return parts.readout_lines(readouts, width, glyphs)


def _games(state: RunState, width: int, glyphs: Glyphs) -> list[Text]:
    """Return the lines of speed and games, with a bar of the outcomes."""
    lines = parts.readout_lines(parts.game_readouts(state), width, glyphs)
    return [*lines[:3], parts.outcome_line(state, width, glyphs), *lines[3:]]


def _stacked(lines: Sequence[Text]) -> Text:
    return Text("\n", no_wrap=True).join(lines)


def _side_by_side(left: Text, width: int, right: Text) -> Table:
    """Return two columns with a gap between them, the left one `width` wide."""
    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(width=width, no_wrap=True, overflow="crop")
    grid.add_column(no_wrap=True, overflow="crop")
    grid.add_row(left, right)
    return grid


def _panel(content: RenderableType, title: str, width: int, height: int) -> Panel:
    return Panel(
        content,
        title=title,
        title_align="left",
        width=width,
        height=height,
        border_style="bright_black",
    )
