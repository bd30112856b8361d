"""Files of rows of text: separated values and JSON Lines, one file or several, and ready scores.

Whether a file is named in Python or on the command line, and whether its rows are scores or are
counted by DuckDB, the same rules hold: those of `separated.py` and `json_lines.py`. Every value is
text, and an empty one is none at all. Numbers are exact: 0.1 is one tenth. Compressed files are
read as what they hold, and several files of one pattern as one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from privmax.errors import DataError, ParameterError
from privmax.numbers import EXPONENT, LONGEST, exact
from privmax.sources.blocks import Batch, Block
from privmax.sources.conditions import Condition
from privmax.sources.dialect import PLAIN, Dialect, dialect_of
from privmax.sources.json_lines import Keys, read_batches, read_objects
from privmax.sources.places import COMPRESSIONS, CSV, JSON, Files, differs
from privmax.sources.scale import Scale
from privmax.sources.separated import Rows, open_blocks, open_named, place_in
from privmax.sources.text import open_binary, open_pieces, open_text

T = TypeVar("T")

ENDINGS = (*CSV, *JSON)
"""How the names of such files end."""

Place = Path | BinaryIO | Files
"""Where rows of text are: a file, a stream of bytes, which can be read once, or several files."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

_DIGITS = 18
"""Digits of a whole number that is read without more ado."""


@dataclass(frozen=True)
class ScoreFile:
    """A file with one row per candidate.

    place    its path, or a stream of its bytes, which can be read once
    items    columns that name a candidate, together if they are several
    score    column of the scores
    where    which rows count; None: all
    """

    place: Place
    items: tuple[str, ...]
    score: str
    where: Condition | None = None

    def __post_init__(self) -> None:
        if len(set(self.items)) < len(self.items):
            raise ParameterError(
                "item", list(self.items), "a column occurs in it more than once", "Name each once."
            )

    @property
    def dialect(self) -> Dialect:
        """What is declared of the file."""
        return dialect_of(self.place)

    def read(self, scale: Scale) -> dict[Any, int | Fraction]:
        """Read labels and scores."""
        scores: dict[Any, int | Fraction] = {}
        wanted = [*self.items, self.score]
        with open_values(self.place, wanted, self.where) as (names, batches):
            shown = self.dialect.header_is_public
            places = [place_in(names, "item", name, shown=shown) for name in self.items]
            scored = place_in(names, "score", self.score, shown=shown)
            for line, batch in batches:
                if not isinstance(batch, Block):
                    _add_rows(scores, batch, places, scored, scale)
                    continue
                _add_block(scores, batch.columns([*places, scored]), line, scale)
        return scores


def _add_block(
    scores: dict[Any, int | Fraction], columns: list[list[str]], line: int, scale: Scale
) -> None:
    """Add rows of labels and a score, together if all scores are short whole numbers."""
    *labels, texts = columns
    digits, before = "".join(texts), len(scores)
    are_plain = digits.isascii() and digits.isdigit() and max(map(len, texts)) <= _DIGITS
    if are_plain and not any("" in column for column in columns):
        every = labels[0] if len(labels) == 1 else list(zip(*labels, strict=True))
        scores.update(zip(every, map(int, texts), strict=True))
        if len(scores) == before + len(every):
            return
        scores = dict(islice(scores.items(), before))  # one by one, to find the line
    rows = enumerate(zip(*columns, strict=True), line)
    _add_rows(scores, rows, range(len(labels)), len(labels), scale)


def _add_rows(
    scores: dict[Any, int | Fraction],
    rows: Iterable[tuple[int | str, Sequence[Any]]],
    places: Sequence[int],
    scored: int,
    scale: Scale,
) -> None:
    """Add the labels and scores of rows, one by one."""
    label_of = itemgetter(*places)
    is_single = len(places) == 1
    for line, row in rows:
        label = label_of(row)
        if not label or (not is_single and "" in label):
            raise DataError(
                f"Line {line} has no label. Drop such candidates: no label means no answer."
            )
        if label in scores:
            raise DataError(
                f"Line {line} repeats a label. Add up or deduplicate its scores first, or, if a "
                "line is one person's, count people: name their column as user."
            )
        text = row[scored]
        if len(text) <= _DIGITS and text.isdigit() and text.isascii():
            scores[label] = int(text)  # nearly all are
        else:
            scores[label] = _number(text, line, scale)


def header(path: Path, dialect: Dialect = PLAIN) -> tuple[list[str], str]:
    """Return the names of the columns of a file, and what separates its values."""
    with open_named(path, dialect) as opened:
        return opened.names, opened.separator


def check_complete(path: Path) -> None:
    """Refuse a compressed file that is cut short or damaged.

    DuckDB would count what is left of it. It is unpacked once for that, and not kept.
    """
    if not path.name.lower().endswith(COMPRESSIONS):
        return
    with open_binary(path) as file:
        while file.read(_PIECE):
            pass


_PIECE = 1 << 20
"""Bytes that are unpacked at a time."""


def check_rows(files: Files) -> None:
    """Refuse files of separated values with a row that is malformed, and name its line."""
    with open_records(files) as (_, rows):
        for _ in rows:
            pass


def is_stream(data: object) -> bool:
    """Return whether it is an open file.

    Examples:
        >>> is_stream(io.BytesIO()), is_stream("searches.csv")
        (True, False)
    """
    return isinstance(data, io.IOBase)


def is_json(place: object) -> bool:
    """Return whether rows are objects of JSON, by the ending of the name."""
    if isinstance(place, Files):
        return place.is_json
    return isinstance(place, Path) and place.name.lower().endswith(JSON)


@contextmanager
def open_records(
    place: Place,
    wanted: Sequence[str] | None = None,
    where: Condition | None = None,
    lists: Sequence[str] = (),
) -> Iterator[tuple[list[str], Rows]]:
    """The names of the columns, and the rows, each with its line. Empty lines are none.

    wanted    the columns that are looked at; None: all of them. JSON has no others
    where     which rows are given; None: all
    lists     columns of JSON that hold arrays; a cell of theirs is a list of texts
    """
    looked = None if wanted is None else [*wanted, *(where.columns() if where else ())]
    dialect = dialect_of(place)
    if dialect.check and is_json(place):
        _check_keys(place, looked or (), dialect)
    with _open_one(_first(place), looked, dialect, lists) as (names, rows):
        every: Rows = rows
        if isinstance(place, Files) and len(place.paths) > 1:
            every = chain(_name_lines(place.paths[0], rows), _more(place, names, looked, lists))
        yield names, matching_rows(every, names, where, shown=dialect.header_is_public)


@contextmanager
def open_values(
    place: Place, wanted: Sequence[str] | None = None, where: Condition | None = None
) -> Iterator[tuple[list[str], Iterator[tuple[int, Block | Rows]]]]:
    """What `open_records` gives, many rows at a time where they need no reader.

    Each block comes with the number of its first line.
    """
    is_several = isinstance(place, Files) and len(place.paths) > 1
    if where is None and not is_several and not is_json(place):
        with open_blocks(_first(place), dialect_of(place)) as opened:
            yield opened
        return
    with open_records(place, wanted, where) as (names, rows):
        yield names, iter([(2, rows)])


@contextmanager
def open_batches(place: Place, wanted: Sequence[str]) -> Iterator[Iterator[Batch]]:
    """The values of JSON Lines in some columns, many lines at a time."""
    dialect, paths = dialect_of(place), place.paths if isinstance(place, Files) else (place,)
    if dialect.check:
        _check_keys(place, wanted, dialect)

    def read() -> Iterator[Batch]:
        for path in paths:
            with open_pieces(path, dialect.encoding) as pieces:
                batches = read_batches(pieces or (), wanted)  # a path is no open file of text
                if isinstance(path, Path) and len(paths) > 1:
                    batches = _name_file(path, batches)
                yield from batches

    yield read()


def _check_keys(place: Any, names: Sequence[str], dialect: Dialect) -> None:
    """Refuse names that no line of JSON Lines has. The files are read once more for that."""
    keys = Keys(names, dialect)
    for path in place.paths if isinstance(place, Files) else [place]:
        with open_text(path, dialect.encoding) as file:
            keys.look(file)
    keys.refuse()


def _first(place: Place) -> Path | BinaryIO:
    return place.paths[0] if isinstance(place, Files) else place


@contextmanager
def _open_one(
    place: Path | BinaryIO,
    wanted: Sequence[str] | None,
    dialect: Dialect,
    lists: Sequence[str] = (),
) -> Iterator[tuple[list[str], Rows]]:
    """The same for one file."""
    if is_json(place):
        with open_text(place, dialect.encoding) as file:
            names = list(dict.fromkeys(wanted or ()))
            yield names, read_objects(file, names, lists)
        return
    with open_named(place, dialect) as opened:
        yield opened.names, opened.rows


def _more(
    files: Files, names: Sequence[str], wanted: Sequence[str] | None, lists: Sequence[str]
) -> Rows:
    """Yield the rows of all files but the first, which must have the same columns."""
    for path in files.paths[1:]:
        with _open_one(path, wanted, files.dialect, lists) as (others, rows):
            check_layout(path, others, files.paths[0], names)
            yield from _name_lines(path, rows)


def check_layout(path: Path, others: Sequence[str], first: Path, names: Sequence[str]) -> None:
    """Refuse a file whose columns are not those of the first."""
    if list(others) != list(names):
        raise differs(path, first, "does not have the same columns, in the same order, as")


def _name_lines(path: Path, rows: Rows) -> Rows:
    return _name_file(path, ((f"{line} of {path.name!r}", row) for line, row in rows))


def _name_file(path: Path, every: Iterator[T]) -> Iterator[T]:
    """Yield what is read of a file, whose name its errors give."""
    wrong = None
    try:
        yield from every
    except DataError as error:
        wrong = f"The file {path.name!r}: {error}"
    if wrong is not None:
        raise DataError(wrong)


def matching_rows(
    rows: Rows, names: Sequence[str], where: Condition | None, *, shown: bool = False
) -> Rows:
    """Return the rows for which a condition is true.

    None: all. `shown`: names of columns are public.
    """
    if where is None:
        return rows
    where.check(names, shown=shown)
    where.check_text()
    place = {name: place_in(names, "where", name) for name in where.columns()}

    def keep() -> Rows:
        for line, row in rows:
            if where.keeps({name: row[at] for name, at in place.items()}.get):
                yield line, row

    return keep()


def _number(text: str, line: int | str, scale: Scale) -> int | Fraction:
    """Return a score, exactly."""
    digits = text.strip()
    if len(digits) <= _DIGITS and digits.isascii() and digits.isdigit():
        return int(digits)
    if not _NUMBER.fullmatch(digits):
        raise DataError(
            f"Line {line} has no number in the score column. Write numbers like 1500 or 0.5, "
            f"without commas or units; "
            "and see that item and score are not swapped."
        )
    try:
        number = exact("score", digits)
    except ParameterError:  # which quotes it
        number = None
    if number is None:
        raise DataError(
            f"Line {line} has a number of more than {LONGEST} digits, or with an exponent beyond "
            f"{EXPONENT}, in the "
            "score column."
        )
    if scale.whole and number.denominator != 1:
        raise DataError(
            f"Line {line} has a score that is not a whole number. Scores must be whole numbers "
            "unless a grid is declared: set resolution to the step of a public grid, for example "
            "0.01."
        )
    return number.numerator if number.denominator == 1 else number
