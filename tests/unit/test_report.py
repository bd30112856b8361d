"""Reports: what a page says and what it does not, that text stays text, and how it gets into a
file.
"""

from __future__ import annotations

import errno
import math
import os
import re
import sys
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path

import pytest

import privmax
from privmax import (
    Exponential,
    Guards,
    JointExponential,
    LargeMargin,
    LimitedDomain,
    NestedMargin,
    Privacy,
    Scores,
    SharpMargin,
    report,
)
from privmax.cli.commands.audit import command as audit
from privmax.errors import ParameterError
from privmax.itemsets import METHODS, top_itemsets
from privmax.mechanisms.registry import MECHANISMS, build
from privmax.payload import Drawn
from privmax.planning.comparison import compare
from privmax.release import Release
from privmax.rendering import environment
from privmax.report.release_page import TYPED, audit_command, proofs_of
from privmax.report.words import one_in, raised_chance, times

sys.path.append(str(Path(__file__).parent))

from page_reader import HOSTILE, Read

ROOT = Path(__file__).resolve().parents[2]
PRICE = {"epsilon": "0.4", "delta": "1e-6"}  # below 1, where the picture is quick
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def released(*items: object, mechanism: object = None, **more: object) -> Release:
    """A release as if it had been drawn."""
    made = build("nested-margin", **PRICE) if mechanism is None else mechanism
    names = {one.name for one in fields(Drawn)} & set(more)
    payload = Drawn(items, **{name: more.pop(name) for name in names})
    drawn = Release(payload, made.privacy(), made, "the universe is open", requested=made.k)
    return replace(drawn, **more)


def shown(release: Release, **options: object) -> str:
    return Read(report.html(release, written=NOON, **options)).text


# what a page says


def test_a_page_says_what_was_asked_released_promised_and_paid():
    page = shown(
        released("rain boots", request="r-17"),
        question="Which query do most people type?",
        asked={"data": "searches.csv", "item": "query", "weight": None, "labels": ["a", "b"]},
        unit="one person with all rows",
        universe="open",
        left=Privacy("1.6", "9e-6"),
        ledger="sales-2026",
        account="ada",
        proofs=["privmax help proofs/weights"],
    )
    for said in (
        "Which query do most people type?",
        "Released rain boots",
        "as if one person with all rows had been left out",
        "more than eε = 1.50 times as likely",
        "at most 1.50 in 100",
        "δ allows for one chance in a million that this fails.",
        "P(M(D) ∈ S) ≤ eε · P(M(D′) ∈ S) + δ ε = 0.4, δ = 10−6",
        "differ by one person with all rows, more or less (add-remove)",
        "data searches.csv item query labels a, b universe open",
        "charged to ledger sales-2026 and its account ada",
        "ada left when this was written ε = 1.6, δ = 9 · 10−6 request r-17",
        "The mechanism finds a clear winner without a list of items (NestedMargin). privmax chose "
        "it from public facts only.",
        "privmax help proofs/nested-margin, privmax help proofs/weights",
        "privmax audit nested-margin --epsilon 0.4 --delta 1e-06",
        "privmax plan --epsilon 0.4 --delta 1e-06",
        "privmax budget verify FILE",
        "Written 2026-03-01 12:00:00 UTC by privmax",
    ):
        assert said in page, said
    assert "weight" not in page.replace("privmax help proofs/weights", "")


def test_a_page_without_a_ledger_says_that_nobody_adds_up():
    page = shown(released("a"))
    assert "No ledger was charged" in page
    assert "Budget left" not in page
    assert "budget verify" not in page


def test_what_is_left_may_not_be_known():
    page = shown(released("a", request="r"), ledger="default")
    assert "Budget left not known now" in page
    assert "left not known when this was written" in page


def test_what_is_left_is_what_was_left_when_the_page_was_written():
    """Others may have paid between the release and the page."""
    page = shown(released("a", request="r"), ledger="default", left=Privacy("1.6", "9e-6"))
    assert "Budget left ε = 1.6, δ = 9 · 10−6 when this was written" in page
    assert "after it" not in page


def test_of_a_repeated_request_no_more_is_said_than_holds_for_all_commands():
    """`learn` reads the columns of the file again."""
    page = shown(released("a", request="r"), ledger="default")
    assert "Repeating the request id returns the recorded answer at no extra cost." in page
    assert "no data is read" not in page


def test_a_repeated_request_is_told_from_what_was_typed():
    said = (
        "the answer is the one that was recorded under the request r-17 earlier. It does not "
        "depend on what that"
    )
    release = released("a", request="r-17")
    page = shown(release, asked={"data": "other.csv"}, repeated=True)
    assert "What was asked data other.csv This is the question as typed for this page." in page
    assert said in page
    assert "What was asked This is the question as typed" in shown(release, repeated=True)
    assert "as typed" not in shown(release, asked={"data": "other.csv"})
    assert "recorded earlier" in shown(released("a"), repeated=True)


def test_nothing_released_is_explained():
    page = shown(released())
    assert "Released No answer" in page
    assert "its privacy cost is the same" in page
    assert "See how clear a winner must be: privmax plan --epsilon " in page
    assert "What “no answer” means" not in shown(released("a"))


@pytest.mark.slow
def test_the_universe_is_to_be_declared_only_where_it_is_not():
    page = shown(released(), universe="open")
    assert "declare the universe; delta 0 then works." in page
    assert "Use delta 0" not in page
    page = shown(released(), universe=10**9)
    assert "declare the universe" not in page
    assert "Use delta 0: the universe is known, so there is always an answer." in page


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_published_methods_are_promised_no_answer(name):
    for universe in (None, 1000):
        page = shown(released(mechanism=METHODS[name](epsilon="0.4")), universe=universe)
        assert "Ask again with a larger epsilon" in page
        assert "See how clear" not in page
        assert "declare the universe" not in page
        assert "always" not in page


def test_a_list_is_numbered_and_says_if_it_is_short():
    made = build("sharp-margin", **PRICE, k=4)
    page = report.html(released("a", "b", mechanism=made))
    assert "<ol" in page
    assert "items with close scores may be in the wrong order. 2 of 4" in Read(page).text
    assert "2 of 4 released: nothing else stood out." in Read(page).text
    assert "by name" not in page
    assert "privmax help proofs/peeling" in page
    assert "stood out" not in report.html(released(*"abcd", mechanism=made))


def test_a_set_is_not_numbered_and_says_that_it_has_no_order():
    made = build("set-margin", **PRICE, k=4)
    page = report.html(released("a", "b", mechanism=made), universe="open")
    assert '<ul class="few"><li><bdi>a</bdi></li><li><bdi>b</bdi></li></ul>' in page
    assert "<ol" not in page
    words = Read(page).text
    assert "Sorted by name; their order is not released. 2 of 4 released: nothing else" in words
    assert "at which all of the 4 best are released in 95 of 100 cases" in words
    assert "privmax plan --epsilon 0.4 --delta 1e-06 --k 4 " in f"{words} "
    assert "privmax help proofs/set-margin" in page
    assert "peeling.md" not in page


def test_what_was_released_beside_the_items_is_shown_and_supports_are():
    assert "the best score, with noise: 1,234" in shown(
        released("a", diagnostics={"max_estimate": 1234})
    )
    baskets = [["bread", "butter"]] * 900
    pairs = top_itemsets(baskets, epsilon="0.4", delta="1e-6", supports="0.2")
    page = shown(pairs, unit="one basket")
    assert re.search(r"Released bread \+ butter [\d,]+ ± 15 \(95 %\)", page)
    assert "It is within the ± range of the true number in 95 of 100 cases" in page
    assert "of that, for the numbers ε = 0.2, δ = 0" in page
    assert "privmax help proofs/counts" in page
    assert "ε = 0.6" in page  # all of the price
    assert "privmax help proofs/itemsets" in page


def test_replaced_neighbours_are_exchanged():
    page = shown(
        released("a", mechanism=Exponential(epsilon=1, neighbors="replace")),
        unit="one row",
        universe=5,
    )
    assert "as if one row had been exchanged for another" in page
    assert "differ in one row (replace)" in page
    assert "δ is 0" in page
    assert "privmax audit exponential --epsilon 1 --neighbors replace" in page
    assert "privmax plan --epsilon 1 --universe 5 --neighbors replace" in page


def test_the_example_counts_delta_and_says_what_neighbours_are():
    page = shown(released("a", mechanism=build("gap-test", epsilon=1, delta="0.01")))
    assert (
        "with a chance of 1 in 100 with that one left out has a chance of at most 3.72 in 100"
        in page
    )
    assert "which is eε in 100 plus δ" in page
    assert (
        "no conclusion becomes more than 2.72 times as likely as with it left out, except with "
        "probability δ" in page
    )
    page = shown(released("a", mechanism=Exponential(epsilon=1, neighbors="replace")))
    assert (
        "1 in 100 with that one exchanged for another has a chance of at most 2.72 in 100" in page
    )
    assert (
        "no conclusion becomes more than 2.72 times as likely as with it exchanged for another"
        in page
    )
    assert "plus δ" not in page
    assert "except with" not in page


def test_an_example_that_limits_nothing_is_left_out():
    assert "For example" in shown(released("a", mechanism=Exponential(epsilon=4)))
    assert "For example" not in shown(released("a", mechanism=Exponential(epsilon=5)))
    assert "For example" not in shown(
        released("a", mechanism=build("gap-test", epsilon=1, delta="0.97"))
    )


def test_a_price_that_protects_nobody_is_called_so():
    assert "guarantee says little" in shown(released("a", mechanism=Exponential(epsilon=11)))
    assert "guarantee says little" not in shown(released("a", mechanism=Exponential(epsilon=10)))
    assert "a large chance" in shown(
        released("a", mechanism=build("gap-test", epsilon=1, delta="0.01"))
    )


def test_no_score_and_no_label_that_was_not_released_is_on_the_page():
    release = privmax.select({"rain boots": 91273, "zorblax": 64071}, **PRICE)
    page = report.html(release, universe="open", asked={"data": "counts.csv"})
    assert "rain boots" in page
    for secret in ("91273", "91,273", "64071", "64,071", "27202", "zorblax"):
        assert secret not in page


@pytest.mark.slow
def test_the_same_release_gives_the_same_page_but_for_the_time():
    release = released("a")
    first, again = (report.html(release, universe=10**9, written=NOON) for _ in range(2))
    assert first == again
    other = report.html(release, universe=10**9, written=NOON + timedelta(hours=1))
    assert [
        one for one, two in zip(first.split("\n"), other.split("\n"), strict=True) if one != two
    ] == [line for line in first.split("\n") if "<time" in line]


def test_times_of_other_zones_are_told_in_utc():
    east = NOON.astimezone(timezone(timedelta(hours=9)))
    assert "2026-03-01 12:00:00 UTC" in report.html(released("a"), written=east)


def test_answers_in_words_stand_for_the_items():
    page = shown(released(object()), answers=["card = 1 if visits >= 12"])
    assert "card = 1 if visits >= 12" in page
    assert "object at" not in page
    with pytest.raises(ParameterError, match=r"^answers=2"):
        report.html(released("a"), answers=["a", "b"])


# the picture


def test_without_a_universe_there_is_no_picture():
    page = report.html(released("a"))
    assert "<svg" not in page
    assert "privmax plan" not in page


@pytest.mark.slow
def test_the_picture_leaves_out_what_would_take_minutes_and_says_so():
    page = report.html(released("a"), universe="open")
    assert "<td>LargeMargin</td>" not in page
    assert "mechanisms are left out: at such a small ε" in page
    costly = report.html(
        released("a", mechanism=build("nested-margin", epsilon=4, delta="1e-2")), universe="open"
    )
    assert "<td>LargeMargin</td>" in costly
    assert "left out:" not in costly


@pytest.mark.slow
def test_a_universe_too_large_to_plan_for_is_planned_for_as_open_or_not_at_all():
    page = report.html(released("a"), universe=2**1001)
    assert "as if it were open" in page
    assert "about 10<sup>301</sup> candidates" in page
    pure = report.html(released("a", mechanism=Exponential(epsilon=1)), universe=2**1001)
    assert "<svg" not in pure
    assert "as if it were open" not in report.html(released("a"), universe="open")


def test_a_mechanism_of_ones_own_choice_is_told_from_the_one_that_is_marked():
    made = LimitedDomain(**PRICE, rank=5)
    page = shown(replace(released("a", mechanism=made), why="you chose it"), universe="open")
    assert "It was requested by name." in page
    assert "LimitedDomain ran here" in page


# every mechanism


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_has_a_page_a_proof_and_a_command(name):
    entry = MECHANISMS[name]
    delta = {} if entry.pure else {"delta": PRICE["delta"]}
    needed = dict.fromkeys(entry.requires, 3)
    made = build(name, epsilon=PRICE["epsilon"], **delta, **needed)
    page = shown(released("a", mechanism=made), universe=1000)
    (proof,) = proofs_of(type(made))
    assert (ROOT / "docs" / f"{proof.removeprefix('privmax help ')}.md").is_file()
    assert proof in page
    assert f"privmax audit {name} --epsilon 0.4" in page
    check_sentence(page, made)


def check_sentence(page, made):
    """The page says what the mechanism does, in a sentence that is not cut."""
    doc = sys.modules[type(made).__module__].__doc__
    sentence = re.match(r".*?\.(?= |$)", " ".join(doc.partition("\n\n")[0].split()))[0]
    assert sentence in " ".join(page.split())


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_published_methods_have_a_page_and_a_proof(name):
    made = METHODS[name](epsilon="0.4")
    page = shown(released("a", mechanism=made), universe=1000)
    assert "privmax help proofs/competitors" in page
    assert "privmax audit" not in page
    check_sentence(page, made)


def test_the_command_has_what_was_not_left_as_it_is():
    assert audit_command(LimitedDomain(**PRICE, rank=7, growth=2, k=2)) == (
        "privmax audit limited-domain --epsilon 0.4 --delta 1e-06 --rank 7 --growth 2 --k 2"
    )
    assert (
        audit_command(JointExponential(epsilon=1, k=50))
        == "privmax audit joint-exponential --epsilon 1 --k 3"
    )
    assert audit_command(build("large-margin", **PRICE, cap=5)) == (
        "privmax audit large-margin --epsilon 0.4 --delta 1e-06 --cap 5"
    )


@pytest.mark.parametrize(
    "made",
    [
        NestedMargin(**PRICE, ranks=[1, 8]),
        SharpMargin(**PRICE, guards=Guards([1024], [1], share="0.08")),
        LargeMargin(**PRICE, constants="corrected"),
    ],
)
def test_there_is_no_command_for_what_cannot_be_typed(made):
    """It would audit another mechanism."""
    assert audit_command(made) is None
    page = shown(released("a", mechanism=made))
    assert "privmax audit" not in page
    assert "counterexample" not in page


def test_what_is_typed_are_options_of_the_command():
    assert {f"--{name}" for name in TYPED} <= {
        option for one in audit.params for option in one.opts
    }


# text stays text


@pytest.mark.slow
def test_nothing_that_is_given_becomes_markup():
    def page(words: str) -> Read:
        release = released(
            words, words, mechanism=build("sharp-margin", **PRICE, k=2), request=words, why=words
        )
        given = {
            "repeated": True,
            "question": words,
            "unit": words,
            "ledger": words,
            "account": words,
            "proofs": [words],
        }
        return Read(
            report.html(
                release, asked={words: words, "b": [words]}, universe="open", written=NOON, **given
            )
        )

    harmless, hostile = page("rain boots"), page(HOSTILE)
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in harmless.tags]
    assert hostile.text.count(HOSTILE) == harmless.text.lower().count("rain boots") > 10


@pytest.mark.slow
def test_nothing_that_is_given_for_a_comparison_becomes_markup():
    found = compare([60, 30], **PRICE, mechanisms=["gap-test"])

    def page(words: str) -> Read:
        return Read(
            report.comparison(found, data=words, question=words, asked={words: words}, written=NOON)
        )

    harmless, hostile = page("rain boots"), page(HOSTILE)
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in harmless.tags]
    assert hostile.text.count(HOSTILE) == harmless.text.count("rain boots") > 4


def test_pages_refer_to_nothing_outside_them():
    page = report.html(released("a"), universe="open")
    for tag, attributes in Read(page).tags:
        assert tag not in ("script", "iframe", "object", "embed", "base", "form")
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("href", "src", "xlink:href", "action", "data"):
                assert value.startswith(("#", "data:")), (tag, name, value)
    assert {place[:1] for place in re.findall(r"url\(([^)]*)\)", page)} <= {"#"}
    assert "@import" not in page
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert ("meta", {"http-equiv": "Content-Security-Policy", "content": policy}) in Read(page).tags


def test_what_cannot_be_printed_is_spelled_out(tmp_path):
    shown = environment().from_string("{{ it }}").render(it="a\x00b\x1b[31m\n\ud800 é\u200d")
    assert shown == "a\\x00b\\x1b[31m\\n\\ud800 é\\u200d"
    file = tmp_path / "page.html"
    report.write(report.html(released("\ud800\x00")), file)
    assert "\\ud800\\x00" in file.read_text(encoding="utf-8")


# numbers


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [
        ("1e-300", "1.000001"),
        ("0.001", "1.0011"),
        ("0.1", "1.11"),
        ("0.5", "1.65"),
        (1, "2.72"),
        (3, "20.1"),
        (5, "149"),
        (10, "22,027"),
        (100, "1e44"),
        ("1e9", "1e434294482"),
    ],
)
def test_e_to_the_epsilon_is_rounded_up(epsilon, said):
    assert times(Fraction(epsilon)) == said


def test_e_to_the_epsilon_is_never_understated():
    for thousandths in range(1, 15000, 37):
        epsilon = Fraction(thousandths, 1000)
        told = float(times(epsilon).replace(",", ""))
        assert math.exp(epsilon) <= told <= 1.1 * math.exp(epsilon)


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        (1, "0.01", "3.72"),
        (1, 0, "2.72"),
        (1, "1e-300", "2.72"),
        (1, "0.0001", "2.73"),
        ("0.001", "1e-6", "1.0012"),
        ("1e-300", "0.5", "51.0"),
        (4, 0, "54.6"),
        (5, 0, None),
        (1, "0.97", None),
        ("1e9", "1e-6", None),
    ],
)
def test_a_chance_of_one_in_100_rises_by_the_factor_and_by_delta(epsilon, delta, said):
    assert raised_chance(Fraction(epsilon), Fraction(delta)) == said


def test_to_what_it_rises_is_never_understated():
    for step in range(1, 1000):
        epsilon, delta = Fraction(step, 400), Fraction(step % 37, 100 * 37) ** (step % 4 + 1)
        assert math.exp(epsilon) + 100 * delta <= float(raised_chance(epsilon, delta))


@pytest.mark.parametrize(
    ("delta", "said"),
    [
        ("1e-6", "a million"),
        ("1e-9", "a billion"),
        ("3e-6", "333,333"),
        ("0.5", "2"),
        ("0.7", "1"),
        ("1e-50", "1e50"),
        ("3e-50", "1e49"),
    ],
)
def test_delta_is_one_chance_in_so_many_rounded_up(delta, said):
    assert one_in(Fraction(delta)) == said


def test_powers_of_ten_are_written_as_such():
    pieces = environment().get_template("report/templates/pieces.html").module
    shown = ("1", "0.25", "1e-06", "9e-06", "1e+20", "a billion")
    assert [pieces.number(one) for one in shown] == [
        "1", "0.25", "10<sup>−6</sup>", "9&nbsp;·&nbsp;10<sup>−6</sup>", "10<sup>20</sup>",
        "a billion",
    ]  # fmt: skip


# comparisons


@pytest.mark.slow
def test_a_comparison_names_the_best_the_chosen_and_its_data():
    found = compare([60, 30, 30], **PRICE)
    page = Read(report.comparison(found, data="invented scores: 60, 30, 30", written=NOON)).text
    assert (
        "Most likely to release the best " + ", ".join(row.name for row in found.rows if row.ahead)
        in page
    )
    assert (
        "Computed on invented scores: 60, 30, 30. Nothing was released, and nothing was charged."
        in page
    )
    for row in (found.headings, *found.cells(), found.notes()):
        assert " ".join(row) in page


@pytest.mark.slow
def test_a_comparison_says_where_the_chosen_one_is_not_the_best():
    found = compare([25, 1], **PRICE)
    assert not found.chosen.ahead
    page = Read(report.comparison(found, data="invented scores")).text
    assert f"privmax would choose {found.chosen.name}, which is not the best here." in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("neighbors", "moved"), [("add-remove", "left out"), ("replace", "exchanged for another")]
)
def test_the_promise_of_a_comparison_is_about_two_data_sets_and_not_about_before_and_after(
    neighbors, moved
):
    """What is known before may change by more: under add-remove, of somebody known to take part, by
    e^(2ε).
    """
    for delta, excepted in ((PRICE["delta"], True), (0, False)):
        found = compare(
            [60, 30],
            universe=2,
            epsilon="0.4",
            delta=delta,
            mechanisms=["gap-test"],
            scores=Scores(neighbors=neighbors),
        )
        page = Read(report.comparison(found, data="invented scores")).text
        assert f"Imagine the same data with one individual {moved}." in page
        assert "more than eε = 1.50 times as likely as it would be from that other data" in page
        assert ("except with probability δ" in page) == excepted


# files


def test_a_page_replaces_what_stood_there_and_leaves_nothing_beside_it(tmp_path):
    file = tmp_path / "page.html"
    file.write_text("old", encoding="utf-8")
    report.write("<p>ü</p>", file)
    assert file.read_bytes() == "<p>ü</p>".encode()
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_its_mode_is_what_the_mask_says(tmp_path, mask):
    before = os.umask(mask)
    try:
        report.write("page", tmp_path / "page.html")
    finally:
        os.umask(before)
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_page_that_cannot_be_finished_leaves_the_old_one(tmp_path, monkeypatch, failing):
    file = tmp_path / "page.html"
    file.write_text("old", encoding="utf-8")

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(ParameterError, match=r"page\.html.*No space left on device"):
        report.write("new", file)
    assert file.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.html"
    link.symlink_to(tmp_path / "folder" / "page.html")
    report.write("page", link)
    assert link.is_symlink()
    assert (tmp_path / "folder" / "page.html").read_text(encoding="utf-8") == "page"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("folder.html", "it exists and is not a regular file"),
        ("pipe.html", "it exists and is not a regular file"),
        ("page.txt", "must end in .html"),
        ("-", "must end in .html"),
        ("nowhere/page.html", "there is no such folder"),
        ("file.txt/page.html", "Not a directory"),
        ("a" * 300 + ".html", "File name too long"),
    ],
)
def test_places_where_no_page_can_be_are_refused(tmp_path, name, why):
    (tmp_path / "folder.html").mkdir()
    os.mkfifo(tmp_path / "pipe.html")
    (tmp_path / "file.txt").write_text("old", encoding="utf-8")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(ParameterError, match=rf"^report=.*{re.escape(why)}"):
        report.write("page", tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == before
