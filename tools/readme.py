"""Makes the description of the package from README.md when it is built: a hook of hatchling.

A package index shows the description without the files of the repository, and drops pictures that
are embedded. So a picture becomes the table that lies beside it (NAME.txt for NAME.svg), and a link
to a file becomes the name of the file, which the source distribution holds.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^!\[[^\]]*\]\(([^)\s]+)\)$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\((?![a-z]+:)([^)\s#]+)(?:#[^)\s]*)?\)")


class ReadmeHook(MetadataHookInterface):
    """Sets `readme`, which pyproject.toml declares dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling with the table [project]."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": standalone(text, Path(self.root)),
        }


def standalone(text: str, root: Path) -> str:
    """A page that needs no other file. `root` is the folder that its links start from."""
    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [_standalone(text[end : fence.start()], root), fence[0]]
        end = fence.end()
    return "".join([*parts, _standalone(text[end:], root)])


def _standalone(text: str, root: Path) -> str:
    """The same of text outside blocks of code."""

    def table(picture: re.Match[str]) -> str:
        file = (root / picture[1]).with_suffix(".txt")
        if not file.is_file():
            raise FileNotFoundError(
                f"README.md shows {picture[1]}, which a package index cannot show. "
                f"Write what it shows as text to {file.relative_to(root)}."
            )
        return f"```text\n{file.read_text(encoding='utf-8')}```"

    return LINK.sub(r"\1 (`\2`)", PICTURE.sub(table, text))
