"""Pictures: what they show is what they were given, and as SVG they can stand in a page."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from matplotlib.colors import to_rgba

import privmax
from privmax import plots
from privmax.errors import ParameterError
from privmax.planning.comparison import compare_over
from privmax.planning.plans import plan_over
from privmax.plots import (
    CHOSEN,
    FEW_CELLS,
    check,
    comparison,
    leads,
    misses,
    planning,
    shapes,
    svg,
    write,
)

PRICE = {"epsilon": 1, "delta": "1e-6"}
QUICK = ("exponential", "nested-margin", "limited-domain", "gap-test", "choosing")


@pytest.fixture(scope="module")
def found():
    return privmax.plan(**PRICE, near=2, mechanisms=QUICK)


@pytest.fixture(scope="module")
def compared():
    return privmax.compare([40, 38, 2], **PRICE, near=10, mechanisms=QUICK)


def bars(axes):
    """Names, from the top, and the lengths of the bars beside each."""
    names = [label.get_text() for label in axes.get_yticklabels()]
    return {
        name: [group[place].get_width() for group in axes.containers]
        for place, name in enumerate(names)
    }


def colours(axes):
    return [patch.get_facecolor() for patch in axes.containers[0]]


def test_a_plan_is_drawn_as_bars_of_leads(found):
    axes = planning(found).axes[0]
    drawn = bars(axes)
    assert drawn == {"LimitedDomain": [found.rows[0].lead], "NestedMargin *": [found.chosen.lead]}
    assert axes.yaxis_inverted()
    assert [line.get_xdata()[0] for line in axes.lines] == [found.limit]
    assert len(set(colours(axes))) == 2


def test_the_one_that_is_chosen_has_a_colour_of_its_own(found):
    axes = planning(found).axes[0]
    dark = [colour == to_rgba(CHOSEN) for colour in colours(axes)]
    assert dict(zip(bars(axes), dark, strict=True)) == {
        "LimitedDomain": False,
        "NestedMargin *": True,
    }


def test_who_is_left_out_of_a_plan_is_named_with_the_reason(found):
    told = planning(found).get_supxlabel()
    assert "Needs a closed universe: Exponential." in told
    assert "Needs growth: Choosing." in told
    assert "No lead is enough for: GapTest." in told
    assert "* chosen by auto: finds a clear winner without a list of items (Nes" in told


def test_a_comparison_is_drawn_as_chances_that_fill_the_bar(compared):
    axes = comparison(compared).axes[0]
    drawn = bars(axes)
    assert list(drawn) == ["LimitedDomain †", "NestedMargin *", "GapTest"]
    for row, (best, another, nothing) in zip(compared.rows, drawn.values(), strict=True):
        assert best == pytest.approx(100 * row.best)
        assert nothing == pytest.approx(100 * row.nothing, abs=1e-6)
        assert best + another + nothing == pytest.approx(100)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "the best",
        "another",
        "nothing",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [planning, comparison])
def test_an_svg_can_stand_in_a_page(kind, found, compared):
    given = {planning: found, comparison: compared}[kind]
    text = svg(kind(given))
    assert text == svg(kind(given))
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert text.startswith("<svg ")
    assert root[0].tag.endswith("title")
    assert root[0].text.startswith(given.title())
    assert "<style" not in text
    assert "<text" not in text
    assert not re.findall(r"(?:href|src)=\"(?!#)", text)
    assert not re.findall(r"url\((?!#)", text)
    used = set(re.findall(r'(?:href="#|url\(#)([\w-]+)', text))
    assert used
    assert used <= set(re.findall(r' id="([\w-]+)"', text))


def test_two_pictures_on_a_page_share_no_id(found, compared):
    ids = [
        set(re.findall(r' id="([^"]+)"', svg(figure)))
        for figure in (planning(found), comparison(compared))
    ]
    assert all(ids)
    assert not ids[0] & ids[1]


def test_a_title_is_escaped_and_a_dollar_is_a_dollar(found):
    figure = planning(found)
    figure.set_label("<b> $x$ & co")
    assert "<title>&lt;b&gt; $x$ &amp; co</title>" in svg(figure)


@pytest.mark.slow
def test_files_are_png_or_svg(found, tmp_path):
    figure = planning(found)
    write(figure, tmp_path / "p.PNG")
    assert (tmp_path / "p.PNG").read_bytes().startswith(b"\x89PNG\r\n")
    write(figure, tmp_path / "p.svg")
    assert ElementTree.parse(tmp_path / "p.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "p.svg").read_text(encoding="utf-8").startswith("<?xml")
    with pytest.raises(ParameterError, match=r"^plot=.*must end in \.png or \.svg"):
        write(figure, tmp_path / "p.pdf")
    check(tmp_path / "a.b.SVG")
    assert not (tmp_path / "a.b.SVG").exists()


def test_an_unthinkable_lead_is_drawn_too(found):
    rows = tuple(replace(row, lead=10**400) if row.chosen else row for row in found.rows)
    assert svg(planning(replace(found, rows=rows)))


# Lists


@pytest.fixture(scope="module")
def over():
    return plan_over([1, 2, 10], **PRICE)


@pytest.fixture(scope="module")
def compared_over():
    scores = [90, 85, 84, 80, 79, 9]
    return compare_over(scores, [2, 4], **PRICE, universe=50)


def heights(figure):
    """Of each line, by its name in the legend."""
    axes = figure.axes[0]
    return {
        line.get_label(): dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
        for line in axes.lines
        if not line.get_label().startswith("_")
    }


def test_leads_are_drawn_over_k_with_what_nobody_can_do(over):
    figure = leads(over, marked=2)
    drawn = heights(figure)
    assert drawn["SetMargin *"].items() >= {2: 25, 10: 25}.items()
    assert drawn["SharpMargin"] == {1: 28, 2: 54, 10: 205}
    assert drawn["no mechanism works with less"] == {1: 16, 2: 16, 10: 16}
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"
    assert set(drawn) >= {"GapTest", "LimitedDomain"}
    assert "NestedMargin" not in drawn
    figure.draw_without_rendering()
    ticks = [tick.get_text() for tick in figure.axes[0].get_yticklabels(which="both")]
    assert all(tick.replace(",", "").isdigit() for tick in ticks)


def test_a_line_that_ends_early_is_said_to():
    figure = leads({k: privmax.plan(epsilon=9, k=k, universe=50) for k in (2, 3)}, marked=3)
    assert "is shown up to" not in figure.get_supxlabel()
    short = plan_over([2], epsilon=9, universe=50)
    long = plan_over([3], epsilon=9, universe=50, mechanisms=["set-margin"])
    assert "Exponential is shown up to 2." in leads({**short, **long}, marked=3).get_supxlabel()


def test_a_mechanism_without_a_stroke_of_its_own_is_drawn_as_well(over, monkeypatch):
    monkeypatch.delitem(plots._K_STROKES, "GapTest")
    assert "GapTest" in heights(leads(over, marked=2))


@pytest.mark.slow
def test_misses_are_drawn_over_k(compared_over):
    figure = misses(compared_over, marked=4)
    drawn = heights(figure)
    for k, found in compared_over.items():
        for row in found.rows:
            name = f"{row.name}{' *' if row.name == 'SetMargin' else ''}"
            assert drawn[name][k] == pytest.approx(100 * row.misses)
    assert "PermuteAndFlip: from 200 draws" in figure.get_supxlabel()


def test_a_comparison_of_lists_fills_the_places_of_each(compared_over):
    found = compared_over[4]
    axes = comparison(found).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "the best 4",
        "others",
        "empty",
    ]
    for row, parts in zip(found.rows, bars(axes).values(), strict=True):
        assert parts[0] == pytest.approx(100 * row.best)
        assert sum(parts) == pytest.approx(100)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["over", "compared_over"])
def test_pictures_over_k_can_stand_in_a_page(name, request):
    given = request.getfixturevalue(name)
    draw = leads if name == "over" else misses
    text = svg(draw(given, marked=2))
    assert text == svg(draw(given, marked=2))
    assert ElementTree.fromstring(text)[0].text.startswith(
        "Records by which the best k" if name == "over" else "Share of the best k that is missed"
    )


@pytest.mark.slow
def test_shapes_are_drawn_most_telling_first():
    def entries(*values):
        return [{"cell": f"c{place}", "log_odds": one} for place, one in enumerate(values)]

    functions = {
        "flat": entries(0.0, 0.1),
        "steep": entries(-2.0, 2.0),
        "long": entries(*(place / 20 for place in range(20))),
        "a × b": entries(*(place / 10 for place in range(16))),
    }
    figure = shapes(functions, label="yes", most=3)
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    assert titles == ["steep", "a × b", "long"]
    assert figure.get_label() == "What adds to the log-odds of yes"
    assert svg(figure) == svg(figure)
    assert len(figure.axes[1].patches) == FEW_CELLS // 2


@pytest.mark.slow
def test_shapes_of_a_regression_are_effects_on_a_number():
    effects = [{"cell": "age < 20", "effect": -120.0}, {"cell": "age >= 20", "effect": 80.0}]
    figure = shapes({"age": effects}, label="pay")
    assert figure.get_label() == "What adds to pay"
    assert [patch.get_width() for patch in figure.axes[0].patches] == [-120, 80]
