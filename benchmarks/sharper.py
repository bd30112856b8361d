"""What was tried to lower the lead of the sharp mechanism, and what each attempt buys.

    ./dev python -m benchmarks.sharper [--output FILE]

Leads in records for 95 % success at epsilon = 1, delta = 1e-6 in an open universe, under both
relations, where 1, 10, 1000 or 10^6 candidates are tied at the top. What is no mechanism of privmax
is in variants.py.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, note, source_digest, store
from benchmarks.paper.lmm_x import LmmX
from benchmarks.sharper_report import sharper_sections
from benchmarks.tables import print_tables
from benchmarks.variants import (
    DELTA,
    EPSILON,
    NEAR,
    RELATIONS,
    SUCCESS,
    Leader,
    flipped,
    guarded,
    nested,
    of_chance,
    of_mechanism,
)
from privmax import (
    DYADIC,
    FEW,
    GapTest,
    Guards,
    LargeMargin,
    LimitedDomain,
    NestedMargin,
    SharpMargin,
)
from privmax.mechanisms.nested_margin import FOURFOLD, NESTING
from privmax.planning.theory import least_lead
from privmax.privacy import Neighbors, swing


def sharp(
    *,
    ranks: Sequence[int] = FEW.ranks,
    prior: Sequence[Fraction] = FEW.prior,
    share: Fraction = FEW.share,
    growth: int | None = None,
) -> Leader:
    guards = Guards(ranks, prior, share=share)
    return of_mechanism(
        lambda neighbors, _: SharpMargin(
            epsilon=EPSILON, delta=DELTA, neighbors=neighbors, guards=guards, growth=growth
        )
    )


def nesting(ranks: Sequence[int] = FOURFOLD, growth: int | None = None) -> Leader:
    return of_mechanism(
        lambda neighbors, _: NestedMargin(
            epsilon=EPSILON, delta=DELTA, neighbors=neighbors, ranks=ranks, growth=growth
        )
    )


def limited(rank: int | None) -> Leader:
    """None: it knows how many near maximizers there are."""
    return of_mechanism(
        lambda neighbors, near: LimitedDomain(
            epsilon=EPSILON, delta=DELTA, neighbors=neighbors, rank=rank or near
        )
    )


def powers(base: int, reach: int) -> list[int]:
    """1, base, base², … up to 2^reach."""
    return [base**j for j in range(reach + 1) if base**j <= 1 << reach]


def falling(ranks: Sequence[int]) -> list[Fraction]:
    """The prior 1/(j+1)."""
    return [Fraction(1, j + 1) for j in range(len(ranks))]


FLOOR = "the floor"


def attempts() -> Iterator[tuple[str, str, Leader, str]]:
    """What it belongs to, what it is, the lead it needs, and the verdict."""
    yield FLOOR, "any mechanism (`theory.least_lead`)", of_limit, "proved impossible below"
    yield FLOOR, "`GapTest`: the optimal test, told that there is one winner", of_mechanism(
        lambda neighbors, _: GapTest(epsilon=EPSILON, delta=DELTA, neighbors=neighbors)
    ), "what is possible for a single winner"  # fmt: skip
    yield (
        FLOOR,
        "`LimitedDomain`, told how many near maximizers there are",
        limited(None),
        "what one guard can do",
    )

    family = "where it began"
    yield family, "`LargeMargin`: the paper's", of_mechanism(
        lambda neighbors, _: LargeMargin(epsilon=EPSILON, delta=DELTA, neighbors=neighbors)
    ), "its constants are those of replace"  # fmt: skip
    yield (
        family,
        "LMM-X: certify, then draw, with one-sided noise",
        of_lmm_x,
        "certainty about the margin is dear",
    )
    yield (
        family,
        "`SharpMargin`: guards at 2^10, 2^20, 2^40, a share of 0.08",
        sharp(),
        "the one to beat",
    )

    family = "share of epsilon for picking"
    for share, verdict in (
        ("0.02", "a record or two for few, three times the lead for 10^6"),
        ("0.04", "a record or two for few, twice the lead for 10^6"),
        ("0.16", "few pay for 10^6"),
    ):
        yield family, f"`SharpMargin`, share {share}", sharp(share=Fraction(share)), verdict

    family = "other priors"
    for prior, verdict in (
        (("0.98", "0.015", "0.005"), "a record for few, a tenth more for 10^6"),
        (("0.6", "0.3", "0.1"), "few pay for 10^6"),
        (("1", "1", "1"), "few pay more still"),
    ):
        text = " : ".join(prior)
        yield (
            family,
            f"`SharpMargin`, prior {text}",
            sharp(prior=[Fraction(weight) for weight in prior]),
            verdict,
        )

    family = "other grids of ranks"
    for name, ranks in (
        ("1 and 2^10", [1, 1 << 10]),
        ("4^j up to 2^20", powers(4, 20)),
        ("2^j up to 2^20", powers(2, 20)),
    ):
        yield (
            family,
            f"`SharpMargin`, {name}",
            sharp(ranks=ranks, prior=falling(ranks)),
            "picking among more is dearer",
        )
    yield family, "`SharpMargin`, DYADIC: 2^j up to 2^20, a share of 0.2", sharp(
        ranks=DYADIC.ranks, prior=DYADIC.prior, share=DYADIC.share
    ), "no opinion on their number, at a price"  # fmt: skip

    family = "one fixed rank"
    for rank, verdict in (
        (1, "best, until there are two"),
        (32, "blind beyond 32"),
        (1 << 10, "blind beyond 1024: what SharpMargin amounts to without picking"),
        (1 << 20, "every winner pays for a million"),
    ):
        yield family, f"`LimitedDomain`, rank {_power(rank)}", limited(rank), verdict

    family = "another draw behind one guard"
    for rank in (1, 1 << 10):
        yield (
            family,
            f"permute-and-flip, rank {_power(rank)}",
            of_chance(flipped(rank)),
            FLIPPED[rank],
        )
    yield (
        family,
        "the guard calibrated to the exact slip (1 − δ times as heavy), rank 2^10",
        of_chance(guarded(1 << 10, 1 - float(DELTA))),
        "nothing: the bound is met by a profile",
    )

    family = "bounded growth"
    for growth in (1, 10):
        yield (
            family,
            f"`SharpMargin`, κ = {growth}",
            sharp(growth=growth),
            "much; the floor supposes no such bound",
        )
    for growth in (1, 10):
        yield (
            family,
            f"`NestedMargin`, κ = {growth}",
            nesting(growth=growth),
            "the same, but for a single winner",
        )

    family = "all guards at once"
    yield family, "`NestedMargin`: ranks 4^j up to 2^20", nesting(), "the aim is met"
    for base, verdict in (
        (2, "more guards, each with less of delta"),
        (32, "flattered by these numbers: see the next table"),
    ):
        yield (
            family,
            f"`NestedMargin`, ranks {base}^j up to 2^20",
            nesting(powers(base, 20)),
            verdict,
        )
    for reach, verdict in (
        (10, "best of all, blind beyond 1024"),
        (16, "blind beyond 65,536"),
        (30, "the reach begins to weigh"),
        (40, "too far for this delta"),
    ):
        yield (
            family,
            f"`NestedMargin`, ranks 4^j up to 2^{reach}",
            nesting(powers(4, reach)),
            verdict,
        )
    for part in (Fraction(1, 128), NESTING, Fraction(1, 32), Fraction(1, 16)):
        yield (
            family,
            f"`NestedMargin` with {part} of epsilon for nesting",
            of_chance(nested(FOURFOLD, part)),
            PARTS[part],
        )


FLIPPED = {
    1: "within two records of the floor, until there are two",
    1 << 10: "a record to three; how to nest it is open",
}
PARTS = {
    Fraction(1, 128): "about the same",
    NESTING: "the default again, from the formula",
    Fraction(1, 32): "about the same",
    Fraction(1, 16): "begins to be missed in the draw",
}


def of_limit(neighbors: Neighbors, near: int) -> int:
    return least_lead(epsilon=EPSILON, delta=DELTA, candidates=None, near=near, neighbors=neighbors)


def of_lmm_x(neighbors: Neighbors, near: int) -> int:
    return LmmX(epsilon=float(EPSILON), delta=float(DELTA), neighbors=neighbors).lead(
        candidates=None, near=near
    )


JUST_ABOVE = (2, 33, 1025)


def just_above() -> Iterator[dict[str, Any]]:
    """Coarse ranks where they hurt: with one more near maximizer than a rank of 32^j holds."""
    for base in (4, 32):
        lead = nesting(powers(base, 20))
        row: dict[str, Any] = {"ranks": f"{base}^j up to 2^20", "near": JUST_ABOVE}
        for relation in RELATIONS:
            row[relation] = [lead(relation, near) for near in JUST_ABOVE]
        yield row


def winner(neighbors: Neighbors) -> dict[str, float]:
    """What the lead of a single winner is made of, in records.

    optimal   what the optimal test needs
    guard     how much more a draw behind one guard needs
    several   so many guards divide delta: c·ln J
    reach     the second term of the first guard, where it is the heavier one
    nesting   the rest: less epsilon in the draw, and rounding up to whole records
    """
    c, part, count = swing(neighbors), float(NESTING * EPSILON), len(FOURFOLD)
    test = GapTest(epsilon=EPSILON, delta=DELTA, neighbors=neighbors).lead(candidates=None)
    one = LimitedDomain(epsilon=EPSILON, delta=DELTA, neighbors=neighbors, rank=1).lead(
        candidates=None
    )
    all_of_it = NestedMargin(epsilon=EPSILON, delta=DELTA, neighbors=neighbors).lead(
        candidates=None
    )
    several = c / EPSILON * math.log(count)
    slipping = count / float(DELTA) * math.exp(EPSILON - part)
    crowd = (FOURFOLD[-1] - 1) / -math.expm1(-part)
    reach = c / (EPSILON - part) * max(0.0, math.log(crowd / slipping))
    nesting_itself = all_of_it - one - several - reach
    return {
        "optimal": test,
        "guard": one - test,
        "several": round(several, 3),
        "reach": round(reach, 3),
        "nesting": round(nesting_itself, 3),
    }


def _power(number: int) -> str:
    return str(number) if number < 1000 else f"2^{number.bit_length() - 1}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description="What was tried to lower the lead, and what each attempt buys."
    )
    parser.add_argument("--output", type=Path, default=RESULTS / "sharper.json")
    options = parser.parse_args()
    run = {"command": "./dev python -m benchmarks.sharper", "source": source_digest()}
    rows: list[dict[str, Any]] = []
    for family, name, lead, verdict in attempts():
        note(name)
        row: dict[str, Any] = {"family": family, "attempt": name}
        for relation in RELATIONS:
            row[relation] = [lead(relation, near) for near in NEAR]
        rows.append({**row, "verdict": verdict})
    result = {
        "run": run,
        "settings": {
            "epsilon": str(EPSILON),
            "delta": DELTA,
            "success": str(SUCCESS),
            "near": NEAR,
        },
        "single winner": {relation: winner(relation) for relation in RELATIONS},
        "just above": list(just_above()),
        "attempts": rows,
    }
    print_tables(sharper_sections(result))
    store(result, options.output)


if __name__ == "__main__":
    main()
