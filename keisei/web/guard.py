"""What stands between the network and the pages: who may ask, and how much they may send.

A page on 127.0.0.1 can be reached by every web page that the user's browser opens. So each request
must name this machine as its host (a foreign name that was made to point here, DNS rebinding, does
not), must not come from a page of another origin, and must be small. Where other machines can
reach the pages, it must bring a token as well.
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
"""The largest request, uploads included: a game of 500 moves has 30 kB as KIF."""

COOKIE: Final = "keisei-token"

_FOREIGN: Final = "Requests of other sites' pages are not answered."

_LOOPBACK_NAMES: Final = frozenset({"localhost"})

_HEADERS: Final = (
    # Everything comes from here: a page that would ask another server for anything is broken.
    # NiceGUI compiles its templates in the browser, which is what 'unsafe-eval' is needed for.
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
    """Whether a host to listen on can be reached from this machine only."""
    if host.lower() in _LOOPBACK_NAMES:
        return True
    address = _address(host)
    return address is not None and address.is_loopback


class Guard:
    """An ASGI application that lets through to another one what may pass."""

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
            app: what is guarded.
            host: what the server listens on; decides under which names it may be addressed.
            token: what a visitor has to bring; None: nothing.
            cookie: the name under which browsers keep the token.
            max_bytes: of a request's body.
        """
        self._app = app
        self._names = _names_of(host)
        self._only_loopback = is_loopback(host)
        self._token = token
        self._cookie = cookie
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or have it answered."""
        if scope["type"] not in ("http", "websocket"):  # start and end of the server
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        refusal = self._why_not(scope, headers)
        if refusal is not None:
            await _refuse(scope, send, *refusal)
            return
        if self._token is not None and not self._has_cookie(headers.get("cookie", "")):
            await self._welcome(scope, send, self._token)
            return
        await self._app(scope, receive, _with_headers(send))

    def _why_not(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Status and reason of a refusal, None where there is nothing to object to."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            return 421, f"This is not {host or 'a host without a name'}. Use the printed address."
        origin = headers.get("origin")
        if origin is not None and origin.lower().partition("://")[2] != host.lower():
            return 403, _FOREIGN
        if scope["type"] == "websocket":  # these always have an origin
            return None
        if _is_part_of_another_page(headers):
            return 403, _FOREIGN
        if "transfer-encoding" in headers:  # whatever it says about its length besides
            return 411, "Say how long it is."
        length = headers.get("content-length", "0")
        if not _is_at_most(length, self._max_bytes):
            return 413, f"At most {self._max_bytes} bytes are accepted."
        return None

    def _is_ours(self, host: str) -> bool:
        """Whether a ``Host`` header names this machine.

        An address in digits is no name that somebody could have made point here.
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
        """Whether the token is among the cookies; those of other programs may be malformed."""
        pairs = (part.strip().partition("=") for part in header.split(";"))
        return any(name == self._cookie and self._is_token(value) for name, _, value in pairs)

    def _is_token(self, text: str) -> bool:
        return self._token is not None and hmac.compare_digest(text.encode(), self._token.encode())

    async def _welcome(self, scope: Scope, send: Send, token: str) -> None:
        """A visitor without a cookie: with the token in the address one is set, or that's it.

        The token leaves the address at once: it must not stay in the history or be copied along.
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
    """Whether a page of another origin asks, for a picture or a frame: these have no ``Origin``.

    Browsers say so of every request. Who follows a link from there to here may.
    """
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return False
    kind = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest", "document")
    return kind != ("navigate", "document")


def _is_at_most(length: str, most: int) -> bool:
    """Whether a ``Content-Length`` is a number, and not a larger one."""
    return length.isdecimal() and len(length) <= len(str(most)) and int(length) <= most


def _names_of(host: str) -> frozenset[str]:
    """The names, not addresses, under which a server on `host` may be addressed."""
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
                (b"connection", b"close"),  # the rest of what is too long is not read
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
