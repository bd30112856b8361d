"""The stored speeds of itemsets: complete, judged right, and shown as they are. Nothing is timed
here.
"""

from __future__ import annotations

import json
import sys
from copy import deepcopy
from itertools import combinations
from pathlib import Path

import pytest

from privmax.itemsets.baskets import Baskets
from privmax.itemsets.miner.window import Miner
from privmax.itemsets.reading.forms import read_baskets

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import itemsets, miners, tables  # run from the project's root

ROOT = Path(__file__).resolve().parents[2]
RESULT = json.loads((ROOT / "benchmarks/results/itemsets.json").read_text(encoding="utf-8"))
README = ROOT / "benchmarks/README.md"
ROWS = RESULT["rows"]
FINISHED = {
    (row["job"], row["set"], row["contender"]): row for row in ROWS if row["ending"] == "done"
}
SMALL = ["1 2 3", "1 2", "1 2 4", "2 3", "", "1 2 3 4"]


def sections(result):
    return {part.name: part for part in tables.itemset_tables(result)}


def page_with(result):
    """The page as tables.py would write it, were this the result stored."""
    found = {}
    for name, present in tables.PAGES[README].items():
        found |= {
            part.name: part
            for part in present(result if name == "itemsets" else tables._stored(name))
        }
    return tables.filled(README.read_text(encoding="utf-8"), found)


# What is stored


def test_every_cell_is_there():
    asked = {
        (job, name, who)
        for job, kind in itemsets.JOBS.items()
        for name in kind.sets
        for who in kind.contenders
        if who != miners.SPARK or (name, job) in itemsets.SPARKED
    }
    assert {(row["job"], row["set"], row["contender"]) for row in ROWS} == asked
    assert len(ROWS) == len(asked)


def test_the_run_says_how_it_was_made():
    assert [run["set"] for run in RESULT["runs"]] == [*itemsets.FILES, itemsets.GENERATED]
    for run in RESULT["runs"]:
        assert run["command"] == "./dev python -m benchmarks.itemsets"
        assert {"load", "load at the end", "source", "cpu", "date"} <= set(run)
        assert {"numba", "pyspark", "pyfim", "mlxtend", "efficient-apriori", "PAMI"} <= set(
            run["versions"]
        )


def test_one_file_measured_anew_replaces_only_its_own():
    facts = RESULT["runs"][1] | {"date": "later"}
    new = [row | {"start": 0.5} for row in ROWS if row["set"] == "retail"]
    result = itemsets.merged(RESULT, "retail", facts, new)
    assert [run["date"] == "later" for run in result["runs"]] == [
        name == "retail" for name in [*itemsets.FILES, "x"]
    ]
    assert [row for row in result["rows"] if row["set"] != "retail"] == [
        row for row in ROWS if row["set"] != "retail"
    ]
    assert [row for row in result["rows"] if row["set"] == "retail"] == new


def test_every_cell_of_a_job_was_asked_the_same():
    asked = {}
    for row in ROWS:
        assert row["support"] >= 1
        assert row["number"] >= itemsets.JOBS[row["job"]].k
        assert asked.setdefault((row["job"], row["set"]), (row["support"], row["number"])) == (
            row["support"],
            row["number"],
        )
    assert asked["best pair", "retail"] == (29142, 1)  # counted by others


def test_nobody_was_wrong_and_privmax_always_finished():
    assert {row["ending"] for row in ROWS} <= {"done", "time limit", "out of memory"}
    assert all(row["ending"] == "done" for row in ROWS if row["contender"] == miners.PRIVMAX)
    for row in FINISHED.values():
        if row["contender"] == miners.PRIVMAX and itemsets.JOBS[row["job"]].kind == miners.RELEASE:
            assert len(row["released"]) == row["repeats"]


# The aims


def test_the_aims_are_judged_from_the_stored_rows():
    assert itemsets.judgements(ROWS) == RESULT["aims"]


@pytest.mark.parametrize(("key", "clock"), [("median", "processor time"), ("wall", "time")])
def test_the_worst_figures_computed_by_hand(key, clock):
    aims = {(aim["aim"], aim["subject"]): aim for aim in RESULT["aims"]}

    def worst(jobs, rivals, what):
        return max(
            FINISHED[job, name, "privmax"][what] / row[what]
            for (job, name, who), row in FINISHED.items()
            if job in jobs
            and (who.startswith(rivals) if isinstance(rivals, str) else who not in rivals)
        )

    ours = {"privmax", "privmax without numba", "privmax, told the support", "floor"}
    for job in ("best pair", "best triple"):
        floors = worst({job}, "floor", key)
        assert aims[f"{clock} in floors", job]["figure"] == pytest.approx(floors)
        assert aims[f"{clock} in floors", job]["met"] == (floors <= 3)
        every = worst({job}, ours, key)
        assert aims[f"{clock} against every miner", job]["figure"] == pytest.approx(every)
        assert aims[f"{clock} against every miner", job]["met"] == (every <= 1)
    for job in ("top 100", "pairs within 500"):
        assert aims[f"{clock} against pyfim", job]["figure"] == pytest.approx(
            worst({job}, "pyfim", key)
        )
    deep = aims[f"{clock} against pyfim eclat", "10^5 triples"]
    assert deep["figure"] == pytest.approx(worst({"10^5 triples"}, "pyfim eclat", key))
    seconds = max(FINISHED[job, "generated", "privmax"][key] for job in ("best pair", "top 100"))
    large = aims[f"{clock} for 10^6 baskets, in seconds", "best pair, top 100"]
    assert (large["figure"], large["met"]) == (seconds, seconds <= 1)
    memory = aims["memory against every miner", "all jobs"]
    assert memory["figure"] == pytest.approx(worst(set(itemsets.JOBS), ours, "growth"))


def test_a_slower_run_would_not_meet_the_aims():
    slow = deepcopy(ROWS)
    for row in slow:
        if row["contender"] in (miners.PRIVMAX, miners.TOLD):
            for key in ("median", "wall", "growth", "peak"):
                row[key] *= 10**5
    assert not any(aim["met"] for aim in itemsets.judgements(slow))


def test_what_nobody_measured_is_no_success():
    assert {aim["met"] for aim in itemsets.judgements([])} == {None}


# The page


def test_the_page_is_in_step():
    assert page_with(RESULT) == README.read_text(encoding="utf-8")


@pytest.mark.parametrize("key", ["median", "growth", "peak"])
def test_a_changed_figure_is_noticed(key):
    changed = deepcopy(RESULT)
    for row in changed["rows"]:
        if key in row:
            row[key] *= 2
    assert page_with(changed) != README.read_text(encoding="utf-8")


def test_how_many_were_released_is_shown():
    shown = sections(RESULT)["itemset-top-100-released"].rows[-1]
    stored = [row["released"] for row in ROWS if row["job"] == "top 100, released"]
    assert shown[1:] == [", ".join(map(str, numbers)) for numbers in stored]


def test_a_stopped_call_is_shown():
    changed = deepcopy(RESULT)
    for place, ending in ((0, "time limit"), (1, "out of memory")):
        row = changed["rows"][place]
        changed["rows"][place] = {key: row[key] for key in ("set", "job", "contender")} | {
            "ending": ending
        }
    shown = sections(changed)["itemset-best-pair"].markdown()
    assert "stopped at 120 s" in shown
    assert "out of memory" in shown


# The script


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.dat"
    path.write_text("\n".join(SMALL) + "\n")
    return path


def brute(low, high):
    counts = {}
    for line in SMALL:
        for size in range(low, high + 1):
            for one in combinations(sorted(map(int, line.split())), size):
                counts[one] = counts.get(one, 0) + 1
    return sorted(counts.values(), reverse=True)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 100])
def test_the_support_of_the_kth(file, k):
    supports = brute(2, 3)
    expected = supports[k - 1] if k <= len(supports) else 1
    assert miners.lowest(Miner(read_baskets(file), range(2, 4)), k) == expected


def test_what_is_wanted_and_what_privmax_lists(file):
    kind = itemsets.Kind(miners.LIST, 2, 3, 3)
    want = itemsets.wanted(file, kind, file)
    listed = [support for support in brute(2, 3) if support >= brute(2, 3)[2]]
    assert (want.number, want.total) == (len(listed), sum(listed))
    assert list(miners.privmax()(want.job)) == [want.number, want.total]
    assert list(miners.privmax(told=True)(want.job)) == [want.number, want.total]
    near = itemsets.wanted(file, itemsets.Kind(miners.LIST, 2, 2, 0, width=1), file)
    assert list(miners.privmax()(near.job)) == [near.number, near.total]
    assert near.job.least == max(brute(2, 2)) - 1
    best = itemsets.wanted(file, itemsets.Kind(miners.RELEASE, 2, 2, 1), file)
    assert best.best == [[1, 2]]


def test_a_wrong_answer_is_no_contender(file):
    want = itemsets.wanted(file, itemsets.Kind(miners.LIST, 2, 3, 3), file)
    for found, ending in (
        ([want.number, want.total], "done"),
        ([want.number, want.total + 1], "wrong answer"),
    ):
        call = {"ending": "done", "found": found}
        itemsets.checked(miners.ECLAT, call, want)
        assert call["ending"] == ending
    release = itemsets.wanted(file, itemsets.Kind(miners.RELEASE, 2, 2, 1), file)
    for found, right in (([[2, 1]], True), ([[1, 3]], False), ([], False)):
        call = {"ending": "done", "found": found}
        itemsets.checked(miners.PRIVMAX, call, release)
        assert (call["ending"], call["right"], call["released"]) == ("done", right, len(found))


def test_who_is_called_again():
    ours = [{"time": (1.0, 1.0)}]
    assert itemsets.repeated({"time": (9.0, 4.0)}, ours)
    assert not itemsets.repeated({"time": (1.0, 4.1)}, ours)
    assert not itemsets.repeated({"time": (1.0, 20.1)}, [{"time": (9.0, 9.0)}])
    assert not itemsets.repeated({"ending": "time limit"}, ours)


def test_one_call_that_did_not_finish_spoils_the_cell():
    good = {"ending": "done", "time": (1.0, 2.0), "growth": 5, "peak": 7, "start": 1.0}
    slow = {"ending": "done", "time": (3.0, 4.0), "growth": 6, "peak": 6, "start": 3.0}
    row = itemsets.middle([good, slow, good])
    assert (row["median"], row["wall"], row["growth"], row["peak"], row["repeats"]) == (
        1.0,
        2.0,
        6,
        7,
        3,
    )
    assert itemsets.middle([good, {"ending": "time limit"}]) == {"ending": "time limit"}


def test_the_generated_baskets(monkeypatch, tmp_path):
    monkeypatch.setattr(itemsets, "CHUNK", 300)
    path = tmp_path / "generated.dat"
    path.write_bytes(b"".join(itemsets.baskets(1000, 500)))
    rows = [line.split() for line in path.read_text().splitlines()]
    assert len(rows) == 1000
    assert all(row and len(set(row)) == len(row) for row in rows)
    assert all(0 <= int(item) < 500 for row in rows for item in row)
    assert 6 < sum(map(len, rows)) / 1000 < 11
    assert path.read_bytes() == b"".join(itemsets.baskets(1000, 500))
    found = read_baskets(path)
    assert isinstance(found, Baskets)
    assert int(found.supports().argmax()) == 0  # the item of the lowest rank


def test_missing_files_are_named(tmp_path):
    assert itemsets.present(None) == ({}, list(itemsets.FILES))
    (tmp_path / "retail.dat").write_text("1 2\n")
    files, missing = itemsets.present(tmp_path)
    assert files == {"retail": tmp_path / "retail.dat"}
    assert missing == [name for name in itemsets.FILES if name != "retail"]


@pytest.mark.parametrize(("name", "size"), [("3\t14\t15", 3), (("3", "14"), 2), ("3", 1)])
def test_sizes_of_patterns(name, size):
    assert miners.sized(name) == size
