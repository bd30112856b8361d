"""Exact discrete noise, Laplace and Gaussian, by privmax and OpenDP, and what NumPy's inexact noise
costs.

    ./dev compare python -m lab.benchmarks.speed.noise
    ./dev compare python -m lab.benchmarks.speed.noise --part gaussian

Both exact libraries add noise to a vector of integers at exactly the same scale: OpenDP takes a
double, so privmax is given that double as a fraction. The scale of Gaussian noise is its standard
deviation.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.harness import Benchmark, Row, Times, clocked, in_child, medians, note

Values = NDArray[np.int64]
AddNoise = Callable[[Values], object]

SCALES = {"1/3": 1 / 3, "1": 1.0, "3": 3.0, "12": 12.0, "1000/7": 1000 / 7}
DEVIATIONS = {"1/3": 1 / 3, "1": 1.0, "12": 12.0, "1000/7": 1000 / 7, "10^6": 1e6}
SIZES = [10**5, 10**6, 10**7]
LIMIT = 60.0
"""Seconds one call may take."""

BATCH = 200
"""Single draws that are timed together."""


def privmax_laplace(scale: float) -> AddNoise:
    from privmax.noise.bulk import discrete_laplace
    from privmax.noise.coins import SYSTEM

    return lambda values: values + discrete_laplace(Fraction(scale), len(values), SYSTEM)


def opendp_laplace(scale: float) -> AddNoise:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    measurement: AddNoise = make_laplace(domain, l1_distance(T="i64"), scale=scale)
    return measurement


def opendp_identity(_: float) -> AddNoise:
    """What OpenDP spends on the way in and out, without any noise."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.metrics import symmetric_distance
    from opendp.mod import enable_features
    from opendp.transformations import make_identity

    enable_features("contrib", "honest-but-curious")
    domain = vector_domain(atom_domain(T="i64"))
    identity: AddNoise = make_identity(domain, symmetric_distance())
    return identity


def numpy_laplace(scale: float) -> AddNoise:
    rng = np.random.default_rng()
    return lambda values: values + rng.laplace(0, scale, len(values))


def numpy_geometric(scale: float) -> AddNoise:
    rng = np.random.default_rng()
    chance = -np.expm1(-1 / scale)
    return lambda values: (
        values + rng.geometric(chance, len(values)) - rng.geometric(chance, len(values))
    )


def privmax_gaussian(scale: float) -> AddNoise:
    from privmax.noise.bulk import discrete_gaussian
    from privmax.noise.coins import SYSTEM

    return lambda values: values + discrete_gaussian(Fraction(scale) ** 2, len(values), SYSTEM)


def opendp_gaussian(scale: float) -> AddNoise:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    measurement: AddNoise = make_gaussian(domain, l2_distance(T="f64"), scale=scale)
    return measurement


def numpy_gaussian(scale: float) -> AddNoise:
    rng = np.random.default_rng()
    return lambda values: values + np.rint(rng.normal(0, scale, len(values))).astype(np.int64)


def privmax_coins(_: float) -> AddNoise:
    """Coins of bias e^(−1/2)."""
    from privmax.noise.bulk import bernoulli_exp
    from privmax.noise.coins import SYSTEM

    return lambda values: bernoulli_exp(Fraction(1, 2), len(values), SYSTEM)


def numpy_coins(_: float) -> AddNoise:
    rng, chance = np.random.default_rng(), np.exp(-0.5)
    return lambda values: rng.random(len(values)) < chance


LAPLACE: dict[str, Callable[[float], AddNoise]] = {
    "privmax": privmax_laplace,
    "OpenDP": opendp_laplace,
    "NumPy Laplace": numpy_laplace,
    "NumPy two geometrics": numpy_geometric,
}
GAUSSIAN: dict[str, Callable[[float], AddNoise]] = {
    "privmax": privmax_gaussian,
    "OpenDP": opendp_gaussian,
    "NumPy normal, rounded": numpy_gaussian,
}
COINS: dict[str, Callable[[float], AddNoise]] = {
    "privmax": privmax_coins,
    "NumPy uniforms": numpy_coins,
}


def vector_steps(
    make: Callable[[float], AddNoise], scale: float, size: int, repeats: int
) -> Iterator[Times]:
    add_noise = make(scale)
    values = np.zeros(size, np.int64)
    add_noise(values[:1000].copy())
    yield from (clocked(lambda: add_noise(values)) for _ in range(repeats))


def single_steps(repeats: int) -> Iterator[tuple[str, str, Times]]:
    """Every scalar sampler, some hundred draws at a time."""
    from opendp.domains import atom_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import absolute_distance
    from opendp.mod import enable_features

    from privmax.noise import samplers
    from privmax.noise.coins import SYSTEM

    enable_features("contrib")

    def exact(scale: float) -> Callable[[], object]:
        return lambda: samplers.discrete_laplace(Fraction(scale), SYSTEM)

    def theirs(scale: float) -> Callable[[], object]:
        made = make_laplace(atom_domain(T="i64"), absolute_distance(T="i64"), scale=scale)
        return lambda: made(0)

    draws: dict[tuple[str, str], Callable[[], object]] = {
        ("privmax", "uniform below 1000"): lambda: samplers.uniform_below(1000, SYSTEM),
        ("privmax", "Bernoulli e^(−1/2)"): lambda: samplers.bernoulli_exp(Fraction(1, 2), SYSTEM),
        ("privmax", "geometric, rate 1/12"): lambda: samplers.geometric(Fraction(1, 12), SYSTEM),
    }
    for who, make in (("privmax", exact), ("OpenDP", theirs)):
        draws |= {(who, f"discrete Laplace, scale {s}"): make(SCALES[s]) for s in SCALES}
    for (who, name), draw in draws.items():
        draw()
        for _ in range(repeats):
            processor, wall = clocked(lambda draw=draw: [draw() for _ in range(BATCH)])  # type: ignore[misc]
            yield who, name, (processor / BATCH, wall / BATCH)


def measure_vectors(
    contenders: dict[str, Callable[[float], AddNoise]],
    scales: dict[str, float],
    options: argparse.Namespace,
) -> list[Row]:
    sizes, repeats = (SIZES[:1], 3) if options.quick else (SIZES, 15)
    rows = []
    for who, make in contenders.items():
        for size in sizes:
            if who == "OpenDP" and size == 10**7:
                continue
            calls = 3 if who == "OpenDP" and size > 10**5 else repeats
            for text, scale in scales.items():
                times, ending = in_child(vector_steps, make, scale, size, calls, limit=LIMIT)
                row = {"contender": who, "scale": text, "size": size}
                rows.append({**row, **medians(times, ending, LIMIT)})
                note(str(rows[-1]))
    return rows


def measure_gaussian(options: argparse.Namespace) -> dict[str, list[Row]]:
    return {"gaussian": measure_vectors(GAUSSIAN, DEVIATIONS, options)}


def measure_laplace(options: argparse.Namespace) -> dict[str, list[Row]]:
    """Laplace noise, and with it coins, single draws, and OpenDP's conversion."""
    sizes, repeats = (SIZES[:1], 3) if options.quick else (SIZES, 15)
    rows: dict[str, list[Row]] = {"laplace": measure_vectors(LAPLACE, SCALES, options)}
    rows |= {"conversion": [], "bernoulli": []}

    def add(kind: str, make: Callable[[float], AddNoise], row: Row) -> None:
        calls = 3 if row["contender"] == "OpenDP" and row["size"] > 10**5 else repeats
        times, ending = in_child(vector_steps, make, 1.0, row["size"], calls, limit=LIMIT)
        rows[kind].append({**row, **medians(times, ending, LIMIT)})
        note(f"{kind}: {rows[kind][-1]}")

    add("conversion", opendp_identity, {"contender": "OpenDP", "size": sizes[:2][-1]})
    for who, make in COINS.items():
        for size in sizes:
            add("bernoulli", make, {"contender": who, "size": size})
    times: dict[tuple[str, str], list[Times]] = {}
    for who, name, taken in in_child(single_steps, 3 if options.quick else 11, limit=LIMIT)[0]:
        times.setdefault((who, name), []).append(taken)
    rows["single"] = [
        {"contender": who, "draw": name, **medians(taken), "batch": BATCH}
        for (who, name), taken in times.items()
    ]
    return rows


if __name__ == "__main__":
    Benchmark(
        "noise",
        "speed.noise",
        {"laplace": measure_laplace, "gaussian": measure_gaussian},
        packages=("privmax", "numpy", "python-flint", "opendp"),
        settings={"limit": LIMIT, "scales": SCALES, "deviations": DEVIATIONS},
        compare=True,
    ).main()
