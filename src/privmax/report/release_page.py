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
from privmax.mechanisms.registry import MECHANISMS, registered_name
from privmax.numbers import plain
from privmax.planning.plans import (
    LARGEST_EPSILON,
    SMALLEST_EPSILON,
    Plan,
    plan,
    plan_over,
    winners,
)
from privmax.privacy import REPLACE, WEAK, Privacy
from privmax.profile import LARGEST_UNIVERSE
from privmax.release import YOURS, Release
from privmax.report.markup import (
    bullets,
    cards,
    chance,
    change_words,
    code,
    command,
    facts,
    name,
    page,
    paragraph,
    picture,
    price,
    raised_chance,
    request_section,
    section,
    table,
    text,
    times,
    top,
)
from privmax.universe import Universe

SLOW, QUICK = ("large-margin", "large-margin-truncated"), Fraction(1)
"""Mechanisms whose leads take long to compute below an epsilon; they are left out there."""

SIZES = {20: "", 80: " medium"}
"""How large an answer of up to so many characters is printed; longer ones are the smallest."""

MOST = 10_000
"""Winners that a page plans for."""

MANY = 20
"""Answers in a list from which on it is printed smaller."""

AUDITED = 3
"""Candidates in the data sets of an audit, as `privmax audit` has it: the longest list that it can
look at.
"""

TYPED = ("epsilon", "delta", "neighbors", "rank", "growth", "cap", "k")
"""What of a mechanism `privmax audit` has an option for."""

ENTRIES = {
    "max_estimate": "the best score, with noise",
    "near_maximizers": "number of top candidates the mechanism drew from",
}
"""What a release may hold beside its items, in words."""


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
    """A page about a release: what was asked and answered, what that cost, whom it protects, how to
    check it.

    question    what was asked, in words
    asked       how, by name: the data, columns, options. All of it is shown, and must be public: no
                password, no count
    unit        whom the cost protects, as in "… had been left out of the data": "one person with
                all purchases"
    universe    the candidates there were, as in `select`; with it the page has the picture of the
                plan, which needs matplotlib. None: no picture
    answers     the released items in words, if their `str` will not do
    left        what the ledger has left
    ledger      its name, and the account that was charged
    proofs      pages to read beside the proof of the mechanism
    repeated    whether the answer was recorded under its request earlier, as `release.recorded`
                says. The page then says that the answer is that one, whatever the data of `asked`
                is now; `question` should not name the data
    written     when the page was written; now, by default

    The page holds all that is in the release, and nothing else that depends on the data.
    """
    if answers is not None and len(answers) != len(release.items):
        raise ParameterError(
            "answers", len(answers), "there must be one for each released item", "Leave it out."
        )
    shown = [_words(item, release) for item in release.items] if answers is None else list(answers)
    given = dict(asked or {})
    wanted = given.get("k", release.mechanism.k)
    everything = None if universe is None else Universe.of(universe)
    found = None if everything is None else _plan(release, everything)
    return page(
        f"privmax: {shown[0] if shown else 'no answer'}",
        _top(release, question, shown, unit, left, wanted),
        *([] if shown else [_no_answer(release, everything, given)]),
        _guarantee(release, unit),
        request_section(
            given,
            *([_explain_record(release)] if repeated or release.recorded is not None else []),
            **({} if everything is None else {"universe": _universe(everything)}),
        ),
        _cost(release, left, ledger, account),
        _mechanism(release),
        _planning(release, found, everything),
        _checks(release, unit, found, proofs),
        written=written,
        note="Apart from what is listed as released, nothing here depends on the data.",
    )


def _words(item: object, release: Release) -> str:
    together = " + " if hasattr(release, "supports") else ", "
    return together.join(map(str, item)) if isinstance(item, tuple) else str(item)


def _top(
    release: Release,
    question: str,
    shown: Sequence[str],
    unit: str,
    left: Privacy | None,
    wanted: object,
) -> str:
    """The first screen. It is for everybody."""
    if not shown:
        answer = '<p class="one">No answer</p>'
    elif wanted == 1:
        size = next((kind for most, kind in SIZES.items() if len(shown[0]) <= most), " long")
        answer = f'<p class="one{size}">{name(shown[0])}{_count(release, 0)}</p>'
    else:
        rows = "".join(
            f"<li>{name(one)}{_count(release, rank)}</li>" for rank, one in enumerate(shown)
        )
        kind = "ol" if release.ranked else "ul"
        answer = f'<{kind} class="{"many" if len(shown) > MANY else "few"}">{rows}</{kind}>'
    other = change_words(release.mechanism.neighbors)
    limit = _small(
        f"no conclusion becomes more than {times(release.privacy.epsilon)} times as likely as with "
        f"it {other}" + (", except with probability δ" if release.privacy.delta else "")
    )
    shares = {"Protected": text(_capital(unit)), "Privacy cost": price(release.privacy) + limit}
    if release.request is not None:
        shares["Budget left"] = (
            "not known now"
            if left is None
            else f"{price(left, left=True)}{_small('when this was written')}"
        )
    return top(
        "A private answer",
        question,
        "Released",
        answer,
        paragraph(
            f"A reader learns almost the same as if {text(unit)} had been {other}. Random noise "
            "guarantees this."
        ),
        *map(paragraph, release.notes),
        _noise(release),
        _beside(release),
        cards(shares),
    )


def _small(words: str) -> str:
    """A line below the value of a card; it is markup."""
    return f'<br><span class="note">{words}</span>'


def _count(release: Release, rank: int) -> str:
    counts = release.describe_counts()
    return f' <span class="about">{text(counts[rank])}</span>' if counts else ""


def _noise(release: Release) -> str:
    if release.noise is None or not release.counts:
        return ""
    return paragraph(
        "Each number has its own noise. It is within the ± range of the true number in 95 of 100 "
        "cases."
    )


def _beside(release: Release) -> str:
    if not release.diagnostics:
        return ""
    listed = {ENTRIES.get(key, key): f"{value:,}" for key, value in release.diagnostics.items()}
    told = "; ".join(f"{text(key)}: {text(value)}" for key, value in listed.items())
    return paragraph(f"Released with it, at the same privacy cost: {told}.")


def _no_answer(release: Release, universe: Universe | None, asked: Mapping[str, object]) -> str:
    floor = asked.get("floor")
    steps = next_steps(release, universe=universe, floor=floor if isinstance(floor, int) else 0)
    return section(
        "What “no answer” means",
        paragraph(
            "No candidate stood out enough to be named without revealing something about one "
            "individual. You may publish this result like any other, and its privacy cost is the "
            "same. It does not mean that there is no data, or that the best candidates are close: "
            "sometimes a clear winner is withheld, too."
        ),
        paragraph("What may help. Each is a new release with its own privacy cost:"),
        bullets(
            [
                "Ask about more people: a longer period, more regions.",
                "Ask for coarser candidates: categories instead of products.",
                *map(text, steps),
            ]
        ),
        paragraph(
            "Do not repeat the question until an answer comes: every try has its own privacy cost. "
            "Do not look at the data to decide: that breaks the guarantee."
        ),
    )


def _guarantee(release: Release, unit: str) -> str:
    epsilon, delta = release.privacy.epsilon, release.privacy.delta
    factor, other = times(epsilon), change_words(release.mechanism.neighbors)
    plainly = [
        paragraph(
            f"The guarantee protects <strong>{text(unit)}</strong>. Imagine the same data with any "
            f"one of them {other}. No conclusion that anybody draws from this answer is more than "
            f"e<sup>ε</sup> = <strong>{factor}</strong> times as likely as it would be from that "
            "other data, and none is less likely by more than that factor."
        )
    ]
    at_most = raised_chance(epsilon, delta)
    if at_most is not None:
        plainly.append(
            paragraph(
                f"For example, a conclusion with a chance of 1 in 100 with that one {other} has a "
                f"chance of at most {at_most} in 100 from the data as it is"
                + (", which is e<sup>ε</sup> in 100 plus δ." if delta else ".")
            )
        )
    if epsilon > WEAK.epsilon:
        plainly.append(
            paragraph(
                "<strong>The factor is so large that the guarantee says little.</strong> An ε of 1 "
                "or less is common."
            )
        )
    plainly.append(
        paragraph(
            f"δ allows for {chance(delta)} that this does not hold. It should be far below 1 "
            "divided by the number of people."
            if delta
            else "There is no exception: δ is 0."
        )
    )
    if delta > WEAK.delta:
        plainly.append(
            paragraph("<strong>That is a large chance.</strong> One in a million is common.")
        )
    replaced = release.mechanism.neighbors == REPLACE
    differ = f"differ in {text(unit)}" if replaced else f"differ by {text(unit)}, more or less"
    return section(
        "The guarantee",
        "<h3>In plain words</h3>",
        *plainly,
        "<h3>In symbols</h3>",
        '<p class="symbols"><var>P</var>(<var>M</var>(<var>D</var>)&nbsp;∈&nbsp;<var>S</var>) ≤ '
        "<var>e</var><sup>ε</sup>&nbsp;·&nbsp;"
        "<var>P</var>(<var>M</var>(<var>D</var>′)&nbsp;∈&nbsp;<var>S</var>) + δ"
        f"<br>{price(release.privacy)}</p>",
        paragraph(
            "for all sets <var>S</var> of answers, including “no answer”, and all neighbors "
            "<var>D</var> and "
            f"<var>D</var>′: data sets that {differ} ({text(release.mechanism.neighbors)})."
        ),
    )


def _universe(universe: Universe) -> str:
    size = universe.size
    if size is None:
        return "open: the candidates were not known in advance"
    shown = f"{size:,}" if size < 10**15 else f"about 10<sup>{_digits(size)}</sup>"
    return f"{shown} candidates, known in advance"


def _explain_record(release: Release) -> str:
    """Below what was asked: a ledger keeps the answer, and not how the data was called."""
    when = "earlier"
    if release.recorded is not None:
        when = f"on {datetime.fromisoformat(release.recorded):%Y-%m-%d %H:%M} UTC; no data was read"
    under = "" if release.request is None else f"under the request {code(release.request)} "
    return paragraph(
        "This is the question as typed for this page. The request was repeated, so the answer is "
        "the one that was "
        f"recorded {under}{when}. It does not depend on what that data contains now."
    )


def _digits(number: int) -> int:
    """Digits behind the first, also of numbers that are too long to be written out."""
    return int((number.bit_length() - 1) * 0.30103)


def _cost(release: Release, left: Privacy | None, ledger: str | None, account: str | None) -> str:
    rows = {"this release": price(release.privacy)}
    if release.noise is not None and release.counts_privacy is not None:
        rows["of that, for the numbers"] = price(release.counts_privacy)
        rows["their noise"] = code(release.noise)
    if release.request is None:
        return section(
            "What it cost",
            facts(rows),
            paragraph(
                "No ledger was charged, so nothing adds this up. Every further release about the "
                "same people has its own privacy cost: see", f"{code('privmax budget --help')}.",
            ),
        )  # fmt: skip
    if ledger is not None:
        rows["charged to ledger"] = name(ledger)
    if account is not None:
        rows["and its account"] = name(account)
    rows["left when this was written" if left is not None else "left"] = (
        "not known when this was written" if left is None else price(left, left=True)
    )
    rows["request"] = code(release.request)
    return section(
        "What it cost, and what is left",
        facts(rows),
        paragraph(
            "The privacy cost was charged before anything was drawn, and the answer is recorded. "
            "Repeating the request id returns the recorded answer at no extra cost."
        ),
    )


def _mechanism(release: Release) -> str:
    mechanism = release.mechanism
    why = (
        "It was requested by name."
        if release.why == YOURS
        else f"privmax chose it from public facts only: {text(release.why)}."
    )
    about = (sys.modules[type(mechanism).__module__].__doc__ or "").strip().partition("\n")[0]
    return section(
        "Why this mechanism",
        paragraph(
            f"The answer was drawn by <strong>{text(type(mechanism).__name__)}</strong>.", why
        ),
        paragraph(text(about)) if about else "",
        paragraph(f"Exactly: {code(mechanism)}"),
    )


def _planning(release: Release, found: Plan | None, universe: Universe | None) -> str:
    if found is None:
        return ""
    from privmax.plots import planning, svg

    ran = type(release.mechanism).__name__
    notes = ["A lead is counted in records: one record is the most that one individual adds."]
    if found.chosen.name != ran:
        notes.append(
            f"The mark shows what privmax would choose for {winners(found.k)}; {text(ran)} ran "
            "here."
        )
    if found.universe is None and universe is not None and not universe.is_open:
        notes.append("A universe this large is planned for as if it were open.")
    if found.k == 1 and found.privacy.epsilon < QUICK and found.privacy.delta:
        notes.append(
            "The paper's mechanisms are left out: at such a small ε their leads take minutes to "
            "compute."
        )
    marked = next((number for number, row in enumerate(found.rows) if row.name == ran), None)
    released = f"{winners(found.k)} is" if found.k == 1 else f"all of {winners(found.k)} are"
    return section(
        "How clear a winner had to be" if found.k == 1 else "How clear the winners had to be",
        paragraph(
            f"The lead over all others at which {released} released in 95 of 100 cases, at this "
            "privacy cost. It depends only on the privacy cost and the universe, and was known "
            "before any data was read."
        ),
        picture(svg(planning(found))),
        f'<p class="note">{" ".join(notes)}</p>',
        f"<details><summary>As a "
        f"table</summary>{table(found.headings, found.cells(), marked)}</details>",
    )


def _plan(release: Release, universe: Universe) -> Plan | None:
    """The plan at the cost of the mechanism; None: there is none, as for a universe beyond 2^1000
    at delta 0.

    There is none either for costs that nobody would ask, nor for more winners than anybody reads.
    """
    mechanism: Any = release.mechanism
    price: Privacy = mechanism.privacy()
    huge = universe.size is not None and universe.size > LARGEST_UNIVERSE
    if (huge and not price.delta) or not SMALLEST_EPSILON <= price.epsilon <= LARGEST_EPSILON:
        return None
    options: dict[str, Any] = {
        "epsilon": price.epsilon,
        "delta": price.delta,
        "universe": Universe() if huge else universe,
        "neighbors": mechanism.neighbors,
        "growth": mechanism.growth,
    }
    if mechanism.k > 1:
        most = mechanism.k
        if most > MOST:
            return None
        return plan_over([most], ranked=release.ranked, **options)[most]
    quick = [known for known in MECHANISMS if known not in SLOW]
    return plan(**options, mechanisms=quick if price.epsilon < QUICK else None)


def _checks(release: Release, unit: str, found: Plan | None, proofs: Sequence[str]) -> str:
    mechanism = release.mechanism
    steps = []
    pages = list(dict.fromkeys([*_proofs(release), *proofs]))
    if pages:
        listed = ", ".join(map(code, pages))
        steps.append(paragraph(f"Read the proof in the documentation of privmax: {listed}."))
    audit = audit_command(mechanism)
    if audit is not None:
        steps += [
            paragraph(
                "Let the computer look for a counterexample. It compares the exact output "
                "probabilities of the mechanism on small data sets with those on all their "
                "neighbors."
            ),
            command(audit),
        ]
    if found is not None:
        steps += [
            paragraph("See what each mechanism needs here:"),
            command(_plan_command(mechanism, found)),
        ]
    if release.request is not None:
        steps += [
            paragraph("Check whether anybody changed the history of the budget:"),
            command("privmax budget verify FILE"),
        ]
    same = mechanism.neighbors != REPLACE
    way = "all scores in the same direction" if same else "scores in any direction"
    return section(
        "How to check",
        *steps,
        paragraph("What no computer can check, and the guarantee depends on:"),
        bullets(
            [
                f"The unit to protect is {text(unit)}. It moves {way}, by no more than was "
                "declared.",
                "Privacy cost, columns, universe and mechanism were chosen without looking at the "
                "data.",
                "Every release about the same people is counted, including those without an "
                "answer.",
            ]
        ),
    )


def proofs_of(kind: type) -> list[str]:
    """The pages with proofs that the module of a class names."""
    about = sys.modules[kind.__module__].__doc__ or ""
    return re.findall(r"^Proof:\s+(\S+)$", about, re.MULTILINE)


def _proofs(release: Release) -> list[str]:
    peels = release.mechanism.k > 1 and release.ranked
    listed = ["docs/proofs/peeling.md"] if peels else []
    counted = [] if release.noise is None else proofs_of(type(release.noise))
    return [*proofs_of(type(release.mechanism)), *listed, *proofs_of(type(release)), *counted]


def audit_command(mechanism: Any) -> str | None:
    """What to type to audit it; None: it has no name there, or not all of what it was made with can
    be typed.

    The data sets are small, and so are lists from them.
    """
    known = registered_name(mechanism)
    if known is None:
        return None
    defaults = {name: parameter.default for name, parameter in MECHANISMS[known].parameters.items()}
    given = {
        name: getattr(mechanism, name)
        for name, default in defaults.items()
        if getattr(mechanism, name) != default
    }
    if not given.keys() <= set(TYPED):
        return None
    if "k" in given:
        given["k"] = min(given["k"], AUDITED)
    kept = {name: given[name] for name in TYPED if name in given}
    return " ".join(["privmax audit", known, *_options(kept)])


def _plan_command(mechanism: Any, found: Plan) -> str:
    given = {
        "epsilon": found.privacy.epsilon,
        "delta": found.privacy.delta or None,
        "universe": found.universe,
    }
    replaced = REPLACE if found.neighbors == REPLACE else None
    options = _options({**given, "neighbors": replaced, "growth": mechanism.growth})
    many = [] if found.k == 1 else [f"--k {found.k}", *(["--ranked"] if found.ranked else [])]
    return " ".join(["privmax plan", *options, *many])


def _options(given: Mapping[str, object]) -> list[str]:
    """As they are typed; those that are None are not."""
    shown = {
        name: plain(value) if isinstance(value, Fraction) else str(value)
        for name, value in given.items()
    }
    return [f"--{name} {shown[name]}" for name, value in given.items() if value is not None]


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
