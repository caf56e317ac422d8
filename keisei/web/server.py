"""The web server: serves pages to this machine only, or to others with a token.

A page is a function registered with NiceGUI's ``@ui.page``; `serve` calls a function that registers
all pages, then runs until Ctrl-C:

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
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from keisei.errors import KeiseiError
from keisei.web.guard import (
    COOKIE,
    MAX_HEADER_BYTES,
    MAX_REQUEST_BYTES,
    App,
    Guard,
    is_loopback,
)

if TYPE_CHECKING:
    import uvicorn

LOOPBACK: Final = "127.0.0.1"

PROBLEMS_ADDRESS: Final = "/tsume"
"""Address of the page with mate problems, on the servers of the board and of the dashboard."""

DEFAULT_PORT: Final = 8360
"""Port of the first server; further ones use the ports that follow."""

_ALL_OF_IPV4: Final = "0.0.0.0"
_ALL_OF_IPV6: Final = "::"
_MAX_PORTS: Final = 20
_MAX_PORT: Final = 65535
_SHUTDOWN_TIMEOUT: Final = 2
_MIN_TOKEN_LENGTH: Final = 8
_TOKEN_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "-_.~")


def is_installed() -> bool:
    """Return whether the extra ``web`` is installed."""
    return find_spec("nicegui") is not None


def require_installed() -> None:
    """Raise a `KeiseiError` that names the extra ``web`` if it is not installed."""
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
        title: title of pages that have none of their own.
        host: address to listen on; any but loopback requires a token.
        port: port to listen on; 0: any free one; None: the first free one from `DEFAULT_PORT` on.
        token: secret that visitors need; generated if one is required and none is given.
        open_browser: open the page in the user's browser if there is a screen.
        max_request_bytes: size limit of a request's body, uploads included.
        console: where the address is printed.

    Raises:
        KeiseiError: The port is in use, the host is not this machine's, or the token is invalid.
    """
    require_installed()
    token = _checked_token(token)
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(16)
    with listen(host, port) as listener:
        address = address_of(listener, host, token)
        cookie = f"{COOKIE}-{listener.getsockname()[1]}"  # cookies are shared by all ports
        app = _application(build_pages, title)
        guard = Guard(app, host=host, token=token, cookie=cookie, max_bytes=max_request_bytes)
        console = console or Console()
        console.print(Text(f"{title}: {address}\nPress Ctrl-C to stop."), soft_wrap=True)
        if open_browser and _has_screen():
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        _run(guard, listener)


def listen(host: str = LOOPBACK, port: int | None = None) -> socket.socket:
    """Open a socket that browsers can connect to."""
    if port is not None and not 0 <= port <= _MAX_PORT:
        raise KeiseiError(f"port {port}: it must be from 0 to {_MAX_PORT}")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except (socket.gaierror, UnicodeError):
        raise KeiseiError(f"there is no host {host!r}") from None
    # '::' means all addresses, including IPv4 if a socket can have both.
    both = host == _ALL_OF_IPV6 and socket.has_dualstack_ipv6()
    ports = [port] if port is not None else [*range(DEFAULT_PORT, DEFAULT_PORT + _MAX_PORTS), 0]
    for tried in ports:
        try:
            return socket.create_server((host, tried), family=family, dualstack_ipv6=both)
        except OSError as error:
            reason = error
    hint = "; try another --port" if port else ""
    raise KeiseiError(f"cannot listen on {_in_url(host)}:{ports[-1]}: {reason.strerror}{hint}")


def address_of(listener: socket.socket, host: str, token: str | None) -> str:
    """Return the address to open in a browser."""
    port = listener.getsockname()[1]
    if host in (_ALL_OF_IPV4, _ALL_OF_IPV6):
        host = _own_address(listener)
    return f"http://{_in_url(host)}:{port}/" + (f"?token={token}" if token else "")


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _own_address(listener: socket.socket) -> str:
    """Return the address under which other machines reach a socket; without a network the name.

    Connecting a UDP socket sends nothing, but selects the local address it would send from.
    """
    # Remote addresses that are reserved for documentation.
    remote = [(socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")]
    if listener.family == socket.AF_INET:
        del remote[1]
    elif listener.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY):
        del remote[0]
    for family, address in remote:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.connect((address, 9))
            return str(sender.getsockname()[0])
    return socket.gethostname()


def _checked_token(token: str | None) -> str | None:
    if token is None:
        return None
    if len(token) < _MIN_TOKEN_LENGTH or not _TOKEN_CHARACTERS.issuperset(token):
        raise KeiseiError(
            f"a token needs at least {_MIN_TOKEN_LENGTH} letters, digits or characters -_.~, "
            f"such as {secrets.token_urlsafe(16)}"
        )
    return token


def _application(build_pages: Callable[[], None], title: str) -> App:
    from fastapi import FastAPI
    from nicegui import app as pages
    from nicegui import ui

    from keisei.web.not_found import add_not_found_page
    from keisei.web.page_memory import SWEEP_INTERVAL, PageSweep
    from keisei.web.theme import FAVICON, STATIC

    app = FastAPI(openapi_url=None)  # pages only, no API
    pages.add_static_files("/static", STATIC)
    # The bar at the top during requests is a progress bar without a name, and tells nothing here.
    pages.config.quasar_config["loadingBar"]["skipHijack"] = True
    build_pages()
    add_not_found_page()
    pages.timer(SWEEP_INTERVAL, PageSweep())
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


def server_config(app: App) -> "uvicorn.Config":
    """Return the configuration of the server, with the limits that hold for every connection."""
    import uvicorn

    from keisei.web.connections import MAX_CONNECTIONS, TimedProtocol

    return uvicorn.Config(
        app,
        log_level="warning",
        http=TimedProtocol,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        limit_concurrency=MAX_CONNECTIONS,
        ws="wsproto",
        ws_max_size=MAX_REQUEST_BYTES,  # ignored by releases before 0.46
        timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT,
        server_header=False,
    )


def _run(app: App, listener: socket.socket) -> None:
    """Run the server until it is interrupted, then close the connections of open pages."""
    import uvicorn

    from keisei.web.connections import shorten_logs

    shorten_logs()
    with suppress(KeyboardInterrupt):  # uvicorn raises it again after its shutdown
        uvicorn.Server(server_config(app)).run(sockets=[listener])


def _has_screen() -> bool:
    """Return whether there is a screen: a text browser would take over the terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
