"""`privmax demo`, as a user types it. Who looks at what the first two mechanisms draw gives it
coins.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from rich.console import Console

from privmax import Privacy, demo, samples, top_itemsets
from privmax.cli import main
from privmax.cli.commands import demo as demo_command
from privmax.itemsets.reading.forms import read_baskets
from privmax.itemsets.source import ItemsetSource
from privmax.ledger import Ledger
from privmax.testing import SeededCoins

ROOT = Path(__file__).resolve().parents[2]
FOLDER_OF_PYTHON = str(Path(sys.executable).parent)
BAREST = "import privmax.demo; privmax.demo.find_spec = lambda name: None"
ANSWER = re.compile(r"^(.{20})  +(\d+)  +([\d.]+ %)  (.*?)  +(\S+)$", re.MULTILINE)


def told(folder=None, seed=1):
    screen = io.StringIO()
    demo.tell(Console(file=screen, width=80, highlight=False), folder, coins=SeededCoins(seed))
    return screen.getvalue()


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """What was printed, and the folder."""
    folder = tmp_path_factory.mktemp("demo") / "made" / "here"
    return told(folder), folder


@pytest.mark.slow
def test_it_fits_on_one_screen(story):
    lines = story[0].splitlines()
    assert len(lines) <= 43
    assert max(map(len, lines[:-8])) <= 80  # below stand the paths of a temporary folder


@pytest.mark.slow
def test_what_each_mechanism_answers(story):
    found = {name.strip(): rest for name, *rest in ANSWER.findall(story[0])}
    assert list(found) == list(demo.MECHANISMS)
    for name in ("exponential", "permute and flip"):
        lead, chance, answer, buyers = found[name]
        assert (chance, buyers) == ("0.1 %", "none")
        assert 48 < int(lead) < 60
        assert re.fullmatch(r"\d{12} \+ \d{12}", answer)
    assert found["large margin (paper)"] == ["438", "0 %", "no answer", "–"]
    assert found["nested margin (ours)"] == ["22", "100 %", "butter + sourdough bread", "48"]


@pytest.mark.slow
def test_the_ledger_was_charged_for_each(story):
    screen, folder = story
    with Ledger(folder / "budget.db") as ledger:
        assert ledger.spent == Privacy(5, Fraction(3, 10**6))
        assert ledger.remaining == Privacy(1, Fraction(7, 10**6))
        assert not ledger.verify()
        events = [event.kind for event in ledger.history()]
    assert events == ["created", *["reserved", "released"] * 5]
    assert "Spent    epsilon 5, delta 3e-06," in screen
    assert "Left     epsilon 1, delta 7e-06\n" in screen


@pytest.mark.slow
def test_a_list_is_shown_as_a_set(story):
    told = " ".join(story[0].split())
    articles, right, missed, lead, in_order = re.search(
        r"The 10 articles that most members bought, at the same privacy cost: (.*?)\. (?:\d+ of 10 "
        r"released: nothing else stood out\. )?(\d+) of them are right; on average (\d\.\d) of the "
        r"best 10 are missed here\. They are a set, sorted by name\. With a lead of (\d+) none is "
        r"missed 95 % of the time\. A ranked list needs a lead of (\d+)\.",
        told,
    ).groups()
    names = articles.split(", ")
    assert names == sorted(names)
    assert 6 <= int(right) <= len(names) <= 10
    assert (missed, lead, in_order) == (f"{average_missed():.1f}", "25", "41")


def average_missed():
    """By the law of how many articles are released, and how many of them are among the best."""
    release = top_itemsets(
        samples.path("receipts"), size=1, k=10, epsilon=1, delta="1e-6", **demo.COLUMNS
    )
    baskets = read_baskets(samples.path("receipts"), **demo.COLUMNS)
    profile = ItemsetSource(baskets, baskets.labels, range(1, 2), closed=False).profile
    chances = release.mechanism.lengths(profile, 10).values()
    return 10 - sum(hits for _, hits in chances)


@pytest.mark.slow
def test_the_pictures_and_the_report_are_there_and_named(story):
    screen, folder = story
    assert {path.name for path in folder.iterdir()} == {
        "universe.svg",
        "leads.svg",
        "report.html",
        "budget.db",
    }
    for path in folder.iterdir():
        assert path.name in screen
    for name in ("universe.svg", "leads.svg"):
        assert len(list(ElementTree.parse(folder / name).iter())) > 50
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "butter + sourdough bread" in page
    assert "<svg" in page


@pytest.mark.slow
def test_the_picture_shows_the_names_of_the_mechanisms():
    """By the figure: in the file letters are outlines."""
    axes = demo._picture(demo._Shop(read_baskets(samples.path("receipts"), **demo.COLUMNS))).axes[0]
    ends = {
        line.get_label(): (line.get_ydata()[0], line.get_ydata()[-1])
        for line in axes.get_lines()[1:]
    }
    assert ends.keys() == demo.MECHANISMS.keys()
    assert ends["exponential"] == pytest.approx((100, 0), abs=0.1)
    assert ends["permute and flip"] == pytest.approx((100, 0), abs=0.1)
    assert ends["large margin (paper)"] == pytest.approx((20, 0), abs=2)
    assert ends["nested margin (ours)"] == pytest.approx((100, 100), abs=0.1)


@pytest.mark.slow
def test_another_run_draws_anew_and_makes_a_ledger_of_its_own(tmp_path, story):
    with Ledger.create(tmp_path / "budget.db", budget=Privacy(5)) as first:
        screen = told(tmp_path, seed=2)
        assert first.spent == Privacy(0)
    assert "budget-2.db" in screen
    with Ledger(tmp_path / "budget-2.db") as second:
        assert second.spent.epsilon == 5
    assert ANSWER.findall(screen)[0][3] != ANSWER.findall(story[0])[0][3]
    assert ANSWER.findall(screen)[2:] == ANSWER.findall(story[0])[2:]


@pytest.mark.slow
def test_the_command_and_what_it_says_to_type_next(tmp_path):
    environment = {**os.environ, "PATH": os.pathsep.join([FOLDER_OF_PYTHON, os.environ["PATH"]])}

    def shell(command):
        return subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    run = shell(f"{Path(sys.executable).name} -m privmax demo")
    assert (run.returncode, run.stderr) == (0, "")
    assert max(map(len, run.stdout.splitlines())) <= 80
    assert (tmp_path / "privmax-demo" / "report.html").is_file()
    done = shell(run.stdout.partition("Next     ")[2])
    assert (done.stdout.splitlines()[0], done.returncode) == ("item       rain boots", 0)
    look = shell(re.search(r"^ *(\S+ -m privmax budget history .*)", run.stdout, re.MULTILINE)[1])
    assert (look.stdout.startswith("ledger default in"), look.returncode) == (True, 0)


@pytest.mark.parametrize(
    ("arguments", "typed", "found", "told"),
    [
        (["/x/privmax/__main__.py", "demo"], ["python3.11", "-m"], None, "python3.11 -m privmax"),
        (["/x/__main__.py"], ["/my env/bin/python"], None, "'/my env/bin/python' -m privmax"),
        (["/env/bin/privmax", "demo"], ["/env/bin/python"], "/env/bin/privmax", "privmax"),
        (["env/bin/privmax"], ["python"], "/other/bin/privmax", "env/bin/privmax"),
        (["env/bin/privmax"], ["python"], None, "env/bin/privmax"),
        (["/usr/bin/pytest"], ["python"], None, "privmax"),
    ],
)
def test_how_it_was_called(monkeypatch, arguments, typed, found, told):
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(sys, "orig_argv", typed)
    monkeypatch.setattr(demo_command, "which", lambda name: found)
    assert demo_command.name_program() == told


def test_dev_says_how_it_was_called(monkeypatch):
    """./dev is no privmax on the path: what it prints must be typed through it again."""
    monkeypatch.setattr(demo, "tell", lambda console, folder, *, command: print(command))
    run = CliRunner().invoke(main, ["demo", "--called", "./dev privmax"])
    assert run.output == "./dev privmax\n"
    script = (ROOT / "dev").read_text(encoding="utf-8")
    case, line = re.search(r"case \$0 in .* esac", script), 'demo --called "$called privmax" "$@"'
    assert case is not None
    assert line in script
    for typed, called in (("./dev", "./dev"), ("/src/dev", "/src/dev"), ("dev", "./dev")):
        said = subprocess.run(
            ["sh", "-c", f'{case[0]}; echo "$called"', typed],
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout == f"{called}\n"


@pytest.mark.slow
def test_where_the_usual_folder_cannot_be_written_a_temporary_one_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    Path(demo.FOLDER).write_text("", encoding="utf-8")
    told_folder = re.search(
        r"Written  to (\S+) \(privmax-demo cannot be written here: File exists\)", told()
    )
    assert told_folder is not None
    assert (Path(told_folder[1]) / "budget.db").is_file()


@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_named(tmp_path, folder):
    (tmp_path / "file").write_text("", encoding="utf-8")
    run = CliRunner().invoke(main, ["demo", "--folder", str(tmp_path / folder)])
    assert run.exit_code == 2
    assert f"--folder {tmp_path / folder}: it cannot be written" in run.output
    assert "Name one that you may write to." in run.output


@pytest.mark.slow
def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "leads.svg").mkdir()
    run = CliRunner().invoke(main, ["demo", "--folder", str(tmp_path)])
    assert run.exit_code == 2
    assert "leads.svg: it exists and is not a regular file." in run.output


@pytest.mark.slow
def test_without_engine_and_pictures_the_story_is_told_all_the_same(tmp_path):
    loaded = "import sys; assert not {'duckdb', 'ibis', 'matplotlib'} & sys.modules.keys()"
    program = (
        f"{BAREST}\nfrom privmax.cli import main\nmain(['demo'], standalone_mode=False)\n{loaded}"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert ANSWER.findall(run.stdout)[-1][3:] == ("butter + sourdough bread", "48")
    assert "For figures and a report:" in run.stdout
    assert 'pip install ".[plot]"' in run.stdout
    assert [path.name for path in (tmp_path / "privmax-demo").iterdir()] == ["budget.db"]


@pytest.mark.slow
def test_with_an_engine_it_is_asked(tmp_path, monkeypatch):
    import duckdb

    read = duckdb.read_csv
    asked = []
    monkeypatch.setattr(duckdb, "read_csv", lambda path: asked.append(path) or read(path))
    told(tmp_path)
    assert len(asked) == 3


def test_all_barcodes_are_a_list():
    codes = demo._Barcodes(["apples", "bread"])
    assert len(codes) == 10**12
    assert codes[0] == "apples"
    assert codes[10**12 - 1] == "9" * 12
    assert codes[1:4] == ["bread", "000000000002", "000000000003"]


def test_help_loads_nothing_heavy():
    program = (
        "import sys\nfrom privmax.cli import main\nmain(['demo', '--help'], "
        "standalone_mode=False)\n"
    )
    program += "assert not {'numpy', 'flint', 'matplotlib', 'duckdb'} & sys.modules.keys()"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "privmax demo --folder" in run.stdout
