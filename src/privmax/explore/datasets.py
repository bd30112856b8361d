"""Data sets that may be asked about: what the person who starts the explorer says of each.

Nothing is read from them here. Which columns there are, whom the cost protects and what may be
asked follows from what is declared, never from the data.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from privmax.cli.inputs import Input, check_exists, find_file, name_columns, open_data
from privmax.cli.passwords import SAMPLE
from privmax.errors import ParameterError, refuse_same
from privmax.explore.jobs import SAMPLES
from privmax.ledger.events import ROW, USER, label
from privmax.sources.conditions import Condition
from privmax.sources.roles import Columns

ENTRIES = ("file", "table", "columns", "where", "user", "score", "unit", "growth", "about")
"""The entries that a file of data sets may have for one of them."""

LARGEST_TOML = 1 << 24
"""Bytes of a file of data sets, at most."""

NAME = r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}"


@dataclass(frozen=True)
class Dataset:
    """A data set that may be asked about.

    Args:
        name: What pages and the ledger call it.
        file: Where it is: as FILE of `privmax select`; never shown.
        table: Of a database.
        columns: Which columns items may be taken from.
        where: Which columns conditions may look at.
        user: Column of individuals; None: every row is one, or scores are ready.
        score: Column of ready scores.
        unit: What one individual is: "user" or "row", or what the person says.
        growth: The most candidates that one individual can affect, if there is a bound.
        about: What it holds, in words.
    """

    name: str
    file: str
    columns: tuple[str, ...]
    table: str | None = None
    where: tuple[str, ...] = ()
    user: str | None = None
    score: str | None = None
    unit: str = USER
    growth: int | None = None
    about: str = ""

    def __repr__(self) -> str:
        return f"Dataset({self.name!r})"  # its place may hold a password

    @classmethod
    def of(cls, name: str, given: Mapping[str, Any]) -> Dataset:
        """The data set that a person describes; refuses what is missing or contradicts itself."""
        if not re.fullmatch(NAME, name):
            raise ParameterError(
                "data",
                name,
                "a name has letters, digits, spaces, dots and dashes",
                "Choose another.",
            )
        label("dataset", name)
        for entry in given:
            if entry not in ENTRIES:
                raise ParameterError(
                    "datasets", entry, f"“{name}” may have {', '.join(ENTRIES)}", "Leave it out."
                )
        file = given.get("file")
        if not isinstance(file, str) or not file:
            raise ParameterError.required("file", f"“{name}” must say where its data is")
        if file == "-":
            raise ParameterError(
                "data", "-", "standard input can be read once only", "Name a file."
            )
        known = SAMPLES.get(file.removeprefix(SAMPLE), {}) if file.startswith(SAMPLE) else {}
        said = {**known, **given}
        columns = _names(name, "columns", said.get("columns", ()))
        if not columns:
            raise ParameterError.required(
                "columns",
                f"which columns of “{name}” may be released is for you to say",
                f"For example --columns {name}=query.",
            )
        user, score, unit = said.get("user"), said.get("score"), said.get("unit")
        if user is None and score is None and unit is None:
            raise ParameterError.required(
                "user",
                f"data set “{name}” must name the individuals to protect",
                f"Give --user {name}=COLUMN, or --unit {name}=row if every row is one individual.",
            )
        refuse_same("user", user, "It may not be released. Name others.", columns=columns)
        made = cls(
            name,
            file,
            columns,
            table=said.get("table"),
            where=_names(name, "where", said.get("where", ())),
            user=user,
            score=score,
            unit=unit or (USER if user is not None or score is not None else ROW),
            growth=said.get("growth"),
            about=str(said.get("about", "")),
        )
        label("unit", made.unit)
        made.input().check()
        find_file(file)
        return made

    def check_place(self) -> None:
        """Refuse a file that is not there: a strict ledger would be charged for every question
        about it. Opens nothing.
        """
        file = find_file(self.file)
        if "://" not in file:
            check_exists(file)

    def input(self, where: str | None = None) -> Input:
        return Input(find_file(self.file), self.table, where)

    def select(self, items: Sequence[str], where: str | None) -> Reading:
        """Return a reading of the data set. Refuses columns that are not allowed; opens nothing."""
        for item in items:
            if item not in self.columns:
                raise ParameterError(
                    "item", item, f"“{self.name}” allows {', '.join(self.columns)}", ""
                )
        if not items:
            raise ParameterError.required("item", "", "Choose what to release.")
        if self.score is not None and len(items) > 1:
            raise ParameterError("item", list(items), "of ready scores one column names items", "")
        if where is not None:
            for column in Condition.of(where).columns():
                if column not in (*self.where, *self.columns):
                    allowed = ", ".join(dict.fromkeys((*self.where, *self.columns)))
                    raise ParameterError("where", column, f"conditions may look at {allowed}", "")
        data = self.input(where)
        counting = {"user": self.user, "weight": None, "bound": None}
        columns = name_columns(data, items, self.score, counting)
        ready = None if columns else {"item": items[0], "score": self.score or "score"}
        read = partial(open_data, data, list(items), self.score, columns)
        return Reading(Columns(**columns, where=where), read, ready)

    @property
    def has_keys(self) -> bool:
        """Whether all keys that enough individuals have may be asked for."""
        return self.user is not None and self.score is None

    @property
    def protects(self) -> str:
        """Whom the cost protects, in words."""
        if self.user is not None:
            return f"one individual (“{self.user}”) with all of its rows"
        return "one row" if self.unit == ROW else f"one {self.unit}"


@dataclass(frozen=True)
class Reading:
    """The arguments of `Selection` by which an answer is read."""

    columns: Columns
    read: Any
    ready: Mapping[str, str] | None

    def __call__(self, stack: ExitStack) -> object:
        return self.read(stack)


def _names(dataset: str, entry: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str):
        given = [one.strip() for one in given.split(",") if one.strip()]
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise ParameterError(entry, given, f"“{dataset}” must list names of columns")
    return tuple(given)


def read_datasets(
    pairs: Mapping[str, Sequence[str]], file: str | None = None
) -> dict[str, Dataset]:
    """All data sets, by name.

    Args:
        pairs: What was typed, NAME=VALUE, by entry: "file", "table", "columns", ….
        file: A TOML file with a table for each data set; None: there is none.
    """
    said: dict[str, dict[str, Any]] = {}
    if file is not None:
        try:
            with open(file, "rb") as opened:
                text = opened.read(LARGEST_TOML + 1)
            if len(text) > LARGEST_TOML:
                raise ParameterError(
                    "datasets", file, f"it has more than {LARGEST_TOML >> 20} MiB", ""
                )
            tables = tomllib.loads(text.decode("utf-8"))
        except OSError as error:
            raise ParameterError("datasets", file, str(error.strerror), "") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ParameterError("datasets", file, f"it is not valid TOML: {error}", "") from None
        except RecursionError:
            raise ParameterError("datasets", file, "it is nested too deep", "") from None
        for name, entries in tables.items():
            if not isinstance(entries, dict):
                raise ParameterError(
                    "datasets", name, "each data set has a table of its own", f"Write [{name}]."
                )
            said[name] = dict(entries)
    for pair in pairs.get("file", ()):
        name, equals, place = pair.partition("=")
        if not equals:
            raise ParameterError("data", "…", "it must be NAME=FILE", "For example log=log.csv.")
        if name in said:
            raise ParameterError("data", name, "this name is already used", "")
        said[name] = {"file": place}
    for entry in ("table", "columns", "where", "user", "score", "unit"):
        for pair in pairs.get(entry, ()):
            name, equals, value = pair.partition("=")
            if not equals or name not in said:
                raise ParameterError(
                    entry, pair, "it must be NAME=…, with the NAME of a --data", ""
                )
            said[name][entry] = value
    return {name: Dataset.of(name, entries) for name, entries in said.items()}
