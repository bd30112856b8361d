"""Where data is, as a ledger writes it."""

from __future__ import annotations

import os

import pytest

from privmax.ledger.events import LONGEST, label
from privmax.ledger.payment import shorten_place, source_location


def test_a_path_is_written_in_full_and_with_its_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = os.getcwd()
    assert source_location("logs.csv") == f"{here}/logs.csv"
    assert source_location(tmp_path / "logs.db", "queries") == f"{tmp_path}/logs.db queries"


@pytest.mark.parametrize(
    "data", ["postgresql://ann:secret@host/db", "s3://key:secret@bucket", "", {"a": 1}, None]
)
def test_of_what_is_no_path_nothing_is_written(data):
    assert source_location(data) is None


def test_what_cannot_be_printed_is_escaped():
    assert shorten_place("/logs/a\nb\x1b☃") == "/logs/a\\nb\\x1b☃"


def test_a_place_of_just_the_length_is_written_as_it_is():
    assert shorten_place("x" * LONGEST) == "x" * LONGEST


def test_long_places_with_the_same_end_differ():
    one, other = (shorten_place(f"/{first}{'x' * LONGEST}/logs.csv") for first in "ab")
    assert one != other
    for shown in (one, other):
        assert label("data", shown) == shown
        assert "/logs.csv " in shown
