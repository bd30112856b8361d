"""Requests: which ledger a release is charged to, and what else is said of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from privmax.errors import ParameterError, refuse_given
from privmax.ledger.events import label
from privmax.numbers import flag

if TYPE_CHECKING:
    from privmax.ledger.ledger import Ledger


@dataclass(frozen=True)
class Request:
    """The ledger, account and id under which a release is charged.

    `Ledger.request` makes one with a ledger. Without a ledger only `unit` and `check` can be said.

    Args:
        ledger: Where the release is charged and recorded; None: nowhere.
        id: Repeated, it gives the recorded answer at no extra cost. None: every release is a
            request of its own.
        account: The sub-budget to charge as well.
        dataset: Name of the data, for readers of the history; public.
        unit: What the cost hides, such as "user". A ledger has one unit. None: what the columns
            say, such as "row" where rows are counted.
        check: Only check that the data can be read, that columns and types fit, and that the
            ledger allows the cost. Nothing is drawn or charged.

    Raises:
        ParameterError: A name is not allowed, or needs a ledger.

    Examples:
        >>> Request(unit="user").unit
        'user'
    """

    ledger: Ledger | None = None
    id: str | None = None
    account: str | None = None
    dataset: str | None = None
    unit: str | None = None
    check: bool = False

    def __post_init__(self) -> None:
        names = {"request": self.id, "account": self.account, "dataset": self.dataset}
        if self.ledger is None:
            refuse_given(names, "there is no ledger to write it in", "Give a ledger.")
        for name, value in (names | {"unit": self.unit}).items():
            if value is not None:
                label(name, value)
        object.__setattr__(self, "check", flag("check", self.check))

    @classmethod
    def of(cls, ledger: object) -> Request:
        """Return the request that a `ledger=` argument means; None means one without a ledger."""
        if ledger is None:
            return UNPAID
        if isinstance(ledger, Request):
            return ledger
        from privmax.ledger.ledger import Ledger  # a release without one does not wait for it

        if isinstance(ledger, Ledger):
            return cls(ledger)
        raise ParameterError(
            "ledger",
            type(ledger),
            "it must be a Ledger",
            'For example Ledger("budget.db", "sales-2026").',
        )

    @classmethod
    def charged(cls, ledger: object, unit: str | None) -> Request:
        """Return the request that a release of a unit is charged to.

        Raises:
            ParameterError: It says what the question does not: another unit, or a check, which not
                every release has.
        """
        request = cls.of(ledger)
        if request.unit not in (None, unit):
            raise ParameterError(
                "unit", request.unit, f"the unit of this release is {unit}",
                "Set unit where you describe the question, not in the request.",
            )  # fmt: skip
        if request.check:
            raise ParameterError("check", True, "this cannot be checked alone", "Leave it out.")
        return request

    @property
    def payer(self) -> Ledger:
        """The ledger that pays, where there is one."""
        if self.ledger is None:
            raise ParameterError.required("ledger", "a request names none", "Give a ledger.")
        return self.ledger

    def payment(self) -> Request | None:
        """Return the payment of a request after unit and check were read; None without a ledger."""
        return None if self.ledger is None else replace(self, unit=None, check=False)


UNPAID = Request()
"""Nothing is charged, and nothing is said."""


def is_strict(ledger: Ledger | Request | None) -> bool:
    """Return whether a ledger pays that is charged before any data is read."""
    paying = Request.of(ledger).ledger
    return paying is not None and paying.strict
