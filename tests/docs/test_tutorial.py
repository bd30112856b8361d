"""The tutorial, followed to the letter in a folder of its own. `tools/check_quickstart.py` does the
same in a new environment.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location(
    "quickstart_of_the_tutorial", ROOT / "tools/check_quickstart.py"
)
quickstart = importlib.util.module_from_spec(SPEC)
sys.modules["quickstart_of_the_tutorial"] = quickstart  # where dataclasses look for it
SPEC.loader.exec_module(quickstart)

PAGE = "docs/tutorial.md"


@pytest.mark.slow
def test_the_tutorial_works_from_top_to_bottom(tmp_path):
    run = quickstart.shell(Path(sys.executable).parent)
    assert quickstart.follow(PAGE, tmp_path / "here", run, None) == []
    assert {"leads.svg", "pair.html", "spending.svg", "shop.db"} <= {
        path.name for path in tmp_path.glob("here/*")
    }


def test_what_a_page_shows_is_compared_with_what_is_printed(tmp_path, monkeypatch):
    (tmp_path / "page.md").write_text(
        "```console\n$ echo one … two\none … three\n```\n", encoding="utf-8"
    )
    monkeypatch.setattr(quickstart, "ROOT", tmp_path)
    (wrong,) = quickstart.follow(
        "page.md", tmp_path / "here", quickstart.shell(Path(sys.executable).parent), None
    )
    assert "one … two" in wrong
