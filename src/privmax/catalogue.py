"""Every mechanism by name, with what a chooser must know about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

from privmax.errors import ParameterError
from privmax.mechanisms.base import Mechanism
from privmax.mechanisms.choosing import Choosing
from privmax.mechanisms.exponential import Exponential
from privmax.mechanisms.gap_test import GapTest
from privmax.mechanisms.joint_exponential import JointExponential
from privmax.mechanisms.large_margin import LargeMargin
from privmax.mechanisms.large_margin_truncated import LargeMarginTruncated
from privmax.mechanisms.limited_domain import LimitedDomain
from privmax.mechanisms.max_of_laplaces import MaxOfLaplaces
from privmax.mechanisms.nested_margin import NestedMargin
from privmax.mechanisms.permute_and_flip import PermuteAndFlip
from privmax.mechanisms.sharp_margin import SharpMargin
from privmax.mechanisms.stable_maximum import StableMaximum
from privmax.privacy import ADD_REMOVE, probability


@dataclass(frozen=True)
class Entry:
    """A mechanism.

    make      its class
    needs     what must be known in advance, beside the price
    silent    whether it may release nothing although the universe is closed
    """

    make: Callable[..., Mechanism]
    needs: str
    silent: bool

    @property
    def name(self) -> str:
        """The name of its class."""
        return self.make.__name__

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """What it can be made with."""
        return signature(self.make).parameters

    @property
    def pure(self) -> bool:
        """Whether a single draw needs no delta, and therefore a closed universe."""
        return "delta" not in self.parameters or self.parameters["delta"].default == 0


MECHANISMS: Mapping[str, Entry] = {
    "exponential": Entry(Exponential, "the universe", silent=False),
    "permute-and-flip": Entry(PermuteAndFlip, "the universe", silent=False),
    "max-of-laplaces": Entry(MaxOfLaplaces, "the universe", silent=False),
    "joint-exponential": Entry(JointExponential, "the universe", silent=False),
    "large-margin": Entry(LargeMargin, "nothing", silent=False),
    "large-margin-truncated": Entry(LargeMarginTruncated, "nothing", silent=False),
    "sharp-margin": Entry(SharpMargin, "nothing", silent=True),
    "nested-margin": Entry(NestedMargin, "nothing", silent=True),
    "limited-domain": Entry(LimitedDomain, "how many near maximizers there can be", silent=True),
    "stable-maximum": Entry(StableMaximum, "that there is one winner", silent=True),
    "gap-test": Entry(GapTest, "that there is one winner", silent=True),
    "choosing": Entry(Choosing, "how many candidates one record touches", silent=True),
}


def named(name: str, **options: Any) -> Mechanism:
    """A mechanism by name, from options of which those that are None count as not given.

    One that the mechanism does not take is an error, unless it asks for what the mechanism does anyway. A delta that is
    not needed is left out.
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
