"""What the help of a command says to type on shipped data works as typed."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from privmax.cli import COMMANDS, main


def examples(name):
    """Every line of a help that names a shipped data set; one that ends in a backslash goes on in
    the next.
    """
    text = main.get_command(click.Context(main), name).help.replace("\\\n", " ")
    return re.findall(r"^ *(?:Example: )?privmax (.*sample:.*)$", text, re.MULTILINE)


def test_commands_that_read_a_file_have_an_example():
    assert [name for name in COMMANDS if examples(name)] == [
        "select",
        "keys",
        "itemsets",
        "learn",
        "compare",
        "explore",
    ]


@pytest.mark.parametrize(
    "name", ["select", "keys", "itemsets", "learn", pytest.param("compare", marks=pytest.mark.slow)]
)
def test_the_examples_work_as_typed_one_after_another(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line in examples(name):
        run = CliRunner().invoke(main, shlex.split(line))
        assert run.exit_code == 0, line + run.output
