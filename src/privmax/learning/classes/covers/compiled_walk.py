"""What `covers.walk` does, compiled. Needs numba, so only `covers.py` imports it, and only where
numba is installed.

Rows are kept as words of bits, one bit a column, and are thinned out from node to node. Their
columns, needed to count, come from turning 64 × 64 bits over; eight such squares at a time, which
fill the widest registers there are.

Proof:      docs/proofs/conjunctions.md
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

LANES = 8
"""Words of a column that are made together. Columns are padded with zeros to a multiple of this."""

GROUP = 64 * LANES
"""Rows turned over together."""

MOST = 2048
"""Where so many columns matter, the last three tests are not counted in one go: it takes a table of
all pairs.
"""


def counts(rows: Words) -> Ints:
    """As in `covers.py`."""
    total = np.zeros(64 * rows.shape[1], np.int64)
    _counted(rows.ravel(), 0, len(rows), rows.shape[1], np.empty(GROUP, np.uint64), total)
    return total


def walk(
    positives: Words, negatives: Words, column: int, below: int, literals: int, floor: int, span: int,
    after: Ints, sizes: Ints, tally: Ints, stop: Flags,
) -> None:  # fmt: skip
    """As in `covers.py`."""
    _walk(
        positives.ravel(), negatives.ravel(), positives.shape[1], column, 1 - below, literals, floor, span,
        after, sizes, tally, stop, MOST,
    )  # fmt: skip


def _compiled(function: Any) -> Any:
    """Compiled once and kept beside this file."""
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)


def _population(context: Any, word: Any) -> Any:
    """How many bits of a word of 64 are set: the processor's own instruction."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return numba.int64(numba.uint64), code


_ones: Any = intrinsic(_population)


@_compiled
def _common(first: Words, second: Words) -> int:
    """How many bits two sets have in common."""
    total = 0
    for at in range(len(first)):
        total += _ones(first[at] & second[at])
    return total


@_compiled
def _meet(first: Words, second: Words, out: Words) -> None:
    for at in range(len(first)):
        out[at] = first[at] & second[at]


@_compiled
def _exchange(high: Words, low: Words, step: Any, mask: Any) -> None:
    """Exchange the bits outside the mask of one half with those inside the mask of the other."""
    for at in range(len(high)):
        moved = ((high[at] >> step) ^ low[at]) & mask
        low[at] ^= moved
        high[at] ^= moved << step


@_compiled
def _turn(block: Words) -> None:
    """Turn LANES squares of 64 × 64 bits over: word i of square l is block[LANES·i + l]."""
    step = 32
    mask = np.uint64(0xFFFFFFFF)
    while step:
        half = LANES * step
        for base in range(0, GROUP, 2 * half):
            _exchange(
                block[base : base + half],
                block[base + half : base + 2 * half],
                np.uint64(step),
                mask,
            )
        step >>= 1
        mask ^= mask << np.uint64(step)


@_compiled
def _load(
    rows: Words, at: int, count: int, width: int, group: int, word: int, block: Words
) -> None:
    """One word of the rows of a group, as columns; rows that are not there are 0."""
    first = at + GROUP * group * width + word
    there = min(GROUP, count - GROUP * group)
    if there < GROUP:
        block[:] = 0
    for lane in range((there + 63) // 64):
        for bit in range(min(64, there - 64 * lane)):
            block[LANES * bit + lane] = rows[first + (64 * lane + bit) * width]
    _turn(block)


@_compiled
def _counted(rows: Words, at: int, count: int, width: int, block: Words, counts: Ints) -> None:
    """Add to counts[c] the rows that have bit c."""
    for group in range((count + GROUP - 1) // GROUP):
        for word in range(width):
            _load(rows, at, count, width, group, word, block)
            for bit in range(64):
                part = block[LANES * bit : LANES * (bit + 1)]
                counts[64 * word + bit] += _common(part, part)


@_compiled
def _turned(
    rows: Words, at: int, count: int, width: int, block: Words, counts: Ints, bits: Words
) -> None:
    """The same, and the columns as sets of rows: column c fills `length` words from bits[c ·
    length] on.
    """
    length = LANES * ((count + GROUP - 1) // GROUP)
    for group in range((count + GROUP - 1) // GROUP):
        for word in range(width):
            _load(rows, at, count, width, group, word, block)
            for bit in range(64):
                to = (64 * word + bit) * length + LANES * group
                total = 0
                for lane in range(LANES):
                    bits[to + lane] = block[LANES * bit + lane]
                    total += _ones(block[LANES * bit + lane])
                counts[64 * word + bit] += total


@_compiled
def _covered(rows: Words, width: int, column: int, want: int) -> int:
    """How many rows pass a test."""
    total = 0
    for row in range(len(rows) // width):
        total += (rows[row * width + (column >> 6)] >> np.uint64(column & 63)) & np.uint64(
            1
        ) == np.uint64(want)
    return total


@_compiled
def _select(
    rows: Words,
    at: int,
    count: int,
    width: int,
    column: int,
    want: int,
    skip: int,
    out: Words,
    to: int,
) -> None:
    """The rows that pass a test, without their first words. One row more than there are must
    fit.
    """
    left = width - skip
    word = column >> 6
    shift = np.uint64(column & 63)
    fails = np.uint64(1 - want)
    if width == 1:  # the same, without an inner loop
        for row in rows[at : at + count]:
            out[to] = row
            to += int(((row >> shift) & np.uint64(1)) ^ fails)
        return
    for row in range(count):
        begin = at + row * width
        for place in range(left):
            out[to + place] = rows[begin + skip + place]
        to += left * int(((rows[begin + word] >> shift) & np.uint64(1)) ^ fails)


@_compiled
def _refuted(
    rows: Words, at: int, count: int, width: int, column: int, want: int, skip: int,
    block: Words, buffer: Words, chosen: Ints, positives: int, kept: Ints, counts: Ints, floor: int,
) -> bool:  # fmt: skip
    """Count negatives only until no child can be above the floor any more, and then say True."""
    left = width - skip
    filled = 0
    seen = 0
    for row in range(count):
        begin = at + row * width
        for word in range(left):
            buffer[filled * left + word] = rows[begin + skip + word]
        filled += (rows[begin + (column >> 6)] >> np.uint64(column & 63)) & np.uint64(
            1
        ) == np.uint64(want)
        if filled == GROUP or (row == count - 1 and filled):
            _counted(buffer, 0, filled, left, block, counts)
            seen += filled
            filled = 0
            refuted = True
            for child in chosen:
                above = kept[child] - counts[child] > floor
                if above or positives - kept[child] - (seen - counts[child]) > floor:
                    refuted = False
                    break
            if refuted:
                return True
    return False


@_compiled
def _room(held: Words, size: int) -> Words:
    """The same words, with room for so many."""
    if len(held) >= size:
        return held
    larger = np.empty(max(size, 2 * len(held)), np.uint64)
    larger[: len(held)] = held
    return larger


@_compiled
def _tell(difference: int, times: int, floor: int, base: int, span: int, tally: Ints) -> int:
    """Count some hypotheses if they are above the floor, which rises to `span` below them."""
    if difference > floor:
        tally[difference - base - 1] += times
        if difference - span > floor:
            return difference - span
    return floor


@_compiled
def _ahead(
    chosen: Ints,
    after: Ints,
    positives: int,
    kept: Ints,
    bits: Words,
    length: int,
    base: int,
    floor: int,
    go: Flags,
) -> bool:
    """Mark the children that have a child of their own above the floor by positives alone. Is there
    one?
    """
    some = False
    for a in range(len(chosen)):
        i = chosen[a]
        least = not kept[i] > floor  # nothing left to find out
        most = not positives - kept[i] > floor
        go[2 * i] = go[2 * i + 1] = False
        mine = bits[(i - base) * length : (i - base + 1) * length]
        for b in range(a + 1, len(chosen)):
            if least and most:
                break
            j = chosen[b]
            if j < after[i]:
                continue
            both = _common(mine, bits[(j - base) * length : (j - base + 1) * length])
            if not least and (both > floor or kept[i] - both > floor):
                go[2 * i] = least = some = True
            if not most and (
                kept[j] - both > floor or positives - kept[i] - kept[j] + both > floor
            ):
                go[2 * i + 1] = most = some = True
    return some


@_compiled
def _few(
    literals: int, chosen: Ints, after: Ints, go: Flags, positives: int, negatives: int, kept: Ints, left: Ints,
    yes: Words, yes_length: int, no: Words, no_length: int, base: int, floor: int, start: int, span: int, tally: Ints,
) -> int:  # fmt: skip
    """The pairs and, if `literals` is 3, triples below a node. A complement is counted by
    subtraction.
    """
    count = len(chosen)
    triples = literals == 3
    both_yes = np.empty((count, count) if triples else (1, 1), np.int64)
    both = np.empty((count, count) if triples else (1, 1), np.int64)
    alive = np.zeros((count, count) if triples else (1, 1), np.bool_)
    opened = np.zeros((count, count) if triples else (1, 1), np.bool_)
    removed = np.zeros(
        count + 1, np.int64
    )  # the most negatives that a test at this place or later removes
    for a in range(count - 1, -1, -1):
        i = chosen[a]
        removed[a] = removed[a + 1]
        if kept[i] > floor:
            removed[a] = max(removed[a], negatives - left[i])
        if positives - kept[i] > floor:
            removed[a] = max(removed[a], left[i])
    for a in range(count):
        i = chosen[a]
        if not (go[2 * i] or go[2 * i + 1]):
            continue
        mine_yes = yes[(i - base) * yes_length : (i - base + 1) * yes_length]
        mine_no = no[(i - base) * no_length : (i - base + 1) * no_length]
        for b in range(a + 1, count):
            j = chosen[b]
            if j < after[i]:
                continue
            p3 = _common(mine_yes, yes[(j - base) * yes_length : (j - base + 1) * yes_length])
            p2 = kept[i] - p3
            p1 = kept[j] - p3
            p0 = positives - kept[i] - p1
            if not (p3 > floor or p2 > floor or p1 > floor or p0 > floor):
                continue
            n3 = _common(mine_no, no[(j - base) * no_length : (j - base + 1) * no_length])
            n2 = left[i] - n3
            n1 = left[j] - n3
            n0 = negatives - left[i] - n1
            if triples:
                both_yes[a, b] = p3
                both[a, b] = p3 - n3
                alive[a, b] = True
                most = removed[b + 1]
                opened[a, b] = (
                    p3 - max(0, n3 - most) > floor
                    or p2 - max(0, n2 - most) > floor
                    or p1 - max(0, n1 - most) > floor
                    or p0 - max(0, n0 - most) > floor
                )
            floor = _tell(p3 - n3, 1, floor, start, span, tally)
            floor = _tell(p2 - n2, 1, floor, start, span, tally)
            floor = _tell(p1 - n1, 1, floor, start, span, tally)
            floor = _tell(p0 - n0, 1, floor, start, span, tally)
    if not triples:
        return floor
    pair_yes = np.empty(yes_length, np.uint64)
    pair_no = np.empty(no_length, np.uint64)
    every = positives - negatives
    for a in range(count):
        i = chosen[a]
        mine_yes = yes[(i - base) * yes_length : (i - base + 1) * yes_length]
        mine_no = no[(i - base) * no_length : (i - base + 1) * no_length]
        di = kept[i] - left[i]
        for b in range(a + 1, count):
            if not opened[a, b]:
                continue
            j = chosen[b]
            _meet(mine_yes, yes[(j - base) * yes_length : (j - base + 1) * yes_length], pair_yes)
            _meet(mine_no, no[(j - base) * no_length : (j - base + 1) * no_length], pair_no)
            pij = both_yes[a, b]
            pji = positives - kept[i] - kept[j] + pij
            dj = kept[j] - left[j]
            dij = both[a, b]
            for c in range(b + 1, count):
                # A pair of columns that was not counted covers too few positives with any signs (or
                # has no room).
                if not (alive[a, c] and alive[b, c]):
                    continue
                k = chosen[c]
                p = _common(pair_yes, yes[(k - base) * yes_length : (k - base + 1) * yes_length])
                pik = both_yes[a, c]
                pjk = both_yes[b, c]
                if not (
                    p > floor
                    or pij - p > floor
                    or pik - p > floor
                    or pjk - p > floor
                    or kept[i] - pij - pik + p > floor
                    or kept[j] - pij - pjk + p > floor
                    or kept[k] - pik - pjk + p > floor
                    or pji - kept[k] + pik + pjk - p > floor
                ):
                    continue
                d = p - _common(pair_no, no[(k - base) * no_length : (k - base + 1) * no_length])
                dk = kept[k] - left[k]
                dik = both[a, c]
                djk = both[b, c]
                floor = _tell(d, 1, floor, start, span, tally)
                floor = _tell(dij - d, 1, floor, start, span, tally)
                floor = _tell(dik - d, 1, floor, start, span, tally)
                floor = _tell(djk - d, 1, floor, start, span, tally)
                floor = _tell(di - dij - dik + d, 1, floor, start, span, tally)
                floor = _tell(dj - dij - djk + d, 1, floor, start, span, tally)
                floor = _tell(dk - dik - djk + d, 1, floor, start, span, tally)
                floor = _tell(
                    every - di - dj - dk + dij + dik + djk - d, 1, floor, start, span, tally
                )
    return floor


@_compiled
def _bounded(
    more: int,
    chosen: Ints,
    after: Ints,
    positives: int,
    negatives: int,
    kept: Ints,
    left: Ints,
    floor: int,
    go: Flags,
) -> None:
    """Unmark the children below which nothing is above the floor, whatever `more` tests of later
    features remove.
    """
    largest = np.zeros(
        more + 1, np.int64
    )  # removed by one test each, of different later features; falling
    # the most that a test of the present feature removes: it counts for earlier features only
    waiting = 0
    most = 0  # and the most positives that a test of a later feature keeps
    waiting_most = 0
    for a in range(len(chosen) - 1, -1, -1):
        i = chosen[a]
        if a + 1 < len(chosen) and after[i] != after[chosen[a + 1]]:
            most = max(most, waiting_most)
            largest[more] = waiting
            for at in range(more, 0, -1):
                if largest[at] > largest[at - 1]:
                    largest[at], largest[at - 1] = largest[at - 1], largest[at]
            waiting = waiting_most = 0
        removable = 0
        for at in range(more):
            removable += largest[at]
        keeps = kept[i]
        leaves = left[i]
        if min(keeps, most) - max(0, leaves - removable) <= floor:
            go[2 * i] = False
        if keeps > floor:
            waiting = max(waiting, negatives - leaves)
            waiting_most = max(waiting_most, keeps)
        keeps = positives - keeps
        leaves = negatives - leaves
        if min(keeps, most) - max(0, leaves - removable) <= floor:
            go[2 * i + 1] = False
        if keeps > floor:
            waiting = max(waiting, negatives - leaves)
            waiting_most = max(waiting_most, keeps)


@_compiled
def _walk(
    positives: Words, negatives: Words, words: int, column: int, want: int, literals: int, floor: int, span: int,
    after: Ints, sizes: Ints, tally: Ints, stop: Flags, most: int,
) -> None:  # fmt: skip
    columns = len(after)
    kept_here = _covered(positives, words, column, want)
    left_here = _covered(negatives, words, column, want)
    start = floor
    if kept_here == 0 and left_here == 0:  # nobody is covered, here and below
        _tell(0, sizes[after[column], literals], floor, start, span, tally)
        return
    floor = _tell(kept_here - left_here, 1, floor, start, span, tally)
    if literals == 0 or after[column] == columns or kept_here <= floor:
        return

    # By depth: the test that was added, the first column that may follow, whom the node covers and
    # where their rows are, the children that matter, which of them have to be visited, and how far
    # that has come.
    depths = max(1, literals)
    tests = np.empty(depths, np.int64)
    wants = np.empty(depths, np.int64)
    firsts = np.empty(depths, np.int64)
    yes = np.empty(depths, np.int64)
    no = np.empty(depths, np.int64)
    yes_at = np.empty(depths, np.int64)
    no_at = np.empty(depths, np.int64)
    ends = np.empty(depths, np.int64)
    chosen = np.empty((depths, columns), np.int64)
    lengths = np.zeros(depths, np.int64)
    cursors = np.zeros(depths, np.int64)
    go = np.zeros((depths, 2 * columns), np.bool_)
    kept = np.zeros((depths, 64 * words), np.int64)
    left = np.zeros((depths, 64 * words), np.int64)

    rows = np.empty(0, np.uint64)
    yes_bits = np.empty(0, np.uint64)
    no_bits = np.empty(0, np.uint64)
    block = np.empty(GROUP, np.uint64)
    buffer = np.empty((GROUP + 1) * words, np.uint64)

    tests[0], wants[0], firsts[0], yes[0], no[0] = column, want, after[column], kept_here, left_here
    depth = 0
    entering = True
    while depth >= 0 and not stop[0]:
        if not entering:
            while cursors[depth] < 2 * lengths[depth]:
                child = chosen[depth, cursors[depth] >> 1]
                negated = cursors[depth] & 1
                cursors[depth] += 1
                keeps = yes[depth] - kept[depth, child] if negated else kept[depth, child]
                if go[depth, 2 * child + negated] and keeps > floor:
                    entering = True
                    break
            if not entering:
                depth -= 1
                continue
            leaves = no[depth] - left[depth, child] if negated else left[depth, child]
            depth += 1
            tests[depth], wants[depth], firsts[depth] = child, 1 - negated, after[child]
            yes[depth], no[depth] = keeps, leaves
        entering = False
        lengths[depth] = cursors[depth] = 0
        more = literals - depth
        skip = firsts[depth] >> 6
        base = 64 * skip
        width = words - skip
        outer = words - (firsts[depth - 1] >> 6) if depth else words
        test = tests[depth] - 64 * (words - outer)

        begin = ends[depth - 1] if depth else 0
        yes_at[depth] = begin
        no_at[depth] = begin + yes[depth] * width
        ends[depth] = no_at[depth]
        rows = _room(rows, no_at[depth] + width)
        if depth:
            _select(
                rows,
                yes_at[depth - 1],
                yes[depth - 1],
                outer,
                test,
                wants[depth],
                outer - width,
                rows,
                begin,
            )
        else:
            _select(
                positives,
                0,
                len(positives) // words,
                words,
                test,
                wants[depth],
                outer - width,
                rows,
                begin,
            )
        yes_length = LANES * ((yes[depth] + GROUP - 1) // GROUP)
        yes_bits = _room(yes_bits, 64 * width * yes_length)
        kept[depth, base:] = 0
        _turned(rows, begin, yes[depth], width, block, kept[depth, base:], yes_bits)
        found = 0
        for child in range(firsts[depth], columns):
            if kept[depth, child] > floor or yes[depth] - kept[depth, child] > floor:
                chosen[depth, found] = child
                found += 1
        if found == 0:
            continue
        mine = chosen[depth, :found]
        left[depth, base:] = 0
        if (
            more == 1
            or not _ahead(
                mine, after, yes[depth], kept[depth], yes_bits, yes_length, base, floor, go[depth]
            )
        ):  # only children are left, and most often a part of the negatives is enough to see that none counts
            source, at, count = negatives, 0, len(negatives) // words
            if depth:
                source, at, count = rows, no_at[depth - 1], no[depth - 1]
            if not _refuted(
                source, at, count, outer, test, wants[depth], outer - width,
                block, buffer, mine - base, yes[depth], kept[depth, base:], left[depth, base:], floor,
            ):  # fmt: skip
                for child in mine:
                    keeps, leaves = kept[depth, child], left[depth, child]
                    floor = _tell(keeps - leaves, 1, floor, start, span, tally)
                    floor = _tell(
                        yes[depth] - keeps - (no[depth] - leaves), 1, floor, start, span, tally
                    )
            continue

        ends[depth] = no_at[depth] + no[depth] * width
        rows = _room(rows, ends[depth] + width)
        if depth:
            _select(
                rows,
                no_at[depth - 1],
                no[depth - 1],
                outer,
                test,
                wants[depth],
                outer - width,
                rows,
                no_at[depth],
            )
        else:
            count = len(negatives) // words
            _select(
                negatives, 0, count, words, test, wants[depth], outer - width, rows, no_at[depth]
            )
        last = more == 2 or (more == 3 and found <= most)
        if last:
            no_length = LANES * ((no[depth] + GROUP - 1) // GROUP)
            no_bits = _room(no_bits, 64 * width * no_length)
            _turned(rows, no_at[depth], no[depth], width, block, left[depth, base:], no_bits)
        else:
            _counted(rows, no_at[depth], no[depth], width, block, left[depth, base:])
            _bounded(
                more - 1,
                mine,
                after,
                yes[depth],
                no[depth],
                kept[depth],
                left[depth],
                floor,
                go[depth],
            )
            lengths[depth] = found
        for child in mine:
            for negated in range(2):
                keeps, leaves = kept[depth, child], left[depth, child]
                if negated:
                    keeps, leaves = yes[depth] - keeps, no[depth] - leaves
                size = 1
                if keeps == 0 and leaves == 0 and not last:  # nobody is covered, here and below
                    go[depth, 2 * child + negated] = False
                    size = sizes[after[child], more - 1]
                floor = _tell(keeps - leaves, size, floor, start, span, tally)
        if last:
            floor = _few(
                more, mine, after, go[depth], yes[depth], no[depth], kept[depth], left[depth],
                yes_bits, yes_length, no_bits, no_length, base, floor, start, span, tally,
            )  # fmt: skip
