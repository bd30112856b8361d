"""How docstrings are shown on the site: an extension of Griffe, which mkdocstrings reads the
package with.

Arguments and fields are described in two columns, which Markdown would run together: they become a
list of definitions. A public function or class ends with where its source, and for a mechanism its
proof and its audit, can be read.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from griffe import Docstring, Extension, Object

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

import mechanisms  # noqa: E402  # the tools are scripts, not a package

ROW = re.compile(r"(\S+(?: \S+){0,3}?) {2,}(\S.*)")
NAME = re.compile(r"[A-Za-z_]\w*")
PAGE = re.compile(r"(?<![`\w/(])docs/[\w/-]+\.md")
CHECKED = {
    row.path: row for row in (*mechanisms.selectors(), *mechanisms.blocks(), *mechanisms.methods())
}


class Docstrings(Extension):
    """What mkdocs.yml names."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = shown(obj.docstring.value)
        if (
            (obj.is_class or obj.is_function)
            and obj.parent is not None
            and obj.parent.is_module
            and obj.is_public
        ):
            if obj.docstring is None:
                obj.docstring = Docstring("", parent=obj)
            obj.docstring.value += "\n\n" + _where(obj)


def shown(text: str) -> str:
    """The docstring as Markdown."""
    return "\n\n".join(map(_block, PAGE.sub(r"`\g<0>`", text).split("\n\n")))


def _block(text: str) -> str:
    """A paragraph; one in two columns as definitions. Lines that begin further right go on with the
    row above.
    """
    rows: list[list[str]] = []
    for line in text.splitlines():
        begun = ROW.fullmatch(line)
        if begun:
            rows.append([begun[1], begun[2]])
        elif rows and line.startswith("  "):
            rows[-1].append(line.strip())
        else:
            return text
    return "\n\n".join(f"{_term(row[0])}\n:   " + "\n    ".join(row[1:]) for row in rows)


def _term(text: str) -> str:
    return f"`{text}`" if NAME.fullmatch(text) else text.removesuffix(":")


def _where(obj: Object) -> str:
    source = Path(str(obj.filepath)).resolve().relative_to(ROOT).as_posix()
    links = [f"Source: `{source}::{obj.name}`"]
    if obj.path in CHECKED:
        links = [
            f"Proof: `{CHECKED[obj.path].proof}`",
            *links,
            f"Audit: `{CHECKED[obj.path].audit}`",
        ]
    return "<br>".join(links)
