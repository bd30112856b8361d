"""What the test of the best set costs in misses: SetMargin with its stages, earlier ones, and none.

    ./dev python -m lab.benchmarks.quality.set_stages --data FOLDER

From exact laws, so nothing is drawn. The part of the best k that is not released, in an open
universe at δ = 1e-6, of the most frequent pairs and itemsets of all sizes of the sets in FOLDER,
and of profiles made by formulas. Parts:

    missed    sets of pairs and of all sizes
    invented  Zipf's law and geometric ones, with rounding that makes ties
    leads     records by which k must lead all others to be released with probability 0.95
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Final

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from lab.benchmarks.quality.itemsets import ANY, PAIRS, Case
from lab.benchmarks.quality.profiles import Levels, folder, levels_of, zipf
from privmax import Profile, SetMargin, Stage
from privmax.itemsets.reading.forms import read_baskets
from privmax.mechanisms.stages import default_stages
from privmax.numbers import exact

DELTA = "1e-6"
EPSILONS: Final = ("0.25", "0.5", "1")
LENGTHS: Final = (10, 20, 50, 100, 200)
INVENTED_LENGTHS: Final = (3, 5, 10, 20, 28, 50)
SETS: Final = ("groceries", "bms1", "retail", "mushroom", "T10I4D100K")
DEPTH = 601
"""Ranks that count: twice the largest k, 200, and one more."""

Stages = tuple[Stage, ...]


def without_test(k: int, epsilon: Fraction) -> Stages:
    """The same sizes, and nothing for a test."""
    sizes = [stage.size for stage in default_stages(k, epsilon) if stage.width > stage.size]
    number = len(sizes)
    return tuple(
        Stage(
            size,
            2 * size + 200,
            silence=max(Fraction(1, 20), Fraction(1, 5 * (number - place) + 1)),
            part=Fraction(1, number),
        )
        for place, size in enumerate(sizes, start=1)
    )


def test_first(k: int, epsilon: Fraction) -> Stages:
    """What was the default: min(1, ε²)/4 of ε and half of δ for a test before all else."""
    haste = Fraction(1, 4) * min(Fraction(1), epsilon) ** 2
    rest = without_test(k, epsilon)
    if haste < Fraction(1, 32):
        return rest
    later = tuple(replace(stage, part=stage.part / 2) for stage in rest)
    return (Stage(k, k, silence=haste, part=Fraction(1, 2)), *later)


DESIGNS: Final[dict[str, Callable[[int, Fraction], Stages]]] = {
    "no test": without_test,
    "test first (before)": test_first,
    "default": default_stages,
}


def rows(name: str, levels: Levels, lengths: tuple[int, ...]) -> Iterator[Row]:
    """One profile: every k and epsilon by every design."""
    number = sum(many for _, many in levels)
    for k in lengths:
        for epsilon in EPSILONS if number >= k else ():
            for design, stages in DESIGNS.items():
                made = SetMargin(
                    epsilon=epsilon, delta=DELTA, k=k, stages=stages(k, exact("epsilon", epsilon))
                )
                missed = 1 - made.expect(Profile(levels), k)[1] / k
                row = {"profile": name, "k": k, "epsilon": epsilon, "design": design}
                yield row | {"missed": round(max(missed, 0.0), 4)}


def measure_sets(options: argparse.Namespace) -> Iterator[Rows]:
    where = folder(options.data)
    for name in (SETS[:1] if options.quick else SETS) if where else ():
        case = Case(name, read_baskets(Path(str(where)) / f"{name}.dat"))
        for label, sizes in (("pairs", PAIRS), ("all sizes", ANY)):
            note(f"{name}, {label}")
            window = case.source(sizes, False).profile.down_to(DEPTH)
            levels = [(window.top - depth, many) for depth, many in window.first(DEPTH)]
            seen = [level for level in levels if level[0] > 0]
            lengths = LENGTHS[:1] if options.quick else LENGTHS
            yield {"missed": list(rows(f"{name}, {label}", seen, lengths))}


def invented() -> Iterator[tuple[str, Levels]]:
    for exponent in (0.6, 0.8, 1.0, 1.2):
        for digits in (4, 5, 6):
            yield f"Zipf, s = {exponent:g}, 10^{digits} records", zipf(exponent, 10**digits)
    for top in (300, 1000, 5000):
        for ratio in (0.9, 0.95, 0.98):
            scores = (int(top * ratio**rank) for rank in range(2000))
            yield f"geometric, {top:,} · {ratio:g}^i", levels_of(scores)


def measure_invented(options: argparse.Namespace) -> Iterator[Rows]:
    for name, levels in list(invented())[: 1 if options.quick else None]:
        note(name)
        lengths = INVENTED_LENGTHS[:2] if options.quick else INVENTED_LENGTHS
        yield {"invented": list(rows(name, levels, lengths))}


def measure_leads(options: argparse.Namespace) -> Rows:
    found = []
    for k in (2, 10) if options.quick else (2, 5, 10, 15, 20, 30, 50, 100):
        for design, stages in DESIGNS.items():
            made = SetMargin(epsilon=1, delta=DELTA, k=k, stages=stages(k, Fraction(1)))
            lead = made.lead(candidates=None, near=k)
            found.append({"k": k, "design": design, "lead": lead})
    return {"leads": found}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help="folder of the sets")


if __name__ == "__main__":
    Benchmark(
        "set-stages",
        "quality.set_stages",
        {"missed": measure_sets, "invented": measure_invented, "leads": measure_leads},
        settings={"delta": DELTA},
        keys={"missed": ("profile",), "invented": ("profile",)},
        arguments=arguments,
    ).main()
