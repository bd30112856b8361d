"""`Release`, `BestItems` and the pipeline without a ledger (tests/ledger has it with one)."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from by_name import by_name

import privmax
from privmax import (
    Exponential,
    LimitedDomain,
    NestedMargin,
    PermuteAndFlip,
    Privacy,
    Profile,
    RankedMargin,
    Scores,
    SetMargin,
    SharpMargin,
    Universe,
    select,
    select_model,
    top_itemsets,
)
from privmax.best_items import BestItems
from privmax.counts import DiscreteLaplace
from privmax.errors import DataError, ParameterError, WorkError
from privmax.itemsets import PrivBasis
from privmax.learning import PrivateERM, Stumps
from privmax.ledger import Ledger
from privmax.ledger.events import Charge
from privmax.mechanisms.contract import Outcome
from privmax.payload import Drawn, Record, ReleasedField
from privmax.relative import RelativeLaplace
from privmax.release import Release, answer
from privmax.sources.base import PlainSource

PRICE = {"epsilon": 1, "delta": "1e-6"}
CERTAIN = {"apple": 10**9, "pear": 12, "fig": 3}


# A release


def released(items=(), **drawn):
    return Release(Drawn(items, **drawn), Privacy(1), Exponential(epsilon=1), "you chose it")


def test_a_release_is_the_sequence_of_its_items():
    release = select({"a": 10**9, "b": 10**8, "c": 1}, **PRICE, k=2)
    assert list(release) == list(release.items) == ["a", "b"]
    assert len(release) == 2
    assert release


def test_a_release_of_nothing_is_false_and_empty():
    release = select({"a": 1}, **PRICE)
    assert (list(release), len(release), bool(release), release.item) == ([], 0, False, None)


def test_a_release_is_of_one_item_where_nobody_said_more():
    release = released(("tea",))
    assert release.requested == 1
    assert release.notes == ()


def test_counts_are_shown_with_their_error():
    noise = DiscreteLaplace(scale=1)
    counted = released(("tea",), counts=(12345,), noise=noise)
    assert counted.describe_counts() == ["12,345 ± 3 (95 %)"]
    assert released(("tea",), counts=(1234.5678,)).describe_counts() == ["1,234.57"]


def test_counts_are_written_down_with_their_noise_and_read_again():
    for counts, noise in ((None, None), ((12345,), DiscreteLaplace(scale=2))):
        drawn = Drawn(("tea",), {"near": 3}, counts, noise)
        record = json.loads(json.dumps(drawn.to_json(str.upper)))
        assert record["items"] == ["TEA"]
        assert ("counts" in record, "noise" in record) == (counts is not None, noise is not None)
        assert Drawn.from_json(record, str.lower) == drawn


@pytest.mark.parametrize("missing", ["items", "free"])
def test_a_record_without_items_or_diagnostics_is_refused(missing):
    record = Drawn(("tea",)).to_json()
    del record[missing]
    with pytest.raises(KeyError, match=missing):
        Drawn.from_json(record)


@dataclass(frozen=True)
class Wondrous(Drawn):
    """A payload with one field more."""

    wonder: int | None = None

    FIELDS = (
        *Drawn.FIELDS,
        ReleasedField.of(
            "wonder",
            record=Record("wonder", "wonder", lambda value, _: value, lambda value, _: value, True),
            words=lambda value: [f"{value} of them"],
        ),
    )


def test_a_new_field_is_described_once_and_is_then_everywhere():
    drawn = Wondrous(("tea",), wonder=7)
    release = replace(released(), payload=drawn)
    assert release.to_dict()["wonder"] == 7
    assert json.loads(release.to_json())["wonder"] == 7
    assert list(release.to_fields("answer"))[-1] == "wonder"
    assert "wonder=7, ranked=" in repr(release)
    assert "7 of them" in release._repr_html_()
    assert drawn.to_json()["wonder"] == 7
    assert Wondrous.from_json(drawn.to_json()) == drawn
    assert Wondrous.from_json(Drawn(("tea",)).to_json()).wonder is None  # recorded before there was


def test_a_release_as_a_dictionary_holds_all_of_it_and_can_be_written_as_json():
    release = select({"a": 10**9, "b": 1}, mechanism=SharpMargin(**PRICE))
    found = release.to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found == {
        "items": ["a"],
        "requested": 1,
        "ranked": False,  # one item has no order
        "counts": [],
        "error": None,
        "noise": None,
        "privacy": {"epsilon": "1", "delta": "1e-06"},
        "mechanism": repr(release.mechanism),
        "why": "you chose it",
        "diagnostics": dict(release.diagnostics),
        "request": None,
        "recorded": None,
        "unit": "user",
    }
    pairs = top_itemsets([["a", "b"]] * 900, **PRICE, supports="0.5")
    assert pairs.to_dict()["supports"] == list(pairs.supports)
    assert pairs.to_dict()["items"] == [("a", "b")]


def test_a_release_in_a_notebook_shows_what_was_released_and_no_markup_of_the_data():
    label = "<script>alert('x')</script>"
    shown = select({label: 10**9, "b": 77777}, **PRICE)._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "<script" not in shown
    assert "epsilon 1, delta 1e-06" in shown
    assert "77777" not in shown
    assert "no answer" in select({"a": 1}, **PRICE)._repr_html_()


def test_what_python_shows_of_a_set_says_that_it_has_no_order():
    scores = {"tea": 9000, "ale": 8000, "fig": 1}
    release = select(scores, **PRICE, k=3)
    assert repr(release).startswith("Release(items=('ale', 'tea'), privacy=Privacy(")
    assert ", requested=3, " in repr(release)
    assert repr(release).endswith("ranked=False)")
    assert release.to_dict().items() >= {"requested": 3, "ranked": False}.items()
    shown = release._repr_html_()
    for note in release.notes:
        assert note in shown
    pairs = top_itemsets([["c", "d"]] * 9000 + [["a", "b"]] * 900, **PRICE, k=2)
    assert repr(pairs).startswith("ItemsetRelease(items=(('a', 'b'), ('c', 'd')), ")
    assert repr(pairs).endswith("ranked=False)")


def test_a_ranked_list_says_that_its_order_is_noisy_and_that_counts_may_contradict_it():
    scores = {"tea": 9000, "ale": 8000, "fig": 7000}
    peeled = {**PRICE, "k": 2, "ranked": True, "mechanism": "sharp-margin"}
    release = select(scores, **peeled)
    order = "Best first, as drawn: items with close scores may be in the wrong order."
    contradict = "Counts have noise of their own and may contradict the order."
    assert release.notes == (order,)
    assert order in release._repr_html_()
    counted = select(scores, **peeled, counts=1)
    assert counted.notes == (order, contradict)
    for unordered in (select(scores, **PRICE, counts=1), select(scores, **PRICE, k=2, counts=1)):
        assert not {order, contradict} & set(unordered.notes)


NOISE = RelativeLaplace(scale=8)
"""Two counts are told apart from a difference of 33 on."""


def list_release(relative, **options):
    """A release of items whose order is made from noisy counts."""
    items = tuple(f"item {place}" for place in range(len(relative)))
    payload = Drawn(items, relative=relative, relative_noise=NOISE)
    mechanism = RankedMargin(**PRICE, k=5)
    return Release(payload, Privacy(1), mechanism, "", requested=5, **options)


def test_an_order_from_noisy_counts_says_which_neighbors_are_not_told_apart():
    assert NOISE.error() == 33
    release = list_release((0, -33, -67, -67))
    assert release.close == (False, True, False, True)
    assert release.describe_numbers() == [
        "first",
        "~ 33 behind ± 33",
        "67 behind ± 33",
        "~ 67 behind ± 33",
    ]
    marked = "Best first, by noisy counts. ~ marks an item too close to the one before."
    assert release.notes == (marked, "4 of 5 released: nothing else stood out.")
    assert marked in release._repr_html_()
    clear = list_release((0, -34))
    assert clear.close == (False, False)
    assert clear.notes[0] == "Best first, by noisy counts: each item is clearly ahead of the next."
    empty = list_release(())
    assert (empty.close, empty.notes, empty.describe_numbers()) == ((), (), [])
    assert "relative=(0, -34), relative_noise=" in repr(clear)


def test_equal_counts_are_not_told_apart_even_where_noise_is_nothing():
    noise = RelativeLaplace(scale="0.001")
    assert noise.error() == 0
    payload = Drawn(("a", "b", "c"), relative=(0, 0, -1), relative_noise=noise)
    assert replace(list_release((0, 0, 0)), payload=payload).close == (False, True, False)


def test_relative_counts_without_a_law_of_their_noise_are_not_compared():
    release = released(("tea", "ale"), relative=(0, -9))
    assert (release.apart, release.close, release.describe_order()) == (None, None, [])


def test_marks_follow_from_what_is_released_alone():
    """Equal payloads have equal marks: nothing else of the data is in a release."""
    first, second = list_release((0, -9, -90)), list_release((0, -9, -90))
    assert first == second
    assert first.close == second.close == (False, True, False)
    written = first.payload.to_json()
    assert written["relative"] == [0, -9, -90]
    assert Drawn.from_json(written) == first.payload


def test_neighbors_on_a_grid_are_compared_by_steps():
    """As floats, -0.7 - (-1.1) is above 0.4."""
    noise = RelativeLaplace(scale="0.1", step="0.1")
    apart = noise.error()
    for first in range(50):
        relative = tuple(noise.in_units(-steps) for steps in (0, first, first + round(apart * 10)))
        payload = Drawn(("a", "b", "c"), relative=relative, relative_noise=noise)
        assert replace(list_release((0, 0, 0)), payload=payload).close[2]


def test_no_difference_is_too_large_to_show():
    """It failed after the draw."""
    release = privmax.select(
        {"a": 1e308, "b": -1e308},
        universe=["a", "b"],
        k=2,
        epsilon=1,
        delta=1e-6,
        mechanism="ranked-margin",
        ranked=True,
        scores=privmax.Scores(sensitivity="1/2", neighbors="add-remove"),
    )
    assert release.relative == (0, -sys.float_info.max)


def test_a_complete_order_is_said_to_be_right():
    release = privmax.select(
        {"a": 900, "b": 500}, k=2, epsilon=1, delta=1e-6, ranked=True, mechanism="gap-test"
    )
    assert release.items == ("a", "b")
    assert release.notes[0].startswith("Best first: the order is right")


def test_only_orders_from_counts_have_the_fields_of_one():
    names = {"relative", "apart", "close"}
    scores = {"tea": 9000, "ale": 8000, "fig": 7000}
    found = select(scores, **PRICE, k=2, ranked=True)
    assert names <= json.loads(found.to_json()).keys()
    assert {*names, "relative_noise"} <= found.to_dict().keys()
    assert found.items == ("tea", "ale")
    assert abs(found.relative[1] + 1000) < 200
    for options in ({"k": 2}, {}, {"k": 2, "ranked": True, "mechanism": "gap-test"}):
        other = select(scores, **PRICE, **options)
        assert not names & json.loads(other.to_json()).keys()
        assert other.relative is None
        assert other.close is None
    grid = select(
        {"a": 900.5, "b": 1.25},
        epsilon=90,
        delta="1e-6",
        k=2,
        ranked=True,
        scores=Scores(sensitivity="1/2", neighbors="replace", resolution="1/4"),
    )
    assert grid.relative == (0, -899.25) or grid.items == ("a",)


def test_a_list_that_an_earlier_version_recorded_is_read_as_it_was():
    question = BestItems(**PRICE, k=2, ranked=True, given="sharp-margin")
    written = {"items": ["tea", "ale"], "free": {"near_maximizers": 1024}}
    release = question.release(question.read(written))
    assert (release.items, release.relative, release.close) == (("tea", "ale"), None, None)
    assert release.notes[0].startswith("Best first, as drawn")
    assert question.read(written).to_json() == written


@pytest.mark.parametrize("ranked", [False, True])
def test_one_item_has_no_order(ranked):
    release = select({"tea": 9000, "ale": 8000}, **PRICE, ranked=ranked)
    assert release.ranked is False
    assert json.loads(release.to_json())["ranked"] is False
    assert release.notes == ()
    listed = select({"tea": 9000, "ale": 1}, **PRICE, k=2, ranked=True)
    assert (listed.items, listed.ranked) == (("tea",), True)  # an order of fewer than two


def test_published_methods_give_a_list():
    baskets = [["a", "b"]] * 900 + [["a", "c"]] * 100
    asked = {"epsilon": 9, "items": ["a", "b", "c"], "k": 5, "mechanism": "blst10"}
    release = top_itemsets(baskets, **asked)
    assert (release.ranked, release.requested) == (True, 5)
    assert release.items[0] == ("a", "b")
    assert top_itemsets(baskets, **asked, ranked=True).ranked


# A mechanism by its name


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("nested-margin", NestedMargin(**PRICE)),
        ("sharp-margin", SharpMargin(**PRICE)),
        ("gap-test", privmax.GapTest(**PRICE)),
    ],
)
def test_a_mechanism_may_be_named(name, made):
    release = select(CERTAIN, **PRICE, mechanism=name)
    assert (release.item, release.mechanism, release.why) == ("apple", made, "you chose it")
    pair = top_itemsets([["a", "b"]] * 900, **PRICE, mechanism=name)
    assert (pair.item, pair.mechanism) == (("a", "b"), made)


def test_a_mechanism_that_is_named_takes_the_options_beside_it():
    release = select(
        CERTAIN,
        **PRICE,
        mechanism="sharp-margin",
        k=2,
        scores=Scores(growth=3, neighbors="replace"),
    )
    assert release.mechanism == SharpMargin(**PRICE, k=2, growth=3, neighbors="replace")
    closed = select(CERTAIN, epsilon=1, mechanism="exponential", universe=3)
    assert closed.mechanism == Exponential(epsilon=1)


def test_models_and_rules_take_names_too():
    bits = np.array([0, 1] * 90)
    models = {"good": lambda X: X, "bad": lambda X: 1 - X}
    best = select_model(models, bits, bits, epsilon=1, mechanism="exponential")
    assert (best.item, best.mechanism) == ("good", Exponential(epsilon=1))
    learner = PrivateERM(Stumps(low=0, high=1), 1, labels=[0, 1], mechanism="exponential")
    assert learner.fit(bits[:, None] * 1.0, bits).release_.mechanism == Exponential(epsilon=1)


def test_a_published_method_may_be_named():
    release = top_itemsets([["a", "b"]] * 9, epsilon=1, items=["a", "b"], mechanism="priv-basis")
    assert release.mechanism == PrivBasis(epsilon=1)
    with pytest.raises(ParameterError, match=r"^delta="):
        top_itemsets([], **PRICE, items=["a", "b"], mechanism="priv-basis")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({**PRICE, "mechanism": "NestedMargin"}, "mechanism"),
        ({"mechanism": "nested-margin"}, "epsilon"),
        ({"epsilon": 1, "mechanism": "nested-margin"}, "delta"),
        ({**PRICE, "mechanism": "limited-domain"}, "rank"),
        ({**PRICE, "mechanism": "stable-maximum", "k": 2}, "k"),
        ({**PRICE, "mechanism": "set-margin", "k": 2, "ranked": True}, "ranked"),
        ({"mechanism": SetMargin(**PRICE, k=2), "ranked": True}, "ranked"),
        ({**PRICE, "k": 2, "ranked": 1}, "ranked"),
        ({"epsilon": 1, "mechanism": "exponential"}, "universe"),
        ({**PRICE, "mechanism": "nested-margin", "resolution": "0.5"}, "neighbors"),
    ],
)
def test_a_name_that_cannot_serve_is_refused(options, name):
    with pytest.raises(ParameterError) as caught:
        by_name(select, CERTAIN, **options)
    assert caught.value.name == name


# A question


def test_a_question_chooses_once(monkeypatch):
    calls = []
    original = privmax.best_items.auto
    monkeypatch.setattr(
        privmax.best_items, "auto", lambda **options: calls.append(1) or original(**options)
    )
    question = BestItems(**PRICE)
    assert calls == []
    assert question.choice is question.choice
    assert question.release(Drawn()).mechanism is question.choice.mechanism
    assert question.charge() == Charge(Privacy(1, "1e-6"))
    assert calls == [1]


@pytest.mark.parametrize("k", [0, -1, 1.0, "1", True])
def test_a_question_refuses_a_k_that_is_no_number_of_items(k):
    for options in (PRICE, {"given": Exponential(epsilon=1)}):
        with pytest.raises(ParameterError, match=r"^k="):
            BestItems(**options, k=k)


@pytest.mark.parametrize(
    ("question", "bounded_range"),
    [
        (BestItems(given=Exponential(epsilon=1), unit="row"), True),
        (BestItems(given=Exponential(epsilon=1, k=2), unit="row"), False),
        (BestItems(given=PermuteAndFlip(epsilon=1), unit="row"), False),
    ],
)
def test_a_single_draw_of_the_exponential_mechanism_has_bounded_range(question, bounded_range):
    assert question.charge() == Charge(Privacy(1), bounded_range=bounded_range, unit="row")


@pytest.mark.parametrize(
    ("given", "size", "name"),
    [
        (PermuteAndFlip(epsilon=1), None, "universe"),
        (Exponential(epsilon=1, delta="1e-6", k=3), None, "universe"),
        (Exponential(epsilon=1, k=3), 2, "k"),
        (SharpMargin(**PRICE, k=3), 2, "k"),
        (LimitedDomain(**PRICE, rank=5, k=3), 2, "k"),
    ],
)
def test_a_question_says_without_a_draw_what_the_mechanism_would_refuse(
    given, size, name, monkeypatch
):
    question = BestItems(given=given, universe=Universe(size))
    with pytest.raises(ParameterError) as drawn:
        question.draw(Sure(Profile([], universe=size)), privmax.noise.coins.SYSTEM)
    monkeypatch.setattr(type(given), "draw", None)
    monkeypatch.setattr(type(given), "ranking", None, raising=False)
    with pytest.raises(ParameterError) as caught:
        question.check()
    assert caught.value.name == drawn.value.name == name
    assert str(caught.value) == str(drawn.value)


def test_a_set_is_released_where_no_order_is_asked_for():
    mechanism = SetMargin(**PRICE, k=2)
    assert BestItems(given=mechanism).choice.mechanism is mechanism
    ordered = SharpMargin(**PRICE, k=2)
    assert BestItems(given=ordered, ranked=True).choice.mechanism is ordered


class Sure(PlainSource):
    """A source of one name."""

    step = Fraction(1)

    def __init__(self, profile):
        self.profile = profile

    def names(self, outcomes):
        return [None if outcome.score is None else "it" for outcome in outcomes]


class Strange:
    """A mechanism of somebody else, that cannot draw at all."""

    neighbors, k, bounded_range = "add-remove", 1, False

    def draw(self, profile, coins):
        raise DataError("It cannot draw.")

    def privacy(self):
        return Privacy(1)


def test_a_draw_is_tried_before_the_charge_only_where_candidates_may_be_too_many():
    tried = []

    class Eager(Strange):
        def draw(self, profile, coins):
            tried.append(profile)
            raise WorkError("Too many.")

    class Foreign:
        """A source of somebody else, which does not say."""

        profile = Profile([(5, 1)])

    question, source = BestItems(given=Eager()), Foreign()
    question.preflight(source)
    assert tried == []
    source.may_be_too_many = True
    with pytest.raises(WorkError, match="Too many"):
        question.preflight(source)
    assert tried == [source.profile]


def test_a_mechanism_of_somebody_else_is_tried_once():
    with pytest.raises(DataError, match="It cannot draw"):
        BestItems(given=Strange()).check()


def test_an_answer_without_a_ledger_reads_draws_and_closes():
    said = []

    class Told(Sure):
        def names(self, outcomes):
            said.append("name")
            return super().names(outcomes)

    def read(stack):
        said.append("read")
        stack.callback(said.append, "close")
        return Told(Profile([(10**9, 1)]))

    release = answer(BestItems(**PRICE), read, warn=lambda: said.append("warn"))
    assert release.item == "it"
    assert said == ["read", "warn", "name", "close"]


def test_an_answer_with_a_ledger_is_drawn_once(tmp_path):
    said = []

    def read(stack):
        said.append("read")
        return Sure(Profile([(10**9, 1)]))

    with Ledger.create(tmp_path / "budget.db", budget=Privacy(3, "1e-5")) as ledger:
        found = [answer(BestItems(**PRICE), read, ledger.request("first")) for _ in range(2)]
        assert ledger.spent == Privacy(1, "1e-6")
    assert found[0] == found[1]
    assert [(one.item, one.request, one.recorded is None) for one in found] == [
        ("it", "first", True),
        ("it", "first", False),
    ]
    assert said == ["read"]


def test_an_outcome_is_of_the_profile():
    assert Sure(Profile([(5, 1)])).name(Outcome(5)) == "it"
