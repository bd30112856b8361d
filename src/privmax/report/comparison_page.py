"""The page about a comparison of mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from privmax.planning.comparison import Comparison
from privmax.report.markup import (
    bullets,
    change_words,
    code,
    command,
    page,
    paragraph,
    picture,
    price,
    request_section,
    section,
    table,
    text,
    times,
    top,
)
from privmax.report.release_page import audit_command, proofs_of


def comparison(
    found: Comparison,
    *,
    data: str,
    question: str = "Which mechanism would do best?",
    asked: Mapping[str, object] | None = None,
    written: datetime | None = None,
) -> str:
    """A page about a comparison. It is as private as the data that was compared on: exact chances,
    without noise.

    data        on what, as in "Computed on …": "invented scores: 60, 20, 20"
    question    what was asked, in words
    asked       how, by name; all of it is shown
    written     when the page was written; now, by default
    """
    from privmax.plots import comparison as drawn
    from privmax.plots import svg

    marked = next(number for number, row in enumerate(found.rows) if row.chosen)
    return page(
        f"privmax: {question}",
        _top(found, question, data),
        section(
            "What each mechanism would do",
            picture(svg(drawn(found))),
            table(found.headings, found.cells(), marked),
            f'<div class="note">{bullets(map(text, found.notes()))}</div>',
        ),
        _price(found),
        request_section(asked or {}),
        _checks(found),
        written=written,
        note=f"It shows exact probabilities, without noise, on {data}.",
    )


def _top(found: Comparison, question: str, data: str) -> str:
    ahead = [row.name for row in found.rows if row.ahead]
    chosen = found.chosen
    if chosen.ahead:
        own = (
            "privmax chooses it by default."
            if len(ahead) == 1
            else f"privmax chooses {text(chosen.name)} by default."
        )
    else:
        own = f"privmax would choose {text(chosen.name)}, which is not the best here."
    chance = found.cells()[0][1]  # the first misses no more than those who are ahead
    if found.k == 1:
        best = "Most likely to release the best"
        reached = f"The best candidate would be released with a chance of {text(chance)}."
    else:
        best = f"Misses least of the best {found.k:,}"
        reached = f"Of the best {found.k:,} it would miss {text(chance)} on average."
    return top(
        "A comparison",
        question,
        best,
        f'<p class="one medium">{text(", ".join(ahead) or "None of them")}</p>',
        paragraph(reached, own),
        paragraph(f"Computed on {text(data)}. Nothing was released, and nothing was charged."),
    )


def _price(found: Comparison) -> str:
    return section(
        "The privacy cost they are compared at",
        paragraph(
            f"{price(found.privacy)} ({text(found.neighbors)}). Imagine the same data with one "
            f"individual {change_words(found.neighbors)}. Whichever mechanism runs, no conclusion "
            f"that anybody draws from its answer is more than e<sup>ε</sup> = "
            f"{times(found.privacy.epsilon)} times as likely as it would be from that other data, "
            "and none is less likely by more than that factor"
            + (", except with probability δ." if found.privacy.delta else ".")
        ),
        paragraph(
            "All of them give this guarantee. They differ in how often they find the best, and in "
            "what they must know."
        ),
    )


def _checks(found: Comparison) -> str:
    pages = dict.fromkeys(one for row in found.rows for one in proofs_of(type(row.mechanism)))
    audit = audit_command(found.chosen.mechanism)
    return section(
        "How to check",
        paragraph(
            f"The proofs are in the documentation of privmax: {', '.join(map(code, pages))}."
        ),
        paragraph("Let the computer look for a counterexample to the guarantee of the chosen one:")
        if audit
        else "",
        command(audit) if audit else "",
    )
