"""The published methods for itemsets: whole runs on neighbouring rows with the same releases, laws,
walks, mutants.

*Transcripts.* Each method touches the rows only through `noisy` (counts with discrete Laplace
noise) and `strongest` (draws by weight). Here both are replaced by ones that release a script, the
same for a data set and its neighbour, and that write down what they were asked about. Then both
runs must ask the same questions in the same order, and the privacy loss of the whole transcript can
be added up: |change of the counts| · ε/sensitivity for noise, the ratio of probabilities for draws.
It may never exceed the price.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest

from privmax.itemsets.baskets import Baskets
from privmax.itemsets.published import (
    BLST10,
    BLST10Laplace,
    DiffPart,
    PrefixTree,
    PrivBasis,
    Problem,
    SmartTrunc,
    arrivals,
    blst10,
    diff_part,
    prefix_tree,
    priv_basis,
    records,
    smart_trunc,
    synthetic,
)
from privmax.noise.race import LAPLACE, race_law
from privmax.privacy import Privacy
from privmax.testing import SeededCoins, walk

pytestmark = pytest.mark.slow

ITEMS = 5
EPSILON = Fraction(1)


class Counted:
    """Every itemset by brute force: what a Miner answers."""

    def __init__(self, rows, items, sizes):
        self._support = Counter()
        for size in range(sizes.start, min(sizes.stop, items + 1)):
            for itemset in combinations(range(items), size):
                self._support[itemset] = sum(set(itemset) <= set(row) for row in rows)

    def best(self):
        return max(self._support.values(), default=0)

    def histogram(self, above):
        assert above >= 0
        return sorted(Counter(s for s in self._support.values() if s > above).items(), reverse=True)

    def above(self, support):
        found = sorted((-s, len(one), one) for one, s in self._support.items() if s > support)
        width = max((size for _, size, _ in found), default=1)
        padded = np.full((len(found), width), -1, np.int32)
        for place, (_, size, one) in enumerate(found):
            padded[place, :size] = one
        return padded, np.array([-s for s, _, _ in found], np.int64)

    def at(self, support):
        itemsets, supports = self.above(support - 1)
        return itemsets[supports == support]


def problem(rows, items=ITEMS, sizes=range(1, 4), k=3):
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    private = Baskets(
        offsets, np.array([code for row in rows for code in row], np.int32), range(items)
    )
    return Problem(lambda wanted: Counted(rows, items, wanted), private, sizes, k)


class Transcript:
    """Releases a script and writes down the questions."""

    def __init__(self, seed, levels):
        self._seed, self._levels = seed, levels
        self.asked = []

    def noisy(self, counts, sensitivity, epsilon, coins):
        randomly = random.Random(f"{self._seed}/{len(self.asked)}")
        self.asked.append(("noise", counts.copy(), Fraction(epsilon) / sensitivity))
        return np.array([randomly.choice(self._levels) for _ in range(counts.size)], np.int64)

    def strongest(self, scores, k, rate, coins):
        chosen = random.Random(f"{self._seed}/{len(self.asked)}").sample(range(scores.size), k)
        self.asked.append(("draws", scores.copy(), rate, tuple(chosen)))
        return chosen


def run(monkeypatch, method, asked, seed, levels):
    """The questions of one run, every release scripted."""
    script = Transcript(seed, levels)
    with monkeypatch.context() as patched:
        for module in (priv_basis, smart_trunc, diff_part, prefix_tree, blst10):
            patched.setattr(module, "add_noise", script.noisy)
        patched.setattr(priv_basis, "draw_strongest", script.strongest)
        patched.setattr(prefix_tree, "find_frequent", released_rows)
        patched.setattr(diff_part, "find_frequent", released_rows)
        method.draw(asked, SeededCoins(seed))
    return script.asked


def released_rows(copies, items, sizes, k):
    """`frequent` by brute force."""
    support = Counter()
    for row, number in copies.items():
        for size in range(sizes.start, min(sizes.stop, len(row) + 1)):
            for itemset in combinations(row, size):
                support[itemset] += number
    ordered = sorted(support, key=lambda one: (-support[one], len(one), one))
    return [synthetic.Found(one, support[one]) for one in ordered[:k]]


def log_chance(scores, rate, chosen):
    """ln of the probability of drawing `chosen` one after the other with weight e^(rate·score)."""
    left = np.asarray(scores, float) * float(rate)
    total = 0.0
    for place in chosen:
        top = left.max()
        total += left[place] - top - math.log(np.exp(left - top).sum())
        left[place] = -np.inf
    return total


def loss(one, other):
    """The privacy loss of a transcript: none of its releases tells more about which of two data
    sets it was.
    """
    assert len(one) == len(other)
    noise, draws = Fraction(0), 0.0
    for left, right in zip(one, other, strict=True):
        assert left[0] == right[0]
        assert left[1].shape == right[1].shape
        assert left[2:] == right[2:]
        if left[0] == "noise":
            noise += int(np.abs(left[1] - right[1]).sum()) * left[2]
        else:
            draws += log_chance(left[1], left[2], left[3]) - log_chance(
                right[1], right[2], right[3]
            )
    return float(noise) + abs(draws)


def every_row(items):
    return [row for size in range(items + 1) for row in combinations(range(items), size)]


def worst(monkeypatch, method, *, levels, rounds=6, sizes=range(1, 4), k=3, items=ITEMS):
    """The largest loss over scripts, small data sets, and every row that may be added to them."""
    largest = 0.0
    for seed in range(rounds):
        randomly = random.Random(seed)
        rows = [
            tuple(sorted(randomly.sample(range(items), randomly.randint(0, items))))
            for _ in range(randomly.randint(0, 5))
        ]
        before = run(monkeypatch, method, problem(rows, items, sizes, k), seed, levels)
        for row in every_row(items):
            after = run(monkeypatch, method, problem([*rows, row], items, sizes, k), seed, levels)
            largest = max(largest, loss(before, after))
    return largest


SMALL, WIDE = (-2, 0, 3, 9), (-50, 0, 10**4, 2 * 10**4)
"""Numbers a script releases: thresholds of the partitions are only reached by large ones."""


@pytest.fixture
def small_bases(monkeypatch):
    """Bases of two items, so that five items need pairs and several bases."""
    monkeypatch.setattr(priv_basis, "LARGEST_BASIS", 2)


CASES = {
    "one basis": (PrivBasis(epsilon=EPSILON), SMALL),
    "truncation": (SmartTrunc(epsilon=EPSILON, longest=6, levels=3), SMALL),
    "truncation to one item": (SmartTrunc(epsilon=EPSILON, longest=1, levels=2), SMALL),
    "partition": (DiffPart(epsilon=EPSILON, fan_out=2, most=12), WIDE),
    "wide partition": (DiffPart(epsilon=EPSILON, fan_out=5), WIDE),
    "tree": (PrefixTree(epsilon=EPSILON, depth=2, most=6, touched=2), WIDE),
    "deep tree": (PrefixTree(epsilon=EPSILON, depth=4, most=8, touched=1), WIDE),
}


@pytest.mark.slow
@pytest.mark.parametrize(("method", "levels"), CASES.values(), ids=CASES.keys())
def test_no_transcript_loses_more_than_the_price(method, levels, monkeypatch):
    assert method.privacy() == Privacy(EPSILON)
    found = worst(monkeypatch, method, levels=levels)
    assert 0.5 < found <= 1 + 1e-9


@pytest.mark.slow
@pytest.mark.usefixtures("small_bases")
@pytest.mark.parametrize("sizes", [range(1, 4), range(2, 3), range(1, 2)])
def test_no_transcript_of_several_bases_loses_more_than_the_price(sizes, monkeypatch):
    found = worst(monkeypatch, PrivBasis(epsilon=EPSILON), levels=SMALL, sizes=sizes, k=4)
    assert 0.5 < found <= 1 + 1e-9


def test_the_counts_of_bases_use_their_part_exactly(monkeypatch):
    """Adding a row moves one number of each basis by one."""
    monkeypatch.setattr(priv_basis, "LARGEST_BASIS", 2)
    method = PrivBasis(epsilon=EPSILON)
    for seed in range(5):
        one, other = (
            run(monkeypatch, method, problem(rows, k=4), seed, SMALL) for rows in ([], [(0, 2, 3)])
        )
        counts = [(a, b) for a, b in zip(one, other, strict=True) if a[0] == "noise"]
        assert loss(*zip(*counts, strict=True)) == float(method.parts()["counts"])


@pytest.mark.parametrize("method", [BLST10, BLST10Laplace])
@pytest.mark.parametrize("k", [1, 3])
def test_the_supports_of_blst10_are_true_ones_with_noise_for_all_of_them(method, k, monkeypatch):
    """Replacing a row moves each of the k by at most 1. That the itemsets are private: the laws
    below.
    """
    script = Transcript(0, SMALL)
    monkeypatch.setattr(blst10, "add_noise", script.noisy)
    rows = [(0, 1), (1, 2), (0, 1, 2), ()]
    for seed in range(5):
        found = method(epsilon=EPSILON).draw(problem(rows, 3, range(1, 3), k), SeededCoins(seed))
        _, counts, unit = script.asked[-1]
        assert unit == EPSILON / 2 / k
        assert counts.tolist() == [sum(set(one.codes) <= set(row) for row in rows) for one in found]


# Mutants: each must be caught


class Spendthrift(PrivBasis):
    """The authors' program: all of epsilon for λ, and then the rest as planned."""

    def parts(self):
        return {**super().parts(), "number": self.epsilon}

    def privacy(self):
        return Privacy(self.epsilon)


def test_mutant_priv_basis_that_spends_all_on_the_number(monkeypatch):
    assert worst(monkeypatch, Spendthrift(epsilon=EPSILON), levels=SMALL, rounds=12) > 1.05


def test_mutant_priv_basis_with_the_noise_of_one_basis(monkeypatch):
    monkeypatch.setattr(priv_basis, "LARGEST_BASIS", 2)

    class Single(PrivBasis):
        def _count(self, bits, bases, coins):
            share = self.parts()["counts"]
            return [
                (basis, priv_basis.add_noise(bits.bins(basis), 1, share, coins)) for basis in bases
            ]

    assert worst(monkeypatch, Single(epsilon=EPSILON), levels=SMALL, k=4) > 1.05


def test_mutant_priv_basis_with_the_universe_read_off_the_rows(monkeypatch):
    class Observed(PrivBasis):
        def draw(self, asked, coins):
            seen = sorted(set(asked.rows.codes.tolist()))
            place = {code: at for at, code in enumerate(seen)}
            codes = np.array([place[code] for code in asked.rows.codes.tolist()], np.int32)
            return super().draw(
                replace(asked, rows=replace(asked.rows, codes=codes, labels=range(len(seen)))),
                coins,
            )

    method = Observed(epsilon=EPSILON)
    one, other = (
        run(monkeypatch, method, problem([(0, 1), *row]), 0, SMALL) for row in ([], [(2,)])
    )
    with pytest.raises(AssertionError):
        loss(one, other)


def test_mutant_truncation_that_keeps_rows_whole(monkeypatch):
    def whole_rows(self, places, length):
        return cut(self, places, self.items)

    cut = records.Records.first
    monkeypatch.setattr(records.Records, "first", whole_rows)
    method, levels = CASES["truncation to one item"]
    assert worst(monkeypatch, method, levels=levels) > 1.05


def test_mutant_truncation_by_private_supports(monkeypatch):
    """The order in which rows are cut may be released or public, not the true one: a row would move
    others' cuts.
    """

    def by_supports(self, places, length):
        return cut(self, np.argsort(np.argsort(-self.supports(), kind="stable")), length)

    cut = records.Records.first
    monkeypatch.setattr(records.Records, "first", by_supports)
    method = SmartTrunc(epsilon=EPSILON, longest=1, levels=1)
    rows = [(0, 1)] * 4 + [(0,)] * 2 + [(1,)] * 2
    one, other = (
        run(monkeypatch, method, problem(asked), 0, SMALL) for asked in (rows, [*rows, (1,)])
    )
    assert loss(one, other) > 1.05


def test_mutant_partition_that_forgets_what_it_spent(monkeypatch):
    class Forgetful(DiffPart):
        def parts(self):
            return {"splits": 3 * self.epsilon, "copies": self.epsilon / 2}

    assert worst(monkeypatch, Forgetful(epsilon=EPSILON, fan_out=5), levels=WIDE) > 1.05


def test_mutant_partition_that_hands_down_what_it_spent(monkeypatch):
    """A cut of several nodes is split at each of them, so a row is counted more often than the tree
    is deep.
    """
    method = DiffPart(epsilon=EPSILON, fan_out=2, most=40)
    part = diff_part._Partition
    monkeypatch.setattr(
        diff_part, "_Partition", lambda cut, budget, rows: part(cut, method.parts()["splits"], rows)
    )
    assert worst(monkeypatch, method, levels=WIDE) > 1.05


@pytest.mark.slow
def test_mutant_tree_with_the_noise_of_one_level(monkeypatch):
    class Flat(PrefixTree):
        def parts(self):
            spent = super().parts()
            return {**spent, "tree": spent["tree"] * self.depth}

    method = Flat(epsilon=EPSILON, depth=4, most=40, touched=1)
    assert worst(monkeypatch, method, levels=WIDE, rounds=10) > 1.05


@pytest.mark.slow
def test_mutant_tree_whose_rows_count_for_every_candidate(monkeypatch):
    counted = prefix_tree.count_holders
    monkeypatch.setattr(
        prefix_tree,
        "count_holders",
        lambda rows, candidates, touched: counted(rows, candidates, 10**6),
    )
    method = PrefixTree(epsilon=EPSILON, depth=4, most=8, touched=1)
    assert worst(monkeypatch, method, levels=WIDE, rounds=10) > 1.05


# The order of arrival: laws and walks


@pytest.fixture
def one_bit(monkeypatch):
    monkeypatch.setattr(arrivals, "BITS_A_LOOK", 1)


BLOCKS = {1: [(0, 1), (1, 2), (3, 3)], 2: [(0, 1), (1, 2)]}
"""For one candidate, and for the first two."""


def peeled(blocks, rate, k):
    """Probability of each list of blocks, by drawing and putting aside."""
    table = {}

    def extend(done, left, chance):
        if len(done) == k:
            table[done] = chance
            return
        weights = [
            count * math.exp(-rate * depth) for (depth, _), count in zip(blocks, left, strict=True)
        ]
        for block, weight in enumerate(weights):
            if left[block]:
                fewer = [count - (place == block) for place, count in enumerate(left)]
                extend((*done, block), fewer, chance * weight / sum(weights))

    extend((), [count for _, count in blocks], 1.0)
    return table


def ordered_laplace(blocks, rate, points=100_001):
    """Probability of each pair of blocks that arrive first, by summing over a fine grid."""
    deepest = max(depth for depth, _ in blocks)
    edges = np.linspace(-deepest - 30 / rate, 30 / rate, points)
    x = (edges[1:] + edges[:-1]) / 2

    def below(at, depth):
        z = rate * (at + depth)
        return np.where(z < 0, np.exp(np.minimum(z, 0)) / 2, 1 - np.exp(-np.maximum(z, 0)) / 2)

    table = {}
    for first, second in product(range(len(blocks)), repeat=2):
        counts = [count for _, count in blocks]
        ways = counts[first]
        counts[first] -= 1
        ways *= counts[second]
        if not ways:
            continue
        counts[second] -= 1
        others = math.prod(
            below(x, depth) ** n for (depth, _), n in zip(blocks, counts, strict=True)
        )
        second_mass = np.diff(below(edges, blocks[second][0])) * others
        table[first, second] = ways * float((second_mass * (1 - below(x, blocks[first][0]))).sum())
    return table


@pytest.mark.slow
@pytest.mark.usefixtures("one_bit")
@pytest.mark.parametrize("k", [1, 2])
def test_every_script_of_coins_for_draws_by_weight(k):
    blocks, rate = BLOCKS[k], Fraction(3, 2)
    finished, left = walk(
        lambda coins: tuple(arrivals.draw_arrivals(blocks, rate, arrivals.GUMBEL, k, coins)), 15
    )
    assert left < 0.25
    inside(peeled(blocks, 1.5, k), finished, left)
    with pytest.raises(AssertionError):
        inside(peeled(blocks, 4.0, k), finished, left)


@pytest.mark.slow
@pytest.mark.usefixtures("one_bit")
@pytest.mark.parametrize("k", [1, 2])
def test_every_script_of_coins_for_laplace_noise(k):
    blocks, rate = BLOCKS[k], Fraction(3, 2)
    finished, left = walk(
        lambda coins: tuple(arrivals.draw_arrivals(blocks, rate, LAPLACE, k, coins)), 15
    )
    assert left < 0.25
    inside(laplace_law(blocks, rate, k), finished, left)
    with pytest.raises(AssertionError):
        inside(laplace_law(blocks, 4 * rate, k), finished, left)


def laplace_law(blocks, rate, k):
    if k == 1:
        return {(block,): chance for block, chance in enumerate(race_law(blocks, rate, LAPLACE))}
    law = ordered_laplace(blocks, float(rate))
    assert sum(law.values()) == pytest.approx(1, abs=1e-6)
    return law


def inside(law, finished, left):
    assert finished.keys() <= law.keys()
    for outcome, chance in law.items():
        assert -1e-6 <= chance - float(finished.get(outcome, 0)) <= float(left) + 1e-6


# BLST10: the law of the itemsets


def clipped(rows, items, sizes, k, depth, floor=0):
    everybody = [one for size in sizes for one in combinations(range(items), size)]
    scores = {one: sum(set(one) <= set(row) for row in rows) for one in everybody}
    kth = sorted(scores.values(), reverse=True)[k - 1]
    return {one: max(score, kth - depth, floor) for one, score in scores.items()}


def by_name(scores, rate, k):
    names = list(scores)
    values = [scores[name] for name in names]
    places = range(len(names))
    return {
        tuple(names[place] for place in chosen): math.exp(log_chance(values, rate, chosen))
        for chosen in permutations(places, k)
    }


@pytest.mark.slow
@pytest.mark.usefixtures("one_bit")
@pytest.mark.parametrize(("floor", "depth"), [(0, 1), (2, 1), (0, 9)])
def test_every_script_of_coins_for_the_names_of_blst10(floor, depth, monkeypatch):
    """Three pairs over three items; at a depth of 1, and at a floor of 2, two of them are one
    block.
    """
    rows = [(0, 1)] * 3 + [(0, 2)] + [(2,)]
    monkeypatch.setattr(BLST10, "_depth", lambda method, k, universe: depth)
    monkeypatch.setattr(blst10, "add_noise", lambda counts, sensitivity, epsilon, coins: counts)
    method = BLST10(epsilon=4, floor=floor)

    def draw(coins):
        return tuple(one.codes for one in method.draw(problem(rows, 3, range(2, 3), 2), coins))

    finished, left = walk(draw, 14)
    assert left < 0.15
    law = by_name(clipped(rows, 3, range(2, 3), 2, depth, floor), Fraction(4, 2) / 4, 2)
    inside(law, finished, left)
    with pytest.raises(AssertionError):
        inside(
            by_name(clipped(rows, 3, range(2, 3), 2, depth, floor), Fraction(8), 2), finished, left
        )


@pytest.mark.parametrize(("k", "depth"), [(1, 0), (1, 1), (2, 0), (2, 1), (2, 5)])
def test_the_law_of_blst10_stays_within_half_its_price(k, depth):
    """All pairs of data sets of three rows over two items that differ in one row."""
    rate, largest = EPSILON / 2 / (2 * k), 0.0
    rows = every_row(2)
    laws = {}
    for chosen in product(rows, repeat=3):
        laws[chosen] = by_name(clipped(chosen, 2, range(1, 3), k, depth), rate, k)
    for chosen, place, row in product(laws, range(3), rows):
        other = laws[*chosen[:place], row, *chosen[place + 1 :]]
        largest = max(largest, *(math.log(law / other[name]) for name, law in laws[chosen].items()))
    assert 0 <= largest <= float(EPSILON / 2) + 1e-9
    assert depth == 0 or largest > 0.2


def test_mutant_blst10_with_monotone_constants():
    """One row out, another in: at twice the rate half the price is not enough."""
    before, after = [(1,), (1,), (0,)], [(1,), (1,), (1,)]
    rate = EPSILON / 2
    one, other = (by_name(clipped(rows, 2, range(1, 2), 1, 5), rate, 1) for rows in (before, after))
    assert max(math.log(one[name] / other[name]) for name in one) > float(EPSILON / 2)


def laplace_losses(rate):
    """The largest log-ratio of a list of two out of three, over supports 0 … 2 that each move by at
    most 1.
    """
    laws, largest = {}, 0.0
    for scores in product(range(3), repeat=3):
        laws[scores] = ordered_laplace([(2 - score, 1) for score in scores], rate, 4001)
    for scores, move in product(laws, product((-1, 0, 1), repeat=3)):
        other = laws.get(
            tuple(score + step for score, step in zip(scores, move, strict=True)), laws[scores]
        )
        largest = max(
            largest, *(math.log(chance / other[name]) for name, chance in laws[scores].items())
        )
    return largest


def test_the_law_of_blst10_with_laplace_noise_stays_within_half_its_price():
    """With a k of 2 the rate is ε/4k = 1/8."""
    assert 0.15 < laplace_losses(float(EPSILON / 2 / (2 * 2))) <= 0.5 + 1e-3


def test_mutant_laplace_noise_of_one_draw():
    assert laplace_losses(2 * float(EPSILON / 2)) > 0.55


def test_the_rate_and_the_depth_are_those_of_the_page():
    for k, size in [(1, 3), (10, 10**6)]:
        exact = 4 * k / 0.5 * math.log(k * size / 0.1)
        assert BLST10(epsilon="0.5")._depth(k, size) == math.ceil(exact)
        exact = 8 * k / 0.5 * math.log(size / 0.1)
        assert BLST10Laplace(epsilon="0.5")._depth(k, size) == math.ceil(exact)
