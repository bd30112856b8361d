"""How docstrings are shown on the site: an extension of Griffe, which mkdocstrings reads the
package with.

Arguments and fields that are described in two columns, which Markdown would run together, become a
list of definitions. A class whose parameters are declared once (`privmax.parameters`) has no
constructor in its source: it is given one, with what may be passed. A public function or class ends
with where its source, and for a mechanism its proof and its audit, can be read.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from griffe import Class, Docstring, Extension, Function, Object, Parameter, ParameterKind
from griffe import Parameters as Arguments

from privmax.parameters import Parameters

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

import mechanisms  # noqa: E402  # the tools are scripts, not a package

ROW = re.compile(r"(\S+(?: \S+){0,3}?) {2,}(\S.*)")
NAME = re.compile(r"[A-Za-z_]\w*")
PAGE = re.compile(r"(?<![`\w/(])docs/[\w/-]+\.md")
CHECKED = {
    row.path: row for row in (*mechanisms.selectors(), *mechanisms.blocks(), *mechanisms.methods())
}


class Docstrings(Extension):
    """What mkdocs.yml names."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = shown(obj.docstring.value)
        if isinstance(obj, Class) and (made := _declared(obj)) is not None:
            function = Function("__init__", parameters=Arguments(*_arguments(made)))
            obj.set_member("__init__", function)
        if (
            (obj.is_class or obj.is_function)
            and obj.parent is not None
            and obj.parent.is_module
            and obj.is_public
        ):
            if obj.docstring is None:
                obj.docstring = Docstring("", parent=obj)
            obj.docstring.value += "\n\n" + _where(obj)


def shown(text: str) -> str:
    """The docstring as Markdown."""
    return "\n\n".join(map(_block, PAGE.sub(r"`\g<0>`", text).split("\n\n")))


GIVEN = {
    "Exact": "Number",
    "Whole": "int",
    "OptionalExact": "Number | None",
    "OptionalWhole": "int | None",
    "Relation": "str",
    "Shares": "Sequence[Number]",
}
"""What may be given for a parameter of a short name; others say it themselves."""


def _declared(obj: Class) -> type[Parameters] | None:
    """The class itself, if its parameters are declared once."""
    try:
        module = importlib.import_module(obj.module.path)
    except ModuleNotFoundError:  # one that needs an extra, which declares nothing so
        return None
    made = getattr(module, obj.name, None)
    own = inspect.isclass(made) and issubclass(made, Parameters) and made is not Parameters
    return made if own and not inspect.isabstract(made) else None


def _arguments(made: type[Parameters]) -> Iterator[Parameter]:
    """What the constructor takes: by name, unless Python says otherwise."""
    yield Parameter("self", kind=ParameterKind.positional_or_keyword)
    written = dict(_written(made))
    for name, argument in inspect.signature(made).parameters.items():
        given, default = written[name]
        kind = (
            ParameterKind.keyword_only
            if argument.kind is inspect.Parameter.KEYWORD_ONLY
            else ParameterKind.positional_or_keyword
        )
        yield Parameter(name, annotation=given, kind=kind, default=default)


def _written(made: type) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """What may be given for each parameter, and its default, as the source has them."""
    for base in reversed(made.__mro__):
        if "parameters" not in vars(base) or base is Parameters:
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for line in tree.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.value, ast.Call):
                options = {one.arg: ast.unparse(one.value) for one in line.value.keywords}
                yield ast.unparse(line.target), (_given(line.annotation), options.get("default"))


def _given(annotation: ast.expr) -> str:
    """The type that may be given, from Exact, or from Parameter[given, value]."""
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        return ast.unparse(annotation.slice.elts[0])
    return GIVEN[ast.unparse(annotation)]


def _block(text: str) -> str:
    """A paragraph; one in two columns as definitions. Lines that begin further right go on with the
    row above.
    """
    rows: list[list[str]] = []
    for line in text.splitlines():
        begun = ROW.fullmatch(line)
        if begun:
            rows.append([begun[1], begun[2]])
        elif rows and line.startswith("  "):
            rows[-1].append(line.strip())
        else:
            return text
    return "\n\n".join(f"{_term(row[0])}\n:   " + "\n    ".join(row[1:]) for row in rows)


def _term(text: str) -> str:
    return f"`{text}`" if NAME.fullmatch(text) else text.removesuffix(":")


def _where(obj: Object) -> str:
    source = Path(str(obj.filepath)).resolve().relative_to(ROOT).as_posix()
    links = [f"Source: `{source}::{obj.name}`"]
    if obj.path in CHECKED:
        links = [
            f"Proof: `{CHECKED[obj.path].proof}`",
            *links,
            f"Audit: `{CHECKED[obj.path].audit}`",
        ]
    return "<br>".join(links)
