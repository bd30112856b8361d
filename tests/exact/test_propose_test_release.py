"""Propose, test, release on a line of data sets where the value is flat and then jumps; the
distance test alone.
"""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from privmax import DataError, DistanceTest, ParameterError, Privacy, ProposeTestRelease
from privmax.auditing import divergence
from privmax.testing import walk


def tail(epsilon, least, reach=4000):
    """P(Z ≥ least) for discrete Laplace noise of scale 1/ε, added up."""
    unit = math.tanh(epsilon / 2)
    return math.fsum(unit * math.exp(-abs(k) * epsilon) for k in range(least, reach))


def brackets(draw, law, depth, unfinished):
    finished, left = walk(draw, depth)
    assert left <= unfinished
    assert finished.keys() <= law.keys()
    return all(
        finished.get(o, 0) - 1e-9 <= p <= finished.get(o, 0) + left + 1e-9 for o, p in law.items()
    )


VALUES = [
    0,
    0,
    1,
    1,
    0,
    1,
    0,
    0,
    1,
    0,
    1,
    9,
    2,
    11,
    11,
    11,
    530,
    531,
    531,
    531,
    532,
    532,
    531,
    531,
    532,
    532,
]
"""The value on each of a row of data sets; the next one in the row is one record away."""


def local(place):
    """How far one record can move the value from here."""
    return max(
        abs(VALUES[place] - VALUES[near])
        for near in (place - 1, place + 1)
        if 0 <= near < len(VALUES)
    )


def distance(place, bound):
    return min(abs(place - bad) for bad in range(len(VALUES)) if local(bad) > bound)


def worst(mechanism, distance=distance):
    """The delta that the worst pair of neighbours needs at the claimed epsilon."""
    laws = [
        mechanism.law(value, distance(place, mechanism.bound)) for place, value in enumerate(VALUES)
    ]
    pairs = [(a, b) for a in range(len(VALUES)) for b in (a - 1, a + 1) if 0 <= b < len(VALUES)]
    return max(divergence(laws[a], laws[b], mechanism.privacy().epsilon) for a, b in pairs)


@pytest.mark.parametrize("epsilon", ["0.1", 1, 4])
@pytest.mark.parametrize("delta", ["1e-6", "0.01", "0.3", "0.6", "0.99"])
def test_threshold_is_the_least_that_bad_data_passes_with_probability_delta(epsilon, delta):
    threshold = DistanceTest(epsilon=epsilon, delta=delta).threshold()
    assert tail(float(epsilon), threshold + 1) <= float(delta)
    assert threshold == 0 or tail(float(epsilon), threshold) > float(delta)


@pytest.mark.parametrize("epsilon", ["0.3", 2])
def test_chance_of_passing_against_a_sum(epsilon):
    test = DistanceTest(epsilon=epsilon, delta="0.01")
    for d in range(30):
        assert test.law(d) == pytest.approx(
            tail(float(epsilon), test.threshold() + 1 - d), abs=1e-12
        )


def test_law_against_a_sum():
    mechanism = ProposeTestRelease(epsilon=2, delta="0.05", bound=3, share="0.25")
    law = mechanism.law(100, 4)
    passes = tail(0.5, mechanism.test().threshold() + 1 - 4)
    assert law[None] == pytest.approx(1 - passes)
    for k in range(-10, 11):
        assert law[100 + k] == pytest.approx(passes * math.tanh(0.25) * math.exp(-abs(k) / 2))
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("bound", [1, 2, 9, 18])
@pytest.mark.parametrize("delta", ["0.001", "0.1", "0.6"])
@pytest.mark.parametrize("share", ["0.2", "0.5", "0.9"])
def test_stays_within_the_price_wherever_the_value_jumps(bound, delta, share):
    mechanism = ProposeTestRelease(epsilon=1, delta=delta, bound=bound, share=share)
    assert worst(mechanism) <= float(delta) + 1e-12


def test_the_test_alone_is_exactly_as_private_as_it_says():
    test = DistanceTest(epsilon=1, delta="0.01")
    assert test.privacy() == Privacy(1)
    laws = [{True: test.law(d), False: 1 - test.law(d)} for d in range(20)]
    for here, there in pairwise(laws):
        assert max(divergence(here, there, 1), divergence(there, here, 1)) < 1e-14
    assert divergence(laws[1], laws[0], "0.99") > 1e-5


class _NoiseForAll(ProposeTestRelease):
    """Spends the whole of epsilon on the value, after a part of it on the test."""

    def scale(self):
        return self.bound / self.epsilon


class _TestForAll(ProposeTestRelease):
    """Spends the whole of epsilon on the test, and a part of it again on the value."""

    def test(self):
        return DistanceTest(epsilon=self.epsilon, delta=self.delta)


class _RealTail(DistanceTest):
    """Takes the threshold of real-valued noise, ln(1/(2δ))/ε, as it is."""

    def threshold(self):
        return math.floor(math.log(1 / (2 * self.delta)) / self.epsilon)


class _RealThreshold(ProposeTestRelease):
    def test(self):
        return _RealTail(epsilon=self.share * self.epsilon, delta=self.delta)


@pytest.mark.parametrize("mutant", [_NoiseForAll, _TestForAll, _RealThreshold])
def test_mutants_that_spend_too_much(mutant):
    options = {"epsilon": 1, "delta": "0.0008", "bound": 1}
    assert worst(ProposeTestRelease(**options)) <= 0.0008
    assert worst(mutant(**options)) > 1.05 * 0.0008


def test_mutant_distance_of_one_where_the_data_is_bad_already():
    mechanism = ProposeTestRelease(epsilon=1, delta="0.001", bound=2)
    assert worst(mechanism, lambda place, bound: distance(place, bound) + 1) > 0.00105


def test_mutant_bound_taken_from_the_data():
    def own_bound(value, place):
        mechanism = ProposeTestRelease(epsilon=1, delta="0.001", bound=max(1, local(place)))
        return mechanism.law(value, 10**6)

    laws = [own_bound(value, place) for place, value in enumerate(VALUES)]
    assert max(divergence(laws[a], laws[a + 1], 1) for a in range(len(laws) - 1)) > 0.01


def test_test_draws_its_law():
    test = DistanceTest(epsilon=3, delta="0.1")
    chances = [test.law(d) for d in (0, 1, 2)]
    for d, chance in enumerate(chances):
        assert brackets(
            lambda coins, d=d: test.draw(d, coins), {True: chance, False: 1 - chance}, 15, 0.01
        )
        wrong = {True: chance + 0.02, False: 0.98 - chance}
        assert not brackets(lambda coins, d=d: test.draw(d, coins), wrong, 15, 0.01)


def test_mechanism_draws_its_law():
    mechanism = ProposeTestRelease(epsilon=8, delta="0.1", bound=2, share="0.25")
    law = mechanism.law(7, 1)
    assert 0.1 < law[None] < 0.9
    assert brackets(lambda coins: mechanism.draw(7, 1, coins), law, 14, 0.05)
    assert not brackets(lambda coins: mechanism.draw(7, 1, coins), mechanism.law(8, 1), 14, 0.05)


def test_price_and_repr():
    mechanism = ProposeTestRelease(epsilon="0.7", delta="1e-6", bound=3)
    assert mechanism.privacy() == Privacy("0.7", "1e-6")
    assert repr(mechanism) == "ProposeTestRelease(epsilon=0.7, delta=1e-06, bound=3, share=0.5)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0),
        ("epsilon", "x"),
        ("delta", 0),
        ("delta", 1),
        ("bound", 0),
        ("bound", 1.5),
        ("share", 0),
        ("share", 1),
    ],
)
def test_bad_arguments_are_refused_by_name(name, value):
    options = {"epsilon": 1, "delta": "1e-6", "bound": 1} | {name: value}
    with pytest.raises(ParameterError, match=f"^{name}="):
        ProposeTestRelease(**options)


@pytest.mark.parametrize("bad", [-271828, 271828.5, True])
def test_a_bad_distance_is_refused_without_quoting_it(bad):
    mechanism = ProposeTestRelease(epsilon=1, delta="0.1", bound=1)
    for attempt in (lambda: mechanism.draw(5, bad, None), lambda: mechanism.law(5, bad)):
        with pytest.raises(DataError) as caught:
            attempt()
        assert "271828" not in str(caught.value)


def test_a_bad_value_is_refused_before_the_test_without_quoting_it():
    mechanism = ProposeTestRelease(epsilon=1, delta="0.1", bound=1)
    with pytest.raises(DataError) as caught:
        mechanism.draw(2.71828, 0, None)
    assert "2.71828" not in str(caught.value)
