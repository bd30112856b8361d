"""`privmax keys`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from privmax.cli.completion import sources
from privmax.cli.group import Command
from privmax.cli.inputs import Input, explain, find_file
from privmax.cli.options import (
    COUNTS_HELP,
    LedgerOptions,
    delimiter_option,
    input_options,
    json_option,
    ledger_options,
    missing_users_option,
    output_option,
    report_option,
    split_options,
)
from privmax.cli.output import with_counts
from privmax.cli.passwords import hide_password, locate
from privmax.cli.run import Output, ReleaseJob, run_job
from privmax.cli.tables import item_table
from privmax.display import format_label
from privmax.errors import PrivmaxError
from privmax.privacy import DELTA_ADVICE
from privmax.sources.places import refuse_unreadable

if TYPE_CHECKING:
    from privmax.keyset.release import KeysRelease

SHOWN = 20
"""Keys that are printed; --output and --json have all."""


@click.command("keys", cls=Command)
@click.argument("file", shell_complete=sources)
@click.option(
    "--item",
    multiple=True,
    default=["item"],
    show_default=True,
    help="Column of keys; repeat it if several columns together name a key.",
)
@click.option("--user", required=True, help="Column of individuals.")
@click.option(
    "--per-user",
    type=int,
    default=30,
    show_default=True,
    help="How many keys of one individual count at most.",
)
@missing_users_option
@delimiter_option
@input_options
@click.option(
    "--epsilon", required=True, help="Privacy cost; decimals are exact: 0.1 is one tenth."
)
@click.option(
    "--delta",
    required=True,
    help=f"Probability that the guarantee fails, above 0: {DELTA_ADVICE}.",
)
@click.option("--counts", help=COUNTS_HELP.format("counts of the individuals of each key"))
@click.option(
    "--other", is_flag=True, help="With --counts: also how many individuals have none of the keys."
)
@ledger_options
@output_option
@report_option
@json_option
def command(output: str | None, report: str | None, as_json: bool, **options: Any) -> None:
    """Release every key of FILE that enough individuals have.

    No one has to list the keys in advance, and the cost is the same for one key and for a hundred
    thousand. FILE is what privmax select reads with --user: a CSV or JSON Lines file, Parquet, a
    database with --table, or sample:NAME. The first example works as typed.

    \b
    privmax keys sample:searches --item query --user person --epsilon 1 --delta 1e-6
    privmax keys sales.parquet --item product --user customer --per-user 20 --counts 0.5 --other \\
        --epsilon 1 --delta 1e-6 --ledger budget.db --output keys.parquet
    """
    charging, limits, question_options = split_options(options)
    given = KeysOptions(**question_options, charging=charging)
    run_job(given.prepare, charging, Output(as_json, report, output), limits, given.explain)


@dataclass(frozen=True)
class KeysOptions:
    """The typed options, by name."""

    file: str
    item: tuple[str, ...]
    user: str
    per_user: int
    missing_users: str | None
    table: str | None
    where: str | None
    delimiter: str | None
    encoding: str | None
    header_is_public: bool
    check: bool
    epsilon: str
    delta: str
    counts: str | None
    other: bool
    charging: LedgerOptions

    def prepare(self, output: Output) -> ReleaseJob:
        from privmax.keyset.procedure import KeySearch
        from privmax.keyset.release import AllKeys, KeysEnquiry
        from privmax.sources.dialect import Dialect
        from privmax.sources.roles import Columns

        origin = find_file(self.file)
        output.check({"FILE": origin, "--ledger": self.charging["ledger"]})
        dialect = Dialect(self.delimiter, self.encoding, self.header_is_public, self.check)
        data = Input(origin, self.table, self.where, dialect)
        data.check()
        refuse_unreadable(origin, as_table=True)
        question = AllKeys(
            search=KeySearch(epsilon=self.epsilon, delta=self.delta, per_user=self.per_user),
            counts=self.counts,
            other=self.other,
            unit=self.charging["unit"],
        )
        item = list(self.item) if len(self.item) > 1 else self.item[0]
        columns = Columns(item, self.user, where=self.where, missing_users=self.missing_users)
        enquiry = KeysEnquiry.of(question, columns, dialect)
        return ReleaseJob(
            "Counting",
            partial(enquiry.answer, data.open, place=locate(self.file, self.table)),
            "key",
            _list_keys,
            lambda release: release.to_fields("answer"),
            self._describe,
            more=_describe_rest,
            table=partial(item_table, self.item, self.counts is not None),
            data=data,
        )

    def explain(self, error: PrivmaxError) -> str:
        """An error in the words of the command."""
        return explain(error, self.file, self.header_is_public)

    def _describe(self, release: KeysRelease) -> dict[str, Any]:
        """Return the facts for a page about the release."""
        repeated = release.recorded is not None
        data = None if repeated else hide_password(self.file)  # not of what is there now
        key = " and ".join(self.item)
        where = "" if data is None else f" of {data}"
        return {
            "question": f"Which “{key}”{where} do enough individuals have?",
            "repeated": repeated,
            "asked": {
                "data": data,
                "dataset": self.charging["dataset"],
                "table": self.table and hide_password(self.table),
                "item": self.item,
                "user": self.user,
                "per_user": self.per_user,
                "missing_users": self.missing_users,
                "where": self.where,
                "delimiter": self.delimiter,
                "encoding": self.encoding,
                "counts": self.counts,
                "other": self.other or None,
            },
            "unit": f"one individual (“{self.user}”) with all of its rows",
            "answers": list(map(format_label, release.items)),
            "universe": "open",
        }


def _list_keys(release: KeysRelease) -> list[str]:
    """The first keys in words, and how many more there are."""
    shown = with_counts(list(map(format_label, release.items[:SHOWN])), release)
    more = len(release) - SHOWN
    return [*shown, f"… and {more:,} more: --output FILE writes all of them"] if more > 0 else shown


def _describe_rest(release: KeysRelease) -> dict[str, list[str]]:
    """Describe the number of keys, and of individuals without any of them."""
    rows = {"keys": [f"{len(release):,}"]} if release.items else {}
    if other := release.describe_other():
        rows["other"] = [other]
    return rows
