"""Work outside the server's process, with a limit: a page that takes long never holds up another.

Python cannot stop a thread. So jobs run in processes of their own, which are stopped when their
time is over or no one waits for them any more, and replaced when they are needed again.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from queue import LifoQueue
from threading import Lock, Thread
from typing import IO, Any

from privmax.errors import PrivmaxError
from privmax.explore.jobs import run_job

SECONDS = 20.0
"""The time limit of a job."""

WORKERS = 2
"""The number of jobs that run at a time."""

CACHED = 500
"""Results that are kept."""

_HEAD = struct.Struct("!Q")


class SlowError(Exception):
    """A job took longer than it may, or no one waits for it any more."""


class Worker:
    """A process that runs one job at a time."""

    def __init__(self) -> None:
        hidden = {"PRIVMAX_LEDGER", "PRIVMAX_LEDGER_NAME"}  # a URL may hold a password
        self._process = subprocess.Popen(
            [sys.executable, "-m", "privmax.explore.work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name not in hidden},
            start_new_session=True,  # Ctrl-C is for the server, which then stops its workers
        )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def run(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Run a job. Raises what it raised; SlowError, if the worker is stopped meanwhile."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            _send(self._process.stdin, (name, arguments, options))
            outcome, value = _receive(self._process.stdout)
        except (OSError, EOFError, ValueError):
            self.stop()
            raise SlowError from None
        if outcome == "error":
            raise value
        return value

    def stop(self) -> None:
        """Stop the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was to be written is not wanted any more
                    pipe.close()


class WorkerJob:
    """A job on its way: `result` waits for it, `stop` ends it."""

    def __init__(self, pool: Pool, name: str, arguments: Any, options: Any) -> None:
        self._pool, self._call = pool, (name, arguments, options)
        self._worker: Worker | None = None
        self._lock = Lock()
        self._is_stopped = False

    def result(self) -> Any:
        """Return the result of the job. Blocks: to be called in a thread."""
        worker = self._pool.take()
        with self._lock:
            self._worker = worker
            if self._is_stopped:
                self._pool.give(worker)
                raise SlowError
        name, arguments, options = self._call
        try:
            return worker.run(name, *arguments, **options)
        finally:
            with self._lock:
                self._worker = None
            self._pool.give(worker)

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            if self._worker is not None:
                self._worker.stop()


class Pool:
    """Workers that take turns, and the results of jobs that were done before."""

    def __init__(self, workers: int = WORKERS) -> None:
        self._free: LifoQueue[Worker | None] = LifoQueue()
        for _ in range(workers):
            self._free.put(None)
        self._cache: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()
        self._is_closed = False

    def job(self, name: str, *arguments: Any, **options: Any) -> WorkerJob:
        return WorkerJob(self, name, arguments, options)

    def warm(self) -> None:
        """Start the workers, so that the first page does not wait for them."""

        def start() -> None:
            for worker in [self.take() for _ in range(self._free.qsize())]:
                self.give(worker)

        Thread(target=start, daemon=True).start()

    def take(self) -> Worker:
        """A worker that no one else uses. Waits for one."""
        worker = self._free.get()
        if self._is_closed:
            self._free.put(worker)
            raise SlowError
        return worker if worker is not None and worker.is_alive else Worker()

    def give(self, worker: Worker) -> None:
        if self._is_closed:
            worker.stop()
        self._free.put(worker if worker.is_alive else None)

    def close(self) -> None:
        """Stop all workers that are free; the others stop when their job is over."""
        self._is_closed = True
        while not self._free.empty():
            worker = self._free.get()
            if worker is not None:
                worker.stop()

    def recall(self, key: Hashable) -> Any:
        """Return an earlier result of a job; None: it is not known."""
        with self._lock:
            if key not in self._cache:
                return None
            self._cache.move_to_end(key)
            return self._cache[key]

    def keep(self, key: Hashable, value: Any) -> None:
        with self._lock:
            self._cache[key] = value
            while len(self._cache) > CACHED:
                self._cache.popitem(last=False)


def _send(pipe: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value)
    pipe.write(_HEAD.pack(len(data)) + data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    data = pipe.read(_HEAD.unpack(head)[0])
    return pickle.loads(data)  # from our own process only


def main() -> None:
    """Run jobs from standard input, with results to standard output."""
    pipe = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may be written there
    import privmax.planning.comparison  # loaded before somebody waits for it
    import privmax.selection  # noqa: F401

    while True:
        try:
            name, arguments, options = _receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer: tuple[str, Any] = ("value", run_job(name, arguments, options))
        except PrivmaxError as error:
            answer = ("error", error)
        except Exception as error:
            answer = ("error", RuntimeError(type(error).__name__))
        _send(pipe, answer)


if __name__ == "__main__":
    main()
