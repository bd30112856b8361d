"""Half-spaces: a finite public set of directions and offsets.

They are scored by exact matrix products, on a GPU if wanted.

Rows are put on a public grid of whole numbers, weights are whole, and every sum stays below 2^24.
So floats add without rounding, in any order: a score does not depend on blocks, libraries or
devices.

Proof:      docs/proofs/linear.md
"""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from types import ModuleType
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError, explain_install
from privmax.learning.classes.contract import (
    Codes,
    Counts,
    Shape,
    Tunable,
    blocks,
    check_two_labels,
)
from privmax.learning.classes.grid import Bound, Grid, as_numbers, cells_of
from privmax.learning.schema import Schema
from privmax.numbers import Number, exact, whole

Bytes = NDArray[np.int8]
"""Directions, one a row, or examples on the grid, one a row: whole numbers from −127 to 127."""

Split = Callable[[Any, Any], tuple[Any, Any]]
"""Takes rows and whether each has label 1; gives those with it on the grid, then the others."""

LARGEST = 127
"""Of a weight, and of a place on the grid."""

EXACT = 1 << 24
"""Floats of 32 bits hold every whole number up to this one."""

_ADAPTED = {"torch": "array_api_compat.torch", "cupy": "array_api_compat.cupy"}

_HOST, _CARD = (4096, 256), (1 << 14, 1 << 13)
"""Examples and directions multiplied at a time: few, to stay in a processor's cache, or many, to
fill a GPU.
"""

_CHUNK = 1 << 15
"""Entries of X put on the grid at a time: they stay in a processor's cache from one step to the
next.
"""

_MANY = 16
"""With more offsets than this a processor is faster sorting the products than comparing them with
each offset.
"""


@dataclass(frozen=True, eq=False, repr=False)
class LinearGrid(Tunable):
    """Hypothesis i·J + j says 1 where w_i·z ≥ b_j, else 0. Two labels only.

    z is x on a grid: every feature is cut into 2·levels + 1 equal cells between its bounds,
    numbered −levels … levels.

    Args:
        directions: The w, one a row, whole numbers from −127 to 127.
        offsets: The b, J numbers in the units of w·z. They are rounded up to whole numbers, which
            changes no prediction.
        low: Public lower bounds of the features, one number for all or one for each. Values outside
            count as the bound.
        high: Upper bounds, likewise.
        levels: At most 127.
        array: Where the products are made: None: NumPy; "torch" or "cupy" (the extra `gpu`), or any
            other module that follows the array API standard.
        device: Of that library, for example "cuda". With torch, CUDA and Triton one kernel does it
            all, much faster.
        schema: Instead of low and high: the columns with their cells. Rows are `schema.codes(X).T`
            then, as `PrivateERM` makes them. A direction has one weight for each number, whose
            cells are spread over −levels … levels, 0 where it is missing; and one for each cell of
            a category, which is levels in that cell and 0 in others.

    Examples:
        >>> import numpy as np
        >>> halves = LinearGrid([[1, 0], [0, 1]], low=-10, high=10)
        >>> X, y = np.array([[-5.0, 3.0], [4.0, 2.0]]), np.array([0, 1])
        >>> shape = Shape(features=2, labels=2)
        >>> halves.size(shape), halves.score(X, y, shape).maximum()
        (2, 2)
    """

    binary: ClassVar[bool] = True

    directions: Any
    offsets: Any = (0,)
    _: KW_ONLY
    low: Bound = None
    high: Bound = None
    levels: int = LARGEST
    array: str | ModuleType | None = None
    device: Any = None
    schema: Schema | None = None

    def __post_init__(self) -> None:
        weights = _read_directions(self.directions)
        if whole("levels", self.levels) > LARGEST:
            raise ParameterError(
                "levels", self.levels, f"it must be at most {LARGEST}", f"For example {LARGEST}."
            )
        limit = (
            int(np.abs(weights.astype(np.int16)).sum(axis=1, dtype=np.int64).max()) * self.levels
        )
        if limit >= EXACT:
            raise ParameterError(
                "directions", f"of {weights.shape[1]} features",
                "the weights of a direction, added up without their signs, times levels must stay "
                "below 2^24",
                "Use smaller weights, fewer levels or fewer features.",
            )  # fmt: skip
        if self.schema is None:
            self._grid.cuts(weights.shape[1])
        else:
            _check_width(self.schema, self.low, self.high, weights.shape[1])
        # From here on numbers and names only: they can be pickled, a module cannot
        offsets = _read_offsets(self.offsets, limit)
        vars(self).update(
            directions=weights,
            offsets=offsets,
            _given=tuple(self.offsets),  # other levels have another limit
            low=None if self.schema else _plain_bound(self.low),
            high=None if self.schema else _plain_bound(self.high),
            array=_library(self.array),
        )
        _check(self._library, self.device)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {**super().get_params(deep), "offsets": vars(self)["_given"]}

    @classmethod
    def random(
        cls,
        *,
        directions: int,
        features: int | None = None,
        seed: int,
        offsets: Any = (0,),
        low: Bound = None,
        high: Bound = None,
        levels: int = LARGEST,
        array: str | ModuleType | None = None,
        device: Any = None,
        schema: Schema | None = None,
    ) -> Self:
        """Return directions with independent weights, uniform on −127 … 127.

        With a schema `features` follows from it.

        The seed is public and stands for the same directions everywhere: weights are the bytes of
        SHAKE-256 of "privmax LinearGrid SEED" in order, each less 127, leaving out bytes of 255.
        The first directions of a longer list are those of a shorter one.
        """
        seed = whole("seed", seed, least=0)
        if features is None and schema is None:
            raise ParameterError.required("features", "it says how many weights a direction has")
        width = whole("features", features) if schema is None else count_weights(schema)
        count = whole("directions", directions) * width
        stream = hashlib.shake_256(f"privmax LinearGrid {seed}".encode())
        kept = np.empty(0, np.uint8)
        length = count
        while len(kept) < count:  # one byte in 256 is left out, so this ends
            length += length // 128 + 64
            drawn = np.frombuffer(stream.digest(length), np.uint8)
            kept = drawn[drawn != 255]
        weights = (
            (kept[:count].astype(np.int16) - LARGEST).astype(np.int8).reshape(directions, width)
        )
        where = {"array": array, "device": device}
        return cls(weights, offsets, low=low, high=high, levels=levels, schema=schema, **where)

    def __repr__(self) -> str:
        number, features = self.directions.shape
        more = "" if self.schema is None else f", schema={self.schema!r}"
        return (
            f"LinearGrid(<{number} directions of {features} features>, <{len(self.offsets)} "
            f"offsets>, "
            f"low={self.low!r}, high={self.high!r}, levels={self.levels}, array={self.array!r}, "
            f"device={self.device!r}{more})"
        )

    def size(self, shape: Shape) -> int:
        check_two_labels(shape, "Half-spaces")
        features = self._width if self.schema is None else self.schema.features
        if features != shape.features:
            raise ParameterError(
                "directions", f"of {features} features", f"the data have {shape.features}",
                "Give a weight for every feature.",
            )  # fmt: skip
        return len(self.directions) * len(self.offsets)

    def dimension(self, shape: Shape) -> int:
        """At least the VC dimension: that of all half-spaces in as many weights."""
        self.size(shape)
        return self._width + 1

    def score(self, X: NDArray[Any], y: Codes, shape: Shape) -> Counts:
        """Count the rows that each half-space is right about.

        With torch, CUDA and Triton X and y may be tensors, too, on the card or not.
        """
        self.size(shape)
        tally = self._tally()
        split = self._splitting(tally, shape.features)
        for rows, labels in blocks(X, y):
            # Right are the rows with label 1 at or above a threshold, and of the others all but
            # those
            ones, others = split(rows, labels == 1)
            tally.add(ones, 1)
            tally.add(others, -1)
        negatives = int((y != 1).sum())
        return Counts(tally.counts().T.ravel() + negatives)

    def hypothesis(self, number: int, shape: Shape) -> HalfSpace:
        self.size(shape)
        direction, offset = divmod(number, len(self.offsets))
        weights = tuple(self.directions[direction].tolist())
        return HalfSpace(weights, self.offsets[offset], self._grid, self.schema)

    @property
    def _grid(self) -> Grid:
        return Grid(self.low, self.high, 2 * self.levels + 1)

    @property
    def _width(self) -> int:
        """The number of weights of a direction."""
        return int(self.directions.shape[1])

    @property
    def _library(self) -> str | None:
        return cast("str | None", self.array)

    def _splitting(self, tally: OffsetTally, features: int) -> Split:
        """Return what puts rows on the grid: the tally's own way, or the cells of the schema."""
        if self.schema is None:
            return tally.splitting(self._grid.cuts(features), self.levels)
        return _split_on_host(_placing(self._grid, self.schema, features))

    def _tally(self) -> OffsetTally:
        """Return the counter: the fused kernel where it can run."""
        if self._library == "torch" and str(self.device).startswith("cuda"):
            try:
                from privmax.learning.classes import linear_triton
            except ImportError:
                pass
            else:
                if self.directions.shape[1] <= linear_triton.MOST_FEATURES:
                    return linear_triton.Fused(self.directions, self.offsets, self.device)
        return Products(self.directions, self.offsets, self._library, self.device)


@dataclass(frozen=True, repr=False)
class HalfSpace:
    """Says 1 where direction·z ≥ offset, z being x on the grid.

    Examples:
        >>> HalfSpace((1,), 0, Grid(-10, 10, 255)).predict(np.array([[-1.0], [2.0]])).tolist()
        [0, 1]
    """

    direction: tuple[int, ...]
    offset: int
    grid: Grid
    schema: Schema | None = None

    def __repr__(self) -> str:
        return f"<{self.rule()}>"

    def rule(self) -> str:
        """Return the rule in words."""
        names = [f"z{place}" for place in range(len(self.direction))]
        levels = self.grid.cells // 2
        where = (
            f"z0 is the cell of x0, −{levels} … {levels}, between low={self.grid.low!r} and "
            f"high={self.grid.high!r}"
        )
        if self.schema is not None:
            names = _weight_names(self.schema)
            where = f"a number is its cell, −{levels} … {levels}, and a category 0 or {levels}"
        weights = zip(self.direction, names, strict=True)
        terms = " ".join(f"{weight:+d}·{name}" for weight, name in weights if weight)
        return f"1 where {terms or '0'} ≥ {self.offset}, else 0; {where}"

    def predict(self, X: NDArray[Any]) -> Codes:
        weights = np.array(self.direction, np.int64)
        place = _placing(self.grid, self.schema, X.shape[1])
        says = np.empty(len(X), np.intp)
        for rows, part in blocks(X, says):
            part[:] = place(rows) @ weights >= self.offset
        return says


class OffsetTally(Protocol):
    """Counts of the examples at or above the threshold, by offset and direction.

    It is private.
    """

    def splitting(self, cuts: list[NDArray[np.float64]], levels: int) -> Split:
        """Return a function that puts rows of numbers on the grid of these cuts, for `add`."""
        ...

    def add(self, cells: Any, sign: int) -> None:
        """Add so many, or take so many away."""
        ...

    def counts(self) -> NDArray[np.int64]:
        """Return what came together, one row an offset."""
        ...


class Products:
    """`OffsetTally` by matrix products, in any library that follows the array API standard.

    Args:
        block: How many examples and how many directions are multiplied at a time; None: what suits
            the device.
    """

    def __init__(
        self,
        directions: Bytes,
        offsets: Sequence[int],
        library: str | None = None,
        device: Any = None,
        block: tuple[int, int] | None = None,
    ) -> None:
        self._xp, self._library = _namespace(library), library
        self._where = _device_options(library, device)
        self._block = block or (_HOST if device is None else _CARD)
        self._number, self._offsets = len(directions), offsets
        self._directions = self._xp.asarray(
            directions.copy(), **self._where
        )  # torch warns of what it cannot write to
        self._counts = self._xp.zeros(
            (len(offsets), len(directions)), dtype=self._xp.int64, **self._where
        )

    def __repr__(self) -> str:
        return "Products(<private>)"

    def splitting(self, cuts: list[NDArray[np.float64]], levels: int) -> Split:
        return _split_on_host(lambda rows: place_on_grid(rows, cuts, levels))

    def add(self, cells: Bytes, sign: int) -> None:
        xp, (examples, directions) = self._xp, self._block
        for start in range(0, len(cells), examples):
            rows = xp.asarray(
                xp.asarray(cells[start : start + examples], **self._where), dtype=xp.float32
            )
            for first in range(0, self._number, directions):
                part = slice(
                    first, min(first + directions, self._number)
                )  # the standard wants no slice past the end
                weights = xp.asarray(self._directions[part, :], dtype=xp.float32)
                self._compare(xp.matmul(weights, rows.T), part, sign)

    def _compare(self, products: Any, part: slice, sign: int) -> None:
        xp = self._xp
        if xp is np and len(self._offsets) > _MANY:
            products.sort(axis=1)
            for direction, row in enumerate(products, part.start):
                # For a sorted row this is the number of products at or above each offset
                self._counts[:, direction] += sign * (
                    len(row) - np.searchsorted(row, self._floats, side="left")
                )
            return
        for number, offset in enumerate(self._offsets):
            above = xp.asarray(products >= offset, dtype=xp.int8)
            self._counts[number, part] += sign * xp.sum(above, axis=1, dtype=xp.int32)

    @property
    def _floats(self) -> NDArray[np.float32]:
        return np.array(self._offsets, np.float32)

    def counts(self) -> NDArray[np.int64]:
        there = self._counts
        if self._library in _ADAPTED:
            there = importlib.import_module("array_api_compat").to_device(there, "cpu")
        return np.asarray(there)


def _read_directions(directions: Any) -> Bytes:
    """Directions, if that is what they are; a copy that no one can change."""
    try:
        table = np.asarray(directions)
    except ValueError:  # rows of different lengths
        table = np.empty(0)
    good = table.ndim == 2 and table.size and table.dtype.kind in "iuf"
    if (
        not good
        or not ((table >= -LARGEST) & (table <= LARGEST) & (table == np.floor(table))).all()
    ):
        raise ParameterError(
            "directions", f"an array of {table.dtype} of shape {table.shape}",
            f"it must be a table of whole numbers from −{LARGEST} to {LARGEST}, one direction a "
            f"row",
            "Scale and round the weights, or use LinearGrid.random(directions=, features=, seed=, "
            "…).",
        )  # fmt: skip
    weights = table.astype(np.int8)
    weights.flags.writeable = False
    return weights


def _read_offsets(offsets: Any, limit: int) -> tuple[int, ...]:
    """Whole thresholds with the same effect on whole numbers from −limit to limit."""
    listed: Any = offsets.tolist() if isinstance(offsets, np.ndarray) else offsets
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence) or not len(listed):
        raise ParameterError(
            "offsets", offsets, "it must be a list of numbers, at least one", "For example [0]."
        )
    numbers: Sequence[Number] = listed
    return tuple(
        min(max(math.ceil(exact("offsets", number)), -limit), limit + 1) for number in numbers
    )


def _plain_bound(bound: Bound) -> Bound:
    """Return a bound as floats."""
    floats = np.asarray(bound, np.float64)
    return float(floats) if floats.ndim == 0 else tuple(floats.tolist())


def place_on_grid(rows: NDArray[Any], cuts: list[NDArray[np.float64]], levels: int) -> Bytes:
    """Rows of X as whole numbers from −levels to levels: `cells_of` of every feature, less levels.

    The cell is guessed by dividing, checked against the two cuts beside it, and searched for if the
    guess is wrong.

    Examples:
        >>> place_on_grid(np.array([[-9.0], [0.0], [9.0]]), Grid(-9, 9, 3).cuts(1), 1).tolist()
        [[-1], [0], [1]]
    """
    features, last = len(cuts), 2 * levels
    edges = np.pad(
        np.stack(cuts), ((0, 0), (1, 1)), constant_values=((0, 0), (-math.inf, math.inf))
    )
    placed = np.empty(rows.shape, np.int8)
    several = max(1, _CHUNK // features)
    for start in range(0, len(rows), several):
        values = as_numbers(np.asarray(rows[start : start + several]))
        with np.errstate(all="ignore"):  # whatever overflows or is no number fails the check
            guess = values - edges[:, 1]
            guess /= (edges[:, -2] - edges[:, 1]) / (last - 1)
            cells = np.fmin(np.fmax(guess + 1, 0), last).astype(np.intp)
        edge = cells + np.arange(features) * edges.shape[1]
        right = (edges.take(edge) <= values) & (values < edges.take(edge + 1))
        for feature in np.flatnonzero(~right.all(axis=0)).tolist():
            wrong = ~right[:, feature]
            cells[wrong, feature] = cells_of(values[wrong, feature], cuts[feature])
        placed[start : start + several] = cells - levels
    return placed


def _placing(grid: Grid, schema: Schema | None, features: int) -> Callable[[NDArray[Any]], Bytes]:
    """Return what puts rows on the grid, be they numbers or cells of a schema."""
    levels = grid.cells // 2
    if schema is None:
        cuts = grid.cuts(features)
        return lambda rows: place_on_grid(rows, cuts, levels)
    tables = place_cells(schema, levels)
    return lambda rows: np.concatenate(
        [table[rows[:, place]] for place, table in enumerate(tables)], axis=1
    )


def _split_on_host(place: Callable[[NDArray[Any]], Bytes]) -> Split:
    def split(rows: NDArray[Any], yes: NDArray[np.bool_]) -> tuple[Bytes, Bytes]:
        cells = place(rows)
        return cells[yes], cells[~yes]

    return split


def place_cells(schema: Schema, levels: int) -> list[Bytes]:
    """Of every column, [cell, weight]: where a cell stands for each weight of the column.

    Examples:
        >>> from privmax.learning import Category
        >>> from privmax.learning import Number as Numbers
        >>> schema = Schema(age=Numbers(0, 9, cells=3, missing=True), work=Category(["a"]))
        >>> [table.tolist() for table in place_cells(schema, 5)]
        [[[0], [-5], [0], [5]], [[5, 0], [0, 5]]]
    """
    tables = []
    for column in schema.columns:
        if not column.ordered:
            tables.append((np.eye(column.cells) * levels).astype(np.int8))
            continue
        missing = [] if column.missing_cell is None else [0]
        cuts = column.cells - 1 - len(missing)
        steps = max(1, cuts)
        cells = (2 * levels * np.arange(steps + 1) + steps // 2) // steps - levels
        placed = cells[: cuts + 1] if cuts else np.zeros(1, np.int64)
        tables.append(np.array([*missing, *placed.tolist()], np.int8)[:, None])
    return tables


def count_weights(schema: Schema) -> int:
    """Count the weights of a direction.

    There is one for each ordered column, and one for each cell of others.

    Examples:
        >>> from privmax.learning import Category
        >>> count_weights(Schema(work=Category(["Private", "State-gov"])))
        3
    """
    return len(_weight_names(schema))


def _weight_names(schema: Schema) -> list[str]:
    return [
        name
        for column in schema.columns
        for name in (
            [column.name]
            if column.ordered
            else [f"[{column.describe(cell)}]" for cell in range(column.cells)]
        )
    ]


def _check_width(schema: Schema, low: Bound, high: Bound, weights: int) -> None:
    if not isinstance(schema, Schema) or low is not None or high is not None:
        raise ParameterError(
            "schema", f"<{type(schema).__name__}>", "it must be a Schema, without low and high",
            "Give a Schema, or low and high.",
        )  # fmt: skip
    if count_weights(schema) != weights:
        raise ParameterError(
            "directions", f"of {weights} weights", f"the schema needs {count_weights(schema)}: one "
            "for each number, flag or date, one for each cell of a category",
            "Use LinearGrid.random(schema=…).",
        )  # fmt: skip


def _namespace(library: str | None) -> Any:
    if library is None:
        return np
    try:
        return importlib.import_module(_ADAPTED.get(library, library))
    except (ImportError, ValueError):
        raise ParameterError(
            "array", library, "there is no such module here, or array-api-compat is missing",
            explain_install("gpu") + " Add the torch or CuPy that fits your card. Or leave array= "
            "out, to use NumPy.",
        ) from None  # fmt: skip


def _device_options(library: str | None, device: Any) -> dict[str, Any]:
    """Return the device as an argument of the library's functions.

    To CuPy "cuda" is no name, but it has no other device.
    """
    return {} if device is None or (library == "cupy" and device == "cuda") else {"device": device}


def _library(array: object) -> str | None:
    """Return the name of an array library."""
    name = array.__name__ if isinstance(array, ModuleType) else array
    if name is None or name == "numpy":
        return None
    if not isinstance(name, str) or not name:
        raise ParameterError(
            "array",
            array,
            'it must be None, "torch", "cupy" or a module',
            "Leave it out for NumPy.",
        )
    return name.removeprefix("array_api_compat.")


def _check(library: str | None, device: object) -> None:
    """Find out before any data are seen whether products can be made."""
    if library is None and device is not None:
        raise ParameterError(
            "device", device, "NumPy has none to choose", 'Give array="torch" or "cupy" with it.'
        )
    xp = _namespace(library)
    if not hasattr(xp, "matmul"):
        raise ParameterError(
            "array",
            library,
            "it is not a module of arrays",
            'Use "torch" or "cupy", or leave it out.',
        )
    try:
        xp.zeros(1, dtype=xp.float32, **_device_options(library, device))
    except Exception as error:  # each library fails in its own way
        raise ParameterError(
            "device",
            device,
            f"{library} cannot use it ({type(error).__name__})",
            'For example "cuda", or none.',
        ) from None
