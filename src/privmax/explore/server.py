"""The server: which address shows which page, and how it is started."""

from __future__ import annotations

import socket
import sys
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from privmax.errors import ParameterError, PrivmaxError
from privmax.explore import ask_page, handover_page, history_page, plan_page, try_page
from privmax.explore.markup import ASSETS, asset, notice
from privmax.explore.security import Gate, Guard, is_loopback
from privmax.explore.state import Explorer
from privmax.report.markup import text

if TYPE_CHECKING:
    from starlette.types import ASGIApp

Page = Callable[[Explorer, Request], Awaitable[Response]]

WAITING = 50
"""Connections that may wait to be accepted."""

AT_ONCE = 256
"""Connections and requests at a time; more are answered with 503."""

WRONG = (
    "An error that privmax did not expect. It is not shown here; the terminal says where it came "
    "from. Whether anything was charged stands in the <a href='/history'>history</a>."
)

ROUTES: tuple[tuple[str, Page, str], ...] = (
    ("/plan", plan_page.show, "GET"),
    ("/plan/slow", plan_page.show_slow, "GET"),
    ("/try", try_page.show, "GET"),
    ("/ask", ask_page.show, "GET"),
    ("/ask/preview", ask_page.preview, "GET"),
    ("/ask/release", ask_page.release, "POST"),
    ("/answer", ask_page.answer, "GET"),
    ("/answer/report", ask_page.report, "GET"),
    ("/answer/release.json", ask_page.as_json, "GET"),
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
                words = notice(text(explorer.describe(error)), "error")
                return explorer.page("", "That did not work", words, status=422)
            except Exception as error:
                # Its message may quote anything, and a traceback would print it.
                print(f"privmax explore: {_place(error)}", file=sys.stderr)
                return explorer.page("", "Something went wrong", notice(WRONG, "error"), status=500)

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
    """Where an error came from, and nothing of what it says."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{Path(one.filename).name}:{one.lineno}" for one in frames[-3:]]
    return f"{type(error).__name__} at {' > '.join(where)}"


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        return Response(status_code=404)
    return Response(asset(name), media_type=ASSETS[name])


async def _error_page(
    explorer: Explorer, words: str, request: Request, error: Exception
) -> Response:
    status = getattr(error, "status_code", 500)
    return explorer.page("", "Nothing here", notice(text(words), "error"), status=status)


def listen(host: str, port: int) -> socket.socket:
    """A socket that nobody else listens on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):  # Windows lets others share a port otherwise
            found.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(WAITING)
    except socket.gaierror:
        found.close()
        raise ParameterError(
            "host", host, "this machine has no such address", "Leave it out to serve loopback."
        ) from None
    except OSError as error:
        found.close()
        raise ParameterError(
            "port", port, f"it cannot be used ({error.strerror})", "Choose another, or --port 0."
        ) from None
    return found


def gate_for(host: str, port: int, names: tuple[str, ...] = ()) -> Gate:
    """The gate of a server at an address.

    Args:
        host: Where it listens.
        port: Where it listens.
        names: Under which other names it is reached.
    """
    known = ["127.0.0.1", "localhost", "[::1]"] if is_loopback(host) else [_spell(host)]
    return Gate.at([*known, *names], port, own_user=is_loopback(host))


def _spell(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def serve(explorer: Explorer, found: socket.socket, started: Callable[[], None]) -> None:
    """Serve until Ctrl-C.

    Args:
        explorer: What to serve.
        found: The socket.
        started: Called when pages can be opened.
    """
    import uvicorn

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
        ws="none",
        lifespan="off",
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=32 * 1024,
        limit_concurrency=AT_ONCE,
    )
    try:
        Server(config).run(sockets=[found])
    finally:
        explorer.pool.close()
