"""Where a command has many options, its help groups them: everyday, privacy, advanced."""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from privmax.cli import main
from privmax.cli.sections import MANY, SECTIONS, long_name

TITLES = ["Everyday options:", "Privacy options:", "Advanced options:"]


def commands(command, words=()):
    """All commands that are no groups, by their words."""
    if not isinstance(command, click.Group):
        return {words: command}
    context = click.Context(command)
    found = {}
    for word in command.list_commands(context):
        found |= commands(command.get_command(context, word), (*words, word))
    return found


COMMANDS = commands(main)
OPTIONS = {
    words: [one for one in command.params if isinstance(one, click.Option)]
    for words, command in COMMANDS.items()
}
LONG = [words for words, options in OPTIONS.items() if len(options) > MANY]


def read_help(words):
    return CliRunner().invoke(main, [*words, "--help"], terminal_width=100).stdout


def test_these_are_grouped():
    assert {("select",), ("keys",), ("itemsets",), ("learn",), ("compare",)} <= set(LONG)
    assert ("audit",) in LONG
    assert ("demo",) not in LONG


@pytest.mark.parametrize("words", LONG, ids=" ".join)
def test_a_long_help_has_three_parts_with_every_option_once(words):
    told = read_help(words)
    assert re.findall(r"^\w.* options:$", told, re.MULTILINE) == TITLES
    assert "\nOptions:" not in told
    _, everyday, privacy, advanced = re.split(r"^\w.* options:\n", told, flags=re.MULTILINE)
    shown = [set(re.findall(r"^  (?:-h, )?--([a-z-]+)", part, re.MULTILINE))
             for part in (everyday, privacy, advanced)]  # fmt: skip
    for (title, names), part in zip(SECTIONS.items(), shown, strict=True):
        assert part, title
        assert part <= names
    assert not re.search(r"^  [^ -]", everyday + privacy + advanced, re.MULTILINE)
    own = {long_name(option) for option in OPTIONS[words]} | {"help"}
    assert own == set.union(*shown)
    assert sum(map(len, shown)) == len(own)
    assert len(shown[0]) <= 20


@pytest.mark.parametrize("words", [words for words in COMMANDS if words not in LONG], ids=" ".join)
def test_a_short_help_has_one_part(words):
    assert re.findall(r"^\w*[Oo]ptions:$", read_help(words), re.MULTILINE) == ["Options:"]


@pytest.mark.parametrize("words", LONG, ids=" ".join)
def test_every_option_has_its_place(words):
    """A new option of such a command is to be added to `SECTIONS`."""
    for option in OPTIONS[words]:
        places = [title for title, names in SECTIONS.items() if long_name(option) in names]
        assert len(places) == 1, f"put {option.opts} into one part of SECTIONS"


def test_what_must_be_given_is_among_everyday_options():
    for words in LONG:
        needed = {long_name(option) for option in OPTIONS[words] if option.required}
        assert needed <= SECTIONS["Everyday"]


def test_no_name_is_listed_that_no_command_has():
    known = {long_name(option) for options in OPTIONS.values() for option in options} | {"help"}
    assert set().union(*SECTIONS.values()) <= known
