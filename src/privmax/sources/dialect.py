"""The dialect of a text file, as far as the caller declares it: all of it is public.

What is not declared follows from the name of the file and from its first line, as docs/inputs.md
has it, and never from rows.
"""

from __future__ import annotations

import codecs
import io
from dataclasses import dataclass
from typing import Any

from privmax.errors import DataError, ParameterError, nearest
from privmax.numbers import flag

_PIECE = 1 << 16
"""Bytes that are decoded at a time."""

_ODD = ("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "mbcs", "oem")
"""Codecs of Python that no file of text is written in, or that depend on the machine."""

_STATEFUL = ("iso2022", "hz", "utf-7")
"""The beginnings of names of codecs in which earlier bytes decide the meaning of later ones, beyond
the end of a line: there one row decides how the rows after it are read.
"""

_USUAL = ("cp1252", "latin-1", "iso8859-15", "utf-16", "cp1250", "cp1251", "mac-roman", "gb18030",
          "shift-jis", "euc-jp", "euc-kr", "big5", "koi8-r", "cp437", "cp850")  # fmt: skip


class Encoding(str):
    """The one name of a codec, which remembers how the caller spelled it, for messages.

    Examples:
        >>> latin = Encoding("iso8859-1", "latin-1")
        >>> print(latin, latin.spelling)
        iso8859-1 latin-1
    """

    spelling: str

    def __new__(cls, name: str, spelling: str) -> Encoding:
        made = super().__new__(cls, name)
        made.spelling = spelling if spelling.isprintable() else name
        return made


@dataclass(frozen=True)
class Dialect:
    """The declared dialect of a text file.

    Args:
        delimiter: One character that separates the values of CSV; None: the first line decides.
        encoding: What the bytes mean, as the name of a codec; None: UTF-8.
        header_is_public: Whether errors may name the columns, or the keys of JSON Lines.
        check: Whether a key that no line of JSON Lines has is an error. That depends on the rows,
            so it is for a check, which releases nothing.

    Examples:
        >>> Dialect(";", "Windows-1252")
        Dialect(delimiter=';', encoding='cp1252', header_is_public=False, check=False)
    """

    delimiter: str | None = None
    encoding: str | None = None
    header_is_public: bool = False
    check: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "delimiter", read_delimiter("delimiter", self.delimiter))
        object.__setattr__(self, "encoding", _read_encoding(self.encoding))
        for name in ("header_is_public", "check"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))

    def refuse(self, kind: str | None) -> None:
        """Refuse what has no meaning for data of a kind.

        Kinds are "csv", "json", "other", or anything else, which is not text.
        """
        if self.delimiter is not None and kind not in ("csv", "other"):
            raise ParameterError(
                "delimiter", self.delimiter, "only CSV has one, and this data is not CSV",
                "Leave it out.",
            )  # fmt: skip
        if self.encoding is not None and kind not in ("csv", "json", "other"):
            raise ParameterError(
                "encoding", _spelling(self.encoding), "it is for files of text, such as CSV",
                "Leave it out.",
            )  # fmt: skip


def read_delimiter(option: str, value: str | None) -> str | None:
    r"""Return the character that separates values; `\t`, as typed on a command line, is a tab.

    Examples:
        >>> read_delimiter("delimiter", "\\t"), read_delimiter("delimiter", ";")
        ('\t', ';')
    """
    if value is None:
        return None
    if value == r"\t":
        return "\t"
    if not isinstance(value, str) or len(value) != 1 or value in '"\r\n\0':
        raise ParameterError(
            option, value, "it must be one character, and not a quote or a line break",
            "For example a semicolon, or \\t for a tab.",
        )  # fmt: skip
    return value


def _read_encoding(value: str | None) -> Encoding | None:
    """Return the one name of a codec; None for UTF-8, which files are read as anyway."""
    if value is None or isinstance(value, Encoding):
        return value
    codec = None
    if isinstance(value, str):
        try:
            codec = codecs.lookup(value)
        except (LookupError, ValueError):  # a zero in the name
            codec = None
    if codec is None or not codec._is_text_encoding or codec.name.replace("_", "-") in _ODD:
        close = nearest(str(value), _USUAL)
        hint = f"Did you mean {close}?" if close else "For example cp1252, latin-1 or utf-16."
        raise ParameterError("encoding", value, "it is not a text encoding that Python knows", hint)
    if codec.name.startswith(_STATEFUL):
        raise ParameterError(
            "encoding", value, "in it, earlier rows decide how later ones are read",
            "Convert the file to UTF-8 first, for example with iconv.",
        )  # fmt: skip
    return None if codec.name in ("utf-8", "utf-8-sig") else Encoding(codec.name, str(value))


def _spelling(encoding: str) -> str:
    """Return the name of an encoding as the caller gave it."""
    return encoding.spelling if isinstance(encoding, Encoding) else encoding


PLAIN = Dialect()
"""Nothing is declared."""


class Transcoded(io.RawIOBase):
    """A binary file in a declared encoding, as UTF-8.

    Args:
        file: Gives the bytes; it stays open.
        encoding: What they mean; None: they are UTF-8 already.
        dialect: What else is declared of the file.

    Examples:
        >>> Transcoded(io.BytesIO("é".encode("cp1252")), "cp1252").read().decode()
        'é'
    """

    def __init__(self, file: Any, encoding: str | None, dialect: Dialect = PLAIN) -> None:
        super().__init__()
        self.dialect = dialect
        self._file, self._encoding, self._rest, self._ended = file, encoding, b"", False
        self._decode = codecs.getincrementaldecoder(encoding or "utf-8")().decode

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and not self._ended:
            piece = self._file.read(_PIECE) or b""
            self._ended = not piece
            self._rest = piece if self._encoding is None else self._recode(piece)
        number = min(len(buffer), len(self._rest))
        buffer[:number], self._rest = self._rest[:number], self._rest[number:]
        return number

    def _recode(self, piece: bytes) -> bytes:
        """Bytes as UTF-8. What cannot be decoded is refused, out here where no error quotes it."""
        text = None
        try:
            text = self._decode(piece, self._ended).encode()
        except UnicodeError:
            text = None
        if text is None:
            raise DataError(
                f"The file is not text in {_spelling(self._encoding or '')}, as encoding says. "
                "Give the encoding that it was written in."
            )
        return text


def dialect_of(data: object) -> Dialect:
    """Return what was declared of data.

    `PLAIN` where nothing was, as of anything that is not text.
    """
    is_ours = type(data).__module__.startswith("privmax.")  # a frame may have such a column
    dialect = getattr(data, "dialect", PLAIN) if is_ours else PLAIN
    return dialect if isinstance(dialect, Dialect) else PLAIN
