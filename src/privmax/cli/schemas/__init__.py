"""The JSON Schemas of what commands print with --json.

One file per command, such as select.json and budget-show.json; check.json with --check;
refusal.json at exit 3.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Return the names of all schemas."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def schema(name: str) -> dict[str, Any]:
    """Return a schema by its name: that of its command, with dashes for blanks."""
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return content
