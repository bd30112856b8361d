"""A study counted by an engine has the counts that memory finds."""

from __future__ import annotations

import itertools
from contextlib import ExitStack

import numpy as np
import pytest

from privmax.markers.reading import StudyLayout, count_genotypes
from privmax.markers.scores import StudyGroups

NAMES = ["rs1", "RS1", "rs2 ", "rs2", "rs9"]
"""Nobody has the last; some databases call others equal."""

GROUPS = StudyGroups(12, 8)


def study():
    """Genotypes of everybody at the first four markers, 9 where one is unknown."""
    random = np.random.default_rng(0)
    return random.choice([0, 1, 2, 9], (sum(GROUPS), 4), p=[0.4, 0.3, 0.2, 0.1])


def long_form(genotypes):
    rows = [
        (f"person {person}", NAMES[marker], int(genotypes[person, marker]))
        for person, marker in itertools.product(*map(range, genotypes.shape))
    ]
    rows += [(person, marker, 9) for person, marker, _ in rows[:7]]  # said once more, as unknown
    rows = [row for place, row in enumerate(rows) if place % 11]
    cases = {f"person {person}" for person in range(GROUPS.cases)}
    return {
        "person": [person for person, _, _ in rows],
        "rs": [marker for _, marker, _ in rows],
        "copies": [copies for _, _, copies in rows],
        "status": ["case" if person in cases else "Case" for person, _, _ in rows],
    }


def count_by_hand(rows):
    found = {}
    for person, marker, copies, status in zip(*rows.values(), strict=True):
        key = person, NAMES.index(marker), 0 if status == "case" else 1
        found[key] = max(found.get(key, -1), -1 if copies == 9 else copies)
    counts = np.zeros((len(NAMES), 2, 3), int)
    for (_, marker, group), copies in found.items():
        if copies >= 0:
            counts[marker, group, copies] += 1
    counts[:, :, 1] += np.array(GROUPS) - counts.sum(axis=2)
    return counts.tolist()


def read(table, markers, **options):
    layout = StudyLayout.of(table, GROUPS, markers, case="case", missing=9, impute=1, **options)
    with ExitStack() as stack:
        return count_genotypes(table, layout, stack).tolist()


@pytest.mark.parametrize("kind", [int, float])
def test_a_row_for_each_genotype(load, kind):
    rows = long_form(study())
    table = load({**rows, "copies": list(map(kind, rows["copies"]))})
    columns = {"marker": "rs", "genotype": "copies", "person": "person", "status": "status"}
    assert read(table, NAMES, **columns) == count_by_hand(rows)


def test_a_column_for_each_marker(load):
    genotypes = study()
    names = ["a", "b", "c", "d"]
    columns = {name: genotypes[:, place].tolist() for place, name in enumerate(names)}
    status = ["case"] * GROUPS.cases + ["Case"] * GROUPS.controls
    expected = read(genotypes, None, status=status)
    assert read(load({**columns, "status": status}), names, status="status") == expected
