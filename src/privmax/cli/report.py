"""`--report FILE`: a page about what a command released or compared."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from privmax.cli.group import Refused
from privmax.cli.messages import describe_error
from privmax.cli.options import LedgerOptions
from privmax.cli.output import busy
from privmax.cli.passwords import hide_password, without_urls
from privmax.display import escape_text
from privmax.errors import ParameterError, PrivmaxError, explain_install

if TYPE_CHECKING:
    from privmax.planning.comparison import Comparison
    from privmax.release import Release


def check_report(report: str) -> None:
    """Refuse what would fail when the page is written: to be called before anything is charged."""
    from privmax.report import writable

    writable(report)
    try:
        import privmax.plots  # noqa: F401  # needs matplotlib
    except ImportError:
        raise ParameterError(
            "report",
            report,
            "its figure needs a package that is not installed",
            explain_install("plot"),
        ) from None


def report_release(
    report: str,
    release: Release,
    payment: Mapping[str, Any],
    charging: LedgerOptions,
    as_json: bool,
    **about: Any,
) -> None:
    """Write the page about a release.

    It is called when the release is printed, so that a failure here loses nothing.

    Args:
        payment: What is printed of its payment.
        about: What `privmax.report.html` is to say of it; with `learned`, `card`.
    """
    if charging["ledger"] is not None:
        about["left"] = payment["left"]
        about["ledger"] = hide_password(charging["ledger_name"] or "default")
        about["account"] = charging["account"]
    again = explain_repetition(release, "the report")
    learned = about.pop("learned", None)
    with _report_failure(f"The answer above is valid and charged. {again}"):
        from privmax.report import card, html

        page = partial(html, release) if learned is None else partial(card, learned)
        _write(report, lambda: page(**about), as_json)


def explain_repetition(release: Release, what: str) -> str:
    """Return how to have what could not be written, in words."""
    if release.request is None:
        return (
            f"Running the command again for {what} would be another release, with its own privacy "
            "cost."
        )
    request = shlex.quote(release.request)
    return f"For {what}, run it again with --request {request}: that costs nothing more."


def report_comparison(report: str | None, result: Comparison, as_json: bool, **about: Any) -> None:
    """Write the page about a comparison that is printed already.

    Args:
        about: What `privmax.report.comparison_page` is to say of it.
    """
    if report is None:
        return
    with _report_failure("The comparison above is valid."):
        from privmax.report import comparison

        _write(report, lambda: comparison(result, **about), as_json)


def _write(report: str, page: Callable[[], str], as_json: bool) -> None:
    from privmax.report import write

    with busy("Writing the report"):
        write(page(), report)
    if not as_json:
        click.echo(f"{'report':11}{escape_text(report)}")


@contextmanager
def _report_failure(message: str) -> Iterator[None]:
    try:
        yield
    except PrivmaxError as error:
        raise Refused(f"{without_urls(describe_error(error))} {message}") from None
    except Exception as error:
        raise Refused(
            f"--report: the page could not be made ({type(error).__name__}). {message}"
        ) from None
