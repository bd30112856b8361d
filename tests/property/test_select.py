"""What a selection may not depend on: names, order, container, a common shift; and what auto may
not look at.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from by_name import by_name
from hypothesis import given, settings
from hypothesis import strategies as st

import privmax
from privmax import Exponential, LargeMargin, PermuteAndFlip, SharpMargin
from privmax.testing import SeededCoins

pytestmark = pytest.mark.slow

FRUIT = ("apple", "pear", "fig", "plum", "quince", "medlar", "cherry")
MECHANISMS = (
    PermuteAndFlip(epsilon="0.5"),
    Exponential(epsilon="0.5"),
    SharpMargin(epsilon="0.5", delta="0.01"),
    LargeMargin(epsilon=2, delta="0.01"),
)
every_mechanism = pytest.mark.parametrize(
    "mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__
)
slow = settings(deadline=None, max_examples=40)  # a busy machine is no failure

scores = st.lists(st.integers(-20, 60), min_size=1, max_size=len(FRUIT))
seeds = st.integers(0, 10**6)
extras = st.integers(0, 1000)


def named(values, names=FRUIT):
    return dict(zip(names, values, strict=False))


@pytest.mark.slow
@every_mechanism
@slow
@given(scores, extras)
def test_a_law_adds_up_to_one_and_never_favours_the_lower_score(mechanism, values, extra):
    everyone = range(len(values) + extra)
    for data, labels, universe in (
        (named(values), FRUIT[: len(values)], len(values)),
        (named(values), FRUIT, FRUIT),
        (values, everyone, everyone),
    ):
        chances = privmax.law(data, mechanism=mechanism, universe=universe)
        assert set(chances) == {*labels, None}
        assert sum(chances.values()) == pytest.approx(1, abs=1e-9)
        assert min(chances.values()) >= 0
        full = dict.fromkeys(labels, 0) | named(values, labels)
        for low, high in pairwise(sorted(full, key=full.__getitem__)):
            assert chances[low] <= chances[high] + 1e-12
            assert full[low] < full[high] or chances[low] == chances[high]


@pytest.mark.slow
@every_mechanism
@slow
@given(scores, extras)
def test_a_law_by_size_counts_those_beyond_the_list_as_no_answer(mechanism, values, extra):
    size = len(values) + extra
    short = privmax.law(values, mechanism=mechanism, universe=size)
    full = privmax.law(values, mechanism=mechanism, universe=range(size))
    assert set(short) == {*range(len(values)), None}
    assert all(short[place] == full[place] for place in range(len(values)))
    beyond = sum(full[place] for place in range(len(values), size))
    assert short[None] == pytest.approx(full[None] + beyond, abs=1e-9)


@pytest.mark.slow
@every_mechanism
@slow
@given(scores, extras, st.randoms(use_true_random=False))
def test_the_law_of_a_label_depends_on_its_score_and_not_on_its_name_or_place(
    mechanism, values, extra, random
):
    order = random.sample(range(len(values)), len(values))
    names = random.sample(FRUIT, len(values))
    here = privmax.law(values, mechanism=mechanism, universe=len(values) + extra)
    everyone = [*names, *range(extra)]
    random.shuffle(everyone)
    there = privmax.law(
        {names[place]: values[place] for place in order}, mechanism=mechanism, universe=everyone
    )
    beyond = {label: chance for label, chance in there.items() if label not in names}
    assert {name: there[name] for name in names} == pytest.approx(
        {names[place]: here[place] for place in order}, abs=1e-12
    )
    assert sum(beyond.values()) == pytest.approx(here[None], abs=1e-9)
    assert len({chance for label, chance in beyond.items() if label is not None}) <= 1


@pytest.mark.slow
@every_mechanism
@slow
@given(scores, seeds)
def test_renaming_the_candidates_renames_the_release(mechanism, values, seed):
    options = {"mechanism": mechanism, "universe": len(values)}
    here = by_name(privmax.select, named(values), coins=SeededCoins(seed), **options)
    there = by_name(privmax.select, values, coins=SeededCoins(seed), **options)
    assert here.item == FRUIT[there.item] if there.items else here.items == ()
    assert here.diagnostics == there.diagnostics


@pytest.mark.slow
@every_mechanism
@slow
@given(scores, seeds, st.integers(-(10**30), 10**30))
def test_a_common_shift_of_a_full_universe_changes_nothing_but_the_estimate(
    mechanism, values, seed, shift
):
    options = {"mechanism": mechanism, "universe": len(values)}
    here = by_name(privmax.select, values, coins=SeededCoins(seed), **options)
    there = by_name(
        privmax.select, [value + shift for value in values], coins=SeededCoins(seed), **options
    )
    assert here.items == there.items
    moved = {
        name: value + shift if name == "max_estimate" else value
        for name, value in here.diagnostics.items()
    }
    assert moved == there.diagnostics


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", MECHANISMS[:3], ids=lambda mechanism: type(mechanism).__name__
)
@slow
@given(scores, st.integers(1, 10**6))
def test_only_scores_in_units_of_the_sensitivity_matter(mechanism, values, scale):
    """But for the paper's mechanism, whose noise is finer on a finer grid."""
    here = privmax.law(values, mechanism=mechanism, universe=len(values))
    finer = [value * scale for value in values]
    there = privmax.law(
        finer, mechanism=mechanism, universe=len(values), scores=privmax.Scores(sensitivity=scale)
    )
    # A window is a whole number of steps, so clipping may differ by the little that every window
    # may lose.
    assert here == pytest.approx(there, abs=1e-6)


@pytest.mark.slow
@every_mechanism
@slow
@given(scores, seeds)
def test_an_array_a_list_and_a_mapping_release_the_same(mechanism, values, seed):
    size = len(values) + 2
    releases = [
        privmax.select(data, coins=SeededCoins(seed), mechanism=mechanism, universe=universe)
        for data, universe in (
            (dict(enumerate(values)), range(size)),
            (dict(enumerate([*values, 0, 0])), size),
            (values, range(size)),
            (values, size),
            (tuple(values), size),
            (np.array(values), size),
            (np.array(values, np.int8), size),
            (np.array(values, ">i4"), size),
        )
    ]
    assert all(release == releases[0] for release in releases)


@pytest.mark.slow
@every_mechanism
@slow
@given(scores, seeds, extras)
def test_those_beyond_a_list_are_released_as_if_they_had_been_listed_with_zero(
    mechanism, values, seed, extra
):
    """Same candidate, same name, same coins: whether an entry is there makes no difference at
    all.
    """
    options = {"mechanism": mechanism, "universe": len(values) + extra}
    short = by_name(privmax.select, values, coins=SeededCoins(seed), **options)
    padded = by_name(privmax.select, values + [0] * extra, coins=SeededCoins(seed), **options)
    assert short == padded
    assert short.item is None or short.item in range(len(values) + extra)


@slow
@given(scores, seeds, st.integers(0, 5), st.integers(1, 12))
def test_a_ranking_names_those_beyond_a_list_as_if_they_had_been_listed_with_zero(
    values, seed, extra, k
):
    size = len(values) + extra
    options = {"epsilon": "0.5", "universe": size, "k": min(k, size)}
    short = by_name(privmax.select, values, coins=SeededCoins(seed), **options)
    padded = by_name(privmax.select, values + [0] * extra, coins=SeededCoins(seed), **options)
    assert short == padded
    assert len(set(short.items)) == len(short.items) == options["k"]
    assert set(short.items) <= set(range(size))


@slow
@given(scores, scores, st.integers(1, 10**9))
def test_labels_with_a_size_beyond_them_are_refused_in_the_same_words_whatever_they_are(
    here, there, extra
):
    said = set()
    for data in (named(here), named(there, FRUIT[::-1]), dict(enumerate(here))):
        with pytest.raises(privmax.ParameterError) as caught:
            privmax.select(data, epsilon=1, universe=len(FRUIT) + extra)
        said.add((str(caught.value), caught.value.args))
    assert len(said) == 1
    assert not any(name in str(said) for name in FRUIT)


@slow
@given(scores, seeds, st.sampled_from([1, "0.25", 8]))
def test_whole_floats_on_a_grid_of_one_are_the_integers(values, seed, epsilon):
    options = {"epsilon": epsilon, "universe": len(values) + 3, "neighbors": "replace"}
    # on a grid of its own size one individual counts for two steps, of which one is for rounding
    whole = by_name(
        privmax.select,
        values,
        coins=SeededCoins(seed),
        **options,
        scores=privmax.Scores(sensitivity=2),
    )
    floats = [float(value) for value in values]
    rounded = by_name(
        privmax.select,
        floats,
        coins=SeededCoins(seed),
        **options,
        scores=privmax.Scores(sensitivity=1, resolution=1),
    )
    assert whole == rounded


@slow
@given(
    scores,
    scores,
    st.sampled_from(["0", "1e-6", "0.01", "0.3"]),
    st.sampled_from(["open", 7, 100, 10**9, 10**15]),
)
def test_the_mechanism_chosen_does_not_depend_on_the_scores(here, there, delta, universe):
    if universe == "open" and delta == "0":
        delta = "1e-9"
    options = {"epsilon": 1, "delta": delta, "universe": universe}
    chosen = privmax.auto(epsilon=1, delta=delta, universe=universe)
    for values in (here, there):
        release = by_name(privmax.select, values, **options)
        assert (release.mechanism, release.why) == chosen


@pytest.mark.slow
@slow
@given(scores, seeds, extras)
def test_a_release_is_a_label_or_nothing(values, seed, extra):
    data = named(values)
    size = len(values) + extra
    for private, universe, allowed in (
        (data, "open", {*data, None}),
        (values, "open", {*range(len(values)), None}),
        (data, len(values), {*data}),
        (data, FRUIT, {*FRUIT}),
        (values, size, {*range(size), None}),
    ):
        release = privmax.select(
            private, epsilon="0.1", delta="0.01", universe=universe, coins=SeededCoins(seed)
        )
        assert release.item in allowed
        assert release.items == (() if release.item is None else (release.item,))
        assert release.privacy.epsilon * 10 == 1
        assert release.privacy.delta * 100 <= 1


@slow
@given(scores)
def test_no_label_that_stands_at_or_below_the_unlisted_is_released_from_an_open_universe(values):
    data = named(values)
    chances = privmax.law(data, mechanism=SharpMargin(epsilon=1, delta="0.1"))
    assert all(chances[name] == 0 for name, value in data.items() if value <= 0)
    assert all(
        chances[name] > 0 for name, value in data.items() if value > 0 and value == max(values)
    )
