"""Every engine gives back what was put in, and is the engine it says it is."""

from __future__ import annotations

import datetime
from collections import Counter
from urllib.parse import urlsplit, urlunsplit

import ibis
import psycopg
import pyarrow as pa
import pytest

import privmax
from privmax.errors import EngineError, LedgerError, ParameterError
from privmax.ledger import Ledger
from privmax.testing import SeededCoins

STRINGS = [
    "",
    " ",
    "  both ends  ",
    "tab\tline\nreturn\r\n",
    "'single' \"double\" `back` $$dollar$$",
    "back\\slash \\n \\",
    "100% _ %s %(name)s {} ? :name $1",
    "-- comment /* comment */ ;",
    "'; DROP TABLE items; --",
    "SELECT",
    "null",
    "NULL",
    "NaN",
    "true",
    "007",
    "1e3",
    "caf\u00e9",
    "cafe\u0301",  # the same to a reader, not to a computer
    "\u1e69",
    "s\u0323\u0307",
    "stra\u00dfe",
    "STRASSE",
    "\u0130stanbul",  # its lower case is longer
    "\u05e9\u05dc\u05d5\u05dd",
    "\u0645\u0631\u062d\u0628\u0627 abc",
    "\u202eright to left\u202c",
    "\u200b",  # no width
    "\u00a0",  # a space that does not break
    "\ufeff",
    "\U0001f600",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",  # one emoji of three
    "\U0001f1f3\U0001f1f1",
    "\u65e5\u672c\u8a9e",
    "\U00020000",  # beyond 16 bits
    "\uffff",
    "\U0010ffff",
    "a",
    "A",
    "b",
    "B",
    "x" * 10_000,
]
"""All different. Without U+0000, which PostgreSQL cannot hold."""

INTEGERS = [0, 1, -1, 2**31, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]

DATES = [
    datetime.date(1, 1, 1),
    datetime.date(1582, 10, 10),  # a day the calendar of some engines leaves out
    datetime.date(1969, 12, 31),
    datetime.date(1970, 1, 1),
    datetime.date(2000, 2, 29),
    datetime.date(2026, 3, 29),  # summer time begins
    datetime.date(9999, 12, 31),
]


def back(table, column):
    """What a column holds. Nulls are counted apart: Ibis reads whole numbers beside a null as
    floats from SQLite.
    """
    values = table.select(column)
    nulls = values.filter(values[column].isnull()).count().to_pyarrow().as_py()
    return Counter(values.drop_null().to_pyarrow()[column].to_pylist()) + Counter({None: nulls})


def test_strings_come_back(load):
    assert back(load({"item": STRINGS}), "item") == Counter(STRINGS)


def test_strings_are_told_apart(load, engine):
    """By the engine itself: all but MariaDB, as it is usually set up. Keys do so everywhere
    (test_sources_agree.py).
    """
    if engine == "mariadb":
        assert load({"item": ["a", "A"]}).item.nunique().to_pyarrow().as_py() == 1
        return
    counted = (
        load({"item": [*STRINGS, *STRINGS, None, None]})
        .group_by("item")
        .agg(rows=ibis._.count())
        .to_pyarrow()
    )
    rows = dict(zip(counted["item"].to_pylist(), counted["rows"].to_pylist(), strict=True))
    assert rows == dict.fromkeys([*STRINGS, None], 2)
    assert counted.num_rows == len(STRINGS) + 1


def test_strings_are_found_by_their_value(load):
    """One question for all: how many rows equal each string, given as a literal."""
    item = load({"item": [*STRINGS, None]}).item
    named = {f"string_{place}": (item == string).sum() for place, string in enumerate(STRINGS)}
    counts = item.as_table().agg(**named).to_pyarrow().to_pylist()[0]
    assert {
        STRINGS[int(name.removeprefix("string_"))]: count
        for name, count in counts.items()
        if count != 1
    } == {}


def test_whole_numbers_come_back(load):
    table = load({"item": [*INTEGERS, None], "user": [None, *INTEGERS]})
    assert table.schema() == ibis.schema({"item": "int64", "user": "int64"})
    assert back(table, "item") == back(table, "user") == Counter([*INTEGERS, None])


def test_dates_come_back(load):
    table = load({"item": [*DATES, None]})
    assert table.schema() == ibis.schema({"item": "date"})
    assert back(table, "item") == Counter([*DATES, None])


def test_dates_are_found_by_their_value(load):
    table = load({"item": [*DATES, None]})
    assert [table.filter(table.item == date).count().to_pyarrow().as_py() for date in DATES] == [
        1
    ] * len(DATES)


def test_rows_stay_together(load):
    rows = [
        ("a", 1, DATES[0]),
        (None, 2, DATES[1]),
        ("b", None, DATES[2]),
        ("c", 3, None),
        (None, None, None),
    ]
    names = ["item", "user", "day"]
    table = load(
        {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    )
    assert Counter(
        tuple(row[name] for name in names) for row in table.to_pyarrow().to_pylist()
    ) == Counter(rows)


def test_an_empty_string_is_not_null(load):
    table = load({"item": ["", None, None]})
    assert table.item.isnull().sum().to_pyarrow().as_py() == 2
    assert table.filter(table.item == "").count().to_pyarrow().as_py() == 1


def test_a_type_can_be_given(load):
    table = load({"item": [], "user": []}, types={"item": "string", "user": "int64"})
    assert table.schema() == ibis.schema({"item": "string", "user": "int64"})
    assert table.count().to_pyarrow().as_py() == 0
    nothing = load({"item": [None, None]}, types={"item": "string"})
    assert back(nothing, "item") == Counter([None, None])


def test_tables_of_one_test_are_apart(load):
    first, second = load({"item": ["a"]}), load({"item": ["b", "c"]})
    assert first.get_name() != second.get_name()
    assert (back(first, "item"), back(second, "item")) == (Counter("a"), Counter("bc"))


def test_the_engine_is_the_one_named(load, engine):
    name = {"postgres-icu": "postgres", "mariadb": "mysql", "spark": "pyspark"}.get(engine, engine)
    assert load({"item": ["a"]}).get_backend().name == name


def ordered(table):
    return table.order_by("item").to_pyarrow()["item"].to_pylist()


@pytest.mark.parametrize(
    "engine", ["duckdb", "polars", "sqlite", "postgres", "spark"], scope="session"
)
def test_strings_order_by_their_bytes(load):
    assert ordered(load({"item": STRINGS})) == sorted(STRINGS, key=str.encode)


@pytest.mark.parametrize("engine", ["postgres-icu"], scope="session")
def test_strings_order_otherwise_under_another_collation(load):
    """Otherwise the tests that run there would show nothing that postgres does not."""
    assert ordered(load({"item": ["a", "A", "b", "B"]})) == ["a", "A", "b", "B"]
    assert ordered(load({"item": STRINGS})) != sorted(STRINGS, key=str.encode)


@pytest.mark.parametrize("engine", ["postgres"], scope="session")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ("'10.1.2.3/24'::inet", "10.1.2.3/24"),
        ("'10.1.0.0/16'::cidr", "10.1.0.0/16"),
        ("'08:00:2b:01:02:03'::macaddr", "08:00:2b:01:02:03"),
        ("'3 days'::interval", "3 days"),
    ],
)
def test_items_of_types_that_only_postgresql_has_are_text(connection, value, text):
    table = connection.sql(f"SELECT {value} AS item, person FROM generate_series(1, 60) AS person")
    assert privmax.select(table, item="item", user="person", epsilon=2, delta="0.1").item == text


ITEMS = 40
SEEDS = range(4)


def log():
    """Rows of a log, each twice: item number i has 100 − (i mod 4) people, so there are ties and no
    clear winner.
    """
    rows = [(f"item {i}", person) for i in range(ITEMS) for person in range(100 - i % 4)] * 2
    return {"item": [item for item, _ in rows], "user": [person for _, person in rows]}


def cluster_releases(session):
    """What is released with each seed, and the number of tasks that each executor was given."""
    frame = session.createDataFrame(pa.table(log())).repartition(4)
    counting = {"item": "item", "user": "user", "epsilon": "0.5"}
    labels = [f"item {i}" for i in range(2 * ITEMS)]
    opened = [
        privmax.select(frame, **counting, delta="0.3", coins=SeededCoins(seed)).item
        for seed in SEEDS
    ]
    closed = [
        privmax.select(frame, **counting, universe=labels, coins=SeededCoins(seed)).item
        for seed in SEEDS
    ]
    executors = session.sparkContext._jsc.sc().statusStore().executorList(True)
    summaries = [executors.apply(place) for place in range(executors.size())]
    return {
        "open": opened,
        "closed": closed,
        "tasks": {executor.id(): executor.totalTasks() for executor in summaries},
    }


def test_two_executors_of_spark_give_the_release_of_memory(on_cluster):
    answer = on_cluster(cluster_releases)
    counts = Counter(item for item, _ in set(zip(*log().values(), strict=True)))
    data = {item: counts[item] for item in sorted(counts)}
    every = {item: counts[item] for item in sorted(f"item {i}" for i in range(2 * ITEMS))}
    price = {"epsilon": "0.5"}
    assert answer["open"] == [
        privmax.select(data, **price, delta="0.3", coins=SeededCoins(s)).item for s in SEEDS
    ]
    assert answer["closed"] == [
        privmax.select(every, **price, universe=80, coins=SeededCoins(s)).item for s in SEEDS
    ]
    assert (
        len({*answer["open"], *answer["closed"]}) > 2
    )  # they are not the same by having no choice
    assert set(answer["tasks"]) == {"driver", "0", "1"}
    assert answer["tasks"]["driver"] == 0
    assert answer["tasks"]["0"] > 0
    assert answer["tasks"]["1"] > 0


def test_the_reason_for_a_failed_login_is_given_without_the_password(postgres):
    parts = urlsplit(postgres)
    host = parts.netloc.rpartition("@")[2]
    nowhere = urlunsplit(parts._replace(path="/no_such_database"))
    stranger = urlunsplit(parts._replace(netloc=f"no_such_user:zorblax@{host}"))
    closed = "postgresql://someone:zorblax@127.0.0.1:1/x"
    for url, told in (
        (nowhere, "no such user or no such database"),
        (stranger, "no such user or no such database|refused the password"),
        (closed, "No server answers"),
    ):
        with pytest.raises(EngineError, match=told) as caught:
            privmax.select(privmax.Database(url, "t"), item="x", epsilon=1, delta=1e-6)
        assert "zorblax" not in str(caught.value)
        with pytest.raises(LedgerError, match=told) as caught:
            Ledger(url)
        assert "zorblax" not in str(caught.value)


def test_tables_of_other_schemas_are_suggested(ledger_url):
    with psycopg.connect(ledger_url, autocommit=True) as server:
        server.execute("CREATE SCHEMA shop")
        server.execute("CREATE TABLE shop.purchases (item text)")
    with pytest.raises(ParameterError, match=r"shop\.purchases"):
        privmax.select(privmax.Database(ledger_url, "purchase"), item="item", epsilon=1, delta=1e-6)
