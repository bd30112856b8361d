"""The notes for referees: they build, their figures are what the code computes, and what they name
exists.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from lab.notes import figures

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import notes  # noqa: E402

import formal  # noqa: E402  # the tools are scripts, not a package

NOTES = notes.notes()

EVERY_NOTE = pytest.mark.parametrize("note", NOTES, ids=lambda note: note.stem)


@EVERY_NOTE
def test_figures_and_numbers_are_those_of_the_code(note):
    for name, text in figures.NOTES[note.stem]().items():
        assert (figures.FOLDER / f"{name}.tex").read_text(encoding="utf-8") == text


def test_no_figure_is_left_over():
    names = {name for make in figures.NOTES.values() for name in make()}
    assert {file.stem for file in figures.FOLDER.iterdir()} == names
    assert {note.stem for note in NOTES} == set(figures.NOTES)


def exists(name):
    """Whether a name in a note is a file, a theorem, a test or something in the package."""
    if "/" in name:
        return (ROOT / name).is_file()
    if name in formal.theorems():
        return True
    parts = name.split(".")
    if parts[0] != "privmax":
        return any(name in known for known in SHORT)
    for size in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for part in parts[size:]:
            found = getattr(found, part, None)
        return found is not None
    return False


SHORT = [
    {"StableMaximum", "NestedMargin", "GapTest", "GapTest.chance", "GapTest._view"},
    {"find_noise", "find_threshold"},
]
"""Names that a note has introduced with their module, and public mechanisms."""


@EVERY_NOTE
def test_what_a_note_names_exists(note):
    text = note.read_text(encoding="utf-8")
    named = re.findall(r"\\code\{([^}]*)\}", text)
    assert len(named) > 5
    assert [name for name in named if not exists(name)] == []
    assert f"./dev python -m lab.notes.figures {note.stem}" in text
    assert r"\section{What is new, and what is not}" in text
    for page in ("lab/README.md", "docs/how-we-know.md"):
        assert f"notes/{note.name}" in (ROOT / page).read_text(encoding="utf-8")


def test_names_that_do_not_exist_are_noticed():
    assert exists("privmax.keyset.rounds.KeyRounds.draw")
    for name in ("privmax.keyset.rounds.Key", "docs/proofs/none.md", "gap_test_privat", "Gap"):
        assert not exists(name)


@pytest.fixture
def latex():
    if shutil.which("pdflatex") is None:
        missing = f"pdflatex is not installed: apt-get install {notes.PACKAGE}"
        if os.environ.get("PRIVMAX_TEST_ENGINES") == "all":
            pytest.fail(missing)
        pytest.skip(missing)


@pytest.mark.slow
@EVERY_NOTE
def test_a_note_builds_without_a_warning(note, tmp_path, latex):
    assert notes.build(note, tmp_path) == []
    assert (tmp_path / f"{note.stem}.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "warning"),
    [
        (r"See \ref{nothing}.", "Reference `nothing'"),
        (r"\unknown", "Undefined control sequence"),
        (r"\noindent\rule{2\textwidth}{1pt}", "Overfull"),
    ],
)
def test_a_broken_note_is_noticed(wrong, warning, tmp_path, monkeypatch, latex):
    shutil.copy(notes.NOTES / "note.sty", tmp_path)
    text = f"\\documentclass{{article}}\\usepackage{{note}}\n\\begin{{document}}\n{wrong}\n"
    (tmp_path / "one.tex").write_text(text + "\\end{document}\n", encoding="utf-8")
    monkeypatch.setattr(notes, "NOTES", tmp_path)
    assert warning in "\n".join(notes.build(tmp_path / "one.tex", tmp_path))


def test_what_is_missing_is_called_by_its_name(monkeypatch, capsys):
    monkeypatch.setattr(notes.shutil, "which", lambda name: None)
    assert notes.main([]) == 1
    assert notes.PACKAGE in capsys.readouterr().out
