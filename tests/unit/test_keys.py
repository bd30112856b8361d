"""`privmax.keys`: what it releases, what it costs, and what it refuses."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from base64 import b85encode
from contextlib import closing

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pytest

import privmax
from privmax import KeysRelease, Privacy, packing
from privmax.counts import DiscreteGaussian, DiscreteLaplace
from privmax.errors import DataError, ParameterError
from privmax.keyset.budget import MOST, ONE
from privmax.keyset.procedure import WIDEST, FoundKeys, KeySearch
from privmax.keyset.release import AllKeys, DrawnKeys
from privmax.keyset.rounds import HIGHEST_CUT, QUESTION, TOP, KeyRounds
from privmax.noise.bulk import LARGEST_SCALE
from privmax.noise.coins import SYSTEM
from privmax.packing import FEW
from privmax.sources.engines.duckdb import Embedded
from privmax.sources.reading import pairs
from privmax.sources.roles import Columns
from privmax.testing import SeededCoins

PRICE = {"epsilon": 1, "delta": "1e-6"}
NAMED = {"item": "item", "user": "user"}
CLEAR = {"tea": 900, "tea ": 800, "Tea": 700}
"""How many individuals have each key, where no chance is left."""


def frame(people=None, rare=1):
    """Rows of a clear answer, and keys that one individual each has."""
    rows = [(who, item) for item, many in (people or CLEAR).items() for who in range(many)]
    rows += [(10_000 + who, f"rare {who}") for who in range(rare)]
    return pd.DataFrame(rows, columns=["user", "item"])


def keys(data, **options):
    return privmax.keys(data, **{**NAMED, **PRICE, **options})


def test_keys_that_enough_individuals_have_are_released_sorted_by_name():
    release = keys(frame())
    assert isinstance(release, KeysRelease)
    assert release.items == ("Tea", "tea", "tea ")  # keys that differ by a space stay different
    assert (release.counts, release.error, release.other) == ((), None, None)
    assert release.privacy == Privacy(1, "1e-6")
    assert release.unit == "user"
    assert release.notes == ("Sorted by name.",)


def test_counts_come_with_the_largest_first_and_an_error():
    release = keys(frame(rare=50), counts=4, other=True, per_user=3)
    assert release.items == ("tea", "tea ", "Tea")
    assert [round(count, -2) for count in release.counts] == [900, 800, 700]
    assert release.counts_privacy.epsilon == 4
    assert release.privacy.epsilon == 5
    assert abs(release.other - 50) <= 30
    assert isinstance(release.noise, DiscreteLaplace | DiscreteGaussian)
    assert "At most 3 keys of each individual count." in release.notes
    found = release.to_frame("pandas")
    assert list(found.columns) == ["item", "count", "error"]
    assert found["item"].tolist() == ["tea", "tea ", "Tea"]
    assert json.loads(release.to_json())["other"] == release.other


def test_keys_of_equal_counts_are_sorted_by_name(monkeypatch):
    """Whatever order a source names them in."""

    class Named:
        def name(self, numbers):
            return ["b", "a", "d", "c"]

        def count(self, numbers, most):
            return np.array([5, 5, 9, 5]), 0

    monkeypatch.setattr(KeySearch, "draw", lambda self, source, coins: FoundKeys(np.arange(4), {}))
    question = AllKeys(search=KeySearch(**PRICE), counts=10**6)
    drawn = question.draw(Named(), SYSTEM)
    assert (drawn.items, drawn.counts) == (("d", "a", "b", "c"), (9, 5, 5, 5))


def test_individuals_count_for_as_many_keys_as_is_said():
    """900 individuals, each with three keys: with one key each all of them count once."""
    release = keys(frame({"a": 900, "b": 900, "c": 900}), counts=9, per_user=1)
    assert sorted(release.items) == ["a", "b", "c"]
    assert abs(sum(release.counts) - 900) < 30


@pytest.mark.parametrize("read", [pl.from_pandas, lambda rows: pl.from_pandas(rows).to_arrow()])
def test_frames_of_other_libraries_give_the_same(read):
    assert keys(read(frame())).items == ("Tea", "tea", "tea ")


def test_the_same_coins_give_the_same_release():
    first, second = (keys(frame(), counts=1, coins=SeededCoins("keys")) for _ in range(2))
    assert first == second


def test_several_columns_name_a_key():
    rows = frame().assign(year=lambda rows: np.where(rows["user"] < 400, 2024, 2025))
    release = keys(rows, item=["item", "year"])
    assert set(release.items) == {(name, year) for name in CLEAR for year in (2024, 2025)}


def test_conditions_choose_rows():
    assert keys(frame(), where="item = 'tea'").items == ("tea",)


def test_no_data_releases_nothing():
    empty = pd.DataFrame({"user": pd.Series([], dtype=str), "item": pd.Series([], dtype=str)})
    release = keys(empty, counts=1, other=True)
    assert release.items == release.counts == ()
    assert isinstance(release.other, int)
    assert release.privacy.epsilon == 2
    assert str(release).startswith("no answer")
    assert keys(empty, per_user=1).items == ()


def test_rows_without_a_key_do_not_count():
    rows = pd.concat([frame(), pd.DataFrame({"user": range(900), "item": [None] * 900})])
    assert keys(rows).items == ("Tea", "tea", "tea ")


def test_rows_without_a_user_are_refused_or_left_out():
    rows = frame().astype({"user": object})
    rows.loc[0, "user"] = None
    with pytest.raises(DataError, match="A row has an item but no user"):
        keys(rows)
    assert keys(rows, columns=Columns(missing_users="drop")).items == ("Tea", "tea", "tea ")


@pytest.mark.slow
def test_an_individual_with_a_million_keys_changes_nothing_for_others():
    many = pl.DataFrame({"user": [-1] * 10**6, "item": range(10**6)}).cast({"item": pl.String})
    rows = pl.concat([pl.from_pandas(frame()), many])
    release = keys(rows, counts=9, other=True, per_user=3)
    assert set(release.items) == set(CLEAR)
    assert abs(release.other - 2) <= 30


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"user": None}, "user is required"),
        ({"item": None}, "item is required"),
        ({"user": "nobody"}, "nobody"),
        ({"item": "nothing"}, "nothing"),
        ({"per_user": 0}, "per_user=0"),
        ({"per_user": 2.5}, "per_user=2.5"),
        ({"per_user": True}, "per_user=True"),
        ({"per_user": MOST + 1}, f"must not exceed {MOST:,}"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"epsilon": "1e-8", "delta": "1e-12"}, "would be wider than"),
        ({"delta": 0}, "a key of one individual hidden"),
        ({"delta": 1}, "delta=1"),
        ({"counts": -1}, "counts=-1"),
        ({"counts": 0}, "counts=0"),
        ({"other": True}, "which has its own cost"),
        ({"other": "yes", "counts": 1}, "True or False"),
        ({"where": "item ="}, "item ="),
        ({"columns": Columns(missing_users="keep")}, "missing_users"),
    ],
    ids=str,
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(ParameterError) as refused:
        keys(frame(), **options)
    assert words in str(refused.value)


def test_data_without_columns_is_refused():
    with pytest.raises(ParameterError, match="keys need a table"):
        keys({"tea": 900})


@pytest.mark.parametrize("slots", [2, 30])
def test_the_widest_noise_that_is_allowed_leaves_room(slots):
    """Its numbers fit into 64 bits, beside the totals of all individuals."""
    search = KeySearch(epsilon="1e-7", delta="1e-9", per_user=30)
    search.prepare()
    assert search.rounds(slots).sigma > WIDEST / 2
    rounds = search.rounds(slots)
    rounds.__dict__["sigma"] = WIDEST
    for share in (*rounds.shares, QUESTION):
        assert rounds._variance(share) * ONE**2 <= LARGEST_SCALE**2
    assert rounds.value_keys(np.array([0, 1 << 62]), HIGHEST_CUT).tolist() == [1, 1]
    assert rounds.value_keys(np.array([2 * rounds._spread]), HIGHEST_CUT).tolist() == [TOP]


def test_one_key_each_has_no_rounds_that_need_room():
    KeySearch(epsilon="1e-12", delta="1e-15", per_user=1).prepare()


def test_the_most_keys_of_an_individual_can_be_asked_for():
    KeySearch(**PRICE, per_user=MOST).prepare()


def test_the_cost_is_that_of_keys_and_counts():
    question = AllKeys(search=KeySearch(**PRICE), counts="0.5", other=True)
    assert question.privacy() == KeySearch(**PRICE).privacy() + question.count_noise.privacy
    assert question.charge().privacy == question.privacy()
    assert question.charge().unit == "user"
    assert AllKeys(search=KeySearch(**PRICE), unit="household").charge().unit == "household"


class OneIndividual:
    """Somebody with a million keys, who gives to a few of them."""

    def among(self, keys):
        return self

    def give(self, most, turn, values=None):
        totals = np.zeros(10**6, np.int64)
        totals[turn : turn + most] = ONE // 8
        return totals

    def survey(self, low):
        return 0, 0


def test_keys_to_which_nothing_is_given_are_not_released(monkeypatch):
    """Noise on each of a million keys lifts some of them over any threshold."""

    def much_noise(variance, size, coins):
        return np.full(size, 999 * ONE, np.int64) * (np.arange(size) % 2)

    monkeypatch.setattr("privmax.keyset.rounds.rounded_gaussian", much_noise)
    search = KeyRounds(**PRICE, per_user=30, slots=3)
    found = search.draw(OneIndividual(), 10**6, SYSTEM).tolist()
    assert found
    assert max(found) < 32


def test_a_notebook_lists_some_keys_and_says_how_many_more_there_are():
    release = keys(pl.DataFrame({"user": range(9000)}).with_columns(item=pl.col("user") % 150),
                   per_user=1)  # fmt: skip
    assert len(release) == 150
    page = release._repr_html_()
    assert "… and 130 more" in page
    assert page.count("<bdi>") < 40
    assert len(release.to_frame("polars")) == 150


def test_totals_by_key_are_arrays_and_not_rows_of_python(monkeypatch):
    """A tuple of two numbers takes ten times the memory of two numbers in arrays."""
    number = 5000
    rows = pl.DataFrame({"user": range(number), "item": range(number)})
    longest = []
    ask = Embedded.rows
    monkeypatch.setattr(
        Embedded, "rows", lambda self, table: longest.append(rows := ask(self, table)) or rows
    )
    make = Embedded.table_of

    def table_of(self, columns, schema, stack):
        assert all(isinstance(column, np.ndarray) for column in columns.values())
        return make(self, columns, schema, stack)

    monkeypatch.setattr(Embedded, "table_of", table_of)
    with closing(pairs(rows, Columns("item", "user"), "")) as source:
        values = np.ones(number, np.int64)
        assert (source.everyone.give(3, 0) > 0).all()
        some = source.everyone.among(np.arange(number - 1))
        assert some.survey(np.arange(number) % 2 == 0)[0] > 0
        assert (some.give(3, 1, values) > 0).sum() == number - 1
    assert max(map(len, longest)) < 10


def test_tables_that_are_not_asked_again_are_dropped():
    """The different rows are as large as the data, and are not asked again once pairs are made."""
    engine = ibis.duckdb.connect()
    table = engine.create_table("log", pl.DataFrame({"user": ["u", "v"], "item": ["a", "a"]}))

    def made():
        return {name for name in engine.list_tables() if name.startswith("privmax_counts")}

    with closing(pairs(table, Columns("item", "user"), "")) as source:
        assert len(made()) == 2  # keys, and pairs
        source.everyone.give(2, 0, np.ones(1, np.int64))
        assert len(made()) == 2
        assert source.name(np.arange(1)) == ["a"]
    assert not made()


@pytest.mark.parametrize("number", [0, 1, FEW, FEW + 1, 5 * FEW])
def test_many_keys_are_kept_compressed(number):
    items = tuple(f"kéy \ud800 {place}" if place % 2 else (place, 0.5) for place in range(number))
    drawn = DrawnKeys(items, {"rounds": 3}, tuple(range(number)), other=3)
    written = drawn.to_json()
    assert isinstance(written["items"], str) is (number > FEW)
    assert DrawnKeys.from_json(json.loads(json.dumps(written))) == drawn
    if number > FEW:
        assert len(written["items"]) < 10 * number


def test_compressed_text_that_stands_for_too_much_is_refused(monkeypatch):
    """A few bytes that somebody wrote into a ledger may stand for any number of them."""
    items = [f"key {place}" for place in range(2 * FEW)]
    text = packing.pack(items)
    monkeypatch.setattr(packing, "LARGEST", len(json.dumps(items, separators=(",", ":"))))
    assert packing.pack(items) == text
    assert packing.unpack(text) == items
    longer = [*items, "one more"]
    assert packing.pack(longer) == longer  # it does not fit into an event, and is no answer
    bomb = b85encode(zlib.compress(b"[" + b" " * 10**6 + b"]")).decode()
    for forged in (bomb, text[:-40]):
        with pytest.raises(ValueError, match=r"^(cut off, or too long|error)$"):
            packing.unpack(forged)


def test_no_more_than_the_limit_is_unpacked_to_see_that_it_is_too_long(monkeypatch):
    monkeypatch.setattr(packing, "LARGEST", 1 << 16)
    bomb = b85encode(zlib.compress(b"[" + b" " * (1 << 24) + b"]")).decode()
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="too long"):
            packing.unpack(bomb)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_what_was_compressed_before_is_read():
    text = "c-o6rDoIUL(orfoyi!T0TB)S8ASYGHDq1NKNa>iz*2V$=yEF>q"
    assert DrawnKeys.from_json({"items": text, "free": {}}).items == ("tea", "té", ("ale", 7))


def test_pairs_have_no_private_repr():
    source = pairs(frame(), Columns("item", "user"), f"{SYSTEM.bits(64):x}")
    with closing(source):
        assert repr(source) == "Pairs(<private>)"
