"""What is said, on standard error, of a price that hardly protects anybody. It is allowed: somebody may know why."""

from __future__ import annotations

from fractions import Fraction

import click

from privmax.privacy import WEAK, Number, positive, probability, rounded_up

_LOG10_E = Fraction(434294, 10**6)


def caution(epsilon: Number, delta: Number, supports: Number | None = None) -> None:
    """Warn of a weak price, before anything is drawn; refuse what is none. Supports are paid on top of epsilon."""
    weak, chance = positive("epsilon", epsilon), probability("delta", delta)
    weak += 0 if supports is None else positive("supports", supports)
    if weak > WEAK.epsilon:
        power = int(weak * _LOG10_E)
        factor = f"10^{power}" if power <= 10**6 else "more than 10^1000000"
        _warn(
            f"epsilon {rounded_up(weak)} protects nobody. It lets one person's data make an answer {factor} times as "
            "likely. Usual prices lie between 0.1 and 3."
        )
    if chance > WEAK.delta:
        _warn(
            f"delta {rounded_up(chance)} is the chance that the guarantee does not hold at all. It should be far below "
            "one in the number of people. Usual is 1e-6."
        )


def _warn(message: str) -> None:
    click.echo(f"Warning: {message}", err=True)
