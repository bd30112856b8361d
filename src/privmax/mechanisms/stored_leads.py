"""Leads of the large-margin mechanisms at common costs, which take longest to compute.

For one winner in an open universe, with probability .95. They are public numbers, computed from
exact laws: `python tests/exact/test_stored_leads.py` computes them once more and writes them here.
"""

from __future__ import annotations

from fractions import Fraction

DELTAS = tuple(Fraction(1, 10**digits) for digits in range(5, 11))
"""The deltas of each row of `LEADS`."""

SUCCESS = Fraction(19, 20)

LEADS: dict[str, dict[str, tuple[int, ...]]] = {
    "LargeMargin": {
        "1/10": (3681, 4302, 4926, 5547, 6168, 6790),
        "1/5": (1845, 2157, 2467, 2778, 3088, 3399),
        "1/4": (1478, 1726, 1976, 2224, 2472, 2721),
        "1/2": (744, 867, 992, 1117, 1240, 1365),
        "1": (376, 438, 501, 563, 625, 687),
        "2": (191, 223, 254, 286, 317, 348),
        "3": (131, 152, 173, 194, 215, 236),
        "4": (99, 116, 131, 148, 162, 179),
        "5": (83, 94, 106, 120, 133, 144),
        "8": (54, 63, 70, 78, 85, 94),
        "10": (45, 51, 58, 64, 71, 77),
    },
    "LargeMarginTruncated": {
        "1/5": (1867, 2178, 2489, 2800, 3110, 3421),
        "1/4": (1496, 1744, 1993, 2242, 2490, 2739),
        "1/2": (753, 877, 1001, 1126, 1250, 1374),
        "1": (381, 443, 506, 568, 630, 692),
        "2": (195, 227, 257, 289, 320, 351),
        "3": (134, 155, 176, 196, 217, 238),
        "4": (102, 118, 134, 150, 165, 181),
        "5": (85, 97, 108, 122, 135, 147),
        "8": (57, 65, 72, 80, 87, 96),
        "10": (47, 53, 60, 66, 73, 79),
    },
}  # fmt: skip
"""The leads of each mechanism, by epsilon, at each of the deltas."""


def find_lead(mechanism: str, epsilon: Fraction, delta: Fraction) -> int | None:
    """Return a stored lead of a mechanism; None: it is not stored.

    Examples:
        >>> find_lead("LargeMargin", Fraction(1), Fraction("1e-6"))
        438
        >>> find_lead("LargeMargin", Fraction(1), Fraction("2e-6"))
    """
    row = LEADS.get(mechanism, {}).get(str(epsilon))
    return row[DELTAS.index(delta)] if row and delta in DELTAS else None
