"""docs/explore.md, followed from top to bottom."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from privmax.cli import main
from privmax.explore.datasets import read_datasets
from privmax.samples import path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explore.md"
BLOCK = re.compile(r"^```([^\n]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SERVED = re.compile(r"Open http://127\.0\.0\.1:8765/\?key=\S+")


def check_socket(folder, block):
    """The block about a socket: what is typed, and what is printed for it."""
    typed, printed = block.replace("~", str(folder)).removeprefix("$ ").split("\n", 1)
    program = [sys.executable, "-m", "privmax", *shlex.split(typed)[1:]]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as served:
        lines = [served.stdout.readline() for _ in range(2)]
        served.terminate()
    found = "".join(lines).replace(f"{folder}/", "/home/ada/")
    assert re.sub(r"key=\S+", "key=…", found) == printed


@pytest.mark.slow
def test_the_page_works_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(path("searches"), "searches.csv")
    kinds = []
    for kind, block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        kinds.append(kind)
        if kind == "toml data.toml":
            Path("data.toml").write_text(block)
            assert read_datasets({}, "data.toml")["shop"].user == "user_id"
            continue
        if kind == "console socket":
            check_socket(tmp_path, block)
            continue
        typed, _, printed = block.replace("\\\n", "").removeprefix("$ ").partition("\n")
        words = shlex.split(typed)[1:]
        if kind == "console":
            done = CliRunner().invoke(main, words)
            assert not done.exit_code, done.output
            assert done.output.strip() == printed.strip()
            continue
        assert kind == "console explore"
        assert printed == "Open http://127.0.0.1:8765/?key=…\n"
        program = [sys.executable, "-m", "privmax", *words, "--port", "0"]
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as served:
            line = served.stdout.readline()
            served.terminate()
        assert SERVED.match(re.sub(r":\d+/", ":8765/", line))
    assert kinds.count("console explore") == 3
