"""An option that is given twice is refused by every command, unless it is a list."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from privmax.cli import main
from privmax.cli.group import Command, CommandGroup
from privmax.ledger import Ledger
from privmax.privacy import Privacy


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A command that is not refused may write files."""
    monkeypatch.chdir(tmp_path)


def commands(command, *words):
    """A command and all below it, with the words that are typed for it."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            yield from commands(command.get_command(context, word), *words, word)


COMMANDS = dict(commands(main))
OPTIONS = [
    pytest.param(words, option, id=" ".join([*words, option.opts[0]]))
    for words, command in COMMANDS.items()
    for option in command.get_params(click.Context(command, help_option_names=["-h", "--help"]))
    if isinstance(option, click.Option) and not option.is_eager
]


def given(option, spelling, value="1"):
    """An option as it is typed."""
    if option.is_flag:
        return [spelling]
    value = option.type.choices[0] if isinstance(option.type, click.Choice) else value
    return [f"{spelling}={value}"] if spelling.startswith("--") else [spelling, value]


def run(*words):
    return CliRunner().invoke(main, words)


def test_all_commands_are_seen():
    names = {" ".join(words) for words in COMMANDS}
    assert {
        "",
        "select",
        "keys",
        "itemsets",
        "learn",
        "plan",
        "compare",
        "audit",
        "demo",
        "budget",
        "budget create",
    } <= names
    assert len(OPTIONS) > 100


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "privmax")
def test_every_command_is_of_a_class_that_refuses_repetition(words):
    assert isinstance(COMMANDS[words], Command | CommandGroup)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "option"), OPTIONS)
def test_an_option_that_is_given_twice_is_a_usage_error(words, option):
    spellings = [*option.opts, *option.secondary_opts]
    refused = run(*words, *given(option, spellings[0]), *given(option, spellings[-1]))
    told = "is given more than once"
    assert refused.exit_code == 2
    if option.multiple:
        assert told not in refused.output
    else:
        assert told in refused.output
        assert option.opts[0] in refused.output


@pytest.mark.parametrize(
    "twice",
    [
        ("--epsilon", "0.1", "--epsilon", "9"),
        ("--epsilon=0.1", "--epsilon", "9"),
        ("--epsilon", "1", "--epsilon", "1"),
        ("--epsilon", "1", "--json", "--json"),
    ],
    ids=" ".join,
)
def test_nothing_is_charged(tmp_path, twice):
    baskets, place = tmp_path / "baskets.dat", tmp_path / "budget.db"
    baskets.write_text("1 2\n" * 300, encoding="utf-8")
    with Ledger.create(place, budget=Privacy(10, "1e-3")) as ledger:
        refused = run("itemsets", str(baskets), "--delta", "1e-6", "--ledger", str(place), *twice)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert ledger.spent == Privacy(0)


def test_what_was_given_is_not_quoted():
    refused = run(
        "select", "postgresql://me:s3cr3t@host/db", "--table", "s3cr3t", "--table", "s3cr3t"
    )
    assert "--table is given more than once" in refused.output
    assert "s3cr3t" not in refused.output


@pytest.mark.parametrize(
    "words", [("itemsets", "--help", "--help"), ("-h", "--help"), ("--version", "--version")]
)
def test_help_and_version_answer_all_the_same(words):
    assert run(*words).exit_code == 0


def test_help_answers_beside_a_repeated_option():
    assert run("itemsets", "--epsilon", "1", "--epsilon", "2", "--help").exit_code == 0


def test_the_value_of_an_option_may_look_like_an_option():
    refused = run(
        "itemsets", "none.dat", "--epsilon", "1", "--basket", "--epsilon", "--item", "--epsilon"
    )
    assert "more than once" not in refused.output


def test_the_last_of_two_would_be_taken_otherwise():
    """What click does by itself: the check above is not for nothing."""
    plain = click.Command(
        "plain", params=[click.Option(["--epsilon"])], callback=lambda epsilon: click.echo(epsilon)
    )
    assert CliRunner().invoke(plain, ["--epsilon", "0.1", "--epsilon", "9"]).output == "9\n"
