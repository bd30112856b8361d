"""What pages show and do: plans that agree with the library, answers that are charged once."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import time
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import privmax
import privmax.ledger.reading as ledger_module
from privmax.cli import main
from privmax.errors import ParameterError
from privmax.explore.ask_page import recall
from privmax.explore.datasets import Dataset, read_datasets
from privmax.explore.item_question import Asked
from privmax.explore.jobs import plan_leads, slow_mechanisms, try_draws
from privmax.explore.keys_question import AskedKeys
from privmax.explore.plan_page import Question
from privmax.explore.server import application
from privmax.explore.work import Pool, SlowError
from privmax.ledger import Charge
from privmax.privacy import Privacy

HERE = "http://127.0.0.1:8765"  # as in conftest.py
QUESTION = {"dataset": "log", "items": "drink", "epsilon": "1", "delta": "1e-6", "k": "1"}
PLANS = [
    {},
    {"epsilon": "0.7", "delta": "1e-9", "near": "12"},
    {"epsilon": "2", "delta": "", "universe": "1000000", "neighbors": "replace"},
    {"epsilon": "1", "k": "5", "ranked": "yes", "universe": "1000"},
    {"epsilon": "1/3", "k": "8", "near": "9", "growth": "4", "success": "0.9"},
    {"growth": "3", "universe": "50"},
]


def shown(page: str) -> list[str]:
    """What a page offers to copy: Python, command, address."""
    return [unescape(one) for one in re.findall(r"<pre[^>]*><code>(.*?)</code>", page, re.DOTALL)]


def rows(page: str) -> dict[str, list[str]]:
    """The rows of the first table, by name."""
    found = re.findall(r'<tr[^>]*><th scope="row">(.*?)</th>(.*?)</tr>', page, re.DOTALL)
    return {
        re.sub(r"<[^>]*>", "", name).removesuffix(" (chosen)"): [
            unescape(re.sub(r"<[^>]*>", "", one)) for one in re.findall(r"<td.*?</td>", cells)
        ]
        for name, cells in found
    }


@pytest.mark.slow
@pytest.mark.parametrize("given", PLANS)
def test_the_python_line_and_the_command_run_and_agree_with_the_page(client, given):
    page = client.get("/plan", params=given).text
    python, command, _ = shown(page)[:3]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(python, {"privmax": privmax})
    ran = CliRunner().invoke(main, shlex.split(command)[1:])
    assert ran.exit_code == 0
    assert ran.output == printed.getvalue()
    found = rows(page) | rows(client.get("/plan/slow", params=given).text)
    table = [line for line in ran.output.splitlines() if " misses " not in line]
    for name, cells in found.items():
        line = next(line for line in table if line.startswith(f"{name} "))
        lead = line.replace(" *", "").split()[1]
        assert cells[0].replace(",", "") == lead, name
    first = page.partition("Chosen:</strong> ")[2].partition(". No mechanism")[0]
    assert unescape(first) in ran.output.replace("\n", " ")


@pytest.mark.slow
def test_all_mechanisms_of_a_plan_are_on_the_page(client):
    found = set(rows(client.get("/plan").text)) | set(rows(client.get("/plan/slow").text))
    assert found == {row.name for row in privmax.plan(epsilon=1, delta=1e-6).rows}
    assert slow_mechanisms(1, False)
    assert slow_mechanisms(5, False) == ["permute-and-flip"]


@pytest.mark.slow
def test_what_is_still_computed_is_called_as_in_the_table(client):
    page = client.get("/plan").text
    assert ">Compute LargeMargin, LargeMarginTruncated</a>" in page
    assert "LargeMarginTruncated" not in rows(page)
    whole = client.get(unescape(re.search(r'<a href="(/plan\?slow[^"]*)"', page)[1])).text
    assert "LargeMarginTruncated" in rows(whole)
    assert "Compute LargeMargin" not in whole


class Controls(HTMLParser):
    """What on a page can be clicked, dragged or typed into and needs a script."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.count = 0
        self._form: dict[str, str] | None = None

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "form":
            self._form = given
        is_control = tag in ("button", "select", "textarea", "input") or "hx-get" in given
        if not is_control or "scripted" in given.get("class", "").split():
            return
        self.count += 1
        works = self._form is not None and "action" in self._form
        if tag == "button":
            works = works and given.get("type") == "submit"
        if "hx-get" in given:
            works = given.get("action") == given["hx-get"] or "href" in given
        if not works or given.get("type") == "range" or "hx-post" in given:
            self.found.append(self.get_starttag_text())

    def handle_endtag(self, tag):
        if tag == "form":
            self._form = None


@pytest.mark.slow
@pytest.mark.parametrize(
    "address",
    ["/plan", "/plan/keys", "/try?draw=yes", "/ask", "/ask?kind=keys",
     "/ask/preview?dataset=log&items=drink&epsilon=1&delta=1e-6",
     "/ask/preview?kind=keys&dataset=log&items=drink&epsilon=1&delta=1e-6",
     "/history", "/history/verify", "/handover", "/answer?request=lost"],
)  # fmt: skip
def test_every_control_is_a_form_or_a_link(client, explorer, address):
    charge_only(explorer, ASKED[0], "lost")
    controls = Controls()
    controls.feed(client.get(address).text)
    assert controls.found == []
    assert controls.count or address == "/history/verify"


def test_controls_that_need_a_script_would_be_found():
    for bad in ('<button type="button" hx-get="/x">Go</button>', '<input type="range">',
                '<form action="/x"><input type="range"></form>',
                '<div hx-get="/x" hx-trigger="load"></div>'):  # fmt: skip
        controls = Controls()
        controls.feed(bad)
        assert controls.found


@pytest.mark.slow
@pytest.mark.parametrize("given", PLANS)
def test_the_link_restores_the_state(client, given):
    page = client.get("/plan", params=given).text
    link = shown(page)[2]
    assert link.startswith(HERE)
    again = client.get(link.removeprefix(HERE)).text
    assert again == page
    part = client.get("/plan", params=given, headers={"HX-Request": "true"})
    assert part.headers["hx-replace-url"] == link.removeprefix(HERE)
    assert part.text in page


def test_misses_come_from_exact_laws():
    from privmax.planning.comparison import compare_profile
    from privmax.profile import Profile

    found = plan_leads({"epsilon": "0.5", "delta": "1e-6", "universe": 1000}, 20)
    profile = Profile([(10**9, 1), (10**9 - 20, 999)], universe=1000)
    names = ["exponential", "permute-and-flip", "nested-margin", "max-of-laplaces"]
    compared = compare_profile(
        profile, k=1, near=1, epsilon="0.5", delta="1e-6", neighbors="add-remove",
        mechanisms=names, success="0.95", growth=None, ranked=False,
    )  # fmt: skip
    misses = {row["name"]: row["misses"] for row in found["rows"]}
    for row in compared.rows:
        assert misses[row.name] == pytest.approx(row.misses, abs=1e-12)
    for line in found["curves"].values():
        assert [share for _, share in line] == sorted((share for _, share in line), reverse=True)


def test_what_was_computed_is_kept(client, explorer, monkeypatch):
    given = {"epsilon": "0.123"}
    first = client.get("/plan", params=given).text
    monkeypatch.setattr(explorer.pool, "job", None)
    assert client.get("/plan", params=given).text == first


@pytest.mark.slow
def test_a_worker_that_was_stopped_is_replaced():
    pool = Pool(1)
    job = pool.job("plan", {"epsilon": "0.03", "delta": "1e-6"}, None, is_slow=True)  # minutes
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(job.result)
        while job._worker is None:
            time.sleep(0.01)
        job.stop()
        with pytest.raises(SlowError):
            waiting.result()
    assert pool.job("plan", {"epsilon": "1", "delta": "1e-6"}, None).result()["limit"] == 16
    with pytest.raises(ParameterError, match="k"):
        pool.job("plan", {"epsilon": "1", "delta": "1e-6", "k": 0}, None).result()
    pool.close()


@pytest.mark.slow
def test_a_hundred_draws_on_public_data(client):
    page = client.get("/try", params={"draw": "yes", "scores": "tea 900\nale 2", "epsilon": "1"})
    found = rows(page.text)
    assert found["tea"][1] == "100"
    assert found["ale"][1] == "0"
    assert found["no answer"][1] == "0"
    nothing = client.get("/try", params={"draw": "yes", "scores": "tea 1", "epsilon": "0.1"}).text
    assert rows(nothing)["no answer"][1] == "100"
    for name in ("searches", "receipts", "counts"):
        answer = client.get("/try", params={"draw": "yes", "data": name, "epsilon": "1"})
        assert "100 draws by" in answer.text
    wrong = client.get("/try", params={"draw": "yes", "scores": "tea"})
    assert "line 1 must be a name and a number" in wrong.text


def test_draws_of_a_list_and_the_chance_of_one():
    options = {"epsilon": "1", "delta": "1e-6", "k": 2}
    found = try_draws({"tea": 900, "ale": 800, "gin": 1}, options)
    assert {label: times for label, _, times, _ in found["rows"]} == {
        "tea": 100,
        "ale": 100,
        "gin": 0,
    }
    one = try_draws({"tea": 9, "ale": 9}, {"epsilon": "1", "universe": 2})
    assert one["rows"][0][3] == pytest.approx(0.5)


@pytest.mark.slow
def test_from_the_form_to_the_answer(client, send, explorer):
    form = client.get("/ask", params={"dataset": "log", "epsilon": "0.5"}).text
    request = re.search(r'name="request" value="([^"]+)"', form)[1]
    given = {**QUESTION, "epsilon": "0.5", "request": request}
    preview = client.get("/ask/preview", params=given).text
    assert "It costs <strong>ε&nbsp;=&nbsp;0.5, δ&nbsp;=&nbsp;10<sup>−6</sup></strong>" in preview
    assert "After it, ε&nbsp;=&nbsp;4.5, δ&nbsp;=&nbsp;9.9" in preview
    assert "one individual (“person”) with all of its rows" in preview
    assert not explorer.ledger.spent.epsilon
    sent = send("/ask/release", **given)
    assert sent.status_code == 303
    page = client.get(sent.headers["location"]).text
    assert "<bdi>tea</bdi>" in page
    assert "ε&nbsp;=&nbsp;4.5" in page
    report = client.get("/answer/report", params={"request": request})
    assert "tea" in report.text
    assert "A private answer" in report.text
    saved = json.loads(client.get("/answer/release.json", params={"request": request}).text)
    assert saved["items"] == ["tea"] if "items" in saved else saved["item"] == "tea"
    history = client.get("/history").text
    assert "select: log, drink" in history
    assert "tea" in history


def test_sent_twice_it_is_charged_once(client, send, explorer):
    answers = [send("/ask/release", request="one", **QUESTION) for _ in range(3)]
    assert {answer.headers["location"] for answer in answers} == {"/answer?request=one"}
    assert explorer.ledger.spent == Privacy(1, "1e-6")
    page = client.get("/ask/preview", params={**QUESTION, "request": "one"}).text
    assert "was charged already" in page
    assert "Spend it" not in page


@pytest.mark.slow
def test_sent_at_once_from_many_tabs_it_is_charged_once(client, send, explorer):
    with ThreadPoolExecutor(8) as tabs:
        sent = list(tabs.map(lambda _: send("/ask/release", request="one", **QUESTION), range(8)))
    assert {answer.status_code for answer in sent} == {303}
    assert explorer.ledger.spent == Privacy(1, "1e-6")


def test_another_question_under_a_known_id_gets_a_new_one(client, send, explorer):
    send("/ask/release", request="one", **QUESTION)
    given = {**QUESTION, "epsilon": "2", "request": "one"}
    answer = client.get("/ask/preview", params=given, follow_redirects=False)
    assert answer.status_code == 303
    assert parse_qs(urlsplit(answer.headers["location"]).query)["request"] != ["one"]
    assert send("/ask/release", **given).status_code == 422
    assert explorer.ledger.spent == Privacy(1, "1e-6")


def test_what_does_not_fit_is_said_and_not_spent(client, send, explorer):
    given = {**QUESTION, "epsilon": "6", "request": "one"}
    page = client.get("/ask/preview", params=given).text
    assert "The budget does not allow it" in page
    assert "Spend it" not in page
    sent = send("/ask/release", **given)
    assert sent.status_code == 409
    assert "Nothing was spent" in sent.text
    assert not explorer.ledger.spent.epsilon


def charge_only(explorer, asked: Asked, request: str) -> None:
    """A charge whose answer was never recorded, as after a crash."""
    ledger = explorer.ledger

    def stop(stack):
        raise KeyboardInterrupt

    paying = ledger.request(request, account=asked.account, dataset=asked.dataset)
    with contextlib.suppress(KeyboardInterrupt):
        asked.prepare(explorer.datasets[asked.dataset]).answer(paying, stop)
    assert ledger.find(request)[0] is not None
    assert ledger.find(request)[1] is None


ASKED = [
    Asked("log", ("drink",), "1", "1e-6"),
    Asked("log", ("drink",), "0.25", "1e-7", 3, True),
    Asked("log", ("drink",), "1", "1e-6", 2, False, "open", "country = 'DE'"),
    Asked("log", ("drink",), "1", "1e-6", 2, False, "open", None, "0.2"),
    Asked("log", ("drink",), "0.5", "1e-6", 40, False, "open", None, "0.1"),
    Asked("counts", ("query",), "1", "0", 1, False, "200"),
    Asked("log", ("drink",), "0.1", "1e-6", 1, False, "open", None, None, "ada"),
    AskedKeys("log", ("drink",), "1", "1e-6"),
    AskedKeys("log", ("drink",), "0.5", "1e-7", 3, "country = 'DE'", "0.2", True, "ada"),
    AskedKeys("log", ("drink",), "1", "1e-6", 1, None, "0.1"),
]


@pytest.mark.slow
@pytest.mark.parametrize("asked", ASKED)
def test_a_charge_without_an_answer_can_be_recovered(client, send, explorer, asked):
    explorer.ledger.open_account("ada", Privacy(1, "1e-5"))
    charge_only(explorer, asked, "lost")
    spent = explorer.ledger.spent
    charged, _ = explorer.ledger.find("lost")
    assert recall(explorer, charged) == asked.canonical()
    assert "lost" in client.get("/history").text
    page = client.get("/answer?request=lost").text
    assert "Get the answer, at no cost" in page
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page)
    sent = send("/ask/release", **{name: unescape(value) for name, value in fields})
    assert sent.status_code == 303
    assert "Left after it" in client.get("/answer?request=lost").text
    assert explorer.ledger.spent == spent


def test_answers_of_other_commands_are_shown_as_the_ledger_holds_them(client, explorer):
    privmax.select({"gin": 500}, epsilon="0.1", delta="1e-6", ledger=explorer.ledger.request("cli"))
    page = client.get("/answer?request=cli").text
    assert "An answer of the ledger" in page
    assert "gin" in page
    assert client.get("/answer?request=none").status_code == 404
    assert client.get("/answer/report?request=cli").status_code == 404


def test_the_history_is_verified_and_saved(client, send, explorer):
    send("/ask/release", request="one", **QUESTION)
    whole = client.get("/history/verify").text
    part = client.get("/history/verify", headers={"HX-Request": "true"}).text
    assert "All 3 events add up" in part
    assert part in whole
    assert "Back to the history" in whole
    lines = client.get("/history/export.jsonl").text.splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["created", "reserved", "released"]
    last = list(explorer.ledger.history())[-1]
    assert last.fault is None
    stored = {name: value for name, value in vars(last).items() if name != "fault"}
    assert json.loads(lines[-1]) == stored


@pytest.fixture
def long_ledger(explorer):
    """A ledger of 1,501 events; the last two charges have an answer, one of an unknown shape."""
    with explorer.ledger.batch() as batch:
        price = Charge(Privacy("1/10000"))
        charged = [batch.charge(price, {}, request=f"r{one}") for one in range(1_498)]
    charged[-2].record("x")
    charged[-1].record({"items": ["y"]})
    return explorer.ledger


@pytest.mark.slow
def test_a_long_history_is_not_read_to_show_its_end(client, long_ledger, monkeypatch):
    read = []
    made = ledger_module.mark
    monkeypatch.setattr(ledger_module, "mark", lambda row: read.append(1) or made(row))
    page = client.get("/history").text
    assert len(read) < 500
    assert "1,501" in page
    assert page.count("<td>recorded</td>") == 1
    assert page.count('<th scope="row" class="when">') == 50
    assert "Only the last 50 are listed." in page
    assert "the last 20 of them" in page  # charged, and never answered
    assert page.count('<li><a href="/answer?') == 20
    for last, listed in ((500, 500), (5000, 1_499)):
        (link,) = re.findall(r'href="(/history\?last=\d+)"', page)
        assert link == f"/history?last={last}"
        page = client.get(link).text
        assert page.count('<th scope="row" class="when">') == listed
    assert "/history?last=" not in page
    assert "Only the last" not in page


@pytest.mark.parametrize("last", ["0", "-1", "x", "10" * 40, "5001"])
def test_what_is_asked_of_the_history_beyond_its_pages_is_the_first_page(client, last):
    assert client.get("/history", params={"last": last}).status_code == 200


def test_without_a_ledger_pages_say_what_to_do(explorer, pool):
    explorer.ledger, explorer.datasets = None, {}
    with TestClient(application(explorer), base_url=HERE) as found:
        found.get(f"/?key={explorer.gate.key}")
        for page in ("/ask", "/history", "/handover", "/history/verify"):
            assert "ledger" in found.get(page).text
        assert found.get("/plan").status_code == 200
        assert found.get("/answer?request=x").status_code == 404


def test_data_sets_are_described_on_the_command_line_or_in_a_file(tmp_path):
    file = tmp_path / "data.toml"
    file.write_text(
        '[log]\nfile = "postgres://u:p@db/shop"\ntable = "log"\ncolumns = ["query", "country"]\n'
        'user = "person"\nwhere = ["age"]\nabout = "searches"\n'
    )
    pairs = {"file": ["rows=rows.csv", "try=sample:counts"], "columns": ["rows=a, b"],
             "unit": ["rows=row"]}  # fmt: skip
    found = read_datasets(pairs, str(file))
    assert found["log"].columns == ("query", "country")
    assert found["log"].unit == "user"
    assert found["rows"].columns == ("a", "b")
    assert found["rows"].protects == "one row"
    assert found["try"].score == "people"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "where its data is"),
        ({"file": "x.csv"}, "which columns"),
        ({"file": "x.csv", "columns": "a"}, "individuals"),
        ({"file": "x.csv", "columns": [1], "unit": "row"}, "names of columns"),
        ({"file": "-", "columns": "a", "unit": "row"}, "standard input"),
        ({"file": "sample:nothing", "columns": "a", "unit": "row"}, "no such data set"),
        ({"file": "x.csv", "columns": "a", "unit": "row", "password": "x"}, "may have"),
        ({"file": "x.csv", "columns": "a", "unit": "row", "table": "t"}, "table"),
        ({"file": "x.csv", "columns": "a,b", "user": "b"}, "the same column is given as columns"),
    ],
)
def test_what_is_missing_of_a_data_set_is_named(given, words):
    with pytest.raises(ParameterError, match=words):
        Dataset.of("log", given)


def test_questions_leave_out_what_is_as_at_first():
    assert Question.of({}).address() == "/plan"
    assert Question.of({"epsilon": "2", "k": "1"}).address() == "/plan?epsilon=2"
