"""Ready scores of candidates, read from text: labels stay bytes, and few ever become text.

A Python object for each label and score costs more than all else that is done with them. So the
places of labels are found in the text, a megabyte at once, and short whole numbers are read eight
digits at a time. Rows that need more care are read one by one, by the same rules.

No label may occur twice. Labels are compared by a hash of 64 bits, and where two hashes are equal,
all labels are compared as they are: a hash decides nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

from privmax.deferred import np
from privmax.errors import DataError, ParameterError
from privmax.numbers import EXPONENT, LONGEST, exact
from privmax.sources.blocks import Block
from privmax.sources.scale import Scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

Places: TypeAlias = "NDArray[np.int64]"
Words: TypeAlias = "NDArray[np.uint64]"
Span: TypeAlias = "tuple[Places, Places]"
"""The places at which values begin in a text, and how many bytes they have."""

Line: TypeAlias = int | str

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

_DIGITS = 18
"""Digits of a whole number that is read without more ado."""

_WORD = 8
"""Bytes of a word: so many bytes of labels, or digits, are looked at together."""

_PAD = b"\0" * _WORD
"""Around text, so that a word that begins or ends at any place of it is within."""

_LONGEST = 16 * _WORD
"""Labels of more bytes are hashed one by one."""

_ROWS = 1 << 14
"""Rows that were read one by one are kept together, so many at a time."""

_MULTIPLIER = 0x9E3779B97F4A7C15


class ListedScores(Mapping[Any, int | Fraction]):
    """Scores by label, in the order of the file.

    Args:
        scale: On which they are read.
    """

    def __init__(self, scale: Scale) -> None:
        self._scale = scale
        self._parts: list[_FilePart] = []

    def __repr__(self) -> str:
        return "ListedScores(<private>)"

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    def __getitem__(self, label: Any) -> int | Fraction:
        return self._by_label[label]

    @cached_property
    def labels(self) -> Sequence[Any]:
        """The labels, each made when it is asked for."""
        return _Labels(self._parts)

    @cached_property
    def numbers(self) -> Any:
        """The scores: an array of whole numbers, or a list of exact numbers."""
        array = np.concatenate([np.empty(0, np.int64), *(part.numbers for part in self._parts)])
        if not any(part.others for part in self._parts):
            return array
        numbers: list[int | Fraction] = array.tolist()
        start = 0
        for part in self._parts:
            for place, number in part.others.items():
                numbers[start + place] = number
            start += len(part)
        return numbers

    @cached_property
    def _by_label(self) -> dict[Any, int | Fraction]:
        numbers = self.numbers if isinstance(self.numbers, list) else self.numbers.tolist()
        return dict(zip(self.labels, numbers, strict=True))

    def read(
        self,
        batches: Iterable[tuple[int, Block | Iterable[tuple[Line, Sequence[Any]]]]],
        places: Sequence[int],
        scored: int,
    ) -> None:
        """Read rows: a block with the number of its first line, or one by one.

        Args:
            batches: The rows.
            places: The columns that name a candidate, together if they are several.
            scored: The column of the scores.

        Raises:
            DataError: A row is malformed, or repeats a label; the first such row is named.
        """
        wrong = None
        try:
            for line, batch in batches:
                if isinstance(batch, Block):
                    self._add_block(batch, places, scored, line)
                else:
                    self._add_rows(batch, places, scored)
        except DataError as error:
            wrong = error
        repeated = self._find_repetition()  # among lines up to the one that is wrong
        if repeated is not None:
            raise DataError(
                f"Line {repeated} repeats a label. Add up or deduplicate its scores first, or, if "
                "a line is one person's, count people: name their column as user."
            )
        if wrong is not None:
            raise wrong

    def _add_block(self, block: Block, places: Sequence[int], scored: int, line: int) -> None:
        text = b"".join((_PAD, block.data, _PAD))
        spans = _find_spans(text, block)
        labels, (starts, lengths) = [spans[place] for place in places], spans[scored]
        numbers, are_plain = _read_digits(text, starts + lengths, lengths)
        is_empty = np.any([number == 0 for _, number in labels], axis=0)
        part = _FilePart(text, labels, numbers, {}, range(line, line + block.lines))
        end = 0  # rows that count where one is wrong
        try:
            for row in np.flatnonzero(is_empty | ~are_plain).tolist():
                end = row
                if is_empty[row]:
                    raise _no_label(line + row)
                end, start = row + 1, int(starts[row])
                written = text[start : start + int(lengths[row])].decode()
                part.set_number(row, read_number(written, line + row, self._scale))
            end = block.lines
        finally:
            self._parts.append(part.cut(end))

    def _add_rows(
        self, rows: Iterable[tuple[Line, Sequence[Any]]], places: Sequence[int], scored: int
    ) -> None:
        lines: list[Line] = []
        labels: list[list[str]] = [[] for _ in places]
        numbers: list[int | Fraction] = []
        try:
            for line, row in rows:
                own = [row[place] for place in places]
                if "" in own:
                    raise _no_label(line)
                lines.append(line)
                for column, label in zip(labels, own, strict=True):
                    column.append(label)
                numbers.append(read_number(row[scored], line, self._scale))
                if len(lines) == _ROWS:
                    self._parts.append(_pack(lines, labels, numbers))
                    lines, labels, numbers = [], [[] for _ in places], []
        finally:  # what was read before a row that is wrong, and the label of that row
            numbers += [0] * (len(lines) - len(numbers))
            self._parts.append(_pack(lines, labels, numbers))

    def _find_repetition(self) -> Line | None:
        """Return the line of the first label that occurred before."""
        hashes = np.concatenate([np.empty(0, np.uint64), *(part.hashes() for part in self._parts)])
        hashes.sort()
        if not (hashes[1:] == hashes[:-1]).any():
            return None
        seen: set[Any] = set()
        for part in self._parts:
            for label, line in zip(part.labels(), part.lines, strict=True):
                if label in seen:
                    return line
                seen.add(label)
        return None


def read_number(text: str, line: Line, scale: Scale) -> int | Fraction:
    """Read a score, exactly.

    Raises:
        DataError: It is not a number, is too long, or is not on the scale.

    Examples:
        >>> read_number(" 1.50 ", 2, Scale.of(None, "0.01"))
        Fraction(3, 2)
    """
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


@dataclass(frozen=True, repr=False)
class _FilePart:
    """Some rows of the file.

    Args:
        text: Bytes that labels are in, with `_PAD` around them.
        spans: Of each column of labels.
        numbers: Scores that are whole numbers of 64 bits.
        others: All other scores, by the number of the row.
        lines: The line of each row.
    """

    text: bytes
    spans: list[Span]
    numbers: Places
    others: dict[int, int | Fraction]
    lines: Sequence[Line]

    def __repr__(self) -> str:
        return "_FilePart(<private>)"

    def __len__(self) -> int:
        return len(self.lines)

    def set_number(self, row: int, number: int | Fraction) -> None:
        if isinstance(number, int) and abs(number) < 1 << 63:
            self.numbers[row] = number
        else:
            self.others[row] = number

    def cut(self, end: int) -> _FilePart:
        """Return the first rows."""
        spans = [(starts[:end], lengths[:end]) for starts, lengths in self.spans]
        return _FilePart(self.text, spans, self.numbers[:end], self.others, self.lines[:end])

    def label(self, row: int) -> Any:
        """Return the label of a row, a tuple if several columns name a candidate."""
        label = tuple(
            _decode(self.text[int(starts[row]) : int(starts[row] + lengths[row])])
            for starts, lengths in self.spans
        )
        return label if len(label) > 1 else label[0]

    def labels(self) -> Iterator[Any]:
        """Yield the labels of all rows."""
        columns = [
            [
                _decode(self.text[start : start + length])
                for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
            ]
            for starts, lengths in self.spans
        ]
        return iter(columns[0]) if len(columns) == 1 else zip(*columns, strict=True)

    def hashes(self) -> Words:
        """Return a hash of each label."""
        hashes = np.zeros(len(self), np.uint64)
        for starts, lengths in self.spans:
            hashes = _mix(hashes, _hash_values(self.text, starts, lengths))
        return hashes


@dataclass(frozen=True, repr=False)
class _Labels(Sequence[Any]):
    """The labels of some parts, in their order."""

    parts: list[_FilePart]

    def __repr__(self) -> str:
        return "_Labels(<private>)"

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, place: Any) -> Any:
        at = bisect_right(self._ends, place)
        return self.parts[at].label(place - (self._ends[at - 1] if at else 0))

    def __iter__(self) -> Iterator[Any]:
        for part in self.parts:
            yield from part.labels()

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(map(len, self.parts)))


def _no_label(line: Line) -> DataError:
    return DataError(
        f"Line {line} has no label. Drop such candidates: one without a label cannot be released."
    )


def _pack(
    lines: Sequence[Line], labels: Sequence[Sequence[str]], numbers: Sequence[int | Fraction]
) -> _FilePart:
    """Return rows that were read one by one as a part."""
    pieces, spans, start = [_PAD], list[Span](), len(_PAD)
    for column in labels:
        own = [_encode(label) for label in column]
        lengths = np.fromiter(map(len, own), np.int64, len(own))
        spans.append((start + np.cumsum(lengths) - lengths, lengths))
        start += int(lengths.sum())
        pieces += own
    part = _FilePart(b"".join([*pieces, _PAD]), spans, np.zeros(len(lines), np.int64), {}, lines)
    for row, number in enumerate(numbers):
        part.set_number(row, number)
    return part


def _encode(label: str) -> bytes:
    return label.encode("utf-8", "surrogatepass")  # an open file of text may have any


def _decode(label: bytes) -> str:
    return label.decode("utf-8", "surrogatepass")


def _find_spans(text: bytes, block: Block) -> list[Span]:
    """Return where the values of a block are in its text, by column."""
    every = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero((every == ord("\n")) | (every == ord(block.mark)))
    starts = np.empty_like(ends)
    starts[0], starts[1:] = len(_PAD), ends[:-1] + 1
    table = starts.reshape(block.lines, block.width), (ends - starts).reshape(-1, block.width)
    return [(table[0][:, place], table[1][:, place]) for place in range(block.width)]


def _words(text: bytes) -> Words:
    """Return the word that begins at each place."""
    return np.ndarray(len(text) - _WORD + 1, "<u8", text, strides=(1,))


@cache
def _masks() -> Words:
    """Return, by a number of bytes, what keeps so many of a word."""
    return np.array([(1 << 8 * number) - 1 for number in range(_WORD + 1)], np.uint64)


def _hash_values(text: bytes, starts: Places, lengths: Places) -> Words:
    """Return a hash of each value; equal values have equal ones."""
    words, masks = _words(text), _masks()
    hashes = lengths.astype(np.uint64)
    are_long = lengths > _LONGEST
    for at in range(0, min(int(lengths.max(initial=0)), _LONGEST), _WORD):
        rows = slice(None) if at < int(lengths.min()) else np.flatnonzero(lengths > at)
        left = np.minimum(lengths[rows] - at, _WORD)
        hashes[rows] = _mix(hashes[rows], words[starts[rows] + at] & masks[left])
    for row in np.flatnonzero(are_long).tolist():
        start = int(starts[row])
        hashes[row] = hash(text[start : start + int(lengths[row])]) % (1 << 64)
    return hashes


def _mix(hashes: Words, words: Words) -> Words:
    """Return hashes of what they stand for with a word after it."""
    mixed = (hashes ^ words) * np.uint64(_MULTIPLIER)
    return mixed ^ mixed >> np.uint64(32)


def _read_digits(text: bytes, ends: Places, lengths: Places) -> tuple[Places, NDArray[np.bool_]]:
    """Return the numbers that end at some places, and where they are up to 16 digits alone."""
    words = _words(text)
    numbers, are_plain = _read_word(words[ends - _WORD], np.minimum(lengths, _WORD))
    are_plain &= (lengths > 0) & (lengths <= 2 * _WORD)
    rows = np.flatnonzero(are_plain & (lengths > _WORD))
    high, are_digits = _read_word(words[ends[rows] - 2 * _WORD], lengths[rows] - _WORD)
    numbers[rows] += high * 10**_WORD
    are_plain[rows] &= are_digits
    return np.where(are_plain, numbers, 0), are_plain


def _read_word(words: Words, digits: Places) -> tuple[Places, NDArray[np.bool_]]:
    """Return the numbers that the last so many bytes of words are, and where these are digits.

    Other bytes become zeros. Then neighbors are added up: digits, pairs of them, fours.
    """
    zeros, high, six, threes = (np.uint64(byte * 0x0101010101010101) for byte in _BYTES)
    others = _masks()[_WORD - digits]
    words = words & ~others | others & zeros
    # the high half of a digit is 3, and with 6 more it still is
    are_digits = (words & high | (words + six & high) >> np.uint64(4)) == threes
    for mask, factor, shift in _SUMS:
        words = (words & np.uint64(mask)) * np.uint64(factor) >> np.uint64(shift)
    return words.astype(np.int64), are_digits


_BYTES = (0x30, 0xF0, 0x06, 0x33)

_SUMS = (
    (0x0F0F0F0F0F0F0F0F, 10 * (1 << 8) + 1, 8),
    (0x00FF00FF00FF00FF, 100 * (1 << 16) + 1, 16),
    (0x0000FFFF0000FFFF, 10_000 * (1 << 32) + 1, 32),
)
"""The parts of a word that are numbers, the factor that adds up pairs of them, and the place of the
sums."""
