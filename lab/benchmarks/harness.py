"""What the benchmarks share: timing in child processes, memory, and how results are stored."""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).parent / "results"
DONE, LIMIT, FAILED = "done", "time limit", "failed"

Row = dict[str, Any]
Rows = Mapping[str, list[Row]]
"""What a part of a benchmark measured: rows, by what they are about."""

Times = tuple[float, float]
"""Seconds of processor time (user and system, all threads) and of wall-clock time."""


# Results


@dataclass(frozen=True)
class Benchmark:
    """A result in results/NAME.json, and the command that makes it.

    name       of the file
    module     below `lab.benchmarks`
    parts      each measures some rows, given the options; a run keeps the rows of all others
    packages   whose versions are stored
    settings   stored as they are
    keys       by which columns the rows of a kind are replaced; all of them, if it is not named
    compare    whether it runs in the environment of `./dev compare`
    arguments  adds options of its own
    """

    name: str
    module: str
    parts: Mapping[str, Callable[[argparse.Namespace], Iterator[Rows] | Rows]]
    packages: Sequence[str] = ("privmax",)
    settings: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    compare: bool = False
    arguments: Callable[[argparse.ArgumentParser], object] = lambda parser: None

    @property
    def path(self) -> Path:
        return RESULTS / f"{self.name}.json"

    def main(self) -> None:
        """Measure what the command line asks for; print it, and store it if it is whole."""
        parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("--quick", action="store_true", help="a small part; stores nothing")
        parser.add_argument("--output", type=Path, help="store here (default: results/)")
        if len(self.parts) > 1:
            parser.add_argument("--part", action="append", choices=self.parts, help="only this")
        self.arguments(parser)
        options = parser.parse_args()
        target = options.output or (None if options.quick else self.path)
        result = stored(target) if target and target.exists() else {}
        for part in getattr(options, "part", None) or self.parts:
            facts = self._facts(part, options)
            made = self.parts[part](options)
            for rows in [made] if isinstance(made, Mapping) else made:
                if not rows:  # something it needs is not here, as it has said
                    continue
                if target and target.exists():  # another part may have been stored meanwhile
                    result = stored(target)
                result = self._merged(result, facts, rows)
                if source_digest() != facts["source"]:
                    raise SystemExit("the source of privmax changed: nothing was stored")
                if target:
                    target.write_text(written(result), encoding="utf-8")
        from lab.benchmarks import pictures, tables

        print(tables.printed(self.name, result))
        note(f"wrote {target.name}" if target else "nothing was stored")
        if target == self.path:
            pictures.draw(self.name)

    def _facts(self, part: str, options: argparse.Namespace) -> Row:
        """Where, when and with what a part is run."""
        words = ["./dev compare python" if self.compare else "./dev python"]
        words += ["-m", f"lab.benchmarks.{self.module}"]
        words += ["--part", part] if len(self.parts) > 1 else []
        words += ["--data", "FOLDER"] if getattr(options, "data", None) else []
        words += ["--quick"] if options.quick else []
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        return {
            "part": part,
            "command": " ".join(words),
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "memory": f"{memory:.0f} GiB",
            "system": f"{platform.system()} {platform.machine()}",
            "load": round(os.getloadavg()[0], 2),
            "python": platform.python_version(),
            "versions": {name: version(name) for name in self.packages},
            "source": source_digest(),
        }

    def _merged(self, before: Row, facts: Row, new: Rows) -> Row:
        """A stored result with some rows measured anew, in the place of the old ones."""
        runs = {run["part"]: run for run in before.get("runs", [])} | {facts["part"]: facts}
        result = {
            "benchmark": self.name,
            "settings": self.settings,
            "runs": [runs[part] for part in self.parts if part in runs],
        }
        kept = {kind: rows for kind, rows in before.items() if kind not in result}
        for kind, rows in new.items():
            if kind in kept and kind in self.keys:
                keys = self.keys[kind]
                anew = {tuple(row[key] for key in keys) for row in rows}
                old = [tuple(row[key] for key in keys) in anew for row in kept[kind]]
                place = old.index(True) if True in old else len(old)
                rest = [row for row, gone in zip(kept[kind], old, strict=True) if not gone]
                kept[kind] = rest[:place] + rows + rest[place:]
            else:
                kept[kind] = rows
        return {**result, **kept}


def stored(path: Path) -> Row:
    result: Row = json.loads(path.read_text(encoding="utf-8"))
    return result


def written(result: Row) -> str:
    """A result as JSON, one short record a line so that differences can be read."""
    parts = []
    for key, value in result.items():
        if isinstance(value, list):
            rows = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            text = json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\n  ")
            parts.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def note(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def source_digest() -> str:
    """Twelve hexadecimal digits that change with any module of the installed privmax."""
    found = importlib.util.find_spec("privmax")
    if found is None or found.origin is None:
        return "not installed"
    package, digest = Path(found.origin).parent, hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(f"{file.relative_to(package).as_posix()}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or "unknown"


# Time


def clocked(call: Callable[[], object]) -> Times:
    """What one call takes."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.process_time() - processor, time.perf_counter() - wall


def medians(times: Sequence[Times], ending: str = DONE, limit: float = 0.0) -> Row:
    """How calls ended, and the median of each clock if any was finished.

    Tables show processor time where contenders have one thread: it hardly notices what else the
    machine does. A call stopped at the limit counts as having taken that long; leaving it out would
    flatter a contender whose time varies.
    """
    if not times or ending == FAILED:
        return {"ending": ending}
    stopped = int(ending == LIMIT)
    processor, wall = zip(*times, *[(limit, limit)] * stopped, strict=True)
    return {
        "ending": DONE,
        "median": median(processor),
        "least": min(processor),
        "most": max(processor),
        "wall": median(wall),
        "repeats": len(processor),
        "stopped": stopped,
    }


def in_child(
    steps: Callable[..., Iterator[Any]], *arguments: Any, limit: float
) -> tuple[list[Any], str]:
    """Run the generator `steps(*arguments)` in a fresh process: what it yielded, and how it ended.

    Each step may take `limit` seconds; then the child is stopped and the ending is LIMIT. A child
    that dies by itself (out of memory, an exception) ends as FAILED. The child is spawned and not
    forked, so it has loaded nothing but what it imports itself.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, steps, arguments), daemon=True)
    process.start()
    sender.close()
    answers: list[Any] = []
    ending = DONE
    try:
        while True:
            if not receiver.poll(limit):
                ending = LIMIT
                break
            kind, value = receiver.recv()
            if kind == "end":
                break
            answers.append(value)
    except EOFError:
        ending = FAILED
    finally:
        if ending == LIMIT:
            process.kill()
        process.join()
        receiver.close()
    return answers, ending


def _send(
    sender: Connection, steps: Callable[..., Iterator[Any]], arguments: tuple[Any, ...]
) -> None:
    for value in steps(*arguments):
        sender.send(("step", value))
    sender.send(("end", None))


def processor_time(roots: set[int]) -> float:
    """Seconds of user and system time that processes and all they started have used."""
    spent: dict[int, float] = {}
    parent: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        process = int(stat.parent.name)
        parent[process] = int(fields[1])
        own_and_children = sum(map(int, fields[11:15]))
        spent[process] = own_and_children / os.sysconf("SC_CLK_TCK")

    def counts(process: int) -> bool:
        while process and process not in roots:
            process = parent.get(process, 0)
        return process in roots

    return sum(seconds for process, seconds in spent.items() if counts(process))


# Memory


class PeakMemory:
    """How far processes grow together above what they hold now: this one, unless others are named.

    Linux keeps the high-water mark of resident memory per process and lets it be reset.
    `ru_maxrss` would not do: it cannot be reset, and a child inherits its parent's.
    """

    def __init__(self, processes: Sequence[int | str] = ("self",)) -> None:
        self._processes = processes
        self._before: int | None = None
        try:
            for process in processes:
                Path(f"/proc/{process}/clear_refs").write_text("5")
            self._before = self._sum("VmRSS")
        except OSError:
            pass  # not Linux: memory is reported as unknown

    def growth(self) -> int | None:
        """Bytes, or None where the system cannot tell."""
        return None if self._before is None else max(0, self.peak() - self._before)

    def peak(self) -> int:
        """All bytes they held at most."""
        return self._sum("VmHWM")

    def _sum(self, field: str) -> int:
        return sum(resident(process, field) for process in self._processes)


def resident(process: int | str, field: str = "VmRSS") -> int:
    """Bytes of memory of a process, 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))
