"""What tests of canaries need: the folder of leaks/ on Python's path, and one nursery."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from leaks.nursery import Nursery

FEW = ("leaks.functions", "leaks.planted", "privmax.ledger", "privmax.cli.commands.select")
"""What the quick tests need: children find it imported."""


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with Nursery(FEW) as made:
        yield made
