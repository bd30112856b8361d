"""Which file imports which, that layers are kept, and that importing privmax loads no engine.

`python tests/unit/test_imports.py` prints the package map, and writes it into src/README.md, and
writes the table of imports, tests/unit/imports.txt.
"""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "privmax"
TABLE = Path(__file__).with_name("imports.txt")
ARCHITECTURE = ROOT / "src" / "ARCHITECTURE.md"
MAP = ROOT / "src" / "README.md"

ENGINES = {
    "duckdb",
    "ibis",
    "matplotlib",
    "pandas",
    "polars",
    "psycopg",
    "pyarrow",
    "pyspark",
    "scipy",
    "sklearn",
    "starlette",
    "uvicorn",
}
ENGINES |= {"numba", "torch", "cupy", "array_api_compat", "dp_accounting"}
ENGINES |= {"jinja2", "markupsafe"}  # a page needs them, and no answer does

LAYERS = (
    (
        "values",
        "exact numbers, labels, and values made of them; how code is compiled",
        "errors retries resources numbers parameters privacy labels universe encoding packing "
        "display rendering notebook kernels padding grouping deferred",
    ),
    ("noise", "exact randomness", "noise testing"),
    (
        "mechanisms",
        "draws from profiles, and their costs",
        "profile composition losses accounting repetition counts count_costs relative mechanisms "
        "typical choice one_key_each",
    ),
    ("sources", "scores from data, and ledgers", "sources ledger warnings samples writing"),
    (
        "release",
        "the one pipeline, and its entry points",
        "payload release best_items groups best_per_group rounds selection maximization advice "
        "auditing testers planning",
    ),
    (
        "questions",
        "sets of keys, itemsets, learning and studies",
        "keyset itemsets learning markers",
    ),
    ("pages", "pictures, reports and the demo", "plots report demo"),
    ("cli", "the command line, and the pages that it serves", "cli explore __main__"),
)
"""From the bottom up: name, what it is, and its files and folders. A file may import those of its
own layer and of layers below."""

RANK = {name: rank for rank, (_, _, names) in enumerate(LAYERS) for name in names.split()}


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> set[str]:
    """The files of the package that a file imports, wherever in the file it does so."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {file for alias in node.names if (file := home(alias.name))}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            for alias in node.names:
                found |= {home(f"{node.module}.{alias.name}") or home(node.module)} - {""}
    return found - {relative(path)}


def home(name: str) -> str:
    """The file of a module of the package; "": it is no module, or not one of the package."""
    package, _, rest = name.partition(".")
    if package != "privmax":
        return ""
    place = PACKAGE.joinpath(*rest.split(".")) if rest else PACKAGE
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return relative(path)
    return ""


FILES = sorted(PACKAGE.rglob("*.py"))
NAMES = [relative(path) for path in FILES]


@cache
def imports() -> dict[str, set[str]]:
    """What every file imports. All files are parsed, when the first test asks."""
    return {relative(path): imported(path) for path in FILES}


def table() -> str:
    """What every file imports, a line each."""
    return "".join(
        f"{file}: {' '.join(sorted(names))}".rstrip() + "\n" for file, names in imports().items()
    )


def package_map() -> str:
    """The files and folders of the package, each with the first sentence of what it says it is."""
    lines = []
    for path in sorted(FILES, key=lambda path: (path.parent.parts, path.name)):
        *folders, name = path.relative_to(PACKAGE).parts
        words = (ast.get_docstring(parsed(path)) or "").split("\n\n")[0]
        about = " ".join(words.split()).split(". ")[0].rstrip(".")
        shown = "/".join(folders) + "/" if name == "__init__.py" else "  " * len(folders) + name
        lines.append(f"{shown:34} {about}"[:160].rstrip())
    return "\n".join(line for line in lines if not line.startswith("/"))


def test_the_package_was_found():
    assert {
        "errors.py",
        "profile.py",
        "release.py",
        "selection.py",
        "__init__.py",
    } <= set(NAMES)


@pytest.mark.parametrize("file", NAMES)
def test_a_file_imports_what_the_table_says_and_nothing_else(file):
    listed = dict(line.split(":", 1) for line in TABLE.read_text(encoding="utf-8").splitlines())
    again = "run python tests/unit/test_imports.py, and look at what changed"
    assert file in listed, again
    assert set(listed[file].split()) == imports()[file], again


def test_the_table_lists_no_file_that_is_gone():
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    assert {line.split(":")[0] for line in lines} == set(NAMES)


@pytest.mark.parametrize("file", sorted(set(NAMES) - {"__init__.py"}))
def test_a_file_imports_only_its_layer_and_those_below(file):
    def layer(name: str) -> str:
        return name.split("/", maxsplit=1)[0].removesuffix(".py")

    assert layer(file) in RANK, "a new file at the top needs a place in LAYERS"
    above = {name for name in imports()[file] if RANK.get(layer(name), 0) > RANK[layer(file)]}
    assert not above


def test_no_layer_names_what_is_not_there():
    there = {path.stem if path.is_file() else path.name for path in PACKAGE.iterdir()}
    assert RANK.keys() <= there


def test_no_two_files_import_each_other_when_they_are_loaded():
    """Imports within functions, which break cycles, are left out."""
    left = {}
    for path in FILES:
        body = parsed(path).body
        names = set()
        for node in body:
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {
                    home(f"{node.module}.{one.name}") or home(node.module) for one in node.names
                }
        left[relative(path)] = names - {"", "__init__.py", relative(path)}
    while left:
        free = [name for name, below in left.items() if not below & left.keys()]
        assert free, f"these import each other: {sorted(left)}"
        for name in free:
            del left[name]


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_nothing_outside_a_folder_imports_its_underscore_names(path):
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("privmax"):
            private = [one.name for one in node.names if one.name.startswith("_")]
            here = home(node.module or "").rpartition("/")[0]
            assert (
                not private
                or here == relative(path).rpartition("/")[0]
                or private == ["__version__"]
            )


def test_a_module_is_not_called_like_a_function_it_exports():
    for path in FILES:
        functions = {node.name for node in parsed(path).body if isinstance(node, ast.FunctionDef)}
        assert path.stem not in functions, path


def test_the_page_shows_the_package_as_it_is():
    page = MAP.read_text(encoding="utf-8")
    assert f"```text map\n{package_map()}\n```" in page, "run python tests/unit/test_imports.py"


def test_the_page_shows_the_path_that_is_taken(tmp_path, monkeypatch):
    """The steps of the picture, in their order, are those of a selection that a ledger pays for."""
    from privmax import Ledger, Privacy, best_items, choice, select
    from privmax.ledger.ledger import Reservation
    from privmax.ledger.payment import Payment
    from privmax.mechanisms.nested_margin import NestedMargin
    from privmax.sources.memory import MemorySource

    steps = []

    def follow(owner, name, word):
        original = getattr(owner, name)

        def followed(*given, **options):
            steps.append(word)
            return original(*given, **options)

        monkeypatch.setattr(owner, name, followed)

    follow(best_items, "auto", "cost")
    follow(Payment, "find_recorded", "ask")
    follow(best_items.BestItems, "check", "check")
    follow(MemorySource, "__init__", "read()")
    follow(Ledger, "charge", "charge")
    follow(NestedMargin, "draw", "draw")
    follow(MemorySource, "name", "name")
    follow(Reservation, "record", "record")
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(1, 1e-6)) as ledger:
        assert select({"a": 900, "b": 1}, epsilon=1, delta=1e-6, ledger=ledger).item == "a"
    assert choice.auto is not best_items.auto
    page = ARCHITECTURE.read_text(encoding="utf-8")
    picture = page.partition("```text path\n")[2].partition("```")[0]
    shown = [line.split()[1] for line in picture.splitlines() if line.startswith("   │  ")]
    assert [word for word in shown if word in steps] == steps


def test_the_page_shows_the_layers_as_they_are():
    page = ARCHITECTURE.read_text(encoding="utf-8")
    for name, about, files in LAYERS:
        assert f"| {name} | {about} | `{files.replace(' ', '` `')}` |" in page


def loaded_after(program: str) -> set[str]:
    """The top-level modules a fresh interpreter holds after running a program."""
    names = "{name.partition('.')[0] for name in sys.modules}"
    report = f"{program}\nimport json, sys\nprint(json.dumps(sorted({names})))"
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", report], capture_output=True, text=True, check=True
    )
    return set(json.loads(finished.stdout.splitlines()[-1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        "import privmax; privmax.plan",
        "import privmax; privmax.select({'a': 900, 'b': 1}, epsilon=1, delta=1e-6)",
        "import privmax; privmax.itemsets",
        "import privmax; privmax.learning.Explicit",
        "import privmax; privmax.law([900, 1], mechanism=privmax.PermuteAndFlip(epsilon=1), "
        "universe=2)",
    ],
    ids=["plan", "select", "itemsets", "learning", "law"],
)
def test_no_engine_is_loaded_by(program):
    loaded = loaded_after(program)
    assert "privmax" in loaded
    assert not loaded & ENGINES


@pytest.mark.parametrize("program", ["import privmax", "import privmax.cli"])
def test_importing_loads_next_to_nothing(program):
    assert not loaded_after(program) & {*ENGINES, "numpy", "flint", "rich"}


def test_what_is_known_of_engines_loads_none_of_them():
    program = "from privmax.sources.engines import all_engines; assert all_engines()"
    assert not loaded_after(program) & {*ENGINES, "numpy"}


def test_the_import_check_sees_an_engine():
    assert "scipy" in loaded_after("import scipy")


def test_seeded_randomness_is_not_loaded_with_the_package():
    program = "import privmax, sys; assert 'privmax.testing' not in sys.modules"
    assert "privmax" in loaded_after(program)


def test_every_public_name_exists_and_is_listed_once():
    import privmax

    assert len(set(privmax.__all__)) == len(privmax.__all__)
    for name in privmax.__all__:
        assert hasattr(privmax, name)


LAZY = ("privmax", "privmax.itemsets", "privmax.learning")
"""Packages that load names when they are first used."""


@pytest.mark.parametrize("package", LAZY)
def test_dir_lists_public_names_and_not_what_a_package_is_made_with(package):
    """Completion in a notebook offers what `dir` lists."""
    listed = set(dir(importlib.import_module(package)))
    assert set(importlib.import_module(package).__all__) <= listed
    own = {name for name in listed if not name.startswith("_")}
    assert not own & {"Any", "TYPE_CHECKING", "explain_install", "import_module", "sys"}


@pytest.mark.parametrize("name", ["ledger", "markers", "report", "samples", "testers", "testing"])
def test_dir_of_a_small_package_lists_its_public_names_alone(name):
    package = importlib.import_module(f"privmax.{name}")
    assert dir(package) == sorted(package.__all__)


def test_dir_of_errors_and_plots_lists_what_the_reference_describes():
    errors, plots = map(importlib.import_module, ("privmax.errors", "privmax.plots"))
    assert {"BudgetError", "PrivacyWarning"} <= set(dir(errors))
    assert all(name.endswith(("Error", "Warning")) for name in dir(errors))
    assert dir(plots) == sorted(dir(plots))
    assert {vars(plots)[name].__module__ for name in dir(plots)} == {"privmax.plots"}


def test_dir_lists_the_modules_that_can_be_named():
    import privmax

    assert {"errors", "learning", "ledger", "report"} <= set(dir(privmax))


def write() -> None:
    """Write the table and the map again."""
    TABLE.write_text(table(), encoding="utf-8")
    before, fence, rest = MAP.read_text(encoding="utf-8").partition("```text map\n")
    _, end, after = rest.partition("\n```\n")
    MAP.write_text(f"{before}{fence}{package_map()}{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
    print(package_map())
