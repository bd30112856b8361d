"""What a start loads: help, version and completion are quick because they load next to nothing.

How long they take is measured by lab/benchmarks/speed/start.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

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


def loaded(*arguments: str, **variables: str) -> set[str]:
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


@pytest.mark.slow
def test_a_file_that_duckdb_counts_needs_no_pandas(tmp_path):
    file = tmp_path / "searches.csv"
    file.write_text("person,query\n" + "".join(f"{person},tea\n" for person in range(100)))
    options = ("--item", "query", "--user", "person", "--epsilon", "1", "--delta", "1e-6")
    found = loaded("select", str(file), *options)
    assert "duckdb" in found
    assert not found & {"pandas", "numba", "matplotlib"}


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
