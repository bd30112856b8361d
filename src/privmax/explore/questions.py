"""The common parts of both kinds of questions: fields of a form, and what runs for them.

The kinds are `item_question.py`, for the best items, and `keys_question.py`, for all keys that
enough individuals have. The pages use only what both have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privmax.errors import ParameterError
from privmax.keyset.release import PER_USER
from privmax.ledger import Event
from privmax.ledger.events import price_of
from privmax.ledger.request import Request
from privmax.numbers import exact, plain
from privmax.privacy import Privacy
from privmax.release import Release
from privmax.sources.conditions import Condition

LONGEST = 2_000
"""Characters of a field."""

ITEMS, KEYS = "items", "keys"
"""The values of the field `kind`, one for each kind of question."""

FIELDS = {
    "kind": ITEMS, "dataset": "", "items": "", "where": "", "k": "1", "ranked": "",
    "per_user": str(PER_USER), "epsilon": "1", "delta": "1e-6", "universe": "", "counts": "",
    "other": "", "account": "", "request": "",
}  # fmt: skip
"""The fields of the form, and what they hold at first."""

KEPT = (
    "kind", "k", "ranked", "per_user", "epsilon", "delta", "universe", "counts", "other", "account",
)  # fmt: skip
"""Fields that do not depend on the data set."""

Reader = Callable[[ExitStack], object]


@dataclass(frozen=True)
class Prepared:
    """A question that may run; nothing is opened yet.

    Args:
        question: What runs at what cost, for the pipeline.
        choose: What draws, and why that one: it may take seconds to find out.
        read: How the data is read.
        run: Reads data, charges what pays, draws and records.
    """

    question: Any
    choose: Callable[[], tuple[Any, str]]
    read: Reader
    run: Callable[[Reader, Request], Release]

    def answer(self, paying: Request, read: Reader | None = None) -> Release:
        """Answer the question, from `read` in place of its own data where that is given."""
        return self.run(self.read if read is None else read, paying)


def read_field(given: Mapping[str, Sequence[str]], name: str) -> str:
    """Return what a field holds, without spaces around it."""
    value = given.get(name, [""])[-1].strip()
    if len(value) > LONGEST:
        raise ParameterError(name, "…", "it is too long", "")
    return value


def require_epsilon(epsilon: str) -> None:
    """Refuse an empty field."""
    if not epsilon:
        raise ParameterError.required("epsilon", "", "For example 1.")


def list_fields(query: Any, own: Mapping[str, object], request: str) -> list[tuple[str, str]]:
    """Return the fields of a form: what both kinds have, and those of its own."""
    values = {
        "dataset": query.dataset,
        "where": query.where,
        "epsilon": query.epsilon,
        "delta": query.delta,
        "counts": query.counts,
        "account": query.account,
        **own,
        "request": request,
    }
    items = [("items", item) for item in query.items]
    return items + [(key, str(value)) for key, value in values.items() if value is not None]


def spell(query: Any) -> dict[str, Any]:
    """Return what both kinds have, in the one way in which a ledger writes it."""
    return {
        "epsilon": plain(exact("epsilon", query.epsilon)),
        "delta": plain(exact("delta", query.delta)),
        "where": None if query.where is None else str(Condition.of(query.where)),
        "counts": None if query.counts is None else plain(exact("counts", query.counts)),
    }


def name_items(items: Sequence[str]) -> str:
    """Return the columns of items in words."""
    return " and ".join(f"“{item}”" for item in items)


def name_rows(where: str | None) -> str:
    """Return which rows count, in words."""
    return f", counting rows where {where}" if where else ""


def read_items(charged: Event) -> tuple[str, ...]:
    """Return the columns of items that a ledger recorded."""
    item = charged.question.options.get("item", charged.question.columns.get("item"))
    return (item,) if isinstance(item, str) else tuple(item or ())


def guess_costs(charged: Event) -> Iterable[tuple[str, str]]:
    """Return what a question may have cost without counts, which may use delta once more."""
    cost: Privacy = price_of(charged.body["price"]).privacy
    counts = charged.question.options.get("counts")
    epsilon = cost.epsilon - (Fraction(counts) if counts else 0)
    for delta in (cost.delta, cost.delta / 2):
        yield plain(epsilon), plain(delta)
