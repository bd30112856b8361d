"""No file but that of an engine names it, and what code and pages name is in the suite of engines.

A *name* is what an engine is called by Ibis, by its makers, by its driver or in a URL; the engines
of Ibis that have no file here count, too. Comments and docstrings may use names. Code may not: not
in an identifier, and not in a literal, unless that is a sentence with one engine as its example,
spelled as its makers do.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import ibis
import pytest

from privmax.sources.engines import all_engines, embedded_engine, file_engines
from privmax.sources.engines.base import Engine
from privmax.sources.places import REMOTE

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "privmax"
HOME = "sources/engines/"

FRAMES = "polars is a library of frames here, which are read in memory"
LEDGERS = "ledgers are kept in SQLite or PostgreSQL, which are no engines of data here"

ALLOWED = {
    "display.py": ("polars", FRAMES),
    "itemsets/reading/forms.py": ("polars", FRAMES),
    "sources/containers/": ("polars", FRAMES),
    "ledger/": ("", LEDGERS),
    "writing.py": ("sqlite", LEDGERS),
}
"""Files and folders that may name an engine all the same: which ("": all), and why."""

AMBIGUOUS = {"oracle", "materialize"}
"""Engines of Ibis that are called like something else."""


def names_of(engine: type[Engine]) -> set[str]:
    """What an engine is called, in small letters."""
    driver = set() if engine.module == "ibis" else {engine.module, engine.package}
    given = {engine.name, engine.title, *engine.schemes, *engine.schemes.values(), *driver}
    return {name.lower() for name in given}


@cache
def others() -> set[str]:
    """The engines of Ibis that have no file here."""
    ours = {engine.name for engine in all_engines()}
    return {point.name for point in ibis.util.backend_entry_points()} - ours - AMBIGUOUS


@cache
def all_names() -> set[str]:
    return others().union(*map(names_of, all_engines()))


@cache
def pattern() -> re.Pattern[str]:
    longest = sorted(all_names(), key=lambda name: (-len(name), name))
    return re.compile("|".join(map(re.escape, longest)), re.IGNORECASE)


def is_example(text: str) -> bool:
    """Whether a text is a sentence that names one engine, as its makers do."""
    titles = {
        title for engine in all_engines() for title in (engine.title, *engine.schemes.values())
    }
    found = set(pattern().findall(text))
    return " " in text and len(found) == 1 and found <= titles


def names_in(source: str) -> Iterator[tuple[int, str]]:
    """The names that code uses: the line, and the name in small letters."""
    tree = ast.parse(source)
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):  # from the outside to the inside
        if node in skipped:
            continue
        texts: list[str] = []
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)  # a docstring
        elif isinstance(node, ast.JoinedStr):
            parts = [part for part in node.values if isinstance(part, ast.Constant)]
            skipped.update(parts)
            text = "".join(str(part.value) for part in parts)
            texts = [] if is_example(text) else [text]
        elif isinstance(node, ast.Constant):
            value = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
            if isinstance(value, str) and (isinstance(node.value, bytes) or not is_example(value)):
                texts = [value]
        else:
            fields = [value for _, value in ast.iter_fields(node)]
            listed = [one for field in fields if isinstance(field, list) for one in field]
            texts = [one for one in (*fields, *listed) if isinstance(one, str)]
        for text in texts:
            for name in pattern().findall(text):
                yield getattr(node, "lineno", 0), name.lower()


def allowed_in(file: str) -> set[str]:
    """The names that a file may use."""
    if file.startswith(HOME):
        stem = Path(file).stem
        return next(
            (names_of(one) for one in all_engines() if one.__module__.endswith(f".{stem}")), set()
        )
    for place, (name, _) in ALLOWED.items():
        if file.startswith(place):
            return {name} if name else all_names()
    return set()


FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES)
def test_only_the_file_of_an_engine_names_it(file):
    used = names_in((PACKAGE / file).read_text(encoding="utf-8"))
    wrong = [(line, name) for line, name in used if name not in allowed_in(file)]
    assert not wrong, f"make it an attribute or a method of Engine ({HOME}base.py)"


@pytest.mark.parametrize("place", ALLOWED)
def test_every_exception_is_needed(place):
    name, _ = ALLOWED[place]
    texts = [
        (PACKAGE / file).read_text(encoding="utf-8") for file in FILES if file.startswith(place)
    ]
    found = {one for text in texts for _, one in names_in(text)}
    assert found == {name} if name else found


@pytest.mark.parametrize(
    "planted",
    [
        "import duckdb",
        "from pyspark.sql import SparkSession",
        "from privmax.sources.engines.mysql import MySQL",
        "if backend.name == 'sqlite': pass",
        "SERVED = {'postgres': 1}",
        "SERVED = 'duckdb postgres'.split()",
        "ibis.duckdb.connect()",
        "def is_polars(data): pass",
        "open(postgres_url=1)",
        "start.startswith(b'SQLite format 3')",
        "package = 'psycopg2'",
        "print('It works in DuckDB and Spark.')",
        "print(f'Not in {name}: only in DuckDB, Spark.')",
        "print('Copy it to duckdb.')",
        "title = 'DuckDB'",
        "scheme = 'mariadb'",
        "DRIVERS = {'snowflake': 1}",
        "class DataFusion: pass",
    ],
)
def test_the_check_sees_a_name(planted):
    assert list(names_in(planted))


@pytest.mark.parametrize(
    "harmless",
    [
        '"""Rows in DuckDB, PostgreSQL or Spark."""',
        "# of MySQL\npass",
        "print('Copy the table to DuckDB.')",
        "print(f'{name} is not read. Copy the table to DuckDB.')",
        "class Oracle: pass",
        "import ibis",
    ],
)
def test_the_check_lets_prose_be(harmless):
    assert not list(names_in(harmless))


def test_a_fact_is_stated_once():
    """What leads to an engine leads to no other, and one engine reads files."""
    engines = all_engines()
    for facts in (
        [engine.name for engine in engines],
        [engine.title for engine in engines],
        [scheme for engine in engines for scheme in engine.schemes],
        [ending for engine in engines for ending in engine.endings],
        [engine.mark for engine in engines if engine.endings],
    ):
        assert all(facts)
        assert len(set(facts)) == len(facts)
    assert embedded_engine() in file_engines()
    assert not {scheme for engine in engines for scheme in engine.schemes} & set(REMOTE)


PAGES = [
    *(ROOT / name for name in ("README.md", "tools/mkdocs.yml")),
    *sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "lab").rglob("*.md")]),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_name_no_engine_and_no_scheme_that_is_not_tested(page):
    """`tests/engines/test_suite.py` asks every engine, and opens every scheme."""
    text = page.read_text(encoding="utf-8")
    schemes = {scheme for engine in all_engines() for scheme in engine.schemes}
    assert set(re.findall(r"\b([a-z][a-z0-9+.-]*)://", text)) <= schemes | set(REMOTE)
    assert not re.findall(rf"\b(?:{'|'.join(others())})\b", text, re.IGNORECASE)
