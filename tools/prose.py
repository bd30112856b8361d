"""Checks the prose that people read: pages, docstrings, help and messages.

./dev python tools/prose.py            every page and every file of the package
./dev python tools/prose.py FILE...    these alone

proselint brings its own checks. Its configuration only turns those on and off, so the house
vocabulary in tools/words.toml is made into checks of proselint's own types here. Code is left out:
blocks, what stands in backticks, and addresses.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from proselint.checks import __register__ as proselint_checks
from proselint.registry.checks import Check
from proselint.registry.checks.types import PreferredForms

ROOT = Path(__file__).resolve().parent.parent
WORDS = Path(__file__).with_name("words.toml")

PAGES = (
    "README.md",
    "CHANGELOG.md",
    "docs/**/*.md",
    "docs/notebooks/*.ipynb",
    "lab/*.md",
    "src/ARCHITECTURE.md",
    "tests/README.md",
    "tools/README.md",
)
LEFT_OUT = (
    "lab/head-to-head.md",  # tables of results
    "lab/faults.md",  # a list of old faults, in the words of their time
    "src/privmax/ledger/postgres_schema.py",  # SQL
    "src/privmax/ledger/checks.py",  # SQL
)

OWN_CHECKS = (
    "cliches.hell",
    "malapropisms",
    "mixed_metaphors",
    "mondegreens",
    "needless_variants",
    "nonwords",
    "oxymorons",
)
"""Checks of proselint that suit technical prose. Those of typography would change quotes and dashes
in what commands print; that of repeated words takes columns of tables for repetitions.
"""

CODE = re.compile(
    r"^ *(```|~~~)[^\n]*\n.*?^ *\1 *$"  # a block
    r"|`[^`\n]+`"  # code in a sentence
    r"|\$\$.*?\$\$|\$[^$\n]+\$"  # mathematics
    r"|\]\([^)\s]*\)|https?://\S+|<[^>\n]*>"  # addresses, markup
    r"|^\s*(?:>>>|\.\.\.) .*$",  # examples in docstrings
    re.MULTILINE | re.DOTALL,
)

TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
"""The parts of a template that are filled in, decide or note."""

_BLANK = re.compile(r"\n\s*\n\s*|\s*\n\s*(?=[*|#-])|(?<=\S) {2,}(?=\S)|\s+")


class Text(NamedTuple):
    """Some prose, and where it begins."""

    file: Path
    line: int
    prose: str
    is_docstring: bool = False


class Fault(NamedTuple):
    """A fault, and where it is."""

    file: Path
    line: int
    found: str
    message: str

    def __str__(self) -> str:
        place = self.file.relative_to(ROOT) if self.file.is_relative_to(ROOT) else self.file
        return f"{place}:{self.line}: {self.found!r}: {self.message}"


def house_checks() -> list[Check]:
    """The vocabulary of tools/words.toml, as checks of proselint."""
    return [
        Check(
            check_type=PreferredForms(items=items),
            path=f"privmax.{name}",
            message='Write "{}".',
        )
        for name, items in _vocabulary().items()
        if name != "openers"
    ]


def openers() -> dict[re.Pattern[str], str]:
    """Words that docstrings must not begin with, and what to write instead."""
    return {re.compile(words): better for words, better in _vocabulary()["openers"].items()}


def _vocabulary() -> dict[str, dict[str, str]]:
    return tomllib.loads(WORDS.read_text(encoding="utf-8"))


def own_checks() -> list[Check]:
    """The checks that proselint brings, of those that suit."""
    return [one for one in proselint_checks if any(map(one.matches_partial, OWN_CHECKS))]


def texts(file: Path) -> Iterator[Text]:
    """The prose of a file, without code."""
    content = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        yield from _strings(file, content)
    elif file.suffix == ".ipynb":
        for cell in json.loads(content)["cells"]:
            if cell["cell_type"] == "markdown":
                yield Text(file, 1, _without_code("".join(cell["source"])))
    else:
        if file.name == "CHANGELOG.md":  # older sections are history
            second = re.search(r"^## ", content.partition("\n## ")[2], re.MULTILINE)
            first = len(content.partition("\n## ")[0]) + 4
            content = content[: first + second.start()] if second else content
        if file.suffix == ".html":
            content = _blank_out(TEMPLATE, content)
        yield Text(file, 1, _without_code(content))


def _strings(file: Path, content: str) -> Iterator[Text]:
    """Docstrings, and text of three words or more: help, messages, what pages say."""
    tree = ast.parse(content)
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [
                str(one.value) if isinstance(one, ast.Constant) else "…" for one in node.values
            ]
            yield Text(file, node.lineno, _without_code("".join(parts)))
        elif isinstance(node, ast.Constant) and (
            node in docstrings or len(str(node.value).split()) > 2
        ):
            prose = _without_code(str(node.value))
            yield Text(file, node.lineno, prose, is_docstring=node in docstrings)


def _without_code(text: str) -> str:
    """The text with code blanked out; lines stay where they are."""
    return _blank_out(CODE, text)


def _blank_out(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def faults(file: Path, checks: Sequence[Check]) -> list[Fault]:
    """The faults in the prose of a file."""
    found = []
    instead = openers()
    for text in texts(file):
        for opener, better in instead.items():
            if text.is_docstring and (begins := opener.match(text.prose)):
                message = f'Begin with "{better}".'
                found.append(Fault(file, text.line, begins[0], message))
        prose, places = flow(text.prose)
        for check in checks:
            for result in check.check_with_flags(prose):
                start, end = result.span
                line = text.line + text.prose[: places[min(start + 1, end - 1)]].count("\n")
                message = " ".join(result.message.split())
                found.append(Fault(file, line, prose[start:end].strip(), message))
    return sorted(set(found))


def flow(text: str) -> tuple[str, list[int]]:
    """The text with each paragraph on one line, and where every character of it was.

    Examples:
        >>> flow("is paid\\n   for.")[0].strip()
        'is paid for.'
    """
    pieces: list[str] = ["\n"]  # proselint looks for a character before and after a word
    places = [0]
    done = 0
    for blank in _BLANK.finditer(text):
        new = " " if re.fullmatch(r" |\s*\n\s*", blank[0]) else " | "
        if "\n" in blank[0] and (blank[0].count("\n") > 1 or text[blank.end() :][:1] in "*|#-"):
            new = " | "
        pieces += [text[done : blank.start()], new]
        places += [*range(done, blank.start()), *[blank.start()] * len(new)]
        done = blank.end()
    pieces += [text[done:], "\n"]
    places += [*range(done, len(text)), len(text)]
    return "".join(pieces), places


def files() -> list[Path]:
    """Everything that is checked."""
    pages = [page for pattern in PAGES for page in sorted(ROOT.glob(pattern))]
    left_out = {ROOT / name for name in LEFT_OUT}
    sources = sorted((ROOT / "src/privmax").rglob("*.py"))
    templates = sorted((ROOT / "src/privmax").rglob("templates/*.html"))
    return [one for one in [*pages, *sources, *templates] if one not in left_out]


def main(arguments: Sequence[str]) -> int:
    checks = [*house_checks(), *own_checks()]
    found = [fault for file in map(Path, arguments or files()) for fault in faults(file, checks)]
    for fault in found:
        print(fault)
    print(f"{len(found)} faults" if found else "the prose is plain")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
