"""Base rows, and the same with one more: what was read of the others must be what it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from odd_rows.containers import (
    FILES,
    FRAMES,
    PANDAS,
    Container,
    Unbuildable,
    build,
    read_csv_as_text,
)
from odd_rows.entries import ENTRIES, Entry, families
from odd_rows.values import FAMILIES, ODD
from privmax.errors import DataError, ParameterError

SAME, REFUSED, BASE, TEXT, UNBUILT = "same", "refused", "base refused", "all text", "cannot be held"
"""Outcomes that are allowed.

same            all other rows are read as before
refused         one row more is refused, with an error of privmax or of scikit-learn
base refused    the base rows are refused already
all text        `read_csv` made text of the column, before privmax saw it: rows are read as if it
                always had
cannot be held  the library cannot hold the values in one column
"""


@dataclass(frozen=True)
class Case:
    entry: Entry
    container: str
    family: str
    odd: str

    def __str__(self) -> str:
        return (
            f"{self.entry.name}, {self.entry.role}: {self.family} and {self.odd} "
            f"in {self.container}"
        )


class Broken(AssertionError):
    """One row changed how others are read, or raised what it must not."""


COSTLY = sum(entry.costly for entry in ENTRIES)


def cases(*, stride: int = 1, engines: int = COSTLY) -> Iterator[Case]:
    """Entry points, containers and odd values, each beside a family; all of these take turns.

    stride     of how many pairs of a container and an odd value an entry point meets one
    engines    the same where an engine counts: with as many as there are such entry points, each
               pair is met by one of them
    """
    order = sorted(ENTRIES, key=lambda entry: not entry.costly)
    for shift, entry in enumerate(order):
        kinds = families(entry, list(FAMILIES))
        containers = PANDAS if entry.series else {**FRAMES, **(FILES if entry.files else {})}
        for turn, container in enumerate(containers):
            for place, odd in enumerate(ODD):
                step = engines if entry.costly else stride
                if (place + len(ODD) * turn + 5 * shift) % step == 0:
                    yield Case(entry, container, kinds[(shift + turn + place) % len(kinds)], odd)


def run(case: Case, folder: Path) -> str:
    """The outcome, which is one of those that are allowed, or `Broken` is raised."""
    container = {**FRAMES, **FILES}[case.container]
    rows = case.entry.rows(FAMILIES[case.family])
    role = case.entry.role
    before = _observe(case.entry, container, case.family, folder)
    if isinstance(before, str):
        return before
    try:
        data = build(container, rows, [case.entry.row(ODD[case.odd])], role, folder)
    except Unbuildable:
        return UNBUILT
    outcome = SAME
    if case.container == "pandas, read_csv" and _is_text(data[role]):
        as_text = _observe(case.entry, read_csv_as_text, case.family, folder)
        if before != as_text:
            before, outcome = as_text, TEXT
    after = look(case.entry, data, str(case))
    if isinstance(after, str):
        return after
    if isinstance(before, str):
        return before
    compare(case, before, after)
    return outcome


def compare(case: Case, before: Counter[Any], after: Counter[Any]) -> None:
    changed = {key: after[key] - before[key] for key in {*before, *after} if key != case.entry.own}
    shrinks = case.entry.grows and min(changed.values(), default=0) < 0
    if shrinks or sum(map(abs, changed.values())) > case.entry.slack:
        raise Broken(f"{case}: {[(k, v) for k, v in changed.items() if v][:4]}")


def look(entry: Entry, data: Any, what: str) -> Counter[Any] | str:
    """What is read of data; "refused"."""
    try:
        return entry.observe(data)
    except (DataError, ParameterError):
        return REFUSED
    except Exception as error:
        if isinstance(error, ValueError) and _is_of_sklearn(error):
            return REFUSED
        raise Broken(f"{what}: {error!r}") from error


def _is_of_sklearn(error: ValueError) -> bool:
    return str(error).startswith(("Input X contains", "Input y contains", "Unknown label type"))


@cache
def _observe(entry: Entry, container: Container, family: str, folder: Path) -> Counter[Any] | str:
    try:
        data = build(container, entry.rows(FAMILIES[family]), [], entry.role, folder)
    except Unbuildable:
        return UNBUILT
    found = look(entry, data, f"{entry.name}, {entry.role}: {family}")
    return BASE if found == REFUSED else found


def _is_text(column: Any) -> bool:
    return all(isinstance(value, str) for value in column.dropna())
