"""Compare every pair of rows, tile by tile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.kernels.hamming.bucket_join import any_near, distance_between, report
from neardup.kernels.hamming.hash_partition import Rows
from neardup.kernels.jit import kernel

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Codes, RowNumbers

TILE_ROWS = 4096


@kernel
def scan_rows(
    codes: Codes, ids: RowNumbers, first: int, last: int, agree: Bytes, blocks: Any, output: Any
) -> None:
    """Report the pairs of rows first..last-1 with every later row; O((last - first) * n)."""
    lanes, distance, rows = blocks.multipliers, blocks.distance, Rows(codes, ids)
    total = len(codes)
    for tile in range(first, total, TILE_ROWS):
        end = min(tile + TILE_ROWS, total)
        for i in range(first, min(last, end)):
            # Every later row is some tile's: a pair is met once, from its smaller row.
            start = max(tile, i + 1)
            if not any_near(codes, i, start, end, distance, lanes):
                continue
            for j in range(start, end):
                if distance_between(codes, i, codes, j, lanes) <= distance:
                    report(rows, i, j, blocks.rules, agree, blocks, output)
