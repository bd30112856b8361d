"""Ready scores that are read from bytes, against a reader that goes row by row."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest

from privmax.errors import DataError
from privmax.sources import blocks, listed_scores
from privmax.sources.files import ScoreFile, open_records
from privmax.sources.listed_scores import read_number
from privmax.sources.scale import Scale

WHOLE, GRID = Scale.of(None, None), Scale.of(1, "0.01")

SCORES = [
    *("0", "7", "007", "12345678", "123456789", "1234567890123456", "12345678901234567"),
    *("999999999999999999", "9223372036854775807", "9223372036854775808", "1" * 40),
    *("-5", "+5", " 5 ", "5.0", "1e3", "-0"),
]
"""Whole numbers, in all kinds of words."""

WRONG = [
    "",
    " ",
    "1.5",
    "x",
    "1234567/",
    "1234567:",
    "123456 8",
    "1_000",
    "٣",
    "é1234567",
    "1e9999",
]
"""What is no score, or no whole one."""

LABELS = ["a", "abcdefg", "abcdefgh", "abcdefghi", "é" * 9, "b" * 128, "b" * 129, "c" * 700]


def slowly(data, scale, items):
    """The scores, or what is said, with a dict and one row at a time."""
    scores = {}
    with open_records(io.BytesIO(data)) as (names, rows):
        places = [names.index(name) for name in items]
        for line, row in rows:
            label = tuple(row[place] for place in places)
            if "" in label:
                raise DataError(f"Line {line} has no label.")
            if label in scores:
                raise DataError(f"Line {line} repeats a label.")
            scores[label] = read_number(row[names.index("score")], line, scale)
    return {label if len(label) > 1 else label[0]: score for label, score in scores.items()}


def outcome(read, *given):
    try:
        return list(read(*given).items())
    except DataError as error:
        return " ".join(str(error).split()[:5])


def read(data, scale, items):
    return ScoreFile(io.BytesIO(data), tuple(items), "score").read(scale)


def files(chance, *, quoted):
    """Files of random rows, of which few are wrong, with columns in any order."""
    for _ in range(60):
        width = chance.randrange(1, 4)
        names = [*(f"item{n}" for n in range(width)), "score"]
        chance.shuffle(names)
        lines = [",".join(names)]
        fault = chance.choice(["", "", "score", "label", "repeat", "line"])
        rows = chance.randrange(1, 40)
        at = chance.randrange(rows)
        for number in range(rows):
            row = {name: f"{chance.choice(LABELS)}{number}" for name in names}
            row["score"] = chance.choice(SCORES)
            if number >= at and chance.random() < 0.5:
                if fault == "score":
                    row["score"] = chance.choice(WRONG)
                elif fault == "label":
                    row[chance.choice(names)] = ""
                elif fault == "repeat" and len(lines) > 1:
                    score = row["score"]
                    row = dict(zip(names, lines[-1].split(","), strict=True)) | {"score": score}
            own = [row[name] for name in names]
            if quoted and chance.random() < 0.1:
                own = [f'"{value}"' for value in own]
            lines.append(",".join(own + ["x"] * (fault == "line" and number == at)))
        items = [name for name in names if name != "score"]
        yield "\n".join(lines).replace('"', '"' if quoted else "").encode(), items


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("size", [64, 1 << 20])
def test_scores_are_those_of_a_reader_that_goes_row_by_row(monkeypatch, size, collide, quoted):
    monkeypatch.setattr(blocks, "PIECE", size)
    monkeypatch.setattr(listed_scores, "_ROWS", 3)
    if collide:  # a hash decides nothing
        plain = listed_scores._hash_values
        monkeypatch.setattr(listed_scores, "_hash_values", lambda *given: plain(*given) * 0)
    said = set()
    for data, items in files(random.Random(size), quoted=quoted):
        for scale in (WHOLE, GRID):
            ours = outcome(read, data, scale, items)
            assert ours == outcome(slowly, data, scale, items)
            said.add(ours.split(" ", 2)[2] if isinstance(ours, str) else "scores")
    assert len(said) >= 5, said


def test_only_digits_are_read_as_digits():
    for byte in range(256):
        for place in range(9):
            digits = bytearray(b"123456789")
            digits[place] = byte
            text = listed_scores._PAD + bytes(digits) + listed_scores._PAD
            numbers, are_plain = listed_scores._read_digits(text, np.array([17]), np.array([9]))
            assert are_plain[0] == bytes(digits).isdigit()
            assert numbers[0] == (int(digits) if are_plain[0] else 0)


def test_labels_are_made_when_asked_for_and_shown_nowhere():
    scores = read("item,score\ntea,5\n\u00e9,6\n".encode(), WHOLE, ["item"])
    assert scores == {"tea": 5, "\u00e9": 6}
    assert [scores.labels[place] for place in range(2)] == list(scores.labels) == ["tea", "\u00e9"]
    assert scores.numbers.tolist() == [5, 6]
    assert "tea" not in f"{scores}{scores.labels}{scores._parts}"


def test_half_a_character_of_an_open_file_of_text_is_kept():
    file = io.StringIO("item,score\n\ud800,5\n\udfff,6\n")
    scores = ScoreFile(file, ("item",), "score").read(WHOLE)
    assert list(scores.items()) == [("\ud800", 5), ("\udfff", 6)]
