"""`privmax help TOPIC`: the pages that help, errors and reports point at, wherever privmax runs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from privmax.cli import COMMANDS, main
from privmax.cli.pages import find_page, folder, topics

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "privmax").rglob("*.py"))
POINTER = re.compile(r"privmax help ([a-z][\w/-]*)")


def privmax(*arguments):
    return CliRunner().invoke(main, ["help", *arguments], prog_name="privmax")


def test_without_a_topic_it_lists_all_of_them():
    run = privmax()
    assert (run.exit_code, run.stderr) == (0, "")
    listed = [line.split()[0] for line in run.stdout.splitlines() if line.startswith("  ")]
    assert listed == list(topics())
    assert {"inputs", "schema", "faq", "proofs/exponential"} <= set(listed)


@pytest.mark.parametrize("topic", list(topics()))
def test_every_page_is_printed(topic):
    run = privmax(topic)
    assert (run.exit_code, run.stderr) == (0, "")
    title = topics()[topic].read_text(encoding="utf-8").partition("\n")[0]
    assert run.stdout.startswith(title)
    assert not re.search(r"\]\([^)]*\.md", re.sub(r"(?ms)^```.*?^```", "", run.stdout))


@pytest.mark.parametrize("typed", ["howto/schema", "docs/howto/schema.md", "SCHEMA", "schema.md"])
def test_a_page_is_found_by_its_path_too(typed):
    assert privmax(typed).stdout == privmax("schema").stdout


def test_links_become_topics():
    told = privmax("inputs").stdout
    assert "privmax help command-line" in told
    assert "](" not in told.partition("```")[0]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in topics()])
def test_the_name_of_a_command_prints_its_help(name):
    if name == "help":
        return
    run = privmax(name)
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout == CliRunner().invoke(main, [name, "--help"], prog_name="privmax").stdout


def test_an_unknown_topic_is_refused_with_the_nearest():
    run = privmax("shema")
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == (
        "Error: TOPIC shema: there is no such page. Did you mean schema? privmax help lists all "
        "topics.\n"
    )


def test_names_are_unique():
    """A page below howto/ is called by its name alone."""
    assert len(topics()) == len(set(topics().values()))
    assert folder() == ROOT / "docs"
    with pytest.raises(KeyError):
        find_page("../README")


# What points at pages


def strings(file):
    """The text of a module that users meet, with its line: all but what is written for those who
    change it, such as docstrings of the module, of constants and of what is private.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    notes = {node.value for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        is_named = isinstance(node, ast.ClassDef | ast.FunctionDef)
        if is_named and not node.name.startswith("_") and ast.get_docstring(node):
            notes.discard(node.body[0].value)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in notes:
            yield node.lineno, node.value


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_no_text_points_at_a_file_that_a_wheel_lacks(file):
    for line, text in strings(file):
        assert not re.search(r"\bdocs/\w", text) or file.stem == "pages", (line, text)


def test_every_topic_that_is_named_exists():
    named = {
        topic.rstrip("/")
        for file in SOURCES
        for topic in POINTER.findall(file.read_text(encoding="utf-8"))
    }
    assert {"inputs", "schema"} <= named
    assert named - {"lists"} <= set(topics())  # "privmax help lists all topics"


def test_every_proof_that_a_module_names_is_a_topic():
    """Reports list them so."""
    for file in SOURCES:
        for page in re.findall(
            r"^Proof:\s+docs/(\S+)\.md$", file.read_text(encoding="utf-8"), re.M
        ):
            assert page in topics()
