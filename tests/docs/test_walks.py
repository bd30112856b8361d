"""The pages for newcomers, followed from top to bottom as tools/check_quickstart.py does, in a
folder of their own.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location(
    "check_quickstart", ROOT / "tools/check_quickstart.py"
)
quickstart = importlib.util.module_from_spec(SPEC)
sys.modules["check_quickstart"] = quickstart  # where dataclasses look for it
SPEC.loader.exec_module(quickstart)

SHELL = quickstart.shell(Path(sys.executable).parent)


@pytest.mark.slow
@pytest.mark.parametrize("page", quickstart.WALKED)
def test_a_page_works_from_top_to_bottom(page, tmp_path):
    assert quickstart.follow(page, tmp_path / "folder", SHELL, None) == []


@pytest.mark.parametrize("page", quickstart.WALKED)
def test_a_page_is_found_by_who_looks_for_it(page):
    """From the list of pages and from the menu of the site."""
    name = page.removeprefix("docs/")
    link = f"../{page}" if name == page else name
    assert f"({link})" in (ROOT / "docs/README.md").read_text(encoding="utf-8")
    assert re.search(
        rf": {re.escape(name)}$",
        (ROOT / "tools/mkdocs.yml").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
