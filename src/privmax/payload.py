"""A drawn answer, and the one description of its fields: ledgers, JSON and notebooks all read it.

A released field is an attribute of a payload and a `ReleasedField` in its `FIELDS`. Nothing else
lists what a release holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol, Self

from privmax.counts import Noise, read_noise
from privmax.encoding import decode, encode
from privmax.packing import pack, unpack
from privmax.privacy import exact_privacy
from privmax.relative import RelativeNoise, read_relative

Write = Callable[[Any], Any]
"""Writes an item as JSON for a ledger."""

Read = Callable[[Any], Any]
"""Reads an item that was written so. It needs no data."""

Part = Literal["answer", "cost", "payment"]
"""Parts of a release in JSON, in this order: what was drawn, what ran at what cost, and what the
ledger has of it.
"""


class Payload(Protocol):
    """The answer drawn for a question. All of it may be published."""

    def to_json(self, write: Write = encode) -> dict[str, Any]:
        """Write all of it for a ledger; `write` writes an item. It never fails: that would
        reveal what was drawn.
        """
        ...

    @classmethod
    def from_json(cls, written: Mapping[str, Any], read: Read = decode) -> Self:
        """Read what `to_json` wrote, in this version or an earlier one; `read` reads an item."""
        ...


@dataclass(frozen=True)
class Record:
    """The form in which a ledger keeps an attribute of a payload.

    Args:
        attribute: Of the payload.
        key: What the ledger calls it.
        write: Gives JSON; the second argument writes an item.
        read: Reads that again; the second argument reads an item.
        optional: Whether None is allowed, and is left out.
    """

    attribute: str
    key: str
    write: Callable[[Any, Write], Any]
    read: Callable[[Any, Read], Any]
    optional: bool = False


@dataclass(frozen=True)
class ReleasedField:
    """One released field, for everything that writes or shows releases.

    Args:
        attribute: Of a release, or of its payload.
        name: What `to_dict` calls it; None: it is not there.
        key: What JSON calls it, `Release.to_json` and --json; None: it is not there.
        form: Makes of its value what both have of it; None: the value itself.
        part: In which part of the JSON it is; within a part the order is that of `FIELDS`.
        record: How a ledger keeps it; None: it follows from other fields or from the question.
        words: Makes of its value lines for the table of a notebook; None: the table names it
            elsewhere, or does not show it.
        optional: Whether `to_dict` and JSON leave it out where it is None.
    """

    attribute: str
    name: str | None
    key: str | None
    form: Callable[[Any], Any] | None = None
    part: Part = "answer"
    record: Record | None = None
    words: Callable[[Any], Sequence[str]] | None = None
    optional: bool = False

    @classmethod
    def of(
        cls, name: str, form: Callable[[Any], Any] | None = None, **options: Any
    ) -> ReleasedField:
        """Make a field that has one name everywhere."""
        return cls(name, name, name, form, **options)

    def read(self, release: Any) -> Any:
        """Return the value that a release has of it."""
        return find_value(release, self.attribute)

    def is_shown(self, release: Any) -> bool:
        """Return whether `to_dict` and JSON have it."""
        return not self.optional or self.read(release) is not None

    def write(self, release: Any) -> Any:
        """Return the form that `to_dict` and JSON have of it."""
        value = find_value(release, self.attribute)
        return value if self.form is None else self.form(value)


def find_value(release: Any, attribute: str) -> Any:
    """Return an attribute of a release, or of its payload where the release has none so called."""
    return getattr(release if hasattr(release, attribute) else release.payload, attribute)


def _write_all(values: Iterable[Any], write: Write) -> list[Any]:
    return list(map(write, values))


def _read_all(written: Iterable[Any], read: Read) -> tuple[Any, ...]:
    return tuple(map(read, written))


def write_long(items: Iterable[Any], write: Write) -> Any:
    """Write the items of a table that may be long."""
    return pack([write(item) for item in items])


def read_long(written: Any, read: Read) -> tuple[Any, ...]:
    """Read what `write_long` wrote."""
    return tuple(map(read, unpack(written)))


def read_number(written: Any) -> int | float:
    """Read a number that `encode` wrote.

    Raises:
        ValueError: It is something else.
    """
    number = decode(written)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise ValueError(f"{type(number).__name__} in place of a number")
    return number


ITEM = ReleasedField("item", None, "item")
ITEMS = ReleasedField.of("items", list, record=Record("items", "items", _write_all, _read_all))
LONG_ITEMS = replace(ITEMS, record=Record("items", "items", write_long, read_long))
"""The items of a table that may be long."""

COUNTS = ReleasedField.of(
    "counts",
    list,
    record=Record(
        "counts",
        "counts",
        lambda counts, _: _write_all(counts, encode),
        lambda written, _: _read_all(written, read_number),
        optional=True,
    ),
)
NOISE = ReleasedField(
    "noise",
    "noise",
    None,
    lambda noise: None if noise is None else repr(noise),
    record=Record(
        "noise",
        "noise",
        lambda noise, _: noise.to_dict(),
        lambda written, _: read_noise(written),
        optional=True,
    ),
)
RELATIVE = ReleasedField.of(
    "relative",
    list,
    optional=True,
    record=Record(
        "relative",
        "relative",
        lambda counts, _: _write_all(counts, encode),
        lambda written, _: _read_all(written, read_number),
        optional=True,
    ),
)
RELATIVE_NOISE = ReleasedField(
    "relative_noise",
    "relative_noise",
    None,
    repr,
    optional=True,
    record=Record(
        "relative_noise",
        "relative_noise",
        lambda noise, _: noise.to_dict(),
        lambda written, _: read_relative(written),
        optional=True,
    ),
)
DIAGNOSTICS = ReleasedField(
    "diagnostics",
    "diagnostics",
    "free",
    dict,
    part="cost",
    record=Record(
        "diagnostics",
        "free",
        lambda numbers, _: dict(zip(numbers, map(encode, numbers.values()), strict=True)),
        lambda written, _: dict(zip(written, map(read_number, written.values()), strict=True)),
    ),
)


@dataclass(frozen=True)
class Drawn:
    """Items that were drawn, and what belongs to them. It implements `Payload`.

    Args:
        items: Best first where their order is released, otherwise sorted by name.
        diagnostics: What the same cost also covers.
        counts: Noisy counts of the items, in their order; None: none were asked for.
        noise: The law of their noise; None: there is none, or it is not known.
        relative: Noisy counts of the items less that of the first, where their order was made from
            such; None: it was not.
        relative_noise: The law of the noise in these.

    Examples:
        >>> Drawn(("tea", 2.5)).to_json()
        {'items': ['tea', {'float': '0x1.4000000000000p+1'}], 'free': {}}
        >>> Drawn.from_json({"items": ["tea"], "free": {}}) == Drawn(("tea",))
        True
    """

    items: tuple[Any, ...] = ()
    diagnostics: Mapping[str, int | float] = field(default_factory=dict, hash=False)
    counts: tuple[int | float, ...] | None = None
    noise: Noise | None = None
    relative: tuple[int | float, ...] | None = field(default=None, repr=False)
    relative_noise: RelativeNoise | None = field(default=None, repr=False)

    FIELDS: ClassVar[tuple[ReleasedField, ...]] = (
        ITEM,
        ITEMS,
        ReleasedField.of("requested"),
        ReleasedField.of("ranked"),
        COUNTS,
        ReleasedField.of("error"),
        NOISE,
        RELATIVE,
        ReleasedField.of("apart", optional=True),
        ReleasedField.of("close", list, optional=True),
        RELATIVE_NOISE,
        ReleasedField.of("privacy", exact_privacy, part="cost"),
        ReleasedField.of("mechanism", repr, part="cost"),
        ReleasedField.of("why", part="cost"),
        DIAGNOSTICS,
        ReleasedField.of("request", part="payment"),
        ReleasedField.of("recorded", part="payment"),
        ReleasedField.of("unit", part="cost"),
    )

    def to_json(self, write: Write = encode) -> dict[str, Any]:
        """Write all of it for a ledger; `write` writes an item."""
        written = {}
        for one in self.FIELDS:
            if (record := one.record) is None:
                continue
            value = getattr(self, record.attribute)
            if value is not None or not record.optional:
                written[record.key] = record.write(value, write)
        return written

    @classmethod
    def from_json(cls, written: Mapping[str, Any], read: Read = decode) -> Self:
        """Read what `to_json` wrote; `read` reads an item.

        Raises:
            ValueError: Something of it is not what `to_json` writes.
        """
        values = {}
        for one in cls.FIELDS:
            record = one.record
            if record is not None and (record.key in written or not record.optional):
                values[record.attribute] = record.read(written[record.key], read)
        drawn = cls(**values)
        for name in ("counts", "relative"):
            numbers = getattr(drawn, name)
            if numbers != getattr(cls, name) and len(numbers) != len(drawn.items):
                raise ValueError(f"not one of {name} for each item")
        return drawn
