"""Requests to a ledger that fail once and are repeated: ties must stay ties.

All candidates tie, so the answer that comes in the end is as likely any of them. A fault is
injected between charge, draw, record and answer, as an error or as the end of the process, and the
request is repeated until it is answered.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from lab.assurance.boxes import replaced
from privmax import Privacy, select
from privmax.best_items import BestItems
from privmax.errors import AnswerError, EngineError, LedgerError
from privmax.ledger import Ledger, Reservation
from privmax.ledger.payment import Payment
from privmax.mechanisms.permute_and_flip import PermuteAndFlip
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below
from privmax.payload import Drawn
from privmax.sources.memory import MemorySource
from privmax.testing import SeededCoins

LABELS = ("a", "b", "c", "d")
BAD = LABELS[0]
"""The answer that some faults go by."""

NOTHING, UNANSWERED = "no answer", "unanswered"
TRIES = 4
"""A request is repeated so often at most."""

STEPS: Mapping[str, tuple[Any, str]] = {
    "charge": (Ledger, "charge"),
    "draw": (PermuteAndFlip, "draw"),
    "look-up": (MemorySource, "names"),
    "writing": (Drawn, "to_json"),
    "record": (Reservation, "record"),
    "answer": (BestItems, "read"),
}
"""What is called between a request and its answer."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong once.

    Attributes:
        step: Where, by its name in `STEPS`.
        after: Whether the step was done before.
        error: What is raised; None: the process ends.
        chosen: Whether it fails for one answer alone, and whenever that was drawn.
    """

    step: str
    after: bool
    error: type[BaseException] | None
    chosen: bool = False

    @property
    def name(self) -> str:
        """Return it in words."""
        how = "the process ends" if self.error is None else self.error.__name__
        when = "after" if self.after else "before"
        return f"{how} {when} the {self.step}" + (f", if {BAD} was drawn" if self.chosen else "")

    @property
    def law(self) -> dict[str, float]:
        """The law of what comes in the end, where ties stay ties."""
        if self.chosen:  # no answer in its place: it is never drawn again
            return {**dict.fromkeys(LABELS[1:], 0.25), NOTHING: 0.25}
        return dict.fromkeys(LABELS, 0.25)


FAULTS = (
    Fault("charge", False, LedgerError),
    Fault("charge", True, LedgerError),
    Fault("charge", True, KeyboardInterrupt),
    Fault("draw", False, KeyboardInterrupt),
    Fault("draw", True, KeyboardInterrupt),
    Fault("look-up", True, KeyboardInterrupt),
    Fault("look-up", True, EngineError, chosen=True),
    Fault("writing", True, KeyboardInterrupt),
    Fault("writing", True, MemoryError, chosen=True),
    Fault("record", False, LedgerError),
    Fault("record", False, KeyboardInterrupt),
    Fault("record", False, MemoryError, chosen=True),
    Fault("record", True, LedgerError),
    Fault("record", True, KeyboardInterrupt),
    Fault("answer", False, KeyboardInterrupt),
    Fault("charge", True, None),
    Fault("draw", True, None),
    Fault("record", False, None),
    Fault("record", True, None),
)


def final_answers(folder: Path, fault: Fault | None, number: int, seed: str) -> Counter[str]:
    """Make requests that each meet a fault once, and count what comes in the end.

    Raises:
        AssertionError: An answer changed between tries, or a request was charged more than once.
    """
    seen: Counter[str] = Counter()
    seed = f"{seed} {None if fault is None else fault.name}"
    with Ledger.create(folder / "budget.db", budget=Privacy(number)) as ledger:
        for place in range(number):
            seen[_settle(ledger, fault, str(place), SeededCoins(f"{seed} {place}"))] += 1
        assert ledger.spent == Privacy(number)
    return seen


def _settle(ledger: Ledger, fault: Fault | None, request: str, coins: Coins) -> str:
    """Repeat a request until it is answered twice; the answers must be the same."""
    answers: list[str] = []
    for turn in range(TRIES):
        meets = fault if fault is not None and (turn == 0 or fault.chosen) else None
        try:
            if meets is not None and meets.error is None:
                _end_in_child(ledger, meets, request, coins)
                coins = SeededCoins(f"{coins.bits(62)} again")  # the child read coins of its own
                continue
            with failing(meets):
                answers.append(_release(ledger, request, coins))
        except (AnswerError, EngineError, LedgerError, KeyboardInterrupt):
            continue
        if len(answers) == 2:
            break
    assert len(set(answers)) < 2, "two answers to one request"
    return answers[0] if answers else UNANSWERED


def _release(ledger: Ledger, request: str, coins: Coins) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        item = select(
            dict.fromkeys(LABELS, 3), universe=LABELS, epsilon=1, coins=coins,
            ledger=ledger.request(request),
        ).item  # fmt: skip
    return NOTHING if item is None else str(item)


def _end_in_child(ledger: Ledger, fault: Fault, request: str, coins: Coins) -> None:
    """Make a request in a process of its own, which ends in the middle."""
    place, name = ledger.where, ledger.name
    child = os.fork()
    if not child:
        try:
            with failing(fault), Ledger(place, name) as own:
                _release(own, request, coins)
        finally:
            os._exit(1)  # it did not meet its fault
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        raise AssertionError(f"a process did not meet its fault: {fault.name}")


@contextmanager
def failing(fault: Fault | None) -> Iterator[None]:
    """Let a step fail within the block: the first time, or whenever one answer was drawn."""
    if fault is None:
        yield
        return
    owner, name = STEPS[fault.step]
    original = getattr(owner, name)

    def fail(*given: Any, **options: Any) -> Any:
        done = original(*given, **options) if fault.after else None
        if not fault.chosen or _holds_bad((*given, done)):
            if fault.error is None:
                os._exit(0)
            raise fault.error("It is gone. Nothing was charged or recorded by this call.")
        return done if fault.after else original(*given, **options)

    with replaced(owner, name, fail):
        yield


def _holds_bad(values: tuple[object, ...]) -> bool:
    """Whether what was drawn is the answer that faults go by."""
    texts = [value for value in values if isinstance(value, Mapping | list | tuple)]
    return any(repr(BAD) in repr(text) for text in texts)


# Planted faults


@contextmanager
def drawn_again() -> Iterator[None]:
    """A ledger that leaves a request open whose answer failed: what fails is drawn again."""

    def close(self: Payment, reservation: Any, nothing: Any, failed: Exception) -> BaseException:
        return failed

    with replaced(Payment, "_close", close):
        yield


@contextmanager
def refused_sometimes(part: Fraction, seed: str) -> Iterator[None]:
    """A ledger that cannot be reached in some of the cases in which one answer was drawn."""
    original, coins = Reservation.record, SeededCoins(seed)

    def record(self: Reservation, answer: Any) -> Any:
        if _holds_bad((answer,)) and uniform_below(part.denominator, coins) < part.numerator:
            raise LedgerError("It is gone. Nothing was charged or recorded by this call.")
        return original(self, answer)

    with replaced(Reservation, "record", record):
        yield
