"""The counts of `linear.py` in one kernel for GPUs.

Rows are put on the grid on the card, too. Products come from the matrix units and are counted in
registers.

Weights and places are of 8 bits, products are added up in 32, and all are integers: nothing is ever
rounded. Only counts are written to memory. Needs torch with CUDA and Triton; `linear.py` imports it
where they are.

Proof:      docs/proofs/linear.md
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.learning.classes.grid import as_numbers
from privmax.learning.classes.linear import Bytes, Split

# They ship no types, and most installations do not have them.
torch: Any = importlib.import_module("torch")
triton: Any = importlib.import_module("triton")
tl: Any = importlib.import_module("triton.language")

MOST_FEATURES = 256
"""A tile of directions and several of examples must fit the memory of a multiprocessor."""

_LEAST_FEATURES = 32
"""The number of features that one instruction of the matrix units takes."""

_EXACT_KINDS = "?bhilqefd"
"""Kinds of NumPy's numbers that the card turns into 64-bit floats as a processor does."""

_TOGETHER = 8
"""Offsets counted in one launch: each needs registers."""


@dataclass(frozen=True)
class Tile:
    """The sizes of blocks of work. All but stages are powers of 2.

    Args:
        directions, examples: Whose products are made together.
        warps: That share the products.
        stages: Tiles of examples being loaded or used.
        share: Examples that one program walks through: programs that run at the same time walk
            through the same ones, mostly, and find them in the cache.
    """

    directions: int = 128
    examples: int = 128
    warps: int = 4
    stages: int = 3
    share: int = 1 << 15


class Fused:
    """`linear.Tally` on one GPU."""

    def __init__(
        self, directions: Bytes, offsets: Sequence[int], device: Any, tile: Tile | None = None
    ) -> None:
        self._tile, self._device = tile or Tile(), device
        self._number, features = directions.shape
        self._features = max(_LEAST_FEATURES, triton.next_power_of_2(features))
        self._directions = self.on_device(directions, self._tile.directions)
        self._offsets = torch.tensor(list(offsets), dtype=torch.int32, device=device)
        self._counts = torch.zeros(
            (len(offsets), len(self._directions)), dtype=torch.int64, device=device
        )
        self._copies = torch.cuda.Stream(device)

    def __repr__(self) -> str:
        return "Fused(<private>)"

    def splitting(self, cuts: list[NDArray[np.float64]], levels: int) -> Split:
        edges = torch.from_numpy(np.stack(cuts)).to(self._device)

        def split(rows: Any, yes: Any) -> tuple[Any, Any]:
            values, ones = self._bring(_as_tensor(rows)), self._bring(torch.as_tensor(yes))
            # A binary search compares and does nothing else: a cell is how many cuts are at or
            # below a value, all of them for NaN, as NumPy has it.
            cells = torch.searchsorted(
                edges, values.to(torch.float64).T.contiguous(), right=True, out_int32=True
            )
            placed = (cells - levels).to(torch.int8).T.contiguous()
            return placed[ones], placed[~ones]

        return split

    def _bring(self, table: Any) -> Any:
        """Return a tensor on the device, copied while the kernel counts earlier rows."""
        if table.is_cuda:
            return table.to(self._device)
        now = torch.cuda.current_stream(self._device)
        with torch.cuda.stream(self._copies):
            there = table.to(self._device)
        now.wait_stream(self._copies)
        there.record_stream(now)  # its memory is not used again before that stream is done with it
        return there

    def add(self, cells: Any, sign: int) -> None:
        if len(cells):
            self.add_there(self.on_device(cells, self._tile.examples), len(cells), sign)

    def counts(self) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = self._counts[:, : self._number].cpu().numpy()
        return counts

    def on_device(self, table: Any, multiple: int) -> Any:
        """Return a table on the device, filled up with zeros to full tiles."""
        rows, columns = table.shape
        there = torch.zeros(
            (-(-rows // multiple) * multiple, self._features), dtype=torch.int8, device=self._device
        )
        there[:rows, :columns] = _as_tensor(table).to(self._device)
        return there

    def add_there(self, cells: Any, rows: int, sign: int) -> None:
        """Add what `on_device` gave.

        `rows` of it count; the others are zeros and lie above a threshold ≤ 0.
        """
        sums = torch.zeros_like(self._counts, dtype=torch.int32)
        for first in range(0, len(self._offsets), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            self._launch(cells, self._offsets[part], sums[part])
        filled = (len(cells) - rows) * (self._offsets <= 0).to(torch.int32)
        self._counts += sign * (sums - filled[:, None])

    def _launch(self, cells: Any, offsets: Any, counts: Any) -> None:
        tile = self._tile
        grid = (len(self._directions) // tile.directions, -(-len(cells) // tile.share))
        with torch.cuda.device_of(cells):  # Triton launches on the device that is current
            _kernel[grid](
                self._directions,
                cells,
                offsets,
                counts,
                len(self._directions),
                len(cells),
                SHARE=tile.share,
                FEATURES=self._features,
                OFFSETS=len(offsets),
                COLUMNS=triton.next_power_of_2(len(offsets)),
                DIRECTIONS=tile.directions,
                EXAMPLES=tile.examples,
                num_warps=tile.warps,
                num_stages=tile.stages,
            )


def _as_tensor(table: Any) -> Any:
    """Return rows as a tensor, where they are."""
    if isinstance(table, torch.Tensor):
        return table
    array = np.asarray(table)
    if array.dtype.char not in _EXACT_KINDS or not array.dtype.isnative:
        array = as_numbers(array)
    # torch warns of what it cannot write to
    return torch.from_numpy(np.require(array, requirements=["C", "W"]))


def _count(  # type: ignore[no-untyped-def]  # compiled by Triton: its arguments are pointers and constants
    weights,
    cells,
    offsets,
    counts,
    number,
    rows,
    SHARE: tl.constexpr,
    FEATURES: tl.constexpr,
    OFFSETS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DIRECTIONS: tl.constexpr,
    EXAMPLES: tl.constexpr,
):
    """Add to counts[j, i] how many rows of this program's share have w_i·z ≥ b_j.

    All tables consist of full tiles. Programs with other shares of the rows add to the same counts.
    """
    direction = tl.program_id(0) * DIRECTIONS + tl.arange(0, DIRECTIONS)
    feature = tl.arange(0, FEATURES)
    column = tl.arange(0, COLUMNS)
    tile = tl.load(weights + direction[:, None].to(tl.int64) * FEATURES + feature[None, :])
    first = tl.program_id(1) * SHARE
    last = tl.minimum(first + SHARE, rows)
    above = tl.zeros((DIRECTIONS, COLUMNS), tl.int32)
    for start in range(first, last, EXAMPLES):
        row = start + tl.arange(0, EXAMPLES)
        places = tl.load(cells + row[None, :] * FEATURES + feature[:, None])
        products = tl.dot(tile, places, out_dtype=tl.int32)
        for which in tl.static_range(OFFSETS):
            offset = tl.load(offsets + which)
            # Shifting out all but the sign leaves −1 below the offset, else 0: fewer instructions
            # than comparing
            below = tl.sum((products - offset) >> 31, axis=1)
            above += tl.where(column[None, :] == which, EXAMPLES + below[:, None], 0)
    where = counts + column[None, :].to(tl.int64) * number + direction[:, None]
    tl.atomic_add(
        where,
        above,
        mask=(column[None, :] < OFFSETS) & (direction[:, None] < number),
        sem="relaxed",
    )


_kernel: Any = triton.jit(_count)
