"""`privmax keys`: what it prints and writes, and what it refuses without a charge."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from privmax import Ledger, Privacy
from privmax.cli import main
from privmax.report.release_page import LISTED

PRICE = ["--epsilon", "1", "--delta", "1e-6"]
NAMED = ["--item", "item", "--user", "user"]
# Seven deviations of their noise apart, so that noisy counts keep this order.
CLEAR = {"tea": 900, "tea ": 600, "ale": 300}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{who},{item}" for item, many in CLEAR.items() for who in range(many)]
    Path("rows.csv").write_text("\n".join(["user,item", *rows, "9999,rare", ""]))
    Path("gaps.csv").write_text("user,item\n1,tea\n,ale\n")
    Path("none.csv").write_text("user,item\n")
    many = [f"{who},{who % 30}" for who in range(1800)]
    Path("many.csv").write_text("\n".join(["user,item", *many, ""]))


def run(*words, stdin=None):
    return CliRunner().invoke(main, ["keys", *words], input=stdin)


def test_keys_are_listed_by_name():
    found = run("rows.csv", *NAMED, *PRICE)
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.splitlines()[:5] == [
        "key        ale",
        "           tea",
        '           "tea "',
        "keys       3",
        "note       Sorted by name.",
    ]


def test_counts_and_other_are_shown_with_their_error():
    found = run("rows.csv", *NAMED, *PRICE, "--per-user", "3", "--counts", "2", "--other")
    lines = found.stdout.splitlines()
    assert re.fullmatch(r"key        tea     +\d+ ± \d+ \(95 %\)", lines[0])
    assert re.fullmatch(r"other      -?\d+ ± \d+ \(95 %\) individuals have none .*", lines[4])
    assert "At most 3 keys of each individual count." in found.stdout
    assert "epsilon 2, delta" in found.stdout  # of the counts alone


def test_counts_beside_a_long_key_are_not_far_from_the_others():
    long = "x" * 500
    rows = [f"{who},{key}" for who in range(900) for key in ("tea", long)]
    found = run("-", *NAMED, *PRICE, "--counts", "9", stdin="\n".join(["user,item", *rows, ""]))
    lines = sorted(found.stdout.splitlines()[:2], key=len)
    assert re.fullmatch(r"(key)? +tea +\d+ ± \d+ \(95 %\)", lines[0])
    assert len(lines[0]) < 80
    assert long in lines[1]


def test_of_many_keys_the_first_are_shown():
    found = run("many.csv", *NAMED, *PRICE, "--per-user", "1")
    lines = found.stdout.splitlines()
    assert lines[20].strip() == "… and 10 more: --output FILE writes all of them"
    assert lines[21] == "keys       30"


@pytest.mark.parametrize("name", ["keys.csv", "keys.parquet", "keys.json"])
def test_all_keys_are_written(name):
    found = run("many.csv", *NAMED, *PRICE, "--per-user", "1", "--counts", "1", "--output", name)
    assert found.exit_code == 0, found.output
    if name.endswith("json"):
        written = json.loads(Path(name).read_text())
        items, counts = written["items"], written["counts"]
    else:
        read = pl.read_csv if name.endswith("csv") else pl.read_parquet
        table = read(name)
        assert table.columns[:2] == ["item", "count"]
        items, counts = table["item"].to_list(), table["count"].to_list()
    assert sorted(map(int, items)) == list(range(30))
    assert counts == sorted(counts, reverse=True)


def test_several_columns_are_written_as_such():
    Path("two.csv").write_text("user,a,b\n" + "".join(f"{who},x,y\n" for who in range(99)))
    found = run("two.csv", "--item", "a", "--item", "b", "--user", "user", *PRICE,
                "--output", "two.out.csv")  # fmt: skip
    assert found.exit_code == 0, found.output
    assert Path("two.out.csv").read_text().splitlines() == ['"a","b"', '"x","y"']


def test_no_data_is_no_answer():
    found = run("none.csv", *NAMED, *PRICE, "--counts", "1", "--other")
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.startswith("key        no answer: no key stood out enough\n")
    assert "individuals have none of the keys" in found.stdout


def test_a_report_is_written():
    found = run("rows.csv", *NAMED, *PRICE, "--counts", "1", "--report", "page.html")
    assert found.exit_code == 0, found.output
    page = Path("page.html").read_text()
    assert "Which “item” of rows.csv do enough individuals have?" in page
    assert re.search(r"<bdi>tea</bdi> <span class=\"about\">\d+ ± \d+ \(95 %\)</span>", page)
    assert "individuals have none" not in page
    assert "more</p>" not in page


def test_a_report_says_how_many_have_none_of_the_keys_and_lists_the_first():
    rows = [f"{who},k{who % 300}" for who in range(9000)]
    Path("wide.csv").write_text("\n".join(["user,item", *rows, ""]))
    found = run("wide.csv", *NAMED, *PRICE, "--per-user", "1", "--counts", "9", "--other",
                "--report", "page.html")  # fmt: skip
    assert found.exit_code == 0, found.output
    page = Path("page.html").read_text()
    assert page.count("<li><bdi>k") == LISTED == 200
    assert '<p class="about">… and 100 more</p>' in page
    assert re.search(r"<p>-?\d+ ± \d+ \(95 %\) individuals have none of the keys\.</p>", page)


def test_standard_input_is_read():
    found = run("-", *NAMED, *PRICE, "--json", stdin=Path("rows.csv").read_bytes())
    assert json.loads(found.stdout)["items"] == ["ale", "tea", "tea "]


WRONG = {
    "no user": (["--item", "item", *PRICE], "Missing option '--user'"),
    "no epsilon": ([*NAMED, "--delta", "1e-6"], "Missing option '--epsilon'"),
    "no delta": ([*NAMED, "--epsilon", "1"], "Missing option '--delta'"),
    "per-user 0": ([*NAMED, *PRICE, "--per-user", "0"], "--per-user 0: it must be"),
    "per-user large": ([*NAMED, *PRICE, "--per-user", "99999"], "--per-user 99999: it must not"),
    "delta 0": (
        [*NAMED, "--epsilon", "1", "--delta", "0"],
        "a key of one individual hidden",
    ),
    "counts below 0": ([*NAMED, *PRICE, "--counts", "-1"], "--counts -1"),
    "other alone": ([*NAMED, *PRICE, "--other"], "which has its own cost"),
    "twice": ([*NAMED, *PRICE, "--epsilon", "2"], "--epsilon is given more than once"),
    "one column twice": (
        ["--item", "item", "--user", "item", *PRICE],
        "--user item: the same column is given as item. Each item would have one individual.",
    ),
    "column": (["--item", "itm", "--user", "user", *PRICE], "itm"),
    "user column": (["--item", "item", "--user", "usr", *PRICE], "usr"),
}


@pytest.mark.parametrize(("words", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_and_charged_nothing(words, told):
    Ledger.create("b.db", budget=Privacy(9, "1e-3")).close()
    before = Path("b.db").read_bytes()
    found = run("rows.csv", *words, "--ledger", "b.db")
    assert found.exit_code == 2
    assert told in " ".join(found.stderr.split())
    assert Path("b.db").read_bytes() == before


def test_a_row_without_a_user_is_refused_or_left_out():
    found = run("gaps.csv", *NAMED, *PRICE)
    assert found.exit_code == 2
    assert "A row has an item but no user." in found.stderr
    assert "--missing-users" in found.stderr
    assert run("gaps.csv", *NAMED, *PRICE, "--missing-users", "drop").exit_code == 0


def test_the_budget_refuses_and_a_repeated_request_is_free():
    Ledger.create("b.db", budget=Privacy(2, "1e-5")).close()
    paid = [*NAMED, *PRICE, "--counts", "0.5", "--json", "--ledger", "b.db"]
    first = json.loads(run("rows.csv", *paid, "--request", "r1").stdout)
    Path("rows.csv").write_text("")
    again = json.loads(run("rows.csv", *paid, "--request", "r1").stdout)
    assert again | {"recorded": None} == first
    refused = run("rows.csv", *paid)
    assert refused.exit_code == 3


def test_counts_that_the_budget_does_not_allow_are_charged_nothing():
    Ledger.create("b.db", budget=Privacy("1.4", "1e-5")).close()
    before = Path("b.db").read_bytes()
    paid = ["rows.csv", *NAMED, *PRICE, "--ledger", "b.db"]
    refused = run(*paid, "--counts", "0.5", "--other")
    assert refused.exit_code == 3
    assert "Nothing was charged." in refused.stderr
    assert Path("b.db").read_bytes() == before
    assert run(*paid).exit_code == 0


def test_counts_and_other_are_paid_for_by_a_ledger():
    Ledger.create("b.db", budget=Privacy(2, "1e-5")).close()
    found = run("rows.csv", *NAMED, "--per-user", "20", "--counts", "0.5", "--other", *PRICE,
                "--ledger", "b.db")  # fmt: skip
    assert (found.exit_code, found.stderr) == (0, "")
    lines = found.stdout.splitlines()
    assert lines[0].startswith("key        tea")
    assert lines[4].endswith("individuals have none of the keys")
    assert "epsilon 1.5" in found.stdout
    with Ledger("b.db") as ledger:
        assert ledger.spent.epsilon == Fraction(3, 2)


def plan(*words):
    return CliRunner().invoke(main, ["plan", *PRICE, *words])


def test_a_plan_for_keys_is_printed_and_drawn():
    found = plan("--keys", "--per-user", "3", "--plot", "plan.svg")
    assert (found.exit_code, found.stderr) == (0, "")
    assert "3 keys each" in found.stdout
    assert Path("plan.svg").read_text().startswith("<?xml")
    rows = json.loads(plan("--keys", "--per-user", "3", "--json").stdout)["rows"]
    assert [row["name"] for row in rows][:2] == ["one round", "one key each"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--keys", "--k", "3"], "--k 3: it has no meaning with --keys"),
        (["--keys", "--universe", "9"], "--universe 9: it has no meaning with --keys"),
        (["--keys", "--ranked"], "--ranked: it has no meaning with --keys"),
        (["--keys", "--mechanism", "gap-test"], "--mechanism gap-test: it has no meaning"),
        (["--per-user", "3"], "--per-user 3: it needs --keys"),
        (["--keys", "--per-user", "0"], "--per-user 0: it must be"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_options_that_a_plan_for_keys_does_not_have(words, told):
    found = plan(*words)
    assert found.exit_code == 2
    assert told in found.stderr


def test_a_plan_at_a_small_epsilon_is_printed():
    """The ways to choose so many of so many individuals are beyond floats."""
    found = CliRunner().invoke(
        main, ["plan", "--keys", "--per-user", "200", "--epsilon", "0.01", "--delta", "1e-6"]
    )
    assert found.exit_code == 0, found.exception
    each = next(line for line in found.stdout.splitlines() if line.startswith("one key each"))
    single, several = (int(word.replace(",", "")) for word in each.split()[-2:])
    assert 150 * single < several < 250 * single


def test_no_answer_names_the_plan():
    told = run("none.csv", *NAMED, *PRICE, "--per-user", "7").stdout
    command = "privmax plan --keys --per-user 7 --epsilon 1 --delta 1e-06"
    assert command in told
    assert CliRunner().invoke(main, command.split()[1:]).exit_code == 0


@pytest.mark.parametrize("command", ["keys", "select"])
def test_no_answer_names_no_plan_that_is_refused(command):
    """None is made for so small an epsilon."""
    words = [command, "none.csv", *NAMED, "--epsilon", "1e-7", "--delta", "1e-3"]
    told = CliRunner().invoke(main, words).stdout
    assert "Ask again with a larger --epsilon" in told
    assert "privmax plan" not in told
