"""A part of a budget as a ledger of its own, so that charging it waits for no other process.

Proof:      docs/proofs/ledger.md, "Parts"
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from privmax.errors import LedgerError, ParameterError
from privmax.ledger.events import LONGEST, Charge, label
from privmax.ledger.rules import BASIC
from privmax.privacy import ADD_REMOVE, Privacy, relation

if TYPE_CHECKING:
    from privmax.ledger.ledger import Ledger

REQUEST = "split {}"
"""Id of the request that charges the whole for a part."""


class LedgerPart(NamedTuple):
    """The ledger of a part, and the limits of all of its charges.

    Attributes:
        whole: Name of the ledger that was charged for it.
        id: Identity of that one.
    """

    whole: str
    id: str
    neighbors: str
    unit: str

    def check(self, name: str, charge: Charge) -> None:
        """Refuse a cost that does not add up with those of the whole."""
        own, other_terms = (self.neighbors, self.unit), (charge.neighbors, charge.unit)
        for what, one, other in zip(("neighbors", "unit"), own, other_terms, strict=True):
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
    place = whole._where if where is None else type(whole).at(where)._where
    there = _find(whole, place, name)
    try:
        if there is not None:
            _agree(there, part, budget)
        charge = Charge(budget, neighbors=part.neighbors, unit=part.unit)
        # With its place: a second part of the name, elsewhere, would have been charged for once.
        at = None if where is None else _describe(place)
        what = {"command": "split", "ledger": name, "at": at}
        request = REQUEST.format(name)
        if there is None and not whole.knows(request):
            whole.require(charge, what=what, request=request)  # before a file is made that stays
            _prepare(whole, place, name)  # before a place is charged for that cannot be made
        charged = whole.charge(charge, what, request=request)
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
        if "://" not in os.fspath(place):  # it is named as the caller named it
            there._store.shown = whole.where if where is None else os.fspath(where)
        return there
    except BaseException:
        if there is not None:
            there.close()
        raise


def _describe(where: str | os.PathLike[str]) -> str:
    """Describe a place as the whole records it.

    It is the absolute path with links followed, or a URL without its user and secrets.
    """
    text = os.fspath(where)
    if "://" not in text:
        return os.path.realpath(text)
    from privmax.ledger.postgres_urls import describe_place

    return describe_place(text)


def _find(whole: Ledger, place: str | Path, name: str) -> Ledger | None:
    """Return the ledger of a name in a place; None: there is none, or not even such a place."""
    try:
        return type(whole)(place, name, who=whole.who)
    except LedgerError as error:
        if error.missing is None:
            raise
        return None


def _prepare(whole: Ledger, place: str | Path, name: str) -> None:
    """Make what is missing of a place before it can hold a ledger."""
    with type(whole).at(place, name, who=whole.who) as there:
        there._store.prepare()


def _make_part(
    whole: Ledger, place: str | Path, name: str, budget: Privacy, part: LedgerPart
) -> Ledger:
    try:
        return whole._make(place, name, budget, BASIC, whole.who, whole.strict, part)
    except LedgerError:
        there = _find(whole, place, name)
        if there is None:
            raise
    with ExitStack() as stack:  # somebody else was quicker
        stack.callback(there.close)
        _agree(there, part, budget)
        stack.pop_all()
    return there


def _part(whole: Ledger, neighbors: str | None, unit: str | None) -> LedgerPart:
    """Return what the charges of a part are held to.

    What those of the whole are, or are going to be.
    """
    part = whole.part
    default = (ADD_REMOVE, None) if part is None else (part.neighbors, part.unit)
    neighbors = relation(neighbors or whole.neighbors or default[0])
    unit = unit or whole.unit or default[1]
    if unit is None:
        raise ParameterError.required(
            "unit", "it says what all charges to the ledger and its parts protect",
            "For example user.",
        )  # fmt: skip
    return LedgerPart(whole.name, whole._chain.origin.id, neighbors, label("unit", unit))


def _agree(there: Ledger, part: LedgerPart, budget: Privacy) -> None:
    """Refuse a ledger that is not the part that is asked for."""
    if there.part != part or there._chain.origin.budget != budget:
        raise LedgerError(
            f"{there.where} already has a ledger {there.name!r}, and it is not this part of "
            f"{part.whole!r}. Nothing was charged. Choose another name."
        )
