"""Keeps the proof pages and the code they cover together.

    ./dev python tools/proofs.py                 lists pages whose code changed after they were read
    ./dev python tools/proofs.py accept PAGE …   records that the pages (all: every one) were read
                                                 against the code
    ./dev python tools/proofs.py move OLD NEW    lets the pages follow moved or renamed code

A fingerprint is a hash of a function's or class's syntax tree without docstrings; comments and
layout do not count. `formal.FILE.NAME` is a definition in formal/FILE.v, and its fingerprint a hash
of its text.

docs/proofs/machine-checked.md covers code and definitions in formal/ at once: that they say the
same is what tests/exact/test_formal.py compares, and `accept machine-checked` runs it first.

`move` takes the dotted names of a function, method, class or module, before and after. It compares
the syntax tree that stood under OLD at a revision (`--since`, default HEAD) with the one that now
stands under NEW, and rewrites the rows of the pages if nothing changed but the place and the names
of the definitions themselves. `--rename before=after`, which may be repeated, allows one identifier
to have changed too, everywhere in the tree. `--locals` allows the names of local variables and of
parameters to have changed, each within its function (tools/scopes.py): that callers name the new
parameters is what mypy checks. If anything else differs, nothing is rewritten: read the page again,
then accept. OLD and NEW may be equal, where only identifiers changed.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

from scopes import number_locals  # noqa: E402  # the tools are scripts, not a package

PAGES = ROOT / "docs" / "proofs"
ROW = re.compile(r"^\| `((?:privmax|formal)\.[\w.]+)` \| `([^`]+)` \|$", re.MULTILINE)
COMPARISON = "tests/exact/test_formal.py"


def pages() -> list[Path]:
    """Every proof page."""
    return sorted(page for page in PAGES.glob("*.md") if page.name != "README.md")


def covered(page: Path) -> dict[str, str]:
    """The functions a page says it covers, each with the fingerprint it was read at."""
    return dict(ROW.findall(page.read_text(encoding="utf-8")))


def fingerprint(name: str) -> str:
    """The fingerprint of a function, method or class by its dotted name, as it is now."""
    if name.startswith("formal."):
        return hashlib.sha256(_formal(name).encode()).hexdigest()[:12]
    return _hash(_definition(name, _present)[0])


def fingerprint_at(revision: str, name: str) -> str:
    """The same, as it was at a revision."""
    return _hash(_definition(name, _past(revision))[0])


def stale(page: Path) -> list[str]:
    """The functions a page covers that are no longer what was read."""
    return [name for name, read_at in covered(page).items() if fingerprint(name) != read_at]


def accept(page: Path) -> None:
    """Record the present fingerprints."""
    text = page.read_text(encoding="utf-8")
    page.write_text(
        ROW.sub(lambda row: f"| `{row[1]}` | `{fingerprint(row[1])}` |", text), encoding="utf-8"
    )


def move(
    old: str,
    new: str,
    *,
    since: str = "HEAD",
    rename: Mapping[str, str] | None = None,
    any_locals: bool = False,
) -> dict[str, str]:
    """Rewrite the rows of OLD, or of everything in it, to NEW, and return what became what.

    Raises:
        LookupError: no page covers OLD, or the code is not where the names say.
        ValueError: the code did change, or a page was not up to date at the revision.
    """
    moved: dict[str, str] = {}
    rows: dict[str, str] = {}
    for page in pages():
        for name, read_at in covered(page).items():
            if name != old and not name.startswith(f"{old}."):
                continue
            if read_at != fingerprint_at(since, name):
                raise ValueError(f"{page.name}: {name} at {since} is not what the page was read at")
            moved[name] = new + name.removeprefix(old)
            _prove_unchanged(name, moved[name], since, rename or {}, any_locals=any_locals)
            row = f"| `{moved[name]}` | `{fingerprint(moved[name])}` |"
            rows[f"| `{name}` | `{read_at}` |"] = row
    if not moved:
        raise LookupError(f"{old}: no page covers it")
    for page in pages():
        text = page.read_text(encoding="utf-8")
        page.write_text(ROW.sub(lambda row: rows.get(row[0], row[0]), text), encoding="utf-8")
    return moved


def _prove_unchanged(
    old: str, new: str, since: str, rename: Mapping[str, str], *, any_locals: bool
) -> None:
    """Refuse unless the tree under `old` at the revision, with some identifiers renamed, is the one
    under `new` now.
    """
    before, old_path = _definition(old, _past(since))
    after, new_path = _definition(new, _present)
    if any_locals:
        before, after = number_locals(before), number_locals(after)
    own = {was: now for was, now in zip(old_path, new_path, strict=False) if was != now}
    names = {**rename, **own}
    known = set(_identifiers(before))
    for was, now in names.items():  # two identifiers that become one would hide a change
        if was in known and now in known and now not in names:
            raise ValueError(f"{old}: it already has a {now}, so {was} cannot be told from it")
    if len(set(names.values())) < len(names):
        raise ValueError(f"{old}: two identifiers have become one")
    if _dump(before, names) != _dump(after):
        raise ValueError(f"{new} is not the code that was {old} at {since}: read its page again")


Reader = Callable[[Path], str | None]
"""The text of a file by its path in the project, or None where there is no such file."""


def _present(path: Path) -> str | None:
    return (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else None


def _past(revision: str) -> Reader:
    def read(path: Path) -> str | None:
        shown = subprocess.run(
            ["git", "-C", str(ROOT), "show", f"{revision}:{path.as_posix()}"],
            capture_output=True,
            check=False,
        )
        return None if shown.returncode else shown.stdout.decode("utf-8")

    return read


def _definition(name: str, read: Reader) -> tuple[ast.AST, list[str]]:
    """The syntax tree of a dotted name, and its path in its module."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        text = read(Path("src", *parts[:length]).with_suffix(".py"))
        if text is not None:
            node: ast.AST = ast.parse(text)
            for part in parts[length:]:
                node = _member(node, part, name)
            return node, parts[length:]
    raise LookupError(f"{name}: no such module")


def _member(node: ast.AST, part: str, name: str) -> ast.AST:
    for child in getattr(node, "body", []):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)) and child.name == part:
            return child
    raise LookupError(f"{name}: not found")


def _formal(name: str) -> str:
    """The text of a definition in formal/, without comments and layout."""
    _, file, definition = name.split(".")
    text = _present(Path("formal", f"{file}.v"))
    if text is None:
        raise LookupError(f"{name}: no such file")
    bare = re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)
    found = re.search(
        rf"^(?:Definition|Fixpoint|Inductive) {definition}\b.*?\.$", bare, re.MULTILINE | re.DOTALL
    )
    if found is None:
        raise LookupError(f"{name}: not found")
    return " ".join(found[0].split())


def _hash(node: ast.AST) -> str:
    return hashlib.sha256(_dump(node).encode()).hexdigest()[:12]


def _dump(node: object, rename: Mapping[str, str] | None = None) -> str:
    """The syntax tree as text, the same under every version of Python: empty and absent fields do
    not show.
    """
    names = rename or {}
    if isinstance(node, list):
        return "[" + ",".join(_dump(part, names) for part in node) + "]"
    if not isinstance(node, ast.AST):
        return repr(names.get(node, node) if isinstance(node, str) else node)
    shown = []
    inner = {} if isinstance(node, ast.Constant) else names  # text is no identifier
    for name, value in _fields(node):
        shown.append(f"{name}={_dump(value, inner)}")
    return f"{type(node).__name__}({','.join(shown)})"


def _fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    """Its fields that hold something, without the docstring."""
    documented = (
        isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None
    )
    for name, value in ast.iter_fields(node):
        kept = value[1:] if name == "body" and documented else value
        if kept not in (None, []):
            yield name, kept


def _identifiers(node: object) -> Iterator[str]:
    if isinstance(node, list):
        for part in node:
            yield from _identifiers(part)
    elif isinstance(node, str):
        yield node
    elif isinstance(node, ast.AST) and not isinstance(node, ast.Constant):
        for _, value in _fields(node):
            yield from _identifiers(value)


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["accept"]:
        names = arguments[1:]
        chosen = (
            pages() if names == ["all"] else [PAGES / f"{Path(name).stem}.md" for name in names]
        )
        if any(name.startswith("formal.") for page in chosen for name in covered(page)):
            compared = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", COMPARISON], check=False
            )
            if compared.returncode:
                print(f"nothing was accepted: the code is not what formal/ says, see {COMPARISON}")
                return 1
        for page in chosen:
            accept(page)
        return 0
    if arguments[:1] == ["move"]:
        return _move(arguments[1:])
    changed = {page.name: names for page in pages() if (names := stale(page))}
    for name, functions in changed.items():
        print(f"{name}: read it again, changed: {', '.join(functions)}")
    return 1 if changed else 0


def _move(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/proofs.py move")
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--since", default="HEAD")
    parser.add_argument("--rename", action="append", default=[], metavar="BEFORE=AFTER")
    parser.add_argument("--locals", action="store_true")
    options = parser.parse_args(arguments)
    rename = dict(pair.split("=", 1) for pair in options.rename)
    try:
        moved = move(
            options.old,
            options.new,
            since=options.since,
            rename=rename,
            any_locals=options.locals,
        )
    except (LookupError, ValueError) as error:
        print(error)
        return 1
    for old, new in moved.items():
        print(f"{old} → {new}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
