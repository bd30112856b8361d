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
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from privmax.noise.coins import Coins

CANDIDATES = 1000
"""All of them tie: an answer that is drawn twice is hardly ever the same one."""

EPSILON = "1/100"
"""Price of one release."""

REFUSED, SPENT = 3, 4
"""Exit status of a worker that was refused by an error, or by the budget."""

NEVER = 10**6
"""More calls, and bytes, than a release needs."""

OTHERS = 12
"""Of so many requests that failed, one is repeated by another process."""

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

    def __init__(self, library: Path | None = None, within: Sequence[str] = ()) -> None:
        """Start it.

        Args:
            library: What is loaded before all other libraries (interposing.py).
            within: A command that starts another, such as one that makes a namespace.
        """
        command = [*within, sys.executable, "-W", "error", os.path.abspath(__file__)]
        environment = {**os.environ, **({} if library is None else {"LD_PRELOAD": str(library)})}
        self._program = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
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
    noting: bool = False,
) -> int:
    """Release answers to prefix-0, prefix-1, …, from the first that the outside has not seen.

    until     stop after this many requests; else go on until the budget is spent, or for ever
    patient   after an error try the same request again, as a client does whose server is being
              restarted
    clock     seconds by which the clock is wrong: that of the module that dates events, or of the
              whole process where there is a library for that
    room      bytes that a file may have: a disk that is full
    user      id of another user to work as
    slow      seconds that a draw takes: those who make the same request catch up before it is
              recorded
    hasty     tell what was drawn, not what is recorded: what must not be done, for a test that must
              see it
    noting    tell that an answer is drawn, before it is
    """
    from privmax.errors import AnswerError, BudgetError, LedgerError
    from privmax.ledger import Ledger

    if clock and "LD_PRELOAD" in os.environ:
        from interposing import Interposer

        Interposer(Path(outside).parent).turn_clock(clock)
    elif clock:
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
                    if hasty:
                        answer = _hasty(ledger, request, slow)
                    elif noting:
                        answer = release_once(ledger, request, _noting_coins(world, request))
                    else:
                        coins = FirstCoins(partial(time.sleep, slow))
                        answer = release_once(ledger, request, coins)
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


def release_once(
    ledger: Any, request: str, coins: Coins | None = None, account: str | None = None
) -> Any:
    from privmax import select
    from privmax.noise.coins import SYSTEM

    of = ledger.request(request, account=account)
    options = {"epsilon": EPSILON, "universe": CANDIDATES, "ledger": of}
    return select([0] * CANDIDATES, **options, coins=coins or SYSTEM).item


def _hasty(ledger: Any, request: str, slow: float) -> Any:
    from privmax.ledger import Charge
    from privmax.privacy import Privacy

    reservation = ledger.charge(Charge(Privacy(EPSILON)), {}, request=request)
    drawn = random.randrange(10**9)
    time.sleep(slow)
    reservation.record({"items": [drawn], "free": {}})
    return drawn  # and not what is recorded


class FirstCoins:
    """Fair coins, before the first of which something happens: the charge is committed by then."""

    def __init__(self, happens: Callable[[], object]) -> None:
        self._happens: Callable[[], object] | None = happens

    def bits(self, n: int) -> int:
        self._begin()
        return random.SystemRandom().getrandbits(n)

    def bytes(self, n: int) -> bytes:
        self._begin()
        return os.urandom(n)

    def _begin(self) -> None:
        happens, self._happens = self._happens, None
        if happens is not None:
            happens()


def _noting_coins(
    world: Outside, request: str, happens: Callable[[], object] = lambda: None
) -> FirstCoins:
    """Coins that tell that an answer is drawn."""

    def begin() -> None:
        world.tell(request=request, drawn=True)
        happens()

    return FirstCoins(begin)


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


def fail_calls(
    where: str, name: str, outside: str, prefix: str, *, failure: str, first: int, last: int
) -> int:
    """Open the ledger and release while the call of number `first` fails, then the one after it.

    A request that failed is repeated with the same handle, with another, or by whoever finds that
    this ended as refused. It ends with 0 after the number `last`, or once no call failed.
    """
    from interposing import FAILURES, ROOM, Interposer

    from privmax.errors import LedgerError
    from privmax.ledger import Ledger, sqlite

    sqlite.PATIENCE = 0.1  # no other process is at work
    world, calls = Outside(outside), Interposer(Path(where).parent)
    number = sum("answer" in line for line in world.told())
    for at in range(first, last + 1):
        request = f"{prefix}-{number}"
        ledger: Ledger | None = None
        error: Exception | None = None
        coins, again = _noting_coins(world, request), _noting_coins(world, request)
        if failure in FAILURES:
            calls.fail(FAILURES[failure], at)
        elif failure == ROOM:
            calls.leave_room(at)
        else:
            coins = _noting_coins(world, request, partial(calls.leave_room, at))
        try:
            ledger = Ledger(where, name)
            answer = release_once(ledger, request, coins)
            ledger.close()
        except Exception as caught:
            error = caught
        failures, made = calls.failures, calls.calls
        calls.rest()
        if error is not None:
            kind = "LedgerError" if isinstance(error, LedgerError) else type(error).__name__
            world.tell(request=request, error=str(error), kind=kind, at=at)
            if at % OTHERS == 0:
                return REFUSED
            try:
                if ledger is None or at % 2:
                    ledger = Ledger(where, name)
                answer = release_once(ledger, request, again)
            except LedgerError as second:
                world.tell(request=request, error=str(second), kind="again", at=at)
                return REFUSED
        world.tell(request=request, answer=answer, failures=failures, calls=made, at=at)
        number += 1
        if not failures:
            return 0
    return 0


def trace(
    where: str,
    name: str,
    outside: str,
    prefix: str,
    *,
    into: str,
    releases: int,
    synchronous: str | None = None,
) -> int:
    """Make a ledger and release, and write down all that happens to its files.

    into          the file of what happened; its marks say what a client was told, as JSON
    releases      how many requests
    synchronous   a setting of SQLite that does not put all on the disk, for a test that must see it
    """
    from interposing import Interposer

    from privmax.ledger import Ledger
    from privmax.ledger.sqlite import SqliteStore
    from privmax.privacy import Privacy

    if synchronous is not None:
        connect = SqliteStore._connect

        def connect_unsafely(store: SqliteStore, path: Path) -> Any:
            connection = connect(store, path)
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            return connection

        SqliteStore._connect = connect_unsafely  # type: ignore[method-assign]
    calls = Interposer(Path(where).parent)
    calls.trace(os.open(into, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600))

    def mark(**told: object) -> None:
        calls.mark(json.dumps(told))

    with Ledger.create(where, name, budget=Privacy(10**6, "1e-5")) as ledger:
        mark(made=name)
        for number in range(releases):
            request = f"{prefix}-{number}"
            coins = FirstCoins(partial(mark, request=request, drawn=True))
            mark(request=request, answer=release_once(ledger, request, coins))
    return 0


def client(
    where: str,
    name: str,
    outside: str,
    prefix: str,
    *,
    seed: int,
    operations: int,
    accounts: Sequence[str],
    grant: str,
    failing: float = 0,
) -> int:
    """Ask for things at random, and write down what was asked and told, and when.

    seed         of what is asked
    operations   how many calls, with those of the processes before this one
    accounts     which there are
    grant        what a grant adds
    failing      how often one of the calls to the system fails meanwhile
    """
    from interposing import FAILURES, Interposer

    from privmax.errors import AnswerError, BudgetError, LedgerError
    from privmax.ledger import Ledger
    from privmax.privacy import Privacy

    world = Outside(outside)
    asked = [line["ask"] for line in world.told() if "ask" in line]
    chance = random.Random(f"{seed} {len(asked)}")
    calls = Interposer(Path(where).parent) if failing else None

    def answer(ask: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
        if ask["op"] == "release":
            return {"answer": release_once(ledger, ask["id"], account=ask["account"])}
        if ask["op"] == "spent":
            parts = {one: str(spent.epsilon) for one, (_, spent) in ledger.accounts().items()}
            return {"spent": {"": str(ledger.spent.epsilon), **parts}}
        if ask["op"] == "budget":
            return {"budget": str(ledger.budget.epsilon)}
        if ask["op"] == "grant":
            ledger.grant(Privacy(grant), why="a test")
            return {}
        return {"events": [(event.seq, event.hash) for event in ledger.history(last=3)]}

    ledger: Ledger | None = None
    for number in range(len(asked), operations):
        ask: dict[str, Any] = {"op": chance.choices(_OPERATIONS, (8, 3, 2, 1, 3))[0]}
        if ask["op"] == "release":
            repeated = [one for one in asked if one["op"] == "release"]
            shared = chance.randrange(2 * SHARED)
            ask["id"] = f"shared-{shared}" if shared < SHARED else f"{prefix}-{number}"
            ask["account"] = [None, *accounts][sum(ask["id"].encode()) % (len(accounts) + 1)]
            if repeated and chance.random() < 0.3:
                ask = chance.choice(repeated)
        asked.append(ask)
        world.tell(n=number, at=time.monotonic(), ask=ask)
        if calls is not None and chance.random() < failing:
            calls.fail(FAILURES[chance.choice(list(FAILURES))], chance.randrange(1, 120))
        try:
            ledger = ledger or Ledger(where, name)
            told = answer(ask, ledger)
        except BudgetError:
            told = {"error": "BudgetError", "refused": True}
        except (LedgerError, AnswerError) as error:
            told = {"error": type(error).__name__}
            if calls is not None:
                ledger = None
        if calls is not None:
            calls.rest()
        world.tell(n=number, at=time.monotonic(), told=told)
    return 0


_OPERATIONS = ("release", "spent", "budget", "grant", "events")

SHARED = 12
"""Requests that all clients make."""


ACTS: dict[str, Callable[..., int]] = {
    "release": release,
    "create": create,
    "fail_calls": fail_calls,
    "trace": trace,
    "client": client,
}


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
    os.chdir(job.pop("folder", "."))
    try:
        return ACTS[job.pop("act")](**job)
    except BaseException:
        traceback.print_exc()
        return 1


def _warm_up() -> None:
    """Release once: what a release imports is then imported for all workers."""
    from privmax.ledger import Ledger
    from privmax.privacy import Privacy

    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger.create(f"{folder}/budget.db", budget=Privacy(1)) as ledger,
    ):
        release_once(ledger, "r")
        ledger.verify()


def main() -> None:
    for name in (
        "psycopg",
        "privmax.mechanisms",
        "privmax.selection",
        "privmax.sources.memory",
        "privmax.ledger.sqlite",
        "privmax.ledger.postgres",
    ):
        import_module(name)  # for all workers; one that works as another user may not be able to
    _warm_up()

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
