"""The one skeleton of a command that releases: `select`, `itemsets` and `learn` all run through it.

Options are checked, the ledger is opened, the answer is made and printed, and a page about it is
written. Errors say what was wrong and whether anything is spent.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

import click

from privmax.advice import next_steps
from privmax.cli.environment import LEDGER, LEDGER_NAME, check_ledger
from privmax.cli.group import REQUEST, Refused, refusal
from privmax.cli.messages import describe_error, describe_ledger_error, spell_option
from privmax.cli.options import LedgerOptions, Limits
from privmax.cli.output import busy, describe_release, dump_release, exact_privacy
from privmax.cli.passwords import without_urls
from privmax.cli.report import check_report, report_release
from privmax.cli.tables import Table, check_columns, check_output, write_output
from privmax.display import spell_out, to_json
from privmax.errors import BudgetError, LedgerError, ParameterError, PrivacyWarning, PrivmaxError
from privmax.ledger import Ledger
from privmax.padding import pad_time, read_seconds
from privmax.resources import Resources, use
from privmax.sources.places import would_read
from privmax.universe import Universe
from privmax.warnings import afresh
from privmax.writing import check_apart

if TYPE_CHECKING:
    from privmax.ledger.payment import Request
    from privmax.release import Release


@dataclass(frozen=True)
class Job:
    """What is left to do for a command when its options are understood.

    doing     what it is busy with, in a word
    answer    makes the release, charged by a request to a ledger, if there is one
    name      what its items are called
    words     the items of a release, in words
    fields    them as JSON, by name
    about     what a page about the release is to say of it
    more      what else was released, in words, by what it is called
    below     a line to print below the release
    save      is given the release and its JSON when it is printed; None: nothing is saved
    table     tells what a file of the release holds; None: the command writes none
    """

    doing: str
    answer: Callable[[Request | None], Release]
    name: str
    words: Callable[[Any], list[str]]
    fields: Callable[[Any], Mapping[str, object]]
    about: Callable[[Any], Mapping[str, Any]]
    more: Callable[[Any], Mapping[str, list[str]]] = lambda release: {}
    below: str = ""
    save: Callable[[Release, str], None] | None = None
    table: Callable[[], Table] | None = None


@dataclass(frozen=True)
class Output:
    """Where a command writes, beside standard output.

    as_json   whether to print JSON
    report    the file of a page about the release
    table     the file of a table of what is released
    others    other files that it writes, by the option that names them
    """

    as_json: bool
    report: str | None = None
    table: str | None = None
    others: Mapping[str, str | None] = field(default_factory=dict)

    def check(self, inputs: Mapping[str, str | None]) -> None:
        """Refuse, before anything is charged, what could not be written, or would be what is
        read.
        """
        written = {**self.others, "output": self.table, "report": self.report}
        check_apart(written, inputs)
        for option, path in written.items():
            if path is not None and would_read(inputs["FILE"] or "", path):
                raise ParameterError(
                    option,
                    path,
                    "FILE is a folder or a pattern, and would read it as data",
                    "Choose another folder or another name.",
                )
        if self.table is not None:
            check_output(self.table)
        if self.report is not None:
            check_report(self.report)


class BudgetRefused(Refused):
    """The budget does not allow it."""

    exit_code = 3


def run_job(
    prepare: Callable[[Output], Job],
    charging: LedgerOptions,
    output: Output,
    limits: Limits,
    explain: Callable[[PrivmaxError], str] = describe_error,
) -> None:
    """Release what a command was asked for.

    prepare    understands the options
    limits     what DuckDB may use, and how long the answer is to take
    explain    an error in words
    """
    seconds, is_shown = limits["pad_time"], sys.stderr.isatty()
    padded = seconds is not None
    with _tell_errors(output.as_json, charging, explain, padded), ExitStack() as stack:
        watched: list[Any] = []
        schedule: AbstractContextManager[None] = nullcontext()
        if seconds is not None:
            schedule = pad_time(read_seconds("pad-time", seconds))
            is_shown = False  # how far the work is tells how long it takes
        watch = watched.append if is_shown else None
        resources = Resources.of(limits["memory"], limits["temporary"], watch)
        job = prepare(output)
        table = None
        if output.table is not None and job.table is not None:
            table = job.table()
            check_columns(output.table, table)
        request = open_request(charging, stack)
        with busy(job.doing, watched), use(resources), schedule:
            release = job.answer(request)
        beside = _beside(release, request)
    if output.as_json:
        text = dump_release(job.fields(release), release, beside)
    else:
        words, more = job.words(release), {**job.more(release), "next": _next_steps(job, release)}
        text = describe_release(job.name, words, release, beside, more)
        text = "\n".join(filter(None, (text, job.below)))
    click.echo(text)
    if job.save is not None:
        job.save(release, dump_release(job.fields(release), release, beside))
    if output.table is not None and table is not None:
        dumped = dump_release(job.fields(release), release, beside)
        write_output(output.table, table, release, dumped, output.as_json)
    if output.report is not None:
        report_release(
            output.report, release, beside, charging, output.as_json, **job.about(release)
        )


def _next_steps(job: Job, release: Release) -> list[str]:
    """What to do if there was no answer."""
    if release.items:
        return []
    about = job.about(release)
    universe, floor = Universe.of(about["universe"]), about["asked"].get("floor") or 0
    return next_steps(release, universe=universe, floor=floor, spell=spell_option)


def open_request(charging: LedgerOptions, stack: ExitStack) -> Request | None:
    """The request that the options of a ledger make; `stack` closes the ledger. None: nothing
    is charged.
    """
    asked = {name: charging[name] for name in ("request", "account", "dataset")}
    named = {"ledger-name": charging["ledger_name"], **asked}
    where = charging["ledger"]
    if os.environ.get(LEDGER) or os.environ.get(LEDGER_NAME):
        check_ledger(where, charging["ledger_name"])
    for name, value in named.items():
        if value is not None and where is None:
            raise ParameterError(name, value, "it needs --ledger", "Add --ledger FILE.")
        if value is not None and re.search("://.*@", value):
            wrong = "it looks like a URL with a password, and the ledger would record it"
            raise ParameterError(name, "…", wrong, "Choose a name.")
    if where is None:
        return None
    refuse_folder(where)
    ledger = Ledger.at(where, _ledger_name(charging))
    stack.callback(ledger.close)
    return ledger.request(asked["request"], account=asked["account"], dataset=asked["dataset"])


def refuse_folder(where: str) -> None:
    """Refuse a folder as the place of a ledger."""
    if os.path.isdir(where):
        raise ParameterError(
            "where", where, "it is a folder", "Name a file in it, such as budget.db."
        )


@contextmanager
def print_warnings(held: bool = False) -> Iterator[None]:
    """Warnings of ours as lines on standard error, each once; if they are held, at the end."""
    told: list[str] = []

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, PrivacyWarning):
            text = f"Warning: {spell_out(str(message))}"
            if held:
                told.append(text)
            else:
                click.echo(text, err=True)
        else:
            others(message, category, filename, lineno, file, line)

    with afresh(), warnings.catch_warnings():
        warnings.simplefilter("always", PrivacyWarning)
        others, warnings.showwarning = warnings.showwarning, show
        try:
            yield
        finally:
            for text in told:
                click.echo(text, err=True)


@contextmanager
def _tell_errors(
    as_json: bool,
    charging: LedgerOptions,
    explain: Callable[[PrivmaxError], str],
    padded: bool,
) -> Iterator[None]:
    """Errors in the words of `explain`, and whether anything is spent. Exit 3: the budget does not
    allow it. Exit 4: it may be tried again. Where time is padded, warnings come last: when they
    come tells when data was read.
    """
    try:
        with print_warnings(held=padded):
            yield
    except BudgetError as error:
        if as_json:
            about = {
                "left": exact_privacy(error.left),
                "cost": exact_privacy(error.cost),
                "account": error.account,
            }
            click.echo(to_json({"error": "budget", **about}))
        raise BudgetRefused(str(error)) from None
    except PrivmaxError as error:
        misplaced = type(error) is ParameterError and error.name == "where"
        if misplaced or isinstance(error, LedgerError):
            words = describe_ledger_error(error, _ledger_name(charging))
        else:
            words = without_urls(explain(error))
        raise refusal(error, " ".join([words, *_notes(error)])) from None
    except KeyboardInterrupt as error:
        for note in _notes(error):
            click.echo(note, err=True)
        raise


def _beside(release: Release, request: Request | None) -> dict[str, Any]:
    """What to show of a release that was charged: the id of its request, what is left (None: not
    known now), and when its answer was recorded, if that was before.
    """
    if request is None:
        return {}
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[REQUEST] = release.request
    left, ledger = None, request.ledger
    with suppress(LedgerError):  # the answer is recorded, and must be shown
        if release.recorded is None and release.request is not None:
            left = ledger.left_after(release.request)
        else:
            left = ledger.left(request.account)
    return {"request": release.request, "left": left, "recorded": release.recorded}


def _ledger_name(charging: LedgerOptions) -> str:
    name = charging["ledger_name"]
    return "default" if name is None else name


def _notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])
