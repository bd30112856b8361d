"""The exception tree: what a message holds, and that it survives the trip between processes."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest
from by_name import by_name

import privmax
from privmax import errors
from privmax.cli.messages import describe_ledger_error
from privmax.errors import (
    DataError,
    LedgerError,
    ParameterError,
    PrivmaxError,
    refuse_given,
    shorten,
)


@pytest.mark.parametrize("kind", [ParameterError, DataError])
def test_every_error_is_a_privmax_error_and_a_value_error(kind):
    assert issubclass(kind, PrivmaxError)
    assert issubclass(kind, ValueError)


def test_the_docstring_draws_every_class_of_the_tree():
    classes = [
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    ]
    assert {"PrivmaxError", "ParameterError", "DataError"} <= set(classes)
    for name in classes:
        assert name in errors.__doc__


def test_a_parameter_error_names_argument_value_bound_and_remedy():
    error = ParameterError("epsilon", -1, "it must be above 0", "Try 1.")
    assert error.name == "epsilon"
    assert str(error) == "epsilon=-1 is not allowed: it must be above 0. Try 1."


def test_a_parameter_error_shows_text_with_its_quotes():
    assert str(ParameterError("neighbors", "swap", "no")).startswith(
        "neighbors='swap' is not allowed"
    )


def test_a_parameter_error_without_a_remedy_ends_after_the_bound():
    assert (
        str(ParameterError("k", 0, "it must be at least 1"))
        == "k=0 is not allowed: it must be at least 1."
    )


@pytest.mark.parametrize(
    "value", ["9" * 5000, 10**4000, 10**5000, [1] * 1000], ids=["text", "long", "longer", "list"]
)
def test_a_long_value_is_not_shown_at_length(value):
    told = str(ParameterError("universe", value, "no"))
    assert told.startswith("universe=")
    assert told.endswith(" is not allowed: no.")
    assert len(told) < 200


@pytest.mark.parametrize(
    "clone", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"]
)
@pytest.mark.parametrize(
    "error",
    [
        ParameterError("epsilon", -1, "it must be above 0", "Try 1."),
        DataError("A score is missing."),
    ],
    ids=["ParameterError", "DataError"],
)
def test_an_error_can_be_copied_and_sent_to_another_process(error, clone):
    twin = clone(error)
    assert type(twin) is type(error)
    assert str(twin) == str(error)
    assert vars(twin) == vars(error)


def test_what_is_wrong_with_a_parameter_can_be_read_by_a_program():
    error = ParameterError("k", 0, "it must be above 0", "For example 1.")
    assert (error.name, error.value, error.allowed, error.remedy) == error.args


@pytest.mark.parametrize(
    ("about", "hint"),
    [
        ({"missing": "ledger"}, "privmax budget create FILE"),
        ({"missing": "account"}, "privmax budget account FILE ACCOUNT"),
        ({"existing": "ledger"}, "privmax budget show FILE"),
        ({"existing": "account"}, "privmax budget grant FILE --account ACCOUNT"),
        ({}, None),
    ],
)
def test_the_command_that_helps_follows_from_what_an_error_holds_and_not_from_its_words(
    about, hint
):
    made = LedgerError("Something is wrong.", **about, remedy="Call Ledger.create.")
    error = pickle.loads(pickle.dumps(made))
    assert (error.missing, error.existing) == (about.get("missing"), about.get("existing"))
    assert str(error) == "Something is wrong. Call Ledger.create."
    told = describe_ledger_error(error, "default")
    assert told.startswith("Something is wrong. ")
    assert ("Ledger.create" in told) == (hint is None)
    assert hint is None or f"Run {hint}" in told


def test_whichever_option_is_given_is_refused():
    refuse_given({"user": None}, "it has no meaning")
    with pytest.raises(ParameterError, match=r"^bound=0 .*no meaning. Leave it out"):
        refuse_given({"user": None, "bound": 0, "weight": 1}, "it has no meaning")


class Odd:
    """An object that fails wherever it is asked."""

    def __eq__(self, other):
        raise RuntimeError("compared")

    __hash__ = None

    def __repr__(self):
        raise RuntimeError("shown")


def test_an_object_that_cannot_be_shown_is_named_by_its_type():
    assert shorten(Odd()) == "<Odd>"
    for option in ("epsilon", "delta", "universe", "neighbors", "k", "item", "resolution"):
        with pytest.raises(ParameterError):
            by_name(
                privmax.select, {"a": 9, "b": 1}, **{"epsilon": 1, "delta": 1e-6, option: Odd()}
            )
    with pytest.raises(ParameterError, match="labels must be hashable"):
        privmax.select({"a": 9}, epsilon=1, universe=["a", Odd()])
