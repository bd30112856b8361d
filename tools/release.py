"""Checks all that a release needs and says what a person must do then.

    ./dev release --check              build the last commit in dist/ and check it
    ./dev release --check v0.3.0       the same of another commit

Builds wheel and source distribution twice, reads them as an installer and a package index would,
installs the wheel in an empty environment, and writes the hashes of both files and the bill of
materials beside them. Ends with exit code 1 if a check fails. Nothing is uploaded, tagged or
signed: these steps need a person, and the last lines list them.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Callable, Iterable
from email import message_from_bytes
from email.message import Message
from pathlib import Path

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
SUMS = "SHA256SUMS"
BILL = "privmax.cdx.json"

LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
COPYLEFT = re.compile(r"\b(A?GPL|SSPL|EUPL|OSL)", re.IGNORECASE)
TRY = 'import privmax; print(privmax.select({"tea": 900, "fig": 2}, epsilon=1, delta=1e-6).item)'
"""Has a certain answer but for a chance of one in many millions."""

USAGE = "usage: ./dev release --check [COMMIT]"


def main() -> None:
    """Run all checks, and print them with what is left to do."""
    arguments = sys.argv[1:]
    if arguments[:1] != ["--check"] or len(arguments) > 2 or arguments[1:2] == ["--check"]:
        sys.exit(USAGE)
    commit = arguments[1] if len(arguments) > 1 else "HEAD"
    with tempfile.TemporaryDirectory() as folder:
        first, again = (build(commit, Path(folder) / name) for name in ("first", "again"))
        wheel, source = (find_one(first, ending) for ending in (".whl", ".tar.gz"))
        checks: list[tuple[str, Callable[[], Iterable[str]]]] = [
            ("two builds have the same bytes", lambda: compare_builds(first, again)),
            ("metadata and version", lambda: check_metadata(wheel, source)),
            ("description", lambda: check_description(read_metadata(wheel))),
            ("files of the wheel against its record", lambda: check_record(wheel)),
            (
                "files that must be there, and none that must not",
                lambda: check_files(wheel, source),
            ),
            ("licenses of dependencies", check_licenses),
            ("installation in an empty environment", lambda: check_install(wheel)),
        ]
        failed = sum(report(name, list(check())) for name, check in checks)
        if not failed:
            keep(wheel, source)
        version = str(read_metadata(wheel)["Version"])
    if failed:
        sys.exit(f"{failed} of {len(checks)} checks failed: nothing was written to {DIST.name}/")
    print(f"\nIn {DIST.name}/: {wheel.name}, {source.name}, {SUMS}, {BILL}\n\nLeft for a person:")
    for number, step in enumerate(steps(version, changelog()), 1):
        print(f"{number}. {step}")


def report(name: str, problems: list[str]) -> bool:
    """Print how a check ended; whether it failed."""
    print(f"{'FAILED' if problems else 'ok':7}{name}", flush=True)
    for problem in problems:
        print(f"       {problem}")
    return bool(problems)


def build(commit: str, folder: Path) -> Path:
    """Build what a commit holds, whatever the working tree holds, with the commit's time."""
    tree = folder / "tree"
    tree.mkdir(parents=True)
    stamp = run(["git", "log", "-1", "--format=%ct", commit, "--"], ROOT).decode().strip()
    if not stamp:
        sys.exit(f"there is no commit {commit}")
    packed = run(["git", "archive", commit], ROOT)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(tree, filter="data")
    built = {**os.environ, "SOURCE_DATE_EPOCH": stamp}
    run([sys.executable, "-m", "hatchling", "build", "-d", str(folder / "dist")], tree, env=built)
    return folder / "dist"


def compare_builds(first: Path, again: Path) -> list[str]:
    """Say which files of two builds differ."""
    names = sorted({path.name for folder in (first, again) for path in folder.iterdir()})
    return [
        f"{name} differs between two builds of one commit"
        for name in names
        if digest_file(first / name) != digest_file(again / name)
    ]


def check_metadata(wheel: Path, source: Path) -> list[str]:
    """Say what an index or an installer would refuse, and where wheel and source differ."""
    problems = []
    message = read_metadata(wheel)
    try:
        Metadata.from_email(read_metadata_bytes(wheel), validate=True)
    except ExceptionGroup as group:
        problems += [str(error) for error in group.exceptions]
    for name in ("Name", "Version", "Summary", "Requires-Python", "License-Expression"):
        if not message[name]:
            problems.append(f"{name} is missing")
    if read_source_metadata(source) != read_metadata_bytes(wheel):
        problems.append("the wheel and the source distribution have different metadata")
    return problems


def check_description(message: Message) -> list[str]:
    """Say what a package index could not show: it has no file of the repository."""
    text = FENCE.sub("", read_description(message))
    problems = [f"the description links to the file {name}" for name in LINK.findall(text)]
    if message["Description-Content-Type"] != "text/markdown":
        problems.append("the description is not declared as text/markdown")
    if "privmax" not in text:
        problems.append("the description is empty")
    return problems


def check_record(wheel: Path) -> list[str]:
    """Say which files of a wheel are not those that its record signs."""
    with zipfile.ZipFile(wheel) as archive:
        record = find_name(archive, ".dist-info/RECORD")
        rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
        signed = {name: (hashed, size) for name, hashed, size in rows}
        problems = [
            f"{name} is not in the record" for name in archive.namelist() if name not in signed
        ]
        for name, (hashed, size) in signed.items():
            if name == record:
                continue
            content = archive.read(name)
            if hashed != hash_for_record(content) or size != str(len(content)):
                problems.append(f"{name} is not what the record says")
    return problems


def check_files(wheel: Path, source: Path) -> list[str]:
    """Say what is missing in the archives, and what must not be in them."""
    with zipfile.ZipFile(wheel) as archive:
        ours = archive.namelist()
    with tarfile.open(source) as packed:
        theirs = [name.partition("/")[2] for name in packed.getnames()]
    needed = ("privmax/py.typed", "privmax/__init__.py", "licenses/LICENSE", "entry_points.txt")
    problems = [
        f"the wheel has no {end}" for end in needed if not any(one.endswith(end) for one in ours)
    ]
    problems += [
        f"the source distribution has no {name}"
        for name in ("README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "tests/README.md")
        if name not in theirs
    ]
    odd = re.compile(r"(^|/)(__pycache__|\.venv[^/]*|\.git|uv\.lock)(/|$)|\.(pyc|db|sqlite)$")
    problems += [f"{name} must not be released" for name in [*ours, *theirs] if odd.search(name)]
    beyond = [name for name in ours if not re.match(r"privmax(-[^/]*\.dist-info)?/", name)]
    return problems + [f"{name} is outside the package" for name in beyond]


def check_licenses() -> list[str]:
    """Say which dependencies have no license, or one that a user of privmax would pass on."""
    import sbom

    problems = []
    for part in sbom.bill()["components"]:
        words = [
            str(one.get("expression") or one["license"].get("id") or one["license"].get("name"))
            for one in part.get("licenses", [])
        ]
        if not words and part["name"] not in UNNAMED:
            problems.append(f"{part['name']} {part['version']} names no license")
        passed_on = any(COPYLEFT.search(word) and "LGPL" not in word for word in words)
        if passed_on and part["name"] not in ALLOWED:
            problems.append(f"{part['name']} {part['version']} has the license {', '.join(words)}")
    return problems


UNNAMED = {
    "dp-accounting": "Apache 2.0, says its metadata in free text",
    "mysqlclient": "not installed everywhere; see ALLOWED",
    "pyarrow-hotfix": "Apache 2.0, says its metadata in free text",
}
"""Packages whose license the environment does not say, and why they may be used."""

ALLOWED = {
    "mysqlclient": "GPL-2.0: an extra that a user asks for by name; nothing of it is in the wheel"
}
"""Packages with a license that is passed on, and why they may be used."""


def check_install(wheel: Path) -> list[str]:
    """Say what does not work where only the wheel and what it declares is installed."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "bare", with_pip=True)
        python = str(place / "bare" / "bin" / "python")
        quiet = ["--quiet", "--disable-pip-version-check"]
        commands = [
            [python, "-m", "pip", "install", *quiet, str(wheel)],
            [python, "-m", "pip", "check", *quiet],
            [str(place / "bare" / "bin" / "privmax"), "--version"],
            [str(place / "bare" / "bin" / "privmax"), "help", "tutorial"],
            [python, "-I", "-c", TRY],
        ]
        for command in commands:
            done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
            if done.returncode:
                words = " ".join([Path(command[0]).name, *command[1:3]])
                return [f"{words} failed: {(done.stderr or done.stdout).strip()[-300:]}"]
        return [] if done.stdout.strip() == "tea" else [f"a selection gave {done.stdout!r}"]


def keep(wheel: Path, source: Path) -> None:
    """Copy what was checked to dist/, with hashes and the bill of materials."""
    import sbom

    DIST.mkdir(exist_ok=True)
    kept = [Path(shutil.copy(path, DIST)) for path in (wheel, source)]
    bill = DIST / BILL
    bill.write_text(sbom.write(sbom.bill()), encoding="utf-8")
    lines = [f"{digest_file(path)}  {path.name}\n" for path in [*kept, bill]]
    (DIST / SUMS).write_text("".join(lines), encoding="utf-8")


def steps(version: str, changes: str) -> list[str]:
    """What no program may do, or not before a person decided it."""
    base = re.sub(r"\.?(dev|a|b|rc)\d*$", "", version)
    undone = []
    if version != base:
        undone.append(f'Set __version__ = "{base}" in src/privmax/__init__.py (now {version}).')
    if changes.split(maxsplit=1)[0] != base:
        undone.append(
            f'Give the package and CHANGELOG.md one version: they have {base} and "{changes}".'
        )
    if "unreleased" in changes:
        undone.append(f'Date the entry of CHANGELOG.md (now "{changes}").')
    return [
        *undone,
        "See that .ci/run passes on the commit to be released, and run this check again on it.",
        f"Sign the hashes: gpg --armor --detach-sign {DIST.name}/{SUMS}",
        f"Sign the tag: git tag --sign v{base}",
        f"Upload the two archives of {DIST.name}/ from an account with a second factor.",
        f"Install privmax=={base} from the index elsewhere and compare its hashes with {SUMS}.",
    ]


def changelog() -> str:
    """The title of the newest entry of CHANGELOG.md."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return next(line for line in text.splitlines() if line.startswith("## "))[3:]


def read_metadata(wheel: Path) -> Message:
    """The metadata of a wheel."""
    return message_from_bytes(read_metadata_bytes(wheel))


def read_metadata_bytes(wheel: Path) -> bytes:
    """The same as the wheel has it: a message would fold its long lines."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(find_name(archive, ".dist-info/METADATA"))


def read_source_metadata(source: Path) -> bytes:
    """The metadata of a source distribution."""
    with tarfile.open(source) as archive:
        name = next(one for one in archive.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", one))
        file = archive.extractfile(name)
        assert file is not None
        return file.read()


def read_description(message: Message) -> str:
    """The long description."""
    payload = message.get_payload(decode=True)
    return payload.decode() if isinstance(payload, bytes) else ""


def find_name(archive: zipfile.ZipFile, ending: str) -> str:
    """The one name of an archive that ends so."""
    [name] = [name for name in archive.namelist() if name.endswith(ending)]
    return name


def find_one(folder: Path, ending: str) -> Path:
    """The one file of a folder that ends so."""
    [path] = [path for path in folder.iterdir() if path.name.endswith(ending)]
    return path


def digest_file(path: Path) -> str:
    """The SHA-256 of a file; of one that is missing, nothing."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def hash_for_record(content: bytes) -> str:
    """The hash of a file as the record of a wheel has it."""
    raw = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return "sha256=" + raw.rstrip(b"=").decode()


def run(command: list[str], folder: Path, env: dict[str, str] | None = None) -> bytes:
    """What a command prints; its errors end the check."""
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command[:4])} failed: {done.stderr.decode().strip()[-500:]}")
    return done.stdout


if __name__ == "__main__":
    main()
