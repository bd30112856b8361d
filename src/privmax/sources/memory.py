"""Scores held in memory, with the public facts about them.

These are their universe, and what one person can change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError
from privmax.mechanisms.contract import Outcome
from privmax.numbers import Number, exact, is_float
from privmax.profile import LARGEST_UNIVERSE, Profile
from privmax.sources.base import PlainSource
from privmax.sources.columns import BigIntegerColumn, FloatColumn, IntegerColumn, ScoreColumn
from privmax.sources.containers import column_of, table_of
from privmax.sources.containers.arrays import ListColumn
from privmax.sources.listed_scores import ListedScores
from privmax.sources.scale import Scale
from privmax.sources.table import Candidates, Labels
from privmax.universe import OPEN, Universe

NOT_WHOLE = (
    "A score is not a whole number, or is a float too large to be one for certain. Scores must be "
    "whole numbers unless a grid is declared: set resolution to the step of a public grid, for "
    "example 0.01."
)

_CHUNK = 1 << 15
"""Entries looked at at a time."""


class MemorySource(PlainSource):
    """Labels and scores side by side.

    Args:
        universe: "open" (the default everywhere), the collection of all labels, or their number if
            all are listed; without labels (a list, an array) the number alone is enough, as
            positions are labels.
        sensitivity: By how much one individual can move a score (default 1); on a grid a score may
            be off by a 256th of it.
        resolution: Step of the public grid on which scores are rounded down. Without it scores are
            whole numbers if `sensitivity` is one, and are on a grid of sensitivity / 64 if it is
            not.
    """

    def __init__(
        self,
        data: object,
        *,
        universe: object = OPEN,
        sensitivity: Number | None = None,
        resolution: Number | None = None,
        item: str | None = None,
        score: str | None = None,
    ) -> None:
        self.scale = Scale.of(sensitivity, resolution)
        self.step = self.scale.step
        labels, scores = _read(data, item, score)
        self._labels, scores, self.universe = _within(Universe.of(universe), labels, scores)
        self._column = scale_scores(scores, self.scale)
        if self.universe is not None and self._labels is not None and not self._column.listed():
            raise DataError(
                "There are no scores, so no candidate of this closed universe has a label. Declare "
                "the universe by its labels, or as open."
            )
        self.profile = Profile(self._column, universe=self.universe, sensitivity=self.scale.steps)

    def __repr__(self) -> str:
        return "MemorySource(<private>)"

    def names(self, outcomes: Sequence[Outcome]) -> list[Any]:
        """Return the label each outcome stands for.

        None for no answer. All are found in one pass.
        """
        by_position = self._labels is None and self.universe is not None
        pairs = zip(outcomes, self._positions(outcomes), strict=True)
        return [
            self._label(position)
            if position is not None
            else self._position_beyond(outcome)
            if by_position and outcome.score is not None
            else None
            for outcome, position in pairs
        ]

    def counts(self, outcomes: Sequence[Outcome]) -> list[int]:
        """Return the score of each that is drawn, in steps; the one that is not listed has 0."""
        below = [outcome for outcome in outcomes if outcome.below]
        positions = iter(self._positions(below))
        return [
            (0 if (at := next(positions)) is None else self._column.score(at))
            if outcome.below
            else outcome.score or 0
            for outcome in outcomes
        ]

    def _positions(self, outcomes: Sequence[Outcome]) -> list[int | None]:
        """Return where each outcome is; None for no answer, and for unlisted candidates."""
        positions: list[int | None] = [None] * len(outcomes)
        groups: dict[int | None, list[int]] = {}
        for place, one in enumerate(outcomes):
            if one.score is not None:
                groups.setdefault(one.score if one.below else None, []).append(place)
        for below, places in groups.items():
            if below is not None:
                ours = self._column.find_below(below, [outcomes[one].index for one in places])
            else:
                sought = [(outcomes[one].score or 0, outcomes[one].index) for one in places]
                ours = self._column.find(sought)
            for place, position in zip(places, ours, strict=True):
                positions[place] = position
        return positions

    def scores(self) -> list[tuple[Any, int]]:
        """Return every label with its score on the grid, for laws on public data."""
        return [
            (self._label(position), score) for position, score in enumerate(self._column.scores())
        ]

    def _label(self, position: int) -> Any:
        return position if self._labels is None else self._labels[position]

    def _position_beyond(self, outcome: Outcome) -> int:
        """Return the position of a candidate beyond the listed ones.

        Every outcome must be named, listed or not.
        """
        score = outcome.score or 0
        listed = self._column.listed()
        above = sum(count for _, count in self._column.histogram(score))
        here = sum(count for _, count in self._column.histogram(score - 1)) - above
        return listed + outcome.index - (listed - above if outcome.below else here)


def _read(data: object, item: str | None, score: str | None) -> Candidates:
    """Return the labels and the scores of `data`."""
    table = None if isinstance(data, Mapping) else table_of(data)
    if table is not None:
        items, scores = table.column("item", item, "table"), table.column("score", score, "table")
        return items.read_labels(), scores.read_scores()
    for name, value in (("item", item), ("score", score)):
        if value is not None:
            raise ParameterError(
                name, value, "it names a column, but this data is not a table", "Leave it out."
            )
    if isinstance(data, ListedScores):
        return data.labels, data.numbers
    if isinstance(data, Mapping):
        return ListColumn(list(data)).read_labels(), list(data.values())
    if isinstance(data, Profile):
        raise ParameterError(
            "data",
            data,
            "a profile has no labels to release",
            "Call mechanism.draw(profile, coins), or law().",
        )
    return column_of(data).read_candidates()


def _within(universe: Universe, labels: Labels, scores: Any) -> tuple[Labels, Any, int | None]:
    """Return labels and scores with the declared universe applied, and its size (None: open)."""
    size = universe.size
    if universe.labels is None:
        # A larger one is refused as such.
        if size is not None and labels is not None and 0 < len(scores) < size <= LARGEST_UNIVERSE:
            raise ParameterError(
                "universe", size, "fewer candidates are listed, and a size does not name the "
                "others: drawing one of them would reveal which are listed",
                "Give the labels of all candidates, or list them all (with score 0), or leave it "
                "open.",
            )  # fmt: skip
        return labels, scores, size
    everyone = universe.plain_labels()
    listed = dict(zip(range(len(scores)) if labels is None else labels, scores, strict=True))
    if not listed.keys() <= set(everyone):
        raise DataError(
            "A label with a score is not in the declared universe. Declare every candidate, or "
            "drop it."
        )
    return everyone, [listed.get(label, 0) for label in everyone], size


def scale_scores(scores: Any, scale: Scale) -> ScoreColumn:
    """Return the scores on a scale: only what they are worth makes a difference, not their type."""
    values = _numbers(scores)
    if not isinstance(values, np.ndarray):
        return _integers(_whole(values) if scale.whole else _on_grid(values, scale.step))
    if values.dtype.kind == "f":
        if scale.whole:
            _all_whole(values)
        return FloatColumn(values, scale.step)
    return (
        IntegerColumn(values)
        if scale.whole or not len(values)
        else _integers_on_grid(values, scale.step)
    )


def _numbers(scores: Any) -> Any:
    """Return an integer or float array, or a list of Python's own exact numbers and floats."""
    if isinstance(scores, np.ndarray) and scores.dtype != object:
        _usable(scores.dtype.type)
        return scores
    values: list[Any] = list(scores)
    kinds = set(map(type, values))
    for kind in kinds - {int, float}:
        _usable(kind)
    floats = {float, np.float64}
    if kinds & floats and kinds <= {*floats, int}:
        small = int not in kinds or all(
            abs(value) <= 1 << 53 for value in values if type(value) is int
        )
        return np.array(values, np.float64) if small else values
    return values


def _integers(values: list[int]) -> ScoreColumn:
    try:
        return IntegerColumn(np.fromiter(values, np.int64, len(values)))
    except OverflowError:
        return BigIntegerColumn(values)


def _whole(values: list[Any]) -> list[int]:
    """Return values as integers, if they are whole numbers."""
    if set(map(type, values)) <= {int}:
        return values
    numbers = []
    for value in values:
        if isinstance(value, int | np.integer):
            numbers.append(int(value))
            continue
        number = _exact(value)
        if number.denominator != 1 or (
            is_float(value) and abs(number) > _last_whole(np.dtype(type(value)))
        ):
            raise DataError(NOT_WHOLE)
        numbers.append(number.numerator)
    return numbers


def _all_whole(values: NDArray[Any]) -> None:
    """Refuse floats that are not whole numbers, or are too large.

    Between large floats, some whole numbers are left out.
    """
    last = _last_whole(values.dtype)
    for start in range(0, len(values), _CHUNK):
        chunk = values[start : start + _CHUNK]
        if not np.isfinite(chunk).all():
            return  # the column says so
        if (chunk != np.floor(chunk)).any() or (np.abs(chunk) > last).any():
            raise DataError(NOT_WHOLE)


def _last_whole(kind: np.dtype[Any]) -> int:
    """Up to here a type of floats holds every whole number, and prints it in full."""
    return 1 << (np.finfo(kind).nmant + 1)


def _on_grid(values: list[Any], step: Fraction) -> list[int]:
    return [math.floor(_exact(value) / step) for value in values]


def _integers_on_grid(values: NDArray[Any], step: Fraction) -> ScoreColumn:
    """Return ⌊value / step⌋ of integers, in 64 bits where all that is computed fits."""
    over, under = step.numerator, step.denominator
    largest = max(abs(int(values.min())), abs(int(values.max())))
    if largest * under < 1 << 62 and over < 1 << 62:
        return IntegerColumn(values.astype(np.int64) * under // over)
    return _integers([value * under // over for value in values.tolist()])


def _exact(value: Any) -> Fraction:
    """Return a score as the rational it is; a float as the decimal that it prints as."""
    try:
        return exact("score", value)
    except ParameterError:  # which quotes it
        pass
    raise DataError(
        "A score is NaN or infinite, or has thousands of digits. Drop or replace such candidates "
        "before selecting."
    )


def _usable(kind: type) -> None:
    """Refuse a type of score that is not a number of Python's or NumPy's.

    Of NumPy's, integers and floats of at most 64 bits are allowed.
    """
    if issubclass(kind, np.floating) and np.dtype(kind).itemsize > 8:
        raise DataError("Scores are of an extended float type. Use float64 or integers.")
    if issubclass(kind, (bool, np.bool_, np.timedelta64)) or not issubclass(
        kind, (int, float, Decimal, Fraction, np.integer, np.floating)
    ):
        raise DataError(
            f"A score is of type {kind.__name__}. Scores must be integers, finite floats or "
            f"Decimals."
        )
