"""A game in the terminal: a board, a prompt, moves typed in USI, western or Japanese notation."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from keisei.analysis.position_analysis import SHOWN_CANDIDATES, Candidate
from keisei.errors import IllegalMoveError, KeiseiError, NotationError
from keisei.play.opponent import Opponent
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.files import save_game
from keisei.shogi.notation.move_input import parse_move
from keisei.shogi.notation.record import Ending, GameRecord
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.render.text import board_rich
from keisei.shogi.rules import Outcome, Termination
from keisei.shogi.types import Color

HELP: Final = """\
A move is written as in USI (7g7f moves, 8h2b+ promotes, P*5e drops a pawn), in western notation
(P-7f, Bx2b+, S-3c=) or in Japanese (７六歩, 76歩, 同銀成).
  moves        the legal moves
  hint         the network's candidate moves, if it has a network
  back         take back your last move
  declare      declare a win by the entering-king rule
  save FILE    save the game as .kif or .csa
  resign       resign the game
  quit         leave"""


class TerminalGame:
    """A game of a person against an opponent."""

    def __init__(
        self,
        opponent: Opponent,
        console: Console,
        *,
        color: Color,
        lettering: Lettering = "kanji",
        game: ShogiGame | None = None,
    ) -> None:
        self.opponent = opponent
        self.console = console
        self.color = color
        self.lettering: Lettering = lettering
        self.game = game or ShogiGame()
        self._result: str | None = None
        self._commands: dict[str, Callable[[str], bool]] = {
            "moves": self._list_moves,
            "hint": self._hint,
            "back": self._take_back,
            "declare": self._declare,
            "save": self._save,
            "resign": self._resign,
            "help": self._help,
        }

    def play(self, ask: Callable[[str], str]) -> str | None:
        """Play until the end and return the result as text; None if the person left.

        `ask` takes a prompt and returns the line that was typed, or raises EOFError.
        """
        self.console.print(Text(f"You are {_name(self.color)}. Type help for help."))
        while (result := self._result or self._result_of(self.game.outcome())) is None:
            if self.game.turn != self.color:
                self._play_opponent()
                continue
            self._show()
            if not self._take_turn(ask):
                return None
        self._show()
        self.console.print(Text(result, style="bold"))
        self._offer_saving(ask)
        return result

    def _offer_saving(self, ask: Callable[[str], str]) -> None:
        """Save the finished game on request; any other input leaves."""
        while True:
            try:
                command, _, name = ask("save FILE, or Enter to leave> ").strip().partition(" ")
                if command != "save":
                    return
                self._save(name.strip())
            except (EOFError, KeyboardInterrupt):
                return
            except KeiseiError as error:
                self.console.print(Text(str(error), style="red"))

    def _take_turn(self, ask: Callable[[str], str]) -> bool:
        """Prompt until a move is made or the game is over; return False if the person leaves."""
        while True:
            try:
                line = ask("your move> ").strip()
            except (EOFError, KeyboardInterrupt):
                return False
            command, _, rest = line.partition(" ")
            if command in ("quit", "exit", "q"):
                return False
            try:
                if command in self._commands:
                    if self._commands[command](rest.strip()):
                        return True
                elif line:
                    self.game.push(parse_move(self.game, line))
                    return True
            except (IllegalMoveError, NotationError) as error:
                self.console.print(Text(f"{error} (help lists what can be typed)", style="red"))
            except KeiseiError as error:
                self.console.print(Text(str(error), style="red"))

    def _play_opponent(self) -> None:
        analysis = self.opponent.analyze(self.game)
        answer = self.opponent.choose(self.game)
        if isinstance(answer, Ending):
            self._result = self._ended_by_opponent(answer)
            return
        self.game.push(answer)
        text = f"{self.opponent.name} plays {answer.usi}"
        if analysis is not None:
            text += f", it expects {analysis.chances(analysis.turn):.0%} of the points"
        self.console.print(Text(text))

    def _ended_by_opponent(self, answer: Ending) -> str:
        """Return the result where the opponent ends the game instead of moving."""
        winner = answer.winner(self.game.turn)
        how = f"{self.opponent.name}: {answer.value}"
        if winner is None:
            return f"Broken off: {how}."
        return f"You {'win' if winner == self.color else 'lose'}: {how}."

    def _show(self) -> None:
        board = board_rich(self.game.diagram, style=self.lettering, last_move=self.game.last_move)
        self.console.print()
        self.console.print(board)

    def _help(self, _: str) -> bool:
        self.console.print(Text(HELP))
        return False

    def _list_moves(self, _: str) -> bool:
        self.console.print(Text(" ".join(sorted(move.usi for move in self.game.legal_moves))))
        return False

    def _hint(self, _: str) -> bool:
        analysis = self.opponent.analyze(self.game)
        if analysis is None:
            self.console.print(Text(f"{self.opponent.name} has no network"))
        else:
            self.console.print(Text(_text(analysis.candidates[:SHOWN_CANDIDATES])))
        return False

    def _take_back(self, _: str) -> bool:
        """Go back to before the person's last move."""
        if len(self.game.moves) < 2:
            self.console.print(Text("there is nothing to take back", style="red"))
            return False
        self.game.pop()
        self.game.pop()
        self._show()
        return False

    def _declare(self, _: str) -> bool:
        outcome = self.game.outcome(claim_declaration=True)
        if outcome is None or outcome.termination is not Termination.DECLARATION:
            self.console.print(Text("the rule is not fulfilled: nothing declared", style="red"))
            return False
        self._result = self._result_of(outcome)
        return True

    def _resign(self, _: str) -> bool:
        self._result = "You lose: you resigned."
        return True

    def _save(self, name: str) -> bool:
        if not name:
            self.console.print(Text("save needs the name of a .kif or .csa file", style="red"))
            return False
        names = {self.color: "you", self.color.opponent: self.opponent.name}
        headers = {header.BLACK: names[Color.BLACK], header.WHITE: names[Color.WHITE]}
        save_game(GameRecord.from_game(self.game, headers=headers), Path(name))
        self.console.print(Text(f"saved to {name}"))
        return False

    def _result_of(self, outcome: Outcome | None) -> str | None:
        if outcome is None:
            return None
        how = outcome.termination.words
        if outcome.winner is None:
            return f"A draw: {how}."
        return f"You {'win' if outcome.winner == self.color else 'lose'}: {how}."


def _text(candidates: Iterable[Candidate]) -> str:
    return ", ".join(
        f"{candidate.move.usi} {candidate.probability:.0%}" for candidate in candidates
    )


def _name(color: Color) -> str:
    return "Black (sente), and move first" if color is Color.BLACK else "White (gote)"
