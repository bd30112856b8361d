"""Windows against the plain list of all candidates' scores, clipped and sorted."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from privmax.profile import Profile, _Levels

patient = settings(deadline=None)  # a busy machine is no failure

scores = st.integers(-12, 12)
levels = st.dictionaries(scores, st.integers(1, 4), max_size=6)
widths = st.integers(0, 30)
BEYOND = 6
"""How far the open universe, which is infinite, is expanded."""


def expanded(listed, unlisted, width):
    """(top, clipped scores of all candidates, highest first)."""
    everyone = sorted(
        [score for score, count in listed.items() for _ in range(count)] + [0] * unlisted,
        reverse=True,
    )
    top = everyone[0]
    return top, [max(score, top - width) for score in everyone]


def expanded_open(listed, width):
    """The same where infinitely many unlisted candidates stand at 0, before any listed one that is
    not above it.
    """
    top = max([score for score in listed if score > 0], default=0)
    floor = max(top - width, 0)
    above = sorted(
        [score for score, count in listed.items() for _ in range(count) if score > floor],
        reverse=True,
    )
    return top, above + [floor] * BEYOND


def assert_same(window, top, everyone):
    assert window.top == top
    for rank in range(1, len(everyone) + 1):
        assert window.depth(rank) == top - everyone[rank - 1]
        assert window.total(rank) == sum(everyone[:rank])
        first = window.first(rank)
        assert [top - depth for depth, count in first for _ in range(count)] == everyone[:rank]
        assert len({depth for depth, _ in first}) == len(first)


@patient
@given(levels, st.integers(0, 5), widths)
def test_a_closed_window_is_the_clipped_list(listed, unlisted, width):
    if not listed and not unlisted:
        unlisted = 1
    size = sum(listed.values()) + unlisted
    window = Profile(listed.items(), universe=size).window(width)
    assert_same(window, *expanded(listed, unlisted, width))
    assert sum(count for _, count in window.blocks()) == size


@patient
@given(levels, widths)
def test_an_open_window_is_the_clipped_list(listed, width):
    window = Profile(listed.items()).window(width)
    assert_same(window, *expanded_open(listed, width))
    assert window.rest is None


@patient
@given(levels, st.integers(0, 5), st.lists(widths, max_size=6), st.booleans())
def test_a_window_does_not_depend_on_what_was_read_before(listed, unlisted, earlier, closed):
    universe = max(1, sum(listed.values()) + unlisted) if closed else None
    profile = Profile(listed.items(), universe=universe)
    for width in earlier:
        assert profile.window(width) == Profile(listed.items(), universe=universe).window(width)


@patient
@given(levels, st.integers(-20, 20), widths)
def test_shifting_a_full_closed_universe_moves_only_the_top(listed, shift, width):
    if not listed:
        listed = {0: 1}
    size = sum(listed.values())
    here = Profile(listed.items(), universe=size).window(width)
    there = Profile(
        [(score + shift, count) for score, count in listed.items()], universe=size
    ).window(width)
    assert there.top == here.top + shift
    assert there.blocks() == here.blocks()


@patient
@given(levels, st.integers(0, 5), widths)
def test_scaling_every_multiplicity_scales_every_block(listed, unlisted, width):
    """Order statistics at multiplicities of 2^80 follow from those at small ones."""
    many = 2**80
    if not listed and not unlisted:
        unlisted = 1
    size = sum(listed.values()) + unlisted
    small = Profile(listed.items(), universe=size).window(width)
    large = Profile(
        [(score, count * many) for score, count in listed.items()], universe=size * many
    ).window(width)
    for rank in range(1, size + 1):
        assert large.depth(rank * many) == small.depth(rank)
        assert large.depth((rank - 1) * many + 1) == small.depth(rank)
        assert large.total(rank * many) == small.total(rank) * many


@patient
@given(
    st.dictionaries(st.integers(-9, 3000), st.integers(1, 40), max_size=12),
    st.integers(1, 400),
    st.one_of(st.none(), st.integers(0, 300)),
)
def test_a_reader_that_finds_a_rank_gives_the_same(listed, rank, unlisted):
    size = None if unlisted is None else max(1, sum(listed.values()) + unlisted)
    plain = Profile(listed.items(), universe=size).down_to(rank)
    deep = Profile(Deep(listed), universe=size)
    assert deep.down_to(rank) == plain


class Deep(_Levels):
    """Finds the score of a rank at once."""

    def __init__(self, listed):
        super().__init__(listed.items())
        self._scores = sorted(
            (score for score, many in listed.items() for _ in range(many) if score > 0),
            reverse=True,
        )

    def nth(self, number):
        return self._scores[number - 1] if number <= len(self._scores) else None


ranks = st.integers(1, 20)
FAR = 10**6
"""Deeper than any score here."""


@patient
@given(levels, st.integers(0, 5), ranks)
def test_down_to_a_rank_a_closed_profile_is_as_it_is(listed, unlisted, rank):
    if not listed and not unlisted:
        unlisted = 1
    size = sum(listed.values()) + unlisted
    window = Profile(listed.items(), universe=size).down_to(rank)
    top, everyone = expanded(listed, unlisted, FAR)
    last = everyone[min(rank, size) - 1]
    above = [score for score in everyone if score >= last]  # the whole level of the last
    assert [top - depth for depth, count in window.first(len(above)) for _ in range(count)] == above
    assert sum(window.counts) == len(above)
    assert sum(count for _, count in window.blocks()) == size


@patient
@given(levels, ranks)
def test_down_to_a_rank_an_open_profile_is_as_it_is(listed, rank):
    window = Profile(listed.items()).down_to(rank)
    top, everyone = expanded_open(listed, FAR)
    everyone += [0] * rank
    assert window.top == top
    assert window.rest is None
    assert [window.depth(place) for place in range(1, rank + 1)] == [
        top - score for score in everyone[:rank]
    ]
    last = everyone[rank - 1]
    assert sum(window.counts) == sum(score >= max(last, 1) for score in everyone)
