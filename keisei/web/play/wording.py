"""Words of the page with the board, in its language: players, moves, results."""

from contextlib import suppress
from typing import Any, Final

from keisei.errors import KeiseiError
from keisei.evaluation.level_ratings import beaten_bot, level_rating
from keisei.play.saved_games import SavedGame
from keisei.play.session import End, GameSession
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.record import Replay
from keisei.shogi.types import RANK_LETTERS, SQUARE_NAMES, Color, Move, PieceKind
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


def side_text(color: Color) -> str:
    """Return the name of a side."""
    return tr("Black") if color is Color.BLACK else tr("White")


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


def spoken_move(replay: Replay, move: Move) -> str:
    """Return a move in words, for screen readers; `replay` is at the position before it."""
    piece = replay.moving_piece(move)
    values = {
        "side": side_text(piece.color),
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


def strength_text(entry: CatalogueEntry, stop: StrengthStop) -> str:
    """Return how strong a player is at a stop: rating, and which bot it beats, where known."""
    rating = level_rating(stop.level) if entry.spec == BUILTIN_ENTRY.spec else None
    if rating is None:
        strongest = stop.level == len(entry.levels) and entry.is_network
        return tr("all that the network has") if strongest else ""
    bot = beaten_bot(rating)
    if bot is None:
        return tr("Elo {rating}", rating=rating)
    name = next(tr(known.label) for known in BOTS if known.spec == bot.spec)
    wins = round(10 * bot.expected)
    if wins == 10:
        return tr("Elo {rating}: nearly always beats the bot “{bot}”", rating=rating, bot=name)
    return tr(
        "Elo {rating}: wins {wins} of 10 games against the bot “{bot}”",
        rating=rating, wins=wins, bot=name,
    )  # fmt: skip


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
    return f"{entry_text(entry)} ({stop_text(stop)})" if entry.spec else stop_text(stop)


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
        result = end_text(End(record.result.ending, record.winner))
    return f"{game.began:%Y-%m-%d %H:%M}  {' – '.join(names)}, {count}, {result}"


def end_text(end: End) -> str:
    """Return how a game ended."""
    reason = tr(end.reason)
    if end.winner is not None:
        return tr("{side} wins: {reason}.", side=side_text(end.winner), reason=reason)
    if end.is_draw:
        return tr("A draw: {reason}.", reason=reason)
    return tr("Broken off: {reason}.", reason=reason)


def result_text(session: GameSession) -> str:
    """Return how a game ended, as "You win" or "You lose" if one person played it."""
    assert session.end is not None
    if len(session.people) != 1 or session.end.winner is None:
        return end_text(session.end)
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
    side = side_text(session.turn)
    if len(session.people) == 1:
        text = tr("Your move, {side}.", side=side)
    else:
        text = tr("{side} to move.", side=side)
    return f"{text} {tr('Check!')}" if session.game.in_check else text
