"""Every mechanism by name, with what a chooser must know about it.

Their classes are loaded when they are asked for. A mechanism that stands here must pass the
contract in tests/exact/test_contract.py, which says what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from privmax.errors import ParameterError, refuse_given
from privmax.numbers import probability
from privmax.privacy import ADD_REMOVE

if TYPE_CHECKING:
    from privmax.mechanisms.contract import Mechanism


@dataclass(frozen=True)
class Entry:
    """A mechanism.

    Attributes:
        name: The name of its class.
        home: The module of that, in `privmax.mechanisms`.
        needs: What must be known in advance, beside the privacy cost.
        abstains: Whether it may release nothing although the universe is closed.

    Examples:
        >>> MECHANISMS["nested-margin"].load().__name__
        'NestedMargin'
        >>> MECHANISMS["exponential"].pure, MECHANISMS["nested-margin"].pure
        (True, False)
        >>> list(MECHANISMS["max-of-laplaces"].parameters)
        ['epsilon', 'neighbors']
    """

    name: str
    home: str
    needs: str
    abstains: bool

    def load(self) -> Callable[..., Mechanism]:
        """Return its class."""
        found: Callable[..., Mechanism] = getattr(
            import_module(f"privmax.mechanisms.{self.home}"), self.name
        )
        return found

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """What it can be made with."""
        return signature(self.load()).parameters

    @property
    def pure(self) -> bool:
        """Whether a single draw needs no delta, and without one a closed universe."""
        return "delta" not in self.parameters or self.parameters["delta"].default == 0


MECHANISMS: Mapping[str, Entry] = {
    "exponential": Entry("Exponential", "exponential", "the universe", abstains=False),
    "permute-and-flip": Entry("PermuteAndFlip", "permute_and_flip", "the universe", abstains=False),
    "max-of-laplaces": Entry("MaxOfLaplaces", "max_of_laplaces", "the universe", abstains=False),
    "joint-exponential": Entry(
        "JointExponential", "joint_exponential", "the universe", abstains=False
    ),
    "large-margin": Entry("LargeMargin", "large_margin", "nothing", abstains=False),
    "large-margin-truncated": Entry(
        "LargeMarginTruncated", "large_margin_truncated", "nothing", abstains=False
    ),
    "sharp-margin": Entry("SharpMargin", "sharp_margin", "nothing", abstains=True),
    "nested-margin": Entry("NestedMargin", "nested_margin", "nothing", abstains=True),
    "set-margin": Entry("SetMargin", "set_margin", "nothing", abstains=True),
    "limited-domain": Entry(
        "LimitedDomain", "limited_domain", "how many near maximizers there can be", abstains=True
    ),
    "stable-maximum": Entry(
        "StableMaximum", "stable_maximum", "that there is one winner", abstains=True
    ),
    "gap-test": Entry("GapTest", "gap_test", "that there is one winner", abstains=True),
    "choosing": Entry(
        "Choosing", "choosing", "how many candidates one record touches", abstains=True
    ),
}
"""The mechanisms by the names that Python and the command line know them by."""


def registered_name(mechanism: object) -> str | None:
    """The name of a mechanism's class in the registry; None if it is not there.

    Examples:
        >>> registered_name(build("exponential", epsilon=1))
        'exponential'
    """
    kind = type(mechanism)
    for name, entry in MECHANISMS.items():
        if entry.name == kind.__name__ and entry.load() is kind:
            return name
    return None


def check_name(name: str, option: str = "mechanism", others: Collection[str] = ()) -> None:
    """Refuse what is not the name of a mechanism, and tell which one may be meant.

    Args:
        name: What was given.
        option: What a ParameterError calls it.
        others: Names that are allowed beside those of `MECHANISMS`.

    Raises:
        ParameterError: There is no mechanism of that name.

    Examples:
        >>> check_name("nested-margin")
        >>> check_name("NestedMargin")
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: mechanism='NestedMargin' ... Did you mean nested-margin?
    """
    known = [*MECHANISMS, *others]
    if name in known:
        return
    from difflib import get_close_matches

    spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\s]+", "-", name).lower()
    close = get_close_matches(spelled, known, n=1, cutoff=0.5)
    allowed = f"it must be one of {', '.join(known)}"
    remedy = f"Did you mean {close[0]}?" if close else "For example nested-margin."
    if name == "auto":
        remedy = "Leave it out, and one is chosen."
    raise ParameterError(option, name, allowed, remedy)


def make(mechanism: Mechanism | str, **options: Any) -> Mechanism:
    """Return the mechanism given, or make the one that is named.

    Args:
        mechanism: A mechanism, or its name.
        options: Its parameters, where it is named; None: not given.

    Raises:
        ParameterError: A parameter is given beside a mechanism that has it already, or as `build`
            says.

    Examples:
        >>> make("permute-and-flip", epsilon=1, delta=None)
        PermuteAndFlip(epsilon=1, delta=0, neighbors='add-remove', k=1)
        >>> make(make("permute-and-flip", epsilon=1), epsilon=2)
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: epsilon=2 is not allowed: the mechanism already sets it. ...
    """
    if isinstance(mechanism, str):
        return build(mechanism, **options)
    refuse_given(options, "the mechanism already sets it", "Give one or the other.")
    return mechanism


def build(name: str, **options: Any) -> Mechanism:
    """Make a mechanism by name.

    Args:
        name: One of `MECHANISMS`.
        options: Its parameters. Those that are None count as not given, and a delta that is not
            needed is left out.

    Raises:
        ParameterError: There is no such mechanism; or it does not take an option, unless that asks
            for what it does anyway; or a parameter is missing or out of bounds.

    Examples:
        >>> build("stable-maximum", epsilon=1, delta="1e-6", k=1, growth=None)
        StableMaximum(epsilon=1, delta=1e-06, neighbors='add-remove')
        >>> build("exponential", epsilon=1, rank=3)
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: rank=3 is not allowed: exponential does not take it. ...
    """
    check_name(name)
    entry = MECHANISMS[name]
    given = {option: value for option, value in options.items() if value is not None}
    if entry.pure and not entry.abstains and given.get("k", 1) == 1:
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
            raise ParameterError.required(option, f"{name} needs it")
    return entry.load()(**given)
