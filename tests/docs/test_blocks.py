"""Every block of code that a page shows is run by some test, and the list of which test runs what
is complete.

A block is known by its page and its kind: what stands after the three backticks. Where two tests
run parts of one kind on a page, both are named.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
from click.testing import CliRunner

from privmax.cli import main

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import check_quickstart as quickstart  # noqa: E402  # the tools are scripts, not a package

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
BLOCK = re.compile(r"^ *```([^\n`]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)

PYTHON = "tests/docs/test_pages.py::test_python_blocks_run"
HOWTO = "tests/docs/test_pages.py::test_a_how_to_page_works_from_top_to_bottom"
README = "tests/docs/test_pages.py::test_the_readmes_command_gives_the_output_it_shows"
FRESH = "tests/docs/test_pages.py::test_generated_pages_are_fresh"
ITEMSETS = "tests/docs/test_itemsets_page.py::test_the_page_works_from_top_to_bottom"
BENCHMARKS = "tests/docs/test_blocks.py::test_commands_of_benchmarks_are_there"
OUTPUT = "tests/docs/test_blocks.py::test_output_is_what_the_block_above_prints"
MISTAKES = "tests/cli/test_mistakes.py::test_a_mistake_is_named_with_its_remedy_as_the_page_shows"
SAMPLES = "tests/docs/test_blocks.py::test_commands_on_shipped_data_give_what_is_shown"
TUTORIAL = "tests/docs/test_tutorial.py::test_the_tutorial_works_from_top_to_bottom"
POSTGRES = "tests/engines/test_howto.py::test_the_page_on_postgres"
POSTGRES_COMMAND = "tests/engines/test_howto.py::test_the_command_on_postgres"
SPARK = "tests/engines/test_howto.py::test_the_page_on_spark"
SUBMITTED = "tests/engines/test_howto.py::test_the_script_is_submitted_as_shown"
BUDGET = "tests/cli/test_budget.py::test_the_page_works_from_top_to_bottom"
MAP = "tests/unit/test_imports.py::test_the_page_shows_the_package_as_it_is"
PATH = "tests/unit/test_imports.py::test_the_page_shows_the_path_that_is_taken"
TEAM = "tests/engines/test_team.py::team"
WALK = "tests/docs/test_walks.py::test_a_page_works_from_top_to_bottom"
INSTALL = "tests/docs/test_install.py::test_a_wheel_is_built_and_installed_by_the_commands_shown"
EXPLORE = "tests/explore/test_docs.py::test_the_page_works_from_top_to_bottom"
PEERS = "tests/docs/test_side_by_side.py::test_the_blocks_of_a_peer_run"

RUN_BY = {
    ("README.md", "python"): [PYTHON],
    ("README.md", "console"): [
        README,
        FRESH,
        "tests/docs/test_pages.py::test_the_readme_shows_no_command_that_is_not_run",
    ],
    ("README.md", "text keys"): [FRESH],
    ("docs/command-line.md", "text"): [FRESH],
    ("docs/json.md", "json"): [FRESH],
    ("src/README.md", "text map"): [MAP],
    ("src/ARCHITECTURE.md", "text path"): [PATH],
    ("lab/mistakes.md", "console"): [MISTAKES],
    ("docs/inputs.md", "console"): [
        "tests/cli/test_inputs.py::test_the_commands_of_the_page_check_and_release_something"
    ],
    ("docs/inputs.md", "text grammar"): [
        "tests/unit/test_conditions.py::test_the_page_shows_the_grammar"
    ],
    ("docs/samples.md", "console"): [SAMPLES],
    ("docs/choosing.md", "console"): [SAMPLES],
    ("lab/audit-peers.md", "console"): [
        "tests/cli/test_audit.py::test_the_page_shows_what_the_command_prints"
    ],
    ("lab/audit-peers.md", "sh"): [BENCHMARKS],
    ("docs/tutorial.md", "python"): [TUTORIAL],
    ("docs/tutorial.md", "console"): [TUTORIAL],
    ("docs/epsilon.md", "python"): [WALK],
    ("docs/faq.md", "python"): [WALK],
    ("docs/install.md", "console"): [WALK],
    ("docs/install.md", "console install"): [
        INSTALL,
        "tests/docs/test_install.py::test_only_the_commands_that_are_tested_are_shown",
    ],
    ("lab/side-by-side.md", "python"): [WALK],
    ("lab/side-by-side.md", "python people.py"): [WALK, PEERS],
    ("lab/side-by-side.md", "python frames.py"): [PEERS],
    ("lab/side-by-side.md", "python opendp"): [PEERS],
    ("lab/side-by-side.md", "python diffprivlib"): [PEERS],
    ("lab/side-by-side.md", "python tumult"): [PEERS],
    ("docs/*.md", "python"): [PYTHON],
    ("lab/*.md", "python"): [PYTHON],
    ("docs/learning.md", "text"): [OUTPUT],
    ("docs/itemsets.md", "console"): [ITEMSETS],
    ("docs/howto/*.md", "python"): [HOWTO],
    ("docs/howto/*.md", "console"): [HOWTO],
    ("docs/howto/exports.md", "console"): [WALK],
    ("docs/howto/exports.md", "python"): [WALK],
    ("docs/howto/lawyer.md", "console"): [WALK],
    ("docs/howto/nightly.md", "console"): [WALK],
    ("docs/howto/nightly.md", "python"): [WALK],
    ("docs/howto/nightly.md", "sh nightly.sh"): [WALK],
    ("docs/howto/notebook.md", "python"): [WALK],
    ("docs/howto/pandas.md", "python"): [WALK],
    ("docs/howto/polars.md", "python"): [WALK],
    ("docs/howto/service.md", "console"): [WALK],
    ("docs/howto/service.md", "python"): [WALK],
    ("docs/howto/service.md", "python service.py"): [WALK],
    ("docs/howto/sqlite.md", "console"): [WALK],
    ("docs/howto/sqlite.md", "python"): [WALK],
    ("docs/howto/postgres.md", "console postgres"): [POSTGRES_COMMAND],
    ("docs/howto/postgres.md", "python postgres"): [POSTGRES],
    ("docs/howto/spark.md", "python spark"): [SPARK],
    ("docs/howto/spark.md", "python script"): [SUBMITTED],
    ("docs/howto/spark.md", "sh"): [SUBMITTED],
    ("docs/howto/budget.md", "console ledger"): [BUDGET],
    ("docs/howto/budget.md", "console refused"): [BUDGET],
    ("docs/howto/budget.md", "python ledger"): [BUDGET],
    ("docs/howto/team.md", "console denied"): [TEAM],
    ("docs/howto/team.md", "console postgres"): [TEAM],
    ("docs/howto/team.md", "python ada"): [TEAM],
    ("docs/howto/team.md", "sql"): [TEAM],
    ("docs/howto/team.md", "sql owner"): [TEAM],
    ("docs/explore.md", "console"): [EXPLORE],
    ("docs/explore.md", "console explore"): [EXPLORE],
    ("docs/explore.md", "console socket"): [EXPLORE],
    ("docs/explore.md", "toml data.toml"): [EXPLORE],
    ("docs/paper.md", "sh"): [BENCHMARKS],
    ("docs/paper-map.md", "python map"): [FRESH],
    ("docs/paper-map.md", "text printed"): [FRESH],
    ("lab/additive-results.md", "sh"): [BENCHMARKS],
    ("lab/classifier-results.md", "sh"): [BENCHMARKS],
    ("lab/regressor-results.md", "sh"): [BENCHMARKS],
    ("lab/learning-results.md", "sh"): [BENCHMARKS],
    ("lab/markers-results.md", "sh"): [BENCHMARKS],
    ("lab/features-results.md", "sh"): [BENCHMARKS],
    ("lab/canaries.md", "sh"): [BENCHMARKS],
    ("lab/benchmarks/README.md", "sh"): [BENCHMARKS],
}
"""The tests that run the blocks of a page. A benchmark takes minutes: of its command only the
options are tried.
"""

NO_CODE: dict[tuple[str, str], str] = {}
"""Blocks that cannot be run, each with the reason. There are none."""


def blocks() -> list[tuple[str, str, str]]:
    """The page, the kind and the text of every block."""
    found = [
        (page, *match.groups())
        for page in PAGES
        for match in BLOCK.finditer(page.read_text(encoding="utf-8"))
    ]
    return [(page.relative_to(ROOT).as_posix(), kind, text) for page, kind, text in found]


def runners(page: str, kind: str) -> list[list[str]]:
    """What the list says about a block: a page's own name counts before patterns, and * does not
    reach into folders.
    """
    if (page, kind) in RUN_BY:
        return [RUN_BY[page, kind]]
    fitting = [
        pattern
        for pattern, known in RUN_BY
        if known == kind and fnmatch(page, pattern) and page.count("/") == pattern.count("/")
    ]
    return [RUN_BY[pattern, kind] for pattern in fitting]


def test_no_fence_is_left_open_or_written_another_way() -> None:
    for page in PAGES:
        lines = page.read_text(encoding="utf-8").splitlines()
        assert sum(line.lstrip().startswith("```") for line in lines) == 2 * len(
            BLOCK.findall("\n".join(lines))
        ), page
        assert not [line for line in lines if line.lstrip().startswith("~~~")], page


def test_every_block_is_run_by_a_test_or_is_no_code() -> None:
    shown = {(page, kind) for page, kind, _ in blocks()}
    unknown = {block for block in shown if len(runners(*block)) + (block in NO_CODE) != 1}
    assert not unknown, "say which test runs them, in RUN_BY, or why none can, in NO_CODE"
    unused = {
        key
        for key in [*RUN_BY, *NO_CODE]
        if not any(
            kind == key[1] and fnmatch(page, key[0]) and page.count("/") == key[0].count("/")
            for page, kind in shown
        )
    }
    assert not unused


@pytest.mark.parametrize("test", sorted({test for tests in RUN_BY.values() for test in tests}))
def test_the_tests_named_exist(test: str) -> None:
    path, name = test.split("::")
    assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8")


def test_indented_lines_are_no_commands() -> None:
    """Formulas are indented; what can be typed stands between backticks, where it is found and
    run.
    """
    for page in PAGES:
        text = BLOCK.sub("", page.read_text(encoding="utf-8"))
        assert not re.findall(
            r"^(?: {4,}|\t)(?:\$ |\./dev |privmax |pip |python |import |from \w+ import).*$",
            text,
            re.MULTILINE,
        ), page


def commands() -> list[str]:
    lines = [
        line.split("#")[0].strip()
        for _, kind, text in blocks()
        if kind == "sh"
        for line in text.replace("\\\n", "").splitlines()
    ]
    return sorted({line for line in lines if line.startswith("./dev ")})


@pytest.mark.slow
@pytest.mark.parametrize("command", commands())
def test_commands_of_benchmarks_are_there(command: str) -> None:
    words = shlex.split(command)
    words = words[2:] if words[1] == "compare" else words[1:]
    assert words[:2] == ["python", "-m"]
    assert words[2].startswith("lab.benchmarks.")
    done = subprocess.run(
        [sys.executable, *words[1:3], "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for option in words[3:]:
        assert not option.startswith("-") or re.search(rf"(?<![\w-]){option}\b", done.stdout), (
            option
        )


WIDE = 72
"""Columns of a command: what a page can show without scrolling."""


@pytest.mark.parametrize(
    ("kind", "text", "wide"),
    [
        ("console", "$ " + "x" * 70, 0),
        ("console", "$ " + "x" * 71, 1),
        ("console", "$ ls\n" + "x" * 100, 0),
        ("console", "$ ls \\\n    " + "x" * 70, 1),
        ("sh", "x" * 73, 1),
        ("text", "$ " + "x" * 100, 0),
    ],
)
def test_a_wide_command_is_seen(kind: str, text: str, wide: int) -> None:
    assert len([line for line in typed(kind, text) if len(line) > WIDE]) == wide


def typed(kind: str, text: str) -> list[str]:
    """The lines of a block that somebody types: all of a script, and on a console those after $ and
    those that continue them.
    """
    if kind.split(maxsplit=1)[0] == "sh":
        return text.splitlines()
    if kind.split(maxsplit=1)[0] != "console":
        return []
    found: list[str] = []
    goes_on = False
    for line in text.splitlines():
        if line.startswith("$ ") or goes_on:
            found.append(line)
        goes_on = bool(found) and line is found[-1] and line.endswith("\\")
    return found


def test_commands_fit_the_page() -> None:
    wide = {
        (page, line)
        for page, kind, text in blocks()
        for line in (typed(kind, text) if kind else [])
        if len(line) > WIDE
    }
    assert not wide, f"break them before an option, with a \\, at {WIDE} columns"


def test_output_is_what_the_block_above_prints(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = re.findall(
        r"^```python\n(.*?)^```\n+```text\n(.*?)^```$",
        (ROOT / "docs/learning.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert len(pairs) == sum(
        kind == "text" for page, kind, _ in blocks() if page == "docs/learning.md"
    )
    for source, shown in pairs:
        exec(compile(source, "docs/learning.md", "exec"), {})
        assert capsys.readouterr().out == shown


@pytest.mark.slow
def test_commands_on_shipped_data_give_what_is_shown() -> None:
    pages = ("docs/samples.md", "docs/choosing.md")
    shown = [text for page, kind, text in blocks() if page in pages and kind == "console"]
    assert len(shown) >= 2
    for command, *lines in (text.replace("\\\n", "").splitlines() for text in shown):
        run = CliRunner().invoke(main, shlex.split(command.removeprefix("$ privmax ")))
        assert run.exit_code == 0, command
        assert quickstart.agrees(lines, run.output.splitlines()), command  # "…" is anything
