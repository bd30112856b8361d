"""Ask: a question about a registered data set, what it would cost, and its answer.

Nothing of the data is read before the ledger is charged: forms and previews are made of what was
declared. An answer goes through the same pipeline as everywhere, under the id of its request: sent
twice it is charged once, and what was lost on the way can be had again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from privmax.advice import NO_ANSWER, next_steps
from privmax.cli.tables import item_table, to_csv
from privmax.display import format_label
from privmax.errors import BudgetError, LedgerError, ParameterError, PrivmaxError
from privmax.explore.datasets import Dataset
from privmax.explore.item_question import Asked
from privmax.explore.keys_question import AskedKeys
from privmax.explore.questions import FIELDS, ITEMS, KEPT, KEYS, read_field
from privmax.explore.security import REPORT_POLICY, TOKEN
from privmax.explore.state import Explorer, Notice, form, too_slow
from privmax.explore.work import SlowError
from privmax.keyset.release import KeysRelease
from privmax.ledger import Event, Ledger
from privmax.ledger.events import label, price_of
from privmax.ledger.shapes import UNREADABLE
from privmax.mechanisms.registry import describe_mechanism
from privmax.privacy import Privacy
from privmax.release import Release
from privmax.report.words import change_words, one_in, times
from privmax.universe import Universe

KINDS = {"select": Asked, "keys": AskedKeys}
"""The kinds of questions that these pages ask, by the command that a ledger records for them."""

SHARED = ("dataset", "items", "where", "epsilon", "delta", "counts", "account")
"""Fields of both kinds of questions."""

LISTED = 50
"""Keys that a page lists; files have all."""


def read_question(given: Mapping[str, Sequence[str]]) -> Asked | AskedKeys:
    """The question of a form."""
    kind = AskedKeys if read_field(given, "kind") == KEYS else Asked
    return kind.of(given)


async def show(explorer: Explorer, request: Request) -> Response:
    """The form."""
    missing = _missing(explorer)
    if missing:
        return explorer.page("missing.html", "ask", "Ask", missing=missing)
    assert explorer.ledger is not None
    sent = {key: request.query_params.getlist(key) for key in FIELDS if key in request.query_params}
    left, accounts = await explorer.in_thread(_balance, explorer.ledger)
    given = FIELDS | {key: values[-1] for key, values in sent.items()}
    kind = KEYS if given["kind"] == KEYS else ITEMS
    datasets = {
        name: one for name, one in explorer.datasets.items() if kind != KEYS or one.has_keys
    }
    if not datasets:
        return explorer.page("missing.html", "ask", "Ask", missing="users")
    chosen = datasets.get(given["dataset"]) or next(iter(datasets.values()))
    return explorer.page(
        "ask.html",
        "ask",
        "Ask",
        left=left,
        given=given,
        kept=[name for name in KEPT if name in sent],
        datasets={name: f"{name} – {one.about}" if one.about else name
                  for name, one in datasets.items()},
        chosen=chosen,
        kind=kind,
        kinds={one: f"/ask?{urlencode({**_flat(sent), 'kind': one}, doseq=True)}"
               for one in (ITEMS, KEYS)},
        ticked=sent.get("items", [chosen.columns[0]]),
        conditions=dict.fromkeys((*chosen.where, *chosen.columns)),
        accounts={"": "none"} | {name: name for name in accounts} if accounts else {},
        request_id=_new_id(),
    )  # fmt: skip


def _flat(sent: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the fields of a form that both kinds of questions have."""
    return {key: sent[key] for key in SHARED if key in sent}


def _balance(ledger: Ledger) -> tuple[Privacy, list[str]]:
    return ledger.remaining, sorted(ledger.accounts())


def _missing(explorer: Explorer) -> str:
    """Return what prevents asking: "ledger", "data" or "strictness"; empty: nothing does."""
    if explorer.ledger is None:
        return "ledger"
    if not explorer.datasets:
        return "data"
    return "" if explorer.ledger.strict or explorer.lenient else "strictness"


async def preview(explorer: Explorer, request: Request) -> Response:
    """Show the cost of a question, against what is left. Reads no data."""
    missing = _missing(explorer)
    if missing:
        return explorer.page("missing.html", "ask", "Ask", missing=missing)
    given = {
        key: request.query_params.getlist(key) for key in FIELDS if key in request.query_params
    }
    try:
        query = read_question(given)
        ident = _check_id(given.get("request", [""])[-1])
        shown = await explorer.in_thread(_preview, explorer, query, ident)
    except PrivmaxError as error:
        return explorer.page(
            "refused.html", "ask", "Ask", problem=explorer.refusal(error), status=422,
            change_address=f"/ask?{urlencode(given, doseq=True)}",
        )  # fmt: skip
    if shown is None:  # the id belongs to another question, as after going back and changing it
        return RedirectResponse(f"/ask/preview?{urlencode(query.pairs(_new_id()))}", 303)
    return explorer.page("preview.html", "ask", query.words(), **shown)


def _preview(explorer: Explorer, query: Asked | AskedKeys, ident: str) -> dict[str, Any] | None:
    """Return the content of the page, by name; None: the id belongs to another question."""
    assert explorer.ledger is not None
    ledger, dataset = explorer.ledger, _dataset(explorer, query)
    charged, _ = ledger.find(ident)
    if charged is not None:
        if recall(explorer, charged) != query.canonical():
            return None
        return {"is_charged": True, "answer_address": answer_address(ident)}
    prepared = query.prepare(dataset)
    question = prepared.question
    question.check()
    cost, left = question.charge(), ledger.left(query.account)
    fits = True
    try:
        ledger.require(cost, query.account)
    except BudgetError:
        fits = False
    mechanism, why = prepared.choose()
    privacy: Privacy = cost.privacy
    return {
        "is_charged": False,
        "dataset": dataset,
        "privacy": privacy,
        "left": left,
        "fits": fits,
        "rest": _rest(ledger, privacy, left),
        "factor": times(privacy.epsilon),
        "exception": one_in(privacy.delta) if privacy.delta else None,
        "other": change_words(mechanism.neighbors),
        "mechanism": describe_mechanism(mechanism, why),
        "request_id": ident,
        "fields": _form_fields(explorer, query, ident),
        "change_address": f"/ask?{urlencode(query.pairs(ident))}",
    }


def _rest(ledger: Ledger, privacy: Privacy, left: Privacy) -> Privacy | None:
    """Return the rest of the budget, where costs simply add up."""
    if ledger.rule != "basic" or privacy.epsilon > left.epsilon or privacy.delta > left.delta:
        return None
    return Privacy(left.epsilon - privacy.epsilon, left.delta - privacy.delta)


def _form_fields(explorer: Explorer, query: Asked | AskedKeys, ident: str) -> list[tuple[str, str]]:
    """The fields of the form that releases."""
    return [*query.pairs(ident), (TOKEN, explorer.gate.token)]


async def release(explorer: Explorer, request: Request) -> Response:
    """Charge, draw, record; then the page of the answer, which may be reloaded."""
    missing = _missing(explorer)
    if missing:
        return explorer.page("missing.html", "ask", "Ask", missing=missing, status=409)
    given = form(request)
    try:
        query = read_question(given)
        ident = _check_id(given.get("request", [""])[-1])
        await explorer.in_thread(_release, explorer, query, ident)
    except BudgetError as error:
        return explorer.page("refused.html", "ask", "Ask", over=error, status=409)
    except PrivmaxError as error:
        return explorer.page(
            "refused.html", "ask", "Ask", problem=explorer.refusal(error), status=422,
            request_id=given.get("request", [""])[-1],
        )  # fmt: skip
    return RedirectResponse(answer_address(ident), 303)


def _release(explorer: Explorer, query: Asked | AskedKeys, ident: str) -> Release:
    assert explorer.ledger is not None
    dataset = _dataset(explorer, query)
    paying = explorer.ledger.request(ident, account=query.account, dataset=dataset.name)
    return query.prepare(dataset).answer(paying)


def answer_address(ident: str, page: str = "") -> str:
    """Return the address of the answer to a request. An id may have any character."""
    return f"/answer{page}?{urlencode({'request': ident})}"


async def answer(explorer: Explorer, request: Request) -> Response:
    """The page of a request: its answer, or how to get it."""
    view = await explorer.in_thread(_look_up, explorer, request.query_params.get("request", ""))
    if view is None:
        problem = Notice("There is no such request in the ledger.", "error")
        return explorer.page("notice.html", "ask", "No such request", problem=problem, status=404)
    template, title, values = view
    return explorer.page(template, "ask", title, **values)


def _look_up(explorer: Explorer, ident: str) -> tuple[str, str, dict[str, Any]] | None:
    """The template of a request, its title and what it shows; None: there is no such request."""
    if explorer.ledger is None or not ident:
        return None
    try:
        charged, answered = explorer.ledger.find(_check_id(ident))
    except ParameterError:
        return None
    if charged is None:
        return None
    query = recall(explorer, charged)
    if answered is None:
        title = "Charged, not answered" if query is None else query.words()
        fields = None if query is None else _form_fields(explorer, query, ident)
        when = _minute(charged.when)
        return "unanswered.html", title, {"request_id": ident, "when": when, "fields": fields}
    if query is None:
        return "foreign.html", "An answer of the ledger", _foreign(ident, charged, answered)
    return "answer.html", query.words(), _answer(explorer, query, ident)


def _foreign(ident: str, charged: Event, answered: Event) -> dict[str, Any]:
    """An answer to a question that these pages do not ask, as the ledger has it."""
    return {
        "request_id": ident,
        "items": [format_label(str(item)) for item in answered.items[:LISTED]],
        "more": max(len(answered.items) - LISTED, 0),
        "who": charged.who,
        "when": _minute(charged.when),
        "asked": charged.question,
        "privacy": price_of(charged.body["price"]).privacy,
    }


def _answer(explorer: Explorer, query: Asked | AskedKeys, ident: str) -> dict[str, Any]:
    release = recall_answer(explorer, query, ident)
    assert explorer.ledger is not None
    most = LISTED if query.kind == KEYS else len(release.items)
    shown = list(map(format_label, release.items[:most]))
    counts = release.describe_numbers()[:most] or [""] * len(shown)
    universe = Universe.of(query.universe)
    return {
        "request_id": ident,
        "release": release,
        "answers": list(zip(shown, counts, strict=True)),
        "more": len(release.items) - len(shown),
        "other": release.describe_other() if isinstance(release, KeysRelease) else "",
        "is_table": query.kind == KEYS,
        "heading": ", ".join(query.items),
        "is_single": query.k == 1,
        "no_answer": NO_ANSWER.format("key" if query.kind == KEYS else "item").capitalize(),
        "steps": [] if shown else next_steps(release, universe=universe),
        "left": explorer.ledger.left_after(ident),
        "mechanism": describe_mechanism(release.mechanism, release.why),
        "when": _minute(release.recorded or ""),
        "report_address": answer_address(ident, "/report"),
        "json_address": answer_address(ident, "/release.json"),
        "csv_address": answer_address(ident, "/table.csv"),
        "handover_address": f"/handover?{urlencode({'request': ident})}",
    }


def recall_answer(explorer: Explorer, query: Asked | AskedKeys, ident: str) -> Release:
    """The recorded answer to a question; reads no data."""
    assert explorer.ledger is not None
    prepared = query.prepare(_dataset(explorer, query))

    def refuse(stack: ExitStack) -> object:
        raise LedgerError("The answer is not recorded yet.")

    paying = explorer.ledger.request(ident, account=query.account, dataset=query.dataset)
    return prepared.answer(paying, refuse)


def recall(explorer: Explorer, charged: Event) -> Asked | AskedKeys | None:
    """The question that a charge was for, in the form of these pages; None: it was asked
    elsewhere, or of a data set that is not registered now.
    """
    kind = KINDS.get(str(charged.question.command))
    dataset = explorer.datasets.get(str(charged.question.dataset))
    if kind is None or dataset is None:
        return None
    try:
        return _recall(kind, charged, dataset)
    except UNREADABLE:  # options that privmax would not have written
        return None


def _recall(
    kind: type[Asked] | type[AskedKeys], charged: Event, dataset: Dataset
) -> Asked | AskedKeys | None:
    cost = price_of(charged.body["price"])
    for query in kind.guess(charged, dataset):
        try:
            prepared = query.prepare(dataset)
            mechanism, _ = prepared.choose()
        except PrivmaxError:
            continue
        if prepared.question.charge() == cost and repr(mechanism) == charged.question.mechanism:
            return query.canonical()
    return None


async def report(explorer: Explorer, request: Request) -> Response:
    """The report about an answer, to be opened or saved."""
    ident = request.query_params.get("request", "")
    result = await explorer.in_thread(_report_about, explorer, ident)
    if result is None:
        problem = Notice("There is no report of this request.", "error")
        return explorer.page("notice.html", "ask", "No report", problem=problem, status=404)
    released, about = result
    try:
        page = await explorer.compute(request, "report", released, about)
    except SlowError:
        return explorer.page("notice.html", "ask", "The report", problem=too_slow(), status=503)
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
    query = None if charged is None or answered is None else recall(explorer, charged)
    if query is None:
        return None
    dataset, release = _dataset(explorer, query), recall_answer(explorer, query, ident)
    about = {
        "question": query.words(),
        "asked": {
            "dataset": query.dataset,
            "item": query.items,
            "user": dataset.user,
            "score": dataset.score,
            "where": query.where,
            "growth": dataset.growth,
            **query.describe(),
        },
        "unit": dataset.protects,
        "universe": Universe.of(query.universe),
        "answers": list(map(format_label, release.items)),
        "left": explorer.ledger.left_after(ident),
        "ledger": explorer.ledger.name,
        "account": query.account,
    }
    return release, about


async def as_json(explorer: Explorer, request: Request) -> Response:
    """The release as JSON, to be saved."""
    ident = request.query_params.get("request", "")
    answer = await explorer.in_thread(_report_about, explorer, ident)
    if answer is None:
        problem = Notice("There is no release of this request.", "error")
        return explorer.page("notice.html", "ask", "No release", problem=problem, status=404)
    head = {"Content-Disposition": f'attachment; filename="{_file_name(ident)}.json"'}
    return Response(answer[0].to_json(), media_type="application/json", headers=head)


async def as_csv(explorer: Explorer, request: Request) -> Response:
    """The released items as a table, to be saved."""
    ident = request.query_params.get("request", "")
    answer = await explorer.in_thread(_report_about, explorer, ident)
    if answer is None:
        problem = Notice("There is no release of this request.", "error")
        return explorer.page("notice.html", "ask", "No release", problem=problem, status=404)
    release, options = answer[0], answer[1]["asked"]
    ranked = options.get("k", 0) > 1 and release.ranked
    table = item_table(options["item"], options["counts"] is not None, ranked=ranked)
    head = {"Content-Disposition": f'attachment; filename="{_file_name(ident)}.csv"'}
    return Response(to_csv(table, release), media_type="text/csv; charset=utf-8", headers=head)


def _dataset(explorer: Explorer, query: Asked | AskedKeys) -> Dataset:
    dataset = explorer.datasets.get(query.dataset)
    if dataset is None:
        raise ParameterError("dataset", query.dataset, "no data set of that name is registered", "")
    return dataset


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
