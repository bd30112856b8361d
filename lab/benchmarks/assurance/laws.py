"""What a search for neighbors that cost more than a mechanism says has found, with exact laws.

    ./dev python -m lab.benchmarks.assurance.laws
    ./dev python -m lab.benchmarks.assurance.laws --only large-margin --pairs 10000

For each mechanism of the registry, settings are taken in random order (lab/assurance/settings.py)
and searched (lab/assurance/searches.py).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import count

from lab.assurance.searches import HIGHEST, LOOKS, PATIENCE, Finding, Search
from lab.assurance.settings import Setting, settings, shuffled
from lab.benchmarks.harness import Benchmark, Row, note
from privmax.mechanisms.registry import MECHANISMS
from privmax.testing import SeededCoins

SEED = 21
PAIRS = 100_000
"""So many ordered pairs for every mechanism, at least."""


def search(name: str, options: argparse.Namespace) -> Row:
    """All settings of a mechanism that there is time for, as one row."""
    began = time.process_time()
    wanted, looks_each = (300, 10) if options.quick else (options.pairs, LOOKS)
    pairs = looks = steps = 0
    worst: tuple[Finding, Setting] | None = None
    by_kind: dict[str, float] = {}
    error = 0.0
    order = list(shuffled(settings(name), SeededCoins(f"{SEED} {name}")))
    for tried in count(1):
        turn, place = divmod(tried - 1, len(order))  # once more from the start, with other data
        setting = order[place]
        one = Search(setting, f"{SEED} {setting}{f' {turn}' if turn else ''}", HIGHEST.get(name))
        found = one.run(looks=looks_each)
        pairs += one.pairs
        looks, steps = looks + one.looks, steps + one.steps
        error = max(error, one.error)
        if worst is None or found.rank[:2] > worst[0].rank[:2]:
            worst = found, setting
        for kind in _kinds(setting):
            by_kind[kind] = max(by_kind.get(kind, 0.0), found.tightness)
        if pairs >= wanted:
            break
    assert worst is not None
    found, setting = worst
    row = {
        "mechanism": name,
        "settings": min(tried, len(order)),
        "pairs": pairs,
        "data_sets": looks,
        "steps": steps,
        "tightness": found.tightness,
        "broken": found.broken,
        "least": found.least,
        "most": found.most,
        "epsilon": str(setting.privacy.epsilon),
        "delta": float(setting.privacy.delta),
        "setting": str(setting),
        "pair": [list(scores) for scores in found.pair],
        "error": error,
        "by_kind": by_kind,
        "seed": SEED,
        "seconds": round(time.process_time() - began, 1),
    }
    note(str(row))
    return row


def _kinds(setting: Setting) -> Iterator[str]:
    """What tables tell apart."""
    mechanism = setting.mechanism
    yield setting.universe
    yield mechanism.neighbors
    yield f"k = {mechanism.k}"
    if mechanism.growth is not None:
        yield "growth"
    if setting.width is not None:
        yield "narrow window"
    if setting.sensitivity > 1:
        yield "sensitivity 2"


def measure(options: argparse.Namespace) -> Iterator[dict[str, list[Row]]]:
    """A row for each mechanism, stored as soon as it is there."""
    for name in options.only or MECHANISMS:
        yield {"mechanisms": [search(name, options)]}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", choices=MECHANISMS, help="this mechanism")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="ordered pairs of each, at least")


if __name__ == "__main__":
    Benchmark(
        "assurance-laws",
        "assurance.laws",
        {"laws": measure},
        settings={"seed": SEED, "pairs": PAIRS, "looks": LOOKS, "patience": PATIENCE},
        packages=("privmax", "python-flint"),
        keys={"mechanisms": ("mechanism",)},
        arguments=add_options,
    ).main()
