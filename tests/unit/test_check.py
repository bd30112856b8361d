"""`check=True`: columns, types and readability are looked at, and nothing is drawn or charged."""

from __future__ import annotations

import io
import json
import os
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from by_name import by_name

import privmax
from privmax import Request
from privmax.errors import BudgetError, DataError, LedgerError, ParameterError
from privmax.itemsets import Layout, top_itemsets
from privmax.ledger import Ledger
from privmax.markers import top_markers
from privmax.noise.coins import Coins
from privmax.privacy import Privacy

PRICE = {"epsilon": 1, "delta": "1e-6"}
COUNTING = {"item": "query", "user": "person"}
FRAME = pd.DataFrame({"person": ["a", "b"], "query": ["x", "y"], "basket": [1, 2]})


class NoCoins(Coins):
    """Nothing may be drawn from them."""

    def bits(self, number):
        raise AssertionError("a check draws nothing")


ASKING = {
    "select": lambda **more: by_name(privmax.select, FRAME, **COUNTING, **PRICE, **more),
    "top_itemsets": lambda **more: by_name(
        top_itemsets, FRAME, basket="basket", item="query", user="person", **PRICE, **more
    ),
    "top_markers": lambda **more: by_name(
        top_markers, np.array([[4, 5], [9, 3]]), cases=10, controls=10, epsilon=1, **more
    ),
}


@pytest.fixture(params=ASKING)
def ask(request):
    return ASKING[request.param]


def test_a_check_draws_and_costs_nothing(ask):
    checked = ask(check=True, coins=NoCoins())
    assert checked.checked
    assert (checked.items, checked.privacy) == ((), Privacy(0))
    assert "nothing was drawn or charged" in checked.why
    assert "stood out" not in checked._repr_html_()


@pytest.mark.parametrize("library", [None, "pandas", "polars", "pyarrow"])
def test_a_check_has_no_frame(ask, library):
    """An empty one would look like no answer."""
    with pytest.raises(ParameterError, match="check=True is not allowed: nothing was drawn"):
        ask(check=True).to_frame(library)


TEXT = "person,query,basket\na,x,1\nb,y,2\n"
READING = {
    "select": lambda file, **more: by_name(privmax.select, file, **COUNTING, **PRICE, **more),
    "scores": lambda file, **more: by_name(
        privmax.select, file, item="query", score="basket", **PRICE, **more
    ),
    "top_itemsets": lambda file, **more: by_name(
        top_itemsets, file, basket="basket", item="query", **PRICE, **more
    ),
    "wide": lambda file, **more: by_name(
        top_itemsets, file, delimiter=",", **PRICE, **more, layout=Layout(form="wide")
    ),
}


@pytest.mark.parametrize("read", READING.values(), ids=READING)
@pytest.mark.parametrize("encoding", [None, "cp1252"])
def test_a_check_leaves_an_open_file_where_it_was(read, encoding, tmp_path):
    (tmp_path / "a.csv").write_text("skipped\n" + TEXT)
    with (tmp_path / "a.csv").open("rb") as file, io.BytesIO(b"skipped\n" + TEXT.encode()) as held:
        for opened in (file, held):
            opened.readline()
            for _ in range(2):
                assert read(opened, encoding=encoding, check=True).checked
                assert opened.tell() == len("skipped\n")
            assert not read(opened, encoding=encoding).checked


def test_a_failed_check_leaves_an_open_file_where_it_was():
    file = io.BytesIO(b"person,query\na,\xff\n")
    with pytest.raises(DataError):
        privmax.select(file, **COUNTING, **PRICE, ledger=privmax.Request(check=True))
    assert file.tell() == 0


def test_a_check_reads_a_pipe_once():
    """It cannot be put back, and is not."""
    reads, writes = os.pipe()
    with open(reads, "rb") as file:
        with open(writes, "wb") as other:
            other.write(TEXT.encode())
        assert privmax.select(file, **COUNTING, **PRICE, ledger=privmax.Request(check=True)).checked
        assert file.read() == b""


def test_a_check_writes_nothing_to_a_ledger(ask, tmp_path):
    ledger = Ledger(tmp_path / "b.db", epsilon=3, delta="1e-3")
    before = (tmp_path / "b.db").read_bytes()
    ask(check=True, ledger=ledger.request("nightly"))
    assert (tmp_path / "b.db").read_bytes() == before
    assert not ask(ledger=ledger.request("nightly")).checked
    after = (tmp_path / "b.db").read_bytes()
    assert after != before
    assert ask(check=True, ledger=ledger.request("nightly")).checked
    assert (tmp_path / "b.db").read_bytes() == after


def test_a_check_refuses_a_request_id_that_was_charged_with_another_question(ask, tmp_path):
    """As the release would."""
    ledger = Ledger(tmp_path / "b.db", epsilon=3, delta="1e-3")
    ask(ledger=ledger.request("nightly"))
    other = ledger.request("nightly", dataset="another month")
    told = set()
    for more in ({"check": True}, {}):
        with pytest.raises(LedgerError, match="with a different question") as raised:
            ask(ledger=other, **more)
        told.add(str(raised.value))
    assert len(told) == 1


def test_a_check_says_that_the_budget_is_short(ask, tmp_path):
    with pytest.raises(BudgetError):
        ask(check=True, ledger=Ledger(tmp_path / "b.db", epsilon="0.1", delta="1e-3"))


def test_a_check_beside_a_strict_ledger_is_refused_before_data_is_read(tmp_path):
    budget = Privacy(3, "1e-3")
    ledger = Ledger.create(tmp_path / "b.db", budget=budget, strict=True)
    with pytest.raises(ParameterError, match=r"check=True.*strict"):
        privmax.select(
            tmp_path / "gone.csv", **COUNTING, **PRICE, ledger=ledger.request(check=True)
        )


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


ROWS = [{"person": f"u{n}", "query": "x", "basket": n} for n in range(9)]


@pytest.mark.parametrize("wrong", ["item", "user"])
def test_a_misspelled_key_of_json_lines_is_found(tmp_path, wrong):
    data = jsonl(tmp_path / "a.jsonl", ROWS)
    assert privmax.select(data, **COUNTING, **PRICE, ledger=privmax.Request(check=True)).checked
    names = {**COUNTING, wrong: COUNTING[wrong] + "s"}
    with pytest.raises(DataError, match=f"^No line of the file has the key '{names[wrong]}'") as e:
        privmax.select(data, **names, **PRICE, ledger=privmax.Request(check=True))
    assert "Did you mean" not in str(e.value)
    with pytest.raises(DataError, match=f"Did you mean '{COUNTING[wrong]}'"):
        privmax.select(
            privmax.TextFile(data, header_is_public=True),
            **names,
            **PRICE,
            ledger=privmax.Request(check=True),
        )


def test_a_misspelled_key_is_found_at_every_entry_point(tmp_path):
    data = jsonl(tmp_path / "a.jsonl", ROWS)
    with pytest.raises(DataError, match="the key 'baskt'"):
        top_itemsets(data, basket="baskt", item="query", **PRICE, ledger=Request(check=True))
    with pytest.raises(DataError, match="the key 'county'"):
        privmax.select(
            data, **COUNTING, where="county = 'DE'", **PRICE, ledger=privmax.Request(check=True)
        )
    with pytest.raises(DataError, match="the key 'scor'"):
        privmax.select(
            data, item="query", score="scor", **PRICE, ledger=privmax.Request(check=True)
        )


def test_a_key_may_be_in_any_of_several_files(tmp_path):
    jsonl(tmp_path / "1.jsonl", ROWS)
    jsonl(tmp_path / "2.jsonl", [{"query": "x"}])
    options = {**COUNTING, **PRICE, "missing_users": "drop", "check": True}
    assert by_name(privmax.select, tmp_path / "*.jsonl", **options).checked
    with pytest.raises(DataError, match="the key 'persn'"):
        by_name(privmax.select, tmp_path / "*.jsonl", **{**options, "user": "persn"})


def test_a_ledger_of_an_older_version_is_checked_too(tmp_path):
    """Before it is written to, it has no table of open charges."""
    file = tmp_path / "budget.db"
    scores = {"tea": 900, "ale": 3}
    with Ledger.create(file, epsilon=3, delta="1e-5") as ledger:
        paid = ledger.request("r1")
        with pytest.raises(KeyboardInterrupt):
            privmax.select(scores, **PRICE, ledger=paid, coins=Stopping())
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            query = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND sql LIKE '%_open%'"
            for (name,) in connection.execute(query).fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute("DROP TABLE privmax_open")
        assert privmax.select(scores, **PRICE, ledger=ledger.request("r1", check=True)).checked
        with pytest.raises(LedgerError, match="r1"):
            privmax.select(scores, epsilon=2, delta="1e-6", ledger=ledger.request("r1", check=True))


class Stopping(Coins):
    """Somebody presses Ctrl-C during the draw."""

    def bits(self, number):
        raise KeyboardInterrupt


def test_types_and_rows_are_looked_at(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"query": [["x"]], "person": ["u"], "n": ["1"]}), path)
    with pytest.raises(ParameterError, match="single values"):
        privmax.select(path, **COUNTING, **PRICE, ledger=privmax.Request(check=True))
    pq.write_table(pa.table({"query": ["x"], "person": ["u"], "n": ["1"]}), path)
    with pytest.raises(ParameterError, match="whole numbers"):
        privmax.select(
            path,
            **COUNTING,
            **PRICE,
            columns=privmax.Columns(weight="n", bound=3),
            ledger=privmax.Request(check=True),
        )
    with pytest.raises(ParameterError, match="Did you mean 'query'"):
        privmax.select(
            path, item="qery", user="person", **PRICE, ledger=privmax.Request(check=True)
        )
    (tmp_path / "a.csv").write_text("person,query\nu,x\nu\n")
    with pytest.raises(privmax.errors.PrivmaxError):
        privmax.select(tmp_path / "a.csv", **COUNTING, **PRICE, ledger=privmax.Request(check=True))


def test_it_is_true_or_false(ask):
    with pytest.raises(ParameterError, match="check='yes'"):
        ask(check="yes")
