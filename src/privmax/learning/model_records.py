"""Fitted models as JSON for a ledger, and back again: what was fitted, attribute by attribute.

A model is written without pickle, so that reading a ledger runs no code out of it: numbers, text,
arrays and containers of them, estimators of known packages, and values of privmax. What is given to
the constructor is public and comes from there; only what `fit` set is written.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from privmax.encoding import decode, encode, recordable
from privmax.learning.schema import Schema

PACKAGES = ("sklearn", "privmax", "diffprivlib")
"""Packages whose estimators are read, beside the package of the model itself."""

LEFT_OUT = ("release_",)
"""Of a single run: its cost is not that of the search."""


class UnwritableModelError(Exception):
    """A fitted attribute has no form in JSON."""


def write_model(model: Any) -> dict[str, Any]:
    """Return what `fit` set of a model, as JSON.

    Raises:
        UnwritableModelError: An attribute has no form in JSON.

    Examples:
        >>> from sklearn.naive_bayes import GaussianNB
        >>> model = GaussianNB().fit([[0.0], [1.0]], [0, 1])
        >>> read_model(GaussianNB(), write_model(model)).predict([[2.0]]).tolist()
        [1]
    """
    parameters = set(model.get_params(deep=False))
    state = {name: value for name, value in vars(model).items() if name not in LEFT_OUT}
    fitted = {
        name: _write(value)
        for name, value in state.items()
        if name not in parameters or _is_composite(value)
    }
    return {"fitted": fitted}


def read_model(template: Any, written: Mapping[str, Any]) -> Any:
    """Return the template, which is not fitted, with what `write_model` wrote."""
    home = type(template).__module__.partition(".")[0]
    for name, value in written["fitted"].items():
        vars(template)[name] = _read(value, home)
    return template


def _is_composite(value: Any) -> bool:
    """Return whether a parameter holds estimators fitted in place, as a pipeline's steps are."""
    return isinstance(value, list) and any(
        isinstance(part, tuple) and any(isinstance(one, BaseEstimator) for one in part)
        for part in value
    )


def _write(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _write_array(value)
    if isinstance(value, np.generic):
        return {"scalar": _write_array(np.asarray(value))}
    if isinstance(value, list):
        return {"list": [_write(part) for part in value]}
    if isinstance(value, tuple) and type(value) is tuple:
        return {"parts": [_write(part) for part in value]}
    if isinstance(value, dict):
        return {"dict": [[_write(key), _write(part)] for key, part in value.items()]}
    if isinstance(value, Schema):
        return {"schema": list(value.to_dict().items())}  # in their order: a ledger sorts keys
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, BaseEstimator):
        state = {name: _write(part) for name, part in vars(value).items() if name not in LEFT_OUT}
        return {"estimator": _name(value), "state": state}
    if type(value).__module__.startswith("privmax.") and is_dataclass(value):
        if hasattr(value, "to_json") and hasattr(value, "from_json"):
            return {"value": _name(value), "json": value.to_json()}
        parts = {spec.name: _write(getattr(value, spec.name)) for spec in fields(value)}
        return {"value": _name(value), "fields": parts}
    if not recordable([value]):
        raise UnwritableModelError(type(value).__name__)
    return {"plain": encode(value)}


def _write_array(values: NDArray[Any]) -> dict[str, Any]:
    shape = list(values.shape)
    if values.dtype == object:
        return {"objects": [_write(one) for one in values.ravel().tolist()], "shape": shape}
    if values.dtype.kind not in "biufUSMm":
        raise UnwritableModelError(str(values.dtype))
    raw = base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
    return {"array": raw, "dtype": values.dtype.str, "shape": shape}


def _read(written: Mapping[str, Any], home: str) -> Any:
    kind = next(kind for kind in _READ if kind in written)  # a ledger sorts keys
    return _READ[kind](written, home)


def _read_array(written: Mapping[str, Any], home: str) -> NDArray[Any]:
    raw = np.frombuffer(base64.b64decode(written["array"]), np.dtype(written["dtype"]))
    return raw.reshape(written["shape"]).copy()


def _read_objects(written: Mapping[str, Any], home: str) -> NDArray[Any]:
    values = np.empty(len(written["objects"]), object)
    for place, one in enumerate(written["objects"]):
        values[place] = _read(one, home)
    return values.reshape(written["shape"])


def _read_estimator(written: Mapping[str, Any], home: str) -> Any:
    kind = _find(written["estimator"], (*PACKAGES, home))
    if not issubclass(kind, BaseEstimator):
        raise UnwritableModelError(written["estimator"])
    made: Any = object.__new__(kind)
    vars(made).update({name: _read(part, home) for name, part in written["state"].items()})
    return made


def _read_value(written: Mapping[str, Any], home: str) -> Any:
    kind = _find(written["value"], ("privmax",))
    if not is_dataclass(kind):
        raise UnwritableModelError(written["value"])
    if "json" in written:
        return kind.from_json(written["json"])  # type: ignore[attr-defined]
    return kind(**{name: _read(part, home) for name, part in written["fields"].items()})


_READ: dict[str, Callable[[Mapping[str, Any], str], Any]] = {
    "plain": lambda written, home: decode(written["plain"]),
    "list": lambda written, home: [_read(part, home) for part in written["list"]],
    "parts": lambda written, home: tuple(_read(part, home) for part in written["parts"]),
    "dict": lambda written, home: {
        _read(key, home): _read(part, home) for key, part in written["dict"]
    },
    "fraction": lambda written, home: Fraction(written["fraction"]),
    "schema": lambda written, home: Schema.from_dict(dict(written["schema"])),
    "array": _read_array,
    "scalar": lambda written, home: _read_array(written["scalar"], home)[()],
    "objects": _read_objects,
    "estimator": _read_estimator,
    "value": _read_value,
}


def _name(value: Any) -> str:
    return f"{type(value).__module__}:{type(value).__qualname__}"


def _find(name: str, packages: tuple[str, ...]) -> type:
    """Find a class by its name, if it is of one of the packages.

    Nothing is imported, as that could run code: a learner has brought what it is made of.
    """
    module, _, path = name.partition(":")
    if module.partition(".")[0] not in packages:
        raise UnwritableModelError(name)
    value: Any = sys.modules.get(module)
    for part in path.split("."):
        value = getattr(value, part, None)
    if not isinstance(value, type):
        raise UnwritableModelError(name)
    return value
