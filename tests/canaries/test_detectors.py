"""Each search can fail: a leak is planted in every place, in one of many forms, and is found."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
import shutil
from urllib.parse import quote

import pytest
from leaks import places
from leaks.field import BEST, FIRST, PLAIN, SCORES
from leaks.judge import judge, released_marks
from leaks.marks import Mark, find
from leaks.planted import PLANTED
from leaks.run import temporary

ELSEWHERE = {
    "arguments": "test_processes.py plants an argument",
    "pages": "test_processes.py plants a page",
    "core dumps": "not searched",
}


SLOW = {"figures": pytest.mark.slow}  # it loads matplotlib


@pytest.mark.slow
@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=SLOW.get(place, ())) for place in PLANTED]
)
def test_a_planted_leak_is_found(nursery, place):
    folder = temporary()
    try:
        ended = nursery.run(folder, kind="planted", subject=place)
        assert ended.status != 99
        found = {leak.place for leak in judge(ended).leaks}
    finally:
        shutil.rmtree(folder)
    assert place in found


def test_a_leak_is_planted_in_every_place():
    assert set(PLANTED) | set(ELSEWHERE) == set(places.PLACES)


LABEL, NUMBER = Mark("label", PLAIN), Mark("number", SCORES[BEST])
WRITTEN = {
    "as it is": f"<{PLAIN}>",
    "NFKD": "雪Ωжfin\u0303★ハ",
    "JSON": json.dumps({"a": PLAIN}),
    "ascii": ascii(PLAIN),
    "percent": f"http://h/?q={quote(PLAIN)}",
    "HTML numbers": "".join(f"&#x{ord(c):X};" for c in PLAIN),
    "bytes": repr(PLAIN.encode()),
    "UTF-16": PLAIN.encode("utf-16"),
    "base64, first": base64.b64encode(PLAIN.encode()),
    "base64, second": base64.b64encode(b"x" + PLAIN.encode()),
    "base64, third": base64.b64encode(b"xy" + PLAIN.encode() + b"z"),
    "hexadecimal": PLAIN.encode().hex().upper(),
    "a digest": hashlib.sha256(PLAIN.encode()).hexdigest(),
}
COUNTED = [
    "918273645", "score=918273645,", "918,273,645", "918.273.645", "918 273 645", "918_273_645",
    "918\N{NO-BREAK SPACE}273\N{NO-BREAK SPACE}645", "918273645.0", "9.18273645e+08",
    "9.18273645E8", "9.18274e+08", "0x36BBBE6D", "[918273645]", float(SCORES[BEST]).hex(),
    SCORES[BEST].to_bytes(8, "little"), SCORES[BEST].to_bytes(4, "big"),
    pickle.dumps(SCORES[BEST]), pickle.dumps(float(SCORES[BEST])),
]  # fmt: skip


@pytest.mark.parametrize("how", WRITTEN)
def test_a_label_is_found_however_it_is_written(how):
    assert [mark for mark, _ in find(WRITTEN[how], [LABEL])] == [LABEL]


@pytest.mark.parametrize("written", COUNTED, ids=repr)
def test_a_number_is_found_however_it_is_written(written):
    assert [mark for mark, _ in find(written, [NUMBER])] == [NUMBER]


@pytest.mark.parametrize("other", ["1918273645", "918273645.5", "a918273645f", "918,273,646", ""])
def test_another_number_is_not(other):
    assert list(find(other, [NUMBER])) == []


def test_a_part_of_a_label_is_found():
    mark = Mark("label", BEST, "qzvxkjwpfh")
    assert list(find("winner-QZVXKJWPFH…", [mark]))
    assert not list(find("winner-qzvxk", [mark]))


def test_a_number_is_released_only_as_itself():
    assert not released_marks([FIRST + 1, str(FIRST), "x"])
    assert {mark.value for mark in released_marks([FIRST, BEST])} == {FIRST, BEST}
