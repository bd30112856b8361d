"""Parameters that are declared once: what is given, what it becomes, and what is refused."""

from __future__ import annotations

import copy
import inspect
import pickle
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, FrozenInstanceError, fields, replace
from fractions import Fraction

import pytest

import privmax
from privmax.errors import ParameterError
from privmax.mechanisms.contract import Mechanism
from privmax.mechanisms.registry import MECHANISMS
from privmax.numbers import positive, probability, whole
from privmax.parameters import (
    Exact,
    OptionalWhole,
    Parameter,
    Parameters,
    Whole,
    optional,
    parameter,
)


class Sample(Parameters):
    """One required parameter, one with a default, one that may be left out."""

    rate: Exact = parameter(probability)
    size: Whole = parameter(whole, default=100, least=2)
    growth: OptionalWhole = parameter(optional(whole), default=None)


class Child(Sample):
    """One parameter more."""

    scale: Exact = parameter(positive, default="1/2")


def _upto(name, value, most):
    if value > most:
        raise ParameterError(name, value, f"it must be at most {most}")
    return value


class Bounded(Parameters):
    """`part` is declared before what bounds it."""

    part: Whole = parameter(_upto, depends_on="most")
    most: Whole = parameter(whole)


class Pair(Parameters, kw_only=False):
    """By position, too."""

    left: Whole = parameter(whole)
    right: Whole = parameter(whole, default=7)
    _: KW_ONLY
    named: Whole = parameter(whole, default=1)


def test_what_is_given_is_read_once_and_kept():
    sample = Sample(rate="1/4", size=3)
    assert (sample.rate, sample.size, sample.growth) == (Fraction(1, 4), 3, None)
    assert type(sample.rate) is Fraction


def test_defaults_are_read_as_if_given():
    assert Child(rate=0).scale == Fraction(1, 2)
    assert Sample(rate=0).size == 100


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"rate": 2}, "rate"),
        ({"rate": 0, "size": 1}, "size"),
        ({"rate": 0, "growth": 0}, "growth"),
        ({"rate": 0, "scale": -1}, "scale"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name(given, name):
    with pytest.raises(ParameterError) as refused:
        Child(**given)
    assert refused.value.name == name
    assert refused.value.value == given[name]


def test_what_depends_on_another_is_read_after_it_and_sees_what_was_given():
    assert Bounded(part=3, most=3).part == 3
    with pytest.raises(ParameterError, match="part=4 is not allowed: it must be at most 3"):
        Bounded(part=4, most=3)
    with pytest.raises(ParameterError, match="most=0"):
        Bounded(part=4, most=0)


def test_missing_and_unknown_parameters_are_pythons_own_errors():
    with pytest.raises(TypeError, match=r"Sample.__init__\(\) missing 1 .*'rate'"):
        Sample()
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        Sample(rate=0, speed=1)
    with pytest.raises(TypeError, match="positional"):
        Sample(0)


def test_some_classes_take_parameters_by_position():
    assert Pair(1, 2) == Pair(left=1, right=2)
    assert Pair(1).right == 7
    with pytest.raises(TypeError, match="positional"):
        Pair(1, 2, 3)


def test_equal_parameters_are_equal_and_have_one_hash():
    assert Sample(rate=0.1) == Sample(rate="1/10")
    assert len({Sample(rate=0.1), Sample(rate="1/10"), Sample(rate=0)}) == 2
    assert Sample(rate=0) != Child(rate=0)


def test_repr_shows_every_parameter_exactly_in_the_order_of_its_declaration():
    assert repr(Child(rate="1/3")) == "Child(rate=1/3, size=100, growth=None, scale=0.5)"
    assert list(Child.parameters) == [spec.name for spec in fields(Child)]


def test_nothing_can_be_changed():
    sample = Sample(rate=0)
    with pytest.raises(FrozenInstanceError):
        sample.rate = 1
    with pytest.raises(FrozenInstanceError):
        del sample.rate


def test_copies_and_pickles_are_equal_and_replace_reads_again():
    sample = Sample(rate="1/3", growth=2)
    assert copy.deepcopy(sample) == sample
    assert pickle.loads(pickle.dumps(sample)) == sample
    assert replace(sample, size=5) == Sample(rate="1/3", growth=2, size=5)
    with pytest.raises(ParameterError, match="size=1"):
        replace(sample, size=1)


def test_the_signature_shows_the_defaults():
    shown = inspect.signature(Child).parameters
    assert shown["rate"].default is inspect.Parameter.empty
    assert (shown["size"].default, shown["scale"].default) == (100, "1/2")
    assert {one.kind for one in shown.values()} == {inspect.Parameter.KEYWORD_ONLY}


def test_a_required_parameter_may_take_the_place_of_a_property():
    """As `k` does, which is 1 for a mechanism that does not declare it."""

    class Base(Parameters, ABC):
        @property
        def k(self):
            return 1

        @abstractmethod
        def draw(self): ...

    class Many(Base):
        k: Whole = parameter(whole)

        def draw(self): ...

    class One(Base):
        def draw(self): ...

    assert (Many(k=3).k, One().k) == (3, 1)
    with pytest.raises(TypeError, match="abstract"):
        Base()


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_declares_its_parameters_this_way(name):
    made = MECHANISMS[name].load()
    assert issubclass(made, Mechanism)
    assert "__init__" not in inspect.getsource(made)
    assert all(isinstance(one, Parameter) for one in made.parameters.values())
    assert list(inspect.signature(made).parameters) == list(made.parameters)


def test_a_delta_without_use_is_quoted_as_it_was_given():
    with pytest.raises(ParameterError, match="delta='1e-6' is not allowed: a single draw"):
        privmax.Exponential(epsilon=1, delta="1e-6")
