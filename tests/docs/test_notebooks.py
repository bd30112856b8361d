"""The notebooks: stored without outputs, executed, and shown with their pictures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
TOOL = ROOT / "tools/notebooks.py"


def cells(path: Path) -> list[dict[str, object]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def run(*paths: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_there_are_four() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["itemsets", "learning", "paper", "selection"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_clean(path: Path) -> None:
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert code
    for cell in code:
        assert not cell["outputs"]
        assert cell["execution_count"] is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_code_of_a_notebook_fits_its_page(path: Path) -> None:
    for cell in cells(path):
        if cell["cell_type"] == "code":
            assert max(map(len, "".join(cell["source"]).splitlines())) <= 80


@pytest.mark.slow
def test_the_notebooks_can_be_executed() -> None:
    done = run()
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            "selection: 2 pictures",
            "itemsets: 1 pictures",
            "learning: 1 pictures",
            "paper: 0 pictures",
        ],
    ), done.stderr


@pytest.mark.slow
def test_a_cell_that_fails_is_a_failure(tmp_path: Path) -> None:
    notebook = json.loads(NOTEBOOKS[0].read_text(encoding="utf-8"))
    notebook["cells"] = notebook["cells"][:2]
    notebook["cells"][1]["source"] = ["assert 1 == 2, 'so it is seen'"]
    (tmp_path / "broken.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    done = run(tmp_path / "broken.ipynb")
    assert done.returncode != 0
    assert "so it is seen" in done.stderr


@pytest.mark.slow
def test_the_site_shows_what_the_notebooks_answer(site: Path) -> None:
    gallery = (site / "notebooks/index.html").read_text(encoding="utf-8")
    drawn = [path.stem for path in NOTEBOOKS if path.stem != "paper"]  # which shows numbers only
    for name in drawn:
        assert f'<a href="{name}.html"><img src="{name}-1.svg"' in gallery
        picture = (site / f"notebooks/{name}-1.svg").read_text(encoding="utf-8")
        assert "<svg " in picture
        assert "mathdefault" not in picture
    for path in NOTEBOOKS:
        assert f'<a href="{path.stem}.html">' in gallery
        assert (site / f"notebooks/{path.stem}.ipynb").read_bytes() == path.read_bytes()
    pages = {
        path.stem: (site / f"notebooks/{path.stem}.html").read_text(encoding="utf-8")
        for path in NOTEBOOKS
    }
    assert "rain boots" in pages["selection"].split('class="output"', 1)[1]
    assert "bread" in pages["itemsets"].split('class="output"', 1)[1]
    assert "1 if x1 &gt;= 40.0 else 0" in pages["learning"]
    for page in pages.values():
        assert "Traceback" not in page
        assert "ipykernel" not in page, "a warning shows a path"
    assert "<p>PrivacyWarning: PrivateERM was fitted 2 times" in pages["learning"]
