"""No function is long, and none takes many parameters but the doors through which users come in."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import privmax

PACKAGE = Path(privmax.__file__).parent

LINES = 80
"""Lines that a function may have; its docstring does not count."""

PARAMETERS = 8
"""Parameters that a function may have, beside `self`, `cls` and what `*` and `**` take up."""

OPTIONS = 15
"""Options that a public function may have, beside the data and `coins`, which is for tests. What
travels together is a value: `Columns`, `Scores`, `TextFile`, `Database`, `Request`, `Layout`.
"""

_OPTIONS = "a public door: each option is given by name and told in its documentation"
DOORS = {
    "selection.select": _OPTIONS,
    "selection.law": _OPTIONS,
    "maximization.maximize": _OPTIONS,
    "planning.plans.plan": _OPTIONS,
    "keyset.release.keys": _OPTIONS,
    "itemsets.mining.top_itemsets": _OPTIONS,
    "itemsets.reading.forms.read_baskets": "what top_itemsets takes of a file, by name",
    "learning.models.select_model": _OPTIONS,
    "learning.validation.validate": _OPTIONS,
    "learning.search.PrivateSearch.__init__": "scikit-learn wants every parameter by name, here",
    "learning.estimator.PrivateERM.__init__": "scikit-learn wants every parameter by name, here",
    "learning.additive.estimator.PrivateGAM.__init__": "likewise",
    "learning.classifier.estimator.PrivateClassifier.__init__": "likewise",
    "learning.regressor.estimator.PrivateRegressor.__init__": "likewise",
    "learning.tree.PrivateTree.__init__": "likewise",
    "learning.stable.StableSelector.__init__": "scikit-learn wants every parameter by name, here",
    "learning.marginal.MarginalSelector.__init__": "scikit-learn wants every parameter by name",
    "markers.release.top_markers": _OPTIONS,
    "learning.classes.linear.LinearGrid.random": "what LinearGrid takes, and how it is drawn",
    "planning.comparison.compare": _OPTIONS,
    "auditing.audit": _OPTIONS,
    "testers.search.check_privacy": "the door of the tests by running",
    "report.release_page.html": _OPTIONS,
    "report.model_card.card": _OPTIONS,
    "learning.classes.linear_triton._count": "a kernel: Triton takes pointers and numbers, no more",
}
"""Functions with more parameters, and why."""


def functions(source: str, module: str) -> Iterator[tuple[str, int, int]]:
    """(dotted name, lines, parameters) of every function, also of those within others."""

    def walk(node: ast.AST, within: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            name = within
            if isinstance(child, ast.ClassDef):
                name = f"{within}.{child.name}"
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{within}.{child.name}"
                yield name, _lines(child), _parameters(child)
            yield from walk(child, name)

    return walk(ast.parse(source), module)


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_functions_are_measured():
    source = '''
class Box:
    async def open(self, a, /, b, *more, c=1, **rest):
        """Opens.

        It does."""
        def inner(): return 1
        return inner
'''
    assert list(functions(source, "box")) == [("box.Box.open", 3, 3), ("box.Box.open.inner", 1, 0)]


def found() -> dict[str, tuple[int, int]]:
    measured = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
        for name, lines, parameters in functions(file.read_text(encoding="utf-8"), module):
            measured[name] = lines, parameters
    return measured


@pytest.fixture(scope="module")
def measured():
    return found()


def test_no_function_is_long(measured):
    assert len(measured) > 1000
    assert {name: lines for name, (lines, _) in measured.items() if lines > LINES} == {}


def test_only_doors_take_many_parameters(measured):
    many = {name for name, (_, parameters) in measured.items() if parameters > PARAMETERS}
    assert many == DOORS.keys()  # nor is there a door that does not need to be one


def public_functions() -> dict[str, Callable[..., object]]:
    """Every function and class that can be named from `privmax` and from its public packages."""
    packages = [privmax, *(getattr(privmax, name) for name in privmax._MODULES)]
    named = {
        f"{package.__name__}.{name}": getattr(package, name)
        for package in packages
        for name in getattr(package, "__all__", ())
    }
    return {name: one for name, one in named.items() if callable(one)}


def count_options(function: Callable[..., object]) -> int:
    """How many parameters a function has that are given by name, beside `coins`."""
    given = inspect.signature(function).parameters.values()
    return sum(one.kind is one.KEYWORD_ONLY and one.name != "coins" for one in given)


def test_options_are_counted():
    def example(data, *, epsilon=1, k=1, coins=None): ...

    assert count_options(example) == 2


@pytest.mark.parametrize("name", list(public_functions()))
def test_a_public_function_has_few_options(name):
    try:
        options = count_options(public_functions()[name])
    except ValueError:  # an exception of Python's own has no signature
        options = 0
    assert options <= OPTIONS


def test_public_functions_are_looked_at():
    assert {"privmax.select", "privmax.top_itemsets", "privmax.markers.top_markers"} <= set(
        public_functions()
    )
