"""Mechanisms that are known to be wrong: an auditor must find them.

NEVER USE ANY OF THEM. Six variants of the sparse vector technique, each with the one mistake that
the literature describes; noise with its scale upside down; and mechanisms of privmax with one
mistake each. They are claimed to cost what their authors, or the mechanism without the mistake,
would state.

References: Lyu, Su & Li (VLDB 2017), whose numbers of algorithms are given; Chen & Machanavajjhala
(2015); Ding, Wang, Wang, Zhang & Kifer (CCS 2018).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from privmax.mechanisms.choosing import Choosing
from privmax.mechanisms.exponential import Exponential
from privmax.mechanisms.gap_test import GapTest
from privmax.mechanisms.limited_domain import LimitedDomain
from privmax.mechanisms.max_of_laplaces import MaxOfLaplaces
from privmax.mechanisms.nested_margin import NestedMargin
from privmax.mechanisms.permute_and_flip import PermuteAndFlip
from privmax.mechanisms.stable_maximum import StableMaximum
from privmax.noise.coins import Coins
from privmax.numbers import exact
from privmax.privacy import REPLACE, Privacy
from privmax.profile import Profile, Window
from privmax.testers.claims import Claim
from privmax.testers.packages.ours import draw_place, run_on_seeds, subject_of, walk_scripts
from privmax.testers.patterns import Vector, neighbors
from privmax.testers.subjects import Subject

PACKAGE = "known-wrong"
QUERIES = 20
THRESHOLD = 1
LIMIT = 1
"""The most queries above the threshold before the sparse vector technique stops."""

QUERY_STARTS = [(1,) * QUERIES, (0,) * QUERIES]


def subjects() -> list[Subject]:
    """Return all of them."""
    return [*_sparse_vectors(), *_noises(), *_mutants()]


def sparse_vector(
    queries: Vector,
    seed: int,
    *,
    shared: float,
    each: float,
    limit: int | None = LIMIT,
    reused: bool = False,
    shows: bool = False,
) -> tuple[object, ...]:
    """Return which queries are above a threshold, one after the other.

    Args:
        queries: Their answers; each moves by at most 1 between neighbors.
        seed: Of the noise.
        shared: The scale of the Laplace noise on the threshold.
        each: The scale of the noise on each query.
        limit: How many may be above before it stops; None: all of them.
        reused: Whether all queries get the same noise.
        shows: Whether the noisy answer of a query that is above is released.

    Examples:
        >>> sparse_vector((-9, 9, 9), 1, shared=0, each=0)
        (False, True)
        >>> sparse_vector((9, 9, 9), 1, shared=0, each=0, limit=2)
        (True, True)
    """
    rng = random.Random(seed)
    threshold = THRESHOLD + laplace(rng, shared)
    same = laplace(rng, each)
    answers: list[object] = []
    above = 0
    for query in queries:
        noisy = query + (same if reused else laplace(rng, each))
        passes = noisy >= threshold
        answers.append(noisy if passes and shows else passes)
        above += passes
        if above == limit:
            break
    return tuple(answers)


def laplace(rng: random.Random, scale: float) -> float:
    """Draw Laplace noise.

    Examples:
        >>> abs(laplace(random.Random(1), 0))
        0.0
    """
    return scale * (rng.expovariate(1) - rng.expovariate(1))


def honest_sparse_vector(epsilon: float) -> Callable[[Vector, int], tuple[object, ...]]:
    """Return the technique without a mistake (Algorithm 1), to be told apart from the others.

    Examples:
        >>> honest_sparse_vector(1.0)((999,) * 5, 1)
        (True,)
    """
    return partial(sparse_vector, shared=2 / epsilon, each=4 * LIMIT / epsilon)


def _sparse_vectors() -> list[Subject]:
    """At ε = 2, with half of it for the threshold where the authors do not say otherwise."""
    epsilon = 2.0
    made: dict[str, tuple[dict[str, Any], str]] = {
        "releases the answer it compared": (
            {"shared": 2 / epsilon, "each": 2 * LIMIT / epsilon, "shows": True},
            "Roth's lecture notes of 2011; Lyu, Su & Li 2017, Algorithm 3",
        ),
        "noise does not grow with the limit": (
            {"shared": 4 / epsilon, "each": 4 / (3 * epsilon), "limit": 8},
            "Lee & Clifton 2014; Lyu, Su & Li 2017, Algorithm 4",
        ),
        "no noise on queries": (
            {"shared": 2 / epsilon, "each": 0.0, "limit": None},
            "Stoddard, Chen & Machanavajjhala 2014; Lyu, Su & Li 2017, Algorithm 5",
        ),
        "no limit": (
            {"shared": 2 / epsilon, "each": 2 / epsilon, "limit": None},
            "Chen, Xiao, Zhang & Xu 2015; Lyu, Su & Li 2017, Algorithm 6",
        ),
        "one noise for all queries": (
            {"shared": 2 / epsilon, "each": 4 / epsilon, "reused": True, "limit": None},
            "the proof of Chen & Machanavajjhala 2015 for no noise applies",
        ),
        "no noise on the threshold": (
            {"shared": 0.0, "each": 4 * LIMIT / epsilon, "limit": None},
            "every query costs, and not only those above",
        ),
    }
    pairs = neighbors(QUERY_STARTS, monotone=False)
    return [
        Subject(
            PACKAGE,
            f"sparse vector: {mistake}",
            Claim.of(epsilon=2),
            pairs,
            partial(sparse_vector, **options),
            source=source,
        )
        for mistake, (options, source) in made.items()
    ]


def _noises() -> list[Subject]:
    """Noise on a number that moves by at most 1."""
    half = Claim.of(epsilon="0.5")
    return [
        Subject(
            PACKAGE,
            "laplace noise: scale upside down",
            half,
            [(0, 1), (0, 0)],
            lambda data, seed: data + laplace(random.Random(seed), 0.5),
            source="ε·Δ in place of Δ/ε",
        ),
        Subject(
            PACKAGE,
            "noisy maximum: releases its value",
            Claim.of(epsilon=2),
            neighbors([(0,) * 10], monotone=False),
            _noisy_maximum,
            source="Ding et al. 2018: noise for the place of the maximum, and its value is shown",
        ),
    ]


def _noisy_maximum(scores: Vector, seed: int) -> float:
    rng = random.Random(seed)
    return max(score + laplace(rng, 1.0) for score in scores)


class _Halved(PermuteAndFlip):
    """Claims half of what it costs."""

    def privacy(self) -> Privacy:
        return Privacy(exact("epsilon", self.epsilon) / 2)


class _Doubled(Exponential):
    """Claims half of what it costs."""

    def privacy(self) -> Privacy:
        return Privacy(exact("epsilon", self.epsilon) / 2)


class _NoRoom(Choosing):
    """Forgets how likely noise lifts a candidate that has just appeared above the threshold."""

    def threshold(self, sensitivity: int = 1) -> int:
        return sensitivity


class _OneStepMore(GapTest):
    """Takes data whose best may change to be one step away."""

    def _view(self, profile: Profile) -> tuple[Window, int]:
        window, steps = super()._view(profile)
        return window, steps + 1


def _mutants() -> list[Subject]:
    """Mechanisms of privmax with one mistake, found by their draws alone."""
    pure: dict[str, Any] = {"epsilon": 1}
    paid: dict[str, Any] = {"epsilon": 1, "delta": "0.01"}
    one_way = [
        Exponential(**pure),
        PermuteAndFlip(**pure),
        MaxOfLaplaces(**pure),
        LimitedDomain(**paid, rank=2),
        NestedMargin(**paid, ranks=(1, 3)),
        StableMaximum(**paid),
        GapTest(**paid),
    ]
    subjects = [
        subject_of(
            f"privmax {type(mechanism).__name__}: constants of add-remove under replace",
            mechanism,
            package=PACKAGE,
            monotone=False,
            source="tests/exact/test_contract.py",
        )
        for mechanism in one_way
    ]
    others = {
        "privmax PermuteAndFlip: half the noise": _Halved(epsilon=2),
        "privmax Exponential: twice epsilon": _Doubled(epsilon=2),
        "privmax Choosing: no room for noise": _NoRoom(**paid, growth=1),
        "privmax GapTest: one step too many": _OneStepMore(**paid),
    }
    subjects += [
        subject_of(name, mechanism, package=PACKAGE, source="tests/exact")
        for name, mechanism in others.items()
    ]
    subjects.append(_wrong_rho())
    observed = partial(_draw_observed, Exponential(epsilon=1))
    subjects.append(
        Subject(
            PACKAGE,
            "privmax Exponential: universe taken from the data",
            Claim.of(epsilon=1),
            neighbors([(1, 0, 0, 0), (2, 1, 0, 0)], monotone=True),
            run_on_seeds(observed),
            walk_scripts(observed),
            "tests/exact/test_audits.py",
        )
    )
    return subjects


def _wrong_rho() -> Subject:
    """Permute-and-flip at the ρ of the exponential mechanism, ε²/8: it needs up to ε²/2."""
    mechanism = PermuteAndFlip(epsilon=2, neighbors=REPLACE)
    return Subject(
        PACKAGE,
        "privmax PermuteAndFlip: rho of the exponential mechanism",
        Claim.of(rho="0.5"),
        neighbors([(0, 0), (1, 1, 1, 1)], monotone=False),
        run_on_seeds(partial(draw_place, mechanism, True)),
        source="as github.com/opendp/opendp/issues/2911 describes a noisy maximum",
    )


def _draw_observed(mechanism: Exponential, scores: Vector, coins: Coins) -> object:
    """Draw among the candidates that someone has."""
    places = [place for place, score in enumerate(scores) if score]
    seen = tuple(scores[place] for place in places)
    drawn = draw_place(mechanism, True, seen, coins)
    assert isinstance(drawn, int)
    return places[drawn]
