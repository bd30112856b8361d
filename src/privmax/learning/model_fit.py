"""The question that learners with a schema ask: which model fits, at what cost.

A ledger keeps the whole model. Each learner says how its model is fitted and read again; all else
is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from privmax.errors import LedgerError
from privmax.ledger.events import Charge
from privmax.noise.coins import Coins
from privmax.payload import Drawn
from privmax.privacy import Privacy
from privmax.release import Procedure, Release

S = TypeVar("S")
M = TypeVar("M")


class FitTerms(Procedure, Protocol):
    """The split of a budget over the steps of a fit."""

    @property
    def rho(self) -> Any:
        """The cost in concentrated privacy, if it has one."""
        ...


class ModelFit(ABC, Generic[S, M]):
    """A model that is fitted from private rows, and read again from a ledger.

    It implements `Releasable`. Learners derive a small class that has terms, what is public of the
    columns, and a unit.
    """

    terms: FitTerms
    unit: str | None

    noun: ClassVar[str] = "model"
    """The word for what is fitted, in errors."""

    @property
    @abstractmethod
    def why(self) -> str:
        """The procedure, in words that follow "mechanism"."""

    @abstractmethod
    def fit(self, source: S, coins: Coins) -> M:
        """Return a model: what is returned is released."""

    @abstractmethod
    def parse(self, written: Any) -> M | None:
        """Return the model that `write` wrote; None if no fit of these columns can have made it."""

    def describe(self) -> str:
        """Return what runs."""
        return repr(self.terms)

    def privacy(self) -> Privacy:
        """Return what the fit costs."""
        return self.terms.privacy()

    def charge(self) -> Charge:
        """Return what to charge: also in ρ, which a ledger under the rule "zcdp" adds up."""
        return charge_fit(self.terms, self.unit)

    def check(self) -> None:
        """There is nothing to refuse: terms were checked, and serve every schema."""

    def preflight(self, source: S) -> None:
        """Nothing more is to be met where rows were read."""

    def draw(self, source: S, coins: Coins) -> Drawn:
        """Return a model that was fitted."""
        return Drawn((self.fit(source, coins),))

    def draw_nothing(self) -> Drawn:
        """No model."""
        return Drawn()

    def write(self, payload: Drawn, source: S) -> dict[str, Any]:
        """Write what was drawn for a ledger."""
        return payload.to_json(lambda model: model.to_json())

    def read(self, written: Mapping[str, Any]) -> Drawn:
        """Return what a ledger recorded."""
        return Drawn.from_json(written, self.read_model)

    def read_model(self, written: Any) -> M:
        """Read a model that a ledger keeps.

        Raises:
            LedgerError: It is none of these columns.
        """
        try:
            model = self.parse(written)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            model = None  # it is not even of that form
        if model is None:
            raise LedgerError(
                f"The {self.noun} that the ledger has for this request does not fit this schema: "
                "the record was changed. Run privmax budget verify, and restore the ledger from a "
                "backup."
            )
        return model

    def release(self, payload: Drawn) -> Release:
        """Return the release of a model."""
        return Release(payload, self.privacy(), self.terms, self.why, unit=self.unit)


def charge_fit(terms: FitTerms, unit: str | None) -> Charge:
    """Return what a fit costs, also in ρ where it has such a cost."""
    return Charge(terms.privacy(), neighbors=terms.neighbors, unit=unit, rho=terms.rho)
