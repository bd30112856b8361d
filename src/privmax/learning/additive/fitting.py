"""The rounds of an additive fit: choose a part, release its sums with noise, take a step.

All that depends on data are whole numbers that `Rows` counts. They leave this file through the
exponential mechanism or with noise, and nothing else does.

Proof:      docs/proofs/additive.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privmax.learning.additive.link import UNIT, to_steps
from privmax.learning.additive.model import AdditiveModel, Part, join_cells, pair, single
from privmax.learning.additive.rounds import AdditiveRounds, RoundNoise, choice_sensitivity
from privmax.learning.additive.steps import PRIOR, Links, Prior, chain, grid, newton_step
from privmax.noise.coins import Coins
from privmax.privacy import Neighbors
from privmax.sources.memory import MemorySource

COARSE = 8
"""Groups that the cells of a feature are put into where it is part of a pair."""

MOST_PAIRS = 5_000
"""Where features make more pairs, only those of chosen features are looked at."""

Sums = NDArray[np.int64]


class Rows(Protocol):
    """Examples in memory or in an engine. They are private, and so is all that is counted."""

    def labels(self) -> tuple[int, int]:
        """Return how many rows have the first label, and how many the second."""
        ...

    def start(self, intercept: int) -> None:
        """Give every row the same score."""
        ...

    def residuals(self, parts: Sequence[Part]) -> list[Sums]:
        """Return the sum of residuals in every cell of each part."""
        ...

    def sums(self, part: Part) -> tuple[Sums, Sums]:
        """Return the sums of residuals and of curvatures in every cell of a part."""
        ...

    def add(self, part: Part, steps: Sums) -> None:
        """Add an entry of a table to the score of every row."""
        ...


@dataclass(frozen=True)
class Layout:
    """What is public of the features: how many cells each has, and which lie side by side.

    cells      of each feature
    ordered    whether its cells have an order
    apart      the cell of each that stands outside of that order, if one does
    """

    cells: tuple[int, ...]
    ordered: tuple[bool, ...]
    apart: tuple[int | None, ...]

    @classmethod
    def of(cls, schema: Any) -> Layout:
        """That of a schema."""
        columns = schema.columns
        return cls(
            tuple(int(one.cells) for one in columns),
            tuple(bool(one.ordered) for one in columns),
            tuple(_missing_cell(one) for one in columns),
        )

    def singles(self) -> list[Part]:
        """Return every feature by itself."""
        return [single(feature, cells) for feature, cells in enumerate(self.cells)]

    def groups(self) -> list[tuple[int, ...]]:
        """Return the cells of every feature put into few groups, for pairs.

        What stands apart stays so.
        """
        groups = []
        for cells, apart in zip(self.cells, self.apart, strict=True):
            if apart is None:
                groups.append(join_cells(cells, COARSE))
            else:
                rest = iter(join_cells(cells - 1, COARSE - 1))
                last = max(join_cells(cells - 1, COARSE - 1), default=-1) + 1
                groups.append(tuple(last if one == apart else next(rest) for one in range(cells)))
        return groups

    def doubles(self, chosen: Sequence[int]) -> list[Part]:
        """Pairs of features; where there are too many, of those chosen before."""
        features: Sequence[int] = range(len(self.cells))
        if math.comb(len(features), 2) > MOST_PAIRS:
            features = chosen
        groups = self.groups()
        return [pair(first, second, groups) for first, second in combinations(features, 2)]

    def links(self, part: Part) -> Links:
        """Return which entries of the table of a part lie side by side."""
        each = []
        for feature, groups in zip(part.features, part.groups, strict=True):
            length, apart = max(groups) + 1, self.apart[feature]
            alone = None if apart is None else groups[apart]
            ordered = self.ordered[feature]
            each.append(chain(length, alone) if ordered else chain(0))
        return each[0] if len(each) == 1 else grid(each[0], each[1], (part.shape[0], part.shape[1]))

    def holds(self, model: AdditiveModel, largest: int) -> bool:
        """Whether a model has tables of these cells, and no entry beyond the largest there can be.

        Args:
            model: One that was read.
            largest: In steps, up or down.
        """
        groups, entries = self.groups(), [model.intercept]
        for part, table in model.tables.items():
            if not all(type(one) is int and 0 <= one < len(self.cells) for one in part.features):
                return False
            if len(part.features) == 1:
                known = single(part.features[0], self.cells[part.features[0]])
            elif len(part.features) == 2 and part.features[0] < part.features[1]:
                known = pair(*part.features, groups)
            else:
                return False
            if part != known or len(table) != part.size:
                return False
            entries.extend(table)
        chosen = {part.features for part in model.tables}
        return chosen == set(model.path) and all(
            type(one) is int and abs(one) <= largest for one in entries
        )


def fit_rounds(
    rows: Rows, layout: Layout, terms: AdditiveRounds, coins: Coins, prior: Prior = PRIOR
) -> AdditiveModel:
    """Fit a model: what is returned is released.

    Args:
        rows: The private examples.
        layout: What is public of their features.
        terms: What each release costs.
        coins: Where random bits come from.
        prior: What tables look like before any data.
    """
    intercept = _release_intercept(rows, terms, coins)
    rows.start(intercept)
    tables: dict[Part, Sums] = {}
    path: list[tuple[int, ...]] = []
    singles = layout.singles()
    for number in range(terms.rounds):
        turn = singles[number % len(singles)]
        part = choose_part(rows, singles, terms.singles, terms, coins) or turn
        _take_step(rows, part, terms.singles, layout, tables, coins, prior)
        path.append(part.features)
    if terms.pairs:
        chosen = sorted({feature for features in path for feature in features})
        doubles = layout.doubles(chosen)
        for _ in range(terms.pairs if doubles else 0):
            part = choose_part(rows, doubles, terms.doubles, terms, coins) or doubles[0]
            _take_step(rows, part, terms.doubles, layout, tables, coins, prior)
            path.append(part.features)
    ready = {part: tuple(int(one) for one in table) for part, table in tables.items()}
    return AdditiveModel(intercept, ready, tuple(path))


def choose_part(
    rows: Rows, parts: Sequence[Part], noise: RoundNoise, terms: AdditiveRounds, coins: Coins
) -> Part | None:
    """Choose a part by how much its cells still hold: Σ over cells of |Σ residuals|.

    The scores are whole numbers, and one individual moves each by at most the stated sensitivity,
    up or down.
    """
    if noise.chooser is None:
        return None
    source = score_parts(rows.residuals(parts), terms.neighbors)
    number: int = source.name(noise.chooser.draw(source.profile, coins))
    return parts[number]


def score_parts(sums: Sequence[Sums], neighbors: Neighbors) -> MemorySource:
    """Parts by their number, with the score that each is chosen by.

    Args:
        sums: Of residuals, in the cells of each part.
        neighbors: The relation, which says by how much one individual moves a score.

    Examples:
        >>> score_parts([np.array([3, -4]), np.array([-1])], "add-remove").scores()
        [(0, 7), (1, 1)]
    """
    scores = np.array([np.abs(one).sum() for one in sums], np.int64)
    return MemorySource(scores, universe=len(sums), sensitivity=choice_sensitivity(neighbors))


def _release_intercept(rows: Rows, terms: AdditiveRounds, coins: Coins) -> int:
    """Log-odds of the second label, from two noisy counts."""
    noisy = np.maximum(np.array(rows.labels()) + terms.counts.draw(2, coins), 1)
    return int(to_steps(np.log(noisy[1:] / noisy[0]))[0])


def _take_step(
    rows: Rows,
    part: Part,
    noise: RoundNoise,
    layout: Layout,
    tables: dict[Part, Sums],
    coins: Coins,
    prior: Prior,
) -> None:
    """Release the sums of a part with noise, and add to its table what they suggest."""
    residuals, curvatures = rows.sums(part)
    residuals = residuals + noise.residuals.draw(part.size, coins)
    curvatures = curvatures + noise.curvatures.draw(part.size, coins)
    change = newton_step(
        residuals / UNIT,
        curvatures / UNIT,
        noise.residuals.spread() / UNIT**2,
        layout.links(part),
        prior,
    )
    steps = to_steps(change)
    tables[part] = tables.get(part, np.zeros(part.size, np.int64)) + steps
    rows.add(part, steps)


def _missing_cell(column: Any) -> int | None:
    """Return the cell of missing values in an ordered column: it has no place in the order."""
    if not column.ordered:
        return None
    return getattr(column, "missing_cell", None)
