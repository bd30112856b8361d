"""The Large Margin Mechanism, as printed: estimate the maximum, certify how many stand near it,
draw among them.

    t_r = 6(1 + ln(3r/δ)/ε)
    T_r = (3/ε)ln(3/(2δ)) + (6/ε)ln(3/δ) + (12/ε)ln(3r(r+1)/δ) + t_r
    M:  m = top + Lap(3/ε)
    S:  ℓ = first r < K with m − q_(r+1) > Lap(12/ε) + Lap(6/ε) + T_r, or K
    A:  draw among the top ℓ with weight exp(ε q/6)

Noise is discrete Laplace on integer scores, so each tail term of T_r and t_r is rounded up to an
integer by itself (the tail lemma on the proof page); this adds less than four records to T_r. The
constants are the paper's, for either neighbor relation. m and ℓ are part of what the theorem
covers: they are released as diagnostics, at no extra cost.

Proof:      docs/proofs/large-margin.md
Reference:  Chaudhuri, Hsu & Song, NeurIPS 2014, Algorithm 1
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from flint import arb

from privmax.deferred import np
from privmax.errors import ParameterError
from privmax.mechanisms.above_threshold import AboveThreshold, Run
from privmax.mechanisms.contract import (
    CLIP_LOSS,
    ROUNDING,
    Joint,
    Law,
    Mechanism,
    Outcome,
    PartialJoint,
    Relation,
    law_of,
    read_relation,
    search_lead,
)
from privmax.mechanisms.noisy_maximum import TAIL, NoisyMaximum, noise_law
from privmax.mechanisms.restricted_exponential import RestrictedExponential
from privmax.mechanisms.stored_leads import SUCCESS, find_lead
from privmax.noise.balls import START, ball, below, ceiling, ceiling_log, precision
from privmax.noise.coins import Coins
from privmax.numbers import Number, open_probability, plain, positive, whole
from privmax.parameters import Exact, Parameter, Whole, parameter
from privmax.privacy import ADD_REMOVE, REPLACE, Privacy
from privmax.profile import Profile, Window

if TYPE_CHECKING:
    from numpy.typing import NDArray

Constants = Literal["printed", "corrected"]
"""printed: t_r as above. corrected: 2 + 6 ln(3r/δ)/ε, which the same proof supports once δ/3 is
added before the measure is changed (correction 3 on the proof page)."""

FLOAT_ERROR = 1e-10
"""Bound on the rounding error of `law`: at most some 10^4 additions to exponents that matter only
up to 40.
"""

_JOINT_LIMIT = 64

_DENSE = 64
"""So many ranks from the first on are pieces of their own in a law."""

LARGEST = 1 << 40
"""The default cap of the search in an open universe."""

LAW_STEPS = 1 << 30
"""The most steps of `law`, some seconds. They grow with the square of 1/epsilon."""


class ThirdStage(Protocol):
    """A third stage: a draw among the top ranks of a window."""

    def draw(self, window: Window, coins: Coins, sensitivity: int = 1) -> Outcome:
        """Choose among them."""
        ...

    def law(self, window: Window, sensitivity: int = 1) -> Law:
        """Return the distribution of `draw`."""
        ...


def _read_constants(name: str, value: str) -> str:
    if value not in ("printed", "corrected"):
        raise ParameterError(
            name, value, 'there is a proof for "printed" and "corrected" only',
            "Scale epsilon and delta instead: every constant follows from them.",
        )  # fmt: skip
    return value


class LargeMargin(Mechanism):
    """Draw one candidate; what it may lose depends on the number of near maximizers.

    Args:
        epsilon: What it costs, with `delta`.
        delta: Above 0.
        neighbors: "add-remove" or "replace"; the constants serve both.
        cap: Open universe only: public bound on the search; reaching it releases nothing.
        constants: "printed" or "corrected"; there is a proof for no others.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import LargeMargin
        >>> LargeMargin(epsilon=1, delta=1e-6).threshold(1)
        417
        >>> LargeMargin(epsilon=1, delta=1e-6, constants="corrected").threshold(1)
        413
    """

    epsilon: Exact = parameter(positive)
    delta: Exact = parameter(
        open_probability,
        remedy="The certificate fails with probability delta; 0 is impossible.",
    )
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    cap: Whole = parameter(whole, default=LARGEST)
    constants: Parameter[str, Constants] = parameter(_read_constants, default="printed")

    steps_each: ClassVar[int] = 0
    """Steps of `law` for each threshold, beside those for the noise."""

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        window = self._window(profile)
        estimate = self._maximum().draw(profile, coins)
        end = self._end(profile)
        stop = self._search(profile).draw(self._runs(window, estimate - window.top, profile), coins)
        near = end if stop is None else stop
        diagnostics = {"max_estimate": estimate, "near_maximizers": near}
        if stop is None and profile.universe is None:
            return Outcome(None, diagnostics=diagnostics)
        item = self._choice(near).draw(window, coins, profile.sensitivity)
        return Outcome(item.score, item.index, item.below, diagnostics)

    def law(self, profile: Profile) -> Law:
        """Return the law, exact but for `error`.

        Ranks with one threshold are summed as a piece, its draw the mean of its two ends.

        Raises:
            ParameterError: It would take more than `LAW_STEPS` steps; there is no law then, but
                `draw` goes on working.
        """
        window, end = self._window(profile), self._end(profile)
        self._check_work(end, profile.sensitivity)
        pieces = self._pieces(window, end, profile.sensitivity)
        noise, noise_chances = noise_law(self._maximum().scale(profile.sensitivity))
        search = self._search(profile)
        shared, shared_chances = noise_law(search.shared_scale())
        stops, never = search.stopping(
            [(piece.last - piece.first + 1, piece.excess) for piece in pieces],
            int(noise[0] - shared[-1]),
            np.convolve(noise_chances, shared_chances),
        )
        chances, spread = self._block_chances(window, pieces, stops, profile.sensitivity)
        error = FLOAT_ERROR + 2 * TAIL + spread
        if profile.universe is None:
            return law_of(window, list(chances), never, error, true_zeros=False)
        everyone = self._choice(end).law(window, profile.sensitivity)
        chances += never * np.array([chance for _, _, chance in everyone.blocks])
        return law_of(window, list(chances), 0.0, error, true_zeros=False)

    def joint(self, profile: Profile) -> Joint:
        """Return the law of the item with (max_estimate, near_maximizers).

        Raises:
            ParameterError: The universe, or the cap of an open one, exceeds 64.
        """
        end = self._end(profile)
        if end > _JOINT_LIMIT:
            raise ParameterError(
                "universe" if profile.universe else "cap",
                end,
                f"the joint law is for at most {_JOINT_LIMIT}",
            )
        window = self._window(profile)
        draws = [self._choice(near).law(window, profile.sensitivity) for near in range(1, end + 1)]
        table: dict[Hashable, Law] = {}
        for estimate, chance in self._maximum().law(profile).items():
            runs = self._runs(window, estimate - window.top, profile)
            pieces = [(1, run.excess(r)) for run in runs for r in range(run.start, run.stop)]
            stops, never = self._search(profile).law(pieces)
            for near, stop in enumerate([*stops, never], start=1):
                law = draws[near - 1]
                if near == end and profile.universe is None:
                    law = law_of(window, [0.0] * len(window.blocks()), 1.0)
                # Some 64 additions to exponents that matter only up to 40 stay far below ROUNDING.
                error = chance * (float(stop) * law.error + ROUNDING + TAIL)
                table[estimate, near] = replace(
                    law.scale(chance * float(stop)), error=error, true_zeros=False
                )
        return PartialJoint(table, left_out=TAIL)

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def lead(
        self, *, candidates: int | None, near: int | None = None, success: Number = "0.95"
    ) -> int:
        least = whole("near", 1 if near is None else near)
        target = open_probability("success", success)
        usual = candidates is None and least == 1 and target == SUCCESS
        if usual and self.cap == LARGEST and self.constants == "printed":
            stored = find_lead(type(self).__name__, self.epsilon, self.delta)
            if stored is not None:
                return stored
        return _search_lead(self, candidates, least, target)

    def _guess_lead(self, candidates: int | None, near: int, success: Fraction) -> int:
        """A lead close to the one that is needed in an open universe: T_r and its usual noise."""
        if candidates is not None:
            return 0
        rare = min(0.5, max(1e-300, float(1 - success)))
        return self.threshold(near) + math.ceil(-9 * math.log(2 * rare) / float(self.epsilon))

    def threshold(self, rank: int, sensitivity: int = 1) -> int:
        """Return T_r on integer scores."""
        return (
            _fixed_tails(self, sensitivity)
            + self._rising_tail(rank, sensitivity)
            + self.margin(rank, sensitivity)
        )

    def margin(self, rank: int, sensitivity: int = 1) -> int:
        """Return t_r on integer scores: the margin that the search certifies at rank r."""
        shift = 6 if self.constants == "printed" else 2
        return shift * sensitivity + self._margin_tail(rank, sensitivity)

    def paper_constants(self, rank: int) -> tuple[float, float]:
        """Return (t_r, T_r) as the paper prints them, for real-valued noise.

        `margin` and `threshold` are what is used.

        Examples:
            >>> LargeMargin(epsilon=1, delta=1e-6).paper_constants(1)
            (95.48..., 414.9...)
        """
        epsilon, delta = float(self.epsilon), float(self.delta)
        t = 6 * (1 + math.log(3 * rank / delta) / epsilon)
        tails = (
            3 * math.log(3 / (2 * delta))
            + 6 * math.log(3 / delta)
            + 12 * math.log(3 * rank * (rank + 1) / delta)
        )
        return t, tails / epsilon + t

    def _margin_tail(self, rank: int, sensitivity: int) -> int:
        """⌈(6/ε)·ln(r·spread)⌉. Ends: the number is never an integer, as e^x is transcendental at
        rational x ≠ 0.
        """
        return ceiling(lambda: ball(6 * sensitivity / self.epsilon) * (self._spread() * rank).log())

    def _spread(self) -> arb:
        """Return the factor of the rank in the margin of the third stage: 3/δ."""
        return ball(3 / self.delta)

    def _rising_tail(self, rank: int, sensitivity: int) -> int:
        return ceiling_log(12 * sensitivity / self.epsilon, 3 * rank * (rank + 1) / self.delta)

    def _stage_epsilon(self) -> Fraction:
        """Epsilon of each of the three stages."""
        return self.epsilon / 3

    def _stage_delta(self) -> Fraction:
        return self.delta / 3

    def _check_work(self, end: int, sensitivity: int) -> None:
        """Refuse a law that would take too long: about as many steps as there are thresholds, for
        each value of the noise that is shared. Both are public.
        """
        thresholds = self.threshold(end, sensitivity) - self.threshold(1, sensitivity) + _DENSE
        shared = 2 * math.log(1 / TAIL) * 9 * sensitivity / float(self.epsilon)
        steps = thresholds * (shared + self.steps_each)
        if steps > LAW_STEPS:
            raise ParameterError(
                "epsilon", plain(self.epsilon), f"the exact law of {type(self).__name__} would "
                f"take about {steps:.0e} steps, and at most {LAW_STEPS:.0e} are taken",
                "Use a larger epsilon, or another mechanism; a draw needs no law.",
            )  # fmt: skip

    def _maximum(self) -> NoisyMaximum:
        return NoisyMaximum(epsilon=self._stage_epsilon())

    def _search(self, profile: Profile) -> AboveThreshold:
        return AboveThreshold(
            epsilon=self._stage_epsilon(), sensitivity=profile.sensitivity, share=Fraction(1, 2)
        )

    def _choice(self, near: int) -> ThirdStage:
        return RestrictedExponential(epsilon=self._stage_epsilon(), near=near, neighbors=REPLACE)

    def _end(self, profile: Profile) -> int:
        """Return the end of the search without a pass: at all K candidates, or at the cap."""
        return self.cap if profile.universe is None else profile.universe

    def _window(self, profile: Profile) -> Window:
        return profile.window(_width(self, self._end(profile), profile.sensitivity))

    def _runs(self, window: Window, offset: int, profile: Profile) -> Iterator[Run]:
        """Ranks 1 … end−1; the excess at r is m − q_(r+1) − T_r, with m = top + offset.

        Adjacent blocks share a run, bounded by the deepest of them, while a jump would hardly
        ever land in it or their depths differ by less than the noise of a query. How they are
        grouped changes the cost and not the law.
        """
        blocks = [block for block in _rank_runs(window, self._end(profile)) if block[0] < block[1]]
        starts = [start for start, _, _ in blocks]
        noise = self._search(profile).query_scale()
        scale = float(noise) if noise < 1 << 50 else math.ceil(noise)

        def run(first: int, last: int) -> Run:
            def excess(rank: int) -> int:
                return (
                    offset
                    + blocks[bisect_right(starts, rank) - 1][2]
                    - self.threshold(rank, profile.sensitivity)
                )

            def bound(rank: int) -> int:
                return offset + blocks[last][2] - self.threshold(rank, profile.sensitivity)

            return Run(blocks[first][0], blocks[last][1], excess, bound)

        first = 0
        while first < len(blocks):
            start, _, top_depth = blocks[first]
            base = (
                offset - self.threshold(start, profile.sensitivity) + 3 * scale
            )  # room for the shared noise
            last = first
            while last + 1 < len(blocks):
                _, stop, depth = blocks[last + 1]
                rare = math.log(stop - start) + (base + depth) / scale < -2
                if not rare and depth - top_depth > scale:
                    break
                last += 1
            yield run(first, last)
            first = last + 1

    def _pieces(self, window: Window, end: int, sensitivity: int) -> list[Piece]:
        """Ranks 1 … end−1 cut into pieces of one excess (before noise)."""
        steps, thresholds = _stretches(self, end, sensitivity)
        pieces = []
        for block, (start, stop, depth) in enumerate(_rank_runs(window, end)):
            rank = start
            while rank < stop:
                stretch = bisect_left(steps, rank)
                last = min(steps[stretch], stop - 1)
                pieces.append(Piece(rank, last, block, depth - thresholds[stretch]))
                rank = last + 1
        return pieces

    def _block_chances(
        self, window: Window, pieces: list[Piece], stops: NDArray[np.float64], sensitivity: int
    ) -> tuple[NDArray[np.float64], float]:
        """Probability of each block where the search stops in a piece with probability `stops`, and
        its error.

        At rank r the blocks before that of rank r+1 are whole and that one holds the rest of the
        top r.
        """
        rate = self.epsilon / (6 * sensitivity)
        blocks = window.blocks()
        weights = np.array([math.exp(-float(rate * depth)) for depth, _ in blocks])
        counts = [0 if count is None else count for _, count in blocks]
        whole_blocks = np.array([float(count) for count in counts]) * weights
        chances, spread = np.zeros(len(blocks)), 0.0
        owners = np.array([piece.block for piece in pieces])
        above = 0
        for block, count in enumerate(counts):
            mine = np.flatnonzero(owners == block)
            ends = [
                [float(getattr(pieces[i], edge) - above) for i in mine]
                for edge in ("first", "last")
            ]
            part = np.array(ends) * weights[block]
            before = whole_blocks[:block].sum()
            share = np.divide(part, before + part, out=np.zeros_like(part), where=part > 0)
            chances[block] += stops[mine] @ share.mean(axis=0)
            if before:
                chances[:block] += whole_blocks[:block] * (
                    stops[mine] @ (1 / (before + part)).mean(axis=0)
                )
            spread += float(stops[mine] @ np.abs(share[1] - share[0])) / 2
            above += count
        return chances, spread


@dataclass(frozen=True, repr=False)
class Piece:
    """Ranks whose next rank is in one block and whose excess is the same.

    Attributes:
        first: The first of the ranks.
        last: The last of them.
        block: The block in which the next rank stands.
        excess: Their common excess over the threshold, before noise.
    """

    first: int
    last: int
    block: int
    excess: int


@lru_cache(maxsize=256)
def _search_lead(
    mechanism: LargeMargin, candidates: int | None, near: int, success: Fraction
) -> int:
    """The lead, searched from a guess: a law takes milliseconds, and doubling from 1 asks for 20.

    It is kept: a plan asks for it once for itself, and once for the other third stage.
    """
    return search_lead(
        mechanism._chance_best,
        candidates=candidates,
        near=near,
        success=success,
        guess=mechanism._guess_lead(candidates, near, success),
    )


@lru_cache(maxsize=256)
def _fixed_tails(mechanism: LargeMargin, sensitivity: int) -> int:
    """The tail terms of T_r that do not depend on r."""
    unit = 3 * sensitivity / mechanism.epsilon
    return ceiling_log(unit, 3 / (2 * mechanism.delta)) + ceiling_log(2 * unit, 3 / mechanism.delta)


@lru_cache(maxsize=256)
def _width(mechanism: LargeMargin, end: int, sensitivity: int) -> int:
    """A public window so wide that the search passes at its floor but for CLIP_LOSS (the paper's
    utility theorem).
    """
    slack = ceiling_log(21 * sensitivity / mechanism.epsilon, 3 / CLIP_LOSS)
    return mechanism.threshold(end, sensitivity) + slack


def _rank_runs(window: Window, end: int) -> Iterator[tuple[int, int, int]]:
    """For each block: the ranks r (start, stop) below `end` whose rank r+1 is in it, and its
    depth.
    """
    above = 0
    for depth, count in window.blocks():
        stop = end if count is None else min(above + count, end)
        yield max(1, above), stop, depth
        above = stop


@lru_cache(maxsize=64)
def _stretches(mechanism: LargeMargin, end: int, sensitivity: int) -> tuple[list[int], list[int]]:
    """Ranks 1 … end cut into stretches that share one T_r: the last rank of each, and its T_r. All
    of it is public.

    No stretch grows by more than 1/16, so that the draw hardly differs along it.
    """
    ends = _rising_ends(mechanism.epsilon, mechanism.delta, end, sensitivity)
    margin = 6 * sensitivity / mechanism.epsilon
    least = mechanism._margin_tail(1, sensitivity)
    margin_ends = [
        _floor(partial(_last_rank, mechanism._spread, value / margin))
        for value in range(least, mechanism._margin_tail(end, sensitivity))
    ]
    dense = min(end, _DENSE)
    steps = {*range(1, dense + 1), *ends, *margin_ends, end}
    rank = dense
    while rank < end:
        rank = min(end, rank + rank // 16)
        steps.add(rank)
    ordered = sorted(steps)
    first = mechanism.threshold(1, sensitivity)
    return ordered, [
        first + bisect_left(ends, last) + bisect_left(margin_ends, last) for last in ordered
    ]


@lru_cache(maxsize=64)
def _rising_ends(epsilon: Fraction, delta: Fraction, end: int, sensitivity: int) -> list[int]:
    """The last rank with each value of the rising tail that one below `end` has, in order."""
    rising = 12 * sensitivity / epsilon
    least, most = (ceiling_log(rising, 3 * rank * (rank + 1) / delta) for rank in (1, end))
    return [
        _floor(partial(_last_rank_of_pairs, delta, value / rising)) for value in range(least, most)
    ]


def _last_rank(spread: Callable[[], arb], exponent: Fraction) -> arb:
    """The r with r·spread = e^exponent."""
    return ball(exponent).exp() / spread()


def _last_rank_of_pairs(delta: Fraction, exponent: Fraction) -> arb:
    """The r with 3r(r+1)/δ = e^exponent."""
    return ((1 + 4 * ball(delta / 3) * ball(exponent).exp()).sqrt() - 1) / 2


def _floor(number: Callable[[], arb]) -> int:
    """The exact floor. Ends: no number asked for is an integer, as e^x is transcendental at
    rational x ≠ 0.
    """
    bits = START
    while True:
        with precision(bits):
            value = number()
            low, high = below(value), below(value.upper())
        if low == high:
            return low
        bits *= 2
