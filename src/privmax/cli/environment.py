"""The ledger that the environment names, and when that is not enough to charge one.

PRIVMAX_LEDGER and PRIVMAX_LEDGER_NAME stand for --ledger and --ledger-name. A ledger that comes
from there is told on standard error before it is charged. A name from there is never put together
with a place that was typed: the two may belong to different budgets. An empty variable counts as
not set.
"""

from __future__ import annotations

import os

import click
from click.core import ParameterSource

from privmax.cli.group import Refused
from privmax.cli.passwords import hide_password
from privmax.display import format_label

LEDGER = "PRIVMAX_LEDGER"
LEDGER_NAME = "PRIVMAX_LEDGER_NAME"


def check_ledger(where: str | None, name: str | None) -> None:
    """Refuse, before anything is charged, what the environment leaves open; say what it names.

    Args:
        where: The ledger's place, wherever that comes from.
        name: Its name; None: not given.
    """
    place_from, name_from = is_from_environment("ledger"), is_from_environment("ledger_name")
    if name_from and where is None:
        raise Refused(
            f"{LEDGER_NAME} is set, but there is no ledger, so nothing would be charged. Set "
            f"{LEDGER} too, give --ledger, or unset {LEDGER_NAME}."
        )
    if name_from and not place_from:
        raise Refused(
            f"{LEDGER_NAME}={format_label(name)} is set, and --ledger was typed, so the name "
            "may belong to another ledger. Give --ledger-name, too; the usual one is default."
        )
    if place_from and where is not None:
        tell_ledger(where, name or "default")


def tell_ledger(where: str, name: str | None = None) -> None:
    """Tell on standard error which ledger the environment names; None: all in that place."""
    shown = hide_password(where)
    place = shown if "://" in shown else os.path.abspath(shown)
    which = "Ledgers" if name is None else f"Ledger {format_label(name)}"
    click.echo(f"{which} in {format_label(place)}, from {LEDGER}.", err=True)


def is_from_environment(parameter: str) -> bool:
    """Return whether a parameter of the command that runs was read from the environment."""
    context = click.get_current_context(silent=True)
    return (
        context is not None
        and context.get_parameter_source(parameter) is ParameterSource.ENVIRONMENT
    )
