"""Labels of examples: which may be declared, and which rows have one. One rule for all learners."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError

EXACT = 1 << 53
"""From here on floats leave out whole numbers: two labels of y may be one beside a float."""


def refuse_large(labels: Iterable[Any]) -> None:
    """Refuse declared labels that floats do not keep apart from others.

    Raises:
        ParameterError: One is 2^53 or more.

    Examples:
        >>> refuse_large([0, 1])
        >>> refuse_large([0, 2**53])
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: labels=[0, 9007199254740992] is not allowed: numbers ...
    """
    listed = list(labels)
    if any(not isinstance(one, str) and abs(one) >= EXACT for one in listed):
        raise ParameterError(
            "labels", listed, "numbers from 2^53 on are rounded beside floats", "Use text."
        )


def rows_with(y: NDArray[Any], label: Any) -> NDArray[np.bool_]:
    """Return which rows have a label; what cannot be compared with it does not equal it.

    Examples:
        >>> rows_with(np.array([0, 1, None], object), 1).tolist()
        [False, True, False]
    """
    if y.dtype == object:  # value by value: a list would be compared element by element
        return np.fromiter((_equals(one, label) for one in y.tolist()), np.bool_, len(y))
    return np.broadcast_to(np.asarray(y == label, np.bool_), y.shape)


def _equals(one: Any, label: Any) -> bool:
    try:
        return np.ndim(one) == 0 and bool(one == label)
    except Exception:  # of one row, which changes nothing about the others
        return False
