"""`privmax compare`: invented scores, public files, and private ones, which it does not look at."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from privmax import Profile, compare
from privmax.cli import main

PRICE = ("--epsilon", "1", "--delta", "1e-6")
FEW = ("--mechanism", "nested-margin", "--mechanism", "gap-test")
PRIVATE = "73519"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text(
        f"query,people\nzorblax,{PRIVATE}\nb,2\n", encoding="utf-8"
    )
    return tmp_path


def run(*arguments, stdin=None):
    return CliRunner().invoke(main, ["compare", *arguments], input=stdin)


def compared(*arguments):
    done = run(*arguments, *PRICE, *FEW, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refused(*arguments, stdin=None):
    done = run(*arguments, *([] if "--epsilon" in arguments else PRICE), stdin=stdin)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    return " ".join(done.stderr.split())


def chances(found):
    return {
        row["mechanism"]: (row["best"], row["nothing"], row["shortfall"], row["lead"])
        for row in found["rows"]
    }


def expected(data, **options):
    found = compare(
        data, epsilon=1, delta="1e-6", mechanisms=["nested-margin", "gap-test"], **options
    )
    return {row.name: (row.best, row.nothing, row.shortfall, row.lead) for row in found.rows}


def test_scores_are_compared_as_the_library_does():
    assert chances(compared("--scores", "40,38,2")) == expected([40, 38, 2])
    assert chances(compared("--scores", "40,38,2", "--universe", "1e6")) == expected(
        [40, 38, 2], universe=10**6
    )


def test_a_shape_is_a_profile():
    shape = ("--best", "40", "--near", "2", "--next", "38", "--others", "1000")
    assert chances(compared(*shape)) == expected(Profile([(40, 2), (38, 1000)]))
    assert compared(*shape)["near"] == 2
    assert chances(compared("--best", "40", "--next", "38")) == expected([40, 38])
    closed = compared("--best", "20", "--universe", "1e6")
    assert chances(closed) == expected(Profile([(20, 1)], universe=10**6))
    assert closed["universe"] == 10**6


def test_a_shipped_file_is_public():
    columns = ("sample:counts", "--item", "query", "--score", "people")
    found = compared(*columns)
    assert chances(found)["NestedMargin"][0] > 0.999
    counted = compared("sample:searches", "--item", "query", "--user", "person")
    assert chances(counted) == chances(found)
    assert compared(*columns, "--universe", "1e12")["universe"] == 10**12


def test_a_file_is_compared_only_if_it_is_said_to_be_public(folder):
    columns = ("counts.csv", "--item", "query", "--score", "people")
    told = refused(*columns)
    assert "a comparison has no noise" in told
    assert "--public" in told
    assert "--scores" in told
    assert PRIVATE not in told
    assert "zorblax" not in told
    assert chances(compared(*columns, "--public")) == expected([int(PRIVATE), 2])


def test_a_private_file_is_not_even_opened(folder):
    assert "a comparison has no noise" in refused("no-such-file.csv")
    assert "a comparison has no noise" in refused("-", stdin="item,score\na,5\n")


def test_a_table_and_a_picture(folder):
    table = run("--scores", "40,38,2", *PRICE, *FEW)
    assert table.exit_code == 0
    few = ["nested-margin", "gap-test"]
    assert table.stdout == f"{compare([40, 38, 2], epsilon=1, delta='1e-6', mechanisms=few)}\n"
    drawn = run("--scores", "40,38,2", *PRICE, *FEW, "--plot", "c.svg")
    assert drawn.stdout == table.stdout
    assert "What each mechanism would do" in (folder / "c.svg").read_text(encoding="utf-8")
    assert "must end in .png or .svg" in refused("--scores", "4", "--plot", "c.gif")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            (),
            "Give one of FILE, --scores and --best. For example --scores 900,850,12.",
        ),
        (("--scores", "1", "--best", "2"), "not --scores and --best"),
        (("sample:counts", "--scores", "1"), "not FILE and --scores"),
        (("--scores", "1,2;3"), "--scores 1,2;3: it must be whole numbers"),
        (("--scores", "1.5"), "it must be whole numbers"),
        (("--scores", "1", "--next", "2"), "--next: it works only with --best, not with --scores"),
        (("--scores", "1", "--user", "u"), "--user: it works only with FILE, not with --scores"),
        (("--best", "5", "--public"), "--public: it works only with FILE, not with --best"),
        (
            ("--best", "5", "--next", "5"),
            "--next 5: it must be below --best, which is 5",
        ),
        (("--best", "5", "--others", "5"), "--others: it needs --next"),
        (("--best", "5", "--near", "0"), "--near 0:"),
        (("--best", "5", "--next", "1", "--others", "0"), "--others 0:"),
        (("--best", "5", "--universe", "many"), "--universe many:"),
        (("--scores", "5", "--universe", "many"), "--universe many:"),
        (("--scores", "5,4,3", "--universe", "2"), "--universe 2:"),
        (("--scores", "5", "--epsilon", "1"), "an open universe needs a delta above 0"),
        (("--scores", "5", "--epsilon", "-1", "--universe", "5"), "--epsilon -1:"),
        (
            ("sample:count",),
            "FILE sample:count: there is no such data set. There are receipts",
        ),
        (("sample:counts", "--item", "word", "--score", "people"), "the file has no such column"),
    ],
)
def test_mistakes_are_named_with_the_remedy(arguments, told):
    assert told in refused(*arguments)


LIST = ("--scores", "90,85,84,80,79,9", "--k", "4", *PRICE)
SETS = ("--mechanism", "set-margin", "--mechanism", "gap-test")


def test_a_list_is_compared_as_the_library_does():
    done = run(*LIST, *SETS, "--json")
    found = json.loads(done.stdout)
    expected = compare(
        [90, 85, 84, 80, 79, 9],
        epsilon=1,
        delta="1e-6",
        k=4,
        mechanisms=["set-margin", "gap-test"],
    )
    assert found["k"] == 4
    assert [(one["mechanism"], one["misses"], one["size"]) for one in found["rows"]] == [
        (one.name, one.misses, one.size) for one in expected.rows
    ]
    assert {one["releases"] for one in found["rows"]} == {"set"}
    assert run(*LIST, *SETS).stdout == f"{expected}\n"


def test_a_single_winner_is_compared_as_before():
    found = compared("--scores", "40,38,2")
    assert "k" not in found
    assert all("misses" not in one for one in found["rows"])


@pytest.mark.slow
def test_the_picture_and_the_page_of_a_list(folder):
    table = run(*LIST, *SETS).stdout
    done = run(*LIST, *SETS, "--plot", "k.svg", "--report", "page.html")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(table)
    assert "Share of the best k that is missed" in (folder / "k.svg").read_text(encoding="utf-8")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "Misses least of the best 4" in page
    assert "on average" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--k", "0"), "--k 0:"),
        (("--k", "9", "--universe", "8"), "--k 9: it must not exceed the size"),
        (("--k", "3", "--near", "2"), "--near 2: it must be at least k, which is 3"),
        (("--k", "3", "--mechanism", "nested-margin"), "it does not release the best"),
    ],
)
@pytest.mark.parametrize("drawn", [(), ("--plot", "k.svg")])
def test_lists_that_cannot_be_are_refused(folder, arguments, told, drawn):
    assert told in refused("--scores", "90,85,84,80", *arguments, *drawn)
    assert not (folder / "k.svg").exists()
