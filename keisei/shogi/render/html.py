"""Draw games as HTML, for notebooks: boards side by side, or a record with its moves."""

from collections.abc import Callable, Iterator
from html import escape
from typing import Final

from keisei.shogi.game import ShogiGame
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.record import GameRecord, RecordedMove, text_lines
from keisei.shogi.render.svg import board_svg

MAX_GAMES: Final = 4
"""Maximum number of boards that `games_html` shows."""

BOARD_HEIGHT: Final = 240
"""Height of these boards in pixels."""


def game_svg(game: ShogiGame, *, size: int) -> str:
    """Draw the board of a game, `size` pixels high, with its last move and a check."""
    return board_svg(
        game.diagram, last_move=game.last_move, size=size, check_square=game.checked_king
    )


def games_html(number: int, game: Callable[[int], ShogiGame]) -> str:
    """Draw the first of `number` games side by side, and write how many more there are."""
    shown = min(number, MAX_GAMES)
    boards = "".join(
        f"<div>game {index}<br>{game_svg(game(index), size=BOARD_HEIGHT)}</div>"
        for index in range(shown)
    )
    rest = f"<p>and {number - shown:,} more</p>" if number > shown else ""
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{boards}</div>{rest}'


def record_html(record: GameRecord, *, size: int = 400) -> str:
    """Draw the board after the last move, `size` pixels high, with players and a list of moves.

    Uses no scripts and style sheets. The texts of the record are escaped: they may come from
    anyone.
    """
    game = ShogiGame(record.start)
    for move in record.main_line:
        game.push(move)
    moves = "".join(_move_lines(record))
    return (
        f"<div><p>{_title(record)}</p>{game_svg(game, size=size)}"
        f"<details><summary>{_summary(record)}</summary>{_remark(record.comment)}"
        f"<ol>{moves}</ol></details></div>"
    )


def _title(record: GameRecord) -> str:
    players = f"<b>{escape(record.black or 'Black')}</b> - <b>{escape(record.white or 'White')}</b>"
    facts = (record.event, record.headers.get(header.START_TIME, ""))
    return ", ".join((players, *(escape(fact) for fact in facts if fact)))


def _summary(record: GameRecord) -> str:
    number = len(record.moves)
    text = f"{number} move{'' if number == 1 else 's'}"
    if record.result is not None:
        text += f", {record.result.ending.value}"
    if record.winner is not None:
        text += f": {record.winner.name.title()} wins"
    return text


def _move_lines(record: GameRecord) -> Iterator[str]:
    for recorded in record.moves:
        yield f"<li>{escape(recorded.move.usi)}{_time(recorded)}{_remark(recorded.comment)}</li>"


def _time(recorded: RecordedMove) -> str:
    return "" if recorded.seconds is None else f" <small>({recorded.seconds:g} s)</small>"


def _remark(comment: str) -> str:
    lines = "<br>".join(escape(line) for line in text_lines(comment))
    return f"<div><small>{lines}</small></div>" if lines else ""
