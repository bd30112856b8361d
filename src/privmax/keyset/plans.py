"""Planning for keys: how many individuals a key must have to be found, before any data is touched.

One key each and one round follow from the exact law of the noise. Where individuals have several
keys, what they give to one of them depends on the others, so the default has two rows: one where
all keys are alike, and one where no other key needs anything. Both are about the last round alone,
so the looks before it can only find more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import exp, lgamma, log, log1p, pi, sqrt

from privmax.keyset.budget import ONE, find_noise, find_threshold
from privmax.keyset.procedure import KeySearch
from privmax.noise.balls import START, ball, precision
from privmax.noise.tails import normal_tail
from privmax.notebook import table
from privmax.numbers import Number, open_probability, plain, round_up
from privmax.one_key_each import OneKeyEach
from privmax.planning.plans import check_planned
from privmax.privacy import Privacy

STEPS = (1, 2, 5, 10, 20, 50, 100, 200)
"""The values of `per_user` that a picture shows."""

ONE_ROUND, ONE_EACH = "one round", "one key each"
ALIKE, ALONE = "privmax keys, all keys alike", "privmax keys, others need nothing"

FINE, FAR = 32, 9
"""In how many parts a standard deviation of large numbers is divided, and how many of them count on
either side of the mean.
"""

_LEFT_TO_THRESHOLD = Fraction(1, 2)
"""The part of delta that the threshold of one round gets."""


@dataclass(frozen=True)
class KeyRow:
    """The needs of one way to find keys.

    Args:
        name: What it is called.
        single: How many individuals with one key each a key must have.
        several: The same if each of them has `per_user` keys.
    """

    name: str
    single: int
    several: int


@dataclass(frozen=True)
class KeyPlan:
    """The number of individuals that a key needs to be found; prints as a table.

    Args:
        privacy: The cost.
        per_user: How many keys of one individual count at most.
        success: The probability with which the key is found.
        rows: What each way needs.
    """

    privacy: Privacy
    per_user: int
    success: Fraction
    rows: tuple[KeyRow, ...]

    @property
    def headings(self) -> tuple[str, ...]:
        """The columns of the table."""
        return (
            "individuals have",
            "1 key each",
            f"{self.per_user:,} key{'s' * (self.per_user > 1)} each",
        )

    def cells(self) -> list[tuple[str, ...]]:
        """The table as text, without its headings."""
        return [(row.name, f"{row.single:,}", f"{row.several:,}") for row in self.rows]

    def __str__(self) -> str:
        lines = [self.headings, *self.cells()]
        widths = [max(len(line[column]) for line in lines) for column in range(3)]
        text = [
            f"{line[0]:{widths[0]}}  {line[1]:>{widths[1]}}  {line[2]:>{widths[2]}}"
            for line in lines
        ]
        return "\n".join([*self._head(), "", *text, "", self.foot])

    def _repr_html_(self) -> str:
        """A table for notebooks. No data was looked at, so all of it is public."""
        return table(self.title, self.headings, self.cells(), self.foot, numbers=(1, 2))

    @property
    def title(self) -> str:
        """The title of the table."""
        return " ".join(self._head())

    @property
    def foot(self) -> str:
        """Remarks about the rows of the table."""
        return "privmax keys chooses between rounds and one key each by a noisy tally."

    def _head(self) -> list[str]:
        cost = f"epsilon {round_up(self.privacy.epsilon)}, delta {round_up(self.privacy.delta)}"
        return [
            "Individuals that a key must have to be found",
            f"with probability {plain(self.success)} at {cost}:",
        ]


def plan_keys(
    *, epsilon: Number, delta: Number, per_user: int = 30, success: Number = "0.95"
) -> KeyPlan:
    """Return how many individuals a key needs for `keys` to find it. Reads no data.

    Args:
        epsilon: What `keys` costs, without counts.
        delta: The same, above 0.
        per_user: How many keys of one individual count at most.
        success: The probability with which the key is to be found.

    Returns:
        A row for one round of noise, one for one key per individual, and two for the default: where
        all keys of an individual are alike, and where no other key of it needs anything.

    Raises:
        ParameterError: An option is out of bounds.

    Examples:
        >>> found = plan_keys(epsilon=1, delta=1e-6, per_user=20)
        >>> [row.single for row in found.rows if row.name == "one key each"]
        [16]
    """
    search = KeySearch(epsilon=epsilon, delta=delta, per_user=per_user)
    check_planned(epsilon)
    search.prepare()
    target = open_probability("success", success)
    each = OneKeyEach(epsilon=search.epsilon, delta=search.delta)
    rows = [
        _plan_round(search, target),
        _plan_each(ONE_EACH, each, search.per_user, target),
    ]
    if search.per_user == 1:
        rows.append(_plan_each(ALIKE, search.single, 1, target))
    else:
        single = _plan_each("", search.single, search.per_user, target).single
        last = search.rounds(search.per_user).last
        variance, threshold = last.variance / ONE**2, Fraction(last.threshold, ONE)
        for name, part in ((ALIKE, search.per_user), (ALONE, 1)):
            rows.append(KeyRow(name, single, _least_normal(threshold, variance, part, target)))
    return KeyPlan(search.privacy(), search.per_user, target, tuple(rows))


def plan_keys_over(
    numbers: Iterable[int], *, epsilon: Number, delta: Number, success: Number = "0.95"
) -> dict[int, KeyPlan]:
    """Plans for several values of `per_user`, by it."""
    return {
        number: plan_keys(epsilon=epsilon, delta=delta, per_user=number, success=success)
        for number in numbers
    }


def _plan_round(search: KeySearch, success: Fraction) -> KeyRow:
    """One round of Gaussian noise on equal weights, with the best threshold."""
    passing = _LEFT_TO_THRESHOLD * search.delta
    variance = find_noise(search.epsilon, search.delta, passing) ** 2
    steps = find_threshold(variance, passing, search.per_user, equal=True)
    threshold = Fraction(steps, ONE)
    single, several = (
        _least_normal(threshold, variance, part, success) for part in (1, search.per_user)
    )
    return KeyRow(ONE_ROUND, single, several)


def _plan_each(name: str, each: OneKeyEach, per_user: int, success: Fraction) -> KeyRow:
    """One key per individual, which is one of `per_user` with the same chance for each."""
    test = each.test

    def is_enough(people: int) -> bool:
        with precision(START):
            return bool(test.chance(people) >= ball(success))

    @cache
    def silence(count: int) -> float:
        return 1 - float(test.chance(count).mid())

    def is_likely(people: int) -> bool:
        chances = _binomial(people, per_user, test.certain())
        return 1 - sum(chance * silence(count) for count, chance in chances) >= success

    single = _least(is_enough)
    return KeyRow(name, single, single if per_user == 1 else _least(is_likely))


def _binomial(people: int, per_user: int, most: int) -> Iterator[tuple[int, float]]:
    """Return numbers of individuals that count for a key, below `most`, with 1/per_user each; and
    their chances.

    Of large numbers every n-th stands for n of them, as chances hardly differ there. Those that are
    `FAR` standard deviations from the mean are left out.
    """
    mean = people / per_user
    spread = sqrt(mean * (1 - 1 / per_user))
    stride, reach = max(1, int(spread / FINE)), int(FAR * spread) + 100
    first, last = max(0, int(mean) - reach), min(people, most - 1, int(mean) + reach)
    for count in range(first, last + 1, stride):
        yield count, stride * exp(_log_chance(people, per_user, count))


def _log_chance(people: int, per_user: int, count: int) -> float:
    """The logarithm of a binomial probability: it is beyond floats where epsilon is small."""
    rest = people - count
    if people < 1 << 30:
        ways = lgamma(people + 1) - lgamma(count + 1) - lgamma(rest + 1)
        return ways - count * log(per_user) + rest * log1p(-1 / per_user)
    # By Stirling's formula, as the logarithms above are too large for floats. Both are thousands.
    off = count - people / per_user
    root = log(2 * pi * count * (rest / people)) / 2
    return rest * log1p(off / rest) - count * log1p(off / (count - off)) - root


def _least_normal(threshold: Fraction, variance: Fraction, part: int, success: Fraction) -> int:
    """The fewest individuals that lift a total over a threshold, if each gives 1/√part."""

    def is_enough(people: int) -> bool:
        with precision(START):
            total = people / ball(Fraction(part)).sqrt()
            chance = normal_tail((ball(threshold) - total) / ball(variance).sqrt())
            return bool(chance >= ball(success))

    return _least(is_enough)


def _least(is_enough: Callable[[int], bool]) -> int:
    """The least whole number that is enough, where all above it are."""
    high = 1
    while not is_enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
