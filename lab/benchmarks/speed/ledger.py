"""Ledgers: charges per second, what a selection pays, and a million charges among kills.

    ./dev python -m lab.benchmarks.speed.ledger [--part NAME]

A charge counts when it is on the disk, so none is faster than one write that is put there (fsync),
which is measured beside each part. Under load workers charge in batches and one at a time and
record answers, and each writes what it was told into a file of its own. Every few seconds one of
them is killed, on PostgreSQL now and then the whole server; those who come after repeat the last
requests under their ids. At the end the files are compared with the ledger. How ledgers fare under
many other faults is a matter of tests/ledger/test_bad_days.py.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psycopg
import servers

from lab.benchmarks.harness import Benchmark, Row, Rows, clocked, note, resident
from privmax import select
from privmax.errors import LedgerError
from privmax.ledger import Charge, Ledger
from privmax.privacy import Privacy

SQLITE, POSTGRES = "SQLite", "PostgreSQL"
BUDGET = Privacy(10**6, "1e-5")
CENT = Charge(Privacy("1/100"), unit="row")
WHAT = {"command": "select", "mechanism": "none", "dataset": "speed"}

SECONDS, ROUNDS = 5.0, 5
"""Of charging at a time, and how often each number of processes has its turn."""

ONE, BATCHES, PARTS = "one at a time", "batches of 100", "a part each"
HOW = {ONE: (1, 4, 16), BATCHES: (1, 16), PARTS: (4, 16)}
"""How so many processes charge: all of them one ledger, or each a part that was split off."""

MANY = 16
"""Processes beside as many with a plain transaction."""

RELEASES = 96
"""Releases of which the waits for the disk are counted, by each number of threads."""

DISK = ("the disk alone", "one write of 4 KiB (fsync)", 1)
"""What no charge can be faster than, measured in every round."""

CANDIDATES, SELECTIONS = (10**3, 10**6), 40
HISTORY = (100, 10_000)
LONG = (100, 100_000)
SYNCS = 300

CHARGES, HOUR, WORKERS, BATCH = 10**6, 3600.0, 4, 500
"""A load ends after so many charges, or after an hour."""

KILL_EVERY, SERVER_EVERY, LOOK_EVERY = 4.0, 60.0, 5.0
"""Seconds between kills of a worker, of the server, and looks at memory and disk."""


class Yard:
    """A folder, and a PostgreSQL once somebody asks for it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._made = folder, count()

    @cached_property
    def server(self) -> servers.Postgres:
        return servers.Postgres()

    def fresh(self) -> Path:
        made = self._folder / str(next(self._made))
        made.mkdir()
        return made

    def place(self, where: str) -> str:
        """For a ledger; on a server others may have theirs there too."""
        return self.server.url if where == POSTGRES else str(self.fresh() / "budget.db")

    def fsync(self) -> float:
        """How often a second the disk puts 4 KiB, appended to a file, where they last."""
        times = []
        with (self.fresh() / "floor").open("wb", buffering=0) as file:
            for _ in range(SYNCS):
                before = time.perf_counter()
                file.write(b"\0" * 4096)
                os.fdatasync(file.fileno())
                times.append(time.perf_counter() - before)
        return 1 / median(times)


@contextmanager
def a_yard() -> Iterator[Yard]:
    with tempfile.TemporaryDirectory(prefix="privmax-ledger-") as folder:
        yard = Yard(Path(folder))
        try:
            yield yard
        finally:
            if "server" in yard.__dict__:
                yard.server.close()


def worker(act: str, *arguments: Any) -> subprocess.Popen[str]:
    """A process of this file that does one of ACTS."""
    command = [sys.executable, "-m", "lab.benchmarks.speed.ledger", act, json.dumps(arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def agree(start: float) -> float:
    """In a worker: return when to begin; at 0, say that it is ready, and be told."""
    if start:
        return start
    print("ready", flush=True)
    return float(sys.stdin.readline())


# Charges per second


def rates(options: argparse.Namespace) -> Rows:
    """Charges per second by everybody together, each number of processes in turn."""
    seconds, rounds = (0.5, 1) if options.quick else (SECONDS, ROUNDS)
    found: dict[tuple[str, str, int], list[float]] = {}
    with a_yard() as yard:
        turns = [(where, how, n) for where in (SQLITE, POSTGRES) for how in HOW for n in HOW[how]]
        for _ in range(rounds):
            found.setdefault(DISK, []).append(yard.fsync())
            for turn in turns:
                found.setdefault(turn, []).append(rate(yard, *turn, seconds))
                note(f"{turn}: {found[turn][-1]:.0f} charges a second")
        with psycopg.connect(yard.server.url) as connection:
            version = connection.execute("SHOW server_version").fetchall()[0][0]
    rows = [
        {"where": where, "how": how, "processes": n, "rate": median(each)}
        | {"least": min(each), "most": max(each)}
        for (where, how, n), each in found.items()
    ]
    return {"rates": rows, "server": [{"version": version}]}


def rate(yard: Yard, where: str, how: str, processes: int, seconds: float) -> float:
    folder, place = yard.fresh(), yard.place(where)
    name = f"speed {folder.name}"
    ledgers = [(place, name)] * processes
    with Ledger.create(place, name, budget=BUDGET) as whole:
        if how == PARTS:
            files = [str(folder / f"{n}.db") for n in range(processes)]
            places = [place] * processes if where == POSTGRES else files
            ledgers = [(at, f"{name} {n}") for n, at in enumerate(places)]
            for at, part in ledgers:
                whole.split(part, Privacy(10**4), where=at, unit="row").close()
    start, batch = time.time() + 2 + 0.5 * processes, 100 if how == BATCHES else 1
    workers = [worker("charge", at, part, start, seconds, batch) for at, part in ledgers]
    told = [process.communicate()[0] for process in workers]
    if not all(told):
        raise SystemExit("a process that charges failed, or was not ready in time")
    charges = sum(map(int, told))
    spent = Privacy(0)
    for at, part in dict.fromkeys(ledgers):
        with Ledger(at, part) as ledger:
            spent += ledger.spent
    if spent != Privacy(charges * CENT.privacy.epsilon):
        raise SystemExit("the charges are not what is spent")
    return charges / seconds


def charge(place: str, name: str, start: float, seconds: float, batch: int) -> None:
    """In a worker: charge as fast as can be from a moment on, and print how often that was."""
    charges = 0
    with Ledger(place, name) as ledger:
        ledger.fits(CENT)  # has everything opened
        start = agree(start)
        if time.time() > start:
            return
        time.sleep(start - time.time())
        while time.time() < start + seconds:
            if batch == 1:
                ledger.charge(CENT, WHAT)
            else:
                with ledger.batch() as many:
                    for _ in range(batch):
                        many.charge(CENT, WHAT)
            charges += batch
    print(charges)


def plain(options: argparse.Namespace) -> Rows:
    """Charges per second of many processes beside a plain transaction of the same durability."""
    seconds, rounds = (0.5, 1) if options.quick else (4.0, 1)
    found: dict[str, list[tuple[float, float]]] = {SQLITE: [], POSTGRES: []}
    with a_yard() as yard:
        for _ in range(rounds):
            for where, each in found.items():
                place, name = yard.place(where), f"plain {yard.fresh().name}"
                Ledger.create(place, name, budget=BUDGET).close()
                table = str(yard.fresh() / "plain.db") if where == SQLITE else place
                _make_plain(table)
                turn = []
                for act, arguments in (("charge", [place, name, 0.0, seconds, 1]),
                                       ("insert", [table, 0.0, seconds])):  # fmt: skip
                    workers = [worker(act, *arguments) for _ in range(MANY)]
                    for process in workers:
                        assert process.stdout is not None
                        process.stdout.readline()  # it is ready
                    start = time.time() + 2
                    for process in workers:
                        assert process.stdin is not None
                        process.stdin.write(f"{start}\n")
                        process.stdin.flush()
                    told = [process.communicate()[0] for process in workers]
                    turn.append(sum(map(int, told)) / seconds)
                each.append((turn[0], turn[1]))
                note(f"{where}: {turn[0]:.0f} charges a second, {turn[1]:.0f} plain")
    return {
        "plain": [
            {"where": where, "processes": MANY, "rate": median(ours for ours, _ in each)}
            | {"plain": median(plain for _, plain in each)}
            | {"share": median(ours / plain for ours, plain in each)}
            for where, each in found.items()
        ]
    }


def _open_plain(place: str) -> Any:
    """Open a database for plain transactions, each on the disk before it is told."""
    if place.startswith("postgres"):
        return psycopg.connect(place, autocommit=True, prepare_threshold=None)
    connection = sqlite3.connect(place, timeout=120, isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    return connection


def _make_plain(place: str) -> None:
    with closing(_open_plain(place)) as connection:
        for made in (
            "DROP TABLE IF EXISTS plain_total",
            "DROP TABLE IF EXISTS plain_events",
            "CREATE TABLE plain_total (spent bigint)",
            "CREATE TABLE plain_events (body text)",
            "INSERT INTO plain_total VALUES (0)",
        ):
            connection.execute(made)


def insert(place: str, start: float, seconds: float) -> None:
    """In a worker: lock, insert a row as long as an event, update a total, commit."""
    on_server, made, body = place.startswith("postgres"), 0, "x" * 800
    with closing(_open_plain(place)) as connection:
        start = agree(start)
        if time.time() > start:
            return
        time.sleep(start - time.time())
        while time.time() < start + seconds:
            if on_server:
                connection.execute("BEGIN")
                connection.execute("SELECT spent FROM plain_total FOR UPDATE")
            else:
                connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"INSERT INTO plain_events VALUES ('{body}')")
            connection.execute("UPDATE plain_total SET spent = spent + 1")
            connection.execute("COMMIT")
            made += 1
    print(made)


# Waits for the disk


def waits(options: argparse.Namespace) -> Iterator[Rows]:
    """How often SQLite waits for the disk for a charge and for an answer, by strace."""
    if shutil.which("strace") is None:
        note("strace is not installed")
        return
    rows: list[Row] = []
    with a_yard() as yard:
        for threads in (1, 4, 16):
            counts = {}
            for act in ("nothing", "charges", "answers"):
                place, trace = yard.place(SQLITE), yard.fresh() / "trace"
                Ledger.create(place, "waits", budget=BUDGET).close()
                command = ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o", str(trace)]
                command += [sys.executable, "-m", "lab.benchmarks.speed.ledger", "wait"]
                subprocess.run([*command, json.dumps([place, threads, act])], check=True)
                lines = trace.read_text(encoding="utf-8").splitlines()
                counts[act] = sum("sync(" in line for line in lines)
            charges, both = (counts[act] - counts["nothing"] for act in ("charges", "answers"))
            row = {"threads": threads, "charge": charges / RELEASES}
            rows.append(row | {"answer": (both - charges) / RELEASES})
            note(f"{rows[-1]}")
    yield {"waits": rows}


def wait(place: str, threads: int, act: str) -> None:
    """In a worker: charge, and record answers, by so many threads at the same time."""

    def release(ledger: Ledger, number: int) -> None:
        held = ledger.charge(CENT, WHAT)
        if act == "answers":
            held.record(number)

    with Ledger(place, "waits") as ledger, ThreadPoolExecutor(threads) as pool:
        ledger.fits(CENT)
        for number in range(0 if act == "nothing" else RELEASES):
            pool.submit(release, ledger, number)


# One selection, and one charge after many


def selections(options: argparse.Namespace) -> Rows:
    """One selection without a ledger and with each, in turn."""
    rows: list[Row] = []
    with a_yard() as yard:
        for size in CANDIDATES:
            scores = np.random.default_rng(7).integers(0, 1000, size)
            ledgers: dict[str, Ledger | None] = {"no ledger": None}
            for where in (SQLITE, POSTGRES):
                ledgers[where] = Ledger(yard.place(where), f"select {size}", BUDGET)
            found: dict[str, list[float]] = {where: [] for where in ledgers}
            for turn in range(4 if options.quick else SELECTIONS + 1):
                for where, ledger in ledgers.items():
                    before = time.perf_counter()
                    select(scores, epsilon=1, universe=size, ledger=ledger)
                    if turn:  # the first warms up
                        found[where].append(time.perf_counter() - before)
            for ledger in filter(None, ledgers.values()):
                ledger.close()
            rows += [
                {"where": at, "candidates": size, "wall": median(each), "repeats": len(each)}
                for at, each in found.items()
            ]
    return {"selections": rows}


def history(options: argparse.Namespace) -> Rows:
    """What a charge costs after many, by each rule. "pld" costs more with each new price."""
    few, many = (20, 200) if options.quick else HISTORY
    rows: list[Row] = []
    with a_yard() as yard:
        for rule, longest in (("basic", many), ("zcdp", many), ("pld", few)):
            note(f"rule {rule}")
            with Ledger.create(yard.place(SQLITE), rule, budget=BUDGET, rule=rule) as ledger:
                times: list[float] = []
                while len(times) < longest:
                    before = time.perf_counter()
                    ledger.charge(Charge(Privacy("1/1000")), {"number": len(times)})
                    times.append(time.perf_counter() - before)
                    if len(times) in (few, many):
                        last = times[-max(10, few // 2) :]
                        row = {"rule": rule, "events": len(times), "wall": median(last)}
                        rows.append({**row, "repeats": len(last)})
    return {"history": rows}


def reading(options: argparse.Namespace) -> Rows:
    """What it costs to show a ledger with two accounts, and to verify it, by its length."""
    rows: list[Row] = []
    with a_yard() as yard:
        for events in (20, 2000) if options.quick else LONG:
            with Ledger.create(yard.place(SQLITE), "long", budget=BUDGET) as ledger:
                for name in ("ann", "bob"):
                    ledger.open_account(name, Privacy(10**5))
                while ledger.event_count < events:
                    with ledger.batch() as batch:
                        for number in range(min(BATCH, events - ledger.event_count)):
                            batch.charge(CENT, WHAT, account=[None, "ann", "bob"][number % 3])
                acts: dict[str, Callable[[], object]] = {
                    "standing": ledger.standing,
                    "last 20 events": lambda: list(ledger.history(last=20)),
                    "verify, per event": ledger.verify,
                }
                for act, call in acts.items():
                    call()
                    times = [clocked(call)[0] for _ in range(3 if act.startswith("v") else 20)]
                    each = median(times) / (events if act.startswith("v") else 1)
                    rows.append({"act": act, "events": events, "processor": each})
                    note(f"{rows[-1]}")
    return {"reading": rows}


# Load


def load(where: str, options: argparse.Namespace) -> Rows:
    with a_yard() as yard:
        return {"load": [loaded(yard, where, 2000 if options.quick else CHARGES)]}


def loaded(yard: Yard, where: str, charges: int) -> Row:
    place, folder, share = yard.place(where), yard.fresh(), charges // WORKERS
    until = time.time() + HOUR
    Ledger.create(place, "load", budget=BUDGET).close()

    def start(number: int) -> subprocess.Popen[str]:
        return worker("work", place, str(folder / str(number)), share, number, until)

    workers = [start(number) for number in range(WORKERS)]
    began = looked = killed = crashed = time.monotonic()
    kills = crashes = 0
    over_time: list[Row] = []
    while any(process.poll() is None for process in workers):
        time.sleep(0.2)
        now = time.monotonic()
        if now - looked > LOOK_EVERY:
            looked = now
            over_time.append({"seconds": now - began, **look(where, place, workers, folder)})
            note(f"{where}: {over_time[-1]}")
        chosen = random.choice(workers)
        if now - killed > KILL_EVERY and chosen.poll() is None:
            chosen.kill()
            chosen.wait()
            killed, kills = now, kills + 1
        if where == POSTGRES and now - crashed > SERVER_EVERY:
            yard.server.kill()
            crashed, crashes = time.monotonic(), crashes + 1
        for number, process in enumerate(workers):
            if process.poll() not in (None, 0):
                workers[number] = start(number)
    seconds = time.monotonic() - began
    made, lost = differences(place, folder)
    step = max(1, len(over_time) // 12)
    return {
        "where": where,
        "charges": made,
        "seconds": seconds,
        "kills": kills,
        "crashes": crashes,
        "lost": lost,
        "verified": time.monotonic() - began - seconds,
        "over_time": [
            {name: round(value, 1) for name, value in row.items()}
            for row in over_time[::-step][::-1]
        ],
    }


def work(place: str, outside: str, share: int, number: int, until: float) -> None:
    """In a worker: charge and record what is left of a share, or until some time.

    Batches, but for the first part of the first worker, which is one at a time. Even after that
    time a worker who takes over repeats the last requests: somebody may have charged them and been
    killed before he was told.
    """
    done = sum(1 for _ in answers(Path(outside)))
    with Ledger(place, "load") as ledger, open(outside, "a", encoding="utf-8") as world:
        while done < share:
            some = min(1 if not number and done < share // 50 else BATCH, share - done)
            requests = [f"{number}-{place}" for place in range(done, done + some)]
            try:
                drawn = draw(ledger, requests)
            except LedgerError as error:
                print(f"worker {number}: {str(error)[:200]}", file=sys.stderr)
                time.sleep(0.2)
                continue
            told = zip(requests, drawn, strict=True)
            world.write("".join(f"{request} {answer}\n" for request, answer in told))
            world.flush()
            done += some
            if time.time() > until:
                return


def draw(ledger: Ledger, requests: list[str]) -> list[int]:
    """An answer to each request, as a nightly job makes them."""
    if len(requests) == 1:
        held = ledger.charge(CENT, {"command": "load"}, request=requests[0])
        number = random.SystemRandom().randrange(10**6)
        return [held.answer if held.recorded else held.record(number)]
    with ledger.batch() as batch:
        charged = [batch.charge(CENT, {"command": "load"}, request=one) for one in requests]
    with ledger.batch() as batch:
        for held in charged:
            if not held.recorded:
                batch.record(held, random.SystemRandom().randrange(10**6))
    return [held.answer for held in charged]


def answers(outside: Path) -> Iterator[tuple[str, int]]:
    """What a worker was told; a line that is cut off was told to nobody."""
    with suppress(FileNotFoundError):
        for line in outside.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                request, answer = line.split()
                yield request, int(answer)


def differences(place: str, folder: Path) -> tuple[int, list[str]]:
    """How many charges workers were told of, and all that is wrong: with the history, with its sum,
    or beside what they were told.
    """
    with Ledger(place, "load") as ledger:
        lost = [f"verify finds: {fault}" for fault in ledger.verify()]
        told = {request: answer for file in folder.iterdir() for request, answer in answers(file)}
        charges = len(told)
        if ledger.spent != Privacy(charges * CENT.privacy.epsilon):
            lost.append("a charge, or there is one too many")
        for event in ledger.history():
            if (
                event.kind == "released"
                and told.pop(str(event.request), None) != event.body["answer"]
            ):
                lost.append(f"the answer to {event.request}")
        lost += [f"the record of {request}" for request in told]
    return charges, lost[:20]


def look(where: str, place: str, workers: list[subprocess.Popen[str]], folder: Path) -> Row:
    """Answers so far, megabytes of the largest worker (and session), and on the disk."""
    found: Row = {"told": sum(file.stat().st_size for file in folder.iterdir()) / 16}
    found["memory"] = max(resident(one.pid, "RssAnon") for one in workers) / 1e6
    if where == SQLITE:
        return found | {"disk": Path(place).stat().st_size / 1e6}
    sessions = "SELECT pid FROM pg_stat_activity WHERE application_name = 'privmax'"
    try:
        with psycopg.connect(place) as connection:
            size = connection.execute("SELECT pg_total_relation_size('privmax_events')").fetchall()
            pids = connection.execute(sessions).fetchall()
    except psycopg.Error:  # it was killed a moment ago
        return found | {"disk": 0.0, "server": 0.0}
    largest = max((resident(pid, "RssAnon") for (pid,) in pids), default=0)
    return found | {"disk": size[0][0] / 1e6, "server": largest / 1e6}


ACTS: dict[str, Callable[..., None]] = {
    "charge": charge, "insert": insert, "work": work, "wait": wait
}  # fmt: skip

if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in ACTS:
        os.environ.pop("PRIVMAX_LEDGER", None)
        ACTS[sys.argv[1]](*json.loads(sys.argv[2]))
    else:
        Benchmark(
            "ledger",
            "speed.ledger",
            {
                "rates": rates,
                "plain": plain,
                "selections": selections,
                "history": history,
                "waits": waits,
                "reading": reading,
                "load-sqlite": partial(load, SQLITE),
                "load-postgres": partial(load, POSTGRES),
            },
            packages=("privmax", "psycopg", "numpy"),
            settings={"seconds": SECONDS, "rounds": ROUNDS, "selections": SELECTIONS},
            keys={"load": ("where",)},
        ).main()
