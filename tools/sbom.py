"""Writes the bill of materials of privmax: the package, its dependencies and those of every extra.

    ./dev sbom          print it
    ./dev sbom FILE     write it to FILE

It is JSON in the format of CycloneDX 1.6, checked against the schema of that format. Versions are
those of the development environment, which are the locked ones. What only the extras need has the
scope "optional". Nothing else of the development environment is in it, no path and no host. The
time is that of the commit (or SOURCE_DATE_EPOCH), so the same commit gives the same bytes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)


def main() -> None:
    """Write the bill of materials where the command line says."""
    if len(sys.argv) > 2 or any(argument.startswith("-") for argument in sys.argv[1:]):
        sys.exit("usage: ./dev sbom [FILE]")
    text = write(bill())
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


def write(content: dict[str, Any]) -> str:
    """The bill of materials as text, refused if it does not fit the schema of CycloneDX."""
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    if (error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)) is not None:
        raise ValueError(f"not a bill of materials of CycloneDX 1.6: {error}")
    return text


def bill() -> dict[str, Any]:
    """The bill of materials of the project."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    core = needs(project["dependencies"])
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    every = needs([*project["dependencies"], *extras])
    described = environment()
    components = [component(name, described, optional=name not in core) for name in sorted(every)]
    references: dict[str, str] = {
        canonicalize_name(part["name"]): part["bom-ref"] for part in components
    }
    version = _match(VERSION, (ROOT / "src/privmax/__init__.py").read_text(encoding="utf-8"))
    root = {
        "bom-ref": f"privmax=={version}",
        "description": project["description"],
        "licenses": [{"license": {"id": project["license"], "acknowledgement": "declared"}}],
        "name": "privmax",
        "purl": f"pkg:pypi/privmax@{version}",
        "type": "library",
        "version": version,
    }
    lines = [*project["dependencies"], *extras]
    direct: set[str] = {canonicalize_name(Requirement(line).name) for line in lines}
    edges = {root["bom-ref"]: direct, **{references[name]: every[name] for name in every}}
    tools = described["metadata"]["tools"]["components"]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": root,
            "timestamp": datetime.fromtimestamp(epoch(), UTC).isoformat(),
            "tools": {"components": [_keep(tool, "name", "type", "version") for tool in tools]},
        },
        "components": components,
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(references[name] for name in names)}
            for ref, names in sorted(edges.items())
        ],
    }


def environment() -> dict[str, Any]:
    """What CycloneDX's own tool says of all packages of this environment."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
    options = ["--sv", "1.6", "--no-validate", sys.executable]  # `write` validates what is left
    done = subprocess.run([*command, *options], check=True, capture_output=True, cwd=ROOT)
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def component(name: str, described: dict[str, Any], *, optional: bool) -> dict[str, Any]:
    """One package. Addresses are left out: the purl says where it is from."""
    scope = "optional" if optional else "required"
    for part in described["components"]:
        if canonicalize_name(part["name"]) == name:
            kept = _keep(part, "bom-ref", "licenses", "name", "type", "version")
            return {**kept, "purl": f"pkg:pypi/{name}@{part['version']}", "scope": scope}
    version = locked()[name]
    return {
        "bom-ref": f"{name}=={version}",
        "name": name,
        "purl": f"pkg:pypi/{name}@{version}",
        "scope": scope,
        "type": "library",
        "version": version,
    }


def needs(lines: Iterable[str]) -> dict[str, set[str]]:
    """All packages that these requirements lead to, each with those that it needs itself."""
    found: dict[str, set[str]] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(Requirement(line), frozenset({""})) for line in lines]
    while waiting:
        requirement, asked = waiting.pop()
        if not _applies(requirement, asked):
            continue
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        edges = found.setdefault(name, set())
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for line in requires(name):
            inner = Requirement(line)
            if _applies(inner, extras | {""}):
                edges.add(canonicalize_name(inner.name))
                waiting.append((inner, extras | {""}))
    return found


def requires(name: str) -> list[str]:
    """What a package needs. MySQL's client, which is not installed everywhere, needs nothing."""
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        if name in locked():
            return []
        raise


def locked() -> dict[str, str]:
    """Versions that the lock files name."""
    files = ("locks/requirements-mysql.lock", "locks/requirements.lock")
    text = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in files)
    return {canonicalize_name(name): version for name, version in PIN.findall(text)}


def epoch() -> int:
    """Seconds since 1970 when the commit was made, or SOURCE_DATE_EPOCH."""
    if said := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(said)
    command = ["git", "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)


def _keep(part: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: part[key] for key in keys if key in part}


def _match(pattern: re.Pattern[str], text: str) -> str:
    if (found := pattern.search(text)) is None:
        raise ValueError(f"no line fits {pattern.pattern}")
    return found[1]


if __name__ == "__main__":
    main()
