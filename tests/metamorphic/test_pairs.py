"""One individual more changes nothing that another one gives to its keys.

What all give together must be what they gave before, and what the new one gives where it is alone,
with the same salt and the same public numbers of keys: exactly, in every container, wherever among
the rows it stands. Nothing here knows how weights are divided, but for the comparison with plain
Python.
"""

from __future__ import annotations

import csv
import itertools
import json
import sqlite3
from contextlib import closing

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from key_ballots import HALF, ONE, Ballots, add, give

from privmax.sources import pairs as pairs_module
from privmax.sources.containers import pandas as pandas_reader
from privmax.sources.engines.base import Engine
from privmax.sources.engines.duckdb import DuckDB
from privmax.sources.pairs import COIN, KEY, TURN
from privmax.sources.reading import pairs
from privmax.sources.roles import Columns
from privmax.sources.row_counts import USER

COLUMNS = Columns("item", "user")
PER_USER = 3


def columns_of(rows):
    users, items = zip(*rows, strict=True)
    return {"user": list(users), "item": list(items)}


def as_csv(rows, folder):
    path = folder / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("user", "item"), *rows])
    return path


def as_json_lines(rows, folder):
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps({"user": u, "item": i}) + "\n" for u, i in rows))
    return path


def as_parquet(rows, folder):
    pq.write_table(pa.table(columns_of(rows)), folder / "rows.parquet")
    return folder / "rows.parquet"


def as_sqlite(rows, folder):
    path = folder / "rows.sqlite"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE visits (user, item)")
        database.executemany("INSERT INTO visits VALUES (?, ?)", rows)
        database.commit()
    return ibis.sqlite.connect(path).table("visits")


CONTAINERS = {
    "pandas": lambda rows, folder: pd.DataFrame(columns_of(rows)),
    "pandas, categories": lambda rows, folder: pd.DataFrame(columns_of(rows)).astype("category"),
    "polars": lambda rows, folder: pl.DataFrame(columns_of(rows)),
    "polars, categories": lambda rows, folder: pl.DataFrame(columns_of(rows)).with_columns(
        pl.all().cast(pl.Categorical)
    ),
    "Arrow": lambda rows, folder: pa.table(columns_of(rows)),
    "Arrow, dictionaries": lambda rows, folder: pa.table(
        {name: pa.array(column).dictionary_encode() for name, column in columns_of(rows).items()}
    ),
    "CSV": as_csv,
    "JSON Lines": as_json_lines,
    "Parquet": as_parquet,
    "DuckDB": lambda rows, folder: duckdb.from_arrow(pa.table(columns_of(rows))),
    "SQLite": as_sqlite,
}

rng = np.random.default_rng(7)
CROWD = [
    (f"u{user}", f"tea {item}")
    for user in range(9)
    for item in rng.choice(12, rng.integers(1, 8), replace=False).tolist()
]
rng.shuffle(CROWD)
CROWD = [tuple(row) for row in CROWD]
NEW = [("new", f"tea {item}") for item in (11, 0, 40, 5, 7, 41)]
"""Keys that others have, and some of its own."""

TOGETHER = [*NEW[:3], *CROWD[:5], NEW[0], *CROWD[5:], *NEW[3:]]
"""With rows of the new one first, last and between, and one of them twice."""

QUICK = ("pandas, categories", "Arrow, dictionaries", "CSV", "SQLite")


def given_by(container, rows, folder, most=PER_USER):
    data = CONTAINERS[container](rows, folder)
    with closing(pairs(data, COLUMNS, "salt")) as source:
        return give(source, most)


def is_unmoved(container, folder):
    """Whether others give the same with one individual more."""
    apart = add(given_by(container, CROWD, folder), given_by(container, NEW, folder))
    return given_by(container, TOGETHER, folder) == apart


@pytest.mark.parametrize(
    "container",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CONTAINERS],
)
def test_one_individual_more_changes_nothing_that_others_give(container, tmp_path):
    assert is_unmoved(container, tmp_path)


@pytest.fixture
def equal_hashes(monkeypatch):
    """All pairs have the same hash: only the order of keys decides."""
    for kind in (Engine, DuckDB):
        monkeypatch.setattr(kind, "hash_values", lambda self, keys, salt: self.literal(0, "int64"))


TIES = ["pandas", "polars, categories", "SQLite"]


@pytest.mark.slow
@pytest.mark.parametrize("container", TIES)
def test_the_same_where_hashes_are_equal(container, equal_hashes, tmp_path):
    assert is_unmoved(container, tmp_path)


def test_an_order_of_labels_that_follows_from_other_rows_is_noticed(
    equal_hashes, monkeypatch, tmp_path
):
    monkeypatch.setattr(pandas_reader, "sort_numbers", lambda numbers, labels: (numbers, labels))
    assert not is_unmoved("pandas", tmp_path)


ODD_USERS = {"text": "new", "a float": 0.5, "a large number": 2**53 - 1, "a truth": True}


@pytest.mark.parametrize("user", ODD_USERS.values(), ids=ODD_USERS)
def test_a_user_of_any_type_changes_nothing_that_others_give(user, tmp_path):
    """pandas makes other numbers, or objects, of the whole column."""
    numbers = [(int(who[1:]) + 2, item) for who, item in CROWD]
    rows = [(user, item) for _, item in NEW]
    apart = add(*(given_by("pandas", part, tmp_path) for part in (numbers, rows)))
    assert given_by("pandas", rows + numbers, tmp_path) == apart


def test_hashes_that_follow_from_other_rows_are_noticed(monkeypatch, tmp_path):
    numbers = itertools.count()
    monkeypatch.setattr(pairs_module, "_hash_label", lambda label: -next(numbers))
    assert not is_unmoved("pandas", tmp_path)


# What each individual gives


def crowd_of_own(seed, people, most):
    """Individuals with keys of their own, so that totals are what one individual gives."""
    numbers = np.random.default_rng(seed)
    return [
        (user, f"{user} {item}")
        for user in range(people)
        for item in range(int(numbers.integers(1, most + 1)))
    ]


@pytest.mark.parametrize(
    ("container", "per_user"), [("pandas", 1), ("Parquet", 2), ("SQLite", 7), ("Parquet", 30)]
)
def test_norm_and_number_of_keys_hold_exactly(container, per_user, tmp_path):
    rows = crowd_of_own(per_user, 60, 3 * per_user)
    given = given_by(container, rows, tmp_path, per_user)
    people, part, _ = given.pop("answers")
    assert HALF * 60 >= people >= part > 0
    assert 2 * HALF**2 <= ONE**2
    assert sum(given.pop("tally")) == 60
    users = {label: int(label.split()[0]) for label in given}
    kinds = len(next(iter(given.values())))
    norms, numbers = np.zeros((kinds, 60), np.int64), np.zeros((kinds, 60), np.int64)
    for label, weights in given.items():
        assert all(0 <= weight <= ONE for weight in weights)
        norms[:, users[label]] += np.array(weights) ** 2
        numbers[:, users[label]] += np.array(weights) > 0
    first, everything, alive, last, counted = range(kinds)
    assert (norms[[everything, alive, last]] <= ONE**2).all()
    assert (norms[everything] > 0.99 * ONE**2).all()
    assert (norms[last] > 0.99 * ONE**2).mean() > 0.5
    assert (numbers <= per_user).all()
    assert (numbers[first] == 1).all()
    assert (norms[counted] == numbers[counted]).all()


def hashes_of(source):
    """The order by hash of the pairs of each individual, by turn: individual, number of the key."""
    table, found = source.everyone._table, {}
    for turn in range(3):
        rows = table.select(USER, KEY, **{TURN: source.hash(table[COIN], turn)})
        found |= {(int(user), int(key), turn): coin for user, key, coin in source.ask(rows)}
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
@pytest.mark.parametrize(
    ("container", "per_user"), [("Parquet", 1), ("SQLite", 3), ("Parquet", 10), ("SQLite", 10)]
)
def test_weights_are_those_of_plain_python(container, per_user, seed, tmp_path):
    numbers = np.random.default_rng(seed)
    rows = [
        (user, int(item))
        for user in range(80)
        for item in numbers.choice(25, numbers.integers(1, 20), replace=False)
    ]
    holdings = {user: {item for who, item in rows if who == user} for user in range(80)}
    with closing(pairs(CONTAINERS[container](rows, tmp_path), COLUMNS, "salt")) as source:
        coins = hashes_of(source)
        plain = Ballots(
            holdings, coin=lambda user, item, turn: coins[user, plain.places[item], turn]
        )
        assert give(source, per_user) == give(plain, per_user)
