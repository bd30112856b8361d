"""`Release`, `Terms` and the one pipeline without a ledger (tests/ledger has it with one)."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import privmax
from privmax import (
    Exponential,
    LimitedDomain,
    NestedMargin,
    PermuteAndFlip,
    Privacy,
    Profile,
    SetMargin,
    SharpMargin,
    Universe,
    select,
    select_model,
    top_itemsets,
)
from privmax.counts import DiscreteLaplace
from privmax.errors import DataError, ParameterError, WorkError
from privmax.itemsets import PrivBasis
from privmax.learning import PrivateERM, Stumps
from privmax.ledger import Ledger
from privmax.ledger.events import Price
from privmax.mechanisms.contract import Outcome
from privmax.release import Release, Terms, answer
from privmax.sources.base import PlainSource

PRICE = {"epsilon": 1, "delta": "1e-6"}
CERTAIN = {"apple": 10**9, "pear": 12, "fig": 3}


# A release


def test_a_release_is_the_sequence_of_its_items():
    release = select({"a": 10**9, "b": 10**8, "c": 1}, **PRICE, k=2)
    assert list(release) == list(release.items) == ["a", "b"]
    assert len(release) == 2
    assert release


def test_a_release_of_nothing_is_false_and_empty():
    release = select({"a": 1}, **PRICE)
    assert (list(release), len(release), bool(release), release.item) == ([], 0, False, None)


def test_a_release_is_of_one_item_where_nobody_said_more():
    release = Release(("tea",), Privacy(1), Exponential(epsilon=1), "you chose it", {})
    assert release.requested == 1
    assert release.notes == ()


def test_counts_are_shown_with_their_error():
    given = Release(("tea",), Privacy(1), Exponential(epsilon=1), "you chose it", {})
    noise = DiscreteLaplace(scale=1)
    assert replace(given, counts=(12345,), noise=noise).describe_counts() == ["12,345 ± 3 (95 %)"]
    assert replace(given, counts=(1234.5678,)).describe_counts() == ["1,234.57"]


def test_counts_are_written_down_with_their_noise_and_read_again():
    bare = Release(("tea",), Privacy(1), Exponential(epsilon=1), "you chose it", {"near": 3})
    for counts, noise in (((), None), ((12345,), DiscreteLaplace(scale=2))):
        release = replace(bare, counts=counts, noise=noise)
        record = json.loads(json.dumps(release.to_record(str.upper)))
        assert record["items"] == ["TEA"]
        empty = replace(bare, items=(), diagnostics={})
        assert empty.with_answer(record, str.lower, None) == release


def test_a_release_as_a_dictionary_holds_all_of_it_and_can_be_written_as_json():
    release = select({"a": 10**9, "b": 1}, mechanism=SharpMargin(**PRICE))
    found = release.to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found == {
        "items": ["a"],
        "requested": 1,
        "ranked": True,
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
    assert "note" not in select(scores, **PRICE, k=2, ranked=True)._repr_html_()
    pairs = top_itemsets([["c", "d"]] * 9000 + [["a", "b"]] * 900, **PRICE, k=2)
    assert repr(pairs).startswith("ItemsetRelease(items=(('a', 'b'), ('c', 'd')), ")
    assert repr(pairs).endswith("ranked=False)")


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
    release = select(CERTAIN, **PRICE, mechanism="sharp-margin", k=2, growth=3, neighbors="replace")
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
        ({**PRICE, "mechanism": "gap-test", "k": 2, "ranked": True}, "ranked"),
        ({"mechanism": SetMargin(**PRICE, k=2), "ranked": True}, "ranked"),
        ({**PRICE, "k": 2, "ranked": 1}, "ranked"),
        ({"epsilon": 1, "mechanism": "exponential"}, "universe"),
        ({**PRICE, "mechanism": "nested-margin", "resolution": "0.5"}, "neighbors"),
    ],
)
def test_a_name_that_cannot_serve_is_refused(options, name):
    with pytest.raises(ParameterError) as caught:
        select(CERTAIN, **options)
    assert caught.value.name == name


# Terms


def test_terms_choose_once(monkeypatch):
    calls = []
    original = privmax.release.auto
    monkeypatch.setattr(
        privmax.release, "auto", lambda **options: calls.append(1) or original(**options)
    )
    terms = Terms(**PRICE)
    assert calls == []
    assert terms.choice is terms.choice
    assert terms.release().mechanism is terms.choice.mechanism
    assert terms.cost() == Price(Privacy(1, "1e-6"))
    assert calls == [1]


@pytest.mark.parametrize("k", [0, -1, 1.0, "1", True])
def test_terms_refuse_a_k_that_is_no_number_of_items(k):
    for options in (PRICE, {"given": Exponential(epsilon=1)}):
        with pytest.raises(ParameterError, match=r"^k="):
            Terms(**options, k=k)


@pytest.mark.parametrize(
    ("terms", "ranged"),
    [
        (Terms(given=Exponential(epsilon=1), unit="row"), True),
        (Terms(given=Exponential(epsilon=1, k=2), unit="row"), False),
        (Terms(given=PermuteAndFlip(epsilon=1), unit="row"), False),
    ],
)
def test_a_single_draw_of_the_exponential_mechanism_has_bounded_range(terms, ranged):
    assert terms.cost() == Price(Privacy(1), ranged=ranged, unit="row")


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
def test_terms_say_without_a_draw_what_the_mechanism_would_refuse(given, size, name, monkeypatch):
    terms = Terms(given=given, universe=Universe(size))
    with pytest.raises(ParameterError) as drawn:
        terms.draw(Sure(Profile([], universe=size)), privmax.noise.coins.SYSTEM)
    monkeypatch.setattr(type(given), "draw", None)
    monkeypatch.setattr(type(given), "ranking", None, raising=False)
    with pytest.raises(ParameterError) as caught:
        terms.check()
    assert caught.value.name == drawn.value.name == name
    assert str(caught.value) == str(drawn.value)


def test_a_set_is_released_where_no_order_is_asked_for():
    mechanism = SetMargin(**PRICE, k=2)
    assert Terms(given=mechanism).choice.mechanism is mechanism
    ordered = SharpMargin(**PRICE, k=2)
    assert Terms(given=ordered, ranked=True).choice.mechanism is ordered


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

    terms, source = Terms(given=Eager()), Foreign()
    terms.look(source)
    assert tried == []
    source.may_be_too_many = True
    with pytest.raises(WorkError, match="Too many"):
        terms.look(source)
    assert tried == [source.profile]


def test_a_mechanism_of_somebody_else_is_tried_once():
    with pytest.raises(DataError, match="It cannot draw"):
        Terms(given=Strange()).check()


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

    release = answer(Terms(**PRICE), read, warn=lambda: said.append("warn"))
    assert release.item == "it"
    assert said == ["read", "warn", "name", "close"]


def test_an_answer_with_a_ledger_is_drawn_once(tmp_path):
    said = []

    def read(stack):
        said.append("read")
        return Sure(Profile([(10**9, 1)]))

    with Ledger.create(tmp_path / "budget.db", budget=Privacy(3, "1e-5")) as ledger:
        found = [answer(Terms(**PRICE), read, ledger.request("first")) for _ in range(2)]
        assert ledger.spent == Privacy(1, "1e-6")
    assert found[0] == found[1]
    assert [(one.item, one.request, one.recorded is None) for one in found] == [
        ("it", "first", True),
        ("it", "first", False),
    ]
    assert said == ["read"]


def test_an_outcome_is_of_the_profile():
    assert Sure(Profile([(5, 1)])).name(Outcome(5)) == "it"
