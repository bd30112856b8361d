"""What is asked of ledgers, and how what they say is written down."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from privmax.errors import BudgetError, LedgerError, ParameterError
from privmax.ledger import Charge, rules
from privmax.privacy import Privacy

WHAT = {"command": "select", "mechanism": "x", "options": {"k": 2}, "data": "sales.csv"}
OTHER = {**WHAT, "options": {"k": 3}, "data": "other.csv"}
PURE, MIXED = Charge(Privacy("1/10")), Charge(Privacy("1/5", "1e-9"))
RANGED = Charge(Privacy("1/4"), bounded_range=True)
RHO = Charge(Privacy("1/2", "1e-7"), rho=Fraction(1, 200))
REPLACED = Charge(Privacy("1/10"), neighbors="replace")
USERS = Charge(Privacy("1/10"), unit="user")
ROWS = Charge(Privacy("1/10"), unit="row")
DEAR = Charge(Privacy(5))


def said(value: Any) -> Any:
    """A value as JSON has it."""
    if value is None or isinstance(value, (bool, int, str, float)):
        return value
    if isinstance(value, Privacy):
        return {name: said(getattr(value, name)) for name in ("epsilon", "delta")}
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, dict):
        return {str(key): said(one) for key, one in value.items()}
    if isinstance(value, rules.Total):
        return said(value.as_json())
    if isinstance(value, (list, tuple)):
        return [said(one) for one in value]
    return str(value)


def attempt(call: Callable[[], Any]) -> Any:
    try:
        return said(call())
    except (LedgerError, ParameterError) as error:
        more = [error.cost, error.left, error.account] if isinstance(error, BudgetError) else []
        return [type(error).__name__, str(error), said(more)]
