"""The facts about a deployment that a ledger has, for registries and reviewers.

All of it is public: budgets, costs, mechanisms, times. What privmax cannot know is left to a
person, by name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from privmax.errors import LedgerError
from privmax.ledger import Event, Ledger
from privmax.ledger.events import RELEASED, RESERVED, price_of
from privmax.privacy import REPLACE, Privacy

RULES = {
    "basic": "Basic (sequential) composition: the ε of all releases add up, and so do their δ.",
    "zcdp": "Zero-concentrated differential privacy: the ρ of all releases add up, and are "
    "converted to (ε, δ).",
    "pld": "Privacy loss distributions of all releases are convolved, with errors bounded and "
    "counted against the claim.",
}
"""The rules by which ledgers add costs up, in words."""


@dataclass(frozen=True)
class Deployment:
    """One release, or all releases of a ledger.

    Args:
        name: Of the ledger.
        cost: What the release cost, or all of them together.
        budget: What all releases together may cost.
        releases: How many were charged.
        answered: How many of them have a recorded answer.
        first: When the first was charged; None: none was.
        last: When the last was.
        datasets: What data sets were called, as far as they were named.
        commands: What was asked, and how often.
        mechanisms: What answered, and how often.
        unit: What the cost hides; None: not given.
        neighbors: The relation of neighbors; None: nothing was charged.
        rule: How costs add up.
        strict: Whether the ledger is charged before data is read.
        people: How many different users charged it.
        request: The one release that this is about; None: all of them.
        unread: How many events cannot be read, and are not counted.
    """

    name: str
    cost: Privacy
    budget: Privacy
    releases: int
    answered: int
    first: datetime | None
    last: datetime | None
    datasets: tuple[str, ...]
    commands: tuple[tuple[str, int], ...]
    mechanisms: tuple[tuple[str, int], ...]
    unit: str | None
    neighbors: str | None
    rule: str
    strict: bool
    people: int
    request: str | None = None
    unread: int = 0

    @classmethod
    def of(cls, ledger: Ledger, request: str | None = None) -> Deployment:
        """Return the facts of a ledger, or of one request in it.

        Args:
            ledger: Where releases were charged.
            request: The id of one of them; None: all.

        Raises:
            LedgerError: There is no such request.

        Examples:
            >>> from tempfile import mkdtemp
            >>> import privmax
            >>> ledger = privmax.Ledger(mkdtemp() + "/b.db", "shop", epsilon=3, delta=1e-5)
            >>> _ = privmax.select({"tea": 900}, epsilon=1, delta=1e-6, ledger=ledger)
            >>> found = Deployment.of(ledger)
            >>> found.releases, found.cost, found.unit
            (1, Privacy(epsilon=1, delta=1e-06), 'user')
        """
        if request is None:
            return cls._all(ledger)
        charged, answered = ledger.find(request)
        if charged is None:
            raise LedgerError(f"The ledger {ledger.name!r} has no request {request!r}.")
        counts = _EventCounts()
        counts.add(charged)
        charge = price_of(charged.body["price"])
        return counts.deployment(
            ledger, charge.privacy, 0 if answered is None else 1, charge.neighbors, request
        )

    @classmethod
    def _all(cls, ledger: Ledger) -> Deployment:
        counts, answered = _EventCounts(), 0
        for event in ledger.history():
            if event.fault is not None:
                counts.unread += 1
            elif event.kind == RESERVED:
                counts.add(event)
            elif event.kind == RELEASED:
                answered += 1
        return counts.deployment(ledger, None, answered, None, None)

    @property
    def is_pure(self) -> bool:
        """Whether nothing but ε was spent, or, before the first release, can be spent."""
        return not (self.cost if self.releases else self.budget).delta

    @property
    def adjacency(self) -> str:
        """The definition of neighboring data sets, in words."""
        unit = self.unit or "individual"
        if self.neighbors is None:
            return ""
        if self.neighbors == REPLACE:
            return f"Two data sets are neighbors if all records of one {unit} are exchanged."
        return f"Two data sets are neighbors if all records of one {unit} are added or left out."

    @property
    def composition(self) -> str:
        """The rule by which costs add up, in words."""
        return RULES.get(self.rule, self.rule)


class _EventCounts:
    """The counts made while events are read."""

    def __init__(self) -> None:
        self.releases = self.unread = 0
        self.first: datetime | None = None
        self.last: datetime | None = None
        self.datasets: Counter[str] = Counter()
        self.commands: Counter[str] = Counter()
        self.mechanisms: Counter[str] = Counter()
        self.people: set[str] = set()

    def add(self, event: Event) -> None:
        question = event.question
        when = datetime.fromisoformat(event.when)
        self.releases += 1
        self.first = when if self.first is None else min(when, self.first)
        self.last = when if self.last is None else max(when, self.last)
        self.people.add(event.who)
        if question.dataset is not None:
            self.datasets[question.dataset] += 1
        self.commands[question.command or "release"] += 1
        self.mechanisms[(question.mechanism or "unknown").partition("(")[0]] += 1

    def deployment(
        self,
        ledger: Ledger,
        cost: Privacy | None,
        answered: int,
        neighbors: str | None,
        request: str | None,
    ) -> Deployment:
        """Return all of it; without a cost and a relation of one release, those of the ledger."""
        whole = ledger.standing().whole
        return Deployment(
            ledger.name,
            whole.spent if cost is None else cost,
            whole.budget,
            self.releases,
            answered,
            self.first,
            self.last,
            tuple(sorted(self.datasets)),
            tuple(self.commands.most_common()),
            tuple(self.mechanisms.most_common()),
            whole.unit,
            whole.neighbors if request is None else neighbors,
            ledger.rule,
            ledger.strict,
            len(self.people),
            request,
            self.unread,
        )
