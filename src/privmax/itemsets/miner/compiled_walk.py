"""What `ranked.py` does, compiled. Needs numba, so only `miner.py` imports it, and only where numba
is installed.

The walk can stop when its buffers are full and go on later: all it knows stands in arrays that
outlive a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic
from numpy.typing import NDArray

from privmax.itemsets.baskets import Baskets
from privmax.itemsets.miner.numpy_walk import Block, Codes, Ints, Ranked, individuals

BUFFER = 1 << 17
"""How many itemsets the walk hands over at a time, at least."""

PART = 1 << 16
"""Pairs of items in the rows of a third are counted together where there are at most so many, for
triples.
"""

UNBOUNDED = (1 << 63) - 1
NONE = np.empty(0, np.int64)

ROOT, DEPTH, LEAST, SETS, PLACES = range(5)
"""Where the walk stands: the next root, how many items were added to the present one, the least
support that counts, and how much of the buffers is filled."""


def supports(baskets: Baskets) -> Ints:
    """As in `ranked.py`."""
    owners = NONE if baskets.owners is None else baskets.owners
    weights = NONE if baskets.weights is None else baskets.weights
    counts = np.zeros(baskets.items, np.int64)
    _supports(baskets.offsets, baskets.codes, owners, weights, counts)
    return counts


def rank(baskets: Baskets, codes: Codes, supports: Ints, shortest: int) -> Ranked:
    """As in `ranked.py`."""
    ranks = np.full(baskets.items, -1, np.int32)
    ranks[codes] = np.arange(len(codes), dtype=np.int32)
    # Memory that is not written to is not taken: these are as large as they could be, and cut down
    # afterwards.
    items = np.empty(len(baskets.codes), np.int32)
    origin = np.empty(baskets.rows, np.int64)
    starts = np.empty(baskets.rows + 1, np.int64)
    heads = np.zeros(len(codes) + 1, np.int64)
    count, size = _project(
        baskets.offsets, baskets.codes, ranks, shortest, items, origin, starts, heads
    )
    items, origin, starts = items[:size], origin[:count], starts[: count + 1].copy()
    rows = np.empty(size, np.int32)
    places = np.empty(size, np.int32)
    _turn(starts, items, heads, rows, places)
    return Ranked(
        codes, supports, starts, items.copy(), heads, rows, places, *individuals(baskets, origin)
    )


def pairs(baskets: Baskets, codes: Codes) -> Ints:
    """As in `ranked.py`."""
    ranks = np.full(baskets.items, -1, np.int32)
    ranks[codes] = np.arange(len(codes), dtype=np.int32)
    space = len(codes) * (len(codes) - 1) // 2
    if baskets.weights is not None:
        counts = np.zeros(space, np.int64)
        _pairs(baskets.offsets, baskets.codes, ranks, len(codes), baskets.weights, counts)
        return counts
    small = np.zeros(space, np.int32)  # half as large, so more of it stays near the processor
    _pairs(baskets.offsets, baskets.codes, ranks, len(codes), NONE, small)
    return small.astype(np.int64)


def walk(
    table: Ranked, pairs: Ints, sizes: range, least: int, most: int, *, named: bool
) -> Iterator[Block]:
    """As in `ranked.py`. Where the sets are not to be named they are empty."""
    walk = _Walk(table, pairs, sizes, least, most, named=named)
    done = False
    while not done:
        done = walk.on()
        yield from walk.emptied()


def best(table: Ranked, pairs: Ints, size: int, least: int) -> int:
    """As in `ranked.py`."""
    walk = _Walk(table, pairs, range(size, size + 1), least, UNBOUNDED, named=False, rising=True)
    walk.on()
    return int(walk.state[LEAST]) - 1


class _Walk:
    """The arrays of one walk."""

    def __init__(
        self,
        table: Ranked,
        pairs: Ints,
        sizes: range,
        least: int,
        most: int,
        *,
        named: bool,
        rising: bool = False,
    ) -> None:
        self.table = table
        self.pairs = pairs
        self.named = named
        width = len(table.codes)
        largest = min(sizes.stop - 1, table.longest)
        self.limits = np.array([sizes.start, largest, most, named, rising], np.int64)
        self.state = np.array([0, 0, least, 0, 0], np.int64)
        self.counts = np.zeros(width, np.int64)
        self.local_counts = np.zeros(width, np.int64)
        self.stamps = np.full(width if len(table.owners) else 0, -1, np.int64)
        self.local_stamps = self.stamps.copy()
        self.survivors = np.empty(width, np.int32)
        self.numbers = np.full(width, -1, np.int32)
        # The part of the rows that comes before one item is at most all of them; what is not used
        # takes no memory.
        part = len(table.items) if largest > 2 else 0
        rows = len(table.starts) if largest > 2 else 0
        self.local_starts = np.empty(rows, np.int64)
        self.local_items = np.empty(part, np.int32)
        self.local_owners = np.empty(rows if len(table.owners) else 0, np.int64)
        self.local_weights = np.empty(rows if len(table.weights) else 0, np.int64)
        self.local_pairs = np.empty(PART if largest == 3 else 0, np.int64)
        self.bits = np.empty(part if largest == 3 else 0, np.uint64)
        self.bucket_heads = np.empty(width + 1, np.int64)
        self.bucket_lengths = np.empty(width, np.int64)
        self.bucket_rows = np.empty(part, np.int32)
        self.bucket_places = np.empty(part, np.int32)
        self.cursors = np.zeros(largest + 2, np.int64)
        self.bounds = np.zeros(largest + 2, np.int64)
        self.path = np.empty(largest + 2, np.int32)
        # The walk goes on only where the next step surely fits, so the smallest buffer must have
        # room for any one step.
        step = width + len(self.local_pairs)
        self.out_supports = np.empty(BUFFER + step, np.int64)
        self.out_sizes = np.empty(BUFFER + step if named else 0, np.int32)
        self.out_items = np.empty(4 * BUFFER + max(largest, 3) * step if named else 0, np.int32)

    def on(self) -> bool:
        """Walk until the buffers are full or, and then True, to the end."""
        table = self.table
        done = _walk(
            self.limits, self.state, self.pairs,
            table.supports, table.starts, table.items, table.heads, table.rows, table.places,
            table.owners, table.weights,
            self.counts, self.stamps, self.survivors, self.numbers,
            self.local_starts, self.local_items, self.local_owners, self.local_weights,
            self.local_counts, self.local_stamps, self.local_pairs, self.bits,
            self.bucket_heads, self.bucket_lengths, self.bucket_rows, self.bucket_places,
            self.cursors, self.bounds, self.path,
            self.out_supports, self.out_sizes, self.out_items,
        )  # fmt: skip
        return bool(done)

    def emptied(self) -> Iterator[Block]:
        """What the buffers hold; they are free again when all of it was taken."""
        count, filled = int(self.state[SETS]), int(self.state[PLACES])
        supports = self.out_supports[:count].copy()
        self.state[SETS] = self.state[PLACES] = 0
        if not self.named:
            yield np.empty((count, 0), np.int32), supports
            return
        sizes = self.out_sizes[:count].astype(np.int64)
        begins = np.cumsum(sizes) - sizes
        items = self.out_items[:filled]
        for size in np.unique(sizes).tolist():
            chosen = np.flatnonzero(sizes == size)
            yield items[begins[chosen][:, None] + np.arange(size)], supports[chosen]


def _compiled(function: Any) -> Any:
    """Compiled once and kept beside this file."""
    return numba.njit(cache=True, nogil=True)(function)


def _population(context: Any, word: Any) -> Any:
    """How many bits of a word of 64 are set: the processor's own instruction."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return numba.int64(numba.uint64), code


_ones: Any = intrinsic(_population)


@_compiled
def _supports(offsets: Ints, codes: Codes, owners: Ints, weights: Ints, counts: Ints) -> None:
    seen = np.full(len(counts), -1, np.int64)
    owned = len(owners) > 0
    weighted = len(weights) > 0
    for row in range(len(offsets) - 1):
        owner = owners[row] if owned else row
        weight = weights[owner] if weighted else 1
        for at in range(offsets[row], offsets[row + 1]):
            code = codes[at]
            if seen[code] != owner:
                seen[code] = owner
                counts[code] += weight


@_compiled
def _project(
    offsets: Ints,
    codes: Codes,
    ranks: Codes,
    shortest: int,
    items: Codes,
    origin: Ints,
    starts: Ints,
    heads: Ints,
) -> tuple[int, int]:
    """Rows of ranks in the order of their codes; how many there are, and how long all of them
    together.

    heads[i + 1] counts the rows of rank i.
    """
    seen = np.full(len(heads), -1, np.int64)
    count = 0
    end = 0
    starts[0] = 0
    for row in range(len(offsets) - 1):
        begin = end
        for at in range(offsets[row], offsets[row + 1]):
            rank = ranks[codes[at]]
            if rank >= 0 and seen[rank] != row:
                seen[rank] = row
                items[end] = rank
                end += 1
        if end - begin < shortest:
            end = begin
            continue
        for at in range(begin, end):
            heads[items[at] + 1] += 1
        origin[count] = row
        count += 1
        starts[count] = end
    return count, end


@_compiled
def _turn(starts: Ints, items: Codes, heads: Ints, rows: Codes, places: Codes) -> None:
    """Turn rows of ranks into ranks of rows, and those back into rows, which then ascend."""
    for rank in range(len(heads) - 1):
        heads[rank + 1] += heads[rank]
    fill = heads[:-1].copy()
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            rank = items[at]
            rows[fill[rank]] = row
            fill[rank] += 1
    taken = np.zeros(len(starts), np.int32)
    for rank in range(len(heads) - 1):
        for at in range(heads[rank], heads[rank + 1]):
            row = rows[at]
            place = taken[row]
            items[starts[row] + place] = rank
            places[at] = place
            taken[row] = place + 1


@_compiled
def _pairs(
    offsets: Ints, codes: Codes, ranks: Codes, width: int, weights: Ints, counts: Ints
) -> None:
    seen = np.full(width, -1, np.int64)
    kept = np.empty(width, np.int64)
    weighted = len(weights) > 0
    for row in range(len(offsets) - 1):
        weight = weights[row] if weighted else 1
        end = 0
        for at in range(offsets[row], offsets[row + 1]):
            rank = ranks[codes[at]]
            if rank >= 0 and seen[rank] != row:
                seen[rank] = row
                kept[end] = rank
                end += 1
        for at in range(1, end):
            rank = kept[at]
            for other in range(at):
                low, high = min(rank, kept[other]), max(rank, kept[other])
                counts[high * (high - 1) // 2 + low] += weight


@_compiled
def _pairs_by_rows(starts: Ints, items: Codes, weights: Ints, rows: int, counts: Ints) -> None:
    """The supports of all pairs in the first rows, which ascend."""
    counts[:] = 0
    weighted = len(weights) > 0
    for row in range(rows):
        weight = weights[row] if weighted else 1
        start = starts[row]
        for place in range(start + 1, starts[row + 1]):
            item = items[place] + 0  # of 64 bits, so that its square fits
            first = item * (item - 1) // 2
            for other in range(start, place):
                counts[first + items[other]] += weight


@_compiled
def _pairs_by_bits(
    starts: Ints, items: Codes, rows: int, width: int, bits: NDArray[np.uint64], counts: Ints
) -> None:
    """The same by intersecting the sets of rows of all items, for items that are in many rows. All
    weights are one.

    `bits` must have a place for every item and 64 rows. It is called only where pairs × words < the
    pairs in the rows: then items × words is less than the length of all rows together.
    """
    words = (rows + 63) // 64
    bits[:] = 0
    one = np.uint64(1)
    for row in range(rows):
        mask = one << np.uint64(row & 63)
        word = row >> 6
        for place in range(starts[row], starts[row + 1]):
            bits[items[place] * words + word] |= mask
    at = 0
    for high in range(1, width):
        here = bits[high * words : (high + 1) * words]
        for low in range(high):
            there = bits[low * words : (low + 1) * words]
            count = 0
            for word in range(words):
                count += _ones(here[word] & there[word])
            counts[at] = count
            at += 1


@_compiled
def _walk(
    limits: Ints, state: Ints, pairs: Ints,
    supports: Ints, starts: Ints, items: Codes, heads: Ints, rows: Codes, places: Codes, owners: Ints, weights: Ints,
    counts: Ints, stamps: Ints, survivors: Codes, numbers: Codes,
    local_starts: Ints, local_items: Codes, local_owners: Ints, local_weights: Ints,
    local_counts: Ints, local_stamps: Ints, local_pairs: Ints, bits: NDArray[np.uint64],
    bucket_heads: Ints, bucket_lengths: Ints, bucket_rows: Codes, bucket_places: Codes,
    cursors: Ints, bounds: Ints, path: Codes,
    out_supports: Ints, out_sizes: Codes, out_items: Codes,
) -> bool:  # fmt: skip
    """Depth first over all itemsets of support `least` or more; False when the buffers are full
    before the end.

    A root is the rarest item of the sets below it. The rows that hold it, cut to the more frequent
    items that are frequent together with it, are copied: the local rows. Below, an item x that may
    be added to the set under way has a bucket: the local rows that hold the set and x. Items are
    taken in ascending order, and below item x only buckets and counts of items under x are written,
    whose turn is over: so one bucket and one count for each item are enough at any depth.
    """
    smallest, largest, most = limits[0], limits[1], limits[2]
    named, rising = limits[3] == 1, limits[4] == 1
    owned, weighted = len(owners) > 0, len(weights) > 0
    least = state[LEAST]
    filled, placed = state[SETS], state[PLACES]
    depth = state[DEPTH]
    root = state[ROOT]
    room = len(out_supports)
    room_for_items = len(out_items)
    done = False
    while True:
        if depth == 0:
            if root >= len(supports) or supports[root] < least or largest < 2:
                done = True
                break
            extra = len(local_pairs)
            if filled + root + extra > room or (
                named and placed + 2 * root + 3 * extra > room_for_items
            ):
                break
            begin, end = heads[root], heads[root + 1]
            found = 0
            first = root * (root - 1) // 2
            if first + root <= len(pairs):
                for item in range(root):
                    if pairs[first + item] >= least:
                        survivors[found] = item
                        local_counts[found] = pairs[first + item]
                        found += 1
            else:
                for at in range(begin, end):
                    row = rows[at]
                    weight = weights[row] if weighted else 1
                    start = starts[row]
                    if owned:
                        owner = owners[row]
                        for place in range(start, start + places[at]):
                            item = items[place]
                            if stamps[item] != owner:
                                stamps[item] = owner
                                counts[item] += weight
                    else:
                        for place in range(start, start + places[at]):
                            counts[items[place]] += weight
                for item in range(root):
                    if counts[item] >= least:
                        survivors[found] = item
                        local_counts[found] = counts[item]
                        found += 1
                counts[:root] = 0
                if owned:
                    stamps[:root] = -1
            if smallest <= 2:
                for number in range(found):
                    count = local_counts[number]
                    if rising:
                        if count >= least:
                            least = count + 1
                    elif count <= most:
                        if named:
                            out_items[placed] = root
                            out_items[placed + 1] = survivors[number]
                            placed += 2
                            out_sizes[filled] = 2
                        out_supports[filled] = count
                        filled += 1
            if largest > 2 and found >= 2 and found + 1 >= smallest:
                for number in range(found):
                    numbers[survivors[number]] = number
                count = 0
                size = 0
                work = 0
                for at in range(begin, end):
                    row = rows[at]
                    start = starts[row]
                    first = size
                    for place in range(start, start + places[at]):
                        number = numbers[items[place]]
                        local_items[size] = number
                        size += number >= 0  # faster than a branch that cannot be foreseen
                    if size - first < 2 or size - first + 1 < smallest:
                        size = first
                        continue
                    local_starts[count] = first
                    if owned:
                        local_owners[count] = owners[row]
                    if weighted:
                        local_weights[count] = weights[row]
                    count += 1
                    work += (size - first) * (size - first - 1) // 2
                local_starts[count] = size
                for number in range(found):
                    numbers[survivors[number]] = -1
                    bucket_lengths[number] = 0
                space = found * (found - 1) // 2
                if largest == 3 and not owned and space <= 4 * work and space <= len(local_pairs):
                    words = (count + 63) // 64
                    if space * words < work and not weighted:
                        _pairs_by_bits(
                            local_starts,
                            local_items,
                            count,
                            found,
                            bits[: found * words],
                            local_pairs,
                        )
                    else:
                        _pairs_by_rows(
                            local_starts, local_items, local_weights, count, local_pairs[:space]
                        )
                    at = 0
                    for number in range(1, found):
                        for item in range(number):
                            count = local_pairs[at]
                            at += 1
                            if count >= least:
                                if rising:
                                    least = count + 1
                                elif count <= most:
                                    if named:
                                        out_items[placed] = root
                                        out_items[placed + 1] = survivors[number]
                                        out_items[placed + 2] = survivors[item]
                                        placed += 3
                                        out_sizes[filled] = 3
                                    out_supports[filled] = count
                                    filled += 1
                    root += 1
                    continue
                for place in range(size):
                    bucket_lengths[local_items[place]] += 1
                bucket_heads[0] = 0
                for number in range(found):
                    bucket_heads[number + 1] = bucket_heads[number] + bucket_lengths[number]
                    bucket_lengths[number] = 0
                for row in range(count):
                    start = local_starts[row]
                    for place in range(start, local_starts[row + 1]):
                        number = local_items[place]
                        to = bucket_heads[number] + bucket_lengths[number]
                        bucket_rows[to] = row
                        bucket_places[to] = place - start
                        bucket_lengths[number] += 1
                depth = 1
                path[0] = root
                cursors[1] = 1
                bounds[1] = found
            root += 1
            continue
        here = cursors[depth]
        bound = bounds[depth]
        while here < bound and local_counts[here] < least:
            here += 1
        if here >= bound:
            depth -= 1
            continue
        if filled + here > room or (named and placed + (depth + 2) * here > room_for_items):
            cursors[depth] = here
            break
        cursors[depth] = here + 1
        path[depth] = here
        size = depth + 2  # of the sets with one more item
        local_counts[:here] = 0
        if owned:
            local_stamps[:here] = -1
        begin = bucket_heads[here]
        end = begin + bucket_lengths[here]
        for at in range(begin, end):
            row = bucket_rows[at]
            weight = local_weights[row] if weighted else 1
            start = local_starts[row]
            if owned:
                owner = local_owners[row]
                for place in range(start, start + bucket_places[at]):
                    item = local_items[place]
                    if local_stamps[item] != owner:
                        local_stamps[item] = owner
                        local_counts[item] += weight
            else:
                for place in range(start, start + bucket_places[at]):
                    local_counts[local_items[place]] += weight
        found = 0
        for item in range(here):
            count = local_counts[item]
            if count >= least:
                found += 1
                if size >= smallest:
                    if rising:
                        least = count + 1
                    elif count <= most:
                        if named:
                            out_items[placed] = root - 1
                            for level in range(1, depth + 1):
                                out_items[placed + level] = survivors[path[level]]
                            out_items[placed + depth + 1] = survivors[item]
                            placed += size
                            out_sizes[filled] = size
                        out_supports[filled] = count
                        filled += 1
        if size < largest and found >= 2:
            for item in range(here):
                bucket_lengths[item] = 0
            for at in range(begin, end):
                row = bucket_rows[at]
                start = local_starts[row]
                for place in range(start, start + bucket_places[at]):
                    item = local_items[place]
                    if local_counts[item] >= least:
                        to = bucket_heads[item] + bucket_lengths[item]
                        bucket_rows[to] = row
                        bucket_places[to] = place - start
                        bucket_lengths[item] += 1
            depth += 1
            cursors[depth] = 1
            bounds[depth] = here
    state[LEAST] = least
    state[SETS], state[PLACES] = filled, placed
    state[DEPTH] = depth
    state[ROOT] = root
    return done
