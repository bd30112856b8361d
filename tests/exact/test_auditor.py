"""The audit itself: laws that are none, violations that hide behind numerical errors, losses
without bound.

Each broken mechanism here is broken in one way only, and each sound one looks broken in one way
only.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

import privmax
from privmax import Choosing, Exponential, LargeMargin, LimitedDomain, PermuteAndFlip, Privacy
from privmax.mechanisms.contract import ROUNDING, Law, PartialJoint
from privmax.mechanisms.registry import MECHANISMS, build


class Given(Exponential):
    """An `Exponential` by name, whose law is `given(levels)`; levels are (score, number), the best
    first.
    """

    def __init__(self, given, **options):
        super().__init__(epsilon=options.pop("epsilon", 1), **options)
        object.__setattr__(self, "given", given)

    def joint(self, profile):
        window = profile.window(10**6)
        levels = [(window.top - depth, count) for depth, count in window.blocks()]
        found = self.given(levels)
        return found if isinstance(found, dict) else {None: found}


def law(levels, chances, none=0.0, error=ROUNDING, **options):
    """A law from the probability of each level."""
    blocks = tuple(
        (score, count, chance) for (score, count), chance in zip(levels, chances, strict=True)
    )
    return Law(blocks, none, error, **options)


def flat(levels):
    """All candidates alike: nothing depends on the data."""
    size = sum(count for _, count in levels)
    return [count / size for _, count in levels]


# A law must be a law.


def argmax(share):
    def given(levels):
        return law(levels, [share, *[0.0] * (len(levels) - 1)])

    return given


def test_an_argmax_whose_law_adds_up_to_less_than_1_is_broken_and_says_on_which_data():
    found = privmax.audit(Given(argmax(0.6), epsilon="0.1"))
    assert not found.holds
    assert found.delta == 1
    first, _ = found.pair
    assert found.fault == (
        f"The law of the scores {first} is not a probability distribution: it adds up to 0.6, and "
        f"its stated error "
        "allows for 9e-13 only."
    )


@pytest.mark.parametrize(
    ("chances", "told"),
    [
        ([0.7, 0.7], "adds up to 1.4"),
        ([0.5, 0.5 + 1e-9], r"adds up to 1 \+ 1e-09, and its stated error allows for 2e-12 only"),
        ([0.5, 0.5 - 1e-9], r"adds up to 1 − 1e-09"),
        ([1.5, -0.5], "it has a probability of 1.5"),
        (
            [1.0, -1e-9],
            r"it has a probability of -1e-09, and its stated error allows for 9e-13 only",
        ),
        ([math.nan, 0.5], "it has a probability of nan"),
        ([math.inf, 0.5], "it has a probability of inf"),
    ],
)
def test_numbers_that_are_no_probabilities_are_told(chances, told):
    found = privmax.audit(Given(lambda levels: law(levels, chances)), scores=[(2, 0)], growth=1)
    assert not found.holds
    assert re.search(told, found.fault), found.fault


def test_an_error_without_bound_excuses_nothing():
    found = privmax.audit(Given(lambda levels: law(levels, flat(levels), error=math.inf)))
    assert not found.holds
    assert "an error of inf" in found.fault


def test_a_law_that_is_off_by_no_more_than_it_states_is_one():
    def given(levels):
        return law(levels, [chance * (1 - 1e-9) for chance in flat(levels)], error=1e-9)

    found = privmax.audit(Given(given))
    assert found.holds
    assert found.fault is None


def test_probability_on_somebody_who_does_not_exist_is_missing_elsewhere():
    def given(levels):
        size = sum(count for _, count in levels)
        return Law(
            ((99, 1, 0.5), *((score, count, 0.5 * count / size) for score, count in levels)),
            0.0,
            ROUNDING,
        )

    assert "adds up to 0.5" in privmax.audit(Given(given)).fault


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_a_law_that_is_broken_on_one_data_set_only_is_found_there(neighbors):
    def given(levels):
        share = 0.9 if levels == [(4, 1), (3, 1), (1, 1)] else 1.0
        return law(levels, [share * chance for chance in flat(levels)])

    found = privmax.audit(Given(given, neighbors=neighbors))
    assert not found.holds
    assert sorted(found.pair[0]) == [1, 3, 4]
    assert f"of the scores {found.pair[0]} " in found.fault


class _Shortened(Exponential):
    """Forgets one in ten lists."""

    def sequences(self, profile):
        return {free: lists.scale(0.9) for free, lists in super().sequences(profile).items()}


def test_a_law_of_lists_must_add_up_as_well():
    assert "adds up to 0.9" in privmax.audit(_Shortened(epsilon=1, k=2)).fault


# Errors belong to their own pair.


def leaning(error_elsewhere):
    """One pair, (9, 0) and (8, 0), needs a delta of 1e-6; the law of data without a 9 or an 8
    states some error.
    """

    def given(levels):
        best = levels[0][0]
        if best == 9 and len(levels) == 2:
            return law(levels, [0.5 + 1e-6, 0.5 - 1e-6], error=1e-13)
        return law(levels, flat(levels), error=1e-13 if best >= 8 else error_elsewhere)

    return Given(given)


@pytest.mark.parametrize("error_elsewhere", [1e-13, 1e-3])
def test_a_violation_is_not_covered_by_the_error_of_another_pair(error_elsewhere):
    options = {"scores": [(3, 0), (9, 0)], "growth": 1, "claim": Privacy("1e-9", "1e-7")}
    found = privmax.audit(leaning(error_elsewhere), **options)
    assert not found.holds
    assert found.delta == pytest.approx(1e-6, rel=0.01)
    assert found.error < 1e-11
    assert set(found.pair) & {(9, 0), (9, 1)}
    assert found.most >= error_elsewhere


def stating(error):
    return Given(lambda levels: law(levels, flat(levels), error=error))


@pytest.mark.parametrize(
    ("error", "claim", "holds"),
    [
        (0.5, Privacy("1e-9"), False),
        (0.01, Privacy("1e-9"), False),
        (1e-5, Privacy("1e-9"), False),
        (1e-8, Privacy("1e-9"), True),
        (1e-5, Privacy("1e-9", "0.001"), True),
        (0.01, Privacy("1e-9", "0.001"), False),
    ],
)
def test_errors_in_which_a_violation_might_hide_are_no_proof_of_the_claim(error, claim, holds):
    found = privmax.audit(stating(error), claim=claim)
    assert found.delta == 0
    assert error <= found.most
    assert (found.holds, found.undecided) == (holds, not holds)
    assert holds or "too large to decide" in found.fault


def test_a_law_that_leaves_everything_out_is_no_proof_of_the_claim():
    found = privmax.audit(Given(lambda levels: PartialJoint({}, 1.0)))
    assert (found.holds, found.undecided, found.most) == (False, True, 1)
    assert "Compute the laws more exactly" in found.fault


def test_what_the_laws_leave_in_doubt_is_told_though_the_claim_holds():
    found = privmax.audit(stating(1e-8), claim=Privacy("1e-9"))
    assert found.holds
    assert 1e-8 < found.most < 1e-6
    assert privmax.audit(stating(0.0), claim=Privacy("0.001")).most < 1e-300


def test_a_violation_comes_before_a_larger_delta_in_doubt():
    def given(levels):
        if levels[0][0] >= 8:
            return law(levels, [0.9, 0.1] if levels[0][0] == 9 else [0.5, 0.5], error=0.2)
        return law(levels, [0.6, 0.4] if levels[0][0] == 3 else flat(levels), error=1e-13)

    found = privmax.audit(
        Given(given), scores=[(9, 0), (3, 0)], growth=1, claim=Privacy("0.001", "0.05")
    )
    assert not found.holds
    assert 3 in found.pair[0] + found.pair[1]
    assert found.delta == pytest.approx(0.1, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_bounds_of_every_mechanism_hold_its_delta(name):
    delta = None if MECHANISMS[name].pure else "0.3"
    needed = dict.fromkeys(MECHANISMS[name].requires, 2)
    mechanism = build(name, epsilon=6, delta=delta, **needed)
    found = privmax.audit(mechanism, candidates=2, highest=2)
    assert 0 <= found.least <= found.delta <= found.most
    assert found.most <= found.claim.delta + 1e-6


# Without delta: outcomes that are impossible, and ratios of rare ones.


def rarely(rare, *, seldom, **options):
    """The lowest candidate has the probability `rare`, and `seldom` on the scores (9, 8, 5); all
    others are alike.
    """

    def given(levels):
        *others, _ = levels
        last = seldom if [score for score, _ in levels] == [9, 8, 5] else rare
        return law(levels, [*((1 - last) * chance for chance in flat(others)), last], **options)

    return Given(given)


PAIR = {"scores": [(9, 8, 6)], "growth": 1}
"""Of which (9, 8, 5) is a neighbour; the lowest is one candidate alone on all of them."""

EXACT = {"relative": ROUNDING}


@pytest.mark.parametrize("rare", [1e-3, 1e-11, 1e-12, 1e-15, 1e-300])
def test_a_candidate_that_is_never_named_on_a_neighbour_breaks_a_claim_without_delta_however_rare(
    rare,
):
    assert privmax.audit(rarely(rare, seldom=rare, **EXACT), claim=Privacy("0.01"), **PAIR).holds
    found = privmax.audit(rarely(rare, seldom=0.0, **EXACT), claim=Privacy(10), **PAIR)
    assert not found.holds
    assert found.tightness == math.inf
    assert found.delta == pytest.approx(rare)
    assert found.pair == ((9, 8, 6), (9, 8, 5))


def test_a_law_that_states_an_absolute_error_alone_shows_who_is_missing_down_to_that_error():
    assert not privmax.audit(rarely(1e-12, seldom=0.0), **PAIR).holds
    assert not privmax.audit(rarely(1e-11, seldom=0.0, error=1e-12), **PAIR).holds
    assert privmax.audit(
        rarely(1e-13, seldom=0.0), **PAIR
    ).holds  # may be 0 itself, as far as it says


def test_a_candidate_that_is_never_named_though_it_has_no_block_at_all():
    def given(levels):
        if [score for score, _ in levels] != [9, 8, 5]:
            return rarely(1e-12, seldom=0, **EXACT).given(levels)
        return law(levels[:2], [0.5, 0.5], **EXACT)

    found = privmax.audit(Given(given), **PAIR)
    assert not found.holds
    assert found.tightness == math.inf


@pytest.mark.parametrize("rare", [1e-3, 1e-13, 1e-200])
def test_a_ratio_is_compared_where_it_is_rare(rare):
    for times, holds in ((2.7, True), (2.8, False), (1e6, False)):
        found = privmax.audit(rarely(rare, seldom=rare / times, **EXACT), **PAIR)
        assert found.holds == holds, times
        assert found.tightness == pytest.approx(math.log(times), abs=0.01)


def test_a_ratio_of_numbers_that_may_both_be_rounding_shows_nothing():
    assert privmax.audit(rarely(1e-13, seldom=1e-16), **PAIR).holds


@pytest.mark.parametrize("leak", [1e-3, 1e-13, 1e-200])
def test_what_is_released_beside_the_item_on_one_data_set_only_breaks_a_claim_without_delta(leak):
    def given(levels):
        plain = law(levels, flat(levels), **EXACT)
        if levels[0][0] != 9:
            return {"quiet": plain}
        return {"quiet": plain.scale(1 - leak), "leak": plain.scale(leak)}

    found = privmax.audit(Given(given), claim=Privacy(20), **PAIR)
    assert not found.holds
    assert found.tightness == math.inf


class _NeverLast(Exponential):
    """Lists that never end with the lowest candidate where the best leads it by 4: they were rare
    anyway.
    """

    def sequences(self, profile):
        [lists] = super().sequences(profile).values()
        depth = lists.blocks[0][0] - lists.blocks[-1][0]
        chances = dict(lists.chances)
        first, *_, rarest = sorted(chances, key=chances.get, reverse=True)
        whole = chances[first] + chances[rarest]
        chances[rarest] = 1e-13
        chances[first] = whole - 1e-13
        if depth == 4:
            del chances[rarest]
        return {None: replace(lists, chances=chances)}


def test_a_list_that_is_missing_is_found_as_well():
    found = privmax.audit(_NeverLast(epsilon=1, k=2), claim=Privacy(30), **PAIR)
    assert not found.holds
    assert found.tightness == math.inf


def test_naming_whoever_nobody_has_seen_breaks_a_claim_without_delta():
    """In an open universe a candidate at 0 cannot be named, so whoever is named when seen was
    impossible before.
    """

    def given(levels):
        seen = [(score, count) for score, count in levels if count]
        if not seen:
            return law(levels, [0.0], none=1.0, **EXACT)
        chances = [1e-20 * chance for chance in flat(seen)]
        return law(levels, [*chances, *[0.0] * (len(levels) - len(seen))], none=1.0, **EXACT)

    found = privmax.audit(Given(given), universe="open", claim=Privacy(20))
    assert not found.holds
    assert found.tightness == math.inf
    assert privmax.audit(Given(given), universe="open", claim=Privacy(20, "1e-15")).holds


# No false alarms.


def test_weights_that_underflow_are_not_impossible():
    """e^(−depth) is a float down to a depth of 745; below that the law says 0 of what is
    possible.
    """

    def given(levels):
        weights = [count * math.exp(score - levels[0][0]) for score, count in levels]
        return law(levels, [weight / math.fsum(weights) for weight in weights], **EXACT)

    depths = [700, 708, 709, 744, 745, 746, 760, 2000]
    assert privmax.audit(Given(given), scores=[(depth, depth, 0) for depth in depths]).holds
    assert not privmax.audit(Given(given, epsilon="0.9"), scores=[(700, 700, 0)]).holds
    assert not privmax.audit(Given(given), scores=[(700, 700, 0)], claim=Privacy("0.99")).holds


def test_a_rest_that_rounds_to_0_is_not_impossible():
    """A count far above 0 passes its test with a probability that rounds to 1, and nothing is left
    of the rest.
    """
    mechanism = Choosing(epsilon=1, delta="1e-6", growth=1)
    assert mechanism.law(privmax.Profile([(150, 1)])).none == 0
    clear = [(count,) for count in range(60, 160)]
    assert privmax.audit(mechanism, universe="open", scores=clear, claim=Privacy("0.5")).holds
    assert not privmax.audit(mechanism, universe="open", scores=clear, claim=Privacy("0.49")).holds


def test_rounding_of_a_rest_is_not_taken_for_a_probability():
    def given(levels):
        chances = flat(levels)
        return law(levels, chances, none=1.2e-16 if levels[0][0] % 2 else 0.0)

    assert privmax.audit(Given(given)).holds


def test_values_that_a_law_leaves_out_are_not_impossible():
    """The paper's estimate of the maximum has every integer as its value; its law lists those that
    are not too rare.
    """
    mechanism = LargeMargin(epsilon=6, delta="0.3")
    assert privmax.audit(mechanism, candidates=1, claim=Privacy(6)).holds
    assert privmax.audit(mechanism, candidates=1, claim=Privacy(2)).holds  # its third of the price
    assert not privmax.audit(mechanism, candidates=1, claim=Privacy("1.9")).holds


def test_more_than_a_law_may_leave_out_is_found():
    def given(levels):
        plain = law(levels, flat(levels))
        return PartialJoint({levels[0][0] % 2: plain}, left_out=1e-6)

    found = privmax.audit(Given(given), claim=Privacy(1, "0.1"))
    assert not found.holds
    assert found.delta == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        Exponential(epsilon=1),
        Exponential(epsilon=20),
        PermuteAndFlip(epsilon=20),
        privmax.MaxOfLaplaces(epsilon=20),
        privmax.JointExponential(epsilon=20, k=2),
        Exponential(epsilon=20, k=2),
        LimitedDomain(epsilon=2, delta="1e-6", rank=3),
    ],
    ids=repr,
)
def test_rare_outcomes_of_pure_mechanisms_stay_within_the_price(mechanism):
    far = [(40, 40, 0), (40, 39, 38), (1000, 0, 0), (17, 16, 0)]
    assert privmax.audit(mechanism, scores=far, claim=Privacy(mechanism.epsilon)).holds
    assert not privmax.audit(mechanism, scores=far, claim=Privacy(mechanism.epsilon * 3 / 10)).holds


def test_what_laws_state_of_small_probabilities():
    """A relative error and true zeros are promises of their own: here they are looked at in higher
    precision.
    """
    profile = privmax.Profile([(40, 1), (3, 1), (0, 1)], universe=3)
    law_here = Exponential(epsilon=1).law(profile)
    assert (law_here.relative, law_here.true_zeros) == (ROUNDING, True)
    floor = law_here.blocks[-1][0]
    assert law_here.of(0) == pytest.approx(
        math.exp(floor - 40) / (1 + 2 * math.exp(floor - 40)), rel=1e-15
    )
    assert Exponential(epsilon=1).law(profile).scale(0.5).relative == ROUNDING
    assert not privmax.NestedMargin(epsilon=1, delta="1e-6").law(profile).true_zeros
