"""Counts what one selection crosses: functions and files of privmax, choices, draws, transactions.

./dev python tools/trace.py                  a table
./dev python tools/trace.py --json           the same as JSON, with the functions of each file
./dev python tools/trace.py --only NAME …    some of the selections

Every selection runs in a process of its own with the same random bits, so the numbers are the same
each time. What runs while a module is imported does not count, nor do comprehensions and bodies of
classes.

functions      different functions of privmax that were called
files          files that they are in
switches       calls from one of these files into another
depth          the most of them that were active at once
entries        calls of the public function that was asked: a second one is a detour
auto           calls of `auto`, which chooses a mechanism
draws          draws of a mechanism; the parts that a mechanism draws do not count by themselves
transactions   transactions of SQLite, which the ledger is in
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

Selection = Callable[[], object]

COMPREHENSIONS = ("<dictcomp>", "<genexpr>", "<listcomp>", "<setcomp>")
"""Functions before Python 3.12, and partly since."""

DRAW = re.compile(r"mechanisms/[^:]*:\w+\.draw")
COLUMNS = ("functions", "files", "switches", "depth", "entries", "auto", "draws", "transactions")


@dataclass
class _Thread:
    """Where a thread is."""

    files: list[str] = field(default_factory=list)
    draws: int = 0
    imports: int = 0


@dataclass
class Trace:
    """Counts what `run` calls. As a context manager it also sees transactions, on connections that
    are made while it is open.

    Args:
        root: The folder of the package whose functions count.
        door: The qualified name of the public function that is called.
    """

    root: Path
    door: str
    calls: dict[str, set[str]] = field(default_factory=dict)
    switches: int = 0
    depth: int = 0
    entries: int = 0
    auto: int = 0
    draws: int = 0
    transactions: int = 0

    def __post_init__(self) -> None:
        self._files: dict[str, str | None] = {}
        self._threads: dict[int, _Thread] = {}
        self._is_running = False

    def __enter__(self) -> Trace:
        self._connect = sqlite3.connect
        sqlite3.connect = self._connected  # type: ignore[assignment]
        return self

    def __exit__(self, *_: object) -> None:
        sqlite3.connect = self._connect

    def run(self, selection: Selection) -> None:
        """Call it, and count."""
        self._is_running = True
        threading.setprofile(self._event)
        sys.setprofile(self._event)
        try:
            selection()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            self._is_running = False

    def counts(self) -> dict[str, int]:
        """The numbers, by the names of COLUMNS."""
        numbers = {
            "functions": sum(map(len, self.calls.values())),
            "files": len(self.calls),
            **{name: getattr(self, name) for name in COLUMNS[2:]},
        }
        return {name: numbers[name] for name in COLUMNS}

    def crossed(self) -> dict[str, list[str]]:
        """The functions of each file, both in order."""
        return {file: sorted(names) for file, names in sorted(self.calls.items())}

    def _event(self, frame: FrameType, event: str, _: object) -> None:
        """Called by Python at every call and return; a generator is entered and left often."""
        if event not in ("call", "return"):
            return
        file = self._inside(frame.f_code.co_filename)
        if file is None or frame.f_code.co_name in COMPREHENSIONS:
            return
        thread = self._threads.setdefault(threading.get_ident(), _Thread())
        step = 1 if event == "call" else -1
        if frame.f_code.co_name == "<module>":
            thread.imports += step
        elif not thread.imports and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            self._step(thread, file, frame.f_code.co_qualname, step)

    def _step(self, thread: _Thread, file: str, name: str, step: int) -> None:
        """Enter a function, or leave it."""
        is_draw = DRAW.fullmatch(f"{file}:{name}") is not None
        if step > 0:
            self.calls.setdefault(file, set()).add(name)
            self.switches += bool(thread.files) and thread.files[-1] != file
            thread.files.append(file)
            self.depth = max(self.depth, len(thread.files))
            self.entries += name == self.door
            self.auto += name == "auto"
            self.draws += is_draw and not thread.draws
        elif thread.files:
            thread.files.pop()
        thread.draws += step * is_draw

    def _inside(self, file: str) -> str | None:
        """The path of a file below the root; None if it is elsewhere."""
        if file not in self._files:
            path = Path(file)
            inside = path.is_relative_to(self.root)
            self._files[file] = path.relative_to(self.root).as_posix() if inside else None
        return self._files[file]

    def _connected(self, *arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = self._connect(*arguments, **options)
        connection.set_trace_callback(self._statement)
        return connection

    def _statement(self, text: str) -> None:
        self.transactions += self._is_running and text.lstrip().upper().startswith("BEGIN")


# The selections


PRICE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
FRUIT = {"apple": 912, "pear": 640, "fig": 12}
BASKETS = [["bread", "butter"]] * 60 + [["bread", "jam"]] * 20 + [["tea"]] * 10


def _select(folder: Path, *, ledger: bool) -> Selection:
    from privmax import select

    options = PRICE | _ledger(folder, ledger)
    return lambda: select(FRUIT, **options)


def _top_itemsets(folder: Path, *, ledger: bool) -> Selection:
    from privmax.itemsets import top_itemsets

    options = PRICE | _ledger(folder, ledger)
    return lambda: top_itemsets(BASKETS, **options)


def _fit(folder: Path, *, ledger: bool) -> Selection:
    import numpy as np

    from privmax.learning import PrivateERM, Stumps

    rows = np.arange(200).reshape(-1, 1) % 100
    labels = (rows[:, 0] >= 50).astype(int)
    rule = PrivateERM(Stumps(low=0, high=100), epsilon=1, labels=(0, 1), **_ledger(folder, ledger))
    return lambda: rule.fit(rows, labels)


def _fit_additive(folder: Path, *, ledger: bool) -> Selection:
    import numpy as np

    from privmax.learning import Number, PrivateGAM, Schema

    rows = np.arange(200).reshape(-1, 1) % 100
    labels = (rows[:, 0] >= 50).astype(int)
    schema = Schema(age=Number(0, 100))
    learner = PrivateGAM(schema, 1, 1e-6, labels=[0, 1], **_ledger(folder, ledger))
    return lambda: learner.fit(rows, labels)


def _itemsets(folder: Path, *, ledger: bool) -> Selection:
    file = folder / "sales.csv"
    lines = [f"{n},{item}" for n, basket in enumerate(BASKETS) for item in basket]
    file.write_text("\n".join(["receipt,article", *lines, ""]), encoding="utf-8")
    words = ["itemsets", str(file), "--basket", "receipt", "--item", "article"]
    return _typed(words, folder, ledger)


def _command(folder: Path, *, ledger: bool) -> Selection:
    import duckdb

    file = folder / "log.parquet"
    with duckdb.connect() as engine:
        engine.execute(
            "COPY (SELECT i AS person, CASE WHEN i % 10 < 7 THEN 'rain' ELSE 'sun' END AS query "
            f"FROM range(1000) r(i)) TO '{file}' (FORMAT parquet)"
        )
    words = ["select", str(file), "--item", "query", "--user", "person"]
    return _typed(words, folder, ledger)


def _typed(words: list[str], folder: Path, ledger: bool) -> Selection:
    """A command, with its cost and its ledger."""
    from privmax.cli import main

    words = [*words, "--epsilon", "1", "--delta", "1e-6"]
    if ledger:
        _ledger(folder, ledger)
        words += ["--ledger", str(folder / "budget.db")]

    def run() -> None:
        with redirect_stdout(io.StringIO()):
            main(words, standalone_mode=False)

    return run


def _ledger(folder: Path, wanted: bool) -> dict[str, Any]:
    """The option of a call that is given a new ledger."""
    if not wanted:
        return {}
    from privmax import Ledger, Privacy

    return {"ledger": Ledger.create(folder / "budget.db", budget=Privacy(10, "1e-5"))}


SELECTIONS: dict[str, tuple[str, Callable[..., Selection], bool]] = {
    "select({…})": ("select", _select, False),
    "select({…}, ledger=L)": ("select", _select, True),
    "privmax select FILE.parquet": ("Selection.answer", _command, False),
    "privmax select FILE.parquet --ledger L": ("Selection.answer", _command, True),
    "top_itemsets([…])": ("top_itemsets", _top_itemsets, False),
    "top_itemsets([…], ledger=L)": ("top_itemsets", _top_itemsets, True),
    "privmax itemsets FILE.csv --ledger L": ("Mining.answer", _itemsets, True),
    "PrivateERM(…).fit(X, y)": ("PrivateERM.fit", _fit, False),
    "PrivateERM(…, ledger=L).fit(X, y)": ("PrivateERM.fit", _fit, True),
    "PrivateGAM(…).fit(X, y)": ("SchemaLearner.fit", _fit_additive, False),
}
"""By what is typed: the function that is entered, what prepares the call, whether a ledger pays."""


def trace(name: str) -> Trace:
    """One selection in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--here", "--only", name],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr}")
    told = json.loads(done.stdout)
    calls = {file: set(names) for file, names in told.pop("crossed").items()}
    numbers = {column: told[column] for column in COLUMNS[2:]}
    return Trace(_package(), SELECTIONS[name][0], calls, **numbers)


def trace_here(name: str) -> Trace:
    """One selection in this process, whose random bits are the same from then on: in no other."""
    door, prepare, ledger = SELECTIONS[name]
    blocks = count()
    os.urandom = lambda size: hashlib.shake_256(str(next(blocks)).encode()).digest(size)
    with TemporaryDirectory() as folder, Trace(_package(), door) as found:
        found.run(prepare(Path(folder), ledger=ledger))
    return found


def _package() -> Path:
    """Where privmax is."""
    spec = find_spec("privmax")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def table(traces: dict[str, Trace]) -> str:
    """A line for every selection."""
    width = max(map(len, traces))
    lines = ["  ".join([" " * width, *COLUMNS])]
    for name, found in traces.items():
        cells = [f"{number:>{len(column)}}" for column, number in found.counts().items()]
        lines.append("  ".join([f"{name:{width}}", *cells]))
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        description="Count what a selection crosses.", allow_abbrev=False
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with all functions")
    parser.add_argument(
        "--only", nargs="+", choices=SELECTIONS, default=list(SELECTIONS), metavar="NAME"
    )
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.here:
        [name] = asked.only
        found = trace_here(name)
        print(json.dumps({**found.counts(), "crossed": found.crossed()}))
        return
    traces = {name: trace(name) for name in asked.only}
    if asked.json:
        told = {name: {**one.counts(), "crossed": one.crossed()} for name, one in traces.items()}
        print(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        print(table(traces))


if __name__ == "__main__":
    main(sys.argv[1:])
