"""The page about a release."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

from privmax.advice import next_steps
from privmax.errors import ParameterError
from privmax.keyset.release import KeysRelease
from privmax.mechanisms.gap_test import GapTest
from privmax.mechanisms.peeling import Ranker
from privmax.mechanisms.ranked_margin import RankedMargin
from privmax.mechanisms.registry import MECHANISMS, describe_mechanism, registered_name
from privmax.numbers import flag, plain
from privmax.planning.plans import Plan, is_planned, plan, plan_over, winners
from privmax.privacy import DELTA_ADVICE, REPLACE, WEAK, Privacy
from privmax.profile import LARGEST_UNIVERSE
from privmax.release import CHOSEN_BY_CALLER, Release
from privmax.report.frame import page, question_rows, read_asked, read_words
from privmax.report.words import change_words, one_in, raised_chance, times
from privmax.universe import OPEN, Universe

QUICK = Fraction(1)
"""Below this epsilon the leads of some mechanisms take long to compute; they are left out."""

SIZES = {20: "", 80: " medium"}
"""The size of print for an answer of up to so many characters; longer ones are the smallest."""

MOST = 10_000
"""Winners that a page plans for."""

MANY = 20
"""Answers in a list from which on it is printed smaller."""

LISTED = 200
"""Answers that a page lists where a release has as many as there are."""

AUDITED = 3
"""Candidates in the data sets of an audit, as `privmax audit` has it: the longest list that it can
look at.
"""

TYPED = ("epsilon", "delta", "neighbors", "rank", "growth", "cap", "k")
"""The parameters of a mechanism that are options of `privmax audit`."""

ENTRIES = {
    "max_estimate": "the best score, with noise",
    "near_maximizers": "number of top candidates the mechanism drew from",
}
"""The fields that a release may have beside its items, in words."""


def html(
    release: Release,
    *,
    question: str = "Which candidate is at the top?",
    asked: Mapping[str, object] | None = None,
    unit: str = "one individual",
    universe: object = None,
    answers: Sequence[str] | None = None,
    left: Privacy | None = None,
    ledger: str | None = None,
    account: str | None = None,
    proofs: Sequence[str] = (),
    repeated: bool = False,
    written: datetime | None = None,
) -> str:
    """Return a page about a release: its question, answer and cost.

    It also says whom the cost protects, and how to check it.

    The page has all that is in the release, and nothing else that depends on the data. Of a
    release with as many items as there are, it lists the first, and says how many more there are.

    Args:
        question: What was asked, in words.
        asked: How, by name: the data, columns, options. All of it is shown, and must be public: no
            password, no count.
        unit: Whom the cost protects, as in "… had been left out of the data": "one person with all
            purchases".
        universe: The candidates there were, as in `select`; with it the page has the picture of the
            plan, which needs matplotlib. None: no picture.
        answers: The released items in words, if their `str` will not do.
        left: What the ledger has left.
        ledger: Its name, and the account that was charged.
        proofs: Commands that print what to read beside the proof of the mechanism.
        repeated: Whether the answer was recorded under its request earlier, as `release.recorded`
            says. The page then says that the answer is that one, whatever the data of `asked` is
            now; `question` should not name the data.
        written: When the page was written; now, by default.
    """
    if answers is not None and len(answers) != len(release.items):
        raise ParameterError(
            "answers", len(answers), "there must be one for each released item", "Leave it out."
        )
    shown = [_words(item, release) for item in release.items] if answers is None else list(answers)
    shown, more = (shown[:LISTED], shown[LISTED:]) if not release.requested else (shown, [])
    counts = release.describe_numbers()[: len(shown)] or [""] * len(shown)
    options = read_asked(asked)
    everything = None if universe is None else Universe.of(universe)
    plan = None if everything is None else _plan(release, everything)
    mechanism = release.mechanism
    return page(
        "release.html",
        written=written,
        title=f"privmax: {shown[0] if shown else 'no answer'}",
        note="Apart from what is listed as released, nothing here depends on the data.",
        question=read_words("question", question),
        answers=list(zip(shown, counts, strict=True)),
        more=len(more),
        rest=release.describe_other() if isinstance(release, KeysRelease) else "",
        is_single=options.get("k", mechanism.k) == 1,
        size=_size(shown[0]) if shown else "",
        list_size="many" if len(shown) > MANY else "few",
        diagnostics={ENTRIES.get(key, key): one for key, one in release.diagnostics.items()},
        steps=[] if shown else _steps(release, everything, options.get("floor")),
        asked=question_rows(options if everything is None else options | {"universe": ""}),
        universe=None if everything is None else _describe_size(everything),
        mechanism_name=type(mechanism).__name__,
        mechanism_words=describe_mechanism(mechanism, release.why),
        mechanism_about=first_sentence(sys.modules[type(mechanism).__module__].__doc__ or ""),
        is_requested=release.why == CHOSEN_BY_CALLER,
        proofs=list(dict.fromkeys([*_proofs(release), *proofs])),
        audit=audit_command(mechanism),
        **promise(release, unit),
        **payment(release, left=left, ledger=ledger, account=account, repeated=repeated),
        **_planning(release, plan, everything),
    )


def promise(release: Release, unit: str) -> dict[str, object]:
    """Return what the sections about the guarantee show, by name.

    Args:
        release: The release.
        unit: Whom its cost protects.
    """
    epsilon, delta = release.privacy.epsilon, release.privacy.delta
    neighbors = release.mechanism.neighbors
    return {
        "release": release,
        "unit": read_words("unit", unit),
        "other": change_words(neighbors),
        "is_replaced": neighbors == REPLACE,
        "factor": times(epsilon),
        "raised": raised_chance(epsilon, delta),
        "exception": one_in(delta) if delta else None,
        "weak": WEAK,
        "delta_advice": DELTA_ADVICE,
    }


def payment(
    release: Release,
    *,
    left: Privacy | None,
    ledger: str | None,
    account: str | None,
    repeated: bool,
) -> dict[str, object]:
    """Return what the sections about question and cost show of a ledger, by name.

    Raises:
        ParameterError: What is left is no cost, or a name is not text.
    """
    if left is not None and not isinstance(left, Privacy):
        raise ParameterError(
            "left", left, "it must be a Privacy", "For example ledger.remaining."
        )  # fmt: skip
    for name, value in (("ledger", ledger), ("account", account)):
        if value is not None:
            read_words(name, value)
    return {
        "is_repeated": flag("repeated", repeated) or release.recorded is not None,
        "recorded": None if release.recorded is None else datetime.fromisoformat(release.recorded),
        "left": left,
        "ledger": ledger,
        "account": account,
    }


def _words(item: object, release: Release) -> str:
    together = " + " if hasattr(release, "supports") else ", "
    return together.join(map(str, item)) if isinstance(item, tuple) else str(item)


def _size(shown: str) -> str:
    return next((kind for most, kind in SIZES.items() if len(shown) <= most), " long")


def _steps(release: Release, universe: Universe | None, floor: object) -> list[str]:
    """Return what may help where there was no answer."""
    least = floor if isinstance(floor, int) else 0
    return list(next_steps(release, universe=universe, floor=least))


def _describe_size(universe: Universe) -> str:
    """Return the number of candidates, large ones as a power of ten, or "open"."""
    size = universe.size
    if size is None:
        return OPEN
    return f"{size:,}" if size < 10**15 else f"1e{_digits(size)}"


def _digits(number: int) -> int:
    """Digits behind the first, also of numbers that are too long to be written out."""
    return int((number.bit_length() - 1) * 0.30103)


def first_sentence(about: str) -> str:
    """Return the first sentence of a docstring, however many lines it takes."""
    words = " ".join(about.strip().partition("\n\n")[0].split())
    return re.split(r"(?<=\.) ", words, maxsplit=1)[0]


def _planning(release: Release, plan: Plan | None, universe: Universe | None) -> dict[str, object]:
    """Return what a page shows of a plan, by name."""
    if plan is None:
        return {"plan": None}
    from privmax.plots import NARROW, planning, svg

    ran = type(release.mechanism).__name__
    notes = ["A lead is counted in records: one record is the most that one individual adds."]
    if plan.chosen.name != ran:
        notes.append(
            f"The mark shows what privmax would choose for {winners(plan.k)}; {ran} ran here."
        )
    if plan.universe is None and universe is not None and not universe.is_open:
        notes.append("A universe this large is planned for as if it were open.")
    if plan.k == 1 and plan.privacy.epsilon < QUICK and plan.privacy.delta:
        notes.append(
            "The paper's mechanisms are left out: at such a small ε their leads take minutes to "
            "compute."
        )
    return {
        "plan": plan,
        "plan_picture": svg(planning(plan, wide=NARROW)),
        "plan_notes": notes,
        "plan_marked": next((row for row, one in enumerate(plan.rows) if one.name == ran), None),
        "plan_command": _plan_command(release.mechanism, plan),
        "winners": winners(plan.k),
    }


def _plan(release: Release, universe: Universe) -> Plan | None:
    """Return the plan at the cost of the mechanism.

    None where there is none, as for a universe beyond 2^1000 at delta 0.

    There is none either for costs that no one would ask, nor for more winners than anyone reads.
    """
    mechanism: Any = release.mechanism
    if not mechanism.k:  # it releases all there are, and no lead decides
        return None
    cost: Privacy = mechanism.privacy()
    huge = universe.size is not None and universe.size > LARGEST_UNIVERSE
    if (huge and not cost.delta) or not is_planned(cost.epsilon):
        return None
    options: dict[str, Any] = {
        "epsilon": cost.epsilon,
        "delta": cost.delta,
        "universe": Universe() if huge else universe,
        "neighbors": mechanism.neighbors,
        "growth": mechanism.growth,
    }
    if mechanism.k > 1:
        most = mechanism.k
        if most > MOST:
            return None
        return plan_over([most], ranked=release.ranked, **options)[most]
    quick = [known for known, entry in MECHANISMS.items() if entry.slow != "at a small epsilon"]
    return plan(**options, mechanisms=quick if cost.epsilon < QUICK else None)


def proofs_of(kind: type) -> list[str]:
    """Return the commands that print the proofs that the module of a class names."""
    about = sys.modules[kind.__module__].__doc__ or ""
    pages = re.findall(r"^Proof:\s+docs/(\S+)\.md$", about, re.MULTILINE)
    return [f"privmax help {page}" for page in pages]


def _proofs(release: Release) -> list[str]:
    ranks = isinstance(release.mechanism, Ranker)
    rounds = ranks and not isinstance(release.mechanism, (GapTest, RankedMargin))
    peels = release.mechanism.k > 1 and rounds
    listed = ["privmax help proofs/peeling"] if peels else []
    counted = [] if release.noise is None else proofs_of(type(release.noise))
    return [*proofs_of(type(release.mechanism)), *listed, *proofs_of(type(release)), *counted]


def audit_command(mechanism: Any) -> str | None:
    """Return what to type to audit it.

    None where it has no name there, or not all of what it was made with can be typed.

    The data sets are small, and so are lists from them.
    """
    known = registered_name(mechanism)
    if known is None:
        return None
    changed = mechanism.changed()
    if not changed.keys() <= set(TYPED):
        return None
    if "k" in changed:
        changed["k"] = min(changed["k"], AUDITED)
    kept = {name: changed[name] for name in TYPED if name in changed}
    return " ".join(["privmax audit", known, *_options(kept)])


def _plan_command(mechanism: Any, plan: Plan) -> str:
    costs = {
        "epsilon": plan.privacy.epsilon,
        "delta": plan.privacy.delta or None,
        "universe": plan.universe,
    }
    replaced = REPLACE if plan.neighbors == REPLACE else None
    options = _options({**costs, "neighbors": replaced, "growth": mechanism.growth})
    many = [] if plan.k == 1 else [f"--k {plan.k}", *(["--ranked"] if plan.ranked else [])]
    return " ".join(["privmax plan", *options, *many])


def _options(values: Mapping[str, object]) -> list[str]:
    """Return options as they are typed, without those that are None."""
    shown = {
        name: plain(value) if isinstance(value, Fraction) else str(value)
        for name, value in values.items()
    }
    return [f"--{name} {shown[name]}" for name, value in values.items() if value is not None]
