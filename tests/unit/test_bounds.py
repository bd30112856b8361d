"""Bounds for learners: against exact laws, exact enumeration of small samples, and simulation; the
counterexample.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from privmax import (
    DataError,
    Exponential,
    LargeMargin,
    LargeMarginTruncated,
    LimitedDomain,
    NestedMargin,
    ParameterError,
    PermuteAndFlip,
    Profile,
)
from privmax.learning import LinearGrid, PrivateERM, Stumps, bounds
from privmax.learning.bounds import (
    Excess,
    Shells,
    class_excess,
    exponential_excess,
    nested_error,
    nested_gap,
    occam_error_bound,
    shell_error_bound,
    shell_excess,
    shell_index,
    uniform_deviation,
)
from privmax.learning.classes.contract import Shape
from privmax.privacy import ADD_REMOVE, REPLACE

PRICE = {"epsilon": 1, "delta": "1e-6"}
LADDER = [("0.1", 1), ("0.11", 9), ("0.15", 990), ("0.3", 10**6 - 1000), ("0.5", 10**12 - 10**6)]


def tail(n, p, least):
    """P(Bin(n, p) ≥ least), exactly."""
    p = Fraction(p)
    return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(max(0, least), n + 1))


# The sample


@pytest.mark.parametrize("n", [10**309, 10**5000], ids=["309", "5000"])
@pytest.mark.parametrize("size", [{"hypotheses": 3}, {"dimension": 3}], ids=str)
def test_more_examples_than_floats_are_refused(n, size):
    assert uniform_deviation(n=10**300, **size, failure="0.05") < 1e-100
    with pytest.raises(ParameterError, match="at most 10"):
        uniform_deviation(n=n, **size, failure="0.05")


def test_a_draw_needs_the_size_of_the_class():
    for size in ({}, {"dimension": 3}):
        with pytest.raises(ParameterError, match="hypotheses"):
            exponential_excess(n=100, hypotheses=None, epsilon=1, **size)


def test_uniform_deviation():
    assert uniform_deviation(n=50, hypotheses=1000, failure="0.05") == pytest.approx(
        math.sqrt(math.log(40000) / 100)
    )
    exact = math.sqrt((1001 * math.log(2) + math.log(20)) / 2000)
    assert uniform_deviation(n=1000, hypotheses=2**1000, failure="0.05") == pytest.approx(exact)


@pytest.mark.parametrize("error", ["0.5", "0.1", "0.01"])
def test_observed_errors_keep_to_the_deviation(error):
    n, failure = 60, Fraction(1, 10)
    u = uniform_deviation(n=n, hypotheses=1, failure=failure)
    p = Fraction(error)
    outside = 1 - sum(
        tail(n, p, k) - tail(n, p, k + 1)
        for k in range(n + 1)
        if abs(Fraction(k, n) - p) <= Fraction(u)
    )
    assert outside <= failure


def test_a_smaller_deviation_would_not_do():
    n, failure = 60, Fraction(1, 10)
    u = 0.6 * uniform_deviation(n=n, hypotheses=1, failure=failure)
    assert 2 * tail(n, "0.5", math.floor(n * (0.5 + u)) + 1) > failure


@pytest.mark.parametrize("n", [1, 2, 7, 30, 1000])
@pytest.mark.parametrize("failure", ["0.001", "0.05", "0.5"])
def test_the_deviation_by_dimension_covers_thresholds(n, failure):
    """Thresholds on a line have VC dimension 1, and their largest deviation is that of
    Kolmogorov and Smirnov, whose quantiles are known.
    """
    u = uniform_deviation(n=n, dimension=1, failure=failure)
    assert stats.kstwo.isf(float(failure), n) <= u < 6 * stats.kstwo.isf(float(failure), n) + 0.1


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_the_two_lemmas_behind_the_deviation_by_dimension(n):
    """Serfling's inequality for halves of 2n, and the median of a binomial, exactly."""
    for wrong in range(2 * n + 1):
        ways = [math.comb(wrong, k) * math.comb(2 * n - wrong, n - k) for k in range(n + 1)]
        for apart in range(n + 1):
            far = sum(way for k, way in enumerate(ways) if abs(2 * k - wrong) >= apart)
            bound = 2 * math.exp(-(apart**2) / (n + 1))
            assert far <= bound * math.comb(2 * n, n) * (1 + 1e-12)
    for p in (Fraction(part, 40) for part in range(1, 40)):
        assert 1 - tail(n, p, math.ceil(n * p) + 1) >= Fraction(1, 2)
        assert tail(n, p, math.floor(n * p)) >= Fraction(1, 2)


def test_the_number_of_splits_is_bounded_by_sauer_and_shelah():
    for points in (1, 2, 6, 40):
        for dimension in range(2 * points):
            splits = sum(math.comb(points, k) for k in range(min(dimension, points) + 1))
            assert math.log(splits) <= bounds._log_splits(points, dimension) + 1e-12


def test_with_a_dimension_the_deviation_does_not_grow_with_the_class():
    u = uniform_deviation(n=10**5, dimension=10, failure="0.05")
    for size in (2**5000, 2**50000):
        assert uniform_deviation(n=10**5, hypotheses=size, dimension=10, failure="0.05") == u
    few = uniform_deviation(n=10**5, hypotheses=100, failure="0.05")
    assert uniform_deviation(n=10**5, hypotheses=100, dimension=10, failure="0.05") == few < u
    with pytest.raises(ParameterError, match="hypotheses"):
        uniform_deviation(n=10**5, failure="0.05")


def test_with_a_dimension_the_margin_bound_does_not_grow_with_the_class():
    """One best hypothesis at 0.1, 2^5000 others at 0.4: what the paper's corollary is about."""
    blocks, paper = [("0.1", 1), ("0.4", 2**5000)], LargeMargin(epsilon=1, delta="1e-6")
    by_size = shell_excess(Shells(blocks), n=10**5, mechanism=paper)
    assert by_size.by == "class"
    assert by_size.excess == pytest.approx(0.472, abs=5e-4)
    by_dimension = shell_excess(Shells(blocks, dimension=10), n=10**5, mechanism=paper)
    assert by_dimension.by == "shell"
    assert by_dimension.excess == pytest.approx(0.068, abs=5e-4)
    more = Shells([("0.1", 1), ("0.4", 2**50000)], dimension=10)
    assert shell_excess(more, n=10**5, mechanism=paper).excess == by_dimension.excess
    generic = {"n": 10**5, "epsilon": 1, "hypotheses": 2**5000}
    assert exponential_excess(**generic) == pytest.approx(0.298, abs=5e-4)
    assert by_dimension.excess < exponential_excess(**generic, dimension=10) < 0.298
    for made in (
        Shells.of(["0.1", "0.4"], dimension=1),
        Shells.from_function(lambda _: 1, 2, dimension=1),
    ):
        assert made.deviation(100, "0.1") == uniform_deviation(
            n=100, hypotheses=2, dimension=1, failure="0.1"
        )


def test_learners_report_the_better_bound():
    learner = PrivateERM(Stumps(low=0, high=1), epsilon=1, labels=[0, 1])
    size = Stumps(low=0, high=1).size(Shape(8, 2))
    pure = {"hypotheses": size, "mechanism": PermuteAndFlip(epsilon=1)}
    assert learner.excess_bound(10_000, features=8) == class_excess(n=10_000, **pure)
    assert learner.excess_bound(10, features=8) == 1  # nothing is promised
    tilted = [[i, j] for i in range(-127, 128) for j in range(-127, 128)]
    halves = LinearGrid(tilted, offsets=range(-(10**4), 10**4), low=0, high=1)
    found = PrivateERM(halves, epsilon=1, labels=[0, 1]).excess_bound(10**4, features=2)
    pure = {"hypotheses": len(tilted) * 2 * 10**4, "mechanism": PermuteAndFlip(epsilon=1)}
    by_size = class_excess(n=10**4, **pure)
    assert found == class_excess(n=10**4, **pure, dimension=3) <= by_size
    with pytest.raises(ParameterError, match="labels"):
        PrivateERM(Stumps(low=0, high=1), epsilon=1, labels="from y").excess_bound(9, features=1)


# The draw


def within(law, lowest):
    return sum(chance for score, _, chance in law.blocks if score >= lowest)


@pytest.mark.parametrize("neighbors", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("universe", [None, 2**41])
@pytest.mark.parametrize(
    ("ranks", "rank"), [((1, 4, 16), 1), ((1, 4, 16), 4), ((1, 4, 2**40), 4), ((8,), 8)]
)
@pytest.mark.parametrize("success", ["0.95", "0.6"])
def test_the_nested_mechanism_keeps_to_its_theorem(neighbors, universe, ranks, rank, success):
    """The worst profile for it: one best, the others of the top `rank` just too deep, all else at
    the gap.
    """
    options = {"epsilon": "0.5", "success": success, "neighbors": neighbors}
    gap = math.ceil(nested_gap(**options, delta="1e-6", ranks=ranks, rank=rank))
    deep = math.floor(nested_error(**options, rank=rank)) + 1
    mechanism = NestedMargin(epsilon="0.5", delta="1e-6", ranks=ranks, neighbors=neighbors)
    if deep < gap:
        levels = [(gap, 1), *([(gap - deep, rank - 1)] if rank > 1 else [])]
        assert within(mechanism.law(Profile(levels, universe=universe)), gap - deep + 1) >= float(
            success
        )
    tied = Profile([(gap, 1)], universe=universe)
    assert within(mechanism.law(tied), 1) >= float(success)
    c = 1 if neighbors == ADD_REMOVE else 2
    short = gap - math.ceil(
        2 * c * (math.log(2) + 2)
    )  # η/2 is left for the others: two more than that is too little
    assert within(mechanism.law(Profile([(short, 1)], universe=universe)), 1) < float(success)


def test_beyond_a_rank_the_nested_gap_counts_those_further_out():
    reach = [nested_gap(**PRICE, rank=1, ranks=(1, last)) for last in (4, 2**20, 2**40)]
    assert reach[0] == pytest.approx(1 + 64 / 63 * math.log(2 * 2 / (1e-6 * 0.05)))
    room = -math.expm1(-1 / 64)
    assert reach[2] == pytest.approx(64 / 63 * math.log(2 * (2**40 - 1) / (room * 0.05)))
    assert reach[0] < reach[1] < reach[2]


def test_where_the_last_rank_is_everybody_the_nested_mechanism_is_the_exponential_one():
    levels = [(40, 2), (31, 5), (12, 93)]
    nested = NestedMargin(epsilon="0.64", delta="1e-6", ranks=(1, 4, 256)).law(
        Profile(levels, universe=100)
    )
    pure = Exponential(epsilon="0.63").law(Profile(levels, universe=100))
    assert [chance for *_, chance in nested.blocks] == pytest.approx(
        [chance for *_, chance in pure.blocks]
    )
    assert nested.none == pytest.approx(0, abs=1e-12)


# Shells


def test_shells_from_blocks_errors_or_a_function():
    blocks = Shells([("0.2", 3), ("0.1", 1), ("0.5", 6), ("0.2", 1)])
    each = Shells.of(["0.1"] + ["0.2"] * 4 + ["0.5"] * 6)
    counted = Shells.from_function(
        lambda d: 1 if d < Fraction(1, 10) else 5 if d < Fraction(2, 5) else 11, 11
    )
    for shells in (blocks, each, counted):
        assert shells.hypotheses == 11
        found = [shells.within(d) for d in (0, "0.0999", "0.1", "0.3999", "0.4", 5)]
        assert found == [1, 1, 5, 5, 11, 11]


@pytest.mark.parametrize("blocks", [[], [("1.1", 1)], [("0.1", 0)], [("x", 1)], [("0.1", 1.5)]])
def test_bad_shells(blocks):
    with pytest.raises(ParameterError, match="blocks"):
        Shells(blocks)


def test_a_function_that_counts_nobody_is_refused():
    for wrong in (0, 12):
        with pytest.raises(ParameterError, match="within"):
            Shells.from_function(lambda _, wrong=wrong: wrong, 11).within(0)


# The margin, and the printed corollary


@pytest.mark.parametrize("t", [1, 2, 3])
def test_the_margin_needs_the_shell_two_further_out(t):
    """As bad as a deviation of u allows: the best is seen worse by u, everybody else better by
    u.
    """
    n, u = 1000, Fraction(1, 50)
    errors = [
        Fraction(1, 10) + u * steps for steps in (0, t + Fraction(5, 4), t + 2, t + Fraction(9, 4))
    ]
    shells = Shells.of(errors)
    scores = sorted(
        (n * (1 - error + (u if place else -u)) for place, error in enumerate(errors)), reverse=True
    )
    for more, near, holds in ((2, 3, True), (1, 1, False)):
        assert shells.within((t + more) * u) == near
        assert (scores[0] - scores[near] > n * t * u) is holds


def test_the_printed_margin_fails_more_often_than_it_may():
    """Two hypotheses, each the other's opposite. The counts are those on docs/proofs/shells.md."""
    n, p, allowed = 100, Fraction(2, 5), Fraction(6, 100)
    mistakes = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]

    def outside(u):
        return sum(mistakes[k] for k in range(n + 1) if abs(Fraction(k, n) - p) > u)

    u = min(Fraction(k, n) for k in range(n) if outside(Fraction(k, n)) <= allowed)
    assert u == Fraction(9, 100)
    assert float(outside(u)) == pytest.approx(0.0519, abs=5e-5)
    shells = Shells([(p, 1), (1 - p, 1)])
    assert [shells.within(t * u) for t in (1, 2, 3)] == [1, 1, 2]
    fails = sum(
        mistakes[k] for k in range(n + 1) if abs(n - 2 * k) <= n * u
    )  # gap_1 is not above n·t·u with t = 1
    assert float(fails) == pytest.approx(0.1294, abs=5e-5)
    assert fails > 2 * allowed


# The index and the excess


def asked(mechanism, near, hypotheses):
    """The gap of each theorem, written out; η = 0.025 for the draw."""
    name, log = type(mechanism).__name__, math.log
    if name == "LargeMargin":
        steps = (
            3 * log(1.5e6)
            + 6 * log(3e6)
            + 12 * log(3e6 * near * (near + 1))
            + 6
            + 6 * log(3e6 * near)
        )
        return 7 + 21 * log(120) + steps
    if name == "LimitedDomain":
        return 1 + log(2 * 1024 / (1e-6 * 0.025)) if near <= 1024 else math.inf
    if name == "NestedMargin":
        rank = next((4**j for j in range(11) if 4**j >= near), None)
        if rank is None:
            return math.inf
        scale, room = 64 / 63, -math.expm1(-1 / 64)
        slipping = 1 + scale * log(2 * rank * 11 / (1e-6 * 0.025))
        return max(
            slipping, scale * log(2 * (2**20 - rank) / (room * 0.025)) if rank < 2**20 else 0
        )
    return log(2 * hypotheses / 0.025)


MECHANISMS = [
    LargeMargin(**PRICE),
    LimitedDomain(**PRICE, rank=1024),
    NestedMargin(**PRICE),
    Exponential(epsilon=1),
    PermuteAndFlip(epsilon=1),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
@pytest.mark.parametrize("n", [100, 10**3, 10**4, 10**5, 10**6, 10**8])
def test_the_index_is_the_least_that_does(mechanism, n):
    shells = Shells(LADDER)
    u = uniform_deviation(n=n, hypotheses=10**12, failure="0.025")
    found = shell_index(shells, n=n, mechanism=mechanism)
    expected = None
    for t in range(1, math.ceil(1 / u) + 2):
        near = shells.within((t + 2) * u)
        if near == shells.hypotheses:
            break
        if n * t * u >= asked(mechanism, near, 10**12):
            expected = t
            break
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
def test_the_index_on_a_fine_ladder(mechanism):
    """Sizes so close that every record of the gap asked for, and every rung, decides some of
    them.
    """
    shells = Shells(
        (Fraction(1, 10) + Fraction(4 * rung, 1000), 1 + rung**4) for rung in range(101)
    )
    indices = set()
    for n in [round(10 ** (2 + step / 100)) for step in range(400)]:
        u = uniform_deviation(n=n, hypotheses=shells.hypotheses, failure="0.025")
        sizes = {t: shells.within((t + 2) * u) for t in range(1, math.ceil(1 / u) + 2)}
        expected = next(
            (
                t
                for t, near in sizes.items()
                if near < shells.hypotheses
                and n * t * u >= asked(mechanism, near, shells.hypotheses)
            ),
            None,
        )
        assert shell_index(shells, n=n, mechanism=mechanism) == expected
        indices.add(expected)
    assert len(indices) > 1


def test_the_excess_says_what_gave_it():
    shells, log = Shells(LADDER), math.log
    u = uniform_deviation(n=10**5, hypotheses=10**12, failure="0.025")
    near = shells.within(3 * u)
    assert near == 10
    assert shell_excess(shells, n=10**5, mechanism=LargeMargin(**PRICE)) == Excess(
        pytest.approx(2 * u + 6 * log(2 * near / 0.025) / 10**5), "shell", 1, near
    )
    assert shell_excess(shells, n=10**5, mechanism=NestedMargin(**PRICE)) == Excess(
        pytest.approx(2 * u + 64 / 63 * log(2 * 16 / 0.025) / 10**5), "shell", 1, near
    )
    few = 2 * uniform_deviation(n=10**3, hypotheses=10**12, failure="0.025")
    assert shell_excess(shells, n=10**3, mechanism=LargeMargin(**PRICE)) == Excess(
        pytest.approx(few + 6 * log(10**12 / 0.025) / 10**3), "class", None, 10**12
    )
    assert shell_excess(shells, n=500, mechanism=NestedMargin(**PRICE)) == Excess(
        1.0, "nothing", None, 10**12
    )
    assert shell_excess(shells, n=10, mechanism=Exponential(epsilon=1)) == Excess(
        1.0, "nothing", None, 10**12
    )


def test_a_class_that_all_compete_in_has_a_bound_of_the_class():
    shells = Shells([("0.1", 1), ("0.2", 999)])
    u = uniform_deviation(n=300, hypotheses=1000, failure="0.025")
    for mechanism, scale in (
        (NestedMargin(**PRICE), 64 / 63),
        (LimitedDomain(**PRICE, rank=1000), 1),
        (Exponential(epsilon=1), 1),
    ):
        found = shell_excess(shells, n=300, mechanism=mechanism)
        assert found == Excess(
            pytest.approx(2 * u + scale * math.log(1000 / 0.025) / 300), "class", None, 1000
        )
    flip = shell_excess(shells, n=300, mechanism=PermuteAndFlip(epsilon=1))
    assert flip.excess == pytest.approx(2 * u + math.log(500 / 0.025) / 300)
    assert exponential_excess(n=300, hypotheses=1000, epsilon=1) == pytest.approx(
        2 * u + math.log(1000 / 0.025) / 300
    )


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
def test_draws_keep_to_the_excess(mechanism):
    """On samples of independent hypotheses: how often the law of the draw exceeds the bound, and
    half of it.
    """
    blocks = [(0.1, 1), (0.15, 9), (0.3, 10**3), (0.5, 10**6)]
    n, rng = 2000, np.random.default_rng(6)
    bound = shell_excess(Shells(blocks), n=n, mechanism=mechanism, success="0.9")
    assert bound.by in ("shell", "class")
    over, drawn = 0.0, 0.0
    for _ in range(20):
        levels = sampled(blocks, n, rng)
        law = mechanism.law(
            Profile([(score, sum(at.values())) for score, at in levels.items()], universe=1001010)
        )
        over += law.none
        for score, count, chance in law.blocks:
            at = levels[score] if score != law.floor else {0.5: 1}
            worse = sum(number for error, number in at.items() if error - 0.1 > bound.excess)
            over += chance * worse / sum(at.values()) if count else 0.0
            drawn += chance
    assert over / 20 <= 0.1
    assert drawn + over > 19.9


def sampled(blocks, n, rng):
    """Correct examples of independent hypotheses: {score: {error: how many}}."""
    found = {}
    for error, count in blocks:
        if count < 10**4:
            scores = rng.binomial(n, 1 - error, size=count)
            places, numbers = np.unique(scores, return_counts=True)
        else:
            grid = np.arange(n + 1)
            logs = [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in grid]
            chances = np.exp(
                np.array(logs) + grid * math.log(1 - error) + (n - grid) * math.log(error)
            )
            drawn = rng.multinomial(count, chances / chances.sum())
            places = np.flatnonzero(drawn)
            numbers = drawn[places]
        for place, number in zip(places, numbers, strict=True):
            found.setdefault(int(place), {})[error] = int(number)
    return found


@pytest.mark.parametrize(
    "mechanism",
    [
        LargeMarginTruncated(**PRICE),
        NestedMargin(**PRICE, growth=3),
        LimitedDomain(**PRICE, rank=4, growth=3),
        Exponential(epsilon=1, k=2),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_no_theorem_no_bound(mechanism):
    with pytest.raises(ParameterError, match="mechanism"):
        shell_excess(Shells(LADDER), n=100, mechanism=mechanism)


# The computable shell bound


def broken_bound(n, failure, patterns):
    """P(some hypothesis is worse than its bound), over all samples of n rows from {(right or wrong,
    …): chance}.
    """
    rows, chances = list(patterns), [Fraction(chance) for chance in patterns.values()]
    errors = [
        sum(c for row, c in zip(rows, chances, strict=True) if not row[h])
        for h in range(len(rows[0]))
    ]
    broken = Fraction(0)
    for counts in product(range(n + 1), repeat=len(rows)):
        if sum(counts) != n:
            continue
        correct = [
            sum(k for row, k in zip(rows, counts, strict=True) if row[h])
            for h in range(len(errors))
        ]
        levels = {score: correct.count(score) for score in correct}.items()
        if any(
            error > Fraction(shell_error_bound(levels, n=n, failure=failure, correct=score))
            for score, error in zip(correct, errors, strict=True)
        ):
            chance = Fraction(math.factorial(n))
            for k, c in zip(counts, chances, strict=True):
                chance *= c**k / math.factorial(k)
            broken += chance
    return broken


TINY = [
    {(1, 0): "0.5", (0, 1): "0.5"},
    {(1, 0): "0.9", (0, 1): "0.1"},
    {(1, 1): "0.8", (1, 0): "0.1", (0, 1): "0.1"},
    {(1, 0, 0): "0.4", (0, 1, 0): "0.3", (0, 0, 1): "0.3"},
]


@pytest.mark.slow
@pytest.mark.parametrize("patterns", TINY, ids=range(4))
@pytest.mark.parametrize("failure", ["0.9", "0.3"])
def test_the_shell_bound_holds_on_every_small_sample(patterns, failure):
    assert broken_bound(9, failure, patterns) <= Fraction(failure)


def test_a_bound_that_charges_nothing_is_caught(monkeypatch):
    monkeypatch.setattr(bounds, "_allowance", lambda near, n, failure: np.zeros(n))
    assert broken_bound(9, "0.3", TINY[0]) > Fraction("0.3")


CLASSES = [
    (60, [(0.5, 10**6)]),
    (60, [(0.05, 3), (0.5, 10**6)]),
    (300, [(0.1, 1), (0.2, 50), (0.45, 10**7)]),
    (1000, [(0.02, 10), (0.04, 10**4), (0.3, 10**9)]),
]


def misses(n, blocks, failure, seed, samples=40):
    """Share of samples in which some hypothesis is worse than its bound."""
    rng = np.random.default_rng(seed)
    missed = 0
    for _ in range(samples):
        levels = sampled(blocks, n, rng)
        counts = [(score, sum(at.values())) for score, at in levels.items()]
        missed += any(
            max(at) > shell_error_bound(counts, n=n, failure=failure, correct=score)
            for score, at in sorted(levels.items(), reverse=True)[
                :12
            ]  # where many are tried, luck is at the top
        )
    return missed / samples


@pytest.mark.slow
@pytest.mark.parametrize(("n", "blocks"), CLASSES, ids=range(4))
def test_the_shell_bound_holds_on_samples(n, blocks):
    assert misses(n, blocks, "0.5", seed=1) <= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("charged", ["only the bins", "only those seen"])
def test_a_bound_that_forgets_a_part_is_caught(charged, monkeypatch):
    if charged == "only the bins":
        monkeypatch.setattr(
            bounds, "_allowance", lambda near, n, failure: np.full(n, math.log(2 * n / failure))
        )
        assert misses(*CLASSES[0], "0.5", seed=1) > 0.5
    else:  # one hypothesis at a time, and no more than its expectation
        monkeypatch.setattr(
            bounds, "_allowance", lambda near, n, failure: np.log(np.maximum(near, 1)) / 2
        )
        assert misses(*CLASSES[0], "0.5", seed=1) > 0.5


def test_counting_only_the_observed_error_itself_is_caught(monkeypatch):
    """Without room for luck in the counts, hypotheses far from their true error are charged for a
    few only.
    """
    monkeypatch.setattr(
        bounds, "_near_mistakes", lambda n, limit: (np.arange(n), np.arange(1, n + 1))
    )
    n, blocks = CLASSES[0]
    levels = sampled(blocks, n, np.random.default_rng(1))
    counts = [(score, sum(at.values())) for score, at in levels.items()]
    best = max(levels)
    narrow = shell_error_bound(counts, n=n, failure="0.5")
    monkeypatch.undo()
    assert narrow < shell_error_bound(counts, n=n, failure="0.5", correct=best)


def test_where_few_are_near_the_shell_bound_beats_the_whole_class():
    levels, n, failure = [(950, 1), (880, 40), (500, 10**12)], 1000, "0.05"
    shell = shell_error_bound(levels, n=n, failure=failure)
    whole = occam_error_bound(n=n, correct=950, hypotheses=10**12 + 41, failure=failure)
    assert (round(shell, 4), round(whole, 4)) == (0.0968, 0.1225)
    crowded = shell_error_bound([(950, 1), (900, 10**12)], n=n, failure=failure)
    assert crowded > whole  # where all are near it costs more
    assert (
        shell_error_bound([(950, 10**12)], n=n, failure=failure) < whole
    )  # nobody is seen where errors are worse


def test_the_whole_class_bound_solves_its_equation():
    p = occam_error_bound(n=1000, correct=950, hypotheses=10**6, failure="0.05")
    divergence = 50 * math.log(0.05 / p) + 950 * math.log(0.95 / (1 - p))
    assert divergence == pytest.approx(math.log(10**6 / 0.05))
    assert occam_error_bound(n=100, correct=100, hypotheses=1, failure="0.5") == pytest.approx(
        1 - 0.5**0.01
    )
    assert occam_error_bound(n=100, correct=0, hypotheses=1, failure="0.5") == 1


def test_the_shell_bound_written_out():
    """n = 4, one hypothesis without mistakes and two with three: every bin by hand."""
    n, failure = 4, 0.5

    def cost(j, p):
        wrong = j * math.log(j / (n * p)) if j else 0.0
        right = (n - j) * math.log((n - j) / (n * (1 - p))) if j < n else 0.0
        return wrong + right

    limit = math.log(8 * n / failure)
    for levels in ({0: 1, 3: 2}, {0: 1, 4: 1000}, {2: 7}):
        mine = min(levels)
        best = 0.0
        for k in range(1, n + 1):
            near = sum(
                number
                for j, number in levels.items()
                if (j >= k - 1 or (k > 1 and cost(j, (k - 1) / n) <= limit))
                and (j <= k or (k < n and cost(j, k / n) <= limit))
            )
            grid = [k / n - i / n / 4000 for i in range(4000)]
            fine = [
                p
                for p in grid
                if near
                and p < 1
                and (
                    p <= mine / n
                    or cost(mine, p) <= math.log(2 * near - 1) + math.log(2 * n / failure)
                )
            ]
            best = max([best, *fine])
        found = shell_error_bound(
            [(n - j, number) for j, number in levels.items()], n=n, failure="0.5"
        )
        assert found == pytest.approx(best, abs=2e-4)


def test_numbers_beyond_any_integer_type():
    levels = [(90, 1), (50, 2**999)]
    assert 0.1 < shell_error_bound(levels, n=100, failure="0.05") <= 1
    assert shell_error_bound(
        [(9000, 1), (5000, 2**999)], n=10**4, failure="0.05"
    ) < occam_error_bound(n=10**4, correct=9000, hypotheses=2**999, failure="0.05")


# Arguments


@pytest.mark.parametrize(
    "levels", [[], [(5,)], [("a", 1)], [(5, True)], [(11, 1)], [(-1, 1)], [(5, 0)], [7]], ids=str
)
def test_bad_levels_are_not_quoted(levels):
    with pytest.raises(DataError) as caught:
        shell_error_bound(levels, n=10, failure="0.05")
    assert not any(digit in str(caught.value).replace("0 to n", "") for digit in "0123456789")


@pytest.mark.parametrize("correct", [4, 11, -1, 2.0, True])
def test_bad_counts_are_not_quoted(correct):
    with pytest.raises(DataError) as caught:
        shell_error_bound([(5, 1)], n=10, failure="0.05", correct=correct)
    assert str(correct) not in str(caught.value)


FULL = {
    "n": 50,
    "hypotheses": 10,
    "dimension": 3,
    "failure": "0.1",
    "epsilon": 1,
    "delta": "1e-6",
    "rank": 4,
    "success": "0.9",
    "neighbors": ADD_REMOVE,
    "correct": 40,
}
TAKES = {
    uniform_deviation: ("n", "hypotheses", "dimension", "failure"),
    exponential_excess: ("n", "hypotheses", "dimension", "epsilon", "success", "neighbors"),
    nested_gap: ("epsilon", "delta", "rank", "success", "neighbors"),
    nested_error: ("epsilon", "rank", "success", "neighbors"),
    occam_error_bound: ("n", "hypotheses", "failure", "correct"),
}
BAD = {
    "n": [0, 1.5],
    "hypotheses": [0, "3"],
    "dimension": [-1, 1.5],
    "failure": [0, 1, "x"],
    "epsilon": [0, -1],
    "delta": [0, 1],
    "rank": [0],
    "success": [0, 1],
    "neighbors": ["swap"],
}


@pytest.mark.parametrize("function", TAKES, ids=lambda function: function.__name__)
def test_every_bad_argument_is_refused_by_name(function):
    arguments = {name: FULL[name] for name in TAKES[function]}
    function(**arguments)
    for name in set(TAKES[function]) & set(BAD):
        for value in BAD[name]:
            with pytest.raises(ParameterError) as caught:
                function(**{**arguments, name: value})
            assert caught.value.name == name


def test_a_rank_of_the_mechanism_and_an_eta_above_the_clip():
    with pytest.raises(ParameterError, match="rank"):
        nested_gap(**PRICE, rank=3)
    for call in (
        lambda: nested_gap(**PRICE, rank=4, success=1 - Fraction(1, 2**24)),
        lambda: exponential_excess(n=5, hypotheses=5, epsilon=1, success=1 - Fraction(1, 2**23)),
    ):
        with pytest.raises(ParameterError, match="success"):
            call()
