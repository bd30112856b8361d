"""Private learning: the best hypothesis of a finite class, and the best of many models.

The class is public, the data private.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privmax.errors import PrivmaxError, explain_install
from privmax.learning.classes.conjunctions import Conjunctions, Disjunctions
from privmax.learning.classes.contract import Counts, Hypothesis, HypothesisClass, Scores, Shape
from privmax.learning.classes.explicit import Explicit
from privmax.learning.classes.linear import LinearGrid
from privmax.learning.classes.points import HashedPoints, Points
from privmax.learning.classes.stumps import Stumps
from privmax.learning.classes.trees import Trees
from privmax.learning.kinds import Category, Date, Flag, Number
from privmax.learning.models import select_model
from privmax.learning.schema import Schema
from privmax.learning.validation import validate

if TYPE_CHECKING:
    from privmax.learning.additive.estimator import PrivateGAM
    from privmax.learning.classifier.estimator import PrivateClassifier
    from privmax.learning.estimator import PrivateERM
    from privmax.learning.marginal import MarginalSelector
    from privmax.learning.regressor.estimator import PrivateRegressor
    from privmax.learning.search import PrivateSearch
    from privmax.learning.stable import StableSelector
    from privmax.learning.tree import PrivateTree

_HOMES = {
    "MarginalSelector": "marginal",
    "PrivateClassifier": "classifier.estimator",
    "PrivateERM": "estimator",
    "PrivateGAM": "additive.estimator",
    "PrivateRegressor": "regressor.estimator",
    "PrivateSearch": "search",
    "PrivateTree": "tree",
    "StableSelector": "stable",
}
"""The modules of names that need scikit-learn: they are loaded when first named."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'privmax.learning' has no attribute {name!r}")
    try:
        return getattr(import_module(f"privmax.learning.{_HOMES[name]}"), name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not missing.name.startswith("sklearn"):
            raise
        raise PrivmaxError(f"{name} needs scikit-learn. " + explain_install("learn")) from None


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Category",
    "Conjunctions",
    "Counts",
    "Date",
    "Disjunctions",
    "Explicit",
    "Flag",
    "HashedPoints",
    "Hypothesis",
    "HypothesisClass",
    "LinearGrid",
    "MarginalSelector",
    "Number",
    "Points",
    "PrivateClassifier",
    "PrivateERM",
    "PrivateGAM",
    "PrivateRegressor",
    "PrivateSearch",
    "PrivateTree",
    "Schema",
    "Scores",
    "Shape",
    "StableSelector",
    "Stumps",
    "Trees",
    "select_model",
    "validate",
]
