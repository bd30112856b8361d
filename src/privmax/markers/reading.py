"""Studies as counts: people by genotype, for each marker and group.

What a table is follows from the options and from its columns, never from the values. A value is a
genotype, missing, or refused, and is judged by itself. A person without a genotype at a marker
counts there as one with `impute` copies, so that everyone counts once at every marker and group
sizes stay what they are.

Proof:      docs/proofs/markers.md
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError, refuse_given
from privmax.labels import label_by_value, plain_label
from privmax.markers.scores import Alleles, Genotypes, StudyGroups
from privmax.numbers import whole
from privmax.sources.asking import ask
from privmax.sources.containers.pandas import is_frame, read_genotypes
from privmax.sources.databases import open_database
from privmax.sources.dialect import PLAIN, Dialect
from privmax.sources.engines import engine_of, is_read_once
from privmax.sources.places import TEXT, Files, declare, find_files
from privmax.sources.reading import as_table
from privmax.sources.roles import column_of
from privmax.universe import Universe

NULL = "null"
COPIES = (0, 1, 2)

_MARKERS = 256
"""Columns that are looked at together."""

_UNKNOWN = ("", "NA", "NAN", "NULL", ".")
"""The spellings of null in text files."""

_NUMBER = "[+-]?[0-9]{1,9}([.]0*)?"
"""The spelling of whole numbers there."""

_NO_GENOTYPE = -(1 << 40)
"""The meaning of other text."""

_COUNTING = "the counting of genotypes"

_STRANGE = (
    "A genotype is not 0, 1 or 2. Count copies of one allele, and if some are unknown, name the "
    "value for that: missing=-1, or missing='null'. If the table has columns beside status and "
    "markers, list the markers: markers=['rs1', 'rs2']."
)
_SIZES = (
    "The study does not have as many people in each group as cases= and controls= say. If it "
    "should, check case=, the value of status that cases have."
)


@dataclass(frozen=True, kw_only=True)
class StudyLayout:
    """The columns of a table of a study; public.

    Args:
        groups: How many people each group has.
        names: Of the markers; None: positions.
        number: Of markers.
        status: Who is a case: the name of a column, or beside an array the values; None: the table
            has counts.
        case: The value that says so.
        marker, genotype, person: Columns of a table with a row for each genotype; None: a marker
            has a column.
        missing: What stands for an unknown genotype: a whole number, or "null"; None: there is
            none.
        impute: As how many copies that counts.
        table: Of a database.
        dialect: What is declared of a file of text, and whether this is a check only.
    """

    groups: StudyGroups
    names: Sequence[Any] | None
    number: int
    status: Any = None
    case: object = 1
    marker: str | None = None
    genotype: str | None = None
    person: str | None = None
    missing: int | str | None = None
    impute: int = 0
    table: str | None = None
    dialect: Dialect = PLAIN

    @classmethod
    def of(
        cls, data: Any, groups: StudyGroups, markers: Iterable[Any] | None, **options: Any
    ) -> StudyLayout:
        """Read the layout that the options of `top_markers` describe.

        Of the data its columns and shape are looked at, nothing else.

        Raises:
            ParameterError: The options do not fit each other or the shape of the data.
        """
        made = cls(groups=groups, names=None, number=1, **options)
        made._check()
        names = None if markers is None else _read_names(markers)
        if names is None and isinstance(made.status, str) and made.marker is None:
            names = _other_columns(data, made.status)
        number = _width(data, made) if names is None else len(names)
        if names is not None and made.marker is None and not isinstance(made.status, str):
            width = _width(data, made)
            if width != number:
                raise ParameterError(
                    "markers", f"<{number} names>", f"there are {width} markers", "Name each once."
                )
        return cls(groups=groups, names=names, number=number, **options)

    def _check(self) -> None:
        if isinstance(self.impute, bool) or self.impute not in COPIES:
            raise ParameterError("impute", self.impute, "it must be 0, 1 or 2 copies")
        if self.missing is not None and self.missing != NULL:
            if isinstance(self.missing, bool) or not isinstance(self.missing, int):
                raise ParameterError(
                    "missing", self.missing, 'it must be a whole number, or "null"',
                    'For example -1. "null" is also NaN.',
                )  # fmt: skip
            whole("missing", self.missing, least=-(1 << 31))
            if self.missing in COPIES:
                raise ParameterError(
                    "missing", self.missing, "that is a genotype", 'For example -1, or "null".'
                )
        if not isinstance(self.case, (str, bool, int, float, np.number, np.bool_)):
            raise ParameterError("case", self.case, "it must be text, a number, or True or False")
        long = {"marker": self.marker, "genotype": self.genotype, "person": self.person}
        named = [name for name, value in long.items() if value is not None]
        if named and len(named) < 3:
            name = next(name for name, value in long.items() if value is None)
            raise ParameterError.required(
                name, "a table with a row for each genotype needs marker, genotype and person",
                "Name its column.",
            )  # fmt: skip
        if named and not isinstance(self.status, str):
            raise ParameterError.required(
                "status", "the cases must be known", "Name the column that marks them."
            )
        columns = [self.status, *long.values()] if named else []
        if len(set(columns)) < len(columns):
            raise ParameterError(
                "status", self.status, "two of status, marker, genotype and person name one column",
                "Name four columns.",
            )  # fmt: skip
        if not named and not isinstance(self.status, str):
            refuse_given({"table": self.table}, "an array is not a table of a database")


def count_genotypes(data: Any, layout: StudyLayout, stack: ExitStack) -> Genotypes | Alleles:
    """Return the counts of a study; what must be open meanwhile is closed with `stack`.

    Raises:
        DataError: A value is no genotype, or the groups are not as large as was said.

    Examples:
        >>> matrix = np.array([[0, 2], [1, 2], [0, 0]])
        >>> layout = StudyLayout.of(matrix, StudyGroups(2, 1), None, status=[1, 1, 0])
        >>> with ExitStack() as stack:
        ...     count_genotypes(matrix, layout, stack).tolist()
        [[[1, 1, 0], [1, 0, 0]], [[0, 0, 2], [1, 0, 0]]]
    """
    if layout.marker is not None:
        return _count_rows(data, layout, stack)
    if isinstance(layout.status, str):
        return _fill(_count_columns(data, layout, stack), layout)
    if layout.status is None:
        return _read_counts(data, layout)
    is_case = _cases(np.asarray(layout.status), layout)
    blocks = (data[:, start : start + _MARKERS] for start in range(0, layout.number, _MARKERS))
    return _fill((_count(np.asanyarray(block), is_case, layout) for block in blocks), layout)


def _read_names(markers: Iterable[Any]) -> list[Any]:
    """Return the names of markers, each once."""
    if isinstance(markers, (str, bytes)):
        raise ParameterError("markers", markers, "it must be a list", "For example ['rs12'].")
    try:
        return Universe.of(list(markers), "markers").plain_labels()
    except ParameterError as error:
        raise ParameterError("markers", "<names>", error.allowed, error.remedy) from None


def _other_columns(data: Any, status: str) -> list[Any] | None:
    """Return the names of all columns but one, where the data tells them without being read."""
    schema = getattr(data, "schema", None)
    columns = getattr(schema, "names", None) if _is_arrow(data) else getattr(data, "columns", None)
    if columns is None and hasattr(data, "shape"):
        raise ParameterError(
            "status", status, "an array has no columns", "Give the status of everyone beside it."
        )
    if columns is None or callable(columns):
        raise ParameterError.required(
            "markers", "the list of markers is public, and is not read from the data",
            "Name the columns of genotypes.",
        )  # fmt: skip
    names = [name for name in columns if name != status]
    if len(names) == len(list(columns)):
        raise ParameterError(
            "status", status, "there is no such column", "Name the column that marks the cases."
        )
    return names


def _is_arrow(data: Any) -> bool:
    return type(data).__module__.startswith("pyarrow")


def _width(data: Any, layout: StudyLayout) -> int:
    """Return how many markers an array holds, by its shape."""
    if layout.marker is not None:
        raise ParameterError.required(
            "markers", "the list of markers is public, and is not read from the data",
            "Name all markers of the study.",
        )  # fmt: skip
    shape = getattr(data, "shape", None)
    if not isinstance(shape, tuple) or _is_arrow(data):
        raise ParameterError(
            "table", f"<{type(data).__name__}>", "without the name of a status column it must be "
                                                 "an array or a frame of counts",
            "Give an array, or name the columns: status, and marker, genotype and person where a "
            "row is one genotype.",
        )  # fmt: skip
    if layout.status is not None:
        if hasattr(data, "columns"):
            raise ParameterError(
                "status", f"<{type(layout.status).__name__}>", "the columns of a frame have names",
                "Make it a column of the frame, and name that column.",
            )  # fmt: skip
        if len(shape) != 2:
            raise ParameterError(
                "table", f"<shape {shape}>", "genotypes have a row for each person and a column "
                                             "for each marker"
            )  # fmt: skip
        return whole("markers", int(shape[1]))
    if shape[1:] in ((2,), (6,), (2, 3)):
        return whole("markers", int(shape[0]))
    raise ParameterError(
        "table", f"<shape {shape}>", "counts have a row for each marker, with 2 numbers (alleles "
        "of cases and controls) or 2 times 3 (people by genotype)",
        "If it has genotypes, with one row per person, give status.",
    )  # fmt: skip


def _read_counts(data: Any, layout: StudyLayout) -> Genotypes | Alleles:
    counts = np.asarray(data.to_numpy() if hasattr(data, "to_numpy") else data)
    if counts.dtype.kind not in "iu":
        raise DataError("Counts must be of a type of whole numbers, such as int64.")
    if counts.ndim == 2 and counts.shape[1] == 6:
        counts = counts.reshape(-1, 2, 3)
    sizes = np.array(layout.groups, np.int64)
    high = 2 * sizes if counts.ndim == 2 else sizes[:, None]
    if (counts < 0).any() or (counts > high).any():
        raise DataError("A count is negative, or larger than its group.")
    counts = counts.astype(np.int64)
    if counts.ndim == 2:
        return counts
    absent = sizes - counts.sum(axis=2)
    if (absent < 0).any() or (layout.missing is None and absent.any()):
        raise DataError(
            "The genotypes of a group do not add up to its size. Where some are unknown, give "
            "missing."
        )
    counts[:, :, layout.impute] += absent
    return counts


def _cases(status: NDArray[Any], layout: StudyLayout) -> NDArray[np.bool_]:
    """Return which rows are cases."""
    with np.errstate(all="ignore"):
        is_case = np.asarray(status == layout.case, np.bool_)
    cases = int(is_case.sum())
    if is_case.ndim != 1 or (cases, is_case.size - cases) != tuple(layout.groups):
        raise DataError(_SIZES)
    return is_case


def _count(block: NDArray[Any], is_case: NDArray[np.bool_], layout: StudyLayout) -> Genotypes:
    """People by genotype at some markers; everyone has one, or counts as if they had."""
    if isinstance(block, np.ma.MaskedArray):
        raise DataError("Genotypes are a masked array. Fill it (.filled(-1)), and set missing=-1.")
    if block.dtype.kind not in "biuf":
        raise DataError("Genotypes must be of a type of numbers, such as int8.")
    if len(block) != len(is_case):
        raise DataError("There are not as many rows of genotypes as there are statuses.")
    counts = np.empty((block.shape[1], 2, 3), np.int64)
    for group, who in enumerate((is_case, ~is_case)):
        part = block[who]
        for copies in COPIES:
            counts[:, group, copies] = (part == copies).sum(axis=0)
        absent = _is_missing(part, layout).sum(axis=0)
        if (counts[:, group].sum(axis=1) + absent != len(part)).any():
            raise DataError(_STRANGE)
        counts[:, group, layout.impute] += absent
    return counts


def _is_missing(part: NDArray[Any], layout: StudyLayout) -> NDArray[np.bool_]:
    if layout.missing is None:
        return np.zeros(part.shape, np.bool_)
    missing: NDArray[np.bool_] = (
        part != part if layout.missing == NULL else part == layout.missing  # NaN
    )
    return missing


def _fill(blocks: Iterable[Genotypes], layout: StudyLayout) -> Genotypes:
    counts = np.empty((layout.number, 2, 3), np.int64)
    start = 0
    for block in blocks:
        counts[start : start + len(block)] = block
        start += len(block)
    return counts


def _open(
    data: Any, layout: StudyLayout, columns: Sequence[str], stack: ExitStack
) -> tuple[Any, Any, bool]:
    """Open the data as an Ibis table, with its labels of Python objects, if it has such.

    The last value says whether it is a file of text, whose genotypes are still to be parsed.
    """
    numbered: dict[str, list[Any]] = {}
    numbers = [name for name in columns if name not in (layout.status, layout.marker)]
    if layout.person in numbers:
        numbers.remove(layout.person)
    opened: Any = declare(open_database(data, layout.table, stack), layout.dialect, stack)
    is_text = _is_text(opened)
    if is_frame(opened):
        opened = opened.assign(
            **{
                name: read_genotypes(opened[name], _NO_GENOTYPE)
                for name in numbers
                if list(opened.columns).count(name) == 1
            }
        )
    table = as_table(opened, columns, [] if is_text else numbers, True, stack, numbered)
    if table is None:
        raise ParameterError(
            "table", f"<{type(data).__name__}>", "columns are named, but it has none",
            "Give a frame, a path, a DuckDB relation or an Ibis table.",
        )  # fmt: skip
    if is_read_once(opened):
        table = engine_of(table).keep(table, stack)
    return table, numbered, is_text


def _is_text(data: Any) -> bool:
    """Return whether the data is a file in which all values are text."""
    if isinstance(data, (str, os.PathLike)):
        data = find_files(data)
    return isinstance(data, io.IOBase) or (isinstance(data, Files) and data.kind in TEXT)


def _parse(column: Any) -> Any:
    """Parse genotypes of a file of text, as DuckDB reads them.

    They are whole numbers, perhaps with decimals that are 0; null where nothing or NA is written;
    and otherwise a number that is no genotype.
    """
    text = column.strip()
    is_unknown = text.isnull() | text.upper().isin(_UNKNOWN)
    is_number = text.re_search(f"^{_NUMBER}$")
    number = text.re_extract("^[+-]?[0-9]+", 0).try_cast("int64")
    return is_unknown.ifelse(None, is_number.ifelse(number, _NO_GENOTYPE)).cast("int64")


def _parse_column(column: Any) -> NDArray[np.float64]:
    """Parse a column that was read as `_parse` does, NaN for null.

    DuckDB would plan for minutes what it does with hundreds of columns.
    """
    encoded = column.combine_chunks().dictionary_encode()
    numbers = [_parse_text(text) for text in encoded.dictionary.to_pylist()]
    places = encoded.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)
    values: NDArray[np.float64] = np.array([*numbers, np.nan])[places]
    return values


def _parse_text(text: str) -> float:
    text = text.strip(" \t\n\r\v\f")  # as Ibis does
    if text.upper() in _UNKNOWN:
        return np.nan
    return float(text) if re.fullmatch(_NUMBER, text, re.ASCII) else _NO_GENOTYPE


def _count_columns(data: Any, layout: StudyLayout, stack: ExitStack) -> Iterator[Genotypes]:
    """Count a table with a row per person and a column per marker, some columns at a time."""
    names = list(layout.names or ())
    if not all(isinstance(name, str) for name in names):
        raise ParameterError("markers", "<names>", "columns have names that are text")
    table, numbered, is_text = _open(data, layout, [layout.status, *names], stack)
    for option, name in (("status", layout.status), *(("markers", name) for name in names)):
        column_of(table, option, name)
    if layout.status in names:
        raise ParameterError(
            "markers", layout.status, "that column marks the cases", "Leave it out."
        )
    chunks = [names[start : start + _MARKERS] for start in range(0, len(names), _MARKERS)]
    engine_of(table).begin(table, stack, passes=len(chunks))
    for chunk in chunks:
        genotypes = [_as_number(table[name]).name(name) for name in chunk]
        rows = ask(_COUNTING, table.select(_status(table, layout, numbered), *genotypes).to_pyarrow)
        is_case = rows.column(0).to_numpy(zero_copy_only=False).astype(np.bool_)
        columns = [rows.column(name) for name in chunk]
        block = [_parse_column(one) if is_text else one.to_numpy() for one in columns]
        if any(column.dtype.kind not in "biuf" for column in block):
            raise DataError("Genotypes must be of a type of numbers, such as int8.")
        yield _count(
            np.column_stack(block), _cases(is_case.astype(int), _layout_of_cases(layout)), layout
        )


def _as_number(column: Any) -> Any:
    """Return a column of genotypes, of a type that is the same whether or not some are null."""
    if not column.type().is_boolean():
        return column
    return column.isnull().ifelse(None, column.ifelse(1, 0))


def _layout_of_cases(layout: StudyLayout) -> StudyLayout:
    """Return the same, of a status that is 1 for cases."""
    return StudyLayout(groups=layout.groups, names=None, number=1)


def _status(table: Any, layout: StudyLayout, numbered: dict[str, list[Any]]) -> Any:
    """Return whether someone is a case, as a column of the engine; False where it is null."""
    column, case = column_of(table, "status", layout.status), layout.case
    if layout.status in numbered:
        labels, label = numbered[layout.status], label_by_value(case)
        kind = _kind_of(labels)
        if kind not in (None, _kind_of([label])):
            raise _misfit(layout, f"has {kind}", kind == "text")
        place = labels.index(label) if label in labels else -1
        return (column == place).fill_null(False).name("privmax_case")
    is_boolean = column.type().is_boolean()
    if is_boolean:
        value: Any = bool(case)
    else:
        value = case if isinstance(case, str) else Decimal(str(+case))  # type: ignore[operator]
    pair = engine_of(table).operands(column, value)
    if pair is None or (is_boolean and case not in (False, True)):
        raise _misfit(layout, f"is of type {column.type()}", column.type().is_string())
    return (pair[0] == pair[1]).fill_null(False).name("privmax_case")


def _misfit(layout: StudyLayout, what: str, is_text: bool) -> ParameterError:
    """Say that no one can be a case, by what the column of status holds."""
    example = f", such as case={str(layout.case)!r}" if is_text else ""
    return ParameterError(
        "case", layout.case, f"the column {layout.status!r} {what}",
        f"Give the value that cases have there{example}.",
    )  # fmt: skip


def _kind_of(labels: Sequence[Any]) -> str | None:
    """Return what all of some labels are: text, or numbers; None: they are not alike."""
    kinds = {"text" if isinstance(label, str) else "numbers" for label in labels}
    return kinds.pop() if len(kinds) == 1 else None


def _count_rows(data: Any, layout: StudyLayout, stack: ExitStack) -> Genotypes:
    """Return a table with a row for each person and marker, counted by its engine.

    Of several genotypes of a person at a marker the largest counts. Rows of other markers are left
    out.
    """
    marker, genotype, person = layout.marker, layout.genotype, layout.person
    assert marker is not None
    assert genotype is not None
    assert person is not None
    needed = [marker, genotype, person, layout.status]
    table, numbered, is_text = _open(data, layout, needed, stack)
    engine = engine_of(table)
    kind = column_of(table, "marker", marker).type()
    copies = column_of(table, "genotype", genotype)
    copies = _parse(copies) if is_text else copies
    if not copies.type().is_integer():
        if not copies.type().is_floating():
            raise ParameterError(
                "genotype", genotype, f"the column is of type {copies.type()}",
                "It must be one of numbers: copies of the allele.",
            )  # fmt: skip
        copies = engine.present(copies)
    rows = table.select(
        marker=engine.key(table[marker]),
        genotype=copies,
        person=engine.key(column_of(table, "person", person)),
        is_case=_status(table, layout, numbered).ifelse(1, 0),
    )
    if marker in numbered:
        held_in = _kind_of(numbered[marker])
    else:
        held_in = "text" if kind.is_string() else "numbers" if kind.is_numeric() else None
    _check_kind(layout.names or (), held_in)
    engine.begin(table, stack, passes=2)
    _check_people(engine, rows, layout)
    is_genotype = rows.genotype.isin(COPIES)
    known = is_genotype | rows.genotype.isnull() | (rows.genotype == _number_for_missing(layout))
    single = rows.mutate(
        genotype=is_genotype.ifelse(rows.genotype, None).cast("int64"),
        strange=known.fill_null(True).ifelse(0, 1),
    )
    single = single.group_by(["person", "marker"]).agg(
        genotype=single.genotype.max(), strange=single.strange.max(), is_case=single.is_case.max()
    )
    tally = single.group_by(["marker", "is_case", "genotype"]).agg(
        people=single.count(), strange=single.strange.max()
    )
    tally = tally.select(
        marker=engine.readable(tally.marker, kind), is_case=tally.is_case,
        genotype=tally.genotype, strange=tally.strange, people=tally.people,
    )  # fmt: skip
    counts = np.zeros((layout.number, 2, 3), np.int64)
    place = {label_by_value(name): number for number, name in enumerate(layout.names or ())}
    for value, is_case, copies, strange, people in ask(_COUNTING, engine.rows, tally):
        if value is None:
            continue
        label = numbered[marker][value] if marker in numbered else engine.label(value, kind)
        number = place.get(label_by_value(plain_label(label)))
        if number is None:
            continue
        if strange:
            raise DataError(_STRANGE)
        if copies is not None:
            counts[number, 1 - is_case, int(copies)] += people
    return _complete(counts, layout)


def _number_for_missing(layout: StudyLayout) -> int:
    """Return the number that stands for an unknown genotype; where there is none, a genotype."""
    return layout.missing if isinstance(layout.missing, int) else COPIES[0]


def _check_kind(names: Sequence[Any], kind: str | None) -> None:
    """Refuse names that no value of a column can have.

    No person would have a genotype, and the answer would be a marker at random.

    Args:
        kind: What the column has: text or numbers; None: it may hold both.
    """
    is_text = kind == "text"
    if kind is not None and any(isinstance(name, str) != is_text for name in names):
        raise ParameterError(
            "markers", "<names>", f"the column of markers has {kind}",
            "Give names as text." if is_text else "Give names as numbers.",
        )  # fmt: skip


def _check_people(engine: Any, rows: Any, layout: StudyLayout) -> None:
    """Refuse people without a name or in both groups, and groups that are too large."""
    both = rows.group_by("person").agg(low=rows.is_case.min(), high=rows.is_case.max())
    groups = both.group_by(["low", "high"]).agg(
        people=both.count(), nameless=both.person.isnull().ifelse(1, 0).sum()
    )
    sizes = {(0, 0): 0, (1, 1): 0}
    for low, high, people, nameless in ask(_COUNTING, engine.rows, groups):
        if nameless:
            raise DataError(
                "A row has no person. Fill the column in: group sizes are public, so no row can be "
                "left out."
            )
        if low != high:
            raise DataError(
                "A person is a case in one row and not in another. Give everyone one status."
            )
        sizes[low, high] += people
    cases, controls = layout.groups
    if sizes[1, 1] > cases or sizes[0, 0] > controls:
        raise DataError(_SIZES)


def _complete(counts: Genotypes, layout: StudyLayout) -> Genotypes:
    """Return the counts with everyone who has no row at a marker."""
    left = np.array(layout.groups, np.int64) - counts.sum(axis=2)
    if layout.missing is None and left.any():
        raise DataError(
            "Not everyone has a genotype at every marker, or the study has fewer people than "
            "cases and controls say. Where genotypes are unknown, give missing='null'."
        )
    counts[:, :, layout.impute] += left
    return counts
