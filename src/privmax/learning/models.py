"""The best of many models on private data.

Predictions are made, scored, added up and thrown away, block by block.

Proof:      docs/proofs/models.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privmax.best_items import BestItems
from privmax.display import on_terminal
from privmax.encoding import recordable
from privmax.errors import DataError, ParameterError, refuse_given
from privmax.grouping import IN_REQUEST, combine, moved
from privmax.labels import label_by_value
from privmax.learning.columns import column_kind
from privmax.learning.labels import call_quietly, read_column, refuse_masked
from privmax.learning.rows import copy_all
from privmax.learning.scoring import (
    Accuracy,
    Bounds,
    Score,
    ScoringRule,
    count_rows,
    find_score,
    make_rule,
)
from privmax.ledger import Ledger
from privmax.ledger.events import ROW
from privmax.ledger.payment import Description
from privmax.ledger.request import Request
from privmax.mechanisms.contract import Mechanism
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number
from privmax.release import Release, answer_request, is_ranked
from privmax.sources.containers.pandas import refuse_rounded
from privmax.sources.memory import MemorySource
from privmax.sources.scale import Scores
from privmax.sources.table import slice_rows
from privmax.universe import Universe

_ENTRIES = 1 << 23
"""Entries of X a model is given at a time, if X is a dense table ..."""
_ROWS = 1 << 13
"""... and rows, of anything else and of predictions."""
_BYTES = 1 << 24
"""Bytes of a matrix of predictions that are processed together."""


@moved({"scores=privmax.Scores({}=…)": ("resolution", "neighbors"), **IN_REQUEST})
def select_model(
    models: Any,
    X: Any,
    y: Any,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mechanism: Mechanism | str | None = None,
    k: int = 1,
    ranked: bool = False,
    score: Score = "accuracy",
    scoring: str | None = None,
    bounds: Bounds = None,
    scores: Scores | None = None,
    method: str = "predict",
    progress: bool = False,
    ledger: Ledger | Request | None = None,
    coins: Coins = SYSTEM,
) -> Release:
    """Release which of the models does best on private examples, or which k of them.

    THE MODELS MUST BE PUBLIC, OR MADE FROM OTHER DATA: a model that was fitted to these examples is
    not covered by the guarantee. WHAT A MODEL SAYS OF A ROW, AND WHAT THE SCORE SAYS OF THAT, MUST
    DEPEND ON THAT ROW ALONE: not on the rows it happens to come with, by a mean over the batch, by
    random numbers, or by a sum whose last bit changes with the size of the batch and decides a tie.

    Released are names of a mapping or of columns, otherwise positions. All models are candidates,
    so there is always an answer with the mechanisms `auto` chooses. `max_estimate`, where a
    mechanism gives it, is of the best total of score − low.

    Args:
        models: A list of fitted models, or of functions of rows; any other sequence, of which `len`
            and `[i]` are used and one model is held at a time; a mapping from names to models. Or,
            with X=None, the predictions themselves: a matrix with a row for each example and a
            column for each model (an array, a memmap, a list of lists, a frame whose columns are
            named).
        X: The examples: an array, a memmap, a sparse matrix in CSR form, a frame, a list, anything
            with rows to slice and copy. Each model is given copies of some rows at a time, as what
            X is.
        y: Their labels, as many.
        epsilon: What it costs; a float means the decimal that it prints as: 0.1 is one tenth.
        delta: Probability with which the guarantee may fail; may be 0.
        mechanism: A mechanism object, instead of epsilon, delta and the neighbors of `scores`; or
            the name of one, such as "permute-and-flip", beside them; by default `auto` chooses one.
        k: How many models to release; the cost covers all of them. They come as a set, sorted by
            name, unless a list needs no clearer lead: `release.ranked` tells.
        ranked: Release their order in any case, best first; `release.why` says what lead that
            needs, and what lead a set.
        score: "accuracy": 1 where the prediction equals the label, as Python's == says. Or a
            function (y, predictions) of some rows, which gives one number for each, the higher the
            better.
        scoring: Instead of `score`, a name of scikit-learn for a mean over rows: "accuracy", or
            "neg_mean_absolute_error" or "neg_mean_squared_error", which need bounds=(−high, 0). All
            others are refused, with the reason: one row could change them by any amount.
        bounds: (low, high) of such a function; required. Numbers outside are clipped. Public: an
            example adds at most high − low to a model's total, and the lead a model needs grows
            with it.
        scores: `Scores(resolution=…)`: grid on which such numbers are rounded down before they are
            added (default: (high − low) / 64). `Scores(neighbors=…)`: "add-remove" (the default):
            one example more or less, which raises or lowers the totals of all models, by at most 1
            or high − low. "replace": another example, which moves totals either way.
        method: What to call of models; all must have it, except that functions of rows may be among
            those that have a `predict`.
        progress: Show a bar on standard error, if that is a terminal. It counts models, and X is
            gone through again for every hundredth of them.
        ledger: The privacy budget that pays: the cost is charged before the draw, and the answer
            is recorded before it is returned. What does not fit is refused (BudgetError) before a
            model is asked. To name the request, the account to charge as well or the data, give
            `ledger.request("nightly", account=…, dataset=…)`: a repeated request returns the
            recorded answer, asks no model and costs nothing more. A request also says what the cost
            hides: `unit="user"` if every row is a person, by default "row".
        coins: Source of random bits; for tests only.

    Returns:
        The names or positions of the models.

    Raises:
        ParameterError: An option is not allowed, or does not fit another.
        DataError: A model or the score cannot be used on the examples.
        BudgetError: The ledger does not allow it.

    Examples:
        >>> import numpy as np
        >>> X = np.arange(1000.0).reshape(-1, 1)
        >>> models = {"low": lambda rows: rows[:, 0] < 100, "high": lambda rows: rows[:, 0] >= 500}
        >>> select_model(models, X, X[:, 0] >= 500, epsilon=1).item
        'high'
    """
    request, moves = Request.of(ledger), combine("scores", Scores, scores)
    set_by_bounds = {"sensitivity": moves.sensitivity, "growth": moves.growth}
    refuse_given(set_by_bounds, "bounds say how far one example moves a total")
    score, known = find_score(scoring, score, bounds)
    rule = make_rule(score, bounds, moves.resolution)
    entrants = list_entrants(models, X, method)
    question = BestItems(
        epsilon=epsilon,
        delta=delta,
        given=mechanism,
        neighbors=moves.neighbors,
        k=k,
        ranked=ranked,
        universe=Universe(len(entrants)),
        unit=ROW if request.unit is None else request.unit,
    )
    longest = max(k, getattr(mechanism, "k", 1))
    if longest > len(entrants):
        raise ParameterError(
            "k", longest, "it must not exceed the number of models", "Ask for fewer."
        )
    if request.ledger is not None and not recordable(entrants.names or ()):
        raise ParameterError(
            "models", "<names>", "a ledger cannot write down a name", "Use text or numbers."
        )
    if isinstance(rule, Accuracy) and method == "predict":
        check_classes(entrants, y)
    low, high = (None, None) if bounds is None else bounds
    description = Description(
        "select_model",
        {
            "models": len(entrants),
            "score": known or (score if isinstance(score, str) else "a function"),
            "k": k,
            "ranked": None if longest == 1 or is_ranked(question.choice.mechanism) else False,
            "neighbors": moves.neighbors,
            "method": method,
        },
        {"low": low, "high": high, "resolution": moves.resolution},
        labels=len(entrants) if entrants.names is None else map(label_by_value, entrants.names),
    )

    def read(stack: ExitStack) -> ModelSource:
        return score_models(entrants, y, rule, progress=progress)

    return answer_request(question, read, request, description=description, coins=coins)


class Entrants(Protocol):
    """Models and what they are tried on.

    Attributes:
        names: Public, by position; None: the positions themselves.
        block: How many rows to ask about at a time.
        together: How many models to go through for every block of rows.
    """

    names: Sequence[Any] | None
    rows: int
    block: int
    together: int

    def __len__(self) -> int: ...

    def says(self, number: int, start: int, stop: int) -> Any:
        """Return what a model says of these rows."""
        ...


class ModelSource(MemorySource):
    """Models and their totals, in steps of the score. It is private."""

    def __init__(
        self, totals: NDArray[np.int64], names: Sequence[Any] | None, scoring: ScoringRule
    ) -> None:
        super().__init__(totals, universe=len(totals), sensitivity=scoring.steps)
        self.step, self._labels = scoring.step, names  # names are public, and released as they are

    def __repr__(self) -> str:
        return "ModelSource(<private>)"


def score_models(
    entrants: Entrants, y: Any, scoring: ScoringRule, *, progress: bool = False
) -> ModelSource:
    """Try every model on every row.

    Whatever a row adds to a total is a whole number from 0 to `scoring.steps`.
    """
    refuse_rounded(y)
    labels = _labels(y) if isinstance(scoring, Accuracy) else y
    if count_rows(labels) != entrants.rows:
        raise DataError("There are not as many labels as examples.")
    totals = np.zeros(len(entrants), np.int64)
    together = entrants.together
    if progress and isinstance(entrants, Predictors):
        together = -(-together // 100)  # all together would be finished at once
    groups = [
        range(first, min(first + together, len(totals)))
        for first in range(0, len(totals), together)
    ]
    with _bar(progress, len(totals)) as advance:
        for group in groups:
            for start in range(0, entrants.rows, entrants.block):
                stop = min(start + entrants.block, entrants.rows)
                some = slice_rows(labels, start, stop)
                for number in group:
                    said, who = entrants.says(number, start, stop), _who(entrants, number)
                    totals[number] += scoring.total(some, said, who)
            advance(len(group))
    return ModelSource(totals, entrants.names, scoring)


def check_classes(entrants: Entrants, y: Any) -> None:
    """Refuse models whose labels are text where others have numbers, or the reverse.

    Labels are known by `classes_`, or by the type of y. Such a model is never right. Models and
    types are public, so this is found before any label is read or anything is charged.

    Raises:
        ParameterError: Labels of two kinds meet.

    Examples:
        >>> check_classes(list_entrants(np.array([[1, 0], [1, 1]]), None, "predict"), [0, 1])
    """
    if not isinstance(entrants, Predictors):
        return
    words = {"numbers": "numbers", "text": "text"}
    first, whose = words.get(column_kind(y), ""), "y"
    for number in range(len(entrants)):
        classes = entrants.classes(number)
        kind = "" if classes is None else words.get(_class_kind(classes), "")
        if kind and first and kind != first:
            raise ParameterError(
                "models", _who(entrants, number), f"its classes_ are {kind} and the labels of "
                f"{whose} are {first}, so one of them would never be right",
                "Fit all models to labels as they are in y.",
            )  # fmt: skip
        if kind and not first:
            first, whose = kind, _who(entrants, number)


def _class_kind(classes: Any) -> str:
    """Return what `classes_` holds; of a list of objects, what all of them are."""
    try:
        kinds = {column_kind(np.asarray([one])) for one in classes}
    except Exception:  # somebody's own attribute of this name
        return ""
    return kinds.pop() if len(kinds) == 1 else ""


class Predictors:
    """Models, asked one block of rows after another.

    A model of a lazy sequence is loaded once, and held alone. Each is given a copy of the block:
    what it writes there is seen by no other.
    """

    def __init__(self, models: Any, names: Sequence[Any] | None, X: Any, method: str) -> None:
        self.names, self.rows, self.block = names, count_rows(X), _block(X)
        self._models, self._X, self._method = models, X, method
        self.together = len(self) if isinstance(models, (list, tuple, dict)) else 1
        self._loaded: tuple[int, Callable[[Any], Any]] | None = None
        self._part: tuple[int, Any] | None = None

    def __len__(self) -> int:
        return len(self._models)

    def says(self, number: int, start: int, stop: int) -> Any:
        if self._part is None or self._part[0] != start:
            message = "Rows of X cannot be sliced"
            self._part = start, call_quietly(lambda: slice_rows(self._X, start, stop), message)
        if self._loaded is None or self._loaded[0] != number:
            self._loaded = None  # let go of one before the next is loaded
            self._loaded = number, self._find_call(number)
        predict, part = self._loaded[1], self._part[1]
        rows = call_quietly(lambda: copy_all(part), "Rows of X cannot be copied")
        return call_quietly(lambda: predict(rows), f"{_who(self, number)} failed")

    def classes(self, number: int) -> Any:
        """Return the labels that a model says it knows, which are public.

        None where it does not say, or would have to be loaded.
        """
        if not isinstance(self._models, (list, tuple, dict)):
            return None
        model = self._models[number if self.names is None else self.names[number]]
        return getattr(model, "classes_", None)

    def _find_call(self, number: int) -> Callable[[Any], Any]:
        """Return what to call of a model.

        Loading one sees no data, so errors of that are passed on.
        """
        model = self._models[number if self.names is None else self.names[number]]
        predict = getattr(model, self._method, None)
        if callable(predict) and not isinstance(model, type):
            return predict  # type: ignore[no-any-return]
        if self._method != "predict":
            raise ParameterError(
                "method", self._method, f"{_who(self, number)} has no such method to call",
                "Give fitted models, and leave it out for functions of rows.",
            )  # fmt: skip
        if callable(model) and not isinstance(model, type):
            return model  # type: ignore[no-any-return]
        raise ParameterError(
            "models", f"… {type(model).__name__} …",
            f"{_who(self, number)} has no predict and is not a function of rows", "Give fitted "
                                                                                  "models.",
        )  # fmt: skip


class Matrix:
    """Predictions in a two-dimensional array: a row for each example, a column for each model."""

    names: Sequence[Any] | None = None

    def __init__(self, table: NDArray[Any]) -> None:
        self._table, self.rows, self.block = table, len(table), _ROWS
        self.together = max(1, _BYTES // (_ROWS * max(1, table.itemsize)))
        self._part: tuple[tuple[int, int], NDArray[Any]] | None = None

    def __len__(self) -> int:
        return int(self._table.shape[1])

    def says(self, number: int, start: int, stop: int) -> NDArray[Any]:
        first = number - number % self.together
        if self._part is None or self._part[0] != (first, start):
            self._part = (
                (first, start),
                _transpose(self._table[start:stop, first : first + self.together]),
            )
        column: NDArray[Any] = self._part[1][number - first]
        return column


class Lists:
    """Predictions in lists, one for each example, with as many entries as there are models."""

    names: Sequence[Any] | None = None

    def __init__(self, lists: Sequence[Sequence[Any]]) -> None:
        self._lists, self.rows, self.block, self.together = lists, len(lists), _ROWS, 1

    def __len__(self) -> int:
        return len(self._lists[0])

    def says(self, number: int, start: int, stop: int) -> list[Any]:
        some = self._lists[start:stop]
        if any(len(one) != len(self) for one in some):
            raise DataError(
                "The lists of predictions, one for each example, are not all of the same length."
            )
        return [one[number] for one in some]


class FramePredictions:
    """Predictions in a frame: a column for each model, by its name."""

    def __init__(self, frame: Any) -> None:
        self._frame, self.rows, self.block, self.together = frame, len(frame), _ROWS, 1
        self.names: Sequence[Any] | None = list(frame.columns)

    def __len__(self) -> int:
        return len(self.names or ())

    def says(self, number: int, start: int, stop: int) -> Any:
        by_place = hasattr(self._frame, "iloc")
        whole = self._frame.iloc[:, number] if by_place else self._frame.to_series(number)
        return slice_rows(whole, start, stop)


def list_entrants(models: Any, X: Any, method: str) -> Entrants:
    """Return the models and what they are tried on, as far as can be checked without asking one.

    Raises:
        ParameterError: There is no model, or what is given is none.

    Examples:
        >>> entrants = list_entrants(np.array([[1, 0], [1, 1]]), None, "predict")
        >>> len(entrants), entrants.rows, entrants.says(1, 0, 2).tolist()
        (2, 2, [0, 1])
    """
    entrants = _choose_entrants(models, X, method)
    if not len(entrants):
        raise ParameterError("models", "<none>", "there must be at least one", "Give some.")
    if entrants.names is not None and (
        None in entrants.names or len(set(entrants.names)) < len(entrants)
    ):
        raise ParameterError(
            "models", "<names>", "a name is None or occurs twice", "Give every model a name."
        )
    return entrants


def _choose_entrants(models: Any, X: Any, method: str) -> Entrants:
    if X is None:
        return _read_predictions(models)
    if _is_frame(models) or (isinstance(models, np.ndarray) and models.ndim > 1):
        raise ParameterError(
            "X", "given", "models are already predictions", "Leave X out, or give models."
        )
    if isinstance(X, Mapping) or count_rows(X) < 0:
        raise ParameterError(
            "X",
            f"<{type(X).__name__}>",
            "it must have rows that can be counted and sliced",
            "Give an array or a frame.",
        )
    if hasattr(X, "tocsr") and getattr(X, "format", "") != "csr":
        raise ParameterError("X", "<sparse>", "only CSR form has rows to slice", "Give X.tocsr().")
    if isinstance(models, Mapping):
        return Predictors(models, list(models), X, method)
    if isinstance(models, (str, bytes)) or not (
        hasattr(models, "__len__") and hasattr(models, "__getitem__")
    ):
        raise ParameterError(
            "models", f"<{type(models).__name__}>", "it must be a sequence or a mapping of models",
            "Put one model into a list; make a list of an iterator.",
        )  # fmt: skip
    if not isinstance(models, (list, tuple)) and callable(
        getattr(models, method, None)
    ):  # an ensemble, a pipeline
        raise ParameterError(
            "models", f"<{type(models).__name__}>", f"it has a {method} and is one model, though "
                                                    f"it has parts",
            "Put one model into a list.",
        )  # fmt: skip
    return Predictors(models, None, X, method)


def _read_predictions(models: Any) -> Entrants:
    """Predictions made already."""
    refuse_masked(models, "The matrix of predictions")
    if _is_frame(models):
        return FramePredictions(models)
    if isinstance(models, np.ndarray) and models.ndim == 2:
        return Matrix(np.asarray(models))
    if (
        isinstance(models, (list, tuple))
        and models
        and all(isinstance(one, (list, tuple)) for one in models)
    ):
        return Lists(models)
    raise ParameterError.required(
        "X", "without it models must be a matrix of predictions, a row for each example and "
                   "a column for each "
        "model", "Give X, or a two-dimensional array, a list of lists, or a frame.",
    )  # fmt: skip


def _is_frame(data: Any) -> bool:
    return hasattr(data, "columns") and (hasattr(data, "iloc") or hasattr(data, "to_series"))


def _block(X: Any) -> int:
    """Return how many rows a model is given at a time. It depends on public facts only."""
    shape = getattr(X, "shape", None)
    if not shape or hasattr(X, "tocsr"):
        return _ROWS
    return max(1, min(1 << 16, _ENTRIES // max(1, int(math.prod(shape[1:])))))


def _transpose(part: NDArray[Any]) -> NDArray[Any]:
    """Return the columns, each in one piece.

    A few rows at a time stay in the cache, which is ten times as fast as all.
    """
    columns = np.empty(part.shape[::-1], part.dtype)
    for start in range(0, len(part), 256):
        columns[:, start : start + 256] = part[start : start + 256].T
    return columns


def _labels(y: Any) -> NDArray[Any]:
    labels = read_column(y, "y")
    if labels.ndim != 1:
        raise DataError("For accuracy y must be one label for each example.")
    return labels


def _who(entrants: Entrants, number: int) -> str:
    return f"Model {number if entrants.names is None else entrants.names[number]!r}"


@contextmanager
def _bar(wanted: bool, models: int) -> Iterator[Callable[[int], object]]:
    """Show a bar with the part of the models that is done.

    Blocks of rows would reveal how many examples there are.
    """
    if not wanted or not on_terminal():
        yield lambda some: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    parts = TextColumn("Trying models"), BarColumn(), TaskProgressColumn()
    with Progress(*parts, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=models)
        yield lambda some: shown.advance(task, some)
