"""Groups with a ledger: one charge for all groups, one answer, and nothing is redrawn."""

from __future__ import annotations

import pytest
from group_questions import DECLARED, QUESTIONS, ROWS, Untouchable, kinds, select

from privmax import Groups, Privacy
from privmax.errors import BudgetError, DataError, LedgerError, ParameterError
from privmax.ledger import Ledger
from privmax.packing import FEW


@pytest.fixture(params=QUESTIONS.values(), ids=QUESTIONS)
def question(request):
    return request.param


def test_all_groups_are_one_charge_and_one_recorded_answer(ledger):
    release = select(ROWS, counts="0.5", ledger=ledger.request("r1"))
    assert release.groups == {"north": ("tea",), "south": ("ale",), "west": ()}
    assert ledger.spent == release.privacy == Privacy("1.5", "1e-6")
    _, reserved, answered = ledger.history()
    options = reserved.body["what"]["options"]
    assert (options["by"], options["groups_per_user"]) == ("region", 1)
    assert len(options["groups"]) == 64
    assert answered.body["answer"]["groups"] == ["north", "south", "west"]
    assert answered.body["answer"]["sizes"] == [1, 1, 0]
    assert answered.body["answer"]["items"] == ["tea", "ale"]


def test_counts_are_recorded_as_they_were_asked_for(ledger):
    """The cost of the counts of one group is a part of it."""
    select(ROWS, counts="0.5", by=Groups("region", ["north"], 2), ledger=ledger)
    _, reserved, _ = ledger.history()
    assert reserved.body["what"]["options"]["counts"] == "1/2"


@pytest.mark.parametrize("by", ["region", DECLARED], ids=["open", "declared"])
def test_a_repeated_request_returns_the_same_without_reading(ledger, question, by):
    asked = {"by": by, **question.extra, "ledger": ledger.request("r1")}
    first = question.ask(**asked)
    again = question.ask(Untouchable(), **asked)
    assert again == first
    assert (type(again), again.groups, again.describe_numbers(), again.notes) == (
        type(first), first.groups, first.describe_numbers(), first.notes,
    )  # fmt: skip
    assert again.recorded is not None
    assert kinds(ledger) == ["created", "reserved", "released"]


OTHERS = [
    "region",
    Groups("region", ["north", "south"]),
    Groups("region", ["north", "south", "west"], 2),
    Groups("region", groups_share="1/2"),
    None,
]


def test_a_request_id_is_for_one_question(ledger, question):
    question.ask(ledger=ledger.request("r1"))
    for changed in (*({"by": by} for by in OTHERS), question.other):
        with pytest.raises(LedgerError, match="with a different question"):
            question.ask(**changed, ledger=ledger.request("r1"))
    assert kinds(ledger) == ["created", "reserved", "released"]


def test_the_order_of_declared_groups_does_not_matter(ledger):
    first = select(ROWS, ledger=ledger.request("r1"))
    other = Groups("region", ["west", "south", "north"])
    assert select(Untouchable(), by=other, ledger=ledger.request("r1")) == first


def test_what_the_budget_does_not_allow_is_refused_before_reading(ledger):
    with pytest.raises(BudgetError):
        select(Untouchable(), epsilon=11, ledger=ledger)
    assert kinds(ledger) == ["created"]


def test_it_is_charged_before_the_draw_and_recorded_before_it_leaves(ledger, question, monkeypatch):
    seen, original = [], question.source.names

    def names(self, drawn):
        seen.append(kinds(ledger))
        return original(self, drawn)

    monkeypatch.setattr(question.source, "names", names)
    question.ask(ledger=ledger.request("r1"))
    assert seen == [["created", "reserved"]]


def test_a_failure_after_the_draw_is_no_answer_and_stays_so(ledger, question, monkeypatch):
    def fail(self, drawn):
        raise RuntimeError("tea")

    with monkeypatch.context() as patched:
        patched.setattr(question.source, "names", fail)
        with pytest.raises(Exception) as refused:  # noqa: PT011
            question.ask(ledger=ledger.request("r1"))
    assert "tea" not in str(refused.value)
    again = question.ask(ledger=ledger.request("r1"))
    assert again.groups == {"north": (), "south": (), "west": ()}
    assert again.recorded is not None


WRONG = [
    {"by": "reigon"},
    {"by": "item"},
    {"by": "user"},
    {"score": "user", "user": None},
    {"universe": ["tea"]},
    {"item": "itme"},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_what_is_wrong_is_charged_nothing(ledger, options):
    with pytest.raises(ParameterError):
        select(ROWS, **{"by": "region", **options}, ledger=ledger)
    assert kinds(ledger) == ["created"]


def test_groups_that_a_ledger_cannot_write_down_are_refused(ledger):
    with pytest.raises(ParameterError) as refused:
        select(ROWS, by=Groups("region", ["north", object()]), ledger=ledger)
    assert refused.value.name == "groups"
    assert kinds(ledger) == ["created"]


def test_a_row_without_a_user_is_charged_nothing(ledger):
    rows = ROWS.astype({"user": object})
    rows.loc[3, "user"] = None
    with pytest.raises(DataError):
        select(rows, ledger=ledger)
    assert kinds(ledger) == ["created"]


def test_a_strict_ledger_charges_first_and_tells_nothing(tmp_path):
    rows = ROWS.astype({"user": object})
    rows.loc[3, "user"] = None
    with Ledger.create(tmp_path / "s.db", budget=Privacy(9, "1e-3"), strict=True) as ledger:
        release = select(rows, by="region", ledger=ledger.request("r1"))
        assert (release.items, release.groups) == ((), {})
        assert ledger.spent == release.privacy


def test_many_groups_are_kept_compressed_and_come_back(ledger):
    number = FEW + 1
    declared = Groups("region", range(number))
    release = select(ROWS.assign(region=7), by=declared, ledger=ledger.request("r1"))
    assert release.groups[7] == ("tea",)
    assert len(release.groups) == number
    *_, answered = ledger.history()
    assert isinstance(answered.body["answer"]["groups"], str)
    assert select(Untouchable(), by=declared, ledger=ledger.request("r1")) == release
