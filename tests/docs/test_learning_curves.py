"""The picture of docs/learning.md: its numbers are those stored, a part is computed again, and it
shows them.
"""

from __future__ import annotations

import copy
import functools
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import learning_curves as curves  # benchmarks are run from the project's root
from privmax.planning.theory import large_margin_gap

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join(
    (ROOT / "docs/learning.md")
    .read_text(encoding="utf-8")
    .split("## What theory promises")[1]
    .split()
)
STORED = curves.stored()
SIZES = STORED["settings"]["n"]


def row(name, contender):
    (found,) = [
        row for row in STORED["curves"] if (row["class"], row["contender"]) == (name, contender)
    ]
    return found


# The numbers


def test_the_result_names_its_command_and_nothing_of_the_machine():
    assert set(STORED["run"]) == {"command", "version", "source"}
    assert STORED["run"]["command"] == "./dev python -m benchmarks.learning_curves"
    assert STORED["run"]["command"] in PAGE
    assert str(ROOT) not in json.dumps(STORED)


def test_what_is_stored_is_what_would_be_computed():
    settings = STORED["settings"]
    assert settings["n"] == curves.SIZES
    assert (settings["hypotheses"], settings["samples"]) == (curves.HYPOTHESES, curves.SAMPLES)
    for name in curves.CLASSES:
        rungs = curves.ladder(name)
        assert settings["classes"][name] == [[float(error), count] for error, count in rungs]
        assert sum(count for _, count in rungs) == curves.HYPOTHESES
    assert [(row["class"], row["contender"]) for row in STORED["curves"]] == [
        (name, contender) for name in curves.CLASSES for contender in curves.LINES
    ]


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 10000])
@pytest.mark.parametrize("name", curves.CLASSES)
def test_a_part_is_computed_again(name, n):
    place = SIZES.index(n)
    samples = [curves.sample(name, n, number) for number in range(curves.SAMPLES)]
    for contender in curves.LINES:
        stored = row(name, contender)
        excesses = [curves.measured(curves.MECHANISMS.get(contender), seen) for seen in samples]
        found = (np.mean(excesses), min(excesses), max(excesses))
        assert found == pytest.approx(
            [stored[key][place] for key in ("mean", "least", "most")], rel=1e-6, abs=1e-9
        )


@pytest.mark.parametrize("contender", curves.MECHANISMS)
@pytest.mark.parametrize("name", curves.CLASSES)
def test_the_bounds_are_computed_again_and_kept_to(name, contender):
    stored = row(name, contender)
    for place, n in enumerate(SIZES):
        bound, by = curves.bound(contender, name, n)
        assert (stored["bound"][place], stored["by"][place]) == (bound and pytest.approx(bound), by)
        if bound is not None:
            assert stored["most"][place] <= bound


def test_an_excess_of_a_sample_written_out():
    seen = {30: (1, 0.0), 29: (2, 0.5), 0: (curves.HYPOTHESES - 3, 0.4 * (curves.HYPOTHESES - 3))}
    assert curves.measured(None, seen) == 0
    sharp = curves.Exponential(epsilon=20)
    best, next_best = 1.0, 2 * np.exp(-20)
    assert curves.measured(sharp, seen) == pytest.approx(0.25 * next_best / (best + next_best))
    nothing = curves.NestedMargin(epsilon="0.001", delta="1e-6")
    assert curves.measured(nothing, seen) == pytest.approx(0.4)


# The picture


def pixels(picture):
    return imread(io.BytesIO(picture), format="png")


def differs(left, right):
    """The share of pixels that are clearly another colour; another processor's logarithms may shade
    some edges.
    """
    assert left.shape == right.shape
    return float((np.abs(left - right).max(axis=2) > 0.2).mean())


@functools.cache
def redrawn():
    return pixels(curves.png(STORED))


def test_the_picture_shows_what_is_stored():
    file = ROOT / "docs/pictures/learning-curves.png"
    assert differs(redrawn(), pixels(file.read_bytes())) < 1e-4, (
        "./dev python -m benchmarks.learning_curves --redraw"
    )
    assert f"pictures/{file.name}" in PAGE


@pytest.mark.parametrize("key", ["mean", "bound"])
def test_a_picture_of_other_numbers_differs(key):
    result = copy.deepcopy(STORED)
    next(row for row in result["curves"] if row["contender"] == "large-margin")[key][-4] *= 1.3
    assert differs(redrawn(), pixels(curves.png(result))) > 2e-4


# The page


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
    sampling = STORED["settings"]["sampling"][-1]
    for words in (
        f"Lines are means over {curves.SAMPLES} samples of each size",
        f"2u: {sampling:.4f} of the {at('few', 'exponential', 10**6, 'bound'):.4f} at 10^6 "
        f"examples",
        f"it needs {found('large-margin')} examples to find the upper rungs, the others {others};",
        f"at 10^4 examples is {paper:.4f}, three times the {flip:.4f} of permute-and-flip",
        f"at {begins('few')} examples on the left and at {begins('many')} on the right",
    ):
        assert words in PAGE
    assert paper / flip == pytest.approx(3, abs=0.1)
    price = {"epsilon": curves.PRICE["epsilon"], "delta": curves.DELTA}
    assert large_margin_gap(**price, success="0.975") > 5000
    for name in curves.CLASSES:
        for contender in curves.MECHANISMS:
            for place, n in enumerate(SIZES):
                mean, bound = (
                    row(name, contender)["mean"][place],
                    row(name, contender)["bound"][place],
                )
                assert n < 10**4 or bound is None or 20 * mean < bound
                assert (
                    bound is None
                    or bound > 0.07
                    or bound < 2 * STORED["settings"]["sampling"][place]
                )
    left = [row("few", contender)["mean"] for contender in ("nested-margin", "permute-and-flip")]
    assert all(nested == pytest.approx(flip, rel=0.2) for nested, flip in zip(*left, strict=True))
    for n in SIZES:
        if n < 200_000:
            assert at("many", "nested-margin", n) == pytest.approx(0.133, abs=1e-3)
    assert at("many", "nested-margin", 464159) < 0.1
    assert at("many", "permute-and-flip", 21544) < 0.001
    assert {*row("many", "nested-margin")["by"]} == {"nothing"}
