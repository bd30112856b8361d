"""`privmax itemsets`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Unpack

import click

from privmax.cli.completion import sources
from privmax.cli.discreet import Discreet, without_urls
from privmax.cli.ledger import Charging, ledger_options, opened, paid_for, refusing
from privmax.cli.progress import busy
from privmax.cli.reading import database, file_of, must_exist, names_of, universe_of, whole_number
from privmax.cli.report_option import located, place, report_option, report_release, reportable
from privmax.cli.showing import in_words, json_of, told_release
from privmax.errors import ParameterError
from privmax.mechanisms.registry import MECHANISMS, build
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.profile import OPEN
from privmax.writing import apart

if TYPE_CHECKING:
    from privmax.itemsets import ItemsetRelease
    from privmax.itemsets.methods import Method

METHODS = ("blst10", "blst10-laplace", "priv-basis", "smart-trunc", "diff-part", "prefix-tree")
FORMS = ("fimi", "long", "onehot", "wide")
"""The same as in privmax.itemsets, which takes long to load: help would be slow. A test holds them
together.
"""


@click.command("itemsets", cls=Discreet)
@click.argument("file", shell_complete=sources)
@click.option("--size", default="2", show_default=True, help="Items in a set: 2, or 2-4, or any.")
@click.option(
    "--k",
    type=int,
    default=1,
    show_default=True,
    help="How many itemsets to release; the price is for all.",
)
@click.option("--epsilon", required=True, help="Price; decimals are taken exactly.")
@click.option(
    "--delta",
    default="0",
    show_default=True,
    help="Chance that the guarantee fails; 0 needs --items.",
)
@click.option(
    "--items",
    default="open",
    show_default=True,
    help="open, or n for the items 0 … n − 1, or a file with all, one a line.",
)
@click.option(
    "--basket",
    multiple=True,
    metavar="COLUMN",
    help="Column of baskets, in a file with one row per item of a basket (with --item). Given "
    "several times, the "
    "columns tell baskets apart together.",
)
@click.option("--item", metavar="COLUMN", help="Column of items in such a file.")
@click.option(
    "--user", metavar="COLUMN", help="Column of individuals; without it each basket is one."
)
@click.option(
    "--form",
    type=click.Choice(FORMS),
    help="What FILE holds, where its name does not tell: see above.",
)
@click.option("--separator", help="What separates the values of a CSV file.")
@click.option(
    "--header",
    is_flag=True,
    default=None,
    help="The first of the lines of baskets holds names: skip it.",
)
@click.option("--table", help="FILE is the URL of a database, and this its table, or SCHEMA.TABLE.")
@click.option(
    "--longest", type=int, help="No basket has more different items than this, as a public rule."
)
@click.option(
    "--floor",
    type=int,
    default=0,
    show_default=True,
    help="Public; supports up to it count as nothing.",
)
@click.option(
    "--supports", help="Price of noisy supports of what is released, on top of --epsilon."
)
@click.option("--neighbors", type=click.Choice([ADD_REMOVE, REPLACE]), help="Default add-remove.")
@click.option(
    "--mechanism",
    type=click.Choice(["auto", *MECHANISMS, *METHODS]),
    default="auto",
    show_default=True,
)
@click.option("--rank", type=int, help="For limited-domain: how many of the best compete.")
@click.option(
    "--labels", help="JSON file with names to print: a list for items 0, 1, …, or an object."
)
@ledger_options
@report_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    file: str,
    size: str,
    k: int,
    epsilon: str,
    delta: str,
    items: str,
    basket: tuple[str, ...],
    item: str | None,
    user: str | None,
    form: str | None,
    separator: str | None,
    header: bool | None,
    table: str | None,
    longest: int | None,
    floor: int,
    supports: str | None,
    neighbors: str | None,
    mechanism: str,
    rank: int | None,
    labels: str | None,
    report: str | None,
    as_json: bool,
    **charging: Unpack[Charging],
) -> None:
    """Release the most frequent itemset, or the k most frequent, of FILE.

    FILE holds one basket per line: whole numbers with blanks between them (fimi: .dat, and "-",
    standard input), or values with a --separator (--form wide). Or it holds one row per item of a
    basket (long), with --basket and --item: CSV, Parquet, a folder of Parquet files, or a table of
    a database with --table. Or it has a column for each item, with 1 (true, t, yes, y) in the rows
    of baskets that hold it and 0 (false, f, no, n) in the others (--form onehot); --basket and
    --user may name columns of such a file that are no items. sample:receipts comes with privmax:
    the first example works as typed.

    \b
    privmax itemsets sample:receipts --basket receipt --item article --user member \\
        --epsilon 1 --delta 1e-6
    privmax itemsets baskets.dat --size 2 --epsilon 1 --delta 1e-6
    privmax itemsets columns.csv --form onehot --epsilon 1 --delta 1e-6
    """
    from privmax.itemsets.baskets import declared
    from privmax.itemsets.top import top_itemsets, touched, universe_size
    from privmax.ledger.paying import Deferred

    with refusing(as_json, charging, lambda error: without_urls(str(error))), ExitStack() as held:
        origin = file_of(file)
        inputs = {
            "FILE": origin,
            "--ledger": charging["ledger"],
            "--items": items,
            "--labels": labels,
        }
        apart({"report": report}, inputs)
        reportable(report)
        names = names_of(labels)
        options: dict[str, Any] = {
            "size": _size(size),
            "k": k,
            "items": universe_of(items, 1, "items"),
            "floor": floor,
        }
        columns = basket[0] if len(basket) == 1 else list(basket) or None
        options |= {"basket": columns, "item": item, "user": user, "supports": supports}
        options |= {"form": form, "separator": separator, "header": header}
        if (
            origin.lower().endswith((".csv", ".csv.gz"))
            and (columns, item, form, separator, header) == (None,) * 5
        ):
            raise ParameterError(
                "form", None, "a CSV file may hold one basket a line, one row per item of a "
                              "basket, or one column per "
                "item, and a wrong guess would be paid for", "Give --form wide for baskets, "
                                                             "--basket and --item for "
                "rows of items, or --form onehot for columns of 0 and 1.",
            )  # fmt: skip
        price = {"epsilon": epsilon, "delta": delta, "neighbors": neighbors}
        if mechanism == "auto":
            if rank is not None:
                raise ParameterError(
                    "rank", rank, "only limited-domain takes it", "Add --mechanism limited-domain."
                )
            options |= {**price, "longest": longest}
        elif mechanism in METHODS:
            options |= {
                "mechanism": _method(mechanism, epsilon, neighbors, rank),
                "longest": longest,
            }
        else:
            growth = None if longest is None else touched(longest, options["size"], user)
            needed = growth if "growth" in MECHANISMS[mechanism].parameters else None
            options |= {
                "mechanism": build(mechanism, **price, k=k, rank=rank, growth=needed),
                "longest": longest,
            }
        paying = opened(charging, held)

        def read() -> object:
            if table is not None or "://" in origin:
                return database(origin, table, held)
            must_exist(origin)
            return origin

        with busy("Mining"):
            release = top_itemsets(Deferred(read, located(file, table)), **options, **paying)
        beside = paid_for(release, paying)
    shown = [tuple(names.get(str(one), one) for one in itemset) for itemset in release.items]
    click.echo(_json(release, shown, beside) if as_json else _text(release, shown, beside))
    if report is None:
        return
    repeated = release.recorded is not None
    data = None if repeated else place(file)  # the answer is not of what is there now
    about = {
        "data": data,
        "dataset": charging["dataset"],
        "table": table and place(table),
        "size": size,
        "k": k,
    }
    about |= {"basket": ", ".join(basket) or None, "item": item, "user": user, "form": form}
    about |= {
        "longest": longest,
        "floor": floor or None,
        "supports": supports,
        "mechanism": mechanism,
    }
    universe = universe_size(options["items"], options["size"])
    report_release(
        report,
        release,
        beside,
        charging,
        as_json,
        question=_question(size, k, data),
        repeated=repeated,
        asked={**about, "items": items if universe == OPEN else len(declared(options["items"]))},
        unit="one basket" if user is None else f"one individual (“{user}”) with all of its baskets",
        universe=universe,
        answers=[_joined(itemset) for itemset in shown],
    )


def _method(name: str, epsilon: str, neighbors: str | None, rank: int | None) -> Method:
    """A published method; those need no delta."""
    from privmax import itemsets

    # A protocol does not say how its classes are made.
    made = itemsets.METHODS[name](epsilon=epsilon)  # type: ignore[call-arg]
    for option, value, fixed in (("neighbors", neighbors, made.neighbors), ("rank", rank, None)):
        if value not in (None, fixed):
            raise ParameterError(option, value, f"{name} does not take it", "Leave it out.")
    return made


def _size(text: str) -> int | str | tuple[int, int]:
    """What --size says."""
    first, dash, last = text.partition("-")
    low, high = whole_number("size", first), whole_number("size", last)
    if low is None or (high is None and dash):
        return text
    return low if high is None else (low, high)


def _question(size: str, k: int, data: str | None) -> str:
    """None: a request that is repeated does not tell."""
    kind = "items" if size == "any" else f"{size} items"
    where = "" if data is None else f" in {data}"
    return (
        f"Which {f'set of {kind} is' if k == 1 else f'{k} sets of {kind} are'} most "
        f"frequent{where}?"
    )


def _joined(itemset: Sequence[object]) -> str:
    return " + ".join(map(in_words, itemset))


def _text(
    release: ItemsetRelease, shown: Sequence[Sequence[object]], beside: Mapping[str, Any]
) -> str:
    sets = list(map(_joined, shown))
    if release.supports:
        width = max(map(len, sets))
        sets = [
            f"{name:{width}}  about {number:,} times"
            for name, number in zip(sets, release.supports, strict=True)
        ]
    return told_release("itemset", sets, release, beside)


def _json(
    release: ItemsetRelease, shown: Sequence[Sequence[object]], beside: Mapping[str, Any]
) -> str:
    sets = [list(itemset) for itemset in shown]
    fields = {
        "itemset": sets[0] if sets else None,
        "itemsets": sets,
        "supports": list(release.supports),
    }
    return json_of(fields, release, beside)
