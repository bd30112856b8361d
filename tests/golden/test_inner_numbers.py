"""Values inside the modules that costs, noise and laws come from, and what is drawn from the same
coins, compared with stored ones.

tests/golden/test_public_numbers.py has what callers see, to six digits. Here are the parts, exact
where no float takes part and to eleven digits where one does: the number of roundings that a bound
counts, the precision of a table, a law of each mechanism, the order in which coins are used. Where
one of them is to change,

    python tests/golden/test_inner_numbers.py

stores all of them again: read the difference, and say why in the commit.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb

import privmax
from privmax import (
    accounting,
    composition,
    count_costs,
    counts,
    losses,
    one_key_each,
    relative,
    repetition,
)
from privmax.keyset import budget, plans, procedure
from privmax.keyset import rounds as key_rounds
from privmax.learning import Number, Schema
from privmax.learning.additive import fitting, groups, link, memory, model, rounds, steps
from privmax.learning.classifier import choice, counting
from privmax.learning.regressor import fitting as errors
from privmax.learning.regressor import targets, terms
from privmax.mechanisms import (
    above_threshold,
    arrivals,
    cells,
    choosing,
    gap_test,
    guards,
    joint_exponential,
    large_margin,
    large_margin_truncated,
    limited_domain,
    max_of_truncated,
    nested_margin,
    noisy_maximum,
    peeling,
    propose_test_release,
    ranked_margin,
    registry,
    restricted_exponential,
    set_margin,
    sets,
    sharp_margin,
    stages,
    stored_leads,
    weights,
)
from privmax.mechanisms.contract import JointLaw, Law
from privmax.noise import balls, blocks, bulk, race, runs, samplers, tails
from privmax.noise.balls import precision
from privmax.privacy import Privacy
from privmax.profile import Profile
from privmax.testing import SeededCoins

sys.path.append(str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "exact"))

from key_ballots import Ballots
from stored_rows import read_stored, store_rows

STORED = Path(__file__).parent / "stored" / "inner_numbers.json"

DIGITS = 1e-11
"""Floats may differ by so much of themselves: machines add them up in different orders."""


def draws(draw: Callable[[Any], Any], *seeds: int) -> list[Any]:
    """What is drawn from some coins, and which come next: so many were used."""
    found = []
    for seed in seeds or (1, 2, 3):
        coins = SeededCoins(seed)
        found.append([draw(coins), coins.bits(20), coins.bytes(2).hex()])
    return found


def brief(array: Any) -> list[Any]:
    """Of a long array: length, both ends, and two sums that see every place."""
    listed = np.asarray(array).ravel()
    whole = listed.dtype.kind in "iub"
    numbers = listed.astype(object) if whole else listed.astype(float)
    finite = numbers if whole else np.where(np.isfinite(numbers), numbers, 1.5)
    turns = np.arange(len(listed)) % 97 + 1
    return [
        len(listed),
        numbers[:3].tolist(),
        numbers[-3:].tolist(),
        finite.sum() if len(listed) else 0,
        (finite * turns).sum() if len(listed) else 0,
    ]


def least(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least whole number at which something holds, which does at `high` and not at `low`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def table(cells_of: tuple[int, ...], rows: int) -> np.ndarray:
    """Cells of some features, made of nothing."""
    place = np.arange(rows)
    return np.array(
        [(place * (2 * f + 3) // (f + 1)) % n for f, n in enumerate(cells_of)], np.uint8
    )


def examples(cells_of: tuple[int, ...], rows: int) -> memory.MemoryRows:
    codes = table(cells_of, rows)
    return memory.MemoryRows(codes, (codes[0] + codes[-1]) % 3 > 0)


def numbered(cells_of: tuple[int, ...], rows: int) -> memory.MemoryRows:
    codes = table(cells_of, rows)
    return memory.MemoryRows(codes, (100 * codes[0] - 30 * codes[-1] + 7).astype(np.int16))


def ballots(people: int, labels: int) -> Ballots:
    """Individuals with one to four keys."""
    holdings = {
        one: {f"key {(one * step) % labels % (1 + one % labels)}" for step in range(1, 2 + one % 4)}
        for one in range(people)
    }
    return Ballots(holdings, copies={one: 1 + 40 * (one % 3) for one in range(people)})


MODULES = (
    accounting, balls, blocks, budget, composition, count_costs, counts, losses, one_key_each,
    procedure, plans, relative, repetition, key_rounds, above_threshold, arrivals, cells, choosing,
    gap_test, guards, joint_exponential, large_margin, large_margin_truncated, limited_domain,
    max_of_truncated, nested_margin, noisy_maximum, peeling, propose_test_release, ranked_margin,
    restricted_exponential, set_margin, sets, sharp_margin, stages, weights, fitting, groups, link,
    memory, model, rounds, steps, choice, counting, targets, terms, errors, race, tails,
    samplers, bulk, runs, registry, stored_leads,
)  # fmt: skip

NAMES: dict[str, Any] = {
    **{name: getattr(privmax, name) for name in privmax.__all__},
    **{module.__name__.split(".")[-1]: module for module in MODULES},
    "rounds": rounds, "key_rounds": key_rounds, "fitting": fitting, "errors": errors,
    "F": Fraction, "Privacy": Privacy, "Profile": Profile, "np": np, "arb": arb, "math": math,
    "Schema": Schema, "Number": Number,
    "draws": draws, "brief": brief, "least": least, "examples": examples, "numbered": numbered,
    "ballots": ballots, "partial": partial, "product": product, "accumulate": accumulate,
    "SeededCoins": SeededCoins, "plan_keys_over": plans.plan_keys_over, "ball": balls.ball,
    "flat": Profile([(30, 1), (27, 3), (12, 2)], universe=40),
    "steep": Profile([(80, 1), (33, 2), (4, 9)], universe=500),
    "tied": Profile([(9, 5), (8, 4)], universe=9),
    "open": Profile([(41, 2), (30, 1), (9, 4)]),
    "coarse": Profile([(90, 2), (60, 3), (2, 1)], universe=50, sensitivity=3),
    "far": Profile([(10**6, 1), (10**6 - 3, 4), (5, 2)], universe=10**9),
    "small": Profile([(3, 1), (2, 1), (0, 2)], universe=4),
}  # fmt: skip


def about_noise() -> Iterator[str]:
    for scale in ("F(1, 3)", "F(1)", "F(5, 2)", "F(40)"):
        yield f"draws(lambda c: [samplers.discrete_laplace({scale}, c) for _ in range(9)])"
        yield f"draws(lambda c: [samplers.discrete_gaussian({scale}, c) for _ in range(9)])"
        yield f"draws(lambda c: [samplers._try_gaussian({scale}, c) for _ in range(9)])"
        yield f"draws(lambda c: [samplers.geometric(1 / {scale}, c) for _ in range(9)])"
        yield f"draws(lambda c: [samplers.bernoulli_exp({scale}, c) for _ in range(9)])"
        yield f"draws(lambda c: [samplers.jump(lambda: ball(1 / {scale}), c, 4) for _ in range(9)])"
        yield f"draws(lambda c: bulk.discrete_laplace({scale}, 40, c).tolist())"
        yield f"draws(lambda c: bulk.geometric({scale}, 40, c).tolist())"
        yield f"draws(lambda c: bulk.bernoulli_exp({scale}, 40, c).tolist())"
        yield f"bulk._digit_chance({scale})"
        yield f"bulk._nonzero_chance({scale})"
        yield f"draws(lambda c: [runs.poisson({scale}, c) for _ in range(5)])"
        for eta in ("F(1)", "F(0)", "F(-1, 2)", "F(3)"):
            yield f"draws(lambda c: runs.negative_binomial({eta}, 1 / ({scale} + 2), c))"
            yield f"runs.first_negative_binomial({eta}, 1 / ({scale} + 2))"
    for variance in ("F(1, 50)", "F(1)", "F(7, 2)", "F(10**4)", "F(10**6) + F(1, 3)", "F(10**24)"):
        yield f"draws(lambda c: bulk.discrete_gaussian({variance}, 60, c).tolist())"
        yield f"draws(lambda c: bulk.rounded_gaussian({variance} + F(1, 9), 40, c).tolist())"
        made = f"blocks.Blocks({variance})"
        yield f"[brief(value) for name, value in sorted(vars({made}).items()) if np.ndim(value)]"
        yield f"[{made}.shift, {made}.reach, list({made}._firsts)[:4]]"
        yield f"[part for part in {made}._cuts()][:6]"
        yield f"[draws(lambda c: [one._draw_tail(c) for _ in range(20)]) for one in [{made}]]"
        yield f"draws(lambda c: [brief(one) for one in {made}.draw(3000, c)], 1)"
    for fine, spread in ((3, 2), (6, 1)):
        made = f"blocks.Blocks(F(10**4), fine={fine}, spread={spread})"
        yield f"draws(lambda c: [brief(one) for one in {made}.draw(3000, c)], 1)"
        yield (
            f"[[one.tolist() for one in made._accept_bounds(np.array([1, 3, 4, 5], np.int16), "
            f"np.array([0, 1, 2, 3]))] for made in [{made}] if made.shift]"
        )
        yield f"[{made}._exponent(block, offset) for block in (1, 2, 5) for offset in (0, 1, 3)]"
    wide = "blocks.Blocks(F(10**24))"
    yield (
        f"[one.tolist() for one in {wide}._accept_bounds(np.array([1, 30, 400], np.int16), "
        "np.array([0, 10**9, 3 * 10**10]))]"
    )
    yield f"{wide}._exponent(30, 10**9)"
    huge = "blocks.Blocks(F(2) ** 92)"
    yield (
        f"[one.tolist() for one in {huge}._accept_bounds(np.array([1, 30, 400], np.int16), "
        "np.array([0, 10**9, 2 * 10**12]))]"
    )
    for shift in (1, 8, 9, 16, 17, 32, 33, 43):
        yield f"draws(lambda c: blocks._offsets({shift}, 4, c).tolist(), 1)"
    for chance in ("ball(F(1, 3))", "(-ball(F(20))).exp()", "ball(F(255, 256)).sqrt()"):
        yield f"draws(lambda c: np.flatnonzero(bulk.bernoulli(lambda: {chance}, 900, c)).tolist(), 1)"
        yield (
            f"draws(lambda c: np.flatnonzero(bulk.bernoulli(lambda: {chance}, 900, c, rest=True))"
            ".tolist(), 1)"
        )
        yield f"draws(lambda c: np.flatnonzero(bulk.bernoulli_real(lambda: {chance}, 90, c)).tolist())"
        for rest in (False, True):
            yield (
                f"[bulk._digits(lambda: {chance}, skip, count, rest={rest}) "
                "for skip in (0, 8, 72) for count in (8, 64)]"
            )
    yield "bulk._lie_below(np.array([0, 5, 2**64 - 1], np.uint64), 0).tolist()"
    yield "[bulk._lie_below(np.array([0, 5, 2**64 - 1], np.uint64), n).tolist() for n in (1, 5, 6)]"
    yield "[bulk._lie_below(np.array([2**64 - 1], np.uint64), 2**64 - n).tolist() for n in (0, 1)]"
    yield "draws(lambda c: bulk._stays_within_cell(np.arange(20), F(3), c).tolist())"
    yield "draws(lambda c: bulk._stays_within_cell(np.arange(20) * 50, F(10**5), c).tolist())"
    yield (
        "draws(lambda c: [bulk._is_kept(start, F(2), samplers.Uniform(c), c) for start in range(8)])"
    )
    for x in ("1", "2**60", "2**48 - 1"):
        yield f"draws(lambda c: bulk.geometric(F({x}, 2**48), 5, c).tolist())"
    for n in (1, 2, 3, 7, 8, 9, 1000):
        yield f"draws(lambda c: [samplers.uniform_below({n}, c) for _ in range(12)])"
    yield "draws(lambda c: [samplers.weighted(lambda: [arb(0), arb(2), arb(3), arb(0)], c) for _ in range(9)])"
    yield "draws(lambda c: [samplers.bernoulli(lambda: ball(F(1, 3)), c) for _ in range(20)])"
    yield (
        "[(cut.low(1), cut[1], cut.low(2), cut[2], len(cut), cut.known) "
        "for cut in [samplers._Boundaries(lambda: [arb(1), arb(1), arb(5)], 20)]]"
    )
    for variance, k in product(("F(1, 9)", "F(7)", "F(900)", "F(10**9)"), (1, 2, 9, 200)):
        yield f"tails.gaussian_sum({variance}, {k})"
        yield f"tails._term({variance}, {k})"
        if variance != "F(10**9)":
            yield f"tails._add_up({variance}, {k}, tails._term({variance}, {k}))"
    yield from (f"tails.gaussian_total({v})" for v in ("F(1, 9)", "F(7)", "F(900)"))
    yield from (f"tails.gaussian_tail(F(7), {k})" for k in (-1, 0, 1))
    yield from (f"tails.laplace_tail(F(7), {k})" for k in (-1, 0, 1, 2))
    for number in ("arb(3)", "arb(7) / 2", "-arb(7) / 2", "arb(0)"):
        yield f"[balls.below({number}), balls.above({number})]"
    for scale, argument in product(("F(1)", "F(5, 3)"), ("F(1, 2)", "F(1)", "F(100)")):
        yield f"balls.ceiling_log({scale}, {argument})"
    yield "balls.ceiling(lambda: ball(F(7, 2)).sqrt())"
    coins = "SeededCoins(1)"
    for bad in ("F(0)", "F(-1)", "F(1, 10**30)", "F(10**40)"):
        yield f"samplers.discrete_laplace({bad}, {coins}) is None"
        for sampler in ("discrete_gaussian", "geometric", "bernoulli_exp"):
            if bad != "F(1, 10**30)" or sampler != "geometric":
                yield f"samplers.{sampler}({bad}, {coins}) is None"
        for sampler in ("discrete_laplace", "geometric", "bernoulli_exp", "rounded_gaussian"):
            if (bad, sampler) != ("F(1, 10**30)", "discrete_laplace"):
                yield f"bulk.{sampler}({bad}, 2, {coins}) is None"
        if bad != "F(10**40)":  # so many runs would be counted one by one
            yield f"runs.poisson({bad}, {coins}) is None"
            for gamma in ("F(1, 2)", "F(1)", "F(0)", "F(-1, 2)"):
                yield f"runs.negative_binomial({bad}, {gamma}, {coins}) is None"
    yield from (f"bulk.discrete_gaussian({v}, 2, {coins}) is None" for v in ("F(0)", "F(2)**97"))
    yield from (f"bulk.rounded_gaussian(F(1, {v}), 2, {coins}) is None" for v in (1024, 1025))
    yield from (f"bulk.geometric(F(1, 2**48 + {v}), 2, {coins}) is None" for v in (0, 1))
    for sampler in ("discrete_laplace", "discrete_gaussian", "geometric", "bernoulli_exp"):
        yield from (f"bulk.{sampler}(F(1), {size!r}, {coins}) is None" for size in (-1, 0, 1.5))
    yield from (f"samplers.uniform_below({n}, {coins})" for n in (0, -1))


def about_races() -> Iterator[str]:
    cut = "race.ExponentialNoise(lambda: ball(F(1, 50)))"
    listed = (
        "[(0, 1), (3, 2), (9, 40)]",
        "[(0, 2), (1, 1)]",
        "[(0, 1), (2, 10**12), (80, 10**30)]",
    )
    for noise, each in product(("race.EXPONENTIAL", "race.LAPLACE", cut), listed):
        for rate in ("F(1, 2)", "F(3)"):
            yield f"race.race_law({each}, {rate}, {noise})"
            yield f"draws(lambda c: race.run_race({each}, {rate}, {noise}, c), *range(8))"
        some = "np.array([0.0, 1.5, 4.0]), np.log([1.0, 2.0, 40.0])"
        if each is listed[0]:
            yield f"[brief(one) for one in race._nodes({some}, {noise})]"
            yield f"race._integrals({some}, {noise})"
            yield f"race._end({some}, {noise})"
            for y in ("1/3", "1", "5/3"):
                yield f"{noise}.log_v(ball(F('{y}') / 2))"
                yield f"{noise}.time(-ball(F('{y}')))"
            yield f"[one.tolist() for one in {noise}.hazards(np.array([-3.0, 0.5, 2.0]), np.array([0.0, 1.0, 3.0]))]"
            for part in ("starts", "bends", "rates"):
                yield f"{noise}.{part}(np.array([0.0, 2.0])).tolist()"
            yield f"{noise}.latest"
    yield "brief(race._quadrature())"
    yield "race._log_difference(np.array([1.0, 2.0, 2.0]), np.array([0.5, 2.0, -np.inf])).tolist()"
    yield "race._unlog(np.array([-1000.0, -2.0, 0.0, 3.0])).tolist()"
    yield "[race._log(lambda: arb(0)), race._log(lambda: arb(7))]"
    yield "[race._either(side, arb(1), arb(2)) for side in (arb(1), arb(-1), arb(0, 1))]"


def about_losses() -> Iterator[str]:
    few = "losses.Losses(F(-1, 2), F(1, 4), np.array([0.25, 0.0, 0.5, 0.125]), 1e-9, 7)"
    more = "losses.Losses(F(1), F(1, 8), np.array([0.5, 0.25, 0.125, 0.0625, 0.0]), 1e-7, 5)"
    long = "losses.Losses(F(-9), F(1, 500), np.ones({n}) / {n}, 0.0, 3)"
    for one, other in product((few, more), repeat=2):
        yield f"losses.combine({one}, {other})"
    for one in (few, more):
        yield f"losses.coarsen({one})"
        yield f"losses.refine({one}, F(1, 16))"
        for cut in ("0.0", "0.0625", "0.1", "0.25", "0.3", "0.9"):
            yield f"losses.trim({one}, {cut})"
        for times in (1, 2, 3, 6, 7):
            yield f"losses.repeat({one}, {times}, 1e-3)"
    for n in (4096, 4097, 9000):
        yield f"losses.shorten({long.format(n=n)})"
    for each in ("3, 4, 1", "6, 3, 3", "1, 1, 1", "8, 30, 4"):
        yield f"losses.response_losses({each}, F(1, 9))"
    for shift, variance in ((1, "F(4)"), (3, "F(50)"), (614, "F(10**6)"), (1, "F(1, 100)")):
        for base in ("F(1, 4)", "F(1, 300)"):
            yield f"losses.gaussian_losses({shift}, {variance}, {base}, 1e-9)"
    yield "losses.gaussian_losses(1, F(10**13), F(1, 10**6), 1e-9)"
    yield "losses.gaussian_losses(2**40, F(2**72), F(1, 4), 1e-9)"
    yield "losses.gaussian_losses(2**45, F(10**4), F(1, 4), 1e-9)"
    for number in (1, 2, 511, 512, 513, 1030):
        yield f"brief(losses.falls({number}, F(1, 90)))"
    yield "losses._exponentials(np.array([0, 2.0**-41, 0.5, 1, 3.3, 10, 699, 699.9, 700, 701, 9e9])).tolist()"
    yield from (f"brief(losses._notches({place}))" for place in range(5))
    for slack in ("F(1, 10)", "F(1, 10**6)", "F(1, 2)", "F(1, 10**8)"):
        yield f"losses.least_epsilon({few}, {slack})"
        yield f"losses.least_epsilon({few}, {slack}, losses.Deltas(2, np.array([.9, .5, .3, .1, 0]), 9))"
        yield f"losses.least_epsilon(losses.response_losses(3, 40, 1, F(1, 90)), {slack})"
    for roundings in ("2**50", "2**51 - 7", "2**51 - 6", "2**51 - 5", "2**51"):
        yield f"losses.least_epsilon(losses.replace({few}, roundings={roundings}), F(1, 10))"
    for pairs in ("{3: 7}", "{3: 7, 8: 2}", "{4: 1, 6: 9, 10: 3}", "{0: 5}", "{0: 5, 2: 4}"):
        yield f"losses.response_epsilon({pairs}, F(1, 50), F(1, 10**5))"
    yield "losses.response_epsilon({3: 7}, F(1, 50), F(1, 2**200))"
    yield "losses.response_epsilon({3: 7}, F(1, 50), F(1, 2**201))"
    some = "rounds=[(F(1, 20), 7), (F(1, 8), 2)], gaussians=[(1, F(300), 4), (2, F(900), 2)]"
    for given in (some, some.split(", gaussians", maxsplit=1)[0], some.split("], ", maxsplit=1)[1]):
        program = f"accounting.Program({given})"
        yield f"[{program}.rho(), {program}._is_extreme()]"
        yield f"{program}._noise_losses(F(1, 500), F(1, 10**6))"
        yield f"{program}._worst_draws(F(1, 500))"
        yield f"{program}.epsilon_by_losses('1e-6')"
        yield f"{program}.epsilon('1e-6')"
    for given in (
        "rest='0.01'", "rounds=[(F(1, 20), 7)], rest='0.01'", "rounds=[(30, 1)]", "rounds=[(3, 99)]",
        "rounds=[(3, 100)]", "rounds=[(F(1, 10**100), 1)]", "gaussians=[(1, F(10**100), 1)]",
        "gaussians=[(1, F(10**101), 1)]", "gaussians=[(10**30, F(1), 1)]", "rounds=[(F(1, 30), 12)]",
        "rounds=[(F(1, 100), 64)]", "rounds=[(F(1, 30), 12)], gaussians=[(1, F(1, 3000), 1)]",
    ):  # fmt: skip
        yield f"accounting.Program({given}).epsilon_by_losses('1e-6')"
    yield "accounting._chances(9, F(1, 30))"
    yield (
        "accounting._one_more_draw(np.array([.5, .4, .2, .1]), np.array([.9, .7, .6]), "
        "accounting._chances(3, F(1, 5)))"
    )


def about_composition() -> Iterator[str]:
    for epsilon, delta in (("1", "1e-6"), ("0.25", "0.01"), ("6", "1e-12"), ("0.001", "0.4")):
        for number in (1, 2, 7, 60):
            for ranged in (True, False):
                yield f"composition.per_round('{epsilon}', '{delta}', {number}, bounded_range={ranged})"
                yield f"composition.price({number}, F('{epsilon}'), F('{delta}'), bounded_range={ranged})"
            yield f"composition.price_by_range({number}, F('{epsilon}'), F('{delta}'))"
        yield f"composition.epsilon_of_rho('{epsilon}', '{delta}')"
        yield f"composition.largest_rho('{epsilon}', '{delta}')"
        yield f"float(composition._order({epsilon}, {delta}))"
    yield "[composition._minus_log(F(n, 8)) for n in (1, 4, 5, 7)]"
    yield "composition.epsilon_of_rho(2**40, '1e-6')"
    yield "composition.epsilon_of_rho(2**40 + 1, '1e-6')"
    yield "composition.epsilon_of_rho(F(1, 10**40), '0.9')"
    yield "composition.largest_rho(F(1, 10**9), '0.5')"
    for number in ("F(1, 3)", "F(1, 2**40)", "F(1, 10**30)", "F(5)"):
        yield f"[composition._round_up(ball({number})), composition._round_down(ball({number}))]"
    yield "composition._round_up(ball(F(-1, 2)))"
    yield "composition._round_up(arb(0))"


def about_repetition() -> Iterator[str]:
    costs = ("epsilon=1", "epsilon='0.1', delta='1e-4'", "rho='0.02'", "epsilon=2, rho='0.1'")
    laws = ("'geometric', 10", "'logarithmic', 8", "'poisson', 12", "'-1/2', 3", "3, 40")
    for cost in costs:
        run = f"repetition.RunCost({cost})"
        for at in ("0", "1/10", "1", "3"):
            yield f"{run}.profile(F('{at}'))"
        yield from (f"{run}.divergence(F('{order}'))" for order in ("3/2", "2", "9"))
        yield from (f"{run}.epsilon_at(F('{delta}'))" for delta in ("0", "1e-9", "1e-4", "1e-2"))
        yield f"{run}.pure"
        for law in laws:
            runs_of = f"repetition.random_runs({law})"
            yield f"{runs_of}.drift({run})"
            yield f"{runs_of}.epsilon({run}, F(1, 100))"
            yield f"{runs_of}.epsilon({run}, F(0))"
            yield f"repetition.concentrated_cost({run}, {runs_of})"
            yield f"repetition.repetition_cost({run}, {runs_of}, '0.01')"
            yield f"repetition.repetition_cost({run}, {runs_of}, '0.01', 300)"
            yield f"repetition.repetition_cost({run}, {runs_of}, '0.01', 20)"
    for law in laws:
        runs_of = f"repetition.random_runs({law})"
        yield f"[{runs_of}, {runs_of}.mean(), {runs_of}.tail(7), {runs_of}.hit('0.2')]"
        yield f"{runs_of}.chances(6)"
        yield f"[{runs_of}.generate(ball(F(n, 4))) for n in (1, 3)]"
        yield f"draws(lambda c: [{runs_of}.draw(c) for _ in range(4)])"
        for most in (None, 1, 3):
            yield (
                f"draws(lambda c: repetition.best_of({runs_of}, lambda n: "
                f"[(i % 5, i) for i in range(n)], c, {most}))"
            )
    for mean in ("1", "1.001", "10000", "10001"):
        yield from (
            f"repetition.random_runs({law}, '{mean}')" for law in ("'poisson'", "'0'", "'1'")
        )
    for law in ("-1", "'-0.999'", "10000", "10001", "'other'", "True"):
        yield f"repetition.random_runs({law}, 10)"
    for rho, at in product(("1/50", "1/2"), ("0", "1/3", "2")):
        yield f"repetition._profile_at_order(F('{rho}'), F('{at}'))"
        yield f"round(repetition._best_power({rho}, {at}), 3)"
    yield from (f"repetition._variation(F('{rho}'))" for rho in ("1/50", "1/2", "3", "9"))
    yield from (
        f"repetition._conversion(ball(F(1, 10**6)), F('{order}'))" for order in ("3/2", "9")
    )
    yield "round(float(repetition._search(lambda order: ball(order) / 20 + 3 / ball(order - 1))), 6)"
    yield "repetition._least(lambda epsilon: epsilon >= F(1, 3))"
    yield "repetition._least(lambda epsilon: epsilon >= 900)"
    yield "repetition._least(lambda epsilon: epsilon >= 1024)"
    yield "repetition._least(lambda epsilon: epsilon > 1024)"
    yield "repetition._least(lambda epsilon: True)"
    yield "repetition._least(lambda epsilon: epsilon > F(3, 2**40))"
    for eta, mean in product(("0", "1", "3", "-1/2"), ("1.01", "3", "900")):
        yield f"repetition._gamma(F('{eta}'), F('{mean}'))"
    yield "[repetition._mean(eta, log) for eta in (0, 1.0, -0.5) for log in (-3.0, -0.1)]"
    yield "[repetition._up(ball(F(1, 3))), repetition._down(ball(F(1, 3)))]"
    yield "repetition.RunCost(delta='0.1')"
    yield "repetition.RunCost(epsilon=1, delta=1)"


def about_counts() -> Iterator[str]:
    kinds = (
        "counts.DiscreteLaplace(scale='2.5')", "counts.DiscreteLaplace(scale=7, step='0.5')",
        "counts.DiscreteGaussian(sigma='2.5')", "counts.DiscreteGaussian(sigma=7, step='0.5')",
        "counts.SharedGaussian(sigma='2.5', shared=2)",
        "counts.SharedGaussian(sigma='2.5', shared=2, step='0.5', parts=3)",
        "relative.RelativeLaplace(scale='2.5')", "relative.RelativeLaplace(scale=3, step='0.25')",
        "relative.RelativeGaussian(sigma='2.5')",
        "relative.RelativeGaussian(sigma=7, step='0.5', parts='5')",
    )  # fmt: skip
    for noise in kinds:
        yield f"draws(lambda c: [{noise}.draw(c) for _ in range(5)])"
        yield f"draws(lambda c: {noise}.draw_all(6, c))"
        yield f"draws(lambda c: {noise}.add(50, c))"
        yield f"draws(lambda c: {noise}.add_all([50, 9, 300], c))"
        yield f"[brief({noise}.draw_all(n, SeededCoins(4))) for n in (64, 65)]"
        yield f"[{noise}.tail(k) for k in (-3, 0, 1, 2, 9)]"
        yield f"[{noise}.chance(k) for k in (-3, 0, 1, 4)]"
        yield f"[{noise}.error(p) for p in ('0.01', '0.5', '0.95', '0.9999')]"
        yield f"[{noise}.in_units(k) for k in (-3, 0, 4, 10**400, -10**400)]"
        yield f"[{noise}, {noise}.step, {noise}.to_dict()]"
        if "relative" in noise:
            yield f"[{noise}.parts, {noise}.reach, [{noise}.weigh(n) for n in (-4, 0, 7)]]"
            yield f"draws(lambda c: {noise}.rank([5, 5, 9, 5, 2], c))"
            yield f"[{noise}._round(n) for n in range(-9, 9)]"
    for sigma in ("F(3, 33)", "F(3, 33) - F(1, 10**9)"):
        yield f"counts.SharedGaussian(sigma={sigma}, shared=1)"
        yield f"counts.SharedGaussian(sigma=1, shared={sigma})"
        yield f"relative.RelativeGaussian(sigma={sigma})"
        yield f"relative.RelativeGaussian(sigma={sigma}, step=2)"
    yield "counts.SharedGaussian(sigma=2, shared=1, step='0.5').variances"
    yield from (f"counts.SharedGaussian(sigma=2, shared=1, parts={n!r})" for n in (2, "4", "x", 0))
    yield "draws(lambda c: [relative._shuffle(n, c) for n in (0, 1, 2, 5, 8)])"
    for price in ("Privacy(1, '1e-6')", "Privacy('0.3', '0.01')", "Privacy(2)"):
        for k, growth, kind in product((1, 8, 30), (None, 1, 3), ("add-remove", "replace")):
            given = f"{price}, k={k}, growth={growth}, neighbors='{kind}'"
            yield f"counts.choose_noise({given})"
            yield f"relative.choose_order_noise({given})"
        for options in ("sensitivity=3", "sensitivity=2, step=F(1, 4)"):
            yield f"counts.choose_noise({price}, k=12, {options})"
            yield f"relative.choose_order_noise({price}, k=12, {options})"
    yield "counts.choose_noise(Privacy(40, '1e-6'), k=1)"
    yield "relative.choose_order_noise(Privacy(80, '1e-6'), k=2)"
    for k, moved in ((1, 1), (2, 1), (9, 4), (9, 5), (30, 30)):
        for kind in ("add-remove", "replace"):
            yield f"relative.relative_spread({k}, {moved}, '{kind}')"
            yield f"relative.find_relative(Privacy(1, '1e-6'), {k + 1}, {moved}, 2, '{kind}', 5)"
            yield f"counts.count_moved({k}, {moved}, '{kind}')"
        yield f"count_costs._find_ratio({k}, {moved})"
        yield f"count_costs._spread(F(1), F(1, 9), {k}, {moved})"
        yield f"count_costs._spread(F(1), F(9, 4), {k}, {moved})"
        yield f"count_costs.find_shared(Privacy(1, '1e-6'), {k}, {moved}, 2, 5)"
        yield f"count_costs.find_sigma(Privacy(1, '1e-6'), {moved}, 3)"
        yield f"count_costs.start_scale(Privacy('0.3', '1e-6'), {moved}, 3)"
        yield f"count_costs._slack(F(5), {moved})"
        for epsilon in ("1/4", "2"):
            yield f"count_costs.gaussian_delta(F('{epsilon}'), F(30), {moved}, 3)"
            yield f"count_costs.shared_delta(F('{epsilon}'), (F(900), F(400)), {k}, {moved}, 3)"
            yield f"count_costs.rounded_delta(F('{epsilon}'), F({moved}, 20), {k})"
    for limit in ("F(1, 16)", "F(1, 8)", "F(1, 3)", "F(3)", "F(700)"):
        yield f"[count_costs.least_scale(lambda s: s >= {limit}, F(n)) for n in (1, 4)]"
        yield f"count_costs.least_scale(lambda s: s > {limit}, F(1))"
    yield from (f"count_costs.ripple(F('{v}'))" for v in ("1/99", "1/4", "1", "4", "32", "33"))


def about_keys() -> Iterator[str]:
    for epsilon, sigma in product(("0", "1/2", "3"), ("1/2", "3")):
        yield f"budget.gaussian_profile(ball(F('{epsilon}')), F('{sigma}'))"
    for delta in ("1e-6", "0.01"):
        yield f"budget.find_noise(F(1), F('{delta}'), F('{delta}') / 3)"
        for most, equal in product((1, 2, 30, 64, 65, 1024, 1025), (True, False)):
            yield f"budget.find_threshold(F(19), F('{delta}'), {most}, equal={equal})"
            yield f"budget._guess(20.5, 19.0, {most}, equal={equal})"
        for most in (1, 30):
            yield f"budget._slope(22.5, 19.0, {most})"
            for bound in ("_bound_equal", "_bound_any"):
                yield (
                    f"least(lambda n: budget.{bound}(F(n, 2**10), F(19), F('{delta}'), {most}), "
                    "1, 2**16)"
                )
    yield "[budget._tail(d, 4.0) for d in (-1.0, 0.0, 3.0)]"
    yield "[len(budget._spread(n)) for n in (65, 1024, 2**16)] + sorted(budget._spread(2000))[-4:]"
    yield "[budget._bound_equal(F(30), F(19), F(1, 10**6), n) for n in (1, 1024, 1025)]"
    for options in (
        "epsilon=1, delta='1e-6', per_user=1", "epsilon=1, delta='1e-6', per_user=20",
        "epsilon='0.2', delta='0.01', per_user=7", "epsilon=3, delta='1e-3', per_user=3",
    ):  # fmt: skip
        search = f"procedure.KeySearch({options})"
        yield f"[{search}, {search}._rest, {search}.plan_command, {search}.privacy(), {search}.k]"
        yield f"[{search}.single, {search}.rounds(5), {search}.prepare()]"
        for people, labels in ((30, 4), (200, 9), (400, 60)):
            made = f"ballots({people}, {labels})"
            yield f"draws(lambda c: {search}.look({made}, c))"
            yield (
                f"draws(lambda c: [[found.numbers.tolist(), found.diagnostics] for found in "
                f"[{search}.draw({made}, c)]])"
            )
        yield f"str(plan_keys({options}))"
        yield f"plan_keys({options}, success='0.3').rows"
    for tally in (
        "[0, 0, 0, 0, 0]",
        "[900, 0, 0, 0, 0]",
        "[0, 0, 9000, 300, 8]",
        "[1, 2, 3, 4, 50000]",
    ):
        made = f"type('T', (), {{'tally': lambda self, most: {tally}}})()"
        yield f"draws(lambda c: procedure.KeySearch(epsilon=1, delta='1e-6', per_user=5).look({made}, c))"
    even = "type('T', (), {'tally': lambda self, most: [0, 0, 12, 0, 5]})()"  # 16 keys² each
    yield f"draws(lambda c: procedure.KeySearch(epsilon=10**6, delta='1e-6', per_user=5).look({even}, c))"
    yield "procedure.KeySearch(epsilon=1, delta='1e-6', per_user=2**16).per_user"
    yield "procedure.KeySearch(epsilon=1, delta='1e-6', per_user=2**16 + 1)"
    yield "procedure.KeySearch(epsilon='1e-9', delta='1e-9').prepare()"
    yield "procedure.KeySearch(epsilon=10**10, delta='1e-9')"
    yield "[procedure._root(F(n, 2)) for n in (1, 3, 8, 200)]"
    for slots in (1, 5, 15, 16, 30):
        made = f"key_rounds.KeyRounds(epsilon=1, delta='1e-6', per_user=20, slots={slots})"
        yield f"[{made}.shares, {made}.looks, {made}.last, {made}.sigma, {made}._spread, {made}._passing]"
        yield f"{made}.value_keys(np.array([-5, 0, 10**5, 10**6, 2 * 10**6, 10**8]), F(6, 5)).tolist()"
        yield f"draws(lambda c: {made}.find_cut(ballots(200, 9), np.arange(9) * 10**5, c))"
        yield f"draws(lambda c: {made}.draw(ballots(300, 9), 9, c).tolist())"
    yield "plans._least(lambda n: n >= 1), plans._least(lambda n: n >= 77)"
    yield "plans._least_normal(F(24), F(19), 4, F(9, 10))"
    for people, each, most in ((40, 3, 99), (40, 3, 9), (10**6, 7, 10**7), (2**31, 5, 10**12)):
        yield f"[brief([n for n, _ in law] + [0]) + brief([p for _, p in law]) for law in [list(plans._binomial({people}, {each}, {most}))]]"
        yield f"plans._log_chance({people}, {each}, {people} // {each} + 3)"
    yield "plans._log_chance(2**30, 3, 2**28)"
    yield "plans._log_chance(2**30 - 1, 3, 2**28)"
    yield "[list(plan_keys_over((1, 3), epsilon=1, delta='1e-6').items())[1][1].cells()]"
    for options in ("epsilon=1, delta='1e-6'", "epsilon='0.2', delta='0.01'"):
        made = f"one_key_each.OneKeyEach({options})"
        counted = "type('S', (), {'count_chosen': lambda self, most: np.array([0, 1, 9, 9, 13, 16, 40])})()"
        yield f"draws(lambda c: {made}.draw({counted}, c).tolist(), *range(8))"


def about_weights() -> Iterator[str]:
    listed = ("[(0, 3)]", "[(0, 1), (1, 4), (2, 9), (9, 2)]", "[(0, 0), (4, 7), (90, 10**15)]")
    for each, rate in product(listed, ("F(1, 7)", "F(2)")):
        yield f"weights.block_weights({each}, {rate})"
        yield f"weights.block_shares({rate}, {each})"
        yield f"weights._look({each}, {rate})"
        yield f"draws(lambda c: [weights.draw_block({each}, {rate}, c) for _ in range(9)])"
    yield "weights._look([(0, 2**64 - 1)], F(1))"
    yield "weights._look([(0, 2**64)], F(1))"
    yield "weights._look([(0, 0)], F(1))"
    yield "[len(weights._look([(n, 1) for n in range(size)], F(1, 10**6))[0]) for size in (1000, 1001)]"
    yield "[len(weights._look([(0, 1)], F(2) ** n)[0]) for n in (-401, -400, 400, 401)]"
    yield "weights._look([(n, 1) for n in range(99)], F(1))"
    for scale, mass in product(("F(1)", "F(19, 3)"), ("F(1)", "F(1, 10**9)", "F(10**9)")):
        yield f"weights.clip_width({scale}, {mass})"
    for name, kind in product(("flat", "coarse", "tied"), ("add-remove", "replace")):
        yield f"weights.closed_view({name}, F(1), '{kind}')[1:]"
        yield f"weights.closed_view({name}, F(1), '{kind}', 4)[1:]"
    yield "weights.log_last(lambda: [arb(3), arb(1) / 3])"
    yield "weights.shares(lambda: [arb(1), arb(3).sqrt(), arb(0)])"
    yield "weights.round_chances(lambda: [arb(1) / 3, arb(2).sqrt() / 2])"
    for k, guard in product((1, 3, 12), ("-math.inf", "-2.0", "3.0", "math.inf")):
        for each in ("[(0, 1), (5, 1)]", "[(0, 2), (1, 9), (4, 40), (9, 10**6)]"):
            yield f"arrivals.expected_draws({each}, F(1, 3), {k}, guard={guard}, first=1)"
    yield "arrivals.expected_draws([(0, 10**9), (400, 5)], F(1), 60, guard=-math.inf, first=2)"
    yield "arrivals.expected_draws([], F(1), 60, guard=0.0, first=2)"
    for name, best in product(("flat", "open", "tied"), (1, 3)):
        yield (
            f"[arrivals.expected_peeling(window, window.blocks()[:3], F(1, 4), 4, {best}, "
            f"guard=-3.0) for window in [{name}.window(20)] if {name} is not open]"
        )
    some = "arrivals._Race(np.array([0.0, -1.0, -9.0]), np.array([1.0, 4.0, 1e6]))"
    yield f"{some}.start()"
    yield f"[str({some}.during(a, a + w)) for a in (-60.0, -9.0, 0.0, 2.0, 5.0, 20.0) for w in (1.0, 9.0)]"
    rung = "np.exp(np.array([[-3.0, -4.0, -9.0], [0.0, -1.0, -5.0], [2.0, 1.0, -3.0]]))"
    for numbers, k in product(
        ("np.array([1.0, 4.0, 90.0])", "np.array([5.0, 1e4, 1e7])"), (1, 4, 40)
    ):
        yield f"arrivals._chance_fewer({rung}, {numbers}, {k})"
        yield f"arrivals._flow({rung}, {numbers}, {k}, 2)"
        yield f"arrivals._count({rung}, {numbers}, {k}, 2)"
    for number, bound in ((1, 1), (5, 3), (5, 9), (10**6, 40)):
        yield f"brief(arrivals._binomial({number}, np.array([0.001, 0.3]), {bound}))"
    for bound in (3, 4, 9):
        yield (
            "arrivals._add(np.arange(1.0, 13.0).reshape(2, 2, 3), "
            f"np.arange(1.0, 5.0).reshape(2, 2), {bound})"
        )


def about_cells() -> Iterator[str]:
    small = (
        "[(0, 1), (5, 2)], 1",
        "[(0, 2), (1, 3), (4, 4)], 4",
        "[(0, 1), (1, 1), (2, 1), (7, 5)], 3",
    )
    large = (
        "[(n, 1 + n % 3) for n in range(120)], 60", "[(n * n, 1) for n in range(200)], 30",
        "[(3 * n, 2000) for n in range(90)], 50_000", "[(n, 1) for n in range(400)], 399",
    )  # fmt: skip
    for each, rates in product(small, ("F(1), F(1)", "F(1, 5), F(2, 3)")):
        made = f"cells.Cells({each}, {rates})"
        yield f"[{made}.prefixes, {made}.reaches, {made}.width, {made}.has_look, {made}.error]"
        yield f"[[p, row.tolist()] for p, row in {made}.chances()]"
        yield f"[{made}.numbers(), {made}.total(), {made}.last(), {made}._falls]"
        yield f"[{made}._rows(), {made}._row(0), {made}._row(1)]"
        yield f"[brief(part) for part in (*{made}._logs, {made}._log_rows(), *{made}._raw_logs)]"
        yield f"[{made}._cut, {made}._bound(9.0), {made}._look.error, {made}._look.middle]"
        yield f"draws(lambda c: [{made}.draw(c) for _ in range(6)])"
    for each in large:
        made = f"cells.Cells({each}, F(1, 30), F(1, 90))"
        yield f"[{made}.has_look, {made}.error, {made}._cut, brief({made}._log_rows())]"
        yield f"[brief({made}._log_row(3)), {made}._look.total, {made}._last_look]"
        yield f"[{made}.total(), {made}.last(), brief({made}.numbers())]"
        yield f"draws(lambda c: {made}.draw(c), *range(6))"
    yield "[cells.is_large(size, width) for size, width in ((63, 126), (63, 125), (10, 220), (1, 2049))]"
    yield "[cells.choices(n, m) for n, m in ((5, 3), (2**63, 2), (2**63 - 1, 2), (9, 0))]"
    yield "[[(part.start, part.stop) for part in cells._split(n)] for n in (1, 2, 10)]"
    yield "cells._log_choices(np.array([5.0, 511, 512, 513, 9e5]), np.array([2.0, 200, 200, 1, 3e5])).tolist()"
    yield "cells._log_factorial(np.array([0.0, 5, 511, 512, 1e6])).tolist()"
    yield "[brief(cells._log_factorials(n)) for n in (512, 1024)]"
    yield "cells._series(np.array([256.0, 1e4])).tolist()"
    yield "cells._floats(np.array([5, 2**600], object)).tolist()"
    yield "cells._log_falls(np.array([1e-9, 1.0, 900.0])).tolist()"
    yield "[cells._log_sum(np.array([-1.0, -3.0, -900.0])), cells._shares(np.array([-1.0, -3.0])).tolist()]"
    yield "draws(lambda c: [cells._draw_place(np.array([1.0, 2.0, 0.5]), 1e-12, lambda: [arb(2), arb(4), arb(1)], c) for _ in range(9)])"
    yield "draws(lambda c: [cells._draw_place(np.array([1.0, 2.0, 0.5]), 0.1, lambda: [arb(2), arb(4), arb(1)], c) for _ in range(9)])"
    yield "cells.Cells([(0, 1), (2**600, 2)], 1, F(1), F(1)).numbers()"
    yield "[cells.Cells([(0, 70), (3, 80 + n)], 70, F(2) ** rate, F(1)).has_look for n in (0, 2**54) for rate in (-401, -400, 400, 401)]"


PURE = ("epsilon=1", "epsilon='0.3', neighbors='replace'")
PAIRS = ("epsilon=1, delta='1e-6'", "epsilon='0.3', delta='0.01', neighbors='replace'")
RANKED = (*PURE, "epsilon=2, k=3", "epsilon=1, delta='1e-6', k=3")
MECHANISMS = {
    "Exponential": RANKED,
    "PermuteAndFlip": RANKED,
    "MaxOfLaplaces": PURE,
    "LimitedDomain": (*(f"{pair}, rank=3" for pair in PAIRS), "epsilon=2, delta='0.01', rank=5, k=2",
                      "epsilon=2, delta='0.01', rank=5, k=2, growth=2"),
    "LargeMargin": (*(f"{pair}, cap=9" for pair in PAIRS),
                    "epsilon=1, delta='0.01', cap=9, constants='paper'"),
    "LargeMarginTruncated": ("epsilon=1, delta='0.01', cap=9",),
    "SharpMargin": (*PAIRS, "epsilon=1, delta='1e-6', growth=2", "epsilon=2, delta='0.01', k=2"),
    "NestedMargin": (*PAIRS, "epsilon=1, delta='1e-6', growth=2", "epsilon=1, delta='0.01', ranks=(1, 3)"),
    "StableMaximum": PAIRS,
    "GapTest": (*PAIRS, "epsilon=1, delta='0.01', k=2", "epsilon=1, delta='0.01', k=2, ranked=True"),
    "Choosing": ("epsilon=1, delta='1e-6', growth=1", "epsilon='0.3', delta='0.01', growth=3"),
    "SetMargin": (*PAIRS, "epsilon=1, delta='1e-6', k=3", "epsilon=2, k=2"),
    "RankedMargin": ("epsilon=1, delta='1e-6', k=3", "epsilon=1, delta='0.1', k=2, growth=1",
                     "epsilon=2, k=2, neighbors='replace', share='0.4'"),
    "JointExponential": ("epsilon=1, k=2", "epsilon='0.5', k=3, neighbors='replace'"),
}  # fmt: skip


def about_mechanisms() -> Iterator[str]:
    for name, all_options in MECHANISMS.items():
        for options in all_options:
            made = f"{name}({options})"
            closed = ["flat", "steep", "tied", "coarse", "far", "small"]
            profiles = [*closed, "open"] if "delta" in options else closed
            yield f"[{made}.privacy(), {made}.k, {made}.ranked, {made}.bounded_range, {made}.growth]"
            for data in profiles:
                yield f"{made}.law({data})"
                if "k=" not in options:
                    yield f"draws(lambda c: {made}.draw({data}, c))"
                    if not name.startswith("LargeMargin") or data in ("small", "tied"):
                        yield f"{{str(key): law for key, law in {made}.joint({data}).items()}}"
                elif name != "GapTest":
                    yield f"{made}.expect({data}, 2)"
                methods = dir(NAMES[name])
                for method in ("ranking", "subset"):
                    if method in methods:
                        yield f"draws(lambda c: {made}.{method}({data}, c))"
                for method in ("sequences", "sets"):
                    if method in methods and data != "far":
                        yield f"{made}.{method}({data})"
    for options in (
        "epsilon=1",
        "epsilon='0.5', sensitivity=2, monotone=True",
        "epsilon=1, share='0.4'",
    ):
        made = f"above_threshold.AboveThreshold({options})"
        yield f"[{made}.privacy(), {made}.share, {made}.shared_scale, {made}.query_scale]"
        yield f"{made}.law([-9, -3, (2, 5), 30])"
        yield f"draws(lambda c: {made}.draw([-30, -9, -3, -3, 2, 30, 80], c), *range(8))"
        yield f"[{made}._chance(n) for n in (-4, 0, 3)]"
        yield f"[{made}._ratio(n, m) for n in (-4, 0, 3) for m in (-2, 5)]"
        yield f"[{made}._rate(n) for n in (-4, 0, 3)]"
    for options in ("epsilon=1, delta='1e-6'", "epsilon='0.3', delta='0.01'"):
        made = f"propose_test_release.DistanceTest({options})"
        yield f"[{made}.threshold(), [{made}.law(n) for n in (0, 1, 9, 60)]]"
        yield f"draws(lambda c: [{made}.draw(n, c) for n in (0, 1, 9, 14, 60)])"
        made = f"propose_test_release.ProposeTestRelease({options}, bound=3)"
        yield f"[{made}.scale, {made}.test, {made}.privacy(), {made}.law(5, 40)]"
        yield f"draws(lambda c: [{made}.draw(5, n, c) for n in (0, 1, 9, 40, 90)])"
        made = f"max_of_truncated.MaxOfTruncated({options}, near=3)"
        for name in ("flat", "coarse"):
            yield f"{made}.law({name}.window(60))"
            yield f"draws(lambda c: {made}.draw({name}.window(60), c), *range(6))"
        yield f"[{made}.margin(), {made}.cut(), {made}._rate(3)]"
    yield "max_of_truncated.rarity(F(1), F(1, 10**6), 3)"
    for options in ("epsilon=1, near=3", "epsilon='0.3', near=2, neighbors='replace'"):
        made = f"restricted_exponential.RestrictedExponential({options})"
        yield f"[{made}.law(flat.window(60)), {made}.margin('1e-6'), {made}._rate(3)]"
        yield f"draws(lambda c: {made}.draw(flat.window(60), c), *range(6))"
    for options in ("epsilon=1", "epsilon='0.2'"):
        made = f"noisy_maximum.NoisyMaximum({options})"
        yield f"[{made}.scale(3), {made}.law(flat)]"
        yield f"draws(lambda c: {made}.draw(flat, c))"
    yield "[brief(one) for one in noisy_maximum.noise_law(F(7, 3))]"
    for options in (PAIRS[0], "epsilon=4, delta='0.01', neighbors='replace'"):
        test = f"GapTest({options})"
        yield f"[[{test}.chance(n) for n in range(9)], {test}.certain(), gap_test._turn({test})]"
        large = f"LargeMargin({options}, cap=9)"
        for part in ("threshold", "margin"):
            yield f"[{large}.{part}(rank, unit) for rank in (1, 2, 7) for unit in (1, 3)]"
        yield f"[{large}.paper_constants(rank) for rank in (1, 2, 7)]"
        yield f"[{large}._margin_tail(2, 1), {large}._rising_tail(2, 1), {large}._maximum()]"
        yield f"[{large}._stage_epsilon, {large}._stage_delta, {large}._spread()]"
        yield "large_margin._rising_ends(F(1), F(1, 100), 12, 1)"
        nested = f"NestedMargin({options})"
        yield f"[{nested}.levels(n) for n in (None, 1, 2, 40, 10**6)]"
        yield f"[{nested}._delta(40), {nested}.draw_epsilon, nested_margin._width({nested}, 40, 2)]"
        yield f"[nested_margin._guards({nested}, 40, 128)[:3], nested_margin._room(F(1))]"
        sharp = f"SharpMargin({options})"
        yield f"[{sharp}.options(n) for n in (None, 1, 2, 40, 10**6)]"
        yield f"[{sharp}.draw_epsilon, {sharp}._guard_delta, sharp_margin._width({sharp}, 40, 2)]"
        yield f"sharp_margin._handicaps({sharp}, 40, 128)[:3]"
        made = f"SetMargin({options.split(', neighbors')[0]}, k=4)"
        yield f"[{made}.cascade(n) for n in (None, 5, 40)]"
        yield f"[{made}.budgets(n) for n in (None, 5, 40)]"
        yield f"{made}.lengths(flat, 2)"
        yield f"Choosing({options.split(', neighbors')[0]}, growth=2).threshold(3)"
    for name in registry.MECHANISMS:
        entry = f"registry.MECHANISMS['{name}']"
        yield f"[{entry}.requires, sorted({entry}.example_options()), {entry}.pure, {entry}.needs_closed]"
        yield f"[{entry}.for_lists, {entry}.abstains, {entry}.slow, {entry}.make_example()]"
        yield f"[registry.registered_name({entry}.make_example()), {entry}.companions]"
        for size in (None, 1, 5, 10**6):
            if size is not None or "delta" in registry.MECHANISMS[name].example:
                yield f"{entry}.last_draw and {entry}.last_draw({entry}.make_example(), {size})"
        for given in ("k=1", "k=2", "neighbors='add-remove'", "ranked=True", "delta=0", "growth=2"):
            yield f"registry.build('{name}', epsilon=1, {given})"
    yield "[registry.names_requiring(name) for name in ('rank', 'growth', 'k', 'delta')]"
    yield "stored_leads.LEADS"
    for epsilon, delta in (("1", "1e-6"), ("F(1, 10)", "1e-9"), ("3", "0.5")):
        yield f"stored_leads.find_lead('large-margin', F({epsilon}), F('{delta}'))"
    for steps_of in (0, 1, 5, 30):
        yield f"gap_test.soft_chances({steps_of}, F(1), F(1, 100), F(1, 5))"
    yield "gap_test._soft_turn(F(1), F(1, 100), F(1, 5))"
    for k, epsilon in product((1, 2, 3, 7, 40), ("F(1, 10)", "F(1)", "F(20)")):
        yield f"stages.default_stages({k}, {epsilon})"
    yield "[stages._silence(n) for n in range(7)]"
    yield "stages.Stage(3, 2, silence=1)"
    yield "stages.Stage(2, 2, silence='1.5')"
    yield "[guards.slips(rank, growth, kind) for rank in (1, 4) for growth in (None, 1, 9) for kind in ('add-remove', 'replace')]"
    yield "guards.guard_weight(flat.window(40), 3, 2, rate=F(1, 2), epsilon=F(1), delta=F(1, 100), floor=None)"
    yield "guards.guard_weight(flat.window(40), 3, 2, rate=F(1, 2), epsilon=F(1), delta=F(1, 100), floor=0)"
    yield "[guards.guard_width(F(1), F(1, 100), rank, 2) for rank in (1, 3)]"
    for number, size in ((5, 0), (5, 2), (5, 5), (10**6, 3)):
        yield f"draws(lambda c: sets.uniform_subset({number}, {size}, c))"
    yield "list(set_margin._combinations([2, 1, 3], 3))"
    yield "[set_margin._ways([2, 1, 3], taken) for taken in ([1, 1, 1], [0, 0, 3], [2, 0, 2])]"
    yield "[set_margin._share(2, 9, 4, n) for n in range(3)]"
    yield "[set_margin._odds(few, 9, 4) for few in (0, 1, 5)]"
    yield "[set_margin._log_choices(n, m) for n, m in ((9, 4), (10**9, 3), (5, 0))]"
    lists = "joint_exponential._Lists([(0, 2), (3, 1), (5, 6)], 3)"
    yield f"[{lists}.weights(F(1, 3)), {lists}.first_weights(F(1, 3)), {lists}.bound_weights(F(1, 3))]"
    yield f"[{lists}.within(depth) for depth in (0, 3, 5, 9)]"
    yield f"[{lists}.size(places) for places in ((0, 0, 1), (2, 2, 2), (1, 0, 2))]"
    yield f"[{lists}.shortfall(places) for places in ((0, 0, 1), (2, 2, 2), (1, 0, 2))]"
    yield f"draws(lambda c: [{lists}.first_short(n, c) for n in (0, 3, 5)])"
    yield "draws(lambda c: [joint_exponential._another(0, 9, (2, 4), c) for _ in range(6)])"
    yield "peeling.round_and_guard(F(1), F(1, 10**6), 5)"
    yield "relative.RelativeLaplace(scale=2).weigh(3), ranked_margin._chance_sorted([9, 5, 5], relative.RelativeLaplace(scale=2))"
    yield "brief(ranked_margin._weigh_all(relative.RelativeLaplace(scale=2)))"
    yield "ranked_margin.balanced_share(F(2), F(1, 100), 4, neighbors='replace', growth=2)"
    yield "[ranked_margin.balanced_share(F(100), F(1, 1000), k) for k in (1000, 1001)]"


def about_learning() -> Iterator[str]:
    options = (
        "epsilon=1, delta='1e-6'", "epsilon=2, delta='0.01', rounds=6, pairs=2",
        "epsilon=3, rounds=4, neighbors='replace'", "epsilon=1, rounds=5, pairs=1, order='cyclic'",
        "epsilon=2, delta='1e-4', rounds=5, neighbors='replace'",
        "epsilon=1, delta='1e-4', rounds=3, accounting='pld'",
    )  # fmt: skip
    for given in options:
        for kind in ("rounds.AdditiveRounds", "rounds.CalibratedRounds", "terms.RegressorRounds"):
            made = f"{kind}({given})"
            yield f"[{made}.single, {made}.double, {made}.tallies, {made}.tally, {made}.rho]"
            yield (
                f"[{made}.counts, {made}.singles, {made}.doubles]"
                if "pairs" in given
                else (f"[{made}.counts, {made}.singles]")
            )
            yield f"[{made}.privacy(), {made}.check(), [{made}.counts.spread(), {made}.singles.residuals.spread()]]"
            yield f"{made}.program()"
            if "Regressor" in kind:
                yield f"{made}.stages()"
                intervals = f"terms.RegressorRounds({given}, intervals=True, loss='absolute')"
                yield f"[{intervals}.tallies, {intervals}.single]"
                for cells_of, rows in (((5, 3, 2), 90), ((12, 2), 2000)):
                    layout = f"fitting.CellLayout({cells_of}, (True, False, True)[:{len(cells_of)}], (None, None, 1)[:{len(cells_of)}])"
                    for each in (made, intervals):
                        yield f"draws(lambda c: errors.fit_errors(numbered({cells_of}, {rows}), {layout}, {each}, c), 1)"
            else:
                for cells_of, rows in (((5, 3, 2), 90), ((12, 2), 2000), ((4, 9, 3), 700)):
                    layout = f"fitting.CellLayout({cells_of}, (True, False, True)[:{len(cells_of)}], (0, None, None)[:{len(cells_of)}])"
                    yield f"draws(lambda c: fitting.fit_rounds(examples({cells_of}, {rows}), {layout}, {made}, c), 1)"
    for epsilon in ("'1e-30'", "10**9", "'1e-6'"):
        yield f"rounds.AdditiveRounds(epsilon={epsilon}, delta='1e-6').check()"
        yield f"rounds.AdditiveRounds(epsilon={epsilon}).check()"
    yield "rounds.AdditiveRounds(epsilon=1, accounting='pld')"
    yield "rounds.AdditiveRounds(epsilon=1, delta='1e-6', accounting='pld', neighbors='replace')"
    yield "[rounds.squared_sensitivity(3, kind, signed=s) for kind in ('add-remove', 'replace') for s in (True, False)]"
    yield "[rounds._gaussian(9, F(1, 7)), rounds._root(F(2)), rounds.SumNoise(scale=F(3)).spread()]"
    yield "draws(lambda c: [rounds.SumNoise(scale=F(3)).draw(5, c).tolist(), rounds.SumNoise(variance=F(30)).draw(5, c).tolist()])"
    some = "np.array([9.0, -40.0, 300.0, 2.0]), np.array([30.0, -4.0, 250.0, 9.0])"
    for links in ("steps.chain(4)", "steps.chain(4, 1)", "steps.chain(0)"):
        yield f"steps.newton_step({some}, 25.0, {links})"
        yield f"steps.newton_step({some}, 25.0, {links}, steps.Prior(0.3, 0.1, 0.5))"
        first = f"steps.carry_noise(None, np.array([30.0, -4.0, 250.0, 9.0]), 25.0, {links})"
        yield f"brief({first})"
        yield f"brief(steps.carry_noise({first}, np.array([40.0, 1.0, 9.0, 0.0]), 9.0, {links}, step=3.0, blur=4.0))"
        yield f"steps._join(np.array([1.0, 2.0, 3.0, 4.0]), {links}, 0.5)"
        yield f"[one.tolist() for one in steps._entries({links})]"
    for size in (512, 513):
        yield f"brief(steps.newton_step(np.arange({size}.0), np.ones({size}), 9.0, steps.chain({size})))"
        yield f"steps.carry_noise(None, np.ones({size}), 9.0, steps.chain({size})) is None"
    yield "steps.to_steps(np.array([-9.0, -8.0, 0.001, 0.002, 7.999, 8.0, 9.0])).tolist()"
    yield "steps.deviations(np.array([-1.0, 0.0, 4.0, 4.1])).tolist()"
    yield "[steps.chain(n, apart).tolist() for n in (0, 1, 2, 4) for apart in (None, 0, 1, 3)]"
    yield "[steps.grid(steps.chain(a), steps.chain(b), (3, 2)).tolist() for a in (0, 3) for b in (0, 2)]"
    yield "[brief(one) for one in (link.CHANCES, link.RESIDUALS, link.CURVATURES)]"
    yield "link.bin_labels(np.arange(len(link.LOGISTIC.residuals))).tolist()"
    yield "[[brief(one.residuals), brief(one.curvatures), one.pull, one.bend, one.step, one.offset] for one in (targets.error_link(100, 1.25), targets.error_link(3, 0.1), link.LOGISTIC)]"
    yield "targets.error_link(100, 1.25).places(np.array([-3000, 0, 5]), np.array([9, 0, -700])).tolist()"
    yield "[targets.bin_errors(np.arange(targets.PLACES), spread).tolist() for spread in (1, 100, 512)]"
    yield "targets.place_targets(np.array([0, 1, 2, 1024])).tolist()"
    for loss, spread in product(("squared", "absolute"), (4, 100, 512)):
        given = f"terms.RegressorRounds(epsilon=1, delta='1e-6', loss='{loss}')"
        yield f"errors.describe_errors((np.arange(32) % 7) * 100_000, {spread}, {given})"
        yield f"errors.describe_errors(np.arange(32) - 15, {spread}, {given})"
    yield "errors.shrink(np.array([-9.0, 30.0, 90.0, 4.0]), 400.0)"
    for cells_of, most in (((5, 3), 2), ((9, 9), 4), ((20, 1), 8)):
        layout = f"fitting.CellLayout({cells_of}, (True, False), (2, None))"
        yield (
            f"[{layout}.groups({most}), {layout}.singles()]"
            if min(cells_of) > 2
            else (f"{layout}.singles()")
        )
        yield f"[{layout}.links(part).tolist() for part in {layout}.singles()]"
        yield f"[{layout}.links(part).tolist() for part in {layout}.doubles([0, 1], {layout}.groups(3))]"
    yield "[len(fitting.CellLayout((2,) * n, (True,) * n, (None,) * n).doubles([0, 1, 4], [(0, 1)] * n)) for n in (100, 101)]"
    yield "[groups.join_cells(n, m) for n, m in ((5, 2), (2, 2), (3, 2), (9, 4))]"
    yield "groups.merge_cells([5, -90, 7, -88, 6, 50, 51], [9, 1, 30, 9, -4, 2, 70], 3)"
    yield "[groups.group_number([np.array([n])], 2, 100.0) for n in (20_000, 20_001)]"
    for columns, tests in ((1, 1), (2, 5), (14, 290), (100, 2048), (101, 2048), (100, 2049)):
        facts = f"choice.Facts(columns={columns}, tests={tests})"
        yield f"[{facts}.members(), [{facts}.quick(10**n) for n in (3, 5, 6, 7, 9)]]"
        for pure, counted in product((True, False), (True, False)):
            yield (
                f"[least(lambda n: choice.decide({facts}, n, F(1), pure={pure}, counted={counted}) "
                f"not in choice.MEMBERS[:place], -1, 10**5) for place in range(1, 5)]"
            )
    made = "examples((4, 3, 2), 500)"
    yield f"[one.tolist() for one in counting.count_labels({made}, fitting.CellLayout((4, 3, 2), (True,) * 3, (None,) * 3).singles())]"
    yield f"[{made}.labels(), brief({made}.tally())]"
    schema = "Schema(a=Number(0, 9, cells=4), b=Number(0, 9, cells=3), c=Number(0, 9, cells=2))"
    counted = f"counting.Tables({made}, {schema}, doubles=True)"
    yield f"[{counted}.totals().tolist(), {counted}.below().tolist(), {counted}.below_both().tolist()]"
    yield f"[[one.tolist() for one in {counted}.grid(*both)] for both in product(range(3), repeat=2)]"


ABOUT = (
    about_noise, about_races, about_losses, about_composition, about_repetition, about_counts,
    about_keys, about_weights, about_cells, about_mechanisms, about_learning,
)  # fmt: skip

PART = 12
"""So many values are one test: quick ones, so that each tells what changed."""

CASES: dict[str, list[str]] = {}
for about in ABOUT:
    listed = list(dict.fromkeys(about()))
    for begin in range(0, len(listed), PART):
        part = f"{about.__name__.removeprefix('about_')} {begin // PART}"
        CASES[part] = listed[begin : begin + PART]


LONG = 24
"""Of what is longer only a part is kept, and sums over all of it."""


def brief_list(listed: Any) -> list[Any]:
    """The same of a list, whatever it is made of: numbers in it are added up."""
    flat = list(numbers_in(listed))
    return [len(listed), *listed[:4], *listed[-4:], brief(np.array(flat, float))]


def numbers_in(value: Any) -> Iterator[float]:
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from numbers_in(one)
    elif isinstance(value, arb):
        yield float(value.mid())
    elif isinstance(value, (int, float, Fraction)):
        yield float(value)


def written(value: Any) -> Any:
    """A value as JSON has it: whole numbers and fractions exactly, balls by their middle."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, Fraction, np.integer, np.bool_)):
        return str(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else f"float {value}"
    if isinstance(value, arb):
        return {"ball": value.mid().str(20, radius=False)} if value.is_finite() else "infinite ball"
    if isinstance(value, np.ndarray):
        return (
            [written(one) for one in brief(value)]
            if value.size > LONG
            else [written(one) for one in value.tolist()]
        )
    if isinstance(value, (Law, JointLaw)) or dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return [type(value).__name__, *(written(getattr(value, one.name)) for one in fields)]
    if isinstance(value, Mapping):
        return [*map(written, list(value.items())[:LONG]), written([*value.values()])]
    if isinstance(value, (list, tuple, range)):
        shown = value if len(value) <= LONG else brief_list(value)
        return [written(one) for one in shown]
    return repr(value)


def compute(expression: str) -> Any:
    with precision(128), np.errstate(all="ignore"):
        try:
            return written(eval(expression, NAMES))
        except privmax.ParameterError as problem:
            return f"ParameterError: {problem.name}"


def is_same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = (Fraction(Decimal(each["ball"])) for each in (one, other))
        return abs(left - right) <= Fraction(1, 10**17) * abs(left)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=DIGITS, abs_tol=1e-290)
    return bool(one == other)


def test_all_that_is_stored_is_computed():
    assert list(read_stored(STORED)) == [one for part in CASES.values() for one in part]


@pytest.mark.parametrize("part", CASES)
def test_numbers_are_what_they_were(part):
    stored = read_stored(STORED)
    changed = {
        one: (stored[one], found)
        for one in CASES[part]
        if not is_same(found := compute(one), stored[one])
    }
    assert changed == {}


def test_a_number_that_is_a_little_off_is_seen():
    assert is_same(written([1.0, Fraction(1, 3)]), written([1.0 + 1e-14, Fraction(1, 3)]))
    assert not is_same(written(1.0), written(1.0 + 1e-9))
    assert not is_same(written(Fraction(1, 3)), written(Fraction(1, 3) + Fraction(1, 1 << 60)))
    assert not is_same(written([1, 2]), written([1, 2, 3]))
    many = [0.5] * 100
    assert not is_same(written(many), written([*many[:50], 0.5 + 1e-6, *many[51:]]))
    assert not is_same(written(arb(1) / 3), written(arb(1) / 3 + arb((1, -50))))


if __name__ == "__main__":
    rows = {one: compute(one) for part in CASES.values() for one in part}
    store_rows(STORED, rows)
