"""`privmax select`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from privmax.cli.completion import sources
from privmax.cli.group import Command
from privmax.cli.inputs import (
    Input,
    explain,
    find_file,
    name_columns,
    open_data,
    read_groups,
    read_universe,
)
from privmax.cli.options import (
    COUNTS_HELP,
    LedgerOptions,
    delimiter_option,
    delta_option,
    groups_options,
    growth_option,
    input_options,
    json_option,
    ledger_options,
    missing_users_option,
    output_option,
    price_terms,
    rank_option,
    ranked_option,
    report_option,
    split_options,
)
from privmax.cli.output import list_groups, with_counts
from privmax.cli.passwords import hide_password, locate
from privmax.cli.run import Output, ReleaseJob, run_job
from privmax.cli.tables import OutputTable, item_table
from privmax.display import format_label
from privmax.errors import PrivmaxError
from privmax.mechanisms.registry import MECHANISMS
from privmax.privacy import ADD_REMOVE, REPLACE

if TYPE_CHECKING:
    from privmax.best_items import BestItems
    from privmax.release import Release


@click.command("select", cls=Command)
@click.argument("file", shell_complete=sources)
@click.option(
    "--item",
    multiple=True,
    default=["item"],
    show_default=True,
    help="Column of items; repeat it if several columns together name an item.",
)
@click.option(
    "--user", help="Column of individuals: the score of an item is its number of distinct users."
)
@click.option(
    "--score",
    help="Column of precomputed scores, one row per item. Default in a CSV file without --user: "
    "score.",
)
@click.option(
    "--weight",
    help="With --user: column of whole numbers, summed per individual and item and clipped to "
    "--bound.",
)
@click.option(
    "--bound", type=int, help="With --weight: the most that one individual can add to an item."
)
@missing_users_option
@delimiter_option
@input_options
@click.option(
    "--epsilon", required=True, help="Privacy cost; decimals are exact: 0.1 is one tenth."
)
@delta_option
@click.option(
    "--universe",
    default="open",
    show_default=True,
    help="open; or the number of candidates if FILE lists all of them; or a file with all labels "
    "(CSV, one per line, no header).",
)
@click.option(
    "--neighbors",
    type=click.Choice([ADD_REMOVE, REPLACE]),
    help="Default for whole numbers: add-remove.",
)
@click.option(
    "--sensitivity", help="The most that one individual can change a score.  [default: 1]"
)
@click.option(
    "--resolution",
    help="Step of a public grid; scores are rounded down to it. Without it scores must be whole "
    "numbers, unless --sensitivity is a fraction: then the step is 1/64 of it.",
)
@click.option(
    "--k",
    type=int,
    default=1,
    show_default=True,
    help="How many items to release, as a set; the cost covers all k.",
)
@ranked_option
@groups_options
@click.option("--counts", help=COUNTS_HELP.format("counts of the items"))
@click.option(
    "--mechanism", type=click.Choice(["auto", *MECHANISMS]), default="auto", show_default=True
)
@rank_option
@growth_option
@ledger_options
@output_option
@report_option
@json_option
def command(output: str | None, report: str | None, as_json: bool, **options: Any) -> None:
    """Release the best item, or the best k, of FILE.

    FILE is one of: a CSV or JSON Lines file with one row per candidate ("-" reads CSV from standard
    input); rows to count: such a file with --user, a Parquet file, or a folder of Parquet files; a
    database, with --table: a SQLite or DuckDB file, or a URL; or sample:NAME, a data set included
    in privmax. Files may be compressed (.gz, .zst), and a pattern such as 'logs/*.parquet' reads
    several. The first two examples work as typed. See privmax help inputs.

    \b
    privmax select sample:counts --item query --score people --epsilon 1 --delta 1e-6
    privmax select sample:searches --item query --user person --k 3 --epsilon 1 --delta 1e-6
    privmax select postgres://db/shop --table searches --item query --user user_id \\
        --epsilon 1 --delta 1e-6
    privmax select searches.jsonl --where "country = 'DE'" --item query --user user_id \\
        --epsilon 1 --delta 1e-6
    privmax select visits.parquet --item page --user visitor --by region --groups regions.csv \\
        --epsilon 1 --delta 1e-6
    """
    charging, limits, question_options = split_options(options)
    given = SelectOptions(**question_options, charging=charging)
    files = Output(as_json, report, output)
    run_job(given.prepare, charging, files, limits, given.explain)


@dataclass(frozen=True)
class SelectOptions:
    """The typed options, by name."""

    file: str
    item: tuple[str, ...]
    user: str | None
    score: str | None
    weight: str | None
    bound: int | None
    missing_users: str | None
    table: str | None
    where: str | None
    delimiter: str | None
    encoding: str | None
    header_is_public: bool
    check: bool
    epsilon: str
    delta: str
    universe: str
    neighbors: str | None
    sensitivity: str | None
    resolution: str | None
    k: int
    ranked: bool
    by: str | None
    groups: str | None
    groups_per_user: int | None
    groups_share: str | None
    counts: str | None
    mechanism: str
    rank: int | None
    growth: int | None
    charging: LedgerOptions

    def prepare(self, output: Output) -> ReleaseJob:
        from privmax.selection import Selection
        from privmax.sources.dialect import Dialect
        from privmax.sources.roles import Columns

        origin = find_file(self.file)
        inputs = {
            "FILE": origin,
            "--ledger": self.charging["ledger"],
            "--universe": self.universe,
            "--groups": self.groups,
        }
        output.check(inputs)
        everything = read_universe(self.universe, len(self.item))
        dialect = Dialect(self.delimiter, self.encoding, self.header_is_public, self.check)
        data = Input(origin, self.table, self.where, dialect)
        groups = read_groups(self.by, self.groups, self.groups_per_user, self.groups_share)
        columns = name_columns(
            data, self.item, self.score, self._counting(), grouped=groups is not None
        )
        price = price_terms(
            self.mechanism,
            self.rank,
            self.ranked,
            groups,
            epsilon=self.epsilon,
            delta=self.delta,
            neighbors=self.neighbors,
            growth=self.growth,
            k=self.k,
        )
        selection = Selection.of(
            Columns(**columns, where=self.where, missing_users=self.missing_users),
            sensitivity=self.sensitivity,
            resolution=self.resolution,
            unit=self.charging["unit"],
            universe=everything,
            ranked=self.ranked,
            counts=self.counts,
            dialect=dialect,
            groups=groups,
            **price,
        )
        read = partial(open_data, data, self.item, self.score, columns)
        place = locate(self.file, self.table)
        ready = None if columns else {"item": self.item[0], "score": self.score or "score"}
        return ReleaseJob(
            "Counting",
            partial(selection.answer, read, place=place, ready=ready),
            "item",
            _list_items if groups is None else list_groups,
            lambda release: release.to_fields("answer"),
            lambda release: {"universe": everything, **self._about(release, bool(columns))},
            table=lambda: self._table(selection.question),
            data=data,
        )

    def _table(self, question: BestItems) -> OutputTable:
        """Return the table for --output: the columns that name groups and items, and counts."""
        from privmax.release import is_ranked

        return item_table(
            self.item,
            self.counts is not None,
            ranked=is_ranked(question.choice.mechanism) and self.k > 1,
            relative=question.order_noise is not None,
            by=self.by,
        )

    def explain(self, error: PrivmaxError) -> str:
        return explain(error, self.file, self.header_is_public)

    def _counting(self) -> dict[str, Any]:
        return {"user": self.user, "weight": self.weight, "bound": self.bound}

    def _about(self, release: Release, is_table: bool) -> dict[str, Any]:
        """Return the facts for a page about the release."""
        repeated = release.recorded is not None
        about: dict[str, Any] = {
            "data": None if repeated else hide_password(self.file),  # not of what is there now
            "dataset": self.charging["dataset"],
            "table": self.table and hide_password(self.table),
            "item": self.item,
            **self._counting(),
            "missing_users": self.missing_users,
            "where": self.where,
            "delimiter": self.delimiter,
            "encoding": self.encoding,
            "score": self.score or (None if is_table else "score"),
            "sensitivity": self.sensitivity,
            "resolution": self.resolution,
        }
        unit = _unit(about)
        if repeated and not is_table:  # nor what the columns of ready scores are called
            about |= {"item": None, "score": None}
        return {
            "question": _question(about["item"], self.k, about["data"], self.by),
            "repeated": repeated,
            "asked": {
                **about,
                "growth": self.growth,
                "k": self.k,
                "ranked": self.ranked or None,
                "by": self.by,
                "groups": self.groups,
                "groups_per_user": self.groups_per_user,
                "groups_share": self.groups_share,
                "counts": self.counts,
                "mechanism": self.mechanism,
            },
            "unit": unit,
            "answers": list(map(release.name_item, release.items)),
        }


def _list_items(release: Release) -> list[str]:
    """The items in words."""
    return with_counts(list(map(format_label, release.items)), release)


def _question(item: tuple[str, ...] | None, k: int, data: str | None, by: str | None) -> str:
    """None: a request that is repeated does not tell."""
    key = "item" if item is None else f"“{' and '.join(item)}”"
    where = "" if data is None else f" of {data}"
    where = where if by is None else f" of each “{by}”{where}"
    return (
        f"Which {key} is at the top{where}?"
        if k == 1
        else f"Which {k} of {key} are at the top{where}?"
    )


def _unit(about: Mapping[str, Any]) -> str:
    """Whom the cost protects: what docs/howto/unit.md says."""
    if about["user"] is not None:
        return f"one individual (“{about['user']}”) with all of its rows"
    if about["score"] is not None:
        return f"one individual, which changes each score by at most {about['sensitivity'] or 1}"
    return "one row"
