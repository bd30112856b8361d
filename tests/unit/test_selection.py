"""Which tests `./dev test` runs: the rule in `tests/conftest.py`, on three tests that do
nothing; and that it does not read what it leaves out.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

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


LEFT_OUT = "raise AssertionError('read')"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # starts sooner
    folder = pytester.path
    (folder / "pytest.ini").write_text(CONFIG, encoding="utf-8")
    root = Path(__file__).parents[2]
    for name in ("tests/conftest.py", "tools/offline.py", "tools/servers.py"):  # it imports them
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(root / name, folder / name)
    (folder / "tests/test_all.py").write_text(TESTS, encoding="utf-8")
    return folder


def found(output: str) -> set[str]:
    passed = re.findall(r"::test_(\w+) PASSED|PASSED .*::test_(\w+)", output)
    return {first or second for first, second in passed}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {"quick"}),
        ("--all", EVERY),
        ("tests", EVERY),
        ("tests/test_all.py::test_engines", {"engines"}),
        ("-m engines", {"engines"}),
    ],
)
def test_what_runs(
    project: Path, pytester: pytest.Pytester, arguments: str, expected: set[str]
) -> None:
    options = ["-v", "-p", "no:cacheprovider"]
    run = pytester.runpytest_inprocess(*options, *arguments.split())
    assert run.ret == 0
    assert found(run.stdout.str()) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"), [("-n 1 -k test", {"quick"}), ("--all -n 1", EVERY)]
)
def test_what_runs_in_other_processes(project: Path, arguments: str, expected: set[str]) -> None:
    options = ["-v", "-p", "xdist.plugin", "-p", "no:cacheprovider", *arguments.split()]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert found(run.stdout) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "errors"), [("", 0), ("-m slow", 1)])
def test_engines_are_read_where_they_may_run(
    project: Path, pytester: pytest.Pytester, arguments: str, errors: int
) -> None:
    (project / "tests/engines").mkdir()
    (project / "tests/engines/test_one.py").write_text(LEFT_OUT, encoding="utf-8")
    run = pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments.split())
    assert run.parseoutcomes().get("errors", 0) == errors
