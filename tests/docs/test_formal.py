"""What can be said of formal/ without Coq: nothing is left without a proof, and the page names
every theorem. Coq itself runs in `./dev formal`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import proofs  # noqa: E402

import formal  # noqa: E402  # the tools are scripts, not a package

PAGE = (ROOT / "docs/proofs/machine-checked.md").read_text(encoding="utf-8")


def test_nothing_is_stated_without_a_proof():
    assert formal.theorems()
    assert formal.shortcuts() == []


def test_an_admitted_lemma_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(formal, "FORMAL", tmp_path)
    (tmp_path / "_CoqProject").write_text("A.v\n", encoding="utf-8")
    (tmp_path / "A.v").write_text("(* Admitted *)\nLemma a : 1 = 2.\nAdmitted.\n", encoding="utf-8")
    assert formal.shortcuts() == ["A.v: Admitted"]


def test_every_file_is_checked():
    assert sorted(path.name for path in formal.files()) == sorted(
        path.name for path in formal.FORMAL.glob("*.v")
    )


def test_every_theorem_assumes_nothing():
    lines = formal.EXPECTED.read_text(encoding="utf-8").splitlines()
    assert lines[::2] == list(formal.theorems())
    assert set(lines[1::2]) == {"Closed under the global context"}


def test_the_page_names_every_theorem_in_its_file():
    rows = re.findall(r"^\| (`.*?`) \| (\w+) \|", PAGE.split("## Not checked")[0], re.MULTILINE)
    named = {name: file for names, file in rows for name in re.findall(r"`(\w+)`", names)}
    there = {name: Path(file).stem for name, (file, _) in formal.theorems().items()}
    assert named == there


def test_what_is_missing_is_called_by_its_name(monkeypatch, capsys):
    monkeypatch.setattr(formal.shutil, "which", lambda name: None)
    assert formal.main([]) == 1
    assert "apt-get install --no-install-recommends coq libcoq" in capsys.readouterr().out


def test_a_change_of_the_assumptions_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(formal, "missing", list)
    monkeypatch.setattr(formal, "check", lambda folder: "theorem\nAxioms:\nbad : False\n")
    assert formal.main([]) == 1
    assert "+bad : False" in capsys.readouterr().out


def test_it_is_a_command():
    done = subprocess.run(
        [ROOT / "dev", "formal", "--list"], capture_output=True, text=True, check=True
    )
    assert "nested_margin_private" in done.stdout


def test_a_fingerprint_sees_the_definition_and_not_its_comments(tmp_path, monkeypatch):
    monkeypatch.setattr(proofs, "ROOT", tmp_path)
    (tmp_path / "formal").mkdir()
    prints = []
    for text in ("1", "(* one *)\n  1", "2"):
        body = f"Definition a : nat := {text}.\nDefinition b := a.\n"
        (tmp_path / "formal" / "A.v").write_text(body, encoding="utf-8")
        prints.append(proofs.fingerprint("formal.A.a"))
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize("holds", [True, False])
def test_the_page_is_accepted_only_if_the_comparison_holds(tmp_path, monkeypatch, holds):
    monkeypatch.setattr(proofs, "ROOT", tmp_path)
    monkeypatch.setattr(proofs, "PAGES", tmp_path)
    (tmp_path / "formal").mkdir()
    (tmp_path / "formal" / "A.v").write_text("Definition a := 1.\n", encoding="utf-8")
    page = tmp_path / "machine-checked.md"
    page.write_text("| `formal.A.a` | `-` |\n", encoding="utf-8")
    compared = tmp_path / "test_comparison.py"
    compared.write_text(f"def test_comparison():\n    assert {holds}\n", encoding="utf-8")
    monkeypatch.setattr(proofs, "COMPARISON", str(compared))
    assert proofs.main(["accept", "machine-checked"]) == (0 if holds else 1)
    assert (proofs.stale(page) == []) is holds


def test_every_function_that_is_compared_has_a_page_of_its_own():
    own = {
        name
        for page in proofs.pages()
        if page.stem != "machine-checked"
        for name in proofs.covered(page)
    }
    compared = proofs.covered(ROOT / "docs/proofs/machine-checked.md")
    names = [name for name in compared if name.startswith("privmax.")]
    assert names
    assert [
        name for name in names if not any(f"{name}.".startswith(f"{one}.") for one in own)
    ] == []
