"""Private learning: the best hypothesis of a finite public class, and the best of many models, on private data."""

from typing import TYPE_CHECKING, Any

from privmax.errors import PrivmaxError
from privmax.learning.base import Counted, Hypothesis, HypothesisClass, Scored, Shape
from privmax.learning.explicit import Explicit

if TYPE_CHECKING:
    from privmax.learning.estimator import PrivateERM


def __getattr__(name: str) -> Any:
    """`PrivateERM` is loaded when it is first named, as it needs scikit-learn."""
    if name != "PrivateERM":
        raise AttributeError(f"module 'privmax.learning' has no attribute {name!r}")
    try:
        from privmax.learning.estimator import PrivateERM
    except ModuleNotFoundError as missing:
        if missing.name is None or not missing.name.startswith("sklearn"):
            raise
        raise PrivmaxError("PrivateERM needs scikit-learn. Install privmax[learn].") from None
    return PrivateERM


__all__ = ["Counted", "Explicit", "Hypothesis", "HypothesisClass", "PrivateERM", "Scored", "Shape"]
