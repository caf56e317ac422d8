"""The guard in front of the pages: which requests are answered, and how large they may be.

Every web page that the user's browser opens can reach a server on 127.0.0.1. So each request must
name this machine as its host (which refuses DNS rebinding: a foreign name that points here), must
not come from a page of another origin, and must be small. If other machines can reach the server,
a request must also have a token.
"""

import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from html import escape
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from keisei.web.languages import LANGUAGE_COOKIE, language_of, mark, translated

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_REQUEST_BYTES: Final = 1 << 20
"""Size limit of a request, uploads included; a game of 500 moves has 30 kB as KIF."""

MAX_HEADER_BYTES: Final = 32 << 10
"""Size limit of the address and the headers of a request."""

COOKIE: Final = "keisei-token"

_FOREIGN: Final = mark("Requests from pages of other sites are refused.")
_NO_TOKEN: Final = mark("Open the address that keisei printed, with its token.")
_OTHER_HOST: Final = mark("This server has another name. Open the address that keisei printed.")
_LONG_HEADERS: Final = mark("Address and headers are larger than {size} bytes.")
_LARGE: Final = mark("The request is larger than {size} bytes.")
_NO_LENGTH: Final = mark("A Content-Length is required.")
_TITLE: Final = mark("This page cannot be opened")

_PAGE: Final = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Keisei</title>
<style>:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
main {{ max-width: 32em; margin: 4em auto; padding: 0 1em; }}</style>
</head>
<body><main><h1>{title}</h1><p>{reason}</p></main></body>
</html>
"""
"""The page of a refusal; it needs nothing from the server, which would refuse that too."""

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


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: int
    reason: str
    size: int = 0
    """The limit that the reason names, in bytes."""


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
            await _refuse(scope, send, refusal, headers)
            return
        if self._token is not None and not self._has_cookie(headers.get("cookie", "")):
            await self._set_cookie(scope, send, self._token, headers)
            return
        await self._app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> Refusal | None:
        """Return why a request is refused; None if it is permitted."""
        size = len(scope["path"]) + len(scope["query_string"])
        size += sum(len(name) + len(value) for name, value in scope["headers"])
        if size > MAX_HEADER_BYTES:
            return Refusal(431, _LONG_HEADERS, MAX_HEADER_BYTES)
        host = headers.get("host", "")
        if not self._is_ours(host):
            return Refusal(421, _OTHER_HOST)
        origin = headers.get("origin")
        if origin is not None and origin.lower().partition("://")[2] != host.lower():
            return Refusal(403, _FOREIGN)
        if scope["type"] == "websocket":  # these always have an origin
            return None
        if _is_part_of_another_page(headers):
            return Refusal(403, _FOREIGN)
        if "transfer-encoding" in headers:  # even with a Content-Length, which is then ignored
            return Refusal(411, _NO_LENGTH)
        length = headers.get("content-length", "0")
        if not _is_at_most(length, self._max_bytes):
            return Refusal(413, _LARGE, self._max_bytes)
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
        """Return whether the cookies have the token."""
        return any(self._is_token(value) for value in _cookies(header, self._cookie))

    def _is_token(self, text: str) -> bool:
        return self._token is not None and hmac.compare_digest(text.encode(), self._token.encode())

    async def _set_cookie(
        self, scope: Scope, send: Send, token: str, headers: dict[str, str]
    ) -> None:
        """Set the cookie if the address has the token; refuse the request otherwise.

        The redirect removes the token from the address, so that it is not kept in the history or
        shared with the address.
        """
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        is_known = any(name == "token" and self._is_token(value) for name, value in query)
        if scope["type"] != "http" or not is_known:
            await _refuse(scope, send, Refusal(401, _NO_TOKEN), headers)
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


def _cookies(header: str, name: str) -> Iterator[str]:
    """Yield the values of a cookie; cookies of other programs may be malformed."""
    for part in header.split(";"):
        found, _, value = part.strip().partition("=")
        if found == name:
            yield value


async def _refuse(scope: Scope, send: Send, refusal: Refusal, headers: dict[str, str]) -> None:
    """Answer with the reason: a page for a browser that opens one, plain text for others."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    cookie = next(_cookies(headers.get("cookie", ""), LANGUAGE_COOKIE), "")
    language = language_of(cookie, headers.get("accept-language", ""))
    reason = translated(language, refusal.reason, size=refusal.size)
    kind, text = b"plain", f"{reason}\n"
    if "text/html" in headers.get("accept", ""):
        title = translated(language, _TITLE)
        kind = b"html"
        text = _PAGE.format(language=language, title=escape(title), reason=escape(reason))
    await send(
        {
            "type": "http.response.start",
            "status": refusal.status,
            "headers": [
                (b"content-type", b"text/" + kind + b"; charset=utf-8"),
                (b"connection", b"close"),  # a request that is too large is not read
                *_HEADERS,
            ],
        }
    )
    await send({"type": "http.response.body", "body": text.encode()})


def _with_headers(send: Send) -> Send:
    async def send_more(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers: Iterable[tuple[bytes, bytes]] = message.get("headers", ())
            message = {**message, "headers": [*headers, *_HEADERS]}
        await send(message)

    return send_more
