"""Situations that runs are put into: what fails, and how."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from leaks.field import BEST, DRAWN, NEXT, PERSON

SUCCESS = "success"
BAD_DATA = "bad data"
ENGINE = "the engine fails and quotes rows"
COINS = "the draw fails"
NAMES = "it fails after the draw"
MAKING = "it fails when the release is made"
RECORD = "the answer cannot be written"
BROKEN = "the ledger breaks after the draw"
BUDGET = "the budget does not allow it"
INTERRUPT = "Ctrl-C"
KILL = "kill -9"

SITUATIONS = {
    SUCCESS: "All goes well.",
    BAD_DATA: "A cell, a score, a label or an example is not what it should be, deep in the data.",
    ENGINE: "What DuckDB raises quotes a row, as its messages do.",
    COINS: "The source of random bits fails in the middle of a draw.",
    NAMES: "What was drawn cannot be named, and the error quotes it.",
    MAKING: "What was drawn has its names, and the next step fails.",
    RECORD: "What was drawn cannot be written down, and the error quotes it.",
    BROKEN: "The file of the ledger is overwritten between the charge and the record.",
    BUDGET: "The ledger has less left than is asked for.",
    INTERRUPT: "SIGINT at a call of a function of privmax, wherever that is.",
    KILL: "SIGKILL at such a call.",
}

PLAIN, STRICT = "", "strict"
"""How a job says which ledger pays; None: none does."""


@contextmanager
def ledger(job: dict[str, Any], folder: Path) -> Iterator[Any]:
    """The ledger that pays, in the working folder."""
    paid = job.get("paid", PLAIN)
    if paid is None:
        yield None
        return
    from privmax import Privacy
    from privmax.ledger import Ledger

    amount = "0.0001" if job["situation"] == BUDGET else 1000
    where = folder / "work" / "budget.db"
    budget = Privacy(amount, "1e-2" if job["situation"] != BUDGET else 0)
    with Ledger.create(where, budget=budget, strict=paid == STRICT) as made:
        yield made


_QUOTES = [True]
"""Whether the error quotes what was drawn. Without a ledger an error of somebody else keeps its own
words, which are not ours to write: then only frames may have it.
"""


class Failure(RuntimeError):
    """What a library raises: its message quotes what it was working on."""


@contextmanager
def fault(situation: str, folder: Path, *, is_paid: bool = True) -> Iterator[None]:
    """The situation, for what runs within."""
    make: dict[str, Callable[[Path], Any]] = {
        ENGINE: _failing_engine,
        COINS: _failing_coins,
        NAMES: _failing_names,
        MAKING: _failing_making,
        RECORD: _failing_record,
        BROKEN: _breaking_ledger,
    }
    if situation not in make:
        yield
        return
    _QUOTES[0] = is_paid
    with make[situation](folder):
        yield


@contextmanager
def _failing_engine(folder: Path) -> Iterator[None]:
    from privmax.sources import asking

    original = asking.ask

    def fail(*_: Any, **__: Any) -> Any:
        row = (BEST, f"{PERSON}7", NEXT)
        raise Failure(f"Conversion Error: could not cast {row}")

    def ask(question: str, answer: Any, *arguments: Any, **options: Any) -> Any:
        if question.startswith(("starting", "opening")):
            return original(question, answer, *arguments, **options)
        return original(question, fail)

    homes = [one for name, one in sys.modules.items() if name.startswith("privmax")]
    homes = [one for one in homes if getattr(one, "ask", None) is original]
    with _all([mock.patch.object(one, "ask", ask) for one in homes]):
        yield


@contextmanager
def _failing_coins(folder: Path) -> Iterator[None]:
    from privmax.noise.coins import SystemCoins

    calls: list[int] = []
    original = SystemCoins.bits

    def bits(self: Any, n: int) -> int:
        calls.append(n)
        if len(calls) > 2:
            raise Failure("no random bits")
        return original(self, n)

    def fail(self: Any, n: int) -> bytes:
        raise Failure("no random bits")

    with (
        mock.patch.object(SystemCoins, "bits", bits),
        mock.patch.object(SystemCoins, "bytes", fail),
    ):
        yield


def _sources() -> list[type]:
    """All classes that name what was drawn."""
    import privmax.itemsets.source
    import privmax.learning.source
    import privmax.sources.memory
    import privmax.sources.tables  # noqa: F401
    from privmax.sources.base import PlainSource

    left, found = [PlainSource], []
    while left:
        one = left.pop()
        left += one.__subclasses__()
        found += [one] if "names" in vars(one) else []
    return found


def _named(after: Callable[[list[Any]], Any]) -> list[Any]:
    """Sources that mark what they name, and then do something with it."""
    patches = []
    for source in _sources():
        original = source.names  # type: ignore[attr-defined]

        def names(self: Any, outcomes: Any, *, original: Any = original) -> Any:
            return after([_mark(item) for item in original(self, outcomes)])

        patches.append(mock.patch.object(source, "names", names))
    return patches


def _mark(item: Any) -> Any:
    if isinstance(item, tuple):
        return tuple(map(_mark, item))
    return f"{DRAWN.value}{item}" if isinstance(item, (str, int)) else item


@contextmanager
def _failing_names(folder: Path) -> Iterator[None]:
    def fail(items: list[Any]) -> Any:
        raise Failure(f"no such label: {items if _QUOTES[0] else ''}")

    with _all(_named(fail)):
        yield


@contextmanager
def _failing_making(folder: Path) -> Iterator[None]:
    from privmax.payload import Drawn

    original = Drawn.__init__

    def fail(self: Any, items: Any = (), *parts: Any, **more: Any) -> None:
        if not items:
            return original(self, items, *parts, **more)
        raise Failure(f"no memory: {items if _QUOTES[0] else ''}")

    with _all([*_named(lambda items: items), mock.patch.object(Drawn, "__init__", fail)]):
        yield


@contextmanager
def _failing_record(folder: Path) -> Iterator[None]:
    from privmax.payload import Drawn

    original = Drawn.to_json

    def fail(self: Any) -> Any:
        if not self.items:
            return original(self)
        drawn = [f"{DRAWN.value}{item}" for item in self.items]
        raise Failure(f"cannot be written: {drawn}")

    with mock.patch.object(Drawn, "to_json", fail):
        yield


@contextmanager
def _breaking_ledger(folder: Path) -> Iterator[None]:
    from privmax.ledger import Reservation

    original = Reservation.record

    def record(self: Any, answer: Any) -> Any:
        where = folder / "work" / "budget.db"
        with open(where, "r+b") as file:
            size = os.path.getsize(where)
            file.seek(200)
            file.write(b"\xff" * (size - 200))
        return original(self, answer)

    with mock.patch.object(Reservation, "record", record):
        yield


@contextmanager
def _all(patches: list[Any]) -> Iterator[None]:
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()
