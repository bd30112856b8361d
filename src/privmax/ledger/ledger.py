"""`Ledger`: a named privacy budget that survives crashes, retries and many processes at once."""

from __future__ import annotations

import datetime
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from privmax.display import facts, table
from privmax.errors import AnswerError, BudgetError, LedgerError, ParameterError, refuse_given
from privmax.ledger.events import (
    ACCOUNT,
    CREATED,
    GRANTED,
    RELEASED,
    RESERVED,
    SCHEMA,
    Event,
    Fault,
    Price,
    Row,
    canonical,
    is_moment,
    is_sealed,
    label,
    portable,
    price_json,
    privacy_json,
    privacy_of,
    seal,
)
from privmax.ledger.parts import Part
from privmax.ledger.replay import UNREADABLE, Totals, after, faults, follows, totals_of
from privmax.ledger.rows import Draft, Lookup, Rows, Store, UnwritableError
from privmax.ledger.rules import BASIC, Rule, Total, find_rule, less, rule_for
from privmax.numbers import Number, plain, round_down, round_up
from privmax.privacy import Privacy

if TYPE_CHECKING:
    from privmax.ledger.batch import Batch
    from privmax.ledger.payment import Request

T = TypeVar("T")

PAGE = 500
"""Events read at a time: a history is never held as a whole."""


REASON = 2000
"""Characters that a reason may have."""


class Ledger:
    """A privacy budget: every release is charged, durably, before it is drawn.

    where    a file, which is created with mode 600 if missing, or the URL of a PostgreSQL database
    name     one place can hold many ledgers
    budget   creates the ledger if there is none; otherwise it must equal its first budget
    epsilon  the same in two numbers, instead of `budget`: epsilon=1, delta=1e-5 is
    delta    budget=Privacy(1, 1e-5); without a delta it is 0
    rule     composition rule: "basic" (default), "zcdp" or "pld"; cannot be changed later
    strict   whether releases are charged before their data is read, so that bad data gives no
             answer; cannot be changed later (default: no). See docs/promises.md
    who      who is charging; by default the user of the system or of the database

    Every release follows one order: `charge` (committed durably), draw, `Reservation.record`, and
    hand out what that returns. After a crash in between the charge stays spent, and repeating the
    request id costs nothing more. Threads may share a handle, and it works after a fork.

    A ledger that was created with another budget is refused, and the error names both budgets. A
    name that does not exist is created with the given budget: to prevent that, open it without one.

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

    _beginning: Origin | None = None
    """What the ledger was made with, once that was read."""

    _known: Row | None = None
    """The last event that was seen to follow from those before it."""

    _seen: tuple[int, str] | None = None
    """Number and hash of the last event that this handle knows to be committed."""

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
        self._where = where
        self.name = label("name", name)
        find_rule(BASIC if rule is None else rule)
        budget = _budget(budget, epsilon, delta)
        _privacy("budget", budget, optional=True)
        self._store = _store(where)
        try:
            self._who = label("who", who if who is not None else self._store.user())
            if budget is not None:
                self._create(budget, BASIC if rule is None else rule, strict=bool(strict))
            self._agree(budget, rule, strict)
        except BaseException:
            self._store.close()
            raise

    @classmethod
    def at(cls, where: str | Path, name: str = "default", *, who: str | None = None) -> Self:
        """Name a ledger without looking for it yet.

        It is opened by the first call that needs it, within the transaction of that call, which
        raises a LedgerError where there is no such ledger.
        """
        ledger = cls.__new__(cls)
        ledger._where, ledger.name = where, label("name", name)
        ledger._store = _store(where)
        try:
            ledger._who = label("who", who if who is not None else ledger._store.user())
        except BaseException:
            ledger._store.close()
            raise
        return ledger

    @staticmethod
    def names(where: str | Path) -> list[str]:
        """The names of all ledgers in a place, sorted.

        Examples:
            >>> from tempfile import mkdtemp
            >>> where = mkdtemp() + "/b.db"
            >>> for name in ("team", "default"):
            ...     Ledger.create(where, name, epsilon=1).close()
            >>> Ledger.names(where)
            ['default', 'team']
        """
        store = _store(where)
        try:
            with store.reading("default") as rows:
                return rows.ledgers()
        finally:
            store.close()

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
        """Make a new ledger; a name that exists is refused."""
        label("name", name)
        budget = _budget(budget, epsilon, delta)
        if budget is None:
            allowed = "a new ledger needs one"
            raise ParameterError("budget", None, allowed, "For example epsilon=3, delta=1e-5.")
        _privacy("budget", budget)
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
        part: Part | None = None,
    ) -> Self:
        ledger = cls.at(where, name, who=who)
        try:
            if not ledger._create(budget, rule, strict=strict, part=part):
                raise LedgerError(
                    f"{ledger.where} already has a ledger {name!r}.",
                    existing="ledger",
                    remedy="Open it, or choose another name.",
                )
            ledger._agree(budget, rule, strict)
        except BaseException:
            ledger._store.close()
            raise
        return ledger

    @property
    def where(self) -> str:
        """Where the ledger is; of a URL, without its password."""
        return self._store.shown

    @property
    def rule(self) -> str:
        """How privacy costs add up: "basic", "zcdp" or "pld"."""
        return self._origin.rule.name

    @property
    def part(self) -> Part | None:
        """What this ledger is a part of; None: it is a whole one. See `split`."""
        return self._origin.part

    @property
    def strict(self) -> bool:
        """Whether releases are charged before their data is read, and whatever is wrong with that
        is no answer.
        """
        return self._origin.strict

    @property
    def who(self) -> str:
        return self._who

    @property
    def budget(self) -> Privacy:
        """All that was granted."""
        return self._read().whole.budget

    @property
    def spent(self) -> Privacy:
        """What all charges cost together; it never decreases."""
        return self._read().whole.spent

    @property
    def remaining(self) -> Privacy:
        """What is left of the budget."""
        return self._read().whole.left()

    def left(self, account: str | None = None) -> Privacy:
        """What may still be charged: of the whole, and of an account if one is named, whichever has
        less.
        """
        return self._read(account).left()

    def left_after(self, request: str) -> Privacy:
        """What was left when a request was answered, of the whole and of the account it was charged
        to, whichever had less. Nothing is read for it right after this handle recorded the answer.
        """
        row = self._known
        if (
            row is None
            or (row.request, row.kind) != (request, RELEASED)
            or (row.seq, row.hash) != self._seen  # else it may not be committed
        ):
            with self._reading() as rows:
                row = rows.of_request(label("request", request), RELEASED)
        if row is None:
            raise LedgerError(f"The request {request!r} has no answer in the ledger {self.name!r}.")
        return self._read_totals(row).left()

    @property
    def neighbors(self) -> str | None:
        """The neighbor relation of all charges, fixed by the first; None: there was no charge
        yet.
        """
        return self._read().whole.neighbors

    @property
    def unit(self) -> str | None:
        """What all charges hide: "user", "basket", "row". Fixed by the first that says so; None:
        none did yet.
        """
        return self._read().whole.unit

    def charge(
        self,
        price: Price,
        what: Mapping[str, object],
        *,
        request: str | None = None,
        account: str | None = None,
    ) -> Reservation:
        """Spend a cost, durably, before anything is drawn.

        what      what is going to run: JSON, public
        request   an id of the caller's choice. If it was charged before, its reservation is given
                  again and nothing is charged; then everything else must be as it was
        account   the sub-budget to charge as well

        The first charge fixes the neighbor relation and the unit of privacy of the ledger; a cost
        under another relation, or for another unit, is refused.

        BudgetError: it does not fit, and nothing was written. Any other LedgerError: do not draw;
        the same `request` may be tried again.
        """
        asked = self._order(price, what, request, account)
        done = None
        if self._store.writes and self._origin.rule.name == BASIC:
            charge = partial(self._charge, asked=asked)
            done = self._write(RESERVED, asked.request, account, asked.body, charge)
        if done is not None:
            charged, answered = done
        else:
            with self._store.writing(self.name, asked.request, self._lookup([asked])) as rows:
                charged, answered = self._charge(rows, asked)
        self._note(charged)
        return Reservation(self, asked.request, charged, answered)

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

        All of the part is charged here, now and once. Whoever then charges the part waits for
        nobody who charges this ledger or another part, as with an account, which shares its row.
        Nothing goes back: what a part does not spend is spent here. Only ledgers with the rule
        "basic" can be split, and a part has that rule too; its budget cannot be raised.

        Calling it again with the same arguments opens the part that is there, also after a crash
        in the middle, and charges nothing. A part that was made and is gone is not made again.

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
        from privmax.ledger.parts import split

        return split(self, name, budget, where=where, neighbors=neighbors, unit=unit)

    def batch(self) -> Batch:
        """Many charges, or many answers, in one durable commit: all or nothing. See `Batch`."""
        from privmax.ledger.batch import Batch

        return Batch(self)

    def request(
        self, id: str | None = None, *, account: str | None = None, dataset: str | None = None
    ) -> Request:
        """What to give as `ledger=`, instead of the ledger, where more is to be said.

        id        repeated, it gives the recorded answer at no extra cost; then all options and the
                  name of the data must be the same. None: every release is a request of its own
        account   the sub-budget to charge as well
        dataset   a name of the data, for who reads the history. By default that of a path is the
                  path, and data in memory has none
        """
        from privmax.ledger.payment import Request

        return Request(self, id, account, dataset)

    def ask(self, price: Price, *, request: str | None = None, account: str | None = None) -> bool:
        """Whether a request was charged before. If not, what does not fit is refused, as `charge`
        would now (BudgetError). Charges nothing.
        """
        with self._reading() as rows:
            known = request is not None and rows.of_request(label("request", request), RESERVED)
            if known:
                return True
            before = self._totals(rows, account)
        self._check(_price(price), before, account)
        return False

    def knows(self, request: str) -> bool:
        """Whether a request was charged; then to charge it again writes nothing."""
        with self._reading() as rows:
            return rows.of_request(label("request", request), RESERVED) is not None

    def find(self, request: str) -> tuple[Event | None, Event | None]:
        """The charge of a request and its answer; None where there is none.

        Examples:
            >>> from tempfile import mkdtemp
            >>> ledger = Ledger(mkdtemp() + "/b.db", epsilon=1)
            >>> ledger.find("nightly")
            (None, None)
        """
        known = label("request", request)
        with self._reading() as rows:
            found = [rows.of_request(known, kind) for kind in (RESERVED, RELEASED)]
        charged, answered = (None if row is None else self._event(row) for row in found)
        return charged, answered

    def fits(self, price: Price, account: str | None = None) -> bool:
        """Whether a charge would be accepted now."""
        before = self._read(account)
        totals = before.charge(self._origin.rule, _price(price))
        fits = totals.whole.fits() and (totals.account is None or totals.account.fits())
        return fits and before.whole.takes(price) and (self.part is None or self.part.takes(price))

    def require(self, price: Price, account: str | None = None) -> None:
        """Refuse, as `charge` would now (BudgetError), what does not fit. Charges nothing."""
        self._check(_price(price), self._read(account), account)

    def grant(self, more: Privacy, *, why: str, account: str | None = None) -> None:
        """Raise the budget, or that of an account; who did so and why is recorded permanently."""
        _privacy("more", more)
        origin = self._origin
        if origin.part is not None and account is None:
            raise LedgerError(
                f"The ledger {self.name!r} is a part of {origin.part.whole!r}, and was charged "
                "there with all of its budget: it cannot be raised. Split off another part."
            )
        body = {"more": privacy_json(more), "why": label("why", why, REASON)}
        if account is not None:
            label("account", account)
        with self._store.writing(self.name) as rows:
            before = self._totals(rows, account)
            totals = after(origin.rule, GRANTED, body, before)
            self._append(rows, GRANTED, body, totals, account=account)

    def open_account(self, account: str, budget: Privacy, *, why: str = "") -> None:
        """Open a sub-budget, of an analyst or a purpose. A charge to it must fit into it and into
        the whole.
        """
        label("account", account)
        _privacy("budget", budget)
        body = {"budget": privacy_json(budget), "why": label("why", why, REASON) if why else ""}
        rule = self._origin.rule
        with self._store.writing(self.name) as rows:
            if rows.last_of_account(account) is not None:
                raise LedgerError(
                    f"The ledger {self.name!r} already has an account {account!r}.",
                    existing="account",
                    remedy="Use grant to raise its budget.",
                )
            totals = after(rule, ACCOUNT, body, self._totals(rows, None))
            self._append(rows, ACCOUNT, body, totals, account=account)

    def accounts(self) -> dict[str, tuple[Privacy, Privacy]]:
        """Budget and spending of every account."""
        found = {}
        with self._reading() as rows:
            for account in rows.accounts():
                own = self._totals(rows, account).account
                if own is not None:
                    found[account] = own.budget, own.spent
        return found

    def history(self) -> Iterator[Event]:
        """All events, oldest first."""
        return (self._event(row) for row in self._rows())

    def verify(self) -> list[Fault]:
        """What is wrong with the ledger: [] if the hash chain is whole, the charges add up, every
        answer has its charge, and no more is spent than was granted."""
        damaged = [Fault(0, f"the file is damaged: {told}") for told in self._store.damage()]
        with self._store.reading(self.name) as rows:
            head = self._head(rows)
            outside = rows.outside(head[0])
        walked = (
            row for row in self._rows() if not (isinstance(row.seq, int) and row.seq > head[0])
        )
        return damaged + faults(self.name, walked, head, outside)  # others may go on charging

    def close(self) -> None:
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
        """What is granted, spent and left, for notebooks; it is read again each time."""
        title = f"Ledger {self.name} in {self.where}"
        try:
            whole, accounts = self._read().whole, self.accounts()
            kept = f"rule {self.rule}{', strict' if self.strict else ''}"
        except LedgerError as error:
            return facts(title, {"cannot be read": str(error)})
        about = [kept, *([] if whole.unit is None else [f"unit {whole.unit}"])]
        shares = {"whole": (whole.budget, whole.spent)}
        shares |= {f"account {name}": share for name, share in accounts.items()}
        rows = [
            (
                whose,
                describe_privacy(budget, round_down),
                describe_privacy(spent, round_up),
                describe_privacy(less(budget, spent), round_down),
            )
            for whose, (budget, spent) in shares.items()
        ]
        return table(title, ("", "budget", "spent", "left"), rows, ", ".join(about))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self  # a handle: copies of an estimator charge the same ledger

    def __reduce__(self) -> tuple[Any, ...]:
        # A name, not a password: PostgreSQL finds that again in PGPASSWORD, ~/.pgpass or a service
        # file.
        return _reopen, (type(self), self._store.place, self.name, self._who)

    # Private helpers below, in the order they are called.

    @contextmanager
    def _reading(self) -> Iterator[Rows]:
        """A transaction that reads. The first one also reads what the ledger was made with."""
        with self._store.reading(self.name) as rows:
            if self._beginning is None:
                self._beginning = self._first(rows)
            yield rows

    @property
    def _origin(self) -> Origin:
        """What the ledger was made with."""
        if self._beginning is None:
            with self._reading():
                pass  # which reads it
        assert self._beginning is not None
        return self._beginning

    def _check(self, price: Price, before: Totals, account: str | None) -> Totals:
        """The totals after a charge. Refuses one that does not fit."""
        if self._origin.part is not None:
            self._origin.part.check(self.name, price)
        if not before.whole.takes(price):
            raise _relation_error(before.whole, price, self.name)
        totals = before.charge(self._origin.rule, price)
        pairs = (before.account, totals.account, account), (before.whole, totals.whole, None)
        for old, new, whose in pairs:  # the account first
            if old is not None and new is not None and not new.fits():
                raise _budget_error(old, new, self.name, whose)
        return totals

    def _find(self, where: str | Path, name: str) -> Ledger | None:
        """Another ledger, there or anywhere; None: there is none of that name."""
        store = _store(where)
        try:
            store.prepare()
            with store.reading(name) as rows:
                there = rows.head() is not None
        finally:
            store.close()
        return type(self)(where, name, who=self._who) if there else None

    def _create(
        self, budget: Privacy, name: str, *, strict: bool, part: Part | None = None
    ) -> bool:
        """Make the ledger with the rule of that name; False if it is there."""
        self._store.prepare()
        with self._store.reading(self.name) as rows:
            if rows.head() is not None:
                return False
        rule = rule_for(name, budget)
        totals = Totals(rule.start(budget))
        body = {
            "name": self.name,
            "budget": privacy_json(budget),
            "rule": rule.name,
            "schema": SCHEMA,
            "id": secrets.token_hex(16),
            **({"strict": True} if strict else {}),
            **({} if part is None else {"part": part._asdict()}),
        }
        with self._store.writing(self.name) as rows:
            if not rows.begin():
                return False
            self._append(rows, CREATED, body, totals)
        return True

    def _first(self, rows: Rows) -> Origin:
        """What the first event says that the ledger was made with."""
        self._head(rows)
        row = rows.at(1)
        if row is None:
            raise LedgerError(
                f"The ledger {self.name!r} has lost its first event. Restore a backup."
            )
        body = self._event(row).body
        if body.get("schema") != SCHEMA:
            raise LedgerError(
                f"The ledger {self.name!r} uses event format {body.get('schema')!r}; this privmax "
                f"reads format {SCHEMA}. Use the privmax version that made it, or a newer one."
            )
        try:
            strict, part = body.get("strict", False) is not False, body.get("part")
            rule, made = find_rule(body["rule"]), privacy_of(body["budget"])
            held = None if part is None else Part(**part)
            return Origin(made, rule, strict, str(body.get("id", "")), held)
        except UNREADABLE:
            raise self._damage(1) from None

    def _agree(self, budget: Privacy | None, rule: str | None, strict: bool | None) -> None:
        """Refuse a ledger that was not made with the budget, the rule and the strictness the caller
        believes in.
        """
        made = self._origin.budget
        if budget is not None and not _same_number(made, budget):
            raise LedgerError(
                f"The ledger {self.name!r} was created with a budget of {describe_privacy(made)}, "
                f"not {describe_privacy(budget)}. Open it without a budget, or raise the budget "
                "with grant."
            )
        if rule is not None and rule != self.rule:
            raise LedgerError(
                f"The ledger {self.name!r} was created with the rule {self.rule!r}, not {rule!r}. "
                "A rule cannot be changed later."
            )
        if strict is not None and bool(strict) != self.strict:
            raise LedgerError(
                f"The ledger {self.name!r} was created {'strict' if self.strict else 'not strict'}."
                " That cannot be changed later."
            )

    def _read(self, account: str | None = None) -> Totals:
        with self._reading() as rows:
            return self._totals(rows, account)

    def _head(self, rows: Rows) -> tuple[int, str]:
        head = rows.head()
        if head is None:
            known = rows.ledgers()
            raise LedgerError(
                f"{self.where} has no ledger {self.name!r}.{_list_names(known)}",
                missing="ledger",
                known=known,
                remedy="Create it with Ledger.create, or by giving a budget.",
            )
        return head

    def _order(self, price: Price, what: object, request: str | None, account: str | None) -> Order:
        if not isinstance(what, Mapping):
            example = 'For example {"mechanism": "…"}.'
            raise ParameterError("what", type(what), "it must be a mapping", example)
        body = {"what": portable("what", what), "price": price_json(_price(price))}
        request = label("request", secrets.token_hex(16) if request is None else request)
        if account is not None:
            label("account", account)
        if self._origin.part is not None:
            self._origin.part.check(self.name, price)
        return Order(price, body, request, account)

    def _lookup(self, asked: Iterable[Order | Row]) -> Lookup:
        """What charges or records ask about."""
        pairs = [(str(one.request), one.account) for one in asked]
        requests = dict.fromkeys(request for request, _ in pairs)
        accounts = dict.fromkeys(account for _, account in pairs if account is not None)
        return Lookup(list(requests), list(accounts), 0 if self._seen is None else self._seen[0])

    def _write(
        self,
        kind: str,
        request: str,
        account: str | None,
        body: Mapping[str, Any],
        write: Callable[[Rows], T],
        charged: Row | None = None,
    ) -> T | None:
        """Have the database write an event by itself, if its store `writes`, and check that with
        what would write it.

        None: it did not, or nobody can know.
        """
        known, seen = None if self._known is None else self._known.hash, self._seen or (0, "")
        texts = kind, _now(), self._who, request, account, canonical(body)
        rows = self._store.write(self.name, Draft(*texts, known, seen, charged))
        if rows is None:
            return None
        try:
            return write(rows)
        except LedgerError as error:
            reason = str(error)
        raise LedgerError(
            f"The database has written an event of the ledger {self.name!r} for the request "
            f"{request!r} that privmax would not have written. Nothing may be drawn or released "
            f"for it. {reason}"
        )

    def _charge(self, rows: Rows, asked: Order) -> tuple[Row, Row | None]:
        """Charge, or find the charge and its answer, within a transaction."""
        charged = rows.of_request(asked.request, RESERVED)
        if charged is not None:
            _same(charged, self._event(charged).body, asked.body, asked.account)
            if charged != self._known and not rows.is_new(charged):
                self._trust(rows, charged, rows.at(charged.seq - 1))
            return charged, self._find_answer(rows, charged)
        totals = self._check(asked.price, self._totals(rows, asked.account), asked.account)
        return self._append(
            rows, RESERVED, asked.body, totals, request=asked.request, account=asked.account
        ), None

    def _note(self, row: Row) -> None:
        """Note an event that is committed."""
        self._seen = max(self._seen or (0, ""), (row.seq, row.hash))

    def _totals(self, rows: Rows, account: str | None) -> Totals:
        """Budget and spending now, of the whole and of an account."""
        whole = self._read_totals(self._last(rows)).whole
        if account is None:
            return Totals(whole)
        row = rows.last_of_account(account)
        own = None if row is None else self._read_totals(row).account
        if own is None:
            known = rows.accounts()
            raise LedgerError(
                f"The ledger {self.name!r} has no account {account!r}.{_list_names(known)}",
                missing="account",
                known=known,
                remedy="Open it with open_account.",
            )
        return Totals(whole, own)

    def _last(self, rows: Rows) -> Row:
        seq, noted = head = self._head(rows)
        seen = head if self._seen is None else self._seen
        found = rows.by_number(seq, seq - 1, seen[0])
        row = found.get(seq)
        if row is None or row.hash != noted:
            raise self._damage(seq)
        if row != self._known:
            self._trust(rows, row, found.get(seq - 1))
            self._known = row
        if seen[0] > seq or seen[0] not in found or found[seen[0]].hash != seen[1]:
            raise LedgerError(
                f"The ledger {self.name!r} lost event {seen[0]}, which this process has seen: an "
                "older copy replaced it, or a server without the last commits took over. Nothing "
                "is charged or recorded. Charge what may be missing, and open the ledger again."
            )
        if rows.durable and not rows.is_new(row):  # else it may be undone yet
            self._seen = head
        return row

    def _trust(self, rows: Rows, row: Row, before: Row | None) -> None:
        """Refuse to build on an event that somebody wrote without privmax, and wrong. One step back
        is all it looks.
        """
        own = None if row.account is None else rows.last_of_account(row.account, row.seq)
        rule = self._origin.rule
        if (before is None and row.seq > 1) or not follows(self.name, rule, row, before, own):
            raise LedgerError(
                f"Event {row.seq} of the ledger {self.name!r} does not follow from the events "
                "before it. Nothing more is charged. Run verify, and restore a backup."
            )

    def _find_answer(self, rows: Rows, charged: Row) -> Row | None:
        """The answer to a charge, if there is one. Refuses one that is not of whoever was
        charged.
        """
        answered = rows.of_request(str(charged.request), RELEASED)
        if answered is None:
            if charged.who != self._who:
                raise LedgerError(
                    f"The request {charged.request!r} was charged by {charged.who!r} and has no "
                    f"answer yet; only they can have it drawn, not {self._who!r}. Nothing was "
                    "charged now. Use a request id of your own."
                )
            return None
        before = rows.at(answered.seq - 1)
        belongs = (answered.account, answered.who) == (
            charged.account,
            charged.who,
        ) and answered.seq > charged.seq
        sealed = before is not None and is_sealed(before.hash, self.name, answered)
        if not (belongs and sealed and is_moment(answered.moment)):
            raise LedgerError(
                f"Event {answered.seq} of the ledger {self.name!r} is not an answer to the request "
                f"{charged.request!r}: it was changed, or recorded by somebody who was not "
                "charged. It is not released. Run verify."
            )
        return answered

    def _read_totals(self, row: Row) -> Totals:
        try:
            totals = totals_of(row.totals)
            for total in filter(None, (totals.whole, totals.account)):
                self._origin.rule.check(total)
            return totals
        except UNREADABLE:
            raise self._damage(row.seq) from None

    def _damage(self, seq: int) -> LedgerError:
        return LedgerError(
            f"Event {seq} of the ledger {self.name!r} is missing or was changed. Nothing more is "
            "charged. Run verify, and restore a backup."
        )

    def _append(
        self,
        rows: Rows,
        kind: str,
        body: Mapping[str, Any],
        totals: Totals,
        *,
        request: str | None = None,
        account: str | None = None,
    ) -> Row:
        seq, before = self._head(rows)
        texts = canonical(body), canonical(totals.as_json())
        moment = rows.moment or _now()
        row = Row(seq + 1, kind, moment, self._who, request, account, *texts, "")
        row = seal(before, self.name, row)
        rows.append(row)
        self._known = row  # if it is not committed, no event will equal it
        return row

    def _rows(self) -> Iterator[Row]:
        seq = 0
        while True:
            with self._store.reading(self.name) as rows:
                self._head(rows)
                page = rows.after(seq, PAGE)
            self._store.settle()
            yield from page
            if len(page) < PAGE:
                return
            seq = page[-1].seq

    def _event(self, row: Row, *names: str) -> Event:
        """What a row says. Refuses one that cannot be read, or holds nothing by one of the
        names.
        """
        with suppress(*UNREADABLE):
            event = row.event()
            if event.body.keys() >= set(names):
                return event
        raise self._damage(row.seq)

    def _record(self, charged: Row, answer: object) -> Row:
        """Record an answer to what was charged, or find the one that is recorded."""
        body = {"answer": portable("answer", answer)}
        request = str(charged.request)
        record = partial(self._record_in, charged=charged, body=body)
        recorded = None
        if self._store.writes:
            recorded = self._write(RELEASED, request, charged.account, body, record, charged)
        if recorded is None:
            with self._store.writing(self.name, request, self._lookup([charged])) as rows:
                recorded = record(rows)
        self._note(recorded)
        return recorded

    def _record_in(self, rows: Rows, charged: Row, body: Mapping[str, Any]) -> Row:
        """The same within a transaction."""
        request, account = str(charged.request), charged.account
        now = rows.of_request(request, RESERVED)
        if now is None or (now.seq, now.hash) != (charged.seq, charged.hash):
            raise LedgerError(
                f"The charge of the request {request!r}, event {charged.seq} of the ledger "
                f"{self.name!r}, is gone; "
                "nothing may be released. Run verify, and restore a backup."
            )
        recorded = self._find_answer(rows, now)
        if recorded is None:
            totals = self._totals(rows, account)
            recorded = self._append(rows, RELEASED, body, totals, request=request, account=account)
        return recorded


class Reservation:
    """A cost that is spent. `recorded` says whether its answer is known; if not, draw one and
    `record` it.

    `when` says since when it was known, when this was charged again: what the clock said, UTC.
    """

    def __init__(
        self, ledger: Ledger, request: str, charged: Row | None, answered: Row | None = None
    ) -> None:
        self._ledger = ledger
        self.request = request
        self._row = charged
        self._recorded, self._answer = False, None
        self._when: str | None = None
        if charged is not None:
            self._charge(charged, answered)

    @property
    def seq(self) -> int:
        """Number of the event that charged it."""
        return self._charge_row.seq

    @property
    def recorded(self) -> bool:
        """Whether an answer is recorded."""
        return self._charge_row is not None and self._recorded

    @property
    def answer(self) -> Any:
        """The answer to release; None while there is none."""
        return self._answer if self.recorded else None

    @property
    def when(self) -> str | None:
        return self._when if self.recorded else None

    @property
    def _charge_row(self) -> Row:
        if self._row is None:
            raise LedgerError(
                f"The request {self.request!r} is not known to be charged: the block of its batch "
                f"has not ended, or "
                "ended with an error. Nothing may be drawn for it."
            )
        return self._row

    def _charge(self, charged: Row, answered: Row | None) -> None:
        """The charge is committed, perhaps long ago and with an answer."""
        if answered is not None:
            self._when = answered.moment
            self._settle(answered)
        self._row = charged

    def _settle(self, recorded: Row) -> None:
        """This is the answer."""
        answered = self._ledger._event(recorded, "answer")
        self._answer, self._recorded = answered.body["answer"], True

    def record(self, answer: object) -> Any:
        """Record the answer durably, and return the one to release.

        That may be another one: if another process recorded an answer to the same request first, it
        is that. Release only what this returns; an error means that nothing may be released yet,
        and holds nothing of the answer.

        LedgerError: the ledger cannot be used now, whatever the answer is; this may be tried again,
        also with another draw. Any other error may have to do with this answer, as when it is too
        long for the disk: do not draw again, which would favor answers that can be written; record
        that there is none.
        """
        failure: BaseException | None = None
        try:
            self._settle(self._ledger._record(self._charge_row, answer))
        except UnwritableError as error:
            failure = AnswerError(str(error))
        except BaseException as error:
            error.__traceback__ = error.__context__ = error.__cause__ = None
            failure = error
        del (
            answer
        )  # nor is it in the frames that the error went through: a crash reporter would read them
        if failure is not None:
            raise failure
        return self.answer

    def __repr__(self) -> str:
        seq = None if self._row is None else self._row.seq
        return f"Reservation(request={self.request!r}, seq={seq}, recorded={self._recorded})"


class Origin(NamedTuple):
    """What a ledger was made with. `id` is "" where an older privmax made it."""

    budget: Privacy
    rule: Rule
    strict: bool
    id: str
    part: Part | None


def _list_names(known: Sequence[str]) -> str:
    """What there is instead, as a sentence."""
    if not known:
        return ""
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return f" It has {', '.join(map(repr, known[:MOST_NAMES]))}{more}."


MOST_NAMES = 10
"""How many names of ledgers or accounts an error lists."""


class Order(NamedTuple):
    """A charge that is asked for."""

    price: Price
    body: Mapping[str, Any]
    request: str
    account: str | None


def describe_privacy(privacy: Privacy, number: Callable[[Fraction], str] = plain) -> str:
    """A cost in words; `number` writes its numbers."""
    return f"epsilon {number(privacy.epsilon)}, delta {number(privacy.delta)}"


_DATABASE = re.compile(
    r"""://                                                                   # a URL
    | ^\s* (postgres|jdbc|odbc|mysql|mariadb|oracle|mssql|sqlserver) [\w+]* : # without its slashes
    | ^(?! \.{1,2}[/\\] | /[^/] | [a-z]:[/\\] ) .* [:/\\] .* @                # user:password@host
    | [?&;] \s* \w* (password|pwd) \s* =                                      # its options
    | ^\s* (host|hostaddr|port|dbname|user|\w*password|\w*pwd|passfile|service) \s* =  # key words
    | ^\s* \w+ \s* = .* (password|pwd) \s* =""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""What looks like a database, and may hold a password. Behind a ./ all but the first and the
options are files.
"""


def _store(where: str | Path) -> Store:
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        from privmax.ledger.postgres import PostgresStore

        return PostgresStore(where)
    allowed = "it must be a file or the URL of a PostgreSQL database"
    if (
        not isinstance(where, str | os.PathLike)
        or not isinstance(os.fspath(where), str)
        or not os.fspath(where)
    ):
        raise ParameterError(
            "where", where if where == "" else type(where), allowed, 'Such as "budget.db".'
        )
    if _DATABASE.search(os.fspath(where)) and not _is_file(where):
        scheme = re.match(
            r"[a-z][a-z0-9+.-]*://", os.fspath(where)
        )  # all that is not a password for certain
        raise ParameterError(
            "where", f"{scheme[0] if scheme else ''}…", allowed,
            "Such a URL begins with postgresql, a colon and two slashes. Put ./ before a file with "
            "such a name.",
        )  # fmt: skip
    try:
        named = b"\0" not in os.fsencode(where)
    except UnicodeEncodeError:
        named = False
    if not named:
        raise ParameterError(
            "where", ascii(os.fspath(where)), allowed, "No file can have such a name."
        )
    from privmax.ledger.sqlite import SqliteStore

    return SqliteStore(where)


def _is_file(where: str | os.PathLike[str]) -> bool:
    """Whether what looks like a database is a file nevertheless; a URL never is one."""
    try:
        return "://" not in os.fspath(where) and os.path.isfile(where)
    except ValueError:
        return False


def _reopen(kind: type[Ledger], where: str | Path, name: str, who: str) -> Ledger:
    return kind(where, name, who=who)


def _budget(budget: Privacy | None, epsilon: Number | None, delta: Number | None) -> Privacy | None:
    """The budget, in whichever of the two ways it was given; None: in neither."""
    if epsilon is None and delta is None:
        return budget
    if budget is not None:
        refuse_given(
            {"epsilon": epsilon, "delta": delta}, "budget says it", "Give one or the other."
        )
    if epsilon is None:
        allowed = "without epsilon it is no budget"
        raise ParameterError("delta", delta, allowed, "For example epsilon=1, delta=1e-5.")
    found = Privacy(epsilon, 0 if delta is None else delta)
    if found == Privacy(0):
        allowed = "a budget must allow epsilon, delta or both"
        raise ParameterError("epsilon", epsilon, allowed, "For example epsilon=1.")
    return found


def _privacy(name: str, value: object, *, optional: bool = False) -> None:
    if not isinstance(value, Privacy) and not (optional and value is None):
        raise ParameterError(name, value, "it must be a Privacy", "For example Privacy(3, 1e-5).")


def _price(value: object) -> Price:
    if isinstance(value, Price):
        return value
    raise ParameterError(
        "price", value, "it must be of the class Price", "For example Price(Privacy(1, 1e-6))."
    )


def _same_number(one: Privacy, other: Privacy) -> bool:
    """Whether two budgets are the same number, perhaps written differently: 1e-5 and "1e-5" name
    one float.
    """
    try:
        return float(one.epsilon) == float(other.epsilon) and float(one.delta) == float(other.delta)
    except OverflowError:
        return one == other


def _same(
    charged: Row, was: Mapping[str, Any], body: Mapping[str, Any], account: str | None
) -> None:
    """Refuse a request id that stands for something else."""
    differ, data = [], False
    for name in ("what", "price"):
        then, now = was.get(name), _state_then(was.get(name), body[name])
        if canonical(then) != canonical(now):
            parts = sorted(_differing(then, now))
            title = {"what": "question", "price": "privacy cost"}[name]
            differ.append(f"{title} ({', '.join(parts)})" if parts else title)
            data |= not {"data", "dataset"}.isdisjoint(parts)
    differ += ["account"] if account != charged.account else []
    if differ:
        moved = " If the same data has moved, give it a name with dataset." if data else ""
        raise LedgerError(
            f"The request {charged.request!r} was charged before, at event {charged.seq}, with a "
            f"different {' and a different '.join(differ)}. Nothing was charged now. Use a new id "
            f"for a new request.{moved}"
        )


_NEW = "columns", "data", "labels", "rho", "unit"
"""What earlier versions did not record of a request."""


def _state_then(then: object, now: Any) -> Any:
    """What is charged now, without what was not recorded then."""
    if not isinstance(then, dict) or not isinstance(now, dict):
        return now
    return {name: value for name, value in now.items() if name not in _NEW or name in then}


def _differing(one: object, other: object) -> Iterator[str]:
    """Names of what differs between two JSON objects, and in those within them; what they hold is
    not told.
    """
    if not isinstance(one, dict) or not isinstance(other, dict):
        return
    for name in one.keys() | other.keys():
        if name not in one or name not in other or canonical(one[name]) != canonical(other[name]):
            shown = name if name.isprintable() else repr(name)
            inner = [f"{shown}.{part}" for part in _differing(one.get(name), other.get(name))]
            yield from inner or [shown]


def _relation_error(total: Total, price: Price, name: str) -> LedgerError:
    """What is said of a cost under another neighbor relation, or for another unit: nothing is
    proved about the sum.
    """
    if total.neighbors in (None, price.neighbors):
        return LedgerError(
            f"The ledger {name!r} counts the privacy cost per {total.unit}, and this request "
            f"counts it per {price.unit}: such costs do not add up. Nothing was charged. Ask with "
            f"the unit {total.unit} if every {price.unit} is one {total.unit} in this data, or "
            "charge another ledger."
        )
    return LedgerError(
        f"The ledger {name!r} counts the privacy cost for {total.neighbors} neighbors, and this "
        f"request counts it for {price.neighbors} neighbors: such costs do not add up. Nothing was "
        f"charged. Ask with neighbors {total.neighbors}, or charge another ledger."
    )


def _budget_error(old: Total, new: Total, name: str, account: str | None) -> BudgetError:
    """What is said of a charge that does not fit into the ledger, or into an account of it."""
    cost, left = less(new.spent, old.spent), old.left()
    holder = f"the ledger {name!r}"
    if account is not None:
        holder = f"the account {account!r} of {holder}"
    return BudgetError(
        f"The budget does not allow it: the privacy cost is {describe_privacy(cost, round_up)}, "
        f"and {holder} has {describe_privacy(left, round_down)} left. Nothing was charged. Ask for "
        "less, or have the budget raised.",
        cost,
        left,
        account,
    )


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
