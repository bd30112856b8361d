"""Questions about groups, of items and of itemsets, which a ledger treats alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd

import privmax
from privmax import Groups
from privmax.itemsets import top_itemsets
from privmax.itemsets.reading.grouped import GroupedBaskets
from privmax.sources.grouped import GroupedSource

PRICE = {"epsilon": 1, "delta": "1e-6"}
ROWS = pd.DataFrame(
    [(who, "north" if who < 300 else "south", "tea" if who < 300 else "ale") for who in range(500)],
    columns=["user", "region", "item"],
)
BASKETS = pd.DataFrame(
    [
        (who, who, "north" if who < 300 else "south", item)
        for who in range(500)
        for item in (("tea", "milk") if who < 300 else ("ale", "nuts"))
    ],
    columns=["user", "receipt", "region", "item"],
)
DECLARED = Groups("region", ["north", "south", "west"])


class Untouchable:
    """Data that must not be looked at."""

    def __getattribute__(self, name):
        raise AssertionError("the data was touched")


def select(data=ROWS, **options):
    named = {"item": "item", "user": "user", "by": DECLARED}
    return privmax.select(data, **{**named, **PRICE, **options})


def mine(data=BASKETS, **options):
    named = {"basket": "receipt", "item": "item", "user": "user", "by": DECLARED}
    return top_itemsets(data, **{**named, **PRICE, **options})


def kinds(ledger):
    return [event.kind for event in ledger.history()]


class Question(NamedTuple):
    """A way to ask for the best of every group.

    ask       asks it
    extra     options that release more
    other     options that make it another question
    source    what names what was drawn
    """

    ask: Callable[..., Any]
    extra: Mapping[str, Any]
    other: Mapping[str, Any]
    source: type


QUESTIONS = {
    "items": Question(
        select, {"counts": "0.5"}, {"by": Groups("user2", ["north", "south"])}, GroupedSource
    ),
    "itemsets": Question(
        mine, {"supports": "0.5", "k": 2, "size": "1-2"}, {"size": 3}, GroupedBaskets
    ),
}
