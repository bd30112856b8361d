"""Every mechanism on profiles that none of them was tuned for: what it loses, in records, by its
exact law.

    ./dev python -m benchmarks.head_to_head --data FOLDER [--output FILE]

FOLDER holds the transaction files that profiles.py names; the environment variable PRIVMAX_DATA may
name it instead. They are not part of this repository, and only what mechanisms lose on them is
stored. Without them the rest is computed and printed, and nothing is stored. Selections of one item
are computed, never sampled; lists of ten are sampled from seeded coins.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, note, source_digest, store
from benchmarks.head_to_head_report import head_to_head_sections
from benchmarks.picture import draw
from benchmarks.profiles import (
    BASKET,
    FILES,
    HUGE,
    ITEMS,
    NATURAL,
    OPEN,
    Case,
    synthetic,
    transactions,
)
from benchmarks.tables import print_tables
from privmax import (
    DYADIC,
    Choosing,
    Exponential,
    GapTest,
    JointExponential,
    LargeMargin,
    LargeMarginTruncated,
    LimitedDomain,
    MaxOfLaplaces,
    NestedMargin,
    PermuteAndFlip,
    Profile,
    SharpMargin,
    StableMaximum,
    auto,
)
from privmax.mechanisms.contract import Law, Mechanism
from privmax.mechanisms.peeling import Ranker
from privmax.testing import SeededCoins

EPSILONS, DELTAS = ("0.1", "1", "10"), ("1e-6", "1e-9")
GRID = [(epsilon, delta) for delta in DELTAS for epsilon in EPSILONS]

K, LISTS, LISTED_AT = 10, 1000, ("1", "1e-6")
LISTED = (
    "Zipf, 10^6 records, s = 1",
    "Zipf, 10^6 records, s = 2",
    "10 tied",
    "shells",
    "groceries",
    "retail",
)
"""What lists are drawn from."""


Maker = Callable[[Case, str, str], Mechanism]

ANY_UNIVERSE: dict[str, Maker] = {
    "NestedMargin": lambda _, epsilon, delta: NestedMargin(epsilon=epsilon, delta=delta),
    "NestedMargin, told κ": lambda case, epsilon, delta: NestedMargin(
        epsilon=epsilon, delta=delta, growth=case.growth
    ),
    "SharpMargin": lambda _, epsilon, delta: SharpMargin(epsilon=epsilon, delta=delta),
    "SharpMargin, dyadic": lambda _, epsilon, delta: SharpMargin(
        epsilon=epsilon, delta=delta, guards=DYADIC
    ),
    "LargeMargin": lambda _, epsilon, delta: LargeMargin(epsilon=epsilon, delta=delta),
    "LargeMarginTruncated": lambda _, epsilon, delta: LargeMarginTruncated(
        epsilon=epsilon, delta=delta
    ),
    "LimitedDomain, rank 1": lambda _, epsilon, delta: LimitedDomain(
        epsilon=epsilon, delta=delta, rank=1
    ),
    "LimitedDomain, rank 1000": lambda _, epsilon, delta: LimitedDomain(
        epsilon=epsilon, delta=delta, rank=1000
    ),
    "LimitedDomain, rank 10^6": lambda _, epsilon, delta: LimitedDomain(
        epsilon=epsilon, delta=delta, rank=10**6
    ),
    "StableMaximum": lambda _, epsilon, delta: StableMaximum(epsilon=epsilon, delta=delta),
    "GapTest": lambda _, epsilon, delta: GapTest(epsilon=epsilon, delta=delta),
    "Choosing, told κ": lambda case, epsilon, delta: Choosing(
        epsilon=epsilon, delta=delta, growth=case.growth
    ),
}
"""Those that need not know the universe."""

CLOSED_UNIVERSE: dict[str, Maker] = {
    "Exponential": lambda _, epsilon, delta: Exponential(epsilon=epsilon),
    "PermuteAndFlip": lambda _, epsilon, delta: PermuteAndFlip(epsilon=epsilon),
    "MaxOfLaplaces": lambda _, epsilon, delta: MaxOfLaplaces(epsilon=epsilon),
}
"""Those that must."""


def rows_of(case: Case) -> Iterator[dict[str, Any]]:
    """One row a mechanism and universe, with a cell for each price of GRID."""
    for name, make in ANY_UNIVERSE.items():
        yield _row(case, OPEN, name, make)
    for universe in (NATURAL, HUGE):
        for name, make in CLOSED_UNIVERSE.items():
            yield _row(case, universe, name, make)
    for universe in (OPEN, NATURAL, HUGE):
        size = case.size(universe)
        picked = {price: auto(epsilon=price[0], delta=price[1], universe=size)[0] for price in GRID}
        row = _row(case, universe, "auto", partial(_looked_up, picked))
        yield {**row, "picked": [type(mechanism).__name__ for mechanism in picked.values()]}


def _looked_up(
    picked: dict[tuple[str, str], Mechanism], _: Case, epsilon: str, delta: str
) -> Mechanism:
    return picked[epsilon, delta]


def _row(case: Case, universe: str, name: str, make: Maker) -> dict[str, Any]:
    size = case.size(universe)
    laws = [make(case, *price).law(Profile(case.levels, universe=size)) for price in GRID]
    return {
        "profile": case.name,
        "universe": universe,
        "mechanism": name,
        "cells": [cell(law, case, size) for law in laws],
    }


def cell(law: Law, case: Case, size: int | None) -> dict[str, float | None]:
    """What is lost, in records.

    none     probability of no answer
    regret   expected best count less that of the item released, given that one is; None: none ever
             is
    loss     the same with no answer counted as a loss of the whole best count
    """
    missed = 0.0
    for score, count, chance in law.blocks:
        if count:  # the infinite block of an open universe is no answer
            value = (
                case.mean_upto(score, size) if score == law.floor and size is not None else score
            )
            missed += chance * (case.best - value)
    answers = 1 - law.none
    return {
        "none": _short(max(0.0, law.none)),
        "regret": _short(missed / answers) if answers > 1e-9 else None,
        "loss": _short(missed + max(0.0, law.none) * case.best),
    }


def _short(number: float) -> float:
    """Six significant figures: more than the tables show, fewer than machines disagree on."""
    return float(f"{number:.6g}")


def listers(k: int, epsilon: str, delta: str) -> dict[tuple[str, str], Ranker]:
    """By name and universe: those that release a list of k."""
    pure, ranged = (
        Exponential(epsilon=epsilon, k=k),
        Exponential(epsilon=epsilon, delta=delta if k > 1 else 0, k=k),
    )
    joint = JointExponential(epsilon=epsilon, k=k)
    table: dict[tuple[str, str], Ranker] = {
        ("SharpMargin", OPEN): SharpMargin(epsilon=epsilon, delta=delta, k=k),
        ("LimitedDomain, rank 1000", OPEN): LimitedDomain(
            epsilon=epsilon, delta=delta, rank=1000, k=k
        ),
    }
    for universe in (NATURAL, HUGE):
        table["Exponential", universe] = pure
        table["Exponential, with δ", universe] = ranged
        table["JointExponential", universe] = joint
    return table


def lists_of(case: Case) -> Iterator[dict[str, Any]]:
    """Lists of K, sampled: how many of the best K are on them, and how often all."""
    for (name, universe), mechanism in listers(K, *LISTED_AT).items():
        profile = Profile(case.levels, universe=case.size(universe))
        last = profile.top() - profile.window(0, K).floor
        found = []
        for draw_number in range(LISTS):
            coins = SeededCoins(f"{case.name}/{name}/{universe}/{draw_number}")
            outcomes = mechanism.ranking(profile, coins)
            found.append(
                sum(outcome.score is not None and outcome.score >= last for outcome in outcomes)
            )
        mean = sum(found) / LISTS
        spread = math.sqrt(sum((number - mean) ** 2 for number in found) / (LISTS - 1) / LISTS)
        yield {
            "profile": case.name,
            "universe": universe,
            "mechanism": name,
            "found": _short(mean),
            "error": _short(spread),
            "whole": found.count(K) / LISTS,
        }


def leads() -> Iterator[dict[str, Any]]:
    """By how much the k best must lead all others for all of them to be released with probability
    0.95.
    """
    sizes = {OPEN: None, NATURAL: ITEMS, HUGE: 10**12}
    for k in (1, 10, 100):
        for (name, universe), mechanism in listers(k, *LISTED_AT).items():
            lead = mechanism.lead(candidates=sizes[universe], near=k)
            yield {"k": k, "universe": universe, "mechanism": name, "lead": lead}


def main() -> None:
    parser = argparse.ArgumentParser(
        description="What every mechanism loses on profiles none was tuned for."
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("PRIVMAX_DATA"),
        help="folder of transaction files",
    )
    parser.add_argument("--output", type=Path, default=RESULTS / "head-to-head.json")
    options = parser.parse_args()
    folder = None if options.data is None else Path(options.data)
    run = {
        "command": "./dev python -m benchmarks.head_to_head --data FOLDER",
        "source": source_digest(),
    }
    cases = [*synthetic(), *transactions(folder)]
    rows: list[dict[str, Any]] = []
    lists: list[dict[str, Any]] = []
    for case in cases:
        note(case.name)
        rows += rows_of(case)
    for case in cases:
        if case.name in LISTED:
            note(f"lists of {K}: {case.name}")
            lists += lists_of(case)
    note("leads")
    result = {
        "run": run,
        "settings": {
            "prices": GRID,
            "listed at": LISTED_AT,
            "k": K,
            "lists": LISTS,
            "basket": BASKET,
        },
        "profiles": [
            {
                "name": case.name,
                "group": case.group,
                "best": case.best,
                "items": case.items,
                "growth": case.growth,
            }
            for case in cases
        ],
        "rows": rows,
        "lists": lists,
        "leads": list(leads()),
    }
    print_tables(head_to_head_sections(result))
    if folder is None:
        note(
            "no transaction data: nothing was stored. Give --data FOLDER with "
            + ", ".join(FILES)
            + " (.dat)"
        )
        return
    store(result, options.output)
    draw(options.output)


if __name__ == "__main__":
    main()
