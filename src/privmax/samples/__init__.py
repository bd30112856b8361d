"""The data sets included in privmax, to try things on.

They are invented, so whatever they hold may be shown.

tools/samples.py makes them; docs/samples.md says what they are like.
"""

from __future__ import annotations

from pathlib import Path

from privmax.errors import ParameterError

NAMES = {
    "receipts": "Receipts of a corner shop, one row per article: receipt, member, article.",
    "searches": "A log of searches, one row per search: person, query.",
    "counts": "How many people made each of these searches, one row per query: query, people.",
    "members": "Members of the shop, one row each: age, visits, spend, distance, and card (0 or 1) "
    "to learn.",
}
"""The names of the data sets, and a line about each."""


def path(name: str) -> Path:
    """Return the CSV file of a data set.

    Args:
        name: One of `NAMES`.

    Raises:
        ParameterError: There is no such data set.

    Examples:
        >>> path("receipts").name
        'receipts.csv'
    """
    if name not in NAMES:
        raise ParameterError(
            "sample", name, "there is no such data set", f"There are {', '.join(NAMES)}."
        )
    return Path(__file__).parent / f"{name}.csv"


def __dir__() -> list[str]:
    return __all__


__all__ = ["NAMES", "path"]
