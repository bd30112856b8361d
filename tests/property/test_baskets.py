"""The same baskets in every form, both parsers against plain Python on any bytes, and supports
against brute force.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from privmax.errors import DataError
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.reading import fimi
from privmax.itemsets.reading.flags import WORDS
from privmax.itemsets.reading.forms import read_baskets
from privmax.sources.text import foreign

patient = settings(deadline=None)  # a busy machine is no failure

numbers = st.integers(0, 12) | st.integers(0, 2**31 - 1)
rows_of_numbers = st.lists(st.lists(numbers, max_size=6), max_size=8)
words = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=5)
rows_of_words = st.lists(st.lists(words.map(str.strip).filter(bool), max_size=6), max_size=8)


def held(found):
    """The different items of each row, with their labels."""
    bounds = found.offsets.tolist()
    return [
        sorted({found.labels[code] for code in found.codes[start:end].tolist()})
        for start, end in pairwise(bounds)
    ]


def supports(found):
    """The support of each item that has one, in the order of codes."""
    return [
        (label, support)
        for label, support in zip(found.labels, found.supports().tolist(), strict=True)
        if support
    ]


def counted(rows):
    return sorted(Counter(item for row in rows for item in set(row)).items())


def looks_one_hot(rows):
    """Whether the rows are refused as those of a table of zeros and ones."""
    widths = {len(row) for row in rows if row}
    repeated = any(len(set(row)) < len(row) for row in rows)
    return (
        {str(item) for row in rows for item in row} == {"0", "1"} and len(widths) == 1 and repeated
    )


@pytest.mark.slow
@patient
@given(rows_of_numbers)
@example([[0, 1, 0], [], [1, 1, 1]])
def test_numbers_are_the_same_in_lists_and_files(rows):
    if looks_one_hot(rows):
        for data in (
            rows,
            io.BytesIO("".join(" ".join(map(str, row)) + "\n" for row in rows).encode()),
        ):
            with pytest.raises(DataError, match="zeros and ones"):
                read_baskets(data)
        return
    content = "".join(" ".join(map(str, row)) + "\n" for row in rows)
    for found in (read_baskets(rows), read_baskets(io.BytesIO(content.encode()))):
        assert held(found) == [sorted(set(row)) for row in rows]
        assert supports(found) == counted(rows)
        assert found.longest() == max((len(set(row)) for row in rows), default=0)


@pytest.mark.slow
@patient
@given(rows_of_words, st.sampled_from(",;\t|"))
def test_text_is_the_same_in_lists_and_files(rows, separator):
    assume(
        not {item.lower() for row in rows for item in row} & set(WORDS)
    )  # see unit/test_onehot.py
    content = io.StringIO(newline="")
    writer = csv.writer(content, delimiter=separator, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows(rows)
    wide = read_baskets(io.BytesIO(content.getvalue().encode()), form="wide", separator=separator)
    for found in (read_baskets(rows), wide):
        assert held(found) == [sorted(set(row)) for row in rows]
        assert supports(found) == counted(rows)
        assert list(found.labels) == sorted(found.labels, key=str.encode)


@st.composite
def entries(draw):
    """(basket, item or None, user) in any order; a user's baskets are named as others' are."""
    return draw(
        st.lists(
            st.tuples(st.integers(0, 4), st.none() | words.filter(bool), st.integers(0, 3)),
            max_size=20,
        )
    )


def owned(found):
    """The baskets of every individual, in no order."""
    owners = range(found.rows) if found.owners is None else found.owners.tolist()
    people = {}
    for owner, row in zip(owners, held(found), strict=True):
        people.setdefault(owner, []).append(row)
    return sorted(sorted(rows) for rows in people.values())


@pytest.mark.slow
@patient
@given(entries(), st.booleans())
def test_long_data_is_the_same_in_files_and_frames(rows, users):
    assume(not {item.lower() for _, item, _ in rows if item} & set(WORDS))
    expected = {}
    for basket, item, user in rows:
        theirs = expected.setdefault(user if users else basket, {}).setdefault(basket, set())
        if item is not None:
            theirs.add(item)
    content = io.StringIO(newline="")
    writer = csv.writer(content, lineterminator="\n")
    writer.writerows(
        [("b", "i", "u"), *((basket, item or "", user) for basket, item, user in rows)]
    )
    columns = (
        dict(zip("biu", map(list, zip(*rows, strict=True)), strict=True))
        if rows
        else {"b": [], "i": [], "u": []}
    )
    frame = pl.DataFrame(columns, {"b": pl.Int64, "i": pl.String, "u": pl.Int32})
    pandas = pd.DataFrame(columns).astype({"b": "int64", "i": "object", "u": "int64"})
    for data in (io.BytesIO(content.getvalue().encode()), frame, frame.to_arrow(), pandas):
        found = read_baskets(data, basket="b", item="i", user="u" if users else None)
        assert owned(found) == sorted(
            sorted(map(sorted, theirs.values())) for theirs in expected.values()
        )
        assert found.individuals == len(expected)
        people = [set().union(*theirs.values()) for theirs in expected.values()]
        assert supports(found) == counted(people)


@pytest.mark.slow
@patient
@given(st.lists(st.lists(st.integers(0, 5), max_size=5), max_size=8))
def test_one_hot_data_is_the_same_everywhere(rows):
    dense = np.zeros((len(rows), 6), bool)
    for place, row in enumerate(rows):
        dense[place, row] = True
    names = [f"item {number}" for number in range(6)]
    frame = pd.DataFrame(dense, columns=names)
    shapes = [dense, scipy.sparse.csr_array(dense), scipy.sparse.coo_matrix(dense.astype(np.int8))]
    frames = [
        frame,
        frame.astype(float),
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame, preserve_index=False),
    ]
    for found in map(read_baskets, shapes):
        assert held(found) == [sorted(set(row)) for row in rows]
    for found in map(read_baskets, frames):
        assert held(found) == [[names[item] for item in sorted(set(row))] for row in rows]


@st.composite
def owned_rows(draw):
    """Baskets with owners and weights, items repeated, and the individuals written out one by
    one.
    """
    people = draw(
        st.lists(
            st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=3), max_size=5
        )
    )
    weights = draw(st.lists(st.integers(1, 4), min_size=len(people), max_size=len(people)))
    rows = [row for theirs in people for row in theirs]
    found = Baskets(
        np.cumsum([0, *map(len, rows)]),
        np.array([item for row in rows for item in row], np.int32),
        range(6),
        np.repeat(np.arange(len(people)), np.array(list(map(len, people)), np.int64)),
        np.array(weights, np.int64),
    )
    everybody = [
        {item for row in theirs for item in row}
        for theirs, weight in zip(people, weights, strict=True)
        for _ in range(weight)
    ]
    return found, everybody


@patient
@given(owned_rows())
def test_supports_are_those_of_individuals(case):
    found, everybody = case
    assert found.individuals == len(everybody)
    assert supports(found) == counted(everybody)
    assert supports(found.within(8)) == counted(everybody)
    assert supports(found.within([9, *range(5, -1, -1)])) == counted(everybody)


def plainly(content):
    """What a FIMI file holds, read slowly: the rows, or the number of the first line that is
    wrong.
    """
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1]:
        lines.pop()
    rows = []
    for number, line in enumerate(lines, 1):
        if b"\r" in line.removesuffix(b"\r"):
            return number
        tokens = [
            token for token in line.removesuffix(b"\r").replace(b"\t", b" ").split(b" ") if token
        ]
        if not all(all(48 <= byte <= 57 for byte in token) for token in tokens):
            return number
        if any(int(token) >= 2**31 for token in tokens):
            return number
        rows.append([int(token) for token in tokens])
    return rows


def parsed(content):
    try:
        found = read_baskets(io.BytesIO(content))
    except DataError as error:
        return int(str(error).split()[1])
    bounds = found.offsets.tolist()
    items = [found.labels[code] for code in found.codes.tolist()]
    return [items[start:end] for start, end in pairwise(bounds)]


blanks = [b" ", b"  ", b"\t", b"\n", b"\n\n", b"\r\n", b"\r"]
fitting = [b"0", b"7", b"12", b"003", b"0" * 30, b"2147483647"]
too_large = [b"2147483648", b"4294967296", b"18446744073709551616", b"9" * 25]
strange = [b"-", b"-1", b"+", b".", b"a", b"\xff", b"\0"]
pieces = st.sampled_from([*blanks, *fitting, *too_large, *strange])
mostly_good = st.sampled_from(
    [b" ", b"\t", b"\n", b"\r\n", b"0", b"7", b"12", b"2147483647", b"0000000000001"]
)
files = st.one_of(
    st.binary(max_size=40),
    st.lists(pieces, max_size=15).map(b"".join),
    st.lists(mostly_good, max_size=40).map(b"".join),
    st.text("0123456789 \n", max_size=60).map(str.encode),
)


@pytest.mark.parametrize("parser", ["compiled", "numpy"])
@patient
@given(files, st.integers(1, 8))
@example(b"1\r", 1)
@example(b"1\n\r", 1)
@example(b"\xef\xbb\xbf1\n\xef\xbb\xbf2", 1)
@example(b"9223372036854775808 9223372036854775807", 4)
@example(b"18446744073709551616\n", 4)
def test_both_parsers_read_what_plain_python_reads(parser, content, chunk):
    assume(foreign(content) is None)  # what begins so is named for what it is, without a line
    kernels = None
    if parser == "compiled":
        pytest.importorskip("numba")
        from privmax.itemsets.reading import fimi_compiled as kernels
    expected = plainly(content)
    assume(not (isinstance(expected, list) and looks_one_hot(expected)))
    with patch.object(fimi, "_kernels", lambda size: kernels), patch.object(fimi, "_CHUNK", chunk):
        assert parsed(content) == expected
