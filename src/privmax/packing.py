"""Long lists of items as a ledger keeps them: compressed text, which reads back exactly."""

from __future__ import annotations

import json
import zlib
from base64 import b85decode, b85encode
from typing import Any

FEW = 1000
"""Up to so many items a ledger keeps as a list; more of them it keeps compressed."""


LARGEST = 1 << 28
"""Bytes of text that are compressed, or come of it: a few forged ones may stand for any number."""


def pack(written: list[Any]) -> list[Any] | str:
    """Return a list of JSON as it is if it is short, and compressed text if it is long.

    One beyond all bounds comes back as it is, and does not fit into an event.
    """
    if len(written) <= FEW:
        return written
    text = json.dumps(written, ensure_ascii=False, separators=(",", ":"))
    data = text.encode("utf-8", "surrogatepass")
    return written if len(data) > LARGEST else b85encode(zlib.compress(data, 9)).decode()


def unpack(packed: Any) -> list[Any]:
    """Return the list that was packed.

    Raises:
        ValueError: It is something else.

    Examples:
        >>> unpack(pack(["tea"] * 5000)) == ["tea"] * 5000
        True
    """
    if isinstance(packed, str):
        try:
            opened = zlib.decompressobj()
            data = opened.decompress(b85decode(packed), LARGEST + 1)
            if not opened.eof or len(data) > LARGEST:
                raise ValueError("cut off, or too long")
            packed = json.loads(data.decode("utf-8", "surrogatepass"))
        except (zlib.error, RecursionError) as error:
            raise ValueError(type(error).__name__) from None
    if not isinstance(packed, list):
        raise ValueError(f"{type(packed).__name__} in place of a list")
    return packed
