"""Games as pieces of HTML, for notebooks. Without scripts and style sheets."""

from collections.abc import Callable
from typing import Final

from keisei.shogi.game import ShogiGame
from keisei.shogi.render_svg import board_svg

SHOWN_GAMES: Final = 4
"""Of many games, so many are shown."""

SHOWN_SIZE: Final = 240
"""How high their boards are, in pixels."""


def game_svg(game: ShogiGame, *, size: int) -> str:
    """The board of a game, `size` pixels high, with its last move and a check."""
    return board_svg(
        game.diagram, last_move=game.last_move, size=size, check_square=game.checked_king
    )


def games_html(number: int, game: Callable[[int], ShogiGame]) -> str:
    """The first of `number` games, side by side, and how many more there are."""
    shown = min(number, SHOWN_GAMES)
    boards = "".join(
        f"<div>game {index}<br>{game_svg(game(index), size=SHOWN_SIZE)}</div>"
        for index in range(shown)
    )
    rest = f"<p>and {number - shown:,} more</p>" if number > shown else ""
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{boards}</div>{rest}'
