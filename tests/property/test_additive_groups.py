"""Groups of cells for pairs: what holds for any released table."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privmax.learning.additive.groups import is_grouping, join_cells, merge_cells

tables = st.lists(
    st.tuples(st.integers(-2048, 2048), st.integers(-(10**6), 10**9)), min_size=1, max_size=40
)
sizes = st.integers(1, 9)


def merged(table, most):
    entries, weights = zip(*table, strict=True)
    return merge_cells(entries, weights, most)


@given(tables, sizes)
def test_groups_are_stretches_of_like_entries(table, most):
    groups = merged(table, most)
    if len(table) <= most:
        assert groups == tuple(range(len(table)))
    else:
        assert is_grouping(groups, len(table), most)
        told = [(entry, group) for (entry, _), group in zip(table, groups, strict=True)]
        spans = [[entry for entry, group in told if group == one] for one in range(most)]
        assert all(max(one) <= min(after) for one, after in pairwise(spans))


@given(st.data(), tables, sizes)
def test_the_order_in_which_categories_are_declared_does_not_matter(data, table, most):
    table = list(dict(table).items())
    order = data.draw(st.permutations(range(len(table))))
    if len(table) > most:
        groups, other = merged(table, most), merged([table[one] for one in order], most)
        assert [groups[one] for one in order] == list(other)


@given(tables, sizes, st.sampled_from([2, 4, 64]))
def test_the_unit_of_entries_does_not_matter(table, most, unit):
    assert merged(table, most) == merged([(unit * one, many) for one, many in table], most)


@given(st.integers(1, 3000), sizes)
def test_neighbors_stay_together_where_cells_have_an_order(cells, most):
    groups = join_cells(cells, most)
    assert set(np.diff(groups).tolist()) <= {0, 1}
    assert len(set(groups)) == min(cells, most)


def test_thousands_of_cells_are_merged_too():
    entries = np.arange(20_000) % 2 * 100
    groups = merge_cells(entries.tolist(), [5] * 20_000, 2)
    assert groups == tuple((entries // 100).tolist())
