"""Every mechanism by name, with all that other files list about it.

`privmax`, plans, audits, help, pages, the navigation of the site and tests read this: a new
mechanism is listed nowhere else. Classes are loaded when they are asked for. A mechanism that
is here must pass the contract in tests/exact/test_contract.py, which says what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from privmax.errors import ParameterError, refuse_given
from privmax.mechanisms.entries import LastDraw, MechanismEntry
from privmax.numbers import probability
from privmax.privacy import ADD_REMOVE, REPLACE

if TYPE_CHECKING:
    from privmax.mechanisms.contract import Mechanism
    from privmax.mechanisms.guards import Guards
    from privmax.mechanisms.large_margin import LargeMargin
    from privmax.mechanisms.limited_domain import LimitedDomain
    from privmax.mechanisms.max_of_laplaces import MaxOfLaplaces
    from privmax.mechanisms.nested_margin import NestedMargin
    from privmax.mechanisms.ranked_margin import RankedMargin
    from privmax.mechanisms.set_margin import SetMargin
    from privmax.mechanisms.sharp_margin import SharpMargin


def _make_small_guards() -> Guards:
    """Guards that small data sets get past."""
    from privmax.mechanisms.guards import Guards

    return Guards((1, 2), (1, 1), share="0.2")


def _bound_by_universe(mechanism: Mechanism, universe: int | None) -> LastDraw:
    assert universe is not None, "a pure draw needs a closed universe"
    return LastDraw(universe, mechanism.privacy().epsilon, mechanism.neighbors)


def _bound_by_laplaces(mechanism: MaxOfLaplaces, universe: int | None) -> LastDraw:
    return _bound_by_universe(mechanism, universe)._replace(noise="laplace")


def _bound_by_third_stage(mechanism: LargeMargin, universe: int | None) -> LastDraw:
    """Its third stage, whose constants are those of replace whatever the relation."""
    near = mechanism.cap if universe is None else universe
    return LastDraw(near, mechanism.epsilon / 3, REPLACE)


def _bound_by_last_rank(mechanism: SharpMargin, universe: int | None) -> LastDraw:
    rank, _ = mechanism.options(universe)[-1]
    return LastDraw(rank, mechanism.draw_epsilon(), mechanism.neighbors)


def _bound_by_last_level(mechanism: NestedMargin, universe: int | None) -> LastDraw:
    return LastDraw(mechanism.levels(universe)[-1], mechanism.draw_epsilon(), mechanism.neighbors)


def _bound_by_stages(mechanism: SetMargin, universe: int | None) -> LastDraw:
    """The widest of all draws, at their least epsilon: a stage that is a test releases the best."""
    draws = [one for one in mechanism.budgets(universe) if one[0].width > one[0].size]
    widest = max((stage.width for stage, _ in draws), default=1)
    least = min((stage.tilt * left for stage, left in draws), default=mechanism.epsilon)
    candidates = widest if universe is None else min(widest, universe)
    return LastDraw(candidates, least, mechanism.neighbors)


def _bound_by_members(mechanism: RankedMargin, universe: int | None) -> LastDraw:
    return _bound_by_stages(mechanism.members, universe)


def _bound_by_rank(mechanism: LimitedDomain, universe: int | None) -> LastDraw:
    rank = mechanism.rank if universe is None else min(mechanism.rank, universe)
    return LastDraw(rank, mechanism.epsilon, mechanism.neighbors)


def _bound_at_zero(mechanism: Mechanism, universe: int | None) -> LastDraw:
    return LastDraw(1, mechanism.privacy().epsilon, mechanism.neighbors, noise="none")


OPEN_REASON = "the universe is open"
"""The reason for a mechanism that needs no list of candidates, as in `Release.why`."""

_PURE = {"epsilon": 1}
_SMALL = {"epsilon": 1, "delta": "0.05"}
_PAPER = {"epsilon": 6, "delta": "0.3", "cap": 5}
"""Costs at which small data sets have an answer now and then."""

MECHANISMS: Mapping[str, MechanismEntry] = {
    "exponential": MechanismEntry(
        name="Exponential",
        home="exponential",
        title="Exponential",
        serves="closed universes; the best k in order, because its draws compose well",
        does="draws an item, likelier the better it is",
        needs="the universe",
        abstains=False,
        example=_PURE,
        last_draw=_bound_by_universe,
        claim=r"$\varepsilon$",
        statement=r"draw $i$ with probability proportional to "
        r"$\exp(\varepsilon \cdot \tilde{q}_i / c)$",
    ),
    "permute-and-flip": MechanismEntry(
        name="PermuteAndFlip",
        home="permute_and_flip",
        title="Permute-and-flip",
        serves="one item of a closed universe of up to about 1/delta candidates",
        does="draws an item, likelier the better it is",
        needs="the universe",
        abstains=False,
        example=_PURE,
        slow="in lists",
        last_draw=_bound_by_universe,
        claim=r"$\varepsilon$",
        statement=r"accept candidate $i$ with probability $p_i = \exp(-\varepsilon \cdot d_i / c)$",
    ),
    "max-of-laplaces": MechanismEntry(
        name="MaxOfLaplaces",
        home="max_of_laplaces",
        title="Max of Laplaces",
        serves="comparisons: the noisy maximum that other libraries have, in closed universes",
        does="adds noise to every declared item and takes the largest",
        needs="the universe",
        abstains=False,
        example=_PURE,
        last_draw=_bound_by_laplaces,
        claim=r"$\varepsilon$",
        statement=r"independent real-valued Laplace noise $L_i$ of scale $c/\varepsilon$",
    ),
    "joint-exponential": MechanismEntry(
        name="JointExponential",
        home="joint_exponential",
        title="Joint exponential",
        serves="the best k of a closed universe in order, by one draw of the whole list",
        does="draws the whole list at once, likelier the better it is",
        needs="the universe",
        abstains=False,
        requires={"k": 1},
        example=_PURE,
        for_lists=True,
        claim=r"$\varepsilon$, for a whole list",
        statement=r"\text{ of different candidates with weight } "
        r"\exp(-\varepsilon \cdot \mathrm{shortfall}/(2c))",
    ),
    "large-margin": MechanismEntry(
        name="LargeMargin",
        home="large_margin",
        title="Large margin",
        serves="the paper's mechanism, which also releases an estimate of the maximum",
        does="the paper's way to find a clear winner without a list of items",
        needs="nothing",
        abstains=False,
        example=_PAPER,
        slow="at a small epsilon",
        last_draw=_bound_by_third_stage,
        claim=r"$(\varepsilon, \delta)$: the paper's mechanism, and corrections to the paper",
        statement=r"\text{draw } i \text{ from the top } \ell \text{ with weight } "
        r"\exp(\varepsilon q_i/6)",
    ),
    "large-margin-truncated": MechanismEntry(
        name="LargeMarginTruncated",
        home="large_margin_truncated",
        title="Large margin, truncated",
        serves="the paper's mechanism with its original third stage",
        does="the paper's way to find a clear winner without a list of items",
        needs="nothing",
        abstains=False,
        example=_PAPER,
        slow="at a small epsilon",
        last_draw=_bound_by_third_stage,
        claim=r"$(\varepsilon, \delta)$: the paper's with its original third stage",
        statement=r"Z_i \text{ exponential of scale } 6/\varepsilon "
        r"\text{ given that } Z_i \le \tau",
    ),
    "sharp-margin": MechanismEntry(
        name="SharpMargin",
        home="sharp_margin",
        title="Sharp margin",
        serves="the best k of an open universe in order",
        does="finds clear winners one by one without a list of items",
        needs="nothing",
        abstains=True,
        example={**_SMALL, "guards": _make_small_guards},
        companions=("guards.Guards", "guards.FEW", "guards.DYADIC"),
        last_draw=_bound_by_last_rank,
        claim=r"$(\varepsilon, \delta)$: ours",
        statement=r"\text{pick } j \text{ with weight } "
        r"p_j \cdot \exp(-(\varepsilon_1/c) \cdot \mathrm{threshold}_j)",
    ),
    "nested-margin": MechanismEntry(
        name="NestedMargin",
        home="nested_margin",
        title="Nested margin",
        serves="one item of an open universe, or of a closed one beyond 10^8 candidates",
        does="finds a clear winner without a list of items",
        needs="nothing",
        abstains=True,
        example={**_SMALL, "ranks": (1, 3)},
        companions=("nested_margin.FOURFOLD",),
        last_draw=_bound_by_last_level,
        claim=r"$(\varepsilon, \delta)$: ours, the sharpest",
        statement=r"P(i) = w_i / \min\{N_j : i \in H_j\}",
    ),
    "set-margin": MechanismEntry(
        name="SetMargin",
        home="set_margin",
        title="Set margin",
        serves="the best k as a set, in any universe",
        does="finds the best items as a set",
        needs="nothing",
        abstains=True,
        example=_SMALL,
        companions=("stages.Stage",),
        for_lists=True,
        last_draw=_bound_by_stages,
        claim=r"$(\varepsilon, \delta)$: ours, the best $k$ as a set",
        statement=r"w(S) = \exp(a \cdot m(S) - b \cdot M(S))",
    ),
    "ranked-margin": MechanismEntry(
        name="RankedMargin",
        home="ranked_margin",
        title="Ranked margin",
        serves="the best k in order, with how far apart they are, in any universe",
        does="finds the best items and sorts them by noisy counts",
        needs="nothing",
        abstains=True,
        example=_SMALL,
        for_lists=True,
        last_draw=_bound_by_members,
        claim=r"$(\varepsilon, \delta)$: ours, the best $k$ in order",
        statement=r"y_i = q_i + N_i, \quad \text{released: } y_i - y_{\mathrm{first}}",
    ),
    "limited-domain": MechanismEntry(
        name="LimitedDomain",
        home="limited_domain",
        title="Limited domain",
        serves="a known number of candidates near the top",
        does="draws an item from the first ranks",
        needs="how many near maximizers there can be",
        abstains=True,
        requires={"rank": 2},
        example=_SMALL,
        last_draw=_bound_by_rank,
        claim=r"$(\varepsilon, \delta)$",
        statement=r"\bot \text{ with weight } \exp(\varepsilon \cdot \mathrm{threshold}/c)",
    ),
    "stable-maximum": MechanismEntry(
        name="StableMaximum",
        home="stable_maximum",
        title="Stable maximum",
        serves="comparisons: a single winner by a distance test; the gap test needs a smaller lead",
        does="releases the best item if it leads by enough",
        needs="that there is one winner",
        abstains=True,
        example=_SMALL,
        last_draw=_bound_at_zero,
        claim=r"$(\varepsilon, \delta)$",
        statement=r"\text{release the best candidate iff the distance test at } \varepsilon "
        r"\text{ passes at } d",
    ),
    "gap-test": MechanismEntry(
        name="GapTest",
        home="gap_test",
        title="Gap test",
        serves="a known number of winners: no mechanism needs a smaller lead",
        does="releases the best items if they lead by enough",
        needs="that there is one winner",
        needs_many="that there are {k:,} winners",
        needs_order="that each leads the next",
        abstains=True,
        example=_SMALL,
        last_draw=_bound_at_zero,
        claim=r"$(\varepsilon, \delta)$, and optimal for the best $k$ or nothing",
        statement=r"\pi(n+1) = \min\{ e^{\varepsilon} \cdot \pi(n) + \delta, "
        r"\; 1 - e^{-\varepsilon} \cdot (1 - \pi(n) - \delta), \; 1 \}",
    ),
    "choosing": MechanismEntry(
        name="Choosing",
        home="choosing",
        title="Choosing",
        serves="comparisons: counts where one record touches few candidates",
        does="draws an item that has a score, likelier the better it is",
        needs="how many candidates one record touches",
        abstains=True,
        requires={"growth": 1},
        example=_SMALL,
        claim=r"$(\varepsilon, \delta)$, for records that touch few candidates",
        statement=r"q_{(1)} + Z \ge T, \quad Z \text{ discrete Laplace of scale } s/x",
    ),
}
"""The mechanisms by the names that Python and the command line know them by."""


def public_names() -> dict[str, str]:
    """The module of each public name of all mechanisms and what goes with them.

    Examples:
        >>> public_names()["DYADIC"]
        'privmax.mechanisms.guards'
    """
    return {name: home for entry in MECHANISMS.values() for name, home in entry.public.items()}


def names_requiring(parameter: str) -> list[str]:
    """The mechanisms that cannot be made without a parameter.

    Examples:
        >>> names_requiring("rank")
        ['limited-domain']
    """
    return [name for name, entry in MECHANISMS.items() if parameter in entry.requires]


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


def describe_mechanism(mechanism: object, why: str) -> str:
    """Describe a mechanism in words, its name last and a reason that the words do not imply.

    Args:
        mechanism: What drew the answer.
        why: Why it was used, as `Release.why` says.

    Examples:
        >>> describe_mechanism(build("permute-and-flip", epsilon=1), "delta is 0")
        'draws an item, likelier the better it is (PermuteAndFlip: delta is 0)'
        >>> describe_mechanism(build("gap-test", epsilon=1, delta="1e-6"), OPEN_REASON)
        'releases the best items if they lead by enough (GapTest)'
        >>> describe_mechanism(object(), "you chose it")
        'you chose it (object)'
    """
    name = registered_name(mechanism)
    if name is None:
        return f"{why} ({type(mechanism).__name__})"
    reason = why.removeprefix(OPEN_REASON).removeprefix("; ")
    return f"{MECHANISMS[name].does} ({MECHANISMS[name].name}{reason and f': {reason}'})"


def check_name(name: str, option: str = "mechanism", others: Collection[str] = ()) -> None:
    """Refuse what is not the name of a mechanism, and say which one may be meant.

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
            needed is left out, and so is `ranked` where what is released does not depend on it.

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
    if entry.needs_closed and given.get("k", 1) == 1:
        given.pop("delta", None)
    if "ranked" not in entry.parameters:
        given.pop("ranked", None)
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
