"""Data that is made of marks: every label, count, value and person is one."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from leaks.marks import Mark

BEST = "Winner-qzvxkjwpfh-ñ雪"
NEXT = "Second-wvbxzqjkgd-é"
RARE = "Onlyone-xkqjvzwmpt"
PLAIN = "雪Ωжﬁñ★ﾊ"
"""A label of which no part is ASCII: every escape changes all of it."""

PERSON = "usrzqkxvj"
"""How the names of all individuals begin."""

BAD = "badcell-hjqzkvxwpb"
"""What stands where a number should, deep in a file."""

SCORES = {BEST: 918273645, NEXT: 817263549, PLAIN: 706152433, RARE: 3019283}

FIRST, SECOND = 35837, 24019
"""How many individuals have the two best items; one has the third."""

FLIPPED = 11207
"""Rows of the examples that the best rule gets wrong."""

HIGH, LOW = 80.0918273645, 20.0817263549
"""Values of a column."""

CODES = (918273646, 817263550, 706152434)
"""Items that are whole numbers."""

DEEP = 40_000
"""Which row is the bad one: errors name its line, which is no mark."""

LABELS = (
    Mark("the best label", BEST, "qzvxkjwpfh"),
    Mark("the second label", NEXT, "wvbxzqjkgd"),
    Mark("the label of one individual", RARE, "xkqjvzwmpt"),
    Mark("the label without ASCII", PLAIN),
    Mark("the name of an individual", PERSON, PERSON),
    Mark("the bad cell", BAD, "hjqzkvxwpb"),
)

NUMBERS = (
    *(Mark(f"score {place}", score) for place, score in enumerate(SCORES.values(), 1)),
    Mark("the lead of the best score", SCORES[BEST] - SCORES[NEXT]),
    Mark("the sum of all scores", sum(SCORES.values())),
    Mark("the best count", FIRST),
    Mark("the second count", SECOND),
    Mark("the lead of the best count", FIRST - SECOND),
    Mark("the number of rows", FIRST + SECOND),
    Mark("the number of rows and one", FIRST + SECOND + 1),
    Mark("the number of right rows", FIRST + SECOND - FLIPPED),
    Mark("the number of wrong rows", FLIPPED),
    *(Mark(f"item {place}", code) for place, code in enumerate(CODES, 1)),
    Mark("a high value", HIGH),
    Mark("a low value", LOW),
)

DRAWN = Mark("what was drawn", "drawnonly-zzkqxjvbwp", "zzkqxjvbwp")
"""What the harness adds to a drawn answer: nothing else has it, not even the data."""

MARKS = (*LABELS, *NUMBERS, DRAWN)


@dataclass(frozen=True)
class Field:
    """The files, in a folder that all runs share and none writes to."""

    folder: Path

    def __getattr__(self, name: str) -> str:
        """The path of a file by its name with _ for the point: `field.scores_csv`."""
        found = self.folder / name.replace("_", ".")
        if name.startswith("__") or not found.exists():
            raise AttributeError(name)
        return str(found)


def make(folder: Path, *, is_small: bool = False) -> Field:
    """Write all files, each as it should be and once with a bad cell; or only those of scores."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, is_bad in (("", False), ("bad", True)):
        scores = _scores(is_bad)
        _write_csv(folder / f"{name}scores.csv", ["item", "score"], scores)
        (folder / f"{name}rows.jsonl").write_text(
            "".join(json.dumps({"item": item, "score": score}) + "\n" for item, score in scores)
        )
        if is_small:
            continue
        _write_csv(folder / f"{name}log.csv", ["person", "query", "weight"], _log(is_bad))
        _write_csv(folder / f"{name}examples.csv", ["age", "visits", "card"], _examples(is_bad))
        _write_lines(folder / f"{name}baskets.dat", _fimi(is_bad))
    if not is_small:
        _write_parquet(folder)
    return Field(folder)


def _write_csv(path: Path, names: list[str], rows: Any) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)


def _write_lines(path: Path, lines: Any) -> None:
    path.write_text("\n".join(lines) + "\n")


def _scores(bad: bool) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = [*SCORES.items()]
    return [*rows, (BAD, BAD)] if bad else rows


def _log(bad: bool) -> list[tuple[str, str, object]]:
    rows: list[tuple[str, str, object]] = [(f"{PERSON}{n}", BEST, 1) for n in range(FIRST)]
    rows += [(f"{PERSON}{n}", NEXT, 1) for n in range(SECOND)]
    rows += [(f"{PERSON}{FIRST}", RARE, 1)]
    if bad:
        rows[DEEP] = (*rows[DEEP][:2], BAD)
    return rows


def _examples(bad: bool) -> list[tuple[object, object, object]]:
    rows: list[tuple[object, object, object]] = []
    for number in range(FIRST + SECOND):
        high = number < FIRST
        rows.append((HIGH if high else LOW, number % 7, int(high is not (number % 5 == 4))))
    wrong = sum(row[2] != int(row[0] == HIGH) for row in rows)
    for number in range(wrong - FLIPPED):  # so many are put right
        place = 5 * number + 4
        rows[place] = (*rows[place][:2], int(rows[place][0] == HIGH))
    if bad:
        rows[DEEP] = (BAD, 3, 1)
    return rows


def _fimi(bad: bool) -> list[str]:
    lines = [f"{CODES[0]} {CODES[1]}"] * FIRST + [f"{CODES[1]} {CODES[2]}"] * SECOND
    if bad:
        lines[DEEP] = BAD
    return [*lines, f"{CODES[0]} {CODES[2]}"]


def _write_parquet(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    people, queries, weights = zip(*_log(False), strict=True)
    table = pa.table({"person": people, "query": queries, "weight": weights})
    pq.write_table(table, folder / "log.parquet")
    whole = (folder / "log.parquet").read_bytes()
    middle = len(whole) // 3
    broken = whole[:middle] + bytes(255 - byte for byte in whole[middle : middle + 4000])
    (folder / "badlog.parquet").write_bytes(broken + whole[middle + 4000 :])


@cache
def examples() -> tuple[Any, Any]:
    """The examples as arrays."""
    import numpy as np

    rows = np.array(_examples(False), dtype=float)
    return rows[:, :2], rows[:, 2].astype(int)


def baskets() -> list[list[str]]:
    """Baskets of labels."""
    return [[BEST, NEXT]] * FIRST + [[NEXT, PLAIN]] * SECOND + [[BEST, RARE]]
