"""All targets, by name."""

from __future__ import annotations

from importlib import import_module

from fuzzing.judging import Target

MODULES = ("parsers", "files", "releases")
"""Modules of this package that hold targets, in the order in which they are listed."""


def targets() -> dict[str, Target]:
    """All targets, by name."""
    found = [one for name in MODULES for one in import_module(f"fuzzing.{name}").TARGETS]
    return {one.name: one for one in found}
