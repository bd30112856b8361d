"""What a run left behind, and which marks of that were not released."""

from __future__ import annotations

import gzip
import json
import sqlite3
import stat
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leaks import faults
from leaks.child import leaves
from leaks.field import DRAWN, MARKS
from leaks.marks import Finding, Mark, find
from leaks.nursery import Ended

Evidence = tuple[str, str, bytes]

PRINTED = {
    "stdout": "output",
    "stderr": "progress",
    "log": "log",
    "warnings": "warnings",
    "figures": "figures",
}
"""The place of what a child wrote beside its own files."""

WHILE = ", while it was there"

OUTSIDE_FRAMES = [mark for mark in MARKS if mark is not DRAWN]


@dataclass
class Verdict:
    """What was found of a run.

    leaks     marks that were not released, where none may be
    remains   marks where they are known to be: the table of places says where
    searched  bytes by place
    released  how many marks were released
    """

    leaks: list[Finding] = field(default_factory=list)
    remains: list[Finding] = field(default_factory=list)
    searched: Counter[str] = field(default_factory=Counter)
    released: int = 0


def judge(ended: Ended) -> Verdict:
    """Search all that a run left."""
    verdict = Verdict()
    ledgers = [path for path in (ended.folder / "work").rglob("*.db") if path.is_file()]
    public = released_marks([*ended.released, *recorded(ledgers), *printed(ended.folder)])
    verdict.released = len(public)
    hidden = [mark for mark in MARKS if mark not in public]
    evidence = list(unlike([*ended.evidence, *files(ended)]))
    for place, _, content in evidence:
        verdict.searched[place] += len(content)
    everything = b"\n\n".join(content for _, _, content in evidence)
    there = [mark for mark, _ in find(everything, hidden)]  # mostly none, and then it is over
    for place, where, content in evidence if there else ():
        for mark, form in find(content, there):
            found = Finding(mark.name, form, place, where)
            known = place == "frames" and mark in OUTSIDE_FRAMES
            (verdict.remains if known else verdict.leaks).append(found)
    judge_temporary(ended, verdict)
    return verdict


def unlike(evidence: Iterable[Evidence]) -> Iterator[Evidence]:
    """Each content of a place once, without the long runs of zeros that databases have."""
    seen: set[tuple[str, bytes]] = set()
    for place, where, content in evidence:
        short = content.replace(bytes(64), b"")
        if (place, short) not in seen:
            seen.add((place, short))
            yield place, where, short


def released_marks(values: Iterable[Any]) -> set[Mark]:
    """The marks whose very value was released."""
    known = {
        (type(value) is str, value) for value in values if isinstance(value, (str, int, float))
    }
    return {mark for mark in MARKS if (isinstance(mark.value, str), mark.value) in known}


def recorded(ledgers: Iterable[Path]) -> list[Any]:
    """The texts and numbers of all answers that ledgers have: they are released."""
    found: list[Any] = []
    for path in ledgers:
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as opened:
            for (body,) in opened.execute(
                "SELECT body FROM privmax_events WHERE kind = 'released'"
            ):
                found += leaves(json.loads(body))
    return found


def printed(folder: Path) -> list[Any]:
    """The answers that a command printed as JSON, which no ledger need have."""
    found: list[Any] = []
    path = folder / "stdout"
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        with suppress(ValueError):
            told = json.loads(line)
            found += leaves([told[name] for name in ANSWERS if name in told])
    return found


ANSWERS = ("items", "groups", "itemsets", "counts", "other", "supports", "rules", "free")
"""Fields of what `--json` prints that are the answer."""


def files(ended: Ended) -> Iterator[Evidence]:
    """Every file that is there, and every file that was."""
    for name, place in PRINTED.items():
        path = ended.folder / name
        if path.exists():
            yield place, name, path.read_bytes()
    for folder in ("work", "temp"):
        for path in sorted((ended.folder / folder).rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield from contents(source_location(path, folder), path.name, path)
    for name, _, content in ended.made:
        folder = "temp" if str(ended.folder / "temp") in name else "work"
        yield source_location(Path(name), folder), f"{Path(name).name}{WHILE}", content


def source_location(path: Path, folder: str) -> str:
    """The place that a file belongs to."""
    if folder == "temp":
        return "temporary files"
    kinds = {".db": "ledger", ".html": "report", ".svg": "figures", ".json": "JSON"}
    if path.suffix not in kinds and ".db" in path.name:
        return "journal"
    return kinds.get(path.suffix, "files")


def contents(place: str, where: str, path: Path) -> Iterator[Evidence]:
    """A file as it is; and unpacked, where it is packed."""
    raw = path.read_bytes()
    yield place, where, raw  # as a file that was watched has it, too
    with suppress(OSError, EOFError, zlib.error):
        if raw[:2] == b"\x1f\x8b":
            yield place, f"{where}, unpacked", gzip.decompress(raw)
    if raw[:4] == b"PAR1" and raw[-4:] == b"PAR1":
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        yield place, f"{where}, as a table", repr(table.to_pylist()).encode()
        yield place, f"{where}, its schema", repr(table.schema).encode()
    if raw[:15] == b"SQLite format 3":
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as opened:
            yield place, f"{where}, its rows", "\n".join(opened.iterdump()).encode()


def judge_temporary(ended: Ended, verdict: Verdict) -> None:
    """What stays among temporary files: nothing, unless it was killed. Whatever is there while it
    runs can be opened by this user alone.
    """
    temp = ended.folder / "temp"
    left = [path for path in temp.rglob("*") if path.is_file()]
    if ended.status == -9:
        known = [one for one in verdict.leaks if one.place == "temporary files"]
        verdict.leaks = [one for one in verdict.leaks if one not in known]
        verdict.remains += known
    else:
        verdict.leaks += [
            Finding("a file", "left behind", "temporary files", path.name) for path in left
        ]
        during = [one for one in verdict.leaks if one.where.endswith(WHILE)]
        known = [one for one in during if one.place == "temporary files"]
        verdict.leaks = [one for one in verdict.leaks if one not in known]
        verdict.remains += known
    for name, mode, _ in ended.made:
        top = Path(name)
        if temp in top.parents and top.parent == temp and mode != -1 and stat.S_IMODE(mode) & 0o077:
            verdict.leaks.append(Finding("a file", "open to others", "temporary files", top.name))


__all__ = ["Verdict", "faults", "judge"]
