"""A page as a browser has it, without a browser: its elements, its WebSocket, its uploads."""

import json
import re
import socket
import time
import uuid
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, RejectConnection, Request, TextMessage

from tests.web.conftest import Server

UPDATE_SECONDS = 0.1
"""In which the server sends what has been added to a page."""

TIMEOUT = 20.0
"""Seconds that the server may take for an answer."""

CONNECT = "40"
EVENT = "42"
ACKNOWLEDGED = "43"
"""Kinds of messages of socket.io."""


class LivePage:
    """A page whose WebSocket is open, as a context."""

    def __init__(self, server: Server, path: str = "/") -> None:
        self._server = server
        status, html = server.request(path)
        assert status == 200
        elements = re.search(r"String\.raw`(\{.*?\})`\)", html, re.DOTALL)
        client = re.search(r"'client_id': '([\w-]+)'", html)
        assert elements is not None
        assert client is not None
        self._elements: dict[str, Any] = json.loads(elements[1])
        self._client = client[1]
        self._connection = WSConnection(ConnectionType.CLIENT)

    def __enter__(self) -> Self:
        """Open the WebSocket, as the page's script does."""
        parts = urlsplit(self._server.address)
        self._wire = socket.create_connection((parts.hostname or "", parts.port or 0), TIMEOUT)
        query = {
            "EIO": 4, "transport": "websocket", "client_id": self._client, "next_message_id": 0,
            "implicit_handshake": "true", "document_id": uuid.uuid4(), "tab_id": uuid.uuid4(),
        }  # fmt: skip
        target = f"/_nicegui_ws/socket.io/?{urlencode(query)}"
        self._wire.sendall(self._connection.send(Request(host=parts.netloc, target=target)))
        self._messages = self._received()
        next(self._messages)  # what engine.io begins with
        self._send(CONNECT)
        self.wait_for(CONNECT)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Go away without a word, as people do."""
        self._wire.close()

    def click(self, tool: str) -> None:
        """Click on what has this ``data-tool``."""
        for number, element in self._elements.items():
            if element.get("props", {}).get("data-tool") == tool:
                for event in element["events"]:
                    listener = {"id": int(number), "listener_id": event["listener_id"]}
                    fields = listener | {"client_id": self._client, "args": []}
                    self._send(EVENT + json.dumps(["event", fields]))

    def send_to_all(self, arguments: str) -> int:
        """Send every listener of the page an event with this JSON; return how many there are."""
        self._acknowledge()
        time.sleep(UPDATE_SECONDS)
        listeners = 0
        self._acknowledge()  # what was added to the page after it was opened has arrived
        for number, element in self._elements.items():
            for event in element.get("events", ()):
                listeners += 1
                fields = {
                    "id": int(number),
                    "listener_id": event["listener_id"],
                    "client_id": self._client,
                    "args": [arguments],
                }
                self._send(EVENT + json.dumps(["event", fields]))
        self._acknowledge()
        return listeners

    def _acknowledge(self) -> None:
        """Wait until the server has handled everything before this event, which nobody hears."""
        fields: dict[str, object] = {"id": -1, "client_id": self._client, "args": []}
        self._send(EVENT + "1" + json.dumps(["event", fields]))
        self.wait_for(rf"^{ACKNOWLEDGED}1\[")

    def upload(self, game: str, name: str) -> None:
        """Send a file, as the dialog does that has just been opened."""
        address = self.wait_for(rf"/_nicegui/client/{self._client}/upload/\d+")
        mark = uuid.uuid4().hex
        body = (
            f"--{mark}\r\n"
            f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n'
            f"Content-Type: text/plain\r\n\r\n{game}\r\n--{mark}--\r\n"
        )
        kind = f"multipart/form-data; boundary={mark}"
        status, _ = self._server.request(
            address, method="POST", body=body.encode(), Content_Type=kind
        )
        assert status == 200

    def wait_for(self, pattern: str) -> str:
        """Return what matches in the next message that does."""
        for message in self._messages:
            self._learn(message)
            if found := re.search(pattern, message):
                return found[0]
        raise AssertionError(f"the server closed the connection before it sent {pattern}")

    def _learn(self, message: str) -> None:
        """Remember elements that the server adds to the page."""
        if message.startswith(EVENT + '["update",'):
            for number, element in json.loads(message.removeprefix(EVENT))[1].items():
                if isinstance(element, dict):
                    self._elements[number] = element

    def _send(self, text: str) -> None:
        self._wire.sendall(self._connection.send(TextMessage(text)))

    def _received(self) -> Iterator[str]:
        """Yield the messages."""
        text = ""
        while data := self._wire.recv(1 << 16):
            self._connection.receive_data(data)
            for event in self._connection.events():
                assert not isinstance(event, RejectConnection)
                if isinstance(event, AcceptConnection):
                    continue
                if isinstance(event, TextMessage):
                    text += event.data
                    if event.message_finished:
                        yield text
                        text = ""
