"""Errors as the command line prints them, such as `--k 0: it must be above 0`.

An error of the library has attributes (`ParameterError.name`, `LedgerError.missing`, …). They are
printed here with the options of the command that runs, never with the arguments of Python.
"""

from __future__ import annotations

import re
import shlex

import click

from privmax.cli.passwords import without_passwords
from privmax.errors import LedgerError, ParameterError, PrivmaxError, shorten

_ALIASES = {"universe": "items", "counts": "supports"}
"""Other names of arguments of the library, for commands that have no option of their name."""


def describe_error(error: PrivmaxError) -> str:
    """Return an error in the words of the running command."""
    return _describe_parameter(error) if isinstance(error, ParameterError) else str(error)


def _describe_parameter(error: ParameterError) -> str:
    option, value = spell_option(_name(error)), error.value
    if error.name == "sample":
        option, value = "FILE", f"sample:{value}"
    shown = "" if value is None or isinstance(value, bool) else f" {_show(value)}"
    why = error.allowed or "it is required"
    return f"{option}{shown}: {why}. {error.remedy}".rstrip()


def _name(error: ParameterError) -> str:
    """Return what the error is about.

    With a ledger, `where` is its place, and not a condition on rows, which has an error of its own.
    """
    context = click.get_current_context(silent=True)
    has_ledger = context is not None and any(one.name == "ledger" for one in context.command.params)
    is_place = error.name == "where" and type(error) is ParameterError
    return "ledger" if is_place and has_ledger else error.name


def spell_option(name: str) -> str:
    """Return how the running command spells an argument: `--k`, or FILE for a positional one."""
    context = click.get_current_context(silent=True)
    options = [] if context is None else context.command.params
    for spelling in (name, _ALIASES.get(name, name)):
        for option in options:
            spelled = {one.lstrip("-") for one in option.opts} | {str(option.name)}
            if spelling in spelled or spelling.replace("_", "-") in spelled:
                if option.param_type_name == "option":
                    return max(option.opts, key=len)
                return option.human_readable_name.strip("[]")
    return name


def _show(value: object) -> str:
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(map(_show, value))
    if not isinstance(value, str):
        return shorten(value)
    plain = re.fullmatch(r"[^\s'\"]+", value) and value.isprintable() and len(value) <= _LONGEST
    return value if plain else shorten(value)


_LONGEST = 100
"""Characters of a value that are shown without quotes."""


def describe_ledger_error(error: PrivmaxError, name: str) -> str:
    """Return an error about a ledger, with the command that helps.

    Args:
        name: The ledger's.
    """
    if not isinstance(error, LedgerError):
        return without_passwords(describe_error(error))
    hint = _MISSING.get(error.missing or "") or _EXISTING.get(error.existing or "")
    if hint is None:
        return without_passwords(str(error))
    message = f"{error.message} Run privmax budget {hint.format(name=shlex.quote(name))}"
    if error.missing == "ledger" and error.known:
        message += ", or see privmax budget list FILE"
    return without_passwords(message)  # all of it: a name may be a URL given in the wrong place


_MISSING = {
    "ledger": "create FILE --name {name} --epsilon … --delta …",
    "account": "account FILE ACCOUNT --name {name} --epsilon … --delta …",
}
"""The command that helps, by what is missing."""

_EXISTING = {
    "ledger": "show FILE --name {name}",
    "account": "grant FILE --account ACCOUNT --name {name} --epsilon … --why …",
}
"""The command that helps, by what exists already."""
