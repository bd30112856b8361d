"""Noise: exact discrete Laplace draws by privmax and OpenDP, and what NumPy's inexact ones cost.

    ./dev compare python -m benchmarks.noise [--quick] [--output FILE]

Both exact libraries do the same task, a vector of integers plus independent discrete Laplace noise,
at exactly the same scale: OpenDP takes a double, so privmax is given that double as a fraction.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import (
    RESULTS,
    Aim,
    Times,
    about_run,
    clocked,
    in_child,
    medians,
    note,
    store,
)
from benchmarks.tables import noise_tables, print_tables

Values = NDArray[np.int64]

SCALES = {"1/3": 1 / 3, "1": 1.0, "3": 3.0, "12": 12.0, "1000/7": 1000 / 7}
SIZES = [10**5, 10**6, 10**7]
COMMON = 10**6
"""The size at which everybody is compared."""

TEN_TIMES = Aim("ten times as fast as OpenDP at 10^6 exact discrete Laplace draws", least=10)


def privmax_laplace(scale: float) -> Callable[[Values], object]:
    from privmax.noise.bulk import discrete_laplace
    from privmax.noise.coins import SYSTEM

    return lambda values: values + discrete_laplace(Fraction(scale), len(values), SYSTEM)


def opendp_laplace(scale: float) -> Callable[[Values], object]:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    measurement: Callable[[Values], object] = make_laplace(
        vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale
    )
    return measurement


def numpy_laplace(scale: float) -> Callable[[Values], object]:
    rng = np.random.default_rng()
    return lambda values: values + rng.laplace(0, scale, len(values))


def numpy_geometric(scale: float) -> Callable[[Values], object]:
    rng = np.random.default_rng()
    chance = -np.expm1(-1 / scale)
    return lambda values: (
        values + rng.geometric(chance, len(values)) - rng.geometric(chance, len(values))
    )


LAPLACE: dict[str, tuple[Callable[[float], Callable[[Values], object]], list[int]]] = {
    "privmax": (privmax_laplace, SIZES),
    "OpenDP": (opendp_laplace, [10**5, 10**6]),
    "NumPy Laplace": (numpy_laplace, SIZES),
    "NumPy two geometrics": (numpy_geometric, SIZES),
}


def laplace_steps(contender: str, scale: float, size: int, repeats: int) -> Iterator[Times]:
    add_noise = LAPLACE[contender][0](scale)
    values = np.zeros(size, np.int64)
    add_noise(values[:1000].copy())
    yield from (clocked(lambda: add_noise(values)) for _ in range(repeats))


def laplace(sizes: list[int], *, limit: float, quick: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for contender, (_, own_sizes) in LAPLACE.items():
        for size in (size for size in own_sizes if size in sizes):
            repeats = 3 if quick or (contender == "OpenDP" and size > 10**5) else 15
            for text, scale in SCALES.items():
                times, ending = in_child(
                    laplace_steps, contender, scale, size, repeats, limit=limit
                )
                row = {
                    "contender": contender,
                    "scale": text,
                    "size": size,
                    **medians(times, ending, limit),
                }
                rows.append(row)
                note(f"{contender:22} scale {text:7} {size:<9} {row.get('median', ending)}")
    return rows


def conversion_steps(size: int, repeats: int) -> Iterator[Times]:
    """What OpenDP spends on the way in and out: the same vector through its identity
    transformation.
    """
    from opendp.domains import atom_domain, vector_domain
    from opendp.metrics import symmetric_distance
    from opendp.mod import enable_features
    from opendp.transformations import make_identity

    enable_features("contrib", "honest-but-curious")
    identity = make_identity(vector_domain(atom_domain(T="i64")), symmetric_distance())
    values = np.zeros(size, np.int64)
    yield from (clocked(lambda: identity(values)) for _ in range(repeats))


def bernoulli_steps(contender: str, size: int, repeats: int) -> Iterator[Times]:
    if contender == "privmax":
        from privmax.noise.bulk import bernoulli_exp
        from privmax.noise.coins import SYSTEM

        yield from (
            clocked(lambda: bernoulli_exp(Fraction(1, 2), size, SYSTEM)) for _ in range(repeats)
        )
    else:
        rng = np.random.default_rng()
        chance = np.exp(-0.5)
        yield from (clocked(lambda: rng.random(size) < chance) for _ in range(repeats))


def bernoulli(sizes: list[int], *, limit: float, quick: bool) -> list[dict[str, Any]]:
    rows = []
    for contender in ("privmax", "NumPy uniforms"):
        for size in sizes:
            times, ending = in_child(
                bernoulli_steps, contender, size, 3 if quick else 15, limit=limit
            )
            row = {"contender": contender, "size": size, **medians(times, ending, limit)}
            rows.append(row)
            note(f"{contender:22} coins         {size:<9} {row.get('median', ending)}")
    return rows


def single_draws() -> dict[tuple[str, str], Callable[[], object]]:
    """Every scalar sampler as a call without arguments."""
    from opendp.domains import atom_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import absolute_distance
    from opendp.mod import enable_features

    from privmax.noise import samplers
    from privmax.noise.coins import SYSTEM

    enable_features("contrib")
    draws: dict[tuple[str, str], Callable[[], object]] = {
        ("privmax", "uniform below 1000"): lambda: samplers.uniform_below(1000, SYSTEM),
        ("privmax", "Bernoulli e^(−1/2)"): lambda: samplers.bernoulli_exp(Fraction(1, 2), SYSTEM),
        ("privmax", "geometric, rate 1/12"): lambda: samplers.geometric(Fraction(1, 12), SYSTEM),
    }
    for text, scale in SCALES.items():
        exact = Fraction(scale)
        draws["privmax", f"discrete Laplace, scale {text}"] = lambda exact=exact: (
            samplers.discrete_laplace(  # type: ignore[misc]
                exact, SYSTEM
            )
        )
    for text, scale in SCALES.items():
        measurement = make_laplace(atom_domain(T="i64"), absolute_distance(T="i64"), scale=scale)
        draws["OpenDP", f"discrete Laplace, scale {text}"] = lambda measurement=measurement: (
            measurement(0)
        )  # type: ignore[misc]
    return draws


def single_steps(batches: int, batch: int) -> Iterator[tuple[str, str, Times]]:
    for (contender, name), draw in single_draws().items():
        draw()
        for _ in range(batches):
            processor, wall = clocked(lambda draw=draw: [draw() for _ in range(batch)])  # type: ignore[misc]
            yield contender, name, (processor / batch, wall / batch)


def single(*, limit: float, quick: bool) -> list[dict[str, Any]]:
    note("single draws")
    batch = 200
    steps, _ = in_child(single_steps, 3 if quick else 11, batch, limit=limit)
    times: dict[tuple[str, str], list[Times]] = {}
    for contender, name, time in steps:
        times.setdefault((contender, name), []).append(time)
    return [
        {"contender": contender, "draw": name, **medians(taken), "batch": batch}
        for (contender, name), taken in times.items()
    ]


def judgements(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    timed = {
        (row["contender"], row["scale"], row["size"]): row["median"]
        for row in rows
        if "median" in row
    }
    judged = []
    for text in SCALES:
        ours, theirs = timed.get(("privmax", text, COMMON)), timed.get(("OpenDP", text, COMMON))
        judged.append(
            TEN_TIMES.judge(f"scale {text}", {"": theirs / ours} if ours and theirs else {})
        )
    return judged


def main() -> None:
    parser = argparse.ArgumentParser(description="Time exact noise.")
    parser.add_argument(
        "--quick", action="store_true", help="100 000 draws, few repeats; stores nothing by itself"
    )
    parser.add_argument(
        "--output", type=Path, help="JSON file to write (default: results/noise.json)"
    )
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds one call may take (default: %(default)g)"
    )
    options = parser.parse_args()
    result: dict[str, Any] = {
        "benchmark": "noise",
        "run": about_run(quick=options.quick),
        "settings": {"limit": options.limit, "scales": SCALES},
    }
    sizes = SIZES[:1] if options.quick else SIZES
    result["laplace"] = laplace(sizes, limit=options.limit, quick=options.quick)
    size = min(COMMON, sizes[-1])
    times, ending = in_child(conversion_steps, size, 15, limit=options.limit)
    result["conversion"] = [{"contender": "OpenDP", "size": size, **medians(times, ending)}]
    result["bernoulli"] = bernoulli(sizes, limit=options.limit, quick=options.quick)
    result["single"] = single(limit=options.limit, quick=options.quick)
    result["aims"] = judgements(result["laplace"])
    print_tables(noise_tables(result))
    if options.output or not options.quick:
        store(result, options.output or RESULTS / "noise.json")


if __name__ == "__main__":
    main()
