"""The interface of the published methods, and the small values they answer with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privmax.noise.coins import Coins
from privmax.parameters import Parameters
from privmax.privacy import Neighbors, Privacy

if TYPE_CHECKING:
    from privmax.itemsets.baskets import Baskets
    from privmax.itemsets.miner.window import Miner


@dataclass(frozen=True, repr=False)
class Problem:
    """The private rows, and what is asked of them: the `k` most frequent itemsets of some sizes.

    Args:
        miner: Counts the itemsets of any sizes in the same rows.
        rows: Their codes 0 … items−1 are the universe, declared and never computed from the rows.
    """

    miner: Callable[[range], Miner]
    rows: Baskets
    sizes: range
    k: int

    def __repr__(self) -> str:
        return "Problem(<private>)"


@dataclass(frozen=True)
class Found:
    """A released itemset with its noisy support, or None where a method gives none.

    Examples:
        >>> Found((0, 2), 17)
        Found(codes=(0, 2), support=17)
    """

    codes: tuple[int, ...]
    support: int | None


class Method(Parameters, ABC):
    """A published way to release frequent itemsets."""

    @property
    @abstractmethod
    def neighbors(self) -> Neighbors:
        """The relation its cost is stated for."""

    @property
    def k(self) -> int:
        """It is told with the problem how many to release, and is not made for a number."""
        return 1

    @property
    def growth(self) -> int | None:
        """No bound on how many itemsets one record touches is assumed."""
        return None

    @property
    def bounded_range(self) -> bool:
        """Nothing is known of the range of its privacy loss."""
        return False

    @abstractmethod
    def draw(self, problem: Problem, coins: Coins) -> list[Found]:
        """Release itemsets: the best first, at most k."""

    @abstractmethod
    def privacy(self) -> Privacy:
        """Return what it costs."""
