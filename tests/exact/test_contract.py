"""What every mechanism in the registry must bring, and what it is then held to.

A mechanism is refused without a law, a walk, an audit, a mutant, a proof page of its own noise and
a row in a plan: `missing` says which. The walk ties `draw` to `law`, the audit ties `law` to
`privacy`, the mutant shows that the audit can fail, the page says why it does not, and the plan
states what it is good for. What only one mechanism has (its formula, its other mutants) stands in
its own file.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from itertools import combinations, pairwise, permutations, product
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import privmax
from privmax import (
    DYADIC,
    Choosing,
    Exponential,
    GapTest,
    Guards,
    JointExponential,
    LargeMargin,
    LargeMarginTruncated,
    LimitedDomain,
    MaxOfLaplaces,
    NestedMargin,
    NoisyMaximum,
    PermuteAndFlip,
    Profile,
    RankedMargin,
    SetMargin,
    SharpMargin,
    StableMaximum,
    Stage,
)
from privmax.mechanisms.contract import Mechanism
from privmax.mechanisms.entries import MechanismEntry
from privmax.mechanisms.peeling import Ranker
from privmax.mechanisms.registry import MECHANISMS
from privmax.noise.coins import SYSTEM
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.testing import walk

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import proofs  # noqa: E402  # the tools are scripts, not a package

RELATIONS = (ADD_REMOVE, REPLACE)
UNIVERSES = ("closed", "open")


@dataclass(frozen=True)
class Walk:
    """A draw that is run on every script of coins up to a depth.

    unfinished   how much probability the scripts may leave open
    """

    mechanism: Mechanism
    profile: Profile
    depth: int = 15
    unfinished: float = 0.005
    slow: bool = False


@dataclass(frozen=True)
class Audit:
    """Small data sets on which a mechanism is compared with its cost.

    appears   some candidate must be released that a neighbor never releases: delta is needed
    tight     the part of the cost that some pair must need at least
    """

    mechanism: Mechanism
    options: Mapping[str, Any] = field(default_factory=dict)
    appears: bool = False
    tight: float = 0.0
    slow: bool = False


@dataclass(frozen=True)
class Mutant:
    """The mechanism with one mistake, which the audit must refuse where it accepts the honest
    one.
    """

    honest: Mechanism
    broken: Mechanism
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """All that a mechanism must bring beside its page and its row.

    laws   made as usual: the facts that hold for every law are checked of them
    plan   why it has no row in a plan, where that is so
    """

    laws: tuple[Mechanism, ...] = ()
    walks: tuple[Walk, ...] = ()
    audits: tuple[Audit, ...] = ()
    mutants: tuple[Mutant, ...] = ()
    plan: str = ""


SMALL = {"candidates": 3, "highest": 4}
LEADS = {"scores": [(lead, 0, 0) for lead in range(1, 16)]}
"""One candidate ahead of two others."""

WINNERS = {"scores": [(lead, 0, 0) for lead in range(0, 22, 3)]}
"""The same from not at all to clearly."""

GAPS = {
    "scores": [
        (second + lead, second, last, 0)
        for second in (3, 9, 20)
        for lead in (0, 9)
        for last in (0, 2)
    ]
}
"""Two candidates ahead of two others, a little or clearly."""

CASCADES = (
    (Stage(2, 3, silence=1),),
    (
        Stage(2, 2, silence="0.3", part="0.5"),
        Stage(2, 3, silence="0.2", tilt="0.4", part="0.25"),
        Stage(1, 3, silence=1, part="0.25"),
    ),
    (Stage(3, 5, silence="0.1", part="0.6"), Stage(2, 2, silence=1, part="0.4")),
)
"""One draw; a test, a soft draw and a last one; a soft draw with more candidates than there are
beside dummies, and a test."""

TWO = Guards((1, 2), (1, 1), share="0.2")
TWO_AND_FULL = Guards((1, 2), (1, 1), share="0.2", full=1)
ONE = Guards((3,), (1,), share="0.01")


def under_replace(make: Any, options: Mapping[str, Any] | None = None, **parameters: Any) -> Mutant:
    """The constants of add-remove, where a record may make one score rise and another fall."""
    return Mutant(
        make(**parameters, neighbors=REPLACE),
        make(**parameters),
        {**(options or {}), "neighbors": REPLACE},
    )


def around(mechanism: Choosing, size: int = 4) -> list[tuple[int, ...]]:
    """Data sets whose best count stands around the threshold, alone, shared and before others."""
    threshold = mechanism.threshold()
    tops = sorted({max(1, threshold + shift) for shift in (-9, -2, -1, 0, 1, 3, 12)} | {1, 2})
    rows: list[tuple[int, ...]] = []
    for top in tops:
        rows += [
            (top, *[0] * (size - 1)),
            (top, top, *[0] * (size - 2)),
            (top, top - 1, 1, *[0] * (size - 3)),
        ]
    return rows


def at_its_threshold(make: type[LargeMargin]) -> tuple[Walk, ...]:
    """The search stops or goes on by its noise alone."""
    mechanism = make(epsilon=40, delta="0.5", cap=3)
    score = mechanism.threshold(1)
    profiles = Profile([(score, 1)], universe=2), Profile([(score + 1, 1), (1, 1)])
    return tuple(Walk(mechanism, profile, 14, 0.1, slow=True) for profile in profiles)


def choosing_audits() -> tuple[Audit, ...]:
    prices = product(["0.05", "0.5", 1, 4], ["1e-6", "0.01", "0.5", "0.95"], [1, 3])
    made = [Choosing(epsilon=e, delta=d, growth=growth) for e, d, growth in prices]
    return tuple(
        Audit(mechanism, {"universe": universe, "scores": around(mechanism)}, appears=True)
        for mechanism, universe in product(made, UNIVERSES)
    )


def sole_winner_audits(make: Any, **checks: Any) -> tuple[Audit, ...]:
    """Of a mechanism that releases the sole best or nothing."""
    prices = product(["0.2", 1], ["1e-6", "0.01", "0.6"], RELATIONS)
    made = [make(epsilon=e, delta=d, neighbors=neighbors) for e, d, neighbors in prices]
    return tuple(
        audit
        for mechanism, universe in product(made, UNIVERSES)
        for audit in (
            Audit(mechanism, {**SMALL, "universe": universe}, **checks),
            Audit(mechanism, {**WINNERS, "universe": universe}),
        )
    )


def guard_audits(makers: list[Any]) -> tuple[Audit, ...]:
    """Of a mechanism with guards, on four candidates where that does not take too long."""
    return tuple(
        Audit(
            make(neighbors=neighbors),
            {"universe": universe, "candidates": 4 - (neighbors == REPLACE), "highest": 4},
            appears=universe == "open",
        )
        for make, neighbors, universe in product(makers, RELATIONS, UNIVERSES)
    )


def set_audits() -> tuple[Audit, ...]:
    """Of sets, with small deltas and large gaps as well."""
    prices = product(CASCADES, ["0.05", "1e-4", "1e-6"], RELATIONS)
    made = [
        SetMargin(epsilon=1, delta=delta, k=stages[0].size, stages=stages, neighbors=neighbors)
        for stages, delta, neighbors in prices
    ]
    return tuple(
        Audit(mechanism, {**options, "universe": universe}, appears=universe == "open")
        for mechanism, universe, options in product(made, UNIVERSES, (SMALL, GAPS))
    )


def best_set_audits() -> tuple[Audit, ...]:
    """Of the test for the best two."""
    prices = product(["1e-6", "0.05"], RELATIONS)
    made = [GapTest(epsilon=1, delta=d, k=2, neighbors=neighbors) for d, neighbors in prices]
    return tuple(
        Audit(mechanism, {**options, "universe": universe}, tight=1 - 1e-6)
        for mechanism, universe, options in product(made, UNIVERSES, (SMALL, GAPS))
    )


def best_list_audits() -> tuple[Audit, ...]:
    """Of the test for the best two in order."""
    made = [
        GapTest(epsilon=1, delta="0.01", k=2, ranked=True, neighbors=neighbors)
        for neighbors in RELATIONS
    ]
    return tuple(
        Audit(mechanism, {**options, "universe": universe}, tight=1 - 1e-6)
        for mechanism, universe, options in product(
            made, UNIVERSES, ({**SMALL, "highest": 6}, GAPS)
        )
    )


def order_audits() -> tuple[Audit, ...]:
    """Of lists that are sorted by noisy counts."""
    prices = product(CASCADES[:2], ["0.05", "1e-4"], RELATIONS)
    made = [
        RankedMargin(epsilon=1, delta=delta, k=2, stages=stages, neighbors=neighbors)
        for stages, delta, neighbors in prices
    ]
    return (
        *(
            Audit(mechanism, {**SMALL, "universe": universe}, appears=universe == "open")
            for mechanism, universe in product(made, UNIVERSES)
        ),
        Audit(RankedMargin(epsilon=1, k=2), SMALL, tight=0.6),
        Audit(RankedMargin(epsilon=1, k=2, neighbors=REPLACE), {**SMALL, "highest": 3}, tight=0.4),
        Audit(RankedMargin(epsilon=1, delta="1e-4", k=2), {**SMALL, "universe": "open"}),
    )


class InvertedScale(LargeMargin):
    """Draws Lap(ε/3) where the paper's proof means Lap(3/ε)."""

    def _maximum(self):
        return NoisyMaximum(epsilon=1 / (self.epsilon / 3))


class NoCertificate(LargeMarginTruncated):
    """Takes any lead at all for a certificate."""

    def threshold(self, rank, sensitivity=1):
        return 0


class NoPlusOne(Choosing):
    """Forgets that a new candidate has count 1 and not 0."""

    def threshold(self, sensitivity=1):
        return super().threshold(sensitivity) - sensitivity


ONE_OF_FEW = Stage(1, 1, silence="0.25", part="0.5"), Stage(1, 3, silence=1, part="0.5")
OPEN_OF_FOUR = {"universe": "open", "candidates": 4, "highest": 3}
FEW_LEFT = {"epsilon": 3, "delta": "0.01", "constants": "corrected", "cap": 4}
EACH = {"epsilon": 2, "delta": "0.01", "growth": 3}

CASES: dict[str, Case] = {
    "exponential": Case(
        laws=(Exponential(epsilon="0.7"),),
        walks=(
            Walk(Exponential(epsilon=1), Profile([(3, 1), (2, 2)], universe=4), 16, 0.001),
            Walk(
                Exponential(epsilon=1, neighbors=REPLACE),
                Profile([(30, 2)], universe=3, sensitivity=2),
                16,
                0.001,
            ),
        ),
        audits=(
            Audit(Exponential(epsilon=1), SMALL),
            Audit(Exponential(epsilon="0.3", neighbors=REPLACE), SMALL),
            Audit(Exponential(epsilon=1), {**SMALL, "sensitivity": 2}),
            Audit(Exponential(epsilon=1), {"highest": 8}, tight=0.999),
        ),
        mutants=(under_replace(Exponential, epsilon=1),),
    ),
    "permute-and-flip": Case(
        laws=(PermuteAndFlip(epsilon="0.7", neighbors=REPLACE),),
        walks=(Walk(PermuteAndFlip(epsilon=1), Profile([(3, 1), (2, 2)], universe=3), 16, 0.01),),
        audits=(
            Audit(PermuteAndFlip(epsilon=1), SMALL, tight=1 - 1e-9),
            Audit(PermuteAndFlip(epsilon="0.3", neighbors=REPLACE), SMALL),
            Audit(PermuteAndFlip(epsilon=1), {**SMALL, "sensitivity": 2}),
        ),
        mutants=(under_replace(PermuteAndFlip, epsilon=1),),
    ),
    "max-of-laplaces": Case(
        laws=(MaxOfLaplaces(epsilon="0.7"),),
        walks=(
            Walk(MaxOfLaplaces(epsilon=1), Profile([(3, 1), (2, 2)], universe=3), unfinished=0.02),
            Walk(
                MaxOfLaplaces(epsilon=3, neighbors=REPLACE),
                Profile([(30, 2)], universe=3, sensitivity=2),
                unfinished=0.001,
            ),
            Walk(
                MaxOfLaplaces(epsilon=1, neighbors=REPLACE),
                Profile([(2, 1), (0, 1)], universe=2),
                unfinished=0.02,
            ),
        ),
        audits=tuple(
            Audit(mechanism, {**SMALL, "sensitivity": sensitivity})
            for mechanism in (
                MaxOfLaplaces(epsilon=1),
                MaxOfLaplaces(epsilon="0.3", neighbors=REPLACE),
            )
            for sensitivity in (1, 2)
        ),
        mutants=(under_replace(MaxOfLaplaces, epsilon=1),),
    ),
    "joint-exponential": Case(
        laws=(JointExponential(epsilon="0.7", k=1),),
        walks=(
            Walk(
                JointExponential(epsilon=4, k=1),
                Profile([(3, 1), (2, 2)], universe=4),
                16,
                unfinished=0.01,
            ),
        ),
        audits=tuple(
            Audit(
                JointExponential(epsilon=1, k=k, neighbors=neighbors),
                {"candidates": 4 - (neighbors == REPLACE), "highest": 4},
                tight=0.4,  # not by being indifferent to the data
            )
            for k, neighbors in product([1, 2, 3], RELATIONS)
        ),
        mutants=(under_replace(JointExponential, epsilon=1, k=2),),
    ),
    "large-margin": Case(
        laws=(
            LargeMargin(epsilon=1, delta="1e-6"),
            LargeMargin(epsilon=8, delta="0.1", constants="corrected", cap=1000),
        ),
        walks=at_its_threshold(LargeMargin),
        audits=(
            Audit(LargeMargin(epsilon=6, delta="0.3"), SMALL, slow=True),
            Audit(
                LargeMargin(epsilon=20, delta="0.3", neighbors=REPLACE, constants="corrected"),
                SMALL,
            ),
            Audit(
                LargeMargin(epsilon=6, delta="0.3", cap=5), OPEN_OF_FOUR, appears=True, slow=True
            ),
            Audit(
                LargeMargin(
                    epsilon=20, delta="0.3", cap=5, neighbors=REPLACE, constants="corrected"
                ),
                OPEN_OF_FOUR,
                appears=True,
                slow=True,
            ),
        ),
        mutants=(
            Mutant(
                LargeMargin(epsilon="0.5", delta="1e-6"),
                InvertedScale(epsilon="0.5", delta="1e-6"),
                {"candidates": 2, "highest": 2},
            ),
        ),
    ),
    "large-margin-truncated": Case(
        laws=(LargeMarginTruncated(epsilon=8, delta="0.1", cap=1000),),
        walks=at_its_threshold(LargeMarginTruncated),
        audits=tuple(
            Audit(mechanism, {"candidates": 3, "highest": 3, **options}, slow=True)
            for mechanism, options in (
                (LargeMarginTruncated(epsilon=6, delta="0.3"), {}),
                (
                    LargeMarginTruncated(
                        epsilon=20, delta="0.3", neighbors=REPLACE, constants="corrected"
                    ),
                    {},
                ),
                (LargeMarginTruncated(epsilon=6, delta="0.3", cap=5), {"universe": "open"}),
                (
                    LargeMarginTruncated(
                        epsilon=6, delta="1e-6", neighbors=REPLACE, constants="corrected", cap=4
                    ),
                    {"universe": "open"},
                ),
                (LargeMarginTruncated(epsilon=12, delta="0.3"), {"sensitivity": 2, "highest": 2}),
            )
        ),
        mutants=(
            Mutant(
                LargeMarginTruncated(**FEW_LEFT),
                NoCertificate(**FEW_LEFT),
                {"universe": "open", "candidates": 2, "highest": 2},
            ),
        ),
    ),
    "sharp-margin": Case(
        laws=(
            SharpMargin(epsilon=1, delta="1e-6"),
            SharpMargin(epsilon=1, delta="0.01", guards=DYADIC, growth=2),
        ),
        walks=(
            Walk(
                SharpMargin(epsilon=2, delta="0.1", guards=TWO_AND_FULL),
                Profile([(3, 1), (2, 2)], universe=4),
            ),
            Walk(
                SharpMargin(epsilon=2, delta="0.1", guards=TWO_AND_FULL, neighbors=REPLACE),
                Profile([(3, 1), (2, 2)]),
            ),
            Walk(
                SharpMargin(epsilon=2, delta="0.1", guards=TWO_AND_FULL, growth=1),
                Profile([(3, 1), (2, 2)]),
            ),
        ),
        audits=(
            Audit(SharpMargin(epsilon=1, delta="0.1", guards=TWO_AND_FULL), SMALL),
            Audit(
                SharpMargin(epsilon=1, delta="0.1", guards=TWO_AND_FULL, neighbors=REPLACE), SMALL
            ),
            Audit(
                SharpMargin(epsilon=1, delta="0.1", guards=TWO_AND_FULL),
                {**SMALL, "sensitivity": 2},
            ),
            Audit(SharpMargin(epsilon=1, delta="0.001", guards=TWO, growth=1), SMALL),
            *(
                Audit(mechanism, OPEN_OF_FOUR, appears=True, slow=True)
                for mechanism in (
                    SharpMargin(epsilon=1, delta="0.1", guards=TWO),
                    SharpMargin(epsilon=1, delta="0.1", guards=TWO, neighbors=REPLACE),
                    SharpMargin(epsilon=1, delta="0.01", guards=ONE, growth=1),
                    SharpMargin(epsilon=1, delta="0.01", guards=ONE, growth=1, neighbors=REPLACE),
                    SharpMargin(epsilon=3, delta="1e-6"),
                )
            ),
        ),
        mutants=(under_replace(SharpMargin, epsilon=1, delta="1e-6", guards=TWO_AND_FULL),),
    ),
    "nested-margin": Case(
        laws=(
            NestedMargin(epsilon=1, delta="1e-6"),
            NestedMargin(epsilon=1, delta="0.01", neighbors=REPLACE, ranks=(1, 3), growth=2),
        ),
        walks=(
            Walk(
                NestedMargin(epsilon=2, delta="0.2", ranks=(1, 3)),
                Profile([(3, 1), (2, 1), (1, 2)]),
            ),
            Walk(
                NestedMargin(epsilon=2, delta="0.2", ranks=(1, 2), neighbors=REPLACE),
                Profile([(3, 1)], universe=6),
            ),
            Walk(
                NestedMargin(epsilon=2, delta="0.2", ranks=(1, 3), growth=1),
                Profile([(4, 2), (1, 2)]),
            ),
            Walk(
                NestedMargin(epsilon=2, delta="0.2", ranks=(1, 3)),
                Profile([(3, 1), (1, 1)], universe=3),
            ),
        ),
        audits=guard_audits(
            [
                lambda neighbors, ranks=ranks, delta=delta: NestedMargin(
                    epsilon=1, delta=delta, ranks=ranks, neighbors=neighbors
                )
                for ranks, delta in product([(1, 3), (1, 2, 4), (2, 3)], ["1e-6", "0.3"])
            ]
        ),
        mutants=(
            under_replace(
                NestedMargin, {"universe": "open"}, epsilon=1, delta="1e-6", ranks=(1, 3)
            ),
        ),
    ),
    "set-margin": Case(
        laws=(
            SetMargin(epsilon=1, delta="1e-6"),
            SetMargin(epsilon="0.7", delta="0.01", neighbors=REPLACE, stages=ONE_OF_FEW),
        ),
        walks=(
            Walk(
                SetMargin(epsilon=2, delta="0.2", stages=ONE_OF_FEW),
                Profile([(4, 1), (2, 2)]),
                depth=16,
            ),
            *(
                Walk(
                    SetMargin(epsilon=3, delta="0.3", k=stages[0].size, stages=stages),
                    profile,
                    depth=17,
                    unfinished=0.02,
                )
                for stages in CASCADES
                for profile in (
                    Profile([(4, 1), (2, 2), (1, 1)]),
                    Profile([(7, 2), (3, 1)], universe=6, sensitivity=2),
                )
            ),
            Walk(SetMargin(epsilon=2, k=2), Profile([(3, 1), (2, 1)], universe=4), 17, 0.01),
        ),
        audits=(
            *set_audits(),
            Audit(SetMargin(epsilon=1, k=2), {"candidates": 4, "highest": 4}, tight=0.6),
            Audit(SetMargin(epsilon=1, k=2, neighbors=REPLACE), SMALL, tight=0.6),
            Audit(SetMargin(epsilon=1, delta="1e-4", k=3), GAPS),
            Audit(SetMargin(epsilon=1, delta="1e-4", k=2), {**SMALL, "universe": "open"}),
        ),
        mutants=tuple(
            under_replace(
                SetMargin,
                {**GAPS, "universe": "open"},
                epsilon=1,
                delta="1e-4",
                k=stages[0].size,
                stages=stages,
            )
            for stages in CASCADES
        ),
    ),
    "ranked-margin": Case(
        laws=(
            RankedMargin(epsilon=1, delta="1e-6"),
            RankedMargin(epsilon="0.7", delta="0.01", neighbors=REPLACE, stages=ONE_OF_FEW),
        ),
        walks=(
            Walk(
                RankedMargin(epsilon=2, delta="0.2", stages=ONE_OF_FEW),
                Profile([(4, 1), (2, 2)]),
                depth=16,
            ),
            Walk(
                RankedMargin(
                    epsilon=4, delta="0.3", k=2, share="0.5", stages=(Stage(2, 2, silence=1),)
                ),
                Profile([(3, 1), (2, 1), (1, 1)]),
                depth=14,
                unfinished=0.1,
            ),
        ),
        audits=order_audits(),
        mutants=(
            under_replace(
                RankedMargin,
                {**GAPS, "universe": "open"},
                epsilon=1,
                delta="1e-4",
                k=2,
                stages=CASCADES[0],
            ),
        ),
    ),
    "limited-domain": Case(
        laws=(LimitedDomain(epsilon=1, delta="1e-6", rank=10),),
        walks=(
            Walk(LimitedDomain(epsilon=2, delta="0.1", rank=2), Profile([(3, 1), (2, 2)])),
            Walk(
                LimitedDomain(epsilon=2, delta="0.1", rank=3, neighbors=REPLACE, growth=1),
                Profile([(3, 2)], universe=6),
            ),
        ),
        audits=guard_audits(
            [
                lambda neighbors, rank=rank, delta=delta: LimitedDomain(
                    epsilon=1, delta=delta, rank=rank, neighbors=neighbors
                )
                for rank, delta in product([1, 2, 3], ["1e-6", "0.2"])
            ]
        ),
        mutants=(
            under_replace(LimitedDomain, {"universe": "open"}, epsilon=1, delta="1e-6", rank=2),
        ),
    ),
    "stable-maximum": Case(
        laws=(StableMaximum(epsilon=1, delta="1e-6"),),
        walks=tuple(
            Walk(StableMaximum(epsilon=2, delta="0.05"), profile, unfinished=0.01)
            for profile in (
                Profile([(6, 1), (2, 1)]),
                Profile([(3, 1)], universe=5),
                Profile([(9, 1), (1, 2)], universe=3, sensitivity=2),
            )
        ),
        audits=sole_winner_audits(StableMaximum, appears=True),
        mutants=(under_replace(StableMaximum, LEADS, epsilon=1, delta="0.01"),),
    ),
    "gap-test": Case(
        laws=(GapTest(epsilon=1, delta="1e-6", neighbors=REPLACE),),
        walks=(
            *(
                Walk(GapTest(epsilon=1, delta="0.03"), profile, 30, 1e-8)
                for profile in (
                    Profile([(6, 1), (2, 1)]),
                    Profile([(3, 1)], universe=5),
                    Profile([(9, 1), (1, 2)], universe=3, sensitivity=2),
                )
            ),
            Walk(
                GapTest(epsilon=1, delta="0.03", k=3), Profile([(9, 1), (6, 2), (2, 1)]), 30, 1e-8
            ),
            Walk(GapTest(epsilon=1, delta="0.03", k=2), Profile([(4, 2)], universe=5), 30, 1e-8),
        ),
        audits=(
            *sole_winner_audits(GapTest, tight=1 - 1e-6),
            *best_set_audits(),
            *best_list_audits(),
        ),
        mutants=(
            under_replace(GapTest, LEADS, epsilon=1, delta="0.01"),
            under_replace(GapTest, GAPS, epsilon=1, delta="0.01", k=2),
            under_replace(GapTest, GAPS, epsilon=1, delta="0.01", k=2, ranked=True),
        ),
    ),
    "choosing": Case(
        laws=(Choosing(epsilon=1, delta="1e-6", growth=3),),
        walks=tuple(
            Walk(Choosing(epsilon=3, delta="0.1", growth=1), profile, unfinished=0.02)
            for profile in (
                Profile([(3, 1), (2, 2)]),
                Profile([(3, 1), (1, 2)], universe=5),
                Profile([(2, 2)], universe=2),
            )
        ),
        audits=choosing_audits(),
        mutants=(
            Mutant(
                Choosing(**EACH),
                NoPlusOne(**EACH),
                {"universe": "open", "scores": [*around(Choosing(**EACH)), (15, 15, 15, 15)]},
            ),
        ),
    ),
}

LEVELS = [(900, 3), (899, 2), (870, 40), (500, 1), (3, 10**6)]
LARGE = 10**12


# What is missing


def missing(name: str, entry: MechanismEntry, case: Case | None) -> list[str]:
    """What a mechanism of the registry lacks, in words."""
    here = "tests/exact/test_contract.py"
    lacks = []
    if not issubclass(entry.load(), Mechanism):
        lacks.append(f"{entry.name} is no privmax.mechanisms.contract.Mechanism")
    if case is None:
        lacks.append(f"no Case for it in CASES of {here}")
    else:
        for part, purpose in (
            ("laws", "a mechanism made as usual"),
            ("walks", "a profile small enough for every script of coins"),
            ("audits", "small data sets on which law and cost are compared"),
            ("mutants", "a mistake that the audit refuses"),
        ):
            brought = getattr(case, part)
            if not brought:
                lacks.append(f"no {part} in its Case in {here}: {purpose}")
            for one in brought:
                made = {"audits": "mechanism", "walks": "mechanism", "mutants": "honest"}.get(part)
                mechanism = getattr(one, made) if made else one
                if type(mechanism) is not entry.load():
                    lacks.append(f"one of its {part} in {here} is of {mechanism!r}, not of it")
    page = proofs.PAGES / f"{name}.md"
    if not page.is_file():
        lacks.append(f"no proof page docs/proofs/{name}.md")
    else:
        lacks += page_faults(entry, page.read_text(encoding="utf-8"), f"docs/proofs/{name}.md")
    planned = {row.name for row in plan([name]).rows} if name in MECHANISMS else set()
    if entry.name not in planned and not (case and case.plan):
        lacks.append(f"no row in privmax.plan, and no reason for that in its Case in {here}")
    return lacks


def page_faults(entry: MechanismEntry, text: str, page: str) -> list[str]:
    """What a proof page lacks to be the page of this mechanism and of no other, in words."""
    faults = []
    path = re.escape(f"privmax.mechanisms.{entry.home}.{entry.name}")
    if not re.search(rf"^\| `{path}[.`]", text, re.MULTILINE):
        faults.append(f"no row for {entry.name} under Covers of {page}")
    stated, _, rest = text.partition("**Precondition.**")
    if not rest or "**Statement.**" not in stated:
        faults.append(f"{page} does not begin with a statement and its precondition")
    elif in_one_line(entry.statement) not in in_one_line(stated):
        faults.append(f"the statement of {page} is not about the noise of {entry.name}")
    return faults


def in_one_line(text: str) -> str:
    """Text without line breaks."""
    return " ".join(text.split())


def plan(names: list[str], universe: int | str = 1000) -> privmax.Plan:
    """A plan in which every mechanism has all that it needs."""
    slow = any(MECHANISMS[name].slow == "at a small epsilon" for name in names)
    epsilon = 10 if slow else "0.5"
    # who must be told k is for lists, and has a row where one is planned for
    only_lists = [name for name in names if "k" in MECHANISMS[name].requires]
    return privmax.plan(
        epsilon=epsilon,
        delta="1e-3",
        universe=universe,
        growth=2,
        k=2 if only_lists else 1,
        mechanisms=names,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_it_brings_all_that_a_mechanism_needs(name):
    assert not missing(name, MECHANISMS[name], CASES.get(name))


def test_there_are_mechanisms_and_no_case_of_another():
    assert MECHANISMS
    assert CASES.keys() == MECHANISMS.keys()


def test_every_mechanism_of_the_package_is_in_the_registry():
    """Whoever writes a class and forgets the registry has not escaped the contract."""
    package = import_module("privmax.mechanisms")
    found = set()
    for module in iter_modules(package.__path__):
        for value in vars(import_module(f"privmax.mechanisms.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, Mechanism):
                found.add(value)
    concrete = {made for made in found if not made.__abstractmethods__}
    assert concrete == {entry.load() for entry in MECHANISMS.values()}


class Coin(Exponential):
    """A mechanism that brings nothing."""


@pytest.fixture
def coin(monkeypatch):
    """An entry of the registry for it."""
    module = import_module("privmax.mechanisms.exponential")
    monkeypatch.setattr(module, "Coin", Coin, raising=False)
    return replace(MECHANISMS["exponential"], name="Coin")


def test_a_mechanism_that_brings_nothing_is_refused_and_told_what_is_missing(coin):
    lacks = missing("coin", coin, None)
    assert lacks == [
        "no Case for it in CASES of tests/exact/test_contract.py",
        "no proof page docs/proofs/coin.md",
        "no row in privmax.plan, and no reason for that in its Case in "
        "tests/exact/test_contract.py",
    ]


def test_a_mechanism_that_brings_the_case_of_another_is_refused(coin):
    lacks = missing("coin", coin, CASES["exponential"])
    for part in ("laws", "walks", "audits", "mutants"):
        assert any(one.startswith(f"one of its {part} in") for one in lacks)


@pytest.mark.parametrize("part", ["laws", "walks", "audits", "mutants"])
def test_a_mechanism_that_brings_one_thing_less_is_refused(part):
    brought = {one: getattr(CASES["gap-test"], one) for one in ("laws", "walks", "audits")}
    brought["mutants"] = CASES["gap-test"].mutants
    lacks = missing("gap-test", MECHANISMS["gap-test"], Case(**{**brought, part: ()}))
    assert len(lacks) == 1
    assert lacks[0].startswith(f"no {part} in its Case")


def test_a_page_that_does_not_cover_the_mechanism_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(proofs, "PAGES", tmp_path)
    (tmp_path / "gap-test.md").write_text("# Gap test\n", encoding="utf-8")
    lacks = missing("gap-test", MECHANISMS["gap-test"], CASES["gap-test"])
    assert lacks == [
        "no row for GapTest under Covers of docs/proofs/gap-test.md",
        "docs/proofs/gap-test.md does not begin with a statement and its precondition",
    ]


@pytest.mark.parametrize(("name", "other"), list(permutations(MECHANISMS, 2)))
def test_the_page_of_another_mechanism_is_refused_however_it_is_renamed(name, other):
    """The copy covers the right class, under the right title: only its theorem is another's."""
    entry, copied = MECHANISMS[name], MECHANISMS[other]
    text = (proofs.PAGES / f"{other}.md").read_text(encoding="utf-8")
    assert not page_faults(copied, text, "page")
    text = text.replace(f"{copied.home}.{copied.name}", f"{entry.home}.{entry.name}")
    text = text.replace(text.splitlines()[0], f"# {entry.title}")
    assert page_faults(entry, text, "page") == [
        f"the statement of page is not about the noise of {entry.name}"
    ]


def test_no_two_mechanisms_have_the_same_statement():
    """An entry copied with its page would make the test above agree with both."""
    assert len({in_one_line(entry.statement) for entry in MECHANISMS.values()}) == len(MECHANISMS)


def test_what_is_no_mechanism_is_refused():
    entry = replace(MECHANISMS["exponential"], name="NoisyMaximum", home="noisy_maximum")
    assert missing("noisy-maximum", entry, None)[0] == (
        "NoisyMaximum is no privmax.mechanisms.contract.Mechanism"
    )


# The entry


@pytest.mark.parametrize("name", MECHANISMS)
def test_an_entry_agrees_with_the_class_it_describes(name):
    entry = MECHANISMS[name]
    assert entry.proof == f"proofs/{name}"
    needed = {
        option
        for option, parameter in entry.parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    assert needed - {"epsilon", "delta"} == set(entry.requires)
    assert type(entry.make_example()) is entry.load()
    assert all(hasattr(import_module(home), public) for public, home in entry.public.items())
    assert all(getattr(privmax, public) for public in entry.public)


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_an_entry_says_in_words_fits_into_a_table(name):
    entry = MECHANISMS[name]
    for part in fields(entry):
        value = getattr(entry, part.name)
        if isinstance(value, str):
            assert "\n" not in value
            assert value == value.strip()
    assert 20 <= len(entry.serves) <= 90
    assert not entry.serves.endswith(".")


# The contract itself


def each(part):
    """Every one of a part of all cases, with its name."""
    return [
        pytest.param(
            one,
            id=f"{name}-{place}",
            marks=pytest.mark.slow if getattr(one, "slow", False) else (),
        )
        for name, case in CASES.items()
        for place, one in enumerate(getattr(case, part))
    ]


ALL = [(name, mechanism) for name, case in CASES.items() for mechanism in case.laws]
ON_PROFILES = [
    pytest.param(mechanism, Profile(LEVELS, universe=universe), id=f"{mechanism!r}-{universe}")
    for name, mechanism in ALL
    for universe in ([LARGE] if MECHANISMS[name].needs_closed else [LARGE, None])
]
every_law = pytest.mark.parametrize(("mechanism", "profile"), ON_PROFILES)
every_mechanism = pytest.mark.parametrize(
    "mechanism", [mechanism for _, mechanism in ALL], ids=repr
)


@every_mechanism
def test_it_answers_what_every_mechanism_answers(mechanism):
    assert mechanism.neighbors in RELATIONS
    assert mechanism.k == 1
    assert mechanism.growth is None or mechanism.growth >= 1
    assert mechanism.bounded_range is isinstance(mechanism, Exponential)
    assert mechanism.privacy().epsilon == mechanism.epsilon
    assert mechanism == type(mechanism)(
        **{name: getattr(mechanism, name) for name in mechanism.parameters}
    )


# The law


@every_law
def test_a_law_sums_to_one(mechanism, profile):
    law = mechanism.law(profile)
    assert law.none + sum(chance for _, _, chance in law.blocks) == pytest.approx(1, abs=1e-9)
    assert min(law.none, *(chance for _, _, chance in law.blocks)) >= 0


@every_law
def test_a_better_candidate_is_never_less_likely(mechanism, profile):
    law = mechanism.law(profile)
    chances = [chance / count for _, count, chance in law.blocks if count]
    assert all(high >= low * (1 - 1e-9) for high, low in pairwise(chances))


@every_law
def test_a_draw_lands_on_a_block_of_the_law(mechanism, profile):
    law = mechanism.law(profile)
    counts = {(score, score == law.floor): count for score, count, _ in law.blocks}
    for _ in range(5):
        outcome = mechanism.draw(profile, SYSTEM)
        if outcome.score is not None:
            assert 0 <= outcome.index < counts[outcome.score, outcome.below]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "profile"),
    [case for case in ON_PROFILES if not isinstance(case.values[0], Choosing)],
)  # that one is for counts: 0 is not a score like others
def test_adding_a_constant_to_every_score_changes_nothing(mechanism, profile):
    if profile.universe is None:  # all are still far above the unlisted ones
        higher = Profile([(score + 7, count) for score, count in LEVELS])
        assert mechanism.law(higher).best() == pytest.approx(
            mechanism.law(profile).best(), abs=1e-9
        )
        return
    everybody = [*LEVELS, (0, LARGE - sum(count for _, count in LEVELS))]
    lower = [(score - 12345, count) for score, count in everybody]
    here, there = (
        mechanism.law(Profile(levels, universe=LARGE)).blocks for levels in (everybody, lower)
    )
    assert [row[2] for row in here] == [row[2] for row in there]


@every_mechanism
def test_the_joint_law_adds_up_to_the_law(mechanism):
    profile = Profile([(9, 2), (7, 1)], universe=5)
    law, parts = mechanism.law(profile), list(mechanism.joint(profile).values())
    assert sum(part.none for part in parts) == pytest.approx(law.none, abs=1e-9)
    for row, (_, _, chance) in enumerate(law.blocks):
        assert sum(part.blocks[row][2] for part in parts) == pytest.approx(chance, abs=1e-9)


@every_mechanism
def test_one_candidate_alone_is_always_drawn_in_a_closed_universe(mechanism):
    assert mechanism.law(Profile([(5, 1)], universe=1)).best() == pytest.approx(1)
    for profile in (Profile([(-5, 1)], universe=1), Profile([], universe=1)):
        assert mechanism.draw(profile, SYSTEM).score == profile.top()


@pytest.mark.parametrize(
    "mechanism",
    [mechanism for name, mechanism in ALL if not MECHANISMS[name].needs_closed],
    ids=repr,
)
def test_nothing_is_drawn_where_nobody_was_seen(mechanism):
    for profile in (Profile([]), Profile([(-3, 1)])):
        assert mechanism.law(profile).none == pytest.approx(1)
        assert mechanism.draw(profile, SYSTEM).score is None


@pytest.mark.parametrize(
    "mechanism", [mechanism for name, mechanism in ALL if MECHANISMS[name].needs_closed], ids=repr
)
def test_an_open_universe_is_refused_without_delta(mechanism):
    for ask in (mechanism.law, lambda profile: mechanism.draw(profile, SYSTEM)):
        with pytest.raises(privmax.ParameterError, match="universe"):
            ask(Profile([(5, 1)]))


@every_mechanism
def test_a_trillion_tied_candidates_cost_a_few_draws(mechanism):
    profile = Profile([(50, LARGE)], universe=LARGE + 5)
    assert mechanism.draw(profile, SYSTEM).score in (50, 0, None)


# The walk


def released(diagnostics: Any) -> Any:
    """What of the diagnostics is compared: the number of near maximizers, if there is one."""
    return diagnostics[-1] if isinstance(diagnostics, tuple) else diagnostics


def law_of_sets(one: Walk) -> dict[Any, float]:
    """The law of the set of (score, index); those with the same numbers are equally likely."""
    table: dict[Any, float] = {}
    for law in one.mechanism.sets(one.profile).values():
        members = [[(score, index) for index in range(count or 0)] for score, count in law.blocks]
        for numbers, chance in law.chances.items():
            parts = [
                list(combinations(block, number))
                for block, number in zip(members, numbers, strict=True)
            ]
            sets = [frozenset(sum(chosen, ())) for chosen in product(*parts)]
            for found in sets:
                table[found] = table.get(found, 0.0) + chance / len(sets)
    return table


def law_of_lists(one: Walk) -> dict[Any, float]:
    """The law of the list of (score, index); those of the same blocks are equally likely."""
    table: dict[Any, float] = {}
    for law in one.mechanism.sequences(one.profile).values():
        members = [[(score, index) for index in range(count or 0)] for score, count in law.blocks]
        for blocks, chance in law.chances.items():
            chosen = product(*(members[block] for block in blocks))
            lists = [found for found in chosen if len(set(found)) == len(found)]
            for found in lists:
                table[found] = table.get(found, 0.0) + chance / len(lists)
    return table


def joint_law(one: Walk) -> dict[Any, float]:
    """The joint law, by (score, index, below, near maximizers)."""
    law: dict[Any, float] = {}
    for beside, part in one.mechanism.joint(one.profile).items():
        rows = [((None, 0, False), part.none)]
        for score, count, chance in part.blocks:
            rows += [
                ((score, index, score == part.floor), chance / count) for index in range(count or 0)
            ]
        for key, chance in rows:
            law[*key, released(beside)] = law.get((*key, released(beside)), 0.0) + chance
    return law


@pytest.mark.slow
@pytest.mark.parametrize("one", each("walks"))
def test_every_script_of_coins(one):
    """The law lies in the bracket that the scripts leave, and one that is slightly wrong does
    not.
    """

    is_list = one.mechanism.k > 1 and isinstance(one.mechanism, Ranker)

    def draw(coins):
        if is_list:
            drawn = one.mechanism.ranking(one.profile, coins)
            return tuple((outcome.score, outcome.index) for outcome in drawn)
        if one.mechanism.k > 1:
            drawn = one.mechanism.subset(one.profile, coins)
            assert not any(outcome.below for outcome in drawn)
            return frozenset((outcome.score, outcome.index) for outcome in drawn)
        outcome = one.mechanism.draw(one.profile, coins)
        near = outcome.diagnostics.get("near_maximizers")
        return outcome.score, outcome.index, outcome.below, near

    finished, left = walk(draw, one.depth)
    assert left <= one.unfinished, f"{float(left)} unfinished"

    def bracketed(law):
        return all(
            finished.get(key, 0) - 1e-9 <= chance <= finished.get(key, 0) + left + 1e-9
            for key, chance in law.items()
        )

    of_many = law_of_lists if is_list else law_of_sets
    law = of_many(one) if one.mechanism.k > 1 else joint_law(one)
    assert finished.keys() <= law.keys()
    assert sum(chance > 0.01 for chance in law.values()) >= 2
    assert bracketed(law)
    likeliest = max(law, key=law.__getitem__)
    other = next(key for key in law if key != likeliest)
    shift = 1.5 * one.unfinished
    wrong = {**law, likeliest: law[likeliest] - shift, other: law[other] + shift}
    assert not bracketed(wrong)


# The audit


@pytest.mark.slow
@pytest.mark.parametrize("one", each("audits"))
def test_it_stays_within_its_cost(one):
    found = privmax.audit(one.mechanism, **one.options)
    assert found.holds
    assert found.error < 0.03
    assert found.delta > 0 or not one.appears
    assert found.tightness >= one.tight


@pytest.mark.slow
@pytest.mark.parametrize("one", each("mutants"))
def test_the_audit_refuses_the_mutant(one):
    assert privmax.audit(one.honest, **one.options).holds
    found = privmax.audit(one.broken, **one.options)
    assert not found.holds
    assert found.delta > 1.02 * float(found.claim.delta) + found.error


# The lead, and the row of a plan


@pytest.mark.parametrize(
    ("mechanism", "candidates"),
    [
        pytest.param(
            mechanism,
            candidates,
            id=f"{mechanism!r}-{candidates}",
            marks=pytest.mark.slow if "large-margin" in name else (),
        )
        for name, mechanism in ALL
        for candidates in ([1000] if MECHANISMS[name].needs_closed else [1000, None])
    ],
)
def test_a_lead_is_the_smallest_that_succeeds(mechanism, candidates):
    lead = mechanism.lead(candidates=candidates, success="0.9")
    below, here = (
        mechanism.law(Profile([(score, 1)], universe=candidates)).best()
        for score in (lead - 1, lead)
    )
    assert below < 0.9 <= here


@pytest.mark.parametrize(
    ("name", "universe"),
    [
        pytest.param(
            name,
            universe,
            marks=pytest.mark.slow if name == "large-margin-truncated" else (),
        )
        for name, case in CASES.items()
        for universe in ([1000] if MECHANISMS[name].needs_closed else [1000, "open"])
        if not case.plan
    ],
)
def test_the_row_of_a_plan_holds(name, universe):
    """Whatever the data, the shortfall of what is released exceeds the error as rarely as it
    says.
    """
    row = next(one for one in plan([name], universe).rows if one.name == MECHANISMS[name].name)
    size = None if universe == "open" else universe
    assert row.lead is not None
    assert row.lead == row.mechanism.lead(candidates=size)
    if row.error is None:
        return
    crowd = 999
    for lead in {1, row.error // 2, row.error, row.error + 1, 2 * row.error + 2} - {0}:
        profile = Profile([(lead + 1, 1), (1, crowd)], universe=size)
        law = row.mechanism.law(profile)
        missed = sum(chance for score, _, chance in law.blocks if lead + 1 - score > row.error)
        assert missed <= 0.05 + law.error
        assert row.silent or law.none < 1e-9
