"""One private classifier that is right by default, as a scikit-learn classifier.

Proof:      docs/proofs/classifier.md
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privmax.errors import ParameterError
from privmax.learning.additive.opening import plan_reading
from privmax.learning.additive.reading import (
    check_columns,
    check_schema,
    read_examples,
    read_labels,
    refuse_table,
    sort_chances,
    tag_classifier,
)
from privmax.learning.classifier.choice import Facts, explain
from privmax.learning.classifier.model import NOTHING, ClassifierModel
from privmax.learning.classifier.question import ClassifierFit, price_terms
from privmax.learning.classifier.terms import ClassifierTerms
from privmax.learning.columns import is_frame
from privmax.learning.pipelines import warn_of_pipeline
from privmax.learning.schema import Schema
from privmax.ledger import Ledger
from privmax.ledger.events import ROW, Charge
from privmax.ledger.payment import Description
from privmax.ledger.request import Request
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number
from privmax.privacy import ADD_REMOVE
from privmax.release import Release, answer
from privmax.warnings import warn_of_fits


class PrivateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A classifier of two labels that decides by itself which model to fit.

    It fits one label for all rows, one test of a column, a tree of depth 2, or an additive model,
    without pairs of columns or with them. Which of these follows from public facts (columns, cells,
    epsilon, delta) and from the number of rows: `n` where it is public, otherwise a noisy count,
    which takes 4 % of epsilon.

    ONE ROW IS ONE INDIVIDUAL. Every `fit` pays again: `cross_val_score` with 5 folds is five
    releases, and the scores it returns are not private at all, nor is `score` on private data.

    `fit` sets `model_`; `choice_`, which model it is and why, in words; `rules_`, the model in
    words; `release_`, with its cost; `labels_`, the labels as they were declared; `classes_`, the
    same sorted, as scikit-learn has them. All of it may be published.

    Args:
        schema: Which columns there are, and into which cells their values fall. It is public:
            nothing in it may come from the data.
        epsilon: What one `fit` costs; a float means the decimal that it prints as: 0.1 is one
            tenth.
        delta: Probability with which the guarantee may fail, such as 1e-6. With 0 it cannot fail,
            and additive models need more rows.
        labels: The two labels, public knowledge.
        n: The number of rows, where it is public; it may be rounded. Never read it from the data:
            by default a noisy count takes its place.
        neighbors: "add-remove" (the default): one example more or less; "replace": another example.
        unit: What the cost hides, for the ledger: "row" by default. Say it where you know better:
            unit="user" if every row is a person.
        ledger: The privacy budget that covers every `fit`: charged before the first draw, recorded
            before `fit` returns. Give `ledger.request("nightly", account=…, dataset=…)` to name the
            request, the account to charge as well or the data. A fit under an id that was charged
            before gives the recorded model again, whatever its data, and costs nothing more.
        coins: Source of random bits; for tests only.

    Examples:
        >>> import numpy as np
        >>> from privmax.learning import Number, PrivateClassifier, Schema
        >>> X = np.arange(10_000.0).reshape(-1, 1)
        >>> schema = Schema(x=Number(0, 10_000, cells=2))
        >>> learner = PrivateClassifier(schema, epsilon=1, delta=1e-6, labels=[0, 1])
        >>> learner.fit(X, X[:, 0] >= 5_000).predict([[10], [9_000]])
        array([0, 1])
        >>> learner.release_.privacy
        Privacy(epsilon=1, delta=1e-06)
    """

    model_: ClassifierModel
    release_: Release
    labels_: NDArray[Any]
    classes_: NDArray[Any]

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        labels: Sequence[Any] | None = None,
        n: int | None = None,
        neighbors: str | None = None,
        unit: str | None = None,
        ledger: Ledger | Request | None = None,
        coins: Coins | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.labels = labels
        self.n = n
        self.neighbors = neighbors
        self.unit = unit
        self.ledger = ledger
        self.coins = coins

    def fit(self, X: Any, y: Any) -> PrivateClassifier:
        """Decide which model to fit, and fit it, at the cost of one release.

        Args:
            X: A frame with the columns of the schema; or an array with them in order; or an Ibis
                table, which stays in its engine.
            y: A label for each row; of an Ibis table the name of the column that has them.
        """
        warn_of_pipeline(self)
        schema, labels = check_schema(self.schema), read_labels(self.labels)
        terms = self._terms()
        check_columns(schema, X)
        for name in ("model_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # a fit that fails leaves no model behind
        # `fit` must not change a parameter.
        coins = SYSTEM if self.coins is None else deepcopy(self.coins)
        question = ClassifierFit(terms, schema, ROW if self.unit is None else self.unit)
        read = plan_reading(X, y, schema, labels)
        if self.ledger is None:
            warn_of_fits(terms.privacy(), "PrivateClassifier")
        options = {"schema": repr(schema), "labels": labels.tolist()}
        described = None if self.ledger is None else Description("PrivateClassifier", options)
        release = answer(question, read, self.ledger, description=described, coins=coins)
        if release.item is None:
            warnings.warn(
                "No answer: the fit failed after it was charged, so model_ has no rule and both "
                "labels are equally likely.",
                stacklevel=2,
            )
        self.model_ = NOTHING if release.item is None else release.item
        self.release_, self.schema_ = release, schema
        self.labels_, self.classes_ = labels, np.sort(labels)
        self.n_features_in_ = schema.features
        if is_frame(X):
            self.feature_names_in_ = np.array(schema.names, dtype=object)
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
            >>> PrivateClassifier(epsilon=1, delta=1e-6).privacy_cost().privacy
            Privacy(epsilon=1, delta=1e-06)
        """
        return price_terms(self._terms(), ROW if self.unit is None else self.unit)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the chance of each label, for every row of X, in the order of `classes_`."""
        return sort_chances(self._chances(X), self.labels_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likelier label of every row of X."""
        second = self._chances(X) > 0.5
        return self.labels_[second.astype(np.intp)]

    @property
    def choice_(self) -> str:
        """Which model was fitted, and why, in words.

        Examples:
            >>> from privmax.learning import Number, Schema
            >>> schema = Schema(x=Number(0, 10, cells=2))
            >>> learner = PrivateClassifier(schema, epsilon=1, labels=[0, 1], n=4)
            >>> learner.fit([[1], [2], [8], [9]], [0, 0, 1, 1]).choice_
            'one label for all: 4 rows × epsilon 1 is 4, for 1 column with 1 test'
        """
        check_is_fitted(self, "model_")
        if self.release_.item is None:
            return "no model: the fit failed after it was charged"
        terms: Any = self.release_.mechanism
        rows = self.model_.rows if terms.n is None else terms.n
        assert rows is not None, "it is public or was counted"
        why = explain(Facts.of(self.schema_), rows, terms.epsilon)
        return f"{self.model_.member}: {'about ' if terms.n is None else ''}{why}"

    @property
    def rules_(self) -> list[str]:
        """The model in words, line by line."""
        check_is_fitted(self, "model_")
        return self.model_.tell(self.schema_, self.labels_.tolist())

    def _terms(self) -> ClassifierTerms:
        """Return how a fit spends its budget, if all parameters are as they must be."""
        if self.epsilon is None:
            raise ParameterError.required("epsilon", "", "Give epsilon (and delta).")
        neighbors = ADD_REMOVE if self.neighbors is None else self.neighbors
        terms = ClassifierTerms(
            epsilon=self.epsilon, delta=self.delta, n=self.n, neighbors=neighbors
        )
        terms.check()
        return terms

    def _chances(self, X: Any) -> NDArray[np.float64]:
        """Of the second declared label."""
        check_is_fitted(self, "model_")
        refuse_table(X)
        return self.model_.chances(self.schema_.codes(X))

    def __sklearn_tags__(self) -> Any:
        return tag_classifier(super().__sklearn_tags__())
