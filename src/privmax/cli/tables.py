"""`--output FILE`: what a command released, as a table in a CSV, Parquet or JSON file.

The columns follow from the options alone, and every item is text: a file with no answer has the
same columns and no rows, so that neither the file nor its types tell more than the answer does.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from privmax.cli.group import Refused
from privmax.cli.messages import describe_error
from privmax.cli.report import explain_repetition
from privmax.display import escape_text, portable
from privmax.errors import ParameterError, PrivmaxError, explain_install
from privmax.writing import check_file, write

if TYPE_CHECKING:
    from privmax.release import Release

ENDINGS = (".csv", ".parquet", ".json")
RANK, ERROR = "rank", "error"
RELATIVE = (("relative", "number"), ("apart", "number"), ("close", "whole"))

_FORMULA = re.compile(r"'*([\t\r\n]|[\s\0\ufeff\u200b]*[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""The beginnings of texts that a spreadsheet would run, or that are marked already."""
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)


class OutputColumn(NamedTuple):
    """A column of the table.

    Attributes:
        kind: "text", "texts" (a list of them), "number" or "whole" (a number of rows, or 0 and 1).
    """

    name: str
    kind: str


@dataclass(frozen=True)
class OutputTable:
    """The content of the file of a release.

    Args:
        items: Its columns of items.
        split: An item as the texts of these columns; one of kind "texts" gets a list.
        count: What the column of noisy counts is called; None: none are asked for.
        ranked: Whether there is a column of ranks.
        relative: Whether there are columns of relative counts.
    """

    items: tuple[OutputColumn, ...]
    split: Callable[[Any], Sequence[object]]
    count: str | None = None
    ranked: bool = False
    relative: bool = False

    def columns(self) -> list[OutputColumn]:
        """Return all columns, in their order. None depends on what was released."""
        ranks = [OutputColumn(RANK, "whole")] if self.ranked else []
        counts = [] if self.count is None else [self.count, ERROR]
        relative = [OutputColumn(*one) for one in RELATIVE] if self.relative else []
        return [*ranks, *self.items, *(OutputColumn(name, "number") for name in counts), *relative]

    def rows(self, release: Release) -> list[list[object]]:
        """Return what was released, a row each."""
        rows: list[list[object]] = []
        numbers = release.ranks if self.ranked else ()
        for place, item in enumerate(release.items):
            ranks = [numbers[place]] if self.ranked else []
            counts: list[object] = []
            if self.count is not None:
                known = release.counts[place] if release.counts else None
                counts = [known, release.error if release.counts else None]
            relative: list[object] = []
            if self.relative and release.relative is not None and release.close is not None:
                relative = [release.relative[place], release.apart, int(release.close[place])]
            elif self.relative:  # a recorded list of an earlier version
                relative = [None] * len(RELATIVE)
            rows.append([*ranks, *self.split(item), *counts, *relative])
        return rows


def item_table(
    names: Sequence[str],
    has_counts: bool,
    *,
    ranked: bool = False,
    relative: bool = False,
    by: str | None = None,
) -> OutputTable:
    """Return the table of items that columns name, with their noisy counts where there are some.

    Args:
        names: The columns, which together name an item.
        has_counts: Whether counts were asked for.
        ranked: Whether there is a column of ranks.
        relative: Whether there are columns of how far apart the items are.
        by: The column of groups, if items are released with theirs.
    """

    def split(item: object) -> Sequence[object]:
        return item if len(names) > 1 and isinstance(item, tuple) else [item]

    def split_group(pair: Any) -> Sequence[object]:
        group, item = pair
        return [group, *split(item)]

    count = "count" if has_counts else None
    if by is not None:
        columns = tuple(OutputColumn(name, "text") for name in (by, *names))
        return OutputTable(columns, split_group, count, ranked, relative)
    columns = tuple(OutputColumn(name, "text") for name in names)
    return OutputTable(columns, split, count, ranked, relative)


def check_output(file: str) -> None:
    """Refuse, before anything is charged, a file that could not be written."""
    check_file(file, "output", ENDINGS)
    if _ending(file) == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401  # it is not needed otherwise
        except ImportError:
            raise ParameterError(
                "output", file, "Parquet needs the package pyarrow, which is not installed",
                f"{explain_install('sql')} Or write a .csv or .json file.",
            ) from None  # fmt: skip


def check_columns(file: str, table: OutputTable) -> None:
    """Refuse a table with two columns of one name; JSON has no columns."""
    names = [column.name for column in table.columns()]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None and _ending(file) != ".json":
        reason = f"the table would have two columns called {twice!r}"
        raise ParameterError("output", file, reason, "Write a .json file.")


def write_output(file: str, table: OutputTable, release: Release, text: str, as_json: bool) -> None:
    """Write the file; to be called when the release is printed, so that a failure loses nothing.

    Args:
        text: The release as --json prints it.
    """
    try:
        write(_content(_ending(file), table, release, text), file, "output")
    except Exception as error:
        message = f"--output: {file} could not be written ({type(error).__name__})."
        message = describe_error(error) if isinstance(error, PrivmaxError) else message
        stands = "The answer above is valid and charged."
        raise Refused(f"{message} {stands} {explain_repetition(release, 'the file')}") from None
    if not as_json:
        click.echo(f"{'output':11}{escape_text(file)}")


def _content(ending: str, table: OutputTable, release: Release, text: str) -> str | bytes:
    if ending == ".json":
        return f"{text}\n"
    if ending == ".csv":
        return to_csv(table, release)
    return _parquet(table.columns(), table.rows(release))


def to_csv(table: OutputTable, release: Release) -> bytes:
    """Return a release as CSV: text in quotes, numbers without, nothing where there is none."""
    columns = table.columns()
    lines = [[_quote(column.name) for column in columns]]
    for row in table.rows(release):
        lines.append([_cell(column, value) for column, value in zip(columns, row, strict=True)])
    text = "".join(f"{','.join(line)}\n" for line in lines)
    return text.encode("utf-8", "backslashreplace")  # half of a surrogate pair is no text


def _cell(column: OutputColumn, value: object) -> str:
    if column.kind in ("number", "whole"):
        return "" if value is None else str(value)
    if column.kind == "texts":
        assert isinstance(value, Sequence)
        return _quote(json.dumps([_text(one) for one in value], ensure_ascii=False))
    return _quote(guard(_text(value)))


def guard(text: str) -> str:
    """Return the text with an apostrophe before it where a spreadsheet would take it for a formula.

    Without the first apostrophe of such a text it is the label again.

    Examples:
        >>> guard("tea"), guard("=1+1"), guard("'=1+1"), guard("-12.5"), guard("'tis")
        ('tea', "'=1+1", "''=1+1", '-12.5', "'tis")
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def _quote(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _parquet(columns: Sequence[OutputColumn], rows: Sequence[Sequence[object]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {
        "text": pa.string(),
        "texts": pa.list_(pa.string()),
        "number": pa.float64(),  # a whole number may be too large for 64 bits
        "whole": pa.int64(),
    }
    arrays = []
    for place, column in enumerate(columns):
        values = [_plain(column, row[place]) for row in rows]
        arrays.append(pa.array(values, kinds[column.kind]))
    names = [_clean(column.name) for column in columns]
    file = io.BytesIO()
    pq.write_table(pa.table(arrays, names=names), file)
    return file.getvalue()


def _plain(column: OutputColumn, value: object) -> object:
    """Return a value that fits the type of its column, whatever was released."""
    if column.kind == "texts":
        assert isinstance(value, Sequence)
        return [_clean(_text(one)) for one in value]
    if column.kind == "text":
        return _clean(_text(value))
    if column.kind == "whole" or not isinstance(value, int | float):
        return value
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _text(value: object) -> str:
    return str(portable(value))


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _ending(file: str) -> str:
    return Path(file).suffix.lower()
