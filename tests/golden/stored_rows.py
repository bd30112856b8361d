"""Values that tests of this folder stored once, as JSON with a row per line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def read_stored(file: Path) -> dict[str, Any]:
    """The rows of a file; none where it was not written yet."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def store_rows(file: Path, rows: Mapping[str, Any]) -> None:
    """Write rows."""
    file.write_text(_lines(rows) + "\n", encoding="utf-8")


def store_groups(file: Path, groups: Mapping[str, Mapping[str, Any]]) -> None:
    """Write groups of rows."""
    parts = ",\n".join(f"{json.dumps(name)}: {_lines(rows)}" for name, rows in groups.items())
    file.write_text(f"{{\n{parts}\n}}\n", encoding="utf-8")


def _lines(rows: Mapping[str, Any]) -> str:
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in rows.items())
    return f"{{\n{lines}\n}}"
