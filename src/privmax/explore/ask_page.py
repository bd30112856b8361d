"""Ask: a question about a registered data set, what it would cost, and its answer.

Nothing of the data is read before the ledger is charged: forms and previews are made of what was
declared. An answer goes through the same pipeline as everywhere, under the id of its request: sent
twice it is charged once, and what was lost on the way can be had again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from privmax.advice import NO_ANSWER, next_steps
from privmax.display import in_words
from privmax.errors import BudgetError, LedgerError, ParameterError, PrivmaxError
from privmax.explore.datasets import Dataset, Reading
from privmax.explore.markup import boxes, check, choice, field, hidden, notice
from privmax.explore.security import REPORT_POLICY, TOKEN
from privmax.explore.state import Explorer, form, too_slow
from privmax.explore.work import SlowError
from privmax.ledger import Event, Ledger
from privmax.ledger.events import label, price_of
from privmax.numbers import exact, plain
from privmax.privacy import Privacy
from privmax.release import Release
from privmax.report.markup import (
    bullets,
    cards,
    chance,
    change_words,
    code,
    facts,
    name,
    paragraph,
    price,
    text,
    times,
)
from privmax.selection import Selection
from privmax.sources.conditions import Condition
from privmax.universe import OPEN, Universe, read_whole

MOST = 1_000
"""The largest k that may be asked for."""

MOST_RANKED = 50
"""The same in order: which mechanism does that best takes long to find out."""

CREATE = "privmax budget create budget.db --strict --epsilon 3 --delta 1e-5"
START = "privmax explore --ledger budget.db --data try=sample:searches"

LONGEST = 2_000
"""Characters of a field."""

FIELDS = (
    "dataset", "items", "where", "k", "ranked", "epsilon", "delta", "universe", "counts",
    "account", "request",
)  # fmt: skip


KEPT = ("k", "ranked", "epsilon", "delta", "universe", "counts", "account")
"""Fields that do not depend on the data set."""


@dataclass(frozen=True)
class Asked:
    """A question, as the form says it."""

    dataset: str
    items: tuple[str, ...]
    epsilon: str
    delta: str = "0"
    k: int = 1
    ranked: bool = False
    universe: str = OPEN
    where: str | None = None
    counts: str | None = None
    account: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Sequence[str]]) -> Asked:
        """The question of a form."""

        def one(entry: str) -> str:
            value = given.get(entry, [""])[-1].strip()
            if len(value) > LONGEST:
                raise ParameterError(entry, "…", "it is too long", "")
            return value

        k = read_whole("k", one("k") or "1")
        if k is None or not 1 <= k <= MOST:
            raise ParameterError("k", one("k"), f"it must be from 1 to {MOST}", "")
        return cls(
            one("dataset"),
            tuple(given.get("items", ())),
            one("epsilon"),
            one("delta") or "0",
            k,
            bool(one("ranked")) and k > 1,
            one("universe") or OPEN,
            one("where") or None,
            one("counts") or None,
            one("account") or None,
        )

    def pairs(self, request: str) -> list[tuple[str, str]]:
        """The form again."""
        values = {
            "dataset": self.dataset,
            "where": self.where,
            "k": self.k,
            "ranked": "yes" if self.ranked else None,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "universe": None if self.universe == OPEN else self.universe,
            "counts": self.counts,
            "account": self.account,
            "request": request,
        }
        items = [("items", item) for item in self.items]
        return items + [(key, str(value)) for key, value in values.items() if value is not None]

    def prepare(self, dataset: Dataset) -> tuple[Selection, Reading]:
        """What runs, and how its data is read; opens nothing."""
        if not self.epsilon:
            raise ParameterError.required("epsilon", "", "For example 1.")
        if self.ranked and self.k > MOST_RANKED:
            raise ParameterError("k", self.k, f"pages release up to {MOST_RANKED} in order", "")
        return _prepare(self, dataset)

    def canonical(self) -> Asked:
        """The same question, spelled in the one way in which a ledger writes it."""
        universe = Universe.of(self.universe)
        return replace(
            self,
            epsilon=plain(exact("epsilon", self.epsilon)),
            delta=plain(exact("delta", self.delta)),
            universe=OPEN if universe.size is None else str(universe.size),
            where=None if self.where is None else str(Condition.of(self.where)),
            counts=None if self.counts is None else plain(exact("counts", self.counts)),
        )

    def words(self) -> str:
        """The question in words."""
        items = " and ".join(f"“{item}”" for item in self.items)
        many = f"Which {items} is" if self.k == 1 else f"Which {self.k} of {items} are"
        only = f", counting rows where {self.where}" if self.where else ""
        return f"{many} at the top of {self.dataset}{only}?"


@lru_cache(maxsize=256)
def _prepare(asked: Asked, dataset: Dataset) -> tuple[Selection, Reading]:
    """The same; remembered, because a mechanism for a long list takes seconds to choose."""
    reading = dataset.select(asked.items, asked.where)
    selection = Selection.of(
        reading.columns,
        unit=dataset.unit,
        universe=Universe.of(asked.universe),
        epsilon=asked.epsilon,
        delta=asked.delta,
        growth=dataset.growth,
        k=asked.k,
        ranked=asked.ranked,
        counts=asked.counts,
    )
    return selection, reading


async def show(explorer: Explorer, request: Request) -> Response:
    """The form."""
    missing = _missing(explorer)
    if missing:
        return explorer.page("ask", "Ask", missing)
    assert explorer.ledger is not None
    given = {
        key: request.query_params.getlist(key) for key in FIELDS if key in request.query_params
    }
    left, accounts = await explorer.in_thread(_balance, explorer.ledger)
    return explorer.page("ask", "Ask", _remainder(left), _form(explorer, given, accounts))


def _balance(ledger: Ledger) -> tuple[Privacy, list[str]]:
    return ledger.remaining, sorted(ledger.accounts())


def _missing(explorer: Explorer) -> str:
    """What keeps anybody from asking, as markup; empty: nothing does."""
    if explorer.ledger is None:
        return notice(
            "Nothing can be asked without a ledger, which keeps the privacy budget. Make one, then "
            f"start again: {code(CREATE)} and {code(START)}."
        )
    if not explorer.datasets:
        return notice(
            "No data set is registered. Start again with one: "
            f"{code('--data try=sample:searches')}, or a file of your own."
        )
    if not explorer.ledger.strict and not explorer.lenient:
        return notice(
            "This ledger is not strict: a release reads its data before it is charged, and an "
            "error then tells something about the data at no cost. Make a strict one: "
            f"{code('privmax budget create … --strict')}. If everybody who opens these pages may "
            f"see the data, start with {code('--lenient')}."
        )
    return ""


def _remainder(left: Privacy) -> str:
    return paragraph(f"Left of the budget: <strong>{price(left, left=True)}</strong>.")


def _form(explorer: Explorer, given: Mapping[str, list[str]], accounts: Sequence[str]) -> str:
    def one(entry: str, default: str = "") -> str:
        return given.get(entry, [default])[-1]

    chosen = explorer.datasets.get(one("dataset")) or next(iter(explorer.datasets.values()))
    ticked = given.get("items", [chosen.columns[0]])
    ids = {"request": _new_id()}
    names = {key: f"{key} – {one.about}" if one.about else key
             for key, one in explorer.datasets.items()}  # fmt: skip
    columns = [check("items", column, column, column in ticked) for column in chosen.columns]
    wheres = ", ".join(dict.fromkeys((*chosen.where, *chosen.columns)))
    parts = [
        boxes("what to release", *columns),
        field("k", "how many (k)", one("k", "1"), inputmode="numeric"),
        check("ranked", "their order, too", "yes", bool(one("ranked"))),
        field("epsilon", "ε, the privacy cost", one("epsilon", "1"), inputmode="decimal"),
        field("delta", "δ", one("delta", "1e-6"), inputmode="decimal",
              hint="0 needs a closed universe."),
        field("universe", "candidates there could be", one("universe"), placeholder="open",
              hint="A public number, if all of them are listed in the data; else leave it empty."),
        field("counts", "ε for noisy counts", one("counts"), placeholder="no counts",
              inputmode="decimal"),
        field("where", "only rows where", one("where"), placeholder="all rows",
              hint=f"Columns: {text(wheres)}. For example {text(chosen.columns[0])} != 'test'."),
    ]  # fmt: skip
    if accounts:
        options = {"": "none"} | {account: account for account in accounts}
        parts.append(choice("account", "account to charge as well", options, one("account")))
    kept = {key: one(key) for key in KEPT if one(key)}
    first = (
        '<form class="panel" action="/ask" method="get" aria-label="Data set">'
        + hidden(**kept)
        + choice("dataset", "data set", names, chosen.name,
                 hint=f"Protects {text(chosen.protects)}.")
        + ('<p class="buttons"><button class="quiet" type="submit">Choose</button></p>'
           if len(names) > 1 else "")
        + "</form>"
    )  # fmt: skip
    return first + (
        '<form class="panel" action="/ask/preview" method="get" aria-label="Question">'
        f"{hidden(dataset=chosen.name, **ids)}{''.join(parts)}"
        '<p class="buttons"><button type="submit">See what it costs</button></p>'
        '<p class="hint">Nothing is read and nothing is spent before you confirm.</p></form>'
    )


async def preview(explorer: Explorer, request: Request) -> Response:
    """What a question would cost, against what is left. Reads no data."""
    missing = _missing(explorer)
    if missing:
        return explorer.page("ask", "Ask", missing)
    given = {
        key: request.query_params.getlist(key) for key in FIELDS if key in request.query_params
    }
    try:
        asked = Asked.of(given)
        ident = _check_id(given.get("request", [""])[-1])
        told = await explorer.in_thread(_cost_in_words, explorer, asked, ident)
    except PrivmaxError as error:
        again = f"/ask?{urlencode(given, doseq=True)}"
        return explorer.page(
            "ask", "Ask", notice(text(explorer.describe(error)), "error"),
            f'<p><a class="button" href="{text(again)}">Change the question</a></p>', status=422,
        )  # fmt: skip
    if told is None:  # the id belongs to another question, as after going back and changing it
        return RedirectResponse(f"/ask/preview?{urlencode(asked.pairs(_new_id()))}", 303)
    return explorer.page("ask", asked.words(), told)


def _cost_in_words(explorer: Explorer, asked: Asked, ident: str) -> str | None:
    assert explorer.ledger is not None
    ledger, dataset = explorer.ledger, _dataset(explorer, asked)
    charged, _ = ledger.find(ident)
    if charged is not None:
        if recall(explorer, charged) != asked.canonical():
            return None
        return notice(
            "This question was charged already. Asking it again under the same request returns the "
            "recorded answer and costs nothing more.",
        ) + _to_answer(ident)
    selection, _ = asked.prepare(dataset)
    terms = selection.terms
    terms.check()
    cost, left = terms.cost(), ledger.left(asked.account)
    fits = True
    try:
        ledger.require(cost, asked.account)
    except BudgetError:
        fits = False
    mechanism, why = terms.choice
    privacy: Privacy = cost.privacy
    words = [
        f"It costs <strong>{price(privacy)}</strong> of the {price(left, left=True)} that is left.",
        _after(ledger, privacy, left),
    ]
    means = (
        f"Whatever comes out, no conclusion about {text(dataset.protects)} becomes more than "
        f"{times(privacy.epsilon)} times as likely as with it {change_words(mechanism.neighbors)}"
        + (f", except with {chance(privacy.delta)}." if privacy.delta else ".")
    )
    known = {
        "data set": name(asked.dataset),
        "mechanism": f"{text(type(mechanism).__name__)}: {text(why)}",
        "request": code(ident),
    }
    if not fits:
        words = [
            f"It would cost <strong>{price(privacy)}</strong>, and {price(left, left=True)} is "
            "left. <strong>The budget does not allow it.</strong> Nothing was spent."
        ]
    body = paragraph(*words) + paragraph(means) + facts(known)
    return (
        body
        + (_confirm(explorer, asked, ident) if fits else "")
        + (
            f'<p><a class="button quiet" href="/ask?{text(urlencode(asked.pairs(ident)))}">'
            "Change the question</a></p>"
        )
    )


def _after(ledger: Ledger, privacy: Privacy, left: Privacy) -> str:
    if ledger.rule != "basic" or privacy.epsilon > left.epsilon or privacy.delta > left.delta:
        return ""
    rest = Privacy(left.epsilon - privacy.epsilon, left.delta - privacy.delta)
    return (
        f"After it, {price(rest, left=True)} is left. The cost is the same if there is no answer."
    )


def _confirm(explorer: Explorer, asked: Asked, ident: str) -> str:
    fields = "".join(hidden(**{key: value}) for key, value in asked.pairs(ident))
    return (
        '<form action="/ask/release" method="post" data-once aria-label="Confirm">'
        f"{fields}{hidden(**{TOKEN: explorer.gate.token})}"
        '<p class="buttons"><button type="submit">Spend it and release</button></p>'
        '<p class="sent" role="status" hidden>Sent. The answer comes on the next page …</p></form>'
    )


async def release(explorer: Explorer, request: Request) -> Response:
    """Charge, draw, record; then the page of the answer, which may be reloaded."""
    missing = _missing(explorer)
    if missing:
        return explorer.page("ask", "Ask", missing, status=409)
    given = form(request)
    try:
        asked = Asked.of(given)
        ident = _check_id(given.get("request", [""])[-1])
        await explorer.in_thread(_release, explorer, asked, ident)
    except BudgetError as error:
        words = (
            f"The budget does not allow it: it costs {price(error.cost)}, and "
            f"{price(error.left, left=True)} is left. Nothing was spent."
        )
        return explorer.page("ask", "Ask", notice(words, "error"), status=409)
    except PrivmaxError as error:
        words = text(explorer.describe(error))
        return explorer.page(
            "ask", "Ask", notice(words, "error"), _to_answer_if_known(given), status=422
        )
    return RedirectResponse(answer_address(ident), 303)


def _release(explorer: Explorer, asked: Asked, ident: str) -> Release:
    assert explorer.ledger is not None
    dataset = _dataset(explorer, asked)
    selection, reading = asked.prepare(dataset)
    paying = explorer.ledger.request(ident, account=asked.account, dataset=dataset.name)
    return selection.answer(reading, paying, ready=reading.ready)


def answer_address(ident: str, page: str = "") -> str:
    """Where the answer to a request stands. An id may hold any character."""
    return f"/answer{page}?{urlencode({'request': ident})}"


def _to_answer(ident: str) -> str:
    return f'<p><a class="button" href="{text(answer_address(ident))}">See the answer</a></p>'


def _to_answer_if_known(given: Mapping[str, Sequence[str]]) -> str:
    ident = given.get("request", [""])[-1]
    return (
        "<p>If it was charged, the request stands in the "
        f'<a href="/history">history</a> as {code(ident)}, and can be repeated at no cost.</p>'
    )


async def answer(explorer: Explorer, request: Request) -> Response:
    """The page of a request: its answer, or how to get it."""
    found = await explorer.in_thread(_look_up, explorer, request.query_params.get("request", ""))
    if found is None:
        words = notice("There is no such request in the ledger.", "error")
        return explorer.page("ask", "No such request", words, status=404)
    return explorer.page("ask", *found)


def _look_up(explorer: Explorer, ident: str) -> tuple[str, ...] | None:
    if explorer.ledger is None or not ident:
        return None
    try:
        charged, answered = explorer.ledger.find(_check_id(ident))
    except ParameterError:
        return None
    if charged is None:
        return None
    asked = recall(explorer, charged)
    if answered is None:
        return _page_without_answer(explorer, asked, ident, charged)
    if asked is None:
        return _foreign(explorer, ident, charged, answered)
    return _page_with_answer(explorer, asked, ident)


def _page_without_answer(
    explorer: Explorer, asked: Asked | None, ident: str, charged: Event
) -> tuple[str, ...]:
    words = notice(
        f"This request was charged on {text(_minute(charged.when))}, and its answer was never "
        "recorded: the server, or the machine, stopped in the middle. Asking again costs nothing "
        "more.",
        "warning",
    )
    if asked is None:
        return (
            "Charged, not answered",
            words,
            paragraph(
                f"It was asked elsewhere: repeat it there, under the same request, {code(ident)}."
            ),
        )
    return (
        asked.words(),
        words,
        _confirm(explorer, asked, ident).replace(
            "Spend it and release", "Get the answer, at no cost"
        ),
    )


def _foreign(explorer: Explorer, ident: str, charged: Event, answered: Event) -> tuple[str, ...]:
    """An answer to a question that these pages do not ask: as the ledger holds it."""
    what = charged.body.get("what", {})
    items = answered.body["answer"].get("items", [])
    shown = [name(in_words(str(item))) for item in items] or ["no answer"]
    return (
        "An answer of the ledger",
        f'<div class="answer">{bullets(shown)}</div>',
        facts(
            {
                "asked by": text(charged.who),
                "when": text(_minute(charged.when)),
                "command": code(what.get("command", "–")),
                "mechanism": code(what.get("mechanism", "–")),
                "privacy cost": price(price_of(charged.body["price"]).privacy),
                "request": code(ident),
            }
        ),
    )


def _page_with_answer(explorer: Explorer, asked: Asked, ident: str) -> tuple[str, ...]:
    found = recall_answer(explorer, asked, ident)
    assert explorer.ledger is not None
    left = explorer.ledger.left_after(ident)
    shown = list(map(in_words, found.items))
    counts = found.describe_counts() or [""] * len(shown)
    if not shown:
        told = f'<p class="one">{text(NO_ANSWER.format("item").capitalize())}.</p>'
        steps = next_steps(found, universe=Universe.of(asked.universe))
        told += f"<p>What may help:</p>{bullets(map(text, steps))}"
    elif asked.k == 1:
        told = f'<p class="one">{name(shown[0])} {text(counts[0])}</p>'
    else:
        listed = "".join(
            f"<li>{name(item)} {text(count)}</li>"
            for item, count in zip(shown, counts, strict=True)
        )
        kind = "ol" if found.ranked else "ul"
        told = f"<{kind}>{listed}</{kind}>"
    report = text(answer_address(ident, "/report"))
    saved = text(answer_address(ident, "/release.json"))
    over = text(urlencode({"request": ident}))
    links = (
        f'<p class="buttons"><a class="button" href="{report}">Open the report</a> '
        f'<a class="button quiet" href="{report}&amp;download=yes">Save the report</a> '
        f'<a class="button quiet" href="{saved}">Save as JSON</a> '
        f'<a class="button quiet" href="/handover?{over}">Hand over</a></p>'
    )
    return (
        asked.words(),
        f'<div class="answer" role="status"><p class="what">Released</p>{told}</div>',
        "".join(paragraph(text(note)) for note in found.notes),
        cards(
            {
                "Privacy cost": price(found.privacy),
                "Left after it": price(left, left=True),
                "Mechanism": f"{text(type(found.mechanism).__name__)}: {text(found.why)}",
            }
        ),
        facts({"request": code(ident), "recorded": text(_minute(found.recorded or ""))}),
        paragraph("Reloading this page costs nothing: the answer is recorded."),
        links,
    )


def recall_answer(explorer: Explorer, asked: Asked, ident: str) -> Release:
    """The recorded answer to a question; reads no data."""
    assert explorer.ledger is not None
    selection, reading = asked.prepare(_dataset(explorer, asked))

    def refuse(stack: ExitStack) -> object:
        raise LedgerError("The answer is not recorded yet.")

    paying = explorer.ledger.request(ident, account=asked.account, dataset=asked.dataset)
    return selection.answer(refuse, paying, ready=reading.ready)


def recall(explorer: Explorer, charged: Event) -> Asked | None:
    """The question that a charge was for, in the form of these pages; None: it was asked
    elsewhere, or of a data set that is not registered now.
    """
    what, options = charged.body.get("what", {}), charged.body.get("what", {}).get("options", {})
    dataset = explorer.datasets.get(str(what.get("dataset")))
    if what.get("command") != "select" or dataset is None:
        return None
    item = options.get("item", what.get("columns", {}).get("item"))
    cost = price_of(charged.body["price"])
    counts = options.get("counts")
    epsilon = cost.privacy.epsilon - (Fraction(counts) if counts else 0)
    universe = str(options.get("universe", OPEN))
    for delta in (cost.privacy.delta, cost.privacy.delta / 2):
        for ranked in (False, True):
            asked = Asked(
                dataset.name,
                (item,) if isinstance(item, str) else tuple(item or ()),
                plain(epsilon),
                plain(delta),
                options.get("k", 1),
                ranked and options.get("k", 1) > 1,
                universe,
                options.get("where"),
                None if counts is None else plain(Fraction(counts)),
                charged.account,
            )
            try:
                terms = asked.prepare(dataset)[0].terms
            except PrivmaxError:
                continue
            if terms.cost() == cost and repr(terms.choice.mechanism) == what.get("mechanism"):
                return asked.canonical()
    return None


async def report(explorer: Explorer, request: Request) -> Response:
    """The report about an answer, to be opened or saved."""
    ident = request.query_params.get("request", "")
    found = await explorer.in_thread(_report_about, explorer, ident)
    if found is None:
        words = notice("There is no report of this request.", "error")
        return explorer.page("ask", "No report", words, status=404)
    released, about = found
    try:
        page = await explorer.compute(request, "report", released, about)
    except SlowError:
        return explorer.page("ask", "The report", too_slow(), status=503)
    headers = {"Content-Security-Policy": REPORT_POLICY}
    if request.query_params.get("download"):
        headers["Content-Disposition"] = f'attachment; filename="{_file_name(ident)}.html"'
    return HTMLResponse(page, headers=headers)


def _report_about(explorer: Explorer, ident: str) -> tuple[Release, dict[str, Any]] | None:
    if explorer.ledger is None:
        return None
    try:
        charged, answered = explorer.ledger.find(_check_id(ident))
    except ParameterError:
        return None
    asked = None if charged is None or answered is None else recall(explorer, charged)
    if asked is None:
        return None
    dataset, found = _dataset(explorer, asked), recall_answer(explorer, asked, ident)
    about = {
        "question": asked.words(),
        "asked": {
            "dataset": asked.dataset,
            "item": asked.items,
            "user": dataset.user,
            "score": dataset.score,
            "where": asked.where,
            "growth": dataset.growth,
            "k": asked.k,
            "ranked": asked.ranked or None,
            "counts": asked.counts,
        },
        "unit": dataset.protects,
        "universe": Universe.of(asked.universe),
        "answers": list(map(in_words, found.items)),
        "left": explorer.ledger.left_after(ident),
        "ledger": explorer.ledger.name,
        "account": asked.account,
    }
    return found, about


async def as_json(explorer: Explorer, request: Request) -> Response:
    """The release as JSON, to be saved."""
    ident = request.query_params.get("request", "")
    found = await explorer.in_thread(_report_about, explorer, ident)
    if found is None:
        words = notice("There is no release of this request.", "error")
        return explorer.page("ask", "No release", words, status=404)
    head = {"Content-Disposition": f'attachment; filename="{_file_name(ident)}.json"'}
    return Response(found[0].to_json(), media_type="application/json", headers=head)


def _dataset(explorer: Explorer, asked: Asked) -> Dataset:
    found = explorer.datasets.get(asked.dataset)
    if found is None:
        raise ParameterError("dataset", asked.dataset, "no data set of that name is registered", "")
    return found


def _new_id() -> str:
    return f"explore-{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(8)}"


def _check_id(given: str) -> str:
    """The id of a request, if it is one."""
    return label("request", given) if given else label("request", _new_id())


def _file_name(ident: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in ident)
    return f"privmax-{kept[:60]}"


def _minute(when: str) -> str:
    return f"{datetime.fromisoformat(when):%Y-%m-%d %H:%M} UTC" if when else "–"
