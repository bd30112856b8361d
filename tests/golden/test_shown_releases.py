"""What people see of releases of every kind: text, tables of notebooks, frames and properties.

tests/golden/test_releases.py has what ledgers and programs keep of them. Where something is to
change,

    python tests/golden/test_shown_releases.py

stores all again: read the difference.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))

from releases import KINDS
from stored_rows import read_stored, store_rows

from privmax.errors import ParameterError
from privmax.testing import SeededCoins

STORED = Path(__file__).parent / "stored" / "shown_releases.json"

PROPERTIES = (
    "item", "notes", "ranked", "checked", "error", "apart", "close", "unanswered", "answers",
    "requested", "counts_privacy", "unit", "why",
)  # fmt: skip

FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda frame: frame.to_dict("list"),
    "polars": lambda frame: frame.to_dict(as_series=False),
    "pyarrow": lambda frame: frame.to_pylist(),
    "other": lambda frame: frame,
}

LONGEST = 3000
"""Characters that are stored of one text; of a longer one both ends."""


def shown(name: str) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = KINDS[name]({"coins": SeededCoins(name)})
    both = (release, release.payload)
    found = {
        "str": str(release),
        "repr": repr(release),
        "html": release._repr_html_(),
        "length": len(release),
        "listed": [repr(one) for one in list(release)[:9]],
        "ranks": list(release.ranks)[:9],
        "named": [release.name_item(one) for one in list(release)[:9]],
        "counts": release.describe_counts()[:9],
        "order": release.describe_order()[:9],
        "numbers": release.describe_numbers()[:9],
        **{one: repr(getattr(release, one)) for one in PROPERTIES if hasattr(release, one)},
        "compared": [one.name for part in both for one in fields(part) if one.compare],
    }
    for library, rows in FRAMES.items():
        try:
            found[library] = repr(rows(release.to_frame(library)))
        except ParameterError as error:
            found[library] = str(error)
    cut = {key: one if len(str(one)) <= LONGEST else [one[:900], len(one), one[-900:]]
           for key, one in found.items()}  # fmt: skip
    return dict(json.loads(json.dumps(cut, default=repr)))


def test_every_kind_is_stored_and_nothing_else():
    assert list(read_stored(STORED)) == list(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_a_release_is_shown_as_before(name):
    stored, found = read_stored(STORED)[name], shown(name)
    assert {key: one for key, one in found.items() if one != stored.get(key)} == {}
    assert list(found) == list(stored)


if __name__ == "__main__":
    store_rows(STORED, {name: shown(name) for name in KINDS})
