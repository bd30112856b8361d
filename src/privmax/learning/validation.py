"""Validation by stability: the best of some settings of a learner whose training is stable.

Candidates need not be private. Each is trained on training rows and scored on validation rows, and
the caller declares how far one row can move a score. The best is drawn by a mechanism for scores of
that sensitivity. The model itself is then fitted once more, privately and with fresh randomness.

Proof:      docs/proofs/validation.md
Reference:  Chaudhuri & Vinterbo, NIPS 2013
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from fractions import Fraction
from typing import Any

from privmax.best_items import BestItems
from privmax.encoding import recordable
from privmax.errors import DataError, ParameterError
from privmax.grouping import IN_REQUEST, moved
from privmax.labels import label_by_value
from privmax.learning.labels import call_quietly
from privmax.learning.rows import copy_all
from privmax.ledger import Ledger
from privmax.ledger.events import ROW
from privmax.ledger.payment import Description
from privmax.ledger.request import Request
from privmax.mechanisms.contract import Mechanism
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, plain, positive, probability
from privmax.privacy import REPLACE, Privacy
from privmax.release import Release, answer_request
from privmax.sources.containers.pandas import refuse_rounded
from privmax.sources.memory import MemorySource
from privmax.sources.scale import GRID_STEPS
from privmax.universe import Universe


class Stability:
    """The most by which one row can move the score of any candidate, as the caller promises.

    Args:
        training: When one training row is exchanged for another: β₁/n of Chaudhuri and Vinterbo.
        validation: When one validation row is: β₂/m.
        failure: The chance, over the randomness of training, that some candidate moves more.

    Examples:
        >>> Stability(training=0.02, validation="1/500").most
        Fraction(1, 50)
    """

    def __init__(self, *, training: Number, validation: Number, failure: Number = 0) -> None:
        remedy = "For example 2 / (n · C) for the training rows, and 1 / m for the validation rows."
        self.training = positive("training", training, remedy)
        self.validation = positive("validation", validation, remedy)
        self.failure = probability("failure", failure)

    @property
    def most(self) -> Fraction:
        """The larger of the two: a row is a training row or a validation row, and never both."""
        return max(self.training, self.validation)

    def __repr__(self) -> str:
        shown = plain(self.training), plain(self.validation), plain(self.failure)
        return "Stability(training={}, validation={}, failure={})".format(*shown)


@moved(IN_REQUEST)
def validate(
    candidates: Mapping[Any, Any] | Sequence[Any],
    training: tuple[Any, Any],
    validation: tuple[Any, Any],
    *,
    score: Callable[[Any, Any, Any], Any],
    stability: Stability,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mechanism: Mechanism | str | None = None,
    ledger: Ledger | Request | None = None,
    coins: Coins = SYSTEM,
) -> Release:
    """Release which setting of a stable learner does best on validation rows.

    THE GUARANTEE RESTS ON `stability`, WHICH NO ONE CAN CHECK FOR YOU: it must be a theorem about
    the learner and the score, such as that of regularized logistic regression. Rows must be
    training rows or validation rows by a public rule, and their numbers are public: the relation is
    "replace". What is released is the name of the setting. A MODEL TRAINED HERE MUST NOT BE
    RELEASED: fit the winner again with a private learner and fresh randomness, which costs extra.

    Args:
        candidates: Learners that are not fitted, by name, or in a list: they are copied and fitted.
            A function is called with X and y of the training rows and returns the model.
        training: X and y of the training rows.
        validation: X and y of the validation rows.
        score: Called with a model and X and y of the validation rows; the higher, the better.
        stability: How far one row can move a score.
        epsilon: What the choice costs.
        delta: Of the mechanism; the chance that stability fails is charged on top.
        mechanism: A mechanism object or the name of one; by default one is chosen.
        ledger: The privacy budget that pays, as in `select_model`; a request says what the cost
            hides, "row" by default.
        coins: Source of random bits; for tests only.

    Returns:
        The name or position of the setting.

    Raises:
        ParameterError: An option is not allowed.
        DataError: A learner or the score failed.
        BudgetError: The ledger does not allow it.

    Examples:
        >>> stability = Stability(training=0.001, validation=0.001)
        >>> training, validation = ([[0.0], [1.0]], [0, 1]), ([[0.0], [1.0]], [0, 1])
        >>> fits = {"good": lambda X, y: 1.0, "bad": lambda X, y: 0.0}
        >>> options = {"score": lambda model, X, y: model, "stability": stability, "epsilon": 1}
        >>> validate(fits, training, validation, **options).item
        'good'
    """
    if not isinstance(stability, Stability):
        raise ParameterError(
            "stability", type(stability).__name__, "it must say how far one row moves a score",
            "For example Stability(training=0.01, validation=0.001).",
        )  # fmt: skip
    _check_rows(training, validation)
    names, learners = _read_candidates(candidates)
    request = Request.of(ledger)
    question = BestItems(
        epsilon=epsilon,
        delta=delta,
        given=mechanism,
        neighbors=None if mechanism is not None and not isinstance(mechanism, str) else REPLACE,
        universe=Universe(len(learners)),
        unit=ROW if request.unit is None else request.unit,
        rows=REPLACE,  # training may be random, so no cost of bounded range is claimed
        extra=Privacy(0, stability.failure),
    )
    if question.choice.mechanism.neighbors != REPLACE:
        raise ParameterError(
            "mechanism", mechanism, "scores move in any direction: it must be made for replace",
            'Make it with neighbors="replace".',
        )  # fmt: skip
    if request.ledger is not None and not recordable(names or ()):
        raise ParameterError(
            "candidates", "<names>", "a ledger cannot write down a name", "Use text or numbers."
        )

    def read(stack: ExitStack) -> MemorySource:
        for _, y in (training, validation):
            refuse_rounded(y)
        scores = [_train_and_score(one, training, validation, score) for one in learners]
        data: Any = scores if names is None else dict(zip(names, scores, strict=True))
        universe: Any = len(scores) if names is None else names
        return MemorySource(
            data,
            universe=universe,
            sensitivity=stability.most,
            resolution=stability.most / GRID_STEPS,
        )

    description = Description(
        "validate",
        {"candidates": len(learners), "stability": repr(stability)},
        labels=len(learners) if names is None else map(label_by_value, names),
    )
    return answer_request(question, read, request, description=description, coins=coins)


def _check_rows(training: Any, validation: Any) -> None:
    """Refuse what is not X and y, and the same rows twice.

    One row would then move scores by both amounts together.
    """
    for name, part in (("training", training), ("validation", validation)):
        if not isinstance(part, (tuple, list)) or len(part) != 2:
            raise ParameterError(
                name,
                type(part).__name__,
                "it must be X and y of some rows",
                f"Give {name}=(X, y).",
            )
    if training[0] is validation[0]:
        raise ParameterError(
            "validation", "<as training>", "a row is a training row or a validation row, and never "
            "both", "Divide the rows by a public rule.",
        )  # fmt: skip


def _read_candidates(candidates: Any) -> tuple[list[Any] | None, list[Any]]:
    """Read names, or None for positions, and learners."""
    names = list(candidates) if isinstance(candidates, Mapping) else None
    if names is None and not isinstance(candidates, (list, tuple)):
        raise ParameterError(
            "candidates", type(candidates).__name__, "it must be a mapping or a list of learners",
            "Put one learner into a list.",
        )  # fmt: skip
    learners = list(candidates.values() if names is not None else candidates)
    if not learners:
        raise ParameterError("candidates", "<none>", "there must be at least one", "Give some.")
    for one in learners:
        if isinstance(one, type) or not (callable(one) or hasattr(one, "fit")):
            raise ParameterError(
                "candidates", type(one).__name__, "it has no fit and is not a function of X and y",
                "Give learners.",
            )  # fmt: skip
    return names, learners


def _train_and_score(
    learner: Any,
    training: tuple[Any, Any],
    validation: tuple[Any, Any],
    score: Callable[[Any, Any, Any], Any],
) -> float:
    """Return the score of a candidate, which gets rows of its own.

    A float means the decimal that it prints as.
    """

    def train(X: Any, y: Any) -> Any:
        if not hasattr(learner, "fit"):
            return learner(X, y)
        from sklearn.base import clone

        return clone(learner).fit(X, y)

    message = "Rows cannot be copied"
    rows = call_quietly(lambda: [copy_all(part) for part in training], message)
    model = call_quietly(lambda: train(*rows), "A candidate could not be trained")
    rows = call_quietly(lambda: [copy_all(part) for part in validation], message)
    result = call_quietly(lambda: score(model, *rows), "The score failed")
    number = call_quietly(lambda: float(result), "The score is not a number")
    if not math.isfinite(number):
        raise DataError("The score of a candidate is not finite.")
    return float(number)
