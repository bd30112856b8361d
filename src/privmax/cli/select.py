"""`privmax select`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import click

from privmax.cli.completion import sources
from privmax.cli.discreet import Discreet, without_urls
from privmax.cli.ledger import Charging, ledger_options, opened, paid_for, refusing
from privmax.cli.progress import busy
from privmax.cli.reading import columns_of, data_of, file_of, told, universe_of
from privmax.cli.report_option import located, place, report_option, report_release, reportable
from privmax.cli.showing import in_words, json_of, told_release
from privmax.errors import ParameterError
from privmax.mechanisms.registry import MECHANISMS, build
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.writing import apart

if TYPE_CHECKING:
    from privmax.select import Release


@click.command("select", cls=Discreet)
@click.argument("file", shell_complete=sources)
@click.option(
    "--item",
    multiple=True,
    default=["item"],
    show_default=True,
    help="Column of items; repeat it for keys of several columns.",
)
@click.option(
    "--user", help="Column of individuals: an item scores how many different ones it has."
)
@click.option(
    "--score",
    help="Column of ready scores, one row per item; in a CSV file without --user, score by "
    "default.",
)
@click.option(
    "--weight",
    help="With --user: column of whole numbers, added up per individual and item, clipped to "
    "--bound.",
)
@click.option(
    "--bound", type=int, help="With --weight: the most that one individual adds to an item."
)
@click.option("--table", help="FILE is the URL of a database, and this its table, or SCHEMA.TABLE.")
@click.option(
    "--epsilon", required=True, help="Price; decimals are taken exactly: 0.1 is one tenth."
)
@click.option(
    "--delta",
    default="0",
    show_default=True,
    help="Chance that the guarantee fails; 0 needs --universe.",
)
@click.option(
    "--universe",
    default="open",
    show_default=True,
    help="open, or how many there are if FILE lists all, or a file with all labels: CSV, one per "
    "line, no names.",
)
@click.option(
    "--neighbors",
    type=click.Choice([ADD_REMOVE, REPLACE]),
    help="Default add-remove, for whole numbers.",
)
@click.option("--sensitivity", help="How far one individual can move a score; 1 by default.")
@click.option(
    "--resolution",
    help="Step of a public grid on which scores are rounded down. Without it scores must be whole "
    "numbers, unless "
    "--sensitivity is a fraction: then the grid is a 64th of it.",
)
@click.option(
    "--k",
    type=int,
    default=1,
    show_default=True,
    help="How many items to release; the price is for all.",
)
@click.option(
    "--mechanism", type=click.Choice(["auto", *MECHANISMS]), default="auto", show_default=True
)
@click.option("--rank", type=int, help="For limited-domain: how many of the best compete.")
@click.option(
    "--growth", type=int, help="How many candidates one individual's record touches at most."
)
@ledger_options
@report_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    file: str,
    item: tuple[str, ...],
    user: str | None,
    score: str | None,
    weight: str | None,
    bound: int | None,
    table: str | None,
    epsilon: str,
    delta: str,
    universe: str,
    neighbors: str | None,
    sensitivity: str | None,
    resolution: str | None,
    k: int,
    mechanism: str,
    rank: int | None,
    growth: int | None,
    report: str | None,
    as_json: bool,
    **charging: Unpack[Charging],
) -> None:
    """Release the best item, or the best k, of FILE.

    FILE is a CSV file with one row per candidate ("-" reads standard input). Or it holds rows to
    count, and DuckDB reads it: a CSV file with --user, a Parquet file, a folder of Parquet files.
    Or it is the URL of a database, with --table. Or it is sample:NAME, which comes with privmax:
    the first two examples work as typed.

    \b
    privmax select sample:counts --item query --score people --epsilon 1 --delta 1e-6
    privmax select sample:searches --item query --user person --k 3 --epsilon 1 --delta 1e-6
    privmax select postgres://db/shop --table searches --item query --user user_id \\
        --epsilon 1 --delta 1e-6
    """
    from privmax.ledger.paying import Deferred
    from privmax.select import select

    counting = {"user": user, "weight": weight, "bound": bound}
    with (
        refusing(as_json, charging, lambda error: without_urls(told(error, file))),
        ExitStack() as held,
    ):
        origin = file_of(file)
        apart(
            {"report": report},
            {"FILE": origin, "--ledger": charging["ledger"], "--universe": universe},
        )
        reportable(report)
        options: dict[str, Any] = {
            "universe": universe_of(universe, len(item)),
            "sensitivity": sensitivity,
            "resolution": resolution,
        }
        if mechanism == "auto":
            if rank is not None:
                raise ParameterError(
                    "rank", rank, "only limited-domain takes it", "Add --mechanism limited-domain."
                )
            options |= {
                "epsilon": epsilon,
                "delta": delta,
                "neighbors": neighbors,
                "growth": growth,
                "k": k,
            }
        else:
            price = {"epsilon": epsilon, "delta": delta, "neighbors": neighbors or ADD_REMOVE}
            options["mechanism"] = build(mechanism, **price, k=k, rank=rank, growth=growth)
        paying = opened(charging, held)
        columns = columns_of(origin, table, item, score, counting)
        read = partial(data_of, origin, table, item, score, columns, held)
        ready = None if columns else {"item": item[0], "score": score or "score"}
        with busy("Counting"):
            release = select(
                Deferred(read, located(file, table), ready), **columns, **options, **paying
            )
        beside = paid_for(release, paying)
    click.echo(_json(release, beside) if as_json else _text(release, beside))
    if report is None:
        return
    repeated = release.recorded is not None
    data = None if repeated else place(file)  # the answer is not of what is there now
    about: dict[str, Any] = {
        "data": data,
        "dataset": charging["dataset"],
        "table": table and place(table),
        "item": item,
        **counting,
    }
    about |= {
        "score": score or (None if columns else "score"),
        "sensitivity": sensitivity,
        "resolution": resolution,
    }
    unit = _unit(about)
    if repeated and not columns:  # nor what the columns of ready scores are called
        about |= {"item": None, "score": None}
    known = options["universe"]
    report_release(
        report,
        release,
        beside,
        charging,
        as_json,
        question=_question(about["item"], k, data),
        repeated=repeated,
        asked={**about, "growth": growth, "k": k, "mechanism": mechanism},
        unit=unit,
        universe=known if isinstance(known, int | str) else len(known),
        answers=list(map(in_words, release.items)),
    )


def _question(item: tuple[str, ...] | None, k: int, data: str | None) -> str:
    """None: a request that is repeated does not tell."""
    key = "item" if item is None else f"“{' and '.join(item)}”"
    where = "" if data is None else f" of {data}"
    return (
        f"Which {key} is at the top{where}?"
        if k == 1
        else f"Which {k} of {key} are at the top{where}?"
    )


def _unit(about: Mapping[str, Any]) -> str:
    """Whom the price protects: what docs/howto/unit.md says."""
    if about["user"] is not None:
        return f"one individual (“{about['user']}”) with all of its rows"
    if about["score"] is not None:
        return f"one individual who moves no score by more than {about['sensitivity'] or 1}"
    return "one row"


def _text(release: Release, beside: Mapping[str, Any]) -> str:
    return told_release("item", list(map(in_words, release.items)), release, beside)


def _json(release: Release, beside: Mapping[str, Any]) -> str:
    return json_of({"item": release.item, "items": list(release.items)}, release, beside)
