"""The state that all pages of one start share: gate, ledger, data sets and workers."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from privmax.cli.passwords import without_urls
from privmax.errors import PrivmaxError
from privmax.explore.security import FORM, AccessGate
from privmax.explore.work import SECONDS, Pool, SlowError
from privmax.rendering import render

if TYPE_CHECKING:
    from privmax.explore.datasets import Dataset
    from privmax.ledger import Ledger

T = TypeVar("T")

THREADS = 24
"""Releases and looks into the ledger at a time."""

LOOK = 0.1
"""Seconds between two looks whether someone still waits."""


class Notice(NamedTuple):
    """Something to know, in plain text: a "note", a "warning", an "error", or something "good"."""

    words: str
    kind: str = "note"


@dataclass
class Explorer:
    """One start.

    Args:
        ledger: What is charged for releases; None: there are pages that release nothing.
        datasets: What may be asked about, by name.
        lenient: Whether a ledger that is not strict may pay.
        reason: Why the pages are served beyond this machine; None: they are not.
    """

    gate: AccessGate
    pool: Pool
    ledger: Ledger | None = None
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    lenient: bool = False
    reason: str | None = None
    _threads: CapacityLimiter | None = None

    async def compute(
        self,
        request: Request,
        name: str,
        *arguments: Any,
        key: Hashable = None,
        seconds: float = SECONDS,
        **options: Any,
    ) -> Any:
        """Return the result of a job. Raises SlowError after too long, or if no one waits."""
        known = None if key is None else self.pool.recall((name, key))
        if known is not None:
            return known
        job, start = self.pool.job(name, *arguments, **options), time.monotonic()
        task = asyncio.ensure_future(self.in_thread(job.result))
        while True:
            done, _ = await asyncio.wait({task}, timeout=LOOK)
            if done:
                result = task.result()
                if key is not None:
                    self.pool.keep((name, key), result)
                return result
            if time.monotonic() - start > seconds or await request.is_disconnected():
                job.stop()
                task.add_done_callback(lambda one: one.cancelled() or one.exception())
                raise SlowError

    async def in_thread(self, act: Callable[..., T], *arguments: Any) -> T:
        """Return the result of a function that may block."""
        if self._threads is None:
            self._threads = CapacityLimiter(THREADS)
        return await to_thread.run_sync(act, *arguments, limiter=self._threads)

    def page(
        self, template: str, tab: str, title: str, *, status: int = 200, **values: object
    ) -> Response:
        """Return a whole page.

        Args:
            template: Its file.
            tab: Which of the pages in the bar it belongs to; "": none.
            title: What stands above.
            status: The status of the response.
            values: What it shows.
        """
        from privmax import __version__

        frame = {"reason": self.reason, "ledger": self.ledger, "version": __version__}
        return HTMLResponse(render_part(template, tab=tab, title=title, **frame, **values), status)

    def refusal(self, error: BaseException) -> Notice:
        """An error as a notice."""
        return Notice(self.describe(error), "error")

    def describe(self, error: BaseException) -> str:
        """An error in words, without URLs and without a path of this machine."""
        words = str(error) if isinstance(error, PrivmaxError) else type(error).__name__
        for note in getattr(error, "__notes__", []):
            words += f" {note}"
        return self.without_paths(without_urls(words))

    def without_paths(self, words: str) -> str:
        """The words without where data and ledger are."""
        places = {dataset.file: f"“{name}”" for name, dataset in self.datasets.items()}
        if self.ledger is not None and "://" not in self.ledger.where:
            places[self.ledger.where] = "the ledger"
        known: dict[str, str] = {}
        for place, shown in places.items():
            for spelled in (os.path.abspath(place), os.path.realpath(place), place):
                known.setdefault(spelled, shown)
        for place in sorted(known, key=len, reverse=True):
            if len(place) > 1:
                words = words.replace(place, known[place])
        return re.sub(r"(?<![\w.:/…])(?:/[^\s/'\"“”,;:]+){2,}/?", "…", words)


def fields(request: Request) -> dict[str, str]:
    """Return the fields behind the question mark of an address, each name once."""
    return {name: value.strip() for name, value in request.query_params.items()}


def form(request: Request) -> dict[str, list[str]]:
    """The form of a request, which `Guard` has read."""
    result: dict[str, list[str]] = request.scope[FORM]
    return result


def is_part(request: Request) -> bool:
    """Whether htmx asks for a part of a page."""
    return request.headers.get("hx-request") == "true"


def too_slow() -> Notice:
    return Notice(
        f"This takes longer than {SECONDS:.0f} seconds, and was stopped. Choose a larger ε, a "
        "smaller k or a smaller universe; or run the command, which has no limit.",
        "warning",
    )


def render_part(template: str, /, **values: object) -> str:
    """Return a page, or a part of one, with its values filled in."""
    return render(f"explore/templates/{template}", **values)
