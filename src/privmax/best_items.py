"""The question for the best items: a mechanism chooses one, or k, of the candidates of a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from privmax.choice import Choice, auto, check_price, check_service, draw_outcomes
from privmax.counts import CountNoise, choose_noise
from privmax.encoding import decode
from privmax.errors import EngineError, ParameterError, WorkError, refuse_given
from privmax.labels import key_by_name
from privmax.ledger.events import BASKET, ROW, USER, Charge, label
from privmax.mechanisms.contract import Mechanism
from privmax.mechanisms.registry import build, check_name
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, flag, positive, probability, whole
from privmax.payload import Drawn, Read
from privmax.privacy import ADD_REMOVE, Privacy
from privmax.profile import LARGEST_UNIVERSE
from privmax.relative import RelativeNoise
from privmax.release import CHOSEN_BY_CALLER, Release, is_ranked
from privmax.sources.base import Source
from privmax.sources.scale import WHOLE, Scale
from privmax.universe import OPEN_UNIVERSE, Universe


@dataclass(frozen=True, kw_only=True)
class BestItems:
    """The question for the best items: mechanism, cost and universe. No data enters.

    It implements `Releasable`.

    Args:
        epsilon, delta: The cost, where the mechanism is to be chosen, or is given by its name.
        given: A mechanism, or its name; None: `auto` chooses.
        neighbors: The relation the cost is stated for; None: "add-remove".
        growth: How many candidates one individual's record touches at most, if there is a bound.
        k: How many items are released.
        ranked: Whether their order must be, too: `auto` then chooses what releases one, and a given
            mechanism that does not is refused.
        universe: All candidates there are.
        unit: What the cost hides; None: not given.
        counts: What noisy counts of the items cost, in epsilon beside the items; None: there are
            none.
        scale: On which numbers scores stand, and by how many steps one individual moves one; None:
            not said, and nothing is released that needs it (counts, distances).
        rows: The relation of rows that the cost is stated for, where that is not the one that
            scores move by: rows may then reach scores through coins of their own, and a cost of
            bounded range is not claimed.
        choose: Chooses the mechanism where none is given; None: `auto`.
        extra: What is charged on top, such as the chance that what the caller promises fails.
        read_item: Reads an item that a ledger keeps, as its source wrote it.

    Examples:
        >>> question = BestItems(epsilon=1, universe=Universe(9), neighbors="replace",
        ...                      rows="add-remove")
        >>> question.choice.mechanism.neighbors, question.charge().neighbors
        ('replace', 'add-remove')
    """

    epsilon: Number | None = None
    delta: Number | None = None
    given: Mechanism | str | None = None
    neighbors: str | None = None
    growth: int | None = None
    k: int = 1
    ranked: bool = False
    universe: Universe = OPEN_UNIVERSE
    unit: str | None = None
    counts: Number | None = None
    scale: Scale | None = None
    rows: str | None = None
    choose: Callable[..., Choice] | None = None
    extra: Privacy | None = None
    read_item: Read = decode

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k))
        if self.counts is not None:
            positive("counts", self.counts, "For example 0.2, or leave it out.")
        object.__setattr__(self, "ranked", flag("ranked", self.ranked))
        if self.unit not in (None, USER, ROW, BASKET):
            label("unit", self.unit)
        if self.given is not None and not isinstance(self.given, str):
            self._check_given(self.given)
        else:
            if isinstance(self.given, str):
                check_name(self.given)
            if self.epsilon is None:
                remedy = "Give epsilon (and delta), or a mechanism."
                raise ParameterError.required("epsilon", "", remedy)
            delta = 0 if self.delta is None else self.delta
            is_open = self.universe.size is None and self.given is None
            check_price(self.epsilon, delta, self.neighbors, self.growth, is_open=is_open)

    @cached_property
    def choice(self) -> Choice:
        """The mechanism that runs, and the reason; decided once."""
        if self.given is not None and not isinstance(self.given, str):
            return Choice(self.given, CHOSEN_BY_CALLER)
        options: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": 0 if self.delta is None else self.delta,
            "neighbors": ADD_REMOVE if self.neighbors is None else self.neighbors,
            "growth": self.growth,
            "k": self.k,
        }
        if self.given is not None:
            made = build(self.given, **options, ranked=self.ranked or None)
            self._check_ranked(made)
            return Choice(made, CHOSEN_BY_CALLER)
        choose = auto if self.choose is None else self.choose
        return choose(**options, ranked=self.ranked, universe=self.universe)

    @cached_property
    def count_noise(self) -> CountNoise:
        """The noise on counts, where they are asked for, and what they cost.

        They may use as much delta as the items, and it is charged for both.
        """
        mechanism = self.choice.mechanism
        delta = mechanism.privacy().delta if self.delta is None else self.delta
        growth = getattr(mechanism, "growth", None) if self.growth is None else self.growth
        return choose_noise(
            Privacy(self.counts or 0, probability("delta", delta)),
            k=mechanism.k,  # a mechanism may bring its own
            growth=growth,
            neighbors=mechanism.neighbors,
            sensitivity=self._scale.steps,
            step=self._scale.step,
        )

    @cached_property
    def order_noise(self) -> RelativeNoise | None:
        """The noise on counts that the order is made from; None: no such counts are released."""
        mechanism = self.choice.mechanism
        if mechanism.k == 1 or self.scale is None:
            return None
        from privmax.mechanisms.ranked_margin import RankedMargin

        if not isinstance(mechanism, RankedMargin):
            return None
        return mechanism.noise(self.scale.steps, self.scale.step)

    @property
    def _scale(self) -> Scale:
        return WHOLE if self.scale is None else self.scale

    def privacy(self) -> Privacy:
        """Return the cost of the answer and of all that is released with it."""
        privacy = self.choice.mechanism.privacy()
        if self.extra is not None:
            privacy += self.extra
        return privacy if self.counts is None else privacy + self.count_noise.privacy

    def describe(self) -> str:
        """Return a description of the mechanism."""
        return repr(self.choice.mechanism)

    def charge(self) -> Charge:
        """Return the charge. A mechanism has bounded range only with nothing beside it."""
        mechanism, privacy = self.choice.mechanism, self.privacy()
        bounded_range = (
            mechanism.bounded_range and self.rows is None and privacy == mechanism.privacy()
        )
        relation = mechanism.neighbors if self.rows is None else self.rows
        return Charge(privacy, bounded_range=bounded_range, neighbors=relation, unit=self.unit)

    def check(self) -> None:
        """Refuse a universe that the mechanism cannot draw from, before anything is charged.

        What `auto` chose serves every universe that a profile can hold.
        """
        size = self.universe.size
        if self.given is not None or (size is not None and size > LARGEST_UNIVERSE):
            check_service(self.choice.mechanism, size)

    def preflight(self, source: Source) -> None:
        """Meet before the charge what can be met there: an engine that fails, and more candidates
        than can be listed. For the latter a draw is tried, with coins of its own, and thrown away:
        how much is listed does not depend on the coins.
        """
        source.profile.top()
        if not getattr(source, "may_be_too_many", False):  # somebody else's need not say
            return
        try:
            draw_outcomes(self.choice.mechanism, source.profile, SYSTEM)
        except (EngineError, WorkError):
            raise
        except Exception:  # may depend on the coins, so it counts only in the draw that is charged
            return

    def draw(self, source: Source, coins: Coins) -> Drawn:
        """Draw from a source, with the names and counts of the items."""
        outcomes = draw_outcomes(self.choice.mechanism, source.profile, coins)
        pairs = zip(source.names(outcomes), outcomes, strict=True)
        named = [(item, outcome) for item, outcome in pairs if item is not None]
        if len(named) > 1 and not is_ranked(self.choice.mechanism):
            key = key_by_name(item for item, _ in named)
            named.sort(key=lambda pair: key(pair[0]))
        items = tuple(item for item, _ in named)
        extra = outcomes[0].diagnostics if outcomes else {}
        diagnostics = {name: _in_units(name, value, source.step) for name, value in extra.items()}
        relative = [one.relative for _, one in named if one.relative is not None]
        if self.counts is None and self.order_noise is None:
            return Drawn(items, diagnostics)
        assert (source.profile.sensitivity, source.step) == (self._scale.steps, self._scale.step)
        empty = self.draw_nothing()
        drawn = replace(empty, items=items, diagnostics=diagnostics)
        if empty.relative_noise is not None:  # the first may have been one without a name
            steps = [one - relative[0] for one in relative]
            drawn = replace(drawn, relative=tuple(map(empty.relative_noise.in_units, steps)))
        if empty.noise is not None:
            true_counts = source.counts([outcome for _, outcome in named])
            drawn = replace(drawn, counts=empty.noise.add_all(true_counts, coins))
        return drawn

    def draw_nothing(self) -> Drawn:
        """No items."""
        empty = Drawn()
        if self.counts is not None:
            empty = replace(empty, counts=(), noise=self.count_noise.noise)
        if self.order_noise is not None:
            empty = replace(empty, relative=(), relative_noise=self.order_noise)
        return empty

    def write(self, payload: Drawn, source: Source) -> dict[str, Any]:
        """Write what was drawn for a ledger."""
        return payload.to_json(source.encode)

    def read(self, written: Mapping[str, Any]) -> Drawn:
        """Return what a ledger recorded."""
        return Drawn.from_json(written, self.read_item)

    def release(self, payload: Drawn) -> Release:
        """The release of what was drawn."""
        mechanism, why = self.choice
        return Release(
            payload,
            self.privacy(),
            mechanism,
            why,
            unit=self.unit,
            requested=mechanism.k,
            counts_privacy=None if self.counts is None else self.count_noise.privacy,
        )

    def _check_given(self, mechanism: Mechanism) -> None:
        """Refuse what is not a mechanism, and options that it already sets."""
        if isinstance(mechanism, type) or not hasattr(mechanism, "draw"):
            raise ParameterError(
                "mechanism",
                mechanism,
                "it must be a mechanism object",
                "For example NestedMargin(epsilon=1, delta=1e-6).",
            )
        fixed = ("epsilon", "delta", "neighbors", "growth")
        given = {name: getattr(self, name) for name in fixed}
        refuse_given(given, "the mechanism already sets it", "Give one or the other.")
        if self.k not in (1, mechanism.k):
            raise ParameterError(
                "k",
                self.k,
                "the mechanism already sets it",
                "Make the mechanism with that k, if it takes one.",
            )
        self._check_ranked(mechanism)

    def _check_ranked(self, mechanism: Mechanism) -> None:
        """Refuse a mechanism that does not release the order that is asked for."""
        if self.ranked and not is_ranked(mechanism):
            raise ParameterError(
                "ranked",
                self.ranked,
                f"{type(mechanism).__name__} releases a set, and not its order",
                "Leave ranked out, or use one that releases an order, such as ranked-margin.",
            )


def _in_units(name: str, value: int, step: Fraction) -> int | float:
    """A diagnostic in the units of the scores; counts of candidates stay as they are."""
    return float(value * step) if name == "max_estimate" and step != 1 else value
