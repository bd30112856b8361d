"""Keys in every engine: the same pairs, the same totals and the same certain answer."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import closing
from math import floor, sqrt
from random import Random

import ibis
import numpy as np
import psycopg
import pytest

import privmax
from privmax.errors import DataError
from privmax.sources.pairs import COIN, HALF, KEY, ONE, ROOM, TURN, Pairs
from privmax.sources.roles import Columns
from privmax.sources.row_counts import USER

COLUMNS = Columns("item", "user")
MOST = 4
DRAWN = Random(34)
KEYS = ["tea", "Tea", "tea ", " tea", "té", "ale", "fig", "", "rum", "gin", "oat", "rye"]
ROWS = [
    (f"u{who}", item)
    for who in range(40)
    for item in DRAWN.choices(KEYS, range(12, 0, -1), k=DRAWN.randint(1, 14))
]
"""Individuals with up to 12 keys, some of them twice. Keys differ by spaces, case and accents."""

CLEAR = {"tea": 600, "tea ": 500, "Tea": 450, "rare": 1}
"""How many individuals have each key, where no chance is left."""


def open_pairs(load, rows=ROWS, **options):
    users, items = zip(*rows, strict=True)
    table = load({"user": users, "item": items}, types={"user": "string", "item": "string"})
    return closing(Pairs(table, COLUMNS, salt="salt", **options))


def read_people(pairs, turn):
    """The keys of each individual by number, in the order of the hashes of a turn."""
    table = pairs.everyone._table
    rows = pairs.ask(table.select(USER, KEY, **{TURN: pairs.hash(table[COIN], turn)}))
    found = defaultdict(list)
    for who, key, coin in rows:
        found[who].append((coin, int(key)))
    return [[key for _, key in sorted(own)] for own in found.values()]


def give(people, number, values=None):
    """What `PairBallots.give` says, in plain Python."""
    totals = np.zeros(number, np.int64)
    for own in people:
        worth = {key: 1 if values is None else int(values[key]) for key in own}
        chosen = sorted(own, key=lambda key: -worth[key])[:MOST]
        norm = sqrt(sum(worth[key] ** 2 for key in chosen))
        for key in chosen:
            totals[key] += floor(worth[key] * ONE * ROOM / norm)
    return totals


def test_pairs_are_those_of_plain_python(load):
    with open_pairs(load) as pairs:
        people = read_people(pairs, 0)
        names = pairs.name(np.arange(pairs.number))
        own = defaultdict(set)
        for who, item in ROWS:
            own[who].add(item)
        assert sorted(names) == sorted(set().union(*own.values()))
        assert sorted(sorted(names[key] for key in one) for one in people) == sorted(
            sorted(one) for one in own.values()
        )
        sizes = Counter(min(len(one), 5) for one in own.values())
        assert pairs.everyone.tally(5) == [sizes[size] for size in range(1, 6)]
        assert pairs.name(np.array([3, 1])) == [names[3], names[1]]


def test_totals_are_those_of_plain_python(load):
    with open_pairs(load) as pairs:
        number, everyone = pairs.number, pairs.everyone
        first = Counter(one[0] for one in read_people(pairs, 0))
        assert everyone.count_chosen(1).tolist() == [first[key] for key in range(number)]
        for turn in (0, 1):
            expected = give(read_people(pairs, turn), number)
            assert everyone.give(MOST, turn).tolist() == expected.tolist()
        values = np.array([1 << DRAWN.randint(0, 20) for _ in range(number)])
        found = everyone.give(MOST, 2, values)
        # Floats of engines differ in their last bit, and rounding down makes a step of it.
        assert found.tolist() == pytest.approx(give(read_people(pairs, 2), number, values), abs=40)


def test_totals_of_some_keys_are_those_of_plain_python(load):
    some = {1, 4, 5, 7}
    with open_pairs(load) as pairs:
        people = [[key for key in one if key in some] for one in read_people(pairs, 0)]
        alive = pairs.everyone.among(np.array(sorted(some)))
        assert alive.give(MOST, 0).tolist() == give(filter(None, people), pairs.number).tolist()
        counts, other = pairs.count(np.array([1, 4, 5, 7]), 2)
        chosen = Counter(key for one in people for key in one[:2])
        assert counts.tolist() == [chosen[key] for key in sorted(some)]
        assert other == sum(not one for one in people)
        low = np.arange(pairs.number) < 5
        share = sum(floor(HALF * sum(key < 5 for key in one) / len(one)) for one in people if one)
        assert alive.survey(low) == (HALF * sum(map(bool, people)), share)


def test_what_one_individual_gives_has_norm_1_at_most(load):
    """Alone with its keys, the totals are what it gives."""
    random = Random(5)
    with open_pairs(load, [("u", f"key {place}") for place in range(9)]) as pairs:
        for turn in range(3):
            values = np.array([1 << random.randint(0, 20) for _ in range(9)])
            for given in (pairs.everyone.give(MOST, turn), pairs.everyone.give(MOST, turn, values)):
                assert (given >= 0).all()
                assert np.count_nonzero(given) <= MOST
                assert ONE**2 * 0.99 <= sum(int(one) ** 2 for one in given) <= ONE**2
        answers = pairs.everyone.survey(np.ones(9, np.bool_))
        assert sum(one**2 for one in answers) <= ONE**2


def test_no_pairs(load):
    columns = {"user": [], "item": []}
    table = load(columns, types={"user": "string", "item": "string"})
    with closing(Pairs(table, COLUMNS, salt="salt")) as pairs:
        assert pairs.number == 0
        assert pairs.everyone.tally(3) == [0, 0, 0]
        assert pairs.everyone.give(MOST, 0).size == 0
        assert pairs.everyone.survey(np.zeros(0, np.bool_)) == (0, 0)
        assert pairs.name(np.arange(0)) == []


def test_nothing_is_left_behind(load, left_behind):
    before = left_behind()
    with open_pairs(load) as pairs:
        pairs.everyone.give(MOST, 0)
    assert left_behind() == before


@pytest.mark.parametrize("per_user", [1, 30])
def test_a_clear_answer_is_the_same_everywhere(load, per_user):
    # With one key each, every key has individuals of its own.
    shift = 1000 if per_user == 1 else 0
    rows = [
        (f"u{shift * place + who}", item)
        for place, (item, many) in enumerate(CLEAR.items())
        for who in range(many)
    ]
    users, items = zip(*[*rows, *[("u0", None)] * 3], strict=True)
    table = load({"user": users, "item": items})
    price = {"epsilon": 1, "delta": "1e-6"}
    release = privmax.keys(
        table, item="item", user="user", per_user=per_user, counts=9, other=True, **price
    )
    assert sorted(release.items) == ["Tea", "tea", "tea "]
    for item, count in zip(release.items, release.counts, strict=True):
        assert abs(count - CLEAR[item]) <= 100
    assert abs(release.other) <= 100


def test_rows_without_a_user_are_refused_or_left_out(load):
    table = load({"user": [*map(str, range(90)), None], "item": ["tea"] * 91})
    options = {"item": "item", "user": "user", "epsilon": 1, "delta": "1e-6"}
    with pytest.raises(DataError, match="no user"):
        privmax.keys(table, **options)
    assert privmax.keys(table, columns=Columns(missing_users="drop"), **options).items == ("tea",)


def test_postgresql_knows_what_its_temporary_tables_hold(postgres):
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute('CREATE TABLE known_log ("user" int, item text)')
        try:
            with server.cursor() as cursor:
                rows = list(enumerate(KEYS * 3))
                cursor.executemany("INSERT INTO known_log VALUES (%s, %s)", rows)
            connection = ibis.connect(postgres)
            with closing(Pairs(connection.table("known_log"), COLUMNS, salt="salt")) as pairs:
                pairs.everyone.among(np.arange(5)).give(MOST, 0)
                looked = connection.con.execute(
                    "SELECT reltuples FROM pg_class "
                    "WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r'"
                )
                sizes = [size for (size,) in looked]
            connection.disconnect()
        finally:
            server.execute("DROP TABLE known_log")
    assert len(sizes) >= 5
    assert min(sizes) >= 0  # -1: it never looked
