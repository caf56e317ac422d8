"""Buttons that pause, resume and reset a run, where the dashboard is allowed to control runs."""

from typing import Final

from nicegui import ui

from keisei.errors import KeiseiError
from keisei.runs.control import RunCommand, control_run, is_paused
from keisei.runs.folder import OutsideError, RunsFolder
from keisei.web.dashboard.run_messages import message_text
from keisei.web.languages import mark, tr
from keisei.web.theme import toast

_ANSWERS: Final = {
    "pause": mark("{name} pauses until it is resumed"),
    "resume": mark("{name} continues"),
    "reset": mark("{name} abandons its games in progress and begins new ones"),
}
"""What a command does, as `control_run` says it in English."""


class ControlButtons:
    """The buttons of one run. Hidden unless it is training."""

    def __init__(self, folder: RunsFolder, name: str) -> None:
        self._folder, self._name = folder, name
        with ui.element("div").classes("d-row").mark("control") as self._row:
            self._pause = self._button(tr("Pause"), "pause")
            self._resume = self._button(tr("Resume"), "resume")
            self._reset = self._button(tr("New games"), "reset").tooltip(
                tr("Abandon the games in progress and begin new ones")
            )
        self._row.style("margin-bottom: 10px").set_visibility(False)

    def show(self, *, is_running: bool) -> None:
        """Show the buttons that make sense now."""
        self._row.set_visibility(is_running)
        if is_running:
            paused = is_paused(self._folder.path / self._name)
            self._pause.set_visibility(not paused)
            self._resume.set_visibility(paused)

    def _button(self, text: str, command: RunCommand) -> ui.button:
        button = ui.button(text, on_click=lambda: self._give(command))
        return button.props('dense no-caps outline size=12px padding="3px 10px"')

    def _give(self, command: RunCommand) -> None:
        try:
            control_run(self._folder.run(self._name), command)
            toast(tr(_ANSWERS[command], name=self._name), kind="positive")
        except (KeiseiError, OutsideError) as error:
            toast(message_text(str(error)))
        self.show(is_running=True)
