"""All targets, by name. Only the modules of the groups that are asked for are imported."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from lab.fuzzing.judging import ENGINE, PARSER, READER, Target

MODULES = {
    PARSER: ("parsers", "files"),
    READER: ("releases",),
    ENGINE: ("engines", "commands"),
}
"""Modules of this package that hold targets, by group."""


def targets(groups: Sequence[str] = tuple(MODULES)) -> dict[str, Target]:
    """The targets of some groups, by name."""
    names = [name for group in groups for name in MODULES[group]]
    found = [one for name in names for one in import_module(f"lab.fuzzing.{name}").TARGETS]
    return {one.name: one for one in found}
