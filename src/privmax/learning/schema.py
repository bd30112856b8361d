"""A public schema: which columns there are, and into which cells the values of each fall.

A schema is declared, never computed from the data. Every value of a column has a cell, which
follows from that value and the schema alone: nothing that one person writes changes how another is
read, and nothing in a column makes reading fail. Only names and types of columns can do that.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from privmax.display import format_label
from privmax.errors import ParameterError, column_error
from privmax.learning.columns import find_columns
from privmax.learning.kinds import KINDS, Cells, Column, Kind

if TYPE_CHECKING:
    from ibis.expr.types import IntegerValue, Table

LARGEST_FILE = 1 << 24
"""Bytes of the file of a schema."""


class Schema:
    """The columns that a learner looks at: their names, in order, and the cells of each.

    All of it is public.

    Args:
        columns: A `Number`, `Category`, `Flag` or `Date` by name, for names that Python cannot
            spell.
        named: The others, by name.

    Attributes:
        names: Of the columns.
        columns: The columns, each with its name.
        features: How many there are.

    Raises:
        ParameterError: There is no column, or one is of no kind of column.

    Examples:
        >>> from privmax.learning import Category, Number
        >>> schema = Schema(age=Number(17, 90, cells=2), work=Category(["Private"], missing="?"))
        >>> schema
        Schema({'age': Number(low=17, high=90, cells=2), 'work': Category(values=[...
        >>> schema.codes([[39, "Private"], [60, "?"]]).tolist()
        [[0, 1], [1, 0]]
        >>> schema.columns[0].describe(1)
        'age >= 53.5'
        >>> Schema.from_dict(schema.to_dict()) == schema
        True
    """

    def __init__(self, columns: Mapping[str, Column] | None = None, /, **named: Column) -> None:
        if columns is not None and not isinstance(columns, Mapping):
            raise ParameterError(
                "schema",
                type(columns).__name__,
                "it must be a mapping of names to columns",
                'For example Schema({"age": Number(17, 90)}).',
            )
        every: dict[Any, Any] = {**(columns or {}), **named}
        if not every or len(every) < len(columns or {}) + len(named):
            raise ParameterError(
                "schema",
                list(every),
                "it must name at least one column, and each once",
                "For example Schema(age=Number(17, 90)).",
            )
        for name, column in every.items():
            if not isinstance(name, str) or not isinstance(column, Column):
                kinds = ", ".join(kind.__name__ for kind in KINDS.values())
                raise ParameterError(
                    "schema",
                    {name: column},
                    f"every name must be text, and every column one of {kinds}",
                    "For example Schema(age=Number(17, 90)).",
                )
        every = {str.__str__(name): column for name, column in every.items()}
        self.names: tuple[str, ...] = tuple(every)
        self.columns: tuple[Column, ...] = tuple(
            column.with_name(name) for name, column in every.items()
        )

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a schema from a TOML or JSON file: a table for each column, with its arguments.

        `kind` says of which kind a column is: "number", "category", "flag" or "date". Without it a
        column with `values` is a category, and any other a number.

        Raises:
            ParameterError: The file cannot be read, or is no schema.
        """
        spelled = "JSON" if Path(path).suffix.lower() == ".json" else "TOML"
        try:
            with open(path, "rb") as opened:
                content = opened.read(LARGEST_FILE + 1)
            if len(content) > LARGEST_FILE:
                why = f"it has more than {LARGEST_FILE >> 20} MiB"
            else:
                text = content.decode("utf-8-sig")
                columns = _parse_json(text) if spelled == "JSON" else tomllib.loads(text)
                if isinstance(columns, Mapping) and columns:
                    return cls.from_dict(columns)
                why = "it has no table for any column"
        except ParameterError:
            raise
        except OSError as error:
            why = error.strerror or "it cannot be read"
        except RecursionError:
            why = "it is nested too deep"
        except ValueError as error:
            why = f"it is not valid {spelled} ({str(error).rstrip('.')})"
        raise ParameterError(
            "schema", str(path), why, "Give a TOML or JSON file: see privmax help schema."
        )

    @classmethod
    def from_dict(cls, columns: Any) -> Self:
        """Return a schema from plain values, as `to_dict` makes them.

        Examples:
            >>> Schema.from_dict({"age": {"low": 17, "high": 90}})
            Schema({'age': Number(low=17, high=90, cells=16)})
            >>> Schema.from_dict({"age": {"low": 17, "hihg": 90}})
            Traceback (most recent call last):
            ...
            privmax.errors.ParameterError: age.hihg=90 is not allowed: a column has no such ...
        """
        if not isinstance(columns, Mapping):
            columns = {}
        return cls(
            {name: _read_one(format_label(name), settings) for name, settings in columns.items()}
        )

    @property
    def features(self) -> int:
        return len(self.columns)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the schema as plain values, for JSON or TOML."""
        return {column.name: column.to_dict() for column in self.columns}

    def only(self, names: Sequence[str]) -> Schema:
        """Return the schema of some of the columns, in this order.

        Raises:
            ParameterError: It has no such column.

        Examples:
            >>> Schema.from_dict({"age": {"low": 17, "high": 90}}).only(["age"]).names
            ('age',)
        """
        every = dict(zip(self.names, self.columns, strict=True))
        for name in names:
            if name not in every:
                raise column_error("features", name, self.names, "schema")
        return Schema({name: every[name] for name in names})

    def codes(self, X: Any) -> Cells:
        """Return the cell of every value.

        There is one row per column of the schema, one column per row of X.

        Args:
            X: A frame of pandas, polars or Arrow, whose columns are found by name, others being
                ignored; or an array, a list of rows or a sparse matrix with the columns in order.

        Raises:
            ParameterError: A column is missing.
            DataError: The type of a column does not fit, or X has another number of columns.
        """
        pairs = zip(self.columns, find_columns(X, self.names), strict=True)
        with np.errstate(all="ignore"):  # a warning would tell of a value
            return np.stack([column.codes_of(raw) for column, raw in pairs])

    def expressions(self, table: Table) -> list[IntegerValue]:
        """Return the same cells as Ibis expressions, one per column, for an engine to compute.

        Args:
            table: An Ibis table whose columns are found by name.

        Raises:
            ParameterError: A column is missing.
            DataError: The type of a column does not fit.
        """
        from privmax.learning.expressions import cell_expressions

        return cell_expressions(self, table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"Schema({dict(zip(self.names, self.columns, strict=True))!r})"


def _read_one(name: str, table: Any) -> Kind:
    """Return a column from the plain values of its arguments; an error names both."""
    if not isinstance(table, Mapping):
        raise ParameterError(
            name,
            table,
            "a column is a table with low and high, thresholds, or values",
            "See privmax help schema.",
        )
    kind = _find_kind(name, table)
    settings = {option: value for option, value in table.items() if option != "kind"}
    for option in settings:
        if option not in kind.settings:
            raise ParameterError(
                f"{name}.{format_label(option)}",
                table[option],
                "a column has no such setting"
                + (f" beside {kind.implied}" if kind.implied else ""),
                f"It has {', '.join(kind.settings)}.",
            )
    if kind.implied and kind.implied not in settings:
        raise ParameterError.required(
            f"{name}.{kind.implied}", f"a {kind.kind} needs it", "See privmax help schema."
        )
    try:
        return kind(**settings)
    except ParameterError as error:
        about = f"{name}.{error.name}"
        if error.missing:
            raise ParameterError.required(about, error.allowed, kind.bounds_remedy) from None
        raise ParameterError(about, error.value, error.allowed, error.remedy) from None


def _find_kind(name: str, table: Mapping[str, Any]) -> type[Kind]:
    """Return the kind that the table of a column is of."""
    if "kind" not in table:
        implied = {kind.implied: kind for kind in KINDS.values() if kind.implied is not None}
        return next((kind for setting, kind in implied.items() if setting in table), implied[""])
    named = table["kind"]
    if not isinstance(named, str) or named not in KINDS:
        raise ParameterError(
            f"{name}.kind",
            named,
            f"it must be one of {', '.join(KINDS)}",
            "See privmax help schema.",
        )
    return KINDS[named]


def _parse_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, in which no name may stand twice."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ParameterError("schema", name, "this name occurs twice", "Leave one out.")
        values[name] = value
    return values
