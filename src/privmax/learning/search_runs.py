"""The runs of a search: rows split by coins, learners fitted and scored with noise.

Proof:      docs/proofs/tuning.md
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from privmax.encoding import encode
from privmax.errors import DataError, ParameterError, PrivacyWarning
from privmax.learning.candidates import Place, SettingsGrid, check_learner
from privmax.learning.labels import read_column
from privmax.learning.model_records import write_model
from privmax.learning.rows import copy_rows
from privmax.learning.scoring import Accuracy, count_rows
from privmax.mechanisms.contract import Relation, read_relation
from privmax.noise.coins import SYSTEM, Coins
from privmax.noise.samplers import discrete_gaussian, discrete_laplace
from privmax.numbers import open_probability, positive, probability, whole
from privmax.parameters import Exact, OptionalWhole, Parameter, Parameters, optional, parameter
from privmax.privacy import ADD_REMOVE, Privacy, drift
from privmax.repetition import RunCost, RunLaw, best_of, concentrated_cost, repetition_cost
from privmax.sources.containers.pandas import refuse_rounded
from privmax.sources.table import take_rows
from privmax.warnings import reset_once

MOST_TRIALS = 100
"""Values that are tried on invented rows before a search."""

FAILED = -(1 << 62)
"""Below every score: the score of a run that failed."""


class RandomRepetition(Parameters):
    """The best of a random number of runs, as what a release ran.

    Args:
        runs: The law of their number.
        delta: That of the answer.
        epsilon: That of one run.
        run_delta: That of one run.
        rho: That of one run, where it is zCDP.
        train: The chance of a row to be used for training.
        neighbors: The relation that all of this is stated for.
        max_runs: A public cap on the number of runs.
    """

    runs: Parameter[RunLaw, RunLaw] = parameter(lambda name, value: value)
    delta: Exact = parameter(probability)
    epsilon: Parameter[Any, Fraction | None] = parameter(optional(positive), default=None)
    run_delta: Exact = parameter(probability, default=0)
    rho: Parameter[Any, Fraction | None] = parameter(optional(positive), default=None)
    train: Exact = parameter(open_probability, default=Fraction(3, 4), remedy="For example 0.75.")
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    max_runs: OptionalWhole = parameter(optional(whole), default=None)

    k = 1
    bounded_range = False

    @property
    def fit_cost(self) -> RunCost:
        """The cost of the fit of one run."""
        return RunCost(self.epsilon, self.run_delta, self.rho)

    @property
    def score_cost(self) -> RunCost:
        """The cost of the score of one run: as much, and nothing with delta."""
        return RunCost(rho=self.rho) if self._is_gaussian else RunCost(self.epsilon)

    @property
    def _is_gaussian(self) -> bool:
        """Whether scores get Gaussian noise: not where the search may have no delta."""
        return self.rho is not None and (self.delta > 0 or not self.fit_cost.pure)

    def privacy(self) -> Privacy:
        """Return the larger of what the two cost: a row is used by one of them."""
        costs = [
            repetition_cost(run, self.runs, self.delta, self.max_runs)
            for run in (self.fit_cost, self.score_cost)
        ]
        return max(costs, key=lambda cost: cost.epsilon)

    def to_rho(self) -> Fraction | None:
        """Return a rho that covers the answer, where it says more than (epsilon, delta)."""
        if self.max_runs is not None:
            return None
        rho = concentrated_cost(self.score_cost, self.runs)
        return rho if rho is not None and rho < self.privacy().epsilon ** 2 / 2 else None

    def noise(self, coins: Coins) -> int:
        """Noise on a score that one row moves by at most `drift`."""
        moved = drift(self.neighbors)
        if self._is_gaussian:
            assert self.rho is not None
            return discrete_gaussian(Fraction(moved**2) / (2 * self.rho), coins)
        assert self.epsilon is not None, "one of the two is known"
        return discrete_laplace(moved / self.epsilon, coins)

    def draw(self, source: RowSource, make: Runner, coins: Coins) -> Any:
        """Return the best run, as score and outcome; None: there was none."""
        rows = split_rows(source.rows, self.train, coins)
        holdout = source.take(~rows)
        return best_of(
            self.runs,
            lambda number: make(number, lambda: source.take(rows), holdout),
            coins,
            self.max_runs,
        )


def read_cost(learner: Any) -> RunCost:
    """Return what a learner declares that a fit costs.

    Raises:
        ParameterError: It declares nothing.

    Examples:
        >>> from privmax.learning import PrivateERM
        >>> read_cost(PrivateERM(epsilon=1, delta=1e-6))
        RunCost(epsilon=1, delta=1e-06, rho=None)
    """
    if hasattr(learner, "privacy_cost"):
        cost = learner.privacy_cost()
        privacy = getattr(cost, "privacy", cost)
        rho = getattr(cost, "rho", None)
        if getattr(cost, "bounded_range", False) and not privacy.delta:
            bounded_range = privacy.epsilon**2 / 8
            rho = bounded_range if rho is None else min(rho, bounded_range)
        return RunCost(privacy.epsilon, privacy.delta, rho)
    mechanism = _mechanism(learner)
    if mechanism is not None:
        privacy = mechanism.privacy()
        return RunCost(privacy.epsilon, privacy.delta)
    epsilon = getattr(learner, "epsilon", None)
    if epsilon is None or type(learner).__module__.startswith("sklearn."):  # there it is a loss
        raise ParameterError(
            "estimator", type(learner).__name__, "it does not declare what a fit costs",
            "Use a private learner, with epsilon set there or given to the search.",
        )  # fmt: skip
    delta = getattr(learner, "delta", 0) or 0
    return RunCost(epsilon, delta)


def read_neighbors(learner: Any) -> str | None:
    """Return the relation that the declared cost of a learner is stated for; None: it does not say.

    Examples:
        >>> from privmax.learning import PrivateERM
        >>> read_neighbors(PrivateERM(epsilon=1, neighbors="replace"))
        'replace'
    """
    named = [getattr(one, "neighbors", None) for one in (_mechanism(learner), learner)]
    relation = next((one for one in named if one is not None), None)
    takes = hasattr(learner, "get_params") and "neighbors" in learner.get_params(deep=False)
    if relation is None and not takes and hasattr(learner, "privacy_cost"):
        relation = getattr(learner.privacy_cost(), "neighbors", None)
    return relation


def _mechanism(learner: Any) -> Any:
    """Return the mechanism object of a learner; None: it has none, or only the name of one."""
    mechanism = getattr(learner, "mechanism", None)
    return mechanism if hasattr(mechanism, "privacy") else None


@dataclass(frozen=True, eq=False)
class Winner:
    """The best run of a search, as released.

    params   the setting that won
    score    noisy: hold-out rows that it gets right, less those that it gets wrong
    model    the fitted model; None: it could not be written into the ledger
    place    where the setting stands among the candidates
    """

    params: Mapping[str, Any]
    score: int
    model: Any = field(repr=False)
    place: Place = field(repr=False, default=(0, {}))


Rows = tuple[Any, Any]
"""X and y of some rows."""

Runner = Callable[[int, Callable[[], Rows], Rows], Iterable[tuple[int, "Winner | None"]]]
"""Makes so many runs. Each takes training rows of its own; hold-out rows are copied to predict."""


class RowSource:
    """Rows for a search. They are private."""

    def __init__(self, X: Any, y: Any) -> None:
        self.rows = count_rows(X)
        if self.rows < 0 or isinstance(X, Mapping):
            raise DataError("X must have rows that can be counted: an array, a frame or a list.")
        if count_rows(y) != self.rows:
            raise DataError("X and y have different numbers of rows.")
        if len(getattr(y, "shape", (0,))) != 1:
            raise DataError("y must be one column of labels, such as y.ravel() or y['label'].")
        self._X, self._y = X, refuse_rounded(y)
        try:
            self.take(np.zeros(self.rows, bool))
        except Exception as error:
            reason = type(error).__name__
        else:
            return
        raise DataError(
            f"X and y cannot be taken row by row ({reason}). Give arrays, frames, lists or CSR."
        )

    def __repr__(self) -> str:
        return "RowSource(<private>)"

    def take(self, mask: NDArray[np.bool_]) -> Rows:
        """Return the rows of a mask, as copies: writing into them changes nothing else."""
        index = np.flatnonzero(mask)
        return copy_rows(self._X, index), copy_rows(self._y, index)


def write_winner(item: Winner) -> dict[str, Any]:
    """Write the setting by its number, and the model as JSON; None where it has no such form."""
    number, settings = item.place
    try:
        model = write_model(item.model)
    except Exception:  # whatever it is: what was drawn must not get lost
        model = None
    place = [number, {name: encode(at) for name, at in settings.items()}]
    return {"place": place, "score": item.score, "model": model}


def check_parameters(template: Any, grid: SettingsGrid, cost: RunCost) -> None:
    """Meet what learners refuse before anything is charged.

    Those of privmax look at their parameters first, and then find two invented rows. Other failures
    mean nothing. What a learner says there of its own privacy is passed on: in a search it would
    not be heard.

    Raises:
        ParameterError: A parameter of the learner is not allowed, or a run has another cost.
    """
    heard: dict[str, None] = {}
    for name, params in islice(grid.trials(), MOST_TRIALS):
        with warnings.catch_warnings(record=True) as caught, reset_once():
            warnings.simplefilter("always")
            try:
                model = build(template, params)
                check_learner(model)
                declared = read_cost(model)
                if declared == cost:
                    model.fit(np.zeros((2, 1)), np.zeros(2, int))
            except ParameterError:
                raise
            except Exception:  # of rows that are not like the data
                declared = cost
        if declared != cost:
            raise ParameterError(
                "params", name, "the declared cost of a run depends on it, and all must cost the "
                "same", "Set it on the learner.",
            )  # fmt: skip
        heard |= dict.fromkeys(str(one.message) for one in caught if _is_of_privacy(one.category))
    for message in heard:
        warnings.warn(f"{type(template).__name__} says: {message}", PrivacyWarning, stacklevel=3)


def build(template: Any, params: Mapping[str, Any]) -> Any:
    """Build a learner with copies of the parameters of a candidate.

    What a fit does to them does not reach another run.

    Raises:
        ParameterError: A value cannot be copied.

    Examples:
        >>> from sklearn.linear_model import LogisticRegression
        >>> build(LogisticRegression(), {"C": 2})
        LogisticRegression(C=2)
    """
    own = {}
    for name, value in params.items():
        try:
            own[name] = clone(value, safe=False)
        except TypeError:  # a generator, a lock, an open file
            allowed = f"a value of {name} cannot be copied, and each run needs its own"
            raise ParameterError("params", type(value).__name__, allowed) from None
    return clone(template).set_params(**own)


def _is_of_privacy(kind: type[Warning]) -> bool:
    """Return whether a warning of another library is about privacy, by its name."""
    return "privacy" in kind.__name__.lower() and not issubclass(kind, PrivacyWarning)


def make_run(
    repetition: RandomRepetition,
    template: Any,
    params: Mapping[str, Any],
    place: Place,
    training: Rows,
    holdout: Rows,
    *,
    coins: Coins | None = None,
) -> tuple[int, Winner | None]:
    """One run: a candidate fitted to training rows, with its noisy score on hold-out rows.

    A run whose fit fails has the lowest score: that it does is part of what the learner's guarantee
    covers, and its message, which may quote data, is not passed on.
    """
    noise = repetition.noise(SYSTEM if coins is None else coins)
    try:
        # Learners count their fits for a warning: it would tell how many runs there were.
        with warnings.catch_warnings(), reset_once():
            warnings.simplefilter("ignore")
            model = build(template, params)
            check_learner(model)  # a value may come from a distribution
            if read_cost(model) != repetition.fit_cost:
                return FAILED, None
            model.fit(*training)
    except Exception:
        return FAILED, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        right = count_right(model, *holdout)
    vars(model).pop("release_", None)  # of one run: its cost is not that of the search
    score = 2 * right - count_rows(holdout[1]) + noise
    return score, Winner(params, score, model, place)


def count_right(model: Any, X: Any, y: Any) -> int:
    """Count the rows that a model gets right.

    A row that it fails on is wrong, and changes nothing about the others: the model is given
    copies, as it may have written into rows before it failed.

    Examples:
        >>> from sklearn.dummy import DummyClassifier
        >>> count_right(DummyClassifier().fit([[0]], [1]), [[0], [5]], [1, 0])
        1
    """
    rows = count_rows(y)
    if not rows:
        return 0
    try:
        said = model.predict(copy_rows(X, np.arange(rows)))
        return Accuracy().total(read_column(y, "y"), said, "A model")
    except Exception:
        if rows == 1:
            return 0
    parts = np.array_split(np.arange(rows), 2)
    return sum(count_right(model, take_rows(X, part), take_rows(y, part)) for part in parts)


def split_rows(rows: int, train: Fraction, coins: Coins) -> NDArray[np.bool_]:
    """For each row whether it is for training: by a coin of its own, in 256ths.

    Examples:
        >>> split_rows(3, Fraction(1, 2), SYSTEM).shape
        (3,)
    """
    share = min(255, max(1, round(train * 256)))
    drawn = np.frombuffer(coins.bytes(rows), np.uint8)
    return drawn < share
