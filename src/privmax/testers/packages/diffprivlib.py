"""diffprivlib: its mechanisms for one number, one category or a list of utilities.

Each is claimed to cost the epsilon and delta that it was made with. Its generator is a parameter,
so mechanisms that only compare uniform numbers are also enumerated.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from privmax.testers.claims import Claim
from privmax.testers.enumeration import Bracket, Uniforms, walk_uniforms
from privmax.testers.patterns import Vector, neighbors
from privmax.testers.search import Pair
from privmax.testers.subjects import Subject

PACKAGE = "diffprivlib"

EXACT: dict[str, Any] = {"epsilon": 1.0, "sensitivity": 1}
DELTA = 0.05
BOUNDS = {"lower": 0, "upper": 4}
RUNS = 400
"""Courses that are followed on each data set."""

PAIRS: list[Pair] = [(0, 1), (2, 3)]


def subjects() -> list[Subject]:
    """Return all that the installed version has."""
    from diffprivlib import mechanisms

    return [*_selections(mechanisms), *_numbers(mechanisms), *_categories(mechanisms)]


def _selections(mechanisms: Any) -> Iterator[Subject]:
    starts = [(1, 1, 1, 1), (3, 1, 0, 0)]
    for name in ("Exponential", "PermuteAndFlip"):
        for monotone in (True, False):
            make = partial(getattr(mechanisms, name), **EXACT, monotonic=monotone)

            def run(scores: Vector, seed: int, make: Any = make) -> Any:
                return int(make(utility=list(scores), random_state=None).randomise())

            def list_law(scores: Vector, make: Any = make) -> Bracket:
                return walk_uniforms(partial(_follow, make(utility=list(scores)), None), runs=RUNS)

            pairs = list(neighbors(starts, monotone=monotone))
            title = f"{name}{', monotonic' * monotone}"
            yield Subject(PACKAGE, title, Claim.of(epsilon=1), pairs, run, list_law)


def _numbers(mechanisms: Any) -> Iterator[Subject]:
    paid = {**EXACT, "delta": DELTA}
    small = {**EXACT, "epsilon": 0.9, "delta": DELTA}  # the Gaussian mechanism takes no more than 1
    made: dict[str, dict[str, Any]] = {
        "Laplace": EXACT,
        "LaplaceTruncated": {**EXACT, **BOUNDS},
        "LaplaceFolded": {**EXACT, **BOUNDS},
        "LaplaceBoundedDomain": {**EXACT, **BOUNDS},
        "LaplaceBoundedNoise": paid,
        "Geometric": EXACT,
        "GeometricTruncated": {**EXACT, **BOUNDS},
        "GeometricFolded": {**EXACT, **BOUNDS},
        "Gaussian": small,
        "GaussianAnalytic": paid,
        "GaussianDiscrete": paid,
        "Staircase": EXACT,
        "Snapping": {**EXACT, **BOUNDS},
        "Uniform": {"delta": DELTA, "sensitivity": 1},
    }
    for name, options in made.items():
        if hasattr(mechanisms, name):
            mechanism = getattr(mechanisms, name)(**options)
            claim = Claim.of(epsilon=options.get("epsilon", 0), delta=options.get("delta", 0))
            yield Subject(PACKAGE, name, claim, PAIRS, _randomise(mechanism))


def _categories(mechanisms: Any) -> Iterator[Subject]:
    binary = mechanisms.Binary(epsilon=1, value0="a", value1="b")
    listed = partial(_enumerate, binary)
    yield Subject(PACKAGE, "Binary", Claim.of(epsilon=1), [("a", "b")], _randomise(binary), listed)
    likes = [["a", "b", 1], ["a", "c", 2], ["b", "c", 2]]
    several = mechanisms.ExponentialCategorical(epsilon=1, utility_list=likes)
    yield Subject(
        PACKAGE, "ExponentialCategorical", Claim.of(epsilon=1), [("a", "b"), ("a", "c")],
        _randomise(several),
    )  # fmt: skip


def _randomise(mechanism: Any) -> Callable[[Any, int], Any]:
    return lambda data, seed: mechanism.randomise(data)


def _enumerate(mechanism: Any, data: Any) -> Bracket:
    return walk_uniforms(partial(_follow, mechanism, data), runs=RUNS)


def _follow(mechanism: Any, data: Any, uniforms: Uniforms) -> Any:
    """Draw with a generator that follows a script."""
    scripted = mechanism.copy()  # it is sampled, too, with the generator that it has
    scripted._rng = _Generator(uniforms)
    return scripted.randomise(data)


class _Generator(secrets.SystemRandom):
    """Uniform reals of a script, as the kind of generator that diffprivlib takes."""

    def __init__(self, uniforms: Uniforms) -> None:
        super().__init__()
        self._uniforms = uniforms

    def random(self) -> Any:
        return self._uniforms.random()
