"""The candidates of a search: settings drawn at random from public lists and distributions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privmax.encoding import recordable
from privmax.errors import ParameterError
from privmax.learning.descriptions import describe_class
from privmax.learning.inputs import FROM_Y
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below

COSTS = ("epsilon", "delta", "mechanism", "neighbors", "unit")
"""Parameters that decide what a run costs."""

REFUSED = {
    "random_state": (
        "a fixed seed makes noise predictable, and the same in every run", "Leave it None."
    ),
    "coins": ("copies of them are the same in every run", "Leave them out."),
    "ledger": ("the search is charged for all runs together", "Give ledger= to the search."),
    "verbose": ("it would show how many runs there are", "Give verbose=True to the search."),
}  # fmt: skip
"""Parameters that a learner in a search must not set: the reason, and what to do instead."""

FIXED = (*COSTS, *REFUSED)
"""Parameters that are no candidates: they decide what a run costs, or that it is private at all."""

Place = tuple[int, Mapping[str, Any]]
"""A candidate: which mapping, and of each parameter the number of a value, or a value drawn."""


@dataclass(frozen=True)
class SettingsGrid:
    """The candidates: mappings of parameters to lists or distributions. Public.

    spaces   the mappings
    """

    spaces: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, params: Any, learner: Any) -> SettingsGrid:
        """Read `params`.

        Raises:
            ParameterError: It is not what it must be, or names what the learner does not have.
        """
        spaces = [params] if isinstance(params, Mapping) else params
        if not isinstance(spaces, (list, tuple)) or not spaces:
            remedy = 'For example {"C": [0.1, 1, 10]}.'
            raise ParameterError(
                "params", type(params).__name__, "it must be a mapping or a list of some", remedy
            )
        known = set(learner.get_params())
        for space in spaces:
            if not isinstance(space, Mapping):
                raise ParameterError(
                    "params", type(space).__name__, "each part of a list must be a mapping",
                    'For example [{"C": [0.1, 1, 10]}].',
                )  # fmt: skip
            for name, values in dict(space).items():
                _check_space(name, values, known)
        return cls(tuple(dict(space) for space in spaces))

    @property
    def names(self) -> list[str]:
        """All parameters that vary."""
        return sorted({name for space in self.spaces for name in space})

    def describe(self) -> str:
        """Return the candidates in a form that is the same in every process."""
        spaces = [{name: space[name] for name in sorted(space)} for space in self.spaces]
        return describe(spaces)

    def draw(self, coins: Coins) -> Place:
        """Draw a candidate: a mapping, then each parameter by itself."""
        number = uniform_below(len(self.spaces), coins)
        values_at: dict[str, Any] = {}
        for name, values in self.spaces[number].items():
            if _is_law(values):
                values_at[name] = _draw_value(values, coins.bits(128))
            else:
                values_at[name] = uniform_below(len(values), coins)
        return number, values_at

    def trials(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Candidates in which each value of each list occurs, with the parameter that it is of."""
        for number, space in enumerate(self.spaces):
            drawn = {name: _draw_value(one, 0) for name, one in space.items() if _is_law(one)}
            lists = {name: 0 for name in space if name not in drawn}
            yield next(iter(space), "params"), self.params((number, drawn | lists))
            for name in lists:
                for at in range(1, len(space[name])):
                    yield name, self.params((number, drawn | lists | {name: at}))

    def params(self, place: Place) -> dict[str, Any]:
        """Return the parameters of a candidate."""
        number, settings = place
        space = self.spaces[number]
        return {
            name: at if _is_law(space[name]) else space[name][at] for name, at in settings.items()
        }


def check_learner(learner: Any, prefix: str = "") -> None:
    """Refuse a learner that has what no run may have, also in the learners within it.

    Raises:
        ParameterError: A parameter is in `REFUSED`, or labels are to be read from y.

    Examples:
        >>> from privmax.learning import PrivateERM
        >>> check_learner(PrivateERM(labels="from y"))
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: labels='from y' is not allowed: the labels of the ...
    """
    parts = {f"{prefix}{name}": value for name, value in learner.get_params().items()}
    for name, value in parts.items():
        _check_value(name, value)
    for name, value in parts.items():
        _check_parts(name, value)


def _check_value(name: str, value: Any) -> None:
    """Refuse what no run may have as the value of a parameter."""
    last = name.rpartition("__")[2]
    if last in REFUSED and value is not None and (last != "verbose" or value):
        raise ParameterError(name, "<given>", *REFUSED[last])
    if isinstance(value, str) and value == FROM_Y:
        raise ParameterError(
            name, str(value), "the labels of the training rows are not public: they depend on "
            "coins", "Declare all labels.",
        )  # fmt: skip


def _check_parts(name: str, value: Any) -> None:
    """Check learners within a value: itself, or in lists and mappings.

    Text in a list is not the value of a parameter: it may be a label.
    """
    if hasattr(value, "get_params") and not isinstance(value, type):
        check_learner(value, f"{name}__")
    elif isinstance(value, Mapping):
        for one in value.values():
            _check_parts(name, one)
    elif isinstance(value, (list, tuple, np.ndarray)):
        for one in value.flat if isinstance(value, np.ndarray) else value:
            _check_parts(name, one)


def _check_space(name: Any, values: Any, known: set[str]) -> None:
    if str(name).rpartition("__")[2] in FIXED:
        raise ParameterError(
            "params", name, "it decides what a run costs or whether it is private, so it is not a "
            "candidate", "Set it on the learner or on the search.",
        )  # fmt: skip
    if name not in known:
        close = ", ".join(sorted(one for one in known if one.rpartition("__")[2] not in FIXED))
        raise ParameterError(
            "params", name, "the learner has no such parameter", f"It has {close}."
        )
    if _is_law(values):
        _check_law(name, values)
        return
    is_list = isinstance(values, Sequence) and not isinstance(values, str)
    if not is_list and not isinstance(values, np.ndarray):
        raise ParameterError(
            "params", name, "its values must be a list, or a distribution with rvs",
            f'For example {{"{name}": [1, 2]}}.',
        )  # fmt: skip
    if not len(values):
        raise ParameterError("params", name, "it has no values", "Give at least one.")
    for value in values:
        _check_value(name, value)
        _check_parts(name, value)


def _check_law(name: str, values: Any) -> None:
    """Refuse a distribution from which nothing can be drawn that a ledger can write down."""
    remedy = "For example scipy.stats.uniform(0, 1)."
    try:
        drawn = _draw_value(values, 0)
    except Exception:
        raise ParameterError("params", name, "its rvs(random_state=…) fails", remedy) from None
    if not recordable([drawn]):
        raise ParameterError("params", name, "its rvs must draw one number, or one text", remedy)


def _is_law(values: Any) -> bool:
    """Return whether values are drawn from a distribution."""
    return hasattr(values, "rvs")


def _draw_value(values: Any, seed: int) -> Any:
    drawn = values.rvs(random_state=np.random.default_rng(seed))
    return drawn.item() if isinstance(drawn, np.generic) else drawn


def describe(value: Any) -> str:
    """Describe a learner, a list or a distribution the same in every process.

    It leaves out nothing, as the repr of scikit-learn does. It contains an address where something
    does not say what it is.

    Examples:
        >>> from sklearn.naive_bayes import GaussianNB
        >>> describe([GaussianNB()])
        'list(GaussianNB(priors=None, var_smoothing=1e-09))'
    """
    if hasattr(value, "get_params") and not isinstance(value, type):
        return _call(type(value).__name__, value.get_params(deep=False))
    if isinstance(value, Mapping):
        return _call(type(value).__name__, {describe(key): one for key, one in value.items()})
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(describe, value))})"
    if isinstance(value, np.ndarray) and value.dtype == object:
        return f"array({describe(value.tolist())})"
    if _is_law(value) and hasattr(value, "dist"):
        arguments = describe(list(value.args)), describe(dict(value.kwds))
        return f"{type(value.dist).__name__}({', '.join(arguments)})"
    return describe_class(value)


def _call(name: str, parts: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{part}={describe(one)}' for part, one in parts.items())})"
