"""What a start loads: help, version and completion are quick because they load next to nothing.

How long they take is measured by lab/benchmarks/speed/start.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import duckdb
import pytest

from privmax import itemsets
from privmax.cli import COMMANDS
from privmax.cli.commands import itemsets as command
from privmax.itemsets.reading.forms import FORMS

HEAVY = {
    "numpy",
    "rich",
    "matplotlib",
    "duckdb",
    "ibis",
    "pandas",
    "pyarrow",
    "sklearn",
    "scipy",
    "numba",
}
"""Not flint, with which the ledger adds up: it loads in a twentieth of a second."""


def loaded(*arguments: str, fed: str = "", **variables: str) -> set[str]:
    program = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: print(json.dumps([n.partition('.')[0] for n in sys.modules]), "
        "file=sys.stderr))\n"
        f"from privmax.cli import main\nmain({list(arguments)!r}, prog_name='privmax')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        input=fed,
        text=True,
        check=True,
    )
    return set(json.loads(run.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [("--version",), ("--help",)])
def test_the_program_itself_loads_no_command(arguments):
    found = loaded(*arguments)
    assert "click" in found
    assert not found & {*HEAVY, "flint", "sqlite3"}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_help_loads_nothing_heavy(name):
    assert not loaded(name, "--help") & HEAVY


@pytest.mark.slow
@pytest.mark.parametrize("words", ["privmax ", "privmax select --mech", "privmax select sam"])
def test_completion_loads_nothing_heavy(words):
    place = str(words.count(" "))
    found = loaded(_PRIVMAX_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=place)
    assert not found & HEAVY


@pytest.mark.slow
def test_the_check_sees_what_is_loaded():
    assert "numpy" in loaded("plan", "--epsilon", "1", "--universe", "10")


PRICE = ("--epsilon", "1", "--delta", "1e-6")
COUNTING = {"duckdb", "numpy", "rich"}
"""What commands may load that count rows of a file. Ibis alone takes longer than the counting."""

BUDGETS = {
    "select": (("select", "{}", "--item", "query", "--user", "person"), COUNTING),
    "select --k": (("select", "{}", "--item", "query", "--user", "person", "--k", "5"), COUNTING),
    "select --where": (
        ("select", "{}", "--item", "query", "--user", "person", "--where", "person > 'a'"),
        COUNTING,
    ),
    "select --by": (
        ("select", "{}", "--item", "query", "--user", "person", "--by", "place"),
        COUNTING,
    ),
    "keys": (("keys", "{}", "--item", "query", "--user", "person"), COUNTING),
}
"""Command lines on a file, and the heavy modules that each may load."""


@pytest.fixture
def searches(tmp_path):
    file = tmp_path / "searches.csv"
    rows = "".join(f"u{person},tea,north\n" for person in range(100))
    file.write_text(f"person,query,place\n{rows}")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", BUDGETS)
def test_a_command_on_a_file_loads_what_its_budget_says(searches, name, ending):
    file = searches.with_suffix(f".{ending}")
    if ending == "parquet":
        duckdb.sql(f"COPY (FROM read_csv('{searches}')) TO '{file}' (FORMAT parquet)")
    words, allowed = BUDGETS[name]
    found = loaded(*(word.format(file) for word in words), *PRICE)
    assert "duckdb" in found
    assert not found & ({*HEAVY, "sqlglot", "PIL"} - allowed)


WAYS = {
    "rows.jsonl": (("select", "{}", "--item", "query", "--user", "person"), COUNTING),
    "rows.csv": (("select", "-", "--item", "query", "--user", "person"), COUNTING),
    "scores.csv": (("select", "{}", "--item", "query", "--score", "people"), {"numpy", "rich"}),
    "baskets.dat": (("itemsets", "{}", "--size", "2"), {"numpy", "rich"}),
}
"""Other files, the command lines that read them, and what each may load; `-` is standard input."""

TEXT = {
    "rows.jsonl": "".join(f'{{"person": "u{n}", "query": "tea"}}\n' for n in range(100)),
    "rows.csv": "person,query\n" + "".join(f"u{n},tea\n" for n in range(100)),
    "scores.csv": "query,people\ntea,100\nale,1\n",
    "baskets.dat": "1 2\n" * 100,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_a_way_in_loads_what_its_budget_says(tmp_path, name):
    file = tmp_path / name
    file.write_text(TEXT[name])
    words, allowed = WAYS[name]
    found = loaded(*(word.format(file) for word in words), *PRICE, fed=TEXT[name])
    assert found >= allowed - {"rich"}
    assert not found & ({*HEAVY, "sqlglot", "PIL"} - allowed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (("plan", *PRICE), {"numpy", "rich"}),
        (("compare", "sample:searches", "--item", "query", "--user", "person", *PRICE), COUNTING),
        (("budget", "show", "{}"), {"rich"}),
    ],
    ids=["plan", "compare", "budget show"],
)
def test_a_command_without_a_file_loads_what_its_budget_says(tmp_path, words, allowed):
    ledger = tmp_path / "budget.db"
    if words[0] == "budget":
        loaded("budget", "create", str(ledger), *PRICE)
    found = loaded(*(word.format(ledger) for word in words))
    assert not found & ({*HEAVY, "sqlglot", "PIL"} - allowed)


@pytest.mark.slow
@pytest.mark.parametrize("size", ["2", "2-4"])
def test_ten_thousand_baskets_need_no_numba(tmp_path, size):
    file = tmp_path / "baskets.dat"
    file.write_text("".join(f"{row % 7} {row % 11 + 7} {row % 13 + 18}\n" for row in range(10_000)))
    found = loaded("itemsets", str(file), "--size", size, "--epsilon", "1", "--delta", "1e-6")
    assert "numpy" in found
    assert not found & {"pandas", "numba", "ibis", "duckdb"}


def test_the_names_that_help_lists_are_those_of_the_library():
    assert tuple(itemsets.METHODS) == command.METHODS
    assert command.FORMS == FORMS
