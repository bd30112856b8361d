"""Docstrings: their examples are run, and what is public in the lower layers has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path
from typing import Protocol

import pytest

import privmax

PACKAGE = Path(privmax.__file__).parent


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


WITH_EXAMPLES = sorted(
    module_name(path)
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
LOWER = sorted(
    module_name(path)
    for pattern in [
        "errors.py",
        "numbers.py",
        "parameters.py",
        "privacy.py",
        "profile.py",
        "composition.py",
        "universe.py",
        "planning/lower_bounds.py",
        "planning/theory.py",
        "noise/*.py",
        "mechanisms/*.py",
    ]
    for path in PACKAGE.glob(pattern)
    if path.stem != "__init__"
)
"""The layers of which every public function and class has an example."""

ANSWER_A_PROTOCOL = {"SystemCoins", "ExponentialNoise", "LaplaceNoise"}
"""Their methods are described there."""


COMPILED = {"privmax.learning.classes.conjunctions"}
"""Whose examples are slow the first time, when the search is compiled."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in COMPILED else ())
        for name in WITH_EXAMPLES
    ],
)
def test_the_examples_of_a_module_are_right(name):
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert tried
    assert not failed, "what was expected stands above"


def test_an_example_that_is_wrong_is_found():
    parsed = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert doctest.DocTestRunner(verbose=False).run(parsed, out=lambda text: None).failed == 1


def public(name):
    """Every public function and class that a module defines."""
    module = importlib.import_module(name)
    return [
        value
        for key, value in vars(module).items()
        if not key.startswith("_")
        and callable(value)
        and getattr(value, "__module__", None) == name
        and (inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value)))
    ]


def shown_by_others(value):
    """Protocols, plain records of values, and errors that carry nothing are shown where they are
    used.
    """
    return (
        Protocol in value.__mro__[1:]
        or (issubclass(value, Exception) and "__init__" not in vars(value))
        or value.__name__ in {"PartialJoint", "Run", "Piece", "Sequences", "Parameter"}
        if inspect.isclass(value)
        else False
    )


@pytest.mark.parametrize("name", LOWER)
def test_everything_public_in_the_lower_layers_has_an_example(name):
    found = public(name)
    assert found
    for value in found:
        told = inspect.getdoc(value)
        assert told, f"{value.__qualname__} has no docstring"
        assert ">>> " in told or shown_by_others(value), f"{value.__qualname__} has no example"
        if inspect.isclass(value) and value.__name__ not in ANSWER_A_PROTOCOL:
            for key, method in vars(value).items():
                if inspect.isfunction(method) and not key.startswith("_"):
                    assert inspect.getdoc(getattr(value, key)), f"{method.__qualname__}: no words"


@pytest.mark.parametrize(
    "name",
    ["privmax.itemsets", "privmax.learning", "privmax.learning.bounds", "privmax.samples"],
)
def test_everything_that_the_rooms_offer_has_an_example(name):
    module = importlib.import_module(name)
    offered = [getattr(module, key) for key in getattr(module, "__all__", [])] or public(name)
    for value in offered:
        if callable(value) and not shown_by_others(value):
            assert ">>> " in (inspect.getdoc(value) or ""), f"{value.__qualname__} has no example"


@pytest.mark.parametrize("name", LOWER)
def test_no_module_is_called_like_what_it_exports(name):
    assert name.rpartition(".")[2] not in {value.__name__ for value in public(name)}
