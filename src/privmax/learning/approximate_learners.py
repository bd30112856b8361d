"""Points and thresholds learned with δ, at a cost that hardly grows with the domain.

`learn_point` asks which element most positive examples are at: each example is at one, so one
record touches one candidate. `RecursiveConcave` finds a good element of an ordered domain where
good ones lie together, by asking first, recursively, how many lie together: log* of the domain
levels.

Proof:      docs/proofs/approximate-learners.md
Reference:  Beimel, Nissim & Stemmer, RANDOM 2013: the learner of points, and Algorithm RecConcave
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.ledger import Ledger
from privmax.ledger.request import Request
from privmax.mechanisms.exponential import Exponential
from privmax.mechanisms.gap_test import GapTest
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, open_probability, positive, whole
from privmax.parameters import Exact, Parameters, Whole, parameter
from privmax.privacy import REPLACE, Privacy
from privmax.release import Release
from privmax.selection import Selection
from privmax.sources.containers.pandas import refuse_rounded
from privmax.sources.memory import MemorySource
from privmax.sources.roles import Columns

Quality = NDArray[np.int64]
"""Scores of the elements of the domain: whole numbers that one individual moves by at most 1."""

SMALL = 32
"""A domain of at most so many elements is drawn from directly."""

LARGEST = 1 << 24
"""The quality of every element is in memory."""

HIGHEST = 1 << 53
"""Qualities and the promise are at most this, up or down: differences of them fit in 64 bits."""


def learn_point(
    places: Sequence[int],
    labels: Sequence[int],
    *,
    epsilon: Number,
    delta: Number,
    ledger: Ledger | Request | None = None,
    coins: Coins = SYSTEM,
) -> Release:
    """Release the element that most positive examples are at, or none if few are anywhere.

    The rule "x is that element", or "no" where there is none, has few errors if the examples are
    labeled by some point: how many it takes does not depend on the domain.

    Args:
        places: The element of each example; each example is one individual's.
        labels: 1 or 0, of each example.
        epsilon: What it costs, with `delta`, under add-remove.
        delta: Above 0.
        ledger: The privacy budget that pays, or a request of it.
        coins: Source of random bits; for tests only.

    Raises:
        ParameterError: A parameter is not allowed.
        DataError: There are not as many labels as places, or one is neither 0 nor 1.

    Examples:
        >>> learn_point([7] * 50 + [3] * 40, [1] * 50 + [0] * 40, epsilon=1, delta=1e-6).item
        7
    """
    selection = Selection.of(Columns(), epsilon=epsilon, delta=delta, growth=1)
    return selection.answer(lambda _: _count_positives(places, labels), ledger, coins=coins)


def _count_positives(places: Any, labels: Any) -> Counter[Any]:
    """Positive examples by element; read when the ledger was asked, and by its rules of labels."""
    at, marks = list(refuse_rounded(places)), list(refuse_rounded(labels))
    if len(at) != len(marks) or not all(map(_is_label, marks)):
        raise DataError("There must be a label, 0 or 1, for every place.")
    tally = None
    with suppress(TypeError):
        tally = Counter(place for place, one in zip(at, marks, strict=True) if one)
    if tally is None:
        raise DataError("A place cannot be looked up. Use whole numbers, text or tuples.")
    return tally


def _is_label(value: Any) -> bool:
    """Return whether a value is 0 or 1.

    One that is missing is neither, and compares with nothing.
    """
    try:
        return bool(value in (0, 1))
    except (TypeError, ValueError):
        return False


class RecursiveConcave(Parameters):
    """Draw a good element of 0 … domain − 1, where the good ones lie together.

    Utility needs a quality that first rises and then falls along the domain (ties allowed), and
    somewhere reaches `promise`. Privacy needs nothing of that.

    Args:
        epsilon: What it costs, with `delta`, under either relation.
        delta: Above 0.
        domain: How many elements there are, at most 2^24.
        promise: A quality that some element is known to reach.
        loss: Which part of the promise may be lost.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> RecursiveConcave(epsilon=1, delta=1e-6, domain=2**20, promise=5000).levels()
        [1048576, 21]
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(open_probability)
    domain: Whole = parameter(whole)
    promise: Whole = parameter(whole)
    loss: Exact = parameter(open_probability, default="0.5")

    def privacy(self) -> Privacy:
        """Return what all draws cost together."""
        return Privacy(self.epsilon, self.delta)

    def levels(self) -> list[int]:
        """Return the sizes of the domains that are searched, the first first. They are public."""
        _check_domain(self.domain)
        if self.promise > HIGHEST:
            raise ParameterError(
                "promise", self.promise, "it must be at most 2^53", "No quality is higher."
            )
        sizes = [self.domain]
        while sizes[-1] > SMALL:
            sizes.append((sizes[-1] - 1).bit_length() + 1)
        return sizes

    def draw(self, quality: Quality, coins: Coins) -> int | None:
        """Return an element, or None where no interval stood out: what is released.

        Args:
            quality: Of every element. One individual moves each by at most 1.
            coins: Where the noise comes from.

        Raises:
            DataError: There are not as many qualities as elements, or one is not a whole number, or
                beyond 2^53.
            ParameterError: The domain or the promise is too large.
        """
        if not isinstance(quality, np.ndarray) or quality.shape != (self.domain,):
            raise DataError("There must be one quality for every element of the domain.")
        if quality.dtype.kind not in "iu":
            raise DataError("Qualities must be whole numbers.")
        if int(quality.max()) > HIGHEST or int(quality.min()) < -HIGHEST:
            raise DataError("Qualities must be between -2^53 and 2^53.")
        self.levels()
        return self._search(quality.astype(np.int64), self.promise, self.loss, coins)

    def _search(self, quality: Quality, promise: int, loss: Fraction, coins: Coins) -> int | None:
        if len(quality) <= SMALL:
            return self._pick(quality, coins)
        stretches = _best_stretches(quality)
        # Good lengths: some stretch of 2^j is good throughout, and none of 2^(j+1) is as good as
        # the best single element. Both parts move by at most 1.
        enough = promise - int(loss * promise)
        lengths = np.minimum(stretches[:-1] - enough, promise - stretches[1:])
        power = self._search(lengths, max(1, int(loss * promise / 2)), Fraction(1, 4), coins)
        if power is None:
            return None
        width = 8 << power
        places: list[int] = []
        for shift in (0, width // 2):  # a good stretch lies within an interval of one of the two
            starts = range(-shift, len(quality), width)
            best = [int(quality[max(start, 0) : start + width].max()) for start in starts]
            chosen = self._test(np.array(best, np.int64), coins)
            if chosen is not None:
                start = starts[chosen]
                places += range(max(start, 0), min(start + width, len(quality)))
        elements = sorted(set(places))
        if not elements:
            return None
        return elements[self._pick(quality[elements], coins)]

    def _pick(self, quality: Quality, coins: Coins) -> int:
        """Pick one element by the exponential mechanism."""
        source = MemorySource(quality, universe=len(quality))
        drawn = Exponential(epsilon=self._each(), neighbors=REPLACE).draw(source.profile, coins)
        return int(source.name(drawn))

    def _test(self, quality: Quality, coins: Coins) -> int | None:
        """Return the best element, if it is the best by far."""
        source = MemorySource(quality, universe=len(quality))
        share = self.delta / (2 * (len(self.levels()) - 1))
        test = GapTest(epsilon=self._each(), delta=share, neighbors=REPLACE)
        drawn: Any = source.name(test.draw(source.profile, coins))
        return None if drawn is None else int(drawn)

    def _each(self) -> Fraction:
        """Epsilon of each draw: three on each level but the last, which has one."""
        return self.epsilon / (3 * len(self.levels()) - 2)


def _check_domain(domain: int) -> None:
    if whole("domain", domain) > LARGEST:
        raise ParameterError(
            "domain", domain, f"it must be at most {LARGEST}", "Use fewer elements."
        )


def _best_stretches(quality: Quality) -> Quality:
    """For j = 0, 1, …: the largest c such that 2^j elements in a row have a quality of c or more.

    The domain is filled up to a power of two, and the last entry stands for twice all of it; what
    is added has a quality of 0, or less where the last element has less.
    """
    size = 1 << (len(quality) - 1).bit_length()
    filler = min(0, int(quality[-1]))
    least = np.concatenate([quality, np.full(size - len(quality), filler, np.int64)])
    qualities = [int(least.max())]
    length = 1
    while length < size:
        least = np.minimum(least[: len(least) - length], least[length:])
        length *= 2
        qualities.append(int(least.max()))
    return np.array([*qualities, min(0, qualities[-1])], np.int64)


def score_thresholds(places: Any, labels: Any, domain: int) -> Quality:
    """Return how many examples each rule "1 where x ≥ t" gets right, for t = 0 … domain − 1.

    Args:
        places: The element of each example, from 0 to domain − 1.
        labels: 1 or 0, of each example.
        domain: How many elements there are.

    Raises:
        ParameterError: The domain is too large.
        DataError: A place lies outside of the domain, or a label is neither 0 nor 1.

    Examples:
        >>> score_thresholds([0, 1, 3], [0, 0, 1], 4).tolist()
        [1, 2, 3, 3]
    """
    _check_domain(domain)
    x, y = np.asarray(refuse_rounded(places)), np.asarray(labels)
    if x.ndim != 1 or x.shape != y.shape:
        raise DataError("There must be a label, 0 or 1, for every place.")
    if len(x) and x.dtype.kind not in "iu":
        raise DataError("Places must be whole numbers.")
    x = x.astype(np.int64)
    if not np.isin(y, (0, 1)).all():
        raise DataError("There must be a label, 0 or 1, for every place.")
    if len(x) and (x.min() < 0 or x.max() >= domain):
        raise DataError("A place is outside the domain.")
    ones, zeros = (np.bincount(x[y == label], minlength=domain) for label in (1, 0))
    below = np.concatenate([[0], np.cumsum(zeros)[:-1]])
    above = ones.sum() - np.concatenate([[0], np.cumsum(ones)[:-1]])
    right: Quality = (below + above).astype(np.int64)
    return right
