"""Bad days of PostgreSQL beyond one server: paused, out of reach, and replaced by an older one."""

from __future__ import annotations

import random
import select
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from fractions import Fraction

import crash
import servers

from faults.processes import MOMENT, Proxy, _wait_for_answers
from faults.scene import NotTried, Scene, Trial, Yard, asked, events
from privmax.errors import LedgerError
from privmax.ledger import Charge, Ledger
from privmax.privacy import Privacy

TICK = 0.01
"""Seconds after which a proxy looks again whether it may forward."""

WORKERS = 3

BEFORE, AFTER = 3, 6
"""Requests that are answered before an older state is kept, and until it comes back."""


def pauses(yard: Yard, where: str, times: int) -> Trial:
    """All processes of the server stop for a moment, at any instant of a release."""
    trial = Trial("the server is paused (SIGSTOP)", where, times)
    scene = Scene(yard, yard.place(where))
    running = [scene.start(worker, patient=True) for worker in range(WORKERS)]
    for _ in range(times):
        time.sleep(random.uniform(0, MOMENT))
        with yard.server.paused():
            time.sleep(random.uniform(0, MOMENT))
        scene.glance()
        _wait_for_answers(scene, running)
    _end(yard, scene, running, trial)
    return scene.judge(trial)


PARTITIONS = ("both ways", "to the server", "from the server", "of the client alone")


def partitions(yard: Yard, where: str, times: int) -> Trial:
    """Nothing is forwarded for a moment, both ways or one way, and then everything or nothing.

    Or clients lose their connections, while the server believes for a moment that it has them.
    """
    trial = Trial("the network is partitioned", where, times)
    scene = Scene(yard, yard.place(where))
    with closing(Partition(yard.server.port)) as proxy:
        job = {"where": proxy.url, "patient": True}
        running = [scene.start(worker, **job) for worker in range(WORKERS)]
        for number in range(times):
            time.sleep(random.uniform(0, MOMENT))
            how = PARTITIONS[number % len(PARTITIONS)]
            proxy.hold(how)
            time.sleep(random.uniform(0, MOMENT))
            heals = random.random() < 0.5
            proxy.release(cut=not heals)
            trial.seen[f"{how}, {'healed' if heals else 'and then cut'}"] += 1
            scene.glance()
            _wait_for_answers(scene, running)
        _end(yard, scene, running, trial)
    return scene.judge(trial)


def _end(yard: Yard, scene: Scene, running: list[int], trial: Trial) -> None:
    for process in running:
        yard.nursery.kill(process)
    told = scene.errors()
    trial.seen["refused calls, tried again"] = len(told)
    trial.seen["commits of unknown outcome"] = sum("was not confirmed" in line for line in told)
    scene.finish()


class Partition(Proxy):
    """A proxy that may stop to forward, and may lose clients without telling the server."""

    def __init__(self, port: int) -> None:
        self._held: frozenset[str] = frozenset()
        self._lost = self._cuts = 0
        super().__init__(port)

    def hold(self, how: str) -> None:
        """Forward no more, in these directions; or close all connections to clients."""
        ways = {"to the server": ["client"], "from the server": ["server"]}
        self._held = frozenset(ways.get(how, ["client", "server"]))
        self._lost += how == "of the client alone"

    def release(self, *, cut: bool) -> None:
        """Forward again what came meanwhile; or close all connections of before."""
        self._cuts += cut
        self._held = frozenset()

    def _serve(self, client: socket.socket) -> None:
        lost, cuts = self._lost, self._cuts
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            sources = {"client": client, "server": server}
            while cuts == self._cuts:
                if lost != self._lost:
                    client.close()
                    while self._held:
                        time.sleep(TICK)
                    return
                held = self._held
                open_now = [one for name, one in sources.items() if name not in held]
                ready = select.select(open_now, [], [], TICK)[0]
                if held != self._held:
                    continue
                for one in ready:
                    data = one.recv(65536)
                    if not data:
                        return
                    (server if one is client else client).sendall(data)


# Older servers


def synchronous_failovers(yard: Yard, where: str, times: int) -> Trial:
    """The server is killed, and its synchronous standby takes over: everything is there."""
    trial = Trial("a synchronous standby takes over", where, times)
    for _ in range(times):
        with servers.Postgres() as old, servers.Postgres(of=old) as new:
            old.change("synchronous_standby_names = '*'")
            with closing(Proxy(old.port)) as proxy:
                scene = Scene(yard, proxy.url)
                running = [scene.start(worker, patient=True) for worker in range(WORKERS)]
                _wait_for_answers(scene, running)
                time.sleep(random.uniform(0, MOMENT))
                old.end()
                new.promote()
                proxy.redirect(new.port)
                scene.glance()
                _wait_for_answers(scene, running)
                _end(yard, scene, running, trial)
                scene.judge(trial)
    return trial


def older_states(yard: Yard, where: str, times: int, *, how: str) -> Trial:
    """A server without the last commits takes the place of another.

    A process that made one of these commits is refused, and a hash that was noted is missing.
    Nothing else can tell, so these requests are charged and drawn again.
    """
    trial = Trial(OLDER[how], where, times)
    for _ in range(times):
        with servers.Postgres() as old, closing(Proxy(old.port)) as proxy:
            if how == "standby":
                with servers.Postgres(of=old) as standby:
                    forget = _freeze(old, standby)

                    def take_over(standby: servers.Postgres = standby) -> None:
                        old.end()
                        standby.promote()
                        proxy.redirect(standby.port)

                    _go_back(yard, trial, proxy.url, forget, take_over)
            else:
                _go_back(yard, trial, proxy.url, old.save, old.restore)
    return trial


OLDER: Mapping[str, str] = {
    "standby": "a standby without the last commits takes over",
    "backup": "the data folder of an earlier day is put back",
}


def _freeze(old: servers.Postgres, standby: servers.Postgres) -> Callable[[], None]:
    """What makes a standby follow no longer, once it has all that there is."""

    def freeze() -> None:
        deadline = time.monotonic() + 60
        there = "SELECT count(*) FROM privmax_events"
        while _number(standby, there) != _number(old, there):
            if time.monotonic() > deadline:
                raise NotTried("the standby does not follow")
            time.sleep(TICK)
        standby.change("primary_conninfo = ''")
        while _number(standby, "SELECT count(*) FROM pg_stat_wal_receiver"):
            time.sleep(TICK)

    return freeze


def _number(server: servers.Postgres, query: str) -> int:
    return int(asked(server.url, query)[0][0])


def _go_back(
    yard: Yard,
    trial: Trial,
    url: str,
    keep: Callable[[], None],
    go_back: Callable[[], None],
) -> None:
    """Release, keep a state, release more, go back to that state, and look what is noticed."""
    scene, charge = Scene(yard, url), Charge(Privacy(crash.EPSILON), unit="user")
    _work(yard, scene, BEFORE)
    keep()
    kept = events(url, scene.name, "ORDER BY seq")
    _work(yard, scene, AFTER)
    with Ledger(url, scene.name) as witness:
        crash.release_once(witness, "witness")
        noted = list(witness.history())[-1].hash
        told = {line["request"]: line["answer"] for line in scene.told(0)}
        go_back()
        if events(url, scene.name, "ORDER BY seq") != kept:
            trial.lost.append("an event of the state that was kept, or there is one too many")
        for more in range(BEFORE + 1):  # also once there are as many events as there were
            with Ledger(url, scene.name) as unaware:
                request = f"w0-{BEFORE - 1 + more}"
                answer = crash.release_once(unaware, request)
                if noted in {event.hash for event in unaware.history()}:
                    trial.lost.append("the difference from a noted hash")
                trial.lost += [f"verify finds: {fault}" for fault in unaware.verify()]
                spent, charges = unaware.spent, BEFORE + more
            if spent != Privacy(charges * Fraction(crash.EPSILON)):
                trial.lost.append("the charges are not what is spent")
            if more == 0 and answer != told[request]:
                trial.lost.append("an answer that is not the recorded one")
            if more:
                trial.seen["requests that were forgotten and drawn again"] += 1
            try:
                witness.charge(charge, {}, request="late")
                trial.lost.append("the refusal of a ledger that has lost an event")
            except LedgerError as error:
                if "which this process has seen" not in str(error):
                    trial.lost.append(f"the reason, in the error: {error}")
                trial.seen["refused to a process that committed more"] += 1
        trial.seen["a noted hash is missing"] += 1
    trial.charges += charges
    trial.answers += BEFORE + AFTER + 1


def _work(yard: Yard, scene: Scene, until: int) -> None:
    if yard.nursery.wait(scene.start(0, until=until)):
        raise NotTried(f"a worker failed: {scene.errors()[-1:]}")
