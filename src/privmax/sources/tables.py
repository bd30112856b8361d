"""Scores counted by an engine, where the data is: DuckDB on files, PostgreSQL, Spark, any Ibis
table.

The engine counts once, and the counts stay there. Per selection it is then asked three questions:
the highest score, how many candidates are at each score of the window, and who is the i-th of one
score under a fixed order. Nothing else leaves it, so this process needs the same memory for ten
candidates and for ten million.

Items are counted under their keys, which tell apart what an engine might call equal
(`engines/base.py`). Errors name the question that failed. They never pass on what the engine says,
which may quote the data.

Proof of what weights promise: docs/proofs/weights.md
Proof of what keys promise:    docs/proofs/keys.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from privmax.errors import (
    DataError,
    EngineError,
    ParameterError,
    refuse_given,
)
from privmax.labels import identify, is_missing, label_by_value
from privmax.mechanisms.contract import Outcome
from privmax.numbers import Number, whole
from privmax.profile import Level, Profile
from privmax.sources.arrow_rows import typed_array
from privmax.sources.asking import ask
from privmax.sources.base import PlainSource
from privmax.sources.engines import engine_of
from privmax.sources.engines.base import Engine
from privmax.sources.roles import Columns, item_names
from privmax.sources.row_counts import (
    NAMELESS,
    SCORE,
    STRANGE,
    WRONG,
    count_items,
    item_column,
)
from privmax.sources.scale import Scale
from privmax.sources.users import NO_USER
from privmax.universe import OPEN, Universe, repeat

LARGEST_BOUND = 1 << 31
"""With more per individual, the 64 bits of a score might not hold the sum over all of them."""


class TableSource(PlainSource):
    """The items of an Ibis table with a score each.

    Close it after use: the engine holds the counts, and a transaction. Of two on one connection the
    later is to be closed first.

    Args:
        columns: What its columns have.
        universe: "open", or the collection of all labels (of tuples, where several columns name an
            item). With ready scores also their number, if all are listed; a count lists only what
            someone has, so it needs the labels.
        sensitivity: Of ready scores: by how much one individual can move one (default 1).
        numbered: The labels of columns that hold numbers in their place, by the name of the column.
        resources: What to let go of after use, beside the counts.
    """

    step = Fraction(1)

    def __init__(
        self,
        table: Any,
        columns: Columns,
        *,
        universe: object = OPEN,
        sensitivity: Number | None = None,
        numbered: Mapping[str, list[Any]] | None = None,
        resources: ExitStack | None = None,
    ) -> None:
        self._facts: dict[str, Any] | None = None
        self._columns = columns
        self._levels: dict[int, int] = {}
        self._depth: int | None = None
        with resources or ExitStack() as stack:
            names, score = item_names(table, columns), columns.score
            self._items = [item_column(place) for place in range(len(names))]
            self._engine = engine_of(table)
            self._naming = [
                Naming(self._engine, table[name].type(), (numbered or {}).get(name))
                for name in names
            ]
            most = None if columns.weight is None else columns.bound
            steps = _steps(sensitivity, most, score)
            self.universe, labels = _universe(Universe.of(universe), len(names), score)
            self._engine.begin(table, stack)
            counts = count_items(self._engine, table, names, columns)
            if labels is not None:
                keys = [
                    naming.keys(part)
                    for naming, part in zip(self._naming, zip(*labels, strict=True), strict=True)
                ]
                kinds = ", ".join(str(naming.kind) for naming in self._naming)
                counts = _add_labels(
                    self._engine, counts, dict(zip(self._items, keys, strict=True)), kinds, stack
                )
            self._counts = self._engine.keep(counts, stack)
            if self.universe is not None:
                _check_named(self.universe, self.listed(), labels)
            self.profile = Profile(self, universe=self.universe, sensitivity=steps)
            self._resources = stack.pop_all()

    def __repr__(self) -> str:
        return "TableSource(<private>)"

    def close(self) -> None:
        """Let the engine forget the counts."""
        self._resources.close()

    def listed(self) -> int:
        return int(self._summary()["listed"])

    def maximum(self) -> int | None:
        best = self._summary()["best"]
        return None if best is None else int(best)

    def histogram(self, above: int) -> Sequence[Level]:
        window = self._counts.filter(self._counts[SCORE] > above)
        tally = window.group_by(SCORE).agg(number=window.count())
        rows = ask("the histogram", self._engine.rows, tally)
        return self._see(rows, above)

    def highest(self, number: int) -> Sequence[Level]:
        counts = self._counts
        tally = counts.group_by(SCORE).agg(number=counts.count())
        ordered = tally.order_by(tally[SCORE].desc()).limit(number)
        rows = ask("the histogram", self._engine.rows, ordered)
        least = min((int(score) for score, _ in rows), default=0)
        return self._see(rows, least - 1)

    def _see(self, rows: Sequence[Sequence[Any]], above: int) -> Sequence[Level]:
        """Return the levels above a score, and keep them if none were seen that far down."""
        levels = sorted(((int(score), int(number)) for score, number in rows), reverse=True)
        self._check_change(levels, above)
        if self._depth is None or above < self._depth:
            self._levels, self._depth = dict(levels), above
        return levels

    def names(self, outcomes: Sequence[Outcome]) -> list[Any]:
        """The item each outcome stands for, with one question to the engine; None for no answer.

        Every drawn candidate is listed.
        """
        drawn = [outcome for outcome in outcomes if outcome.score is not None]
        rows = [self._row(drawn[0])] if len(drawn) == 1 else self._rows(drawn)
        labels = map(self._label, rows)
        return [None if outcome.score is None else next(labels) for outcome in outcomes]

    def _row(self, outcome: Outcome) -> Sequence[Any]:
        """Return the name of one outcome: the engine skips to it, and numbers none before it."""
        counts = self._counts
        level = counts.filter(
            counts[SCORE] <= outcome.score if outcome.below else counts[SCORE] == outcome.score
        )
        ordered = level.select(*self._items).order_by(self._items)
        row_at = self._engine.row_at
        rows = ask("the look-up", row_at, ordered, outcome.index, self._readable)
        if not rows:
            raise EngineError(CHANGED)
        return rows[0]

    def _rows(self, outcomes: Sequence[Outcome]) -> list[Sequence[Any]]:
        """Return the names of many outcomes.

        Their levels are laid end to end, the highest first, and each level in the order of the
        items: so every outcome has one place, which is numbered and picked out in one pass. The
        scores come back with the rows, and say whether the engine still reads the same data.
        """
        if not outcomes:
            return []
        counts = self._counts
        scores = sorted({outcome.score or 0 for outcome in outcomes}, reverse=True)
        floor = next((outcome.score for outcome in outcomes if outcome.below), None)
        chosen = counts[SCORE].isin(scores)
        level = counts[SCORE]
        if floor is not None:
            chosen, level = chosen | (counts[SCORE] <= floor), level.clip(lower=floor)
        starts, end = {}, 0
        for score, number in zip(scores, self._numbers(scores, floor), strict=True):
            starts[score] = end
            end += number
        places = [starts[outcome.score or 0] + outcome.index for outcome in outcomes]
        block = counts.filter(chosen).select(*self._items, **{SCORE: level})
        order = [block[SCORE].desc(), *(block[name] for name in self._items)]
        read = ask(
            "the look-up",
            lambda: self._engine.rows_at(
                block, order, places, lambda rows: {SCORE: rows[SCORE], **self._readable(rows)}
            ),
        )
        rows = [read.get(place) for place in places]
        for outcome, row in zip(outcomes, rows, strict=True):
            if row is None or int(row[0]) != outcome.score:
                raise EngineError(CHANGED)
        return [row[1:] for row in rows if row is not None]

    def _numbers(self, scores: Sequence[int], floor: int | None) -> list[int]:
        """Return the number of items at each of these scores; for the floor, at it or below."""
        above = scores[-1] if scores[-1] == floor else scores[-1] - 1
        if self._depth is None or above < self._depth:
            self.histogram(above)
        rest = self.listed() - sum(_above(list(self._levels.items()), scores[-1]).values())
        return [rest if score == floor else self._levels.get(score, 0) for score in scores]

    def counts(self, outcomes: Sequence[Outcome]) -> list[int]:
        """The score of each that is drawn; the engine is asked for those below the window only."""
        known: dict[tuple[int | None, int], int] = {}
        for floor in {outcome.score for outcome in outcomes if outcome.below}:
            places = [one.index for one in outcomes if one.below and one.score == floor]
            known |= {
                (floor, place): score for place, score in self._below(floor or 0, places).items()
            }
        if any(one.below and (one.score, one.index) not in known for one in outcomes):
            raise EngineError(CHANGED)
        return [known[one.score, one.index] if one.below else one.score or 0 for one in outcomes]

    def _below(self, floor: int, places: Sequence[int]) -> dict[int, int]:
        """The scores at those places among the items at a score or below it, in their order."""
        counts = self._counts
        block = counts.filter(counts[SCORE] <= floor).select(*self._items, SCORE)
        order = [block[name] for name in self._items]
        rows = ask(
            "the look-up",
            lambda: self._engine.rows_at(block, order, places, lambda row: {SCORE: row[SCORE]}),
        )
        return {place: int(score) for place, (score,) in rows.items()}

    def scores(self) -> list[tuple[Any, int]]:
        """Every item with its score, for laws on public data."""
        counts = self._counts
        every = counts.select(**self._readable(counts), **{SCORE: counts[SCORE]})
        rows = ask("the counts", self._engine.rows, every)
        return [(self._label(row[:-1]), int(row[-1])) for row in rows]

    def _readable(self, table: Any) -> dict[str, Any]:
        """Return the columns to fetch of a table to name its items."""
        named = zip(self._items, self._naming, strict=True)
        return {
            f"{name}_read": self._engine.readable(table[name], naming.kind)
            for name, naming in named
        }

    def _label(self, row: Sequence[Any]) -> Any:
        values = tuple(naming.label(value) for naming, value in zip(self._naming, row, strict=True))
        return values[0] if len(values) == 1 else values

    def _summary(self) -> dict[str, Any]:
        """The highest score, how many items there are, and whether they can be used at all: one
        question.
        """
        if self._facts is None:
            counts = self._counts
            one = counts.aggregate(
                best=counts[SCORE].max(),
                listed=counts.count(),
                missing=counts[SCORE].isnull().ifelse(1, 0).sum(),
                wrong=counts[WRONG].max(),
                **({"strange": counts[STRANGE].max()} if STRANGE in counts.columns else {}),
            )
            row = ask("the maximum", self._engine.rows, one)[0]
            facts = dict(zip(one.columns, row, strict=True))
            if facts["wrong"]:
                raise _unusable(self._columns, facts["wrong"])
            if facts["missing"]:
                raise DataError(
                    "A score is missing, or is not a whole number of 64 bits. Drop such items, or "
                    "give them another score."
                )
            if facts.get("strange"):
                raise DataError(
                    "A label with a score is not in the declared universe. Declare every "
                    "candidate, or drop it."
                )
            self._facts = facts
        return self._facts

    def _check_change(self, levels: Sequence[Level], above: int) -> None:
        """Refuse a histogram that does not fit what the engine said before: it reads other rows
        now.
        """
        best = self.maximum()
        expected = best if best is not None and best > above else None
        seen = max(above, self._depth) if self._depth is not None else None
        if (
            (levels[0][0] if levels else None) != expected
            or sum(count for _, count in levels) > self.listed()
            or (
                seen is not None
                and _above(levels, seen) != _above(list(self._levels.items()), seen)
            )
        ):
            raise EngineError(CHANGED)


def _unusable(columns: Columns, wrong: int) -> DataError:
    """Explain what is wrong with the rows, by the question and the number under WRONG."""
    if columns.score is not None:
        return DataError(
            "An item has several rows with scores. Sum or deduplicate them, or, if a row is one "
            "person's, count people: name their column as user."
        )
    if columns.weight is None or wrong >= NAMELESS:
        return DataError(f"A row has an item but no user. {NO_USER}")
    return DataError(
        "A weight is missing or not a whole number of 64 bits. Give every row with an item one."
    )


CHANGED = (
    "The data changed while it was read, and nothing was released. Select from a snapshot: a table "
    "that no one writes to, or one transaction that sees the same rows throughout."
)


@dataclass(eq=False, repr=False)
class Naming:
    """The naming of items by one column.

    Args:
        _engine: Has the column.
        kind: Its type.
        _numbered: The labels, by the numbers that the column has in their place; None: it holds the
            labels themselves.
    """

    _engine: Engine
    kind: Any
    _numbered: list[Any] | None

    def label(self, value: Any) -> Any:
        if self._numbered is not None:
            return self._numbered[int(value)]
        return self._engine.label(value, self.kind)

    def keys(self, labels: Sequence[Any]) -> list[Any]:
        """The keys of declared labels. One that is given no number yet gets the next."""
        if self._numbered is None:
            keys = None
            with suppress(TypeError):
                keys = [self._engine.key_of(label, self.kind) for label in labels]
            if keys is None:
                raise _misfit(str(self.kind))
            return keys
        place = {identify(label): number for number, label in enumerate(self._numbered)}
        for label in map(label_by_value, labels):
            if place.setdefault(identify(label), len(place)) == len(self._numbered):
                self._numbered.append(label)
        return [place[identify(label_by_value(label))] for label in labels]


def _above(levels: Sequence[Level], score: int) -> dict[int, int]:
    return {level: count for level, count in levels if level > score}


def _add_labels(
    engine: Engine, counts: Any, keys: Mapping[str, Sequence[Any]], kinds: str, stack: ExitStack
) -> Any:
    """The counts of all labels, 0 for those without data; under STRANGE 1 for an item that is not
    among the labels.

    Args:
        keys: Of the declared labels, by the column that they are in.
        kinds: The types of the columns of items, for an error to say.
    """
    # To Ibis a count has 64 bits and needs no cast; in polars it has 32, until a number of 64 is
    # added to it.
    zero = engine.literal(0, "int64")
    seen = counts.mutate(
        **{SCORE: counts[SCORE] + zero, WRONG: counts[WRONG] + zero, STRANGE: zero + 1}
    )
    both = seen.union(_as_table(engine, seen, keys, kinds, stack))
    missing = (
        both[SCORE].isnull().ifelse(1, 0).sum()
    )  # a sum leaves out what is missing, and must not hide it
    score = (missing == 0).ifelse(both[SCORE].sum().cast("int64"), engine.null("int64"))
    return both.group_by(list(keys)).agg(
        **{SCORE: score, WRONG: both[WRONG].sum(), STRANGE: both[STRANGE].min()}
    )


def _as_table(
    engine: Engine, like: Any, keys: Mapping[str, Sequence[Any]], kinds: str, stack: ExitStack
) -> Any:
    """The keys of declared labels as a table of the engine, its columns as those of `like`, all
    numbers 0.
    """
    import pyarrow

    number = len(next(iter(keys.values())))
    columns = {name: keys.get(name, [0] * number) for name in like.columns}
    table = None
    with suppress(pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        schema = like.schema()
        whole = [name for name in keys if engine.types_bind and schema[name].is_integer()]
        if not any(is_rounded(keys[name], schema[name]) for name in whole):
            table = engine.table_of(columns, schema, stack)
    if table is None:
        raise _misfit(kinds)
    return table


def is_rounded(keys: Sequence[Any], kind: Any) -> bool:
    """Whether a number or a date becomes another one in a column of this type, as 1.5 does among
    whole numbers. Text is read as it is written.
    """
    if not (kind.is_numeric() or kind.is_date()) or all(isinstance(key, str) for key in keys):
        return False
    values = typed_array(keys, kind.to_pyarrow()).to_pylist()
    return any(
        type(key) is datetime or key != value for key, value in zip(keys, values, strict=True)
    )


def _misfit(kinds: str) -> ParameterError:
    return ParameterError(
        "universe", "<labels>", f"a label does not fit the column of items, which is {kinds}",
        "Give labels of that type.",
    )  # fmt: skip


def _universe(
    universe: Universe, columns: int, score: str | None
) -> tuple[int | None, list[tuple[Any, ...]] | None]:
    """Return the number of candidates (None: open), and their labels where those were declared."""
    if universe.labels is not None:
        return universe.size, _parts(universe.plain_labels(), columns)
    if universe.size is not None and score is None:
        raise ParameterError(
            "universe", universe.size, "a counted table lists only items that occur, and a size "
            "does not name the others",
            "Give the labels of all candidates, or leave it open.",
        )  # fmt: skip
    return universe.size, None


def _parts(labels: Sequence[Any], columns: int) -> list[tuple[Any, ...]]:
    """The labels, with one part for each column that names an item."""
    if columns == 1:
        return [(label,) for label in labels]
    if not all(isinstance(label, tuple) and len(label) == columns for label in labels):
        raise ParameterError(
            "universe", "<labels>", f"{columns} columns name an item, so a label must have "
            f"{columns} parts",
            "Give them in the order of the columns.",
        )  # fmt: skip
    if any(is_missing(part) for label in labels for part in label):
        raise ParameterError(
            "universe",
            "<labels>",
            "a label is missing in it",
            "Drop it: one without a label cannot be released.",
        )
    return list(labels)


def _check_named(size: int, listed: int, labels: object) -> None:
    """Refuse a closed universe with unlisted candidates: a drawn one needs a name."""
    if labels is not None:
        if listed != size:
            # all that is listed is declared, so the engine took two labels for the same
            raise repeat()
    elif not listed:
        raise DataError(
            "There are no scores, so no candidate of this closed universe has a label. Declare the "
            "universe by its labels, or as open."
        )
    elif listed < size:
        raise ParameterError(
            "universe", size, "fewer candidates are listed, and a size does not name the others: "
            "drawing one of them would reveal which are listed",
            "Give the labels of all candidates, or list them all (with score 0), or leave it open.",
        )  # fmt: skip


def _steps(sensitivity: Number | None, bound: int | None, score: str | None) -> int:
    """By how many units one individual can move a score: 1 for counts, the bound for weights."""
    if bound is not None:
        refuse_given({"sensitivity": sensitivity}, "it has no meaning with weight")
        bound = whole("bound", bound)
        if bound > LARGEST_BOUND:
            raise ParameterError(
                "bound",
                bound,
                f"it must not exceed {LARGEST_BOUND}",
                "Give the weights in a larger unit.",
            )
        return bound
    if sensitivity is None:
        return 1
    if score is None:
        raise ParameterError("sensitivity", sensitivity, "a count moves by 1", "Leave it out.")
    scale = Scale.of(sensitivity, None)
    if not scale.whole:
        raise ParameterError(
            "sensitivity",
            sensitivity,
            "the scores of a table are whole numbers",
            "Round it up.",
        )
    return scale.steps
