"""`privmax budget show` and `list`: what ledgers were granted, have spent and have left."""

from __future__ import annotations

import sys

import click

from privmax.cli.commands.budget.places import (
    any_place,
    file_or_environment,
    open_to_read,
    refusing,
)
from privmax.cli.commands.budget.tables import (
    describe_ledger,
    make_table,
    print_json,
    print_table,
    printable,
    round_share,
    share_json,
    text_cell,
    title_of,
)
from privmax.cli.environment import is_from_environment, tell_ledger
from privmax.cli.exits import Exit
from privmax.cli.group import Command
from privmax.cli.options import json_option
from privmax.cli.output import check_plot, draw_plot
from privmax.ledger import Fault, Ledger

plot_option = click.option(
    "--plot", metavar="FILE", help="Also draw spending over time (.png or .svg)."
)


@click.command("show", cls=Command)
@any_place
@plot_option
@json_option
def show_command(where: str, name: str, plot: str | None, as_json: bool) -> None:
    """Show what was granted, spent and left, for the ledger and each account.

    The table rounds the amount spent up and the others down. --json prints exact numbers as text:
    "name", "where", "rule", "strict", "neighbors" and "unit" (of all charges; null: none yet),
    "budget", "spent" and "left" with an "epsilon" and a "delta" each, and "accounts", which has
    "budget", "spent" and "left" by account name.

    Exit 1: the last events are wrong. The output shows what was spent before them, and names the
    first; --json has it as "fault". Nothing is charged to such a ledger.

    Example: privmax budget show budget.db --plot spending.svg
    """
    with open_to_read(where, name) as ledger:
        if plot is not None:
            draw_spending(ledger, plot)
        print_standing(ledger, as_json)


@click.command("list", cls=Command)
@file_or_environment
@json_option
def list_command(where: str, as_json: bool) -> None:
    """List the ledgers in FILE, with what each was granted and has spent and left.

    --json prints "where" and "ledgers", each with "name", "rule", "strict", "neighbors", "unit",
    "budget", "spent" and "left" as show has them.

    Example: privmax budget list budget.db
    """
    with refusing(where, "default"):
        if is_from_environment("where"):
            tell_ledger(where)
        ledgers, faults, shown = [], list[str](), where
        for name in Ledger.names(where):
            with Ledger(where, name) as ledger:
                shown = ledger.where
                total, _, fault = ledger.standing()
                faults += [] if fault is None else [f"ledger {name}: {fault}"]
                ledgers.append((describe_ledger(ledger), total.budget, total.spent))
        for message in faults:
            click.echo(printable(f"{message}. Below is what was spent before it."), err=True)
        if as_json:
            listed = [{**about, **share_json(*share)} for about, *share in ledgers]
            for one in listed:
                del one["where"]
            print_json({"where": shown, "ledgers": listed})
            return
        table = make_table("ledger", "rule", "", "budget", "spent", "left")
        table.columns[2].justify = "left"
        for about, granted, spent in ledgers:
            strict = ", strict" if about["strict"] else ""
            epsilons, deltas = round_share(granted, spent)
            table.add_row(
                text_cell(about["name"]), f"{about['rule']}{strict}", "epsilon", *epsilons
            )
            table.add_row("", "", "delta", *deltas)
        print_table(
            table, printable(f"{len(ledgers)} ledger{'s' * (len(ledgers) != 1)} in {shown}")
        )


def print_standing(ledger: Ledger, as_json: bool) -> None:
    """Print what was granted, spent and left; exit 1 where an event is wrong."""
    total, accounts, fault = ledger.standing()
    whole = total.budget, total.spent
    if as_json:
        shares = {account: share_json(*share) for account, share in accounts.items()}
        faults = {} if fault is None else {"fault": {"seq": fault.seq, "what": fault.what}}
        print_json({**describe_ledger(ledger), **share_json(*whole), "accounts": shares, **faults})
        _stop_at(fault)
        return
    table = make_table("", "", "budget", "spent", "left")
    for whose, (granted, spent) in {
        "ledger": whole,
        **{f"account {name}": own for name, own in accounts.items()},
    }.items():
        epsilons, deltas = round_share(granted, spent)
        table.add_row(text_cell(whose), "epsilon", *epsilons)
        table.add_row("", "delta", *deltas)
    print_table(table, title_of(ledger))
    _stop_at(fault)


def _stop_at(fault: Fault | None) -> None:
    """End with exit 1 where an event is wrong."""
    if fault is not None:
        message = f"{fault}. This is what was spent before it. Nothing more is charged: run verify."
        click.echo(printable(message), err=True)
        sys.exit(Exit.BROKEN)


def draw_spending(ledger: Ledger, file: str) -> None:
    """Draw spending over time into a file."""
    check_plot(file)
    from privmax.plots import spending

    draw_plot(spending(ledger.history(), title=f"Ledger {ledger.name}"), file)
