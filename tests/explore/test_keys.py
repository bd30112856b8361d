"""Keys on the pages: plans that agree with the library, one charge, and a table with all keys."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shlex
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import privmax
from privmax.cli import main
from privmax.explore.ask_page import LISTED
from privmax.explore.datasets import Dataset
from privmax.explore.jobs import plan_for_keys
from privmax.explore.keys_plan_page import KeysQuestion
from privmax.explore.server import application
from privmax.keyset.plans import STEPS
from privmax.packing import FEW
from privmax.privacy import Privacy

HERE = "http://127.0.0.1:8765"  # as in conftest.py
QUESTION = {"kind": "keys", "dataset": "log", "items": "drink", "epsilon": "1", "delta": "1e-6"}
PLANS = [
    {},
    {"epsilon": "0.7", "delta": "1e-9", "per_user": "3"},
    {"per_user": "1", "success": "0.5"},
]


def shown(page: str) -> list[str]:
    """What a page offers to copy: Python, command, address."""
    return [unescape(one) for one in re.findall(r"<pre[^>]*><code>(.*?)</code>", page, re.DOTALL)]


def table(page: str) -> dict[str, list[str]]:
    """The rows of the table, by what is at their left."""
    found = re.findall(r'<tr[^>]*><th scope="row">(.*?)</th>(.*?)</tr>', page, re.DOTALL)
    return {
        unescape(re.sub(r"<[^>]*>", "", name)): [
            unescape(re.sub(r"<[^>]*>", "", one)) for one in re.findall(r"<td.*?</td>", cells)
        ]
        for name, cells in found
    }


@pytest.fixture
def many(explorer, tmp_path):
    """A data set of more keys than a ledger keeps as a list."""
    file = tmp_path / "many.csv"
    lines = (f"{who},k{who % (FEW + 1)}\n" for who in range(40 * (FEW + 1)))
    file.write_text("person,drink\n" + "".join(lines))
    given = {"file": str(file), "columns": ["drink"], "user": "person"}
    explorer.datasets = {**explorer.datasets, "many": Dataset.of("many", given)}


@pytest.mark.parametrize("given", PLANS)
def test_a_plan_is_that_of_the_command_and_of_python(client, given):
    page = client.get("/plan/keys", params=given).text
    python, command, link = shown(page)[:3]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(python, {"privmax": privmax})
    ran = CliRunner().invoke(main, shlex.split(command)[1:])
    assert (ran.exit_code, ran.output) == (0, printed.getvalue())
    rows = {name: cells[:2] for name, cells in table(page).items()}
    assert len(rows) == 3 if given.get("per_user") == "1" else 4
    for name, cells in rows.items():
        line = next(line for line in ran.output.splitlines() if line.startswith(f"{name} "))
        assert line.split()[-2:] == cells
    assert client.get(link.removeprefix(HERE)).text == page
    part = client.get("/plan/keys", params=given, headers={"HX-Request": "true"})
    assert part.headers["hx-replace-url"] == link.removeprefix(HERE)
    assert part.text in page


def test_the_picture_is_over_the_keys_of_each_individual(client):
    found = plan_for_keys({"epsilon": "1", "delta": "1e-6", "per_user": 7})
    for name, line in found["curves"].items():
        numbers = sorted({*STEPS, 7})
        assert [number for number, _ in line] == (numbers[1:] if "nothing" in name else numbers)
        rows = privmax.plan_keys(epsilon=1, delta=1e-6, per_user=7).rows
        assert dict(line)[7] == next(row.several for row in rows if row.name == name)
    page = client.get("/plan/keys").text
    assert page.count("<polyline") == 4
    assert ">1,000</text>" in page


def test_a_plan_leads_to_its_question(client):
    page = client.get("/plan/keys", params={"epsilon": "2", "per_user": "3"}).text
    link = unescape(re.search(r'href="(/ask\?[^"]+)"', page)[1])
    assert parse_qs(urlsplit(link).query) == {"epsilon": ["2"], "per_user": ["3"], "kind": ["keys"]}
    form = client.get(link).text
    assert 'id="per_user" name="per_user" value="3"' in form
    assert 'id="epsilon" name="epsilon" value="2"' in form
    assert 'name="k"' not in form
    assert KeysQuestion.of({}).address() == "/plan/keys"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"delta": "0"}, "a key of one individual hidden"),
        ({"delta": ""}, "delta is required"),
        ({"epsilon": ""}, "epsilon is required"),
        ({"epsilon": "0"}, "epsilon='0'"),
        ({"per_user": "0"}, "per_user='0'"),
        ({"per_user": "many"}, "per_user"),
        ({"per_user": "65537"}, "must not exceed 65,536"),
        ({"success": "1"}, "success='1'"),
    ],
    ids=str,
)
def test_plans_that_cannot_be_made_say_why(client, given, words):
    page = client.get("/plan/keys", params=given)
    assert page.status_code == 200
    assert words in unescape(page.text)
    assert "<polyline" not in page.text


def test_from_the_form_to_the_table_and_its_files(client, send, explorer):
    form = client.get("/ask", params={"kind": "keys", "dataset": "log"}).text
    request = re.search(r'name="request" value="([^"]+)"', form)[1]
    assert '<input type="hidden" name="kind" value="keys">' in form
    given = {**QUESTION, "counts": "2", "other": "yes", "per_user": "2", "request": request}
    preview = client.get("/ask/preview", params=given).text
    assert "It costs <strong>ε&nbsp;=&nbsp;3," in preview
    assert "KeySearch" in preview
    assert not explorer.ledger.spent.epsilon
    sent = send("/ask/release", **given)
    assert sent.status_code == 303
    page = client.get(sent.headers["location"]).text
    assert "1 keys" not in page
    assert '<p class="one">1 key</p>' in page
    ((name, (count,)),) = table(page).items()
    assert name == "tea"
    assert re.fullmatch(r"\d+ ± \d+ \(95 %\)", count)
    assert re.search(r"<p>-?\d+ ± \d+ \(95 %\) individuals have none of the keys.</p>", page)
    about = {"request": request}
    saved = json.loads(client.get("/answer/release.json", params=about).text)
    assert saved["items"] == ["tea"]
    written = client.get("/answer/table.csv", params=about)
    assert written.headers["content-disposition"].endswith('.csv"')
    header, row = csv.reader(io.StringIO(written.text))
    assert header == ["drink", "count", "error"]
    assert row == ["tea", str(saved["counts"][0]), str(saved["error"])]
    report = client.get("/answer/report", params=about).text
    assert "Which “drink” of log do enough individuals have?" in report
    assert "individuals have none of the keys" in report
    assert "keys: log, drink" in client.get("/history").text
    assert client.get("/handover", params=about).status_code == 200
    assert send("/ask/release", **given).status_code == 303
    assert explorer.ledger.spent == Privacy(3, explorer.ledger.spent.delta)


@pytest.mark.slow
def test_of_many_keys_the_first_are_shown_and_files_have_all(client, send, many):
    given = {**QUESTION, "dataset": "many", "per_user": "1", "request": "one"}
    page = client.get(send("/ask/release", **given).headers["location"]).text
    assert f'<p class="one">{FEW + 1:,} keys</p>' in page
    assert len(table(page)) == LISTED
    assert f"The first {LISTED} keys, and {FEW + 1 - LISTED} more in the file" in page
    lines = client.get("/answer/table.csv", params={"request": "one"}).text.splitlines()
    assert len(lines) == FEW + 2
    history = client.get("/history").text
    assert f"k0, k1, k10</bdi> and {FEW - 2} more" in history
    report = client.get("/answer/report", params={"request": "one"}).text
    assert report.count("<bdi>") < FEW


def test_keys_that_a_command_released_are_cut_as_well(client, explorer, many, tmp_path):
    """Asked elsewhere, of no registered data set: the page shows what the ledger has."""
    privmax.keys(
        str(tmp_path / "many.csv"), item="drink", user="person", per_user=1, epsilon=1,
        delta="1e-6", ledger=explorer.ledger.request("cli"),
    )  # fmt: skip
    page = client.get("/answer?request=cli").text
    assert page.count("<li><bdi>") == LISTED
    assert f"… and {FEW + 1 - LISTED} more" in page


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"per_user": "0"}, "per_user='0'"),
        ({"per_user": "x"}, "per_user"),
        ({"per_user": "99999"}, "must not exceed"),
        ({"delta": "0"}, "a key of one individual hidden"),
        ({"delta": ""}, "a key of one individual hidden"),
        ({"epsilon": ""}, "epsilon is required"),
        ({"counts": "-1"}, "counts='-1'"),
        ({"other": "yes"}, "which has its own cost"),
        ({"dataset": "counts", "items": "query"}, "no column of individuals"),
        ({"items": "country"}, "“log” allows drink"),
        ({"where": "person = 1"}, "conditions may look at"),
        ({"dataset": "nothing"}, "no data set of that name"),
    ],
    ids=str,
)
def test_questions_that_cannot_be_asked_say_why_and_cost_nothing(
    client, send, explorer, changed, words
):
    given = {**QUESTION, **changed, "request": "one"}
    preview = client.get("/ask/preview", params=given)
    assert preview.status_code == 422
    assert words in unescape(preview.text)
    assert send("/ask/release", **given).status_code == 422
    assert explorer.ledger.event_count == 1


def test_only_data_sets_with_individuals_are_offered(client, explorer):
    form = client.get("/ask", params={"kind": "keys", "dataset": "counts"}).text
    assert 'value="log"' in form
    assert 'value="counts"' not in form
    assert 'value="counts"' in client.get("/ask").text
    explorer.datasets = {"counts": explorer.datasets["counts"]}
    with TestClient(application(explorer), base_url=HERE) as found:
        found.get(f"/?key={explorer.gate.key}")
        assert "--user NAME=COLUMN" in found.get("/ask", params={"kind": "keys"}).text
        assert found.get("/ask").status_code == 200


def test_the_kinds_of_questions_link_to_each_other_and_keep_terms(client):
    form = client.get("/ask", params={"dataset": "log", "epsilon": "0.5", "k": "3"}).text
    (link,) = [unescape(one) for one in re.findall(r'href="(/ask\?[^"]*kind=keys[^"]*)"', form)]
    assert parse_qs(urlsplit(link).query) == {
        "dataset": ["log"], "epsilon": ["0.5"], "kind": ["keys"],
    }  # fmt: skip
    assert 'href="/plan/keys"' in client.get("/plan").text
    assert 'href="/plan"' in client.get("/plan/keys").text


def test_no_answer_names_the_plan_for_keys(client, send, explorer):
    given = {**QUESTION, "where": "country = 'FR'", "request": "one"}
    page = client.get(send("/ask/release", **given).headers["location"]).text
    assert "No answer: no key stood out enough." in page
    assert "privmax plan --keys --per-user 30 --epsilon 1 --delta 1e-06" in page


def test_a_question_for_keys_is_not_one_for_items(client, send, explorer):
    """The same request id with the other kind is another question."""
    send("/ask/release", request="one", **QUESTION)
    other = {**QUESTION, "kind": "items", "request": "one"}
    answer = client.get("/ask/preview", params=other, follow_redirects=False)
    assert answer.status_code == 303
    assert send("/ask/release", **other).status_code == 422
    assert explorer.ledger.spent == Privacy(1, "1e-6")
