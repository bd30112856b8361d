"""A condition keeps the same rows in every engine: those that a few lines of Python keep."""

from __future__ import annotations

import datetime
from contextlib import closing

import ibis
import pytest

import privmax
from privmax.errors import ConditionError
from privmax.sources.conditions import DIGITS, Condition
from privmax.sources.engines import engine_of
from privmax.sources.roles import Columns
from privmax.sources.tables import TableSource
from privmax.testing import SeededCoins

ROWS = {
    "text": ["a", "A", "ä", "ab\\'%_", None, "", "\U0001f600", "\uffff", "e\u0301"],
    "number": [1, -3, 2**62, None, 0, 10, 9, 99, 7],
    "share": [0.5, -0.0, None, 1e300, None, 2.5, 0.1, -1e300, 3.0],
    "day": [
        datetime.date(2026, 1, 1),
        datetime.date(1999, 12, 31),
        None,
        datetime.date(2026, 1, 2),
        datetime.date(2026, 1, 1),
        datetime.date(2262, 5, 1),
        datetime.date(2026, 1, 3),
        datetime.date(2026, 1, 4),
        datetime.date(2026, 1, 5),
    ],
    "place": list(range(9)),
}

CONDITIONS = [
    "text = 'a'",
    "text != 'a'",
    "text >= 'a' and text < 'b'",
    "text = 'ab\\''%_'",
    "text starts with 'ab\\'",
    "text > '\uffff' or text starts with 'e'",
    "not (text in ('a', 'ä', ''))",
    "text is null or number is null",
    "number > 2.5",
    "number != 9",
    "number = 2.5 or number between -3 and -0.5",
    f"number > {'9' * DIGITS}",
    "not (number < 10)",
    "share = 0",
    "share >= 0.1 and share < 3",
    "not (share < 0.1 or share > 1) or share is null",
    "day >= '2026-01-02'",
    "not (day = '2026-01-01')",
]


def keeps(node, row) -> bool:
    """The plainest Python."""
    if hasattr(node, "parts"):
        every = all if node.word == "and" else any
        return every(keeps(part, row) for part in node.parts)
    held, value = row[node.column], node.value
    if value is None:
        return (held is None) == (node.sign == "is null")
    if held is None:
        return False
    if isinstance(held, datetime.date):
        value = datetime.date.fromisoformat(value)
    if isinstance(held, float):
        value = float(value)
    return {
        "=": held == value, "!=": held != value, "<": held < value, "<=": held <= value,
        ">": held > value, ">=": held >= value,
    }[node.sign]  # fmt: skip


def kept(given: str) -> list[int]:
    root = Condition.of(given).root
    rows = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    return [row["place"] for row in rows if keeps(root, row)]


def check(table) -> None:
    engine, seen = engine_of(table), set()
    for given in CONDITIONS:
        rows = Condition.of(given).filter(table, engine)
        with closing(TableSource(rows, Columns("place"))) as source:
            found = sorted(place for place, _ in source.scores())
        assert found == kept(given), given
        seen.add(tuple(found))
    assert len(seen) > len(CONDITIONS) // 2


def test_every_engine_keeps_the_same_rows(load):
    check(load(ROWS))


def test_mariadb_keeps_them_too(mariadb):
    connection = ibis.connect(mariadb)
    with closing(connection.con):
        connection.raw_sql(
            "CREATE TEMPORARY TABLE privmax_where (text VARCHAR(20) CHARACTER SET utf8mb4 COLLATE "
            "utf8mb4_general_ci, number BIGINT, share DOUBLE, day DATE, place BIGINT)"
        )
        cursor = connection.con.cursor()
        cursor.execute("SET NAMES utf8mb4")
        cursor.executemany(
            "INSERT INTO privmax_where VALUES (%s, %s, %s, %s, %s)",
            list(zip(*ROWS.values(), strict=True)),
        )
        check(connection.table("privmax_where"))


def test_a_release_of_some_rows_is_that_of_memory(load):
    rows = {
        "item": ["a"] * 30 + ["b"] * 40 + ["b"] * 2,
        "user": [*range(30), *range(40), 1, 2],
        "country": ["DE"] * 30 + ["FR"] * 38 + ["DE"] * 2 + [None, "DE"],
    }
    options = {"mechanism": privmax.NestedMargin(epsilon=4, delta="0.1"), "counts": "2"}
    release = privmax.select(
        load(rows),
        item="item",
        user="user",
        where="country = 'DE'",
        coins=SeededCoins(3),
        **options,
    )
    memory = privmax.select({"a": 30, "b": 3}, coins=SeededCoins(3), **options)
    assert (release.items, release.counts) == (memory.items, memory.counts)
    assert release.item == "a"


def test_another_type_is_refused(load, engine):
    if engine == "sqlite":
        pytest.skip("its columns have no types of their own")
    table = load(ROWS)
    for given in ("number = 'a'", "text = 3", "day = 3", "share = true"):
        with pytest.raises(ConditionError, match="cannot be compared"):
            Condition.of(given).filter(table, engine_of(table))
