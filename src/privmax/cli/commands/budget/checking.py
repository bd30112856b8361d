"""`privmax budget verify` and `unblock`: whether a ledger is correct, and who has it locked."""

from __future__ import annotations

import re
import sys

import click

from privmax.cli.commands.budget.places import any_place, open_to_read, refusing
from privmax.cli.commands.budget.tables import describe_ledger, print_json, printable, title_of
from privmax.cli.exits import Exit
from privmax.cli.group import Command
from privmax.cli.options import json_option
from privmax.cli.output import busy
from privmax.cli.passwords import hide_password
from privmax.errors import LedgerError, ParameterError
from privmax.ledger import Fault, Ledger


@click.command("verify", cls=Command)
@any_place
@click.option(
    "--noted",
    metavar="HASH",
    help="A hash that verify printed earlier and that you kept elsewhere.",
)
@json_option
def verify_command(where: str, name: str, noted: str | None, as_json: bool) -> None:
    """Check the ledger: add up the history again, and follow the hashes from event to event.

    Exit 0: nothing is wrong. Exit 1: it says which event is wrong, and why. Exit 2: the ledger
    could not be checked, for example because the file cannot be read.

    The hash of the last event identifies the whole history. Keep it elsewhere: a person who can
    write to the file could write another history, or restore an old copy, and no check of the file
    alone can detect that. --noted does.

    --json prints "name", "where", "rule", "strict", "neighbors", "unit", "events" (how many),
    "hash" (of the last one) and "faults", each with the "seq" of an event and "what" is wrong; null
    where it concerns no event.

    Example: privmax budget verify budget.db
    """
    with open_to_read(where, name) as ledger:
        noted = None if noted is None else _hash(noted)
        with busy("Checking"):
            # Walked before it is checked: the hash that is printed is then one that was checked.
            events, last, is_noted = _walk_events(ledger, noted)
            faults: list[Fault | str] = [*ledger.verify()]
        if noted is not None and not is_noted:
            faults.append(
                "no event has the hash that was noted: the history was rewritten, or is an old copy"
            )
        if as_json:
            listed = [
                {"seq": getattr(fault, "seq", None), "what": getattr(fault, "what", fault)}
                for fault in faults
            ]
            print_json(
                {**describe_ledger(ledger), "events": events, "hash": last, "faults": listed}
            )
        else:
            click.echo(title_of(ledger))
            for fault in faults:
                click.echo(printable(str(fault)))
            if not faults:
                click.echo(f"all {events} events are correct; the hash of the last is\n{last}")
    sys.exit(Exit.BROKEN if faults else Exit.DONE)


def _hash(noted: str) -> str:
    """Return a hash as verify prints it."""
    digits = noted.strip().lower()
    if not re.fullmatch("[0-9a-f]{64}", digits):
        raise ParameterError(
            "noted", noted, "it must be 64 hexadecimal digits", "Give a hash that verify printed."
        )
    return digits


def _walk_events(ledger: Ledger, noted: str | None) -> tuple[int, str | None, bool]:
    """Return the number of events, the hash of the last, and whether one has the noted hash."""
    events, last, is_noted = 0, None, False
    try:
        for event in ledger.history():
            events, last, is_noted = events + 1, event.hash, is_noted or event.hash == noted
    except LedgerError:  # verify tells what is wrong
        return events, None, is_noted
    return events, last, is_noted


@click.command("unblock", cls=Command)
@click.argument("where", metavar="URL")
@click.option("--pid", type=int, metavar="PID", help="End this session; its transaction is undone.")
@json_option
def unblock_command(where: str, pid: int | None, as_json: bool) -> None:
    """List the sessions that have a ledger in PostgreSQL locked; end one with --pid.

    A session that has locked a ledger and does not end its transaction makes all others wait.
    Those that only wait are listed behind it. Ending a session loses nothing: what it had not
    committed is undone, and repeating its request id charges once.

    It requires the right to execute privmax_blockers and privmax_unblock, and their owner must be a
    member of pg_signal_backend. Times are shown if the owner is a member of pg_read_all_stats.

    --json prints "where" (without user and password), "sessions", each with "pid", "who", "since"
    (null: unknown) and "waits", and "ended", the PID or null.

    Example: privmax budget unblock postgresql://grace@db.example.com/budget
    """
    with refusing(where, "default"):
        if pid is not None and not Ledger.unblock(where, pid):
            raise ParameterError(
                "pid", pid, "no session of that number has a ledger locked or waits for one",
                "Run it without --pid to list them.",
            )  # fmt: skip
        sessions = [one for one in Ledger.blockers(where) if one.pid != pid]
        shown = hide_password(where)
    if as_json:
        listed = [
            {**one._asdict(), "since": None if one.since is None else one.since.isoformat()}
            for one in sessions
        ]
        print_json({"where": shown, "sessions": listed, "ended": pid})
        return
    if pid is not None:
        click.echo(f"session {pid} was ended")
    for one in sessions:
        since = "" if one.since is None else f" since {one.since:%Y-%m-%d %H:%M:%S}"
        state = "waits" if one.waits else "has a ledger locked"
        click.echo(printable(f"session {one.pid} of {one.who} {state}{since}"))
    if not sessions:
        click.echo("no session has a ledger locked")
