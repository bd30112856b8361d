"""Guards behind the top candidates, so that none slips out of them unnoticed.

A guard of the top ℓ weighs as much as all candidates that one record can remove from them, times
1/delta. Drawn, it releases nothing. `Guards` are the public ranks that `SharpMargin` may pick from.

Proof:      docs/proofs/limited-domain.md, docs/proofs/sharp-margin.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from flint import arb

from privmax.errors import ParameterError
from privmax.mechanisms.weights import clip_width, decay
from privmax.noise.balls import ball
from privmax.numbers import Number, nonnegative, open_probability, positive, whole
from privmax.parameters import Exact, Parameter, Parameters, parameter
from privmax.privacy import Neighbors, drift
from privmax.profile import Window


def read_ranks(name: str, value: Sequence[int], remedy: str = "") -> tuple[int, ...]:
    """Read increasing ranks, at least one.

    Args:
        name: What they are, for the error.
        value: The ranks.
        remedy: What the error says to do.

    Raises:
        ParameterError: There are none, or they do not increase, or one is no whole number.

    Examples:
        >>> read_ranks("ranks", [1, 4, 16])
        (1, 4, 16)
    """
    ranks = tuple(whole(name, rank) for rank in value)
    if not ranks or any(high <= low for low, high in pairwise(ranks)):
        raise ParameterError(name, ranks, "they must be increasing, and at least one", remedy)
    return ranks


def _read_prior(name: str, value: Sequence[Number], ranks: tuple[int, ...]) -> tuple[Fraction, ...]:
    """A positive weight for each rank."""
    if len(value) != len(ranks):
        raise ParameterError(name, value, f"it needs one weight for each of the {len(ranks)} ranks")
    return tuple(positive(name, weight) for weight in value)


class Guards(Parameters, kw_only=False):
    """The public ranks of guards, and how much each is favored before any data is seen.

    Args:
        ranks: Increasing.
        prior: One positive weight a rank; only ratios matter.
        share: Part of epsilon spent on picking the rank.
        full: Weight of FULL in a closed universe, on the scale of `prior`; 0: never, unless no rank
            is below the size of the universe.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> Guards((1, 32), (1, 1), share="0.1")
        Guards(ranks=(1, 32), prior=(1, 1), share=0.1, full=0)
    """

    ranks: Parameter[Sequence[int], tuple[int, ...]] = parameter(read_ranks)
    prior: Parameter[Sequence[Number], tuple[Fraction, ...]] = parameter(
        _read_prior, depends_on="ranks"
    )
    _: KW_ONLY
    share: Exact = parameter(open_probability)
    full: Exact = parameter(nonnegative, default=0)


FEW = Guards((1 << 10, 1 << 20, 1 << 40), ("0.96", "0.03", "0.01"), share="0.08")
"""The default: near maximizers are rarely more than a thousand."""

DYADIC = Guards(
    [1 << j for j in range(21)], [Fraction(1, j + 1) for j in range(21)], share="0.2", full=2
)
"""No opinion on their number, up to a million; in a closed universe FULL competes."""


def slips(rank: int, growth: int | None, neighbors: Neighbors) -> int:
    """Return how many candidates can leave the top `rank` when one record changes.

    Clipping is left aside: a moving floor can make all of them leave.

    Args:
        rank: How many are at the top.
        growth: The bound on how many candidates one record touches; None: no bound.
        neighbors: The relation.

    Examples:
        >>> slips(1000, None, "replace"), slips(1000, 3, "replace"), slips(1000, 3, "add-remove")
        (1000, 6, 3)
    """
    return rank if growth is None else min(rank, drift(neighbors) * growth)


def guard_weight(
    window: Window,
    rank: int,
    slips: int,
    *,
    rate: Fraction,
    epsilon: Fraction,
    delta: Fraction,
    floor: int | None,
) -> arb:
    """Return the weight of the guard of the top `rank`, where the best candidate weighs 1.

    Args:
        window: The clipped profile.
        rank: How many the guard stands behind.
        slips: How many of them can leave when one record changes.
        rate: At what rate weight falls with depth.
        epsilon: That of the draw.
        delta: The probability that the guard leaves to all who slip.
        floor: With a growth bound the depth of the clip: a moving floor can make all of the top
            `rank` slip, whatever the growth. Otherwise None.

    Examples:
        >>> from privmax.profile import Profile
        >>> one = Fraction(1)
        >>> window = Profile([(9, 1), (8, 1)]).window(5)
        >>> guard = guard_weight(window, 1, 1, rate=one, epsilon=one, delta=one / 10, floor=None)
        >>> guard.contains(10)  # ten times as much as the second, who may rise by one
        True
    """
    guard = ball(slips / delta) * decay(rate, window.depth(rank + 1))
    if floor is not None:
        guard += ball(rank / delta) * decay(rate, floor)
    return guard * ball(epsilon).exp()


@lru_cache(maxsize=256)
def guard_width(epsilon: Fraction, delta: Fraction, rank: int, unit: int) -> int:
    """Return a public width at whose floor the guard of the top `rank` hardly weighs anything.

    That is at most CLIP_LOSS of the best candidate.

    Args:
        epsilon: That of the draw.
        delta: The probability that the guard leaves to all who slip.
        rank: How many the guard stands behind.
        unit: By how much two scores can drift apart between neighbors.

    Examples:
        >>> guard_width(Fraction(1), Fraction(1, 1000), 10, 1)
        27
    """
    return unit + clip_width(unit / epsilon, rank / delta)
