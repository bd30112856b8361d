"""A question for the best items: its form, its words, and what runs for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

from privmax.errors import ParameterError
from privmax.explore.datasets import Dataset
from privmax.explore.questions import (
    ITEMS,
    Prepared,
    guess_costs,
    list_fields,
    name_items,
    name_rows,
    read_field,
    read_items,
    require_epsilon,
    spell,
)
from privmax.ledger import Event
from privmax.numbers import plain
from privmax.selection import Selection
from privmax.universe import OPEN, Universe, read_whole

MOST = 1_000
"""The largest k that may be asked for."""

MOST_RANKED = 50
"""The same in order: which mechanism does that best takes long to find out."""


@dataclass(frozen=True)
class Asked:
    """A question for the best items, as the form says it."""

    dataset: str
    items: tuple[str, ...]
    epsilon: str
    delta: str = "0"
    k: int = 1
    ranked: bool = False
    universe: str = OPEN
    where: str | None = None
    counts: str | None = None
    account: str | None = None

    kind: ClassVar[str] = ITEMS

    @classmethod
    def of(cls, given: Mapping[str, Sequence[str]]) -> Asked:
        """The question of a form."""
        one = partial(read_field, given)
        k = read_whole("k", one("k") or "1")
        if k is None or not 1 <= k <= MOST:
            raise ParameterError("k", one("k"), f"it must be from 1 to {MOST}", "")
        return cls(
            one("dataset"),
            tuple(given.get("items", ())),
            one("epsilon"),
            one("delta") or "0",
            k,
            bool(one("ranked")) and k > 1,
            one("universe") or OPEN,
            one("where") or None,
            one("counts") or None,
            one("account") or None,
        )

    def pairs(self, request: str) -> list[tuple[str, str]]:
        """The form again."""
        own = {
            "k": self.k,
            "ranked": "yes" if self.ranked else None,
            "universe": None if self.universe == OPEN else self.universe,
        }
        return list_fields(self, own, request)

    def prepare(self, dataset: Dataset) -> Prepared:
        """Return the question and its data, unread; opens nothing."""
        require_epsilon(self.epsilon)
        if self.ranked and self.k > MOST_RANKED:
            raise ParameterError("k", self.k, f"pages release up to {MOST_RANKED} in order", "")
        return _prepare(self, dataset)

    def canonical(self) -> Asked:
        """The same question, spelled in the one way in which a ledger writes it."""
        universe = Universe.of(self.universe)
        return replace(
            self, **spell(self), universe=OPEN if universe.size is None else str(universe.size)
        )

    def words(self) -> str:
        """The question in words."""
        items = name_items(self.items)
        many = f"Which {items} is" if self.k == 1 else f"Which {self.k} of {items} are"
        return f"{many} at the top of {self.dataset}{name_rows(self.where)}?"

    def describe(self) -> dict[str, Any]:
        """Return the facts that a report lists, beside those of the data set."""
        return {"k": self.k, "ranked": self.ranked or None, "counts": self.counts}

    @classmethod
    def guess(cls, charged: Event, dataset: Dataset) -> Iterable[Asked]:
        """The questions that a charge may have been for."""
        options = charged.question.options
        k, counts = options.get("k", 1), options.get("counts")
        for epsilon, delta in guess_costs(charged):
            for ranked in (False, True):
                yield cls(
                    dataset.name,
                    read_items(charged),
                    epsilon,
                    delta,
                    k,
                    ranked and k > 1,
                    str(options.get("universe", OPEN)),
                    options.get("where"),
                    None if counts is None else plain(Fraction(counts)),
                    charged.account,
                )


@lru_cache(maxsize=256)
def _prepare(query: Asked, dataset: Dataset) -> Prepared:
    """The same; remembered, because a mechanism for a long list takes seconds to choose."""
    reading = dataset.select(query.items, query.where)
    selection = Selection.of(
        reading.columns,
        unit=dataset.unit,
        universe=Universe.of(query.universe),
        epsilon=query.epsilon,
        delta=query.delta,
        growth=dataset.growth,
        k=query.k,
        ranked=query.ranked,
        counts=query.counts,
    )
    run = partial(selection.answer, ready=reading.ready)
    return Prepared(selection.question, lambda: selection.question.choice, reading, run)
