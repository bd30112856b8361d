"""Private learning: the best hypothesis of a finite public class, and the best of many models, on private data."""

from privmax.learning.base import Counted, Hypothesis, HypothesisClass, Scored, Shape
from privmax.learning.explicit import Explicit

__all__ = ["Counted", "Explicit", "Hypothesis", "HypothesisClass", "Scored", "Shape"]
