"""`top_itemsets`: what it releases where the answer is certain, what it refuses, and what it says
when it does.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from by_name import by_name

import privmax
from privmax import itemsets
from privmax.errors import DataError, ParameterError
from privmax.itemsets import METHODS, Layout, PrivBasis, top_itemsets
from privmax.itemsets.miner.window import Miner
from privmax.itemsets.mining import count_touched
from privmax.testing import SeededCoins

PRICE = {"epsilon": 1, "delta": "1e-6"}
BASKETS = (
    [["bread", "butter", "jam"]] * 300
    + [["bread", "butter"]] * 200
    + [["zorblax", "jam"]] * 40
    + [[]] * 10
)
PAIR, TRIPLE = ("bread", "butter"), ("bread", "butter", "jam")


@pytest.mark.parametrize(
    ("size", "found"),
    [
        (2, {PAIR}),
        (3, {TRIPLE}),
        ((2, 4), {PAIR}),
        (range(3, 9), {TRIPLE}),
        (1, {("bread",), ("butter",)}),
        ("any", {("bread",), ("butter",), PAIR}),
    ],
)
def test_the_best_itemset_of_a_size_is_released(size, found):
    release = top_itemsets(BASKETS, size=size, **PRICE)
    assert release.item in found
    assert (release.supports, release.privacy) == ((), privmax.Privacy(1, "1e-6"))
    assert type(release.mechanism).__name__ == "NestedMargin"


def test_all_that_fit_are_released_in_order():
    release = top_itemsets(BASKETS, size=2, k=3, epsilon=20, delta="1e-6")
    assert release.items[0] == PAIR
    assert set(release.items[1:]) == {("bread", "jam"), ("butter", "jam")}


WIDE = [[f"{n}a", f"{n}b", f"{n}c", f"{n}d"] for n in range(8) for _ in range(900)]
"""Eight groups of four that are always bought together: 32 items, 48 pairs, 32 triples, 8 fours."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "k"), [(1, 32), (2, 48), (4, 8), ((2, 4), 88), ((3, 3), 32), ("any", 120)]
)
@pytest.mark.parametrize("declared", [False, True])
def test_all_of_a_size_are_released_as_a_set(size, k, declared):
    items = sorted({item for basket in WIDE for item in basket}) if declared else "open"
    release = top_itemsets(WIDE, size=size, k=k, items=items, **PRICE)
    low, high = (1, 4) if size == "any" else (size, size) if isinstance(size, int) else size
    groups = [tuple(f"{n}{letter}" for letter in "abcd") for n in range(8)]
    assert set(release.items) == {
        one
        for group in groups
        for number in range(low, high + 1)
        for one in combinations(group, number)
    }
    assert release.requested == k
    assert type(release.mechanism).__name__ == ("Exponential" if release.ranked else "SetMargin")
    assert release.ranked or list(release.items) == sorted(release.items)
    assert declared or not release.ranked


@pytest.mark.parametrize("k", [50, 1000])
def test_a_thousand_sets_of_all_sizes_need_no_floor_and_no_room(k, monkeypatch):
    numbers = np.random.default_rng(3)
    baskets = [np.flatnonzero(numbers.random(40) < 0.6).tolist() for _ in range(400)]
    seen = []
    histogram = Miner.histogram

    def counted(self, above):
        found = histogram(self, above)
        seen.append(sum(number for _, number in found))
        return found

    monkeypatch.setattr(Miner, "histogram", counted)
    top_itemsets(baskets, size="any", k=k, **PRICE)  # each basket holds some ten million sets
    assert 2 * k + 201 <= max(seen) <= 5 * (2 * k + 201)


def test_a_size_that_nobody_has_is_no_answer():
    assert top_itemsets(BASKETS, size=4, **PRICE).items == ()
    assert top_itemsets([], **PRICE).item is None


def test_a_declared_universe_always_answers_and_may_name_what_nobody_has():
    drawn = {
        top_itemsets(
            [["a", "b"]], items=["a", "b", "c", "d"], epsilon=1, coins=SeededCoins(seed)
        ).item
        for seed in range(200)
    }
    assert drawn == {(x, y) for x in "abcd" for y in "abcd" if x < y}


def test_a_universe_of_numbers_is_declared_by_how_many():
    release = top_itemsets([[0, 2]] * 90, items=4, epsilon=1)
    assert (release.item, release.privacy.delta) == ((0, 2), 0)


def test_an_item_outside_the_universe_is_refused_without_naming_it():
    with pytest.raises(DataError) as caught:
        top_itemsets(BASKETS, items=["bread", "butter", "jam"], **PRICE)
    assert "zorblax" not in str(caught.value)


def test_users_count_once_whatever_they_buy():
    rows = [(basket, item, 7) for basket in range(900) for item in ("tent", "rope")]
    rows += [(1000 + user, item, 100 + user) for user in range(100) for item in ("bread", "butter")]
    frame = pd.DataFrame(rows, columns=["basket", "item", "user"])
    columns = {"basket": "basket", "item": "item"}
    assert by_name(top_itemsets, frame, **columns, **PRICE).item == ("rope", "tent")
    assert by_name(top_itemsets, frame, **columns, user="user", **PRICE).item == ("bread", "butter")


def test_an_itemset_needs_one_basket_that_holds_it():
    """A user with bread in one basket and butter in another does not have the pair."""
    rows = [
        (2 * user + place, item, user)
        for user in range(200)
        for place, item in enumerate(("bread", "butter"))
    ]
    frame = pd.DataFrame(rows, columns=["basket", "item", "user"])
    assert top_itemsets(frame, basket="basket", item="item", user="user", **PRICE).item is None


@pytest.mark.slow
def test_every_form_of_the_same_baskets_releases_the_same(tmp_path):
    numbers = [[0, 1, 2]] * 60 + [[0, 1]] * 3 + [[2, 3]] * 62 + [[]]
    dat = tmp_path / "baskets.dat"
    dat.write_text(
        "".join(" ".join(map(str, basket)) + "\n" for basket in numbers), encoding="utf-8"
    )
    wide = tmp_path / "wide.csv"
    wide.write_text(
        "".join(",".join(map(str, basket)) + "\n" for basket in numbers), encoding="utf-8"
    )
    flags = [[int(item in basket) for item in range(4)] for basket in numbers]
    long = pd.DataFrame(
        [(row, item) for row, basket in enumerate(numbers) for item in basket], columns=["b", "i"]
    )
    long.to_parquet(tmp_path / "long.parquet")
    forms = [
        (numbers, {}),
        (str(dat), {}),
        (dat, {}),
        (wide, {}),
        (scipy.sparse.csr_array(flags), {}),
        (pd.DataFrame(flags).astype(bool).set_axis([0, 1, 2, 3], axis=1), {}),
        (long, {"basket": "b", "item": "i"}),
        (tmp_path / "long.parquet", {"basket": "b", "item": "i"}),
    ]
    price = {"epsilon": "0.3", "delta": "0.2"}
    wanted = [top_itemsets(numbers, **price, coins=SeededCoins(seed)).item for seed in range(12)]
    assert len(set(wanted)) > 2
    for data, columns in forms:
        found = [
            by_name(top_itemsets, data, **price, **columns, coins=SeededCoins(seed)).item
            for seed in range(12)
        ]
        assert [item and tuple(map(int, item)) for item in found] == wanted


# Supports, floor, longest


def test_supports_are_noisy_and_their_price_is_added():
    release = top_itemsets(BASKETS, **PRICE, supports="0.5")
    assert release.privacy == privmax.Privacy("1.5", "1e-6")
    assert abs(release.supports[0] - 500) < 60  # scale 2: beyond with probability e^-30


@pytest.mark.slow
def test_the_noise_on_supports_has_the_scale_of_the_whole_list():
    """Two of at most k = 2 supports: scale 2 / 0.5 = 4, so one half of |noise| ≤ about 2.8."""
    data = [["a", "b"]] * 900 + [["c", "d"]] * 500
    options = {"k": 2, "epsilon": 50, "delta": "1e-6", "supports": "0.5"}
    noise = []
    for seed in range(400):
        release = by_name(top_itemsets, data, coins=SeededCoins(seed), **options)
        noise += [
            support - {("a", "b"): 900, ("c", "d"): 500}[item]
            for item, support in zip(release.items, release.supports, strict=True)
        ]
    assert len(noise) == 800
    spread = sum(map(abs, noise)) / len(noise)
    assert (
        3.4 < spread < 4.6
    )  # mean |noise| is about 4 with deviation 0.14; a scale of 2 or 8 is far outside


@pytest.mark.slow
def test_the_noise_on_supports_fits_the_list_of_a_mechanism_that_brings_its_own_length():
    data = [["a", "b"]] * 900 + [["c", "d"]] * 500
    mechanism = privmax.SharpMargin(epsilon=50, delta="1e-6", k=2)
    true = {("a", "b"): 900, ("c", "d"): 500}
    noise = []
    for seed in range(400):
        release = top_itemsets(data, mechanism=mechanism, supports="0.5", coins=SeededCoins(seed))
        noise += [
            found - true[item] for item, found in zip(release.items, release.supports, strict=True)
        ]
    assert len(noise) == 800
    assert 3.4 < sum(map(abs, noise)) / len(noise) < 4.6  # scale 2 / 0.5, as above


def test_a_bound_on_baskets_is_checked_also_beside_a_mechanism_made_for_it():
    mechanism = privmax.NestedMargin(**PRICE, growth=1)
    assert top_itemsets([["a", "b"]] * 90, mechanism=mechanism, layout=Layout(longest=2)).item == (
        "a",
        "b",
    )
    with pytest.raises(DataError, match="A basket has more items than longest allows"):
        top_itemsets(BASKETS, mechanism=mechanism, layout=Layout(longest=2))


def test_nothing_released_costs_the_supports_all_the_same():
    release = top_itemsets([["a", "b"]], **PRICE, supports=1)
    assert (release.items, release.supports, release.privacy.epsilon) == ((), (), 2)


def test_a_floor_counts_what_is_below_it_as_nothing():
    assert top_itemsets(BASKETS, size=2, **PRICE, layout=Layout(floor=450)).item == PAIR
    assert top_itemsets(BASKETS, size=2, **PRICE, layout=Layout(floor=500)).item is None
    release = top_itemsets(BASKETS, size=2, supports="0.5", **PRICE, layout=Layout(floor=450))
    assert abs(release.supports[0] - 500) < 60


def test_the_estimate_of_the_best_is_a_support_though_there_is_a_floor():
    mechanism = privmax.LargeMargin(epsilon=5, delta="1e-3")
    release = top_itemsets([["a", "b"]] * 900, mechanism=mechanism, layout=Layout(floor=300))
    assert abs(release.diagnostics["max_estimate"] - 900) < 100


def test_a_bound_on_baskets_is_passed_on_as_how_many_itemsets_one_touches():
    assert top_itemsets(BASKETS, **PRICE, layout=Layout(longest=3)).mechanism.growth == 3
    assert (
        top_itemsets(BASKETS, size=(2, 3), **PRICE, layout=Layout(longest=4)).mechanism.growth
        == 6 + 4
    )
    assert (count_touched(5, "any"), count_touched(2, 3), count_touched(10, 2)) == (31, 1, 45)


# Methods


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_selectable_and_finds_a_clear_winner(name):
    data = [[0, 1]] * 3000 + [[2]] * 500
    found = Counter(
        top_itemsets(
            data, items=4, mechanism=METHODS[name](epsilon=4), coins=SeededCoins(seed)
        ).item
        for seed in range(5)
    )
    assert found.most_common(1)[0][0] == (0, 1)


def test_a_method_says_what_it_costs():
    release = top_itemsets([[0, 1]] * 300, items=4, mechanism=PrivBasis(epsilon="0.7"))
    assert release.privacy == privmax.Privacy("0.7", 0)
    assert len(release.supports) == len(release.items)


# Refusals

SECRET = [["zorblax", "quuxley"]] * 7

REFUSED = {
    "size 0": ({"size": 0, **PRICE}, "size=0"),
    "size by halves": ({"size": 2.5, **PRICE}, "size=2.5"),
    "sizes in the wrong order": ({"size": (4, 2), **PRICE}, r"size=\(4, 2\)"),
    "truth": ({"size": True, **PRICE}, "size=True"),
    "many": ({"size": "many", **PRICE}, "size='many'.*For example 2"),
    "k 0": ({"k": 0, **PRICE}, "k=0"),
    "no price": ({}, "epsilon is required"),
    "no delta": ({"epsilon": 1}, "an open universe needs a delta above 0"),
    "floor": ({"floor": -1, **PRICE}, "floor=-1"),
    "supports": ({"supports": 0, **PRICE}, "supports=0"),
    "longest": ({"longest": 0, **PRICE}, "longest=0"),
    "longest and user": ({"longest": 3, "user": "u", **PRICE}, "a user may have several"),
    "longest and mechanism": (
        {"longest": 3, "mechanism": privmax.NestedMargin(**PRICE)},
        "growth=3 is not allowed: the mechanism already",
    ),
    "items": ({"items": "zoo", **PRICE}, "items='zoo'"),
    "method in an open universe": (
        {"mechanism": PrivBasis(epsilon=1)},
        "PrivBasis needs all items",
    ),
    "method and price": (
        {"mechanism": PrivBasis(epsilon=1), "items": 4, "epsilon": 1},
        "epsilon=1.*PrivBasis",
    ),
    "users are items": (
        {"basket": "b", "item": "a", "user": "a", **PRICE},
        "user='a'.*is given as item",
    ),
    "items are baskets": (
        {"basket": ["shop", "a"], "item": "a", **PRICE},
        "item='a'.*is given as basket",
    ),
    "columns of a list": ({"basket": "b", **PRICE}, "basket='b'"),
}


@pytest.mark.parametrize(("options", "says"), REFUSED.values(), ids=REFUSED)
def test_options_that_cannot_be_met_are_refused(options, says):
    with pytest.raises(ParameterError, match=says) as caught:
        by_name(top_itemsets, SECRET, **options)
    assert not re.search("zorblax|quuxley", str(caught.value))


def test_a_basket_that_is_too_long_is_refused():
    with pytest.raises(DataError, match="A basket has more items than longest allows") as caught:
        top_itemsets(SECRET, **PRICE, layout=Layout(longest=1))
    assert "zorblax" not in str(caught.value)


def test_nothing_private_is_shown():
    from privmax.itemsets.baskets import Baskets
    from privmax.itemsets.reading.forms import read_baskets
    from privmax.itemsets.source import ItemsetSource

    rows = read_baskets(SECRET)
    assert isinstance(rows, Baskets)
    source = ItemsetSource(rows, rows.labels, range(2, 3), closed=False)
    assert [repr(rows), repr(source)] == ["Baskets(<private>)", "ItemsetSource(<private>)"]


def test_the_package_is_an_attribute():
    assert privmax.itemsets is itemsets
    assert "itemsets" in privmax.__all__
    with pytest.raises(AttributeError, match="no attribute 'itemset'"):
        _ = privmax.itemset


@pytest.mark.slow
def test_the_competitors_are_loaded_only_where_one_is_named():
    program = """
import sys, privmax.itemsets
privmax.itemsets.top_itemsets([[1, 2]] * 9, epsilon=1, delta="0.1")
assert "privmax.itemsets.published" not in sys.modules
assert privmax.itemsets.PrivBasis.__module__ in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
