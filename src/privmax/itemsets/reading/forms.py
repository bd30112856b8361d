"""Chooses a reader: tables stay in their engine, everything else becomes `Baskets` in memory.

No engine is imported before someone brings one of its objects, or a path to Parquet files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from privmax.errors import ConditionError, DataError, ParameterError, refuse_given
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.reading import frames, lists, text
from privmax.itemsets.reading.codes import code_items
from privmax.itemsets.reading.fimi import read_fimi
from privmax.itemsets.reading.flags import refuse_items, refuse_rows
from privmax.itemsets.reading.tables import TableRows, open_table, read_list_column, read_table
from privmax.sources.conditions import Condition
from privmax.sources.containers import table_of
from privmax.sources.containers.pandas import is_column, is_frame, number_objects
from privmax.sources.places import (
    Files,
    ending,
    find_files,
    is_pattern,
    name_kind,
    path_name,
    refuse_kind,
    refuse_unreadable,
)
from privmax.sources.reading import choose_rows
from privmax.sources.table import number_list
from privmax.sources.text import is_open_file
from privmax.sources.users import DROP, read_missing_users

T = TypeVar("T")

FIMI, LONG, ONEHOT, WIDE = FORMS = ("fimi", "long", "onehot", "wide")


def open_baskets(
    data: object,
    *,
    stack: ExitStack,
    basket: str | Sequence[str] | None = None,
    item: str | None = None,
    user: str | None = None,
    where: str | None = None,
    missing_users: str | None = None,
    **layout: Any,
) -> Baskets | TableRows:
    """Open the baskets of any data, those of a table in its engine.

    The engine has them until `stack` is closed. Other data is read as `read_baskets` reads it.

    Args:
        data: As `read_baskets` takes it, or a table.
        stack: Closed by the caller after use.
        basket: As there.
        item: As there.
        user: As there.
        where: As there.
        missing_users: As there.
        layout: `form`, `separator` and `header`, as there.

    Examples:
        >>> with ExitStack() as stack:
        ...     open_baskets([["b", "a"], ["b"]], stack=stack).longest()
        2
    """
    data = _find(data)
    columns: dict[str, Any] = {"basket": basket, "item": item, "user": user, "where": where}
    columns["missing_users"] = missing_users
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
            drops = missing_users == DROP
            if keys is None and item is not None and form is None:
                table = read_list_column(data, item=item, user=user, where=condition)
                if table is not None:
                    _refuse_options("a table", **text_only)
                    return read_baskets(table, item=item, user=user, missing_users=missing_users)
            rows = open_table(data, basket=keys, item=item, user=user, where=condition, drops=drops)
            if rows is not None:
                stack.callback(rows.close)
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
    missing_users: str | None = None,
) -> Baskets:
    """Return the baskets of data in memory or in a text file.

    What is in a file is text, unless the form is "fimi"; an empty cell is no item. In lists and
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
        item: Column of the items of a long file or frame. Without `basket`, in a frame, a table or
            JSON Lines: column of lists, each of which is a basket.
        user: Column of the individuals; one-hot files and frames may have one.
        separator: Of cells in a file. By default a comma, in a .tsv file a tab; in a long or
            one-hot file whichever of comma, semicolon and tab its first line has.
        header: Whether a wide file begins with a line of names, to be skipped.
        where: Which rows of a long file or pandas frame count, see `privmax help inputs`.
        missing_users: With `user`: "drop" leaves out rows without one. By default they are refused.

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
    drops = read_missing_users(missing_users, user) == DROP
    if isinstance(data, Baskets):
        _refuse_options(
            "baskets", basket=basket, item=item, user=user, separator=separator, header=header,
            form=form, where=where,
        )  # fmt: skip
        return data
    data = _find(data)
    if isinstance(data, (str, Files)) or is_open_file(data):
        chosen = _choose_form(data, form, basket, item, user)
        if chosen == LONG:
            condition = None if where is None else Condition.of(where)
            by_row = form is None and keys is None and item is not None
            if by_row and item is not None and isinstance(data, Files) and data.is_json:
                _refuse_options("JSON Lines", separator=separator, header=header)
                return lists.read_arrays(data, item=item, user=user, where=condition, drops=drops)
            columns = (keys, item, user, drops)
            return _read_long(data, separator, header, condition, columns)
        _refuse_where(where, f"in the form {chosen} a row is a basket")
        columns = (keys, item, user, drops)
        return _read_file(_single(data), chosen, columns, separator, header)
    is_table = table_of(data) is not None
    is_onehot = not is_table or form == ONEHOT or (basket is None and item is None)
    if where is not None and not is_onehot and is_frame(data):
        condition = Condition.of(where)
        if keys is None and item is not None:
            lists.refuse_lists(condition, item)
        data, where = choose_rows(data, condition), None
    _refuse_where(where, "this data is in memory")
    _refuse_options(
        "data that is not a file",
        separator=separator,
        header=header,
        form=None if is_table and form == ONEHOT else form,
    )
    table = table_of(data)  # with the rows that were chosen
    if table is not None:
        if is_onehot:
            _refuse_options(f"the form {ONEHOT}", item=item)
            return frames.read_one_hot(table, basket=keys or (), user=user, drops=drops)
        if keys is None and item is not None:
            return lists.read_lists(table, item=item, user=user, drops=drops)
        return frames.read_long(
            table, basket=_require("basket", keys), item=_require("item", item), user=user,
            drops=drops,
        )  # fmt: skip
    _refuse_options("data without columns", basket=basket, item=item, user=user)
    baskets = frames.read_matrix(data)
    return _read_lists(data) if baskets is None else baskets


_Columns = tuple[Sequence[str] | None, str | None, str | None, bool]
"""The columns of baskets, items and users, and whether rows without a user are left out."""


def _find(data: Any) -> Any:
    """Return the files that data names; "-", which is standard input, and all else as it is."""
    if not isinstance(data, (str, os.PathLike)) or data == "-":
        return data
    return find_files(data)


def list_columns(option: str, value: Any) -> list[str] | None:
    """One column, or several, as a list.

    Examples:
        >>> list_columns("basket", "receipt"), list_columns("basket", ("shop", "receipt"))
        (['receipt'], ['shop', 'receipt'])
    """
    if value is None:
        return None
    names = list(value) if isinstance(value, (list, tuple)) else [value]
    if not names:
        raise ParameterError(option, value, "it names no column", "Name one, or several.")
    if len(set(names)) < len(names):
        raise ParameterError(option, value, "it names a column twice", "Name each once.")
    return names


def check_single(**options: object) -> None:
    """Refuse several columns where there can be one.

    Examples:
        >>> check_single(item="article", user=["a", "b"])
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: user=['a', 'b'] is not allowed: it must be one column. ...
    """
    for option, value in options.items():
        if isinstance(value, (list, tuple)):
            raise ParameterError(
                option,
                value,
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
    """Return the form of a file, by what was said or by its name."""
    if form is not None:
        if form not in FORMS:
            raise ParameterError("form", form, f"it must be one of {', '.join(FORMS)}")
        return form
    named = any(name is not None for name in (basket, item, user))
    if not isinstance(data, Files):
        return LONG if named else FIMI
    refuse_kind(data.paths[0].name)
    kind = ending(data.paths[0].name)
    if kind in (".csv", ".tsv"):
        return LONG if named else WIDE
    if data.is_json:
        return LONG
    if kind == ".dat":
        return FIMI
    raise ParameterError.required(
        "form",
        "the file extension does not say it",
        f"Use one of {', '.join(FORMS)}.",
    )


def refuse_form(data: object, layout: Any, *, by: str | None = None) -> None:
    """Refuse a file of a kind that is not read, or whose form is not known.

    The form is given, or known by the name. Nothing is opened.

    Args:
        data: What is to be read; anything but a path passes.
        layout: Has `form`, `basket`, `item` and `user`, as `read_baskets` takes them.
        by: The column of groups, which a file of baskets without columns does not have.

    Examples:
        >>> from privmax.itemsets.mining import Layout
        >>> refuse_form("baskets.zip", Layout())
        Traceback (most recent call last):
        ...
        privmax.errors.DataError: The file is a ZIP archive. Unpack it (unzip FILE) and give ...
    """
    name = path_name(data)
    if name is None:
        return
    refuse_unreadable(data, as_table=False)
    if layout.form is not None:
        return
    # A pattern may match files of any kind, and a name without an ending may be a folder's.
    has_ending = Path(name).suffix and not is_pattern(name) and not os.path.isdir(name)
    if has_ending and name_kind(name) == "other":
        files = Files((Path(name),), "other")
        form = _choose_form(files, None, layout.basket, layout.item, layout.user)
        if by is not None:
            raise ParameterError(
                "by", by, f"a file in the form {form} has no columns, so none of groups",
                "Give a file with one row per item of a basket, such as CSV or Parquet.",
            )  # fmt: skip


def _read_file(
    data: Any,
    form: str,
    columns: _Columns,
    separator: str | None,
    header: bool | None,
) -> Baskets:
    basket, item, user, drops = columns
    if separator is None and isinstance(data, Files) and form == WIDE:
        separator = "\t" if ending(data.paths[0].name) == ".tsv" else ","
    if form == ONEHOT:
        _check_header(header, form)
    _refuse_options(f"the form {form}", item=item)
    if form == ONEHOT:
        return text.read_one_hot(data, separator, basket=basket or (), user=user, drops=drops)
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
    columns: _Columns,
) -> Baskets:
    """Files, or a stream, with a row per item of a basket."""
    _check_header(header, LONG)
    basket, item, user, drops = columns
    basket, item = _require("basket", basket), _require("item", item)
    if isinstance(data, Files) and (data.is_json or len(data.paths) > 1):
        _refuse_options("JSON Lines", separator=separator if data.is_json else None)
        data = replace(data, dialect=replace(data.dialect, delimiter=separator))
    else:
        data = _single(data)
    return text.read_long(
        data, separator, basket=basket, item=item, user=user, where=where, drops=drops
    )


def _check_header(header: bool | None, form: str) -> None:
    if header is False:
        raise ParameterError(
            "header", header, f"the form {form} needs a line of names", "Leave it out."
        )


def _single(data: Any) -> Any:
    """Return the one file that is read, or a stream."""
    if not isinstance(data, Files):
        return data
    if len(data.paths) > 1:
        raise DataError(
            "A pattern may match several files with one row per item of a basket (long), or of "
            "Parquet. Join files with one basket per line first: cat *.dat > all.dat"
        )
    if data.is_json:
        raise ParameterError(
            "form", None, "JSON Lines have one row per item of a basket (long)", "Leave it out."
        )
    return data


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
    values = list(chain.from_iterable(rows))
    if is_column(data) and not hasattr(getattr(data, "dtype", None), "pyarrow_dtype"):
        labels, codes = code_items(*number_objects(values))
    else:
        labels, codes = code_items(*number_list(values))
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    is_item = codes >= 0
    upto = np.concatenate(([0], np.cumsum(is_item)))
    ends = np.concatenate(([0], np.cumsum(lengths)))
    baskets = Baskets(upto[ends], codes[is_item], labels)
    refuse_rows(
        baskets,
        "Make them an array of booleans, numpy.array(baskets, bool). If 0 and 1 are items, rename "
        "them.",
    )
    return baskets


def _basket(row: Any, number: int) -> list[Any]:
    if isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable):
        reason = "not text" if isinstance(row, (str, bytes)) else f"not {type(row).__name__}"
        raise DataError(f"Basket {number}: a basket must be a list of items, {reason}.")
    return row if isinstance(row, list) else list(row)


def _require(option: str, name: T | None) -> T:
    if name is None:
        raise ParameterError.required(option, "the long form needs it", "Name a column.")
    return name


def _refuse_options(form_name: str, **options: object) -> None:
    refuse_given(options, f"it has no meaning with {form_name}")
