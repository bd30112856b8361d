"""The auditor that runs mechanisms: it passes ours, and finds what is known to be wrong.

Nothing here uses a law. Seeds are fixed, so a test gives the same answer every time.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest

from privmax import Exponential, ParameterError
from privmax.mechanisms.registry import MECHANISMS
from privmax.testers import Claim, audit_subject, check_privacy, search_pairs, subjects_of
from privmax.testers.bounds import largest_chance, least_chance
from privmax.testers.claims import _divergence
from privmax.testers.enumeration import Bracket, compare_brackets, walk_coins, walk_uniforms
from privmax.testers.events import choose_events
from privmax.testers.packages import known_wrong, ours
from privmax.testers.patterns import moves, neighbors
from privmax.testing import SeededCoins

OURS = {subject.name: subject for subject in subjects_of("privmax")}
WRONG = {subject.name: subject for subject in subjects_of("known-wrong")}
SPARSE = [name for name in WRONG if name.startswith("sparse vector")]
LISTED = [name for name, subject in WRONG.items() if subject.enumerate is not None]


def coins(seed=1):
    return SeededCoins(seed)


# Bounds


def tail(hits, trials, chance):
    """P(at least `hits`), added up."""
    return sum(
        math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k)
        for k in range(hits, trials + 1)
    )


@pytest.mark.parametrize(("hits", "trials"), [(1, 7), (5, 20), (19, 20), (60, 100)])
def test_clopper_pearson_is_exact_and_on_the_right_side(hits, trials):
    low = Fraction(least_chance(hits, trials, 0.01))
    assert tail(hits, trials, low) <= Fraction(0.01)
    assert tail(hits, trials, low * Fraction("1.001")) > Fraction(0.01)
    high = 1 - Fraction(largest_chance(hits, trials, 0.01))
    assert tail(trials - hits, trials, high) <= Fraction("0.010000001")


def test_bounds_cover_as_often_as_they_say():
    """The chance that the bound is wrong, added up over all numbers of hits."""
    chance, trials, alpha = 0.3, 60, 0.05
    wrong = sum(
        math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k)
        for k in range(trials + 1)
        if least_chance(k, trials, alpha) > chance
    )
    assert 0.01 < wrong <= alpha


def test_a_million_trials_are_no_trouble():
    assert 0.0985 < least_chance(10**5, 10**6, 1e-4) < 0.1 < largest_chance(10**5, 10**6, 1e-4)


# Claims


def test_what_rho_an_event_needs():
    """Of two coins the order 1 is the Kullback–Leibler divergence; another may need more."""
    kl = 0.5 * math.log(0.5 / 0.1) + 0.5 * math.log(0.5 / 0.9)
    assert _divergence(0.5, 0.1) >= 0.99 * kl
    assert Claim.of(rho="0.5").excess(0.5, 0.1) > 0 > Claim.of(rho="0.6").excess(0.5, 0.1)


def test_gaussian_noise_stays_within_its_rho_whatever_the_event():
    """For N(0, 1) against N(1, 1) and all events above a number: ρ is 1/2."""
    for cut in range(-30, 40):
        here, there = (math.erfc((cut / 10 - mean) / math.sqrt(2)) / 2 for mean in (1, 0))
        assert Claim.of(rho="0.5").excess(here, there) <= 1e-12


def test_a_claim_is_epsilon_or_rho():
    with pytest.raises(ParameterError):
        Claim.of(epsilon=1, rho=1)
    with pytest.raises(ParameterError):
        Claim.of()


# Enumeration


def test_uniform_reals_are_followed_exactly():
    found = walk_uniforms(lambda rng: (int(rng.random() * 3), rng.random() - 0.5 <= 0.25))
    third = Fraction(1, 3)
    assert found.unfinished == 0
    assert {key: float(value) for key, value in found.finished.items()} == pytest.approx(
        {(n, yes): float(third * (Fraction(3, 4) if yes else Fraction(1, 4)))
         for n in range(3) for yes in (True, False)}
    )  # fmt: skip


def test_what_is_left_unfinished_is_counted():
    def geometric(rng):
        steps = 0
        while rng.random() < 0.5:
            steps += 1
        return steps

    found = walk_uniforms(geometric, runs=9)
    assert sum(found.finished.values()) + found.unfinished == 1
    assert found.finished[0] == Fraction(1, 2)
    assert 0 < found.unfinished < Fraction(1, 8)


def test_brackets_that_are_open_decide_nothing_they_should_not():
    sure = Bracket({0: Fraction(1, 2)}, Fraction(1, 2))
    found = compare_brackets(sure, sure, Claim.of(epsilon=0))
    assert found.least == 0
    assert Fraction(1, 2) <= found.most < Fraction("0.5000001")


@pytest.mark.parametrize("name", ["exponential", "gap-test", "limited-domain", "nested-margin"])
def test_the_bracket_of_coins_holds_the_law(name):
    """The one place where a law is used: to see that the walk of this auditor is right."""
    mechanism = ours._make(name)
    closed = mechanism.privacy().delta == 0
    scores = (4, 2, 1)
    found = walk_coins(lambda bits: ours.draw_place(mechanism, closed, scores, bits))
    from privmax import Profile

    law = mechanism.law(Profile([(s, 1) for s in scores], universe=3 if closed else None))
    chances = {place: law.of(score) for place, score in enumerate(scores)} | {None: law.none}
    assert found.unfinished < 0.01
    for outcome, chance in chances.items():
        low = found.finished.get(outcome, 0)
        assert low - 1e-9 <= chance <= low + found.unfinished + 1e-9


# Events


def test_an_event_is_found_in_numbers_lists_and_labels():
    rng = random.Random(1)
    for left, right in (
        ([rng.gauss(0, 1) for _ in range(600)], [rng.gauss(3, 1) for _ in range(600)]),
        ([(True, rng.random()) for _ in range(600)], [(False, rng.random()) for _ in range(600)]),
        (["a", "b"] * 300, ["b", "c"] * 300),
    ):
        best, *_ = choose_events(left, right, Claim.of(epsilon=1))
        assert best.promise > 3
        hits = [best.event.hits(side) for side in (left, right)]
        assert max(hits) > 3 * min(hits)


def test_moves_are_neighbors():
    for monotone in (True, False):
        for left, right in neighbors([(1, 1, 1, 1)], monotone=monotone):
            steps = [b - a for a, b in zip(left, right, strict=True)]
            assert max(map(abs, steps)) == 1
            assert not monotone or min(steps) >= 0
    assert len(moves(4, monotone=False)) > len(moves(4, monotone=True))


# Statistical tests


def response(chance):
    return lambda data, seed: data ^ (random.Random(seed).random() > chance)


def test_randomized_response_is_found_out_only_beyond_its_epsilon():
    epsilon = math.log(3)  # a true answer with probability 3/4
    honest = check_privacy(response(0.75), 0, 1, epsilon=epsilon, samples=6000, coins=coins())
    assert not honest.broken
    assert 0.7 < honest.least < epsilon
    wrong = check_privacy(response(0.9), 0, 1, epsilon=epsilon, samples=6000, coins=coins())
    assert wrong.broken
    assert wrong.least > epsilon


@pytest.mark.slow
def test_a_claim_at_its_limit_is_hardly_ever_called_broken():
    """Exactly ε, forty times, at a confidence of 90 %: the level is never reached."""
    broken = sum(
        check_privacy(
            response(0.75), 0, 1, epsilon=math.log(3), samples=1500, confidence="0.9",
            coins=coins(seed),
        ).broken
        for seed in range(40)
    )  # fmt: skip
    assert broken <= 4


def test_delta_is_allowed_for():
    def leaks(data, seed):
        return data if random.Random(seed).random() < 0.1 else None

    options = {"epsilon": 1, "samples": 20_000, "coins": coins()}
    assert check_privacy(leaks, 0, 1, delta="0.05", **options).broken
    assert not check_privacy(leaks, 0, 1, delta="0.1", **options).broken


def test_the_pair_is_found_among_others():
    run = lambda data, seed: data[0] + random.Random(seed).gauss(0, 9)  # noqa: E731
    pairs = [((k,), (k,)) for k in range(6)] + [((0,), (40,))]
    found = search_pairs(run, pairs, Claim.of(epsilon=1), coins=coins())
    assert found.broken
    assert set(found.pair) == {(0,), (40,)}


def test_mistakes_are_refused():
    run = lambda data, seed: data  # noqa: E731
    with pytest.raises(ParameterError, match="pairs"):
        search_pairs(run, [], Claim.of(epsilon=1))
    with pytest.raises(ParameterError, match="confidence"):
        check_privacy(run, 0, 1, epsilon=1, confidence=1)
    with pytest.raises(ParameterError, match="either epsilon or rho"):
        check_privacy(run, 0, 1)
    with pytest.raises(ParameterError, match="Did you mean opendp"):
        subjects_of("opndp")


# Ours pass


def test_every_mechanism_of_the_registry_is_a_subject():
    assert list(OURS) == list(MECHANISMS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exponential", "gap-test", "limited-domain"])
def test_ours_pass(name):
    few = replace(OURS[name], pairs=OURS[name].pairs[::5])
    verdict = audit_subject(few, samples=600, coins=coins())
    assert not verdict.broken
    assert verdict.enumeration.most < OURS[name].claim.delta + Fraction("0.02")


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_all_of_ours_pass(name):
    few = replace(OURS[name], pairs=OURS[name].pairs[::3])
    assert not audit_subject(few, samples=2500, coins=coins()).broken


@pytest.mark.slow
def test_the_sparse_vector_technique_without_a_mistake_passes():
    pairs = neighbors(known_wrong.QUERY_STARTS, monotone=False)
    run = known_wrong.honest_sparse_vector(2.0)
    assert not search_pairs(run, pairs, Claim.of(epsilon=2), samples=30_000, coins=coins()).broken


# What is wrong is found


def test_there_are_six_wrong_sparse_vectors_and_a_mutant_of_most_of_ours():
    assert len(SPARSE) == 6
    assert len(LISTED) >= 10


QUICK = {
    "sparse vector: no noise on queries",
    "laplace noise: scale upside down",
    "privmax Exponential: universe taken from the data",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in WRONG]
)
def test_what_is_known_to_be_wrong_is_found(name):
    assert audit_subject(WRONG[name], samples=200_000, coins=coins()).broken


@pytest.mark.slow
def test_a_mutant_is_found_by_samples_alone():
    mutant = WRONG["privmax Exponential: twice epsilon"]
    two = replace(mutant, pairs=[((1, 1, 1, 1), (2, 2, 1, 1)), ((0, 0), (0, 0))])
    verdict = audit_subject(two, samples=12_000, enumerated=False, coins=coins())
    assert verdict.broken
    assert verdict.finding.least > 1


@pytest.mark.slow
def test_samples_of_an_honest_twin_are_not():
    honest = ours.subject_of("honest", Exponential(epsilon=1))
    assert not audit_subject(honest, samples=2000, enumerated=False, coins=coins()).broken


# Outcomes without a value, and searches that find no event


class Unhashable:
    """Equal to others, and not hashable: its repr tells where it lies in memory."""

    def __eq__(self, other):
        return isinstance(other, Unhashable)

    __hash__ = None


@pytest.mark.parametrize("outcome", [Unhashable(), object(), [Unhashable()], {"a": object()}])
def test_what_is_equal_only_to_itself_is_no_outcome(outcome):
    with pytest.raises(ParameterError, match="cannot be compared"):
        check_privacy(lambda data, seed: outcome, 0, 1, epsilon=1, samples=1000)


def test_every_nan_is_one_outcome():
    def run(data, seed):
        drawn = random.Random(seed).random()
        return drawn if drawn < 0.5 else math.nan if data else float("nan")

    assert not check_privacy(run, 0, 1, epsilon=0, samples=4000, coins=coins()).broken


@pytest.mark.parametrize("samples", range(4, 12))
def test_a_search_ends_where_there_is_no_event(samples):
    """Each outcome comes once, so no event has hits enough to be tested."""
    found = check_privacy(lambda data, seed: seed, 0, 1, epsilon=1, samples=samples)
    assert (found.broken, found.samples <= samples) == (False, True)
    alone = check_privacy(lambda data, seed: math.nan, 0, 1, epsilon=1, samples=samples)
    assert not alone.broken


def test_a_search_that_cannot_run_once_is_refused():
    with pytest.raises(ParameterError, match="at least 202 for the pairs"):
        search_pairs(lambda data, seed: data, [(0, 1)] * 100, Claim.of(epsilon=1), samples=201)
