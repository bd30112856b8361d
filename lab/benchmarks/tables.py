"""The stored results as tables: printed by the benchmarks, and written into pages.

    ./dev python -m lab.benchmarks.tables           write all tables from results/*.json
    ./dev python -m lab.benchmarks.tables --check   exit with 1 if a table or picture is out of date

tables.toml says what is in each table, and on which page it stands: between a line
`<!-- table: NAME -->` and a line `<!-- end -->`. Cells are templates whose fields are columns of
stored rows, written by FORMATS. Sentences around the tables are written by hand.
"""

from __future__ import annotations

import argparse
import re
import string
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from lab.benchmarks import pictures
from lab.benchmarks.harness import RESULTS, Row, stored

ROOT = Path(__file__).parents[2]
NOTHING = "–"


@dataclass(frozen=True)
class Table:
    """A table made of rows of a result.

    page     on which it stands
    result   a stored one
    rows     of this kind, or made by a function of ROWS
    title    above it
    columns  of a plain list: headings, and the template of each cell
    down     of a table with two ways in: the template of what a line is called,
    across   and of a column,
    cell     and of what stands there
    each     a column whose values all have a place in a cell, in order of their appearance
    lines    which lines there are, and how they are shown; heads: likewise for columns
    where    which values of a column are shown
    corner   heading of the first column
    busy     if not empty, lines of nothing but zeros are left out
    """

    name: str
    page: str
    result: str
    rows: str
    title: str
    columns: Mapping[str, str] = field(default_factory=dict)
    down: str = ""
    across: str = ""
    cell: str = ""
    each: str = ""
    lines: Mapping[str, str] = field(default_factory=dict)
    heads: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    corner: str = ""
    busy: str = ""

    def markdown(self, result: Row, *, strict: bool = True) -> str:
        """The table. A strict one lacks no cell."""
        found = ROWS[self.rows](result) if self.rows in ROWS else result.get(self.rows, [])
        rows = [row for row in found if all(row.get(key) in self.where[key] for key in self.where)]
        if not rows:
            return ""
        lines = self._pivot(rows, strict) if self.across else self._list(rows)
        if len(lines) == 1:
            return ""
        lines.insert(1, ["---", *["---:"] * (len(lines[0]) - 1)])
        text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
        return f"**{self.title}**\n\n{text}"

    def _list(self, rows: list[Row]) -> list[list[str]]:
        cells = [[shown(cell, row) for cell in self.columns.values()] for row in rows]
        return [list(self.columns), *cells]

    def _pivot(self, rows: list[Row], strict: bool) -> list[list[str]]:
        cells: dict[tuple[str, str], dict[str, str]] = {}
        for row in rows:
            place = shown(self.down, row), shown(self.across, row)
            cells.setdefault(place, {})[str(row.get(self.each))] = shown(self.cell, row)
        values = list(dict.fromkeys(str(row.get(self.each)) for row in rows))
        lines = self.lines or {line: line for line, _ in cells}
        heads = self.heads or {head: head for _, head in cells}
        table = [[self.corner, *heads.values()]]
        for line, name in lines.items():
            found = [cells.get((line, head), {}) for head in heads]
            if not any(found) or (self.busy and _all_zero(found)):
                continue
            if strict and any(cell and len(cell) < len(values) for cell in found):
                raise SystemExit(f"{self.name}: {line} lacks a cell")
            joined = [" / ".join(cell.get(one, NOTHING) for one in values) for cell in found]
            blank = [cell if one else "" for cell, one in zip(joined, found, strict=True)]
            table.append([name, *blank])
        return table


def _all_zero(cells: list[dict[str, str]]) -> bool:
    return all(text == "0" for cell in cells for text in cell.values())


# How cells are written


def _figures(number: float) -> str:
    """Three significant figures without an exponent."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _scaled(number: float, units: Sequence[tuple[str, float]]) -> str:
    unit, worth = next(((u, w) for u, w in units if number >= w), units[-1])
    return f"{_figures(number / worth)} {unit}"


def _time(seconds: float) -> str:
    return _scaled(seconds, (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)))


def _bytes(number: float) -> str:
    return _scaled(number, (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)))


def _power(number: int) -> str:
    """A number of one figure, as a power of ten."""
    text = str(number)
    return ("" if text[0] == "1" else f"{text[0]}·") + f"10^{len(text) - 1}"


def _part(value: float) -> str:
    """Two figures of a part of 1."""
    if value >= 0.995:
        return "1"
    return f"{value:.2f}".removeprefix("0") if value >= 0.005 else "0" if value < 5e-5 else "<.01"


def _chance(value: float) -> str:
    """Likewise, but 1 only where it is 1 but for a thousandth."""
    return "1" if value >= 0.9995 else ".99" if value >= 0.995 else _part(value)


def _records(number: float) -> str:
    """Three significant figures; nothing below a thousandth."""
    if number < 0.0005:
        return "0"
    return _figures(number) if number >= 0.01 else f"{number:.3f}"


def _outcome(row: Row) -> str:
    """The median of calls, or how they ended."""
    if "median" in row:
        stopped = f" ({row['stopped']} of {row['repeats']} stopped)" if row.get("stopped") else ""
        return _time(row["median"]) + stopped
    return "skipped" if "expected" in row else str(row["ending"])


def _answered(row: Row) -> str:
    """An accuracy, and how often there was no answer."""
    silent = row.get("unanswered", 0)
    more = f", {100 * silent:.0f} % unanswered" if silent >= 0.005 else ""
    return _accuracy(row) + more


def _accuracy(row: Row) -> str:
    return f"{100 * row['accuracy']:.1f} ± {100 * row['error']:.1f}"


def _both(row: Row) -> str:
    """Accuracy and area under the curve in per cent; a single rule has no curve."""
    curve = "" if row["contender"].startswith("PrivateERM") else f" / {row['auc']:.1f}"
    return f"{row['accuracy']:.1f}{curve}"


def _size(size: int) -> str:
    power = len(str(size)) - 1
    return f"{size:,}" if size < 10_000 else f"{size / 10**power:.1f}·10^{power}"


def _until(row: Row, who: str) -> str:
    """Runs until a mistake was found, or how many were not enough."""
    if who != "ours" and not row["compared"]:
        return NOTHING
    return f"{row[who]:,}" if row[who] is not None else f"more than {row['most']:,}"


def _told(row: Row) -> str:
    """The keys that a library found, what it was told, and its processor time."""
    told = f"{row['strategy']} {row['per_user']}".strip().replace("_", " ")
    if "found" not in row:
        return str(row["ending"])
    return f"{row['found']:,} ({told}), {_figures(row['seconds'])} s"


def _needed(row: Row) -> str:
    """What a subject needs at least, by enumeration or by samples."""
    if row["exactly"] is not None and (row["verdict"] == "broken" or row["needs"] is None):
        return f"δ {row['exactly'][0]:.3g} to {row['exactly'][1]:.3g}"
    return f"{'ρ' if row['claim'].startswith('rho') else 'ε'} {row['needs']:.2f}"


FORMATS: dict[str, Callable[[Any], str]] = {
    "ours": lambda row: _until(row, "ours"),
    "baseline": lambda row: _until(row, "baseline"),
    "tuned": lambda row: _until(row, "tuned"),
    "needed": _needed,
    "told": _told,
    "drawn": lambda row: NOTHING if row["runs"] is None else f"{row['runs']:,}",
    "exactly": lambda row: "yes" if row["enumerated"] else NOTHING,
    "time": _time,
    "bytes": _bytes,
    "figures": _figures,
    "power": _power,
    "part": _part,
    "chance": _chance,
    "records": _records,
    "more": lambda value: (
        NOTHING if not value else "+<0.001" if value < 5e-4 else f"+{_records(value)}"
    ),
    "support": lambda value: f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0"),
    "percent": lambda value: f"{_figures(100 * value)} %",
    "plain": lambda value: str(value).replace("_", " "),
    "exact": lambda who: who + " (not exact)" * who.startswith(("NumPy", "diffprivlib")),
    "lost": lambda faults: "; ".join(faults) or "nothing",
    "hundreds": lambda value: _records(100 * value),
    "versions": lambda known: ", ".join(f"{k} {v}" for k, v in known.items()),
    "sizes": lambda known: ", ".join(f"{k} {_size(v)}" for k, v in known.items()),
    "plans": lambda known: ", ".join(f"{v} at {k}" for k, v in known.items()),
    "right": lambda value: {True: "right", False: "WRONG"}[value],
    "engine": {"duckdb": "DuckDB", "postgres": "PostgreSQL", "spark": "Spark"}.__getitem__,
    "universe": lambda name: {"natural": "known items", "10^12": "10^12 known items"}.get(
        name, name
    ),
    "outcome": _outcome,
    "pair": lambda pair: " and ".join(", ".join(map(str, scores)) for scores in pair),
    "accuracy": _accuracy,
    "both": _both,
    "answered": _answered,
}


class _Cells(string.Formatter):
    """Fields are columns of a row, `row` the whole of it; what it lacks is shown as a dash."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return kwargs.get(str(key))

    def format_field(self, value: Any, spec: str) -> str:
        if value is None:
            return NOTHING
        return FORMATS[spec](value) if spec in FORMATS else format(value, spec)


def shown(template: str, row: Row) -> str:
    return _Cells().vformat(template, (), {**row, "row": row})


# What the rows of some tables are


def _runs(result: Row) -> Iterator[Row]:
    for run in result["runs"]:
        machine = f"{run['cpu']}, {run['cores']} cores" if "cpu" in run else None
        python = f"Python {run['python']}, " if "python" in run else ""
        yield {**run, "machine": machine, "python": python}


def _paired(result: Row) -> Iterator[Row]:
    for row in result["selections"]:
        if "gumbel" in row:
            yield {**row, "faster": row["gumbel"] / row["median"]}


def _most(result: Row) -> Iterator[Row]:
    """By file and contender: the most memory of any job that was finished."""
    found: dict[tuple[str, str], Row] = {}
    for row in result["rows"]:
        if "growth" in row:
            best = found.setdefault((row["contender"], row["set"]), dict(row))
            best |= {key: max(best[key], row[key]) for key in ("growth", "peak")}
    yield from found.values()


def _prices(result: Row) -> Iterator[Row]:
    """What each mechanism loses: one row a profile and price."""
    groups = {profile["name"]: profile["group"] for profile in result["profiles"]}
    for row in result["rows"]:
        facts = {"mechanism": row["mechanism"], "universe": row["universe"]}
        facts["group"] = groups[row["profile"]]
        facts["profile"] = row["profile"].removeprefix(f"{facts['group']}, ")
        for (epsilon, delta), cell in zip(result["settings"]["prices"], row["cells"], strict=True):
            yield {**facts, "epsilon": epsilon, "delta": delta, **cell}


def _accuracies(result: Row) -> Iterator[Row]:
    """Ours, diffprivlib's and what needs no privacy, with what their line is called."""
    for row in (*result.get("accuracy", ()), *result.get("peers", ())):
        who = row["contender"]
        if "class" in row:
            who = f"{row['class']}/{who.replace('best', 'auto')}"
        group, _, n = row["group"].rpartition("-")
        number = f"n = {int(n):,}" if n.isdigit() else ""
        column = "not private" if row["epsilon"] == "-" else f"ε = {row['epsilon']}"
        yield {**row, "who": who, "kind": group, "number": number, "column": column}


def _additive(result: Row) -> Iterator[Row]:
    """All learners on all sets, ours first, with the column that they stand in."""
    kinds = ("ours", "adult", "small", "wide", "peers")
    for row in (row for kind in kinds for row in result.get(kind, ())):
        column = "not private" if row["epsilon"] == "-" else f"ε = {row['epsilon']}"
        yield {**row, "column": column}


def _invented(result: Row, part: str = "table") -> Iterator[Row]:
    """The means of all kinds of invented data."""
    kept = ("columns", "epsilon", "product", "member", "delta")
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in result.get(part, ()):
        found.setdefault(tuple(row[key] for key in kept), []).append(row)
    for values, rows in found.items():
        means = {key: sum(row[key] for row in rows) / len(rows) for key in ("accuracy", "auc")}
        made = dict(zip(kept, values, strict=True))
        pure = ", δ = 0" if made["delta"] == "0" and made["member"].startswith("additive") else ""
        yield {**made, **means, "contender": made["member"] + pure}


def _best_libraries(result: Row) -> Iterator[Row]:
    """By set and library: the setting at which it found the most keys."""
    best: dict[tuple[str, str], Row] = {}
    for row in result.get("libraries", ()):
        before = best.setdefault((row["set"], row["contender"]), row)
        if row.get("found", -1) > before.get("found", -1):
            best[row["set"], row["contender"]] = row
    yield from best.values()


def _classified(result: Row) -> Iterator[Row]:
    """All contenders on all sets, and how far the classifier is behind the best of its models."""
    for row in (row for kind in ("sets", "adult", "wide") for row in result.get(kind, ())):
        yield {**row, "compared": "behind" in row}


def _beside(result: Row) -> Iterator[Row]:
    """The classifier and its peers, set by set."""
    ours = [row for kind in ("sets", "adult", "wide") for row in result.get(kind, ())]
    every = [row for row in ours if row["contender"] == "PrivateClassifier"]
    every += [row for row in result.get("peers", ()) if row["epsilon"] != "-"]
    places = {(row["set"], row["rows"]): place for place, row in reversed([*enumerate(every)])}
    yield from sorted(every, key=lambda row: places[row["set"], row["rows"]])


def _gpu(result: Row) -> Iterator[Row]:
    """What the card does by itself, the best kernel, the other paths, and single steps."""
    rows = [{**row, "what": f"the card's own products, {row['kind']}"} for row in result["rates"]]
    rows += [{**row, "what": "fused kernel"} for row in result.get("best", ())]
    for row in result["paths"]:
        if not row["path"].startswith("kernel"):
            part = ", 2,000 × 100,000 only" if "directions" in row else ""
            rows.append({**row, "what": f"array API, {row['path']}{part}"})
    rows += [{**row, "what": row["step"]} for row in result["steps"]]
    for row in rows:
        yield {**row, "int8": row.get("of", {}).get("int8")}


def _kinds(result: Row) -> Iterator[Row]:
    """The worst of each mechanism, by what was varied, in one order."""
    order = ("closed", "open", "add-remove", "replace", "k = 1", "k = 2", "k = 3", "growth")
    for kind in (*order, "narrow window", "sensitivity 2"):
        for row in result["mechanisms"]:
            yield {**row, "kind": kind, "worst": row["by_kind"].get(kind)}


ROWS: dict[str, Callable[[Row], Iterable[Row]]] = {
    "the runs": _runs,
    "calls in turn": _paired,
    "most of any job": _most,
    "prices": _prices,
    "kinds of settings": _kinds,
    "accuracies": _accuracies,
    "additive learners": _additive,
    "invented data": _invented,
    "few invented data": partial(_invented, part="few"),
    "many invented data": partial(_invented, part="many"),
    "classifiers": _beside,
    "classified sets": _classified,
    "best of libraries": _best_libraries,
    "card": _gpu,
}


# Pages

_SECTION = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def described() -> list[Table]:
    """The tables of tables.toml.

    `repeat` makes several of one: every <word> is replaced, for each choice of one set of words
    from every list. `lines`, `heads` and `columns` may name one of the `labels`.
    """
    known = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    tables = []
    for entry in known["table"]:
        for choice in product(*entry.pop("repeat", [[{}]])):
            words = {word: text for one in choice for word, text in one.items()}
            made = _replaced(entry, words)
            for key in ("lines", "heads", "columns"):
                if isinstance(made.get(key), str):
                    made[key] = known["labels"][made[key]]
            tables.append(Table(**made))
    return tables


def _replaced(value: Any, words: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _replaced(one, words) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, words) for one in value]
    if isinstance(value, str):
        return re.sub(r"<(\w+)>", lambda match: str(words[match[1]]), value)
    return value


def printed(name: str, result: Row) -> str:
    """All tables of one result, as far as it has rows."""
    made = [table.markdown(result, strict=False) for table in described() if table.result == name]
    return "\n".join(filter(None, made))


def filled(text: str, tables: Iterable[Table]) -> str:
    """Rewrite every table of a page.

    Each that has rows is on the page, once. One that was not measured yet may be, and is empty.
    """
    made = {
        table.name: table.markdown(stored(RESULTS / f"{table.result}.json")) for table in tables
    }
    wanted = sorted(name for name, table in made.items() if table)
    marked = sorted(match["name"] for match in _SECTION.finditer(text))
    if set(marked) - made.keys() or set(wanted) - set(marked) or len(set(marked)) < len(marked):
        odd = sorted(set(marked) ^ set(wanted)) or "one twice"
        raise SystemExit(f"tables that are only on the page, or not on it: {odd}")
    return _SECTION.sub(lambda match: f"{match[1]}{made[match['name']]}{match[3]}", text)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the tables of the pages from results.")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if out of date"
    )
    check = parser.parse_args().check
    tables = described()
    for name in dict.fromkeys(table.page for table in tables):
        before = (ROOT / name).read_text(encoding="utf-8")
        after = filled(before, [table for table in tables if table.page == name])
        if not check:
            (ROOT / name).write_text(after, encoding="utf-8")
        elif after != before:
            raise SystemExit(f"{name} is out of date: run ./dev python -m lab.benchmarks.tables")
    if check and (old := pictures.stale()):
        raise SystemExit(f"{old} are out of date: run ./dev python -m lab.benchmarks.pictures")


if __name__ == "__main__":
    main()
