"""One item: what any mechanism can do with few candidates, and a mechanism with a guard per rank.

    ./dev python -m lab.benchmarks.quality.one_item

Open universe. Nothing is drawn. Parts:

    program    the best symmetric mechanism for two to five candidates, by linear programs whose
               values are certified in fractions (quality/symmetric_program.py)
    law        an optimal law for two candidates, beside tests of their gaps
    leads      records by which tied candidates must lead to be released with probability 0.95
    profiles   chance of no answer where the best candidates are not tied
    audit      how much of δ the new mechanism uses on neighbors, by a seeded search
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.quality.every_rank import EveryRank, Levels, excess
from lab.benchmarks.quality.symmetric_program import ALL, TIES, Program
from privmax import GapTest, NestedMargin, Profile
from privmax.mechanisms.contract import Law
from privmax.privacy import ADD_REMOVE, REPLACE, drift

EPSILON, DELTA = 1, "1e-6"
REACH = 2**20
NEARS: Final = (1, 2, 3, 10, 33, 1000, 1025, 10**6, REACH)

PROGRAMS: Final = [
    (candidates, delta, top, asked)
    for candidates, delta, top in (
        (2, "1e-2", 6),
        (3, "1e-2", 6),
        (4, "1e-2", 6),
        (5, "1e-2", 6),
        (2, "1e-3", 9),
        (3, "1e-3", 9),
        (2, "1e-6", 16),
        (2, "1e-6", 17),
        (3, "1e-6", 16),
    )
    for asked in (TIES, ALL)
] + [(3, "1e-6", 17, TIES)]
"""Candidates, delta, the best score, and on which profiles an answer is asked for."""

UNEVEN: Final[dict[str, Levels]] = {
    "1 at 25, 10 at 20": [(25, 1), (20, 10)],
    "1 at 25, 1,000 at 20": [(25, 1), (20, 1000)],
    "1 at 25, 1,000 at 5": [(25, 1), (5, 1000)],
    "1 at 25, one at each score below": [(score, 1) for score in range(25, 0, -1)],
    "1 at 25, then twice as many per score": [(25 - step, 2**step) for step in range(20)],
    "1 at 25, then three times as many per score": [(25 - step, 3**step) for step in range(12)],
    "1 at 60": [(60, 1)],
}


def measure_programs(options: argparse.Namespace) -> Iterator[Rows]:
    for candidates, delta, top, asked in PROGRAMS[:2] if options.quick else PROGRAMS:
        note(f"{candidates} candidates, delta {delta}, best score {top}, {asked}")
        program = Program(candidates, top, asked, Fraction(EPSILON), Fraction(delta))
        reached, bound = program.solve()
        row = {"candidates": candidates, "delta": delta, "top": top, "asked": asked}
        yield {"programs": [row | {"reached": _down(reached), "bound": _up(bound)}]}


def measure_law(options: argparse.Namespace) -> Rows:
    top, delta = 9, "1e-3"
    laws = Program(2, top, TIES, Fraction(EPSILON), Fraction(delta)).law()
    test = GapTest(epsilon=EPSILON, delta=delta)
    passed = [test.law(Profile([(gap, 1)])).best() if gap else 0.0 for gap in range(top + 1)]
    found = []
    for second in range(top + 1):
        law = laws[top, second]
        first, other = law[top], law.get(second, 0.0)
        both = 2 * first if second == top else first + other
        row = {"second": second, "first": first, "other": other, "none": 1 - both}
        tests = {"alone": passed[top - second], "half": passed[second] / 2}
        found.append({key: round(number, 5) for key, number in (row | tests).items()})
    return {"law": found}


def measure_leads(options: argparse.Namespace) -> Rows:
    found: list[Row] = []
    for relation in (ADD_REMOVE, REPLACE):
        nested = NestedMargin(epsilon=EPSILON, delta=DELTA, neighbors=relation)
        every = EveryRank(EPSILON, float(DELTA), REACH, drift(relation))
        for near in NEARS[:2] if options.quick else NEARS:
            leads = {
                "NestedMargin": nested.lead(candidates=None, near=near),
                "every rank": every.lead(near),
            }
            for mechanism, lead in leads.items():
                row = {"relation": relation, "mechanism": mechanism, "near": near}
                found.append(row | {"lead": lead})
    return {"leads": found}


def measure_profiles(options: argparse.Namespace) -> Rows:
    nested = NestedMargin(epsilon=EPSILON, delta=DELTA)
    every = EveryRank(EPSILON, float(DELTA), REACH)
    found: list[Row] = []
    for name, levels in UNEVEN.items():
        silences = {
            "NestedMargin": 1 - answered(nested.law(Profile(levels))),
            "every rank": every.law(levels)[1],
        }
        for mechanism, silence in silences.items():
            found.append({"profile": name, "mechanism": mechanism, "silence": round(silence, 6)})
    return {"profiles": found}


def answered(law: Law) -> float:
    """The chance of a candidate that was seen; unseen ones are no answer."""
    return math.fsum(chance for _, number, chance in law.blocks if number is not None)


class Undivided(EveryRank):
    """A mutant, which the search must find out: every guard has all of delta."""

    parts = 1.0


def measure_audit(options: argparse.Namespace) -> Iterator[Rows]:
    starts = 50 if options.quick else 500
    for epsilon, delta, reach in ((1, "1e-6", REACH), (1, "1e-6", 1000), (2, "1e-6", 50)):
        for name, kind in {"divided": EveryRank, "undivided": Undivided}.items():
            if name == "undivided" and reach == REACH:
                continue  # it breaks the condition
            note(f"audit: epsilon {epsilon}, delta {delta}, reach {reach}, {name}")
            mechanism = kind(epsilon, float(delta), reach)
            worst = max(climb(mechanism, random.Random(seed)) for seed in range(starts))
            row = {"epsilon": epsilon, "delta": delta, "reach": reach, "division": name}
            yield {"audit": [row | {"starts": starts, "used": round(worst, 3)}]}


def climb(mechanism: EveryRank, rng: random.Random, steps: int = 60) -> float:
    """The part of delta that neighbors use, from a random pair on uphill."""
    top = int(30 / mechanism.epsilon)
    levels = crowds(mechanism, rng, top)
    falls = [fall(rng, many) for _, many in levels]
    most = excess(mechanism, levels, falls)
    for _ in range(steps):
        moved = dict(levels)
        score = rng.choice(list(moved))
        many = moved.pop(score)
        if rng.random() < 0.5:
            score = max(1, score + rng.choice((-1, 1)))
        else:
            many = max(1, round(many * rng.choice((0.5, 0.8, 1.25, 2))) + rng.choice((-1, 0, 1)))
        new = sorted((moved | {score: many}).items(), reverse=True)
        kept = dict(zip(levels, falls, strict=True))
        again = [kept.get(level, fall(rng, level[1])) for level in new]
        used = excess(mechanism, new, again)
        if used >= most:
            most, levels, falls = used, new, again
    return most


def crowds(mechanism: EveryRank, rng: random.Random, top: int) -> Levels:
    """Levels whose numbers grow downward by some factor, or at random."""
    levels: Levels = []
    score, many = rng.randint(1, top), 1.0
    factor = rng.choice((1, 1.5, 2, 4, 8, 12, 20))
    while score > 0 and many <= 4 * mechanism.reach and len(levels) < 12:
        levels.append((score, math.ceil(many * rng.uniform(0.7, 1.3))))
        score -= rng.choice((1, 1, 2, 2, 3, rng.randint(1, top)))
        many = many * factor if factor > 1 else math.exp(rng.uniform(0, math.log(mechanism.reach)))
    return levels


def fall(rng: random.Random, many: int) -> int:
    return rng.choice((0, many, many - 1, max(0, many - 1), rng.randint(0, many)))


def _down(number: float) -> float:
    return math.floor(number * 10**5) / 10**5


def _up(number: float) -> float:
    return math.ceil(number * 10**5) / 10**5


if __name__ == "__main__":
    Benchmark(
        "one-item",
        "quality.one_item",
        {
            "program": measure_programs,
            "law": measure_law,
            "leads": measure_leads,
            "profiles": measure_profiles,
            "audit": measure_audit,
        },
        packages=("privmax", "scipy"),
        settings={"epsilon": EPSILON, "delta": DELTA, "reach": REACH},
        keys={
            "programs": ("candidates", "delta", "top", "asked"),
            "audit": ("epsilon", "delta", "reach", "division"),
        },
    ).main()
