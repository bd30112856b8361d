"""One run in a process of its own: what it returns, raises, prints, logs and leaves is kept.

As a program it reads jobs, one JSON object a line: it forks a child for each and prints its process
id; {"wait": id} prints how that ended.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import pickletools
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

NOT_CALLED = {"copy", "close", "fit", "cache_clear", "to_series", "write"}
"""Methods without arguments that do something."""

DEPTH = 3
"""How deep attributes of what was returned are followed."""


class Evidence:
    """What a run showed: (place, where, content)."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, str, bytes]] = []
        self.released: list[Any] = []
        self.facts: dict[str, Any] = {}

    def add(self, place: str, where: str, content: object) -> None:
        raw = content if isinstance(content, bytes) else str(content).encode("utf-8", "replace")
        self.shown.append((place, where, raw))

    def save(self, path: Path) -> None:
        path.write_bytes(pickle.dumps((self.shown, self.released, self.facts)))

    # What was returned

    def show(self, value: Any, *, is_private: bool = False) -> None:
        """All that a value shows of itself. Of what is private, by its documentation, only what
        is printed is looked at, and not what it holds.
        """
        for one in _parts(value):
            self._print(one)
            if is_private:
                continue
            self.released += leaves(_release_of(one))
            self._pickle(one)
            self._follow(one, type(one).__name__, DEPTH, set())

    def _print(self, one: Any) -> None:
        name = type(one).__name__
        self.add("repr", name, repr(one))
        self.add("repr", f"str of {name}", str(one))
        for method in ("_repr_html_", "_repr_mimebundle_", "_repr_markdown_"):
            if callable(getattr(one, method, None)):
                self.add("notebook", name, getattr(one, method)())

    def _pickle(self, one: Any) -> None:
        """The pickle, and every value in it as text: those of arrays, too."""
        try:
            raw = pickle.dumps(one)
        except Exception:  # not everything has one
            return
        self.add("pickle", type(one).__name__, raw)
        values = [value for _, value, _ in pickletools.genops(raw) if value is not None]
        for value in list(values):
            if isinstance(value, (bytes, bytearray)) and len(value) % 8 == 0:
                for kind in "qd":
                    values += memoryview(bytes(value)).cast(kind).tolist()
        self.add("pickle", f"values of {type(one).__name__}", "\n".join(map(repr, values)))

    def _follow(self, one: Any, where: str, depth: int, seen: set[int]) -> None:
        """Public attributes, properties and methods without arguments."""
        if id(one) in seen or depth == 0:
            return
        seen.add(id(one))
        for name in dir(one):
            if name.startswith("_") or name in NOT_CALLED:
                continue
            with suppress(Exception):
                value = getattr(one, name)
                if callable(value) and not isinstance(value, type):
                    if not _is_plain_method(value):
                        continue
                    value = value()
                place = "JSON" if name in ("to_json", "to_dict") else "attributes"
                self.add(place, f"{where}.{name}", repr(value))
                if type(value).__module__.startswith("privmax"):
                    self._follow(value, f"{where}.{name}", depth - 1, seen)

    # What was raised

    def raised(self, error: BaseException) -> None:
        """An error, all errors behind it, and the frames that they went through."""
        left: list[BaseException | None] = [error]
        seen: set[int] = set()
        while left:
            one = left.pop()
            if one is None or id(one) in seen:
                continue
            seen.add(id(one))
            name = type(one).__name__
            notes = getattr(one, "__notes__", [])
            held = {key: value for key, value in vars(one).items() if key != "__notes__"}
            self.add("errors", name, f"{one}\n{one!r}\n{one.args!r}\n{notes}\n{held!r}")
            self._pickle(one)
            lines = traceback.format_exception(type(one), one, one.__traceback__, chain=False)
            self.add("errors", f"traceback of {name}", "".join(lines))
            self._frames(one)
            left += [one.__cause__, one.__context__]
        self.facts["error"] = type(error).__name__
        self.facts["message"] = str(error)[:300]

    def _frames(self, error: BaseException) -> None:
        trace = error.__traceback__
        while trace is not None:
            frame: FrameType = trace.tb_frame
            trace = trace.tb_next
            file = frame.f_code.co_filename
            if "leaks" in Path(file).parts or "click" in Path(file).parts:
                continue
            for name, value in frame.f_locals.items():
                with suppress(Exception):
                    self.add("frames", f"{frame.f_code.co_qualname}: {name}", repr(value))
        # what those values hold is followed by tests/ledger/test_failures.py


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)) and any(
        type(one).__module__.startswith("privmax") for one in value
    ):
        for one in value:
            yield from _parts(one)
    elif value is not None:
        yield value


def _release_of(one: Any) -> Any:
    found = getattr(one, "release_", one)
    return found.to_dict() if hasattr(found, "to_dict") and hasattr(found, "items") else None


def leaves(value: Any) -> list[Any]:
    """The texts and numbers within a value."""
    if isinstance(value, Mapping):
        return [leaf for pair in value.items() for one in pair for leaf in leaves(one)]
    if is_dataclass(value) and not isinstance(value, type):
        return [leaf for one in fields(value) for leaf in leaves(getattr(value, one.name))]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [leaf for one in value for leaf in leaves(one)]
    if isinstance(value, bool) or value is None:
        return []
    return [value] if isinstance(value, (str, int, float)) else [str(value)]


def _is_plain_method(value: Any) -> bool:
    code = getattr(getattr(value, "__func__", None), "__code__", None)
    return code is not None and code.co_argcount == 1 and code.co_kwonlyargcount == 0


# Where a run is stopped


class Stopper:
    """Sends this process a signal at its n-th call of a function of privmax; counts the calls."""

    def __init__(self, at: int | None, number: int) -> None:
        self.calls, self._at, self._number = 0, at, number

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or "privmax" not in frame.f_code.co_filename:
            return
        self.calls += 1
        if self.calls == self._at:
            os.kill(os.getpid(), self._number)


# The child


def run(job: dict[str, Any]) -> int:
    """Run a job. The status is that of the command, or 0; 1: an error was raised."""
    folder = Path(job["folder"])
    os.chdir(folder / "work")
    os.environ["TMPDIR"] = str(folder / "temp")
    tempfile.tempdir = None
    for number, name in ((1, "stdout"), (2, "stderr")):
        opened = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(_terminal(opened) if job.get("terminal") and number == 2 else opened, number)
    sys.stdout = os.fdopen(os.dup(1), "w", buffering=1)
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    listen(folder)
    evidence = Evidence()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stopper = Stopper(job.get("at"), job.get("signal", signal.SIGINT))
    runner = import_module(f"leaks.{job['kind']}")
    status = 0
    with ExitStack() as stack:
        try:
            scene = stack.enter_context(runner.prepare(job, evidence))
            if job.get("count") or job.get("at"):
                sys.setprofile(stopper)
            status = runner.act(scene) or 0
        except BaseException as error:
            sys.setprofile(None)
            evidence.raised(error)
            del error
            status = 1
        finally:
            sys.setprofile(None)
    evidence.facts["calls"] = stopper.calls
    sys.stdout.flush()
    sys.stderr.flush()
    evidence.save(folder / "evidence")
    return status


def _terminal(file: int) -> int:
    """A terminal, all of whose output is copied to a file."""
    near, far = os.openpty()

    def copy() -> None:
        with suppress(OSError):
            while shown := os.read(near, 1 << 16):
                os.write(file, shown)

    Thread(target=copy, daemon=True).start()
    return far


def listen(folder: Path) -> None:
    """Every logger at DEBUG, every warning and all text of figures into files."""
    log = open(folder / "log", "w", buffering=1, encoding="utf-8")  # noqa: SIM115

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            with suppress(Exception):
                text = f"{record.name} {record.levelname} {record.getMessage()} {record.args!r}\n"
                if record.exc_info:
                    text += "".join(traceback.format_exception(*record.exc_info))
                log.write(text)

    logging.root.handlers = [Handler(1)]
    logging.root.setLevel(1)
    logging.disable(0)
    for logger in list(logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.setLevel(logging.NOTSET)
            logger.propagate = True

    told = open(folder / "warnings", "w", buffering=1, encoding="utf-8")  # noqa: SIM115
    warnings.resetwarnings()
    warnings.simplefilter("always")

    def show(message: Any, category: Any, *_: Any, **__: Any) -> None:
        told.write(f"{category.__name__}: {message} {getattr(message, 'args', ())!r}\n")

    warnings.showwarning = show
    if "matplotlib.text" in sys.modules:
        _listen_to_figures(folder)


def _listen_to_figures(folder: Path) -> None:
    """Text in figures becomes outlines, which nobody can search: it is kept when it is set."""
    text = sys.modules["matplotlib.text"].Text
    drawn = open(folder / "figures", "w", buffering=1, encoding="utf-8")  # noqa: SIM115
    original = text.set_text

    def set_text(self: Any, words: Any) -> None:
        drawn.write(f"{words}\n")
        original(self, words)

    text.set_text = set_text


def main() -> None:
    """What the nursery starts."""
    for module in sys.argv[1:]:
        import_module(module)
    import privmax.cli
    import privmax.selection  # noqa: F401

    print("ready", flush=True)
    ends: dict[int, int] = {}
    for line in sys.stdin:
        job = json.loads(line)
        if "wait" in job:
            pid, status = os.waitpid(job["wait"], 0)
            ends[pid] = os.waitstatus_to_exitcode(status)
            print(ends[pid], flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            status = 99  # of the harness; 70 is that of a command with a bug
            try:
                status = run(job)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
