"""Checks the theorems of formal/ with Coq, and what each of them assumes.

    ./dev formal            check every file, and compare the assumptions with
                            formal/assumptions.txt
    ./dev formal --list     print where each theorem stands, and check nothing
    ./dev formal --update   check, then rewrite formal/assumptions.txt

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
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORMAL = ROOT / "formal"
EXPECTED = FORMAL / "assumptions.txt"
PACKAGES = ("coq", "libcoq-mathcomp-ssreflect", "libcoq-mathcomp-algebra")

THEOREM = re.compile(r"^(?:Theorem|Corollary) (\w+)", re.MULTILINE)
FORBIDDEN = re.compile(r"\b(?:Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture)\b")
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
            found[match[1]] = (file.name, text.count("\n", 0, match.start()) + 1)
    return found


def shortcuts() -> list[str]:
    """Where a file states something without a proof: there must be none."""
    return [
        f"{file.name}: {word}"
        for file in files()
        for word in FORBIDDEN.findall(COMMENT.sub("", file.read_text(encoding="utf-8")))
    ]


def missing() -> list[str]:
    """What Debian calls the packages that are not there."""
    if shutil.which("coqc") is None:
        return list(PACKAGES)
    where = subprocess.run(["coqc", "-where"], capture_output=True, text=True, check=True)
    library = Path(where.stdout.strip()) / "user-contrib" / "mathcomp"
    parts = {"ssreflect": PACKAGES[1], "algebra": PACKAGES[2]}
    return [package for part, package in parts.items() if not (library / part).is_dir()]


def check(folder: Path) -> str:
    """Check every file in a copy, and return what the theorems assume."""
    for file in files():
        shutil.copy(file, folder)
        began = time.monotonic()
        _coqc(folder, file.name)
        print(f"{file.name:28} ok, {time.monotonic() - began:4.1f} s", flush=True)
    lines = [f"From Privmax Require Import {' '.join(file.stem for file in files())}."]
    for name in theorems():
        lines.append(f'Goal True. idtac "{name}". Abort.')
        lines.append(f"Print Assumptions {name}.")
    (folder / "Assumptions.v").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return _coqc(folder, "Assumptions.v")


def _coqc(folder: Path, name: str) -> str:
    command = ["coqc", "-w", "-notation-overridden,-ambiguous-paths", "-Q", ".", "Privmax", name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} was refused:\n{done.stdout}{done.stderr}")
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
        print(f"stated without a proof: {shortcut}")
    if shortcuts():
        return 1
    if absent := missing():
        print(f"not installed: {' '.join(absent)}")
        print(f"on Debian: apt-get install --no-install-recommends {' '.join(absent)}")
        return 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        assumptions = check(Path(folder))
    if arguments == ["--update"]:
        EXPECTED.write_text(assumptions, encoding="utf-8")
    expected = EXPECTED.read_text(encoding="utf-8")
    print(assumptions, end="")
    if assumptions != expected:
        print("the assumptions are not those of formal/assumptions.txt:")
        print("\n".join(difflib.unified_diff(expected.splitlines(), assumptions.splitlines())))
        return 1
    print(f"{len(theorems())} theorems checked, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
