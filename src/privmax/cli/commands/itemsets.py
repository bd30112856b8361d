"""`privmax itemsets`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from privmax.cli.completion import sources
from privmax.cli.group import Command
from privmax.cli.inputs import (
    Input,
    explain_sample,
    find_file,
    read_groups,
    read_names,
    read_universe,
)
from privmax.cli.options import (
    COUNTS_HELP,
    LedgerOptions,
    groups_options,
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
from privmax.cli.tables import OutputColumn, OutputTable
from privmax.display import format_label
from privmax.errors import ParameterError, refuse_given
from privmax.mechanisms.registry import MECHANISMS
from privmax.privacy import ADD_REMOVE, DELTA_ADVICE, REPLACE
from privmax.sources.places import add_compressions

if TYPE_CHECKING:
    from privmax.groups import Groups
    from privmax.itemsets import ItemsetRelease
    from privmax.itemsets.mining import Layout, Mining
    from privmax.itemsets.release import GroupedItemsetRelease
    from privmax.itemsets.rules import Rule
    from privmax.release import Release

Show = Callable[[Sequence[object]], Sequence[object]]
"""Gives an itemset with the names that are printed."""

METHODS = ("blst10", "blst10-laplace", "priv-basis", "smart-trunc", "diff-part", "prefix-tree")
FORMS = ("fimi", "long", "onehot", "wide")
"""The same as in privmax.itemsets, which takes long to load: help would be slow. A test holds them
together.
"""


@click.command("itemsets", cls=Command)
@click.argument("file", shell_complete=sources)
@click.option("--size", default="2", show_default=True, help="Items per set: 2, 2-4, or any.")
@click.option(
    "--k",
    type=int,
    default=1,
    show_default=True,
    help="How many itemsets to release, as a set; the cost covers all k.",
)
@ranked_option
@groups_options
@click.option("--epsilon", required=True, help="Privacy cost; decimals are exact.")
@click.option(
    "--delta",
    default="0",
    show_default=True,
    help=f"Probability that the guarantee fails: {DELTA_ADVICE}. 0 needs --items.",
)
@click.option(
    "--items",
    default="open",
    show_default=True,
    help="open; or n for the items 0 … n − 1; or a file with all items, one per line.",
)
@click.option(
    "--basket",
    multiple=True,
    metavar="COLUMN",
    help="With --item: column of baskets, in a file with one row per item of a basket. Repeat it "
    "if several columns together name a basket.",
)
@click.option(
    "--item",
    metavar="COLUMN",
    help="With --basket: column of items. Without it: column of lists, each of them a basket.",
)
@click.option(
    "--user", metavar="COLUMN", help="Column of individuals; without it each basket counts as one."
)
@missing_users_option
@click.option(
    "--form",
    type=click.Choice(FORMS),
    help="File layout, if not clear from the extension: see above.",
)
@click.option(
    "--delimiter",
    "--separator",
    "separator",
    metavar="CHARACTER",
    help="Character between values in a CSV file; \\t is a tab.",
)
@click.option(
    "--header",
    is_flag=True,
    default=None,
    help="Skip the first line: it has names, not a basket.",
)
@input_options
@click.option(
    "--longest", type=int, help="Public limit on the number of distinct items in a basket."
)
@click.option(
    "--floor",
    type=int,
    default=0,
    show_default=True,
    help="Public number; itemsets with at most this support are never released.",
)
@click.option("--supports", help=COUNTS_HELP.format("supports of the released itemsets"))
@click.option(
    "--rules",
    help="Privacy cost (epsilon) of association rules between the released items, on top of "
    "--epsilon. If noise that needs a delta is smallest, --delta is charged once more. With --user "
    "they are about users, with all baskets of each together.",
)
@click.option("--neighbors", type=click.Choice([ADD_REMOVE, REPLACE]), help="Default add-remove.")
@click.option(
    "--mechanism",
    type=click.Choice(["auto", *MECHANISMS, *METHODS]),
    default="auto",
    show_default=True,
)
@rank_option
@click.option(
    "--labels", help="JSON file with names to print: a list for items 0, 1, …, or an object."
)
@ledger_options
@output_option
@report_option
@json_option
def command(output: str | None, report: str | None, as_json: bool, **options: Any) -> None:
    """Release the most frequent itemset, or the k most frequent, of FILE.

    FILE has one of these layouts:

    \b
    fimi    one basket per line, whole numbers with spaces between them: .dat,
            and "-", standard input
    wide    one basket per line, values with a --delimiter
    long    one row per item of a basket, with --basket and --item: CSV, JSON
            Lines, Parquet, a folder of Parquet files, a pattern of such files
            ('logs/*.csv'), or a table of a database with --table
    onehot  one row per basket and one column per item: 1 (true, t, yes, y) if
            the basket has it, otherwise 0 (false, f, no, n); --basket and --user
            may name columns that are not items

    See privmax help inputs. sample:receipts is included in privmax: the first example works as
    typed.

    \b
    privmax itemsets sample:receipts --basket receipt --item article --user member \\
        --epsilon 1 --delta 1e-6
    privmax itemsets baskets.dat --size 2 --epsilon 1 --delta 1e-6
    privmax itemsets columns.csv --form onehot --epsilon 1 --delta 1e-6
    privmax itemsets sales.parquet --basket receipt --item article --user member --by region \\
        --epsilon 1 --delta 1e-6
    """
    charging, limits, question_options = split_options(options)
    given = ItemsetsOptions(**question_options, charging=charging)
    files = Output(as_json, report, output)
    run_job(given.prepare, charging, files, limits, partial(explain_sample, file=given.file))


@dataclass(frozen=True)
class ItemsetsOptions:
    """The typed options, by name."""

    file: str
    size: str
    k: int
    ranked: bool
    by: str | None
    groups: str | None
    groups_per_user: int | None
    groups_share: str | None
    epsilon: str
    delta: str
    items: str
    basket: tuple[str, ...]
    item: str | None
    user: str | None
    missing_users: str | None
    form: str | None
    separator: str | None
    header: bool | None
    table: str | None
    where: str | None
    encoding: str | None
    header_is_public: bool
    check: bool
    longest: int | None
    floor: int
    supports: str | None
    rules: str | None
    neighbors: str | None
    mechanism: str
    rank: int | None
    labels: str | None
    charging: LedgerOptions

    def prepare(self, output: Output) -> ReleaseJob:
        from privmax.itemsets.mining import Mining, read_sizes
        from privmax.itemsets.reading.forms import refuse_form
        from privmax.sources.dialect import Dialect, read_delimiter

        origin = find_file(self.file)
        inputs = {"FILE": origin, "--ledger": self.charging["ledger"], "--items": self.items}
        inputs["--groups"] = self.groups
        output.check({**inputs, "--labels": self.labels})
        is_table = output.table is not None and not output.table.lower().endswith(".json")
        if is_table and self.rules is not None:  # rules have columns of their own
            why = "a table of itemsets has no place for association rules"
            raise ParameterError("output", output.table, why, "Write a .json file.")
        names = read_names(self.labels)
        dialect = Dialect(None, self.encoding, self.header_is_public, self.check)
        data = Input(origin, self.table, self.where, dialect)
        data.check()
        groups = read_groups(self.by, self.groups, self.groups_per_user, self.groups_share)
        mining = Mining.of(
            size=read_sizes(self.size),
            items=read_universe(self.items, 1, "items"),
            ranked=self.ranked,
            supports=self.supports,
            rules=self.rules,
            unit=self.charging["unit"],
            layout=self._layout(origin),
            dialect=replace(dialect, delimiter=read_delimiter("separator", self.separator)),
            groups=groups,
            **self._price(groups),
        )

        refuse_form(origin, mining.layout, by=self.by)

        def show(itemset: Sequence[object]) -> tuple[object, ...]:
            return tuple(names.get(str(one), one) for one in itemset)

        def name(release: ItemsetRelease) -> list[tuple[object, ...]]:
            return [show(itemset) for itemset in release.payload.items]

        if groups is not None:
            return self._job_of_groups(mining, data, show)

        def rules(release: ItemsetRelease) -> list[Rule]:
            return [
                replace(rule, antecedent=show(rule.antecedent), consequent=show(rule.consequent))
                for rule in release.rules
            ]

        return ReleaseJob(
            "Mining",
            lambda request: mining.answer(data.open, request, place=locate(self.file, self.table)),
            "itemset",
            lambda release: with_counts(list(map(_join, name(release))), release),
            lambda release: _fields(release, name(release), rules(release)),
            lambda release: {
                **self._about(release, mining),
                "answers": list(map(_join, name(release))),
            },
            lambda release: {"rule": list(map(_rule, rules(release)))},
            table=lambda: self._table(show, mining),
            data=data,
        )

    def _job_of_groups(self, mining: Mining, data: Input, show: Show) -> ReleaseJob:
        """The same for each group of --by."""

        def list_fields(release: GroupedItemsetRelease) -> dict[str, object]:
            shown = [
                {**one, "itemsets": list(map(show, one["itemsets"]))} for one in release.answers
            ]
            return {**release.to_fields("answer"), "groups": shown}

        def list_answers(release: GroupedItemsetRelease) -> list[str]:
            return [f"{format_label(group)}: {_join(show(one))}" for group, one in release.items]

        return ReleaseJob(
            "Mining",
            lambda request: mining.answer(data.open, request, place=locate(self.file, self.table)),
            "itemset",
            lambda release: list_groups(release, lambda itemset: _join(show(itemset))),
            list_fields,
            lambda release: {**self._about(release, mining), "answers": list_answers(release)},
            table=lambda: self._table(show, mining),
            data=data,
        )

    def _table(self, show: Show, mining: Mining) -> OutputTable:
        """Return the table for --output: a list of items per row, its group and its supports."""
        supports = self.supports is not None or self.mechanism in METHODS
        itemset = OutputColumn("itemset", "texts")
        if self.by is not None:
            columns: tuple[OutputColumn, ...] = (OutputColumn(self.by, "text"), itemset)
        else:
            columns = (itemset,)
        return OutputTable(
            columns,
            lambda one: [show(one)] if self.by is None else [one[0], show(one[1])],
            "support" if supports else None,
            ranked=mining.ranked and self.k > 1,
            relative=mining.has_relative,
        )

    def _layout(self, origin: str) -> Layout:
        from privmax.itemsets.mining import Layout

        columns = self.basket[0] if len(self.basket) == 1 else list(self.basket) or None
        layout = (columns, self.item, self.form, self.separator, self.header)
        if origin.lower().endswith(add_compressions(".csv")) and layout == (None,) * 5:
            raise ParameterError.required(
                "form", "a CSV file can have one basket per line, one row per item of a "
                "basket, or one column per item, and a wrong guess would cost privacy",
                "Give --form wide for baskets, --basket and --item for rows of items, or --form "
                "onehot for columns of 0 and 1.",
            )  # fmt: skip
        form = (self.form, self.header, self.where, self.missing_users)
        return Layout(columns, self.item, self.user, *form, self.longest, self.floor)

    def _price(self, groups: Groups | None) -> dict[str, Any]:
        from privmax.itemsets.mining import count_touched

        price: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbors": self.neighbors,
        }
        if self.mechanism in METHODS:
            refuse_given({"rank": self.rank}, f"{self.mechanism} does not take it", "Leave it out.")
            del price["delta"]  # those methods need none
            return {"mechanism": self.mechanism, "k": self.k, **price}
        growth = None
        if self.mechanism != "auto" and "growth" in MECHANISMS[self.mechanism].parameters:
            if self.longest is not None:
                growth = count_touched(self.longest, self.size, self.user)
            price["growth"] = growth
        terms = price_terms(self.mechanism, self.rank, self.ranked, groups, **price, k=self.k)
        return {"mechanism": terms["given"], "k": self.k} if "given" in terms else terms

    def _about(self, release: Release, mining: Mining) -> dict[str, Any]:
        """Return the facts for a page about the release."""
        repeated = release.recorded is not None
        data = None if repeated else hide_password(self.file)  # not of what is there now
        one = "one basket"
        if self.user is not None:
            one = f"one individual (“{self.user}”) with all of its baskets"
        about = {
            "data": data,
            "dataset": self.charging["dataset"],
            "table": self.table and hide_password(self.table),
            "size": self.size,
            "k": self.k,
            "ranked": self.ranked or None,
            "by": self.by,
            "groups": self.groups,
            "groups_per_user": self.groups_per_user,
            "groups_share": self.groups_share,
            "basket": ", ".join(self.basket) or None,
            "item": self.item,
            "user": self.user,
            "missing_users": self.missing_users,
            "form": self.form,
            "encoding": self.encoding,
            "where": self.where,
            "longest": self.longest,
            "floor": self.floor or None,
            "supports": self.supports,
            "rules": self.rules,
            "mechanism": self.mechanism,
            "items": mining.items.size or self.items,
        }
        return {
            "question": _question(self.size, self.k, data, self.by),
            "repeated": repeated,
            "asked": about,
            "unit": one,
            "universe": mining.itemsets(),
        }


def _question(size: str, k: int, data: str | None, by: str | None) -> str:
    """None: a request that is repeated does not tell."""
    kind = "items" if size == "any" else f"{size} items"
    where = "" if data is None else f" in {data}"
    where = where if by is None else f" in each “{by}”{where.replace(' in ', ' of ', 1)}"
    return (
        f"Which {f'set of {kind} is' if k == 1 else f'{k} sets of {kind} are'} most "
        f"frequent{where}?"
    )


def _join(itemset: Sequence[object]) -> str:
    return " + ".join(map(format_label, itemset))


def _rule(rule: Rule) -> str:
    sides = f"{_join(rule.antecedent)} → {_join(rule.consequent)}"
    return f"{sides}: confidence {rule.confidence}, lift {rule.lift}"


def _fields(
    release: ItemsetRelease, shown: Sequence[Sequence[object]], rules: Sequence[Rule]
) -> dict[str, object]:
    """Return the fields of the release, with the names that --labels gives."""
    return {
        **release.to_fields("answer"),
        "itemset": shown[0] if shown else None,
        "itemsets": shown,
        "rules": [rule.to_dict() for rule in rules],
    }
