"""Every engine gives the release that memory gives: same data, same coins, same item.

Memory gets what a few lines of Python count here, with the items in the fixed order: text by its
UTF-8 bytes.
"""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from contextlib import closing

import pytest
from by_name import by_name

import privmax
from privmax.errors import DataError, ParameterError
from privmax.mechanisms.contract import Outcome
from privmax.noise.samplers import uniform_below
from privmax.sources.memory import MemorySource
from privmax.sources.roles import Columns
from privmax.sources.tables import TableSource
from privmax.testing import SeededCoins

STRANGE = [
    "", " ", "a", "A", "b", "B", "ä", "Z", "é", "e\u0301", "ß", "ss", "ﬀ", "日本",
    "\U0001f600", "\uffff", "\u200b", "10", "9", "O'Brien", 'say "hi"', "back\\slash", "%s",
    "tab\there", "line\nbreak", "; DROP TABLE x", "NULL", "null", "x" * 500,
]  # fmt: skip

DATES = [
    datetime.date(1969, 12, 31),
    datetime.date(2024, 2, 29),
    datetime.date(1000, 1, 1),
    datetime.date(2262, 5, 1),
]

WHOLE = [0, -1, 7, 10, 9, 2**53 + 1, 2**63 - 1, -(2**63)]


def many(values, most=12):
    """Each value often enough that there are ties, and somebody is in front: most, most − 2, then
    ever fewer.
    """
    times = [most, most - 2, *(1 + place % 4 for place in range(len(values)))]
    return [value for value, number in zip(values, times, strict=False) for _ in range(number)]


def people(items):
    """So many different individuals for an item as it has rows, the same ones for all items."""
    seen = Counter()
    users = []
    for item in items:
        users.append(seen[item])
        seen[item] += 1
    return users


def twice(rows):
    return {name: [*column, *column[::-1]] for name, column in rows.items()}


def with_nulls(rows):
    """Some rows more without an item."""
    return {
        name: [*column, *([None] * 3 if name == "item" else column[:3])]
        for name, column in rows.items()
    }


STRINGS, NUMBERS, DAYS = many(STRANGE[::-1]), many(WHOLE), many(DATES)
PAIRS = [("b", 2), ("B", 2), ("b", -1), ("ä", 2), ("", 0)]

CASES = {
    "users of strings": (
        with_nulls(twice({"item": STRINGS, "user": people(STRINGS)})),
        {"user": "user"},
    ),
    "users with names": (
        twice({"item": NUMBERS, "user": [f"é{n}" for n in people(NUMBERS)]}),
        {"user": "user"},
    ),
    "users of dates": (twice({"item": DAYS, "user": people(DAYS)}), {"user": "user"}),
    "rows of strings": (with_nulls({"item": STRINGS}), {}),
    "rows of integers": (with_nulls({"item": NUMBERS}), {}),
    "rows of dates": (with_nulls({"item": DAYS}), {}),
    "rows of truths": ({"item": [True] * 9 + [False] * 8}, {}),
    "ready scores": (
        with_nulls(
            {
                "item": STRANGE,
                "score": [12, 9, 9, 0, 0, -1, -7, *(n % 5 for n in range(len(STRANGE) - 7))],
            }
        ),
        {"score": "score"},
    ),
    "ready scores, wide": (
        {"item": WHOLE, "score": [2**53 + 9, 2**53 + 8, 2**53 + 8, 3, 0, -(2**60), -5, 1]},
        {"score": "score", "sensitivity": 2},
    ),
    "negative scores": (
        {"item": ["a", "b", "c", "B"], "score": [-1, -1, -3, -9]},
        {"score": "score"},
    ),
    "weights": (
        with_nulls(
            {
                "item": STRINGS,
                "user": [n // 2 for n in people(STRINGS)],
                "weight": [(n * 7) % 5 - 1 for n in range(len(STRINGS))],
            }
        ),
        {"user": "user", "weight": "weight", "bound": 3},
    ),
    "composite items": (
        {
            "item": [*(text for text, _ in many(PAIRS)), "b", None],
            "second": [*(number for _, number in many(PAIRS)), None, 2],
            "user": [*people(many(PAIRS)), 1, 1],
        },
        {"item": ["item", "second"], "user": "user"},
    ),
    "one user": ({"item": ["a", "b", "B"], "user": [1, 1, 1]}, {"user": "user"}),
}
"""Rows, and the options of a selection from them."""

OPEN = [
    privmax.NestedMargin(epsilon=4, delta="0.1"),
    privmax.SharpMargin(epsilon=8, delta="0.2", k=3),
]
CLOSED = [
    privmax.PermuteAndFlip(epsilon="0.3"),
    privmax.NestedMargin(epsilon=2, delta="0.1"),
    privmax.Exponential(epsilon=1, k=2),
]


class FromTheFloor:
    """No mechanism for use: it draws the floor block of a narrow window, which others draw once in
    a million times.
    """

    neighbors = "add-remove"
    k = 1

    def draw(self, profile, coins):
        window = profile.window(2)
        if not window.rest:
            return Outcome(None)
        return Outcome(window.top - window.floor, uniform_below(window.rest, coins), below=True)

    def privacy(self):
        return privmax.Privacy(1)


def score_of(rows, options):
    """{item: score}, counted in Python, in the fixed order."""
    names = options.get("item", "item")
    columns = [rows[name] for name in ([names] if isinstance(names, str) else names)]
    items = [None if None in key else key for key in zip(*columns, strict=True)]
    known = [place for place, item in enumerate(items) if item is not None]
    scores = defaultdict(int)
    if "score" in options:
        scores.update({items[place]: rows["score"][place] for place in known})
    elif "weight" in options:
        each = Counter()
        for place in known:
            each[items[place], rows["user"][place]] += rows["weight"][place]
        for (item, _), weight in each.items():
            scores[item] += min(max(weight, 0), options["bound"])
    elif "user" in options:
        for item, _ in {(items[place], rows["user"][place]) for place in known}:
            scores[item] += 1
    else:
        scores.update(Counter(items[place] for place in known))
    return {key if len(key) > 1 else key[0]: scores[key] for key in sorted(scores, key=in_order)}


def everybody(scores):
    """A closed universe, its labels in the fixed order: the items, and some more of their kind that
    nobody has.
    """
    first = next(iter(scores))
    key = first if isinstance(first, tuple) else (first,)
    match key[0]:
        case bool():
            more = []  # there are no others
        case str():
            more = ["", "\u00c9", "aa", "z", "\U0001f601"]
        case int():
            more = [-7, 3, 2**62]
        case _:
            more = [datetime.date(1999, 12, 31), datetime.date(2026, 11, 15)]
    others = [(part, *key[1:]) for part in more]
    known = {label if isinstance(label, tuple) else (label,) for label in scores}
    labels = sorted({*known, *others}, key=in_order)
    return [label if len(label) > 1 else label[0] for label in labels]


def in_order(key):
    return [part.encode() if isinstance(part, str) else part for part in key]


def sensitivity_of(options):
    return options.get("bound") or options.get("sensitivity")


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def every_release(data, labels, options, seeds=2):
    return {
        (type(mechanism).__name__, universe == "open", seed): by_name(
            privmax.select,
            data,
            mechanism=mechanism,
            universe=universe,
            coins=SeededCoins(seed),
            **options,
        ).items
        for universe, mechanisms in (("open", OPEN), (labels, [*CLOSED, FromTheFloor()]))
        for mechanism in mechanisms
        for seed in range(seeds)
    }


def test_the_release_is_that_of_memory(load, case, engine):
    rows, options = case
    options = {"item": "item", **options}
    seeds = 1 if engine == "spark" else 2  # a question takes Spark a second, however small it is
    scores = score_of(rows, options)
    labels = everybody(scores)
    expected = every_release(scores, labels, {"sensitivity": sensitivity_of(options)}, seeds)
    assert every_release(load(rows), labels, options, seeds) == expected


def test_the_law_is_that_of_memory(load, case):
    """The profile is the same at every depth, so every mechanism's law is; and so is the law by
    item.
    """
    rows, options = case
    options = {"item": "item", **options}
    table, scores, sensitivity = load(rows), score_of(rows, options), sensitivity_of(options)
    labels = everybody(scores)
    for universe, mechanisms in (("open", OPEN), (labels, CLOSED)):
        memory = MemorySource(scores, universe=universe, sensitivity=sensitivity)
        columns = {name: value for name, value in options.items() if name != "sensitivity"}
        given = {"universe": universe, "sensitivity": options.get("sensitivity")}
        with closing(TableSource(table, Columns(**columns), **given)) as source:
            assert source.profile.sensitivity == memory.profile.sensitivity
            for width in (0, 1, 3, 100):
                assert source.profile.window(width) == memory.profile.window(width)
            for mechanism in mechanisms:
                assert mechanism.law(source.profile) == mechanism.law(memory.profile)
    by_item = by_name(privmax.law, table, mechanism=CLOSED[0], universe=labels, **options)
    assert by_item == pytest.approx(
        privmax.law(
            scores,
            mechanism=CLOSED[0],
            universe=labels,
            scores=privmax.Scores(sensitivity=sensitivity),
        ),
        rel=1e-12,
        abs=1e-12,
    )
    assert set(by_item) == {*labels, None}


@pytest.mark.parametrize("name", ["users of strings", "ready scores", "composite items"])
def test_every_place_of_every_block_holds_the_same_item(load, name):
    """Level by level and for the floor block, labels with data and without."""
    rows, options = CASES[name]
    options = {"item": "item", **options}
    scores = score_of(rows, options)
    labels = everybody(scores)
    memory = MemorySource(scores, universe=labels)
    with closing(TableSource(load(rows), Columns(**options), universe=labels)) as source:
        assert source.listed() == len(labels)
        window = source.profile.window(4)
        blocks = [
            (depth, count, False) for depth, count in zip(window.depths, window.counts, strict=True)
        ]
        everybody_drawn = [
            Outcome(window.top - depth, index, below)
            for depth, count, below in [*blocks, (window.floor, window.rest, True)]
            for index in range(count)
        ]
        drawn = [*everybody_drawn[1::2], Outcome(None), *everybody_drawn[::2]]
        expected = memory.names(drawn)
        assert len({*expected}) == len(labels) + 1
        assert source.names(drawn) == expected
        assert source.names([]) == []
        for one, label in list(zip(drawn, expected, strict=True))[::3]:
            assert source.names([one]) == [label]
        counts = source.counts(everybody_drawn)
        assert counts == memory.counts(everybody_drawn)
        assert dict(zip(source.names(everybody_drawn), counts, strict=True)) == dict(
            source.scores()
        )
        assert source.counts([]) == []


EVERY_WAY = (
    {"user": "user"},
    {},
    {"user": "user", "weight": "user", "bound": 2},
    {"score": "user"},
)


def test_no_rows_is_no_answer_in_an_open_universe_and_anybody_of_declared_labels(load, engine):
    table = load({"item": [], "user": []}, types={"item": "string", "user": "int64"})
    closed = {"mechanism": CLOSED[0], "universe": ["B", "a", "ä"]}
    for options in EVERY_WAY:
        assert (
            by_name(privmax.select, table, item="item", epsilon=1, delta="0.1", **options).item
            is None
        )
        sensitivity = sensitivity_of(options)
        for seed in range(1 if engine == "spark" else 2):
            expected = privmax.select(
                {},
                coins=SeededCoins(seed),
                **closed,
                scores=privmax.Scores(sensitivity=sensitivity),
            ).items
            assert (
                by_name(
                    privmax.select, table, item="item", coins=SeededCoins(seed), **options, **closed
                ).items
                == expected
            )
            assert expected
    with pytest.raises(DataError, match="There are no scores"):
        privmax.select(table, item="item", score="user", epsilon=1, universe=10)


@pytest.mark.parametrize("options", EVERY_WAY[:3], ids=["users", "rows", "weights"])
def test_a_size_does_not_name_what_nobody_has(load, options):
    table = load({"item": ["a", "b"], "user": [1, 2]})
    with pytest.raises(
        ParameterError,
        match="universe=2 is not allowed: a counted table lists only items that occur",
    ):
        by_name(privmax.select, table, item="item", epsilon=1, universe=2, **options)


def test_a_size_is_enough_where_everybody_has_a_score(load):
    rows = {"item": ["a", "b", "c"], "score": [9, 0, -3]}
    table = load(rows)
    for seed in range(2):
        closed = {"mechanism": CLOSED[0], "universe": 3}
        expected = privmax.select(
            dict(zip(*rows.values(), strict=True)), coins=SeededCoins(seed), **closed
        )
        assert (
            privmax.select(table, item="item", score="score", coins=SeededCoins(seed), **closed)
            == expected
        )
    for size, says in (
        (4, "fewer candidates are listed, and a size does not name"),
        (2, "must not be smaller"),
    ):
        with pytest.raises(ParameterError, match=f"universe={size} is not allowed: .*{says}"):
            privmax.select(table, item="item", score="score", epsilon=1, universe=size)


@pytest.mark.parametrize("options", EVERY_WAY, ids=["users", "rows", "weights", "scores"])
def test_an_item_that_is_not_declared_is_refused_by_every_engine(load, options):
    table = load({"item": ["a", "quuxley", None], "user": [1, 0, 3]})
    with pytest.raises(
        DataError, match=r"^A label with a score is not in the declared universe\."
    ) as caught:
        by_name(privmax.select, table, item="item", epsilon=1, universe=["a", "b", "c"], **options)
    assert "quuxley" not in str(caught.value)


def test_a_label_is_declared_with_all_of_its_columns(load):
    table = load({"x": ["a", "a", "b"], "y": [1, 1, 2]})
    with pytest.raises(DataError, match="not in the declared universe"):
        privmax.select(table, item=["x", "y"], epsilon=1, universe=[("a", 1), ("b", 1)])
    found = privmax.select(
        table, item=["x", "y"], epsilon=60, universe=[("b", 1), ("b", 2), ("a", 1)]
    )
    assert found.item == ("a", 1)


WRONG_LABELS = {
    "repeated": (["a", "b", "a"], "a label occurs in it more than once"),
    "of another type": (["a", 2], "a label does not fit the column of items, which is string"),
    "missing": (["a", None], "a label is missing"),
}


@pytest.mark.parametrize(("labels", "says"), WRONG_LABELS.values(), ids=WRONG_LABELS)
def test_labels_that_name_nobody_are_refused_by_every_engine(load, engine, labels, says):
    if engine == "sqlite" and labels == ["a", 2]:  # there every value has a type of its own
        assert (
            privmax.select(load({"item": ["a"] * 99}), item="item", epsilon=1, universe=labels).item
            == "a"
        )
        return
    with pytest.raises(ParameterError, match=f"^universe='<labels>' is not allowed: {says}"):
        privmax.select(load({"item": ["a"]}), item="item", epsilon=1, universe=labels)


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ({"item": ["a", "a", "b"], "user": [1, None, 1]}, {"user": "user"}),
        (
            {"item": ["a", "a", "b"], "user": [1, None, 1], "w": [1, 1, 1]},
            {"user": "user", "weight": "w", "bound": 2},
        ),
        (
            {"item": ["a", "a", "b"], "user": [1, 1, 1], "w": [1, None, 1]},
            {"user": "user", "weight": "w", "bound": 2},
        ),
        ({"item": ["a", "b", "c"], "score": [1, 2, None]}, {"score": "score"}),
        ({"item": ["a", "b", "b"], "score": [1, 2, 2]}, {"score": "score"}),
    ],
    ids=["null user", "null user of a weight", "null weight", "null score", "repeated item"],
)
@pytest.mark.parametrize("universe", ["open", ["a", "b", "c", "d"]], ids=["open", "closed"])
def test_rows_that_cannot_be_used_are_refused_by_every_engine(load, rows, options, universe):
    causes = ("A row has an item but no user", "A weight is missing", "A score is missing",
              "An item has several rows with scores")  # fmt: skip
    with pytest.raises(DataError, match=f"^({'|'.join(causes)})"):
        by_name(
            privmax.select,
            load(rows),
            item="item",
            epsilon=1,
            delta="0.1",
            universe=universe,
            **options,
        )


ODD_NAMES = [
    "select",
    "Group By",
    'quo"te',
    "it's",
    "UPPER",
    "naïve",
    "a.b",
    "privmax_score",
    "privmax_item_0",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_column_may_have_any_name(load, name):
    table = load({name: ["a"] * 40 + ["b"], "USER": [*range(40), 1]})
    assert privmax.select(table, item=name, user="USER", epsilon=4, delta="0.1").item == "a"


def test_nothing_is_left_in_the_engine(load, left_behind):
    rows = {"item": ["a"] * 30 + ["b"], "user": [*range(30), 1]}
    table = load(rows)
    before = left_behind(given=())
    privmax.select(table, item="item", user="user", epsilon=1, delta="0.1", k=2)
    privmax.law(
        table, item="item", user="user", mechanism=privmax.NestedMargin(epsilon=1, delta="0.1")
    )
    privmax.select(table, item="item", user="user", epsilon=1, universe=["a", "b", "c"])
    with pytest.raises(DataError):
        privmax.select(table, item="item", user="user", epsilon=1, universe=["a", "c"])
    assert left_behind(given=()) == before
    with pytest.raises(DataError):
        privmax.select(
            load({"item": ["a"], "user": [None]}, types={"user": "int64"}),
            item="item",
            user="user",
            epsilon=1,
            delta="0.1",
        )
    assert left_behind() == []


def test_what_is_kept_is_seen_while_it_is(load, left_behind):
    """The check above sees the counts of an open source, and two sources of one table have their
    own.
    """
    table = load({"item": ["a"] * 30, "user": [*range(30)]})
    first = TableSource(table, Columns("item", "user"))
    second = TableSource(table, Columns("item", "user"))
    assert len(left_behind()) == 2
    assert second.maximum() == 30
    second.close()
    second.close()
    assert first.maximum() == 30
    first.close()
    assert left_behind() == []


def test_a_spark_frame_is_counted_and_its_session_left_as_it_was(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    frame = session.createDataFrame([("a", n) for n in range(40)] + [("b", 1)], ["item", "user"])
    for universe in ("open", ["c", "a", "b"]):
        assert (
            privmax.select(
                frame, item="item", user="user", epsilon=4, delta="0.1", universe=universe
            ).item
            == "a"
        )
    assert session.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert session.catalog.listTables() == []


def test_the_cases_have_something_to_show():
    """Answers, labels without data, ties that the order decides."""
    every = [(score_of(rows, options), sensitivity_of(options)) for rows, options in CASES.values()]
    told = [
        every_release(scores, everybody(scores), {"sensitivity": steps}) for scores, steps in every
    ]
    for kind in (("NestedMargin", True), ("SharpMargin", True), ("Exponential", False)):
        assert any(
            items for found in told for (*which, _), items in found.items() if tuple(which) == kind
        )
    assert any(
        item not in scores
        for (scores, _), found in zip(every, told, strict=True)
        for items in found.values()
        for item in items
    )
    flips = [
        items for found in told for (name, _, _), items in found.items() if name == "PermuteAndFlip"
    ]
    floors = [
        items for found in told for (name, _, _), items in found.items() if name == "FromTheFloor"
    ]
    for kind in (flips, floors):
        assert len(set(kind)) > 3
