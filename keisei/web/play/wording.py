"""Words of the page with the board, in its language: players, moves, results."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from keisei.errors import KeiseiError
from keisei.evaluation.level_ratings import (
    beaten_bot,
    highest_rating,
    level_bound,
    level_rating,
)
from keisei.play.saved_games import SavedGame
from keisei.play.session import End, GameSession
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.japanese import handicap_name
from keisei.shogi.notation.record import Replay
from keisei.shogi.types import RANK_LETTERS, SQUARE_NAMES, Color, Diagram, Move, PieceKind
from keisei.web.languages import mark, tr, trn
from keisei.web.play.catalogue import (
    BOTS,
    BUILTIN_ENTRY,
    CatalogueEntry,
    GameSetup,
    PlayerChoice,
    StrengthStop,
)
from keisei.web.play.game_room import YOU, GameRoom

PIECES: Final = {
    PieceKind.PAWN: mark("pawn"),
    PieceKind.LANCE: mark("lance"),
    PieceKind.KNIGHT: mark("knight"),
    PieceKind.SILVER: mark("silver"),
    PieceKind.GOLD: mark("gold"),
    PieceKind.BISHOP: mark("bishop"),
    PieceKind.ROOK: mark("rook"),
    PieceKind.KING: mark("king"),
    PieceKind.PROMOTED_PAWN: mark("promoted pawn"),
    PieceKind.PROMOTED_LANCE: mark("promoted lance"),
    PieceKind.PROMOTED_KNIGHT: mark("promoted knight"),
    PieceKind.PROMOTED_SILVER: mark("promoted silver"),
    PieceKind.HORSE: mark("horse"),
    PieceKind.DRAGON: mark("dragon"),
}

RANKS: Final = mark("abcdefghi")
"""The ranks in a square's name, from the top."""


_HANDICAP_SIDES: Final = mark("Black/White")
"""The sides of a handicap game: 下手 and 上手 in Japanese, where 先手 would be who moves first."""


def side_text(color: Color, start: Diagram | None = None) -> str:
    """Return the name of a side; `start`: in a game that begins with this position."""
    if start is not None and handicap_name(start) not in (None, "平手"):
        return tr(_HANDICAP_SIDES).split("/")[color]
    return tr("Black") if color is Color.BLACK else tr("White")


def side_texts(start: Diagram) -> list[str]:
    """Return the names of both sides in a game that begins with this position."""
    return [side_text(color, start) for color in Color]


def square_text(name: str) -> str:
    """Return the name of a square, given as in USI."""
    return name[0] + tr(RANKS)[RANK_LETTERS.index(name[1])]


def board_texts() -> dict[str, Any]:
    """Return the texts of ``static/board.js``, for screen readers."""
    return {
        "board": tr("Board. Arrow keys move, Enter selects."),
        "empty": tr("{square}, empty"),
        "cell": tr("{square}, {side} {piece}"),
        "hand": tr("{side}: pieces in hand"),
        "held": tr("{piece}, {number} in hand"),
        "choice": tr("Promote?"),
        "promote": tr("Promote"),
        "keep": tr("Do not promote"),
        "ranks": tr(RANKS),
        "sides": [side_text(color) for color in Color],
        "pieces": {kind.symbol: tr(name) for kind, name in PIECES.items()},
    }


def spoken_last_move(start: Diagram, moves: Sequence[Move]) -> str:
    """Return the last of the moves from a position in words, for screen readers."""
    replay = Replay(start)
    for move in moves[:-1]:
        replay.play(move)
    return spoken_move(start, replay, moves[-1])


def spoken_move(start: Diagram, replay: Replay, move: Move) -> str:
    """Return a move in words, for screen readers; `replay`, from `start`, is just before it."""
    piece = replay.moving_piece(move)
    values = {
        "side": side_text(piece.color, start),
        "piece": tr(PIECES[piece.kind]),
        "square": square_text(SQUARE_NAMES[move.to_square]),
    }
    if move.from_square is None:
        return tr("{side}: {piece} dropped on {square}.", **values)
    takes = replay.board[move.to_square] is not None
    if move.promote:
        if takes:
            return tr("{side}: {piece} takes on {square} and promotes.", **values)
        return tr("{side}: {piece} to {square}, promotes.", **values)
    if takes:
        return tr("{side}: {piece} takes on {square}.", **values)
    return tr("{side}: {piece} to {square}.", **values)


def entry_text(entry: CatalogueEntry) -> str:
    """Return the name of a player of the catalogue."""
    if entry.plies is None:
        return tr(entry.label)
    run = entry.label.rpartition(", ")[0]
    return tr("{run}, {plies} plies", run=run, plies=f"{entry.plies:,}")


def stop_text(stop: StrengthStop) -> str:
    """Return the name of a stop of the strength slider."""
    return tr("level {number}", number=stop.level) if stop.level else tr(stop.label)


_OF_GAMES: Final = 10
"""Games of which a player is said to win so many."""


def strength_text(entry: CatalogueEntry, stop: StrengthStop) -> str:
    """Return how strong a player is at a stop: rating, and which bot it beats, where known."""
    is_builtin = entry.spec == BUILTIN_ENTRY.spec
    if is_builtin and (rating := level_rating(stop.level)) is not None:
        return _rated_text(rating)
    if is_builtin and (bound := level_bound(stop.level)) is not None:
        return _bound_text(bound)
    if stop.level != len(entry.levels) or not entry.is_network:
        return ""
    return _unrated_text(highest_rating() if is_builtin else None)


def _rated_text(rating: int) -> str:
    """Return a rating and what it beats."""
    bot = beaten_bot(rating)
    if bot is None:
        return tr("Elo {rating}", rating=rating)
    name = _bot_name(bot.spec)
    wins = round(_OF_GAMES * bot.expected)
    if wins == _OF_GAMES:
        return tr("Elo {rating}: nearly always beats the bot “{bot}”", rating=rating, bot=name)
    return tr(
        "Elo {rating}: wins {wins} of 10 games against the bot “{bot}”",
        rating=rating, wins=wins, bot=name,
    )  # fmt: skip


def _bound_text(bound: int) -> str:
    """Return the bound of a rating above the scale, and what it beats: all bots."""
    return tr(
        "above the scale: {rating} or more; nearly always beats the bot “{bot}”",
        rating=bound, bot=tr(BOTS[-1].label),
    )  # fmt: skip


def _unrated_text(below: int | None) -> str:
    """Return what is known of a highest level that has no rating; `below`: the next one's."""
    bot = None if below is None else beaten_bot(below)
    if bot is None:
        return tr("all that the network has")
    wins = min(round(_OF_GAMES * bot.expected), _OF_GAMES - 1)
    return tr(
        "all that the network has, above Elo {rating}: wins {wins} or more of 10 games against "
        "the bot “{bot}”",
        rating=below, wins=wins, bot=_bot_name(bot.spec),
    )  # fmt: skip


def _bot_name(spec: str) -> str:
    return next(tr(known.label) for known in BOTS if known.spec == spec)


def player_text(room: GameRoom, color: Color) -> str:
    """Return the name of the player of a side."""
    return choice_text(room, room.setup.players[color], color, room.session.name(color))


def choice_text(room: GameRoom, player: PlayerChoice, color: Color, known: str) -> str:
    """Return the name of a player; `known` is the one in the record, for a person's."""
    if player.key is None:
        return (
            tr(YOU) if known == YOU else side_text(color) if known == color.name.title() else known
        )
    entry = room.entry(player.key)
    if not entry.levels:
        return entry_text(entry)
    stop = entry.level(player.level)
    if not entry.spec:
        return stop_text(stop)
    return tr("{name} ({details})", name=entry_text(entry), details=stop_text(stop))


def game_text(room: GameRoom, game: SavedGame) -> str:
    """Return the line that describes a saved game: when, who, how long, how it ended."""
    record = game.record
    names = [record.headers.get(header.BLACK, ""), record.headers.get(header.WHITE, "")]
    with suppress(KeiseiError):  # players that are gone keep the names in the record
        setup = GameSetup.from_json(game.players)
        names = [choice_text(room, setup.players[color], color, names[color]) for color in Color]
    count = trn("{number} move", "{number} moves", len(record.moves))
    if record.result is None:
        result = tr("not over")
    else:
        result = end_text(End(record.result.ending, record.winner), record.start)
    players = tr("{black} – {white}", black=names[0], white=names[1])
    return f"{game.began:%Y-%m-%d %H:%M}  {tr(', ').join([players, count, result])}"


def end_text(end: End, start: Diagram) -> str:
    """Return how a game that began with a position ended."""
    reason = tr(end.reason)
    if end.winner is not None:
        return tr("{side} wins: {reason}.", side=side_text(end.winner, start), reason=reason)
    if end.is_draw:
        return tr("A draw: {reason}.", reason=reason)
    return tr("Broken off: {reason}.", reason=reason)


def result_text(session: GameSession) -> str:
    """Return how a game ended, as "You win" or "You lose" if one person played it."""
    assert session.end is not None
    if len(session.people) != 1 or session.end.winner is None:
        return end_text(session.end, session.game.start)
    (mine,) = session.people
    reason = tr(session.end.reason)
    if session.end.winner is mine:
        return tr("You win: {reason}.", reason=reason)
    return tr("You lose: {reason}.", reason=reason)


def status_text(room: GameRoom) -> str:
    """Return what is going on, in a few words."""
    session = room.session
    if session.end is not None:
        return result_text(session)
    if room.paused and not session.is_persons_turn:
        return tr("Paused.")
    if not session.is_persons_turn:
        return tr("{player} is thinking …", player=player_text(room, session.turn))
    side = side_text(session.turn, session.game.start)
    if len(session.people) == 1:
        text = tr("Your move, {side}.", side=side)
    else:
        text = tr("{side} to move.", side=side)
    return f"{text} {tr('Check!')}" if session.game.in_check else text
