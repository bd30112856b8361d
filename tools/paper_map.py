"""The map of the paper, docs/paper-map.md: its blocks are run, what they print is written below
them, and the same becomes a notebook.
"""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "paper-map.md"
CODE = re.compile(r"^```python map\n(.*?)^```$\n(\n```text printed\n.*?^```$\n)?", re.M | re.S)
LINK = re.compile(r"\]\((?!#|https?:)")
NOTEBOOK = "The page is also a [notebook](notebooks/paper.ipynb). "


def page() -> str:
    """The page with what its blocks print now. They share their names, from top to bottom."""
    names: dict[str, object] = {}

    def run(block: re.Match[str]) -> str:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(block[1], PAGE.name, "exec"), names)
        shown = printed.getvalue()
        below = f"\n```text printed\n{shown}```\n" if shown else ""
        return f"```python map\n{block[1]}```\n{below}"

    return CODE.sub(run, PAGE.read_text(encoding="utf-8"))


def notebook() -> str:
    """The page as a notebook without outputs; links lead out of the folder of notebooks."""
    cells: list[dict[str, object]] = []
    text, end = PAGE.read_text(encoding="utf-8").replace(NOTEBOOK, ""), 0
    for block in [*CODE.finditer(text), None]:
        words = text[end : block.start() if block else len(text)].strip()
        if words:
            cells.append({"cell_type": "markdown", "source": LINK.sub("](../", words)})
        if block:
            code: dict[str, object] = {"cell_type": "code", "source": block[1].rstrip()}
            cells.append(code | {"execution_count": None, "outputs": []})
            end = block.end()
    for number, cell in enumerate(cells, 1):
        lines = str(cell["source"]).splitlines(keepends=True)
        cell |= {"id": f"paper-{number}", "metadata": {}, "source": lines}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    found = {
        "cells": [dict(sorted(cell.items())) for cell in cells],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"
