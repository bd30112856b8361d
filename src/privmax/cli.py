"""The command line: parse, call, print."""

from __future__ import annotations

import csv
import json
import sys
from typing import TextIO

import click
from rich.console import Console

from privmax import __version__, demo
from privmax.catalogue import MECHANISMS, named
from privmax.errors import DataError, ParameterError, PrivmaxError
from privmax.plan import plan
from privmax.privacy import ADD_REMOVE, REPLACE, plain
from privmax.select import Release, select


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="privmax")
def main() -> None:
    """Pick the best item of a huge or unknown universe under differential privacy."""


@main.command("demo")
def demo_command() -> None:
    """Tell the whole story on a small invented data set."""
    demo.tell(Console(highlight=False))


@main.command("select")
@click.argument("file", type=click.File(encoding="utf-8-sig"))
@click.option("--item", default="item", show_default=True, help="Column of labels.")
@click.option("--score", default="score", show_default=True, help="Column of scores.")
@click.option("--epsilon", required=True, help="Price; decimals are taken exactly.")
@click.option("--delta", default="0", show_default=True, help="Chance that the guarantee fails; 0 needs --universe.")
@click.option("--universe", default="open", show_default=True, help="open, or how many there are if FILE lists all.")
@click.option("--neighbors", type=click.Choice([ADD_REMOVE, REPLACE]), help="Default add-remove, for integer scores.")
@click.option("--sensitivity", help="How far one individual can move a score. Required for decimal scores.")
@click.option("--resolution", help="Grid for decimal scores.")
@click.option("--k", type=int, default=1, show_default=True, help="How many items to release; the price is for all.")
@click.option("--mechanism", type=click.Choice(["auto", *MECHANISMS]), default="auto", show_default=True)
@click.option("--rank", type=int, help="For limited-domain: how many of the best compete.")
@click.option("--growth", type=int, help="How many candidates one individual's record touches at most.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def select_command(
    file: TextIO,
    item: str,
    score: str,
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
    as_json: bool,
) -> None:
    """Release the best item, or the best k, of a CSV FILE with one row per candidate ("-" reads standard input).

    Example: privmax select counts.csv --item query --score people --epsilon 1 --delta 1e-6
    """
    try:
        data = _read(file, item, score)
        size = int(universe) if universe.isdecimal() else universe
        options = {"universe": size, "sensitivity": sensitivity, "resolution": resolution}
        if mechanism == "auto":
            if rank is not None:
                raise ParameterError("rank", rank, "only limited-domain takes it", "Add --mechanism limited-domain.")
            options |= {"epsilon": epsilon, "delta": delta, "neighbors": neighbors, "growth": growth, "k": k}
            release = select(data, **options)  # type: ignore[arg-type]
        else:
            price = {"epsilon": epsilon, "delta": delta, "neighbors": neighbors or ADD_REMOVE}
            chosen = named(mechanism, **price, k=k, rank=rank, growth=growth)
            release = select(data, mechanism=chosen, **options)  # type: ignore[arg-type]
    except PrivmaxError as error:
        raise click.UsageError(str(error)) from None
    click.echo(_json(release) if as_json else _text(release))


@main.command("plan")
@click.option("--epsilon", required=True, help="Price; decimals are taken exactly.")
@click.option("--delta", default="0", show_default=True, help="Chance that the guarantee fails; 0 needs --universe.")
@click.option("--universe", default="open", show_default=True, help="How many candidates there are in all, or open.")
@click.option("--near", type=int, default=1, show_default=True, help="How many candidates are tied at the top.")
@click.option("--success", default="0.95", show_default=True, help="Chance with which one of them is to be released.")
@click.option("--neighbors", type=click.Choice([ADD_REMOVE, REPLACE]), default=ADD_REMOVE, show_default=True)
@click.option("--growth", type=int, help="How many candidates one individual's record touches at most.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def plan_command(
    epsilon: str,
    delta: str,
    universe: str,
    near: int,
    success: str,
    neighbors: str,
    growth: int | None,
    as_json: bool,
) -> None:
    """Tell how clear a winner must be for each mechanism, and which one would be chosen. Looks at no data.

    Example: privmax plan --epsilon 1 --delta 1e-6
    """
    size = int(universe) if universe.isdecimal() else universe
    options = {"universe": size, "near": near, "success": success, "neighbors": neighbors, "growth": growth}
    try:
        with Console(stderr=True).status("Computing exact laws"):  # shown on a terminal only
            found = plan(epsilon=epsilon, delta=delta, **options)  # type: ignore[arg-type]
    except PrivmaxError as error:
        raise click.UsageError(str(error)) from None
    if not as_json:
        click.echo(found)
        return
    rows = [
        {
            "mechanism": row.name,
            "lead": row.lead,
            "error": row.error,
            "silent": row.silent,
            "needs": row.needs,
            "chosen": row.chosen,
        }
        for row in found.rows
    ]
    click.echo(json.dumps({"rows": rows, "limit": found.limit, "why": found.why}, ensure_ascii=False))


def _read(file: TextIO, item: str, score: str) -> dict[str, int | float]:
    """Labels and scores of a CSV file; a message names the line at fault, never what stands there.

    Not even the first line is quoted: in a file without a header it is data.
    """
    try:
        rows = csv.DictReader(file, strict=True)
        names = rows.fieldnames or []
        for option, name in (("--item", item), ("--score", score)):
            if name not in names:
                raise DataError(
                    f"{option} {name!r}: the first line of the file names no such column. Give the name that stands "
                    "there, or add a first line with the names of the columns."
                )
        data: dict[str, int | float] = {}
        for row in rows:
            label, text = row[item], row[score]
            if label in data:
                raise DataError(f"Line {rows.line_num} repeats a label. Add up or deduplicate its scores first.")
            data[label] = _number(text, rows.line_num)
    except UnicodeDecodeError:
        raise DataError("The file is not UTF-8 text. Save it as CSV in UTF-8.") from None
    except csv.Error as error:
        raise DataError(f"The file is not readable as CSV ({error}).") from None
    return data


def _number(text: str | None, line: int) -> int | float:
    for kind in (int, float):
        try:
            return kind(text or "")
        except ValueError:
            continue
    raise DataError(f"Line {line} has no number in the score column.")


def _text(release: Release) -> str:
    answer = "\n           ".join(map(str, release.items)) if release.items else "nothing could be released"
    price = f"epsilon {plain(release.privacy.epsilon)}, delta {plain(release.privacy.delta)}"
    return f"item       {answer}\nprice      {price}\nmechanism  {type(release.mechanism).__name__}: {release.why}"


def _json(release: Release) -> str:
    return json.dumps(
        {
            "item": release.item,
            "items": list(release.items),
            "privacy": {"epsilon": plain(release.privacy.epsilon), "delta": plain(release.privacy.delta)},
            "mechanism": repr(release.mechanism),
            "why": release.why,
            "free": dict(release.free),
        },
        ensure_ascii=False,
    )


if __name__ == "__main__":
    sys.exit(main())
