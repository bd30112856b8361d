"""A regression in rounds: count errors with noise, fit tables to them, and again.

All that depends on data are whole numbers that `ExampleRows` counts. Tallies leave this file with
noise, and sums as in every additive model.

Proof:      docs/proofs/regressor.md
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privmax.errors import DataError
from privmax.learning.additive.fitting import CellLayout, ExampleRows, TableFit
from privmax.learning.additive.link import CLIP, LIMIT
from privmax.learning.additive.model import Part
from privmax.learning.additive.rounds import RoundNoise
from privmax.learning.additive.steps import Floats, Prior
from privmax.learning.regressor.model import RegressorModel
from privmax.learning.regressor.targets import (
    ABSOLUTE,
    BINS,
    REACH,
    Noisy,
    bin_errors,
    bin_width,
    error_link,
)
from privmax.learning.regressor.terms import RegressorRounds
from privmax.noise.coins import Coins

WIDEST = LIMIT // 4
"""The spread before anything is known: bins then reach from bound to bound."""

NARROWEST = 4
"""Steps of the smallest spread: one cell of targets."""

CERTAIN = 2.0
"""In deviations of the noise: smaller counts of errors are not believed."""

SUPPOSED = 1.0
"""In the same: errors that are supposed before any are counted."""

EVEN = 8.0
"""The root of rows, over the noise on residuals, at which the reach is one spread."""

PRIOR = Prior(size=0.4, slope=0.02, rate=0.9)
"""Tables as expected before any data, in spreads. All of these were fixed on invented data."""


@dataclass(repr=False)
class ErrorTables(TableFit):
    """Tables of a regression: curvatures are little else than counts of rows, round after round.

    bends   sums of the noisy curvatures of each part, and in how many rounds they were released
    """

    bends: dict[Part, tuple[Floats, int]] = field(default_factory=dict)

    def _bend(self, part: Part, noisy: Floats, noise: RoundNoise) -> Floats:
        """Return their mean over rounds, drawn to that of all cells where noise is most of it."""
        total, times = self.bends.get(part, (np.zeros(part.size), 0))
        self.bends[part] = total, times = total + noisy, times + 1
        return shrink(total / times, noise.curvatures.spread() / (self.link.bend**2 * times))


def shrink(noisy: Floats, spread: float) -> Floats:
    """Return numbers that cannot be negative, drawn to their mean as far as noise moves them.

    Args:
        noisy: With noise.
        spread: The variance of that noise.

    Examples:
        >>> shrink(np.array([90.0, 110.0]), 1.0).round().tolist()
        [90.0, 110.0]
        >>> shrink(np.array([-900.0, 1000.0]), 1e9).round().tolist()
        [50.0, 50.0]
    """
    mean = max(float(noisy.mean()), 0.0)
    between = max(float(((noisy - mean) ** 2).mean()) - spread, mean**2)
    return np.maximum(mean + between / (between + spread) * (noisy - mean), 0.0)


def fit_errors(
    rows: ExampleRows,
    layout: CellLayout,
    terms: RegressorRounds,
    coins: Coins,
    prior: Prior = PRIOR,
) -> RegressorModel:
    """Fit a regression: what is returned is released.

    Args:
        rows: The private examples.
        layout: What is public of their features.
        terms: What each release costs.
        coins: Where random bits come from.
        prior: What tables look like before any data.
    """
    spread, intercept = WIDEST, 0
    start_rows(rows, terms)
    fitting = ErrorTables(rows, layout, terms, coins, prior=prior)
    for stage, rounds in enumerate(terms.stages()):
        errors = release_errors(rows, spread, terms, coins)
        center, spread, reach = describe_errors(errors, spread, terms)
        if stage == 0:
            intercept = center
            rows.start(intercept)
        fitting.link = error_link(spread, reach)
        rows.use(fitting.link)
        fitting.fit_singles(rounds)
    fitting.fit_pairs()
    if not terms.intervals:
        return RegressorModel(fitting.model(intercept), spread)
    errors = release_errors(rows, spread, terms, coins)
    return RegressorModel(fitting.model(intercept), spread, tuple(errors.tolist()))


def start_rows(rows: ExampleRows, terms: RegressorRounds) -> None:
    """Give every row the middle of the bounds as its score.

    Raises:
        DataError: There are no rows.
    """
    rows.use(error_link(WIDEST, REACH[terms.loss][0]))
    rows.start(0)
    if not rows.tally().any():
        raise DataError("Found array with 0 sample(s): X has no rows with a target.")


def release_errors(rows: ExampleRows, spread: int, terms: RegressorRounds, coins: Coins) -> Noisy:
    """Return noisy counts of errors, bin by bin: every row is in one bin."""
    return bin_errors(rows.tally(), spread) + terms.counts.draw(BINS, coins)


def describe_errors(errors: Noisy, spread: int, terms: RegressorRounds) -> tuple[int, int, float]:
    """Return center and spread of errors, in steps, and a reach in spreads, from noisy counts.

    Counts are taken for what they exceed the noise by, and a few errors are supposed that have the
    spread from before: where noise is all there is, that spread stays. The reach is such that the
    noise on the sums of a round moves tables less than other people in the place of these would.

    Args:
        errors: Noisy counts, bin by bin.
        spread: As it was when they were counted.
        terms: With the noise, and the loss: squared has the mean as center, absolute the median.

    Examples:
        >>> terms = RegressorRounds(epsilon=1, delta=1e-6)
        >>> counts = np.zeros(BINS, int)
        >>> counts[[20, 21]] = 1_000_000
        >>> describe_errors(counts, 512, terms)
        (640, 73, 3.0)
    """
    noise = float(np.sqrt(terms.counts.spread()))
    width = bin_width(spread)
    middles = (np.arange(BINS) - BINS // 2 + 0.5) * width
    bell = np.exp(-((middles / spread) ** 2) / 2)
    believed = np.maximum(errors - CERTAIN * noise, 0)
    weights = believed + SUPPOSED * noise * bell / bell.sum()
    share = weights / weights.sum()
    center = float(share @ middles)
    if terms.loss == ABSOLUTE:
        center = float(np.interp(0.5, np.cumsum(share), middles + width / 2))
    square = share @ (middles - center) ** 2 + width**2 / 12
    noise = np.sqrt(terms.singles.residuals.spread()) / CLIP
    reach = np.clip(np.sqrt(believed.sum()) / (EVEN * noise), *REACH[terms.loss])
    return round(center), int(np.clip(np.sqrt(square), NARROWEST, LIMIT)), float(reach)
