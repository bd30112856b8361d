"""Rows that are taken apart many at a time are those that are read one by one, whatever they hold.

Each file is read in both ways: the same rows come out, or the same refusal.
"""

from __future__ import annotations

import csv
import io
import json
import random
from contextlib import ExitStack
from itertools import product

import pytest

from privmax.errors import DataError
from privmax.sources import blocks, separated
from privmax.sources.blocks import list_rows
from privmax.sources.files import ScoreFile, open_records
from privmax.sources.json_forms import find_form, sort_lines
from privmax.sources.places import find_files
from privmax.sources.reading import open_rows
from privmax.sources.scale import WHOLE

NAMES = ["q", "p"]

OBJECTS = [
    b'{"q": "tea", "p": 7}',
    b'{"p": 7, "q": "tea"}',
    b'{"q":"tea","p":"7"}',
    b'{"q": "tea", "p": "7", "q": "ale"}',
    b'{"q": "tea", "x": 1, "x": 2}',
    b'{"q": "tea", "x": {"y": 1, "y": 2}}',
    b'{"q": "tea", "\\u0071": "ale"}',
    b'{"q": "tea", "p": 1e400}',
    b'{"q": "tea", "p": 01}',
    b'{"q": "tea", "p": +1}',
    b'{"q": "tea", "p": -0}',
    b'{"q": "tea", "p": 1_0}',
    b'{"q": "tea", "p": 1.}',
    b'{"q": "tea", "p": .5}',
    b'{"q": "tea", "p": 1E+05}',
    b'{"q": "tea", "p": NaN}',
    b'{"q": "tea", "p": -Infinity}',
    b'{"q": "tea", "p": null}',
    b'{"q": "tea", "p": nullx}',
    b'{"q": "tea", "p": true}',
    b'{"q": "tea", "p": "true"}',
    b'{"q": "tea", "p": "null"}',
    b'{"q": "tea", "p": True}',
    b'{"q": "tea", "p": }',
    b'{"q": "tea", "p": 7,}',
    b'{"q": "tea", "p": [7]}',
    b'{"q": "tea", "x": [7, {"q": "ale"}], "p": 7}',
    b'{"q": "tea", "p": {"q": "ale"}}',
    b'{"q": ", \\"p\\": ", "p": 7}',
    b'{"q": ", ", "p": "7"}',
    b'{"q": "a", "p": "b", "p": "c"}',
    b'{"q": "tea"}',
    b'{"q": ""}',
    b'{"x": "tea"}',
    b'{"": "tea", "q": "ale"}',
    b"{}",
    b"[]",
    b'"tea"',
    b"7",
    b'{"q": "tea", "p": "7"} {"q": "tea", "p": "8"}',
    b'{"q": "tea", "p": "7"},',
    b'{"q": "tea", "p": "7"',
    b'"q": "tea", "p": "7"}',
    b'{"q": "\\ud800", "p": "7"}',
    b'{"q": "\\ud83d\\ude00", "p": "7"}',
    b'{"q": "caf\\u00e9", "p": "7"}',
    b'{"q": "caf\xc3\xa9", "p": "7"}',
    b'{"q": "caf\xe9", "p": "7"}',
    b'{"q": "\xed\xa0\x80", "p": "7"}',
    b'{"q": "\xef\xbb\xbftea", "p": "7"}',
    b'\xef\xbb\xbf{"q": "tea", "p": "7"}',
    b'{"q": "a\x00b", "p": "7"}',
    b'{"q": "a\tb", "p": "7"}',
    b'{"q": "a\x1fb", "p": "7"}',
    b'{"q": "a\\tb", "p": "7"}',
    b'{"q": "a\rb", "p": "7"}',
    b'{"q": "a\x7fb", "p": "7"}',
    b'{"q": "a,b;c", "p": "7"}',
    b'{"q": " tea ", "p": "7"}',
    b'{"q": "\'tea\'", "p": "#7"}',
    b'{"q": "a\xc2\x85b\xe2\x80\xa8c", "p": "7"}',
    b'\t{"q":\t"tea", "p": "7"}',
    b' { "q" : "tea" , "p" : "7" } ',
    b'{"q": "tea", "p": "7"}\r',
    b"",
    b" ",
    b"\r",
    b"\x0c",
    b"\xc2\xa0",
    b'{"q": "' + b"tea" * 50_000 + b'", "p": "7"}',
    b'{"q": "tea", "p": ' + b"9" * 5_000 + b"}",
    b'{"q": "tea", "p": "7", ' + b", ".join(b'"x%d": 0' % n for n in range(40)) + b"}",
]
"""Lines that a reader might take for something else."""

ROWS = [
    b"tea,7",
    b"tea;7",
    b"tea",
    b"tea,7,",
    b"tea,7,8",
    b",7",
    b"tea,",
    b",",
    b"",
    b" ",
    b'"tea",7',
    b'"tea, green",7',
    b'"tea ""green""",7',
    b'"tea\ngreen",7',
    b'"tea\n\n\ngreen,7\n",7',
    b'"tea","7"',
    b'"",""',
    b'"tea"",7',
    b'tea","7',
    b'"tea",""7""',
    b'"tea"x,7',
    b' "tea",7',
    b'te"a,7',
    b'"tea,7',
    b"te\ra,7",
    b"tea,7\r",
    b"\r",
    b"te\x00a,7",
    b"te\x1fa,7",
    b"te\x1aa,7",
    b"caf\xc3\xa9,7",
    b"caf\xe9,7",
    b"\xef\xbb\xbfale,7",
    b" tea ,7",
    b"tea, 7 ",
    b"NULL,7",
    b"#tea,7",
    b"milk,1e400",
    b"milk,01",
    b"milk,+1",
    b"milk,-0",
    b"milk,1_0",
    b"milk,NaN",
    b"milk,1.0",
    b"milk,1.5",
    b"milk,1e3",
    "milk,１".encode(),
    "milk,²".encode(),
    b"milk,\xc2\xa07",
    b"milk,999999999999999999",
    b"milk,9999999999999999999",
    b"milk," + b"0" * 5_000 + b"1",
    b"good0,7",
    b"m" * 131_072 + b",7",
    b"m" * 131_073 + b",7",
]

SIZES = [1 << 20, 30]
"""Bytes of a piece: all of the file, and less than two lines."""


def outcome(read):
    """What is read, in an order of its own, or why not."""
    try:
        return sorted(read(), key=repr)
    except DataError as error:
        return str(error)


def slowly(path):
    with open_records(find_files(path), NAMES) as (names, rows):
        places = [names.index(name) for name in NAMES]
        return [tuple(row[place] or None for place in places) for _, row in rows]


def kept(data):
    with ExitStack() as stack:
        table = open_rows(data, NAMES, [], True, stack)
        return table.backend.con.execute(table.select(*NAMES).sql).fetchall()


def scored(path):
    return ScoreFile(path, ("q",), "p").read(WHOLE).items()


def around(line, good):
    """Files with a line first, in the middle, and last without an end."""
    usual = [good(number) for number in range(6)]
    yield b"\n".join([line, *usual, b""])
    yield b"\n".join([*usual[:3], line, *usual[3:], b""])
    yield b"\n".join([*usual, line])


def person(number):
    return b'{"q": "tea", "p": "u%d"}' % number


def numbered(number):
    return b'{"q": "tea", "p": %d}' % number


@pytest.mark.slow
@pytest.mark.parametrize(("size", "good"), [*((one, person) for one in SIZES), (1 << 20, numbered)])
@pytest.mark.parametrize("line", OBJECTS)
def test_lines_of_json_are_the_same_taken_apart(tmp_path, monkeypatch, line, size, good):
    monkeypatch.setattr(blocks, "PIECE", size)
    path = tmp_path / "rows.jsonl"
    for text in around(line, good):
        path.write_bytes(text)
        assert outcome(lambda: kept(path)) == outcome(lambda: slowly(path))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_all_hostile_lines_that_are_json_at_once(tmp_path, monkeypatch, size, end):
    monkeypatch.setattr(blocks, "PIECE", size)
    path = tmp_path / "rows.jsonl"
    fine = []
    for line in OBJECTS:
        path.write_bytes(b"\n" + line)
        fine += [line] if not isinstance(outcome(lambda: slowly(path)), str) else []
    assert 20 < len(fine) < len(OBJECTS)
    path.write_bytes(blocks.BOM + end.join([*fine, person(1), *fine, person(2)] * 3))
    rows = outcome(lambda: kept(path))
    assert rows == outcome(lambda: slowly(path))
    assert len(rows) > 3 * len(fine)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("line", ROWS)
def test_lines_of_csv_are_the_same_taken_apart(tmp_path, monkeypatch, line, size):
    monkeypatch.setattr(blocks, "PIECE", size)
    path = tmp_path / "rows.csv"
    for text in around(line, lambda number: b"good%d,%d" % (number, number)):
        path.write_bytes(b"q,p\n" + text)
        expected = outcome(lambda: slowly(path))
        assert outcome(lambda: kept(io.BytesIO(path.read_bytes()))) == expected
        fast = outcome(lambda: scored(path))
        with monkeypatch.context() as patch:
            patch.setattr(separated, "read_values", lambda *_: None)
            assert fast == outcome(lambda: scored(path))


@pytest.mark.parametrize("text", [b"q\ntea\n\nale\n", b"q\n\ntea\n", b"q\ntea\n\n\n", b"q\ntea"])
def test_an_empty_line_of_one_column_is_no_row(text):
    with ExitStack() as stack:
        table = open_rows(io.BytesIO(text), ["q"], [], True, stack)
        rows = table.backend.con.execute(table.sql).fetchall()
    with separated.open_named(io.BytesIO(text)) as opened:
        assert sorted(rows) == sorted((row[0],) for _, row in opened.rows)


@pytest.mark.slow
def test_mutated_lines_are_the_same_taken_apart(tmp_path):
    chance = random.Random(36)
    path = tmp_path / "rows.jsonl"
    parts = [b'"', b"{", b"}", b",", b":", b" ", b"\\", b"7", b"q", b'"q": "', b"\x1f", b"\x01"]
    refused = 0
    for _ in range(400):
        lines = [person(number) for number in range(4)]
        if chance.random() < 0.5:
            lines = [b'{"q": "a", "p": %d, "r": "b"}' % number for number in range(4)]
        text = bytearray(b"\n".join(lines) + b"\n")
        place = chance.randrange(len(text))
        text[place : place + chance.randint(0, 2)] = chance.choice(parts)
        path.write_bytes(bytes(text))
        expected = outcome(lambda: slowly(path))
        refused += isinstance(expected, str)
        assert outcome(lambda: kept(path)) == expected
    assert 40 < refused < 390


@pytest.mark.parametrize("width", [1, 2, 3])
def test_quotes_are_left_out_only_where_they_are_around_values(width):
    apart = 0
    for length in range(1, 9):
        for letters in product('",\na', repeat=length):
            text = "".join(letters)
            block = blocks.read_values(text.encode(), ",", width)
            if block is None:
                continue
            rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
            assert list_rows(block, range(width)) == [row for row in rows if row], text
            apart += '"' in text
    assert apart > 50


@pytest.mark.slow
def test_lines_of_json_in_any_order_are_the_same_taken_apart(tmp_path):
    chance = random.Random(38)
    path = tmp_path / "rows.jsonl"
    fine = [line for line in OBJECTS if b"x39" not in line and len(line) < 1000]
    for _ in range(60):
        some = chance.sample(fine, 3)
        path.write_bytes(b"\n".join(chance.choice([person(n), *some]) for n in range(30)))
        assert outcome(lambda: kept(path)) == outcome(lambda: slowly(path))


def test_usual_lines_are_taken_apart_and_strange_ones_are_not():
    lines = [json.dumps({"q": f"t{n}", "p": n}).encode() for n in range(50)]
    (((form, block),), strange) = sort_lines(b"\n".join(lines))
    assert (form.places, form.bare, block.lines, strange) == (
        {"q": 0, "p": 1},
        (False, True),
        50,
        b"",
    )
    lines[7], lines[8] = b'{"q": "\\u00e9\\"", "p": 7}', b'{"q": 7, "p": 07}'
    (((form, block),), strange) = sort_lines(b"\n".join(lines))
    assert (block.lines, strange) == (48, b"\n".join([*lines[7:9], b""]))
    assert block.columns([1])[0][6:9] == ["6", "9", "10"]


def test_lines_of_several_forms_are_taken_apart_form_by_form():
    lines = [
        [b'{"q": "t%d", "p": %d}' % (n, n) for n in range(9)],
        [b'{"q": "\\u00e9%d", "p": null}' % n for n in range(9)],
        [b'{"q": null, "p": "%d", "r": [1, "%d", {"q": "x"}]}' % (n, n) for n in range(9)],
        [b'{"r": ["a", "b", "%d"], "p": "%d"}' % (n, n) for n in range(9)],
    ]
    every = b"\n".join(line for four in zip(*lines, strict=True) for line in four)
    blocks_of, strange = sort_lines(every)
    assert strange == b""
    assert [(form.places, sorted(form.nested)) for form, _ in blocks_of] == [
        ({"q": 0, "p": 1}, []),
        ({"q": 0, "p": None}, []),
        ({"q": None, "p": 0, "r": None}, ["r"]),
        ({"r": None, "p": 3}, ["r"]),
    ]
    found = [
        block.columns([place]) for (_, block), place in zip(blocks_of, (0, 0, 0, 3), strict=True)
    ]
    assert found == [
        [[f"t{n}" for n in range(9)]],
        [[f"\u00e9{n}" for n in range(9)]],
        [[str(n) for n in range(9)]],
        [[str(n) for n in range(9)]],
    ]


def test_columns_in_more_orders_than_there_are_files(tmp_path):
    path = tmp_path / "rows.jsonl"
    for number in range(24):
        extra = {f"x{one}": "y" for one in range(number)}
        rows = [json.dumps({**extra, "q": f"t{number}", "p": f"u{n}"}) for n in range(3)]
        with path.open("a") as file:
            file.write("\n".join(rows) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "PIECE", 1)
        assert outcome(lambda: kept(path)) == outcome(lambda: slowly(path))


@pytest.mark.parametrize(
    "line", [b'{"q": []}', b'{"q": "a", "q": "b"}', b'{"q\\n": "a"}', b"{}", b'{"q": "a"} x']
)
def test_lines_without_a_form(line):
    assert find_form(line) is None


@pytest.mark.parametrize("end", [b"\\", b"\\x", b"\\u12", b"\\\\\\", b'\\"'])
def test_escapes_that_are_none_are_not_taken_apart(end):
    fine = b'{"q": "\\u00e9", "p": "u1"}'
    blocks_of, strange = sort_lines(b"\n".join([fine, b'{"q": "a%b", "p": "u2"}' % end, fine]))
    found = [row for _, block in blocks_of for row in list_rows(block, [0, 1])]
    assert found == [["\u00e9", "u1"]] * (len(found))
    assert b"a" + end in strange
