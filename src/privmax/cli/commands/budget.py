"""`privmax budget`: create, list, show, raise and check the ledgers of privacy budgets.

Exit 0: done. 1: `verify` found faults. 2: bad input, no such ledger, or it cannot be used now. 130:
stopped by Ctrl-C. (3, the budget does not allow it, is what commands that charge a ledger say.)
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from fractions import Fraction
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from privmax.cli.environment import LEDGER, LEDGER_NAME, is_from_environment, tell_ledger
from privmax.cli.group import Command, Group, refusal
from privmax.cli.messages import describe_ledger_error
from privmax.cli.options import json_option
from privmax.cli.output import busy, check_plot, draw_plot, exact_privacy
from privmax.cli.run import BudgetRefused, refuse_folder
from privmax.display import spell_out
from privmax.errors import BudgetError, LedgerError, ParameterError, PrivmaxError
from privmax.ledger import RULES, Event, Fault, Ledger
from privmax.ledger.replay import reading
from privmax.numbers import round_down, round_up
from privmax.privacy import Privacy

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

WIDE = 200
"""Columns of a table that goes to a file or to another program."""

ROOMY = 110
"""Columns from which on a history has all its columns."""

_name = click.option(
    "--name",
    default="default",
    show_default=True,
    help="Name of the ledger; one place can hold many.",
)
_plot = click.option("--plot", metavar="FILE", help="Also draw spending over time (.png or .svg).")


def _place(command: Callable[..., Any]) -> Callable[..., Any]:
    """FILE and --name of a command that changes a ledger: both as typed."""
    return click.argument("where", metavar="FILE")(_name(command))


def _require_place(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    if value is None and not context.resilient_parsing:
        raise click.UsageError(f"Missing argument 'FILE', and {LEDGER} is not set.", context)
    return value


_file_or_environment = click.argument(
    "where", metavar="[FILE]", required=False, envvar=LEDGER, callback=_require_place
)


def _any_place(command: Callable[..., Any]) -> Callable[..., Any]:
    """FILE and --name of a command that only looks: the environment may say which ledger."""
    return _file_or_environment(_name(command))


@click.group("budget", cls=Group)
def command() -> None:
    """Create, show, raise and check a privacy budget.

    FILE is the place of the ledger: a file, or the URL of a PostgreSQL database
    (postgresql://user@host/database; keep the password in ~/.pgpass or PGPASSWORD).

    show, history, list, verify and export only look, and do without FILE where PRIVMAX_LEDGER names
    it; PRIVMAX_LEDGER_NAME then stands for --name. What changes a budget wants FILE typed.
    """


@command.command("create", cls=Command)
@_place
@click.option(
    "--epsilon", required=True, help="Total epsilon that may be spent; decimals are exact."
)
@click.option("--delta", default="0", show_default=True, help="Total delta that may be spent.")
@click.option(
    "--rule",
    type=click.Choice(list(RULES)),
    default="basic",
    show_default=True,
    help="Composition rule; cannot be changed later.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Charge before the data is read, so that bad data gives no answer; cannot be changed "
    "later.",
)
@json_option
def create_command(
    where: str, name: str, epsilon: str, delta: str, rule: str, strict: bool, as_json: bool
) -> None:
    """Create a ledger with a budget. A name that exists is refused.

    A new file has mode 600. In PostgreSQL the first ledger also creates the tables.

    Example: privmax budget create budget.db --epsilon 3 --delta 1e-5
    """
    with _refusing(where, name):
        granted = Privacy(epsilon, delta)
        if granted == Privacy(0):
            raise ParameterError(
                "epsilon",
                0,
                "a budget needs an epsilon or a delta above 0",
                "For example --epsilon 1.",
            )
        with Ledger.create(where, name, budget=granted, rule=rule, strict=strict) as ledger:
            _show(ledger, as_json)


@command.command("show", cls=Command)
@_any_place
@_plot
@json_option
def show_command(where: str, name: str, plot: str | None, as_json: bool) -> None:
    """Show what was granted, spent and left, for the ledger and each account.

    The table rounds the amount spent up and the others down. --json prints exact numbers as text:
    "name", "where", "rule", "strict", "neighbors" and "unit" (of all charges; null: none yet),
    "budget", "spent" and "left" with an "epsilon" and a "delta" each, and "accounts", which has
    "budget", "spent" and "left" by account name.

    Example: privmax budget show budget.db --plot spending.svg
    """
    with _looking(where, name) as ledger:
        if plot is not None:
            _draw(ledger, plot)
        _show(ledger, as_json)


@command.command("history", cls=Command)
@_any_place
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N events.")
@_plot
@json_option
def history_command(
    where: str, name: str, last: int | None, plot: str | None, as_json: bool
) -> None:
    """List all events: charges and answers, grants, accounts.

    "spent" is the total of all charges up to that event. Below the table are the charges without a
    recorded answer: repeating such a request id costs nothing more.

    --json prints "name", "where", "rule", "strict", "neighbors", "unit", "events" and "unanswered",
    the "seq" and "request" of those charges. An event has "seq", "kind" (created, reserved,
    released, granted, account), "when", "who", "request", "account", "body", and the "budget" and
    "spent" of the whole after it.

    Example: privmax budget history budget.db --last 20
    """
    with _looking(where, name) as ledger:
        if plot is not None:
            _draw(ledger, plot)
        events: deque[Event] = deque(maxlen=last)
        unanswered: dict[str, int] = {}
        for event in ledger.history():
            events.append(event)
            if event.kind == "reserved":
                unanswered[str(event.request)] = event.seq
            elif event.kind == "released":
                unanswered.pop(str(event.request), None)
        if as_json:
            found = [{"seq": seq, "request": request} for request, seq in unanswered.items()]
            listed = [_of_event(event) for event in events]
            _print_json({**_about(ledger), "events": listed, "unanswered": found})
            return
        width = _width()
        _print(_history(events, width), _title(ledger))
        for request, seq in unanswered.items():
            click.echo(
                f"The charge of event {seq} has no recorded answer. Repeat it at no extra"
                f"{' ' if width >= ROOMY else chr(10)}"
                f"cost with --request {_printable(shlex.quote(request))}"
            )


@command.command("list", cls=Command)
@_file_or_environment
@json_option
def list_command(where: str, as_json: bool) -> None:
    """List the ledgers in FILE, with what each was granted and has spent and left.

    --json prints "where" and "ledgers", each with "name", "rule", "strict", "neighbors", "unit",
    "budget", "spent" and "left" as show has them.

    Example: privmax budget list budget.db
    """
    with _refusing(where, "default"):
        if is_from_environment("where"):
            tell_ledger(where)
        found, shown = [], where
        for name in Ledger.names(where):
            with Ledger(where, name) as ledger:
                shown = ledger.where
                found.append((_about(ledger), ledger.budget, ledger.spent))
        if as_json:
            listed = [{**about, **_share(*share)} for about, *share in found]
            for one in listed:
                del one["where"]
            _print_json({"where": shown, "ledgers": listed})
            return
        table = _table("ledger", "rule", "", "budget", "spent", "left")
        table.columns[2].justify = "left"
        for about, granted, spent in found:
            strict = ", strict" if about["strict"] else ""
            epsilons, deltas = _amounts(granted, spent)
            table.add_row(_text(about["name"]), f"{about['rule']}{strict}", "epsilon", *epsilons)
            table.add_row("", "", "delta", *deltas)
        _print(table, _printable(f"{len(found)} ledger{'s' * (len(found) != 1)} in {shown}"))


@command.command("grant", cls=Command)
@_place
@click.option(
    "--epsilon", default="0", show_default=True, help="Epsilon to add; decimals are exact."
)
@click.option("--delta", default="0", show_default=True, help="Delta to add.")
@click.option("--why", required=True, help="The reason; the history keeps it with your name.")
@click.option("--account", help="Raise the budget of this account, not of the ledger.")
@json_option
def grant_command(
    where: str, name: str, epsilon: str, delta: str, why: str, account: str | None, as_json: bool
) -> None:
    """Raise the budget of the ledger or of an account. A budget cannot be lowered.

    Prints the same as show.

    Example: privmax budget grant budget.db --epsilon 1 --why "second quarter, decided by the board
    on 3 April"
    """
    with _open_ledger(where, name) as ledger:
        more = Privacy(epsilon, delta)
        if more == Privacy(0):
            raise ParameterError(
                "epsilon",
                0,
                "a grant needs an epsilon or a delta above 0",
                "For example --epsilon 1.",
            )
        ledger.grant(more, why=why, account=account)
        _show(ledger, as_json)


@command.command("account", cls=Command)
@_place
@click.argument("account")
@click.option(
    "--epsilon", required=True, help="Epsilon that the account may spend; decimals are exact."
)
@click.option("--delta", default="0", show_default=True, help="Delta that it may spend.")
@click.option("--why", default="", help="Its purpose; the history keeps it.")
@json_option
def account_command(
    where: str, account: str, name: str, epsilon: str, delta: str, why: str, as_json: bool
) -> None:
    """Open an account: a sub-budget for an analyst or a purpose.

    A charge must fit the budget of the account and of the ledger. Accounts reserve nothing: their
    budgets may add up to more than the ledger has, and then it is first come, first served. Prints
    the same as show.

    Example: privmax budget account budget.db ada --epsilon 1 --delta 1e-6
    """
    with _open_ledger(where, name) as ledger:
        ledger.open_account(account, Privacy(epsilon, delta), why=why)
        _show(ledger, as_json)


@command.command("split", cls=Command)
@_place
@click.argument("part")
@click.option(
    "--epsilon", required=True, help="Epsilon that the part may spend; decimals are exact."
)
@click.option("--delta", default="0", show_default=True, help="Delta that it may spend.")
@click.option(
    "--unit", help="What one individual is, such as user; needed before the first charge."
)
@click.option(
    "--at",
    "place",
    metavar="FILE",
    help="Another file or database for the part.  [default: FILE]",
)
@json_option
def split_command(
    where: str,
    part: str,
    name: str,
    epsilon: str,
    delta: str,
    unit: str | None,
    place: str | None,
    as_json: bool,
) -> None:
    """Split off a part of the budget as its own ledger, which waits for no other.

    The whole part is charged to the ledger now and stays spent there, whatever the part spends.
    The part has the rule basic and cannot be raised. Repeating the command charges nothing. Prints
    the same as show does for the part.

    Example: privmax budget split budget.db web --epsilon 1 --delta 1e-6 --unit user
    """
    with _open_ledger(where, name) as ledger:
        made = ledger.split(part, Privacy(epsilon, delta), where=place, unit=unit)
        with made:
            _show(made, as_json)


@command.command("verify", cls=Command)
@_any_place
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
    with _looking(where, name) as ledger:
        noted = None if noted is None else _hash(noted)
        with busy("Checking"):
            # Walked before it is checked: the hash that is printed is then one that was checked.
            events, last, found = _walk_events(ledger, noted)
            faults: list[Fault | str] = [*ledger.verify()]
        if noted is not None and not found:
            faults.append(
                "no event has the hash that was noted: the history was rewritten, or is an old copy"
            )
        if as_json:
            listed = [
                {"seq": getattr(fault, "seq", None), "what": getattr(fault, "what", fault)}
                for fault in faults
            ]
            _print_json({**_about(ledger), "events": events, "hash": last, "faults": listed})
        else:
            click.echo(_title(ledger))
            for fault in faults:
                click.echo(_printable(str(fault)))
            if not faults:
                click.echo(f"all {events} events are correct; the hash of the last is\n{last}")
    sys.exit(1 if faults else 0)


@command.command("export", cls=Command)
@_any_place
def export_command(where: str, name: str) -> None:
    """Print the history as it is stored, one JSON object per event and line.

    Its fields are "seq", "kind", "when", "who", "request", "account", "body" (with the released
    answers), "totals" and "hash". Exact numbers are text.

    Example: privmax budget export budget.db > history.jsonl
    """
    with _looking(where, name) as ledger:
        for event in ledger.history():
            _print_json(vars(event))


@contextmanager
def _open_ledger(where: str, name: str) -> Iterator[Ledger]:
    with _refusing(where, name), Ledger(where, name) as ledger:
        yield ledger


@contextmanager
def _looking(where: str, name: str) -> Iterator[Ledger]:
    """The same for a command that only looks."""
    if is_from_environment("where"):
        context = click.get_current_context()
        if context.get_parameter_source("name") is ParameterSource.DEFAULT:
            name = os.environ.get(LEDGER_NAME) or name
        tell_ledger(where, name)
    with _open_ledger(where, name) as ledger:
        yield ledger


@contextmanager
def _refusing(where: str, name: str) -> Iterator[None]:
    """Errors in words, with the command that helps."""
    try:
        refuse_folder(where)
        yield
    except BudgetError as error:
        raise BudgetRefused(_printable(str(error))) from None
    except PrivmaxError as error:
        raise refusal(error, _printable(describe_ledger_error(error, name))) from None


def _show(ledger: Ledger, as_json: bool) -> None:
    whole, accounts = (ledger.budget, ledger.spent), ledger.accounts()
    if as_json:
        shares = {account: _share(*share) for account, share in accounts.items()}
        _print_json({**_about(ledger), **_share(*whole), "accounts": shares})
        return
    table = _table("", "", "budget", "spent", "left")
    for whose, (granted, spent) in {
        "ledger": whole,
        **{f"account {name}": own for name, own in accounts.items()},
    }.items():
        epsilons, deltas = _amounts(granted, spent)
        table.add_row(_text(whose), "epsilon", *epsilons)
        table.add_row("", "delta", *deltas)
    _print(table, _title(ledger))


def _about(ledger: Ledger) -> dict[str, Any]:
    neighbors, unit = _terms_of(ledger)
    known = {
        "name": ledger.name,
        "where": ledger.where,
        "rule": ledger.rule,
        "strict": ledger.strict,
    }
    return {**known, "neighbors": neighbors, "unit": unit}


def _title(ledger: Ledger) -> str:
    _, unit = _terms_of(ledger)
    parts = [
        f"ledger {ledger.name} in {ledger.where}",
        f"rule {ledger.rule}",
        *(["strict"] if ledger.strict else []),
    ]
    return _printable(", ".join(parts if unit is None else [*parts, f"unit {unit}"]))


def _terms_of(ledger: Ledger) -> tuple[str | None, str | None]:
    """The relation and the unit of all charges; None: of none yet, or they cannot be read, which
    verify tells.
    """
    try:
        return ledger.neighbors, ledger.unit
    except LedgerError:
        return None, None


def _share(granted: Privacy, spent: Privacy) -> dict[str, Any]:
    return {
        "budget": exact_privacy(granted),
        "spent": exact_privacy(spent),
        "left": exact_privacy(_remainder(granted, spent)),
    }


def _remainder(granted: Privacy, spent: Privacy) -> Privacy:
    zero = Fraction(0)
    return Privacy(
        max(granted.epsilon - spent.epsilon, zero), max(granted.delta - spent.delta, zero)
    )


def _amounts(granted: Privacy, spent: Privacy) -> tuple[list[str], list[str]]:
    """Budget, spent and left, of epsilon and of delta: what is spent rounded up, the rest down."""
    left = _remainder(granted, spent)
    return [
        round_down(granted.epsilon),
        round_up(spent.epsilon),
        round_down(left.epsilon),
    ], [
        round_down(granted.delta),
        round_up(spent.delta),
        round_down(left.delta),
    ]


def _history(events: Collection[Event], width: int) -> Table:
    return _wide_history(events) if width >= ROOMY else _narrow_history(events)


def _narrow_history(events: Collection[Event]) -> Table:
    """Fewer columns: an event has two lines, and more where names are long."""
    table = _table("event", "when (UTC)", "what", "amount", "spent")
    for number, column in enumerate(table.columns):
        column.justify = "left" if number else "right"
        column.no_wrap = number != 2
    for event in events:
        with reading(event):
            account = "" if event.account is None else f", account {event.account}"
            amount = _amount(event.body)
            spent = round_up(event.spent.epsilon), round_up(event.spent.delta)
            table.add_row(
                str(event.seq),
                _moment(event.when).replace(" ", "\n"),
                _text(f"{_what(event)}\nby {event.who}{account}"),
                "" if amount == ("", "") else "epsilon {}\ndelta {}".format(*amount),
                "epsilon {}\ndelta {}".format(*spent),
            )
    return table


def _wide_history(events: Collection[Event]) -> Table:
    accounts = ["account"] if any(event.account is not None for event in events) else []
    table = _table(
        "event",
        "when (UTC)",
        "who",
        "what",
        *accounts,
        "epsilon",
        "delta",
        "spent epsilon",
        "spent delta",
    )
    for column in table.columns[1 : 4 + len(accounts)]:
        column.justify = "left"
    for event in events:
        with reading(event):
            own = [_text(event.account or "")] if accounts else []
            amounts = (
                *_amount(event.body),
                round_up(event.spent.epsilon),
                round_up(event.spent.delta),
            )
            table.add_row(
                str(event.seq),
                _moment(event.when),
                _text(event.who),
                _text(_what(event)),
                *own,
                *amounts,
            )
    return table


def _amount(body: Mapping[str, Any]) -> tuple[str, str]:
    """What an event charges (rounded up) or grants (rounded down)."""
    for field, rounded in (("price", round_up), ("more", round_down), ("budget", round_down)):
        if field in body:
            return rounded(Fraction(body[field]["epsilon"])), rounded(
                Fraction(body[field]["delta"])
            )
    return "", ""


def _what(event: Event) -> str:
    """An event in a few words. The answer is not among them."""
    match event.kind:
        case "created":
            return (
                f"created, rule {event.body['rule']}"
                f"{', strict' if event.body.get('strict') else ''}"
            )
        case "reserved":
            ran = event.body["what"]
            known = [str(ran[key]) for key in ("command", "dataset") if ran.get(key) is not None]
            known += (
                [os.path.basename(str(ran["data"])) if "://" not in ran["data"] else ran["data"]]
                if "data" in ran
                else []
            )
            unit = event.body["price"].get("unit")
            told = ": ".join(["charged", *([" of ".join(known)] if known else [])])
            told = told if unit is None else f"{told}, per {unit}"
            rho = event.body["price"].get("rho")
            return told if rho is None else f"{told}, rho {round_up(Fraction(rho))}"
        case "released":
            return "answered"
        case _:
            did = {"granted": "granted", "account": "account opened"}[event.kind]
            return ": ".join([did, *([event.body["why"]] if event.body["why"] else [])])


def _moment(when: str) -> str:
    return f"{datetime.fromisoformat(when):%Y-%m-%d %H:%M:%S}"


def _of_event(event: Event) -> dict[str, Any]:
    with reading(event):
        after = {"budget": exact_privacy(event.budget), "spent": exact_privacy(event.spent)}
    return {
        **{name: value for name, value in vars(event).items() if name not in ("totals", "hash")},
        **after,
    }


def _hash(noted: str) -> str:
    """A hash as verify prints it."""
    digits = noted.strip().lower()
    if not re.fullmatch("[0-9a-f]{64}", digits):
        raise ParameterError(
            "noted", noted, "it must be 64 hexadecimal digits", "Give a hash that verify printed."
        )
    return digits


def _walk_events(ledger: Ledger, noted: str | None) -> tuple[int, str | None, bool]:
    """The number of events, the hash of the last, and whether one has the hash that was noted."""
    events, last, found = 0, None, False
    try:
        for event in ledger.history():
            events, last, found = events + 1, event.hash, found or event.hash == noted
    except LedgerError:  # verify tells what is wrong
        return events, None, found
    return events, last, found


def _draw(ledger: Ledger, file: str) -> None:
    check_plot(file)
    from privmax.plots import spending

    draw_plot(spending(ledger.history(), title=f"Ledger {ledger.name}"), file)


def _table(*names: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for number, name in enumerate(names):
        table.add_column(name, justify="right" if number > 1 else "left", overflow="fold")
    return table


def _print(table: Table, title: str) -> None:
    from rich.console import Console

    console = Console(highlight=False, width=_width())
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join([title, "", *(line.rstrip() for line in captured.get().splitlines())]))


def _width() -> int:
    """Columns that there are."""
    if not sys.stdout.isatty():
        return WIDE
    return max(get_terminal_size().columns, 40)


def _print_json(value: Mapping[str, Any]) -> None:
    click.echo(json.dumps(value))


def _text(value: str) -> Text:
    """Of what somebody stored, nothing is taken for markup or for a command to the terminal."""
    from rich.text import Text

    return Text(_printable(value))


def _printable(text: str) -> str:
    return spell_out(text, keep="\n")
