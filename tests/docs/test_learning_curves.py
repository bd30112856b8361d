"""The picture of lab/learning-results.md: it quotes what is stored; bounds are computed again."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from privmax import Exponential, LargeMargin, NestedMargin, PermuteAndFlip
from privmax.learning.bounds import Shells, exponential_excess, shell_excess
from privmax.planning.theory import large_margin_gap

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join(
    (ROOT / "lab/learning-results.md")
    .read_text(encoding="utf-8")
    .split("## What theory promises")[1]
    .split()
)
STORED = json.loads(
    (ROOT / "lab/benchmarks/results/paper-learning.json").read_text(encoding="utf-8")
)
SETTINGS = STORED["settings"]
SIZES = SETTINGS["n"]
PRICE = {"epsilon": SETTINGS["epsilon"], "neighbors": SETTINGS["neighbors"]}
DELTA, SUCCESS = SETTINGS["delta"], SETTINGS["success"]
MECHANISMS = {
    "exponential": Exponential(**PRICE),
    "permute-and-flip": PermuteAndFlip(**PRICE),
    "large-margin": LargeMargin(**PRICE, delta=DELTA),
    "nested-margin": NestedMargin(**PRICE, delta=DELTA),
}
CLASSES = ("few", "many")


def row(name, contender):
    (found,) = [
        row for row in STORED["curves"] if (row["class"], row["contender"]) == (name, contender)
    ]
    return found


def ladder(name):
    """True errors: a tenth, and from there up to a half in halves."""
    rungs = [(Fraction(1, 10), 1)]
    rungs += [(Fraction(1, 10) + Fraction(2, 5) / 2**rung, None) for rung in range(18, 0, -1)]
    rungs += [(Fraction(1, 2), None)]
    counts = [count for _, count in SETTINGS["classes"][name]]
    assert sum(counts) == SETTINGS["hypotheses"] == 10**12
    errors = [error for error, _ in rungs]
    assert [float(error) for error in errors] == [error for error, _ in SETTINGS["classes"][name]]
    return list(zip(errors, counts, strict=True))


@pytest.mark.parametrize("contender", MECHANISMS)
@pytest.mark.parametrize("name", CLASSES)
def test_the_bounds_are_computed_again_and_kept_to(name, contender):
    found = row(name, contender)
    for place, n in enumerate(SIZES):
        if contender == "exponential":
            excess = exponential_excess(n=n, hypotheses=10**12, **PRICE, success=SUCCESS)
            bound, by = (excess, "class") if excess < 1 else (None, "nothing")
        else:
            promise = shell_excess(
                Shells(ladder(name)), n=n, mechanism=MECHANISMS[contender], success=SUCCESS
            )
            bound, by = None if promise.by == "nothing" else promise.excess, promise.by
        assert (found["bound"][place], found["by"][place]) == (bound and pytest.approx(bound), by)
        if bound is not None:
            assert found["most"][place] <= bound


def test_the_page_names_the_command_and_the_picture():
    assert STORED["runs"][0]["command"] in PAGE
    assert "pictures/learning-curves.png" in PAGE


def test_the_page_says_what_is_seen():
    def at(name, contender, n, key="mean"):
        return row(name, contender)[key][SIZES.index(n)]

    def found(contender):
        """The first size at which the excess is that of the upper rungs and not of the crowd."""
        return next(
            n for n, mean in zip(SIZES, row("few", contender)["mean"], strict=True) if mean < 0.1
        )

    def begins(name):
        return SIZES[row(name, "large-margin")["by"].index("shell")]

    (others,) = {
        found(contender) for contender in ("exponential", "permute-and-flip", "nested-margin")
    }
    paper, flip = (
        at("many", contender, 10000) for contender in ("large-margin", "permute-and-flip")
    )
    sampling = SETTINGS["sampling"][-1]
    for words in (
        f"Lines are means over {SETTINGS['samples']} samples of each size",
        f"2u: {sampling:.4f} of the {at('few', 'exponential', 10**6, 'bound'):.4f} at 10^6 "
        f"examples",
        f"it needs {found('large-margin')} examples to find the upper rungs, the others {others};",
        f"at 10^4 examples is {paper:.4f}, three times the {flip:.4f} of permute-and-flip",
        f"at {begins('few')} examples on the left and at {begins('many')} on the right",
    ):
        assert words in PAGE
    assert paper / flip == pytest.approx(3, abs=0.1)
    price = {"epsilon": PRICE["epsilon"], "delta": DELTA}
    assert large_margin_gap(**price, success="0.975") > 5000
    for name in CLASSES:
        for contender in MECHANISMS:
            for place, n in enumerate(SIZES):
                mean, bound = (
                    row(name, contender)["mean"][place],
                    row(name, contender)["bound"][place],
                )
                assert n < 10**4 or bound is None or 20 * mean < bound
                assert bound is None or bound > 0.07 or bound < 2 * SETTINGS["sampling"][place]
    left = [row("few", contender)["mean"] for contender in ("nested-margin", "permute-and-flip")]
    assert all(nested == pytest.approx(flip, rel=0.2) for nested, flip in zip(*left, strict=True))
    for n in SIZES:
        if n < 200_000:
            assert at("many", "nested-margin", n) == pytest.approx(0.133, abs=1e-3)
    assert at("many", "nested-margin", 464159) < 0.1
    assert at("many", "permute-and-flip", 21544) < 0.001
    assert {*row("many", "nested-margin")["by"]} == {"nothing"}
