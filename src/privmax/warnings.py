"""Warnings about releases that protect less than they seem to.

They are allowed: there may be a reason.

Each kind is given once per process, as a `PrivacyWarning`. The standard module `warnings` silences
it, or turns it into an error, which is then raised every time, before anything is charged. The
command line prints the same text, so options have their bare names in it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path

from privmax.errors import PrivacyWarning
from privmax.numbers import round_up
from privmax.privacy import DELTA_ADVICE, WEAK, Privacy

_LOG10_E = Fraction(434294, 10**6)

_HERE = str(Path(__file__).parent)


@dataclass
class _Memory:
    """The warnings given, and the cost charged without a ledger, in this process."""

    said: set[str] = field(default_factory=set)
    fits: int = 0
    cost: Privacy = field(default_factory=partial(Privacy, 0))


_memory = _Memory()


@contextmanager
def reset_once() -> Iterator[None]:
    """As in a new process: each kind of warning is given once more."""
    global _memory  # noqa: PLW0603  # it is the memory of the process
    before, _memory = _memory, _Memory()
    try:
        yield
    finally:
        _memory = before


def warn_of_price(cost: Privacy) -> None:
    """Of a cost that hardly protects anyone."""
    if cost.epsilon > WEAK.epsilon:
        power = int(cost.epsilon * _LOG10_E)
        factor = f"10^{power}" if power <= 10**6 else "more than 10^1000000"
        _warn(
            "epsilon",
            f"epsilon {round_up(cost.epsilon)} protects no one. One person's data can make an "
            f"answer {factor} times as likely. Common values are between 0.1 and 3.",
        )
    if cost.delta > WEAK.delta:
        _warn(
            "delta",
            f"delta {round_up(cost.delta)} is the chance that the guarantee fails "
            "completely. It should be far below 1 divided by the number of people: "
            f"{DELTA_ADVICE}.",
        )


def warn_of_rows() -> None:
    """Of rows that are counted as if each were one individual."""
    _warn(
        "rows",
        "Each row counts as one individual. If one person can have several rows, set user to the "
        "column of people. If not, set unit to user or row.",
    )


def warn_of_baskets() -> None:
    """Of baskets that are counted as if each were one individual."""
    _warn(
        "baskets",
        "Each basket counts as one individual. If one person can have several baskets, set user "
        "to the column of people. If not, set unit to user or basket.",
    )


def warn_of_fits(cost: Privacy, learner: str = "PrivateERM") -> None:
    """Of fits that no one adds up; to be called at every fit without a ledger, with its cost."""
    memory = _memory
    memory.fits, memory.cost = memory.fits + 1, memory.cost + cost
    if memory.fits > 1:
        epsilon, delta = round_up(memory.cost.epsilon), round_up(memory.cost.delta)
        _warn(
            "fits",
            f"{learner} was fitted {memory.fits} times in this process without a ledger. Every "
            f"fit is a release: on the same data they cost epsilon {epsilon}, delta {delta} "
            "together so far, and every further fit of a grid search or a cross-validation adds "
            "to it. Give a ledger to add them up and to stop at a budget, or fit once.",
        )


def warn_of_steps(steps: Sequence[str]) -> None:
    """Of steps of a pipeline that learn from private rows before a private learner does."""
    _warn(
        "steps",
        f"The pipeline learns from X before the private learner does: {', '.join(steps)}. What it "
        "learns (categories, means, ranges) is used and shown without noise, and the privacy cost "
        "does not cover it. Declare it instead: give the class a schema, or the step its "
        "categories.",
    )


def _warn(kind: str, message: str) -> None:
    if kind not in _memory.said or _is_error(message):
        warnings.warn(message, PrivacyWarning, stacklevel=_outside())
        _memory.said.add(kind)


def _is_error(message: str) -> bool:
    """Return whether the first filter for warnings of ours makes them errors.

    Wherever they come from.
    """
    for action, words, category, module, line in warnings.filters:
        for_ours = issubclass(PrivacyWarning, category) and module is None and line == 0
        if for_ours and (words is None or words.match(message)):
            return action == "error"
    return False


def _outside() -> int:
    """Return how many frames up from where `warn` is called the caller of this package stands."""
    frame, level = sys._getframe(2), 2
    while (
        frame is not None
        and frame.f_code.co_filename.startswith(_HERE)
        and frame.f_back is not None
    ):
        frame, level = frame.f_back, level + 1
    return level
