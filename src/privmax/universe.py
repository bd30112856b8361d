"""The universe of candidates: not known in advance, these labels, or positions 0 … n − 1."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Any, Final

from privmax.errors import ParameterError
from privmax.numbers import LONGEST, plain_int, whole

OPEN: Final = "open"


@dataclass(frozen=True, repr=False)
class Universe:
    """All candidates there are, as public knowledge.

    Args:
        size: How many there are; None: the universe is open, they are not known in advance.
        labels: What they are called; None: not given, or they are positions 0 … size − 1.

    Examples:
        >>> Universe.of("open"), Universe.of(10), Universe.of(["tea", "coffee"])
        (Universe(open), Universe(10 positions), Universe(2 labels))
        >>> Universe.of("10^6") == Universe.of("1e6") == Universe.of(1000000)
        True
    """

    size: int | None = None
    labels: Collection[Hashable] | None = None

    def __post_init__(self) -> None:
        if self.size is not None:
            whole("universe", self.size)

    @classmethod
    def of(cls, value: object, name: str = "universe") -> Universe:
        """Return the universe that a value spells.

        Args:
            value: "open"; how many candidates there are, as a number or as text (1000000, 1e6,
                10^6); the collection of all labels; or a Universe.
            name: What an error calls the value.

        Raises:
            ParameterError: It spells none.
        """
        if isinstance(value, Universe):
            return value
        if isinstance(value, str):
            if value == OPEN:
                return OPEN_UNIVERSE
            size = read_whole(name, value)
            if size is not None:
                return cls(whole(name, size))
        elif (number := plain_int(value)) is not None:
            return cls(whole(name, number))
        elif hasattr(value, "__len__"):
            labels: Any = value
            return cls(whole(name, len(labels)), labels)
        simple = isinstance(value, str | bool | float | None)
        raise ParameterError(
            name,
            value if simple else type(value).__name__,
            "it must be open, a size, or a collection of labels",
            "Leave it out if the candidates are not known in advance.",
        )

    @property
    def is_open(self) -> bool:
        """Whether the candidates are not known in advance."""
        return self.size is None

    def plain_labels(self) -> list[Any]:
        """Return all labels in their canonical form, each once; only of a universe that has labels.

        Raises:
            ParameterError: One is missing, occurs twice, or cannot be looked up.
        """
        from privmax.labels import is_missing, plain_label  # needs NumPy, which help does without

        labels = [plain_label(label) for label in (() if self.labels is None else self.labels)]
        distinct = None
        with contextlib.suppress(Exception):  # an object of one's own raises what it likes
            distinct = set(labels)
        if distinct is None:
            raise _refusal("labels must be hashable", "Use text or numbers.")
        if any(map(is_missing, distinct)):
            raise _refusal(
                "a label is missing in it", "Drop it: one without a label cannot be released."
            )
        if len(distinct) < len(labels):
            raise repeat()
        return labels

    def __repr__(self) -> str:
        if self.size is None:
            return "Universe(open)"
        return f"Universe({self.size} {'positions' if self.labels is None else 'labels'})"


OPEN_UNIVERSE: Final = Universe()


def read_whole(name: str, text: str) -> int | None:
    """Return a whole number as people write large ones: 1000000, 1e6 or 10^6.

    Args:
        name: What an error calls the text.
        text: What was written.

    Returns:
        The number; None where the text is something else.

    Raises:
        ParameterError: It has too many digits to be written out.

    Examples:
        >>> read_whole("universe", "10^6"), read_whole("universe", "open")
        (1000000, None)
    """
    match = re.fullmatch(r"(\d+)(?:(e|\^|\*\*)\+?(\d+))?", text, re.ASCII | re.IGNORECASE)
    if match is None:
        return None
    digits, sign, power = match[1], match[2], match[3] or "0"
    if len(digits) <= LONGEST and len(power) <= len(str(LONGEST)):
        number, exponent = int(digits), int(power)
        factor, base = (1, number) if sign in ("^", "**") else (number, 10)
        if math.log10(max(factor, 1)) + exponent * math.log10(max(base, 1)) < LONGEST:
            return factor * int(base**exponent)
    raise ParameterError(
        name,
        text,
        f"it must have fewer than {LONGEST} digits",
        "Write a smaller number, or leave it open.",
    )


def repeat() -> ParameterError:
    """Return what is said of a label that is declared twice.

    Examples:
        >>> repeat().name
        'universe'
    """
    return _refusal("a label occurs in it more than once", "List each label once.")


def _refusal(wrong: str, remedy: str) -> ParameterError:
    return ParameterError("universe", "<labels>", wrong, remedy)
