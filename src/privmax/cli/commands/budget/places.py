"""Finds the ledger that FILE and --name give a command, and opens it with errors in words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.core import ParameterSource

from privmax.cli.commands.budget.tables import printable
from privmax.cli.environment import LEDGER, LEDGER_NAME, is_from_environment, tell_ledger
from privmax.cli.group import refusal
from privmax.cli.messages import describe_ledger_error
from privmax.cli.run import BudgetRefused, refuse_folder
from privmax.errors import BudgetError, PrivmaxError
from privmax.ledger import Ledger

_name = click.option(
    "--name",
    default="default",
    show_default=True,
    help="Name of the ledger; one file or database can have several.",
)


def typed_place(command: Callable[..., Any]) -> Callable[..., Any]:
    """FILE and --name of a command that changes a ledger: both as typed."""
    return click.argument("where", metavar="FILE")(_name(command))


def _require_place(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    if value is None and not context.resilient_parsing:
        raise click.UsageError(f"Missing argument 'FILE', and {LEDGER} is not set.", context)
    return value


file_or_environment = click.argument(
    "where", metavar="[FILE]", required=False, envvar=LEDGER, callback=_require_place
)


def any_place(command: Callable[..., Any]) -> Callable[..., Any]:
    """FILE and --name of a command that only looks: the environment may say which ledger."""
    return file_or_environment(_name(command))


@contextmanager
def open_ledger(where: str, name: str) -> Iterator[Ledger]:
    """Open the ledger that a command is about."""
    with refusing(where, name), Ledger(where, name) as ledger:
        yield ledger


@contextmanager
def open_to_read(where: str, name: str) -> Iterator[Ledger]:
    """The same for a command that only looks."""
    if is_from_environment("where"):
        context = click.get_current_context()
        if context.get_parameter_source("name") is ParameterSource.DEFAULT:
            name = os.environ.get(LEDGER_NAME) or name
        tell_ledger(where, name)
    with open_ledger(where, name) as ledger:
        yield ledger


@contextmanager
def refusing(where: str, name: str) -> Iterator[None]:
    """Errors in words, with the command that helps."""
    try:
        refuse_folder(where)
        yield
    except BudgetError as error:
        raise BudgetRefused(printable(str(error))) from None
    except PrivmaxError as error:
        raise refusal(error, printable(describe_ledger_error(error, name))) from None
