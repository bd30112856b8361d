"""Times of day outside of the day, which Arrow and Parquet can hold: they are no times."""

from __future__ import annotations

from datetime import time

import numpy as np
import pytest

from privmax.sources.reading import source
from privmax.sources.roles import Columns
from privmax.universe import OPEN_UNIVERSE

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def make_times(unit: str) -> object:
    """01:00, 24:00, and six numbers that are not times of day, each of which ended the process,
    failed within DuckDB, or was written with bytes of its memory.
    """
    kind = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    second = UNITS[unit]
    day = 24 * 60 * 60 * second
    most = 20 * day if kind.bit_width == 32 else (1 << 63) - 1  # Parquet has 32 bits for ms
    numbers = [3600 * second, day, day + 1, -1, -5 * second, most, -most - 1, most // 5]
    held = np.array(numbers, f"i{kind.bit_width // 8}").tobytes()
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(held)])


def count(data: object, **columns: str) -> dict[object, int]:
    opened = source(
        data, Columns(**columns), universe=OPEN_UNIVERSE, sensitivity=None, resolution=None
    )
    try:
        return dict(opened.scores())
    finally:
        opened.close()


@pytest.mark.parametrize("kind", ["Arrow", "Parquet"])
@pytest.mark.parametrize("unit", UNITS)
def test_numbers_outside_of_the_day_are_missing(unit, kind, tmp_path):
    table = pa.table({"at": make_times(unit), "person": range(8), "tea": ["tea"] * 8})
    data = table
    if kind == "Parquet":
        data = tmp_path / "rows.parquet"
        parquet.write_table(table, data)
    assert count(data, item="at") == {time(1): 1, "24:00:00": 1}
    assert count(data, item="at", user="person") == {time(1): 1, "24:00:00": 1}
    assert count(data, item="tea", user="at", missing_users="drop") == {"tea": 2}
