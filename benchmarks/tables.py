"""The stored results as tables: printed by the benchmarks, and written into the pages between their
markers.

    python -m benchmarks.tables            rewrite the sections of all PAGES from results/*.json
    python -m benchmarks.tables --check    exit with 1 if they, or a picture, are out of date

A section of a page begins with a line `<!-- table: NAME -->` and ends with `<!-- end -->`.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.head_to_head_report import head_to_head_sections
from benchmarks.itemset_quality_report import itemset_quality_sections
from benchmarks.learning_report import accuracy_sections
from benchmarks.markdown import Result, Table, Text, slug
from benchmarks.picture import in_step
from benchmarks.sharper_report import sharper_sections

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"

_SECTION = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def selection_tables(result: Result) -> list[Table]:
    limit = result["settings"]["limit"]
    paired = any("gumbel" in row for row in result["selections"])
    pairing = (
        "timed in turn with privmax, in one process"
        if paired
        else "timed in cells of its own only, not in turn"
    )
    tables = [_run(result, "selection-run", ["Gumbel aim", pairing])]
    cells = {(row["contender"], row["scores"], row["K"]): row for row in result["selections"]}
    sizes = sorted({row["K"] for row in result["selections"]})
    contenders = list(dict.fromkeys(row["contender"] for row in result["selections"]))
    head = ["", *[f"K = {_power(size)}" for size in sizes]]
    for shape, meaning in result["settings"]["scores"].items():
        rows = [
            [_label(who), *[_time_cell(cells.get((who, shape, size)), limit) for size in sizes]]
            for who in contenders
        ]
        tables.append(
            Table(f"selection-{shape}", f"One selection, {shape} scores ({meaning})", head, rows)
        )
    shapes = list(result["settings"]["scores"])
    weighed = [size for size in sizes if size >= 10**6]
    tables.append(
        Table(
            "selection-memory",
            "Copies of the scores in memory at the peak, the caller's own included",
            ["", *[f"{shape}, {_power(size)}" for size in weighed for shape in shapes]],
            [
                [
                    _label(who),
                    *[
                        _copies_cell(cells.get((who, shape, size)))
                        for size in weighed
                        for shape in shapes
                    ],
                ]
                for who in contenders
            ],
        )
    )
    converted = [
        [who, *[_duration(_converted(cells, who, size)) for size in sizes]]
        for who in contenders
        if any((_converted(cells, who, size) or 0) > 1e-4 for size in sizes)
    ]
    tables.append(
        Table(
            "selection-conversion",
            "Array to list, not in the times above (flat scores)",
            head,
            converted,
        )
    )
    tables.append(_profile_table(result))
    tables.append(_aims(result, "selection-aims"))
    return tables


def noise_tables(result: Result) -> list[Table]:
    tables = [_run(result, "noise-run")]
    laplace = {(row["contender"], row["scale"], row["size"]): row for row in result["laplace"]}
    scales = list(dict.fromkeys(row["scale"] for row in result["laplace"]))
    lines = list(dict.fromkeys((row["contender"], row["size"]) for row in result["laplace"]))
    limit = result["settings"]["limit"]
    head = ["", *[f"scale {scale}" for scale in scales]]
    rows = [
        [
            f"{_label(who)}, {_power(size)} draws",
            *[_time_cell(laplace.get((who, scale, size)), limit) for scale in scales],
        ]
        for who, size in lines
    ]
    tables.append(
        Table("noise-laplace", "Discrete Laplace noise on a vector of integers", head, rows)
    )
    tables.append(
        Table(
            "noise-conversion",
            "Part of OpenDP's time that is conversion (the same vector through its identity "
            "transformation)",
            ["", "in and out"],
            [
                [f"{row['contender']}, {_power(row['size'])} integers", _time_cell(row, limit)]
                for row in result["conversion"]
            ],
        )
    )
    sizes = sorted({row["size"] for row in result["bernoulli"]})
    coins = {(row["contender"], row["size"]): row for row in result["bernoulli"]}
    tables.append(
        Table(
            "noise-bernoulli",
            "Coins of bias e^(−1/2)",
            ["", *[f"{_power(size)} draws" for size in sizes]],
            [
                [_label(who), *[_time_cell(coins.get((who, size)), limit) for size in sizes]]
                for who in dict.fromkeys(row["contender"] for row in result["bernoulli"])
            ],
        )
    )
    tables.append(
        Table(
            "noise-single",
            "One draw at a time",
            ["", "per draw"],
            [
                [f"{row['contender']} {row['draw']}", _duration(row["median"])]
                for row in result["single"]
            ],
        )
    )
    tables.append(_aims(result, "noise-aims"))
    return tables


def engine_tables(result: Result) -> list[Table]:
    tables = [_engine_runs(result), _aims(result, "engine-aims")]
    for engine in dict.fromkeys(row["engine"] for row in result["times"]):
        rows = [row for row in result["times"] if row["engine"] == engine]
        ours = next(row for row in rows if row["contender"] == "privmax.select")
        title = (
            f"{_ENGINES[engine]}: {_round(rows[0]['rows'])} rows, {_round(rows[0]['items'])} items"
        )
        head = [
            "",
            "time",
            "least and most",
            "processor time",
            "calls",
            "privmax takes, by either clock",
            "memory grows by",
        ]
        cells = [
            [
                row["contender"],
                _duration(row["wall"]),
                f"{_duration(row['least'])} – {_duration(row['most'])}",
                _duration(row["processor"]),
                str(row["repeats"]),
                ""
                if row is ours
                else f"{_figures(ours['wall'] / row['wall'])}×, "
                f"{_figures(ours['processor'] / row['processor'])}×",
                _bytes(row["growth"]),
            ]
            for row in rows
        ]
        tables.append(Table(f"engine-{engine}", title, head, cells))
    tables.append(_engine_memory(result))
    tables.append(_engine_peers(result))
    return tables


def itemset_tables(result: Result) -> list[Table]:
    limit = result["settings"]["limit"]
    runs = [
        [
            run["set"],
            f"{run['date']}; load {run['load']}, at the end {run['load at the end']}; source "
            f"{run['source']}",
        ]
        for run in result["runs"]
    ]
    tables = [_run(result, "itemset-run", *runs), _aims(result, "itemset-aims")]
    cells = {(row["job"], row["set"], row["contender"]): row for row in result["rows"]}
    for job in dict.fromkeys(row["job"] for row in result["rows"]):
        of_job = [row for row in result["rows"] if row["job"] == job]
        sets = list(dict.fromkeys(row["set"] for row in of_job))
        rows = [
            [who, *[_time_cell(cells.get((job, name, who)), limit) for name in sets]]
            for who in dict.fromkeys(row["contender"] for row in of_job)
        ]
        if job == "top 100, released":
            numbers = [
                ", ".join(map(str, cells[job, name, "privmax"].get("released", [])))
                for name in sets
            ]
            rows.append(["itemsets released, call by call", *numbers])
        tables.append(Table(f"itemset-{slug(job)}", _ITEMSET_JOBS[job], ["", *sets], rows))
    sets = list(dict.fromkeys(row["set"] for row in result["rows"]))
    contenders = list(dict.fromkeys(row["contender"] for row in result["rows"]))
    for name, key, title in (
        ("memory", "growth", "By how much memory grows at its highest, the most of any job"),
        ("peak", "peak", "Memory at its highest with all that was imported, the most of any job"),
    ):
        rows = [
            [who, *[_bytes(_most(result, who, one, key)) for one in sets]] for who in contenders
        ]
        tables.append(Table(f"itemset-{name}", title, ["", *sets], rows))
    ready = [
        [
            who,
            _duration(
                min(
                    row["start"]
                    for row in result["rows"]
                    if row["contender"] == who and "start" in row
                )
            ),
        ]
        for who in contenders
        if any("start" in row for row in result["rows"] if row["contender"] == who)
    ]
    title = (
        "Not in the times above: importing, and mining a file of a thousand baskets (the "
        "least of all starts)"
    )
    tables.append(Table("itemset-start", title, ["", "time"], ready))
    return tables


_ITEMSET_JOBS = {
    "best pair": "Best pair (privmax: released)",
    "best triple": "Best triple (privmax: released)",
    "pairs within 500": "All pairs within 500 of the best, in order",
    "top 100": "The 100 most frequent sets of two to four items",
    "top 100, released": "The same released, at a public floor of one basket in 200",
    "10^5 triples": "The 10^5 most frequent triples, in order",
}


def _most(result: Result, contender: str, name: str, key: str) -> int | None:
    """The most of any job that was finished."""
    found = [
        row[key]
        for row in result["rows"]
        if (row["contender"], row["set"]) == (contender, name) and key in row
    ]
    return max(found, default=None)


def learning_sections(result: Result) -> list[Table | Text]:
    return [*accuracy_sections(result), *_learning_times(result)]


def _learning_times(result: Result) -> list[Table]:
    limit = result["settings"]["limit"]
    titles = {group["group"]: group["title"].split(",")[0] for group in result["groups"]}
    head = [
        "",
        "examples × features",
        "class",
        "hypotheses",
        "processor time",
        "wall clock",
        "memory grows by",
    ]
    fits = [
        [
            titles.get(row["group"], "one feature of 100 tells"),
            f"{row['examples']:,} × {row['features']}",
            f"`{row['class']}`",
            f"{row['size']:,}",
            _time_cell(row, limit),
            _duration(row.get("wall")),
            _bytes(row["growth"]),
        ]
        for row in result["time"]
    ]
    searches = [
        [
            row["search"],
            f"{row['examples']:,} × {row['features']}",
            f"up to {row['literals']}",
            f"{row['size']:,}",
            _time_cell(row, limit),
            _duration(row.get("wall")),
            _bytes(row["growth"]),
            f"{row['load']:.2f}",
        ]
        for row in result["conjunctions"]
    ]
    wide = ["", "examples × features", "tests", *head[3:], "load before"]
    runs = [
        [
            f"`{run['command']} --part {run['part']}`",
            f"{run['date']}; load {run['load']}; source {run['source']}",
        ]
        for run in result["runs"]
    ]
    run = result["run"]
    rows = [
        ["machine", f"{run['cpu']}, {run['cores']} cores, {run['system']}"],
        ["versions", f"Python {run['python']}, {_versions(run['versions'])}"],
        ["versions beside diffprivlib", _versions(result["versions of peers"])],
        *runs,
    ]
    return [
        Table("learning-time", "One fit of `PrivateERM` at ε = 1", head, fits),
        Table("learning-search", "One fit over conjunctions at ε = 1", wide, searches),
        _aims(result, "learning-aims"),
        Table("learning-runs", "These runs", ["", ""], rows, prose=True),
    ]


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(
        f"{library} {version}"
        for library, version in versions.items()
        if version != "not installed"
    )


def gpu_sections(result: Result) -> list[Table | Text]:
    """Half-spaces on a GPU; of a result that is not there, that it is not."""
    if not result:
        return [
            Text(
                "learning-gpu",
                "It has not been measured on a GPU yet: `python -m benchmarks.linear_gpu`.",
            )
        ]
    kinds = [row["kind"] for row in result["rates"] if "rate" in row]
    best = result.get("best")
    paths = [row for row in result["paths"] if row == best or not row["path"].startswith("kernel")]
    rows = [
        [f"the card's own products, {row['kind']}", *_gpu_cells(row, kinds)]
        for row in result["rates"]
    ]
    rows += [[_gpu_path(row), *_gpu_cells(row, kinds)] for row in paths]
    rows += [[row["step"], *_gpu_cells(row, kinds)] for row in result["steps"]]
    problem = " × ".join(
        f"{_round(size) if size >= 1000 else size} {key}"
        for key in ("directions", "examples", "features")
        for size in [result["problem"][key]]
    )
    run = result["run"]
    title = f"{problem} on one {run['gpu']} ({_versions(run['libraries'])}): `{run['command']}`"
    head = ["", "time", "10^12 operations a second", *(f"of {kind}" for kind in kinds), "counts"]
    return [Table("learning-gpu", title, head, rows)]


def _gpu_path(row: Mapping[str, Any]) -> str:
    name = "fused kernel" if row["path"].startswith("kernel") else f"array API, {row['path']}"
    return (
        f"{name}, {row['directions']:,} × {row['examples']:,} only" if "directions" in row else name
    )


def _gpu_cells(row: Mapping[str, Any], kinds: Sequence[str]) -> list[str]:
    if "error" in row:
        return ["failed", *[""] * (len(kinds) + 2)]
    rate = f"{_figures(row['rate'] / 1e12)}" if "rate" in row else ""
    shares = [
        f"{_figures(100 * row['of'][kind])} %" if kind in row.get("of", {}) else ""
        for kind in kinds
    ]
    right = {True: "right", False: "WRONG", None: ""}[row.get("right")]
    return [_duration(row.get("seconds")), rate, *shares, right]


def ledger_fault_tables(result: Result) -> list[Table]:
    rows = [
        [
            row["fault"],
            row["where"],
            *[_counted(row[key]) for key in ("times", "charges", "answers")],
            "nothing"
            if not row["lost"]
            else f"{len(row['lost'])}: {', '.join(sorted(set(row['lost'])))}",
        ]
        for row in result["faults"]
    ]
    head = ["fault", "where", "times", "charges", "answers seen outside", "lost"]
    return [Table("ledger-faults", "Faults made to happen, and what was lost", head, rows)]


def ledger_tables(result: Result) -> list[Table]:
    tables = [_ledger_runs(result)]
    sync = statistics.median(result["fsync"]) if result["fsync"] else None
    floor = f"one write put on the disk (fsync) took {_duration(sync)}"
    rows = [
        [
            f"{row['where']}, {row.get('how', 'one at a time')}, {_many(row['processes'])}",
            _figures(row["rate"]),
            f"{_figures(row['least'])} – {_figures(row['most'])}",
            f"{_figures(row['rate'] * (sync or 0))}×",
        ]
        for row in result["rates"]
    ]
    head = [
        "",
        "charges per second",
        "least and most",
        "of what the disk can do, one write a charge",
    ]
    tables.append(
        Table("ledger-rates", f"Charges per second by all processes together; {floor}", head, rows)
    )
    plain = {
        row["candidates"]: row["wall"] for row in result["selections"] if row["where"] == "none"
    }
    rows = [
        [
            f"{_power(row['candidates'])} candidates, "
            f"{row['where'] if row['where'] != 'none' else 'no ledger'}",
            _duration(row["wall"]),
            f"{_figures(row['wall'] / plain[row['candidates']])}×",
            ""
            if row["where"] == "none"
            else f"{_figures((row['wall'] - plain[row['candidates']]) / (sync or 1))}",
        ]
        for row in result["selections"]
    ]
    head = ["", "time", "against no ledger", "what the ledger adds, in writes put on the disk"]
    tables.append(Table("ledger-selections", f"One selection; {floor}", head, rows))
    rows = [
        [f"{row['rule']}, {_counted(row['events'])} charges before", _duration(row["wall"])]
        for row in result["history"]
    ]
    tables.append(Table("ledger-history", "One charge on SQLite after many", ["", "time"], rows))
    tables += _ledger_load(result)
    tables.append(_aims(result, "ledger-aims"))
    seen = [
        [
            f"{row['fault']}, {row['where']}",
            "; ".join(f"{what}: {_counted(times)}" for what, times in row["seen"].items()),
        ]
        for row in result["faults"]
        if row["seen"]
    ]
    title = "What was seen of the faults (of kills, at every second one)"
    tables.append(Table("ledger-seen", title, ["", ""], seen, prose=True))
    return tables


def _ledger_load(result: Result) -> list[Table]:
    tables = []
    for row in result.get("load", []):
        crashes = f", of the server {row['crashes']}" if row["crashes"] else ""
        lost = "; ".join(row["lost"]) or "nothing"
        title = (
            f"{_power(row['charges'])} charges and answers on {row['where']} in "
            f"{row['seconds'] / 60:.0f} minutes; kills of workers {row['kills']}{crashes}; lost: "
            f"{lost}; read and compared in {row['verified']:.0f} s"
        )
        head = ["minutes", "answers (about)", "largest worker, MB", "events on disk, MB"]
        server = row["where"] == "PostgreSQL"
        rows = [
            [
                f"{look['seconds'] / 60:.1f}",
                f"{look['told']:,.0f}".replace(",", " "),
                f"{look['memory']:.0f}",
                f"{look['disk']:.0f}",
                *([f"{look['server']:.0f}"] if server else []),
            ]
            for look in row["over_time"]
        ]
        name = f"ledger-load-{row['where'].lower()}"
        tables.append(
            Table(name, title, [*head, *(["largest session, MB"] if server else [])], rows)
        )
    return tables


def _ledger_runs(result: Result) -> Table:
    """One row a part: they are made by themselves."""
    rows = [
        [
            f"`{run['command']}`",
            f"{run['date']}; {run['cpu']}, {run['cores']} cores, {run['system']}, {run['disk']}; "
            f"load {run['load']} at "
            f"the start; Python {run['python']}, "
            + ", ".join(f"{library} {version}" for library, version in run["versions"].items())
            + f"; privmax source {run['source']}",
        ]
        for run in result["runs"]
    ]
    return Table("ledger-runs", "These runs", ["", ""], rows, prose=True)


def _many(processes: int) -> str:
    return f"{processes} process{'es' * (processes > 1)}"


def _counted(number: int) -> str:
    """A whole number, in groups of three figures; 0 is left out."""
    return f"{number:,}".replace(",", " ") if number else ""


def start_tables(result: Result) -> list[Table | Text]:
    if not result:
        return [Text("start-run", "Not measured yet."), Text("start-times", "")]
    limit = f"{result['settings']['limit']:g} s"
    head = [
        "",
        "time",
        "least and most",
        "processor time",
        "against Python",
        "against click",
        f"under {limit}",
    ]
    rows = [
        [
            f"`{row['start']}`",
            _duration(row["wall"]),
            f"{_duration(row['least'])} – {_duration(row['most'])}",
            _duration(row["processor"]),
            f"{_figures(row['python'])}×",
            f"{_figures(row['click'])}×",
            {True: "met", False: "not met", None: ""}[row["met"]],
        ]
        for row in result["starts"]
    ]
    title = f"One start, median of {result['settings']['rounds']}"
    return [_run(result, "start-run"), Table("start-times", title, head, rows)]


Sections = Callable[[Result], Sequence[Table | Text]]

LATER = ("linear_gpu",)
"""Results that need a machine of their own, or a quiet one: their sections say so where they are
missing.
"""

PAGES: dict[Path, dict[str, Sections]] = {
    HERE / "README.md": {
        "noise": noise_tables,
        "select": selection_tables,
        "engines": engine_tables,
        "itemsets": itemset_tables,
        "ledger": ledger_tables,
        "start": start_tables,
    },
    DOCS / "head-to-head.md": {"head-to-head": head_to_head_sections},
    DOCS / "sharper.md": {"sharper": sharper_sections},
    DOCS / "itemsets.md": {"itemset_quality": itemset_quality_sections},
    DOCS / "ledger.md": {"ledger": ledger_fault_tables},
    DOCS / "learning.md": {"learning": learning_sections, "linear_gpu": gpu_sections},
}
"""Which results each page shows."""


def print_tables(sections: Iterable[Table | Text]) -> None:
    """The same on a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Printed

    console = Console(width=None if sys.stdout.isatty() else 160)
    for section in sections:
        if isinstance(section, Text):
            console.print(section.text, markup=False)
            continue
        printed = Printed(
            title=section.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
        )
        for index, name in enumerate(section.head):
            printed.add_column(
                name, justify="right" if index and not section.prose else "left", overflow="fold"
            )
        for row in section.rows:
            printed.add_row(*row)
        console.print(printed)


def filled(text: str, sections: Mapping[str, Table | Text]) -> str:
    """A page's text with every section written anew. A marker without a section, or the reverse, is
    an error.
    """
    marked = [match["name"] for match in _SECTION.finditer(text)]
    if sorted(marked) != sorted(sections):
        raise SystemExit(
            f"the page has the sections {sorted(marked)} and the results {sorted(sections)}"
        )
    return _SECTION.sub(
        lambda match: f"{match[1]}{sections[match['name']].section()}{match[3]}", text
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Write the tables of the pages from results/*.json."
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if a table is out of date"
    )
    options = parser.parse_args()
    for page, sources in PAGES.items():
        sections: dict[str, Table | Text] = {}
        for name, present in sources.items():
            sections |= {section.name: section for section in present(_stored(name))}
        before = page.read_text(encoding="utf-8")
        after = filled(before, sections)
        if not options.check:
            page.write_text(after, encoding="utf-8")
        elif after != before:
            raise SystemExit(f"{page.name} is out of date: run python -m benchmarks.tables")
    if options.check and not in_step(_path("head-to-head")):
        raise SystemExit(
            "the picture of head-to-head.md is out of date: run python -m benchmarks.picture"
        )


def _path(name: str) -> Path:
    return HERE / "results" / f"{name}.json"


def _stored(name: str) -> Result:
    if name in LATER and not _path(name).exists():
        return {}
    result: Result = json.loads(_path(name).read_text(encoding="utf-8"))
    return result


def _run(result: Result, name: str, *more: list[str]) -> Table:
    run = result["run"]
    versions = ", ".join(f"{library} {version}" for library, version in run["versions"].items())
    rows = [
        ["command", f"`{run['command']}`"],
        ["date", run["date"]],
        [
            "machine",
            f"{run['cpu']}, {run['cores']} cores, {run['system']}; load {run['load']} at the start",
        ],
        ["versions", f"Python {run['python']}, {versions}; privmax source {run['source']}"],
        *more,
    ]
    return Table(name, "This run", ["", ""], rows, prose=True)


_ENGINES = {"duckdb": "DuckDB", "postgres": "PostgreSQL", "spark": "Spark"}


def _engine_runs(result: Result) -> Table:
    """One row a part: they are measured by themselves."""
    run = result["run"]
    versions = ", ".join(f"{library} {version}" for library, version in run["versions"].items())
    rows = [
        ["machine", f"{run['cpu']}, {run['cores']} cores, {run['memory']} memory, {run['system']}"],
        ["versions", f"Python {run['python']}, {versions}"],
        *[
            [
                f"`{run['command']}`",
                f"{run['date']}; load {run['load']} at the start; privmax source {run['source']}",
            ]
            for run in result["runs"]
        ],
    ]
    return Table("engine-runs", "These runs", ["", ""], rows, prose=True)


def _engine_memory(result: Result) -> Table:
    head = ["", "rows", "items", "process", "of it, Python's heap", "Arrow's"]
    rows = [
        [
            f"{_ENGINES[row['engine']]}, {row['contender']}",
            _round(row["rows"]),
            _round(row["items"]),
            *[_bytes(row[key]) for key in ("growth", "heap", "arrow")],
        ]
        for row in result["memory"]
    ]
    return Table(
        "engine-memory",
        "By how much the memory of the Python process grows, at its highest",
        head,
        rows,
    )


def _engine_peers(result: Result) -> Table:
    head = ["", "rows", "items", "time", "calls", "memory grows by"]
    rows = [
        [
            f"{row['contender']}, {_ENGINES[row['engine']]}",
            _round(row["rows"]),
            _round(row["items"]),
            _duration(row["wall"])
            + (" ({} + {})".format(*map(_duration, row["steps"])) if "steps" in row else ""),
            str(row["repeats"]),
            _bytes(row["growth"])
            + (" ({} + {})".format(*map(_bytes, row["growths"])) if "growths" in row else ""),
        ]
        for row in result["peers"]
    ]
    return Table("engine-peers", "The same job by others, in turn with privmax", head, rows)


def _bytes(number: int | None) -> str:
    if number is None:
        return "–"
    for unit, worth in (("GiB", 2**30), ("MiB", 2**20)):
        if number >= worth:
            return f"{_figures(number / worth)} {unit}"
    return f"{_figures(number / 2**10)} KiB"


def _profile_table(result: Result) -> Table:
    draws = {
        (row["mechanism"], row["scores"], row["K"]): row["median"] for row in result["profiles"]
    }
    sizes = sorted({row["K"] for row in result["profiles"]})
    rows = [
        [f"{name}, {shape}", *[_duration(draws[name, shape, size]) for size in sizes]]
        for name, shape in dict.fromkeys(
            (row["mechanism"], row["scores"]) for row in result["profiles"]
        )
    ]
    return Table(
        "selection-profile",
        "One draw from a profile of K candidates",
        ["", *[f"K = {_power(n)}" for n in sizes]],
        rows,
    )


def _aims(result: Result, name: str) -> Table:
    rows = []
    for aim in result["aims"]:
        bound = (
            f"at least {aim['least']:g}×"
            if aim["least"] is not None
            else f"at most {aim['most']:g}×"
        )
        verdict = {True: "met", False: "not met", None: "not measured"}[aim["met"]]
        worst = (
            "–"
            if aim["met"] is None
            else f"{_figures(aim['figure'])}×" + (f" ({aim['where']})" if aim["where"] else "")
        )
        rows.append([aim["aim"], aim["subject"], bound, worst, verdict])
    return Table(name, "Aims", ["aim", "of", "wanted", "worst found", ""], rows, prose=True)


def _label(contender: str) -> str:
    """NumPy and diffprivlib draw from floating-point approximations: every table says so."""
    return (
        f"{contender} (not exact)" if contender.startswith(("NumPy", "diffprivlib")) else contender
    )


def _time_cell(row: Mapping[str, Any] | None, limit: float) -> str:
    if row is None:
        return ""
    if "median" in row:
        stopped = f" ({row['stopped']} of {row['repeats']} stopped)" if row.get("stopped") else ""
        return _duration(row["median"]) + stopped
    if row["ending"] == "time limit":
        return (
            f"skipped (> {limit:g} s expected)" if "expected" in row else f"stopped at {limit:g} s"
        )
    return str(row["ending"])


def _copies_cell(row: Mapping[str, Any] | None) -> str:
    return "–" if row is None or row.get("copies") is None else f"{row['copies']:.2f}"


def _converted(
    cells: Mapping[tuple[str, str, int], Mapping[str, Any]], who: str, size: int
) -> float | None:
    seconds = cells.get((who, "flat", size), {}).get("convert")
    return None if seconds is None else float(seconds)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    for unit, worth in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= worth:
            return f"{_figures(seconds / worth)} {unit}"
    return f"{_figures(seconds / 1e-6)} µs"


def _figures(number: float) -> str:
    """Three significant figures without an exponent."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _round(number: int) -> str:
    """A number of one figure, as a power of ten."""
    text = str(number)
    return _power(number) if text[0] == "1" else f"{text[0]}·{_power(number)}"


def _power(number: int) -> str:
    return f"10^{len(str(number)) - 1}"


if __name__ == "__main__":
    main()
