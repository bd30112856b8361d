"""Keys: the noise of rounds, where thresholds are, and exact laws of neighbors, both ways.

Nothing here knows how the budget is divided among rounds, or what is bought in the last one: what
is proved holds for all of that. Each audit is seen to refuse mutants.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, product
from pathlib import Path

import numpy as np
import pytest
from flint import arb
from scipy.optimize import linprog
from scipy.stats import norm

from privmax import GapTest, ParameterError
from privmax.keyset import procedure, rounds
from privmax.keyset.budget import find_noise, find_threshold
from privmax.keyset.procedure import KeySearch
from privmax.keyset.rounds import KeyRounds, Round
from privmax.noise import bulk
from privmax.noise.balls import ball, precision
from privmax.noise.samplers import Uniform
from privmax.one_key_each import OneKeyEach
from privmax.testers.bounds import least_chance
from privmax.testers.search import check_privacy
from privmax.testing import OutOfCoinsError, ScriptedCoins, SeededCoins, walk

sys.path.append(str(Path(__file__).parent))

from key_ballots import (
    ONE,
    Ballots,
    Cells,
    excess,
    explore,
    product_law,
    tail,
)


def subsets(keys):
    return [set(one) for one in chain(*(combinations(keys, size) for size in range(len(keys) + 1)))]


# Rounded Gaussians


class Thrifty:
    """A byte of which one bit counts costs one coin."""

    def __init__(self, coins):
        self.coins = coins

    def bits(self, n):
        return self.coins.bits(n)

    def bytes(self, n):
        assert n == 1
        return bytes([self.coins.bits(1) << 7])


TABLE = [-2, -1, -1, 0, 0, 0, 1, 3]
"""What stands for a discrete Gaussian: any law of whole numbers, with three coins."""


def kept_chance(start, variance):
    """The mean of e^(−u(2·start + u)/(2·variance)) over u from 0 to 1."""
    sigma = math.sqrt(variance)
    area = norm.sf(start / sigma) - norm.sf((start + 1) / sigma)
    return area * sigma * math.sqrt(2 * math.pi) * math.exp(start**2 / (2 * variance))


def toss_by_bits(starts, variance, coins):
    """The coins of cells without a shortcut: no bit of any is known before."""
    kept = [bulk._is_kept(int(start), variance, Uniform(coins), coins) for start in starts]
    return np.array(kept, np.bool_)


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(5, 2)])
@pytest.mark.parametrize("start", [0, 2])
def test_every_script_of_the_coin_of_a_cell(start, variance):
    chance = kept_chance(start, float(variance))
    found, left = walk(lambda coins: bulk._is_kept(start, variance, Uniform(coins), coins), 13)
    assert left < 0.05
    assert found[True] <= chance <= found[True] + left
    assert found[False] <= 1 - chance <= found[False] + left


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(5, 2)])
def test_every_script_of_a_rounded_gaussian(variance, monkeypatch):
    """A whole number j of any law, a side and a coin give the cell from j on, away from 0.

    With e^(−j²/2v) as that law, which is walked in test_walks.py, the cells have the chances of the
    normal distribution.
    """
    monkeypatch.setattr(
        bulk, "discrete_gaussian", lambda v, size, coins: np.array([TABLE[coins.bits(3)]])
    )
    monkeypatch.setattr(bulk, "_stays_within_cell", toss_by_bits)
    law = Counter()
    for j in TABLE:
        chance = kept_chance(abs(j), float(variance)) / len(TABLE) / 2
        if j >= 0:
            law[j] += chance
        if j <= 0:
            law[j - 1] += chance

    class Rejected(Exception):
        pass

    def draw(coins):
        """One round; a second begins with three coins that are not there."""
        first = [True]

        def once(v, size, coins):
            if not first:
                raise Rejected
            return np.array([TABLE[coins.bits(first.pop() and 3)]])

        monkeypatch.setattr(bulk, "discrete_gaussian", once)
        try:
            return int(bulk.rounded_gaussian(variance, 1, Thrifty(coins))[0])
        except Rejected:
            return None

    found, left = walk(draw, 12)
    assert left < 0.15
    for cell, chance in law.items():
        assert found[cell] <= chance <= found[cell] + left
    assert found.keys() <= {*law, None}


def test_the_weights_of_cells_are_those_of_the_normal_distribution():
    for variance in (1 / 3, 5 / 2, 40.0):
        sigma = math.sqrt(variance)
        weights = [math.exp(-j * j / 2 / variance) * kept_chance(j, variance) for j in range(9)]
        cells = [norm.sf(j / sigma) - norm.sf((j + 1) / sigma) for j in range(9)]
        assert np.allclose(np.array(weights) / sum(weights), np.array(cells) / sum(cells))


@pytest.mark.parametrize("variance", [Fraction(5), Fraction(10**6, 7), Fraction(2**80, 3)])
def test_the_shortcut_keeps_only_what_is_kept_for_certain(variance):
    """Words about the limit of the shortcut: where it says yes, no further bit could say no."""
    sigma = math.isqrt(int(variance))
    decided = 0
    for start in (0, 1, sigma // 7, sigma, 3 * sigma):
        limit = int(2**64 * (1 - Fraction(2 * start + 1) / (2 * variance)))
        near = [limit + sign * (1 << power) for power in range(0, 60, 3) for sign in (-1, 1)]
        for word in (word for word in [0, *near, 2**64 - 1] if 0 <= word < 2**64):
            coins = ScriptedCoins(int.from_bytes(np.uint64(word).tobytes(), "big"), 64)
            try:
                [kept] = bulk._stays_within_cell(np.array([start]), variance, coins)
            except OutOfCoinsError:  # the first bits leave it open
                continue
            decided += 1
            with precision(300):
                ratio = (-ball(Fraction(2 * start + 1) / (2 * variance))).exp()
                end = ball(Fraction(word + 1, 2**64))
                assert kept == bool(end <= ratio) or ball(Fraction(word, 2**64)) >= 1 - ratio
                assert not kept or end <= ratio
    assert decided > 20


def test_variances_that_would_reject_nearly_everything_are_refused():
    with pytest.raises(ParameterError, match="at least"):
        bulk.rounded_gaussian(Fraction(1, 10**5), 1, SeededCoins("small"))


# Noise and thresholds


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.1", "1e-3"), ("5", "0.2")])
def test_noise_keeps_the_cost_and_is_not_wasteful(epsilon, delta):
    delta, epsilon = Fraction(delta), float(epsilon)
    sigma = float(find_noise(Fraction(epsilon), delta, delta / 2))

    def spent(sigma):
        shifted = epsilon + math.log1p(-float(delta) / 2)
        gaussian = norm.cdf(0.5 / sigma - shifted * sigma) - math.exp(shifted) * norm.cdf(
            -0.5 / sigma - shifted * sigma
        )
        return gaussian + float(delta) / 2

    assert spent(sigma) <= float(delta) * (1 + 1e-9)
    assert spent(sigma * 0.99) > float(delta)


def most_that_passes(threshold, sigma, most):
    """A linear program: how many keys to give which weight, in fractions of keys."""
    weights = np.linspace(0, 1, 801)
    chances = norm.sf((threshold - weights) / sigma)
    scale = chances[-1]
    found = linprog(
        -chances / scale, A_ub=[np.ones_like(weights), weights**2], b_ub=[most, 1], bounds=(0, None)
    )
    assert found.status == 0
    return -found.fun * scale


def pass_equally(threshold, sigma, most):
    return max(size * norm.sf((threshold - size**-0.5) / sigma) for size in range(1, most + 1))


CASES = [
    (Fraction(1, 4), "0.01", 5), (Fraction(2), "0.1", 2), (Fraction(9), "1e-3", 30),
    (Fraction(30), "1e-7", 1), (Fraction(400), "1e-9", 100), (Fraction(1, 50), "1e-6", 12),
]  # fmt: skip


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize(("variance", "delta", "most"), CASES)
def test_thresholds_against_another_optimizer(variance, delta, most, equal):
    threshold = find_threshold(variance, Fraction(delta), most, equal=equal) / ONE
    bound = pass_equally if equal else most_that_passes
    sigma, allowed = math.sqrt(variance), float(Fraction(delta))
    assert bound(threshold, sigma, most) <= allowed
    assert bound(threshold - 0.05 * sigma, sigma, most) > allowed


@pytest.mark.parametrize(("variance", "delta", "most"), CASES)
def test_no_weights_pass_more_often_than_a_threshold_allows(variance, delta, most):
    threshold = find_threshold(variance, Fraction(delta), most, equal=False) / ONE
    sigma, rng = math.sqrt(variance), np.random.default_rng(most)
    for spread in (0.01, 0.1, 1, 10, 1000):
        squares = rng.dirichlet(np.full(most, spread), 500)
        chances = norm.sf((threshold - np.sqrt(squares)) / sigma).sum(axis=1)
        assert chances.max() <= float(Fraction(delta))


def test_a_threshold_for_one_key_does_not_serve_several():
    """The mutant: the threshold without the envelope, which ignores how many keys count."""
    for variance, delta, most in CASES:
        if most > 1 and variance > 1:  # with less noise one key of weight 1 is the worst
            threshold = find_threshold(variance, Fraction(delta), 1, equal=False) / ONE
            assert most_that_passes(threshold, math.sqrt(variance), most) > float(Fraction(delta))


@pytest.mark.parametrize("per_user", [1, 2, 30])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.5", "0.1")])
def test_all_rounds_together_keep_to_their_parts(epsilon, delta, per_user, monkeypatch):
    """Of one over the variance, and of delta, whatever the parts are."""
    variances = []
    monkeypatch.setattr(
        rounds, "_add_noise", lambda totals, variance, coins: variances.append(variance) or totals
    )

    def spent(search):
        variances.clear()
        search.draw(Ballots({"u": "ab"}), 2, None)
        return _spent(search, sum(ONE**2 / variance for variance in variances))

    assert spent(make_rounds(epsilon, delta, per_user)) <= float(delta)
    assert spent(make_rounds(epsilon, delta, per_user, WholeBudget)) > float(delta)
    if per_user == 30:
        assert spent(make_rounds(epsilon, delta, per_user, NoEnvelope)) > float(delta)


def _spent(search, budget):
    """The delta of all rounds, by the theorem, with another bound on what passes."""
    per_user, budget = search.per_user, float(budget)
    passing = most_that_passes(
        search.last.threshold / ONE, math.sqrt(search.last.variance) / ONE, per_user
    ) + sum(
        pass_equally(look.threshold / ONE, math.sqrt(look.variance) / ONE, per_user)
        for look in search.looks
    )
    sigma, shifted = budget**-0.5, float(search.epsilon) + math.log1p(-passing)
    gaussian = norm.cdf(0.5 / sigma - shifted * sigma) - math.exp(shifted) * norm.cdf(
        -0.5 / sigma - shifted * sigma
    )
    return gaussian + passing


# One round, exactly


def one_round(holdings, copies, sigma, threshold, per_user):
    """The law of the set of keys that one round of equal weights releases."""
    ballots = Ballots(holdings, copies=copies)
    totals = ballots.give(per_user, 0)
    return product_law(
        {
            key: tail(threshold - total, sigma * ONE)
            for key, total in zip(ballots.labels, totals.tolist(), strict=True)
            if total > 0
        }
    )


def audit_one_round(epsilon, delta, per_user, *, wider=1.0, envelope=True):
    """The largest delta that small neighbors need, both ways."""
    delta = Fraction(delta)
    sigma = find_noise(Fraction(epsilon), delta, delta / 2)
    threshold = find_threshold(sigma**2, delta / 2, per_user if envelope else 1, equal=True)
    law = lambda holdings, copies: one_round(  # noqa: E731
        holdings, copies, float(sigma) * wider, threshold, per_user
    )
    worst = 0.0
    many = [
        1,
        round(threshold / ONE / 2),
        *range(int(threshold / ONE) - 1, int(threshold / ONE) + 3),
    ]
    base = [({}, {})]
    base += [({"u": keys}, {"u": n}) for keys in subsets("ab")[1:] for n in many]
    base += [({"u": {"a"}, "w": {"a", "c"}}, {"u": n}) for n in many]
    for holdings, copies in base:
        before = law(holdings, copies)
        for keys in [*subsets("abc")[1:], {f"own {n}" for n in range(per_user)}]:
            after = law({**holdings, "v": keys}, copies)
            worst = max(worst, excess(before, after, epsilon), excess(after, before, epsilon))
    return worst


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, "0.05"), (0.5, "0.1"), (2.0, "1e-4")])
@pytest.mark.parametrize("per_user", [1, 2, 6])
def test_one_round_stays_within_its_cost(epsilon, delta, per_user):
    worst = audit_one_round(epsilon, delta, per_user)
    assert 0.3 * float(delta) < worst <= float(delta)


@pytest.mark.parametrize("mutant", [{"wider": 0.7}, {"envelope": False}], ids=["noise", "envelope"])
def test_one_round_mutants(mutant):
    assert audit_one_round(1.0, "1e-3", 6, **mutant) > 1e-3


# One key each


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1, "0.01"), (0.3, "0.25"), (2, "1e-6"), (1, "0.5")]
)
def test_one_key_each_stays_within_its_cost(epsilon, delta):
    test = GapTest(epsilon=epsilon, delta=delta)
    certain = test.certain()
    chances = [float(test.chance(n).mid()) for n in range(certain + 3)]

    def law(counts):
        return product_law({key: chances[n] for key, n in counts.items() if n})

    worst = 0.0
    for first, second in product({0, 1, 2, certain // 2, certain - 1, certain}, repeat=2):
        before, after = law({"a": first, "b": second}), law({"a": first + 1, "b": second})
        worst = max(worst, excess(before, after, epsilon), excess(after, before, epsilon))
    assert 0.99 * float(Fraction(delta)) < worst <= float(Fraction(delta)) + 1e-12


class Counts:
    def __init__(self, *counts):
        self.counts = np.array(counts)

    def count_chosen(self, most):
        assert most == 1
        return self.counts


@pytest.mark.parametrize("delta", ["1e-6", "0.25", "0.5", str(2.0**-20)])
def test_one_key_each_draws_its_chances(delta):
    """Delta may be a short binary fraction, and the largest chance below the last is often 1."""
    rule = OneKeyEach(epsilon=1, delta=delta)
    draws = 4000
    for count in {1, 2, rule.test.certain() // 2, *range(rule.test.certain() - 3, 40)}:
        if count < 1:
            continue
        chance = float(rule.test.chance(count).mid())
        released = rule.draw(Counts(*[count] * draws), SeededCoins(f"{delta} {count}")).size
        assert abs(released - draws * chance) <= 5 * math.sqrt(draws * chance * (1 - chance)) + 1
    assert rule.draw(Counts(0, 0), SeededCoins("none")).size == 0


@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(1, 4), Fraction(0), Fraction(1)])
def test_coins_of_any_bias(chance):
    """Words next to the chance are decided by the first 64 bits, and by more only if they must."""

    def inexactly():
        return (ball(chance) * arb.pi()) / arb.pi()

    word = int(chance * 2**64)
    for exact in (inexactly, lambda: ball(chance)):
        for offset in (-5, -2, 2, 5):
            if 0 <= word + offset < 2**64:
                coins = ScriptedCoins(int.from_bytes(np.uint64(word + offset).tobytes(), "big"), 64)
                assert bulk.bernoulli_real(exact, 1, coins)[0] == (offset < 0)
    heads = bulk.bernoulli_real(inexactly, 3000, SeededCoins("any")).sum()
    assert abs(heads - 3000 * chance) <= 130
    if chance in (0, 1):
        assert heads == 3000 * chance


# Several rounds, exactly, with noise in cells


@pytest.fixture
def cells(monkeypatch):
    made = Cells()
    monkeypatch.setattr(rounds, "_add_noise", lambda *given: made.add_noise(*given))
    return made


def compare(search, holdings, keys, copies, cells, *, make=Ballots):
    """The delta that one individual more needs, and the delta that one less does.

    Compared are the noisy totals of the keys of others, in cells, and what is released: more than
    is told, and the theorem covers it.
    """
    chosen = search if callable(search) else lambda ballots: search
    common = set().union(*holdings.values()) if holdings else set()
    laws = []
    for more in ({}, {"v": keys}):
        ballots = make({**holdings, **more}, copies=copies)
        asked = chosen(ballots)
        laws.append(explore(asked, ballots, cells, common))
        assert math.fsum(laws[-1].values()) == pytest.approx(1)
    epsilon = float(asked.epsilon)  # of both
    return excess(laws[1], laws[0], epsilon), excess(laws[0], laws[1], epsilon)


class WholeBudget(KeyRounds):
    """Every round has nearly the noise that all of them may have together."""

    def _variance(self, share):
        return super()._variance(1 - share / 1000)


class NoEnvelope(KeyRounds):
    """Thresholds for individuals with one key."""

    @cached_property
    def looks(self):
        alone = KeyRounds(epsilon=self.epsilon, delta=self.delta, per_user=1, slots=1).looks
        return tuple(
            Round(one.variance, other.threshold)
            for one, other in zip(super().looks, alone, strict=True)
        )

    @cached_property
    def last(self):
        alone = KeyRounds(epsilon=self.epsilon, delta=self.delta, per_user=1, slots=1).last
        return Round(super().last.variance, alone.threshold)


def make_rounds(epsilon, delta, per_user, kind=KeyRounds):
    return kind(epsilon=epsilon, delta=delta, per_user=per_user, slots=per_user)


COPIES = [1, 3, 6, 9]


@pytest.mark.parametrize(("epsilon", "delta", "per_user"), [("1", "0.05", 1), ("0.5", "0.1", 2)])
def test_rounds_stay_within_their_cost(epsilon, delta, per_user, cells):
    search = make_rounds(epsilon, delta, per_user)
    worst = [
        *compare(search, {}, "ab", {}, cells),
        *compare(search, {"u": "ab"}, "ab", {"u": 3}, cells),
        *compare(search, {"u": "a"}, "ab", {"u": 6}, cells),
        *chain(*(compare(search, {"u": "a"}, "a", {"u": n}, cells) for n in COPIES)),
    ]
    assert 0.01 * float(delta) < max(worst) <= float(delta)


@pytest.mark.slow
@pytest.mark.parametrize("per_user", [1, 2, 3])
def test_rounds_stay_within_their_cost_on_more_neighbors(per_user, cells):
    search = make_rounds(1, "0.05", per_user)
    cells.cuts = (1.0,)
    for held in (("a", "ab"), ("ab", "ab")):
        for keys in ("a", "ab", "abc"):
            for copies in ((1, 4), (4, 1)):
                holdings = dict(zip("uw", held, strict=True))
                counts = dict(zip("uw", copies, strict=True))
                assert max(compare(search, holdings, keys, counts, cells)) <= 0.05


def test_budgets_of_rounds_that_do_not_add_up_are_refused(cells):
    search = make_rounds(1, "0.05", 2)
    mutant = make_rounds(1, "0.05", 2, WholeBudget)
    given = [({"u": "a"}, "a", {"u": n}, cells) for n in COPIES]
    assert max(max(compare(search, *one)) for one in given) <= 0.05
    assert max(max(compare(mutant, *one)) for one in given) > 0.05


class Popular(Ballots):
    """Individuals count for the key that most others have."""

    def __init__(self, holdings, *, copies=None):
        super().__init__(holdings, copies=copies, coin=lambda user, key, turn: -self.having[key])
        self.having = Counter()
        for user, keys in self.holdings.items():
            self.having.update(dict.fromkeys(keys, self.copies[user]))


def test_weights_that_look_at_keys_of_others_are_refused(cells):
    search = make_rounds(1, "0.05", 1)
    given = search, {"u": "ab"}, "b", {"u": 6}, cells
    assert max(compare(*given)) <= 0.05
    assert max(compare(*given, make=Popular)) > 0.05


def test_a_bound_per_user_that_the_data_chooses_is_refused(cells):
    def chosen(ballots):
        least = min(map(len, ballots.holdings.values()))
        return make_rounds(1, "0.05", least)

    given = {"u": "ab"}, "a", {"u": 6}, cells
    assert max(compare(chosen, *given)) > 0.05
    assert max(compare(make_rounds(1, "0.05", 2), *given)) <= 0.05


def test_noise_left_out_where_totals_are_zero_is_refused(cells, monkeypatch):
    search = make_rounds(1, "0.05", 1)
    given = search, {"u": "ab"}, "b", {"u": 6}, cells
    assert max(compare(*given)) <= 0.05
    drawn = cells.draw
    monkeypatch.setattr(cells, "draw", lambda total, *rest: drawn(total, *rest) if total else 0)
    assert max(compare(*given)) > 0.05


# Keys to which nobody gives anything


class GivesAll(Ballots):
    """A mutant: one step more for every key that somebody has, so that all have been given some."""

    def give(self, *given):
        return super().give(*given) + 1


def released_alone(make, draws=20):
    """How often one individual alone with many keys is found, and of how many draws."""
    search = make_rounds(1, "0.01", 2)
    ballots = make({"v": range(800)}, coin=lambda user, key, turn: key)
    coins = SeededCoins("alone")
    hits = sum(bool(search.draw(ballots, ballots.number, coins).size) for _ in range(draws))
    return hits, draws


def test_an_individual_with_any_number_of_keys_stays_hidden():
    """Without it there are no keys at all: whatever is released of its own costs delta."""
    hits, draws = released_alone(Ballots)
    assert least_chance(hits, draws, 1e-6) <= 0.01
    hits, draws = released_alone(GivesAll)
    assert least_chance(hits, draws, 1e-6) > 0.01


# The whole search


def test_the_look_and_the_rest_cost_epsilon(monkeypatch):
    """One individual moves one of the counts of the look, so the largest cost of one is that."""
    scales = []
    monkeypatch.setattr(
        procedure, "discrete_laplace", lambda scale, coins: scales.append(scale) or 0
    )
    search = KeySearch(epsilon="0.7", delta="0.01", per_user=3)
    for holdings in ({}, {"u": "abc"}, {"u": "a", "w": "b"}):
        scales.clear()
        search.draw(Ballots(holdings), SeededCoins("look"))
        assert scales
        for rest in (search.rounds(3), search.single):
            assert max(1 / scale for scale in scales) + rest.epsilon == search.epsilon
            assert rest.delta == search.delta


@pytest.mark.parametrize("per_user", [1, 2, 3, 9])
def test_one_individual_moves_one_count_of_the_look(per_user, monkeypatch):
    """Bins are disjoint and hold every number of keys: what they count is seen without noise."""
    search = KeySearch(epsilon=1, delta="0.01", per_user=per_user)
    seen = []

    class Silence:
        """Noise that notes what it is added to."""

        def __radd__(self, number):
            seen.append(number)
            return number

    monkeypatch.setattr(procedure, "discrete_laplace", lambda scale, coins: Silence())

    def bins(holdings):
        seen.clear()
        search.look(Ballots(holdings), None)
        return np.array(seen)

    holdings = {"u": "ab", "w": "c"}
    for keys in subsets("abcde"):
        moved = bins({**holdings, "v": keys}) - bins(holdings)
        assert moved.sum() == bool(keys)
        assert (moved >= 0).all()


def look(tally, *noise, monkeypatch, per_user=30):
    """What follows from a tally with this noise, which has a scale of 100."""
    drawn = iter(noise)
    monkeypatch.setattr(procedure, "discrete_laplace", lambda scale, coins: next(drawn))

    class Tally:
        def tally(self, most):
            return [tally.get(number, 0) for number in range(1, most + 1)]

    return KeySearch(epsilon=1, delta="1e-6", per_user=per_user).look(Tally(), None)


def test_noise_on_many_keys_does_not_outweigh_individuals_with_one(monkeypatch):
    """Noise of 2.4 scales on the count of 17 to 30 keys would weigh as much as everyone else."""
    people, root, slots = look({1: 700}, 0, 100, -150, 0, 0, 240, monkeypatch=monkeypatch)
    assert (people, root, slots) == (890, 1, procedure.LEAST_SLOTS)
    assert root < procedure.ENOUGH


def test_noise_below_zero_does_not_hide_individuals_with_many_keys(monkeypatch):
    people, root, slots = look({1: 300, 7: 900}, 0, 0, 0, 0, -240, -240, monkeypatch=monkeypatch)
    assert people == 720
    assert root > procedure.ENOUGH
    assert slots == 6  # the root of the mean of 1 (of 300) and 6.5² (of 900), rounded up


def test_where_no_count_is_clear_individuals_are_taken_for_usual_ones(monkeypatch):
    people, root, slots = look({5: 200}, 240, 0, -90, 0, 0, 90, monkeypatch=monkeypatch)
    assert (people, slots) == (440, procedure.USUAL)
    assert root > procedure.ENOUGH
    assert look({}, 0, 0, 0, monkeypatch=monkeypatch, per_user=4)[2] == 4


def test_answers_to_the_question_move_by_a_norm_of_one_at_most():
    holdings = {"u": "ab", "w": "c"}
    low = {"a": True, "b": False, "c": True, "d": True}
    for keys in subsets("abcd"):
        before, after = Ballots(holdings), Ballots({**holdings, "v": keys})
        answers = [
            np.array(one.survey(np.array([low[key] for key in one.labels])))
            for one in (before, after)
        ]
        assert ((answers[1] - answers[0]) ** 2).sum() <= ONE**2


@pytest.mark.parametrize("per_user", [1, 2, 3])
def test_counts_of_released_keys_move_by_one_each_and_few_of_them(per_user):
    """With the count of the others among them, which moves only if none of the keys do."""
    holdings = {"u": "abd", "w": "c", "x": "bd"}
    before = Ballots(holdings)
    for released in subsets("abcd"):
        counts, others = before.count(
            [before.labels.index(key) for key in sorted(released)], per_user
        )
        for keys in subsets("abcde"):
            after = Ballots({**holdings, "v": keys})
            numbers = [after.labels.index(key) for key in sorted(released)]
            more, more_others = after.count(numbers, per_user)
            moved = [*(more - counts).tolist(), more_others - others]
            assert set(moved) <= {0, 1}
            assert sum(moved) <= per_user


# Larger ones, by the tester


def crowd(people, *, seed, extra=()):
    rng = np.random.default_rng(seed)
    held = {f"u{n}": set(rng.choice(list("abcdefgh"), rng.integers(1, 5))) for n in range(people)}
    return {**held, **dict(extra)}


def run_rounds(search, make=Ballots):
    """Runs with real noise: what is released, as a sorted tuple."""

    def run(holdings, seed):
        ballots = make(holdings)
        return tuple(ballots.name(search.draw(ballots, ballots.number, SeededCoins(str(seed)))))

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys", [{"a"}, {"a", "b", "c", "d"}, {"x"}, {"x", "y", "z", "a"}], ids=sorted
)
def test_rounds_with_real_noise_keep_their_cost(keys):
    search = make_rounds(1, "0.05", 3)
    pair = crowd(30, seed=1), crowd(30, seed=1, extra=[("v", keys)])
    for left, right in (pair, pair[::-1]):
        found = check_privacy(
            run_rounds(search), left, right, epsilon=1, delta="0.05", samples=1500,
            coins=SeededCoins("pairs"),
        )  # fmt: skip
        assert not found.broken


# Mutants that the tester finds, which knows no law


class LowThresholds(KeyRounds):
    """Thresholds that are a fifth too low."""

    @cached_property
    def looks(self):
        return tuple(Round(one.variance, one.threshold * 4 // 5) for one in super().looks)

    @cached_property
    def last(self):
        return Round(super().last.variance, super().last.threshold * 4 // 5)


class WholeDelta(KeyRounds):
    """Parts of delta that do not add up: in every round all of it may pass."""

    @cached_property
    def looks(self):
        return tuple(
            Round(one.variance, self._find(one.variance, self.per_user, True))
            for one in super().looks
        )

    @cached_property
    def last(self):
        variance = super().last.variance
        return Round(variance, self._find(variance, self.slots, False))

    def _find(self, variance, most, equal):
        return find_threshold(variance / ONE**2, self.delta, most, equal=equal)


def choose_bound(ballots):
    """As many keys count as the individual with the fewest has."""
    return make_rounds(1, "0.05", min(map(len, ballots.holdings.values())))


def check_by_running(search, pair, *, copies=None, make=Ballots, see=tuple, samples=1500):
    """What the tester finds of real draws on two data sets; `see` is what it sees of a release."""
    chosen = search if callable(search) else lambda ballots: search

    def run(holdings, seed):
        many = {user: number for user, number in (copies or {}).items() if user in holdings}
        ballots = make(holdings, copies=many)
        found = chosen(ballots).draw(ballots, ballots.number, SeededCoins(str(seed)))
        return see(ballots.name(found))

    left, right = pair
    return check_privacy(
        run, left, right, epsilon=1, delta="0.05", samples=samples, coins=SeededCoins("pairs")
    )


ALONE = {}, {"v": range(300)}
ONE_KEY = {}, {"v": "x"}
TWO_KEYS = {"u": "ab"}, {"u": "ab", "v": "b"}
FEWER_KEYS = {"u": "abcd"}, {"u": "abcd", "v": "a"}

FOUND = {
    "no envelope": (make_rounds(1, "0.05", 300, NoEnvelope), ALONE, {"see": len}),
    "low thresholds": (make_rounds(1, "0.05", 300, LowThresholds), ALONE, {"see": len}),
    "whole delta": (make_rounds(1, "0.05", 1, WholeDelta), ONE_KEY, {"samples": 4000}),
    "nothing given": (
        make_rounds(1, "0.05", 2), ALONE, {"make": GivesAll, "see": len, "samples": 2000},
    ),
    "keys of others": (
        make_rounds(1, "0.05", 1), TWO_KEYS, {"make": Popular, "copies": {"u": 6}, "samples": 2000},
    ),
    "bound of the data": (choose_bound, FEWER_KEYS, {"copies": {"u": 20}}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("search", "pair", "options"), FOUND.values(), ids=FOUND)
def test_the_tester_finds_what_is_wrong(search, pair, options):
    assert check_by_running(search, pair, **options).broken


RIGHT = {
    "alone": (300, ALONE, {"see": len}),
    "one key": (1, ONE_KEY, {}),
    "keys of others": (1, TWO_KEYS, {"copies": {"u": 6}}),
    "bound of the data": (4, FEWER_KEYS, {"copies": {"u": 20}}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("per_user", "pair", "options"), RIGHT.values(), ids=RIGHT)
def test_the_tester_finds_nothing_where_all_is_right(per_user, pair, options):
    assert not check_by_running(make_rounds(1, "0.05", per_user), pair, **options).broken
