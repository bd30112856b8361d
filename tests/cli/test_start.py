"""What a start loads: help, version and completion are quick because they load next to nothing.

How long they take is measured by lab/benchmarks/speed/start.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import duckdb
import pytest

from privmax import itemsets
from privmax.cli import COMMANDS, output
from privmax.cli.commands import itemsets as command
from privmax.itemsets.reading.forms import FORMS
from privmax.mechanisms.registry import MECHANISMS

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
"""Not flint, with which the ledger adds up: it loads in a fiftieth of a second."""

ELSEWHERE = {"sqlglot", "PIL", "jinja2", "sqlite3", "hashlib", "secrets", "ctypes", "difflib"}
"""Lighter modules that commands load where they need them, a few milliseconds each."""


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
    assert "matplotlib" in loaded(
        "plan", "--epsilon", "1", "--universe", "10", "--plot", os.devnull + ".svg"
    )


PRICE = ("--epsilon", "1", "--delta", "1e-6")
COUNTING = {"duckdb"}
"""What commands may load that count rows of a file for one item."""

DRAWING = {"duckdb", "numpy", "ctypes"}
"""Those that draw many of them. NumPy, which loads ctypes, takes as long as a small answer."""

BUDGETS = {
    "select": (("select", "{}", "--item", "query", "--user", "person"), COUNTING),
    "select --k": (("select", "{}", "--item", "query", "--user", "person", "--k", "10"), COUNTING),
    "select --k 100": (
        ("select", "{}", "--item", "query", "--user", "person", "--k", "100"),
        COUNTING,
    ),
    "select --k 200": (
        ("select", "{}", "--item", "query", "--user", "person", "--k", "200"),
        DRAWING,
    ),
    "select --where": (
        ("select", "{}", "--item", "query", "--user", "person", "--where", "person > 'a'"),
        COUNTING,
    ),
    "select --by": (
        ("select", "{}", "--item", "query", "--user", "person", "--by", "place"),
        DRAWING,
    ),
    "keys": (
        ("keys", "{}", "--item", "query", "--user", "person"),
        {*DRAWING, "hashlib", "secrets"},
    ),
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
    assert found & {*HEAVY, *ELSEWHERE} == allowed


WAYS = {
    "rows.jsonl": (("select", "{}", "--item", "query", "--user", "person"), COUNTING),
    "rows.csv": (("select", "-", "--item", "query", "--user", "person"), COUNTING),
    "scores.csv": (
        ("select", "{}", "--item", "query", "--score", "people"),
        {"numpy", "ctypes"},
    ),
    "baskets.dat": (("itemsets", "{}", "--size", "2"), {"numpy", "ctypes", "hashlib", "secrets"}),
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
    assert found & {*HEAVY, *ELSEWHERE} == allowed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (("plan", *PRICE), set()),
        (("plan", "--epsilon", "1", "--delta", "3e-6"), {"numpy", "ctypes"}),
        (
            ("compare", "sample:searches", "--item", "query", "--user", "person", *PRICE),
            {*DRAWING, "hashlib"},
        ),
        (("budget", "show", "{}"), {"rich", "sqlite3", "hashlib", "secrets", "ctypes"}),
    ],
    ids=["plan at a common cost", "plan", "compare", "budget show"],
)
def test_a_command_without_a_file_loads_what_its_budget_says(tmp_path, words, allowed):
    ledger = tmp_path / "budget.db"
    if words[0] == "budget":
        loaded("budget", "create", str(ledger), *PRICE)
    found = loaded(*(word.format(ledger) for word in words))
    assert found & {*HEAVY, *ELSEWHERE} == allowed


@pytest.mark.slow
@pytest.mark.parametrize("size", ["2", "2-4"])
def test_ten_thousand_baskets_need_no_numba(tmp_path, size):
    file = tmp_path / "baskets.dat"
    file.write_text("".join(f"{row % 7} {row % 11 + 7} {row % 13 + 18}\n" for row in range(10_000)))
    found = loaded("itemsets", str(file), "--size", size, "--epsilon", "1", "--delta", "1e-6")
    assert "numpy" in found
    assert not found & {"pandas", "numba", "ibis", "duckdb"}


@pytest.mark.slow
def test_baskets_in_a_table_need_no_pandas(tmp_path):
    """Arrow's own way to NumPy loads it, in more time than most tables take."""
    file = tmp_path / "receipts.parquet"
    rows = "SELECT range // 3 receipt, 'item ' || range % 3 item FROM range(3000)"
    duckdb.sql(f"COPY ({rows}) TO '{file}' (FORMAT parquet)")
    found = loaded("itemsets", str(file), "--basket", "receipt", "--item", "item", *PRICE)
    assert {"duckdb", "numpy"} <= found
    assert not found & {"pandas", "numba", "ibis"}


DRAWS = """
import os, sys
from privmax.choice import draw_outcomes
from privmax.mechanisms.registry import MECHANISMS
from privmax.noise.coins import SYSTEM
from privmax.profile import Profile

DATA = ([(900, 1)], [(900, 3), (700, 1)], [(9, 3), (8, 1), (1, 2)], [(9, 400)], [])

def draw(mechanism, levels, universe):
    # whether NumPy is loaded before draws, and after them
    before = "numpy" in sys.modules
    for _ in range(5):  # a cascade ends in any of its stages
        draw_outcomes(mechanism, Profile(levels, universe=universe), SYSTEM)
    return before, "numpy" in sys.modules

for entry in MECHANISMS.values():
    for k in (1, 2, 10, 40, 150):
        if k > 1 and "k" not in entry.parameters:
            continue
        mechanism = entry.make_example(**({"k": k} if k > 1 else {}))
        if "numpy" in sys.modules:
            break
        if k > 10 and entry.slow == "in lists":
            continue
        exits = []
        for levels in DATA:
            child = os.fork()  # the modules that it loads go with it
            if not child:
                before, after = draw(mechanism, levels, 500)
                os._exit(2 + after if not before else 1)
            exits.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        assert len(set(exits)) == 1 and exits[0] in (2, 3), (entry.name, k, exits)
        print(entry.name, k, exits[0] == 3)
"""
"""Draws from different data by every mechanism whose module does not load NumPy by itself: whether
one loads it is the same for all data."""


@pytest.mark.slow
def test_whether_a_draw_loads_numpy_does_not_follow_from_the_data():
    run = subprocess.run([sys.executable, "-c", DRAWS], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    assert len(lines) > len(MECHANISMS)
    assert "SetMargin 10 False" in lines
    assert "SetMargin 40 False" in lines
    assert "SetMargin 150 True" in lines


def test_work_of_a_moment_shows_nothing(monkeypatch):
    shown = []
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setattr(output, "_watch", lambda doing, *others: shown.append(doing))
    with output.busy("Counting"):
        pass
    assert shown == []
    monkeypatch.setattr(output, "_PAUSE", 0)
    with output.busy("Counting [bold]"):
        while not shown:
            time.sleep(0.001)
    assert shown == ["Counting \\[bold]"]


def test_the_names_that_help_lists_are_those_of_the_library():
    assert tuple(itemsets.METHODS) == command.METHODS
    assert command.FORMS == FORMS
