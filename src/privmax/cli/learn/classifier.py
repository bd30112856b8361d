"""The model that the classifier decides on: `privmax learn` releases it by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any

from privmax.cli.examples import Examples, Label, read_examples
from privmax.cli.inputs import Input
from privmax.cli.learn.bounds import DeclaredColumns
from privmax.cli.learn.job import LearnJob, refuse_alone
from privmax.ledger import Charge
from privmax.ledger.events import ROW, label
from privmax.privacy import ADD_REMOVE
from privmax.sources.conditions import Condition

if TYPE_CHECKING:
    from privmax.learning import Schema
    from privmax.learning.additive.memory import MemoryRows
    from privmax.learning.classifier.model import ClassifierModel
    from privmax.learning.classifier.question import ClassifierFit
    from privmax.learning.classifier.terms import ClassifierTerms
    from privmax.ledger.payment import Description
    from privmax.ledger.request import Request
    from privmax.release import Release

CELLS = 32
"""Equal cells between two bounds, if no number is given."""

SHOWN = 10
"""Entries of tables that are printed; --json has all."""


class ModelJob(LearnJob):
    """A model to be learned: which of several follows from public facts and a count of rows."""

    def __init__(
        self,
        data: Input,
        place: str | None,
        label: str,
        labels: Sequence[Label],
        columns: Sequence[str] | None,
        options: Mapping[str, Any],
        declared: DeclaredColumns,
        calibration: bool,
    ) -> None:
        super().__init__(data, place, label, labels, columns, options)
        self._declared, self._calibration = declared, calibration
        self._schema: Schema | None = None

    def answer(self, request: Request | None) -> Release:
        """Return the release; a cost or columns that no model can have are met before rows."""
        self._terms.check()
        if self._columns is not None:
            self._declared.as_schema(self._columns, CELLS)
        return super().answer(request)

    def words(self, release: Release) -> list[str]:
        entries = self._entries(release)
        if self._rule(release) is not None or len(entries) <= SHOWN:
            return entries
        return [*entries[:SHOWN], f"… and {len(entries) - SHOWN:,} more: --json lists all"]

    def more(self, release: Release) -> dict[str, list[str]]:
        return {} if release.item is None else {"model": [self._choice(release)]}

    def fields(self, release: Release) -> dict[str, object]:
        model: ClassifierModel | None = release.item
        made = None
        if model is not None:
            made = {"choice": self._choice(release), **model.to_json()}
        return {
            "rule": self._rule(release),
            "words": "; ".join(self._entries(release)) or None,
            "model": made,
            "label": self._label,
            "labels": self._labels,
            "features": self._known.names,
            "schema": self._known.to_dict(),
        }

    def about(self, release: Release) -> dict[str, Any]:
        from privmax.learning.learned import Learned

        first, second = self._labels
        learned = Learned(release, self._known, (first, second), self._label)
        return {"learned": learned, "question": None}

    @property
    def _known(self) -> Schema:
        assert self._schema is not None, "it is known once there is an answer"
        return self._schema

    def _choice(self, release: Release) -> str:
        from privmax.learning.classifier.model import tell_choice

        return tell_choice(release.item, self._known, self._terms)

    def _rule(self, release: Release) -> Any:
        """Return the rule as JSON; None where the model is none."""
        model: ClassifierModel | None = release.item
        return None if model is None else model.to_rule(self._known, self._labels)

    def _entries(self, release: Release) -> list[str]:
        """Return the rule, or the entries of all tables, in words."""
        from privmax.learning.rules import describe_rule

        rule, model = self._rule(release), release.item
        if rule is not None:
            return describe_rule(rule, self._label)
        return [] if model is None else list(model.tell(self._known, self._labels))

    def _read(self) -> Examples:
        columns = self._declared.schema or self._columns
        examples = read_examples(self._data, columns, self._label, self._labels)
        refuse_alone(examples)
        return examples

    def _least(self) -> Charge:
        from privmax.learning.model_fit import charge_fit

        return charge_fit(self._terms, self._unit)

    def _fit(
        self, columns: Sequence[str], read: Callable[[], Examples], request: Request | None
    ) -> Release:
        from privmax.release import answer

        question = self._question(columns)
        described = None if request is None else self._describe(question)
        rows = self._rows
        return answer(
            question, lambda stack: rows(question, read()), request, description=described
        )

    def _check(self, request: Request | None) -> Release:
        from privmax.release import check_only, refuse_strict

        refuse_strict(request)
        examples = self._read()
        question = self._question(examples.features)

        def rows(stack: ExitStack) -> MemoryRows:
            return self._rows(question, examples)

        described = None if request is None else self._describe(question)
        return check_only(question, rows, request, description=described)

    @cached_property
    def _terms(self) -> ClassifierTerms:
        from privmax.learning.classifier.terms import CalibratedTerms, ClassifierTerms

        kind = CalibratedTerms if self._calibration else ClassifierTerms
        cost = {name: self._options[name] for name in ("epsilon", "delta")}
        return kind(**cost, neighbors=self._options["neighbors"] or ADD_REMOVE)

    @property
    def _unit(self) -> str:
        unit = self._options["unit"]
        return ROW if unit is None else label("unit", unit)

    def _question(self, columns: Sequence[str]) -> ClassifierFit:
        from privmax.learning.classifier.question import ClassifierFit

        self._schema = self._declared.as_schema(columns, CELLS)
        return ClassifierFit(self._terms, self._schema, self._unit)

    def _describe(self, question: ClassifierFit) -> Description:
        """Return what a ledger writes down: other columns or rows are another request."""
        from privmax.ledger.payment import Description

        where, dialect = self._data.where, self._data.dialect
        options = {
            "schema": repr(question.schema),
            "label": self._label,
            "labels": self._labels,
            "where": None if where is None else str(Condition.of(where)),
            "delimiter": dialect.delimiter,
            "encoding": dialect.encoding,
        }
        return Description("PrivateClassifier", options, place=self._place)

    def _rows(self, question: ClassifierFit, examples: Examples) -> MemoryRows:
        """Return rows as the fit counts them."""
        import numpy as np

        from privmax.learning.additive.memory import MemoryRows

        cells = examples.X.T if self._declared.schema else question.schema.codes(examples.X)
        second = self._labels[1]
        return MemoryRows(cells, np.fromiter((one == second for one in examples.y), np.bool_))
