"""Keeps the proof pages and the code they cover together.

    ./dev python tools/proofs.py                 lists pages whose code changed after they were read
    ./dev python tools/proofs.py accept PAGE …   records that the pages (all: every one) were read
                                                 against the code

A fingerprint is a hash of a function's or class's syntax tree without docstrings; comments and
layout do not count.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "proofs"
ROW = re.compile(r"^\| `(privmax\.[\w.]+)` \| `([0-9a-f]{12}|-)` \|$", re.MULTILINE)


def pages() -> list[Path]:
    """Every proof page."""
    return sorted(page for page in PAGES.glob("*.md") if page.name != "README.md")


def covered(page: Path) -> dict[str, str]:
    """The functions a page says it covers, each with the fingerprint it was read at."""
    return dict(ROW.findall(page.read_text(encoding="utf-8")))


def fingerprint(name: str) -> str:
    """The fingerprint of a function, method or class by its dotted name, as it is now."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        path = ROOT.joinpath("src", *parts[:length]).with_suffix(".py")
        if path.is_file():
            node: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
            for part in parts[length:]:
                node = _member(node, part, name)
            return hashlib.sha256(_dump(node).encode()).hexdigest()[:12]
    raise LookupError(f"{name}: no such module")


def stale(page: Path) -> list[str]:
    """The functions a page covers that are no longer what was read."""
    return [name for name, read_at in covered(page).items() if fingerprint(name) != read_at]


def accept(page: Path) -> None:
    """Record the present fingerprints."""
    text = page.read_text(encoding="utf-8")
    page.write_text(
        ROW.sub(lambda row: f"| `{row[1]}` | `{fingerprint(row[1])}` |", text), encoding="utf-8"
    )


def _member(node: ast.AST, part: str, name: str) -> ast.AST:
    for child in getattr(node, "body", []):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)) and child.name == part:
            return child
    raise LookupError(f"{name}: not found")


def _dump(node: object) -> str:
    """The syntax tree as text, the same under every version of Python: empty and absent fields do
    not show.
    """
    if isinstance(node, list):
        return "[" + ",".join(map(_dump, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    shown = []
    for name, value in ast.iter_fields(node):
        documented = (
            isinstance(node, (ast.FunctionDef, ast.ClassDef))
            and ast.get_docstring(node) is not None
        )
        kept = value[1:] if name == "body" and documented else value
        if kept not in (None, []):
            shown.append(f"{name}={_dump(kept)}")
    return f"{type(node).__name__}({','.join(shown)})"


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["accept"]:
        names = arguments[1:]
        chosen = (
            pages() if names == ["all"] else [PAGES / f"{Path(name).stem}.md" for name in names]
        )
        for page in chosen:
            accept(page)
        return 0
    changed = {page.name: names for page in pages() if (names := stale(page))}
    for name, functions in changed.items():
        print(f"{name}: read it again, changed: {', '.join(functions)}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
