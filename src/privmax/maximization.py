"""The paper's problem as stated: the item at which a Lipschitz function of the data is largest.

The function is called for every item of a listed universe; of one that is infinite, or too large to
list, an `Oracle` names the items that matter.

Proof:      docs/proofs/maximization.md
Reference:  Chaudhuri, Hsu & Song, NeurIPS 2014, Definition 2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from privmax.best_items import BestItems
from privmax.errors import DataError, ParameterError
from privmax.grouping import IN_REQUEST, moved
from privmax.labels import UNKNOWN, by_name, is_unknown, read_label
from privmax.ledger import Ledger
from privmax.ledger.events import USER
from privmax.ledger.payment import Description
from privmax.ledger.request import Request
from privmax.mechanisms.contract import Mechanism, Outcome
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, exact, positive, whole
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.profile import Level, Profile
from privmax.release import Release, answer_request
from privmax.sources.base import PlainSource
from privmax.sources.memory import MemorySource
from privmax.sources.scale import Scale
from privmax.universe import OPEN_UNIVERSE, Universe

TOLERANCE = Fraction(1, 1 << 20)
"""The distance allowed from a multiple of `lipschitz`, as a part of it: floats round."""


MOST_CALLS = 100_000_000
"""For how many items f is called at most; an oracle names those that matter among more."""


class Oracle(Protocol):
    """Finds the items that matter, where there are too many to list, or infinitely many.

    Items at which the function is 0 or less count as not there. What the oracle answers is as
    private as the data.
    """

    def best(self, data: Any) -> Hashable | None:
        """Return an item at which the function is largest; None: nowhere is it above 0."""
        ...

    def above(self, value: Fraction, data: Any) -> Iterable[Hashable]:
        """Return every item at which the function exceeds `value` (0 or more), and perhaps more."""
        ...


@moved(IN_REQUEST)
def maximize(
    f: Callable[[Any, Any], Number],
    universe: object,
    data: Any,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    n: int | None = None,
    lipschitz: Number | None = None,
    resolution: Number | None = None,
    neighbors: str | None = None,
    mechanism: Mechanism | str | None = None,
    ledger: Ledger | Request | None = None,
    verbose: bool = False,
    coins: Coins = SYSTEM,
) -> Release:
    """Choose the item of a universe at which f(item, data) is largest, privately.

    The paper's α is epsilon. With `mechanism="large-margin"` its estimate of the maximum and its
    number of near maximizers are in `release.diagnostics`, the former in f's own units.

    Args:
        f: Called with an item and the data. One individual moves f(item, ·) by at most `lipschitz`,
            for every item.
        universe: The items, as public knowledge; or their number, and items are 0, 1, …; or an
            `Oracle` where they cannot be listed.
        data: Whatever f takes.
        epsilon: What it costs; a float means the decimal that it prints as.
        delta: With epsilon, what it costs. An oracle needs one above 0.
        n: How many individuals there are, which must be public; by default, under replace,
            len(data). Under add-remove that is private: give a number that does not come from the
            data, and divide by it in f.
        lipschitz: By how much one individual moves f at most; by default 1/n, as in the paper.
        resolution: Step of a public grid on which values of f are rounded down. Without it they are
            multiples of `lipschitz`, as shares of n are, and any other value is refused.
        neighbors: "replace" (the default, as in the paper), or "add-remove" if one individual moves
            f the same way for all items.
        mechanism: A mechanism object, instead of epsilon, delta and neighbors; or the name of one
            beside them; by default `auto` chooses.
        ledger: The privacy budget that covers it, or a request of it. A request is known by the
            name of f, not by its code: use another id for another function of the same name. It
            also says what the cost hides, "user" by default.
        verbose: Whether to show on a terminal how far the evaluation is.
        coins: Source of random bits; for tests only.

    Returns:
        A release with one item, or none if no item stood out.

    Raises:
        ParameterError: A parameter is not allowed.
        DataError: A value of f is not a number, or not on the grid. The value is not shown. With an
            oracle this may come after the charge, which then gives no answer: try f before.
        BudgetError: The budget does not allow it. f was not called.

    Examples:
        The example of the paper: everyone is at 1, so item 1 leads by all 1000 records.

        >>> def share(i, data):
        ...     return sum(entry >= i for entry in data) / len(data)
        >>> maximize(share, range(1, 100), [1] * 1000, epsilon=1, delta=1e-6).item
        1
    """
    request = Request.of(ledger)
    is_made = mechanism is not None and not isinstance(mechanism, str)
    relation = getattr(mechanism, "neighbors", ADD_REMOVE) if is_made else neighbors or REPLACE
    grid = _Grid.of(n, lipschitz, resolution, data, is_fixed=relation != ADD_REMOVE)
    listed = None if _is_oracle(universe) else _read_universe(universe)
    _check_function(f)
    question = BestItems(
        epsilon=epsilon,
        delta=delta,
        given=mechanism,
        neighbors=neighbors if is_made else relation,
        universe=OPEN_UNIVERSE if listed is None else listed,
        unit=USER if request.unit is None else request.unit,
        scale=grid.scale,
    )

    def read(stack: ExitStack) -> MemorySource | OracleSource:
        score = grid.scores(f, data)
        if listed is None:
            return OracleSource(universe, data, score, grid.scale)  # type: ignore[arg-type]
        with _show_progress(listed, verbose) as advance:
            return _evaluate(listed, score, grid.scale, advance)

    name = f"{getattr(f, '__module__', '')}.{getattr(f, '__qualname__', type(f).__name__)}"
    description = Description(
        "maximize",
        {"function": name, "neighbors": question.neighbors},
        {"n": n, "lipschitz": lipschitz, "resolution": resolution},  # not the length of the data
        labels=None if listed is None else listed.size if listed.labels is None else listed.labels,
    )
    return answer_request(question, read, request, description=description, coins=coins)


@dataclass(frozen=True)
class _Grid:
    """The whole numbers that represent values of f: multiples of `lipschitz`, or a public grid."""

    lipschitz: Fraction
    scale: Scale
    is_rounded: bool

    @classmethod
    def of(
        cls,
        n: int | None,
        lipschitz: Number | None,
        resolution: Number | None,
        data: Any,
        *,
        is_fixed: bool = True,
    ) -> _Grid:
        """Return the grid that these declare; `is_fixed`: neighbors have as many individuals."""
        if lipschitz is None:
            if n is None and not is_fixed:
                raise ParameterError.required(
                    "n",
                    "under add-remove the length of the data is private",
                    "Give a public number, or lipschitz.",
                )
            if n is None and not hasattr(data, "__len__"):
                remedy = "Give the number of individuals."
                raise ParameterError.required("n", "the data has no length", remedy)
            bound = Fraction(1, whole("n", len(data) if n is None else n))
        elif n is not None:
            raise ParameterError("n", n, "lipschitz already sets it", "Give one or the other.")
        else:
            bound = positive("lipschitz", lipschitz)
        if resolution is None:
            return cls(bound, Scale(False, bound, 1), False)
        return cls(bound, Scale.of(bound, resolution), True)

    def scores(self, f: Callable[[Any, Any], Number], data: Any) -> Callable[[Any], int]:
        """Return f in steps of the scale, as a function of the item alone."""

        def score(item: Any) -> int:
            value, number = f(item, data), None
            with suppress(ParameterError):  # its message quotes the value, and must not be led to
                number = exact("f", value)
            if number is None:
                raise DataError("A value of f is not a finite number.")
            steps = number / self.scale.step
            nearest = round(steps)
            if self.is_rounded:
                return steps.__floor__()
            if abs(steps - nearest) > TOLERANCE:
                raise DataError(
                    "A value of f is not a multiple of lipschitz. Set resolution to the step of a "
                    "public grid, for example lipschitz / 64."
                )
            return nearest

        return score


def _evaluate(
    universe: Universe, score: Callable[[Any], int], scale: Scale, advance: Callable[[], object]
) -> MemorySource:
    """Call f for every item of a listed universe."""

    def call(item: Any) -> int:
        advance()
        return score(item)

    if universe.labels is None:
        scores: object = [call(item) for item in range(universe.size or 0)]
    else:
        universe.plain_labels()  # refuses what is no label before f is called for anything
        scores = {item: call(item) for item in universe.labels}
    source = MemorySource(scores, universe=universe, sensitivity=scale.steps)
    source.step = scale.step
    return source


class OracleSource(PlainSource):
    """Items that an oracle finds, from the top down; all others stand at 0.

    Args:
        oracle: Names the items above a value.
        data: What it is asked about.
        score: The value of an item, in steps.
        scale: What a step is worth, and by how many steps one individual moves a score.
    """

    def __init__(
        self, oracle: Oracle, data: Any, score: Callable[[Any], int], scale: Scale
    ) -> None:
        self._oracle, self._data, self._score = oracle, data, score
        self.step = scale.step
        self._labels_by_score: dict[int, list[Any]] = {}
        self.profile = Profile(self, sensitivity=scale.steps)

    def __repr__(self) -> str:
        return "OracleSource(<private>)"

    def listed(self) -> int:
        return sum(map(len, self._labels_by_score.values()))

    def maximum(self) -> int | None:
        best = self._oracle.best(self._data)
        return None if best is None else self._score(best)

    def histogram(self, above: int) -> Sequence[Level]:
        bound = max(above, 0)
        items = {
            _read_item(item): item for item in self._oracle.above(bound * self.step, self._data)
        }
        scores = {label: self._score(item) for label, item in items.items()}
        self._labels_by_score = {}
        for label, score in scores.items():
            if score > bound:
                self._labels_by_score.setdefault(score, []).append(label)
        for labels in self._labels_by_score.values():
            labels.sort(key=by_name)
        return sorted(Counter(score for score in scores.values() if score > bound).items())[::-1]

    def names(self, outcomes: Sequence[Outcome]) -> list[Any]:
        return [
            self._labels_by_score[one.score][one.index]
            if one.score in self._labels_by_score and not one.below
            else None
            for one in outcomes
        ]


def _is_oracle(universe: object) -> bool:
    if isinstance(universe, type):
        raise ParameterError(
            "universe", universe.__name__, "it is a class", "Give an object of it."
        )
    methods = [name for name in ("best", "above") if callable(getattr(universe, name, None))]
    if len(methods) == 1:
        raise ParameterError(
            "universe",
            type(universe).__name__,
            f"it has {methods[0]} alone of an oracle's best and above",
            "Give it both, or list the items.",
        )
    return len(methods) == 2


def _check_function(f: object) -> None:
    if not callable(f):
        allowed = "it must be a function of an item and the data"
        raise ParameterError("f", type(f).__name__, allowed)


def _read_universe(value: object) -> Universe:
    """Return a universe whose items can all be tried."""
    universe = Universe.of(value)
    if universe.size is None:
        raise ParameterError(
            "universe", value, "f is called for every item, so they must be known",
            "List the items, give their number, or an oracle that names those that matter.",
        )  # fmt: skip
    if universe.size > MOST_CALLS:
        raise ParameterError(
            "universe", universe.size, f"f is called for at most {MOST_CALLS:,} items",
            "Give an oracle, which names those that matter.",
        )  # fmt: skip
    return universe


def _read_item(item: Hashable) -> Any:
    label = read_label(item)
    if label is None or is_unknown(label):
        raise DataError(UNKNOWN)
    return label


@contextmanager
def _show_progress(universe: Universe, verbose: bool) -> Iterator[Callable[[], object]]:
    """A bar on the terminal; what it gives advances it by one item."""
    if not verbose:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Evaluating f", total=universe.size)
        yield lambda: progress.advance(task)
