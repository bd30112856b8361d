"""What data may be named: JSON Lines, compressed files, patterns, databases; and what DuckDB may
use.

The same rows give the same answer however they are given, and no error tells a row.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import sqlite3
import stat
import tempfile
from contextlib import ExitStack, closing
from importlib.metadata import metadata
from pathlib import Path

import duckdb
import ibis
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from by_name import by_name

import privmax
from privmax import Privacy
from privmax.errors import (
    ConditionError,
    DataError,
    EngineError,
    ParameterError,
    UnsupportedError,
)
from privmax.ledger import Ledger
from privmax.resources import Resources, use
from privmax.sources.databases import open_table
from privmax.sources.engines import all_engines
from privmax.sources.files import open_records
from privmax.sources.places import find_files
from privmax.sources.roles import Columns
from privmax.sources.tables import TableSource
from privmax.testing import SeededCoins

PRICE = {"epsilon": 4, "delta": "0.01"}
COUNTING = {"item": "query", "user": "person"}
SECRET = "zorblax"
NAMES = ["person", "query", "country", "n"]
ROWS = [
    (
        f"u{number % 60}",
        "rain boots" if number % 3 else SECRET,
        "DE" if number % 2 else "FR",
        number,
    )
    for number in range(300)
]


def csv_of(rows) -> bytes:
    return "".join(",".join(map(str, row)) + "\n" for row in [NAMES, *rows]).encode()


def json_of(rows) -> bytes:
    return "".join(
        json.dumps(dict(zip(NAMES, row, strict=True)), ensure_ascii=False) + "\n" for row in rows
    ).encode()


def table_of(rows) -> pa.Table:
    return pa.table(
        {name: list(column) for name, column in zip(NAMES, zip(*rows, strict=True), strict=True)}
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def release(data, **options):
    found = by_name(
        privmax.select, data, coins=SeededCoins(7), counts="3", **{**COUNTING, **PRICE, **options}
    )
    return found.items, found.counts


def zst_file(path: Path, data: bytes) -> None:
    with path.open("wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
        stream.write(data)


def write_all(folder: Path) -> dict[str, dict[str, str]]:
    """The rows in every form: what to give as data, and the options beside."""
    (folder / "a.csv").write_bytes(csv_of(ROWS))
    (folder / "a.tsv").write_bytes(csv_of(ROWS).replace(b",", b"\t"))
    (folder / "a.csv.gz").write_bytes(gzip.compress(csv_of(ROWS)))
    zst_file(folder / "a.csv.zst", csv_of(ROWS))
    (folder / "a.jsonl").write_bytes(json_of(ROWS))
    (folder / "b.ndjson.gz").write_bytes(gzip.compress(json_of(ROWS)))
    zst_file(folder / "a.jsonl.zst", json_of(ROWS))
    pq.write_table(table_of(ROWS), folder / "a.parquet")
    for part, (begin, end) in {"1": (0, 100), "2": (100, 300)}.items():
        (folder / f"part{part}.csv").write_bytes(csv_of(ROWS[begin:end]))
        (folder / f"part{part}.jsonl").write_bytes(json_of(ROWS[begin:end]))
        pq.write_table(table_of(ROWS[begin:end]), folder / f"part{part}.parquet")
    with sqlite3.connect(folder / "a.sqlite") as lite:
        lite.execute("CREATE TABLE searches (person TEXT, query TEXT, country TEXT, n INTEGER)")
        lite.executemany("INSERT INTO searches VALUES (?, ?, ?, ?)", ROWS)
    lite.close()
    rows = table_of(ROWS)
    with duckdb.connect(str(folder / "a.duckdb")) as duck:
        duck.register("given", rows)
        duck.execute("CREATE TABLE searches AS FROM given")
        duck.execute("CREATE SCHEMA shop")
        duck.execute("CREATE TABLE shop.searches AS FROM given")
        duck.execute('CREATE TABLE "odd.name" AS FROM given')
    files = ["a.csv", "a.tsv", "a.csv.gz", "a.csv.zst", "a.jsonl", "b.ndjson.gz", "a.jsonl.zst",
             "a.parquet", "part*.csv", "part?.jsonl", "part[12].parquet"]  # fmt: skip
    tables = {"a.sqlite": "searches", "sqlite://a.sqlite": "searches",
              "sqlite:///a.sqlite": "searches", f"sqlite:///{folder}/a.sqlite": "searches",
              "a.duckdb": "searches", "duckdb://a.duckdb": "shop.searches"}  # fmt: skip
    return {name: {} for name in files} | {name: {"table": one} for name, one in tables.items()}


@pytest.mark.slow
def test_the_same_rows_give_the_same_answer(folder):
    everything = write_all(folder)
    for where in (None, "country = 'DE' and n >= 100 and not (n between 150 and 160)"):
        kept = [row for row in ROWS if where is None or (row[2] == "DE" and row[3] >= 100
                and not 150 <= row[3] <= 160)]  # fmt: skip
        scores: dict[str, set[str]] = {}
        for person, query, *_ in kept:
            scores.setdefault(query, set()).add(person)
        counts = {query: len(scores[query]) for query in sorted(scores)}
        memory = privmax.select(counts, coins=SeededCoins(7), counts="3", **PRICE)
        for data, options in everything.items():
            found = release(data, where=where, **options)
            assert found == (memory.items, memory.counts), (data, where)
        with (folder / "a.csv").open("rb") as file:
            assert release(file, where=where) == (memory.items, memory.counts)


@pytest.mark.parametrize("ask", [privmax.keys, privmax.select])
@pytest.mark.parametrize(
    ("item", "user"), [("query", "query"), (["country", "person"], "person")], ids=str
)
def test_one_column_is_not_items_and_users(folder, ask, item, user):
    """Each item would have one individual. It is told by name alone, and nothing is charged."""
    forms = {**write_all(folder), "gone.csv": {}}
    rows = table_of(ROWS)
    given = [*forms.items(), *((one, {}) for one in (rows, rows.to_pandas(), pl.from_arrow(rows)))]
    told = f"user='{user}' is not allowed: the same column is given as item. Each item would have"
    with Ledger.create("b.db", budget=Privacy(9, "0.1")) as ledger:
        for data, options in given:
            with pytest.raises(ParameterError, match=re.escape(told)):
                by_name(ask, data, item=item, user=user, ledger=ledger, **options, **PRICE)
        assert ledger.spent == Privacy(0)
    with pytest.raises(ParameterError, match=re.escape(told)):
        Columns(item, weight="n", bound=3, user=user)


def test_ready_scores_are_read_alike(folder):
    rows = [("a", "DE", 500), ("b", "FR", 900), ("c", "DE", 3)]
    text = "item,country,score\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows)
    lines = "".join(json.dumps({"item": a, "country": b, "score": c}) + "\n" for a, b, c in rows)
    (folder / "s.csv").write_text(text)
    (folder / "s.jsonl").write_text(lines)
    zst_file(folder / "s.jsonl.zst", lines.encode())
    (folder / "s.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    for name in ("s.csv", "s.jsonl", "s.jsonl.zst", "s.jsonl.gz"):
        options = {"item": "item", "score": "score", **PRICE}
        assert by_name(privmax.select, name, **options).item == "b", name
        assert by_name(privmax.select, name, where="country != 'FR'", **options).item == "a", name
    with io.BytesIO(text.encode()) as stream:
        assert privmax.select(stream, item="item", score="score", **PRICE).item == "b"


def test_values_of_json_are_text_whatever_their_type(folder):
    """7, "7" and the item 7 of a CSV file are one item; null, "" and a key that is missing none."""
    lines = ['{"q": 7, "p": 1}', '{"q": "7", "p": 2}', '{"p": 3, "q": null}', '{"q": "", "p": 4}',
             '{"p": 5}', '{"q": true, "p": 6, "more": [1, {"a": 2}]}', "  ",
             '{"q": 123456789012345678901234567890, "p": 7}', '{"q": 1.50, "p": 8}']  # fmt: skip
    (folder / "v.jsonl").write_text("\n".join(lines))
    with open_records(find_files("v.jsonl"), ["q", "p"]) as (names, rows):
        found = [row[names.index("q")] for _, row in rows]
    assert found == ["7", "7", "", "", "", "true", "123456789012345678901234567890", "1.50"]
    universe = ["7", "true", "1.50", "123456789012345678901234567890"]
    law = privmax.law(
        "v.jsonl", item="q", user="p", universe=universe, mechanism=privmax.Exponential(epsilon=90)
    )
    assert law["7"] > 0.999


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f'{{"query": "{SECRET}", "person": 1, "query": "x"}}', "Line 2 has a key twice"),
        (f'{{"query": ["{SECRET}"], "person": 1}}', "Line 2 has a list or an object"),
        (f'{{"query": {{"a": "{SECRET}"}}, "person": 1}}', "Line 2 has a list or an object"),
        (f'{{"query": "{SECRET}", "person": 1', "Line 2 is not valid JSON"),
        (f'"{SECRET}"', "Line 2 is not a JSON object"),
        (f'["{SECRET}"]', "Line 2 is not a JSON object"),
        (f'{{"query": "{SECRET}", "person": NaN}}', "Line 2 is not valid JSON"),
        (f'{{"query": "{SECRET}\\ud800", "person": 1}}', "Line 2 has half of a character"),
        (f'{{"query": "{SECRET}", "person": 1}} {SECRET}', "Line 2 is not valid JSON"),
        ("[" * 100_000, "Line 2 is not valid JSON"),
    ],
)
def test_bad_lines_are_named_and_not_quoted(folder, line, says):
    (folder / "bad.jsonl").write_text('{"query": "a", "person": 0}\n' + line + "\n")
    with pytest.raises(DataError, match=says) as caught:
        privmax.select("bad.jsonl", **COUNTING, **PRICE)
    shown: BaseException | None = caught.value
    while shown is not None:
        assert SECRET not in str(shown)
        shown = shown.__cause__ or shown.__context__


def test_a_long_list_of_json_is_told_apart(folder):
    (folder / "list.jsonl").write_text('[{"query": "a"}]')
    with pytest.raises(DataError, match="jq -c"):
        privmax.select("list.jsonl", **COUNTING, **PRICE)
    (folder / "none.jsonl").write_text("")
    assert not privmax.select("none.jsonl", **COUNTING, **PRICE)


def test_a_key_that_no_line_has_is_a_column_without_values(folder):
    (folder / "a.jsonl").write_bytes(json_of(ROWS))
    assert not privmax.select("a.jsonl", item="qeury", user="person", **PRICE)
    assert not privmax.select("a.jsonl", where="contry = 'DE'", **COUNTING, **PRICE)
    with pytest.raises(ParameterError, match="item is required") as caught:
        privmax.select("a.jsonl", **PRICE)
    assert "query" not in str(caught.value)  # keys are data


@pytest.mark.slow
@pytest.mark.parametrize("first", ['{"other": 1}', '{"query": null, "person": 7}', "{}"])
def test_no_line_of_json_decides_which_columns_there_are(folder, first):
    """Not even the first, which is somebody's; nor the first of another file of a pattern."""
    (folder / "b1.jsonl").write_bytes(json_of(ROWS))
    (folder / "b2.jsonl").write_bytes(first.encode() + b"\n" + json_of(ROWS))
    (folder / "c.jsonl").write_bytes(first.encode() + b"\n" + json_of(ROWS))
    expected = privmax.select("b1.jsonl", **COUNTING, **PRICE).items
    assert privmax.select("c.jsonl", **COUNTING, **PRICE).items == expected
    assert privmax.select("b?.jsonl", **COUNTING, **PRICE).items == expected


@pytest.mark.slow
@pytest.mark.parametrize("packed", ["gz", "zst"])
def test_a_compressed_file_that_is_cut_short_is_not_counted(folder, packed):
    """DuckDB counts the first half of a gzip file that lost its end."""
    path = folder / f"cut.csv.{packed}"
    many = csv_of([(f"u{n}", f"q{n * 7919 % 100_003}", "DE", n) for n in range(20_000)])
    path.write_bytes(gzip.compress(many)) if packed == "gz" else zst_file(path, many)
    assert privmax.select(path, where="n < 5", **COUNTING, **PRICE) is not None
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match="cannot be read"):
        privmax.select(path, **COUNTING, **PRICE)
    path.write_bytes(csv_of(ROWS))
    with pytest.raises(DataError, match="cannot be read"):
        privmax.select(path, **COUNTING, **PRICE)


class TestPatterns:
    def test_a_file_of_that_name_wins(self, folder):
        (folder / "a[1].csv").write_bytes(csv_of([("u", "odd", "DE", 1)] * 9))
        (folder / "a1.csv").write_bytes(csv_of(ROWS))
        assert find_files("a[1].csv").paths == (Path("a[1].csv"),)
        mechanism = privmax.NestedMargin(epsilon=9, delta="0.1")
        law = privmax.law("a[1].csv", item="query", mechanism=mechanism)
        assert set(law) == {"odd", None}

    def test_files_are_sorted_and_folders_are_none(self, folder):
        for name in ("c.csv", "a.csv", "b.csv"):
            (folder / name).write_bytes(csv_of(ROWS))
        (folder / "d.csv").mkdir()
        assert [path.name for path in find_files("*.csv").paths] == ["a.csv", "b.csv", "c.csv"]
        (folder / "d.csv" / "deep.csv").write_bytes(csv_of(ROWS))
        assert len(find_files("**/*.csv").paths) == 4

    def test_no_file_has_a_zero_in_its_name(self, folder):
        for name in ("a\0b", "a\0/*.csv", "[\0]"):
            with pytest.raises(DataError, match="There is no file or folder"):
                find_files(name)

    def test_no_match_says_so(self, folder):
        with pytest.raises(DataError, match="No file matches the pattern"):
            privmax.select("logs/*.parquet", **COUNTING, **PRICE)

    def test_two_kinds_are_refused(self, folder):
        (folder / "a.csv").write_bytes(csv_of(ROWS))
        (folder / "b.jsonl").write_bytes(json_of(ROWS))
        with pytest.raises(DataError, match=r"'b.jsonl' does not end like 'a.csv'"):
            privmax.select("*", **COUNTING, **PRICE)

    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    def test_another_layout_is_refused_by_name(self, folder, kind):
        more = table_of(ROWS).rename_columns(["person", "query", "land", "n"])
        for name, rows in {"a": table_of(ROWS), "b": more}.items():
            if kind == "parquet":
                pq.write_table(rows, f"{name}.parquet")
            else:
                body = csv_of(ROWS).replace(b"country", b"land") if name == "b" else csv_of(ROWS)
                Path(f"{name}.csv").write_bytes(body)
        with pytest.raises(DataError, match=f"The file 'b.{kind}' does not have the same columns"):
            privmax.select(f"*.{kind}", **COUNTING, **PRICE)

    def test_another_type_or_separator_is_refused_by_name(self, folder):
        pq.write_table(table_of(ROWS), "a.parquet")
        other = table_of(ROWS).set_column(3, "n", [[str(row[3]) for row in ROWS]])
        pq.write_table(other, "b.parquet")
        with pytest.raises(DataError, match=r"'b.parquet' has another type \(VARCHAR\)"):
            privmax.select("*.parquet", **COUNTING, **PRICE)
        Path("a.csv").write_bytes(csv_of(ROWS))
        Path("b.csv").write_bytes(csv_of(ROWS).replace(b",", b";"))
        with pytest.raises(DataError, match=r"'b.csv' has another separator"):
            privmax.select("*.csv", **COUNTING, **PRICE)

    def test_no_file_is_read_twice(self, folder):
        """glob gives a file once for each way in which two ** can lead to it."""
        (folder / "x" / "y").mkdir(parents=True)
        (folder / "x" / "y" / "a.csv").write_bytes(csv_of(ROWS))
        assert len(find_files("**/**/*.csv").paths) == 1

    def test_files_of_a_folder_are_laid_out_alike_too(self, folder):
        """DuckDB would convert them to the types of the first, and fail at some values."""
        (folder / "many").mkdir()
        for name, items in {"1": [7, 7], "2": ["8", SECRET]}.items():
            pq.write_table(pa.table({"item": items}), f"many/{name}.parquet")
        with pytest.raises(DataError, match=r"'2.parquet' has another type \(VARCHAR\)"):
            privmax.select("many", item="item", **PRICE, ledger=privmax.Request(unit="user"))

    @pytest.mark.slow
    def test_values_in_names_of_folders_are_text_whatever_others_are(self, folder):
        """DuckDB would take 7 for a number unless another folder is called otherwise."""
        (folder / "p" / "item=7").mkdir(parents=True)
        pq.write_table(pa.table({"user": list(range(300))}), "p/item=7/a.parquet")
        for more in (False, True):
            if more:
                (folder / "p" / "item=x").mkdir()
                pq.write_table(pa.table({"user": [1]}), "p/item=x/a.parquet")
            for place in ("p", "p/*/*.parquet", "p/item=7/a.parquet"):
                assert privmax.select(place, item="item", user="user", **PRICE).items == ("7",)

    def test_a_folder_named_like_a_column_changes_no_text(self, folder):
        (folder / "column_1=5").mkdir()
        (folder / "column_1=5" / "a.csv").write_bytes(csv_of(ROWS))
        (folder / "a.csv").write_bytes(csv_of(ROWS))
        assert release("column_1=5/a.csv") == release("a.csv")

    def test_a_line_is_named_with_its_file(self, folder):
        Path("a.jsonl").write_text('{"item": "a", "score": 1}\n')
        Path("b.jsonl").write_text('{"item": "b", "score": 1}\n{"item": "b", "score": 1}\n')
        with pytest.raises(DataError, match=r"Line 2 of 'b.jsonl' repeats a label"):
            privmax.select("*.jsonl", item="item", score="score", **PRICE)


BASKETS = {"basket": "receipt", "item": "article", "epsilon": 8, "delta": "0.01"}
PAIRS = {"country = 'DE'": ("milk", "tea"), "country != 'DE'": ("cola", "rum")}


class TestItemsets:
    def write(self, folder: Path) -> None:
        rows = [(f"r{n}", one, "DE" if n % 2 else "FR") for n in range(400)
                for one in (("tea", "milk") if n % 2 else ("rum", "cola"))]  # fmt: skip
        names = ("receipt", "article", "country")
        text = "".join(",".join(row) + "\n" for row in [names, *rows]).encode()
        lines = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
        Path("b.csv").write_bytes(text)
        zst_file(folder / "b.csv.zst", text)
        Path("b.jsonl").write_text(lines)
        half = lines.splitlines(keepends=True)
        Path("c1.jsonl").write_text("".join(half[:400]))
        Path("c2.jsonl").write_text("".join(half[400:]))
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table(columns), "b.parquet")
        with sqlite3.connect("b.db") as lite:
            lite.execute("CREATE TABLE sold (receipt TEXT, article TEXT, country TEXT)")
            lite.executemany("INSERT INTO sold VALUES (?, ?, ?)", rows)
        lite.close()

    @pytest.mark.slow
    def test_every_door(self, folder):
        self.write(folder)
        for data, more in {
            "b.csv": {}, "b.csv.zst": {}, "b.jsonl": {}, "c?.jsonl": {}, "b.parquet": {},
            "b.db": {"table": "sold"},
        }.items():  # fmt: skip
            for where, pair in PAIRS.items():
                found = by_name(
                    privmax.top_itemsets,
                    data,
                    **BASKETS,
                    **more,
                    layout=privmax.itemsets.Layout(where=where),
                    ledger=privmax.Request(unit="basket"),
                )
                assert found.item == pair, (data, where)

    def test_where_is_refused_without_rows(self, folder):
        with pytest.raises(ConditionError, match="this data is in memory"):
            privmax.top_itemsets(
                [["a", "b"]], epsilon=1, delta=1e-6, layout=privmax.itemsets.Layout(where="a = 1")
            )
        Path("a.dat").write_text("1 2\n")
        with pytest.raises(ConditionError, match="in the form fimi"):
            privmax.top_itemsets(
                "a.dat", epsilon=1, delta=1e-6, layout=privmax.itemsets.Layout(where="a = 1")
            )


class TestDatabases:
    def test_a_missing_table_lists_those_there_are(self, folder):
        write_all(folder)
        for name in ("a.sqlite", "a.duckdb"):
            with pytest.raises(ParameterError, match=r"There are .*'searches'") as caught:
                privmax.select(name, **COUNTING, **PRICE)
            assert caught.value.name == "table"
            with pytest.raises(ParameterError, match="Did you mean 'searches'"):
                privmax.select(privmax.Database(name, "seraches"), **COUNTING, **PRICE)

    def test_dots_mean_what_is_there(self, folder):
        write_all(folder)
        with duckdb.connect("a.duckdb") as duck:
            duck.execute("CREATE SCHEMA odd")
            duck.execute("CREATE TABLE odd.name (query TEXT, other TEXT)")
        with ExitStack() as held:
            assert open_table("a.duckdb", "odd.name", held).columns == tuple(NAMES)
            assert open_table("a.duckdb", "shop.searches", held).columns == tuple(NAMES)
            assert open_table("a.duckdb", "a.shop.searches", held).columns == tuple(NAMES)
            with pytest.raises(ParameterError, match="the database has no such table"):
                open_table("a.duckdb", "shop.nothing", held)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["a.sqlite", "a.duckdb"])
    def test_a_file_is_opened_to_be_read_only(self, folder, name):
        write_all(folder)
        before = Path(name).read_bytes()
        with ExitStack() as held:
            table = open_table(name, "searches", held)
            with pytest.raises(Exception, match=r"(?i)read-?only|readonly"):
                table.get_backend().raw_sql("DELETE FROM searches")
        assert release(name, table="searches")[0]
        assert Path(name).read_bytes() == before
        assert {path.name for path in folder.iterdir() if path.name.startswith(name)} == {name}

    def test_text_in_utf_16_is_refused(self, folder):
        """Its bytes are no UTF-8, and would be released as they are."""
        with sqlite3.connect("a.sqlite") as lite:
            lite.execute("PRAGMA encoding = 'UTF-16le'")
            lite.execute("CREATE TABLE searches (person, query)")
            lite.executemany("INSERT INTO searches VALUES (?, 'tea')", [(n,) for n in range(60)])
        lite.close()
        with pytest.raises(UnsupportedError, match="UTF-16le"):
            privmax.select(privmax.Database("a.sqlite", "searches"), **COUNTING, **PRICE)

    @pytest.mark.slow
    @pytest.mark.parametrize("first", [(1, b"x"), (b"1", "z"), (None, None), (1, 2.5), None])
    @pytest.mark.parametrize("table", ["searches", "main.searches", "shown"])
    def test_no_row_decides_the_type_of_a_column(self, folder, first, table):
        """Ibis reads it off the first row, where the declaration has none."""
        lite = sqlite3.connect("a.sqlite")
        lite.execute("CREATE TABLE searches (person, query)")
        lite.execute("CREATE VIEW shown AS SELECT person, query, 1 + 1 AS n FROM searches")
        rows = [(number, "tea") for number in range(60)]
        lite.executemany("INSERT INTO searches VALUES (?, ?)", [first, *rows] if first else rows)
        lite.commit()
        connection = ibis.sqlite.connect("a.sqlite")
        for data in ("a.sqlite", connection.table("searches")):
            options = {"table": table} if data == "a.sqlite" else {}
            assert by_name(privmax.select, data, **COUNTING, **options, **PRICE).items == ("tea",)
        connection.disconnect()
        weights = {"weight": "person" if table != "shown" else "n", "bound": 2}
        if table == "shown" or first is None or isinstance(first[0], int):
            found = by_name(
                privmax.select, privmax.Database("a.sqlite", table), **COUNTING, **weights, **PRICE
            )
            assert found.items == ("tea",)
        lite.execute("DELETE FROM searches")
        lite.commit()
        assert not privmax.select(privmax.Database("a.sqlite", table), **COUNTING, **PRICE)
        lite.close()

    @pytest.mark.parametrize("value", [SECRET, 2.5, 1e300, b"x"])
    def test_a_score_or_weight_that_is_no_whole_number_is_refused(self, folder, value):
        """SQLite keeps it, whatever the column was declared as; no error quotes it."""
        with sqlite3.connect("a.sqlite") as lite:
            lite.execute("CREATE TABLE counts (person INTEGER, query TEXT, n INTEGER)")
            lite.execute("INSERT INTO counts VALUES (1, 'tea', 500), (1, 'ale', ?)", [value])
        lite.close()
        for options in ({"score": "n"}, {"user": "person", "weight": "n", "bound": 3}):
            with pytest.raises(DataError, match="whole number of 64 bits") as found:
                by_name(
                    privmax.select,
                    privmax.Database("a.sqlite", "counts"),
                    item="query",
                    **options,
                    **PRICE,
                )
            assert SECRET not in str(found.value)

    @pytest.mark.parametrize("weight", [2**63 - 1, -(2**63)])
    def test_no_sum_of_weights_runs_over(self, folder, weight):
        """SQLite fails there, and one person's rows would keep everybody from an answer."""
        with sqlite3.connect("a.sqlite") as lite:
            lite.execute("CREATE TABLE counts (person INTEGER, query TEXT, n INTEGER)")
            rows = [(number, "tea", 2) for number in range(60)] + [(1, "ale", weight)] * 2
            lite.executemany("INSERT INTO counts VALUES (?, ?, ?)", rows)
        lite.close()
        source = open_table("a.sqlite", "counts", stack := ExitStack())
        columns = Columns("query", user="person", weight="n", bound=3)
        with stack, closing(TableSource(source, columns)) as counted:
            expected = {"tea": 120, "ale": 3 if weight > 0 else 0}
            assert dict(counted.scores()) == expected

    def test_a_file_that_is_none(self, folder):
        Path("x.db").write_text("hello, this is no database")
        with pytest.raises(DataError, match="neither a SQLite nor a DuckDB database"):
            privmax.select(privmax.Database("x.db", "t"), **COUNTING, **PRICE)
        with pytest.raises(DataError, match="There is no such database file"):
            privmax.select(privmax.Database("sqlite:///gone.db", "t"), **COUNTING, **PRICE)
        assert not Path("gone.db").exists()

    @pytest.mark.parametrize("url", ["mysql://[::1/x", "sqlite://[x", "postgres://u:p]w@h/x"])
    def test_a_url_that_cannot_be_split_is_refused_and_not_quoted(self, url):
        with pytest.raises(DataError, match="URL of the database cannot be read") as refused:
            privmax.select(privmax.Database(url, "t"), item="i", epsilon=1, delta=1e-6)
        assert url.partition("://")[2] not in str(refused.value)
        assert refused.value.__context__ is None

    def test_a_table_belongs_to_a_database(self, folder):
        write_all(folder)
        for data in ("a.csv", {"a": 1}, table_of(ROWS)):
            with pytest.raises(ParameterError, match="the data is not a database"):
                privmax.select(privmax.Database(data, "searches"), **COUNTING, **PRICE)

    @pytest.mark.parametrize(
        ("scheme", "needed", "extra"),
        [
            ("mysql", "MySQL needs the package mysqlclient", "mysql"),
            ("mariadb", "MariaDB needs the package mysqlclient", "mysql"),
            ("postgresql", "PostgreSQL needs the package psycopg", "postgres"),
        ],
    )
    def test_a_missing_driver_is_named(self, monkeypatch, scheme, needed, extra):
        monkeypatch.setattr(
            privmax.sources.databases, "_is_installed", lambda module: module == "ibis"
        )
        with pytest.raises(DataError) as caught:
            privmax.select(
                privmax.Database(f"{scheme}://me:hunter2@host/db", "t"), **COUNTING, **PRICE
            )
        assert f"{needed}, which is not installed" in str(caught.value)
        assert f"ibis-framework[{extra}]" in str(caught.value)
        assert "hunter2" not in str(caught.value)
        assert "privmax[sql]" not in str(caught.value)

    def test_engines_and_extras_are_those_of_ibis(self):
        backends = {point.name for point in ibis.util.backend_entry_points()}
        assert {engine.name for engine in all_engines()} <= backends
        extras = set(metadata("ibis-framework").get_all("Provides-Extra", []))
        assert {engine.extra for engine in all_engines()} <= extras

    def test_a_scheme_without_an_engine_is_refused_and_not_quoted(self):
        for scheme in ("datafusion", "snowflake", "trino"):
            with pytest.raises(DataError, match="No database has a URL that begins so") as caught:
                privmax.select(
                    privmax.Database(f"{scheme}://me:hunter2@host/db", "t"), **COUNTING, **PRICE
                )
            assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["s3://k:hunter2@b/x.parquet", "gs://b/x.csv", "https://h/x.csv?key=hunter2",
            "abfss://c@a.dfs/x.parquet", "hdfs://n/x", "file:///x.csv"]
)  # fmt: skip
def test_urls_of_files_are_refused_with_the_remedy(url):
    for call in (
        lambda: privmax.select(url, **COUNTING, **PRICE),
        lambda: privmax.top_itemsets(url, basket="b", item="i", **PRICE),
    ):
        with pytest.raises(DataError, match=r"(?i)give (its|the) path") as caught:
            call()
        assert "hunter2" not in str(caught.value)


class TestResources:
    def test_the_temporary_folder_is_private_and_goes(self, folder, monkeypatch):
        write_all(folder)
        monkeypatch.setattr(tempfile, "tempdir", str(folder / "system"))
        (folder / "system").mkdir()
        seen = []

        def watch(connection):
            settings = "SELECT current_setting('temp_directory'), current_setting('memory_limit')"
            seen.append(connection.execute(settings).fetchone())
            assert stat.S_IMODE(os.stat(seen[-1][0]).st_mode) == 0o700
            for what in ("autoinstall_known_extensions", "autoload_known_extensions"):
                asked = connection.execute(f"SELECT current_setting('{what}')")
                assert asked.fetchone() == (False,)

        with use(Resources(memory="1GB", watch=watch)):
            assert release("a.csv")[0]
            assert release("a.jsonl")[0]
            assert release("a.duckdb", table="searches")[0]
        assert len(seen) == 3
        for temporary, memory in seen:
            assert Path(temporary).parent == folder / "system"
            assert memory == "953.6 MiB"
            assert not Path(temporary).exists()
        assert not list((folder / "system").iterdir())
        assert not (folder / ".tmp").exists()

    def test_the_environment_says_the_same(self, folder, monkeypatch):
        monkeypatch.setenv("PRIVMAX_MEMORY", "2GB")
        monkeypatch.setenv("PRIVMAX_TEMPORARY", str(folder))
        assert Resources.of() == Resources("2GB", str(folder))
        assert Resources.of("4GB").memory == "4GB"
        for name, value in {"PRIVMAX_MEMORY": "much", "PRIVMAX_TEMPORARY": "nowhere"}.items():
            monkeypatch.setenv(name, value)
            with pytest.raises(ParameterError, match=f"'{value}' is not allowed"):
                Resources.of()
            monkeypatch.delenv(name)

    def test_too_little_memory_is_no_private_error(self, folder):
        write_all(folder)
        with use(Resources(memory="1KB")), pytest.raises(EngineError) as caught:
            release("a.csv")
        assert SECRET not in str(caught.value)


def test_the_ledger_knows_the_condition_and_the_table(folder):
    write_all(folder)
    ledger = privmax.Ledger("budget.db", "team", budget=privmax.Privacy(100, "0.5"))

    def ask(where, **more):
        request = ledger.request("nightly", dataset="searches")
        return by_name(
            privmax.select, "a.csv", where=where, ledger=request, **{**COUNTING, **PRICE, **more}
        ).item

    first = ask("n < 200 and country = 'DE'")
    assert ask("(n<200) AND country == 'DE'") == first  # another spelling of the same
    with pytest.raises(privmax.errors.LedgerError, match="nightly"):
        ask("n < 201 and country = 'DE'")
    with pytest.raises(privmax.errors.LedgerError, match="nightly"):
        ask(None)


UNREADABLE = {
    "a.zip": "unzip FILE",
    "a.csv.zip": "unzip FILE",
    "a.csv.bz2": "bunzip2 --keep FILE",
    "a.jsonl.xz": "unxz --keep FILE",
    "a.tar": "tar -xf FILE",
    "a.tar.gz": "tar -xf FILE",
    "a.tgz": "tar -xf FILE",
    "a.json": r"jq -c '\.\[\]' FILE > NEW_FILE\.jsonl",
    "a.JSON.gz": r"jq -c '\.\[\]' FILE > NEW_FILE\.jsonl",
    "a.xlsx": "save the sheet as CSV",
    "a.feather": r"Write it as Parquet",
}


@pytest.mark.parametrize(("name", "remedy"), UNREADABLE.items())
def test_files_of_other_kinds_come_with_what_to_do(folder, name, remedy):
    Path(name).write_bytes(b'[{"query": "zorblax", "person": "u", "n": 1}]')
    for columns in ({"item": "query", "user": "person"}, {"item": "query", "score": "n"}):
        with pytest.raises(DataError, match=remedy) as caught:
            by_name(privmax.select, name, **columns, **PRICE)
        assert "ename it" not in str(caught.value).replace("rename it to end in .jsonl", "")
    with pytest.raises(DataError, match=remedy):
        privmax.itemsets.top_itemsets(name, **PRICE)
    with pytest.raises(DataError, match=remedy):
        privmax.itemsets.top_itemsets(name, basket="person", item="query", **PRICE)


@pytest.mark.parametrize(
    ("start", "remedy"),
    [(b"BZh91AY&SY", "bunzip2"), (b"\xfd7zXZ\x00", "unxz"), (b"7z\xbc\xaf\x27\x1c", "7z x")],
)
def test_packed_files_under_another_name_come_with_what_to_do(folder, start, remedy):
    Path("a.csv").write_bytes(start + b"zorblax" * 9)
    with pytest.raises(DataError, match=remedy):
        privmax.select("a.csv", item="query", score="n", **PRICE)


@pytest.mark.parametrize("ending", [".db", ".sqlite", ".duckdb"])
def test_a_pattern_of_databases_is_refused(tmp_path, ending):
    """The first of them was read, and no other."""
    for name in ("a", "b"):
        with sqlite3.connect(tmp_path / f"{name}{ending}") as database:
            database.execute("CREATE TABLE rows (item TEXT)")
        database.close()
    for pattern in (f"*{ending}", f"a*{ending}", f"none*{ending}"):
        data = privmax.Database(tmp_path / pattern, "rows")
        for ask in (privmax.select, privmax.top_itemsets):
            with pytest.raises(DataError, match="one database is read at a time"):
                ask(data, item="item", epsilon=1, delta="1e-6")
