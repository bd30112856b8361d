"""Every Python block and command of the documentation runs, links lead somewhere, tables are what
the code says.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from privmax import (
    DYADIC,
    Exponential,
    GapTest,
    JointExponential,
    LargeMargin,
    LargeMarginTruncated,
    LimitedDomain,
    MaxOfLaplaces,
    NestedMargin,
    PermuteAndFlip,
    SetMargin,
    SharpMargin,
    StableMaximum,
    crossover,
)
from privmax.cli import main
from privmax.mechanisms.registry import MECHANISMS
from privmax.planning.lower_bounds import least_lead
from privmax.privacy import REPLACE

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import check_quickstart as quickstart  # noqa: E402
import mechanisms  # noqa: E402  # the tools are scripts, not a package

PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "CHANGELOG.md",
        "src/ARCHITECTURE.md",
        "src/README.md",
        "tests/README.md",
    )
]
PAGES += sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "lab").rglob("*.md")])
WALKED = [ROOT / name for name in quickstart.WALKED]  # test_walks.py follows them
HOWTOS = [page for page in sorted((ROOT / "docs/howto").glob("*.md")) if page not in WALKED]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(kind, pages=PAGES):
    return [
        pytest.param(
            match[2], id=f"{page.relative_to(ROOT)}:{text[: match.start()].count(chr(10)) + 1}"
        )
        for page in pages
        for text in [page.read_text(encoding="utf-8")]
        for match in BLOCK.finditer(text)
        if match[1] == kind
    ]


TUTORIAL = ROOT / "docs/tutorial.md"  # run by test_tutorial.py: it writes files


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    blocks("python", [page for page in PAGES if page not in (*HOWTOS, *WALKED, TUTORIAL)]),
)
def test_python_blocks_run(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some make a ledger
    exec(compile(source, "documentation", "exec"), {})


@pytest.mark.slow
@pytest.mark.parametrize("page", HOWTOS, ids=lambda page: page.name)
def test_a_how_to_page_works_from_top_to_bottom(page, tmp_path, monkeypatch):
    """In a folder of its own. Blocks that need a server (```python postgres) are run by
    tests/engines/test_howto.py.
    """
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}  # a block may go on with what those before it made
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            exec(compile(text, page.name, "exec"), names)
        elif kind == "console":
            command, *shown = text.replace("\\\n", "").splitlines()
            run = CliRunner().invoke(main, shlex.split(command.removeprefix("$ privmax ")))
            printed = re.sub(
                r"on \d{4}-\d\d-\d\d \d\d:\d\d UTC", "on 2026-03-31 18:00 UTC", run.output
            )
            assert (quickstart.agrees(shown, printed.splitlines()), run.exit_code) == (True, 0), (
                printed
            )


def test_the_readmes_command_gives_the_output_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = next(
        text.values[0]
        for text in blocks("console", [ROOT / "README.md"])
        if "$ privmax select" in text.values[0]
    )
    command, *shown = text.replace("\\\n", "").splitlines()
    run = CliRunner().invoke(main, shlex.split(command.removeprefix("$ privmax ")))
    assert (run.output.splitlines(), run.exit_code) == (shown, 0)


def test_the_readme_shows_no_command_that_is_not_run():
    """The selection is run above, the demo below, and ./dev test is what is running now."""
    shown = blocks("console", [ROOT / "README.md"])
    commands = [
        line for text in shown for line in text.values[0].splitlines() if line.startswith("$ ")
    ]
    assert commands == [
        "$ privmax select sample:counts --item query --score people --epsilon 1 \\",
        '$ pip install ".[sql,plot,learn]"',
        "$ ./dev demo",
        "$ ./dev test",
    ]


@pytest.mark.slow
def test_generated_pages_are_fresh():
    """Runs the demo, whose release is certain and whose tables are exact."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "pages.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", mechanisms.PARTS)
def test_what_follows_from_the_registry_is_fresh(path):
    """The public names, the navigation of the site, and lists on pages."""
    text = (ROOT / path).read_text(encoding="utf-8")
    assert text == mechanisms.fill(path), "./dev python tools/pages.py"


@pytest.mark.parametrize("path", mechanisms.PARTS)
def test_a_new_mechanism_is_written_wherever_mechanisms_are_listed(path, monkeypatch):
    entry = replace(MECHANISMS["exponential"], name="Toy", home="toy", companions=(), title="Toy")
    monkeypatch.setitem(MECHANISMS, "toy", entry)
    text = (ROOT / path).read_text(encoding="utf-8")
    new = set(mechanisms.fill(path).splitlines()) - set(text.splitlines())
    assert new
    assert all("toy" in line.lower() for line in new)


def test_a_file_without_the_part_that_is_to_be_written_is_refused(monkeypatch):
    monkeypatch.setitem(mechanisms.PARTS, "tools/mkdocs.yml", [("- Elsewhere:\n", "x", str)])
    with pytest.raises(ValueError, match=r"mkdocs\.yml has 0 parts"):
        mechanisms.fill("tools/mkdocs.yml")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {
                re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in headings
            }, target


TROUBLE = ROOT / "docs/howto/troubleshooting.md"


def test_troubleshooting_quotes_messages_that_privmax_prints():
    """tests/cli/test_mistakes.py compares the page of mistakes with what commands print."""
    printed = quickstart.MISTAKES_PAGE.read_text(encoding="utf-8")
    table = TROUBLE.read_text(encoding="utf-8").split("## Errors")[1]
    quoted = re.findall(r"^\| `([^`]+)`[^|]*\|", table, re.MULTILINE)
    assert len(quoted) > 9
    assert [message for message in quoted if message not in printed] == []


def test_troubleshooting_names_the_lead_that_a_winner_needs():
    text = " ".join(TROUBLE.read_text(encoding="utf-8").split())
    lead = NestedMargin(epsilon=1, delta="1e-6").lead(candidates=None)
    assert f"[how clear a winner must be](../choosing.md): {lead} people." in text


PURE = {"epsilon": 1, "neighbors": REPLACE}
PRICE = {**PURE, "delta": "1e-6"}
LEADS = {
    "`Exponential`": lambda near: Exponential(**PURE),
    "`PermuteAndFlip`": lambda near: PermuteAndFlip(**PURE),
    "`MaxOfLaplaces`": lambda near: MaxOfLaplaces(**PURE),
    "`LargeMargin` (the paper's)": lambda near: LargeMargin(**PRICE),
    "`LargeMarginTruncated`": lambda near: LargeMarginTruncated(**PRICE),
    "`SharpMargin(guards=DYADIC)`": lambda near: SharpMargin(**PRICE, guards=DYADIC),
    "`SharpMargin` (default guards)": lambda near: SharpMargin(**PRICE),
    "`NestedMargin`": lambda near: NestedMargin(**PRICE),
    "`LimitedDomain(rank=ℓ)`": lambda near: LimitedDomain(**PRICE, rank=near),
    "`StableMaximum` (ℓ = 1)": lambda near: StableMaximum(**PRICE),
    "`GapTest` (ℓ = 1)": lambda near: GapTest(**PRICE),
}


def cell(make, size, near):
    mechanism = make(near)
    if size is None and not mechanism.privacy().delta:
        return "–"
    if near > 1 and isinstance(mechanism, (StableMaximum, GapTest)) and near != size:
        return "–"
    return str(mechanism.lead(candidates=size, near=near))


def lead_rows():
    """The table of docs/choosing.md."""
    sizes, nears = (10**3, 10**6, 10**12, 2**100, None), (1, 10, 1000)
    rows = {
        name: [[cell(make, size, near) for near in nears] for size in sizes]
        for name, make in LEADS.items()
    }
    rows["no mechanism works with less than"] = [
        [str(least_lead(**PRICE, candidates=size, near=near)) for near in nears] for size in sizes
    ]
    for name, cells in rows.items():
        shown = ["–" if set(leads) == {"–"} else "/".join(leads) for leads in cells]
        yield f"| {name} | {' | '.join(shown)} |"


@pytest.mark.slow
def test_the_table_of_leads_is_what_the_laws_say():
    text = (ROOT / "docs/choosing.md").read_text(encoding="utf-8")
    assert "\n".join(lead_rows()) in text


@pytest.mark.slow
def test_the_table_of_leads_of_lists_is_what_the_laws_say():
    text = (ROOT / "docs/choosing.md").read_text(encoding="utf-8")
    price = {"epsilon": 1, "delta": "1e-6"}
    rows = {
        "`GapTest(k=k)`": lambda k: GapTest(**price, k=k),
        "`SetMargin(k=k)`": lambda k: SetMargin(**price, k=k),
        "`SetMargin(k=k)` without δ": lambda k: SetMargin(epsilon=1, k=k),
        "`Exponential(k=k)`": lambda k: Exponential(epsilon=1, k=k),
        '`Exponential(k=k, delta="1e-6")`': lambda k: (
            Exponential(**price, k=k) if k > 1 else Exponential(epsilon=1)
        ),
        "`JointExponential(k=k)`": lambda k: JointExponential(epsilon=1, k=k),
        "`LimitedDomain(k=k, rank=1000)`": lambda k: LimitedDomain(**price, k=k, rank=1000),
        "`SharpMargin(k=k)`": lambda k: SharpMargin(**price, k=k),
    }
    for name, make in rows.items():
        cells = []
        for size in (10**3, 10**6, 10**12, None):
            serves = size is not None or not ("Exponential" in name or "without" in name)
            cells.append(
                "/".join(str(make(k).lead(candidates=size)) for k in (1, 10, 100))
                if serves
                else "–"
            )
        assert f"| {name} | {' | '.join(cells)} |" in text
    for name, delta in (("no mechanism works with less than", "1e-6"), ("and without δ", 0)):
        cells = [
            "/".join(
                str(least_lead(epsilon=1, delta=delta, candidates=size, k=k)) for k in (1, 10, 100)
            )
            if size or delta
            else "–"
            for size in (10**3, 10**6, 10**12, None)
        ]
        assert f"| {name} | {' | '.join(cells)} |" in text


@pytest.mark.slow
def test_the_papers_crossover_is_about_where_the_docs_say():
    paper, flip = LargeMargin(**PRICE), PermuteAndFlip(**PURE)
    wins = [
        paper.lead(candidates=10**power) <= flip.lead(candidates=10**power) for power in (93, 95)
    ]
    assert wins == [False, True]


@pytest.mark.slow
def test_the_nested_mechanisms_crossovers_are_about_where_the_docs_say():
    nested, flip = NestedMargin(**PRICE), PermuteAndFlip(**PURE)
    assert crossover(flip, nested) == pytest.approx(2e8, rel=0.2)
    assert crossover(flip, nested, near=1000) == pytest.approx(4e10, rel=0.2)
    assert (
        SharpMargin(**PRICE).lead(candidates=None, near=10**6)
        - nested.lead(candidates=None, near=10**6)
        == 131
    )
