"""The contract of hypothesis classes: three methods, and nothing that comes from the data.

A class of your own needs no base class. `score` may return `Counts(array)` with the number of
correct examples of every hypothesis; a class too large to list answers `Scores`'s four questions
from its structure instead (trees.py, conjunctions.py). docs/howto/own-class.md has an example.

Inside a class labels are codes 0 … labels − 1, the positions in the declared labels.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError
from privmax.profile import Level
from privmax.sources.columns import IntegerColumn

Codes = NDArray[np.intp]
"""Labels of examples, by code."""

_ENTRIES = 1 << 23
"""Entries of X worked on at a time: memory does not grow with the number of examples."""


@dataclass(frozen=True)
class Shape:
    """The public form of a learning problem.

    Args:
        features: How many columns the examples have.
        labels: How many labels there can be.

    Examples:
        >>> Shape(features=3, labels=2)
        Shape(features=3, labels=2)
    """

    features: int
    labels: int


class Hypothesis(Protocol):
    """One member of a class: a public rule. It can be pickled and its `repr` reads as a rule."""

    def predict(self, X: NDArray[Any]) -> Codes:
        """Return the code of the label of every row.

        What it says of a row depends on that row alone.
        """
        ...


class Scores(Protocol):
    """The numbers of examples that hypotheses get right, from the top down.

    All hypotheses count. It is private.
    """

    def maximum(self) -> int | None:
        """Return the most that any gets right; None where there is none."""
        ...

    def histogram(self, above: int) -> list[Level]:
        """Return (score, how many hypotheses) of every occupied score above `above`, highest first.

        `above` is 0 or more.
        """
        ...

    def at(self, score: int, index: int) -> int | None:
        """Return the number of the `index`-th hypothesis with exactly this score (above 0).

        The order is fixed.
        """
        ...

    def at_or_below(self, score: int, index: int) -> int | None:
        """Return the same among those with this score or less."""
        ...


class HypothesisClass(Protocol):
    """A finite public set of hypotheses, numbered from 0.

    One for two labels only may say so: `binary = True`. One whose VC dimension is known may have a
    method `dimension(shape)`.
    """

    def size(self, shape: Shape) -> int:
        """Return how many there are. An error if the class cannot be meant for such data."""
        ...

    def score(self, X: NDArray[Any], y: Codes, shape: Shape) -> Scores:
        """Count, for every hypothesis, the rows of X that it gives the label y says."""
        ...

    def hypothesis(self, number: int, shape: Shape) -> Hypothesis:
        """Return the one with this number."""
        ...


class Tunable:
    """Give scikit-learn the parameters of a parameter.

    With it a grid search over `PrivateERM` can name `hypotheses__cells`. Only `set_params` changes
    a class once it is made, and scikit-learn calls it on clones. A class of your own needs this
    only for such grids: a dataclass derives it, and others write the three methods.

    Examples:
        >>> from privmax.learning import Stumps
        >>> stumps = Stumps(low=0, high=10)
        >>> stumps.get_params()
        {'low': 0, 'high': 10, 'cells': 16, 'thresholds': None, 'schema': None}
        >>> stumps.set_params(cells=4)
        Stumps(low=0, high=10, cells=4, thresholds=None)
        >>> stumps.set_params(cell=4)
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: cell=4 is not allowed: Stumps has no such parameter. ...
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` is scikit-learn's, and makes no difference."""
        return {spec.name: getattr(self, spec.name) for spec in fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Change some parameters, which are checked as in a class that is made again.

        Raises:
            ParameterError: There is no such parameter, or it is not allowed; nothing is changed.
        """
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                kind = type(self).__name__
                remedy = f"It has {', '.join(known)}."
                raise ParameterError(name, value, f"{kind} has no such parameter", remedy)
        made = type(self)(**{**known, **params})
        vars(self).clear()
        vars(self).update(vars(made))
        return self

    def __sklearn_clone__(self) -> Self:
        return copy(self)

    def __repr__(self) -> str:
        arguments = (f"{name}={value!r}" for name, value in identifying_fields(self))
        return f"{type(self).__name__}({', '.join(arguments)})"


_LATER = ("schema",)
"""Parameters that classes did not have at first. Where they are None they are not told, so that a
ledger knows requests of before.
"""


def identifying_fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a dataclass by which it is told from others.

    Examples:
        >>> dict(identifying_fields(Shape(features=3, labels=2)))
        {'features': 3, 'labels': 2}
    """
    for spec in fields(value):
        setting = getattr(value, spec.name)
        if setting is not None or spec.name not in _LATER:
            yield spec.name, setting


class Counts(IntegerColumn):
    """`Scores` from an array of whole numbers, the correct examples by hypothesis.

    Args:
        counts: A NumPy array of whole numbers, one for each hypothesis.

    Raises:
        ParameterError: It is something else.

    Examples:
        >>> scores = Counts(np.array([12, 7, 12]))
        >>> scores.maximum(), scores.histogram(0), scores.at(12, 1)
        (12, [(12, 2), (7, 1)], 2)
        >>> scores
        Counts(<private>)
    """

    def __init__(self, counts: NDArray[Any]) -> None:
        if not isinstance(counts, np.ndarray) or counts.ndim != 1 or counts.dtype.kind not in "iu":
            raise ParameterError(
                "counts", type(counts).__name__, "it must be a NumPy array of whole numbers, one "
                                                 "for each hypothesis",
                "For example np.array([12, 7]).",
            )  # fmt: skip
        super().__init__(counts)

    def __repr__(self) -> str:
        return "Counts(<private>)"

    def at(self, score: int, index: int) -> int | None:
        """Return the number of the `index`-th hypothesis with exactly this score.

        None if there are fewer.
        """
        return self.find([(score, index)])[0]

    def at_or_below(self, score: int, index: int) -> int | None:
        """Return the same among those with this score or less."""
        return self.find_below(score, [index])[0]


def blocks(X: NDArray[Any], y: Codes) -> Iterator[tuple[NDArray[Any], Codes]]:
    """Yield the examples, some rows at a time.

    Examples:
        >>> [len(rows) for rows, labels in blocks(np.zeros((3, 2)), np.zeros(3, np.intp))]
        [3]
    """
    rows = max(1, _ENTRIES // max(1, X.shape[1]))
    for start in range(0, len(X), rows):
        yield X[start : start + rows], y[start : start + rows]


def check_two_labels(shape: Shape, kind: str) -> None:
    """Refuse more or fewer labels than a class of yes-or-no rules can tell apart.

    Such a class sets `binary = True`.

    Examples:
        >>> check_two_labels(Shape(features=1, labels=2), "Half-spaces")
    """
    if shape.labels != 2:
        raise ParameterError(
            "labels", f"{shape.labels} of them", f"Only binary classification is supported by "
            f"{kind}",
            "Give two labels, learn one against the rest, or use stumps or trees.",
        )  # fmt: skip
