"""Serving pages to the browser: on this machine alone, or with a token.

A page is a function that NiceGUI's ``@ui.page`` knows; `serve` calls what registers them, then
answers until Ctrl-C:

>>> def pages() -> None:
...     @ui.page("/")
...     def index() -> None:
...         ui.label("Hello")
>>> serve(pages, title="Hello")  # doctest: +SKIP
"""

import os
import secrets
import socket
import string
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Final

from rich.console import Console
from rich.text import Text

from keisei.errors import KeiseiError
from keisei.web.guard import (
    COOKIE,
    MAX_REQUEST_BYTES,
    App,
    Guard,
    is_loopback,
)

LOOPBACK: Final = "127.0.0.1"

DEFAULT_PORT: Final = 8360
"""Where the first server listens; the next ones on the ports that follow."""

_ALL_OF_IPV4: Final = "0.0.0.0"
_ALL_OF_IPV6: Final = "::"
_TRIED_PORTS: Final = 20
_LAST_PORT: Final = 65535
_GOODBYE_SECONDS: Final = 2
_MIN_TOKEN_LENGTH: Final = 8
_TOKEN_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "-_.~")


def is_installed() -> bool:
    """Whether the extra ``web`` is there."""
    return find_spec("nicegui") is not None


def require_installed() -> None:
    """Say what to do where the extra ``web`` is missing."""
    if not is_installed():
        raise KeiseiError("this needs the extra 'web': pip install 'keisei[web]'")


def serve(
    build_pages: Callable[[], None],
    *,
    title: str,
    host: str = LOOPBACK,
    port: int | None = None,
    token: str | None = None,
    open_browser: bool = True,
    max_request_bytes: int = MAX_REQUEST_BYTES,
    console: Console | None = None,
) -> None:
    """Serve pages until Ctrl-C.

    Args:
        build_pages: registers the pages; called once.
        title: of pages that have none of their own.
        host: what to listen on; anything but loopback is guarded by a token.
        port: where; 0: any that is free; None: the first free one from `DEFAULT_PORT` on.
        token: what visitors must bring; made up where one is needed and none is given.
        open_browser: show the page in the user's browser, where there is a screen.
        max_request_bytes: of a request's body, uploads included.
        console: where the address is printed.

    Raises:
        KeiseiError: The port is taken, the host is not this machine's, the token is too short.
    """
    require_installed()
    token = _checked(token)
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(16)
    with listen(host, port) as listener:
        address = address_of(listener, host, token)
        cookie = f"{COOKIE}-{listener.getsockname()[1]}"  # cookies know no ports
        app = _application(build_pages, title)
        guard = Guard(app, host=host, token=token, cookie=cookie, max_bytes=max_request_bytes)
        console = console or Console()
        console.print(Text(f"{title}: {address}\nCtrl-C ends it."), soft_wrap=True)
        if open_browser and _has_screen():
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        _answer(guard, listener)


def listen(host: str = LOOPBACK, port: int | None = None) -> socket.socket:
    """A socket that browsers can connect to."""
    if port is not None and not 0 <= port <= _LAST_PORT:
        raise KeiseiError(f"port {port}: a port is from 0 to {_LAST_PORT}")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except (socket.gaierror, UnicodeError):
        raise KeiseiError(f"there is no host {host!r}") from None
    # '::' means all addresses, those of IPv4 too, wherever one socket can have both.
    both = host == _ALL_OF_IPV6 and socket.has_dualstack_ipv6()
    ports = [port] if port is not None else [*range(DEFAULT_PORT, DEFAULT_PORT + _TRIED_PORTS), 0]
    for tried in ports:
        try:
            return socket.create_server((host, tried), family=family, dualstack_ipv6=both)
        except OSError as error:
            reason = error
    hint = "; another --port may be free" if port else ""
    raise KeiseiError(f"cannot listen on {_in_url(host)}:{ports[-1]}: {reason.strerror}{hint}")


def address_of(listener: socket.socket, host: str, token: str | None) -> str:
    """What to type into a browser."""
    port = listener.getsockname()[1]
    if host in (_ALL_OF_IPV4, _ALL_OF_IPV6):
        host = _own_address(listener)
    return f"http://{_in_url(host)}:{port}/" + (f"?token={token}" if token else "")


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _own_address(listener: socket.socket) -> str:
    """Under which address other machines reach a socket; this one's name if there is no network.

    A UDP socket that is connected sends nothing, but knows from where it would.
    """
    # Addresses that are reserved for documentation.
    anybody = [(socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")]
    if listener.family == socket.AF_INET:
        del anybody[1]
    elif listener.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY):
        del anybody[0]
    for family, address in anybody:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.connect((address, 9))
            return str(sender.getsockname()[0])
    return socket.gethostname()


def _checked(token: str | None) -> str | None:
    if token is None:
        return None
    if len(token) < _MIN_TOKEN_LENGTH or not _TOKEN_CHARACTERS.issuperset(token):
        raise KeiseiError(
            f"a token has at least {_MIN_TOKEN_LENGTH} letters, digits and -_.~, for example "
            f"{secrets.token_urlsafe(16)}"
        )
    return token


def _application(build_pages: Callable[[], None], title: str) -> App:
    from fastapi import FastAPI
    from nicegui import ui

    from keisei.web.theme import FAVICON

    app = FastAPI(openapi_url=None)  # the interface is the pages
    build_pages()
    ui.run_with(
        app,
        title=title,
        favicon=FAVICON,
        dark=None,
        tailwind=False,  # its compiler runs in the browser and is slow on a phone
        show_welcome_message=False,
        reconnect_timeout=10.0,
    )
    return app


def _answer(app: App, listener: socket.socket) -> None:
    """Run the server until it is interrupted; pages that are open are told goodbye."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        ws="wsproto",
        ws_max_size=MAX_REQUEST_BYTES,  # which its releases before 0.46 do not mind
        timeout_graceful_shutdown=_GOODBYE_SECONDS,
        server_header=False,
    )
    with suppress(KeyboardInterrupt):  # it is raised again after everything was closed
        uvicorn.Server(config).run(sockets=[listener])


def _has_screen() -> bool:
    """Whether a browser with windows can be there: one of text would take the terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
