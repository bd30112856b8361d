"""Baskets with a column for each item: read where the form is given, refused where taken for
something else.
"""

from __future__ import annotations

import gzip
import io
import itertools
from contextlib import ExitStack
from itertools import pairwise

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privmax.errors import DataError, ParameterError
from privmax.itemsets.reading.flags import ALLOWED, WORDS, read_flag
from privmax.itemsets.reading.forms import open_baskets, read_baskets

SECRET = "s3cr3t"

TABLE = "milk,bread,jam\n1,0,1\n0,0,0\n1,1,0\n"
ROWS = [["jam", "milk"], [], ["bread", "milk"]]


def rows_of(found):
    bounds = found.offsets.tolist()
    return [sorted(found.labels[code] for code in found.codes[a:b]) for a, b in pairwise(bounds)]


def by_owner(found):
    held = {}
    for owner, row in zip(found.owners.tolist(), rows_of(found), strict=True):
        held.setdefault(owner, []).append(row)
    return sorted(sorted(rows) for rows in held.values())


def refused(data, kind=DataError, **options):
    with pytest.raises(kind) as caught:
        read_baskets(data, **options)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None
    return str(caught.value)


def text(content):
    return io.BytesIO(content.encode())


class TestText:
    @pytest.mark.parametrize(
        "content",
        [
            TABLE,
            TABLE.replace(",", ";"),
            TABLE.replace(",", "\t"),
            TABLE.replace("\n", "\r\n"),
            TABLE.replace("1", "TRUE").replace("0", "FALSE"),
            TABLE.replace("1", "yes").replace("0", "No"),
            TABLE.replace("1", "Y").replace("0", "n"),
            TABLE.replace("1", "t").replace("0", "F"),
            TABLE.replace("0", " 0.0 ").replace("1", "1.0"),
            TABLE.replace("1", '"1"'),
            TABLE.replace(",", " , "),
            TABLE + "\n",
            "\ufeff" + TABLE,
        ],
        ids=repr,
    )
    def test_reads(self, content):
        found = read_baskets(text(content), form="onehot")
        assert found.labels == ["bread", "jam", "milk"]
        assert rows_of(found) == ROWS
        assert found.owners is None

    @pytest.mark.parametrize(
        "name", ["some.csv", "some.tsv", "some.csv.gz", "some.tsv.gz", "some.txt", "some.dat"]
    )
    def test_files(self, tmp_path, name):
        path = tmp_path / name
        content = TABLE.replace(",", "\t" if "tsv" in name else ",").encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        assert rows_of(read_baskets(path, form="onehot")) == ROWS

    def test_a_given_separator(self):
        assert (
            rows_of(read_baskets(text(TABLE.replace(",", " ")), form="onehot", separator=" "))
            == ROWS
        )

    def test_an_item_that_nobody_has_is_a_label(self):
        assert read_baskets(text("milk,bread\n1,0\n"), form="onehot").labels == ["bread", "milk"]

    def test_no_lines(self):
        found = read_baskets(text("milk,bread\n"), form="onehot")
        assert (found.rows, found.items) == (0, 2)

    def test_users_are_individuals(self):
        found = read_baskets(
            text("who,milk,bread\nx,1,0\ny,0,0\nx,1,1\n"), form="onehot", user="who"
        )
        assert found.labels == ["bread", "milk"]
        assert by_owner(found) == [[[]], [["bread", "milk"], ["milk"]]]
        spaced = read_baskets(text('who,milk\nx,1\n x ,1\n "x",1\n'), form="onehot", user="who")
        assert spaced.individuals == 1

    def test_lines_of_one_basket_are_put_together(self):
        content = "day,till,milk,bread\nmon,1,1,0\nmon,2,0,0\ntue,1,1,0\nmon,1,0,1\n"
        found = read_baskets(text(content), form="onehot", basket=["day", "till"])
        assert found.labels == ["bread", "milk"]
        assert sorted(rows_of(found)) == [[], ["bread", "milk"], ["milk"]]

    def test_baskets_of_two_users_are_two(self):
        found = read_baskets(
            text("n,who,milk\n1,x,1\n1,y,1\n"), form="onehot", basket="n", user="who"
        )
        assert by_owner(found) == [[["milk"]], [["milk"]]]

    @pytest.mark.parametrize(
        ("content", "line", "reason"),
        [
            (
                "milk,bread\n1,0\n1,s3cr3t\n",
                3,
                f"something other than {ALLOWED} in cell 2",
            ),
            ("milk,bread\n1,2\n", 2, "something other than"),
            ("milk,bread\n1,-1\n", 2, "something other than"),
            ("milk,bread\n1,0\n\n1,\n", 4, "nothing, where a 0 is needed, in cell 2"),
            ("milk,bread\n1,NaN\n", 2, "something other than"),
            ("milk,bread\n1\n", 2, "as many values"),
            ("milk,bread\n1,0,1\n", 2, "as many values"),
            ("1,0\n1,0\n", 1, "must name the items"),
        ],
    )
    def test_refuses(self, content, line, reason):
        told = refused(text(content), form="onehot")
        assert told.startswith(f"Line {line} ")
        assert reason in told

    @pytest.mark.parametrize("option", ["user", "basket"])
    def test_a_key_must_be_there(self, option):
        content = "who,milk\nx,1\n,1\n"
        told = refused(text(content), form="onehot", **{option: "who"})
        assert told.startswith(f"Line 3 has no {option}.")
        assert "no such column" in refused(
            text(content), ParameterError, form="onehot", **{option: "whom"}
        )

    def test_the_index_of_a_frame_is_no_item(self):
        written = io.StringIO()
        pd.DataFrame({"milk": [1, 0], "bread": [1, 1]}).to_csv(written)
        assert "like the index of a frame" in refused(text(written.getvalue()), form="onehot")

    def test_two_columns_of_one_name(self):
        assert "same name" in refused(text("milk, milk\n1,0\n"), form="onehot")

    @pytest.mark.parametrize("options", [{"item": "milk"}, {"header": False}], ids=str)
    def test_options_that_make_no_sense(self, options):
        refused(text(TABLE), ParameterError, form="onehot", **options)

    def test_the_words_are_few_and_public(self):
        assert sorted(WORDS) == [
            "0",
            "0.0",
            "1",
            "1.0",
            "f",
            "false",
            "n",
            "no",
            "t",
            "true",
            "y",
            "yes",
        ]
        assert [read_flag(word) for word in ("ye", "x", "", "2", "01", "on")] == [None] * 6


FRAME = {
    "milk": [1, 0, 1],
    "bread": [0, 0, 1],
    "jam": [1, 0, 0],
    "n": ["a", "a", "b"],
    "who": ["x", "x", "y"],
}
MAKE = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


class TestTypedData:
    @pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
    def test_columns_of_a_frame_that_are_no_items(self, make):
        found = read_baskets(make(FRAME), form="onehot", basket="n", user="who")
        assert found.labels == ["bread", "jam", "milk"]
        assert by_owner(found) == [[["bread", "milk"]], [["jam", "milk"]]]
        assert rows_of(read_baskets(make({"milk": [1, 0]}), form="onehot")) == [["milk"], []]

    @pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
    def test_a_frame_that_holds_something_else_tells_what_to_give(self, make):
        assert "With the form onehot" in refused(make(FRAME))
        assert "has no meaning" in refused(make(FRAME), ParameterError, form="onehot", item="milk")
        assert "has no meaning" in refused(make(FRAME), ParameterError, form="wide")

    def test_a_parquet_file(self, tmp_path):
        path = tmp_path / "some.parquet"
        pq.write_table(pa.table(FRAME), path)
        with ExitStack() as stack:
            found = open_baskets(path, form="onehot", basket="n", user="who", stack=stack)
            assert by_owner(found) == [[["bread", "milk"]], [["jam", "milk"]]]
        for options in ({"basket": "n", "item": "milk"}, {}):
            with (
                ExitStack() as stack,
                pytest.raises((DataError, ParameterError), match="set form to onehot"),
            ):
                open_baskets(path, stack=stack, **options)

    def test_a_table(self):
        table = ibis.memtable(pd.DataFrame(FRAME))
        with ExitStack() as stack:
            found = open_baskets(table, form="onehot", basket="n", user="who", stack=stack)
            assert by_owner(found) == [[["bread", "milk"]], [["jam", "milk"]]]
        with ExitStack() as stack, pytest.raises(ParameterError, match="separator"):
            open_baskets(table, form="onehot", separator=",", stack=stack)


class TestMistaken:
    """Every form but its own."""

    @pytest.mark.parametrize("header", [None, True])
    @pytest.mark.parametrize(
        "content",
        [
            TABLE,
            TABLE.replace("1", "true").replace("0", "false"),
            TABLE.replace("1", "Yes").replace("0", "No"),
            TABLE + "\n\n",
            TABLE.replace("0", ""),
            "id,milk,bread\ns3cr3t,1,0\nb,0,0\n",
            "id,who,milk,bread,jam\n1,x,1,0,1\n2,y,0,0,1\n",
            "milk\n1\n0\n",
            "0,1\n1,1\n0,1\n",
        ],
        ids=repr,
    )
    def test_as_a_basket_a_line(self, content, header):
        assert "set form to onehot" in refused(text(content), form="wide", header=header)

    @pytest.mark.parametrize(
        "content", ["1 0 1\n0 0 0\n1 1 0\n", "0 0\n1 0\n\n", "1\t0\t0\t1\n"], ids=repr
    )
    def test_as_numbers(self, content):
        assert "set form to onehot" in refused(text(content))

    def test_as_numbers_with_names(self):
        assert "set form to onehot" in refused(text("milk bread\n1 0\n"))

    @pytest.mark.parametrize(
        "words",
        [("1", "0"), ("TRUE", "FALSE"), ("yes", "no"), ("1.0", "0"), ("Y", "N"), ("t", "f")],
        ids=str,
    )
    def test_as_a_row_an_item(self, words):
        content = f"receipt,milk\n1,{words[0]}\n2,{words[1]}\n3,\n"
        assert "set form to onehot" in refused(text(content), basket="receipt", item="milk")

    @pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
    @pytest.mark.parametrize(
        "column", [[1, 0, None], [True, False, True], [1.0, 0.0, 1.0], ["1", "0", "0"]], ids=str
    )
    def test_as_a_long_frame(self, make, column):
        data = make({"receipt": [1, 2, 3], "milk": column})
        assert "set form to onehot" in refused(data, basket="receipt", item="milk")

    @pytest.mark.parametrize(
        "rows",
        [
            [[1, 0, 1], [0, 0, 1]],
            [[1.0, 0.0], [0.0, 0.0]],
            [[True, False], [False, False]],
            [["1", "0", "1"], ["0", "0", "0"]],
            np.array([[1, 0, 1], [0, 0, 1]]).tolist(),
            np.array([[1, 0, 1], [0, 0, 1]], object),
            pd.Series([[1, 0, 1], [0, 0, 1]]),
            pl.Series([[1, 0, 1], [0, 0, 1]]),
            pa.array([[1, 0, 1], [0, 0, 1]]),
        ],
        ids=lambda rows: type(rows).__name__,
    )
    def test_as_lists(self, rows):
        assert "numpy.array(baskets, bool)" in refused(rows)
        dense = np.array(
            [list(row) for row in (rows.to_pylist() if isinstance(rows, pa.Array) else rows)]
        )
        assert (
            read_baskets(np.isin(dense.astype(str), ["1", "1.0", "True"])).items == dense.shape[1]
        )

    def test_arrays_of_numbers(self):
        assert "astype(bool)" in refused(np.array([[1, 0], [0, 1]]))


class TestNotMistaken:
    """Baskets that only have something of it."""

    @pytest.mark.parametrize(
        "content",
        [
            "milk,bread\n1,0\nmilk,bread\n",
            "milk,bread\n1,0\n1\n",
            "milk,bread,jam\n1,0\n0,1\n",
            "milk,bread\n1,1\n",
            "milk,bread\n",
            "",
            "a,1\nb,0\nc,1\n",
            "milk,bread,jam\nbread,,\ntea,,\n",
        ],
        ids=repr,
    )
    def test_a_basket_a_line(self, content):
        assert read_baskets(text(content), form="wide").rows == content.count("\n")

    @pytest.mark.parametrize(
        "content", ["0 1\n0 1\n", "0\n1\n", "0 1 2\n0 0 0\n", "0 1 0\n1\n", "1 1 1\n"], ids=repr
    )
    def test_numbers(self, content):
        assert read_baskets(text(content)).rows == content.count("\n")

    @pytest.mark.parametrize(
        "rows", [[[0, 1]] * 3, [[1], [0]], [[0, 1, 1], [1]], [[0, 0, 1], [2, 2, 2]]], ids=str
    )
    def test_lists(self, rows):
        assert read_baskets(rows).rows == len(rows)

    @pytest.mark.parametrize(
        "items", [["1", "1"], ["0", "2"], ["0", "1", "x"], ["true", "yes"], []], ids=str
    )
    def test_a_row_an_item(self, items):
        content = "receipt,item\n" + "".join(
            f"{place},{item}\n" for place, item in enumerate(items)
        )
        assert read_baskets(text(content), basket="receipt", item="item").rows == len(items)


def test_one_hot_data_is_the_same_in_files_frames_and_arrays():
    for cells in itertools.product([0, 1], repeat=6):
        dense = np.array(cells).reshape(3, 2)
        frame = pd.DataFrame(dense, columns=["b", "a"])
        written = frame.to_csv(index=False)
        expected = [
            [name for name, cell in zip("ab", row[::-1], strict=True) if cell]
            for row in dense.tolist()
        ]
        for found in (
            read_baskets(text(written), form="onehot"),
            read_baskets(frame),
            read_baskets(frame, form="onehot"),
        ):
            assert rows_of(found) == expected
