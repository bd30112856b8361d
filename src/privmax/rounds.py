"""The k best of a closed universe by k rounds of the exponential mechanism.

`auto` asks which mechanism releases all k with the least lead. Where scores are close to each other
no item leads by that much, and what counts is how many of the k come out: rounds then find more of
them than one draw over sets does (docs/howto/markers.md).
"""

from __future__ import annotations

from typing import Any

from privmax.choice import Choice, auto
from privmax.mechanisms.exponential import Exponential
from privmax.numbers import Number, positive, probability
from privmax.privacy import REPLACE

WHY = "scores are close to each other, and k rounds find more of the best than one draw over sets"
"""The reason for several draws one after the other."""


def choose_rounds(*, epsilon: Number, delta: Number, k: int, **options: Any) -> Choice:
    """Choose rounds for more than one item, and what `auto` chooses for one.

    Scores move either way: rounds use the constants for that.

    Args:
        epsilon: What all of them cost.
        delta: Probability with which the guarantee may fail.
        k: How many items are released.
        options: What `auto` takes beside.

    Examples:
        >>> choice = choose_rounds(epsilon=1, delta="1e-6", k=5, universe=1000)
        >>> type(choice.mechanism).__name__
        'Exponential'
    """
    if k == 1:
        return auto(epsilon=epsilon, delta=delta, k=k, **options)
    rounds = Exponential(
        epsilon=positive("epsilon", epsilon),
        delta=probability("delta", delta),
        neighbors=REPLACE,
        k=k,
    )
    return Choice(rounds, WHY)
