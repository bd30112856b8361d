"""What trials of a ledger are made of: a place, workers that release from it, and the outside that
saw their answers.

The outside is a file into which workers (tests/ledger/crash.py) write every answer they were given.
Its lines are compared with the events of the ledger, which are read by plain queries too and not by
privmax alone.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import crash
import servers

from privmax.ledger import Charge, Event, Ledger
from privmax.privacy import Privacy

SQLITE, POSTGRES = "SQLite", "PostgreSQL"
BUDGET = Privacy(10**6, "1e-5")
TENTH = Charge(Privacy("1/10"))


class NotTried(Exception):
    """The fault did not happen: there is nothing to judge."""


@dataclass
class Trial:
    """What became of a fault."""

    fault: str
    where: str
    times: int
    """How often the fault happened."""

    lost: list[str] = field(default_factory=list)
    """All that went wrong; it must stay empty."""

    charges: int = 0
    answers: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    """What else was counted, by its name."""

    def row(self) -> dict[str, Any]:
        return {
            "fault": self.fault,
            "where": self.where,
            "times": self.times,
            "charges": self.charges,
            "answers": self.answers,
            "lost": self.lost,
            "seen": dict(self.seen),
        }


class Yard:
    """What trials share: a folder, a program that starts workers, a PostgreSQL once one is used."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="privmax-ledger-"))
        self.folder.chmod(0o755)  # a worker may be another user
        self.nursery = crash.Nursery()
        self._made = 0

    @cached_property
    def server(self) -> servers.Postgres:
        return servers.Postgres()

    @cached_property
    def library(self) -> Path:
        """What stands between a process and the C library (interposing.py)."""
        if sys.platform != "linux":
            raise servers.Missing("Linux", "calls are intercepted on no other system")
        compiler = servers.program("cc", "a C compiler", "apt-get install gcc libc6-dev")
        made, source = self.folder / "interposer.so", Path(__file__).with_name("interposer.c")
        command = [compiler, "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([*command, "-o", str(made), str(source), "-ldl"], check=True)
        return made

    @cached_property
    def interposed(self) -> crash.Nursery:
        """The program whose workers have that library."""
        return crash.Nursery(self.library)

    @cached_property
    def memory(self) -> Path:
        """A folder where nothing waits for a disk, for faults of which none is a power cut."""
        above = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        return Path(tempfile.mkdtemp(prefix="privmax-ledger-", dir=above))

    def quick(self) -> Path:
        """A new empty folder there."""
        return Path(tempfile.mkdtemp(dir=self.memory))

    def fresh(self) -> Path:
        """A new empty folder."""
        self._made += 1
        made = self.folder / str(self._made)
        made.mkdir(mode=0o755)
        return made

    def place(self, where: str) -> str:
        """A place for a ledger; on a server others may have theirs there too."""
        return self.server.url if where == POSTGRES else str(self.fresh() / "budget.db")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.nursery:
            pass
        if "interposed" in self.__dict__:
            with self.interposed:
                pass
        if "memory" in self.__dict__:
            shutil.rmtree(self.memory)
        if "server" in self.__dict__:
            self.server.close()
        shutil.rmtree(self.folder)


class Scene:
    """One ledger, the workers that release from it, and what the outside saw of them."""

    def __init__(
        self, yard: Yard, place: str, *, budget: Privacy = BUDGET, folder: Path | None = None
    ) -> None:
        self._yard = yard
        self._folder = folder or yard.fresh()
        self.place = place
        self.name = f"trial {self._folder.name}"
        self._noted: dict[int, str] = {}
        self._outside: dict[int, str] = {}
        Ledger.create(self.place, self.name, budget=budget).close()

    def job(self, worker: int, *, prefix: str | None = None, **more: object) -> dict[str, Any]:
        """The job of the worker of that number. Those with one prefix make the same requests."""
        self._outside.setdefault(worker, prefix or f"w{worker}")
        outside = self._file(worker)
        if not outside.exists():
            outside.touch()
            outside.chmod(0o666)
        given = {
            "where": self.place,
            "name": self.name,
            "outside": str(outside),
            "prefix": self._outside[worker],
        }
        return {**given, **more}

    def start(self, worker: int, **more: Any) -> int:
        return int(self._yard.nursery.start("release", **self.job(worker, **more)))

    def told(self, worker: int) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = crash.Outside(self._file(worker)).told()
        return lines

    def errors(self) -> list[str]:
        return [
            line["error"]
            for worker in self._outside
            for line in self.told(worker)
            if "error" in line
        ]

    def glance(self) -> None:
        """Note the last event: it must be there for ever."""
        for seq, _, _, noted in events(self.place, self.name, "ORDER BY seq DESC LIMIT 1"):
            self._noted[seq] = noted

    def stage(self, worker: int) -> str:
        """How far a worker that was killed had got."""
        told = {line["request"] for line in self.told(worker) if "answer" in line}
        ours = [
            row
            for row in events(self.place, self.name, "ORDER BY seq DESC LIMIT 20")
            if self._of(worker, row[2])
        ]
        if not ours:
            return "before its first charge"
        _, kind, request, _ = ours[0]
        if kind == "reserved":
            return "between charge and record"
        return "elsewhere" if request in told else "between record and answer"

    def finish(self, **more: Any) -> None:
        """One more request by every worker, which is the one that it was killed at."""
        for worker in self._outside:
            number = sum("answer" in line for line in self.told(worker))
            status = self._yard.nursery.wait(self.start(worker, until=number + 1, **more))
            if status not in (0, crash.SPENT):
                raise NotTried(
                    f"a worker ended with {status} though nothing was wrong: {self.errors()[-1:]}"
                )

    def judge(self, trial: Trial) -> Trial:
        """Add to a trial what was lost on this ledger, once no worker is at work."""
        epsilon = Fraction(crash.EPSILON)
        with Ledger(self.place, self.name) as ledger:
            trial.lost += [f"verify finds: {fault}" for fault in ledger.verify()]
            history, spent, budget = list(ledger.history()), ledger.spent, ledger.budget
        seen = [
            (line["request"], line["answer"])
            for worker in self._outside
            for line in self.told(worker)
            if "answer" in line
        ]
        trial.lost += differences(history, seen)
        for worker in self._outside:
            trial.lost += second_draws(self.told(worker))
        rows = events(self.place, self.name, "ORDER BY seq")
        charged = [request for _, kind, request, _ in rows if kind == "reserved"]
        if [(event.seq, event.kind, event.request, event.hash) for event in history] != rows:
            trial.lost.append("the history is not what the database holds")
        if spent != Privacy(len(charged) * epsilon):
            trial.lost.append("the charges are not what is spent")
        if spent.epsilon > budget.epsilon or spent.delta > budget.delta:
            trial.lost.append("more is spent than there was")
        if set(charged) != {request for request, _ in seen}:
            trial.lost.append("a charge whose answer nobody has")
        hashes = {seq: noted for seq, _, _, noted in rows}
        trial.lost += [
            "an event that was committed is gone"
            for seq in self._noted
            if hashes.get(seq) != self._noted[seq]
        ]
        if any(servers.PASSWORD in told for told in self.errors()):
            trial.lost.append("a password, into an error")
        if not self.place.startswith("postgresql:"):
            trial.lost += open_to_others(Path(self.place).parent, f"{Path(self.place).name}*")
        trial.charges += len(charged)
        trial.answers += len(seen)
        return trial

    def _of(self, worker: int, request: str | None) -> bool:
        return request is not None and request.rpartition("-")[0] == self._outside[worker]

    def _file(self, worker: int) -> Path:
        return self._folder / f"outside-{worker}"


def differences(history: Sequence[Event], seen: Sequence[tuple[str, object]]) -> Iterator[str]:
    """What does not fit together: the events of a ledger, and the answers that were seen
    outside.
    """
    charges = Counter(event.request for event in history if event.kind == "reserved")
    recorded = {
        event.request: event.body["answer"]["items"]
        for event in history
        if event.kind == "released"
    }
    yield from (f"a request charged {times} times" for times in charges.values() if times != 1)
    for request, answer in seen:
        if not charges[request]:
            yield "an answer without its charge"
        elif recorded.get(request) != (
            [] if answer is None else [answer]
        ):  # none: it was too long for a full disk
            yield "an answer that is not the recorded one"


def second_draws(told: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Draws for a request that has an answer, or of which it was said that it is not drawn."""
    settled: set[str] = set()
    for line in told:
        if "drawn" in line and line["request"] in settled:
            yield "the one draw of a request"
        if "answer" in line or "not drawn again" in line.get("error", ""):
            settled.add(line["request"])


def open_to_others(folder: Path, pattern: str) -> Iterator[str]:
    for path in folder.glob(pattern):
        if stat.S_IMODE(path.stat().st_mode) != 0o600:
            yield "the secrecy of a file: its mode is not 600"


def events(place: str, name: str, order: str) -> list[tuple[int, str, str | None, str]]:
    """Events as the database holds them (seq, kind, request, hash), read without privmax."""
    query = f"SELECT seq, kind, request, hash FROM privmax_events WHERE ledger = ? {order}"
    return [(row[0], row[1], row[2], row[3]) for row in asked(place, query, name)]


def asked(place: str, query: str, *bound: object) -> list[tuple[Any, ...]]:
    """Run a query of ours, committed."""
    if place.startswith("postgresql:"):
        import psycopg

        with psycopg.connect(place, autocommit=True) as connection:
            cursor = connection.execute(query.replace("?", "%s"), bound or None)
            return cursor.fetchall() if cursor.description else []
    with closing(sqlite3.connect(place, isolation_level=None, timeout=60)) as file:
        return file.execute(query, bound).fetchall()


@contextmanager
def empty_place(yard: Yard, where: str) -> Iterator[str]:
    """A place where no tables were ever made."""
    if where == SQLITE:
        yield yard.place(where)
        return
    name = f"trial{yard.fresh().name}"
    asked(yard.server.url, f"CREATE DATABASE {name}")
    try:
        yield urlunsplit(urlsplit(yard.server.url)._replace(path=f"/{name}"))
    finally:
        asked(yard.server.url, f"DROP DATABASE {name} WITH (FORCE)")
