"""`privmax learn --apply`: the predictions of what was saved, for rows of a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from privmax.cli.examples import read_examples
from privmax.cli.inputs import Input, find_file, load_json
from privmax.cli.output import busy
from privmax.errors import ParameterError
from privmax.sources.dialect import Dialect

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privmax.learning import Schema
    from privmax.learning.additive.model import AdditiveModel

APPLYING = ("file", "apply", "delimiter", "encoding", "header_is_public")
"""The options that go with --apply."""


def check_alone(context: click.Context) -> None:
    """Refuse options that --apply has no use for."""
    for option in context.command.params:
        name = str(option.name)
        is_typed = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if is_typed and name not in APPLYING:
            spelled = option.opts[0].removeprefix("--")
            raise ParameterError(
                spelled,
                context.params[name],
                "--apply takes only FILE, and what says how to read it",
                "Leave it out.",
            )


@dataclass(frozen=True)
class SavedRule:
    """A rule that --save wrote, with the schema that it is about, if there is one."""

    rule: Any
    schema: Schema | None

    def features(self) -> list[str]:
        """Return the columns that it looks at."""
        from privmax.learning.rules import list_features

        return list_features(self.rule)

    def predict(self, X: NDArray[Any]) -> list[Any]:
        """Return a label for each row, which has the columns of `features`."""
        from privmax.learning.rules import apply_rule

        columns = {name: X[:, place] for place, name in enumerate(self.features())}
        labels: list[Any] = apply_rule(self.rule, columns, len(X), self.schema).tolist()
        return labels


@dataclass(frozen=True)
class SavedTables:
    """An additive model that --save wrote, with its schema and both labels."""

    model: AdditiveModel
    schema: Schema
    labels: list[Any]

    def features(self) -> list[str]:
        """Return the columns that have a table."""
        used = sorted({feature for part in self.model.tables for feature in part.features})
        return [self.schema.names[feature] for feature in used]

    def predict(self, X: NDArray[Any]) -> list[Any]:
        """Return a label for each row, which has the columns of `features`."""
        import numpy as np

        codes = np.zeros((self.schema.features, len(X)), X.dtype)
        for place, name in enumerate(self.features()):
            codes[self.schema.names.index(name)] = X[:, place]
        return [self.labels[int(chance > 0.5)] for chance in self.model.chances(codes)]


def predict(settings: Mapping[str, Any], model: str) -> str:
    """Return a column of labels, under its name."""
    label, saved = load_model(model)
    features, schema = saved.features(), saved.schema
    some = features if schema is None or not features else schema.only(features)
    with busy("Reading"):
        dialect = Dialect(settings["delimiter"], settings["encoding"], settings["header_is_public"])
        data = Input(find_file(settings["file"]), dialect=dialect)
        data.check()
        X = read_examples(data, some, None, []).X
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([label])
    rows.writerows([one] for one in saved.predict(X))
    return text.getvalue()


def load_model(model: str) -> tuple[str, SavedRule | SavedTables]:
    """Return the label and the model that --save wrote."""
    from privmax.learning.rules import check_rule
    from privmax.learning.schema import Schema

    try:
        saved = load_json(model)
        if not isinstance(saved["label"], str):
            raise TypeError
        schema = Schema.from_dict(saved["schema"]) if "schema" in saved else None
        if saved["rule"] is None and schema is not None:
            return saved["label"], _read_tables(saved, schema)
        return saved["label"], SavedRule(check_rule(saved["rule"], schema), schema)
    except OSError as error:
        reason = f"it cannot be read ({error.strerror})"
    except (AttributeError, ValueError, KeyError, TypeError, RecursionError):
        reason = "the file has no rule"
    raise ParameterError("apply", model, reason, "Give a file that privmax learn --save wrote.")


def _read_tables(saved: Mapping[str, Any], schema: Schema) -> SavedTables:
    """Return the tables of an additive model, if they are of this schema.

    Raises:
        ValueError: They are not.
    """
    from privmax.learning.additive.model import AdditiveModel
    from privmax.learning.classifier.question import read_classifier

    model, labels = read_classifier(saved["model"], schema), saved["labels"]
    plain = isinstance(labels, list) and all(isinstance(one, (str, int, float)) for one in labels)
    if model is None or not isinstance(model.model, AdditiveModel) or not plain or len(labels) != 2:
        raise ValueError("no such model")
    return SavedTables(model.model, schema, labels)
