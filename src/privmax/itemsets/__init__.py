"""Frequent itemsets under differential privacy: which things are bought together, with no list of
what there is.
"""

from privmax.itemsets.published import (
    BLST10,
    METHODS,
    BLST10Laplace,
    DiffPart,
    PrefixTree,
    PrivBasis,
    SmartTrunc,
)
from privmax.itemsets.release import ItemsetRelease, top_itemsets

__all__ = [
    "BLST10",
    "METHODS",
    "BLST10Laplace",
    "DiffPart",
    "ItemsetRelease",
    "PrefixTree",
    "PrivBasis",
    "SmartTrunc",
    "top_itemsets",
]
