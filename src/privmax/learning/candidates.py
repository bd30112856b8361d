"""The candidates of a search: settings of a learner, drawn at random from public lists and
distributions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privmax.encoding import recordable
from privmax.errors import ParameterError
from privmax.learning.estimator import describe_class
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below

FIXED = (
    "epsilon", "delta", "mechanism", "neighbors", "unit", "ledger", "coins", "random_state",
    "verbose",
)  # fmt: skip
"""Parameters that are no candidates: they decide what a run costs, or that it is private at all."""

Place = tuple[int, Mapping[str, Any]]
"""A candidate: which mapping, and of each parameter the number of a value, or a value drawn."""


@dataclass(frozen=True)
class Grid:
    """The candidates: mappings of parameters to lists or distributions. Public.

    spaces   the mappings
    """

    spaces: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, params: Any, learner: Any) -> Grid:
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
        """The candidates in a form that is the same in every process."""
        told = [{name: space[name] for name in sorted(space)} for space in self.spaces]
        return describe(told)

    def draw(self, coins: Coins) -> Place:
        """Draw a candidate: a mapping, then each parameter by itself."""
        number = uniform_below(len(self.spaces), coins)
        found: dict[str, Any] = {}
        for name, values in self.spaces[number].items():
            if _is_law(values):
                found[name] = _draw_value(values, coins.bits(128))
            else:
                found[name] = uniform_below(len(values), coins)
        return number, found

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
        """The parameters of a candidate."""
        number, found = place
        space = self.spaces[number]
        return {name: at if _is_law(space[name]) else space[name][at] for name, at in found.items()}


def _check_space(name: Any, values: Any, known: set[str]) -> None:
    if str(name).rpartition("__")[2] in FIXED:
        raise ParameterError(
            "params", name, "it decides what a run costs or whether it is private, so it is no "
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
    """Whether values are drawn from a distribution."""
    return hasattr(values, "rvs")


def _draw_value(values: Any, seed: int) -> Any:
    drawn = values.rvs(random_state=np.random.default_rng(seed))
    return drawn.item() if isinstance(drawn, np.generic) else drawn


def describe(value: Any) -> str:
    """A learner, a list or a distribution in a form that is the same in every process, and leaves
    out nothing, as the repr of scikit-learn does. An address is in it where something does not tell
    what it is.

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
        told = describe(list(value.args)), describe(dict(value.kwds))
        return f"{type(value.dist).__name__}({', '.join(told)})"
    return describe_class(value)


def _call(name: str, parts: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{part}={describe(one)}' for part, one in parts.items())})"
