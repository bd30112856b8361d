"""`privmax explore`."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from privmax.cli.environment import LEDGER, LEDGER_NAME, check_ledger
from privmax.cli.group import Command, Refused, refusal
from privmax.cli.messages import describe_error, describe_ledger_error
from privmax.cli.passwords import hide_password, without_urls
from privmax.errors import LedgerError, PrivmaxError, explain_install

if TYPE_CHECKING:
    from socket import socket as Socket

    from privmax.explore.security import AccessGate

_DECLARED = {
    "table": "Table of a database.",
    "columns": "Columns that may be released, with commas between them.",
    "where": "More columns that conditions may look at.",
    "user": "Column of individuals, whose privacy is protected.",
    "score": "Column of precomputed scores, one row per item.",
    "unit": "What one individual is, such as row, where no --user says so.",
}
"""Facts about a data set on the command line, each as NAME=…."""


def _declarations(command: Any) -> Any:
    for entry, words in reversed(_DECLARED.items()):
        option = click.option(f"--{entry}", metavar="NAME=…", multiple=True, help=words)
        command = option(command)
    return command


@click.command("explore", cls=Command)
@click.option(
    "--data",
    metavar="NAME=FILE",
    multiple=True,
    help="Data set that may be asked about: FILE as in privmax select. Can be repeated.",
)
@_declarations
@click.option(
    "--datasets",
    metavar="FILE",
    help="TOML file that describes data sets; for URLs with a password, which do not belong "
    "on a command line.",
)
@click.option(
    "--ledger",
    metavar="FILE",
    envvar=LEDGER,
    show_envvar=True,
    help="Ledger that is charged for releases: a file or a PostgreSQL URL.",
)
@click.option(
    "--ledger-name",
    metavar="NAME",
    envvar=LEDGER_NAME,
    show_envvar=True,
    help="Name of the ledger in --ledger.  [default: default]",
)
@click.option(
    "--lenient",
    is_flag=True,
    help="Also ask with a ledger that is not strict: errors then reveal something about the data "
    "at no cost.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True,
              help="Port to listen on; 0: any that is free. With --socket: the port that is "
              "forwarded to it.")  # fmt: skip
@click.option(
    "--socket",
    metavar="PATH",
    help="Unix socket to listen on instead of a port: only this user can connect to it. Its folder "
    "must have mode 0700; a missing one is created.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; needs --reason "
    "unless it is loopback."
)  # fmt: skip
@click.option("--reason", help="Reason to serve pages beyond this machine; the pages show it.")
def command(**options: Any) -> None:
    """Plan, ask and document releases in a browser, on this machine.

    It prints an address; open it. Plan shows how clear a winner must be, Try draws on public data,
    Ask releases answers about the data sets given here and charges the ledger, History and Hand
    over show what was spent. Nothing is fetched from elsewhere. Ctrl-C ends it.

    Needs the extra explore.

    \b
    privmax explore
    privmax budget create budget.db --strict --epsilon 3 --delta 1e-5
    privmax explore --ledger budget.db --data try=sample:searches
    privmax explore --ledger budget.db --data log=log.parquet --user log=person \\
        --columns log=query,country
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise Refused(
            f"privmax explore needs more packages. {explain_install('explore')}"
        ) from None
    place = _Place(*(options.pop(name) for name in ("host", "port", "socket", "reason")))
    try:
        _serve(place, **options)
    except LedgerError as error:
        message = describe_ledger_error(error, options["ledger_name"] or "default")
        raise refusal(error, message) from None
    except PrivmaxError as error:
        raise refusal(error, without_urls(describe_error(error))) from None


@dataclass(frozen=True)
class _Place:
    """The place where pages are served, as given by the options."""

    host: str
    port: int
    socket: str | None
    reason: str | None

    def check(self) -> None:
        from privmax.explore.security import is_loopback

        if not is_loopback(self.host) and not self.reason:
            raise Refused(
                f"--host {self.host}: others could reach the pages, without encryption. Say why "
                "with --reason, or leave it out and use an SSH tunnel."
            )
        if self.socket is not None and (not is_loopback(self.host) or not self.port):
            raise Refused(
                "--socket: leave out --host, and name the --port that is forwarded to it, such as "
                "8765."
            )

    def listen(self) -> AbstractContextManager[Socket]:
        from privmax.explore.listening import listen, listen_at

        if self.socket is not None:
            return listen_at(self.socket)
        return closing(listen(self.host, self.port))

    def announce(self, gate: AccessGate, number: int) -> None:
        if self.socket is not None:
            path = os.path.abspath(self.socket)
            click.echo(f"Forward a port first: ssh -N -L {number}:{path} HOST", err=True)
        shown = f"[{self.host}]" if ":" in self.host else self.host
        click.echo(f"Open http://{shown}:{number}/?key={gate.key}")
        click.echo("Anyone with this address can use these pages. Ctrl-C ends them.", err=True)


def _serve(
    place: _Place,
    data: tuple[str, ...],
    datasets: str | None,
    ledger: str | None,
    ledger_name: str | None,
    lenient: bool,
    **declared: tuple[str, ...],
) -> None:
    from privmax.cli.run import refuse_folder
    from privmax.explore.datasets import read_datasets
    from privmax.explore.server import gate_for, serve
    from privmax.explore.state import Explorer
    from privmax.explore.work import Pool
    from privmax.ledger import Ledger

    place.check()
    if os.environ.get(LEDGER) or os.environ.get(LEDGER_NAME):
        check_ledger(ledger, ledger_name)
    named = read_datasets({"file": data, **declared}, datasets)
    for one in named.values():
        one.check_place()
    opened = None
    if ledger is not None:
        refuse_folder(ledger)
        opened = Ledger(ledger, ledger_name or "default")
    elif named:
        raise Refused("--data needs --ledger, which is charged for answers. Add --ledger FILE.")
    with ExitStack() as stack:
        if opened is not None:
            stack.callback(opened.close)
        listening = stack.enter_context(place.listen())
        number = place.port or listening.getsockname()[1]
        gate = gate_for(place.host, number, own_user=place.socket is None)
        explorer = Explorer(gate, Pool(), opened, named, lenient, place.reason)

        def announce() -> None:
            place.announce(gate, number)
            if opened is not None and not opened.strict and not lenient:
                click.echo(
                    f"The ledger {hide_password(opened.name)} is not strict: nothing can be asked. "
                    "See --lenient.",
                    err=True,
                )

        serve(explorer, listening, announce)
