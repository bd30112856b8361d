"""`privmax demo`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shlex import quote
from shutil import which

import click

from privmax.cli.group import Command, Refused
from privmax.errors import PrivmaxError


@click.command("demo", cls=Command)
@click.option(
    "--folder", metavar="DIR", help="Where to leave what it writes.  [default: privmax-demo]"
)
@click.option("--called", hidden=True, help="How privmax is called here, for what it prints.")
def command(folder: str | None, called: str | None) -> None:
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
        place = None if folder is None else Path(folder)
        demo.tell(Console(highlight=False), place, command=called or name_program())
    except PrivmaxError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(
            f"{error.filename} cannot be written ({error.strerror}). Choose another --folder."
        ) from None


def name_program() -> str:
    """How this program was called, so that a command that is printed works as typed."""
    first = sys.argv[0]
    if Path(first).name == "__main__.py":
        return f"{quote(sys.orig_argv[0])} -m privmax"
    found = which("privmax")
    if found is not None and os.path.realpath(found) == os.path.realpath(first):
        return "privmax"
    return quote(first) if Path(first).name.startswith("privmax") else "privmax"
