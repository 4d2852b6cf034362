"""On the workers: fingerprints within a distance, exactly.

With k bits that may differ, a fingerprint is cut in k + 1 blocks: two that match agree in one at
least (Manku, Jain and Das Sarma, WWW 2007, section 3). Each fingerprint is sent once for each
block, and a pair is reported by the first block in which it agrees: so once.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.hamming import pairs
from neardup.spark.tables import arrays_of, batches_of, flat, part_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["BLOCKS", "block_rows", "near_pairs"]

BLOCKS: Final = "p int, block int, number long, score double, within string, codes binary"


def _masks(distance: int, bits: int) -> list[int]:
    """The blocks as masks: distance + 1 runs of bits, as equal as can be; some may be empty."""
    cuts = [bits * i // (distance + 1) for i in range(distance + 2)]
    return [(1 << end) - (1 << begin) for begin, end in pairwise(cuts)]


def _words(mask: int, width: int) -> Any:
    return np.array([mask >> 64 * i & (1 << 64) - 1 for i in range(width)], np.uint64)


def block_rows(
    batches: Iterable[pa.RecordBatch], distance: int, bits: int, parts: int
) -> Iterator[pa.RecordBatch]:
    """Send each document once for each block; DOCUMENTS to BLOCKS."""
    for batch in batches:
        codes = _codes(batch)
        for block, mask in enumerate(_masks(distance, bits)):
            mixed = np.full(len(codes), block, np.uint64)
            for word in (codes & _words(mask, codes.shape[1])).T:
                mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
                mixed ^= mixed >> np.uint64(29)
            columns = {
                "p": pa.array(part_of(mixed, parts)),
                "block": pa.array(np.full(len(codes), block, np.int32)),
                **{x: batch.column(x) for x in ("number", "score", "within", "codes")},
            }
            yield pa.record_batch(columns)


def near_pairs(
    batches: Iterable[pa.RecordBatch], distance: int, bits: int
) -> Iterator[pa.RecordBatch]:
    """Find the pairs within the distance among BLOCKS; gives EDGES, each once."""
    table = whole(batches)
    if table is None:
        return
    masks = _masks(distance, bits)
    (blocks,) = arrays_of(table, "block")
    for block in np.unique(blocks).tolist():
        part = table.filter(pa.array(blocks == block))
        codes = _codes(part)
        found = pairs(codes, distance, bits, workers=1)
        left, right = arrays_of(found, "left", "right")
        differ = codes[left] ^ codes[right]
        mine = np.ones(len(left), np.bool_)
        for earlier in masks[:block]:
            mine &= (differ & _words(earlier, codes.shape[1])).any(axis=1)
        mine &= ~(differ & _words(masks[block], codes.shape[1])).any(axis=1)
        within = part.column("within").cast(pa.string()).combine_chunks()
        groups = within.dictionary_encode(null_encoding="encode").indices.to_numpy()
        mine &= groups[left] == groups[right]
        yield from _edges(part, left[mine], right[mine], found, mine)


def _edges(
    part: pa.Table, left: Any, right: Any, found: pa.Table, mine: Any
) -> Iterator[pa.RecordBatch]:
    numbers, score = arrays_of(part, "number", "score")
    swapped = numbers[left] > numbers[right]
    low, high = np.where(swapped, right, left), np.where(swapped, left, right)
    columns = {
        "left": numbers[low],
        "right": numbers[high],
        "left_score": score[low],
        "right_score": score[high],
        "distance": np.asarray(found.column("distance").to_numpy(), np.int32)[mine],
        "similarity": pa.nulls(len(low), pa.float64()),
    }
    yield from batches_of(pa.table(columns))


def _codes(rows: pa.Table | pa.RecordBatch) -> Any:
    codes = flat(rows.column("codes"))[0]
    return codes.reshape(len(rows), -1) if len(rows) else np.zeros((0, 1), np.uint64)
