"""Conditions on rows: the small language of `where`, parsed here, true or false of one row alone.

    condition  =  test  |  condition and condition  |  condition or condition  |  not condition
                  |  ( condition )
    test       =  column = value       (also != <> < <= > >=)
                  |  column [not] in ( value, value, … )
                  |  column [not] between value and value
                  |  column [not] starts with 'text'
                  |  column is [not] null
    column     =  name  |  "any name"
    value      =  'text'  |  number  |  true  |  false

**Why so little.** A row is kept or not by what is in it and by the condition, which is public.
So one individual more adds rows and changes no others, and what a release costs stays the same.
Whatever looks at other rows (subqueries, aggregates, windows), at chance or at the clock is not in
the language. Nothing in it fails for one value and succeeds for another either, as a division or a
cast would: an error would reveal what one person's row has.

**Missing values.** A test of a missing value is not true, and neither is its negation: as in SQL.
`not` is moved into the tests when a condition is read, which turns = into != and < into >=; what is
left are tests, `and` and `or`, each of them true or false. So no engine's own rules for missing
values matter.

**Order.** Text is compared by its UTF-8 bytes, numbers exactly, NaN is missing. What a column of a
table is compared with must be of its type; in a file of text a value is read as what it is compared
with, and what is no such number is missing.
"""

from __future__ import annotations

import datetime
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any, NoReturn

from privmax.errors import ConditionError, nearest

Value = str | Decimal | bool
Cells = Callable[[str], "str | None"]
"""The text of a row of a text file in a column; None: nothing."""

LONGEST = 10_000
"""Characters of a condition."""

DIGITS = 18
"""Digits of a number before the point, and behind it: whole ones fit into 64 bits, all of them into
a decimal of 38 digits.
"""

NUMBER = rf"[+-]?[0-9]{{1,{DIGITS}}}(\.[0-9]{{1,{DIGITS}}})?"
"""A number in a condition, and in a column of text that is compared with one."""

BLANKS = " \t\n\r\v\f"
"""The blanks allowed around such a number in a column of text."""

NULL, PRESENT = "is null", "is not null"
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_OPPOSITE = {
    "=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", NULL: PRESENT, PRESENT: NULL,
    "and": "or", "or": "and",
}  # fmt: skip

_WORDS = ("and", "or", "not", "in", "is", "null", "between", "starts", "with", "true", "false")

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
      | (?P<name>[^\W\d]\w*)
      | (?P<sign><=|>=|<>|!=|==|=|<|>|\(|\)|,)
      | (?P<other>\S)
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class ColumnTest:
    """A column against a value; or whether it holds one, with no value."""

    column: str
    sign: str
    value: Value | None = None

    def __str__(self) -> str:
        name = f'"{self.column.replace(chr(34), chr(34) * 2)}"'
        return f"{name} {self.sign}" + ("" if self.value is None else f" {_quote(self.value)}")


@dataclass(frozen=True)
class ConditionGroup:
    """Several conditions, joined by `and` or by `or`."""

    word: str
    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return f" {self.word} ".join(
            f"({part})" if isinstance(part, ConditionGroup) else str(part) for part in self.parts
        )


Node = ColumnTest | ConditionGroup


@dataclass(frozen=True)
class Condition:
    """A condition, as `of` reads it.

    Args:
        given: Its text, for errors to quote.
        root: What it says, without a `not`.

    Examples:
        >>> str(Condition.of("not (country = 'DE' or age < 18)"))
        '"country" != \\'DE\\' and "age" >= 18'
        >>> Condition.of("country in ('DE', 'FR')").keeps({"country": "FR"}.get)
        True
    """

    given: str
    root: Node

    @classmethod
    def of(cls, text: object) -> Condition:
        """Read a condition.

        Raises:
            ConditionError: It is none.
        """
        if not isinstance(text, str):
            raise ConditionError("where", text, "it must be text", _EXAMPLE)
        if len(text) > LONGEST:
            raise ConditionError(
                "where",
                text,
                f"it has more than {LONGEST} characters",
                "Mark the rows in a column of their own, and test that.",
            )
        return cls(text, _Parser(text).read())

    def __str__(self) -> str:
        """Return the same for all spellings of one condition: what a ledger writes down."""
        return str(self.root)

    def columns(self) -> list[str]:
        """Return the columns it looks at."""
        return list(dict.fromkeys(test.column for test in _tests(self.root)))

    def check(self, names: Sequence[str], *, shown: bool) -> None:
        """Refuse columns that are not there. `shown`: their names are public, and may be told."""
        for name in self.columns():
            if name not in names:
                raise self._no_column(name, names if shown else None)

    def check_text(self) -> None:
        """Refuse what a file of text cannot be asked."""
        for test in _tests(self.root):
            if isinstance(test.value, bool):
                raise self.misfit(test, "text", f"Write '{str(test.value).lower()}' in quotes.")

    def keeps(self, cells: Cells) -> bool:
        """Return whether a row of a text file is kept."""
        return _keeps(self.root, cells)

    def build(self, test: Callable[[ColumnTest], Any]) -> Any:
        """Return what `test` makes of each test, joined by & and |."""
        return _build(self.root, test)

    def filter(self, table: Any, engine: Any, *, is_text: bool = False, shown: bool = True) -> Any:
        """Return the rows of a table for which it is true.

        Args:
            engine: Of the table.
            is_text: Whether the table is a file of text, so that numbers are in it as text, unless
                a column was read as numbers already, as weights are.
            shown: Whether the names of its columns are public, and may be told.
        """
        self.check(table.columns, shown=shown)
        if is_text:
            self.check_text()

        def test(one: ColumnTest) -> Any:
            return self._test(one, table[one.column], engine, is_text)

        return table.filter(_build(self.root, test))

    def _test(self, test: ColumnTest, column: Any, engine: Any, is_text: bool) -> Any:
        """Return a test as an expression that is true or false, and nothing else."""
        if test.value is None:
            key = column if column.type().is_nested() else engine.present(column)
            return key.isnull() if test.sign == NULL else key.notnull()
        operands: tuple[Any, Any] | None = engine.operands(column, test.value)
        if is_text and isinstance(test.value, Decimal) and column.type().is_string():
            operands = _number_in_text(engine, column), test.value
        if operands is None:
            raise self.misfit(test, str(column.type()))
        left, right = operands
        if isinstance(right, Decimal):
            return _compare_number(engine, left, test.sign, right)
        if left.type().is_boolean() and test.sign not in ("=", "!="):
            raise self.misfit(test, "boolean", "Use = or !=.")
        return _definite(COMPARISONS[test.sign](left, right))

    def misfit(self, test: ColumnTest, kind: str, remedy: str = "") -> ConditionError:
        value = test.value
        if not remedy:
            remedy = (
                "Write text in single quotes, dates as '2026-11-15', moments as "
                "'2026-11-15 08:30:00', numbers and true and false without quotes."
            )
        what = "text" if isinstance(value, str) else "a number"
        what = "true or false" if isinstance(value, bool) else what
        return ConditionError(
            "where",
            self.given,
            f"the column {test.column!r} is {kind} and cannot be compared with {what} by "
            f"{test.sign}",
            remedy,
        )

    def _no_column(self, name: str, names: Sequence[str] | None) -> ConditionError:
        if names is None:
            remedy = "Column names must be on the first line of the file: head -n 1 FILE shows it."
        else:
            remedy = suggest(name, names)
        if name.lower() in _WORDS:
            remedy = f"Write a column of that name in double quotes. {remedy}"
        return ConditionError("where", self.given, f"there is no column {name!r}", remedy)


def suggest(name: str, names: Sequence[str]) -> str:
    """Return what there is instead of a name: the nearest, and all of them if they are few.

    Examples:
        >>> suggest("contry", ["country", "age"])
        "Did you mean 'country'? There are 'country', 'age'."
    """
    near = nearest(name, names)
    guess = "" if near is None else f"Did you mean {near!r}? "
    listed = ", ".join(map(repr, names[:_LISTED]))
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{guess}There are {listed}{more}." if names else "There are none."


_LISTED = 20
"""Names that a message lists."""

_EXAMPLE = "For example \"country = 'DE' and age >= 18\"."


class _Parser:
    """Reads a condition from left to right; `not` is known to whatever is below it."""

    def __init__(self, text: str) -> None:
        self._given = text
        self._tokens = [
            (str(match.lastgroup), match[str(match.lastgroup)], match.start(str(match.lastgroup)))
            for match in _TOKEN.finditer(text)
        ]
        self._place = 0
        self._depth = 0

    def read(self) -> Node:
        node = self._either(negated=False)
        if self._place < len(self._tokens):
            self._refuse("'and' or 'or'")
        return node

    def _either(self, *, negated: bool) -> Node:
        parts = [self._all(negated=negated)]
        while self._word("or"):
            parts.append(self._all(negated=negated))
        return _join("or", parts, negated=negated)

    def _all(self, *, negated: bool) -> Node:
        parts = [self._one(negated=negated)]
        while self._word("and"):
            parts.append(self._one(negated=negated))
        return _join("and", parts, negated=negated)

    def _one(self, *, negated: bool) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ConditionError(
                "where", self._given, f"it is nested more than {_DEEPEST} deep", "Simplify it."
            )
        try:
            if self._word("not"):
                return self._one(negated=not negated)
            if self._sign("("):
                inner = self._either(negated=negated)
                if not self._sign(")"):
                    self._refuse("')'")
                return inner
            return self._test(negated=negated)
        finally:
            self._depth -= 1

    def _test(self, *, negated: bool) -> Node:
        column = self._column()
        if self._word("is"):
            sign = PRESENT if self._word("not") else NULL
            if not self._word("null"):
                self._refuse("'null'")
            return _test(ColumnTest(column, sign), negated=negated)
        negated ^= self._word("not")
        if self._word("in"):
            return self._in(column, negated=negated)
        if self._word("between"):
            low = self._value()
            if not self._word("and"):
                self._refuse("'and'")
            bounds = [ColumnTest(column, ">=", low), ColumnTest(column, "<=", self._value())]
            return _all_of(bounds, negated=negated)
        if self._word("starts"):
            if not self._word("with"):
                self._refuse("'with'")
            return self._starts(column, negated=negated)
        kind, text, _ = self._peek()
        if kind == "sign" and text in _SIGNS:
            self._place += 1
            return _test(ColumnTest(column, _SIGNS[text], self._value()), negated=negated)
        if kind == "name" and text.lower() in ("like", "ilike"):
            self._refuse("'starts with' (there is no LIKE)")
        return self._refuse("= != < <= > >= in, between, 'starts with' or is")

    def _in(self, column: str, *, negated: bool) -> Node:
        if not self._sign("("):
            self._refuse("'('")
        tests: list[Node] = []
        while not tests or self._sign(","):
            tests.append(_test(ColumnTest(column, "=", self._value()), negated=negated))
        if not self._sign(")"):
            self._refuse("',' or ')'")
        return _join("or", tests, negated=negated)

    def _starts(self, column: str, *, negated: bool) -> Node:
        kind, _, _ = self._peek()
        start = self._value()
        if kind != "text" or not isinstance(start, str) or not start:
            self._place -= 1
            self._refuse("text in single quotes that is not empty")
        after = _after(str(start))
        tests = [ColumnTest(column, ">=", start)]
        return _all_of(tests + ([ColumnTest(column, "<", after)] if after else []), negated=negated)

    def _column(self) -> str:
        kind, text, _ = self._peek()
        if kind == "quoted":
            self._place += 1
            return text[1:-1].replace('""', '"')
        if kind != "name" or text.lower() in _WORDS:
            self._refuse("the name of a column")
        self._place += 1
        if self._peek()[1] == "(":
            self._refuse("a comparison (there are no functions)")
        return text

    def _value(self) -> Value:
        kind, text, _ = self._peek()
        if kind == "text":
            value: Value = text[1:-1].replace("''", "'")
            if any("\ud800" <= letter <= "\udfff" for letter in str(value)):
                self._refuse("text that is valid Unicode")
        elif kind == "number":
            if not re.fullmatch(NUMBER, text):
                self._refuse(f"a number of up to {DIGITS} digits before the point and behind it")
            value = Decimal(text)
        elif kind == "name" and text.lower() in ("true", "false"):
            value = text.lower() == "true"
        elif kind == "name" and text.lower() == "null":
            self._refuse("a value ('is null' tests for none)")
        elif kind in ("name", "quoted"):
            self._refuse("a value (text in single quotes)")
        else:
            self._refuse("a value")
        self._place += 1
        return value

    def _peek(self) -> tuple[str, str, int]:
        place = self._place
        return self._tokens[place] if place < len(self._tokens) else ("", "", len(self._given))

    def _word(self, word: str) -> bool:
        kind, text, _ = self._peek()
        matches = kind == "name" and text.lower() == word
        self._place += matches
        return matches

    def _sign(self, sign: str) -> bool:
        kind, text, _ = self._peek()
        matches = kind == "sign" and text == sign
        self._place += matches
        return matches

    def _refuse(self, expected: str) -> NoReturn:
        kind, text, at = self._peek()
        here = f"at character {at + 1}, {text!r}" if kind else "at its end"
        raise ConditionError("where", self._given, f"{here}, expected {expected}", _EXAMPLE)


_SIGNS = {**{sign: sign for sign in COMPARISONS}, "==": "=", "<>": "!="}
_DEEPEST = 50
"""The most levels of parentheses and `not`: parsers of engines have a limit, too."""


def _test(test: ColumnTest, *, negated: bool) -> ColumnTest:
    return ColumnTest(test.column, _OPPOSITE[test.sign], test.value) if negated else test


def _all_of(tests: Sequence[ColumnTest], *, negated: bool) -> Node:
    return _join("and", [_test(test, negated=negated) for test in tests], negated=negated)


def _join(word: str, parts: Sequence[Node], *, negated: bool) -> Node:
    """Join parts that are negated already by the word that fits."""
    if len(parts) == 1:
        return parts[0]
    joint = _OPPOSITE[word] if negated else word
    flat: list[Node] = []
    for part in parts:
        flat += part.parts if isinstance(part, ConditionGroup) and part.word == joint else [part]
    return ConditionGroup(joint, tuple(flat))


def _after(start: str) -> str:
    """Return the first text, in the order of code points, behind all that begin so; empty: none."""
    for place in range(len(start) - 1, -1, -1):
        code = ord(start[place]) + 1
        if code == 0xD800:  # halves of characters, which no text holds
            code = 0xE000
        if code <= 0x10FFFF:
            return start[:place] + chr(code)
    return ""


def _quote(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value.replace(chr(39), chr(39) * 2)}'"
    if value == int(value):
        return str(int(value))
    return format(value, "f").rstrip("0")  # all its digits: normalize() would round to some


def _tests(node: Node) -> Iterator[ColumnTest]:
    if isinstance(node, ColumnTest):
        yield node
    else:
        for part in node.parts:
            yield from _tests(part)


def _keeps(node: Node, cells: Cells) -> bool:
    if isinstance(node, ConditionGroup):
        every = all if node.word == "and" else any
        return every(_keeps(part, cells) for part in node.parts)
    cell = cells(node.column) or None
    if node.value is None:
        return (cell is None) == (node.sign == NULL)
    value: str | Decimal | None = cell
    if cell is not None and isinstance(node.value, Decimal):
        digits = cell.strip(BLANKS)
        value = Decimal(digits) if _PLAIN.fullmatch(digits) else None
    return value is not None and bool(COMPARISONS[node.sign](value, node.value))


_PLAIN = re.compile(NUMBER, re.ASCII)


def holds_of(test: ColumnTest, label: Any) -> bool:
    """Return whether a test is true of a label by value (`labels.py`).

    None means that it is missing, and so is a label of another kind than the value that it is
    compared with.

    Examples:
        >>> age = ColumnTest("age", ">=", Decimal(18))
        >>> holds_of(age, 18), holds_of(age, "18"), holds_of(age, None)
        (True, False, False)
    """
    if test.value is None:
        return (label is None) == (test.sign == NULL)
    with suppress(Exception):  # moments before the first year of Python, or after its last
        pair = _comparable(label, test.value)
        return pair is not None and bool(COMPARISONS[test.sign](*pair))
    return False


def _comparable(label: Any, value: Value) -> tuple[Any, Any] | None:
    """Return a label and a value as what can be compared exactly.

    None: they are of different kinds.
    """
    if isinstance(value, bool):
        return (bool(label), value) if type(label) is int and label in (0, 1) else None
    if isinstance(value, Decimal):
        if isinstance(label, float):  # as in an engine: the nearest float
            return label, float(value)
        exact = Fraction(value) if isinstance(label, Fraction) else value
        return (label, exact) if isinstance(label, int | Decimal | Fraction) else None
    if isinstance(label, str):
        return label, value
    if not isinstance(label, datetime.date):
        return None
    is_date = not isinstance(label, datetime.datetime)
    zone = getattr(label, "tzinfo", None)
    moment = _moment(value, is_date=is_date, has_zone=zone is not None)
    return None if moment is None else (label, moment)


def _build(node: Node, test: Callable[[ColumnTest], Any]) -> Any:
    if isinstance(node, ColumnTest):
        return test(node)
    joint = and_ if node.word == "and" else or_
    return reduce(joint, (_build(part, test) for part in node.parts))


def _definite(expression: Any) -> Any:
    """False where the engine does not know."""
    return expression.fill_null(False)


def _number_in_text(engine: Any, column: Any) -> Any:
    """Return the number that a column of text holds, in DuckDB; missing where it is none."""
    text = column.strip()
    plain = text.re_search(f"^{NUMBER}$").ifelse(text, engine.null("string"))
    return plain.try_cast(f"decimal(38, {DIGITS})")


def _compare_number(engine: Any, column: Any, sign: str, number: Decimal) -> Any:
    """Return a column of numbers against a number, which becomes one of the column's own type.

    Were it another type, an engine might convert the column, and fail at a value that does not fit.
    """
    kind = column.type()
    if kind.is_floating():
        size = "f" if kind.is_float32() else "d"
        [nearest] = struct.unpack(size, struct.pack(size, number))
        literal = engine.literal(nearest, "float64")
        return _definite(COMPARISONS[sign](column.cast("float64"), literal))
    if kind.is_decimal() and kind.scale is None:
        return _definite(COMPARISONS[sign](column, engine.literal(number, kind)))
    scale = kind.scale if kind.is_decimal() else 0
    below = number.quantize(Decimal(1).scaleb(-scale), ROUND_FLOOR, _WIDE)
    if below != number:  # between two values of the column
        if sign in ("=", "!="):
            return _constant(column, sign == "!=")
        sign = "<=" if sign in ("<", "<=") else ">"
    low, high = _range(kind)
    if not low <= below <= high:
        holds = sign == "!=" or (sign in ("<", "<=")) == (below > high)
        return _constant(column, holds and sign != "=")
    whole = (below, kind) if scale else (int(below), _whole_kind(kind))
    literal = engine.literal(*whole)
    return _definite(COMPARISONS[sign](column, literal))


_WIDE = Context(prec=100)


def _range(kind: Any) -> tuple[Decimal, Decimal]:
    """Return what a column of whole numbers or decimals can hold."""
    if kind.is_decimal():
        if not kind.scale:  # DuckDB has whole numbers beyond 38 digits; a number here never is
            return Decimal("-Infinity"), Decimal("Infinity")
        most = Decimal(10**kind.precision - 1).scaleb(-kind.scale, _WIDE)
        return most.copy_negate(), most
    return Decimal(kind.bounds.lower), Decimal(kind.bounds.upper)


def _whole_kind(kind: Any) -> Any:
    return "int64" if kind.is_decimal() else kind


def _constant(column: Any, holds: bool) -> Any:
    """Return what is true of every value, or of none; never of a missing one."""
    return column.notnull() if holds else column.notnull() & column.isnull()


def moment(text: str, kind: Any) -> datetime.date | datetime.datetime | None:
    """Return the date or moment that a text is, for a column of that type; None: none.

    A date stands for its first moment. Without a zone a moment is in UTC, where the column has one.
    """
    is_date = kind.is_date()
    return _moment(text, is_date=is_date, has_zone=not is_date and kind.timezone is not None)


def is_moment(text: str) -> bool:
    """Return whether a text is a date or a moment.

    Examples:
        >>> is_moment("2026-11-15"), is_moment("2026-11-31")
        (True, False)
    """
    return any(_moment(text, is_date=False, has_zone=zone) is not None for zone in (False, True))


def _moment(
    text: str, *, is_date: bool, has_zone: bool
) -> datetime.date | datetime.datetime | None:
    if not _MOMENT.fullmatch(text):
        return None
    try:
        moment = datetime.datetime.fromisoformat(text.replace(" ", "T"))
        in_utc = moment.replace(tzinfo=moment.tzinfo or datetime.UTC).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None
    if is_date:
        return moment.date() if len(text) == len("2026-11-15") else None
    if not has_zone:
        return moment if moment.tzinfo is None else None
    return in_utc


_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{3}(\d{3})?)?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
