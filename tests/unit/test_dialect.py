"""What a caller declares of a file of text: delimiter, encoding, public names of columns."""

from __future__ import annotations

import codecs
import encodings
import gzip
import io
import json
import pkgutil

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from by_name import by_name

import privmax
from privmax import TextFile
from privmax.errors import DataError, LedgerError, ParameterError
from privmax.itemsets import Layout, top_itemsets
from privmax.ledger import Ledger
from privmax.markers import top_markers
from privmax.sources.dialect import Dialect

PRICE = {"epsilon": 4, "delta": "0.01"}
COUNTING = {"item": "größe", "user": "person", **PRICE}
BASKETS = {"basket": "basket", "item": "größe", **PRICE}
NAMES = ["person", "größe", "basket"]
ROWS = [(f"u{n}", "maß, groß", f"b{n}") for n in range(60)]
ROWS += [(f"u{n}", "über", f"b{n}") for n in range(60)]


def text(mark="|", rows=ROWS):
    return "".join(mark.join(row) + "\n" for row in [NAMES, *rows])


@pytest.mark.parametrize("encoding", ["cp1252", "UTF-16", "utf-16-le", "latin-1", "utf-8"])
@pytest.mark.parametrize("form", ["csv", "gz", "stream", "pattern"])
def test_select_reads_what_is_declared(tmp_path, encoding, form):
    content = text().encode(encoding)
    path = tmp_path / ("a.csv.gz" if form == "gz" else "a.csv")
    path.write_bytes(gzip.compress(content) if form == "gz" else content)
    data = path
    if form == "stream":
        data = io.BytesIO(content)
    if form == "pattern":
        (tmp_path / "b.csv").write_bytes(content)
        data = tmp_path / "*.csv"
    rows = ROWS[:60]
    path2 = tmp_path / "only.csv"
    path2.write_bytes(text(rows=rows).encode(encoding))
    assert (
        privmax.select(privmax.TextFile(path2, delimiter="|", encoding=encoding), **COUNTING).item
        == "maß, groß"
    )
    found = privmax.select(
        privmax.TextFile(data, delimiter="|", encoding=encoding), k=2, **COUNTING
    )
    assert set(found.items) == {"maß, groß", "über"}


def test_ready_scores_and_json_lines_are_decoded(tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_bytes("item|score\nmaß|900\nfuß|3\n".encode("cp1252"))
    options = {"item": "item", "score": "score", "encoding": "cp1252", **PRICE}
    assert by_name(privmax.select, scores, delimiter="|", **options).item == "maß"
    lines = tmp_path / "a.jsonl"
    rows = [json.dumps({"p": f"u{n}", "q": "maß"}, ensure_ascii=False) for n in range(60)]
    lines.write_bytes("\n".join(rows).encode("cp1252"))
    assert (
        privmax.select(privmax.TextFile(lines, encoding="cp1252"), item="q", user="p", **PRICE).item
        == "maß"
    )


@pytest.mark.parametrize("name", ["delimiter", "separator"])
def test_itemsets_read_what_is_declared(tmp_path, name):
    (tmp_path / "a.csv").write_bytes(text().encode("cp1252"))
    options = {name: "|", "encoding": "cp1252"}
    expected = ("maß, groß", "über")
    assert by_name(top_itemsets, tmp_path / "a.csv", **options, **BASKETS).item == expected
    (tmp_path / "b.csv").write_bytes(text(rows=[("u", "x", "z")]).encode("cp1252"))
    assert by_name(top_itemsets, tmp_path / "*.csv", **options, **BASKETS).item == expected
    stream = io.BytesIO(text().encode("cp1252"))
    assert by_name(top_itemsets, stream, **options, **BASKETS).item == expected
    wide = tmp_path / "wide.csv"
    wide.write_bytes(("maß|fuß\n" * 60).encode("cp1252"))
    assert by_name(top_itemsets, wide, **options, **PRICE, layout=Layout(form="wide")).item == (
        "fuß",
        "maß",
    )
    onehot = tmp_path / "onehot.csv"
    onehot.write_bytes(("maß|fuß\n" + "1|1\n" * 60).encode("cp1252"))
    assert by_name(top_itemsets, onehot, **options, **PRICE, layout=Layout(form="onehot")).item == (
        "fuß",
        "maß",
    )


def test_markers_read_what_is_declared(tmp_path):
    rows = ["ja|2|0"] * 40 + ["nein|0|0"] * 40
    (tmp_path / "a.csv").write_bytes("\n".join(["fälle|rs1|rs2", *rows]).encode("cp1252"))
    file = TextFile(tmp_path / "a.csv", delimiter="|", encoding="cp1252")
    found = top_markers(
        file, cases=40, controls=40, epsilon=9, status="fälle", case="ja", markers=["rs1", "rs2"]
    )
    assert found.item == "rs1"


def test_other_bytes_are_refused_without_a_quote(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"person,query\nzorblax,\x81\n")
    for ask in (
        lambda **more: by_name(privmax.select, path, item="query", user="person", **PRICE, **more),
        lambda **more: by_name(top_itemsets, path, basket="person", item="query", **PRICE, **more),
    ):
        with pytest.raises(DataError, match="not text in cp1252, as encoding says") as caught:
            ask(encoding="cp1252")
        assert caught.value.__context__ is None
        assert "zorblax" not in str(caught.value)


@pytest.mark.parametrize("given", ["latin-1", "Windows-1252", "ISO 8859-15"])
def test_an_encoding_is_quoted_as_it_was_given(given, tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": ["a"]}), path)
    for ask in (privmax.select, top_itemsets):
        with pytest.raises(ParameterError, match=f"^encoding={given!r}"):
            by_name(ask, path, item="x", encoding=given, **PRICE)
    names = {Dialect(None, given), Dialect(None, codecs.lookup(given).name)}
    assert len(names) == 1  # one encoding, however it is spelled


@pytest.mark.parametrize("given", ["Windows_1252", "cp1252"])
def test_what_cannot_be_decoded_quotes_the_encoding_as_it_was_given(given, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"person,query\nu,\x81\n")
    for data in (path, io.BytesIO(path.read_bytes())):
        with pytest.raises(DataError, match=f"not text in {given}, as encoding says"):
            privmax.select(
                privmax.TextFile(data, encoding=given), item="query", user="person", **PRICE
            )
    with pytest.raises(DataError, match=f"not text in {given}, as encoding says"):
        top_itemsets(TextFile(path, encoding=given), basket="person", item="query", **PRICE)


def test_a_spelling_that_cannot_be_printed_is_not_quoted():
    found = Dialect(None, "latin\x1b1").encoding
    assert (found, found.spelling) == ("iso8859-1", "iso8859-1")


def test_utf8_errors_name_the_option(tmp_path):
    (tmp_path / "a.csv").write_bytes("person,query\nu,maß\n".encode("cp1252"))
    with pytest.raises(DataError, match="--encoding cp1252"):
        privmax.select(tmp_path / "a.csv", item="query", score="person", **PRICE)


@pytest.mark.parametrize("given", ["", "ab", '"', "\n", "\0", 7])
def test_a_delimiter_is_one_character(given):
    with pytest.raises(ParameterError, match=r"^delimiter="):
        Dialect(given)


@pytest.mark.parametrize(
    "given", ["cp1253x", "rot13", "hex", "idna", "unicode_escape", "", "a\0", 7]
)
def test_an_encoding_is_known(given):
    with pytest.raises(ParameterError, match=r"^encoding="):
        Dialect(None, given)


CODECS = sorted(
    name for name in (module.name for module in pkgutil.iter_modules(encodings.__path__))
    if name not in ("aliases", "mbcs", "oem") and codecs.lookup(name)._is_text_encoding
)  # fmt: skip
STATEFUL = {name for name in CODECS if name.startswith("iso2022_")} | {"hz", "utf_7"}
ODD = {"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape"}
UNITS = {name for name in CODECS if name.startswith(("utf_16", "utf_32"))}
"""Units of several bytes: no line of them ends in the middle of one. A mark at the beginning of the
file, which is public, says their order."""

FIRST = [bytes([byte]) for byte in range(256)]
FIRST += [bytes([lead, byte]) for lead in range(0x80, 0x100) for byte in b"0@\x81\xa1\xfe"]
FIRST += [b"\x81\x30\x81", b"~{", b"+", b"+2D0", b"\x1b$B", b"\x1b$A", b"\x1b(J", b"\x1b$(D"]
FIRST += [b"\x1b$)C", b"\x1b$)A\x0e", b"\x1b.A", b"\x1b$(O", b"\x1b$(Q", b"\x1b(I"]
NEXT = [bytes(range(0x20, 0x7F)), b"0!", b"\x0e!!\x0f", b"\x1bN!", b"+3gA-"]


def decode(name, content):
    try:
        return codecs.getincrementaldecoder(name)().decode(content, True)
    except UnicodeError:
        return None


def depends(name):
    """Lines that do not end at their end, or after which the next one is not read by itself."""
    for first in (line + b"\n" for line in FIRST):
        begin = decode(name, first)
        if begin is not None and not begin.endswith(decode(name, b"\n")):
            yield first, b""
        for rest in NEXT:
            end = decode(name, rest)
            apart = None if begin is None or end is None else begin + end
            if decode(name, first + rest) != apart:
                yield first, rest


def is_refused(name):
    try:
        Dialect(None, name)
    except ParameterError:
        return True
    return False


@pytest.mark.parametrize("name", sorted({*CODECS} - UNITS - ODD))
def test_no_line_decides_how_the_next_is_read(name):
    """One row of an encoding that shifts changed all rows after it."""
    assert is_refused(name) or not any(depends(name))


def test_encodings_that_shift_are_refused_and_no_others():
    assert {name for name in CODECS if is_refused(name)} == STATEFUL | ODD
    shifting = {name for name in STATEFUL if any(depends(name))}
    assert STATEFUL - shifting == {"utf_7"}  # a line break ends a shift there, in Python
    with pytest.raises(ParameterError, match=r"^encoding='ISO-2022-JP'.* earlier rows .*UTF-8"):
        Dialect(None, "ISO-2022-JP")


def test_one_encoding_has_one_name():
    assert Dialect(None, "Windows-1252") == Dialect(None, "cp1252")
    assert Dialect(None, "UTF8") == Dialect()


@pytest.mark.parametrize("option", [{"delimiter": ";"}, {"encoding": "cp1252"}])
def test_they_are_for_text(tmp_path, option):
    table = pa.table({"person": ["a"], "größe": ["x"], "basket": ["b"]})
    pq.write_table(table, tmp_path / "a.parquet")
    for data in (tmp_path / "a.parquet", table, table.to_pandas(), {"a": 1}, "postgres://x/y"):
        with pytest.raises(ParameterError, match=f"^{next(iter(option))}="):
            by_name(privmax.select, data, **COUNTING, **option)
    with pytest.raises(ParameterError):
        by_name(top_itemsets, table, **BASKETS, **option)


def test_columns_of_a_file_are_named_where_they_are_public(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text(","), encoding="utf-8")
    asking = (
        lambda **more: by_name(privmax.select, path, **{**COUNTING, "user": "persn"}, **more),
        lambda **more: by_name(privmax.select, path, **COUNTING, where="persn = 'a'", **more),
        lambda **more: by_name(
            privmax.select, io.BytesIO(path.read_bytes()), **{**COUNTING, "user": "persn"}, **more
        ),
        lambda **more: by_name(privmax.select, path, item="größe", score="persn", **PRICE, **more),
        lambda **more: by_name(top_itemsets, path, **{**BASKETS, "basket": "persn"}, **more),
        lambda **more: by_name(
            top_itemsets, path, user="persn", **PRICE, **more, layout=Layout(form="onehot")
        ),
    )
    for ask in asking:
        with pytest.raises(ParameterError) as caught:
            ask()
        assert "person" not in str(caught.value)
        with pytest.raises(ParameterError, match="Did you mean 'person'"):
            ask(header_is_public=True)


def test_a_ledger_takes_another_dialect_for_another_request(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text(",", rows=[("u", "x", "b")]), encoding="utf-8")
    ledger = Ledger(tmp_path / "b.db", epsilon=100, delta="0.9")
    options = {"item": "größe", "user": "person", **PRICE}
    by_name(privmax.select, path, ledger=ledger.request("a"), **options)
    by_name(
        privmax.select,
        privmax.TextFile(path, header_is_public=True),
        ledger=ledger.request("a"),
        **options,
    )
    with pytest.raises(LedgerError):
        by_name(
            privmax.select,
            privmax.TextFile(path, delimiter=","),
            ledger=ledger.request("a"),
            **options,
        )
    frame = pd.DataFrame({"person": ["a"], "größe": ["x"]})
    by_name(privmax.select, frame, ledger=ledger.request("b"), **options)
    recorded = [one.body["what"]["options"] for one in ledger.history() if one.kind == "reserved"]
    assert not any(
        {"delimiter", "encoding", "header_is_public", "check"} & set(one) for one in recorded
    )
