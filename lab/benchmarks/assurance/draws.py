"""A million draws of every mechanism against its exact law, and against laws of wrong scales.

    ./dev python -m lab.benchmarks.assurance.draws
    ./dev python -m lab.benchmarks.assurance.draws --only nested-margin

A chi-square test compares how often each labelled answer came with how often it should. It must
accept the law, and reject, on the same draws, the laws with an epsilon that is a tenth smaller or
larger. All tests together raise a false alarm with probability ALPHA.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from fractions import Fraction

from lab.assurance.draws import (
    ALPHA,
    CASES,
    DRAWS,
    EXPECTED,
    Case,
    chances,
    draw_places,
    p_value,
    repeat,
)
from lab.benchmarks.harness import Benchmark, Row, note
from privmax.mechanisms.registry import MECHANISMS

SEED = 21
WRONG = (Fraction(9, 10), Fraction(11, 10))
"""Factors of epsilon that must be rejected."""


def test(case: Case, number: int) -> Row:
    """Draw, and test the draws against the law and against wrong ones."""
    began, mechanism = time.process_time(), case.mechanism()
    profile = case.laws().profile(case.scores)
    found, begun = repeat(
        lambda coins: draw_places(mechanism, profile, case.scores, coins), number, f"{SEED} {case}"
    )
    lower, higher = (p_value(found, chances(case, factor)) for factor in WRONG)
    law = chances(case)
    row: Row = {
        "mechanism": case.name,
        "k": mechanism.k,
        "made": repr(mechanism),
        "universe": case.universe,
        "scores": list(case.scores),
        "draws": number,
        "begun": begun,
        "answers": sum(chance * number >= EXPECTED for chance in law.values()),
        "p": p_value(found, law),
        "lower": lower,
        "higher": higher,
        "alpha": ALPHA / len(CASES),
        "seed": SEED,
        "seconds": round(time.process_time() - began, 1),
    }
    row["accepted"] = row["p"] > row["alpha"]
    row["rejected"] = max(lower, higher) <= row["alpha"]
    note(str(row))
    return row


def measure(options: argparse.Namespace) -> Iterator[dict[str, list[Row]]]:
    """A row for each case, stored as soon as it is there."""
    for case in CASES:
        if not options.only or case.name in options.only:
            yield {"draws": [test(case, 20_000 if options.quick else options.draws or DRAWS)]}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", choices=MECHANISMS, help="this mechanism")
    parser.add_argument("--draws", type=int, help="so many draws instead")


if __name__ == "__main__":
    Benchmark(
        "assurance-draws",
        "assurance.draws",
        {"draws": measure},
        settings={"seed": SEED, "draws": DRAWS, "alpha": ALPHA, "wrong": [0.9, 1.1]},
        packages=("privmax", "python-flint", "scipy"),
        keys={"draws": ("mechanism", "k")},
        arguments=add_options,
    ).main()
