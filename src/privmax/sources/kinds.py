"""Types of columns that the embedded engine reads, with the names that Ibis gives them.

A type has the methods that one of Ibis has. `find_kind` knows the usual types. All others, such as
lists, are read by Ibis itself, so that a message about a type says the same either way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple


class IntegerBounds(NamedTuple):
    """The least and the largest whole number of a type."""

    lower: int
    upper: int


@dataclass(frozen=True)
class DataType:
    """A type of single values.

    Args:
        name: As Ibis writes it.
        sql: As the engine writes it.
        family: What it has in common with others: "integer", "floating", "string", …
        precision: Of decimals: their digits.
        scale: Of decimals: digits behind the point; of moments: of a second.
        timezone: Of moments.
        bits: Of whole numbers and floats.
    """

    name: str
    sql: str
    family: str
    precision: int | None = None
    scale: int | None = None
    timezone: str | None = None
    bits: int = 64

    def __str__(self) -> str:
        return self.name

    def is_boolean(self) -> bool:
        return self.family == "boolean"

    def is_integer(self) -> bool:
        return self.family in ("signed", "unsigned")

    def is_signed_integer(self) -> bool:
        return self.family == "signed"

    def is_floating(self) -> bool:
        return self.family == "floating"

    def is_float32(self) -> bool:
        return self.family == "floating" and self.bits == 32

    def is_decimal(self) -> bool:
        return self.family == "decimal"

    def is_numeric(self) -> bool:
        return self.is_integer() or self.family in ("floating", "decimal")

    def is_string(self) -> bool:
        return self.family == "string"

    def is_binary(self) -> bool:
        return self.family == "binary"

    def is_date(self) -> bool:
        return self.family == "date"

    def is_time(self) -> bool:
        return self.family == "time"

    def is_timestamp(self) -> bool:
        return self.family == "timestamp"

    def is_interval(self) -> bool:
        return self.family == "interval"

    def is_uuid(self) -> bool:
        return self.family == "uuid"

    def is_inet(self) -> bool:
        return False

    def is_macaddr(self) -> bool:
        return False

    def is_unknown(self) -> bool:
        return False

    def is_nested(self) -> bool:
        return False

    def is_array(self) -> bool:
        return False

    def is_json(self) -> bool:
        return False

    @property
    def bounds(self) -> IntegerBounds:
        """The whole numbers that it has."""
        if self.family == "signed":
            return IntegerBounds(-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1)
        return IntegerBounds(0, (1 << self.bits) - 1)

    def to_pyarrow(self) -> Any:
        """Return the type of Arrow that Ibis takes for it."""
        import pyarrow

        plain = _ARROW.get(self.name)
        if plain is not None:
            return getattr(pyarrow, plain)()
        import ibis

        return ibis.dtype(self.name).to_pyarrow()


_ARROW = {"string": "string", "boolean": "bool_", "binary": "binary", "date": "date32"}
_ARROW |= {f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_ARROW |= {"float32": "float32", "float64": "float64"}

_PLAIN = {
    kind.sql: kind
    for kind in (
        DataType("boolean", "BOOLEAN", "boolean"),
        DataType("int8", "TINYINT", "signed", bits=8),
        DataType("int16", "SMALLINT", "signed", bits=16),
        DataType("int32", "INTEGER", "signed", bits=32),
        DataType("int64", "BIGINT", "signed"),
        DataType("uint8", "UTINYINT", "unsigned", bits=8),
        DataType("uint16", "USMALLINT", "unsigned", bits=16),
        DataType("uint32", "UINTEGER", "unsigned", bits=32),
        DataType("uint64", "UBIGINT", "unsigned"),
        DataType("float32", "FLOAT", "floating", bits=32),
        DataType("float64", "DOUBLE", "floating"),
        DataType("string", "VARCHAR", "string"),
        DataType("binary", "BLOB", "binary"),
        DataType("date", "DATE", "date"),
        DataType("time", "TIME", "time"),
        DataType("timestamp(0)", "TIMESTAMP_S", "timestamp", scale=0),
        DataType("timestamp(3)", "TIMESTAMP_MS", "timestamp", scale=3),
        DataType("timestamp(6)", "TIMESTAMP", "timestamp", scale=6),
        DataType("timestamp(9)", "TIMESTAMP_NS", "timestamp", scale=9),
        DataType("timestamp('UTC', 6)", "TIMESTAMP WITH TIME ZONE", "timestamp", scale=6,
             timezone="UTC"),
        DataType("interval('us')", "INTERVAL", "interval"),
        DataType("uuid", "UUID", "uuid"),
    )
}  # fmt: skip
_NAMED = {kind.name: kind for kind in _PLAIN.values()}

_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)", re.ASCII | re.IGNORECASE)


def kind_of(given: object) -> Any:
    """Return the type that a name stands for, which must be known; a type as it is."""
    kind = find_kind(given) if isinstance(given, str) else given
    if kind is None:
        raise ValueError("There is no such type.")
    return kind


@cache
def find_kind(text: str) -> DataType | None:
    """Return the type that a name of the engine's or of Ibis's stands for; None: an odd one.

    Examples:
        >>> str(find_kind("BIGINT")), str(find_kind("DECIMAL(10,2)")), find_kind("int8").bounds
        ('int64', 'decimal(10, 2)', IntegerBounds(lower=-128, upper=127))
    """
    plain = _PLAIN.get(text) or _NAMED.get(text)
    if plain is not None:
        return plain
    if text == "HUGEINT":
        return _decimal(38, 0)  # as Ibis has it
    if text.startswith("ENUM(") and text.endswith(")"):  # and not a list of them
        return _PLAIN["VARCHAR"]
    match = _DECIMAL.fullmatch(text)
    return None if match is None else _decimal(int(match[1]), int(match[2]))


def _decimal(precision: int, scale: int) -> DataType:
    name, sql = f"decimal({precision}, {scale})", f"DECIMAL({precision}, {scale})"
    return DataType(name, sql, "decimal", precision, scale)
