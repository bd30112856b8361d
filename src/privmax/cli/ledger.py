"""What commands that charge a ledger share: their options, and how they tell what is left or was
refused.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO, TypedDict

import click

from privmax.cli.discreet import REQUEST, Refused, without_passwords
from privmax.errors import BudgetError, LedgerError, ParameterError, PrivacyWarning, PrivmaxError
from privmax.ledger import Ledger, Price
from privmax.numbers import plain
from privmax.privacy import Privacy
from privmax.warnings import afresh

if TYPE_CHECKING:
    from privmax.select import Release

_OPTIONS = (
    click.option(
        "--unit",
        metavar="NAME",
        help="What the price hides (user, row, basket), if you know better.",
    ),
    click.option(
        "--ledger",
        metavar="FILE",
        help="Charge this ledger: a file or a PostgreSQL URL; see privmax budget create.",
    ),
    click.option(
        "--ledger-name", metavar="NAME", help="Which ledger there, if not the one called default."
    ),
    click.option(
        "--request",
        metavar="ID",
        help="Repeated, it gives the recorded answer and costs nothing more.",
    ),
    click.option("--account", metavar="NAME", help="The account of the ledger to charge as well."),
    click.option(
        "--dataset", metavar="NAME", help="What the history of the ledger is to call the data."
    ),
)


class Charging(TypedDict):
    """What was given for the options above."""

    unit: str | None
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
        for name, value in {"ledger-name": charging["ledger_name"], **asked}.items():
            if value is not None:
                raise ParameterError(
                    name, value, "it belongs to --ledger, and there is none", "Give --ledger."
                )
        return {"ledger": None, **asked, "unit": charging["unit"]}
    for name, value in {"ledger-name": charging["ledger_name"], **asked}.items():
        if value is not None and re.search("://.*@", value):
            told = (
                "it would be written down for all to read, and it looks like a URL with a password"
            )
            raise ParameterError(name, "…", told, "Give a name of your choice.")
    no_folder(where)
    return {
        "ledger": held.enter_context(Ledger(where, _name(charging))),
        **asked,
        "unit": charging["unit"],
    }


def known_to(paying: dict[str, Any]) -> bool:
    """Whether the request was charged before: then what is given is its recorded answer, whatever
    the data is now.
    """
    return (
        paying["ledger"] is not None
        and paying["request"] is not None
        and paying["ledger"].knows(paying["request"])
    )


def no_folder(where: str) -> None:
    """Refuse a folder as the place of a ledger."""
    if os.path.isdir(where):
        raise ParameterError(
            "where", where, "it is a folder", "Name a file in it, such as budget.db there."
        )


def affordable(price: Price, paying: dict[str, Any]) -> None:
    """Refuse (BudgetError) what costs at least this and does not fit. Who has to read data first
    asks this before.
    """
    ledger = paying["ledger"]
    if ledger is not None and not known_to(paying):
        ledger.require(price, paying["account"])


@contextmanager
def warning() -> Iterator[None]:
    """Warnings of ours as lines on standard error, each once."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, PrivacyWarning):
            click.echo(f"Warning: {message}", err=True)
        else:
            others(message, category, filename, lineno, file, line)

    with afresh(), warnings.catch_warnings():
        warnings.simplefilter("always", PrivacyWarning)
        others, warnings.showwarning = warnings.showwarning, show
        yield


@contextmanager
def refusing(
    as_json: bool, charging: Charging, told: Callable[[PrivmaxError], str]
) -> Iterator[None]:
    """Errors in the words of `told`, and whether anything is spent. Exit 3: the budget does not
    allow it.
    """
    try:
        with warning():
            yield
    except BudgetError as error:
        if as_json:
            about = {
                "left": exactly(error.left),
                "cost": exactly(error.cost),
                "account": error.account,
            }
            click.echo(json.dumps({"error": "budget", **about}, ensure_ascii=False))
        raise BudgetRefused(str(error)) from None
    except PrivmaxError as error:
        misplaced = isinstance(error, ParameterError) and error.name == "where"
        about_ledger = misplaced or isinstance(error, LedgerError)
        words = in_commands(error, "ledger", _name(charging)) if about_ledger else told(error)
        raise Refused(" ".join([words, *_notes(error)])) from None
    except KeyboardInterrupt as error:
        for note in _notes(error):
            click.echo(note, err=True)
        raise


def in_commands(error: PrivmaxError, place: str, name: str) -> str:
    """What the library says of a ledger in terms of Python, followed by the same in terms of
    commands.

    place    what the command calls the place of the ledger
    name     the ledger's
    """
    if isinstance(error, ParameterError) and error.name == "where":
        error = ParameterError(place, *error.args[1:])
    message = str(error)
    hint = next((command for words, command in _COMMANDS.items() if words in message), None)
    if hint is not None:
        message += f" Here: privmax budget {hint.format(name=shlex.quote(name))}"
    return without_passwords(message)  # all of it: a name may be a URL given in the wrong place


_COMMANDS = {
    "Ledger.create": "create FILE --name {name} --epsilon … --delta …",
    "open_account": "account FILE ACCOUNT --name {name} --epsilon … --delta …",
    "already holds a ledger": "show FILE --name {name}",
    "already has an account": "grant FILE --account ACCOUNT --name {name} --epsilon … --why …",
}
"""The command that helps, by what the library says."""


def paid_for(release: Release, paying: dict[str, Any]) -> dict[str, Any]:
    """What to show of a release that was paid for: the id of its request, what is left (None: not
    known now), and when its answer was recorded, if that was before."""
    if paying["ledger"] is None:
        return {}
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[REQUEST] = release.request
    left = None
    with suppress(LedgerError):  # the answer is recorded, and must be shown
        left = exactly(_left(paying["ledger"], paying["account"]))
    return {"request": release.request, "left": left, "recorded": release.recorded}


def exactly(privacy: Privacy) -> dict[str, str]:
    return {"epsilon": plain(privacy.epsilon), "delta": plain(privacy.delta)}


def _name(charging: Charging) -> str:
    name = charging["ledger_name"]
    return "default" if name is None else name


def _left(ledger: Ledger, account: str | None) -> Privacy:
    """What may still be charged: of the whole, and of the account if there is one, whichever has
    less.
    """
    left = ledger.remaining
    if account is None:
        return left
    budget, spent = ledger.accounts()[account]
    own = budget.epsilon - spent.epsilon, budget.delta - spent.delta
    return Privacy(min(left.epsilon, own[0]), min(left.delta, own[1]))


def _notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])
