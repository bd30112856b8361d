"""What the published methods are asked, and the small values they answer with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from privmax.noise.coins import Coins
from privmax.privacy import Neighbors, Privacy

if TYPE_CHECKING:
    from privmax.itemsets.baskets import Baskets
    from privmax.itemsets.miner.window import Miner


@dataclass(frozen=True, repr=False)
class Problem:
    """The private rows, and what is asked of them: the `k` most frequent itemsets of some sizes.

    miner   counts the itemsets of any sizes in the same rows
    rows    their codes 0 … items−1 are the universe, declared and never read off the rows
    """

    miner: Callable[[range], Miner]
    rows: Baskets
    sizes: range
    k: int

    def __repr__(self) -> str:
        return "Problem(<private>)"


@dataclass(frozen=True)
class Found:
    """An itemset that was released; its support with the noise that was paid for, None where a
    method gives none.
    """

    codes: tuple[int, ...]
    support: int | None


class Method(Protocol):
    """A published way to release frequent itemsets."""

    @property
    def neighbors(self) -> Neighbors:
        """The relation its price is stated for."""
        ...

    def draw(self, problem: Problem, coins: Coins) -> list[Found]:
        """Release: the best first, at most k."""
        ...

    def privacy(self) -> Privacy:
        """At what price."""
        ...
