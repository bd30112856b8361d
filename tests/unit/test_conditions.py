"""The language of `where`: what it reads, what it refuses, and that a row alone decides."""

from __future__ import annotations

import datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from textwrap import indent

import ibis
import pandas
import polars
import pyarrow as pa
import pytest
from by_name import by_name

import privmax
from privmax.errors import ConditionError, DataError
from privmax.sources import conditions
from privmax.sources.conditions import DIGITS, Condition
from privmax.sources.containers.pandas import keep_rows
from privmax.sources.engines import engine_of


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("a = 1", '"a" = 1'),
        ("A==1.50", '"A" = 1.5'),
        ("a <> -2", '"a" != -2'),
        ("\"odd \"\"name\" = 'it''s'", "\"odd \"\"name\" = 'it''s'"),
        ("a BETWEEN 1 AND 2 AND b = true", '"a" >= 1 and "a" <= 2 and "b" = true'),
        ("not (a = 1 or b is null)", '"a" != 1 and "b" is not null'),
        ("not not a < 1", '"a" < 1'),
        ("a in (1, 2) and b not in ('x')", '("a" = 1 or "a" = 2) and "b" != \'x\''),
        ("a not between 1 and 2", '"a" < 1 or "a" > 2'),
        ("a starts with 'ab'", "\"a\" >= 'ab' and \"a\" < 'ac'"),
        ("a starts with '\ud7ff'", "\"a\" >= '\ud7ff' and \"a\" < '\ue000'"),
        ("a starts with '\U0010ffff'", "\"a\" >= '\U0010ffff'"),
        ("a = 1 or b = 2 and c = 3", '"a" = 1 or ("b" = 2 and "c" = 3)'),
        (f"a = {'9' * DIGITS}.{'1' * DIGITS}", f'"a" = {"9" * DIGITS}.{"1" * DIGITS}'),
    ],
)
def test_a_condition_has_one_canonical_text(given, canonical):
    found = Condition.of(given)
    assert str(found) == canonical
    assert str(Condition.of(canonical)) == canonical
    assert found.given == given


@pytest.mark.parametrize(
    "given",
    [
        "", "a", "a =", "a = b", "a = null", "1 = 1", "a = 'x", "a = 1 b = 2", "(a = 1", "a in ()",
        "a = 1; drop table x", "a = 1 -- x", "a /* x */ = 1", "lower(a) = 'x'", "a = random()",
        "a / 0 = 1", "a + 1 = 2", "a || 'x' = 'y'", "cast(a as int) = 1", "a::int = 1",
        "(select 1) = 1", "a in (select b from c)", "exists (select 1)", "count(*) > 1",
        "row_number() over () = 1", "a > (select max(a) from t)", "a like 'x%'", "a ~ 'x'",
        "case when a = 1 then true else false end", "a = 1e5", "a = 0x10", f"a = {'9' * 19}",
        "a = current_date", "a starts with ''", "a starts with 3", "a is", "a is 3", "not",
        "a = '\ud800'", "not " * 99 + "a = 1", "a = 1 or " * 2000 + "a = 1", 7, None,
    ],
)  # fmt: skip
def test_what_is_not_in_the_language_is_refused(given):
    with pytest.raises(ConditionError) as caught:
        Condition.of(given)
    assert caught.value.name == "where"


ROWS = [
    {"text": text, "number": number, "share": share, "day": day, "flag": flag}
    for text, number, share, day, flag in [
        ("a", 1, 0.5, datetime.date(2026, 1, 1), True),
        ("B", -3, -0.0, datetime.date(1999, 12, 31), False),
        ("ä", 2**62, float("nan"), None, None),
        ("ab\\'%_", None, 1e300, datetime.date(2026, 1, 2), True),
        (None, 0, None, datetime.date(2026, 1, 1), None),
        ("", 10, float("inf"), datetime.date(2262, 5, 1), False),
        ("\U0001f600", 9, 0.1, datetime.date(2026, 1, 3), True),
        ("\uffff", 99, -float("inf"), datetime.date(2026, 1, 4), False),
        ("c", 2, 0.1, datetime.date(2026, 1, 2), True),  # at the ends of what lies between numbers
        ("d", -1, 0.5, datetime.date(2026, 1, 2), None),
    ]
]

TESTS = [
    *(f"text {sign} 'ab'" for sign in ("=", "!=", "<", "<=", ">", ">=")),
    "text = 'ab\\''%_'", "text starts with 'ab\\'", "text starts with '\uffff'", "text > '\uffff'",
    "text in ('a', 'A', 'b', 'B')", "text not in ('a', 'B')", "text is null", "text is not null",
    *(f"number {sign} {value}" for sign in ("=", "!=", "<", "<=", ">", ">=")
      for value in ("0", "2.5", "-0.5", "9" * DIGITS, f"-{'9' * DIGITS}")),
    "number is null", "number between -3 and 9.5",
    *(f"share {sign} {value}" for sign in ("=", "!=", "<", ">=") for value in ("0", "0.1", "0.5")),
    "share is null", "share is not null",
    *(f"day {sign} '2026-01-02'" for sign in ("=", "!=", "<", ">=")), "day is null",
    "flag = true", "flag != true", "flag = false", "flag is null",
]  # fmt: skip


def expected(sign: str, held: object, value: object) -> bool:
    """One test, in the plainest Python."""
    if held is None or held != held:
        return False
    return {
        "=": held == value, "!=": held != value, "<": held < value, "<=": held <= value,
        ">": held > value, ">=": held >= value,
    }[sign]  # fmt: skip


def oracle(node, row) -> bool:
    if hasattr(node, "parts"):
        every = all if node.word == "and" else any
        return every(oracle(part, row) for part in node.parts)
    held = row[node.column]
    if node.value is None:
        return (held is None or held != held) == (node.sign == "is null")
    value = node.value
    if node.column == "day":
        value = datetime.date.fromisoformat(value)
    if node.column == "share":
        value = float(value)
    return expected(node.sign, held, value)


def tables():
    arrow = pa.Table.from_pylist(
        ROWS,
        pa.schema(
            [
                ("text", pa.string()),
                ("number", pa.int64()),
                ("share", pa.float64()),
                ("day", pa.date32()),
                ("flag", pa.bool_()),
            ]
        ).append(pa.field("place", pa.int64())),
    ).set_column(5, "place", pa.array(range(len(ROWS))))
    plain = ibis.duckdb.connect()
    frames = ibis.polars.connect()
    return {
        "duckdb": plain.create_table("rows", arrow),
        "polars": frames.create_table("rows", polars.from_arrow(arrow)),
    }


@pytest.fixture(scope="module")
def engines():
    return tables()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_engines_keep_the_rows_that_python_keeps(engines, engine):
    table = engines[engine]
    for given in [*TESTS, *(f"not ({one})" for one in TESTS)]:
        condition = Condition.of(given)
        kept = condition.filter(table, engine_of(table)).to_pyarrow().column("place").to_pylist()
        wanted = [place for place, row in enumerate(ROWS) if oracle(condition.root, row)]
        assert sorted(kept) == wanted, given


SMALL = [
    {name: {2**62: 2**52, 1e300: 1e15}.get(value, value) for name, value in row.items()}
    for row in ROWS
]
"""The same without numbers of 2^53 or more, which pandas may have rounded."""

PANDAS = {
    "typed": pandas.DataFrame(SMALL),
    "objects": pandas.DataFrame(SMALL).astype(object),
    "nullable": pandas.DataFrame(SMALL).astype({"number": "Int64", "flag": "boolean"}),
    "categories": pandas.DataFrame(SMALL).astype("category"),
    "Arrow": pandas.DataFrame(SMALL).convert_dtypes(dtype_backend="pyarrow"),
}


@pytest.mark.parametrize("kind", PANDAS)
def test_pandas_keeps_the_rows_that_python_keeps(kind):
    frame = PANDAS[kind].assign(place=range(len(SMALL)))
    for given in [*TESTS, *(f"not ({one})" for one in TESTS)]:
        condition = Condition.of(given)
        wanted = [place for place, row in enumerate(SMALL) if oracle(condition.root, row)]
        assert keep_rows(frame, condition).place.tolist() == wanted, given


def test_pandas_tests_values_and_not_types():
    """A row of another kind is kept by no test, and changes nothing about the others."""
    noon = datetime.datetime(2026, 1, 1, 12)
    held = [1, 7.0, Decimal("7.5"), "7", True, None, noon, noon.date(), b"7", ("7",)]
    frame = pandas.DataFrame({"a": pandas.Series(held, dtype=object)})

    def kept(given):
        return keep_rows(frame, Condition.of(given)).a.tolist()

    assert kept("a >= 7") == [7, Decimal("7.5")]
    assert kept("a = '7'") == ["7"]
    assert kept("a = true") == [1, True] == kept("a = 1")
    assert kept("a != true or a != 1") == [7, Decimal("7.5")]
    assert kept("a = '2026-01-01 12:00:00'") == [noon]
    assert kept("a = '2026-01-01'") == [noon.date()]
    assert kept("a is null") == [None]
    aware = pandas.DataFrame({"a": pandas.to_datetime([noon, None], utc=True)})
    assert len(keep_rows(aware, Condition.of("a = '2026-01-01 13:00:00+01:00'"))) == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("nmber = 1", "Did you mean 'number'?"),
        ("share = 'x'", "the column 'share' is numbers and cannot be compared with text"),
        ("text = 1", "the column 'text' is text and cannot be compared with a number"),
        ("text = true", "cannot be compared with true or false"),
        ("share < true", "by <"),
        ("at = 'yesterday'", "the column 'at' is moments"),
    ],
)
def test_conditions_that_fit_no_value_of_a_pandas_column_are_refused(given, says):
    frame = PANDAS["typed"].assign(at=pandas.Timestamp("2026-01-01"))
    with pytest.raises(ConditionError) as caught:
        keep_rows(frame, Condition.of(given))
    assert says in str(caught.value)


def test_where_on_pandas_frames_through_every_entry_point(tmp_path):
    """As on polars frames and on files of the same rows."""
    rows = {"item": ["tea"] * 60 + ["ale"] * 99, "age": [41] * 60 + [17] * 99, "who": [*range(159)]}
    frame = pandas.DataFrame(rows)
    cost = {"epsilon": 1, "delta": 1e-6, "where": "age >= 18"}
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    for data in (frame, polars.DataFrame(rows), path):
        assert privmax.select(data, item="item", user="who", **cost).item == "tea"
    scores = pandas.DataFrame({"item": ["tea", "ale"], "score": [60, 99], "age": [41, 17]})
    assert privmax.select(scores, item="item", score="score", **cost).item == "tea"
    for data in (frame, path):
        found = by_name(privmax.top_itemsets, data, basket="who", item="item", size=1, **cost)
        assert found.item == ("tea",)
    with pytest.raises(ConditionError, match="there is no column 'agee'"):
        privmax.select(frame, item="item", epsilon=1, delta=1e-6, where="agee = 1")
    twice = pandas.concat([frame, frame[["age"]]], axis=1)
    with pytest.raises(DataError, match="same name"):
        privmax.select(twice, item="item", **cost)


@pytest.mark.slow
def test_and_or_and_not_agree_with_three_valued_logic(engines):
    """Against DuckDB's own WHERE, which keeps a row only where the whole is true."""
    table, seen = engines["duckdb"], set()
    parts = ["number > 0", "text = 'a'", "flag = true"]
    for first, second, third in product(parts, repeat=3):
        for given in (
            f"not ({first} and not {second}) or {third}",
            f"not ({first} or {second}) and not ({third} or number is null)",
        ):
            condition = Condition.of(given)
            kept = condition.filter(table, engine_of(table)).to_pyarrow().column("place")
            sql = table.get_backend().con.execute(f"SELECT place FROM rows WHERE {given}")
            wanted = sorted(place for (place,) in sql.fetchall())
            assert sorted(kept.to_pylist()) == wanted, given
            seen.add(tuple(wanted))
    assert len(seen) > 3


def test_comparisons_never_fail_by_what_a_column_holds():
    """DuckDB fails at what does not fit a type that it chose; here it has nothing to choose."""
    con = ibis.duckdb.connect()
    con.con.execute(
        "CREATE TABLE rows AS SELECT (170141183460469231731687303715884105727)::HUGEINT AS huge, "
        "255::UTINYINT AS small, 18446744073709551615::UBIGINT AS wide, 9.99::DECIMAL(3, 2) AS "
        "price, 'infinity'::DATE AS day, 'x'::ENUM('x', 'y') AS kind"
    )
    table = con.table("rows")
    kept = {
        "huge > 0.5": 1, "huge = 1.5": 0, "small < 300": 1, "small > -1": 1, "small = 256": 0,
        "small != 256": 1, "wide > -0.5": 1, "price < 100.001": 1, "price <= 9.989": 0,
        "price > 9.989": 1, "price = 10": 0, "day > '2026-01-01'": 1, "kind = 'z'": 0,
        "kind != 'z'": 1, f"wide > {'9' * DIGITS}": 1,
    }  # fmt: skip
    for given, number in kept.items():
        found = Condition.of(given).filter(table, engine_of(table)).count().to_pyarrow().as_py()
        assert found == number, given


def test_text_is_read_as_the_number_it_is_compared_with():
    """In memory and in DuckDB alike, and what is no such number is no value."""
    cells = ["7", " 7\t", "7.0", "+7", "07", "7e0", "x", "", None, "-7", "6.999999999999999999",
             "7" * 19, "٧", "7\n", "\u00a07"]  # fmt: skip
    con = ibis.duckdb.connect()
    rows = pa.table({"n": pa.array(cells, pa.string()), "place": range(len(cells))})
    table = con.create_table("rows", rows)
    table = table.mutate(n=table.n.nullif(""))
    for given in ["n = 7", "n != 7", "n < 7", "n >= 7", "n is null", "n = 6.999999999999999999"]:
        condition = Condition.of(given)
        kept = condition.filter(table, engine_of(table), is_text=True).to_pyarrow()
        here = [place for place, cell in enumerate(cells) if condition.keeps({"n": cell}.get)]
        assert sorted(kept.column("place").to_pylist()) == here, given
    assert Condition.of("n = 7").keeps({"n": " 7.00\t"}.get)
    assert not Condition.of("n = 7 or n != 7").keeps({"n": "7e0"}.get)


def test_a_column_of_a_text_file_that_was_read_as_numbers_is_compared_as_such(tmp_path):
    """Weights are: a condition on them raised an AttributeError."""
    file = tmp_path / "log.csv"
    rows = [f"p{one},{'ale' if one % 3 else 'tea'},{one % 3}" for one in range(900)]
    file.write_text("\n".join(["person,query,weight", *rows]) + "\n")
    asked = {"item": "query", "user": "person", "weight": "weight", "bound": 2, "epsilon": 1}
    for where, found in [("weight = 0", ()), ("weight >= 1", ("ale",)), ("weight < 3", ("ale",))]:
        assert by_name(privmax.select, str(file), **asked, delta="1e-6", where=where).items == found


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("nmber = 1", "there is no column 'nmber'. Did you mean 'number'?"),
        ("number = 'x'", "the column 'number' is int64 and cannot be compared with text"),
        ("text = 1", "the column 'text' is string and cannot be compared with a number"),
        ("flag < true", "by <. Use = or !="),
        ("day = '2026-13-01'", "the column 'day' is date"),
        ("day = 'yesterday'", "the column 'day' is date"),
        ("in = 1", "expected the name of a column"),
        ('"in" = 1', "Write a column of that name in double quotes"),
    ],
)
def test_errors_name_the_column_and_the_remedy(engines, given, says):
    with pytest.raises(ConditionError) as caught:
        Condition.of(given).filter(engines["duckdb"], engine_of(engines["duckdb"]))
    assert says in str(caught.value)


def test_numbers_are_exact():
    assert Condition.of("a = 0.1").root.value == Decimal("0.1")


def test_the_page_shows_the_grammar():
    page = (Path(__file__).parents[2] / "docs/inputs.md").read_text(encoding="utf-8")
    shown = page.partition("```text grammar\n")[2].partition("```")[0]
    assert shown
    assert indent(shown, "    ") in conditions.__doc__


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("narrow = 0.1", 1),
        ("narrow > 0.1", 0),
        ("fine < 100000000", 1),
        ("fine > -100000000", 1),
        ("fine >= 99999999.999999999999999999", 0),
        ("zoned > '0001-01-01 00:00:00+01:00'", None),
        ("zoned < '9999-12-31 23:59:59-01:00'", None),
    ],
)
def test_values_at_the_ends_of_a_type(given, kept):
    connection = ibis.duckdb.connect()
    connection.con.execute(
        "CREATE TABLE one AS SELECT 0.1::FLOAT AS narrow, 1.5::DECIMAL(38, 30) AS fine, "
        "TIMESTAMPTZ '2026-11-15 08:30:00+00' AS zoned"
    )
    table = connection.table("one")
    if kept is None:
        with pytest.raises(ConditionError, match="cannot be compared"):
            Condition.of(given).filter(table, engine_of(table))
    else:
        rows = Condition.of(given).filter(table, engine_of(table))
        assert rows.count().to_pyarrow().as_py() == kept
