"""The question that the classifier asks: a count of rows, and the model that follows from it.

Proof:      docs/proofs/classifier.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privmax.learning.additive.fitting import CellLayout, ExampleRows, follows_terms
from privmax.learning.additive.link import LIMIT
from privmax.learning.additive.model import AdditiveModel
from privmax.learning.classifier.choice import INTERACTIONS, PAIRS, ROUNDS, Facts
from privmax.learning.classifier.fitting import fit_best
from privmax.learning.classifier.model import ClassifierModel
from privmax.learning.classifier.terms import ClassifierTerms
from privmax.learning.model_fit import ModelFit
from privmax.learning.schema import Schema
from privmax.noise.coins import Coins


@dataclass(frozen=True)
class ClassifierFit(ModelFit[ExampleRows, ClassifierModel]):
    """Fit the model that a count chooses; a ledger keeps the count, the choice and the model.

    Args:
        terms: How the fit spends its budget. They were checked when they were made.
        schema: The columns.
        unit: What the cost hides.
    """

    terms: ClassifierTerms
    schema: Schema
    unit: str | None = None

    @property
    def why(self) -> str:
        """The procedure, in words."""
        counted = "a noisy count" if self.terms.n is None else "the public number"
        return f"fits the model that {counted} of rows chooses"

    def preflight(self, source: ExampleRows) -> None:
        """Count labels once before the charge: an engine that fails does so now."""
        source.labels()

    def fit(self, source: ExampleRows, coins: Coins) -> ClassifierModel:
        """Return a model, which may be any of several."""
        return fit_best(source, self.schema, self.terms, coins)

    def parse(self, written: Any) -> ClassifierModel | None:
        """Return a recorded model, if it is one that these columns have."""
        model = read_classifier(written, self.schema)
        if model is None or (model.rows is None) != (self.terms.n is not None):
            return None
        if isinstance(model.model, AdditiveModel):
            terms = self.terms.rounds(model.member)
            return model if follows_terms(model.model, terms) else None
        return model


def read_classifier(written: Any, schema: Schema) -> ClassifierModel | None:
    """Return a model that was written; None: it is none that these columns have.

    Raises:
        ValueError: It is no model.
    """
    model = ClassifierModel.from_json(written, schema)
    if model.member not in Facts.of(schema).members():
        return None
    if isinstance(model.model, AdditiveModel):
        largest = LIMIT * (ROUNDS + (INTERACTIONS if model.member == PAIRS else 0))
        return model if CellLayout.of(schema).holds(model.model, largest) else None
    return model
