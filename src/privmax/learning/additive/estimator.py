"""An additive model fitted under differential privacy, as a scikit-learn classifier.

Proof:      docs/proofs/additive.md
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privmax.errors import ParameterError
from privmax.learning.additive.fitting import Layout, Rows, fit_rounds
from privmax.learning.additive.link import LIMIT, log_odds
from privmax.learning.additive.model import AdditiveModel, Codes
from privmax.learning.additive.opening import plan_reading
from privmax.learning.additive.reading import (
    check_columns,
    check_schema,
    read_examples,
    read_labels,
    refuse_table,
    sort_chances,
    tag_classifier,
    unfit_record,
)
from privmax.learning.additive.rounds import GREEDY, ZCDP, AdditiveRounds
from privmax.learning.additive.words import tell_entries, tell_shapes
from privmax.learning.pipelines import warn_of_pipeline
from privmax.learning.schema import Schema
from privmax.ledger import Ledger
from privmax.ledger.events import ROW, Charge, label
from privmax.ledger.payment import Description
from privmax.ledger.request import Request
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, whole
from privmax.payload import Drawn
from privmax.privacy import ADD_REMOVE, Privacy
from privmax.release import Release, answer
from privmax.warnings import warn_of_fits

ROUNDS = 20
"""How many rounds there are by default."""


class PrivateGAM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
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
    release_: Release
    labels_: NDArray[Any]
    classes_: NDArray[Any]

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
        self.unit = unit
        self.ledger = ledger
        self.coins = coins

    def fit(self, X: Any, y: Any) -> PrivateGAM:
        """Fit the tables, at the cost of one release.

        Args:
            X: A frame with the columns of the schema; or an array with them in order; or an Ibis
                table, which stays in its engine.
            y: A label for each row; of an Ibis table the name of the column that has them.
        """
        warn_of_pipeline(self)
        schema, labels = check_schema(self.schema), read_labels(self.labels)
        rounds = self._rounds()
        if rounds.pairs and schema.features == 1:
            raise ParameterError(
                "interactions", self.interactions, "the schema has one column, and no pair",
                "Leave it out: pairs take 30 % of the budget.",
            )  # fmt: skip
        check_columns(schema, X)
        for name in ("model_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # a fit that fails leaves no model behind
        # `fit` must not change a parameter.
        coins = SYSTEM if self.coins is None else deepcopy(self.coins)
        layout = Layout.of(schema)
        unit = ROW if self.unit is None else self.unit
        question = AdditiveFit(rounds, layout, unit)
        read = plan_reading(X, y, schema, labels)
        if self.ledger is None:
            warn_of_fits(rounds.privacy(), "PrivateGAM")
        release = answer(
            question, read, self.ledger, description=self._describe(schema, labels), coins=coins
        )
        self._take(release, labels, schema, X)
        return self

    def check_rows(self, X: Any, y: Any) -> None:
        """Meet what `fit` refuses of rows in memory, without a fit: labels that were not declared.

        Raises:
            DataError: A label was not declared, or X is not what the schema takes.
        """
        read_examples(check_schema(self.schema), X, y, read_labels(self.labels))

    def privacy_cost(self) -> Charge:
        """Return what one `fit` costs, also in ρ where there is a delta. No data is needed.

        Examples:
            >>> PrivateGAM(epsilon=1, delta=1e-6).privacy_cost().privacy
            Privacy(epsilon=1, delta=1e-06)
        """
        return price_rounds(self._rounds(), ROW if self.unit is None else self.unit)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the chance of each label, for every row of X, in the order of `classes_`."""
        codes = self._codes(X)
        return sort_chances(self.model_.chances(codes), self.labels_)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the log-odds of the second of `classes_`, for every row of X."""
        odds = log_odds(self._scores(X))
        return odds if self.classes_[1] == self.labels_[1] else -odds

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likelier label of every row of X."""
        second = self._scores(X) > 0
        return self.labels_[second.astype(np.intp)]

    @property
    def shape_functions_(self) -> dict[str, list[dict[str, Any]]]:
        """What each column adds to the log-odds of the second label, cell by cell.

        The keys are names of columns, two of them joined by " × " where they count together. Each
        value is a list of small records: `pandas.DataFrame` makes a table of it, and
        `privmax.plots.shapes` draws all of them.

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

    def _rounds(self) -> AdditiveRounds:
        """Return what each release costs, if all parameters are as they must be."""
        if self.epsilon is None:
            raise ParameterError.required("epsilon", "", "Give epsilon (and delta).")
        rounds = AdditiveRounds(
            epsilon=self.epsilon,
            delta=self.delta,
            rounds=self.rounds,
            pairs=whole("interactions", self.interactions, least=0),
            order=self.order,
            neighbors=ADD_REMOVE if self.neighbors is None else self.neighbors,
            accounting=self.accounting,
        )
        rounds.check()
        return rounds

    def _describe(self, schema: Schema, labels: NDArray[Any]) -> Description | None:
        """Return what a ledger writes down of a fit."""
        if self.ledger is None:
            return None
        return Description("PrivateGAM", {"schema": repr(schema), "labels": labels.tolist()})

    def _take(self, release: Release, labels: NDArray[Any], schema: Schema, X: Any) -> None:
        if release.item is None:
            warnings.warn(
                "No answer: the fit failed after it was charged, so model_ has no tables and both "
                "labels are equally likely.",
                stacklevel=3,
            )
        self.model_ = AdditiveModel(0, {}) if release.item is None else release.item
        self.release_, self.schema_ = release, schema
        self.labels_, self.classes_ = labels, np.sort(labels)
        self.n_features_in_ = schema.features
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.array(schema.names, dtype=object)

    def _scores(self, X: Any) -> NDArray[np.int64]:
        codes = self._codes(X)
        return self.model_.scores(codes)

    def _codes(self, X: Any) -> Codes:
        check_is_fitted(self, "model_")
        refuse_table(X)
        return self.schema_.codes(X)

    def __sklearn_tags__(self) -> Any:
        return tag_classifier(super().__sklearn_tags__())


@dataclass(frozen=True)
class AdditiveFit:
    """Which tables fit: what runs are rounds, and a ledger keeps the model.

    It implements `Releasable`.

    Args:
        rounds: How the fit spends its budget. They were checked when they were made.
        layout: What is public of the features.
        unit: What the cost hides.
    """

    rounds: AdditiveRounds
    layout: Layout
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.unit is not None:
            label("unit", self.unit)

    def describe(self) -> str:
        """Return what runs."""
        return repr(self.rounds)

    def privacy(self) -> Privacy:
        """Return what the fit costs."""
        return self.rounds.privacy()

    def charge(self) -> Charge:
        """Return what to charge: also in ρ, which a ledger under the rule "zcdp" adds up."""
        return price_rounds(self.rounds, self.unit)

    def check(self) -> None:
        """There is nothing to refuse: rounds serve every schema."""

    def preflight(self, source: Rows) -> None:
        """Count labels once before the charge: an engine that fails does so now."""
        source.labels()

    def draw(self, source: Rows, coins: Coins) -> Drawn:
        """Return a model, fitted in rounds."""
        model = fit_rounds(source, self.layout, self.rounds, coins)
        return Drawn((model,))

    def draw_nothing(self) -> Drawn:
        """No model."""
        return Drawn()

    def write(self, payload: Drawn, source: Rows) -> dict[str, Any]:
        """Write what was drawn for a ledger."""
        return payload.to_json(AdditiveModel.to_json)

    def read(self, written: Mapping[str, Any]) -> Drawn:
        """Return what a ledger recorded."""
        return Drawn.from_json(written, self.read_model)

    def read_model(self, written: Any) -> AdditiveModel:
        """Read a model that a ledger keeps, if it is one of this schema."""
        largest = LIMIT * (self.rounds.rounds + self.rounds.pairs)
        try:
            model = AdditiveModel.from_json(written)
            if self.layout.holds(model, largest):
                return model
        except (AttributeError, KeyError, TypeError, ValueError):
            pass  # it is not even of that form
        raise unfit_record("model")

    def release(self, payload: Drawn) -> Release:
        """Return the release of a model."""
        why = "additive models are fitted in rounds"
        return Release(payload, self.privacy(), self.rounds, why, unit=self.unit)


def price_rounds(rounds: AdditiveRounds, unit: str | None) -> Charge:
    """Return what all rounds of a fit cost, also in ρ where there is a delta."""
    return Charge(rounds.privacy(), neighbors=rounds.neighbors, unit=unit, rho=rounds.rho)
