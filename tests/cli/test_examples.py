"""What the help of a command says to type on shipped data works as typed."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from privmax.cli import COMMANDS, main


def examples():
    """Every line of a help that names a shipped data set, by command."""
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        text = command.help or ""
        found = re.findall(r"^ *(?:Example: )?privmax (.*sample:.*)$", text, re.MULTILINE)
        yield from (pytest.param(line, id=line[:40]) for line in found)


def test_commands_that_read_a_file_have_an_example():
    shown = {line.values[0].split()[0] for line in examples()}
    assert shown >= {"select", "itemsets", "learn", "compare"}


@pytest.mark.parametrize("line", list(examples()))
def test_an_example_works_as_typed(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(main, shlex.split(line))
    assert run.exit_code == 0, run.output
