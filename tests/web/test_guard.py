"""Which requests are answered: hosts, origins, tokens, sizes."""

import asyncio
import socket
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from keisei.web.guard import (
    MAX_HEADER_BYTES,
    Guard,
    Receive,
    Scope,
    Send,
    is_loopback,
)

Answer = tuple[int, dict[str, str], str]


async def pages(scope: Scope, receive: Receive, send: Send) -> None:
    """The guarded application: answers every request with its path."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


def request(
    guard: Guard, path: str = "/", *, kind: str = "http", query: str = "", **headers: str
) -> list[MutableMapping[str, Any]]:
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        raise AssertionError("the guard must not read the body")

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope: Scope = {
        "type": kind,
        "path": path,
        "query_string": query.encode(),
        "headers": [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ],
    }
    asyncio.run(guard(scope, receive, send))
    return sent


def status(sent: list[MutableMapping[str, Any]]) -> int:
    return int(sent[0]["status"])


def headers_of(sent: list[MutableMapping[str, Any]]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8360", "localhost:1", "[::1]:8360"])
def test_loopback_names_are_answered(host: str) -> None:
    assert status(request(Guard(pages), host=host)) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8360",
        "",
        "127.0.0.1.evil.example",
        "192.168.1.4",
        "[::1",
        "a@",
    ],
)
def test_other_hosts_are_refused(host: str) -> None:
    """DNS rebinding: an attacker's name that points to 127.0.0.1."""
    assert status(request(Guard(pages), host=host)) == 421
    closed = request(Guard(pages), kind="websocket", host=host)
    assert [message["type"] for message in closed] == ["websocket.close"]


def test_a_missing_host_is_refused() -> None:
    assert status(request(Guard(pages))) == 421


def test_in_a_network_addresses_and_the_machines_name_are_answered() -> None:
    guard = Guard(pages, host="0.0.0.0")
    for host in ("192.168.1.4:8360", f"{socket.gethostname()}:8360", "localhost"):
        assert status(request(guard, host=host)) == 200
    assert status(request(guard, host="evil.example")) == 421


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://127.0.0.1:9999",
        "null",
        "http://localhost:8360",
        "http://[",
        "127.0.0.1:8360",
        "",
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_pages_of_other_origins_are_refused(origin: str, kind: str) -> None:
    sent = request(Guard(pages), kind=kind, host="127.0.0.1:8360", origin=origin)
    if kind == "http":
        assert status(sent) == 403
    else:
        assert sent[0]["type"] == "websocket.close"


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_our_own_pages_are_answered(kind: str) -> None:
    sent = request(Guard(pages), kind=kind, host="localhost:8360", origin="http://localhost:8360")
    assert sent[0]["type"] in ("http.response.start", "websocket.accept")
    assert sent[0].get("status", 200) == 200


@pytest.mark.parametrize(
    ("site", "mode", "dest", "expected"),
    [
        ("cross-site", "no-cors", "image", 403),
        ("cross-site", "no-cors", "script", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("same-site", "no-cors", "image", 403),  # another port of this machine
        ("cross-site", "navigate", "document", 200),  # a link
        ("same-origin", "no-cors", "image", 200),
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),  # typed in by the user
    ],
)
def test_images_and_frames_on_other_sites_are_refused(
    site: str, mode: str, dest: str, expected: int
) -> None:
    """``<img src="http://127.0.0.1:8360/?1">`` on any page of the web."""
    fetch = {"sec_fetch_site": site, "sec_fetch_mode": mode, "sec_fetch_dest": dest}
    assert status(request(Guard(pages), host="127.0.0.1:8360", **fetch)) == expected


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        ("0", 200),
        ("100", 200),
        ("101", 413),
        ("-1", 413),
        ("9e9", 413),
        ("9" * 5000, 413),  # more digits than Python converts
        ("", 413),
    ],
)
def test_a_request_that_is_too_large_is_refused(length: str, expected: int) -> None:
    guard = Guard(pages, max_bytes=100)
    assert status(request(guard, host="localhost", content_length=length)) == expected


def test_a_request_without_a_length_is_refused() -> None:
    for claims in ({}, {"content_length": "5"}):  # a chunked body has no reliable length
        sent = request(Guard(pages), host="localhost", transfer_encoding="chunked", **claims)
        assert status(sent) == 411


@pytest.mark.parametrize(
    ("sent", "expected", "english", "japanese"),
    [
        ({"host": "evil.example"}, 421, "another name", "名前が違います"),
        ({"host": "localhost", "origin": "null"}, 403, "other sites", "ほかのサイト"),
        ({"host": "localhost"}, 401, "with its token", "トークン"),
        ({"host": "localhost", "content_length": "101"}, 413, "than 100 bytes", "100バイト"),
        ({"host": "localhost", "x": "x" * MAX_HEADER_BYTES}, 431, "than 32768", "32768バイト"),
        ({"host": "localhost", "transfer_encoding": "chunked"}, 411, "required", "必要"),
    ],
)
def test_refusals_are_pages_in_the_visitors_language(
    sent: dict[str, str], expected: int, english: str, japanese: str
) -> None:
    guard = Guard(pages, token="the-token", max_bytes=100)
    for cookie, accepted, language, words in (
        ("", "en", "en", english),
        ("", "ja,en;q=0.5", "ja", japanese),
        ("a=b; keisei-language=ja; {", "en", "ja", japanese),
        ("keisei-language=en", "ja", "en", english),
        ("keisei-language=<script>", "ja", "ja", japanese),
    ):
        asked = {"cookie": cookie, "accept_language": accepted, **sent}
        page = request(guard, accept="text/html,*/*;q=0.8", **asked)
        assert status(page) == expected
        assert headers_of(page)["content-type"] == "text/html; charset=utf-8"
        text = page[1]["body"].decode()
        assert f'<html lang="{language}">' in text
        assert all(f"<{part}>" in text for part in ("title", "main", "h1"))
        assert words in text
        assert "<script>" not in text
        plain = request(guard, accept="*/*", **asked)
        assert headers_of(plain)["content-type"] == "text/plain; charset=utf-8"
        assert words in plain[1]["body"].decode()
        assert "<" not in plain[1]["body"].decode()


def test_without_the_token_requests_are_refused() -> None:
    guard = Guard(pages, token="the-token")
    assert status(request(guard, host="localhost")) == 401
    assert status(request(guard, host="localhost", query="token=the-toke")) == 401
    assert status(request(guard, host="localhost", cookie="keisei-token=other")) == 401
    assert status(request(guard, host="localhost", cookie="other=the-token")) == 401
    for query in ("", "token=the-token"):
        assert request(guard, kind="websocket", host="localhost", query=query)[0]["type"] == (
            "websocket.close"
        )


def test_the_token_becomes_a_cookie_and_leaves_the_address() -> None:
    guard = Guard(pages, token="the-token")
    sent = request(guard, "/games", host="localhost", query="a=1&token=the-token&b=")
    assert status(sent) == 303
    assert headers_of(sent)["location"] == "/games?a=1&b="
    cookie = headers_of(sent)["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite" in cookie
    assert status(request(guard, host="localhost", cookie=cookie.partition(";")[0])) == 200


@pytest.mark.parametrize(
    "cookies",
    [
        "keisei-token=the-token",
        "session={a b}; keisei-token=the-token",
        "a,b=1;keisei-token=the-token;c",
        'x="open; =; keisei-token=the-token; y=é',
        "keisei-token=old; keisei-token=the-token",
    ],
)
def test_malformed_cookies_of_other_programs(cookies: str) -> None:
    """All ports of a host share their cookies, and not all are well-formed."""
    assert status(request(Guard(pages, token="the-token"), host="localhost", cookie=cookies)) == 200


@pytest.mark.parametrize(
    "path", ["/run/名前", "/run/a?b", "/run/a#b", "/run/a%b", "/a\r\nset-cookie: x=y", "/a b/"]
)
def test_the_redirect_leads_to_the_requested_page(path: str) -> None:
    guard = Guard(pages, token="the-token")
    sent = request(guard, path, host="localhost", query="q=%E5%90%8D&token=the-token")
    place = headers_of(sent)["location"]
    assert place.isascii()
    assert place.isprintable()
    found = urlsplit(place)
    assert (unquote(found.path), parse_qsl(found.query)) == (path, [("q", "名")])
    assert not found.fragment


@pytest.mark.parametrize("slashes", ["//", "/\\", "/\\/", "\\\\", "///"])
def test_the_redirect_never_leads_to_another_server(slashes: str) -> None:
    guard = Guard(pages, token="the-token")
    sent = request(guard, f"{slashes}evil.example/x", host="localhost", query="token=the-token")
    assert headers_of(sent)["location"] == "/evil.example/x"


@pytest.mark.parametrize("answer", [{"host": "localhost"}, {"host": "evil.example"}])
def test_pages_load_nothing_from_elsewhere_and_cannot_be_framed(answer: dict[str, str]) -> None:
    headers = headers_of(request(Guard(pages), **answer))
    assert "default-src 'self'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org", ""])
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)
