"""The walk of `numpy_walk.py`, compiled.

It needs numba, so only `window.py` imports it, and only where numba is installed.

The walk can stop when its buffers are full and go on later: all it knows is in arrays that
outlive a call, and those are in one `Walk`.

Proof:      docs/proofs/miner.md
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privmax.itemsets.baskets import Baskets
from privmax.itemsets.miner.compiled_state import (
    Buckets,
    FoundSets,
    ItemTally,
    Local,
    Trail,
    Walk,
    WalkLimits,
)
from privmax.itemsets.miner.ranks import (
    Block,
    Codes,
    Ints,
    RankedRows,
    individuals,
    keep_highest,
    refuse_work,
)
from privmax.kernels import count_ones, entry, part, step

BUFFER = 1 << 17
"""The least number of itemsets that the walk hands over at a time."""

PART = 1 << 16
"""Pairs of items in the rows of a third are counted together where there are at most so many, for
triples.
"""

DEEP = 1 << 16
"""Below a root sets of rows are held as bits only where all depths together take at most so many
words, and have at most so many candidates.
"""

SPARSE = 8
"""And only where each item is in one of so many of the rows, on average, or more: then to go
through rows takes longer.
"""

UNBOUNDED = (1 << 63) - 1
NONE = np.empty(0, np.int64)

ROOT, DEPTH, LEAST, SETS, PLACES, BITS = range(6)
"""The state of the walk: the next root, the number of items added to the present one, the least
support that counts, how much of the buffers is filled, and whether rows are held as bits below the
root.
"""


def count_supports(baskets: Baskets) -> Ints:
    """As in `numpy_walk.py`."""
    owners = NONE if baskets.owners is None else baskets.owners
    weights = NONE if baskets.weights is None else baskets.weights
    counts = np.zeros(baskets.items, np.int64)
    _count_supports(baskets.offsets, baskets.codes, owners, weights, counts)
    return counts


def rank_rows(baskets: Baskets, codes: Codes, supports: Ints, shortest: int) -> RankedRows:
    """As in `numpy_walk.py`."""
    ranks = _ranks(baskets, codes)
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
    _transpose(starts, items, heads, rows, places)
    return RankedRows(
        codes, supports, starts, items.copy(), heads, rows, places, *individuals(baskets, origin)
    )


def count_pairs(baskets: Baskets, codes: Codes) -> Ints:
    """As in `numpy_walk.py`."""
    ranks = _ranks(baskets, codes)
    space = len(codes) * (len(codes) - 1) // 2
    if baskets.weights is not None:
        counts = np.zeros(space, np.int64)
        _count_pairs(baskets.offsets, baskets.codes, ranks, len(codes), baskets.weights, counts)
        return counts
    small = np.zeros(space, np.int32)  # half as large, so more of it stays near the processor
    _count_pairs(baskets.offsets, baskets.codes, ranks, len(codes), NONE, small)
    return small.astype(np.int64)


def walk(
    table: RankedRows, pairs: Ints, sizes: range, least: int, most: int, *, named: bool
) -> Iterator[Block]:
    """As in `numpy_walk.py`. Where the sets are not to be named they are empty."""
    state = _begin(table, pairs, sizes, least, most, named=named)
    done = False
    while not done:
        done = bool(_walk(state))
        yield from _empty(state)


def find_best(table: RankedRows, pairs: Ints, size: int, least: int) -> int:
    """As in `numpy_walk.py`."""
    sizes = range(size, size + 1)
    state = _begin(table, pairs, sizes, least, UNBOUNDED, named=False, rising=True)
    _walk(state)
    return int(state.state[LEAST]) - 1


def find_highest(
    table: RankedRows, pairs: Ints, sizes: range, least: int, known: Ints, number: int
) -> Ints:
    """As in `numpy_walk.py`."""
    walk = _begin(table, pairs, sizes, least, UNBOUNDED, named=False, buffer=number)
    listed, done = 0, False
    while not done:
        done = bool(_walk(walk))
        for _, counts in _empty(walk):
            known = keep_highest(np.concatenate([known, counts]), number)
            listed = refuse_work(listed + len(counts))
        if len(known) == number:
            walk.state[LEAST] = max(int(walk.state[LEAST]), int(known.min()) + 1)
    return known


def _ranks(baskets: Baskets, codes: Codes) -> Codes:
    """Return the rank of every code, or −1."""
    ranks = np.full(baskets.items, -1, np.int32)
    ranks[codes] = np.arange(len(codes), dtype=np.int32)
    return ranks


def _begin(
    table: RankedRows,
    pairs: Ints,
    sizes: range,
    least: int,
    most: int,
    *,
    named: bool,
    rising: bool = False,
    buffer: int | None = None,
) -> Walk:
    """Return a walk that has not taken a step."""
    buffer = BUFFER if buffer is None else buffer
    width = len(table.codes)
    largest = min(sizes.stop - 1, table.longest)
    # The part of the rows that comes before one item is at most all of them; what is not used
    # takes no memory.
    places = len(table.items) if largest > 2 else 0
    rows = len(table.starts) if largest > 2 else 0
    stamps = np.full(width if len(table.owners) else 0, -1, np.int64)
    local = Local(
        ranks=np.empty(width, np.int32),
        numbers=np.full(width, -1, np.int32),
        starts=np.empty(rows, np.int64),
        items=np.empty(places, np.int32),
        owners=np.empty(rows if len(table.owners) else 0, np.int64),
        weights=np.empty(rows if len(table.weights) else 0, np.int64),
        pairs=np.empty(PART if largest == 3 else 0, np.int64),
        bits=np.empty(places + width if largest > 2 else 0, np.uint64),
    )
    buckets = Buckets(
        heads=np.empty(width + 1, np.int64),
        lengths=np.empty(width, np.int64),
        rows=np.empty(places, np.int32),
        places=np.empty(places, np.int32),
    )
    depths = largest + 2
    deep = DEEP if largest > 2 else 0
    trail = Trail(
        np.empty(depths, np.int32),
        np.zeros(depths, np.int64),
        np.zeros(depths, np.int64),
        np.empty(deep, np.int32),
        np.empty(deep, np.uint64),
    )
    # The walk goes on only where the next step surely fits, so the smallest buffer must have room
    # for any one step.
    room = width + len(local.pairs)
    results = FoundSets(
        supports=np.empty(buffer + room, np.int64),
        sizes=np.empty(buffer + room if named else 0, np.int32),
        items=np.empty(4 * buffer + max(largest, 3) * room if named else 0, np.int32),
    )
    return Walk(
        table=table,
        pairs=pairs,
        limits=WalkLimits(sizes.start, largest, most, named, rising),
        state=np.array([0, 0, least, 0, 0, 0], np.int64),
        wide=ItemTally(np.zeros(width, np.int64), stamps),
        tally=ItemTally(np.zeros(width, np.int64), stamps.copy()),
        local=local,
        buckets=buckets,
        trail=trail,
        results=results,
    )


def _empty(walk: Walk) -> Iterator[Block]:
    """Yield what the buffers hold; they are free again when all of it was taken."""
    count, filled = int(walk.state[SETS]), int(walk.state[PLACES])
    supports = walk.results.supports[:count].copy()
    walk.state[SETS] = walk.state[PLACES] = 0
    if not walk.limits.named:
        yield np.empty((count, 0), np.int32), supports
        return
    sizes = walk.results.sizes[:count].astype(np.int64)
    begins = np.cumsum(sizes) - sizes
    items = walk.results.items[:filled]
    for size in np.unique(sizes).tolist():
        chosen = np.flatnonzero(sizes == size)
        yield items[begins[chosen][:, None] + np.arange(size)], supports[chosen]


@entry
def _count_supports(offsets: Ints, codes: Codes, owners: Ints, weights: Ints, counts: Ints) -> None:
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


@entry
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
    """Write rows of ranks in the order of their codes, and return their number and total length.

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


@entry
def _transpose(starts: Ints, items: Codes, heads: Ints, rows: Codes, places: Codes) -> None:
    """Turn rows of ranks into ranks of rows, and those back into rows, which then ascend."""
    for rank in range(len(heads) - 1):
        heads[rank + 1] += heads[rank]
    fill = heads[:-1].copy()
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            rank = items[at]
            rows[fill[rank]] = row
            fill[rank] += 1
    filled = np.zeros(len(starts), np.int32)
    for rank in range(len(heads) - 1):
        for at in range(heads[rank], heads[rank + 1]):
            row = rows[at]
            place = filled[row]
            items[starts[row] + place] = rank
            places[at] = place
            filled[row] = place + 1


@entry
def _count_pairs(
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


@entry
def _walk(walk: Walk) -> bool:
    """Walk depth first over all itemsets of support `least` or more.

    Returns False when the buffers are full before the end.

    A root is the rarest item of the sets below it. The rows that hold it, cut to the more frequent
    items that are frequent together with it, are copied: the local rows. Below, an item x that may
    be added to the set under way has a bucket: the local rows that hold the set and x. Items are
    taken in ascending order, and below item x only buckets and counts of items under x are written,
    whose turn is over: so one bucket and one count for each item are enough at any depth.
    """
    state, supports = walk.state, walk.table.supports
    while True:  # ends: each round goes to the next root
        if not (_walk_bits(walk) if state[BITS] else _walk_below(walk)):
            return False
        root = state[ROOT]
        if root >= len(supports) or supports[root] < state[LEAST] or walk.limits.largest < 2:
            return True
        extra = len(walk.local.pairs)
        if not _fits(walk.results, walk.limits, state, root + extra, 2 * root + 3 * extra):
            return False
        _visit_root(walk, root)
        state[ROOT] = root + 1


@part
def _fits(results: FoundSets, limits: WalkLimits, state: Ints, sets: int, places: int) -> bool:
    """Return whether the buffers have room for so many sets, of so many items together."""
    if state[SETS] + sets > len(results.supports):
        return False
    return not limits.named or state[PLACES] + places <= len(results.items)


@step
def _visit_root(walk: Walk, root: int) -> None:
    """List the pairs of a root, and prepare the walk below it or list its triples."""
    limits, table, local, state = walk.limits, walk.table, walk.local, walk.state
    names = walk.trail.ranks, local.ranks
    walk.trail.ranks[0] = root
    companions = _find_companions(walk, root)
    if limits.smallest <= 2:
        _list(walk.results, limits, state, names, walk.tally.counts[:companions], 2)
    if limits.largest <= 2 or companions < 2 or companions + 1 < limits.smallest:
        return
    count, work = _cut_rows(table, local, root, companions, limits.smallest)
    space = companions * (companions - 1) // 2
    direct = limits.largest == 3 and space <= 4 * work and space <= len(local.pairs)
    if direct and not len(table.owners):
        if space * ((count + 63) // 64) < work and not len(table.weights):
            _pairs_by_bits(local, count, companions)
        else:
            _pairs_by_rows(local, count, space)
        for item in range(1, companions):
            walk.trail.ranks[1] = local.ranks[item]
            first = item * (item - 1) // 2
            _list(walk.results, limits, state, names, local.pairs[first : first + item], 3)
        return
    state[DEPTH] = 1
    walk.trail.cursors[1] = 1
    walk.trail.bounds[1] = companions
    deepest = min(limits.largest, companions + 1)
    words = (count + 63) // 64
    state[BITS] = (
        not len(table.owners)
        and not len(table.weights)
        and SPARSE * local.starts[count] >= count * companions
        and deepest * max(words, companions) <= len(walk.trail.held)
    )
    if state[BITS]:
        _fill_bits(local, count, companions)
        for item in range(companions):
            walk.trail.candidates[companions + item] = item
        walk.trail.bounds[0], walk.trail.cursors[0] = companions, words
        return
    _fill_buckets(local, walk.buckets, count, companions)


@step
def _find_companions(walk: Walk, root: int) -> int:
    """Find the items that are frequent together with a root; return how many they are."""
    pairs, least = walk.pairs, walk.state[LEAST]
    ranks, counts = walk.local.ranks, walk.tally.counts
    number = 0
    first = root * (root - 1) // 2
    if first + root <= len(pairs):
        for item in range(root):
            if pairs[first + item] >= least:
                ranks[number] = item
                counts[number] = pairs[first + item]
                number += 1
        return number
    table, wide = walk.table, walk.wide.counts
    begin, end = table.heads[root], table.heads[root + 1]
    _count_before(table, table, begin, end, walk.wide)
    for item in range(root):
        if wide[item] >= least:
            ranks[number] = item
            counts[number] = wide[item]
            number += 1
    wide[:root] = 0
    if len(table.owners):
        walk.wide.stamps[:root] = -1
    return number


@part
def _count_before(
    table: RankedRows | Local, holders: RankedRows | Buckets, begin: int, end: int, tally: ItemTally
) -> None:
    """Count the items of some rows of a table that come before a place.

    The rows are holders.rows[begin:end], each before its place.
    """
    starts, items, owners, weights = table.starts, table.items, table.owners, table.weights
    rows, places, counts, stamps = holders.rows, holders.places, tally.counts, tally.stamps
    owned, weighted = len(owners) > 0, len(weights) > 0
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


@part
def _list(
    results: FoundSets,
    limits: WalkLimits,
    state: Ints,
    names: tuple[Codes, Codes],
    counts: Ints,
    size: int,
) -> int:
    """List the sets that add one of the first items to the current set.

    Returns how many are frequent.

    counts[x] is the support with item x. `names` holds the ranks of the set under way, and those
    of the items.
    """
    added, ranks = names
    least, filled, placed = state[LEAST], state[SETS], state[PLACES]
    number = 0
    for item in range(len(counts)):
        count = counts[item]
        if count < least:
            continue
        number += 1
        if size < limits.smallest:
            continue
        if limits.rising:
            least = count + 1
        elif count <= limits.most:
            if limits.named:
                for level in range(size - 1):
                    results.items[placed + level] = added[level]
                results.items[placed + size - 1] = ranks[item]
                placed += size
                results.sizes[filled] = size
            results.supports[filled] = count
            filled += 1
    state[LEAST], state[SETS], state[PLACES] = least, filled, placed
    return number


@step
def _cut_rows(
    table: RankedRows, local: Local, root: int, companions: int, smallest: int
) -> tuple[int, int]:
    """Make the local rows of a root; how many there are, and how many pairs they hold together."""
    starts, items, numbers = table.starts, table.items, local.numbers
    local_starts, local_items = local.starts, local.items
    owned, weighted = len(table.owners) > 0, len(table.weights) > 0
    for number in range(companions):
        numbers[local.ranks[number]] = number
    count = 0
    size = 0
    work = 0
    for at in range(table.heads[root], table.heads[root + 1]):
        row = table.rows[at]
        start = starts[row]
        first = size
        for place in range(start, start + table.places[at]):
            number = numbers[items[place]]
            local_items[size] = number
            size += number >= 0  # faster than a branch that cannot be foreseen
        if size - first < 2 or size - first + 1 < smallest:
            size = first
            continue
        local_starts[count] = first
        if owned:
            local.owners[count] = table.owners[row]
        if weighted:
            local.weights[count] = table.weights[row]
        count += 1
        work += (size - first) * (size - first - 1) // 2
    local_starts[count] = size
    for number in range(companions):
        numbers[local.ranks[number]] = -1
    return count, work


@step
def _pairs_by_rows(local: Local, rows: int, space: int) -> None:
    """The supports of all pairs in the first local rows, which ascend; there are `space` pairs."""
    starts, items, weights, counts = local.starts, local.items, local.weights, local.pairs
    counts[:space] = 0
    weighted = len(weights) > 0
    for row in range(rows):
        weight = weights[row] if weighted else 1
        start = starts[row]
        for place in range(start + 1, starts[row + 1]):
            item = items[place] + 0  # of 64 bits, so that its square fits
            first = item * (item - 1) // 2
            for other in range(start, place):
                counts[first + items[other]] += weight


@step
def _pairs_by_bits(local: Local, rows: int, width: int) -> None:
    """Count pairs by intersecting the sets of rows of all items.

    It is for items that are in many rows. All weights are one.

    `local.bits` must have a place for every item and 64 rows. It is called only where pairs × words
    < the pairs in the rows: then items × words is less than the length of all rows together.
    """
    counts, words = local.pairs, (rows + 63) // 64
    _fill_bits(local, rows, width)
    bits = local.bits
    at = 0
    for high in range(1, width):
        here = bits[high * words : (high + 1) * words]
        for low in range(high):
            there = bits[low * words : (low + 1) * words]
            count = 0
            for word in range(words):
                count += count_ones(here[word] & there[word])
            counts[at] = count
            at += 1


@step
def _fill_bits(local: Local, rows: int, width: int) -> None:
    """The set of rows of every local item, a bit for each row."""
    starts, items = local.starts, local.items
    words = (rows + 63) // 64
    bits = local.bits[: width * words]
    bits[:] = 0
    one = np.uint64(1)
    for row in range(rows):
        mask = one << np.uint64(row & 63)
        word = row >> 6
        for place in range(starts[row], starts[row + 1]):
            bits[items[place] * words + word] |= mask


@step
def _fill_buckets(local: Local, buckets: Buckets, rows: int, companions: int) -> None:
    """The bucket of every local item: the local rows that hold it."""
    starts, items = local.starts, local.items
    heads, lengths = buckets.heads, buckets.lengths
    lengths[:companions] = 0
    for place in range(starts[rows]):
        lengths[items[place]] += 1
    heads[0] = 0
    for number in range(companions):
        heads[number + 1] = heads[number] + lengths[number]
        lengths[number] = 0
    for row in range(rows):
        start = starts[row]
        for place in range(start, starts[row + 1]):
            number = items[place]
            to = heads[number] + lengths[number]
            buckets.rows[to] = row
            buckets.places[to] = place - start
            lengths[number] += 1


@step
def _walk_below(walk: Walk) -> bool:
    """List all sets below a root that have three items or more.

    Returns False where the buffers are full before the end.
    """
    state, counts, stamps = walk.state, walk.tally.counts, walk.tally.stamps
    local, buckets, trail = walk.local, walk.buckets, walk.trail
    owned, largest = len(local.owners) > 0, walk.limits.largest
    names = trail.ranks, local.ranks
    depth = state[DEPTH]
    while depth:
        here, bound, least = trail.cursors[depth], trail.bounds[depth], state[LEAST]
        while here < bound and counts[here] < least:
            here += 1
        if here >= bound:
            depth -= 1
            continue
        trail.cursors[depth] = here
        size = depth + 2  # of the sets with one more item
        if not _fits(walk.results, walk.limits, state, here, size * here):
            state[DEPTH] = depth
            return False
        trail.cursors[depth] = here + 1
        trail.ranks[depth] = local.ranks[here]
        counts[:here] = 0
        if owned:
            stamps[:here] = -1
        begin = buckets.heads[here]
        _count_before(local, buckets, begin, begin + buckets.lengths[here], walk.tally)
        listed = _list(walk.results, walk.limits, state, names, counts[:here], size)
        if size < largest and listed >= 2:
            _narrow_buckets(local, buckets, counts, state[LEAST], here)
            depth += 1
            trail.cursors[depth] = 1
            trail.bounds[depth] = here
    state[DEPTH] = 0
    return True


@step
def _walk_bits(walk: Walk) -> bool:
    """List the sets of `_walk_below` where items are in many of the local rows.

    At each depth there are the rows that hold the set under way, as bits, and the items that are
    frequent with it: the candidates, of which one is added at a time.
    """
    state, counts, trail = walk.state, walk.tally.counts, walk.trail
    bits, held, candidates = walk.local.bits, trail.held, trail.candidates
    width, words, largest = trail.bounds[0], trail.cursors[0], walk.limits.largest
    names = trail.ranks, walk.local.ranks
    depth = state[DEPTH]
    while depth:
        place = trail.cursors[depth]
        if place >= trail.bounds[depth]:
            depth -= 1
            continue
        here = candidates[depth * width + place]
        size = depth + 2  # of the sets with one more item
        if not _fits(walk.results, walk.limits, state, here, size * here):
            state[DEPTH] = depth
            return False
        trail.cursors[depth] = place + 1
        trail.ranks[depth] = walk.local.ranks[here]
        rows = held[(depth - 1) * words : depth * words]
        support = 0
        for word in range(words):
            rows[word] = bits[here * words + word]
            if depth > 1:
                rows[word] &= held[(depth - 2) * words + word]
            support += count_ones(rows[word])
        if support < state[LEAST]:
            continue  # it has risen since the item became a candidate
        counts[:here] = 0
        for at in range(place):
            item = candidates[depth * width + at]
            count = 0
            for word in range(words):
                count += count_ones(rows[word] & bits[item * words + word])
            counts[item] = count
        listed = _list(walk.results, walk.limits, state, names, counts[:here], size)
        if size < largest and listed >= 2:
            number = 0
            for at in range(place):
                item = candidates[depth * width + at]
                if counts[item] >= state[LEAST]:
                    candidates[(depth + 1) * width + number] = item
                    number += 1
            depth += 1
            trail.cursors[depth] = 1
            trail.bounds[depth] = number
    state[DEPTH] = 0
    return True


@part
def _narrow_buckets(local: Local, buckets: Buckets, counts: Ints, least: int, here: int) -> None:
    """Make the buckets below an item that was added.

    Of the frequent items before it, they have the rows in its bucket that hold them.
    """
    starts, items = local.starts, local.items
    heads, lengths, rows, places = buckets
    lengths[:here] = 0
    begin = heads[here]
    for at in range(begin, begin + lengths[here]):
        row = rows[at]
        start = starts[row]
        for place in range(start, start + places[at]):
            item = items[place]
            if counts[item] >= least:
                to = heads[item] + lengths[item]
                rows[to] = row
                places[to] = place - start
                lengths[item] += 1
