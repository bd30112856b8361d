"""Every Python block and command of the documentation runs, links lead somewhere, tables are what the code says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from privmax import DYADIC, Exponential, LargeMargin, PermuteAndFlip, SharpMargin
from privmax.privacy import REPLACE

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "tests/README.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(kind):
    return [
        pytest.param(
            text, id=f"{page.relative_to(ROOT)}:{page.read_text(encoding='utf-8')[: match.start()].count(chr(10)) + 1}"
        )
        for page in PAGES
        for match in BLOCK.finditer(page.read_text(encoding="utf-8"))
        if match[1] == kind
        for text in [match[2]]
    ]


@pytest.mark.parametrize("source", blocks("python"))
def test_python_blocks_run(source):
    exec(compile(source, "documentation", "exec"), {})


def test_the_readmes_command_gives_the_output_it_shows(tmp_path):
    """The commands after `pip install .`, which this environment has already done."""
    text = next(text.values[0] for text in blocks("console") if "privmax select" in text.values[0])
    lines = text.splitlines()
    assert lines[0] == "$ pip install ."
    make, run, *shown = lines[1:]
    subprocess.run(["sh", "-c", make.removeprefix("$ ")], cwd=tmp_path, check=True)
    program, *arguments = shlex.split(run.removeprefix("$ "))
    assert program == "privmax"
    done = subprocess.run(
        [sys.executable, "-m", "privmax.cli", *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == shown


def test_the_readme_shows_no_command_that_is_not_run():
    """The demo is run below, the selection above, and ./dev test is what is running now."""
    commands = {line for text in blocks("console") for line in text.values[0].splitlines() if line.startswith("$ ")}
    assert {command.split()[1] for command in commands} == {"./dev", "pip", "printf", "privmax"}
    assert {command for command in commands if "./dev" in command} == {"$ ./dev demo", "$ ./dev test"}


def test_generated_pages_are_fresh():
    """Runs the demo, whose release is certain and whose tables are exact."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "pages.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in headings}, target


def test_the_table_of_leads_is_what_the_laws_say():
    text = (ROOT / "docs/choosing.md").read_text(encoding="utf-8")
    rows = {
        "`Exponential`": Exponential(epsilon=1, neighbors=REPLACE),
        "`PermuteAndFlip`": PermuteAndFlip(epsilon=1, neighbors=REPLACE),
        "`LargeMargin` (the paper's)": LargeMargin(epsilon=1, delta="1e-6"),
        "`SharpMargin(guards=DYADIC)`": SharpMargin(epsilon=1, delta="1e-6", neighbors=REPLACE, guards=DYADIC),
        "`SharpMargin` (default guards)": SharpMargin(epsilon=1, delta="1e-6", neighbors=REPLACE),
    }
    for name, mechanism in rows.items():
        cells = []
        for size in (10**3, 10**6, 10**12, 2**100, None):
            serves = size is not None or mechanism.privacy().delta
            leads = [str(mechanism.lead(candidates=size, near=near)) for near in (1, 10, 1000)] if serves else ["–"]
            cells.append("/".join(leads))
        assert f"| {name} | {' | '.join(cells)} |" in text


def test_the_papers_crossover_is_about_where_the_docs_say():
    paper, flip = LargeMargin(epsilon=1, delta="1e-6"), PermuteAndFlip(epsilon=1, neighbors=REPLACE)
    wins = [paper.lead(candidates=10**power) <= flip.lead(candidates=10**power) for power in (90, 96)]
    assert wins == [False, True]


def test_the_sharp_mechanisms_crossover_is_about_where_the_docs_say():
    sharp, flip = SharpMargin(epsilon=1, delta="1e-6", neighbors=REPLACE), PermuteAndFlip(epsilon=1, neighbors=REPLACE)
    wins = [sharp.lead(candidates=10**power) < flip.lead(candidates=10**power) for power in (10, 12)]
    assert wins == [False, True]
