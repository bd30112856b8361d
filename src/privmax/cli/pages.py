"""The pages of the documentation, as `privmax help` prints them: those of docs/, and of a wheel.

A wheel has copies of them in privmax/pages (tools/wheel_pages.py makes them when it is built). A
checkout has docs/ itself.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

SHORT = ("", "howto/")
"""Folders whose pages are called by their name alone."""

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def folder() -> Path:
    """Return the folder of the pages."""
    package = Path(__file__).resolve().parents[1]
    copied = package / "pages"
    return copied if copied.is_dir() else package.parents[1] / "docs"


@cache
def topics() -> dict[str, Path]:
    """Return all pages by the name that is typed, those for users first."""
    pages = {}
    for place in ("", "howto/", "proofs/"):
        for path in sorted((folder() / place).glob("*.md")):
            if path.stem != "README":
                pages[path.stem if place in SHORT else place + path.stem] = path
            elif place == "proofs/":
                pages["proofs"] = path
    return pages


def find_page(topic: str) -> Path:
    """Return the page that a topic means, also where it is given as the path of a file.

    Raises:
        KeyError: There is no such page.

    Examples:
        >>> find_page("docs/howto/schema.md") == find_page("schema")
        True
    """
    name = topic.lower().removeprefix("docs/").removesuffix(".md")
    return topics()[name.removeprefix("howto/")]


def read_page(path: Path) -> str:
    """Return a page as text: what its links lead to is named by topic, or left out."""
    text = path.read_text(encoding="utf-8")
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_unlink(text[end : fence.start()], path), fence[0]]
        end = fence.end()
    return "".join([*parts, _unlink(text[end:], path)])


def _unlink(text: str, page: Path) -> str:
    names = {path: topic for topic, path in topics().items()}

    def name(link: re.Match[str]) -> str:
        title, target = link[1], link[2].partition("#")[0]
        topic = names.get((page.parent / target).resolve()) if target else None
        return title if topic is None else f"{title} (privmax help {topic})"

    return _LINK.sub(name, _PICTURE.sub(r"[picture: \1]", text))


def title_of(path: Path) -> str:
    """Return the heading of a page."""
    with path.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip()
