"""The laws of formal/, word for word in Python: what the theorems that Coq checked are about.

Each function is named after a definition of formal/ and says in which file it stands. They work on
labeled scores (a list, one score a candidate) and on any numbers that add, multiply and divide:
fractions, so that nothing is rounded, or balls. `t` is exp(ε/c). Nothing of privmax is used here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import comb, prod
from typing import Any

Scores = Sequence[int]
Numeral = Any  # a Fraction, a ball, a float


def ranking(q: Scores) -> list[int]:
    """Scores.v: candidates, best first; ties by their place in the list."""
    return sorted(range(len(q)), key=lambda i: (-q[i], i))


def stat(q: Scores, r: int) -> int:
    """Scores.v: q_(r+1)."""
    return q[ranking(q)[r]]


def top(q: Scores, size: int) -> list[int]:
    """Scores.v: the best of them."""
    return ranking(q)[:size]


def clip(width: int, r: int, q: Scores) -> list[int]:
    """Scores.v: max(q_i, q_(r+1) − W)."""
    floor = stat(q, r) - width
    return [max(score, floor) for score in q]


def exponential(t: Numeral, q: Scores) -> list[Numeral]:
    """Exponential.v."""
    weights = [t**score for score in q]
    total = sum(weights[1:], weights[0])
    return [weight / total for weight in weights]


def restricted(t: Numeral, size: int, q: Scores) -> dict[int, Numeral]:
    """RestrictedExponential.v; candidates that are not listed have probability 0."""
    weights = {i: t ** q[i] for i in top(q, size)}
    total = sum(weights.values(), 0 * t)
    return {i: weight / total for i, weight in weights.items()}


def guarded(t: Numeral, q: Scores, size: int, g: Numeral) -> dict[int | None, Numeral]:
    """LimitedDomain.v; None is nothing."""
    weights = {i: t ** q[i] for i in top(q, size)}
    total = sum(weights.values(), g)
    return {**{i: weight / total for i, weight in weights.items()}, None: g / total}


def guard(t: Numeral, c: int, k: int, delta: Numeral, n: int, q: Scores) -> Numeral:
    """LimitedDomain.v."""
    return n / delta * t**c * t ** stat(q, k)


def limited_domain(t: Numeral, c: int, k: int, delta: Numeral, q: Scores) -> Mapping[Any, Numeral]:
    """LimitedDomain.v."""
    return guarded(t, q, k, guard(t, c, k, delta, k, q))


def limited_domain_clipped(
    t: Numeral, c: int, k: int, delta: Numeral, *, width: int, slips: int, q: Scores
) -> Mapping[Any, Numeral]:
    """LimitedDomain.v: growth, with the scores clipped below the best."""
    clipped = clip(width, 0, q)
    floor = stat(q, 0) - width
    g = guard(t, c, k, delta, min(k, slips), clipped) + k / delta * t**c * t**floor
    return guarded(t, clipped, k, g)


def nested_margin(
    t: Numeral, c: int, ranks: Sequence[int], deltas: Sequence[Numeral], rho: Numeral, q: Scores
) -> dict[int | None, Numeral]:
    """NestedMargin.v: nested_guard, nested."""
    guards = [
        _ring_guard(t, c, size, size, ranks[-1], delta, rho, q)
        for size, delta in zip(ranks, deltas, strict=True)
    ]
    return _nested(t, ranks, guards, q)


def nested_margin_growth(
    t: Numeral,
    c: int,
    ranks: Sequence[int],
    deltas: Sequence[Numeral],
    rho: Numeral,
    *,
    width: int,
    slips: int,
    q: Scores,
) -> dict[int | None, Numeral]:
    """NestedMargin.v: growth_guard, nested; the scores are clipped below the best."""
    clipped = clip(width, 0, q)
    guards = []
    for size, delta in zip(ranks, deltas, strict=True):
        g = _ring_guard(t, c, size, min(size, slips), ranks[-1], delta, rho, clipped)
        if size < len(q):
            g += size / delta * t**c * t ** (stat(q, 0) - width)
        guards.append(g)
    return _nested(t, ranks, guards, clipped)


def _ring_guard(
    t: Numeral, c: int, size: int, n: int, last: int, delta: Numeral, rho: Numeral, q: Scores
) -> Numeral:
    """NestedMargin.v: ring_guard."""
    if size >= len(q):
        return 0 * t
    parts = n * t**c / delta, (last - size) / rho
    return (parts[1] if parts[0] < parts[1] else parts[0]) * t ** stat(q, size)


def _nested(
    t: Numeral, ranks: Sequence[int], guards: Sequence[Numeral], q: Scores
) -> dict[int | None, Numeral]:
    """NestedMargin.v: N, offer, nested."""
    totals = [
        sum((t ** q[i] for i in top(q, size)), g) for size, g in zip(ranks, guards, strict=True)
    ]
    offers: dict[int | None, Numeral] = {}
    for i in top(q, ranks[-1]):
        held = [n for size, n in zip(ranks, totals, strict=True) if i in top(q, size)]
        offers[i] = _largest(t ** q[i] / n for n in held)
    offers[None] = 1 - sum(offers.values(), 0 * t)
    return offers


def _largest(numbers: Iterable[Numeral]) -> Numeral:
    """NestedMargin.v: largest."""
    found, *others = numbers
    for number in others:
        found = number if found < number else found
    return found


def chance(r: Numeral, delta: Numeral, n: int) -> Numeral:
    """GapTest.v: chance, next."""
    p = 0 * r
    for _ in range(n):
        p = _least(r * p + delta, 1 - (1 - p - delta) / r, 1 + 0 * r)
    return p


def soft_chance(r: Numeral, y: Numeral, delta: Numeral, n: int) -> Numeral:
    """SetMargin.v: soft_chance, soft_next."""
    p = 0 * r
    for _ in range(n):
        p = _least(r * p + delta, 1 - (1 - p) / y)
    return p


def _least(*numbers: Numeral) -> Numeral:
    found, *others = numbers
    for number in others:
        found = number if number < found else found
    return found


def steps(c: int, k: int, q: Scores) -> int:
    """GapTest.v: ⌈(q_(k) − q_(k+1))/c⌉."""
    return (stat(q, k - 1) - stat(q, k) + c - 1) // c


def laplace(x: Numeral, k: int) -> Numeral:
    """NoisyMaximum.v: P(X = k)."""
    return (1 - x) / (1 + x) * x ** abs(k)


def laplace_cdf(x: Numeral, k: int) -> Numeral:
    """NoisyMaximum.v: P(X ≤ k)."""
    return 1 - x ** (k + 1) / (1 + x) if k >= 0 else x**-k / (1 + x)


def stops(cdf: Callable[[int], Numeral], excess: Sequence[int], g: int, answer: int) -> Numeral:
    """AboveThreshold.v: given g, the first query that passes is `answer`; their number: none."""
    passes = [cdf(one - g - 1) for one in excess]
    failed = prod(1 - one for one in passes[:answer])
    return failed * (passes[answer] if answer < len(excess) else 1)


def choices(k: int, width: int, q: Scores) -> list[frozenset[int]]:
    """SetMargin.v: the sets of k of the best `width` candidates."""
    return [frozenset(chosen) for chosen in combinations(top(q, width), k)]


def set_weight(u: Numeral, v: Numeral, q: Scores, chosen: frozenset[int]) -> Numeral:
    """SetMargin.v: last_rank, first_missing, worst, best_outside, set_weight."""
    order = ranking(q)
    last = max(order.index(i) for i in chosen)
    missing = next(r for r, i in enumerate(order) if i not in chosen)
    return u ** stat(q, last) * v ** -stat(q, missing)


def bound(u: Numeral, v: Numeral, c: int, k: int, width: int, q: Scores) -> Numeral:
    """SetMargin.v."""
    best = v ** -(stat(q, k - 1) - c)
    others = (comb(width - h - 1, k - h) * v ** -stat(q, h) for h in range(k))
    return u ** (stat(q, width) + c) * sum(others, best)


@dataclass(frozen=True)
class Draw:
    """SetMargin.v: a stage with k < width < K; `silence` is y ↦ root y ^ m, that is Y^(m/n)."""

    k: int
    width: int
    x: Numeral
    silence: Callable[[Numeral], Numeral]
    u: Numeral
    v: Numeral
    delta: Numeral


@dataclass(frozen=True)
class Test:
    """SetMargin.v: the best set or nothing."""

    k: int
    r: Numeral
    y: Numeral
    delta: Numeral


@dataclass(frozen=True)
class Whole:
    """SetMargin.v: everybody takes part."""

    k: int
    u: Numeral
    v: Numeral


Stages = Sequence[Draw | Test | Whole]
Cascade = dict[tuple[int, frozenset[int]] | None, Numeral]


def set_margin(stages: Stages, c: int, q: Scores) -> Cascade:
    """SetMargin.v: set_margin, cascade; the number of the stage and its set, or None: nothing."""
    law: Cascade = {}
    reach: Numeral = 1
    for place, stage in enumerate(stages):
        nothing = 1
        for chosen, share in released(stage, c, q):
            if chosen is None:
                nothing = share
            else:
                law[place, chosen] = reach * share
        reach = reach * nothing
    law[None] = reach
    return law


def released(
    stage: Draw | Test | Whole, c: int, q: Scores
) -> Iterator[tuple[frozenset[int] | None, Numeral]]:
    """SetMargin.v: released, nothing (None); and set_guard, soft, silence, best_set, everybody."""
    if isinstance(stage, Test):
        chance_ = soft_chance(stage.r, stage.y, stage.delta, steps(c, stage.k, q))
        yield frozenset(top(q, stage.k)), chance_
        yield None, 1 - chance_
        return
    width = stage.width if isinstance(stage, Draw) else len(q)
    weights = {one: _safe_weight(stage.u, stage.v, q, one) for one in choices(stage.k, width, q)}
    total = sum(weights.values(), 0 * stage.u)
    silent = 0 * stage.u
    if isinstance(stage, Draw):
        g = stage.x / stage.delta * bound(stage.u, stage.v, c, stage.k, width, q)
        silent = stage.silence(g / (g + total))
    for one, weight in weights.items():
        yield one, (1 - silent) * (weight / total)
    yield None, silent


def _safe_weight(u: Numeral, v: Numeral, q: Scores, chosen: frozenset[int]) -> Numeral:
    """The weight of the only set there is does not matter: nobody is outside of it."""
    return u**0 if len(chosen) == len(q) else set_weight(u, v, q, chosen)


def part(
    data: Sequence[Sequence[tuple[Any, Any]]],
    group: Any,
    counts_in: Callable[[Sequence[tuple[Any, Any]]], Iterable[Any]],
) -> list[list[tuple[Any, Any]]]:
    """Groups.v: the rows of one group, of each individual; a row is a group and an item."""
    return [[row for row in own if row[0] == group and group in counts_in(own)] for own in data]


def open_draw(
    r: Numeral, delta: Numeral, people: int, law: Mapping[Any, Numeral]
) -> dict[Any, Numeral]:
    """Groups.v: found, open_draw; "absent" is a group that is not released."""
    found = chance(r, delta, people)
    return {"absent": 1 - found, **{outcome: found * share for outcome, share in law.items()}}


def table(laws: Sequence[Mapping[Any, Numeral]]) -> dict[tuple[Any, ...], Numeral]:
    """Groups.v: one outcome for each group, all draws independent."""
    return {
        tuple(outcome for outcome, _ in one): prod(share for _, share in one)
        for one in product(*(law.items() for law in laws))
    }


def key_rounds(
    looks: Sequence[bool],
    rho: Sequence[int],
    gives: Callable[[int, Any, Sequence[Any], Sequence[Mapping[Any, int]]], Mapping[Any, int]],
    data: Mapping[Any, Sequence[Any]],
    noise: Sequence[Sequence[int]],
    answers: Sequence[Any],
) -> tuple[set[Any], list[dict[Any, int]]]:
    """KeyRounds.v: listed, given, totals, alive, drawn, passing and released_keys, at given noise.

    Returns what is released, and of each round the totals of what has noise.
    """
    listed = sorted({key for keys in data.values() for key in keys})
    past: list[dict[Any, int]] = []
    released: set[Any] = set()
    shares: list[dict[Any, int]] = []
    for turn, is_look in enumerate(looks):
        totals = Counter[Any]()
        for one, keys in data.items():
            shown = {*keys, *answers}
            own = [{name: y for name, y in values.items() if name in shown} for values in past]
            totals.update(gives(turn, one, keys, own))
        drawn = [key for key in listed if alive(looks, rho, past, key)] if is_look else answers
        values = {name: totals[name] + z for name, z in zip(drawn, noise[turn], strict=False)}
        if is_look:
            released |= {key for key in drawn if values[key] >= rho[turn] and totals[key] > 0}
        shares.append({name: totals[name] for name in drawn})
        past.append(values)
    return released, shares


def alive(
    looks: Sequence[bool], rho: Sequence[int], past: Sequence[Mapping[Any, int]], key: Any
) -> bool:
    """KeyRounds.v: alive; what has no noise has the value 0."""
    return all(values.get(key, 0) < rho[turn] for turn, values in enumerate(past) if looks[turn])


def counts_exponent(k: int, m: int, s: int) -> int:
    """NoisyCounts.v: laplace_counts_private; the counts cost 1/x to this power."""
    return min(k, m) * s


def distance(v: Fraction, h: Fraction, k: int, m: int, size: int) -> Fraction:
    """SharedNoise.v: bend, spread, distance; the counts move by `size` parts of a step at most.

    `v` is the variance of own noise, `h` one over that of shared noise.
    """
    bend = 1 / (v * h + k)
    spread = max(Fraction(0), *(j - j**2 * bend for j in range(m + 1)))
    return size**2 / v * spread + (h + k / v) / 4


def fit_moves(relation: str, residual: int, curvature: int) -> tuple[int, int, int, int]:
    """AdditiveFit.v: the numbers of additive_fit_private and additive_fit_replace.

    Squared distances of the counts of labels, of G and of K, and the change of a score.
    """
    if relation == "add-remove":
        return 1, residual**2, curvature**2, residual
    return 2, 4 * residual**2, 2 * curvature**2, 2 * residual


def order_exponent(k: int, m: int, s: int) -> int:
    """RankedMargin.v: ranked_margin_laplace; the order costs 1/x to this power."""
    return min(m, k // 2) * s


def run_slope(law: Any, m: Numeral, x: Numeral) -> Numeral:
    """Repetition.v: f' in negative_binomial_private, with 1 + η for a/b, and in poisson_private."""
    if hasattr(law, "gamma"):
        gamma = m * 0 + law.gamma.numerator / (m * 0 + law.gamma.denominator)
        power = 1 + law.eta
        share = gamma / (1 - (1 - gamma) * x)
        return m * (share.log() * power.numerator / power.denominator).exp()
    return m * (m * (x - 1)).exp()


def large_margin(
    w: Numeral,
    thresholds: Sequence[int],
    q: Scores,
    *,
    shared: Sequence[int],
    noise: Sequence[int],
) -> list[Numeral]:
    """LargeMargin.v: large_margin without m and l, in a closed universe.

    `w` is e^(ε/12), `thresholds` are T_1 … T_(K−1). The sums over the noise of the best score and
    the shared noise run over `noise` and `shared`.
    """
    n = len(q) - 1
    law = [0 * w] * len(q)
    for x in noise:
        excess = [stat(q, 0) + x - stat(q, r + 1) - thresholds[r] for r in range(n)]
        for answer in range(n + 1):
            found = laplace(w**-4, x) * sum(
                laplace(w**-2, g) * stops(lambda k: laplace_cdf(1 / w, k), excess, g, answer)
                for g in shared
            )
            for i, share in restricted(w**2, answer + 1, q).items():
                law[i] += found * share
    return law
