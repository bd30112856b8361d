"""Baskets out of every form of data, and what is said about data that cannot be read."""

from __future__ import annotations

import codecs
import datetime
import gzip
import io
import subprocess
import sys
from contextlib import ExitStack
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from privmax.errors import DataError, ParameterError
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.reading import fimi
from privmax.itemsets.reading.forms import open_baskets, read_baskets

SECRET = "s3cr3t"
"""Planted in data that is refused. Nobody may read of it."""


def rows_of(found):
    """Each basket as the set of its items, beside its owner."""
    bounds = found.offsets.tolist()
    assert bounds[0] == 0
    assert bounds[-1] == len(found.codes)
    assert found.codes.dtype == np.int32
    assert found.offsets.dtype == np.int64
    return [{found.labels[code] for code in found.codes[a:b]} for a, b in pairwise(bounds)]


def by_owner(found):
    """The baskets of each individual, in no order."""
    assert found.owners.dtype == np.int64
    owners = found.owners.tolist()
    assert owners == sorted(owners)
    assert set(owners) == set(range(found.individuals))
    held = {owner: [] for owner in owners}
    for owner, row in zip(owners, rows_of(found), strict=True):
        held[owner].append(sorted(row))
    return sorted(sorted(rows) for rows in held.values())


def supports_of(found):
    """The support of each item that has one."""
    return {
        label: support
        for label, support in zip(found.labels, found.supports().tolist(), strict=True)
        if support
    }


def refused(data, kind=DataError, **options):
    """What an error says, which must not be anything secret, nor come with an error that does."""
    with pytest.raises(kind) as caught:
        read_baskets(data, **options)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    return str(caught.value)


@pytest.fixture(params=["compiled", "numpy"])
def parser(request, monkeypatch):
    """Both parsers of FIMI files; the second in chunks of hardly a line."""
    if request.param == "compiled":
        pytest.importorskip("numba")
        from privmax.itemsets.reading import fimi_compiled

        monkeypatch.setattr(fimi, "_kernels", lambda size: fimi_compiled)
    else:
        monkeypatch.setattr(fimi, "_kernels", lambda size: None)
        monkeypatch.setattr(fimi, "_CHUNK", 3)
    return request.param


@pytest.fixture
def file(tmp_path):
    """Writes a file and gives its path."""

    def write(name, content):
        path = tmp_path / name
        whole = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(whole) if name.endswith(".gz") else whole)
        return path

    return write


SMALL = Baskets(np.array([0, 3, 3, 5]), np.array([2, 0, 2, 1, 2], np.int32), range(4))


class TestBaskets:
    def test_counts_rows_items_and_individuals(self):
        assert (SMALL.rows, SMALL.items, SMALL.individuals) == (3, 4, 3)

    def test_a_repeated_item_counts_once(self):
        assert SMALL.supports().tolist() == [1, 1, 2, 0]
        assert SMALL.longest() == 2

    def test_an_owner_counts_once(self):
        owned = Baskets(SMALL.offsets, SMALL.codes, range(4), owners=np.array([0, 1, 1]))
        assert (owned.rows, owned.individuals) == (3, 2)
        assert owned.supports().tolist() == [1, 1, 2, 0]
        one = Baskets(SMALL.offsets, SMALL.codes, range(4), owners=np.array([0, 0, 0]))
        assert one.supports().tolist() == [1, 1, 1, 0]
        assert one.longest() == 2

    def test_weights_are_added_exactly(self):
        huge = 2**53
        weighted = Baskets(SMALL.offsets, SMALL.codes, range(4), weights=np.array([huge, 5, 1]))
        assert weighted.individuals == huge + 6
        assert weighted.supports().tolist() == [huge, 1, huge + 1, 0]

    def test_an_owner_without_a_row_is_an_individual(self):
        owned = Baskets(
            np.array([0, 1]),
            np.array([1], np.int32),
            range(2),
            owners=np.array([6]),
            weights=np.arange(1, 10),
        )
        assert owned.individuals == 45
        assert owned.supports().tolist() == [0, 7]

    def test_no_rows(self):
        empty = Baskets(
            np.zeros(1, np.int64), np.zeros(0, np.int32), range(2), owners=np.zeros(0, np.int64)
        )
        assert (empty.rows, empty.individuals, empty.longest()) == (0, 0, 0)
        assert empty.supports().tolist() == [0, 0]

    def test_shows_nothing(self):
        assert repr(SMALL) == str(SMALL) == "Baskets(<private>)"

    def test_survivors_keep_every_frequent_item(self):
        assert SMALL.survivors(2).supports()[2] == 2


class TestDeclaredItems:
    def test_a_number_declares_the_integers_below_it(self):
        wider = SMALL.within(9)
        assert wider.labels == range(9)
        assert wider.supports().tolist() == [1, 1, 2, 0, 0, 0, 0, 0, 0]

    def test_codes_that_no_row_has_need_not_be_declared(self):
        assert SMALL.within(3).supports().tolist() == [1, 1, 2]
        assert SMALL.within([2, 1, 0]).supports().tolist() == [1, 1, 2]

    def test_a_list_is_put_in_order(self):
        found = read_baskets([["b", "ä"], ["b"]]).within(["z", "ä", "b", "a"])
        assert found.labels == ["a", "b", "z", "ä"]
        assert found.supports().tolist() == [0, 2, 0, 1]
        assert rows_of(found) == [{"b", "ä"}, {"b"}]

    def test_numbers_in_a_list(self):
        found = read_baskets([[2**40, 7], [7]]).within([7, 1, 2**40])
        assert found.labels == [1, 7, 2**40]
        assert found.supports().tolist() == [0, 2, 1]

    def test_owners_and_weights_stay(self):
        owned = Baskets(
            SMALL.offsets,
            SMALL.codes,
            range(4),
            owners=np.array([0, 0, 1]),
            weights=np.array([3, 4]),
        ).within([0, 1, 2])
        assert owned.individuals == 7
        assert owned.supports().tolist() == [3, 4, 7]

    def test_whole_numbers_may_be_declared_as_floats(self):
        declared = SMALL.within([0.0, Decimal("1.0"), np.float32(2)])
        assert declared.labels == [0, 1, 2]
        assert list(map(type, declared.labels)) == [int] * 3

    @pytest.mark.parametrize("items", [2, [0, 1], ["0", "1", "2"], [0.5, 1.0, 2.0]], ids=str)
    def test_another_item_is_refused(self, items):
        with pytest.raises(DataError, match="not declared") as caught:
            SMALL.within(items)
        assert caught.value.__context__ is None

    def test_an_undeclared_text_is_not_quoted(self):
        with pytest.raises(DataError) as caught:
            read_baskets([["a", SECRET]]).within(["a"])
        assert SECRET not in str(caught.value)

    @pytest.mark.parametrize(
        "items",
        [
            0,
            -1,
            2**31 + 1,
            True,
            1.5,
            "abc",
            b"abc",
            None,
            [],
            [1, 1],
            [1, 1.0],
            ["a", None],
            [[1]],
            [{1}, {2}],
        ],
        ids=str,
    )
    def test_what_declares_nothing_is_refused(self, items):
        with pytest.raises(ParameterError, match="items"):
            SMALL.within(items)


class TestFimi:
    @pytest.mark.parametrize(
        ("content", "rows"),
        [
            (b"", []),
            (b"\n", [set()]),
            (b"1 2\n3\n", [{1, 2}, {3}]),
            (b"1 2\n3", [{1, 2}, {3}]),
            (b"1 2\r\n\r\n3\r\n", [{1, 2}, set(), {3}]),
            (b"1 2\r\n3\r", [{1, 2}, {3}]),
            (b"1 2\n\n", [{1, 2}, set()]),
            (b"1 2\n ", [{1, 2}, set()]),
            (b"\n\n7", [set(), set(), {7}]),
            (b"  4\t5   6  \n", [{4, 5, 6}]),
            (b"007 0 00000000000000000000012\n", [{7, 0, 12}]),
            (b"3 3 3\n", [{3}]),
            (b"2147483647 0\n", [{2147483647, 0}]),
            (b"\xef\xbb\xbf5 6\n", [{5, 6}]),
        ],
        ids=repr,
    )
    def test_reads(self, parser, file, content, rows):
        assert rows_of(read_baskets(file("some.dat", content))) == rows

    def test_small_numbers_are_their_own_codes(self, parser):
        found = read_baskets(io.BytesIO(b"5 1\n3\n"))
        assert found.labels == range(6)
        assert found.codes.tolist() == [5, 1, 3]
        assert found.owners is found.weights is None

    def test_large_numbers_get_codes_in_order(self, parser):
        found = read_baskets(io.BytesIO(b"2000000000 7\n1000000 7\n"))
        assert found.labels == [7, 1000000, 2000000000]
        assert found.codes.tolist() == [2, 0, 1, 0]
        assert all(type(label) is int for label in found.labels)

    @pytest.mark.parametrize(
        ("content", "line", "reason"),
        [
            (b"1 2\n\n3 s3cr3t\n4", 3, "other than whole numbers"),
            (b"1 2\n3 -4\n", 2, "other than whole numbers"),
            (b"1 2\n3 +4\n", 2, "other than whole numbers"),
            (b"1.5\n", 1, "other than whole numbers"),
            (b"1\n2\n3,4", 3, "other than whole numbers"),
            (b"1\n\xff\xfe\n", 2, "other than whole numbers"),
            ("1\n٣\n".encode(), 2, "other than whole numbers"),
            (b"1\x00\n", 1, "other than whole numbers"),
            (b"1\n2\n2147483648\n", 3, "above 2147483647"),
            (b"99999999999999999999\n", 1, "above 2147483647"),
            (b"1\n18446744073709551616\n", 2, "above 2147483647"),
            (b"1\n18446744073709551621 5\nx", 2, "above 2147483647"),
            (b"1\n2 3\r4\n", 2, "carriage return"),
            (b"1\r2\r3\r", 1, "carriage return"),
            (b"1\n\n2\r\r\n", 3, "carriage return"),
        ],
        ids=repr,
    )
    def test_refuses(self, parser, file, content, line, reason):
        told = refused(file("bad.dat", content))
        assert told.startswith(f"Line {line} ")
        assert reason in told
        assert "set form to wide" in told

    def test_compressed(self, parser, file):
        assert rows_of(read_baskets(file("some.dat.gz", "1 2\n3\n"))) == [{1, 2}, {3}]

    def test_a_number_of_very_many_digits_is_refused(self, parser):
        assert "Line 2 " in refused(io.BytesIO(b"1\n" + b"9" * 10_000))

    def test_a_long_line_among_chunks(self, parser):
        row = set(range(1000))
        content = b"1\n" + b" ".join(b"%d" % item for item in sorted(row)) + b"\n\n2"
        assert rows_of(read_baskets(io.BytesIO(content))) == [{1}, row, set(), {2}]

    @pytest.mark.parametrize(
        "content", [b"1 2\n", b"1 2\n ", b"1 2\n3", b"1 2\n\r", b"\t", b"1 2\n\n"], ids=repr
    )
    def test_the_compiled_parser_writes_where_every_row_ends(self, content):
        pytest.importorskip("numba")
        from privmax.itemsets.reading import fimi_compiled

        rows = content.split(b"\n")[: -1 if content.endswith(b"\n") else None]
        offsets, codes = np.full(len(rows) + 1, -7), np.full(len(content), -7, np.int32)
        count, largest = fimi_compiled.parse(np.frombuffer(content, np.uint8), offsets, codes)
        assert np.diff(offsets).tolist() == [len(row.split()) for row in rows]
        assert offsets[0] == 0
        assert codes[:count].tolist() == list(map(int, content.split()))
        assert largest == max(map(int, content.split()), default=-1)

    @pytest.mark.slow
    def test_numba_is_not_loaded_for_a_small_file(self, file):
        program = (
            "import sys; from privmax.itemsets.reading.forms import read_baskets; "
            f"assert read_baskets({str(file('a.dat', '1 2'))!r}).rows == 1; assert 'numba' not in "
            f"sys.modules"
        )
        subprocess.run([sys.executable, "-c", program], check=True)

    @pytest.mark.parametrize("missing", [ImportError, RuntimeError])
    def test_numba_need_not_work(self, monkeypatch, missing):
        class Refusing:
            def find_spec(self, name, *_):
                if name == "privmax.itemsets.reading.fimi_compiled":
                    raise missing

        import privmax.itemsets.reading

        monkeypatch.delitem(sys.modules, "privmax.itemsets.reading.fimi_compiled", raising=False)
        monkeypatch.delattr(privmax.itemsets.reading, "fimi_compiled", raising=False)
        monkeypatch.setattr(sys, "meta_path", [Refusing(), *sys.meta_path])
        monkeypatch.setattr(fimi, "_WORTH_LOADING_NUMBA", 0)
        assert fimi._kernels(1) is None
        assert rows_of(read_baskets(io.BytesIO(b"1 2\n3"))) == [{1, 2}, {3}]


class TestWideFiles:
    @pytest.mark.parametrize(
        ("content", "options", "rows"),
        [
            ("", {}, []),
            ("milk,bread\n\nbutter", {}, [{"milk", "bread"}, set(), {"butter"}]),
            (" milk , bread ,,milk,\r\n , \r\n", {}, [{"milk", "bread"}, set()]),
            ('"salt, fine", "a ""b"""\n', {}, [{"salt, fine", 'a "b"'}]),
            ('"two\nlines",x\ny\n', {}, [{"two\nlines", "x"}, {"y"}]),
            ("1;2\n3", {"separator": ";"}, [{"1", "2"}, {"3"}]),
            ("a b  c\n", {"separator": " "}, [{"a", "b", "c"}]),
            ("a\tb c\n", {"separator": "\t"}, [{"a", "b c"}]),
            ("first,second\na,b\n", {"header": True}, [{"a", "b"}]),
            ("", {"header": True}, []),
            ("first,second\na,b\n", {"header": False}, [{"first", "second"}, {"a", "b"}]),
            ("\ufefföl,ä\n", {}, [{"öl", "ä"}]),
        ],
        ids=lambda value: repr(value) if isinstance(value, str) else "",  # sets have no order
    )
    @pytest.mark.parametrize("name", ["some.csv", "some.csv.gz"])
    def test_reads(self, file, name, content, options, rows):
        assert rows_of(read_baskets(file(name, content), **options)) == rows

    def test_tabs_in_a_tsv_file(self, file):
        assert rows_of(read_baskets(file("some.tsv", "a,b\tc\n"))) == [{"a,b", "c"}]

    def test_items_stay_text_and_in_order(self, file):
        found = read_baskets(file("some.csv", "10,9\n é,z,\U0001f600,\uffff"))
        assert found.labels == ["10", "9", "z", "é", "\uffff", "\U0001f600"]
        assert found.labels == sorted(found.labels, key=str.encode)

    @pytest.mark.parametrize(
        ("content", "line", "reason"),
        [
            (b'a\nb,"s3cr3t\n', 2, "not CSV"),
            (b'a\nb,"s3cr3t"c\n', 2, "not CSV"),
            (b"a\n\ns3cr3t\xff\n", 3, "not UTF-8"),
            (b"a\ns3cr3t\rb\n", 2, "not CSV"),
            (b"a\n" + b"s3cr3t" * 30_000 + b"\n", 2, "not CSV"),
        ],
    )
    def test_refuses(self, file, content, line, reason):
        told = refused(file("bad.csv", content))
        assert told.startswith(f"Line {line} ")
        assert reason in told

    @pytest.mark.parametrize("separator", ["", ", ", '"', "\n", "\r"])
    def test_what_separates_is_one_character(self, file, separator):
        refused(file("some.csv", "a,b"), ParameterError, separator=separator)


class TestLongFiles:
    LINES = (
        "when,who,what\n3,ann,milk\n1,bob,bread\n3,ann,bread\n2,ann,\n1,bob,bread\n\n1,ann,salt\n"
    )

    @pytest.mark.parametrize("name", ["some.csv", "some.csv.gz", "some.tsv"])
    def test_baskets_are_individuals(self, file, name):
        found = read_baskets(file(name, self.LINES), basket="when", item="what")
        assert sorted(map(sorted, rows_of(found))) == [[], ["bread", "milk"], ["bread", "salt"]]
        assert found.owners is None
        assert found.labels == ["bread", "milk", "salt"]

    def test_users_are_individuals(self, file):
        found = read_baskets(file("some.csv", self.LINES), basket="when", item="what", user="who")
        assert by_owner(found) == [[[], ["bread", "milk"], ["salt"]], [["bread"]]]
        assert supports_of(found) == {"bread": 2, "milk": 1, "salt": 1}

    def test_a_column_may_be_both(self, file):
        found = read_baskets(file("some.csv", self.LINES), basket="who", item="what", user="who")
        assert by_owner(found) == [[["bread"]], [["bread", "milk", "salt"]]]

    def test_several_columns_tell_baskets_apart_together(self, file):
        path = file("some.csv", "who,when,what\na,1,x\na,1,y\na,11,x\naa,1,x\n1,a,z\n")
        for columns in (["who", "when"], ("when", "who")):
            found = read_baskets(path, basket=columns, item="what")
            assert sorted(map(sorted, rows_of(found))) == [["x"], ["x"], ["x", "y"], ["z"]]
        owned = read_baskets(path, basket=["who", "when"], item="what", user="who")
        assert by_owner(owned) == [[["x"]], [["x"], ["x", "y"]], [["z"]]]

    def test_each_of_several_columns_must_hold_something(self, file):
        path = file("some.csv", "who,when,what\na,1,x\na,,x\n")
        assert refused(path, basket=["who", "when"], item="what") == "Line 3 has no basket."
        assert "no such column" in refused(
            path, ParameterError, basket=["who", "where"], item="what"
        )

    @pytest.mark.parametrize("basket", [[], ["who", "who"]], ids=str)
    def test_columns_are_named_once(self, file, basket):
        refused(file("some.csv", "who,what\na,x\n"), ParameterError, basket=basket, item="what")

    @pytest.mark.parametrize("option", ["item", "user"])
    def test_items_and_users_have_one_column(self, file, option):
        columns = {"basket": "who", "item": "what", option: ["who", "what"]}
        assert "one column" in refused(
            file("some.csv", "who,what\na,x\n"), ParameterError, **columns
        )

    @pytest.mark.parametrize("separator", [",", ";", "\t"])
    def test_the_line_of_names_tells_the_separator(self, file, separator):
        path = file("some.csv", f"b{separator}i\n1{separator} x|y \n")
        assert rows_of(read_baskets(path, basket="b", item="i")) == [{" x|y "}]

    def test_a_comma_in_the_names_settles_it(self, file):
        assert rows_of(
            read_baskets(file("some.csv", "b;c,i\n1,x;y\n"), basket="b;c", item="i")
        ) == [{"x;y"}]

    def test_a_given_separator(self, file):
        assert rows_of(
            read_baskets(file("some.csv", "b|i,j\n1|x\n"), basket="b", item="i,j", separator="|")
        ) == [{"x"}]

    def test_quoted_cells(self, file):
        assert rows_of(
            read_baskets(file("some.csv", '"b","i"\n1,"x, ""y"""\n'), basket="b", item="i")
        ) == [{'x, "y"'}]

    def test_only_names(self, file):
        found = read_baskets(file("some.csv", "b,i,u\n"), basket="b", item="i", user="u")
        assert (found.rows, found.items, found.individuals) == (0, 0, 0)

    @pytest.mark.parametrize(
        ("content", "line", "reason"),
        [
            (b"b,i,u\n1,x,ann\n,s3cr3t,ann\n", 3, "no basket"),
            (b"b,i,u\n1,x,ann\n\n2,s3cr3t,\n", 4, "no user"),
            (b"b,i,u\n1,s3cr3t\n", 2, "as many values"),
            (b"b,i,u\n1,s3cr3t,ann,4\n", 2, "as many values"),
            (b'b,i,u\n1,"two\nlines",ann\n1,s3cr3t\n', 4, "as many values"),
            (b'b,i,u\n1,x,ann\n1,"s3cr3t,ann\n', 3, "not CSV"),
            (b"b,i,u\n1,s3cr3t\xc3,ann\n", 2, "not UTF-8"),
        ],
    )
    def test_refuses(self, file, content, line, reason):
        told = refused(file("bad.csv", content), basket="b", item="i", user="u")
        assert told.startswith(f"Line {line} ")
        assert reason in told

    def test_a_file_of_another_kind_is_named(self, file):
        told = refused(file("bad.csv", b"\xff\xfeb,i\n1,s3cr3t\n"), basket="b", item="i")
        assert told.startswith("The file is not UTF-8 text. It is text in UTF-16.")

    @pytest.mark.parametrize("content", ["", "\nb,i\n1,s3cr3t\n"])
    def test_a_line_of_names_must_be_there(self, file, content):
        assert "begins with an empty line" in refused(
            file("bad.csv", content), basket="b", item="i"
        )

    @pytest.mark.parametrize("wrong", ["basket", "item", "user"])
    def test_a_column_must_be_there(self, file, wrong):
        content = "s3cr3t,milk\n1,2\n"
        names = {"basket": "s3cr3t", "item": "milk", "user": "milk", wrong: "other"}
        with pytest.raises(ParameterError, match="the file has no such column") as caught:
            read_baskets(file("bad.csv", content), **names)
        assert caught.value.name == wrong
        assert "milk" not in str(caught.value)

    def test_two_columns_of_one_name(self, file):
        path = file("bad.csv", "b,i,i,j\n1,2,3,x\n")
        assert "are named 'i'" in refused(path, basket="b", item="i")
        assert rows_of(read_baskets(path, basket="b", item="j")) == [{"x"}]

    def test_a_line_of_names_is_needed(self, file):
        refused(file("some.csv", "1,2"), ParameterError, basket="1", item="2", header=False)

    @pytest.mark.parametrize("names", [{"basket": "b"}, {"item": "b"}, {"user": "b"}], ids=str)
    def test_basket_and_item_are_needed(self, file, names):
        assert "the long form needs it" in refused(
            file("some.csv", "b\n1"), ParameterError, **names
        )


class TestFiles:
    def test_standard_input(self, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 2\n3")))
        assert rows_of(read_baskets("-")) == [{1, 2}, {3}]
        monkeypatch.setattr(sys, "stdin", io.StringIO("b,i\n1,x"))
        assert rows_of(read_baskets("-", basket="b", item="i")) == [{"x"}]

    @pytest.mark.parametrize("opened", [io.StringIO, lambda content: io.BytesIO(content.encode())])
    def test_open_files(self, opened):
        assert rows_of(read_baskets(opened("1 2\n3"))) == [{1, 2}, {3}]
        assert rows_of(read_baskets(opened("a,b\n\nc"), form="wide")) == [{"a", "b"}, set(), {"c"}]
        assert rows_of(read_baskets(opened("a;b\n1;x"), basket="a", item="b")) == [{"x"}]

    def test_an_open_file_stays_open(self):
        file = io.BytesIO(b"1 2\n3")
        read_baskets(file)
        assert not file.closed

    def test_a_text_file_that_cannot_be_decoded(self):
        undecodable = io.TextIOWrapper(io.BytesIO(b"a\ns3cr3t\xff"), encoding="utf-8")
        assert "Line 2 is not UTF-8" in refused(undecodable, form="wide")
        assert "Line 2 is not UTF-8" in refused(
            codecs.getreader("utf-8")(io.BytesIO(b"1\ns3cr3t\xff"))
        )

    def test_the_form_may_be_said(self, file):
        path = file("odd.name", "1,2 3\n")
        assert rows_of(read_baskets(path, form="wide")) == [{"1", "2 3"}]
        assert rows_of(read_baskets(file("fimi.csv", "1 2"), form="fimi")) == [{1, 2}]
        refused(path, ParameterError)
        refused(path, ParameterError, form="narrow")

    @pytest.mark.parametrize(
        "name", ["none.dat", "none.dat.gz", "none.csv", "a\0.dat", "n" * 5000 + ".dat"]
    )
    def test_a_file_must_be_there(self, tmp_path, name):
        assert refused(tmp_path / name) == "There is no file or folder of the name given as data."

    @pytest.mark.parametrize("form", ["fimi", "wide"])
    def test_a_folder_is_no_file(self, tmp_path, form):
        assert "folder" in refused(tmp_path, form=form)

    @pytest.mark.parametrize("name", ["cut.dat.gz", "cut.csv.gz"])
    @pytest.mark.parametrize(
        "content",
        [b"1 2 s3cr3t\n", gzip.compress(b"1 2\n" * 5000, mtime=0)[:-12], b"\x1f\x8b\x08s3cr3t"],
        ids=["plain", "cut", "broken"],
    )
    def test_a_compressed_file_must_be_whole(self, tmp_path, name, content):
        path = tmp_path / name
        path.write_bytes(content)
        assert "gzip" in refused(path)
        if name.endswith(".csv.gz"):
            assert "gzip" in refused(path, basket="1 2", item="1 2")

    @pytest.mark.parametrize(
        "options", [{"form": "fimi"}, {"form": "wide"}, {"basket": "b", "item": "i"}], ids=str
    )
    def test_a_file_that_fails(self, options):
        class Failing(io.RawIOBase):
            def readable(self):
                return True

            def readinto(self, _):
                raise OSError(SECRET)

        assert "to its end" in refused(Failing(), **options)

    @pytest.mark.parametrize(
        ("name", "options"),
        [
            ("a.dat", {"basket": "b"}),
            ("a.dat", {"user": "b"}),
            ("a.dat", {"separator": ","}),
            ("a.dat", {"header": True}),
            ("a.csv", {"form": "wide", "item": "b"}),
        ],
    )
    def test_options_that_make_no_sense(self, file, name, options):
        assert "has no meaning" in refused(file(name, "1 2"), ParameterError, **options)


class TestLists:
    @pytest.mark.parametrize(
        ("data", "rows"),
        [
            ([], []),
            ([[]], [set()]),
            ([["b", "a", "b"], [], ("c",)], [{"a", "b"}, set(), {"c"}]),
            (({1, 2}, frozenset({3}), range(2)), [{1, 2}, {3}, {0, 1}]),
            ((iter(row) for row in ["ab", "c"]), [{"a", "b"}, {"c"}]),
            ([[1, None], [float("nan"), 2], [None], [pd.NA, pd.NaT]], [{1}, {2}, set(), set()]),
            ([np.array([3, 1]), [np.int8(3)], [np.str_("x")]], [{1, 3}, {3}, {"x"}]),
            ([[("a", 1)], [("a", 2), ("a", 1)]], [{("a", 1)}, {("a", 1), ("a", 2)}]),
            (pd.Series([["a"], ["b", "a"]], index=[7, 9]), [{"a"}, {"a", "b"}]),
            (pl.Series([["a"], ["b", None]]), [{"a"}, {"b"}]),
            (pa.array([[1], [2, 1]]), [{1}, {1, 2}]),
            (np.array([["a", "b"], ["b", "c"]], object), [{"a", "b"}, {"b", "c"}]),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_reads(self, data, rows):
        assert rows_of(read_baskets(data)) == rows

    def test_labels_are_ordinary_and_in_order(self):
        found = read_baskets(
            [["b", 10, np.float64(-0.0)], [9, "B", 1.5, np.int64(10)], [0.0, True, 1]]
        )
        assert found.labels == [0, 1, 1.5, 9, 10, "B", "b"]
        assert [type(label) for label in found.labels] == [int, int, float, int, int, str, str]
        assert found.supports().tolist() == [2, 1, 1, 1, 2, 1, 1]

    def test_kinds_that_cannot_be_compared_are_put_in_an_order_all_the_same(self):
        items = [
            (1, "x"),
            ("x", 1),
            b"x",
            datetime.date.max,
            datetime.datetime.max,
            Fraction(1, 3),
            "x",
            1,
        ]
        for order in (items, items[::-1]):
            labels = read_baskets([order]).labels
            assert sorted(map(repr, labels)) == sorted(map(repr, items))
            assert labels == read_baskets([items]).labels

    def test_dates(self):
        days = [datetime.date(2026, 5, day) for day in (3, 1)]
        assert read_baskets([days]).labels == days[::-1]

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            ([["a"], SECRET], "Basket 2: a basket must be a list of items, not text."),
            ([["a"], [], SECRET.encode()], "Basket 3: a basket must be a list of items, not text."),
            ([["a"], 5], "Basket 2"),
            ([["a"], None], "Basket 2"),
            ([{SECRET: 1}], "Basket 1"),
            ([["a"], [[SECRET]]], "without exact equality"),
            ([[frozenset({SECRET})], [frozenset({"b"})]], "without exact equality"),
            ([[frozenset({SECRET})]], "without exact equality"),
            ([[(1, [SECRET])]], "without exact equality"),
            pytest.param([[1, object()]], "without exact equality", id="an object"),
            ({SECRET: ["a"]}, "cannot be read from dict"),
            (SECRET.encode(), "cannot be read from bytes"),
            (5, "cannot be read from int"),
            (None, "cannot be read from NoneType"),
        ],
        ids=str,
    )
    def test_refuses(self, data, reason):
        assert reason in refused(data)

    @pytest.mark.parametrize("option", ["basket", "item", "user", "separator", "form"])
    def test_options_that_make_no_sense(self, option):
        refused([["a"]], ParameterError, **{option: ","})
        refused(SMALL, ParameterError, **{option: ","})

    def test_baskets_stay_as_they_are(self):
        assert read_baskets(SMALL) is SMALL


FRAMES = {
    "pandas": pd.DataFrame,
    "pandas of objects": lambda data: pd.DataFrame(data, dtype=object),
    "polars": lambda data: pl.DataFrame(data, strict=False),
    "arrow": pa.table,
    "arrow batch": pa.RecordBatch.from_pydict,
    "arrow chunks": lambda data: pa.concat_tables(
        [pa.table(data).slice(0, 2), pa.table(data).slice(2)]
    ),
}


@pytest.fixture(params=FRAMES, ids=lambda name: name.replace(" ", "-"))
def frame(request):
    return FRAMES[request.param]


class TestLongFrames:
    @pytest.mark.parametrize(
        ("items", "labels"),
        [
            (["b", "a", None, "b", "ä"], ["a", "b", "ä"]),
            ([9, 10, None, 9, -1], [-1, 9, 10]),
            (
                [
                    datetime.date(2026, 1, 2),
                    datetime.date(2026, 1, 1),
                    None,
                    datetime.date(2026, 1, 2),
                    datetime.date.max,
                ],
                [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2), datetime.date.max],
            ),
            ([2.5, -0.0, float("nan"), 2.5, 0.0], [0.0, 2.5]),
        ],
        ids=["text", "numbers", "dates", "floats"],
    )
    def test_reads(self, frame, items, labels):
        found = read_baskets(
            frame({"b": [7, 7, 8, 9, 7], "i": items, "u": list("xyxyx")}), basket="b", item="i"
        )
        assert [
            label for label, support in zip(found.labels, found.supports(), strict=True) if support
        ] == labels
        rows = [{items[0], items[1], items[4]}, set(), {items[3]}]
        assert sorted(rows_of(found), key=len) == sorted(rows, key=len)

    def test_users(self, frame):
        data = frame(
            {"b": [3, 1, 3, 2, 1, 1], "i": ["m", "b", "b", None, "b", "s"], "u": list("abaaba")}
        )
        assert by_owner(read_baskets(data, basket="b", item="i", user="u")) == [
            [[], ["b", "m"], ["s"]],
            [["b"]],
        ]

    def test_several_columns_tell_baskets_apart_together(self, frame):
        data = frame(
            {
                "who": list("aaabb"),
                "when": [1, 1, 2, 1, 1],
                "what": list("xyxxz"),
                "u": list("pqppp"),
            }
        )
        for columns in (["who", "when"], ("when", "who")):
            found = read_baskets(data, basket=columns, item="what")
            assert sorted(map(sorted, rows_of(found))) == [["x"], ["x", "y"], ["x", "z"]]
        owned = read_baskets(data, basket=["who", "when"], item="what", user="u")
        assert by_owner(owned) == [[["x"], ["x"], ["x", "z"]], [["y"]]]
        assert "no such column" in refused(
            data, ParameterError, basket=["who", "where"], item="what"
        )

    def test_each_of_several_columns_must_hold_something(self, frame):
        data = frame({"who": ["a", "a"], "when": [1, None], "what": ["x", SECRET]})
        assert refused(data, basket=["who", "when"], item="what") == "Row 2 has no basket."

    def test_no_rows(self, frame):
        found = read_baskets(frame({"b": [], "i": [], "u": []}), basket="b", item="i", user="u")
        assert (found.rows, found.items, found.individuals) == (0, 0, 0)

    @pytest.mark.parametrize("missing", ["basket", "user"])
    def test_a_row_must_have_a_basket_and_a_user(self, frame, missing):
        columns = {"basket": ["x", "y", "z"], "user": ["x", "y", "z"], "item": [SECRET] * 3}
        columns[missing][1] = None
        told = refused(frame(columns), basket="basket", item="item", user="user")
        assert told.startswith(f"Row 2 has no {missing}.")

    @pytest.mark.parametrize("wrong", ["basket", "item", "user"])
    def test_a_column_must_be_there(self, frame, wrong):
        names = {"basket": "b", "item": "i", "user": "i", wrong: "other"}
        assert "no such column" in refused(frame({"b": [1], "i": [2]}), ParameterError, **names)

    def test_basket_and_item_are_needed(self, frame):
        refused(frame({"b": [1], "i": [2]}), ParameterError, basket="b")
        # A column of objects may hold lists; then each row is looked at.
        assert "basket" in refused(
            frame({"b": [1], "i": [2]}), (ParameterError, DataError), item="i"
        )

    def test_two_columns_of_one_name(self):
        doubled = pd.DataFrame([[1, 2, 3]], columns=["b", "i", "i"])
        refused(doubled, ParameterError, basket="b", item="i")

    @pytest.mark.parametrize(
        "column",
        [
            pd.Series(["b", "a", "b"], dtype="category"),
            pd.Series(["b", "a", "b"]).astype("category").cat.set_categories(["b", "unused", "a"]),
            pl.Series("i", ["b", "a", "b"], dtype=pl.Categorical),
            pl.Series("i", ["b", "a", "b"], dtype=pl.Enum(["b", "unused", "a"])),
            pa.array(["b", "a", "b"]).dictionary_encode(),
            pa.DictionaryArray.from_arrays(pa.array([0, 2, 0]), pa.array(["b", "unused", "a"])),
        ],
        ids=lambda column: f"{type(column).__module__}",
    )
    def test_categories(self, column):
        make = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(
            type(column).__module__.split(".")[0], pa.table
        )
        found = read_baskets(make({"b": [1, 2, 3], "i": column}), basket="b", item="i")
        assert supports_of(found) == {"a": 1, "b": 2}
        assert list(supports_of(found)) == ["a", "b"]

    def test_items_that_are_lists_are_refused(self):
        for make in (pd.DataFrame, pl.DataFrame, pa.table):
            assert "without exact equality" in refused(
                make({"b": [1], "i": [[SECRET]]}), basket="b", item="i"
            )

    def test_times_keep_their_nanoseconds(self):
        times = pd.to_datetime(["2026-01-01 00:00:00.000000002", "2026-01-01 00:00:00.000000001"])
        found = read_baskets(pd.DataFrame({"b": [1, 2], "i": times}), basket="b", item="i")
        assert found.supports().tolist() == [1, 1]
        assert found.labels == sorted(times)


class TestOneHotFrames:
    @pytest.mark.parametrize("kind", [bool, int, float])
    def test_reads(self, frame, kind):
        columns = {"b": [1, 0, 0, 1], "a": [1, 0, 1, 0], "never": [0, 0, 0, 0]}
        found = read_baskets(
            frame({name: list(map(kind, column)) for name, column in columns.items()})
        )
        assert rows_of(found) == [{"a", "b"}, set(), {"a"}, {"b"}]
        assert found.labels == ["a", "b", "never"]

    def test_users(self, frame):
        found = read_baskets(
            frame({"b": [1, 0, 0, 1], "who": list("yxyx"), "a": [1, 0, 1, 0]}), user="who"
        )
        assert by_owner(found) == [[[], ["b"]], [["a"], ["a", "b"]]]
        assert found.labels == ["a", "b"]

    def test_columns_may_be_called_anything(self, frame):
        odd = ["read", "schema", "column", "columns", "data"]
        assert rows_of(read_baskets(frame({name: [1, 0] for name in odd}))) == [set(odd), set()]

    def test_columns_may_be_numbers(self):
        assert read_baskets(pd.DataFrame([[1, 0], [1, 1]], columns=[10, 9])).labels == [9, 10]

    def test_sparse_columns(self):
        sparse = pd.DataFrame.sparse.from_spmatrix(
            scipy.sparse.csr_array(np.eye(3, dtype=bool)), columns=list("cab")
        )
        assert rows_of(read_baskets(sparse)) == [{"c"}, {"a"}, {"b"}]

    def test_nullable_columns(self):
        assert rows_of(read_baskets(pd.DataFrame({"a": pd.array([True, False], "boolean")}))) == [
            {"a"},
            set(),
        ]

    @pytest.mark.parametrize(
        "column",
        [[0, 2, 1], [0, -1, 1], [0.5, 0.0, 1.0], ["0", "1", SECRET], [datetime.date.max] * 3],
        ids=str,
    )
    def test_other_values_are_refused(self, frame, column):
        assert "other than 0 and 1" in refused(frame({"a": [0, 1, 0], "x": column}))

    def test_missing_values_are_refused(self, frame):
        assert "missing value" in refused(frame({"a": [0, 1, 0], "x": [1, None, 0]}))
        assert "Row 2 has no user" in refused(
            frame({"a": [0, 1, 0], "u": ["x", None, "y"]}), user="u"
        )

    def test_two_columns_of_one_name(self):
        assert "same name" in refused(pd.DataFrame([[1, 0]], columns=["a", "a"]))

    def test_no_columns(self):
        found = read_baskets(pd.DataFrame(index=range(3)))
        assert (found.rows, found.items) == (3, 0)


class TestMatrices:
    DENSE = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 1]])

    @pytest.mark.parametrize("make", ["csr", "csc", "coo", "lil"])
    @pytest.mark.parametrize("shape", ["array", "matrix"])
    @pytest.mark.parametrize("kind", [bool, np.int8, float])
    def test_sparse(self, make, shape, kind):
        found = read_baskets(getattr(scipy.sparse, f"{make}_{shape}")(self.DENSE.astype(kind)))
        assert rows_of(found) == [{1, 2}, set(), {0, 2}]
        assert found.labels == range(3)

    def test_zeros_that_are_written_down(self):
        matrix = scipy.sparse.csr_array(
            (np.array([0, 1, 0, 1]), np.array([0, 1, 2, 0]), np.array([0, 2, 4]))
        )
        assert rows_of(read_baskets(matrix)) == [{1}, {0}]

    def test_the_matrix_is_left_as_it_was(self):
        matrix = scipy.sparse.csr_array(
            (np.array([1, -1, 1]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2)
        )
        assert rows_of(read_baskets(matrix)) == [{1}]
        assert matrix.nnz == 3

    def test_other_values_are_refused(self):
        assert "other than 0 and 1" in refused(scipy.sparse.csr_array(2 * self.DENSE))

    def test_arrays(self):
        assert rows_of(read_baskets(self.DENSE.astype(bool))) == [{1, 2}, set(), {0, 2}]
        assert rows_of(read_baskets(np.zeros((2, 0), bool))) == [set(), set()]

    @pytest.mark.parametrize(
        "array", [DENSE, DENSE.astype(float), np.ones(3, bool), np.ones((1, 1, 1), bool)]
    )
    def test_other_arrays_are_refused(self, array):
        assert "booleans" in refused(array)


class TestTables:
    def test_a_table_stays_in_its_engine(self, tmp_path):
        path = tmp_path / "some.parquet"
        pl.DataFrame({"b": [1, 1, 2], "i": ["x", "y", "x"]}).write_parquet(path)
        with ExitStack() as stack:
            rows = open_baskets(path, basket="b", item="i", stack=stack)
            assert not isinstance(rows, Baskets)
            assert dict(zip(rows.labels, rows.bounds().tolist(), strict=True)) == {"x": 2, "y": 1}
        with (
            ExitStack() as stack,
            pytest.raises(ParameterError, match="has no meaning with a table"),
        ):
            open_baskets(path, basket="b", item="i", form="long", stack=stack)

    def test_everything_else_is_read(self):
        with ExitStack() as stack:
            assert open_baskets(SMALL, stack=stack) is SMALL
            assert rows_of(open_baskets([["a"]], stack=stack)) == [{"a"}]
            assert rows_of(
                open_baskets(io.StringIO("b,i\n1,x"), basket="b", item="i", stack=stack)
            ) == [{"x"}]
            assert rows_of(
                open_baskets(
                    pd.DataFrame({"b": [1], "i": ["x"]}), basket="b", item="i", stack=stack
                )
            ) == [{"x"}]


MANY = [(f"r{n // 3}", f"item{n * n % 50}", f"p{n // 7}") for n in range(90_000)]
"""Rows of two megabytes: more than is read at a time."""


@pytest.mark.parametrize("user", [None, "person"])
def test_lines_that_are_read_together_are_read_as_one_by_one(tmp_path, user):
    lines = [",".join(row) for row in MANY]
    lines[50_000] = "r50000,,p50000"  # a line without an item: its basket exists
    plain, quoted = tmp_path / "plain.csv", tmp_path / "quoted.csv"
    plain.write_text("\n".join(["receipt,article,person", *lines, ""]))
    for number in range(0, len(lines), 1000):  # then all lines around it are read by the reader
        lines[number] = ",".join(f'"{value}"' for value in lines[number].split(","))
    quoted.write_text("\n".join(["receipt,article,person", *lines, ""]))
    together, apart = (
        read_baskets(file, basket="receipt", item="article", user=user) for file in (plain, quoted)
    )
    assert together.labels == apart.labels == sorted({item for _, item, _ in MANY})
    assert together.rows == apart.rows
    assert together.individuals == apart.individuals
    assert together.supports().tolist() == apart.supports().tolist()
    assert together.codes.tolist() == apart.codes.tolist()


def test_a_line_far_into_a_file_is_named_or_left_out(tmp_path):
    file, lines = tmp_path / "sales.csv", [",".join(row) for row in MANY]
    lines[80_000] = "r9,item9,"
    file.write_text("\n".join(["receipt,article,person", *lines, ""]))
    columns = {"basket": "receipt", "item": "article", "user": "person"}
    with pytest.raises(DataError, match="Line 80002 has no user"):
        read_baskets(file, **columns)
    del lines[80_000]
    left = read_baskets(file, **columns, missing_users="drop")
    file.write_text("\n".join(["receipt,article,person", *lines, ""]))
    without = read_baskets(file, **columns)
    assert left.supports().tolist() == without.supports().tolist()
    assert (left.rows, left.individuals) == (without.rows, without.individuals)
