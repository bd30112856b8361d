"""An additive model fitted under differential privacy, as a scikit-learn classifier.

Proof:      docs/proofs/additive.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privmax.errors import ParameterError
from privmax.learning.additive.fitting import CellLayout, ExampleRows, fit_rounds, follows_terms
from privmax.learning.additive.link import LIMIT, log_odds
from privmax.learning.additive.model import AdditiveModel
from privmax.learning.additive.rounds import (
    GREEDY,
    ZCDP,
    AdditiveRounds,
    CalibratedRounds,
    read_switch,
)
from privmax.learning.additive.words import tell_entries, tell_shapes
from privmax.learning.model_fit import ModelFit
from privmax.learning.schema import Schema
from privmax.learning.schema_learner import LabelLearner
from privmax.ledger import Ledger
from privmax.ledger.request import Request
from privmax.noise.coins import Coins
from privmax.numbers import Number, whole

ROUNDS = 20
"""The default number of rounds."""


class PrivateGAM(LabelLearner):
    """A generalized additive model of two labels: log-odds are a sum of one small table per column.

    ONE ROW IS ONE INDIVIDUAL. Every `fit` pays again: `cross_val_score` with 5 folds is five
    releases, and the scores it returns are not private at all, nor is `score` on private data.

    `fit` sets `model_`, the tables; `release_`, with its cost; `labels_`, the labels as they were
    declared; `classes_`, the same sorted, as scikit-learn has them. All of it may be published, and
    so may `shape_functions_` and `rules_`, which put the tables in words.

    Args:
        schema: Which columns there are, and into which cells their values fall. It is public:
            nothing in it may come from the data.
        epsilon: What one `fit` costs; a float means the decimal that it prints as: 0.1 is one
            tenth.
        delta: Probability with which the guarantee may fail, such as 1e-6. With 0 the noise is
            larger, and the guarantee cannot fail.
        labels: The two labels, public knowledge; the tables are about the second.
        rounds: In how many rounds tables are fitted; each chooses a column. Fewer may be better
            for few rows, above all where delta is 0.
        interactions: In how many further rounds to fit a table for two columns together. They take
            30 % of the budget: worth it where columns matter only together.
        order: "greedy": every round chooses the column that promises most; "cyclic": columns take
            turns, which suits few columns that all matter.
        neighbors: "add-remove" (the default): one example more or less; "replace": another example.
        accounting: How noise follows from epsilon and delta. "zcdp" (the default): by
            concentrated privacy, in which fits add up; "pld": by privacy loss distributions, for
            add-remove with a delta. The noise is some 7 % smaller at the same cost, and the first
            fit with such parameters takes a second or more longer.
        calibration: Whether labels are counted once more, by the chance that the model gives them,
            with noise: a model card shows whether chances come true. It takes 2 % of the budget.
        unit: What the cost hides, for the ledger, which holds one unit: "row" by default. Say it
            where you know better: unit="user" if every row is a person.
        ledger: The privacy budget that covers every `fit`: charged before the first draw, recorded
            before `fit` returns. Give `ledger.request("nightly", account=…, dataset=…)` to name the
            request, the account to charge as well or the data. A fit under an id that was charged
            before gives the recorded model again, whatever its data, and costs nothing more.
        coins: Source of random bits; for tests only.

    Examples:
        >>> import numpy as np
        >>> from privmax.learning import Number, PrivateGAM, Schema
        >>> X = np.arange(10_000.0).reshape(-1, 1)
        >>> gam = PrivateGAM(Schema(x=Number(0, 10_000, cells=2)), 1, 1e-6, labels=[0, 1], rounds=3)
        >>> gam.fit(X, X[:, 0] >= 5_000).predict([[10], [9_000]])
        array([0, 1])
        >>> gam.release_.privacy
        Privacy(epsilon=1, delta=1e-06)
    """

    model_: AdditiveModel

    _title = "PrivateGAM"
    _nothing = AdditiveModel(0, {})
    _no_answer = "model_ has no tables and both labels are equally likely"

    def __init__(
        self,
        schema: Schema | None = None,
        epsilon: Number | None = None,
        delta: Number = 0,
        *,
        labels: Sequence[Any] | None = None,
        rounds: int = ROUNDS,
        interactions: int = 0,
        order: str = GREEDY,
        neighbors: str | None = None,
        accounting: str = ZCDP,
        calibration: bool = False,
        unit: str | None = None,
        ledger: Ledger | Request | None = None,
        coins: Coins | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.labels = labels
        self.rounds = rounds
        self.interactions = interactions
        self.order = order
        self.neighbors = neighbors
        self.accounting = accounting
        self.calibration = calibration
        self.unit = unit
        self.ledger = ledger
        self.coins = coins

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the log-odds of the second of `classes_`, for every row of X."""
        codes = self._codes(X)
        odds = log_odds(self.model_.scores(codes))
        return odds if self.classes_[1] == self.labels_[1] else -odds

    @property
    def shape_functions_(self) -> dict[str, list[dict[str, Any]]]:
        """The log-odds of the second label that each column adds, cell by cell.

        The keys are names of columns, two of them joined by " × " where they count together. Each
        value is a list of small records: `pandas.DataFrame` makes a table of it, and
        `privmax.plots.shapes` draws all of them. `noise` is about the deviation of the noise in
        what is added. That of the choice of columns and of other tables is not in it.

        Examples:
            >>> from privmax.learning import Number, PrivateGAM, Schema
            >>> X = np.arange(10_000.0).reshape(-1, 1)
            >>> schema = Schema(x=Number(0, 10_000, cells=2))
            >>> gam = PrivateGAM(schema, 1, 1e-6, labels=[0, 1], rounds=3).fit(X, X[:, 0] >= 5_000)
            >>> [one["cell"] for one in gam.shape_functions_["x"]]
            ['x < 5000', 'x >= 5000']
        """
        check_is_fitted(self, "model_")
        return tell_shapes(self.model_, self.schema_)

    @property
    def rules_(self) -> list[str]:
        """The tables in words, the largest entries first, such as "age < 20: −1.25"."""
        check_is_fitted(self, "model_")
        return tell_entries(self.model_, self.schema_)

    def _make_terms(self, epsilon: Number, neighbors: str) -> AdditiveRounds:
        kind = CalibratedRounds if read_switch("calibration", self.calibration) else AdditiveRounds
        return kind(
            epsilon=epsilon,
            delta=self.delta,
            rounds=self.rounds,
            pairs=whole("interactions", self.interactions, least=0),
            order=self.order,
            neighbors=neighbors,
            accounting=self.accounting,
        )

    def _question(self, schema: Schema, unit: str) -> AdditiveFit:
        rounds = self._terms()
        check_pairs(rounds.pairs, schema)
        return AdditiveFit(rounds, CellLayout.of(schema), unit)


def check_pairs(interactions: int, schema: Schema) -> None:
    """Refuse rounds on pairs where there are none.

    Raises:
        ParameterError: The schema has one column.
    """
    if interactions and schema.features == 1:
        raise ParameterError(
            "interactions", interactions, "the schema has one column, and no pair",
            "Leave it out: pairs take 30 % of the budget.",
        )  # fmt: skip


@dataclass(frozen=True)
class AdditiveFit(ModelFit[ExampleRows, AdditiveModel]):
    """Fit tables in rounds; a ledger keeps the model.

    Args:
        terms: How the fit spends its budget. They were checked when they were made.
        layout: What is public of the features.
        unit: What the cost hides.
    """

    terms: AdditiveRounds
    layout: CellLayout
    unit: str | None = None

    why = "fits an additive model in rounds"

    def preflight(self, source: ExampleRows) -> None:
        """Count labels once before the charge: an engine that fails does so now."""
        source.labels()

    def fit(self, source: ExampleRows, coins: Coins) -> AdditiveModel:
        """Return a model, fitted in rounds."""
        return fit_rounds(source, self.layout, self.terms, coins)

    def parse(self, written: Any) -> AdditiveModel | None:
        """Return a recorded model, if it has tables of these features."""
        model = AdditiveModel.from_json(written)
        largest = LIMIT * (self.terms.rounds + self.terms.pairs)
        fits = self.layout.holds(model, largest) and follows_terms(model, self.terms)
        return model if fits else None
