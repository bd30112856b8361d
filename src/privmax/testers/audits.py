"""One audit of one subject: exact where that can be, and statistical."""

from __future__ import annotations

from dataclasses import dataclass

from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number
from privmax.testers.enumeration import Enumeration, compare_brackets
from privmax.testers.search import Finding, Pair, search_pairs
from privmax.testers.subjects import Subject


@dataclass(frozen=True)
class Verdict:
    """The result of an audit.

    Attributes:
        subject: What was audited.
        finding: What the statistical testers found; None: they were not needed.
        enumeration: What the worst pair needs exactly; None: it cannot be enumerated.
        pair: That pair.
    """

    subject: Subject
    finding: Finding | None
    enumeration: Enumeration | None = None
    pair: Pair | None = None

    @property
    def broken(self) -> bool:
        """Whether the claim is broken."""
        return any(
            result is not None and result.broken for result in (self.finding, self.enumeration)
        )


def audit_subject(
    subject: Subject,
    *,
    samples: int = 20_000,
    confidence: Number = "0.99",
    enumerated: bool = True,
    coins: Coins = SYSTEM,
) -> Verdict:
    """Audit a subject on all of its pairs.

    Args:
        subject: What to audit.
        samples: Runs that the statistical testers make at most.
        confidence: With which a violation that they report is one.
        enumerated: Whether to enumerate first, where that can be.
        coins: Where seeds come from.

    Returns:
        What was found. Finding no violation proves nothing.

    Examples:
        >>> from privmax.testers.subjects import subjects_of
        >>> audit_subject(subjects_of("privmax")[0], samples=1000, enumerated=False).broken
        False
    """
    worst: tuple[Enumeration, Pair] | None = None
    if enumerated and subject.enumerate is not None:
        worst = _enumerate(subject)
        if worst[0].broken:
            return Verdict(subject, None, *worst)
    finding = search_pairs(
        subject.run, subject.pairs, subject.claim,
        samples=samples, confidence=confidence, coins=coins,
    )  # fmt: skip
    return Verdict(subject, finding, *(worst or ()))


def _enumerate(subject: Subject) -> tuple[Enumeration, Pair]:
    """Return the pair that needs most, in the worse direction."""
    assert subject.enumerate is not None
    laws = {data: subject.enumerate(data) for data in dict.fromkeys(sum(subject.pairs, ()))}
    compared = [
        (compare_brackets(laws[left], laws[right], subject.claim), (left, right))
        for pair in subject.pairs
        for left, right in (pair, pair[::-1])
    ]
    return max(compared, key=lambda row: (row[0].least, row[0].most))
