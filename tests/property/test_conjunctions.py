"""Conjunctions and disjunctions against every hypothesis of small classes."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privmax.learning.classes.conjunctions import Conjunctions, Disjunctions
from privmax.learning.classes.contract import Shape
from privmax.learning.classes.covers import compiled_walk, numpy_walk
from privmax.learning.classes.covers import search as search_module
from privmax.learning.classes.covers.order import ConjunctionOrder
from privmax.learning.classes.covers.search import Covers

patient = settings(deadline=None)  # a busy machine is no failure
both_walks = pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "numba"])
both_classes = pytest.mark.parametrize("kind", [Conjunctions, Disjunctions])


@st.composite
def problems(draw):
    """A class small enough to list, and data: few different rows, so that scores tie, and sometimes
    many of each.
    """
    boolean = draw(st.booleans())
    features = draw(st.integers(0, 6 if boolean else 4))
    literals = draw(st.integers(0, 7 if boolean else 4))
    options = {}
    if not boolean:
        cuts = st.lists(st.integers(0, 3), max_size=2, unique=True).map(sorted)
        options["thresholds"] = [draw(cuts) for _ in range(features)]
    value = st.integers(0, 1 if boolean else 4)
    rows = draw(st.lists(st.tuples(st.integers(0, 1), *[value] * features), max_size=25))
    table = np.array(rows, np.int64).reshape(len(rows), features + 1)
    times = draw(st.sampled_from([1, 1, 70]))
    table = np.repeat(table, [draw(st.integers(1, times)) for _ in rows], axis=0)
    return literals, options, table[:, 1:], table[:, 0]


def every_score(hypotheses, X, y, shape):
    rules = (hypotheses.hypothesis(number, shape) for number in range(hypotheses.size(shape)))
    return np.array([np.count_nonzero(rule.predict(X) == y) for rule in rules])


def search(hypotheses, X, y, shape, compiled):
    """The search with a walk of the test's choosing."""
    with patch.object(
        search_module, "_choose_walk", lambda *_: compiled_walk if compiled else numpy_walk
    ):
        return hypotheses.score(X, y, shape)


@pytest.mark.slow
@both_walks
@both_classes
@patient
@given(
    problem=problems(),
    span=st.sampled_from([1, 4, 128]),
    most=st.sampled_from([0, 2, 2048]),
    data=st.data(),
)
def test_every_answer_is_that_of_all_scores(kind, compiled, problem, span, most, data):
    literals, options, X, y = problem
    hypotheses, shape = kind(literals, **options), Shape(X.shape[1], 2)
    scores = every_score(hypotheses, X, y, shape)
    with patch.object(search_module, "_SPAN", span), patch.object(compiled_walk, "MOST", most):
        scored = search(hypotheses, X, y, shape, compiled)
        top = int(scores.max())
        assert scored.maximum() == top
        interesting = sorted({0, top, *scores.tolist(), *(scores - 1).clip(0).tolist()})
        for above in data.draw(st.lists(st.sampled_from(interesting), max_size=6)):
            counted = Counter(scores[scores > above].tolist())
            assert scored.histogram(above) == sorted(counted.items(), reverse=True)
        score = data.draw(st.sampled_from(interesting))
        for find, hits in (
            (scored.at, np.flatnonzero(scores == score)),
            (scored.at_or_below, np.flatnonzero(scores <= score)),
        ):
            ask = data.draw(st.lists(st.integers(0, max(len(hits) - 1, 0)), max_size=5))
            assert [find(score, index) for index in ask] == (
                hits[ask].tolist() if len(hits) else [None] * len(ask)
            )
            assert find(score, len(hits)) is None


@pytest.mark.slow
@both_walks
@patient
@given(problem=problems())
def test_each_number_is_found_once(compiled, problem):
    literals, options, X, y = problem
    hypotheses, shape = Conjunctions(min(literals, 3), **options), Shape(X.shape[1], 2)
    scored = search(hypotheses, X, y, shape, compiled)
    found = []
    for score, count in scored.histogram(0):
        found += [scored.at(score, index) for index in range(min(count, 40))]
        assert len(set(found)) == len(found)
    median = sorted(every_score(hypotheses, X, y, shape).tolist())[hypotheses.size(shape) // 2]
    hits = np.flatnonzero(every_score(hypotheses, X, y, shape) <= median)[:40]
    assert [scored.at_or_below(median, index) for index in range(len(hits))] == hits.tolist()


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    literals=st.integers(1, 3),
    share=st.sampled_from([0.02, 0.3, 0.5, 0.98]),
)
def test_both_walks_agree_on_many_columns(seed, literals, share):
    """More columns than a word has bits, more rows than are turned over at once."""
    rng = np.random.default_rng(seed)
    cuts = rng.integers(0, (60, 40, 14)[literals - 1], rng.integers(1, 10)).tolist()
    order = ConjunctionOrder.of(literals, cuts)
    words = -(-len(order.after) // 64)
    positives, negatives = (
        rng.random((rng.integers(0, 700), 64 * words)) < share for _ in range(2)
    )
    packed = [
        np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
        for bits in (positives, negatives)
    ]
    plain, fast = (Covers(order, *packed, compiled=compiled) for compiled in (False, True))
    best = fast.maximum()
    assert plain.maximum() == best
    for width in (1, 9, 40):
        above = max(best - width, 0)
        levels = fast.histogram(above)
        assert plain.histogram(above) == levels
        for score, count in levels[-1:]:
            assert plain.at(score, count - 1) == fast.at(score, count - 1) is not None
        index = int(rng.integers(order.size))
        assert plain.at_or_below(above, index) == fast.at_or_below(above, index)


@patient
@given(literals=st.integers(0, 5), cuts=st.lists(st.integers(0, 3), max_size=6))
def test_numbers_are_sets_of_tests_of_different_features(literals, cuts):
    order = ConjunctionOrder.of(literals, cuts)
    feature = np.repeat(np.arange(len(cuts)), cuts)
    sets = [order.tests(number) for number in range(min(order.size, 3000))]
    assert len(set(map(tuple, sets))) == len(sets)
    for tests in sets:
        taken = [int(feature[test >> 1]) for test in tests]
        assert len(tests) <= literals
        assert taken == sorted(set(taken))
    ways = np.array([1])
    for cut in cuts:
        ways = np.convolve(ways, [1, 2 * cut])
    assert order.size == ways[: literals + 1].sum()


@pytest.mark.slow
@patient
@given(problem=problems())
def test_a_disjunction_is_a_conjunction_of_the_opposite(problem):
    literals, options, X, _ = problem
    shape = Shape(X.shape[1], 2)
    either, every = Disjunctions(literals, **options), Conjunctions(literals, **options)
    for number in range(min(200, either.size(shape))):
        some, opposite = either.hypothesis(number, shape), every.hypothesis(number, shape)
        assert (some.predict(X) == 1 - opposite.predict(X)).all()
