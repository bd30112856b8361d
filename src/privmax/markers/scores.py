"""Scores for the difference of a marker between cases and controls: integers, known sensitivity.

    R cases and S controls, N = R + S, M = max(R, S), all public. Of a marker, a copies of the
    counted allele among the 2R of the cases, b among the 2S of the controls.

    Difference   |S·a − R·b| / M                          one person moves it by at most 2
    ChiSquare    Pearson's χ² of the 2×2 table of alleles, or of the 2×3 table of genotypes
                                                          N²·M/(R·S·(M + 1)), for alleles twice that
    Distance     how many people must change before the test of alleles changes its verdict      1

Neighbors are two studies with the same two group sizes in which one person of one group has other
genotypes, at any number of markers. Scores may move either way, so they are not monotone.

Proof:      docs/proofs/markers.md
Reference:  Uhler, Slavkovic & Fienberg, J. Privacy and Confidentiality 2013 (χ² of genotypes);
            Johnson & Shmatikov, KDD 2013 (distance)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError
from privmax.numbers import Number, exact, positive, whole

Alleles = NDArray[np.int64]
"""Copies of the counted allele: a row for each marker, cases first."""

Genotypes = NDArray[np.int64]
"""People by genotype: markers × (cases, controls) × (0, 1, 2 copies)."""

Scored = NDArray[np.int64]

DIFFERENCE, CHI_SQUARE, GENOTYPE_CHI_SQUARE, DISTANCE = (
    "difference",
    "chi-square",
    "genotype-chi-square",
    "distance",
)
SCORES = (DIFFERENCE, CHI_SQUARE, GENOTYPE_CHI_SQUARE, DISTANCE)

LARGEST_GROUP = 1 << 28
"""People in a group, at most: products of two group sizes then fit into 64 bits."""

_LARGEST_EDGE = 1 << 22
"""The same for the distance, which takes a step for every allele there could be."""

_PARTS = 8
"""Steps of a difference of unequal groups, to one allele of the smaller one."""

_STEPS = 64
"""Steps of a χ², to what one person can move it."""

_ERROR = 2.0**-46
"""Bound on the relative error of a χ² in floats: some twelve roundings of 2^−53, with room."""


class StudyGroups(NamedTuple):
    """The number of people in each group; public.

    Examples:
        >>> StudyGroups.of(30, 20)
        StudyGroups(cases=30, controls=20)
    """

    cases: int
    controls: int

    @classmethod
    def of(cls, cases: object, controls: object) -> StudyGroups:
        """Return the sizes, if they are such.

        Raises:
            ParameterError: One is missing, or no whole number from 1 to 2^28.
        """
        for name, size in (("cases", cases), ("controls", controls)):
            if size is None:
                raise ParameterError.required(
                    name, "how many people a group has must be public, and is never counted",
                    "For example cases=2000, controls=2000.",
                )  # fmt: skip
            if whole(name, size) > LARGEST_GROUP:
                raise ParameterError(name, size, f"it must not exceed {LARGEST_GROUP}")
        return cls(int(cases), int(controls))  # type: ignore[call-overload]  # they are whole

    @property
    def people(self) -> int:
        """The number of people in both groups."""
        return self.cases + self.controls


class Score(Protocol):
    """A score of markers.

    Attributes:
        steps: By how many whole numbers one person can move it.
        unit: What one of them is worth, in the units that the score is usually given in.
        needs_genotypes: Whether counts of alleles are not enough.
    """

    @property
    def needs_genotypes(self) -> bool: ...

    @property
    def steps(self) -> int: ...

    @property
    def unit(self) -> Fraction: ...

    def score(self, counts: NDArray[np.int64]) -> Scored:
        """Return the score of each marker, of `Genotypes` or, if they are enough, of `Alleles`."""
        ...


def make_score(name: object, groups: StudyGroups, markers: int, threshold: Number | None) -> Score:
    """Return the score that its name stands for.

    Args:
        name: One of `SCORES`.
        groups: The sizes of the groups.
        markers: How many there are.
        threshold: Of "distance": the χ² above which a marker is significant; None: that of
            0.05 divided by the number of markers.

    Raises:
        ParameterError: There is no such score, or it takes no threshold.

    Examples:
        >>> make_score("difference", StudyGroups(50, 50), 10, None).steps
        2
    """
    if name != DISTANCE and threshold is not None:
        raise ParameterError(
            "threshold", threshold, 'only the score "distance" has one', "Leave it out."
        )
    if name == DIFFERENCE:
        return Difference(groups)
    if name in (CHI_SQUARE, GENOTYPE_CHI_SQUARE):
        return ChiSquare(groups, needs_genotypes=name == GENOTYPE_CHI_SQUARE)
    if name == DISTANCE:
        line = bonferroni(markers) if threshold is None else positive("threshold", threshold)
        return Distance(groups, line)
    raise ParameterError(
        "score", name, f"it must be one of {', '.join(SCORES)}", 'By default "difference".'
    )


def bonferroni(markers: int, level: Number = "0.05") -> Fraction:
    """Return the χ² that noise exceeds with probability level / markers, to four digits.

    It has one degree of freedom.

    Examples:
        >>> float(bonferroni(1)), float(bonferroni(1_000_000))
        (3.8415, 29.7168)
    """
    tail = exact("level", level) / whole("markers", markers)
    return exact("threshold", f"{NormalDist().inv_cdf(float(tail) / 2) ** 2:.4f}")


@dataclass(frozen=True)
class Difference:
    """The difference of allele counts, those of the larger group scaled to the size of the smaller.

    Of equal groups it is |a − b|. Otherwise it is rounded down to eighths.

    Examples:
        >>> Difference(StudyGroups(50, 50)).score(np.array([[30, 10], [5, 9]])).tolist()
        [20, 4]
    """

    groups: StudyGroups
    needs_genotypes = False

    @property
    def _parts(self) -> int:
        return 1 if self.groups.cases == self.groups.controls else _PARTS

    @property
    def steps(self) -> int:
        return 2 * self._parts

    @property
    def unit(self) -> Fraction:
        return Fraction(1, self._parts)

    def score(self, counts: NDArray[np.int64]) -> Scored:
        a, b = count_alleles(counts).T
        cases, controls = self.groups
        scores: Scored = self._parts * np.abs(controls * a - cases * b) // max(self.groups)
        return scores


@dataclass(frozen=True)
class ChiSquare:
    """Pearson's χ² of the table of alleles, or of that of genotypes, rounded down.

    It is in 64ths of what one person can move it. Columns that no one is in add nothing.

    Examples:
        >>> test = ChiSquare(StudyGroups(50, 50), needs_genotypes=False)
        >>> test.score(np.array([[30, 10], [5, 5]])).tolist()
        [102, 0]
    """

    groups: StudyGroups
    needs_genotypes: bool

    @property
    def sensitivity(self) -> Fraction:
        """By how much one person can move it at most. It is attained."""
        cases, controls = self.groups
        largest = max(self.groups)
        table = Fraction(self.groups.people**2 * largest, cases * controls * (largest + 1))
        return table if self.needs_genotypes else 2 * table

    @property
    def steps(self) -> int:
        return _STEPS

    @property
    def unit(self) -> Fraction:
        return self.sensitivity / _STEPS

    def score(self, counts: NDArray[np.int64]) -> Scored:
        """⌊χ² / unit⌋, in floats where that leaves no doubt, and exactly where it does."""
        cases, controls = self._columns(counts)
        first, second = (size if self.needs_genotypes else 2 * size for size in self.groups)
        apart, many = second * cases - first * controls, cases + controls
        factor = 1 / (first * second * self.unit)  # χ² = Σ apart² / (first · second · many)
        parts = apart.astype(np.float64) ** 2 / np.maximum(many, 1)
        about = float(factor) * parts.sum(axis=1)
        scores: Scored = np.floor(about).astype(np.int64)
        near = np.abs(about - np.rint(about)) <= about * _ERROR
        for place in np.flatnonzero(near & (apart != 0).any(axis=1)).tolist():
            terms = [
                Fraction(int(one) ** 2, int(number))
                for one, number in zip(apart[place], many[place], strict=True)
                if number
            ]
            scores[place] = math.floor(factor * sum(terms))
        return scores

    def _columns(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the two rows of every marker's table."""
        if self.needs_genotypes:
            return counts[:, 0], counts[:, 1]
        counted = count_alleles(counts)
        cases, controls = (
            np.stack([counted[:, place], 2 * size - counted[:, place]], axis=1)
            for place, size in enumerate(self.groups)
        )
        return cases, controls


@dataclass(frozen=True)
class Distance:
    """The number of people who must change before the test of alleles changes its verdict.

    Each may change both alleles: above 0 where χ² > threshold, otherwise 1 less that number, 0 or
    below.

    Raises:
        ParameterError: The threshold is below 1, or no table of these sizes exceeds it.

    Examples:
        >>> distance = Distance(StudyGroups(50, 50), Fraction("3.8415"))
        >>> distance.score(np.array([[30, 10], [16, 10], [12, 10]])).tolist()
        [5, -1, -2]
    """

    groups: StudyGroups
    threshold: Fraction
    needs_genotypes = False
    steps = 1
    unit = Fraction(1)

    def __post_init__(self) -> None:
        for name, size in self.groups._asdict().items():
            if size > _LARGEST_EDGE:
                raise ParameterError(
                    name, size, f'it must not exceed {_LARGEST_EDGE} with the score "distance"',
                    "Use another score.",
                )  # fmt: skip
        if self.threshold < 1:
            raise ParameterError(
                "threshold", float(self.threshold), "it must be at least 1",
                "It is a χ² with one degree of freedom, such as 3.84 for a level of 5 %.",
            )  # fmt: skip
        if self.threshold >= 2 * self.groups.people:
            raise ParameterError(
                "threshold", float(self.threshold), "no table with so few people exceeds it: χ² is "
                "at most twice their number",
                "Use a smaller one.",
            )  # fmt: skip

    def score(self, counts: NDArray[np.int64]) -> Scored:
        rows = count_alleles(counts)
        large, small = self.groups
        if large < small:  # χ² does not change with the order of the groups
            large, small, rows = small, large, rows[:, ::-1]
        edge, turn = _edge(large, small, self.threshold)
        # Nor with which allele is counted: turned around where that puts the first group ahead.
        ends = np.array([2 * large, 2 * small], np.int64)
        other = ends - rows
        ahead = np.where((small * rows[:, 0] >= large * rows[:, 1])[:, None], rows, other)
        scores = 1 - np.minimum(_until(rows, edge), _until(other, edge))
        beyond = ahead[:, 0] > edge[ahead[:, 1]]
        scores[beyond] = _back(ahead[beyond], edge, turn)
        return scores


def count_alleles(counts: NDArray[np.int64]) -> Alleles:
    """Copies of the allele, from people by genotype; of counts of alleles themselves.

    Examples:
        >>> count_alleles(np.array([[[5, 3, 2], [9, 1, 0]]])).tolist()
        [[7, 1]]
    """
    return counts if counts.ndim == 2 else counts[:, :, 1] + 2 * counts[:, :, 2]


@lru_cache(maxsize=4)
def _edge(large: int, small: int, threshold: Fraction) -> tuple[NDArray[np.int64], int]:
    """Return the highest counts of the larger group that are not significantly ahead.

    There is one for each count of the smaller group. Also the first place from which the next one
    lies at most 1 higher, on average: from there it is no shorter to change people of the smaller
    group.

    All of it is public. It takes one step for each of 2·(large + small) + 1 places.
    """
    people = large + small
    over, under = threshold.numerator, threshold.denominator
    edge = np.empty(2 * small + 1, np.int64)
    a = 0
    for b in range(2 * small + 1):
        while a < 2 * large:
            lead, both = (a + 1) * small - b * large, a + 1 + b
            # χ² = 2·people·lead² / (large·small·both·(2·people − both))
            if lead > 0 and (
                2 * people * lead**2 * under > over * large * small * both * (2 * people - both)
            ):
                break
            a += 1
        edge[b] = a
    return edge, _turn(large, small, threshold)


def _turn(large: int, small: int, threshold: Fraction) -> int:
    """Return ⌊b⌋ of the point (a, b) of the curve χ² = threshold where its slope da/db is 1.

    The first group is ahead; the point is clamped to the table.

    With u = a·small − b·large and v = a + b the curve is u² = κ·v·(2n − v), κ = threshold · large ·
    small / 2n. da = db there means (small − large)·u = 2κ·(n − v): with the curve a quadratic
    equation in v − n.
    """
    people, gap = large + small, large - small
    kappa = threshold * large * small / (2 * people)
    # u = 2κ(v − n)/gap and u² = κ(n² − (v − n)²) give (v − n)² = n²·gap²/(4κ + gap²)
    square = Fraction(people**2 * gap**2) / (4 * kappa + gap**2)
    offset = Fraction(math.isqrt(math.floor(square * 4**40)), 2**40)  # v − n, to 40 bits
    u_square = kappa * (people**2 - square)
    lead = Fraction(math.isqrt(math.floor(u_square * 4**40)), 2**40)
    # a·small − b·large = u and a + b = v
    b = ((people + offset) * small - lead) / people
    return min(max(math.floor(b), 0), 2 * small)


def _back(rows: Alleles, edge: NDArray[np.int64], turn: int) -> Scored:
    """Count the people who must change until a marker is no longer significant.

    The first group is ahead.

    C(y), the number if y of them are of the smaller group, is ⌈convex⌉, least next to the turn or
    where the edge is reached.
    """
    a, b = rows.T
    last = len(edge) - 1
    reached = np.searchsorted(edge, a)  # the first place with an edge of at least a
    least: Scored | None = None
    for stop in (b, np.minimum(turn, reached)):
        for more in (-1, 0, 1):
            y = np.maximum((stop - b) // 2 + more, 0)
            over = np.maximum(a - edge[np.minimum(b + 2 * y, last)], 0)
            number = y + -(-over // 2)
            least = number if least is None else np.minimum(least, number)
    assert least is not None
    return least


def _until(rows: Alleles, edge: NDArray[np.int64]) -> Scored:
    """Return how many people must change until the first group is significantly ahead; 0 if it is.

    The number, if y of them are of the smaller group, is 1 + ⌊concave⌋ while some of the other
    group are needed, so it is least at one of the ends.
    """
    a, b = rows.T
    most = int(edge[-1])
    none_ahead = int(np.searchsorted(edge, most))  # from this place on nobody can be ahead enough
    below = np.searchsorted(edge, a)  # places before it have an edge below a: nobody else is needed
    far = np.int64(4 * (most + len(edge)))
    first = np.maximum(-(-(b - none_ahead + 1) // 2), 0)
    crossing = np.maximum(-(-(b - below + 1) // 2), 0)
    least = np.full(len(a), far)
    for y in (first, crossing - 1, crossing, b // 2, -(-b // 2)):
        place = b - 2 * np.maximum(y, 0)
        place = np.where(place < 0, 0, place)
        over = np.maximum(edge[place] + 1 - a, 0)
        number = np.maximum(y, 0) + -(-over // 2)
        least = np.where(edge[place] < most, np.minimum(least, number), least)
    return least
