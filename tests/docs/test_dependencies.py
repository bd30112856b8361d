"""What privmax depends on: `lab/dependencies.md` against `pyproject.toml` and the packages, caps
that have lost their reason, the oldest versions, the bill of materials, and builds.
"""

from __future__ import annotations

import inspect
import json
import os
import platform
import re
import subprocess
import sys
import time
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "lab/dependencies.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BY_EXTRA = {"–": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
REQUIREMENTS = [(extra, Requirement(line)) for extra, lines in BY_EXTRA.items() for line in lines]


def rows(columns):
    """The rows of the table with so many columns, without head and marks of code."""
    lines = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("|")]
    cells = [[cell.strip().strip("`") for cell in line] for line in lines if len(line) == columns]
    return cells[2:]


# The table


def specifier(text):
    return sorted(text.split(","))


def test_the_table_has_every_dependency():
    said = [(extra, name, specifier(versions)) for extra, name, versions, *_ in rows(7)]
    have = [(extra, need.name, specifier(str(need.specifier))) for extra, need in REQUIREMENTS]
    assert sorted(said) == sorted(have)
    assert all(purpose and reason for *_, purpose, reason, _, _ in rows(7))


def licenses(name):
    found = metadata.metadata(name)
    classifiers = found.get_all("Classifier") or []
    said = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License ::")]
    return {found.get("License-Expression"), found.get("License"), *said}


@pytest.mark.parametrize("row", rows(7), ids=lambda row: f"{row[0]}-{row[1]}")
def test_the_table_says_license_and_size(row):
    _, name, *_, size, license_ = row
    assert license_ in licenses(name)
    if (sys.platform, platform.machine()) == ("linux", "x86_64"):
        megabytes = sum(file.size or 0 for file in metadata.files(name)) / 2**20
        assert megabytes / 2 < float(size.removesuffix(" MB")) < megabytes * 2


# Caps


def caps():
    found = {(need.name, str(part)) for _, need in REQUIREMENTS for part in need.specifier}
    return sorted(name + part for name, part in found if part.startswith("<"))


def source(module):
    return inspect.getsource(pytest.importorskip(module))


def drops(text):
    return re.search(r"sge\.Drop\([^()]*\bthis=", text) is not None


def takes_spark(lines, version):
    needs = [need for need in map(Requirement, lines) if need.name == "pyspark"]
    return all(need.specifier.contains(version) for need in needs)


REASONS = {
    "duckdb<2": lambda: "fetch_record_batch" in source("ibis.backends.duckdb"),
    "pyspark<4.1": lambda: not takes_spark(metadata.requires("ibis-framework"), "4.1.0"),
    "sqlglot<30.18": lambda: drops(source("ibis.backends.duckdb")),
}
"""For each cap, whether its reason is still there in the Ibis that is installed."""


def test_every_cap_has_its_reason():
    assert caps() == sorted(REASONS) == sorted(cap for cap, *_ in rows(3))


@pytest.mark.parametrize("cap", REASONS)
def test_a_cap_goes_when_its_reason_is_gone(cap):
    assert REASONS[cap](), f"Ibis no longer needs {cap}: lift it in pyproject.toml, then ./dev lock"


def test_a_reason_that_is_gone_is_seen():
    assert takes_spark(["pyspark>=3.5,<4.2; extra == 'pyspark'"], "4.1.0")
    assert not takes_spark(["pyspark>=3.5,<4.1; extra == 'pyspark'"], "4.1.0")
    assert drops('sge.Drop(kind="VIEW", this=name)')
    assert not drops('sge.Drop(kind="VIEW", tables=[name])')


# The oldest versions

UNTESTED = {"pyspark"}
"""It needs Java and a server; the extra allows one minor version alone."""


def pins():
    text = (ROOT / "locks/requirements-oldest.lock").read_text(encoding="utf-8")
    found = re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in found}


@pytest.mark.parametrize(
    "need",
    [need for _, need in REQUIREMENTS if need.name not in UNTESTED and ">=" in str(need.specifier)],
    ids=str,
)
def test_the_oldest_version_that_is_allowed_is_the_one_that_is_tested(need):
    [oldest] = [part.version for part in need.specifier if part.operator == ">="]
    pin = pins()[canonicalize_name(need.name)]
    named = len(oldest.split("."))
    assert pin.release[:named] == Version(oldest).release[:named]


# The bill of materials


@pytest.fixture(scope="module")
def bill():
    program = [sys.executable, "tools/sbom.py"]
    done = subprocess.run(program, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.slow
def test_the_bill_of_materials_lists_what_is_needed_and_no_more(bill):
    content = json.loads(bill)
    scopes = {canonicalize_name(part["name"]): part["scope"] for part in content["components"]}
    needed = {canonicalize_name(need.name) for _, need in REQUIREMENTS}
    core = {canonicalize_name(need.name) for extra, need in REQUIREMENTS if extra == "–"}
    assert needed <= scopes.keys()
    assert core <= {name for name, scope in scopes.items() if scope == "required"}
    assert not (needed - core) & {name for name, scope in scopes.items() if scope == "required"}
    assert {"mdurl", "pyarrow", "mysqlclient"} <= scopes.keys()  # what others need
    assert not {"pytest", "mypy", "hatchling", "privmax"} & scopes.keys()
    assert content["metadata"]["component"]["name"] == "privmax"
    references = {part["bom-ref"] for part in content["components"]}
    for edge in content["dependencies"]:
        assert references.issuperset(edge["dependsOn"])


@pytest.mark.slow
def test_the_bill_of_materials_names_no_machine_and_is_the_same_each_time(bill, monkeypatch):
    assert re.findall(r"\w+://\S+", bill) == ['http://cyclonedx.org/schema/bom-1.6.schema.json",']
    for place in (str(ROOT), str(Path.home()), platform.node(), sys.prefix):
        assert not re.search(rf"(?<!\w){re.escape(place)}(?!\w)", bill)
    monkeypatch.chdir("/")
    sys.path.append(str(ROOT / "tools"))
    import sbom

    assert sbom.write(sbom.bill()) == bill
    with pytest.raises(ValueError, match="not a bill of materials"):
        sbom.write({"bomFormat": "CycloneDX"})


# Builds


def build(folder, out, umask):
    """Build both distributions of a commit in a folder, in a shell that differs in all it may."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-m"], cwd=folder, input=archive.stdout, check=True, umask=umask)
    epoch = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(out)],
        cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": epoch.stdout.strip(), "PYTHONHASHSEED": str(umask)},
        check=True,
        capture_output=True,
        umask=umask,
    )
    return {file.name: file.read_bytes() for file in out.iterdir() if file.suffix != ".gitignore"}


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="builds a commit")
def test_a_commit_is_built_to_the_same_bytes(tmp_path):
    first = build(tmp_path / "a", tmp_path / "out-a", 0o022)
    time.sleep(2)  # a tar file counts seconds, a zip file two
    second = build(tmp_path / "a longer name", tmp_path / "out-b", 0o077)
    assert len(first) == 2
    assert first == second


def test_dev_builds_a_commit_with_its_own_time():
    script = (ROOT / "dev").read_text(encoding="utf-8")
    assert 'SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit" --)' in script
    assert 'git archive "$commit" | tar -x -C "$tree"' in script
