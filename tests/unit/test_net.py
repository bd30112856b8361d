"""The net mechanism: certain answers, its bound against the exact law, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest

from privmax import DataError, Exponential, Ledger, ParameterError, Privacy, Profile
from privmax.learning.bounds import uniform_deviation
from privmax.learning.net import _CERTAIN, count_candidates, net_error, net_size, release_net

DOMAIN = list(range(6))
THRESHOLDS = [lambda row, t=t: row >= t for t in range(1, 6)]


def worst(invented, data):
    return max(
        abs(np.mean([query(row) for row in data]) - np.mean([query(row) for row in invented]))
        for query in THRESHOLDS
    )


def test_a_data_set_that_can_be_matched_is_matched():
    data = [0] * 500 + [2] * 250 + [5] * 250
    released = release_net(data, DOMAIN, THRESHOLDS, size=4, epsilon=4).item
    assert released == (0, 0, 2, 5)


def test_its_bound_holds_on_the_exact_law():
    """The scores of all candidates on one data set, as the exponential mechanism draws them."""
    n, size, epsilon = 300, 3, 1
    data = [0] * 100 + [3] * 110 + [4] * 90
    scores = [
        round(-worst(one, data) * n * size) for one in combinations_with_replacement(DOMAIN, size)
    ]
    levels = [(one, scores.count(one)) for one in sorted(set(scores), reverse=True)]
    profile = Profile(levels, universe=len(scores), sensitivity=size + 1)
    law = Exponential(epsilon=epsilon, neighbors="replace").law(profile)
    bound = net_error(n=n, domain=6, size=size, epsilon=epsilon, success="0.9") * n * size
    within = sum(chance for score, _, chance in law.blocks if score >= max(scores) - bound)
    assert within >= 0.9


def test_one_row_moves_a_score_by_no_more_than_it_says():
    rng = np.random.default_rng(2)
    for _ in range(100):
        data = rng.integers(0, 6, size=20).tolist()
        other = [*data[:-1], int(rng.integers(0, 6))]
        for invented in ([0, 1, 2], [5, 5, 5], [0, 3, 5]):
            assert abs(worst(invented, data) - worst(invented, other)) <= 1 / 20 + 1e-12


def test_the_size_is_the_least_that_the_deviation_allows():
    size = net_size("0.25", dimension=2)
    most = {"dimension": 2, "failure": 1 - 2**-40}
    assert uniform_deviation(n=size, **most) <= 0.25 < uniform_deviation(n=size - 1, **most)


def test_the_number_of_candidates():
    assert count_candidates(6, 3) == len(list(combinations_with_replacement(DOMAIN, 3)))


def test_what_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="size"):
        release_net([0], DOMAIN, THRESHOLDS, size=60, epsilon=1)
    with pytest.raises(ParameterError, match="domain"):
        release_net([0], [0, 0], THRESHOLDS, size=1, epsilon=1)
    with pytest.raises(ParameterError, match="epsilon"):
        release_net([0], DOMAIN, THRESHOLDS, size=1, epsilon=0)
    with pytest.raises(DataError, match="domain"):
        release_net([0, 17], DOMAIN, THRESHOLDS, size=1, epsilon=1)
    with Ledger.create(tmp_path / "b.db", budget=Privacy(1), strict=True) as ledger:
        assert release_net([17], DOMAIN, THRESHOLDS, size=1, epsilon=1, ledger=ledger).item is None
        assert ledger.spent == Privacy(1)


def test_no_queries_and_rows_that_cannot_be_looked_up():
    with pytest.raises(ParameterError, match="queries"):
        release_net([0], DOMAIN, [], size=1, epsilon=1)
    with pytest.raises(DataError, match="looked up"):
        release_net([[0]], DOMAIN, THRESHOLDS, size=1, epsilon=1)


def test_huge_numbers_of_candidates_are_refused_in_words():
    with pytest.raises(ParameterError, match=r"^size=1000 .*at most 1,000,000 data sets"):
        release_net([1], list(range(1000)), THRESHOLDS[:1], size=1000, epsilon=1)


def test_a_domain_that_cannot_be_looked_up_is_refused():
    with pytest.raises(ParameterError, match=r"^domain="):
        release_net([1], [[1]], THRESHOLDS[:1], size=1, epsilon=1)


def test_rows_that_pandas_rounded_are_refused():
    rows = pd.Series([2**60 + 1] * 9 + [None]).dropna()  # floats, in which 2^60 is the same
    with pytest.raises(DataError, match="pandas"):
        release_net(rows, [2**60, 2**60 + 1], [lambda row: row == 2**60], size=1, epsilon=1)


def test_a_size_beyond_64_bits_is_found():
    size = net_size("1e-12", dimension=1)
    assert size > 2**63
    within = [uniform_deviation(n=m, dimension=1, failure=_CERTAIN) for m in (size - 1, size)]
    assert within[0] > Fraction("1e-12") >= within[1]
