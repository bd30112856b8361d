"""`privmax demo`."""

from __future__ import annotations

from pathlib import Path

import click

from privmax.cli.group import Command, Refused
from privmax.cli.messages import describe_error
from privmax.errors import PrivmaxError


@click.command("demo", cls=Command)
@click.option("--folder", metavar="DIR", help="Where to write the files.  [default: privmax-demo]")
def command(folder: str | None) -> None:
    """Show the whole workflow on a small invented data set.

    Four mechanisms answer which two articles most members of a shop buy together, one answers
    which ten articles most of them buy, and a ledger is charged for it. The folder then has two
    figures and a report (they need matplotlib: the extra plot). Every run creates its own ledger;
    figures and report are overwritten.

    \b
    privmax demo
    privmax demo --folder /tmp/story
    """
    from rich.console import Console

    from privmax import demo

    try:
        demo.tell(Console(highlight=False), None if folder is None else Path(folder))
    except PrivmaxError as error:
        raise Refused(describe_error(error)) from None
    except OSError as error:
        raise Refused(
            f"{error.filename} cannot be written ({error.strerror}). Choose another --folder."
        ) from None
