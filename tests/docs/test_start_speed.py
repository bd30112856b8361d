"""The benchmark of starts: what it starts exists, and its table says what was measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from privmax.cli import COMMANDS

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import start, tables  # run from the project's root


def test_everything_that_is_started_starts():
    found = start.starts()
    assert {f"privmax {name} --help" for name in COMMANDS} < set(found)
    for name in (start.PYTHON, "privmax --version", "privmax select sam‹Tab›"):
        processor, wall = start.once(*found[name])
        assert processor > 0
        assert wall > 0


def test_medians_ratios_and_aims():
    names = [
        start.PYTHON,
        start.CLICK,
        "privmax --help",
        "privmax plan --help",
        "privmax select sam‹Tab›",
    ]
    walls = [
        (0.01, 0.02, 0.09),
        (0.1, 0.1, 0.1),
        (0.2, 0.25, 0.9),
        (0.2, 0.31, 0.32),
        (0.5, 0.5, 0.5),
    ]
    times = {
        name: [(wall / 2, wall) for wall in taken] for name, taken in zip(names, walls, strict=True)
    }
    rows = {row["start"]: row for row in start.rows(times)}
    assert [row["met"] for row in rows.values()] == [None, None, True, False, None]
    assert rows["privmax --help"]["python"] == pytest.approx(12.5)
    assert rows["privmax --help"]["click"] == pytest.approx(2.5)
    assert rows["privmax --help"]["processor"] == pytest.approx(0.125)
    run = {
        "command": "c",
        "date": "d",
        "cpu": "x",
        "cores": 2,
        "system": "s",
        "load": 0,
        "python": "3",
        "versions": {},
    }
    settings = {"rounds": 3, "limit": start.LIMIT}
    result = {"run": {**run, "source": "0"}, "settings": settings, "starts": list(rows.values())}
    _, table = tables.start_tables(result)
    shown = {line[0]: line[1:] for line in table.rows}
    assert shown["`privmax --help`"] == [
        "250 ms",
        "200 ms – 900 ms",
        "125 ms",
        "12.5×",
        "2.5×",
        "met",
    ]
    assert shown["`privmax plan --help`"][-1] == "not met"
