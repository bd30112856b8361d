"""Which data is read how: tables stay in their engine, everything else becomes `Baskets` in memory.

No engine is imported before somebody brings one of its objects, or a path to Parquet files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from privmax.errors import ConditionError, DataError, ParameterError, refuse_given
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.reading import frames, text
from privmax.itemsets.reading.codes import encode_labels
from privmax.itemsets.reading.fimi import read_fimi
from privmax.itemsets.reading.flags import refuse_items, refuse_rows
from privmax.itemsets.reading.streams import is_open_file
from privmax.itemsets.reading.tables import TableRows, open_table, read_table
from privmax.sources.conditions import Condition
from privmax.sources.files import EXPORT, SPREADSHEETS
from privmax.sources.places import Files, ending, find_files

T = TypeVar("T")

FIMI, LONG, ONEHOT, WIDE = FORMS = ("fimi", "long", "onehot", "wide")


def open_baskets(
    data: object,
    *,
    held: ExitStack,
    basket: str | Sequence[str] | None = None,
    item: str | None = None,
    user: str | None = None,
    where: str | None = None,
    **layout: Any,
) -> Baskets | TableRows:
    """The baskets of any data: a table's in its engine, until `held` is closed, others as
    `read_baskets` reads them.

    Args:
        data: As `read_baskets` takes it, or a table.
        held: Closed by the caller after use.
        basket: As there.
        item: As there.
        user: As there.
        where: As there.
        layout: `form`, `separator` and `header`, as there.

    Examples:
        >>> with ExitStack() as held:
        ...     open_baskets([["b", "a"], ["b"]], held=held).longest()
        2
    """
    data = _find(data)
    columns: dict[str, Any] = {"basket": basket, "item": item, "user": user, "where": where}
    text_only = {name: layout.get(name) for name in ("separator", "header")}
    form = layout.get("form")
    if not isinstance(data, Baskets):
        keys = list_columns("basket", basket)
        check_single(item=item, user=user)
        if form == ONEHOT:
            table = read_table(data)
            if table is not None:
                _refuse_options("a table", **text_only)
                return read_baskets(table, **columns, form=form)
        else:
            condition = None if where is None else Condition.of(where)
            rows = open_table(data, basket=keys, item=item, user=user, where=condition)
            if rows is not None:
                held.callback(rows.close)
                _refuse_options("a table", **text_only, form=form)
                refuse_items(rows.labels)
                return rows
    return read_baskets(data, **columns, **layout)


def read_baskets(
    data: object,
    *,
    basket: str | Sequence[str] | None = None,
    item: str | None = None,
    user: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    form: str | None = None,
    where: str | None = None,
) -> Baskets:
    """The baskets of data in memory or in a text file.

    What stands in a file is text, unless the form is "fimi"; an empty cell is no item. In lists and
    frames None and NaN are no item, and empty text is one as any other. Items are what Python calls
    equal, whatever the type of their column: 1 and 1.0 are one item, released as 1. A repeated item
    counts once. A basket without items is a basket all the same, and counts as an individual.

    Args:
        data: Path of a text file, "-" for standard input, or an open file; lists of items, or any
            iterable of iterables; a pandas, polars or Arrow frame, long or one-hot; a SciPy sparse
            matrix or a NumPy array of booleans, a row for each basket.
        form: Of a file. "fimi": a basket a line, items as whole numbers with blanks between;
            "wide": a basket a line, items as text with separators between; "long": a line of names,
            then a line for each item of a basket; "onehot": a line with the names of the items,
            then a line for each basket, with 1 (true, t, yes, y) below the items that it holds and
            0 (false, f, no, n) below the others. By default by the name: .dat is "fimi"; .csv and
            .tsv are "long" if `basket` and `item` are given, otherwise "wide"; .jsonl and .ndjson
            are "long"; an open file is "fimi". Any of them may be compressed: .gz, .zst. A
            frame is "onehot" where neither `basket` nor `item` is given.
        basket: Column of the baskets of a long file or frame; several tell baskets apart together.
            One-hot files and frames may have such columns, too, which are no items.
        item: Column of the items of a long file or frame.
        user: Column of the individuals; one-hot files and frames may have one, which is no item.
        separator: Of cells in a file. By default a comma, in a .tsv file a tab; in a long or
            one-hot file whichever of comma, semicolon and tab its first line holds.
        header: Whether a wide file begins with a line of names, to be skipped.
        where: Which rows of a long file count, as docs/inputs.md tells.

    Returns:
        The baskets. They are private.

    Raises:
        ParameterError: An option does not fit the data, or another.
        DataError: The data cannot be read, or is not what its form says.

    Examples:
        >>> rows = read_baskets([["b", "a"], ["b"]])
        >>> rows.labels, rows.supports().tolist()
        (['a', 'b'], [1, 2])
    """
    keys = list_columns("basket", basket)
    check_single(item=item, user=user)
    if isinstance(data, Baskets):
        columns = {"basket": basket, "item": item, "user": user}
        _refuse_options(
            "baskets", **columns, separator=separator, header=header, form=form, where=where
        )
        return data
    data = _find(data)
    if isinstance(data, (str, Files)) or is_open_file(data):
        chosen = _choose_form(data, form, basket, item, user)
        if chosen == LONG:
            condition = None if where is None else Condition.of(where)
            return _read_long(data, separator, header, condition, (keys, item, user))
        _refuse_where(where, f"in the form {chosen} a row is a basket")
        return _read_file(_single(data), chosen, basket, item, user, separator, header)
    _refuse_where(where, "this data is in memory")
    names = frames.column_names(data)
    is_table = names is not None and form == ONEHOT
    _refuse_options(
        "data that is not a file",
        separator=separator,
        header=header,
        form=None if is_table else form,
    )
    if names is not None:
        if form == ONEHOT or (basket is None and item is None):
            _refuse_options(f"the form {ONEHOT}", item=item)
            return frames.read_one_hot(data, names, basket=keys or (), user=user)
        return frames.read_long(
            data, names, basket=_require("basket", keys), item=_require("item", item), user=user
        )
    _refuse_options("data without columns", basket=basket, item=item, user=user)
    found = frames.read_matrix(data)
    return _read_lists(data) if found is None else found


def _find(data: Any) -> Any:
    """The files that data names; "-", which is standard input, and all else as it is."""
    if not isinstance(data, (str, os.PathLike)) or data == "-":
        return data
    return find_files(data)


def list_columns(option: str, given: Any) -> list[str] | None:
    """One column, or several, as a list.

    Examples:
        >>> list_columns("basket", "receipt"), list_columns("basket", ("shop", "receipt"))
        (['receipt'], ['shop', 'receipt'])
    """
    if given is None:
        return None
    names = list(given) if isinstance(given, (list, tuple)) else [given]
    if not names:
        raise ParameterError(option, given, "it names no column", "Name one, or several.")
    if len(set(names)) < len(names):
        raise ParameterError(option, given, "it names a column twice", "Name each once.")
    return names


def check_single(**options: object) -> None:
    """Refuse several columns where there can be one.

    Examples:
        >>> check_single(item="article", user=["a", "b"])
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: user=['a', 'b'] is not allowed: it must be one column. ...
    """
    for option, given in options.items():
        if isinstance(given, (list, tuple)):
            raise ParameterError(
                option,
                given,
                "it must be one column",
                "Combine several into one column first.",
            )


def _choose_form(
    data: Any,
    form: str | None,
    basket: str | Sequence[str] | None,
    item: str | None,
    user: str | None,
) -> str:
    """The form of a file, by what was said or by its name."""
    if form is not None:
        if form not in FORMS:
            raise ParameterError("form", form, f"it must be one of {', '.join(FORMS)}")
        return form
    named = any(name is not None for name in (basket, item, user))
    if not isinstance(data, Files):
        return LONG if named else FIMI
    kind = ending(data.paths[0].name)
    if kind in (".csv", ".tsv"):
        return LONG if named else WIDE
    if data.is_json:
        return LONG
    if kind == ".dat":
        return FIMI
    if kind in SPREADSHEETS:
        raise DataError(EXPORT)
    raise ParameterError.required(
        "form",
        "the file extension does not say it",
        f"Use one of {', '.join(FORMS)}, or rename the file.",
    )


def _read_file(
    data: Any,
    form: str,
    basket: str | Sequence[str] | None,
    item: str | None,
    user: str | None,
    separator: str | None,
    header: bool | None,
) -> Baskets:
    if separator is None and isinstance(data, Path) and form == WIDE:
        separator = "\t" if ending(data.name) == ".tsv" else ","
    if form == ONEHOT:
        _check_header(header, form)
    keys = list_columns("basket", basket)
    _refuse_options(f"the form {form}", item=item)
    if form == ONEHOT:
        return text.read_one_hot(data, separator, basket=keys or (), user=user)
    _refuse_options(f"the form {form}", basket=basket, user=user)
    if form == WIDE:
        return text.read_wide(data, separator, bool(header))
    _refuse_options(f"the form {form}", separator=separator, header=header)
    return read_fimi(data)


def _read_long(
    data: Any,
    separator: str | None,
    header: bool | None,
    where: Condition | None,
    columns: tuple[Sequence[str] | None, str | None, str | None],
) -> Baskets:
    """Files, or a stream, with a row per item of a basket; `columns` are basket, item, user."""
    _check_header(header, LONG)
    basket, item, user = columns
    basket, item = _require("basket", basket), _require("item", item)
    if isinstance(data, Files) and (data.is_json or len(data.paths) > 1):
        _refuse_options("JSON Lines, and with several files", separator=separator)
    else:
        data = _single(data)
    return text.read_long(data, separator, basket=basket, item=item, user=user, where=where)


def _check_header(header: bool | None, form: str) -> None:
    if header is False:
        raise ParameterError(
            "header", header, f"the form {form} needs a line of names", "Leave it out."
        )


def _single(data: Any) -> Any:
    """The one file that is read."""
    if not isinstance(data, Files):
        return data
    if len(data.paths) > 1:
        raise DataError(
            "A pattern may stand for several files with a row per item of a basket (long), or of "
            "Parquet. Join files with a basket per line first: cat *.dat > all.dat"
        )
    if data.is_json:
        raise ParameterError(
            "form", None, "JSON Lines hold a row per item of a basket (long)", "Leave it out."
        )
    return data.paths[0]


def _refuse_where(where: str | None, why: str) -> None:
    if where is not None:
        raise ConditionError(
            "where",
            where,
            f"{why}, and a condition is about rows with one item each, in a file or a table",
            "Choose the rows before.",
        )


def _read_lists(data: Any) -> Baskets:
    """Any iterable of iterables of labels."""
    arrow, polars = sys.modules.get("pyarrow"), sys.modules.get("polars")
    if arrow is not None and isinstance(data, (arrow.Array, arrow.ChunkedArray)):
        data = data.to_pylist()
    elif polars is not None and isinstance(data, polars.Series):
        data = data.to_list()
    if isinstance(data, (bytes, Mapping)) or not isinstance(data, Iterable):
        raise DataError(
            f"Baskets cannot be read from {type(data).__name__}. Give a path, a list of lists of "
            f"items, a frame, a "
            "SciPy sparse matrix or a NumPy array of booleans."
        )
    rows = [_basket(row, number) for number, row in enumerate(data, 1)]
    labels, codes = encode_labels(list(chain.from_iterable(rows)))
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    held = codes >= 0
    upto = np.concatenate(([0], np.cumsum(held)))
    ends = np.concatenate(([0], np.cumsum(lengths)))
    found = Baskets(upto[ends], codes[held], labels)
    refuse_rows(
        found,
        "Make them an array of booleans, numpy.array(baskets, bool). If 0 and 1 are items, rename "
        "them.",
    )
    return found


def _basket(row: Any, number: int) -> list[Any]:
    if isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable):
        reason = "not text" if isinstance(row, (str, bytes)) else f"not {type(row).__name__}"
        raise DataError(f"Basket {number}: a basket must be a list of items, {reason}.")
    return row if isinstance(row, list) else list(row)


def _require(option: str, name: T | None) -> T:
    if name is None:
        raise ParameterError.required(option, "the long form needs it", "Name a column.")
    return name


def _refuse_options(beside: str, **options: object) -> None:
    refuse_given(options, f"it has no meaning with {beside}")
