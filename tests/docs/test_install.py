"""docs/install.md: its table of extras is pyproject.toml's, its commands work, and no other place
says where privmax comes from.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from privmax.errors import explain_install

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/install.md").read_text(encoding="utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
SPEC = importlib.util.spec_from_file_location(
    "check_quickstart", ROOT / "tools/check_quickstart.py"
)
quickstart = importlib.util.module_from_spec(SPEC)
sys.modules["check_quickstart"] = quickstart  # where dataclasses look for it
SPEC.loader.exec_module(quickstart)

COMMANDS = [
    command
    for text in re.findall(r"^```console install\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for command, _ in quickstart.commands(text)
]


def package(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0]


def test_the_table_lists_every_extra_and_what_it_installs():
    rows = re.findall(r"^\| `(\w+)` \| .* \| ([^|]+) \|$", PAGE, re.MULTILINE)
    shown = {extra: re.findall(r"`([\w.-]+)`", packages) for extra, packages in rows}
    assert shown == {
        extra: [package(requirement) for requirement in requirements]
        for extra, requirements in EXTRAS.items()
    }


def test_the_page_asks_for_the_python_that_is_needed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Python {project['requires-python'].removeprefix('>=')} or later" in PAGE


def test_only_the_commands_that_are_tested_are_shown():
    """tools/check_quickstart.py makes the environment and its third line; the others run below."""
    assert COMMANDS == [
        "python3 -m venv .venv",
        ". .venv/bin/activate",
        'pip install ".[sql,plot,learn]"',
        "privmax --version",
        "pip wheel --no-deps --wheel-dir dist .",
        "pip install dist/privmax-*.whl",
    ]


@pytest.mark.slow
def test_a_wheel_is_built_and_installed_by_the_commands_shown(tmp_path):
    """What they would fetch is here already, so they are kept from asking for it."""
    wheel, install = COMMANDS[-2:]
    pip = f"{sys.executable} -m pip --quiet --disable-pip-version-check"
    wheel = wheel.replace("pip ", f"{pip} ").replace(" dist ", f" {tmp_path}/dist ")
    install = install.replace("pip ", f"{pip} ").replace(" dist/", f" {tmp_path}/dist/")
    for command in (f"{wheel} --no-build-isolation", f"{install} --no-deps --target {tmp_path}/in"):
        subprocess.run(["sh", "-c", command], cwd=ROOT, check=True)
    program = "import privmax; print(privmax.__file__, privmax.__version__)"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(tmp_path / 'in')!r}); {program}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    where, version = done.stdout.split()
    assert Path(where).is_relative_to(tmp_path)
    assert any(version in path.name for path in (tmp_path / "dist").iterdir())


LAB = [page.relative_to(ROOT).as_posix() for page in sorted((ROOT / "lab").glob("*.md"))]


def places(pattern):
    """The files of the package, the pages and the tools in which a pattern occurs."""
    return {
        path.relative_to(ROOT).as_posix()
        for name in ("docs", "src", "tools", "README.md", *LAB)
        for path in [ROOT / name, *(ROOT / name).rglob("*")]
        if path.suffix in (".py", ".md", ".html")
        and re.search(pattern, path.read_text(encoding="utf-8"))
    }


def test_no_page_and_no_message_has_privmax_fetched_from_an_index():
    """It would say privmax[EXTRA], or pip install privmax."""
    extras = "|".join(EXTRAS)
    assert places(rf"privmax\\*\[(?:{extras})\b|pip install [\"\'`]*privmax\b") == set()


def test_where_privmax_comes_from_is_said_in_one_page_and_one_message():
    """And in the first command of README and tutorial. A release on an index changes these."""
    assert places(r"pip install [\"\']*\.(?!\w)") == {
        "README.md",
        "docs/install.md",
        "docs/tutorial.md",
        "src/privmax/errors.py",
    }


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_message_shows_the_command_of_the_page(extra):
    command = re.search(r"pip install \S+", explain_install(extra))[0]
    (shown,) = (line for line in COMMANDS if "[" in line)
    assert re.sub(r"\[.*\]", "[]", command) == re.sub(r"\[.*\]", "[]", shown)


def test_a_message_names_an_extra_that_exists():
    named = {
        extra
        for path in (ROOT / "src").rglob("*.py")
        for extra in re.findall(r"explain_install\(\"(\w+)\"\)", path.read_text(encoding="utf-8"))
    }
    assert {"sql", "plot"} <= named <= {*EXTRAS}
