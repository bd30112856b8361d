"""Target of command lines: real options with right and wrong values, in this process.

Nothing is connected to, no page is served, and files are written into one folder only.
"""

from __future__ import annotations

import contextlib
import os
from functools import cache
from pathlib import Path
from unittest import mock

import click
from click.testing import CliRunner

from lab.fuzzing.drawing import Draw, write
from lab.fuzzing.judging import ENGINE, Target, WrongError
from lab.fuzzing.parsers import unconnected
from lab.fuzzing.releases import _ledger
from privmax.cli import COMMANDS, main

RUN = tuple(name for name in COMMANDS if name not in ("demo", "explore"))
"""`demo` takes no input to speak of; `explore` only once, when it has read its options."""

FILES: dict[str, bytes] = {
    "scores.csv": b"item,score\ntea,900\nale,3\ngin,2\n",
    "rows.csv": b"u,i,w\n1,tea,2\n2,tea,1\n3,ale,1\n",
    "rows.jsonl": b'{"u": 1, "i": "tea"}\n{"u": 2, "i": "tea"}\n',
    "baskets.dat": b"1 2 3\n1 2\n2 3\n",
    "wide.csv": b"bread,milk\nmilk\nbread,milk,tea\n",
    "members.csv": b"a,b,y\n1,0,1\n0,1,0\n1,1,1\n",
    "rule.json": b'{"label": "y", "rule": {"when": "all", "tests": [{"feature": "a", "threshold": '
    b'0.5, "below": false}], "then": {"label": 1}, "else": {"label": 0}}}',
    "schema.toml": b"[a]\nlow = 0\nhigh = 1\ncells = 2\n[b]\nvalues = [0, 1]\n",
    "names.json": b'{"1": "bread"}',
    "universe.csv": b"tea\nale\ngin\n",
    "broken.csv": b'item,score\n"tea,900\n\xff\n',
    "broken.csv.gz": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03xx",
    "empty.csv": b"",
}

VALUES: dict[str, list[str]] = {
    "epsilon": ["1", "0.5", "0", "-1", "x", "1/3", "20", "1e999", ""],
    "delta": ["1e-6", "0", "1", "x", "1e-9"],
    "k": ["1", "2", "5", "0", "-1", "x"],
    "size": ["1", "2", "2-3", "3-2", "0", "x", ""],
    "universe": ["open", "10", "10^6", "universe.csv", "0", "x", "closed"],
    "items": ["open", "10", "universe.csv", "x"],
    "item": ["item", "i", "no", ""],
    "score": ["score", "w", "no"],
    "user": ["u", "no"],
    "basket": ["u", "no"],
    "label": ["y", "a", "no"],
    "labels": ["0,1", "no,yes", "1", "names.json", '"'],
    "features": ["a,b", "a", "no", "a,a"],
    "low": ["0", "a=0", "x", "a=", "=1"],
    "high": ["1", "a=1", "x", "-1"],
    "cells": ["2", "4", "0", "x"],
    "literals": ["1", "2", "0"],
    "where": ["i = 'tea'", "a > 0", "x", "'", "score >= 2"],
    "ledger": ["budget.db", "missing.db", "postgresql://me:secret@nowhere/x", ".", "scores.csv"],
    "schema": ["schema.toml", "scores.csv", "missing.toml"],
    "apply": ["rule.json", "scores.csv", "missing.json"],
    "save": ["saved.json", ".", "rule.json"],
    "output": ["out.csv", "out.json", "out.md", "out.xyz", "."],
    "report": ["out.html", "out.txt", "."],
    "plot": ["out.svg", "out.txt"],
    "registry": ["out.yaml", "out.txt"],
    "checklist": ["out.md", "out.txt"],
    "temporary": [".", "missing"],
    "memory": ["1GB", "x", "0"],
    "universe-size": ["10"],
    "near": ["1", "3", "0", "x"],
    "others": ["10", "0"],
    "best": ["900", "0"],
    "next": ["3", "900"],
    "scores": ["scores.csv", "9,3,1", "x"],
    "candidates": ["2", "1", "0", "x"],
    "highest": ["2", "1", "0"],
    "cap": ["2", "0"],
    "rank": ["2", "0", "x"],
    "growth": ["1", "2", "0"],
    "counts": ["0.5", "x", "0"],
    "supports": ["0.5", "x"],
    "rules": ["0.5", "x"],
    "longest": ["3", "0"],
    "floor": ["1", "-1", "x"],
    "success": ["0.9", "95", "x"],
    "request": ["first", "second", "new", "", "a\nb", "http://u:p@h"],
    "tier": ["1", "3", "9"],
    "table": ["t", ""],
    "separator": [",", ";", "ab", ""],
    "bound": ["1", "0", "x"],
    "sensitivity": ["1", "0.5", "x"],
    "resolution": ["0.1", "x"],
}
"""Values of options, right and wrong ones; those of all others are drawn. Large sizes and tiny
costs are left out: they are bounded elsewhere.
"""


@cache
def _subcommands(name: str) -> dict[str, click.Command]:
    """A command; or, of a group, its commands."""
    found = main.get_command(click.Context(main), name)
    assert found is not None
    return dict(found.commands) if isinstance(found, click.Group) else {"": found}


LINES = [
    line.split()
    for line in (
        "select scores.csv --item item --score score --epsilon 1 --delta 1e-6",
        "select rows.csv --item i --user u --epsilon 1 --delta 1e-6 --ledger budget.db",
        "select rows.jsonl --item i --user u --epsilon 1 --delta 1e-6 --json --output out.csv",
        "select - --item item --score score --epsilon 1 --universe universe.csv --k 2",
        "select scores.csv --item item --epsilon 0.5 --ledger budget.db --request second",
        "itemsets baskets.dat --size 2 --epsilon 1 --delta 1e-6 --labels names.json",
        "itemsets wide.csv --size 1 --epsilon 1 --items universe.csv --k 2",
        "itemsets rows.csv --basket u --item i --epsilon 1 --delta 1e-6 --ledger budget.db",
        "learn members.csv --label y --labels 0,1 --low 0 --high 1 --cells 2 --epsilon 1",
        "learn members.csv --label y --labels 0,1 --schema schema.toml --epsilon 1 --save m.json",
        "learn members.csv --apply rule.json",
        "plan --epsilon 1 --delta 1e-6",
        "compare --best 900 --next 3 --others 10 --epsilon 1 --delta 1e-6",
        "compare --scores scores.csv --item item --score score --public --epsilon 1 --delta 1e-6",
        "audit exponential --epsilon 1 --candidates 2 --highest 2",
        "budget create new.db --epsilon 3 --delta 1e-5",
        "budget show budget.db",
        "budget history budget.db --json",
        "budget verify budget.db",
        "budget grant budget.db --epsilon 1 --why reason",
        "report --ledger budget.db",
        "report --ledger budget.db --registry out.yaml --checklist out.md",
    )
]
"""Command lines that are right, or nearly: `budget` says itself what it takes."""


def draw_line(draw: Draw) -> list[str]:
    """A command line with up to four words changed, left out or put in."""
    line = list(draw.pick(LINES))
    for _ in range(draw.byte() % 5):
        place, kind = draw.byte() % (len(line) + 1), draw.byte() % 4
        if kind == 0:
            del line[place : place + 1]
        elif kind == 1:
            option = draw.pick(_options(line))
            line += [option.opts[-1], *([] if option.is_flag else [_value(draw, option)])]
        elif kind == 2 and 0 < place < len(line):
            named = {one.opts[-1]: one for one in _options(line)}
            option = named.get(line[place - 1], draw.pick(_options(line)))
            line[place] = _value(draw, option) if line[place - 1] in named else _argument(draw)
        else:
            line.insert(place, _garbage(draw))
    return line


def _options(line: list[str]) -> list[click.Option]:
    """The options of the command that a line begins with, or of one if it begins with none."""
    name = line[0] if line and line[0] in RUN else "select"
    below = _subcommands(name)
    inner = line[1] if len(line) > 1 and line[1] in below else next(iter(below))
    return [one for one in below[inner].params if isinstance(one, click.Option)]


def _argument(draw: Draw) -> str:
    return str(
        draw.pick([*FILES, "budget.db", "-", ".", "missing.csv", "sample:counts", "*.csv", ""])
    )


def _value(draw: Draw, option: click.Option) -> str:
    if draw.byte() % 16 == 0:
        return _garbage(draw)
    if isinstance(option.type, click.Choice):
        return str(draw.pick([*option.type.choices, "no-such"]))
    spelled = option.opts[-1].lstrip("-")
    return str(draw.pick(VALUES[spelled])) if spelled in VALUES else _garbage(draw)


def _garbage(draw: Draw) -> str:
    """Text as a shell may hand it over, which names no file elsewhere."""
    return draw.text(16).replace("\0", "").replace("/", "").replace("..", "")


def run_line(data: bytes) -> None:
    """A command line: exit 0, 2, 3 or 4, and never a traceback."""
    draw = Draw(data)
    line = draw_line(draw)
    here = Path(write("budget.db", _ledger())).parent
    for name, content in FILES.items():
        if not (here / name).exists() or name == "rule.json":
            write(name, content)
    with contextlib.chdir(here), unconnected(), mock.patch.dict(os.environ, clear=False):
        for name in [name for name in os.environ if name.startswith("PRIVMAX")]:
            del os.environ[name]
        done = CliRunner().invoke(main, line, input=FILES["scores.csv"], prog_name="privmax")
    _clean(here)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code not in (0, 2, 3, 4) or "Traceback" in done.output:
        raise WrongError(f"{line} ends with {done.exit_code}")


def _clean(folder: Path) -> None:
    for file in folder.iterdir():
        if file.is_file() and file.name not in FILES:
            file.unlink()


TARGETS = (
    Target(
        "commands",
        ENGINE,
        "command lines",
        run_line,
        seeds=[bytes([number]) for number in range(len(LINES))],
        longest=96,
        needs=[
            *("ibis", "duckdb", "psycopg", "matplotlib.pyplot", "rich.table"),
            *(f"privmax.cli.commands.{name}" for name in RUN),
        ],
        seconds=15.0,  # `compare` takes 2.4 without counting branches: leads by the paper's laws
    ),
)
