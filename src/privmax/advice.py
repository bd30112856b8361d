"""Next steps after "no answer", each only where it applies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from privmax.numbers import plain
from privmax.privacy import REPLACE

if TYPE_CHECKING:  # the help of a command imports this file, and must not wait for NumPy
    from privmax.release import Release
    from privmax.universe import Universe

NO_ANSWER = "no answer: no {} stood out enough"
"""The message of a release without items; to be filled in with the name of an item."""


def next_steps(
    release: Release,
    *,
    universe: Universe | None = None,
    floor: int = 0,
    spell: Callable[[str], str] = str,
) -> list[str]:
    """Return advice for a release without items, in sentences. None of it depends on the data.

    Args:
        release: The release.
        universe: The universe it was asked in; None: not known.
        floor: The public floor it was asked with, if any.
        spell: Writes the name of an option.

    Examples:
        >>> import privmax
        >>> release = privmax.select({"rare": 1}, epsilon=1, delta=1e-6)
        >>> for step in next_steps(release, universe=privmax.Universe()):
        ...     print(step)
        See how clear a winner must be: privmax plan --epsilon 1 --delta 1e-06
        Ask again with a larger epsilon; every request has its own privacy cost.
        If there is a public list of candidates, declare the universe; delta 0 then works.
    """
    from privmax.groups import GroupedRelease
    from privmax.mechanisms.registry import registered_name
    from privmax.planning.plans import is_planned

    known = registered_name(release.mechanism) is not None
    if known:
        what, command = "how clear a winner must be", plan_command(release, universe)
    else:
        what = "how many individuals it takes"
        command = getattr(release.mechanism, "plan_command", "")
    steps = []
    if command and is_planned(release.mechanism.privacy().epsilon):
        steps.append(f"See {what}: {command}")
    steps.append(
        f"Ask again with a larger {spell('epsilon')}; every request has its own privacy cost."
    )
    if release.requested > 1:
        steps.append(f"Ask for fewer than {release.requested} ({spell('k')}).")
    if release.requested > 1 and release.ranked:
        steps.append(f"Leave out {spell('ranked')}: a set needs a smaller lead than an order.")
    if floor:
        steps.append(f"Lower {spell('floor')}, now {floor}: nothing at or below it can stand out.")
    if isinstance(release, GroupedRelease):  # in groups the universe is always open
        if release.notes_on_groups:
            steps.append(
                f"If there is a public list of groups, declare it ({spell('groups')}): finding "
                "them then takes no part of the cost."
            )
    elif known and universe is not None and universe.is_open:
        declare = "declare the universe" if spell is str else f"give {spell('universe')}"
        steps.append(
            f"If there is a public list of candidates, {declare}; {spell('delta')} 0 then works."
        )
    elif known and universe is not None and release.mechanism.privacy().delta:
        steps.append(
            f"Use {spell('delta')} 0: the universe is known, so there is always an answer."
        )
    return steps


def plan_command(release: Release, universe: Universe | None = None) -> str:
    """Return the command that plans a release like this one."""
    from privmax.profile import LARGEST_UNIVERSE
    from privmax.universe import OPEN_UNIVERSE

    mechanism, cost = release.mechanism, release.mechanism.privacy()
    size = (universe or OPEN_UNIVERSE).size
    parts = [f"privmax plan --epsilon {plain(cost.epsilon)}"]
    parts += [f"--delta {plain(cost.delta)}"] if cost.delta else []
    parts += [f"--universe {size}"] if size is not None and size <= LARGEST_UNIVERSE else []
    parts += [f"--neighbors {REPLACE}"] if mechanism.neighbors == REPLACE else []
    parts += [f"--k {mechanism.k}"] if mechanism.k > 1 else []
    parts += ["--ranked"] if mechanism.k > 1 and release.ranked else []
    return " ".join(parts)
