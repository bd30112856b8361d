"""The sections of docs/head-to-head.md, from its stored result: tables, and sentences whose numbers
are computed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.markdown import Result, Table, Text, slug

OURS = ("NestedMargin", "SharpMargin", "auto")
"""What this library would have you use. Their variants are ours too and are not counted among the
others.
"""

UNIVERSES = {
    "open": "the universe is open",
    "natural": "the items are known in advance",
    "10^12": "the items are among 10^12 known ones",
}

MEASURES = {
    "loss": "Records lost, no answer counted as the loss of the best count",
    "none": "Probability of no answer, in %",
    "regret": "Records by which the item released falls short of the best, given that one is "
    "released",
}

TIE = 1e-6
"""Losses that differ by less than this part of the best count are equal: a mechanism's clip alone
moves 2^-24.
"""


@dataclass(frozen=True, eq=False)
class Cell:
    """One profile at one price in one universe: what the best of the others loses, and what each of
    ours does.
    """

    universe: str
    profile: str
    best: int
    price: tuple[str, str]
    rival: str
    least: float
    ours: Mapping[str, float]

    def behind(self, name: str) -> float:
        """By how many records one of ours loses more than the best of the others; 0 where they are
        equal.
        """
        more = self.ours[name] - self.least
        return more if more > TIE * self.best else 0.0


def cells_of(result: Result) -> Iterator[Cell]:
    """Whoever knows the universe may still use what need not know it, so the open rows compete in
    every universe.
    """
    prices = [(epsilon, delta) for epsilon, delta in result["settings"]["prices"]]
    for universe in UNIVERSES:
        for profile in result["profiles"]:
            rows = [
                row
                for row in result["rows"]
                if row["profile"] == profile["name"] and row["universe"] in ("open", universe)
            ]
            others = [row for row in rows if not row["mechanism"].startswith(OURS)]
            mine = {row["mechanism"]: row for row in rows if row["mechanism"] in OURS}
            mine["auto"] = next(
                row for row in rows if row["mechanism"] == "auto" and row["universe"] == universe
            )
            for place, price in enumerate(prices):
                rival = min(others, key=lambda row: row["cells"][place]["loss"])
                yield Cell(
                    universe,
                    profile["name"],
                    profile["best"],
                    price,
                    rival["mechanism"],
                    rival["cells"][place]["loss"],
                    {name: row["cells"][place]["loss"] for name, row in mine.items()},
                )


def head_to_head_sections(result: Result) -> list[Table | Text]:
    cells = list(cells_of(result))
    sections: list[Table | Text] = [
        _summary(cells),
        _profiles(result),
        _counts(cells),
        _told(result),
        *_losses(cells),
    ]
    sections += _measured(result)
    sections += [_lists(result), _list_losses(result), _list_leads(result)]
    return sections


def _summary(cells: list[Cell]) -> Text:
    open_cells, known = (
        [cell for cell in cells if cell.universe == universe] for universe in ("open", "natural")
    )
    kept = [cell for cell in open_cells if not cell.behind("NestedMargin")]
    beaten = Counter(cell.rival for cell in open_cells if cell.behind("NestedMargin")).most_common()
    winners = ", ".join(f"{name} ({number})" for name, number in beaten)
    sharp = [cell for cell in open_cells if cell.behind("SharpMargin")]
    plain = [cell for cell in known if cell.behind("NestedMargin")]
    chosen = [cell for cell in known if cell.behind("auto")]
    worst = max(cells, key=lambda cell: cell.behind("auto") / cell.best)
    text = (
        f"In an open universe `NestedMargin`, which `auto` picks there, is level with the best of "
        f"the others or ahead "
        f"in {len(kept)} of {len(open_cells)} cells (profile × price), and the rest go to "
        f"{winners}; `SharpMargin` is "
        f"behind in {len(sharp)}. "
        f"Where the items are known in advance `NestedMargin` is behind in {len(plain)} of "
        f"{len(known)} cells, and "
        f"what `auto` picks there in {len(chosen)}. "
        f"The worst that `auto` does anywhere is {_records(worst.behind('auto'))} records, "
        f"{100 * worst.behind('auto') / worst.best:.0f} % of the best count, behind {worst.rival} "
        f"({worst.profile}, ε = {worst.price[0]}, δ = {worst.price[1]}, "
        f"{UNIVERSES[worst.universe]})."
    )
    return Text("summary", text)


def _profiles(result: Result) -> Table:
    rows = [
        [profile["name"], f"{profile['best']:,}", f"{profile['items']:,}", f"{profile['growth']:,}"]
        for profile in result["profiles"]
    ]
    return Table("profiles", "The profiles", ["", "best count", "items", "κ"], rows)


def _counts(cells: list[Cell]) -> Table:
    rows = []
    for universe, meaning in UNIVERSES.items():
        for name in OURS:
            parts = {
                cell: cell.behind(name) / cell.best for cell in cells if cell.universe == universe
            }
            worst = max(parts, key=parts.__getitem__)
            where = f"{worst.profile}, ε = {worst.price[0]}, δ = {worst.price[1]}, to {worst.rival}"
            lost = sum(part > 0 for part in parts.values())
            most = (
                f"{_records(worst.behind(name))} records, {100 * parts[worst]:.0f} % of the "
                f"best count ({where})"
            )
            rows.append([f"{name}, {meaning}", str(len(parts)), str(lost), most if lost else "–"])
    head = ["", "cells", "lost", "at worst"]
    return Table(
        "losses-count",
        "In how many cells ours loses more than the best of the others",
        head,
        rows,
        prose=True,
    )


def _told(result: Result) -> Text:
    """What knowing κ is worth, where counts are small."""
    small = {
        profile["name"]: profile["best"] for profile in result["profiles"] if profile["best"] < 1000
    }
    level = total = 0
    for name, best in small.items():
        rows = {
            row["mechanism"]: [cell["loss"] for cell in row["cells"]]
            for row in result["rows"]
            if row["profile"] == name and row["universe"] == "open"
        }
        for mine, *losses in zip(rows["NestedMargin, told κ"], *rows.values(), strict=True):
            total += 1
            level += mine - min(losses) <= TIE * best
    return Text(
        "told",
        f"Where counts are small it helps most to know κ: on the {len(small)} profiles whose best "
        f"count is below 1000, "
        f"the `NestedMargin` that is told κ is level with the best of all open rows or ahead in "
        f"{level} of {total} "
        f"cells. `auto` is not told it.",
    )


def _losses(cells: list[Cell]) -> Iterator[Table]:
    for universe, meaning in UNIVERSES.items():
        rows = [
            [
                cell.profile,
                *cell.price,
                f"{cell.rival}: {_records(cell.least)}",
                *(_more(cell.behind(name)) for name in OURS),
            ]
            for cell in cells
            if cell.universe == universe and any(cell.behind(name) for name in OURS)
        ]
        head = ["profile", "ε", "δ", "the best of the others loses", *OURS]
        yield Table(
            f"losses-{slug(universe)}",
            f"Where {meaning}: by how many records ours loses more",
            head,
            rows,
        )


def _measured(result: Result) -> Iterator[Table]:
    prices = [(epsilon, delta) for epsilon, delta in result["settings"]["prices"]]
    groups = list(dict.fromkeys(profile["group"] for profile in result["profiles"]))
    for delta in dict.fromkeys(delta for _, delta in prices):
        places = [place for place, price in enumerate(prices) if price[1] == delta]
        epsilons = ", ".join(prices[place][0] for place in places)
        for group in groups:
            names = [profile["name"] for profile in result["profiles"] if profile["group"] == group]
            rows = {
                (row["mechanism"], row["universe"], row["profile"]): row["cells"]
                for row in result["rows"]
            }
            lines = list(dict.fromkeys((name, universe) for name, universe, _ in rows))
            for measure, meaning in MEASURES.items():
                table = []
                for name, universe in lines:
                    cells = [
                        [rows[name, universe, profile][place] for place in places]
                        for profile in names
                    ]
                    if measure == "none" and not any(
                        cell["none"] for triple in cells for cell in triple
                    ):
                        continue  # one that always answers
                    table.append(
                        [_who(name, universe), *(_triple(triple, measure) for triple in cells)]
                    )
                title = f"{meaning}: ε = {epsilons}; δ = {delta}"
                head = ["", *(name.removeprefix(f"{group}, ") for name in names)]
                yield Table(f"{slug(group)}-{measure}-{slug(delta)}", title, head, table)


def _triple(cells: list[Mapping[str, float | None]], measure: str) -> str:
    factor = 100 if measure == "none" else 1
    return " / ".join(
        "–" if (value := cell[measure]) is None else _records(factor * value) for cell in cells
    )


def _lists(result: Result) -> Table:
    settings = result["settings"]
    found = {(row["mechanism"], row["universe"], row["profile"]): row for row in result["lists"]}
    names = list(dict.fromkeys(row["profile"] for row in result["lists"]))
    rows = [
        [_who(name, universe), *(_listed(found[name, universe, profile]) for profile in names)]
        for name, universe in dict.fromkeys((name, universe) for name, universe, _ in found)
    ]
    title = (
        f"How many of the best {settings['k']} are released (± its standard error), and how often "
        f"all of them: "
        f"ε = {settings['listed at'][0]}, δ = {settings['listed at'][1]}, {settings['lists']} "
        f"lists each"
    )
    return Table("lists", title, ["", *names], rows)


def _listed(row: Mapping[str, Any]) -> str:
    return f"{row['found']:.2f} ± {row['error']:.2f}, {100 * row['whole']:.0f} %"


def _list_losses(result: Result) -> Table:
    rows = []
    for universe, meaning in UNIVERSES.items():
        for profile in dict.fromkeys(row["profile"] for row in result["lists"]):
            here = [
                row
                for row in result["lists"]
                if row["profile"] == profile and row["universe"] in ("open", universe)
            ]
            mine = next(row for row in here if row["mechanism"] == "SharpMargin")
            rival = max(
                (row for row in here if row is not mine), key=lambda row: float(row["found"])
            )
            if rival["found"] - mine["found"] > 2 * math.hypot(rival["error"], mine["error"]):
                cells = [rival["mechanism"], f"{rival['found']:.2f}", f"{mine['found']:.2f}"]
                rows.append([f"{profile}, {meaning}", *cells])
    title = (
        "Where SharpMargin finds fewer of the best than another, by more than two standard errors"
    )
    return Table(
        "list-losses", title, ["", "the best of the others", "finds", "SharpMargin finds"], rows
    )


def _list_leads(result: Result) -> Table:
    leads = {(row["mechanism"], row["universe"], row["k"]): row["lead"] for row in result["leads"]}
    sizes = list(dict.fromkeys(row["k"] for row in result["leads"]))
    rows = [
        [_who(name, universe, "10^5 known items"), *(str(leads[name, universe, k]) for k in sizes)]
        for name, universe in dict.fromkeys(
            (row["mechanism"], row["universe"]) for row in result["leads"]
        )
    ]
    title = (
        "Records by which the k best must lead all others, for all of them to be released "
        "with probability 0.95"
    )
    return Table("list-leads", title, ["", *(f"k = {k}" for k in sizes)], rows)


def _who(name: str, universe: str, natural: str = "known items") -> str:
    return (
        f"{name} ({ {'open': 'open', 'natural': natural, '10^12': '10^12 known items'}[universe] })"
    )


def _more(number: float) -> str:
    """By how much more is lost; one that is not behind has a dash."""
    return "–" if not number else "+<0.001" if number < 0.0005 else f"+{_records(number)}"


def _records(number: float) -> str:
    """Three significant figures without an exponent; nothing below a thousandth."""
    if number < 0.0005:
        return "0"
    return (
        f"{number:,.0f}"
        if number >= 100
        else f"{number:.3g}"
        if number >= 0.01
        else f"{number:.3f}"
    )
