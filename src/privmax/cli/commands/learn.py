"""`privmax learn`."""

from __future__ import annotations

import csv
import io
import math
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from privmax.cli.completion import sources
from privmax.cli.examples import Examples, Label, read_columns, read_examples
from privmax.cli.group import Command, Refused, refusal
from privmax.cli.inputs import Input, explain_sample, find_file, load_json
from privmax.cli.messages import describe_error
from privmax.cli.options import (
    LedgerOptions,
    Limits,
    delimiter_option,
    input_options,
    json_option,
    ledger_options,
    price_terms,
    rank_option,
    report_option,
    split_ledger,
)
from privmax.cli.output import busy
from privmax.cli.passwords import hide_password, locate, without_urls
from privmax.cli.run import Job, Output, run_job
from privmax.display import escape_text
from privmax.errors import (
    DataError,
    ParameterError,
    PrivacyWarning,
    PrivmaxError,
    refuse_given,
)
from privmax.ledger import Charge
from privmax.ledger.events import ROW
from privmax.mechanisms.registry import MECHANISMS
from privmax.numbers import exact
from privmax.privacy import ADD_REMOVE, REPLACE, Privacy
from privmax.sources.conditions import Condition
from privmax.sources.dialect import Dialect
from privmax.sources.places import refuse_unreadable
from privmax.sources.separated import split_line
from privmax.writing import check_file, write

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from privmax.learning import Hypothesis, HypothesisClass, Schema, Scores, Shape
    from privmax.learning.classes.contract import Codes
    from privmax.ledger.request import Request
    from privmax.release import Release

CLASSES = {
    "stumps": "Stumps",
    "trees": "Trees",
    "conjunctions": "Conjunctions",
    "disjunctions": "Disjunctions",
}
"""Classes of privmax.learning, by what the command calls them."""

_BITS = ("conjunctions", "disjunctions")
"""Those that need no bounds where every feature is 0 or 1."""

_FITTING = [name for name, entry in MECHANISMS.items() if not {"k", "growth"} & {*entry.requires}]
"""Mechanisms that need neither k nor growth: one rule is drawn, and an example touches any number
of rules.
"""


@click.command("learn", cls=Command)
@click.argument("file", shell_complete=sources)
@click.option("--label", metavar="COLUMN", help="Column to predict.")
@click.option(
    "--labels", metavar="A,B,…", help="All possible labels; which of them occur is private."
)
@click.option(
    "--features",
    metavar="A,B,…",
    help="Columns to predict from.  [default: those of --schema, or all others]",
)
@click.option(
    "--schema",
    metavar="FILE",
    help="TOML or JSON file that declares columns and their cells, instead of --low and --high.",
)
@click.option(
    "--hypotheses",
    type=click.Choice(list(CLASSES)),
    default="stumps",
    show_default=True,
    help="Class of rules: see above.",
)
@click.option(
    "--low",
    multiple=True,
    metavar="[COLUMN=]NUMBER",
    help="Public lower bound of all features, or of one; can be repeated. Not from the data.",
)
@click.option(
    "--high", multiple=True, metavar="[COLUMN=]NUMBER", help="Public upper bound, in the same way."
)
@click.option(
    "--cells",
    type=int,
    help="Equal cells between the bounds. Default: stumps 16, trees 8, others 2.",
)
@click.option(
    "--literals",
    type=int,
    help="For conjunctions and disjunctions: the most tests in a rule.  [default: 3]",
)
@click.option(
    "--floor",
    type=int,
    default=0,
    show_default=True,
    help="Public number; rules with at most this many correct rows are treated as equal.",
)
@click.option("--epsilon", help="Privacy cost, required; decimals are exact.")
@click.option(
    "--delta",
    default="0",
    show_default=True,
    help="Probability that the guarantee fails. If unsure, leave it at 0.",
)
@click.option("--neighbors", type=click.Choice([ADD_REMOVE, REPLACE]), help="Default add-remove.")
@click.option(
    "--mechanism", type=click.Choice(["auto", *_FITTING]), default="auto", show_default=True
)
@rank_option
@click.option("--save", metavar="MODEL", help="Write the rule to this file, as --json prints it.")
@click.option(
    "--apply",
    metavar="MODEL",
    help="Learn nothing: print the predictions of a saved rule for FILE, as CSV.",
)
@delimiter_option
@input_options
@ledger_options
@report_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    report: str | None,
    as_json: bool,
    save: str | None,
    apply: str | None,
    **options: Any,
) -> None:
    """Release the rule that predicts a column of FILE best.

    FILE has one row per individual: CSV with numbers ("-" reads standard input), JSON Lines,
    Parquet, a folder of Parquet files, a pattern of such files ('rows/*.csv'), or a table of a
    database with --table. See privmax help inputs. The rule with the most correct rows is chosen
    from one of these classes:

    \b
    stumps        one column compared with one threshold
    trees         a test, then a stump for each outcome
    conjunctions  all of a few tests hold
    disjunctions  any of a few tests holds

    Thresholds divide the range from --low to --high into equal cells. Conjunctions and
    disjunctions need none if every column is 0 or 1. For text, categories and missing values
    declare the columns with --schema: see privmax help schema.

    The output of --apply is as private as FILE: the rule is released, the rows are not.

    \b
    privmax learn sample:members --label card --labels 0,1 --low 0 --high 100 --epsilon 1
    privmax learn sample:members --label card --labels 0,1 --features age,visits --low 0 \\
        --high age=120 --high visits=100 --epsilon 1 --save rule.json
    privmax learn sample:members --apply rule.json
    """
    limits: Limits = {
        "memory": options.pop("memory"),
        "temporary": options.pop("temporary"),
        "pad_time": options.pop("pad_time"),
    }
    charging, settings = split_ledger(options)
    output = Output(as_json, report, others={"save": save})
    if apply is not None:
        try:
            _check_alone(context)
            click.echo(_predict(settings, apply), nl=False)
        except PrivmaxError as error:
            raise refusal(error, without_urls(explain_sample(error, settings["file"]))) from None
        return
    question = LearnOptions(**settings, save=save, charging=charging)
    run_job(question.prepare, charging, output, limits, partial(explain_sample, file=question.file))


@dataclass(frozen=True)
class LearnOptions:
    """What was typed, by the names of the options."""

    file: str
    label: str | None
    labels: str | None
    features: str | None
    schema: str | None
    hypotheses: str
    low: tuple[str, ...]
    high: tuple[str, ...]
    cells: int | None
    literals: int | None
    floor: int
    epsilon: str | None
    delta: str
    neighbors: str | None
    mechanism: str
    rank: int | None
    table: str | None
    where: str | None
    delimiter: str | None
    encoding: str | None
    header_is_public: bool
    check: bool
    save: str | None
    charging: LedgerOptions

    def prepare(self, output: Output) -> Job:
        origin = find_file(self.file)
        label = _require(
            "label",
            self.label,
            "it names the column to predict",
            "For example --label card.",
        )
        labels = _labels(self.labels)
        columns = None if self.features is None else _columns(self.features, label)
        cost = self._price()
        low, high = _Bounds.read("low", self.low), _Bounds.read("high", self.high)
        schema = None if self.schema is None else _schema(self.schema, columns, label)
        if schema is not None:
            columns = list(schema.names)
        rules = _Class(self.hypotheses, low, high, self.cells, self.literals, schema)
        rules.check(columns)
        output.check({"FILE": origin, "--ledger": self.charging["ledger"]})
        if self.save is not None:
            check_file(self.save, "save")
        dialect = Dialect(self.delimiter, self.encoding, self.header_is_public, self.check)
        data = Input(origin, self.table, self.where, dialect)
        data.check()
        refuse_unreadable(origin, as_table=False)
        place = locate(self.file, self.table)
        lesson = LearnJob(data, place, label, labels, columns, rules, self._terms(cost))
        return Job(
            "Learning",
            lesson.answer,
            "rule",
            lesson.words,
            lesson.fields,
            lambda release: {**self._about(release, labels), **lesson.about(release)},
            below=f"{'unit':11}each row is one individual",
            save=None if self.save is None else partial(_save, self.save),
            data=data,
        )

    def _price(self) -> dict[str, Any]:
        epsilon = _require("epsilon", self.epsilon, "", "For example --epsilon 1.")
        return price_terms(
            self.mechanism, self.rank, epsilon=epsilon, delta=self.delta, neighbors=self.neighbors
        )

    def _terms(self, cost: dict[str, Any]) -> dict[str, Any]:
        """Parameters of the estimator."""
        options = {"floor": self.floor, "unit": self.charging["unit"]}
        return {**options, **({"mechanism": cost["given"]} if "given" in cost else cost)}

    def _about(self, release: Release, labels: Sequence[Label]) -> dict[str, Any]:
        """Return what a page about the release is to say of it."""
        repeated = release.recorded is not None
        data = None if repeated else hide_password(self.file)  # not of what is there now
        settings = {
            "data": data,
            "dataset": self.charging["dataset"],
            "table": self.table and hide_password(self.table),
            "where": self.where,
            "delimiter": self.delimiter,
            "encoding": self.encoding,
            "label": self.label,
            "labels": labels,
            "features": self.features,
            "schema": self.schema,
            "hypotheses": self.hypotheses,
            "low": self.low or None,
            "high": self.high or None,
            "cells": self.cells,
            "literals": self.literals,
            "floor": self.floor or None,
            "mechanism": self.mechanism,
        }
        return {
            "question": f"Which rule predicts “{self.label}” best{f' in {data}' if data else ''}?",
            "repeated": repeated,
            "asked": settings,
            "unit": "one row",
        }


class LearnJob:
    """A rule to be learned.

    data       where the rows are
    place      the same for a ledger
    label      the column to predict, and `labels` all it can hold
    columns    to predict it from; None: all others, which are known when the file is read
    rules      the class of rules
    options    of the estimator
    """

    def __init__(
        self,
        data: Input,
        place: str | None,
        label: str,
        labels: Sequence[Label],
        columns: Sequence[str] | None,
        rules: _Class,
        options: Mapping[str, Any],
    ) -> None:
        self._data, self._place, self._label, self._labels = data, place, label, labels
        self._columns, self._rules, self._options = columns, rules, options
        self._model: Named | None = None

    def answer(self, request: Request | None) -> Release:
        """Return the release.

        Where columns are not named, their names are read first, when the budget allows what the
        release will cost at least.
        """
        if self._data.dialect.check:
            return self._check(request)
        read, columns = self._read, self._columns
        if columns is None:
            if request is not None and request.payer.strict:
                raise ParameterError.required(
                    "features", "a strict ledger is charged before FILE is read, so the "
                    "columns must be named",
                    "For example --features age,visits.",
                )  # fmt: skip
            if request is not None and self._ask(request):
                columns = read_columns(self._data, self._label)
            else:
                examples = self._read()
                read, columns = (lambda: examples), examples.features
        self._model = self._name(columns)
        return self._fit(self._model, read, request)

    def _name(self, columns: Sequence[str]) -> Named:
        """Return the class of rules with all that tells this question from others."""
        named = self._rules.of(columns), self._label, tuple(columns)
        where = None if self._data.where is None else str(Condition.of(self._data.where))
        dialect = self._data.dialect
        if dialect.delimiter is not None or dialect.encoding is not None:
            return NamedText(*named, where, dialect.delimiter, dialect.encoding)
        return Named(*named) if where is None else NamedSome(*named, where)

    def _check(self, request: Request | None) -> Release:
        """Read the rows and see that they fit, and the cost the ledger; nothing is charged."""
        from privmax.best_items import BestItems
        from privmax.learning.classes.contract import Shape
        from privmax.learning.estimator import PrivateERM, describe_fit
        from privmax.release import check_only, refuse_strict
        from privmax.universe import Universe

        refuse_strict(request)
        features = self._read().features
        model = self._name(features)
        size = model.size(Shape(len(features), len(self._labels)))
        learner = PrivateERM(model, labels=self._labels, ledger=request, **self._options)
        description = describe_fit(learner, len(features), self._place)
        options = {name: one for name, one in self._options.items() if name != "floor"}
        options["unit"] = options["unit"] or ROW
        if "mechanism" in options:
            options["given"] = options.pop("mechanism")
        question = BestItems(**options, universe=Universe(size))
        return check_only(question, None, request, description=description)

    def words(self, release: Release) -> list[str]:
        """Return the released rule, line by line; or none."""
        from privmax.learning.rules import describe_rule

        rule = self._rule(release)
        return [] if rule is None else describe_rule(rule, self._label)

    def fields(self, release: Release) -> dict[str, object]:
        """Return the released rule as JSON."""
        assert self._model is not None
        return {
            "rule": self._rule(release),
            "words": "; ".join(self.words(release)) or None,
            "label": self._label,
            "labels": self._labels,
            "features": self._model.features,
            **({} if self._rules.schema is None else {"schema": self._rules.schema.to_dict()}),
        }

    def about(self, release: Release) -> dict[str, Any]:
        """Return what a page about the release is to say of the rule and its class."""
        from privmax.learning.classes.contract import Shape
        from privmax.report.release_page import proofs_of

        assert self._model is not None
        model = self._model
        return {
            "universe": model.size(Shape(len(model.features), len(self._labels))),
            "answers": ["; ".join(self.words(release))] if release else [],
            "proofs": ["privmax help proofs/learning", *proofs_of(type(model.hypotheses))],
        }

    def _rule(self, release: Release) -> Any:
        from privmax.learning.rules import write_rule

        assert self._model is not None
        if release.item is None:
            return None
        return write_rule(release.item, self._model.features, self._labels)

    def _read(self) -> Examples:
        columns = self._rules.schema or self._columns
        examples = read_examples(self._data, columns, self._label, self._labels)
        self._rules.fits(examples)
        return examples

    def _ask(self, request: Request) -> bool:
        """Return whether the request was charged before, and refuse one that cannot fit.

        What `auto` chooses follows from the size of the class, and so from the columns: what is
        refused here costs at least this and does not fit.
        """
        from privmax.best_items import BestItems

        mechanism, unit = self._options.get("mechanism"), self._options["unit"] or ROW
        if mechanism is not None:
            charge = BestItems(given=mechanism, unit=unit).charge()
        else:
            neighbors = self._options["neighbors"] or ADD_REMOVE
            charge = Charge(Privacy(self._options["epsilon"]), neighbors=neighbors, unit=unit)
        return request.payer.ask(charge, request=request.id, account=request.account)

    def _fit(self, model: Named, read: Callable[[], Examples], request: Request | None) -> Release:
        from privmax.learning import PrivateERM

        def arrays() -> tuple[NDArray[np.float64], list[Label]]:
            examples = read()
            return examples.X, list(examples.y)

        learner = PrivateERM(model, labels=self._labels, ledger=request, **self._options)
        try:
            with _without_warning():
                learner.fit_read(len(model.features), arrays, self._place)
        except ValueError as error:
            if isinstance(error, (DataError, ParameterError)):
                raise
            raise DataError("FILE: scikit-learn takes only tables of finite numbers.") from None
        release: Release = learner.release_
        return release


@dataclass(frozen=True)
class Named:
    """A class of hypotheses with the names of the columns it is about.

    With them a ledger tells a request for other columns from this one.
    """

    hypotheses: HypothesisClass
    label: str
    features: tuple[str, ...]

    def size(self, shape: Shape) -> int:
        return self.hypotheses.size(shape)

    def score(self, X: NDArray[Any], y: Codes, shape: Shape) -> Scores:
        return self.hypotheses.score(X, y, shape)

    def hypothesis(self, number: int, shape: Shape) -> Hypothesis:
        return self.hypotheses.hypothesis(number, shape)


@dataclass(frozen=True)
class NamedSome(Named):
    """The same, learned from the rows for which a condition is true."""

    where: str


@dataclass(frozen=True)
class NamedText(Named):
    """The same, learned from a file of text that is read as was declared."""

    where: str | None
    delimiter: str | None
    encoding: str | None


@dataclass(frozen=True)
class _Bounds:
    """What --low or --high says: a number for all columns, and numbers for some."""

    option: str
    every: float | None
    some: Mapping[str, float]

    @classmethod
    def read(cls, option: str, texts: Sequence[str]) -> _Bounds:
        every: float | None = None
        some: dict[str, float] = {}
        for text in texts:
            name, equals, number = text.rpartition("=")
            known = name in some if equals else every is not None
            if known:
                raise ParameterError(
                    option, text, "the same bound is given twice", "Leave one of them out."
                )
            bound = _float(option, text, number)
            if equals:
                some[name] = bound
            else:
                every = bound
        return cls(option, every, some)

    def __bool__(self) -> bool:
        return self.every is not None or bool(self.some)

    def of(self, features: Sequence[str]) -> list[float]:
        for name, number in self.some.items():
            if name not in features:
                raise ParameterError(
                    self.option, f"{name}={number:g}", "no feature has this name",
                    "Give the name of a feature.",
                )  # fmt: skip
        missing = next(
            (name for name in features if self.every is None and name not in self.some), None
        )
        if missing is not None:
            raise ParameterError.required(
                self.option, f"the column {missing} has no such bound, which must be public "
                "and never computed from the data",
                f"Add --{self.option} {missing}=NUMBER, or --{self.option} NUMBER for all columns "
                "without one.",
            )  # fmt: skip
        return [self.some.get(name, self.every or 0.0) for name in features]


@dataclass(frozen=True)
class _Class:
    """What the options say of the class of hypotheses."""

    name: str
    low: _Bounds
    high: _Bounds
    cells: int | None
    literals: int | None
    schema: Schema | None = None

    def check(self, features: Sequence[str] | None) -> None:
        """Refuse what is wrong whatever the data, before that is read."""
        if self.schema is not None:
            bounds = {"low": self.low or None, "high": self.high or None, "cells": self.cells}
            refuse_given(
                {name: value and _plain_bounds(value) for name, value in bounds.items()},
                "--schema says it for every column",
            )
        if self.literals is not None and self.name not in _BITS:
            raise ParameterError(
                "literals", self.literals, f"{self.name} do not take it", "Leave it out."
            )
        for bound, other in ((self.low, self.high), (self.high, self.low)):
            if self.schema is not None:
                break
            if not bound and (other or self.cells is not None or self.name not in _BITS):
                raise ParameterError.required(
                    bound.option, "every feature needs a public bound. Do not compute it "
                    "from the data: that would release one person's extreme values",
                    f"Add --{bound.option} NUMBER for all columns, or --{bound.option} "
                    "COLUMN=NUMBER for each.",
                )  # fmt: skip
        if features is not None:
            self.of(features)

    def fits(self, read: Examples) -> None:
        """Refuse data that this class cannot be meant for."""
        if not read.features:
            raise DataError("FILE has no column to predict from, only the label.")
        if not self.low and self.schema is None and not ((read.X == 0) | (read.X == 1)).all():
            raise DataError(
                "Without --low and --high every feature must be 0 or 1, and FILE has other values. "
                "Give both bounds as public numbers, not computed from the data."
            )

    def of(self, features: Sequence[str]) -> HypothesisClass:
        from privmax import learning

        options: dict[str, Any] = {
            "cells": self.cells,
            "literals": self.literals,
            "schema": self.schema,
        }
        options = {option: value for option, value in options.items() if value is not None}
        if self.low:
            options |= {"low": self.low.of(features), "high": self.high.of(features)}
            for name, low, high in zip(features, options["low"], options["high"], strict=True):
                if not low < high:
                    raise ParameterError(
                        "high", f"{name}={high:g}", f"it must be above the lower bound, {low:g}",
                        "Give public bounds that cover typical values.",
                    )  # fmt: skip
        made: HypothesisClass = getattr(learning, CLASSES[self.name])(**options)
        return made


def _schema(file: str, columns: Sequence[str] | None, label: str) -> Schema:
    """Return the schema of a file, or that of some of its columns."""
    from privmax.learning.schema import Schema

    schema = Schema.from_file(file)
    schema = schema if columns is None else schema.only(columns)
    if label in schema.names:
        raise ParameterError(
            "schema", file, f"it declares the label, {label}", "Declare the other columns."
        )
    return schema


def _plain_bounds(value: object) -> object:
    if isinstance(value, _Bounds):
        return value.every if value.every is not None else dict(value.some)
    return value


def _require(option: str, value: str | None, why: str, remedy: str) -> str:
    if value is None:
        raise ParameterError.required(option, why, remedy)
    return value


def _labels(value: str | None) -> list[Label]:
    """Return the labels declared: numbers if all of them are, otherwise text."""
    if value is None:
        raise ParameterError.required(
            "labels", "all possible labels must be declared: which of them occur is private",
            "For example --labels 0,1.",
        )  # fmt: skip
    texts = [text.strip() for text in _join_values("labels", value)]
    numbers = [_numeral(text) for text in texts]
    known: list[Label] = [number for number in numbers if number is not None]
    labels = known if len(known) == len(texts) else list[Label](texts)
    if len(labels) < 2 or len(set(labels)) < len(labels) or "" in texts:
        raise ParameterError(
            "labels",
            value,
            "it must name at least two different labels",
            "For example --labels 0,1 or --labels no,yes.",
        )
    return labels


def _columns(value: str, label: str) -> list[str]:
    columns = [column.strip() for column in _join_values("features", value)]
    if not columns or len(set(columns)) < len(columns) or label in columns:
        raise ParameterError(
            "features", value, "it must name distinct columns, and not the label",
            "For example --features age,visits.",
        )  # fmt: skip
    return columns


def _join_values(option: str, value: str) -> list[str]:
    """Values with commas between them; in quotes if they hold one."""
    try:
        return split_line(value)
    except DataError:
        raise ParameterError(
            option, value, "it is not a comma-separated list", "Close its quotes."
        ) from None


def _numeral(text: str) -> int | float | None:
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        return number if math.isfinite(number := float(text)) else None
    return None


def _float(option: str, value: str, number: str) -> float:
    try:
        return float(exact(option, number))
    except (ParameterError, OverflowError):
        raise ParameterError(
            option, value, "it must be NUMBER or COLUMN=NUMBER",
            f"For example --{option} 100 or --{option} age=100.",
        ) from None  # fmt: skip


@contextmanager
def _without_warning() -> Iterator[None]:
    """Without the warning of an empty release: the answer says it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PrivacyWarning)
        yield


def _save(save: str, release: Release, shown: str) -> None:
    """All of it or nothing: what stood in the file is replaced when the new rule is complete."""
    if release.item is None:
        click.echo(f"No rule to save: {escape_text(save)} was not written.", err=True)
        return
    try:
        write(f"{shown}\n", save, "save")
    except ParameterError as error:
        again = (
            ""
            if release.request is None
            else f" Get it again at no cost with --request {shlex.quote(release.request)}."
        )
        raise Refused(
            f"{describe_error(error)} The rule above is valid and charged.{again}"
        ) from None


def _check_alone(context: click.Context) -> None:
    """Refuse options that --apply has no use for."""
    for option in context.command.params:
        name = str(option.name)
        is_typed = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if is_typed and name not in _APPLYING:
            spelled = option.opts[0].removeprefix("--")
            raise ParameterError(
                spelled,
                context.params[name],
                "--apply takes only FILE, and what says how to read it",
                "Leave it out.",
            )


_APPLYING = ("file", "apply", "delimiter", "encoding", "header_is_public")
"""What goes with --apply."""


def _predict(settings: Mapping[str, Any], model: str) -> str:
    """Return a column of labels, under its name."""
    from privmax.learning.rules import apply_rule, list_features

    saved = _load_model(model)
    schema: Schema | None = saved["schema"]
    features = list_features(saved["rule"])
    some = features if schema is None or not features else schema.only(features)
    with busy("Reading"):
        dialect = Dialect(settings["delimiter"], settings["encoding"], settings["header_is_public"])
        data = Input(find_file(settings["file"]), dialect=dialect)
        data.check()
        X = read_examples(data, some, None, []).X
    columns = {name: X[:, place] for place, name in enumerate(features)}
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([saved["label"]])
    rows.writerows([one] for one in apply_rule(saved["rule"], columns, len(X), schema).tolist())
    return text.getvalue()


def _load_model(model: str) -> dict[str, Any]:
    """Return what --save wrote."""
    from privmax.learning.rules import check_rule
    from privmax.learning.schema import Schema

    try:
        saved = load_json(model)
        if not isinstance(saved["label"], str):
            raise TypeError
        schema = Schema.from_dict(saved["schema"]) if "schema" in saved else None
        rule = check_rule(saved["rule"], schema)
        return {"label": saved["label"], "rule": rule, "schema": schema}
    except OSError as error:
        reason = f"it cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError, RecursionError):
        reason = "the file has no rule"
    raise ParameterError("apply", model, reason, "Give a file that privmax learn --save wrote.")
