"""Every command refuses the same malformed text in the same words: one reader serves them all."""

from __future__ import annotations

import gzip

import pytest
from click.testing import CliRunner

from privmax.cli import main

PRICE = ("--epsilon", "1", "--delta", "1e-6")
SECRET = "zorblax"
COMMANDS = {
    "scores": ("select", "--item", "item", "--score", "score"),
    "rows counted by DuckDB": ("select", "--item", "item", "--user", "score"),
    "rows of another encoding": (
        "select", "--item", "item", "--user", "score", "--encoding", "utf-8-sig",
    ),
    "baskets, long": ("itemsets", "--basket", "score", "--item", "item"),
    "baskets, one-hot": ("itemsets", "--form", "onehot", "--basket", "item"),
    "rules": ("learn", "--label", "score", "--labels", "1,0", "--low", "0", "--high", "9"),
    "rules of a schema": (
        "learn", "--label", "score", "--labels", "1,0", "--schema", "SCHEMA",
    ),
}  # fmt: skip
"""All ways to read a file of separated values under a line of names."""

NAMES = b"item,score\n7,1\n8,0\n"
MALFORMED = {
    "short": (NAMES + b"zorblax\n", "Line 4 does not have as many values as the first line."),
    "long": (NAMES + b"1,1,zorblax\n", "Line 4 does not have as many values as the first line."),
    "blanks": (NAMES + b"  \n", "Line 4 does not have as many values as the first line."),
    "an open quote": (NAMES + b'"zorblax,1\n1,1\n', "Line 4 is not CSV: a quote is not closed."),
    "text after a quote": (
        NAMES + b'"1"zorblax,1\n',
        "Line 4 is not CSV: there is text after a closing quote.",
    ),
    "a carriage return": (
        NAMES + b"1\rzorblax,1\n",
        "Line 4 is not CSV: there is a carriage return inside the line.",
    ),
    "carriage returns alone": (
        NAMES.replace(b"\n", b"\r"),
        "Line 1 is not CSV: there is a carriage return inside the line.",
    ),
    "Latin-1": (NAMES + b"1,1\n\xe9 zorblax,1\n", "Line 5 is not UTF-8 text."),
    "UTF-16": (NAMES.decode().encode("utf-16"), "The file is not UTF-8 text. It is text in UTF-16"),
    "zero bytes": (NAMES + b"\0\0,1\n", "The file is not UTF-8 text. It has zero bytes"),
    "nothing": (b"", "The file is empty, or begins with an empty line."),
    "an empty first line": (b"\n" + NAMES, "The file is empty, or begins with an empty line."),
}


def refusal(tmp_path, command, path):
    schema = tmp_path / "schema.toml"
    schema.write_text("[item]\nlow = 0\nhigh = 9\n", "utf-8")
    name, *options = (str(schema) if one == "SCHEMA" else one for one in COMMANDS[command])
    price = PRICE[:2] if name == "learn" else PRICE
    run = CliRunner().invoke(main, [name, str(path), *options, *price])
    assert (run.exit_code, run.stdout) == (2, ""), run.stderr
    assert SECRET not in run.stderr
    return run.stderr


@pytest.mark.parametrize("fault", MALFORMED)
@pytest.mark.parametrize("command", COMMANDS)
def test_malformed_text_is_refused_in_the_same_words(tmp_path, command, fault):
    content, said = MALFORMED[fault]
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    assert refusal(tmp_path, command, path).startswith(f"Error: {said}")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_compressed_file_that_is_cut_short_is_refused_in_the_same_words(tmp_path, command):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(NAMES * 1000)[:-12])
    said = "Error: The file cannot be read: it is not a gzip file, or is truncated."
    assert refusal(tmp_path, command, path).startswith(said)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_column_that_is_asked_for_and_is_there_twice(tmp_path, command):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"item,item,score\n1,1,1\n")
    said = "Two columns of the file are named 'item'"
    if command in ("baskets, one-hot", "rules"):  # which read all columns
        said = "Two columns of the file have the same name"
    assert refusal(tmp_path, command, path).startswith(f"Error: {said}. Rename one.")
