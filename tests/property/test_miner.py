"""The miner against all subsets of all rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import contextmanager
from itertools import chain, combinations, pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privmax.itemsets.baskets import Baskets
from privmax.itemsets.miner import numpy_walk, window
from privmax.itemsets.miner.window import Miner

patient = settings(deadline=None)  # a busy machine is no failure
both_walks = pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "numba"])

ITEMS = 7


@st.composite
def baskets(draw):
    """Few items, so that supports tie; repeated codes, empty rows, owners with many rows and with
    none.
    """
    rows = draw(st.lists(st.lists(st.integers(0, ITEMS - 1), max_size=8), max_size=14))
    owners = None
    people = len(rows)
    if draw(st.booleans()):
        people = draw(st.integers(1, 6))
        owners = sorted(draw(st.integers(0, people - 1)) for _ in rows)
    weights = None
    if draw(st.booleans()):
        heavy = st.one_of(st.integers(1, 3), st.integers(1, 2**40))
        weights = [draw(heavy) for _ in range(people)]
    return of(rows, owners, weights)


def of(rows, owners=None, weights=None):
    return Baskets(
        np.cumsum([0, *map(len, rows)], dtype=np.int64),
        np.array(list(chain(*rows)), np.int32),
        range(ITEMS),
        None if owners is None else np.array(owners, np.int64),
        None if weights is None else np.array(weights, np.int64),
    )


def all_supports(given, sizes):
    """Every itemset that somebody has, and its support, by listing the subsets of every row."""
    sets = defaultdict(set)
    for row in range(given.rows):
        owner = row if given.owners is None else int(given.owners[row])
        held = sorted(set(given.codes[given.offsets[row] : given.offsets[row + 1]].tolist()))
        within = range(sizes.start, min(sizes.stop, len(held) + 1))
        sets[owner].update(chain(*(combinations(held, size) for size in within)))
    supports = Counter()
    for owner, found in sets.items():
        for items in found:
            supports[items] += 1 if given.weights is None else int(given.weights[owner])
    return supports


def in_order(supports):
    return sorted(supports, key=lambda items: (-supports[items], len(items), items))


def listed(found):
    return [tuple(code for code in row if code >= 0) for row in found.tolist()]


def assert_answers(miner, truth, levels):
    """Everything a miner is asked, at every one of the levels."""
    assert miner.best() == max(truth.values(), default=0)
    highest = sorted(truth.values(), reverse=True)
    for number in {1, 2, len(highest) // 3 + 1, len(highest), len(highest) + 1} - {0}:
        support = highest[number - 1] if number <= len(highest) else 0
        assert miner.nth(number) == support
        least = highest[len(highest) // 2] + 1 if highest else 3
        assert miner.nth(number, least) == max(support, least - 1)
    for level in levels:
        over = {items: support for items, support in truth.items() if support > level}
        assert miner.histogram(level) == sorted(Counter(over.values()).items(), reverse=True)
        found, supports = miner.above(level)
        assert listed(found) == in_order(over)
        assert supports.tolist() == [truth[items] for items in listed(found)]
        if level:
            exactly = {items: support for items, support in truth.items() if support == level}
            assert listed(miner.at(level)) == in_order(exactly)
            assert miner.at(level).dtype == np.int32


sizes = st.sampled_from(
    [range(1, 2), range(2, 3), range(3, 4), range(2, 5), range(1, 2**31), range(4, 2**31)]
)


@contextmanager
def cut(
    first=window.FIRST,
    square=window.SQUARE,
    batch=numpy_walk.BATCH,
    buffer=1 << 17,
    part=1 << 16,
    deep=1 << 16,
):
    """Other numbers for what is searched first, counted together, or kept at a time. No answer
    depends on them.
    """
    from privmax.itemsets.miner import compiled_walk

    with (
        patch.object(window, "FIRST", first),
        patch.object(window, "SQUARE", square),
        patch.object(numpy_walk, "BATCH", batch),
        patch.object(compiled_walk, "BUFFER", buffer),
        patch.object(compiled_walk, "PART", part),
        patch.object(compiled_walk, "DEEP", deep),
    ):
        yield


def shuffled_levels(truth, random):
    levels = [0, *sorted(set(truth.values())), max(truth.values(), default=0) + 1]
    random.shuffle(levels)
    return levels


@pytest.mark.slow
@both_walks
@patient
@given(baskets(), sizes, st.randoms(use_true_random=False))
def test_the_miner_lists_what_is_there(compiled, given, sizes, random):
    truth = all_supports(given, sizes)
    assert_answers(Miner(given, sizes, compiled=compiled), truth, shuffled_levels(truth, random))


@pytest.mark.slow
@both_walks
@patient
@given(
    baskets(), sizes, st.randoms(use_true_random=False),
    st.integers(1, 6), st.integers(0, 6), st.sampled_from([1, 10]), st.sampled_from([0, 5]),
    st.sampled_from([0, 3, 100]), st.sampled_from([0, 6, 1000]),
)  # fmt: skip
def test_no_answer_depends_on_how_the_work_is_cut(
    compiled, given, sizes, random, first, square, batch, buffer, part, deep
):
    truth = all_supports(given, sizes)
    with cut(first, square, batch, buffer, part, deep):
        assert_answers(
            Miner(given, sizes, compiled=compiled), truth, shuffled_levels(truth, random)
        )


@pytest.mark.slow
@both_walks
@patient
@given(
    baskets(), st.sampled_from([range(1, 4), range(2, 3), range(3, 2**31)]),
    st.lists(st.integers(0, 4), min_size=ITEMS, max_size=ITEMS), st.booleans(),
)  # fmt: skip
def test_rows_that_leave_out_what_is_rare_give_the_same(compiled, given, sizes, more, leaves_more):
    truth = all_supports(given, sizes)
    rows = Sifted(given, more, leaves_more=leaves_more)
    with cut(first=2):
        assert_answers(Miner(rows, sizes, compiled=compiled), truth, [3, 1, 0])
    assert all(least >= 1 for least in rows.asked)


class Sifted:
    """Rows as an engine may give them: with bounds in place of supports, without rare items, equal
    rows of people with one row merged into weights.
    """

    def __init__(self, given, more, *, leaves_more):
        self.given, self.more, self.leaves_more = given, np.array(more), leaves_more
        self.asked = []

    def bounds(self):
        return self._supports() + self.more

    def _supports(self):
        truth = all_supports(self.given, range(1, 2))
        return np.array([truth[code,] for code in range(ITEMS)], np.int64)

    def survivors(self, least):
        self.asked.append(least)
        kept = (self.bounds() if self.leaves_more else self._supports()) >= least
        given = self.given
        rows = [
            sorted({code for code in given.codes[start:end].tolist() if kept[code]})
            for start, end in pairwise(given.offsets.tolist())
        ]
        if given.owners is not None:
            return of(rows, given.owners, given.weights)
        merged = Counter()
        for row, items in enumerate(rows):
            merged[tuple(items)] += 1 if given.weights is None else int(given.weights[row])
        return of(list(merged), None, list(merged.values()))
