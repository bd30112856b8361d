"""All runs: which there are, and what was found, as counts.

`python -m leaks.run --json` runs all of them and prints rows; `--table` prints the table of places.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leaks import commands, explorer, faults, functions, places, processes
from leaks.field import make
from leaks.judge import Verdict, judge
from leaks.nursery import Ended, Nursery

PRELOAD = (
    "pandas", "pyarrow.parquet", "sklearn.base", "sklearn.linear_model", "duckdb", "ibis",
    "matplotlib.text", "matplotlib.pyplot", "leaks.functions", "leaks.commands", "leaks.explorer",
    "privmax.learning.estimator", "privmax.learning.search", "privmax.learning.stable",
    "privmax.learning.tree", "privmax.learning.additive.estimator", "privmax.itemsets.mining",
    "privmax.sources.tables", "ibis.backends.duckdb", "privmax.sources.engines.duckdb",
    "privmax.itemsets.reading.tables", "privmax.learning.expressions", "privmax.report",
    "privmax.plots",
)  # fmt: skip
"""What children find imported: each would need a second for it."""

AFTER_DRAW = (faults.NAMES, faults.MAKING, faults.RECORD, faults.BROKEN)
"""Situations for what names its answers one by one, and is recorded."""

ENGINES = ("parquet", "weighted", "a table", "rows", "weights")
"""In the names of subjects that an engine reads."""


@dataclass(frozen=True)
class Run:
    """One run.

    kind        "functions" or "commands"
    subject     which
    situation   one of `faults.SITUATIONS`
    paid        which ledger pays: faults.PLAIN, faults.STRICT or None
    share       of an interrupt: after which share of all calls it comes
    """

    kind: str
    subject: str
    situation: str
    paid: str | None = faults.PLAIN
    share: float | None = None

    def __str__(self) -> str:
        paid = {"": "", None: ", no ledger", "strict": ", strict"}[self.paid]
        share = "" if self.share is None else f" after {self.share:.0%} of the calls"
        return f"{self.subject}, {self.situation}{share}{paid}"


def plan_failures() -> Iterator[Run]:
    """Success and all failures, of everything."""
    for name, subject in functions.SUBJECTS.items():
        yield from _failures("functions", name, subject.charges, subject.draws)
    for name, line in commands.LINES.items():
        if line.charges:
            yield from _failures("commands", name, True, True)
        else:
            yield Run("commands", name, faults.SUCCESS)
        yield Run("processes", name, faults.SUCCESS, None)
    for situation in (faults.SUCCESS, faults.BAD_DATA, faults.ENGINE, faults.KILL):
        yield Run("explorer", "explore", situation, faults.STRICT)


def _failures(kind: str, name: str, charges: bool, draws: bool) -> Iterator[Run]:
    engine = [faults.ENGINE] if any(word in name for word in ENGINES) else []
    coins = [faults.COINS] if draws else []
    if charges:
        own = ["reservation", "batch"]
        after = [] if name in own else [*coins, *AFTER_DRAW]
        for situation in [faults.SUCCESS, faults.BAD_DATA, *engine, *after, faults.BUDGET]:
            yield Run(kind, name, situation)
        if name in own:
            yield Run(kind, name, faults.BROKEN)
            return
        for situation in [faults.BAD_DATA, *engine, faults.NAMES]:
            yield Run(kind, name, situation, faults.STRICT)
    making = [faults.MAKING] if charges else []
    for situation in [faults.SUCCESS, faults.BAD_DATA, *engine, *coins, *making]:
        yield Run(kind, name, situation, None)


def plan_stops(times: int, seed: int = 0) -> Iterator[Run]:
    """Ctrl-C and kill -9 after shares of the calls, `times` each, of everything."""
    shares = random.Random(seed)
    for kind, names in (("functions", functions.SUBJECTS), ("commands", commands.LINES)):
        for name in names:
            for situation in (faults.INTERRUPT, faults.KILL):
                for number in range(times):
                    share = (number + shares.random()) / times
                    yield Run(kind, name, situation, faults.PLAIN, share)


@dataclass
class Hunt:
    """Runs one after the other, in folders that are removed after each.

    is_small   whether only data of a few rows is made
    """

    nursery: Nursery
    folder: Path
    is_small: bool = False
    calls: dict[tuple[str, str], int] = field(default_factory=dict)
    _made: int = 0

    def __post_init__(self) -> None:
        make(self.folder / "field", is_small=self.is_small)

    def run(self, one: Run, *, keep: bool = False) -> tuple[Ended, Verdict]:
        """A run and what was found."""
        self._made += 1
        folder = self.folder / str(self._made)
        job: dict[str, Any] = {
            "kind": one.kind,
            "subject": one.subject,
            "situation": one.situation,
            "paid": one.paid,
            "field": str(self.folder / "field"),
            "terminal": one.kind == "commands",  # where progress is shown
        }
        if one.share is not None:
            number = signal.SIGKILL if one.situation == faults.KILL else signal.SIGINT
            job |= {"at": max(1, int(one.share * self._count(one))), "signal": int(number)}
        if one.kind == "explorer":
            field = self.folder / "field"
            ended = explorer.visit(self.nursery, folder, field, one.situation)
        elif one.kind == "processes":
            ended = processes.command(one.subject, folder, self.folder / "field")
        else:
            ended = self.nursery.run(folder, **job)
        verdict = judge(ended)
        if not keep:
            shutil.rmtree(folder)
        return ended, verdict

    def _count(self, one: Run) -> int:
        """How many calls of functions of privmax it takes when all goes well."""
        key = (one.kind, one.subject)
        if key not in self.calls:
            self._made += 1
            folder = self.folder / str(self._made)
            job = {"kind": one.kind, "subject": one.subject, "situation": faults.SUCCESS}
            job |= {"field": str(self.folder / "field"), "count": True}  # type: ignore[dict-item]
            ended = self.nursery.run(folder, **job)
            self.calls[key] = int(ended.facts.get("calls", 0))
            shutil.rmtree(folder)
        return self.calls[key]


def temporary() -> Path:
    """A folder in memory where there is one: a ledger waits for its disk."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="canaries-", dir=memory if memory.is_dir() else None))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="print the table of places")
    parser.add_argument("--stops", type=int, default=4, help="Ctrl-C and kill -9 of each subject")
    parser.add_argument("--only", help="subjects with this in their name")
    parser.add_argument("--situation", action="append", help="only this")
    parser.add_argument("--json", action="store_true", help="print counts as JSON")
    options = parser.parse_args()
    if options.table:
        print("\n".join(places.table()))
        return
    runs = [*plan_failures(), *plan_stops(options.stops)]
    runs = [one for one in runs if not options.only or options.only in one.subject]
    runs = [one for one in runs if one.situation in (options.situation or faults.SITUATIONS)]
    counts = run_all(runs, is_quiet=options.json)
    print(json.dumps(counts))
    sys.exit(bool(counts["leaks"]))


def run_all(runs: list[Run], *, is_quiet: bool) -> dict[str, list[Any]]:
    """All runs one after the other: counts by situation and by place, and the leaks."""
    situations: dict[tuple[str, str], Counter[str]] = {}
    searched: dict[str, Counter[str]] = {name: Counter() for name in places.PLACES}
    leaks: list[str] = []
    folder = temporary()
    try:
        with Nursery(PRELOAD) as nursery:
            hunt = Hunt(nursery, folder)
            for one in runs:
                ended, verdict = hunt.run(one)
                if ended.status == 99:
                    sys.exit(f"{one}: the harness failed")
                row = situations.setdefault((one.kind, one.situation), Counter())
                row.update(runs=1, errors=int(_has_failed(ended)), released=verdict.released)
                row.update(leaks=len(verdict.leaks))
                for place, size in verdict.searched.items():
                    searched[place].update(runs=1, bytes=size)
                for place in {found.place for found in verdict.remains}:
                    searched[place].update(remains=1)
                leaks += [f"{one}: {leak}" for leak in verdict.leaks]
                if not is_quiet:
                    _print(one, ended, verdict)
    finally:
        shutil.rmtree(folder)
    return {
        "situations": [
            {"kind": kind, "situation": situation, **_row(counts, "runs errors released leaks")}
            for (kind, situation), counts in situations.items()
        ],
        "places": [
            {"place": place, **_row(counts, "runs bytes remains")}
            for place, counts in searched.items()
        ],
        "leaks": leaks,
    }


def _row(counts: Counter[str], names: str) -> dict[str, int]:
    return {name: counts[name] for name in names.split()}


def _has_failed(ended: Ended) -> bool:
    return "error" in ended.facts or ended.status != 0


def _print(one: Run, ended: Ended, verdict: Verdict) -> None:
    message = f"{ended.facts.get('error', '')} {ended.facts.get('message', '')}"
    print(f"{one}: {ended.status} {message.strip()[:90]}", flush=True)
    for leak in verdict.leaks:
        print(f"    LEAK {leak}", flush=True)


if __name__ == "__main__":
    main()
