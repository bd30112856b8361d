"""Targets that read files of data: baskets in every form, scores, examples for learning."""

from __future__ import annotations

import gzip
import io
from itertools import pairwise
from typing import Any

from lab.fuzzing.drawing import Draw, write
from lab.fuzzing.judging import PARSER, Target, WrongError
from privmax.cli.examples import read_examples
from privmax.cli.inputs import Input
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.reading.fimi import read_fimi
from privmax.itemsets.reading.forms import read_baskets
from privmax.learning.kinds import Category, Number
from privmax.learning.schema import Schema
from privmax.sources.conditions import Condition
from privmax.sources.files import ScoreFile
from privmax.sources.scale import Scale

WHERE = Condition.of("item != 'x' and score >= 0")
SCHEMA = Schema(a=Number(0, 9, cells=3, missing="?"), b=Category(["x", "y"]))


def check_baskets(found: Baskets) -> None:
    """Rows, codes and labels fit each other."""
    supports = found.supports()
    if len(supports) != len(found.labels) or found.offsets[-1] != len(found.codes):
        raise WrongError("baskets do not fit their labels")
    if len(supports) and supports.max() > found.individuals:
        raise WrongError("an item has more individuals than there are")
    found.longest()


def read_fimi_text(data: bytes) -> None:
    """FIMI: what is read equals what splitting the text gives."""
    found = read_fimi(io.BytesIO(data))
    text = data.removeprefix(b"\xef\xbb\xbf").decode()
    lines = text.split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    expected = [[int(word) for word in line.split()] for line in lines]
    labels, ends = found.labels, found.offsets.tolist()
    rows = [[labels[code] for code in found.codes[a:b].tolist()] for a, b in _pairs(ends)]
    if rows != expected:
        raise WrongError("baskets are not those of the file")


def _pairs(ends: list[int]) -> list[tuple[int, int]]:
    return list(pairwise(ends))


def read_basket_csv(data: bytes) -> None:
    """CSV of baskets: wide, long, one-hot; as bytes or as text."""
    draw = Draw(data)
    options = draw.pick(_FORMS)
    separator = draw.pick([None, None, ",", ";", "\t", "|", " ", "ab", "", "\n", "\0", '"', "é"])
    stream: Any = io.BytesIO(draw.rest())
    if draw.byte() % 2 and stream.getvalue().isascii():
        stream = io.StringIO(stream.getvalue().decode())
    check_baskets(read_baskets(stream, separator=separator, **options))


_FORMS: tuple[dict[str, Any], ...] = (
    {"form": "wide"},
    {"form": "wide", "header": True},
    {"form": "onehot"},
    {"form": "onehot", "user": "u"},
    {"form": "onehot", "basket": "b"},
    {"form": "long", "basket": "b", "item": "i"},
    {"form": "long", "basket": ["b", "c"], "item": "i", "user": "u"},
    {"form": "long", "basket": "b", "item": "i", "where": "i != 'x' and c > 1"},
)


def read_json_lines(data: bytes) -> None:
    """JSON Lines: baskets and scores."""
    draw = Draw(data)
    where, rest = draw.pick([None, "i = 'a'"]), draw.rest()
    file = write("rows.jsonl", rest)
    check_baskets(read_baskets(file, basket="b", item="i", user=draw.pick(["u"]), where=where))


def read_packed(data: bytes) -> None:
    """Compressed baskets: what gzip made, cut short, changed, or nothing of the kind."""
    draw = Draw(data)
    kind, name = draw.byte() % 4, draw.pick(["x.dat.gz", "x.csv.gz", "x.jsonl.gz", "x.csv.zst"])
    rest = draw.rest()
    packed = rest if kind == 0 else gzip.compress(rest, 1, mtime=0)
    if kind == 2:
        packed = packed[: max(1, len(packed) - 1 - rest[0] % 16)] if rest else packed
    elif kind == 3 and rest:
        place = rest[0] % len(packed)
        packed = packed[:place] + bytes([packed[place] ^ (rest[-1] or 1)]) + packed[place + 1 :]
    columns: dict[str, Any] = {"basket": "b", "item": "i"} if "json" in name else {}
    check_baskets(read_baskets(write(name, packed), **columns))


def read_scores(data: bytes) -> None:
    """CSV of `select`: a candidate a line, with its score."""
    draw = Draw(data)
    kind = draw.byte()
    scale = Scale.of(None, [None, "0.01"][kind % 2])
    items = [("item",), ("item", "more")][kind // 2 % 2]
    stream = io.BufferedReader(io.BytesIO(draw.rest()))
    found = ScoreFile(stream, items, "score", [None, WHERE][kind // 4 % 2]).read(scale)
    if any(label in ("", ()) for label in found):
        raise WrongError("a label is empty")


def read_learning(data: bytes) -> None:
    """CSV of `learn`: rows of numbers or of a schema, with a label."""
    draw = Draw(data)
    kind = draw.byte()
    labels: Any = [[0, 1], ["no", "yes"], [0.5, 1.5]][kind % 3]
    features: Any = [None, ["a"], SCHEMA, ["a", "b"]][kind // 3 % 4]
    where = [None, "a >= 0"][kind // 12 % 2]
    given = Input(write("examples.csv", draw.rest()), where=where)
    found = read_examples(given, features, [None, "y"][kind // 24 % 2], labels)
    if len(found.y) not in (0, len(found.X)):
        raise WrongError("there are more rows than labels")


_ROWS = [b"\n", b"\r\n", b"\r", b",", b";", b"\t", b'"', b'""', b"\xef\xbb\xbf", b"\x00"]

TARGETS = (
    Target(
        "fimi",
        PARSER,
        "baskets, FIMI",
        read_fimi_text,
        seeds=[b"1 2 3\n2\n\n10 20\n", b"\xef\xbb\xbf0 1\r\n2147483647\r\n", b"007\t8 \n1"],
        words=[b"\n", b"\r\n", b"\t", b" ", b"2147483647", b"2147483648", b"\xef\xbb\xbf", b"0"],
    ),
    Target(
        "basket CSV",
        PARSER,
        "baskets, CSV: wide, long, one-hot",
        read_basket_csv,
        seeds=[
            b'\x00\x00bread,milk\nmilk\n\n"a,b",tea\n',
            b"\x02\x00bread,milk,tea\n1,0,1\ntrue,f,no\n",
            b"\x03\x00u,bread,milk\nann,1,0\nbob,0,1\n",
            b"\x05\x00b,i\n1,milk\n2,bread\n1,bread\n",
            b"\x06\x00b;c;i;u\n1;1;milk;ann\n1;2;milk;bob\n",
            b"\x07\x00b,i,c\n1,milk,2\n2,x,3\n",
        ],
        words=[*_ROWS, b"true", b"yes", b"b,i", b"u,b,c,i"],
    ),
    Target(
        "JSON Lines",
        PARSER,
        "baskets, JSON Lines",
        read_json_lines,
        seeds=[
            b'\x00{"b": 1, "i": "milk", "u": "ann"}\n{"b": 2, "i": "tea", "u": "bob"}\n',
            b'\x01{"b": true, "i": "a", "u": null}\r\n\n{"b": 1.50, "i": "\\u00e9", "u": 7}\n',
        ],
        words=[b'{"b":', b'"i":', b'"u":', b"null", b"1e999", b"\\ud800", b"[", b"]", b"}\n"],
    ),
    Target(
        "packed files",
        PARSER,
        "baskets, compressed",
        read_packed,
        seeds=[b"\x01\x001 2\n3\n", b"\x02\x01bread,milk\n", b"\x03\x021 2\n3 4\n", b"\x00\x03xy"],
        words=[b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", b"\n"],
        longest=128,
    ),
    Target(
        "score CSV",
        PARSER,
        "`select` on ready scores",
        read_scores,
        seeds=[
            b"\x00item,score\ntea,12\nale,7\n",
            b'\x01item;score\n"te;a";0.125\nale;1e-3\n',
            b"\x06item,more,score\ntea,x,1\ntea,y,-2\n",
            b"\x04score\titem\n3\ttea\n",
        ],
        words=[*_ROWS, b"item,score", b"1e1000", b"1e-1001", b"-", b"."],
    ),
    Target(
        "learning CSV",
        PARSER,
        "`learn`",
        read_learning,
        seeds=[
            b"\x18a,b,y\n1,2,0\n3.5,-1e3,1\n",
            b"\x1ea,b,y\n1,x,0\n?,y,1\n,z,0\n",
            b"\x19y,a\nyes,1\nno,0\n",
            b"\x0ca,b\n1,2\n",
        ],
        words=[*_ROWS, b"a,b,y", b"nan", b"inf", b"1e308", b"yes", b"?"],
    ),
)
