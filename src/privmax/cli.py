"""The command line: parse, call, print."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import date, time
from functools import partial
from pathlib import Path
from typing import IO, Any, Unpack
from urllib.parse import urlsplit

import click
from rich.console import Console

from privmax import __version__, demo
from privmax.budget_cli import budget
from privmax.catalogue import MECHANISMS, named
from privmax.cli_ledger import Charging, exactly, ledger_options, opened, paid_for, recorded, refusing
from privmax.discreet import Discreet, DiscreetGroup, without_urls
from privmax.errors import DataError, EngineError, ParameterError, PrivmaxError
from privmax.itemsets import METHODS, ItemsetRelease, top_itemsets
from privmax.itemsets.methods import Method
from privmax.itemsets.reading import FORMS
from privmax.itemsets.top import touched
from privmax.plan import plan
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.select import Release, select
from privmax.sources.memory import OPEN

_TABLES = (".parquet", ".pq", ".tsv", ".csv.gz", ".tsv.gz")
"""Endings of files that are not read here but by DuckDB, as folders are. Any other is read as CSV."""

_TEXTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")

_COLUMNS = ("item", "user", "score", "weight")
"""Options that name a column."""


@click.group(cls=DiscreetGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="privmax")
def main() -> None:
    """Pick the best item of a huge or unknown universe under differential privacy."""


@main.command("demo")
def demo_command() -> None:
    """Tell the whole story on a small invented data set."""
    demo.tell(Console(highlight=False))


@main.command("select", cls=Discreet)
@click.argument("file")
@click.option(
    "--item",
    multiple=True,
    default=["item"],
    show_default=True,
    help="Column of items; repeat it for keys of several columns.",
)
@click.option("--user", help="Column of individuals: an item scores how many different ones it has.")
@click.option(
    "--score", help="Column of ready scores, one row per item; in a CSV file without --user, score by default."
)
@click.option(
    "--weight", help="With --user: column of whole numbers, added up per individual and item, clipped to --bound."
)
@click.option("--bound", type=int, help="With --weight: the most that one individual adds to an item.")
@click.option("--table", help="FILE is the URL of a database, and this its table, or SCHEMA.TABLE.")
@click.option("--epsilon", required=True, help="Price; decimals are taken exactly.")
@click.option("--delta", default="0", show_default=True, help="Chance that the guarantee fails; 0 needs --universe.")
@click.option(
    "--universe",
    default="open",
    show_default=True,
    help="open, or how many there are if FILE lists all, or a file with all labels: CSV, one per line, no names.",
)
@click.option("--neighbors", type=click.Choice([ADD_REMOVE, REPLACE]), help="Default add-remove, for integer scores.")
@click.option("--sensitivity", help="How far one individual can move a score. Required for decimal scores.")
@click.option("--resolution", help="Grid for decimal scores.")
@click.option("--k", type=int, default=1, show_default=True, help="How many items to release; the price is for all.")
@click.option("--mechanism", type=click.Choice(["auto", *MECHANISMS]), default="auto", show_default=True)
@click.option("--rank", type=int, help="For limited-domain: how many of the best compete.")
@click.option("--growth", type=int, help="How many candidates one individual's record touches at most.")
@ledger_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def select_command(
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
    as_json: bool,
    **charging: Unpack[Charging],
) -> None:
    """Release the best item, or the best k, of FILE.

    FILE is a CSV file with one row per candidate ("-" reads standard input). Or it holds rows to count, and DuckDB
    reads it: a CSV file with --user, a Parquet file, a folder of Parquet files. Or it is the URL of a database, with
    --table.

    \b
    privmax select counts.csv --item query --score people --epsilon 1 --delta 1e-6
    privmax select searches.parquet --item query --user user_id --epsilon 1 --delta 1e-6
    privmax select postgres://db/shop --table searches --item query --user user_id --epsilon 1 --delta 1e-6
    """
    counting = {"user": user, "weight": weight, "bound": bound}
    with refusing(as_json, charging, lambda error: without_urls(_told(error, file))), ExitStack() as held:
        options: dict[str, Any] = {
            "universe": _universe(universe, len(item)),
            "sensitivity": sensitivity,
            "resolution": resolution,
        }
        if mechanism == "auto":
            if rank is not None:
                raise ParameterError("rank", rank, "only limited-domain takes it", "Add --mechanism limited-domain.")
            options |= {"epsilon": epsilon, "delta": delta, "neighbors": neighbors, "growth": growth, "k": k}
        else:
            price = {"epsilon": epsilon, "delta": delta, "neighbors": neighbors or ADD_REMOVE}
            options["mechanism"] = named(mechanism, **price, k=k, rank=rank, growth=growth)
        paying = opened(charging, held)
        columns = _columns(file, table, item, score, counting)
        asked: Callable[[object], Release] = partial(select, **columns, **options, **paying)
        release = recorded(asked, paying)
        if release is None:
            data = _data(file, table, item, score, columns, held)
            with Console(stderr=True).status("Counting"):  # shown on a terminal only
                release = asked(data)
        beside = paid_for(release, paying)
    click.echo(_json(release, beside) if as_json else _text(release, beside))


@main.command("itemsets", cls=Discreet)
@click.argument("file")
@click.option("--size", default="2", show_default=True, help="Items in a set: 2, or 2-4, or any.")
@click.option("--k", type=int, default=1, show_default=True, help="How many itemsets to release; the price is for all.")
@click.option("--epsilon", required=True, help="Price; decimals are taken exactly.")
@click.option("--delta", default="0", show_default=True, help="Chance that the guarantee fails; 0 needs --items.")
@click.option(
    "--items",
    default="open",
    show_default=True,
    help="open, or n for the items 0 … n − 1, or a file with all, one a line.",
)
@click.option("--basket", help="Column of baskets, in a file with one row per item of a basket (with --item).")
@click.option("--item", help="Column of items in such a file.")
@click.option("--user", help="Column of individuals; without it each basket is one.")
@click.option("--form", type=click.Choice(FORMS), help="What FILE holds, where its name does not tell: see below.")
@click.option("--separator", help="What separates the values of a CSV file.")
@click.option("--header", is_flag=True, default=None, help="The first of the lines of baskets holds names: skip it.")
@click.option("--table", help="FILE is the URL of a database, and this its table, or SCHEMA.TABLE.")
@click.option("--longest", type=int, help="No basket has more different items than this, as a public rule.")
@click.option("--floor", type=int, default=0, show_default=True, help="Public; supports up to it count as nothing.")
@click.option("--supports", help="Price of noisy supports of what is released, on top of --epsilon.")
@click.option("--neighbors", type=click.Choice([ADD_REMOVE, REPLACE]), help="Default add-remove.")
@click.option("--mechanism", type=click.Choice(["auto", *MECHANISMS, *METHODS]), default="auto", show_default=True)
@click.option("--rank", type=int, help="For limited-domain: how many of the best compete.")
@click.option("--labels", help="JSON file with names to print: a list for items 0, 1, …, or an object.")
@ledger_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def itemsets_command(
    file: str,
    size: str,
    k: int,
    epsilon: str,
    delta: str,
    items: str,
    basket: str | None,
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
    as_json: bool,
    **charging: Unpack[Charging],
) -> None:
    """Release the most frequent itemset, or the k most frequent, of FILE.

    FILE holds one basket per line: whole numbers with blanks between them (fimi: .dat, and "-", standard input), or
    values with a --separator (wide: .csv). Or it holds one row per item of a basket (long), with --basket and --item:
    CSV, Parquet, a folder of Parquet files, or a table of a database with --table.

    \b
    privmax itemsets baskets.dat --size 2 --epsilon 1 --delta 1e-6
    privmax itemsets sales.parquet --basket receipt --item article --user card --epsilon 1 --delta 1e-6
    """
    with refusing(as_json, charging, lambda error: without_urls(str(error))), ExitStack() as held:
        names = _names(labels)
        options: dict[str, Any] = {"size": _size(size), "k": k, "items": _universe(items, 1, "items"), "floor": floor}
        options |= {"basket": basket, "item": item, "user": user, "supports": supports}
        options |= {"form": form, "separator": separator, "header": header}
        price = {"epsilon": epsilon, "delta": delta, "neighbors": neighbors}
        if mechanism == "auto":
            if rank is not None:
                raise ParameterError("rank", rank, "only limited-domain takes it", "Add --mechanism limited-domain.")
            options |= {**price, "longest": longest}
        elif mechanism in METHODS:
            options |= {"mechanism": _method(mechanism, epsilon, neighbors, rank), "longest": longest}
        else:
            growth = None if longest is None else touched(longest, options["size"], user)
            needed = growth if "growth" in MECHANISMS[mechanism].parameters else None
            options |= {"mechanism": named(mechanism, **price, k=k, rank=rank, growth=needed), "longest": longest}
        paying = opened(charging, held)
        asked: Callable[[object], ItemsetRelease] = partial(top_itemsets, **options, **paying)
        release = recorded(asked, paying)
        if release is None:
            data: object = file
            if table is not None or "://" in file:
                data = _database(file, table, held)
            elif file != "-" and not os.path.exists(file):
                raise DataError("FILE: No such file or folder.")
            with Console(stderr=True).status("Mining"):  # shown on a terminal only
                release = asked(data)
        beside = paid_for(release, paying)
    shown = [tuple(names.get(str(one), one) for one in itemset) for itemset in release.items]
    click.echo(_itemsets_json(release, shown, beside) if as_json else _itemsets_text(release, shown, beside))


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


main.add_command(budget)


def _method(name: str, epsilon: str, neighbors: str | None, rank: int | None) -> Method:
    """A published method; those need no delta."""
    made = METHODS[name](epsilon=epsilon)  # type: ignore[call-arg]  # a protocol does not say how its classes are made
    for option, value, fixed in (("neighbors", neighbors, made.neighbors), ("rank", rank, None)):
        if value not in (None, fixed):
            raise ParameterError(option, value, f"{name} does not take it", "Leave it out.")
    return made


def _size(text: str) -> int | str | tuple[int, int]:
    """What --size says."""
    low, dash, high = text.partition("-")
    if low.isdecimal() and (not dash or high.isdecimal()):
        return (int(low), int(high)) if dash else int(low)
    return text


def _names(file: str | None) -> dict[str, str]:
    """Names to print, by what an item is as text."""
    if file is None:
        return {}
    try:
        with open(file, encoding="utf-8-sig") as opened:
            given = json.load(opened)
    except OSError as error:
        raise DataError(f"--labels: {error.strerror}.") from None
    except ValueError:
        given = None
    if isinstance(given, list):
        given = dict(enumerate(given))
    if not isinstance(given, dict):
        raise DataError("--labels: the file is no JSON list and no JSON object.")
    return {str(item): str(name) for item, name in given.items()}


def _columns(
    file: str, table: str | None, item: Sequence[str], score: str | None, counting: dict[str, Any]
) -> dict[str, Any]:
    """The columns that `select` is to look at, if it is given a table; {}: the file is read here. Opens nothing."""
    given = [name for name, value in counting.items() if value is not None]
    if file == "-":
        given += ["table"] if table is not None else []
        given += ["item, several times"] if len(item) > 1 else []
        if given:
            raise DataError(f"--{given[0]}: standard input is read as one row per candidate. Give a file instead.")
    if table is None and "://" not in file and not (given or len(item) > 1 or _is_table(file)):
        return {}
    return {**counting, "item": list(item) if len(item) > 1 else item[0], "score": score}


def _is_table(file: str) -> bool:
    """Whether DuckDB reads the file. What is gone, and has no ending, was a folder: its recorded answers remain."""
    gone = file != "-" and not os.path.exists(file) and not Path(file).suffix
    return gone or os.path.isdir(file) or file.lower().endswith(_TABLES)


def _data(
    file: str, table: str | None, item: Sequence[str], score: str | None, columns: dict[str, Any], held: ExitStack
) -> object:
    """What `select` is to read; `held` is to be closed after that."""
    if table is None and "://" not in file:
        if file != "-" and not os.path.exists(file):
            raise DataError("FILE: No such file or folder.")
        if not columns:
            return _read(file, item[0], score or "score")
        data: object = Path(file)
    else:
        data = _database(file, table, held)
    if all(columns[name] is None for name in ("score", "user", "weight", "bound")):
        click.echo("Each row counts as one individual; give --user if one person can have several rows.", err=True)
    return data


def _universe(given: str, columns: int, option: str = "universe") -> object:
    """What --universe (or --items) says: open, a size, or the labels in a file, of so many columns each."""
    if given.isdecimal():
        return int(given)
    if given == OPEN:
        return given
    if not os.path.isfile(given):
        raise ParameterError(
            option, given, "it must be open, a number, or the name of a file, and there is no such file",
            "Leave it out if the candidates are not known in advance.",
        )  # fmt: skip
    labels: list[Any] = []
    try:
        with open(given, encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            for row in rows:
                if row and len(row) != columns:
                    raise DataError(
                        f"--{option}: line {rows.line_num} of the file has {len(row)} values, a label has {columns}. "
                        "Put each label on a line of its own, and quotes around one with a comma."
                    )
                labels += [row[0] if columns == 1 else tuple(row)] if row else []
    except OSError as error:
        raise DataError(f"--{option}: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"--{option}: the file is not readable as CSV in UTF-8.") from None
    return labels


def _database(url: str, table: str | None, held: ExitStack) -> Any:
    """A table of the database at a URL. No message quotes the URL, or what the engine says, which may."""
    if "://" not in url:
        raise DataError(
            "--table: FILE is not the URL of a database. That begins with postgres, duckdb or sqlite, a colon and two "
            "slashes."
        )
    if table is None:
        raise DataError("--table is missing: FILE is the URL of a database. Name one of its tables.")
    try:
        import ibis

        parts = urlsplit(url)
        if parts.scheme in ("duckdb", "sqlite") and not os.path.isfile(parts.netloc + parts.path):
            raise DataError("FILE: there is no such database file.")  # the engine would make an empty one
        connection = ibis.connect(url, **({"read_only": True} if parts.scheme == "duckdb" else {}))
    except ImportError:
        raise DataError(
            'FILE: databases need packages that are not installed. Run pip install "privmax[sql]".'
        ) from None
    except PrivmaxError:
        raise
    except Exception as error:
        raise EngineError(
            f"FILE: the database cannot be opened ({type(error).__name__}). Is the URL right, is the server running, "
            "and are user and password known to it?"
        ) from None
    held.callback(_disconnect, connection)
    schema, _, name = table.rpartition(".")
    try:
        return connection.table(name, database=schema or None)
    except Exception as error:
        raise EngineError(
            f"--table {table!r}: the database has no such table, or this user may not read it ({type(error).__name__})."
        ) from None


def _disconnect(connection: Any) -> None:
    with suppress(Exception):  # one that is lost cannot be closed
        connection.disconnect()


def _told(error: PrivmaxError, file: str) -> str:
    """An error in words. Where it would list the columns of a text file it does not: the first line may be data."""
    if isinstance(error, ParameterError) and error.name in _COLUMNS and file.lower().endswith(_TEXTS):
        name, value, allowed, _ = error.args
        return f"{ParameterError(name, value, allowed)} Names of columns stand in the first line of the file."
    return str(error)


def _read(name: str, item: str, score: str) -> dict[str, int | float]:
    """Labels and scores of a CSV file."""
    try:
        with click.open_file(name, encoding="utf-8-sig") as file:
            return _rows(file, item, score)
    except OSError as error:
        raise DataError(f"FILE: {error.strerror}.") from None


def _rows(file: IO[str], item: str, score: str) -> dict[str, int | float]:
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
                    "there, or add a first line with the names of the columns. To count people, give --user."
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


def _itemsets_text(release: ItemsetRelease, shown: Sequence[Sequence[object]], beside: Mapping[str, Any]) -> str:
    sets = [" + ".join(map(_shown, itemset)) for itemset in shown]
    if release.supports:
        width = max(map(len, sets))
        sets = [f"{name:{width}}  about {number:,} times" for name, number in zip(sets, release.supports, strict=True)]
    return _told_release("itemset", sets, release, beside)


def _itemsets_json(release: ItemsetRelease, shown: Sequence[Sequence[object]], beside: Mapping[str, Any]) -> str:
    sets = [list(itemset) for itemset in shown]
    fields = {"itemset": sets[0] if sets else None, "itemsets": sets, "supports": list(release.supports)}
    return _json_of(fields, release, beside)


def _text(release: Release, beside: Mapping[str, Any]) -> str:
    return _told_release("item", list(map(_shown, release.items)), release, beside)


def _told_release(name: str, shown: Sequence[str], release: Release, beside: Mapping[str, Any]) -> str:
    answer = "\n           ".join(shown) or "nothing could be released"
    about = f"{type(release.mechanism).__name__}: {release.why}"
    lines = {name: answer, "price": _price(exactly(release.privacy)), "mechanism": about}
    if beside:
        lines |= {"left": _price(beside["left"]) if beside["left"] else "not known now", "request": beside["request"]}
    return "\n".join(f"{name:11}{text}" for name, text in lines.items())


def _price(exact: Mapping[str, str]) -> str:
    return f"epsilon {exact['epsilon']}, delta {exact['delta']}"


def _shown(item: object) -> str:
    return ", ".join(map(_shown, item)) if isinstance(item, tuple) else str(_portable(item))


def _portable(value: object) -> object:
    """What is left of a value in JSON, where that has no type for it: dates as ISO text, bytes as hexadecimal."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, int | float | str | None) else str(value)


def _json(release: Release, beside: Mapping[str, Any]) -> str:
    return _json_of({"item": release.item, "items": list(release.items)}, release, beside)


def _json_of(fields: Mapping[str, object], release: Release, beside: Mapping[str, Any]) -> str:
    price = exactly(release.privacy)
    about = {"mechanism": repr(release.mechanism), "why": release.why, "free": dict(release.free)}
    return json.dumps({**fields, "privacy": price, **about, **beside}, ensure_ascii=False, default=_portable)


if __name__ == "__main__":
    sys.exit(main())
