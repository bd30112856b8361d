"""`select_model`: what it releases where the answer is certain, what it refuses, and what it says
when it does.
"""

from __future__ import annotations

import datetime
import io
import math
import re
from contextlib import contextmanager
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from by_name import by_name
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import privmax
from privmax import Scores
from privmax.errors import DataError, ParameterError
from privmax.learning import models as module
from privmax.learning.models import list_entrants, score_models, select_model
from privmax.learning.scoring import MOST_STEPS, Clipped, find_score, make_rule
from privmax.mechanisms.ranked_margin import RankedMargin

PRICE = {"epsilon": 2, "delta": "1e-6"}
X = np.arange(600.0).reshape(300, 2)
Y = X[:, 0] >= 200
SECRET = "zorblax-4711"
FOREST = RandomForestClassifier(n_estimators=3, random_state=0).fit(X % 7, Y)


def above(threshold):
    return lambda rows: np.asarray(rows)[:, 0] >= threshold


MODELS = [above(500), above(200), above(0)]  # 150, 300 and 200 right
RIGHT = [150, 300, 200]


def totals(models, X, y, *, score="accuracy", bounds=None, resolution=None, method="predict"):
    """The scores behind a release, in steps."""
    source = score_models(list_entrants(models, X, method), y, make_rule(score, bounds, resolution))
    return [score for _, score in source.scores()]


# What is released


def test_the_best_model_is_released_by_its_position():
    release = select_model(MODELS, X, Y, **PRICE)
    assert (release.item, release.privacy.epsilon) == (1, 2)
    assert type(release.mechanism).__name__ == "PermuteAndFlip"


def test_models_in_a_mapping_are_released_by_their_names():
    assert select_model(dict(zip("abc", MODELS, strict=True)), X, Y, **PRICE).item == "b"


def test_the_best_k_are_released_best_first_where_that_is_asked_for():
    release = select_model(MODELS, X, Y, k=3, epsilon=20, ranked=True)
    assert (release.items, release.privacy) == ((1, 2, 0), privmax.Privacy(20))
    assert (release.ranked, len(release.notes)) == (True, 1)


def test_the_best_k_are_released_as_a_set():
    release = select_model(dict(zip("cba", MODELS, strict=True)), X, Y, k=2, epsilon=20)
    assert (release.items, release.privacy) == (("a", "b"), privmax.Privacy(20))
    assert (release.ranked, release.requested) == (False, 2)
    assert release.notes == ("Sorted by name; their order is not released.",)


def test_a_mechanism_may_be_given():
    mechanism = privmax.LargeMargin(epsilon=4, delta="1e-3")
    release = select_model(MODELS, X, Y, mechanism=mechanism)
    assert (release.item, release.mechanism) == (1, mechanism)


def test_replacing_examples_can_be_asked_for():
    assert (
        select_model(MODELS, X, Y, **PRICE, scores=Scores(neighbors="replace")).mechanism.neighbors
        == "replace"
    )
    assert select_model(MODELS, X, Y, **PRICE).mechanism.neighbors == "add-remove"


def test_fitted_models_of_scikit_learn_work():
    """Fitted to other data, as they must be."""
    other = np.arange(1000.0).reshape(500, 2) % 600
    tree = DecisionTreeClassifier(max_depth=1).fit(other, other[:, 0] >= 200)
    never = DummyClassifier(strategy="constant", constant=False).fit(other, other[:, 0] >= 200)
    assert select_model({"tree": tree, "never": never}, X, Y, **PRICE).item == "tree"
    worth = {"score": lambda y, p: p[np.arange(len(y)), y.astype(int)], "bounds": (0, 1)}
    assert totals([tree, never], X, Y, method="predict_proba", **worth) == [64 * 300, 64 * 100]


def test_no_examples_are_examples_too():
    """The neighbour of a single example: every model may be drawn, and none is asked."""
    drawn = {select_model([None, None], [], [], **PRICE).item for _ in range(60)}
    assert drawn == {0, 1}
    assert totals(np.empty((0, 3)), None, []) == [0, 0, 0]


# Models


class Lazy:
    """A sequence that makes its models when asked, and counts."""

    def __init__(self):
        self.made = []

    def __len__(self):
        return 3

    def __getitem__(self, number):
        if not 0 <= number < 3:
            raise AssertionError("only len and [i] may be used")
        self.made.append(number)
        return MODELS[number]


def test_a_lazy_sequence_is_asked_for_every_model_once(monkeypatch):
    monkeypatch.setattr(module, "_ENTRIES", 14)  # 43 blocks of 7 rows
    models = Lazy()
    assert totals(models, X, Y) == RIGHT
    assert models.made == [0, 1, 2]


def test_models_in_memory_go_through_the_rows_together(monkeypatch):
    monkeypatch.setattr(module, "_ENTRIES", 200)
    asked = []
    watched = [
        lambda rows, n=n: (asked.append((n, len(rows))), MODELS[n](rows))[1] for n in range(3)
    ]
    assert totals(watched, X, Y) == RIGHT
    assert asked == [(n, 100) for _ in range(3) for n in range(3)]


def test_the_method_is_called_of_models_that_have_it():
    class Model:
        def decide(self, rows):
            return rows[:, 0] >= 200

        def __call__(self, rows):
            raise AssertionError

    assert totals([Model()], X, Y, method="decide") == [300]
    with pytest.raises(AssertionError):
        Model()(X)


# Examples


TEXT = [str(row) for row in range(300)]


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (X, np.ndarray),
        (pd.DataFrame(X, index=range(1000, 1300)), pd.DataFrame),
        (pl.DataFrame(X), pl.DataFrame),
        (pa.table({"a": X[:, 0], "b": X[:, 1]}), pa.Table),
        (scipy.sparse.csr_array(X), scipy.sparse.csr_array),
        (X.tolist(), list),
        (np.array(TEXT), np.ndarray),
        (pd.Series(TEXT), pd.Series),
        (pl.Series(TEXT), pl.Series),
        (X.reshape(300, 1, 2), np.ndarray),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_rows_are_given_to_models_as_what_they_are(rows, kind, monkeypatch):
    monkeypatch.setattr(module, "_ROWS", 64)
    monkeypatch.setattr(module, "_ENTRIES", 64)
    seen = []

    def model(some):
        assert isinstance(some, kind)
        start = sum(seen)
        seen.append(some.shape[0] if hasattr(some, "shape") else len(some))
        return Y[start : start + seen[-1]]

    assert totals([model], rows, Y) == [300]
    assert sum(seen) == 300
    assert max(seen) <= 64


@pytest.mark.parametrize("block", [1, 7, 299, 300, 301])
def test_totals_do_not_depend_on_the_blocks(block, monkeypatch):
    monkeypatch.setattr(module, "_ROWS", block)
    monkeypatch.setattr(module, "_ENTRIES", 2 * block)
    table = np.column_stack([model(X) for model in MODELS])
    assert (
        totals(MODELS, X, Y) == totals(table, None, Y) == totals(table.tolist(), None, Y) == RIGHT
    )
    loss = {
        "score": lambda y, p: -abs(y.astype(float) - p) / 3,
        "bounds": (-1, 0),
        "resolution": "0.3",
    }
    assert (
        totals(MODELS, X, Y, **loss)
        == totals(table, None, Y, **loss)
        == [3 * 150 + 2 * 150, 900, 3 * 200 + 2 * 100]
    )


# Matrices of predictions


def test_a_memmap_of_predictions_is_read_where_it_lies(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BYTES", 2 * module._ROWS)  # two columns of bytes at a time
    table = np.column_stack([model(X) for model in MODELS])
    np.save(tmp_path / "predictions.npy", table)
    assert totals(np.load(tmp_path / "predictions.npy", mmap_mode="r"), None, Y) == RIGHT


def test_prompts_answers_are_text():
    answers = [["yes", "no", "maybe"], ["yes", "yes", "no"], ["no", "no", None]]
    assert totals(answers, None, ["yes", "no", "no"]) == [2, 1, 1]
    assert totals(np.array(answers[:2]), None, ["yes", "no"]) == [1, 0, 1]
    assert totals(np.array(answers[:2], object), None, np.array(["yes", "no"])) == [1, 0, 1]
    assert totals(np.array(answers[:2]), None, np.array(["yes", "no"])) == [1, 0, 1]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_frame_of_predictions_names_its_columns(frame):
    predictions = frame({f"prompt {n}": model(X) for n, model in enumerate(MODELS)})
    assert totals(predictions, None, Y) == RIGHT
    assert select_model(predictions, None, frame({"y": Y})["y"], **PRICE).item == "prompt 1"


# Accuracy


@pytest.mark.parametrize(
    ("y", "said", "right"),
    [
        ([1, 2, 3], [1, 2, 4], 2),
        ([1, 2, 3], np.array([1.0, 2.5, 3.0]), 2),
        ([1, 0, 1], [True, False, False], 2),
        (["a", "b"], np.array(["a", "c"]), 1),
        (np.array([b"a", b"b"]), np.array([b"a", b"c"]), 1),
        ([1, "a", None], [2, "a", 2], 1),
        ([2**53 + 1, 1], np.array([2.0**53, 1.0]), 1),
        ([2**70, 1], [2**70, 1], 2),
        (np.array([2**64 - 1], np.uint64), [-1], 0),
        ([math.nan, 1.0], [math.nan, 1.0], 1),
        (pd.Series([1, None, 3], dtype="Int64"), [1, 2, 3], 2),
        (pd.Series(["a", "b"], dtype="category"), ["a", "a"], 1),
        (pl.Series([2**53 + 1, None, 5]), pl.Series([2**53, None, 5]), 1),
        (pa.array([2**53 + 1, 7]), pa.array([2**53 + 1, None]), 1),
        (["a\0", "b"], ["a", "b"], 1),
        ([np.int64(3), np.int64(4)], [3, 3], 1),
        ([None, "a"], [None, None], 0),
        ([np.nan, pd.NA], [np.nan, pd.NA], 0),
        (np.array([2**53 + 1, 1], object), np.array([np.float64(2**53), np.float64(1)], object), 1),
        (pd.Index([1, 2]), pd.array([1, 3], "Int64"), 1),
    ],
)
def test_right_is_what_python_calls_equal(y, said, right):
    assert totals([lambda rows: said], [0] * len(y), y) == [right]


BIG = 2**53 + 1
NOON = datetime.datetime(2020, 1, 1, 12)
BESIDE = [
    # label, what is said, the label and what is said of another example; the first is wrong in all
    # of them but two
    *((BIG, 2.0**53, other, 7.0) for other in (0.5, None, 2**70)),
    *((2.0**53, BIG, 7.0, other) for other in (0.5, None, 2**70)),
    (BIG, 2.0**53, "a", "b"),
    (2.0**53, BIG, "b", "a"),
    (2**63 + 1, 2**63, 0, -1),
    (2**63, 2**63 + 1, -1, 0),
    (0.1, np.float32(0.1), "a", "b"),
    (0.1, np.float32(0.1), 7.0, None),
    (BIG, np.float64(2**53), "a", "b"),
    (NOON, NOON, None, NOON),
    (NOON, NOON, NOON, None),
]
COLUMNS = [
    (pd.Series, {"dtype": "Int64"}),
    (pd.Series, {"dtype": "int64[pyarrow]"}),
    (pd.array, {"dtype": "Int64"}),
    (pd.Index, {"dtype": "Int64"}),
    (pd.Series, {"dtype": pd.CategoricalDtype(pd.array([BIG, 2**53], "Int64"))}),
    (pl.Series, {"dtype": pl.Int64}),
    (pa.array, {"type": pa.int64()}),
    (pa.chunked_array, {"type": pa.int64()}),
]


def saying(*values):
    return [lambda rows: values]


@pytest.mark.parametrize(("label", "prediction", "another", "of_another"), BESIDE)
def test_an_example_counts_the_same_whatever_others_are_there(
    label, prediction, another, of_another
):
    """Whatever else is in a list: a float, a null, text, a number of another size or sign."""
    alone = totals(saying(prediction), [0], [label])
    assert alone == [int(label == prediction and label is NOON)]
    assert totals(saying(of_another), [0], [another]) == [0]
    for rows in (2, 6):
        beside = saying(prediction, *[of_another] * (rows - 1))
        assert totals(beside, [0] * rows, [label] + [another] * (rows - 1)) == alone
        table = [[prediction]] + [[of_another]] * (rows - 1)
        assert totals(table, None, [label] + [another] * (rows - 1)) == alone


@pytest.mark.parametrize(("make", "options"), COLUMNS, ids=lambda value: "")
def test_a_missing_value_in_a_column_does_not_change_others(make, options):
    def column(*values):
        values = [values] if make is pa.chunked_array else list(values)
        return make(values, **options)

    for other in (BIG, None):
        assert totals([lambda rows, other=other: column(2**53, other)], [0, 0], [BIG, 7]) == [0]
        assert totals([lambda rows, other=other: column(BIG, other)], [0, 0], [BIG, 7]) == [1]
        assert totals([lambda rows: [2.0**53, 7]], [0, 0], column(BIG, other)) == [0]


def test_a_missing_time_does_not_change_others():
    """As an array times in nanoseconds are whole numbers to Python, and as a list they are
    times.
    """
    for other in (NOON, None):
        times = pl.Series([NOON, other]).cast(pl.Datetime("ns"))
        assert totals([lambda rows, times=times: times], [0, 0], [NOON, 7]) == [1]
        coded = pa.DictionaryArray.from_arrays(
            pa.array([0, 1]), pa.array([BIG, None if other is None else 3])
        )
        assert totals([lambda rows, coded=coded: coded], [0, 0], [2**53, 7]) == [0]


# Scores of one's own


def test_a_score_is_clipped_and_rounded_down_before_it_is_added():
    numbers = [-math.inf, -5, -0.1, 0, 0.24, 0.25, 0.5, 0.999, 1, 7, math.inf]
    options = {"score": lambda y, p: p, "bounds": (0, 1), "resolution": "0.25"}
    steps = [0, 0, 0, 0, 0, 1, 2, 3, 4, 4, 4]
    for number, step in zip(numbers, steps, strict=True):
        assert totals([lambda rows, number=number: [number]], [0], [0], **options) == [step]
    assert totals([lambda rows: numbers], [0] * 11, [0] * 11, **options) == [sum(steps)]


def test_rounding_is_exact():
    """Beside every edge of a grid no double lies on: against rational arithmetic with what floats
    print as.
    """
    low, step = Fraction(-1, 3), Fraction(1, 70)
    scoring = Clipped(lambda y, p: p, (low, low + 100 * step), step)
    assert (scoring.steps, scoring.step) == (100, step)
    doubles = [float(low + place * step) for place in range(-2, 104)]
    doubles += [
        math.nextafter(double, side) for double in doubles for side in (-math.inf, math.inf)
    ]
    for double in doubles:
        for number in (double, np.float32(double), np.float16(double)):
            exact = math.floor(
                (min(max(Fraction(str(number)), low), low + 100 * step) - low) / step
            )
            assert scoring.total([0], np.array([number]), "it") == exact


def test_a_number_of_a_score_is_the_decimal_that_it_prints_as():
    scoring = Clipped(lambda y, p: p, (0, 1), "0.1")
    for kind in (np.float64, np.float32, np.float16):
        assert [scoring.total([0], np.array([n / 10], kind), "it") for n in range(11)] == list(
            range(11)
        )


def test_the_sensitivity_is_what_one_example_can_add():
    options = {"score": lambda y, p: p, "bounds": (2, 5)}
    for resolution, steps in ((None, 64), (1, 3), (2, 1), ("0.7", 4), (3, 1)):
        source = score_models(
            list_entrants(np.array([[9.0]]), None, ""),
            [0],
            make_rule(**options, resolution=resolution),
        )
        assert source.profile.sensitivity == source.profile.top() == steps
        assert source.step == (Fraction(3, 64) if resolution is None else Fraction(resolution))


def test_bounds_may_lie_beyond_all_doubles():
    """Then every number is within them, and infinite ones are at their ends."""
    scoring = Clipped(lambda y, p: p, ("-1e400", "1e400"), "1e400")
    assert scoring.total([0] * 3, [-math.inf, 0.0, math.inf], "it") == 0 + 1 + 2


def test_labels_are_given_to_a_score_as_what_they_are():
    y = pd.DataFrame({"low": X[:, 0], "high": X[:, 1]}, index=range(7, 307))

    def inside(y, p):
        assert isinstance(y, pd.DataFrame)
        return (y["low"] <= p) & (p <= y["high"])

    options = {"score": inside, "bounds": (0, 1), "resolution": 1}
    assert totals([lambda rows: rows[:, 0], lambda rows: rows[:, 0] + 2], X, y, **options) == [
        300,
        0,
    ]


def test_an_estimate_of_the_maximum_is_in_units_of_the_score():
    table = np.column_stack([np.full(300, 2.0), np.full(300, 5.0)])
    mechanism = privmax.LargeMargin(epsilon=50, delta="1e-3")
    options = {"score": lambda y, p: p, "bounds": (2, 5), "mechanism": mechanism}
    release = by_name(select_model, table, None, np.zeros(300), **options)
    assert release.item == 1
    assert abs(release.diagnostics["max_estimate"] - 900) < 100


# What is refused


def raised(kind, models, X, y, **options):
    """The error, known to name no example and to be attached to no other error."""
    with pytest.raises(kind) as caught:
        by_name(select_model, models, X, y, **{**PRICE, **options})
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert SECRET not in str(error) + repr(error)
    assert not re.search(r"\b(300|299)\b", str(error))
    return str(error)


def test_options_are_checked_before_a_model_is_asked():
    def never(rows):
        raise AssertionError

    for options in (
        {"epsilon": None},
        {"epsilon": -1},
        {"delta": 2},
        {"k": 0},
        {"k": 3},
        {"neighbors": "swap"},
        {"score": "auc"},
        {"bounds": (0, 1)},
        {"resolution": 1},
        {"score": max},
        {"score": max, "bounds": (1, 0)},
        {"score": max, "bounds": (1, 1)},
        {"score": max, "bounds": 1},
        {"score": max, "bounds": (0, math.inf)},
        {"score": max, "bounds": (0, 1), "resolution": 2},
        {"score": max, "bounds": (0, 1), "resolution": 0},
        {"score": max, "bounds": (0, MOST_STEPS + 1), "resolution": 1},
        {"mechanism": privmax.Exponential(epsilon=1)},
        {"mechanism": "exponential", "epsilon": None, "delta": None},
        {"mechanism": privmax.Exponential(epsilon=1, k=3), "epsilon": None, "delta": None},
    ):
        raised(ParameterError, [never, never], X, Y, **options)


@pytest.mark.parametrize(
    ("models", "rows", "told"),
    [
        ([], X, "at least one"),
        ({}, X, "at least one"),
        (np.empty((300, 0)), None, "at least one"),
        (iter(MODELS), X, "a sequence or a mapping"),
        ("models", X, "a sequence or a mapping"),
        (MODELS[0], X, "a sequence or a mapping"),
        (MODELS, None, "a matrix of predictions"),
        ([], None, "a matrix of predictions"),
        (np.zeros(300), None, "a matrix of predictions"),
        (np.zeros((300, 2)), X, "models are already predictions"),
        (pd.DataFrame({"a": Y}), X, "models are already predictions"),
        (MODELS, {"a": X}, "counted and sliced"),
        (MODELS, iter(X), "counted and sliced"),
        (MODELS, scipy.sparse.coo_array(X), "Give X.tocsr()"),
        ({None: MODELS[0]}, X, "a name is None"),
        (pd.DataFrame([[1, 2]] * 300, columns=["a", "a"]), None, "occurs twice"),
        ([DecisionTreeClassifier], X, "Model 0 has no predict"),
        ([MODELS[0], 7], X, "Model 1 has no predict"),
        (FOREST, X, "Put one model into a list"),
        (make_pipeline(FOREST), X, "Put one model into a list"),
    ],
)
def test_what_are_no_models_or_no_rows_is_refused(models, rows, told):
    assert told in raised(ParameterError, models, rows, Y)


def test_a_method_that_a_model_lacks_is_refused_of_functions_too():
    class Both:
        def decide(self, rows):
            return rows[:, 0] >= 200

        __call__ = decide

    for models in ([MODELS[0]], [Both(), MODELS[0]], [FOREST, Both()]):
        for method in ("prdict", "decide"):
            assert f"method='{method}'" in raised(ParameterError, models, X, Y, method=method)
    assert totals([FOREST, MODELS[1]], X, Y)[1] == 300
    assert totals([Both()], X, Y, method="decide") == [300]


def test_names_of_list_methods_are_no_models():
    """A list has an `index`, and is a list all the same."""

    class Model:
        def index(self, rows):
            return rows[:, 0] >= 200

    assert totals([Model()], X, Y, method="index") == [300]


def test_masked_arrays_are_refused():
    """Their masked places hold a value all the same, which may be the right one."""
    masked = np.ma.masked_array(Y, mask=True)
    table = np.ma.masked_array(np.column_stack([Y, Y]), mask=True)
    score = {"score": lambda y, p: p, "bounds": (0, 1)}
    assert "Model 0 gave a masked array" in raised(DataError, [lambda rows: masked], X, Y)
    assert "y gave a masked array" in raised(DataError, MODELS, X, masked)
    assert "a masked array" in raised(DataError, table, None, Y)
    assert "a masked array" in raised(DataError, table, None, Y, **score)
    assert "a masked array" in raised(DataError, [lambda rows: masked], X, Y, **score)
    assert totals(saying(np.ma.masked, 1), [0, 0], [1, 1]) == [1]


def test_a_set_has_no_rows_to_slice():
    assert "cannot be sliced" in raised(DataError, MODELS, set(range(300)), Y)


@pytest.mark.parametrize("y", [Y[:-1], Y[:0], None, 7, np.append(Y, True)])
def test_as_many_labels_as_examples_are_needed(y):
    table = np.zeros((300, 2))
    for models, rows in ((MODELS, X), (table, None), (table.tolist(), None)):
        assert re.search(
            "not as many labels|one label for each", raised(DataError, models, rows, y)
        )
    assert "not as many labels" in raised(
        DataError, MODELS, X, y, score=lambda y, p: p, bounds=(0, 1)
    )


def test_labels_in_two_columns_have_no_accuracy():
    assert "one label for each" in raised(DataError, MODELS, X, X)


def test_lists_of_different_length_are_no_matrix():
    assert "the same length" in raised(DataError, [[1, 0]] * 299 + [[1]], None, Y)


def wrong(rows):
    return np.zeros(len(rows) - 1)


@pytest.mark.parametrize(
    "said", [wrong, lambda rows: 1, lambda rows: np.zeros((len(rows), 1)), lambda rows: iter(rows)]
)
def test_a_model_must_say_one_thing_of_each_row(said):
    assert "Model 1 did not give one prediction" in raised(DataError, [MODELS[0], said], X, Y)
    assert "Model 'b' did not give one prediction" in raised(
        DataError, {"a": MODELS[0], "b": said}, X, Y
    )


def test_a_score_needs_as_many_predictions_as_rows():
    assert "one prediction" in raised(DataError, [wrong], X, Y, score=lambda y, p: y, bounds=(0, 1))


TEXTS = np.array(["1"] * 300)


@pytest.mark.parametrize("text", [TEXTS, TEXTS.astype("S"), TEXTS.astype(np.dtypes.StringDType())])
def test_arrays_of_text_and_of_numbers_are_an_error_and_not_all_wrong(text):
    assert "Model 0 predicts text" in raised(DataError, [lambda rows: text], X, Y)
    assert "Model 0 predicts text" in raised(DataError, MODELS, X, text)
    assert "Model 0 predicts text" in raised(DataError, np.column_stack([text, text]), None, Y)
    assert "Model 'a' predicts text" in raised(DataError, pd.DataFrame({"a": Y}), None, text)


@pytest.mark.parametrize(
    "kind", [list, pd.Series, pl.Series, lambda values: np.array(values, object)]
)
def test_text_beside_a_number_is_refused_whatever_holds_them(kind):
    """A column of a CSV file is text if one value of it is: then nothing would be right, because of
    one person.
    """
    text, numbers = kind([str(label) for label in Y]), kind(Y.tolist())
    assert "Model 0 predicts text" in raised(DataError, [lambda rows: numbers], X, text)
    assert "Model 0 predicts text" in raised(DataError, [lambda rows: text], X, numbers)
    one = kind(["1"] + ["2"] * 299)
    assert totals([lambda rows: one], X, text) == [
        sum(left == right for left, right in zip(one, text, strict=True))
    ]


def test_each_row_is_judged_by_itself():
    mixed = np.array([1, "a", b"a", None] * 75, object)
    assert totals([lambda rows: mixed], X, mixed) == [225]
    nothing = np.array(["b", 1, None, b"a"], object)
    assert "Model 0 predicts text" in raised(DataError, [lambda rows: nothing], [0] * 4, mixed[:4])
    assert totals(saying("a", math.nan, 3), [0] * 3, [None, "b", pd.NA]) == [0]


@pytest.mark.parametrize("score", ["accuracy", "distance"])
def test_whole_numbers_and_the_same_as_floats_have_the_same_law(score):
    """Somebody's decimal, in whatever row, makes floats of a column that is read from a file."""
    own = {} if score == "accuracy" else {"score": lambda y, p: -abs(y - p), "bounds": (-2, 0)}
    whole = pd.read_csv(io.StringIO("y,a,b\n" + "1,1,0\n2,2,2\n0,1,0\n" * 20))
    mixed = pd.read_csv(io.StringIO("y,a,b\n" + "1,1,0\n2,2,2\n0,1,0\n" * 20 + "0.5,1.5,7.5\n"))[
        :-1
    ]
    assert (whole["y"].dtype.kind, mixed["y"].dtype.kind) == ("i", "f")
    sources = [totals(frame[["a", "b"]], None, frame["y"], **own) for frame in (whole, mixed)]
    assert sources[0] == sources[1]
    by_row = [
        totals([lambda rows: rows["a"], lambda rows: rows["b"]], f, f["y"], **own)
        for f in (whole, mixed)
    ]
    assert by_row == sources


def test_the_error_of_a_comparison_is_not_passed_on():
    class Odd:
        def __eq__(self, other):
            raise ValueError(SECRET)

        __hash__ = None

    assert "cannot be compared" in raised(DataError, [lambda rows: [Odd()] * 300], X, Y)


def test_what_a_failing_model_says_is_not_passed_on():
    def failing(rows):
        raise KeyError(SECRET)

    assert "Model 1 failed (KeyError)" in raised(DataError, [MODELS[0], failing], X, Y)
    assert "Model 'b' failed" in raised(DataError, {"a": MODELS[0], "b": failing}, X, Y)
    score = {"score": lambda y, p: failing(y), "bounds": (0, 1)}
    assert "The score failed on Model 0 (KeyError)" in raised(DataError, MODELS, X, Y, **score)


def test_what_cannot_be_an_array_is_refused():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            raise TypeError(SECRET)

    assert "Model 0 gave what cannot be read" in raised(DataError, [lambda rows: Tensor()], X, Y)


def test_an_error_of_loading_a_model_is_passed_on():
    class Missing(Lazy):
        def __getitem__(self, number):
            raise FileNotFoundError("model.bin")

    with pytest.raises(FileNotFoundError, match=r"model\.bin"):
        select_model(Missing(), X, Y, **PRICE)


def test_an_interrupt_is_passed_on():
    def interrupted(rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select_model([interrupted], X, Y, **PRICE)


@pytest.mark.parametrize(
    ("score", "told"),
    [
        (lambda y, p: float((y == p).mean()), "one number per row"),
        (lambda y, p: (y == p)[:, None], "one number per row"),
        (lambda y, p: ["good"] * len(y), "one number per row"),
        (lambda y, p: None, "one number per row"),
        (lambda y, p: np.where(X[:, 0] == 44, np.nan, 0.0), "is NaN for a row"),
    ],
)
def test_a_score_must_be_a_number_for_each_row(score, told):
    assert told in raised(DataError, MODELS, X, Y, score=score, bounds=(0, 1))


def test_a_source_shows_nothing():
    source = score_models(list_entrants(MODELS, X, "predict"), Y, make_rule("accuracy", None, None))
    assert repr(source) == "ModelSource(<private>)"


# Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_on_a_terminal_only_and_without_a_number_of_rows(monkeypatch):
    monkeypatch.setattr(module, "_ENTRIES", 2)
    shown = {}
    for kind in (Terminal, io.StringIO):
        for wanted in (True, False):
            stream = kind()
            monkeypatch.setattr("sys.stderr", stream)
            monkeypatch.setenv("TERM", "xterm")
            assert select_model(MODELS, X, Y, **PRICE, progress=wanted).item == 1
            shown[kind, wanted] = stream.getvalue()
    told = shown.pop((Terminal, True))
    assert "Trying models" in told
    assert "100%" in told
    assert not re.search(r"300|900", told)
    assert set(shown.values()) == {""}


def predicted(rows):
    return np.column_stack([model(X[:rows]) for model in MODELS])


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        (lambda rows: (MODELS, X[:rows]), [1, 1, 1]),
        (lambda rows: (dict(zip("abc", MODELS, strict=True)), X[:rows]), [1, 1, 1]),
        (lambda rows: (Lazy(), X[:rows]), [1, 1, 1]),
        (lambda rows: (MODELS * 100, X[:rows]), [3] * 100),
        (lambda rows: (predicted(rows), None), [2, 1]),
        (lambda rows: (predicted(rows).tolist(), None), [1, 1, 1]),
        (lambda rows: (pd.DataFrame(predicted(rows)), None), [1, 1, 1]),
    ],
    ids=["list", "mapping", "lazy", "many", "matrix", "lists", "frame"],
)
def test_progress_is_in_models_whatever_the_number_of_examples(given, steps, monkeypatch):
    """What is shown must not tell how many blocks of rows there are."""
    monkeypatch.setattr(module, "_ENTRIES", 14)
    monkeypatch.setattr(module, "_ROWS", 7)
    monkeypatch.setattr(module, "_BYTES", 14)
    told = []

    @contextmanager
    def bar(wanted, models):
        assert wanted
        told.append([models])
        yield told[-1].append

    monkeypatch.setattr(module, "_bar", bar)
    for rows in (1, 7, 8, 300):
        score_models(
            list_entrants(*given(rows), "predict"),
            Y[:rows],
            make_rule("accuracy", None, None),
            progress=True,
        )
    assert told == [[sum(steps), *steps]] * 4


@pytest.mark.parametrize("name", ["neg_mean_absolute_error", "neg_mean_squared_error"])
def test_predictions_in_a_column_do_not_become_a_table_of_all_pairs(name):
    """For 65,536 rows, a block, that would be 32 GiB."""
    score, _ = find_score(name, "accuracy", (-1, 0))
    with pytest.raises(ValueError, match="different shapes"):
        score(np.zeros(3), np.zeros((3, 1)))


class Knows:
    """A model that says which labels it knows."""

    def __init__(self, classes, says=0):
        self.classes_, self._says = classes, says

    def predict(self, rows):
        return np.full(len(rows), self._says)


def test_models_with_other_kinds_of_labels_are_refused_before_a_label_is_read():
    """Text is never equal to 0 or 1: every such model would be wrong everywhere, and a random one
    would come out.
    """
    texts, numbers = np.array(["<=50K", ">50K"]), np.array([0, 1])
    rows, zeros = np.zeros((4, 1)), np.zeros(4, int)
    for classes in (texts, list(texts), texts.astype(object)):
        with pytest.raises(ParameterError, match=r"'b'.* are text .* of y are numbers"):
            select_model({"a": Knows(numbers), "b": Knows(classes)}, rows, zeros, epsilon=1)
        with pytest.raises(ParameterError, match=r"text .* labels of Model 0 are numbers"):
            select_model([Knows(numbers), Knows(classes)], rows, zeros.tolist(), epsilon=1)
    with pytest.raises(ParameterError, match=r"classes_ are numbers .* of y are text"):
        select_model([Knows(numbers)], rows, pd.Series(["x"] * 4), epsilon=1)


def test_models_with_other_kinds_of_labels_cost_nothing(tmp_path):
    ledger = privmax.Ledger.create(tmp_path / "budget.db", epsilon=1)
    with pytest.raises(ParameterError, match="classes_ are text"):
        select_model([Knows(["a", "b"])], np.zeros((4, 1)), np.zeros(4), epsilon=1, ledger=ledger)
    assert ledger.left().epsilon == 1


@pytest.mark.parametrize("classes", [np.array([0, 1]), [0.0, 1.0], None, 7, ["a", 1], [[0], [1]]])
def test_labels_that_may_be_right_are_not_refused(classes):
    models = [Knows(classes), Knows(np.array([0, 1]))]
    assert select_model(models, np.zeros((9, 1)), np.zeros(9, int), epsilon=1).item in (0, 1)
    assert select_model(models, np.zeros((9, 1)), [0] * 9, epsilon=1).item in (0, 1)


def test_an_order_of_models_comes_without_distances():
    """Totals are in steps of their own, and an assertion about them failed after the charge."""
    models = {f"m{place}": partial(_above, 500 + 9 * place) for place in range(50)}
    rows = np.arange(1000.0).reshape(-1, 1)
    release = privmax.select_model(
        models, rows, rows[:, 0] >= 500, epsilon=1, delta=1e-6, k=10, ranked=True,
        score=lambda real, guess: (real == guess) * 0.7, bounds=(0, 1),
    )  # fmt: skip
    assert isinstance(release.mechanism, RankedMargin)
    assert release.ranked
    assert release.relative is None


def _above(cut, rows):
    return rows[:, 0] >= cut
