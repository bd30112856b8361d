"""privmax audit, as a user types it: what it shows, exact JSON, exit codes, mistakes."""

from __future__ import annotations

import json
import math
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from privmax import Exponential, Privacy, audit
from privmax.cli import main
from privmax.cli.commands.audit import _chance
from privmax.mechanisms import exponential
from privmax.mechanisms.contract import Law
from privmax.mechanisms.registry import MECHANISMS

BROKEN = ("exponential", "--epsilon", "1", "--neighbors", "replace", "--claim-epsilon", "0.5")


def privmax(*arguments):
    return CliRunner().invoke(main, ["audit", *map(str, arguments)])


def test_a_promise_that_holds_is_exit_0_with_the_worst_pair():
    run = privmax("permute-and-flip", "--epsilon", 1)
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        "mechanism  PermuteAndFlip(epsilon=1, delta=0, neighbors='add-remove', k=1)",
        "claim      epsilon 1, delta 0",
        "compared   980 pairs of neighbors: 3 candidates, scores up to 4, closed universe",
        "worst      a probability changes by a factor of e^1.000: 100 % of the claimed epsilon",
        "at most    no pair needs more than delta 3.7e-11, rounding errors included",
        "verdict    the claim holds for all pairs",
        "",
        "candidate   score here   score there   chance here   chance there      ratio",
        "────────────────────────────────────────────────────────────────────────────",
        "A                    4             4        0.4774         0.4917   e^-0.029",
        "B                    4             4        0.4774         0.4917   e^-0.029",
        "C                    2             1       0.04511         0.0166    e^1.000",
    ]


def test_a_promise_that_is_broken_is_exit_1_and_the_table_shows_how():
    run = privmax(*BROKEN)
    assert (run.exit_code, run.stderr) == (1, "")
    assert "claim      epsilon 0.5, delta 0" in run.stdout
    assert "verdict    BROKEN" in run.stdout
    needed = float(
        re.search(r"delta (\S+) is needed at epsilon 0.5, and 0 is claimed", run.stdout)[1]
    )
    rows = [line.split() for line in run.stdout.splitlines() if line[:2] in ("A ", "B ", "C ")]
    here, there = ([float(row[column]) for row in rows] for column in (3, 4))
    assert sum(here) == pytest.approx(1, abs=1e-3)
    assert sum(there) == pytest.approx(1, abs=1e-3)
    excess = sum(max(0, p - math.exp(0.5) * q) for p, q in zip(here, there, strict=True))
    assert excess == pytest.approx(needed, abs=1e-3)


def test_its_json_is_what_the_library_says():
    run = privmax(*BROKEN, "--json")
    assert run.exit_code == 1
    found = audit(Exponential(epsilon=1, neighbors="replace"), claim=Privacy("0.5"))
    assert json.loads(run.stdout) == {
        "mechanism": "Exponential(epsilon=1, delta=0, neighbors='replace', k=1)",
        "neighbors": "replace",
        "universe": "closed",
        "candidates": 3,
        "highest": 4,
        "claim": {"epsilon": "0.5", "delta": "0"},
        "holds": False,
        "fault": None,
        "delta": found.delta,
        "error": found.error,
        "most": found.most,
        "tightness": found.tightness,
        "pairs": 1820,
        "pair": [list(scores) for scores in found.pair],
    }


def broken_law(monkeypatch, change):
    """`exponential` with its joint law changed."""
    honest = Exponential.joint
    monkeypatch.setattr(Exponential, "joint", lambda self, profile: change(honest(self, profile)))


def test_a_law_that_is_none_is_exit_1_and_says_on_which_data(monkeypatch):
    broken_law(monkeypatch, lambda joint: {free: law.scale(0.6) for free, law in joint.items()})
    run = privmax("exponential", "--epsilon", "0.1")
    assert (run.exit_code, run.stderr) == (1, "")
    assert run.stdout.splitlines()[2:5] == [
        "compared   0 pairs of neighbors: 3 candidates, scores up to 4, closed universe",
        "verdict    BROKEN: The law of the scores (4, 4, 4) is not a probability distribution: it "
        "adds up to 0.6, and "
        "its stated error allows for 5e-13 only.",
        "",
    ]
    assert re.search(r"^A +4 +3 +0.3333 +0.3333 +e\^0.000$", run.stdout, re.MULTILINE)
    found = json.loads(privmax("exponential", "--epsilon", "0.1", "--json").stdout)
    assert (found["holds"], found["delta"], found["tightness"], found["pairs"]) == (
        False,
        1,
        None,
        0,
    )
    assert found["fault"].startswith(
        "The law of the scores (4, 4, 4) is not a probability distribution"
    )
    assert found["pair"][0] == [4, 4, 4]


def test_a_loss_without_bound_is_exit_1_however_rare(monkeypatch):
    def leak(joint):
        [law] = joint.values()
        if len(law.blocks) < 3:
            return {"quiet": law}
        return {"quiet": law.scale(1 - 1e-13), "leak": law.scale(1e-13)}

    broken_law(monkeypatch, leak)
    run = privmax("exponential", "--epsilon", 1)
    assert run.exit_code == 1
    assert re.search(
        "delta 1e-13 is needed at epsilon 1, and 0 is claimed; an output here is", run.stdout
    )
    assert json.loads(privmax("exponential", "--epsilon", 1, "--json").stdout)["tightness"] is None


def test_unseen_candidates_and_silence_have_their_place_in_the_table():
    run = privmax(
        "limited-domain", "--rank", 2, "--epsilon", 1, "--delta", "1e-6", "--claim-delta", "1e-9"
    )
    assert run.exit_code == 1
    assert "delta 1e-06 is needed at epsilon 1: 1,000 times the claimed delta" in run.stdout
    assert "open universe" in run.stdout
    assert re.search(r"^A +1 +unseen +5e-07 +0 +no bound$", run.stdout, re.MULTILINE)
    assert re.search(r"^C +unseen +unseen +0 +0$", run.stdout, re.MULTILINE)
    assert re.search(r"^nothing +1 +1 +e\^0.000$", run.stdout, re.MULTILINE)


def test_whoever_is_unseen_has_no_part_in_the_block_at_the_floor():
    law = Law(((9, 1, 0.5), (1, 2, 0.5)), none=0.0, error=0.0, floor=1)
    assert [_chance(law, score, "open") for score in (9, 1, 0)] == [0.5, 0.25, 0]
    assert [_chance(law, score, "closed") for score in (9, 1, 0)] == [0.5, 0.25, 0.25]


def test_lists_are_compared_whole_and_not_shown():
    run = privmax("exponential", "--epsilon", 1, "--k", 2)
    assert run.exit_code == 0
    assert "Whole lists were compared" in run.stdout
    assert "chance" not in run.stdout.splitlines()[6]


def test_what_is_released_beside_the_item_is_mentioned():
    run = privmax("sharp-margin", "--epsilon", 2, "--delta", "0.1")
    assert run.exit_code == 0
    assert "Diagnostics released with the item were compared, too" in run.stdout
    assert "beside" not in privmax("exponential", "--epsilon", 1).stdout


def test_a_closed_universe_where_no_delta_is_needed():
    run = privmax("sharp-margin", "--epsilon", 1, "--delta", "1e-6", "--universe", "closed")
    assert "no delta is needed at epsilon 1, up to a rounding error of" in run.stdout


def test_sizes_are_those_asked_for():
    run = privmax(
        "exponential", "--epsilon", 1, "--candidates", 2, "--highest", 1, "--growth", 1, "--json"
    )
    found = json.loads(run.stdout)
    assert (found["candidates"], found["highest"], len(found["pair"][0])) == (2, 1, 2)
    assert found["pairs"] == 3 * 4 * 2  # 3 data sets, each with 4 neighbours, both ways


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_can_be_audited_and_holds(name):
    small = ("--candidates", 2, "--highest", 2)
    delta = "0.3" if "delta" in MECHANISMS[name].parameters else 0
    more = [word for option in MECHANISMS[name].requires for word in (f"--{option}", 2)]
    run = privmax(name, "--epsilon", 6, "--delta", delta, *more, *small, "--json")
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["universe"] == ("open" if MECHANISMS[name].abstains else "closed")


def test_the_papers_mechanism_in_an_open_universe_needs_a_cap():
    price = (
        "large-margin",
        "--epsilon",
        6,
        "--delta",
        "0.3",
        "--universe",
        "open",
        "--highest",
        1,
        "--candidates",
        2,
    )
    run = privmax(*price)
    assert (run.exit_code, run.stdout) == (2, "")
    assert "--cap 5" in run.stderr
    assert privmax(*price, "--cap", 5).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("exponentiel", "--epsilon", 1), "'exponentiel' is not one of 'exponential'"),
        (("exponential",), "--epsilon"),
        (("exponential", "--epsilon", 0), "--epsilon 0: it must be above 0"),
        (("sharp-margin", "--epsilon", 1), "--delta 0:"),
        (
            ("limited-domain", "--epsilon", 1, "--delta", "1e-6"),
            "--rank: limited-domain needs it",
        ),
        (
            ("exponential", "--epsilon", 1, "--rank", 2),
            "--rank 2: exponential does not take it",
        ),
        (("exponential", "--epsilon", 1, "--universe", "open"), "--universe open:"),
        (
            ("exponential", "--epsilon", 1, "--claim-epsilon", "x"),
            "--claim-epsilon x:",
        ),
        (("exponential", "--epsilon", 1, "--claim-delta", 2), "--claim-delta 2:"),
        (("exponential", "--epsilon", 1, "--claim-epsilon", 0), "with epsilon and delta 0"),
        (
            ("exponential", "--epsilon", 1, "--candidates", 40),
            "Use fewer candidates or a lower --highest",
        ),
        (
            ("exponential", "--epsilon", 1, "--highest", 10**30),
            "Use fewer candidates or a lower --highest",
        ),
        (
            ("exponential", "--epsilon", 1, "--candidates", 10**30),
            "Use fewer candidates or a lower --highest",
        ),
        (("exponential", "--epsilon", 1, "--candidates", 0), "--candidates 0:"),
        (("exponential", "--epsilon", 1, "--highest", -1), "--highest -1:"),
    ],
)
def test_mistakes_are_named(arguments, message):
    run = privmax(*arguments)
    assert (run.exit_code, run.stdout) == (2, "")
    assert message in " ".join(run.stderr.split())


def test_help_names_every_mechanism_and_says_what_an_audit_cannot_show():
    told = " ".join(
        CliRunner().invoke(main, ["audit", "--help"], terminal_width=1000).stdout.split()
    )
    for name in MECHANISMS:
        assert name in told
    for words in (
        "No counterexample is not a proof",
        "not the program that draws from it",
        "privmax help proofs",
    ):
        assert words in told


# --of: code is run


class Coin(Exponential):
    """A mechanism that was registered a moment ago."""


class Sized(Exponential):
    """One that requires what no audit has a value for."""

    def __init__(self, *, epsilon, shape):
        super().__init__(epsilon=epsilon)


@pytest.fixture
def register(monkeypatch):
    """Register a class as a mechanism."""

    def add(name, made):
        monkeypatch.setattr(exponential, made.__name__, made, raising=False)
        entry = replace(MECHANISMS["exponential"], name=made.__name__)
        monkeypatch.setitem(MECHANISMS, name, entry)

    return add


def test_a_new_mechanism_of_the_registry_is_run_with_all_others(register):
    register("coin", Coin)
    run = privmax("--of", "privmax", "--only", "coin", "--samples", 500, "--json")
    assert (run.exit_code, run.stderr) == (0, "")
    [found] = json.loads(run.stdout)["subjects"]
    assert (found["subject"], found["broken"]) == ("coin", False)


def test_a_new_mechanism_that_requires_more_is_refused_by_name(register):
    register("sized", Sized)
    run = privmax("--of", "privmax", "--only", "exponential")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "sized requires shape" in " ".join(run.stderr.split())


FUNCTION = """
import random


def leaky(data, seed):
    return data


def quiet(data, seed):
    return random.Random(seed).random() < 0.5


def loud(data, seed):
    return "\\x1b]0;t\\x07\\u202e" + str(data)


def failing(data, seed):
    raise ValueError("canary")


def leaving(data, seed):
    raise SystemExit(7)


def alone(data):
    return data


def deep(data, seed):
    found = []
    for _ in range(5000):
        found = [found]
    return found


def nameless(data, seed):
    return object()


globals()["tag[/b]"] = leaky
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"own_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(FUNCTION, encoding="utf-8")
    (tmp_path / "pairs.json").write_text("[[0, 1]]", encoding="utf-8")
    return name


def test_the_page_shows_what_the_command_prints():
    page = Path(__file__).parents[2] / "lab/audit-peers.md"
    [(line, shown)] = re.findall(
        r"```console\n\$ privmax audit (.*?)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
    )
    run = privmax(*shlex.split(line))
    assert (run.exit_code, run.stdout) == (1, shown)


def test_a_function_of_ones_own_is_audited(own):
    options = ("--epsilon", 1, "--pairs", "pairs.json", "--samples", 3000)
    broken = privmax("--of", f"{own}:leaky", *options)
    assert broken.exit_code == 1
    assert "BROKEN" in broken.stdout
    quiet = privmax("--of", f"{own}:quiet", *options, "--json")
    assert quiet.exit_code == 0
    [found] = json.loads(quiet.stdout)["subjects"]
    assert (found["broken"], found["package"], found["claim"]["epsilon"]) == (False, "", "1")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "either MECHANISM or --of"),
        ("exponential --of privmax --epsilon 1", "either MECHANISM or --of"),
        ("exponential", "Missing option '--epsilon'"),
        ("--of opndp", "Did you mean opendp?"),
        ("--of privmax --only nobody", "no subject"),
        ("--of privmax --epsilon 1", "its own"),
        ("--of nowhere:f --epsilon 1 --pairs pairs.json", "no module nowhere"),
        ("--of math:f --epsilon 1 --pairs pairs.json", "has no function f"),
        ("--of math:sin --epsilon 1", "pairs of data sets"),
        ("--of math:sin --epsilon 1 --pairs nothing.json", "list of pairs"),
        ("--of math:sin --pairs pairs.json", "either epsilon or rho"),
        ("--of :f --epsilon 1 --pairs pairs.json", "importing it raised ValueError"),
        ("--of .x:f --epsilon 1 --pairs pairs.json", "importing it raised TypeError"),
        ("--of {own}:leaky --epsilon 701 --pairs pairs.json", "at most 700"),
        ("--of {own}:leaky --rho 1e400 --pairs pairs.json", "--rho 1e400: it must be at most 700"),
        ("--of {own}:leaky --epsilon 1 --pairs mapping.json", "list of pairs"),
        ("--of {own}:leaky --epsilon 1 --pairs pairs.json --samples 3", "at least 4"),
        ("--of {own}:leaky --epsilon 1 --pairs pairs.json --confidence 0.99999999999999999", "1"),
        ("--of {own}:failing --epsilon 1 --pairs pairs.json", "it raised ValueError"),
        ("--of {own}:leaving --epsilon 1 --pairs pairs.json", "it raised SystemExit"),
        ("--of {own}:alone --epsilon 1 --pairs pairs.json", "it raised TypeError"),
        ("--of {own}:deep --epsilon 1 --pairs pairs.json", "nested too deeply"),
        ("--of {own}:nameless --epsilon 1 --pairs pairs.json", "cannot be compared"),
    ],
)
def test_mistakes_with_of_are_named(own, line, said):
    Path("mapping.json").write_text('{"ab": 1}', encoding="utf-8")
    run = privmax(*shlex.split(line.replace("{own}", own)))
    assert run.exit_code == 2
    assert said in run.stderr
    assert "canary" not in run.stderr


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_outcomes_and_data_of_others_are_spelled_out(own, form):
    Path("pairs.json").write_text(r'[["\ud800", "\u202e\u0007\n x"]]', encoding="utf-8")
    for name in ("loud", "leaky", "tag[/b]"):
        options = ("--epsilon", 1, "--pairs", "pairs.json", "--samples", 3000, *form)
        run = privmax("--of", f"{own}:{name}", *options)
        assert run.exit_code == 1
        assert not {"\x1b", "\x07", "\u202e", "\ud800"} & set(run.stdout)
        assert "\n x" not in run.stdout
