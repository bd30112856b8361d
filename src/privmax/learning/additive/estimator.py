"""An additive model fitted under differential privacy, as a scikit-learn classifier.

Proof:      docs/proofs/additive.md
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privmax.choice import Choice
from privmax.errors import DataError, ParameterError
from privmax.learning.additive.fitting import Layout, Rows, fit_rounds
from privmax.learning.additive.link import ONE
from privmax.learning.additive.memory import MemoryRows
from privmax.learning.additive.model import AdditiveModel, Codes, Part
from privmax.learning.additive.rounds import GREEDY, AdditiveRounds
from privmax.learning.schema import Schema
from privmax.learning.scoring import read_column
from privmax.ledger import Ledger
from privmax.ledger.events import ROW, Price
from privmax.ledger.payment import Question, Request
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, whole
from privmax.privacy import ADD_REMOVE
from privmax.release import Release, Terms, answer
from privmax.sources.base import PlainSource
from privmax.universe import Universe
from privmax.warnings import warn_of_fits

ROUNDS, PURE_ROUNDS = 20, 10
"""How many rounds there are by default, with a delta and without one."""


class PrivateGAM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A generalized additive model of two labels: log-odds are a sum of one small table per column.

    ONE ROW IS ONE INDIVIDUAL. Every `fit` pays again: `cross_val_score` with 5 folds is five
    releases, and the scores it returns are not private at all, nor is `score` on private data.

    `fit` sets `model_`, the tables; `release_`, with its cost; `classes_`, the labels. All of it
    may be published, and so may `shape_functions_` and `rules_`, which tell the tables in words.

    Args:
        schema: Which columns there are, and into which cells their values fall. It is public:
            nothing in it may come from the data.
        epsilon: What one `fit` costs; a float means the decimal that it prints as: 0.1 is one
            tenth.
        delta: Probability with which the guarantee may fail, such as 1e-6. With 0 the noise is
            larger, and the guarantee cannot fail.
        labels: The two labels, public knowledge; probabilities are those of the second.
        rounds: In how many rounds tables are fitted; each chooses a column. By default 20, and 10
            where delta is 0.
        interactions: In how many further rounds to fit a table for two columns together. They take
            30 % of the budget: worth it where columns matter only together.
        order: "greedy": every round chooses the column that promises most; "cyclic": columns take
            turns, which suits few columns that all matter.
        neighbors: "add-remove" (the default): one example more or less; "replace": another example.
        unit: What the cost hides, for the ledger, which holds one unit: "row" by default. Say it
            where you know better: unit="user" if every row is a person.
        ledger: The privacy budget that covers every `fit`: charged before the first draw, recorded
            before `fit` returns. Give `ledger.request("nightly", account=…, dataset=…)` to name the
            request, the account to charge as well or the data. A fit under an id that was charged
            before gives the recorded model again, whatever its data, and costs nothing more.
        coins: Source of random bits; for tests only.

    Examples:
        >>> import numpy as np
        >>> from privmax.learning import Number, PrivateGAM, Schema
        >>> X = np.arange(10_000.0).reshape(-1, 1)
        >>> gam = PrivateGAM(Schema(x=Number(0, 10_000, cells=2)), 1, 1e-6, labels=[0, 1], rounds=3)
        >>> gam.fit(X, X[:, 0] >= 5_000).predict([[10], [9_000]])
        array([0, 1])
        >>> gam.release_.privacy
        Privacy(epsilon=1, delta=1e-06)
    """

    model_: AdditiveModel
    release_: Release
    classes_: NDArray[Any]

    def __init__(
        self,
        schema: Schema | None = None,
        epsilon: Number | None = None,
        delta: Number = 0,
        *,
        labels: Sequence[Any] | None = None,
        rounds: int | None = None,
        interactions: int = 0,
        order: str = GREEDY,
        neighbors: str | None = None,
        unit: str | None = None,
        ledger: Ledger | Request | None = None,
        coins: Coins | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.labels = labels
        self.rounds = rounds
        self.interactions = interactions
        self.order = order
        self.neighbors = neighbors
        self.unit = unit
        self.ledger = ledger
        self.coins = coins

    def fit(self, X: Any, y: Any) -> PrivateGAM:
        """Fit the tables, at the cost of one release.

        Args:
            X: A frame with the columns of the schema; or an array with them in order; or an Ibis
                table, which stays in its engine.
            y: A label for each row; of an Ibis table the name of the column that has them.
        """
        schema, labels = self._schema(X), read_labels(self.labels)
        rounds = self._rounds()
        for name in ("model_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # a fit that fails leaves no model behind
        # `fit` must not change a parameter.
        coins = SYSTEM if self.coins is None else deepcopy(self.coins)
        layout = Layout.of(schema)
        terms = AdditiveTerms(given=rounds, unit=ROW if self.unit is None else self.unit, layout=layout)
        if is_table(X):
            name = _column_name(X, y)

        def read(stack: ExitStack) -> AdditiveSource:
            if not is_table(X):
                return AdditiveSource(_read_rows(schema, X, y, labels))
            from privmax.learning.additive.engine import open_rows

            return AdditiveSource(open_rows(X, schema, name, labels, stack))

        if self.ledger is None:
            warn_of_fits(terms.privacy())
        release = answer(
            terms, read, self.ledger, question=self._question(schema, labels), coins=coins
        )
        self._take(release, labels, schema, X)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The chance of each label, for every row of X."""
        second = self.model_.chances(self._codes(X))
        return np.column_stack([1 - second, second])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The log-odds of the second label, for every row of X."""
        return self.model_.scores(self._codes(X)) / ONE

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier label of every row of X."""
        return self.classes_[(self.model_.scores(self._codes(X)) > 0).astype(np.intp)]

    @property
    def shape_functions_(self) -> dict[str, list[dict[str, Any]]]:
        """What each column adds to the log-odds of the second label, cell by cell.

        The keys are names of columns, two of them joined by " × " where they count together. Each
        value is a list of small records: `pandas.DataFrame` makes a table of it, and
        `privmax.plots.shapes` draws all of them.

        Examples:
            >>> from privmax.learning import Number, PrivateGAM, Schema
            >>> X = np.arange(10_000.0).reshape(-1, 1)
            >>> schema = Schema(x=Number(0, 10_000, cells=2))
            >>> gam = PrivateGAM(schema, 1, 1e-6, labels=[0, 1], rounds=3).fit(X, X[:, 0] >= 5_000)
            >>> [one["cell"] for one in gam.shape_functions_["x"]]
            ['x < 5000', 'x >= 5000']
        """
        check_is_fitted(self, "model_")
        return {
            _title(part, self.schema_): [
                {"cell": words, "log_odds": entry / ONE}
                for words, entry in zip(_cells(part, self.schema_), table, strict=True)
            ]
            for part, table in self.model_.tables.items()
        }

    @property
    def rules_(self) -> list[str]:
        """The tables in words, the largest entries first, such as "age < 20: −1.25"."""
        check_is_fitted(self, "model_")
        found = [
            (entry, words)
            for part, table in self.model_.tables.items()
            for words, entry in zip(_cells(part, self.schema_), table, strict=True)
            if entry
        ]
        found.sort(key=lambda one: (-abs(one[0]), one[1]))
        return [f"{words}: {_signed(entry / ONE)}" for entry, words in found]

    def _schema(self, X: Any) -> Schema:
        """The schema, if it is one."""
        if not isinstance(self.schema, Schema):
            raise ParameterError(
                "schema", type(self.schema).__name__, "it must be a Schema: cells and categories "
                "are public, and never taken from the data",
                "For example Schema(age=Number(17, 90, cells=32)).",
            )  # fmt: skip
        return self.schema

    def _rounds(self) -> AdditiveRounds:
        """What each release costs, if all parameters are as they must be."""
        if self.epsilon is None:
            raise ParameterError.required("epsilon", "", "Give epsilon (and delta).")
        default = ROUNDS if self.delta else PURE_ROUNDS
        return AdditiveRounds(
            epsilon=self.epsilon,
            delta=self.delta,
            rounds=default if self.rounds is None else self.rounds,
            pairs=whole("interactions", self.interactions, least=0),
            order=self.order,
            neighbors=ADD_REMOVE if self.neighbors is None else self.neighbors,
        )

    def _question(self, schema: Schema, labels: NDArray[Any]) -> Question | None:
        """What a ledger writes down of a fit."""
        if self.ledger is None:
            return None
        return Question("PrivateGAM", {"schema": repr(schema), "labels": labels.tolist()})

    def _take(self, release: Release, labels: NDArray[Any], schema: Schema, X: Any) -> None:
        if release.item is None:
            warnings.warn(
                "No answer: the fit failed after it was charged, so model_ has no tables and both "
                "labels are equally likely.",
                stacklevel=3,
            )
        self.model_ = AdditiveModel(0, {}) if release.item is None else release.item
        self.release_, self.classes_, self.schema_ = release, labels, schema
        self.n_features_in_ = schema.features
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.array(schema.names, dtype=object)

    def _codes(self, X: Any) -> Codes:
        check_is_fitted(self, "model_")
        return self.schema_.codes(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # a public grid need not fit, and privacy adds noise
        tags.input_tags.allow_nan = True  # a schema has a cell for every value
        return tags


@dataclass(frozen=True, kw_only=True)
class AdditiveTerms(Terms):
    """The terms of a fit: what runs are rounds, and a ledger keeps the tables.

    layout   what is public of the features
    """

    layout: Layout
    universe: Universe = Universe(1)

    def __post_init__(self) -> None:
        """The rounds were checked when they were made."""

    @property
    def rounds(self) -> AdditiveRounds:
        """How the fit spends its budget."""
        assert isinstance(self.given, AdditiveRounds)
        return self.given

    @property
    def choice(self) -> Choice:  # type: ignore[override]  # of `Terms` it is decided once
        return Choice(self.rounds, "additive models are fitted in rounds")  # type: ignore[arg-type]

    def cost(self) -> Price:
        """What to charge: also in ρ, which a ledger under the rule "zcdp" adds up."""
        rounds = self.rounds
        return Price(
            rounds.privacy(), neighbors=rounds.neighbors, unit=self.unit
        )

    def check(self) -> None:
        """There is nothing to refuse: rounds serve every schema."""

    def look(self, source: Any) -> None:
        """Count labels once before the charge: an engine that fails does so now."""
        source.rows.labels()

    def draw(self, source: Any, coins: Coins) -> Release:
        model = fit_rounds(source.rows, self.layout, self.rounds, coins)
        return replace(self.release(), items=(model,))

    def decode(self, written: Any) -> AdditiveModel:
        return AdditiveModel.from_json(written)


class AdditiveSource(PlainSource):
    """Rows for an additive fit. They are private."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __repr__(self) -> str:
        return "AdditiveSource(<private>)"

    def encode(self, item: AdditiveModel) -> Any:
        """A model as JSON."""
        return item.to_json()


def read_labels(labels: object) -> NDArray[Any]:
    """The two declared labels, as an array.

    Raises:
        ParameterError: They are not two, not different, or not of one type.

    Examples:
        >>> read_labels(["no", "yes"]).tolist()
        ['no', 'yes']
    """
    if labels is None:
        raise ParameterError.required(
            "labels", "both must be declared: which of them occur in y is private",
            "For example [0, 1].",
        )  # fmt: skip
    ordered = isinstance(labels, (list, tuple)) or (
        isinstance(labels, np.ndarray) and labels.ndim == 1
    )
    listed: list[Any] = list(labels) if ordered else []  # type: ignore[call-overload]
    text = all(isinstance(one, str) for one in listed)
    number = all(isinstance(one, (bool, int, float, np.generic)) for one in listed)
    if not (text or number) or len(listed) != 2 or listed[0] == listed[1]:
        raise ParameterError(
            "labels", labels, "it must be a list of two different labels, both numbers or both "
            "text. Only binary classification is supported",
            "For example [0, 1].",
        )  # fmt: skip
    return np.asarray(listed)


def is_table(X: object) -> bool:
    """Whether X is an Ibis table, which stays in its engine."""
    ibis = sys.modules.get("ibis")
    return ibis is not None and isinstance(X, ibis.Table)


def _column_name(table: Any, y: object) -> str:
    if isinstance(y, str) and y in table.columns:
        return y
    raise ParameterError(
        "y", y if isinstance(y, str) else f"<{type(y).__name__}>",
        "X is an Ibis table, so it must be the name of its column of labels",
        f"The table has {', '.join(table.columns)}.",
    )  # fmt: skip


def _read_rows(schema: Schema, X: Any, y: Any, labels: NDArray[Any]) -> MemoryRows:
    """Rows in memory, as cells."""
    if isinstance(y, str):
        raise ParameterError(
            "y", y, "X is no Ibis table, so it must have a label for each row",
            f"For example X[{y!r}].",
        )  # fmt: skip
    codes = schema.codes(X)
    given = read_column(y, "y")
    if given.ndim != 1:
        raise DataError("y should be a 1d array, one label per example.")
    if len(given) != codes.shape[1]:
        raise DataError("X and y have different numbers of rows.")
    if not len(given):
        raise DataError("Found array with 0 sample(s): X has no rows.")
    first, second = (np.asarray(given == label, np.bool_) for label in labels)
    if not (first | second).all():
        raise DataError("A label in y is not among the declared labels.")
    if max(column.cells for column in schema.columns) <= 1 << 8:
        codes = codes.astype(np.uint8)  # half the memory to go through
    return MemoryRows(codes, second)


def _title(part: Part, schema: Schema) -> str:
    return " × ".join(schema.names[feature] for feature in part.features)


def _cells(part: Part, schema: Schema) -> list[str]:
    """The entries of a table in words, in their order."""
    told = [""]
    for feature, groups in zip(part.features, part.groups, strict=True):
        column = schema.columns[feature]
        each = [_group(column, groups, number) for number in range(max(groups) + 1)]
        told = [f"{before} and {after}" if before else after for before in told for after in each]
    return told


def _group(column: Any, groups: Sequence[int], number: int) -> str:
    """Cells that count together, in words."""
    cells = [cell for cell, group in enumerate(groups) if group == number]
    if len(cells) == 1:
        return str(column.describe(cells[0]))
    if not column.ordered:
        return " or ".join(str(column.describe(cell)) for cell in cells)
    return join_words(str(column.describe(cells[0])), str(column.describe(cells[-1])))


def join_words(first: str, last: str) -> str:
    """The words for all cells from one to another.

    Examples:
        >>> join_words("age < 20", "30 <= age < 40"), join_words("20 <= age < 30", "age >= 60")
        ('age < 40', 'age >= 20')
        >>> join_words("20 <= age < 30", "30 <= age < 40")
        '20 <= age < 40'
    """
    low, _, after = first.partition(" <= ")
    name = (after or first).rpartition(" < ")[0]
    high = last.rpartition(" < ")[2] if " < " in last else None
    if not after:
        return f"{name} < {high}"
    return f"{name} >= {low}" if high is None else f"{low} <= {name} < {high}"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
