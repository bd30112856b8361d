"""Which Pythons `.ci/run` works with: those that `.ci/pythons` finds, here among pretended ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PYTHONS = Path(__file__).parents[2] / ".ci/pythons"


@pytest.fixture
def found(tmp_path):
    """Calls .ci/pythons where there are only interpreters that answer as told."""

    def found(interpreters):
        for name, answer in interpreters.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/bin/sh\n{answer}\n", encoding="utf-8")
            path.chmod(0o755)
        environment = {"PATH": str(tmp_path / "bin"), "PYENV_ROOT": str(tmp_path / "pyenv")}
        command = [sys.executable, PYTHONS]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return found


def test_the_oldest_and_the_newest_are_taken_pyenvs_too(found):
    run = found(
        {
            "bin/python3": "echo 3 12 1 /twelve",
            "bin/python3.11": "echo 3 11 2 /eleven",
            "pyenv/versions/3.11.7/bin/python3": "echo 3 11 7 /later eleven",
            "pyenv/versions/3.13.0/bin/python3": "echo 3 13 0 /thirteen",
            "pyenv/versions/3.10.9/bin/python3": "echo 3 10 9 /too old",
            "pyenv/versions/3.99.0/bin/python3": "echo 3 99 0 /too new",
            "pyenv/versions/broken/bin/python3": "exit 1",
            "pyenv/versions/pypy/bin/python3": "true",
        }
    )
    assert run.stdout.splitlines() == ["/later eleven", "/thirteen"], run.stderr


def test_one_is_enough(found):
    assert found({"bin/python3": "echo 3 12 1 /twelve"}).stdout.splitlines() == ["/twelve"]


def test_none_is_an_error(found):
    run = found({"bin/python3": "echo 3 8 1 /eight"})
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("no Python of the versions 3.11, ")
