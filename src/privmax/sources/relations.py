"""Tables and columns as SQL text, for rows that the embedded engine reads for us.

A file or a frame needs a dozen statements. Ibis writes them too, and takes longer to import than
the engine takes to count. So a `Relation` offers what this project uses of an Ibis table, under the
same names, and a `RelationColumn` what it uses of a column: code that counts is written once, and
either kind of table runs it. `tests/engines/test_relations.py` runs both on the same values.

A relation never changes. Its columns may be used with it, and with what is made of it by leaving
out or ordering rows: names mean the same there (`RelationColumn.scope`).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from privmax.sources.kinds import DataType, kind_of

BOOLEAN, INT64, FLOAT64, TEXT = map(kind_of, ("BOOLEAN", "BIGINT", "DOUBLE", "VARCHAR"))

_SPACES = " \t\n\r\v\f"


class Scope:
    """Relations whose names mean the same: one of them, and those with fewer of its rows."""


@dataclass(frozen=True, repr=False, eq=False)
class RelationColumn:
    """An expression over the columns of a relation.

    Args:
        sql: As it is written there.
        kind: Its type; of sums the one that Ibis states.
        scope: Where its names mean this; None: it has none.
        name: What it is called, if it is a column as it is.
    """

    sql: str
    kind: Any
    scope: Scope | None = None
    name: str | None = None

    def __repr__(self) -> str:
        return "RelationColumn(<private>)"

    __hash__ = None  # type: ignore[assignment]  # == writes a comparison

    def type(self) -> Any:
        return self.kind

    def get_name(self) -> str:
        return self.name or ""

    # Comparisons: null where either side is.

    def __eq__(self, other: object) -> RelationColumn:  # type: ignore[override]
        return self._compare("=", other)

    def __ne__(self, other: object) -> RelationColumn:  # type: ignore[override]
        return self._compare("<>", other)

    def __lt__(self, other: object) -> RelationColumn:
        return self._compare("<", other)

    def __le__(self, other: object) -> RelationColumn:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> RelationColumn:
        return self._compare(">", other)

    def __ge__(self, other: object) -> RelationColumn:
        return self._compare(">=", other)

    def between(self, low: object, high: object) -> RelationColumn:
        return (self >= low) & (self <= high)

    def isin(self, values: Sequence[object]) -> RelationColumn:
        if not values:
            return self._make("FALSE", BOOLEAN)
        listed = ", ".join(column_of(value).sql for value in values)
        return self._make(f"({self.sql} IN ({listed}))", BOOLEAN)

    def isnull(self) -> RelationColumn:
        return self._make(f"({self.sql} IS NULL)", BOOLEAN)

    def notnull(self) -> RelationColumn:
        return self._make(f"({self.sql} IS NOT NULL)", BOOLEAN)

    def isnan(self) -> RelationColumn:
        return self._make(f"isnan({self.sql})", BOOLEAN)

    def re_search(self, pattern: str) -> RelationColumn:
        return self._make(f"regexp_matches({self.sql}, {write(pattern)})", BOOLEAN)

    def __and__(self, other: object) -> RelationColumn:
        return self._join("({} AND {})", other, BOOLEAN)

    def __or__(self, other: object) -> RelationColumn:
        return self._join("({} OR {})", other, BOOLEAN)

    # Arithmetic.

    def __add__(self, other: object) -> RelationColumn:
        return self._join("({} + {})", other)

    def __radd__(self, other: object) -> RelationColumn:
        return column_of(other) + self

    def __sub__(self, other: object) -> RelationColumn:
        return self._join("({} - {})", other)

    def __mul__(self, other: object) -> RelationColumn:
        return self._join("({} * {})", other)

    def __rmul__(self, other: object) -> RelationColumn:
        return column_of(other) * self

    def __truediv__(self, other: object) -> RelationColumn:
        return self._join("({} / {})", other, FLOAT64)

    def __rtruediv__(self, other: object) -> RelationColumn:
        return column_of(other) / self

    def floor(self) -> RelationColumn:
        return self._make(f"CAST(floor({self.sql}) AS BIGINT)", INT64)

    def sqrt(self) -> RelationColumn:
        return self._make(f"sqrt({self.sql})", FLOAT64)

    def clip(self, lower: object = None, upper: object = None) -> RelationColumn:
        clipped = self
        for function, bound in (("least", upper), ("greatest", lower)):
            if bound is not None:
                sql = f"{function}({column_of(bound).sql}, {clipped.sql})"
                clipped = clipped.isnull().ifelse(clipped, self._make(sql, self.kind))
        return clipped

    # Other values.

    def ifelse(self, yes: object, no: object) -> RelationColumn:
        first, second = column_of(yes), column_of(no)
        kind = second.kind if yes is None else first.kind
        sql = f"CASE WHEN {self.sql} THEN {first.sql} ELSE {second.sql} END"
        return RelationColumn(f"({sql})", kind, _scope(self, first, second))

    def fill_null(self, value: object) -> RelationColumn:
        return self._join("coalesce({}, {})", value)

    def nullif(self, value: object) -> RelationColumn:
        return self._join("nullif({}, {})", value)

    def cast(self, kind: object) -> RelationColumn:
        """Return the values as another type; a type that the column has already is not written."""
        target = kind_of(kind)
        if str(target) == str(self.kind):
            return self
        return self._make(f"CAST({self.sql} AS {target.sql})", target)

    def try_cast(self, kind: object) -> RelationColumn:
        target = kind_of(kind)
        return self._make(f"TRY_CAST({self.sql} AS {target.sql})", target)

    def strip(self) -> RelationColumn:
        return self._make(f"trim({self.sql}, {write(_SPACES)})", TEXT)

    # Lists of texts.

    def sort(self) -> RelationColumn:
        return self._make(f"list_sort({self.sql})", self.kind)

    def join(self, between: str) -> RelationColumn:
        return self._make(f"array_to_string({self.sql}, {write(between)})", TEXT)

    # Of a group of rows.

    def count(self) -> RelationColumn:
        return self._make(f"count({self.sql})", INT64)

    def nunique(self) -> RelationColumn:
        return self._make(f"count(DISTINCT {self.sql})", INT64)

    def max(self) -> RelationColumn:
        return self._make(f"max({self.sql})", self.kind)

    def min(self) -> RelationColumn:
        return self._make(f"min({self.sql})", self.kind)

    def sum(self) -> RelationColumn:
        kind = INT64 if self.kind.is_integer() else self.kind
        return self._make(f"sum({self.sql})", kind)

    def bit_or(self) -> RelationColumn:
        return self._make(f"bit_or({self.sql})", self.kind)

    def collect(self) -> RelationColumn:
        return self._make(f"array_agg({self.sql}) FILTER (WHERE {self.sql} IS NOT NULL)", TEXT)

    # Orders.

    def desc(self) -> RelationColumn:
        return self._make(f"{self.sql} DESC", self.kind)

    def _make(self, sql: str, kind: Any) -> RelationColumn:
        return RelationColumn(sql, kind, self.scope)

    def _compare(self, sign: str, other: object) -> RelationColumn:
        return self._join(f"({{}} {sign} {{}})", other, BOOLEAN)

    def _join(self, form: str, other: object, kind: Any = None) -> RelationColumn:
        right = column_of(other)
        if kind is None:
            kind = FLOAT64 if right.kind.is_floating() else self.kind
        return RelationColumn(form.format(self.sql, right.sql), kind, _scope(self, right))


@dataclass(frozen=True, repr=False, eq=False)
class Relation:
    """A query, and the columns that are made of what it returns.

    Args:
        backend: The connection.
        query: What is after FROM.
        cells: The columns by name, in their order, as expressions over the query.
        scope: Shared with those of the same columns.
    """

    backend: Any
    query: str
    cells: Mapping[str, RelationColumn]
    scope: Scope

    @classmethod
    def of(cls, backend: Any, query: str, kinds: Mapping[str, Any]) -> Relation:
        """Return the relation of a query whose columns have these names and types."""
        scope = Scope()
        cells = {
            name: RelationColumn(quote_name(name), one, scope, name) for name, one in kinds.items()
        }
        return cls(backend, query, cells, scope)

    def __repr__(self) -> str:
        return "Relation(<private>)"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.cells)

    @property
    def kinds(self) -> dict[str, Any]:
        """The types of the columns by their names."""
        return {name: one.kind for name, one in self.cells.items()}

    def __getitem__(self, name: str) -> RelationColumn:
        return self.cells[name]

    def get_backend(self) -> Any:
        return self.backend

    def schema(self) -> Mapping[str, Any]:
        return self.kinds

    @property
    def sql(self) -> str:
        """The query as a statement."""
        return f"SELECT {_name(self.cells)} FROM {self.query}"

    def to_pyarrow(self) -> Any:
        return self.backend.to_arrow(self)

    # Rows.

    def filter(self, *conditions: RelationColumn) -> Relation:
        if not conditions:
            return self
        self._check(conditions)
        condition = " AND ".join(one.sql for one in conditions)
        return self._keep(f"SELECT * FROM {self.query} WHERE {condition}")

    def distinct(self) -> Relation:
        return Relation.of(self.backend, f"(SELECT DISTINCT {_name(self.cells)} FROM {self.query})",
                           self.kinds)  # fmt: skip

    def order_by(self, order: object) -> Relation:
        """Order the rows; a `limit` must follow at once."""
        return self._keep(f"SELECT * FROM {self.query} ORDER BY {_list(self.choose(order))}")

    def limit(self, number: int, offset: int = 0) -> Relation:
        ordered = self.query.removeprefix("(").removesuffix(")")
        return self._keep(f"{ordered} LIMIT {number} OFFSET {offset}")

    # Columns.

    def select(self, *chosen: Any, **named: Any) -> Relation:
        columns = {one.get_name(): one for one in self.choose(chosen)}
        columns |= {name: column_of(one) for name, one in named.items()}
        return self._make(f"SELECT {_name(columns)} FROM {self.query}", columns)

    def rename(self, columns: Mapping[str, RelationColumn]) -> Relation:
        """Return the same rows with other columns, which get these names in no statement.

        To the engine names are equal that differ in case; files may have both.
        """
        self._check(columns.values())
        cells = {name: replace(one, scope=self.scope, name=name) for name, one in columns.items()}
        return Relation(self.backend, self.query, cells, self.scope)

    def mutate(self, **named: Any) -> Relation:
        return self.select(**(dict(self.cells) | named))

    def drop(self, *names: str) -> Relation:
        return self.select(*(name for name in self.columns if name not in names))

    # Groups.

    def count(self) -> RelationColumn:
        return RelationColumn("count(*)", INT64, self.scope)

    def aggregate(self, **named: RelationColumn) -> Relation:
        return self._make(f"SELECT {_name(named)} FROM {self.query}", named)

    def group_by(self, keys: object) -> GroupedRelation:
        return GroupedRelation(self, self.choose(keys))

    # Two tables.

    def join(self, other: Relation, keys: str | Sequence[str]) -> Relation:
        """Return the rows that agree in the keys, with the columns of both."""
        names = [keys] if isinstance(keys, str) else list(keys)
        columns = {name: f"l.{quote_name(name)}" for name in self.columns}
        columns |= {name: f"r.{quote_name(name)}" for name in other.columns if name not in names}
        return self._pair("JOIN", other, names, columns)

    def left_join(self, other: Relation, key: str) -> Relation:
        """Return all rows, with what the other has of the key; its own key is `KEY_right`."""
        columns = {name: f"l.{quote_name(name)}" for name in self.columns}
        columns |= {f"{name}_right" if name in columns else name: f"r.{quote_name(name)}"
                    for name in other.columns}  # fmt: skip
        return self._pair("LEFT JOIN", other, [key], columns)

    def union(self, other: Relation) -> Relation:
        rest = {name: other[name] for name in self.columns}
        query = f"({self.sql} UNION ALL SELECT {_name(rest)} FROM {other.query})"
        return Relation.of(self.backend, query, self.kinds)

    def _pair(
        self, kind: str, other: Relation, keys: Sequence[str], columns: Mapping[str, str]
    ) -> Relation:
        """Return a join of both as `l` and `r`; `columns` are written with these names."""
        agree = " AND ".join(f"l.{quote_name(key)} = r.{quote_name(key)}" for key in keys)
        listed = ", ".join(f"{sql} AS {quote_name(name)}" for name, sql in columns.items())
        query = f"SELECT {listed} FROM ({self.sql}) AS l {kind} ({other.sql}) AS r ON {agree}"
        own, others = self.kinds, other.kinds
        kinds = {
            name: own[name] if sql.startswith("l.") else others[name.removesuffix("_right")]
            if name not in others else others[name]
            for name, sql in columns.items()
        }  # fmt: skip
        return Relation.of(self.backend, f"({query})", kinds)

    # How they are made.

    def choose(self, given: object) -> list[RelationColumn]:
        """Return columns that are given by themselves or by name, one or several."""
        several = [given] if isinstance(given, str | RelationColumn) else list(_iterable(given))
        return [self[one] if isinstance(one, str) else one for one in several]

    def _keep(self, query: str) -> Relation:
        return Relation(self.backend, f"({query})", self.cells, self.scope)

    def _make(self, query: str, columns: Mapping[str, RelationColumn]) -> Relation:
        self._check(columns.values())
        kinds = {name: one.kind for name, one in columns.items()}
        return Relation.of(self.backend, f"({query})", kinds)

    def _check(self, columns: Iterable[RelationColumn]) -> None:
        """Refuse columns of another relation: their names may mean something else here."""
        if any(one.scope not in (None, self.scope) for one in columns):
            raise ValueError("The column is of another relation.")


@dataclass(frozen=True, repr=False, eq=False)
class GroupedRelation:
    """The rows of a relation that agree in some columns."""

    relation: Relation
    keys: Sequence[RelationColumn]

    def agg(self, **named: RelationColumn) -> Relation:
        columns = {one.get_name(): one for one in self.keys} | named
        rows = self.relation
        query = f"SELECT {_name(columns)} FROM {rows.query} GROUP BY {_list(self.keys)}"
        return rows._make(query, columns)


def column_of(value: object) -> RelationColumn:
    """Return a value of ours as a column; a column as it is."""
    if isinstance(value, RelationColumn):
        return value
    kinds = {bool: BOOLEAN, int: INT64, float: FLOAT64}
    return RelationColumn(write(value), kinds.get(type(value), TEXT))


def literal(value: Any, kind: object) -> RelationColumn:
    """Return a value as one of this type, as Ibis writes it."""
    target = kind_of(kind)
    if value is None or isinstance(value, Decimal):
        return RelationColumn(f"CAST({write(value)} AS {target.sql})", target)
    if isinstance(value, float):
        return RelationColumn(f"CAST('{value!r}' AS {target.sql})", target)
    if isinstance(value, datetime.datetime):
        return RelationColumn(_write_moment(value), target)
    return RelationColumn(write(value), target)


def write(value: object) -> str:
    """Write a value of Python in SQL.

    Examples:
        >>> write("it's"), write(True), write(None), write(0.5)
        ("'it''s'", 'TRUE', 'NULL', "CAST('0.5' AS DOUBLE)")
    """
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).upper()
    if isinstance(value, str):
        return _write_text(value)
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"  # a numeral may be a decimal
    if isinstance(value, datetime.date):
        return f"make_date({value.year}, {value.month}, {value.day})"
    if isinstance(value, int | Decimal):
        return format(value, "d" if isinstance(value, int) else "f")
    raise TypeError(f"{type(value).__name__} is not written in SQL")


def number_rows(
    function: str, within: Sequence[RelationColumn], order: Sequence[RelationColumn]
) -> RelationColumn:
    """Return the place of each row in an order, from 0, as a window function counts it."""
    groups = f"PARTITION BY {_list(within)} " if within else ""
    window = f"{function}() OVER ({groups}ORDER BY {_list(order)})"
    return RelationColumn(f"({window} - 1)", INT64, _scope(*within, *order))


def call(name: str, returns: object, *arguments: Any) -> RelationColumn:
    """Call a function of the engine."""
    given = [column_of(one) for one in arguments]
    return RelationColumn(f"{name}({_list(given)})", kind_of(returns), _scope(*given))


def cast_always(column: RelationColumn, kind: DataType) -> RelationColumn:
    """Return a cast that is written even where the column is stated to have that type."""
    return RelationColumn(f"CAST({column.sql} AS {kind.sql})", kind, column.scope)


def quote_name(name: str) -> str:
    """Return the name of a column as standard SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _write_text(value: str) -> str:
    """Write text; a zero, which would end the statement, by its number."""
    parts = ["'" + part.replace("'", "''") + "'" for part in value.split("\0")]
    return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"


def _write_moment(value: datetime.datetime) -> str:
    second = repr(value.second + value.microsecond / 1e6)
    parts = f"{value.year}, {value.month}, {value.day}, {value.hour}, {value.minute}, {second}"
    zone = "" if value.tzinfo is None else f", {write(str(value.tzinfo))}"
    return f"make_timestamp{'tz' if zone else ''}({parts}{zone})"


def _name(columns: Mapping[str, RelationColumn]) -> str:
    return ", ".join(f"{one.sql} AS {quote_name(name)}" for name, one in columns.items())


def _list(columns: Sequence[RelationColumn]) -> str:
    return ", ".join(one.sql for one in columns)


def _scope(*columns: RelationColumn) -> Scope | None:
    scopes = {one.scope for one in columns} - {None}
    if len(scopes) > 1:
        raise ValueError("The columns are of two relations.")
    return scopes.pop() if scopes else None


def _iterable(given: Any) -> Iterable[Any]:
    return given if not isinstance(given, Mapping) else given.values()
