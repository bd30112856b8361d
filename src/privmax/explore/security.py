"""Access to the server: every request is checked here before any page is made.

lab/explore-threats.md lists the threats and what stops each; tests/explore/test_safety.py has a
test for each.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import os
import secrets
import struct
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response

from privmax.rendering import render

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_BODY = 64 * 1024
"""Bytes of a form. There are no uploads."""

LONGEST_ADDRESS = 8 * 1024
"""Bytes of a path with its query."""

MOST_FIELDS = 200
"""Fields of a form."""

BODY_SECONDS = 10.0
"""The time for a form to arrive."""

KEY, TOKEN = "key", "token"
"""The parameter of the printed address, and the field of every form."""

FORM = "privmax.form"
"""The place of the form in a request."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The permissions of a page: nothing that is not served here runs, styles, loads or frames it."""

REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox"
)
"""The same for reports, which carry their own styles, and run nothing."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

NOBODY = -1
"""The owner of a connection that the system does not list, or no longer."""

ELSEWHERE = "This request came from another page or another place. Nothing was done."


@dataclass(frozen=True)
class AccessGate:
    """The secrets of one start, and where it is served.

    Args:
        hosts: What the Host header may say, with the port.
        cookie: The name of the cookie: several explorers on one machine do not share it.
        key: Gives access; it is in the printed address.
        session: What the cookie holds.
        token: What every form holds.
        own_user: Whether only processes of this user may connect, where the system tells; whatever
            address they connect from.
    """

    hosts: frozenset[str]
    cookie: str
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    own_user: bool = True

    @classmethod
    def at(cls, names: list[str], port: int, *, own_user: bool = True) -> AccessGate:
        """The gate of a server that is reached under these names."""
        hosts = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())
        return cls(frozenset(hosts), f"privmax-{port}", own_user=own_user)

    @property
    def origins(self) -> set[str]:
        return {f"http://{host}" for host in self.hosts}


class Guard:
    """Lets a request pass, with its form read and checked; refuses everything else."""

    def __init__(self, app: ASGIApp, gate: AccessGate) -> None:
        self._app, self._gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no WebSockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = await self._refusal(scope, receive)
        await (answer or self._app)(scope, receive, _with_headers(send))

    async def _refusal(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the answer instead of a page; None: the request may pass."""
        headers, method = Headers(scope=scope), scope["method"]
        query = scope["query_string"]
        if len(scope["raw_path"]) + len(query) > LONGEST_ADDRESS:
            return refuse(414, "The address is too long.")
        if headers.getlist("host") not in [[host] for host in self._gate.hosts]:
            return refuse(421, "This server is not known under that name.")
        if self._gate.own_user and not is_own_user(scope.get("client"), scope.get("server")):
            return refuse(403, "Another user of this machine runs this server.")
        if method not in ("GET", "HEAD", "POST"):
            return refuse(405, "Pages are read and forms are sent; nothing else.")
        if _comes_from_elsewhere(headers, method):
            return refuse(403, ELSEWHERE)
        if method == "POST" and headers.getlist("origin") not in [[o] for o in self._gate.origins]:
            return refuse(403, ELSEWHERE)
        if scope["path"] == "/" and method == "GET":
            given = dict(parse_qsl(query.decode("latin-1")))
            if KEY in given:
                return self._open(given)
        if not _same(_cookie(headers, self._gate.cookie), self._gate.session):
            return refuse(
                403, "Open the address that “privmax explore” printed in the terminal. It changes "
                     "with every start."
            )  # fmt: skip
        return await self._read_form(scope, receive, headers) if method == "POST" else None

    def _open(self, given: dict[str, str]) -> Response:
        """Exchange the key of the printed address for the cookie."""
        if not _same(given.pop(KEY), self._gate.key):
            return refuse(
                403, "The address is from an earlier start. Open the one that was printed last."
            )
        answer = RedirectResponse("/" + (f"?{urlencode(given)}" if given else ""), 303)
        answer.set_cookie(
            self._gate.cookie, self._gate.session, httponly=True, samesite="strict", path="/"
        )
        return answer

    async def _read_form(self, scope: Scope, receive: Receive, headers: Headers) -> Response | None:
        """Read the form of a request into `scope`, and check its token."""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            return refuse(415, "Only forms are read here.")
        try:
            body = await asyncio.wait_for(_body(receive), BODY_SECONDS)
            pairs = parse_qsl(
                body.decode("utf-8"),
                keep_blank_values=True,
                strict_parsing=bool(body),
                max_num_fields=MOST_FIELDS,
            )
        except TooLongError:
            return refuse(413, "The form is too long.")
        except TimeoutError:
            return refuse(408, "The form did not arrive in time.")
        except ValueError:
            return refuse(400, "The form cannot be read.")
        form: dict[str, list[str]] = {}
        for name, value in pairs:
            form.setdefault(name, []).append(value)
        if len(form.get(TOKEN, [])) != 1 or not _same(form[TOKEN][0], self._gate.token):
            return refuse(403, "The form is from an earlier start. Go back, reload the page and "
                               "send it again. Nothing was done.")  # fmt: skip
        scope[FORM] = form
        return None


class TooLongError(Exception):
    """A form is longer than it may be."""


async def _body(receive: Receive) -> bytes:
    parts, length = [], 0
    while True:
        message: Message = await receive()
        if message["type"] != "http.request":
            raise ValueError("the other side is gone")
        part = message.get("body", b"")
        length += len(part)
        if length > LONGEST_BODY:
            raise TooLongError
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def refuse(status: int, words: str) -> Response:
    """A page that says why there is none. It quotes nothing of the request, and what is still to
    come of the request is not waited for.
    """
    page = render("explore/templates/refusal.html", words=words)
    return HTMLResponse(page, status, {"Connection": "close"})


def _comes_from_elsewhere(headers: Headers, method: str) -> bool:
    """Whether a browser says that another site made the request. A link to here may be followed:
    the cookie then is missing, unless it is on this very machine, and reading changes nothing.
    """
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    follows = headers.get("sec-fetch-mode") == "navigate"
    return not (method == "GET" and follows and headers.get("sec-fetch-dest") == "document")


def _cookie(headers: Headers, name: str) -> str:
    try:
        stored = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return stored[name].value if name in stored else ""


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            headers.setdefault("Content-Security-Policy", POLICY)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


def is_loopback(host: str) -> bool:
    """Whether an address never leaves this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_own_user(client: Any, server: Any) -> bool:
    """Whether a connection from this machine was made by a process of this user, or of root.

    Linux tells. Elsewhere, and where it does not tell, the cookie alone decides.
    """
    if not hasattr(os, "getuid"):
        return True
    if not client or not server:
        return False  # it is gone already
    user = owner(client, server)
    return user is None or user in (0, os.getuid())


def owner(
    client: tuple[str, int], server: tuple[str, int], folder: Path = Path("/proc/net")
) -> int | None:
    """The user whose process holds the other end of a connection; None: the system does not tell.

    Both ends are compared as a whole: another user may use the same port with another address.

    Args:
        client: Address and port of the other end.
        server: Address and port of our end.
        folder: Where Linux lists connections.
    """
    ends = set(zip(_spellings(*client), _spellings(*server), strict=True))
    is_listed = False
    for file in ("tcp", "tcp6"):
        try:
            lines = (folder / file).read_text(encoding="ascii").splitlines()[1:]
        except (OSError, UnicodeDecodeError):
            continue
        is_listed = True
        for line in lines:
            parts = line.split()
            if len(parts) > 9 and (parts[1], parts[2]) in ends:
                # What its process has closed has no file any more, and is listed as root's.
                return NOBODY if parts[9] == "0" else int(parts[7])
    return NOBODY if is_listed else None


def _spellings(address: str, port: int) -> list[str]:
    """One end as Linux lists it: words of 32 bits in the order of the processor, and the port. An
    address of version 4 has two spellings, the second one within version 6.
    """
    packed = ipaddress.ip_address(address).packed
    mapped = b"\0" * 10 + b"\xff\xff" + packed
    packings = [packed] if len(packed) == 16 else [packed, mapped]
    return [f"{_words(one)}:{port:04X}" for one in packings]


def _words(packed: bytes) -> str:
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words)
