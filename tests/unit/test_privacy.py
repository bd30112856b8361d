"""Prices and parameters: every number is kept exactly, a float as the decimal that it prints as."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from privmax.errors import ParameterError
from privmax.ledger.events import exact_text
from privmax.numbers import (
    plain,
)
from privmax.privacy import WEAK, Privacy, drift, relation

TENTH = Fraction(1, 10)
BINARY_TENTH = Fraction(
    3602879701896397, 2**55
)  # the double nearest to 0.1, which is not what a float 0.1 means

GIVEN = [
    pytest.param(1, Fraction(1), id="int"),
    pytest.param(10**400, Fraction(10**400), id="int beyond any float"),
    pytest.param(Fraction(1, 3), Fraction(1, 3), id="Fraction"),
    pytest.param(Decimal("0.1"), TENTH, id="Decimal"),
    pytest.param(Decimal("1E-400"), Fraction(1, 10**400), id="Decimal below any float"),
    pytest.param("0.1", TENTH, id="decimal text"),
    pytest.param("1e-6", Fraction(1, 10**6), id="scientific text"),
    pytest.param("1/3", Fraction(1, 3), id="ratio text"),
    pytest.param("1e1000", Fraction(10**1000), id="largest exponent of text"),
    pytest.param("1E-1000", Fraction(1, 10**1000), id="least exponent of text"),
    pytest.param(Decimal("1e400"), Fraction(10**400), id="largest Decimal"),
    pytest.param(f"{10**4000}/{10**4000 + 1}", Fraction(10**4000, 10**4000 + 1), id="long ratio"),
    pytest.param(Decimal("1." + "0" * 500), Fraction(1), id="Decimal with zeros"),
    pytest.param(0.1, TENTH, id="float"),
    pytest.param(1e-6, Fraction(1, 10**6), id="float in scientific notation"),
    pytest.param(1e23, Fraction(10**23), id="large float"),
    pytest.param(
        0.1 + 0.2, Fraction("0.30000000000000004"), id="float that is nearly a short decimal"
    ),
    pytest.param(5e-324, Fraction(5, 10**324), id="least float"),
    pytest.param(np.float64(0.1), TENTH, id="NumPy float"),
    pytest.param(np.float32(0.1), TENTH, id="NumPy single"),
    pytest.param(np.float16(0.1), TENTH, id="NumPy half"),
    pytest.param(np.float32(1e-6), Fraction(1, 10**6), id="NumPy single in scientific notation"),
    pytest.param(np.longdouble("0.1"), TENTH, id="NumPy extended"),
]

NOT_NUMBERS = [
    pytest.param(float("nan"), id="nan"),
    pytest.param(float("inf"), id="inf"),
    pytest.param(float("-inf"), id="-inf"),
    pytest.param(Decimal("NaN"), id="Decimal nan"),
    pytest.param(Decimal("Infinity"), id="Decimal inf"),
    pytest.param("nan", id="text nan"),
    pytest.param("one", id="text"),
    pytest.param("", id="empty text"),
    pytest.param("1/0", id="division by zero"),
    pytest.param("1e999999999", id="text that would fill the memory"),
    pytest.param("1e-999999999", id="text that would be as long below"),
    pytest.param("0E+999999999", id="text that would be nothing after long"),
    pytest.param("1e1001", id="exponent"),
    pytest.param("1e-1001", id="negative exponent"),
    pytest.param("1e", id="exponent missing"),
    pytest.param("1e5/3", id="exponent in a ratio"),
    pytest.param("1e" + "9" * 5000, id="exponent of many digits"),
    pytest.param("0." + "1" * 5000, id="many digits"),
    pytest.param("0." + "1" * 4000 + "e-400", id="many digits written out"),
    pytest.param("1" * 5000 + "/3", id="many digits above"),
    pytest.param("1/" + "3" * 5000, id="many digits below"),
    pytest.param(Decimal("1e999999"), id="Decimal exponent"),
    pytest.param(Decimal("1e-999999"), id="negative Decimal exponent"),
    pytest.param(Decimal("0." + "1" * 5000), id="Decimal of many digits"),
    pytest.param(None, id="None"),
    pytest.param(True, id="bool"),
    pytest.param(np.True_, id="NumPy bool"),
    pytest.param(1j, id="complex"),
    pytest.param([1], id="list"),
    pytest.param(b"1", id="bytes"),
    pytest.param(np.array([1.0]), id="array"),
    pytest.param(np.array(1.0), id="array of no dimension"),
    pytest.param(np.float32("nan"), id="NumPy nan"),
    pytest.param(np.float32("inf"), id="NumPy inf"),
]


@pytest.mark.parametrize(("given", "meant"), GIVEN)
def test_a_price_is_exactly_the_number_given(given, meant):
    assert Privacy(given).epsilon == meant
    assert isinstance(Privacy(given).epsilon, Fraction)


@pytest.mark.parametrize(("given", "meant"), [case for case in GIVEN if case.values[1] <= 1])
def test_delta_is_exactly_the_number_given(given, meant):
    assert Privacy(1, given).delta == meant
    assert isinstance(Privacy(1, given).delta, Fraction)


def test_a_float_means_the_decimal_that_it_prints_as():
    assert Privacy(0.1, 0) == Privacy("0.1", 0) == Privacy(np.float32(0.1), 0)
    assert sum([Privacy(0.1).epsilon] * 10) == 1


def test_how_numpy_prints_has_no_part_in_what_a_number_means():
    with np.printoptions(legacy="1.13", precision=2):
        assert Privacy(np.float32(0.1)).epsilon == TENTH


def test_a_numpy_integer_becomes_a_python_one():
    """A Fraction made of NumPy integers would overflow silently."""
    price = Privacy(np.int64(3)).epsilon
    assert price == 3
    assert type(price.numerator) is int
    assert type(price.denominator) is int


def test_delta_is_zero_unless_given():
    assert Privacy(1).delta == 0


@pytest.mark.parametrize(
    ("price", "shown"),
    [
        (Privacy(1, 1e-6), "Privacy(epsilon=1, delta=1e-06)"),
        (Privacy("0.1"), "Privacy(epsilon=0.1, delta=0)"),
        (Privacy(Fraction(1, 3), "0.25"), "Privacy(epsilon=0.333334, delta=0.25)"),
        (Privacy(10**400), "Privacy(epsilon=1e+400, delta=0)"),
        (Privacy("1e-1000"), "Privacy(epsilon=1e-1000, delta=0)"),
        (Privacy(10**5000), "Privacy(epsilon=1e+5000, delta=0)"),
        (Privacy("1.00000000000000000001"), "Privacy(epsilon=1.00001, delta=0)"),
        (Privacy(BINARY_TENTH), "Privacy(epsilon=0.100001, delta=0)"),
        (Privacy("1234567.8"), "Privacy(epsilon=1234570, delta=0)"),
    ],
)
def test_repr_shows_the_price_in_six_digits_and_rounds_against_us(price, shown):
    assert repr(price) == str(price) == shown


@pytest.mark.parametrize(
    ("number", "spec", "shown"),
    [
        (0.1, "", "0.1"),
        (BINARY_TENTH, "", "0.100001"),
        ("1/3", "", "0.333334"),
        (1, "", "1"),
        ("1/3", ".2f", "0.33"),
        (1, ".2f", "1.00"),
        ("1e-6", ".1e", "1.0e-06"),
        ("1/8", ".1%", "12.5%"),
        ("1/3", "12", "    0.333334"),
        ("1/3", "<12", "0.333334    "),
        ("1/3", "*^12", "**0.333334**"),
        (10**400, ".2e", "1.00e+400"),
    ],
)
def test_numbers_of_a_price_work_in_f_strings(number, spec, shown):
    assert format(Privacy(number).epsilon, spec) == shown


def test_a_number_of_a_price_is_an_exact_fraction_all_the_same():
    price = Privacy("1/3", BINARY_TENTH)
    for number, meant in ((price.epsilon, Fraction(1, 3)), (price.delta, BINARY_TENTH)):
        assert number == meant
        assert hash(number) == hash(meant)
        assert number + 0 == meant
        assert Fraction(plain(number)) == meant
        for again in (pickle.loads(pickle.dumps(number)), copy.copy(number), copy.deepcopy(number)):
            assert (again, type(again), str(again)) == (number, type(number), str(number))
    assert pickle.loads(pickle.dumps(price)) == price


def test_a_ledger_writes_down_the_exact_number():
    assert exact_text(Privacy("1/3").epsilon) == "1/3"


def test_prices_add():
    assert Privacy("0.1", "1e-6") + Privacy("0.2", "2e-6") == Privacy("0.3", "3e-6")


def test_added_deltas_stop_at_one():
    assert (Privacy(1, "0.7") + Privacy(1, "0.7")).delta == 1


def test_equal_prices_are_equal_however_they_were_written():
    assert Privacy("0.5", Decimal("0.25")) == Privacy(Fraction(1, 2), 0.25)
    assert len({Privacy("0.5"), Privacy(0.5), Privacy(Decimal("0.50"))}) == 1


def test_a_price_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Privacy(1).epsilon = Fraction(0)


@pytest.mark.parametrize("value", NOT_NUMBERS)
@pytest.mark.parametrize("name", ["epsilon", "delta"])
def test_what_is_not_a_finite_number_is_refused_by_name(name, value):
    with pytest.raises(
        ParameterError, match=rf"^{name}=.* is not allowed: it must be a finite number"
    ):
        Privacy(**{"epsilon": 1, name: value})


def test_a_price_may_be_zero_but_not_negative_and_delta_is_a_probability():
    assert Privacy(0, 1) == Privacy("0", "1")
    with pytest.raises(ParameterError, match=r"^epsilon=-1 "):
        Privacy(-1)
    with pytest.raises(ParameterError, match=r"^delta=2 "):
        Privacy(1, 2)


def test_the_two_relations_and_their_swing():
    assert drift(relation("add-remove")) == 1
    assert drift(relation("replace")) == 2


@pytest.mark.parametrize("value", ["swap", "", "Add-Remove", None, 1, ["replace"]])
def test_an_unknown_relation_is_refused_with_the_known_ones(value):
    with pytest.raises(ParameterError, match=r"^neighbors=.*add-remove or replace.*Use"):
        relation(value)


@pytest.mark.parametrize("value", ["0." + "1" * 100_000, Decimal("0." + "1" * 100_000)])
def test_a_long_number_is_not_quoted_at_length(value):
    with pytest.raises(
        ParameterError, match=r"^epsilon=(Decimal\()?'0\.1+…'? is not allowed"
    ) as caught:
        Privacy(value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("value", ["1_0", "0.1_5", "1e1_0", "\u0661", "\uff11", "1/1_0"])
def test_a_number_is_written_in_plain_digits(value):
    """Python reads 1_0 as 10, and digits of every script."""
    with pytest.raises(ParameterError, match="digits 0 to 9"):
        Privacy(value)


def test_costs_are_multiplied_exactly_and_deltas_stop_at_one():
    assert 3 * Privacy("1/3", "0.1") == Privacy("1/3", "0.1") * 3 == Privacy(1, "0.3")
    assert Privacy(1, "0.6") * 2 == Privacy(2, 1)
    assert Privacy(1, "0.6") * 0 == Privacy(0)


@pytest.mark.parametrize("times", [0.5, "2", True, Fraction(1, 2)])
def test_costs_are_multiplied_by_whole_numbers_only(times):
    with pytest.raises(TypeError):
        Privacy(1) * times


def test_a_cost_is_at_most_another_if_neither_number_is_larger():
    assert Privacy(1, "0.1") <= Privacy(1, "0.1") <= Privacy(1, "0.2")
    assert Privacy(1, "0.1") < Privacy(2, "0.1")
    assert not Privacy(1, "0.1") < Privacy(1, "0.1")
    assert Privacy(2, "0.1") >= Privacy(1, "0.1")
    assert Privacy(2, "0.1") > Privacy(1, "0.1")
    larger, smaller = Privacy(2, "0.1"), Privacy(1, "0.2")
    assert not larger <= smaller
    assert not smaller <= larger
    with pytest.raises(TypeError):
        assert Privacy(1) <= 2


def test_what_hardly_protects_anybody():
    assert Privacy(10, "0.001") == WEAK
