"""Named groups of arrays that the kernels of `compiled_walk.py` pass to each other."""

from __future__ import annotations

from typing import NamedTuple

from privmax.learning.classes.covers.branches import Flags, Ints, Words


class BitRows(NamedTuple):
    """Some rows of bits.

    Attributes:
        words: The words of many rows, one row after another.
        at: Where the first of these rows begins.
        number: How many they are.
        width: How many words a row has.
    """

    words: Words
    at: int
    number: int
    width: int


class BitTest(NamedTuple):
    """A test that rows pass or fail.

    Attributes:
        column: Of the rows.
        want: 1 where the bit must be set, 0 where it must not.
        skip: How many words at the beginning of a row are not needed any more.
    """

    column: int
    want: int
    skip: int


class ColumnBits(NamedTuple):
    """Columns as sets of rows.

    Attributes:
        bits: Column c fills `length` words from bits[(c − base) · length] on.
        length: A multiple of LANES.
        base: The first column.
    """

    bits: Words
    length: int
    base: int


class Node(NamedTuple):
    """Counts of a node and of its children.

    Attributes:
        positives: How many positive rows it covers.
        negatives: How many negative rows it covers.
        chosen: The columns of the children that matter, ascending.
        kept: By column, how many positives have its bit.
        left: By column, how many negatives have its bit.
        go: By test, whether the child must be visited.
    """

    positives: int
    negatives: int
    chosen: Ints
    kept: Ints
    left: Ints
    go: Flags


class Stack(NamedTuple):
    """The nodes under way, by depth.

    Attributes:
        tests: The column of the test that was added ...
        wants: ... and whether its bit must be set.
        firsts: The first column that may follow.
        yes: How many positives the node covers ...
        no: ... and how many negatives.
        yes_at: Where the rows of the positives are ...
        no_at: ... and those of the negatives.
        ends: Where the rows end.
        chosen: As in `Node`.
        kept: As in `Node`.
        left: As in `Node`.
        go: As in `Node`.
        lengths: How many of the children may have to be visited.
        cursors: How far that has come: two steps a child.
    """

    tests: Ints
    wants: Ints
    firsts: Ints
    yes: Ints
    no: Ints
    yes_at: Ints
    no_at: Ints
    ends: Ints
    chosen: Ints
    kept: Ints
    left: Ints
    go: Flags
    lengths: Ints
    cursors: Ints


class Space(NamedTuple):
    """Room to work in.

    Attributes:
        rows: The rows of all nodes under way. It grows.
        yes: Columns of the present node, for its positives ...
        no: ... and for its negatives.
        block: One word of GROUP rows.
        buffer: GROUP rows, and one more.
    """

    rows: Words
    yes: Words
    no: Words
    block: Words
    buffer: Words


class PairCounts(NamedTuple):
    """Counts of the pairs of columns that matter, by their places among those.

    Attributes:
        yes: How many positives have both bits.
        both: The same less the negatives that have both.
        alive: Whether the pair was counted.
        open: Whether a third test may follow.
    """

    yes: Ints
    both: Ints
    alive: Flags
    open: Flags
