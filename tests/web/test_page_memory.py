"""Pages that no browser opens are dropped soon, and what has gone is collected."""

import time
from types import SimpleNamespace

import pytest

pytest.importorskip("nicegui")

from nicegui import Client

from keisei.web import page_memory
from keisei.web.page_memory import PageSweep


class FakePages:
    """Stands for NiceGUI's clients, and counts collections."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.collections = 0
        self.instances: dict[str, SimpleNamespace] = {}
        monkeypatch.setattr(Client, "instances", self.instances)
        collector = SimpleNamespace(collect=self._collect, freeze=lambda: None)
        monkeypatch.setattr(page_memory, "gc", collector)

    def _collect(self) -> None:
        self.collections += 1

    def add(self, name: str, *, age: float, is_open: bool = False) -> None:
        self.instances[name] = SimpleNamespace(
            id=name,
            created=time.time() - age,
            has_socket_connection=is_open,
            _delete_tasks={},
            delete=lambda: self.instances.pop(name),
        )


def test_pages_without_a_browser_go_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = FakePages(monkeypatch)
    sweep = PageSweep(unopened_seconds=20.0)
    pages.add("new", age=1.0)
    pages.add("left", age=30.0)
    pages.add("open", age=3000.0, is_open=True)
    sweep()
    assert set(pages.instances) == {"new", "open"}
    assert pages.collections == 2, "one at the start, one for the page that has gone"


def test_memory_is_collected_only_when_a_page_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = FakePages(monkeypatch)
    sweep = PageSweep()
    pages.add("open", age=1.0, is_open=True)
    sweep()
    sweep()
    assert pages.collections == 1
    del pages.instances["open"]  # its browser has gone
    sweep()
    sweep()
    assert pages.collections == 2
