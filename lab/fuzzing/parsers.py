"""Targets that parse: conditions, numbers, labels, names, rules, schemas, URLs, events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from typing import Any, NoReturn
from unittest import mock

import numpy as np

from lab.fuzzing.drawing import Draw, as_text, write
from lab.fuzzing.judging import PARSER, Target, WrongError
from privmax.cli.inputs import read_names, read_universe
from privmax.cli.messages import describe_error
from privmax.cli.passwords import hide_password, without_passwords, without_urls
from privmax.display import format_label, to_json
from privmax.encoding import decode, encode, recordable
from privmax.errors import PrivmaxError
from privmax.labels import by_name, is_unknown, label_by_value, plain_label, read_label
from privmax.learning.rules import check_rule, describe_rule
from privmax.learning.schema import Schema
from privmax.ledger.events import EventRow, seal
from privmax.ledger.replay import faults, follows
from privmax.ledger.rules import RULES
from privmax.mechanisms.registry import check_name
from privmax.numbers import (
    Amount,
    exact,
    open_probability,
    plain,
    positive,
    probability,
    round_down,
)
from privmax.privacy import Privacy
from privmax.sources.conditions import Condition
from privmax.sources.places import find_files, would_read
from privmax.universe import Universe


def parse_condition(data: bytes) -> None:
    """`where`: what it says is the same when it is written down and read again."""
    draw = Draw(data)
    cells = {"a": draw.text(8), "b": None, "country": "DE"}
    condition = Condition.of(as_text(draw.rest()))
    with suppress(PrivmaxError):
        condition.check(["a", "b"], shown=True)
    condition.check_text()  # as whoever reads a file does first
    kept = condition.keeps(cells.get)
    again = Condition.of(str(condition))
    if str(again) != str(condition) or again.keeps(cells.get) is not kept:
        raise WrongError("a condition is not what it is written down as")


def parse_number(data: bytes) -> None:
    """Parameters given as text: costs, probabilities, sizes, names of mechanisms."""
    kind, text = data[0] % 8 if data else 0, as_text(data[1:])
    if kind in _READ:
        _READ[kind](text)
        return
    number = exact("epsilon", text)
    if exact("epsilon", plain(number)) != number and len(plain(number)) < 1000:
        raise WrongError("a number is not what it is written down as")
    if "/" in round_down(number) or Fraction(str(Amount(number))) < number:
        raise WrongError("an amount is rounded down")
    format(Amount(number), ".3f")


_READ: dict[int, Callable[[str], object]] = {
    1: lambda text: positive("epsilon", text),
    2: lambda text: probability("delta", text),
    3: lambda text: open_probability("success", text),
    4: check_name,
    5: Universe.of,
    6: lambda text: Privacy(text, text),
}


def parse_label(data: bytes) -> None:
    """Labels of every type: one spelling each, which a ledger records and reads back."""
    draw = Draw(data)
    given = draw.value()
    plain_label(given)
    label = read_label(given)
    if label is None or is_unknown(label):
        return
    if label_by_value(label) != label:
        raise WrongError("the spelling of a label has another spelling")
    written = json.loads(json.dumps(encode(label)))
    if recordable([label]) and decode(written) != label:
        raise WrongError("a label is not what is recorded of it")
    format_label(label)
    to_json([encode(label)])
    sorted([label, "text", 1, ("a", 2)], key=by_name)


def parse_universe(data: bytes) -> None:
    """--universe and --items: a size, or a file of labels."""
    draw = Draw(data)
    if draw.byte() % 4 == 0:
        read_universe(as_text(draw.rest().replace(b"/", b"")), 1)
        return
    columns = 1 + draw.byte() % 3
    found = read_universe(write("universe.csv", draw.rest()), columns)
    found.plain_labels()


def parse_names(data: bytes) -> None:
    """--labels of itemsets: names to print, in JSON."""
    for name in read_names(write("names.json", data)).values():
        format_label(name)


def parse_rule(data: bytes) -> None:
    """What --save wrote and --apply reads, with its schema if it has one."""
    from privmax.cli.learn.apply import SavedRule, load_model

    label, saved = load_model(write("rule.json", data))
    values = [0.0, 1.0, 12.5] if saved.schema is None else [0, 1, 1]
    if len(saved.predict(np.tile(np.array(values)[:, None], len(saved.features())))) != 3:
        raise WrongError("a model gives another number of labels")
    if not isinstance(saved, SavedRule):
        return
    rule, schema = saved.rule, saved.schema
    describe_rule(rule, label)
    check_rule(json.loads(json.dumps(rule)), schema)


def parse_schema(data: bytes) -> None:
    """--schema: TOML or JSON."""
    kind = "json" if data[:1] in (b"{", b"[", b"\xef") else "toml"
    schema = Schema.from_file(write(f"schema.{kind}", data))
    if Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) != schema:
        raise WrongError("a schema is not what is written of it")
    if data[-1] % 4:
        return
    cells = schema.codes([[value] * schema.features for value in ("Private", "12", None, 1.5)])
    for column, codes in zip(schema.columns, cells, strict=True):
        for code in set(codes.tolist()):
            column.describe(code)


SECRET = "hunter2hunter2"


def parse_url(data: bytes) -> None:
    """URLs and names of data and ledgers; none is opened, and no message shows a password."""
    from privmax.ledger.ledger import Ledger
    from privmax.sources.databases import open_database

    draw = Draw(data[-1:])
    place = as_text(data[:-1])
    told: list[str] = []

    def attempt(call: Any) -> None:
        try:
            call()
        except PrivmaxError as error:
            told.append(describe_error(error))
            told.append(str(error))

    kind = draw.byte() % 4
    with ExitStack() as held, unconnected():
        if kind == 0:
            attempt(lambda: open_database(place, "table", held))
        elif kind == 1:
            attempt(lambda: Ledger.at(place).close())
        elif kind == 2 and "*" not in place:
            attempt(lambda: find_files(place))
        elif kind == 3:
            would_read(place.replace("*", ""), "out.csv")
    hide_password(place)
    without_urls(place)
    without_passwords(place)
    if f":{SECRET}@" in place and "://" in place and any(SECRET in one for one in told):
        raise WrongError("a message shows a password")


@contextmanager
def unconnected() -> Iterator[None]:
    """Nothing is connected to within: the drivers of databases answer as if nobody were there."""
    import ibis
    import psycopg

    def refuse(*given: Any, **options: Any) -> NoReturn:
        raise psycopg.OperationalError("nobody is there")

    with mock.patch.object(ibis, "connect", refuse), mock.patch.object(psycopg, "connect", refuse):
        yield


_EVENT = {
    "created": {"budget": {"epsilon": "3", "delta": "0"}, "name": "default", "rule": "basic"},
    "reserved": {
        "price": {"epsilon": "1", "delta": "0", "ranged": False, "neighbors": "add-remove"},
        "what": {"mechanism": "x"},
    },
}
_TOTALS = {
    "whole": {
        "budget": {"epsilon": "3", "delta": "0"},
        "spent": {"epsilon": "0", "delta": "0"},
        "state": {},
        "neighbors": None,
    }
}


def parse_events(data: bytes) -> None:
    """A history that somebody wrote, each event sealed with the right hash: faults, no errors."""
    draw = Draw(data)
    rows: list[EventRow] = []
    before = ""
    for seq in range(1, 2 + draw.byte() % 3):
        kind = draw.pick(["created", "reserved", "released", "granted", "account", "odd"])
        kind = "created" if seq == 1 and draw.byte() % 8 else kind
        body = as_text(draw.chunk(120)) if draw.byte() % 2 else json.dumps(_EVENT.get(kind, {}))
        totals = as_text(draw.chunk(120)) if draw.byte() % 2 else json.dumps(_TOTALS)
        request, account = draw.pick([None, "r", "s"]), draw.pick([None, "a"])
        number: Any = draw.pick([seq, seq, seq, seq + 1, "x", None, 0])
        row = EventRow(number, kind, "2026-01-01", "me", request, account, body, totals, "")
        with suppress(TypeError, ValueError):
            row = seal(before, "default", row)
        rows.append(row)
        before = row.hash
    faults("default", rows, (len(rows), before))
    rule = draw.pick(list(RULES.values()))
    follows("default", rule, rows[-1], rows[0] if len(rows) > 1 else None, None)


_JSON = [b'{"', b'":', b'",', b"[", b"]", b"{", b"}", b"null", b"true", b"1e999", b"NaN", b"\\u"]

TARGETS = (
    Target(
        "conditions",
        PARSER,
        "`where`",
        parse_condition,
        seeds=[
            b"\x02DEcountry = 'DE' and age >= 18",
            b"\x00not (a in ('x', 'y''z') or b is null) or \"a b\" between -1 and 2.5",
            b"\x01xa not starts with 'x' and b is not null and c <> true and d not in (1, 2)",
        ],
        words=[
            *(b" and ", b" or ", b"not ", b" in (", b" is null", b" between ", b" starts with "),
            *(b"true", b"false", b"'", b'"', b"(", b")", b"<=", b">=", b"<>", b"!=", b"==", b"1e9"),
        ],
    ),
    Target(
        "numbers",
        PARSER,
        "parameters as text",
        parse_number,
        seeds=[
            *(b"\x000.1", b"\x001/3", b"\x001e-6", b"\x00-1e999", b"\x0195%", b"\x021_000"),
            *(b"\x03nan", b"\x04nested-margin", b"\x05open", b"\x0510^6", b"\x061,5", b"\x06.5"),
        ],
        words=[b"e-", b"e+", b"10^", b"**", b"/", b"%", b"inf", b"nan", b"_", b"."],
        longest=64,
    ),
    Target(
        "labels",
        PARSER,
        "labels of every type",
        parse_label,
        seeds=[bytes([kind]) + b"\x05apple\x01\x02\x03\x04\x05\x06\x07" for kind in range(28)],
        words=[b"1e999", b"NaN", b"-0", b"\xff\xff\xff\xff"],
        longest=64,
    ),
    Target(
        "universe",
        PARSER,
        "`--universe`, `--items`",
        parse_universe,
        seeds=[
            b'\x01\x00tea\ncoffee\n"a,b"\n',
            b"\x01\x01a,1\r\nb,2\r\n",
            b"\x00\x0010^6",
            b"\x00\x00open",
        ],
        words=[b'"', b'""', b"\r\n", b",", b"\xef\xbb\xbf", b"\x00"],
    ),
    Target(
        "names",
        PARSER,
        "`--labels` of itemsets",
        parse_names,
        seeds=[b'{"1": "tea", "2": "milk"}', b'["tea", "milk"]', b'\xef\xbb\xbf{"1": null}'],
        words=_JSON,
    ),
    Target(
        "rules",
        PARSER,
        "`--apply`",
        parse_rule,
        seeds=[
            b'{"label": "card", "rule": {"label": 1}}',
            b'{"label": "card", "rule": {"when": "all", "tests": [{"feature": "age", "threshold": '
            b'12.0, "below": false}], "then": {"label": 1}, "else": {"label": 0}}}',
            b'{"label": "c", "schema": {"w": {"values": ["P"], "missing": "?"}, "a": {"low": 0, '
            b'"high": 9, "cells": 3}}, "rule": {"when": "any", "tests": [{"feature": "w", "equals":'
            b' "P", "not": false}], "then": {"label": 1}, "else": {"when": "all", "tests": '
            b'[{"feature": "a", "threshold": 3.0, "below": true}], "then": {"label": 0}, "else": '
            b'{"label": 1}}}}',
            b'{"label": "c", "labels": [0, 1], "schema": {"a": {"low": 0, "high": 9, "cells": 2}}, '
            b'"rule": null, "model": {"member": "additive model", "rows": 9, "model": {"intercept":'
            b' 3, "tables": [{"features": [0], "groups": [[0, 1]], "table": [-9, 9]}], "path": '
            b"[[0]]}}}",
        ],
        words=[
            *_JSON,
            *(b'"label"', b'"rule"', b'"schema"', b'"when"', b'"all"', b'"any"', b'"tests"'),
            *(b'"feature"', b'"threshold"', b'"below"', b'"then"', b'"else"', b'"equals"'),
            *(b'"state"', b'"not"', b'"missing"', b'"not listed"', b'"values"', b'"low"'),
        ],
        longest=512,
    ),
    Target(
        "schema",
        PARSER,
        "`--schema`",
        parse_schema,
        seeds=[
            b'[age]\nlow = 17\nhigh = 90\ncells = 4\n[work]\nvalues = ["Private"]\nmissing = "?"\n',
            b'{"age": {"low": 17, "high": 90}, "tax": {"thresholds": [1, 2.5], "missing": [-1]}}',
            b'[x]\nlow = 1\nhigh = 1e6\nscale = "log"\n["a b"]\nvalues = [1, 2, true]\n',
        ],
        words=[
            *(b"low = ", b"high = ", b"cells = ", b"scale = ", b'"log"', b"thresholds = [", b"inf"),
            *(b"values = [", b"missing = ", b"nan", b"1979-05-27T07:32:00Z", b"0x", b"1e308", b"-"),
            *(b'"low":', b'"high":', b'"values":[', b'"""', b"'''", b"[a]\n"),
        ],
        longest=512,
    ),
    Target(
        "urls",
        PARSER,
        "URLs of data and ledgers",
        parse_url,
        seeds=[
            *(
                b"postgresql://me:hunter2hunter2@host:5432/shop?sslmode=require\x00",
                b"x[1].csv\x02",
            ),
            *(b"postgres://me:hunter2hunter2@host/shop\x01", b"duckdb:///no/x.duckdb\x00"),
            *(b"sqlite://x.db\x00", b"s3://bucket/key.parquet\x00", b"mysql://[::1]:3306/x#y\x00"),
            *(b"budget.db\x01", b"user:hunter2hunter2@host/db\x01", b"a/*/b?.csv\x03"),
        ],
        words=[
            *(b"://", b":hunter2hunter2@", b"postgresql://", b"postgres://", b"mysql://", b"[::1]"),
            *(b"sqlite://", b"duckdb://", b"%00", b"?", b"#", b"@", b"\x00", b".db", b"[", b"]"),
        ],
        longest=128,
        needs=["ibis", "psycopg", "privmax.ledger.postgres", "privmax.ledger.sqlite"],
    ),
    Target(
        "events",
        PARSER,
        "events of a ledger",
        parse_events,
        seeds=[
            b"\x01\x00\x01\x00\x00\x00\x00\x00" + b"\x01\x01\x00\x00\x01\x00\x00",
            b"\x00\x00\x01\x01\x78" + json.dumps(_EVENT["created"]).encode(),
            b"\x00\x00\x01\x00\x01\x78" + json.dumps(_TOTALS).encode(),
        ],
        words=[
            *_JSON,
            *(b'"whole"', b'"account"', b'"budget"', b'"spent"', b'"state"', b'"epsilon"'),
            *(b'"delta"', b'"price"', b'"rule"', b'"basic"', b'"zcdp"', b'"pld"', b'"rho"'),
        ],
        longest=512,
    ),
)
