"""docs/json.md: what every command prints with --json, from its schema and from running it once."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from tempfile import TemporaryDirectory
from typing import Any

from click.testing import CliRunner

from privmax.cli import main, schemas

COUNTS = "sample:counts --item query --score people --epsilon 1 --delta 1e-6"
CHARGED = f"select {COUNTS} --ledger budget.db"

FAMILIES = {
    "Releases": (
        "select",
        "select-by",
        "keys",
        "itemsets",
        "itemsets-by",
        "learn",
        "check",
        "refusal",
    ),
    "Planning": ("plan", "plan-keys", "compare"),
    "Audits": ("audit", "audit-of"),
    "Budgets": (
        "budget-show",
        "budget-create",
        "budget-account",
        "budget-split",
        "budget-grant",
        "budget-list",
        "budget-history",
        "budget-verify",
        "budget-unblock",
    ),
}
"""All schemas, in the order of the page. A field is described where it comes first."""

EXAMPLES = {
    "select": f"select {COUNTS}",
    "learn": "learn sample:members --label card --labels 0,1 --low 0 --high 100 --epsilon 4 "
    "--hypotheses stumps",
    "budget-show": "budget show budget.db",
}
"""Commands whose output is shown. What is random in them is certain enough."""

ONLY = {"learn": "rule"}
"""Of which only one field is shown."""

SETUP = (
    "budget create budget.db --epsilon 1.5 --delta 1e-5",
    "budget account budget.db ada --epsilon 1 --delta 1e-6",
    f"{CHARGED} --account ada --request march",
)
"""What is run before the examples, and not shown."""

WIDTH = 110
"""Columns of an example, but for long texts."""

STEADY = {
    r"ranks=\(1, [^)]*\)": "ranks=(1, …)",
    r'"when": "\d{4}-[^"]*"': '"when": "2026-03-02T09:00:00+00:00"',
    r'"who": "[^"]*"': '"who": "ada"',
    r'"hash": "[0-9a-f]{64}"': f'"hash": "{"5c0f3a9e" * 8}"',
}
"""What differs from run to run or is long, and what the page shows instead."""

HEAD = """# JSON

With `--json`, a command prints one JSON object on one line of standard output, and nothing else.
Programs can check it with the schemas in `src/privmax/cli/schemas/` (JSON Schema 2020-12), from
which `tools/pages.py` generates this page. The examples are broken into lines.

If the [exit code](command-line.md#exit-codes) is 2, the command prints nothing, and standard error
names the error and the remedy. If it is 3, it prints a [refusal](#a-refusal).

The type of a field follows its name: `label[]` is a list of labels, and `?` marks fields that may
be absent. Types leave out a null that the meaning explains. `a[].b` is the field `b` of each object
in the list `a`, `a.*.b` that of each in the object `a`. A *cost* is an object with `epsilon` and
`delta`, both exact, as text: an integer, a decimal, or numerator/denominator.
"""

Row = tuple[str, str, str]
"""The name of a field, its type and its meaning."""


def page() -> str:
    """The page."""
    parts = [HEAD]
    described: dict[Row, str] = {}
    with TemporaryDirectory() as folder, chdir(folder):
        for line in SETUP:
            _run(line)
        for family, names in FAMILIES.items():
            parts.append(f"## {family}\n")
            for name in names:
                parts += _section(schemas.schema(name), described)
                if name in EXAMPLES:
                    parts.append(_example(EXAMPLES[name], ONLY.get(name)))
    return "\n".join(parts)


def _section(schema: Mapping[str, Any], described: dict[Row, str]) -> Iterator[str]:
    """What a schema says. What is `described` already is named, and what is new is added."""
    title, text = schema["title"], schema["description"]
    rows = list(_fields(schema))
    if {described.get(_leaf(row)) for row in rows} == {described.get(_leaf(rows[0]), title)}:
        yield _wrapped(f"* `{title}`: {text}", "  ") + "\n"
        return
    yield f"### {_heading(title)}\n\n{_wrapped(text)}\n"
    yield from _rows(rows, described)
    described.update({_leaf(row): title for row in rows if _leaf(row) not in described})
    for name, part in schema.get("$defs", {}).items():
        whole = name, "", json.dumps(part)
        if name != "cost" and whole not in described:
            yield from _part(name, part, described)
            described[whole] = title


def _heading(title: str) -> str:
    """The heading of a schema; the dashes of an option would be read differently in links."""
    return title.replace("--by", "by group")


def _rows(rows: Sequence[Row], described: Mapping[Row, str]) -> Iterator[str]:
    """Names the fields that other sections describe, and describes the rest."""
    for title in dict.fromkeys(described[_leaf(row)] for row in rows if _leaf(row) in described):
        shared = [f"`{row[0]}`" for row in rows if described.get(_leaf(row)) == title]
        link = f"[{title.removeprefix('privmax ')}](#{_heading(title).replace(' ', '-')})"
        yield _wrapped(f"As in {link}: {', '.join(shared)}.") + "\n"
    lines: dict[Row, str] = {}
    for name, kind, text in rows:
        field = _leaf((name, kind, text))
        if field in lines:
            lines[field] = lines[field].replace(" (", f", `{name}` (", 1)
        elif field not in described:
            shown = f"`{kind}`" if "[]" in kind else kind  # brackets are a link outside of code
            lines[field] = f"* `{name}` ({shown}): {text}"
    if lines:
        yield "\n".join(_wrapped(line, "  ") for line in lines.values()) + "\n"


def _leaf(row: Row) -> Row:
    """A field without those it is in: it means the same there as elsewhere."""
    name, kind, text = row
    return name.rpartition(".")[2], kind.removesuffix("?"), text


def _part(name: str, part: Mapping[str, Any], described: Mapping[Row, str]) -> Iterator[str]:
    """A type of the schema's own."""
    cases = [list(_fields(case)) for case in part.get("oneOf", [part]) if "properties" in case]
    text = part.get("description", "")
    if len(cases) > 1:
        text = f"Has {'; or '.join(', '.join(f'`{row[0]}`' for row in case) for case in cases)}."
    yield _wrapped(f"*{name.capitalize()}*: {text}") + "\n"
    yield from _rows(list(dict.fromkeys(row for case in cases for row in case)), described)


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _run(line: str) -> str:
    run = CliRunner().invoke(main, [*shlex.split(line), "--json"])
    assert run.exit_code in (0, 1, 3), (line, run.output, run.exception)
    return run.stdout


def _example(line: str, only: str | None) -> str:
    """A command, and what it prints."""
    value = json.loads(_run(line), parse_float=_rounded)
    text = _broken(value[only] if only else value)
    for pattern, steady in STEADY.items():
        text = re.sub(pattern, steady, text)
    field = f"The `{only}` of " if only else ""
    return f"{field}`privmax {line} --json`:\n\n```json\n{text}\n```\n"


def _broken(value: Any, indent: int = 0) -> str:
    """JSON in lines: what is short stays on one."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or (indent and indent + len(flat) < WIDTH):
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_broken(part, indent + 2)}" for key, part in value.items()]
    else:
        parts = [_broken(part, indent + 2) for part in value]
    start, end = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return f"{start}\n{pad}" + f",\n{pad}".join(parts) + f"\n{' ' * indent}{end}"


def _rounded(number: str) -> float:
    """Six digits: all machines agree on them."""
    return float(f"{float(number):.6g}")


def _fields(schema: Mapping[str, Any], prefix: str = "") -> Iterator[Row]:
    """The fields of an object and of the objects in it."""
    needed = schema.get("required", [])
    for name, field in schema["properties"].items():
        text = field["description"]
        kind = _kind(field)
        if "null" in re.findall(r"\w+", text):
            kind = re.sub(r"^null or | or null$", "", kind)  # the text says when
        yield f"{prefix}{name}", kind if name in needed else f"{kind}?", text
        for part, mark in (
            *((case, "") for case in field.get("oneOf", [field])),
            (field.get("items", {}), "[]"),
            (field.get("additionalProperties"), ".*"),
        ):
            if isinstance(part, Mapping) and "properties" in part:
                yield from _fields(part, f"{prefix}{name}{mark}.")


def _kind(field: Mapping[str, Any]) -> str:
    """The type of a field in words."""
    if "$ref" in field:
        return str(field["$ref"].removeprefix("#/$defs/"))
    if "const" in field or "enum" in field:
        return " or ".join(
            f"`{json.dumps(value)}`" for value in field.get("enum", [field.get("const")])
        )
    if "oneOf" in field:
        return " or ".join(_kind(case) for case in field["oneOf"])
    kinds = [field["type"]] if isinstance(field["type"], str) else field["type"]
    return " or ".join(_named(kind, field) for kind in kinds)


def _named(kind: str, field: Mapping[str, Any]) -> str:
    if kind == "array" and "items" in field:
        below = _kind(field["items"])
        return f"({below})[]" if " " in below else f"{below}[]"
    values = field.get("additionalProperties")
    if kind == "object" and isinstance(values, Mapping):
        return f"object of {_kind(values)}"
    return kind
