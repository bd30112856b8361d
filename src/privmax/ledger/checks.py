"""The checks of a file on each event that any program writes: triggers in plain SQL.

They see what is grossly wrong: a total above the budget, a charge that is not counted, an answer
that nobody charged. SQLite has no exact fractions, so sums are compared as floats, with room for
their rounding; privmax compares exactly before it builds on an event (`replay.follows`). Events are
canonical JSON, so a number is found by the text before it: SQLite's own functions for JSON may not
be used by the triggers of a file that is not trusted.
"""

from __future__ import annotations

from typing import Final

ROOM: Final = 1e-9
"""The relative error allowed for the rounding of floats."""


def _number(text: str, *marks: str) -> str:
    """Return SQL for the fraction, such as 1/10, behind some marks in a text.

    Each mark is sought behind the one before; NULL where there is none.

    LIMIT keeps SQLite from writing each query out within the next, as often as that uses it: every
    connection would compile hundreds of calls for its first event, in more time than the disk takes
    for the commit.
    """
    rest = _behind(text, *marks)
    below = "CASE WHEN t LIKE '%/%' THEN CAST(substr(t, instr(t, '/') + 1) AS REAL) ELSE 1 END"
    cut = f"SELECT substr(t, 1, instr(t, '\"')) t FROM ({rest}) LIMIT 1"
    # SQLite reads a number as far as it goes
    return f"(SELECT CAST(t AS REAL) / {below} FROM ({cut}) LIMIT 1)"


def _behind(text: str, *marks: str) -> str:
    """Return a query for the rest of a text behind some marks."""
    query = f"SELECT {text} t"
    for mark in marks:
        query = (
            f"SELECT substr(t, instr(t, '{mark}') + {len(mark)}) t FROM ({query}) WHERE "
            f"instr(t, '{mark}') LIMIT 1"
        )
    return query


def _total(totals: str, part: str, name: str) -> str:
    return _number(totals, '"whole":', f'"{part}":', f'"{name}":"')


def _sum(totals: str) -> str:
    """Return what the rule has added up.

    Rules that cost all charges together have it in their state.
    """
    state = _number(totals, '"whole":', '"state":{"delta":', '"epsilon":"')
    return f"coalesce({state}, {_total(totals, 'spent', 'epsilon')})"


_OVERSPENT = " OR ".join(
    f"{_total('NEW.totals', 'spent', name)} > {_total('NEW.totals', 'budget', name)} * {1 + ROOM}"
    for name in ("epsilon", "delta")
)
_PRICE = _number("NEW.body", '"price":', '"epsilon":"')
_NEGATIVE = " OR ".join(
    f"coalesce((SELECT substr(t, 1, 1) NOT BETWEEN '0' AND '9' FROM ({value}) LIMIT 1), 1)"
    for value in (_behind("NEW.body", '"price":', f'"{name}":"') for name in ("epsilon", "delta"))
)
_NEGATIVE_RHO = " OR ".join(
    f"coalesce((SELECT substr(t, 1, 1) NOT BETWEEN '0' AND '9' FROM ({value}) LIMIT 1), 0)"
    for value in (
        _behind("NEW.body", '"price":', f'"ranged":{bounded_range},"rho":', '"')
        for bounded_range in ("true", "false")
    )
)
_UNCOUNTED = f"{_sum('NEW.totals')} < ({_sum('old.totals')} + {_PRICE}) * {1 - ROOM}"


def _whole(totals: str, begin: str, end: str) -> str:
    """Return the text of the totals of the whole, from one mark on, before another."""
    return (
        f"(SELECT substr(t, instr(t, '{begin}'), instr(t, '{end}') - instr(t, '{begin}')) "
        f"FROM (SELECT substr({totals}, instr({totals}, '\"whole\":')) || '~' t LIMIT 1) LIMIT 1)"
    )


def _differ(begin: str, end: str) -> str:
    return f"{_whole('NEW.totals', begin, end)} <> {_whole('old.totals', begin, end)}"


_BUDGET, _NEIGHBORS = '"budget":', '"neighbors":'
_BEFORE = "SELECT 1 FROM privmax_events old WHERE old.ledger = NEW.ledger AND old.seq = NEW.seq - 1"
_CHARGED = (
    "SELECT 1 FROM privmax_events old WHERE old.ledger = NEW.ledger AND old.request = NEW.request "
    "AND old.kind = 'reserved' AND old.account IS NEW.account AND old.who = NEW.who"
)

_REFUSED = {
    "kinds": (
        "NEW.kind NOT IN ('created', 'reserved', 'released', 'granted', 'account')",
        "no such kind of event",
    ),
    "requests": (
        "NEW.kind IN ('reserved', 'released') AND NEW.request IS NULL",
        "a charge has an id",
    ),
    "fits": (_OVERSPENT, "no more is spent than was granted"),
    "prices": (
        f"NEW.kind = 'reserved' AND ({_NEGATIVE})",
        "a price is not negative",
    ),
    "rhos": (
        f"NEW.kind = 'reserved' AND ({_NEGATIVE_RHO})",
        "a rho is not negative",
    ),
    "counts": (
        f"NEW.kind = 'reserved' AND EXISTS ({_BEFORE} AND {_UNCOUNTED})",
        "a charge is counted",
    ),
    "spent": (
        f"NEW.kind <> 'reserved' AND EXISTS ({_BEFORE} AND {_differ(_NEIGHBORS, '~')})",
        "only a charge changes what is spent",
    ),
    "budget": (
        f"NEW.kind <> 'granted' AND EXISTS ({_BEFORE} AND {_differ(_BUDGET, _NEIGHBORS)})",
        "only a grant changes a budget",
    ),
    "answers": (
        f"NEW.kind = 'released' AND NOT EXISTS ({_CHARGED})",
        "an answer is of whoever was charged",
    ),
}

TRIGGERS = {
    f"privmax_events_{name}": f"CREATE TRIGGER privmax_events_{name} BEFORE INSERT ON "
    f"privmax_events WHEN {when} "
    f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
    for name, (when, message) in _REFUSED.items()
}
"""By name. A file that an older privmax made is given them when it is next written to."""
