"""Opening a ledger: which place is meant, what a new one needs, and how an old one was made."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from privmax.errors import LedgerError, ParameterError, refuse_given
from privmax.ledger.chain import Chain
from privmax.ledger.events import CREATED, SCHEMA, privacy_json
from privmax.ledger.parts import LedgerPart
from privmax.ledger.replay import Totals
from privmax.ledger.rows import Store
from privmax.ledger.rules import rule_for
from privmax.numbers import Number
from privmax.privacy import Privacy, describe_privacy

if TYPE_CHECKING:
    from privmax.ledger.postgres import PostgresStore

T = TypeVar("T")

_DATABASE = re.compile(
    r"""://                                                                   # a URL
    | ^\s* (postgres|jdbc|odbc|mysql|mariadb|oracle|mssql|sqlserver) [\w+]* : # without its slashes
    | ^(?! \.{1,2}[/\\] | /[^/] | [a-z]:[/\\] ) .* [:/\\] .* @                # user:password@host
    | [?&;] \s* \w* (password|pwd) \s* =                                      # its options
    | ^\s* (host|hostaddr|port|dbname|user|\w*password|\w*pwd|passfile|service) \s* =  # key words
    | ^\s* \w+ \s* = .* (password|pwd) \s* =""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""Texts that look like a database, and may have a password. Behind a ./ all but the first and the
options are files.
"""


def open_store(where: str | Path) -> Store:
    """Return the database that a place names: a file, or one of PostgreSQL by its URL."""
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
    """Return whether what looks like a database is a file nevertheless; a URL never is one."""
    try:
        return "://" not in os.fspath(where) and os.path.isfile(where)
    except ValueError:
        return False


@contextmanager
def closed_on_error(store: Store) -> Iterator[None]:
    """Close a store where the block fails: no one is given a handle that could."""
    try:
        yield
    except BaseException:
        store.close()
        raise


def list_names(where: str | Path) -> list[str]:
    """Return the names of all ledgers in a place, sorted."""
    store = open_store(where)
    try:
        with store.reading("default") as rows:
            return rows.ledgers()
    finally:
        store.close()


def ask_server(where: str, ask: Callable[[PostgresStore], T]) -> T:
    """Return what a database answers about its sessions."""
    store = open_store(where)
    try:
        if not str(store.place).startswith("postgresql://"):
            raise LedgerError(
                f"{store.shown} is a file, which has no sessions: a process that has it locked "
                "must end."
            )
        return ask(cast("PostgresStore", store))
    finally:
        store.close()


def read_budget(
    budget: Privacy | None, epsilon: Number | None, delta: Number | None
) -> Privacy | None:
    """Return the budget, in whichever of the two ways it was given; None: in neither."""
    if epsilon is None and delta is None:
        return budget
    if budget is not None:
        refuse_given(
            {"epsilon": epsilon, "delta": delta}, "budget says it", "Give one or the other."
        )
    if epsilon is None:
        allowed = "a budget needs epsilon"
        raise ParameterError("delta", delta, allowed, "For example epsilon=1, delta=1e-5.")
    total = Privacy(epsilon, 0 if delta is None else delta)
    if total == Privacy(0):
        allowed = "a budget must allow epsilon, delta or both"
        raise ParameterError("epsilon", epsilon, allowed, "For example epsilon=1.")
    return total


def check_privacy(name: str, value: object) -> None:
    """Refuse what is not a Privacy."""
    if not isinstance(value, Privacy):
        raise ParameterError(name, value, "it must be a Privacy", "For example Privacy(3, 1e-5).")


def create(
    chain: Chain, budget: Privacy, rule: str, *, strict: bool, part: LedgerPart | None = None
) -> bool:
    """Make the ledger with the rule of that name; False if it is there."""
    chain.store.prepare()
    with chain.store.reading(chain.name) as rows:
        if rows.head() is not None:
            return False
    made = rule_for(rule, budget)
    totals = Totals(made.start(budget))
    body = {
        "name": chain.name,
        "budget": privacy_json(budget),
        "rule": made.name,
        "schema": SCHEMA,
        "id": secrets.token_hex(16),
        "units": True,
        **({"strict": True} if strict else {}),
        **({} if part is None else {"part": part._asdict()}),
    }
    with chain.store.writing(chain.name) as rows:
        if not rows.begin():
            return False
        chain.append(rows, CREATED, body, totals)
    return True


def create_new(
    chain: Chain, budget: Privacy, rule: str, *, strict: bool, part: LedgerPart | None = None
) -> None:
    """Make the ledger; a name that exists is refused."""
    if not create(chain, budget, rule, strict=strict, part=part):
        raise LedgerError(
            f"{chain.store.shown} already has a ledger {chain.name!r}.",
            existing="ledger",
            remedy="Open it, or choose another name.",
        )
    check_origin(chain, budget, rule, strict)


def check_origin(
    chain: Chain, budget: Privacy | None, rule: str | None, strict: bool | None
) -> None:
    """Refuse a ledger that was made with another budget, rule or strictness than expected."""
    made = chain.origin
    if budget is not None and not _is_same_number(made.budget, budget):
        raise LedgerError(
            f"The ledger {chain.name!r} was created with a budget of "
            f"{describe_privacy(made.budget)}, not {describe_privacy(budget)}. Open it without a "
            "budget, or raise the budget with grant."
        )
    if rule is not None and rule != made.rule.name:
        raise LedgerError(
            f"The ledger {chain.name!r} was created with the rule {made.rule.name!r}, not "
            f"{rule!r}. A rule cannot be changed later."
        )
    if strict is not None and bool(strict) != made.strict:
        raise LedgerError(
            f"The ledger {chain.name!r} was created {'strict' if made.strict else 'not strict'}."
            " That cannot be changed later."
        )


def _is_same_number(one: Privacy, other: Privacy) -> bool:
    """Return whether two budgets are the same number, perhaps written differently.

    1e-5 and "1e-5" name one float.
    """
    try:
        return float(one.epsilon) == float(other.epsilon) and float(one.delta) == float(other.delta)
    except OverflowError:
        return one == other
