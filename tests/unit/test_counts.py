"""Noisy counts of what is released, where no noise is left: with an enormous epsilon the counts are
the true ones. What they cost, and what is refused.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from by_name import by_name

import privmax
from privmax import Exponential, GapTest, NestedMargin, Privacy, SetMargin
from privmax.counts import (
    MANY,
    DiscreteGaussian,
    DiscreteLaplace,
    SharedGaussian,
    choose_noise,
    read_noise,
)
from privmax.errors import ParameterError, UnsupportedError
from privmax.learning import PrivateERM, Stumps, select_model
from privmax.learning.classes.contract import Shape
from privmax.learning.source import HypothesisSource
from privmax.mechanisms.contract import Outcome
from privmax.noise import bulk
from privmax.relative import RelativeLaplace
from privmax.sources.memory import MemorySource
from privmax.testing import SeededCoins

PRICE = {"epsilon": 1, "delta": "1e-6"}
EXACT = 10**9
"""At so large an epsilon the noise is 0, but for one case in e^1000."""

PEOPLE = {"tea": 900, "milk": 700, "rice": 500, "salt": 3}

pytestmark = pytest.mark.filterwarnings("ignore::privmax.errors.PrivacyWarning")


def told(release):
    return dict(zip(release.items, release.counts, strict=True))


def test_counts_are_those_of_the_items_in_their_order():
    release = privmax.select(PEOPLE, k=3, counts=EXACT, **PRICE)
    assert release.items == ("milk", "rice", "tea")
    assert release.counts == (700, 500, 900)
    assert not release.ranked
    ranked = privmax.select(PEOPLE, k=2, epsilon=100, delta="1e-6", ranked=True, counts=EXACT)
    assert (ranked.items, ranked.counts) == (("tea", "milk"), (900, 700))


def test_without_counts_nothing_changes():
    release = privmax.select(PEOPLE, **PRICE)
    assert (release.counts, release.noise, release.error) == ((), None, None)
    assert release.privacy == Privacy(1, "1e-6")
    assert release.to_dict()["counts"] == []
    assert release.to_dict()["error"] is None
    assert privmax.select(PEOPLE, **PRICE, coins=SeededCoins(1)) == privmax.select(
        PEOPLE, **PRICE, coins=SeededCoins(1)
    )


def test_items_are_the_same_with_counts_and_without():
    plain = privmax.select(PEOPLE, k=3, **PRICE, coins=SeededCoins(7))
    counted = privmax.select(PEOPLE, k=3, counts="0.2", **PRICE, coins=SeededCoins(7))
    assert counted.items == plain.items
    assert len(counted.counts) == len(counted.items)


@pytest.mark.parametrize("universe", [["tea", "milk", "rice", "salt", "jam"], 4])
def test_everybody_in_a_closed_universe_has_a_true_count(universe):
    """Also who stands below what a mechanism saw, and who is not listed."""
    mechanism = Exponential(epsilon="0.001", k=3)
    seen = set()
    for seed in range(12):
        release = privmax.select(
            PEOPLE, mechanism=mechanism, universe=universe, counts=EXACT, coins=SeededCoins(seed)
        )
        assert told(release) == {item: PEOPLE.get(item, 0) for item in release.items}
        seen |= set(release.items)
    assert seen == (set(PEOPLE) if universe == 4 else set(universe))


def test_positions_beyond_a_list_count_zero():
    scores = [7, 0, 5]
    for seed in range(6):
        release = privmax.select(
            scores, epsilon="0.01", k=2, universe=6, counts=EXACT, coins=SeededCoins(seed)
        )
        assert told(release) == {at: (scores[at] if at < 3 else 0) for at in release.items}


@pytest.mark.parametrize("kind", [np.int64, np.float32, object])
def test_who_is_drawn_below_the_window_has_a_count_of_its_own(kind):
    scores = np.array([5, -3, 2, 9], kind)
    source = MemorySource(scores, universe=6)
    outcomes = [Outcome(5, 0), Outcome(2, 0, True), Outcome(2, 1, True), Outcome(2, 2, True)]
    assert source.names(outcomes) == [0, 1, 2, 4]
    assert source.counts(outcomes) == [5, -3, 2, 0]


def test_counts_of_a_grid_are_in_units_of_the_scores():
    ratings = {"tent": 812.5, "lamp": 640.25, "stove": 12.0}
    options = {"sensitivity": "0.5", "neighbors": "replace", **PRICE}
    exact = by_name(privmax.select, ratings, counts=10**12, **options)
    assert told(exact) == {"tent": 812.5}
    noisy = by_name(privmax.select, ratings, counts=1, **options)
    assert noisy.noise == DiscreteLaplace(scale=Fraction(65, 128), step=Fraction(1, 128))
    assert noisy.error == pytest.approx(1.5234375, abs=0.01)
    assert noisy.counts[0] * 128 == int(noisy.counts[0] * 128)
    assert noisy.describe_counts()[0].endswith(f" ± {noisy.error:.6g} (95 %)")


def test_ready_scores_of_a_larger_sensitivity_get_as_much_more_noise():
    release = privmax.select(PEOPLE, counts=1, **PRICE, scores=privmax.Scores(sensitivity=7))
    assert release.noise == DiscreteLaplace(scale=7)


def test_weights_get_noise_for_their_bound():
    frame = pd.DataFrame({"what": ["tea"] * 400, "who": range(400), "cups": [3] * 400})
    columns = {"item": "what", "user": "who", "weight": "cups", "bound": 4}
    release = by_name(privmax.select, frame, counts=1, **columns, **PRICE)
    assert release.noise == DiscreteLaplace(scale=4)
    assert told(by_name(privmax.select, frame, counts=EXACT, **columns, **PRICE)) == {"tea": 1200}


@pytest.mark.slow
def test_counts_of_a_table_also_below_the_window():
    frame = pd.DataFrame({"what": ["tea"] * 60 + ["milk"] * 30, "who": [*range(60), *range(30)]})
    options = {"item": "what", "user": "who", "counts": EXACT}
    assert told(by_name(privmax.select, frame, k=2, epsilon=30, delta="1e-6", **options)) == {
        "milk": 30,
        "tea": 60,
    }
    everybody = ["jam", "milk", "rice", "tea"]
    true = {"tea": 60, "milk": 30, "jam": 0, "rice": 0}
    seen = set()
    for seed in range(4):
        release = by_name(
            privmax.select,
            frame,
            mechanism=Exponential(epsilon="0.01", k=2),
            universe=everybody,
            coins=SeededCoins(seed),
            **options,
        )
        assert told(release) == {item: true[item] for item in release.items}
        seen |= set(release.items)
    assert seen & {"jam", "rice"}


def test_supports_are_counts_also_up_to_the_floor_and_below_the_window():
    baskets = [["a", "b"]] * 500 + [["b", "c"]] * 90
    high = privmax.top_itemsets(
        baskets, supports=EXACT, **PRICE, layout=privmax.itemsets.Layout(floor=200)
    )
    assert told(high) == {("a", "b"): 500}
    assert high.supports == high.counts
    true = {("a", "b"): 500, ("b", "c"): 90}
    for seed in range(6):
        release = privmax.top_itemsets(
            baskets,
            mechanism=Exponential(epsilon="0.001", k=3),
            items=["a", "b", "c", "d"],
            supports=EXACT,
            coins=SeededCoins(seed),
            layout=privmax.itemsets.Layout(floor=100),
        )
        assert told(release) == {item: true.get(item, 0) for item in release.items}


def test_the_price_covers_both_and_counts_use_a_delta_only_where_they_need_it():
    few = privmax.select(PEOPLE, k=3, counts="0.2", **PRICE)
    assert few.privacy == Privacy("1.2", "1e-6")
    assert few.counts_privacy == Privacy("0.2")
    assert few.noise == DiscreteLaplace(scale=15)
    many = privmax.select(PEOPLE, k=20, counts="0.2", **PRICE)
    assert many.privacy == Privacy("1.2", "2e-6")
    assert many.counts_privacy == Privacy("0.2", "1e-6")
    assert many.noise == choose_noise(Privacy("0.2", "1e-6"), k=20).noise
    assert isinstance(many.noise, SharedGaussian)
    assert many.to_dict()["privacy"] == {"epsilon": "1.2", "delta": "2e-06"}


def test_counts_may_use_the_delta_that_was_given_where_the_items_do_not():
    """The universe is small, so the items take no delta."""
    universe = range(40)
    release = privmax.select([9] * 40, k=20, universe=40, counts=1, **PRICE)
    assert release.mechanism.privacy().delta in (0, Fraction(1, 10**6))
    assert release.counts_privacy == Privacy(1, "1e-6")
    pure = privmax.select([9] * 40, k=20, universe=len(universe), epsilon=1, counts=1)
    assert (pure.privacy, type(pure.noise)) == (Privacy(2), DiscreteLaplace)


def test_noise_is_for_all_that_were_asked_for_whatever_number_came():
    one, none = {"tea": 900}, {"tea": 1}
    for data, number in ((PEOPLE, 3), (one, 1), (none, 0)):
        release = privmax.select(data, k=30, counts=1, **PRICE, coins=SeededCoins(1))
        assert len(release.counts) == len(release.items) == number
        assert release.noise == choose_noise(Privacy(1, "1e-6"), k=30).noise
        assert release.privacy == Privacy(2, "2e-6")


def test_a_record_that_touches_few_needs_less_noise():
    options = {"k": 30, "counts": 1, **PRICE}
    assert by_name(
        privmax.select, PEOPLE, **options, scores=privmax.Scores(growth=2)
    ).noise == DiscreteLaplace(scale=2)
    moved = by_name(
        privmax.select, PEOPLE, **options, scores=privmax.Scores(growth=2, neighbors="replace")
    )
    assert moved.noise == DiscreteLaplace(scale=4)
    baskets = privmax.top_itemsets(
        [["a", "b"]] * 900, supports=1, k=30, **PRICE, layout=privmax.itemsets.Layout(longest=2)
    )
    assert baskets.noise == DiscreteLaplace(scale=1)


def test_a_mechanism_brings_its_own_k_growth_relation_and_delta():
    gap = privmax.select(PEOPLE, mechanism=GapTest(epsilon=1, delta="1e-6", k=2), counts=1)
    assert gap.noise == DiscreteLaplace(scale=2)
    nested = NestedMargin(epsilon=1, delta="1e-6", neighbors="replace", growth=3)
    assert privmax.select(PEOPLE, mechanism=nested, counts=1).noise == DiscreteLaplace(scale=1)
    many = SetMargin(epsilon=1, delta="1e-6", k=50)
    assert privmax.select(PEOPLE, mechanism=many, counts=1).counts_privacy == Privacy(1, "1e-6")


@pytest.mark.parametrize("wrong", [0, -1, "abc", float("nan"), "0.2 %", True])
def test_a_price_that_is_none_is_refused(wrong):
    with pytest.raises(ParameterError, match=r"^counts="):
        privmax.select(PEOPLE, counts=wrong, **PRICE)


def test_an_order_by_noisy_count_is_not_called_ranked():
    release = privmax.select(PEOPLE, k=3, counts=EXACT, **PRICE)
    assert release.ranked is False
    assert release.to_dict()["ranked"] is False


def test_learning_has_no_counts():
    X = np.arange(10.0).reshape(-1, 1)
    with pytest.raises(TypeError, match="counts"):
        PrivateERM(Stumps(low=0, high=10), epsilon=1, labels=[0, 1], counts=1)
    with pytest.raises(TypeError, match="counts"):
        select_model({"all": lambda rows: rows[:, 0] > 0}, X, X[:, 0] > 5, epsilon=1, counts=1)
    shape, stumps = Shape(features=1, labels=2), Stumps(low=0, high=10, cells=2)
    scores = stumps.score(X, (X[:, 0] > 5).astype(int), shape)
    with pytest.raises(UnsupportedError, match="no counts"):
        HypothesisSource(scores, stumps, shape).counts([Outcome(1)])


def test_published_methods_take_no_price_for_supports():
    with pytest.raises(ParameterError, match="supports=1 is not allowed: PrivBasis does not take"):
        privmax.top_itemsets(
            [["a", "b"]], mechanism="priv-basis", items=["a", "b"], epsilon=1, supports=1
        )


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(scale="1/3", step="0.25"), DiscreteGaussian(sigma="12.5")], ids=repr
)
def test_noise_is_written_down_and_read_exactly(noise):
    assert read_noise(noise.to_dict()) == noise


@pytest.mark.parametrize(
    ("noise", "name"),
    [
        (DiscreteLaplace(scale=5), "discrete_laplace"),
        (DiscreteGaussian(sigma=5), "discrete_gaussian"),
    ],
)
def test_noise_is_drawn_in_bulk_from_where_there_are_many_counts(monkeypatch, noise, name):
    numbers = []
    drawn = getattr(bulk, name)

    def note(scale, number, coins):
        numbers.append(number)
        return drawn(scale, number, coins)

    monkeypatch.setattr(bulk, name, note)
    for number in (1, MANY, MANY + 1):
        assert len(noise.draw_all(number, SeededCoins(1))) == number
    assert numbers == [MANY + 1]


def test_a_notebook_shows_counts_with_their_error():
    release = privmax.select(PEOPLE, counts="0.2", **PRICE)
    assert f"tea: {release.counts[0]:,} ± 15 (95 %)" in release._repr_html_()


@pytest.mark.parametrize("counts", ["1e30", "1e300"])
def test_a_price_at_which_noise_is_nothing_needs_no_gaussian(counts):
    release = privmax.select({"a": 9, "b": 8}, epsilon=1, delta=1e-6, k=20, counts=counts)
    assert release.noise == DiscreteLaplace(scale=20 / Fraction(counts))
    assert release.counts_privacy == Privacy(counts)


@pytest.mark.parametrize("kind", [RelativeLaplace, DiscreteLaplace])
def test_noise_wider_than_a_first_precision_has_an_error(kind):
    """It was looked for without end."""
    near, far = (kind(scale=10**digits).error() for digits in (9, 60))
    assert far / 10**60 == pytest.approx(near / 10**9)
