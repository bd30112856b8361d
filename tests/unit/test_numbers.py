"""How numbers are read and written: exactly, by name, and with a remedy for what is not allowed."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from privmax.best_items import BestItems
from privmax.errors import ParameterError
from privmax.groups import Groups
from privmax.ledger.request import Request
from privmax.numbers import (
    exact,
    flag,
    nonnegative,
    open_probability,
    plain,
    positive,
    probability,
    whole,
)
from privmax.planning.plans import plan
from privmax.universe import Universe

TENTH = Fraction(1, 10)
BINARY_TENTH = Fraction(
    3602879701896397, 2**55
)  # the double nearest to 0.1, which is not what a float 0.1 means


@pytest.mark.parametrize(
    ("check", "inside", "outside", "bound"),
    [
        pytest.param(
            positive, [1, "1e-400", 0.1], [0, -1, "-1e-400", -0.0], "above 0", id="positive"
        ),
        pytest.param(nonnegative, [0, 1, -0.0], [-1, "-1e-400"], "0 or above", id="nonnegative"),
        pytest.param(
            probability, [0, 1, 0.5], [-1e-9, 1.0000001, 2], "between 0 and 1", id="probability"
        ),
        pytest.param(
            open_probability,
            ["1e-400", 0.5],
            [0, 1, 2, -1],
            "strictly between 0 and 1",
            id="open_probability",
        ),
    ],
)
def test_bounds(check, inside, outside, bound):
    for value in inside:
        assert check("it", value) == Fraction(str(value))
    for value in outside:
        with pytest.raises(ParameterError, match=bound) as caught:
            check("it", value)
        assert str(caught.value).startswith(f"it={value!r} is not allowed")


@pytest.mark.parametrize("value", [0, -3, 1.0, "1", True, None, Fraction(2), float("nan")])
def test_whole_refuses_what_is_not_a_python_integer_of_at_least_one(value):
    with pytest.raises(ParameterError, match=r"^k=.* whole number of at least 1"):
        whole("k", value)


def test_whole_accepts_any_size_and_any_least():
    assert whole("k", 10**400) == 10**400
    assert whole("k", 0, least=0) == 0
    assert whole("k", -5, least=-5) == -5


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(7), "7"),
        (Fraction(-7), "-7"),
        (TENTH, "0.1"),
        (BINARY_TENTH, "3602879701896397/36028797018963968"),
        (Fraction(1, 10**6), "1e-06"),
        (Fraction(1, 3), "1/3"),
        (Fraction(1, 10**400), f"1/{10**400}"),
        (Fraction(10**400 + 1, 2), f"{10**400 + 1}/2"),
    ],
)
def test_plain_text_of_a_number(number, text):
    assert plain(number) == text


def test_exact_names_the_argument_it_was_asked_about():
    with pytest.raises(ParameterError) as caught:
        exact("sensitivity", "wide")
    assert caught.value.name == "sensitivity"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("5", "If 5 % is meant, write 0.05."),
        (95, "If 95 % is meant, write 0.95."),
        ("1e-6%", "If 1e-6 % is meant, write 1e-08."),
        ("few %", "Write a fraction, not a percentage: 0.05 for 5 %."),
        ("0,05", "Use a decimal point: 0.05."),
        ("1e2000", "with an exponent of at most 1000"),
        (101, "For example 1e-6."),
    ],
)
def test_what_was_perhaps_meant_is_told(value, says):
    with pytest.raises(ParameterError, match=re.escape(says)):
        probability("delta", value)


@pytest.mark.parametrize("span", [np.timedelta64(5, "s"), np.timedelta64("NaT", "s")])
def test_a_span_of_time_is_no_number_though_numpy_says_so(span):
    with pytest.raises(ParameterError, match=r"epsilon=.*it must be a finite number"):
        exact("epsilon", span)
    with pytest.raises(ParameterError, match=r"k=.*it must be a whole number"):
        whole("k", span)
    with pytest.raises(ParameterError, match="it must be open, a size"):
        Universe.of(span)


@pytest.mark.parametrize("number", [np.int64(7), np.uint8(7), 7])
def test_whole_numbers_of_numpy_become_those_of_python(number):
    """NumPy's own overflow, and a ledger writes them in another way."""
    assert type(whole("k", number)) is int
    assert type(BestItems(epsilon=1, delta=1e-6, k=number).k) is int
    assert type(Groups("region", groups_per_user=number).groups_per_user) is int
    assert Universe.of(number) == Universe(7)
    assert plan(epsilon=1, k=number, universe=50) == plan(epsilon=1, k=7, universe=50)


@pytest.mark.parametrize("number", [True, np.True_, 7.0, np.float64(7), "7"])
def test_other_values_are_no_whole_numbers(number):
    with pytest.raises(ParameterError, match=r"k=.*it must be a whole number"):
        whole("k", number)


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_flags_of_numpy_become_those_of_python(value):
    assert flag("ranked", value) is bool(value)
    assert BestItems(epsilon=1, delta=1e-6, k=2, ranked=value).ranked is bool(value)
    assert Request(check=value).check is bool(value)


@pytest.mark.parametrize("value", [0, 1, np.int64(1), "yes", None])
def test_other_values_are_no_flags(value):
    with pytest.raises(ParameterError, match=r"ranked=.* is not allowed: it must be True or False"):
        flag("ranked", value)
