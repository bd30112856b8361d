"""Above threshold: both cases of the proof over all small moves, mutants, and what each split
needs.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import count, product

import numpy as np
import pytest

from privmax import AboveThreshold, DataError, LargeMargin, ParameterError, Privacy, Profile
from privmax.auditing import divergence
from privmax.mechanisms.above_threshold import Run, tail
from privmax.noise.balls import START, precision
from privmax.testing import SeededCoins, walk

STARTS = [(3, -2, 4), (0, 0, 0, 0), (-9, -9, 20), (-2, -2, -2, 1)]


def law(mechanism, queries):
    stops, never = mechanism.law([(1, query) for query in queries])
    return {**dict(enumerate(map(float, stops))), None: never}


def moves(size, sensitivity, monotone):
    """All ways in which `size` queries may move."""
    if not monotone:
        return list(product(range(-sensitivity, sensitivity + 1), repeat=size))
    up = product(range(sensitivity + 1), repeat=size)
    return [move for rise in up for move in (rise, tuple(-step for step in rise))]


def worst(mechanism, start, *, monotone):
    """The largest hockey-stick at the claimed epsilon, in both directions, over all such moves from
    `start`.
    """
    here, largest, epsilon = law(mechanism, start), 0.0, mechanism.privacy().epsilon
    for move in moves(len(start), mechanism.sensitivity, monotone):
        there = law(mechanism, [query + step for query, step in zip(start, move, strict=True)])
        largest = max(largest, divergence(here, there, epsilon), divergence(there, here, epsilon))
    return largest


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("share", [None, "0.1", "0.5", "0.9"])
@pytest.mark.parametrize("monotone", [False, True])
def test_stays_within_the_price(start, share, monotone):
    mechanism = AboveThreshold(epsilon=1, monotone=monotone, share=share)
    assert worst(mechanism, start, monotone=monotone) < 1e-12


@pytest.mark.parametrize("monotone", [False, True])
def test_queries_of_a_higher_sensitivity_stay_within_the_price(monotone):
    mechanism = AboveThreshold(epsilon="1.5", sensitivity=2, monotone=monotone)
    assert worst(mechanism, (3, -4, 1), monotone=monotone) < 1e-12


def test_mutant_monotone_noise_on_queries_that_move_both_ways():
    start = (0, 0, 0, 0, 0)
    assert worst(AboveThreshold(epsilon=1, monotone=True), start, monotone=True) < 1e-12
    assert worst(AboveThreshold(epsilon=1, monotone=True), start, monotone=False) > 0.01


@pytest.mark.parametrize("monotone", [False, True])
def test_both_cases_are_nearly_tight(monotone):
    """Many queries rise and the last one does not: it stays, or falls where it may."""
    mechanism = AboveThreshold(epsilon=1, monotone=monotone)
    chances = []
    for low, last in ((0, 0), (1, 0 if monotone else -1)):
        stops, _ = mechanism.law([(10**5, low), (1, last)])
        chances.append(stops[1])
    assert 0.99 < math.log(chances[0] / chances[1]) < 1 + 1e-9


@pytest.mark.parametrize("form", [list, iter, np.array])
def test_a_plain_list_keeps_to_the_law(form):
    mechanism, queries = AboveThreshold(epsilon=2), [-1, 3, 0]
    finished, left = walk(lambda coins: mechanism.draw(form(queries), coins), 14)
    assert left < Fraction(1, 5)
    for place, chance in law(mechanism, queries).items():
        least = float(finished.get(place, 0))
        assert least <= chance + 1e-9
        assert chance <= least + float(left) + 1e-9


def test_a_stream_of_queries_need_not_end():
    assert AboveThreshold(epsilon=1).draw(count(-500, 100), SeededCoins(5)) in range(3, 9)


@pytest.mark.parametrize("query", [0.5, True, "7", None])
def test_a_query_that_is_not_a_whole_number_is_refused_and_not_quoted(query):
    with pytest.raises(DataError) as caught:
        AboveThreshold(epsilon=1).draw([-(10**6), query], SeededCoins(1))
    assert str(caught.value) == (
        "Every query must be a whole number: its excess over the threshold."
    )


class _SameShareTwice(AboveThreshold):
    """Gives the queries the share of the threshold once more instead of the rest."""

    def query_scale(self):
        return 2 * self.sensitivity / (self.share * self.epsilon)


class _SensitivityForgotten(AboveThreshold):
    def shared_scale(self):
        return super().shared_scale() / self.sensitivity

    def query_scale(self):
        return super().query_scale() / self.sensitivity


def test_mutant_shares_that_exceed_the_whole():
    start = (0, 0, 0, 0)
    assert worst(AboveThreshold(epsilon=1, share="0.8"), start, monotone=False) < 1e-12
    assert worst(_SameShareTwice(epsilon=1, share="0.8"), start, monotone=False) > 0.01


def test_mutant_sensitivity_forgotten():
    start = (0, 0, 0)
    assert worst(AboveThreshold(epsilon=1, sensitivity=2), start, monotone=False) < 1e-12
    assert worst(_SensitivityForgotten(epsilon=1, sensitivity=2), start, monotone=False) > 0.01


def needed(mechanism, before=1000):
    """The least excess e at which a query of excess e is found behind so many of −e, with
    probability 95 %.
    """
    excess = 1
    while mechanism.law([(before, -excess), (1, excess)])[0][1] < 0.95:
        excess += 1
    return excess


@pytest.mark.parametrize("before", [1, 50, 1000])
def test_the_default_split_needs_less_than_the_papers_and_monotone_queries_less_still(before):
    paper = needed(AboveThreshold(epsilon="0.5", share=Fraction(1, 2)), before)
    general = needed(AboveThreshold(epsilon="0.5"), before)
    monotone = needed(AboveThreshold(epsilon="0.5", monotone=True), before)
    assert monotone < general < paper


def test_the_default_share_makes_the_variance_least():
    def variance(share, monotone):
        search = AboveThreshold(epsilon=1, monotone=monotone, share=share)
        return search.shared_scale() ** 2 + search.query_scale() ** 2

    for monotone in (False, True):
        best = AboveThreshold(epsilon=1, monotone=monotone).share
        assert variance(best, monotone) < min(
            variance(best + step, monotone) for step in (-0.001, 0.001)
        )


def test_the_papers_mechanism_keeps_the_papers_split():
    search = LargeMargin(epsilon=1, delta="1e-6")._search(Profile([(5, 1)], sensitivity=3))
    assert (search.shared_scale(), search.query_scale()) == (18, 36)


@pytest.mark.parametrize("monotone", [False, True])
def test_law_against_a_sum_over_the_shared_noise(monotone):
    queries, share = (2, -1, 4, 0), 0.25
    mechanism = AboveThreshold(epsilon=3, monotone=monotone, share=share)
    x, y = 3 * share, 3 * (1 - share) / (1 if monotone else 2)

    def passes(bound):  # P(Z ≤ bound), added up
        return math.fsum(math.tanh(y / 2) * math.exp(-y * abs(k)) for k in range(-200, bound + 1))

    expected = [0.0] * len(queries)
    for g in range(-60, 61):
        alive = math.tanh(x / 2) * math.exp(-x * abs(g))
        for r, query in enumerate(queries):
            expected[r] += alive * passes(query - g - 1)
            alive *= 1 - passes(query - g - 1)
    stops, never = mechanism.law([(1, query) for query in queries])
    assert list(stops) == pytest.approx(expected, abs=1e-10)
    assert never == pytest.approx(1 - sum(expected), abs=1e-10)


def test_law_of_noise_that_hardly_ever_moves_anything():
    """A query passes if its excess is above 0, and its noise is nearly always 0."""
    stops, never = AboveThreshold(epsilon=200).law([(1, 0), (1, 1), (1, 2)])
    assert list(stops) == pytest.approx([0, 1, 0], abs=1e-9)
    assert never == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("monotone", [False, True])
def test_jumps_and_what_is_accepted_against_sums(monotone):
    """Many queries are jumped over at the rate −ln P(Z > bound), and one of a lower level is
    accepted with the ratio of both chances.
    """
    mechanism = AboveThreshold(epsilon=2, monotone=monotone)
    x = float(1 / mechanism.query_scale())
    noise = {k: math.tanh(x / 2) * math.exp(-x * abs(k)) for k in range(-150, 151)}

    def passes(bound):
        return math.fsum(chance for k, chance in noise.items() if k <= bound)

    with precision(START):
        for bound in range(-6, 7):
            rate = -math.log(1 - passes(bound))
            assert float(mechanism._rate(bound).mid()) == pytest.approx(rate, abs=1e-12)
            for level in (bound - 5, bound - 1):
                ratio = passes(level) / passes(bound)
                found = float(mechanism._ratio(level, bound).mid())
                assert found == pytest.approx(ratio, abs=1e-12)


SIX_SIGMA = 6


@pytest.mark.parametrize("share", ["0.05", "0.6"])
def test_three_hundred_draws_are_like_the_law(share):
    """With most of the noise in the threshold, and in the queries."""
    mechanism, excesses, number = AboveThreshold(epsilon=3, share=share), [-4, 0, 1, -1], 300
    runs = [
        Run(0, 2, excesses.__getitem__, lambda _: 0),
        Run(2, 4, excesses.__getitem__, lambda _: 1),
    ]
    coins = SeededCoins("above threshold")
    found = Counter(mechanism.draw(runs, coins) for _ in range(number))
    for outcome, chance in law(mechanism, excesses).items():
        error = SIX_SIGMA * math.sqrt(number * chance * (1 - chance))
        assert abs(found[outcome] - number * chance) < error + 1


def test_tail_on_both_sides_against_a_sum():
    for scale in (Fraction(1, 3), Fraction(5, 2)):
        x = float(1 / scale)
        with precision(START):
            for k in range(-8, 9):
                expected = math.fsum(
                    math.tanh(x / 2) * math.exp(-x * abs(j)) for j in range(k, 400)
                )
                assert float(tail(scale, k).mid()) == pytest.approx(expected, abs=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [False, True])
def test_draws_its_law(monotone):
    mechanism = AboveThreshold(epsilon=10, monotone=monotone)
    excesses = [0, 1]
    runs = [Run(0, 2, excesses.__getitem__, lambda _: 1)]

    def agrees(claimed):
        finished, left = walk(lambda coins: mechanism.draw(runs, coins), 15)
        assert left < 0.05
        return all(
            finished.get(o, 0) - 1e-9 <= p <= finished.get(o, 0) + left + 1e-9
            for o, p in claimed.items()
        )

    assert agrees(law(mechanism, excesses))
    assert not agrees(law(mechanism, [1, 0]))


def test_price_defaults_and_repr():
    assert AboveThreshold(epsilon="0.7").privacy() == Privacy("0.7")
    assert (
        repr(AboveThreshold(epsilon=1))
        == "AboveThreshold(epsilon=1, sensitivity=1, monotone=False, share=0.3865)"
    )
    assert AboveThreshold(epsilon=1, monotone=True).share == Fraction(1, 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0),
        ("sensitivity", 0),
        ("share", 0),
        ("share", 1),
        ("share", "x"),
        ("monotone", 1),
    ],
)
def test_bad_arguments_are_refused_by_name(name, value):
    with pytest.raises(ParameterError, match=f"^{name}="):
        AboveThreshold(**{"epsilon": 1} | {name: value})


@pytest.mark.parametrize("far", [10**10, 10**12, 2**53])
def test_queries_far_away_are_decided_at_once(far):
    """With every first bit: where U is known to be large only, the number of trials between its
    ends had 2^50 bits, and the interpreter died.
    """
    mechanism = AboveThreshold(epsilon=1)
    for seed in range(50):
        assert mechanism.draw([-far] * 3, SeededCoins(seed)) is None
        assert mechanism.draw([-far, far], SeededCoins(seed)) == 1


@pytest.mark.parametrize("query", [2**53 + 1, -(2**53) - 1, 10**30, -(10**400)])
def test_queries_beyond_all_balls_are_refused(query):
    with pytest.raises(DataError, match="between -2"):
        AboveThreshold(epsilon=1).draw([query], SeededCoins(1))


@pytest.mark.parametrize("query", [True, -900.0, Fraction(1, 2), "7", 2**53 + 1])
def test_the_law_refuses_what_a_draw_refuses(query):
    for ask in (
        AboveThreshold(epsilon=1).law,
        lambda one: AboveThreshold(epsilon=1).draw(one, SeededCoins(1)),
    ):
        with pytest.raises(DataError, match="Every query must be"):
            ask([query])


def test_the_law_takes_the_list_that_a_draw_takes():
    mechanism, queries = AboveThreshold(epsilon=1), [-3, 2, 0, 5]
    stops, never = mechanism.law(queries)
    runs, last = mechanism.law([(1, one) for one in queries])
    assert (stops.tolist(), never) == (runs.tolist(), last)
