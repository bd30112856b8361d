"""A class has a name of its own: no other module of the package defines one that is called so."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

import privmax

PACKAGE = Path(privmax.__file__).parent
SOURCES = {
    path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", "."): path.read_text("utf-8")
    for path in PACKAGE.rglob("*.py")
}

SHARED = {
    "Scores": "privmax.Scores and privmax.learning.Scores are both public",
}
"""Names that two modules use, and why."""


def shared_names(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """The names of classes that several modules define, and those modules."""
    homes = defaultdict(set)
    for module, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(module)
    return {name: sorted(modules) for name, modules in homes.items() if len(modules) > 1}


def test_a_name_is_that_of_one_class():
    found = shared_names(SOURCES)
    assert {name: homes for name, homes in found.items() if name not in SHARED} == {}
    assert SHARED.keys() <= found.keys(), "a name is no longer shared: take it out of SHARED"


@pytest.mark.parametrize("name", ["Part", "_Part"])
def test_a_second_class_would_be_found(name):
    source = f"def make():\n    class {name}: ...\n"
    assert shared_names({"one": f"class {name}: ...", "two": source}) == {name: ["one", "two"]}
    assert shared_names({"one": f"class {name}: ...", "two": f"from one import {name}"}) == {}
