"""A durable privacy budget: nothing is released uncharged, nothing is charged twice.

`Ledger` is where to start. Every release is made in one order: charge (committed durably), draw,
record, and only then hand out what was recorded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privmax.ledger.batch import Batch
    from privmax.ledger.events import Charge, Event, Fault
    from privmax.ledger.ledger import Ledger, Reservation
    from privmax.ledger.request import Request
    from privmax.ledger.rules import RULES

_HOMES = {
    "RULES": "rules",
    "Batch": "batch",
    "Charge": "events",
    "Event": "events",
    "Fault": "events",
    "Ledger": "ledger",
    "Request": "request",
    "Reservation": "ledger",
}
"""The module of each name: a release without a ledger loads few of them."""


if not TYPE_CHECKING:  # who checks types sees the imports above, and that no other name exists

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'privmax.ledger' has no attribute {name!r}")
        value = getattr(import_module(f"privmax.ledger.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__


__all__ = ["RULES", "Batch", "Charge", "Event", "Fault", "Ledger", "Request", "Reservation"]
