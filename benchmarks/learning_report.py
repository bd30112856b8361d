"""The accuracies of docs/learning.md, from the stored result: tables, and sentences whose numbers
are computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from benchmarks.markdown import Result, Table, Text

REAL: Final = ("breast-cancer", "digits", "wine", "wine-rest")
PLANTED: Final = ("conjunction", "half-space", "near-ties")
PEERS: Final = (
    "GaussianNB",
    "LogisticRegression",
    "DecisionTreeClassifier",
    "RandomForestClassifier",
)
WAYS: Final = {
    "auto": "",
    "auto-replace": ", replace",
    "exponential": ", exponential learner",
    "exponential-replace": ", exponential learner, replace",
}
"""Contenders in the tables of the real sets, and how they are called behind the name of the
class.
"""

MECHANISMS: Final = {
    "auto": "`PermuteAndFlip` (auto, δ = 0)",
    "auto-delta": "auto",
    "nested-margin": "`NestedMargin`",
    "large-margin": "`LargeMargin` (the paper's)",
    "exponential": "`Exponential`",
}
"""Contenders in the table of mechanisms."""

COMPARED: Final = ("0.1", "0.5", "1")
"""Prices in the table of mechanisms."""

SIGNIFICANT = 2
"""A difference counts where it exceeds so many standard errors of the difference, and half a
point.
"""

Figure = tuple[float, float]
"""A mean and its standard error."""


def accuracy_sections(result: Result) -> list[Table | Text]:
    """Those of docs/learning.md about accuracy."""
    return [
        _sets(result),
        *(_real(result, group) for group in REAL),
        _ahead(result),
        *(_planted(result, kind) for kind in PLANTED),
        _planted_ahead(result),
        _mechanisms(result),
    ]


def figures(result: Result) -> dict[tuple[str, str, str, str], Figure]:
    """By group, class ("-" for none), contender and epsilon ("-" without privacy)."""
    ours = {
        (row["group"], row["class"], row["contender"], row["epsilon"]): (
            row["accuracy"],
            row["error"],
        )
        for row in result["accuracy"]
    }
    theirs = {
        (row["group"], "-", row["contender"].removeprefix("diffprivlib "), row["epsilon"]): (
            row["accuracy"],
            row["error"],
        )
        for row in result["peers"]
    }
    return ours | theirs


def planned(result: Result, group: str, way: str = "auto") -> dict[str, Figure]:
    """By epsilon: what the class planned beforehand achieves."""
    found = figures(result)
    return {
        epsilon: found[group, name, way, epsilon]
        for epsilon, name in _group(result, group)["plans"].items()
    }


def _group(result: Result, name: str) -> Any:
    return next(group for group in result["groups"] if group["group"] == name)


def _classes(result: Result, group: str) -> list[str]:
    return list(_group(result, group)["sizes"])


def _sets(result: Result) -> Table:
    rows = []
    for group in result["groups"]:
        sizes = ", ".join(f"{name} {_rounded(size)}" for name, size in group["sizes"].items())
        repeats = f"{group['repeats']} × {group['tasks']} × {group['draws']}"
        rows.append([group["title"], f"{group['learned']:,} × {group['features']}", repeats, sizes])
    head = ["", "learned from", "repeats × tasks × releases", "hypotheses"]
    return Table("learning-sets", "The sets", head, rows, prose=True)


def _real(result: Result, group: str) -> Table:
    found = figures(result)
    epsilons = result["settings"]["epsilons"]
    plans = _group(result, group)["plans"]
    rows = []
    for way in ("auto", "auto-replace"):
        cells = planned(result, group, way)
        rows.append(
            [f"**class planned**{WAYS[way]}", *(_cell(cells[epsilon]) for epsilon in epsilons), ""]
        )
    for name in _classes(result, group):
        for way, text in WAYS.items():
            best = _cell(found[group, name, "best", "-"]) if way == "auto" else ""
            rows.append(
                [
                    f"`{name}`{text}",
                    *(_cell(found[group, name, way, epsilon]) for epsilon in epsilons),
                    best,
                ]
            )
    for name in PEERS:
        rows.append(
            [
                f"diffprivlib {name}",
                *(_cell(found[group, "-", name, epsilon]) for epsilon in epsilons),
                "",
            ]
        )
    rows.append(
        ["majority label", *[""] * len(epsilons), _cell(found[group, "-", "majority", "-"])]
    )
    choice = ", ".join(f"{name} at {_listed(where)}" for name, where in _turned(plans).items())
    title = (
        f"{_group(result, group)['title'].capitalize()}: accuracy in per cent (planned: {choice})"
    )
    return Table(
        f"learning-{group}",
        title,
        ["", *(f"ε = {epsilon}" for epsilon in epsilons), "not private"],
        rows,
    )


def duels(
    result: Result, groups: Iterable[str], ours: Sequence[str]
) -> Iterator[tuple[str, str, str, float, float]]:
    """(group, epsilon, best rival, lead of ours, its standard error) of every cell.

    Ours is the better of the classes named, where the group has them; "planned" is the one chosen
    beforehand. The rival is the best of diffprivlib's classifiers, picked with hindsight.
    """
    found = figures(result)
    for group in groups:
        offered = [name for name in ours if name == "planned" or name in _classes(result, group)]
        for epsilon in result["settings"]["epsilons"] if offered else ():
            rival = max(PEERS, key=lambda name: found[group, "-", name, epsilon][0])
            theirs = found[group, "-", rival, epsilon]
            own = max(
                planned(result, group)[epsilon]
                if name == "planned"
                else found[group, name, "auto", epsilon]
                for name in offered
            )
            yield group, epsilon, rival, own[0] - theirs[0], (own[1] ** 2 + theirs[1] ** 2) ** 0.5


def verdicts(cells: Iterable[tuple[str, str, str, float, float]]) -> dict[str, list[str]]:
    """Cells where ours is ahead, behind, or neither: each as "set at epsilon (rival)"."""
    found: dict[str, list[str]] = {"ahead": [], "behind": [], "equal": []}
    for group, epsilon, rival, lead, error in cells:
        decided = abs(lead) > max(SIGNIFICANT * error, 0.005)
        verdict = "equal" if not decided else "ahead" if lead > 0 else "behind"
        found[verdict].append(f"{_spelled(group)} at {epsilon} ({rival})")
    return found


def _ahead(result: Result) -> Text:
    plan, linear = (verdicts(duels(result, REAL, [name])) for name in ("planned", "LinearGrid"))
    every = exchanges(result, REAL)
    lower = [cell for cell in every if cell[-1] < 0]
    return Text(
        "learning-ahead",
        f"**Against diffprivlib.** There are {sum(map(len, plan.values()))} cells, a set at a "
        f"price. The class planned "
        f"beforehand is ahead of the best of diffprivlib's four, which is picked with hindsight, "
        f"in "
        f"{len(plan['ahead'])} of them, behind in {len(plan['behind'])}{_where(plan['behind'])}, "
        f"and within the noise "
        f"in {len(plan['equal'])}{_where(plan['equal'])}. `LinearGrid`, where it can be used, is "
        f"ahead in "
        f"{len(linear['ahead'])}, behind in {len(linear['behind'])}{_where(linear['behind'])} and "
        f"within the noise in "
        f"{len(linear['equal'])}{_where(linear['equal'])}. **Against the exponential learner** "
        f"over the same class, "
        f"{len(every)} cells: auto is lower by more than the noise in "
        f"{len(lower)}{_where(_cells(lower))}, and higher "
        f"in {sum(cell[-1] > 0 for cell in every)}.",
    )


def exchanges(result: Result, groups: Iterable[str]) -> list[tuple[str, str, str, int]]:
    """(group, class, epsilon, sign) for every class: whether auto is beyond the noise higher (1) or
    lower (−1) than the exponential learner, or neither (0)."""
    found = figures(result)
    cells = []
    for group in groups:
        for name in _classes(result, group):
            for epsilon in result["settings"]["epsilons"]:
                auto, other = (found[group, name, way, epsilon] for way in ("auto", "exponential"))
                lead, error = auto[0] - other[0], (auto[1] ** 2 + other[1] ** 2) ** 0.5
                decided = abs(lead) > max(SIGNIFICANT * error, 0.005)
                cells.append((group, name, epsilon, 0 if not decided else 1 if lead > 0 else -1))
    return cells


def _cells(cells: Iterable[tuple[str, str, str, int]]) -> list[str]:
    return [f"{_spelled(group)}, {name} at {epsilon}" for group, name, epsilon, _ in cells]


def _planted(result: Result, kind: str) -> Table:
    found = figures(result)
    sizes = [
        group["group"] for group in result["groups"] if group["group"].rpartition("-")[0] == kind
    ]
    shown = [(group, epsilon) for group in sizes for epsilon in ("0.1", "1")]
    rows = []
    for name in _classes(result, sizes[0]):
        for way in ("auto", "exponential"):
            rows.append(
                [
                    f"`{name}`{WAYS[way]}",
                    *(_cell(found[group, name, way, epsilon]) for group, epsilon in shown),
                ]
            )
        best = [
            _cell(found[group, name, "best", "-"]) if epsilon == "1" else ""
            for group, epsilon in shown
        ]
        rows.append([f"`{name}`, not private", *best])
    for name in PEERS:
        rows.append(
            [
                f"diffprivlib {name}",
                *(_cell(found[group, "-", name, epsilon]) for group, epsilon in shown),
            ]
        )
    fact = _group(result, sizes[0])
    what = fact["title"].removesuffix(f", {fact['learned']:,} examples")
    title = f"{what.capitalize()}: accuracy in per cent"
    head = [
        "",
        *(f"n = {_group(result, group)['learned']:,}, ε = {epsilon}" for group, epsilon in shown),
    ]
    return Table(f"learning-{kind}", title, head, rows)


MATCHED: Final = {"conjunction": "Conjunctions", "half-space": "LinearGrid", "near-ties": "Stumps"}
"""The class that holds the rule planted, or one like it."""


def _planted_ahead(result: Result) -> Text:
    parts = []
    for kind, name in MATCHED.items():
        sizes = [
            group["group"]
            for group in result["groups"]
            if group["group"].rpartition("-")[0] == kind
        ]
        found = verdicts(duels(result, sizes, [name]))
        ahead, behind, equal = (len(found[key]) for key in ("ahead", "behind", "equal"))
        parts.append(
            f"{kind.replace('-', ' ')} (`{name}`): ahead {ahead}, behind {behind}, within the "
            f"noise {equal}"
        )
    return Text(
        "learning-planted",
        "With the class that suits each kind, against the best of diffprivlib's picked with "
        "hindsight, over three "
        f"sizes and {len(result['settings']['epsilons'])} prices: {'; '.join(parts)}.",
    )


def _mechanisms(result: Result) -> Table:
    found = figures(result)
    ran = {
        (row["group"], row["class"], row["epsilon"]): row["mechanism"]
        for row in result["accuracy"]
        if row["contender"] == "auto-delta"
    }
    empty = {
        (row["group"], row["class"], row["contender"], row["epsilon"]): row.get("unanswered", 0)
        for row in result["accuracy"]
    }
    rows = []
    for group in [*REAL, *(f"{kind}-1000" for kind in PLANTED)]:
        for name in ("Trees", "Conjunctions"):
            if name not in _classes(result, group):
                continue
            for epsilon in COMPARED:
                cells = []
                for way in MECHANISMS:
                    text = _cell(found[group, name, way, epsilon])
                    silent = empty[group, name, way, epsilon]
                    text += f", {100 * silent:.0f} % unanswered" if silent >= 0.005 else ""
                    text += f" (`{ran[group, name, epsilon]}`)" if way == "auto-delta" else ""
                    cells.append(text)
                rows.append([f"{_spelled(group)}, `{name}`, ε = {epsilon}", *cells])
    head = ["", *MECHANISMS.values()]
    title = (
        f"Mechanisms over the same class, δ = {result['settings']['delta']} but for the first "
        "and the last"
    )
    return Table("learning-mechanisms", title, head, rows)


def _cell(figure: Figure) -> str:
    mean, error = figure
    return f"{100 * mean:.1f} ± {100 * error:.1f}"


def _rounded(size: int) -> str:
    if size < 10_000:
        return f"{size:,}"
    power = len(str(size)) - 1
    return f"{size / 10**power:.1f}·10^{power}"


def _spelled(group: str) -> str:
    kind, _, last = group.rpartition("-")
    if last == "rest":
        return "wine against the rest"
    return f"{kind} of {int(last):,}" if last.isdigit() else group.replace("-", " ")


def _turned(plans: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for epsilon, name in plans.items():
        found.setdefault(f"`{name}`", []).append(epsilon)
    return found


def _where(cells: Sequence[str]) -> str:
    """In brackets, if there are any and not too many."""
    return f" ({'; '.join(cells)})" if 0 < len(cells) <= 12 else ""


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
