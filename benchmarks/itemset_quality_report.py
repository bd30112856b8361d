"""The sections of docs/itemsets.md, from the stored result: tables, and sentences whose numbers are
computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from benchmarks.markdown import Result, Table, Text

OURS: Final = {
    "nested-margin": "`NestedMargin` (auto)",
    "sharp-margin": "`SharpMargin`",
    "large-margin": "`LargeMargin` (the paper's)",
    "limited-domain": "`LimitedDomain(rank=100)`",
    "permute-and-flip": "`PermuteAndFlip`, items declared",
    "exponential": "`Exponential`, items declared",
    "max-of-laplaces": "`MaxOfLaplaces`, items declared",
}
"""Mechanisms that draw one pair."""

LISTS: Final = {
    "sharp-margin": "`SharpMargin` (auto)",
    "sharp-margin-dyadic": "`SharpMargin(guards=DYADIC)`",
    "limited-domain": "`LimitedDomain(rank=1024)`",
    "limited-domain-wide": "`LimitedDomain(rank=8192)`",
    "exponential": "`Exponential`, up to 3 declared items",
    "exponential-wide": "`Exponential`, up to 5 declared items",
    "joint-exponential": "`JointExponential`, up to 3 declared items",
}
"""Mechanisms that draw a list."""

PUBLISHED: Final = {
    "blst10": "BLST10",
    "blst10-laplace": "BLST10, Laplace",
    "priv-basis": "PrivBasis",
    "smart-trunc": "SmartTrunc",
    "diff-part": "DiffPart",
    "prefix-tree": "prefix tree",
}

RIVALS: Final = ("sharp-margin", "exponential")
"""Ours in the comparison with PrivBasis: what `auto` chooses for an open universe, and for declared
items.
"""

CLOSE = 0.05
"""F1 nearer than this counts as equal: the published methods were repeated a few times only."""

AIM = 0.5
"""So many times what PrivBasis misses, at most."""


def itemset_quality_sections(result: Result) -> list[Table | Text]:
    """Of docs/itemsets.md."""
    return [
        _sets(result),
        _single(result, "chance", "Probability of releasing the most frequent pair"),
        _single(
            result, "lost", "Support lost with the pair, on average; no answer loses all of it"
        ),
        _lists(result, "any", "F1 of the k most frequent itemsets of all sizes"),
        _lists(result, "pairs", "F1 of the k most frequent pairs"),
        _ahead(result),
        _missed(result),
        _aim(result),
        _attempts(result),
        _repeats(result),
    ]


def names(result: Result) -> list[str]:
    """The sets measured."""
    return [row["set"] for row in result["sets"]]


def _sets(result: Result) -> Table:
    best = {row["set"]: row for row in result["sets"]}
    rows = [
        [
            name.replace("_", " "),
            f"{row['baskets']:,}",
            f"{row['items']:,}",
            row["delta"],
            f"{row['floor']:,}",
        ]
        for name, row in best.items()
    ]
    return Table(
        "quality-sets",
        "The sets",
        ["", "baskets, n", "items", "δ = 1/n^1.5", "floor for all sizes"],
        rows,
    )


def _single(result: Result, key: str, title: str) -> Table:
    cells = {(row["contender"], row["set"], row["epsilon"]): row[key] for row in result["best"]}
    epsilons = result["settings"]["epsilons"]
    rows = []
    for contender, label in (OURS | PUBLISHED).items():
        shown = []
        for name in names(result):
            figures = [cells[contender, name, epsilon] for epsilon in epsilons]
            shown.append(
                " / ".join(_chance(one) if key == "chance" else _records(one) for one in figures)
            )
        rows.append([label, *shown])
    head = ["", *(name.replace("_", " ") for name in names(result))]
    return Table(f"quality-{key}", f"{title}, at ε = {' / '.join(epsilons)}", head, rows)


def _lists(result: Result, sizes: str, title: str) -> Table:
    rows = [row for row in result["lists"] if row["sizes"] == sizes]
    cells = {(row["contender"], row["set"], row["k"], row["epsilon"]): row["f1"] for row in rows}
    epsilons = result["settings"]["epsilons"]
    contenders = [
        name for name in (LISTS | PUBLISHED) if any(row["contender"] == name for row in rows)
    ]
    labels = LISTS | PUBLISHED
    if sizes == "pairs":
        labels |= {
            name: labels[name].replace("up to 3 declared items", "items declared") for name in LISTS
        }
    body = []
    for k in result["settings"]["lengths"]:
        for contender in contenders:
            shown = [
                " / ".join(_chance(cells[contender, name, k, epsilon]) for epsilon in epsilons)
                for name in names(result)
            ]
            body.append([f"k = {k}: {labels[contender]}", *shown])
    head = ["", *(name.replace("_", " ") for name in names(result))]
    return Table(f"quality-{sizes}", f"{title}, at ε = {' / '.join(epsilons)}", head, body)


def ahead(result: Result, contenders: Sequence[str]) -> tuple[int, dict[str, list[str]]]:
    """How many cells of the lists there are, and those where a published method has a higher F1
    than each of ours by more than CLOSE: by that method."""
    cells: dict[tuple[str, str, int, str], dict[str, float]] = {}
    for row in result["lists"]:
        where = row["set"], row["sizes"], row["k"], row["epsilon"]
        cells.setdefault(where, {})[row["contender"]] = row["f1"]
    found: dict[str, list[str]] = {}
    for (name, sizes, k, epsilon), figures in cells.items():
        theirs = max((figures[who], who) for who in PUBLISHED if who in figures)
        if theirs[0] > max(figures[who] for who in contenders) + CLOSE:
            kind = "pairs" if sizes == "pairs" else "sets"
            found.setdefault(theirs[1], []).append(
                f"{name.replace('_', ' ')} {k} {kind} at {epsilon}"
            )
    return len(cells), found


def _ahead(result: Result) -> Text:
    told_nothing, told_items = RIVALS
    number, open_only = ahead(result, [told_nothing])
    _, both = ahead(result, RIVALS)
    parts = [f"{PUBLISHED[who]} ({'; '.join(where)})" for who, where in both.items()]
    return Text(
        "quality-ahead",
        f"**Where others win.** There are {number} cells in these two tables. A published method, "
        f"told all the items, "
        f"has an F1 more than {CLOSE} above that of {LISTS[told_nothing]}, which is told nothing, "
        f"in "
        f"{sum(map(len, open_only.values()))} of them; above that of both this and "
        f"{LISTS[told_items].split(',')[0]}, "
        f"told the items as well, in {sum(map(len, both.values()))}: {', '.join(parts) or 'none'}.",
    )


def missed(result: Result) -> dict[tuple[str, int], dict[str, dict[str, float]]]:
    """What is missed, by set and k, then contender, then epsilon."""
    found: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    for row in result["missed"]:
        found.setdefault((row["set"], row["k"]), {}).setdefault(row["contender"], {})[
            row["epsilon"]
        ] = row["missed"]
    return found


def _missed(result: Result) -> Table:
    tables = missed(result)
    epsilons = list(next(iter(next(iter(tables.values())).values())))
    rows = []
    for (name, k), table in tables.items():
        cells = []
        for epsilon in epsilons:
            theirs = table["priv-basis"][epsilon]
            shown = []
            for ours in (table[contender][epsilon] for contender in RIVALS):
                mark = (
                    "**" if epsilon in result["settings"]["aimed"] and ours <= AIM * theirs else ""
                )
                shown.append(f"{mark}{_part(ours)}{mark}")
            cells.append(" / ".join([*shown, _part(theirs)]))
        rows.append([f"{name.replace('_', ' ')}, {k}", *cells])
    who = " / ".join([*(LISTS[contender] for contender in RIVALS), "PrivBasis"])
    title = f"Part of the k most frequent of all sizes that is missed: {who}"
    return Table(
        "quality-missed", title, ["set, k", *(f"ε = {epsilon}" for epsilon in epsilons)], rows
    )


def reached(result: Result, contenders: Sequence[str], share: float) -> list[str]:
    """Where one of the contenders misses at most so many times what PrivBasis misses, among the
    cells aimed at.
    """
    return [
        _place(name, k, epsilon)
        for (name, k), table in missed(result).items()
        for epsilon in result["settings"]["aimed"]
        if min(table[contender][epsilon] for contender in contenders)
        <= share * table["priv-basis"][epsilon]
    ]


def _place(name: str, k: int, epsilon: str) -> str:
    return f"{name.replace('_', ' ')} {k} at {epsilon}"


def _aim(result: Result) -> Text:
    aimed = result["settings"]["aimed"]
    told_nothing, told_items = RIVALS
    cells = [_place(name, k, epsilon) for name, k in missed(result) for epsilon in aimed]
    worse = [cell for cell in cells if cell not in reached(result, RIVALS, 1)]
    one, other, either, hindsight = (
        len(reached(result, contenders, AIM))
        for contenders in ([told_nothing], [told_items], RIVALS, tuple(LISTS))
    )
    return Text(
        "quality-aim",
        f"**The aim** was to miss at most half of what PrivBasis misses, in every row at ε = "
        f"{_listed(aimed)}: "
        f"{len(cells)} cells, printed in bold where it is met. {LISTS[told_nothing]}, told "
        f"nothing, meets it in {one}; "
        f"{LISTS[told_items]}, which like PrivBasis is told the items, in {other}; one or the "
        f"other in {either}; and "
        f"in {hindsight} one of all that was tried, picked with hindsight. PrivBasis misses less "
        f"than both of ours in "
        f"{_listed(worse) if worse else 'no cell'}.",
    )


def _attempts(result: Result) -> Table:
    aimed = result["settings"]["aimed"]
    rows = [
        [
            f"{name.replace('_', ' ')}, {k}",
            *(
                " / ".join(_part(table[contender][epsilon]) for epsilon in aimed)
                for contender in (*LISTS, "priv-basis")
            ),
        ]
        for (name, k), table in missed(result).items()
    ]
    title = f"What else was tried: part that is missed, at ε = {' / '.join(aimed)}"
    return Table("quality-attempts", title, ["set, k", *LISTS.values(), "PrivBasis"], rows)


def _repeats(result: Result) -> Text:
    run = result["run"]
    ours = _several(
        {str(row["repeats"]) for row in result["lists"] if row["contender"] not in PUBLISHED}
    )
    return Text(
        "quality-run",
        f"Made by `{run['command']}` (privmax {run['version']}). Lists of ours are drawn {ours} "
        f"times in each cell. "
        f"Published methods without a law are drawn, for the most frequent pair, "
        f"{_often(result, 'best')}; for F1, "
        f"{_often(result, 'lists')}; PrivBasis for what is missed, {_often(result, 'missed')}. A "
        f"figure from so few "
        f"repeats can be off by several hundredths, a probability of a single pair by much more.",
    )


def _often(result: Result, part: str) -> str:
    """How often published methods were drawn, and on which sets."""
    found: dict[int, list[str]] = {}
    for row in result[part]:
        if row["contender"] in PUBLISHED and row["repeats"] is not None:
            where = found.setdefault(row["repeats"], [])
            where += [] if row["set"] in where else [row["set"]]
    parts = [
        f"{_times(number)} on {_listed(where)}"
        for number, where in sorted(found.items(), reverse=True)
    ]
    return " and ".join(parts).replace("_", " ")


def _chance(value: float) -> str:
    """Two figures; 1 only where it is 1 but for a thousandth."""
    if value >= 0.9995:
        return "1"
    if value >= 0.995:
        return ".99"
    return _part(value)


def _part(value: float) -> str:
    if value >= 0.995:
        return "1"
    return (
        f"{value:.2f}".removeprefix("0") if value >= 0.005 else ("0" if value < 0.00005 else "<.01")
    )


def _records(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _several(values: Iterable[str]) -> str:
    return _listed(sorted(values, key=float))


def _listed(words: Sequence[str]) -> str:
    if not words:
        return "none"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
