"""The interface of every source of candidates.

Sources are data in memory or in an engine, itemsets, hypotheses, models.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from privmax.encoding import encode
from privmax.errors import UnsupportedError
from privmax.mechanisms.contract import Outcome
from privmax.profile import Profile


class Source(Protocol):
    """Candidates with a score each. It alone knows what they are called.

    Attributes:
        profile: How many candidates are at each score.
        step: What one unit of the profile is worth in those of the scores.
    """

    @property
    def profile(self) -> Profile: ...

    @property
    def step(self) -> Fraction: ...

    def names(self, outcomes: Sequence[Outcome]) -> list[Any]:
        """Return the item each outcome stands for, all looked up at once; None for no answer.

        Whether that fails must not depend on which items they are.
        """
        ...

    def counts(self, outcomes: Sequence[Outcome]) -> list[int]:
        """Return the score of the candidate of each outcome, in units of the profile.

        It is exact also where a mechanism saw it clipped. No outcome may be without an answer.
        Scores are private: add noise to them.
        """
        ...

    def encode(self, item: Any) -> Any:
        """Return an item that was named, as JSON for a ledger.

        The question reads it, without data.
        """
        ...

    def close(self) -> None:
        """Let go of what the source holds."""
        ...


class PlainSource:
    """A source whose items are written down as they are, and that holds nothing."""

    may_be_too_many = False
    """Whether candidates near the best may be more than can be listed, which is a `WorkError`."""

    def names(self, outcomes: Sequence[Outcome]) -> list[Any]:
        """Return the item each outcome stands for; None for no answer."""
        raise NotImplementedError("a source names what is drawn from it")

    def name(self, outcome: Outcome) -> Any:
        """Return the item an outcome stands for; None for no answer."""
        return self.names([outcome])[0]

    def counts(self, outcomes: Sequence[Outcome]) -> list[int]:
        """Refused, unless a source says what it counts."""
        raise UnsupportedError("The candidates of this source have no counts to release.")

    def encode(self, item: Any) -> Any:
        """Return an item that was named, as JSON."""
        return encode(item)

    def close(self) -> None:
        """There is nothing to close: the data stays with its owner."""
