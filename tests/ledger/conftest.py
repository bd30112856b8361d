"""What tests of ledgers need: a ledger, and the folder of crash.py and faults/ on the path."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from privmax import Privacy
from privmax.ledger import Ledger

sys.path.append(str(Path(__file__).parent))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A new ledger, whose history is checked after the test."""
    with Ledger.create(tmp_path / "budget.db", "sales", budget=Privacy(10, "1e-5")) as made:
        yield made
        assert made.verify() == []


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """The table of faults/README.md, once all faults were made to happen."""
    if config.option.faults == "full":
        import faults

        terminalreporter.write_sep("=", "faults, as stored")
        terminalreporter.write_line("\n".join(faults.table()))
