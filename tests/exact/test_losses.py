"""Laws of losses: what floats may be off by, and that no way of shortening makes a cost too small.

Beside the stated bounds are exact ones: rational numbers, and balls of 300 bits.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb
from rounding import MODES, rounding

from privmax import losses
from privmax.losses import (
    EXPONENTIAL_ROUNDINGS,
    FALL_ROUNDINGS,
    ROUNDING,
    Losses,
    coarsen,
    combine,
    falls,
    gaussian_losses,
    least_epsilon,
    refine,
    repeat,
    response_epsilon,
    response_losses,
    shorten,
    trim,
)
from privmax.noise.balls import ball, precision

STEP, TINY = Fraction(1, 1 << 13), Fraction(1, 10**70)
SLACK = Fraction("5e-6")


def is_within(found, exact, roundings):
    """Whether a float is off by at most so many factors of 1 + 2^-52; `exact`: a ball."""
    factor = ball(1 + ROUNDING) ** roundings
    number = ball(Fraction(float(found)))
    return bool(number <= exact * factor and exact <= number * factor)


def delta_of(law, epsilon):
    """E[(1 - e^(epsilon - loss))^+] of a dictionary from losses to chances, a ball."""
    return sum(
        (chance * (1 - (ball(epsilon) - ball(loss)).exp())
         for loss, chance in law.items() if loss > epsilon),
        arb(0),
    )  # fmt: skip


def as_dict(law):
    """Its chances as they are, infinite losses aside."""
    places = np.flatnonzero(law.chances)
    return {law.first + int(n) * law.gap: ball(Fraction(float(law.chances[n]))) for n in places}


def responses(counts):
    """The exact law of so many responses of so many steps each."""
    whole = {Fraction(0): arb(1)}
    for steps, times in counts.items():
        likely = 1 / (1 + (-ball(steps * STEP)).exp())
        joined: dict[Fraction, arb] = {}
        for (loss, chance), up in product(whole.items(), range(times + 1)):
            found = loss + (2 * up - times) * steps * STEP
            factor = math.comb(times, up) * likely**up * (1 - likely) ** (times - up)
            joined[found] = joined.get(found, arb(0)) + chance * factor
        whole = joined
    return whole


def gaussian(shift, variance):
    """The exact law of the losses of discrete Gaussian noise, all but 1e-100 of it."""
    reach = math.isqrt(math.ceil(500 * variance)) + 2
    weights = {x: (-ball(Fraction(x * x) / (2 * variance))).exp() for x in range(-reach, reach + 1)}
    total = sum(weights.values(), arb(0))
    return {
        Fraction(2 * shift * x + shift**2) / (2 * variance): weight / total
        for x, weight in weights.items()
    }


# Single numbers


@pytest.mark.parametrize("mode", MODES)
def test_exponentials_are_off_by_what_is_stated(mode):
    numbers = np.concatenate([np.linspace(0, 80, 997), [2.0**-41, 2.0**-30, 699.9, 650.0]])
    losses._notches.cache_clear()
    with rounding(mode):
        found = losses._exponentials(numbers)
    losses._notches.cache_clear()
    with precision(300):
        exact = [(-ball(Fraction(float(x)))).exp() for x in numbers]
        # The rest of what is stated is for the numbers, which have errors of their own.
        own = EXPONENTIAL_ROUNDINGS - 1500
        assert all(is_within(one, other, own) for one, other in zip(found, exact, strict=True))
        assert not all(is_within(one, other, 9) for one, other in zip(found, exact, strict=True))


@pytest.mark.parametrize("gap", [Fraction(1, 1 << 40), Fraction(1, 3000), Fraction(2)])
@pytest.mark.parametrize("mode", MODES)
def test_falls_are_off_by_what_is_stated(gap, mode):
    with rounding(mode):
        found = falls(1500, gap)
    assert len(found) == 1500
    assert found[0] == 0
    with precision(300):
        for n in (1, 2, 511, 512, 513, 1024, 1499):
            assert is_within(found[n], -(-ball(n * gap)).expm1(), FALL_ROUNDINGS)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("steps", "times"), [(1, 1), (820, 40), (16000, 3), (3, 700)])
def test_chances_of_responses_are_off_by_what_is_stated(steps, times, mode):
    with rounding(mode):
        law = response_losses(steps, times, 1, STEP)
    with precision(300):
        exact, found = responses({steps: times}), as_dict(law)
        assert set(found) <= set(exact)
        for loss, chance in exact.items():
            if chance > 1e-300:
                assert is_within(float(found[loss].mid()), chance, law.roundings)


# Sums


@pytest.mark.parametrize("mode", MODES)
def test_sums_are_off_by_what_is_stated(mode):
    random = np.random.default_rng(5)
    one = Losses(Fraction(-1), Fraction(1, 8), random.random(40) ** 9, 2.0**-40, 3)
    other = Losses(Fraction(2), Fraction(1, 8), random.random(25) ** 9, 2.0**-41, 4)
    with rounding(mode):
        both = combine(one, other)
    assert both.first == 1
    assert both.endless == 2.0**-40 + 2.0**-41
    assert both.roundings == 3 + 4 + 25 + 1
    exact = [Fraction(0)] * 64
    for (n, a), (m, b) in product(enumerate(one.chances), enumerate(other.chances)):
        exact[n + m] += Fraction(a) * Fraction(b)
    with precision(300):
        own = both.roundings - 7  # the sums themselves
        assert all(
            is_within(chance, ball(number), own)
            for chance, number in zip(both.chances, exact, strict=True)
        )


def test_what_is_repeated_is_the_sum_of_so_many():
    part = Losses(Fraction(-1), Fraction(2), np.array([0.25, 0.75]), 0.0, 1)
    for times in (1, 2, 3, 7, 12):
        whole = repeat(part, times, 1e-300)
        assert whole.first == -times
        exact = [math.comb(times, n) * 0.75**n * 0.25 ** (times - n) for n in range(times + 1)]
        assert whole.chances == pytest.approx(exact, rel=1e-14)


def test_laws_on_different_grids_are_put_on_the_coarser_one():
    fine = Losses(Fraction(0), Fraction(1, 4), np.array([0.5, 0.25, 0.25]))
    coarse = Losses(Fraction(0), Fraction(1), np.array([0.5, 0.5]))
    for both in (combine(fine, coarse), combine(coarse, fine)):
        assert both.gap == 1
        assert both.chances.sum() == pytest.approx(1)


# What is made shorter


LAWS = [
    Losses(Fraction(-2), Fraction(1, 4), np.array([0.1, 0.2, 0.3, 0.25, 0.1, 0.05])),
    Losses(Fraction(-30), Fraction(5), np.array([0.5, 0, 0, 0, 0, 0, 0, 0, 0.4, 0.1, 0])),
    Losses(Fraction(1, 3), Fraction(1, 1 << 30), np.array([0.5, 0.5])),
    Losses(Fraction(0), Fraction(1), np.array([1.0])),
]


@pytest.mark.parametrize("law", LAWS)
def test_a_coarser_grid_keeps_chances_and_the_mean_of_the_other_side(law):
    after = coarsen(law)
    assert after.gap == 2 * law.gap
    with precision(300):
        for mean in (lambda loss: arb(1), lambda loss: (-ball(loss)).exp()):
            one = sum((p * mean(loss) for loss, p in as_dict(law).items()), arb(0))
            other = sum((p * mean(loss) for loss, p in as_dict(after).items()), arb(0))
            factor = ball(1 + ROUNDING) ** 5
            assert one <= other * factor
            assert other <= one * factor


@pytest.mark.parametrize("law", LAWS)
def test_no_way_of_making_a_law_shorter_makes_delta_smaller(law, monkeypatch):
    monkeypatch.setattr(losses, "LONGEST", 3)
    after = {
        "coarsen": coarsen(law),
        "shorten": shorten(law),
        "trim": trim(law, 0.12),
        "refine": refine(law, law.gap / 4),
    }
    assert len(after["shorten"].chances) <= 3
    with precision(300):
        for name, other in after.items():
            slack = ball(1 + ROUNDING) ** other.roundings
            for n in range(-4, 4 * len(law.chances)):
                epsilon = law.first + n * law.gap / 4
                most = delta_of(as_dict(other), epsilon) + ball(Fraction(other.endless))
                assert delta_of(as_dict(law), epsilon) <= most * slack + ball(TINY), name


def test_tails_are_infinite_losses():
    law = trim(LAWS[0], 0.12)
    assert law.first == Fraction(-7, 4)
    assert law.chances.tolist() == [0.2, 0.3, 0.25, 0.1]
    assert 0.15 <= law.endless < 0.1501
    assert trim(LAWS[0], 0.01).chances.tolist() == LAWS[0].chances.tolist()
    assert trim(LAWS[0], 0.01).endless == 0
    assert trim(LAWS[0], 2.0) is LAWS[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("shift", "variance"), [(1, 8), (3, Fraction(81, 2)), (1, 3), (7, 900), (1, Fraction(1, 50))]
)
def test_the_law_of_noise_is_no_better_than_the_exact_one_and_near(shift, variance, mode):
    losses._notches.cache_clear()
    with rounding(mode):
        law = gaussian_losses(shift, Fraction(variance), Fraction(1, 7), 1e-20)
    losses._notches.cache_clear()
    with precision(300):
        exact, found = gaussian(shift, variance), as_dict(law)
        deviation = shift / math.sqrt(variance)
        slack = ball(1 + ROUNDING) ** law.roundings
        for part in (-4, -1, Fraction(-1, 3), 0, Fraction(1, 2), 1, 2, 3, 5):
            epsilon = Fraction(shift**2) / (2 * variance) + part * Fraction(deviation)
            true = delta_of(exact, epsilon)
            most = delta_of(found, epsilon) + ball(Fraction(law.endless))
            assert true <= most * slack
            # In a discrete law of few losses, one is raised by a thousandth of the deviation.
            near = delta_of(exact, epsilon - Fraction(deviation) / 50)
            assert most <= near * slack + ball(Fraction(1, 10**15))


def test_noise_of_too_many_values_has_no_law():
    for shift, variance in ((1, 10**14), (1 << 60, 1), (1, Fraction(1, 10**30))):
        assert gaussian_losses(shift, Fraction(variance), Fraction(1), 1e-20) is None


# Epsilons


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("slack", [SLACK, Fraction(1, 1 << 90), Fraction(1, 5)], ids=str)
@pytest.mark.parametrize(
    "counts",
    [{820: 40}, {1: 300}, {16000: 3}, {1000: 5, 1003: 4, 77: 6}, {30001: 2, 8: 9}],
    ids=str,
)
def test_epsilons_are_least_on_both_sides(counts, slack, mode):
    """At what is found the exact delta is at most the slack, and a little below it is not."""
    with rounding(mode):
        epsilon = response_epsilon(counts, STEP, slack)
    with precision(600):
        law = responses(counts)
        assert delta_of(law, epsilon) <= ball(slack)
        if epsilon:
            below = delta_of(law, epsilon - Fraction(1, 1 << 63))
            assert below > ball(slack * (1 - Fraction(1, 1 << 27)))


def test_machines_differ_by_less_than_what_is_left():
    """However a processor rounds, and with numbers of 64 bits: what one finds with the room that
    the ledger leaves, all others prove without it.
    """
    counts = {300 + 7 * k: 31 for k in range(32)}
    found, proved = [], []
    for mode in MODES:
        with rounding(mode):
            found.append(response_epsilon(counts, STEP, SLACK * (1 - Fraction(1, 1 << 20))))
            proved.append(response_epsilon(counts, STEP, SLACK))
    assert len(set(found)) > 1  # they do differ
    assert max(proved) <= min(found)
    assert max(found) - min(found) < (min(found) - max(proved)) / 100


def test_epsilons_of_one_side():
    nothing = Losses(Fraction(0), Fraction(1), np.ones(1))
    assert least_epsilon(nothing, SLACK) == 0
    assert least_epsilon(Losses(Fraction(-5), Fraction(1), np.ones(1)), SLACK) == 0
    assert least_epsilon(Losses(Fraction(0), Fraction(1), np.ones(1), 0.1), SLACK) is None
    assert least_epsilon(Losses(Fraction(0), Fraction(1), np.ones(1), 0.0, 1 << 52), SLACK) is None
    certain = least_epsilon(Losses(Fraction(2), Fraction(1), np.ones(1)), Fraction(1, 2))
    assert certain == pytest.approx(2 - math.log(2), rel=1e-12)


def test_no_responses_have_no_epsilon():
    assert response_epsilon({}, STEP, SLACK) is None
    assert response_epsilon({0: 5}, STEP, SLACK) is None
    assert response_epsilon({5: 5}, STEP, Fraction(1, 1 << 201)) is None


@pytest.mark.slow
@pytest.mark.parametrize("counts", [{820: 40}, {512: 100, 77: 30, 1000: 3}, {9: 1000}], ids=str)
def test_responses_agree_with_dp_accounting(counts):
    distributions = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    common = pytest.importorskip("dp_accounting.pld.common")
    whole = None
    for steps, times in counts.items():
        pair = common.DifferentialPrivacyParameters(steps / 8192, 0.0)
        part = distributions.from_privacy_parameters(pair, value_discretization_interval=1 / 8192)
        part = part.self_compose(times)
        whole = part if whole is None else whole.compose(part)
    theirs = whole.get_epsilon_for_delta(float(SLACK))
    assert float(response_epsilon(counts, STEP, SLACK)) == pytest.approx(theirs, rel=1e-7)


# Mutants


def understates(counts=((820, 40), (77, 30))):
    epsilon = response_epsilon(dict(counts), STEP, SLACK)
    with precision(300):
        return not delta_of(responses(dict(counts)), epsilon) <= ball(SLACK)


def replaced(name, change):
    kept = getattr(losses, name)
    return lambda *given: change(kept(*given), *given)


def forget_tails(law, *_):
    return Losses(law.first, law.gap, law.chances, 0.0, law.roundings)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("trim", forget_tails),
        ("response_losses", lambda law, *_: Losses(law.first - law.gap, law.gap, law.chances)),
        ("falls", lambda found, *_: found * (1 - 1e-4)),
        ("combine", lambda law, *_: Losses(law.first, law.gap, law.chances * (1 - 1e-4))),
    ],
    ids=["tails are forgotten", "losses are lower", "falls are lower", "chances are lower"],
)
def test_what_makes_a_cost_too_small_is_seen(name, change, monkeypatch):
    assert not understates()
    monkeypatch.setattr(losses, name, replaced(name, change))
    if name == "trim":
        monkeypatch.setattr(losses, "CUT", 2.0**-4)  # so that tails weigh
    assert understates()
