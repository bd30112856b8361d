"""What tests of `--by` share, of `privmax select` and `privmax itemsets`."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from privmax import Ledger, Privacy
from privmax.cli import main

PRICE = ["--epsilon", "1", "--delta", "1e-6"]


def run(command, *words, stdin=None):
    """What a command answers."""
    return CliRunner().invoke(main, [command, *words], input=stdin)


def write_rows(file, names, visits):
    """Write rows of 600 people: half of them count in the north, half in the south, and all have a
    row in the east. Two groups have people of three that are declared.
    """
    rows = (row for who in range(600) for row in visits(who, "north" if who < 300 else "south"))
    Path(file).write_text("\n".join([names, *rows, ""]))
    Path("regions.csv").write_text("south\nnorth\nwest\n")


def check_refusal(command, words, said):
    """Check that a mistake is named, and neither charged nor recorded."""
    Ledger.create("b.db", budget=Privacy(9, "1e-3")).close()
    before = Path("b.db").read_bytes()
    found = run(command, *words, *PRICE, "--ledger", "b.db")
    assert found.exit_code == 2, found.output
    assert said in " ".join(found.stderr.split())
    assert Path("b.db").read_bytes() == before


def check_one_charge(command, file, words):
    """Check that a table is charged once, and comes again at no cost when its rows are gone."""
    Ledger.create("b.db", budget=Privacy(1, "1e-5")).close()
    paid = [*words, *PRICE, "--json", "--ledger", "b.db"]
    first = json.loads(run(command, file, *paid, "--request", "r1").stdout)
    Path(file).write_text("")
    again = json.loads(run(command, file, *paid, "--request", "r1").stdout)
    assert again | {"recorded": None} == first
    assert first["left"]["epsilon"] == "0"
    assert run(command, file, *paid).exit_code == 3
