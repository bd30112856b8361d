"""What is searched for broken guarantees: every mechanism of the registry, with small parameters.

A setting is a mechanism and the data that it meets: a universe, a sensitivity, and perhaps a window
that is forced to be narrow, so that a moving floor is felt by small data sets. Any public width is
private (docs/proofs/clipping.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import product
from typing import Any

from privmax import DYADIC, Guards, Profile
from privmax.auditing import Laws, Scores
from privmax.mechanisms.contract import Mechanism
from privmax.mechanisms.registry import MECHANISMS
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below
from privmax.privacy import ADD_REMOVE, REPLACE, Privacy

EPSILONS = ("0.1", "1", "4")
DELTAS = ("1e-6", "0.01", "0.3")
NARROW = (None, 1, 3)
"""Forced widths; None: the mechanism's own."""

EVERYWHERE: Mapping[str, Sequence[Any]] = {
    "epsilon": EPSILONS,
    "delta": DELTAS,
    "neighbors": (ADD_REMOVE, REPLACE),
    "k": (1, 2, 3),
    "growth": (None, 1, 2),
}
"""What a parameter is tried with, where a mechanism has it."""

PAPER: Mapping[str, Sequence[Any]] = {
    "epsilon": ("6", "20"),
    "cap": (3, 5),
    "constants": ("printed", "corrected"),
}
"""The paper's noise is so large that only such a cost has small laws."""

OWN: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "exponential": {"delta": (0, "0.01")},
    "permute-and-flip": {"delta": (0, "0.01")},
    "joint-exponential": {"k": EVERYWHERE["k"]},
    "set-margin": {"delta": (0, *DELTAS)},
    "large-margin": PAPER,
    "large-margin-truncated": PAPER,
    "sharp-margin": {
        "guards": (
            DYADIC,
            Guards((1, 2), (1, 1), share="0.2"),
            Guards((1, 2), (1, 1), share="0.2", full=1),
            Guards((3,), (1,), share="0.01"),
        )
    },
    "nested-margin": {"ranks": ((1, 3), (1, 2, 4), (2, 3), (1, 4, 16))},
    "limited-domain": {"rank": (1, 2, 3)},
    "choosing": {"growth": (1, 2, 3)},
}
"""What only this mechanism is tried with."""

READS_ALL = ("set-margin", "choosing")
"""They read down to a rank or to 0, and have no window that could be forced."""


@dataclass(frozen=True)
class Setting:
    """A mechanism, and what data it meets.

    width   of the window that is forced; None: the mechanism's own
    claim   the cost that it is held to; None: its own
    """

    mechanism: Mechanism
    universe: str = "closed"
    sensitivity: int = 1
    width: int | None = None
    claim: Privacy | None = None

    @property
    def is_open(self) -> bool:
        return self.universe == "open"

    @property
    def privacy(self) -> Privacy:
        return self.mechanism.privacy() if self.claim is None else self.claim

    def laws(self) -> Laws:
        return ForcedLaws(self)

    def __str__(self) -> str:
        parts = [repr(self.mechanism), self.universe]
        parts += [f"sensitivity {self.sensitivity}"] * (self.sensitivity > 1)
        parts += [] if self.width is None else [f"window {self.width}"]
        return ", ".join(parts)


class ForcedProfile(Profile):
    """A profile that shows no more than a forced width."""

    forced = 0

    def window(self, width: int, rank: int = 1) -> Any:
        return super().window(min(width, self.forced), rank)


class ForcedLaws(Laws):
    """The laws of a setting, on profiles whose window is forced where it says so."""

    def __init__(self, setting: Setting) -> None:
        mechanism, self._width = setting.mechanism, setting.width
        if setting.width is not None and hasattr(mechanism, "_clip"):
            # Its guards know where the floor is, so that it must choose the width itself.
            mechanism, self._width = forced(mechanism, setting.width), None
        super().__init__(mechanism, setting.is_open, setting.sensitivity)

    def profile(self, scores: Scores) -> Profile:
        made = super().profile(scores)
        if self._width is not None:
            made.__class__ = ForcedProfile
            made.forced = self._width  # type: ignore[attr-defined]
        return made


def forced(mechanism: Mechanism, width: int) -> Mechanism:
    """The same mechanism with a clip of this width."""
    kind = type(mechanism)
    clip = {"_clip": lambda self, profile: width}
    narrow: Any = type(f"Narrow{kind.__name__}", (kind,), clip)
    made: Mechanism = narrow(
        **{name: getattr(mechanism, name) for name in signature(kind).parameters}
    )
    return made


def settings(name: str) -> list[Setting]:
    """Every setting of a mechanism, most of them more than a search has time for."""
    entry = MECHANISMS[name]
    needed = {option: (value,) for option, value in entry.requires.items()}
    own = {**EVERYWHERE, **needed, **OWN.get(name, {})}
    options = [option for option in entry.parameters if option in own]
    found: list[Setting] = []
    for values in product(*(own[option] for option in options)):
        given = dict(zip(options, values, strict=True))
        if entry.pure and given.get("delta") and given.get("k", 1) == 1:
            continue  # a single draw has none
        mechanism = entry.load()(**given)
        found += _meetings(name, mechanism)
    return found


def _meetings(name: str, mechanism: Mechanism) -> Iterator[Setting]:
    """The data that a mechanism is to meet."""
    is_closed = MECHANISMS[name].needs_closed or not mechanism.privacy().delta
    universes = ("closed",) if is_closed else ("closed", "open")
    widths = (None,) if name in READS_ALL else NARROW
    for universe, sensitivity, width in product(universes, (1, 2), widths):
        yield Setting(mechanism, universe, sensitivity, width)


def shuffled(found: Sequence[Setting], coins: Coins) -> list[Setting]:
    """In random order."""
    left = list(found)
    return [left.pop(uniform_below(len(left), coins)) for _ in found]
