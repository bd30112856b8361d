"""`privmax demo`."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from shlex import quote
from shutil import which
from typing import TYPE_CHECKING

import click

from privmax.cli.group import Command, Refused
from privmax.cli.messages import describe_error
from privmax.errors import PrivmaxError

if TYPE_CHECKING:
    from rich.console import Console


@click.command("demo", cls=Command)
@click.option("--folder", metavar="DIR", help="Where to write the files.  [default: privmax-demo]")
@click.option("--called", hidden=True, help="How privmax is called here, for what it prints.")
def command(folder: str | None, called: str | None) -> None:
    """Show the whole workflow on a small invented data set.

    Four mechanisms answer which two articles most members of a shop buy together, one answers
    which ten articles most of them buy, and a ledger is charged for it. The folder then has two
    figures and a report (they need matplotlib: the extra plot). Every run creates its own ledger;
    figures and report are overwritten.

    \b
    privmax demo
    privmax demo --folder /tmp/story
    """
    from privmax import demo

    try:
        place = None if folder is None else Path(folder)
        demo.tell(_open_console(), place, command=called or name_program())
    except PrivmaxError as error:
        raise Refused(describe_error(error)) from None
    except BrokenPipeError:  # the group ends the command
        raise
    except OSError as error:
        if error.filename is None:  # what is printed, as to a full disk
            raise Refused(f"The output cannot be written ({error.strerror}).") from None
        raise Refused(
            f"{error.filename} cannot be written ({error.strerror}). Choose another --folder."
        ) from None


def _open_console() -> Console:
    from rich.console import Console

    class Screen(Console):
        """Raises if the output is a broken pipe. There, rich exits with 1: a broken guarantee."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    return Screen(highlight=False)


def name_program() -> str:
    """Return how this program was called, so that a command that is printed works as typed."""
    first = sys.argv[0]
    if Path(first).name == "__main__.py":
        return f"{quote(sys.orig_argv[0])} -m privmax"
    installed = which("privmax")
    if installed is not None and os.path.realpath(installed) == os.path.realpath(first):
        return "privmax"
    return quote(first) if Path(first).name.startswith("privmax") else "privmax"
