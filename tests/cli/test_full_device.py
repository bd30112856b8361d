"""Output that cannot be written, after an answer was paid for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from privmax import Privacy
from privmax.cli import main
from privmax.ledger import Ledger

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(
    not FULL.exists(), reason="this system has no device that is always full"
)


def privmax(*arguments):
    command = [sys.executable, "-m", "privmax.cli", *map(str, arguments)]
    with FULL.open("w") as full:
        return subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_the_request_is_told_with_which_the_answer_is_given_again(tmp_path, more):
    data, file = tmp_path / "counts.csv", tmp_path / "budget.db"
    data.write_text("query,people\nrain boots,91273\nhat,640\n", encoding="utf-8")
    Ledger.create(file, budget=Privacy(3, "1e-5")).close()
    asked = (
        "select",
        data,
        "--item",
        "query",
        "--score",
        "people",
        "--epsilon",
        1,
        "--delta",
        "1e-6",
        "--ledger",
        file,
    )
    run = privmax(*asked, *more)
    assert run.returncode == 2
    told = run.stderr.splitlines()[-1]
    assert told.startswith(
        "Error: The output could not be written: No space left on device. The answer is charged"
    )
    assert "Traceback" not in run.stderr
    request = re.search("--request ([0-9a-f]+) returns it again", told)
    assert request is not None
    again = CliRunner().invoke(main, [*map(str, asked), "--request", request[1]])
    assert "rain boots" in again.stdout
    with Ledger(file) as ledger:
        assert ledger.spent.epsilon == 1


@pytest.mark.slow
def test_commands_that_charge_nothing_say_only_that(tmp_path):
    Ledger.create(tmp_path / "budget.db", budget=Privacy(3, "1e-5")).close()
    run = privmax("budget", "show", tmp_path / "budget.db")
    assert run.stderr == "Error: The output could not be written: No space left on device.\n"
    assert run.returncode == 2


@pytest.mark.parametrize("asked", ["--help", "--version"])
def test_help_and_version_are_told_of_it_too(asked):
    run = privmax(asked)
    told = "Error: The output could not be written: No space left on device."
    assert (run.returncode, run.stderr.splitlines()) == (2, [told])
