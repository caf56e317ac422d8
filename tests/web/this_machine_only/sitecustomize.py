"""Python imports this first in the servers of the tests: nothing but this machine can be reached.

A refusal is printed, for a program might overlook the error; `tests.web.conftest.Server` looks for
it at the end.
"""

import sys
from typing import Any

HERE = {"", "0.0.0.0", "127.0.0.1", "::", "::1", "localhost"}
NOWHERE = {"192.0.2.1", "2001:db8::1"}
"""Addresses for documentation: servers ask the system how to reach them, and send nothing."""


def refuse(event: str, values: tuple[Any, ...]) -> None:
    """End connections to other machines, and questions for their addresses."""
    if event in ("socket.connect", "socket.sendto"):
        place = values[1]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        place = values[:1]
    else:
        return
    if not isinstance(place, tuple) or place[0] is None:  # a local socket, or any address of ours
        return
    host = place[0].decode() if isinstance(place[0], bytes) else str(place[0])
    if host not in HERE | NOWHERE:
        sys.stderr.write(f"refused to reach {host}\n")
        sys.stderr.flush()
        raise OSError(f"the tests allow this machine only, not {host}")


# Not in pytest, which imports each module to look for examples: hooks stay for good.
if __name__ == "sitecustomize":
    sys.addaudithook(refuse)
