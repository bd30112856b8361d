"""Copies the pages of docs/ into a wheel when it is built, for `privmax help`: a hook of hatchling.

An editable installation gets no copies: there, privmax reads docs/ itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS = ("", "howto", "proofs")
"""Folders of docs/ whose pages `privmax help` prints."""


class PagesHook(BuildHookInterface[Any]):
    """Adds the pages to the files of a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds; `version` is "standard" or "editable"."""
        if version == "editable":
            return
        docs = Path(self.root) / "docs"
        for folder in FOLDERS:
            for path in sorted((docs / folder).glob("*.md")):
                place = path.relative_to(docs).as_posix()
                build_data["force_include"][str(path)] = f"privmax/pages/{place}"
