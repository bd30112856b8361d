"""Which module may import which, and that importing privmax loads no engine."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import privmax

PACKAGE = Path(privmax.__file__).parent

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
}
ENGINES |= {"numba", "torch", "cupy", "array_api_compat", "dp_accounting"}

NUMBERS = {"errors", "numbers"}
VALUES = {*NUMBERS, "parameters", "privacy"}
BELOW_SOURCES = {*VALUES, "labels", "noise", "profile", "composition", "mechanisms"}
BELOW_SELECT = {*BELOW_SOURCES, "sources", "ledger", "warnings"}
EVERYTHING = {
    *BELOW_SELECT,
    "select",
    "theory",
    "audit",
    "plan",
    "compare",
    "itemsets",
    "learning",
    "samples",
    "writing",
    "plots",
    "report",
    "demo",
    "cli",
    "testing",
    "",
}

MAY_IMPORT = {
    "errors": set(),
    "numbers": {"errors"},
    "parameters": {"numbers"},
    "privacy": {*NUMBERS, "parameters"},
    "labels": {"errors"},
    "noise": NUMBERS,
    "profile": NUMBERS,
    "composition": {"numbers", "noise"},
    "mechanisms": {*VALUES, "noise", "profile", "composition"},
    "sources": BELOW_SOURCES,
    "warnings": {*NUMBERS, "privacy"},
    "ledger": {*NUMBERS, "privacy", "labels", "noise", "composition"},
    "select": BELOW_SELECT,
    "audit": BELOW_SOURCES,
    "plan": {*BELOW_SELECT, "select", "theory"},
    "itemsets": {*BELOW_SELECT, "select"},
    "learning": {*BELOW_SELECT, "select", "theory"},
    "testing": {"errors", "noise"},
    "theory": {*NUMBERS, "parameters", "privacy"},
    "compare": {*BELOW_SELECT, "select", "plan", "theory"},
    "samples": {"errors"},
    "writing": {"errors"},
    "plots": {"writing", *NUMBERS, "privacy", "ledger", "plan", "compare"},
    "report": {
        "writing",
        *BELOW_SELECT,
        "select",
        "itemsets",
        "learning",
        "plan",
        "compare",
        "plots",
    },
    "demo": {
        *BELOW_SELECT,
        "select",
        "plan",
        "compare",
        "itemsets",
        "samples",
        "plots",
        "report",
    },
    "cli": EVERYTHING - {"testing"},
    # the package itself: what `import privmax` loads
    "": EVERYTHING - {"cli", "demo", "plots", "report", "samples", "testing", "writing", ""},
}
"""Layers by name: a module or a folder of modules, which may always import itself."""


def layer(path: Path) -> str:
    """The layer a file belongs to: its folder, or its own name; "" for the package's __init__."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


def imported(path: Path) -> set[str]:
    """The layers a file imports from, wherever in the file it does so."""
    here = ("privmax", *path.relative_to(PACKAGE).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [*here[: len(here) - node.level + 1]] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = (
                [f"{module}.{alias.name}" for alias in node.names]
                if module == "privmax"
                else [module]
            )
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "privmax":
                known = rest.split(".")[0]
                found.add(
                    known
                    if (PACKAGE / known).is_dir() or (PACKAGE / f"{known}.py").exists()
                    else ""
                )
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


def test_the_package_was_found():
    assert {"errors", "privacy", "noise", "profile", "mechanisms", "sources", "select", ""} <= set(
        map(layer, FILES)
    )


@pytest.mark.parametrize(
    "path", FILES, ids=[path.relative_to(PACKAGE).as_posix() for path in FILES]
)
def test_a_module_imports_only_the_layers_below_it(path):
    assert layer(path) in MAY_IMPORT, (
        "a new module needs a row in MAY_IMPORT, and in the package map"
    )
    assert imported(path) - {layer(path)} <= MAY_IMPORT[layer(path)]


def test_the_layers_have_no_cycle():
    """Leaving out what may import everything, each layer can be placed above all it imports."""
    left = {
        name: below - {""} for name, below in MAY_IMPORT.items() if name not in ("", "demo", "cli")
    }
    while left:
        free = [name for name, below in left.items() if not below & left.keys()]
        assert free, f"these import each other: {sorted(left)}"
        for name in free:
            del left[name]


def loaded_after(program: str) -> set[str]:
    """The top-level modules a fresh interpreter holds after running a program."""
    report = (
        f"{program}\nimport json, sys\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
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
    assert {"privmax", "numpy"} <= loaded
    assert not loaded & ENGINES


@pytest.mark.parametrize("program", ["import privmax", "import privmax.cli"])
def test_importing_loads_next_to_nothing(program):
    assert not loaded_after(program) & {*ENGINES, "numpy", "flint", "rich"}


def test_a_function_is_found_although_its_module_was_imported_under_the_same_name():
    program = "import privmax.select, privmax.plan, privmax.audit, privmax"
    check = "assert callable(privmax.select) and callable(privmax.plan) and callable(privmax.audit)"
    assert "privmax" in loaded_after(f"{program}\n{check}")


def test_the_import_check_sees_an_engine():
    assert "scipy" in loaded_after("import scipy")


def test_seeded_randomness_is_not_loaded_with_the_package():
    program = "import privmax, sys; assert 'privmax.testing' not in sys.modules"
    assert "privmax" in loaded_after(program)


def test_every_public_name_exists_and_is_listed_once():
    assert len(set(privmax.__all__)) == len(privmax.__all__)
    for name in privmax.__all__:
        assert hasattr(privmax, name)
