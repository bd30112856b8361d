"""Which tests `./dev test` runs: the rule in `tests/conftest.py`, on three tests that do
nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = """
[pytest]
testpaths = tests
markers =
    slow
    engines
"""

TESTS = """
import pytest

def test_quick(): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.engines
def test_engines(): pass
"""

EVERY = {"quick", "slow", "engines"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "tests").mkdir()
    (folder / "pytest.ini").write_text(CONFIG, encoding="utf-8")
    (folder / "tests/test_all.py").write_text(TESTS, encoding="utf-8")
    (folder / "tools").mkdir()
    root = Path(__file__).parents[2]
    for name in ("tests/conftest.py", "tools/servers.py"):  # the latter is imported by the former
        shutil.copy(root / name, folder / name)
    return folder


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {"quick"}),
        ("-n 1 -k test", {"quick"}),
        ("--all -n 1", EVERY),
        ("tests", EVERY),
        ("tests/test_all.py::test_engines", {"engines"}),
        ("-m engines", {"engines"}),
    ],
)
def test_what_runs(project: Path, arguments: str, expected: set[str]) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-p",
        "xdist.plugin",
        "-p",
        "no:cacheprovider",
        *arguments.split(),
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # starts sooner

    run = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stdout + run.stderr
    passed = re.findall(r"::test_(\w+) PASSED|PASSED .*::test_(\w+)", run.stdout)
    assert {first or second for first, second in passed} == expected
