"""`--report FILE`: a page about what a command released or compared."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from privmax.cli.discreet import Refused, without_urls
from privmax.cli.ledger import Charging
from privmax.cli.progress import busy
from privmax.cli.reading import SAMPLE
from privmax.errors import ParameterError, PrivmaxError
from privmax.privacy import Privacy

if TYPE_CHECKING:
    from privmax.compare import Comparison
    from privmax.select import Release

report_option = click.option(
    "--report",
    metavar="FILE",
    help="Write a page about it, too: what was asked, released, promised and paid (.html).",
)


def reportable(report: str | None) -> None:
    """Refuse what would fail when the page is written: to be called before anything is charged."""
    if report is None:
        return
    from privmax.report import writable

    writable(report)
    try:
        import privmax.plots  # noqa: F401  # needs matplotlib
    except ImportError:
        raise ParameterError(
            "report",
            report,
            "its picture needs a package that is not installed",
            'Run pip install "privmax[plot]".',
        ) from None


def report_release(
    report: str,
    release: Release,
    beside: Mapping[str, Any],
    charging: Charging,
    as_json: bool,
    **about: Any,
) -> None:
    """Write the page about a release; to be called when that is printed, so that whatever fails
    here loses nothing.

    beside    what `paid_for` says of it
    about     what `privmax.report.html` is to say of it
    """
    if charging["ledger"] is not None:
        left = beside["left"]
        about["left"] = None if left is None else Privacy(left["epsilon"], left["delta"])
        about["ledger"] = place(charging["ledger_name"] or "default")
        about["account"] = charging["account"]
    again = (
        "Running the command again, to have the report, would be another release at another price."
    )
    if release.request is not None:
        again = (
            f"To have the report add --request {shlex.quote(release.request)}: that costs "
            "nothing more."
        )
    with _failing(f"The answer above stands and is paid for. {again}"):
        from privmax.report import html

        _written(report, lambda: html(release, **about), as_json)


def report_comparison(report: str | None, found: Comparison, as_json: bool, **about: Any) -> None:
    """Write the page about a comparison that is printed already.

    about    what `privmax.report.comparison` is to say of it
    """
    if report is None:
        return
    with _failing("The comparison above stands."):
        from privmax.report import comparison

        _written(report, lambda: comparison(found, **about), as_json)


def located(file: str, table: str | None) -> str | None:
    """Where data is, for a ledger: an absolute path, or a database and its table. None: nowhere, as
    standard input.
    """
    from privmax.ledger.paying import told_place

    if file == "-":
        return None
    if file.startswith(SAMPLE):
        return told_place(file)
    scheme, slashes, rest = file.partition("://")
    if not slashes:
        return told_place(os.path.abspath(file))
    where = f"{scheme}://{os.path.abspath(rest)}" if scheme in ("duckdb", "sqlite") else file
    return told_place(" ".join(filter(None, (place(where), table and place(table)))))


def place(given: str) -> str:
    """Where data is, as it may be shown: of a URL neither user and password nor what stands behind
    its path.
    """
    if given == "-":
        return "standard input"
    scheme, slashes, rest = given.partition("://")
    if not slashes:
        return given
    cut = min((rest.index(c) for c in "?#;" if c in rest), default=len(rest))
    if (
        "@" in rest[cut:]
    ):  # a password may hold such a sign: nobody can tell which part of this it is
        return f"{scheme}://…"
    return f"{scheme}://{rest[:cut].rpartition('@')[2]}"


def _written(report: str, page: Callable[[], str], as_json: bool) -> None:
    from privmax.report import write

    with busy("Writing the report"):
        write(page(), report)
    if not as_json:
        click.echo(f"{'report':11}{report}")


@contextmanager
def _failing(told: str) -> Iterator[None]:
    try:
        yield
    except PrivmaxError as error:
        raise Refused(f"{without_urls(str(error))} {told}") from None
    except Exception as error:
        raise Refused(
            f"--report: the page could not be made ({type(error).__name__}). {told}"
        ) from None
