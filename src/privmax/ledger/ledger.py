"""`Ledger`: a named privacy budget that survives crashes, retries and many processes at once.

What each method does lives in the file of its subject: `opening.py`, `charging.py`, `reading.py`,
`accounts.py` and `parts.py`. All of them work on a `Chain`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from privmax.errors import ParameterError
from privmax.ledger import accounts, charging, opening, parts, reading
from privmax.ledger.batch import Batch
from privmax.ledger.chain import Chain
from privmax.ledger.commits import LedgerEntry, submit
from privmax.ledger.events import Charge, Event, Fault, label
from privmax.ledger.parts import LedgerPart
from privmax.ledger.reading import Standing
from privmax.ledger.reservation import Reservation
from privmax.ledger.rules import BASIC, find_rule, rule_for
from privmax.numbers import Number, whole
from privmax.privacy import Privacy

if TYPE_CHECKING:
    from privmax.ledger.postgres import Session
    from privmax.ledger.request import Request

__all__ = ["Ledger", "Reservation", "Standing"]


class Ledger:
    """A privacy budget: every release is charged, durably, before it is drawn.

    Every release follows one order: `charge` (committed durably), draw, `Reservation.record`, and
    hand out what that returns. After a crash in between the charge stays spent, and repeating the
    request id costs nothing more. Threads may share a handle, and it works after a fork.

    Args:
        where: A file, which is created with mode 600 if missing, or the URL of a PostgreSQL
            database.
        name: Name of the ledger; one file or database can have several.
        budget: Creates the ledger if there is none; otherwise it must equal its first budget.
            Without a budget, a ledger that does not exist is refused.
        epsilon: The budget in two numbers, instead of `budget`.
        delta: The second of them; by default 0.
        rule: Composition rule: "basic" (default), "zcdp" or "pld"; cannot be changed later.
        strict: Whether releases are charged before their data is read, so that bad data gives no
            answer; cannot be changed later (default: no). See `privmax help promises`.
        who: Who is charging; by default the user of the system or of the database.

    Raises:
        LedgerError: There is no such ledger, it was created with another budget, rule or
            strictness, or it cannot be used now.
        ParameterError: An argument is out of bounds.

    Examples:
        >>> from tempfile import mkdtemp
        >>> where = mkdtemp() + "/b.db"
        >>> Ledger(where, "team", epsilon=1, delta=1e-5).remaining  # created now
        Privacy(epsilon=1, delta=1e-05)
        >>> Ledger(where, "team").budget  # opened
        Privacy(epsilon=1, delta=1e-05)
        >>> Ledger(where, "team", epsilon=2)
        Traceback (most recent call last):
        ...
        privmax.errors.LedgerError: The ledger 'team' was created with a budget of epsilon 1, ...
    """

    def __init__(
        self,
        where: str | Path,
        name: str = "default",
        budget: Privacy | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rule: str | None = None,
        strict: bool | None = None,
        who: str | None = None,
    ) -> None:
        label("name", name)
        find_rule(BASIC if rule is None else rule)
        budget = opening.read_budget(budget, epsilon, delta)
        if budget is not None:
            opening.check_privacy("budget", budget)
        self._attach(where, name, who)
        with opening.closed_on_error(self._store):
            if budget is not None:
                made_with = BASIC if rule is None else rule
                opening.create(self._chain, budget, made_with, strict=bool(strict))
            opening.check_origin(self._chain, budget, rule, strict)

    @classmethod
    def at(cls, where: str | Path, name: str = "default", *, who: str | None = None) -> Self:
        """Name a ledger without looking for it yet.

        It is opened by the first call that needs it, within the transaction of that call, which
        raises a LedgerError where there is no such ledger.

        Args:
            where: As in `Ledger`.
            name: As in `Ledger`.
            who: As in `Ledger`.

        Returns:
            The handle.
        """
        ledger = cls.__new__(cls)
        ledger._attach(where, name, who)
        return ledger

    @classmethod
    def create(
        cls,
        where: str | Path,
        name: str = "default",
        *,
        budget: Privacy | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rule: str = BASIC,
        strict: bool = False,
        who: str | None = None,
    ) -> Self:
        """Make a new ledger; a name that exists is refused.

        Args:
            where: As in `Ledger`; so is all else.
            name: Name of the ledger.
            budget: The budget.
            epsilon: The budget in two numbers, instead of `budget`.
            delta: The second of them; by default 0.
            rule: How costs add up.
            strict: Whether releases are charged before their data is read.
            who: Who is charging.

        Returns:
            The handle.

        Raises:
            LedgerError: There is one of this name, or it cannot be made here.
            ParameterError: An argument is out of bounds.
        """
        label("name", name)
        budget = opening.read_budget(budget, epsilon, delta)
        if budget is None:
            allowed = "a new ledger needs one"
            raise ParameterError("budget", None, allowed, "For example epsilon=3, delta=1e-5.")
        opening.check_privacy("budget", budget)
        rule_for(rule, budget)
        return cls._make(where, name, budget, rule, who, bool(strict))

    @classmethod
    def _make(
        cls,
        where: str | Path,
        name: str,
        budget: Privacy,
        rule: str,
        who: str | None,
        strict: bool,
        part: LedgerPart | None = None,
    ) -> Self:
        ledger = cls.at(where, name, who=who)
        with opening.closed_on_error(ledger._store):
            opening.create_new(ledger._chain, budget, rule, strict=strict, part=part)
        return ledger

    def _attach(self, where: str | Path, name: str, who: str | None) -> None:
        """Take a place and a name, without looking for the ledger."""
        self.name = label("name", name)
        self._store = opening.open_store(where)
        # of a file the absolute path, whatever the working directory is later
        self._where = where if "://" in os.fspath(where) else os.path.abspath(where)
        with opening.closed_on_error(self._store):
            who = label("who", self._store.user() if who is None else who)
            self._chain = Chain(name, self._store, who)

    @staticmethod
    def names(where: str | Path) -> list[str]:
        """List the names of all ledgers in a place, sorted.

        Examples:
            >>> from tempfile import mkdtemp
            >>> where = mkdtemp() + "/b.db"
            >>> for name in ("team", "default"):
            ...     Ledger.create(where, name, epsilon=1).close()
            >>> Ledger.names(where)
            ['default', 'team']
        """
        return opening.list_names(where)

    @staticmethod
    def blockers(where: str) -> list[Session]:
        """List the sessions of a PostgreSQL database that have its ledgers locked, or wait.

        Raises:
            LedgerError: This user may not see them, or the ledger is a file.
        """
        return opening.ask_server(where, lambda store: store.blockers())

    @staticmethod
    def unblock(where: str, pid: int) -> bool:
        """End a session that `blockers` lists; its transaction is undone, and nothing is lost.

        Args:
            where: URL of the database.
            pid: Number of the session.

        Returns:
            False: there is no such session (any more).

        Raises:
            LedgerError: This user may not end it, or the ledger is a file.
        """
        return opening.ask_server(where, lambda store: store.unblock(whole("pid", pid)))

    @property
    def where(self) -> str:
        """The place of the ledger; of a URL, without its password."""
        return self._store.shown

    @property
    def who(self) -> str:
        """The account that is charging."""
        return self._chain.who

    @property
    def rule(self) -> str:
        """The rule by which privacy costs add up: "basic", "zcdp" or "pld"."""
        return self._chain.origin.rule.name

    @property
    def strict(self) -> bool:
        """Whether releases are charged before data is read, so that bad data gives no answer."""
        return self._chain.origin.strict

    @property
    def part(self) -> LedgerPart | None:
        """The ledger that this one is a part of; None: it is whole. See `split`."""
        return self._chain.origin.part

    @property
    def budget(self) -> Privacy:
        """All that was granted."""
        return self._chain.totals_now().whole.budget

    @property
    def spent(self) -> Privacy:
        """The cost of all charges together; it never decreases."""
        return self._chain.totals_now().whole.spent

    @property
    def remaining(self) -> Privacy:
        """The part of the budget that is left."""
        return self._chain.totals_now().whole.left()

    @property
    def neighbors(self) -> str | None:
        """The neighbor relation of all charges, fixed by the first; None: no charge yet."""
        return self._chain.totals_now().whole.neighbors

    @property
    def unit(self) -> str | None:
        """The unit of privacy of all charges: "user", "basket", "row".

        The first charge that states a unit fixes it; None: none did yet.
        """
        return self._chain.totals_now().whole.unit

    def left(self, account: str | None = None) -> Privacy:
        """Return what may still be charged.

        If an account is named, this is what is left of it or of the whole, whichever has less.
        """
        return self._chain.totals_now(account).left()

    def left_after(self, request: str) -> Privacy:
        """Return what was left when a request was answered.

        This is of the whole or of the account it was charged to, whichever had less. Nothing is
        read for it right after this handle recorded the answer.
        """
        return reading.left_after(self._chain, request)

    def charge(
        self,
        price: Charge,
        what: Mapping[str, object],
        *,
        request: str | None = None,
        account: str | None = None,
    ) -> Reservation:
        """Spend a cost, durably, before anything is drawn.

        Threads that share this handle and charge or record at the same time share a commit.

        The first charge fixes the neighbor relation and the unit of privacy of the ledger; a cost
        under another relation, or for another unit, is refused.

        Args:
            price: The cost.
            what: What is going to run: JSON, public.
            request: An id of the caller's choice. If it was charged before, its reservation is
                returned and nothing is charged; then everything else must be as it was.
            account: The sub-budget to charge as well.

        Returns:
            The reservation, with the answer if one is recorded.

        Raises:
            BudgetError: It does not fit, and nothing was written.
            LedgerError: Any other reason. Draw nothing; the same `request` may be tried again.
        """
        order = charging.make_order(self._chain, price, what, request, account)
        reservation = Reservation(self._chain, order.request)
        submit(self._chain, LedgerEntry(reservation, order))
        return reservation

    def batch(self) -> Batch:
        """Make many charges, or record many answers, in one durable commit: all or nothing.

        See `Batch`.
        """
        return Batch(self)

    def request(
        self,
        id: str | None = None,
        *,
        account: str | None = None,
        dataset: str | None = None,
        unit: str | None = None,
        check: bool = False,
    ) -> Request:
        """Say more than a ledger does: give what this returns as `ledger=`.

        Args:
            id: Repeated, it returns the recorded answer at no extra cost; then all options and the
                name of the data must be the same. None: every release is a request of its own.
            account: The sub-budget to charge as well.
            dataset: A name of the data, for readers of the history. By default that of a path is
                the path, and data in memory has none.
            unit: What the cost hides, such as "user": the ledger has one unit. By default "user"
                with a column of users and for ready scores, "row" where rows are counted, "basket"
                where baskets are.
            check: Only check that the data can be read, that columns and types fit, and that the
                ledger allows the cost. Nothing is drawn or charged.
        """
        from privmax.ledger.request import Request

        return Request(self, id, account, dataset, unit, check)

    def ask(self, price: Charge, *, request: str | None = None, account: str | None = None) -> bool:
        """Return whether a request was charged before. Charges nothing.

        Args:
            price: The cost.
            request: The id of the request; None: a new one.
            account: The sub-budget that would be charged as well.

        Raises:
            BudgetError: It was not, and the cost does not fit, as `charge` would say now.
        """
        return charging.is_charged(self._chain, price, request, account)

    def fits(self, price: Charge, account: str | None = None) -> bool:
        """Return whether a charge would be accepted now.

        Args:
            price: The cost.
            account: The sub-budget that would be charged as well.
        """
        return charging.fits(self._chain, price, account)

    def require(
        self,
        price: Charge,
        account: str | None = None,
        *,
        what: Mapping[str, object] | None = None,
        request: str | None = None,
    ) -> None:
        """Refuse what `charge` would refuse now. Charges nothing.

        Args:
            price: As in `charge`.
            account: As in `charge`.
            what: As in `charge`.
            request: As in `charge`.

        Raises:
            BudgetError: It does not fit.
            LedgerError: Any other reason, as a request id that was charged with something else.
        """
        order = charging.make_order(self._chain, price, what or {}, request, account)
        charging.require(self._chain, order)

    def knows(self, request: str) -> bool:
        """Return whether a request was charged; then to charge it again writes nothing."""
        return reading.knows(self._chain, request)

    def find(self, request: str) -> tuple[Event | None, Event | None]:
        """Find the charge of a request and its answer; None where there is none.

        Examples:
            >>> from tempfile import mkdtemp
            >>> ledger = Ledger(mkdtemp() + "/b.db", epsilon=1)
            >>> ledger.find("nightly")
            (None, None)
        """
        return reading.find_events(self._chain, request)

    def grant(self, more: Privacy, *, why: str, account: str | None = None) -> None:
        """Raise the budget, or that of an account; who did so and why is recorded permanently.

        Args:
            more: What is added.
            why: The reason, for readers of the history.
            account: The account whose budget rises; None: that of the ledger does.
        """
        accounts.grant(self._chain, more, why, account)

    def open_account(self, account: str, budget: Privacy, *, why: str = "") -> None:
        """Open a sub-budget, of an analyst or a purpose.

        A charge to it must fit into it and into the whole.

        Args:
            account: Its name.
            budget: What may be charged to it.
            why: Its purpose, for readers of the history.
        """
        accounts.open_account(self._chain, account, budget, why)

    def accounts(self) -> dict[str, tuple[Privacy, Privacy]]:
        """Return budget and spending of every account."""
        return accounts.read_accounts(self._chain)

    def split(
        self,
        name: str,
        budget: Privacy,
        *,
        where: str | Path | None = None,
        neighbors: str | None = None,
        unit: str | None = None,
    ) -> Ledger:
        """Make a ledger of its own from a part of this budget, and open it.

        All of the part is charged here, now and once, and stays spent here, whatever the part
        spends. Charges to the part wait for no charge to this ledger or to another part, unlike
        those to an account. Only ledgers with the rule "basic" can be split; a part has that rule
        too, and its budget cannot be raised.

        Calling it again with the same arguments opens the part, also after a crash in the middle,
        and charges nothing. A part that was made and is gone is not made again.

        Args:
            name: Name of the new ledger.
            budget: Its budget.
            where: A file or database of its own; by default that of this ledger. Ledgers in one
                SQLite file take turns whatever their names, those in PostgreSQL do not.
            neighbors: Neighbor relation of all charges; by default that of this ledger, or
                "add-remove" if it has no charge yet.
            unit: What all charges hide, such as "user"; by default that of this ledger.

        Returns:
            The part.

        Raises:
            BudgetError: It does not fit, and nothing was charged.
        """
        return parts.split(self, name, budget, where=where, neighbors=neighbors, unit=unit)

    def standing(self) -> Standing:
        """Return what was granted and is spent, also where the last events cannot be built on.

        To show it to people: nothing is charged to such a ledger, and `budget`, `spent` and
        `remaining` refuse.

        Examples:
            >>> from tempfile import mkdtemp
            >>> ledger = Ledger(mkdtemp() + "/b.db", epsilon=1)
            >>> ledger.standing().whole.budget, ledger.standing().fault
            (Privacy(epsilon=1, delta=0), None)
        """
        return reading.standing(self._chain)

    @property
    def event_count(self) -> int:
        """The number of events in the ledger."""
        return reading.count_events(self._chain)

    def history(self, *, last: int | None = None) -> Iterator[Event]:
        """Give the events, oldest first, a page of them at a time.

        An event that cannot be read has a `fault`, and those behind it follow.

        Args:
            last: How many of the last events to give; the others are not read. None: all events.

        Examples:
            >>> from tempfile import mkdtemp
            >>> ledger = Ledger(mkdtemp() + "/b.db", epsilon=1)
            >>> ledger.grant(Privacy(1), why="second quarter")
            >>> [event.kind for event in ledger.history(last=1)]
            ['granted']
        """
        return reading.history(self._chain, last)

    def sample(self, most: int) -> Iterator[Event]:
        """Give at most so many events, evenly spaced, the first and the last among them.

        They show how spending grew in a history of any length; the others are not read.
        """
        return reading.sample(self._chain, most)

    def unanswered(self, *, last: int | None = None) -> list[Event]:
        """List the charges without a recorded answer, oldest first; the last so many, or all.

        Repeating such a request id costs nothing more.
        """
        return reading.unanswered(self._chain, last)

    def verify(self) -> list[Fault]:
        """List the faults of the ledger; [] if there are none.

        Then the hash chain is whole, the charges add up, every answer has its charge, and no more
        is spent than was granted.
        """
        return reading.verify(self._chain)

    def close(self) -> None:
        """Close the file or the connection; the next call opens it again."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.where!r}, {self.name!r}, rule={self.rule!r})"

    def _repr_html_(self) -> str:
        """Return what is granted, spent and left, for notebooks; it is read again each time."""
        return reading.to_html(self._chain)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self  # a handle: copies of an estimator charge the same ledger

    def __reduce__(self) -> tuple[Any, ...]:
        # A name, not a password: PostgreSQL finds that again in PGPASSWORD, ~/.pgpass or a service
        # file.
        return _reopen, (type(self), self._store.place, self.name, self.who)


def _reopen(kind: type[Ledger], where: str | Path, name: str, who: str) -> Ledger:
    return kind(where, name, who=who)
