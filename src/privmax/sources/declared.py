"""Data with what its caller declares of it: a file of text, or one table of a database."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO, NamedTuple

from privmax.errors import ParameterError
from privmax.ledger.request import Request, is_strict
from privmax.sources.databases import open_database
from privmax.sources.dialect import PLAIN, Dialect
from privmax.sources.places import (
    declare,
    refuse_by_name,
    refuse_table,
    refuse_unreadable,
    require_table,
)


@dataclass(frozen=True)
class TextFile:
    r"""Name a file of text, and say how it is to be read.

    Args:
        file: A path, a pattern of paths, "-" for standard input, or a file opened in binary mode.
        delimiter: Of CSV: the character that separates values; by default the first line decides.
        encoding: Of CSV and JSON Lines: what the bytes mean, such as "cp1252"; by default UTF-8.
        header_is_public: Whether an error may name the columns of a CSV file, or in a check the
            keys of JSON Lines. By default it does not: without a line of names the first is data.

    Raises:
        ParameterError: An option is not allowed.

    Examples:
        >>> import io
        >>> import privmax
        >>> rows = "query;person\n" + "".join(f"café;{number}\n" for number in range(900))
        >>> file = TextFile(io.BytesIO(rows.encode("cp1252")), delimiter=";", encoding="cp1252")
        >>> privmax.select(file, item="query", user="person", epsilon=1, delta=1e-6).item
        'café'
    """

    file: str | os.PathLike[str] | BinaryIO
    delimiter: str | None = None
    encoding: str | None = None
    header_is_public: bool = False

    def __post_init__(self) -> None:
        self.dialect()

    def dialect(self) -> Dialect:
        """Return what is declared of the file."""
        return Dialect(self.delimiter, self.encoding, self.header_is_public)


@dataclass(frozen=True)
class Database:
    """Name a table of a database.

    Args:
        place: A URL such as "postgres://…", or the path of a file. It is left out of the `repr`:
            a URL may have a password.
        table: The table, perhaps with its schema: "sales.orders".

    Raises:
        ParameterError: The table is not named.

    Examples:
        >>> Database("postgres://reader:secret@db/shop", "searches")
        Database(table='searches')
    """

    place: str | os.PathLike[str] = field(repr=False)
    table: str

    def __post_init__(self) -> None:
        if not isinstance(self.table, str):
            raise ParameterError("table", self.table, "it must be the name of a table")


class Declared(NamedTuple):
    """Data as it was named, and what was declared of it.

    Attributes:
        data: A path, or the data itself.
        table: Of a database.
        dialect: Of a file of text, and whether this is a check only.
    """

    data: Any
    table: str | None = None
    dialect: Dialect = PLAIN

    @classmethod
    def of(cls, data: object, *, check: bool = False) -> Declared:
        """Return what data is declared to be. Nothing is asked of the data, not even its class.

        Examples:
            >>> Declared.of(TextFile("rows.csv", ";")).dialect.delimiter
            ';'
        """
        kind = type(data)
        plain = replace(PLAIN, check=True) if check else PLAIN
        if issubclass(kind, TextFile):
            assert isinstance(data, TextFile)
            return cls(data.file, None, replace(data.dialect(), check=check))
        if issubclass(kind, Database):
            assert isinstance(data, Database)
            return cls(data.place, data.table, plain)
        return cls(data, None, plain)

    def refuse(self, request: Request, *, as_table: bool = True) -> None:
        """Refuse data by its name alone, before anything is charged.

        Nothing is asked of the data itself, not even its class.

        Args:
            request: What will pay. A strict ledger needs the name of a table.
            as_table: Whether rows are counted, where an ending must say how a file is read.
        """
        refuse_by_name(self.data, self.dialect)
        refuse_unreadable(self.data, as_table=as_table)
        refuse_table(self.data, self.table)
        require_table(self.data, self.table, partial(is_strict, request))

    def open(self, stack: ExitStack) -> Any:
        """Return the data to read; what is opened is closed with the stack."""
        opened = open_database(self.data, self.table, stack)
        return opened if self.dialect == PLAIN else declare(opened, self.dialect, stack)
