"""Calls with every option under its own name, for tests that go through many options.

`select` and its like take some options inside of values: `weight` is in `Columns`, `neighbors` in
`Scores`, `delimiter` in `TextFile`. A test over a list of options would have to know where each
is; `by_name` knows it for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from privmax import Columns, Database, Request, Scores, TextFile
from privmax.itemsets import Layout
from privmax.markers import GenotypeColumns

_TEXT = ("delimiter", "encoding", "header_is_public")
_COLUMNS = {"columns": (Columns, ("weight", "bound", "missing_users"))}
_SCORES = {"scores": (Scores, ("sensitivity", "resolution", "neighbors", "growth"))}
_LAYOUT = ("form", "header", "where", "missing_users", "longest", "floor", "neighbors")
_GENOTYPES = ("marker", "genotype", "person", "missing", "impute")

_VALUES: dict[str, dict[str, Any]] = {
    "select": {**_COLUMNS, **_SCORES},
    "law": {**_COLUMNS, **_SCORES},
    "compare": {**_COLUMNS, **_SCORES},
    "compare_over": _SCORES,
    "top_itemsets": {"layout": (Layout, _LAYOUT)},
    "top_markers": {"columns": (GenotypeColumns, _GENOTYPES)},
    "select_model": {"scores": (Scores, ("resolution", "neighbors"))},
}


def by_name(function: Callable[..., Any], /, data: Any, *others: Any, **options: Any) -> Any:
    """Call a function of privmax with options by their names.

    Args:
        function: Such as `privmax.select`.
        data: Its first argument.
        *others: Further ones.
        **options: Its options, and those of the values that it takes.
    """
    for option, (kind, names) in _VALUES.get(function.__name__, {}).items():
        inside = {name: options.pop(name) for name in names if name in options}
        if inside:
            options[option] = replace(options.get(option) or kind(), **inside)
    text = {name: options.pop(name) for name in _TEXT if name in options}
    if "separator" in options:
        text["delimiter"] = options.pop("separator")
    if text:
        data = TextFile(data, **text)
    table = options.pop("table", options.pop("table_name", None))
    if table is not None:
        data = Database(data, table)
    said = {name: options.pop(name) for name in ("unit", "check") if name in options}
    if said:
        options["ledger"] = replace(Request.of(options.get("ledger")), **said)
    return function(data, *others, **options)
