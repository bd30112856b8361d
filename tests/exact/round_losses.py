"""What a round of an additive model loses, exactly: a choice of a part, then sums of its cells."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from privmax.sources.memory import MemorySource

ORDERS = (1.1, 2, 5, 20, 100)


def gaussian_loss(moves, variance, order):
    """Rényi divergence between discrete Gaussian noise around two whole-number vectors.

    Without noise it is infinite, unless they are the same.
    """
    square = sum(int(move) ** 2 for move in np.ravel(moves))
    if not square:
        return 0.0
    return order * square / (2 * float(variance)) if variance else math.inf


@cache
def law_of_scores(scores, chooser, sensitivity):
    """The chance of each part, by its number."""
    source = MemorySource(np.array(scores), universe=len(scores), sensitivity=sensitivity)
    law = chooser.law(source.profile)
    return {number: law.of(score) for number, score in enumerate(scores)}


def choice_loss(laws, sums, order, variances):
    """Rényi divergence of the choice of a part and its noisy sums.

    Args:
        laws: Of the choice, for both neighbors.
        sums: Residuals and curvatures of every part, for both.
        order: Of the divergence.
        variances: Of the noise on residuals, and on curvatures.
    """
    terms = []
    for number, chance in laws[0].items():
        part = sum(
            gaussian_loss(one - other, variance, order)
            for one, other, variance in zip(
                sums[0][number], sums[1][number], variances, strict=True
            )
        )
        ratio = order * math.log(chance) + (1 - order) * math.log(laws[1][number])
        terms.append(ratio + (order - 1) * part)
    top = max(terms)
    if top == math.inf:
        return math.inf
    return (top + math.log(sum(math.exp(one - top) for one in terms))) / (order - 1)
