"""`privmax demo`."""

from __future__ import annotations

from pathlib import Path

import click

from privmax.cli.group import Command, Refused
from privmax.errors import PrivmaxError


@click.command("demo", cls=Command)
@click.option(
    "--folder", metavar="DIR", help="Where to leave what it writes.  [default: privmax-demo]"
)
def command(folder: str | None) -> None:
    """Tell the whole story on a small invented data set.

    Four mechanisms are asked which two articles most members of a shop buy together, one is asked
    which ten articles most of them buy, and a ledger pays for it. Beside what is printed there are
    two pictures and a report in the folder (they need matplotlib: the extra plot). Every run makes
    a ledger of its own; pictures and report are written anew.

    \b
    privmax demo
    privmax demo --folder /tmp/story
    """
    from rich.console import Console

    from privmax import demo

    try:
        demo.tell(Console(highlight=False), None if folder is None else Path(folder))
    except PrivmaxError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(
            f"{error.filename} cannot be written ({error.strerror}). Choose another --folder."
        ) from None
