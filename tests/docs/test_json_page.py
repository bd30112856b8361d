"""docs/json.md names and describes every field of every schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privmax.cli import schemas

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs/json.md").read_text(encoding="utf-8").split())


def fields(part: Any) -> Iterator[tuple[str, str]]:
    if isinstance(part, dict):
        for name, field in part.get("properties", {}).items():
            yield name, field["description"]
        for name, below in part.items():
            if name != "cost":
                yield from fields(below)
    elif isinstance(part, list):
        for below in part:
            yield from fields(below)


def test_the_page_names_and_describes_every_field_of_every_schema():
    for schema in map(schemas.schema, schemas.names()):
        heading = schema["title"].replace("--by", "by group")
        assert f"`{schema['title']}`" in PAGE or f"### {heading} " in PAGE
        for name, text in fields(schema):
            assert f"`{name}`" in PAGE or f".{name}`" in PAGE, (schema["title"], name)
            assert text in PAGE, (schema["title"], name)
