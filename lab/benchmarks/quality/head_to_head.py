"""Every mechanism on profiles that none was tuned for: what it loses, in records, by its law.

    ./dev python -m lab.benchmarks.quality.head_to_head --data FOLDER

FOLDER (or the variable PRIVMAX_DATA) holds the transaction files that profiles.py names, which are
not part of this repository; only what mechanisms lose on them is stored. Selections of one item are
computed, never sampled; lists of ten are sampled from seeded coins.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.quality.profiles import (
    BASKET,
    HUGE,
    ITEMS,
    NATURAL,
    OPEN,
    Case,
    folder,
    synthetic,
    transactions,
)
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
UNIVERSES = (OPEN, NATURAL, HUGE)

OURS = ("NestedMargin", "SharpMargin", "auto")
"""What this library would have you use. Their variants are ours too, and not among the others."""

TIE = 1e-6
"""Losses that differ by less than this part of the best count are equal: a mechanism's clip alone
moves 2^-24.
"""

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


def made(kind: Any, **more: Any) -> Maker:
    """At a price with a delta."""
    return lambda case, epsilon, delta: kind(epsilon=epsilon, delta=delta, **more)


def told(kind: Any) -> Maker:
    """The same, told how many items a record touches at most."""
    return lambda case, epsilon, delta: kind(epsilon=epsilon, delta=delta, growth=case.growth)


def pure(kind: Any) -> Maker:
    return lambda case, epsilon, delta: kind(epsilon=epsilon)


ANY_UNIVERSE: dict[str, Maker] = {
    "NestedMargin": made(NestedMargin),
    "NestedMargin, told κ": told(NestedMargin),
    "SharpMargin": made(SharpMargin),
    "SharpMargin, dyadic": made(SharpMargin, guards=DYADIC),
    "LargeMargin": made(LargeMargin),
    "LargeMarginTruncated": made(LargeMarginTruncated),
    "LimitedDomain, rank 1": made(LimitedDomain, rank=1),
    "LimitedDomain, rank 1000": made(LimitedDomain, rank=1000),
    "LimitedDomain, rank 10^6": made(LimitedDomain, rank=10**6),
    "StableMaximum": made(StableMaximum),
    "GapTest": made(GapTest),
    "Choosing, told κ": told(Choosing),
}
"""Those that need not know the universe."""

CLOSED_UNIVERSE: dict[str, Maker] = {
    "Exponential": pure(Exponential),
    "PermuteAndFlip": pure(PermuteAndFlip),
    "MaxOfLaplaces": pure(MaxOfLaplaces),
}
"""Those that must."""


def rows_of(case: Case) -> Iterator[Row]:
    """One row a mechanism and universe, with a cell for each price of GRID."""
    for name, make in ANY_UNIVERSE.items():
        yield _row(case, OPEN, name, make)
    for universe in (NATURAL, HUGE):
        for name, make in CLOSED_UNIVERSE.items():
            yield _row(case, universe, name, make)
    for universe in UNIVERSES:
        size = case.size(universe)
        picked = {(e, d): auto(epsilon=e, delta=d, universe=size or OPEN)[0] for e, d in GRID}
        row = _row(case, universe, "auto", partial(_looked_up, picked))
        yield {**row, "picked": [type(mechanism).__name__ for mechanism in picked.values()]}


def _looked_up(
    picked: dict[tuple[str, str], Mechanism], _: Case, epsilon: str, delta: str
) -> Mechanism:
    return picked[epsilon, delta]


def _row(case: Case, universe: str, name: str, make: Maker) -> Row:
    size = case.size(universe)
    laws = [make(case, *price).law(Profile(case.levels, universe=size)) for price in GRID]
    return {
        "profile": case.name,
        "universe": universe,
        "mechanism": name,
        "cells": [cell(law, case, size) for law in laws],
    }


def cell(law: Law, case: Case, size: int | None) -> Row:
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
    pure, bounded_range = (
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
        table["Exponential, with δ", universe] = bounded_range
        table["JointExponential", universe] = joint
    return table


def lists_of(case: Case, times: int) -> Iterator[Row]:
    """Lists of K, sampled: how many of the best K are on them, and how often all."""
    for (name, universe), mechanism in listers(K, *LISTED_AT).items():
        profile = Profile(case.levels, universe=case.size(universe))
        last = profile.top() - profile.window(0, K).floor
        found = []
        for draw_number in range(times):
            coins = SeededCoins(f"{case.name}/{name}/{universe}/{draw_number}")
            outcomes = mechanism.ranking(profile, coins)
            found.append(
                sum(outcome.score is not None and outcome.score >= last for outcome in outcomes)
            )
        mean = sum(found) / times
        spread = math.sqrt(sum((number - mean) ** 2 for number in found) / (times - 1) / times)
        yield {
            "profile": case.name,
            "universe": universe,
            "mechanism": name,
            "found": _short(mean),
            "error": _short(spread),
            "whole": found.count(K) / times,
        }


def leads() -> Iterator[Row]:
    """By how much the k best must lead all others for all of them to be released with probability
    0.95.
    """
    sizes = {OPEN: None, NATURAL: ITEMS, HUGE: 10**12}
    for k in (1, 10, 100):
        for (name, universe), mechanism in listers(k, *LISTED_AT).items():
            lead = mechanism.lead(candidates=sizes[universe], near=k)
            yield {"k": k, "universe": universe, "mechanism": name, "lead": lead}


def losses(profiles: list[Row], rows: list[Row]) -> Iterator[Row]:
    """Every profile, price and universe: what the best of the others loses, and what ours do.

    Whoever knows the universe may still use what need not know it, so the open rows compete in
    every universe. `behind` is by how many records one of ours loses more; 0 where they are equal.
    """
    for universe in UNIVERSES:
        for profile in profiles:
            here = [row for row in rows if row["profile"] == profile["name"]]
            here = [row for row in here if row["universe"] in (OPEN, universe)]
            others = [row for row in here if not row["mechanism"].startswith(OURS)]
            ours = {row["mechanism"]: row for row in here if row["mechanism"] in OURS}
            ours["auto"] = next(
                row for row in here if (row["mechanism"], row["universe"]) == ("auto", universe)
            )
            for place, (epsilon, delta) in enumerate(GRID):
                loss = {row["mechanism"]: row["cells"][place]["loss"] for row in others}
                rival = min(loss, key=loss.__getitem__)
                behind = {who: ours[who]["cells"][place]["loss"] - loss[rival] for who in OURS}
                yield {
                    "universe": universe,
                    "profile": profile["name"],
                    "best": profile["best"],
                    "epsilon": epsilon,
                    "delta": delta,
                    "rival": rival,
                    "loss": loss[rival],
                    **{
                        who: more if more > TIE * profile["best"] else 0.0
                        for who, more in behind.items()
                    },
                }


def summaries(cells: list[Row]) -> Iterator[Row]:
    """In how many cells each of ours is behind, and where it is worst, by the best count."""
    for universe in UNIVERSES:
        for who in OURS:
            here = [cell for cell in cells if cell["universe"] == universe]
            worst = max(here, key=lambda cell: float(cell[who]) / cell["best"])
            row = {"universe": universe, "mechanism": who, "cells": len(here)}
            row["lost"] = sum(cell[who] > 0 for cell in here)
            more = worst[who]
            if more:
                row |= {"most": more, "part": more / worst["best"], "rival": worst["rival"]}
                row["where"] = "{profile}, ε = {epsilon}, δ = {delta}".format_map(worst)
            yield row


def compute(options: argparse.Namespace) -> Rows:
    data = folder(options.data)
    if data is None and not options.quick:
        note("SKIPPED: no transaction files. Name their folder with --data.")
        return {}
    cases = [*synthetic(), *([] if options.quick else transactions(data))]
    if options.quick:
        cases = [case for case in cases if case.group == "shapes"]
    profiles = [
        {key: getattr(case, key) for key in ("name", "group", "best", "items", "growth")}
        for case in cases
    ]
    rows: list[Row] = []
    lists: list[Row] = []
    for case in cases:
        note(case.name)
        rows += rows_of(case)
        if case.name in LISTED:
            lists += lists_of(case, 20 if options.quick else LISTS)
    compared = list(losses(profiles, rows))
    return {
        "profiles": profiles,
        "rows": rows,
        "behind": list(summaries(compared)),
        "lost": [cell for cell in compared if any(cell[who] for who in OURS)],
        "lists": lists,
        "leads": list(leads()),
    }


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help="folder of the transaction files")


if __name__ == "__main__":
    Benchmark(
        "head-to-head",
        "quality.head_to_head",
        {"all": compute},
        settings={
            "prices": GRID,
            "listed at": LISTED_AT,
            "k": K,
            "lists": LISTS,
            "basket": BASKET,
        },
        arguments=arguments,
    ).main()
