"""The base of learners with a schema: checks parameters, reads rows and charges fits."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from copy import deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privmax.errors import ParameterError
from privmax.learning.additive.model import Codes
from privmax.learning.columns import is_frame
from privmax.learning.model_fit import ModelFit, charge_fit
from privmax.learning.pipelines import warn_of_pipeline
from privmax.learning.reading import (
    check_columns,
    check_schema,
    plan_reading,
    read_examples,
    read_labels,
    refuse_table,
)
from privmax.learning.schema import Schema
from privmax.ledger import Ledger
from privmax.ledger.events import ROW, Charge, label
from privmax.ledger.payment import Description
from privmax.ledger.request import Request
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number
from privmax.privacy import ADD_REMOVE
from privmax.release import Release, answer
from privmax.warnings import warn_of_fits


class SchemaLearner(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A learner with a public schema, whose model is fitted at the cost of one release.

    A learner names its parameters in `__init__`, as scikit-learn needs, and says what its fit costs
    (`_make_terms`), which question it asks (`_question`), and what it reads of y (`_read_targets`).
    """

    schema: Schema | None
    epsilon: Number | None
    neighbors: str | None
    unit: str | None
    ledger: Ledger | Request | None
    coins: Coins | None

    release_: Release
    schema_: Schema

    _title: ClassVar[str]
    """Its name, for ledgers and warnings."""

    _declared: ClassVar[str]
    """The parameter that says what y holds."""

    _fitted: ClassVar[str] = "model_"
    """The attribute in which `fit` keeps the model."""

    _nothing: ClassVar[Any]
    """The model in the place of one, where there was no answer."""

    _no_answer: ClassVar[str]
    """The state of the model then, in words."""

    @abstractmethod
    def _make_terms(self, epsilon: Number, neighbors: str) -> Any:
        """Return how a fit spends its budget."""

    @abstractmethod
    def _question(self, schema: Schema, unit: str) -> ModelFit[Any, Any]:
        """Return what a fit asks, if all parameters are as they must be."""

    @abstractmethod
    def _read_targets(self) -> NDArray[Any]:
        """Return what is declared of y: labels, or bounds."""

    @abstractmethod
    def _keep_targets(self, targets: NDArray[Any]) -> None:
        """Set the attributes that say what was declared, once there is a model."""

    @abstractmethod
    def _plan_reading(
        self, X: Any, y: Any, schema: Schema, targets: NDArray[Any]
    ) -> Callable[[ExitStack], Any]:
        """Return what reads the rows, which is called when the ledger was asked."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model, at the cost of one release.

        Args:
            X: A frame with the columns of the schema; or an array with them in order; or an Ibis
                table, which stays in its engine.
            y: A value for each row; of an Ibis table the name of the column that has them.
        """
        warn_of_pipeline(self)
        schema, targets = check_schema(self.schema), self._read_targets()
        question = self._question(schema, ROW if self.unit is None else label("unit", self.unit))
        check_columns(schema, X)
        read = self._plan_reading(X, y, schema, targets)
        for name in (self._fitted, "feature_names_in_"):
            self.__dict__.pop(name, None)  # a fit that fails leaves no model behind
        # `fit` must not change a parameter.
        coins = SYSTEM if self.coins is None else deepcopy(self.coins)
        description = None
        if self.ledger is None:
            warn_of_fits(question.privacy(), self._title)
        else:
            options = {"schema": repr(schema), self._declared: targets.tolist()}
            description = Description(self._title, options)
        release = answer(question, read, self.ledger, description=description, coins=coins)
        if release.item is None:
            warnings.warn(
                f"No answer: the fit failed after it was charged, so {self._no_answer}.",
                stacklevel=2,
            )
        setattr(self, self._fitted, self._nothing if release.item is None else release.item)
        self.release_, self.schema_ = release, schema
        self._keep_targets(targets)
        self.n_features_in_ = schema.features
        if is_frame(X):
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        return self

    def privacy_cost(self) -> Charge:
        """Return what one `fit` costs, also in ρ where there is a delta. No data is needed.

        Examples:
            >>> from privmax.learning import PrivateGAM
            >>> PrivateGAM(epsilon=1, delta=1e-6).privacy_cost().privacy
            Privacy(epsilon=1, delta=1e-06)
        """
        return charge_fit(self._terms(), ROW if self.unit is None else self.unit)

    def _terms(self) -> Any:
        """Return how a fit spends its budget, if all parameters are as they must be."""
        if self.epsilon is None:
            more = " (and delta)" if hasattr(self, "delta") else ""
            raise ParameterError.required("epsilon", "", f"Give epsilon{more}.")
        neighbors = ADD_REMOVE if self.neighbors is None else self.neighbors
        terms = self._make_terms(self.epsilon, neighbors)
        terms.check()
        return terms

    def _codes(self, X: Any) -> Codes:
        """Return the cells of rows that the model is to say something of."""
        check_is_fitted(self, self._fitted)
        refuse_table(X)
        return self.schema_.codes(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True  # a schema has a cell for every value
        tags.input_tags.sparse = True
        return tags


class LabelLearner(ClassifierMixin, SchemaLearner):  # type: ignore[misc]  # no types, as above
    """A learner of two declared labels, whose model gives the chance of the second."""

    labels: Sequence[Any] | None

    labels_: NDArray[Any]
    classes_: NDArray[Any]

    _declared = "labels"

    def check_rows(self, X: Any, y: Any) -> None:
        """Meet what `fit` refuses of rows in memory, without a fit: labels that were not declared.

        Raises:
            DataError: A label was not declared, or X is not what the schema takes.
        """
        read_examples(check_schema(self.schema), X, y, self._read_targets())

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the chance of each label, for every row of X, in the order of `classes_`."""
        second = self._chances(X)
        columns = np.column_stack([1 - second, second])
        return columns if self.labels_[0] < self.labels_[1] else columns[:, ::-1]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likelier label of every row of X."""
        second = self._chances(X) > 0.5
        return self.labels_[second.astype(np.intp)]

    def _read_targets(self) -> NDArray[Any]:
        return read_labels(self.labels)

    def _keep_targets(self, targets: NDArray[Any]) -> None:
        self.labels_, self.classes_ = targets, np.sort(targets)

    def _plan_reading(
        self, X: Any, y: Any, schema: Schema, targets: NDArray[Any]
    ) -> Callable[[ExitStack], Any]:
        return plan_reading(X, y, schema, targets)

    def _chances(self, X: Any) -> NDArray[np.float64]:
        """Return the chance of the second declared label, of each row."""
        codes = self._codes(X)
        chances: NDArray[np.float64] = getattr(self, self._fitted).chances(codes)
        return chances

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # a public grid need not fit, and privacy adds noise
        return tags
