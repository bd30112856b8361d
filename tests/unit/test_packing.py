"""Long lists as a ledger keeps them: exactly the same again, and nothing else is taken for one."""

from __future__ import annotations

import zlib
from base64 import b85encode

import pytest

from privmax.ledger.events import Event
from privmax.packing import FEW, pack, unpack


def squeeze(text: str) -> str:
    return b85encode(zlib.compress(text.encode())).decode()


@pytest.mark.parametrize("number", [0, FEW, FEW + 1, 3 * FEW])
def test_a_list_comes_back(number):
    items = [f"kéy \ud800 {place}" if place % 2 else {"int": "0x7"} for place in range(number)]
    packed = pack(items)
    assert isinstance(packed, str) is (number > FEW)
    assert unpack(packed) == items


NO_LISTS = {
    "nothing": None,
    "a number": 7,
    "an object": {"tea": 1},
    "other text": "tea!",
    "no compressed text": b85encode(b"tea").decode(),
    "cut": pack(["tea"] * 5000)[:-9],
    "no JSON": squeeze("["),
    "no list": squeeze('"tea"'),
    "nested": squeeze("[" * 200_000),
}


@pytest.mark.parametrize("packed", NO_LISTS.values(), ids=NO_LISTS)
def test_what_is_not_a_list_is_refused(packed):
    with pytest.raises(ValueError, match=r".*"):
        unpack(packed)


@pytest.mark.parametrize("packed", NO_LISTS.values(), ids=NO_LISTS)
def test_events_list_items_that_are_compressed_and_none_of_damaged_ones(packed):
    def items(written):
        body = {"answer": {"items": written}}
        return Event(**{**dict.fromkeys(Event.__dataclass_fields__), "body": body}).items

    assert items(pack(["tea"] * 5000)) == ["tea"] * 5000
    assert items(packed) == []
