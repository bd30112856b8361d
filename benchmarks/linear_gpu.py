"""A million half-spaces on a million examples of 64 features, on one GPU, beside the card's own
matrix rate.

    python -m benchmarks.linear_gpu --out FILE [--quick]

Needs torch with CUDA, and uses Triton and CuPy where they are. First the counts of every path are
compared with those of integer products, then the card's matrix rate is measured in the same run,
then each path does the whole problem. Operations are 2 · directions · examples · features, whatever
a path really does. What fails is stored with its error and the others go on; the file is written
anew after every step.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import RESULTS, _version, about_run, note, store
from privmax.learning.classes.contract import Shape
from privmax.learning.classes.grid import Grid
from privmax.learning.classes.linear import Bytes, LinearGrid, Products, Tally, place_on_grid

LOW, HIGH, FEATURES = -1.0, 1.0, 64
LIBRARIES = ("torch", "triton", "cupy", "cupy-cuda12x", "cupy-cuda13x", "array-api-compat")
TILES = (  # directions, examples, warps, stages
    (128, 128, 4, 3),
    (128, 128, 4, 4),
    (128, 128, 8, 3),
    (128, 256, 8, 3),
    (256, 128, 8, 3),
    (64, 256, 4, 3),
    (64, 128, 4, 3),
    (128, 64, 4, 3),
    (256, 64, 8, 3),
)
SHARES = (1 << 13, 1 << 17)
"""Tried with the tile that was best."""

Counts = NDArray[np.int64]
Way = Callable[[Bytes, tuple[int, ...]], Tally]
"""How to count: from directions and offsets to an empty tally."""


class Bench:
    """One run: the result as far as it has come, and where it is kept."""

    def __init__(
        self, out: Path, device: str, directions: int, examples: int, repeats: int
    ) -> None:
        self.out, self.device, self.repeats = out, device, repeats
        self.directions, self.examples = directions, examples
        self.torch: Any = importlib.import_module("torch")
        self.result: dict[str, Any] = {
            "run": {
                **about_run(quick=False),
                "command": f"python -m benchmarks.linear_gpu --directions {directions} --examples "
                f"{examples}",
                "gpu": self.torch.cuda.get_device_name() if device == "cuda" else "none",
                "cuda": self.torch.version.cuda,
                "libraries": {name: _version(name) for name in LIBRARIES},
            },
            "problem": {
                "directions": directions,
                "examples": examples,
                "features": FEATURES,
                "offsets": 1,
            },
            "checks": [],
            "rates": [],
            "steps": [],
            "paths": [],
        }

    def keep(self, table: str, row: dict[str, Any]) -> None:
        self.result[table].append(row)
        note(f"{table}: {row}")
        store(self.result, self.out)

    def tried(
        self, table: str, row: dict[str, Any], measure: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Store what `measure` finds, or how it failed."""
        try:
            found = {**row, **measure()}
        except Exception as error:  # one contender's failure must not cost the others' results
            found = {**row, "error": f"{type(error).__name__}: {str(error)[:300]}"}
        self.keep(table, found)
        return found

    def wait(self) -> None:
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def seconds(self, call: Callable[[], object], repeats: int) -> list[float]:
        """Each of several calls, by the clock, the device having finished; after one that does not
        count.
        """
        times = []
        for _ in range(1 + repeats):
            self.wait()
            start = time.perf_counter()
            call()
            self.wait()
            times.append(time.perf_counter() - start)
        return times[1:]

    def operations(self, seconds: float, directions: int, examples: int) -> dict[str, Any]:
        """A time as operations a second and as shares of the rates measured before."""
        rate = 2.0 * directions * examples * FEATURES / seconds
        shares = {row["kind"]: rate / row["rate"] for row in self.result["rates"] if "rate" in row}
        return {"seconds": seconds, "rate": rate, "of": shares}

    # What is run

    def paths(self) -> dict[str, Way]:
        """Every way to count, by name."""

        def fused(tile: tuple[int, ...]) -> Way:
            def path(directions: Bytes, offsets: tuple[int, ...]) -> Tally:
                kernel = importlib.import_module("privmax.learning.classes.linear_triton")
                tally: Tally = kernel.Fused(directions, offsets, self.device, kernel.Tile(*tile))
                return tally

            return path

        def products(library: str | None) -> Way:
            device = None if library is None else self.device
            return lambda directions, offsets: Products(directions, offsets, library, device)

        return {
            **{f"kernel {' '.join(map(str, tile))}": fused(tile) for tile in TILES},
            "torch": products("torch"),
            "cupy": products("cupy"),
            "numpy": products(None),
        }

    def checks(self) -> None:
        """Small problems with awkward sizes, against 64-bit integers."""
        for number, examples, features, offsets in (
            (1003, 2005, 64, 1),
            (300, 777, 5, 3),
            (130, 257, 100, 11),
        ):
            generator = np.random.default_rng(number)
            directions = generator.integers(-127, 128, (number, features)).astype(np.int8)
            cells = generator.integers(-127, 128, (examples, features)).astype(np.int8)
            products = directions.astype(np.int64) @ cells.astype(np.int64).T
            given = (0, *products.ravel()[: offsets - 1].tolist())  # met exactly
            want = np.stack([(products[:, 9:] >= offset).sum(axis=1) for offset in given])
            for name, path in self.paths().items():
                if (
                    features != FEATURES
                    and name.startswith("kernel")
                    and name != next(iter(self.paths()))
                ):
                    continue  # each further problem is compiled anew: one tile will do

                measure = partial(self.same, path, directions, cells, given, want)
                self.tried(
                    "checks",
                    {"path": name, "shape": [number, examples, features, offsets]},
                    measure,
                )

    def same(
        self, path: Way, directions: Bytes, cells: Bytes, offsets: tuple[int, ...], want: Counts
    ) -> dict[str, Any]:
        tally = path(directions, offsets)
        tally.add(cells, 1)
        tally.add(cells[:9], -1)
        return {"same": bool((tally.counts() == want).all())}

    def rates(self, side: int) -> None:
        """The matrix rate of the card, on random numbers, by its own clock."""
        torch = self.torch

        def timed(call: Callable[[], object]) -> dict[str, Any]:
            if self.device != "cuda":
                return {"rate": 2.0 * side**3 / statistics.median(self.seconds(call, 3))}
            for _ in range(5):
                call()
            times = []
            for _ in range(20):
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                call()
                end.record()
                end.synchronize()
                times.append(start.elapsed_time(end) / 1000)
            return {
                "seconds": statistics.median(times),
                "rate": 2.0 * side**3 / statistics.median(times),
            }

        def floats(kind: Any) -> dict[str, Any]:
            torch.backends.cuda.matmul.allow_tf32 = False
            left, right = (torch.randn(side, side, device=self.device).to(kind) for _ in range(2))
            return timed(lambda: torch.mm(left, right))

        def integers() -> dict[str, Any]:
            left, right = (
                torch.randint(-127, 128, (side, side), dtype=torch.int8, device=self.device)
                for _ in range(2)
            )
            return timed(lambda: torch._int_mm(left, right.t()))

        self.tried("rates", {"kind": "bf16", "side": side}, lambda: floats(torch.bfloat16))
        self.tried("rates", {"kind": "int8", "side": side}, integers)
        self.tried("rates", {"kind": "fp32", "side": side}, lambda: floats(torch.float32))

    def whole(self) -> None:
        """The problem itself on every path, with the examples on the card; bringing them there is
        timed apart.
        """
        generator = np.random.default_rng(0)
        X = generator.uniform(LOW, HIGH, (self.examples, FEATURES))
        y = (X @ generator.normal(size=FEATURES) + generator.normal(size=self.examples) > 0).astype(
            np.intp
        )
        hypotheses = LinearGrid.random(
            directions=self.directions, features=FEATURES, seed=0, low=LOW, high=HIGH
        )
        directions: Bytes = hypotheses.directions
        start = time.perf_counter()
        cells = place_on_grid(X, Grid(LOW, HIGH, 255).cuts(FEATURES), 127)
        self.keep(
            "steps",
            {"step": "put X on the grid (processor)", "seconds": time.perf_counter() - start},
        )
        yes, no = cells[y == 1], cells[y == 0]

        def copied() -> dict[str, Any]:
            times = self.seconds(lambda: self.torch.from_numpy(cells).to(self.device), 3)
            return {"seconds": statistics.median(times), "bytes": cells.nbytes}

        self.tried("steps", {"step": "put the grid's places on the card"}, copied)
        some = generator.integers(0, self.directions, 50)
        products = directions[some].astype(np.float64) @ cells.T.astype(
            np.float64
        )  # whole numbers: exact
        want = ((products >= 0) == (y == 1)).sum(axis=1) - len(no)
        first: list[
            Counts
        ] = []  # all counts of the first path that gave the right ones for some directions

        def agrees(counts: Counts) -> dict[str, Any]:
            right = bool((counts[0, some] == want).all())
            if right and not first:
                first.append(counts)
            return {"right": right, "same": bool(first and (counts == first[0]).all())}

        def kernel(tile: tuple[int, ...]) -> dict[str, Any]:
            module = importlib.import_module("privmax.learning.classes.linear_triton")
            tally = module.Fused(directions, (0,), self.device, module.Tile(*tile))
            there = [
                (tally.on_device(part, tile[1]), len(part), sign)
                for part, sign in ((yes, 1), (no, -1))
            ]

            def count() -> None:
                for part, rows, sign in there:
                    tally.add_there(part, rows, sign)

            times = self.seconds(count, self.repeats)
            taken = self.operations(statistics.median(times), self.directions, self.examples)
            counts: Counts = tally.counts() // (1 + self.repeats)
            return {"tile": asdict(module.Tile(*tile)), **taken, "times": times, **agrees(counts)}

        def generic(library: str) -> dict[str, Any]:
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
            taken = self.operations(time.perf_counter() - start, self.directions, self.examples)
            return {**taken, **agrees(counts)}

        rows = [
            self.tried(
                "paths", {"path": f"kernel {' '.join(map(str, tile))}"}, partial(kernel, tile)
            )
            for tile in TILES
        ]
        good = [row for row in rows if row.get("right")]
        best = min(good, key=lambda row: float(row["seconds"]), default=None)
        for share in SHARES if best else ():
            assert best is not None
            tile = (*list(best["tile"].values())[:4], share)
            row = {"path": f"kernel {' '.join(map(str, tile))}"}
            good.append(self.tried("paths", row, partial(kernel, tile)))
        for library in ("torch", "cupy"):
            self.tried("paths", {"path": library}, partial(generic, library))

        def on_processor() -> dict[str, Any]:
            number, examples = min(2000, self.directions), min(100_000, self.examples)
            tally = Products(directions[:number], (0,))
            [taken] = self.seconds(lambda: tally.add(cells[:examples], 1), 1)
            return {
                "directions": number,
                "examples": examples,
                **self.operations(taken, number, examples),
            }

        self.tried("paths", {"path": "numpy"}, on_processor)

        def call() -> dict[str, Any]:
            theirs = LinearGrid(directions, low=LOW, high=HIGH, array="torch", device=self.device)
            start = time.perf_counter()
            scored = theirs.score(X, y, Shape(FEATURES, 2))
            taken = time.perf_counter() - start
            counts = np.array(scored.scores(), np.int64) - len(no)
            return {"seconds": taken, **agrees(counts[None, :])}

        self.tried("steps", {"step": "the whole call, LinearGrid.scored"}, call)
        good = [row for row in good if row.get("right") and row.get("same")]
        if good:
            self.result["best"] = min(good, key=lambda row: float(row["seconds"]))
            note(f"best: {self.result['best']}")
            store(self.result, self.out)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--out", type=Path, default=RESULTS / "linear_gpu.json")
    options.add_argument("--directions", type=int, default=1_000_000)
    options.add_argument("--examples", type=int, default=1_000_000)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--device", default="cuda")
    options.add_argument(
        "--quick", action="store_true", help="a small problem: does everything run?"
    )
    chosen = options.parse_args()
    number, examples = (5_000, 20_000) if chosen.quick else (chosen.directions, chosen.examples)
    bench = Bench(chosen.out, chosen.device, number, examples, chosen.repeats)
    bench.checks()
    bench.rates(8192 if chosen.device == "cuda" else 256)
    bench.whole()


if __name__ == "__main__":
    main()
