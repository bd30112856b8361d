"""What every entry point makes of rows, before any noise: counts by label, cells, codes.

An observation is a `Counter`. What one row more may change of it is `slack`: the sum of all
differences. Labels come with their type, since 1 and "1" are two labels.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from odd_rows.containers import Row
from odd_rows.values import MORNING
from privmax.errors import DataError
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.reading.forms import open_baskets
from privmax.learning import (
    Category,
    Date,
    Flag,
    MarginalSelector,
    Number,
    PrivateClassifier,
    PrivateERM,
    PrivateGAM,
    PrivateTree,
    Schema,
    Stumps,
)
from privmax.learning.inputs import label_codes, read_declared_labels
from privmax.learning.models import Predictors, score_models
from privmax.learning.reading import read_examples, read_labels
from privmax.learning.regressor.estimator import read_numbers
from privmax.learning.regressor.targets import target_column
from privmax.learning.scoring import make_rule
from privmax.learning.search_runs import RowSource, count_right
from privmax.learning.validation import Stability, validate
from privmax.markers.reading import StudyLayout, count_genotypes
from privmax.markers.scores import StudyGroups
from privmax.sources.reading import source
from privmax.sources.roles import Columns
from privmax.testing import SeededCoins
from privmax.universe import Universe

ROWS = 24
ITEMS = 5
Found = Counter[Any]


@dataclass(frozen=True, eq=False)
class Entry:
    """One role of a column at one entry point.

    role       the column whose values are of a family, and in one row odd
    observe    what is read of data
    slack      by how much all counts together may change with one row
    base       the families that its values may be of; empty: all
    place      which value of a family row n has
    files      whether it reads files
    odd        what else the odd row has
    own        the key of the odd row's own count, which may be anything
    grows      whether no count may become smaller
    series     whether it needs a frame of pandas
    costly     whether an engine counts
    """

    name: str
    role: str
    observe: Callable[[Any], Found]
    slack: int = 1
    base: tuple[str, ...] = ()
    place: Callable[[int], int] = lambda n: n
    files: bool = False
    odd: dict[str, Any] = field(default_factory=dict)
    own: Any = None
    grows: bool = True
    series: bool = False
    costly: bool = False

    def rows(self, family: Callable[[int], Any]) -> list[Row]:
        """The base rows."""
        return [{**_row(n), self.role: family(self.place(n))} for n in range(ROWS)]

    def row(self, value: Any) -> Row:
        """One row more."""
        return {**_row(ROWS), **self.odd, self.role: value}


def _row(n: int) -> Row:
    return {
        "item": f"item {n % ITEMS}",
        "user": f"user {n}",
        "basket": f"basket {n // 2}",
        "score": n,
        "weight": n % 4,
        "label": n % 2,
        "feature": n,
        "marker": f"rs{n % 2}",
        "genotype": n % 3,
        "person": f"person {n // 2}",
        "status": "case" if n // 2 % 2 else "control",
        "tested": n,
    }


def token(label: Any) -> tuple[str, str]:
    return type(label).__name__, repr(label)


def select(data: Any, resolution: Any = None, **columns: Any) -> Found:
    scale = {"sensitivity": None, "resolution": resolution}
    read = source(data, Columns(**columns), universe=Universe.of("open"), **scale)
    try:
        getattr(read, "maximum", int)()  # where an engine counts, it says here what is wrong
        return Counter({token(label): score for label, score in read.scores()})
    finally:
        read.close()


def scores_of_series(data: Any) -> Found:
    """The frame as a Series: items are its index."""
    return select(data.set_index("item")["score"])


def baskets(data: Any, **columns: Any) -> Found:
    """How many individuals have the same baskets."""
    with ExitStack() as stack:
        rows = open_baskets(data, stack=stack, **columns)
        found = rows if isinstance(rows, Baskets) else rows.survivors(1)
        owners = np.arange(found.rows) if found.owners is None else found.owners
        owned: dict[int, set[Any]] = {}
        for row, owner in enumerate(owners.tolist()):
            codes = found.codes[found.offsets[row] : found.offsets[row + 1]]
            owned.setdefault(owner, set()).add(
                frozenset(token(found.labels[code]) for code in codes.tolist())
            )
        weights = np.ones(len(owned), int) if found.weights is None else found.weights
        tally: Found = Counter()
        for owner, number in zip(sorted(owned), weights.tolist(), strict=True):
            tally[frozenset(owned[owner])] += number
        return tally


def lists_of_items(data: Any) -> Found:
    """The frame as one of lists, as `groupby` makes them."""
    try:
        frame = data.groupby("basket", sort=False)["item"].agg(list).reset_index()
    except OverflowError:  # pandas itself has no list of Arrow moments before the year 1
        raise DataError("There is no such frame.") from None
    return baskets(frame, item="item")


def one_hot(data: Any) -> Found:
    """Columns of zeros and ones."""
    columns = ["feature", "label", "basket"]
    chosen = data.select(columns) if hasattr(data, "select") else data[columns]
    return baskets(chosen, basket=["basket"], form="onehot")


LONG = {"marker": "marker", "genotype": "genotype", "person": "person"}


def markers(data: Any) -> Found:
    layout = StudyLayout.of(
        data, StudyGroups(ROWS, ROWS), ["rs0", "rs1"], status="status", case="case", missing="null",
        **LONG,
    )  # fmt: skip
    with ExitStack() as stack:
        counts = count_genotypes(data, layout, stack)
    return Counter({place: int(number) for place, number in np.ndenumerate(counts)})


SCHEMA = Schema(feature=Number(0, 40, cells=8, missing=True))
LISTED = Schema(feature=Category([*range(2, 9), "tea 3", "tea 4", True, "003"], missing=True))

FLAGGED = Schema(feature=Flag(missing=True))
DATED = Schema(feature=Date("2024-01-01", "2024-03-01T05:12:00", cells=40, missing=True))


def cells(schema: Schema) -> Callable[[Any], Found]:
    def observe(data: Any) -> Found:
        return Counter(enumerate(schema.codes(data)[0, :ROWS].tolist()))

    return observe


def learner(make: Callable[[], Any]) -> Callable[[Any], Found]:
    """The numbers that a learner without a schema takes of X, for base rows."""

    def observe(data: Any) -> Found:
        X = data.select(["feature"]) if hasattr(data, "select") else data[["feature"]]
        read, _ = make()._validate(X, np.arange(len(X)) % 2)
        return Counter({n: float(value) for n, value in enumerate(read[:ROWS, 0])})

    return observe


def erm() -> PrivateERM:
    return PrivateERM(Stumps(low=0, high=40, cells=4), epsilon=1, labels=[0, 1])


def labels_of_erm(data: Any) -> Found:
    X = np.zeros((len(data), 1))
    _, y = erm()._validate(X, data["label"])
    return Counter(enumerate(label_codes(y, read_declared_labels([0, 1]))[:ROWS].tolist()))


def labels_of_text(data: Any) -> Found:
    X = np.zeros((len(data), 1))
    declared = [f"tea {n}" for n in range(ROWS)]
    learner = PrivateERM(Stumps(low=0, high=40, cells=4), epsilon=1, labels=declared)
    _, y = learner._validate(X, data["label"])
    return Counter(enumerate(label_codes(y, read_declared_labels(declared))[:ROWS].tolist()))


def labels_of(kind: type) -> Callable[[Any], Found]:
    def observe(data: Any) -> Found:
        learner = kind(SCHEMA, epsilon=1, labels=[0, 1])
        second = read_examples(SCHEMA, data, data["label"], read_labels(learner.labels))[1]
        return Counter(enumerate(second[:ROWS].astype(int).tolist()))

    return observe


def targets_of(data: Any) -> Found:
    column = target_column(np.array([0.0, 40.0]))
    targets = read_numbers(SCHEMA, data, data["label"], column)[1]
    return Counter(enumerate(targets[:ROWS].tolist()))


class Constant:
    """A model that says one thing of all rows, in Python's own type."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def predict(self, X: Any) -> Any:
        return [self.value] * len(X)


def model_total(value: Any) -> Callable[[Any], Found]:
    def observe(data: Any) -> Found:
        entrants = Predictors([Constant(value)], None, np.zeros((len(data), 1)), "predict")
        rule = make_rule("accuracy", None, None)
        return Counter({0: score_models(entrants, data["label"], rule).scores()[0][1]})

    return observe


def search_total(value: Any) -> Callable[[Any], Found]:
    def observe(data: Any) -> Found:
        rows = RowSource(np.zeros((len(data), 1)), data["label"])
        return Counter({0: count_right(Constant(value), rows._X, rows._y)})

    return observe


def validation_scores(data: Any) -> Found:
    """What a score of the caller's own sees: the labels of base rows, as numbers."""
    seen: Found = Counter()

    def score(model: Any, X: Any, y: Any) -> float:
        seen.update({n: float(value) for n, value in enumerate(list(y)[:ROWS])})
        return 0.0

    training = np.zeros((2, 1)), [0, 1]
    rows = (np.zeros((len(data), 1)), data["label"])
    options = {"score": score, "stability": Stability(training=0.1, validation=0.1), "epsilon": 1}
    validate([lambda X, y: None] * 2, training, rows, **options, coins=SeededCoins(1))
    return seen


def _few(n: int) -> int:
    return n % ITEMS


ITEM, USER = {"item": "item"}, {"item": "item", "user": "user"}
BASKET = {"basket": "basket", "item": "item"}
NUMBERS = ("whole numbers", "whole floats", "floats", "whole numbers just below 2^53")
MORE_NUMBERS = (*NUMBERS, "whole numbers from 2^53 on", "decimals")
TWO = ("truths",)

ENTRIES = [
    Entry("select", "item", lambda data: select(data, **ITEM), place=_few, files=True, costly=True),
    Entry("select", "user", lambda data: select(data, **USER), files=True, costly=True),
    Entry(
        "select", "weight",
        lambda data: select(data, **USER, weight="weight", bound=5),
        slack=5, base=MORE_NUMBERS, files=True, costly=True,
    ),
    Entry(
        "select, several columns", "item",
        lambda data: select(data, item=["item", "basket"], user="user"), place=_few,
        costly=True,
    ),
    Entry(
        "select, scores", "item", lambda data: select(data, item="item", score="score"),
        slack=ROWS, odd={"score": ROWS},
    ),
    Entry("select, Series", "item", scores_of_series, slack=ROWS, odd={"score": ROWS},
          series=True),
    Entry(
        "select, scores", "score", lambda data: select(data, item="user", score="score"),
        base=MORE_NUMBERS, own=token(f"user {ROWS}"),
    ),
    Entry(
        "select, grid", "score",
        lambda data: select(data, item="user", score="score", resolution="0.25"),
        base=MORE_NUMBERS, own=token(f"user {ROWS}"),
    ),
    Entry(
        "select where", "tested",
        lambda data: select(data, item="item", where="tested > 5 or tested is null"),
        base=("whole numbers", "whole floats", "floats", "decimals"), files=True, costly=True,
    ),
    Entry(
        "select where", "tested",
        lambda data: select(data, item="item", where="tested >= 'tea 2' and tested != 'tea 5'"),
        base=("text",), files=True, costly=True,
    ),
    Entry(
        "select where", "tested",
        lambda data: select(data, item="item", where="tested >= '2024-03-01 05:07:00'"),
        base=("moments",), costly=True,
    ),
    Entry("top_itemsets", "item", lambda data: baskets(data, **BASKET), slack=2, place=_few,
          files=True, grows=False),
    Entry("top_itemsets", "basket", lambda data: baskets(data, **BASKET), slack=2,
          files=True, grows=False),
    Entry("top_itemsets", "user", lambda data: baskets(data, **BASKET, user="user"), slack=2,
          files=True, grows=False),
    Entry("top_itemsets, one-hot", "label", one_hot, slack=2, base=TWO, odd={"feature": 0},
          grows=False),
    Entry("top_markers", "marker", markers, slack=2, place=_few,
          grows=False, costly=True),
    Entry("top_markers", "person", markers, slack=2, place=lambda n: n // 2,
          grows=False, costly=True),
    Entry("top_markers", "status", markers, slack=2, place=lambda n: n // 2 % 2,
          grows=False, costly=True),
    Entry("top_markers", "genotype", markers, slack=2, base=TWO, place=lambda n: n,
          grows=False, costly=True),
    Entry("Schema, numbers", "feature", cells(SCHEMA), slack=0),
    Entry("Schema, names", "feature", cells(LISTED), slack=0),
    Entry("Schema, flags", "feature", cells(FLAGGED), slack=0),
    Entry("Schema, dates", "feature", cells(DATED), slack=0),
    Entry("PrivateERM", "feature", learner(erm), slack=0, base=MORE_NUMBERS),
    Entry("PrivateERM", "label", labels_of_erm, slack=0, base=TWO),
    Entry("PrivateERM", "label", labels_of_text, slack=0, base=("text",)),
    Entry("PrivateClassifier", "label", labels_of(PrivateClassifier), slack=0, base=TWO),
    Entry("PrivateGAM", "label", labels_of(PrivateGAM), slack=0, base=TWO),
    Entry("PrivateRegressor", "label", targets_of, slack=0, base=MORE_NUMBERS),
    Entry("PrivateTree", "label", labels_of(PrivateTree), slack=0, base=TWO),
    Entry("validate", "label", validation_scores, slack=0, base=MORE_NUMBERS),
    Entry(
        "MarginalSelector", "feature",
        learner(lambda: MarginalSelector(1, 1, low=0, high=40, label_low=0, label_high=1)), slack=0,
        base=MORE_NUMBERS,
    ),
]  # fmt: skip
SAID = {
    "whole numbers": 5, "whole numbers from 2^53 on": 2**60 + 3, "floats": 2.25, "text": "tea 3",
    "whole numbers just below 2^53": 2**53 - 87, "whole floats": 5, "digits": "003",
    "truths": True, "durations": dt.timedelta(hours=8), "moments": MORNING,
}  # fmt: skip
for _family, _value in SAID.items():
    ENTRIES += [
        Entry("select_model", "label", model_total(_value), base=(_family,)),
        Entry("PrivateSearch", "label", search_total(_value), base=(_family,)),
    ]
ENTRIES.append(Entry("top_itemsets, lists", "item", lists_of_items, series=True))


def families(entry: Entry, every: Sequence[str]) -> list[str]:
    """Those that an entry's values may be of."""
    return [name for name in every if not entry.base or name in entry.base]
