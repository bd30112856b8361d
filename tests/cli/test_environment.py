"""PRIVMAX_LEDGER and PRIVMAX_LEDGER_NAME: which ledger is charged, and what is said of it."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from privmax import Ledger, Privacy
from privmax.cli import main

SECRET = "hunter2"
QUERY = (
    "select", "sample:counts", "--item", "query", "--score", "people", "--epsilon", "1",
    "--delta", "1e-6",
)  # fmt: skip
LEARN = ("learn", "sample:members", "--label", "card", "--labels", "0,1", "--low", "0")
COMMANDS = {
    "select": QUERY,
    "keys": ("keys", "sample:searches", "--item", "query", "--user", "person", *QUERY[-4:]),
    "itemsets": ("itemsets", "b.dat", "--epsilon", "1", "--delta", "1e-6"),
    "learn": (*LEARN, "--high", "100", "--epsilon", "1"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.dat").write_text("1 2\n" * 500, encoding="utf-8")
    for file in ("a.db", "b.db"):
        for name in ("default", "team"):
            Ledger.create(file, name, epsilon=3, delta="1e-5").close()
    return tmp_path


def run(*arguments, **environment):
    return CliRunner().invoke(main, list(arguments), env=environment)


def spent():
    """Epsilon that is spent, by file and name, where any is."""
    found = {}
    for file in ("a.db", "b.db"):
        for name in ("default", "team"):
            with Ledger(file, name) as ledger:
                found[file, name] = int(ledger.spent.epsilon)
    return {key: value for key, value in found.items() if value}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_the_ledger_of_the_environment_is_charged_and_named(command, folder):
    done = run(*COMMANDS[command], PRIVMAX_LEDGER="a.db")
    assert done.exit_code == 0, done.output
    assert done.stderr == f"Ledger default in {folder / 'a.db'}, from PRIVMAX_LEDGER.\n"
    assert "left       epsilon 2" in done.stdout
    assert spent() == {("a.db", "default"): 1}


def test_its_name_may_come_from_the_environment_too(folder):
    both = {"PRIVMAX_LEDGER": "a.db", "PRIVMAX_LEDGER_NAME": "team"}
    done = run(*QUERY, "--json", **both)
    assert done.stderr == f"Ledger team in {folder / 'a.db'}, from PRIVMAX_LEDGER.\n"
    assert json.loads(done.stdout)["left"] == {"epsilon": "2", "delta": "9e-06"}
    assert run(*QUERY, "--ledger-name", "default", **both).exit_code == 0
    assert spent() == {("a.db", "team"): 1, ("a.db", "default"): 1}


def test_an_option_wins_and_nothing_is_said():
    done = run(*QUERY, "--ledger", "b.db", PRIVMAX_LEDGER="a.db")
    assert (done.exit_code, done.stderr) == (0, "")
    assert spent() == {("b.db", "default"): 1}


def test_an_empty_variable_is_not_set():
    done = run(*QUERY, PRIVMAX_LEDGER="", PRIVMAX_LEDGER_NAME="")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "left" not in done.stdout
    assert spent() == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        # A place that is misspelled must not make a release that nobody pays for
        ((), {"PRIVMAX_LEDGER_NAME": "team"}, "nothing would be charged"),
        ((), {"PRIVMAX_LEDGER_NAME": "team", "PRIVMAX_LEDGER": ""}, "nothing would be charged"),
        ((), {"PRIVMAX_LEDGER": "none.db"}, "there is no such file"),
        ((), {"PRIVMAX_LEDGER": " "}, "there is no such file"),
        ((), {"PRIVMAX_LEDGER": "."}, "it is a folder"),
        ((), {"PRIVMAX_LEDGER": "a.db", "PRIVMAX_LEDGER_NAME": "tea"}, "has no ledger 'tea'"),
        # An option that is empty is no reason to look further
        (("--ledger", ""), {"PRIVMAX_LEDGER": "a.db"}, "--ledger"),
        # A name is not put together with a place that was typed
        (("--ledger", "b.db"), {"PRIVMAX_LEDGER_NAME": "team"}, "may belong to another ledger"),
        (
            ("--ledger", "b.db"),
            {"PRIVMAX_LEDGER": "a.db", "PRIVMAX_LEDGER_NAME": "team"},
            "may belong to another ledger",
        ),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_not_clear_is_refused_and_nothing_released(command, arguments, environment, told):
    done = run(*COMMANDS[command], *arguments, **environment)
    assert (done.exit_code, done.stdout) == (2, "")
    assert any(part in done.stderr for part in told.split("|"))
    assert spent() == {}


def test_a_mix_that_is_spelled_out_is_done():
    done = run(*QUERY, "--ledger", "b.db", "--ledger-name", "default", PRIVMAX_LEDGER_NAME="team")
    assert (done.exit_code, done.stderr) == (0, "")
    assert spent() == {("b.db", "default"): 1}


def test_a_password_is_not_shown():
    url = f"postgresql://ada:{SECRET}@127.0.0.1:1/x?connect_timeout=1&sslpassword={SECRET}"
    done = run(*QUERY, PRIVMAX_LEDGER=url)
    assert done.exit_code == 4  # no server is there now
    assert "Ledger default in postgresql://127.0.0.1:1/x, from PRIVMAX_LEDGER." in done.stderr
    assert SECRET not in done.output


def test_a_name_cannot_forge_a_line():
    done = run(*QUERY, PRIVMAX_LEDGER="a.db", PRIVMAX_LEDGER_NAME="x\nLedger b in b.db\x1b[2J")
    assert done.exit_code == 2
    assert "\x1b" not in done.stderr
    assert "\nLedger b in b.db" not in done.stderr


def test_a_rule_that_is_applied_needs_no_ledger(folder):
    learned = run(*COMMANDS["learn"], "--epsilon", "9", "--save", "rule.json")
    assert learned.exit_code == 2  # --epsilon twice
    saved = run(*LEARN, "--high", "100", "--epsilon", "9", "--save", "rule.json")
    assert saved.exit_code == 0
    done = run("learn", "sample:members", "--apply", "rule.json", PRIVMAX_LEDGER="a.db")
    assert (done.exit_code, done.stderr) == (0, "")
    assert spent() == {}


def test_the_help_names_the_variables():
    for command in COMMANDS:
        page = run(command, "--help").output
        assert "[env var: PRIVMAX_LEDGER]" in " ".join(page.split())
        assert "[env var: PRIVMAX_LEDGER_NAME]" in " ".join(page.split())


# Commands that only look


@pytest.mark.parametrize("command", ["show", "history", "verify", "export"])
def test_a_command_that_looks_does_without_file(command, folder):
    done = run("budget", command, PRIVMAX_LEDGER="a.db", PRIVMAX_LEDGER_NAME="team")
    assert done.exit_code == 0
    assert done.stderr == f"Ledger team in {folder / 'a.db'}, from PRIVMAX_LEDGER.\n"
    assert done.stdout == run("budget", command, "a.db", "--name", "team").stdout
    other = run("budget", command, "--name", "default", PRIVMAX_LEDGER="a.db")
    assert other.stdout == run("budget", command, "a.db").stdout


@pytest.mark.parametrize("command", ["show", "history", "verify", "export"])
def test_a_file_that_is_typed_takes_no_name_from_the_environment(command):
    done = run("budget", command, "a.db", PRIVMAX_LEDGER="b.db", PRIVMAX_LEDGER_NAME="team")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == run("budget", command, "a.db").stdout


def test_list_does_without_file(folder):
    done = run("budget", "list", PRIVMAX_LEDGER="a.db", PRIVMAX_LEDGER_NAME="team")
    assert done.stderr == f"Ledgers in {folder / 'a.db'}, from PRIVMAX_LEDGER.\n"
    assert done.stdout == run("budget", "list", "a.db").stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", ["show", "history", "verify", "export", "list"])
def test_without_file_and_variable_it_says_so(command):
    done = run("budget", command)
    assert done.exit_code == 2
    assert "Missing argument 'FILE', and PRIVMAX_LEDGER is not set." in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        ("create", "--epsilon", "1"),
        ("grant", "--epsilon", "1", "--why", "more"),
        ("account", "ada", "--epsilon", "1"),
        ("split", "web", "--epsilon", "1", "--unit", "user"),
    ],
)
def test_what_changes_a_budget_wants_its_file_typed(line):
    done = run("budget", *line, PRIVMAX_LEDGER="a.db", PRIVMAX_LEDGER_NAME="team")
    assert done.exit_code == 2
    assert "Missing argument" in done.stderr
    for name in ("default", "team"):
        with Ledger("a.db", name) as ledger:
            assert ledger.budget == Privacy(3, "1e-5")
            assert ledger.accounts() == {}
    assert Ledger.names("a.db") == ["default", "team"]


def test_python_does_not_look_at_the_environment(monkeypatch):
    import privmax

    monkeypatch.setenv("PRIVMAX_LEDGER", "a.db")
    release = privmax.select({"a": 10**9}, epsilon=1, delta="1e-6")
    assert release.request is None
    assert spent() == {}
    assert os.environ["PRIVMAX_LEDGER"] == "a.db"
