"""Bad days of the power: it goes, and of what was written since the last wait for the disk any
part has arrived, in any order.

A worker makes a ledger and releases from it, and all that it does to files is written down. From
that the files are rebuilt as a power cut may leave them at every moment.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import crash

from faults.scene import BUDGET, NotTried, Trial, Yard, differences, events
from privmax.errors import LedgerError
from privmax.ledger import Ledger, files
from privmax.privacy import Privacy

SECTOR = 512
"""Bytes that a disk writes completely or not at all."""

SUBSETS = 12
"""Parts of what was not on the disk that are taken at random, at each moment."""

RELEASES = 3

NAME = "power"


class Call(NamedTuple):
    """One line of a trace: what was done, to which file, and what was written."""

    what: str
    words: list[str]
    data: bytes = b""


class Change(NamedTuple):
    """A change of the content of a file; without data, it is given that length."""

    file: File
    offset: int
    data: bytes | None


class Naming(NamedTuple):
    """A change of a folder: a name is given to a file, or taken away."""

    name: str
    file: File | None


@dataclass(eq=False)
class File:
    """A file: what is on the disk for certain, and what was written since."""

    content: bytes = b""
    changes: list[Change] = field(default_factory=list)

    def sync(self) -> None:
        self.content = _apply(self.content, self.changes)
        self.changes = []


class Disk:
    """The disk below one folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._open: dict[str, File | None] = {}  # None: the folder itself
        self._names: dict[str, File] = {}  # on the disk for certain
        self._namings: list[Naming] = []
        self._now: dict[str, File] = {}

    def do(self, call: Call) -> None:
        if call.what == "open":
            number, created, path = call.words
            if path == self._folder:
                self._open[number] = None
                return
            if created == "1":
                self._give(path, File())
            self._open[number] = self._now[path]
        elif call.what == "close":
            del self._open[call.words[0]]
        elif call.what == "sync":
            self._sync(self._open[call.words[0]])
        elif call.what in ("write", "truncate"):
            file = self._open[call.words[0]]
            if file is None:
                raise NotTried("a folder was written to")
            data = call.data if call.what == "write" else None
            file.changes.append(Change(file, int(call.words[1]), data))
        elif call.what in ("link", "rename"):
            old, new = call.words
            self._give(new, self._now[old])
            if call.what == "rename":
                self._give(old, None)
        elif call.what == "unlink":
            self._give(call.words[0], None)
        else:
            raise NotTried(f"a call that is not known: {call.what}")

    def pending(self) -> list[Change | Naming]:
        """All that a power cut may undo now."""
        files = {id(file): file for file in [*self._names.values(), *self._now.values()]}
        return [*self._namings, *(one for file in files.values() for one in file.changes)]

    def after(self, arrived: Sequence[Change | Naming]) -> dict[str, tuple[int, bytes]]:
        """What is found afterwards: of each name, which file that is and its content."""
        names = _rename(self._names, [one for one in arrived if isinstance(one, Naming)])
        changes = [one for one in arrived if isinstance(one, Change)]
        return {
            name: (id(file), _apply(file.content, [one for one in changes if one.file is file]))
            for name, file in names.items()
        }

    def _give(self, name: str, file: File | None) -> None:
        self._namings.append(Naming(name, file))
        self._now = _rename(self._now, self._namings[-1:])

    def _sync(self, file: File | None) -> None:
        if file is not None:
            file.sync()
            return
        self._names, self._namings = dict(self._now), []


def _apply(content: bytes, changes: Sequence[Change]) -> bytes:
    made = bytearray(content)
    for _, offset, data in changes:
        if data is None:
            del made[offset:]
        end = offset + len(data or b"")
        made.extend(bytes(max(0, end - len(made))))  # what was never written reads as zeros
        made[offset:end] = data or b""
    return bytes(made)


def _rename(names: dict[str, File], namings: Sequence[Naming]) -> dict[str, File]:
    found: dict[str, File | None] = {**names, **{one.name: one.file for one in namings}}
    return {name: file for name, file in found.items() if file is not None}


def read_trace(path: Path) -> Iterator[Call]:
    with path.open("rb") as file:
        for line in file:
            what, _, rest = line.decode().rstrip("\n").partition(" ")
            words = [rest] if what == "mark" else rest.split(" ")
            yield Call(what, words, file.read(int(words[2])) if what == "write" else b"")


def arrivals(pending: Sequence[Change | Naming]) -> Iterator[list[Change | Naming]]:
    """Parts of what is not on the disk that may have arrived."""
    yield list(pending)
    yield []
    for number in range(len(pending)):
        yield [pending[number]]
        yield [*pending[:number], *pending[number + 1 :]]
    for _ in range(SUBSETS if pending else 0):
        some = [one for one in pending if random.random() < 0.5]
        yield [piece for one in some for piece in _torn(one)]


def _torn(change: Change | Naming) -> Iterator[Change | Naming]:
    """A change of which, perhaps, not all sectors have arrived."""
    if isinstance(change, Naming) or change.data is None or random.random() < 0.5:
        yield change
        return
    begin = change.offset
    while begin < change.offset + len(change.data):
        end = min((begin // SECTOR + 1) * SECTOR, change.offset + len(change.data))
        if random.random() < 0.5:
            yield Change(
                change.file, begin, change.data[begin - change.offset : end - change.offset]
            )
        begin = end


class Moment(NamedTuple):
    """What the files are after a power cut, and what clients had been told before it."""

    files: dict[str, tuple[int, bytes]]
    told: list[dict[str, Any]]


def moments(trace: Path, folder: Path) -> Iterator[Moment]:
    """Every state that differs from the others, at every moment of a trace."""
    disk, seen = Disk(str(folder)), set[bytes]()
    told: list[dict[str, Any]] = []
    for call in read_trace(trace):
        if call.what == "mark":
            told = [*told, json.loads(call.words[0])]
        else:
            disk.do(call)
        for arrived in arrivals(disk.pending()):
            found = disk.after(arrived)
            digest = sha256(str(len(told)).encode())
            for name, (_, content) in sorted(found.items()):
                digest.update(name.encode() + sha256(content).digest())
            if digest.digest() not in seen:
                seen.add(digest.digest())
                yield Moment(found, told)


def power_cuts(yard: Yard, where: str, times: int, *, synchronous: str | None = None) -> Trial:
    """The power goes at every moment of some releases, and any part of what was not on the disk is
    lost.
    """
    trial = Trial("the power goes, and writes arrive in any order or not at all", where, 0)
    place, trace = yard.quick() / "budget.db", yard.quick() / "trace"
    job = {"where": str(place), "name": NAME, "outside": "", "prefix": "r", "into": str(trace)}
    job |= {"releases": RELEASES, "synchronous": synchronous}
    if yard.interposed.run("trace", [job]) != [0]:
        raise NotTried("a worker failed")
    whole = events(str(place), NAME, "ORDER BY seq")
    found = list(moments(trace, place.parent))
    chosen = found if len(found) <= times else random.sample(found, times)
    folder = yard.quick()
    for moment in chosen:
        _rebuild(moment, place.parent, folder)
        trial.seen.update(_judge(trial, moment, folder / place.name, whole))
        trial.times += 1
    return trial


def _rebuild(moment: Moment, was: Path, folder: Path) -> None:
    """Make the files of a moment in a folder."""
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    made: dict[int, Path] = {}
    for name, (number, content) in sorted(moment.files.items(), key=lambda one: "/." in one[0]):
        path = folder / Path(name).relative_to(was)
        if number in made:  # the name that it had while it was made, which follows from its number
            path = files._scratch_name(made[number], made[number].stat().st_ino)
            os.link(made[number], path)
            continue
        path.write_bytes(content)
        path.chmod(0o600)
        made[number] = path


def _judge(
    trial: Trial, moment: Moment, place: Path, whole: Sequence[tuple[Any, ...]]
) -> Iterator[str]:
    """Open what a power cut left, and repeat the last request."""
    told = moment.told
    journal = Path(f"{place}-journal").exists()
    existed = place.exists()
    drawn = [line["request"] for line in told if "drawn" in line]
    answers = {line["request"]: line["answer"] for line in told if "answer" in line}
    if told and not existed:
        trial.lost.append("a ledger that was made")
        return
    try:
        with Ledger(place, NAME, BUDGET) as ledger:
            rows = events(str(place), NAME, "ORDER BY seq")
            if rows != whole[: len(rows)] and told:
                trial.lost.append("an event, or there is one too many")
            charged = [request for _, kind, request, _ in rows if kind == "reserved"]
            trial.lost += ["a charge whose answer was drawn"] * (not set(drawn) <= set(charged))
            again = f"r-{len(answers)}"
            for request in [*answers, again]:
                answers.setdefault(request, crash.release_once(ledger, request))
            for request, answer in answers.items():
                if crash.release_once(ledger, request) != answer:
                    trial.lost.append("an answer that is not the recorded one")
            trial.lost += [f"verify finds: {fault}" for fault in ledger.verify()]
            history, spent = list(ledger.history()), ledger.spent
    except (LedgerError, sqlite3.DatabaseError) as error:
        trial.lost.append(f"a ledger that can be used: {str(error).replace(str(place), '')}")
        return
    trial.lost += differences(history, list(answers.items()))
    charges = sum(event.kind == "reserved" for event in history)
    if spent != Privacy(charges * Fraction(crash.EPSILON)):
        trial.lost.append("the charges are not what is spent")
    trial.charges += charges
    trial.answers += len(answers)
    yield "undone by its journal" if journal else "without a journal" if existed else "not made yet"
