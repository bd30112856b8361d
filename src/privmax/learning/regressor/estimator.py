"""A regression fitted under differential privacy, as a scikit-learn regressor.

Proof:      docs/proofs/regressor.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privmax.errors import DataError, ParameterError
from privmax.learning.additive.estimator import ROUNDS, check_pairs
from privmax.learning.additive.fitting import CellLayout, ExampleRows, follows_terms
from privmax.learning.additive.link import LIMIT
from privmax.learning.additive.model import AdditiveModel, Codes, is_sum
from privmax.learning.additive.rounds import GREEDY, ZCDP
from privmax.learning.additive.words import tell_entries, tell_shapes
from privmax.learning.kinds import Column
from privmax.learning.labels import call_quietly
from privmax.learning.model_fit import ModelFit
from privmax.learning.reading import check_lengths, plan_rows, read_codes
from privmax.learning.regressor.fitting import NARROWEST, WIDEST, fit_errors, start_rows
from privmax.learning.regressor.model import RegressorModel
from privmax.learning.regressor.targets import (
    BINS,
    SQUARED,
    place_targets,
    read_bounds,
    target_column,
)
from privmax.learning.regressor.terms import RegressorRounds
from privmax.learning.schema import Schema
from privmax.learning.schema_learner import SchemaLearner
from privmax.ledger import Ledger
from privmax.ledger.request import Request
from privmax.noise.coins import Coins
from privmax.numbers import Number, probability, whole


class PrivateRegressor(RegressorMixin, SchemaLearner):  # type: ignore[misc]  # scikit-learn ships no types
    """A generalized additive model of numbers: a prediction is a sum of one table per column.

    ONE ROW IS ONE INDIVIDUAL. Every `fit` pays again: `cross_val_score` with 5 folds is five
    releases, and the scores it returns are not private at all, nor is `score` on private data.

    `fit` sets `model_`, the tables; `release_`, with its cost; `targets_`, the declared bounds. All
    of it may be published, and so may `shape_functions_` and `rules_`, which put the tables in
    words. Rows whose target is missing, or is no number, are left out.

    Args:
        schema: Which columns there are, and into which cells their values fall. It is public:
            nothing in it may come from the data.
        epsilon: What one `fit` costs; a float means the decimal that it prints as: 0.1 is one
            tenth.
        delta: Probability with which the guarantee may fail, such as 1e-6. With 0 the noise is
            larger, and the guarantee cannot fail.
        targets: The lowest and the highest target, public knowledge. Targets beyond are taken for
            these, and predictions are between them. Bounds that are a few times too wide cost
            little.
        loss: "squared" for means, or "absolute" for medians, on which few extreme targets have
            less influence. Errors far beyond the typical one pull no harder than less extreme ones.
        rounds: In how many rounds tables are fitted; each chooses a column.
        interactions: In how many further rounds to fit a table for two columns together. They take
            30 % of the budget.
        order: "greedy": every round chooses the column that promises most; "cyclic": columns take
            turns.
        intervals: Whether `predict_interval` can be asked. It takes 5 % of the budget.
        neighbors: "add-remove" (the default): one example more or less; "replace": another example.
        accounting: How noise follows from epsilon and delta: "zcdp" (the default), or "pld", with
            some 7 % less noise, for add-remove with a delta.
        unit: What the cost hides, for the ledger: "row" by default. Say it where you know better:
            unit="user" if every row is a person.
        ledger: The privacy budget that covers every `fit`: charged before the first draw, recorded
            before `fit` returns. Give `ledger.request("nightly", account=…, dataset=…)` to name the
            request, the account to charge as well or the data. A fit under an id that was charged
            before gives the recorded model again, whatever its data, and costs nothing more.
        coins: Source of random bits; for tests only.

    Examples:
        >>> import numpy as np
        >>> from privmax.learning import Number, PrivateRegressor, Schema
        >>> X = np.arange(10_000.0).reshape(-1, 1)
        >>> schema = Schema(x=Number(0, 10_000, cells=2))
        >>> learner = PrivateRegressor(schema, epsilon=1, delta=1e-6, targets=(0, 10), rounds=9)
        >>> learner.fit(X, np.where(X[:, 0] < 5_000, 2, 8)).predict([[10], [9_000]]).round()
        array([2., 8.])
        >>> learner.release_.privacy
        Privacy(epsilon=1, delta=1e-06)
    """

    targets: Sequence[float] | None
    loss: str
    model_: RegressorModel
    targets_: NDArray[np.float64]

    _title = "PrivateRegressor"
    _declared = "targets"
    _nothing = RegressorModel(AdditiveModel(0, {}), WIDEST)
    _no_answer = "model_ has no tables and predicts the middle of the bounds"

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        targets: Sequence[float] | None = None,
        loss: str = SQUARED,
        rounds: int = ROUNDS,
        interactions: int = 0,
        order: str = GREEDY,
        intervals: bool = False,
        neighbors: str | None = None,
        accounting: str = ZCDP,
        unit: str | None = None,
        ledger: Ledger | Request | None = None,
        coins: Coins | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.targets = targets
        self.loss = loss
        self.rounds = rounds
        self.interactions = interactions
        self.order = order
        self.intervals = intervals
        self.neighbors = neighbors
        self.accounting = accounting
        self.unit = unit
        self.ledger = ledger
        self.coins = coins

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted target of every row of X."""
        codes = self._codes(X)
        return self.model_.values(codes, self.targets_)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """Return for every row of X two numbers between which its target is likely to be.

        They are as far from the prediction as so many errors of the fitted rows were, by noisy
        counts. With few rows they can be too wide or too narrow.

        Args:
            X: Rows, as for `predict`.
            coverage: How likely.

        Raises:
            ParameterError: The model was fitted without `intervals`.
        """
        share = float(probability("coverage", coverage))
        codes = self._codes(X)
        if self.model_.errors is None:
            raise ParameterError(
                "intervals", self.intervals, "errors were not counted in the fit",
                "Fit with intervals=True.",
            )  # fmt: skip
        values = self.model_.values(codes, self.targets_)[:, None]
        ends = values + np.array(self.model_.margins(share)) * self._step()
        return np.clip(ends, *self.targets_)

    @property
    def shape_functions_(self) -> dict[str, list[dict[str, Any]]]:
        """The effect of each column on a prediction, cell by cell.

        The keys are names of columns, two of them joined by " × " where they count together. Each
        value is a list of small records, as of `PrivateGAM`. Effects are those beyond the mean over
        the table: where that mean is moves more between fits than `noise` says, and only its sum
        over all tables, with the start, matters to predictions.
        """
        check_is_fitted(self, "model_")
        return tell_shapes(self.model_.tables.centered(), self.schema_, self._step(), "effect")

    @property
    def rules_(self) -> list[str]:
        """The tables in words, the largest entries first, such as "age < 20: −1.25"."""
        check_is_fitted(self, "model_")
        decimals = max(-math.floor(math.log10(self._step() * 4)), 0)  # a thousandth of all targets
        return tell_entries(self.model_.tables.centered(), self.schema_, self._step(), decimals)

    def _step(self) -> float:
        """Return one step of a score, in the unit of targets."""
        low, high = self.targets_.tolist()
        return float((high - low) / (2 * LIMIT))

    def _make_terms(self, epsilon: Number, neighbors: str) -> RegressorRounds:
        return RegressorRounds(
            epsilon=epsilon,
            delta=self.delta,
            rounds=self.rounds,
            pairs=whole("interactions", self.interactions, least=0),
            order=self.order,
            neighbors=neighbors,
            accounting=self.accounting,
            loss=self.loss,
            intervals=self.intervals,
        )

    def _question(self, schema: Schema, unit: str) -> RegressorFit:
        terms = self._terms()
        check_pairs(terms.pairs, schema)
        return RegressorFit(terms, CellLayout.of(schema), unit)

    def _read_targets(self) -> NDArray[np.float64]:
        return read_bounds(self.targets)

    def _keep_targets(self, targets: NDArray[np.float64]) -> None:
        self.targets_ = targets

    def _plan_reading(
        self, X: Any, y: Any, schema: Schema, targets: NDArray[np.float64]
    ) -> Callable[[ExitStack], ExampleRows]:
        column = target_column(targets)

        def write() -> Any:
            return lambda engine, values: place_targets(column.expression(values))

        return plan_rows(X, y, schema, lambda: read_numbers(schema, X, y, column), write)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # a public grid need not fit, and privacy adds noise
        return tags


def read_numbers(schema: Schema, X: Any, y: Any, column: Column) -> tuple[Codes, NDArray[np.int16]]:
    """Return the cell of every value, and the target of every row that has one.

    Raises:
        DataError: y is not numbers by its type, or X is not what the schema takes.
    """
    codes = read_codes(schema, X, y)
    if not hasattr(y, "__iter__"):
        y = call_quietly(lambda: np.asarray(y), "y is none of the containers that are read")
    if getattr(y, "ndim", 1) != 1:
        raise DataError("y should be a 1d array, one target per example.")
    targets = place_targets(column.codes(y).astype(np.int16))
    check_lengths(codes, targets)
    kept = targets >= 0
    return (codes, targets) if kept.all() else (codes[:, kept], targets[kept])


@dataclass(frozen=True)
class RegressorFit(ModelFit[ExampleRows, RegressorModel]):
    """The question for a regression: tallies and rounds run, and a ledger keeps the model.

    Args:
        terms: How the fit spends its budget. They were checked when they were made.
        layout: What is public of the features.
        unit: What the cost hides.
    """

    terms: RegressorRounds  # type: ignore[assignment]  # mypy forgets types of inherited parameters
    layout: CellLayout
    unit: str | None = None

    why = "fits an additive regression in rounds"

    def preflight(self, source: ExampleRows) -> None:
        """Count rows once before the charge: an engine that fails does so now.

        Raises:
            DataError: There are no rows.
        """
        start_rows(source, self.terms)

    def fit(self, source: ExampleRows, coins: Coins) -> RegressorModel:
        """Return a model, fitted in rounds."""
        return fit_errors(source, self.layout, self.terms, coins)

    def parse(self, written: Any) -> RegressorModel | None:
        """Return a recorded model, if it has tables of these features."""
        model = RegressorModel.from_json(written)
        largest = LIMIT * (self.terms.rounds + self.terms.pairs)
        counted = model.errors is not None
        fits = (
            self.layout.holds(model.tables, largest)
            and follows_terms(model.tables, self.terms)
            and NARROWEST <= model.spread <= LIMIT
            and counted == self.terms.intervals
            and (not counted or len(model.errors or ()) == BINS)
            and all(is_sum(one) for one in (model.spread, *(model.errors or ())))
        )
        return model if fits else None
