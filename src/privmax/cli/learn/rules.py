"""One rule of a class: what `privmax learn --hypotheses CLASS` releases."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privmax.cli.examples import Examples, Label, read_examples
from privmax.cli.inputs import Input
from privmax.cli.learn.bounds import DeclaredColumns
from privmax.cli.learn.job import LearnJob, refuse_alone
from privmax.errors import DataError, ParameterError, PrivacyWarning
from privmax.ledger import Charge
from privmax.ledger.events import ROW
from privmax.privacy import ADD_REMOVE, Privacy
from privmax.sources.conditions import Condition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from privmax.learning import Hypothesis, HypothesisClass, Scores, Shape
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


@dataclass(frozen=True)
class RuleClass:
    """The options for the class of hypotheses."""

    name: str
    declared: DeclaredColumns
    literals: int | None

    def check(self, features: Sequence[str] | None) -> None:
        """Refuse what is wrong whatever the data, before that is read."""
        if self.literals is not None and self.name not in _BITS:
            raise ParameterError(
                "literals", self.literals, f"only {' and '.join(_BITS)} take it", "Leave it out."
            )
        self.declared.check(needed=self.name not in _BITS)
        if features is not None:
            self.of(features)

    def fits(self, read: Examples) -> None:
        """Refuse data that this class cannot be meant for."""
        refuse_alone(read)
        bounded = self.declared.low or self.declared.schema is not None
        if not bounded and not ((read.X == 0) | (read.X == 1)).all():
            raise DataError(
                "Without --low and --high every feature must be 0 or 1, and FILE has other values. "
                "Give both bounds as public numbers, not computed from the data."
            )

    def of(self, features: Sequence[str]) -> HypothesisClass:
        from privmax import learning

        options: dict[str, Any] = {
            "cells": self.declared.cells,
            "literals": self.literals,
            "schema": self.declared.schema,
        }
        options = {option: value for option, value in options.items() if value is not None}
        if self.declared.low:
            options["low"], options["high"] = self.declared.ends(features)
        made: HypothesisClass = getattr(learning, CLASSES[self.name])(**options)
        return made


class RuleJob(LearnJob):
    """A rule to be learned: the one of a class that labels the most rows correctly."""

    def __init__(
        self,
        data: Input,
        place: str | None,
        label: str,
        labels: Sequence[Label],
        columns: Sequence[str] | None,
        options: Mapping[str, Any],
        rules: RuleClass,
    ) -> None:
        super().__init__(data, place, label, labels, columns, options)
        self._rules = rules
        self._model: Named | None = None

    def words(self, release: Release) -> list[str]:
        """Return the released rule, line by line; or none."""
        from privmax.learning.rules import describe_rule

        rule = self._rule(release)
        return [] if rule is None else describe_rule(rule, self._label)

    def fields(self, release: Release) -> dict[str, object]:
        """Return the released rule as JSON."""
        assert self._model is not None
        schema = self._rules.declared.schema
        return {
            "rule": self._rule(release),
            "words": "; ".join(self.words(release)) or None,
            "label": self._label,
            "labels": self._labels,
            "features": self._model.features,
            **({} if schema is None else {"schema": schema.to_dict()}),
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

    def _read(self) -> Examples:
        columns = self._rules.declared.schema or self._columns
        examples = read_examples(self._data, columns, self._label, self._labels)
        self._rules.fits(examples)
        return examples

    def _least(self) -> Charge:
        # `auto` chooses by the size of the class, and so by the columns, at this cost or more.
        from privmax.best_items import BestItems

        mechanism, unit = self._options.get("mechanism"), self._options["unit"] or ROW
        if mechanism is not None:
            return BestItems(given=mechanism, unit=unit).charge()
        neighbors = self._options["neighbors"] or ADD_REMOVE
        return Charge(Privacy(self._options["epsilon"]), neighbors=neighbors, unit=unit)

    def _fit(
        self, columns: Sequence[str], read: Callable[[], Examples], request: Request | None
    ) -> Release:
        from privmax.learning import PrivateERM

        self._model = model = self._name(columns)

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

    def _name(self, columns: Sequence[str]) -> Named:
        """Return the class of rules with all that tells this question from others."""
        named = self._rules.of(columns), self._label, tuple(columns)
        where = None if self._data.where is None else str(Condition.of(self._data.where))
        dialect = self._data.dialect
        if dialect.delimiter is not None or dialect.encoding is not None:
            return NamedText(*named, where, dialect.delimiter, dialect.encoding)
        return Named(*named) if where is None else NamedSome(*named, where)

    def _rule(self, release: Release) -> Any:
        from privmax.learning.rules import write_rule

        assert self._model is not None
        if release.item is None:
            return None
        return write_rule(release.item, self._model.features, self._labels)


@dataclass(frozen=True)
class Named:
    """A class of hypotheses with the names of the columns it is about.

    With them a ledger tells a request for other columns from this one. It records the names of this
    class and its subclasses, so they never change.
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


@contextmanager
def _without_warning() -> Iterator[None]:
    """Without the warning of an empty release: the answer says it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PrivacyWarning)
        yield
