"""A part of a budget as a ledger of its own, so that whoever charges it waits for nobody else.

Proof:      docs/proofs/ledger.md, "Parts"
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from privmax.errors import LedgerError, ParameterError
from privmax.ledger.events import LONGEST, Price, label
from privmax.ledger.rules import BASIC
from privmax.privacy import ADD_REMOVE, Privacy, relation

if TYPE_CHECKING:
    from privmax.ledger.ledger import Ledger

REQUEST = "split {}"
"""Id of the request that charges the whole for a part."""


class Part(NamedTuple):
    """What a ledger is a part of, and what all of its charges are held to.

    whole   name of the ledger that was charged for it
    id      identity of that one
    """

    whole: str
    id: str
    neighbors: str
    unit: str

    def takes(self, price: Price) -> bool:
        """Whether a cost adds up with those of the whole."""
        return (price.neighbors, price.unit or self.unit) == (self.neighbors, self.unit)

    def check(self, name: str, price: Price) -> None:
        """Refuse a cost that does not add up with those of the whole."""
        held, given = (self.neighbors, self.unit), (price.neighbors, price.unit or self.unit)
        for what, one, other in zip(("neighbors", "unit"), held, given, strict=True):
            if one != other:
                raise LedgerError(
                    f"The ledger {name!r} is a part of {self.whole!r}, whose charges have the "
                    f"{what} {one!r}; this one has {other!r}: such costs do not add up. Nothing "
                    f"was charged. Ask with the {what} {one!r}, or charge another ledger."
                )


def split(
    whole: Ledger,
    name: str,
    budget: Privacy,
    *,
    where: str | Path | None,
    neighbors: str | None,
    unit: str | None,
) -> Ledger:
    """Charge a ledger for a part of its budget, then make the ledger that has it, or find it."""
    label("name", name, LONGEST - len(REQUEST))
    if whole.rule != BASIC:
        raise LedgerError(
            f"The ledger {whole.name!r} has the rule {whole.rule!r}: only one with the rule "
            f"{BASIC!r} can be split. Open accounts in it instead."
        )
    part = _part(whole, neighbors, unit)
    place = whole._where if where is None else where
    there = whole._find(place, name)  # before anything is charged
    try:
        if there is not None:
            _agree(there, part, budget)
        price = Price(budget, neighbors=part.neighbors, unit=part.unit)
        # With its place: a second part of the name, elsewhere, would have been charged for once.
        at = None if where is None else _describe(where)
        what = {"command": "split", "ledger": name, "at": at}
        charged = whole.charge(price, what, request=REQUEST.format(name))
        if there is None:
            if charged.recorded:
                raise LedgerError(
                    f"The part {name!r} of the ledger {whole.name!r} was created and is gone. "
                    "Nothing was charged now. Restore it: a new one would forget what it spent. "
                    "Or split off a part with another name."
                )
            there = _make_part(whole, place, name, budget, part)
        if not charged.recorded:
            charged.record({"ledger": name})  # last: from here on it is never made again
        return there
    except BaseException:
        if there is not None:
            there.close()
        raise


def _describe(where: str | Path) -> str:
    """A place as the whole records it: an absolute path, or a URL without its user and secrets."""
    text = os.fspath(where)
    if "://" not in text:
        return os.path.abspath(text)
    from privmax.ledger.postgres import describe_place

    return describe_place(text)


def _make_part(whole: Ledger, place: str | Path, name: str, budget: Privacy, part: Part) -> Ledger:
    try:
        return whole._make(place, name, budget, BASIC, whole.who, whole.strict, part)
    except LedgerError:
        there = whole._find(place, name)
        if there is None:
            raise
    with ExitStack() as stack:  # somebody else was quicker
        stack.callback(there.close)
        _agree(there, part, budget)
        stack.pop_all()
    return there


def _part(whole: Ledger, neighbors: str | None, unit: str | None) -> Part:
    """What the charges of a part are held to: what those of the whole are, or are going to be."""
    held = whole.part
    default = (ADD_REMOVE, None) if held is None else (held.neighbors, held.unit)
    neighbors = relation(neighbors or whole.neighbors or default[0])
    unit = unit or whole.unit or default[1]
    if unit is None:
        raise ParameterError.required(
            "unit", "it says what all charges to the ledger and its parts protect",
            "For example user.",
        )  # fmt: skip
    return Part(whole.name, whole._origin.id, neighbors, label("unit", unit))


def _agree(there: Ledger, part: Part, budget: Privacy) -> None:
    """Refuse a ledger that is not the part that is asked for."""
    if there.part != part or there._origin.budget != budget:
        raise LedgerError(
            f"{there.where} already has a ledger {there.name!r}, and it is not this part of "
            f"{part.whole!r}. Nothing was charged. Choose another name."
        )
