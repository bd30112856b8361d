"""Builds the notes of lab/notes/ as PDF with pdflatex.

    ./dev notes [NOTE]     build all notes, or one, in build/notes/

It installs nothing: where pdflatex is missing it says what Debian calls it. It needs Python alone.
What LaTeX warns of, such as a reference to nothing or a line that is too long, is an error.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTES = ROOT / "lab" / "notes"
BUILD = ROOT / "build" / "notes"
PACKAGE = "texlive-latex-base"

WARNING = re.compile(r"^(?:.*Warning:.*|Overfull .*|! .*)$", re.MULTILINE)


def notes() -> list[Path]:
    """The notes, by name."""
    return sorted(NOTES.glob("*.tex"))


def build(note: Path, folder: Path) -> list[str]:
    """Build a note in a folder, and return what LaTeX warns of."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape"]
    for _ in range(2):  # references are known in the second run
        done = subprocess.run(
            [*command, f"-output-directory={folder}", note.name],
            cwd=NOTES,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            return [line for line in done.stdout.splitlines() if line.startswith(("!", "l."))]
    log = (folder / f"{note.stem}.log").read_text(encoding="utf-8", errors="replace")
    return WARNING.findall(log)


def main(names: Sequence[str]) -> int:
    if shutil.which("pdflatex") is None:
        print("not installed: pdflatex")
        print(f"on Debian: apt-get install --no-install-recommends {PACKAGE}")
        return 1
    chosen = [note for note in notes() if not names or note.stem in names]
    if not chosen:
        print("notes:", *(note.stem for note in notes()))
        return 2
    failed = False
    for note in chosen:
        warnings = build(note, BUILD)
        failed = failed or bool(warnings)
        print(*warnings, (BUILD / f"{note.stem}.pdf").relative_to(ROOT), sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
