"""Where each part of the live display goes, in a terminal of any size."""

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from keisei.display import panels as parts
from keisei.display.run_state import RunState
from keisei.display.sparklines import Glyphs

BOARD_WIDTHS: Final = {"kanji": 42, "letters": 40}
BOARD_HEIGHT: Final = 15
COLUMN_WIDTH: Final = 36
"""What a column of figures needs."""

GAP: Final = 2
FRAME: Final = 4
"""What a panel takes of its width: two borders, two spaces."""

PANEL_HEIGHT: Final = BOARD_HEIGHT + 2
PANELS_NEED: Final = (120, 28)
"""Columns and lines from which on there is room for panels."""

MOST_OPPONENTS: Final = 4
MOST_WORKERS: Final = 4
MOST_MESSAGES: Final = 12


def picture(state: RunState, width: int, height: int, glyphs: Glyphs) -> Group:
    """The whole display, at most `width` columns wide and `height` lines high."""
    if width >= PANELS_NEED[0] and height >= PANELS_NEED[1]:
        return _panels(state, width, height, glyphs)
    return _plain(state, width, height, glyphs)


def _plain(state: RunState, width: int, height: int, glyphs: Glyphs) -> Group:
    """Without frames: what fits into 80 x 24, and less into less."""
    head = parts.header(state, width, glyphs)
    tail = [
        parts.time_line(state, width, glyphs),
        *parts.worker_lines(state, width, glyphs)[:MOST_WORKERS],
        *parts.strength_lines(state, width, glyphs)[:MOST_OPPONENTS],
    ]
    tail = tail[: max(0, height - len(head))]
    room = max(0, height - len(head) - len(tail))
    board_width = BOARD_WIDTHS[glyphs.lettering]
    body: Text | Table
    if width >= board_width + GAP + COLUMN_WIDTH and room >= BOARD_HEIGHT:
        figures = _all_figures(state, width - board_width - GAP, glyphs)[:room]
        body = _side_by_side(parts.board(state, glyphs), board_width, _stacked(figures))
        used = BOARD_HEIGHT
    else:
        body, used = _figures_only(state, width, room, glyphs)
    messages = parts.message_lines(state, width, min(MOST_MESSAGES, room - used), glyphs)
    return Group(*head, *([body] if used else []), *tail, *messages)


def _figures_only(
    state: RunState, width: int, room: int, glyphs: Glyphs
) -> tuple[Text | Table, int]:
    """Figures without a board, in two columns if there is room; and the lines they take."""
    if width < 2 * COLUMN_WIDTH + GAP:
        lines = _all_figures(state, width, glyphs)[:room]
        return _stacked(lines), len(lines)
    column = (width - GAP) // 2
    left = _games(state, column, glyphs)[:room]
    right = _learning(state, column, glyphs)[:room]
    body = _side_by_side(_stacked(left), column, _stacked(right))
    return body, max(len(left), len(right))


def _panels(state: RunState, width: int, height: int, glyphs: Glyphs) -> Group:
    """With frames, for large terminals."""
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
        _panel(parts.board(state, glyphs), "a game of the moment", board_width, PANEL_HEIGHT),
        _panel(_stacked(play), "self-play", left, PANEL_HEIGHT),
        _panel(_stacked(learning), "learning", right, PANEL_HEIGHT),
    )
    head = parts.header(state, width, glyphs)
    inside = width - FRAME
    strength = parts.strength_lines(state, inside, glyphs)[:MOST_OPPONENTS]
    strength = strength or [Text("no evaluation yet", "dim")]
    room = height - len(head) - PANEL_HEIGHT - (len(strength) + 2) - 2
    messages = parts.message_lines(state, inside, min(MOST_MESSAGES, room), glyphs)
    bottom = [_panel(_stacked(strength), "strength", width, len(strength) + 2)]
    if messages:
        bottom.append(_panel(_stacked(messages), "log", width, len(messages) + 2))
    return Group(*head, body, *bottom)


def _all_figures(state: RunState, width: int, glyphs: Glyphs) -> list[Text]:
    """One column as high as the board, the most telling first: the last may be left out."""
    return [*_games(state, width, glyphs), *_learning(state, width, glyphs)][:BOARD_HEIGHT]


def _learning(state: RunState, width: int, glyphs: Glyphs) -> list[Text]:
    """Losses, then what changes by schedule."""
    figures = [*parts.learning_figures(state), *parts.schedule_figures(state)]
    return parts.figure_lines(figures, width, glyphs)


def _games(state: RunState, width: int, glyphs: Glyphs) -> list[Text]:
    """Speed, and games with a bar of who won them."""
    lines = parts.figure_lines(parts.game_figures(state), width, glyphs)
    return [*lines[:3], parts.outcome_line(state, width, glyphs), *lines[3:]]


def _stacked(lines: Sequence[Text]) -> Text:
    return Text("\n", no_wrap=True).join(lines)


def _side_by_side(left: Text, width: int, right: Text) -> Table:
    """Two columns, the left one `width` wide, with a gap between them."""
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
