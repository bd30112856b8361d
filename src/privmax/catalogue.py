"""Every mechanism by name, with what a chooser must know about it. Their classes are loaded when
they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from privmax.errors import ParameterError
from privmax.privacy import ADD_REMOVE, probability

if TYPE_CHECKING:
    from privmax.mechanisms.base import Mechanism


@dataclass(frozen=True)
class Entry:
    """A mechanism.

    name      of its class
    home      the module of that
    needs     what must be known in advance, beside the price
    silent    whether it may release nothing although the universe is closed
    """

    name: str
    home: str
    needs: str
    silent: bool

    @property
    def make(self) -> Callable[..., Mechanism]:
        """Its class."""
        found: Callable[..., Mechanism] = getattr(
            import_module(f"privmax.mechanisms.{self.home}"), self.name
        )
        return found

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """What it can be made with."""
        return signature(self.make).parameters

    @property
    def pure(self) -> bool:
        """Whether a single draw needs no delta, and therefore a closed universe."""
        return "delta" not in self.parameters or self.parameters["delta"].default == 0


MECHANISMS: Mapping[str, Entry] = {
    "exponential": Entry("Exponential", "exponential", "the universe", silent=False),
    "permute-and-flip": Entry("PermuteAndFlip", "permute_and_flip", "the universe", silent=False),
    "max-of-laplaces": Entry("MaxOfLaplaces", "max_of_laplaces", "the universe", silent=False),
    "joint-exponential": Entry(
        "JointExponential", "joint_exponential", "the universe", silent=False
    ),
    "large-margin": Entry("LargeMargin", "large_margin", "nothing", silent=False),
    "large-margin-truncated": Entry(
        "LargeMarginTruncated", "large_margin_truncated", "nothing", silent=False
    ),
    "sharp-margin": Entry("SharpMargin", "sharp_margin", "nothing", silent=True),
    "nested-margin": Entry("NestedMargin", "nested_margin", "nothing", silent=True),
    "limited-domain": Entry(
        "LimitedDomain", "limited_domain", "how many near maximizers there can be", silent=True
    ),
    "stable-maximum": Entry(
        "StableMaximum", "stable_maximum", "that there is one winner", silent=True
    ),
    "gap-test": Entry("GapTest", "gap_test", "that there is one winner", silent=True),
    "choosing": Entry(
        "Choosing", "choosing", "how many candidates one record touches", silent=True
    ),
}


def named(name: str, **options: Any) -> Mechanism:
    """A mechanism by name, from options of which those that are None count as not given.

    One that the mechanism does not take is an error, unless it asks for what the mechanism does
    anyway. A delta that is not needed is left out.
    """
    if name not in MECHANISMS:
        raise ParameterError("mechanism", name, f"it must be one of {', '.join(MECHANISMS)}")
    entry = MECHANISMS[name]
    given = {option: value for option, value in options.items() if value is not None}
    if entry.pure and given.get("k", 1) == 1:
        given.pop("delta", None)
    for option, value in list(given.items()):
        if option not in entry.parameters:
            anyway = option == "delta" and not probability("delta", value)
            if not anyway and (option, value) not in (("k", 1), ("neighbors", ADD_REMOVE)):
                remedy = "Leave it out, or choose another mechanism."
                raise ParameterError(option, value, f"{name} does not take it", remedy)
            del given[option]
    for option, parameter in entry.parameters.items():
        if parameter.default is Parameter.empty and option not in given:
            raise ParameterError(option, None, f"{name} requires it")
    return entry.make(**given)
