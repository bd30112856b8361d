"""The command line, as a user types it.

In this process but for one command: that a process prints and ends alike is seen there, in
`test_full_device.py` and wherever a page is typed by a shell.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from privmax.cli import COMMANDS, main
from privmax.mechanisms.registry import MECHANISMS

PRIVATE = "73519"


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text('query,people\nrain boots,912\n"hat, kids",640\nfig,12\n', encoding="utf-8")
    return path


def privmax(*arguments, stdin=None):
    return CliRunner().invoke(main, list(map(str, arguments)), input=stdin, prog_name="privmax")


@pytest.mark.slow
def test_a_process_prints_item_price_and_mechanism(counts):
    columns = ("--item", "query", "--score", "people")
    price = ("--epsilon", "1", "--delta", "1e-6")
    run = subprocess.run(
        [sys.executable, "-m", "privmax.cli", "select", "-", *columns, *price],
        input=counts.read_text(encoding="utf-8"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0
    assert run.stdout.splitlines() == [
        "item       rain boots",
        "cost       epsilon 1, delta 1e-06",
        "mechanism  finds a clear winner without a list of items (NestedMargin)",
    ]
    assert run.stderr == ""


@pytest.mark.parametrize("module", ["privmax", "privmax.cli"])
def test_the_package_is_the_command(module):
    run = subprocess.run(
        [sys.executable, "-m", module, "--version"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == privmax("--version").stdout
    assert run.stdout.startswith("privmax, version ")


@pytest.mark.slow
def test_a_process_names_a_mistake_and_ends_with_two():
    command = [sys.executable, "-m", "privmax.cli", "select", "-", "--epsilon", "1"]
    run = subprocess.run(command, input="", capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stdout) == (2, "")
    assert "an open universe needs a delta above 0" in run.stderr


@pytest.mark.parametrize("typed", [[], ["budget"]])
def test_a_group_alone_prints_its_help(typed):
    run = privmax(*typed)
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout == privmax(*typed, "--help").stdout != ""


def test_json_from_standard_input(counts):
    options = (
        "--item",
        "query",
        "--score",
        "people",
        "--epsilon",
        "0.5",
        "--universe",
        3,
        "--json",
    )
    run = privmax("select", "-", *options, stdin=counts.read_text(encoding="utf-8"))
    assert json.loads(run.stdout) == {
        "item": "rain boots",
        "items": ["rain boots"],
        "requested": 1,
        "ranked": False,
        "counts": [],
        "error": None,
        "privacy": {"epsilon": "0.5", "delta": "0"},
        "mechanism": "PermuteAndFlip(epsilon=0.5, delta=0, neighbors='add-remove', k=1)",
        "why": "delta is 0",
        "free": {},
        "unit": "user",
    }


def test_nothing_released_is_no_failure():
    run = privmax(
        "select", "-", "--epsilon", "0.001", "--delta", "1e-9", "--json", stdin="item,score\na,1\n"
    )
    assert run.exit_code == 0
    assert json.loads(run.stdout)["item"] is None


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_can_be_named(mechanism):
    needed = [option for option in MECHANISMS[mechanism].requires if option != "k"]
    more = [word for option in needed for word in (f"--{option}", 2)]
    options = (
        "--epsilon",
        1,
        "--delta",
        "1e-6",
        "--universe",
        2,
        "--mechanism",
        mechanism,
        *more,
        "--json",
    )
    run = privmax("select", "-", *options, stdin="item,score\na,100000\nb,1\n")
    assert json.loads(run.stdout)["item"] == "a"


def test_the_best_k_are_printed_one_a_line():
    options = ("--epsilon", 1, "--delta", "1e-6", "--k", 2)
    scores = "item,score\nb,100000\na,50000\nc,1\n"
    run = privmax("select", "-", *options, stdin=scores)
    assert run.stdout.splitlines() == [
        "item       a",
        "           b",
        "note       Sorted by name; their order is not released.",
        "cost       epsilon 1, delta 1e-06",
        "mechanism  finds the best items as a set (SetMargin)",
    ]
    run = privmax("select", "-", *options, "--ranked", stdin=scores)
    first, second, *rest = run.stdout.splitlines()
    assert first.split() == ["item", "b", "first"]
    assert re.fullmatch(r" +a  \d+,\d{3} behind ± 21", second)
    assert rest == [
        "note       Best first, by noisy counts: each item is clearly ahead of the next.",
        "cost       epsilon 1, delta 1e-06",
        "mechanism  finds the best items and sorts them by noisy counts (RankedMargin: "
        "an order needs a lead of 31 records, a set 25; items less than 21 "
        "records apart may be in the wrong order)",
    ]


def test_where_fewer_stand_out_a_note_says_so():
    options = ("--epsilon", 1, "--delta", "1e-6", "--k", 10)
    run = privmax("select", "-", *options, stdin="item,score\nb,100000\na,50000\nc,1\n")
    assert run.stdout.splitlines()[:4] == [
        "item       a",
        "           b",
        "note       Sorted by name; their order is not released.",
        "           2 of 10 released: nothing else stood out.",
    ]
    run = privmax("select", "-", *options, "--json", stdin="item,score\na,50000\nc,1\n")
    found = json.loads(run.stdout)
    assert (found["items"], found["requested"], found["ranked"]) == (["a"], 10, False)


def test_an_order_is_refused_by_a_mechanism_that_releases_a_set():
    options = ("--epsilon", 1, "--delta", "1e-6", "--k", 2, "--ranked")
    name = ("--mechanism", "set-margin")
    run = privmax("select", "-", *options, *name, stdin="item,score\na,5\n")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "SetMargin releases a set, and not its order" in " ".join(run.stderr.split())
    scores = "item,score\na,50000\nb,90000\nc,1\n"
    run = privmax("select", "-", *options, "--mechanism", "gap-test", "--json", stdin=scores)
    assert json.loads(run.stdout)["items"] == ["b", "a"]


@pytest.mark.slow
def test_a_plan_is_a_table_and_a_json_object():
    options = ("--epsilon", 1, "--delta", "1e-6", "--neighbors", "replace")
    table = privmax("plan", *options).stdout
    assert "NestedMargin *" in table
    found = json.loads(privmax("plan", *options, "--json").stdout)
    leads = {row["mechanism"]: row["lead"] for row in found["rows"]}
    assert leads["NestedMargin"] == 43
    assert leads["Exponential"] is None
    assert [row["mechanism"] for row in found["rows"] if row["chosen"]] == ["NestedMargin"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--epsilon", "1"), "an open universe needs a delta above 0"),
        (("--epsilon", "-1", "--delta", "1e-6"), "--epsilon -1:"),
        (
            ("--epsilon", "1", "--delta", "1e-6", "--universe", "many"),
            "--universe many:",
        ),
        (("--epsilon", "1", "--delta", "1e-6", "--near", "0"), "--near 0:"),
        (("--epsilon", "1", "--delta", "1e-6", "--success", "95"), "--success 95:"),
    ],
)
def test_mistakes_in_a_plan_are_named(options, message):
    run = privmax("plan", *options)
    assert run.exit_code == 2
    assert message in run.stderr


def test_decimal_scores(counts):
    stdin = "item,score\na,1000.25\nb,1.5\n"
    options = (
        "--epsilon",
        1,
        "--delta",
        "1e-6",
        "--sensitivity",
        "0.5",
        "--neighbors",
        "replace",
        "--json",
    )
    assert json.loads(privmax("select", "-", *options, stdin=stdin).stdout)["item"] == "a"


@pytest.mark.parametrize(
    ("options", "stdin", "message"),
    [
        (("--epsilon", "1"), "item,score\na,5\n", "an open universe needs a delta above 0"),
        (
            ("--epsilon", "0", "--delta", "1e-6"),
            "item,score\na,5\n",
            "--epsilon 0: it must be above 0",
        ),
        (
            ("--epsilon", "one", "--delta", "1e-6"),
            "item,score\na,5\n",
            "--epsilon one:",
        ),
        (("--epsilon", "1", "--delta", "5"), "item,score\na,5\n", "--delta 5:"),
        (("--delta", "1e-6"), "item,score\na,5\n", "Missing option '--epsilon'"),
        (
            ("--epsilon", "1", "--delta", "1e-6"),
            "name,count\na,5\n",
            "--item item: the file has no such column. Column names must be on the first line",
        ),
        (
            ("--epsilon", "1", "--delta", "1e-6"),
            f"zorblax,{PRIVATE}\nb,5\n",
            "Column names must be on the first line",
        ),
        (
            ("--epsilon", "1", "--delta", "1e-6"),
            f"item,score\na,{PRIVATE}x\n",
            "Line 2 has no number",
        ),
        (
            ("--epsilon", "1", "--delta", "1e-6"),
            f"item,score\na,{PRIVATE}\nb\n",
            "Line 3 does not have as many values as the first line",
        ),
        (
            ("--epsilon", "1", "--delta", "1e-6"),
            f"item,score\n{PRIVATE},1\n{PRIVATE},2\n",
            "Line 3 repeats a label",
        ),
        (
            ("--epsilon", "1", "--delta", "1e-6"),
            f"item,score\na,{PRIVATE}.5\n",
            "Line 2 has a score that is not a whole number",
        ),
        (
            ("--epsilon", "1", "--delta", "1e-6", "--universe", "all"),
            "item,score\na,5\n",
            "--universe all",
        ),
        (
            ("--epsilon", "1", "--universe", "100"),
            f"item,score\nzorblax,{PRIVATE}\nb,2\n",
            "--universe 100: fewer candidates are listed",
        ),
        (
            ("--epsilon", "1", "--universe", "100", "--mechanism", "exponential"),
            f"item,score\nzorblax,{PRIVATE}\nb,2\n",
            "--universe 100: fewer candidates are listed",
        ),
        (
            ("--epsilon", "1", "--universe", "1"),
            f"item,score\na,{PRIVATE}\nb,2\n",
            "--universe 1:",
        ),
        (("--epsilon", "1", "--delta", "1e-6"), "", "Its first line must name the columns"),
        (
            ("--epsilon", "1", "--delta", "1e-6", "--k", "0"),
            "item,score\na,5\n",
            "--k 0:",
        ),
        (
            ("--epsilon", "1", "--delta", "1e-6", "--rank", "3"),
            "item,score\na,5\n",
            "Add --mechanism limited-domain",
        ),
        (
            ("--epsilon", "1", "--delta", "1e-6", "--mechanism", "limited-domain"),
            "item,score\na,5\n",
            "limited-domain needs it",
        ),
        (
            ("--epsilon", "1", "--delta", "1e-6", "--mechanism", "stable-maximum", "--k", "3"),
            "item,score\na,5\n",
            "stable-maximum does not take it",
        ),
    ],
)
def test_mistakes_are_named_and_nothing_private_is_shown(options, stdin, message):
    run = privmax("select", "-", *options, stdin=stdin)
    assert run.exit_code == 2
    assert run.stdout == ""
    assert message in run.stderr
    assert PRIVATE not in run.stderr
    assert "zorblax" not in run.stderr


def test_a_size_that_the_file_does_not_fill_is_refused_in_the_same_words_whatever_is_listed():
    files = (
        "item,score\na,5\n",
        "item,score\n" + "".join(f"zorblax{row},{PRIVATE}\n" for row in range(37)),
    )
    runs = [
        privmax("select", "-", "--epsilon", 1, "--universe", 50, stdin=stdin) for stdin in files
    ]
    assert [run.exit_code for run in runs] == [2, 2]
    assert runs[0].stderr == runs[1].stderr
    assert "--universe 50: fewer candidates are listed" in runs[0].stderr


def test_a_missing_or_binary_file_is_named(tmp_path):
    assert (
        "No such file"
        in privmax("select", tmp_path / "no.csv", "--epsilon", 1, "--delta", 1e-6).stderr
    )
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    run = privmax("select", tmp_path / "binary.csv", "--epsilon", 1, "--delta", "1e-6")
    assert run.exit_code == 2
    assert "not UTF-8" in run.stderr


def test_help_and_version():
    assert "demo" in privmax("--help").stdout
    assert privmax("--version").stdout.startswith("privmax, version")


def test_the_list_of_commands_says_what_each_says_of_itself():
    context = click.Context(main)
    for name, line in COMMANDS.items():
        found = main.get_command(context, name)
        assert found is not None
        assert (found.name, found.get_short_help_str(limit=200)) == (name, line)


def test_a_label_cannot_forge_a_line_of_the_answer(tmp_path):
    path = tmp_path / "forged.csv"
    path.write_text('query,people\n"apple\ncost       epsilon 0\x1b[2J",912\n', encoding="utf-8")
    run = privmax(
        "select", path, "--item", "query", "--score", "people", "--epsilon", 1, "--delta", "1e-6"
    )
    first, second, *_ = run.stdout.splitlines()
    assert first == r"item       apple\ncost       epsilon 0\x1b[2J"
    assert second == "cost       epsilon 1, delta 1e-06"


@pytest.mark.slow
def test_supports_count_when_a_price_is_warned_of():
    command = (
        "itemsets",
        "sample:receipts",
        "--basket",
        "receipt",
        "--item",
        "article",
        "--user",
        "member",
    )
    price = ("--epsilon", 1, "--delta", "1e-6", "--supports")
    assert "epsilon 101 protects no one" in privmax(*command, *price, 100).stderr
    assert privmax(*command, *price, "0.5").stderr == ""
