"""`privmax budget`: make, look at, raise and check the ledgers of privacy budgets."""

from __future__ import annotations

import click


@click.group("budget")
def budget() -> None:
    """Make, look at, raise and check a privacy budget."""
