"""Values of all kinds: families, of which base data is made, and odd ones, of which one row is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

MORNING = dt.datetime(2024, 3, 1, 5)
BERLIN = dt.timezone(dt.timedelta(hours=1))

FAMILIES: dict[str, Callable[[int], Any]] = {
    "whole numbers": lambda n: n + 2,
    "whole numbers just below 2^53": lambda n: 2**53 - 90 + n,
    "whole numbers from 2^53 on": lambda n: 2**60 + n,
    "whole floats": lambda n: float(n + 2),
    "floats": lambda n: n + 0.25,
    "truths": lambda n: n % 2 == 0,
    "text": lambda n: f"tea {n}",
    "digits": lambda n: f"{n:03d}",
    "dates": lambda n: dt.date(2024, 1, 1) + dt.timedelta(days=n),
    "moments": lambda n: MORNING + dt.timedelta(minutes=n),
    "moments with a zone": lambda n: MORNING.replace(tzinfo=BERLIN) + dt.timedelta(minutes=n),
    "nanoseconds": lambda n: pd.Timestamp("2024-03-01") + pd.Timedelta(n + 1, "ns"),
    "nanoseconds with a zone": lambda n: (
        pd.Timestamp("2024-03-01", tz="UTC") + pd.Timedelta(n + 1, "ns")
    ),
    "durations": lambda n: dt.timedelta(hours=5 + n),
    "durations in nanoseconds": lambda n: pd.Timedelta(n + 1, "ns"),
    "times": lambda n: dt.time(5, n % 60),
    "decimals": lambda n: Decimal(n) + Decimal("0.10"),
    "bytes": lambda n: b"tea %d" % n,
    "tuples": lambda n: ("tea", n),
}
"""The n-th value of a kind. All are different, but for truths."""

ODD: dict[str, Any] = {
    "null": None,
    "empty text": "",
    "a whole number": 3,
    "2^53": 2**53,
    "2^60 + 1": 2**60 + 1,
    "2^70": 2**70,
    "a negative number": -(2**61),
    "a float": 0.5,
    "a whole float": 3.0,
    "a short float": np.float32(0.1),
    "a large float": 1e300,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "true": True,
    "text": "odd one out",
    "digits": "007",
    "bytes": b"odd",
    "a date": dt.date(2024, 1, 1),
    "a moment": dt.datetime(2024, 3, 1, 5, 0, 0, 1),
    "a moment with a zone": dt.datetime(2024, 3, 1, 5, tzinfo=dt.UTC),
    "a moment of another zone": dt.datetime(2024, 3, 1, 5, tzinfo=BERLIN),
    "a nanosecond": pd.Timestamp("2024-03-01 00:00:00.000000001"),
    "a moment of NumPy": np.datetime64("2024-03-01T00:00:00.000000002", "ns"),
    "a far year": np.datetime64("20000-01-01", "s"),
    "no time": pd.NaT,
    "a time": dt.time(5),
    "a duration": dt.timedelta(hours=5),
    "a duration of one nanosecond": pd.Timedelta(1, "ns"),
    "a duration of NumPy": np.timedelta64(7, "ns"),
    "a decimal": Decimal("0.10"),
    "a long decimal": Decimal("9007199254740993.5"),
    "a fraction": Fraction(1, 3),
    "a complex number": 1 + 2j,
    "an identifier": UUID(int=7),
    "a tuple": ("odd", 1),
    "a list": ["odd"],
    "an object": object(),
    "half a character": "\ud800",
}
