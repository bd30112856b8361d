"""Scores held in memory, with the public facts about them: their universe, and what one person can change."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from privmax.errors import DataError, ParameterError
from privmax.mechanisms.base import Outcome
from privmax.privacy import Number, positive, whole
from privmax.profile import LARGEST_UNIVERSE, OPEN, Level, Profile
from privmax.sources.columns import BigIntegerColumn, Column, FloatColumn, IntegerColumn
from privmax.sources.containers import Labels, plain_label, read

GRID_STEPS = 64
"""Default resolution of float scores: this many grid steps to one `sensitivity`."""

Universe = int | str | Collection[Hashable]


class MemorySource:
    """Labels and scores side by side.

    universe      "open" (the default everywhere), the collection of all labels, or their number if all are listed;
                  without labels (a list, an array) the number alone is enough, as positions are labels
    sensitivity   by how much one individual can move a score (default 1; floats have no default)
    resolution    floats only: step of the public grid they are put on (default sensitivity / 64)
    """

    def __init__(
        self,
        data: object,
        *,
        universe: Universe = OPEN,
        sensitivity: Number | None = None,
        resolution: Number | None = None,
        item: str | None = None,
        score: str | None = None,
    ) -> None:
        labels, scores = read(data, item, score)
        self._labels, scores, self.universe = _within(universe, labels, scores)
        self._column, self.step, steps = _column(scores, sensitivity, resolution)
        self.integral = not isinstance(self._column, FloatColumn)
        if self.universe is not None and self._labels is not None and not len(self._column):
            raise DataError(
                "There are no scores, so nothing in this closed universe has a label. Declare the universe by its "
                'labels, or as "open".'
            )
        self.profile = Profile(self, universe=self.universe, sensitivity=steps)

    def __repr__(self) -> str:
        return "MemorySource(<private>)"

    def close(self) -> None:
        """There is nothing to close: the data stays with its owner."""

    def listed(self) -> int:
        return len(self._column)

    def maximum(self) -> int | None:
        return self._column.maximum() if len(self._column) else None

    def histogram(self, above: int) -> Sequence[Level]:
        return self._column.histogram(above) if len(self._column) else []

    def item(self, outcome: Outcome) -> Any:
        """The label an outcome stands for; None for no answer."""
        if outcome.score is None:
            return None
        find = self._column.at_or_below if outcome.below else self._column.at
        position = find(outcome.score, outcome.index)
        if position is not None:
            return self._label(position)
        return self._unlisted(outcome) if self._labels is None and self.universe is not None else None

    def scores(self) -> list[tuple[Any, int]]:
        """Every label with its score on the grid, for laws on public data."""
        return [(self._label(position), score) for position, score in enumerate(self._column.scores())]

    def _label(self, position: int) -> Any:
        return position if self._labels is None else self._labels[position]

    def _unlisted(self, outcome: Outcome) -> int:
        """The position of a candidate beyond the listed ones: whoever is drawn must be named, listed or not."""
        score = outcome.score or 0
        above = sum(count for _, count in self.histogram(score))
        here = sum(count for _, count in self.histogram(score - 1)) - above
        return len(self._column) + outcome.index - (len(self._column) - above if outcome.below else here)


def _within(universe: Universe, labels: Labels, scores: Any) -> tuple[Labels, Any, int | None]:
    """Labels and scores with the declared universe applied, and its size (None: open)."""
    if isinstance(universe, str) and universe == OPEN:
        return labels, scores, None
    if isinstance(universe, (int, np.integer)) and not isinstance(universe, bool):
        size = whole("universe", int(universe))
        if labels is not None and 0 < len(scores) < size <= LARGEST_UNIVERSE:  # a larger one is refused as such
            raise ParameterError(
                "universe", size, "fewer candidates are listed, and a size does not name the others: if one of those "
                "were drawn, the release would show who is listed",
                'Give the labels of all candidates, or list them all (0 where nobody has one), or leave it "open".',
            )  # fmt: skip
        return labels, scores, size
    if isinstance(universe, (str, bool)) or not hasattr(universe, "__len__"):
        shown = universe if isinstance(universe, (str, bool, float, type(None))) else type(universe).__name__
        raise ParameterError(
            "universe", shown, 'it must be "open", a size, or a collection of labels',
            "Leave it out if the candidates are not known in advance.",
        )  # fmt: skip
    try:
        everyone = dict.fromkeys(map(plain_label, universe))
        listed = dict(zip(range(len(scores)) if labels is None else labels, scores, strict=True))
    except TypeError:
        raise ParameterError("universe", "<labels>", "labels must be hashable", "Use text or numbers.") from None
    if len(everyone) != len(universe):
        raise ParameterError("universe", "<labels>", "a label occurs in it more than once", "List each label once.")
    if not listed.keys() <= everyone.keys():
        raise DataError("A label with a score is not in the declared universe. Declare every candidate, or drop it.")
    return list(everyone), [listed.get(label, 0) for label in everyone], len(everyone)


def _column(scores: Any, sensitivity: Number | None, resolution: Number | None) -> tuple[Column, Fraction, int]:
    """The column, the score units one grid step is worth, and the sensitivity in grid steps."""
    values = _numbers(scores)
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        if sensitivity is None:
            raise ParameterError(
                "sensitivity", None, "float scores need it: how far one individual can move a score",
                "For counts, pass integers instead.",
            )  # fmt: skip
        spread = positive("sensitivity", sensitivity)
        step = spread / GRID_STEPS if resolution is None else positive("resolution", resolution)
        return FloatColumn(values, step), step, math.ceil(spread / step)
    if resolution is not None:
        raise ParameterError(
            "resolution", resolution, "it is for float scores, and these are integers", "Leave it out."
        )
    steps = math.ceil(positive("sensitivity", 1 if sensitivity is None else sensitivity))
    column = IntegerColumn(values) if isinstance(values, np.ndarray) else BigIntegerColumn(values)
    return column, Fraction(1), steps


def _numbers(scores: Any) -> Any:
    """An integer or float array, or a list of Python integers too large for one."""
    if isinstance(scores, np.ndarray) and scores.dtype != object:
        _usable(scores.dtype.type)
        return scores
    values: list[Any] = list(scores)
    kinds = set(map(type, values))
    for kind in kinds:
        _usable(kind)
    if all(issubclass(kind, (int, np.integer)) for kind in kinds):
        try:
            return np.fromiter(values, np.int64, len(values))
        except OverflowError:
            return [int(value) for value in values]
    try:
        floats = [float(value) for value in values]
        rounded = any(int(number) != value for value, number in zip(values, floats, strict=True) if _whole(value))
    except OverflowError:
        rounded = True
    if rounded:
        raise DataError("Scores mix floats with integers too large for a float. Use one type.")
    return np.array(floats)


def _whole(value: object) -> bool:
    return isinstance(value, (int, np.integer))


def _usable(kind: type) -> None:
    """Refuse a type of score that is not an integer or a float of at most 64 bits."""
    if issubclass(kind, np.floating) and np.dtype(kind).itemsize > 8:
        raise DataError("Scores are of an extended float type. Use float64 or integers.")
    if issubclass(kind, (bool, np.bool_, np.timedelta64)) or not issubclass(
        kind, (int, float, np.integer, np.floating)
    ):
        raise DataError(f"A score is of type {kind.__name__}. Scores must be integers or finite floats.")
