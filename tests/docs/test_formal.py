"""What can be said of formal/ without Coq: nothing is left without a proof, and the page names
every theorem. Coq itself runs in `./dev formal`; here it sees broken variants of a small project,
each of which the check must refuse.
"""

from __future__ import annotations

import re
import shutil
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


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A small project that passes: two files, the second of which uses the first."""
    folder = tmp_path / "formal"
    folder.mkdir()
    (folder / "_CoqProject").write_text("First.v\nSecond.v\n", encoding="utf-8")
    (folder / "First.v").write_text(FIRST, encoding="utf-8")
    (folder / "Second.v").write_text(SECOND, encoding="utf-8")
    monkeypatch.setattr(formal, "FORMAL", folder)
    monkeypatch.setattr(formal, "missing", list)
    return folder


FIRST = """(* Admitted *)
Definition double (n : nat) := n + n.
Lemma helper (n : nat) : double n = n + n.
Proof. reflexivity. Qed.
"""

SECOND = """From Privmax Require Import First.
Theorem main_theorem (n : nat) : double n = n + n.
Proof. exact (helper n). Qed.
"""


def change(folder, file, old, new):
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "old", "new", "found"),
    [
        ("First.v", "Proof. reflexivity. Qed.", "Admitted.", "First.v: Admitted"),
        ("First.v", "Lemma helper", "Axiom free : False.\nLemma helper", "First.v: Axiom"),
        ("First.v", "Lemma helper", "Parameter f : nat.\nLemma helper", "First.v: Parameter"),
        (
            "First.v",
            "Lemma helper",
            "Unset Guard Checking.\nLemma helper",
            "First.v: Unset Guard Checking",
        ),
        ("_CoqProject", "First.v\n", "", "First.v: it is not in _CoqProject, so nothing checks it"),
        ("Second.v", "Theorem", "Definition double := 0.\nTheorem", "double: it is defined twice"),
    ],
)
def test_a_shortcut_is_found_without_coq(project, capsys, file, old, new, found):
    change(project, file, old, new)
    assert formal.shortcuts() == [found]
    assert formal.main([]) == 1
    assert found in capsys.readouterr().out


def test_a_theorem_is_found_however_it_is_written(project):
    change(project, "Second.v", "Theorem", "  #[local] Theorem")
    assert formal.theorems() == {"main_theorem": ("Second.v", 2)}


needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")


@pytest.mark.slow
@needs_coq
def test_the_small_project_passes(project, capsys):
    assert formal.main(["--update"]) == 0
    assert formal.main([]) == 0
    assert (project / "assumptions.txt").read_text(encoding="utf-8") == (
        "main_theorem\nClosed under the global context\n"
    )
    assert "forall n : nat, double n = n + n" in (project / "statements.txt").read_text("utf-8")


SAME = "double n = n + n"


@pytest.mark.slow
@needs_coq
@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        # an assumption that no forbidden word gives away: a variable outside of a section
        (
            [
                ("Theorem", f"Variable given : forall n, {SAME}.\nTheorem"),
                ("helper n", "given n"),
            ],
            "+Axioms:",
        ),
        # a lemma without a proof, hidden from the search for words
        (
            [
                ("Theorem", f'Lemma given n : {SAME}.\nidtac "(*". Admitted.\nTheorem'),
                ("exact (helper n)", 'idtac "*)". exact (given n)'),
            ],
            "+Axioms:",
        ),
        ([("main_theorem", "another_name")], "+another_name"),
        ([("Theorem", "Lemma")], "-main_theorem"),
        # a weaker statement under the same name
        (
            [(f"{SAME}.", f"{SAME} \\/ True."), ("exact", "left; exact")],
            f"+     : forall n : nat, {SAME} \\/",
        ),
        # a hypothesis that was not there
        ([("(n : nat) :", "(n : nat) (none : n <> n) :")], "n <> n"),
    ],
)
def test_coq_shows_what_words_do_not(project, capsys, changes, shown):
    assert formal.main(["--update"]) == 0
    for old, new in changes:
        change(project, "Second.v", old, new)
    assert formal.shortcuts() == []
    assert formal.main([]) == 1
    assert shown in capsys.readouterr().out


@pytest.mark.slow
@needs_coq
@pytest.mark.parametrize("broken", ["double n = n.", "double n = n + n + n."])
def test_a_false_theorem_is_refused(project, broken):
    change(project, "Second.v", "double n = n + n.", broken)
    with pytest.raises(SystemExit, match=r"Second\.v was refused"):
        formal.main([])


def test_every_theorem_assumes_nothing():
    lines = (formal.FORMAL / formal.ASSUMPTIONS).read_text(encoding="utf-8").splitlines()
    assert lines[::2] == list(formal.theorems())
    assert set(lines[1::2]) == {"Closed under the global context"}


def test_every_theorem_has_its_statement_on_record():
    text = (formal.FORMAL / formal.STATEMENTS).read_text(encoding="utf-8")
    assert re.findall(r"^@?(\w+)$", text, re.MULTILINE) == list(formal.theorems())


def test_the_statement_of_every_mechanism_has_an_example():
    text = (formal.FORMAL / "Examples.v").read_text(encoding="utf-8")
    for name in HEADLINES:
        assert name in formal.theorems()
        assert re.search(rf"apply: \(?(?:proj1 \()?@?{name}\b", text), name


HEADLINES = (
    "exponential_replace",
    "exponential_add_remove",
    "basic_composition",
    "restricted_exponential_close",
    "limited_domain_private",
    "limited_domain_growth",
    "limited_domain_clipped_private",
    "nested_margin_private",
    "nested_margin_growth_private",
    "noisy_maximum_add_remove",
    "above_threshold_laplace",
    "large_margin_private",
    "large_margin_open_private",
    "gap_test_private",
    "gap_test_competes",
    "set_margin_private",
    "groups_private",
    "open_groups_private",
    "one_key_each_private",
    "laplace_counts_private",
    "shared_counts_private",
    "ranked_margin_covered",
    "ranked_margin_replace",
    "additive_fit_private",
    "key_rounds_basic",
    "key_rounds_gaussian",
    "ranked_margin_laplace",
    "negative_binomial_private",
    "poisson_private",
)


def test_the_page_names_every_theorem_in_its_file():
    checked, empty = PAGE.split("## Not checked")[0].split("## Not empty")
    there = {name: Path(file).stem for name, (file, _) in formal.theorems().items()}
    named = {}
    for names, file in re.findall(r"^\| (`.*?`) \| (\w+) \|", checked, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            named[name] = there.get(name) if file == "various" else file
    for names in re.findall(r"^\| (`.*?`) \|", empty, re.MULTILINE):
        named |= dict.fromkeys(re.findall(r"`(\w+)`", names), "Examples")
    assert named == there


def test_what_is_missing_is_called_by_its_name(monkeypatch, capsys):
    monkeypatch.setattr(formal.shutil, "which", lambda name: None)
    assert formal.main([]) == 1
    assert "apt-get install --no-install-recommends coq libcoq" in capsys.readouterr().out


def test_a_change_of_the_assumptions_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(formal, "missing", list)
    answers = {formal.ASSUMPTIONS: "theorem\nAxioms:\nbad : False\n"}
    monkeypatch.setattr(formal, "check", lambda folder: answers)
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


@pytest.mark.slow
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
