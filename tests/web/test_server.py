"""Ports, addresses and tokens of the server; its pages are tested in `test_browser`."""

import ipaddress
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from keisei.errors import KeiseiError
from keisei.web import server
from keisei.web.server import address_of, listen, serve
from tests.web.conftest import without_network


def test_it_listens_on_this_machine_only() -> None:
    with listen(port=0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_a_port_in_use_is_skipped_unless_it_was_given() -> None:
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
def test_invalid_hosts_and_ports(host: str, port: int, message: str) -> None:
    with pytest.raises(KeiseiError, match=message):
        listen(host, port)


def test_addresses() -> None:
    with listen(port=0) as listener:
        port = listener.getsockname()[1]
        assert address_of(listener, "127.0.0.1", None) == f"http://127.0.0.1:{port}/"
        assert address_of(listener, "::1", None) == f"http://[::1]:{port}/"


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
@pytest.mark.parametrize("has_both", [True, False])
def test_with_all_addresses_the_printed_one_works(
    monkeypatch: pytest.MonkeyPatch, host: str, has_both: bool
) -> None:
    if not (has_both and socket.has_dualstack_ipv6()):
        monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    try:
        listener = listen(host, 0)
    except KeiseiError:
        pytest.skip("this machine has no IPv6")
    with listener:
        address = address_of(listener, host, "secret")
        assert address.endswith(f":{listener.getsockname()[1]}/?token=secret")
        found = urlsplit(address)
        assert found.hostname is not None
        if found.hostname == socket.gethostname():
            return  # no network: the name may not be resolvable
        assert not ipaddress.ip_address(found.hostname).is_unspecified, "it cannot be opened"
        socket.create_connection((found.hostname, found.port or 0), timeout=20).close()


def test_all_ipv6_addresses_include_ipv4() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no dual-stack sockets")
    with listen("::", 0) as listener:
        port = listener.getsockname()[1]
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, port), timeout=20).close()


@pytest.mark.parametrize("token", ["short", "with space", "semicolon;", "naïve-token"])
def test_invalid_tokens(token: str) -> None:
    with pytest.raises(KeiseiError, match="a token needs at least 8"):
        serve(lambda: None, title="never served", token=token, open_browser=False)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(KeiseiError, match=r"pip install 'keisei\[web\]'"):
        serve(lambda: None, title="never served")


@pytest.mark.parametrize("host", ["example.org", "198.51.100.1"])
def test_servers_of_the_tests_reach_this_machine_only(host: str) -> None:
    code = f"import socket; socket.create_connection(('{host}', 80), timeout=5)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=without_network(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"refused to reach {host}" in done.stderr
