"""One selection from K scores: privmax, NumPy, OpenDP and diffprivlib at one epsilon.

    ./dev compare python -m lab.benchmarks.speed.select [--part PART]

Every cell (contender, scores, K) runs in a process of its own that loads the scores, warms up on a
thousand of them, makes one call under the memory gauge and then the timed ones. All contenders get
the same array; where a library insists on a list, the conversion is timed by itself. The part
`turns` makes calls of quick contenders in turn, in one process that is warm: there the heap holds
the arrays that NumPy fills, which takes most of its time in a fresh one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.harness import (
    DONE,
    LIMIT,
    Benchmark,
    PeakMemory,
    Row,
    Times,
    clocked,
    in_child,
    medians,
    note,
)

Scores = NDArray[np.int64]

EPSILON, DELTA = 1, "1e-6"
SIZES = [10**exponent for exponent in range(3, 8)]
PROFILE_SIZES = [10**3, 10**6, 10**9, 10**12]
WARM_UP = 1000
LONGEST = 120.0
"""Seconds one call may take."""

PAIRED_FROM = 10**5
"""From this K on, privmax's calls and Gumbel argmax calls are also made in turn, in one process."""

TURNS = {10**3: 41, 10**5: 41, 10**6: 15}
"""How many calls of each contender are made in turn, by K."""

SLOWEST = 10**5
"""Contenders that are neither privmax nor NumPy are left out of turns beyond this."""

MOST = 15
"""Calls a cell makes, unless they are slow."""

OPENDP = "OpenDP noisy max"

SHAPES = {
    "clear": "uniform on 0…1000, one candidate at 1 000 000",
    "flat": "uniform on 0…1000: a thousandth of all candidates at each level",
    "tied": "every score 500",
}


def scores_of(shape: str, size: int) -> Scores:
    rng = np.random.default_rng(size)
    if shape == "tied":
        return np.full(size, 500, np.int64)
    scores = rng.integers(0, 1001, size)
    if shape == "clear":
        scores[winner(size)] = 1_000_000
    return scores


def winner(size: int) -> int:
    """Where the clear winner stands."""
    return size // 3


@dataclass(frozen=True)
class Ready:
    """A contender with everything imported and built that does not depend on the scores."""

    select: Callable[[Any], object]
    convert: Callable[[Scores], Any] = lambda scores: scores


def ours(mechanism: str | None = None, **price: Any) -> Ready:
    """privmax, by what `select` picks at a price, or by a mechanism that is made for each call."""
    import privmax

    def select(scores: Scores) -> object:
        universe = len(scores) if price.get("delta", 0) == 0 else "open"
        if mechanism is None:
            return privmax.select(scores, **price, universe=universe).item
        made = getattr(privmax, mechanism)(**price)
        return privmax.select(scores, mechanism=made, universe=universe).item

    return Ready(select)


def numpy_argmax(noise: str) -> Ready:
    draw = getattr(np.random.default_rng(), noise)
    return Ready(lambda scores: int(np.argmax(scores * float(EPSILON) + draw(size=len(scores)))))


def opendp_noisy_max() -> Ready:
    # The submodules and not the prelude, which also imports scikit-learn where it is installed.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    measurement = make_noisy_max(
        vector_domain(atom_domain(T="i64")),
        linf_distance(T="i64", monotonic=True),
        max_divergence(),
        1 / EPSILON,
    )
    if measurement.map(1) != EPSILON:
        raise ValueError("OpenDP was not set up at the same epsilon")
    return Ready(measurement)


def diffprivlib(mechanism: str) -> Ready:
    from diffprivlib import mechanisms

    make = getattr(mechanisms, mechanism)
    public = {"epsilon": EPSILON, "sensitivity": 1, "monotonic": True}
    return Ready(
        lambda utility: make(utility=utility, **public).randomise(),
        convert=lambda scores: scores.tolist(),
    )


CONTENDERS: dict[str, Callable[[], Ready]] = {
    "privmax permute-and-flip": lambda: ours(epsilon=EPSILON, delta=0),
    "privmax exponential": lambda: ours("Exponential", epsilon=EPSILON),
    "privmax nested margin": lambda: ours(epsilon=EPSILON, delta=DELTA),
    "privmax large margin": lambda: ours("LargeMargin", epsilon=EPSILON, delta=DELTA),
    "NumPy Gumbel argmax": lambda: numpy_argmax("gumbel"),
    "NumPy exponential argmax": lambda: numpy_argmax("standard_exponential"),
    OPENDP: opendp_noisy_max,
    "diffprivlib exponential": lambda: diffprivlib("Exponential"),
    "diffprivlib permute-and-flip": lambda: diffprivlib("PermuteAndFlip"),
}


def cell(contender: str, shape: str, size: int, file: str, repeats: int) -> Iterator[Row]:
    """The steps of one cell, in its own process."""
    ready = CONTENDERS[contender]()
    scores: Scores = np.load(file)
    ready.select(ready.convert(scores[:WARM_UP].copy()))
    yield {"loaded": True}

    memory = PeakMemory()
    data: Any = None
    answer: object = None

    def convert() -> None:
        nonlocal data
        data = ready.convert(scores)

    def call() -> None:
        nonlocal answer
        answer = ready.select(data)

    yield {"convert": clocked(convert)[0]}
    first = clocked(call)
    growth = memory.growth()
    if shape == "clear" and answer != winner(size):  # certain but for a chance below e^−990 000
        raise AssertionError(f"{contender} did not select the clear winner")
    yield {"first": first[0], "copies": None if growth is None else 1 + growth / scores.nbytes}
    if repeats < MOST:  # so much work that warmth does not matter: the first call counts
        yield {"time": first}
        repeats -= 1
    paired = contender.startswith("privmax ") and size >= PAIRED_FROM
    gumbel = numpy_argmax("gumbel").select if paired else None
    for _ in range(repeats):
        yield {"time": clocked(call)}
        if gumbel is not None:
            yield {"paired": clocked(lambda: gumbel(scores))}


def timed(contender: str, shape: str, size: int, file: str, repeats: int) -> Row:
    """A row: how calls ended, their medians and memory."""
    steps, ending = in_child(cell, contender, shape, size, file, repeats, limit=LONGEST)
    keys = ("convert", "first", "copies")
    found = {key: step[key] for step in steps for key in keys if key in step}
    times, paired = ([step[key] for step in steps if key in step] for key in ("time", "paired"))
    if paired:
        found["gumbel"] = medians(paired)["median"]
    outcome = medians(times, ending, LONGEST)
    row = {"contender": contender, "scores": shape, "K": size}
    return {**row, **outcome, **(found if "median" in outcome else {})}


def selections(sizes: list[int], quick: bool) -> list[Row]:
    rows: list[Row] = []
    before: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "scores.npy")
        for shape in SHAPES:
            for size in sizes:
                np.save(file, scores_of(shape, size))
                for contender in CONTENDERS:
                    past = before.setdefault((contender, shape), [])
                    expected = _expected(past)
                    if expected > LONGEST:
                        row: Row = {"contender": contender, "scores": shape, "K": size}
                        row |= {"ending": LIMIT, "expected": expected}
                    else:
                        repeats = _repeats(contender, expected, quick)
                        row = timed(contender, shape, size, file, repeats)
                    past.append(row.get("median", max(expected, LONGEST)))
                    rows.append(row)
                    note(f"{shape:6} {size:<9} {contender:30} {row.get('median', row['ending'])}")
    return rows


def _expected(past: list[float]) -> float:
    """The time at ten times the size: slow contenders are at least linear, and some are seen to be
    worse.
    """
    if not past:
        return 0.0
    return past[-1] * max(10.0, past[-1] / past[-2] if len(past) > 1 else 0.0)


def _repeats(contender: str, expected: float, quick: bool) -> int:
    """How many calls: settled beforehand, since to stop when calls turn out slow would favour lucky
    ones.
    """
    least = (
        5 if contender == OPENDP else 3
    )  # its time is random: uniform up to that of K flips with a clear winner
    return 3 if quick else min(MOST, max(least, int(5 / expected) if expected else MOST))


def levels_of(shape: str, size: int) -> list[tuple[int, int]]:
    """The same three shapes as levels: a thousand of them, or two, or one."""
    if shape == "clear":
        return [(1_000_000, 1), (500, size - 1)]
    if shape == "flat":
        return [(score, size // 1000) for score in range(1000)]
    return [(500, size)]


def profile_draws(shape: str, repeats: int) -> Iterator[tuple[str, int, Times]]:
    """Draws from a closed universe of K given as levels, sizes taken in turn so that they share any
    disturbance.
    """
    import privmax
    from privmax.noise.coins import SYSTEM

    mechanisms: dict[str, Any] = {
        "permute-and-flip": privmax.PermuteAndFlip(epsilon=EPSILON),
        "exponential": privmax.Exponential(epsilon=EPSILON),
        "nested margin": privmax.NestedMargin(epsilon=EPSILON, delta=DELTA),
        "large margin": privmax.LargeMargin(epsilon=EPSILON, delta=DELTA),
    }
    for name, mechanism in mechanisms.items():
        for _ in range(repeats):
            for size in PROFILE_SIZES:
                profile = privmax.Profile(levels_of(shape, size), universe=size)
                yield name, size, clocked(lambda m=mechanism, p=profile: m.draw(p, SYSTEM))  # type: ignore[misc]


def profiles(quick: bool) -> list[Row]:
    rows: list[Row] = []
    for shape in SHAPES:
        note(f"{shape:6} profiles of {PROFILE_SIZES[0]} to {PROFILE_SIZES[-1]} candidates")
        steps, ending = in_child(profile_draws, shape, 5 if quick else 31, limit=LONGEST)
        if ending != DONE:
            raise SystemExit(f"the profile draws ended with: {ending}")
        times: dict[tuple[str, int], list[Times]] = {}
        for name, size, time in steps:
            times.setdefault((name, size), []).append(time)
        rows += [
            {"mechanism": name, "scores": shape, "K": size, **medians(taken)}
            for (name, size), taken in times.items()
        ]
    return rows


def turns(shape: str, size: int, rounds: int) -> Iterator[tuple[str, Times]]:
    """Calls of all quick contenders in turn, after three that do not count."""
    quick = [name for name in CONTENDERS if not name.startswith("diffprivlib")]
    if size > SLOWEST:
        quick.remove(OPENDP)
    ready = {name: CONTENDERS[name]() for name in quick}
    scores = scores_of(shape, size)
    for number in range(rounds + 3):
        for name, one in ready.items():
            taken = clocked(lambda r=one: r.select(scores))  # type: ignore[misc]
            if number >= 3:
                yield name, taken


def measure_turns(options: argparse.Namespace) -> dict[str, list[Row]]:
    """All contenders in one process, by scores and K."""
    rows: list[Row] = []
    for size, rounds in TURNS.items():
        for shape in SHAPES:
            steps, ending = in_child(turns, shape, size, 3 if options.quick else rounds, limit=600)
            if ending != DONE:
                raise SystemExit(f"the turns ended with: {ending}")
            times: dict[str, list[Times]] = {}
            for name, taken in steps:
                times.setdefault(name, []).append(taken)
            rows += [
                {"contender": name, "scores": shape, "K": size, **medians(some)}
                for name, some in times.items()
            ]
            note(f"{shape:6} {size:<9} {len(times)} contenders in turn")
    return {"turns": rows}


def measure(options: argparse.Namespace) -> dict[str, list[Row]]:
    sizes = SIZES[:3] if options.quick else SIZES
    return {
        "selections": selections(sizes, options.quick),
        "profiles": profiles(options.quick),
    }


if __name__ == "__main__":
    Benchmark(
        "select",
        "speed.select",
        {"all": measure, "turns": measure_turns},
        packages=("privmax", "numpy", "python-flint", "opendp", "diffprivlib", "scikit-learn"),
        settings={"epsilon": EPSILON, "delta": DELTA, "limit": LONGEST, "scores": SHAPES},
        compare=True,
    ).main()
