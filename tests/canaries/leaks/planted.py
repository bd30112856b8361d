"""Leaks that are planted on purpose, one for each place: the search must find each."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leaks import faults
from leaks.child import Evidence
from leaks.field import BEST, DRAWN, FIRST, NEXT, PLAIN, SCORES


@dataclass
class Leak:
    """A value that is searched, as a release is."""

    secret: Any

    def __repr__(self) -> str:
        return "Leak(<private>)"


class Telling(Leak):
    def __repr__(self) -> str:
        return f"Leak({self.secret:,})"


class Drawing(Leak):
    def _repr_html_(self) -> str:
        return f"<b title='{self.secret!a}'>"


PLANTED: dict[str, Callable[[], Any]] = {}
"""By the place where each must be found."""


def planted(place: str) -> Callable[[Callable[[], Any]], Any]:
    def note(plant: Callable[[], Any]) -> Callable[[], Any]:
        PLANTED[place] = plant
        return plant

    return note


@planted("repr")
def _in_repr() -> Any:
    return Telling(SCORES[BEST])


@planted("notebook")
def _in_notebook() -> Any:
    return Drawing(PLAIN)


@planted("attributes")
def _in_attributes() -> Any:
    return Leak(NEXT)


@planted("pickle")
def _in_pickle() -> Any:
    import numpy as np

    made = Leak(None)
    made.__dict__["_hidden"] = np.array([1, FIRST])
    return made


@planted("JSON")
def _in_json() -> Any:
    Path("out.json").write_text(f'{{"total": {sum(SCORES.values()):e}, "n": {FIRST}.0}}')


@planted("errors")
def _in_an_error() -> Any:
    try:
        raise KeyError(NEXT)
    except KeyError:
        raise ValueError("no such label")  # noqa: B904  # it stays attached, as its context


@planted("frames")
def _in_a_frame() -> Any:
    _outside(f"{DRAWN.value}7")


def _outside(drawn: str) -> None:
    exec(
        compile("def raised(answer):\n    raise ValueError\nraised(drawn)", "/elsewhere.py", "exec")
    )


@planted("log")
def _in_the_log() -> Any:
    logging.getLogger("duckdb.inner").debug("row %s", PLAIN)


@planted("warnings")
def _in_a_warning() -> Any:
    warnings.warn(f"{FIRST} individuals", stacklevel=1)


@planted("output")
def _in_the_output() -> Any:
    os.write(1, f"best: {FIRST:,}\n".encode())  # as a library that is written in C


@planted("progress")
def _in_progress() -> Any:
    print(f"\r{FIRST} rows", end="", file=sys.stderr)


@planted("report")
def _in_a_comment() -> Any:
    Path("page.html").write_text(f"<!-- {''.join(f'&#{ord(c)};' for c in PLAIN)} -->")


@planted("figures")
def _in_a_figure() -> Any:
    from matplotlib.figure import Figure

    figure = Figure()
    figure.text(0, 0, f"{SCORES[NEXT]:,}")
    figure.savefig("figure.svg")


@planted("files")
def _in_a_file() -> Any:
    Path("leftover").write_bytes(SCORES[BEST].to_bytes(8, "little"))


@planted("ledger")
def _in_the_ledger() -> Any:
    from privmax import Privacy
    from privmax.ledger import Charge, Ledger

    with Ledger.create("other.db", budget=Privacy(9)) as ledger:
        ledger.charge(
            Charge(Privacy(1), unit="user"), {"command": "select", "rows": FIRST}, request="r"
        )


@planted("journal")
def _in_the_journal() -> Any:
    Path("budget.db-journal").write_bytes(NEXT.encode())  # as a kill may leave it


@planted("temporary files")
def _in_a_temporary_file() -> Any:
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write(NEXT)


@contextmanager
def prepare(job: dict[str, Any], evidence: Evidence) -> Iterator[Any]:
    with faults.ledger({**job, "situation": ""}, Path(job["folder"])):
        pass
    yield evidence, PLANTED[job["subject"]]


def act(scene: Any) -> int:
    evidence, plant = scene
    evidence.show(plant())
    return 0
