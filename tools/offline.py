"""Forbids Python to reach any machine but this one, to show that privmax needs no network.

    ./dev python tools/offline.py select FILE …     runs a command of privmax so

What tries is stopped by `Connection` before anything is sent. It sees what Python's own sockets
do, in this process alone; `watch` gives the environment that does the same in every Python started
with it. Native code is beyond it: tests/cli/test_network.py watches that with strace.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import sys
from pathlib import Path
from typing import Any

NAMES = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
ADDRESSES = ("socket.connect", "socket.sendto", "socket.sendmsg")
ELSEWHERE = re.compile(r"[\w-]+(?:\.(?!invalid$)[\w-]+)+|.*:.*")
"""Names with a dot, and addresses. None ends in .invalid."""

MESSAGE = "reaches for another machine: {}. privmax must not"


class Connection(BaseException):
    """Raised where something reaches for another machine. No `except Exception` hides it."""


def forbid() -> None:
    """Forbid it from now on, as long as this process lives."""
    here = {"", "localhost", socket.gethostname()}

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in NAMES:
            host = arguments[0]
            if isinstance(host, str) and not ELSEWHERE.fullmatch(host):
                return  # tests give such names by mistake: looked up, they lead nowhere
        elif event in ADDRESSES and isinstance(arguments[1], tuple):  # not a file, not None
            host = arguments[1][0]
        else:
            return
        if isinstance(host, bytes):
            host = host.decode(errors="replace")
        if host is not None and host not in here and not is_loopback(host):
            raise Connection(MESSAGE.format(host))

    sys.addaudithook(hook)


def is_loopback(host: str) -> bool:
    """Whether a host is an address of this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("192.0.2.1")
    (True, True, False)
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def watch(folder: Path) -> dict[str, str]:
    """The environment in which every Python forbids it, through a file in `folder`."""
    here = str(Path(__file__).resolve().parent)
    (folder / "sitecustomize.py").write_text(
        f"import sys\nsys.path.append({here!r})\nimport offline\noffline.forbid()\n",
        encoding="utf-8",
    )
    return {**os.environ, "PYTHONPATH": str(folder)}


if __name__ == "__main__":
    forbid()
    from privmax.cli import main

    main()
