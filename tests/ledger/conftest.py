"""What tests of ledgers need: the folder of crash.py and faults/ on Python's path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """The table of docs/ledger.md, once all faults were made to happen."""
    if config.option.faults == "full":
        import faults

        terminalreporter.write_sep("=", "faults, as stored")
        terminalreporter.write_line("\n".join(faults.table()))
