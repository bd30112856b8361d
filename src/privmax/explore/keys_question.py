"""A question for all keys that enough individuals have: its form, its words, what runs for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

from privmax.errors import ParameterError
from privmax.explore.datasets import Dataset
from privmax.explore.questions import (
    KEYS,
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
from privmax.keyset.procedure import KeySearch
from privmax.keyset.release import PER_USER, WHY, AllKeys, KeysEnquiry
from privmax.ledger import Event
from privmax.numbers import plain
from privmax.universe import OPEN, read_whole


@dataclass(frozen=True)
class AskedKeys:
    """A question for all keys that enough individuals have, as the form says it."""

    dataset: str
    items: tuple[str, ...]
    epsilon: str
    delta: str
    per_user: int = PER_USER
    where: str | None = None
    counts: str | None = None
    other: bool = False
    account: str | None = None

    kind: ClassVar[str] = KEYS
    k: ClassVar[int] = 0
    universe: ClassVar[str] = OPEN

    @classmethod
    def of(cls, given: Mapping[str, Sequence[str]]) -> AskedKeys:
        """The question of a form."""
        one = partial(read_field, given)
        per_user = read_whole("per_user", one("per_user") or str(PER_USER))
        if per_user is None or per_user < 1:
            raise ParameterError(
                "per_user", one("per_user"), "it must be a whole number above 0", "For example 30."
            )
        return cls(
            one("dataset"),
            tuple(given.get("items", ())),
            one("epsilon"),
            one("delta") or "0",
            per_user,
            one("where") or None,
            one("counts") or None,
            bool(one("other")),
            one("account") or None,
        )

    def pairs(self, request: str) -> list[tuple[str, str]]:
        """The form again."""
        own = {"kind": KEYS, "per_user": self.per_user, "other": "yes" if self.other else None}
        return list_fields(self, own, request)

    def prepare(self, dataset: Dataset) -> Prepared:
        """Return the question and its data, unread; opens nothing."""
        require_epsilon(self.epsilon)
        return _prepare(self, dataset)

    def canonical(self) -> AskedKeys:
        """The same question, spelled in the one way in which a ledger writes it."""
        return replace(self, **spell(self))

    def words(self) -> str:
        """The question in words."""
        rows = name_rows(self.where)
        return f"Which {name_items(self.items)} of {self.dataset} do enough individuals have{rows}?"

    def describe(self) -> dict[str, Any]:
        """Return the facts that a report lists, beside those of the data set."""
        return {"per_user": self.per_user, "counts": self.counts, "other": self.other or None}

    @classmethod
    def guess(cls, charged: Event, dataset: Dataset) -> Iterable[AskedKeys]:
        """The questions that a charge may have been for."""
        options = charged.question.options
        counts = options.get("counts")
        for epsilon, delta in guess_costs(charged):
            yield cls(
                dataset.name,
                read_items(charged),
                epsilon,
                delta,
                options["per_user"],
                options.get("where"),
                None if counts is None else plain(Fraction(counts)),
                bool(options.get("other")),
                charged.account,
            )


@lru_cache(maxsize=256)
def _prepare(query: AskedKeys, dataset: Dataset) -> Prepared:
    """The same; remembered with the thresholds that it finds."""
    if not dataset.has_keys:
        raise ParameterError(
            "dataset", query.dataset, "keys are released if enough individuals have them, and it "
            "has no column of individuals", "Choose a data set that has a user column.",
        )  # fmt: skip
    reading = dataset.select(query.items, query.where)
    search = KeySearch(epsilon=query.epsilon, delta=query.delta, per_user=query.per_user)
    question = AllKeys(search=search, counts=query.counts, other=query.other, unit=dataset.unit)
    enquiry = KeysEnquiry.of(question, reading.columns)
    return Prepared(question, lambda: (search, WHY), reading, enquiry.answer)
