"""Classes and estimators as a ledger describes them: the same in every process."""

from __future__ import annotations

from dataclasses import is_dataclass
from hashlib import sha256
from inspect import signature
from typing import Any

import numpy as np

from privmax.learning.classes.contract import identifying_fields

ADDRESS = " at 0x"
"""Part of the default `repr` of objects: their address, which differs from process to process."""


def describe_class(value: object) -> str:
    """Describe a class as a ledger writes it, the same in every process.

    Arrays are described by a digest, where repr would leave out most.
    """
    if isinstance(value, np.ndarray) and value.dtype != object:
        exact = np.ascontiguousarray(value)
        return f"<{exact.dtype.str} {exact.shape} {sha256(exact.data).hexdigest()[:32]}>"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(describe_class, value))})"
    if is_dataclass(value) and not isinstance(value, type):
        parts = [f"{name}={describe_class(one)}" for name, one in identifying_fields(value)]
        return f"{type(value).__name__}({', '.join(parts)})"
    return repr(value)


def describe_selector(value: Any) -> str:
    """Describe an estimator as a ledger writes it, the same in every process.

    Parameters at their defaults are left out.

    Examples:
        >>> from sklearn.feature_selection import SelectKBest, f_regression
        >>> describe_selector(SelectKBest(f_regression, k=3))
        'SelectKBest(k=3, score_func=sklearn.feature_selection._univariate_selection.f_regression)'
    """
    if hasattr(value, "__qualname__"):  # a function or a class
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(describe_selector, value))})"
    if isinstance(value, dict):
        parts = [f"{key!r}: {describe_selector(setting)}" for key, setting in value.items()]
        return f"{{{', '.join(parts)}}}"
    if not hasattr(value, "get_params"):
        return describe_class(value)
    usual = {
        name: getattr(parameter, "default", None)
        for name, parameter in signature(type(value)).parameters.items()
    }
    arguments = [
        f"{name}={described}"
        for name, setting in sorted(value.get_params(deep=False).items())
        if (described := describe_selector(setting)) != describe_selector(usual.get(name))
    ]
    return f"{type(value).__name__}({', '.join(arguments)})"


def is_vague(description: str) -> bool:
    """Return whether a description could be that of another, or is another in each process."""
    return any(sign in description for sign in (ADDRESS, "<lambda>", "<locals>"))
