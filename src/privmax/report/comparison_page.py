"""The page about a comparison of mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from privmax.planning.comparison import Comparison
from privmax.report.frame import page, question_rows, read_asked, read_words
from privmax.report.release_page import audit_command, proofs_of
from privmax.report.words import change_words, times


def comparison(
    compared: Comparison,
    *,
    data: str,
    question: str = "Which mechanism would do best?",
    asked: Mapping[str, object] | None = None,
    written: datetime | None = None,
) -> str:
    """Return a page about a comparison.

    It is as private as the data that was compared on: exact chances, without noise.

    Args:
        data: On what, as in "Computed on …": "invented scores: 60, 20, 20".
        question: What was asked, in words.
        asked: How, by name; all of it is shown.
        written: When the page was written; now, by default.
    """
    from privmax.plots import NARROW, svg
    from privmax.plots import comparison as drawn

    return page(
        "comparison.html",
        written=written,
        title=f"privmax: {question}",
        note=f"It shows exact probabilities, without noise, on {data}.",
        comparison=compared,
        question=read_words("question", question),
        data=data,
        ahead=[row.name for row in compared.rows if row.ahead],
        reached=compared.cells()[0][1],  # the first misses no more than those who are ahead
        picture_svg=svg(drawn(compared, wide=NARROW)),
        marked=next(number for number, row in enumerate(compared.rows) if row.chosen),
        other=change_words(compared.neighbors),
        factor=times(compared.privacy.epsilon),
        asked=question_rows(read_asked(asked)),
        proofs=dict.fromkeys(
            one for row in compared.rows for one in proofs_of(type(row.mechanism))
        ),
        audit=audit_command(compared.chosen.mechanism),
    )
