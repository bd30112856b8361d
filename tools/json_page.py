"""docs/json.md: what every command prints with --json, from its schema and from running it once."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from click.testing import CliRunner

from privmax.cli import main, schemas

COUNTS = "sample:counts --item query --score people --epsilon 1 --delta 1e-6"

EXAMPLES = {
    "select": f"select {COUNTS}",
    "select-by": "select visits.csv --item page --user visitor --by region --groups regions.csv "
    "--epsilon 1 --delta 1e-6",
    "keys": "keys sample:searches --item query --user person --per-user 1 --where \"query = 'rain "
    "boots' or query = 'trail shoes'\" --epsilon 1 --delta 1e-6",
    "itemsets": "itemsets sample:receipts --basket receipt --item article --user member --epsilon "
    "3 --delta 1e-6",
    "itemsets-by": "itemsets sales.csv --basket receipt --item article --user member --by region "
    "--groups regions.csv --epsilon 1 --delta 1e-6",
    "learn": "learn sample:members --label card --labels 0,1 --low 0 --high 100 --epsilon 4",
    "plan": "plan --epsilon 1 --universe 1000",
    "plan-keys": "plan --keys --per-user 20 --epsilon 1 --delta 1e-6",
    "compare": "compare --scores 60,58,3 --universe 1000 --epsilon 1",
    "audit": "audit exponential --epsilon 1",
    "audit-of": "audit --of known-wrong --only 'universe taken'",
    "budget-create": "budget create budget.db --epsilon 1.5 --delta 1e-5",
    "budget-account": "budget account budget.db ada --epsilon 1 --delta 1e-6",
    "budget-split": "budget split budget.db web --epsilon 1/2 --delta 1e-6 --unit user",
    "budget-grant": "budget grant budget.db --account ada --epsilon 0.2 --why workshop",
    "budget-show": "budget show budget.db",
    "budget-list": "budget list budget.db",
    "budget-history": "budget history budget.db --last 2",
    "budget-verify": "budget verify budget.db",
    "check": f"select {COUNTS} --check",
    "refusal": f"select {COUNTS} --ledger budget.db",
}
"""One command for each schema. They are run in this order, in one folder; what is random in them is
certain enough.
"""

SHOWN = ("select", "budget-show")
"""Other sections name the fields that these describe, and link here."""

WIDTH = 110
"""Columns of an example, but for long texts."""

BEFORE = {"budget-show": f"select {COUNTS} --ledger budget.db --account ada --request march"}
"""What is run before an example, and not shown."""

FILES = {
    "visits.csv": "visitor,region,page\n"
    + "".join(f"{who},{'north' if who < 99 else 'south'},home\n" for who in range(200)),
    "sales.csv": "member,receipt,region,article\n"
    + "".join(
        f"{who},{who},{'north' if who < 99 else 'south'},{what}\n"
        for who in range(200)
        for what in ("bread", "milk")
    ),
    "regions.csv": "north\nsouth\nwest\n",
}
"""What lies in the folder."""

STEADY = {
    r"ranks=\(1, [^)]*\)": "ranks=(1, …)",
    r'"when": "\d{4}-[^"]*"': '"when": "2026-03-02T09:00:00+00:00"',
    r'"who": "[^"]*"': '"who": "ada"',
    r'"hash": "[0-9a-f]{64}"': f'"hash": "{"5c0f3a9e" * 8}"',
}
"""What differs from run to run or is long, and what the page shows instead."""

HEAD = """# JSON

With `--json`, a command prints one JSON object on one line of standard output, and nothing else.
`tools/pages.py` generates this page from the schemas in `src/privmax/cli/schemas/` (JSON Schema
2020-12) and from running the commands. The examples are broken into lines, and their times, names
of people and hashes are invented.

If the [exit code](command-line.md#exit-codes) is 2, standard output is empty, and standard error
names the error and the remedy. If it is 3 (the budget does not allow it), the object is a
[refusal](#a-refusal).

A *cost* is an object with `epsilon` and `delta`. Both are exact, as text: an integer, a decimal, or
numerator/denominator.
"""


def page() -> str:
    """The page."""
    parts = [HEAD]
    described: set[str] = set()
    with TemporaryDirectory() as folder, chdir(folder):
        for file, text in FILES.items():
            Path(file).write_text(text, encoding="utf-8")
        for name, line in EXAMPLES.items():
            if name in BEFORE:
                _run(BEFORE[name])
            parts += [
                *_section(name, described),
                f"`privmax {line} --json`\n\n```json\n{_example(line)}\n```\n",
            ]
    return "\n".join(parts)


def _section(name: str, described: set[str]) -> Iterator[str]:
    """What a schema says. What is `described` already is left out, and what is new is added."""
    schema = schemas.schema(name)
    yield f"## {schema['title']}\n\n{schema['description']}\n"
    rows = list(_fields(schema))
    for other in SHOWN:
        known = list(_fields(schemas.schema(other)))
        shared = [field for field, *_ in filter(known.__contains__, rows)]
        if other != name and len(shared) > 1:
            title = schemas.schema(other)["title"]
            rows = [row for row in rows if row not in known]
            names = ", ".join(f"`{field}`" for field in shared) if rows else "the fields"
            yield f"See [{title}](#{title.replace(' ', '-')}) for {names}.\n"
    if rows:
        yield _table(rows)
    parts = [_part(*part) for part in schema.get("$defs", {}).items() if part[0] != "cost"]
    yield from (part for part in parts if part not in described)
    described.update(parts)


def _part(title: str, part: Mapping[str, Any]) -> str:
    """A part that fields of a schema refer to."""
    cases = [
        _table(list(_fields(case))) for case in part.get("oneOf", [part]) if "properties" in case
    ]
    told = ["One of these.\n"] if len(cases) > 1 else []
    description = [f"{part['description']}\n"] if "description" in part else []
    return "\n".join([f"### {title.capitalize()}\n", *description, *told, *cases])


def _run(line: str) -> str:
    run = CliRunner().invoke(main, [*shlex.split(line), "--json"])
    assert run.exit_code in (0, 1, 3), (line, run.output, run.exception)
    return run.stdout


def _example(line: str) -> str:
    text = _broken(json.loads(_run(line), parse_float=_rounded))
    for pattern, steady in STEADY.items():
        text = re.sub(pattern, steady, text)
    return text


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


def _table(rows: Sequence[tuple[str, str, str]]) -> str:
    lines = ["| field | type | meaning |", "|---|---|---|"]
    lines += [f"| `{name}` | {kind} | {text} |" for name, kind, text in rows]
    return "\n".join(lines) + "\n"


def _fields(schema: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    needed = schema.get("required", [])
    for name, field in schema["properties"].items():
        absent = "" if name in needed else " May be absent."
        yield f"{prefix}{name}", _kind(field), field["description"] + absent
        for part, mark in (
            (field, ""),
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
        return f"list of {_kind(field['items'])}"
    values = field.get("additionalProperties")
    if kind == "object" and isinstance(values, Mapping):
        return f"object of {_kind(values)}"
    return kind
