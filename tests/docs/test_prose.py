"""The prose that people read is plain: proselint and the house vocabulary find nothing in it, and
they do find what is put there to be found.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import prose  # noqa: E402  # tools/ is no package


@pytest.fixture(scope="module")
def checks():
    return [*prose.house_checks(), *prose.own_checks()]


@pytest.mark.slow
def test_every_page_docstring_and_message_is_plain(checks):
    found = [str(fault) for file in prose.files() for fault in prose.faults(file, checks)]
    assert found == []


@pytest.mark.parametrize(
    "sentence",
    [
        "The price is for all.",
        "Nothing could be released.",
        "It was paid\nfor before.",
        "The mechanism stays silent.",
        "Chosen when the ledger is made, for ever.",
        "An audit that finds broken twins of it.",
        "All neighbours are compared.",
        "It is irregardless of the data.",
        "A message that nobody reads.",
        "Whoever asks twice is charged twice.",
        "It is no file of numbers.",
        "The plan tells which lead it needs.",
        "The value stands in the first column.",
        "The file holds a table.",
        "The schema says it already.",
        "Let its name end in .csv.",
        "A command that changes a budget wants FILE typed.",
    ],
)
def test_a_bad_sentence_is_found_on_a_page_and_in_code(tmp_path, checks, sentence):
    page, code, template = (tmp_path / name for name in ("page.md", "code.py", "page.html"))
    template.write_text(f"{{# price #}}\n<p>{{{{ price }}}} {sentence}</p>\n", encoding="utf-8")
    assert [fault.line for fault in prose.faults(template, checks)] == [2]
    page.write_text(f"# Title\n\n{sentence}\n", encoding="utf-8")
    code.write_text(f'def f():\n    """{sentence}"""\n', encoding="utf-8")
    assert [fault.line for fault in prose.faults(page, checks)] == [3]
    assert [fault.line for fault in prose.faults(code, checks)] == [2]


@pytest.mark.parametrize(
    "sentence", ["What runs.", "How many rows there are.", "Where the\nfile is.", "Who asked."]
)
def test_a_docstring_that_begins_with_a_clause_is_found(tmp_path, checks, sentence):
    code = tmp_path / "code.py"
    for before in ("", "def f():\n    ", "class C:\n    x = 1\n    "):
        code.write_text(f'{before}"""{sentence}"""\n', encoding="utf-8")
        assert [fault.message for fault in prose.faults(code, checks)]
    code.write_text(f'print("{sentence.split()[0]} is it now?")\n', encoding="utf-8")
    assert prose.faults(code, checks) == []  # a message may ask


def test_the_prose_of_a_notebook_is_read_and_its_code_is_not(tmp_path, checks):
    cells = [("code", "# nobody"), ("markdown", "Data that\nnobody may see.")]
    notebook = tmp_path / "page.ipynb"
    text = json.dumps({"cells": [{"cell_type": kind, "source": [text]} for kind, text in cells]})
    notebook.write_text(text, encoding="utf-8")
    assert [fault.found for fault in prose.faults(notebook, checks)] == ["nobody"]


def test_code_is_left_out(tmp_path, checks):
    page = tmp_path / "page.md"
    page.write_text("A `price=1` and\n\n```python\nprice = the price\n```\n", encoding="utf-8")
    assert prose.faults(page, checks) == []


def test_a_bad_sentence_fails_the_command(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("Usual prices lie between 0.1 and 3.\n", encoding="utf-8")
    assert prose.main([str(page)]) == 1
    assert "page.md:1: " in capsys.readouterr().out
    page.write_text("Common values are between 0.1 and 3.\n", encoding="utf-8")
    assert prose.main([str(page)]) == 0


def test_something_is_checked():
    names = {file.name for file in prose.files()}
    assert {"README.md", "CHANGELOG.md", "tutorial.md", "options.py", "errors.py"} <= names
    assert {"release.html", "history.html"} <= names


GENERATED = {"docs/command-line.md"}
"""Pages that a program writes from `--help`; they may be as long as it is."""


def lengths():
    """The words of each page of the documentation."""
    return {
        page.relative_to(ROOT).as_posix(): len(page.read_text(encoding="utf-8").split())
        for page in sorted((ROOT / "docs").rglob("*.md"))
    }


def test_pages_are_short():
    assert {name for name, words in lengths().items() if words > 3500} == GENERATED


def test_what_users_read_is_at_most_55_000_words():
    used = [words for name, words in lengths().items() if not name.startswith("docs/proofs/")]
    assert 10_000 < sum(used) <= 55_000
