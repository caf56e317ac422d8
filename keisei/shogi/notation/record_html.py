"""A game record as a piece of HTML, for notebooks: the last board, and the moves."""

from collections.abc import Iterator
from html import escape

from keisei.shogi.game import ShogiGame
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.record import GameRecord, RecordedMove
from keisei.shogi.notation.text import text_lines
from keisei.shogi.render_html import game_svg


def record_html(record: GameRecord, *, size: int = 400) -> str:
    """Who played, the board after the last move `size` pixels high, and the moves to fold out.

    Without scripts and style sheets. What the record says is text there, whoever wrote it.
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
