"""An additive model: an intercept and a table of whole numbers for each term.

Everything in it was released, or follows from what was released and the schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privmax.learning.additive.link import log_odds

Codes = NDArray[np.unsignedinteger[Any]]
"""Cells of all rows: a row for each feature, a column for each example."""


@dataclass(frozen=True)
class Part:
    """One feature, or two, each with its cells put into groups: a term has a table of these.

    features   their numbers
    groups     for each feature the group of every cell
    """

    features: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups of each feature."""
        return tuple(max(groups) + 1 for groups in self.groups)

    @property
    def size(self) -> int:
        """The number of entries of its table."""
        return prod(self.shape)

    def places(self, codes: Codes) -> NDArray[np.intp]:
        """Return the entry of the table that each row has.

        Examples:
            >>> part = Part((0, 1), ((0, 0, 1), (0, 1)))
            >>> part.places(np.array([[0, 2], [1, 1]], np.uint8)).tolist()
            [1, 3]
        """
        places = np.zeros(codes.shape[1], np.intp)
        for feature, groups in zip(self.features, self.groups, strict=True):
            places *= max(groups) + 1
            places += np.asarray(groups, np.intp)[codes[feature]]
        return places


@dataclass(frozen=True, repr=False)
class AdditiveModel:
    """Log-odds of the second label, as a sum of tables.

    intercept   in steps of 1/256
    tables      for each part that was chosen its table, in the same steps
    path        which part each round chose, by its features
    noise       for each part the deviation of the noise in its entries, about, in the same steps;
                none with too many cells side by side, and in records of earlier versions
    weights     for each part the sums of curvatures that its rounds released, added up
    counts      noisy counts of both labels, by chance in tenths; None: they were not counted

    Examples:
        >>> model = AdditiveModel(0, {Part((0,), ((0, 1),)): (-256, 256)}, ((0,),))
        >>> model.scores(np.array([[0, 1, 1]], np.uint8)).tolist()
        [-256, 256, 256]
    """

    intercept: int
    tables: Mapping[Part, tuple[int, ...]]
    path: tuple[tuple[int, ...], ...] = ()
    noise: Mapping[Part, tuple[int, ...]] = field(default_factory=dict)
    weights: Mapping[Part, tuple[int, ...]] = field(default_factory=dict)
    counts: tuple[tuple[int, int], ...] | None = None

    def __repr__(self) -> str:
        return f"<additive model: intercept {self.intercept}, {len(self.tables)} tables>"

    def __hash__(self) -> int:
        return hash((self.intercept, frozenset(self.tables.items()), self.path))

    def scores(self, codes: Codes) -> NDArray[np.int64]:
        """Return the score of each row, in steps."""
        scores = np.full(codes.shape[1], self.intercept, np.int64)
        for part, table in self.tables.items():
            scores += np.asarray(table, np.int64)[part.places(codes)]
        return scores

    def chances(self, codes: Codes) -> NDArray[np.float64]:
        """Return the chance of the second label, of each row."""
        odds = np.clip(log_odds(self.scores(codes)), -700, 700)  # exp(710) is no float
        chances: NDArray[np.float64] = 1 / (1 + np.exp(-odds))
        return chances

    def cell_weights(self, part: Part) -> NDArray[np.float64]:
        """Return how much each entry of a table counts in a mean over it, by noisy curvatures.

        All count the same in a record of an earlier version, and where nothing but noise is left.
        """
        weights = np.maximum(np.array(self.weights.get(part, ()), np.float64), 0)
        return weights if weights.sum() > 0 else np.ones(part.size)

    def centered(self) -> Self:
        """Return the same scores, as tables around a mean of 0 and what they start from.

        A fit says little about where the mean of a table is: what one table has more, the others
        and the intercept have less. It is rounded to whole steps.

        Examples:
            >>> part = Part((0,), ((0, 1),))
            >>> model = AdditiveModel(5, {part: (10, 40)}, weights={part: (200, 100)})
            >>> model.centered().intercept, model.centered().tables[part]
            (25, (-10, 20))
        """
        tables, intercept = {}, self.intercept
        for part, table in self.tables.items():
            mean = round(float(np.average(table, weights=self.cell_weights(part))))
            tables[part] = tuple(entry - mean for entry in table)
            intercept += mean
        return replace(self, intercept=intercept, tables=tables)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        tables = [
            {
                "features": list(part.features),
                "groups": [list(groups) for groups in part.groups],
                "table": list(table),
                **{
                    name: list(more[part])
                    for name, more in (("noise", self.noise), ("weights", self.weights))
                    if part in more
                },
            }
            for part, table in self.tables.items()
        ]
        return {
            "intercept": self.intercept,
            "tables": tables,
            "path": [list(features) for features in self.path],
            **({} if self.counts is None else {"counts": [list(one) for one in self.counts]}),
        }

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        """Return what `to_json` wrote.

        Examples:
            >>> model = AdditiveModel(3, {Part((0,), ((0, 1),)): (-256, 256)}, ((0,),))
            >>> AdditiveModel.from_json(model.to_json()) == model
            True
        """
        parts = {
            Part(tuple(one["features"]), tuple(map(tuple, one["groups"]))): one
            for one in written["tables"]
        }
        tables, noise, weights = (
            {part: tuple(one[name]) for part, one in parts.items() if name in one}
            for name in ("table", "noise", "weights")
        )
        path = tuple(map(tuple, written["path"]))
        counts = tuple(map(tuple, written["counts"])) if "counts" in written else None
        return cls(written["intercept"], tables, path, noise, weights, counts)


def is_sum(number: object) -> bool:
    """Return whether a number that was read may be a noisy sum.

    Examples:
        >>> is_sum(-5), is_sum(1 << 63), is_sum(1.0)
        (True, False, False)
    """
    return type(number) is int and abs(number) < 1 << 63


def single(feature: int, cells: int) -> Part:
    """Return a feature by itself, every cell on its own."""
    return Part((feature,), (tuple(range(cells)),))


def pair(first: int, second: int, groups: Sequence[tuple[int, ...]]) -> Part:
    """Two features together; `groups` are those of all features."""
    return Part((first, second), (groups[first], groups[second]))
