"""Rows that name a group, in every container, and the two ways to read them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from plain_baskets import restrict_baskets
from plain_groups import read_groups, restrict

from privmax.itemsets.reading.grouped import open_groups
from privmax.sources.grouped import Grouping
from privmax.sources.reading import grouped
from privmax.sources.roles import Columns


def columns_of(names, rows):
    """The values of each column, by its name."""
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _csv(names, rows, folder):
    path = folder / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    return path


def _json_lines(names, rows, folder):
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    return path


def _parquet(names, rows, folder):
    pq.write_table(_arrow(names, rows), folder / "rows.parquet")
    return folder / "rows.parquet"


def _pandas(names, rows, folder=None):
    return pd.DataFrame(columns_of(names, rows))


def _polars(names, rows, folder=None):
    return pl.DataFrame(columns_of(names, rows))


def _arrow(names, rows, folder=None):
    return pa.table(columns_of(names, rows))


CONTAINERS = {
    "pandas": _pandas,
    "pandas, categories": lambda *given: _pandas(*given).astype("category"),
    "polars": _polars,
    "polars, categories": lambda *given: _polars(*given).with_columns(
        pl.all().cast(pl.Categorical)
    ),
    "Arrow": _arrow,
    "CSV": _csv,
    "JSON Lines": _json_lines,
    "Parquet": _parquet,
    "DuckDB": lambda *given: duckdb.from_arrow(_arrow(*given)),
}
"""What makes a table of names of columns, rows and a folder for files."""


class Entry(NamedTuple):
    """A way to read rows of groups, with rows to read.

    names      of the columns
    crowd      rows of many individuals, of whom many have ties between groups
    new        rows of one individual more
    odd        odd rows, each with what it adds by what it is
    open       opens a table; each individual counts in so many of these groups
    restrict   what it must find, in plain Python
    """

    names: Sequence[str]
    crowd: Sequence[tuple[Any, ...]]
    new: Sequence[tuple[Any, ...]]
    odd: Mapping[str, tuple[Any, ...]]
    open: Callable[..., Any]
    restrict: Callable[..., Any]

    def read(self, data, **options):
        """The score of every candidate of every group."""
        with closing(self.open(data, **options)) as source:
            labels = source.group_names(range(len(source.count_chosen(1))))
            return flatten(read_groups(source, labels))

    def expect(self, rows, **options):
        """The same in plain Python."""
        return flatten(self.restrict(rows, **options))

    def is_unmoved(self, container, folder, per_user=1):
        """Whether one individual more leaves all others where they count."""
        make = partial(CONTAINERS[container], self.names)
        both = [*self.new[:3], *self.crowd[:9], self.new[3], *self.crowd[9:], self.new[4]]
        crowd, new, together = (
            self.read(make(rows, folder), per_user=per_user)
            for rows in (self.crowd, self.new, both)
        )
        return together == crowd + new


def flatten(groups):
    """Scores by group and candidate, out of those of each group."""
    return Counter(
        {(group, one): score for group, scores in groups.items() for one, score in scores.items()}
    )


def _open_items(data, per_user=1, declared=None):
    return grouped(data, Columns("item", "user"), Grouping("region", declared, per_user))


def open_itemsets(data, per_user=1, declared=None, columns=None):
    """The itemsets of the regions of a table of baskets."""
    grouping = Grouping("region", declared, per_user)
    return open_groups(data, columns or Columns("item", "user"), ["basket"], grouping)


_DRAWN = np.random.default_rng(11)

_ITEMS = Entry(
    names=("user", "region", "item"),
    crowd=[
        (f"u{who}", f"place {_DRAWN.integers(5)}", f"tea {_DRAWN.integers(3)}")
        for who in _DRAWN.permutation(40).tolist()
        for _ in range(int(_DRAWN.integers(1, 5)))
    ],
    new=[
        ("new", f"place {place}", item)
        for place, item in ((9, "tea 0"), (4, "tea 1"), (0, "ale"), (9, "tea 0"), (4, "tea 2"))
    ],
    odd={
        "no group": ("u3", None, "tea 1"),
        "no item": ("u3", "place 0", None),
        "a group that is a number": ("new", 7, "tea 1"),
        "a group that is a float": ("new", 0.5, "tea 1"),
        "a group that is a truth": ("new", True, "tea 1"),
        "a group that is a date": ("new", pd.Timestamp("2026-01-02"), "tea 1"),
        "a user that is a number": (5, "place 0", "tea 1"),
        "an item that is a number": ("new", "place 0", 9),
    },
    open=_open_items,
    restrict=restrict,
)

_ITEMSETS = Entry(
    names=("user", "basket", "region", "item"),
    crowd=[
        (f"u{who}", f"b{_DRAWN.integers(2)}", f"place {_DRAWN.integers(4)}",
         f"tea {_DRAWN.integers(4)}")
        for who in _DRAWN.permutation(40).tolist()
        for _ in range(int(_DRAWN.integers(2, 9)))
    ],
    new=[
        ("new", "b1", f"place {place}", item)
        for place, item in ((3, "tea 0"), (2, "tea 1"), (1, "ale"), (2, "tea 0"), (9, "tea 2"))
    ],
    odd={  # one item makes no pair
        "no group": ("u3", "b1", None, "tea 1"),
        "no item": ("u3", "b1", "place 0", None),
        "a group that is a number": ("new", "b1", 7, "tea 1"),
        "a group that is a date": ("new", "b1", pd.Timestamp("2026-01-02"), "tea 1"),
        "a basket that is a number": ("new", 1, "place 0", "tea 1"),
        "a user that is a number": (5, "b1", "place 0", "tea 1"),
        "an item that is a number": ("new", "b1", "place 0", 9),
    },
    open=open_itemsets,
    restrict=restrict_baskets,
)  # fmt: skip

ENTRIES = {"items": _ITEMS, "itemsets": _ITEMSETS}
