"""No exact law beats a lower bound: on the paper's hard family, and at any lead; and what is not
private does.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog

from privmax import (
    DYADIC,
    Exponential,
    GapTest,
    Guards,
    LargeMargin,
    ParameterError,
    PermuteAndFlip,
    Profile,
    SetMargin,
    SharpMargin,
)
from privmax.planning.lower_bounds import (
    approximate_lower_bound,
    learning_limit,
    least_lead,
    pure_lower_bound,
    success_limit,
)
from privmax.privacy import ADD_REMOVE, REPLACE, drift

pytestmark = pytest.mark.slow

NEIGHBORS = [ADD_REMOVE, REPLACE]


# The paper's family


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("mechanism", [Exponential, PermuteAndFlip])
@pytest.mark.parametrize(
    ("epsilon", "candidates"), [("0.1", 4), ("0.1", 30), ("0.5", 1000), (1, 10**6), (2, 2**100)]
)
def test_pure_mechanisms_fail_on_the_hard_family(mechanism, epsilon, candidates, neighbors):
    bound = pure_lower_bound(
        epsilon=epsilon, candidates=candidates, records=1000, neighbors=neighbors
    )
    assert bound.error >= 1
    law = mechanism(epsilon=epsilon, neighbors=neighbors).law(
        Profile(bound.levels(), universe=candidates)
    )
    assert law.best() + law.error < 1 / 2
    assert law.best() <= 1 / 3  # what the lemma gives at delta = 0


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("universe", [10**9, None])
@pytest.mark.parametrize(
    ("delta", "near"), [("1e-6", 1000), ("1e-9", 10**6), ("0.005", 1000), ("0.01", 5)]
)
@pytest.mark.parametrize("kind", ["few", "dyadic", "one rank"])
def test_approximate_mechanisms_fail_on_the_hard_family_whatever_the_margin_behind_it(
    kind, delta, near, universe, neighbors
):
    at = {"epsilon": "0.1", "delta": delta, "neighbors": neighbors}
    bound = approximate_lower_bound(**at, near=near, records=10**4)
    assert bound.error >= 1
    mechanism = {
        "few": SharpMargin(**at),
        "dyadic": SharpMargin(**at, guards=DYADIC),
        "one rank": SharpMargin(**at, guards=Guards((bound.near,), (1,), share="0.001")),
    }[kind]
    law = mechanism.law(Profile(bound.levels(), universe=universe))
    assert law.best() + law.error < 1 / 2


@pytest.mark.parametrize("universe", [10**9, None])
def test_the_papers_mechanism_fails_on_its_own_hard_family(universe):
    bound = approximate_lower_bound(
        epsilon=1, delta="1e-6", near=1000, records=10**4, neighbors=REPLACE
    )
    assert bound.error == 6
    law = LargeMargin(epsilon=1, delta="1e-6", neighbors=REPLACE).law(
        Profile(bound.levels(), universe=universe)
    )
    assert law.best() + law.error < 1 / 2


def test_a_mechanism_that_is_not_private_beats_the_bound():
    bound = pure_lower_bound(epsilon=1, candidates=1000, records=1000, neighbors=REPLACE)
    assert bound.error == 6
    assert (
        Exponential(epsilon=3, neighbors=REPLACE).law(Profile(bound.levels(), universe=1000)).best()
        > 1 / 2
    )


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_the_family_is_what_the_page_says(neighbors):
    bound = approximate_lower_bound(
        epsilon="0.1", delta="1e-6", near=50, records=101, neighbors=neighbors
    )
    assert bound.error == drift(neighbors) * 15 + (neighbors == REPLACE)  # ⌊(c/0.2)·ln 24.5⌋
    for best in (0, 49):
        scores = bound.scores(best)
        assert scores[best] == max(scores) == bound.records
        assert (
            sorted(((score, scores.count(score)) for score in set(scores)), reverse=True)
            == bound.levels()
        )
    here, there = bound.scores(0), bound.scores(1)
    # One record moves two scores apart by c, so the distance is what the proof uses: 2·error/c
    # steps.
    assert (here[0] - here[1]) - (there[0] - there[1]) == 2 * bound.error


def test_few_records_cap_the_error_and_a_large_delta_the_family():
    capped = pure_lower_bound(epsilon="0.001", candidates=100, records=9)
    assert (capped.error, capped.threshold) == (4, 4.5)
    exact = approximate_lower_bound(epsilon=1, delta="0.01", near=32, records=100)
    fewer = approximate_lower_bound(epsilon=1, delta="0.01", near=33, records=100)
    assert exact.near == fewer.near == 32  # 1 + ⌊(1 − 1/e)/0.02⌋
    assert approximate_lower_bound(epsilon=1, delta="0.0097", near=33, records=100).near == 33
    tied = pure_lower_bound(epsilon=5, candidates=4, records=10)
    assert (tied.error, tied.levels()) == (0, [(10, 4)])


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("apart", [1, 2, 5])
def test_group_privacy_on_the_family(neighbors, apart):
    """P(j | D^i) ≥ e^(−sε)·P(j | D^j) − δ(1 − e^(−sε))/(e^ε − 1)."""
    near, epsilon, delta = 6, 0.5, 0.1
    steps = 2 * apart // drift(neighbors)
    guards = Guards((near,), (1,), share="0.001")
    mechanism = SharpMargin(epsilon=epsilon, delta=delta, neighbors=neighbors, guards=guards)
    law = mechanism.law(Profile([(30, 1), (30 - apart, near - 1)]))
    lost = delta * -math.expm1(-steps * epsilon) / math.expm1(epsilon)
    assert law.of(30 - apart) >= math.exp(-steps * epsilon) * law.of(30) - lost
    assert law.of(30 - apart) < math.exp(-steps * epsilon / 3) * law.of(
        30
    )  # it does fall about half as fast


# The limit


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("epsilon", ["0.2", 1, 3])
@pytest.mark.parametrize(("candidates", "near"), [(2, 1), (3, 2), (5, 1), (1000, 10), (10**9, 1)])
def test_no_pure_law_exceeds_the_limit(epsilon, candidates, near, neighbors):
    for mechanism in (
        Exponential(epsilon=epsilon, neighbors=neighbors),
        PermuteAndFlip(epsilon=epsilon, neighbors=neighbors),
    ):
        for lead in (1, 2, 3, 5, 8, 20, 50):
            law = mechanism.law(Profile([(lead, near)], universe=candidates))
            limit = success_limit(
                lead, epsilon=epsilon, candidates=candidates, near=near, neighbors=neighbors
            )
            assert law.best() <= limit + law.error


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize(("delta", "near"), [("0.1", 1), ("0.1", 3), ("1e-6", 1), ("1e-6", 1000)])
def test_no_approximate_law_exceeds_the_limit(delta, near, neighbors):
    at = {"epsilon": 1, "delta": delta, "neighbors": neighbors}
    tight = SharpMargin(**at, guards=Guards((near,), (1,), share="0.001"))
    for mechanism in (
        SharpMargin(**at),
        SharpMargin(**at, guards=DYADIC),
        tight,
        LargeMargin(**at),
    ):
        for candidates in (None, near + 1, 10**6):
            for lead in (1, 2, 3, 5, 8, 20, 50):
                law = mechanism.law(Profile([(lead, near)], universe=candidates))
                limit = success_limit(lead, **at, candidates=candidates, near=near)
                assert law.best() <= limit + law.error


def test_what_is_not_private_exceeds_the_limit():
    at = {"candidates": 10**6, "near": 1}
    assert PermuteAndFlip(epsilon="1.2").law(
        Profile([(15, 1)], universe=10**6)
    ).best() > success_limit(15, epsilon=1, **at)
    # monotone constants where scores may move apart
    assert PermuteAndFlip(epsilon=1).lead(**at) < least_lead(epsilon=1, **at, neighbors=REPLACE)


@pytest.mark.parametrize(
    ("candidates", "near"),
    [(10**3, 1), (10**3, 10), (10**6, 1), (10**12, 1), (2**100, 1), (2**100, 1000)],
)
@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_permute_and_flip_nearly_meets_the_limit(candidates, near, neighbors):
    lead = PermuteAndFlip(epsilon=1, neighbors=neighbors).lead(candidates=candidates, near=near)
    excess = lead - least_lead(epsilon=1, candidates=candidates, near=near, neighbors=neighbors)
    assert 0 <= excess <= 2 * drift(neighbors)


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("candidates", [10**3, 10**6, 10**12, 2**100, None])
def test_every_lead_is_at_least_the_least(candidates, neighbors):
    at = {"epsilon": 1, "delta": "1e-6", "neighbors": neighbors}
    for near in (1, 10, 1000):
        least = least_lead(**at, candidates=candidates, near=near)
        for mechanism in (SharpMargin(**at), SharpMargin(**at, guards=DYADIC)):
            assert mechanism.lead(candidates=candidates, near=near) >= least


@pytest.mark.parametrize(
    ("delta", "candidates", "expected"),
    [
        (0, 10**3, (17, 13, 0)),
        (0, 10**6, (31, 27, 17)),
        (0, 2**100, (141, 137, 127)),
        ("1e-6", 10**3, (17, 13, 0)),
        ("1e-6", 10**6, (29, 25, 17)),
        ("1e-6", 2**100, (31, 31, 31)),
        ("1e-6", None, (31, 31, 31)),
    ],
)
def test_least_leads(delta, candidates, expected):
    """c = 2; the iteration of f, written as a loop, gives the same."""
    at = {"epsilon": 1, "delta": delta, "candidates": candidates, "neighbors": REPLACE}
    assert tuple(least_lead(**at, near=near) for near in (1, 10, 1000)) == expected
    for near, lead in zip((1, 10, 1000), expected, strict=True):
        chance = 0.0 if candidates is None else near / candidates
        steps = 0
        while chance < 0.95:
            chance, steps = iterate(chance, 1.0, float(delta)), steps + 1
        assert lead == max(0, 2 * steps - 1)


def iterate(chance, epsilon, delta):
    return min(
        math.exp(epsilon) * chance + delta, 1 - math.exp(-epsilon) * (1 - chance - delta), 1.0
    )


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 4])
@pytest.mark.parametrize("delta", [0, 1e-9, 0.01, 0.4])
@pytest.mark.parametrize("candidates", [2, 3, 100, 10**8, None])
def test_the_closed_form_of_the_limit_is_the_iteration_rounded_up(epsilon, delta, candidates):
    chance = 0.0 if candidates is None else 1 / candidates
    for steps in range(120):
        limit = success_limit(steps, epsilon=epsilon, delta=delta, candidates=candidates)
        assert chance - 1e-15 <= limit <= chance + 2e-12
        chance = iterate(chance, epsilon, delta)


def best_possible(candidates, lead, epsilon, delta, neighbors, top):
    """The best mean success of any mechanism at all on scores 0 … top: a linear program over their
    laws.
    """
    rows = list(product(range(top + 1), repeat=candidates))
    outcomes = candidates + 1  # the last: nothing
    place = {row: outcomes * index for index, row in enumerate(rows)}
    moves = (
        {*product((0, 1), repeat=candidates)}
        if neighbors == ADD_REMOVE
        else {*product((-1, 0, 1), repeat=candidates)}
    )
    events = [event for size in range(1, outcomes) for event in combinations(range(outcomes), size)]
    constraints = []
    for row in rows:
        for move in moves:
            other = tuple(np.add(row, move).tolist())
            if other == row or other not in place:
                continue
            for event in events:
                for here, there in ((row, other), (other, row)):
                    constraint = np.zeros(outcomes * len(rows))
                    constraint[[place[here] + outcome for outcome in event]] = 1
                    constraint[[place[there] + outcome for outcome in event]] = -math.exp(epsilon)
                    constraints.append(constraint)
    totals = np.kron(np.eye(len(rows)), np.ones(outcomes))
    goal = np.zeros(outcomes * len(rows))
    for best in range(candidates):
        row = tuple(lead if who == best else 0 for who in range(candidates))
        goal[place[row] + best] = -1 / candidates
    found = linprog(
        goal, np.array(constraints), np.full(len(constraints), delta), totals, np.ones(len(rows))
    )
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0), (1, 0.02)])
@pytest.mark.parametrize("lead", [1, 2, 3, 4])
def test_with_two_candidates_the_limit_is_what_a_linear_program_attains(
    lead, epsilon, delta, neighbors
):
    best = best_possible(2, lead, epsilon, delta, neighbors, top=4)
    limit = success_limit(lead, epsilon=epsilon, delta=delta, candidates=2, neighbors=neighbors)
    if lead % drift(
        neighbors
    ):  # the last step is half a step, which the limit counts as a whole one
        assert 0.85 * limit < best < limit
    else:
        assert best == pytest.approx(limit)


@pytest.mark.parametrize("delta", [0, 0.02])
def test_with_three_candidates_no_mechanism_exceeds_the_limit(delta):
    best = best_possible(3, 2, 0.5, delta, ADD_REMOVE, top=2)
    limit = success_limit(2, epsilon=0.5, delta=delta, candidates=3)
    assert 0.9 * limit < best <= limit + 1e-9


# Lists


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("k", [1, 2, 10, 1000])
def test_the_gap_test_meets_the_limit_for_sets_at_every_lead(k, neighbors):
    """In an open universe, and nobody does better who may miss all but one of them."""
    at = {"epsilon": "0.7", "delta": "1e-4", "neighbors": neighbors}
    for lead in (1, 2, 5, 8, 13, 20):
        released = GapTest(**at, k=k).expect(Profile([(lead, k)]), k)[1] / k
        for missing in {0, k - 1}:
            limit = success_limit(lead, **at, candidates=None, k=k, missing=missing)
            assert released == pytest.approx(limit, rel=1e-9)


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize(("universe", "k"), [(100, 10), (10**6, 10), (10**6, 100), (10**12, 30)])
def test_without_delta_the_set_margin_needs_two_records_more_than_anybody_must(
    universe, k, neighbors
):
    at = {"epsilon": 1, "neighbors": neighbors}
    lead = SetMargin(**at, k=k).lead(candidates=universe)
    limit = least_lead(**at, candidates=universe, k=k)
    assert limit <= lead <= limit + 2 * drift(neighbors)


LISTS = [
    SetMargin(epsilon=1, k=2),
    SetMargin(epsilon=1, delta="0.01", k=2),
    GapTest(epsilon=1, delta="0.01", k=2),
    SetMargin(epsilon=1, delta="0.01", k=2, neighbors=REPLACE),
]


@pytest.mark.parametrize("mechanism", LISTS, ids=repr)
@pytest.mark.parametrize("near", [2, 3])
@pytest.mark.parametrize("missing", [0, 1])
def test_no_law_of_sets_beats_the_limit(mechanism, near, missing):
    """Two of five, where two or three are tied, and one of them may be missed."""
    for lead in range(1, 14):
        profile = Profile([(lead, near)], universe=5)
        table = mechanism.sets(profile)[None].chances
        succeeds = sum(chance for held, chance in table.items() if held[0] >= 2 - missing)
        price = mechanism.privacy()
        limit = success_limit(
            lead,
            epsilon=price.epsilon,
            delta=price.delta,
            candidates=5,
            k=2,
            near=near,
            missing=missing,
            neighbors=mechanism.neighbors,
        )
        assert succeeds <= limit + 1e-9
        if missing == 0 and near == 2 and price.delta == 0 and lead > 3:
            assert succeeds >= limit - 0.11  # and not by far


def test_the_limit_for_sets_is_beaten_by_what_is_not_private():
    at = {"epsilon": 1, "candidates": 5, "k": 2}
    assert success_limit(3, **at) < 1  # the best two, without noise
    assert success_limit(0, **at) == pytest.approx(1 / 10)
    assert success_limit(0, **at, missing=1) == pytest.approx(7 / 10)
    assert success_limit(0, **at, near=4, missing=0) == pytest.approx(6 / 10)


@pytest.mark.parametrize(("near", "k", "hits"), [(2, 2, 1), (3, 2, 2), (4, 3, 1), (5, 3, 2)])
def test_sets_at_random_are_counted(near, k, hits):
    sets = list(combinations(range(7), k))
    among = sum(len(set(one) & set(range(near))) >= hits for one in sets)
    found = success_limit(0, epsilon=1, candidates=7, k=k, near=near, missing=k - hits)
    assert found == pytest.approx(among / len(sets))


def test_probabilities_beyond_floats_grow_step_by_step():
    """1/C(10^6, 1000) is e^−7900: the logarithm is followed to where floats begin."""
    at = {"epsilon": 1, "candidates": 10**6, "k": 1000}
    log = math.log(math.comb(10**6, 1000))
    lead = least_lead(**at)
    assert log < lead < log + 4
    assert success_limit(lead - 1, **at) < 0.95 <= success_limit(lead, **at)
    assert success_limit(100, **at) < 1e-290
    assert least_lead(**at, delta="1e-6") == 16
    # the same numbers where both ways can be gone
    few = {"epsilon": 1, "candidates": 10**4, "k": 60}
    assert 0 < math.log(math.comb(10**4, 60)) < 600
    assert abs(least_lead(**few) - math.log(math.comb(10**4, 60))) < 4


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"k": 0}, "k"),
        ({"k": 6}, "k"),
        ({"k": 2, "near": 1}, "near"),
        ({"k": 2, "missing": 2}, "missing"),
        ({"k": 2, "missing": -1}, "missing"),
    ],
)
def test_bad_numbers_of_a_list_are_named(options, name):
    with pytest.raises(ParameterError, match=f"^{name}="):
        least_lead(**{"epsilon": 1, "candidates": 5, **options})


# Learning thresholds on a continuum


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_no_mechanism_here_learns_more_often_than_the_limit(neighbors, delta):
    """n examples at one of K thresholds: the counts of correct examples are n there, and those of
    labels that every threshold gets right elsewhere.
    """
    for n, targets in ((5, 100), (20, 10**6), (40, 10**20)):
        limit = learning_limit(epsilon=1, delta=delta, n=n, targets=targets, neighbors=neighbors)
        profile = Profile([(n, 1), (n // 2, targets - 1)], universe=targets)
        for mechanism in (
            Exponential(epsilon=1, neighbors=neighbors),
            PermuteAndFlip(epsilon=1, neighbors=neighbors),
        ):
            assert mechanism.law(profile).blocks[0][2] <= limit


def test_the_limit_of_learning_tends_to_nothing_on_a_continuum():
    found = [learning_limit(epsilon=1, n=1000, targets=2**power) for power in (64, 1500, 5000)]
    assert found[0] == 1
    assert found[1] < 0.01
    assert found[2] == pytest.approx(0, abs=1e-300)
    assert learning_limit(epsilon=1, delta="1e-6", n=1000, targets=2**5000) == 1
    assert learning_limit(epsilon=1, n=3, targets=1) == 1


def test_the_limit_of_learning_against_its_formula():
    for n, targets, delta in ((3, 50, Fraction(1, 1000)), (2, 9, Fraction(0))):
        stay = math.exp(-n)
        slip = float(delta) * (1 - stay) / (math.e - 1)
        exact = (1 + (targets - 1) * slip) / (1 + (targets - 1) * stay)
        found = learning_limit(epsilon=1, delta=delta, n=n, targets=targets)
        assert min(1, exact) <= found <= min(1, exact) * 1.06
