"""What the commands read, and how they end: patterns, JSON Lines, databases, standard input, exit
4.
"""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path
from threading import Event

import duckdb
import pytest
from click.testing import CliRunner

from privmax.cli import main
from privmax.cli.output import _watch, describe_progress
from privmax.resources import CHOSEN

PRICE = ("--epsilon", "4", "--delta", "1e-6")
QUERY = ("--item", "query", "--user", "person", *PRICE)
ROWS = [(f"u{n}", "boots" if n % 3 else "tent", "DE" if n % 2 else "FR") for n in range(300)]
CSV = "person,query,country\n" + "".join(",".join(row) + "\n" for row in ROWS)
NAMES = ("person", "query", "country")


def privmax(*arguments, stdin=None):
    return CliRunner().invoke(main, list(map(str, arguments)), input=stdin)


def answer(*arguments, stdin=None):
    run = privmax(*arguments, "--json", stdin=stdin)
    assert (run.exit_code, run.stderr) == (0, "")
    return json.loads(run.stdout)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    lines = [json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in ROWS]
    Path("a.jsonl").write_text("".join(lines))
    Path("logs/1.jsonl").write_text("".join(lines[:150]))
    Path("logs/2.jsonl").write_text("".join(lines[150:]))
    Path("a.csv").write_text(CSV)
    with sqlite3.connect("shop.db") as lite:
        lite.execute("CREATE TABLE searches (person TEXT, query TEXT, country TEXT)")
        lite.executemany("INSERT INTO searches VALUES (?, ?, ?)", ROWS)
    lite.close()
    return tmp_path


@pytest.mark.slow
def test_select_reads_every_door(folder):
    for data in (["a.jsonl"], ["logs/*.jsonl"], ["a.csv"], ["shop.db", "--table", "searches"]):
        assert answer("select", *data, *QUERY)["item"] == "boots"
        where = ("--where", "country = 'DE' and query != 'boots'")
        assert answer("select", *data, *QUERY, *where)["item"] == "tent"
    assert answer("select", "-", *QUERY, stdin=CSV)["item"] == "boots"
    where = ("--where", "query starts with 't'")
    assert answer("select", "-", *QUERY, *where, stdin=CSV)["item"] == "tent"


def test_ready_scores_may_be_lines_of_json(folder):
    Path("s.jsonl").write_text('{"item": "a", "score": 3}\n{"item": "b", "score": 900}\n')
    assert answer("select", "s.jsonl", *PRICE)["item"] == "b"
    kept = answer("select", "s.jsonl", *PRICE, "--universe", "1", "--where", "score < 4")
    assert kept["item"] == "a"


def test_itemsets_and_learn_read_them_too(folder):
    rows = [(f"r{n}", one, n % 2) for n in range(400)
            for one in (("tea", "milk") if n % 2 else ("rum", "cola"))]  # fmt: skip
    names = ("receipt", "article", "odd")
    Path("b.jsonl").write_text(
        "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    )
    asked = ("--basket", "receipt", "--item", "article", "--unit", "basket", *PRICE)
    found = answer("itemsets", "b.jsonl", *asked, "--where", "odd = 0")
    assert found["itemset"] == ["cola", "rum"]
    examples = [{"x": n % 10, "y": int(n % 10 > 4), "kept": n < 500} for n in range(600)]
    Path("e.jsonl").write_text("".join(json.dumps(one) + "\n" for one in examples))
    with sqlite3.connect("e.db") as lite:
        lite.execute("CREATE TABLE e (x INTEGER, y INTEGER, kept TEXT)")
        told = [(one["x"], one["y"], str(one["kept"]).lower()) for one in examples]
        lite.executemany("INSERT INTO e VALUES (?, ?, ?)", told)
    lite.close()
    asked = ("--label", "y", "--labels", "0,1", "--features", "x", "--low", "0", "--high", "10",
             "--cells", "10", "--epsilon", "9", "--where", "kept = 'true'")  # fmt: skip
    for data in (["e.jsonl"], ["e.db", "--table", "e"]):
        found = answer("learn", *data, *asked)
        assert found["features"] == ["x"]
        assert found["rule"] is not None


def test_learn_needs_the_features_of_json_lines(folder):
    """Which keys there are, rows decide."""
    asked = ("--label", "query", "--labels", "a,b", "--low", "0", "--high", "1", "--epsilon", "1")
    run = privmax("learn", "a.jsonl", *asked)
    assert (run.exit_code, run.stdout) == (2, "")
    assert "--features: JSON Lines do not declare their columns" in run.stderr


@pytest.mark.slow
def test_a_condition_is_shown_in_the_report_and_kept_by_the_ledger(folder):
    assert (
        privmax("budget", "create", "budget.db", "--epsilon", "90", "--delta", "0.5").exit_code == 0
    )
    charged = ("--ledger", "budget.db", "--request", "monday")
    asked = ("select", "a.csv", *QUERY, *charged)
    first = answer(*asked, "--where", "country='DE'", "--report", "r.html")
    assert "country=&#39;DE&#39;" in Path("r.html").read_text()
    assert answer(*asked, "--where", "country = 'DE'")["item"] == first["item"]
    run = privmax(*asked, "--where", "country = 'FR'")
    assert run.exit_code == 2
    assert "monday" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("a.csv", *QUERY, "--where", "contry = 'DE'"), "there is no column 'contry'"),
        (("a.csv", *QUERY, "--where", "country = DE"), "text in single quotes"),
        (("a.csv", *QUERY, "--where", "count(*) > 3"), "there are no functions"),
        (("shop.db", *QUERY), "There are 'searches'"),
        (("shop.db", *QUERY, "--table", "serches"), "Did you mean 'searches'?"),
        (("a.csv", *QUERY, "--table", "searches"), "the data is not a database"),
        (("logs/*.csv", *QUERY), "No file matches the pattern"),
        (("s3://bucket/a.parquet", *QUERY), "aws s3 cp"),
        (("a.csv", *QUERY, "--memory", "lots"), "For example 4GB"),
        (("a.csv", *QUERY, "--temporary", "nowhere"), "there is no such folder"),
    ],
)
def test_mistakes_are_named(folder, arguments, says):
    run = privmax("select", *arguments)
    assert (run.exit_code, run.stdout) == (2, "")
    assert says in " ".join(run.stderr.split())


class TestExit4:
    """What may be tried again is told from what must be corrected."""

    def test_a_server_that_is_not_there(self, folder):
        url = "postgres://me:hunter2@127.0.0.1:1/shop"
        for command in (
            ("select", url, "--table", "t", *QUERY),
            ("itemsets", url, "--table", "t", "--basket", "b", "--item", "i", *PRICE),
            ("select", "a.csv", *QUERY, "--ledger", url),
            ("budget", "show", url),
        ):
            run = privmax(*command)
            assert (run.exit_code, run.stdout) == (4, ""), command
            assert "hunter2" not in run.stderr

    @pytest.mark.slow
    def test_a_database_that_another_process_writes_to(self, folder):
        lite = sqlite3.connect("shop.db", isolation_level=None)
        lite.execute("PRAGMA locking_mode = EXCLUSIVE")
        lite.execute("BEGIN EXCLUSIVE")
        run = privmax("select", "shop.db", "--table", "searches", *QUERY)
        lite.execute("ROLLBACK")
        lite.close()
        assert run.exit_code == 4
        assert privmax("select", "shop.db", "--table", "searches", *QUERY).exit_code == 0

    def test_what_must_be_corrected_is_exit_2(self, folder):
        for url in ("postgres://me@127.0.0.1:port/shop", "postgres://me@no.such.host.invalid/shop"):
            run = privmax("select", url, "--table", "t", *QUERY)
            assert run.exit_code == 2, url
        assert privmax("select", "shop.db", "--table", "none", *QUERY).exit_code == 2


def test_limits_reach_the_engine(folder, monkeypatch):
    seen = []

    def prepare(connection, held):
        seen.append(CHOSEN.get())
        return real(connection, held)

    from privmax.sources.engines import duckdb as engine

    real = engine.prepare
    monkeypatch.setattr(engine, "prepare", prepare)
    answer("select", "a.csv", *QUERY, "--memory", "1GB", "--temporary", folder)
    assert (seen[0].memory, seen[0].folder) == ("1GB", str(folder))
    assert seen[0].watch is None  # nobody looks at a terminal


@pytest.mark.slow
def test_progress_is_what_duckdb_says(folder):
    """Of a query that runs in another thread, as long as it does."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    assert connection.query_progress() == -1
    shown, done = [], Event()

    class Half:
        def query_progress(self):
            if len(shown) == 2:
                done.set()
            return (-1.0, 50.0, 75.0)[min(len(shown), 2)]

    _watch("Counting", [Half()], shown.append, done)
    assert shown[0] == "Counting"
    assert shown[1].startswith("Counting: 50 % done, about ")
    assert describe_progress("Counting", 0.2, 9) == "Counting: 0 % done"


def test_the_commands_of_the_page_check_and_release_something():
    page = (Path(__file__).parents[2] / "docs/inputs.md").read_text(encoding="utf-8")
    _, *parts = page.split("```console\n$ privmax ")
    commands = [part.partition("```")[0] for part in parts]
    answers = ["checked    FILE can be read", "item       rain boots"]
    for command, answer in zip(commands, answers, strict=True):
        run = privmax(*shlex.split(command.replace("\\\n", " ")))
        assert (run.exit_code, run.stderr) == (0, "")
        assert run.stdout.startswith(answer)


@pytest.mark.parametrize(
    "output",
    ["logs/1.csv", "logs/new.csv", "link.csv", "./logs/../logs/new.csv", "way/new.csv"],
)
def test_nothing_is_written_to_what_a_pattern_reads(folder, output):
    """Written over, data is lost; written beside it, the next night would count the answer."""
    Path("logs/1.csv").write_text(CSV)
    Path("link.csv").symlink_to("logs/1.csv")
    Path("way").symlink_to("logs")
    Path("logs/lost.csv").symlink_to("nowhere")
    run = privmax("select", "logs/*.csv", *QUERY, "--output", output)
    assert (run.exit_code, run.stdout) == (2, "")
    assert "would read it as data" in run.stderr
    assert Path("logs/1.csv").read_text() == CSV
    assert not Path("logs/new.csv").exists()


def test_nothing_is_written_to_a_folder_that_is_read(folder):
    Path("logs/deep").mkdir()
    duckdb.sql("COPY (FROM 'a.csv') TO 'logs/a.parquet'")
    for output in ("logs/new.parquet", "logs/deep/new.parquet"):
        run = privmax("select", "logs", *QUERY, "--output", output)
        assert (run.exit_code, run.stdout) == (2, "")
        assert "would read it as data" in run.stderr
    assert privmax("select", "logs", *QUERY, "--output", "logs/new.csv").exit_code == 0


@pytest.mark.slow
def test_standard_input_that_is_closed_is_told(folder):
    line = shlex.join([sys.executable, "-m", "privmax", "select", "-", *QUERY])
    run = subprocess.run(f"{line} <&-", shell=True, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        "Error: Standard input is closed. Give a file, or write the data to it.\n"
    )


def test_a_pipe_that_is_named_like_a_file_is_refused(folder):
    """To read it twice would wait without end."""
    os.mkfifo("a.csv.pipe.csv")
    run = privmax("select", "a.csv.pipe.csv", *QUERY)
    assert (run.exit_code, run.stdout) == (2, "")
    assert "A pipe can be read once only." in run.stderr


def test_files_of_public_facts_end(folder):
    """Names of items and saved rules are small; a device has no end, and brackets no bottom."""
    baskets, deep = folder / "b.dat", folder / "deep.json"
    baskets.write_text("1 2\n" * 200)
    deep.write_text("[" * 100_000 + "]" * 100_000)
    for names in ("/dev/zero", deep):
        run = privmax("itemsets", baskets, "--labels", names, *PRICE)
        assert (run.exit_code, run.stdout) == (2, "")
        assert "--labels: the file is neither a JSON list nor a JSON object." in run.stderr
    for rule in ("/dev/zero", deep):
        run = privmax("learn", baskets, "--apply", rule)
        assert run.exit_code == 2
        assert "Give a file that privmax learn --save wrote." in run.stderr


@pytest.mark.slow
def test_one_basket_does_not_stall_a_release(folder):
    """All itemsets of a basket of many items: more than can be listed, said before any charge."""
    baskets = folder / "b.dat"
    baskets.write_text(" ".join(map(str, range(100_000))) + "\n" + "1 2 3\n" * 20)
    run = privmax("itemsets", baskets, "--size", "any", "--k", 5, *PRICE)
    assert run.exit_code == 2
    assert "too many to count. Use smaller sizes" in run.stderr


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("select", "scores.csv", "--score", "score", *PRICE), 0),
        (("select", "broken.csv", "--score", "score", *PRICE), 2),
        (("itemsets", "baskets.dat", "--size", "1", *PRICE), 0),
        (
            (
                "learn",
                "rows.csv",
                "--label=y",
                "--labels=0,1",
                "--low=0",
                "--high=9",
                "--epsilon=4",
            ),
            0,
        ),
    ],
)
def test_a_padded_answer_waits_before_it_is_shown(tmp_path, monkeypatch, command, code):
    """Whether there is an answer or an error, and without showing how far the work is."""
    monkeypatch.chdir(tmp_path)
    Path("scores.csv").write_text("item,score\ntea,900\nale,1\n")
    Path("broken.csv").write_text("item,score\ntea,900\nale,many\n")
    Path("baskets.dat").write_text("1 2\n1\n1 3\n" * 30)
    Path("rows.csv").write_text("a,b,y\n" + "1,0,1\n0,1,0\n" * 50)
    events = []

    class Schedule:
        def __init__(self, seconds):
            events.append(seconds)

        def __enter__(self):
            events.append("begins")

        def __exit__(self, *_):
            events.append("ends")

    from privmax.cli import run

    monkeypatch.setattr(run, "pad_time", Schedule)
    monkeypatch.setattr(run.click, "echo", lambda *_, **__: events.append("shown"))
    done = privmax(*command, "--pad-time", "2")
    assert (done.exit_code, events[:3]) == (code, [2, "begins", "ends"])
    assert events[3:] == ([] if code else ["shown"])


@pytest.mark.parametrize(("step", "said"), [("0", "above 0"), ("1e-400", "at least 0.001")])
def test_a_schedule_that_is_none_is_refused_before_anything_is_charged(folder, step, said):
    run = privmax("select", "a.csv", *QUERY, "--pad-time", step)
    assert (run.exit_code, run.stdout) == (2, "")
    assert f"--pad-time {step}: it must be {said}" in run.stderr


@pytest.mark.parametrize("padded", [True, False])
def test_warnings_of_a_padded_answer_come_last(tmp_path, monkeypatch, padded):
    """When they come would tell how long reading took."""
    from privmax.cli import run

    events = []

    class Schedule:
        def __init__(self, seconds):
            pass

        def __enter__(self):
            pass

        def __exit__(self, *_):
            events.append("ends")

    monkeypatch.chdir(tmp_path)
    Path("scores.csv").write_text("item,score\ntea,900\nale,1\n")
    monkeypatch.setattr(run, "pad_time", Schedule)
    monkeypatch.setattr(run.click, "echo", lambda text, **_: events.append(text[:7]))
    options = ("--pad-time", "2") if padded else ()
    weak = ("--epsilon", "20", "--delta", "1e-6")
    privmax("select", "scores.csv", "--score", "score", *weak, *options)
    assert "Warning" in events
    assert (events.index("Warning") > events.index("ends")) if padded else "ends" not in events
