"""What fails after the draw may depend on what was drawn: it is recorded as no answer, and never
drawn again.

Otherwise whoever tries again until something comes draws from the law of those that do not fail, at
no cost.
"""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import numpy as np
import pytest

from privmax import Privacy, law, select
from privmax.best_items import BestItems
from privmax.errors import AnswerError, EngineError, LedgerError
from privmax.itemsets import top_itemsets
from privmax.itemsets.source import ItemsetSource
from privmax.learning import PrivateERM, Stumps, select_model
from privmax.ledger import Charge, Ledger, Reservation
from privmax.ledger.payment import FAILED
from privmax.ledger.rows import UnwritableError
from privmax.ledger.sqlite import SqliteStore
from privmax.mechanisms.permute_and_flip import PermuteAndFlip
from privmax.payload import Drawn
from privmax.sources.memory import MemorySource

SECRET = "zorblax-4711"
"""A label that nothing but the draw puts together, so that whoever holds it has it from there."""

BAD = "beyond year 9999"
"""The label whose look-up fails."""


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(1000, "1e-3")) as made:
        yield made
        assert made.verify() == []


def failing_for(monkeypatch, bad, error):
    """A source whose look-up fails for one label."""
    original = MemorySource.names

    def items(self, outcomes):
        labels = original(self, outcomes)
        if bad in labels:
            raise error
        return labels

    monkeypatch.setattr(MemorySource, "names", items)


# The law of all that is seen


class Panic(BaseException):
    """What goes wrong in a library that is written in Rust is no `Exception`."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "error",
    [
        EngineError("The engine failed at the look-up."),
        ValueError("year 10000"),
        Panic("out of range"),
    ],
    ids=repr,
)
def test_who_tries_again_sees_the_outcome_that_failed_and_no_other(ledger, monkeypatch, error):
    """All tries of one request, with an honest coin each: the transcript has the law of one
    draw.
    """
    scores, tries = {BAD: 3, "b": 3}, 5
    failing_for(monkeypatch, BAD, error)
    seen = Counter()
    for number in range(40):
        transcript = []
        for _ in range(tries):
            try:
                transcript.append(
                    select(
                        scores, epsilon=1, universe=[BAD, "b"], ledger=ledger.request(str(number))
                    )
                )
            except (EngineError, AnswerError):
                transcript.append(None)
        items = [None if one is None else one.item for one in transcript]
        assert items == ["b"] * tries or items == [None] * tries
        seen[items[-1]] += 1
    assert set(seen) == {None, "b"}  # each is missed with a chance of 2^-40
    assert ledger.spent == Privacy(40)


def test_a_transcript_of_neighbours_stays_within_the_price(ledger, monkeypatch):
    """What a transcript can be is what one draw can be, so its law is that of one draw; and that
    keeps to the price.

    Before, the retry was free: BAD could not come out, and P(answer "b") was 1 on every data set,
    but the number of failures before it told of the count of BAD without end.
    """
    failing_for(monkeypatch, BAD, EngineError("The engine failed at the look-up."))
    epsilon = 1
    laws = [
        law(scores, mechanism=PermuteAndFlip(epsilon=epsilon), universe=[BAD, "b"])
        for scores in ({BAD: 4, "b": 3}, {BAD: 3, "b": 3})
    ]
    transcripts = [{"failed, then nothing": one[BAD], "b": one["b"]} for one in laws]
    for one, other in (transcripts, transcripts[::-1]):
        assert all(one[seen] <= math.exp(epsilon) * other[seen] + 1e-12 for seen in one)
    draws = []
    original = PermuteAndFlip.draw
    monkeypatch.setattr(PermuteAndFlip, "draw", lambda *given: draws.append(1) or original(*given))
    for number in range(20):
        for _ in range(4):
            with suppress(EngineError):
                select(
                    {BAD: 4, "b": 3},
                    epsilon=epsilon,
                    universe=[BAD, "b"],
                    ledger=ledger.request(str(number)),
                )
    assert len(draws) == 20  # one for each request, however often it is made


STEPS = {
    "in the draw": (PermuteAndFlip, "draw", 1),
    "at the look-up": (MemorySource, "names", 1),
    "when it is written": (Drawn, "to_json", 1),
    "when it is recorded": (Reservation, "record", 1),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "error", [ValueError, EngineError, MemoryError, RecursionError, UnicodeEncodeError]
)
@pytest.mark.parametrize("step", STEPS)
def test_whatever_fails_after_the_charge_closes_the_request(ledger, monkeypatch, step, error):
    owner, name, time = STEPS[step]
    original, calls = getattr(owner, name), []

    def failing(*given, **options):
        calls.append(name)
        if len(calls) == time:
            raise (
                error("utf-8", "x", 0, 1, "odd")
                if error is UnicodeEncodeError
                else error("the engine said this")
            )
        return original(*given, **options)

    monkeypatch.setattr(owner, name, failing)
    asked = {"epsilon": 1, "universe": ["a", "b"], "ledger": ledger.request("r1")}
    with pytest.raises(error if error is EngineError else AnswerError) as caught:
        select({"a": 5, "b": 5}, **asked)
    told = str(caught.value)
    assert "The privacy cost was charged and stays spent" in told
    assert "recorded as no answer" in told
    assert "repeating the request 'r1' returns no answer" in told
    assert list(ledger.history())[-1].body == {"answer": {"items": [], "free": {}, FAILED: True}}
    again = select({"a": 5, "b": 5}, **asked)
    assert (again.items, again.item, again.diagnostics) == ((), None, {})
    assert again.recorded == list(ledger.history())[-1].when
    assert ledger.spent == Privacy(1)


@contextmanager
def unreachable(monkeypatch):
    with monkeypatch.context() as gone:
        gone.setattr(
            Reservation,
            "record",
            lambda self, answer: (_ for _ in ()).throw(
                LedgerError("It is gone. Nothing was charged or recorded by this call.")
            ),
        )
        yield


def test_a_ledger_that_cannot_be_reached_leaves_the_request_open(ledger, monkeypatch):
    asked = {"epsilon": 1, "universe": 1, "ledger": ledger.request("r1")}
    with unreachable(monkeypatch), pytest.raises(LedgerError, match="It is gone") as caught:
        select({"a": 1}, **asked)
    assert str(caught.value) == (
        "It is gone. The privacy cost was charged before this happened, and stays spent. Repeat "
        "the request 'r1': that costs nothing more."
    )
    assert [event.kind for event in ledger.history()] == ["created", "reserved"]
    assert select({"a": 1}, **asked).item == "a"


def test_an_answer_that_fails_while_the_ledger_is_gone_is_not_drawn_again_here(ledger, monkeypatch):
    """Not even no answer could be recorded in its place; the process remembers it."""
    failing_for(monkeypatch, BAD, ValueError())
    asked = {"epsilon": 1, "universe": 1, "ledger": ledger.request("r1")}
    with unreachable(monkeypatch), pytest.raises(LedgerError, match="stays spent"):
        select({BAD: 1}, **asked)
    assert [event.kind for event in ledger.history()] == ["created", "reserved"]
    assert select({"a": 1}, **asked).item is None
    assert list(ledger.history())[-1].body["answer"][FAILED] is True


def test_an_answer_that_somebody_else_recorded_meanwhile_is_given(ledger, monkeypatch):
    original = MemorySource.names

    def items(self, outcomes):
        monkeypatch.setattr(MemorySource, "names", original)
        select({"a": 1}, **asked)
        raise ValueError

    monkeypatch.setattr(MemorySource, "names", items)
    asked = {"epsilon": 1, "universe": 1, "ledger": ledger.request("r1")}
    assert select({"a": 1}, **asked).item == "a"


# Nothing that was drawn is left in the error


def reachable(error: BaseException) -> Iterator[object]:
    """All that can be reached from an error: its frames' locals, what it came from, and what all of
    those hold.
    """
    seen: set[int] = set()
    left: list[object] = [error]
    while left:
        one = left.pop()
        if (
            id(one) in seen
            or isinstance(one, type)
            or getattr(one, "__name__", "") in ("sys", "builtins")
        ):
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseException):
            left += [one.__context__, one.__cause__, *one.args]
            trace = one.__traceback__
            while trace is not None:
                frame: FrameType = trace.tb_frame
                if (
                    "privmax" in frame.f_code.co_filename
                    and "tests" not in frame.f_code.co_filename
                ):
                    left += frame.f_locals.values()
                trace = trace.tb_next
        elif callable(one) and hasattr(one, "__closure__"):
            left += [cell.cell_contents for cell in one.__closure__ or () if _is_set(cell)]
        elif isinstance(one, (dict, list, tuple, set, frozenset)) or type(
            one
        ).__module__.startswith("privmax"):
            left += gc.get_referents(one)


def _is_set(cell) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


ERRORS = [ValueError, EngineError, LedgerError, KeyboardInterrupt]


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_holds_nothing_that_was_drawn(ledger, monkeypatch, error):
    original = MemorySource.names

    def items(self, outcomes):
        return [f"{label}-4711" for label in original(self, outcomes)]

    def record(self, answer):
        drawn = answer["items"][0]
        assert drawn == SECRET
        try:
            raise RuntimeError(drawn)
        except RuntimeError as first:
            raise error("it failed") from first

    monkeypatch.setattr(MemorySource, "names", items)
    with monkeypatch.context() as broken:
        broken.setattr(
            Reservation,
            "record",
            record if error in (LedgerError, KeyboardInterrupt) else Reservation.record,
        )
        if error not in (LedgerError, KeyboardInterrupt):
            broken.setattr(
                Drawn,
                "to_json",
                lambda self: (
                    record(self, {"items": self.items}) if self.items else {"items": [], "free": {}}
                ),
            )
        with pytest.raises((error, AnswerError)) as caught:
            select(
                {"zorblax": 10**9, "b": 1},
                epsilon=1,
                universe=["zorblax", "b"],
                ledger=ledger.request("r1"),
            )
    found = list(reachable(caught.value))
    assert len(found) > 20  # it does look into frames
    assert SECRET not in [one for one in found if isinstance(one, str)]
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)


@pytest.mark.parametrize("error", [ValueError, EngineError, KeyboardInterrupt])
def test_nor_does_one_without_a_ledger(monkeypatch, error):
    """Type and words of the error stay. The frames of the draw had the answer and its true
    count.
    """
    original = MemorySource.names
    monkeypatch.setattr(
        MemorySource, "names", lambda *given: [f"{label}-4711" for label in original(*given)]
    )

    release = BestItems.release

    def fail(self, payload):
        if not payload.items:
            return release(self, payload)
        assert payload.items == (SECRET,)
        raise error("it failed")

    monkeypatch.setattr(BestItems, "release", fail)
    with pytest.raises(error, match="it failed") as caught:
        select({"zorblax": 10**9, "b": 1}, epsilon=1, universe=["zorblax", "b"])
    found = list(reachable(caught.value))
    assert SECRET not in [one for one in found if isinstance(one, str)]
    assert not [one for one in found if isinstance(one, MemorySource)]
    notes = getattr(caught.value, "__notes__", [])
    assert ["omits the place" in note for note in notes] == [True] * (error is ValueError)


def test_the_search_for_what_was_drawn_finds_it_in_a_frame():
    """The test above could not fail if it looked in the wrong places."""

    def failing():
        found = [SECRET]
        raise ValueError(len(found))

    with pytest.raises(ValueError, match="1") as caught:
        failing()
    frame = caught.value.__traceback__.tb_next.tb_frame
    assert "tests" in frame.f_code.co_filename
    error = ValueError()
    error.__context__ = LedgerError(SECRET)
    assert SECRET in list(reachable(error))


# The other doors


def test_itemsets_and_their_supports(ledger, monkeypatch):
    """What was drawn lies in the source, too: the error does not lead there."""
    baskets = [["a", "b"]] * 900
    original = ItemsetSource.counts

    def counts(self, outcomes):
        raise ValueError(f"{original(self, outcomes)}")

    asked = {"epsilon": 1, "delta": "1e-6", "supports": 1, "ledger": ledger.request("r1")}
    with monkeypatch.context() as broken:
        broken.setattr(ItemsetSource, "counts", counts)
        with pytest.raises(AnswerError) as caught:
            top_itemsets(baskets, **asked)
    assert not [one for one in reachable(caught.value) if isinstance(one, ItemsetSource)]
    assert "900" not in str(caught.value)
    assert list(ledger.history())[-1].body["answer"] == {
        "items": [],
        "free": {},
        "supports": [],
        "noise": {"law": "DiscreteLaplace", "scale": "1", "step": "1"},  # public
        FAILED: True,
    }
    again = top_itemsets(baskets, **asked)
    assert (again.items, again.supports) == ((), ())
    assert ledger.spent == Privacy(2, "1e-6")


class Fragile(Stumps):
    """A class one of whose rules cannot be made."""

    def hypothesis(self, number, shape):
        raise OverflowError(number)


Fragile.__name__ = "Stumps"


def test_a_rule_that_cannot_be_made(ledger):
    X, y = np.array([[1.0], [9.0]] * 50), np.array([0, 1] * 50)
    asked = {"epsilon": 1, "labels": [0, 1], "ledger": ledger.request("r1")}
    with pytest.raises(AnswerError, match="OverflowError"):
        PrivateERM(Fragile(low=0, high=10, cells=10), **asked).fit(X, y)
    with pytest.warns(UserWarning, match="No answer"):
        model = PrivateERM(Stumps(low=0, high=10, cells=10), **asked).fit(X, y)
    assert model.release_.item is None
    assert ledger.spent == Privacy(1)


def test_a_model_that_cannot_be_named(ledger, monkeypatch):
    failing_for(monkeypatch, 0, ValueError(0))
    asked = {"epsilon": 50, "ledger": ledger.request("r1")}
    models, y = [lambda rows: [1] * len(rows), lambda rows: [0] * len(rows)], [1] * 50
    with pytest.raises(AnswerError):
        select_model(models, [[0]] * 50, y, **asked)
    assert select_model(models, [[0]] * 50, y, **asked).items == ()
    assert ledger.spent == Privacy(50)


def test_an_answer_whose_commit_fails_is_noted(ledger, monkeypatch):
    """The file says already that one was drawn: no process draws another."""
    reservation = ledger.charge(Charge(Privacy(1)), {"mechanism": "x"}, request="a")
    original = SqliteStore._execute

    def execute(store, query, bound=(), *, committing=False, request=None):
        if committing and request is not None:
            raise UnwritableError("the disk is full")
        return original(store, query, bound, committing=committing, request=request)

    assert not reservation.noted
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "_execute", execute)
        with pytest.raises(AnswerError):
            reservation.record("x")
    assert reservation.noted
    assert not reservation.recorded
    assert reservation.record("x") == "x"
