"""The candidates of a search: settings of a learner, drawn at random from public lists and
distributions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privmax.errors import ParameterError
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below

FIXED = ("epsilon", "delta", "mechanism", "neighbors", "unit", "ledger", "coins", "random_state")
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
            for name, values in dict(space).items():
                _check_space(name, values, known)
        return cls(tuple(dict(space) for space in spaces))

    @property
    def names(self) -> list[str]:
        """All parameters that vary."""
        return sorted({name for space in self.spaces for name in space})

    def describe(self) -> str:
        """The candidates in a form that is the same in every process."""
        told = [{name: _describe(space[name]) for name in sorted(space)} for space in self.spaces]
        return repr(told)

    def draw(self, coins: Coins) -> Place:
        """Draw a candidate: a mapping, then each parameter by itself."""
        number = uniform_below(len(self.spaces), coins)
        found: dict[str, Any] = {}
        for name, values in self.spaces[number].items():
            if hasattr(values, "rvs"):
                drawn = values.rvs(random_state=np.random.default_rng(coins.bits(128)))
                found[name] = drawn.item() if isinstance(drawn, np.generic) else drawn
            else:
                found[name] = uniform_below(len(values), coins)
        return number, found

    def params(self, place: Place) -> dict[str, Any]:
        """The parameters of a candidate."""
        number, found = place
        space = self.spaces[number]
        return {
            name: at if hasattr(space[name], "rvs") else space[name][at]
            for name, at in found.items()
        }


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
    is_list = isinstance(values, Sequence) and not isinstance(values, str)
    if not hasattr(values, "rvs") and not (is_list or isinstance(values, np.ndarray)):
        raise ParameterError(
            "params", name, "its values must be a list, or a distribution with rvs",
            f'For example {{"{name}": [1, 2]}}.',
        )  # fmt: skip
    if not hasattr(values, "rvs") and not len(values):
        raise ParameterError("params", name, "it has no values", "Give at least one.")


def _describe(values: Any) -> str:
    if hasattr(values, "rvs"):
        kind = getattr(values, "dist", values)
        told = getattr(values, "args", ()), getattr(values, "kwds", {})
        return f"{type(kind).__name__}{told!r}"
    return repr(list(values))
