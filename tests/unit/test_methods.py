"""The published methods for itemsets: numbers of itemsets, rows as bits, bases, and answers that
are certain.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from privmax.errors import ParameterError
from privmax.itemsets import numbering
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.miner.window import Miner
from privmax.itemsets.numbering import Numbering, nth_outside
from privmax.itemsets.published import (
    BLST10,
    METHODS,
    DiffPart,
    PrefixTree,
    PrivBasis,
    Problem,
    SmartTrunc,
    arrivals,
)
from privmax.itemsets.published.arrivals import draw_places, draw_strongest, shuffle
from privmax.itemsets.published.blst10 import BLST10Laplace
from privmax.itemsets.published.diff_part import divide_node
from privmax.itemsets.published.prefix_tree import count_endings, count_holders
from privmax.itemsets.published.priv_basis import (
    LARGEST_BASIS,
    cover_edges,
    find_cliques,
    find_support,
    merge_bases,
)
from privmax.itemsets.published.records import Bits, Records
from privmax.itemsets.published.smart_trunc import join_itemsets
from privmax.itemsets.published.synthetic import find_frequent
from privmax.noise.coins import SYSTEM
from privmax.privacy import ADD_REMOVE, REPLACE, Privacy
from privmax.testing import SeededCoins


def baskets(rows, items, weights=None):
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    codes = np.array([code for row in rows for code in row], np.int32)
    return Baskets(
        offsets, codes, range(items), None, None if weights is None else np.array(weights, np.int64)
    )


def problem(rows, items, sizes=range(1, 4), k=3, weights=None):
    private = baskets(rows, items, weights)
    return Problem(lambda wanted: Miner(private, wanted), private, sizes, k)


def support(rows, itemset):
    return sum(set(itemset) <= set(row) for row in rows)


# Numbers of itemsets


@pytest.mark.parametrize("items", range(7))
@pytest.mark.parametrize(
    "sizes", [range(1, 2), range(2, 3), range(1, 4), range(2, 9), range(1, 1 << 31)]
)
def test_itemsets_are_numbered_in_the_fixed_order(items, sizes, monkeypatch):
    everybody = Numbering(items, sizes)
    listed = [
        one
        for size in range(sizes.start, min(sizes.stop, 9))
        for one in combinations(range(items), size)
    ]
    assert everybody.size == len(listed)
    assert [everybody.unrank(rank) for rank in range(len(listed))] == listed
    assert [everybody.rank(one) for one in listed] == list(range(len(listed)))
    width = max(map(len, listed), default=1)
    padded = np.array([[*one, *[-1] * (width - len(one))] for one in listed], np.int32).reshape(
        -1, width
    )
    assert everybody.ranks(padded) == list(range(len(listed)))
    monkeypatch.setattr(numbering, "_FITS", 0)
    assert everybody.ranks(padded) == list(range(len(listed)))


def test_a_universe_beyond_listing_is_numbered_as_well():
    everybody = Numbering(10**6, range(2, 6))
    assert everybody.size == sum(math.comb(10**6, size) for size in range(2, 6))
    for rank in (0, 10**9, everybody.size // 3, everybody.size - 1):
        assert everybody.rank(everybody.unrank(rank)) == rank
    long = Numbering(500, range(1, 1 << 31))
    assert long.size == 2**500 - 1
    assert long.rank(long.unrank(long.size // 2)) == long.size // 2


def test_the_two_ways_to_find_digits_agree():
    for items, size in [(9, 1), (9, 4), (9, 9), (1, 1), (40, 3)]:
        for after in range(0, math.comb(items, size), 7):
            walked = list(numbering.walk_digits(after, size, items))
            assert list(numbering.search_digits(after, size, items)) == walked
            assert (
                sum(math.comb(digit, size - place) for place, digit in enumerate(walked)) == after
            )


@pytest.mark.parametrize("excluded", [[], [0], [3], [0, 1, 2], [1, 3, 5, 6, 9], list(range(12))])
def test_the_nth_number_outside(excluded):
    outside = [number for number in range(60) if number not in excluded]
    assert [nth_outside(index, excluded) for index in range(40)] == outside[:40]


@pytest.mark.parametrize("codes", [(), (2, 1), (1, 1), (0, 5), (-1, 2), (0, 1, 2)])
def test_what_is_no_itemset_has_no_number(codes):
    with pytest.raises(ParameterError, match="codes"):
        Numbering(5, range(2, 3)).rank(codes)


def test_numbers_and_sizes_that_are_refused():
    with pytest.raises(ParameterError, match="rank"):
        Numbering(5, range(2, 3)).unrank(10)
    for sizes in (range(0, 2), range(3, 3), range(1, 6, 2)):
        with pytest.raises(ParameterError, match="sizes"):
            Numbering(5, sizes)


# Rows

ROWS = [(0, 1, 2), (0, 1), (2, 2, 0), (), (4,), (1, 0, 4, 2), (0, 1, 2)]


@pytest.mark.parametrize("weights", [None, [1, 2, 3, 4, 5, 6, 7]])
def test_rows_as_bits_count_what_rows_hold(weights):
    records = Records(baskets(ROWS, 6, weights))
    bits = Bits(records, [4, 0, 2, 1])
    worth = weights or [1] * len(ROWS)
    itemsets = [one for size in (1, 2, 3, 4) for one in combinations((0, 1, 2, 4), size)]
    expected = [
        sum(w for row, w in zip(ROWS, worth, strict=True) if set(one) <= set(row))
        for one in itemsets
    ]
    assert bits.supports(itemsets).tolist() == expected
    assert records.supports().tolist() == [
        expected[itemsets.index((c,))] if c not in (3, 5) else 0 for c in range(6)
    ]
    bins = bits.bins((2, 4, 0))
    for pattern in range(8):
        exactly = {code for bit, code in enumerate((2, 4, 0)) if pattern >> bit & 1}
        assert bins[pattern] == sum(
            w for row, w in zip(ROWS, worth, strict=True) if set(row) & {0, 2, 4} == exactly
        )


def test_rows_are_cut_to_the_first_items_of_an_order():
    records = Records(baskets(ROWS, 6))
    order = np.array([3, 1, 0, -1, 2, -1])  # 2 before 1 before 4 before 0
    cut = records.first(order, 2)
    rows = [cut.codes[cut.lines == line].tolist() for line in range(len(ROWS))]
    assert rows == [[2, 1], [1, 0], [2, 0], [], [4], [2, 1], [2, 1]]


def test_rows_of_users_are_refused():
    owned = Baskets(
        np.array([0, 1, 2]), np.array([0, 1], np.int32), range(3), np.array([0, 0]), None
    )
    asked = Problem(lambda wanted: Miner(owned, wanted), owned, range(1, 2), 1)
    for method in (PrivBasis, SmartTrunc, DiffPart, PrefixTree):
        with pytest.raises(ParameterError, match="user"):
            method(epsilon=1).draw(asked, SYSTEM)
    assert BLST10(epsilon=10**4).draw(asked, SYSTEM)[0].support == 1


# Steps of the methods


def test_a_clear_order_is_drawn_in_order_and_everybody_once():
    scores = np.array([5, 900, 300, 0, 0, 600], np.int64)
    assert draw_strongest(scores, 3, Fraction(1), SYSTEM) == [1, 5, 2]
    assert sorted(draw_strongest(scores, 6, Fraction(1, 10**6), SYSTEM)) == list(range(6))
    assert (
        sorted(draw_places(5, 5, SYSTEM)) == sorted(shuffle(5, SYSTEM).tolist()) == list(range(5))
    )


def test_noise_is_discrete_laplace_of_scale_sensitivity_over_epsilon(monkeypatch):
    scales = []

    def record(scale, size, coins):
        scales.append(scale)
        return np.arange(size)

    monkeypatch.setattr(arrivals.bulk, "discrete_laplace", record)
    counts = np.array([[5, 6], [7, 8]], np.int64)
    assert arrivals.add_noise(counts, 3, Fraction(1, 2), SYSTEM).tolist() == [[5, 7], [9, 11]]
    assert scales == [6]


def test_the_support_at_a_rank():
    rows = [(0, 1)] * 9 + [(2,)] * 4 + [(0,)] * 2
    private = baskets(rows, 5)
    ordered = sorted(
        (support(rows, one) for size in (1, 2) for one in combinations(range(5), size)),
        reverse=True,
    )
    for rank in range(1, 12):
        assert find_support(Miner(private, range(1, 3)), rank) == ordered[rank - 1]


def test_cliques_against_enumeration():
    randomly = random.Random(5)
    for _ in range(20):
        friends = {node: set() for node in range(7)}
        for left, right in combinations(range(7), 2):
            if randomly.random() < 0.5:
                friends[left].add(right)
                friends[right].add(left)
        complete = [
            set(nodes)
            for size in range(1, 8)
            for nodes in combinations(range(7), size)
            if all(b in friends[a] for a, b in combinations(nodes, 2))
        ]
        maximal = [one for one in complete if not any(one < other for other in complete)]
        assert sorted(map(sorted, find_cliques(friends))) == sorted(map(sorted, maximal))


@pytest.mark.slow
@pytest.mark.parametrize("number", [13, 30, 60])
def test_bases_cover_every_item_and_every_pair(number):
    randomly = random.Random(number)
    items = randomly.sample(range(1000), number)
    pairs = [tuple(sorted(pair)) for pair in combinations(items, 2)]
    edges = randomly.sample(pairs, min(len(pairs), 2 * number))
    bases = cover_edges(items, edges)
    assert all(1 <= len(set(basis)) == len(basis) <= LARGEST_BASIS for basis in bases)
    assert {item for basis in bases for item in basis} == set(items)
    assert set(edges) <= {pair for basis in bases for pair in combinations(sorted(basis), 2)}


def test_a_clique_too_large_for_one_basis_is_covered_as_well():
    items = list(range(15))
    edges = list(combinations(items, 2))
    bases = cover_edges(items, edges)
    assert max(map(len, bases)) <= LARGEST_BASIS
    assert set(edges) <= {pair for basis in bases for pair in combinations(sorted(basis), 2)}


def test_merging_stops_where_the_variance_is_lowest():
    """Six single items and no pairs: two bases of three (4 · 2²·…) beat both six bases of one and
    one of six.
    """
    found = merge_bases([(item,) for item in range(6)], range(6), [])
    sizes = sorted(map(len, found))

    def variance(sizes):
        return len(sizes) ** 2 * sum(size * 2 ** (size - 1) for size in sizes)

    assert sum(sizes) == 6
    assert variance(sizes) < min(variance([1] * 6), variance([6]))


def test_candidates_have_all_their_parts_and_the_best_come_first():
    kept = {(0, 1): 9, (0, 2): 8, (1, 2): 7, (1, 3): 6, (2, 3): 5, (0, 4): 4}
    assert join_itemsets(kept, 10) == [(0, 1, 2), (1, 2, 3)]
    assert join_itemsets(kept, 1) == [(0, 1, 2)]
    assert join_itemsets({(0,): 1, (2,): 3, (1,): 2}, 9) == [(1, 2), (0, 1), (0, 2)]


def test_the_public_tree_divides_every_range():
    for width in range(1, 40):
        parts = divide_node((3, 3 + width), 4)
        assert [code for start, end in parts for code in range(start, end)] == list(
            range(3, 3 + width)
        )
        assert (
            max(end - start for start, end in parts) - min(end - start for start, end in parts) <= 1
        )


def test_rows_that_a_tree_describes():
    assert count_endings({(3,): 10, (3, 1): 4, (1,): 2, (3, 1, 0): 6}) == {
        (3,): 6,
        (1,): 2,
        (0, 1, 3): 6,
    }


def test_a_row_counts_for_the_first_candidates_it_holds():
    records = Records(baskets([(0, 1, 2), (0, 1), (2,)], 3))
    candidates = [(0,), (2,), (0, 1)]
    assert count_holders(records, candidates, 3).tolist() == [2, 2, 2]
    assert count_holders(records, candidates, 2).tolist() == [2, 2, 1]
    assert count_holders(records, candidates, 1).tolist() == [2, 1, 0]


def test_itemsets_of_released_rows():
    found = find_frequent({(0, 1): 5, (1,): 2, (0, 1, 2): 1}, 4, range(1, 3), 4)
    assert [(one.codes, one.support) for one in found] == [
        ((1,), 8),
        ((0,), 6),
        ((0, 1), 6),
        ((2,), 1),
    ]
    assert find_frequent({}, 4, range(1, 3), 4) == []


# Certain answers

CLEAR = [(0, 1, 2)] * 500 + [(0, 1)] * 400 + [(0,)] * 300 + [(3,)] * 10 + [()] * 5
"""Supports: 0 in 1200, 1 and {0, 1} in 900, 2 and what holds it in 500, 3 in 10."""

SURE = 10**5


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_with_no_noise_to_speak_of_the_best_are_found_with_their_supports(method):
    for sizes, k, expected in [
        (range(1, 3), 3, [((0,), 1200), ((1,), 900), ((0, 1), 900)]),
        (range(2, 3), 1, [((0, 1), 900)]),
        (range(3, 4), 1, [((0, 1, 2), 500)]),
    ]:
        found = method(epsilon=SURE).draw(problem(CLEAR, 8, sizes, k), SYSTEM)
        assert sorted((one.codes, one.support) for one in found) == sorted(expected)
        assert found[0].codes == expected[0][0]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_weights_stand_for_as_many_rows(method):
    rows, weights = [(0, 1, 2), (0, 1), (0,), (3,)], [500, 400, 300, 10]
    asked = problem(rows, 8, range(2, 3), 1, weights)
    assert [(one.codes, one.support) for one in method(epsilon=SURE).draw(asked, SYSTEM)] == [
        ((0, 1), 900)
    ]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
@pytest.mark.parametrize("rows", [[], [()], [(0, 1, 2, 3, 4)]], ids=["none", "empty", "one"])
def test_little_data_and_few_items(method, rows):
    for items, sizes, k in [
        (5, range(1, 3), 4),
        (5, range(2, 1 << 31), 100),
        (5, range(7, 9), 2),
        (5, range(1, 2), 9),
    ]:
        found = method(epsilon=1).draw(problem(rows, items, sizes, k), SeededCoins(len(rows)))
        assert len(found) <= k
        assert len({one.codes for one in found}) == len(found)
        for one in found:
            assert len(one.codes) in sizes
            assert list(one.codes) == sorted(set(one.codes))
            assert set(one.codes) <= set(range(items))


@pytest.mark.slow
def test_many_items_need_pairs_and_several_bases():
    randomly = random.Random(1)
    rows = [
        tuple({*randomly.sample(range(16), 3), 2 * (i % 8), 2 * (i % 8) + 1}) for i in range(4000)
    ]
    truth = sorted(
        (one for size in (1, 2) for one in combinations(range(20), size)),
        key=lambda one: -support(rows, one),
    )[:24]
    found = PrivBasis(epsilon=SURE).draw(problem(rows, 20, range(1, 4), 24), SYSTEM)
    assert {one.codes for one in found} == set(truth)
    assert all(one.support == support(rows, one.codes) for one in found)


def test_itemsets_that_occur_nowhere_are_drawn_by_name():
    """With every support alike each of the 21 itemsets is as likely; over many draws all of them
    come up.
    """
    drawn = set()
    for seed in range(40):
        found = BLST10(epsilon="0.001").draw(problem([(0,)], 6, range(1, 3), 10), SeededCoins(seed))
        assert len({one.codes for one in found}) == 10
        drawn |= {one.codes for one in found}
    assert drawn == {one for size in (1, 2) for one in combinations(range(6), size)}


@pytest.mark.parametrize("method", [BLST10, BLST10Laplace])
def test_clipping_is_a_block_of_equals(method):
    """The depth is public, the floor too: below both nothing is told apart, and supports are still
    true ones.
    """
    rows = [(0,)] * 9000 + [(1,)] * 30 + [(2,)] * 20
    counted = {
        one.codes: one.support
        for one in method(epsilon=SURE, floor=50).draw(problem(rows, 4, k=4), SYSTEM)
    }
    assert abs(counted.pop((0,)) - 9000) <= 1
    assert all(abs(value - support(rows, one)) <= 1 for one, value in counted.items())


# Prices and parameters


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_the_parts_of_the_budget_add_up(method):
    for epsilon in (1, "0.1", Fraction(1, 3)):
        made = method(epsilon=epsilon)
        assert sum(made.parts().values()) == Fraction(epsilon)
        assert min(made.parts().values()) > 0
        assert made.privacy() == Privacy(epsilon)
    assert made.neighbors == (REPLACE if method in (BLST10, BLST10Laplace) else ADD_REMOVE)
    with pytest.raises(ParameterError, match="epsilon"):
        method(epsilon=0)


@pytest.mark.parametrize(
    ("method", "options", "name"),
    [
        (BLST10, {"failure": 0}, "failure"),
        (BLST10Laplace, {"floor": -1}, "floor"),
        (PrivBasis, {"shares": (1, "0.4", "0.5")}, "shares"),
        (PrivBasis, {"shares": ("0.5", "0.5")}, "shares"),
        (PrivBasis, {"margin": 0}, "margin"),
        (SmartTrunc, {"percentile": 1}, "percentile"),
        (SmartTrunc, {"longest": 0}, "longest"),
        (SmartTrunc, {"levels": 0}, "levels"),
        (SmartTrunc, {"spare": -1}, "spare"),
        (SmartTrunc, {"most_candidates": 0}, "most_candidates"),
        (DiffPart, {"fan_out": 1}, "fan_out"),
        (DiffPart, {"fan_out": 13}, "fan_out"),
        (DiffPart, {"strict": -1}, "strict"),
        (DiffPart, {"most": 0}, "most"),
        (PrefixTree, {"depth": 0}, "depth"),
        (PrefixTree, {"stray": 0}, "stray"),
        (PrefixTree, {"touched": 0}, "touched"),
        (PrefixTree, {"proposed": 0}, "proposed"),
        (PrefixTree, {"most": 0}, "most"),
    ],
)
def test_parameters_that_are_refused(method, options, name):
    with pytest.raises(ParameterError, match=name):
        method(epsilon=1, **options)


def test_nothing_private_is_shown():
    asked = problem(CLEAR, 8)
    records = Records(asked.rows)
    assert repr(asked) == "Problem(<private>)"
    assert repr(records) == "Records(<private>)"
    assert repr(Bits(records, [0])) == "Bits(<private>)"
    assert (
        repr(PrivBasis(epsilon="0.5"))
        == "PrivBasis(epsilon=0.5, shares=(0.1, 0.4, 0.5), margin=1.1)"
    )
