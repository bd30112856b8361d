"""Budgets that change: grants, and accounts, which are sub-budgets of one ledger."""

from __future__ import annotations

from privmax.errors import LedgerError
from privmax.ledger.chain import Chain
from privmax.ledger.events import ACCOUNT, GRANTED, REASON, label, privacy_json
from privmax.ledger.opening import check_privacy
from privmax.ledger.replay import after
from privmax.privacy import Privacy


def grant(chain: Chain, more: Privacy, why: str, account: str | None) -> None:
    """Raise the budget of a ledger, or of an account in it."""
    check_privacy("more", more)
    origin = chain.origin
    if origin.part is not None and account is None:
        raise LedgerError(
            f"The ledger {chain.name!r} is a part of {origin.part.whole!r}, and was charged "
            "there with all of its budget: it cannot be raised. Split off another part."
        )
    body = {"more": privacy_json(more), "why": label("why", why, REASON)}
    if account is not None:
        label("account", account)
    with chain.store.writing(chain.name) as rows:
        before = chain.totals(rows, account)
        totals = after(origin.rule, GRANTED, body, before)
        chain.append(rows, GRANTED, body, totals, account=account)


def open_account(chain: Chain, account: str, budget: Privacy, why: str) -> None:
    """Open an account with a budget of its own."""
    label("account", account)
    check_privacy("budget", budget)
    body = {"budget": privacy_json(budget), "why": label("why", why, REASON) if why else ""}
    rule = chain.origin.rule
    with chain.store.writing(chain.name) as rows:
        if rows.last_of_account(account) is not None:
            raise LedgerError(
                f"The ledger {chain.name!r} already has an account {account!r}.",
                existing="account",
                remedy="Use grant to raise its budget.",
            )
        totals = after(rule, ACCOUNT, body, chain.totals(rows, None))
        chain.append(rows, ACCOUNT, body, totals, account=account)


def read_accounts(chain: Chain) -> dict[str, tuple[Privacy, Privacy]]:
    """Budget and spending of every account."""
    totals = {}
    with chain.reading() as rows:
        for account in rows.accounts():
            own = chain.totals(rows, account).account
            if own is not None:
                totals[account] = own.budget, own.spent
    return totals
