"""Scores in memory: every container is the same data, and what cannot be used is refused without
being quoted.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter, OrderedDict
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from by_name import by_name

import privmax
from privmax.errors import DataError, ParameterError, PrivmaxError
from privmax.mechanisms.contract import Law, Outcome
from privmax.mechanisms.sharp_margin import SharpMargin
from privmax.numbers import exact
from privmax.sources import columns
from privmax.sources.memory import MemorySource
from privmax.testing import SeededCoins

PRICE = {"epsilon": 1, "delta": "1e-6"}
FLOATS = {"sensitivity": 1, "neighbors": "replace"}
COLUMNS = {"item": "who", "score": "count"}


def assert_says_nothing_private(error):
    """No message of the chain holds a label or a score of the data that must not be quoted."""
    while error is not None:
        said = f"{error!s} {error!r}"
        for secret in (
            "zorblax",
            "quuxley",
            "7310427",
            "5551212",
            "2021-07-31",
            str(2**53 + 1),
            "100000",
            "1844674",
        ):
            assert secret not in said
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def table(labels, scores):
    return {"who": labels, "count": scores}


def text_labels(scores):
    return [f"label {place}" for place in range(len(scores))]


# One data set in many containers, each made from a list of scores


def spread(scores, dtype):
    """The scores as every second entry of a longer array."""
    wide = np.zeros(2 * len(scores), dtype)
    wide[::2] = scores
    return wide[::2]


def read_only(scores, dtype):
    array = np.array(scores, dtype)
    array.flags.writeable = False
    return array


def halves(scores, kind):
    middle = len(scores) // 2
    return pa.chunked_array([scores[:middle], [], scores[middle:]], type=kind)


def polars_table(scores):
    return pl.DataFrame(
        table(text_labels(scores), scores), schema={"who": pl.String, "count": pl.Int64}
    )


ANY_NUMBERS = {
    "dict": lambda s: dict(zip(text_labels(s), s, strict=True)),
    "OrderedDict": lambda s: OrderedDict(zip(text_labels(s), s, strict=True)),
    "read-only mapping": lambda s: MappingProxyType(dict(zip(text_labels(s), s, strict=True))),
    "list": list,
    "tuple": tuple,
    "object array": lambda s: np.array(s, object),
    "pandas Series of objects": lambda s: pd.Series(s, index=text_labels(s), dtype=object),
}
INTEGERS = {
    **ANY_NUMBERS,
    "Counter": lambda s: Counter(dict(zip(text_labels(s), s, strict=True))),
    "NumPy scalars": lambda s: [np.int64(score) for score in s],
    "NumPy": lambda s: np.array(s, np.int64),
    "NumPy big-endian": lambda s: np.array(s, ">i8"),
    "NumPy reversed twice": lambda s: np.array(s[::-1], np.int64)[::-1],
    "NumPy strided": lambda s: spread(s, np.int64),
    "NumPy read-only": lambda s: read_only(s, np.int64),
    "pandas Series": lambda s: pd.Series(s, index=text_labels(s), dtype="int64"),
    "pandas nullable Series": lambda s: pd.Series(s, index=text_labels(s), dtype="Int64"),
    "pandas Arrow-backed Series": lambda s: pd.Series(
        s, index=text_labels(s), dtype="int64[pyarrow]"
    ),
    "pandas DataFrame": lambda s: pd.DataFrame(table(text_labels(s), s)).astype({"count": "int64"}),
    "pandas nullable DataFrame": lambda s: pd.DataFrame(table(text_labels(s), s)).astype(
        {"count": "Int64"}
    ),
    "pandas Arrow-backed DataFrame": lambda s: pd.DataFrame(table(text_labels(s), s)).astype(
        {"who": "string[pyarrow]", "count": "int64[pyarrow]"}
    ),
    "pandas DataFrame whose index repeats": lambda s: pd.DataFrame(
        table(text_labels(s), s), index=[7] * len(s)
    ).astype({"count": "int64"}),
    "polars Series": lambda s: pl.Series(s, dtype=pl.Int64),
    "polars DataFrame": lambda s: polars_table(s),
    "polars DataFrame in chunks": lambda s: pl.concat(
        [polars_table(s)[:1], polars_table(s)[1:]], rechunk=False
    ),
    "Arrow Array": lambda s: pa.array(s, pa.int64()),
    "Arrow Array slice": lambda s: pa.array([99, *s, 99], pa.int64())[1:-1],
    "Arrow ChunkedArray": lambda s: halves(s, pa.int64()),
    "Arrow Table": lambda s: pa.table(table(text_labels(s), s)),
    "Arrow Table in chunks": lambda s: pa.concat_tables(
        [pa.table(table(text_labels(s), s))[:1], pa.table(table(text_labels(s), s))[1:]]
    ),
    "Arrow RecordBatch": lambda s: pa.record_batch(table(text_labels(s), s)),
}
REALS = {
    **ANY_NUMBERS,
    "NumPy scalars": lambda s: [np.float64(score) for score in s],
    "NumPy": lambda s: np.array(s, np.float64),
    "NumPy single": lambda s: np.array(s, np.float32),
    "NumPy half": lambda s: np.array(s, np.float16),
    "NumPy big-endian": lambda s: np.array(s, ">f8"),
    "NumPy strided": lambda s: spread(s, np.float64),
    "NumPy read-only": lambda s: read_only(s, np.float64),
    "pandas Series": lambda s: pd.Series(s, index=text_labels(s), dtype="float64"),
    "pandas nullable Series": lambda s: pd.Series(s, index=text_labels(s), dtype="Float64"),
    "pandas Arrow-backed Series": lambda s: pd.Series(
        s, index=text_labels(s), dtype="double[pyarrow]"
    ),
    "pandas DataFrame": lambda s: pd.DataFrame(table(text_labels(s), s)),
    "polars Series": lambda s: pl.Series(s, dtype=pl.Float64),
    "polars single Series": lambda s: pl.Series(s, dtype=pl.Float32),
    "polars DataFrame": lambda s: pl.DataFrame(table(text_labels(s), s)),
    "Arrow Array": lambda s: pa.array(s, pa.float64()),
    "Arrow half Array": lambda s: pa.array(np.array(s, np.float16)),
    "Arrow ChunkedArray": lambda s: halves(s, pa.float64()),
    "Arrow Table": lambda s: pa.table(table(text_labels(s), s)),
    "Arrow RecordBatch": lambda s: pa.record_batch(table(text_labels(s), s)),
}
TABLES = (pd.DataFrame, pl.DataFrame, pa.Table, pa.RecordBatch)


def built(kind, scores):
    """(data, options naming its columns, its labels)."""
    data = kind(scores)
    columns = COLUMNS if isinstance(data, TABLES) else {}
    labelled = isinstance(data, (Mapping, pd.Series, *TABLES))
    return data, columns, text_labels(scores) if labelled else list(range(len(scores)))


def closed(labels, extra):
    """(a closed universe of these candidates and so many without a score, all its labels in
    order).
    """
    size = len(labels) + extra
    if labels == [*range(len(labels))]:
        return size, [*range(size)]
    everyone = text_labels(range(size))
    return (
        everyone if extra else size,
        everyone,
    )  # a size names those that are listed, and nobody else


def windows(source):
    return [source.profile.window(width) for width in (0, 1, 5, 60, 10**6)]


def places(data, labels, **options):
    """Which entry each of thirty seeds releases (None: nothing)."""
    items = [
        by_name(privmax.select, data, coins=SeededCoins(seed), **options).item for seed in range(30)
    ]
    return [None if item is None else labels.index(item) for item in items]


SCORES = [38, 40, -6, 39, 40, 0, 17, 40, 39]


@pytest.mark.slow
@pytest.mark.parametrize("container", INTEGERS)
@pytest.mark.parametrize("extra", ["open", 0, 5])
def test_every_container_of_integers_is_the_same_data(container, extra):
    data, columns, labels = built(INTEGERS[container], SCORES)
    universe, labels = ("open", labels) if extra == "open" else closed(labels, extra)
    whole = "open" if extra == "open" else len(SCORES) + extra
    source = MemorySource(data, universe=universe, **columns)
    assert windows(source) == windows(MemorySource(SCORES, universe=whole))
    options = {"epsilon": "0.5", "delta": "0.001" if extra == "open" else 0}
    released = places(data, labels, universe=universe, **options, **columns)
    assert released == places(SCORES, list(range(len(labels))), universe=whole, **options)
    assert len(set(released)) > 2  # the seeds do tell candidates apart


@pytest.mark.slow
@pytest.mark.parametrize("container", REALS)
def test_every_container_of_floats_is_the_same_data(container):
    scores = [2.5, 2.625, -1.75, 2.0, 2.625, 0.0, 0.125, 2.625, 1.5]
    data, columns, labels = built(REALS[container], scores)
    reference = dict(enumerate(scores))
    grid = {"sensitivity": "0.25", "resolution": "0.1", "universe": len(scores)}
    source = MemorySource(data, **grid, **columns)
    assert windows(source) == windows(MemorySource(reference, **grid))
    options = {"epsilon": 1, "neighbors": "replace", **grid}
    released = places(data, labels, **options, **columns)
    assert released == places(reference, list(reference), **options)
    assert len(set(released)) > 2


@pytest.mark.parametrize("container", REALS)
def test_whole_numbers_as_floats_are_the_same_data_as_integers(container):
    """A column is one of floats because somebody's row has a decimal elsewhere, or none at all."""
    data, columns, _ = built(REALS[container], [float(score) for score in SCORES])
    for options in ({}, {"sensitivity": 3}, {"sensitivity": "0.3"}, {"resolution": "0.7"}):
        source = MemorySource(data, universe=len(SCORES), **options, **columns)
        assert windows(source) == windows(MemorySource(SCORES, universe=len(SCORES), **options))


@pytest.mark.parametrize("container", INTEGERS)
@pytest.mark.parametrize("extra", ["open", 0, 1])
def test_a_huge_lead_is_released_from_every_container(container, extra):
    data, columns, labels = built(INTEGERS[container], [3, 10**9, 5, 4])
    universe = "open" if extra == "open" else closed(labels, extra)[0]
    assert by_name(privmax.select, data, **PRICE, **columns, universe=universe).item == labels[1]


@pytest.mark.parametrize("container", INTEGERS)
def test_every_empty_container_with_an_open_universe_releases_nothing(container):
    data, columns, _ = built(INTEGERS[container], [])
    release = by_name(privmax.select, data, **PRICE, **columns)
    assert release.items == ()
    assert release.item is None
    assert release.privacy == privmax.Privacy(1, "1e-6")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(pd.Series([], dtype=object), id="pandas Series"),
        pytest.param(pl.Series([]), id="polars Series"),
        pytest.param(pl.DataFrame(table([], [])), id="polars DataFrame"),
        pytest.param(pa.array([]), id="Arrow Array"),
        pytest.param(pa.table(table([], [])), id="Arrow Table"),
    ],
)
def test_empty_containers_whose_type_nobody_stated_release_nothing(data):
    columns = COLUMNS if isinstance(data, TABLES) else {}
    assert by_name(privmax.select, data, **PRICE, **columns).items == ()


# Large integers


@pytest.mark.parametrize(
    "base", [2**53, 2**60, 2**63 - 2, -(2**63)], ids=["2^53", "2^60", "2^63-2", "-2^63"]
)
@pytest.mark.parametrize("container", INTEGERS)
def test_integers_that_a_float_would_merge_stay_apart(container, base):
    data, columns, _ = built(INTEGERS[container], [base, base + 1, base + 1])
    window = MemorySource(data, universe=3, **columns).profile.window(10)
    assert window.top == base + 1
    assert window.blocks() == [(0, 2), (1, 1)]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"a": 2**70, "b": 2**70 + 1}, id="dict"),
        pytest.param([2**70, 2**70 + 1], id="list"),
        pytest.param(np.array([2**70, 2**70 + 1], object), id="object array"),
        pytest.param(pd.Series([2**70, 2**70 + 1], dtype=object), id="pandas Series of objects"),
        pytest.param(pl.Series([2**70, 2**70 + 1], dtype=pl.Int128), id="polars Int128"),
    ],
)
def test_integers_beyond_64_bits_stay_apart(data):
    window = MemorySource(data, universe=2).profile.window(10)
    assert window.top == 2**70 + 1
    assert window.blocks() == [(0, 1), (1, 1)]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(np.array([2**64 - 1, 2**64 - 2, 0], np.uint64), id="NumPy"),
        pytest.param(
            [np.uint64(2**64 - 1), np.uint64(2**64 - 2), np.uint64(0)], id="NumPy scalars"
        ),
        pytest.param(pd.Series([2**64 - 1, 2**64 - 2, 0], dtype="UInt64"), id="pandas nullable"),
        pytest.param(
            pd.Series([2**64 - 1, 2**64 - 2, 0], dtype="uint64[pyarrow]"), id="pandas Arrow-backed"
        ),
        pytest.param(pl.Series([2**64 - 1, 2**64 - 2, 0], dtype=pl.UInt64), id="polars"),
        pytest.param(pa.array([2**64 - 1, 2**64 - 2, 0], pa.uint64()), id="Arrow"),
    ],
)
@pytest.mark.parametrize("universe", [3, range(3)], ids=["size", "labels"])
def test_the_largest_unsigned_integers_stay_apart(data, universe):
    window = MemorySource(data, universe=universe).profile.window(10)
    assert window.top == 2**64 - 1
    assert window.blocks() == [(0, 1), (1, 1), (10, 1)]


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_the_whole_range_of_an_integer_type_has_the_profile_of_its_list(dtype):
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    scores = [low, high, 3, low, high - 1]
    here = MemorySource(np.array(scores, dtype), universe=9).profile
    there = MemorySource(scores, universe=9).profile
    for width in (0, 1, 127, 128, 255, 256, 2**16 - 1, 2**16, 2**63, 2**64 - 1, 2**80):
        assert here.window(width) == there.window(width)


@pytest.mark.parametrize(("dtype", "epsilon"), [("int8", "0.1"), ("int16", "0.0004")])
def test_a_selection_may_span_more_than_half_of_a_short_integer_type(dtype, epsilon):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    data = np.array([low // 4, high], dtype)
    release = privmax.select(data, universe=2, epsilon=epsilon, coins=SeededCoins(1))
    assert release.item in (0, 1)


# The scale: whole numbers or a grid, by what is declared


@pytest.mark.parametrize(
    ("sensitivity", "resolution", "steps"),
    [
        ("0.3", None, 65),
        (0.01, None, 65),
        ("2.5", None, 65),
        (None, "0.1", 11),
        (1, 1, 2),
        (1, "0.1", 11),
        (1, 0.1, 11),
        (0.3, 0.1, 4),
        (1, Fraction(1, 3), 4),
        (1, "0.3", 4),
        ("0.1", 1, 1),
        (1, 10**30, 1),
        (1, Fraction(1, 128 * 10**30), 129 * 10**30),
        (5e-324, 5e-324, 2),
    ],
)
def test_steps_cover_sensitivity_and_rounding(sensitivity, resolution, steps):
    source = MemorySource([1.5], sensitivity=sensitivity, resolution=resolution)
    assert source.profile.sensitivity == steps
    assert source.step == (exact("", resolution) if resolution else exact("", sensitivity) / 64)
    assert source.scale == MemorySource([1], sensitivity=sensitivity, resolution=resolution).scale


@pytest.mark.parametrize(
    ("sensitivity", "steps"),
    [(None, 1), (1, 1), (3, 3), ("3", 3), (3.0, 3), ("6/2", 3), (10**30, 10**30)],
)
@pytest.mark.parametrize("score", [1, 1.0, Decimal("1.0"), np.float32(1)], ids=repr)
def test_with_a_whole_sensitivity_scores_are_whole_numbers(sensitivity, steps, score):
    source = MemorySource([score], sensitivity=sensitivity)
    assert source.profile.sensitivity == steps
    assert source.step == 1
    assert source.scores() == [(0, 1)]


MIXED = [
    pytest.param([5, 2.5, 0], id="ints and floats"),
    pytest.param([Decimal(5), Decimal("2.50"), Decimal("-0")], id="Decimals"),
    pytest.param([Fraction(5), Fraction(5, 2), Fraction(0)], id="Fractions"),
    pytest.param([np.float32(5), np.float16(2.5), np.int8(0)], id="NumPy scalars"),
    pytest.param(np.array([5, Decimal("2.5"), False + 0.0], object), id="object array"),
    pytest.param(pd.Series([5, 2.5, Decimal(0)], dtype=object), id="pandas objects"),
    pytest.param(
        pd.Series(
            [Decimal(5), Decimal("2.5"), Decimal(0)], dtype=pd.ArrowDtype(pa.decimal128(5, 2))
        ),
        id="Arrow-backed",
    ),
    pytest.param(pl.Series([Decimal(5), Decimal("2.5"), Decimal(0)]), id="polars Decimals"),
    pytest.param(pa.array([Decimal(5), Decimal("2.5"), Decimal(0)]), id="Arrow Decimals"),
]


@pytest.mark.parametrize("data", MIXED)
def test_on_a_grid_every_number_is_read_by_what_it_is_worth(data):
    assert MemorySource(data, resolution="0.5").scores() == [(0, 10), (1, 5), (2, 0)]


@pytest.mark.parametrize("data", MIXED)
def test_without_a_grid_what_is_no_whole_number_is_refused_with_the_remedy(data):
    for options in ({}, {"sensitivity": 1}, {"sensitivity": 7}):
        with pytest.raises(
            DataError, match=r"not a whole number.*set resolution .*0\.01"
        ) as caught:
            MemorySource(data, **options)
        assert "2.5" not in str(caught.value)


@pytest.mark.parametrize(
    "score", [2.0**53 + 2, -(2.0**60), 1e300, np.float32(2**24 + 2), np.float16(4096)], ids=repr
)
@pytest.mark.parametrize(
    "kind",
    [list, np.array, lambda scores: np.array(scores, object)],
    ids=["list", "array", "objects"],
)
def test_a_float_beyond_which_floats_leave_out_whole_numbers_is_refused(score, kind):
    with pytest.raises(DataError, match="too large to be one for certain"):
        MemorySource(kind([score]))
    assert MemorySource(kind([score]), resolution=1).scores() == [(0, int(Fraction(str(score))))]


@pytest.mark.parametrize(
    "score", [2.0**53, -(2.0**53), np.float32(2**24), np.float16(2048)], ids=repr
)
def test_the_largest_floats_that_count_in_ones_are_whole_numbers(score):
    assert (
        MemorySource([score]).scores()
        == MemorySource(np.array([score])).scores()
        == [(0, int(score))]
    )


@pytest.mark.parametrize("step", ["0.1", "7/3", 10**30, Fraction(1, 10**30), "1e-300"])
@pytest.mark.parametrize(
    "scores",
    [
        pytest.param([5, -7, 0], id="small"),
        pytest.param([2**63 - 1, -(2**63)], id="64 bits"),
        pytest.param([2**70, -(2**70)], id="beyond 64 bits"),
    ],
)
def test_integers_on_a_grid_are_floored_exactly(step, scores):
    kinds = [list] if max(scores) > 2**64 else [list, np.array]
    for kind in kinds:
        found = MemorySource(kind(scores), resolution=step).scores()
        assert found == list(enumerate(math.floor(score / exact("", step)) for score in scores))


@pytest.mark.parametrize(
    "score",
    [Decimal("1e999999999"), Decimal("NaN"), Decimal("Infinity"), np.float32("nan")],
    ids=repr,
)
@pytest.mark.parametrize("options", [{}, {"resolution": 1}], ids=["whole", "grid"])
def test_a_score_that_is_no_finite_number_is_refused_on_every_scale(score, options):
    with pytest.raises(DataError, match=r"NaN or infinite|missing"):
        MemorySource([1, score], **options)


NEIGHBOURS = [
    pytest.param(
        {"a": 1, "b": 0}, {"a": 1.01, "b": 0}, {"sensitivity": "0.01"}, id="a decimal appears"
    ),
    pytest.param(
        {"a": 2, "b": 1}, {"a": 2.0, "b": 1.5}, {"sensitivity": "0.5"}, id="all become floats"
    ),
    pytest.param(
        {"a": 3, "b": 0},
        {"a": 2.5, "b": 0},
        {"sensitivity": "0.5", "resolution": "0.25"},
        id="on a grid",
    ),
    pytest.param(
        {"a": 3, "b": 0}, {"a": Decimal("2.5"), "b": 0}, {"sensitivity": "0.5"}, id="Decimals"
    ),
]


@pytest.mark.parametrize("universe", ["open", ["a", "b"]], ids=["open", "closed"])
@pytest.mark.parametrize(("here", "there", "options"), NEIGHBOURS)
def test_a_decimal_of_one_person_does_not_change_the_scale_of_everybody(
    here, there, options, universe
):
    """The largest hockey-stick between the two laws stays within the price, both ways."""
    epsilon, delta = Fraction(1, 2), Fraction(1, 100)
    mechanism = SharpMargin(epsilon=epsilon, delta=delta, neighbors="replace")
    one, other = (
        by_name(privmax.law, data, mechanism=mechanism, universe=universe, **options)
        for data in (here, there)
    )
    for left, right in ((one, other), (other, one)):
        excess = sum(
            max(0.0, left[item] - math.exp(epsilon) * right.get(item, 0.0)) for item in left
        )
        assert excess <= float(mechanism.privacy().delta) + 1e-9


@pytest.mark.parametrize(
    "options", [{"sensitivity": "0.5"}, {"resolution": 1}, {"sensitivity": 3, "resolution": "0.1"}]
)
@pytest.mark.parametrize("call", [privmax.select, privmax.compare], ids=["select", "compare"])
def test_on_a_grid_the_relation_is_required_before_any_data_is_looked_at(options, call):
    class Unread(dict):
        def __iter__(self):
            raise AssertionError("read")

        __len__ = values = items = keys = __iter__

    with pytest.raises(ParameterError, match=r"^neighbors is required.*grid"):
        by_name(call, Unread(a=1), **PRICE, **options)


@pytest.mark.parametrize(
    "grid",
    [
        pytest.param({"sensitivity": 10**400, "resolution": 10**399}, id="beyond every float"),
        pytest.param({"sensitivity": Fraction(1, 10**400)}, id="below every float"),
        pytest.param({"sensitivity": 1, "resolution": 5e-324}, id="least resolution"),
        pytest.param({"sensitivity": 1, "resolution": 1e300}, id="coarse resolution"),
    ],
)
def test_an_extreme_grid_selects_like_any_other(grid):
    release = by_name(
        privmax.select, [0.5, 0.25], **grid, **PRICE, scores=privmax.Scores(neighbors="replace")
    )
    assert release.item in (0, 1, None)


# Universes


def test_declared_labels_without_a_score_stand_at_zero():
    source = MemorySource({"b": 5, "d": -2}, universe=["a", "b", "c", "d"])
    assert source.universe == 4
    assert dict(source.scores()) == {"a": 0, "b": 5, "c": 0, "d": -2}
    assert source.profile.window(10).blocks() == [(0, 1), (5, 2), (7, 1)]


@pytest.mark.parametrize(
    "universe",
    [
        pytest.param(["a", "b", "c"], id="list"),
        pytest.param(("a", "b", "c"), id="tuple"),
        pytest.param({"a", "b", "c"}, id="set"),
        pytest.param(frozenset("abc"), id="frozenset"),
        pytest.param(dict.fromkeys("abc"), id="dict"),
        pytest.param(dict.fromkeys("abc").keys(), id="dict keys"),
        pytest.param(np.array(["a", "b", "c"]), id="NumPy"),
        pytest.param(pd.Index(["a", "b", "c"]), id="pandas Index"),
        pytest.param(pd.Series(["a", "b", "c"]), id="pandas Series"),
        pytest.param(pl.Series(["a", "b", "c"]), id="polars Series"),
        pytest.param(pa.array(["a", "b", "c"]), id="Arrow Array"),
    ],
)
@pytest.mark.parametrize(
    "container", ["dict", "pandas DataFrame", "polars DataFrame", "Arrow Table", "pandas Series"]
)
def test_labels_may_be_declared_by_any_collection(container, universe):
    data = {
        "dict": {"b": 10**9},
        "pandas DataFrame": pd.DataFrame(table(["b"], [10**9])),
        "polars DataFrame": pl.DataFrame(table(["b"], [10**9])),
        "Arrow Table": pa.table(table(["b"], [10**9])),
        "pandas Series": pd.Series({"b": 10**9}),
    }[container]
    columns = COLUMNS if "Frame" in container or "Table" in container else {}
    source = MemorySource(data, universe=universe, **columns)
    assert source.universe == 3
    assert dict(source.scores()) == {"a": 0, "b": 10**9, "c": 0}
    assert by_name(privmax.select, data, universe=universe, **columns, **PRICE).item == "b"


@pytest.mark.parametrize("universe", [5, np.int64(5), np.uint8(5)])
@pytest.mark.parametrize(
    "data",
    [
        pytest.param([3], id="positions"),
        pytest.param([3, 0, 1, 0, 0], id="all positions"),
        pytest.param({"a": 3, "b": 0, "c": 1, "d": 0, "e": 0}, id="all labels"),
        pytest.param(pd.Series([3, 0, 1, 0, 0]), id="a whole pandas Series"),
    ],
)
def test_a_universe_may_be_declared_by_its_size(universe, data):
    source = MemorySource(data, universe=universe)
    assert source.universe == 5
    assert type(source.universe) is int
    assert source.profile.window(10).blocks()[0] == (0, 1)


@pytest.mark.parametrize("container", INTEGERS)
def test_a_size_is_enough_if_and_only_if_it_names_everybody(container):
    """Labels come from the data: who could be released by name, and who could not, would show who
    is listed.
    """
    data, columns, labels = built(INTEGERS[container], [3, 10**9, 5, 4])
    assert by_name(privmax.select, data, **PRICE, **columns, universe=4).item == labels[1]
    if labels == [0, 1, 2, 3]:
        assert MemorySource(data, universe=5, **columns).universe == 5
        return
    for size in (5, 10**12):
        with pytest.raises(
            ParameterError, match=rf"^universe={size} is not allowed: fewer candidates are listed"
        ):
            MemorySource(data, universe=size, **columns)


def test_labels_that_look_like_positions_are_still_labels():
    """They are read off the data like any other."""
    for data in ({0: 3, 1: 4}, pd.Series([3, 4])):
        with pytest.raises(ParameterError, match="a size does not name the others"):
            MemorySource(data, universe=3)


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param(MemorySource, id="source"),
        pytest.param(
            lambda data, universe: privmax.select(data, universe=universe, **PRICE), id="select"
        ),
        pytest.param(
            lambda data, universe: privmax.select(data, universe=universe, k=2, **PRICE),
            id="select k",
        ),
        pytest.param(
            lambda data, universe: privmax.law(
                data, universe=universe, mechanism=privmax.PermuteAndFlip(epsilon=1)
            ),
            id="law",
        ),
    ],
)
def test_the_refusal_of_a_size_quotes_no_label_no_score_and_not_how_many_are_listed(refused):
    said = set()
    for data in (
        {"zorblax": 7310427},
        {"quuxley": 0},
        {"zorblax": 7310427, "quuxley": 5551212},
        pd.Series([5551212] * 37, index=[f"zorblax {place}" for place in range(37)]),
    ):
        with pytest.raises(ParameterError) as caught:
            refused(data, universe=99)
        assert caught.value.name == "universe"
        assert_says_nothing_private(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        said.add((str(caught.value), repr(caught.value), caught.value.args))
    assert len(said) == 1  # whatever is listed, and however many are
    assert "37" not in str(said)


@pytest.mark.slow
@pytest.mark.parametrize("extra", [1, 4])
def test_whoever_is_drawn_beyond_a_list_is_released_as_a_position_with_its_probability(extra):
    scores, draws = [1, -2, 0], 3000
    size = len(scores) + extra
    mechanism = privmax.PermuteAndFlip(epsilon=1)
    drawn = Counter(
        privmax.select(
            np.array(scores), mechanism=mechanism, universe=size, coins=SeededCoins(seed)
        ).item
        for seed in range(draws)
    )
    law = mechanism.law(MemorySource(scores, universe=size).profile)
    assert set(drawn) == set(range(size))  # None is not among them
    for place in range(size):
        chance = law.of(scores[place] if place < len(scores) else 0)
        assert abs(drawn[place] - draws * chance) < 5 * (draws * chance * (1 - chance)) ** 0.5


def test_a_listed_zero_and_one_beyond_the_list_cannot_be_told_apart():
    """Who has no entry of their own keeps their name: data sets that count the same release the
    same.
    """
    options = {"universe": 4, "mechanism": privmax.PermuteAndFlip(epsilon=1)}
    for seed in range(200):
        short, padded = (
            by_name(privmax.select, data, coins=SeededCoins(seed), **options)
            for data in ([1], [1, 0, 0, 0])
        )
        assert short == padded
        assert short.item in range(4)


def test_positions_may_be_declared_as_labels():
    assert MemorySource(np.array([4, 5]), universe=range(4)).scores() == [
        (0, 4),
        (1, 5),
        (2, 0),
        (3, 0),
    ]


@pytest.mark.parametrize(
    ("universe", "shown"),
    [
        pytest.param("closed", "'closed'", id="wrong text"),
        pytest.param("", "''", id="empty text"),
        pytest.param(0, "0", id="zero"),
        pytest.param(-4, "-4", id="negative"),
        pytest.param(True, "True", id="bool"),
        pytest.param(3.0, "3.0", id="float"),
        pytest.param(None, "None", id="None"),
        pytest.param((label for label in "ab"), "", id="generator"),
        pytest.param([["zorblax"]], "", id="labels that cannot be looked up"),
        pytest.param(["zorblax", "quuxley", "zorblax"], "", id="a label twice"),
    ],
)
def test_a_universe_that_cannot_be_one_is_refused(universe, shown):
    with pytest.raises(ParameterError) as caught:
        MemorySource({"zorblax": 7310427}, universe=universe)
    assert caught.value.name == "universe"
    assert str(caught.value).startswith(f"universe={shown}")
    assert_says_nothing_private(caught.value)


def test_a_universe_of_no_labels_is_refused():
    with pytest.raises(PrivmaxError):
        MemorySource({}, universe=[])


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"zorblax": 7310427, "quuxley": 5551212}, id="labels"),
        pytest.param([7310427, 5551212], id="positions"),
    ],
)
def test_more_labels_than_the_universe_holds_are_refused(data):
    with pytest.raises(
        ParameterError, match=r"^universe=1 .*smaller than the number of labels"
    ) as caught:
        MemorySource(data, universe=1)
    assert caught.value.name == "universe"
    assert_says_nothing_private(caught.value)


@pytest.mark.parametrize(
    "container", ["dict", "pandas DataFrame", "polars DataFrame", "Arrow Table"]
)
def test_a_label_outside_the_declared_universe_is_refused(container):
    scores, names = [7310427, 5551212], ["zorblax", "quuxley"]
    data = {
        "dict": dict(zip(names, scores, strict=True)),
        "pandas DataFrame": pd.DataFrame(table(names, scores)),
        "polars DataFrame": pl.DataFrame(table(names, scores)),
        "Arrow Table": pa.table(table(names, scores)),
    }[container]
    with pytest.raises(DataError, match="not in the declared universe") as caught:
        MemorySource(
            data, universe=["quuxley", "other"], **({} if container == "dict" else COLUMNS)
        )
    assert_says_nothing_private(caught.value)


@pytest.mark.parametrize("data", [{}, pd.Series([], dtype=int)], ids=["mapping", "Series"])
def test_no_scores_at_all_with_labels_that_nobody_declared_are_refused(data):
    with pytest.raises(DataError, match="There are no scores"):
        MemorySource(data, universe=3)


@pytest.mark.parametrize("data", [[], np.array([], int)], ids=["list", "NumPy"])
def test_no_scores_at_all_among_positions_are_zeros_and_take_the_normal_path(data):
    drawn = {
        privmax.select(data, epsilon=1, universe=3, coins=SeededCoins(seed)).item
        for seed in range(40)
    }
    assert drawn == {0, 1, 2}


def test_no_scores_at_all_among_declared_labels_are_zeros_and_take_the_normal_path():
    """An error would tell the empty data set from its neighbours, and here there is a proper
    answer.
    """
    mechanism = privmax.PermuteAndFlip(epsilon=1)
    assert privmax.law({}, mechanism=mechanism, universe=["a", "b"]) == pytest.approx(
        {"a": 0.5, "b": 0.5, None: 0}
    )
    assert privmax.select({}, mechanism=mechanism, universe=["a", "b"]).item in ("a", "b")


# Tables


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table, pa.record_batch])
class TestTable:
    def test_needs_both_columns_named(self, kind):
        data = kind({"who": ["zorblax"], "count": [7310427]})
        for name in ("item", "score"):
            with pytest.raises(
                ParameterError, match=rf"^{name} is required.* who, count"
            ) as caught:
                MemorySource(data, **(COLUMNS | {name: None}))
            assert_says_nothing_private(caught.value)

    def test_refuses_a_column_it_does_not_have_and_lists_those_it_has(self, kind):
        data = kind({"who": ["zorblax"], "count": [7310427]})
        for name in ("item", "score"):
            with pytest.raises(ParameterError, match=rf"^{name}='wo' .* who, count") as caught:
                MemorySource(data, **(COLUMNS | {name: "wo"}))
            assert_says_nothing_private(caught.value)

    def test_never_takes_the_values_of_a_column_for_the_names_of_columns(self, kind):
        data = kind({"column_names": ["zorblax"], "columns": [7310427]})
        with pytest.raises(
            ParameterError, match=r"^item is required.* column_names, columns"
        ) as caught:
            MemorySource(data, score="columns")
        assert_says_nothing_private(caught.value)
        assert MemorySource(data, item="column_names", score="columns").scores() == [
            ("zorblax", 7310427)
        ]

    def test_refuses_a_label_that_occurs_twice(self, kind):
        data = kind({"who": ["zorblax", "quuxley", "zorblax"], "count": [7310427, 1, 2]})
        with pytest.raises(DataError, match="more than once") as caught:
            MemorySource(data, **COLUMNS)
        assert_says_nothing_private(caught.value)

    def test_refuses_a_missing_label(self, kind):
        data = kind({"who": ["zorblax", None], "count": [7310427, 1]})
        with pytest.raises(DataError, match="label is missing") as caught:
            MemorySource(data, **COLUMNS)
        assert_says_nothing_private(caught.value)

    def test_refuses_a_missing_score(self, kind):
        data = kind({"who": ["zorblax", "quuxley"], "count": [7310427, None]})
        with pytest.raises(DataError, match="score is missing") as caught:
            MemorySource(data, **COLUMNS, sensitivity=1)
        assert_says_nothing_private(caught.value)

    def test_refuses_scores_that_are_text(self, kind):
        data = kind({"who": ["zorblax"], "count": ["7310427"]})
        with pytest.raises(DataError, match="type str") as caught:
            MemorySource(data, **COLUMNS)
        assert_says_nothing_private(caught.value)

    def test_gives_labels_back_as_python_or_numpy_values(self, kind):
        labels = [3, 1, 2]
        source = MemorySource(kind({"who": labels, "count": [5, 6, 7]}), **COLUMNS)
        assert [label for label, _ in source.scores()] == labels


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            pd.DataFrame([["zorblax", "x", 7310427]], columns=["who", "who", "count"]),
            id="pandas item",
        ),
        pytest.param(
            pd.DataFrame([["zorblax", 1, 7310427]], columns=["who", "count", "count"]),
            id="pandas score",
        ),
        pytest.param(
            pa.Table.from_arrays(
                [pa.array(["zorblax"]), pa.array(["x"]), pa.array([7310427])],
                ["who", "who", "count"],
            ),
            id="Arrow item",
        ),
    ],
)
def test_two_columns_of_the_same_name_are_refused(data):
    with pytest.raises(PrivmaxError) as caught:
        MemorySource(data, **COLUMNS)
    assert_says_nothing_private(caught.value)


@pytest.mark.parametrize("option", ["item", "score"])
@pytest.mark.parametrize(
    "data", [{"a": 1}, [1], np.array([1]), pd.Series([1]), pl.Series([1]), pa.array([1])]
)
def test_a_column_name_is_refused_where_there_are_no_columns(data, option):
    with pytest.raises(ParameterError, match=f"^{option}='count' .*names a column"):
        MemorySource(data, **{option: "count"})


@pytest.mark.parametrize(
    "label", ["to_pylist", "chunks", "null_count", "column_names", "as_py", "columns"]
)
def test_a_label_that_reads_like_an_attribute_is_a_label(label):
    assert privmax.select(pd.Series({label: 10**9, "other": 1}), **PRICE).item == label
    assert privmax.select({label: 10**9, "other": 1}, **PRICE).item == label


def test_a_pandas_index_that_repeats_a_label_is_refused():
    with pytest.raises(DataError, match="more than once") as caught:
        MemorySource(pd.Series([7310427, 5551212], index=["zorblax", "zorblax"]))
    assert_says_nothing_private(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({None: 7310427, "zorblax": 1}, id="None in a dict"),
        pytest.param(pd.Series([7310427, 1], index=[np.nan, 2.5]), id="NaN in a pandas index"),
        pytest.param(pd.Series([7310427, 1], index=["zorblax", None]), id="None in a pandas index"),
    ],
)
def test_a_missing_label_is_refused(data):
    """None is the name of "no answer": as a label it could not be told from it."""
    with pytest.raises(DataError, match=r"(?i)missing|None") as caught:
        MemorySource(data)
    assert_says_nothing_private(caught.value)


# Scores that cannot be used

BAD = {
    "NaN or infinite": {
        "NaN in an array": np.array([7310427.5, np.nan]),
        "NaN in a single-precision array": np.array([7310427, np.nan], np.float32),
        "NaN in a list": [7310427.5, float("nan")],
        "NaN in a dict": {"zorblax": 7310427.5, "quuxley": float("nan")},
        "NaN in a polars Series": pl.Series([7310427.5, float("nan")]),
        "NaN in an Arrow Array": pa.array([7310427.5, float("nan")]),
        "infinity in an array": np.array([7310427.5, np.inf]),
        "infinity in a list": [7310427.5, float("-inf")],
        "infinity in a dict": {"zorblax": 7310427.5, "quuxley": float("inf")},
        "infinity in a pandas Series": pd.Series([7310427.5, -np.inf]),
        "infinity in a polars Series": pl.Series([7310427.5, float("inf")]),
        "infinity in an Arrow Array": pa.array([7310427.5, float("-inf")]),
    },
    "missing": {
        "NaN in a pandas Series": pd.Series([7310427.5, np.nan]),
        "missing in a nullable pandas Series": pd.Series([7310427, None], dtype="Int64"),
        "missing in an Arrow-backed pandas Series": pd.Series(
            [7310427, None], dtype="int64[pyarrow]"
        ),
        "missing in a polars Series": pl.Series([7310427, None]),
        "missing in an Arrow Array": pa.array([7310427, None]),
        "missing in an Arrow ChunkedArray": pa.chunked_array([[7310427], [None]]),
        "masked array": np.ma.array([7310427, 5551212, 4], mask=[True, False, False]),
        "masked array of floats": np.ma.array(
            [7310427.5, 5551212.5, 4.0], mask=[True, False, False]
        ),
    },
    "of type": {
        "complex array": np.array([7310427 + 1j]),
        "complex in a list": [1, 7310427 + 1j],
        "bool array": np.array([True, False]),
        "bool in a list": [7310427, True],
        "NumPy bool in a list": [7310427, np.True_],
        "bool in a dict": {"zorblax": True, "quuxley": 7310427},
        "bool in a pandas Series": pd.Series([True], dtype="boolean"),
        "bool in a polars Series": pl.Series([True]),
        "bool in an Arrow Array": pa.array([True]),
        "text array": np.array(["7310427"]),
        "text in a list": [1, "7310427"],
        "text in a dict": {"zorblax": "7310427"},
        "text in a pandas Series": pd.Series(["7310427"]),
        "text in a polars Series": pl.Series(["7310427"]),
        "text in an Arrow Array": pa.array(["7310427"]),
        "bytes in a list": [b"7310427"],
        "None in a list": [7310427, None],
        "None in a dict": {"zorblax": None, "quuxley": 7310427},
        "None in an object array": np.array([7310427, None], object),
        "nested list": [[7310427]],
        "dates in an array": np.array(["2021-07-31"], "datetime64[D]"),
        "dates in a list": [datetime.date(2021, 7, 31)],
        "durations": np.array([7310427], "timedelta64[s]"),
        "structured array": np.array([(7310427, 2)], [("a", int), ("b", int)]),
        "lists in a polars Series": pl.Series([[7310427]]),
        "lists in an Arrow Array": pa.array([[7310427]]),
        "pairs": [("zorblax", 7310427)],
    },
    "not a whole number": {
        "Decimal": [Decimal("7310427.5")],
        "Fraction": [Fraction(7310427, 2)],
        "float beside an integer it cannot hold": [2**53 + 1, 0.5],
        "float beside an integer beyond every float": [10**400, 0.5],
        "float beside a NumPy integer it cannot hold": [np.uint64(2**64 - 1), np.float32(0.5)],
    },
    "extended float type": {
        "extended precision array": np.array([7310427], np.longdouble),
        "extended precision in a list": [np.longdouble(7310427), 0.5],
    },
    "dimensions": {
        "two-dimensional array": np.array([[7310427, 5551212]]),
        "array without a dimension": np.array(7310427),
    },
    "cannot be read from": {
        "set": {7310427, 5551212},
        "generator": (score for score in (7310427, 5551212)),
        "dict values": {"zorblax": 7310427}.values(),
        "bytes": b"zorblax",
        "number": 7310427,
        "None": None,
        "pandas Index": pd.Index([7310427]),
    },
}
"""What the error must say, and what must be refused with it."""
CASES = [
    pytest.param(data, says, id=what) for says, cases in BAD.items() for what, data in cases.items()
]


@pytest.mark.parametrize(("data", "says"), CASES)
def test_unusable_scores_are_refused_without_being_quoted(data, says):
    with pytest.raises(DataError, match=says) as caught:
        by_name(privmax.select, data, **PRICE, **FLOATS)
    assert_says_nothing_private(caught.value)


@pytest.mark.parametrize(
    ("data", "says"), [case for case in CASES if isinstance(case.values[0], dict)]
)
def test_unusable_scores_are_refused_in_a_declared_universe_too(data, says):
    with pytest.raises(DataError, match=says) as caught:
        by_name(privmax.select, data, universe=["zorblax", "quuxley", "other"], **PRICE, **FLOATS)
    assert_says_nothing_private(caught.value)


def test_a_profile_is_no_source_of_labels():
    with pytest.raises(ParameterError, match="no labels") as caught:
        MemorySource(privmax.Profile([(7310427, 1)]))
    assert_says_nothing_private(caught.value)


# Look-ups


def test_an_outcome_without_a_score_is_no_item():
    assert MemorySource({"a": 0}).name(Outcome(None)) is None


@pytest.mark.parametrize("kind", [list, np.array, lambda s: pl.Series(s), lambda s: pa.array(s)])
def test_an_outcome_beyond_what_is_listed_is_a_position_beyond_the_list(kind):
    source = MemorySource(kind([0, 7, 0, -5]), universe=10)
    assert [source.name(Outcome(7, index)) for index in range(1)] == [1]
    assert [source.name(Outcome(0, index)) for index in range(8)] == [0, 2, 4, 5, 6, 7, 8, 9]
    assert [source.name(Outcome(-5, index)) for index in range(1)] == [3]
    assert [source.name(Outcome(0, index, below=True)) for index in range(9)] == [
        0,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
    ]
    assert [source.name(Outcome(3, index, below=True)) for index in range(9)] == [
        0,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
    ]
    assert [source.name(Outcome(7, index, below=True)) for index in range(10)] == [*range(10)]
    assert {type(source.name(Outcome(0, index))) for index in range(8)} == {int}


@pytest.mark.parametrize("universe", ["open", 10])
def test_many_outcomes_are_named_as_each_of_them_is(universe):
    source = MemorySource([0, 7, 0, -5, 7, 9], universe=universe)
    drawn = [Outcome(7, 1), Outcome(None), Outcome(9), Outcome(7), Outcome(0, 1)]
    if universe != "open":
        drawn += [Outcome(0, 5, below=True), Outcome(0, 0, below=True), Outcome(0, 4)]
    assert source.names(drawn) == [source.name(outcome) for outcome in drawn]
    assert source.names(drawn)[:5] == [4, None, 5, 1, 2]
    assert source.names([]) == []


def test_a_thousand_names_take_one_pass(monkeypatch):
    """However many levels they are of: a chunk of scores is looked at once."""
    rows = 3000
    chunks = columns._chunks
    looked = []

    def counting(values):
        for chunk in chunks(values):
            looked.append(len(chunk))
            yield chunk

    source = MemorySource(np.arange(rows) // 3)
    monkeypatch.setattr(columns, "_chunks", counting)
    monkeypatch.setattr(columns, "_CHUNK", 100)
    drawn = [Outcome(score, score % 3) for score in range(rows // 3)]
    assert source.names(drawn) == [3 * score + score % 3 for score in range(rows // 3)]
    assert sum(looked) == rows


def test_positions_beyond_a_list_reach_to_the_end_of_the_largest_universe():
    source = MemorySource([5], universe=2**1000)
    assert source.name(Outcome(0, 0)) == 1
    assert source.name(Outcome(0, 2**1000 - 2)) == 2**1000 - 1


def test_a_ranking_names_each_position_once_beyond_the_list_too():
    for mechanism in (privmax.JointExponential(epsilon=1, k=6), None):
        for seed in range(50):
            price = {"epsilon": 1, "k": 6} if mechanism is None else {"mechanism": mechanism}
            release = privmax.select([2, 0, -1], universe=6, coins=SeededCoins(seed), **price)
            assert sorted(release.items) == [*range(6)]


@pytest.mark.parametrize("data", [{}, []], ids=["labels", "positions"])
@pytest.mark.parametrize(
    "mechanism",
    [
        privmax.NestedMargin(epsilon=8, delta="0.4"),
        privmax.SharpMargin(epsilon=8, delta="0.4"),
        privmax.LargeMargin(epsilon=8, delta="0.4"),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_nobody_is_drawn_from_an_empty_source_of_an_open_universe(mechanism, data):
    source = MemorySource(data)
    for seed in range(50):
        outcome = mechanism.draw(source.profile, SeededCoins(seed))
        assert outcome.score is None
        assert source.name(outcome) is None


@pytest.mark.parametrize(
    ("data", "universe"),
    [
        pytest.param({"zorblax": 7310427, "quuxley": 5551212}, 2, id="all labels"),
        pytest.param(
            {"zorblax": 7310427, "quuxley": 5551212},
            ["zorblax", "quuxley", "other"],
            id="declared labels",
        ),
        pytest.param([7310427, 5551212], 99, id="positions"),
    ],
)
def test_repr_shows_nothing(data, universe):
    source = MemorySource(data, universe=universe)
    law = privmax.PermuteAndFlip(epsilon=1).law(source.profile)
    assert isinstance(law, Law)
    assert repr(source) == str(source) == "MemorySource(<private>)"
    assert repr(law) == str(law) == "Law(<private>)"


def test_the_repr_of_an_outcome_hides_its_score():
    """The exact score of the winner is not paid for."""
    assert "7310427" not in repr(Outcome(7310427, 3))
