"""The model card: a page about a learner that was fitted.

All that it shows of the data was released with the model. The same release gives the same page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privmax.display import format_label
from privmax.errors import PrivmaxError, explain_install
from privmax.privacy import Privacy
from privmax.report.frame import page, question_rows, read_asked, read_words
from privmax.report.release_page import first_sentence, payment, promise, proofs_of

if TYPE_CHECKING:
    from privmax.learning.facts import Errors, ModelFacts, Term
    from privmax.learning.kinds import Column
    from privmax.learning.learned import Learned

PICTURED = 12
"""Tables that are drawn; all others are in words."""

LISTED = 12
"""Values of a column that are listed at once; the rest can be opened."""

ROWED = 200
"""Entries of a table in words."""


def card(
    learner: Any,
    *,
    question: str | None = None,
    target: str = "y",
    asked: Mapping[str, object] | None = None,
    unit: str | None = None,
    left: Privacy | None = None,
    ledger: str | None = None,
    account: str | None = None,
    repeated: bool = False,
    written: datetime | None = None,
) -> str:
    """Return a page about a fitted learner: what it is, what it cost, and what it is not for.

    Pictures need matplotlib. The page has what was released and public facts, and no true count.

    Args:
        learner: A fitted `PrivateGAM`, `PrivateClassifier`, `PrivateRegressor` or `PrivateTree`.
        question: What was asked, in words.
        target: What is predicted.
        asked: How, by name: the data, columns, options. All of it is shown, and must be public.
        unit: Whom the cost protects, as in "… had been left out of the data": "one person"; by
            default one of the learner's `unit`.
        left: What the ledger has left.
        ledger: Its name, and the account that was charged.
        repeated: Whether the model was recorded under its request earlier.
        written: When the page was written; now, by default.

    Raises:
        ParameterError: It is another learner.
        PrivmaxError: It has tables, and matplotlib is not installed.
    """
    from privmax.learning.facts import describe_model
    from privmax.learning.learned import Learned

    if not isinstance(learner, Learned):
        learner = Learned.of(learner, read_words("target", target))
    learned: Learned = learner
    release, facts = learned.release, describe_model(learned)
    for name, value in (("question", question), ("unit", unit)):
        if value is not None:
            read_words(name, value)
    return page(
        "card.html",
        written=written,
        title=f"privmax: {'no model' if facts is None else facts.kind}",
        note="Apart from what is listed as released, nothing here depends on the data.",
        question=question or f"Which model predicts “{learned.name}”?",
        learned=learned,
        facts=facts,
        of_number=facts is not None and facts.of_number,
        shares=[] if facts is None else _shares(facts),
        terms=[] if facts is None else _terms(facts, learned),
        more=0 if facts is None else max(len(facts.terms) - PICTURED, 0),
        cost_kind=_cost_kind(release.mechanism, facts),
        ways=[] if facts is None else _ways(facts),
        counts_noise=None if facts is None or facts.noise is None else number(facts.noise),
        start=None if facts is None or facts.start is None else _start(facts),
        spread=None if facts is None or facts.spread is None else number(facts.spread),
        errors_picture=None if facts is None or facts.errors is None else _errors(facts.errors),
        calibration=[] if facts is None or facts.calibration is None else _chances(facts),
        calibration_noise=None
        if facts is None or facts.calibration is None
        else number(facts.calibration.noise),
        unclear=None if facts is None else _unclear(facts),
        columns=[
            _column(name, one)
            for name, one in zip(learned.schema.names, learned.schema.columns, strict=True)
        ],
        asked=question_rows(read_asked(asked)),
        universe=None,
        proofs=list(dict.fromkeys([*proofs_of(type(release.mechanism)), *_learner_proofs(facts)])),
        about=first_sentence(type(release.mechanism).__doc__ or ""),
        **promise(release, unit or f"one {release.unit or 'row'}"),
        **payment(release, left=left, ledger=ledger, account=account, repeated=repeated),
    )


def _cost_kind(terms: Any, facts: ModelFacts | None) -> str:
    """Return what shares of the cost are of; a noisy count of rows has its share of ε."""
    if not _has_tables(facts) or not terms.privacy().delta:
        return "ε"
    return "ε for the count of rows, and in ρ for the rest" if _is_counted(terms) else "ρ"


def _is_counted(terms: Any) -> bool:
    """Return whether rows were counted with noise to decide which model it is."""
    return bool(getattr(terms, "counting", 0))


def number(value: float) -> str:
    """Return a number in about three digits, for people.

    Examples:
        >>> number(0.01234), number(-1.5), number(12345.6)
        ('0.0123', '−1.5', '12,346')
    """
    shown = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return shown.replace("-", "−")


def percent(share: Fraction | float) -> str:
    """Return a share of a cost in per cent.

    Examples:
        >>> percent(Fraction(1, 25)), percent(0.12345)
        ('4 %', '12.3 %')
    """
    return f"{float(100 * share):.3g} %"


def _has_tables(facts: ModelFacts | None) -> bool:
    return facts is not None and bool(facts.terms or facts.start is not None)


def _start(facts: ModelFacts) -> str:
    """Return what a prediction starts from."""
    assert facts.start is not None, "additive models have one"
    return number(facts.start) if facts.of_number else f"{100 * facts.start:.3g} %"


def _shares(facts: ModelFacts) -> list[list[str]]:
    """Return the rows of the table of costs beside those of columns."""
    return [[what, percent(share)] for what, share in facts.shares]


def _ways(facts: ModelFacts) -> list[list[str]]:
    """Return the rows of the table of leaves."""
    return [
        [
            way.test or "all rows",
            format_label(way.label),
            *(f"{count:,}".replace("-", "−") for count in way.counts),
            f"{100 * way.chance:.3g} %",
        ]
        for way in facts.ways
    ]


def _terms(facts: ModelFacts, learned: Learned) -> list[dict[str, Any]]:
    """Return what the page shows of each table, the largest first."""
    target = learned.name if facts.of_number else f"the log-odds of {learned.targets[1]}"
    rows = []
    for place, term in enumerate(facts.terms):
        drawn = _draw_shape(term, target) if place < PICTURED else None
        rows.append(
            {
                "name": term.name,
                "picture": drawn,
                "rounds": term.rounds,
                "share": percent(term.share),
                "size": number(term.size),
                "noise": "not known" if term.noise is None else number(term.noise),
                "entries": _entries(term),
                "left_out": max(len(term.entries) - ROWED, 0),
            }
        )
    return rows


def _draw_shape(term: Term, target: str) -> str:
    plots = _load_plots()
    return str(plots.svg(plots.shape(term.name, term.entries, label=target)))


def _load_plots() -> Any:
    """Return `privmax.plots`.

    Raises:
        PrivmaxError: matplotlib is not installed.
    """
    try:
        from privmax import plots
    except ImportError:
        raise PrivmaxError(
            "A model card with pictures needs matplotlib. " + explain_install("plot")
        ) from None
    return plots


def _entries(term: Term) -> list[list[str]]:
    """Return the rows of a table in words."""
    return [
        [str(one["cell"]), number(value), f"± {number(2 * one['noise'])}" if "noise" in one else ""]
        for one, value in list(zip(term.entries, term.values, strict=True))[:ROWED]
    ]


def _unclear(facts: ModelFacts) -> tuple[int, int] | None:
    """Return how many entries may be nothing but noise, and how many there are."""
    known = [term for term in facts.terms if term.noise is not None]
    every = sum(len(term.values) for term in known)
    return (sum(term.unclear for term in known), every) if every else None


def _errors(errors: Errors) -> str:
    plots = _load_plots()
    return str(plots.svg(plots.errors(errors.ends, errors.counts, errors.noise, wide=plots.NARROW)))


def _chances(facts: ModelFacts) -> list[list[str]]:
    """Return the rows of the table of calibration."""
    assert facts.calibration is not None, "labels were counted"
    told, tenths = facts.calibration, 100 // len(facts.calibration.counts)
    return [
        [
            f"{place * tenths} to {(place + 1) * tenths} %",
            *(f"{count:,}".replace("-", "−") for count in counts),
            "too few" if share is None else f"{100 * share[0]:.3g} ± {200 * share[1]:.2g} %",
        ]
        for place, (counts, share) in enumerate(zip(told.counts, told.shares(), strict=True))
    ]


def _column(name: str, column: Column) -> dict[str, Any]:
    """Return what the page shows of the declaration of a column."""
    declared = column.to_dict()
    declared.pop("kind", None)
    lists = {key: value for key, value in declared.items() if _is_list(value)}
    return {
        "name": name,
        "kind": type(column).__name__.lower(),
        "cells": column.cells,
        "facts": [
            f"{key} {_word(value)}"
            for key, value in declared.items()
            if key not in lists and value is not None and key != "cells"
        ],
        "lists": [
            {
                "name": key,
                "first": [_word(one) for one in value[:LISTED]],
                "rest": [_word(one) for one in value[LISTED:]],
            }
            for key, value in lists.items()
        ],
    }


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _word(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else format_label(value)


def _learner_proofs(facts: ModelFacts | None) -> list[str]:
    return ["privmax help proofs/additive"] if _has_tables(facts) else []
