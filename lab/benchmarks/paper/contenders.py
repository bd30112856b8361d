"""Who is compared, at what price, and how each is drawn."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from lab.benchmarks.pictures import BLUE, GREEN, ORANGE, PURPLE, RED, SKY
from privmax import (
    DYADIC,
    Exponential,
    GapTest,
    LargeMargin,
    LargeMarginTruncated,
    LimitedDomain,
    MaxOfLaplaces,
    NestedMargin,
    PermuteAndFlip,
    SharpMargin,
    StableMaximum,
)
from privmax.mechanisms.contract import Mechanism
from privmax.privacy import REPLACE

EPSILON: Final = 1
DELTA: Final = "1e-6"
PRICE: Final[dict[str, Any]] = {"epsilon": EPSILON, "delta": DELTA, "neighbors": REPLACE}
"""One price for every picture; "replace" is the paper's relation."""


@dataclass(frozen=True)
class Contender:
    """A mechanism with the style of its line.

    make     it, for so many near maximizers (only the limited domain is told), at a price
    pure     whether it takes no delta, and therefore serves closed universes only
    single   whether it serves a single winner only
    """

    label: str
    make: Callable[..., Mechanism]
    colour: str
    dashes: str = "-"
    width: float = 1.4
    pure: bool = False
    single: bool = False

    def at(self, *, near: int = 1, **price: Any) -> Mechanism:
        """The mechanism at the price of all pictures, or another."""
        options = PRICE | price
        if self.pure:
            del options["delta"]
        if self.make is LimitedDomain:
            options["rank"] = near
        return self.make(**options)

    def style(self) -> dict[str, Any]:
        """How its line is drawn: thick ones over thin ones."""
        return {
            "color": self.colour,
            "linestyle": self.dashes,
            "linewidth": self.width,
            "zorder": 2 + self.width / 10,
        }


def _dyadic(**options: Any) -> SharpMargin:
    return SharpMargin(guards=DYADIC, **options)


CONTENDERS: Final[dict[str, Contender]] = {
    "exponential": Contender("exponential", Exponential, ORANGE, "--", 1.0, pure=True),
    "max-of-laplaces": Contender("max of Laplaces", MaxOfLaplaces, ORANGE, ":", 1.0, pure=True),
    "permute-and-flip": Contender("permute-and-flip", PermuteAndFlip, ORANGE, pure=True),
    "large-margin": Contender("the paper's", LargeMargin, BLUE, width=2.0),
    "large-margin-truncated": Contender(
        "the paper's, truncated", LargeMarginTruncated, BLUE, "--", 1.0
    ),
    "sharp-margin": Contender("sharp margin", SharpMargin, GREEN),
    "sharp-margin-dyadic": Contender("sharp margin, dyadic", _dyadic, GREEN, "--"),
    "nested-margin": Contender("nested margin", NestedMargin, RED, width=2.0),
    "limited-domain": Contender("limited domain, told ℓ", LimitedDomain, PURPLE),
    "stable-maximum": Contender("stable maximum", StableMaximum, SKY, "--", 1.0, single=True),
    "gap-test": Contender("gap test", GapTest, SKY, single=True),
}
"""Every mechanism that draws one item and needs no bound on what a record touches, which `Choosing`
does.
"""


def chosen(options: argparse.Namespace) -> list[str]:
    """All of them, or two for a quick run."""
    return ["permute-and-flip", "nested-margin"] if options.quick else list(CONTENDERS)
