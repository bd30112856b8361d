"""Scores counted by an engine, where the data is: DuckDB on files, PostgreSQL, Spark, any Ibis table.

The engine counts once, and the counts stay there. Per selection it is then asked three questions: the highest score,
how many candidates stand at each score of the window, and who is the i-th of one score under a fixed order. Nothing
else leaves it, so this process needs the same memory for ten candidates and for ten million.

Errors name the question that failed. They never pass on what the engine says, which may quote the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from privmax.errors import DataError, EngineError, ParameterError, UnsupportedError
from privmax.mechanisms.base import Outcome
from privmax.privacy import Number, exact, whole
from privmax.profile import Level, Profile

OPEN = "open"
T = TypeVar("T")

SCORE, ROWS = "privmax_score", "privmax_rows"
"""Columns of the counts, beside those of the items."""


class TableSource:
    """The items of an Ibis table with a score each.

    item      column of the items, or several columns that name one together; rows without an item do not count
    user      column of the individuals: the score of an item is how many different ones it has
    score     instead: column of ready scores, one row an item
    weight    with `user`: column of whole numbers; an individual adds their sum for the item, clipped to 0 … bound
    bound     public; required with `weight`, and then by so much one individual can move a score
    universe  "open" or the number of all candidates

    With neither `user` nor `score` every row is one individual.
    """

    integral = True
    step = Fraction(1)

    def __init__(
        self,
        table: Any,
        *,
        item: str | Sequence[str] | None,
        user: str | None = None,
        score: str | None = None,
        weight: str | None = None,
        bound: int | None = None,
        universe: object = OPEN,
        sensitivity: Number | None = None,
    ) -> None:
        self.universe = _size(universe)
        self._items = _columns(table, item)
        steps = _sensitivity(sensitivity, bound if weight is not None else None, score)
        counts = _counts(table, self._items, user, score, weight, bound)
        self._counts, self._release = _kept(counts)
        self._keys = [_key(self._counts, name) for name in self._items]
        self._levels: dict[int, int] = {}
        self._facts: dict[str, Any] | None = None
        try:
            if self.universe is not None and not self.listed():
                raise DataError(
                    "There are no scores, so nothing in this closed universe has a label. Declare the universe as "
                    '"open".'
                )
            self.profile = Profile(self, universe=self.universe, sensitivity=steps)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return "TableSource(<private>)"

    def close(self) -> None:
        """Let the engine forget the counts."""
        release, self._release = self._release, _nothing
        release()

    def listed(self) -> int:
        return int(self._summary()["listed"])

    def maximum(self) -> int | None:
        best = self._summary()["best"]
        return None if best is None else int(best)

    def histogram(self, above: int) -> Sequence[Level]:
        counts = self._counts
        window = counts.filter(counts[SCORE] > above).group_by(SCORE).agg(**{ROWS: lambda t: t.count()})
        rows = _asked("the histogram", lambda: window.to_pyarrow().to_pylist())
        levels = sorted(((int(row[SCORE]), int(row[ROWS])) for row in rows), reverse=True)
        self._levels |= dict(levels)
        return levels

    def item(self, outcome: Outcome) -> Any:
        """The item an outcome stands for; None for no answer and for a candidate that was never listed."""
        if outcome.score is None or outcome.index >= self._listed_at(outcome):
            return None
        counts = self._counts
        chosen = counts[SCORE] <= outcome.score if outcome.below else counts[SCORE] == outcome.score
        one = counts.filter(chosen).order_by(self._keys).select(*self._items).limit(1, offset=outcome.index)
        rows = _asked("the look-up", lambda: one.to_pyarrow().to_pylist())
        if not rows:
            raise EngineError(
                "The data changed while it was being read, and nothing was released. Select from a snapshot: a table "
                "nobody writes to, or one transaction that sees the same rows throughout."
            )
        values = tuple(rows[0][name] for name in self._items)
        return values[0] if len(values) == 1 else values

    def scores(self) -> list[tuple[Any, int]]:
        """Every item with its score, for laws on public data."""
        rows = _asked("the counts", lambda: self._counts.to_pyarrow().to_pylist())
        labels = [tuple(row[name] for name in self._items) for row in rows]
        return [
            (label if len(label) > 1 else label[0], int(row[SCORE])) for label, row in zip(labels, rows, strict=True)
        ]

    def _summary(self) -> dict[str, Any]:
        """The highest score, how many items there are, and whether they can be used at all: one question."""
        if self._facts is None:
            counts = self._counts
            one = counts.aggregate(
                best=counts[SCORE].max(),
                listed=counts.count(),
                unscored=counts[SCORE].isnull().sum(),
                worst=counts[ROWS].max(),
            )
            facts = _asked("the maximum", lambda: one.to_pyarrow().to_pylist()[0])
            if facts["unscored"]:
                raise DataError("A score is missing. Drop such items, or give them a score.")
            if facts["worst"]:
                raise DataError(_UNUSABLE)
            self._facts = facts
        return self._facts

    def _listed_at(self, outcome: Outcome) -> int:
        """How many listed candidates stand where the outcome does; unlisted ones are counted after them."""
        if not outcome.below:
            return self._levels.get(outcome.score or 0, 0)
        above = sum(count for score, count in self._levels.items() if score > (outcome.score or 0))
        return self.listed() - above


_UNUSABLE = (
    "A row has an item but no user, an item has several rows with scores, or a weight is missing. Drop rows without a "
    "user, add up or deduplicate the scores, give every row a weight."
)


def _counts(
    table: Any, items: Sequence[str], user: str | None, score: str | None, weight: str | None, bound: int | None
) -> Any:
    """An expression with the items, their scores, and under ROWS a number above 0 where something is wrong."""
    known = table.filter(*(table[name].notnull() for name in items))
    if score is not None:
        _refuse("score", user=user, weight=weight, bound=bound)
        column = _column(table, "score", score)
        _whole(column, "score")
        return known.group_by(list(items)).agg(
            **{SCORE: known[score].max().cast("int64"), ROWS: (known.count() - 1).cast("int64")}
        )
    if user is None:
        _refuse("rows as individuals", weight=weight, bound=bound)
        return known.group_by(list(items)).agg(
            **{SCORE: known.count().cast("int64"), ROWS: (known.count() - known.count()).cast("int64")}
        )
    _column(table, "user", user)
    if weight is None:
        _refuse("counting users", bound=bound)
        pairs = known.select(*items, user).distinct() if user not in items else known.select(*items).distinct()
        people = pairs[user].count()
        return pairs.group_by(list(items)).agg(
            **{SCORE: people.cast("int64"), ROWS: (pairs.count() - people).cast("int64")}
        )
    _whole(_column(table, "weight", weight), "weight")
    limit = whole("bound", bound)
    each = known.group_by([*items, user]).agg(
        **{SCORE: known[weight].sum().cast("int64"), ROWS: known[weight].isnull().sum().cast("int64")}
    )
    clipped = each[SCORE].fill_null(0).clip(0, limit)
    wrong = each[ROWS] + each[user].isnull().cast("int64")
    return each.group_by(list(items)).agg(**{SCORE: clipped.sum().cast("int64"), ROWS: wrong.sum().cast("int64")})


def _kept(counts: Any) -> tuple[Any, Callable[[], None]]:
    """The counts, made once and kept by the engine where it can, and how to let go of them."""
    try:
        cached = _asked("the counting", counts.cache)
    except UnsupportedError:
        return counts, _nothing
    return cached, cached.release


def _nothing() -> None:
    """There is nothing to let go of."""


def _key(counts: Any, name: str) -> Any:
    """A column to order by, the same way in every engine: text by its UTF-8 bytes, whatever the collation."""
    column = counts[name]
    if column.type().is_string() and counts.get_backend().name == "postgres":
        return _bytes_of(column)
    return column


def _bytes_of(column: Any) -> Any:
    import ibis

    @ibis.udf.scalar.builtin(name="convert_to")  # type: ignore[untyped-decorator]
    def convert_to(text: str, encoding: str) -> bytes:  # type: ignore[empty-body]
        ...

    return convert_to(column, "UTF8")


def _asked(question: str, answer: Callable[[], T]) -> T:
    """What the engine answers; its own message is not passed on, since it may quote the data."""
    try:
        return answer()
    except Exception as error:
        name = type(error).__name__
        if name in ("OperationNotDefinedError", "UnsupportedOperationError", "NotImplementedError"):
            raise UnsupportedError(f"This engine does not offer what {question} needs ({name}).") from None
        raise EngineError(
            f"The engine failed at {question} ({name}), and nothing was released. Its own log says more."
        ) from None


def _columns(table: Any, item: str | Sequence[str] | None) -> list[str]:
    """The columns that name an item."""
    names = [item] if isinstance(item, str) else list(item or [])
    if not names:
        raise ParameterError(
            "item", item, "a table needs it", f"Name one of its columns, or several: {list(table.columns)}."
        )
    for name in names:
        _column(table, "item", name)
    return names


def _column(table: Any, option: str, name: str) -> Any:
    if name not in table.columns:
        raise ParameterError(option, name, "the table has no such column", f"It has {list(table.columns)}.")
    if name in (SCORE, ROWS):
        raise ParameterError(option, name, "that name is taken", "Rename the column.")
    return table[name]


def _whole(column: Any, option: str) -> None:
    kind = column.type()
    if not (kind.is_integer() or (kind.is_decimal() and not kind.scale)):
        raise ParameterError(
            option, column.get_name(), f"the column must hold whole numbers, and it is {kind}",
            "Round it to whole numbers of a unit of your choice.",
        )  # fmt: skip


def _size(universe: object) -> int | None:
    if isinstance(universe, str) and universe == OPEN:
        return None
    if isinstance(universe, int) and not isinstance(universe, bool):
        return whole("universe", universe)
    raise ParameterError("universe", type(universe).__name__, 'for a table it must be "open" or a size')


def _sensitivity(sensitivity: Number | None, bound: int | None, score: str | None) -> int:
    """By how many units one individual can move a score: 1 for counts, the bound for weights."""
    if bound is not None:
        _refuse("bound", sensitivity=sensitivity)
        return whole("bound", bound)
    if sensitivity is None:
        return 1
    if score is None:
        raise ParameterError("sensitivity", sensitivity, "a count moves by 1", "Leave it out.")
    number = exact("sensitivity", sensitivity)
    return whole("sensitivity", int(number) if number.denominator == 1 else number)


def _refuse(beside: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise ParameterError(name, value, f"it makes no sense with {beside}", "Leave it out.")
