"""`privmax demo`."""

from __future__ import annotations

import click
from rich.console import Console

from privmax import demo


@click.command("demo")
def command() -> None:
    """Tell the whole story on a small invented data set."""
    demo.tell(Console(highlight=False))
