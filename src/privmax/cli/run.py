"""The one skeleton of a command that releases: `select`, `keys`, `itemsets`, `learn` use it.

Options are checked, the ledger is opened, the answer is made and printed, and a page about it is
written. Errors say what was wrong and whether anything is spent.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

import click

from privmax.advice import next_steps
from privmax.cli.environment import LEDGER, LEDGER_NAME, check_ledger
from privmax.cli.exits import Exit
from privmax.cli.group import REQUEST, NoReader, Refused, refusal
from privmax.cli.messages import describe_error, describe_ledger_error, spell_option
from privmax.cli.options import LedgerOptions, ResourceOptions
from privmax.cli.output import busy, describe_release, dump_release
from privmax.cli.passwords import without_urls
from privmax.cli.report import check_report, report_release
from privmax.cli.streams import has_reader
from privmax.cli.tables import OutputTable, check_columns, check_output, write_output
from privmax.display import escape_text, on_terminal, to_json
from privmax.errors import BudgetError, LedgerError, ParameterError, PrivacyWarning, PrivmaxError
from privmax.padding import pad_time, read_seconds
from privmax.privacy import exact_privacy
from privmax.resources import Resources, use
from privmax.sources.places import require_table, would_read
from privmax.universe import Universe
from privmax.warnings import reset_once
from privmax.writing import check_apart

if TYPE_CHECKING:
    from privmax.cli.inputs import Input
    from privmax.ledger.request import Request
    from privmax.release import Release


@dataclass(frozen=True)
class ReleaseJob:
    """The rest of a command's work once its options are understood.

    Args:
        doing: What it is busy with, in a word.
        answer: Makes the release, charged by a request to a ledger, if there is one.
        name: What its items are called.
        words: The items of a release, in words.
        fields: The answer as JSON, by name.
        about: What a page about the release is to say of it.
        more: What else was released, in words, by what it is called.
        below: A line to print below the release.
        save: Called with the release and its JSON when it is printed; None: nothing is saved.
        table: What a file of the release contains; None: the command writes none.
        data: What it reads: a strict ledger is not charged for what its name refuses.
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
    table: Callable[[], OutputTable] | None = None
    data: Input | None = None


@dataclass(frozen=True)
class Output:
    """The places a command writes to, beside standard output.

    Args:
        as_json: Whether to print JSON.
        report: The file of a page about the release.
        table: The file of a table of what is released.
        others: Other files that it writes, by the option that names them.
    """

    as_json: bool
    report: str | None = None
    table: str | None = None
    others: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def files(self) -> dict[str, str | None]:
        """All of them, by option."""
        return {**self.others, "output": self.table, "report": self.report}

    def check(self, inputs: Mapping[str, str | None]) -> None:
        """Refuse, before anything is charged, outputs that cannot be written or are inputs."""
        check_apart(self.files, inputs)
        for option, path in self.files.items():
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


CHECK_WORDS = (
    f"{'checked':11}FILE can be read, and its columns and types fit the question\n"
    f"{'cost':11}none: nothing was drawn, released or charged"
)
"""The output of --check where all is well."""


class BudgetRefused(Refused):
    """The budget does not allow it."""

    exit_code = Exit.OVER_BUDGET


def run_job(
    prepare: Callable[[Output], ReleaseJob],
    charging: LedgerOptions,
    output: Output,
    limits: ResourceOptions,
    explain: Callable[[PrivmaxError], str] = describe_error,
) -> None:
    """Release what a command was asked for.

    Args:
        prepare: Understands the options.
        limits: What DuckDB may use, and how long the answer is to take.
        explain: An error in words.
    """
    seconds, is_shown = limits["pad_time"], on_terminal()
    padded = seconds is not None
    with _report_errors(output.as_json, charging, explain, padded), ExitStack() as stack:
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
        if not has_reader():
            raise NoReader("Standard output is a pipe that nothing reads. Nothing was charged.")
        request = open_request(charging, stack)
        if job.data is not None and request is not None:
            ledger = request.payer
            require_table(job.data.file, job.data.table, lambda: ledger.strict)
        with busy(job.doing, watched), use(resources), schedule:
            release = job.answer(request)
        if release.checked:
            _print_check(output)
            return
        payment = _describe_payment(release, request)
    if output.as_json:
        text = dump_release(job.fields(release), release, payment)
    else:
        words, more = job.words(release), dict(job.more(release))
        if not release.items:
            more["next"] = _next_steps(job, release)
        text = describe_release(job.name, words, release, payment, more)
        text = "\n".join(filter(None, (text, job.below)))
    click.echo(text)
    if job.save is not None:
        job.save(release, dump_release(job.fields(release), release, payment))
    if output.table is not None and table is not None:
        dumped = dump_release(job.fields(release), release, payment)
        write_output(output.table, table, release, dumped, output.as_json)
    if output.report is not None:
        report_release(
            output.report, release, payment, charging, output.as_json, **job.about(release)
        )


def _print_check(output: Output) -> None:
    """Say that all is well, and which files are not written although they were asked for."""
    click.echo(to_json({"checked": True}) if output.as_json else CHECK_WORDS)
    options = sorted(f"--{option}" for option, path in output.files.items() if path is not None)
    if options:
        message = f"nothing: {' and '.join(options)} need{'s' * (len(options) == 1)} a release"
        click.echo(f"{'written':11}{message}", err=output.as_json)


def _next_steps(job: ReleaseJob, release: Release) -> list[str]:
    """Return what to do after no answer."""
    about = job.about(release)
    universe, floor = about.get("universe"), about["asked"].get("floor") or 0
    universe = None if universe is None else Universe.of(universe)
    return next_steps(release, universe=universe, floor=floor, spell=spell_option)


def open_request(charging: LedgerOptions, stack: ExitStack) -> Request | None:
    """Make the request that the options of a ledger describe; `stack` closes the ledger.

    None where nothing is charged.
    """
    names = {name: charging[name] for name in ("request", "account", "dataset")}
    named = {"ledger-name": charging["ledger_name"], **names}
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
    from privmax.ledger.ledger import Ledger

    ledger = Ledger.at(where, _ledger_name(charging))
    stack.callback(ledger.close)
    return ledger.request(names["request"], account=names["account"], dataset=names["dataset"])


def refuse_folder(where: str) -> None:
    """Refuse a folder as the place of a ledger."""
    if os.path.isdir(where):
        raise ParameterError(
            "where", where, "it is a folder", "Name a file in it, such as budget.db."
        )


@contextmanager
def print_warnings(is_delayed: bool = False) -> Iterator[None]:
    """Warnings of ours as lines on standard error, each once; if they are held, at the end."""
    messages: list[str] = []

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, PrivacyWarning):
            text = f"Warning: {escape_text(str(message))}"
            if is_delayed:
                messages.append(text)
            else:
                click.echo(text, err=True)
        else:
            others(message, category, filename, lineno, file, line)

    with reset_once(), warnings.catch_warnings():
        warnings.simplefilter("always", PrivacyWarning)
        others, warnings.showwarning = warnings.showwarning, show
        try:
            yield
        finally:
            for text in messages:
                click.echo(text, err=True)


@contextmanager
def _report_errors(
    as_json: bool,
    charging: LedgerOptions,
    explain: Callable[[PrivmaxError], str],
    padded: bool,
) -> Iterator[None]:
    """Print errors in the words of `explain`, and whether anything is spent.

    Exit 3: the budget does not allow it. Exit 4: it may be tried again. Where time is padded,
    warnings come last: when they come would reveal when data was read.
    """
    try:
        with print_warnings(is_delayed=padded):
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


def _describe_payment(release: Release, request: Request | None) -> dict[str, Any]:
    """Return what to show of a release that was charged.

    The id of its request, what is left (None: not known now), and when its answer was recorded, if
    that was before.
    """
    if request is None:
        return {}
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[REQUEST] = release.request
    left, ledger = None, request.payer
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
