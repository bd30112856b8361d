"""Declared columns: --low and --high of all or of some, --cells, or --schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privmax.errors import ParameterError, refuse_given
from privmax.numbers import exact

if TYPE_CHECKING:
    from privmax.learning import Schema


@dataclass(frozen=True)
class ColumnBounds:
    """The values of --low or --high: a number for all columns, and numbers for some."""

    option: str
    every: float | None
    some: Mapping[str, float]

    @classmethod
    def read(cls, option: str, texts: Sequence[str]) -> ColumnBounds:
        every: float | None = None
        some: dict[str, float] = {}
        for text in texts:
            name, equals, number = text.rpartition("=")
            known = name in some if equals else every is not None
            if known:
                raise ParameterError(
                    option, text, "the same bound is given twice", "Leave one of them out."
                )
            bound = _float(option, text, number)
            if equals:
                some[name] = bound
            else:
                every = bound
        return cls(option, every, some)

    def __bool__(self) -> bool:
        return self.every is not None or bool(self.some)

    def of(self, features: Sequence[str]) -> list[float]:
        for name, number in self.some.items():
            if name not in features:
                raise ParameterError(
                    self.option, f"{name}={number:g}", "no feature has this name",
                    "Give the name of a feature.",
                )  # fmt: skip
        missing = next(
            (name for name in features if self.every is None and name not in self.some), None
        )
        if missing is not None:
            raise ParameterError.required(
                self.option, f"the column {missing} has no such bound, which must be public "
                "and never computed from the data",
                f"Add --{self.option} {missing}=NUMBER, or --{self.option} NUMBER for all columns "
                "without one.",
            )  # fmt: skip
        return [self.some.get(name, self.every or 0.0) for name in features]

    def plain(self) -> object:
        """Return them as an error shows them: one number, or numbers by column; None: none."""
        return (self.every if self.every is not None else dict(self.some)) if self else None


def _float(option: str, value: str, number: str) -> float:
    try:
        return float(exact(option, number))
    except (ParameterError, OverflowError):
        raise ParameterError(
            option, value, "it must be NUMBER or COLUMN=NUMBER",
            f"For example --{option} 100 or --{option} age=100.",
        ) from None  # fmt: skip


@dataclass(frozen=True)
class DeclaredColumns:
    """The options that say which cells columns have.

    Attributes:
        schema: Of --schema; None: bounds say it.
    """

    low: ColumnBounds
    high: ColumnBounds
    cells: int | None
    schema: Schema | None = None

    def check(self, *, needed: bool) -> None:
        """Refuse what is wrong whatever the data, before that is read.

        Args:
            needed: Whether columns of 0 and 1 need bounds, too.
        """
        if self.schema is not None:
            bounds = {"low": self.low.plain(), "high": self.high.plain(), "cells": self.cells}
            refuse_given(bounds, "--schema already sets it for every column")
            return
        for bound, other in ((self.low, self.high), (self.high, self.low)):
            if not bound and (other or self.cells is not None or needed):
                raise ParameterError.required(
                    bound.option, "every feature needs a public bound. Do not compute it "
                    "from the data: that would release one person's extreme values",
                    f"Add --{bound.option} NUMBER for all columns, or --{bound.option} "
                    "COLUMN=NUMBER for each.",
                )  # fmt: skip

    def ends(self, features: Sequence[str]) -> tuple[list[float], list[float]]:
        """Return the lower and the upper bound of every feature."""
        lows, highs = self.low.of(features), self.high.of(features)
        for name, low, high in zip(features, lows, highs, strict=True):
            if not low < high:
                raise ParameterError(
                    "high", f"{name}={high:g}", f"it must be above the lower bound, {low:g}",
                    "Give public bounds that cover typical values.",
                )  # fmt: skip
        return lows, highs

    def as_schema(self, features: Sequence[str], cells: int) -> Schema:
        """Return the schema, or one of numbers between the bounds, in so many cells by default."""
        if self.schema is not None:
            return self.schema
        from privmax.learning import Number, Schema

        parts = cells if self.cells is None else self.cells
        ends = zip(features, *self.ends(features), strict=True)
        return Schema({name: Number(low, high, cells=parts) for name, low, high in ends})
