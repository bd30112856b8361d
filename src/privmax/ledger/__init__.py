"""A durable privacy budget: nothing is released uncharged, nothing is charged twice.

`Ledger` is where to start. Every release is made in one order: charge (committed durably), draw,
record, and only then hand out what was recorded.
"""

from privmax.ledger.batch import Batch
from privmax.ledger.events import Charge, Event, Fault
from privmax.ledger.ledger import Ledger, Reservation
from privmax.ledger.request import Request
from privmax.ledger.rules import RULES


def __dir__() -> list[str]:
    return __all__


__all__ = ["RULES", "Batch", "Charge", "Event", "Fault", "Ledger", "Request", "Reservation"]
