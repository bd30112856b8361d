"""`maximize`: the paper's problem as stated, on data with a certain answer, and what it refuses."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction

import pytest
from by_name import by_name

import privmax
from privmax import DataError, Ledger, ParameterError, Privacy, maximize
from privmax.errors import BudgetError
from privmax.maximization import TOLERANCE, _Grid
from privmax.testing import SeededCoins

PRICE = {"epsilon": 1, "delta": "1e-6"}


def share(i, data):
    """Example (1) of the paper."""
    return sum(entry >= i for entry in data) / len(data)


class Shares:
    """The same over all whole numbers from 1 on: the data says which are above a value."""

    def best(self, data):
        return 1 if data else None

    def above(self, value, data):
        ordered = sorted(data)
        found = []
        for i in range(1, ordered[-1] + 1):
            if Fraction(len(ordered) - bisect_left(ordered, i), len(ordered)) > value:
                found.append(i)
        return found


def test_the_papers_example_with_everybody_at_one():
    release = maximize(share, range(1, 10**4), [1] * 500, **PRICE)
    assert release.item == 1
    assert release.privacy == Privacy(1)
    assert release.mechanism.neighbors == "replace"


def test_the_papers_example_with_everybody_at_two():
    """Items 1 and 2 tie: the test of Smith and Thakurta fails, the paper's mechanism does not."""
    data = [2] * 1000
    found = {
        maximize(share, 100, data, **PRICE, mechanism="large-margin", coins=SeededCoins(seed)).item
        for seed in range(20)
    }
    assert found <= {0, 1, 2}
    assert len(found) > 1
    paper = maximize(share, range(1, 100), data, **PRICE, mechanism="large-margin")
    assert paper.item in (1, 2)
    assert paper.diagnostics["near_maximizers"] == 2
    tested = maximize(share, range(1, 100), data, **PRICE, mechanism="stable-maximum")
    assert tested.item is None


def test_estimates_come_back_in_the_units_of_f():
    release = maximize(share, range(1, 50), [1] * 2000, **PRICE, mechanism="large-margin")
    assert release.diagnostics["near_maximizers"] == 1
    assert release.diagnostics["max_estimate"] == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("n", [3, 7, 300, 10**6 + 3])
def test_shares_are_counted_exactly_whatever_floats_make_of_them(n):
    grid = _Grid.of(n, None, None, [])
    for k in {0, 1, 2, n // 3, n // 2, n - 1, n}:
        assert grid.scores(lambda item, _: item / n, None)(k) == k
        assert grid.scores(lambda item, _: Fraction(item, n), None)(k) == k
    assert grid.scale.steps == 1
    assert grid.scale.step == Fraction(1, n)


def test_a_value_between_two_multiples_is_refused_unless_a_grid_is_declared():
    data = [1] * 100

    def between(item, data):
        return item / 100 + 0.0049

    with pytest.raises(DataError, match="multiple of lipschitz") as caught:
        maximize(between, [1, 2, 90], data, **PRICE)
    assert "0.9049" not in str(caught.value)
    assert maximize(between, [1, 2, 90], data, **PRICE, resolution="0.0001").item == 90
    near = 0.5 + float(TOLERANCE) / 300
    assert _Grid.of(100, None, None, []).scores(lambda *_: near, None)(0) == 50


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "many", True, 1j])
def test_a_value_that_is_not_a_number_is_refused_and_not_quoted(value):
    with pytest.raises(DataError) as caught:
        maximize(lambda item, data: value, ["a", "b"], [0], **PRICE)
    assert str(caught.value) == "A value of f is not a finite number."


def test_an_oracle_serves_an_infinite_universe():
    data = [3] * 700 + [1] * 300
    release = maximize(share, Shares(), data, **PRICE)
    assert release.item == 1  # it leads items 2 and 3 by 300
    crowd = {
        maximize(share, Shares(), [3] * 900, **PRICE, coins=SeededCoins(seed)).item
        for seed in range(40)
    }
    assert crowd == {1, 2, 3}
    assert maximize(share, Shares(), [1] * 5, **PRICE, coins=SeededCoins(1)).item is None


def test_an_oracle_draws_like_the_list_of_the_same_items():
    """Same profile, same mechanism, same coins."""
    data = [5] * 40 + [4] * 30 + [2] * 60
    for seed in range(30):
        options = {"mechanism": "nested-margin", **PRICE}
        by_oracle = maximize(share, Shares(), data, **options, coins=SeededCoins(seed))
        counts = {i: sum(entry >= i for entry in data) for i in range(1, 6)}
        listed = by_name(
            privmax.select,
            counts,
            **options,
            coins=SeededCoins(seed),
            scores=privmax.Scores(neighbors="replace"),
        )
        assert by_oracle.item == listed.item


class Twice(Shares):
    """Finds items in another order, some of them twice and in another spelling."""

    def above(self, value, data):
        return [*map(float, super().above(value, data)), *super().above(value, data)][::-1]


def test_what_the_oracle_names_follows_from_the_items_alone():
    data = [5] * 40 + [4] * 30 + [2] * 60
    for seed in range(20):
        coins = [SeededCoins(seed), SeededCoins(seed)]
        first, second = (
            maximize(share, oracle, data, **PRICE, coins=coin)
            for oracle, coin in zip((Shares(), Twice()), coins, strict=True)
        )
        assert first.item == second.item
        assert type(first.item) is type(second.item)


def test_an_oracle_needs_a_delta():
    with pytest.raises(ParameterError, match="delta"):
        maximize(share, Shares(), [1] * 9, epsilon=1)


def test_the_budget_is_asked_before_the_function_is_called(tmp_path):
    def never(item, data):
        raise AssertionError("called")

    with Ledger.create(tmp_path / "b.db", budget=Privacy("0.5", "1e-6")) as ledger:
        with pytest.raises(BudgetError):
            maximize(never, [1, 2], [0], **PRICE, ledger=ledger)
        assert ledger.spent == Privacy(0)


def test_a_request_is_answered_once(tmp_path):
    with Ledger.create(tmp_path / "b.db", budget=Privacy(3, "1e-5")) as ledger:
        request = ledger.request("best")
        first = maximize(share, range(1, 9), [1] * 500, **PRICE, ledger=request)
        again = maximize(share, range(1, 9), [8] * 500, **PRICE, ledger=request)
        assert first.item == again.item == 1
        assert ledger.spent == Privacy(1)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"n": 0}, "n"),
        ({"n": 5, "lipschitz": "0.2"}, "n"),
        ({"lipschitz": 0}, "lipschitz"),
        ({"resolution": -1}, "resolution"),
        ({"neighbors": "swap"}, "neighbors"),
        ({"mechanism": "best"}, "mechanism"),
        ({"epsilon": 0}, "epsilon"),
    ],
)
def test_every_bad_argument_is_refused_by_name(options, name):
    with pytest.raises(ParameterError) as caught:
        maximize(share, [1, 2], [1, 2], **{**PRICE, **options})
    assert caught.value.name == name


def test_bad_universes_and_data_without_a_length():
    with pytest.raises(ParameterError, match="universe"):
        maximize(share, iter([1, 2]), [1], **PRICE)
    with pytest.raises(ParameterError, match="universe"):
        maximize(share, [1, 1], [1], **PRICE)
    with pytest.raises(ParameterError, match="n is required"):
        maximize(share, [1, 2], iter([1]), **PRICE)


def test_progress_is_shown_only_where_asked_for(capsys):
    maximize(share, range(1, 5), [1] * 99, **PRICE)
    assert capsys.readouterr().err == ""
    maximize(share, range(1, 5), [1] * 99, **PRICE, verbose=True)


@pytest.mark.parametrize(
    "options",
    [{"neighbors": "add-remove", **PRICE}, {"mechanism": privmax.LargeMargin(**PRICE)}],
)
def test_under_add_remove_the_length_of_the_data_is_not_used(options):
    """Estimates would be multiples of one over a private number."""
    with pytest.raises(ParameterError, match="n is required"):
        maximize(share, [1, 2], [1] * 900, **options)
    assert maximize(share, [1, 2], [1] * 900, n=900, **options).item == 1
    replace = privmax.LargeMargin(**PRICE, neighbors="replace")
    assert maximize(share, [1, 2], [1] * 900, mechanism=replace).item == 1


def test_a_ledger_keeps_what_was_given_and_not_the_length_of_the_data(tmp_path):
    with Ledger.create(tmp_path / "b.db", budget=Privacy(3, "1e-5")) as ledger:
        maximize(share, [1, 2], [1] * 617, **PRICE, ledger=ledger)
        assert "617" not in str([event.body for event in ledger.history()])


@pytest.mark.parametrize("method", ["best", "above"])
def test_half_an_oracle_is_refused(method):
    """Python's own error came out of the middle of a draw."""
    half = type("Half", (), {method: lambda *_: None})()
    with pytest.raises(ParameterError, match=f"universe='Half'.*{method} alone.*list the items"):
        maximize(lambda item, data: 1, half, [1] * 10, epsilon=1, delta=1e-6)


def test_a_class_in_the_place_of_an_oracle_is_refused():
    with pytest.raises(ParameterError, match="universe"):
        maximize(share, Shares, [1], **PRICE)


@pytest.mark.parametrize("universe", ["open", 10**30, range(10**12), "10^9"])
def test_items_that_cannot_all_be_tried_are_refused(universe, tmp_path):
    ledger = Ledger.create(tmp_path / "b.db", budget=Privacy(9, "1e-3"), strict=True)
    with pytest.raises(ParameterError, match=r"^universe=.*oracle"):
        maximize(share, universe, [1] * 500, ledger=ledger, **PRICE)
    assert ledger.spent == Privacy(0)


def test_what_is_no_function_is_refused_before_the_charge(tmp_path):
    ledger = Ledger.create(tmp_path / "b.db", budget=Privacy(9, "1e-3"), strict=True)
    with pytest.raises(ParameterError, match=r"^f="):
        maximize(None, 3, [1] * 500, ledger=ledger, **PRICE)
    assert ledger.spent == Privacy(0)


@pytest.mark.parametrize("value", [float("nan"), "secret", None, [1]])
def test_an_error_about_a_value_leads_to_no_other_that_quotes_it(value):
    with pytest.raises(DataError) as caught:
        maximize(lambda item, data: value, 3, [1] * 500, **PRICE)
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)
