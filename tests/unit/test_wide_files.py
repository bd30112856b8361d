"""Files of very many columns: Ibis, which takes long for each, sees those that are asked for."""

from __future__ import annotations

import gzip
from contextlib import ExitStack

import pytest

from privmax import DataError, ParameterError, select
from privmax.sources.files import header, open_records
from privmax.sources.reading import as_table

pytest.importorskip("ibis")
import pyarrow  # with Ibis
from ibis.expr import operations
from pyarrow import parquet

PRICE = {"epsilon": 4, "delta": "1e-3"}
MANY = 300


def names(number):
    return ["item", "user", *(f"c{place}" for place in range(number))]


def write(path, number=MANY):
    """Thirty people of whom twenty have a."""
    rows = [["a" if user % 3 else "b", str(user), *["1"] * number] for user in range(30)]
    if path.suffix == ".parquet":
        columns = dict(zip(names(number), zip(*rows, strict=True), strict=True))
        parquet.write_table(pyarrow.table({name: list(got) for name, got in columns.items()}), path)
        return path
    text = "\n".join(",".join(row) for row in [names(number), *rows])
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8") as file:
        file.write(text)
    return path


def widest(table):
    """The columns of the widest table that an expression goes through."""
    return max(len(node.schema) for node in table.op().find(operations.Relation))


KINDS = ("rows.csv", "rows.csv.gz", "rows.parquet")


@pytest.mark.parametrize("name", KINDS)
def test_ibis_sees_the_columns_that_are_asked_for(tmp_path, name):
    with ExitStack() as held:
        table = as_table(write(tmp_path / name), ["item", "user", "c7"], ["c7"], True, held)
        assert widest(table) == 3
        assert set(table.columns) == {"item", "user", "c7"}


@pytest.mark.parametrize("name", KINDS)
def test_ibis_sees_them_for_several_files(tmp_path, name):
    ending = name.partition(".")[2]
    write(tmp_path / f"one.{ending}")
    write(tmp_path / f"two.{ending}")
    with ExitStack() as held:
        table = as_table(tmp_path / f"*.{ending}", ["item", "user"], [], True, held)
        assert widest(table) == 2
        assert table.count().execute() == 60


@pytest.mark.parametrize("name", KINDS)
def test_a_column_that_is_missing_is_named(tmp_path, name):
    file = write(tmp_path / name, number=2)
    with pytest.raises(ParameterError, match="no such column") as caught:
        select(file, item="itm", user="user", **PRICE)
    assert ("c1" in str(caught.value)) == name.endswith("parquet")
    with pytest.raises(ParameterError) as caught:
        select(file, user="user", **PRICE)
    assert ("c1" in str(caught.value)) == name.endswith("parquet")


def test_a_name_that_stands_twice_is_refused_and_others_are_read(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("item,twice,twice,user\n" + "a,1,2,3\n" * 2, encoding="utf-8")
    with pytest.raises(DataError, match="Two columns of the file are named 'twice'"):
        select(file, item="twice", user="user", **PRICE)
    select(file, item="item", user="user", **PRICE)


def test_odd_names_and_folders_are_quoted(tmp_path):
    folder = tmp_path / 'it\'s [a] "folder"'
    folder.mkdir()
    file = folder / "rows.csv"
    lines = "\n".join(f"a,{user}" for user in range(30))
    file.write_text(f'"it\'s ""x""",USER\n{lines}\n', encoding="utf-8")
    assert header(file)[0] == ['it\'s "x"', "USER"]
    assert select(file, item='it\'s "x"', user="USER", **PRICE).item == "a"
    rows = pyarrow.table({'it\'s "x"': ["a"] * 30, "USER": list(range(30))})
    parquet.write_table(rows, folder / "rows.parquet")
    found = select(folder / "rows.parquet", item='it\'s "x"', user="USER", **PRICE)
    assert found.item == "a"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_a_hundred_thousand_columns_are_read(tmp_path, name):
    file = write(tmp_path / name, number=10**5)
    assert select(file, item="item", user="user", **PRICE).item == "a"


def test_a_long_line_of_names_is_one_line(tmp_path):
    """It was cut after 2^20 characters, and the rest of it read as a row."""
    names = [f"column {place} {'x' * 100}" for place in range(12_000)]
    path = tmp_path / "wide.csv"
    path.write_text(f"{','.join(names)}\n{','.join(['1'] * len(names))}\n", encoding="utf-8")
    with open_records(path) as (found, rows):
        assert found == names
        assert [len(row) for _, row in rows] == [len(names)]
