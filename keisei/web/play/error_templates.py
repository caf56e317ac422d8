"""Texts of the errors that people can meet, as the packages that raise them write them in English.

A place may hold anything but a colon, and ``{text}`` a quotation, with colons or without.
"""

from typing import Final

from keisei.web.languages import mark
from keisei.web.rooms import NO_NETWORK

PLACES: Final = (
    mark("line {line}, column {column}"),
    mark("line {line}"),
    mark("column {column}"),
    mark("move {number} of the list"),
    mark("move {number}, {move}"),
    mark("{move} is illegal"),
    mark("no game can start here"),
)
"""What stands before an error and a colon: where it is, or what it spoils."""

POSITIONS: Final = (
    mark("{side} has {number} kings"),
    mark("there is no king on the board"),
    mark("{side}'s king is missing: networks analyse positions with both kings"),
    mark("{side} has two pawns on file {number} (nifu)"),
    mark("the {piece} on {square} could never move again"),
    mark("{total} pieces of kind {kind}, but a set has {number}"),
    mark("{side} is in check and it is not {other}'s turn"),
    mark("the game is over here: {side} has no legal move"),
)
"""Why a position cannot be played."""

_PLAY: Final = (
    # keisei.play.session, keisei.shogi.game
    mark("there is no move to take back"),
    mark("the game is over"),
    mark("the game is over already"),
    mark("a win can't be declared: the king, 10 pieces and the points, all in the enemy's camp, "
         "and no check"),
    mark("the game has reached ply {number}, the maximum"),
    # keisei.play.transfer, keisei.play.uploads
    mark("the game takes too long to read"),
    mark("the process that reads games has ended; try it again"),
    mark("a game has at most {size} kB"),
    mark("the game has {number} moves; up to {limit} can be shown"),
    # keisei.play.saved_games, keisei.web.play
    mark("cannot make {folder}: {details}"),
    mark("cannot write {file}: {details}"),
    NO_NETWORK,
    mark("there is no player {player} to choose"),
    mark("something went wrong: {details}; see the log"),
)  # fmt: skip

_LEGALITY: Final = (
    mark("{side} has no {piece} in hand"),
    mark("{square} is occupied; pieces are dropped on empty squares"),
    mark("a {piece} dropped on {square} could never move again"),
    mark("nifu: {side} already has a pawn on file {file}"),
    mark("{side} would still be in check"),
    mark("uchifuzume: a pawn dropped on {square} would be mate"),
    mark("there is no piece on {square}"),
    mark("the {piece} on {square} is {side}'s, and it is the other side's turn"),
    mark("{square} holds a piece of {side}'s own"),
    mark("a {piece} cannot go from {origin} to {target}"),
    mark("a {piece} does not promote"),
    mark("neither {origin} nor {target} is in the promotion zone"),
    mark("the {piece} must promote on {square}: it could never move again"),
    mark("the king would be in check on {square}"),
    mark("the {piece} on {square} is pinned: moving it would expose {side}'s king"),
    mark("there is no piece to move"),
)
"""Why a move is illegal, after the move."""

_SFEN: Final = (
    mark("{text} is not a USI move; expected something like '7g7f', '8h2b+' or 'P*5e'"),
    mark("only P L N S G B R can be dropped, not {text}"),
    mark("origin and target are the same square"),
    mark("{text} after 'startpos'; only 'moves' can follow"),
    mark("an SFEN has a board, a side to move, hands and a move number; got {number} fields"),
    mark("the board has {number} ranks, it must have 9"),
    mark("rank {text} has {number} squares, it must have 9"),
    mark("{text} is neither a piece nor a number of empty squares"),
    mark("the side to move is {text}, it must be 'b' or 'w'"),
    mark("{text} is not a piece in hand; expected something like 'S2Pb3p' or '-'"),
    mark("{text} is not a move number"),
    mark("move number {number} is above {limit}"),
    mark("there is no game; expected lines such as: startpos moves 7g7f 3c3d"),
)

_JAPANESE: Final = (
    # KIF and KI2: headers and diagrams
    mark("{text} is neither a header such as 先手：名前 nor a move"),
    mark("there is no game in this text: no move, no position and no header such as 先手："),
    mark("header {text} cannot be written: it needs a name of letters without another meaning, "
         "and a value of one line"),
    mark("a rank of a diagram must be between two '|'"),
    mark("{text} is not a square; expected ' ・', ' 歩' or 'v歩'"),
    mark("this rank has {number} squares, it must have 9"),
    mark("{text} is not a piece in hand; expected something like 飛 or 歩十二, or なし"),
    mark("the diagram has {number} ranks, it must have 9"),
    mark("a tenth rank; a diagram has nine"),
    mark("pieces in hand need a diagram of the board"),
    mark("{header} needs a diagram of the board"),
    mark("{text} is not a handicap; expected one of {names}"),
    mark("{header}：{text}; expected 先手 or 後手"),
    # moves
    mark("{expected} expected, not {text}"),
    mark("it is {side}'s turn: expected {sign}, not {found}"),
    mark("同 (the same square) needs a move before it"),
    mark("同 means the target of the move before, but this is another square"),
    mark("打 drops a piece from the hand, unpromoted"),
    mark("{move} may promote or not: 成 or 不成 is needed"),
    mark("{move} could be {moves}; 左 右 直 上 寄 or 引 is needed"),
    mark("no {piece} comes from {direction}"),
    mark("no {piece} can legally go there"),
    mark("{text} after the move; only a time such as ( 0:16/00:00:16) can follow"),
    mark("this is move {expected}, not {number}"),
    mark("a variation at move {ply}, but the line before it has {number} moves"),
    mark("a variation at move {ply} of a line of {number} moves"),
    mark("{side} has no piece on {square}"),
    mark("the piece on {square} is {piece}, not {other}"),
    mark("the piece is already on this square"),
    mark("{side} cannot have won by {ending} when it is {mover}'s turn; is a move missing?"),
    mark("the game ended before this ({ending}); nothing can follow"),
    mark("{number} seconds; a move can take at most {limit}"),
)  # fmt: skip

_CSA: Final = (
    mark("{text} is not CSA; statements begin with V N $ P + - T % or '"),
    mark("{text} is not a version; expected 'V2.2' or 'V3.0'"),
    mark("{text} is not a header; expected 'N+name', 'N-name' or '$EVENT:text'"),
    mark("header {text} cannot be written: it needs a name without ':' and a value of one line"),
    mark("there is no game in this text; a CSA game has at least a start, such as 'PI'"),
    mark("headers without a game: a start such as 'PI' must follow"),
    mark("the start position was already given"),
    mark("the side to move was already given"),
    mark("{text}; expected PI, P1 to P9, P+ or P-"),
    mark("PI must be the first line of a position"),
    mark("PI removes pieces from the usual start; there is no {name} on this square"),
    mark("rank {number} is given twice"),
    mark("a rank has nine squares of three characters"),
    mark("{text} is not a square; expected ' * ' or a piece such as '+FU'"),
    mark("{square} is not a square; expected 11 to 99, or 00 for the hand"),
    mark("square {square} is already occupied"),
    mark("{text} is not a piece; expected something like 76FU"),
    mark("{name} cannot be held in hand"),
    mark("AL (all remaining pieces) goes to the hand: 00AL"),
    mark("00AL gave all remaining pieces to a hand; it must be last"),
    mark("{text} is not a move; expected something like '+7776FU'"),
    mark("it is {side}'s turn: expected {text}"),
    mark("{name} cannot be dropped"),
    mark("the piece on {square} is {name}; it cannot be {other} after the move"),
    mark("{text} is not a time; expected seconds, as in 'T12' or 'T12.345'"),
    mark("a time must follow a move"),
)

_WESTERN: Final = (
    mark("{text} is not a move; expected something like 7g7f, P-7f or ７六歩"),
    mark("{text} after the move"),
    mark("there is no game in this text: no move such as P-7f, Bx2b+ or P*5e, and no header"),
    mark("no {piece} of {side} can legally go there"),
    mark("there is nothing to capture on {square}"),
    mark("{move} may promote or not: + or = is needed"),
    mark("{move} could be {moves}; name the origin, as in G4i-5h"),
    mark("a piece is dropped unpromoted, as in P*5e"),
)
"""English records, and moves that people type."""

_FILES: Final = (
    mark("not text in UTF-8, Shift-JIS or EUC-JP; save the file as UTF-8"),
    mark("this line has {number} characters; a game file has at most {limit} in a line"),
    # keisei.shogi.notation.game_tree
    mark("a game with variations has up to {limit} moves here, not {number}"),
    mark("nothing can follow the end of a game"),
    mark("the start of a game cannot be removed"),
    mark("nothing was removed that could be put back"),
)

EXPECTED: Final = (
    mark("the number of a move"),
    mark("the origin in brackets, as in (77), or 打"),
    mark("a square such as ７六, or 同,"),
    mark("a piece such as 歩 or 成銀"),
    mark("a blank or the next move"),
    mark("a move such as P-7f, Bx2b+ or P*5e"),
)
"""What stands in the place ``{expected}``."""

ERRORS: Final = (
    *_PLAY, *_LEGALITY, *POSITIONS, *_SFEN, *_JAPANESE, *_CSA, *_WESTERN, *_FILES,
)  # fmt: skip
"""Messages, with the places of what differs."""
