"""The question that the classifier asks: a count of rows, and the model that follows from it.

Proof:      docs/proofs/classifier.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privmax.learning.additive.fitting import Layout, Rows
from privmax.learning.additive.link import LIMIT
from privmax.learning.additive.model import AdditiveModel
from privmax.learning.additive.reading import unfit_record
from privmax.learning.classifier.choice import Facts
from privmax.learning.classifier.fitting import fit_best
from privmax.learning.classifier.model import ClassifierModel
from privmax.learning.classifier.terms import ClassifierTerms
from privmax.learning.schema import Schema
from privmax.ledger.events import Charge, label
from privmax.noise.coins import Coins
from privmax.payload import Drawn
from privmax.privacy import Privacy
from privmax.release import Release


@dataclass(frozen=True)
class ClassifierFit:
    """Which model fits: a ledger keeps the count, the choice and the model.

    It implements `Releasable`.

    Args:
        terms: How the fit spends its budget. They were checked when they were made.
        schema: The columns.
        unit: What the cost hides.
    """

    terms: ClassifierTerms
    schema: Schema
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.unit is not None:
            label("unit", self.unit)

    def describe(self) -> str:
        """Return what runs."""
        return repr(self.terms)

    def privacy(self) -> Privacy:
        """Return what the fit costs."""
        return self.terms.privacy()

    def charge(self) -> Charge:
        """Return what to charge, whichever model it will be."""
        return price_terms(self.terms, self.unit)

    def check(self) -> None:
        """There is nothing to refuse: some model serves every schema."""

    def preflight(self, source: Rows) -> None:
        """Count labels once before the charge: an engine that fails does so now."""
        source.labels()

    def draw(self, source: Rows, coins: Coins) -> Drawn:
        """Return a model."""
        return Drawn((fit_best(source, self.schema, self.terms, coins),))

    def draw_nothing(self) -> Drawn:
        """No model."""
        return Drawn()

    def write(self, payload: Drawn, source: Rows) -> dict[str, Any]:
        """Write what was drawn for a ledger."""
        return payload.to_json(ClassifierModel.to_json)

    def read(self, written: Mapping[str, Any]) -> Drawn:
        """Return what a ledger recorded."""
        return Drawn.from_json(written, self.read_model)

    def read_model(self, written: Any) -> ClassifierModel:
        """Read a model that a ledger keeps, if it is one of this schema."""
        try:
            made = ClassifierModel.from_json(written, self.schema)
            known = made.member in Facts.of(self.schema).members()
            if known and (made.rows is None) == (self.terms.n is not None) and self._holds(made):
                return made
        except (AttributeError, KeyError, TypeError, ValueError):
            pass  # it is not even of that form
        raise unfit_record("model")

    def release(self, payload: Drawn) -> Release:
        """Return the release of a model."""
        counted = "a noisy count" if self.terms.n is None else "the public number"
        why = f"{counted} of rows decides which model is fitted"
        return Release(payload, self.privacy(), self.terms, why, unit=self.unit)

    def _holds(self, made: ClassifierModel) -> bool:
        """Return whether an additive model has tables of these columns."""
        if not isinstance(made.model, AdditiveModel):
            return True
        rounds = self.terms.rounds(made.member)
        return Layout.of(self.schema).holds(made.model, LIMIT * (rounds.rounds + rounds.pairs))


def price_terms(terms: ClassifierTerms, unit: str | None) -> Charge:
    """Return what a fit costs, also in ρ where there is a delta."""
    return Charge(terms.privacy(), neighbors=terms.neighbors, unit=unit, rho=terms.rho)
