"""Selecting from tables on the command line: files that DuckDB reads, and databases by their
URL.
"""

from __future__ import annotations

import datetime
import gzip
import json
import sqlite3
import subprocess
import sys

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from privmax.cli import main

PRICE = ("--epsilon", "1", "--delta", "1e-6")
QUERY = ("--item", "query", "--user", "user_id", *PRICE)
PRIVATE = ("zorblax", "73519")
PASSWORD = "hunter2"
REPLACE = ("--neighbors", "replace")
LOUD = (
    "Warning: Each row counts as one individual. If one person can have several rows, set user "
    "to the column of people. If not, set unit to user or row.\n"
)


def privmax(*arguments, stdin=None):
    return CliRunner().invoke(main, list(map(str, arguments)), input=stdin)


def answer(*arguments):
    """The item in the JSON of a selection that says nothing on standard error."""
    run = privmax(*arguments, "--json")
    assert (run.exit_code, run.stderr) == (0, "")
    return json.loads(run.stdout)["item"]


@pytest.fixture
def searches():
    """500 people want boots, day after day; one searched 4000 times for a tent, and weighs 9 each
    time.
    """
    people = [*range(500), *range(500), *[7] * 4000]
    return pa.table(
        {
            "query": ["rain boots"] * 1000 + ["tent"] * 4000,
            "user_id": people,
            "day": [datetime.date(2026, 3, 1)] * 500 + [datetime.date(2026, 3, 2)] * 4500,
            "pieces": [1] * 1000 + [9] * 4000,
        }
    )


@pytest.fixture
def parquet(tmp_path, searches):
    path = tmp_path / "searches.parquet"
    pyarrow.parquet.write_table(searches, path)
    return path


@pytest.fixture
def text(tmp_path, searches):
    path = tmp_path / "searches.csv"
    pyarrow.csv.write_csv(searches, path)
    return path


@pytest.fixture
def databases(tmp_path, searches):
    """URLs of a DuckDB and of an SQLite database with the searches."""
    with duckdb.connect(tmp_path / "shop.duckdb") as connection:
        connection.register("rows", searches)
        connection.execute("CREATE SCHEMA logs")
        connection.execute("CREATE TABLE logs.searches AS SELECT * FROM rows")
        connection.execute("CREATE TABLE searches AS SELECT * FROM rows")
    connection = sqlite3.connect(tmp_path / "shop.sqlite")
    connection.execute("CREATE TABLE searches (query TEXT, user_id INTEGER)")
    rows = searches.select(["query", "user_id"]).to_pylist()
    connection.executemany(
        "INSERT INTO searches VALUES (?, ?)", [tuple(row.values()) for row in rows]
    )
    connection.commit()
    connection.close()
    return {name: f"{name}://{tmp_path}/shop.{name}" for name in ("duckdb", "sqlite")}


def test_people_are_counted_in_a_parquet_file(parquet):
    run = privmax("select", parquet, *QUERY)
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        "item       rain boots",
        "cost       epsilon 1, delta 1e-06",
        "mechanism  finds a clear winner without a list of items (NestedMargin)",
    ]


def test_people_are_counted_in_a_csv_file_packed_or_not(text, tmp_path):
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    assert answer("select", text, *QUERY) == "rain boots"
    assert answer("select", packed, *QUERY) == "rain boots"


def test_people_are_counted_in_a_folder(parquet, searches):
    pyarrow.parquet.write_table(searches, parquet.with_name("more.parquet"))
    assert answer("select", parquet.parent, *QUERY) == "rain boots"


def test_without_user_and_score_each_row_counts_and_that_is_said(parquet):
    run = privmax("select", parquet, "--item", "query", *PRICE, "--json")
    assert json.loads(run.stdout)["item"] == "tent"
    assert run.stderr == LOUD


def test_ready_scores_in_a_parquet_file(tmp_path):
    path = tmp_path / "counts.parquet"
    pyarrow.parquet.write_table(
        pa.table({"query": ["rain boots", "tent"], "people": [912, 640]}), path
    )
    assert answer("select", path, "--item", "query", "--score", "people", *PRICE) == "rain boots"


def test_ready_scores_of_everybody_make_a_closed_universe(tmp_path):
    path = tmp_path / "counts.parquet"
    pyarrow.parquet.write_table(
        pa.table({"query": ["rain boots", "tent"], "people": [912, 0]}), path
    )
    options = ("--item", "query", "--score", "people", "--epsilon", "1", "--universe", "2")
    assert answer("select", path, *options) == "rain boots"


def test_a_file_of_labels_closes_the_universe(parquet, text, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text('rain boots\n"tent, large"\ntent\n\n', encoding="utf-8")
    options = ("--item", "query", "--user", "user_id", "--epsilon", "1", "--universe", labels)
    run = privmax("select", parquet, *options)
    assert (run.exit_code, run.stdout.splitlines()[0]) == (0, "item       rain boots")
    assert "PermuteAndFlip: delta is 0" in run.stdout
    assert answer("select", text, *options) == "rain boots"
    scores = tmp_path / "scores.csv"
    scores.write_text("query,people\nrain boots,912\n", encoding="utf-8")
    options = ("--item", "query", "--score", "people", "--epsilon", "1", "--universe", labels)
    assert answer("select", scores, *options) == "rain boots"


def test_labels_in_a_file_take_the_types_of_the_columns(parquet, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text(
        "2026-03-01,rain boots\n2026-03-01,tent\n2026-03-02,tent\n2026-03-02,rain boots\n",
        encoding="utf-8",
    )
    options = (
        "--item",
        "day",
        "--item",
        "query",
        "--user",
        "user_id",
        "--epsilon",
        "1",
        "--universe",
        labels,
    )
    day, query = answer("select", parquet, *options)
    assert (day in ("2026-03-01", "2026-03-02"), query) == (True, "rain boots")


def test_open_is_open_though_a_file_is_called_so(parquet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "open").write_text("tent\n", encoding="utf-8")
    assert answer("select", parquet, *QUERY) == "rain boots"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"rain boots\ntent, large\n",
            "--universe: Line 2 has 2 values, a label has 1",
        ),
        (b"rain boots\n\xff\n", "--universe: Line 2 is not UTF-8 text"),
        (b'rain boots\n"tent', "--universe: Line 2 is not CSV: a quote is not closed"),
        (b"rain boots\nrain boots\n", "a label occurs in it more than once"),
        (b"rain boots\n", "A label with a score is not in the declared universe"),
        (b"", "--universe 0:"),
    ],
)
def test_a_file_of_labels_that_cannot_be_used(parquet, tmp_path, content, message):
    labels = tmp_path / "labels.csv"
    labels.write_bytes(content)
    run = privmax("select", parquet, *QUERY, "--universe", labels)
    assert (run.exit_code, run.stdout) == (2, "")
    assert message in run.stderr
    assert "tent" not in run.stderr


def test_weights_are_clipped_to_the_bound(parquet):
    assert answer("select", parquet, *QUERY, "--weight", "pieces", "--bound", "2") == "rain boots"
    assert (
        answer("select", parquet, *QUERY, "--weight", "pieces", "--bound", "30000") is None
    )  # nobody leads by so much


def test_a_key_of_several_columns_is_joined_in_text_and_a_list_in_json(parquet):
    options = ("--item", "query", "--item", "user_id", "--item", "day", *PRICE)
    run = privmax("select", parquet, *options)
    assert run.stdout.splitlines()[0] == "item       tent, 7, 2026-03-02"
    assert run.stderr == LOUD
    run = privmax("select", parquet, *options, "--json")
    assert json.loads(run.stdout)["items"] == [["tent", 7, "2026-03-02"]]


def test_the_best_k_keys_are_printed_one_a_line(tmp_path):
    path = tmp_path / "counts.parquet"
    pyarrow.parquet.write_table(
        pa.table({"a": ["x", "y"], "b": [1, 2], "people": [90_000, 60_000]}), path
    )
    run = privmax(
        "select", path, "--item", "a", "--item", "b", "--score", "people", "--k", "2", *PRICE
    )
    assert run.stdout.splitlines()[:2] == ["item       x, 1", "           y, 2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (datetime.date(2026, 3, 29), "2026-03-29"),
        (datetime.datetime(2026, 3, 29, 8, 30), "2026-03-29T08:30:00"),
        (datetime.time(8, 30), "08:30:00"),
        (b"\x00\xff", "00ff"),
        (True, True),
        (7, 7),
    ],
)
def test_items_that_json_has_no_type_for_are_text(tmp_path, value, shown):
    path = tmp_path / "items.parquet"
    pyarrow.parquet.write_table(pa.table({"item": [value], "people": [90_000]}), path)
    assert answer("select", path, "--score", "people", *PRICE) == shown
    assert (
        privmax("select", path, "--score", "people", *PRICE).stdout.splitlines()[0]
        == f"item       {shown}"
    )


@pytest.mark.parametrize("name", ["duckdb", "sqlite"])
def test_a_table_of_a_database(databases, name):
    assert answer("select", databases[name], "--table", "searches", *QUERY) == "rain boots"


def test_a_table_of_a_schema_in_a_database_that_others_read(databases, tmp_path):
    with duckdb.connect(tmp_path / "shop.duckdb", read_only=True):
        assert (
            answer("select", databases["duckdb"], "--table", "logs.searches", *QUERY)
            == "rain boots"
        )


@pytest.mark.slow
def test_a_csv_file_of_scores_loads_no_engine(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("item,score\na,90000\nb,1\n", encoding="utf-8")
    script = (
        "import sys; from privmax.cli import main; main(standalone_mode=False); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "select", path, *PRICE],
        capture_output=True,
        text=True,
        check=True,
    )
    item, *_, modules = done.stdout.splitlines()
    assert item == "item       a"
    assert not {"ibis", "duckdb", "pyarrow"} & set(modules.split())


def test_a_missing_extra_is_named(parquet, databases, monkeypatch):
    monkeypatch.setitem(sys.modules, "ibis", None)
    for options, package in (
        ((parquet, *QUERY), 'pip install ".[sql]"'),
        ((databases["sqlite"], "--table", "searches", *QUERY), "ibis-framework"),
    ):
        run = privmax("select", *options)
        assert run.exit_code == 2
        assert package in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("searches.parquet", "--item", "zorblux", "--user", "user_id"),
            "--item zorblux:",
        ),
        (
            ("searches.parquet", "--item", "query", "--user", "person"),
            "--user person:",
        ),
        (
            ("searches.parquet", "--item", "query", "--user", "user_id", "--score", "pieces"),
            "--user user_id:",
        ),
        (
            ("searches.parquet", "--item", "query", "--score", "query"),
            "the column must have whole numbers",
        ),
        (
            ("searches.parquet", "--item", "query", "--user", "user_id", "--weight", "pieces"),
            "--bound:",
        ),
        (
            ("searches.parquet", "--item", "query", "--user", "user_id", "--bound", "3"),
            "--bound 3:",
        ),
        (
            (
                "searches.parquet",
                "--item",
                "query",
                "--user",
                "user_id",
                "--resolution",
                "1",
                *REPLACE,
            ),
            "--resolution 1:",
        ),
        (
            ("searches.parquet", "--item", "query", "--table", "searches"),
            "the data is not a database",
        ),
        (("no.parquet", "--item", "query"), "FILE 'no.parquet': No such file or folder"),
        (
            ("none", "--item", "query", "--user", "user_id"),
            "have no file that ends in .parquet",
        ),
        (("text.parquet", "--item", "query", "--user", "user_id"), "the file"),
        (
            ("notes.txt", "--item", "query", "--user", "user_id"),
            "neither .csv, .tsv, .jsonl, .ndjson (.gz, .zst) nor .parquet",
        ),
        (
            ("headless.csv", "--item", "query", "--user", "user_id"),
            "must be on the first line of the file",
        ),
        (
            ("headless.csv", "--item", "zorblax", "--user", "user_id"),
            "--user user_id:",
        ),
        (
            ("headless.parquet", "--item", "query", "--user", "user_id"),
            "the file has no such column",
        ),
        (
            ("searches.parquet", "--item", "query", "--weight", "pieces", "--bound", "3"),
            "it needs user. Give user.",
        ),
        (
            ("searches.parquet", "--item", "query", "--user", "user_id", "--universe", "9"),
            "--universe 9:",
        ),
        (
            ("counts.parquet", "--item", "query", "--score", "people", "--universe", "3"),
            "fewer candidates are listed",
        ),
        (
            ("nobody.parquet", "--item", "query", "--user", "user_id"),
            "A row has an item but no user",
        ),
    ],
)
def test_mistakes_are_named_and_nothing_private_is_shown(
    tmp_path, monkeypatch, parquet, options, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none").mkdir()
    (tmp_path / "text.parquet").write_text("zorblax,73519\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("zorblax,73519\n", encoding="utf-8")
    (tmp_path / "headless.csv").write_text("zorblax,73519\nb,5\nc,6\n", encoding="utf-8")
    headless = pa.table({"zorblax": ["b", "c"], "73519": [5, 6]})
    pyarrow.parquet.write_table(headless, tmp_path / "headless.parquet")
    counts = pa.table({"query": ["zorblax", "tent"], "people": [73519, 0]})
    pyarrow.parquet.write_table(counts, tmp_path / "counts.parquet")
    nobody = pa.table({"query": ["zorblax", "zorblax"], "user_id": [73519, None]})
    pyarrow.parquet.write_table(nobody, tmp_path / "nobody.parquet")
    run = privmax("select", *options, *PRICE)
    assert (run.exit_code, run.stdout) == (2, "")
    assert message in run.stderr
    typed = {word for word in options if word in PRIVATE}
    if "headless.parquet" in options:  # Parquet declares names: these are no rows
        typed |= set(headless.column_names)
    assert not [secret for secret in PRIVATE if secret in run.stderr and secret not in typed]


def test_standard_input_holds_no_database():
    run = privmax(
        "select", "-", "--item", "a", "--table", "a", *PRICE, stdin="a,b\nzorblax,73519\n"
    )
    assert run.exit_code == 2
    assert "the data is not a database" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (f"postgres://me:{PASSWORD}@127.0.0.1:1/shop", "--table", "searches"),
            "The database cannot be opened",
        ),
        (
            (f"postgres://127.0.0.1:1/shop?password={PASSWORD}", "--table", "searches"),
            "The database cannot be opened",
        ),
        (
            (f"postgres://me:{PASSWORD}@127.0.0.1:port/shop", "--table", "searches"),
            "The database cannot be opened",
        ),
        (
            (f"postgers://me:{PASSWORD}@127.0.0.1/shop", "--table", "searches"),
            "Did you mean 'postgres'?",
        ),
        ((f"postgres://me:{PASSWORD}@127.0.0.1:1/shop",), "the data is a database"),
        (
            (f"postgres:/me:{PASSWORD}@127.0.0.1:1/shop", "--table", "searches"),
            "the data is not a database",
        ),
        ((f"postgres:/me:{PASSWORD}@127.0.0.1:1/shop",), "No such file"),
        (
            ("searches", f"postgres://me:my {PASSWORD}@127.0.0.1:1/shop"),
            "unexpected extra argument",
        ),
        (
            ("searches", "--bound", f"postgres://me:{PASSWORD}@127.0.0.1:1/shop"),
            "Invalid value for '--bound'",
        ),
    ],
)
def test_no_error_shows_a_password(arguments, message):
    run = privmax("select", *arguments, *QUERY)
    no_server = "--table" in arguments and ("1:1/" in arguments[0]) and "://" in arguments[0]
    assert (run.exit_code, run.stdout) == (4 if no_server else 2, "")
    assert message in run.stderr
    assert PASSWORD not in run.stderr


@pytest.mark.parametrize("name", ["duckdb", "sqlite"])
def test_a_missing_database_is_named_and_not_made(tmp_path, name):
    run = privmax("select", f"{name}://{tmp_path}/shop.db", "--table", "searches", *QUERY)
    assert run.exit_code == 2
    assert "There is no such database file" in run.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("table", ["search", "logs.search", "nowhere.searches"])
def test_a_missing_table_is_named(databases, table):
    run = privmax("select", databases["duckdb"], "--table", table, *QUERY)
    assert run.exit_code == 2
    assert "the database has no such table" in run.stderr
    assert table in run.stderr
    assert "There are 'logs.searches', 'searches'" in run.stderr


def test_an_empty_file_releases_nothing(tmp_path, searches):
    path = tmp_path / "empty.parquet"
    pyarrow.parquet.write_table(searches.slice(0, 0), path)
    assert answer("select", path, *QUERY) is None
