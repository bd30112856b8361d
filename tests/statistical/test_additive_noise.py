"""The noise that an additive model tells of its tables is what repeated fits have."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from privmax.learning import Category, Number, PrivateGAM, PrivateRegressor, Schema
from privmax.testing import SeededCoins

pytestmark = pytest.mark.slow

FITS = 60
ALPHA = 1e-3
ROUGH = 1.3
"""What is told is right to first order, and rounded up to whole steps."""

RNG = np.random.default_rng(5)
ROWS = 6_000
AGE = RNG.uniform(0, 10, ROWS)
WORK = RNG.choice(["a", "b", "c"], ROWS)
ILL = (RNG.random(ROWS) < 1 / (1 + np.exp(5 - AGE))).astype(int)
PAY = 2 * AGE + RNG.normal(0, 2, ROWS)
NUMBER = Schema(age=Number(0, 10, cells=6))
CASES = {
    "labels by a number": (NUMBER, AGE, ILL),
    "labels by a category": (Schema(work=Category(["a", "b", "c"])), WORK, ILL),
    "a regression": (NUMBER, AGE, PAY),
}


def fits(name):
    """Tables with the start that they make up for, and the variances told, fit by fit."""
    schema, column, target = CASES[name]
    tables, told = [], []
    for seed in range(FITS):
        shared = {"epsilon": 1, "delta": 1e-6, "rounds": 5, "order": "cyclic"}
        shared["coins"] = SeededCoins(f"{name}, {seed}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if target is PAY:
                learner = PrivateRegressor(schema, targets=(-10, 40), **shared)
                model = learner.fit(column[:, None], target).model_.tables
            else:
                learner = PrivateGAM(schema, labels=[0, 1], **shared)
                model = learner.fit(column[:, None], target).model_
        ((part, table),) = model.tables.items()
        seen = slice(3 if column is WORK else None)  # no row is in the cell of other categories
        tables.append(np.array(table)[seen] + model.intercept)
        told.append(np.array(model.noise[part], float)[seen] ** 2)
    return np.array(tables), np.array(told).mean(axis=0)


def is_rejected(tables, told):
    """Whether the mean of squares over what is told, summed over cells, is too far from 1."""
    from scipy.stats import chi2

    ratio = float((tables.var(axis=0, ddof=1) / told).mean())
    free = FITS - 1  # of one cell: those of a table move together
    low, high = chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], free) / free
    return not low / ROUGH**2 < ratio < high * ROUGH**2


@pytest.mark.parametrize("name", CASES)
def test_repeated_fits_differ_by_the_noise_that_is_told(name):
    tables, told = fits(name)
    assert not is_rejected(tables, told)
    assert is_rejected(tables, told * 5)
    assert is_rejected(tables, told / 5)
