"""Published methods for private frequent itemsets, to compare with.

They have one interface (`Method`), and a file each.
"""

from __future__ import annotations

from privmax.itemsets.method import Found, Method, Problem
from privmax.itemsets.published.blst10 import BLST10, BLST10Laplace
from privmax.itemsets.published.diff_part import DiffPart
from privmax.itemsets.published.prefix_tree import PrefixTree
from privmax.itemsets.published.priv_basis import PrivBasis
from privmax.itemsets.published.smart_trunc import SmartTrunc

METHODS: dict[str, type[Method]] = {
    "blst10": BLST10,
    "blst10-laplace": BLST10Laplace,
    "priv-basis": PrivBasis,
    "smart-trunc": SmartTrunc,
    "diff-part": DiffPart,
    "prefix-tree": PrefixTree,
}
"""Every method by the name the command line knows it by."""

__all__ = [
    "BLST10",
    "METHODS",
    "BLST10Laplace",
    "DiffPart",
    "Found",
    "Method",
    "PrefixTree",
    "PrivBasis",
    "Problem",
    "SmartTrunc",
]
