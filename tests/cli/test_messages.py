"""Errors on the command line: every option of every command, given nonsense, is answered in the
spelling of the command line, never in that of Python.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from privmax.cli import main
from privmax.cli.messages import describe_error
from privmax.errors import LedgerError, ParameterError, column_error
from privmax.ledger import Ledger
from privmax.privacy import Privacy

PRICE = "--epsilon 1 --delta 1e-6"
COMMANDS = {
    "select": f"select sample:counts --item query --score people {PRICE}",
    "select people": f"select sample:searches --item query --user person {PRICE}",
    "keys": f"keys sample:searches --item query --user person {PRICE}",
    "itemsets": f"itemsets sample:receipts --basket receipt --item article {PRICE}",
    "itemsets lines": f"itemsets baskets.dat {PRICE}",
    "learn": "learn sample:members --label card --labels 0,1 --low 0 --high 100 --epsilon 1",
    "plan": f"plan {PRICE} --mechanism nested-margin",
    "compare": f"compare --scores 9,5 {PRICE} --mechanism nested-margin",
    "audit": "audit nested-margin --epsilon 6 --delta 0.3 --candidates 1 --highest 1",
    "budget create": "budget create new.db --epsilon 1",
    "budget show": "budget show b.db",
    "budget list": "budget list b.db",
    "budget history": "budget history b.db",
    "budget grant": "budget grant b.db --epsilon 1 --why more",
    "budget account": "budget account b.db ada --epsilon 1",
    "budget split": "budget split b.db web --epsilon 1 --unit user",
    "budget verify": "budget verify b.db",
    "budget export": "budget export b.db",
    "demo": "demo --folder b.db",
}
"""A command line that works, for each command."""

NONSENSE = ("", "-1", "0", "nope", "1e400", "99999999999")

PYTHON = re.compile(
    r"(?<![\w-])[a-z_]+=(?!=)|is not allowed|\bNone\b|\bTrue\b|Ledger\.|Privacy\(|open_account"
)
"""How Python spells options. --low and --high take COLUMN=NUMBER, which is taken out before."""

BOUND = re.compile(r"--(low|high) \w+=")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("baskets.dat").write_text("1 2\n" * 9, encoding="utf-8")
    Ledger.create("b.db", budget=Privacy(9, "1e-3")).close()


def leaf(line: str) -> click.Command:
    command, words = main, shlex.split(line)
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words.pop(0))
    return command


def spelled_by_python(text: str) -> list[str]:
    """What of a message is not in the spelling of the command line."""
    found = [line for line in text.splitlines() if line.startswith(("Error", "Warning"))]
    return [line for line in found if PYTHON.search(BOUND.sub("", line))]


def walk():
    for title, line in COMMANDS.items():
        for option in [] if title == "demo" else leaf(line).params:  # it takes any folder
            free = option.param_type_name == "option" and not option.is_flag
            if free and not isinstance(option.type, click.Choice) and option.name != "help":
                yield pytest.param(line, max(option.opts, key=len), id=f"{title} {option.name}")


def test_every_command_is_walked():
    leaves = set()

    def collect(command, name):
        if isinstance(command, click.Group):
            for word in command.list_commands(click.Context(command)):
                collect(command.get_command(click.Context(command), word), f"{name} {word}".strip())
        else:
            leaves.add(name)

    collect(main, "")
    # a server, a file, pages and sessions of PostgreSQL: they have their own tests
    others = {"explore", "report", "help", "budget unblock"}
    assert leaves <= {*COMMANDS, *others}
    assert len(list(walk())) > 100


@pytest.mark.slow
@pytest.mark.parametrize(("line", "option"), list(walk()))
def test_no_error_is_spelled_as_python_does(line, option):
    words = shlex.split(line)
    if option in words:
        place = words.index(option)
        del words[place : place + 2]
    refused = 0
    for value in NONSENSE:
        run = CliRunner().invoke(main, [*words, option, value])
        assert run.exception is None or isinstance(run.exception, SystemExit), run.exception
        assert spelled_by_python(run.stderr) == [], run.stderr
        refused += run.exit_code != 0
    assert refused or option in TAKES_ANYTHING


TAKES_ANYTHING = {"--why", "--item"}
"""Options for which none of the nonsense is wrong: compare does not look at --item beside --scores.
"""


@pytest.mark.parametrize(
    "text",
    ["Error: basket=None is not allowed", "Error: give unit='user'", "Error: see Ledger.create"],
)
def test_the_spelling_of_python_is_seen(text):
    assert spelled_by_python(text)


def test_a_value_is_shown_as_it_was_typed():
    told = {
        ("k", 0): "k 0: wrong. Do.",
        ("item", "a b"): "item 'a b': wrong. Do.",
        ("item", ("a", "b")): "item a,b: wrong. Do.",
        ("basket", None): "basket: wrong. Do.",
        ("ranked", True): "ranked: wrong. Do.",
    }
    for (name, value), text in told.items():
        assert describe_error(ParameterError(name, value, "wrong", "Do.")) == text
    assert describe_error(ParameterError.required("k")) == "k: it is required."


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_table_names_its_columns_and_a_text_file_does_not(ending):
    import duckdb

    duckdb.sql("SELECT 1 AS person, 'x' AS query").write_parquet("log.parquet")
    Path("log.csv").write_text("person,query\n1,x\n", encoding="utf-8")
    for line in (
        f"select log.{ending} --item qery --user person {PRICE}",
        f"learn log.{ending} --label qery --labels 0,1 --low 0 --high 1 --epsilon 1",
        f"itemsets log.{ending} --item qery --basket person {PRICE}",
    ):
        told = CliRunner().invoke(main, shlex.split(line)).stderr
        named = "Did you mean 'query'? The columns are person, query." in told
        assert named == (ending == "parquet"), told
        assert ("head -n 1" in told) == (ending == "csv"), told


def test_a_ledger_that_is_not_there_is_answered_with_those_that_are():
    Ledger.create("b.db", "sales", budget=Privacy(1)).close()
    for line in (
        "budget show b.db --name sale",
        f"{COMMANDS['select']} --ledger b.db --ledger-name sale",
    ):
        run = CliRunner().invoke(main, shlex.split(line))
        assert run.exit_code == 2
        assert "b.db has no ledger 'sale'. It has 'default', 'sales'. Run " in run.stderr
        assert "privmax budget list FILE" in run.stderr
    listed = CliRunner().invoke(main, ["budget", "list", "b.db"]).stdout
    assert listed.startswith("2 ledgers in b.db\n")
    assert re.search(r"^sales +basic +epsilon +1 +0 +1$", listed, re.MULTILINE)


def test_an_account_that_is_not_there_is_answered_with_those_that_are():
    with Ledger("b.db") as ledger:
        ledger.open_account("ada", Privacy(1))
        with pytest.raises(LedgerError, match=r"no account 'bob'\. It has 'ada'\.") as caught:
            ledger.left("bob")
    assert caught.value.known == ("ada",)


def test_many_columns_are_not_all_listed():
    told = str(column_error("item", "x", [f"c{number}" for number in range(30)], "table"))
    assert "c19 and 10 more." in told
    assert "c20" not in told


SILENT = "--epsilon 0.001 --delta 1e-9"


@pytest.mark.parametrize(
    ("line", "says", "not_said"),
    [
        (
            f"select sample:counts --item query --score people {SILENT}",
            ["privmax plan --epsilon 0.001 --delta 1e-09", "larger --epsilon", "give --universe"],
            ["--k", "--ranked", "--floor"],
        ),
        (
            f"select sample:counts --item query --score people {SILENT} --k 3 --ranked",
            ["--k 3 --ranked", "fewer than 3 (--k)", "Leave out --ranked"],
            ["--floor"],
        ),
        (
            f"itemsets sample:receipts --basket receipt --item article {SILENT} --floor 4",
            ["Lower --floor, now 4", "give --items"],
            ["--k", "--universe"],
        ),
        (
            "learn sample:members --label card --labels 0,1 --low 0 --high 100 --epsilon 0.001 "
            "--delta 1e-9 --mechanism gap-test",
            ["Use --delta 0: the universe is known", "--universe 122"],
            ["--k", "give --universe", "--floor"],
        ),
    ],
)
def test_no_answer_names_the_next_steps_that_apply(line, says, not_said):
    told = CliRunner().invoke(main, shlex.split(line)).stdout
    first = told.splitlines()[0]
    assert re.fullmatch(r"(item|itemset|rule) +no answer: no \1 stood out enough", first)
    steps = told.partition("\nnext ")[2].partition("\ncost ")[0]
    for words in says:
        assert words in steps
    for words in not_said:
        assert words not in steps
