"""`--report FILE` on the commands that have it: what the page says, and that no answer is lost with
it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from fractions import Fraction
from html import unescape

import click
import pytest
from click.testing import CliRunner

from privmax import Privacy
from privmax.cli import main
from privmax.cli.passwords import hide_password
from privmax.ledger import Ledger

PRICE = ("--epsilon", "0.4", "--delta", "1e-6")  # below 1, where the picture is quick
COUNTS = ("select", "sample:counts", "--item", "query", "--score", "people", *PRICE)
COMMANDS = {
    "select": COUNTS,
    "keys": ("keys", "sample:searches", "--item", "query", "--user", "person", *PRICE),
    "itemsets": (
        "itemsets",
        "sample:receipts",
        "--basket",
        "receipt",
        "--item",
        "article",
        "--user",
        "member",
        *PRICE,
    ),
    "learn": (
        "learn",
        "sample:members",
        "--hypotheses",
        "stumps",
        "--label",
        "card",
        "--labels",
        "0,1",
        "--low",
        "0",
        "--high",
        "100",
        *PRICE,
    ),
    "learn a model": (
        "learn",
        "sample:members",
        *("--label", "card", "--labels", "0,1", "--low", "0", "--high", "100", *PRICE),
    ),
    "compare": ("compare", "--scores", "900,850,12", "--mechanism", "gap-test", *PRICE),
}
PAYING = ("select", "keys", "itemsets", "learn", "learn a model")
NOT_DRAWN = ("keys", "learn a model")
"""A table of keys has no law to draw, and the model that is decided on here is a tree."""

pytestmark = pytest.mark.usefixtures("plans_made_once")


def privmax(*arguments, stdin=None):
    return CliRunner().invoke(main, list(map(str, arguments)), input=stdin)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "budget.db"
    with Ledger.create(path, budget=Privacy(2, "1e-5")) as ledger:
        ledger.open_account("ann", Privacy("1.5", "1e-5"))
    return path


def spent(file):
    with Ledger(file) as ledger:
        return ledger.spent


def text(path):
    """What a page says."""
    body = path.read_text(encoding="utf-8").partition("<body>")[2]
    words = re.sub(r"</?(?:bdi|sup|strong|code|var)\b[^>]*>", "", body)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", words)).split())


def test_every_command_that_has_the_option_is_tried_here():
    having = {
        name
        for name in main.list_commands(None)
        if any(
            option.name == "report" for option in main.get_command(click.Context(main), name).params
        )
    }
    assert having == {typed[0] for typed in COMMANDS.values()}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_is_written_and_its_place_is_told(name, tmp_path):
    path = tmp_path / "report.html"
    run = privmax(*COMMANDS[name], "--report", path)
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.splitlines()[-1] == f"report     {path}"
    page = path.read_text(encoding="utf-8")
    assert page.count("<svg") == (name not in NOT_DRAWN)
    assert COMMANDS[name][1].removeprefix("--") in page  # what it was asked of


@pytest.mark.parametrize("name", COMMANDS)
def test_with_json_standard_output_holds_one_object(name, tmp_path):
    path = tmp_path / "report.html"
    run = privmax(*COMMANDS[name], "--json", "--report", path)
    assert run.exit_code == 0
    assert "report" not in json.loads(run.stdout)
    assert path.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--score", "people"), "one individual, which changes each score by at most 1"),
        (
            ("--score", "people", "--sensitivity", "3"),
            "one individual, which changes each score by at most 3",
        ),
    ],
)
def test_whom_ready_scores_protect(options, said, tmp_path):
    path = tmp_path / "report.html"
    assert (
        privmax(
            "select", "sample:counts", "--item", "query", *options, *PRICE, "--report", path
        ).exit_code
        == 0
    )
    assert f"as if {said} had been left out" in text(path)


def test_whom_counted_rows_protect(tmp_path):
    path = tmp_path / "report.html"
    log = ("select", "sample:searches", "--item", "query", *PRICE, "--report", path)
    assert privmax(*log, "--user", "person").exit_code == 0
    assert "as if one individual (“person”) with all of its rows had been left out" in text(path)
    rows = tmp_path / "rows.tsv"
    rows.write_text("query\n" + "rain boots\n" * 300, encoding="utf-8")
    assert privmax("select", rows, "--item", "query", *PRICE, "--report", path).exit_code == 0
    assert "as if one row had been left out" in text(path)


@pytest.mark.slow
def test_whom_itemsets_and_rules_protect(tmp_path):
    path = tmp_path / "report.html"
    assert privmax(*COMMANDS["itemsets"], "--report", path).exit_code == 0
    assert "as if one individual (“member”) with all of its baskets had been left out" in text(path)
    dat = tmp_path / "baskets.dat"
    dat.write_text("1 2 3\n" * 300, encoding="utf-8")
    assert (
        privmax("itemsets", dat, "--items", "5", "--epsilon", "0.4", "--report", path).exit_code
        == 0
    )
    assert "as if one basket had been left out" in text(path)
    assert "items 5 universe 10 candidates, known in advance" in text(path)
    assert privmax(*COMMANDS["learn"], "--report", path).exit_code == 0
    assert "as if one row had been left out" in text(path)
    assert "privmax help proofs/learning" in text(path)


@pytest.mark.slow
def test_a_universe_in_a_file_is_told_by_its_size(tmp_path):
    (tmp_path / "days.csv").write_text("Sat\nSun\nMon\n", encoding="utf-8")
    (tmp_path / "visits.csv").write_text("day,people\nSat,900\nSun,4\n", encoding="utf-8")
    path = tmp_path / "report.html"
    select = (
        "select",
        tmp_path / "visits.csv",
        "--item",
        "day",
        "--score",
        "people",
        "--epsilon",
        "0.4",
    )
    assert privmax(*select, "--universe", tmp_path / "days.csv", "--report", path).exit_code == 0
    assert "universe 3 candidates, known in advance" in text(path)


def test_a_list_is_shown_in_its_order_and_a_hostile_label_as_text(tmp_path):
    counts = tmp_path / "counts.csv"
    counts.write_text(
        "item,score\n<script>alert(1)</script>,91273\nplain,64071\nzorblax,2\n", encoding="utf-8"
    )
    path = tmp_path / "report.html"
    run = privmax("select", counts, "--k", "2", *PRICE, "--report", path)
    assert run.exit_code == 0
    assert "<script" not in path.read_text(encoding="utf-8")
    assert "Released <script>alert(1)</script> plain" in text(path)
    for secret in ("91273", "64071", "91,273", "64,071", "zorblax"):
        assert secret not in path.read_text(encoding="utf-8")


def test_nothing_could_be_released_is_a_report_too(tmp_path):
    path = tmp_path / "report.html"
    run = privmax("select", "-", *PRICE, "--report", path, stdin="item,score\nzorblax,1\n")
    assert run.exit_code == 0
    assert "No answer" in text(path)
    assert "data standard input" in text(path)
    assert "zorblax" not in path.read_text(encoding="utf-8")


# with a ledger


@pytest.mark.parametrize("name", PAYING)
def test_the_page_of_a_repeated_request_gives_its_answer_and_names_no_file(name, tmp_path, file):
    """The ledger does not keep where the data was, and nobody looks there again."""
    pages = []
    for path in (tmp_path / "first.html", tmp_path / "second.html"):
        paying = (
            "--ledger",
            file,
            "--request",
            "r1",
            "--account",
            "ann",
            "--dataset",
            "spring",
            "--report",
            path,
        )
        run = privmax(*COMMANDS[name], *paying)
        assert run.exit_code == 0
        pages.append(text(path))
    sample = COMMANDS[name][1]
    assert sample in pages[0]
    assert sample not in pages[1]
    answer = run.stdout.splitlines()[0].split(maxsplit=1)[1]
    for page in pages:
        assert answer in page or (answer.startswith("no answer") and "No answer" in page)
        for words in ("ledger default", "account ann", "ε = 1.1,", "request r1", "dataset spring"):
            assert words in page
    assert spent(file).epsilon == Fraction("0.4")


def test_the_page_of_a_repeated_request_does_not_call_its_answer_that_of_another_file(
    tmp_path, file
):
    paying = ("--ledger", file, "--request", "r1", "--dataset", "d")
    privmax(*COUNTS, *paying)
    other = tmp_path / "other.csv"
    other.write_text("query,people\nzzz,90000\n", encoding="utf-8")
    path = tmp_path / "page.html"
    run = privmax(
        "select", other, "--item", "query", "--score", "people", *PRICE, *paying, "--report", path
    )
    assert run.stdout.startswith("item       rain boots\n")
    said = text(path)
    assert "rain boots" in said
    assert re.search(
        r"recorded under the request r1 on \d{4}-\d\d-\d\d \d\d:\d\d UTC; no data was read\. It "
        r"does",
        said,
    )
    assert "other.csv" not in set(re.split(r"[^\w.]+", said))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("nowhere/report.html", "there is no such folder"),
        ("folder.html", "not a regular file"),
        ("report.txt", "must end in .html"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_charged(
    name, place, why, tmp_path, file
):
    (tmp_path / "folder.html").mkdir()
    paying = ("--ledger", file) if name in PAYING else ()
    run = privmax(*COMMANDS[name], *paying, "--report", tmp_path / place)
    assert (run.exit_code, run.stdout) == (2, "")
    assert re.search(rf"--report .*{re.escape(place)}.*{why}", run.stderr.replace("\n", " "))
    assert spent(file) == Privacy(0)


@pytest.mark.parametrize("name", COMMANDS)
def test_without_matplotlib_it_is_refused_before_anything_is_charged(
    name, tmp_path, file, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "privmax.plots", raising=False)
    paying = ("--ledger", file) if name in PAYING else ()
    run = privmax(*COMMANDS[name], *paying, "--report", tmp_path / "report.html")
    assert (run.exit_code, run.stdout) == (2, "")
    assert 'pip install ".[plot]"' in run.stderr
    assert spent(file) == Privacy(0)
    assert os.listdir(tmp_path) == ["budget.db"]


def full_disk(*arguments):
    raise OSError(28, "No space left on device")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAYING)
def test_an_answer_whose_page_cannot_be_written_is_printed_and_can_be_had_again(
    name, tmp_path, file, monkeypatch
):
    path = tmp_path / "report.html"
    command = (*COMMANDS[name], "--ledger", file, "--report", path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full_disk)
        run = privmax(*command)
    assert run.exit_code == 2
    assert "mechanism " in run.stdout
    told = " ".join(run.stderr.split())
    assert f"--report {path}: it cannot be written (No space left on device)." in told
    assert "The answer above is valid and charged." in told
    request = re.search(r"with --request (\S+): that costs nothing more", told)[1]
    again = privmax(*command, "--request", shlex.split(request)[0])
    assert again.exit_code == 0
    assert again.stdout.splitlines()[0] == run.stdout.splitlines()[0]
    assert spent(file).epsilon == Fraction("0.4")
    assert path.exists()


def test_without_a_ledger_it_is_said_that_asking_again_costs_again(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", full_disk)
    run = privmax(*COUNTS, "--report", tmp_path / "report.html")
    assert run.exit_code == 2
    assert run.stdout.startswith("item ")
    assert "another release, with its own privacy cost" in " ".join(run.stderr.split())


def test_whatever_goes_wrong_with_the_page_the_answer_is_printed(tmp_path, monkeypatch):
    def broken(*arguments, **options):
        raise ZeroDivisionError("zorblax")

    monkeypatch.setattr("privmax.report.html", broken)
    run = privmax(*COUNTS, "--report", tmp_path / "report.html")
    assert run.exit_code == 2
    assert run.stdout.startswith("item ")
    assert "the page could not be made (ZeroDivisionError)" in " ".join(run.stderr.split())
    assert "zorblax" not in run.output


@pytest.mark.slow
def test_a_comparison_says_on_what_data(tmp_path):
    path = tmp_path / "report.html"
    assert privmax(*COMMANDS["compare"], "--report", path).exit_code == 0
    assert "Computed on invented scores, 900, 850, 12." in text(path)
    shape = ("compare", "--best", "60", "--next", "20", "--mechanism", "gap-test", *PRICE)
    assert privmax(*shape, "--report", path).exit_code == 0
    assert "Computed on an invented shape." in text(path)
    sample = (
        "compare",
        "sample:counts",
        "--item",
        "query",
        "--score",
        "people",
        "--mechanism",
        "gap-test",
        *PRICE,
    )
    assert privmax(*sample, "--report", path).exit_code == 0
    assert "Computed on sample:counts, invented data included in privmax." in text(path)


@pytest.mark.slow
def test_the_commands_a_page_names_can_be_typed(tmp_path):
    """As they stand there, in a shell."""
    path = tmp_path / "report.html"
    lists = ("select", "sample:counts", "--item", "query", "--score", "people", *PRICE, "--k", "5")
    typed = set()
    for arguments in (COUNTS, lists, COMMANDS["learn"], COMMANDS["compare"]):
        assert privmax(*arguments, "--report", path).exit_code == 0
        typed |= set(
            re.findall(
                r"<pre><code>privmax ((?:audit|plan) .*?)</code></pre>",
                path.read_text(encoding="utf-8"),
            )
        )
    assert {line.split()[0] for line in typed} == {"audit", "plan"}
    for line in typed:
        if "large" not in line and line.startswith("audit"):
            assert privmax(*shlex.split(unescape(line))).exit_code == 0, line
        elif line.startswith("plan"):
            command = main.get_command(click.Context(main), "plan")
            command.make_context("plan", shlex.split(unescape(line))[1:])


# places


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("counts.csv", "counts.csv"),
        ("sample:counts", "sample:counts"),
        ("-", "standard input"),
        ("postgres://db/shop", "postgres://db/shop"),
        ("postgres://ada:hunter2@db:5432/shop?sslmode=require", "postgres://db:5432/shop"),
        ("postgres://ada:hun@ter2@db/shop", "postgres://db/shop"),
        ("postgres://ada:hun/ter2@db/shop", "postgres://db/shop"),
        ("postgres://ada:hun ter2@db/shop", "postgres://db/shop"),
        ("postgres://ada:hun?ter2@db/shop", "postgres://…"),
        ("postgres://ada:hun#ter2@db/shop", "postgres://…"),
        ("postgres://db/shop?password=hunter2", "postgres://db/shop"),
        ("postgres://db/shop?password=hun@ter2", "postgres://…"),
        ("duckdb:///data/shop.db", "duckdb:///data/shop.db"),
        ("mysql://db/shop;password=hunter2", "mysql://db/shop"),
    ],
)
def test_a_place_is_shown_without_what_must_stay_secret(given, shown):
    assert hide_password(given) == shown
    assert not re.search("hun|ter2", shown)


@pytest.mark.slow
def test_help_loads_neither_the_pages_nor_their_pictures():
    program = (
        "import sys\nfrom click.testing import CliRunner\nfrom privmax.cli import main\n"
        "assert CliRunner().invoke(main, ['select', '--help']).exit_code == 0\n"
        "print([name for name in sys.modules if name.startswith(('privmax.report', "
        "'privmax.plots', 'matplotlib'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
