"""The base of the jobs of `privmax learn`: names of columns are read when the budget allows.

`AutoJob` is the default: the classifier, unless a ledger has a rule for this request.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from privmax.cli.examples import Examples, Label, read_columns
from privmax.cli.inputs import Input
from privmax.errors import DataError, ParameterError
from privmax.ledger import Charge

if TYPE_CHECKING:
    from privmax.ledger.request import Request
    from privmax.release import Release

RULE = "PrivateERM"
"""The command that ledgers record of a rule."""


class LearnJob(ABC):
    """A prediction of a column to be learned.

    Args:
        data: Where the rows are.
        place: The same for a ledger.
        label: The column to predict, and `labels` all it can hold.
        columns: To predict it from; None: all others, which are known when the file is read.
        options: Of the estimator.
    """

    def __init__(
        self,
        data: Input,
        place: str | None,
        label: str,
        labels: Sequence[Label],
        columns: Sequence[str] | None,
        options: Mapping[str, Any],
    ) -> None:
        self._data, self._place, self._label, self._labels = data, place, label, labels
        self._columns, self._options = columns, options

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
        return self._fit(columns, read, request)

    @abstractmethod
    def words(self, release: Release) -> list[str]:
        """Return what was released, line by line; or nothing."""

    @abstractmethod
    def fields(self, release: Release) -> dict[str, object]:
        """Return it as JSON."""

    @abstractmethod
    def about(self, release: Release) -> dict[str, Any]:
        """Return what a page about the release is to say of it."""

    def more(self, release: Release) -> dict[str, list[str]]:
        """Return more lines, by name."""
        return {}

    @abstractmethod
    def _read(self) -> Examples:
        """Return the rows."""

    @abstractmethod
    def _least(self) -> Charge:
        """Return what the release costs at least, whatever the columns."""

    @abstractmethod
    def _fit(
        self, columns: Sequence[str], read: Callable[[], Examples], request: Request | None
    ) -> Release:
        """Release what is learned."""

    @abstractmethod
    def _check(self, request: Request | None) -> Release:
        """Read the rows and see that they fit, and the cost the ledger; nothing is charged."""

    def _ask(self, request: Request) -> bool:
        """Return whether the request was charged before, and refuse one that cannot fit."""
        charge = self._least()
        return request.payer.ask(charge, request=request.id, account=request.account)


class AutoJob:
    """The classifier; or the rule that was asked for when rules were the default.

    Args:
        model: Learns what the classifier decides on.
        rule: Learns a rule: what the same options meant before.
    """

    def __init__(self, model: LearnJob, rule: LearnJob) -> None:
        self._job, self._rule = model, rule

    def answer(self, request: Request | None) -> Release:
        """Return the release, or what was recorded: a request keeps the question that it had."""
        if request is not None and request.id is not None:
            charged, _ = request.payer.find(request.id)
            if charged is not None and charged.question.command == RULE:
                self._job = self._rule
        return self._job.answer(request)

    def words(self, release: Release) -> list[str]:
        return self._job.words(release)

    def fields(self, release: Release) -> dict[str, object]:
        return self._job.fields(release)

    def about(self, release: Release) -> dict[str, Any]:
        return self._job.about(release)

    def more(self, release: Release) -> dict[str, list[str]]:
        return self._job.more(release)


def refuse_alone(read: Examples) -> None:
    """Refuse data that has no column but the label."""
    if not read.features:
        raise DataError("FILE has no column to predict from, only the label.")
