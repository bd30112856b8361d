"""Moments in milliseconds that DuckDB has no place for: one such row stops nothing."""

from __future__ import annotations

from contextlib import ExitStack

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privmax
from privmax.learning import Date, Schema
from privmax.learning.expressions import cell_expressions
from privmax.sources.engines import embedded_engine, engine_of
from privmax.sources.reading import as_table

FAR = (9_223_372_022_400_001, -9_223_372_022_400_001, (1 << 63) - 1, -(1 << 63))
LAW = {"mechanism": privmax.NestedMargin(epsilon=1, delta="0.1"), "item": "when", "user": "who"}


def write(path, *moments, zone=None):
    """Forty people who have one moment, and one more for each of the others."""
    held = [1_700_000_000_123] * 40 + list(moments)
    columns = {
        "who": [f"person {place}" for place in range(len(held))],
        "when": pa.array(held, pa.timestamp("ms", zone)),
        "other column": pa.array(held, pa.timestamp("ms", zone)),
    }
    pq.write_table(pa.table(columns), path, row_group_size=7)
    return path


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("far", FAR)
def test_a_far_moment_is_missing(tmp_path, zone, far):
    plain = write(tmp_path / "plain.parquet", zone=zone)
    odd = write(tmp_path / "odd.parquet", far, None, zone=zone)
    assert privmax.law(odd, **LAW) == privmax.law(plain, **LAW)


def test_as_a_user_it_is_missing_as_well(tmp_path):
    odd = write(tmp_path / "odd.parquet", FAR[0])
    asked = {"item": "who", "user": "when", "mechanism": LAW["mechanism"]}
    with pytest.raises(privmax.errors.DataError, match="user"):
        privmax.law(odd, **asked)


def test_files_of_a_folder_keep_their_rows_and_folders(tmp_path):
    for number, name in enumerate(("a", "b")):
        (tmp_path / f"place={name}").mkdir()
        write(tmp_path / f"place={name}" / "rows.parquet", number, FAR[number])
    with ExitStack() as held:
        table = as_table(tmp_path, ["who", "when", "place"], [], True, held)
        found = engine_of(table).rows(table)
    assert len(found) == 84
    by_place = {row[2]: [one for one in found if one[2] == row[2]] for row in found}
    assert [len(rows) for rows in by_place.values()] == [42, 42]
    for number, name in enumerate(("a", "b")):
        last = sorted(by_place[name], key=lambda row: int(row[0].split()[1]))[-2:]
        assert [(row[0], row[1]) for row in last][1] == ("person 41", None)
        assert (last[0][1].rpartition(".")[2] == "001") == bool(number)


def test_cells_of_dates(tmp_path):
    kind = Date("2023-01-01", "2024-01-01", every="month", missing=True)
    path = write(tmp_path / "odd.parquet", FAR[0], 0, None)
    with ExitStack() as held:
        table = as_table(path, ["when"], [], True, held)
        assert isinstance(engine_of(table), embedded_engine())
        [cell] = cell_expressions(Schema({"when": kind}), table)
        found = engine_of(table).rows(table.select(cell=cell))
    assert [cell for (cell,) in found] == [11] * 40 + [0, 1, 0]
