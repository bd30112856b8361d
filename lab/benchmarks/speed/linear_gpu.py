"""A million half-spaces on a million examples of 64 features, on one GPU.

    python -m lab.benchmarks.speed.linear_gpu

Needs torch with CUDA, and uses Triton and CuPy where they are. First the counts of every path are
compared with those of integer products, and the card's places on the grid with a processor's. Then
the card's own matrix rate is measured, then each path does the whole problem. Operations are
2 · directions · examples · features, whatever a path really does. What fails is stored with its
error and the others go on.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.harness import Benchmark, Row, Rows, note
from privmax.learning.classes.contract import Shape
from privmax.learning.classes.grid import Grid
from privmax.learning.classes.linear import Bytes, LinearGrid, OffsetTally, Products, place_on_grid

LOW, HIGH, FEATURES = -1.0, 1.0, 64
AWKWARD = ((1003, 2005, 64, 1), (300, 777, 5, 3), (130, 257, 100, 11))
"""Directions, examples, features and offsets of the problems that are checked."""

Counts = NDArray[np.int64]
Way = Callable[[Bytes, tuple[int, ...]], OffsetTally]
"""How to count: from directions and offsets to an empty tally."""


class Bench:
    """One run: the rows as far as they have come."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.device, self.repeats = options.device, options.repeats
        self.directions = 5_000 if options.quick else options.directions
        self.examples = 20_000 if options.quick else options.examples
        self.torch: Any = importlib.import_module("torch")
        gpu = self.torch.cuda.get_device_name() if self.device == "cuda" else "none"
        shape = {"directions": self.directions, "examples": self.examples, "features": FEATURES}
        self.rows: dict[str, list[Row]] = {"problem": [{"gpu": gpu, **shape}]}
        self.rows |= {kind: [] for kind in ("checks", "rates", "steps", "paths")}

    def attempt(self, kind: str, row: Row, measure: Callable[[], Row]) -> Row:
        """Keep what `measure` finds, or how it failed."""
        try:
            found = {**row, **measure()}
        except Exception as error:  # one contender's failure must not cost the others' results
            found = {**row, "error": f"{type(error).__name__}: {str(error)[:300]}"}
        self.rows[kind].append(found)
        note(f"{kind}: {found}")
        return found

    def seconds(self, call: Callable[[], object], repeats: int) -> list[float]:
        """Each of several calls, the device having finished; after one that does not count."""
        times = []
        for _ in range(1 + repeats):
            self._wait()
            start = time.perf_counter()
            call()
            self._wait()
            times.append(time.perf_counter() - start)
        return times[1:]

    def _wait(self) -> None:
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def operations(self, seconds: float, directions: int, examples: int) -> Row:
        """A time as operations a second and as shares of the rates measured before."""
        rate = 2.0 * directions * examples * FEATURES / seconds
        rates = {row["kind"]: row["rate"] for row in self.rows["rates"] if "rate" in row}
        return {
            "seconds": seconds,
            "rate": rate,
            "of": {kind: rate / known for kind, known in rates.items()},
        }

    def paths(self) -> dict[str, Way]:
        """Every way to count, by name."""

        def fused(directions: Bytes, offsets: tuple[int, ...]) -> OffsetTally:
            module = importlib.import_module("privmax.learning.classes.linear_triton")
            tally: OffsetTally = module.Fused(directions, offsets, self.device)
            return tally

        def products(library: str | None) -> Way:
            device = None if library is None else self.device
            return lambda directions, offsets: Products(directions, offsets, library, device)

        return {
            "kernel": fused,
            "torch": products("torch"),
            "cupy": products("cupy"),
            "numpy": products(None),
        }

    def checks(self) -> None:
        """Small problems with awkward sizes, against 64-bit integers."""
        for number, examples, features, offsets in AWKWARD:
            generator = np.random.default_rng(number)
            directions = generator.integers(-127, 128, (number, features)).astype(np.int8)
            cells = generator.integers(-127, 128, (examples, features)).astype(np.int8)
            products = directions.astype(np.int64) @ cells.astype(np.int64).T
            given = (0, *products.ravel()[: offsets - 1].tolist())  # met exactly
            want = np.stack([(products[:, 9:] >= offset).sum(axis=1) for offset in given])

            def same(
                path: Way, d: Bytes = directions, c: Bytes = cells, g: Any = given, w: Any = want
            ) -> Row:
                tally = path(d, g)
                tally.add(c, 1)
                tally.add(c[:9], -1)
                return {"same": bool((tally.counts() == w).all())}

            for name, path in self.paths().items():
                shape = [number, examples, features, offsets]
                self.attempt("checks", {"path": name, "shape": shape}, partial(same, path))

    def places(self) -> None:
        """Put values at, beside and beyond every cut on the grid, by the card and by the host."""
        low, high = np.array([-1.0, 0.0, -1e300, 17.0]), np.array([1.0, 1e-300, 1e300, 90.0])
        for levels in (1, 8, 127):
            cuts = Grid(low.tolist(), high.tolist(), 2 * levels + 1).cuts(len(low))
            for kind in (
                "float64",
                "float32",
                "float16",
                "int64",
                "int8",
                "bool",
                "uint64",
                "object",
            ):
                rows = _beside_cuts(cuts, kind)

                def same(rows: NDArray[Any] = rows, cuts: Any = cuts, levels: int = levels) -> Row:
                    module = importlib.import_module("privmax.learning.classes.linear_triton")
                    tally = module.Fused(np.ones((1, 4), np.int8), (0,), self.device)
                    yes = np.arange(len(rows)) % 3 == 0
                    want = place_on_grid(rows, cuts, levels)
                    split = tally.splitting(cuts, levels)
                    given = [(rows, yes)]
                    if rows.dtype.char in "?bhilqefd":
                        given.append((self.torch.from_numpy(rows).to(self.device), yes))
                    return {
                        "same": all(
                            (ones.cpu().numpy() == want[yes]).all()
                            and (others.cpu().numpy() == want[~yes]).all()
                            for ones, others in (split(*one) for one in given)
                        )
                    }

                row = {"path": f"grid, {kind}", "shape": [levels, len(rows)]}
                self.attempt("checks", row, same)

    def rates(self, side: int) -> None:
        """The matrix rate of the card, on random numbers, by its own clock."""
        torch = self.torch
        torch.backends.cuda.matmul.allow_tf32 = False

        def timed(call: Callable[[], object]) -> Row:
            if self.device != "cuda":
                times = self.seconds(call, 3)
            else:
                times = []
                for _ in range(25):
                    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    start.record()
                    call()
                    end.record()
                    end.synchronize()
                    times.append(start.elapsed_time(end) / 1000)
            taken = statistics.median(times[5:] or times)
            return {"seconds": taken, "rate": 2.0 * side**3 / taken}

        def floats(kind: Any) -> Row:
            left, right = (torch.randn(side, side, device=self.device).to(kind) for _ in range(2))
            return timed(lambda: torch.mm(left, right))

        def integers() -> Row:
            ints = {"dtype": torch.int8, "device": self.device}
            left, right = (torch.randint(-127, 128, (side, side), **ints) for _ in range(2))
            return timed(lambda: torch._int_mm(left, right.t()))

        self.attempt("rates", {"kind": "bf16", "side": side}, lambda: floats(torch.bfloat16))
        self.attempt("rates", {"kind": "int8", "side": side}, integers)
        self.attempt("rates", {"kind": "fp32", "side": side}, lambda: floats(torch.float32))

    def whole(self) -> None:
        """The problem itself on every path, with the examples on the card.

        Bringing them there is timed apart.
        """
        generator = np.random.default_rng(0)
        X = generator.uniform(LOW, HIGH, (self.examples, FEATURES))
        noise = generator.normal(size=FEATURES), generator.normal(size=self.examples)
        y = (X @ noise[0] + noise[1] > 0).astype(np.intp)
        shape: Row = {"directions": self.directions, "features": FEATURES, "seed": 0}
        directions: Bytes = LinearGrid.random(**shape, low=LOW, high=HIGH).directions
        start = time.perf_counter()
        cells = place_on_grid(X, Grid(LOW, HIGH, 255).cuts(FEATURES), 127)
        taken = time.perf_counter() - start
        self.attempt("steps", {"step": "put X on the grid (processor)"}, lambda: {"seconds": taken})
        yes, no = cells[y == 1], cells[y == 0]

        def copy() -> Row:
            times = self.seconds(lambda: self.torch.from_numpy(cells).to(self.device), 3)
            return {"seconds": statistics.median(times), "bytes": cells.nbytes}

        self.attempt("steps", {"step": "put the grid's places on the card"}, copy)
        some = generator.integers(0, self.directions, 50)
        products = directions[some].astype(np.float64) @ cells.T.astype(np.float64)  # exact
        want = ((products >= 0) == (y == 1)).sum(axis=1) - len(no)
        first: list[Counts] = []  # of the first path that was right for some directions

        def agrees(counts: Counts) -> Row:
            right = bool((counts[0, some] == want).all())
            if right and not first:
                first.append(counts)
            return {"right": right, "same": bool(first and (counts == first[0]).all())}

        def kernel() -> Row:
            module = importlib.import_module("privmax.learning.classes.linear_triton")
            tile = module.Tile()
            tally = module.Fused(directions, (0,), self.device, tile)
            there = [
                (tally.on_device(part, tile.examples), len(part), sign)
                for part, sign in ((yes, 1), (no, -1))
            ]

            def count() -> None:
                for part, rows, sign in there:
                    tally.add_there(part, rows, sign)

            times = self.seconds(count, self.repeats)
            row = self.operations(statistics.median(times), self.directions, self.examples)
            counts: Counts = tally.counts() // (1 + self.repeats)
            return {"tile": asdict(tile), **row, "times": times, **agrees(counts)}

        def generic(library: str) -> Row:
            xp = importlib.import_module(library)
            there = xp.asarray(yes), xp.asarray(no)
            if library == "torch":
                there = there[0].to(self.device), there[1].to(self.device)
            warm = Products(directions[: 1 << 14], (0,), library, self.device)
            warm.add(yes[: 1 << 14], 1)
            warm.counts()
            start = time.perf_counter()
            tally = Products(directions, (0,), library, self.device)
            tally.add(there[0], 1)
            tally.add(there[1], -1)
            counts = tally.counts()
            row = self.operations(time.perf_counter() - start, self.directions, self.examples)
            return {**row, **agrees(counts)}

        self.rows["best"] = [self.attempt("paths", {"path": "kernel"}, kernel)]
        for library in ("torch", "cupy"):
            self.attempt("paths", {"path": library}, partial(generic, library))

        def on_processor() -> Row:
            number, examples = min(2000, self.directions), min(100_000, self.examples)
            tally = Products(directions[:number], (0,))
            [taken] = self.seconds(lambda: tally.add(cells[:examples], 1), 1)
            row = self.operations(taken, number, examples)
            return {"directions": number, "examples": examples, **row}

        self.attempt("paths", {"path": "numpy"}, on_processor)

        theirs = LinearGrid(directions, low=LOW, high=HIGH, array="torch", device=self.device)

        def call(rows: Any, labels: Any) -> Row:
            times = self.seconds(
                lambda: theirs.score(rows, labels, Shape(FEATURES, 2)), self.repeats
            )
            scored = theirs.score(rows, labels, Shape(FEATURES, 2))
            counts = np.array(scored.scores(), np.int64) - len(no)
            seconds = statistics.median(times)
            return {"seconds": seconds, "times": times, **agrees(counts[None, :])}

        whole = "the whole call, LinearGrid.score"
        self.attempt("steps", {"step": f"{whole}, from arrays of NumPy"}, lambda: call(X, y))
        there = [self.torch.from_numpy(one).to(self.device) for one in (X, y)]
        self.attempt("steps", {"step": f"{whole}, from tensors on the card"}, lambda: call(*there))


def _beside_cuts(cuts: list[NDArray[np.float64]], kind: str) -> NDArray[Any]:
    """Values that are hard to place, in every column, as numbers of a kind."""
    near = np.stack([[c, np.nextafter(c, -np.inf), np.nextafter(c, np.inf)] for c in cuts])
    odd = [0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, -5e-324, 1.8e308, 2.0**53, 2.0**62]
    values = np.concatenate([near.ravel(), odd])
    if kind == "object":
        return np.stack([values] * len(cuts), axis=1).astype(object)
    with np.errstate(all="ignore"):
        if kind in ("int64", "int8", "uint64"):
            limits = np.iinfo(kind)
            near = values[(values > float(limits.min)) & (values < float(limits.max))].astype(kind)
            values = np.concatenate([near, np.array([limits.min, limits.max], kind)])
            if kind == "int64":
                values = np.concatenate(
                    [values, 2**53 + np.arange(-9, 9), 2**62 + np.arange(-9, 999)]
                )
        else:
            values = values.astype(kind)
    return np.ascontiguousarray(np.stack([values] * len(cuts), axis=1))


def measure(options: argparse.Namespace) -> Iterator[Rows]:
    bench = Bench(options)
    bench.checks()
    bench.places()
    bench.rates(8192 if bench.device == "cuda" else 256)
    yield bench.rows
    bench.whole()
    yield bench.rows


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--directions", type=int, default=1_000_000)
    parser.add_argument("--examples", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cuda")


if __name__ == "__main__":
    Benchmark(
        "linear-gpu",
        "speed.linear_gpu",
        {"all": measure},
        packages=("privmax", "torch", "triton", "cupy-cuda13x", "array-api-compat"),
        arguments=arguments,
    ).main()
