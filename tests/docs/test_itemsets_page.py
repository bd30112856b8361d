"""docs/itemsets.md: its commands give what it shows."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
from pathlib import Path

from click.testing import CliRunner

from privmax.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs/itemsets.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_page_works_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = 0
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind != "console":
            continue
        lines = text.splitlines()
        while lines:
            command = lines.pop(0).removeprefix("$ ")
            shown = list(itertools.takewhile(lambda line: not line.startswith("$ "), lines))
            del lines[: len(shown)]
            if command.startswith("privmax "):
                run = CliRunner().invoke(main, shlex.split(command.removeprefix("privmax ")))
                assert (run.output.splitlines(), run.exit_code) == (shown, 0)
                ran += 1
            else:
                assert command.startswith("printf ")
                subprocess.run(["sh", "-c", command], check=True)
    assert ran == 2
