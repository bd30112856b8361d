"""Kinds of columns of a schema, one file each. A kind that is imported here is known everywhere."""

from __future__ import annotations

from privmax.learning.kinds.base import KINDS, Kind
from privmax.learning.kinds.category import Category
from privmax.learning.kinds.contract import Cells, Column
from privmax.learning.kinds.date import Date
from privmax.learning.kinds.flag import Flag
from privmax.learning.kinds.number import Number

__all__ = ["KINDS", "Category", "Cells", "Column", "Date", "Flag", "Kind", "Number"]
