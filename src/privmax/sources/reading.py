"""Chooses a source: engines keep their tables, everything else is read in memory.

No engine is imported before someone brings one of its objects, or a path.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, TypeGuard

from privmax.errors import (
    ConditionError,
    DataError,
    EngineError,
    ParameterError,
    column_error,
    refuse_given,
)
from privmax.numbers import Number
from privmax.sources.arrow_rows import BATCH
from privmax.sources.asking import ask, check_ibis
from privmax.sources.blocks import Batch, Block
from privmax.sources.conditions import Condition
from privmax.sources.dialect import Dialect, dialect_of
from privmax.sources.engines import embedded_engine, engine_of, owner_of
from privmax.sources.engines.base import choose_columns
from privmax.sources.files import (
    ScoreFile,
    check_complete,
    check_layout,
    check_rows,
    header,
    is_json,
    is_stream,
    open_batches,
    open_values,
)
from privmax.sources.places import UNKNOWN_KIND, Files, differs, find_files, refuse_kind
from privmax.sources.roles import Columns
from privmax.sources.scale import Scale
from privmax.sources.separated import FIRST_LINE, Rows, no_column, repetition
from privmax.sources.tables import TableSource
from privmax.universe import Universe

if TYPE_CHECKING:
    from privmax.sources.grouped import GroupedSource, Grouping
    from privmax.sources.memory import MemorySource
    from privmax.sources.pairs import Pairs


def source(
    data: object,
    columns: Columns,
    *,
    universe: Universe,
    sensitivity: Number | None,
    resolution: Number | None,
) -> MemorySource | TableSource:
    """The source that fits `data`. Close it after use."""
    scale: dict[str, Any] = {"sensitivity": sensitivity, "resolution": resolution}
    items, score, counted = columns.items(), columns.score, columns.counts()
    where = None if columns.where is None else Condition.of(columns.where)
    if isinstance(data, (str, os.PathLike)):
        data = find_files(data)
    if where is not None and _is_pandas(data):
        data, where = choose_rows(data, where), None
    ready = data if isinstance(data, ScoreFile) else None
    if ready is None and score is not None and not counted:
        ready = _ready(data, items, score)
    if ready is not None:
        from privmax.sources.memory import MemorySource

        scores = replace(ready, where=where).read(Scale.of(sensitivity, resolution))
        return MemorySource(scores, universe=universe, **scale)
    needs_table = counted or where is not None or not isinstance(columns.item, str | None)
    with ExitStack() as opened:
        table, numbered = _open_rows(data, columns, where, needs_table, opened)
        if table is None:
            if where is not None:
                raise _no_where(where)
            if needs_table:
                _refuse_columns(columns)
            from privmax.sources.memory import MemorySource

            item = items[0] if items else None
            return MemorySource(data, universe=universe, item=item, score=score, **scale)
        if resolution is not None:
            raise ParameterError(
                "resolution",
                resolution,
                "counts, and scores in an engine, are whole numbers",
                "Leave it out.",
            )
        try:
            return TableSource(
                table,
                columns,
                universe=universe,
                sensitivity=sensitivity,
                numbered=numbered,
                resources=opened,
            )
        except EngineError as error:
            failed = error
        if isinstance(data, Files) and data.is_csv:
            check_rows(data)  # names the line, as everywhere, if the file is what is wrong
        raise failed


def pairs(data: object, columns: Columns, salt: str) -> Pairs:
    """The pairs of individuals and items that `data` has. Close it after use."""
    from privmax.sources.pairs import Pairs

    with ExitStack() as stack:
        what = "keys need a table with a column of items and one of people"
        table, numbered = require_rows(data, columns, what, stack, label_users=True)
        return Pairs(table, columns, salt=salt, numbered=numbered, stack=stack)


def grouped(data: object, columns: Columns, grouping: Grouping) -> GroupedSource:
    """The items of every group of `data`. Close it after use."""
    from privmax.sources.grouped import GroupedSource

    with ExitStack() as stack:
        what = "groups need a table with a column of items and one of groups"
        table, numbered = require_rows(data, columns, what, stack, by=grouping.by)
        return GroupedSource(table, columns, grouping, numbered=numbered, stack=stack)


def require_rows(
    data: object, columns: Columns, what: str, stack: ExitStack, **options: Any
) -> tuple[Any, dict[str, list[Any]]]:
    """Open data that must be a table, as `_open_rows` does; `what` says why."""
    where = None if columns.where is None else Condition.of(columns.where)
    if isinstance(data, (str, os.PathLike)):
        data = find_files(data)
    if where is not None and _is_pandas(data):
        data, where = choose_rows(data, where), None
    table, numbered = _open_rows(data, columns, where, True, stack, **options)
    if table is None:
        kind = f"<{type(data).__name__}>"
        raise ParameterError("data", kind, what, "Give a file, a frame or a table.")
    return table, numbered


def _open_rows(
    data: object,
    columns: Columns,
    where: Condition | None,
    counted: bool,
    stack: ExitStack,
    *,
    label_users: bool = False,
    by: str | None = None,
    baskets: Sequence[str] = (),
) -> tuple[Any, dict[str, list[Any]]]:
    """The rows of `data` that count, as a table with the columns that are named; None where
    it is to be read in memory. And the labels of columns that hold numbers in their place: those of
    users only where they are asked for, as what is hashed must follow from the user alone.
    """
    items, numbered = columns.items(), dict[str, list[Any]]()
    looked = where.columns() if where is not None else ()
    others = filter(None, (columns.user, columns.weight, columns.score, by))
    needed = [*items, *baskets, *others, *looked]
    if not items and isinstance(data, Files) and not data.is_text:
        needed = []  # all: the error about a missing item lists them
    user = None if label_users else columns.user
    numbers = [columns.score, columns.weight]
    table = open_rows(data, needed, numbers, counted, stack, numbered, user)
    if table is None:
        return None, numbered
    is_text = is_text_file(data)
    if is_text or isinstance(data, Files):
        _in_file(
            table.columns,
            shown=not is_text or dialect_of(data).header_is_public,
            item=items or [None],
            basket=baskets,
            user=[columns.user],
            score=[columns.score],
            weight=[columns.weight],
            by=[by],
        )
    return table if where is None else keep_rows(table, where, data), numbered


def _refuse_columns(columns: Columns) -> None:
    """Refuse, of data in memory, columns that only a table has; one column of items may be."""
    counting = {"user": columns.user, "weight": columns.weight, "bound": columns.bound}
    refuse_given(counting, "it belongs to a table, but this data is not one")
    if not isinstance(columns.item, str | None):
        raise ParameterError(
            "item", columns.item, "it names a column, but this data is not a table", "Leave it out."
        )


def keep_rows(table: Any, where: Condition | None, data: object) -> Any:
    """The rows of the table made of `data` for which a condition is true; None: all."""
    if where is None:
        return table
    is_text = is_text_file(data)
    shown = not is_text or dialect_of(data).header_is_public
    return where.filter(table, engine_of(table), is_text=is_text, shown=shown)


def choose_rows(frame: Any, where: Condition) -> Any:
    """The rows of a pandas frame for which a condition is true."""
    from privmax.sources.containers.pandas import keep_rows as keep_pandas_rows

    choose_columns(list(frame.columns), where.columns())
    return keep_pandas_rows(frame, where)


def _is_pandas(data: object) -> bool:
    """Return whether data is a frame of pandas, without loading NumPy to find out."""
    if "pandas" not in sys.modules:
        return False
    from privmax.sources.containers.pandas import is_frame

    return is_frame(data)


def _no_where(where: Condition) -> ConditionError:
    return ConditionError(
        "where",
        where.given,
        "it is for files, tables of an engine, and frames",
        "Choose the candidates in Python before.",
    )


def is_text_file(data: object) -> TypeGuard[Files | BinaryIO]:
    """Whether data is text, whatever it holds: CSV, JSON Lines, an open file."""
    return data.is_text if isinstance(data, Files) else is_stream(data)


def _ready(data: object, items: Sequence[str], score: str) -> ScoreFile | None:
    """A text file with ready scores, which needs no engine; None: it is something else."""
    if not is_text_file(data):
        return None
    _in_file([*items, score], item=items or [None])
    return ScoreFile(data, tuple(items), score)


def as_table(data: object, *options: Any) -> Any:
    """Open rows as an Ibis table, as `open_rows` does, for code that writes expressions of Ibis."""
    rows = open_rows(data, *options)
    return None if rows is None else engine_of(rows).to_ibis(rows)


def open_rows(
    data: object,
    needed: Sequence[str],
    numbers: Sequence[str | None],
    counted: bool,
    stack: ExitStack,
    numbered: dict[str, list[Any]] | None = None,
    user: str | None = None,
) -> Any:
    """`data` as a relation (`relations.py`) where the embedded engine reads it, as an Ibis table
    where another engine has it, or None where it is to be read in memory.

    Of what must be copied to become one, only the `needed` columns are. `numbers` are those that
    hold whole numbers. Columns of pandas become numbers, and `numbered` is given what they stand
    for; not those of `user`, as nothing names users.
    """
    loaded = sys.modules
    if isinstance(data, (str, os.PathLike)):
        data = find_files(data)
    if isinstance(data, Files):
        return _file(data, needed, numbers, stack)
    if is_stream(data):
        return _copy(data, needed, numbers, stack)
    if "ibis" in loaded and isinstance(data, loaded["ibis"].Table):
        return ask("opening the table", engine_of(data).declare, data)
    owner = owner_of(data)
    if owner is not None:
        return owner.open_object(data, needed, stack)
    return (
        _frame(data, needed, numbers, stack, {} if numbered is None else numbered, user)
        if counted
        else None
    )


def _file(
    files: Files, needed: Sequence[str], numbers: Sequence[str | None], stack: ExitStack
) -> Any:
    """CSV, JSON Lines or Parquet files, or a folder of Parquet files, read by DuckDB."""
    if files.kind == "folder" and next(files.paths[0].rglob("*.parquet"), None) is None:
        raise DataError(
            "The folder and those below it have no file that ends in .parquet. Name a file."
        )
    if files.kind in ("folder", "parquet"):
        return embedded_engine().open_parquet(files.paths, needed, stack)
    if files.is_json or (files.is_csv and not _is_plain(files.dialect)):
        return _copy(files, needed, numbers, stack)
    if not all(path.is_file() for path in files.paths):
        raise DataError("A pipe can be read once only. Give a file, or - for standard input.")
    if files.is_csv:
        return _text(files, needed, numbers, stack)
    refuse_kind(files.paths[0].name)
    if files.kind == "database":
        raise ParameterError(
            "table",
            None,
            "the file is a database, which may have several tables",
            "Name one of them.",
        )
    raise DataError(UNKNOWN_KIND)


def _is_plain(dialect: Dialect) -> bool:
    """Whether DuckDB reads files of this dialect as they are."""
    return dialect.encoding is None and (dialect.delimiter or ",").isascii()


def _in_file(
    columns: Sequence[str], *, shown: bool = False, **options: Sequence[str | None]
) -> None:
    """Refuse a column that is not there. Unless names are `shown`, which are public for certain, it
    is not said which are: in a text file without a line of names those are data.
    """
    for option, names in options.items():
        for name in names:
            if shown and (name not in columns if name is not None else option == "item"):
                raise column_error(option, name, list(columns), "file")
            if option == "item" and name is None:
                remedy = f"Name a column. {FIRST_LINE}"
                raise ParameterError.required(option, "the file needs it", remedy)
            if name is not None and name not in columns:
                raise no_column(option, name, columns, shown=False)


def _text(
    files: Files, needed: Sequence[str], numbers: Sequence[str | None], stack: ExitStack
) -> Any:
    """Files of separated values, all of them text: what a column looks like depends on every row
    of it.

    Guessing types would make an item 7 or "7" by what other people's rows have, which is more than
    a release may tell. For the same reason only the line of names, which is public, decides what
    separates the values.
    """
    for path in files.paths:
        check_complete(path)
    names, separator = header(files.paths[0], files.dialect)
    for path in files.paths[1:]:
        others, mark = header(path, files.dialect)
        check_layout(path, others, files.paths[0], names)
        if mark != separator:
            raise differs(path, files.paths[0], "has another separator than")
    for name in needed:
        if names.count(name) > 1:
            raise repetition(name)
    times = Counter(names)
    once = {name: place for place, name in enumerate(names) if name and times[name] == 1}
    if not once:
        raise DataError(
            "No column has a name of its own: on the first line of the file all names are empty or "
            "repeated. head -n 1 FILE shows it."
        )
    is_told = files.dialect.header_is_public and len(once) <= _MOST_TOLD
    if needed and not (is_told and set(needed) - once.keys()):
        # of those that are missing the caller speaks, and names the others where they are public
        first = next(iter(once.items()))
        once = {name: once[name] for name in dict.fromkeys(needed) if name in once} or dict([first])
    rows = embedded_engine().open_separated(
        files.paths, separator, len(names), list(once.values()), stack
    )
    empty = {name: rows[f"column_{place}"].nullif("") for name, place in once.items()}
    return _with_numbers(rows.rename(empty), numbers)  # quoted or not


_MOST_TOLD = 1000
"""Public names of columns that are kept to be told, where one is missing."""


def _with_numbers(rows: Any, numbers: Sequence[str | None]) -> Any:
    """Rows of text with whole numbers in some of the columns; null where there is none."""
    whole = {name: rows[name].strip() for name in rows.columns if name in numbers}
    read = {
        name: text.re_search("^[+-]?[0-9]+$").ifelse(text, None).try_cast("int64")
        for name, text in whole.items()
    }
    return rows.rename({name: read.get(name, rows[name]) for name in rows.columns})


def _copy(
    place: Files | BinaryIO,
    needed: Sequence[str],
    numbers: Sequence[str | None],
    stack: ExitStack,
) -> Any:
    """JSON Lines, or separated values that DuckDB does not read: read here, by the rules of
    `files.py`, and kept by DuckDB batch by batch, which may put them into its temporary folder.
    """
    if is_json(place):
        return _copy_objects(place, list(dict.fromkeys(needed)), numbers, stack)
    with open_values(place, needed or None) as (names, every):
        for name in needed:
            if names.count(name) > 1:
                raise repetition(name)
        times = Counter(names)
        values, chosen = every, [name for name in names if name and times[name] == 1]
        if needed and set(needed) <= set(names):
            chosen = [name for name in chosen if name in needed]
        elif needed:
            values = iter(())  # whoever refuses what is missing names what there is
        places = [names.index(name) for name in chosen]
        rows = embedded_engine().keep_batches(len(chosen), _batches(values, places), stack)
    named = {name: rows[f"column_{at}"] for at, name in enumerate(chosen)}
    return _with_numbers(rows.rename(named), numbers)


def _batches(rows: Iterable[tuple[int, Block | Rows]], places: list[int]) -> Iterator[Batch]:
    """The values at some places, as the engine keeps them."""
    for _, some in rows:
        if isinstance(some, Block):
            yield some, places
            continue
        texts = ([row[place] for place in places] for _, row in some)
        yield from iter(lambda texts=texts: list(islice(texts, BATCH)), [])  # type: ignore[misc]


def _copy_objects(
    place: Files | BinaryIO, names: Sequence[str], numbers: Sequence[str | None], stack: ExitStack
) -> Any:
    """The same of JSON Lines."""
    if not names:
        raise ParameterError.required("item", "the file needs it", "Name a key of its objects.")
    with open_batches(place, names) as batches:
        rows = embedded_engine().keep_batches(len(names), batches, stack)
    return _with_numbers(
        rows.rename({name: rows[f"column_{at}"] for at, name in enumerate(names)}), numbers
    )


def _frame(
    data: Any,
    needed: Sequence[str],
    numbers: Sequence[str | None],
    stack: ExitStack,
    numbered: dict[str, list[Any]],
    user: str | None,
) -> Any:
    """A pandas, polars or Arrow frame, read by DuckDB without a copy; None if it is not one."""
    from privmax.sources.containers import table_of

    table = table_of(data)
    if table is None:
        return None
    check_ibis()
    rows, labels = table.to_arrow(needed, numbers, user)
    numbered.update(labels)
    return embedded_engine().open_arrow("reading the frame", lambda: rows, stack)
