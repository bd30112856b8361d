"""Standard streams that are closed, full or read by nobody: what they may change is the exit code
that the page documents, and never what is charged.

Processes are started here: descriptors are theirs.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from privmax import Privacy
from privmax.ledger import Ledger

COMMAND = [sys.executable, "-m", "privmax.cli"]
PRICE = ("--epsilon", "1", "--delta", "1e-6")
ROWS = "query\n" + "rain boots\n" * 400 + "hat\n"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="descriptors as POSIX has them"),
]


@pytest.fixture
def ledger(tmp_path):
    file = tmp_path / "budget.db"
    Ledger.create(file, budget=Privacy(3, "1e-5")).close()
    return file


@pytest.fixture
def counts(tmp_path):
    file = tmp_path / "counts.csv"
    file.write_text("query,people\nrain boots,91273\nhat,640\n", encoding="utf-8")
    return file


def spent(file):
    with Ledger(file) as ledger:
        return ledger.spent.epsilon


def run(redirect, *arguments):
    """Run privmax with streams as a shell redirects them."""
    shell = ["sh", "-c", f'exec "$@" {redirect}', "sh", *COMMAND, *map(str, arguments)]
    return subprocess.run(shell, capture_output=True, text=True, check=False, timeout=60)


def select(file, *more):
    return ("select", file, "--item", "query", "--score", "people", *PRICE, *more)


# Standard error


@pytest.mark.parametrize("redirect", ["2>&-", "2</dev/null", "2>/dev/full", "0<&- 2>&-"])
def test_an_answer_does_not_need_standard_error(counts, ledger, redirect):
    told = run(redirect, *select(counts, "--ledger", ledger))
    assert told.returncode == 0
    assert told.stdout.startswith("item       rain boots\n")
    assert spent(ledger) == 1


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full"])
def test_a_warning_that_nobody_sees_changes_nothing(tmp_path, ledger, redirect):
    """Rows as individuals are warned of, between the charge and the answer."""
    data = tmp_path / "rows.tsv"
    data.write_text(ROWS, encoding="utf-8")
    asked = ("select", data, "--item", "query", *PRICE)
    assert "Warning" in run("", *asked).stderr
    told = run(redirect, *asked, "--ledger", ledger)
    assert (told.returncode, told.stdout.splitlines()[0]) == (0, "item       rain boots")


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full"])
def test_a_mistake_is_exit_2_even_if_nobody_sees_the_message(counts, redirect):
    assert run(redirect, "select", counts, "--epsilon", "-1").returncode == 2
    assert run(redirect, "nonsense").returncode == 2


# Standard output


@pytest.mark.parametrize("redirect", [">&-", "1</dev/null", "0<&- >&-"])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_closed_standard_output_is_refused_before_the_charge(counts, ledger, redirect, more):
    told = run(redirect, *select(counts, "--ledger", ledger), *more)
    assert told.returncode == 2
    assert told.stderr.startswith("Error: Standard output is closed")
    assert spent(ledger) == 0


def test_both_closed_is_refused_too(counts, ledger):
    assert run(">&- 2>&-", *select(counts, "--ledger", ledger)).returncode == 2
    assert spent(ledger) == 0


@pytest.mark.parametrize("asked", [["--help"], ["--version"], ["select", "--help"]])
def test_help_on_closed_output_is_refused(asked):
    told = run(">&-", *asked)
    assert told.returncode == 2
    assert told.stderr.startswith("Error: Standard output is closed")


# Pipes


def broken_pipe(*arguments):
    """Run privmax with a pipe that has no reader."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run(
            [*COMMAND, *map(str, arguments)],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(writing)


def test_a_pipe_without_a_reader_is_refused_before_the_charge(counts, ledger):
    told = broken_pipe(*select(counts, "--ledger", ledger))
    assert told.returncode == 141
    assert told.stderr == (
        "Error: Standard output is a pipe that nothing reads. Nothing was charged.\n"
    )
    assert spent(ledger) == 0


def test_a_reader_that_leaves_after_the_charge_is_told_the_request(tmp_path, ledger):
    """The data is a named pipe, so the reader leaves while privmax waits for rows."""
    data = tmp_path / "counts.csv"
    os.mkfifo(data)
    reading, writing = os.pipe()
    asked = select(data, "--ledger", ledger, "--request", "tonight")
    process = subprocess.Popen(
        [*COMMAND, *map(str, asked)], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    with data.open("w", encoding="utf-8") as rows:
        os.close(reading)
        rows.write("query,people\nrain boots,91273\nhat,640\n")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 141
    assert errors == (
        "Error: The output could not be written: Broken pipe. The answer is charged and recorded: "
        "--request tonight returns it again at no cost.\n"
    )
    assert spent(ledger) == 1
    again = run("", *asked)
    assert "rain boots" in again.stdout


@pytest.mark.parametrize("asked", [["--help"], ["--version"], ["budget", "verify"]])
def test_a_broken_pipe_is_no_broken_guarantee(ledger, asked):
    told = broken_pipe(*asked, *([ledger] if "verify" in asked else []))
    assert (told.returncode, told.stderr) == (141, "")


def test_the_demo_ends_as_other_commands_where_nothing_reads_it(tmp_path):
    """rich would end the process with 1."""
    told = broken_pipe("demo", "--folder", tmp_path / "story")
    assert (told.returncode, told.stderr) == (141, "")


# A bug of privmax itself


def test_an_internal_error_is_no_broken_guarantee():
    broken = "from privmax.cli import main; main.get_command = None; main(['plan'])"
    told = subprocess.run(
        [sys.executable, "-c", broken], capture_output=True, text=True, check=False, timeout=60
    )
    assert (told.returncode, told.stdout) == (70, "")
    assert "TypeError" in told.stderr


# In Python


def test_the_library_works_without_standard_error():
    program = (
        "from privmax.kernels import tell_of_compiling\n"
        "tell_of_compiling([], 'nothing'); print('done')"
    )
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", program]
    told = subprocess.run(shell, capture_output=True, text=True, check=False, timeout=60)
    assert (told.returncode, told.stdout) == (0, "done\n")
