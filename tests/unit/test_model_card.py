"""Model cards: what they say of every learner, and that all of it was released."""

from __future__ import annotations

import json
import re
import sys
import warnings
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privmax import Ledger, Privacy, report
from privmax.errors import ParameterError, PrivmaxError
from privmax.learning import (
    Category,
    Number,
    PrivateClassifier,
    PrivateERM,
    PrivateGAM,
    PrivateRegressor,
    PrivateTree,
    Schema,
    Stumps,
)
from privmax.learning.additive.model import AdditiveModel
from privmax.learning.classes.stumps import Constant, Stump
from privmax.learning.classes.trees import Tree
from privmax.learning.classifier.choice import CONSTANT, PAIRS, TEST, TREE
from privmax.learning.classifier.model import ClassifierModel, CountedRule
from privmax.learning.facts import describe_model
from privmax.learning.learned import Learned
from privmax.learning.rules import describe_rule
from privmax.learning.splits import CellSplit
from privmax.learning.tree import Leaf, Split
from privmax.testing import SeededCoins

sys.path.append(str(Path(__file__).parent))

from page_reader import HOSTILE, Read

NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)
RNG = np.random.default_rng(3)
ROWS = 7_919
FRAME = pd.DataFrame(
    {"age": RNG.uniform(0, 100, ROWS), "work": RNG.choice(["state", "home", "?"], ROWS)}
)
ILL = np.where(FRAME["age"] + RNG.normal(0, 9, ROWS) >= 50, "yes", "no")
PAY = FRAME["age"] / 100 + RNG.normal(0, 0.01, ROWS)
SCHEMA = Schema(age=Number(0, 100, cells=20), work=Category(["state", "home"], missing="?"))
COST = {"epsilon": 1, "delta": 1e-6}
NAMED = {"labels": ["no", "yes"]}


def fitted(learner, y=ILL, rows=ROWS):
    learner.set_params(coins=SeededCoins("card"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learner.fit(FRAME[:rows], y[:rows])


def gam(**options):
    return PrivateGAM(SCHEMA, **{**COST, **NAMED, "rounds": 6, **options})


def classifier(**options):
    return PrivateClassifier(SCHEMA, **{**COST, **NAMED, **options})


def regressor(**options):
    return PrivateRegressor(SCHEMA, **{**COST, "targets": (0, 1), "rounds": 4, **options})


CASES = {
    "additive": lambda: fitted(gam()),
    "pairs": lambda: fitted(gam(interactions=1)),
    "calibrated": lambda: fitted(gam(calibration=True)),
    "calibrated pairs": lambda: fitted(classifier(calibration=True)),
    "pure": lambda: fitted(gam(delta=0)),
    PAIRS: lambda: fitted(classifier()),
    TREE: lambda: fitted(classifier(), rows=500),
    TEST: lambda: fitted(classifier(n=20), rows=20),
    CONSTANT: lambda: fitted(classifier(n=4), rows=4),
    "regression": lambda: fitted(regressor(), PAY),
    "intervals": lambda: fitted(regressor(intervals=True, interactions=1), PAY),
    "tree": lambda: fitted(PrivateTree(SCHEMA, 1, depth=2, **NAMED)),
}


@pytest.fixture(scope="module")
def learners():
    return {name: make() for name, make in CASES.items()}


def card(learner, **options):
    return report.card(learner, **{"target": "ill", "written": NOON, **options})


def text(learner, **options):
    return Read(card(learner, **options)).text


@pytest.mark.parametrize("name", CASES)
def test_a_card_says_what_was_fitted_whom_it_protects_and_what_it_is_not_for(name, learners):
    learner = learners[name]
    said = text(learner, asked={"data": "study of March"}, unit="one patient")
    for words in (
        "Which model predicts “ill”?",
        "as if one patient had been left out",
        "study of March",
        "What it must not be used for",
        "Conclusions about one person in the data",
        "Cause and effect.",
        "age number 20 low 0, high 100",
        "values: state, home",
        "privmax help proofs/",
        "No ledger was charged",
        repr(learner.release_.mechanism),
    ):
        assert words in said, words
    facts = describe_model(Learned.of(learner, "ill"))
    assert (facts.terms == ()) != (facts.ways == ())
    if hasattr(learner, "choice_"):
        assert learner.choice_ == f"{facts.kind}: {facts.why}"
        assert facts.kind == {"calibrated pairs": PAIRS}.get(name, name)
        assert facts.why in said


@pytest.mark.parametrize("name", CASES)
def test_what_is_paid_for_adds_up_to_all_of_the_cost(name, learners):
    facts = describe_model(Learned.of(learners[name], "ill"))
    parts = [share for _, share in facts.shares] + [term.share for term in facts.terms]
    assert sum(parts) == 1
    assert all(isinstance(part, Fraction) and part > 0 for part in parts)


@pytest.mark.parametrize("name", CASES)
def test_no_count_of_rows_is_on_a_card(name, learners):
    """Nor of rows with a label or in a cell, unless it was released or is public."""
    known = {CONSTANT: 4, TEST: 20, TREE: 500}.get(name, ROWS)
    codes = SCHEMA.codes(FRAME[:known])[0]
    exact = {known, *np.unique(ILL[:known], return_counts=True)[1].tolist()}
    exact |= set(np.bincount(codes).tolist())
    shown = counts_on(text(learners[name]))
    assert counts_on(f"all 1,234 rows, {ROWS} and 0.0099") == {1234, ROWS}
    written = json.dumps(learners[name].release_.item.to_json())
    released = {abs(int(one)) for one in re.findall(r"\d+", written)}
    public = {getattr(learners[name], "n", None)}
    assert {one for one in exact & shown if one > 30} <= released | public


def counts_on(said):
    """All whole numbers of a page."""
    return {int(one.replace(",", "")) for one in re.findall(r"(?<![\d.,])[\d,]*\d(?![\d.])", said)}


@pytest.mark.parametrize(
    "name", ["pairs", PAIRS, TREE, "intervals", "tree", "calibrated", "calibrated pairs"]
)
def test_a_card_depends_on_what_was_released_alone(name, learners):
    """The model as a ledger has it gives the same card."""
    learner = learners[name]
    before = Learned.of(learner, "ill")
    question = learner._question(SCHEMA, "row")
    written = learner.release_.item.to_json()
    again = replace(
        before.release, payload=type(before.release.payload)((question.read_model(written),))
    )
    assert card(replace(before, release=again)) == card(learner)


def test_other_rows_behind_the_same_request_give_the_same_card(tmp_path):
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(2, 1e-5)) as ledger:
        first = gam(ledger=ledger.request("r1")).fit(FRAME, ILL)
        again = gam(ledger=ledger.request("r1")).fit(FRAME[:900], ILL[::-1][:900])
        pages = [
            Read(card(one, left=ledger.left(), ledger="default")).text for one in (first, again)
        ]
    told = "The request was repeated, so the answer is the one"
    assert told not in pages[0]
    assert told in pages[1]
    start = pages[1].index("What was asked"), pages[1].index("What it cost, and")
    assert pages[1][: start[0]] + pages[1][start[1] :] == pages[0]
    assert "request r1" in pages[0]
    assert "privmax budget verify FILE" in pages[0]


def test_tables_are_drawn_largest_first_with_bands(learners):
    learner = learners["pairs"]
    page = card(learner)
    assert page.count("<svg") == len(learner.model_.tables)
    facts = describe_model(Learned.of(learner, "ill"))
    assert [term.size for term in facts.terms] == sorted(
        (one.size for one in facts.terms), reverse=True
    )
    assert facts.terms[0].name == "age"
    assert sum(term.rounds for term in facts.terms) == 7
    said = Read(page).text
    first = learner.shape_functions_["age"][0]
    assert first["noise"] > 0
    assert f"{first['cell']} −{abs(first['log_odds']):.3g} ± {2 * first['noise']:.3g}" in said
    assert re.search(r"Small groups\..*? \d+ of \d+ entries are within two deviations", said)


def test_what_a_column_brought_is_weighted_by_its_noisy_curvatures(learners):
    model = learners["additive"].model_
    facts = describe_model(Learned.of(learners["additive"], "ill"))
    for part, table in model.tables.items():
        name = SCHEMA.names[part.features[0]]
        (term,) = [one for one in facts.terms if one.name == name]
        weights = np.maximum(model.weights[part], 0) / np.maximum(model.weights[part], 0).sum()
        values = np.array(table) / 256
        assert term.size == pytest.approx(np.sqrt(weights @ (values - weights @ values) ** 2))
        assert term.noise == pytest.approx(
            np.sqrt(weights @ (np.array(model.noise[part]) / 256) ** 2)
        )


def test_columns_that_no_round_chose_are_named():
    schema = Schema(
        age=Number(0, 100, cells=4), **{f"x{place}": Number(0, 1) for place in range(3)}
    )
    learner = PrivateGAM(schema, **COST, **NAMED, rounds=1, order="cyclic", coins=SeededCoins(1))
    said = text(learner.fit(np.zeros((90, 4)), ["no", "yes"] * 45))
    assert "No round chose x0, x1, x2." in said


def test_a_record_without_noise_has_a_card_without_bands(learners):
    learned = Learned.of(learners["additive"], "ill")
    model = learned.release.item
    old = AdditiveModel(model.intercept, model.tables, model.path)
    release = replace(learned.release, payload=type(learned.release.payload)((old,)))
    facts = describe_model(replace(learned, release=release))
    assert {term.noise for term in facts.terms} == {None}
    said = text(replace(learned, release=release))
    assert "not known" in said
    assert "±" not in said
    assert "within two deviations of their noise" not in said


def test_errors_of_a_regression_are_drawn_where_they_were_counted(learners):
    counted, not_counted = learners["intervals"], learners["regression"]
    assert "Errors of the fitted rows, by noisy counts" in text(counted)
    assert "intervals=True counts them" in text(not_counted)
    facts = describe_model(Learned.of(counted, "pay"))
    assert facts.errors.counts == counted.model_.errors
    assert facts.errors.ends[16] == 0
    assert "a number between 0.0 and 1.0" in text(counted)


@pytest.mark.parametrize("name", ["calibrated", "calibrated pairs"])
def test_calibration_has_noisy_counts_by_chance(name, learners):
    learner = learners[name]
    model = getattr(learner.model_, "model", learner.model_)
    codes = SCHEMA.codes(FRAME)
    bins = np.minimum(model.chances(codes) * 10, 9).astype(int)
    exact = np.stack([np.bincount(bins[one == ILL], minlength=10) for one in ("no", "yes")], axis=1)
    told = describe_model(Learned.of(learner, "ill")).calibration
    assert np.abs(np.array(told.counts) - exact).max() < 6 * told.noise + 60  # chances are rounded
    assert (np.array(told.counts) != exact).any()
    said = text(learner)
    for place, (counts, share) in enumerate(zip(told.counts, told.shares(), strict=True)):
        first, second = (f"{count:,}".replace("-", "−") for count in counts)
        row = f"{10 * place} to {10 * place + 10} % {first} {second} "
        assert row + ("too few" if share is None else f"{100 * share[0]:.3g} ±") in said
    assert "calibration=True" not in said
    assert "calibration=True (--calibration) counts it" in text(learners["additive"])


def test_calibration_is_on_or_off():
    for learner in (gam(calibration=1), classifier(calibration="yes")):
        with pytest.raises(ParameterError, match=r"calibration=.* must be True or False"):
            learner.fit(FRAME, ILL)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"asked": 5}, "asked=5 is not allowed: it must be a dictionary of options by name"),
        ({"asked": ["age"]}, r"asked=\['age'\] is not allowed: it must be a dictionary"),
        ({"target": 5}, "target=5 is not allowed: it must be text"),
        ({"question": 5}, "question=5 is not allowed: it must be text"),
        ({"unit": ["person"]}, r"unit=\['person'\] is not allowed: it must be text"),
        ({"question": np.ones(2)}, r"question=array\(\[1., 1.\]\) is not allowed: it must be text"),
        ({"unit": pd.NA}, "unit=<NA> is not allowed: it must be text"),
        ({"unit": 0}, "unit=0 is not allowed: it must be text"),
        ({"ledger": 5}, "ledger=5 is not allowed: it must be text"),
        ({"left": 5}, "left=5 is not allowed: it must be a Privacy"),
        ({"repeated": "no"}, "repeated='no' is not allowed: it must be True or False"),
        ({"written": "today"}, "written='today' is not allowed: it must be a datetime"),
    ],
    ids=str,
)
def test_wrong_options_of_a_card_are_named(options, match, learners):
    with pytest.raises(ParameterError, match=match):
        report.card(learners[TEST], **options)
    if "target" not in options:
        with pytest.raises(ParameterError, match=match):
            report.html(learners[TEST].release_, **options)


def test_words_of_leaves_say_what_belongs_together(learners):
    """A group of cells has alternatives, and a path has tests of several columns."""
    learned = Learned.of(learners["tree"], "ill")
    schema = Schema(a=Category(["x", "y"]), b=Number(0, 40, cells=2, missing=True))
    leaf = Leaf((1, 2))
    node = Split(0, (0, 2), Split(1, (0, 1), leaf, leaf), leaf)
    release = replace(learned.release, payload=type(learned.release.payload)((node,)))
    ways = describe_model(replace(learned, schema=schema, release=release)).ways
    either, missing = "a = x or a is not listed", "b < 20 or b is missing"
    assert [way.test for way in ways] == [
        f"({either}) and ({missing})",
        f"({either}) and not ({missing})",
        f"not ({either})",
    ]
    rule = {"when": "all", "then": {"label": 1}, "else": {"label": 0}, "tests": [
        {"feature": "b", "threshold": 20.0, "below": True, "missing": True},
        {"feature": "a", "equals": "x", "not": False},
    ]}  # fmt: skip
    assert describe_rule(rule, "y") == ["y = 1 if (b < 20 or is missing) and a = x, else 0"]


def test_leaves_have_their_noisy_counts(learners):
    for name in (CONSTANT, TEST, TREE, "tree"):
        facts = describe_model(Learned.of(learners[name], "ill"))
        said = text(learners[name])
        assert "They have noise with a deviation of" in said
        for way in facts.ways:
            first, second = (f"{count:,}".replace("-", "−") for count in way.counts)
            tests = (
                f"{way.test or 'all rows'} {way.label} {first} {second} {100 * way.chance:.3g} %"
            )
            assert tests in said
        assert all(line in said for line in facts.words)
    assert "ill = yes if age >= " in text(learners[TEST])
    constant = describe_model(Learned.of(learners[CONSTANT], "ill"))
    assert [way.test for way in constant.ways] == [""]


def test_chances_in_leaves_are_those_of_predictions(learners):
    codes = SCHEMA.codes(FRAME)
    for name in (CONSTANT, TEST, TREE, "tree"):
        model = learners[name].release_.item
        ways = describe_model(Learned.of(learners[name], "ill")).ways
        assert set(model.chances(codes).round(9)) <= {round(way.chance, 9) for way in ways}


def test_leaves_that_no_row_is_in_and_tests_that_others_imply_are_left_out(learners):
    age = SCHEMA.columns[0]
    rule = Tree(
        0,
        CellSplit(age, 10),
        Stump(0, CellSplit(age, 15), 0, 1),
        Stump(0, CellSplit(age, 15), 0, 1),
    )
    counted = CountedRule(0, rule, ((1, 2), (3, 4), (5, 6), (7, 8)))
    learned = Learned.of(learners[TREE], "ill")
    model = ClassifierModel(TREE, 500, counted)
    release = replace(learned.release, payload=type(learned.release.payload)((model,)))
    ways = describe_model(replace(learned, release=release)).ways
    assert [(way.test, way.label, way.counts) for way in ways] == [
        ("age < 50", "no", (1, 2)),
        ("age >= 50 and age < 75", "no", (5, 6)),
        ("age >= 75", "yes", (7, 8)),
    ]
    flat = Tree(0, CellSplit(age, 10), Constant(0), Constant(1))
    release = replace(
        release,
        payload=type(release.payload)(
            (ClassifierModel(TREE, 5, replace(counted, hypothesis=flat)),)
        ),
    )
    ways = describe_model(replace(learned, release=release)).ways
    assert [way.test for way in ways] == ["age < 50", "age >= 50"]


def test_no_model_is_said_to_be_none(learners):
    learned = Learned.of(learners["additive"], "ill")
    release = replace(learned.release, payload=type(learned.release.payload)())
    said = text(replace(learned, release=release))
    assert "No model" in said
    assert "The fit failed after it was charged" in said
    assert "What it must not be used for" in said


def test_other_learners_have_no_card():
    rule = PrivateERM(Stumps(low=0, high=1), 1, labels=[0, 1])
    with pytest.raises(ParameterError, match="card is about one of PrivateGAM"):
        report.card(rule)
    with pytest.raises(Exception, match="not fitted yet"):
        report.card(gam())


FRAMED = {"p", "h1", "h2", "h3", "tr", "td", "th", "li", "bdi", "details", "figure", "section"}
"""Tags of the page; those of pictures differ with the letters that are drawn."""


def hostile_card(words):
    schema = Schema({words: Category([words, "b", *(f"{words} {n}" for n in range(14))]),
                     "b": Number(0, 1, cells=2)})  # fmt: skip
    labels = [words, f"not {words}"]
    frame = pd.DataFrame({words: [words, "b"] * 450, "b": RNG.random(900)})
    pages = []
    options = {"target": words, "question": words, "unit": words, "asked": {words: words}}
    for learner in (
        PrivateGAM(schema, 2, 1e-6, labels=labels, rounds=2, interactions=1, coins=SeededCoins(1)),
        PrivateClassifier(schema, epsilon=2, labels=labels, coins=SeededCoins(1)),
        PrivateTree(schema, 2, labels=labels, coins=SeededCoins(1)),
    ):
        learner.fit(frame, labels * 450)
        pages.append(Read(report.card(learner, written=NOON, ledger=words, **options)))
    return pages


@pytest.mark.slow
def test_names_of_columns_categories_and_labels_never_become_markup():
    for harmless, hostile in zip(hostile_card("rain"), hostile_card(HOSTILE), strict=True):
        tags = [[tag for tag, _ in page.tags if tag in FRAMED] for page in (harmless, hostile)]
        assert tags[0] == tags[1]
        assert HOSTILE in hostile.text
        for tag, attributes in hostile.tags:
            assert tag not in ("script", "img", "iframe", "object", "form")
            assert not any(name.startswith("on") for name in attributes)


def test_without_matplotlib_a_card_with_tables_says_what_to_install(monkeypatch):
    additive, decision = fitted(gam()), fitted(PrivateTree(SCHEMA, 1, **NAMED))
    monkeypatch.delattr("privmax.plots", raising=False)
    monkeypatch.setitem(sys.modules, "privmax.plots", None)
    with pytest.raises(PrivmaxError, match=r"needs matplotlib. Install the extra plot"):
        report.card(additive)
    assert "A model card" in report.card(decision)


@pytest.mark.parametrize(
    ("learner", "kind"),
    [
        (gam(), "in ρ:"),
        (gam(delta=0), "in ε:"),
        (classifier(epsilon=8), "in ε for the count of rows, and in ρ for the rest:"),
        (classifier(epsilon=8, n=8_000), "in ρ:"),
    ],
    ids=["additive", "pure", "counted", "public"],
)
def test_shares_of_the_cost_are_of_what_is_shared(learner, kind):
    assert f"Cost is the part of this release {kind}" in report.card(fitted(learner))
