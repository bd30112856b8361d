"""One selection from K scores: privmax against NumPy, OpenDP and diffprivlib, at the same epsilon
and sensitivity.

    ./dev compare python -m benchmarks.select [--quick] [--output FILE]

Every cell (contender, scores, K) runs in a process of its own that loads the scores, warms up on a
thousand of them, makes one call under the memory gauge and then the timed ones. All contenders get
the same array; where a library insists on a list, the conversion is timed by itself.
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

from benchmarks.harness import (
    DONE,
    LIMIT,
    RESULTS,
    Aim,
    PeakMemory,
    Times,
    about_run,
    clocked,
    in_child,
    medians,
    note,
    store,
)
from benchmarks.tables import print_tables, selection_tables

Scores = NDArray[np.int64]

EPSILON, DELTA = 1, "1e-6"
SIZES = [10**exponent for exponent in range(3, 8)]
WARM_UP = 1000
PAIRED_FROM = 10**5
"""From this K on, privmax's calls and Gumbel argmax calls are also made in turn, in one process, to
be compared.
"""

MOST = 15
"""Calls a cell makes, unless they are slow."""

OPENDP = "OpenDP noisy max"

NEVER_SLOWER = Aim("as fast as NumPy's inexact Gumbel argmax from K = 10^5 up", least=1)
FAR_FASTER = Aim("100 times as fast as OpenDP at K = 10^7 with a clear winner", least=100)
TWO_COPIES = Aim("two copies of the scores in memory at most, the caller's own included", most=2)
SAME_COST = Aim(
    "10^12 candidates given as a profile cost the same as 10^3 (within a half)", most=1.5
)

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


def permute_and_flip() -> Ready:
    import privmax

    return Ready(
        lambda scores: privmax.select(scores, epsilon=EPSILON, delta=0, universe=len(scores)).item
    )


def exponential() -> Ready:
    import privmax

    return Ready(
        lambda scores: (
            privmax.select(
                scores, mechanism=privmax.Exponential(epsilon=EPSILON), universe=len(scores)
            ).item
        )
    )


def nested_margin() -> Ready:
    import privmax

    return Ready(lambda scores: privmax.select(scores, epsilon=EPSILON, delta=DELTA).item)


def large_margin() -> Ready:
    import privmax

    return Ready(
        lambda scores: (
            privmax.select(scores, mechanism=privmax.LargeMargin(epsilon=EPSILON, delta=DELTA)).item
        )
    )


def numpy_gumbel() -> Ready:
    rng = np.random.default_rng()
    return Ready(
        lambda scores: int(np.argmax(scores * float(EPSILON) + rng.gumbel(size=len(scores))))
    )


def numpy_exponential() -> Ready:
    rng = np.random.default_rng()
    return Ready(
        lambda scores: int(
            np.argmax(scores * float(EPSILON) + rng.standard_exponential(len(scores)))
        )
    )


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


def diffprivlib_exponential() -> Ready:
    from diffprivlib.mechanisms import Exponential

    return Ready(
        lambda utility: Exponential(
            epsilon=EPSILON, sensitivity=1, utility=utility, monotonic=True
        ).randomise(),
        convert=lambda scores: scores.tolist(),
    )


def diffprivlib_permute_and_flip() -> Ready:
    from diffprivlib.mechanisms import PermuteAndFlip

    return Ready(
        lambda utility: PermuteAndFlip(
            epsilon=EPSILON, sensitivity=1, utility=utility, monotonic=True
        ).randomise(),
        convert=lambda scores: scores.tolist(),
    )


CONTENDERS: dict[str, Callable[[], Ready]] = {
    "privmax permute-and-flip": permute_and_flip,
    "privmax exponential": exponential,
    "privmax nested margin": nested_margin,
    "privmax large margin": large_margin,
    "NumPy Gumbel argmax": numpy_gumbel,
    "NumPy exponential argmax": numpy_exponential,
    OPENDP: opendp_noisy_max,
    "diffprivlib exponential": diffprivlib_exponential,
    "diffprivlib permute-and-flip": diffprivlib_permute_and_flip,
}


def cell(
    contender: str, shape: str, size: int, file: str, repeats: int
) -> Iterator[dict[str, Any]]:
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
    gumbel = (
        numpy_gumbel().select if contender.startswith("privmax ") and size >= PAIRED_FROM else None
    )
    for _ in range(repeats):
        yield {"time": clocked(call)}
        if gumbel is not None:
            yield {"paired": clocked(lambda: gumbel(scores))}


def measure(
    contender: str, shape: str, size: int, file: str, repeats: int, limit: float
) -> dict[str, Any]:
    steps, ending = in_child(cell, contender, shape, size, file, repeats, limit=limit)
    found = {
        key: step[key] for step in steps for key in ("convert", "first", "copies") if key in step
    }
    times, paired = ([step[key] for step in steps if key in step] for key in ("time", "paired"))
    if paired:
        found["gumbel"] = medians(paired)["median"]
    row = {"contender": contender, "scores": shape, "K": size}
    outcome = medians(times, ending, limit)
    return {**row, **outcome, **found} if "median" in outcome else {**row, **outcome}


def selections(sizes: list[int], *, limit: float, quick: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    before: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "scores.npy")
        for shape in SHAPES:
            for size in sizes:
                np.save(file, scores_of(shape, size))
                for contender in CONTENDERS:
                    past = before.setdefault((contender, shape), [])
                    expected = _expected(past)
                    if expected > limit:
                        row: dict[str, Any] = {
                            "contender": contender,
                            "scores": shape,
                            "K": size,
                            "ending": LIMIT,
                            "expected": expected,
                        }
                    else:
                        row = measure(
                            contender,
                            shape,
                            size,
                            file,
                            _repeats(contender, expected, quick),
                            limit,
                        )
                    past.append(row.get("median", max(expected, limit)))
                    rows.append(row)
                    shown = f"{row['median'] * 1e3:.3f} ms" if "median" in row else row["ending"]
                    note(f"{shape:6} K = {size:<9} {contender:30} {shown}")
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


PROFILE_SIZES = [10**3, 10**6, 10**9, 10**12]


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


def profiles(*, limit: float, quick: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for shape in SHAPES:
        note(f"{shape:6} profiles of {PROFILE_SIZES[0]} to {PROFILE_SIZES[-1]} candidates")
        steps, ending = in_child(profile_draws, shape, 5 if quick else 31, limit=limit)
        if ending != DONE:
            raise RuntimeError(f"the profile draws ended with: {ending}")
        times: dict[tuple[str, int], list[Times]] = {}
        for name, size, time in steps:
            times.setdefault((name, size), []).append(time)
        rows += [
            {"mechanism": name, "scores": shape, "K": size, **medians(taken)}
            for (name, size), taken in times.items()
        ]
    return rows


def judgements(
    rows: list[dict[str, Any]], profile_rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Every aim, mechanism by mechanism."""
    cells = {(row["contender"], row["scores"], row["K"]): row for row in rows if "median" in row}
    draws = {(row["mechanism"], row["scores"], row["K"]): row["median"] for row in profile_rows}
    found: dict[Aim, list[dict[str, Any]]] = {
        NEVER_SLOWER: [],
        FAR_FASTER: [],
        TWO_COPIES: [],
        SAME_COST: [],
    }
    for contender in CONTENDERS:
        if not contender.startswith("privmax "):
            continue
        name = contender.removeprefix("privmax ")
        faster: dict[str, float] = {}
        far_faster: dict[str, float] = {}
        copies: dict[str, float] = {}
        for (who, shape, size), row in cells.items():
            place = f"{shape}, K = 10^{len(str(size)) - 1}"
            opendp = cells.get((OPENDP, shape, size))
            if who != contender:
                continue
            if "gumbel" in row:
                faster[place] = row["gumbel"] / row["median"]
            if size == SIZES[-1] and shape == "clear" and opendp:
                far_faster[place] = opendp["median"] / row["median"]
            if size >= 10**6 and row["copies"] is not None:
                copies[place] = row["copies"]
        growth = {
            shape: draws[name, shape, PROFILE_SIZES[-1]] / draws[name, shape, PROFILE_SIZES[0]]
            for shape in SHAPES
        }
        found[NEVER_SLOWER].append(NEVER_SLOWER.judge(name, faster))
        found[FAR_FASTER].append(FAR_FASTER.judge(name, far_faster))
        found[TWO_COPIES].append(TWO_COPIES.judge(name, copies))
        found[SAME_COST].append(SAME_COST.judge(name, growth))
    return [row for rows in found.values() for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and weigh one selection from K scores.")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="up to K = 100 000, few repeats; stores nothing by itself",
    )
    parser.add_argument(
        "--output", type=Path, help="JSON file to write (default: results/select.json)"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=120.0,
        help="seconds one call may take (default: %(default)g)",
    )
    options = parser.parse_args()
    result: dict[str, Any] = {
        "benchmark": "select",
        "run": about_run(quick=options.quick),
        "settings": {
            "epsilon": EPSILON,
            "delta": DELTA,
            "sensitivity": 1,
            "limit": options.limit,
            "scores": SHAPES,
        },
    }
    sizes = [size for size in SIZES if size <= 10**5] if options.quick else SIZES
    result["selections"] = selections(sizes, limit=options.limit, quick=options.quick)
    result["profiles"] = profiles(limit=options.limit, quick=options.quick)
    result["aims"] = judgements(result["selections"], result["profiles"])
    print_tables(selection_tables(result))
    if options.output or not options.quick:
        store(result, options.output or RESULTS / "select.json")


if __name__ == "__main__":
    main()
