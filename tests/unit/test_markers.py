"""What `top_markers` reads, refuses and charges."""

from __future__ import annotations

import itertools
from contextlib import ExitStack

import numpy as np
import pytest
from by_name import by_name

from privmax import Ledger, NestedMargin, Privacy
from privmax.errors import BudgetError, DataError, ParameterError
from privmax.markers import GenotypeColumns, top_markers
from privmax.markers.reading import StudyLayout, count_genotypes
from privmax.markers.scores import StudyGroups
from privmax.testing import SeededCoins

CASES, CONTROLS = 30, 20
NAMES = ["rs1", "rs2", "rs3", "rs4"]
SURE = {"cases": CASES, "controls": CONTROLS, "epsilon": 500, "coins": SeededCoins(3)}


@pytest.fixture(autouse=True)
def quiet(recwarn):
    """An epsilon with a certain answer gives a warning."""


@pytest.fixture
def genotypes():
    """The third marker differs."""
    random = np.random.default_rng(0)
    found = random.binomial(2, 0.3, (CASES + CONTROLS, 4)).astype(np.int8)
    found[:CASES, 2] = 2
    found[CASES:, 2] = 0
    return found


@pytest.fixture
def status():
    return np.array([1] * CASES + [0] * CONTROLS)


@pytest.fixture
def counts(genotypes, status):
    return np.array(
        [
            [[int((genotypes[status == group, marker] == copies).sum()) for copies in range(3)]
             for group in (1, 0)]
            for marker in range(4)
        ]
    )  # fmt: skip


def long_form(genotypes, status):
    people, markers = genotypes.shape
    rows = itertools.product(range(people), range(markers))
    return {
        "person": np.repeat(np.arange(people), markers).tolist(),
        "rs": NAMES * people,
        "copies": [int(genotypes[person, marker]) for person, marker in rows],
        "status": np.repeat(np.where(status == 1, "case", "control"), markers).tolist(),
    }


LONG = {
    "marker": "rs", "genotype": "copies", "person": "person", "status": "status", "case": "case",
    "markers": NAMES,
}  # fmt: skip


@pytest.mark.parametrize("score", ["difference", "chi-square", "genotype-chi-square", "distance"])
def test_counts_and_genotypes_say_the_same(score, counts, genotypes, status):
    assert top_markers(counts, score=score, **SURE).item == 2
    assert top_markers(counts.reshape(-1, 6), score=score, **SURE).item == 2
    assert top_markers(genotypes, status=status, score=score, **SURE).item == 2
    named = top_markers(genotypes, status=status, markers=NAMES, score=score, **SURE)
    assert named.item == "rs3"


def test_alleles(counts):
    alleles = counts[:, :, 1] + 2 * counts[:, :, 2]
    assert top_markers(alleles, **SURE).item == 2
    with pytest.raises(ParameterError, match="counts of alleles do not determine genotypes"):
        top_markers(alleles, score="genotype-chi-square", **SURE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "duckdb", "ibis", "parquet", "csv"])
@pytest.mark.parametrize("form", ["wide", "long"])
def test_tables_of_every_kind(kind, form, genotypes, status, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("ibis")
    columns = {name: genotypes[:, place] for place, name in enumerate(NAMES)}
    wide = pandas.DataFrame({**columns, "status": np.where(status == 1, "case", "control")})
    frame = wide if form == "wide" else pandas.DataFrame(long_form(genotypes, status))
    options = {"status": "status", "case": "case", "markers": NAMES} if form == "wide" else LONG
    if kind == "pandas":
        table = frame
    elif kind == "polars":
        table = pytest.importorskip("polars").DataFrame(frame)
    elif kind == "arrow":
        table = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    elif kind == "duckdb":
        table = pytest.importorskip("duckdb").from_df(frame)
    elif kind == "ibis":
        table = pytest.importorskip("ibis").memtable(frame)
    elif kind == "parquet":
        table = tmp_path / "study.parquet"
        frame.to_parquet(table)
    else:
        table = tmp_path / "study.csv"
        frame.to_csv(table, index=False)
    assert by_name(top_markers, table, **options, **SURE).item == "rs3"
    if form == "wide" and kind in ("pandas", "polars", "arrow"):
        del options["markers"]
        assert by_name(top_markers, table, **options, **SURE).item == "rs3"


def test_missing_genotypes_count_as_said(genotypes, status):
    holes = genotypes.copy()
    holes[0] = -1
    with pytest.raises(DataError, match="not 0, 1 or 2"):
        top_markers(holes, status=status, **SURE)
    assert top_markers(holes, status=status, **SURE, columns=GenotypeColumns(missing=-1)).item == 2
    floats = np.where(holes < 0, np.nan, holes)
    assert (
        top_markers(floats, status=status, **SURE, columns=GenotypeColumns(missing="null")).item
        == 2
    )


def test_a_missing_row_is_a_missing_genotype(genotypes, status):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("ibis")
    frame = pandas.DataFrame(long_form(genotypes, status)).iloc[4:]  # the first person has none
    with pytest.raises(DataError, match="Not everyone has a genotype"):
        by_name(top_markers, frame, **LONG, **SURE)
    assert (
        by_name(top_markers, frame, **LONG, **SURE, columns=GenotypeColumns(missing="null")).item
        == "rs3"
    )


def test_a_person_counts_once_at_a_marker(genotypes, status):
    """Rows that somebody repeats change nothing, and nobody is in both groups."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("ibis")
    frame = pandas.DataFrame(long_form(genotypes, status))
    twice = pandas.concat([frame, frame.iloc[:40]])
    assert by_name(top_markers, twice, **LONG, **SURE).item == "rs3"
    both = pandas.concat([frame, frame.iloc[:1].assign(status="control")])
    with pytest.raises(DataError, match="is a case in one row"):
        by_name(top_markers, both, **LONG, **SURE)


@pytest.fixture
def frame(genotypes, status):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("ibis")
    columns = {name: genotypes[:, place] for place, name in enumerate(NAMES)}
    return pandas.DataFrame({**columns, "status": np.where(status == 1, "case", "control")})


WIDE = {"status": "status", "case": "case", "markers": NAMES}


def read(table, **options):
    """The counts of a table."""
    layout = StudyLayout.of(table, StudyGroups(CASES, CONTROLS), options.pop("markers"), **options)
    with ExitStack() as stack:
        return count_genotypes(table, layout, stack).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["wide", "long"])
@pytest.mark.parametrize("kind", ["frame", "csv", "jsonl"])
def test_genotypes_with_decimals_are_genotypes(kind, form, frame, counts, genotypes, status,
                                               tmp_path):  # fmt: skip
    """As pandas writes them where some are missing: "2.0" must not be taken for a missing one."""
    import pandas

    options = WIDE if form == "wide" else LONG
    table = frame if form == "wide" else pandas.DataFrame(long_form(genotypes, status))
    table = table.astype(dict.fromkeys(NAMES if form == "wide" else ["copies"], float))
    if kind == "csv":
        table.to_csv(tmp_path / "study.csv", index=False)
    elif kind == "jsonl":
        table.to_json(tmp_path / "study.jsonl", orient="records", lines=True)
    place = table if kind == "frame" else tmp_path / f"study.{kind}"
    assert read(place, missing="null", **options) == counts.tolist()


@pytest.mark.slow
def test_words_in_a_file_are_missing_only_where_they_say_so(frame, counts, tmp_path):
    path = tmp_path / "study.csv"
    texts = frame.astype(str)
    for word in ("", "NA", "NaN", ".", "null"):
        texts.loc[0, "rs3"] = word
        texts.to_csv(path, index=False)
        expected = counts.copy()
        expected[2, 0] += [1, 0, -1]
        assert read(path, missing="null", **WIDE) == expected.tolist()
    for word in ("AG", "1.5", "secret", "1e0"):
        texts.loc[0, "rs3"] = word
        texts.to_csv(path, index=False)
        with pytest.raises(DataError, match="not 0, 1 or 2"):
            read(path, missing="null", **WIDE)


@pytest.mark.slow
def test_wide_and_long_files_are_parsed_alike(tmp_path):
    """One by DuckDB, the other here."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("ibis")
    words = ["0", "1.", "2.00", "+1", "-1", " 2 ", "01", "na", ".", "", "1e0", ".5", "2,0", "x",
             "999999999", "9999999999", "1.01", "--1", "\u0661", "1\t", "nan", "NULL"]  # fmt: skip

    def found(table, **options):
        table.to_csv(tmp_path / "study.csv", index=False)
        layout = StudyLayout.of(
            tmp_path / "study.csv", StudyGroups(1, 1), ["a"], missing=-1, **options
        )
        try:
            with ExitStack() as stack:
                return count_genotypes(tmp_path / "study.csv", layout, stack).tolist()
        except DataError:
            return None

    long = {"marker": "rs", "genotype": "a", "person": "id"}
    for word in words:
        table = pandas.DataFrame({"a": [word, "2"], "s": ["1", "0"], "rs": "a", "id": ["x", "y"]})
        answers = [found(table, status="s", case="1", **more) for more in ({}, long)]
        if word.strip(" ").upper() in ("", "NA", "NAN", "NULL", "."):
            assert answers[0] is None  # here null is undeclared, and a row without one is a gap
        else:
            assert answers[0] == answers[1], word


def test_null_in_a_column_of_true_and_false(frame):
    """Its type says what it is, whether or not somebody's value is null."""
    import pandas

    found = pandas.array([True] * len(frame), "boolean")
    whole = read(frame.assign(rs1=found), missing="null", **WIDE)
    found[0] = pandas.NA
    holes = read(frame.assign(rs1=found), missing="null", **WIDE)
    assert whole[0] == [[0, CASES, 0], [0, CONTROLS, 0]]
    assert holes[0] == [[1, CASES - 1, 0], [0, CONTROLS, 0]]


@pytest.mark.slow
def test_each_row_of_a_person_is_judged(genotypes, status):
    """A genotype counts beside a missing one, whatever number stands for that; and what is none is
    refused beside one.
    """
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("ibis")
    frame = pandas.DataFrame(long_form(genotypes, status))
    expected = read(frame, **LONG)
    for missing in (-1, 9):
        more = pandas.concat([frame, frame.iloc[:4].assign(copies=missing)])
        assert read(more, missing=missing, **LONG) == expected
    for odd in (-5, 7):
        more = pandas.concat([frame, frame.iloc[:4].assign(copies=odd)])
        with pytest.raises(DataError, match="not 0, 1 or 2"):
            read(more, missing=9, **LONG)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"status": [1] * 50}, "the columns of a frame have names"),
        ({"status": "status", "case": 1}, "such as case='1'"),
        ({"status": "ill", "case": "control"}, "has numbers"),
        ({"status": "status", "case": "case", "markers": ["rs1", "status"]}, "marks the cases"),
    ],
)
def test_options_that_do_not_fit_a_frame(options, message, frame):
    frame = frame.assign(ill=frame.status == "case")
    given = {"markers": NAMES, "cases": CASES, "controls": CONTROLS, "epsilon": 1, **options}
    with pytest.raises(ParameterError, match=message):
        by_name(top_markers, frame, **given)


def test_names_that_no_value_can_have_are_refused(genotypes, status):
    """Otherwise everybody would count as missing, and the answer be a marker at random."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("ibis")
    frame = pandas.DataFrame(long_form(genotypes, status))
    with pytest.raises(ParameterError, match="Give names as text"):
        read(frame, missing="null", **{**LONG, "markers": [1, 2, 3, 4]})
    numbers = frame.assign(rs=frame.rs.str[2:].astype(int))
    with pytest.raises(ParameterError, match="Give names as numbers"):
        read(numbers, missing="null", **{**LONG, "markers": ["1", "2", "3", "4"]})
    with pytest.raises(ParameterError, match="name one column"):
        read(frame, **{**LONG, "person": "rs"})


def test_masked_genotypes_are_refused(genotypes, status):
    """What is masked has a value all the same, which somebody did not want to count."""
    masked = np.ma.array(genotypes, mask=genotypes == 2)
    with pytest.raises(DataError, match="masked array"):
        top_markers(masked, status=status, **SURE)


def test_group_sizes_are_declared_and_kept(genotypes, status, counts):
    with pytest.raises(ParameterError, match="cases is required"):
        top_markers(counts, controls=CONTROLS, epsilon=1)
    with pytest.raises(DataError, match="as many people in each group"):
        top_markers(genotypes, status=status, cases=29, controls=21, epsilon=1)
    with pytest.raises(DataError, match="larger than its group"):
        top_markers(counts, cases=5, controls=CONTROLS, epsilon=1)
    with pytest.raises(DataError, match="do not add up"):
        top_markers(counts, cases=31, controls=CONTROLS, epsilon=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "p-value"}, "it must be one of difference"),
        ({"threshold": 10}, 'only the score "distance" has one'),
        ({"score": "distance", "threshold": "0.5"}, "it must be at least 1"),
        ({"score": "distance", "threshold": 1000}, "no table with so few people exceeds it"),
        ({"k": 5}, "must not exceed the number of markers"),
        ({"missing": 2}, "that is a genotype"),
        ({"impute": 3}, "it must be 0, 1 or 2 copies"),
        ({"impute": True}, "it must be 0, 1 or 2 copies"),
        ({"missing": float("nan")}, 'a whole number, or "null"'),
        ({"markers": "rs12"}, "it must be a list"),
        ({"markers": ["a", "b"]}, "there are 4 markers"),
        ({"markers": ["a", "b", "c", "c"]}, "markers='<names>' is not allowed: .* more than once"),
        ({"marker": "rs"}, "genotype is required"),
        ({"mechanism": NestedMargin(epsilon=1, delta=1e-6), "epsilon": None}, "takes the place"),
        ({"epsilon": None}, "epsilon is required"),
    ],
)
def test_wrong_options_are_named(options, message, counts):
    given = {"cases": CASES, "controls": CONTROLS, "epsilon": 1, **options}
    with pytest.raises(ParameterError, match=message):
        by_name(top_markers, counts, **given)


def test_errors_quote_no_genotype(genotypes, status):
    odd = genotypes.copy()
    odd[7, 1] = 77
    with pytest.raises(DataError) as caught:
        top_markers(odd, status=status, cases=CASES, controls=CONTROLS, epsilon=1)
    assert "77" not in str(caught.value)
    with pytest.raises(DataError, match="type of numbers"):
        top_markers(genotypes.astype(str), status=status, cases=CASES, controls=CONTROLS, epsilon=1)


def test_a_ledger_pays_and_remembers(counts, tmp_path):
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(3, "1e-6")) as ledger:
        options = {"cases": CASES, "controls": CONTROLS, "epsilon": 2, "k": 2}
        first = by_name(top_markers, counts, ledger=ledger.request("study"), **options)
        again = by_name(top_markers, counts, ledger=ledger.request("study"), **options)
        assert again.items == first.items
        assert again.recorded is not None
        assert ledger.spent == Privacy(2, 0)
        assert ledger.neighbors == "replace"
        with pytest.raises(BudgetError):
            by_name(top_markers, counts, ledger=ledger, **options)
