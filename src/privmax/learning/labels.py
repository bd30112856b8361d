"""Labels of examples: how they are read, which may be declared, and which rows have one.

There is one rule for all learners, and for what models predict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError

EXACT = 1 << 53
"""From here on floats leave out whole numbers: two labels of y may be one beside a float."""


def read_column(raw: Any, who: str) -> NDArray[Any]:
    """Read values as an array in which none depends on the others.

    A list of 1 and "a" does not become one of text.

    Examples:
        >>> read_column([1, "a"], "y").tolist()
        [1, 'a']
    """
    refuse_masked(raw, who)
    message = f"{who} gave what cannot be read as an array"
    listing = _listing(raw)
    if listing is not None:
        return _read_list(call_quietly(lambda: list(listing()), message))
    values = np.asarray(call_quietly(lambda: np.asarray(raw), message))
    return _objects(values) if values.dtype.kind == "O" and values.ndim == 1 else values


def refuse_masked(values: Any, who: str) -> None:
    """Refuse a masked array.

    What is masked has a value all the same, which may happen to be right.

    Examples:
        >>> refuse_masked(np.ma.array([1, 2], mask=[True, False]), "A model")
        Traceback (most recent call last):
        ...
        privmax.errors.DataError: A model gave a masked array. ...
    """
    if isinstance(values, np.ma.MaskedArray):
        raise DataError(
            f"{who} gave a masked array. Fill it (.filled) with a value for missing entries."
        )


def call_quietly(call: Callable[[], Any], message: str) -> Any:
    """Return what a call returns; its own error is not passed on, since it may quote the data.

    Examples:
        >>> call_quietly(lambda: 1 / 0, "The model failed")
        Traceback (most recent call last):
        ...
        privmax.errors.DataError: The model failed (ZeroDivisionError). ...
    """
    try:
        return call()
    except Exception as error:
        failure = DataError(
            f"{message} ({type(error).__name__}). Its own message may quote data and is not shown: "
            f"try it on public rows."
        )
    raise failure  # out here, where the other error is no longer attached to it as its context


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


def _listing(values: Any) -> Callable[[], Any] | None:
    """Return how to get the Python values of a list or a column; None where NumPy reads it.

    Such columns have a type that is not NumPy's: pandas' own, polars, Arrow.

    As arrays such columns are read by what is in them: whole numbers beside a null become floats,
    for example, and moments whole numbers beside one that counts nanoseconds.
    """
    if isinstance(values, (list, tuple)):
        return lambda: values
    kind = getattr(values, "dtype", None)
    if not hasattr(values, "to_numpy") or (isinstance(kind, np.dtype) and kind.kind not in "mM"):
        return None
    if len(getattr(values, "shape", "1")) != 1:
        return None  # a frame
    names = (name for name in ("to_list", "to_pylist", "tolist") if hasattr(values, name))
    method: Callable[[], Any] | None = getattr(values, next(names, ""), None)
    return method


def _read_list(values: Sequence[Any]) -> NDArray[Any]:
    """Numbers of one type as an array of that type, everything else as Python objects.

    No number is changed by the others: of 2^63 and −1 together NumPy would make floats.
    """
    types = set(map(type, values))
    if len(types) == 1:
        fitting = _fitting_kinds(types.pop())
        numbers = np.array(values) if fitting else None
        if numbers is not None and numbers.dtype.kind in fitting:
            return numbers
    return _objects(values)


def _fitting_kinds(kind: type) -> str:
    """Return the kinds of arrays that hold numbers of this type as they are.

    None for other types.
    """
    for kinds, types in (
        ("b", (bool, np.bool_)),
        ("iu", (int, np.integer)),
        ("f", (float, np.floating)),
    ):
        if kind is types[0] or issubclass(kind, types[1]):
            return kinds
    return ""


def _objects(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Return values as Python objects.

    Numbers of NumPy become Python's: as objects they would round what they are compared with.
    pandas' missing value, which cannot be compared at all, becomes None.
    """
    plain: Iterable[Any] = values
    kinds = set(map(type, values))
    if any(issubclass(kind, np.generic) or kind.__name__ == "NAType" for kind in kinds):
        plain = map(_plain, values)
    return np.fromiter(plain, object, len(values))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return None if type(value).__name__ == "NAType" else value
