"""Figures and numbers of the notes, computed from exact laws and bounds.

    ./dev python -m lab.notes.figures [NOTE]     write those of all notes, or of one

Each figure is a file of LaTeX in lab/notes/figures/, drawn in plain PDF operators so that the notes
need no package for it. The same code gives the same bytes; tests/docs/test_notes.py compares.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from flint import arb

from privmax import GapTest, NestedMargin, Profile, SetMargin, StableMaximum
from privmax.keyset.budget import ONE, find_threshold
from privmax.keyset.rounds import KeyRounds
from privmax.noise.balls import START, ball, precision
from privmax.noise.tails import normal_tail
from privmax.repetition import RunCost, random_runs

FOLDER = Path(__file__).parent / "figures"

DASHES = ("[] 0", "[4 2] 0", "[1 2] 0", "[6 2 1 2] 0")
"""How the lines of a figure are told apart, also in print: PDF's patterns of dashes."""

WIDTH, HEIGHT = 250.0, 130.0
"""Of the area of a figure inside its axes, in PDF units."""

LINE = 14.0
"""The distance between two lines of the legend."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Lines over common axes, with a legend beside them."""

    lines: Mapping[str, Points]
    x_label: str
    y_label: str
    x_ticks: Sequence[float]
    y_ticks: Mapping[float, str]
    logarithmic: bool = False

    def tex(self) -> str:
        """Return the figure as LaTeX."""
        parts = [
            "% Written by lab/notes/figures.py.",
            r"\setlength{\unitlength}{1bp}\small",
            f"\\begin{{picture}}({WIDTH + 170:g},{HEIGHT + 50:g})(-40,-30)",
            self._stroke([(0, HEIGHT), (0, 0), (WIDTH, 0)], "0.6 w"),
        ]
        for x in self.x_ticks:
            place = self._across(x)
            parts += [
                self._stroke([(place, 0), (place, -3)], "0.6 w"),
                f"\\put({place:.1f},-14){{\\makebox(0,0)[b]{{${x:g}$}}}}",
            ]
        for y, label in self.y_ticks.items():
            place = self._up(y)
            parts += [
                self._stroke([(0, place), (-3, place)], "0.6 w"),
                f"\\put(-6,{place:.1f}){{\\makebox(0,0)[r]{{{label}}}}}",
            ]
        parts += [
            f"\\put({WIDTH / 2:g},-28){{\\makebox(0,0)[b]{{{self.x_label}}}}}",
            f"\\put(-36,{HEIGHT + 12:g}){{\\makebox(0,0)[l]{{{self.y_label}}}}}",
        ]
        for place, ((label, points), dash) in enumerate(
            zip(self.lines.items(), DASHES, strict=False)
        ):
            path = [(self._across(x), self._up(y)) for x, y in points]
            height = HEIGHT - LINE * place
            parts += [
                self._stroke(path, f"1 w {dash} d"),
                self._stroke([(WIDTH + 8, height), (WIDTH + 32, height)], f"1 w {dash} d"),
                f"\\put({WIDTH + 37:g},{height:g}){{\\makebox(0,0)[l]{{{label}}}}}",
            ]
        return "\n".join([*parts, r"\end{picture}", ""])

    def _across(self, x: float) -> float:
        low, high = self.x_ticks[0], self.x_ticks[-1]
        return WIDTH * (x - low) / (high - low)

    def _up(self, y: float) -> float:
        low, high = min(self.y_ticks), max(self.y_ticks)
        if self.logarithmic:
            low, high, y = math.log(low), math.log(high), math.log(max(y, low))
        return HEIGHT * (y - low) / (high - low)

    @staticmethod
    def _stroke(path: Points, style: str) -> str:
        moves = " ".join(
            f"{x:.1f} {y:.1f} {'l' if place else 'm'}" for place, (x, y) in enumerate(path)
        )
        return f"\\put(0,0){{\\pdfliteral{{q {style} {moves} S Q}}}}"


def gap_test() -> dict[str, str]:
    """How often the best item is released by its lead, and public numbers of the test."""
    test = GapTest(epsilon=1, delta=1e-6)
    rivals = {
        "gap test": test,
        "noisy distance": StableMaximum(epsilon=1, delta=1e-6),
        "NestedMargin": NestedMargin(epsilon=1, delta=1e-6),
    }
    leads = range(1, 31)
    lines = {
        name: [(0, 0.0)]
        + [
            (lead, mechanism.law(Profile([(200 + lead, 1), (200, 1)])).of(200 + lead))
            for lead in leads
        ]
        for name, mechanism in rivals.items()
    }
    plot = Plot(
        lines=lines,
        x_label="lead of the best item over the second, in records",
        y_label="probability",
        x_ticks=range(0, 31, 5),
        y_ticks={0: "$0$", 0.5: "$.5$", 1: "$1$"},
    )
    numbers = define(
        GapTurn=(test.certain() - 1) // 2,
        GapCertain=test.certain(),
        GapLead=test.lead(candidates=None),
    )
    return {"gap-test": plot.tex(), "gap-test-numbers": numbers}


def keys_rounds() -> dict[str, str]:
    """How often own keys pass, at two thresholds, and the public numbers of rounds."""
    rounds = KeyRounds(epsilon=1, delta=1e-6, per_user=30, slots=30)
    used = rounds.last
    variance = used.variance / ONE**2
    passing = float((1 - Fraction(1, 10)) * Fraction(4, 10) * rounds.delta)
    alone = find_threshold(variance, Fraction(passing), 1, equal=True)
    counts = range(1, 31)

    def passes(threshold: int, number: int) -> float:
        with precision(START):
            distance = ball(Fraction(threshold, ONE)) - 1 / arb(number).sqrt()
            return float((number * normal_tail(distance / ball(variance).sqrt())).mid())

    lines = {
        "for one key": [(count, passes(alone, count)) for count in counts],
        "used": [(count, passes(used.threshold, count)) for count in counts],
        r"$\delta_j$": [(1, passing), (30, passing)],
    }
    plot = Plot(
        lines=lines,
        x_label="keys that one individual gives to, $t$",
        y_label="expected number of own keys that pass",
        x_ticks=(0, 5, 10, 15, 20, 25, 30),
        y_ticks={10.0**-power: f"$10^{{-{power}}}$" for power in (5, 6, 7, 8)},
        logarithmic=True,
    )
    thresholds = [round(one.threshold / ONE) for one in (*rounds.looks, rounds.last)]
    numbers = define(
        KeysSigma=f"{float(rounds.sigma):.2f}",
        KeysThresholds="{}, {} and {}".format(*thresholds),
        KeysWorst=f"{max(y for _, y in lines['for one key']) / passing:.1f}",
    )
    return {"keys-rounds": plot.tex(), "keys-rounds-numbers": numbers}


def set_margin() -> dict[str, str]:
    """How often the best ten are released by their lead, and leads for several sizes."""
    test, cascade = (kind(epsilon=1, delta=1e-6, k=10) for kind in (GapTest, SetMargin))
    leads = range(1, 41)

    def best(mechanism: GapTest | SetMargin, lead: int, others: int) -> float:
        law = mechanism.sets(Profile([(200 + lead, 10), (200, others)]))[None]
        return math.fsum(chance for key, chance in law.chances.items() if key[:2] == (10, 0))

    lines = {
        label: [(0, 0.0), *((lead, best(mechanism, lead, others)) for lead in leads)]
        for label, mechanism, others in (
            ("gap test", test, 10),
            ("cascade, ten others", cascade, 10),
            ("cascade, 1000 others", cascade, 1000),
        )
    }
    plot = Plot(
        lines=lines,
        x_label="lead of the best ten over the others, in records",
        y_label="probability",
        x_ticks=range(0, 41, 5),
        y_ticks={0: "$0$", 0.5: "$.5$", 1: "$1$"},
    )
    needed = [SetMargin(epsilon=1, delta=1e-6, k=k).lead(candidates=None) for k in (5, 10, 20)]
    numbers = define(
        SetLeads="{}, {} and {}".format(*needed), SetGapLead=test.lead(candidates=None)
    )
    return {"set-margin": plot.tex(), "set-margin-numbers": numbers}


def repetition() -> dict[str, str]:
    """What the best of a random number of pure runs costs."""
    run, means = RunCost(1), (2, 3, 4, 5, 7, 10, 14, 20, 30, 40, 50)

    def cost(law: str, mean: int) -> float:
        epsilon = random_runs(law, mean).epsilon(run, Fraction(0))
        assert epsilon is not None
        return float(epsilon)

    lines = {
        law: [(mean, cost(law, mean)) for mean in means] for law in ("geometric", "logarithmic")
    }
    plot = Plot(
        lines=lines,
        x_label="expected number of runs",
        y_label=r"$\varepsilon$ of the best",
        x_ticks=(0, 10, 20, 30, 40, 50),
        y_ticks={1: "$1$", 2: "$2$", 3: "$3$"},
    )
    numbers = define(
        RepetitionGeometric=f"{cost('geometric', 10):.2f}",
        RepetitionLogarithmic=f"{cost('logarithmic', 10):.2f}",
    )
    return {"repetition": plot.tex(), "repetition-numbers": numbers}


NOTES: Mapping[str, Callable[[], dict[str, str]]] = {
    "gap-test": gap_test,
    "keys-rounds": keys_rounds,
    "repetition": repetition,
    "set-margin": set_margin,
}


def define(**numbers: object) -> str:
    """Return numbers as LaTeX commands."""
    lines = [f"\\newcommand{{\\{name}}}{{{number}}}" for name, number in numbers.items()]
    return "\n".join(["% Written by lab/notes/figures.py.", *lines, ""])


def main(names: Sequence[str]) -> int:
    FOLDER.mkdir(exist_ok=True)
    for name in names or NOTES:
        for file, text in NOTES[name]().items():
            (FOLDER / f"{file}.tex").write_text(text, encoding="utf-8")
            print(f"lab/notes/figures/{file}.tex")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
