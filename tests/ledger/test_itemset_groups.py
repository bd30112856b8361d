"""Itemsets of groups with a ledger: one charge for all groups, one answer, nothing is redrawn."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from group_questions import BASKETS, DECLARED, kinds, mine

from privmax import Groups, Privacy
from privmax.errors import DataError, ParameterError, WorkError
from privmax.itemsets import Layout
from privmax.itemsets.miner import ranks


def test_all_groups_are_one_charge_and_one_recorded_answer(ledger):
    release = mine(supports="0.5", ledger=ledger.request("r1"))
    assert release.groups == {"north": (("milk", "tea"),), "south": (("ale", "nuts"),), "west": ()}
    assert ledger.spent == release.privacy == Privacy("1.5", "1e-6")
    _, reserved, answered = ledger.history()
    options = reserved.body["what"]["options"]
    assert (options["by"], options["groups_per_user"], options["size"]) == ("region", 1, 2)
    assert answered.body["answer"]["groups"] == ["north", "south", "west"]
    assert answered.body["answer"]["sizes"] == [1, 1, 0]


def test_more_itemsets_than_can_be_listed_are_refused_before_the_charge(ledger, monkeypatch):
    monkeypatch.setattr(ranks, "MOST", 1000)
    same = pd.DataFrame(
        [(who, who, "north", item) for who in range(60) for item in range(12)],
        columns=BASKETS.columns,
    )
    for by in (DECLARED, "region"):
        with pytest.raises(WorkError, match="More than 1,000 itemsets"):
            mine(same, by=by, size="any", ledger=ledger.request("r1"))
    assert kinds(ledger) == ["created"]
    assert mine(same, ledger=ledger.request("r1")).requested == 1


WRONG = [
    {"by": "reigon"},
    {"by": "item"},
    {"rules": 1},
    {"items": ["tea", "milk"]},
    {"basket": None},
    {"by": Groups("region", ["north", object()])},
    {"layout": Layout(neighbors="replace")},
    {"mechanism": "priv-basis", "delta": None},
    {"data": pa.Table.from_pandas(BASKETS.assign(region=1)), "by": Groups("region", [1, "1"])},
]


@pytest.mark.parametrize("options", WRONG, ids=",".join)
def test_what_is_wrong_is_charged_nothing(ledger, options):
    with pytest.raises((ParameterError, DataError)):
        mine(**options, ledger=ledger)
    assert kinds(ledger) == ["created"]
