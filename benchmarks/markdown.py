"""What the generated pages are made of: tables and texts, each under the name of the section it
fills.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Result = Mapping[str, Any]
"""A stored result, as read from results/*.json."""


@dataclass(frozen=True)
class Table:
    """A heading, a first column of names, and the rest: figures, unless it is `prose`."""

    name: str
    title: str
    head: list[str]
    rows: list[list[str]]
    prose: bool = False

    def markdown(self) -> str:
        other = "---" if self.prose else "---:"
        lines = [self.head, ["---", *[other] * (len(self.head) - 1)], *self.rows]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def section(self) -> str:
        """As it stands on its page."""
        return f"**{self.title}**\n\n{self.markdown()}"


@dataclass(frozen=True)
class Text:
    """Sentences whose numbers come from a result."""

    name: str
    text: str

    def section(self) -> str:
        """As it stands on its page."""
        return f"{self.text}\n"


def slug(text: str) -> str:
    """A name for a section."""
    return re.sub(r"\W+", "-", text.replace("^", "")).strip("-").lower()
