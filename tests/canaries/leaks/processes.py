"""Commands as real processes: what others see of them in /proc while they run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from leaks import faults
from leaks.commands import LINES, arguments
from leaks.field import BEST, Field
from leaks.nursery import Ended, search_path


def watch(words: list[str], folder: Path, before: Callable[[Path], None] | None = None) -> Ended:
    """Run a program to its end, and look at it and at all that it starts all the time."""
    for name in ("work", "temp"):
        (folder / name).mkdir(parents=True)
    if before is not None:
        before(folder)
    environment = {
        **os.environ,
        "TMPDIR": str(folder / "temp"),
        "PYTHONPATH": search_path(),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    shown: set[tuple[str, str, bytes]] = set()
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        process = subprocess.Popen(
            words,
            cwd=folder / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
        while process.poll() is None:
            for pid in _family(process.pid):
                for name in ("cmdline", "environ"):
                    with suppress(OSError):
                        raw = Path(f"/proc/{pid}/{name}").read_bytes()
                        shown.add(("arguments", name, raw))
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
    return Ended(process.returncode, folder, evidence=sorted(shown))


def _family(pid: int) -> list[int]:
    """A process and all that it has started."""
    found, left = [], [pid]
    while left:
        one = left.pop()
        found.append(one)
        with suppress(OSError):
            left += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
    return found


def command(name: str, folder: Path, field: Path) -> Ended:
    """A command of the harness as a process, without a ledger."""
    words = arguments(LINES[name], Field(field), {"situation": faults.SUCCESS, "paid": None})
    before = _ledger if not LINES[name].charges else None
    return watch([sys.executable, "-m", "privmax", *words], folder, before)


def _ledger(folder: Path) -> None:
    """A ledger with an answer, for commands that look at one."""
    from privmax import Privacy
    from privmax.ledger import Charge, Ledger

    with Ledger.create(folder / "work/budget.db", budget=Privacy(9)) as ledger:
        charged = ledger.charge(
            Charge(Privacy(1), unit="user"), {"command": "select"}, request="before"
        )
        charged.record({"items": [BEST], "free": {}})
