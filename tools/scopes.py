"""Syntax trees whose local variables and parameters are numbered, whatever they are called.

Two functions that differ only in the names of their own variables have the same numbered tree. A
name of a module, a class, an import, an attribute or a keyword argument stays as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NAMED_INSIDE = {
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
}
"""Nodes that bind a name without a `Name`, and the field that has it."""


def number_locals(node: ast.AST) -> ast.AST:
    """Replace the names of local variables and parameters in a tree by numbers, in place.

    Examples:
        >>> first, second = (ast.parse(f"def f({a}): return [{a} for {b} in {a}]") for a, b in
        ...                  (("x", "y"), ("rows", "row")))
        >>> ast.dump(number_locals(first)) == ast.dump(number_locals(second))
        True
    """
    _visit(node, {}, 0)
    return node


def _visit(node: ast.AST, names: Mapping[str, str], depth: int) -> None:
    """Rename what is in a node; `names` are the numbers of the variables that it sees."""
    if isinstance(node, FUNCTIONS):
        _visit_function(node, names, depth)
    elif isinstance(node, COMPREHENSIONS):
        _visit_comprehension(node, names, depth)
    elif isinstance(node, ast.ClassDef):
        _visit_class(node, names, depth)
    else:
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        if isinstance(node, ast.arg):
            node.arg = names.get(node.arg, node.arg)
        if isinstance(node, ast.Nonlocal):
            node.names = [names.get(name, name) for name in node.names]
        field = NAMED_INSIDE.get(type(node))
        if field is not None and getattr(node, field) is not None:
            setattr(node, field, names.get(getattr(node, field), getattr(node, field)))
        for child in ast.iter_child_nodes(node):
            _visit(child, names, depth)


def _visit_function(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, names: Mapping[str, str], depth: int
) -> None:
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    every = node.args
    arguments = [*every.posonlyargs, *every.args, *every.kwonlyargs]
    arguments += filter(None, [every.vararg, every.kwarg])
    outside: list[ast.AST] = [*every.defaults, *filter(None, every.kw_defaults)]
    outside += [one.annotation for one in arguments if one.annotation is not None]
    if not isinstance(node, ast.Lambda):
        outside += [*node.decorator_list, *filter(None, [node.returns])]
    for part in outside:  # evaluated where the function is defined
        _visit(part, names, depth)
    bound = _Bound(dict.fromkeys(one.arg for one in arguments))
    for part in body:
        bound.add(part)
    inside = bound.extend(names, depth)
    for one in arguments:
        one.arg = inside[one.arg]
    for part in body:
        _visit(part, inside, depth + 1)


def _visit_comprehension(
    node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp,
    names: Mapping[str, str],
    depth: int,
) -> None:
    first = node.generators[0].iter
    own = dict.fromkeys(
        part.id
        for one in node.generators
        for part in ast.walk(one.target)
        if isinstance(part, ast.Name)
    )
    inside = _Bound(own).extend(names, depth)
    _visit(first, names, depth)  # the first iterator does not see the variables
    for one in node.generators:
        parts = [one.target, *one.ifs, *([] if one.iter is first else [one.iter])]
        for part in parts:
            _visit(part, inside, depth + 1)
    results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    for part in results:
        _visit(part, inside, depth + 1)


def _visit_class(node: ast.ClassDef, names: Mapping[str, str], depth: int) -> None:
    """Rename in the methods of a class; its own names are attributes, and not seen in them."""
    bound = _Bound({})
    for part in node.body:
        bound.add(part)
    own = {**names, **{name: name for name in [*bound.assigned, *bound.fixed]}}
    for outside in [*node.decorator_list, *node.bases, *node.keywords]:
        _visit(outside, names, depth)
    for part in node.body:
        _visit(part, names if isinstance(part, FUNCTIONS) else own, depth)


class _Bound:
    """The names that a scope binds.

    Attributes:
        assigned: Variables, in the order in which they occur.
        fixed: Imports, definitions and globals, whose names stay.
        outer: Variables of a function around it, declared nonlocal.
    """

    def __init__(self, assigned: dict[str, None]) -> None:
        self.assigned = assigned
        self.fixed: set[str] = set()
        self.outer: set[str] = set()

    def extend(self, names: Mapping[str, str], depth: int) -> dict[str, str]:
        """Return what names stand for within; no identifier has a colon, so no number is one."""
        own = [name for name in self.assigned if name not in self.fixed | self.outer]
        numbers = {name: f"{depth}:{number}" for number, name in enumerate(own)}
        return {**names, **numbers, **{name: name for name in self.fixed}}

    def add(self, node: ast.AST) -> None:
        """Note what a node binds in this scope; scopes within it bind their own."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            self.assigned[node.id] = None
        field = NAMED_INSIDE.get(type(node))
        if field is not None and getattr(node, field) is not None:
            self.assigned[getattr(node, field)] = None
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self.fixed.update((one.asname or one.name).partition(".")[0] for one in node.names)
        if isinstance(node, ast.Global):
            self.fixed.update(node.names)
        if isinstance(node, ast.Nonlocal):
            self.outer.update(node.names)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.fixed.add(node.name)
        elif isinstance(node, COMPREHENSIONS):  # of all that is in it only := binds outside
            for part in ast.walk(node):
                if isinstance(part, ast.NamedExpr):
                    self.assigned[part.target.id] = None
        elif not isinstance(node, ast.Lambda):
            for child in ast.iter_child_nodes(node):
                self.add(child)
