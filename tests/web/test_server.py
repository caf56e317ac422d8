"""Where pages are served: ports, addresses, tokens. The pages themselves: `test_browser`."""

import pytest

from keisei.errors import KeiseiError
from keisei.web import server
from keisei.web.server import address_of, listen, serve


def test_it_listens_on_this_machine_alone() -> None:
    with listen(port=0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_a_port_in_use_is_skipped_unless_it_was_asked_for() -> None:
    with listen() as first, listen() as second:
        taken = first.getsockname()[1]
        assert second.getsockname()[1] != taken
        with pytest.raises(KeiseiError, match=f"cannot listen on 127.0.0.1:{taken}.*--port"):
            listen(port=taken)


@pytest.mark.parametrize(
    ("host", "port", "message"),
    [
        ("no.such.host.invalid", 0, "there is no host"),
        ("127.0.0.1", 70000, "from 0 to 65535"),
        ("192.0.2.1", 0, "cannot listen on 192.0.2.1"),
    ],
)
def test_what_can_not_be_listened_on(host: str, port: int, message: str) -> None:
    with pytest.raises(KeiseiError, match=message):
        listen(host, port)


def test_addresses() -> None:
    with listen(port=0) as listener:
        port = listener.getsockname()[1]
        assert address_of(listener, "127.0.0.1", None) == f"http://127.0.0.1:{port}/"
        assert address_of(listener, "::1", None) == f"http://[::1]:{port}/"
        everywhere = address_of(listener, "0.0.0.0", "secret")
        assert everywhere.endswith(f":{port}/?token=secret")
        assert "0.0.0.0" not in everywhere, "nobody can go there"


@pytest.mark.parametrize("token", ["short", "with space", "semicolon;", "naïve-token"])
def test_tokens_that_are_none(token: str) -> None:
    with pytest.raises(KeiseiError, match="a token has at least 8"):
        serve(lambda: None, title="never served", token=token, open_browser=False)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(KeiseiError, match=r"pip install 'keisei\[web\]'"):
        serve(lambda: None, title="never served")
