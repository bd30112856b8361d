"""`./dev release --check`: what is wrong with an archive is named, and a sound one passes."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from email import message_from_string
from io import BytesIO
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import release  # noqa: E402  # the tools are scripts, not a package

HEADERS = """\
Metadata-Version: 2.4
Name: privmax
Version: 1.0
Summary: Selection
Requires-Python: >=3.11
License-Expression: Apache-2.0
Description-Content-Type: text/markdown

privmax finds the best.
"""
INFO = "privmax-1.0.dist-info"
FILES = {
    "privmax/__init__.py": "",
    "privmax/py.typed": "",
    f"{INFO}/METADATA": HEADERS,
    f"{INFO}/entry_points.txt": "",
    f"{INFO}/licenses/LICENSE": "",
}
SOURCES = ("README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "tests/README.md")


def write_wheel(folder, files=FILES, *, changed=()):
    """Write a wheel whose record is right but for files that were changed later."""
    path = folder / "privmax-1.0-py3-none-any.whl"
    rows = [
        f"{name},{release.hash_for_record(text.encode())},{len(text.encode())}"
        for name, text in files.items()
    ]
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text + "\n" if name in changed else text)
        archive.writestr(f"{INFO}/RECORD", "\n".join([*rows, f"{INFO}/RECORD,,"]))
    return path


def write_source(folder, names=SOURCES, headers=HEADERS):
    path = folder / "privmax-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("PKG-INFO", *names):
            content = headers.encode() if name == "PKG-INFO" else b""
            entry = tarfile.TarInfo(f"privmax-1.0/{name}")
            entry.size = len(content)
            archive.addfile(entry, BytesIO(content))
    return path


def test_sound_archives_pass(tmp_path):
    wheel, source = write_wheel(tmp_path), write_source(tmp_path)
    assert release.check_metadata(wheel, source) == []
    assert release.check_description(release.read_metadata(wheel)) == []
    assert release.check_record(wheel) == []
    assert release.check_files(wheel, source) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Name: privmax\n", "", "Name is missing"),
        ("Requires-Python: >=3.11\n", "Requires-Python: three\n", "requires-python"),
        ("License-Expression: Apache-2.0\n", "License-Expression: my own\n", "license-expression"),
        ("Summary: Selection\n", "", "Summary is missing"),
    ],
)
def test_metadata_that_an_index_refuses_is_named(old, new, message, tmp_path):
    headers = HEADERS.replace(old, new)
    wheel = write_wheel(tmp_path, {**FILES, f"{INFO}/METADATA": headers})
    problems = release.check_metadata(wheel, write_source(tmp_path, headers=headers))
    assert message in "\n".join(problems)


def test_wheel_and_source_must_agree(tmp_path):
    headers = HEADERS.replace("1.0", "1.1")
    problems = release.check_metadata(
        write_wheel(tmp_path), write_source(tmp_path, headers=headers)
    )
    assert problems == ["the wheel and the source distribution have different metadata"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("privmax: see [the tutorial](docs/tutorial.md).", "links to the file docs/tutorial.md"),
        ("![privmax](docs/picture.svg)", "links to the file docs/picture.svg"),
        ("", "the description is empty"),
    ],
)
def test_a_description_that_needs_a_file_is_named(text, message):
    headers = HEADERS.partition("\n\n")[0]
    assert message in release.check_description(message_from_string(f"{headers}\n\n{text}"))[0]


def test_links_to_places_on_the_page_or_in_code_pass():
    text = "privmax: [below](#below)\n\n```text\n[a](b.md)\n```\n"
    headers = HEADERS.partition("\n\n")[0]
    assert release.check_description(message_from_string(f"{headers}\n\n{text}")) == []


def test_a_file_that_was_changed_after_it_was_recorded_is_named(tmp_path):
    wheel = write_wheel(tmp_path, changed=["privmax/py.typed"])
    assert release.check_record(wheel) == ["privmax/py.typed is not what the record says"]


def test_a_file_that_is_not_recorded_is_named(tmp_path):
    wheel = write_wheel(tmp_path)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("privmax/extra.py", "")
    assert release.check_record(wheel) == ["privmax/extra.py is not in the record"]


@pytest.mark.parametrize(
    "name", ["privmax/__pycache__/a.pyc", "privmax/budget.db", "privmax/.venv-x/a", "uv.lock"]
)
def test_files_that_must_not_be_released_are_named(name, tmp_path):
    wheel = write_wheel(tmp_path, {**FILES, name: ""})
    problems = release.check_files(wheel, write_source(tmp_path))
    assert f"{name} must not be released" in problems


def test_files_that_are_missing_or_outside_the_package_are_named(tmp_path):
    files = {**FILES, "tests/test_a.py": ""}
    del files["privmax/py.typed"]
    problems = release.check_files(
        write_wheel(tmp_path, files), write_source(tmp_path, SOURCES[1:])
    )
    assert problems == [
        "the wheel has no privmax/py.typed",
        "the source distribution has no README.md",
        "tests/test_a.py is outside the package",
    ]


def test_builds_that_differ_are_named(tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    for folder, content in ((first, "a"), (again, "b")):
        folder.mkdir()
        (folder / "same").write_text("same")
        (folder / "other").write_text(content)
    assert release.compare_builds(first, again) == [
        "other differs between two builds of one commit"
    ]


@pytest.mark.parametrize(
    ("licenses", "problems"),
    [
        ([], ["thing 1 names no license"]),
        ([{"license": {"id": "MIT"}}], []),
        ([{"expression": "LGPL-3.0-or-later"}], []),
        ([{"license": {"name": "GPLv3"}}], ["thing 1 has the license GPLv3"]),
        ([{"expression": "AGPL-3.0-only"}], ["thing 1 has the license AGPL-3.0-only"]),
    ],
)
def test_licenses_that_a_user_would_pass_on_are_named(licenses, problems, monkeypatch):
    part = {"name": "thing", "version": "1", "licenses": licenses}
    monkeypatch.setattr("sbom.bill", lambda: {"components": [part]})
    assert release.check_licenses() == problems


def test_a_person_learns_what_is_left():
    steps = release.steps("0.3.0.dev0", "0.3.0 (unreleased)")
    assert steps[0] == 'Set __version__ = "0.3.0" in src/privmax/__init__.py (now 0.3.0.dev0).'
    assert steps[1].startswith("Date the entry of CHANGELOG.md")
    assert len(release.steps("0.3.0", "0.3.0 (2027-01-01)")) == len(steps) - 2
    other = release.steps("0.2.0", "0.3.0 (2027-01-01)")
    assert other[0].startswith("Give the package and CHANGELOG.md one version")
    assert not any("one version" in step for step in steps)


def test_other_words_are_refused(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["release.py", "--now"])
    with pytest.raises(SystemExit, match="usage: "):
        release.main()


@pytest.mark.slow
def test_the_package_as_it_is_has_sound_archives_and_licenses(tmp_path):
    release.run([sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)], ROOT)
    wheel, source = (release.find_one(tmp_path, ending) for ending in (".whl", ".tar.gz"))
    checks = [
        release.check_metadata(wheel, source),
        release.check_description(release.read_metadata(wheel)),
        release.check_record(wheel),
        release.check_files(wheel, source),
        release.check_licenses(),
    ]
    assert checks == [[]] * 5
