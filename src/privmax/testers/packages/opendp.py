"""OpenDP: noise on numbers, thresholds, noisy maximum, randomized response.

Each is claimed to cost what its own privacy map says of neighbors at distance 1. Versions before
0.14 have fewer of them, under other names. OpenDP has its own randomness, which takes no seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from privmax.testers.claims import Claim
from privmax.testers.patterns import neighbors
from privmax.testers.search import Pair
from privmax.testers.subjects import Subject

PACKAGE = "opendp"
ISSUES = "github.com/opendp/opendp/issues"

NUMBERS: list[Pair] = [(0, 1), (3, 4)]
SCORES = [(0, 0), (1, 1, 1, 1)]


def subjects() -> list[Subject]:
    """Return all that the installed version has."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return [*_numbers(dp), *_thresholds(dp), *_maxima(dp), *_responses(dp)]


def _subject(
    name: str, made: Any, cost: Any, pairs: list[Pair], *, rho: bool = False, source: str = ""
) -> Subject:
    main, delta = cost if isinstance(cost, tuple) else (cost, 0)
    claim = Claim.of(rho=main, delta=delta) if rho else Claim.of(epsilon=main, delta=delta)

    def run(data: Any, seed: int) -> Any:
        return made(list(data) if isinstance(data, tuple) else data)

    return Subject(PACKAGE, name, claim, pairs, run, source=source)


def _numbers(dp: Any) -> Iterator[Subject]:
    whole = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    for name in ("make_laplace", "make_geometric", "make_gaussian"):
        if hasattr(dp.m, name):
            made = getattr(dp.m, name)(*whole, scale=1.0)
            yield _subject(f"{name}, i64", made, made.map(1), NUMBERS, rho="gaussian" in name)
    for name in ("make_laplace", "make_gaussian"):
        real = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        made = getattr(dp.m, name)(*real, scale=1.0)
        pairs: list[Pair] = [(0.0, 1.0), (0.5, 1.5)]
        yield _subject(f"{name}, f64", made, made.map(1.0), pairs, rho="gaussian" in name)


def _thresholds(dp: Any) -> Iterator[Subject]:
    """Yield a key with a count of 1, which may be there or not."""
    counts = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="i64"))
    pairs: list[Pair] = [
        (_HashableCounts(), _HashableCounts(a=1)),
        (_HashableCounts(a=3), _HashableCounts(a=4)),
    ]
    known = {"make_laplace_threshold": False, "make_gaussian_threshold": True}
    if not hasattr(dp, "l01inf_distance"):  # before 0.14
        made = dp.m.make_laplace_threshold(counts, dp.l1_distance(T="i64"), scale=1.0, threshold=5)
        yield _subject("make_laplace_threshold, i64", made, made.map(1), pairs)
        return
    for name, rho in known.items():
        metric = dp.l02inf_distance if rho else dp.l01inf_distance
        distance = metric(dp.absolute_distance(T="i64"))
        made = getattr(dp.m, name)(counts, distance, scale=2.0 if rho else 1.0, threshold=5)
        source = f"{ISSUES}/2922"
        yield _subject(f"{name}, i64", made, made.map((1, 1, 1)), pairs, rho=rho, source=source)


class _HashableCounts(dict[str, int]):
    """A histogram that is hashable, as data sets of pairs are."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


def _maxima(dp: Any) -> Iterator[Subject]:
    scores = dp.vector_domain(dp.atom_domain(T="i64"))
    if not hasattr(dp.m, "make_noisy_max"):  # before 0.14
        distance = dp.linf_distance(T="i64", monotonic=False)
        made = dp.m.make_report_noisy_max_gumbel(scores, distance, scale=1.0)
        both = neighbors(SCORES, monotone=False)
        yield _subject("make_report_noisy_max_gumbel", made, made.map(1), list(both))
        return
    for name, options in (("make_noisy_max", {}), ("make_noisy_top_k", {"k": 2})):
        for monotone in (True, False):
            distance = dp.linf_distance(T="i64", monotonic=monotone)
            pairs = list(neighbors(SCORES, monotone=monotone))
            for rho in (False, True):
                measure = dp.zero_concentrated_divergence() if rho else dp.max_divergence()
                made = getattr(dp.m, name)(scores, distance, measure, scale=1.0, **options)
                title = f"{name}, {'zCDP' if rho else 'pure'}{', monotonic' * monotone}"
                source = f"{ISSUES}/2911" if rho else ""
                yield _subject(title, made, made.map(1), pairs, rho=rho, source=source)


def _responses(dp: Any) -> Iterator[Subject]:
    made = dp.m.make_randomized_response_bool(prob=0.75)
    yield _subject("make_randomized_response_bool", made, made.map(1), [(False, True)])
    made = dp.m.make_randomized_response(categories=["a", "b", "c"], prob=0.75)
    yield _subject("make_randomized_response", made, made.map(1), [("a", "b")])
