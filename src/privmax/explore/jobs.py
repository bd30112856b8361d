"""Work that pages leave to a process of its own: plans, draws and reports.

A job is a function of plain values, and gives plain values. It reads no private data: a report is
made of what was released already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from privmax.numbers import plain

OTHERS = 1_000
"""In an open universe: how many candidates stand right behind the best in what misses are computed
for."""

HIGHEST = 10**9
"""The score of the best in what misses are computed for: far above every threshold."""

DRAWS = 100
"""The number of draws of `try_draws`."""

STEPS = 14
"""Leads at which a curve of misses is computed."""

CURVES = 5
"""Mechanisms that get a curve."""

SAMPLES: dict[str, dict[str, Any]] = {
    "searches": {"columns": ["query"], "user": "person"},
    "receipts": {"columns": ["article"], "user": "member"},
    "counts": {"columns": ["query"], "score": "people"},
}
"""Facts about the included data sets."""


def slow_mechanisms(k: int, ranked: bool) -> list[str]:
    """The mechanisms whose leads take a second or more: a page shows all others first."""
    from privmax.mechanisms.registry import MECHANISMS

    when = "at a small epsilon" if k == 1 else "in lists"
    return [name for name in _able(k, ranked) if MECHANISMS[name].slow == when]


def plan_leads(
    options: Mapping[str, Any], lead: int | None, *, is_slow: bool = False
) -> dict[str, Any]:
    """The rows of a plan with expected misses, the choice of `auto`, and curves of misses.

    Args:
        options: Those of `privmax.plan`.
        lead: Records by which the best lead in what misses are computed for; None: what the chosen
            mechanism needs.
        is_slow: Whether to compute the rows of the slow mechanisms, and only those.
    """
    from privmax.mechanisms.registry import MECHANISMS, describe_mechanism
    from privmax.planning.plans import candidates, plan, price_in_words, winners

    k, ranked = options.get("k", 1), options.get("ranked", False)
    later = slow_mechanisms(k, ranked)
    names = later if is_slow else [name for name in _able(k, ranked) if name not in later]
    planned = plan(**options, mechanisms=names)
    lead = lead or planned.chosen.lead or planned.limit or 1
    rows = [
        {
            "name": row.name,
            "lead": row.lead,
            "misses": _misses(row.mechanism, planned, lead),
            "error": row.error,
            "form": row.form,
            "silent": row.silent,
            "needs": row.needs,
            "chosen": row.chosen,
            "lacks": row.lacks,
        }
        for row in planned.rows
        if not (is_slow and row.chosen)
    ]
    return {
        "rows": rows,
        "limit": planned.limit,
        "choice": describe_mechanism(planned.chosen.mechanism, planned.why),
        "lead": lead,
        "near": planned.near,
        "title": planned.title(),
        "winners": winners(planned.near),
        "where": candidates(planned.universe),
        "cost": price_in_words(planned.privacy, planned.neighbors),
        "curves": {} if is_slow else _curves(planned, lead),
        "later": [] if is_slow else [MECHANISMS[name].name for name in later],
    }


def plan_for_keys(options: Mapping[str, Any]) -> dict[str, Any]:
    """Plan the individuals that a key must have, and the same over the keys of each individual.

    Args:
        options: Those of `privmax.plan_keys`.
    """
    from privmax.keyset.plans import STEPS, plan_keys, plan_keys_over

    planned = plan_keys(**options)
    rest = {name: value for name, value in options.items() if name != "per_user"}
    plans = plan_keys_over([one for one in STEPS if one != planned.per_user], **rest)
    curves: dict[str, list[tuple[int, int]]] = {}
    for number, one in sorted({**plans, planned.per_user: planned}.items()):
        for row in one.rows:
            curves.setdefault(row.name, []).append((number, row.several))
    first = [name for name in curves if name.startswith("privmax keys")]
    return {
        "rows": [vars(row) for row in planned.rows],
        "per_user": planned.per_user,
        "headings": planned.headings,
        "curves": {name: curves[name] for name in dict.fromkeys([*first, *curves])},
        "title": planned.title,
        "foot": planned.foot,
    }


def _able(k: int, ranked: bool) -> list[str]:
    """The mechanisms that `plan` looks at by default, in its order."""
    from privmax.mechanisms.registry import MECHANISMS
    from privmax.planning.plans import releasing

    able = releasing(k, ranked)
    return [name for name in MECHANISMS if name in able]


def _misses(mechanism: Any, planned: Any, lead: int) -> float | None:
    """Return the part of the best that a mechanism does not release, on average, from its exact
    law; None: that is not known exactly.

    The best lead by `lead`, and all others right behind them.
    """
    from privmax.profile import Profile

    if mechanism is None:
        return None
    size, near = planned.universe, planned.near
    others = OTHERS if size is None else size - near
    top = max(HIGHEST, 10 * lead)
    levels = [(top, near), *([(top - lead, others)] if others > 0 else [])]
    profile = Profile(levels, universe=size)
    if planned.k == 1:
        return max(0.0, 1.0 - float(mechanism.law(profile).best()))
    exact = mechanism.expect(profile, planned.k)
    return None if exact is None else max(0.0, 1.0 - float(exact[1]) / planned.k)


def _curves(planned: Any, lead: int) -> dict[str, list[tuple[int, float]]]:
    """Misses over leads, of the chosen mechanism and the few that need least."""
    shown = [row for row in planned.rows if row.lead is not None][:CURVES]
    shown = [row for row in planned.rows if row.chosen] + [row for row in shown if not row.chosen]
    reach = max([2 * planned.chosen.lead if planned.chosen.lead else 0, lead, 2 * planned.limit, 4])
    leads = sorted({max(1, round(reach * step / STEPS)) for step in range(STEPS + 1)} | {lead})
    curves = {}
    for row in shown[:CURVES]:
        line = [(at, _misses(row.mechanism, planned, at)) for at in leads]
        exact = [(at, misses) for at, misses in line if misses is not None]
        if exact:
            curves[row.name] = exact
    return curves


def try_draws(data: Mapping[str, int] | str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A hundred draws on public data: what came out how often, and how likely it was.

    Args:
        data: Scores by label, or the name of a shipped data set.
        options: What `select` takes beside its data.
    """
    from contextlib import closing

    from privmax.display import format_label
    from privmax.mechanisms.registry import describe_mechanism
    from privmax.noise.coins import SYSTEM
    from privmax.selection import Selection
    from privmax.sources.reading import source
    from privmax.sources.roles import Columns
    from privmax.universe import Universe

    universe = Universe.of(options.get("universe", "open"))
    rest = {name: value for name, value in options.items() if name != "universe"}
    question = Selection.of(Columns(), universe=universe, **rest).question
    question.check()
    counts = count_sample(data) if isinstance(data, str) else dict(data)
    opened = source(counts, Columns(), universe=universe, sensitivity=None, resolution=None)
    with closing(opened) as candidates:
        question.preflight(candidates)
        drawn = [question.draw(candidates, SYSTEM) for _ in range(DRAWS)]
        law = question.choice.mechanism.law(candidates.profile) if question.k == 1 else None
    scores = {format_label(label): score for label, score in counts.items()}
    chances = {} if law is None else {label: law.of(score) for label, score in scores.items()}
    none = max(0.0, 1.0 - sum(chances.values()))
    tally = Counter(format_label(item) for release in drawn for item in release.items)
    top = sorted(scores, key=lambda label: (-scores[label], label))
    listed = list(dict.fromkeys([*top[:12], *(label for label, _ in tally.most_common(24))]))
    listed.sort(key=lambda label: (-scores.get(label, 0), label))
    return {
        "rows": [
            (label, scores.get(label), tally[label], None if law is None else chances.get(label))
            for label in listed
        ],
        "others": sum(tally.values()) - sum(tally[label] for label in listed),
        "nothing": sum(not release.items for release in drawn),
        "none": None if law is None else none,
        "sizes": Counter(len(release.items) for release in drawn),
        "draws": DRAWS,
        "candidates": len(scores),
        "k": question.k,
        "mechanism": describe_mechanism(question.choice.mechanism, question.choice.why),
        "cost": {
            "epsilon": plain(question.privacy().epsilon),
            "delta": plain(question.privacy().delta),
        },
    }


def count_sample(name: str) -> dict[str, int]:
    """The scores of a shipped data set: of a log, how many different people there are by item."""
    from privmax.samples import path
    from privmax.sources.files import open_records

    said = SAMPLES[name]
    item, score = said["columns"][0], said.get("score")
    with open_records(path(name)) as (names, rows):
        lines = [dict(zip(names, row, strict=True)) for _, row in rows]
    if score is not None:
        return {line[item]: int(line[score]) for line in lines}
    return dict(Counter(key for key, _ in {(line[item], line[said["user"]]) for line in lines}))


def write_report(release: Any, about: Mapping[str, Any]) -> str:
    """The page about a release; without its picture where matplotlib is missing."""
    from privmax.report import html

    given = dict(about)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        given["universe"] = None
    return html(release, **given)


JOBS = {
    "plan": plan_leads,
    "plan keys": plan_for_keys,
    "try": try_draws,
    "report": write_report,
}
"""The jobs of a worker, by name."""


def run_job(name: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Run a job by its name."""
    job: Any = JOBS[name]
    return job(*arguments, **options)
