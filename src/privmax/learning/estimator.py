"""Private empirical risk minimization over a finite public class, as a scikit-learn classifier.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from copy import deepcopy
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from privmax.best_items import BestItems
from privmax.display import format_label
from privmax.errors import DataError, ParameterError
from privmax.learning.bounds import class_excess
from privmax.learning.classes.conjunctions import Conjunction, Disjunction
from privmax.learning.classes.contract import (
    Hypothesis,
    HypothesisClass,
    Shape,
    Tunable,
)
from privmax.learning.classes.grid import bind_bounds
from privmax.learning.classes.stumps import Constant, Stump, check_schema
from privmax.learning.classes.trees import Tree
from privmax.learning.descriptions import ADDRESS, describe_class
from privmax.learning.inputs import (
    FROM_Y,
    REWORDED,
    as_numbers,
    check_types,
    count_width,
    label_codes,
    labels_in,
    mixed_columns,
    number_type,
    read_declared_labels,
    text_names,
    validate_quietly,
)
from privmax.learning.labels import read_column
from privmax.learning.pipelines import warn_of_pipeline
from privmax.learning.rules import describe_rule, write_rule
from privmax.learning.schema import Schema
from privmax.learning.scoring import count_rows
from privmax.learning.source import HypothesisSource
from privmax.ledger import Ledger
from privmax.ledger.events import ROW
from privmax.ledger.payment import Description
from privmax.ledger.request import Request, is_strict
from privmax.mechanisms.contract import Mechanism
from privmax.noise.coins import SYSTEM, Coins
from privmax.noise.samplers import uniform_below
from privmax.numbers import Number, whole
from privmax.planning.theory import SUCCESS
from privmax.release import Release, answer
from privmax.sources.containers.pandas import is_column, refuse_rounded
from privmax.universe import Universe
from privmax.warnings import warn_of_fits

_DESCRIBED = (Constant, Stump, Tree, Conjunction, Disjunction)
"""Hypotheses that can be put in words."""

T = TypeVar("T")


class PrivateERM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A classifier that chooses the best hypothesis of a class under differential privacy.

    `fit` chooses the one that gets most examples right.

    ONE ROW IS ONE INDIVIDUAL. Every `fit` pays again: `cross_val_score` with 5 folds is five
    releases, and the scores it returns are not private at all, nor is `score` on private data.
    Without a ledger the second fit of a process gives a `PrivacyWarning`. With a strict ledger X
    must have a shape, and all labels must be declared.

    `fit` sets `hypothesis_`, the rule; `rule_`, the same in words; `release_`, with its cost,
    mechanism and why; `classes_`, the labels. All of it may be published. Where the mechanism
    releases nothing (`release_.item` is None; only in a huge class and with delta above 0)
    `hypothesis_` is drawn uniformly from the class, with a warning; beside a ledger the request
    decides which it is, so that a repeated request gives it again.

    Args:
        hypotheses: A public class: Stumps, Trees, Conjunctions, Disjunctions, LinearGrid, Explicit,
            or your own (three methods: `privmax help own-class`). Nothing in it may come from the
            data. With a schema (`Trees(schema=…)`: `privmax help schema`) X may be a frame with
            text, categories and missing values, or a sparse matrix.
        epsilon: What one `fit` costs; a float means the decimal that it prints as: 0.1 is one
            tenth.
        delta: Probability with which the guarantee may fail. With 0 (the default) there is always
            an answer. Above 0 margins are used in huge classes (from some 10^9 rules at epsilon 1,
            delta 1e-6): better where few rules are nearly the best, but nothing is released where
            millions are. If unsure leave it 0.
        labels: All labels there can be, public knowledge; of two, the second is the one that rules
            say yes to. "from y" takes those that occur: say so only if which labels occur is public
            knowledge too.
        mechanism: A mechanism object, instead of epsilon, delta and neighbors; or the name of one,
            such as "permute-and-flip", beside them; by default `auto` chooses one.
        neighbors: "add-remove" (the default): one example more or less; "replace": another example.
        floor: Public; hypotheses with at most this many correct examples are treated as equal. It
            bounds the work.
        unit: What the cost hides, for the ledger, which holds one unit: "row" by default. Say it
            where you know better: unit="user" if every row is a person.
        ledger: The privacy budget that covers every `fit`: charged before the draw, recorded
            before `fit` returns. Give `ledger.request("nightly", account=…, dataset=…)` to name the
            request, the account to charge as well or the data. A fit under an id that was charged
            before gives the recorded rule again, whatever its data, and costs nothing more; by
            default every fit is a request of its own. An id needs a class whose repr says what is
            in it, as all but lists of functions have.
        verbose: Whether to show on a terminal that hypotheses are being counted.
        coins: Source of random bits; for tests only.

    Examples:
        >>> import numpy as np
        >>> from privmax.learning import Stumps
        >>> X = np.arange(1000.0).reshape(-1, 1)
        >>> learner = PrivateERM(Stumps(low=0, high=1000, cells=2), epsilon=1, labels=[0, 1])
        >>> learner.fit(X, (X[:, 0] >= 500).astype(int)).hypothesis_
        <1 if x0 >= 500.0 else 0>
    """

    hypothesis_: Hypothesis
    release_: Release
    classes_: NDArray[Any]

    def __init__(
        self,
        hypotheses: HypothesisClass | None = None,
        epsilon: Number | None = None,
        delta: Number = 0,
        *,
        labels: Sequence[Hashable] | str | None = None,
        mechanism: Mechanism | str | None = None,
        neighbors: str | None = None,
        floor: int = 0,
        unit: str | None = None,
        ledger: Ledger | Request | None = None,
        verbose: bool = False,
        coins: Coins | None = None,
    ) -> None:
        self.hypotheses = hypotheses
        self.epsilon = epsilon
        self.delta = delta
        self.labels = labels
        self.mechanism = mechanism
        self.neighbors = neighbors
        self.floor = floor
        self.unit = unit
        self.ledger = ledger
        self.verbose = verbose
        self.coins = coins

    def fit(self, X: Any, y: Any) -> PrivateERM:
        """Choose a hypothesis, at the cost of one release."""
        warn_of_pipeline(self)
        if is_strict(self.ledger):
            schema = _schema_of(self.hypotheses)
            width = count_width(X) if schema is None else schema.features
            self._fit_read(width, lambda: (X, y), names=text_names(X))
            self._name_features(X)  # as with the width, whether or not X was read
            return self
        hypotheses, declared = self._check()
        hypotheses = bind_bounds(hypotheses, text_names(X))
        self.__dict__.pop(
            "hypothesis_", None
        )  # a fit that fails leaves no rule of another shape behind
        X, y = self._validate(X, y)
        labels = labels_in(y) if declared is None else declared
        self._fit(hypotheses, labels, Shape(X.shape[1], len(labels)), lambda: (X, y))
        return self

    def check_rows(self, X: Any, y: Any) -> None:
        """Meet what `fit` refuses of rows and labels, without a fit.

        It refuses numbers that are missing, and labels that were not declared.

        Raises:
            DataError: A label was not declared, or X is not what the class takes.
            ValueError: scikit-learn refuses X or y.

        Examples:
            >>> from privmax.learning import Stumps
            >>> PrivateERM(Stumps(low=0, high=1), labels=[0, 1]).check_rows([[0.5]], [7])
            Traceback (most recent call last):
            ...
            privmax.errors.DataError: A label in y is not among the declared labels. ...
        """
        _, y = clone(self)._validate(X, y)  # what it sets is not set here
        if not isinstance(self.labels, str):
            label_codes(y, read_declared_labels(self.labels))

    def fit_read(
        self, features: int, read: Callable[[], tuple[Any, Any]], place: str | None = None
    ) -> PrivateERM:
        """Fit to data that is read when the ledger was asked.

        With a strict ledger it is read when that was charged.

        Args:
            features: How many columns the data has.
            read: Gives X and y.
            place: Where the data is, for the ledger, which then holds repeated requests to it.
        """
        return self._fit_read(features, read, place)

    def _fit_read(
        self,
        features: int,
        read: Callable[[], tuple[Any, Any]],
        place: str | None = None,
        names: Sequence[str] = (),
    ) -> PrivateERM:
        hypotheses, labels = self._check_declared()
        hypotheses = bind_bounds(hypotheses, names)
        self.__dict__.pop("hypothesis_", None)

        def validate() -> tuple[NDArray[Any], NDArray[Any]]:
            X, y = self._validate(*read())
            if X.shape[1] != features:
                raise DataError("X does not have as many columns as features says.")
            return X, y

        self._fit(
            hypotheses, labels, Shape(whole("features", features), len(labels)), validate, place
        )
        self.n_features_in_ = features  # what was wrong with X, if anything was, is not told
        return self

    def _fit(
        self,
        hypotheses: HypothesisClass,
        labels: NDArray[Any],
        shape: Shape,
        read: Callable[[], tuple[NDArray[Any], NDArray[Any]]],
        place: str | None = None,
    ) -> None:
        # `fit` must not change a parameter.
        coins = SYSTEM if self.coins is None else deepcopy(self.coins)
        question, floor = self._question(hypotheses, shape), self._read_floor()

        def source(stack: ExitStack) -> HypothesisSource:
            X, y = read()
            scored = hypotheses.score(X, label_codes(y, labels), shape)
            return HypothesisSource(scored, hypotheses, shape, floor=floor)

        if self.ledger is None:
            warn_of_fits(question.privacy())
        with self._status(hypotheses.size(shape)):
            release = answer(
                question,
                source,
                self.ledger,
                description=self._describe(hypotheses, labels, shape, place),
                coins=coins,
            )
        self._take(release, hypotheses, labels, shape, coins)

    def excess_bound(self, n: int, *, features: int, success: Number = SUCCESS) -> float:
        """Bound by how much the error of a fitted rule exceeds the least of the class.

        It holds with probability `success` over n independent examples and the draw, whatever their
        distribution, and reads no data. 1: nothing is promised.

        Args:
            n: How many examples there will be.
            features: How many columns they will have.
            success: With what probability it holds.

        Raises:
            ParameterError: A parameter is not allowed, or no such theorem is known of the
                mechanism.

        Examples:
            >>> from privmax.learning import Stumps
            >>> learner = PrivateERM(Stumps(low=0, high=1), epsilon=1, labels=[0, 1])
            >>> round(learner.excess_bound(10_000, features=8), 3)
            0.045
        """
        hypotheses, labels = self._check_declared()
        shape = Shape(whole("features", features), len(labels))
        known = getattr(hypotheses, "dimension", None)
        return class_excess(
            n=n,
            hypotheses=hypotheses.size(shape),
            mechanism=self._question(hypotheses, shape).choice.mechanism,
            success=success,
            dimension=None if known is None else known(shape),
        )

    @property
    def rule_(self) -> str:
        """The rule in words, with the names of the columns where X was a frame.

        Rules of half-spaces, and of lists of predictors, are told as their `repr`.

        Examples:
            >>> import pandas as pd
            >>> from privmax.learning import Stumps
            >>> X = pd.DataFrame({"age": range(1000)})
            >>> learner = PrivateERM(Stumps(low=0, high=1000, cells=2), epsilon=1, labels=[0, 1])
            >>> learner.fit(X, X["age"] >= 500).rule_
            'y = 1 if age >= 500, else 0'
        """
        check_is_fitted(self, "hypothesis_")
        if not isinstance(self.hypothesis_, _DESCRIBED):
            return repr(self.hypothesis_)
        names = _unique_names(getattr(self, "feature_names_in_", None), self.n_features_in_)
        rule = write_rule(self.hypothesis_, names, self.classes_.tolist())
        return "; ".join(describe_rule(rule, "y"))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels that `hypothesis_` gives the rows of X."""
        check_is_fitted(self, "hypothesis_")
        schema = _schema_of(self.hypotheses)
        if schema is not None:
            return self.classes_[self.hypothesis_.predict(schema.codes(X).T)]
        check_types(X)
        X = as_numbers(
            validate_quietly(
                lambda: validate_data(self, X, reset=False, dtype=number_type(X)), mixed_columns(X)
            )
        )
        return self.classes_[self.hypothesis_.predict(X)]

    def _name_features(self, X: Any) -> None:
        """Note the names of the columns, which are public; none where X has none, or not text."""
        self.__dict__.pop("feature_names_in_", None)
        schema = _schema_of(self.hypotheses)
        names = text_names(X) if schema is None else list(schema.names)
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _check(self) -> tuple[HypothesisClass, NDArray[Any] | None]:
        """Return the class and the declared labels, if all parameters are as they must be.

        Labels are None where those of y are to be used.
        """
        hypotheses = _class(self.hypotheses)
        BestItems(**self._price(), universe=Universe(1))
        self._read_floor()
        from_y = isinstance(self.labels, str) and self.labels == FROM_Y
        return hypotheses, None if from_y else read_declared_labels(self.labels)

    def _check_declared(self) -> tuple[HypothesisClass, NDArray[Any]]:
        """Return the same where no y is there to take labels from."""
        hypotheses, labels = self._check()
        if labels is None:
            raise ParameterError(
                "labels", FROM_Y, "they must be declared before y is read", "For example [0, 1]."
            )
        return hypotheses, labels

    def _read_floor(self) -> int:
        return whole("floor", self.floor, least=0)

    def _price(self) -> dict[str, Any]:
        """Return what `BestItems` takes of the parameters."""
        is_made = self.mechanism is not None and not isinstance(self.mechanism, str)
        return {
            "epsilon": self.epsilon,
            "delta": None if is_made and not self.delta else self.delta,
            "given": self.mechanism,
            "neighbors": self.neighbors,
        }

    def _question(self, hypotheses: HypothesisClass, shape: Shape) -> BestItems:
        """Return the question for the best rule.

        A ledger keeps its number, and the class says which that is.
        """
        return BestItems(
            **self._price(),
            universe=Universe(hypotheses.size(shape)),
            unit=ROW if self.unit is None else self.unit,
            read_item=lambda number: hypotheses.hypothesis(number, shape),
        )

    def _take(
        self,
        release: Release,
        hypotheses: HypothesisClass,
        labels: NDArray[Any],
        shape: Shape,
        coins: Coins,
    ) -> None:
        if release.item is None:
            warnings.warn(
                "No answer: no hypothesis stood out enough, so hypothesis_ is drawn uniformly from "
                "the class. With delta 0 there is always an answer; more examples, a larger "
                "epsilon or a smaller class help, too.",
                stacklevel=4,
            )
            any_of = _any_of(hypotheses.size(shape), coins, release.request)
            self.hypothesis_ = hypotheses.hypothesis(any_of, shape)
        else:
            self.hypothesis_ = release.item
        self.release_, self.classes_ = release, labels

    def _validate(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        if isinstance(y, (list, tuple)) or is_column(y):
            # one float in a list must not make floats of all other labels
            y = read_column(refuse_rounded(y), "y")
        schema = _schema_of(self.hypotheses)
        if schema is not None:
            X, y = self._read_cells(X, y, schema)
        else:
            check_types(X)
            X, y = validate_quietly(
                lambda: validate_data(self, X, y, dtype=number_type(X)), mixed_columns(X)
            )
            X = as_numbers(X)
        if isinstance(self.labels, str):
            with warnings.catch_warnings():  # one tells of how many labels there are
                warnings.simplefilter("ignore")
                check_classification_targets(y)
        return X, y

    def _read_cells(self, X: Any, y: Any, schema: Schema) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the cells of X, row by row, and y.

        Nothing but types and shapes can be wrong with X.
        """
        cells = schema.codes(X).T
        y = validate_quietly(lambda: validate_data(self, X="no_validation", y=y), ())
        if not len(cells):
            raise DataError("X has no rows.")
        if len(cells) != count_rows(y):
            raise DataError(REWORDED["inconsistent"])
        self.n_features_in_ = schema.features
        self._name_features(X)
        return cells, y

    def _describe(
        self, hypotheses: HypothesisClass, labels: NDArray[Any], shape: Shape, place: str | None
    ) -> Description | None:
        """Return what a ledger writes down of a fit."""
        if self.ledger is None:
            return None
        description, request = describe_class(hypotheses), Request.of(self.ledger).id
        if request is not None and ADDRESS in description:
            raise ParameterError(
                "request", request, f"the ledger records the number of a rule, and the repr of "
                f"{type(hypotheses).__name__} does not say which rules it numbers",
                "Give the class a __repr__, or leave request out.",
            )  # fmt: skip
        options = {
            "hypotheses": type(hypotheses).__name__ if ADDRESS in description else description,
            "size": hypotheses.size(shape),
            "features": shape.features,
            "labels": labels.tolist(),
            "floor": self._read_floor(),
            "neighbors": self.neighbors,
        }
        return Description("PrivateERM", options, place=place)

    def _status(self, size: int) -> AbstractContextManager[object]:
        if not self.verbose:
            return nullcontext()
        from rich.console import Console

        return Console(stderr=True).status(
            f"Counting what each of {size:.3g} hypotheses gets right …"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.classifier_tags.multi_class = not getattr(self.hypotheses, "binary", False)
        if _schema_of(self.hypotheses) is not None:
            inputs = tags.input_tags
            inputs.sparse = inputs.string = inputs.categorical = inputs.allow_nan = True
        tags.classifier_tags.poor_score = (
            True  # a public class need not hold a good rule, and privacy adds noise
        )
        return tags


def describe_fit(learner: PrivateERM, features: int, place: str | None) -> Description | None:
    """Return what a ledger would write down of `fit_read`; None: the learner has no ledger."""
    hypotheses, labels = learner._check_declared()
    return learner._describe(hypotheses, labels, Shape(features, len(labels)), place)


def _unique_names(names: Sequence[str] | None, features: int) -> list[str]:
    """Return a name for each column, no two alike: as the frame has them, or x0, x1 and so on."""
    if names is None:
        return [f"x{place}" for place in range(features)]
    shown = [format_label(name) for name in names]
    twice = {name for name, number in Counter(shown).items() if number > 1}
    return [f"{name} (x{place})" if name in twice else name for place, name in enumerate(shown)]


def _class(hypotheses: object) -> HypothesisClass:
    if isinstance(hypotheses, type) or not all(
        hasattr(hypotheses, name) for name in ("size", "score", "hypothesis")
    ):
        raise ParameterError(
            "hypotheses", hypotheses, "it must be a hypothesis class, an object with size, score "
                                      "and hypothesis",
            "For example Stumps(low=0, high=100).",
        )  # fmt: skip
    return hypotheses  # type: ignore[return-value]  # it has the three methods


def _any_of(size: int, coins: Coins, request: str | None) -> int:
    """Return a number below `size` that reveals nothing of the data.

    The same one for the same request.
    """
    if request is None:
        return uniform_below(size, coins)
    return int.from_bytes(sha256(request.encode()).digest()) % size  # sizes end far below 2^256


def _schema_of(hypotheses: object) -> Schema | None:
    """Return the schema of a class, or of the one within it; None: it has none."""
    schema = getattr(hypotheses, "schema", None)
    if isinstance(hypotheses, Tunable):
        check_schema(hypotheses)
    return schema if isinstance(schema, Schema) else None
