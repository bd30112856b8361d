"""`privmax learn`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from privmax.cli.completion import sources
from privmax.cli.examples import Label
from privmax.cli.group import Command, Refused, refusal
from privmax.cli.inputs import Input, explain_sample, find_file
from privmax.cli.learn.apply import check_alone, predict
from privmax.cli.learn.bounds import ColumnBounds, DeclaredColumns
from privmax.cli.learn.classifier import ModelJob
from privmax.cli.learn.job import AutoJob, LearnJob
from privmax.cli.learn.rules import CLASSES, RuleClass, RuleJob
from privmax.cli.messages import describe_error
from privmax.cli.options import (
    LedgerOptions,
    delimiter_option,
    input_options,
    json_option,
    ledger_options,
    price_terms,
    rank_option,
    report_option,
    split_options,
)
from privmax.cli.passwords import hide_password, locate, without_urls
from privmax.cli.run import Output, ReleaseJob, run_job
from privmax.display import escape_text
from privmax.errors import DataError, ParameterError, PrivmaxError
from privmax.mechanisms.registry import MECHANISMS
from privmax.privacy import ADD_REMOVE, REPLACE
from privmax.sources.dialect import Dialect
from privmax.sources.places import refuse_unreadable
from privmax.sources.separated import split_line
from privmax.writing import check_file, write

if TYPE_CHECKING:
    from privmax.learning import Schema
    from privmax.release import Release

AUTO, ONE_RULE = "auto", "stumps"
"""The default, and the class of rules that it means where only a rule can be learned."""

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
    type=click.Choice([AUTO, *CLASSES]),
    default=AUTO,
    show_default=True,
    help="What is learned: see above.",
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
    help="Equal cells between the bounds. Default: auto 32, stumps 16, trees 8, others 2.",
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
@click.option(
    "--calibration",
    is_flag=True,
    help="Show in the report whether an additive model's chances come true, for 2 % of its cost.",
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
@click.option("--save", metavar="MODEL", help="Write the answer to this file, as --json prints it.")
@click.option(
    "--apply",
    metavar="MODEL",
    help="Learn nothing: print the predictions of a saved answer for FILE, as CSV.",
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
    """Release a model that predicts a column of FILE.

    FILE has one row per individual: CSV with numbers ("-" reads standard input), JSON Lines,
    Parquet or a table (--table). See privmax help inputs. What is learned:

    \b
    auto          a test, a tree or an additive model, by public facts and a noisy count of rows
    stumps        one column compared with one threshold
    trees         a test, then a stump for each outcome
    conjunctions  all of a few tests hold
    disjunctions  any of a few tests holds

    With more than two labels, or with --mechanism, --rank or --floor, auto means stumps. Thresholds
    divide the range from --low to --high into equal cells. Conjunctions and disjunctions need none
    if every column is 0 or 1. For text, categories and missing values declare the columns with
    --schema: see privmax help schema.

    The output of --apply is as private as FILE: the model is released, the rows are not.

    \b
    privmax learn sample:members --label card --labels 0,1 --low 0 --high age=120 --high 100 \\
        --epsilon 1 --save model.json
    privmax learn sample:members --apply model.json
    """
    charging, limits, settings = split_options(options)
    output = Output(as_json, report, others={"save": save})
    if apply is not None:
        try:
            check_alone(context)
            click.echo(predict(settings, apply), nl=False)
        except PrivmaxError as error:
            raise refusal(error, without_urls(explain_sample(error, settings["file"]))) from None
        return
    question = LearnOptions(**settings, save=save, charging=charging)
    run_job(question.prepare, charging, output, limits, partial(explain_sample, file=question.file))


@dataclass(frozen=True)
class LearnOptions:
    """The typed options, by name."""

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
    calibration: bool
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

    def prepare(self, output: Output) -> ReleaseJob:
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
        low, high = ColumnBounds.read("low", self.low), ColumnBounds.read("high", self.high)
        schema = None if self.schema is None else _schema(self.schema, columns, label)
        if schema is not None:
            columns = list(schema.names)
        declared = DeclaredColumns(low, high, self.cells, schema)
        name = ONE_RULE if self.hypotheses == AUTO else self.hypotheses
        rules = RuleClass(name, declared, self.literals)
        rules.check(columns)
        output.check({"FILE": origin, "--ledger": self.charging["ledger"]})
        if self.save is not None:
            check_file(self.save, "save")
        dialect = Dialect(self.delimiter, self.encoding, self.header_is_public, self.check)
        data = Input(origin, self.table, self.where, dialect)
        data.check()
        refuse_unreadable(origin, as_table=False)
        place = locate(self.file, self.table)
        question = data, place, label, labels, columns, self._terms(cost)
        rule = RuleJob(*question, rules)
        model = ModelJob(*question, declared, self.calibration)
        learned: LearnJob | AutoJob = rule
        if self._is_auto(labels):
            # A rule that was recorded has no chances to count: asked for them, it is another.
            learned = model if self.calibration else AutoJob(model, rule)
        elif self.calibration:
            raise ParameterError(
                "calibration", True, "one rule gives no chances", "Leave it out, or leave the rule "
                "to privmax: two labels, and no --hypotheses, --mechanism, --rank or --floor.",
            )  # fmt: skip
        return ReleaseJob(
            "Learning",
            learned.answer,
            "rule",
            learned.words,
            learned.fields,
            lambda release: {**self._about(release, labels), **learned.about(release)},
            more=learned.more,
            below=f"{'unit':11}each row is one individual",
            save=None if self.save is None else partial(_save, self.save),
            data=data,
        )

    def _is_auto(self, labels: Sequence[Label]) -> bool:
        """Return whether the classifier is asked: some options are about one rule only."""
        only_rules = self.mechanism != AUTO or self.rank is not None or self.floor
        return self.hypotheses == AUTO and len(labels) == 2 and not only_rules

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
            "calibration": self.calibration or None,
            "mechanism": self.mechanism,
        }
        return {
            "question": f"Which rule predicts “{self.label}” best{f' in {data}' if data else ''}?",
            "repeated": repeated,
            "asked": settings,
            "unit": "one row",
        }


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
