"""What every function and class of the package takes where nothing is given, compared with what is
stored: another default changes what callers get who say nothing. Where one is to change,

    python tests/golden/test_defaults.py

stores all again: read the difference, and say in CHANGELOG.md what is new.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import privmax

sys.path.append(str(Path(__file__).parent))

from stored_rows import read_stored

STORED = Path(__file__).parent / "stored" / "defaults.json"

FOLDERS = (
    "accounting", "best_items", "best_per_group", "composition", "count_costs", "counts",
    "grouping", "groups", "keyset", "learning.additive", "learning.classifier",
    "learning.regressor", "ledger", "losses", "mechanisms", "noise", "one_key_each", "payload",
    "privacy", "profile", "relative", "release", "repetition", "rounds",
)  # fmt: skip
"""Modules that decide what is released and what it costs."""

PLAIN = (bool, int, float, str, Fraction, type(None))


def modules(name: str) -> Iterator[str]:
    module = importlib.import_module(f"privmax.{name}")
    yield module.__name__
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not found.name.startswith(("postgres", "engine", "kernel")):
            yield from modules(f"{name}.{found.name}")


def shown(value: object) -> str:
    if isinstance(value, PLAIN) or (
        isinstance(value, tuple) and all(isinstance(one, PLAIN) for one in value)
    ):
        return repr(value)
    return type(value).__name__


def defaults_of(what: Any) -> dict[str, str]:
    try:
        taken = inspect.signature(what).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {one.name: shown(one.default) for one in taken if one.default is not one.empty}


def defined_in(module: str) -> Iterator[tuple[str, Any]]:
    for name, value in vars(importlib.import_module(module)).items():
        if getattr(value, "__module__", None) != module:
            continue
        bare = inspect.unwrap(value)
        if isinstance(bare, type):
            yield name, bare
            for part, method in vars(bare).items():
                function = getattr(method, "__func__", method)
                if isinstance(function, FunctionType) and part != "__init__":
                    yield f"{name}.{part}", function
        elif isinstance(bare, FunctionType):
            yield name, bare


def compute(folder: str) -> dict[str, dict[str, str]]:
    found = {
        f"{module.removeprefix('privmax.')}.{name}": defaults_of(value)
        for module in modules(folder)
        for name, value in defined_in(module)
    }
    return {name: defaults for name, defaults in found.items() if defaults}


@pytest.mark.parametrize("folder", FOLDERS)
def test_defaults_are_what_they_were(folder):
    assert compute(folder) == read_stored(STORED)[folder]


def test_what_is_public_is_among_them():
    """At the top there are only names of these and of other modules."""
    named = {name for folder in read_stored(STORED).values() for name in folder}
    assert {"keyset.release.keys", "keyset.procedure.KeySearch", "counts.choose_noise"} <= named
    assert callable(privmax.keys)


if __name__ == "__main__":
    written = {folder: compute(folder) for folder in FOLDERS}
    STORED.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
