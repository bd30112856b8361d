"""The laws that Coq checked theorems about are those of the code.

formal_laws.py holds the definitions of formal/ in Python.

Twice. In fractions: the mechanisms compute with a number in place of e whose powers are rational,
and every probability must be the very same fraction. And in balls: the law as it is published must
be that of formal/ up to the error it states.
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import random
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from flint import arb, fmpq

from privmax import (
    AboveThreshold,
    Exponential,
    GapTest,
    LargeMargin,
    LimitedDomain,
    NestedMargin,
    NoisyMaximum,
    Privacy,
    Profile,
    RestrictedExponential,
    SetMargin,
    count_costs,
    relative,
)
from privmax.counts import choose_noise
from privmax.keyset import rounds as key_code
from privmax.keyset.rounds import KeyRounds
from privmax.learning.additive import rounds as fit_code
from privmax.mechanisms import cells, gap_test, guards, set_margin, weights
from privmax.mechanisms import nested_margin as nested_code
from privmax.mechanisms.stages import Stage
from privmax.noise import balls
from privmax.noise.balls import precision
from privmax.one_key_each import OneKeyEach
from privmax.privacy import drift
from privmax.relative import choose_order_noise
from privmax.repetition import NegativeBinomial, Poisson, RunCost
from privmax.sources.grouped import Grouping
from privmax.sources.reading import grouped
from privmax.sources.roles import Columns

sys.path.append(str(Path(__file__).parent))

from key_ballots import HALF, Ballots, give_own  # it is beside this file

pytestmark = pytest.mark.slow

_spec = importlib.util.spec_from_file_location(
    "formal_laws", Path(__file__).with_name("formal_laws.py")
)
formal = sys.modules["formal_laws"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(formal)

PARTS = 128
"""Exponents are multiples of 1/128 here: ε/2, and ε/64 for the nested margin mechanism."""

BASE = fmpq(129, 128)
"""What e^(1/128) is in fractions; e itself is then about 2.7."""

RELATIONS = ("add-remove", "replace")


@pytest.fixture(params=[12, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def part(request: pytest.FixtureRequest) -> int:
    """Of the profiles, one in so many."""
    return request.param


class Exact:
    """A rational number with the methods of a ball that the mechanisms use.

    Powers have thousands of digits, which FLINT reduces faster than fractions.Fraction does.
    """

    def __init__(self, value: Any) -> None:
        self.value = rational(value)

    def exp(self) -> Exact:
        exponent = self.value * PARTS
        assert exponent.q == 1, "the power is not rational"
        return Exact(BASE ** int(exponent.p))

    def expm1(self) -> Exact:
        return self.exp() - 1

    def max(self, other: Any) -> Exact:
        return Exact(max(self.value, rational(other)))

    def min(self, other: Any) -> Exact:
        return Exact(min(self.value, rational(other)))

    def __neg__(self) -> Exact:
        return Exact(-self.value)

    def __add__(self, other: Any) -> Exact:
        return Exact(self.value + rational(other))

    def __sub__(self, other: Any) -> Exact:
        return Exact(self.value - rational(other))

    def __rsub__(self, other: Any) -> Exact:
        return Exact(rational(other) - self.value)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Logarithm):
            return NotImplemented
        return Exact(self.value * rational(other))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Exact:
        return Exact(self.value / rational(other))

    def __rtruediv__(self, other: Any) -> Exact:
        return Exact(rational(other) / self.value)

    def __pow__(self, power: int) -> Exact:
        return Exact(self.value**power)

    @classmethod
    def pos_inf(cls) -> Exact:
        return cls(1 << 4096)

    def tanh(self) -> Exact:
        return (self * 2).expm1() / ((self * 2).exp() + 1)

    def log1p(self) -> Logarithm:
        return Logarithm(1 + self.value)


@dataclass(frozen=True)
class Logarithm:
    """A multiple of the logarithm of a rational number."""

    argument: fmpq
    times: fmpq = fmpq(1)  # noqa: RUF009 - a number

    def __rmul__(self, other: Any) -> Logarithm:
        return Logarithm(self.argument, self.times * rational(other))

    def __truediv__(self, other: Any) -> Logarithm:
        return Logarithm(self.argument, self.times / rational(other))

    def exp(self) -> Exact:
        assert self.times.q == 1, "the power is not rational"
        return Exact(self.argument ** int(self.times.p))

    def __neg__(self) -> Logarithm:
        return Logarithm(self.argument, -self.times)

    def expm1(self) -> Exact:
        return self.exp() - 1


def ceiling(exact: Callable[[], Exact | Logarithm]) -> int:
    """The least whole number that is no smaller."""
    number = exact()
    if isinstance(number, Exact):
        return math.ceil(number.value)
    steps = 0
    while Exact(steps / number.times).exp().value < number.argument:
        steps += 1
    return steps


def rational(number: Any) -> fmpq:
    if isinstance(number, Exact):
        return number.value
    if isinstance(number, fmpq):
        return number
    return fmpq(*Fraction(number).as_integer_ratio())


@contextmanager
def in_fractions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the mechanisms compute weights in fractions."""
    with monkeypatch.context() as patch:
        for module in (weights, guards, nested_code, cells, set_margin, gap_test):
            for name in ("arb", "ball"):
                if hasattr(module, name):
                    patch.setattr(module, name, Exact)
        for module, name in (
            (nested_code, "_guards"),
            (gap_test, "_turn"),
            (gap_test, "_soft_turn"),
        ):
            patch.setattr(module, name, getattr(module, name).__wrapped__)  # keeps nothing
        patch.setattr(gap_test, "ceiling", ceiling)
        patch.setattr(cells, "choices", math.comb)
        yield


def power(exponent: Fraction) -> fmpq:
    """What e to this is in fractions."""
    return Exact(exponent).exp().value


def profiles(number: int, *, highest: int, seed: int) -> Iterator[dict[int, int]]:
    """Small profiles: how many candidates stand at each score above 0."""
    dice = random.Random(seed)
    for _ in range(number):
        scores = dice.sample(range(1, highest + 1), dice.randint(1, 4))
        yield {score: dice.randint(1, 3) for score in sorted(scores, reverse=True)}


def labeled(levels: dict[int, int], zeros: int) -> list[int]:
    """One score a candidate. Those of score 0 come first: in an open universe they are dummies."""
    return [0] * zeros + [score for score, count in levels.items() for _ in range(count)]


def by_score(law: dict[Any, Any], q: Sequence[int]) -> dict[int, Any]:
    """The probability of each score."""
    found: dict[int, Any] = {}
    for i, share in law.items():
        if i is not None:
            found[q[i]] = found.get(q[i], 0) + share
    return found


def close(one: float, other: Any, error: float = 2.0**-39) -> bool:
    return abs(one - float(other)) <= error


def test_the_values_that_coq_proved() -> None:
    """Those of formal/Examples.v: the definitions in Python are those in Coq there."""
    half, hundredth, two = Fraction(1, 2), Fraction(1, 100), Fraction(2)
    assert formal.exponential(two, [1, 0, 0, 0])[0] == Fraction(2, 5)
    drawn = formal.limited_domain(two, 1, 1, hundredth, [3, 0, 0, 0])
    assert drawn == {0: Fraction(1, 26), None: Fraction(25, 26)}
    assert formal.chance(two, hundredth, 2) == Fraction(3, 100)
    assert formal.soft_chance(Fraction(4), two, hundredth, 2) == Fraction(5, 100)
    assert formal.laplace(half, 1) == Fraction(1, 6)
    assert formal.laplace_cdf(half, 1) == Fraction(5, 6)


def value_of(name: str, q: list[int]) -> list[Fraction]:
    """The values of formal/Laws.v: t = 2, delta = 1/10, rho = 1/2, u = 2, v = 3."""
    t, delta, half = Fraction(2), Fraction(1, 10), Fraction(1, 2)
    everyone = range(len(q))
    if name == "exponential":
        return formal.exponential(t, q)
    if name == "laplace":
        return [formal.laplace(half, -q[0]), formal.laplace_cdf(half, -q[0])]
    if name == "gap_test":
        chance_ = formal.chance(t, delta, formal.steps(1, 2, q))
        return [chance_, 1 - chance_]
    stages = {
        "best_set": formal.Test(2, Fraction(4), t, delta),
        "set_stage": formal.Draw(1, 2, Fraction(1), lambda y: y, t, Fraction(3), delta),
        "everybody": formal.Whole(2, t, Fraction(3)),
    }
    if name in stages:
        law: Any = dict(formal.released(stages[name], 1, q))
        sets = [frozenset(one) for one in combinations(everyone, stages[name].k)]
        if name == "everybody":
            return [law[one] for one in reversed(sets)]
        return [*(law.get(one, 0) for one in sets), law[None]]
    nested = {"ranks": [1, 2, 4], "deltas": [delta, delta, Fraction(0)], "rho": half}
    laws: dict[str, Callable[[], Any]] = {
        "restricted": lambda: formal.restricted(t, 2, q),
        "limited_domain": lambda: formal.limited_domain(t, 2, 2, delta, q),
        "limited_domain_clipped": lambda: formal.limited_domain_clipped(
            t, 1, 2, delta, width=2, slips=1, q=q
        ),
        "nested_margin": lambda: formal.nested_margin(t, 1, q=q, **nested),
        "nested_margin_growth": lambda: formal.nested_margin_growth(
            t, 1, width=2, slips=1, q=q, **nested
        ),
    }
    found = laws[name]()
    return [found.get(i, 0) for i in ([*everyone, None] if None in found else everyone)]


def test_the_values_that_coq_computed() -> None:
    """Coq made a program of its definitions; formal/laws.txt is what that printed."""
    path = Path(__file__).resolve().parents[2] / "formal" / "laws.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 8 * 4**4 + 2 * 4**3 + 8
    for line in lines:
        start, values = line.split(": ")
        name, *scores = start.split()
        assert value_of(name, [int(one) for one in scores]) == [
            Fraction(value) for value in values.split()
        ], line


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_exponential(neighbors: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, c = Exponential(epsilon=1, neighbors=neighbors), drift(neighbors)
    for levels in profiles(500 // part, highest=40, seed=1):
        q = labeled(levels, zeros=2)
        profile = Profile(levels.items(), universe=len(q))
        law = mechanism.law(profile)
        window, blocks, rate = mechanism._view(profile)
        clipped = formal.clip(window.floor, 0, q) if window.rest else q
        with in_fractions(monkeypatch):
            each = [weight.value for weight in weights.block_weights(blocks, rate)]
        shares = formal.exponential(power(Fraction(1, c)), clipped)
        expected = by_score(dict(enumerate(shares)), clipped)
        assert [weight / sum(each) for weight in each] == list(_falling(expected))
        with precision(128):
            balls = formal.exponential((arb(1) / c).exp(), clipped)
        real = by_score(dict(enumerate(balls)), clipped)
        assert all(close(chance, real[score].mid()) for score, _, chance in law.blocks)


def _falling(shares: dict[int, Any]) -> Iterator[Any]:
    for score in sorted(shares, reverse=True):
        yield shares[score]


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_restricted_exponential(neighbors: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for levels in profiles(500 // part, highest=12, seed=2):
        near = 1 + sum(levels.values()) // 2
        mechanism = RestrictedExponential(epsilon=1, near=near, neighbors=neighbors)
        window = Profile(levels.items()).window(100)
        q = labeled(levels, zeros=near)
        with in_fractions(monkeypatch):
            each = [
                weight.value
                for weight in weights.block_weights(window.first(near), mechanism._rate(1))
            ]
        expected = by_score(formal.restricted(power(Fraction(1, drift(neighbors))), near, q), q)
        assert [weight / sum(each) for weight in each] == list(_falling(expected))


@pytest.mark.slow
@pytest.mark.parametrize("universe", ["open", "closed"])
@pytest.mark.parametrize("growth", [None, 1, 2])
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_limited_domain(
    neighbors: str, growth: int | None, universe: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    c, delta = drift(neighbors), Fraction(1, 50)
    for place, levels in enumerate(profiles(250 // part, highest=40, seed=3)):
        k = 1 + place % 3
        mechanism = LimitedDomain(
            epsilon=1, delta=delta, rank=k, neighbors=neighbors, growth=growth
        )
        q = labeled(levels, zeros=k + 1)
        profile = Profile(levels.items(), universe=None if universe == "open" else len(q))
        law = mechanism.law(profile)
        window, blocks = mechanism._view(profile)
        width = mechanism._clip(profile)
        clipped = formal.clip(width, 0, q)

        def law_of(
            t: Any, k: int = k, width: int = width, q: Any = q, clipped: Any = clipped
        ) -> Any:
            if growth is None:
                return formal.limited_domain(t, c, k, 1 / (1 / t * 0 + 50), clipped)
            return formal.limited_domain_clipped(
                t, c, k, 1 / (1 / t * 0 + 50), width=width, slips=c * growth, q=q
            )

        with in_fractions(monkeypatch):
            *each, guard = (one.value for one in mechanism._weights(window, profile, blocks))
        expected = law_of(power(Fraction(1, c)))
        total = sum(each) + guard
        assert guard / total == expected[None]
        assert [one / total for one in each] == list(_falling(by_score(expected, clipped)))
        with precision(128):
            real = law_of((arb(1) / c).exp())
            drawn = by_score(real, clipped)
        for score, count, chance_ in law.blocks:
            if count is not None and score > 0:
                assert close(chance_, drawn.get(score, arb(0)).mid())


@pytest.mark.slow
@pytest.mark.parametrize("universe", ["open", "closed"])
@pytest.mark.parametrize("growth", [None, 1, 2])
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_nested_margin(
    neighbors: str, growth: int | None, universe: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    c, ranks = drift(neighbors), (1, 2, 4)
    mechanism = NestedMargin(
        epsilon=1, delta="0.02", neighbors=neighbors, ranks=ranks, growth=growth
    )
    for levels in profiles(240 // part, highest=40, seed=4):
        q = labeled(levels, zeros=5 if universe == "open" else 1)
        profile = Profile(levels.items(), universe=None if universe == "open" else len(q))
        law = mechanism.law(profile)
        used = mechanism.levels(profile.universe)
        guarded = sum(rank < len(q) for rank in used)
        width = mechanism._clip(profile)
        clipped = formal.clip(width, 0, q)

        def law_of(
            t: Any, rho: Any, used: Any = used, n: int = guarded, q: Any = q, width: int = width
        ) -> Any:
            deltas = [1 / (50 * n + 0 * t)] * len(used)
            if growth is None:
                return formal.nested_margin(t, c, used, deltas, rho, formal.clip(width, 0, q))
            return formal.nested_margin_growth(
                t, c, used, deltas, rho, width=width, slips=c * growth, q=q
            )

        with in_fractions(monkeypatch):
            window = mechanism._window(profile)
            *each, nothing = (one.value for one in mechanism._chances(window, profile))
        expected = law_of(power(Fraction(63, 64) / c), 1 - power(-Fraction(1, 64)))
        assert nothing == expected[None] >= 0
        shares = by_score(expected, clipped)
        assert [one for one in each if one] == [one for one in _falling(shares) if one]
        with precision(128):
            real = law_of((arb(63) / 64 / c).exp(), 1 - (arb(-1) / 64).exp())
        drawn = by_score(real, clipped)
        for score, count, chance_ in law.blocks:
            if count is not None and score > 0:
                assert close(chance_, arb(drawn.get(score, 0)).mid())


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("k", [1, 2])
def test_gap_test(k: int, neighbors: str, part: int) -> None:
    mechanism = GapTest(epsilon="0.7", delta="0.001", neighbors=neighbors, k=k)
    for levels in profiles(500 // part, highest=40, seed=5):
        q = labeled(levels, zeros=k + 1)
        with precision(256):
            expected = formal.chance(
                (arb(7) / 10).exp(), arb(1) / 1000, formal.steps(drift(neighbors), k, q)
            )
        released = mechanism.sets(Profile(levels.items()))[None]
        nothing = released.chances[(0,) * len(released.blocks)]
        assert close(1 - nothing, expected.mid())


@pytest.mark.slow
@pytest.mark.parametrize("delta", [Fraction(1, 1000), Fraction(1, 20), Fraction(1, 3)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(2)])
def test_the_chances_of_tests_in_fractions(
    epsilon: Fraction, delta: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism, share = GapTest(epsilon=epsilon, delta=delta), rational(delta)
    with in_fractions(monkeypatch):
        for n in range(40):
            assert mechanism.chance(n).value == formal.chance(power(epsilon), share, n)
        for silence in (Fraction(1, 32), Fraction(1, 4), Fraction(1)):
            for n in range(40):
                nothing, best = gap_test.soft_chances(n, epsilon, delta, silence)
                y = power(silence * epsilon)
                assert best.value == formal.soft_chance(power(epsilon), y, share, n)
                assert nothing.value == 1 - best.value


@pytest.mark.parametrize("silence", ["0.05", "0.25", "1"])
def test_the_best_set_as_a_stage(silence: str) -> None:
    epsilon, delta, x = Fraction(7, 10), Fraction(1, 1000), Fraction(silence)
    for n in range(60):
        with precision(256):
            r, y = (balls.ball(one).exp() for one in (epsilon, x * epsilon))
            expected = formal.soft_chance(r, y, balls.ball(delta), n)
            nothing, best = gap_test.soft_chances(n, epsilon, delta, x)
            assert best.overlaps(expected)
            assert nothing.overlaps(1 - expected)
            assert best.rad() < 1e-30


def test_the_thresholds_of_the_large_margin() -> None:
    mechanism = LargeMargin(epsilon=1, delta="0.001")
    for rank in range(1, 50):
        first = balls.ceiling_log(Fraction(3), Fraction(1500))
        second = balls.ceiling_log(Fraction(6), Fraction(3000))
        third = balls.ceiling_log(Fraction(12), Fraction(3000 * rank * (rank + 1)))
        assert mechanism.threshold(rank) == first + second + third + mechanism.margin(rank)


def test_noisy_maximum() -> None:
    law = NoisyMaximum(epsilon="0.5").law(Profile([(7, 2)]))
    for value, share in law.items():
        assert close(share, formal.laplace(math.exp(-0.5), value - 7))


@pytest.mark.parametrize("monotone", [False, True])
def test_above_threshold(monotone: bool, part: int) -> None:
    mechanism = AboveThreshold(epsilon=2, monotone=monotone)
    shared, query = (
        math.exp(-1 / scale) for scale in (mechanism.shared_scale(), mechanism.query_scale())
    )
    dice = random.Random(6)
    for _ in range(50 // part):
        excess = [dice.randint(-6, 6) for _ in range(dice.randint(1, 5))]
        found, never = mechanism.law([(1, one) for one in excess])
        for answer, share in enumerate([*found.tolist(), never]):
            expected = math.fsum(
                formal.laplace(shared, g)
                * formal.stops(lambda z: formal.laplace_cdf(query, z), excess, g, answer)
                for g in range(-60, 61)
            )
            assert close(share, expected, 1e-9)


SILENCES = Fraction(1, 4), Fraction(1, 2), Fraction(1)
"""x of a test, of a draw that is followed, and of the last stage."""


def cascade(universe: str, last: Fraction) -> list[Stage]:
    """A test and a draw; or with one more draw, unless `last` is 1."""
    stages = [Stage(2, 2, silence=SILENCES[0], part=Fraction(1, 2))]
    stages.append(Stage(2, 4, silence=last, part=Fraction(1, 4)))
    if last < 1:
        stages.append(Stage(1, 3, silence=1, part=Fraction(1, 4)))
    if universe == "closed":
        stages[-1] = Stage(stages[-1].size, 99, silence=1, part=Fraction(1, 4))
    return stages


def set_profiles(number: int, universe: str, seed: int) -> Iterator[tuple[list[int], Profile]]:
    """Scores of more than two candidates, and the profile they make."""
    for levels in profiles(number, highest=20, seed=seed):
        q = labeled(levels, zeros=5 if universe == "open" else 1)
        if len(q) > 2:
            yield q, Profile(levels.items(), universe=None if universe == "open" else len(q))


def set_margin_law(
    mechanism: SetMargin,
    universe: int | None,
    q: Sequence[int],
    exp: Callable[[Fraction], Any],
    number: Callable[[Fraction], Any],
) -> Any:
    """The law of formal/ for the stages of a mechanism with delta = 1/50.

    Args:
        mechanism: The mechanism.
        universe: How many candidates there are, or None.
        q: One score per candidate.
        exp: e^x of x, as a number of the kind to compute with.
        number: x as such a number.
    """
    stages: list[Any] = []
    c = drift(mechanism.neighbors)
    for stage, epsilon in mechanism.budgets(universe):
        delta = number(stage.part / 50)
        u, v = (exp(epsilon / c * part) for part in (stage.tilt, 1 - stage.tilt))
        if universe is not None and stage.width >= universe:
            stages.append(formal.Whole(stage.size, u, v))
        elif stage.width == stage.size:
            y = exp(stage.silence * epsilon)
            stages.append(formal.Test(stage.size, exp(epsilon), y, delta))
        else:
            x = number(stage.silence)
            stages.append(
                formal.Draw(stage.size, stage.width, x, _silence(stage.silence), u, v, delta)
            )
    return formal.set_margin(stages, c, q)


def _silence(x: Fraction) -> Callable[[Any], Any]:
    return lambda y: y if x == 1 else y ** float(x)  # halves and quarters are exact


def drawn_sets(turn: Any, q: Sequence[int]) -> Iterator[tuple[frozenset[int], fmpq]]:
    """The sets that a stage may draw and the probability of each, given that it draws one: a cell
    by its weight, and then a uniform set of that cell.
    """
    if turn.is_test:
        yield frozenset(formal.top(q, turn.width)), fmpq(1)
        return
    cells_, order, size = turn.cells, formal.ranking(q), turn.stage.size
    places = range(len(cells_.prefixes))
    rows = [[weight.value for weight in cells_._row(place)] for place in places]
    total = sum(map(sum, rows))
    for chosen in formal.choices(size, turn.width, q):
        held = sorted(order.index(i) for i in chosen)
        prefix = next((r for r, rank in enumerate(held) if r != rank), size)
        yield (
            chosen,
            sum(
                weight / math.comb(u - p, size - p)
                for p, row in zip(cells_.prefixes, rows, strict=True)
                for u, weight in zip(cells_.reaches, row, strict=True)
                if p <= prefix and u > held[-1]
            )
            / total,
        )


@pytest.mark.slow
@pytest.mark.parametrize("universe", ["open", "closed"])
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_set_margin_in_fractions(
    neighbors: str, universe: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = cascade(universe, Fraction(1))
    mechanism = SetMargin(epsilon=1, delta="0.02", neighbors=neighbors, k=2, stages=stages)
    for q, profile in set_profiles(250 // part, universe, seed=7):
        found: dict[Any, fmpq] = {}
        reach = fmpq(1)
        with in_fractions(monkeypatch):
            for place, turn in enumerate(mechanism._turns(profile, mechanism._window(profile))):
                nothing, answer = (one.value for one in turn.chances())
                for chosen, share in drawn_sets(turn, q):
                    found[place, chosen] = reach * answer * share
                reach *= nothing
        found[None] = reach
        assert sum(found.values()) == 1
        assert found == set_margin_law(mechanism, profile.universe, q, power, rational)


@pytest.mark.parametrize("universe", ["open", "closed"])
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_set_margin(neighbors: str, universe: str, part: int) -> None:
    stages = cascade(universe, SILENCES[1])
    mechanism = SetMargin(epsilon=1, delta="0.02", neighbors=neighbors, k=2, stages=stages)
    for q, profile in set_profiles(250 // part, universe, seed=8):
        expected = set_margin_law(
            mechanism, profile.universe, q, lambda x: math.exp(float(x)), float
        )
        law = mechanism.sets(profile)[None]
        table: dict[tuple[int, ...], float] = {}
        for outcome, share in expected.items():
            members = outcome[1] if outcome else ()
            key = tuple(
                0 if count is None else sum(q[i] == score for i in members)
                for score, count in law.blocks
            )
            table[key] = table.get(key, 0.0) + share
        assert set(law.chances) == set(table)
        assert all(close(law.chances[key], table[key], 1e-12) for key in table)
        for place, (score, count, number) in enumerate(mechanism.law(profile).blocks):
            if count is not None and score > 0:
                assert close(number, sum(key[place] * table[key] for key in table), 1e-12)


def test_large_margin(part: int) -> None:
    mechanism = LargeMargin(epsilon=6, delta="0.5")
    for levels in profiles(24 // part, highest=40, seed=9):
        q = labeled(dict(list(levels.items())[:3]), zeros=1)
        profile = Profile(
            ((score, q.count(score)) for score in sorted(set(q), reverse=True) if score),
            universe=len(q),
        )
        thresholds = [mechanism.threshold(rank) for rank in range(1, len(q))]
        expected = formal.large_margin(
            math.exp(0.5), thresholds, q, shared=range(-30, 31), noise=range(-16, 17)
        )
        drawn = by_score(dict(enumerate(expected)), q)
        for score, _, share in mechanism.law(profile).blocks:
            assert close(share, drawn[score], 1e-9)


def _own_groups(times: int) -> Callable[[Sequence[tuple[str, str]]], list[str]]:
    """The rule of the code: the groups that most rows name, of two the one that comes first."""

    def counts_in(own: Sequence[tuple[str, str]]) -> list[str]:
        number = Counter(group for group, _ in own)
        return sorted(number, key=lambda group: (-number[group], group))[:times]

    return counts_in


@pytest.mark.parametrize("times", [1, 2])
def test_groups(times: int, part: int) -> None:
    """What is read of each group, and the law of the whole table, declared and open."""
    dice, names, items = random.Random(21), ("a", "b", "c"), ("x", "y")
    mechanism = GapTest(epsilon=1, delta="0.1")
    finder = OneKeyEach(epsilon="0.5", delta="0.05")
    for _ in range(24 // part):
        data = [
            [(dice.choice(names), dice.choice(items)) for _ in range(dice.randint(0, 4))]
            for _ in range(dice.randint(2, 9))
        ]
        data.append([("a", "x"), ("b", "x"), ("b", "y")])
        rows = [(str(who), *row) for who, own in enumerate(data) for row in own]
        frame = pd.DataFrame(rows, columns=["user", "group", "item"])
        parts = {name: formal.part(data, name, _own_groups(times)) for name in names}
        with closing(
            grouped(frame, Columns("item", "user"), Grouping("group", names, times))
        ) as source:
            read = [source.profile(number) for number in range(len(names))]
            people = source.count_chosen(1).tolist()
        assert people == [sum(map(bool, own)) for own in parts.values()]
        laws, drawn, found = [], [], []
        for own, profile, number in zip(parts.values(), read, people, strict=True):
            q = [sum(any(row[1] == item for row in one) for one in own) for item in items]
            scores = [0, 0, *q]  # an open universe: two dummies
            levels = Counter(score for score in q if score)
            assert sorted(profile._levels._levels) == sorted(levels.items())
            law = mechanism.law(profile)
            steps = formal.steps(1, 1, scores)
            chance = float(formal.chance(math.e, 0.1, steps))
            best = formal.top(scores, 1)[0] if steps else None
            laws.append({None: 1 - chance, best: chance} if steps else {None: 1.0})
            drawn.append({None: law.none, **({best: law.of(scores[best])} if best else {})})
            found.append(float(finder.test.chance(number).mid()))
        for expected, code in (
            (formal.table(laws), formal.table(drawn)),
            (
                formal.table([
                    formal.open_draw(math.exp(0.5), 0.05, number, law)
                    for number, law in zip(people, laws, strict=True)
                ]),
                formal.table([
                    {"absent": 1 - chance} | {one: chance * share for one, share in law.items()}
                    for chance, law in zip(found, drawn, strict=True)
                ]),
            ),
        ):  # fmt: skip
            assert expected.keys() == code.keys()
            assert all(close(expected[one], code[one], 1e-9) for one in code)


ANSWERS = (0, 1)


class Noise:
    """Given noise for every round, and the totals it is added to."""

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self.rows = rows
        self.totals: list[list[int]] = []

    def add(self, totals: Any, variance: Any, coins: Any) -> Any:
        row = self.rows[len(self.totals)]
        self.totals.append(totals.tolist())
        return totals + np.array(row[: len(totals)], np.int64)


class Cut:
    """Where the answer to the question puts the cut."""

    right = staticmethod(KeyRounds.find_cut)

    def find(self, search: KeyRounds, *given: Any) -> Fraction:
        self.cut = self.right(search, *given)
        return self.cut


def own_weights(
    search: KeyRounds, cut: Fraction
) -> Callable[[int, Any, Sequence[str], Sequence[Any]], dict[Any, int]]:
    """What an individual gives in each round, by its own keys and what it may see."""
    shares = [int(1000 * share) for share in search.shares]
    turns = len(shares)
    thresholds = [one.threshold for one in search.looks]

    def gives(turn: int, one: Any, keys: Sequence[str], past: Sequence[Any]) -> dict[Any, int]:
        left = [
            key
            for key in keys
            if all(values[key] < rho for values, rho in zip(past[:turns], thresholds, strict=False))
        ]
        if turn < turns or not left:
            return give_own(left, lambda key: 0, search.per_user) if left else {}
        pooled = {
            key: sum(share * values[key] for share, values in zip(shares, past, strict=False))
            // int(1000 * sum(search.shares))
            for key in left
        }
        if turn == turns:
            low = sum(value < search._spread for value in pooled.values())
            return dict(zip(ANSWERS, (HALF, math.floor(HALF * low / len(left))), strict=True))
        needs = search.value_keys(np.array([pooled[key] for key in left], np.int64), cut).tolist()
        return give_own(left, lambda key: 0, search.slots, dict(zip(left, needs, strict=True)))

    return gives


def test_rounds_of_keys(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which keys have noise in which round, the totals, and what is released, for any noise."""
    dice, most = random.Random(31), Counter[int]()
    search = KeyRounds(epsilon=1, delta="0.05", per_user=2, slots=2)
    looks = [*(True for _ in search.looks), False, True]
    rho = [*(one.threshold for one in search.looks), 0, search.last.threshold]
    for _ in range(3000 // part):
        kinds = ["".join(dice.sample("abcdef", dice.randint(1, 4))) for _ in range(4)]
        held = {who: sorted(dice.choice(kinds)) for who in range(dice.randint(1, 30))}
        rows = [[round(dice.gauss(0, 0.7) * max(rho)) for _ in range(6)] for _ in looks]
        noise, question = Noise(rows), Cut()
        monkeypatch.setattr(key_code, "_add_noise", noise.add)
        monkeypatch.setattr(KeyRounds, "find_cut", lambda *given, cut=question: cut.find(*given))
        ballots = Ballots(held)
        code = set(ballots.name(search.draw(ballots, ballots.number, None)))  # type: ignore[arg-type]
        gives = own_weights(search, question.cut)
        released, shares = formal.key_rounds(looks, rho, gives, held, rows, ANSWERS)
        assert noise.totals == [list(one.values()) for one in shares]
        assert code == released
        most[len(released)] += 1
    assert len(most) > 4


def test_scales_of_counts_and_of_orders() -> None:
    """x = e^(−step/scale) to the power of the theorem is e^(−ε)."""
    price = Privacy(Fraction(7, 10))
    for k, growth, s in product(range(1, 9), (None, 1, 2, 5), (1, 3)):
        for neighbors, times in (("add-remove", 1), ("replace", 2)):
            facts = {"k": k, "growth": growth, "neighbors": neighbors, "sensitivity": s}
            m = k if growth is None else times * growth
            noise = choose_noise(price, **facts).noise
            assert formal.counts_exponent(k, m, s) / noise.scale == price.epsilon
            if k > 1 and neighbors == "add-remove":
                noise = choose_order_noise(price, **facts).noise
                assert formal.order_exponent(k, m, s) / noise.scale == price.epsilon


def test_how_far_shared_noise_must_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """The distance at which the code takes normal laws is that of the theorem."""
    reached: list[Fraction] = []
    monkeypatch.setattr(
        count_costs, "rounded_delta", lambda epsilon, square, numbers: reached.append(square)
    )
    pairs = [(Fraction(9 + own), Fraction(7, 2) + other) for own in (0, 31) for other in (1, 500)]
    for k, (own, shared), size in product(range(1, 12), pairs, (1, 3, 33)):
        for moved in range(1, k + 1):
            variances = (own + count_costs.ROUNDED, shared + count_costs.ROUNDED)
            count_costs.shared_delta(Fraction(1), variances, k, moved, size)
            assert reached.pop() == formal.distance(own, 1 / shared, k, moved, size)


def test_how_far_noise_on_differences_must_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[Fraction] = []
    monkeypatch.setattr(relative, "least_scale", lambda enough, start: enough(Fraction(1)))
    monkeypatch.setattr(
        relative, "rounded_delta", lambda epsilon, square, k: reached.append(square) or arb(0)
    )
    for k, size in product(range(2, 12), (1, 3)):
        for moved in range(1, k + 1):
            relative.find_relative(Privacy(1, "1e-6"), k, moved, size, "add-remove")
            parts = relative.PARTS
            own = Fraction(parts**2 - relative.ROUNDED)
            assert reached.pop() == formal.distance(own, Fraction(0), k, moved, size * parts)


def test_how_far_a_row_moves_an_additive_fit() -> None:
    for relation, largest in product(RELATIONS, (1, 7, 614)):
        labels, residuals, curvatures, _ = formal.fit_moves(relation, largest, largest)
        assert fit_code.squared_sensitivity(1, relation, signed=False) == labels
        assert fit_code.squared_sensitivity(largest, relation, signed=True) == residuals
        assert fit_code.squared_sensitivity(largest, relation, signed=False) == curvatures
        change = formal.fit_moves(relation, fit_code.CLIP, 1)[3]
        assert fit_code.choice_sensitivity(relation) == change


def test_laws_of_the_number_of_runs() -> None:
    """f' is that of the theorems, and ε̂ is hardly larger than their condition asks for."""
    run, step = RunCost(Fraction(1, 2), Fraction(1, 100)), Fraction(1, 1 << 20)
    laws = [NegativeBinomial(eta=eta, gamma="0.4") for eta in (1, 0, Fraction(-1, 2), 3)]
    for law in (*laws, Poisson(rate=3)):
        with precision(128):
            chances = law.chances(400)
            for x in (Fraction(0), Fraction(1, 3), Fraction(9, 10), Fraction(1)):
                real = balls.ball(x)
                slope = sum(n * share * real ** (n - 1) for n, share in enumerate(chances) if n)
                expected = formal.run_slope(law, law.mean(), real)
                assert abs(float((slope - expected).mid())) < 1e-12
            if isinstance(law, NegativeBinomial):
                least = law.drift(run) / (1 + law.eta)
                for epsilon, enough in ((least, True), (least - step, False)):
                    spent = (1 - balls.ball(law.gamma)) * run.profile(epsilon)
                    allowed = balls.ball(law.gamma) * balls.ball(epsilon).expm1()
                    assert bool(spent <= allowed) is enough


def _wrong_slips(self: LimitedDomain) -> int:
    return self.rank + 1


def _wrong_offer(self: NestedMargin, *arguments: Any) -> Any:
    return _right_offer(self, *arguments) * 2


def _wrong_guard(self: Any) -> Any:
    return _right_guard(self) * 2


def _wrong_soft_chances(steps: int, *numbers: Fraction) -> Any:
    return _right_soft_chances(steps + 1, *numbers)


def _wrong_threshold(self: LargeMargin, rank: int) -> int:
    return _right_threshold(self, rank) + 1


_right_offer = NestedMargin._offer
_right_guard = set_margin._StageTurn._guard
_right_soft_chances = gap_test.soft_chances
_right_threshold = LargeMargin.threshold


def test_a_change_of_the_code_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LimitedDomain, "_slips", _wrong_slips)
    with pytest.raises(AssertionError):
        test_limited_domain("replace", None, "open", 50, monkeypatch)
    monkeypatch.setattr(NestedMargin, "_offer", _wrong_offer)
    for growth in (None, 1):
        with pytest.raises(AssertionError):
            test_nested_margin("replace", growth, "open", 50, monkeypatch)
    monkeypatch.setattr(LargeMargin, "threshold", _wrong_threshold)
    with pytest.raises(AssertionError):
        test_the_thresholds_of_the_large_margin()


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        (set_margin._StageTurn, "_guard", _wrong_guard),
        (set_margin, "soft_chances", _wrong_soft_chances),
    ],
)
def test_a_change_of_the_set_margin_is_noticed(
    owner: Any, name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError):
        test_set_margin_in_fractions("replace", "open", 10, monkeypatch)
    with pytest.raises(AssertionError):
        test_set_margin("replace", "open", 10)


def _clip_nothing(width: int, r: int, q: Sequence[int]) -> list[int]:
    return list(q)


def _light_bound(*arguments: Any) -> Any:
    return _right_bound(*arguments) / 2


def _near_laplace(x: Any, k: int) -> Any:
    return _right_laplace(x * x, k)


_right_bound, _right_laplace = formal.bound, formal.laplace


def _every_row(data: Any, group: Any, counts_in: Any) -> list[list[Any]]:
    return _right_part(data, group, lambda own: [group])


_right_part = formal.part


def _silent_zeros(self: Noise, totals: Any, *rest: Any) -> Any:
    return np.where(totals > 0, _right_add(self, totals, *rest), 0)


_right_add = Noise.add


def test_a_change_of_the_rounds_of_keys_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Noise, "add", _silent_zeros)
        with pytest.raises(AssertionError):
            test_rounds_of_keys(12, patch)
    source = textwrap.dedent(inspect.getsource(KeyRounds.draw))
    wrong: dict[str, Any] = {}
    assert source.count("passed & (totals > 0)") == 2
    exec(source.replace("passed & (totals > 0)", "passed"), vars(key_code), wrong)
    with monkeypatch.context() as patch:
        patch.setattr(KeyRounds, "draw", wrong["draw"])
        with pytest.raises(AssertionError):
            test_rounds_of_keys(12, patch)
    monkeypatch.setattr(formal, "alive", lambda *given: True)
    with pytest.raises(AssertionError):
        test_rounds_of_keys(12, monkeypatch)


def test_a_change_of_formal_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formal, "run_slope", lambda law, m, x: m)
    with pytest.raises(AssertionError):
        test_laws_of_the_number_of_runs()
    monkeypatch.setattr(formal, "order_exponent", formal.counts_exponent)
    with pytest.raises(AssertionError):
        test_scales_of_counts_and_of_orders()
    monkeypatch.setattr(formal, "distance", lambda v, h, k, m, size: size**2 * m / v)
    with monkeypatch.context() as patch, pytest.raises(AssertionError):
        test_how_far_shared_noise_must_reach(patch)
    with monkeypatch.context() as patch, pytest.raises(AssertionError):
        test_how_far_noise_on_differences_must_reach(patch)
    monkeypatch.setattr(formal, "fit_moves", lambda relation, c, h: (1, c**2, h**2, c))
    with pytest.raises(AssertionError):
        test_how_far_a_row_moves_an_additive_fit()
    monkeypatch.setattr(formal, "part", _every_row)
    with pytest.raises(AssertionError):
        test_groups(1, 12)
    monkeypatch.setattr(formal, "clip", _clip_nothing)
    with pytest.raises(AssertionError):
        test_nested_margin("add-remove", None, "closed", 5, monkeypatch)
    monkeypatch.setattr(formal, "bound", _light_bound)
    with pytest.raises(AssertionError):
        test_set_margin_in_fractions("add-remove", "open", 10, monkeypatch)
    with pytest.raises(AssertionError):
        test_the_values_that_coq_computed()
    monkeypatch.setattr(formal, "laplace", _near_laplace)
    with pytest.raises(AssertionError):
        test_large_margin(12)
