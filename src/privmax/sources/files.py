"""Files of rows of text: separated values and JSON Lines, one file or several, and ready scores.

Whether a file is named in Python or on the command line, and whether its rows are scores or are
counted by DuckDB, the same rules hold: those of `separated.py` and `json_lines.py`. Every value is
text, and an empty one is none at all. Numbers are exact: 0.1 is one tenth. Compressed files are
read as what they hold, and several files of one pattern as one.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeGuard, TypeVar

from privmax.errors import DataError, ParameterError
from privmax.sources.blocks import Batch, Block
from privmax.sources.conditions import Condition
from privmax.sources.dialect import PLAIN, Dialect, dialect_of
from privmax.sources.json_lines import Keys, read_batches, read_objects
from privmax.sources.places import COMPRESSIONS, CSV, JSON, Files, differs
from privmax.sources.scale import Scale
from privmax.sources.separated import Rows, open_blocks, open_named, place_in
from privmax.sources.text import open_binary, open_pieces, open_text

if TYPE_CHECKING:
    from privmax.sources.listed_scores import ListedScores

T = TypeVar("T")

ENDINGS = (*CSV, *JSON)
"""The endings of the names of such files."""

Place = Path | BinaryIO | Files
"""The place of rows of text: a file, a stream of bytes (read once), or several files."""


@dataclass(frozen=True)
class ScoreFile:
    """A file with one row per candidate.

    Args:
        place: Its path, or a stream of its bytes, which can be read once.
        items: Columns that name a candidate, together if they are several.
        score: Column of the scores.
        where: Which rows count; None: all.
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
        """The declared dialect of the file."""
        return dialect_of(self.place)

    def read(self, scale: Scale) -> ListedScores:
        """Read labels and scores."""
        from privmax.sources.listed_scores import ListedScores

        scores = ListedScores(scale)
        needed = [*self.items, self.score]
        with open_values(self.place, needed, self.where) as (names, batches):
            shown = self.dialect.header_is_public
            places = [place_in(names, "item", name, shown=shown) for name in self.items]
            scored = place_in(names, "score", self.score, shown=shown)
            scores.read(batches, places, scored)
        return scores


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


def is_stream(data: object) -> TypeGuard[BinaryIO]:
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
    needed: Sequence[str] | None = None,
    where: Condition | None = None,
    lists: Sequence[str] = (),
) -> Iterator[tuple[list[str], Rows]]:
    """The names of the columns, and the rows, each with its line. Empty lines are none.

    Args:
        needed: The columns that are looked at; None: all of them. JSON has no others.
        where: Which rows are given; None: all.
        lists: Columns of JSON that hold arrays; a cell of theirs is a list of texts.
    """
    looked = None if needed is None else [*needed, *(where.columns() if where else ())]
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
    place: Place, needed: Sequence[str] | None = None, where: Condition | None = None
) -> Iterator[tuple[list[str], Iterator[tuple[int, Block | Rows]]]]:
    """Open the records of `open_records`, many rows at a time where they need no reader.

    Each block comes with the number of its first line.
    """
    is_several = isinstance(place, Files) and len(place.paths) > 1
    if where is None and not is_several and not is_json(place):
        with open_blocks(_first(place), dialect_of(place)) as opened:
            yield opened
        return
    with open_records(place, needed, where) as (names, rows):
        yield names, iter([(2, rows)])


@contextmanager
def open_batches(place: Place, needed: Sequence[str]) -> Iterator[Iterator[Batch]]:
    """The values of JSON Lines in some columns, many lines at a time."""
    dialect, paths = dialect_of(place), place.paths if isinstance(place, Files) else (place,)
    if dialect.check:
        _check_keys(place, needed, dialect)

    def read() -> Iterator[Batch]:
        for path in paths:
            with open_pieces(path, dialect.encoding) as pieces:
                batches = read_batches(pieces or (), needed)  # a path is no open file of text
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
    needed: Sequence[str] | None,
    dialect: Dialect,
    lists: Sequence[str] = (),
) -> Iterator[tuple[list[str], Rows]]:
    """The same for one file."""
    if is_json(place):
        with open_text(place, dialect.encoding) as file:
            names = list(dict.fromkeys(needed or ()))
            yield names, read_objects(file, names, lists)
        return
    with open_named(place, dialect) as opened:
        yield opened.names, opened.rows


def _more(
    files: Files, names: Sequence[str], needed: Sequence[str] | None, lists: Sequence[str]
) -> Rows:
    """Yield the rows of all files but the first, which must have the same columns."""
    for path in files.paths[1:]:
        with _open_one(path, needed, files.dialect, lists) as (others, rows):
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
