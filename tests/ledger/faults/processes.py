"""Bad days of processes and servers: many at once, killed, restarted, replies lost."""

from __future__ import annotations

import os
import random
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from pathlib import Path

import crash
import servers

from faults.scene import (
    BUDGET,
    SQLITE,
    TENTH,
    NotTried,
    Scene,
    Trial,
    Yard,
    differences,
    empty_place,
    events,
    open_to_others,
)
from privmax.errors import LedgerError
from privmax.ledger import Ledger
from privmax.privacy import Privacy

MOMENT = 0.25
"""Seconds a worker lives at most before it is killed: several releases, or not even the opening of
the ledger.
"""

# Many at once


def many_processes(
    yard: Yard, where: str, times: int, *, processes: int = 16, charges: int = 64
) -> Trial:
    """Everybody charges until the budget is spent: exactly as much as there was is spent."""
    trial = Trial(f"{processes} processes spend one budget", where, times)
    for _ in range(times):
        scene = Scene(yard, yard.place(where), budget=Privacy(charges * Fraction(crash.EPSILON)))
        jobs = [
            scene.job(worker, until=charges + 1) for worker in range(processes)
        ]  # an end, should nobody refuse
        ended = yard.nursery.run("release", jobs)
        if not set(ended) <= {0, crash.SPENT}:
            raise NotTried(f"workers ended with {ended}: {scene.errors()[-1:]}")
        before = trial.charges
        scene.judge(trial)
        if trial.charges - before != charges:
            trial.lost.append("a part of the budget")
    return trial


def one_request_of_many(yard: Yard, where: str, times: int, *, processes: int = 8) -> Trial:
    """Everybody makes the same requests at once: each is charged once, and everybody is told the
    same answer.
    """
    trial = Trial(f"{processes} processes make the same request", where, times)
    scene = Scene(yard, yard.place(where))
    jobs = [scene.job(worker, prefix="same", until=times, slow=0.1) for worker in range(processes)]
    ended = yard.nursery.run("release", jobs)
    if set(ended) != {0}:
        raise NotTried(f"workers ended with {ended}: {scene.errors()[-1:]}")
    scene.judge(trial)
    if trial.charges != times:
        trial.lost.append("a charge, or there is one too many")
    return trial


def races_to_create(yard: Yard, where: str, times: int, *, processes: int = 6) -> Trial:
    """Everybody makes a ledger of one name at the same moment: one succeeds, the others are
    refused.
    """
    trial = Trial(f"{processes} processes make a ledger of one name", where, times)
    for _ in range(times):
        folder = yard.fresh()
        with empty_place(yard, where) as place:
            outside = str(folder / "outside")
            job = {"where": place, "name": "one", "outside": outside, "at": time.time() + 0.03}
            yard.nursery.run("create", [job] * processes)
            told = crash.Outside(outside).told()
            made = [line["made"] for line in told if "made" in line]
            refusals = [
                line["error"] for line in told if "already has a ledger" in line.get("error", "")
            ]
            if (len(made), len(refusals)) != (1, processes - 1):
                trial.lost.append("the claim that one makes it and the others are refused")
            with Ledger(place, "one") as ledger:
                trial.lost += [f"verify finds: {fault}" for fault in ledger.verify()]
                if [(event.kind, event.who) for event in ledger.history()] != [
                    ("created", str(made[0]))
                ]:
                    trial.lost.append("the ledger of who was told to have made it")
    return trial


# Processes and servers that die


def kills(yard: Yard, where: str, times: int) -> Trial:
    """Two workers, of which one or both are killed at a random instant and replaced, over and
    over.
    """
    trial = Trial("kill -9 of processes that release", where, times)
    scene = Scene(yard, yard.place(where))
    running = {worker: scene.start(worker) for worker in range(2)}
    done = 0
    while done < times:
        time.sleep(random.uniform(0, MOMENT))
        killed = random.choice([[0], [1], [0, 1]])[: times - done]
        for worker in killed:
            if yard.nursery.kill(running[worker]) != -9:
                raise NotTried(f"a worker ended by itself: {scene.errors()[-1:]}")
        if (
            random.random() < 0.5
        ):  # else the next worker is the first to find what the kill left behind
            trial.seen.update(scene.stage(worker) for worker in killed)
            scene.glance()
        running |= {worker: scene.start(worker) for worker in killed}
        done += len(killed)
    for process in running.values():
        yard.nursery.kill(process)
    scene.finish()
    return scene.judge(trial)


def kills_of_makers(yard: Yard, where: str, times: int) -> Trial:
    """A process that makes a ledger is killed: there is a whole ledger afterwards, or none, and one
    can be made.
    """
    trial = Trial("kill -9 of a process that makes a ledger", where, times)
    for _ in range(times):
        folder = yard.fresh()
        with empty_place(yard, where) as place:
            job = {"where": place, "name": "one", "outside": str(folder / "outside"), "at": 0}
            maker = yard.nursery.start("create", **job)
            time.sleep(random.uniform(0, MOMENT))
            finished = yard.nursery.kill(maker) == 0
            trial.seen["had finished" if finished else "had not finished"] += 1
            known = finished or bool(crash.Outside(folder / "outside").told())
            with Ledger(place, "one", Privacy(1)) as ledger:
                trial.lost += [f"verify finds: {fault}" for fault in ledger.verify()]
                first = next(iter(ledger.history()))
                if known and first.who != str(maker):
                    trial.lost.append("a ledger that was made")
            if where == SQLITE:
                trial.lost += open_to_others(Path(place).parent, "*budget.db*")
    return trial


def restarts(yard: Yard, where: str, times: int, *, how: str) -> Trial:
    """The server goes while workers charge; they try the same requests again until it answers."""
    acts: Mapping[str, Callable[[], None]] = {
        "restarted": yard.server.restart,
        "killed with kill -9": yard.server.kill,
        "resets itself after kill -9 of one session": lambda: _kill_session(yard.server),
    }
    trial = Trial(
        f"the server is {how}" if how in list(acts)[:2] else f"the server {how}", where, times
    )
    scene = Scene(yard, yard.place(where))
    running = [scene.start(worker, patient=True) for worker in range(3)]
    for _ in range(times):
        time.sleep(random.uniform(0, MOMENT))
        acts[how]()
        scene.glance()
        _wait_for_answers(scene, running)
    for process in running:
        yard.nursery.kill(process)
    told = scene.errors()
    trial.seen["refused calls, tried again"] = len(told)
    trial.seen["commits of unknown outcome"] = sum("was not confirmed" in line for line in told)
    scene.finish()
    return scene.judge(trial)


RESTARTS = ("restarted", "killed with kill -9", "resets itself after kill -9 of one session")


def _wait_for_answers(scene: Scene, running: Sequence[int]) -> None:
    """Until every worker has got a new answer: the next fault meets all of them at work."""
    before = [len(scene.told(worker)) for worker in range(len(running))]
    deadline = time.monotonic() + 60
    while any(
        "answer" not in "".join(map(str, scene.told(worker)[before[worker] :]))
        for worker in range(len(running))
    ):
        if time.monotonic() > deadline:
            raise NotTried(f"workers do not go on: {scene.errors()[-1:]}")
        time.sleep(0.01)


def _kill_session(server: servers.Postgres) -> None:
    """Kill one that charges: the server ends all others, of which one is ours, and recovers."""
    import psycopg

    query = (
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'privmax' ORDER BY "
        "random() LIMIT 1"
    )
    with psycopg.connect(server.url, autocommit=True) as ours:
        while (found := ours.execute(query).fetchone()) is None:
            time.sleep(0.01)
        os.kill(found[0], signal.SIGKILL)
        with suppress(psycopg.OperationalError):
            while ours.execute("SELECT 1"):
                time.sleep(0.01)
    server.start()  # waits until it answers


# Acknowledgements that are lost


class Proxy:
    """Stands between a client and the server, and can cut the connection at the next COMMIT."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._cut: str | None = None
        self.cuts = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        port = self._listening.getsockname()[1]
        return f"postgresql://privmax:{servers.PASSWORD}@127.0.0.1:{port}/postgres"

    def redirect(self, port: int) -> None:
        """Further connections are to another server."""
        self._port = port

    def cut(self, when: str) -> None:
        """ "before" the server hears of the commit, or "after" it has said that it is done, which
        nobody hears.
        """
        self._cut = when

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with suppress(OSError):  # the server is gone, or it is closed here
            self._serve(client)

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            others = {client: server, server: client}
            while True:
                for one in select.select(list(others), [], [])[0]:
                    data = one.recv(65536)
                    if not data:
                        return
                    if one is client and b"COMMIT\0" in data and self._cut is not None:
                        self._finish(client, server, data)
                        return
                    others[one].sendall(data)

    def _finish(self, client: socket.socket, server: socket.socket, commit: bytes) -> None:
        when, self._cut = self._cut, None
        if when == "after":
            server.sendall(commit)
            heard = b""
            while b"COMMIT\0" not in heard:  # the server says what it has done, by this name
                for one in select.select([client, server], [], [])[0]:
                    if one is client:
                        server.sendall(
                            client.recv(65536)
                        )  # it answers at the end of what belongs together
                    else:
                        heard += server.recv(65536)
        self.cuts += 1


def lost_replies(yard: Yard, where: str, times: int, *, when: str) -> Trial:
    """The connection is cut at the commit of the charge, and of the record: the same request id
    settles both.
    """
    fault = {
        "before": "the connection is cut at COMMIT, before the server hears it",
        "after": "the reply to COMMIT is lost",
    }
    trial = Trial(fault[when], where, times)
    name = f"cut {when} {yard.fresh().name}"
    Ledger.create(yard.server.url, name, budget=BUDGET).close()
    proxy = Proxy(yard.server.port)
    seen: list[tuple[str, object]] = []
    try:
        with Ledger(proxy.url, name) as ledger:
            for number in range(times // 2):
                request = f"r-{number}"
                charged = _cut(proxy, when, partial(ledger.charge, TENTH, {}, request=request))
                before = len(events(yard.server.url, name, "ORDER BY seq"))
                reservation = ledger.charge(TENTH, {}, request=request)
                more = len(events(yard.server.url, name, "ORDER BY seq")) - before
                if more != (when == "before" and charged is not None):
                    trial.lost.append("a charge, or there is one too many")
                first, second = {"items": [f"first {number}"]}, {"items": [f"second {number}"]}
                recorded = _cut(proxy, when, partial(reservation.record, first))
                given = reservation.record(second)
                seen.append((request, given["items"][0]))
                if given != (second if when == "before" and recorded is not None else first):
                    trial.lost.append("the answer that was recorded")
                told = [text for text in (charged, recorded) if text is not None]
                trial.seen["settled by itself, on a new connection"] += 2 - len(told)
                if any("count a charge as spent" not in text for text in told):
                    trial.lost.append("the warning that it counts as spent")
                if any(servers.PASSWORD in text for text in told):
                    trial.lost.append("a password, into an error")
        if proxy.cuts != 2 * (times // 2):
            raise NotTried("the proxy did not cut")
        with Ledger(yard.server.url, name) as ledger:
            trial.lost += [f"verify finds: {fault}" for fault in ledger.verify()]
            history = list(ledger.history())
            trial.charges = sum(event.kind == "reserved" for event in history)
            if (
                ledger.spent != Privacy(trial.charges * TENTH.privacy.epsilon)
                or trial.charges != times // 2
            ):
                trial.lost.append("a charge, or there is one too many")
    finally:
        proxy.close()
    trial.lost += differences(history, seen)
    trial.answers = len(seen)
    return trial


def _cut(proxy: Proxy, when: str, act: Callable[[], object]) -> str | None:
    """What an act says whose connection is cut; None: it connected again, and came through."""
    proxy.cut(when)
    try:
        act()
    except LedgerError as error:
        return str(error)
    return None
