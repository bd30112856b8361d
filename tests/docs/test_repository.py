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
from click.testing import CliRunner
from markdown import markdown

import privmax
from privmax.cli import main
from privmax.cli.exits import MEANINGS, Exit
from privmax.cli.pages import folder as pages_folder
from privmax.cli.pages import topics

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import readme  # noqa: E402  # the tools are scripts, not a package

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


# The version


def files():
    """All text of the project but lock files, stored results, and what is made or hidden."""
    folders = ("src", "tests", "tools", "lab", "docs", ".ci")
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
def unpacked(source, tmp_path_factory):
    """The folder of the source distribution."""
    out = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(source) as archive:
        archive.extractall(out, filter="data")
    return out / source.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheels(unpacked, tmp_path_factory):
    """A wheel made here, and one made from the source distribution."""
    out = tmp_path_factory.mktemp("wheels")
    build(ROOT, "wheel", out / "here")
    build(unpacked, "wheel", out / "there")
    [here], [there] = (out / "here").glob("*.whl"), (out / "there").glob("*.whl")
    return {"wheel": here, "wheel of source": there}


@pytest.fixture(scope="module")
def built(unpacked, wheels):
    """The metadata by what it was read from."""
    of_source = {"source": message_from_bytes((unpacked / "PKG-INFO").read_bytes())}
    return of_source | {of: metadata(wheel) for of, wheel in wheels.items()}


BUILDS = pytest.mark.parametrize("of", ["wheel", "source", "wheel of source"])
"""These tests are slow: three things are built."""


@pytest.mark.slow
@BUILDS
def test_the_package_has_the_version_that_it_says(built, of):
    assert built[of]["Version"] == privmax.__version__


def description(message):
    return message.get_payload(decode=True).decode()


@pytest.mark.slow
@pytest.mark.parametrize("of", ["wheel", "wheel of source"])
def test_a_wheel_prints_the_pages_of_the_documentation(wheels, of, tmp_path):
    with zipfile.ZipFile(wheels[of]) as archive:
        archive.extractall(tmp_path)
    pages = {path.relative_to(pages_folder()) for path in topics().values()}
    assert pages
    for page in pages:
        copied = (tmp_path / "privmax" / "pages" / page).read_bytes()
        assert copied == (pages_folder() / page).read_bytes()
    for arguments in (["help"], ["help", "inputs"], ["help", "proofs/exponential"]):
        run = subprocess.run(
            [sys.executable, "-m", "privmax", *arguments],
            cwd=tmp_path,  # which -m puts first on the path
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout == CliRunner().invoke(main, arguments, prog_name="privmax").stdout


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
    assert {"docs/tutorial.md", "docs/security.md", "CITATION.cff"} <= set(named) <= names


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
    [repository] = yaml.safe_load(text_of("tools/pre-commit.yaml"))["repos"]
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
    assert cited in " ".join(text_of("docs/paper.md").split())


PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "lab").rglob("*.md")])
CODES = ROOT / "docs" / "command-line.md"
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
HEAD = re.compile(r"^\|[^|]*\b(?:exit|status|code)\b[^|]*\|.*\n\|-", re.MULTILINE | re.IGNORECASE)
SAID = re.compile(r"\bexit(?:s|ed)?(?: (?:code|status))?(?: is| with|:)? (\d+)\b", re.IGNORECASE)


def test_the_exit_codes_stand_on_one_page_as_the_code_has_them():
    rows = {int(code): (meaning, then) for code, meaning, then in ROW.findall(text_of(CODES))}
    assert rows == {int(code): told for code, told in MEANINGS.items()}
    assert set(MEANINGS) == set(Exit)
    assert [page.name for page in PAGES if HEAD.search(text_of(page))] == [CODES.name]


def test_a_second_table_of_exit_codes_would_be_found():
    assert HEAD.search("| exit code | meaning |\n|---|---|")
    assert HEAD.search("| status | means | a scheduler should |\n|---|---|---|")
    assert not HEAD.search("| what | limit | constant |\n|---|---|---|")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_names_only_exit_codes_that_there_are(page):
    assert {int(code) for code in SAID.findall(text_of(page))} <= set(MEANINGS)


def test_an_unknown_exit_code_would_be_found():
    assert SAID.findall("Exit 5, exit code 6, the exit code is 7, exits with 8; exit status 9") == [
        *("5", "6", "7", "8", "9")
    ]


def test_help_lists_the_same_codes():
    told = CliRunner().invoke(main, ["--help"], terminal_width=120).stdout
    for code, (meaning, _) in MEANINGS.items():
        assert re.search(rf"^  {code:d} +{re.escape(meaning)}$", told, re.MULTILINE)


def test_public_packages_list_their_names():
    section = text_of("docs/stability.md").partition("## Public names")[2].partition("## ")[0]
    packages = re.findall(r"`(privmax[.\w]*)`", section)
    assert len(packages) == 5
    for package in packages:
        assert import_module(package).__all__


def test_no_address_is_invented_for_reports():
    assert not re.search(r"[\w.]+@[\w.]+|https?://", text_of("docs/security.md"))
