"""docs/paper.md: the numbers it quotes are those stored, which obey the bounds it shows."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs/paper.md").read_text(encoding="utf-8").split())
NAMES = ("universe", "near", "hard", "spent")
STORED = {
    name: json.loads(
        (ROOT / f"lab/benchmarks/results/paper-{name}.json").read_text(encoding="utf-8")
    )
    for name in NAMES
}
CONTENDERS = {row["contender"] for row in STORED["hard"]["curves"]} - {"limit"}
ALL, ITEM = "all", "item"


def curve(name, contender, **where):
    rows = [row for row in STORED[name]["curves"] if row["contender"] == contender]
    (row,) = [row for row in rows if all(row[key] == value for key, value in where.items())]
    return row


@pytest.mark.parametrize("name", NAMES)
def test_the_page_names_the_command_and_the_picture(name):
    assert STORED[name]["runs"][0]["command"] in PAGE
    assert f"pictures/paper-{name}.svg" in PAGE


def test_nobody_beats_the_bounds_on_the_hard_data():
    limit = curve("hard", "limit")
    errors = STORED["hard"]["settings"]["error"]
    assert len(CONTENDERS) == 11
    for contender in CONTENDERS:
        row = curve("hard", contender)
        assert all(failed > 0.5 for failed in row["failure"])
        failures = zip(row["failure"], limit["failure"], strict=True)
        assert all(most >= least - 1e-9 for most, least in failures)
        halves = zip(row["half"], limit["half"], errors, strict=True)
        assert all(most >= least > error for most, least, error in halves)


def test_nobody_spends_more_than_is_paid():
    for row in STORED["spent"]["spent"]:
        assert 0 < row["spent"] <= float(row["epsilon"])


def test_the_page_says_what_universe_shows():
    def at(contender, bits, lead=44, tied=1):
        row = curve("universe", contender, lead=lead, near=tied)
        return row["open"] if bits is None else row["chance"][row["bits"].index(bits)]

    flip = "permute-and-flip"
    for words in (
        f"a single winner with probability {at('large-margin', None, 500):.6f} in an open universe",
        f"falls from {at(flip, 361, 500):.2f} at 2^361 to {at(flip, 373, 500):.4f} at 2^373 "
        f"candidates",
        f"down to {at('large-margin', 10):.2f} at 2^10 candidates and to "
        f"{at('large-margin', 20):.4f} at 2^20, where",
        f"permute-and-flip still has {at(flip, 20):.4f}.",
        f"mechanism has {at('nested-margin', None):.3f} with the same 44 records",
        f"(the limit is {at('limit', None):.4f}), and {at('nested-margin', None, tied=10):.3f} "
        f"with ten tied",
    ):
        assert words in PAGE
    for lead in STORED["universe"]["settings"]["leads"]:
        assert (
            max(at("gap-test", None, lead, 10), at("stable-maximum", None, lead, 10)) < 1e-6
        )  # "silent"


def test_the_page_says_what_near_shows():
    def lead(contender, tied, size="open"):
        row = curve("near", contender, universe=size)
        return row["lead"][row["near"].index(tied)]

    exact = {row["contender"]: row["universe"] for row in STORED["near"]["crossings"]}
    rounded = {name: f"10^{round(math.log10(size))}" for name, size in exact.items()}
    for words in (
        f"{lead('theorem', 1)} records at ℓ = 1 and {lead('theorem', 10**6)} at ℓ = 10^6",
        f"theorem: {lead('large-margin', 1)} and {lead('large-margin', 10**6)} in an open universe",
        f"There the nested margin mechanism needs {lead('nested-margin', 1)} and "
        f"{lead('nested-margin', 10**6)}, and",
        f"{lead('lmm-x', 1)} and {lead('lmm-x', 10**6)}. Below {lead('limit', 1)} nothing is "
        f"possible",
        f"the paper's mechanism needs {lead('large-margin', 1, 'closed')} records for a single "
        f"winner",
        f"uses all of ε and needs {lead('permute-and-flip', 1, 'closed')}.",
        f"permute-and-flip needs {lead('permute-and-flip', 10**6, 'closed')} records and the "
        f"nested mechanism "
        f"{lead('nested-margin', 10**6, 'closed')}",
        f"The paper's constants win from about {rounded['large-margin']} candidates on",
        f"sharp margin mechanism from about {rounded['sharp-margin']}, the nested one from about "
        f"{rounded['nested-margin']}",
    ):
        assert words in PAGE


def test_the_page_says_what_hard_shows():
    def half(contender):
        return curve("hard", contender)["half"][-1]

    tied, error = (STORED["hard"]["settings"][key][-1] for key in ("near", "error"))
    limit = half("limit")
    least = min(min(curve("hard", contender)["failure"]) for contender in CONTENDERS)
    for words in (
        f"every mechanism here fails at least {math.floor(100 * least)} % of the time",
        f"With {tied} near maximizers, the theorem says that a lead of {error} records is "
        f"too small",
        f"the sharper limit that {limit - 1} is: {limit} is the least",
        f"Permute-and-flip needs {half('permute-and-flip')} in",
        f"nested margin mechanism {half('nested-margin')} in an open one",
        f"The paper's mechanism needs {half('large-margin')}, as",
        f"and {half('large-margin-truncated')} with truncated noise",
        f"The gap test needs {half('gap-test')} whatever ℓ is",
    ):
        assert words in PAGE
    assert len(set(curve("hard", "gap-test")["half"])) == 1


def test_the_page_says_what_spent_shows():
    rows = {
        (row["contender"], row["view"]): row
        for row in STORED["spent"]["spent"]
        if row["epsilon"] == "1"
    }
    share = {key: f"{row['spent']:.2f}" for key, row in rows.items()}
    paper = rows["large-margin", ALL]
    for words in (
        f"over {paper['pairs']} audited pairs of neighbors, the paper's mechanism spends "
        f"{share['large-margin', ALL]} of ε on everything that it releases, and "
        f"{share['large-margin', ITEM]} on its item alone:",
        f"With truncated noise, {share['large-margin', ALL]} becomes "
        f"{share['large-margin-truncated', ALL]}.",
        f"the nested margin mechanism {share['nested-margin', ALL]}, and the sharp one "
        f"{share['sharp-margin', ALL]}:",
    ):
        assert words in PAGE
    for name in (
        "exponential",
        "permute-and-flip",
        "max-of-laplaces",
        "stable-maximum",
        "gap-test",
    ):
        assert share[name, ALL] == "1.00"


MAP = (ROOT / "docs/paper-map.md").read_text(encoding="utf-8")
NAMED = json.loads((ROOT / "lab/benchmarks/results/paper-named.json").read_text(encoding="utf-8"))


def percent(part, contender, **where):
    rows = [row for row in NAMED[part] if row["contender"] == contender]
    (row,) = [row for row in rows if all(row[key] == value for key, value in where.items())]
    return row["percent"]


def test_the_map_says_where_ours_loses():
    """Each number of the paragraph is computed from the stored results."""

    def tree(score, epsilon):
        return percent("trees", score, epsilon=epsilon)

    ours, additive = "ours: whole tree", "ours: additive model"
    gini, gain = "tree, Gini", "tree, information gain"
    ahead = {
        name: [at for at in ("0.1", "0.5", "1") if tree(name, at) > tree(ours, at)]
        for name in (gini, gain)
    }
    assert ahead[gini] == ["0.5", "1"]
    for epsilon in ahead[gini]:
        assert tree(additive, epsilon) > max(tree(gini, epsilon), tree(gain, epsilon))
    few = min(row["n"] for row in NAMED["points"])
    found = {row["contender"]: row["percent"] for row in NAMED["points"] if row["n"] == few}
    hashed = found.pop("hashed points, pure")
    assert hashed < 5 < 40 < min(found.values())
    fewer, none = [], []
    for n in sorted({row["n"] for row in NAMED["thresholds"]}):
        recursion = percent("thresholds", "thresholds with δ (BNS)", n=n)
        drawn = percent("thresholds", "ours: one draw, pure", n=n)
        assert drawn < recursion or drawn == recursion == 0
        (fewer if drawn < recursion else none).append(n)
    words = " ".join(MAP.split())
    for sentence in (
        f"Gini scores is ahead of the whole tree from ε = {ahead[gini][0]} on, by information gain "
        f"at {' and '.join(ahead[gain])} (the additive",
        f"with {few} rows only the hashed points find anything",
        f"every size up to {fewer[-1]:,} rows, and both have none at {none[0]:,}.",
    ):
        assert sentence in words


def test_no_row_of_the_map_is_without_a_link_and_what_coq_checks_is_there():
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.*?) ?\|$", MAP, re.MULTILINE)[1:]
    rows = [row for row in rows if not row[0].startswith("---")]
    table = [row for row in rows if "proofs/" in row[2]]
    assert len(table) >= 26
    formal = "\n".join(
        path.read_text(encoding="utf-8") for path in sorted((ROOT / "formal").rglob("*.v"))
    )
    for item, here, proof, theorems in table:
        assert "](" in here, item
        assert "](" in proof, item
        for theorem in re.findall(r"`(\w+)`", theorems):
            assert re.search(rf"^(Theorem|Lemma|Definition) {theorem}\b", formal, re.MULTILINE)
