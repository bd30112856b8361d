"""What the benchmarks share: steps timed in a child process, its peak memory, and the facts about a
run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
COMPARED = ("privmax", "numpy", "python-flint", "opendp", "diffprivlib", "scikit-learn")

DONE, LIMIT, FAILED = "done", "time limit", "failed"


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


Times = tuple[float, float]
"""Seconds of processor time (user and system, all threads) and of wall-clock time."""


def clocked(call: Callable[[], object]) -> Times:
    """What one call takes."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.process_time() - processor, time.perf_counter() - wall


def medians(times: list[Times], ending: str = DONE, limit: float = 0.0) -> dict[str, Any]:
    """How calls ended, and the median of each clock if any was finished.

    Tables and aims use processor time: it hardly notices what else the machine does. A call stopped
    at the limit counts as having taken that long; leaving it out would flatter a contender whose
    time varies.
    """
    if not times or ending == FAILED:
        return {"ending": ending}
    stopped = ending == LIMIT
    processor, wall = zip(*times, *[(limit, limit)] * stopped, strict=True)
    return {
        "ending": DONE,
        "median": float(np.median(processor)),
        "least": min(processor),
        "most": max(processor),
        "wall": float(np.median(wall)),
        "repeats": len(processor),
        "stopped": int(stopped),
    }


class PeakMemory:
    """How far this process grows above what it holds now.

    Linux keeps the high-water mark of resident memory per process image and lets the process reset
    it. `ru_maxrss` would not do: it cannot be reset, and a child inherits its parent's.
    """

    def __init__(self) -> None:
        self._before: int | None = None
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self._before = _resident("VmRSS")
        except OSError:
            pass  # not Linux: memory is reported as unknown

    def growth(self) -> int | None:
        """Bytes, or None where the system cannot tell."""
        return None if self._before is None else max(0, _resident("VmHWM") - self._before)


def _resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {field} in /proc/self/status")


@dataclass(frozen=True)
class Aim:
    """A figure that should be at least, or at most, so much. It is checked and reported, never
    asserted.
    """

    text: str
    least: float | None = None
    most: float | None = None

    def judge(self, subject: str, figures: dict[str, float]) -> dict[str, Any]:
        """The worst of the figures, where it was found, and whether even that one is good
        enough.
        """
        row: dict[str, Any] = {
            "aim": self.text,
            "least": self.least,
            "most": self.most,
            "subject": subject,
        }
        if not figures:
            return {**row, "met": None}
        where = (min if self.most is None else max)(figures, key=lambda place: figures[place])
        worst = figures[where]
        met = (self.least is None or worst >= self.least) and (
            self.most is None or worst <= self.most
        )
        return {**row, "met": met, "figure": worst, "where": where}


def note(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def about_run(*, quick: bool) -> dict[str, Any]:
    """Where, when and with what a benchmark ran."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": f"./dev compare python -m benchmarks.{Path(sys.argv[0]).stem}"
        + " --quick" * quick,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "versions": {name: _version(name) for name in COMPARED},
        "source": source_digest(),
    }


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
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def store(result: dict[str, Any], path: Path) -> None:
    """Write a result, one short record a line so that differences can be read.

    A result is of one state of the source: if that changed while the benchmark ran, nothing is
    written.
    """
    if source_digest() != result["run"]["source"]:
        raise SystemExit(
            "the source of privmax changed during the run: nothing was stored, run it again"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = []
    for key, value in result.items():
        if isinstance(value, list):
            rows = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            text = json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\n  ")
            parts.append(f"  {json.dumps(key)}: {text}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    note(f"wrote {path.name}")
