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

from neardup.hamming import cross_pairs, pairs
from neardup.spark.workers.tables import arrays_of, batches_of, flat, mixed, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["BLOCKS", "CARRIED", "ROUTED", "blocks_of", "near_pairs"]

BLOCKS: Final = "key long, block int, number long, score double, within string, codes binary"
ROUTED: Final = f"p int, side int, {BLOCKS}"
CARRIED: Final = ("block", "number", "score", "within", "codes")


def _masks(distance: int, bits: int) -> list[int]:
    """The blocks as masks: distance + 1 runs of bits, as equal as can be; some may be empty."""
    cuts = [bits * i // (distance + 1) for i in range(distance + 2)]
    return [(1 << end) - (1 << begin) for begin, end in pairwise(cuts)]


def _words(mask: int, width: int) -> Any:
    return np.array([mask >> 64 * i & (1 << 64) - 1 for i in range(width)], np.uint64)


def blocks_of(
    batches: Iterable[pa.RecordBatch], distance: int, bits: int
) -> Iterator[pa.RecordBatch]:
    """List the blocks of each document; DOCUMENTS (and `leads`, if there) to BLOCKS."""
    for batch in batches:
        codes = _codes(batch)
        carried = [x for x in (*CARRIED, "leads") if x in batch.schema.names and x != "block"]
        for block, mask in enumerate(_masks(distance, bits)):
            found = np.full(len(codes), block, np.uint64)
            for word in (codes & _words(mask, codes.shape[1])).T:
                found = mixed(found ^ word)
            columns = {
                "key": pa.array(found.view(np.int64)),
                "block": pa.array(np.full(len(codes), block, np.int32)),
                **{x: batch.column(x) for x in carried},
            }
            yield pa.record_batch(columns)


def near_pairs(
    batches: Iterable[pa.RecordBatch], distance: int, bits: int, leads: bool
) -> Iterator[pa.RecordBatch]:
    """Find the pairs within the distance among routed BLOCKS; gives EDGES, each once.

    Holds the partition's rows, 60 bytes each, and search tables. With `leads` the left one is of
    side 1, else of the lower number.
    """
    table = whole(batches)
    if table is None:
        return
    blocks, sides = arrays_of(table, "block", "side")
    for block in np.unique(blocks).tolist():
        for is_cross in (False, True):
            mine = (blocks == block) & ((sides > 0) == is_cross)
            if mine.any():
                part = table.filter(pa.array(mine))
                found = _of_block(part, block, distance, bits)
                yield from _edges(part, *found, leads)


def _of_block(part: pa.Table, block: int, distance: int, bits: int) -> tuple[Any, Any, Any]:
    """The pairs that agree in this block first: rows of both, and distances."""
    codes, masks = _codes(part), _masks(distance, bits)
    left, right, apart = _joined(codes, arrays_of(part, "side")[0], distance, bits)
    differ = codes[left] ^ codes[right]
    (keys,) = arrays_of(part, "key")
    mine = keys[left] == keys[right]
    for earlier in masks[:block]:
        mine &= (differ & _words(earlier, codes.shape[1])).any(axis=1)
    mine &= ~(differ & _words(masks[block], codes.shape[1])).any(axis=1)
    within = part.column("within").cast(pa.string()).combine_chunks()
    groups = within.dictionary_encode(null_encoding="encode").indices.to_numpy()
    mine &= groups[left] == groups[right]
    return left[mine], right[mine], apart[mine]


def _joined(codes: Any, sides: Any, distance: int, bits: int) -> tuple[Any, Any, Any]:
    """Rows of the pairs, and their distances: among all, or of side 1 with side 2."""
    if not sides.any():
        found = pairs(codes, distance, bits, workers=1)
        left, right, apart = arrays_of(found, "left", "right", "distance")
        return left, right, apart
    ones, twos = np.flatnonzero(sides == 1), np.flatnonzero(sides == 2)
    if not (ones.size and twos.size):
        return ones[:0], ones[:0], ones[:0]
    batches = list(cross_pairs(codes[ones], [codes[twos]], distance, bits, workers=1))
    if not batches:
        return ones[:0], ones[:0], ones[:0]
    left, right, apart = arrays_of(pa.Table.from_batches(batches), "left", "right", "distance")
    return ones[left], twos[right], apart


def _edges(
    part: pa.Table, left: Any, right: Any, apart: Any, leads: bool
) -> Iterator[pa.RecordBatch]:
    numbers, score = arrays_of(part, "number", "score")
    swapped = (numbers[left] > numbers[right]) & (not leads)
    low, high = np.where(swapped, right, left), np.where(swapped, left, right)
    columns = {
        "left": numbers[low],
        "right": numbers[high],
        "left_score": score[low],
        "right_score": score[high],
        "distance": np.asarray(apart, np.int32),
        "similarity": pa.nulls(len(low), pa.float64()),
    }
    yield from batches_of(pa.table(columns))


def _codes(rows: pa.Table | pa.RecordBatch) -> Any:
    codes = flat(rows.column("codes"))[0]
    return codes.reshape(len(rows), -1) if len(rows) else np.zeros((0, 1), np.uint64)
