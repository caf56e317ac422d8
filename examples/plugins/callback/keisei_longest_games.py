"""A callback: writes the length of the longest game of each update into the run's directory."""

from pathlib import Path

from keisei.callbacks import Callback, GameEnd, StepEnd, TrainingStart


class LongestGames(Callback):
    """Writes ``longest-games.txt``, one line per update."""

    def __init__(self) -> None:
        self._path = Path()
        self._longest = 0

    def on_training_start(self, event: TrainingStart) -> None:
        """Note where the run is."""
        self._path = event.run_directory / "longest-games.txt"

    def on_game_end(self, event: GameEnd) -> None:
        """Note the length of a game."""
        self._longest = max(self._longest, event.plies)

    def on_step_end(self, event: StepEnd) -> None:
        """Write a line."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{event.progress.update} {self._longest}\n")
        self._longest = 0
