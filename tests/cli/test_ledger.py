"""Selections and itemsets that a ledger pays for, as a user types them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from fractions import Fraction

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from privmax import Privacy, samples
from privmax.cli import main
from privmax.cli.passwords import locate
from privmax.errors import EngineError, LedgerError
from privmax.ledger import Charge, Ledger, Reservation
from privmax.ledger.payment import shorten_place
from privmax.sources.memory import MemorySource

PASSWORD = "hunter2"
PRICE = ("--epsilon", "1", "--delta", "1e-6")
QUERY = ("--item", "query", "--score", "people", *PRICE)


def privmax(*arguments, stdin=None):
    return CliRunner().invoke(main, list(map(str, arguments)), input=stdin)


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("query,people\nrain boots,91273\nzorblax,640\n", encoding="utf-8")
    return path


@pytest.fixture
def dat(tmp_path):
    path = tmp_path / "baskets.dat"
    path.write_text("1 2 3\n" * 300 + "1 2\n" * 200, encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "budget.db"
    with Ledger.create(path, budget=Privacy(2, "1e-5")) as ledger:
        ledger.open_account("ann", Privacy("1.5", "1e-6"))
    return path


def again_as(first, run):
    """What a repeated request prints is what was printed first, and says when that was recorded."""
    found = json.loads(run.stdout)
    assert first["recorded"] is None
    when = datetime.fromisoformat(found["recorded"])
    assert when.utcoffset() == timedelta(0)
    assert {**found, "recorded": None} == first
    return when


def spent(file):
    with Ledger(file) as ledger:
        assert ledger.verify() == []
        return ledger.spent


def test_what_is_left_and_the_request_are_printed(counts, file):
    run = privmax("select", counts, *QUERY, "--ledger", file, "--request", "r1")
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        "item       rain boots",
        "cost       epsilon 1, delta 1e-06",
        "mechanism  finds a clear winner without a list of items (NestedMargin)",
        "left       epsilon 1, delta 9e-06",
        "request    r1",
    ]


def test_what_is_left_is_rounded_down_for_people_and_exact_for_machines(counts, tmp_path):
    place = tmp_path / "rough.db"
    Ledger.create(place, budget=Privacy(5, "1e-5"), rule="zcdp").close()
    run = privmax(
        "select",
        counts,
        *QUERY[:4],
        "--epsilon",
        "1/3",
        "--delta",
        "1e-6",
        "--ledger",
        place,
        "--request",
        "r",
    )
    lines = dict(line.split(maxsplit=1) for line in run.stdout.splitlines())
    again = privmax(
        "select",
        counts,
        *QUERY[:4],
        "--epsilon",
        "1/3",
        "--delta",
        "1e-6",
        "--ledger",
        place,
        "--request",
        "r",
        "--json",
    )
    exact = Fraction(json.loads(again.stdout)["left"]["epsilon"])
    shown = Fraction(lines["left"].split()[1].rstrip(","))
    assert "/" not in lines["left"] + lines["cost"]
    assert exact * Fraction("0.999") < shown <= exact
    assert lines["cost"].startswith("epsilon 0.333334,")


def test_the_json_of_a_repeated_request_is_the_same_and_it_is_charged_once(counts, file):
    command = (
        "select",
        counts,
        *QUERY,
        "--ledger",
        file,
        "--request",
        "r1",
        "--dataset",
        "searches",
        "--json",
    )
    first = json.loads(privmax(*command).stdout)
    assert first["item"] == "rain boots"
    assert (first["request"], first["left"]) == ("r1", {"epsilon": "1", "delta": "9e-06"})
    counts.write_text("query,people\nother,91273\n", encoding="utf-8")
    when = again_as(first, privmax(*command))
    told = privmax(*command[:-1]).stdout.splitlines()
    assert told[3] == f"recorded   on {when:%Y-%m-%d %H:%M} UTC; no data was read"
    assert spent(file) == Privacy(1, "1e-6")


def test_a_request_without_an_id_is_given_one_that_works(counts, file):
    command = ("select", counts, *QUERY, "--ledger", file, "--json")
    first = json.loads(privmax(*command).stdout)
    again_as(first, privmax(*command, "--request", first["request"]))
    assert spent(file) == Privacy(1, "1e-6")


def test_without_a_ledger_nothing_of_it_is_printed(counts):
    found = json.loads(privmax("select", counts, *QUERY, "--json").stdout)
    assert not {"request", "left"} & found.keys()
    assert "left" not in privmax("select", counts, *QUERY).stdout


def test_counts_are_printed_paid_for_and_the_same_again(counts, file):
    command = ("select", counts, *QUERY, "--counts", "0.2", "--ledger", file, "--request", "r1")
    found = json.loads(privmax(*command, "--json").stdout)
    assert (found["item"], found["error"]) == ("rain boots", 15)
    assert abs(found["counts"][0] - 91273) < 300
    assert found["privacy"] == {"epsilon": "1.2", "delta": "1e-06"}
    assert found["left"] == {"epsilon": "0.8", "delta": "9e-06"}
    again_as(found, privmax(*command, "--json"))
    shown = privmax(*command).stdout.splitlines()
    assert shown[0] == f"item       rain boots  {found['counts'][0]:,} ± 15 (95 %)"
    assert "counts     discrete Laplace noise, for epsilon 0.2, delta 0 of the cost" in shown
    assert spent(file) == Privacy("1.2", "1e-6")
    other = privmax(*command[:-4], "--counts", "0.3", *command[-4:])
    assert other.exit_code == 2
    without = privmax("select", counts, *QUERY, "--ledger", file, "--request", "r1")
    assert (without.exit_code, spent(file)) == (2, Privacy("1.2", "1e-6"))


def test_counts_that_the_budget_does_not_allow_are_refused(counts, file):
    run = privmax("select", counts, *QUERY, "--counts", "1.01", "--ledger", file)
    assert (run.exit_code, spent(file)) == (3, Privacy(0))


@pytest.mark.parametrize("wrong", ["0", "abc", "-1"])
def test_a_price_of_counts_that_is_none_is_refused(counts, file, wrong):
    run = privmax("select", counts, *QUERY, "--counts", wrong, "--ledger", file)
    assert (run.exit_code, run.stdout) == (2, "")
    assert f"--counts {wrong}:" in run.stderr
    assert spent(file) == Privacy(0)


def test_itemsets_with_supports_are_one_charge(dat, file):
    command = ("itemsets", dat, *PRICE, "--supports", "0.5", "--ledger", file, "--request", "r1")
    found = json.loads(privmax(*command, "--json").stdout)
    assert (found["itemset"], found["request"]) == ([1, 2], "r1")
    assert found["left"] == {"epsilon": "0.5", "delta": "9e-06"}
    again_as(found, privmax(*command, "--json"))
    assert privmax(*command).stdout.splitlines()[-2:] == [
        "left       epsilon 0.5, delta 9e-06",
        "request    r1",
    ]
    assert spent(file) == Privacy("1.5", "1e-6")


def test_a_named_ledger_and_an_account_are_charged(counts, file):
    with Ledger.create(file, "other", budget=Privacy(1, "1e-6")):
        pass
    whole = privmax("select", counts, *QUERY, "--ledger", file, "--ledger-name", "other", "--json")
    assert json.loads(whole.stdout)["left"] == {"epsilon": "0", "delta": "0"}
    part = privmax("select", counts, *QUERY, "--ledger", file, "--account", "ann", "--json")
    assert json.loads(part.stdout)["left"] == {"epsilon": "0.5", "delta": "0"}
    with Ledger(file) as ledger:
        assert ledger.accounts()["ann"][1] == ledger.spent == Privacy(1, "1e-6")


def test_what_is_left_is_the_less_of_account_and_whole(counts, file):
    pure = (
        "select",
        counts,
        "--item",
        "query",
        "--score",
        "people",
        "--universe",
        2,
        "--ledger",
        file,
        "--json",
    )
    part = privmax(*pure, "--epsilon", "0.25", "--account", "ann")
    assert json.loads(part.stdout)["left"] == {"epsilon": "1.25", "delta": "1e-06"}
    privmax(*pure, "--epsilon", "1")
    part = privmax(*pure, "--epsilon", "0.25", "--account", "ann")
    assert json.loads(part.stdout)["left"] == {"epsilon": "0.5", "delta": "1e-06"}


@pytest.mark.parametrize("command", ["select", "itemsets"])
def test_a_budget_that_does_not_allow_it_is_exit_3_with_cost_and_rest(command, counts, dat, file):
    data = [counts, "--item", "query", "--score", "people"] if command == "select" else [dat]
    refused = (command, *data, "--epsilon", "2.5", "--delta", "1e-6", "--ledger", file)
    run = privmax(*refused)
    assert (run.exit_code, run.stdout) == (3, "")
    assert "the privacy cost is epsilon 2.5, delta 1e-06" in run.stderr
    assert "has epsilon 2, delta 1e-05 left" in run.stderr
    run = privmax(*refused, "--json")
    assert run.exit_code == 3
    assert json.loads(run.stdout) == {
        "error": "budget",
        "left": {"epsilon": "2", "delta": "1e-05"},
        "cost": {"epsilon": "2.5", "delta": "1e-06"},
        "account": None,
    }
    run = privmax(*refused, "--account", "ann", "--json")
    assert json.loads(run.stdout)["account"] == "ann"
    assert json.loads(run.stdout)["left"] == {"epsilon": "1.5", "delta": "1e-06"}
    assert spent(file) == Privacy(0)


COLUMNS = "--item", "query", "--user", "person"
GONE = {
    "csv": ("select", "gone.csv", "--item", "query", "--score", "people"),
    "stdin": ("select", "-", "--item", "query", "--score", "people"),
    "folder": ("select", "gone", "--item", "query"),
    "parquet": ("select", "gone.parquet", *COLUMNS),
    "database": ("select", "duckdb://gone.db", "--table", "t", *COLUMNS),
    "itemsets": ("itemsets", "gone.dat"),
    "itemsets of a table": (
        "itemsets",
        "duckdb://gone.db",
        "--table",
        "t",
        "--basket",
        "b",
        "--item",
        "i",
    ),
    "itemsets with a form": ("itemsets", "gone.txt", "--form", "wide"),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", GONE.values(), ids=GONE)
def test_what_does_not_fit_is_refused_before_the_data_is_looked_at(command, file):
    run = privmax(
        *command, "--epsilon", "2.5", "--delta", "1e-6", "--ledger", file, stdin="no scores"
    )
    assert (run.exit_code, run.stdout) == (3, "")
    assert "the privacy cost is epsilon 2.5" in run.stderr
    run = privmax(*command, *PRICE, "--ledger", file, stdin="no scores")
    assert run.exit_code == 2  # it fits, and then there is no data
    assert spent(file) == Privacy(0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["csv", "stdin", "folder", "parquet", "database", "itemsets", "itemsets of a table"]
)
def test_a_recorded_answer_is_given_without_the_data(kind, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scores = "query,people\n" + "rain boots,91273\nhat,3\n"
    (tmp_path / "gone.csv").write_text(scores, encoding="utf-8")
    (tmp_path / "gone.dat").write_text("1 2\n" * 500, encoding="utf-8")
    (tmp_path / "gone").mkdir()
    with duckdb.connect("gone.db") as made:
        made.execute(
            "CREATE TABLE t AS SELECT 'hat' AS query, n AS person, n // 2 AS b, 5 + n % 2 AS i "
            "FROM range(1000) r(n)"
        )
        for path in ("gone.parquet", "gone/part.parquet"):
            made.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    command = (*GONE[kind], *PRICE, "--ledger", file, "--request", "r1", "--json")
    first = privmax(*command, stdin=scores)
    assert first.exit_code == 0, first.stderr
    for path in tmp_path.glob("gone*"):
        path.rename(tmp_path / f"was-{path.name}")
    again = privmax(*command, stdin="")
    assert (again.exit_code, again.stderr) == (0, "")
    again_as(json.loads(first.stdout), again)
    assert spent(file) == Privacy(1, "1e-6")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--ledger", "nowhere.db"), "nowhere.db: there is no such file"),
        (("--ledger", "FILE", "--ledger-name", "other"), "no ledger 'other'"),
        (("--ledger", "FILE", "--account", "bob"), "no account 'bob'"),
        (("--ledger-name", "other"), "Add --ledger FILE"),
        (("--ledger", ""), "--ledger '': it must be a file or the URL"),
        (("--ledger", "."), "--ledger .: it is a folder"),
        (("--request", "r1"), "--request r1: it needs --ledger"),
        (("--account", "ann"), "--account ann: it needs --ledger"),
        (("--dataset", "d"), "--dataset d: it needs --ledger"),
        (("--ledger", "FILE", "--request", "a\nb"), "--request 'a\\nb':"),
        (("--ledger", "FILE", "--request", "old"), "'old' was charged before"),
    ],
)
@pytest.mark.parametrize("command", ["select", "itemsets"])
def test_mistakes_are_named_and_cost_nothing(
    counts, dat, file, monkeypatch, options, message, command
):
    monkeypatch.chdir(file.parent)
    assert privmax("select", counts, *QUERY, "--ledger", file, "--request", "old").exit_code == 0
    data = [counts, *QUERY, "--growth", 3] if command == "select" else [dat, *PRICE]
    run = privmax(
        command, *data, *(str(file) if option == "FILE" else option for option in options)
    )
    assert (run.exit_code, run.stdout) == (2, "")
    assert message in " ".join(run.stderr.split())
    assert "zorblax" not in run.stderr
    assert spent(file) == Privacy(1, "1e-6")


@pytest.mark.parametrize("command", ["select", "itemsets"])
def test_where_there_is_no_ledger_or_account_it_tells_how_to_make_one(
    counts, dat, file, monkeypatch, command
):
    monkeypatch.chdir(file.parent)
    data = [counts, *QUERY] if command == "select" else [dat, *PRICE]
    for options, told in (
        (("nowhere.db",), "privmax budget create FILE --name default --epsilon … --delta …"),
        (
            (file, "--ledger-name", "other"),
            "privmax budget create FILE --name other --epsilon … --delta …",
        ),
        (
            (file, "--account", "bob"),
            "privmax budget account FILE ACCOUNT --name default --epsilon … --delta …",
        ),
    ):
        run = privmax(command, *data, "--ledger", *options)
        assert (run.exit_code, run.stdout) == (2, "")
        assert told in " ".join(run.stderr.split())


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{PASSWORD}@127.0.0.1:1/budget",
        f"postgres://127.0.0.1:1/budget?password={PASSWORD}",
        f"postgresql://me:{PASSWORD}@127.0.0.1:port/budget",
        f"postgresql://me:pass/{PASSWORD}@127.0.0.1:1/budget",
        f"postgresql://me:my {PASSWORD}@127.0.0.1:1/budget",
        f"oracle://me:{PASSWORD}@127.0.0.1/budget",
    ],
)
@pytest.mark.parametrize("command", ["select", "itemsets"])
def test_no_error_shows_a_password(counts, dat, url, command):
    data = [counts, *QUERY] if command == "select" else [dat, *PRICE]
    run = privmax(command, *data, "--ledger", url)
    no_server = "127.0.0.1:1/" in url and "pass/" not in url
    codes = {4} if no_server else {2}
    if "my " in url:
        codes = {2, 4}  # before libpq 18 a space is part of the password
    assert run.exit_code in codes
    assert run.stdout == ""
    assert PASSWORD not in run.stderr
    run = privmax(command, *data, "--k", url, "--ledger", url)
    assert run.exit_code == 2
    assert PASSWORD not in run.stderr


@pytest.mark.parametrize(
    "where",
    [f"postgresql:/me:{PASSWORD}@127.0.0.1/budget", f"host=127.0.0.1 user=me password={PASSWORD}"],
)
def test_a_database_that_is_no_url_is_not_taken_for_a_file(counts, where):
    run = privmax("select", counts, *QUERY, "--ledger", where)
    assert (run.exit_code, run.stdout) == (2, "")
    assert "it must be a file or the URL of a PostgreSQL database" in " ".join(run.stderr.split())
    assert PASSWORD not in run.stderr


def test_not_even_a_password_that_the_ledger_shows_is_printed(counts, monkeypatch):
    def refused(where, name):
        raise LedgerError(f"{where} cannot be used now. Try again later.")

    monkeypatch.setattr(Ledger, "at", refused)
    run = privmax(
        "select",
        counts,
        *QUERY,
        "--ledger",
        f"postgresql://me:{PASSWORD}@host/budget?password={PASSWORD}",
    )
    assert "host/budget cannot be used now. Try again later." in run.stderr
    assert PASSWORD not in run.stderr


def test_an_unreachable_ledger_is_named_by_its_host(counts):
    run = privmax(
        "select", counts, *QUERY, "--ledger", f"postgresql://me:{PASSWORD}@127.0.0.1:1/budget"
    )
    assert "127.0.0.1:1/budget" in run.stderr
    assert "No server answers at that host and port." in run.stderr
    assert PASSWORD not in run.stderr


def test_a_failure_after_the_draw_is_no_answer_and_stays_so(counts, file, monkeypatch):
    def failing(self, outcomes):
        raise EngineError("The engine failed at the look-up.")

    with monkeypatch.context() as broken:
        broken.setattr(MemorySource, "names", failing)
        run = privmax("select", counts, *QUERY, "--ledger", file, "--request", "r1")
    assert (run.exit_code, run.stdout) == (2, "")
    told = " ".join(run.stderr.split())
    assert "The engine failed at the look-up." in told
    assert "The privacy cost was charged and stays spent." in told
    assert "recorded as no answer and is not drawn again" in told
    run = privmax("select", counts, *QUERY, "--ledger", file, "--request", "r1", "--json")
    assert (run.exit_code, json.loads(run.stdout)["item"]) == (0, None)
    assert spent(file) == Privacy(1, "1e-6")


def test_a_stop_after_the_charge_says_that_it_is_spent_and_how_to_go_on(counts, file, monkeypatch):
    def failing(self, outcomes):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(MemorySource, "names", failing)
        run = privmax("select", counts, *QUERY, "--ledger", file, "--request", "r1")
    assert run.exit_code == 130
    assert "stays spent. Repeat the request 'r1': that costs nothing more." in " ".join(
        run.stderr.split()
    )
    assert spent(file) == Privacy(1, "1e-6")
    run = privmax("select", counts, *QUERY, "--ledger", file, "--request", "r1", "--json")
    assert json.loads(run.stdout)["item"] == "rain boots"
    assert spent(file) == Privacy(1, "1e-6")


def test_an_answer_that_cannot_be_recorded_is_not_printed(counts, file, monkeypatch):
    def failing(self, answer):
        raise LedgerError("The disk is full.")

    monkeypatch.setattr(Reservation, "record", failing)
    run = privmax("select", counts, *QUERY, "--ledger", file, "--json")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "The disk is full." in run.stderr
    assert "rain boots" not in run.stderr


def test_a_recorded_answer_is_printed_though_the_rest_cannot_be_read(counts, file, monkeypatch):
    def failing(self, account):
        raise LedgerError("The disk is gone.")

    monkeypatch.setattr(Ledger, "left", failing)  # when the request is repeated
    monkeypatch.setattr(Ledger, "left_after", lambda self, request: failing(self, None))
    found = privmax("select", counts, *QUERY, "--ledger", file, "--request", "r1")
    assert found.exit_code == 0
    assert found.stdout.splitlines()[-2:] == ["left       not known now", "request    r1"]
    found = json.loads(
        privmax("select", counts, *QUERY, "--ledger", file, "--request", "r1", "--json").stdout
    )
    assert (found["item"], found["left"]) == ("rain boots", None)


def test_a_rule_that_does_not_fit_is_refused_before_a_row_is_read(tmp_path, file):
    missing = tmp_path / "members.csv"
    command = (
        "learn",
        missing,
        "--label",
        "card",
        "--labels",
        "0,1",
        "--low",
        "0",
        "--high",
        "100",
        "--ledger",
        file,
    )
    for price in (
        ("--epsilon", "2.5"),
        ("--epsilon", "2.5", "--mechanism", "exponential"),
        ("--epsilon", "1.6", "--account", "ann"),
    ):
        run = privmax(*command, *price)
        assert (run.exit_code, run.stdout) == (3, "")
        assert "The budget does not allow it" in run.stderr
    run = privmax(*command, "--epsilon", "1")
    assert run.exit_code == 2
    assert spent(file) == Privacy(0)


def test_a_recorded_rule_is_given_though_nothing_is_left(tmp_path, file):
    command = (
        "learn",
        "sample:members",
        "--hypotheses",
        "stumps",
        "--label",
        "card",
        "--labels",
        "0,1",
        "--low",
        "0",
        "--high",
        "100",
        "--epsilon",
        "2",
        "--ledger",
        file,
        "--request",
        "rule",
    )
    first = privmax(*command)
    assert first.exit_code == 0
    lines = privmax(*command).stdout.splitlines()
    assert lines.pop(3).startswith("recorded   on ")
    assert lines == first.stdout.splitlines()
    assert spent(file) == Privacy(2)


RULE = (
    "learn",
    "--hypotheses",
    "stumps",
    "--label",
    "card",
    "--labels",
    "0,1",
    "--low",
    "0",
    "--high",
    "100",
    "--epsilon",
    "1",
)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("select", "sample:counts", *QUERY), "--report"),
        ((RULE[0], "sample:members", *RULE[1:]), "--save"),
        ((RULE[0], "sample:members", *RULE[1:]), "--report"),
    ],
)
def test_a_ledger_is_not_written_over(command, option, file):
    before = file.read_bytes()
    run = privmax(*command, "--ledger", file, option, file)
    assert (run.exit_code, run.stdout) == (2, "")
    assert "it is the same file as --ledger" in run.stderr
    assert file.read_bytes() == before


def test_data_and_other_ledgers_are_not_written_over(tmp_path, file):
    other = tmp_path / "other.html"
    Ledger.create(other, budget=Privacy(1)).close()
    data = tmp_path / "members.csv"
    data.write_bytes(samples.path("members").read_bytes())
    for place, told in (
        (other, "perhaps a ledger"),
        (data, "it is the same file as FILE"),
    ):
        run = privmax(RULE[0], data, *RULE[1:], "--ledger", file, "--save", place)
        assert (run.exit_code, run.stdout) == (2, "")
        assert told in run.stderr
    assert spent(file) == Privacy(0)
    picture = tmp_path / "budget.svg"
    Ledger.create(picture, budget=Privacy(1)).close()
    assert "perhaps a ledger" in privmax("budget", "show", picture, "--plot", picture).stderr
    Ledger(picture).close()


def test_a_recorded_rule_is_given_without_the_data_where_the_columns_are_named(tmp_path, file):
    data = tmp_path / "members.csv"
    data.write_bytes(samples.path("members").read_bytes())
    command = (
        RULE[0],
        data,
        *RULE[1:],
        "--ledger",
        file,
        "--request",
        "rule",
        "--features",
        "age, visits",
    )
    first = privmax(*command)
    assert first.exit_code == 0
    data.unlink()
    lines = privmax(*command).stdout.splitlines()
    assert lines.pop(3).startswith("recorded   on ")
    assert lines == first.stdout.splitlines()
    assert spent(file) == Privacy(1)
    assert "visits >= 25" in first.stdout


def test_a_charge_without_an_answer_is_answered_from_the_data_and_from_nothing_else(
    tmp_path, file, monkeypatch
):
    command = (
        RULE[0],
        "sample:members",
        *RULE[1:],
        "--ledger",
        file,
        "--request",
        "rule",
        "--features",
        "age,visits",
    )
    with monkeypatch.context() as patched:
        patched.setattr(
            Reservation, "record", lambda *_: (_ for _ in ()).throw(LedgerError("gone"))
        )
        assert privmax(*command).exit_code == 2
    assert spent(file) == Privacy(1)
    assert "visits >= 25" in privmax(*command).stdout
    assert spent(file) == Privacy(1)


@pytest.mark.parametrize("option", ["--dataset", "--request", "--account", "--ledger-name"])
def test_a_password_is_not_written_into_a_ledger(counts, file, option):
    run = privmax(
        "select", counts, *QUERY, "--ledger", file, option, f"postgres://ann:{PASSWORD}@db/shop"
    )
    assert (run.exit_code, run.stdout) == (2, "")
    assert PASSWORD not in run.stderr
    assert f"Error: {option}" in run.stderr
    assert spent(file) == Privacy(0)


# Which data a repeated request is for


def test_a_repeated_request_for_another_file_is_refused(tmp_path, counts, file):
    other = tmp_path / "other.csv"
    other.write_text("query,people\nother,91273\n", encoding="utf-8")
    command = ("--ledger", file, "--request", "r1", "--json")
    first = json.loads(privmax("select", counts, *QUERY, *command).stdout)
    run = privmax("select", other, *QUERY, *command)
    assert (run.exit_code, run.stdout) == (2, "")
    told = " ".join(run.stderr.split())
    assert "with a different question (data). Nothing was charged now." in told
    assert "If the same data has moved, give it a name with dataset." in told
    again_as(first, privmax("select", counts, *QUERY, *command))
    with Ledger(file) as ledger:
        (charged,) = [event for event in ledger.history() if event.kind == "reserved"]
        assert charged.body["what"]["data"] == str(counts)
    assert spent(file) == Privacy(1, "1e-6")


def test_a_repeated_request_for_another_column_is_refused(counts, file):
    counts.write_text("query,people,visits\nrain boots,91273,5\nhat,3,90000\n", encoding="utf-8")
    command = (
        "select",
        counts,
        "--item",
        "query",
        *PRICE,
        "--ledger",
        file,
        "--request",
        "r1",
        "--dataset",
        "d",
    )
    assert privmax(*command, "--score", "people").exit_code == 0
    run = privmax(*command, "--score", "visits")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "with a different question (columns.score)" in " ".join(run.stderr.split())
    assert privmax(*command, "--score", "people").exit_code == 0


def test_named_data_may_move(tmp_path, counts, file):
    command = (*QUERY, "--ledger", file, "--request", "r1", "--dataset", "searches", "--json")
    first = json.loads(privmax("select", counts, *command).stdout)
    moved = tmp_path / "moved.csv"
    counts.rename(moved)
    again_as(first, privmax("select", moved, *command))
    with Ledger(file) as ledger:
        assert not any("data" in event.body.get("what", {}) for event in ledger.history())


def test_a_request_of_before_places_were_recorded_is_answered(counts, file):
    """As privmax 0.1.0 recorded it: with neither place nor unit."""
    command = ("select", counts, *QUERY, "--ledger", file, "--request", "r1", "--json")
    with Ledger(file) as ledger:
        charge = Ledger.charge

        def before(self, price, what, **given):
            return charge(
                self,
                Charge(price.privacy, price.bounded_range, price.neighbors),
                _without(what, "data", "columns"),
                **given,
            )

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Ledger, "charge", before)
            assert privmax(*command).exit_code == 0
        *_, charged, _ = ledger.history()
        assert set(charged.body["what"]) == {"command", "mechanism", "dataset", "options"}
        assert "unit" not in charged.body["price"]
        assert ledger.unit is None
    again = json.loads(privmax(*command).stdout)
    assert (again["item"], again["recorded"] is None) == ("rain boots", False)


def _without(mapping, *names):
    return {key: value for key, value in mapping.items() if key not in names}


@pytest.mark.parametrize(
    ("given", "table", "recorded"),
    [
        ("-", None, None),
        ("sample:counts", None, "sample:counts"),
        (
            "postgresql://me:hunter2@db:5432/shop?password=hunter2",
            "s.t",
            "postgresql://db:5432/shop s.t",
        ),
        ("a.csv", None, "HERE/a.csv"),
        ("duckdb://a.db", "t", "duckdb://HERE/a.db t"),
        ("a.db", "t", "HERE/a.db t"),
    ],
)
def test_where_data_is_names_no_password(given, table, recorded, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert locate(given, table) == (recorded and recorded.replace("HERE", str(tmp_path)))


def test_another_table_of_a_file_is_another_question(file, tmp_path):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as shop:
        for table, item in (("tea", "green"), ("ale", "pale")):
            shop.execute(f"CREATE TABLE {table} AS SELECT '{item}' AS x, 900 AS n")
    command = ["select", tmp_path / "shop.duckdb", "--item", "x", "--score", "n", *PRICE]
    command += ["--ledger", file, "--request", "r1"]
    assert privmax(*command, "--table", "tea").stdout.startswith("item       green")
    run = privmax(*command, "--table", "ale")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "with a different question (data)" in run.stderr


def test_a_place_is_shortened_and_printable():
    long = shorten_place("/" + "a" * 300)
    assert len(long) <= 200
    assert long != shorten_place("/b" + "a" * 299)
    assert shorten_place("/a\x1b\n") == "/a\\x1b\\n"


# Units


def test_units_are_not_mixed(counts, dat, file):
    assert (
        json.loads(privmax("select", counts, *QUERY, "--ledger", file, "--json").stdout)["unit"]
        == "user"
    )
    run = privmax("itemsets", dat, *PRICE, "--ledger", file)
    assert (run.exit_code, run.stdout) == (2, "")
    assert "counts the privacy cost per user, and this request counts it per basket" in " ".join(
        run.stderr.split()
    )
    run = privmax(RULE[0], "gone.csv", *RULE[1:], "--ledger", file)
    assert "counts the privacy cost per user, and this request counts it per row" in " ".join(
        run.stderr.split()
    )
    assert spent(file) == Privacy(1, "1e-6")
    run = privmax("itemsets", dat, *PRICE, "--ledger", file, "--unit", "user", "--json")
    assert json.loads(run.stdout)["unit"] == "user"


# Strict ledgers


@pytest.fixture
def strict(tmp_path):
    path = tmp_path / "strict.db"
    run = privmax(
        "budget", "create", path, "--epsilon", 20, "--delta", "1e-4", "--strict", "--json"
    )
    assert json.loads(run.stdout)["strict"] is True
    return path


WRONG = {
    "membership": ("query,people\nrain boots,91273\nzorblax,640\n", ("--universe", "labels.txt")),
    "one decimal": ("query,people\nrain boots,91273\nzorblax,0.5\n", ()),
    "no number": ("query,people\nrain boots,91273\nzorblax,many\n", ()),
    "no such column": ("search,people\nrain boots,91273\n", ()),
    "a label twice": ("query,people\nrain boots,91273\nrain boots,3\n", ()),
    "no such file": (None, ()),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", WRONG)
def test_with_a_strict_ledger_what_is_wrong_with_a_file_is_no_answer(
    case, counts, file, strict, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    text, options = WRONG[case]
    (tmp_path / "labels.txt").write_text("rain boots\n", encoding="utf-8")
    counts.unlink() if text is None else counts.write_text(text, encoding="utf-8")
    run = privmax("select", counts, *QUERY, *options, "--ledger", file)
    assert (run.exit_code, run.stdout) == (2, "")
    assert spent(file) == Privacy(0)
    told = [
        privmax("select", counts, *QUERY, *options, "--ledger", strict, "--request", "r1")
        for _ in range(2)
    ]
    assert {(run.exit_code, run.stderr) for run in told} == {(0, "")}
    assert told[0].stdout.splitlines()[0] == "item       no answer: no item stood out enough"
    assert spent(strict).epsilon == 1


def test_with_a_strict_ledger_what_is_right_is_answered(counts, dat, strict):
    run = privmax("select", counts, *QUERY, "--ledger", strict, "--json")
    assert json.loads(run.stdout)["item"] == "rain boots"
    run = privmax(
        "itemsets", dat, *PRICE, "--longest", 3, "--unit", "user", "--ledger", strict, "--json"
    )
    assert json.loads(run.stdout)["itemset"] == [1, 2]
    run = privmax(
        "itemsets", dat, *PRICE, "--longest", 2, "--unit", "user", "--ledger", strict, "--json"
    )
    assert (run.exit_code, json.loads(run.stdout)["itemset"]) == (0, None)
    assert spent(strict).epsilon == 3


def test_learning_with_a_strict_ledger_needs_the_names_of_columns(strict, tmp_path):
    command = (RULE[0], "sample:members", *RULE[1:], "--ledger", strict)
    run = privmax(*command)
    assert (run.exit_code, spent(strict)) == (2, Privacy(0))
    assert "a strict ledger is charged before FILE is read" in run.stderr
    named = ("--features", "age,visits", "--json")
    assert json.loads(privmax(*command, *named).stdout)["rule"] is not None
    gone = privmax(RULE[0], tmp_path / "gone.csv", *RULE[1:], "--ledger", strict, *named)
    assert (gone.exit_code, gone.stderr) == (0, "")
    assert json.loads(gone.stdout)["rule"] is None
    assert spent(strict) == Privacy(2)


# Warnings


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_warnings_are_lines_on_standard_error_each_once(tmp_path, as_json):
    path = tmp_path / "rows.tsv"
    path.write_text(
        "query\tperson\n" + "".join(f"hat\t{n}\n" for n in range(900)), encoding="utf-8"
    )
    for _ in range(2):  # each command is told
        run = privmax(
            "select", path, "--item", "query", "--epsilon", "50", "--delta", "0.1", *as_json
        )
        lines = run.stderr.splitlines()
        assert [line.split()[1] for line in lines] == ["epsilon", "delta", "Each"]
        assert all(line.startswith("Warning: ") for line in lines)
        assert "Warning" not in run.stdout
    assert privmax("select", path, "--item", "query", *PRICE, "--user", "person").stderr == ""
    assert privmax("select", path, "--item", "query", *PRICE, "--unit", "user").stderr == ""


def test_a_basket_is_told_from_a_person():
    command = ("itemsets", "sample:receipts", "--basket", "receipt", "--item", "article", *PRICE)
    run = privmax(*command)
    assert run.stderr.splitlines() == [
        line for line in run.stderr.splitlines() if "Each basket counts as one individual" in line
    ]
    assert run.stderr.count("Warning: ") == 1
    assert privmax(*command, "--user", "member").stderr == ""


# What is printed of odd items


def test_an_item_that_is_the_empty_text_is_not_taken_for_no_answer(tmp_path):
    path = tmp_path / "blank.parquet"  # in a CSV file an empty cell is no item
    pq.write_table(pa.table({"query": ["", "hat", "x"], "people": [91273, 91000, 3]}), path)
    run = privmax("select", path, *QUERY)
    assert run.stdout.splitlines()[0] == 'item       ""'
    assert json.loads(privmax("select", path, *QUERY, "--json").stdout)["item"] == ""
    run = privmax("select", path, *QUERY, "--k", 2)
    assert run.stdout.splitlines()[:2] == ['item       ""', "           hat"]


@pytest.mark.parametrize(
    ("odd", "shown"),
    [
        ("\u202e", "\\u202e"),
        ("\u200b", "\\u200b"),
        ("\x1b", "\\x1b"),
        ("\u2028", "\\u2028"),
        ("\U000e0041", "\\U000e0041"),
    ],
    ids=ascii,
)
def test_what_is_not_seen_is_spelled_out(odd, shown, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text(f"query,people\na{odd}b,91273\n", encoding="utf-8", newline="")
    assert privmax("select", path, *QUERY).stdout.splitlines()[0] == f"item       a{shown}b"
    printed = privmax("select", path, *QUERY, "--json").stdout
    assert odd not in printed
    assert json.loads(printed)["item"] == f"a{odd}b"
