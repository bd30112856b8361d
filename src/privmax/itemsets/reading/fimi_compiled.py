"""The parser of FIMI files, compiled.

It needs numba, so only `fimi.py` imports it, where numba is installed.

`fimi.py` holds the same parser in NumPy and says what both accept; tests hold them equal on any
bytes.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(cache=True, nogil=True)
def newlines(text: NDArray[np.uint8]) -> int:
    """Return how many there are."""
    count = 0
    for byte in text:
        count += byte == 10
    return count


@numba.njit(cache=True, nogil=True)
def parse(
    text: NDArray[np.uint8], offsets: NDArray[np.int64], codes: NDArray[np.int32]
) -> tuple[int, int]:
    """Fill `offsets` and `codes`; return how many numbers there are, and the largest.

    `offsets` needs a place more than there are lines, `codes` one for every two bytes, rounded up.
    The count is −1 where something is wrong: someone else may find out what.
    """
    size = len(text)
    row = 0
    count = 0
    largest = -1
    value = 0
    # every bit any value had: one of 2^31 or more leaves a high bit here long before it can
    # overflow
    ever = 0
    within = False
    offsets[0] = 0
    for at in range(size):
        byte: Any = text[at]
        if 48 <= byte <= 57:
            value = 10 * value + (byte - 48)
            ever |= value
            within = True
            continue
        if within:
            codes[count] = value
            count += 1
            largest = max(largest, value)
            value = 0
            within = False
        if byte == 10:
            row += 1
            offsets[row] = count
        elif byte == 13:
            if at + 1 < size and text[at + 1] != 10:
                return -1, -1
        elif byte != 32 and byte != 9:
            return -1, -1
    if within:
        codes[count] = value
        count += 1
        largest = max(largest, value)
    if size and text[size - 1] != 10:
        offsets[row + 1] = count
    return (-1, -1) if ever >> 31 else (count, largest)
