"""The law of a set by its length: the same as the law of the set itself."""

from __future__ import annotations

import pytest

from privmax import Profile, SetMargin

PROFILES = {
    "nobody below": Profile([(50, 3), (40, 2), (38, 3)]),
    "a tie at the cut": Profile([(50, 1), (48, 4), (47, 2)]),
    "closed": Profile([(50, 3), (47, 2), (46, 3)], universe=12),
    "closed, all seen": Profile([(9, 2), (8, 3)], universe=5),
}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_lengths_agree_with_the_law_of_the_set(profile, k):
    mechanism = SetMargin(epsilon="0.5", delta="0.01", k=k)
    (law,) = mechanism.sets(profile).values()
    reached, upto = 0, 0
    for place, (_, number) in enumerate(law.blocks):
        reached += 0 if number is None else number
        if reached >= k:
            upto = place + 1
            break
    wanted: dict[int, list[float]] = {}
    for numbers, chance in law.chances.items():
        one = wanted.setdefault(sum(numbers), [0.0, 0.0])
        one[0] += chance
        one[1] += chance * sum(numbers[:upto])
    found = mechanism.lengths(profile, k)
    for length in {*wanted, *found}:
        assert found.get(length, (0, 0)) == pytest.approx(wanted.get(length, [0, 0]), abs=1e-9)
    assert mechanism.expect(profile, k) == pytest.approx(
        (
            sum(length * chance for length, (chance, _) in found.items()),
            sum(hits for _, hits in found.values()),
        )
    )
