"""Wrong versions of the code, each with one small change, for lab/mutation.py.

A mutant swaps one operator, comparison, constant, bound or rounding direction, or leaves out one
statement. OPERATORS says which changes there are. Left alone are texts (strings, messages,
docstrings, everything inside `raise`, `repr`), type hints, decorators, imports, `__all__` and the
`strict` of `zip`.

`mutants_of` lists those of a file, `Mutant.apply` puts one into the running process: it compiles
the function again and gives the new code to the functions that are there, so nothing is imported
anew and no file is written.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import gc
import pickle
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "privmax"

MODULES = {
    "noise": "noise/*.py",
    "profile": "profile.py",
    "mechanisms": "mechanisms/*.py",
    "composition": "composition.py",
    "privacy": "privacy.py",
    "release": "release.py",
    "ledger": "ledger/*.py",
    "losses": "losses.py accounting.py",
    "repetition": "repetition.py",
    "counts": "counts.py count_costs.py relative.py",
    "payload": "payload.py best_items.py",
    "groups": "grouping.py groups.py best_per_group.py",
    "keyset": "keyset/*.py one_key_each.py rounds.py",
    "learning": "learning/additive/fitting.py learning/additive/link.py "
    "learning/additive/memory.py learning/additive/rounds.py learning/additive/steps.py "
    "learning/classifier/choice.py learning/classifier/counting.py learning/classifier/fitting.py "
    "learning/classifier/question.py learning/classifier/terms.py learning/regressor/fitting.py "
    "learning/regressor/targets.py learning/regressor/terms.py",
}
"""What can be mutated, and in which files it is."""

CORE = ("noise", "profile", "mechanisms", "composition", "privacy", "release", "ledger")
"""The modules that every answer goes through. The others were added later."""

ON_SERVERS = {f"ledger/postgres{part}.py" for part in ("", "_rows", "_schema", "_urls")}
"""Left out: only tests on a real server run them."""

COMPARISONS: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}

ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}

COUNTERPARTS = {
    one: other
    for pair in [
        ("min", "max"),
        ("minimum", "maximum"),
        ("floor", "ceil"),
        ("any", "all"),
        ("lower", "upper"),
        ("low", "high"),
        ("round_down", "round_up"),
        ("first", "last"),
    ]
    for one, other in (pair, pair[::-1])
}
"""Names that stand for the opposite direction. They are swapped where the other exists, too."""

OPERATORS = {
    "comparison": "`<` becomes `<=` and `>=`, `==` becomes `!=`, `in` becomes `not in`, and so on",
    "arithmetic": "`+` becomes `-`, `*` becomes `/`, `**` becomes `*`, `<<` becomes `>>`, …",
    "number": "a whole number becomes one more and one less, a float its double and its half",
    "logic": "`and` becomes `or`; `not x` and `-x` become `x`; True becomes False; conditions turn",
    "direction": "`min` becomes `max`, `floor` `ceil`, `any` `all`, `lower` `upper`, `low` `high`",
    "statement": "a call, a `raise`, an assignment to an attribute or `+=` is left out; `break` "
    "becomes `continue`; `return x` becomes `return None`",
}

UNTOUCHED = {"__repr__", "__str__", "_repr_html_", "__all__", "__slots__"}


@dataclass(frozen=True)
class Mutant:
    """One changed statement.

    Attributes:
        file: Below src/privmax.
        function: Its qualified name; of a class, or empty, for what stands outside functions.
        was: The statement without its body, as `ast.unparse` writes it.
        now: What it becomes.
        number: Which of those with the same text in the same function, from 0.
        operator: A key of OPERATORS.
        lines: First and last line of what is changed.
        place: Where it is: as `_sites` counts, and which alternative.
    """

    file: str
    function: str
    was: str
    now: str
    number: int
    operator: str
    lines: tuple[int, int]
    place: tuple[int, int]

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What names it, also after lines have moved."""
        return self.file, self.function, self.was, self.now, self.number

    @property
    def module(self) -> str:
        return module_of(self.file)

    def apply(self) -> None:
        """Change the running process."""
        tree, sites = _read(self.file)
        site = sites[self.place[0]]
        other = list(_alternatives(site, tree))[self.place[1]][1]
        _replace(site, ast.fix_missing_locations(ast.copy_location(other, site.node)))
        try:
            if site.outside:
                _transplant(tree, site, PACKAGE / self.file)
            else:
                _swap_code(tree, site, PACKAGE / self.file)
        finally:
            _replace(site, site.node)


@cache
def module_of(file: str) -> str:
    """The key of MODULES a file belongs to."""
    return next(
        module
        for module, patterns in MODULES.items()
        if any(fnmatchcase(file, pattern) for pattern in patterns.split())
    )


def files_of(module: str) -> list[str]:
    """The files of a key of MODULES."""
    found = [file for one in MODULES[module].split() for file in sorted(PACKAGE.glob(one))]
    names = [file.relative_to(PACKAGE).as_posix() for file in found]
    return [name for name in names if name not in ON_SERVERS]


@cache
def mutants_of(
    file: str, source: str | None = None, within: frozenset[str] | None = None
) -> tuple[Mutant, ...]:
    """All mutants of a file below src/privmax, or of other source in its place.

    Args:
        file: Below src/privmax.
        source: Its text, if it is not that of the file.
        within: Only those of these functions.

    Examples:
        >>> [one.now for one in mutants_of("x.py", "def f(x):\\n    return x < 2")]
        ['return None', 'return x <= 2', 'return x >= 2', 'return x < 3', 'return x < 1']
    """
    text = (PACKAGE / file).read_text(encoding="utf-8") if source is None else source
    tree = ast.parse(text)
    found: list[Mutant] = []
    seen: dict[tuple[str, str, str], int] = {}
    for place, site in enumerate(_sites(tree)):
        if within is not None and site.function not in within:
            continue
        was = _header(site.statement)
        for which, (operator, other) in enumerate(_alternatives(site, tree)):
            _replace(site, other)
            changed = other if site.node is site.statement else site.statement
            assert isinstance(changed, ast.stmt)
            now = _header(changed)
            _replace(site, site.node)
            same = (site.function, was, now)
            seen[same] = seen.get(same, -1) + 1
            lines = site.node.lineno, site.node.end_lineno or site.node.lineno
            if site.node is site.statement:
                lines = lines[0], lines[0]
            found.append(Mutant(file, *same, seen[same], operator, lines, (place, which)))
    return tuple(found)


def names_of(mutant: Mutant) -> frozenset[str]:
    """What a statement outside functions assigns to."""
    tree = ast.parse(mutant.was if mutant.was[-1] != ":" else f"{mutant.was} ...")
    stored = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return frozenset(node.id for node in stored if isinstance(node.ctx, ast.Store))


def derived_from(mutant: Mutant) -> frozenset[str]:
    """Return the constants and functions of the file that depend on what a statement assigns to."""
    tree = ast.parse((PACKAGE / mutant.file).read_text(encoding="utf-8"))
    names = set() if mutant.function else set(names_of(mutant))
    found: set[str] = set()
    while names:
        found |= names
        names = set()
        for statement in tree.body:
            named = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
            if not found & {node.id for node in named if isinstance(node.ctx, ast.Load)}:
                continue
            if isinstance(statement, ast.FunctionDef):
                names.add(statement.name)
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
                names |= {node.id for node in named if isinstance(node.ctx, ast.Store)}
        names -= found
    return frozenset(found)


def users_of(mutant: Mutant) -> Iterator[tuple[str, int]]:
    """Files and lines in which a constant, a default or an attribute of a class may be met.

    For what is changed outside functions: every line that names it, and of a class or function
    every line that belongs to it.
    """
    names = names_of(mutant) | derived_from(mutant)
    for module in MODULES:
        for file in files_of(module):
            yield from ((file, line) for line in _lines_naming(file, names))
    if mutant.function:
        tree = ast.parse((PACKAGE / mutant.file).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if (
                isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
                and node.name == mutant.function.split(".")[-1]
            ):
                last = node.end_lineno or node.lineno
                yield from ((mutant.file, line) for line in range(node.lineno, last + 1))


@cache
def _lines_naming(file: str, names: frozenset[str]) -> tuple[int, ...]:
    return tuple(line for name in names for line in _named(file).get(name, ()))


@cache
def _named(file: str) -> dict[str, set[int]]:
    lines: dict[str, set[int]] = {}
    for node in ast.walk(ast.parse((PACKAGE / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name):
            lines.setdefault(node.id, set()).add(node.lineno)
        elif isinstance(node, ast.Attribute):
            lines.setdefault(node.attr, set()).add(node.end_lineno or node.lineno)
    return lines


# Where something can be changed


@dataclass
class _Site:
    node: Any
    parent: ast.AST
    field: str
    index: int | None
    statement: ast.stmt
    function: str
    top: ast.stmt  # of the file, that it is in
    outside: bool  # whether it is evaluated when the function is defined, not when it is called


def _sites(tree: ast.Module) -> Iterator[_Site]:
    """Every statement and expression that may be changed, in order."""
    for statement in tree.body:
        yield from _in_definition(statement, "", statement)


def _in_definition(statement: ast.stmt, name: str, top: ast.stmt) -> Iterator[_Site]:
    """What stands in a file or class."""
    if isinstance(statement, ast.ClassDef):
        for part in statement.body:
            yield from _in_definition(part, _join(name, statement.name), top)
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if statement.name not in UNTOUCHED:
            inner = _join(name, statement.name)
            yield from _in_defaults(statement, inner, top)
            yield from _in_statements(statement, "body", inner, top)
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if all(isinstance(one, ast.Name) and one.id not in UNTOUCHED for one in targets):
            yield from _in_expression(
                _Site(statement.value, statement, "value", None, statement, name, top, True)
            )


def _join(name: str, inner: str) -> str:
    return f"{name}.{inner}" if name else inner


def _in_defaults(
    function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, top: ast.stmt
) -> Iterator[_Site]:
    for field in ("defaults", "kw_defaults"):
        for index, value in enumerate(getattr(function.args, field)):
            if value is not None:
                site = _Site(value, function.args, field, index, function, name, top, True)
                yield from _in_expression(site)


def _in_statements(parent: Any, field: str, name: str, top: ast.stmt) -> Iterator[_Site]:
    for index, inner in enumerate(getattr(parent, field)):
        if isinstance(inner, ast.stmt):
            yield from _in_statement(_Site(inner, parent, field, index, inner, name, top, False))
        else:  # a handler of an exception, or a case
            yield from _in_statements(inner, "body", name, top)


def _in_statement(site: _Site) -> Iterator[_Site]:
    node = site.node
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from _in_statements(node, "body", site.function, site.top)
        return
    if isinstance(node, (ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring, or ...
    yield site
    if isinstance(node, ast.Raise):
        return  # what an error says
    for field, value in ast.iter_fields(node):
        if field in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _in_statements(node, field, site.function, site.top)
        elif field in ("annotation", "targets", "target"):
            continue
        elif isinstance(value, ast.expr):
            yield from _in_expression(
                dataclasses.replace(site, node=value, parent=node, field=field, index=None)
            )
        elif isinstance(value, list):
            for index, one in enumerate(value):
                part = one.context_expr if isinstance(one, ast.withitem) else one
                if isinstance(part, ast.expr):
                    place = ("context_expr", None) if part is not one else (field, index)
                    yield from _in_expression(
                        dataclasses.replace(
                            site,
                            node=part,
                            parent=one if part is not one else node,
                            field=place[0],
                            index=place[1],
                        )
                    )


def _in_expression(site: _Site) -> Iterator[_Site]:
    yield site
    if isinstance(site.node, ast.JoinedStr):
        return  # text
    if isinstance(site.node, ast.Call) and _called(site.node) in ("TypeVar", "cast", "NewType"):
        return
    for field, value in ast.iter_fields(site.node):
        if isinstance(value, (ast.expr, ast.comprehension, ast.keyword)):
            yield from _below(site, value, site.node, field, None)
        elif isinstance(value, list):
            for index, one in enumerate(value):
                if isinstance(one, (ast.expr, ast.comprehension, ast.keyword)):
                    yield from _below(site, one, site.node, field, index)


def _below(
    site: _Site, node: ast.AST, parent: ast.AST, field: str, index: int | None
) -> Iterator[_Site]:
    if isinstance(node, ast.keyword):
        if node.arg != "strict":  # of zip: a check that cannot fail
            yield from _below(site, node.value, node, "value", None)
    elif isinstance(node, ast.comprehension):
        yield from _below(site, node.iter, node, "iter", None)
        for number, one in enumerate(node.ifs):
            yield from _below(site, one, node, "ifs", number)
    else:
        yield from _in_expression(
            dataclasses.replace(site, node=node, parent=parent, field=field, index=index)
        )


# What it becomes


def _alternatives(site: _Site, tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    node = site.node
    if isinstance(node, ast.stmt):
        yield from (("statement", other) for other in _statements(site))
    elif isinstance(node, ast.Compare):
        for index, sign in enumerate(node.ops):
            for other in COMPARISONS[type(sign)]:
                ops = [*node.ops[:index], other(), *node.ops[index + 1 :]]
                yield "comparison", _like(node, ops=ops)
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        text = (ast.Constant, ast.JoinedStr)
        if not any(isinstance(side, text) and _is_text(side) for side in (node.left, node.right)):
            yield "arithmetic", _like(node, op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
        operator = "logic" if isinstance(node.op, ast.Not) else "arithmetic"
        yield operator, node.operand
    elif isinstance(node, ast.BoolOp):
        yield "logic", _like(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Name) and node.id in COUNTERPARTS:
        if node.id in ("min", "max", "any", "all") or _is_known(COUNTERPARTS[node.id], tree):
            yield "direction", _like(node, id=COUNTERPARTS[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in COUNTERPARTS:
        yield "direction", _like(node, attr=COUNTERPARTS[node.attr])
    plain = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
    if site.field == "test" and isinstance(node, plain):
        yield "logic", ast.UnaryOp(op=ast.Not(), operand=node)


def _constants(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    value = node.value
    if isinstance(value, bool):
        yield "logic", _like(node, value=not value)
    elif isinstance(value, int):
        yield "number", _like(node, value=value + 1)
        yield "number", _like(node, value=value - 1)
    elif isinstance(value, float) and value:
        yield "number", _like(node, value=value * 2)
        yield "number", _like(node, value=value / 2)


def _statements(site: _Site) -> Iterator[ast.stmt]:
    node = site.node
    gone = ast.copy_location(ast.Pass(), node)
    if isinstance(node, (ast.Raise, ast.AugAssign)):
        yield gone
    if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield _like(node, op=ARITHMETIC[type(node.op)]())
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield gone
    if isinstance(node, ast.Assign) and any(isinstance(t, ast.Attribute) for t in node.targets):
        yield gone
    if isinstance(node, ast.Break):
        yield ast.copy_location(ast.Continue(), node)
    if isinstance(node, ast.Continue):
        yield ast.copy_location(ast.Break(), node)
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield _like(node, value=ast.copy_location(ast.Constant(value=None), node.value))


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), (str, bytes))


def _is_known(name: str, tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _called(node: ast.Call) -> str:
    return getattr(node.func, "id", "") or getattr(node.func, "attr", "")


def _like(node: Any, **changes: object) -> Any:
    other = copy.copy(node)
    for name, value in changes.items():
        setattr(other, name, value)
    return other


def _replace(site: _Site, other: ast.AST) -> None:
    if site.index is None:
        setattr(site.parent, site.field, other)
    else:
        getattr(site.parent, site.field)[site.index] = other


def _header(statement: ast.stmt) -> str:
    """The text of a statement without those in it and without decorators."""
    bare = copy.copy(statement)
    for field in ("body", "orelse", "finalbody", "handlers", "decorator_list", "cases"):
        if hasattr(bare, field):
            setattr(bare, field, [])
    return ast.unparse(bare).strip()


# Putting it into the running process


@cache
def _read(file: str) -> tuple[ast.Module, list[_Site]]:
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    return tree, list(_sites(tree))


def index_functions() -> None:
    """Find the functions that are there, before `apply`. Once they are frozen they are hidden."""
    gc.unfreeze()
    for one in gc.get_objects():
        if isinstance(one, FunctionType):
            file = one.__code__.co_filename
            if file.startswith(str(PACKAGE)):
                _FUNCTIONS.setdefault(_code_key(one.__code__), []).append(one)


_FUTURE = ast.parse("from __future__ import annotations").body[0]

_FUNCTIONS: dict[tuple[str, str, int], list[FunctionType]] = {}


def _code_key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _swap_code(tree: ast.Module, site: _Site, file: Path) -> None:
    """Compile the function or class again, and give its code to all functions made of the old."""
    swapped = 0
    part = ast.Module(body=[_FUTURE, site.top], type_ignores=[])
    module = compile(part, str(file), "exec")
    for code in _codes(module):
        for function in _FUNCTIONS.get(_code_key(code), []):
            free = function.__code__.co_freevars
            if len(free) == len(code.co_freevars):
                function.__code__ = code
                swapped += 1
            elif free == ("__class__",):  # its super() was left out
                function.__code__ = code.replace(co_freevars=free)
                swapped += 1
    if not swapped:
        raise LookupError(f"{file.name}: {site.function} is not there")


def _transplant(tree: ast.Module, site: _Site, file: Path) -> None:
    """Run the whole file aside, and move what the statement defines to where the old one is."""
    name = ".".join(["privmax", *file.relative_to(PACKAGE).with_suffix("").parts])
    there = sys.modules[name.removesuffix(".__init__")]
    aside: dict[str, Any] = {"__name__": there.__name__, "__file__": str(file)}
    exec(compile(tree, str(file), "exec"), aside)
    if isinstance(site.statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        new = _find(aside, site.function)
        for old in _FUNCTIONS.get(_code_key(new.__code__), []):
            old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
        return
    statement = site.statement
    assert isinstance(statement, (ast.Assign, ast.AnnAssign))
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        assert isinstance(target, ast.Name)
        if not site.function:
            _renew(target.id, vars(there)[target.id], aside[target.id])
            _renew_computed(vars(there), aside)
        else:
            old_class, new_class = _find(vars(there), site.function), _find(aside, site.function)
            _renew_attribute(old_class, new_class, target.id)


def _renew(name: str, before: Any, after: Any) -> None:
    """Give every module that has a value by its name another one."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        if names.get(name) is before:
            names[name] = after


def _renew_computed(there: Mapping[str, Any], aside: Mapping[str, Any]) -> None:
    """Renew the constants, and the defaults of functions, that are computed from a changed one."""
    for name, before in list(there.items()):
        after = aside.get(name)
        if _differs(before, after):
            _renew(name, before, after)
    for new in aside.values():
        if isinstance(new, FunctionType):
            for old in _FUNCTIONS.get(_code_key(new.__code__), []):
                if _differs(old.__defaults__, new.__defaults__):
                    old.__defaults__ = new.__defaults__
                if _differs(old.__kwdefaults__, new.__kwdefaults__):
                    old.__kwdefaults__ = new.__kwdefaults__


def _differs(before: object, after: object) -> bool:
    """Whether both are plain data, and not the same."""
    return _is_plain(before) and _is_plain(after) and pickle.dumps(before) != pickle.dumps(after)


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, [*value, *value.values()]))
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(_is_plain, value))
    plain = (bool, int, float, str, bytes, Fraction, np.ndarray, np.generic)
    return value is None or isinstance(value, plain)


def _find(names: Mapping[str, Any], path: str) -> Any:
    first, *rest = path.split(".")
    found = names[first]
    for part in rest:
        found = vars(found)[part]
    while not isinstance(found, (FunctionType, type)):
        found = (
            getattr(found, "__wrapped__", None)
            or getattr(found, "fget", None)
            or getattr(found, "func", None)
            or found.__func__
        )
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    return found


def _renew_attribute(old: type, new: type, name: str) -> None:
    """Give a class, and those derived from it, an attribute or parameter as it is in another."""
    declared = getattr(new, "parameters", {}).get(name)
    if declared is not None:
        vars(old.parameters[name]).update(vars(declared))  # type: ignore[attr-defined]
    elif name in vars(new):
        setattr(old, name, vars(new)[name])
    made, anew = old.__init__, new.__init__  # type: ignore[misc]
    if isinstance(made, FunctionType) and isinstance(anew, FunctionType):
        before = made.__kwdefaults__ or {}
        after = anew.__kwdefaults__ or {}
        for kind in [old, *_derived(old)]:
            kept = getattr(kind.__init__, "__kwdefaults__", None) or {}  # type: ignore[misc]
            if name in kept and name in after and kept[name] is before.get(name):
                kept[name] = after[name]
        made.__defaults__ = anew.__defaults__


def _derived(kind: type) -> Iterator[type]:
    derived: list[type] = kind.__subclasses__()
    for one in derived:
        yield one
        yield from _derived(one)
