"""Scores of markers move no further than they say, over all small studies; audits of what is
released; and mutants that must fail.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from privmax import Exponential, PermuteAndFlip, Scores, SetMargin, law
from privmax.auditing import divergence
from privmax.markers import scores
from privmax.markers.release import MarkerSource, top_markers
from privmax.markers.scores import ChiSquare, Difference, Distance, StudyGroups, bonferroni
from privmax.testing import SeededCoins, walk

SIZES = [(1, 1), (2, 2), (3, 3), (1, 3), (4, 2), (2, 5), (5, 3)]


def genotypes(people):
    """All ways in which a group can have genotypes."""
    found = itertools.product(range(people + 1), repeat=3)
    return [counts for counts in found if sum(counts) == people]


def moves(counts):
    """The same group with one person's genotype changed."""
    for left, right in itertools.permutations(range(3), 2):
        if counts[left]:
            moved = list(counts)
            moved[left] -= 1
            moved[right] += 1
            yield tuple(moved)


def tables(cases, controls):
    return list(itertools.product(genotypes(cases), genotypes(controls)))


def neighbors(table):
    cases, controls = table
    yield from ((other, controls) for other in moves(cases))
    yield from ((cases, other) for other in moves(controls))


def largest_move(score, groups):
    """How far one person moves it at most, over all tables of these sizes."""
    everything = tables(*groups)
    found = dict(zip(everything, score(np.array(everything)).tolist(), strict=True))
    return max(abs(found[one] - found[other]) for one in everything for other in neighbors(one))


def chi_square(rows):
    """Pearson's χ², by its definition."""
    total = [sum(row) for row in rows]
    columns = [sum(column) for column in zip(*rows, strict=True)]
    found = Fraction(0)
    for row, size in zip(rows, total, strict=True):
        for seen, column in zip(row, columns, strict=True):
            if column:
                expected = Fraction(size * column, sum(total))
                found += (seen - expected) ** 2 / expected
    return found


def by_alleles(table):
    return [(2 * zero + one, one + 2 * two) for zero, one, two in table]


@pytest.mark.parametrize("sizes", SIZES)
def test_no_score_moves_further_than_it_says(sizes):
    groups = StudyGroups(*sizes)
    assert largest_move(Difference(groups).score, groups) == Difference(groups).steps
    for kind in (True, False):
        test = ChiSquare(groups, kind)
        assert test.steps - 1 <= largest_move(test.score, groups) <= test.steps
    for threshold in ("1", "1.7", "2.71", "3.84"):
        if Fraction(threshold) < 2 * groups.people:
            assert largest_move(Distance(groups, Fraction(threshold)).score, groups) == 1


@pytest.mark.parametrize("sizes", SIZES)
def test_the_sensitivity_of_chi_square_is_attained(sizes):
    groups = StudyGroups(*sizes)
    everything = tables(*sizes)
    for kind, rows in ((True, lambda table: table), (False, by_alleles)):
        exact = {table: chi_square(rows(table)) for table in everything}
        moved = max(abs(exact[one] - exact[other]) for one in exact for other in neighbors(one))
        assert moved == ChiSquare(groups, kind).sensitivity


def test_equal_groups_have_the_published_sensitivity():
    for half in (1, 7, 1000):
        people = 2 * half
        assert ChiSquare(StudyGroups(half, half), True).sensitivity == Fraction(
            4 * people, people + 2
        )


@pytest.mark.parametrize("sizes", SIZES)
def test_chi_square_is_rounded_down_exactly(sizes):
    groups = StudyGroups(*sizes)
    everything = tables(*sizes)
    for kind, rows in ((True, lambda table: table), (False, by_alleles)):
        test = ChiSquare(groups, kind)
        found = test.score(np.array(everything)).tolist()
        assert found == [math.floor(chi_square(rows(one)) / test.unit) for one in everything]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [*SIZES, (7, 3), (9, 2), (6, 8)])
@pytest.mark.parametrize("threshold", ["1", "1.3", "2", "2.7", "3.84", "8", "10.83"])
def test_the_distance_is_the_least_number_of_people(sizes, threshold):
    groups, line = StudyGroups(*sizes), Fraction(threshold)
    if line >= 2 * groups.people:
        pytest.skip("no table is significant")
    cases, controls = groups
    points = list(itertools.product(range(2 * cases + 1), range(2 * controls + 1)))
    alleles = [[(2 * cases - a, a), (2 * controls - b, b)] for a, b in points]
    beyond = np.array([chi_square(rows) > line for rows in alleles])
    array = np.array(points)
    expected = []
    for point, significant in zip(array, beyond, strict=True):
        others = array[beyond != significant]
        people = (-(-np.abs(others - point) // 2)).sum(axis=1).min()
        expected.append(int(people) if significant else 1 - int(people))
    assert Distance(groups, line).score(array).tolist() == expected


def test_large_studies_fit_into_64_bits():
    size = scores.LARGEST_GROUP
    groups = StudyGroups(size, size - 1)
    alleles = np.array([[2 * size, 0], [0, 2 * size - 2], [size, size - 1]])
    found = Difference(groups).score(alleles)
    assert found.tolist() == [8 * 2 * (size - 1), 8 * 2 * (size - 1), 0]
    test = ChiSquare(groups, needs_genotypes=False)
    assert [math.floor(2 * groups.people / test.unit)] * 2 == test.score(alleles)[:2].tolist()


def test_a_thousand_studies_in_floats_and_exactly():
    """Whatever is decided in floats is what rationals say."""
    random = np.random.default_rng(1)
    groups = StudyGroups(1237, 1999)
    alleles = np.stack([random.integers(0, 2 * size + 1, 1000) for size in groups], axis=1)
    test = ChiSquare(groups, needs_genotypes=False)
    for (a, b), found in zip(alleles.tolist(), test.score(alleles).tolist(), strict=True):
        rows = [(a, 2 * groups.cases - a), (b, 2 * groups.controls - b)]
        assert found == math.floor(chi_square(rows) / test.unit)


def test_thresholds():
    assert bonferroni(1) == Fraction("3.8415")
    assert bonferroni(20_000) > bonferroni(1000) > 16


# Audits: two markers, all studies of a few people

MAKERS = {
    "difference": Difference,
    "chi-square": lambda groups: ChiSquare(groups, needs_genotypes=False),
    "genotype-chi-square": lambda groups: ChiSquare(groups, needs_genotypes=True),
    "distance": lambda groups: Distance(groups, Fraction("1.5")),
}


PAIRS = list(itertools.product(range(3), repeat=2))


def studies(groups):
    """Studies of two markers: what each person has at both, as sorted lists of pairs."""
    sides = [itertools.combinations_with_replacement(PAIRS, size) for size in groups]
    return itertools.product(*map(list, sides))


def counts_of(study):
    counts = np.zeros((2, 2, 3), int)
    for group, people in enumerate(study):
        for marker in range(2):
            for copies, number in Counter(person[marker] for person in people).items():
                counts[marker, group, copies] = number
    return counts


def near(study):
    for group, people in enumerate(study):
        for place, person in itertools.product(range(len(people)), PAIRS):
            changed = tuple(sorted((*people[:place], person, *people[place + 1 :])))
            yield (changed, study[1]) if group == 0 else (study[0], changed)


def score_all(score, groups):
    """The scores of both markers in every study, and which pairs of them neighbors have."""
    everything = list(studies(groups))
    counts = np.concatenate([counts_of(study) for study in everything])
    pairs = map(tuple, score.score(counts).reshape(-1, 2).tolist())
    found = dict(zip(everything, pairs, strict=True))
    return {(found[study], found[other]) for study in found for other in near(study)}


def worst(score, mechanism, groups, epsilon=None):
    """The largest divergence between neighbors, at the claimed epsilon or another."""
    pairs = score_all(score, groups)
    laws = {
        scores: law(
            list(scores), mechanism=mechanism, universe=2, scores=Scores(sensitivity=score.steps)
        )
        for scores in {one for one, _ in pairs}
    }
    at = mechanism.epsilon if epsilon is None else Fraction(epsilon)
    return max(divergence(laws[one], laws[other], at) for one, other in pairs)


EPSILON = 8
"""So large that a few people are enough to use nearly all of it."""


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("groups", [StudyGroups(2, 2), StudyGroups(3, 1)], ids=str)
def test_one_person_keeps_the_cost(name, groups):
    mechanism = Exponential(epsilon=EPSILON, neighbors="replace")
    assert worst(MAKERS[name](groups), mechanism, groups) <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part"),
    [("difference", "3/4"), ("chi-square", "1/2"), ("distance", "1/2")],
)
def test_the_audit_reaches_the_cost(name, part):
    """With part of epsilon it would fail: not much is given away, even by four people."""
    groups = StudyGroups(2, 2)
    mechanism = Exponential(epsilon=EPSILON, neighbors="replace")
    assert worst(MAKERS[name](groups), mechanism, groups, EPSILON * Fraction(part)) > 1e-6


class Halved(Difference):
    """A mutant: as if one person had one allele."""

    steps = 1


class Balanced(ChiSquare):
    """A mutant: the formula for equal groups, whatever they are."""

    @property
    def sensitivity(self):
        people = self.groups.people
        return Fraction(4 * people, people + 2)


class OneAllele(ChiSquare):
    """A mutant: alleles as if each were a person."""

    @property
    def sensitivity(self):
        return ChiSquare(self.groups, needs_genotypes=True).sensitivity


class Leaping(Distance):
    """A mutant: significant markers get a bonus."""

    def score(self, counts):
        found = super().score(counts)
        return found + 2 * (found > 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("score", "groups"),
    [
        (Halved(StudyGroups(2, 2)), StudyGroups(2, 2)),
        (OneAllele(StudyGroups(2, 2), False), StudyGroups(2, 2)),
        (Leaping(StudyGroups(2, 2), Fraction("1.5")), StudyGroups(2, 2)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_mutants_break_the_cost(score, groups):
    assert worst(score, Exponential(epsilon=EPSILON, neighbors="replace"), groups) > 1e-3


@pytest.mark.parametrize(
    "groups", [StudyGroups(3, 1), StudyGroups(4, 2), StudyGroups(2, 5)], ids=str
)
def test_the_formula_for_equal_groups_breaks_the_sensitivity_of_others(groups):
    mutant = Balanced(groups, needs_genotypes=True)
    assert largest_move(mutant.score, groups) > mutant.steps


def test_monotone_constants_break_the_cost():
    """One person raises one marker and lowers another: counts of people do not."""
    groups = StudyGroups(2, 2)
    assert worst(Difference(groups), Exponential(epsilon=EPSILON), groups) > 0.05


def test_markers_that_somebody_has_are_no_universe():
    """A mutant: only markers at which the allele occurs are candidates."""
    mechanism = PermuteAndFlip(epsilon=1, neighbors="replace")

    def release(study):
        counts = counts_of(study)
        seen = [place for place in range(2) if counts[place, :, 1:].any()]
        if not seen:
            return {None: 1.0}
        found = Difference(StudyGroups(1, 1)).score(counts[seen]).tolist()
        drawn = law(found, mechanism=mechanism, universe=len(seen), scores=Scores(sensitivity=2))
        return {place: drawn[number] for number, place in enumerate(seen)}

    laws = {study: release(study) for study in studies(StudyGroups(1, 1))}
    found = max(divergence(laws[study], laws[other], 1) for study in laws for other in near(study))
    assert found > 0.1


@pytest.mark.slow
def test_the_release_has_the_law():
    counts = np.array([[4, 0], [1, 1]])
    score = Difference(StudyGroups(2, 2))
    mechanism = PermuteAndFlip(epsilon=1, neighbors="replace")
    exact = mechanism.law(MarkerSource(score.score(counts), None, score).profile)
    drawn, unfinished = walk(
        lambda coins: top_markers(counts, cases=2, controls=2, epsilon=1, coins=coins).item, 9
    )
    assert unfinished < 0.2
    for marker, value in enumerate(score.score(counts).tolist()):
        mass = float(drawn.get(marker, 0))
        assert mass - 1e-9 <= exact.of(value) <= mass + float(unfinished) + 1e-9


def test_several_markers_are_drawn_in_rounds():
    """Half of nothing is nothing: at a huge epsilon the best come out, best first."""
    counts = np.array([[10, 0], [3, 3], [8, 0], [4, 3]])
    options = {"cases": 5, "controls": 5, "k": 2, "coins": SeededCoins(1)}
    release = top_markers(counts, epsilon=3000, **options)
    assert release.items == (0, 2)
    assert isinstance(release.mechanism, Exponential)
    assert release.mechanism.neighbors == "replace"
    named = top_markers(counts, epsilon=3000, mechanism="set-margin", **options)
    assert named.items == (0, 2)
    assert isinstance(named.mechanism, SetMargin)
