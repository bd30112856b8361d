"""A guard for every rank, the mechanism of lab/sharper.md, from its formula: its leads are those
stored, and it is private on all small neighbors, where weaker guards are not.
"""

from __future__ import annotations

import json
import math
from functools import cache
from itertools import combinations_with_replacement, product
from pathlib import Path

import pytest

STORED = Path(__file__).parents[2] / "lab/benchmarks/results/one-item.json"


@cache
def harmonic(reach):
    return math.fsum(1 / rank for rank in range(1, reach + 1))


def chances(scores, *, epsilon, delta, reach, drift=1, share=1 / 256, part=1.0, yielding=4):
    """Candidate by candidate and rank by rank; no answer last.

    part      of delta that all guards have together
    yielding  4, or more where a guard gives way too fast
    """
    rate = epsilon + math.log(1 - share * epsilon)
    parts = harmonic(reach)
    heft = math.expm1(rate) * parts / (part * delta)
    floor = 4 * parts / (heft * share * epsilon - 4)
    assert (math.exp(epsilon) * reach + 4) / heft <= math.cosh(rate) - 1
    ranked = [*sorted(scores, reverse=True), 0]
    weights = [math.exp(rate * score / drift) for score in ranked]
    found = [0.0] * len(scores)
    for rank in range(1, min(reach, len(scores)) + 1):
        total, following = sum(weights[:rank]), weights[rank]
        guard = rank * max(heft * following, floor * weights[0])
        draw = guard if 2 * total <= guard else total / (1 - guard / (yielding * total))
        for place, score in enumerate(scores):
            weight = math.exp(rate * score / drift)
            if weight > following:
                found[place] = max(found[place], (weight - following) / draw)
    return [*found, 1 - math.fsum(found)]


def excess(ours, theirs, epsilon):
    pairs = zip(ours, theirs, strict=True)
    return math.fsum(max(0.0, one - math.exp(epsilon) * other) for one, other in pairs)


def most_used(profiles, moves, **options):
    """The largest part of delta that neighbors use, both ways."""
    law = cache(lambda scores: chances(scores, **options))
    most = 0.0
    for scores in profiles:
        for move in product(moves, repeat=len(scores)):
            other = tuple(max(0, score + step) for score, step in zip(scores, move, strict=True))
            lower, upper = law(scores), law(other)
            both = (
                excess(lower, upper, options["epsilon"]),
                excess(upper, lower, options["epsilon"]),
            )
            most = max(most, *both)
    return most / options["delta"]


SMALL = list(combinations_with_replacement((14, 13, 8, 7, 6, 5, 1, 0), 4))
PRICE = {"epsilon": 1, "delta": 1e-5, "reach": 4}


@pytest.mark.parametrize(("drift", "moves"), [(1, (0, -1)), (2, (1, 0, -1))])
def test_it_is_private_on_small_neighbors(drift, moves):
    profiles = SMALL if drift == 1 else SMALL[::7]
    assert 0.2 < most_used(profiles, moves, **PRICE, drift=drift) <= 1


@pytest.mark.parametrize("mutant", [{"part": 2}, {"yielding": 5}], ids=str)
def test_weaker_guards_are_found_out(mutant):
    assert most_used(SMALL, (0, -1), **PRICE, **mutant) > 1


@pytest.mark.parametrize(("relation", "drift"), [("add-remove", 1), ("replace", 2)])
def test_the_stored_leads_are_those_of_the_formula(relation, drift):
    rows = json.loads(STORED.read_text(encoding="utf-8"))["leads"]
    stored = {
        row["near"]: row["lead"]
        for row in rows
        if (row["mechanism"], row["relation"]) == ("every rank", relation)
    }
    assert set(stored.values()) == {19 * drift}
    options = {"epsilon": 1, "delta": 1e-6, "reach": 2**20, "drift": drift}
    for near in (1, 3, 10):
        lead = stored[near]
        *_, enough = chances((lead,) * near, **options)
        *_, too_little = chances((lead - 1,) * near, **options)
        assert enough <= 0.05 < too_little
