"""A public schedule for releases: how long one takes says as little as possible about the data."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

from privmax.errors import ParameterError
from privmax.numbers import Number, positive

LONGEST = 86_400
"""Seconds of a schedule at most: a day."""

SHORTEST = Fraction(1, 1000)
"""Seconds of a schedule at least. No release is as quick, and a step that a float takes for 0 would
never reach the time that has passed."""


def read_seconds(name: str, value: Number) -> Fraction:
    """Read the step of a schedule.

    Raises:
        ParameterError: It is below a thousandth, or longer than a day.

    Examples:
        >>> read_seconds("seconds", "0.5")
        Fraction(1, 2)
    """
    seconds = positive(name, value, "For example 2.")
    if seconds > LONGEST:
        raise ParameterError(name, value, "it must be at most 86400, a day", "For example 2.")
    if seconds < SHORTEST:
        raise ParameterError(name, value, "it must be at least 0.001", "For example 2.")
    return seconds


class pad_time:  # used as a statement: with pad_time(2): …
    """Make a block take a public time: `seconds`, or 2, 4, 8, … times that.

    It ends at the first of these times at which the work is done, whether there is an answer, no
    answer, or an error. Choose `seconds` so large that the work is always done by then: anyone who
    measures the time learns nothing else from it, and otherwise how often it was doubled. An
    interrupt (Ctrl-C) ends it at once.

    Args:
        seconds: Chosen without looking at the data; a day at most.
        clock: Returns the time, in seconds; for tests only.
        sleep: Waits so many seconds; for tests only.

    Raises:
        ParameterError: `seconds` is below a thousandth, or longer than a day.

    Examples:
        >>> import privmax
        >>> with privmax.pad_time(0.5):
        ...     release = privmax.select({"tea": 10**9, "ale": 1}, epsilon=1, delta=1e-6)
        >>> release.item
        'tea'
    """

    def __init__(
        self,
        seconds: Number,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._seconds = float(read_seconds("seconds", seconds))
        self._clock, self._sleep = clock, sleep

    def __enter__(self) -> None:
        self._began = self._clock()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, Exception):
            return
        passed, until = self._clock() - self._began, self._seconds
        while until < passed:
            until *= 2
        while (left := self._began + until - self._clock()) > 0:
            self._sleep(left)
