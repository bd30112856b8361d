"""The files at the root, and the package as it is built: one version, a description that needs no
other file, and pages that say what holds.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from markdown import markdown

import privmax

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import readme  # noqa: E402  # the tools are scripts, not a package

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


# The version


def files():
    """All text of the project but lock files, stored results, and what is made or hidden."""
    folders = ("src", "tests", "tools", "benchmarks", "docs", ".ci")
    found = [path for name in folders for path in (ROOT / name).rglob("*")]
    for path in [*ROOT.iterdir(), *found]:
        if path.is_file() and path.suffix in ("", ".py", ".md", ".toml", ".yml", ".yaml", ".cff"):
            yield path


def places(version):
    """The files that say which version this is."""
    said = re.compile(
        rf"version\w*[\"']?\s*[:=]+\s*[\"']?v?{re.escape(version)}(?![\w.])", re.IGNORECASE
    )
    return [
        path.relative_to(ROOT).as_posix()
        for path in files()
        if said.search(path.read_text(encoding="utf-8"))
    ]


def test_one_file_says_the_version():
    assert places(privmax.__version__) == ["src/privmax/__init__.py"]
    assert "version" not in PROJECT
    assert "version" in PROJECT["dynamic"]


@pytest.mark.parametrize(
    "line", ['version = "{}"', "version: {}", '"version": "{}"', "__version__ = '{}'"]
)
def test_a_second_one_would_be_found(line, tmp_path, monkeypatch):
    (tmp_path / "other.toml").write_text(line.format(privmax.__version__))
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert places(privmax.__version__) == ["other.toml"]


# What is built


def build(folder, target, out):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The source distribution."""
    out = tmp_path_factory.mktemp("source")
    build(ROOT, "sdist", out)
    [file] = out.glob("*.tar.gz")
    return file


@pytest.fixture(scope="module")
def built(source, tmp_path_factory):
    """The metadata by what it was read from: of a wheel made here, of the source distribution, and
    of a wheel made from that.
    """
    out = tmp_path_factory.mktemp("built")
    build(ROOT, "wheel", out / "here")
    with tarfile.open(source) as archive:
        archive.extractall(out, filter="data")
    folder = out / source.name.removesuffix(".tar.gz")
    build(folder, "wheel", out / "there")
    [here], [there] = (out / "here").glob("*.whl"), (out / "there").glob("*.whl")
    return {
        "wheel": metadata(here),
        "source": message_from_bytes((folder / "PKG-INFO").read_bytes()),
        "wheel of source": metadata(there),
    }


BUILDS = pytest.mark.parametrize("of", ["wheel", "source", "wheel of source"])
"""These tests are slow: three things are built."""


@pytest.mark.slow
@BUILDS
def test_the_package_has_the_version_that_it_says(built, of):
    assert built[of]["Version"] == privmax.__version__


def description(message):
    return message.get_payload(decode=True).decode()


class Asked(HTMLParser):
    """The addresses that a page asks for or leads to."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("src", "href")]


@pytest.mark.slow
@BUILDS
def test_the_description_needs_no_other_file(built, of):
    assert built[of]["Description-Content-Type"] == "text/markdown"
    page = description(built[of])
    assert Asked(markdown(page, extensions=["fenced_code", "tables"])).found == []
    readme_page = markdown(text_of("README.md"), extensions=["fenced_code", "tables"])
    assert "docs/pictures/demo-universe.svg" in Asked(readme_page).found


@pytest.mark.slow
@BUILDS
def test_the_description_shows_what_the_picture_shows(built, of):
    assert f"```text\n{text_of('docs/pictures/demo-universe.txt')}```" in description(built[of])


@pytest.mark.slow
def test_files_that_the_description_names_are_in_the_source_distribution(source, built):
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    named = re.findall(r"\(`([\w./-]+)`\)", description(built["source"]))
    assert {"docs/tutorial.md", "SECURITY.md", "CITATION.cff"} <= set(named) <= names


PAGE = """See [how](docs/how.md#now), [where](https://example.org) and [below](#below).

![A picture](docs/a.svg)

```text
[how](docs/how.md)
![A picture](docs/a.svg)
```
"""
STANDALONE = """See how (`docs/how.md`), [where](https://example.org) and [below](#below).

```text
1  2
```

```text
[how](docs/how.md)
![A picture](docs/a.svg)
```
"""


def test_pictures_become_tables_and_links_names_of_files(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.txt").write_text("1  2\n")
    assert readme.standalone(PAGE, tmp_path) == STANDALONE


def test_a_picture_without_a_table_stops_the_build(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"docs/a\.svg.*docs/a\.txt"):
        readme.standalone(PAGE, tmp_path)


# Hooks before a commit


def test_hooks_run_what_lint_runs_and_fetch_nothing():
    [repository] = yaml.safe_load(text_of(".pre-commit-config.yaml"))["repos"]
    assert repository["repo"] == "local"
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}
    entries = [hook["entry"] for hook in repository["hooks"]]
    lint = re.search(r"^lint\(\) \{\n(.*?)^\}", text_of("dev"), re.MULTILINE | re.DOTALL)[1]
    commands = re.findall(r"^ +(.+) \|\| status=1$", lint, re.MULTILINE)
    assert entries == [f"./dev {command}" for command in commands]
    assert len(entries) == 4


def test_exceptions_of_the_linter_name_files_that_are_there():
    lint = tomllib.loads(text_of("pyproject.toml"))["tool"]["ruff"]["lint"]
    for name in lint["per-file-ignores"]:
        assert (ROOT / name).is_file()


# Pages


def test_the_citation_is_complete():
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert not {"version", "date-released"} & citation.keys()
    assert citation["license"] == PROJECT["license"]
    assert sorted(citation["keywords"]) == sorted(PROJECT["keywords"])
    [paper] = citation["references"]
    names = [author["family-names"] for author in paper["authors"]]
    cited = f"{names[0]}, {names[1]} & {names[2]}, *{paper['title']}* (NeurIPS {paper['year']})"
    assert cited in text_of("docs/paper.md")


def codes(page):
    """The exit codes in the table of a page."""
    rows = re.search(r"^## Exit codes\n(.*?)(?=^## |\Z)", text_of(page), re.MULTILINE | re.DOTALL)
    return re.findall(r"^\| (\d+) \|", rows[1], re.MULTILINE)


def test_the_exit_codes_that_stay_are_all_there_are():
    assert codes("docs/stability.md") == codes("docs/ledger.md") == ["0", "1", "2", "3", "130"]


def test_public_packages_list_their_names():
    section = text_of("docs/stability.md").partition("## Public names")[2].partition("## ")[0]
    packages = re.findall(r"`(privmax[.\w]*)`", section)
    assert len(packages) == 5
    for package in packages:
        assert import_module(package).__all__


def test_no_address_is_invented_for_reports():
    assert not re.search(r"[\w.]+@[\w.]+|https?://", text_of("SECURITY.md"))
