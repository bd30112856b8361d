"""Examples that stay in an engine: DuckDB, PostgreSQL or Spark counts what a round asks for.

The engine makes the cells of every row once, and keeps them, several small columns packed into one
number. A round is then one query: the model is joined to the rows as small tables, and the sums of
residuals and curvatures of all features come back from one GROUP BY with grouping sets.

DuckDB also keeps the score and the residual of every row, and updates them after a round. Its
GROUP BY of one small column of a table is several times as fast as a grouping set, and its joins
with a small table of 32-bit numbers several times as fast as with one of 64 bits.

Errors name the question that failed, and never pass on what the engine says.

Proof:      docs/proofs/additive.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, EngineError, ParameterError, UnsupportedError
from privmax.learning.additive.fitting import Sums
from privmax.learning.additive.link import LOGISTIC, Link
from privmax.learning.additive.model import Part
from privmax.sources.asking import ask
from privmax.sources.engines import all_engines, embedded_engine, engine_of
from privmax.sources.engines.base import Engine

PACKED = 1024
"""Cells of several features are packed into one number up to here."""

SMALL = 1 << 15
"""Numbers below this fit into 16 bits."""

SETS = 64
"""Grouping sets of one query."""

QUESTION = "the sums of a round"

TARGET, KEY, SCORE, GROUP = "privmax_target", "privmax_key", "privmax_score", "privmax_group"
RESIDUAL, CURVE, PLACE = "privmax_residual", "privmax_curve", "privmax_place"
SPOT = "privmax_spot"

UNDECLARED, GONE = -1, -2
"""In the place of a target: of a label that was not declared; of a row that is left out."""

ReadTarget = Callable[[Engine, Any], Any]
"""Writes the target of a row as an expression, from the engine and the column."""


def open_rows(
    table: Any, schema: Any, column: str, target: ReadTarget, stack: ExitStack
) -> EngineRows:
    """Return the rows of an Ibis table, made ready by their engine.

    Args:
        table: Where they are.
        schema: Its columns, and the cells of each.
        column: The column of targets.
        target: What rows have there.
        stack: Closes what is kept for the fit.

    Raises:
        UnsupportedError: The engine has no grouping sets.
    """
    import ibis

    engine = engine_of(table)
    if not engine.has_grouping_sets:
        served = ", ".join(one.title for one in all_engines() if one.has_grouping_sets)
        raise UnsupportedError(
            f"Additive models are not counted in {engine.backend.name}, only in {served}. Copy the "
            f"table to {embedded_engine().title}, or give X as a frame."
        )
    engine.begin(table, stack)
    cells = schema.expressions(table)
    bundles = pack([column.cells for column in schema.columns])
    keys = {f"{KEY}{number}": bundle.key(cells) for number, bundle in enumerate(bundles)}
    keys[TARGET] = target(engine, table[column]).cast("int16")
    if engine.updates_tables:
        keys |= {SPOT: ibis.literal(0, "int32"), RESIDUAL: ibis.literal(0, "int16")}
    columns = table.select(**keys)
    columns = columns.filter(columns[TARGET] != GONE)
    if not engine.updates_tables:
        return EngineRows(engine, engine.keep(columns, stack), bundles, stack)
    kept = engine.keep(columns, stack)
    if kept is columns:  # an expression, which cannot be updated
        return EngineRows(engine, kept, bundles, stack)
    engine.end_reading()
    return RunningRows(engine, kept, bundles, stack)


@dataclass(frozen=True)
class Bundle:
    """Features whose cells are packed into one number, the last feature counting in ones.

    features   their numbers
    cells      how many cells each has
    """

    features: tuple[int, ...]
    cells: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of values."""
        return prod(self.cells)

    def key(self, cells: Sequence[Any]) -> Any:
        """Return the number, from an expression for the cell of every feature."""
        packed = None
        for feature, size in zip(self.features, self.cells, strict=True):
            cell = cells[feature].cast("int32")
            packed = cell if packed is None else packed * size + cell
        assert packed is not None, "a bundle has features"
        return packed.cast("int16" if self.size <= SMALL else "int32")

    def cells_of(self, feature: int) -> NDArray[np.intp]:
        """Return the cell of a feature, for every number."""
        place = self.features.index(feature)
        after = prod(self.cells[place + 1 :])
        return np.arange(self.size) // after % self.cells[place]


def pack(cells: Sequence[int]) -> list[Bundle]:
    """Features put together, in order, as long as their cells fit into one number.

    Examples:
        >>> [bundle.features for bundle in pack([32, 32, 2, 700])]
        [(0, 1), (2,), (3,)]
    """
    groups: list[list[int]] = []
    for feature in range(len(cells)):
        if groups and prod(cells[one] for one in (*groups[-1], feature)) <= PACKED:
            groups[-1].append(feature)
        else:
            groups.append([feature])
    return [Bundle(tuple(group), tuple(cells[one] for one in group)) for group in groups]


class EngineRows:
    """Rows in an engine. They are private, and so is all that it counts.

    Args:
        engine: What counts.
        kept: A table with a packed key for each bundle, and the target.
        bundles: What the keys hold.
        stack: Closes tables that a round makes.
    """

    def __init__(self, engine: Engine, kept: Any, bundles: list[Bundle], stack: ExitStack) -> None:
        self._engine, self._kept, self._bundles, self._stack = engine, kept, bundles, stack
        self._intercept = 0
        self._tables: dict[Part, Sums] = {}
        self._counted: dict[Part, tuple[Sums, Sums]] = {}
        self._bundle_of = {one: bundle for bundle in bundles for one in bundle.features}
        self._link = LOGISTIC
        self._looked_up = self._link_table()
        self._labels: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return "EngineRows(<private>)"

    def labels(self) -> tuple[int, int]:
        if self._labels is None:
            tally = self._kept.group_by(TARGET).agg(number=self._kept.count())
            rows = ask(QUESTION, self._engine.rows, tally)
            numbers = {int(label): int(number) for label, number in rows}
            if not numbers:
                raise DataError("Found array with 0 sample(s): X has no rows.")
            if UNDECLARED in numbers:
                raise DataError("A label in y is not among the declared labels.")
            self._labels = numbers.get(0, 0), numbers.get(1, 0)
        return self._labels

    def tally(self) -> Sums:
        rows = self._score_rows([])
        places = rows.select(**{PLACE: self._place(rows)})
        counts = places.group_by(PLACE).agg(number=places.count())
        totals = np.zeros(len(self._link.residuals), np.int64)
        for place, number in ask(QUESTION, self._engine.rows, counts):
            totals[int(place)] = int(number)
        return totals

    def use(self, link: Link) -> None:
        self._link = link
        self._looked_up = self._link_table()
        self._counted.clear()

    def start(self, intercept: int) -> None:
        self._intercept = intercept
        self._tables.clear()
        self._counted.clear()

    def residuals(self, parts: Sequence[Part]) -> list[Sums]:
        self._count(parts)
        return [self._counted[part][0] for part in parts]

    def sums(self, part: Part) -> tuple[Sums, Sums]:
        if part not in self._counted:
            self._count([part])
        return self._counted[part]

    def add(self, part: Part, steps: Sums) -> None:
        self._tables[part] = self._tables.get(part, np.zeros(part.size, np.int64)) + steps
        self._counted.clear()

    def _count(self, parts: Sequence[Part]) -> None:
        """Ask for the sums of all cells of all these parts, and keep them until a table changes."""
        singles = [part for part in parts if len(part.features) == 1]
        if singles:
            wanted = sorted({self._number(part.features[0]) for part in singles})
            sums = self._ask({(f"{KEY}{one}",): (self._bundles[one].size,) for one in wanted}, [])
            by_bundle = dict(zip(wanted, sums, strict=True))
            for part in singles:
                both = by_bundle[self._number(part.features[0])]
                residuals, curves = (self._merge(one, part) for one in both)
                self._counted[part] = residuals, curves
        doubles = [part for part in parts if len(part.features) == 2]
        for start in range(0, len(doubles), SETS):
            some = doubles[start : start + SETS]
            sets = {tuple(f"{GROUP}{one}" for one in part.features): part.shape for part in some}
            for part, both in zip(some, self._ask(sets, some), strict=True):
                self._counted[part] = both

    def _ask(
        self, sets: Mapping[tuple[str, ...], tuple[int, ...]], doubles: Sequence[Part]
    ) -> list[tuple[Sums, Sums]]:
        """Return the sums of residuals and curvatures by each set of columns, in one query.

        Every cell of every set has a place of its own: the places of a set follow those of the set
        before. A column is null in the rows of sets that it is not part of.
        """
        rows, ends, terms = self._add_link(self._score_rows(doubles)), [0], []
        for names, shape in sets.items():
            place = names[0]
            for name, size in zip(names[1:], shape[1:], strict=True):
                place = f"({place} * {size} + {name})"
            terms.append(f"{place} + {ends[-1]}")
            ends.append(ends[-1] + prod(shape))
        grouping = ", ".join(f"({', '.join(names)})" for names in sets)
        query = (
            f"SELECT COALESCE({', '.join([*terms, '-1'])}) AS {PLACE}, "
            f"SUM({RESIDUAL}) AS {RESIDUAL}, SUM({CURVE}) AS {CURVE} "
            f"FROM {{}} GROUP BY GROUPING SETS ({grouping})"
        )
        answers = ask(QUESTION, self._engine.rows, _wrap(rows, query))
        totals = np.zeros((2, ends[-1]), np.int64)
        for place, residual, curve in answers:
            if not 0 <= int(place) < ends[-1]:
                raise EngineError("The engine counted a cell that the schema does not have.")
            totals[:, int(place)] = int(residual), int(curve)
        return [(totals[0, start:end], totals[1, start:end]) for start, end in pairwise(ends)]

    def _score_rows(self, doubles: Sequence[Part]) -> Any:
        """Return the rows with their keys, target and score; and with groups, for pairs."""
        import ibis

        grouped = dict(
            pair
            for part in (*doubles, *(one for one in self._tables if len(one.features) == 2))
            for pair in zip(part.features, part.groups, strict=True)
        )
        rows, scores = self._kept, [ibis.literal(self._intercept, "int64")]
        for number, bundle in enumerate(self._bundles):
            columns = self._columns(bundle, grouped)
            if len(columns) == 1:
                continue
            small = self._table({f"{name}_{number}": values for name, values in columns.items()})
            rows = rows.join(small, rows[f"{KEY}{number}"] == small[f"{KEY}_{number}"])
            if SCORE in columns:
                scores.append(rows[f"{SCORE}_{number}"])
        named = {
            f"{GROUP}{feature}": rows[f"{GROUP}{feature}_{self._number(feature)}"]
            for feature in grouped
        }
        keys = [f"{KEY}{number}" for number in range(len(self._bundles))]
        rows = rows.select(*keys, TARGET, **named, **{SCORE: sum(scores[1:], start=scores[0])})
        for number, (part, table) in enumerate(self._tables.items()):
            if len(part.features) == 2:
                rows = self._add_pair(rows, number, part, table)
        return rows

    def _place(self, rows: Any) -> Any:
        """Return the place of scored rows in the tables of the link."""
        return self._link.places(rows[SCORE], rows[TARGET]).cast("int64")

    def _add_link(self, rows: Any) -> Any:
        """Return scored rows with their residual and curvature in the place of score and target."""
        names = [name for name in rows.columns if name not in (SCORE, TARGET)]
        rows = rows.mutate(**{f"{SCORE}_key": self._place(rows)})
        link = self._looked_up
        rows = rows.join(link, rows[f"{SCORE}_key"] == link[f"{KEY}_link"])
        return rows.select(*names, RESIDUAL, CURVE)

    def _columns(
        self, bundle: Bundle, grouped: Mapping[int, tuple[int, ...]]
    ) -> dict[str, NDArray[np.int64]]:
        """Return the score that the model gives every key of a bundle, and the group of each."""
        columns: dict[str, NDArray[np.int64]] = {KEY: np.arange(bundle.size)}
        for part, table in self._tables.items():
            if len(part.features) == 1 and part.features[0] in bundle.features:
                places = np.asarray(part.groups[0])[bundle.cells_of(part.features[0])]
                columns[SCORE] = columns.get(SCORE, np.zeros(bundle.size, np.int64)) + table[places]
        for feature in bundle.features:
            if feature in grouped:
                groups = np.asarray(grouped[feature], np.int64)[bundle.cells_of(feature)]
                columns[f"{GROUP}{feature}"] = groups
        return columns

    def _add_pair(self, rows: Any, number: int, part: Part, table: Sums) -> Any:
        """Return the rows with the entry of a pair added to their score."""
        first, second = (rows[f"{GROUP}{feature}"] for feature in part.features)
        place, added = f"{PLACE}_{number}", f"{SCORE}_pair{number}"
        columns = rows.columns
        rows = rows.mutate(**{place: (first * part.shape[1] + second).cast("int64")})
        small = self._table({f"{place}_key": np.arange(part.size), added: table})
        rows = rows.join(small, rows[place] == small[f"{place}_key"])
        return rows.mutate(**{SCORE: rows[SCORE] + rows[added]}).select(*columns)

    def _link_table(self) -> Any:
        """Residual and curvature by place."""
        return self._table(
            {
                f"{KEY}_link": np.arange(len(self._link.residuals)),
                RESIDUAL: self._link.residuals,
                CURVE: self._link.curvatures,
            }
        )

    def _table(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        """Return a small table of whole numbers in the engine."""
        import ibis

        types = ibis.schema(dict.fromkeys(columns, "int64"))
        lists = {name: values.tolist() for name, values in columns.items()}
        return ask(QUESTION, self._engine.table_of, lists, types, self._stack)

    def _merge(self, sums: Sums, part: Part) -> Sums:
        """Sums by the cells of one feature, from those by the keys of its bundle."""
        merged = np.zeros(part.size, np.int64)
        np.add.at(merged, self._places(part), sums)
        return merged

    def _places(self, part: Part) -> NDArray[np.intp]:
        """Return the entry of the table of one feature, for every key of its bundle."""
        places: NDArray[np.intp] = np.asarray(part.groups[0], np.intp)
        return places[self._bundle_of[part.features[0]].cells_of(part.features[0])]

    def _number(self, feature: int) -> int:
        """Return the number of the bundle that a feature is in."""
        return self._bundles.index(self._bundle_of[feature])


class RunningRows(EngineRows):
    """Rows in DuckDB, each with its score and residual, which are updated when a table changes.

    Pairs are counted as in other engines, from the tables, and so is all that follows one.

    Args:
        engine: DuckDB.
        kept: A table of our own, which has the two columns.
        bundles: What the keys hold.
        stack: Closes tables that a round makes.
    """

    def start(self, intercept: int) -> None:
        super().start(intercept)
        place = self._link.factor * intercept + self._link.offset
        self._execute(f"UPDATE {self._name} SET {SPOT} = {place} + {TARGET}")
        self._look_up()

    def use(self, link: Link) -> None:
        super().use(link)
        self._look_up()

    def tally(self) -> Sums:
        if not self._is_running([]):
            return super().tally()
        query = f"SELECT {self._clipped}::BIGINT, COUNT(*) FROM {self._name} GROUP BY 1"
        counts: Sums = self._fetch(query, len(self._link.residuals))[0]
        return counts

    def residuals(self, parts: Sequence[Part]) -> list[Sums]:
        if not self._is_running(parts):
            return super().residuals(parts)
        wanted = sorted({self._number(part.features[0]) for part in parts})
        ends = list(accumulate((self._bundles[one].size for one in wanted), initial=0))
        sums = self._fetch(
            " UNION ALL ".join(
                f"SELECT {KEY}{one}::BIGINT + {start}, SUM({RESIDUAL})::BIGINT FROM {self._name} "
                f"GROUP BY {KEY}{one}"
                for one, start in zip(wanted, ends[:-1], strict=True)
            ),
            ends[-1],
        )
        by_bundle = dict(zip(wanted, np.split(sums[0], ends[1:-1]), strict=True))
        return [self._merge(by_bundle[self._number(part.features[0])], part) for part in parts]

    def sums(self, part: Part) -> tuple[Sums, Sums]:
        if not self._is_running([part]):
            return super().sums(part)
        number = self._number(part.features[0])
        sums = self._fetch(
            f"SELECT {KEY}{number}::BIGINT, SUM(kept.{RESIDUAL})::BIGINT, SUM({CURVE})::BIGINT "
            f"FROM {self._name} AS kept JOIN {_quote(self._looked_up)} "
            f"ON {KEY}_link = {self._clipped} "
            f"GROUP BY {KEY}{number}",
            self._bundles[number].size,
        )
        return self._merge(sums[0], part), self._merge(sums[1], part)

    def add(self, part: Part, steps: Sums) -> None:
        super().add(part, steps)
        if self._is_running([part]):
            changes = self._link.factor * steps[self._places(part)]
            small = self._table({f"{KEY}_step": np.arange(len(changes)), f"{SPOT}_step": changes})
            self._execute(
                f"UPDATE {self._name} SET {SPOT} = {SPOT} + {SPOT}_step FROM {_quote(small)} "
                f"WHERE {KEY}{self._number(part.features[0])} = {KEY}_step"
            )
            self._look_up()

    def _table(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        """Return the table of a model, stored by the engine.

        DuckDB knows how many rows such a table has, and builds its hash tables on that side of a
        join. In 32 bits: no score of a model is near 2^30.
        """
        return self._engine.keep(
            super()._table(columns).cast(dict.fromkeys(columns, "int32")), self._stack
        )

    def _is_running(self, parts: Sequence[Part]) -> bool:
        """Return whether the score of every row is kept, and none of these is a pair."""
        return all(len(part.features) == 1 for part in (*self._tables, *parts))

    @property
    def _clipped(self) -> str:
        """The place of a row in the tables of the link: its spot, with its score clipped."""
        return f"GREATEST(LEAST({SPOT}, {2 * self._link.offset} + {TARGET}), {TARGET})"

    @property
    def _name(self) -> str:
        return _quote(self._kept)

    def _look_up(self) -> None:
        """Give every row the residual that goes with its score."""
        self._execute(
            f"UPDATE {self._name} AS kept SET {RESIDUAL} = link.{RESIDUAL} "
            f"FROM {_quote(self._looked_up)} AS link WHERE {KEY}_link = {self._clipped}"
        )

    def _fetch(self, query: str, size: int) -> NDArray[np.int64]:
        """Return what a query answers: a row of sums for each column behind the first, by place."""
        answers = ask(QUESTION, lambda: self._execute(query).fetchnumpy())
        places, *columns = (np.asarray(one, np.int64) for one in answers.values())
        if len(places) and not 0 <= places.min() <= places.max() < size:
            raise EngineError("The engine counted a cell that the schema does not have.")
        totals = np.zeros((len(columns), size), np.int64)
        for total, column in zip(totals, columns, strict=True):
            total[places] = column
        return totals

    def _execute(self, query: str) -> Any:
        """Ask DuckDB itself: Ibis has no UPDATE."""
        return ask(QUESTION, self._engine.backend.con.execute, query)


def _quote(table: Any) -> str:
    """Return the name of a table of our own; it holds no quotation mark."""
    return f'"{table.op().name}"'


def _wrap(rows: Any, query: str) -> Any:
    """Return a query of our own about an Ibis expression, as an expression.

    Ibis has no grouping sets.
    """
    import ibis
    from ibis.expr import operations

    name = "privmax_rows"
    types = ibis.schema(dict.fromkeys((PLACE, RESIDUAL, CURVE), "int64"))
    named = rows.alias(name)
    return operations.SQLStringView(
        parent=named.op(), query=query.format(name), schema=types
    ).to_expr()


def label_targets(labels: NDArray[Any]) -> ReadTarget:
    """Return what writes labels as targets: 0, 1, or `UNDECLARED` for another one."""

    def read(engine: Engine, column: Any) -> Any:
        first, second = (_is_label(engine, column, one) for one in labels.tolist())
        other = first.fill_null(False).ifelse(0, UNDECLARED)
        return second.fill_null(False).ifelse(1, other)

    return read


def _is_label(engine: Engine, column: Any, label: Any) -> Any:
    """Return whether rows have a label, compared as the engine compares everything.

    Text by its bytes.
    """
    value = label if isinstance(label, str | bool) else Decimal(str(label))
    operands = engine.operands(column, value)
    if operands is None:
        raise ParameterError(
            "labels", label, f"the column of labels is of type {column.type()}",
            "Give two labels of that type.",
        )  # fmt: skip
    left, right = operands
    return left == right
