"""Private learning: the best hypothesis of a finite public class, and the best of many models, on
private data.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privmax.errors import PrivmaxError, explain_install
from privmax.learning.classes.conjunctions import Conjunctions, Disjunctions
from privmax.learning.classes.contract import Counts, Hypothesis, HypothesisClass, Scores, Shape
from privmax.learning.classes.explicit import Explicit
from privmax.learning.classes.linear import LinearGrid
from privmax.learning.classes.stumps import Stumps
from privmax.learning.classes.trees import Trees
from privmax.learning.models import select_model
from privmax.learning.schema import Category, Number, Schema

if TYPE_CHECKING:
    from privmax.learning.additive.estimator import PrivateGAM
    from privmax.learning.estimator import PrivateERM
    from privmax.learning.tree import PrivateTree

_ESTIMATORS = {
    "PrivateERM": "privmax.learning.estimator",
    "PrivateGAM": "privmax.learning.additive.estimator",
    "PrivateTree": "privmax.learning.tree",
}


def __getattr__(name: str) -> Any:
    """Estimators are loaded when they are first named, as they need scikit-learn."""
    if name not in _ESTIMATORS:
        raise AttributeError(f"module 'privmax.learning' has no attribute {name!r}")
    try:
        return getattr(import_module(_ESTIMATORS[name]), name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not missing.name.startswith("sklearn"):
            raise
        raise PrivmaxError(f"{name} needs scikit-learn. " + explain_install("learn")) from None


__all__ = [
    "Category",
    "Conjunctions",
    "Counts",
    "Disjunctions",
    "Explicit",
    "Hypothesis",
    "HypothesisClass",
    "LinearGrid",
    "Number",
    "PrivateERM",
    "PrivateGAM",
    "PrivateTree",
    "Schema",
    "Scores",
    "Shape",
    "Stumps",
    "Trees",
    "select_model",
]
