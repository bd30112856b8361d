"""Frequent itemsets under differential privacy: which items are bought together.

No list of all items is needed.
"""

from typing import TYPE_CHECKING, Any

from privmax.itemsets.mining import Layout, top_itemsets
from privmax.itemsets.release import GroupedItemsetRelease, ItemsetRelease

if TYPE_CHECKING:
    from privmax.itemsets.published import (
        BLST10,
        METHODS,
        BLST10Laplace,
        DiffPart,
        PrefixTree,
        PrivBasis,
        SmartTrunc,
    )


def __getattr__(name: str) -> Any:
    """The published methods are loaded when one is first named: nothing else here needs them."""
    if name not in __all__:
        raise AttributeError(f"module 'privmax.itemsets' has no attribute {name!r}")
    from privmax.itemsets import published

    return getattr(published, name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "BLST10",
    "METHODS",
    "BLST10Laplace",
    "DiffPart",
    "GroupedItemsetRelease",
    "ItemsetRelease",
    "Layout",
    "PrefixTree",
    "PrivBasis",
    "SmartTrunc",
    "top_itemsets",
]
