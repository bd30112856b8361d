"""A search over private learners: a random number of runs, of which only the best is released.

It is no cross-validation: every row is used for training or for scoring, never for both, and what
other candidates achieved is not released.

Proof:      docs/proofs/tuning.md
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from hashlib import sha256
from itertools import islice, starmap
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone

from privmax.encoding import decode
from privmax.errors import LedgerError, ParameterError, UnsupportedError
from privmax.learning.candidates import SettingsGrid, check_learner, describe
from privmax.learning.model_records import read_model
from privmax.learning.search_runs import (
    MOST_TRIALS,
    RandomRepetition,
    Rows,
    RowSource,
    Winner,
    build,
    check_parameters,
    make_run,
    read_cost,
    read_neighbors,
    write_winner,
)
from privmax.ledger import Ledger
from privmax.ledger.events import ROW, Charge
from privmax.ledger.payment import Description
from privmax.ledger.request import Request
from privmax.mechanisms.contract import read_relation
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, positive, round_down
from privmax.payload import Drawn
from privmax.privacy import ADD_REMOVE, Privacy
from privmax.release import Release, answer
from privmax.repetition import random_runs
from privmax.warnings import warn_of_fits

STEPS = 1 << 12
"""If the search sets the epsilon of a run, it is a multiple of its own divided by this."""


class PrivateSearch(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """The best of many settings of a private learner, found and fitted under differential privacy.

    Candidates are drawn at random from `params`. Each run fits one to training rows and scores it
    on hold-out rows, with noise. How many runs there are is random and secret, and only the best
    model is released, so the whole search costs little more than one run. `cv_results_` does not
    exist: it would cost as much as all runs.

    ONE ROW IS ONE INDIVIDUAL. THE LEARNER MUST BE PRIVATE: the search trusts the epsilon and delta
    that it declares. THE TIME OF A SEARCH REVEALS THE NUMBER OF RUNS, which must stay secret: do
    not let anyone measure it from whom single rows are to be hidden.

    `fit` sets `best_estimator_`, `best_params_`, `best_score_` (noisy: hold-out rows that it gets
    right, less those that it gets wrong), `classes_`, and `release_` with the cost. All of it may
    be published. Where nothing was released (Poisson with no run, or the best run failed)
    `release_.item` is None and there is no `best_estimator_`.

    Args:
        estimator: A private learner that is not fitted: PrivateERM, a model of diffprivlib, or any
            that declares its cost. What is asked, in this order: `privacy_cost()`, which gives a
            `Privacy` or a `Charge`; a `mechanism` object; the parameters `epsilon` and `delta`.
        params: Public; for each parameter a list of values, or a distribution of scipy.stats. Or a
            list of such mappings, of which each run draws one.
        epsilon: What the search costs. The epsilon of the learner is then set to what a run may
            cost. None: the learner has an epsilon, and the cost follows from it.
        delta: That of the search. With 0 the learner must have none either.
        runs: How many runs are expected, above 1.
        law: "geometric" (the default), "logarithmic", "poisson", or a number above −1, such as
            "-1/2"; `privmax help tuning` compares them.
        train: The chance of a row to be used for training; the others are for scoring. Each row
            has a coin of its own.
        neighbors: "add-remove" (the default) or "replace". The learner must be private under it.
        max_runs: A public cap on the work, which uses a half of delta. None: there is none.
        n_jobs: How many processes run at a time, as scikit-learn has it.
        unit: What the cost hides, for the ledger: "row" by default.
        ledger: The privacy budget that covers `fit`, as in PrivateERM. The fitted model is
            recorded, and a repeated request returns it without reading data.
        verbose: Whether to show on a terminal that a search is going on. How many runs there are is
            not shown.
        coins: Source of random bits; for tests only.

    Examples:
        >>> import numpy as np
        >>> from privmax.learning import PrivateERM, Stumps
        >>> X = np.arange(20_000.0).reshape(-1, 1)
        >>> y = (X[:, 0] >= 10_000).astype(int)
        >>> learner = PrivateERM(Stumps(low=0, high=20_000, cells=2), labels=[0, 1])
        >>> params = {"hypotheses__cells": [2]}
        >>> search = PrivateSearch(learner, params, epsilon=1, runs=3).fit(X, y)
        >>> search.best_params_, search.predict([[0.0], [15_000.0]]).tolist()
        ({'hypotheses__cells': 2}, [0, 1])
        >>> search.release_.privacy
        Privacy(epsilon=0.999941, delta=0)
    """

    best_estimator_: Any
    best_params_: dict[str, Any]
    release_: Release

    def __init__(
        self,
        estimator: Any = None,
        params: Any = None,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        runs: Number = 10,
        law: str | Number = "geometric",
        train: Number = 0.75,
        neighbors: str | None = None,
        max_runs: int | None = None,
        n_jobs: int | None = None,
        unit: str | None = None,
        ledger: Ledger | Request | None = None,
        verbose: bool = False,
        coins: Coins | None = None,
    ) -> None:
        self.estimator = estimator
        self.params = params
        self.epsilon = epsilon
        self.delta = delta
        self.runs = runs
        self.law = law
        self.train = train
        self.neighbors = neighbors
        self.max_runs = max_runs
        self.n_jobs = n_jobs
        self.unit = unit
        self.ledger = ledger
        self.verbose = verbose
        self.coins = coins

    def privacy(self) -> Privacy:
        """Return what `fit` will cost. No data is needed.

        Examples:
            >>> from privmax.learning import PrivateERM, Stumps
            >>> learner = PrivateERM(Stumps(low=0, high=1), epsilon="0.1", labels=[0, 1])
            >>> PrivateSearch(learner, {"floor": [0, 1]}).privacy()
            Privacy(epsilon=0.263592, delta=0)
        """
        return self._plan()[1].privacy()

    def fit(self, X: Any, y: Any) -> PrivateSearch:
        """Search, at the cost of one release."""
        coins = SYSTEM if self.coins is None else self.coins
        if self.n_jobs is not None and (type(self.n_jobs) is not int or not self.n_jobs):
            raise ParameterError(
                "n_jobs", self.n_jobs, "it must be a whole number other than 0, or None",
                "For example 2, or -1 for all cores.",
            )  # fmt: skip
        if coins is not SYSTEM and self.n_jobs not in (None, 1):
            raise ParameterError(
                "coins", "given", "they are for tests, and cannot be shared by processes",
                "Leave n_jobs out.",
            )  # fmt: skip
        template, mechanism, grid = self._plan()
        unit = ROW if self.unit is None else self.unit
        question = ModelSearch(mechanism, template, grid, unit, self.n_jobs)
        for name in ("best_estimator_", "best_params_", "best_score_", "classes_", "release_"):
            self.__dict__.pop(name, None)  # a fit that fails leaves nothing behind
        check_parameters(template, grid, mechanism.fit_cost)
        if self.ledger is None:
            warn_of_fits(mechanism.privacy())
        with self._status():
            self.release_ = answer(
                question,
                lambda stack: question.open(X, y),
                self.ledger,
                description=self._describe(template, grid),
                coins=coins,
            )
        self._take(self.release_.item)
        return self

    def predict(self, X: Any) -> Any:
        """Return what the best model says of the rows of X."""
        return self._best().predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the labels, if the best model has them."""
        return self._best().predict_proba(X)

    def decision_function(self, X: Any) -> Any:
        """Scores of the rows, if the best model has them."""
        return self._best().decision_function(X)

    def _best(self) -> Any:
        if "best_estimator_" in vars(self):
            return self.best_estimator_
        if "release_" not in vars(self):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("This PrivateSearch is not fitted yet: call fit first.")
        if self.release_.item is None:
            raise UnsupportedError(
                "Nothing was released: there was no run, or the best one failed. Try the learner "
                "on public rows to see why."
            )
        raise UnsupportedError(
            "The best model could not be written into the ledger, so only best_params_ was "
            "released. A fit to the data would be another release. See privmax help tuning."
        )

    def _take(self, winner: Winner | None) -> None:
        if winner is None:
            warnings.warn(
                "No answer: there was no run, or the best run failed. The cost is spent. Try the "
                "learner on public rows to see whether it fails.",
                stacklevel=3,
            )
            return
        self.best_params_, self.best_score_ = dict(winner.params), winner.score
        if winner.model is not None:
            self.best_estimator_ = winner.model
            if hasattr(winner.model, "classes_"):
                self.classes_ = winner.model.classes_

    def _plan(self) -> tuple[Any, RandomRepetition, SettingsGrid]:
        """Return the learner as it runs, what runs, and the candidates.

        Refuses parameters that are not as they must be.
        """
        learner = self._check_learner()
        grid = SettingsGrid.of(self.params, learner)
        rule = read_relation("neighbors", ADD_REMOVE if self.neighbors is None else self.neighbors)
        own = read_neighbors(learner)
        if own not in (None, rule):
            raise ParameterError("neighbors", rule, f"the learner has {own}", "Give both the same.")
        if own is None and "neighbors" in learner.get_params(deep=False):
            learner.set_params(neighbors=rule)
        options: dict[str, Any] = {
            "runs": random_runs(self.law, self.runs),
            "delta": self.delta,
            "train": self.train,
            "neighbors": rule,
            "max_runs": self.max_runs,
        }

        def mechanism(candidate: Any) -> RandomRepetition:
            run = read_cost(candidate)
            return RandomRepetition(
                epsilon=run.epsilon, run_delta=run.delta, rho=run.rho, **options
            )

        if self.epsilon is None:
            return learner, mechanism(learner), grid
        learner = self._set_epsilon(learner, lambda one: mechanism(one).privacy())
        return learner, mechanism(learner), grid

    def _check_learner(self) -> Any:
        if not hasattr(self.estimator, "get_params") or isinstance(self.estimator, type):
            raise ParameterError(
                "estimator", type(self.estimator).__name__, "it must be a private learner with "
                "scikit-learn's interface", "For example PrivateERM(Stumps(low=0, high=100)).",
            )  # fmt: skip
        learner = clone(self.estimator)
        check_learner(learner)
        return learner

    def _set_epsilon(self, learner: Any, cost: Callable[[Any], Privacy]) -> Any:
        """Return the learner with the largest epsilon at which the search costs what it may."""
        total = positive("epsilon", self.epsilon)  # type: ignore[arg-type]  # it is not None
        if "epsilon" not in learner.get_params(deep=False):
            raise ParameterError(
                "epsilon", self.epsilon, f"{type(learner).__name__} has no such parameter to set",
                "Use a private learner. If it has a method privacy_cost, leave epsilon out.",
            )  # fmt: skip
        low, high = 0, STEPS + 1
        while high - low > 1:
            middle = (low + high) // 2
            learner.set_params(epsilon=_parameter(total * middle / STEPS))
            fits = cost(learner).epsilon <= total
            low, high = (middle, high) if fits else (low, middle)
        if not low:
            raise ParameterError(
                "epsilon", self.epsilon, "no run is cheap enough for it",
                "Allow more, or fewer expected runs.",
            )  # fmt: skip
        return learner.set_params(epsilon=_parameter(total * low / STEPS))

    def _describe(self, template: Any, grid: SettingsGrid) -> Description | None:
        """Return what a ledger writes down of a search."""
        if self.ledger is None:
            return None
        description = f"{describe(template)} {grid.describe()}"
        request = Request.of(self.ledger).id
        if request is not None and " at 0x" in description:
            raise ParameterError(
                "request", request, "the repr of a candidate does not identify it",
                "Give it a __repr__, or leave request out.",
            )  # fmt: skip
        options = {
            "learner": type(template).__name__,
            "params": grid.names,
            "candidates": sha256(description.encode()).hexdigest()[:32],
        }
        return Description("PrivateSearch", options)

    def _status(self) -> AbstractContextManager[object]:
        if not self.verbose:
            return nullcontext()
        from rich.console import Console

        return Console(stderr=True).status("Searching; how many runs there are is secret …")


@dataclass(frozen=True)
class ModelSearch:
    """Find the best setting of a learner, with its model. It implements `Releasable`.

    Args:
        repetition: What runs. It was checked when it was made.
        template: The learner, with the epsilon of a run.
        grid: The candidates.
        unit: What the cost hides.
        n_jobs: How many processes run at a time.
    """

    repetition: RandomRepetition
    template: Any
    grid: SettingsGrid
    unit: str | None = None
    n_jobs: int | None = None

    def describe(self) -> str:
        """Return what runs."""
        return repr(self.repetition)

    def privacy(self) -> Privacy:
        """Return what the search costs."""
        return self.repetition.privacy()

    def charge(self) -> Charge:
        """Return what to charge: also in rho, where that is proved and says more."""
        run = self.repetition
        return Charge(self.privacy(), neighbors=run.neighbors, unit=self.unit, rho=run.to_rho())

    def check(self) -> None:
        """There is nothing to refuse."""

    def open(self, X: Any, y: Any) -> RowSource:
        """Return the rows, if the learner takes them.

        Where it can say so, a refusal comes before the charge, and does not become a failure of
        every run, which would reveal one row.
        """
        source = RowSource(X, y)
        if hasattr(self.template, "check_rows"):
            for _, params in islice(self.grid.trials(), MOST_TRIALS):
                build(self.template, params).check_rows(X, y)
        return source

    def preflight(self, source: RowSource) -> None:
        """The rows are here: nothing more is to be met."""

    def draw(self, source: RowSource, coins: Coins) -> Drawn:
        """Return the best of a random number of runs."""

        def make(number: int, take: Callable[[], Rows], holdout: Rows) -> Iterator[tuple[int, Any]]:
            places = [self.grid.draw(coins) for _ in range(number)]
            # Training rows are taken when a run begins, so that few copies are there at a time.
            jobs = (
                (self.template, self.grid.params(place), place, take(), holdout) for place in places
            )
            return self._make(jobs, coins)

        best = self.repetition.draw(source, make, coins)
        winner = None if best is None else best[1]
        return Drawn(() if winner is None else (winner,))

    def draw_nothing(self) -> Drawn:
        """No run."""
        return Drawn()

    def write(self, payload: Drawn, source: RowSource) -> dict[str, Any]:
        """Write what was drawn for a ledger."""
        return payload.to_json(write_winner)

    def read(self, written: Mapping[str, Any]) -> Drawn:
        """Return what a ledger recorded."""
        return Drawn.from_json(written, self.read_winner)

    def release(self, payload: Drawn) -> Release:
        """Return the release of the best run."""
        run, why = self.repetition, "makes a random number of runs and releases the best"
        return Release(payload, self.privacy(), run, why, unit=self.unit)

    def _make(self, jobs: Iterable[tuple[Any, ...]], coins: Coins) -> Iterator[tuple[int, Any]]:
        if self.n_jobs in (None, 1):
            # `starmap` keeps no job: rows are gone before those of the next are taken.
            return starmap(partial(make_run, self.repetition, coins=coins), jobs)
        from joblib import Parallel, delayed

        # Processes of "loky" share no state, so no two have the same random numbers. Large arrays
        # are passed through pipes, and not written to a disk. Runs come back in the order in which
        # they were drawn: of equal scores the first wins, and not the fastest.
        pool = Parallel(n_jobs=self.n_jobs, backend="loky", max_nbytes=None, return_as="generator")
        made: Iterator[tuple[int, Any]] = pool(
            delayed(make_run)(self.repetition, *job) for job in jobs
        )
        return made

    def read_winner(self, written: Any) -> Winner:
        """Read a winner that a ledger keeps. Its setting is found again among the candidates."""
        number, settings = written["place"]
        place = number, {name: decode(at) for name, at in settings.items()}
        params, model = self.grid.params(place), None
        if written["model"] is not None:
            template = build(self.template, params)
            try:
                model = read_model(template, written["model"])
            except Exception as error:
                raise LedgerError(
                    f"The recorded model cannot be read ({type(error).__name__}). Was it written "
                    "by another version, or changed?"
                ) from None
        return Winner(params, written["score"], model, place)


def _parameter(value: Fraction) -> float:
    """Return an epsilon as learners take it, in six digits, rounded down."""
    return float(round_down(value))
