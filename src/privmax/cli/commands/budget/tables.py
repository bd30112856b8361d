"""Prints ledgers for commands: tables, amounts, JSON, and text that no terminal obeys."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from privmax.display import escape_text
from privmax.errors import LedgerError
from privmax.ledger import Ledger
from privmax.ledger.rules import less
from privmax.numbers import round_down, round_up
from privmax.privacy import Privacy, exact_privacy

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

WIDE = 200
"""Columns of a table that goes to a file or to another program."""


def describe_ledger(ledger: Ledger) -> dict[str, Any]:
    """Return what --json prints of every ledger: its name and place, and what it was made with."""
    neighbors, unit = _terms_of(ledger)
    return {
        "name": ledger.name,
        "where": ledger.where,
        "rule": ledger.rule,
        "strict": ledger.strict,
        "neighbors": neighbors,
        "unit": unit,
    }


def title_of(ledger: Ledger) -> str:
    """Return the line above a table."""
    _, unit = _terms_of(ledger)
    parts = [
        f"ledger {ledger.name} in {ledger.where}",
        f"rule {ledger.rule}",
        *(["strict"] if ledger.strict else []),
    ]
    return printable(", ".join(parts if unit is None else [*parts, f"unit {unit}"]))


def _terms_of(ledger: Ledger) -> tuple[str | None, str | None]:
    """Return the relation and the unit of all charges.

    None where there is no charge yet, or where they cannot be read, which verify reports.
    """
    try:
        whole = ledger.standing().whole
        return whole.neighbors, whole.unit
    except LedgerError:
        return None, None


def share_json(granted: Privacy, spent: Privacy) -> dict[str, Any]:
    """Budget, spent and left, exactly."""
    return {
        "budget": exact_privacy(granted),
        "spent": exact_privacy(spent),
        "left": exact_privacy(less(granted, spent)),
    }


def round_share(granted: Privacy, spent: Privacy) -> tuple[list[str], list[str]]:
    """Budget, spent and left, of epsilon and of delta: what is spent rounded up, the rest down."""
    pairs = (round_down, granted), (round_up, spent), (round_down, less(granted, spent))
    return [show(one.epsilon) for show, one in pairs], [show(one.delta) for show, one in pairs]


def make_table(*names: str) -> Table:
    """Return an empty table with columns of these names."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for number, name in enumerate(names):
        table.add_column(name, justify="right" if number > 1 else "left", overflow="fold")
    return table


def print_table(table: Table, title: str) -> None:
    """Print a table below its title, without blanks at the ends of lines."""
    from rich.console import Console

    console = Console(highlight=False, width=table_width())
    with console.capture() as captured:
        console.print(table)
    head = [title] if title else []
    click.echo("\n".join([*head, "", *(line.rstrip() for line in captured.get().splitlines())]))


def table_width() -> int:
    """Columns that there are."""
    if not sys.stdout.isatty():
        return WIDE
    return max(get_terminal_size().columns, 40)


def print_json(value: Mapping[str, Any]) -> None:
    """Print a JSON object in one line."""
    click.echo(json.dumps(value))


def text_cell(value: str) -> Text:
    """Stored text is never taken for markup or for a command to the terminal."""
    from rich.text import Text

    return Text(printable(value))


def printable(text: str) -> str:
    """Text in which nothing is a command to the terminal."""
    return escape_text(text, keep="\n")
