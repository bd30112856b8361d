"""Costs, noise, leads and laws, compared with stored ones.

They are functions of public numbers, and what a ledger recorded was charged by them: a change of
the code that moves one must be seen, whichever way it goes. Where one is to change,

    python tests/golden/test_public_numbers.py

stores all of them again: read the difference, and say in CHANGELOG.md what is new.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

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
from privmax.keyset import budget, procedure, rounds
from privmax.mechanisms import ranked_margin, set_margin, stages, stored_leads
from privmax.noise import balls, tails
from privmax.noise.balls import precision
from privmax.planning import lower_bounds, theory
from privmax.privacy import Privacy
from privmax.profile import Profile

sys.path.append(str(Path(__file__).parent))

from stored_rows import read_stored, store_rows

STORED = Path(__file__).parent / "stored" / "public_numbers.json"

NAMES: dict[str, Any] = {
    "F": Fraction,
    "Privacy": Privacy,
    "stored_leads": stored_leads,
    "flat": Profile([(30, 1), (27, 3), (12, 2)], universe=40),
    "steep": Profile([(80, 1), (33, 2), (4, 9)], universe=500),
    "open": Profile([(41, 2), (30, 1), (9, 4)]),
    **{name: getattr(privmax, name) for name in privmax.__all__},
}
for module in (
    accounting, balls, budget, composition, count_costs, counts, losses, one_key_each, procedure,
    ranked_margin, relative, repetition, rounds, set_margin, stages, tails, theory,
    lower_bounds,
):  # fmt: skip
    NAMES |= {name: value for name, value in vars(module).items() if not name.startswith("__")}

PURE = ("epsilon=1", "epsilon='0.3', neighbors='replace'")
PAIRS = (
    "epsilon=1, delta='1e-6'",
    "epsilon='0.3', delta='0.01', neighbors='replace'",
    "epsilon=4, delta='1e-9'",
)
CLOSED = {
    "Exponential": PURE,
    "PermuteAndFlip": PURE,
    "MaxOfLaplaces": PURE,
    "LimitedDomain": tuple(f"{pair}, rank=3" for pair in PAIRS),
    "LargeMargin": (PAIRS[1], "epsilon=1, delta='1e-6', cap=7"),
    "SharpMargin": PAIRS,
    "NestedMargin": PAIRS,
    "StableMaximum": PAIRS,
    "GapTest": PAIRS,
    "Choosing": ("epsilon=1, delta='1e-6', growth=1", "epsilon='0.3', delta='0.01', growth=3"),
    "SetMargin": (*PAIRS, "epsilon=1, delta='1e-6', k=3", "epsilon=2, k=2"),
    "RankedMargin": ("epsilon=1, delta='1e-6', k=3", "epsilon=1, delta='0.1', k=2, growth=1"),
    "JointExponential": ("epsilon=1, k=2", "epsilon='0.5', k=3"),
}


def expressions() -> Iterable[str]:
    for name, all_options in CLOSED.items():
        for options in all_options:
            made = f"{name}({options})"
            yield from (f"{made}.law({data})" for data in ("flat", "steep"))
            if hasattr(NAMES[name], "expect"):
                yield from (f"{made}.expect({data}, 2)" for data in ("flat", "steep"))
            yield from (
                f"{made}.lead({where})"
                for where in (
                    "candidates=40", "candidates=1000", "candidates=40, near=5",
                    "candidates=40, success='0.5'", "candidates=None",
                )
            )  # fmt: skip
            if "delta" in options:
                yield f"{made}.law(open)"
            if name in ("Choosing", "ProposeTestRelease"):
                yield f"{made}.threshold()"
            if name == "LargeMargin":
                yield from (f"{made}.threshold({rank})" for rank in (1, 2, 7))
            if name == "RankedMargin":
                yield from (f"{made}.apart()", f"{made}.used_share()")
    yield "stored_leads.LEADS"  # computing them takes minutes
    yield from ("balanced_share(F(1), F(0), 3)", "RankedMargin(epsilon=2, k=3).members")
    yield from (f"balanced_share(F(1), F(1, 10**6), {k})" for k in (2, 7, 1000, 1001))
    for epsilon, delta in (("1", "1e-6"), ("0.25", "0.01"), ("6", "1e-12")):
        pair = f"F('{epsilon}'), F('{delta}')"
        cost = f"Privacy('{epsilon}', '{delta}')"
        for number in (1, 3, 50):
            yield f"per_round({pair}, {number}, bounded_range=True)"
            yield f"per_round({pair}, {number}, bounded_range=False)"
            yield f"price({number}, {pair}, bounded_range=True)"
            yield f"price({number}, {pair}, bounded_range=False)"
            yield f"price_by_range({number}, {pair})"
            yield f"price_by_concentration({number}, {pair})"
            yield f"find_sigma({cost}, {number}, 2)"
            yield f"find_shared({cost}, {number + 1}, {number}, 1)"
            for kind in ("add-remove", "replace"):
                yield f"find_relative({cost}, {number + 1}, {number}, 1, '{kind}')"
                yield f"choose_noise({cost}, k={number}, neighbors='{kind}')"
                yield f"choose_noise({cost}, k=80, growth={number}, neighbors='{kind}')"
                yield f"choose_noise({cost}, k={number}, neighbors='{kind}').noise.error()"
                yield f"choose_order_noise({cost}, k={number + 1}, neighbors='{kind}')"
        yield from (f"epsilon_of_rho({epsilon}, '{delta}')", f"largest_rho({epsilon}, '{delta}')")
        yield f"find_noise({pair}, F('{delta}') / 3)"
        for most in (1, 2, 30, 65, 1025):
            yield f"find_threshold(F('{epsilon}') * 9, F('{delta}') / 4, {most}, equal=True)"
            yield f"find_threshold(F('{epsilon}') * 9, F('{delta}') / 4, {most}, equal=False)"
        yield f"plan_keys(epsilon={epsilon}, delta='{delta}', per_user=20).rows"
        yield f"plan_keys(epsilon={epsilon}, delta='{delta}', per_user=1, success='0.5').rows"
        for slots in (3, 15, 16):
            keys = f"KeyRounds(epsilon={epsilon}, delta='{delta}', per_user=20, slots={slots})"
            yield from (f"{keys}.looks", f"{keys}.last", f"{keys}.sigma", f"{keys}._spread")
        yield f"OneKeyEach(epsilon={epsilon}, delta='{delta}').test.certain()"
        yield f"[GapTest(epsilon={epsilon}, delta='{delta}').chance(n) for n in range(9)]"
        program = f"rounds=[(F('{epsilon}') / 20, 7)], gaussians=[(1, F(300), 4), (2, F(900), 2)]"
        yield f"Program({program}).epsilon('{delta}')"
        yield f"Program({program}).epsilon_by_losses('{delta}')"
        yield f"Program({program}, rest='0.01').rho()"
        yield f"response_epsilon({{3: 7, 8: 2}}, F('{epsilon}') / 50, F('{delta}'))"
        for law in ("'geometric'", "'logarithmic'", "'poisson'", "'-1/2'", "3"):
            runs = f"random_runs({law}, 12)"
            yield from (runs, f"{runs}.hit('0.1')", f"{runs}.tail(30)", f"{runs}.mean()")
            yield f"repetition_cost(RunCost(F('{epsilon}') / 4, 0), {runs})"
            yield f"repetition_cost(RunCost(rho=F('{epsilon}') / 40), {runs}, '{delta}')"
            yield (
                f"repetition_cost(RunCost(F('{epsilon}') / 4, F('{delta}') / 500), {runs}, "
                f"'{delta}')"
            )
            yield f"repetition_cost(RunCost(F('{epsilon}') / 4), {runs}, '{delta}', 400)"
            yield f"concentrated_cost(RunCost(rho=F('{epsilon}') / 40), {runs})"
        yield f"large_margin_gap(near=3, epsilon={epsilon}, delta='{delta}')"
        yield f"large_margin_lead(candidates=40, epsilon={epsilon}, delta='{delta}')"
        yield f"certified_margin(4, epsilon={epsilon}, delta='{delta}')"
        yield f"search_threshold(4, epsilon={epsilon}, delta='{delta}')"
        yield f"least_lead(candidates=40, epsilon={epsilon}, delta='{delta}')"
        yield f"exponential_error(candidates=40, epsilon={epsilon})"
        yield f"permute_and_flip_error(candidates=40, epsilon={epsilon})"
    for noise in (
        "DiscreteLaplace(scale='2.5')", "DiscreteLaplace(scale=7, step='0.5')",
        "DiscreteGaussian(sigma='2.5')", "DiscreteGaussian(sigma=7, step='0.5')",
        "SharedGaussian(sigma='2.5', shared=2)", "RelativeLaplace(scale='2.5')",
        "RelativeGaussian(sigma='2.5')", "RelativeGaussian(sigma=7, step='0.5')",
    ):  # fmt: skip
        yield from (f"{noise}.tail({least})" for least in (-3, 0, 1, 12))
        yield from (f"{noise}.chance({steps})" for steps in (0, 4))
        yield from (f"{noise}.error()", f"{noise}.error('0.5')")
        if noise.startswith("Relative"):
            yield from (f"{noise}.reach", f"{noise}.weigh(3)")
    for least in (-2, 0, 1, 5, 40):
        yield f"laplace_tail(F(7, 3), {least})"
        yield from (f"gaussian_tail(F({variance}), {least})" for variance in ("1, 9", "7", "9000"))
        yield f"gaussian_sum(F(7), {least})"
        yield f"normal_tail(ball(F({least}, 4)))"
    yield from (f"ripple(F({variance}))" for variance in ("1, 4", "1", "40"))


def written(value: Any) -> Any:
    """A value as JSON has it; numbers in floats."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, arb):
        value = value.mid()
    if isinstance(value, (int, float, Fraction, arb)):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if isinstance(value, privmax.mechanisms.contract.Law):
        return [written([block[2] for block in value.blocks]), written(value.none)]
    if isinstance(value, Privacy):
        return [written(value.epsilon), written(value.delta)]
    if isinstance(value, (list, tuple)):
        return [written(one) for one in value]
    if isinstance(value, rounds.Round):
        return [written(value.variance), value.threshold]
    return repr(value)


def compute(expression: str) -> Any:
    with precision(128):
        try:
            value = eval(expression, NAMES)
        except privmax.ParameterError as problem:
            return f"ParameterError: {problem.name}"
    return written(value)


def is_same(one: Any, other: Any, least: float = 0.0) -> bool:
    """Floats that only guide a search may differ between machines, and so may the last digits of
    the laws of some mechanisms, which are within 1e-12: `least` is for these.
    """
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(is_same(*pair, least) for pair in pairs)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=least)
    return bool(one == other)


def subject(expression: str) -> str:
    return expression.split("(", maxsplit=1)[0].lstrip("[")


GROUPS: dict[str, list[str]] = {}
for one in dict.fromkeys(expressions()):
    GROUPS.setdefault(subject(one), []).append(one)


def test_all_that_is_stored_is_computed():
    assert list(read_stored(STORED)) == [one for group in GROUPS.values() for one in group]


@pytest.mark.parametrize("name", GROUPS)
def test_numbers_are_what_they_were(name):
    stored = read_stored(STORED)
    changed = {
        one: (stored[one], found)
        for one in GROUPS[name]
        if not is_same(found := compute(one), stored[one], 1e-12 if name in CLOSED else 0.0)
    }
    assert changed == {}


def test_tables_of_leads_are_what_they_were():
    """Computing them takes minutes: tests/exact/test_stored_leads.py does, for some."""
    assert repr(stored_leads.LEADS) == read_stored(STORED)["stored_leads.LEADS"]


def test_a_number_that_is_a_little_off_is_seen():
    assert is_same([1.0, "a", [2.0]], [1.0 + 1e-9, "a", [2.0]])
    assert not is_same([1.0, "a", [2.0]], [1.0 + 1e-5, "a", [2.0]])
    assert not is_same([1.0], [1.0, 2.0])
    assert not is_same("DiscreteLaplace(scale=5, step=1)", "DiscreteLaplace(scale=6, step=1)")


if __name__ == "__main__":
    rows = {one: compute(one) for group in GROUPS.values() for one in group}
    store_rows(STORED, rows)
