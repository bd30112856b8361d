"""What is run of the public names, and which of them touch no data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from leaks import faults
from leaks.child import Evidence
from leaks.field import (
    BAD,
    BEST,
    CODES,
    DEEP,
    FIRST,
    FLIPPED,
    HIGH,
    NEXT,
    PLAIN,
    RARE,
    SCORES,
    SECOND,
    Field,
    baskets,
    examples,
)

MODULES = (
    "privmax",
    "privmax.itemsets",
    "privmax.learning",
    "privmax.ledger",
    "privmax.markers",
    "privmax.report",
)
"""Where public names are listed."""

COST = {"epsilon": 1, "delta": "1e-6"}


@dataclass
class Scene:
    """What a function is run on.

    situation   one of `faults.SITUATIONS`
    ledger      the ledger that pays; None: nothing is charged
    """

    field: Field
    situation: str
    ledger: Any
    evidence: Evidence
    folder: Path
    subject: Subject

    @property
    def is_bad(self) -> bool:
        return self.situation == faults.BAD_DATA

    @property
    def pay(self) -> dict[str, Any]:
        """The argument that charges the ledger."""
        return {} if self.ledger is None else {"ledger": self.ledger.request("r1")}

    def file(self, name: str) -> str:
        """The path of a file, or of its twin with a bad cell."""
        return str(getattr(self.field, f"bad{name}" if self.is_bad else name))


@dataclass(frozen=True)
class Subject:
    """What is run.

    names       the public names that it runs
    run         runs them; what it returns is searched
    is_private  whether what it returns is private, by its documentation: its `repr` is searched
    charges     whether a ledger can pay for it
    fails       whether bad data makes an error
    draws       whether it needs random bits
    """

    names: tuple[str, ...]
    run: Callable[[Scene], Any]
    is_private: bool = False
    charges: bool = True
    fails: bool = True
    draws: bool = True


SUBJECTS: dict[str, Subject] = {}


def subject(*names: str, **options: Any) -> Callable[[Callable[[Scene], Any]], Any]:
    """Declare what a function of this file runs."""

    def note(run: Callable[[Scene], Any]) -> Callable[[Scene], Any]:
        SUBJECTS[run.__name__.removeprefix("_").replace("_", " ")] = Subject(names, run, **options)
        return run

    return note


# Selections


@subject("privmax.select", "privmax.Release")
def _select_scores(scene: Scene) -> Any:
    import privmax

    data: dict[Any, Any] = {**SCORES, BAD: BAD} if scene.is_bad else dict(SCORES)
    return privmax.select(data, **COST, counts="0.00001", **scene.pay)


@subject("privmax.select", "privmax.Universe")
def _select_closed_list(scene: Scene) -> Any:
    import privmax

    universe = privmax.Universe.of([BEST, NEXT, PLAIN, RARE])
    data: dict[Any, Any] = {**SCORES, BAD: 1} if scene.is_bad else dict(SCORES)
    return privmax.select(data, epsilon=1, k=2, ranked=True, universe=universe, **scene.pay)


@subject("privmax.select")
def _select_frame(scene: Scene) -> Any:
    import pandas as pd

    import privmax

    scores: list[Any] = list(SCORES.values())
    if scene.is_bad:
        scores[2] = BAD
    frame = pd.DataFrame({"item": list(SCORES), "score": scores})
    return privmax.select(frame, item="item", score="score", k=2, **COST, **scene.pay)


@subject("privmax.select")
def _select_grid(scene: Scene) -> Any:
    import privmax

    data: dict[Any, Any] = {label: score + HIGH for label, score in SCORES.items()}
    if scene.is_bad:
        data[BAD] = float("nan")
    return privmax.select(
        data,
        epsilon=1,
        delta="1e-15",  # so much noise that six digits of a noisy score are not right by chance
        counts="0.00000001",
        **scene.pay,
        scores=privmax.Scores(sensitivity="0.5", neighbors="replace"),
    )


@subject("privmax.select")
def _select_score_file(scene: Scene) -> Any:
    import privmax

    return privmax.select(
        scene.file("scores_csv"), item="item", score="score", k=2, **COST, **scene.pay
    )


@subject("privmax.select")
def _select_json_lines(scene: Scene) -> Any:
    import privmax

    return privmax.select(scene.file("rows_jsonl"), item="item", score="score", **COST, **scene.pay)


@subject("privmax.select")
def _select_parquet(scene: Scene) -> Any:
    import privmax

    return privmax.select(
        scene.file("log_parquet"), item="query", user="person", counts="0.001", **COST, **scene.pay
    )


@subject("privmax.select")
def _select_weighted(scene: Scene) -> Any:
    import privmax

    columns = privmax.Columns("query", "person", weight="weight", bound=3, where="weight >= 0")
    return privmax.select(scene.file("log_csv"), columns=columns, **COST, **scene.pay)


@subject("privmax.select", "privmax.GroupedRelease")
def _select_groups(scene: Scene) -> Any:
    import privmax

    return privmax.select(
        scene.file("log_csv"), item="query", user="person", by="weight", counts="0.001",
        **COST, **scene.pay,
    )  # fmt: skip


# Keys


@subject("privmax.keys", "privmax.KeysRelease")
def _keys_of_a_file(scene: Scene) -> Any:
    import privmax

    return privmax.keys(
        scene.file("log_parquet"), item="query", user="person", counts="0.001", other=True,
        **COST, **scene.pay,
    )  # fmt: skip


# Itemsets, markers, models


@subject("privmax.top_itemsets", "privmax.itemsets", "privmax.itemsets.top_itemsets",
         "privmax.itemsets.ItemsetRelease")  # fmt: skip
def _itemsets_of_lists(scene: Scene) -> Any:
    import privmax

    rows: list[Any] = baskets()
    if scene.is_bad:
        rows[DEEP] = [BAD, {BAD}]
    return privmax.top_itemsets(rows, **COST, supports="0.001", rules="0.001", **scene.pay)


@subject("privmax.top_itemsets", "privmax.itemsets.GroupedItemsetRelease")
def _itemsets_of_groups(scene: Scene) -> Any:
    import privmax

    return privmax.top_itemsets(
        scene.file("log_csv"), basket="person", item="query", user="person", by="weight", size=1,
        supports="0.001", **COST, **scene.pay,
    )  # fmt: skip


@subject("privmax.top_itemsets")
def _itemsets_of_a_file(scene: Scene) -> Any:
    import privmax

    return privmax.top_itemsets(scene.file("baskets_dat"), size="1-2", k=2, **COST, **scene.pay)


@subject("privmax.top_itemsets")
def _itemsets_of_a_table(scene: Scene) -> Any:
    import privmax

    return privmax.top_itemsets(
        scene.file("log_parquet"), basket="person", item="query", size=1, **COST, **scene.pay
    )


def _published(name: str) -> None:
    from privmax.itemsets import METHODS

    method = METHODS[name].__name__
    known = (f"privmax.itemsets.{method}", "privmax.itemsets.METHODS")

    def run(scene: Scene) -> Any:
        import privmax

        rows: list[Any] = [[0, 1]] * 900 + [[1, 2]] * 400
        rows += [[CODES[0]]] if scene.is_bad else []
        made = METHODS[name](epsilon=1)
        found = privmax.top_itemsets(rows, size=2, items=5, mechanism=made, **scene.pay)
        return made, found

    SUBJECTS[f"published {name}"] = Subject(known, run)


@subject("privmax.markers", "privmax.markers.top_markers")
def _markers(scene: Scene) -> Any:
    import numpy as np

    from privmax.markers import top_markers

    counts = np.array([[FIRST, SECOND], [FIRST - 30, SECOND + 2000], [FLIPPED, FLIPPED + 30]])
    if scene.is_bad:
        counts[2, 0] = CODES[0]
    return top_markers(counts, cases=30_000, controls=30_000, epsilon=1, **scene.pay)


@subject("privmax.select_model", "privmax.learning.select_model")
def _models(scene: Scene) -> Any:
    import privmax

    X, y = examples()
    models = {  # names of models are public
        "above 50": lambda rows: (rows[:, 0] > 50).astype(int),
        "above 90": lambda rows: (rows[:, 0] > 90).astype(int),
    }
    if scene.is_bad:
        y = y.astype(object)
        y[DEEP] = BAD
    return privmax.select_model(models, X, y, epsilon=1, **scene.pay)


@subject("privmax.maximize")
def _maximum(scene: Scene) -> Any:
    import privmax

    data = [BEST] * FIRST + [NEXT] * SECOND + ([BAD] if scene.is_bad else [])

    def share(item: str, rows: list[str]) -> Any:
        return BAD if rows[-1] == BAD else rows.count(item) / len(rows)

    return privmax.maximize(share, [BEST, NEXT], data, epsilon=1, **scene.pay)


@subject("privmax.learning.validate")
def _validation(scene: Scene) -> Any:
    from privmax.learning import validate
    from privmax.learning.validation import Stability

    X, y = examples()

    def score(model: Any, rows: Any, labels: Any) -> float:
        if scene.is_bad:
            raise ValueError(f"{BAD} {rows[0, 0]}")
        return float(model)

    return validate(
        {"first": lambda *_: HIGH / 100, "second": lambda *_: 0.0},
        (X[:30_000], y[:30_000]), (X[30_000:], y[30_000:]), score=score,
        stability=Stability(training=0.001, validation=0.001), epsilon=1, **scene.pay,
    )  # fmt: skip


# Learners


def _schema() -> Any:
    from privmax.learning import Category, Number, Schema

    return Schema(age=Number(0, 100, cells=4), visits=Category([0, 1, 2, 3, 4, 5, 6]))


def _schema_of_kinds() -> Any:
    from privmax.learning import Date, Flag, Schema

    bounds = "1970-01-01", "1970-01-02"
    return Schema(age=Flag(missing=True), visits=Date(*bounds, cells=4, missing=True))


def _rows(scene: Scene) -> tuple[Any, Any]:
    X, y = examples()
    if scene.is_bad:
        X, y = X.astype(object), y.copy()
        X[DEEP, 0] = BAD
    return X, y


def _fitted(learner: Any, scene: Scene) -> Any:
    """A learner after its fit, and what sklearn makes of it."""
    from sklearn.base import clone

    learner.fit(*_rows(scene))
    return learner, clone(learner), getattr(learner, "release_", None)


@subject("privmax.PrivateERM", "privmax.learning", "privmax.learning.PrivateERM",
         "privmax.learning.Stumps")  # fmt: skip
def _stumps(scene: Scene) -> Any:
    from privmax.learning import PrivateERM, Stumps

    rules = Stumps(low=0, high=100, cells=4)
    learner = PrivateERM(rules, epsilon=1, labels=[0, 1], verbose=True, **scene.pay)
    return _fitted(learner, scene)


@subject("privmax.learning.Points", "privmax.learning.HashedPoints")
def _points(scene: Scene) -> Any:
    from privmax.learning import HashedPoints, Points, PrivateERM

    X, y = _rows(scene)
    rules = [Points(1000), HashedPoints(domain=1000)]
    fitted = []
    for one in rules[:1] if scene.ledger is not None else rules:  # one request pays for one fit
        learner = PrivateERM(one, epsilon=1, labels=[0, 1], **scene.pay).fit(X[:, :1], y)
        fitted.append((learner, learner.release_))
    return fitted


@subject("privmax.learning.Trees")
def _trees(scene: Scene) -> Any:
    from privmax.learning import PrivateERM, Trees

    rules = Trees(low=0, high=100, cells=4)
    return _fitted(PrivateERM(rules, epsilon=1, labels=[0, 1], **scene.pay), scene)


@subject("privmax.learning.Date", "privmax.learning.Flag")
def _kinds(scene: Scene) -> Any:
    from privmax.learning import PrivateERM, Stumps

    rules = Stumps(schema=_schema_of_kinds())
    return _fitted(PrivateERM(rules, epsilon=1, labels=[0, 1], **scene.pay), scene)


@subject("privmax.learning.Conjunctions", "privmax.learning.Disjunctions",
         "privmax.learning.Category", "privmax.learning.Number",
         "privmax.learning.Schema")  # fmt: skip
def _conjunctions(scene: Scene) -> Any:
    from privmax.learning import Conjunctions, Disjunctions, PrivateERM

    made = []
    for kind in (Conjunctions, Disjunctions):
        learner = PrivateERM(kind(2, schema=_schema()), epsilon=1, labels=[0, 1], **scene.pay)
        made += _fitted(learner, scene)
        scene.ledger = None
    return made


@subject("privmax.learning.LinearGrid", "privmax.learning.HypothesisClass",
         "privmax.learning.Hypothesis")  # fmt: skip
def _linear(scene: Scene) -> Any:
    from privmax.learning import LinearGrid, PrivateERM

    rules = LinearGrid([[1, 0], [0, 1]], low=0, high=100)
    learner = PrivateERM(rules, epsilon=1, labels=[0, 1], **scene.pay)
    return *_fitted(learner, scene), learner.hypothesis_


@subject("privmax.learning.Explicit")
def _explicit(scene: Scene) -> Any:
    import numpy as np

    from privmax.learning import Explicit, PrivateERM

    X, y = _rows(scene)
    said = np.column_stack([X[:, 0] if scene.is_bad else (X[:, 0] > 50).astype(int), y])
    learner = PrivateERM(Explicit(), epsilon=1, labels=[0, 1], **scene.pay).fit(said, y)
    return learner, learner.release_


@subject("privmax.learning.Counts", "privmax.learning.Scores", "privmax.learning.Shape",
         is_private=True, charges=False, draws=False)  # fmt: skip
def _counts(scene: Scene) -> Any:
    from privmax.learning import Shape, Stumps

    X, y = _rows(scene)
    return [Stumps(low=0, high=100, cells=4).score(X, y, Shape(features=2, labels=2))]


@subject("privmax.PrivateGAM", "privmax.learning.PrivateGAM")
def _additive(scene: Scene) -> Any:
    from privmax.learning import PrivateGAM

    learner = PrivateGAM(_schema(), 1, 1e-6, labels=[0, 1], rounds=3, **scene.pay)
    return _fitted(learner, scene)


@subject("privmax.PrivateRegressor", "privmax.learning.PrivateRegressor")
def _regressor(scene: Scene) -> Any:
    from privmax.learning import PrivateRegressor

    options = {"epsilon": 1, "delta": 1e-6, "targets": (0, 1), "rounds": 3, "intervals": True}
    return _fitted(PrivateRegressor(_schema(), **options, **scene.pay), scene)


@subject("privmax.PrivateClassifier", "privmax.learning.PrivateClassifier")
def _classifier(scene: Scene) -> Any:
    from privmax.learning import PrivateClassifier

    options = {"epsilon": 1, "delta": 1e-6, "labels": [0, 1]}
    return _fitted(PrivateClassifier(_schema(), **options, **scene.pay), scene)


@subject("privmax.learning.PrivateTree")
def _private_tree(scene: Scene) -> Any:
    from privmax.learning import PrivateTree

    return _fitted(PrivateTree(_schema(), 1, labels=[0, 1], depth=2, **scene.pay), scene)


@subject("privmax.learning.PrivateSearch")
def _search(scene: Scene) -> Any:
    from privmax.learning import PrivateERM, PrivateSearch, Stumps

    learner = PrivateERM(Stumps(low=0, high=100, cells=2), labels=[0, 1])
    search = PrivateSearch(learner, {"hypotheses__cells": [2, 4]}, epsilon=1, runs=3, **scene.pay)
    return _fitted(search, scene)


@subject("privmax.learning.StableSelector")
def _stable_columns(scene: Scene) -> Any:
    from privmax.learning import StableSelector

    return _fitted(StableSelector(size=1, **COST, **scene.pay), scene)


@subject("privmax.learning.MarginalSelector")
def _marginal_columns(scene: Scene) -> Any:
    from privmax.learning import MarginalSelector

    bounds = {"low": 0, "high": 100, "label_low": 0, "label_high": 1}
    return _fitted(MarginalSelector(1, epsilon=1, **bounds, **scene.pay), scene)


# Mechanisms, on profiles


def _profile(scene: Scene, **options: Any) -> Any:
    from privmax import Profile

    levels: list[Any] = [(score, 1) for score in SCORES.values()]
    return Profile([*levels, (BAD, 1)] if scene.is_bad else levels, **options)


def _mechanism(name: str) -> None:
    from privmax.mechanisms.registry import MECHANISMS, build

    known = (f"privmax.{MECHANISMS[name].name}", "privmax.Profile")

    def run(scene: Scene) -> Any:
        from privmax.choice import draw_outcomes
        from privmax.noise.coins import SYSTEM

        options: dict[str, Any] = {"epsilon": 1, **MECHANISMS[name].requires}
        if "delta" in MECHANISMS[name].parameters:
            options["delta"] = "1e-6"
        made = build(name, **options)
        scene.evidence.show(made)
        profile = _profile(scene, universe=None if MECHANISMS[name].abstains else 1000)
        drawn = draw_outcomes(made, profile, SYSTEM)
        return [made, profile, profile.window(3), *drawn]

    SUBJECTS[f"mechanism {name}"] = Subject(known, run, is_private=True, charges=False)


@subject("privmax.NoisyMaximum", "privmax.AboveThreshold", "privmax.DistanceTest",
         "privmax.ProposeTestRelease", "privmax.MaxOfTruncated", "privmax.RestrictedExponential",
         is_private=True, charges=False)  # fmt: skip
def _building_blocks(scene: Scene) -> Any:
    import privmax
    from privmax.mechanisms.above_threshold import Run
    from privmax.noise.coins import SYSTEM

    profile = _profile(scene)
    window = profile.window(30)
    made = [
        privmax.NoisyMaximum(epsilon=1),
        privmax.AboveThreshold(epsilon=1, monotone=True),
        privmax.DistanceTest(epsilon=1, delta=1e-6),
        privmax.ProposeTestRelease(epsilon=1, delta=1e-6, bound=3),
        privmax.MaxOfTruncated(epsilon=1, delta=1e-6, near=3),
        privmax.RestrictedExponential(epsilon=1, near=3),
    ]
    made[0].draw(profile, SYSTEM)
    most = next(iter(SCORES.values()))
    run = Run(0, 3, lambda place: most, lambda place: most)
    made[1].draw([run], SYSTEM)
    made[2].draw(FIRST, SYSTEM)
    made[3].draw(FIRST, SECOND, SYSTEM)
    outcomes = [made[4].draw(window, SYSTEM), made[5].draw(window, SYSTEM)]
    return [*made, window, run, *outcomes]


@subject("privmax.law", "privmax.compare", "privmax.Comparison", is_private=True, charges=False,
         draws=False)  # fmt: skip
def _laws(scene: Scene) -> Any:
    import privmax
    from privmax import NestedMargin, Profile

    data: dict[Any, Any] = {**SCORES, BAD: BAD} if scene.is_bad else dict(SCORES)
    known = NestedMargin(**COST).law(Profile([(score, 1) for score in SCORES.values()]))
    privmax.law(data, mechanism="nested-margin", **COST)
    compared = privmax.compare(data, mechanisms=["nested-margin", "gap-test"], **COST)
    return [known, compared] if not scene.is_bad else []


# The ledger


@subject("privmax.Ledger", "privmax.ledger.Ledger", "privmax.ledger.Reservation",
         "privmax.ledger.Charge", "privmax.ledger.Event", "privmax.ledger.Fault")  # fmt: skip
def _reservation(scene: Scene) -> Any:
    """An answer that is recorded is released; one that cannot be written is not."""
    from privmax import Privacy
    from privmax.ledger import Charge

    ledger = scene.ledger
    if ledger is None:
        return None
    charged = ledger.charge(Charge(Privacy("0.1"), unit="user"), {"command": "own"}, request="own")
    charged.record({"items": [object(), BEST] if scene.is_bad else [BEST]})
    scene.evidence.released += [BEST]
    shown = [ledger, charged, *ledger.history(), *ledger.verify()]
    return [*shown, ledger.request("another")]


@subject("privmax.ledger.Batch")
def _batch(scene: Scene) -> Any:
    from privmax import Privacy
    from privmax.ledger import Charge

    ledger = scene.ledger
    if ledger is None:
        return None
    with ledger.batch() as batch:
        charged = [
            batch.charge(Charge(Privacy("0.1"), unit="user"), {}, request=one) for one in "abc"
        ]
    with ledger.batch() as batch:
        for one in charged:
            batch.record(one, {"items": [object(), BEST] if scene.is_bad else [BEST]})
    scene.evidence.released += [BEST]
    return [batch, *charged, *ledger.history()]


# Pages


@subject("privmax.report.html", "privmax.report.write", "privmax.report.writable")
def _page(scene: Scene) -> Any:
    import privmax
    from privmax import report

    data: dict[Any, Any] = {**SCORES, BAD: BAD} if scene.is_bad else dict(SCORES)
    release = privmax.select(data, **COST, counts="0.00001", **scene.pay)
    page = report.html(release, unit="one user")
    report.writable("page.html")
    report.write(page, "page.html")
    return release


@subject("privmax.report.card")
def _card(scene: Scene) -> Any:
    from privmax import report
    from privmax.learning import PrivateRegressor

    options = {"epsilon": 1, "delta": 1e-6, "targets": (0, 1), "rounds": 3, "intervals": True}
    learner, copy, release = _fitted(PrivateRegressor(_schema(), **options, **scene.pay), scene)
    report.write(report.card(learner), "page.html")
    return learner, copy, release


NO_DATA = {
    "privmax.Audit": "what audit returns, which looks at invented data",
    "privmax.DYADIC": "a constant",
    "privmax.FEW": "a constant",
    "privmax.FOURFOLD": "a constant",
    "privmax.DataError": "a class of errors: those that are raised are searched",
    "privmax.ParameterError": "a class of errors: those that are raised are searched",
    "privmax.PrivmaxError": "a class of errors: those that are raised are searched",
    "privmax.PrivacyWarning": "a class of warnings: those that are given are searched",
    "privmax.Guards": "public parameters of a mechanism",
    "privmax.Stage": "public parameters of a mechanism",
    "privmax.Plan": "what plan returns, which is given no data",
    "privmax.pad_time": "waits; the releases within it are searched by themselves",
    "privmax.Privacy": "a privacy cost",
    "privmax.audit": "looks at invented data, all that is small",
    "privmax.auto": "is given no data",
    "privmax.crossover": "is given no data",
    "privmax.plan": "is given no data",
    "privmax.plan_keys": "is given no data",
    "privmax.KeyPlan": "is given no data",
    "privmax.Columns": "names of columns",
    "privmax.Groups": "names of a column and of public groups",
    "privmax.Database": "where a table is: what is read of it is searched",
    "privmax.Request": "what a release is charged to",
    "privmax.Scores": "public numbers",
    "privmax.TextFile": "where a file is: what is read of it is searched",
    "privmax.itemsets.Layout": "names of columns",
    "privmax.markers.GenotypeColumns": "names of columns",
    "privmax.ledger.RULES": "a constant",
    "privmax.ledger.Request": "what a release is charged to",
    "privmax.report.comparison": "a page about a comparison, which is for public data",
}
"""Public names that touch no private data, and why."""


def public_names() -> list[str]:
    """All that the packages list."""
    return [f"{name}.{one}" for name in MODULES for one in import_module(name).__all__]


def declare() -> None:
    """Add the mechanisms and the published methods, which are listed elsewhere."""
    from privmax.itemsets import METHODS
    from privmax.mechanisms.registry import MECHANISMS

    for name in MECHANISMS:
        _mechanism(name)
    for name in METHODS:
        _published(name)


declare()


# Within a child


@contextmanager
def prepare(job: dict[str, Any], evidence: Evidence) -> Iterator[Scene]:
    """A scene in the situation of a job."""
    chosen = SUBJECTS[job["subject"]]
    folder = Path(job["folder"])
    is_paid = job.get("paid", faults.PLAIN) is not None
    with faults.ledger(job, folder) as ledger, faults.fault(
        job["situation"], folder, is_paid=is_paid
    ):  # fmt: skip
        field = Field(Path(job["field"]))
        yield Scene(field, job["situation"], ledger, evidence, folder, chosen)


def act(scene: Scene) -> int:
    """Run it, and show what it returned."""
    made = scene.subject.run(scene)
    import sys

    sys.setprofile(None)
    scene.evidence.show(made, is_private=scene.subject.is_private)
    return 0
