"""Tables and columns in memory, one file per library: `table_of` and `column_of` find which.

No library is imported here: an object can only be one of pandas if pandas is already loaded.
"""

from __future__ import annotations

import sys

import numpy as np

from privmax.sources.containers.arrays import ArrayColumn, ListColumn
from privmax.sources.containers.arrow import ArrowColumn, ArrowTable
from privmax.sources.containers.pandas import PandasColumn, PandasTable
from privmax.sources.containers.polars import PolarsColumn, PolarsTable
from privmax.sources.table import Table, TableColumn


def table_of(data: object) -> Table | None:
    """Return the table that data is; None: it is not a frame of pandas, polars or Arrow.

    Examples:
        >>> import pyarrow
        >>> table_of(pyarrow.table({"a": [1]})).names, table_of([["a"]])
        (['a'], None)
    """
    pandas, polars, arrow = map(sys.modules.get, ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return PandasTable(data)
    if polars is not None and isinstance(data, polars.DataFrame):
        return PolarsTable(data)
    if arrow is not None and isinstance(data, (arrow.Table, arrow.RecordBatch)):
        return ArrowTable(data)
    return None


def column_of(values: object) -> TableColumn:
    """Return the column that values are: of pandas, polars, Arrow or NumPy, or any other iterable.

    Examples:
        >>> column_of(["tea"]), column_of(np.array([1]))
        (ListColumn(<private>), ArrayColumn(<private>))
    """
    if isinstance(values, np.ndarray):
        return ArrayColumn(values)
    libraries = {kind.__module__.partition(".")[0] for kind in type(values).__mro__}
    readers = {"pyarrow": ArrowColumn, "polars": PolarsColumn, "pandas": PandasColumn}
    kinds = [reader for library, reader in readers.items() if library in libraries]
    return kinds[0](values) if kinds else ListColumn(values)
