"""Starts runs in processes of their own, and keeps every file that they make.

Children are forked where everything is imported already. While one runs its folders are watched:
each file that appears is opened, so that its last content can be read although the file is gone. (A
second link would do as well, but a ledger refuses a file that has two names.)
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import stat
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).resolve().parent


@dataclass
class Ended:
    """What is left of a run.

    status      its exit status, or minus the signal that ended it
    folder      where it ran: work/, temp/, and what it printed and logged
    evidence    what it showed: (place, where, content)
    released    the values that it released
    made        files that there were: (path, mode, last content, empty where it was gone at once)
    facts       what else is known of it
    """

    status: int
    folder: Path
    evidence: list[tuple[str, str, bytes]] = field(default_factory=list)
    released: list[Any] = field(default_factory=list)
    made: list[tuple[str, int, bytes]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


class Watch:
    """Opens every file that appears below some folders, and reads them in the end."""

    _CREATED, _MOVED = 0x100, 0x80
    _EVENT = struct.Struct("iIII")

    def __init__(self, folders: list[Path], end: Path) -> None:
        self.made: list[tuple[str, int, bytes]] = []
        self._opened: list[tuple[str, int, int | None]] = []
        self._end = end
        end.mkdir()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._number = self._libc.inotify_init1(os.O_CLOEXEC)
        self._folders: dict[int, Path] = {}
        for folder in [*folders, end]:
            self._add(folder)
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Read what has happened until now, and end."""
        (self._end / "now").mkdir()  # the last event
        self._thread.join()
        os.close(self._number)
        for name, mode, opened in self._opened:
            content = b""
            if opened is not None:
                with os.fdopen(opened, "rb") as file:
                    content = file.read()
            self.made.append((name, mode, content))

    def _add(self, folder: Path) -> None:
        mask = self._CREATED | self._MOVED
        self._folders[self._libc.inotify_add_watch(self._number, bytes(folder), mask)] = folder

    def _look(self) -> None:
        while True:
            events = os.read(self._number, 1 << 16)
            while events:
                watch, _, _, length = self._EVENT.unpack(events[: self._EVENT.size])
                name = events[self._EVENT.size : self._EVENT.size + length].rstrip(b"\0")
                events = events[self._EVENT.size + length :]
                path = self._folders[watch] / os.fsdecode(name)
                if path.parent == self._end:
                    return
                self._keep(path)

    def _keep(self, path: Path) -> None:
        mode, opened = -1, None
        with suppress(OSError):
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._opened.append((str(path), mode, opened))
        if mode != -1 and stat.S_ISDIR(mode):
            self._add(path)
            with suppress(OSError):
                for inside in path.iterdir():  # what came before it was watched
                    self._keep(inside)


class Nursery:
    """The program that forks runs, from the side of who starts it.

    preload   modules that it imports first
    """

    def __init__(self, preload: tuple[str, ...] = ()) -> None:
        command = [sys.executable, "-m", "leaks.child", *preload]
        environment = {**os.environ, "PYTHONPATH": search_path(), "PYTHONDONTWRITEBYTECODE": "1"}
        self._program = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._answer()
        self._lock = threading.Lock()

    def run(self, folder: Path, **job: object) -> Ended:
        """Run a job in an empty folder to its end."""
        pid, watch = self.start(folder, **job)
        return self.wait(pid, watch, folder)

    def start(self, folder: Path, **job: object) -> tuple[int, Watch]:
        for name in ("work", "temp"):
            (folder / name).mkdir(parents=True, mode=0o700)
        watch = Watch([folder / "work", folder / "temp"], folder / "end")
        return int(self._ask({"folder": str(folder), **job})), watch

    def wait(self, pid: int, watch: Watch, folder: Path) -> Ended:
        status = int(self._ask({"wait": pid}))
        watch.close()
        ended = Ended(status, folder, made=watch.made)
        told = folder / "evidence"
        if told.exists():
            ended.evidence, ended.released, ended.facts = pickle.loads(told.read_bytes())
        return ended

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._program.communicate()

    def _ask(self, job: dict[str, object]) -> str:
        assert self._program.stdin is not None
        with self._lock:
            self._program.stdin.write(json.dumps(job).encode() + b"\n")
            self._program.stdin.flush()
            return self._answer()

    def _answer(self) -> str:
        assert self._program.stdout is not None
        answer = self._program.stdout.readline()
        if not answer:
            raise RuntimeError("the program that starts runs has ended")
        return answer.decode()


def search_path() -> str:
    """PYTHONPATH of the programs that are started."""
    given = [os.environ.get("PYTHONPATH"), str(HERE.parents[2] / "src"), str(HERE.parent)]
    return os.pathsep.join(filter(None, given))
