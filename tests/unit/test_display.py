"""What notebooks and JSON show: hostile labels stay text, and nothing private is shown."""

from __future__ import annotations

import datetime
import json
import math
from html.parser import HTMLParser

import numpy as np
import pytest
from click.testing import CliRunner

from privmax import (
    Exponential,
    Ledger,
    NestedMargin,
    Privacy,
    Profile,
    audit,
    compare,
    plan,
    samples,
    select,
    top_itemsets,
)
from privmax.cli import main
from privmax.display import format_label, portable, to_json
from privmax.notebook import LONGEST, MOST, facts, table

PRICE = {"epsilon": 1, "delta": "1e-6"}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</table></div><h1>",
    "$\\href{javascript:alert(1)}{x}$",
    "a\nb\x1b[2J\x00",
    "\u202eright to left\u2066",
    "'; style=",
    "{{ 7*7 }}{% raw %}",
    "\ud800",
]


class Elements(HTMLParser):
    """The elements of a page, their attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data):
        self.text += data


KNOWN = {"div", "b", "table", "tbody", "tr", "th", "td", "bdi", "br"}


def shown(value):
    """What a notebook shows, if it is a small table without color, script or mathematics."""
    page = value._repr_html_()
    found = Elements(page)
    assert set(found.tags) <= KNOWN
    assert set(found.attributes) <= {"class", "style"}
    assert "color" not in page
    assert 'class="privmax tex2jax_ignore mathjax_ignore"' in page
    page.encode()  # no half of a surrogate pair
    assert len(page) < 10_000
    return found.text


@pytest.mark.parametrize("label", HOSTILE)
def test_a_hostile_label_is_text(label):
    text = shown(select({label: 10**9, "b": 77777}, **PRICE))
    assert format_label(label) in text
    assert "77777" not in text
    assert not {"\x1b", "\n", "\u202e", "\ud800"} & set(text)


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_items_of_itemsets_and_their_rules_are_text(label):
    release = top_itemsets([[label, "tea"]] * 900, **PRICE, supports=9, rules=9)
    text = shown(release)
    assert text.count(format_label(label)) == 3  # the itemset and two rules
    assert "rules" in text


def test_labels_that_differ_by_spaces_look_different():
    labels = ["tea", " tea", "tea ", "tea\xa0", "\u3000tea", "tea  ", "", " ", ("tea", "")]
    shown = [format_label(label) for label in labels]
    assert len(set(shown)) == len(labels)
    assert shown[:3] == ["tea", '" tea"', '"tea "']
    assert shown[6:] == ['""', '" "', 'tea, ""']


def test_a_release_shows_what_it_has_and_no_more():
    text = shown(select({"tea": 10**9, "ale": 4}, **PRICE))
    for part in (
        "released",
        "tea",
        "privacy cost",
        "epsilon 1, delta 1e-06",
        "protects",
        "one user",
    ):
        assert part in text
    assert "request" not in text
    assert "no answer: no item stood out enough" in shown(select({"tea": 1}, **PRICE))


def test_a_long_list_and_a_long_label_are_cut():
    scores = {f"item {item:03}": 10**9 for item in range(100)}
    text = shown(select(scores, k=100, universe=100, **PRICE))
    assert "item 019" in text
    assert "item 020" not in text
    assert f"… and {100 - MOST} more" in text
    long = shown(select({"x" * 5000: 10**9}, **PRICE))
    assert "x" * LONGEST + "…" in long


def test_a_plan_shows_its_table():
    found = plan(**PRICE, mechanisms=["nested-margin", "stable-maximum"])
    text = shown(found)
    choice = "chosen by auto: finds a clear winner without a list of items (NestedMargin)"
    for part in ("NestedMargin *", "lead", "22", choice):
        assert part in text
    assert "set" in shown(plan(**PRICE, k=3, mechanisms="set-margin"))


def test_a_comparison_shows_what_was_compared_and_nothing_private():
    """Of two data sets with other results a notebook shows the same."""
    options = {**PRICE, "mechanisms": ["gap-test", "stable-maximum"]}
    clear, close = (compare(scores, **options) for scores in ([912, 3], [912, 912, 911]))
    assert str(clear) != str(close)
    assert clear._repr_html_() == close._repr_html_()
    assert "without a list of items (NestedMargin)" in shown(clear)


def test_a_law_shows_nothing():
    laws = [NestedMargin(**PRICE).law(Profile([(score, 1)])) for score in (3, 912)]
    assert laws[0] != laws[1]
    assert laws[0]._repr_html_() == laws[1]._repr_html_()
    assert "private" in shown(laws[0])


def test_an_audit_shows_its_verdict_and_not_the_data_sets():
    good = shown(audit(Exponential(epsilon=1), scores=[(734, 731)]))
    assert "no violation was found" in good
    assert "734" not in good
    bad = audit(Exponential(epsilon=1), neighbors="replace", candidates=2, highest=2)
    assert "the claim is broken" in shown(bad)


def test_a_ledger_shows_its_account_and_never_fails(tmp_path):
    file = tmp_path / "b.db"
    with Ledger.create(file, "<b>team", epsilon=3, delta="1e-5") as ledger:
        ledger.open_account("<i>ada", Privacy(1))
        select({"a": 10**9}, **PRICE, ledger=ledger)
        text = shown(ledger)
        for part in ("<b>team", "account <i>ada", "epsilon 2, delta 9e-06", "rule basic", "user"):
            assert part in text
    assert "cannot be read" in shown(Ledger.at(tmp_path / "none.db"))


def test_the_url_of_a_ledger_has_no_password_in_it():
    with Ledger.at("postgresql://ada:hunter2@127.0.0.1:1/x?connect_timeout=1", who="ada") as ledger:
        text = shown(ledger)
    assert "hunter2" not in text
    assert "127.0.0.1" in text


def test_texts_are_escaped_wherever_they_stand():
    bad = "<i>\x1b\u202e"
    for page in (
        facts(bad, {bad: bad, "more": [bad]}, bad),
        table(bad, [bad], [[bad]], bad),
    ):
        assert "i" not in Elements(page).tags
        assert Elements(page).text.count("<i>\\x1b\\u202e") >= 4
        assert not {"\x1b", "\u202e"} & set(page)


# JSON


@pytest.mark.parametrize(
    "command",
    [
        ("select", "--item", "query", "--score", "people", "--k", "3", "--ranked"),
        ("select", "--item", "query", "--score", "people", "--k", "3", "--epsilon", "0.001"),
    ],
)
def test_a_release_as_json_is_what_the_command_prints(command):
    """Distances in an order are noisy, so two releases differ in them and in nothing else."""
    line = [command[0], "sample:counts", *command[1:], *("--delta", "1e-6")]
    line += [] if "--epsilon" in line else ["--epsilon", "9"]
    printed = json.loads(CliRunner().invoke(main, [*line, "--json"]).stdout)
    epsilon = line[line.index("--epsilon") + 1]
    ranked = "--ranked" in line
    release = select(
        samples.path("counts"), item="query", score="people", k=3, ranked=ranked,
        epsilon=epsilon, delta="1e-6",
    )  # fmt: skip
    assert release.to_json().count("\n") == 0
    written = json.loads(release.to_json())
    assert [type(distance) for distance in written.pop("relative", [])] == [
        type(distance) for distance in printed.pop("relative", [])
    ]
    assert written == printed


def test_itemsets_as_json_are_what_the_command_prints(tmp_path):
    file = tmp_path / "b.dat"
    file.write_text("1 2\n" * 900, encoding="utf-8")
    line = ["itemsets", str(file), "--epsilon", "1", "--delta", "1e-6", "--json"]
    printed = CliRunner().invoke(main, line).stdout
    assert f"{top_itemsets(file, **PRICE).to_json()}\n" == printed


def test_json_of_a_paid_release_names_its_request(tmp_path):
    with Ledger(tmp_path / "b.db", epsilon=3, delta="1e-5") as ledger:
        request = ledger.request("r1")
        first = json.loads(select({"a": 10**9}, **PRICE, ledger=request).to_json())
        again = json.loads(select({"a": 10**9}, **PRICE, ledger=request).to_json())
    assert (first["request"], first["recorded"]) == ("r1", None)
    assert again["recorded"] is not None


@pytest.mark.parametrize("label", HOSTILE)
def test_json_holds_any_label_and_shows_no_control_character(label):
    text = select({label: 10**9}, **PRICE).to_json()
    text.encode()
    assert json.loads(text)["items"] == [label]
    assert not {"\x1b", "\n", "\u202e"} & set(text)


def test_values_that_json_has_no_type_for():
    assert portable(np.int64(3)) == 3
    assert type(portable(np.int64(3))) is int
    assert portable(np.datetime64("2026-03-01")) == "2026-03-01"
    assert to_json([datetime.date(2026, 3, 1), b"\x01", np.float32(0.5)]) == (
        '["2026-03-01", "01", 0.5]'
    )


# Hash


def test_equal_releases_have_one_hash():
    releases = [select({"a": 10**9, "b": 1}, **PRICE) for _ in range(2)]
    assert releases[0] == releases[1]
    assert len(set(releases)) == 1
    other = select({"c": 10**9, "b": 1}, **PRICE)
    assert len({*releases, other}) == 2
    pairs = top_itemsets([["a", "b"]] * 900, **PRICE, rules=9)
    assert hash(pairs) == hash(pairs)


def test_a_release_with_diagnostics_has_a_hash():
    release = select({"a": 10**9, "b": 1}, mechanism="large-margin", **PRICE)
    assert release.diagnostics
    assert release in {release}


def test_json_has_no_infinite_numbers():
    """A label may be one; other readers of JSON would stumble over it."""
    release = select({math.inf: 10**9, 1: 1}, **PRICE)

    def refuse(name):
        raise AssertionError(name)

    assert json.loads(release.to_json(), parse_constant=refuse)["items"] == ["inf"]
