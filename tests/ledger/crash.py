"""The program that bad days happen to: it starts workers that release answers, and that may be
killed at any instant.

It prints "ready" and then reads jobs, one JSON object a line. {"act": ...} starts a worker and
prints its process id; {"wait": id} prints how it ended: its exit status, or minus the signal that
ended it. Workers are forked here, where everything is imported already: a killed one is replaced
within milliseconds. When the input ends all are killed.

`Nursery` starts this program and speaks to it.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

CANDIDATES = 1000
"""All of them tie: an answer that is drawn twice is hardly ever the same one."""

EPSILON = "1/100"
"""Price of one release."""

REFUSED, SPENT = 3, 4
"""Exit status of a worker that was refused by an error, or by the budget."""

PAUSE = 0.02
"""Seconds before a patient worker tries again."""


class Outside:
    """The world: a file of all that was ever told to it, on the disk before the worker goes on."""

    def __init__(self, path: str | Path) -> None:
        self._path = path

    def tell(self, **line: object) -> None:
        number = os.open(self._path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            os.write(number, json.dumps(line).encode() + b"\n")
            os.fsync(number)
        finally:
            os.close(number)

    def told(self) -> list[dict[str, Any]]:
        path = Path(self._path)
        return (
            [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
        )


class Nursery:
    """The program, from the side of who starts it."""

    def __init__(self) -> None:
        command = [sys.executable, "-W", "error", os.path.abspath(__file__)]
        self._program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._answer()  # it is ready

    def start(self, act: str, **job: object) -> int:
        return int(self._ask({"act": act, **job}))

    def wait(self, worker: int) -> int:
        return int(self._ask({"wait": worker}))

    def kill(self, worker: int) -> int:
        os.kill(
            worker, signal.SIGKILL
        )  # it is not reaped before `wait`, so the id is still its own
        return self.wait(worker)

    def run(self, act: str, jobs: Sequence[Mapping[str, object]]) -> list[int]:
        """Workers at work at the same time: how each ended."""
        workers = [self.start(act, **job) for job in jobs]
        return [self.wait(worker) for worker in workers]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._program.communicate()  # ends its input

    def _ask(self, job: dict[str, object]) -> str:
        if self._program.stdin is not None:
            self._program.stdin.write(json.dumps(job).encode() + b"\n")
            self._program.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        answer = self._program.stdout.readline() if self._program.stdout is not None else b""
        if not answer:
            raise RuntimeError("the program that starts workers has ended")
        return answer.decode()


# What workers do


def release(
    where: str,
    name: str,
    outside: str,
    prefix: str,
    *,
    until: int | None = None,
    patient: bool = False,
    clock: float = 0,
    room: int | None = None,
    user: int | None = None,
    slow: float = 0,
    hasty: bool = False,
) -> int:
    """Release answers to prefix-0, prefix-1, …, from the first that the outside has not seen.

    until     stop after this many requests; else go on until the budget is spent, or for ever
    patient   after an error try the same request again, as a client does whose server is being
              restarted
    clock     seconds by which the clock is wrong
    room      bytes that a file may have: a disk that is full
    user      id of another user to work as
    slow      seconds that a draw takes: those who make the same request catch up before it is
              recorded
    hasty     tell what was drawn, not what is recorded: what must not be done, for a test that must
              see it
    """
    from privmax.errors import AnswerError, BudgetError, LedgerError
    from privmax.ledger import Ledger

    if clock:
        _turn_clock(clock)
    if user is not None and os.geteuid() == 0:
        os.setgid(user)
        os.setuid(user)
    world = Outside(outside)
    number = sum("answer" in line for line in world.told())
    ledger: Ledger | None = None
    with ExitStack() as opened:
        while until is None or number < until:
            request = f"{prefix}-{number}"
            try:
                with _room(room):
                    ledger = ledger or opened.enter_context(Ledger(where, name))
                    answer = (_hasty if hasty else _released)(ledger, request, slow)
            except BudgetError:
                return SPENT
            except (
                LedgerError,
                AnswerError,
            ) as error:  # after the latter the answer is none, when asked again
                world.tell(request=request, error=str(error))
                if not patient:
                    return REFUSED
                time.sleep(PAUSE)
                continue
            world.tell(request=request, answer=answer)
            number += 1
    return 0


@contextmanager
def _room(most: int | None) -> Iterator[None]:
    """Files may have so many bytes, all but that of the outside."""
    if most is None:
        yield
        return
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))


def _released(ledger: Any, request: str, slow: float) -> Any:
    from privmax import select
    from privmax.noise.coins import SYSTEM, Coins

    coins: Coins = SlowCoins(slow) if slow else SYSTEM
    zeros = [0] * CANDIDATES
    made = select(
        zeros, epsilon=EPSILON, universe=CANDIDATES, ledger=ledger.request(request), coins=coins
    )
    return made.item


def _hasty(ledger: Any, request: str, slow: float) -> Any:
    from privmax.ledger import Charge
    from privmax.privacy import Privacy

    reservation = ledger.charge(Charge(Privacy(EPSILON)), {}, request=request)
    drawn = random.randrange(10**9)
    time.sleep(slow)
    reservation.record({"items": [drawn], "free": {}})
    return drawn  # and not what is recorded


class SlowCoins:
    """Fair coins, of which the first takes its time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def bits(self, n: int) -> int:
        self._wait()
        return random.SystemRandom().getrandbits(n)

    def bytes(self, n: int) -> bytes:
        self._wait()
        return os.urandom(n)

    def _wait(self) -> None:
        time.sleep(self._seconds)
        self._seconds = 0


def create(where: str, name: str, outside: str, *, at: float) -> int:
    """Make a ledger at a moment at which others do so too."""
    from privmax.errors import LedgerError
    from privmax.ledger import Ledger
    from privmax.privacy import Privacy

    time.sleep(max(0.0, at - time.time()))
    try:
        Ledger.create(where, name, budget=Privacy(1), who=str(os.getpid())).close()
    except LedgerError as error:
        Outside(outside).tell(error=str(error))
        return REFUSED
    Outside(outside).tell(made=os.getpid())
    return 0


ACTS: dict[str, Callable[..., int]] = {"release": release, "create": create}


def _turn_clock(seconds: float) -> None:
    """Give the module that dates events a wrong clock."""
    from privmax.ledger import chain

    def now(zone: Any) -> datetime:
        return datetime.now(zone) + timedelta(seconds=seconds)

    chain.datetime = SimpleNamespace(datetime=SimpleNamespace(now=now), UTC=UTC)  # type: ignore[assignment, attr-defined]


def _worker(job: dict[str, Any]) -> int:
    os.umask(0)  # nothing but the ledger keeps its files from the eyes of others
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(
        nothing, 0
    )  # the input belongs to the program, and a pipe that a worker holds would never end
    os.dup2(nothing, 1)
    try:
        return ACTS[job.pop("act")](**job)
    except BaseException:
        traceback.print_exc()
        return 1


def main() -> None:
    for name in (
        "psycopg",
        "privmax.selection",
        "privmax.ledger.sqlite",
        "privmax.ledger.postgres",
    ):
        import_module(name)  # for all workers; one that works as another user may not be able to

    print("ready", flush=True)
    running: set[int] = set()
    for line in sys.stdin:
        job = json.loads(line)
        if "wait" in job:
            running.discard(job["wait"])
            print(os.waitstatus_to_exitcode(os.waitpid(job["wait"], 0)[1]), flush=True)
        elif worker := os.fork():
            running.add(worker)
            print(worker, flush=True)
        else:
            os._exit(_worker(job))
    for worker in running:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)


if __name__ == "__main__":
    main()
