"""The story of `privmax demo`: one made-up data set, every mechanism, exact probabilities, one real release.

The data is invented by formula, so its scores and laws may be shown. Never print a law of private data.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from privmax.audit import audit
from privmax.mechanisms.base import Mechanism
from privmax.mechanisms.exponential import Exponential
from privmax.mechanisms.large_margin import LargeMargin
from privmax.mechanisms.nested_margin import NestedMargin
from privmax.mechanisms.permute_and_flip import PermuteAndFlip
from privmax.privacy import REPLACE, Privacy
from privmax.profile import Profile
from privmax.select import select

EPSILON, DELTA = 1, "1e-6"
UNIVERSES: tuple[tuple[str, int | None], ...] = (
    ("a thousand", 10**3),
    ("10^6", 10**6),
    ("10^12", 10**12),
    ("10^30", 10**30),
    ("10^100", 10**100),
    ("unknown", None),
)


def searches() -> dict[str, int]:
    """How many (invented) people typed each query: one clear favourite, then a long tail."""
    first = ("rain", "trail", "running", "winter", "garden", "kids", "leather", "summer", "work", "party")
    second = ("boots", "jacket", "shoes", "gloves", "hat", "socks", "scarf", "belt", "coat", "tent")
    words = [f"{a} {b}" for b in second for a in first]
    counts = {word: 100 // (rank + 4) for rank, word in enumerate(words)}
    return {**counts, words[0]: 60}


def tell(console: Console) -> None:
    """Print the whole story."""
    data = searches()
    ranked = sorted(data.values(), reverse=True)
    mechanisms: list[tuple[str, Mechanism]] = [
        ("exponential", Exponential(epsilon=EPSILON)),
        ("permute & flip", PermuteAndFlip(epsilon=EPSILON)),
        ("the paper's", LargeMargin(epsilon=EPSILON, delta=DELTA)),
        ("nested (ours)", NestedMargin(epsilon=EPSILON, delta=DELTA)),
    ]
    console.print(
        f"\n[bold]What did most people search for?[/bold]  {len(data)} queries were seen (invented data, so we may "
        f"look): the favourite by {ranked[0]} people, the next by {ranked[1]}. Many more could have been typed.\n"
    )
    console.print(_chances(data, mechanisms))
    console.print(_leads(mechanisms))
    _release(console, data)
    _audit(console)


def _chances(data: dict[str, int], mechanisms: list[tuple[str, Mechanism]]) -> Table:
    table = Table(title=f"Exact probability of releasing the favourite, at ε = {EPSILON}, δ = {DELTA}")
    table.add_column("could be typed")
    for name, _ in mechanisms:
        table.add_column(name, justify="right")
    levels = [(score, list(data.values()).count(score)) for score in set(data.values())]
    for label, size in UNIVERSES:
        row = [_percent(mechanism.law(Profile(levels, universe=size)).best()) if _serves(mechanism, size) else "–"
               for _, mechanism in mechanisms]  # fmt: skip
        table.add_row(label, *row)
    return table


def _leads(mechanisms: list[tuple[str, Mechanism]]) -> Table:
    table = Table(title="By how many people the favourite must lead to be released 95 % of the time")
    table.add_column("could be typed")
    for name, _ in mechanisms:
        table.add_column(name, justify="right")
    for label, size in UNIVERSES:
        row = [str(mechanism.lead(candidates=size)) if _serves(mechanism, size) else "–" for _, mechanism in mechanisms]
        table.add_row(label, *row)
    return table


def _release(console: Console, data: dict[str, int]) -> None:
    release = select(data, epsilon=EPSILON, delta=DELTA)
    answer = f"“{release.item}”" if release.item is not None else "nothing could be released"
    console.print(f"\n[bold]A real release[/bold]  privmax.select(searches, epsilon={EPSILON}, delta={DELTA})")
    console.print(f"  item       {answer}")
    console.print(f"  privacy    {release.privacy}")
    console.print(f"  mechanism  {type(release.mechanism).__name__}: {release.why}")


def _audit(console: Console) -> None:
    honest = audit(NestedMargin(epsilon=1, delta="0.01", ranks=(1, 2)), universe="open")
    wrong = audit(Exponential(epsilon=1), neighbors=REPLACE, claim=Privacy(1))
    console.print("\n[bold]Checked exactly, over all neighbours of small data sets[/bold]")
    console.print(
        f"  NestedMargin at δ = 0.01           worst δ found {honest.delta:.4f} in {honest.pairs} pairs: holds"
    )
    console.print(f"  monotone constants under replace   worst δ found {wrong.delta:.4f} (0 claimed): caught")
    console.print()


def _serves(mechanism: Mechanism, size: int | None) -> bool:
    """A pure mechanism cannot serve an open universe."""
    return size is not None or mechanism.privacy().delta > 0


def _percent(chance: float) -> str:
    return f"{100 * chance:.1f} %" if chance >= 0.0005 else "0 %"
