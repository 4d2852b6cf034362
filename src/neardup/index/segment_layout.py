"""What the arrays of a segment's file are, and whether a header places them as they must be."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

__all__ = ["PAGE", "layout_fault"]

PAGE: Final = 4096
KINDS: Final = {
    "words": "<u8", "numbers": "<i8", "ids": "|u1", "ends": "<i8", "slots": "<u4", "masks": "<u8",
    "table_words": "<u8", "table_rows": "<u4", "table_starts": "<u4", "table_factors": "<u8",
    "features": "<u8", "offsets": "<i8", "set_of": "<u4", "members": "<u4", "member_starts": "<i8",
    "sizes": "<i8", "firsts": "<i8", "order_keys": "<u8", "order_ranks": "<u4", "starts": "<u4",
    "entries": "<u8", "rest_starts": "<u4", "rest_entries": "<u8", "sketches": "<u8",
    "beside": "|u1", "beside_ends": "<i8",
}  # fmt: skip
NAMES: Final = {"ends": "ids", "beside_ends": "payloads"}
LIMITS: Final = (
    "masks", "table_factors", "offsets", "set_of", "members", "member_starts", "sizes", "firsts",
    "order_keys", "order_ranks", "starts", "rest_starts",
)  # fmt: skip
"""Arrays by which kernels find their way in the others: verified when a file is opened."""


def layout_fault(file: Any) -> str:
    """What is wrong with the places and shapes that a header names; "" if they agree.

    Only the ends of arrays are looked at, and the small ones, so that opening stays quick. With
    this, and with the limits that the kernels keep to, no content of a file can make them read
    outside of it.
    """
    header = file.header
    entries, rows = header["arrays"], header["rows"]
    for name, entry in entries.items():
        nbytes = np.dtype(KINDS[name]).itemsize * math.prod(entry["shape"])
        if entry["dtype"] != KINDS[name] or min(entry["shape"]) < 0 or entry["offset"] % PAGE:
            return f"its header has {name} as {entry}"
        if not 0 <= entry["offset"] <= file.nbytes - nbytes:
            return f"{name} lies beyond its end"
    shapes = {name: tuple(entry["shape"]) for name, entry in entries.items()}
    for name, shape in _shapes(header, shapes).items():
        if shapes[name] != shape:
            return f"{name} has shape {shapes[name]}, not {shape}"
    slots = math.prod(shapes.get("slots", ()))
    if not header["ascending"] and (slots <= rows or slots & (slots - 1)):
        return f"{slots:,} slots for {rows:,} ids"
    for name, end in _ends(header, shapes).items():
        if file.array(name)[[0, -1]].tolist() != [0, end]:
            return f"its {NAMES.get(name, name)} do not end where they are said to"
    broken = file.broken_arrays(LIMITS)
    return f"in {', '.join(broken)}" if broken else ""


def _shapes(header: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The shapes that arrays must have, by the header and by how many tables there are."""
    rows = header["rows"]
    wanted: dict[str, Any] = {"numbers": (rows,)}
    wanted |= {"ids": (8 * rows,)} if header["ids"] == "int" else {"ends": (rows + 1,)}
    if "beside" in found:
        wanted["beside_ends"] = (rows + 1,)
    if "set_of" in found:
        return wanted | _shapes_of_sets(rows, found)
    width = -(-header["bits"] // 64)
    wanted["words"] = (rows, width)
    if header["plan"] is not None and "table_factors" in found:
        tables, keys = found["masks"][0], (1 << header["plan"]["key_bits"]) + 1
        wanted |= {"masks": (tables, width), "table_factors": (tables, width)}
        wanted |= {"table_words": (tables, rows * width), "table_rows": (tables, rows)}
        wanted["table_starts"] = (tables, keys)
    return wanted


def _shapes_of_sets(rows: int, found: dict[str, Any]) -> dict[str, Any]:
    """As `_shapes`, of an index by similarity."""
    (places,), (sizes,), (keys,) = found["offsets"], found["sizes"], found["order_keys"]
    buckets = [1 << max(1, found[name][0].bit_length() - 1) for name in ("starts", "rest_starts")]
    return {
        "offsets": (max(places, 1),), "set_of": (rows,), "members": (rows,),
        "member_starts": (places,), "firsts": (sizes + 1,),
        "order_keys": (1 << (keys - 1).bit_length(),), "order_ranks": (keys,),
        "sketches": (places - 1, min(max(1, found["sketches"][-1]), 4)),
        "starts": (buckets[0] + 1,), "rest_starts": (buckets[1] + 1,),
    }  # fmt: skip


def _ends(header: dict[str, Any], shapes: dict[str, Any]) -> dict[str, int]:
    """What arrays that begin at 0 must end with."""
    ends = {} if header["ids"] == "int" else {"ends": shapes["ids"][0]}
    if "beside" in shapes:
        ends["beside_ends"] = shapes["beside"][0]
    if "set_of" not in shapes:
        return ends
    return ends | {
        "offsets": shapes["features"][0], "member_starts": header["rows"],
        "firsts": shapes["offsets"][0] - 1, "starts": shapes["entries"][0],
        "rest_starts": shapes["rest_entries"][0],
    }  # fmt: skip
