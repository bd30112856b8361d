"""What commands that charge a ledger share: their options, and how they tell what is left or was refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypedDict

import click

from privmax.discreet import without_passwords
from privmax.errors import BudgetError, LedgerError, ParameterError, PrivmaxError
from privmax.ledger import Ledger
from privmax.privacy import Privacy, plain
from privmax.select import Release

_OPTIONS = (
    click.option(
        "--ledger", metavar="FILE", help="Charge this ledger: a file or a PostgreSQL URL; see privmax budget create."
    ),
    click.option("--ledger-name", metavar="NAME", help="Which ledger there, if not the one called default."),
    click.option("--request", metavar="ID", help="Repeated, it gives the recorded answer and costs nothing more."),
    click.option("--account", metavar="NAME", help="The account of the ledger to charge as well."),
    click.option("--dataset", metavar="NAME", help="What the history of the ledger is to call the data."),
)


class Charging(TypedDict):
    """What was given for the options above."""

    ledger: str | None
    ledger_name: str | None
    request: str | None
    account: str | None
    dataset: str | None


class BudgetRefused(click.ClickException):
    """The budget does not allow it."""

    exit_code = 3


def ledger_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def opened(charging: Charging, held: ExitStack) -> dict[str, Any]:
    """Arguments for who charges a ledger; `held` closes it."""
    asked = {name: charging[name] for name in ("request", "account", "dataset")}
    where = charging["ledger"]
    if where is None:
        if (name := charging["ledger_name"]) is not None:
            raise ParameterError("ledger-name", name, "it belongs to --ledger, and there is none", "Give --ledger.")
        return {"ledger": None, **asked}
    return {"ledger": held.enter_context(Ledger(where, _name(charging))), **asked}


@contextmanager
def refusing(as_json: bool, charging: Charging, told: Callable[[PrivmaxError], str]) -> Iterator[None]:
    """Errors in the words of `told`, and whether anything is spent. Exit 3: the budget does not allow it."""
    try:
        yield
    except BudgetError as error:
        if as_json:
            about = {"left": exactly(error.left), "cost": exactly(error.cost), "account": error.account}
            click.echo(json.dumps({"error": "budget", **about}, ensure_ascii=False))
        raise BudgetRefused(str(error)) from None
    except PrivmaxError as error:
        about_ledger = isinstance(error, LedgerError) or (isinstance(error, ParameterError) and error.name == "where")
        words = without_passwords(helped(str(error), _name(charging))) if about_ledger else told(error)
        raise click.UsageError(" ".join([words, *_notes(error)])) from None
    except KeyboardInterrupt as error:
        for note in _notes(error):
            click.echo(note, err=True)
        raise


def helped(message: str, name: str) -> str:
    """What the library says in terms of Python, followed by the same in terms of commands; `name` is the ledger's."""
    if "Ledger.create" in message:
        return f"{message} Here: privmax budget create FILE --name {name!r} --epsilon … --delta …"
    if "open_account" in message:
        return f"{message} Here: privmax budget account FILE ACCOUNT --name {name!r} --epsilon … --delta …"
    return message


def paid_for(release: Release, paying: dict[str, Any]) -> dict[str, Any]:
    """What to show of a release that was paid for: the id of its request, and what is left (None: not known now)."""
    if paying["ledger"] is None:
        return {}
    left = None
    with suppress(LedgerError):  # the answer is recorded, and must be shown
        left = exactly(_left(paying["ledger"], paying["account"]))
    return {"request": release.request, "left": left}


def exactly(privacy: Privacy) -> dict[str, str]:
    return {"epsilon": plain(privacy.epsilon), "delta": plain(privacy.delta)}


def _name(charging: Charging) -> str:
    name = charging["ledger_name"]
    return "default" if name is None else name


def _left(ledger: Ledger, account: str | None) -> Privacy:
    """What may still be charged: of the whole, and of the account if there is one, whichever has less."""
    left = ledger.remaining
    if account is None:
        return left
    budget, spent = ledger.accounts()[account]
    own = budget.epsilon - spent.epsilon, budget.delta - spent.delta
    return Privacy(min(left.epsilon, own[0]), min(left.delta, own[1]))


def _notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])
