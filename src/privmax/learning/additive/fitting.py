"""The rounds of an additive fit: choose a part, release its sums with noise, take a step.

All that depends on data are whole numbers that `ExampleRows` counts. They leave this file through
the exponential mechanism or with noise, and nothing else does.

Proof:      docs/proofs/additive.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privmax.learning.additive.groups import (
    FEW,
    MANY,
    group_number,
    is_grouping,
    join_cells,
    merge_cells,
)
from privmax.learning.additive.link import BINS, LOGISTIC, Link, bin_labels
from privmax.learning.additive.model import AdditiveModel, Part, is_sum, pair, single
from privmax.learning.additive.rounds import (
    AdditiveRounds,
    CalibratedRounds,
    RoundNoise,
    choice_sensitivity,
)
from privmax.learning.additive.steps import (
    PRIOR,
    Floats,
    Links,
    Prior,
    carry_noise,
    chain,
    deviations,
    grid,
    newton_step,
    to_steps,
)
from privmax.noise.coins import Coins
from privmax.privacy import Neighbors
from privmax.sources.positions import Positions

MOST_PAIRS = 5_000
"""Above this number of pairs of features, only pairs of chosen features are considered."""

Sums = NDArray[np.int64]


class ExampleRows(Protocol):
    """Examples in memory or in an engine. They are private, and so is all that is counted."""

    def labels(self) -> tuple[int, int]:
        """Return how many rows have the first label, and how many the second."""
        ...

    def tally(self) -> Sums:
        """Return how many rows have each place in the tables of the link."""
        ...

    def use(self, link: Link) -> None:
        """Look up residuals and curvatures in other tables. Scores stay."""
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
class CellLayout:
    """The public facts about features: how many cells each has, and which lie side by side.

    cells      of each feature
    ordered    whether its cells have an order
    apart      the cell of each that stands outside of that order, if one does
    """

    cells: tuple[int, ...]
    ordered: tuple[bool, ...]
    apart: tuple[int | None, ...]

    @classmethod
    def of(cls, schema: Any) -> CellLayout:
        """Return the layout of a schema."""
        columns = schema.columns
        return cls(
            tuple(int(one.cells) for one in columns),
            tuple(bool(one.ordered) for one in columns),
            tuple(_missing_cell(one) for one in columns),
        )

    def singles(self) -> list[Part]:
        """Return every feature by itself."""
        return [single(feature, cells) for feature, cells in enumerate(self.cells)]

    def groups(self, most: int) -> list[tuple[int, ...]]:
        """Return the cells of every feature put into few groups of neighbors, for pairs.

        What stands apart stays so.
        """
        groups = []
        for cells, apart in zip(self.cells, self.apart, strict=True):
            if apart is None:
                groups.append(join_cells(cells, most))
            else:
                rest = iter(join_cells(cells - 1, most - 1))
                last = max(join_cells(cells - 1, most - 1), default=-1) + 1
                groups.append(tuple(last if one == apart else next(rest) for one in range(cells)))
        return groups

    def doubles(self, chosen: Sequence[int], groups: Sequence[tuple[int, ...]]) -> list[Part]:
        """Pairs of features; where there are too many, of those chosen before."""
        features: Sequence[int] = range(len(self.cells))
        if math.comb(len(features), 2) > MOST_PAIRS:
            features = chosen
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
        entries = [model.intercept]
        for part, table in model.tables.items():
            if not all(type(one) is int and 0 <= one < len(self.cells) for one in part.features):
                return False
            if len(part.features) == 1:
                fits = part == single(part.features[0], self.cells[part.features[0]])
            else:
                fits = len(part.features) == 2 and part.features[0] < part.features[1]
            if not fits or len(part.groups) != len(part.features) or len(table) != part.size:
                return False
            entries.extend(table)
        chosen = {part.features for part in model.tables}
        fits = all(type(one) is int and abs(one) <= largest for one in entries)
        known = any(self._has_groups(model, most) for most in (FEW, MANY))
        return chosen == set(model.path) and fits and known and _describes(model)

    def _has_groups(self, model: AdditiveModel, most: int) -> bool:
        """Return whether pairs have groups that a fit can have made of these cells.

        Every feature has the same in all of them: those of neighbors, or, where cells have no order
        and a table was released that may have merged them, any.
        """
        groups, released = self.groups(most), {part.features for part in model.tables}
        doubles = [part for part in model.tables if len(part.features) == 2]
        pairs = {one for part in doubles for one in zip(part.features, part.groups, strict=True)}
        return len(pairs) == len({feature for feature, _ in pairs}) and all(
            given == groups[feature]
            or (
                not self.ordered[feature]
                and (feature,) in released
                and is_grouping(given, self.cells[feature], most)
            )
            for feature, given in pairs
        )


def _describes(model: AdditiveModel) -> bool:
    """Return whether noise and weights are of the tables that there are."""
    described = [*model.noise.items(), *model.weights.items()]
    whole = all(
        len(each) == part.size and all(is_sum(one) for one in each) for part, each in described
    )
    return whole and all(one >= 0 for each in model.noise.values() for one in each)


def follows_terms(model: AdditiveModel, terms: AdditiveRounds) -> bool:
    """Return whether a model that was read has as many rounds as its terms, and their counts.

    Args:
        model: The model.
        terms: Of its fit.
    """
    sizes = [len(features) for features in model.path]
    singles = [1] * terms.rounds
    return sizes in (singles, singles + [2] * terms.pairs) and _has_counts(model, terms)


def _has_counts(model: AdditiveModel, terms: AdditiveRounds) -> bool:
    """Return whether a model has counts by chance where its terms ask for them."""
    if model.counts is None or not isinstance(terms, CalibratedRounds):
        return model.counts is None and not isinstance(terms, CalibratedRounds)
    every = [one for each in model.counts for one in each]
    shaped = len(model.counts) == BINS and all(len(each) == 2 for each in model.counts)
    return shaped and all(is_sum(one) for one in every)


def fit_rounds(
    rows: ExampleRows, layout: CellLayout, terms: AdditiveRounds, coins: Coins, prior: Prior = PRIOR
) -> AdditiveModel:
    """Fit a model of two labels: what is returned is released.

    Args:
        rows: The private examples.
        layout: What is public of their features.
        terms: What each release costs.
        coins: Where random bits come from.
        prior: What tables look like before any data.
    """
    intercept = _release_intercept(rows, terms, coins)
    rows.start(intercept)
    tables = TableFit(rows, layout, terms, coins, prior=prior)
    tables.fit_singles(terms.rounds)
    tables.fit_pairs()
    model = tables.model(intercept)
    if not isinstance(terms, CalibratedRounds):
        return model
    return replace(model, counts=_release_chances(rows, terms, coins))


@dataclass
class TableFit:
    """Tables while they are fitted, round by round. They are released, the rows are not.

    rows     the private examples
    layout   what is public of their features
    terms    what each release costs
    coins    where random bits come from
    link     what a row adds to sums
    prior    what tables look like before any data
    tables   those of the parts that were chosen
    path     which part each round chose, by its features
    noise    the covariance of the noise in each table, about
    weights  sums of the noisy curvatures of each part
    """

    rows: ExampleRows
    layout: CellLayout
    terms: AdditiveRounds
    coins: Coins
    link: Link = LOGISTIC
    prior: Prior = PRIOR
    tables: dict[Part, Sums] = field(default_factory=dict)
    path: list[tuple[int, ...]] = field(default_factory=list)
    noise: dict[Part, Floats] = field(default_factory=dict)
    weights: dict[Part, Sums] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{len(self.tables)} tables, which are being fitted>"

    def fit_singles(self, rounds: int) -> None:
        """Run so many rounds on single features."""
        singles = self.layout.singles()
        for _ in range(rounds):
            turn = singles[len(self.path) % len(singles)]
            self._run(singles, self.terms.singles, turn)

    def fit_pairs(self) -> None:
        """Run the rounds on pairs, if there are any."""
        if not self.terms.pairs:
            return
        chosen = sorted({feature for features in self.path for feature in features})
        doubles = self.layout.doubles(chosen, self.groups())
        for _ in range(self.terms.pairs if doubles else 0):
            self._run(doubles, self.terms.doubles, doubles[0])

    def groups(self) -> list[tuple[int, ...]]:
        """Return the cells of every feature put into groups, for pairs.

        Where cells have no order, a released table says which are alike. It sees nothing else: the
        tables, sums of noisy curvatures and public numbers.
        """
        noise = math.sqrt(self.terms.doubles.residuals.spread()) * self.link.bend / self.link.pull
        most = group_number(list(self.weights.values()), len(self.path), noise)
        groups = self.layout.groups(most)
        for part, table in self.tables.items():
            feature = part.features[0]
            if not self.layout.ordered[feature]:
                groups[feature] = merge_cells(table.tolist(), self.weights[part].tolist(), most)
        return groups

    def model(self, intercept: int) -> AdditiveModel:
        """Return the model of these tables."""
        tables, weights = (
            {part: tuple(table.tolist()) for part, table in each.items()}
            for each in (self.tables, self.weights)
        )
        noise = {part: tuple(deviations(one).tolist()) for part, one in self.noise.items()}
        return AdditiveModel(intercept, tables, tuple(self.path), noise, weights)

    def _run(self, parts: Sequence[Part], noise: RoundNoise, turn: Part) -> None:
        """Choose a part, or take the one whose turn it is.

        Its sums are released with noise, and what they suggest is added to its table.
        """
        part = choose_part(self.rows, parts, noise, self.terms, self.coins) or turn
        residuals, curvatures = self.rows.sums(part)
        residuals = residuals + noise.residuals.draw(part.size, self.coins)
        curvatures = curvatures + noise.curvatures.draw(part.size, self.coins)
        bends = self._bend(part, curvatures / self.link.bend, noise)
        spread = noise.residuals.spread() / self.link.pull**2
        links = self.layout.links(part)
        change = newton_step(residuals / self.link.pull, bends, spread, links, self.prior)
        steps = to_steps(change, self.link.step)
        none = np.zeros(part.size, np.int64)
        self.tables[part] = self.tables.get(part, none) + steps
        self.weights[part] = self.weights.get(part, none) + curvatures
        self.rows.add(part, steps)
        self.path.append(part.features)
        blur = noise.curvatures.spread() / self.link.bend**2
        moved = carry_noise(
            self.noise.get(part), bends, spread, links, self.prior, self.link.step, blur
        )
        if moved is not None:
            self.noise[part] = moved

    def _bend(self, part: Part, noisy: Floats, noise: RoundNoise) -> Floats:
        """Return the curvatures to take a step by, from the noisy ones of this round."""
        return noisy


def choose_part(
    rows: ExampleRows, parts: Sequence[Part], noise: RoundNoise, terms: AdditiveRounds, coins: Coins
) -> Part | None:
    """Choose a part by how much its cells still hold: Σ over cells of |Σ residuals|.

    The scores are whole numbers, and one individual moves each by at most the stated sensitivity,
    up or down.
    """
    if noise.chooser is None:
        return None
    scored = score_parts(rows.residuals(parts), terms.neighbors)
    return parts[scored.find(noise.chooser.draw(scored.profile, coins))]


def score_parts(sums: Sequence[Sums], neighbors: Neighbors) -> Positions:
    """Parts by their number, with the score that each is chosen by.

    Args:
        sums: Of residuals, in the cells of each part.
        neighbors: The relation, which says by how much one individual moves a score.

    Examples:
        >>> score_parts([np.array([3, -4]), np.array([-1])], "add-remove").scores()
        [7, 1]
    """
    scores = np.array([np.abs(one).sum() for one in sums], np.int64)
    return Positions(scores, choice_sensitivity(neighbors))


def _release_intercept(rows: ExampleRows, terms: AdditiveRounds, coins: Coins) -> int:
    """Log-odds of the second label, from two noisy counts."""
    noisy = np.maximum(np.array(rows.labels()) + terms.counts.draw(2, coins), 1)
    return int(to_steps(np.log(noisy[1:] / noisy[0]))[0])


def _release_chances(
    rows: ExampleRows, terms: AdditiveRounds, coins: Coins
) -> tuple[tuple[int, int], ...]:
    """Noisy counts of both labels, by the chance of the model: every row is in one count."""
    exact = bin_labels(rows.tally())
    noisy = exact + terms.counts.draw(exact.size, coins).reshape(exact.shape)
    return tuple((int(first), int(second)) for first, second in noisy)


def _missing_cell(column: Any) -> int | None:
    """Return the cell of missing values in an ordered column: it has no place in the order."""
    if not column.ordered:
        return None
    return getattr(column, "missing_cell", None)
