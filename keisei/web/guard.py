"""The guard in front of the pages: which requests are answered, and how large they may be.

Every web page that the user's browser opens can reach a server on 127.0.0.1. So each request must
name this machine as its host (which refuses DNS rebinding: a foreign name that points here), must
not come from a page of another origin, and must be small. If other machines can reach the server,
a request must also have a token.
"""

import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_REQUEST_BYTES: Final = 1 << 20
"""Size limit of a request, uploads included; a game of 500 moves has 30 kB as KIF."""

MAX_HEADER_BYTES: Final = 32 << 10
"""Size limit of the address and the headers of a request."""

COOKIE: Final = "keisei-token"

_FOREIGN: Final = "Requests from pages of other sites are refused."

_LOOPBACK_NAMES: Final = frozenset({"localhost"})

_HEADERS: Final = (
    # Pages load nothing from other servers. NiceGUI compiles its templates in the browser, which
    # needs 'unsafe-eval'.
    (
        b"content-security-policy",
        b"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
        b"frame-ancestors 'none'; form-action 'self'; base-uri 'self'; object-src 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
)


def is_loopback(host: str) -> bool:
    """Return whether a host to listen on can be reached from this machine only."""
    if host.lower() in _LOOPBACK_NAMES:
        return True
    address = _address(host)
    return address is not None and address.is_loopback


class Guard:
    """An ASGI application that passes permitted requests on to another one."""

    def __init__(
        self,
        app: App,
        *,
        host: str = "127.0.0.1",
        token: str | None = None,
        cookie: str = COOKIE,
        max_bytes: int = MAX_REQUEST_BYTES,
    ) -> None:
        """Make a guard.

        Args:
            app: the application to guard.
            host: the address that the server listens on; decides which host names are accepted.
            token: the secret that visitors need; None: none.
            cookie: the name of the cookie in which browsers keep the token.
            max_bytes: size limit of a request's body.
        """
        self._app = app
        self._names = _names_of(host)
        self._only_loopback = is_loopback(host)
        self._token = token
        self._cookie = cookie
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on to the application."""
        if scope["type"] not in ("http", "websocket"):  # startup and shutdown of the server
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(scope, send, *refusal)
            return
        if self._token is not None and not self._has_cookie(headers.get("cookie", "")):
            await self._set_cookie(scope, send, self._token)
            return
        await self._app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return status and reason of a refusal; None if the request is permitted."""
        size = len(scope["path"]) + len(scope["query_string"])
        size += sum(len(name) + len(value) for name, value in scope["headers"])
        if size > MAX_HEADER_BYTES:
            return 431, f"Address and headers are larger than {MAX_HEADER_BYTES} bytes."
        host = headers.get("host", "")
        if not self._is_ours(host):
            return 421, f"Unknown host {host or '(none)'}. Use the address that keisei printed."
        origin = headers.get("origin")
        if origin is not None and origin.lower().partition("://")[2] != host.lower():
            return 403, _FOREIGN
        if scope["type"] == "websocket":  # these always have an origin
            return None
        if _is_part_of_another_page(headers):
            return 403, _FOREIGN
        if "transfer-encoding" in headers:  # even with a Content-Length, which is then ignored
            return 411, "A Content-Length is required."
        length = headers.get("content-length", "0")
        if not _is_at_most(length, self._max_bytes):
            return 413, f"The request is larger than {self._max_bytes} bytes."
        return None

    def _is_ours(self, host: str) -> bool:
        """Return whether a ``Host`` header names this machine.

        A numeric address is safe: unlike a name, it cannot be made to point here.
        """
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        if name is None:
            return False
        if name in self._names:
            return True
        address = _address(name)
        return address is not None and (not self._only_loopback or address.is_loopback)

    def _has_cookie(self, header: str) -> bool:
        """Return whether the cookies have the token; those of other programs may be malformed."""
        pairs = (part.strip().partition("=") for part in header.split(";"))
        return any(name == self._cookie and self._is_token(value) for name, _, value in pairs)

    def _is_token(self, text: str) -> bool:
        return self._token is not None and hmac.compare_digest(text.encode(), self._token.encode())

    async def _set_cookie(self, scope: Scope, send: Send, token: str) -> None:
        """Set the cookie if the address has the token; refuse the request otherwise.

        The redirect removes the token from the address, so that it is not kept in the history or
        shared with the address.
        """
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        is_known = any(name == "token" and self._is_token(value) for name, value in query)
        if scope["type"] != "http" or not is_known:
            await _refuse(scope, send, 401, "Open the address that keisei printed, with its token.")
            return
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        # One slash in front: '//host' and '/\host' would lead to another server.
        place = "/" + quote(scope["path"].lstrip("/\\")) + (f"?{rest}" if rest else "")
        cookie = f"{self._cookie}={token}; Path=/; HttpOnly; SameSite=Lax"
        await send(
            {
                "type": "http.response.start",
                "status": 303,
                "headers": [
                    (b"location", place.encode("ascii")),
                    (b"set-cookie", cookie.encode("latin-1")),
                    *_HEADERS,
                ],
            }
        )
        await send({"type": "http.response.body", "body": b""})


def _is_part_of_another_page(headers: dict[str, str]) -> bool:
    """Return whether a request loads an image or frame for a page of another origin.

    Such requests have no ``Origin``, but browsers mark them. Following a link is permitted.
    """
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return False
    kind = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest", "document")
    return kind != ("navigate", "document")


def _is_at_most(length: str, limit: int) -> bool:
    """Return whether a ``Content-Length`` is a number within a limit."""
    return length.isdecimal() and len(length) <= len(str(limit)) and int(length) <= limit


def _names_of(host: str) -> frozenset[str]:
    """Return the host names (not addresses) that a server on `host` accepts."""
    names = {*_LOOPBACK_NAMES, host.lower()}
    if not is_loopback(host):
        machine = socket.gethostname().lower()
        names |= {machine, f"{machine}.local", machine.partition(".")[0]}
    return frozenset(names)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


async def _refuse(scope: Scope, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", b"text/plain; charset=utf-8"),
                (b"connection", b"close"),  # a request that is too large is not read
                *_HEADERS,
            ],
        }
    )
    await send({"type": "http.response.body", "body": f"{reason}\n".encode()})


def _with_headers(send: Send) -> Send:
    async def send_more(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers: Iterable[tuple[bytes, bytes]] = message.get("headers", ())
            message = {**message, "headers": [*headers, *_HEADERS]}
        await send(message)

    return send_more
