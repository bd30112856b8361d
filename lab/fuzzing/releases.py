"""Targets that release or write: scores and baskets in memory, ledgers, reports, fields of forms.

Sizes and costs stay where a release is quick: what large ones take is bounded elsewhere.
"""

from __future__ import annotations

import json
import sqlite3
import warnings
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import privmax
from lab.fuzzing.drawing import Draw, as_text, write
from lab.fuzzing.judging import READER, Target, WrongError, source_location
from privmax.errors import PrivmaxError
from privmax.explore.ask_page import read_question
from privmax.explore.datasets import read_datasets
from privmax.explore.keys_plan_page import KeysQuestion
from privmax.explore.plan_page import Question
from privmax.itemsets import top_itemsets
from privmax.learning import PrivateERM, Stumps
from privmax.ledger import Charge, Ledger
from privmax.ledger.checks import TRIGGERS
from privmax.ledger.events import EventRow, seal
from privmax.ledger.rows import COLUMNS
from privmax.mechanisms.registry import MECHANISMS
from privmax.privacy import Privacy
from privmax.report import checklist, registry
from privmax.report.deployment import Deployment
from privmax.testing import SeededCoins

COSTS = ["1", 1, 0.5, "1/3", "20", 0, -1, "x", float("nan"), float("inf"), None, True, "1e999"]
DELTAS = ["1e-6", 0, None, 1e-9, "0.5", 1, 2, "", float("nan")]


def _terms(draw: Draw) -> dict[str, Any]:
    """Terms of a release, most of them right."""
    terms: dict[str, Any] = {"epsilon": draw.pick(COSTS), "delta": draw.pick(DELTAS)}
    for _ in range(draw.byte() % 4):
        name = draw.pick(list(_OPTIONS))
        terms[name] = draw.value() if draw.byte() % 8 == 0 else draw.pick(_OPTIONS[name])
    return terms


_OPTIONS: dict[str, list[Any]] = {
    "mechanism": [*MECHANISMS, "no-such", None],
    "universe": ["open", 4, 30, "10^6", 0, [1, 2], ["a", "b", "c"], ("x", None), {}],
    "neighbors": ["add-remove", "replace", "other", None],
    "sensitivity": [1, 2, "0.5", 0, -1, "x"],
    "resolution": [None, "0.1", 1, 0, "x"],
    "growth": [None, 1, 3, 0],
    "k": [1, 2, 5, 0, -1, 1.0, True],
    "ranked": [True, False],
    "counts": [None, "0.5", 0],
    "unit": [None, "row", "", "\n"],
    "item": [None, "item", ["item", "more"]],
    "score": [None, "score"],
}


def _scores(draw: Draw) -> Any:
    """Candidates with scores, in one of the containers that may hold them."""
    many, kind = draw.byte() % 16, draw.byte() % 8
    scores: list[Any] = [_score(draw) for _ in range(many)]
    if kind == 0:
        return scores
    if kind == 1:
        return tuple(scores)
    if kind == 2:
        array = np.empty(many, dtype=object)
        array[:] = [[score] for score in scores] if draw.byte() % 8 == 0 else scores
        return array
    if kind == 3:
        numbers = np.array([draw.real() for _ in range(many)])
        with np.errstate(all="ignore"):
            return numbers.astype(draw.pick(["f8", "f4", "i8", "u1", "?", "M8[s]", "c16", "U3"]))
    if kind == 4:
        return draw.value()
    found: dict[Any, Any] = {}
    for score in scores:
        with suppress(TypeError, RuntimeError):
            found[draw.value() if draw.byte() % 2 else draw.text(6)] = score
    return found


def _score(draw: Draw) -> Any:
    return draw.value() if draw.byte() % 8 == 0 else draw.whole(1 + draw.byte() % 3)


def _group(terms: dict[str, Any]) -> dict[str, Any]:
    """Options by name as the values that hold them."""
    names = ("sensitivity", "resolution", "neighbors", "growth")
    moves = {name: terms.pop(name) for name in names if name in terms}
    if moves:
        terms["scores"] = privmax.Scores(**moves)
    if "unit" in terms:
        terms["ledger"] = privmax.Request(unit=terms.pop("unit"))
    return terms


def release_scores(data: bytes) -> None:
    """`select` on data in memory, with any options."""
    draw = Draw(data)
    terms = _group(_terms(draw))
    release = privmax.select(_scores(draw), coins=SeededCoins(1), **terms)
    _show(release)


def tell_law(data: bytes) -> None:
    """`law` on data in memory: probabilities that add up to 1."""
    draw = Draw(data)
    terms = _group(_terms(draw))
    for name in ("k", "ranked", "counts", "ledger"):
        terms.pop(name, None)
    terms.setdefault("mechanism", draw.pick(list(MECHANISMS)))
    law = privmax.law(_scores(draw), **terms)
    if isinstance(law, dict) and not abs(sum(law.values()) - 1) < 1e-6:
        raise WrongError("probabilities do not add up to 1")


def release_itemsets(data: bytes) -> None:
    """`top_itemsets` on a few small baskets in memory."""
    draw = Draw(data)
    terms: dict[str, Any] = {"epsilon": draw.pick(COSTS), "delta": draw.pick(DELTAS)}
    terms["size"] = draw.pick([1, 2, "2-3", (1, 2), "any", 0, "x", (2, 1), "2-", None, 1.5])
    terms["k"] = draw.pick([1, 2, 4, 0])
    terms["items"] = draw.pick(["open", 8, 0, ["a", "b"], [1, 1], None])
    terms["supports"] = draw.pick([None, None, "0.5"])
    rows = [
        [_label(draw) for _ in range(draw.byte() % 5)] if draw.byte() % 16 else draw.value()
        for _ in range(draw.byte() % 12)
    ]
    _show(top_itemsets(rows, coins=SeededCoins(1), **terms))


def _label(draw: Draw) -> Any:
    return draw.value() if draw.byte() % 8 == 0 else draw.byte() % 6


def learn_rule(data: bytes) -> None:
    """`PrivateERM` on rows that may be anything."""
    draw = Draw(data)
    columns = 1 + draw.byte() % 3
    odd = draw.byte() % 2
    rows = [
        [draw.value() if odd and draw.byte() % 8 == 0 else draw.byte() for _ in range(columns)]
        for _ in range(draw.byte() % 8)
    ]
    labels = [draw.value() if odd and draw.byte() % 8 == 0 else draw.byte() % 2 for _ in rows]
    cells = draw.pick([2, 4, 0, "x", 1.5, True])
    model = PrivateERM(
        Stumps(low=draw.pick([0, "a", [0]]), high=draw.pick([9, -1, [1, 2]]), cells=cells),
        labels=draw.pick([[0, 1], ["a", "b"], [0], None]),
        epsilon=draw.pick(COSTS),
        delta=draw.pick(DELTAS),
        coins=SeededCoins(1),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(rows, labels)
            model.predict(rows)
        except (ValueError, TypeError) as error:
            # what scikit-learn asks of every estimator that is given rows which are no numbers
            if isinstance(error, PrivmaxError) or source_location(error) not in _OF_SKLEARN:
                raise


_OF_SKLEARN = ("learning/estimator.py:_quietly", "learning/estimator.py:<lambda>")


def _show(release: Any) -> None:
    """All that a release says of itself."""
    repr(release)
    str(release)
    release._repr_html_()
    json.loads(release.to_json())


# Ledgers

BUDGET = Privacy(3, "1e-5")
PRICE = Charge(Privacy("0.1"), unit="user")
"""Of the same unit as `select`: a ledger holds one."""


@cache
def _ledger() -> bytes:
    """The file of a ledger with a charge, an answer and an account."""
    path = Path(write("template.db", b""))
    path.unlink()
    with Ledger.create(path, budget=BUDGET, who="me") as ledger:
        ledger.open_account("team", Privacy(1))
        ledger.charge(PRICE, {"mechanism": "x"}, request="first").record([1])
        scores = {"tea": 900, "ale": 3}
        privmax.select(scores, epsilon="0.5", delta="1e-6", ledger=ledger.request("second"))
    found = path.read_bytes()
    path.unlink()
    return found


def _use(path: str) -> None:
    """Everything that may be asked of the ledger in a file; each may be refused."""
    asked = (
        lambda: Ledger(path, who="me"),
        lambda: Ledger.names(path),
    )
    for ask in asked:
        with suppress(PrivmaxError):
            made = ask()
            if isinstance(made, Ledger):
                with made as ledger:
                    _ask(ledger)


def _ask(ledger: Ledger) -> None:
    repr(ledger)
    scores = {"tea": 900, "ale": 3}
    terms: dict[str, Any] = {"epsilon": "0.5", "delta": "1e-6"}
    for use in (
        lambda: [str(fault) for fault in ledger.verify()],
        lambda: list(ledger.history()),
        ledger.standing,
        lambda: (ledger.budget, ledger.spent, ledger.remaining, ledger.accounts()),
        lambda: ledger.left("team"),
        lambda: privmax.select(scores, ledger=ledger.request("second"), **terms),
        lambda: ledger.charge(PRICE, {"mechanism": "x"}, request="first"),
        lambda: ledger.charge(PRICE, {"mechanism": "x"}, account="team"),
        lambda: _report(ledger),
        ledger._repr_html_,
    ):
        with suppress(PrivmaxError):
            use()


def _report(ledger: Ledger) -> None:
    found = Deployment.of(ledger)
    registry.to_yaml(registry.fields(found))
    checklist.to_markdown(found)


def open_ledger(data: bytes) -> None:
    """The file of a ledger, with bytes of it changed, cut off, or another file altogether."""
    draw = Draw(data)
    kind = draw.byte() % 8
    if kind == 0:
        _use(write("budget.db", draw.rest()))
        return
    held = bytearray(_ledger())
    for _ in range(1 + draw.byte() % 8):
        place = draw.whole(3) % len(held)
        changed = draw.chunk(8)
        held[place : place + len(changed)] = changed
    if kind == 1:
        del held[draw.whole(3) % len(held) :]
    _use(write("budget.db", bytes(held)))


def open_forged(data: bytes) -> None:
    """A ledger to which somebody added an event with the right hash and anything in it."""
    draw = Draw(data)
    path = write("budget.db", _ledger())
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        for trigger in TRIGGERS:
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        for name in ("follow", "kept", "held", "head"):
            connection.execute(f"DROP TRIGGER IF EXISTS privmax_events_{name}")
        every = connection.execute(f"SELECT {COLUMNS} FROM privmax_events ORDER BY seq").fetchall()
        rows = [EventRow(*one) for one in every]
        place = draw.byte() % (len(rows) + 1)
        old = rows[min(place, len(rows) - 1)]
        row = old._replace(
            seq=draw.pick([place + 1, place + 1, place + 1, 0, -1, 9**9]),
            kind=draw.pick([old.kind, "reserved", "released", "granted", "account", "x"]),
            request=draw.pick([old.request, "first", "second", None, "third"]),
            account=draw.pick([old.account, "team", None]),
        )
        said: dict[str, Any] = {draw.pick(["body", "totals", "who", "moment"]): _said(draw, row)}
        row = row._replace(**said)
        with suppress(TypeError, ValueError):
            row = seal(rows[place - 1].hash if place else "", "default", row)
        with suppress(sqlite3.Error, UnicodeError):
            holes = ", ".join("?" * (1 + len(row)))
            connection.execute("DELETE FROM privmax_events WHERE seq >= ?", [place + 1])
            connection.execute(
                f"INSERT INTO privmax_events (ledger, {COLUMNS}) VALUES ({holes})",
                ["default", *row],
            )
            connection.execute("DROP TRIGGER IF EXISTS privmax_ledgers_kept")
            connection.execute("UPDATE privmax_ledgers SET seq = ?, hash = ?", [row.seq, row.hash])
    _use(path)


def _said(draw: Draw, row: EventRow) -> str:
    """JSON of an event with one value in it replaced, or no JSON at all."""
    if draw.byte() % 4 == 0:
        return as_text(draw.chunk(60))
    said: Any = json.loads(draw.pick([row.body, row.totals]))
    inner = said
    for _ in range(draw.byte() % 4):
        if isinstance(inner, dict) and inner:
            key = draw.pick(list(inner))
            if not isinstance(inner[key], dict | list):
                inner[key] = _json(draw)
                break
            inner = inner[key]
        elif isinstance(inner, list) and inner:
            inner[draw.byte() % len(inner)] = _json(draw)
            break
    return json.dumps(said, sort_keys=True, separators=(",", ":"))


def _json(draw: Draw) -> Any:
    simple: list[Any] = [
        None,
        True,
        -1,
        1e300,
        "1/0",
        "nan",
        "",
        [],
        {},
        [[]],
        "9" * 5000,
        {"int": "z"},
    ]
    return draw.text(12) if draw.byte() % 2 else draw.pick(simple)


# Pages of `privmax explore`

_FIELDS = (
    "dataset", "items", "where", "k", "ranked", "epsilon", "delta", "universe", "counts", "kind",
    "per_user", "other",
)  # fmt: skip
_PLANNED = (
    "epsilon", "delta", "k", "ranked", "universe", "near", "neighbors", "growth", "success",
    "per_user",
)  # fmt: skip
_GIVEN = [
    "1", "1e-6", "10^6", "open", "yes", "drink", "tea", "drink = 'x'", "0", "", "-1", "1/3", "keys",
]  # fmt: skip


def read_form(data: bytes) -> None:
    """Fields of the forms of `privmax explore`."""
    draw = Draw(data)
    given = {name: [_field(draw)] for name in _FIELDS if draw.byte() % 4}
    planned = {name: _field(draw) for name in _PLANNED if draw.byte() % 4}
    with suppress(PrivmaxError):
        question = draw.pick((Question, KeysQuestion)).of(planned)
        question.address()
        question.options()
        _ = question.lead if type(question) is Question else None
        question.changes()
    asked = read_question(given)
    asked.words()
    asked.canonical()
    asked.pairs("r")


def _field(draw: Draw) -> str:
    """What a browser sends: bytes that are no UTF-8 arrive as U+FFFD."""
    return draw.chunk(24).decode("utf-8", "replace") if draw.byte() % 2 else draw.pick(_GIVEN)


def describe_datasets(data: bytes) -> None:
    """--datasets of `privmax explore`, in TOML."""
    found = read_datasets({}, write("datasets.toml", data))
    for dataset in found.values():
        repr(dataset)
        _ = dataset.protects
        with suppress(PrivmaxError):
            dataset.select(list(dataset.columns[:1]), None)


TARGETS = (
    Target(
        "select",
        READER,
        "`select` in memory",
        release_scores,
        seeds=[
            b"\x00\x00\x00\x05\x06\x01\x02\x03\x04\x05\x06\x07\x08\x09",
            b"\x01\x00\x01\x01\x00\x05\x04\x07" + bytes(range(60)),
            b"\x00\x00\x02\x00\x06\x01\x04\x08\x02" + bytes(range(80)),
        ],
        longest=192,
    ),
    Target(
        "law",
        READER,
        "`law` in memory",
        tell_law,
        seeds=[b"\x00\x00\x00" + bytes([kind, 6, 7]) + bytes(range(40)) for kind in range(6)],
        longest=192,
    ),
    Target(
        "itemsets",
        READER,
        "`top_itemsets` in memory",
        release_itemsets,
        seeds=[bytes([0, 0, 1, 0, 0, 0, 6]) + bytes([1, 3, 1, 1, 1, 2, 1, 3]) * 6],
        longest=192,
    ),
    Target(
        "learn",
        READER,
        "`PrivateERM` in memory",
        learn_rule,
        seeds=[bytes([1, 0, 6]) + bytes(range(1, 20)) + bytes(8), bytes([2, 1, 7]) + bytes(60)],
        longest=192,
    ),
    Target(
        "ledger files",
        READER,
        "the file of a ledger",
        open_ledger,
        seeds=[
            b"\x02",
            b"\x02\x00\x10\x00\x00\x02xx",
            b"\x01\x00\x10\x20\x00\x02xx\x00\x30",
            b"\x00SQLite",
        ],
        words=[b"SQLite format 3\x00"],
        longest=96,
        needs=["privmax.ledger.sqlite", "privmax.ledger.payment"],
    ),
    Target(
        "forged events",
        READER,
        "a ledger with a sealed event of any author",
        open_forged,
        seeds=[bytes([place, 0, 0, 0, 0, kind, 1, 0, 2]) for place in range(5) for kind in (0, 1)],
        words=[b'"epsilon"', b'"1/0"', b'"tuple"', b"null", b"[]", b"{}"],
        longest=96,
        needs=["privmax.ledger.sqlite", "privmax.ledger.payment"],
    ),
    Target(
        "forms",
        READER,
        "fields of `privmax explore`",
        read_form,
        seeds=[bytes([1, 0, 0]) * 20, bytes([1, 0, 5]) * 18, bytes([1, 1, 3]) + b"1e6" * 8],
        words=[b"1e", b"10^", b"/", b"%", b"' or '", b"\x00"],
    ),
    Target(
        "datasets",
        READER,
        "`--datasets` of `privmax explore`",
        describe_datasets,
        seeds=[
            b'[log]\nfile = "log.csv"\ncolumns = ["drink"]\nwhere = ["country"]\nuser = "person"\n',
            b'[counts]\nfile = "sample:counts"\n[d]\nfile = "x.db"\ntable = "t"\ncolumns = "a,b"\n',
            b'[r]\nfile = "r.parquet"\ncolumns = "a"\nunit = "row"\ngrowth = 3\nabout = "rows"\n',
        ],
        words=[
            *(
                b"file = ",
                b"columns = ",
                b"where = ",
                b"user = ",
                b"score = ",
                b"unit = ",
                b"[x]\n",
            ),
            *(b"growth = ", b"about = ", b"table = ", b'"sample:', b"[[", b"]]", b"1979-05-27"),
        ],
    ),
)
