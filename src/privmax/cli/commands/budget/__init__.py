"""`privmax budget`: create, list, show, raise and check the ledgers of privacy budgets.

Exit 0: done. 1: `verify` found faults, or `show` met one. 2: bad input, no such ledger, or it
cannot be used now. 130: stopped by Ctrl-C. (3, the budget does not allow it, is what commands that
charge a ledger say.)
"""

from __future__ import annotations

import click

from privmax.cli.commands.budget.changing import (
    account_command,
    create_command,
    grant_command,
    split_command,
)
from privmax.cli.commands.budget.checking import unblock_command, verify_command
from privmax.cli.commands.budget.history import export_command, history_command
from privmax.cli.commands.budget.showing import list_command, show_command
from privmax.cli.group import CommandGroup


@click.group("budget", cls=CommandGroup)
def command() -> None:
    """Create, show, raise and check a privacy budget.

    FILE is the place of the ledger: a file, or the URL of a PostgreSQL database
    (postgresql://user@host/database; keep the password in ~/.pgpass or PGPASSWORD).

    show, history, list, verify and export only read. Without FILE they use PRIVMAX_LEDGER and
    PRIVMAX_LEDGER_NAME. Commands that change a budget require FILE.
    """


for _one in (
    create_command,
    show_command,
    history_command,
    list_command,
    grant_command,
    account_command,
    split_command,
    verify_command,
    unblock_command,
    export_command,
):
    command.add_command(_one)
