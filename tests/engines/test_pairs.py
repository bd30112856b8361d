"""Pairs in every engine: what individuals give, and that one more changes nothing of it."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import numpy as np

from privmax.sources.pairs import COIN, KEY, TURN
from privmax.sources.reading import pairs
from privmax.sources.roles import Columns
from privmax.sources.row_counts import USER

sys.path.append(str(Path(__file__).parents[1] / "exact"))

from key_ballots import Ballots, add, give

COLUMNS = Columns("item", "user")
MOST = 3

drawn = np.random.default_rng(3)
HOLDINGS = {
    user: {f"tea {item}" for item in drawn.choice(9, drawn.integers(1, 8), replace=False)}
    for user in range(12)
}
NEW = {99: {"tea 0", "tea 8", "Tea 8", "ale", "tea 3"}}


def rows_of(holdings):
    rows = [(user, item) for user, items in holdings.items() for item in sorted(items)]
    return {"user": [user for user, _ in rows], "item": [item for _, item in rows]}


def test_one_individual_more_changes_nothing_and_weights_are_those_of_plain_python(load):
    given = []
    for holdings in (HOLDINGS, NEW, {**NEW, **HOLDINGS}):
        with closing(pairs(load(rows_of(holdings)), COLUMNS, "salt")) as source:
            given.append(give(source, MOST))
            labels = source.name(np.arange(source.number))
            table, coins = source.everyone._table, {}
            for turn in range(3):
                rows = table.select(USER, KEY, **{TURN: source.hash(table[COIN], turn)})
                for user, key, coin in source.ask(rows):
                    coins[int(user), int(key), turn] = coin
        # as they are, or numbered in their order
        numbers = dict(zip(sorted(holdings), sorted({user for user, *_ in coins}), strict=True))

        def hash_of(user, item, turn, coins=coins, numbers=numbers, labels=labels):
            return coins[numbers[user], labels.index(item), turn]

        assert given[-1] == give(Ballots(holdings, coin=hash_of), MOST)
    assert given[2] == add(given[0], given[1])
