"""The miner on sets whose answers are known, and what it must not show or load."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from itertools import chain, combinations

import numpy as np
import pytest

from privmax.errors import ParameterError, WorkError
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.miner import compiled_walk, ranks, window
from privmax.itemsets.miner.window import Miner, estimate_work, sort_rows

both_walks = pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "numba"])

BREAD, MILK, EGGS, JAM, TEA = range(5)
SHOP = [
    [BREAD, MILK],
    [MILK, BREAD, EGGS, MILK],
    [],
    [EGGS, BREAD, MILK, JAM],
    [MILK, BREAD],
    [TEA],
    [EGGS, MILK],
]


def of(rows, items, owners=None, weights=None):
    return Baskets(
        np.cumsum([0, *map(len, rows)], dtype=np.int64),
        np.array(list(chain(*rows)), np.int32),
        range(items),
        None if owners is None else np.array(owners, np.int64),
        None if weights is None else np.array(weights, np.int64),
    )


def shop(sizes, compiled, owners=None, weights=None):
    return Miner(of(SHOP, 5, owners, weights), sizes, compiled=compiled)


@both_walks
def test_the_supports_of_a_small_shop(compiled):
    pairs = shop(range(2, 3), compiled)
    assert pairs.best() == 4
    assert pairs.histogram(0) == [(4, 1), (3, 1), (2, 1), (1, 3)]
    assert pairs.histogram(2) == [(4, 1), (3, 1)]
    assert pairs.at(4).tolist() == [[BREAD, MILK]]
    assert pairs.at(1).tolist() == [[BREAD, JAM], [MILK, JAM], [EGGS, JAM]]
    found, supports = pairs.above(1)
    assert found.tolist() == [[BREAD, MILK], [MILK, EGGS], [BREAD, EGGS]]
    assert supports.tolist() == [4, 3, 2]


@both_walks
def test_shorter_sets_come_first_and_are_filled_up(compiled):
    any_size = shop(range(1, 2**31), compiled)
    assert any_size.best() == 5
    assert any_size.at(4).tolist() == [[BREAD, -1], [BREAD, MILK]]
    assert any_size.at(1).tolist() == [
        [JAM, -1, -1, -1],
        [TEA, -1, -1, -1],
        [BREAD, JAM, -1, -1],
        [MILK, JAM, -1, -1],
        [EGGS, JAM, -1, -1],
        [BREAD, MILK, JAM, -1],
        [BREAD, EGGS, JAM, -1],
        [MILK, EGGS, JAM, -1],
        [BREAD, MILK, EGGS, JAM],
    ]


@both_walks
def test_an_owner_of_many_rows_counts_once(compiled):
    owners = [0, 0, 0, 0, 1, 1, 2]
    assert shop(range(2, 3), compiled, owners).histogram(0) == [(2, 2), (1, 4)]
    assert shop(range(2, 3), compiled, owners, [1, 10, 100]).histogram(0) == [
        (101, 1),
        (11, 1),
        (1, 4),
    ]


@both_walks
def test_no_row_holds_what_only_two_rows_of_an_owner_hold_together(compiled):
    miner = Miner(of([[0, 1], [1, 2]], 3, [0, 0]), range(2, 4), compiled=compiled)
    assert miner.above(0)[0].tolist() == [[0, 1], [1, 2]]


@both_walks
def test_a_weight_counts_for_so_many_even_beyond_what_a_float_can_tell(compiled):
    many = 2**55
    miner = Miner(
        of([[0, 1, 2], [0, 1]], 3, None, [many, many + 1]), range(2, 4), compiled=compiled
    )
    assert miner.histogram(0) == [(2 * many + 1, 1), (many, 3)]
    assert miner.at(2 * many + 1).tolist() == [[0, 1]]


@both_walks
@pytest.mark.parametrize("sizes", [range(1, 2), range(2, 3), range(3, 4), range(1, 9)])
@pytest.mark.parametrize(
    "rows", [[], [[]], [[], []]], ids=["no rows", "an empty row", "empty rows"]
)
def test_nothing_is_found_where_nothing_is(compiled, sizes, rows):
    miner = Miner(of(rows, 4), sizes, compiled=compiled)
    assert miner.best() == 0
    assert miner.histogram(0) == []
    assert miner.at(1).shape == (0, sizes.start)
    assert miner.above(0)[0].shape == (0, sizes.start)
    assert miner.above(0)[1].tolist() == []


@pytest.mark.slow
@both_walks
@pytest.mark.parametrize("deep", [compiled_walk.DEEP, 0], ids=["bits", "rows"])
@pytest.mark.parametrize("owners", [None, "some"])
@pytest.mark.parametrize("weights", [None, "some"])
def test_some_hundred_dense_rows(compiled, owners, weights, deep, monkeypatch):
    """Longer than a word of bits, with items in most rows, in many and in few."""
    monkeypatch.setattr(compiled_walk, "DEEP", deep)
    random = np.random.default_rng(5)
    held = random.random((333, 12)) < np.linspace(0.9, 0.05, 12)
    people = np.arange(333) // 3 if owners else np.arange(333)
    each = random.integers(1, 4, 333) if weights else np.ones(333, np.int64)
    rows = [np.flatnonzero(row)[::-1].tolist() for row in held]
    baskets = of(rows, 12, people if owners else None, each if weights else None)
    for sizes in (range(3, 4), range(2, 4), range(2, 6)):
        truth = {}
        for items in chain(*(combinations(range(12), size) for size in sizes)):
            having = np.unique(people[held[:, items].all(axis=1)])
            if len(having):
                truth[items] = int(each[having].sum())
        miner = Miner(baskets, sizes, compiled=compiled)
        highest = sorted(truth.values(), reverse=True)
        assert miner.best() == highest[0]
        for number in (1, 10, 50, len(highest), len(highest) + 1):
            assert miner.nth(number) == (*highest, 0)[number - 1]
        for level in (0, 20, 60):
            found, supports = miner.above(level)
            ordered = sorted(
                (-support, len(items), items) for items, support in truth.items() if support > level
            )
            assert [tuple(code for code in row if code >= 0) for row in found.tolist()] == [
                row[2] for row in ordered
            ]
            assert supports.tolist() == [-row[0] for row in ordered]


@both_walks
def test_a_row_of_many_items_holds_all_its_subsets(compiled):
    miner = Miner(of([list(range(16))], 16), range(1, 2**31), compiled=compiled)
    assert miner.histogram(0) == [(1, 2**16 - 1)]


def test_memory_does_not_grow_with_how_many_itemsets_there_are():
    Miner(of([[0, 1, 2]], 3), range(2, 9), compiled=True).histogram(
        0
    )  # compiled now, and not below
    miner = Miner(of([list(range(20))] * 3, 20), range(2, 2**31), compiled=True)
    tracemalloc.start()
    try:
        assert miner.histogram(0) == [(3, 2**20 - 21)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 2**20  # the supports alone would be 8 MB


def test_the_order_holds_for_the_largest_codes():
    top = 2**31 - 1
    columns = [np.array([0, 0, 0]), np.array([top, top, 0]) + 1, np.array([top, top - 1, top]) + 1]
    assert sort_rows(columns).tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    "sizes", [range(0, 2), range(3, 3), range(2, 8, 2), range(3, 1, -1), 2, [2, 3]]
)
def test_sizes_must_be_a_range_from_1_on(sizes):
    with pytest.raises(ParameterError, match="sizes"):
        Miner(of(SHOP, 5), sizes)


def test_supports_asked_for_must_be_whole():
    miner = Miner(of(SHOP, 5), range(2, 3))
    for call in (
        lambda: miner.at(0),
        lambda: miner.histogram(-1),
        lambda: miner.above(-1),
        lambda: miner.at(1.0),
    ):
        with pytest.raises(ParameterError):
            call()


def test_nothing_private_is_shown():
    miner = Miner(of(SHOP, 5), range(2, 4))
    miner.above(0)
    assert repr(miner) == "Miner(<private>)"
    for part in vars(miner).values():
        parts = part if isinstance(part, tuple) else (part,)
        assert all(
            "<private>" in repr(each)
            for each in parts
            if type(each).__module__.startswith("privmax")
        )


def run(program):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )


@pytest.mark.slow
def test_numba_is_loaded_only_where_it_is_used():
    run("import sys, privmax.itemsets.miner.window; assert 'numba' not in sys.modules")


@pytest.mark.slow
def test_without_numba_the_walk_in_numpy_is_taken():
    program = """
import sys
sys.modules["numba"] = None  # as if it were not installed
import numpy as np
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.miner.window import Miner
baskets = Baskets(np.array([0, 2, 4]), np.array([0, 1, 1, 0], np.int32), range(2))
assert Miner(baskets, range(2, 3)).best() == 2
try:
    Miner(baskets, range(2, 3), compiled=True).best()
except ModuleNotFoundError as error:
    assert error.name == "numba"
else:
    raise AssertionError
"""
    run(program)


@pytest.mark.slow
@pytest.mark.parametrize(("held", "loaded"), [(12, False), (11, True)])
def test_numba_is_loaded_only_where_rows_hold_many_itemsets(held, loaded):
    program = f"""
import sys
import numpy as np
from privmax.itemsets.miner import window
from privmax.itemsets.baskets import Baskets
window.WORTH_LOADING_NUMBA = {held} + 1  # four items, and at most 8 pairs in two rows
baskets = Baskets(np.array([0, 2, 4]), np.array([0, 1, 1, 0], np.int32), range(2))
assert window.Miner(baskets, range(2, 3)).histogram(0) == [(2, 1)]
assert ("numba" in sys.modules) is {loaded}
"""
    run(program)


def test_a_long_row_holds_more_than_a_float_can_say():
    assert estimate_work(np.array([0, 400]), 1 << 20) == np.inf
    assert estimate_work(np.array([0, 0, 3]), 2) == 9
    assert estimate_work(np.array([0]), 2) == 0


@both_walks
def test_more_itemsets_than_can_be_listed_are_an_error_and_not_a_stall(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty baskets of the same thirty items hold 2^30 itemsets of one support."""
    monkeypatch.setattr(ranks, "MOST", 1000)
    same = Baskets(np.arange(51) * 30, np.tile(np.arange(30, dtype=np.int32), 50), range(30))
    miner = Miner(same, range(1, 1 << 20), compiled=compiled)
    assert miner.best() == 50
    for ask in (lambda: miner.histogram(20), lambda: miner.at(50), lambda: miner.pick(50, 0)):
        with pytest.raises(WorkError, match=r"More than 1,000 itemsets .* Use smaller sizes"):
            ask()
    assert Miner(same, range(1, 2), compiled=compiled).histogram(20) == [(50, 30)]


@pytest.mark.slow
@pytest.mark.parametrize("together", [1, 7, 1 << 20])
@both_walks
def test_one_itemset_is_found_in_its_place_without_sorting_all(
    compiled: bool, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "TOGETHER", together)
    rng = np.random.default_rng(0)
    rows = [np.sort(rng.choice(9, rng.integers(1, 9), replace=False)) for _ in range(40)]
    offsets = np.cumsum([0, *map(len, rows)])
    held = Baskets(offsets, np.concatenate(rows).astype(np.int32), range(9))
    miner = Miner(held, range(1, 1 << 20), compiled=compiled)
    for support, number in miner.histogram(0):
        for index in {0, number // 3, number - 1}:
            one, same = miner.pick(support, index), miner.at(support)[index]
            assert one[one >= 0].tolist() == same[same >= 0].tolist()
