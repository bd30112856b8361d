"""Ways to release every key that enough people have, in floats, for keys.py.

`find_keys` is the default of `privmax keys`, as a prototype: replace its body by a call of the
library. The others are written from their papers:

    one round    weights 1/sqrt(number of keys), Gaussian noise, a threshold (Gopi et al., ICML
                 2020)
    DP-SIPS      the same in rounds, each without the keys found before (Swanberg, Desfontaines &
                 Haney, PETS 2023)
    policy       people one after the other, each fills what its keys lack (PolicyGaussian, Gopi et
                 al., ICML 2020)
    MAD2R        weight above the threshold is rerouted, and a first round biases the second (Chen,
                 Cohen-Addad, Epasto & Zadimoghaddam, ICML 2025). Written from its description
                 without the authors' code, so its figures are indicative
    geometric    the optimal rule for few keys per person (Desfontaines, Voss, Gipson & Mandayam,
                 PETS 2022), epsilon and delta divided by that number

DP-SIPS and MAD2R are given the exact composition of Gaussian rounds that ours has, which is sharper
than what their papers use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Marks = NDArray[np.bool_]
Random = np.random.Generator


@dataclass(frozen=True)
class Pairs:
    """Who has which key: distinct pairs, sorted by user, both numbered from 0."""

    user: Ints
    key: Ints

    @classmethod
    def of(cls, user: Ints, key: Ints) -> Pairs:
        """Sort, number and deduplicate."""
        _, users = np.unique(user, return_inverse=True)
        _, keys = np.unique(key, return_inverse=True)
        codes = np.unique(users.astype(np.int64) * (keys.max() + 1) + keys)
        return cls(codes // (keys.max() + 1), codes % (keys.max() + 1))

    @cached_property
    def people(self) -> int:
        return int(self.user[-1]) + 1

    @cached_property
    def keys(self) -> int:
        return int(self.key.max()) + 1

    def degrees(self, kept: Marks | None = None) -> Ints:
        """How many keys each person has, of those kept."""
        users = self.user if kept is None else self.user[kept]
        return np.bincount(users, minlength=self.people)

    def total(self, weights: Floats) -> Floats:
        """The sum of the weights of each key."""
        return np.bincount(self.key, weights, minlength=self.keys).astype(float)

    def first(self, kept: Marks, order: Floats, most: int) -> Marks:
        """At most so many kept pairs of each person, the lowest by `order`."""
        chosen = kept.copy()
        crowded = kept & (self.degrees(kept)[self.user] > most)
        places = np.flatnonzero(crowded)
        sorted_places = places[np.lexsort((order[places], self.user[places]))]
        users = self.user[sorted_places]
        starts = np.flatnonzero(np.r_[True, np.diff(users) != 0]) if users.size else users
        lengths = np.diff(np.r_[starts, users.size])
        rank = np.arange(users.size) - np.repeat(starts, lengths)
        chosen[sorted_places[rank >= most]] = False
        return chosen

    def uniform(self, alive: Marks, most: int, random: Random) -> Floats:
        """Weights 1/sqrt(number of keys), of at most `most` live keys of a person."""
        chosen = self.first(alive[self.key], random.random(self.key.size), most)
        return self.scaled(chosen.astype(float))

    def scaled(self, values: Floats) -> Floats:
        """Weights in proportion to values, of norm 1 for each person."""
        squares = np.bincount(self.user, values**2, minlength=self.people)
        return values / np.sqrt(np.maximum(squares, 1e-300))[self.user]


# Noise and thresholds


@cache
def deviation(epsilon: float, delta: float) -> float:
    """The standard deviation of Gaussian noise for sensitivity 1."""

    def excess(sigma: float) -> float:
        above = ndtr(0.5 / sigma - epsilon * sigma)
        return float(above - np.exp(epsilon) * ndtr(-0.5 / sigma - epsilon * sigma) - delta)

    return float(brentq(excess, 0.05, 2000))


@cache
def uniform_threshold(sigma: float, delta: float, most: int) -> float:
    """The least threshold that up to `most` own keys of equal weight pass with chance delta."""
    t = np.arange(1, most + 1)
    return float(np.max(1 / np.sqrt(t) - sigma * ndtri(delta / t)))


@cache
def threshold(sigma: float, delta: float, most: int) -> float:
    """The same for all weights of norm 1, by the concave envelope over squared weights."""
    weights = np.linspace(0, 1, 401)

    def excess(line: float) -> float:
        chance = ndtr((weights - line) / sigma)
        slopes = np.r_[0, (chance[1:] - chance[0]) / weights[1:] ** 2]
        slopes = np.r_[slopes, np.diff(chance) / np.diff(weights**2)]
        lifted = chance[None, :] - slopes[:, None] * weights[None, :] ** 2
        return float(np.log(np.min(most * lifted.max(axis=1) + slopes)) - np.log(delta))

    return float(brentq(excess, 0.5 * sigma, 15 * sigma + 2, xtol=1e-6))


def geometric_chances(epsilon: float, delta: float, most: int) -> Floats:
    """The chance of a key that n people give, n = 0 to most, by the optimal rule."""
    chances = np.zeros(most + 1)
    for n in range(1, most + 1):
        before = chances[n - 1]
        low = np.exp(epsilon) * before + delta
        high = 1 - np.exp(-epsilon) * (1 - delta - before)
        chances[n] = min(low, high, 1)
    return chances


# Ours

LOOKS, MANY_LOOKS, MANY = (0.03, 0.15), (0.05, 0.22), 16
QUESTION = 0.004
ONE_KEY, FAINT, USUAL = 1.36, 2.5, 12
LOOK_DELTA, LAST_DELTA, GAUSS_DELTA = 0.02, 0.36, 0.6


def find_keys(
    user: Ints,
    key: Ints,
    epsilon: float,
    delta: float,
    per_user: int,
    random: Random,
    exact: bool = False,
) -> Marks:
    """Which keys the default of `privmax keys` releases, in floats: a prototype.

    `exact`: it decides without noise, which is not private.
    """
    pairs = Pairs(user, key)
    if per_user == 1:
        return geometric(pairs, epsilon, delta, 1, random)
    root, slots = _plan(pairs, epsilon / 100, per_user, random, exact)
    epsilon *= 0.99
    if root < ONE_KEY:
        return geometric(pairs, epsilon, delta, 1, random)
    return _rounds(pairs, epsilon, delta, per_user, slots, random)


def rounds_alone(
    pairs: Pairs,
    epsilon: float,
    delta: float,
    most: int,
    random: Random,
    slots: int = USUAL,
    used: float = 1,
) -> Marks:
    """What runs where people have several keys, whatever they have; `used`: the part of epsilon."""
    return _rounds(pairs, used * epsilon, delta, most, slots, random)


def _plan(
    pairs: Pairs, epsilon: float, most: int, random: Random, exact: bool
) -> tuple[float, int]:
    """From a noisy histogram of keys per person: the mean root, and the slots of the last round."""
    highs = np.array([2**b for b in range(63) if 2**b < most] + [most])
    middles = (np.r_[0, highs[:-1]] + 1 + highs) / 2
    bins = np.searchsorted(highs, np.minimum(pairs.degrees(), most))
    counts = np.bincount(bins, minlength=highs.size).astype(float)
    if not exact:
        counts += random.geometric(1 - np.exp(-epsilon), highs.size)
        counts -= random.geometric(1 - np.exp(-epsilon), highs.size)
        counts[counts < FAINT / epsilon] = 0
    people = counts.sum()
    if people == 0:
        return float(np.sqrt(min(USUAL, most))), min(USUAL, most)
    ends = np.r_[middles[:-1], most]
    square = max(1, (counts * ends**2).sum() / people)
    slots = min(max(int(np.ceil(np.sqrt(square))), 3), most)
    return float((counts * np.sqrt(middles)).sum() / people), slots


def _rounds(
    pairs: Pairs, epsilon: float, delta: float, most: int, slots: int, random: Random
) -> Marks:
    """Two looks with equal weights, one question, and a round weighted by what the looks saw."""
    parts = LOOKS if slots < MANY else MANY_LOOKS
    own = (2 * LOOK_DELTA + LAST_DELTA) * delta
    whole = deviation(epsilon + np.log1p(-own), GAUSS_DELTA * delta)
    found = np.zeros(pairs.keys, bool)
    pooled = np.zeros(pairs.keys)
    for part in parts:
        sigma = whole / np.sqrt(part)
        seen = pairs.total(pairs.uniform(~found, most, random))
        seen += sigma * random.standard_normal(pairs.keys)
        found |= seen > uniform_threshold(sigma, LOOK_DELTA * delta, most)
        pooled += part / sum(parts) * seen
    value = pooled / (whole / np.sqrt(sum(parts)))  # in standard deviations
    live = ~found[pairs.key]
    cut = _cut(pairs, live, value, whole / np.sqrt(QUESTION), slots, random)

    wish = np.where(value > cut, 2 / np.maximum(value, 2), 1e-6)[pairs.key] * live
    chosen = pairs.first(live, random.random(live.size) * 1e-9 - wish, slots)
    total = pairs.total(pairs.scaled(wish * chosen))
    sigma = whole / np.sqrt(1 - sum(parts) - QUESTION)
    total += sigma * random.standard_normal(pairs.keys)
    passed: Marks = found | (total > threshold(sigma, LAST_DELTA * delta, slots))
    return passed


def _cut(
    pairs: Pairs, live: Marks, value: Floats, sigma: float, slots: int, random: Random
) -> float:
    """Below how many standard deviations a key counts as hopeless: the more there are, the more."""
    number = pairs.degrees(live)
    low = pairs.degrees(live & (value[pairs.key] < 1))
    share = low[number > 0] / number[number > 0]
    noise = np.sqrt(2) * sigma * random.standard_normal(2)
    hopeless = np.clip((share.sum() + noise[0]) / max(share.size + noise[1], 1), 0, 1)
    return float(np.clip(0.2 + 0.6 * (hopeless * slots - 1.6), 0.2, 1.3))


# The others


def one_round(pairs: Pairs, epsilon: float, delta: float, most: int, random: Random) -> Marks:
    return sips(pairs, epsilon, delta, most, random, (1.0,))


def sips(
    pairs: Pairs,
    epsilon: float,
    delta: float,
    most: int,
    random: Random,
    parts: Sequence[float] = (0.05, 0.15, 0.8),
) -> Marks:
    whole = deviation(epsilon + np.log1p(-delta / 2), delta / 2)
    found = np.zeros(pairs.keys, bool)
    for part in parts:
        sigma = whole / np.sqrt(part)
        total = pairs.total(pairs.uniform(~found, most, random))
        total += sigma * random.standard_normal(pairs.keys)
        found |= total > uniform_threshold(sigma, part * delta / 2, most)
    return found


def policy(
    pairs: Pairs, epsilon: float, delta: float, most: int, random: Random, above: float = 5.0
) -> Marks:
    sigma = deviation(epsilon, delta / 2)
    line = uniform_threshold(sigma, delta / 2, most)
    goal = line + above * sigma
    kept = pairs.first(np.ones(pairs.key.size, bool), random.random(pairs.key.size), most)
    ends = np.cumsum(pairs.degrees(kept))
    lists = np.split(pairs.key[kept], ends[:-1])
    total = [0.0] * pairs.keys
    for person in random.permutation(pairs.people).tolist():
        own = lists[person].tolist()
        gaps = [max(0.0, goal - total[one]) for one in own]
        norm = sum(gap * gap for gap in gaps) ** 0.5
        step = 1 / max(norm, 1)
        for one, gap in zip(own, gaps, strict=True):
            total[one] += step * gap
    passed: Marks = np.array(total) + sigma * random.standard_normal(pairs.keys) > line
    return passed


def mad2r(
    pairs: Pairs, epsilon: float, delta: float, most: int, random: Random, part: float = 0.1
) -> Marks:
    """With the settings of its paper: beta 2, largest adaptive degree 50, bias between ½ and 2."""
    whole = deviation(epsilon + np.log1p(-delta / 2), delta / 2)
    first, second = whole / np.sqrt(part), whole / np.sqrt(1 - part)
    line = uniform_threshold(first, part * delta / 2, most)
    seen = _rerouted(pairs, np.ones(pairs.keys, bool), line + 2 * first, None, most, random)
    seen += first * random.standard_normal(pairs.keys)
    found: Marks = seen > line
    line = threshold(second, (1 - part) * delta / 2, most)
    alive = ~found & (2 * (seen + 3 * first) >= line)
    bias = np.clip((line + 2 * second) / np.maximum(seen - first, 1e-9), 0.5, 1)
    total = _rerouted(pairs, alive, line + 2 * second, bias, most, random)
    total += second * random.standard_normal(pairs.keys)
    passed: Marks = found | (alive & (total > line))
    return passed


def _rerouted(
    pairs: Pairs, alive: Marks, goal: float, bias: Floats | None, most: int, random: Random
) -> Floats:
    """The weights of MaxAdaptiveDegree: what a key has above the goal goes to its people's others.

    A bias below 1 takes weight from a key, and the others of the same person get it, at most
    twofold; a person with no others keeps norm 1.
    """
    widest = 50
    chosen = pairs.first(alive[pairs.key], random.random(pairs.key.size), most)
    number = np.maximum(pairs.degrees(chosen), 1)[pairs.user]
    adaptive = chosen & (number <= widest)
    initial = pairs.total(adaptive / number)
    over = np.maximum(0, 1 - goal / np.maximum(initial, 1e-9))[pairs.key] * adaptive / number
    excess = np.bincount(pairs.user, over, minlength=pairs.people)[pairs.user]
    weights = chosen / np.sqrt(number)
    if bias is not None:
        less = bias[pairs.key] < 1
        low = weights * np.where(less, bias[pairs.key], 0)
        spent = np.bincount(pairs.user, low**2, minlength=pairs.people)[pairs.user]
        free = np.maximum(pairs.degrees(chosen & ~less), 1)[pairs.user]
        weights = np.where(less, low, np.minimum(2 * weights, chosen * np.sqrt((1 - spent) / free)))
        others = pairs.degrees(chosen & ~less)[pairs.user] > 0
        weights = np.where(others, weights, pairs.scaled(low))
    return pairs.total(weights - over + adaptive * excess / widest)


def geometric(pairs: Pairs, epsilon: float, delta: float, most: int, random: Random) -> Marks:
    everything = np.ones(pairs.key.size, bool)
    kept = pairs.first(everything, random.random(everything.size), most)
    counts = np.bincount(pairs.key[kept], minlength=pairs.keys)
    chances = geometric_chances(epsilon / most, delta / most, int(counts.max()))
    passed: Marks = random.random(pairs.keys) < chances[counts]
    return passed


Contender = Callable[[Pairs, float, float, int, Random], Marks]
