"""Positions in colour, for terminals that rich writes to. The layout is that of `board_text`."""

from typing import Final

from rich.text import Text

from keisei.shogi.diagram import Diagram
from keisei.shogi.moves import Move
from keisei.shogi.render_common import Lettering
from keisei.shogi.render_text import Role, board_lines

_STYLES: Final[dict[Role, str]] = {
    "label": "dim",
    "frame": "dim",
    "status": "italic",
    "empty": "dim",
    "black": "bold",
    "white": "cyan",
    "promoted": "red",
    "origin": "not dim on bright_black",
    "target": "not dim black on bright_yellow",
}
"""Colours of the terminal's own theme suit light and dark terminals."""


def board_rich(
    diagram: Diagram, *, style: Lettering = "kanji", last_move: Move | None = None
) -> Text:
    """Draw a position in colour: promoted pieces red, the last move's squares marked.

    The text is the same as that of `board_text`, so it also reads well without colours.
    """
    lines = []
    for line in board_lines(diagram, style=style, last_move=last_move):
        text = Text()
        for span in line:
            text.append(span.text, " ".join(_STYLES[role] for role in span.roles))
        lines.append(text)
    return Text("\n", no_wrap=True).join(lines)
