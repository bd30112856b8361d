"""privmax learn without --hypotheses: the classifier decides, and earlier rules are found again."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from privmax import Ledger, Privacy
from privmax.cli import main
from privmax.learning import Number, PrivateClassifier, Schema

RNG = np.random.default_rng(3)
ROWS = [
    (age, visits, int(visits >= 50) ^ int(age >= 50))
    for age, visits in RNG.integers(0, 100, (1000, 2)).tolist()
]
LABEL = ("--label", "card", "--labels", "0,1")
OPTIONS = {"--label": "card", "--labels": "0,1", "--epsilon": 4, "--low": 0, "--high": 100}
OPTIONS |= {"--cells": 2}
TREE = "tree of depth 2"


def privmax(*arguments, stdin=None):
    return CliRunner().invoke(main, ["learn", *map(str, arguments)], input=stdin)


def asking(**changes):
    """The options, some of them changed or added."""
    changed = {f"--{name}": value for name, value in changes.items()}
    return [word for option in (OPTIONS | changed).items() for word in option]


ASKED = asking()


def answer(run):
    assert (run.exit_code, run.stderr) == (0, "")
    return run.stdout.splitlines()


def refusal(run):
    assert (run.exit_code, run.stdout) == (2, "")
    return " ".join(run.stderr.split())


def text_of(rows, names="age,visits,card"):
    return "\n".join([names, *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text_of(ROWS), encoding="utf-8")
    return path


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "budget.db"
    Ledger.create(path, budget=Privacy(50, "1e-5")).close()
    return path


def spent(path):
    with Ledger(path) as ledger:
        return ledger.spent


def test_it_fits_what_the_classifier_decides_on(file):
    rule, *rest = answer(privmax(file, *ASKED))
    assert rule.startswith("rule       if ")  # of two tests: one decides nothing here
    assert rest[0].startswith("           otherwise: card = ")
    assert rest[1].startswith(f"model      {TREE}: about ")
    assert rest[1].endswith(" for 2 columns with 2 tests")
    assert rest[2:] == [
        "cost       epsilon 4, delta 0",
        "mechanism  fits the model that a noisy count of rows chooses (ClassifierTerms)",
        "unit       each row is one individual",
    ]


def test_its_json_has_the_model_and_the_schema(file):
    found = json.loads(privmax(file, *ASKED, "--json").stdout)
    assert found["schema"] == {
        name: {"low": 0, "high": 100, "cells": 2} for name in ("age", "visits")
    }
    assert (found["label"], found["labels"], found["features"]) == (
        "card",
        [0, 1],
        ["age", "visits"],
    )
    assert (found["model"]["member"], found["privacy"]) == (TREE, {"epsilon": "4", "delta": "0"})
    assert found["model"]["choice"].startswith(f"{TREE}: about {found['model']['rows']:,} rows × ")
    assert found["words"].count("if ") == 3


@pytest.mark.parametrize("declared", [False, True])
def test_a_saved_tree_is_applied(declared, file, tmp_path):
    schema, saved = tmp_path / "schema.toml", tmp_path / "model.json"
    schema.write_text(
        "".join(f"[{one}]\nlow = 0\nhigh = 100\ncells = 2\n" for one in ("age", "visits"))
    )
    asked = (*LABEL, "--epsilon", 4, "--schema", schema) if declared else ASKED
    assert privmax(file, *asked, "--save", saved).exit_code == 0
    name, *labels = answer(privmax(file, "--apply", saved))
    assert name == "card"
    assert labels == [str(card) for _, _, card in ROWS]


@pytest.fixture(scope="module")
def additive(tmp_path_factory):
    """A saved additive model, and what it was made of."""
    folder = tmp_path_factory.mktemp("additive")
    file, saved = folder / "rows.csv", folder / "model.json"
    random = np.random.default_rng(4)
    rows = [(a, int(a >= 50) ^ int(random.random() < 0.1)) for a in random.integers(0, 100, 4000)]
    file.write_text(text_of(rows, "age,card"), encoding="utf-8")
    run = privmax(file, *LABEL, "--epsilon", 8, "--delta", "1e-6", "--low", 0, "--high", 100,
                  "--cells", 20, "--save", saved)  # fmt: skip
    return rows, file, saved, run


def test_an_additive_model_is_printed_in_part_and_applied(additive):
    rows, file, saved, run = additive
    told = answer(run)
    assert told[10] == "           … and 10 more: --json lists all"
    assert told[11].startswith("model      additive model: about ")
    written = json.loads(saved.read_text(encoding="utf-8"))
    assert written["rule"] is None
    assert written["words"].count("age") == 20
    labels = answer(privmax(file, "--apply", saved))[1:]
    assert labels == [str(int(age >= 50)) for age, _ in rows]


def test_only_columns_with_a_table_are_read(additive):
    _, _, saved, _ = additive
    run = privmax("-", "--apply", saved, stdin="name,age\nAda,80\nBo,3\n")
    assert answer(run) == ["card", "1", "0"]


def change(written, *path, to):
    *way, last = path
    for step in way:
        written = written[step]
    written[last] = to


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("labels",), [0, 1, 2]),
        (("labels",), [[0], [1]]),
        (("model",), None),
        (("model", "member"), TREE),
        (("model", "member"), "oracle"),
        (("model", "rows"), -1),
        (("model", "model", "intercept"), 1 << 20),
        (("model", "model", "tables", 0, "features"), [1]),
        (("model", "model", "tables", 0, "table"), [0]),
        (("schema", "age", "cells"), 21),
    ],
)
def test_a_damaged_model_is_not_applied(path, value, additive, tmp_path):
    _, file, saved, _ = additive
    written = json.loads(saved.read_text(encoding="utf-8"))
    change(written, *path, to=value)
    damaged = tmp_path / "model.json"
    damaged.write_text(json.dumps(written), encoding="utf-8")
    assert "the file has no rule" in refusal(privmax(file, "--apply", damaged))


def test_the_ledger_is_charged_once_and_gives_the_model_again(file, ledger):
    asked = (file, *ASKED, "--ledger", ledger, "--request", "r1")
    first = answer(privmax(*asked))
    file.write_text(text_of((age, visits, 0) for age, visits, _ in ROWS), encoding="utf-8")
    again = answer(privmax(*asked))
    assert [line for line in again if not line.startswith("recorded")] == first
    assert spent(ledger) == Privacy(4)


def test_a_rule_that_was_recorded_when_rules_were_the_default_is_found(file, ledger):
    asked = (file, *ASKED, "--ledger", ledger, "--request", "r1")
    rule = answer(privmax(*asked, "--hypotheses", "stumps"))
    assert not any(line.startswith("model") for line in rule)
    again = answer(privmax(*asked))
    assert [line for line in again if not line.startswith("recorded")] == rule
    assert spent(ledger) == Privacy(4)


def test_a_recorded_rule_has_no_chances_to_count(file, ledger):
    """It is refused as another question, as a changed option of any recorded request."""
    asked = (file, *ASKED, "--ledger", ledger, "--request", "r1")
    rule = answer(privmax(*asked, "--hypotheses", "stumps"))
    told = refusal(privmax(*asked, "--calibration"))
    assert "'r1' was charged before" in told
    assert "with a different question" in told
    assert spent(ledger) == Privacy(4)
    assert [line for line in answer(privmax(*asked)) if not line.startswith("recorded")] == rule


def test_a_rule_that_was_charged_and_not_answered_is_still_a_rule(file, ledger, monkeypatch):
    asked = (file, *ASKED, "--ledger", ledger, "--request", "r1")

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr("privmax.mechanisms.permute_and_flip.PermuteAndFlip.draw", stop)
        assert privmax(*asked, "--hypotheses", "stumps").exit_code != 0
    assert spent(ledger) == Privacy(4)
    assert not any(line.startswith("model") for line in answer(privmax(*asked)))
    assert spent(ledger) == Privacy(4)


@pytest.mark.parametrize(
    "other",
    [
        {"features": "age"},
        {"label": "age", "features": "visits,card"},
        {"labels": "1,0"},
        {"where": "age > 3"},
        {"delimiter": ","},
        {"cells": 4},
    ],
    ids=str,
)
def test_another_question_is_another_request(other, file, ledger):
    paid = ("--ledger", ledger, "--request", "r1")
    assert privmax(file, *ASKED, *paid).exit_code == 0
    told = refusal(privmax(file, *asking(**other), *paid))
    assert "'r1' was charged before" in told
    assert "with a different question" in told


@pytest.mark.parametrize(
    "options", [{"labels": "0,1,2"}, {"floor": 1}, {"mechanism": "exponential"}], ids=str
)
def test_what_only_rules_have_means_a_rule(options, file):
    told = answer(privmax(file, *asking(**options)))
    assert told[1] == "cost       epsilon 4, delta 0"
    assert not any(line.startswith("model") for line in told)


def test_a_strict_ledger_needs_names_and_is_charged_before_rows_are_read(file, tmp_path):
    path = tmp_path / "strict.db"
    Ledger.create(path, budget=Privacy(9), strict=True).close()
    asked = (file, *ASKED, "--ledger", path)
    assert "so the columns must be named" in refusal(privmax(*asked))
    told = answer(privmax(*asked, "--features", "age,visits"))
    assert any(line.startswith(f"model      {TREE}") for line in told)
    file.write_text(text_of([(1, 2, 7)]), encoding="utf-8")  # a label that was not declared
    told = answer(privmax(*asked, "--features", "age,visits"))
    assert told[0] == "rule       no answer: no rule stood out enough"
    assert spent(path) == Privacy(8)


def test_check_reads_rows_and_charges_nothing(file, ledger):
    paid = ("--ledger", ledger, "--check")
    asked = (file, *ASKED, *paid)
    assert answer(privmax(*asked))[0].startswith("checked ")
    assert "the privacy cost is epsilon 99" in privmax(file, *asking(epsilon=99), *paid).stderr
    file.write_text(text_of([(1, "x", 1)]), encoding="utf-8")
    assert "Line 2 has no finite number in column 2" in refusal(privmax(*asked))
    assert spent(ledger) == Privacy(0)


def test_a_budget_that_leaves_too_little_is_met_before_rows_are_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x", encoding="utf-8")
    assert "--epsilon" in refusal(privmax(path, *asking(epsilon="1e-300", delta="1e-6")))


def test_it_is_the_classifier_of_the_library(file):
    rows = np.array(ROWS)
    schema = Schema(age=Number(0, 100, cells=2), visits=Number(0, 100, cells=2))
    learner = PrivateClassifier(schema, epsilon=4, labels=[0, 1]).fit(rows[:, :2], rows[:, 2])
    assert learner.choice_.split(":")[0] == TREE
    command = json.loads(privmax(file, *ASKED, "--json").stdout)
    assert repr(learner.release_.mechanism) == command["mechanism"]


def test_a_page_about_it_has_the_choice_and_its_proof(file, tmp_path):
    page = tmp_path / "page.html"
    assert privmax(file, *ASKED, "--report", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "A model card" in text
    assert "Tree of depth 2" in text
    assert re.search(r"about [\d,]+ rows × epsilon 4 is", text)
    assert "privmax help proofs/classifier" in text
    assert "<svg" not in text  # no lead decides


def test_a_page_about_tables_draws_them_and_the_answer_is_the_same(file, tmp_path):
    page, charged = tmp_path / "page.html", ("--ledger", tmp_path / "b.db", "--request", "r1")
    with Ledger.create(tmp_path / "b.db", budget=Privacy(2000, 1e-5)):
        pass
    many = ("--label", "card", "--labels", "0,1", "--low", "0", "--high", "100", "--epsilon", "900")
    run = privmax(file, *many, *charged, "--delta", "1e-6", "--report", page, "--json")
    again = privmax(file, *many, *charged, "--delta", "1e-6", "--json")
    assert (run.exit_code, again.exit_code) == (0, 0)
    first, second = (json.loads(one.stdout) for one in (run, again))
    assert first | {"recorded": second["recorded"]} == second
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == len(first["model"]["model"]["tables"]) > 0
    assert "What each column cost and brought" in text


def test_labels_are_counted_by_chance_if_asked(additive, ledger, tmp_path):
    _, file, _, _ = additive
    page = tmp_path / "page.html"
    paid = ("--ledger", ledger, "--request", "r1")
    asked = (*LABEL, "--epsilon", 8, "--delta", "1e-6", "--low", 0, "--high", 100, "--cells", 20)
    run = privmax(file, *asked, "--calibration", *paid, "--report", page, "--json")
    assert run.exit_code == 0, run.stderr
    counts = json.loads(run.stdout)["model"]["model"]["counts"]
    assert len(counts) == 10
    assert abs(sum(map(sum, counts)) - 4000) < 1000  # 20 counts, each off by some 5
    assert "calibration=True" not in page.read_text(encoding="utf-8")
    assert "with a different question" in refusal(privmax(file, *asked, *paid))


@pytest.mark.parametrize("options", [{"hypotheses": "stumps"}, {"labels": "0,1,2"}], ids=str)
def test_one_rule_has_no_chances_to_count_by(options, file, ledger):
    paid = ("--ledger", ledger, "--request", "r1")
    told = refusal(privmax(file, *asking(**options), "--calibration", *paid))
    assert "--calibration: one rule gives no chances. Leave it out, or " in told
    assert spent(ledger) == Privacy(0)
