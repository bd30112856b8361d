"""The blocks of lab/side-by-side.md that are for other libraries, each in the environment that
holds it: `./dev compare` makes the one of OpenDP and diffprivlib, `.ci/run` that of Tumult.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from privmax import samples

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location(
    "check_quickstart", ROOT / "tools/check_quickstart.py"
)
quickstart = importlib.util.module_from_spec(SPEC)
sys.modules["check_quickstart"] = quickstart  # where dataclasses look for it
SPEC.loader.exec_module(quickstart)

PAGE = (ROOT / "lab/side-by-side.md").read_text(encoding="utf-8")
PEERS = {
    "opendp": ("PRIVMAX_COMPARE", ".venv-compare", "opendp"),
    "diffprivlib": ("PRIVMAX_COMPARE", ".venv-compare", "diffprivlib"),
    "tumult": ("PRIVMAX_TUMULT", ".venv-tumult", "tmlt.analytics"),
}
"""Where a peer is: the variable that names its Python, its environment here, its module."""

BLOCKS = re.findall(r"^```python (\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = [(file, text) for _, file, text in quickstart.BLOCK.findall(PAGE) if file]
TASKS = PAGE.count("\n## ") - 1  # the last section is a summary
LIMIT = 900
"""Seconds that all blocks of a peer may take; Spark starts slowly on a busy machine."""


def interpreter(peer):
    """The Python that has a peer. Where there is none its tests are skipped; in .ci/run they fail,
    unless it said that the peer does not install there.
    """
    variable, environment, module = PEERS[peer]
    python = os.environ.get(variable, str(ROOT / environment / "bin/python"))
    if python == "none":
        pytest.skip(f"{module} does not install here, as .ci/run said")
    look = [python, "-c", f"import {module}"]
    if (
        Path(python).exists()
        and subprocess.run(look, capture_output=True, check=False).returncode == 0
    ):
        return python
    if os.environ.get("PRIVMAX_TEST_ENGINES") == "all":
        pytest.fail(f"{module} is not installed: see .ci/run")
    return pytest.skip(f"{module} is not installed: ./dev compare, or {variable}=PYTHON")


def program(peer):
    """All blocks of a peer, each as a function of its own would run: with a fresh set of names."""
    parts = [text for kind, text in BLOCKS if kind == peer]
    return "\n".join(
        ["done = 0", *(f"exec({text!r}, {{}}); done += 1" for text in parts), "print(done)"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("peer", PEERS)
def test_the_blocks_of_a_peer_run(peer, tmp_path):
    python = interpreter(peer)
    for name in ("searches", "members"):
        shutil.copy(samples.path(name), tmp_path / f"{name}.csv")
    for file, text in FILES:
        (tmp_path / file).write_text(text, encoding="utf-8")
    others = ("PYTHON", "PYSPARK", "SPARK")  # a Spark of ours is another than that of a peer
    settings = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    settings |= {"PYTHONPATH": str(tmp_path), "PYSPARK_PYTHON": python}
    done = subprocess.run(
        [python, "-c", program(peer)],
        cwd=tmp_path,
        env=settings,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) == len([kind for kind, _ in BLOCKS if kind == peer]) > 0


def test_every_task_is_solved_or_said_to_be_impossible():
    assert TASKS == 5
    sections = PAGE.split("\n## ")[1 : 1 + TASKS]
    solved = {
        peer: [f"```python{peer}\n" in section for section in sections]
        for peer in ("", " opendp", " diffprivlib", " tumult")
    }
    assert solved == {
        "": [True, True, True, True, False],
        " opendp": [True] * 5,
        " diffprivlib": [True, True, False, True, True],
        " tumult": [True, False, True, True, True],
    }
    assert "diffprivlib has no mechanism for this" in sections[2]
    assert "With Tumult, take the two largest" in sections[1]
    assert "**privmax cannot do this.**" in sections[4]


def test_versions_are_those_that_are_pinned():
    locked = (ROOT / "locks/requirements-compare.lock").read_text(encoding="utf-8")
    for name, shown in re.findall(r"(OpenDP|diffprivlib) (\d+\.\d+)", PAGE):
        assert f"\n{name.lower()}=={shown}." in f"\n{locked}"
    (tumult,) = re.findall(r"Tumult Analytics (\d+\.\d+)", PAGE)
    assert f"tmlt.analytics=={tumult}." in (ROOT / ".ci/run").read_text(encoding="utf-8")
