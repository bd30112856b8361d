"""One row of any type changes nothing about how any other row is read.

Every entry point × every container × every role of a column × every odd value: base rows are
built as people build them, one row more is added, and what is read of the others must be what it
was. A refusal by an error of privmax is allowed, and counted. `./dev python
tests/metamorphic/test_metamorphic.py` prints the counts that docs/inputs.md gives.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parent))

import pandas as pd
import pytest
from odd_rows import entries, trial
from odd_rows.containers import FILES, PANDAS
from odd_rows.trial import Broken, Case, cases
from odd_rows.values import FAMILIES, ODD

import privmax
from privmax.errors import DataError, ParameterError
from privmax.learning import (
    Number,
    PrivateClassifier,
    PrivateERM,
    PrivateGAM,
    PrivateTree,
    Schema,
    Stumps,
)
from privmax.ledger import Ledger
from privmax.sources.containers import pandas as pandas_reader
from privmax.sources.table import number_list

pytestmark = pytest.mark.filterwarnings("ignore")

QUICK = {"stride": 29, "engines": 113}
ALL = {"stride": 2}
BIG = 2**60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trial._observe.cache_clear()
    return tmp_path_factory.mktemp("rows")


def count(which: Iterator[Case], folder: Path) -> Counter[tuple[str, str, str]]:
    """How many cases of an entry point and a container came out how; or all that broke."""
    tally: Counter[tuple[str, str, str]] = Counter()
    broken = []
    for case in which:
        try:
            tally[case.entry.name, case.container, trial.run(case, folder)] += 1
        except Broken as error:
            broken.append(str(error))
    assert not broken, "\n".join([f"{len(broken)} of {len(broken) + sum(tally.values())}", *broken])
    return tally


def test_one_row_changes_no_other_in_some_cases(folder):
    tally = count(cases(**QUICK), folder)
    assert {case.odd for case in cases(**QUICK)} == set(ODD)
    assert {entry for entry, _, _ in tally} == {entry.name for entry in entries.ENTRIES}
    assert {container for _, container, _ in tally} >= {*PANDAS, "polars", "Arrow"}


@pytest.mark.slow
def test_one_row_changes_no_other_in_all_cases(folder):
    tally = count(cases(**ALL), folder)
    outcomes = Counter()
    for (_, _, outcome), number in tally.items():
        outcomes[outcome] += number
    print(dict(outcomes))
    assert outcomes[trial.SAME] > sum(outcomes.values()) / 4


# What was wrong, by name

NULL_ROWS = {"null": None, "a float": 0.5, "text": "x"}
ROUNDED = "2\\^53 or more is in a column whose type pandas inferred"


@pytest.mark.parametrize("odd", NULL_ROWS.values(), ids=NULL_ROWS)
@pytest.mark.parametrize("role", ["item", "user", "basket"])
@pytest.mark.parametrize("big", [[], [0]], ids=["without", "with"])
def test_numbers_that_pandas_may_round_are_refused(role, big, odd, tmp_path):
    """100 different ids were one as soon as another row had none; nothing is charged now."""
    ids = [BIG + n for n in range(100)] if big else [2**53 - 200 + n for n in range(100)]
    columns = {"item": ["tea"] * 101, "user": ["u"] * 101, "basket": ["b"] * 101}
    frame = pd.DataFrame({**columns, role: [*ids, odd]})
    cost = {"epsilon": 1, "delta": 1e-6}
    with Ledger.create(tmp_path / "budget.db", budget=privmax.Privacy(9, 1e-3)) as ledger:
        for ask in (
            lambda: privmax.select(frame, item="item", user="user", **cost, ledger=ledger),
            lambda: privmax.top_itemsets(
                frame, basket="basket", item="item", user="user", k=1, **cost, ledger=ledger
            ),
        ):
            spent = ledger.spent
            if big and not (role == "basket" and "select" in ask.__code__.co_names):
                with pytest.raises(DataError, match=ROUNDED) as caught:
                    ask()
                assert str(BIG)[:6] not in str(caught.value)
                assert ledger.spent == spent
            elif odd is not None or role == "item":
                ask()


@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]"])
def test_declared_types_keep_large_numbers_beside_missing_ones(kind, tmp_path):
    """What the error says to do."""
    path = tmp_path / "rows.csv"
    path.write_text("id\n" + "".join(f"{BIG + n}\n" for n in range(9)) + f'""\n{BIG}\n')
    frame = pd.read_csv(path, dtype={"id": kind})
    found = entries.select(frame, item="id")
    assert found == {("int", str(BIG + n)): 1 + (n == 0) for n in range(9)}
    assert entries.select(frame.astype({"id": "category"}), item="id") == found
    text = pd.read_csv(path, dtype=str)
    assert entries.select(text, item="id") == {
        ("str", repr(key)): number for (_, key), number in found.items()
    }


@pytest.mark.parametrize("family", ["durations in nanoseconds", "nanoseconds", "durations"])
@pytest.mark.parametrize("odd", [None, "x", pd.Timedelta(1, "h")], ids=["null", "text", "a span"])
def test_moments_and_spans_are_told_apart_by_nanoseconds(family, odd):
    """A typed column went through microseconds, and gave text; objects did not."""
    values = [FAMILIES[family](n) for n in range(30)]
    typed = entries.select(pd.DataFrame({"item": values}), item="item")
    mixed = entries.select(pd.DataFrame({"item": [*values, odd]}), item="item")
    assert len(typed) == 30
    assert typed.items() <= mixed.items()
    assert {kind for kind, _ in typed} <= {"timedelta", "datetime", "Timestamp", "Timedelta"}


@pytest.mark.parametrize("label", [2**53, -(2**53), 2.0**53, 2**60 + 1])
def test_large_labels_are_refused_by_all_learners(label):
    X, y = [[1.0]] * 4, [0, 1] * 2
    schema = Schema(x=Number(0, 9, cells=2))
    for learner in (
        PrivateERM(Stumps(low=0, high=9, cells=2), epsilon=1, labels=[0, label]),
        PrivateClassifier(schema, epsilon=1, delta=1e-6, labels=[0, label]),
        PrivateGAM(schema, 1, 1e-6, labels=[0, label]),
        PrivateTree(schema, 1, labels=[0, label]),
    ):
        with pytest.raises(ParameterError, match=r"from 2\^53 on"):
            learner.fit(X, y)


@pytest.mark.parametrize("wanted", ["whole", "floats", "objects", "truths"])
def test_truths_and_ones_are_one_cell(wanted):
    """`concat` makes whole numbers of truths beside one."""
    from privmax.learning import Category

    columns = {
        "whole": pd.Series([1, 0, 2]), "floats": pd.Series([1.0, 0.0, None]),
        "objects": pd.Series([True, False, "x"]), "truths": pd.Series([True, False]),
    }  # fmt: skip
    for listed in ([True, False], [1, 0], ["1", "0"]):
        assert Category(listed).codes(columns[wanted])[:2].tolist() == [0, 1]


# The suite notices readers that follow the type of a column


def broken(names: set[str], folder: Path, families: set[str], **which: int) -> int:
    """How many cases break, of some entry points and families."""
    trial._observe.cache_clear()
    number = 0
    for case in cases(**which):
        if case.entry.name in names and case.family in families and case.container in PANDAS:
            try:
                trial.run(case, folder)
            except Broken:
                number += 1
    trial._observe.cache_clear()
    return number


def read_by_type(column):
    """As before 0.3: whole numbers as floats where pandas made floats of them."""
    if column.dtype == object:
        return ORIGINAL(column)
    numbers, different = pd.factorize(column)
    return numbers, [pandas_reader.read_label(value) for value in different.tolist()]


def read_by_microseconds(column):
    if getattr(column.dtype, "kind", "O") in "mM":
        column = column.astype(f"{column.dtype.kind}8[us]").astype(str)
    return ORIGINAL(column)


ORIGINAL = pandas_reader.number_values
READERS = {
    "by type": (read_by_type, "whole numbers from 2^53 on"),
    "by microseconds": (read_by_microseconds, "durations in nanoseconds"),
}


@pytest.mark.parametrize(("reader", "family"), READERS.values(), ids=READERS)
def test_readers_that_follow_the_type_are_noticed(reader, family, monkeypatch, tmp_path):
    monkeypatch.setattr(pandas_reader, "number_values", reader)
    assert broken({"top_itemsets"}, tmp_path, {family}, stride=3)


def test_lists_that_may_be_rounded_are_noticed(monkeypatch, tmp_path):
    monkeypatch.setattr(pandas_reader, "number_objects", number_list)
    family = {"whole numbers from 2^53 on"}
    assert broken({"top_itemsets, lists"}, tmp_path, family, stride=3)


def test_labels_that_may_be_rounded_are_noticed(monkeypatch, tmp_path):
    from privmax.learning import models

    monkeypatch.setattr(models, "refuse_rounded", lambda values: values)
    assert broken({"select_model"}, tmp_path, {"whole numbers from 2^53 on"}, stride=3)


def test_truths_that_are_not_ones_are_noticed(monkeypatch, tmp_path):
    from privmax.learning import Category

    monkeypatch.setattr(
        Category, "truth_cell", lambda self, value: self.known.get(str(value), self.other)
    )
    monkeypatch.setattr(entries, "LISTED", None)
    listed = Schema(feature=Category([1, 2, 3], missing=True))
    entry = entries.Entry("mutant", "feature", entries.cells(listed), slack=0, base=("truths",))
    case = Case(entry, "pandas, concat", "truths", "a whole number")
    with pytest.raises(Broken):
        trial.run(case, tmp_path)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as made:
        found = count(cases(**ALL), Path(made))
    outcomes = [trial.SAME, trial.REFUSED, trial.BASE, trial.TEXT, trial.UNBUILT]
    places = {name: "pandas" if name in PANDAS else "files" if name in FILES else name
              for _, name, _ in found}  # fmt: skip
    table: Counter[tuple[str, str, str]] = Counter()
    for (entry, container, outcome), number in found.items():
        table[entry.split(",")[0].split(" ")[0], places[container], outcome] += number
    print("| entry point | data |", " | ".join(outcomes), "|")
    print("|---|---|" + "---|" * len(outcomes))
    for entry, place in sorted({(entry, place) for entry, place, _ in table}):
        numbers = [str(table[entry, place, outcome]) for outcome in outcomes]
        print(f"| {entry} | {place} |", " | ".join(numbers), "|")
    print(sum(table.values()), "cases")
