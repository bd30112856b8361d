"""Files of separated values: one reader for Python and the command line, for ready scores and for
rows to count.
"""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from by_name import by_name
from click.testing import CliRunner

import privmax
from privmax.cli import main
from privmax.errors import DataError, ParameterError, PrivmaxError
from privmax.sources.files import ScoreFile, header
from privmax.sources.scale import Scale

COUNTS = "item,score\nrain boots,912\ntent,640\n"
WHOLE, GRID = Scale.of(None, None), Scale.of(1, "0.01")
PRICE = {"epsilon": 1, "delta": "1e-6"}
OPTIONS = ("--item", "item", "--score", "score", "--epsilon", "1", "--delta", "1e-6")
SECRETS = ("zorblax", "7310427")


def written(tmp_path, text, name="counts.csv"):
    path = tmp_path / name
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def read(path, scale=WHOLE, items=("item",)):
    return ScoreFile(path, tuple(items), "score").read(scale)


def select_by_command(path, *options, stdin=None):
    """(the item, or what is said on standard error)."""
    run = CliRunner().invoke(main, ["select", str(path), *OPTIONS, *options, "--json"], input=stdin)
    return json.loads(run.stdout)["item"] if run.exit_code == 0 else run.stderr


# What a file says, whatever its form

FORMS = {
    "commas": COUNTS,
    "semicolons": COUNTS.replace(",", ";"),
    "tabs": COUNTS.replace(",", "\t"),
    "byte order mark": "\ufeff" + COUNTS,
    "lines of Windows": COUNTS.replace("\n", "\r\n"),
    "no end of the last line": COUNTS.rstrip(),
    "empty lines": COUNTS.replace("tent", "\n\ntent"),
    "quotes": 'item,score\n"rain boots","912"\n"tent",640\n',
    "spaces around numbers": COUNTS.replace("912", " 912 ").replace("640", "\t640"),
    "another order, and more columns": "x,score,item\n1,912,rain boots\n2,640,tent\n",
    "columns without names": "item,score,,\nrain boots,912,,\ntent,640,,\n",
    "whole numbers in other words": "item,score\nrain boots,+9.12e2\ntent,640.0\n",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["counts.csv", "COUNTS.CSV", "counts.csv.gz", "counts.tsv", "counts.tsv.gz", "odd [1]* ?.csv"],
)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_data_through_both_doors(tmp_path, form, name):
    path = written(tmp_path, FORMS[form], name)
    assert read(path) == {"rain boots": 912, "tent": 640}
    assert privmax.select(path, item="item", score="score", **PRICE).item == "rain boots"
    assert privmax.select(str(path), item="item", score="score", **PRICE).item == "rain boots"
    assert select_by_command(path) == "rain boots"


def test_a_stream_is_read_like_a_file():
    assert read(io.BufferedReader(io.BytesIO(COUNTS.encode()))) == {"rain boots": 912, "tent": 640}
    assert select_by_command("-", stdin=COUNTS) == "rain boots"


def test_in_a_file_of_tabs_by_its_name_a_comma_separates_nothing(tmp_path):
    path = written(tmp_path, "item\tscore\tyes,no\na,b\t5\t1\n", "counts.tsv")
    assert read(path) == {"a,b": 5}
    assert header(path) == (["item", "score", "yes,no"], "\t")


def test_labels_are_text_and_numbers_are_exact(tmp_path):
    path = written(tmp_path, f"item,score\n007,0.1\n7.0,.5\n nan ,1e-3\nNULL,{2**70}\n")
    assert read(path, GRID) == {
        "007": Fraction(1, 10),
        "7.0": Fraction(1, 2),
        " nan ": Fraction(1, 1000),
        "NULL": 2**70,
    }


def test_several_columns_name_a_candidate_together(tmp_path):
    path = written(tmp_path, "a,b,score\nx,y,912\nx,z,3\n")
    assert read(path, items=("a", "b")) == {("x", "y"): 912, ("x", "z"): 3}
    assert privmax.select(path, item=["a", "b"], score="score", **PRICE).item == ("x", "y")


def test_decimals_stand_on_the_declared_grid_through_both_doors(tmp_path):
    path = written(tmp_path, "item,score\na,1000.25\nb,1\n")
    grid = {"sensitivity": "0.5", "neighbors": "replace"}
    assert by_name(privmax.select, path, item="item", score="score", **grid, **PRICE).item == "a"
    assert select_by_command(path, "--sensitivity", "0.5", "--neighbors", "replace") == "a"
    mechanism = privmax.PermuteAndFlip(epsilon=1)
    law = privmax.law(
        path,
        item="item",
        score="score",
        mechanism=mechanism,
        universe=["a", "b"],
        scores=privmax.Scores(resolution="0.25"),
    )
    same = privmax.law(
        {"a": 1000.25, "b": 1},
        mechanism=mechanism,
        universe=["a", "b"],
        scores=privmax.Scores(resolution="0.25"),
    )
    assert law == same


# What is refused: the same words from both doors, and nothing private in them

MISTAKES = {
    "no such column": (
        "query,score\nzorblax,7310427\n",
        "item='item' is not allowed: the file has no such column. Column",
    ),
    "no line of names": (
        "zorblax,7310427\nzorblax,2\n",
        "item='item' is not allowed: the file has no such column",
    ),
    "a column twice": (
        "item,score,score\nzorblax,7310427,2\n",
        "Two columns of the file are named 'score'. Rename one.",
    ),
    "a label twice": ("item,score\nzorblax,7310427\nzorblax,1\n", "Line 3 repeats a label."),
    "no label": ("item,score\nzorblax,7310427\n,1\n", "Line 3 has no label."),
    "quoted nothing": ('item,score\nzorblax,7310427\n"",1\n', "Line 3 has no label."),
    "no score": ("item,score\nzorblax,7310427\na,\n", "Line 3 has no number in the score column."),
    "text": ("item,score\na,zorblax\n", "Line 2 has no number in the score column."),
    "not a number": ("item,score\na,nan\n", "Line 2 has no number in the score column."),
    "infinite": ("item,score\na,inf\n", "Line 2 has no number in the score column."),
    "thousands": ('item,score\na,"7,310,427"\n', "Line 2 has no number in the score column."),
    "underscores": ("item,score\na,7_310_427\n", "Line 2 has no number in the score column."),
    "digits of another script": (
        "item,score\na,७३१\n",
        "Line 2 has no number in the score column.",
    ),
    "a decimal": (
        "item,score\nb,1\na,7310427.5\n",
        "Line 3 has a score that is not a whole number.",
    ),
    "too many digits": (
        f"item,score\na,7310427{'0' * 4300}\n",
        "Line 2 has a number of more than 4300 digits",
    ),
    "a large exponent": (
        "item,score\na,7310427e999999999\n",
        "Line 2 has a number of more than 4300 digits",
    ),
    "too few values": (
        "item,score\nb,1\nzorblax\n",
        "Line 3 does not have as many values as the first line.",
    ),
    "too many values": (
        "item,score\nzorblax,1,7310427\n",
        "Line 2 does not have as many values as the first line.",
    ),
    "an open quote": (
        'item,score\n"zorblax,7310427\n',
        "Line 2 is not CSV: a quote is not closed.",
    ),
    "empty": ("", "The file is empty, or begins with an empty line."),
    "empty first line": (
        "\nitem,score\nzorblax,7310427\n",
        "The file is empty, or begins with an empty line.",
    ),
    "Latin-1": (
        "item,score\ncafé zorblax,7310427\n".encode("latin-1"),
        "Line 2 is not UTF-8 text. If it is in",
    ),
    "UTF-16": (
        "item,score\nzorblax,7310427\n".encode("utf-16"),
        "The file is not UTF-8 text. It is text in UTF-16.",
    ),
    "a picture": (
        b"\x89PNG\r\n\x1a\n\x00zorblax",
        "The file is not UTF-8 text. It is a picture (PNG).",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_alike_through_both_doors(tmp_path, mistake):
    text, said = MISTAKES[mistake]
    path = written(tmp_path, text)
    with pytest.raises(PrivmaxError) as caught:
        privmax.select(path, item="item", score="score", **PRICE)
    assert isinstance(caught.value, (DataError, ParameterError))
    assert str(caught.value).startswith(said)
    typed = said.replace("item='item' is not allowed:", "--item item:")
    assert select_by_command(path).startswith(f"Error: {typed}")
    for words in (str(caught.value), select_by_command(path)):
        assert not any(secret in words for secret in SECRETS)
    assert caught.value.__cause__ is None


def test_what_is_packed_and_cut_short_is_named(tmp_path):
    path = tmp_path / "counts.csv.gz"
    rows = "".join(f"zorblax {number},7310427\n" for number in range(1000))
    path.write_bytes(gzip.compress(f"item,score\n{rows}".encode())[:-30])
    for broken in (path.read_bytes(), b"zorblax,7310427\n"):
        path.write_bytes(broken)
        with pytest.raises(DataError, match="cannot be read") as caught:
            read(path)
        assert "zorblax" not in str(caught.value)


# Rows to count: the same rules


def test_rows_to_count_are_read_by_the_same_rules(tmp_path):
    """An empty value is none at all, quoted or not; such rows do not count, with users and
    without.
    """
    text = "item,person,\n" + 'a,1,\n"",2,\n,3,\na,4,\n""" ",5,\n nan,6,\n'
    law = {"mechanism": privmax.NestedMargin(epsilon=1, delta="0.1"), "item": "item"}
    for name in ("rows.csv", "rows.tsv.gz"):
        path = written(tmp_path, text, name)
        for options in ({}, {"user": "person"}):
            assert set(privmax.law(path, **law, **options)) == {"a", '" ', " nan", None}


def test_a_column_that_is_there_twice_is_refused_only_if_it_is_asked_for(tmp_path):
    path = written(tmp_path, "item,person,n,n\n" + "".join(f"a,{n},1,2\n" for n in range(50)))
    assert privmax.select(path, item="item", user="person", **PRICE).item == "a"
    with pytest.raises(DataError, match="Two columns of the file are named 'n'"):
        privmax.select(path, item="n", user="person", **PRICE)


@pytest.mark.slow
def test_ready_scores_need_no_engine(tmp_path):
    path = written(tmp_path, COUNTS, "counts.csv.gz")
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('ibis', 'duckdb', 'pandas', 'pyarrow')));"
        f"import privmax; print(privmax.select({str(path)!r}, item='item', score='score', "
        f"epsilon=1, delta=1e-6).item)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(tmp_path)
    )
    assert run.stdout.strip() == "rain boots"


@pytest.mark.parametrize("columns", [{"score": "score"}, {"user": "score"}])
@pytest.mark.parametrize("opened", [True, False])
def test_what_is_no_text_leads_to_no_row(tmp_path, columns, opened):
    """Not from the error either: the one of Python holds what was read."""
    rows = b"".join(b"canary-%d,1\n" % number for number in range(3000))
    file = tmp_path / "rows.csv"
    file.write_bytes(b"item,score\n" + rows + b"\xff,1\n")
    terms = {"item": "item", "epsilon": 1, "delta": 1e-6, **columns}
    with file.open("rb") as stream, pytest.raises(PrivmaxError) as caught:
        privmax.select(stream if opened else file, **terms)
    error: BaseException | None = caught.value
    while error is not None:
        assert "canary" not in repr(error)
        assert "canary" not in repr(vars(error))
        assert b"canary" not in getattr(error, "object", b"")
        error = error.__context__


@pytest.mark.parametrize("text", ['""\n1\n', "a,a\n1,2\n", '"",a,a\n1,2,3\n'])
@pytest.mark.parametrize("columns", [{"item": "i"}, {"item": "i", "user": "u"}, {"item": ""}])
def test_a_file_without_a_name_of_its_own_is_refused(tmp_path, text, columns):
    file = tmp_path / "rows.csv"
    file.write_text(text)
    with pytest.raises(DataError, match="No column has a name of its own"):
        privmax.select(file, **columns, epsilon=1, delta=1e-6)
    with file.open("rb") as stream, pytest.raises(PrivmaxError):
        privmax.select(stream, **columns, epsilon=1, delta=1e-6)


def test_a_column_that_is_named_twice_is_refused(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("who,count\na,9\n")
    with pytest.raises(ParameterError, match="occurs in it more than once"):
        privmax.select(path, item=["who", "who"], score="count", epsilon=1, delta="0.1")
    arguments = [
        "select",
        str(path),
        "--item",
        "who",
        "--item",
        "who",
        "--score",
        "count",
        "--epsilon",
        "1",
    ]
    shown = CliRunner().invoke(main, [*arguments, "--delta", "0.1"])
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "more than once" in shown.stderr
