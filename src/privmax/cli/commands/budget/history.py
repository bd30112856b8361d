"""`privmax budget history` and `export`: the events of a ledger, for people and for programs."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Collection, Mapping
from datetime import datetime
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from privmax.cli.commands.budget import tables
from privmax.cli.commands.budget.places import any_place, open_to_read
from privmax.cli.commands.budget.showing import draw_spending, plot_option
from privmax.cli.commands.budget.tables import (
    describe_ledger,
    make_table,
    print_json,
    print_table,
    printable,
    text_cell,
    title_of,
)
from privmax.cli.group import Command
from privmax.cli.options import json_option
from privmax.ledger import Event, Ledger
from privmax.numbers import round_down, round_up
from privmax.privacy import exact_privacy

if TYPE_CHECKING:
    from rich.table import Table

SHOWN = 50
"""Events that a history lists if nothing else is asked for."""

ROWS = 500
"""Events in one table: a longer history is printed as it is read."""

ROOMY = 110
"""Columns from which on a history has all its columns."""


@click.command("history", cls=Command)
@any_place
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=SHOWN,
    show_default=True,
    metavar="N",
    help="Only the last N events.",
)
@click.option("--all", "every", is_flag=True, help="All events.")
@plot_option
@json_option
def history_command(
    where: str, name: str, last: int, every: bool, plot: str | None, as_json: bool
) -> None:
    """List the last events: charges and answers, grants, accounts.

    A charge shows its data, the condition on its rows and its request id. "spent" is the total of
    all charges up to that event. Below the table are the charges without a recorded answer:
    repeating such a request id costs nothing more.

    --json prints "name", "where", "rule", "strict", "neighbors", "unit", "event_count" (of all
    events), "events" and "unanswered", the "seq" and "request" of all charges without an answer. An
    event has "seq", "kind" (created, reserved, released, granted, account), "when", "who",
    "request", "account", "body", and the "budget" and "spent" of the whole after it.

    Example: privmax budget history budget.db --last 20
    """
    _refuse_last_and_all(every)
    with open_to_read(where, name) as ledger:
        if plot is not None:
            draw_spending(ledger, plot)
        (_history_json if as_json else _history_table)(ledger, None if every else last)


def _refuse_last_and_all(every: bool) -> None:
    origin = click.get_current_context().get_parameter_source("last")
    if every and origin is not ParameterSource.DEFAULT:
        raise click.UsageError("--all and --last cannot be combined. Leave one out.")


def _history_json(ledger: Ledger, last: int | None) -> None:
    """The history as one JSON object, printed as it is read."""
    about = {**describe_ledger(ledger), "event_count": ledger.event_count}
    text = json.dumps(about)[:-1] + ', "events": ['
    events = ledger.history(last=last)
    while page := [json.dumps(_of_event(event)) for event in islice(events, ROWS)]:
        click.echo(text + ", ".join(page), nl=False)
        text = ", "
    unanswered = [{"seq": event.seq, "request": event.request} for event in ledger.unanswered()]
    click.echo(f'], "unanswered": {json.dumps(unanswered)}}}')


def _of_event(event: Event) -> dict[str, Any]:
    after: dict[str, Any] = {"budget": None, "spent": None}
    if event.fault is None:
        after = {"budget": exact_privacy(event.budget), "spent": exact_privacy(event.spent)}
    stored = event.to_dict()
    return {name: stored[name] for name in stored if name not in ("totals", "hash")} | after


def _history_table(ledger: Ledger, last: int | None) -> None:
    """The history as a table, and below it what has no answer. A long one is several tables."""
    width, count, title = tables.table_width(), ledger.event_count, title_of(ledger)
    events = ledger.history(last=last)
    while page := list(islice(events, ROWS)):
        print_table(_history(page, width), title)
        title = ""
    if last is not None and last < count:
        click.echo(f"The last {last:,} of {count:,} events; --all lists all.")
    unanswered = ledger.unanswered(last=None if last is None else last + 1)
    if last is not None and len(unanswered) > last:
        click.echo(f"Charges without a recorded answer, the last {last:,}; --all lists all:")
        del unanswered[0]
    for event in unanswered:
        click.echo(
            f"The charge of event {event.seq} has no recorded answer. Repeat it at no extra"
            f"{' ' if width >= ROOMY else chr(10)}"
            f"cost with --request {printable(shlex.quote(str(event.request)))}"
        )


def _history(events: Collection[Event], width: int) -> Table:
    return _wide_history(events) if width >= ROOMY else _narrow_history(events)


def _narrow_history(events: Collection[Event]) -> Table:
    """Fewer columns: an event has two lines, and more where names are long."""
    table = make_table("event", "when (UTC)", "what", "amount", "spent")
    for number, column in enumerate(table.columns):
        column.justify = "left" if number else "right"
        column.no_wrap = number != 2
    for event in events:
        account = "" if event.account is None else f", account {event.account}"
        if event.fault is not None:
            message = f"{_cannot_be_read(event)}\nby {event.who}{account}"
            table.add_row(str(event.seq), "", text_cell(message), "", "")
            continue
        amount = _amount(event.body)
        spent = round_up(event.spent.epsilon), round_up(event.spent.delta)
        table.add_row(
            str(event.seq),
            _moment(event.when).replace(" ", "\n"),
            text_cell(f"{_what(event)}\nby {event.who}{account}"),
            "" if amount == ("", "") else "epsilon {}\ndelta {}".format(*amount),
            "epsilon {}\ndelta {}".format(*spent),
        )
    return table


def _wide_history(events: Collection[Event]) -> Table:
    accounts = ["account"] if any(event.account is not None for event in events) else []
    table = make_table(
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
        own = [text_cell(event.account or "")] if accounts else []
        if event.fault is not None:
            message = text_cell(_cannot_be_read(event))
            table.add_row(str(event.seq), "", text_cell(event.who), message, *own, *[""] * 4)
            continue
        amounts = (
            *_amount(event.body),
            round_up(event.spent.epsilon),
            round_up(event.spent.delta),
        )
        table.add_row(
            str(event.seq),
            _moment(event.when),
            text_cell(event.who),
            text_cell(_what(event)),
            *own,
            *amounts,
        )
    return table


def _cannot_be_read(event: Event) -> str:
    return f"cannot be read: {event.fault}"


def _amount(body: Mapping[str, Any]) -> tuple[str, str]:
    """Return what an event charges (rounded up) or grants (rounded down)."""
    for field, rounded in (("price", round_up), ("more", round_down), ("budget", round_down)):
        if field in body:
            return rounded(Fraction(body[field]["epsilon"])), rounded(
                Fraction(body[field]["delta"])
            )
    return "", ""


def _what(event: Event) -> str:
    """Return an event in a few words. The answer is not among them."""
    match event.kind:
        case "created":
            return (
                f"created, rule {event.body['rule']}"
                f"{', strict' if event.body.get('strict') else ''}"
            )
        case "reserved":
            question = event.question
            known = [one for one in (question.command, question.dataset) if one is not None]
            if question.data is not None:
                is_url = "://" in question.data
                known.append(question.data if is_url else os.path.basename(question.data))
            condition = question.options.get("where")
            unit, rho = (event.body["price"].get(key) for key in ("unit", "rho"))
            parts = [
                ": ".join(["charged", *([" of ".join(known)] if known else [])])
                + ("" if condition is None else f" where {condition}"),
                *([] if unit is None else [f"per {unit}"]),
                *([] if rho is None else [f"rho {round_up(Fraction(rho))}"]),
                f"request {event.request}",
            ]
            return ", ".join(parts)
        case "released":
            return f"answered, request {event.request}"
        case _:
            did = {"granted": "granted", "account": "account opened"}[event.kind]
            return ": ".join([did, *([event.body["why"]] if event.body["why"] else [])])


def _moment(when: str) -> str:
    return f"{datetime.fromisoformat(when):%Y-%m-%d %H:%M:%S}"


@click.command("export", cls=Command)
@any_place
def export_command(where: str, name: str) -> None:
    """Print the history as it is stored, one JSON object per event and line.

    Its fields are "seq", "kind", "when", "who", "request", "account", "body" (with the released
    answers), "totals" and "hash". Exact numbers are text.

    Example: privmax budget export budget.db > history.jsonl
    """
    with open_to_read(where, name) as ledger:
        for event in ledger.history():
            print_json(event.to_dict())
