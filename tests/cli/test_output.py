"""--output FILE: what was released as CSV, Parquet and JSON, and what happens when it fails."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
import sys

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import privmax.cli.tables
from privmax import Ledger, Privacy
from privmax.cli import main
from privmax.cli.tables import guard

PRICE = ("--epsilon", "1", "--delta", "1e-6")
QUERY = ("select", "counts.csv", "--item", "query", "--score", "people")
HOSTILE = [
    "=HYPERLINK(1)",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "'=1",
    "＝1+1",
    "\u200b=1",
    'a"b,c',
    '="a,b"',
    "two\nlines",
    "two\r\nlines",
    "-",
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_counts(**{"rain boots": 10**9, "tent": 10**8, "tea": 10**7, "ale": 1})
    (tmp_path / "b.dat").write_text("1 2\n" * 900 + "3\n", encoding="utf-8")
    return tmp_path


def write_counts(**scores):
    with open("counts.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["query", "people"])
        writer.writerows(scores.items())


def privmax_(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def done(*arguments):
    run = privmax_(*arguments)
    assert (run.exit_code, run.stderr) == (0, ""), run.output
    return run.stdout


def read_csv(name):
    with open(name, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_a_set_as_csv(folder):
    printed = done(*QUERY, *PRICE, "--k", 2, "--output", "out.csv")
    assert (folder / "out.csv").read_bytes() == b'"query"\n"rain boots"\n"tent"\n'
    assert printed.splitlines()[-1] == "output     out.csv"


def test_a_list_with_counts_as_csv():
    line = (*QUERY, *PRICE, "--k", 2, "--ranked", "--counts", 1, "--output", "out.csv")
    released = json.loads(done(*line, "--json"))
    rows = read_csv("out.csv")
    assert rows[0] == ["rank", "query", "count", "error", "relative", "apart", "close"]
    assert [row[4:] for row in rows[1:]] == [
        [str(one), str(released["apart"]), "0"] for one in released["relative"]
    ]
    assert [row[:2] for row in rows[1:]] == [["1", "rain boots"], ["2", "tent"]]
    assert [row[2] for row in rows[1:]] == list(map(str, released["counts"]))
    assert {row[3] for row in rows[1:]} == {str(released["error"])}


def test_the_same_as_parquet():
    line = (*QUERY, *PRICE, "--k", 2, "--ranked", "--counts", 1, "--output", "out.PARQUET")
    released = json.loads(done(*line, "--json"))
    table = pq.read_table("out.PARQUET")
    assert table.to_pylist() == [
        {
            "rank": rank,
            "query": item,
            "count": released["counts"][rank - 1],
            "error": released["error"],
            "relative": released["relative"][rank - 1],
            "apart": released["apart"],
            "close": int(released["close"][rank - 1]),
        }
        for rank, item in enumerate(released["items"], 1)
    ]
    types = ["int64", "string", *["double"] * 4, "int64"]
    assert [str(field.type) for field in table.schema] == types


def test_json_is_what_json_prints():
    printed = done(*QUERY, *PRICE, "--k", 2, "--output", "out.json", "--json")
    with open("out.json", encoding="utf-8") as file:
        assert file.read() == printed


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("options", [("--k", 2), ("--k", 2, "--ranked"), ("--counts", 1), ()])
def test_no_answer_gives_a_file_with_the_same_columns_and_types(ending, options):
    files = f"some.{ending}", f"none.{ending}"
    done(*QUERY, *PRICE, *options, "--output", files[0])
    write_counts(tea=1)
    done(*QUERY, *PRICE, *options, "--output", files[1])
    if ending == "csv":
        some, none = map(read_csv, files)
        assert (none, len(some) > 1) == (some[:1], True)
    else:
        some, none = map(pq.read_table, files)
        assert some.schema == none.schema
        assert (none.num_rows, some.num_rows > 0) == (0, True)


def test_no_answer_replaces_the_file_of_yesterday(folder):
    done(*QUERY, *PRICE, "--output", "out.csv")
    write_counts(tea=1)
    done(*QUERY, *PRICE, "--output", "out.csv")
    assert (folder / "out.csv").read_bytes() == b'"query"\n'
    assert sorted(os.listdir()) == ["b.dat", "counts.csv", "out.csv"]  # and nothing beside it


def test_keys_of_several_columns_have_a_column_each(folder):
    lines = "".join(f"boots,{size},{user}\n" for size in ("9", "8") for user in range(900))
    (folder / "rows.csv").write_text(f"what,size,who\n{lines}", encoding="utf-8")
    line = ("select", "rows.csv", "--item", "what", "--item", "size", "--user", "who", "--k", 2)
    done(*line, *PRICE, "--output", "out.csv")
    assert read_csv("out.csv") == [["what", "size"], ["boots", "8"], ["boots", "9"]]
    done(*line, *PRICE, "--output", "out.parquet")
    assert pq.read_table("out.parquet").to_pylist() == [
        {"what": "boots", "size": "8"},
        {"what": "boots", "size": "9"},
    ]


def test_itemsets():
    line = ("itemsets", "b.dat", *PRICE, "--supports", 1)
    done(*line, "--output", "out.csv")
    head, row = read_csv("out.csv")
    assert head == ["itemset", "support", "error"]
    assert json.loads(row[0]) == ["1", "2"]
    done(*line, "--output", "out.parquet")
    table = pq.read_table("out.parquet")
    assert table.column("itemset").to_pylist() == [["1", "2"]]
    assert str(table.schema.field("itemset").type) in (
        "list<element: string>",
        "list<item: string>",
    )
    with open("names.json", "w", encoding="utf-8") as file:
        json.dump({"1": "=tea", "2": "b\n"}, file)
    done(*line, "--labels", "names.json", "--output", "out.csv")
    assert json.loads(read_csv("out.csv")[1][0]) == ["=tea", "b\n"]


def test_a_published_method_has_its_supports():
    line = ("itemsets", "b.dat", "--epsilon", 9, "--items", 4, "--mechanism", "priv-basis")
    done(*line, "--output", "out.csv")
    assert read_csv("out.csv")[0] == ["itemset", "support", "error"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rules_have_no_place_in_a_table(ending):
    run = privmax_("itemsets", "b.dat", *PRICE, "--rules", 1, "--output", f"out.{ending}")
    assert run.exit_code == 2
    assert "no place for association rules" in run.stderr
    done("itemsets", "b.dat", *PRICE, "--rules", 1, "--output", "out.json")


# Hostile labels


@pytest.mark.parametrize("label", HOSTILE)
def test_a_hostile_label_is_one_cell_and_no_formula(label):
    write_counts(**{label: 10**9, "b": 1})
    done(*QUERY, *PRICE, "--output", "out.csv")
    [[head], [cell]] = read_csv("out.csv")
    assert head == "query"
    assert cell[0] not in "=+-@\t\r＝＋－＠"
    assert cell in (label, f"'{label}")
    done(*QUERY, *PRICE, "--output", "out.parquet")
    assert pq.read_table("out.parquet").column("query").to_pylist() == [label]
    done(*QUERY, *PRICE, "--output", "out.json")
    with open("out.json", encoding="utf-8") as file:
        assert json.load(file)["item"] == label


def test_a_label_can_be_had_again_from_its_cell():
    """No two labels have one cell."""
    labels = ["=1", "'=1", "''=1", "'1", "1", "", "'", "-1", "'-1", "-1e5", "-1x", "@", "+"]
    cells = [guard(label) for label in labels]
    assert len(set(cells)) == len(labels)
    again = [cell[1:] if cell and guard(cell[1:]) == cell else cell for cell in cells]
    assert again == labels


@pytest.mark.parametrize("start", ["\n", " ", "\0", "\ufeff", "\u200b", "\u00a0"])
def test_a_formula_behind_what_is_not_seen_is_marked(start):
    assert guard(f"{start}=1+1") == f"'{start}=1+1"


@pytest.mark.parametrize("number", ["-5", "+5", "-1.5e3", "12"])
def test_a_number_is_no_formula(number):
    assert guard(number) == number


def test_half_of_a_surrogate_pair_ends_nothing(monkeypatch):
    """Whatever was drawn, a file is written."""
    table = privmax.cli.tables.OutputTable(
        (
            privmax.cli.tables.OutputColumn("item", "text"),
            privmax.cli.tables.OutputColumn("all", "texts"),
        ),
        lambda item: [item, [item, b"\x01"]],
        "count",
    )

    class Drawn:
        items, counts, error = ("\ud800", "b"), (10**400, -(10**400)), 3

    text = privmax.cli.tables._content(".csv", table, Drawn(), "").decode()
    assert text.splitlines()[1].startswith('"\\ud800"')
    parquet = privmax.cli.tables._content(".parquet", table, Drawn(), "")
    found = pq.read_table(io.BytesIO(parquet)).to_pylist()
    assert found[0] == {"item": "\\ud800", "all": ["\\ud800", "01"], "count": float("inf"),
                        "error": 3.0}  # fmt: skip
    assert found[1]["count"] == float("-inf")


# Refused before anything is charged


@pytest.fixture
def ledger():
    Ledger.create("b.db", budget=Privacy(9, "1e-4")).close()
    return ("--ledger", "b.db", "--request", "night")


def spent():
    with Ledger("b.db") as ledger:
        return ledger.spent.epsilon


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("none/out.csv", "there is no such folder"),
        ("out.txt", "the file name must end in .csv or .parquet or .json"),
        ("out", "the file name must end in"),
        ("folder.csv", "it exists and is not a regular file"),
        ("counts.csv", "it is the same file as FILE"),
        ("link.csv", "it is the same file as FILE"),
        ("database.csv", "it is an existing database"),
        ("locked/out.csv", "it cannot be written"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_charge(ledger, output, told):
    os.mkdir("folder.csv")
    os.symlink("counts.csv", "link.csv")
    Ledger.create("database.csv", budget=Privacy(1)).close()
    os.mkdir("locked", stat.S_IRUSR | stat.S_IXUSR)
    if output.startswith("locked") and os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    run = privmax_(*QUERY, *PRICE, *ledger, "--output", output)
    assert (run.exit_code, run.stdout) == (2, "")
    assert told in run.stderr
    assert spent() == 0


def test_two_columns_of_one_name_are_refused_before_the_charge(ledger):
    os.rename("counts.csv", "c.csv")
    with open("c.csv", encoding="utf-8") as file:
        text = file.read()
    with open("c.csv", "w", encoding="utf-8") as file:
        file.write(text.replace("query", "count"))
    line = ("select", "c.csv", "--item", "count", "--score", "people", "--counts", 1, *PRICE)
    run = privmax_(*line, *ledger, "--output", "out.csv")
    assert run.exit_code == 2
    assert "two columns called 'count'" in run.stderr
    assert spent() == 0
    done(*line, *ledger, "--output", "out.json")


def test_parquet_without_its_package_is_refused_before_the_charge(ledger, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    run = privmax_(*QUERY, *PRICE, *ledger, "--output", "out.parquet")
    assert run.exit_code == 2
    assert "pyarrow" in run.stderr
    assert spent() == 0


def test_the_report_and_the_table_are_two_files(ledger):
    run = privmax_(*QUERY, *PRICE, *ledger, "--output", "out.json", "--report", "out.json")
    assert run.exit_code == 2
    assert spent() == 0


# A failure after the charge


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), MemoryError()])
def test_what_fails_after_the_charge_can_be_had_again(ledger, monkeypatch, error, folder):
    (folder / "out.csv").write_text("yesterday", encoding="utf-8")

    def fail(*arguments):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", fail)
        run = privmax_(*QUERY, *PRICE, *ledger, "--output", "out.csv")
    assert run.exit_code == 2
    assert "item       rain boots" in run.stdout  # the answer is not lost
    assert "is valid and charged" in run.stderr
    assert "with --request night: that costs nothing more" in run.stderr
    assert "rain boots" not in run.stderr
    assert (folder / "out.csv").read_text(encoding="utf-8") == "yesterday"
    assert sorted(os.listdir()) == ["b.dat", "b.db", "counts.csv", "out.csv"]
    done(*QUERY, *PRICE, *ledger, "--output", "out.csv")
    assert read_csv("out.csv") == [["query"], ["rain boots"]]
    assert spent() == 1


def test_a_repeated_request_writes_the_same_file_and_reads_no_data(ledger, folder):
    line = (*QUERY, *PRICE, "--k", 2, *ledger, "--output", "out.csv")
    done(*line)
    first = (folder / "out.csv").read_bytes()
    os.unlink("out.csv")
    write_counts(other=10**9)
    done(*line)
    assert (folder / "out.csv").read_bytes() == first
