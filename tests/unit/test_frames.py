"""A release as a frame, and in a few words."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privmax
from privmax.errors import ParameterError
from privmax.itemsets import top_itemsets
from privmax.markers import top_markers

PRICE = {"epsilon": 1, "delta": 1e-6}
SURE = {"tea": 10**9, "ale": 10**8, "rum": 1}
LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}


def rows(frame):
    """The rows of a frame of any library, as dicts."""
    if isinstance(frame, pd.DataFrame):
        return frame.to_dict("records")
    return frame.to_dicts() if isinstance(frame, pl.DataFrame) else frame.to_pylist()


def names(frame):
    return list(frame.schema.names if isinstance(frame, pa.Table) else frame.columns)


@pytest.fixture(params=LIBRARIES)
def library(request):
    return request.param


def test_items_have_a_column(library):
    frame = privmax.select(SURE, k=2, **PRICE).to_frame(library)
    assert type(frame) is LIBRARIES[library]
    assert rows(frame) == [{"item": "ale"}, {"item": "tea"}]


def test_counts_and_ranks_have_columns(library):
    release = privmax.select(SURE, k=2, ranked=True, counts=4, **PRICE)
    frame = release.to_frame(library)
    more = ["relative", "apart", "close"]
    assert names(frame) == ["item", "count", "error", "rank", *more]
    assert rows(frame) == [
        {
            "rank": place + 1,
            "item": item,
            "count": release.counts[place],
            "error": release.error,
            "relative": release.relative[place],
            "apart": release.apart,
            "close": release.close[place],
        }
        for place, item in enumerate(release.items)
    ]


def test_itemsets_are_lists(library):
    release = top_itemsets([["bread", "butter"]] * 900, supports=2, **PRICE)
    frame = release.to_frame(library)
    assert names(frame) == ["itemset", "support", "error"]
    found = rows(frame)[0]
    assert (list(found["itemset"]), found["support"]) == (["bread", "butter"], release.supports[0])


def test_markers_have_the_same_columns(library):
    counts = np.array([[400, 410], [900, 300], [55, 60]])
    frame = top_markers(counts, cases=1000, controls=1000, epsilon=1).to_frame(library)
    assert rows(frame) == [{"item": 1}]


def test_no_answer_has_the_same_columns_and_no_rows(library):
    release = privmax.select({"a": 1}, counts=1, epsilon="0.001", delta=1e-9)
    assert not release
    frame = release.to_frame(library)
    assert (names(frame), rows(frame)) == (["item", "count", "error"], [])


def with_items(release, *items):
    return replace(release, payload=replace(release.payload, items=items))


def test_labels_of_several_types_stay_apart(library):
    release = with_items(privmax.select(SURE, k=3, **PRICE), 1, 2.5, "1")
    found = [row["item"] for row in rows(release.to_frame(library))]
    assert found == ([1, 2.5, "1"] if library == "pandas" else ["1", "2.5", "1"])
    large = with_items(release, 2**60, 2**60 + 1)
    assert [row["item"] for row in rows(large.to_frame(library))] == [2**60, 2**60 + 1]
    huge = with_items(release, 2**70)
    found = [row["item"] for row in rows(huge.to_frame(library))]
    assert found in ([2**70], [str(2**70)])


def test_the_first_library_that_is_installed_is_used(monkeypatch):
    release = privmax.select(SURE, **PRICE)
    for name, kind in LIBRARIES.items():
        assert type(release.to_frame()) is kind
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ParameterError, match="pandas, polars, pyarrow"):
        release.to_frame()
    with pytest.raises(ParameterError, match=r"library='pandas'.*not installed"):
        release.to_frame("pandas")


def test_another_library_is_refused():
    with pytest.raises(ParameterError, match="library='dask'"):
        privmax.select(SURE, **PRICE).to_frame("dask")


def test_a_release_in_a_few_words():
    assert str(privmax.select(SURE, **PRICE)) == "tea (epsilon 1, delta 1e-06)"
    assert str(privmax.select(SURE, k=2, **PRICE)) == "ale, tea (epsilon 1, delta 1e-06)"
    nothing = privmax.select({"a": 1}, epsilon="0.001", delta=1e-9)
    assert str(nothing) == "no answer (epsilon 0.001, delta 1e-09)"
    baskets = top_itemsets([["bread", "butter"]] * 900, **PRICE)
    assert str(baskets) == "bread + butter (epsilon 1, delta 1e-06)"
    checked = privmax.select(SURE, **PRICE, ledger=privmax.Request(check=True))
    assert str(checked) == "checked; nothing was drawn or charged"


def test_words_have_counts_and_stay_short():
    release = privmax.select(SURE, counts=4, **PRICE)
    assert str(release).startswith(f"tea: {release.counts[0]:,} ± ")
    many = with_items(privmax.select(SURE, **PRICE), *(f"item {n}" for n in range(90)))
    assert str(many) == (
        "item 0, item 1, item 2, item 3, item 4 and 85 more (epsilon 1, delta 1e-06)"
    )
    odd = with_items(many, "a\x1b[31m\nb" + "c" * 500)
    assert "\n" not in str(odd)
    assert "\x1b" not in str(odd)
    assert len(str(odd)) < 200


EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    "items",
    [
        (date(2026, 1, 2), date.max),
        (datetime(2026, 1, 2, 3, 4, 5, 6), datetime.min),
        (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=EAST)),
        (time(1, 2, 3, 4), time.max),
        (timedelta(hours=5), -timedelta(microseconds=1)),
        (b"", b"\0a"),
    ],
)
def test_dates_and_their_kin_stay_what_they_are(library, items):
    release = with_items(privmax.select(SURE, k=2, **PRICE), *items)
    found = [row["item"] for row in rows(release.to_frame(library))]
    assert found == list(items)
    sets = with_items(top_itemsets([["bread", "butter"]] * 900, **PRICE), items)
    assert list(rows(sets.to_frame(library))[0]["itemset"]) == list(items)


@pytest.mark.parametrize(
    ("items", "texts"),
    [
        ((timedelta.max,), ["999999999 days, 23:59:59.999999"]),
        ((time(1, tzinfo=UTC),), ["01:00:00+00:00"]),
        (
            (datetime(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC)),
            ["2026-01-02T00:00:00", "2026-01-02T00:00:00+00:00"],
        ),
        ((date(2026, 1, 2), datetime(2026, 1, 2)), ["2026-01-02", "2026-01-02T00:00:00"]),
    ],
)
def test_what_no_column_holds_is_text(items, texts):
    release = with_items(privmax.select(SURE, k=2, **PRICE), *items)
    for name in ("polars", "pyarrow"):
        assert [row["item"] for row in rows(release.to_frame(name))] == texts
