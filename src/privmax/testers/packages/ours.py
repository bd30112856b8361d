"""privmax: every mechanism of the registry, and `select`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import Parameter
from typing import Any

from privmax.errors import ParameterError
from privmax.mechanisms.contract import Mechanism
from privmax.mechanisms.registry import MECHANISMS
from privmax.noise.coins import Coins
from privmax.privacy import ADD_REMOVE
from privmax.profile import Profile
from privmax.testers.claims import Claim
from privmax.testers.enumeration import Bracket, walk_coins
from privmax.testers.patterns import Vector, neighbors
from privmax.testers.subjects import Subject
from privmax.testing import SeededCoins

CLOSED = [(1, 1, 1, 1), (3, 1, 0, 0)]
OPEN = [(1, 0, 0, 0), (4, 4, 0, 0), (8, 2, 2, 2)]
"""Scores to start from; in an open universe no one has seen those at 0."""


def subjects() -> list[Subject]:
    """Return every mechanism of the registry, at its own cost."""
    return [subject_of(name, _make(name)) for name in MECHANISMS]


def subject_of(
    name: str,
    mechanism: Mechanism,
    *,
    package: str = "privmax",
    monotone: bool | None = None,
    source: str = "",
    closed: bool | None = None,
) -> Subject:
    """Return a mechanism of ours, at the cost that it states.

    Args:
        name: What to call it.
        mechanism: What draws.
        package: Whose it is said to be.
        monotone: Whether scores move one way only; None: as its neighbor relation says.
        source: Where a fault is described.
        closed: Whether the universe is closed; None: if it costs no delta.
    """
    own = mechanism.privacy()
    claim = Claim.of(epsilon=own.epsilon, delta=own.delta)
    is_closed = claim.delta == 0 if closed is None else closed
    one_way = mechanism.neighbors == ADD_REMOVE if monotone is None else monotone
    pairs = neighbors(
        CLOSED if is_closed else OPEN, monotone=one_way, floor=None if is_closed else 0
    )
    if getattr(mechanism, "growth", None) == 1:
        pairs = [pair for pair in pairs if _distance(*pair) == 1]
    draw = partial(draw_place, mechanism, is_closed)
    return Subject(package, name, claim, pairs, run_on_seeds(draw), walk_scripts(draw), source)


def run_on_seeds(draw: Callable[[Vector, Coins], Any]) -> Callable[[Vector, int], Any]:
    """Return a draw from coins as one from seeds."""
    return lambda scores, seed: draw(scores, SeededCoins(seed))


def walk_scripts(draw: Callable[[Vector, Coins], Any]) -> Callable[[Any], Bracket]:
    """Return a draw from coins on the likeliest scripts of coins."""
    return lambda scores: walk_coins(partial(draw, scores))


def draw_place(mechanism: Mechanism, closed: bool, scores: Vector, coins: Coins) -> object:
    """Return which place was drawn, with whatever is released beside it; None: nothing.

    Examples:
        >>> from privmax import Exponential
        >>> draw_place(Exponential(epsilon=100), True, (0, 9), SeededCoins(1))
        1
    """
    listed = [score for score in scores if score or closed]
    profile = Profile(
        [(score, listed.count(score)) for score in set(listed)],
        universe=len(scores) if closed else None,
    )
    drawn = mechanism.draw(profile, coins)
    place = None if drawn.score is None else _place(scores, drawn.score, drawn.index, drawn.below)
    return (place, tuple(drawn.diagnostics.items())) if drawn.diagnostics else place


def _place(scores: Sequence[int], score: int, index: int, below: bool) -> int:
    equal = [place for place, own in enumerate(scores) if own == score or (below and own < score)]
    return equal[index]


def _distance(left: Vector, right: Vector) -> int:
    return sum(one != other for one, other in zip(left, right, strict=True))


def _make(name: str) -> Mechanism:
    """Make the example of a mechanism of the registry."""
    entry = MECHANISMS[name]
    known = entry.example_options()
    missing = [
        option
        for option, parameter in entry.parameters.items()
        if parameter.default is Parameter.empty and option not in known
    ]
    if missing:
        raise ParameterError(
            "of", "privmax", f"{name} requires {', '.join(missing)}, and its example has no value",
            "Add one to its entry in privmax.mechanisms.registry.",
        )  # fmt: skip
    return entry.make_example()
