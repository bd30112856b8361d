"""One private classifier that is right by default, as a scikit-learn classifier.

Proof:      docs/proofs/classifier.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from privmax.learning.additive.rounds import read_switch
from privmax.learning.classifier.model import NOTHING, ClassifierModel, tell_choice
from privmax.learning.classifier.question import ClassifierFit
from privmax.learning.classifier.terms import CalibratedTerms, ClassifierTerms
from privmax.learning.schema import Schema
from privmax.learning.schema_learner import LabelLearner
from privmax.ledger import Ledger
from privmax.ledger.request import Request
from privmax.noise.coins import Coins
from privmax.numbers import Number


class PrivateClassifier(LabelLearner):
    """A classifier of two labels that decides by itself which model to fit.

    It fits one label for all rows, one test of a column, a tree of depth 2, or an additive model,
    without pairs of columns or with them. Which of these follows from public facts (columns, cells,
    epsilon, delta) and from the number of rows: `n` where it is public, otherwise a noisy count,
    which takes 4 % of epsilon. One label for all is fitted only where `n` is given.

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
        calibration: Whether an additive model has its labels counted once more, by the chance that
            it gives them, with noise, for a model card. It takes 2 % of the budget of the model.
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

    _title = "PrivateClassifier"
    _nothing = NOTHING
    _no_answer = "model_ has no rule and both labels are equally likely"

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        labels: Sequence[Any] | None = None,
        n: int | None = None,
        neighbors: str | None = None,
        calibration: bool = False,
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
        self.calibration = calibration
        self.unit = unit
        self.ledger = ledger
        self.coins = coins

    @property
    def choice_(self) -> str:
        """The model that was fitted, and why, in words.

        Examples:
            >>> from privmax.learning import Number, Schema
            >>> schema = Schema(x=Number(0, 10, cells=2))
            >>> learner = PrivateClassifier(schema, epsilon="1/4", labels=[0, 1], n=4)
            >>> learner.fit([[1], [2], [8], [9]], [0, 0, 1, 1]).choice_
            'one label for all: 4 rows × epsilon 0.25 is 1, for 1 column with 1 test'
        """
        check_is_fitted(self, "model_")
        if self.release_.item is None:
            return "no model: the fit failed after it was charged"
        terms: Any = self.release_.mechanism
        return tell_choice(self.model_, self.schema_, terms)

    @property
    def rules_(self) -> list[str]:
        """The model in words, line by line."""
        check_is_fitted(self, "model_")
        return self.model_.tell(self.schema_, self.labels_.tolist())

    def _make_terms(self, epsilon: Number, neighbors: str) -> ClassifierTerms:
        kind = CalibratedTerms if read_switch("calibration", self.calibration) else ClassifierTerms
        return kind(epsilon=epsilon, delta=self.delta, n=self.n, neighbors=neighbors)

    def _question(self, schema: Schema, unit: str) -> ClassifierFit:
        return ClassifierFit(self._terms(), schema, unit)
