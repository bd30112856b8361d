"""The server: which address shows which page, and how it is started."""

from __future__ import annotations

import signal
import socket
import sys
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from privmax.errors import PrivmaxError
from privmax.explore import (
    ask_page,
    handover_page,
    history_page,
    keys_plan_page,
    plan_page,
    try_page,
)
from privmax.explore.security import AccessGate, Guard, is_loopback
from privmax.explore.state import Explorer, Notice

if TYPE_CHECKING:
    from starlette.types import ASGIApp

Page = Callable[[Explorer, Request], Awaitable[Response]]

ASSETS = {
    "explore.css": "text/css",
    "explore.js": "text/javascript",
    "htmx-2.0.11.min.js": "text/javascript",
}
"""The files that pages load, by name."""

ROUTES: tuple[tuple[str, Page, str], ...] = (
    ("/plan", plan_page.show, "GET"),
    ("/plan/slow", plan_page.show_slow, "GET"),
    ("/plan/keys", keys_plan_page.show, "GET"),
    ("/try", try_page.show, "GET"),
    ("/ask", ask_page.show, "GET"),
    ("/ask/preview", ask_page.preview, "GET"),
    ("/ask/release", ask_page.release, "POST"),
    ("/answer", ask_page.answer, "GET"),
    ("/answer/report", ask_page.report, "GET"),
    ("/answer/release.json", ask_page.as_json, "GET"),
    ("/answer/table.csv", ask_page.as_csv, "GET"),
    ("/history", history_page.show, "GET"),
    ("/history/verify", history_page.verify, "GET"),
    ("/history/export.jsonl", history_page.export, "GET"),
    ("/handover", handover_page.show, "GET"),
    ("/handover/{file}", handover_page.save, "GET"),
)
"""All pages. What changes anything is sent as a form."""


def application(explorer: Explorer) -> ASGIApp:
    """The pages behind the gate."""

    def bind(page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                return await page(explorer, request)
            except PrivmaxError as error:
                problem = explorer.refusal(error)
                return explorer.page(
                    "notice.html", "", "That did not work", problem=problem, status=422
                )
            except Exception as error:
                # Its message may quote anything, and a traceback would print it.
                print(f"privmax explore: {_place(error)}", file=sys.stderr)
                return explorer.page("unexpected.html", "", "Something went wrong", status=500)

        return answer

    routes = [Route(path, bind(page), methods=[method]) for path, page, method in ROUTES]
    routes += [
        Route("/", lambda request: RedirectResponse("/plan", 303), methods=["GET"]),
        Route("/assets/{name}", _asset, methods=["GET"]),
    ]
    return Guard(
        Starlette(
            routes=routes,
            exception_handlers={
                404: partial(_error_page, explorer, "There is no such page."),
                405: partial(_error_page, explorer, "This page cannot be used that way."),
            },
        ),
        explorer.gate,
    )


def _place(error: BaseException) -> str:
    """Return the place where an error was raised, and nothing of its text."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{Path(one.filename).name}:{one.lineno}" for one in frames[-3:]]
    return f"{type(error).__name__} at {' > '.join(where)}"


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        return Response(status_code=404)
    content = files(__package__).joinpath("assets", name).read_bytes()
    return Response(content, media_type=ASSETS[name])


async def _error_page(
    explorer: Explorer, words: str, request: Request, error: Exception
) -> Response:
    status = getattr(error, "status_code", 500)
    problem = Notice(words, "error")
    return explorer.page("notice.html", "", "Nothing here", problem=problem, status=status)


def gate_for(host: str, port: int, *, own_user: bool = True) -> AccessGate:
    """The gate of a server at an address.

    Args:
        host: Where browsers find it.
        port: Where browsers find it.
        own_user: Whether to ask the system who connects, if that is a process of this machine. A
            Unix socket has a mode for that.
    """
    known = ["127.0.0.1", "localhost", "[::1]"] if is_loopback(host) else []
    names = list(dict.fromkeys([*known, _spell(host)]))
    return AccessGate.at(names, port, own_user=own_user and is_loopback(host))


def _spell(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def serve(explorer: Explorer, listener: socket.socket, started: Callable[[], None]) -> None:
    """Serve until Ctrl-C.

    Args:
        explorer: What to serve.
        listener: The socket.
        started: Called when pages can be opened.
    """
    import uvicorn

    from privmax.explore.connections import AT_ONCE, HttpConnection

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            started()

    explorer.pool.warm()
    config = uvicorn.Config(
        application(explorer),
        access_log=False,  # an address holds the key, and may hold a question
        log_level="error",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        http=HttpConnection,
        ws="none",
        lifespan="off",
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=32 * 1024,
        limit_concurrency=AT_ONCE,
    )
    before = signal.signal(signal.SIGTERM, _end)
    try:
        Server(config).run(sockets=[listener])
    finally:
        signal.signal(signal.SIGTERM, before)
        explorer.pool.close()


def _end(number: int, frame: object) -> NoReturn:
    """End in order: uvicorn raises the signal again, which would end the process at once."""
    raise SystemExit(128 + number)
