"""The front door: source ▸ profile ▸ mechanism ▸ outcome ▸ source ▸ release."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, Self, cast

import numpy as np

from privmax.errors import DataError, ParameterError
from privmax.labels import label_by_value, plain_label
from privmax.ledger.answers import decoded, encoded, recordable
from privmax.ledger.events import ROW, USER, Price, label
from privmax.ledger.ledger import Ledger
from privmax.ledger.paying import Codec, Draw, Paid, paid, present
from privmax.mechanisms.contract import Law, Mechanism, Outcome
from privmax.mechanisms.exponential import Exponential
from privmax.mechanisms.joint_exponential import JointExponential
from privmax.mechanisms.nested_margin import NestedMargin
from privmax.mechanisms.peeling import Ranker
from privmax.mechanisms.permute_and_flip import PermuteAndFlip
from privmax.mechanisms.sharp_margin import SharpMargin
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, positive, probability, whole
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy, relation
from privmax.profile import OPEN, Profile
from privmax.sources.memory import Universe
from privmax.sources.reading import source
from privmax.sources.scale import Scale
from privmax.warnings import warn_of_price, warn_of_rows


@dataclass(frozen=True)
class Release:
    """What was released. Everything in it is paid for by `privacy`, so all of it may be published.

    items       the chosen items, best first; empty when nothing could be released
    privacy     what it cost, whether or not there was an answer
    mechanism   what ran
    why         why that mechanism
    free        what the same price also paid for, e.g. near_maximizers, max_estimate
    request     with a ledger: the id it was charged under; with it the same release can be had
                again
    recorded    None; or when the answer was recorded, UTC, if that was before: it was returned from
                the ledger, and no data was read for it
    unit        what the price hides: "user", "row", "basket"; None: nobody said
    """

    items: tuple[Any, ...]
    privacy: Privacy
    mechanism: Mechanism
    why: str
    free: Mapping[str, int | float]
    request: str | None = field(default=None, kw_only=True)
    recorded: str | None = field(default=None, kw_only=True, compare=False)
    unit: str | None = field(default=None, kw_only=True)

    @property
    def item(self) -> Any:
        """The chosen item, or None: nothing could be released."""
        return self.items[0] if self.items else None

    def price(self) -> Price:
        """What to charge. One draw of the exponential mechanism, with nothing beside it, has
        bounded range.
        """
        mechanism = self.mechanism
        alone = mechanism.bounded_range and self.privacy == mechanism.privacy()
        return Price(self.privacy, ranged=alone, neighbors=mechanism.neighbors, unit=self.unit)

    def written(self, encoded: Codec) -> dict[str, Any]:
        """All that was drawn, as JSON for a ledger."""
        free = {name: encoded(value) for name, value in self.free.items()}
        return {"items": [encoded(item) for item in self.items], "free": free}

    def with_answer(
        self,
        answer: Mapping[str, Any],
        decoded: Codec,
        request: str | None,
        recorded: str | None = None,
    ) -> Self:
        """The same release with what was written down as drawn."""
        items = tuple(decoded(item) for item in answer["items"])
        free = {name: decoded(value) for name, value in answer["free"].items()}
        return replace(self, items=items, free=free, request=request, recorded=recorded)


def select(
    data: object,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mechanism: Mechanism | None = None,
    universe: Universe = OPEN,
    neighbors: str | None = None,
    sensitivity: Number | None = None,
    resolution: Number | None = None,
    growth: int | None = None,
    item: str | Sequence[str] | None = None,
    user: str | None = None,
    score: str | None = None,
    weight: str | None = None,
    bound: int | None = None,
    k: int = 1,
    unit: str | None = None,
    ledger: Ledger | None = None,
    request: str | None = None,
    account: str | None = None,
    dataset: str | None = None,
    coins: Coins = SYSTEM,
) -> Release:
    """Release the best candidate under differential privacy.

    data          mapping from label to score; or a list, NumPy, polars or Arrow array (labels are
                  positions); or a pandas Series (labels are its index); or a table with the columns
                  `item` and `score`. Or a table of rows to count: an Ibis table, a path (CSV, whose
                  values are text; Parquet, a folder of Parquet files), a DuckDB relation, a Spark,
                  pandas, polars or Arrow frame. The data stays in its engine
    item          column of the items, or several that name one together
    user          column of the individuals: the score of an item is how many different ones it has.
                  Without `user` and `score` EVERY ROW COUNTS AS ONE INDIVIDUAL
    score         column of ready scores
    weight        with `user`: column of whole numbers, of which an individual adds the sum for each
                  item, clipped to 0 … `bound`, a public number
    epsilon       the price; a float means the decimal that it prints as: 0.1 is one tenth
    delta         probability with which the guarantee may fail; may be 0 only in a closed universe
    mechanism     a mechanism object, instead of epsilon, delta, neighbors and growth; by default
                  `auto` chooses one
    universe      "open": candidates are not known in advance. Otherwise the labels of all
                  candidates, or, where all are listed, their number; it must be public knowledge,
                  never read off the data. Candidates without a score have score 0
    neighbors     "add-remove": one individual moves all scores the same way, as counts do (the
                  default for whole numbers). "replace": any way (needed for scores that are not
                  monotone). On a grid there is no default
    sensitivity   by how much one individual can move a score (default 1)
    resolution    step of the public grid on which scores are rounded down. Without it scores must
                  be whole numbers, of whatever type, if `sensitivity` is one; otherwise they are
                  put on a grid of sensitivity / 64
    growth        how many candidates one individual's record touches at most, if there is a bound;
                  public
    k             how many items to release, best first; the price is for all of them. There may be
                  fewer
    unit          what the price hides, for the ledger, which holds one unit: "user" with `user` and
                  for ready scores, "row" where rows are counted. Say it where you know better:
                  unit="user" if every row is a person
    ledger        the privacy budget that pays: the price is charged before the draw, and the answer
                  is recorded before it is returned. What does not fit is refused (BudgetError)
                  before any data is read
    request       with a ledger: an id of your choice. If it was charged before, the recorded answer
                  is returned, no data is read, and it costs nothing more; then all options and the
                  name of the data must be the same
    account       with a ledger: the sub-budget to charge as well
    dataset       with a ledger: a name of the data, for who reads the history. By default that of a
                  path is the path, and data in memory has none
    coins         source of random bits; for tests only

    A strict ledger is charged before the data is read, and whatever is wrong with that is no answer
    (docs/promises.md). The answer is None when nothing could be released; that costs the same. With
    a ledger items come back as plain Python values; those of a type that JSON cannot hold, which a
    mapping and a declared universe may not have, come back as text, their `repr`.
    """
    size = _size(universe)
    check(mechanism, epsilon, delta, neighbors, growth, k, is_open=size is None)
    scale = Scale.of(sensitivity, resolution)
    if mechanism is None:
        scale.neighbors(neighbors)
    by_default = ROW if user is None and score is None and item is not None else USER
    options: dict[str, object] = {
        "item": item,
        "user": user,
        "score": score,
        "weight": weight,
        "bound": bound,
        "k": k,
    }
    options |= {"growth": growth, "neighbors": neighbors, "universe": size or OPEN}
    numbers = {"sensitivity": sensitivity, "resolution": resolution}
    payer = paid(
        ledger, request, account, dataset, "select", options, numbers, data, _labels(universe)
    )
    empty = unanswered(
        mechanism,
        epsilon,
        delta,
        neighbors,
        growth,
        k,
        universe=size,
        unit=checked(unit) or by_default,
    )
    known = None if payer is None else payer.recorded(empty)
    if known is not None:
        return known
    warn_of_price(empty.privacy)
    unsaid = unit is None and by_default == ROW
    if payer is not None:
        _declarable(universe)
        if unsaid and payer.strict:  # before the charge
            warn_of_rows()

    def read(held: ExitStack) -> Held:
        given = present(data)
        if payer is not None:
            _recordable(given)
        found = source(
            given,
            universe=universe,
            sensitivity=sensitivity,
            resolution=resolution,
            item=item,
            score=score,
            user=user,
            weight=weight,
            bound=bound,
        )
        held.enter_context(closing(found))
        if unsaid:  # when there are rows: an error would be the better hint
            warn_of_rows()
        return found

    return answer(empty, read, size, coins, payer)


def check(
    mechanism: Mechanism | None,
    epsilon: Number | None,
    delta: Number | None,
    neighbors: str | None,
    growth: int | None,
    k: int,
    *,
    is_open: bool,
) -> None:
    """Refuse options that no selection can meet, before anything is read: an engine may count for
    an hour.
    """
    whole("k", k)
    if mechanism is not None:
        _chosen(mechanism, k, epsilon=epsilon, delta=delta, neighbors=neighbors, growth=growth)
    else:
        _price(
            _required("epsilon", epsilon), 0 if delta is None else delta, neighbors, growth, is_open
        )


class Held(Protocol):
    """What `answer` needs of a source."""

    step: Fraction
    universe: int | None
    profile: Profile

    def item(self, outcome: Outcome) -> Any: ...


def answer(
    empty: Release,
    read: Callable[[ExitStack], Held],
    universe: int | None,
    coins: Coins,
    payer: Paid | None = None,
    decoded: Codec = decoded,
) -> Release:
    """The release with what its mechanism draws from a source, charged and recorded where somebody
    pays for it.

    empty     the release without its answer
    read      reads the data; what it opens is closed by the stack it is given
    universe  how many candidates there are; None: it is open
    decoded   reads items that a ledger keeps. A source whose items cannot be written down as they
              are offers `encoded(item)`, which gives JSON
    """
    if payer is None:
        with ExitStack() as held:
            return drawn(empty, read(held), coins)
    if payer.strict:
        rehearse(empty.mechanism, Profile([], universe=universe))

    def drawing(held: ExitStack) -> Draw:
        source = read(held)
        ready(empty.mechanism, source.profile)
        return lambda: drawn(empty, source, coins).written(getattr(source, "encoded", encoded))

    return payer.answer(empty, drawing, decoded)


def checked(unit: str | None) -> str | None:
    """A unit of privacy that the caller names."""
    return None if unit is None else label("unit", unit)


def unanswered(
    mechanism: Mechanism | None,
    epsilon: Number | None,
    delta: Number | None,
    neighbors: str | None,
    growth: int | None,
    k: int,
    *,
    universe: int | None,
    unit: str | None = None,
) -> Release:
    """A release that lacks its answer: what runs, why and at what price. Only public facts enter.

    With it `Paid.recorded` finds a recorded answer before the data is looked at.
    """
    why = "you chose it"
    if mechanism is None:
        mechanism, why = auto(
            epsilon=_required("epsilon", epsilon),
            delta=0 if delta is None else delta,
            universe=universe,
            neighbors=ADD_REMOVE if neighbors is None else neighbors,
            growth=growth,
            k=k,
        )
    return Release((), mechanism.privacy(), mechanism, why, {}, unit=unit)


def ready(mechanism: Mechanism, profile: Profile) -> None:
    """Meet before the charge what can be met there: options that the mechanism refuses, an engine
    that fails.
    """
    rehearse(mechanism, profile)
    profile.top()


def rehearse(mechanism: Mechanism, profile: Profile) -> None:
    """Let the mechanism draw once from invented scores, all 0 in a universe as large; what it draws
    is thrown away.
    """
    _outcomes(
        mechanism, Profile([], universe=profile.universe, sensitivity=profile.sensitivity), SYSTEM
    )


def drawn(empty: Release, source: Held, coins: Coins) -> Release:
    """The release with what its mechanism draws from a source."""
    outcomes = _outcomes(empty.mechanism, source.profile, coins)
    items = tuple(item for outcome in outcomes if (item := source.item(outcome)) is not None)
    beside = outcomes[0].diagnostics if outcomes else {}
    free = {name: _in_units(name, value, source.step) for name, value in beside.items()}
    return replace(empty, items=items, free=free)


def _outcomes(mechanism: Mechanism, profile: Profile, coins: Coins) -> Sequence[Outcome]:
    if mechanism.k > 1:
        return cast(Ranker, mechanism).ranking(profile, coins)
    return [mechanism.draw(profile, coins)]


def _size(universe: object) -> int | None:
    """How many candidates are declared; None: open."""
    if isinstance(universe, str) and universe == OPEN:
        return None
    if isinstance(universe, int | np.integer) and not isinstance(universe, bool):
        return whole("universe", int(universe))
    if not isinstance(universe, str) and hasattr(universe, "__len__"):
        return len(universe)
    shown = (
        universe
        if isinstance(universe, (str, bool, float, type(None)))
        else type(universe).__name__
    )
    raise ParameterError(
        "universe", shown, 'it must be "open", a size, or a collection of labels',
        "Leave it out if the candidates are not known in advance.",
    )  # fmt: skip


def _labels(universe: Universe) -> int | Iterable[object] | None:
    """The declared labels by value, or how many there are; None: open."""
    if isinstance(universe, str):
        return None
    return map(label_by_value, universe) if isinstance(universe, Iterable) else universe


_STRANGE = "of a type that a ledger cannot write down exactly"


def _declarable(universe: Universe) -> None:
    """Refuse declared labels that a ledger would write down as text."""
    declared = [] if isinstance(universe, str) or not isinstance(universe, Collection) else universe
    if not recordable(map(plain_label, declared)):
        raise ParameterError(
            "universe", "<labels>", f"a label is {_STRANGE}", "Use text or numbers."
        )


def _recordable(data: object) -> None:
    """Refuse labels that a ledger would write down as text, where they are at hand before the
    charge.
    """
    if isinstance(data, Mapping) and not recordable(map(label_by_value, data)):
        raise DataError(f"A label is {_STRANGE}. Use text or numbers.")


def _chosen(mechanism: Mechanism, k: int, **options: object) -> None:
    """Refuse what is not a mechanism, and options that it already sets."""
    if isinstance(mechanism, type) or not hasattr(mechanism, "draw"):
        raise ParameterError(
            "mechanism",
            mechanism,
            "it must be a mechanism object",
            "For example NestedMargin(epsilon=1, delta=1e-6).",
        )
    _refuse("mechanism", **options)
    if k not in (1, mechanism.k):
        raise ParameterError(
            "k", k, "mechanism already sets it", "Make the mechanism with that k, if it takes one."
        )


def law(
    data: object,
    *,
    mechanism: Mechanism,
    universe: Universe = OPEN,
    sensitivity: Number | None = None,
    resolution: Number | None = None,
    item: str | Sequence[str] | None = None,
    user: str | None = None,
    score: str | None = None,
    weight: str | None = None,
    bound: int | None = None,
) -> dict[Any, float] | Law:
    """The exact distribution of `select`'s answer: {item: probability, None: probability of no
    answer}.

    It is computed from the scores without any noise: for public or synthetic data only, never
    release it. Positions beyond a list, which `select` names, count as no answer here. With k > 1
    it is the law of the first item. For a `Profile`, which has no labels, the law by score is
    returned.
    """
    if isinstance(data, Profile):
        return mechanism.law(data)
    read = source(
        data,
        universe=universe,
        sensitivity=sensitivity,
        resolution=resolution,
        item=item,
        score=score,
        user=user,
        weight=weight,
        bound=bound,
    )
    with closing(read):
        exact = mechanism.law(read.profile)
        chances = {label: exact.of(value) for label, value in read.scores()}
    return {**chances, None: max(0.0, 1.0 - sum(chances.values()))}


def auto(
    *,
    epsilon: Number,
    delta: Number,
    universe: int | None,
    neighbors: str = ADD_REMOVE,
    growth: int | None = None,
    k: int = 1,
) -> tuple[Mechanism, str]:
    """The mechanism `select` uses by default, and why. Only public facts enter."""
    if universe is not None:
        whole("universe", universe)
    epsilon, delta = _price(epsilon, delta, neighbors, growth, universe is None)
    neighbors = relation(neighbors)
    if whole("k", k) > 1:
        return _auto_list(epsilon, delta, universe, neighbors, growth, k)
    flip = PermuteAndFlip(epsilon=epsilon, neighbors=neighbors)
    if universe is None:
        nested = NestedMargin(epsilon=epsilon, delta=delta, neighbors=neighbors, growth=growth)
        return nested, "the universe is open"
    if delta == 0:
        return flip, "delta is 0"
    if universe * delta <= 1:
        return (
            flip,
            f"the universe is closed and small (at most 1/delta = {int(1 / delta)} candidates)",
        )
    nested = NestedMargin(epsilon=epsilon, delta=delta, neighbors=neighbors, growth=growth)
    return _least_lead([flip, nested], universe)


def _price(
    epsilon: Number, delta: Number, neighbors: str | None, growth: int | None, is_open: bool
) -> tuple[Fraction, Fraction]:
    """Epsilon and delta, exactly, unless the options cannot be met."""
    if growth is not None:
        whole("growth", growth)
    if probability("delta", delta) == 1:
        raise ParameterError("delta", delta, "it must be below 1", "A delta of 1 promises nothing.")
    if neighbors is not None:
        relation(neighbors)
    price = positive("epsilon", epsilon), probability("delta", delta)
    if is_open and price[1] == 0:
        raise ParameterError(
            "delta", 0, "an open universe needs delta above 0: with delta = 0 every candidate, "
                        "seen or not, must "
            "be drawn now and then, and unseen ones cannot be listed",
            "Give a small delta such as 1e-6, or declare the universe.",
        )  # fmt: skip
    return price


def _auto_list(
    epsilon: Fraction,
    delta: Fraction,
    universe: int | None,
    neighbors: Neighbors,
    growth: int | None,
    k: int,
) -> tuple[Mechanism, str]:
    """The same for the best k."""
    if universe is None:
        sharp = SharpMargin(epsilon=epsilon, delta=delta, neighbors=neighbors, growth=growth, k=k)
        return sharp, "the universe is open"
    if k > universe:
        raise ParameterError(
            "k", k, "it must not exceed the size of the universe", "Ask for fewer."
        )
    contenders: list[Mechanism] = [
        Exponential(epsilon=epsilon, delta=delta, neighbors=neighbors, k=k),
        JointExponential(epsilon=epsilon, neighbors=neighbors, k=k),
    ]
    if delta:
        contenders.append(
            SharpMargin(epsilon=epsilon, delta=delta, neighbors=neighbors, growth=growth, k=k)
        )
    return _least_lead(contenders, universe)


def _least_lead(contenders: Sequence[Mechanism], universe: int) -> tuple[Mechanism, str]:
    """The one that needs the smallest lead for 95 % success, the first of equals; and by how much
    all of them do.
    """
    leads = _leads(tuple(contenders), universe)
    best = min(range(len(leads)), key=leads.__getitem__)
    told = [
        f"{type(mechanism).__name__} {lead}"
        for lead, mechanism in zip(leads, contenders, strict=True)
    ]
    return contenders[best], f"the lead needed here, in records: {', '.join(told)}"


@lru_cache(maxsize=256)
def _leads(contenders: tuple[Mechanism, ...], universe: int) -> list[int]:
    return [mechanism.lead(candidates=universe, near=mechanism.k) for mechanism in contenders]


def _required(name: str, value: Number | None) -> Number:
    if value is None:
        raise ParameterError(
            name, value, "it is required", "Give epsilon (and delta), or a mechanism."
        )
    return value


def _refuse(beside: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise ParameterError(name, value, f"{beside} already sets it", "Give one or the other.")


def _in_units(name: str, value: int, step: Fraction) -> int | float:
    """A free diagnostic in the units of the scores; counts of candidates stay as they are."""
    return float(value * step) if name == "max_estimate" and step != 1 else value
