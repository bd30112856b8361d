"""What every source of candidates answers: data in memory or in an engine, itemsets, hypotheses,
models.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

from privmax.encoding import encode
from privmax.mechanisms.contract import Outcome
from privmax.profile import Profile


class Source(Protocol):
    """Candidates with a score each. It alone knows what they are called.

    profile   how many candidates stand at each score
    step      what one unit of the profile is worth in those of the scores
    """

    @property
    def profile(self) -> Profile: ...

    @property
    def step(self) -> Fraction: ...

    def name(self, outcome: Outcome) -> Any:
        """The item an outcome stands for; None for no answer."""
        ...

    def count(self, outcome: Outcome) -> int:
        """The score of whom an outcome stands for, in units of the profile, whatever a mechanism
        saw of it. It is private: noise belongs on it.
        """
        ...

    def encode(self, item: Any) -> Any:
        """An item that was named, as JSON for a ledger. `Terms.decode` reads it, without data."""
        ...

    def close(self) -> None:
        """Let go of what the source holds."""
        ...


class PlainSource:
    """A source whose items are written down as they are, and that holds nothing."""

    def encode(self, item: Any) -> Any:
        """An item that was named, as JSON."""
        return encode(item)

    def close(self) -> None:
        """There is nothing to close: the data stays with its owner."""
