"""The walk of `numpy_walk.py`, compiled.

It needs numba, so only `search.py` imports it, and only where numba is installed.

Rows are kept as words of bits, one bit a column, and are thinned out from node to node. Their
columns, needed to count, come from turning 64 × 64 bits over; eight such squares at a time, which
fill the widest registers there are.

Proof:      docs/proofs/conjunctions.md
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privmax import kernels
from privmax.kernels import count_ones, entry, part, step
from privmax.learning.classes.covers.branches import Branch, Goal, Ints, Words
from privmax.learning.classes.covers.compiled_state import (
    BitRows,
    BitTest,
    ColumnBits,
    Node,
    PairCounts,
    Space,
    Stack,
)

LANES = 8
"""Words of a column that are made together. Columns are padded with zeros to a multiple of this."""

GROUP = 64 * LANES
"""Rows turned over together."""

MOST = 2048
"""From this number of columns on, the last three tests are not counted in one go, which takes a
table of all pairs.
"""


def count_bits(rows: Words) -> Ints:
    """Count bits as in `numpy_walk.py`."""
    total = np.zeros(64 * rows.shape[1], np.int64)
    _count_bits(_whole(rows), np.empty(GROUP, np.uint64), total)
    return total


def tell_of_compiling() -> None:
    """Say so if the search is about to be compiled."""
    kernels.tell_of_compiling([_count_bits, _walk], "the search through conjunctions")


def walk(branch: Branch, goal: Goal) -> None:
    """As in `numpy_walk.py`."""
    test = BitTest(branch.test >> 1, 1 - (branch.test & 1), 0)
    _walk(_whole(branch.positives), _whole(branch.negatives), test, branch.literals, goal, MOST)


def _whole(rows: Words) -> BitRows:
    return BitRows(rows.ravel(), 0, len(rows), rows.shape[1])


@part
def _count_common(first: Words, second: Words) -> int:
    """Return how many bits two sets have in common."""
    total = 0
    for at in range(len(first)):
        total += count_ones(first[at] & second[at])
    return total


@part
def _meet(first: Words, second: Words, out: Words) -> None:
    for at in range(len(first)):
        out[at] = first[at] & second[at]


@part
def _exchange(high: Words, low: Words, step: Any, mask: Any) -> None:
    """Exchange the bits outside the mask of one half with those inside the mask of the other."""
    for at in range(len(high)):
        moved = ((high[at] >> step) ^ low[at]) & mask
        low[at] ^= moved
        high[at] ^= moved << step


@step
def _turn(block: Words) -> None:
    """Turn LANES squares of 64 × 64 bits over: word i of square l is block[LANES·i + l]."""
    side = 32
    mask = np.uint64(0xFFFFFFFF)
    while side:
        half = LANES * side
        for base in range(0, GROUP, 2 * half):
            _exchange(
                block[base : base + half],
                block[base + half : base + 2 * half],
                np.uint64(side),
                mask,
            )
        side >>= 1
        mask ^= mask << np.uint64(side)


@step
def _load(rows: BitRows, group: int, word: int, block: Words) -> None:
    """One word of the rows of a group, as columns; rows that are not there are 0."""
    words, width = rows.words, rows.width
    first = rows.at + GROUP * group * width + word
    there = min(GROUP, rows.number - GROUP * group)
    if there < GROUP:
        block[:] = 0
    for lane in range((there + 63) // 64):
        for bit in range(min(64, there - 64 * lane)):
            block[LANES * bit + lane] = words[first + (64 * lane + bit) * width]
    _turn(block)


@entry
def _count_bits(rows: BitRows, block: Words, counts: Ints) -> None:
    """Add to counts[c] the rows that have bit c."""
    for group in range((rows.number + GROUP - 1) // GROUP):
        for word in range(rows.width):
            _load(rows, group, word, block)
            for bit in range(64):
                lanes = block[LANES * bit : LANES * (bit + 1)]
                counts[64 * word + bit] += _count_common(lanes, lanes)


@step
def _turn_rows(rows: BitRows, block: Words, counts: Ints, bits: Words) -> None:
    """The same, and the columns as sets of rows, as in `ColumnBits`."""
    length = _length(rows.number)
    for group in range((rows.number + GROUP - 1) // GROUP):
        for word in range(rows.width):
            _load(rows, group, word, block)
            for bit in range(64):
                to = (64 * word + bit) * length + LANES * group
                total = 0
                for lane in range(LANES):
                    bits[to + lane] = block[LANES * bit + lane]
                    total += count_ones(block[LANES * bit + lane])
                counts[64 * word + bit] += total


@part
def _count_passing(rows: BitRows, test: BitTest) -> int:
    """Return how many rows pass a test."""
    words, width = rows.words, rows.width
    word, shift, want = test.column >> 6, np.uint64(test.column & 63), np.uint64(test.want)
    total = 0
    for row in range(rows.number):
        total += (words[row * width + word] >> shift) & np.uint64(1) == want
    return total


@step
def _select(rows: BitRows, test: BitTest, out: Words, to: int) -> None:
    """Select the rows that pass a test, without their first words.

    One row more than there are must fit.
    """
    words, width, skip = rows.words, rows.width, test.skip
    left = width - skip
    word, shift, fails = test.column >> 6, np.uint64(test.column & 63), np.uint64(1 - test.want)
    if width == 1:  # the same, without an inner loop
        for row in words[rows.at : rows.at + rows.number]:
            out[to] = row
            to += int(((row >> shift) & np.uint64(1)) ^ fails)
        return
    for row in range(rows.number):
        begin = rows.at + row * width
        for place in range(left):
            out[to + place] = words[begin + skip + place]
        to += left * int(((words[begin + word] >> shift) & np.uint64(1)) ^ fails)


@step
def _refute(rows: BitRows, test: BitTest, node: Node, space: Space, base: int, floor: int) -> bool:
    """Count negatives only until no child can be above the floor any more, and then say True."""
    words, width, skip = rows.words, rows.width, test.skip
    left = width - skip
    word, shift, want = test.column >> 6, np.uint64(test.column & 63), np.uint64(test.want)
    kept, counts, buffer = node.kept, node.left, space.buffer
    filled = 0
    seen = 0
    for row in range(rows.number):
        begin = rows.at + row * width
        if left == 1:  # the same, without an inner loop
            buffer[filled] = words[begin + skip]
        else:
            for place in range(left):
                buffer[filled * left + place] = words[begin + skip + place]
        filled += (words[begin + word] >> shift) & np.uint64(1) == want
        if filled == GROUP or (row == rows.number - 1 and filled):
            _count_bits(BitRows(buffer, 0, filled, left), space.block, counts[base:])
            seen += filled
            filled = 0
            refuted = True
            for child in node.chosen:
                above = kept[child] - counts[child] > floor
                if above or node.positives - kept[child] - (seen - counts[child]) > floor:
                    refuted = False
                    break
            if refuted:
                return True
    return False


@part
def _tell(goal: Goal, difference: int, times: int, floor: int) -> int:
    """Count some hypotheses if they are above the floor, which rises to the span below them."""
    if difference > floor:
        goal.tally[difference - goal.floor - 1] += times
        if difference - goal.span > floor:
            return difference - goal.span
    return floor


@part
def _begin(columns: ColumnBits, column: int) -> int:
    """Return where a column begins."""
    return (column - columns.base) * columns.length


@part
def _count_shared(mine: Words, columns: ColumnBits, column: int) -> int:
    """Return how many rows a set has in common with a column."""
    begin = _begin(columns, column)
    number: int = _count_common(mine, columns.bits[begin : begin + columns.length])
    return number


@step
def _look_ahead(node: Node, after: Ints, columns: ColumnBits, floor: int) -> bool:
    """Mark the children with a child above the floor by positives alone; return if any has one."""
    some = False
    chosen, kept, positives, go = node.chosen, node.kept, node.positives, node.go
    for a in range(len(chosen)):
        i = chosen[a]
        least = not kept[i] > floor  # nothing left to find out
        most = not positives - kept[i] > floor
        go[2 * i] = go[2 * i + 1] = False
        begin = _begin(columns, i)
        mine = columns.bits[begin : begin + columns.length]
        for b in range(a + 1, len(chosen)):
            if least and most:
                break
            j = chosen[b]
            if j < after[i]:
                continue
            both = _count_shared(mine, columns, j)
            if not least and (both > floor or kept[i] - both > floor):
                go[2 * i] = least = some = True
            if not most and (
                kept[j] - both > floor or positives - kept[i] - kept[j] + both > floor
            ):
                go[2 * i + 1] = most = some = True
    return some


@step
def _count_few(
    node: Node, yes: ColumnBits, no: ColumnBits, literals: int, goal: Goal, floor: int
) -> int:
    """Count the pairs and, if `literals` is 3, triples below a node.

    A complement is counted by subtraction.
    """
    count = len(node.chosen) if literals == 3 else 1
    pairs = PairCounts(
        np.empty((count, count), np.int64),
        np.empty((count, count), np.int64),
        np.zeros((count, count), np.bool_),
        np.zeros((count, count), np.bool_),
    )
    removed = np.zeros(len(node.chosen) + 1, np.int64)
    _count_removed(node, floor, removed)
    goal.left[0] -= len(node.chosen) * len(node.chosen) // 2 * (yes.length + no.length)
    floor = _record_pairs(node, yes, no, pairs, removed, literals == 3, goal, floor)
    if literals == 3:
        spare = np.empty(yes.length, np.uint64), np.empty(no.length, np.uint64)
        floor = _record_triples(node, yes, no, pairs, spare, goal, floor)
    return floor


@part
def _count_removed(node: Node, floor: int, removed: Ints) -> None:
    """The most negatives that a test at each place or later removes."""
    for a in range(len(node.chosen) - 1, -1, -1):
        i = node.chosen[a]
        removed[a] = removed[a + 1]
        if node.kept[i] > floor:
            removed[a] = max(removed[a], node.negatives - node.left[i])
        if node.positives - node.kept[i] > floor:
            removed[a] = max(removed[a], node.left[i])


@step
def _record_pairs(
    node: Node,
    yes: ColumnBits,
    no: ColumnBits,
    pairs: PairCounts,
    removed: Ints,
    triples: bool,
    goal: Goal,
    floor: int,
) -> int:
    """Return the pairs; where triples follow, what they need to know of the pairs."""
    chosen, go, kept, left = node.chosen, node.go, node.kept, node.left
    for a in range(len(chosen)):
        i = chosen[a]
        if not (go[2 * i] or go[2 * i + 1]):
            continue
        begin = _begin(yes, i)
        mine_yes = yes.bits[begin : begin + yes.length]
        begin = _begin(no, i)
        mine_no = no.bits[begin : begin + no.length]
        for b in range(a + 1, len(chosen)):
            j = chosen[b]
            if j < goal.after[i]:
                continue
            p3 = _count_shared(mine_yes, yes, j)
            p2 = kept[i] - p3
            p1 = kept[j] - p3
            p0 = node.positives - kept[i] - p1
            if not (p3 > floor or p2 > floor or p1 > floor or p0 > floor):
                continue
            n3 = _count_shared(mine_no, no, j)
            n2 = left[i] - n3
            n1 = left[j] - n3
            n0 = node.negatives - left[i] - n1
            if triples:
                pairs.yes[a, b] = p3
                pairs.both[a, b] = p3 - n3
                pairs.alive[a, b] = True
                most = removed[b + 1]
                pairs.open[a, b] = (
                    p3 - max(0, n3 - most) > floor
                    or p2 - max(0, n2 - most) > floor
                    or p1 - max(0, n1 - most) > floor
                    or p0 - max(0, n0 - most) > floor
                )
            floor = _tell(goal, p3 - n3, 1, floor)
            floor = _tell(goal, p2 - n2, 1, floor)
            floor = _tell(goal, p1 - n1, 1, floor)
            floor = _tell(goal, p0 - n0, 1, floor)
    return floor


@step
def _record_triples(
    node: Node,
    yes: ColumnBits,
    no: ColumnBits,
    pairs: PairCounts,
    spare: tuple[Words, Words],
    goal: Goal,
    floor: int,
) -> int:
    """Return the triples. `spare` has room for a column of positives and one of negatives."""
    chosen, kept, left, positives = node.chosen, node.kept, node.left, node.positives
    both_yes, both, alive = pairs.yes, pairs.both, pairs.alive
    pair_yes, pair_no = spare
    every = positives - node.negatives
    steps = 0
    for a in range(len(chosen)):
        i = chosen[a]
        begin = _begin(yes, i)
        mine_yes = yes.bits[begin : begin + yes.length]
        begin = _begin(no, i)
        mine_no = no.bits[begin : begin + no.length]
        di = kept[i] - left[i]
        for b in range(a + 1, len(chosen)):
            if not pairs.open[a, b]:
                continue
            steps += (len(chosen) - b) * (yes.length + no.length)
            j = chosen[b]
            begin = _begin(yes, j)
            _meet(mine_yes, yes.bits[begin : begin + yes.length], pair_yes)
            begin = _begin(no, j)
            _meet(mine_no, no.bits[begin : begin + no.length], pair_no)
            pij = both_yes[a, b]
            pji = positives - kept[i] - kept[j] + pij
            dj = kept[j] - left[j]
            dij = both[a, b]
            for c in range(b + 1, len(chosen)):
                # A pair of columns that was not counted covers too few positives with any signs (or
                # has no room).
                if not (alive[a, c] and alive[b, c]):
                    continue
                k = chosen[c]
                p = _count_shared(pair_yes, yes, k)
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
                d = p - _count_shared(pair_no, no, k)
                dk = kept[k] - left[k]
                dik = both[a, c]
                djk = both[b, c]
                floor = _tell(goal, d, 1, floor)
                floor = _tell(goal, dij - d, 1, floor)
                floor = _tell(goal, dik - d, 1, floor)
                floor = _tell(goal, djk - d, 1, floor)
                floor = _tell(goal, di - dij - dik + d, 1, floor)
                floor = _tell(goal, dj - dij - djk + d, 1, floor)
                floor = _tell(goal, dk - dik - djk + d, 1, floor)
                floor = _tell(goal, every - di - dj - dk + dij + dik + djk - d, 1, floor)
    goal.left[0] -= steps
    return floor


@step
def _bound(node: Node, after: Ints, more: int, floor: int) -> None:
    """Unmark the children below which nothing is above the floor.

    Whatever `more` tests of later features remove.
    """
    chosen, go, kept, left = node.chosen, node.go, node.kept, node.left
    # removed by one test each, of different later features; falling
    largest = np.zeros(more + 1, np.int64)
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
            waiting = max(waiting, node.negatives - leaves)
            waiting_most = max(waiting_most, keeps)
        keeps = node.positives - keeps
        leaves = node.negatives - leaves
        if min(keeps, most) - max(0, leaves - removable) <= floor:
            go[2 * i + 1] = False
        if keeps > floor:
            waiting = max(waiting, node.negatives - leaves)
            waiting_most = max(waiting_most, keeps)


@entry
def _walk(
    positives: BitRows, negatives: BitRows, test: BitTest, literals: int, goal: Goal, most: int
) -> None:
    """Count a branch, depth first. `literals` tests may follow the first; MOST is `most`."""
    after = goal.after
    kept_here = _count_passing(positives, test)
    left_here = _count_passing(negatives, test)
    floor = goal.floor
    if kept_here == 0 and left_here == 0:  # nobody is covered, here and below
        _tell(goal, 0, goal.sizes[after[test.column], literals], floor)
        return
    floor = _tell(goal, kept_here - left_here, 1, floor)
    if literals == 0 or after[test.column] == len(after) or kept_here <= floor:
        return
    words = positives.width
    stack = _make_stack(literals, len(after), words)
    width = words - (after[test.column] >> 6)
    # No node below covers more, and memory that is not written to is not taken.
    space = Space(
        np.empty(2 * (kept_here + left_here + 1) * width, np.uint64),
        np.empty(64 * width * _length(kept_here), np.uint64),
        np.empty(64 * width * _length(left_here), np.uint64),
        np.empty(GROUP, np.uint64),
        np.empty((GROUP + 1) * words, np.uint64),
    )
    _push(stack, 0, test.column, test.want, after[test.column])
    stack.yes[0], stack.no[0] = kept_here, left_here
    depth = 0
    while depth >= 0 and not goal.stop[0] and goal.left[0] >= 0:
        width = words - (stack.firsts[depth] >> 6)
        goal.left[0] -= (stack.yes[depth] + stack.no[depth]) * width
        begin = stack.ends[depth - 1] if depth else 0
        stack.yes_at[depth] = begin
        stack.no_at[depth] = stack.ends[depth] = begin + stack.yes[depth] * width
        end = stack.no_at[depth] + stack.no[depth] * width
        if len(space.rows) < end + width:
            space = _grow(space, end + width)
        more = literals - depth
        chosen, floor = _visit_yes(stack, space, depth, (positives, negatives), more, goal, floor)
        if chosen:
            stack.ends[depth] = end
            last = more == 2 or (more == 3 and chosen <= most)
            floor = _visit_no(stack, space, depth, negatives, (chosen, more, last), goal, floor)
        depth = _next(stack, depth, after, floor)


@step
def _grow(space: Space, size: int) -> Space:
    """Return the same, with room for so many words of rows."""
    rows = np.empty(max(size, 2 * len(space.rows)), np.uint64)
    rows[: len(space.rows)] = space.rows
    return Space(rows, space.yes, space.no, space.block, space.buffer)


@step
def _make_stack(depths: int, columns: int, words: int) -> Stack:
    return Stack(
        np.empty(depths, np.int64),
        np.empty(depths, np.int64),
        np.empty(depths, np.int64),
        np.empty(depths, np.int64),
        np.empty(depths, np.int64),
        np.empty(depths, np.int64),
        np.empty(depths, np.int64),
        np.empty(depths, np.int64),
        np.empty((depths, columns), np.int64),
        np.zeros((depths, 64 * words), np.int64),
        np.zeros((depths, 64 * words), np.int64),
        np.zeros((depths, 2 * columns), np.bool_),
        np.zeros(depths, np.int64),
        np.zeros(depths, np.int64),
    )


@part
def _push(stack: Stack, depth: int, test: int, want: int, first: int) -> None:
    stack.tests[depth], stack.wants[depth], stack.firsts[depth] = test, want, first


@step
def _next(stack: Stack, depth: int, after: Ints, floor: int) -> int:
    """Turn to the next node that must be visited; its depth, or −1 at the end."""
    yes, no, kept, left = stack.yes, stack.no, stack.kept, stack.left
    while depth >= 0:
        while stack.cursors[depth] < 2 * stack.lengths[depth]:
            cursor = stack.cursors[depth]
            child = stack.chosen[depth, cursor >> 1]
            negated = cursor & 1
            stack.cursors[depth] = cursor + 1
            keeps = yes[depth] - kept[depth, child] if negated else kept[depth, child]
            if stack.go[depth, 2 * child + negated] and keeps > floor:
                leaves = no[depth] - left[depth, child] if negated else left[depth, child]
                depth += 1
                _push(stack, depth, child, 1 - negated, after[child])
                yes[depth], no[depth] = keeps, leaves
                return depth
        depth -= 1
    return depth


@part
def _length(rows: int) -> int:
    """Return how many words a column of so many rows fills."""
    return LANES * ((rows + GROUP - 1) // GROUP)


@part
def _test(stack: Stack, depth: int, words: int) -> BitTest:
    """Return the test of a node, of the rows of its parent, which have lost their first words."""
    lost = stack.firsts[depth - 1] >> 6 if depth else 0
    skip = (stack.firsts[depth] >> 6) - lost
    return BitTest(stack.tests[depth] - 64 * lost, stack.wants[depth], skip)


@step
def _visit_yes(
    stack: Stack,
    space: Space,
    depth: int,
    top: tuple[BitRows, BitRows],
    more: int,
    goal: Goal,
    floor: int,
) -> tuple[int, int]:
    """Find the positives of a node, and the children that matter by those.

    `top` holds the rows of the branch, positives and negatives; `more` tests may follow the node.
    Where only children are left they are counted here.

    Returns how many children matter, or 0 where nothing is left to be counted, and the floor.
    """
    words, yes, no = top[0].width, stack.yes[depth], stack.no[depth]
    first = stack.firsts[depth]
    base, width = 64 * (first >> 6), words - (first >> 6)
    test = _test(stack, depth, words)
    stack.lengths[depth] = stack.cursors[depth] = 0
    rows, others = top
    if depth:
        outer = width + test.skip
        rows = BitRows(space.rows, stack.yes_at[depth - 1], stack.yes[depth - 1], outer)
        others = BitRows(space.rows, stack.no_at[depth - 1], stack.no[depth - 1], outer)
    _select(rows, test, space.rows, stack.yes_at[depth])
    kept, left = stack.kept[depth], stack.left[depth]
    kept[base:] = 0
    rows = BitRows(space.rows, stack.yes_at[depth], yes, width)
    _turn_rows(rows, space.block, kept[base:], space.yes)
    chosen = _choose(stack, depth, len(goal.after), floor)
    if chosen == 0:
        return 0, floor
    left[base:] = 0
    node = Node(yes, no, stack.chosen[depth, :chosen], kept, left, stack.go[depth])
    columns = ColumnBits(space.yes, _length(yes), base)
    if more > 1 and _look_ahead(node, goal.after, columns, floor):
        return chosen, floor
    # Only children are left, and most often a part of the negatives is enough to see that none
    # counts.
    if not _refute(others, test, node, space, base, floor):
        for child in node.chosen:
            floor = _tell(goal, kept[child] - left[child], 1, floor)
            floor = _tell(goal, yes - kept[child] - (no - left[child]), 1, floor)
    return 0, floor


@step
def _visit_no(
    stack: Stack,
    space: Space,
    depth: int,
    top: BitRows,
    ahead: tuple[int, int, bool],
    goal: Goal,
    floor: int,
) -> int:
    """Find the negatives of a node, and count its children.

    Where few tests may follow, all below them are counted too.

    `top` holds the negatives of the branch. `ahead`: how many children matter, how many tests may
    follow the node, and whether those are few enough.
    """
    chosen, more, last = ahead
    words, yes, no = top.width, stack.yes[depth], stack.no[depth]
    first = stack.firsts[depth]
    base, width = 64 * (first >> 6), words - (first >> 6)
    test = _test(stack, depth, words)
    rows = top
    if depth:
        outer = width + test.skip
        rows = BitRows(space.rows, stack.no_at[depth - 1], stack.no[depth - 1], outer)
    _select(rows, test, space.rows, stack.no_at[depth])
    rows = BitRows(space.rows, stack.no_at[depth], no, width)
    kept, left = stack.kept[depth], stack.left[depth]
    node = Node(yes, no, stack.chosen[depth, :chosen], kept, left, stack.go[depth])
    if not last:
        _count_bits(rows, space.block, left[base:])
        _bound(node, goal.after, more - 1, floor)
        stack.lengths[depth] = chosen
        raised: int = _record_children(node, goal, more, False, floor)
        return raised
    _turn_rows(rows, space.block, left[base:], space.no)
    floor = _record_children(node, goal, more, True, floor)
    mine = ColumnBits(space.yes, _length(yes), base)
    others = ColumnBits(space.no, _length(no), base)
    floor = _count_few(node, mine, others, more, goal, floor)
    return floor


@step
def _choose(stack: Stack, depth: int, columns: int, floor: int) -> int:
    """Return the columns of which a test keeps enough positives; how many they are."""
    kept, yes = stack.kept, stack.yes[depth]
    number = 0
    for child in range(stack.firsts[depth], columns):
        if kept[depth, child] > floor or yes - kept[depth, child] > floor:
            stack.chosen[depth, number] = child
            number += 1
    return number


@step
def _record_children(node: Node, goal: Goal, more: int, last: bool, floor: int) -> int:
    """Count the children of a node, each with all below it where no one is covered."""
    for child in node.chosen:
        for negated in range(2):
            keeps, leaves = node.kept[child], node.left[child]
            if negated:
                keeps, leaves = node.positives - keeps, node.negatives - leaves
            size = 1
            if keeps == 0 and leaves == 0 and not last:  # nobody is covered, here and below
                node.go[2 * child + negated] = False
                size = goal.sizes[goal.after[child], more - 1]
            floor = _tell(goal, keeps - leaves, size, floor)
    return floor
