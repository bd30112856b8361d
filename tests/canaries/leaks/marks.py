"""Marks: numbers and strings so rare that whoever shows one has it from the data.

A mark is looked for in every form in which a program writes such a value down: as text in several
encodings and escapes, as digits with and without separators, as bytes of numbers, as a digest.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import struct
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

Value = str | int | float


@dataclass(frozen=True)
class Mark:
    """A value that is nowhere but in the data.

    name    what findings call it, such as "label of the runner-up": a finding never shows the value
    value   the value itself
    core    of a text: a part that is rare by itself, so that a shortened text is found, too
    """

    name: str
    value: Value
    core: str = ""


@dataclass(frozen=True)
class Finding:
    """A mark where it must not be."""

    mark: str
    form: str
    place: str
    where: str

    def __str__(self) -> str:
        return f"{self.place}: {self.mark} ({self.form}) in {self.where}"


Form = tuple[str, bytes, str | None]
"""What it is called, what must be there, and, where that may come by chance, a pattern that must
match as well.
"""


def find(data: bytes | str, marks: Iterable[Mark]) -> Iterator[tuple[Mark, str]]:
    """The marks that stand in the data, each with the first form in which it does."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    lower = raw.lower()
    for mark in marks:
        for form, part, pattern in forms(mark):
            if part in lower and (pattern is None or re.search(pattern.encode(), lower)):
                yield mark, form
                break


@lru_cache(maxsize=4096)
def forms(mark: Mark) -> tuple[Form, ...]:
    """All forms of a mark, in lower case: what is searched is, too."""
    made = _text_forms(mark) if isinstance(mark.value, str) else _number_forms(mark.value)
    unique = {part.lower(): (form, part.lower(), pattern) for form, part, pattern in made}
    return tuple(unique.values())


ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "UTF-8": str.encode,
    "UTF-16": lambda text: text.encode("utf-16-le"),
    "UTF-16, big end first": lambda text: text.encode("utf-16-be"),
    "UTF-32": lambda text: text.encode("utf-32-le"),
    "JSON escapes": lambda text: json.dumps(text)[1:-1].encode(),
    "Python's repr": lambda text: repr(text)[1:-1].encode(),
    "Python's ascii": lambda text: ascii(text)[1:-1].encode(),
    "HTML escapes": lambda text: html.escape(text).encode(),
    "HTML numbers": lambda text: "".join(
        c if c.isascii() else f"&#{ord(c)};" for c in text
    ).encode(),
    "HTML hexadecimal numbers": lambda text: "".join(
        c if c.isascii() else f"&#x{ord(c):x};" for c in text
    ).encode(),
    "percent escapes": lambda text: quote(text, safe="").encode(),
    "hexadecimal digits": lambda text: text.encode().hex().encode(),
    "bytes as Python shows them": lambda text: repr(text.encode())[2:-1].encode(),
    "surrogate escapes": lambda text: text.encode().decode("ascii", "surrogateescape")
    .encode("utf-8", "surrogatepass"),
}  # fmt: skip
"""How a text may be written down."""

NORMAL = ("NFC", "NFD", "NFKC", "NFKD")

DIGESTS = ("md5", "sha1", "sha256", "sha512", "blake2b")
"""A digest of a label is as good as the label to whoever has a list of labels."""


def _text_forms(mark: Mark) -> Iterator[Form]:
    text = str(mark.value)
    if mark.core:
        yield "a part", mark.core.encode(), None
    spelled = {unicodedata.normalize(how, text): how for how in reversed(NORMAL)}
    for spelling, how in {**spelled, text: "", text.casefold(): "casefold"}.items():
        for name, encode in ENCODINGS.items():
            yield f"{name} {how}".strip(), encode(spelling), None
        for turn in range(3):
            yield f"base64 {how}".strip(), _base64(spelling.encode(), turn), None
    if mark.core:
        for turn in range(3):
            yield "a part in base64", _base64(mark.core.encode(), turn), None
    for name in DIGESTS:
        raw = hashlib.new(name, text.encode())
        yield name, raw.hexdigest()[:16].encode(), None
        yield f"{name} as bytes", raw.digest()[:12], None


def _base64(raw: bytes, turn: int) -> bytes:
    """What is certain of a text in base64 that begins `turn` bytes into a group of three."""
    whole = base64.b64encode(b"\0" * turn + raw)
    first = 0 if turn == 0 else 4
    last = len(whole) - (4 if (turn + len(raw)) % 3 else 0)
    return whole[first:last]


SEPARATORS = {
    ",": "commas",
    ".": "points",
    "_": "underscores",
    " ": "spaces",
    "'": "apostrophes",
    "\N{NO-BREAK SPACE}": "fixed spaces",
    "\N{NARROW NO-BREAK SPACE}": "narrow spaces",
    "\N{THIN SPACE}": "thin spaces",
}


def _number_forms(value: int | float) -> Iterator[Form]:
    if isinstance(value, float):
        yield from _alone("digits", repr(value))
        yield from _alone("digits, rounded", f"{value:.9g}")
        yield from _alone("hexadecimal float", value.hex().removeprefix("-"))
        yield from _packed(value, "<d >d")
        return
    yield from _alone("digits", str(value))
    for separator, name in SEPARATORS.items():
        yield from _alone(f"digits with {name}", f"{value:,}".replace(",", separator))
    yield from _alone("hexadecimal digits", f"{value:#x}")
    for places in {len(str(value)) - 1, 5}:
        yield from _alone("power of ten", f"{value:.{places}e}")
        yield from _alone("power of ten, short", f"{value:.{places}e}".replace("e+0", "e"))
    yield from _alone("hexadecimal float", float(value).hex())
    if value >= 2**24:  # the bytes of a smaller number come by chance
        yield from _packed(value, "<q >q <d >d" + (" <i >i" if value < 2**31 else ""))


def _alone(name: str, digits: str) -> Iterator[Form]:
    """Digits that are no part of a longer number or word: a random id may hold those."""
    lower = digits.lower()
    pattern = rf"(?<![0-9a-z])(?<![0-9][.,]){re.escape(lower)}(?![0-9a-z])(?![.,][0-9]*[1-9])"
    yield name, lower.encode(), pattern


def _packed(value: int | float, layouts: str) -> Iterator[Form]:
    for layout in layouts.split():
        packed = struct.pack(layout, float(value) if layout[1] == "d" else int(value))
        # what is searched is in lower case, and so is this: a few letters of either case agree
        yield f"bytes of a number ({layout})", packed, None
