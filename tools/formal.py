"""Checks the theorems of formal/ with Coq: their proofs, what they assume, and what they say.

    ./dev formal            check every file, and compare what each theorem assumes and says with
                            formal/assumptions.txt and formal/statements.txt, and what the laws are
                            on small examples with formal/laws.txt
    ./dev formal --list     print where each theorem stands, and check nothing
    ./dev formal --update   check, then rewrite these three files

It installs nothing: where Coq or its libraries are missing it says what Debian calls them. Files
are checked in a copy, so that nothing checked before is taken for granted. It needs Python alone.
"""

from __future__ import annotations

import difflib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORMAL = ROOT / "formal"
ASSUMPTIONS = "assumptions.txt"
STATEMENTS = "statements.txt"
VALUES = "laws.txt"
PROGRAM = "laws.ml"
PACKAGES = ("coq", "libcoq-mathcomp-ssreflect", "libcoq-mathcomp-algebra")

THEOREM = re.compile(
    r"^[ \t]*(?:#\[.*?\]\s*)?(?:(?:Local|Global|Program)\s+)*(?:Theorem|Corollary|Example)\s+(\w+)",
    re.MULTILINE,
)
DEFINITION = re.compile(
    r"^[ \t]*(?:#\[.*?\]\s*)?(?:(?:Local|Global|Program)\s+)*"
    r"(?:Definition|Fixpoint|Inductive|Record)\s+(\w+)",
    re.MULTILINE,
)
FORBIDDEN = re.compile(
    r"\b(?:Admitted|admit|Axioms?|Parameters?|Conjecture|Abort|bypass_check|Redirect|Declare Module"
    r"|Unset (?:Guard|Positivity|Universe) Checking)\b"
)
COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)


def files() -> list[Path]:
    """The files to check, each after those it needs."""
    lines = (FORMAL / "_CoqProject").read_text(encoding="utf-8").split()
    return [FORMAL / name for name in lines if name.endswith(".v")]


def theorems() -> dict[str, tuple[str, int]]:
    """The file and the line of each theorem, in order."""
    found: dict[str, tuple[str, int]] = {}
    for file in files():
        text = file.read_text(encoding="utf-8")
        for match in THEOREM.finditer(text):
            found[match[1]] = (file.name, text.count("\n", 0, match.start(1)) + 1)
    return found


def shortcuts() -> list[str]:
    """What would make the check say less than it seems to; there must be nothing.

    A statement without a proof, a file that is not checked, or a name that means two things.
    """
    names: Counter[str] = Counter()
    found = [
        f"{file.name}: it is not in _CoqProject, so nothing checks it"
        for file in sorted(set(FORMAL.glob("*.v")) - set(files()))
    ]
    for file in files():
        text = COMMENT.sub("", file.read_text(encoding="utf-8"))
        found += [f"{file.name}: {word}" for word in FORBIDDEN.findall(text)]
        names.update(match[1] for kind in (THEOREM, DEFINITION) for match in kind.finditer(text))
    return found + [f"{name}: it is defined twice" for name, times in names.items() if times > 1]


def missing() -> list[str]:
    """What Debian calls the packages that are not there."""
    if shutil.which("coqc") is None:
        return list(PACKAGES)
    where = subprocess.run(["coqc", "-where"], capture_output=True, text=True, check=True)
    library = Path(where.stdout.strip()) / "user-contrib" / "mathcomp"
    parts = {"ssreflect": PACKAGES[1], "algebra": PACKAGES[2]}
    absent = [package for part, package in parts.items() if not (library / part).is_dir()]
    return absent if shutil.which("ocamlopt") else [*absent, "ocaml"]  # Debian's coq brings it


def check(folder: Path) -> dict[str, str]:
    """Check every file in a copy, and return what the theorems assume and what they say."""
    for file in files():
        shutil.copy(file, folder)
        began = time.monotonic()
        _coqc(folder, file.name)
        print(f"{file.name:28} ok, {time.monotonic() - began:4.1f} s", flush=True)
    answers = {
        ASSUMPTIONS: _ask(folder, 'Goal True. idtac "{name}". Abort. Print Assumptions {name}.'),
        STATEMENTS: _ask(folder, "Check @{name}."),
    }
    if (FORMAL / PROGRAM).is_file():
        answers[VALUES] = _values(folder)
    return answers


def _values(folder: Path) -> str:
    """What the definitions compute, as the program that Coq made of them prints it."""
    parts = [folder / "values.ml", FORMAL / PROGRAM]
    program = "\n".join(part.read_text(encoding="utf-8") for part in parts)
    (folder / "program.ml").write_text(program, encoding="utf-8")
    (folder / "program.mli").write_text("", encoding="utf-8")
    _run(folder, "ocamlopt", "-c", "program.mli")
    _run(folder, "ocamlopt", "-rectypes", "-w", "-a", "program.ml", "-o", "program")
    return _run(folder, str(folder / "program"))


def _ask(folder: Path, question: str) -> str:
    """What Coq answers for each theorem, below its name."""
    lines = ["Set Printing Width 100."]
    lines += [f"From Privmax Require Import {file.stem}." for file in files()]
    lines += [question.format(name=name) for name in theorems()]
    (folder / "Question.v").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return _coqc(folder, "Question.v")


def _coqc(folder: Path, name: str) -> str:
    warnings = "-notation-overridden,-ambiguous-paths,-extraction"
    return _run(folder, "coqc", "-w", warnings, "-Q", ".", "Privmax", name)


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[-1]} was refused:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--list"], ["--update"]):
        print(__doc__)
        return 2
    if arguments == ["--list"]:
        for name, (file, line) in theorems().items():
            print(f"{name:36} formal/{file}:{line}")
        return 0
    for shortcut in shortcuts():
        print(f"not as it seems: {shortcut}")
    if shortcuts():
        return 1
    if absent := missing():
        print(f"not installed: {' '.join(absent)}")
        print(f"on Debian: apt-get install --no-install-recommends {' '.join(absent)}")
        return 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        answers = check(Path(folder))
    print(answers[ASSUMPTIONS], end="")
    failed = False
    for name, answer in answers.items():
        if arguments == ["--update"]:
            (FORMAL / name).write_text(answer, encoding="utf-8")
        expected = (FORMAL / name).read_text(encoding="utf-8")
        if answer != expected:
            failed = True
            print(f"this is not formal/{name}; read it, then ./dev formal --update:")
            print("\n".join(difflib.unified_diff(expected.splitlines(), answer.splitlines())))
    if failed:
        return 1
    print(f"{len(theorems())} theorems checked, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
