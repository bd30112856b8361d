"""Every engine gives the baskets that memory has: the same items, the same supports of all
itemsets.

Supports are counted here in a few lines of Python, from the rows and from what came out of the
engine.
"""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from contextlib import ExitStack, closing
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privmax.errors import DataError, EngineError, ParameterError, UnsupportedError
from privmax.itemsets import top_itemsets
from privmax.itemsets.miner.window import Miner
from privmax.itemsets.reading import tables
from privmax.itemsets.reading.forms import open_baskets as read_any
from privmax.itemsets.reading.forms import read_baskets
from privmax.itemsets.reading.tables import TableRows, open_table
from privmax.testing import SeededCoins

STRANGE = [
    "", " ", "a", "A", "b", "B", "ä", "Z", "é", "e\u0301", "ß", "ss", "ﬀ", "日本",
    "\U0001f600", "\uffff", "\u200b", "10", "9", "O'Brien", 'say "hi"', "back\\slash", "%s",
    "tab\there", "line\nbreak", "; DROP TABLE x", "NULL", ",", "x" * 500,
]  # fmt: skip

DATES = [
    datetime.date(1969, 12, 31),
    datetime.date(2024, 2, 29),
    datetime.date(1000, 1, 1),
    datetime.date(2262, 5, 1),
    datetime.date(2026, 3, 29),
]

WHOLE = [0, -1, 7, 10, 9, 2**53 + 1, 2**63 - 1, -(2**63)]

USERS, BASKETS = 9, 4
"""How many users there are, and how many names for the baskets of each: all users have baskets of
the same names.
"""


def drawn(items, number=160, seed=20261115):
    """Rows of a shop: the first items are bought the most, some rows come twice, and some have no
    item.
    """
    generator = np.random.default_rng(seed)
    places = np.minimum(generator.geometric(0.25, number) - 1, len(items) - 1).tolist()
    bought = {
        "basket": generator.integers(0, BASKETS, number).tolist(),
        "item": [items[place] for place in places],
        "user": [f"é{n}" for n in generator.integers(0, USERS, number)],
    }
    bought["receipt"] = [
        f"{user} {basket}" for user, basket in zip(bought["user"], bought["basket"], strict=True)
    ]
    for name, column in bought.items():
        column.extend([None] * 3 if name == "item" else column[:3])
        column.extend(column[:40])
    bought["receipt"][len(places)] = "nothing but a missing item"
    return bought


CASES = {
    "strings": drawn(STRANGE),
    "integers": drawn(WHOLE),
    "dates": drawn(DATES),
    "floats": drawn([1.0, 2.5, 0.5, 7.0]),
}

WAYS = {
    "baskets": {"basket": "receipt"},
    "users": {"basket": "basket", "user": "user"},
    "several columns": {"basket": ["basket", "user"]},
    "several columns of users": {"basket": ["basket", "receipt"], "user": "user"},
}


def key(rows, columns, place):
    """What stands in a column, or in several."""
    return tuple(rows[name][place] for name in ([columns] if isinstance(columns, str) else columns))


def counted(rows, sizes, basket, user=None):
    """{itemset: support}, by definition."""
    contents = defaultdict(set)
    for place, item in enumerate(rows["item"]):
        if item is not None:
            contents[key(rows, user or basket, place), key(rows, basket, place)].add(item)
    holders = defaultdict(set)
    for (owner, _), items in contents.items():
        for size in sizes:
            for itemset in combinations(in_order(items), size):
                holders[itemset].add(owner)
    return {itemset: len(owners) for itemset, owners in holders.items()}


def found(baskets, sizes):
    """{itemset: support} of what came from an engine, by definition."""
    holders = defaultdict(set)
    for row in range(baskets.rows):
        owner = row if baskets.owners is None else int(baskets.owners[row])
        codes = sorted(set(baskets.codes[baskets.offsets[row] : baskets.offsets[row + 1]].tolist()))
        for size in sizes:
            for itemset in combinations(codes, size):
                holders[tuple(baskets.labels[code] for code in itemset)].add(owner)
    return {
        itemset: int(baskets.weights[list(owners)].sum()) for itemset, owners in holders.items()
    }


def classes(rows, least, basket, user=None, *, by_rows=False):
    """How many individuals have each set of baskets, once the items that fewer than `least` have
    are gone; or `by_rows`, those with fewer rows.
    """
    supports = counted(rows, [1], basket, user)
    if by_rows:
        supports = {
            (item,): number for item, number in Counter(rows["item"]).items() if item is not None
        }
    frequent = {item for (item,), support in supports.items() if support >= least}
    theirs = defaultdict(lambda: defaultdict(set))
    for place, item in enumerate(rows["item"]):
        if item in frequent:
            theirs[key(rows, user or basket, place)][key(rows, basket, place)].add(item)
    return Counter(frozenset(map(frozenset, baskets.values())) for baskets in theirs.values())


def classes_of(baskets):
    owners = range(baskets.rows) if baskets.owners is None else baskets.owners.tolist()
    theirs = defaultdict(set)
    for row, owner in enumerate(owners):
        codes = baskets.codes[baskets.offsets[row] : baskets.offsets[row + 1]].tolist()
        assert codes, "a basket without items need not come"
        theirs[owner].add(frozenset(baskets.labels[code] for code in codes))
    return sorted(
        ((frozenset(sets), int(baskets.weights[owner])) for owner, sets in theirs.items()),
        key=lambda pair: pair[1],
    )


def in_order(items):
    return sorted(items, key=lambda item: item.encode() if isinstance(item, str) else item)


def at_least(supports, least):
    return {itemset: support for itemset, support in supports.items() if support >= least}


@pytest.fixture(params=CASES)
def rows(request):
    return CASES[request.param]


either_form = pytest.mark.parametrize("bits", [tables.MOST_BITS, 0], ids=["bits", "texts"])
"""How sets of items are written: as bits where they are few, otherwise as text."""


@either_form
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_supports_of_all_itemsets_are_those_of_memory(load, rows, way, bits, monkeypatch):
    monkeypatch.setattr(tables, "MOST_BITS", bits)
    expected = counted(rows, range(1, 5), **way)
    with closing(TableRows(load(rows), item="item", **way)) as source:
        assert list(source.labels) == in_order({item for item in rows["item"] if item is not None})
        assert source.bounds().tolist() == [rows["item"].count(label) for label in source.labels]
        for least in (5, 1):
            baskets = source.survivors(least)
            assert baskets.labels == source.labels
            assert at_least(found(baskets, range(1, 5)), least) == at_least(expected, least)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_numbers_for_rules_are_those_of_memory(load, rows, way):
    """How many have all items of a set, in one basket or, with users, in several."""
    memory = read_baskets(pa.table(rows), item="item", **way)
    sets = [one for size in range(4) for one in combinations(range(min(memory.items, 6)), size)]
    with closing(TableRows(load(rows), item="item", **way)) as source:
        assert source.labels == list(memory.labels)
        assert source.count_holders(sets) == memory.count_holders(sets)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_mined_itemsets_are_those_of_memory(load, rows, way):
    memory = read_baskets(pa.table(rows), item="item", **way)
    expected = Miner(memory, range(2, 4))
    with closing(TableRows(load(rows), item="item", **way)) as source:
        assert source.labels == list(memory.labels)
        assert source.longest() == max(map(len, counted(rows, range(1, 30), **way)))
        mined = Miner(source, range(2, 4))
        assert mined.best() == expected.best() > 0
        assert mined.histogram(3) == expected.histogram(3)
        for one, other in zip(mined.above(2), expected.above(2), strict=True):
            assert one.tolist() == other.tolist()


RELEASES = {
    "open": {"epsilon": 3, "delta": "0.4", "size": (1, 2), "supports": 3},
    "closed": {"epsilon": "0.2", "size": 2, "items": STRANGE},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("price", RELEASES)
def test_the_release_is_that_of_memory(load, way, price):
    rows = CASES["strings"]
    options = {**RELEASES[price], **WAYS[way], "item": "item"}
    table, frame = load(rows), pd.DataFrame(rows)
    for seed in range(3):
        here, there = (
            top_itemsets(data, coins=SeededCoins(seed), **options) for data in (frame, table)
        )
        assert (there.items, there.supports) == (here.items, here.supports)


def test_the_releases_differ_by_their_coins():
    """Otherwise equal ones would show little."""
    frame = pd.DataFrame(CASES["strings"])
    for options in RELEASES.values():
        found = [
            top_itemsets(frame, basket="receipt", item="item", coins=SeededCoins(n), **options)
            for n in range(3)
        ]
        assert len({(one.items, one.supports) for one in found}) > 1


@either_form
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_individuals_with_the_same_baskets_come_as_one(load, way, bits, monkeypatch):
    """And without the items that are too rare. Memory is what different baskets take."""
    monkeypatch.setattr(tables, "MOST_BITS", bits)
    rows = CASES["strings"]
    with closing(TableRows(load(rows), item="item", **way)) as source:
        for least in (7, 5):
            by_rows = bool(bits) and _has_bits(source, way)
            expected = classes(rows, least, **way, by_rows=by_rows)
            assert dict(classes_of(source.survivors(least))) == expected
            assert len(classes_of(source.survivors(least))) == len(expected)


def test_the_cases_have_something_to_show():
    """Items that are too rare, baskets that are the same, users of several baskets, itemsets of
    several items.
    """
    for way in WAYS.values():
        supports = counted(CASES["strings"], range(1, 2), **way)
        assert min(supports.values()) < 5
    for rows in (CASES["strings"], CASES["integers"]):
        for way in WAYS.values():
            supports = counted(rows, range(1, 5), **way)
            assert {len(itemset) for itemset in at_least(supports, 5)} >= {1, 2}
        assert max(classes(rows, 7, **WAYS["baskets"]).values()) > 1
    several = {"user": [1, 1, 1, 2, 2, 2], "basket": [1, 1, 2, 1, 1, 2], "item": list("abaaba")}
    assert classes(several, 1, "basket", "user") == {
        frozenset([frozenset("ab"), frozenset("a")]): 2
    }


def _has_bits(source, way):
    """Whether an engine can write sets as bits; those of users as text made of those."""
    without_arrays = ["sqlite", "mysql"] if "user" in way else []
    return source._engine.name not in ["pyspark", *without_arrays]


@either_form
def test_users_are_told_apart_by_their_sets_of_baskets(load, bits, monkeypatch):
    """Who has one basket of a and b is not who has one of a and one of b, however often; order does
    not matter.
    """
    monkeypatch.setattr(tables, "MOST_BITS", bits)
    table = load(
        {
            "user": [1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5],
            "basket": [1, 1, 1, 2, 1, 2, 3, 9, 9, 1, 1, 2],
            "item": ["a", "b", "a", "b", "b", "a", "a", "b", "a", "a", "b", "a"],
        }
    )
    with closing(TableRows(table, basket="basket", item="item", user="user")) as source:
        baskets = source.survivors(1)
        assert found(baskets, [1, 2]) == {("a",): 5, ("b",): 5, ("a", "b"): 3}
        assert dict(classes_of(baskets)) == {
            frozenset([frozenset("ab")]): 2,
            frozenset([frozenset("a"), frozenset("b")]): 2,
            frozenset([frozenset("ab"), frozenset("a")]): 1,
        }


def test_many_items_are_told_apart_by_their_numbers(load):
    """Numbers of several digits: 1 and 11 in a basket are not 11 and 1, nor 111."""
    items = [f"item {n}" for n in range(1200)]
    rows = {
        "basket": [n // 5 for n in range(3000)],
        "item": [items[(n * 7 + n // 1200) % 1200] for n in range(3000)],
    }
    with closing(TableRows(load(rows), basket="basket", item="item")) as source:
        assert found(source.survivors(1), [1, 2]) == counted(rows, [1, 2], "basket")


def test_no_rows_are_no_items(load):
    nothing = {"item": [], "basket": [], "user": []}
    types = {"item": "string", "basket": "int64", "user": "int64"}
    missing = {"item": [None, None], "basket": [1, None], "user": [None, 1]}
    for rows in (nothing, missing):
        for way in ({}, {"user": "user"}):
            with closing(
                TableRows(load(rows, types=types), basket="basket", item="item", **way)
            ) as source:
                assert (list(source.labels), source.bounds().tolist()) == ([], [])
                assert source.survivors(1).rows == source.survivors(1).individuals == 0


def test_nothing_survives_above_the_most_frequent_item(load):
    with closing(
        TableRows(load({"basket": [1, 2], "item": ["a", "a"]}), basket="basket", item="item")
    ) as source:
        assert source.survivors(3).rows == 0
        assert source.survivors(2).individuals == 2


@pytest.mark.parametrize(
    ("rows", "user"),
    [
        ({"item": ["a", "b"], "basket": [1, None], "user": [1, 2]}, None),
        ({"item": ["a", "b"], "basket": [1, None], "user": [1, 2]}, "user"),
        ({"item": ["a", "b"], "basket": [1, 1], "user": [1, None]}, "user"),
    ],
    ids=["no basket", "no basket of a user", "no user"],
)
def test_rows_of_nobody_are_refused_by_every_engine(load, rows, user):
    missing = "user" if None in rows["user"] else "basket"
    with pytest.raises(DataError, match=rf"^A row has an item but no {missing}\.") as caught:
        TableRows(load(rows), basket="basket", item="item", user=user)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("missing", ["basket", "user"])
def test_each_of_several_columns_of_baskets_must_be_there(load, missing):
    rows = {"item": ["a", "b"], "basket": [1, 1], "user": [1, 2], missing: [1, None]}
    with pytest.raises(DataError, match=r"^A row has an item but no basket\."):
        TableRows(load(rows), basket=["basket", "user"], item="item")


def test_a_table_with_a_column_for_each_item(load):
    rows = {"jam": [1, 0, 1, 0], "bread": [1, 1, 1, 0], "receipt": [7, 8, 8, 9]}
    with ExitStack() as stack:
        found = read_any(load(rows), form="onehot", basket="receipt", stack=stack)
        assert (found.labels, found.individuals, found.supports().tolist()) == (
            ["bread", "jam"],
            3,
            [2, 2],
        )
        with pytest.raises(ParameterError, match="set form to onehot"):
            read_any(load(rows), stack=stack)


def test_a_column_of_zeros_and_ones_is_not_taken_for_items(load):
    with ExitStack() as stack, pytest.raises(DataError, match="only zeros and ones"):
        read_any(
            load({"receipt": [1, 2, 3], "jam": [0, 1, 1]}),
            basket="receipt",
            item="jam",
            stack=stack,
        )


@pytest.mark.parametrize(
    "name", ["select", 'quo"te', "it's", "UPPER", "a.b", "privmax_code", "privmax_user"]
)
def test_a_column_may_have_any_name(load, name):
    table = load({name: ["a", "b", "a"], "Group By": [1, 1, 2]})
    with closing(TableRows(table, basket="Group By", item=name)) as source:
        assert found(source.survivors(1), [1, 2]) == {("a",): 2, ("b",): 1, ("a", "b"): 1}


def test_one_column_may_be_basket_and_user(load):
    table = load({"item": ["a", "b", "a"], "who": [1, 1, 2]})
    with closing(TableRows(table, basket="who", item="item", user="who")) as source:
        assert found(source.survivors(1), [1, 2]) == {("a",): 2, ("b",): 1, ("a", "b"): 1}


@either_form
@pytest.mark.parametrize("user", [None, "basket"], ids=["baskets", "users"])
def test_a_row_that_arrives_between_the_passes_is_noticed(
    load, connection, user, bits, monkeypatch
):
    monkeypatch.setattr(tables, "MOST_BITS", bits)
    rows = {"basket": [1, 1, 2, 2], "item": ["zorblax", "b", "zorblax", "b"]}
    table = load(rows)
    with closing(TableRows(table, basket="basket", item="item", user=user)) as source:
        assert source.bounds().tolist() == [2, 2]
        write(connection, table.op().name, rows, (3, "b"))
        with pytest.raises(EngineError, match="changed while it was read") as caught:
            source.survivors(1)
    assert "zorblax" not in str(caught.value)


def write(connection, name, rows, more):
    """One more row for a table. Where none can be added, the table is replaced."""
    new = pa.table(
        {column: [*rows[column], value] for column, value in zip(rows, more, strict=True)}
    )
    match connection.name:
        case "pyspark":
            connection._session.createDataFrame(new).createOrReplaceTempView(name)
        case "polars":
            connection.create_table(name, new, overwrite=True)
        case "mysql":
            with connection.begin() as cursor:
                cursor.execute(f"INSERT INTO {name} VALUES (%s, %s)", more)
        case _:
            connection.con.execute(f"INSERT INTO {name} VALUES ({', '.join(map(repr, more))})")


@pytest.mark.parametrize("engine", ["sqlite", "postgres", "spark"], scope="session")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_baskets_may_be_grouped_here_as_they_pass(load, monkeypatch, way):
    """SQLite has no other way; others could do the same."""
    monkeypatch.setattr(tables, "_group", _lacking)
    monkeypatch.setattr(tables, "MOST_BITS", 0)
    rows = CASES["strings"]
    with closing(TableRows(load(rows), item="item", **way)) as source:
        assert dict(classes_of(source.survivors(5))) == classes(rows, 5, **way)


def _lacking(*_):
    raise UnsupportedError(
        "This engine does not offer what grouping the baskets needs (ArrayCollect)."
    )


def test_nothing_is_left_in_the_engine(load, left_behind):
    table = load(CASES["strings"])
    first = TableRows(table, item="item", **WAYS["users"])
    second = TableRows(table, item="item", **WAYS["users"])
    assert len(left_behind()) == 2
    second.survivors(3)
    second.close()
    second.close()
    assert first.survivors(3).rows
    first.close()
    assert left_behind() == []
    with pytest.raises(DataError):
        TableRows(
            load({"item": ["a"], "basket": [None]}, types={"basket": "int64"}),
            item="item",
            basket="basket",
        )
    assert left_behind() == []


def test_a_spark_frame_is_read_and_its_session_left_as_it_was(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    frame = session.createDataFrame([(1, "a"), (1, "b"), (2, "a")], ["basket", "item"])
    with closing(open_table(frame, basket="basket", item="item")) as source:
        assert found(source.survivors(1), [1, 2]) == {("a",): 2, ("b",): 1, ("a", "b"): 1}
    assert session.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert session.catalog.listTables() == []


@pytest.mark.parametrize("engine", ["postgres"], scope="session")
def test_items_of_types_that_only_postgresql_has_are_text(connection):
    uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    table = connection.sql(
        f"SELECT basket, '{uuid}'::uuid AS item FROM generate_series(1, 4) AS basket "
        "UNION ALL SELECT basket, '00000000-0000-0000-0000-000000000000'::uuid FROM "
        "generate_series(3, 9) AS basket"
    )
    with closing(TableRows(table, basket="basket", item="item")) as source:
        assert source.labels == ["00000000-0000-0000-0000-000000000000", uuid]
        assert source.bounds().tolist() == [7, 4]
        assert found(source.survivors(2), [2]) == {tuple(source.labels): 2}


@pytest.mark.parametrize("engine", ["postgres"], scope="session")
def test_postgresql_that_lets_nothing_be_written_counts_at_every_question(
    load, connection, left_behind
):
    """A standby, or a role that may only read: slower, the same answer."""
    rows = CASES["strings"]
    table = load(rows)
    connection.raw_sql("SET default_transaction_read_only = on").close()
    try:
        with closing(TableRows(table, item="item", **WAYS["users"])) as source:
            assert at_least(found(source.survivors(5), [1, 2]), 5) == at_least(
                counted(rows, [1, 2], **WAYS["users"]), 5
            )
            assert left_behind() == []
    finally:
        connection.raw_sql("SET default_transaction_read_only = off").close()
