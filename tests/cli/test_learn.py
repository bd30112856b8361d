"""privmax learn, as a user types it: rules, exact JSON, saved rules, the ledger, exit codes,
mistakes.
"""

from __future__ import annotations

import gzip
import json
import os

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner

from privmax import Ledger, Privacy, samples
from privmax.cli import main
from privmax.cli.commands.learn import command
from privmax.cli.learn.rules import CLASSES
from privmax.learning import PrivateERM
from privmax.mechanisms.registry import MECHANISMS

SECRETS = ("73519", "zorblax", "4711")
NAMES = "age,visits,card"
RNG = np.random.default_rng(3)
ROWS = [
    (age, visits, int(visits >= 30)) for age, visits in RNG.integers(0, 100, (3000, 2)).tolist()
]
LABEL = ("--label", "card", "--labels", "0,1")
PRICE = ("--epsilon", "2")
BOUNDS = ("--low", 0, "--high", 100, "--cells", 10)
RULE = ("--hypotheses", "stumps")
ASKED = (*LABEL, *RULE, *PRICE, *BOUNDS)
ANSWER = ["rule       card = 1 if visits >= 30, else 0"]
"""With 3,000 rows all of which it gets right, and the next 10 % away, this rule is released for
certain.
"""


def privmax(*arguments, stdin=None):
    return CliRunner().invoke(main, ["learn", *map(str, arguments)], input=stdin)


def text_of(names, rows, separator=","):
    lines = [names.replace(",", separator), *(separator.join(map(str, row)) for row in rows)]
    return "\n".join(lines) + "\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text_of(NAMES, ROWS), encoding="utf-8")
    return path


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "budget.db"
    Ledger.create(path, budget=Privacy(3, "1e-5")).close()
    return path


def spent(path):
    with Ledger(path) as ledger:
        return ledger.spent


def answer(run):
    assert (run.exit_code, run.stderr) == (0, "")
    return run.stdout.splitlines()[:1]


def refusal(run, code=2):
    assert (run.exit_code, run.stdout) == (code, "")
    for secret in SECRETS:
        assert secret not in run.stderr
    return " ".join(run.stderr.split())


def test_the_rule_is_told_with_the_names_of_columns(file):
    run = privmax(file, *ASKED)
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        *ANSWER,
        "cost       epsilon 2, delta 0",
        "mechanism  draws an item, likelier the better it is (PermuteAndFlip: delta is 0)",
        "unit       each row is one individual",
    ]


def test_the_example_of_the_help_works_as_typed():
    run = privmax("sample:members", *LABEL, *RULE, "--low", 0, "--high", 100, "--epsilon", 1)
    assert answer(run) == ["rule       card = 1 if visits >= 25, else 0"]


def test_its_json(file):
    assert json.loads(privmax(file, *ASKED, "--json").stdout) == {
        "rule": {
            "when": "all",
            "tests": [{"feature": "visits", "threshold": 30.0, "below": False}],
            "then": {"label": 1},
            "else": {"label": 0},
        },
        "words": "card = 1 if visits >= 30, else 0",
        "label": "card",
        "labels": [0, 1],
        "features": ["age", "visits"],
        "privacy": {"epsilon": "2", "delta": "0"},
        "mechanism": "PermuteAndFlip(epsilon=2, delta=0, neighbors='add-remove', k=1)",
        "why": "delta is 0",
        "free": {},
        "unit": "row",
    }


@pytest.mark.parametrize(
    "hypotheses",
    [pytest.param(name, marks=pytest.mark.slow if "junctions" in name else ()) for name in CLASSES],
)
def test_every_class_finds_a_rule_that_is_right(hypotheses, file, tmp_path):
    model = tmp_path / "rule.json"
    asked = (*LABEL, *PRICE, *BOUNDS, "--hypotheses", hypotheses)
    assert privmax(file, *asked, "--save", model).exit_code == 0
    run = privmax(file, "--apply", model)
    assert (run.exit_code, run.stderr) == (0, "")
    name, *labels = run.stdout.splitlines()
    assert name == "card"
    right = sum(int(said) == card for said, (_, _, card) in zip(labels, ROWS, strict=True))
    assert right >= 2970


@pytest.mark.slow
def test_conjunctions_of_bits_need_no_bounds(tmp_path):
    rows = [(a, b, int(a == 1 and b == 0)) for a in (0, 1) for b in (0, 1)] * 200
    text = text_of("wet,cold,out", rows)
    run = privmax(
        "-", "--label", "out", "--labels", "0,1", *PRICE, "--hypotheses", "conjunctions", stdin=text
    )
    assert answer(run) == ["rule       out = 1 if wet is 1 and cold is 0, else 0"]
    path = tmp_path / "rows.csv"
    path.write_text(text + "4711,0,0\n", encoding="utf-8")
    run = privmax(path, "--label", "out", "--labels", "0,1", *PRICE, "--hypotheses", "conjunctions")
    assert "Without --low and --high every feature must be 0 or 1" in refusal(run)


def test_bounds_by_column_and_for_the_rest(file, monkeypatch):
    seen = []
    fit = PrivateERM.fit_read
    monkeypatch.setattr(
        PrivateERM,
        "fit_read",
        lambda self, *given: seen.append(self.hypotheses.hypotheses) or fit(self, *given),
    )
    run = privmax(
        file,
        *LABEL,
        *RULE,
        *PRICE,
        "--low",
        -1,
        "--low",
        "visits=0",
        "--high",
        "visits=100",
        "--high",
        99,
    )
    assert run.exit_code == 0
    assert seen[0].low == [-1, 0]
    assert seen[0].high == [99, 100]
    assert seen[0].cells == 16


def test_features_are_chosen_and_put_in_order(file):
    found = json.loads(privmax(file, *ASKED, "--features", "visits", "--json").stdout)
    assert found["features"] == ["visits"]
    assert found["words"] == "card = 1 if visits >= 30, else 0"
    found = json.loads(privmax(file, *ASKED, "--features", "visits,age", "--json").stdout)
    assert found["features"] == ["visits", "age"]
    assert found["words"] == "card = 1 if visits >= 30, else 0"


def test_a_mechanism_can_be_chosen(file):
    run = privmax(file, *ASKED, "--mechanism", "exponential", "--neighbors", "replace")
    assert run.stdout.splitlines()[2] == (
        "mechanism  draws an item, likelier the better it is (Exponential: you chose it)"
    )
    found = json.loads(
        privmax(
            file, *ASKED, "--mechanism", "limited-domain", "--rank", 3, "--delta", "1e-6", "--json"
        ).stdout
    )
    assert found["mechanism"].startswith("LimitedDomain(epsilon=2, delta=1e-06, rank=3")
    assert found["privacy"] == {"epsilon": "2", "delta": "1e-06"}


def test_nothing_released_is_said_and_nothing_is_saved(file, tmp_path):
    model = tmp_path / "rule.json"
    huge = (
        "--hypotheses",
        "trees",
        "--cells",
        300,
        "--mechanism",
        "nested-margin",
        "--delta",
        "1e-9",
    )
    few = (file.parent / "few.csv", *LABEL, "--epsilon", "0.01", "--low", 0, "--high", 100, *huge)
    few[0].write_text(text_of(NAMES, ROWS[:5]), encoding="utf-8")
    run = privmax(*few, "--save", model)
    assert run.exit_code == 0
    told = run.stdout.splitlines()
    assert told[0] == "rule       no answer: no rule stood out enough"
    assert told[1].startswith("next       See how clear a winner must be: privmax plan ")
    assert "cost       epsilon 0.01, delta 1e-09" in told
    assert "rule.json was not written" in run.stderr
    assert not model.exists()
    found = json.loads(privmax(*few, "--json").stdout)
    assert (found["rule"], found["words"]) == (None, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", ["csv", "semicolons", "tsv", "gz", "parquet", "folder", "stdin", "windows"]
)
def test_every_form_of_data_gives_the_same_rule(form, tmp_path, file):
    text = text_of(NAMES, ROWS, {"semicolons": ";", "tsv": "\t"}.get(form, ","))
    path = tmp_path / f"data.{form if form in ('tsv', 'parquet') else 'csv'}"
    if form in ("parquet", "folder"):
        path = tmp_path / "parts" if form == "folder" else path
        (tmp_path / "parts").mkdir()
        with duckdb.connect() as made:
            for part, rows in enumerate(("< 50", ">= 50")):
                place = path / f"{part}.parquet" if form == "folder" else path
                kept = f"WHERE age {rows}" if form == "folder" else ""
                made.execute(
                    f"COPY (SELECT * FROM read_csv('{file}') {kept}) TO '{place}' (FORMAT parquet)"
                )
    elif form == "gz":
        path = tmp_path / "data.csv.gz"
        path.write_bytes(gzip.compress(text.encode()))
    elif form == "windows":
        path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    else:
        path.write_text(text, encoding="utf-8")
    assert answer(privmax("-" if form == "stdin" else path, *ASKED, stdin=text)) == ANSWER


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("column", "labels", "told"),
    [
        ("word", "no,yes", "word = yes if visits >= 30, else no"),
        ("word", '"no","yes"', "word = yes if visits >= 30, else no"),
        ("holder", "false,true", "holder = true if visits >= 30, else false"),
        ("half", "0.5,1.5", "half = 1.5 if visits >= 30, else 0.5"),
        ("card", "1,0,2", "card = 1 if visits >= 30, else 0"),
    ],
)
def test_labels_are_text_or_numbers(form, column, labels, told, file):
    words = (
        "CASE card WHEN 1 THEN 'yes' ELSE 'no' END AS word, card = 1 AS holder, card + 0.5 AS half"
    )
    path = file.with_name(f"more.{form}")
    with duckdb.connect() as made:
        options = "FORMAT parquet" if form == "parquet" else "FORMAT csv, HEADER"
        made.execute(
            f"COPY (SELECT visits, card, {words} FROM read_csv('{file}')) TO '{path}' ({options})"
        )
    run = privmax(
        path, "--label", column, "--labels", labels, "--features", "visits", *RULE, *PRICE, *BOUNDS
    )
    assert answer(run) == [f"rule       {told}"]


def test_a_saved_rule_is_what_json_prints(file, tmp_path):
    model = tmp_path / "rule.json"
    run = privmax(file, *ASKED, "--save", model, "--json")
    assert json.loads(model.read_text(encoding="utf-8")) == json.loads(run.stdout)
    assert sorted(os.listdir(tmp_path)) == ["rows.csv", "rule.json"]


def test_what_json_prints_can_be_applied_to_other_rows(file, tmp_path):
    model = tmp_path / "rule.json"
    model.write_text(privmax(file, *ASKED, "--json").stdout, encoding="utf-8")
    run = privmax("-", "--apply", model, stdin="name,visits\nAda,29.9\nBob,30\n")
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout == "card\n0\n1\n"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_rule_that_looks_at_nothing_is_applied_to_every_row(form, tmp_path):
    model, path = tmp_path / "rule.json", tmp_path / f"data.{form}"
    model.write_text(json.dumps({"label": "a,b", "rule": {"label": "x, y"}}), encoding="utf-8")
    with duckdb.connect() as made:
        options = "FORMAT parquet" if form == "parquet" else "FORMAT csv, HEADER"
        made.execute(f"COPY (SELECT 'Ada' AS name FROM range(2)) TO '{path}' ({options})")
    run = privmax(path, "--apply", model)
    assert (run.exit_code, run.stdout) == (0, '"a,b"\n"x, y"\n"x, y"\n')


SAVED = {"label": "card", "rule": {"label": 1}}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        "7",
        '{"label": "card"}',
        '{"label": 1, "rule": {"label": 1}}',
        "\xff",
        "[" * 10**5,
    ],
)
def test_a_file_without_a_rule_is_not_applied(content, file, tmp_path):
    model = tmp_path / "rule.json"
    model.write_bytes(content.encode("latin-1"))
    assert "the file has no rule. Give a file that privmax learn --save wrote." in refusal(
        privmax(file, "--apply", model)
    )


def test_a_release_of_nothing_is_not_applied(file, tmp_path):
    model = tmp_path / "rule.json"
    model.write_text(json.dumps({**SAVED, "rule": None}), encoding="utf-8")
    assert "has no rule" in refusal(privmax(file, "--apply", model))


@pytest.mark.parametrize(
    "option",
    [
        ("--epsilon", 1),
        ("--label", "card"),
        ("--save", "x"),
        ("--ledger", "x"),
        ("--json",),
        ("--low", 0),
    ],
)
def test_apply_takes_nothing_else(option, file, tmp_path):
    model = tmp_path / "rule.json"
    model.write_text(json.dumps(SAVED), encoding="utf-8")
    assert f"Error: {option[0]}" in refusal(privmax(file, "--apply", model, *option))


def test_columns_that_a_rule_needs_must_be_there(tmp_path, file):
    model = tmp_path / "rule.json"
    assert privmax(file, *ASKED, "--save", model).exit_code == 0
    told = refusal(privmax("-", "--apply", model, stdin="zorblax,age\n1,2\n"))
    assert "--features visits: the file has no such column" in told


def test_the_ledger_is_charged_once_and_gives_the_rule_again(file, ledger):
    command = (file, *ASKED, "--ledger", ledger, "--request", "r1")
    run = privmax(*command)
    assert run.exit_code == 0
    assert run.stdout.splitlines() == [
        *ANSWER,
        "cost       epsilon 2, delta 0",
        "mechanism  draws an item, likelier the better it is (PermuteAndFlip: delta is 0)",
        "left       epsilon 1, delta 1e-05",
        "request    r1",
        "unit       each row is one individual",
    ]
    file.write_text(text_of(NAMES, [(age, visits, 0) for age, visits, _ in ROWS]), encoding="utf-8")
    again = privmax(*command).stdout.splitlines()
    assert again.pop(len(ANSWER) + 2).endswith(" UTC; no data was read")
    assert again == run.stdout.splitlines()
    found = json.loads(privmax(*command, "--json").stdout)
    assert (found["request"], found["left"]) == ("r1", {"epsilon": "1", "delta": "1e-05"})
    assert spent(ledger) == Privacy(2)


def test_a_request_about_other_columns_is_another_request(file, ledger):
    paid = (*PRICE, *BOUNDS, "--ledger", ledger, "--request", "r1")
    assert privmax(file, *LABEL, *paid, "--features", "visits,age").exit_code == 0
    told = refusal(privmax(file, *LABEL, *paid, "--features", "age,visits"))
    assert "'r1' was charged before" in told
    told = refusal(
        privmax(file, "--label", "age", "--labels", "0,1", *paid, "--features", "visits,card")
    )
    assert "'r1' was charged before" in told
    assert spent(ledger) == Privacy(2)


def test_what_does_not_fit_is_exit_3(file, ledger):
    command = (file, *LABEL, *BOUNDS, "--epsilon", 4, "--ledger", ledger)
    assert "the privacy cost is epsilon 4" in refusal(privmax(*command), 3)
    run = privmax(*command, "--json")
    assert run.exit_code == 3
    assert json.loads(run.stdout)["error"] == "budget"
    assert spent(ledger) == Privacy(0)


def test_a_failure_to_save_comes_after_the_answer_and_tells_how_to_have_it_again(
    file, ledger, tmp_path, monkeypatch
):
    def failing(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", failing)
    run = privmax(
        file, *ASKED, "--ledger", ledger, "--request", "r1", "--save", tmp_path / "rule.json"
    )
    assert run.exit_code == 2
    assert run.stdout.splitlines()[:1] == ANSWER
    told = " ".join(run.stderr.split())
    assert "No space left on device" in told
    assert "The rule above is valid and charged. Get it again at no cost with --request r1." in told
    assert sorted(path.name for path in tmp_path.glob("*rule*")) == []


def test_nothing_is_charged_where_the_rule_could_not_be_saved(file, ledger, tmp_path):
    for place, told in (
        (tmp_path / "no" / "rule.json", "there is no such folder"),
        (tmp_path, "it exists and is not a regular file"),
    ):
        assert told in refusal(privmax(file, *ASKED, "--ledger", ledger, "--save", place))
    assert spent(ledger) == Privacy(0)


def test_a_saved_rule_replaces_what_was_there(file, tmp_path):
    model, link = tmp_path / "rule.json", tmp_path / "link.json"
    model.write_text("old", encoding="utf-8")
    link.symlink_to(model)
    assert privmax(file, *ASKED, "--save", link).exit_code == 0
    assert link.is_symlink()
    assert json.loads(model.read_text(encoding="utf-8"))["label"] == "card"


WRONG = {
    "no label": (ASKED[2:], "--label:"),
    "no labels": (
        ("--label", "card", *PRICE, *BOUNDS),
        "--labels: all possible labels",
    ),
    "no epsilon": ((*LABEL, *BOUNDS), "--epsilon:"),
    "no bounds": (
        (*LABEL, *PRICE),
        "Add --low NUMBER for all columns, or --low COLUMN=NUMBER for each",
    ),
    "no upper bound": ((*LABEL, *PRICE, "--low", 0), "Add --high NUMBER for all columns"),
    "no bound of a column": (
        (*LABEL, *PRICE, "--low", 0, "--high", "age=100"),
        "the column visits has no such bound, which must be public and never computed from the "
        "data. Add --high "
        "visits=NUMBER",
    ),
    "conjunctions with one bound": (
        (*LABEL, *PRICE, "--low", 0, "--hypotheses", "conjunctions"),
        "--high: ",
    ),
    "conjunctions with cells": (
        (*LABEL, *PRICE, "--cells", 4, "--hypotheses", "conjunctions"),
        "--low: ",
    ),
    "a bound twice": ((*ASKED, "--low", 1), "--low 1: the same bound is given twice"),
    "a bound of a column twice": (
        (*ASKED, "--low", "age=1", "--low", "age=2"),
        "--low age=2:",
    ),
    "a bound that is none": (
        (*ASKED, "--low", "age=old"),
        "--low age=old: it must be NUMBER or COLUMN=NUMBER",
    ),
    "an infinite bound": (
        (*LABEL, *PRICE, "--low", 0, "--high", "inf"),
        "--high inf:",
    ),
    "a huge bound": (
        (*LABEL, *PRICE, "--low", 0, "--high", "1e400"),
        "--high 1e400:",
    ),
    "a bound of nothing": (
        (*ASKED, "--high", "agee=3"),
        "--high agee=3: no feature has this name",
    ),
    "bounds swapped": (
        (*LABEL, *PRICE, "--low", 5, "--high", 1),
        "--high age=1: it must be above",
    ),
    "one label": (
        ("--label", "card", "--labels", "1", *PRICE, *BOUNDS),
        "--labels 1:",
    ),
    "labels alike": (
        ("--label", "card", "--labels", "1,1.0", *PRICE, *BOUNDS),
        "--labels 1,1.0:",
    ),
    "an empty label": (
        ("--label", "card", "--labels", "1,", *PRICE, *BOUNDS),
        "--labels 1,:",
    ),
    "labels undone": (("--label", "card", "--labels", '1,"2', *PRICE, *BOUNDS), "Close its quotes"),
    "labels missing": (
        ("--label", "card", "--labels", "1,2", *PRICE, *BOUNDS),
        "has a label that is not in --labels",
    ),
    "no such label": (
        ("--label", "crad", "--labels", "0,1", *PRICE, *BOUNDS),
        "--label crad: the file has",
    ),
    "no such feature": (
        (*ASKED, "--features", "agee"),
        "--features agee: the file has no such column",
    ),
    "label as feature": ((*ASKED, "--features", "age,card"), "and not the label"),
    "feature twice": ((*ASKED, "--features", "age,age"), "it must name distinct columns"),
    "too few cells": ((*ASKED[:-1], 1), "--cells 1:"),
    "literals of stumps": (
        (*ASKED, "--literals", 2),
        "--literals 2: only conjunctions and disjunctions take it",
    ),
    "rank": ((*ASKED, "--rank", 2), "Add --mechanism limited-domain"),
    "floor": ((*ASKED, "--floor", -1), "--floor -1:"),
    "epsilon 0": ((*LABEL, *BOUNDS, "--epsilon", 0), "--epsilon 0:"),
    "too many trees": (
        (*LABEL, *PRICE, *BOUNDS[:-1], 60000, "--hypotheses", "trees"),
        "Use fewer cells",
    ),
    "three labels": (
        ("--label", "card", "--labels", "0,1,2", *PRICE, *BOUNDS, "--hypotheses", "conjunctions"),
        "Only binary classification",
    ),
    "no ledger": ((*ASKED, "--ledger", "nowhere.db"), "nowhere.db: there is no such file"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_mistakes_are_named(options, message, file, monkeypatch):
    monkeypatch.chdir(file.parent)
    assert message in refusal(privmax(file, *options))


BAD = {
    "text": ("age,visits,card\n1,zorblax,1\n", "Line 2 has no finite number in column 2"),
    "nothing": ("age,visits,card\n1,2,1\n73519,,1\n", "Line 3 has no finite number in column 2"),
    "infinite": (
        "age,visits,card\n1,2,1\n73519,inf,1\n",
        "Line 3 has no finite number in column 2",
    ),
    "not a number": (
        "age,visits,card\n1,2,1\n73519,nan,1\n",
        "Line 3 has no finite number in column 2",
    ),
    "label": (
        "age,visits,card\n1,2,1\n1,2,4711\n",
        "Line 3 has a label that is not in --labels",
    ),
    "no label": (
        "age,visits,card\n1,2,1\n\n1,2,\n",
        "Line 4 has a label that is not in --labels",
    ),
    "short": (
        "age,visits,card\n1,2,1\n1,73519\n",
        "Line 3 does not have as many values as the first line",
    ),
    "long": (
        "age,visits,card\n1,2,1,73519\n",
        "Line 2 does not have as many values as the first line",
    ),
    "empty": ("", "The file is empty"),
    "header only": ("age,visits,card\n", "FILE has no rows"),
    "names twice": ("zorblax,zorblax,card\n1,2,1\n", "Two columns of the file have the same name"),
    "no names": ("73519,4711,card\n1,2,1\n", "The first line of FILE has a number"),
    "no column": ("zorblax,73519\n1,2\n", "--label card: the file has no such column"),
    "quotes": ('age,visits,card\n1,2,"73519\n', "Line 2 is not CSV: a quote is not closed"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("stdin", [True, False], ids=["stdin", "file"])
def test_bad_data_is_named_by_line_and_never_quoted(content, message, stdin, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(content, encoding="utf-8")
    assert message in refusal(privmax("-" if stdin else path, *ASKED, stdin=content))


@pytest.mark.parametrize(
    "content",
    [b"\x89PNG\r\n\x1a\n\x00\x00", "älter,card\n1,1\n".encode("latin-1"), b"\xff\xfea\x00"],
)
def test_files_that_are_no_text(content, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    assert "is not UTF-8 text" in refusal(privmax(path, *ASKED))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT 'zorblax' AS age, 1 AS card",
            "A row of FILE has no finite number in one of the columns",
        ),
        (
            "SELECT NULL::INTEGER AS age, 1 AS card",
            "A row of FILE has no finite number in one of the columns",
        ),
        (
            "SELECT 4711 AS age, 5 AS card",
            "A row of FILE has a label that is not in --labels",
        ),
        (
            "SELECT 4711 AS age, NULL AS card",
            "A row of FILE has a label that is not in --labels",
        ),
        (
            "SELECT DATE '2020-01-01' AS age, 1 AS card",
            "--features age: the column has values that are not numbers",
        ),
        ("SELECT 1 AS age, 1 AS card LIMIT 0", "FILE has no rows"),
        ("SELECT 1 AS age", "--label card: the file has no such column"),
    ],
)
def test_bad_tables_are_named(query, message, tmp_path):
    path = tmp_path / "bad.parquet"
    with duckdb.connect() as made:
        made.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    assert message in refusal(privmax(path, *ASKED))


def test_a_line_of_numbers_is_no_line_of_names_in_any_text_file(tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_text("73519\tcard\n1\t1\n", encoding="utf-8")
    assert "The first line of FILE has a number" in refusal(privmax(path, *ASKED))
    assert privmax(path, *ASKED, "--features", "73519").exit_code == 0


@pytest.mark.parametrize("where", ["postgresql://me:hunter2@127.0.0.1:1/db", "duckdb://rows.db"])
def test_databases_need_a_table_and_are_not_quoted(where):
    told = refusal(privmax(where, *ASKED))
    assert "the data is a database" in told or "There is no such database file" in told
    assert "hunter2" not in told


def test_no_such_file(tmp_path):
    assert "No such file or folder" in refusal(privmax(tmp_path / "gone.csv", *ASKED))
    assert "there is no such data set" in refusal(privmax("sample:typo", *ASKED))


def test_how_many_rows_there_are_is_not_told(file):
    for run in (privmax(file, *ASKED), privmax(file, *ASKED, "--json")):
        assert str(len(ROWS)) not in run.output


def test_mechanisms_on_offer_are_those_that_need_neither_k_nor_growth():
    (option,) = (one for one in command.params if one.name == "mechanism")
    needed = {
        name: [one for one, kind in entry.parameters.items() if kind.default is kind.empty]
        for name, entry in MECHANISMS.items()
    }
    fitting = [name for name, needs in needed.items() if not {"k", "growth"} & set(needs)]
    assert list(option.type.choices) == ["auto", *fitting]


def test_a_price_that_protects_nobody_is_warned_of(file):
    run = privmax(file, *LABEL, *BOUNDS, "--epsilon", 100)
    assert run.exit_code == 0
    assert "epsilon 100 protects no one" in run.stderr


def test_the_shipped_members_are_what_the_help_says():
    assert (
        samples.path("members").read_text(encoding="utf-8").splitlines()[0]
        == "age,visits,spend,distance,card"
    )


def test_a_file_with_nothing_to_predict_from_is_named(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("card\n0\n1\n", encoding="utf-8")
    assert "no column to predict from" in refusal(privmax(path, *LABEL, *BOUNDS, *PRICE))


SCHEMA = """
[age]
low = 0
high = 100
cells = 10
missing = true

[work]
values = ["Private", "Gov"]
missing = "?"
"""


def members(rows=2000):
    """Ages, some missing or no numbers, kinds of work, and a label that follows from both."""
    rng = np.random.default_rng(4)
    ages = [*rng.integers(0, 100, rows - 3).tolist(), "", "73519x", "1e999"]
    works = rng.choice(["Private", " Private", "Gov", "?", "", "zorblax"], rows).tolist()
    yes = [
        isinstance(age, int) and age >= 40 and work.strip() == "Private"
        for age, work in zip(ages, works, strict=True)
    ]
    labels = ["yes" if one else "no" for one in yes]
    return [(place, *row) for place, row in enumerate(zip(ages, works, labels, strict=True))]


WITH_SCHEMA = ("--label", "card", "--labels", "no,yes", "--hypotheses", "conjunctions")
WITH_SCHEMA += ("--literals", "2", "--epsilon", "5")
FOUND = "rule       card = yes if age >= 40 and work = Private, else no"


@pytest.fixture
def declared(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA, encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "gzip", "parquet", "json", "stdin"])
def test_a_schema_reads_text_categories_and_missing_values(form, declared, tmp_path):
    rows, names = members(), "id,age,work,card"
    path, stdin = tmp_path / "rows.csv", None
    path.write_text(text_of(names, rows), encoding="utf-8")
    if form == "gzip":
        path = tmp_path / "rows.csv.gz"
        path.write_bytes(gzip.compress(text_of(names, rows).encode()))
    elif form == "parquet":
        path = tmp_path / "rows.parquet"
        duckdb.sql(
            f"COPY (SELECT * FROM read_csv('{tmp_path}/rows.csv', all_varchar=true)) "
            f"TO '{path}' (FORMAT parquet)"
        )
    elif form == "json":
        path = tmp_path / "rows.jsonl"
        objects = (dict(zip(names.split(","), row, strict=True)) for row in rows)
        path.write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
    elif form == "stdin":
        path, stdin = "-", text_of(names, rows)
    result = privmax(path, "--schema", declared, *WITH_SCHEMA, stdin=stdin)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == FOUND


def test_a_rule_with_a_schema_is_saved_with_it_and_applied(declared, tmp_path):
    file, saved = tmp_path / "rows.csv", tmp_path / "rule.json"
    file.write_text(text_of("id,age,work,card", members()), encoding="utf-8")
    result = privmax(file, "--schema", declared, *WITH_SCHEMA, "--save", saved, "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["features"] == ["age", "work"]
    assert told["schema"] == {
        "age": {"low": 0, "high": 100, "cells": 10, "missing": True},
        "work": {"values": ["Private", "Gov"], "missing": "?"},
    }
    assert told["rule"]["tests"] == [
        {"feature": "age", "threshold": 40.0, "below": False, "missing": False},
        {"feature": "work", "equals": "Private", "not": False},
    ]
    new = tmp_path / "new.csv"
    new.write_text("work,age\n Private,51\nGov,51\nPrivate,\nzorblax,x\nPrivate,12\n")
    result = privmax(new, "--apply", saved)
    assert result.stdout.split() == ["card", "yes", "no", "no", "no", "no"]
    told["rule"]["tests"][0]["threshold"] = 41
    saved.write_text(json.dumps(told))
    assert "the file has no rule" in privmax(new, "--apply", saved).output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--low", 0), "--low 0.0: --schema already sets it for every column"),
        (("--high", "age=3"), "--high {'age': 3.0}: --schema already sets it for every column"),
        (("--cells", 3), "--cells 3: --schema already sets it for every column"),
        (
            ("--features", "age,wrok"),
            "--features wrok: the schema has no such column. Did",
        ),
    ],
)
def test_what_stands_beside_a_schema(options, message, declared, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(text_of("id,age,work,card", members(50)), encoding="utf-8")
    result = privmax(file, "--schema", declared, *WITH_SCHEMA, *options)
    assert result.exit_code == 2
    assert message in result.output


def test_features_choose_among_the_columns_of_a_schema(declared, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(text_of("id,age,work,card", members()), encoding="utf-8")
    result = privmax(file, "--schema", declared, *WITH_SCHEMA, "--features", "work", "--json")
    assert json.loads(result.stdout)["features"] == ["work"]
    assert list(json.loads(result.stdout)["schema"]) == ["work"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[age]\nlow = 1\n", "age.high"),
        ("[card]\nvalues = [1]\n", "it declares the label, card"),
        ("[salary]\nlow = 0\nhigh = 1\n", "--schema salary: the file has no such column"),
        ("age", "not valid TOML"),
        ('["\\u001b[31m"]\nlow = 0\n', r"Error: \x1b[31m.high"),
        ("age = " + "[" * 100_000, "nested too deep"),
    ],
)
def test_schemas_that_cannot_be_used(text, message, tmp_path):
    file, schema = tmp_path / "rows.csv", tmp_path / "schema.toml"
    file.write_text(text_of("id,age,work,card", members(50)), encoding="utf-8")
    schema.write_text(text)
    result = privmax(file, "--schema", schema, *WITH_SCHEMA)
    assert result.exit_code == 2
    assert message in result.output
    assert not any(secret in result.output for secret in SECRETS)


def test_names_and_values_of_a_schema_command_no_terminal(tmp_path):
    file, schema = tmp_path / "rows.csv", tmp_path / "schema.json"
    name, value = "wo\x1b[31mrk\u202e", "Pri\x1b]0;vate\x07"
    rows = "".join(f"{value},yes\n?,no\n" for _ in range(300))
    file.write_text(f"{name},card\n{rows}", encoding="utf-8")
    schema.write_text(json.dumps({name: {"values": [value]}}))
    result = privmax(file, "--schema", schema, *WITH_SCHEMA)
    assert result.stdout.splitlines()[0].endswith(
        r"card = yes if wo\x1b[31mrk\u202e = Pri\x1b]0;vate\x07, else no"
    )


def test_another_schema_is_another_request(declared, tmp_path):
    file, path = tmp_path / "rows.csv", tmp_path / "budget.db"
    file.write_text(text_of("id,age,work,card", members()), encoding="utf-8")
    Ledger.create(path, budget=Privacy(50)).close()
    asked = (file, "--schema", declared, *WITH_SCHEMA, "--ledger", path, "--request", "first")
    assert privmax(*asked).exit_code == 0
    declared.write_text(SCHEMA.replace("Gov", "Govt"), encoding="utf-8")
    assert "with a different question (options.hypotheses)" in privmax(*asked).output


def test_a_strict_ledger_takes_a_schema_without_features(declared, tmp_path):
    file, path = tmp_path / "rows.csv", tmp_path / "budget.db"
    file.write_text(text_of("id,age,work,card", members()), encoding="utf-8")
    Ledger.create(path, budget=Privacy(5), strict=True).close()
    result = privmax(file, "--schema", declared, *WITH_SCHEMA, "--ledger", path)
    assert result.stdout.splitlines()[0] == FOUND


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("by", "told"), [("member", "member = True"), ("joined", "joined >= 2024-03-01")]
)
def test_a_schema_reads_flags_and_dates(form, by, told, tmp_path):
    file, schema, saved = tmp_path / "rows.csv", tmp_path / "schema.toml", tmp_path / "rule.json"
    schema.write_text(
        "[member]\nkind = 'flag'\n"
        "[joined]\nkind = 'date'\nlow = 2024-01-01\nhigh = '2024-05-01'\nevery = 'month'\n"
    )
    rows = [(f"2024-0{n % 4 + 1}-1{n % 7}", ["yes", "No", ""][n % 3]) for n in range(2000)]
    labels = [int(one == "yes" if by == "member" else day >= "2024-03") for day, one in rows]
    lines = [f"{day},{one},{label}" for (day, one), label in zip(rows, labels, strict=True)]
    file.write_text("\n".join(["joined,member,card", *lines]) + "\n")
    if form == "parquet":
        table = duckdb.sql(f"SELECT * FROM read_csv('{file}', types={{'joined': 'DATE'}})")
        file = tmp_path / "rows.parquet"
        table.write_parquet(str(file))
    result = privmax(file, "--schema", schema, *LABEL, *RULE, "--epsilon", 5, "--save", saved)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == f"rule       card = 1 if {told}, else 0"
    applied = privmax(file, "--apply", saved)
    assert applied.stdout.splitlines() == ["card", *map(str, labels)]
