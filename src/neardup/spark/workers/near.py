"""On the workers: fingerprints within a distance, exactly.

With k bits that may differ, a fingerprint is cut in k + 1 blocks: two that match agree in at least
one (Manku, Jain and Das Sarma, WWW 2007, section 3). Each fingerprint is sent once for each block,
and a pair is reported once, by the first block in which it agrees.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from neardup.hamming import cross_pairs, labels_of_block, pairs_of_block
from neardup.spark.workers.components import roots_of
from neardup.spark.workers.partition_rows import arrays_of, batches_of, flat, mixed, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from neardup.runtime.types import Codes, Masks, Rows
    from neardup.spark.engine import Settings

__all__ = ["blocks_of", "blocks_schema", "carried_of", "near_links", "near_pairs"]

_KINDS: Final = {"block": "int", "number": "long", "score": "double", "within": "string"}


def carried_of(settings: Settings) -> tuple[str, ...]:
    """The columns sent with a block of a fingerprint: its words, `score` and `within` if any."""
    names = ["block", "number"]
    names += ["score"] * settings.has_scores + ["within"] * settings.has_within
    return (*names, *(f"word{w}" for w in range(-(-settings.bits // 64))))


def blocks_schema(carried: tuple[str, ...]) -> str:
    """The schema of `blocks_of`."""
    return ", ".join(["key long", *(f"{name} {_KINDS.get(name, 'long')}" for name in carried)])


def _masks(distance: int, bits: int) -> Masks:
    """The blocks as masks, uint64 (distance + 1, width): runs of bits, as equal as can be.

    Where there are more of them than bits, some are empty.
    """
    cuts = [bits * i // (distance + 1) for i in range(distance + 2)]
    masks = [(1 << end) - (1 << begin) for begin, end in pairwise(cuts)]
    words = [[mask >> 64 * w & (1 << 64) - 1 for w in range(-(-bits // 64))] for mask in masks]
    return np.array(words, np.uint64)


def blocks_of(
    batches: Iterable[pa.RecordBatch], settings: Settings, blocks: range
) -> Iterator[pa.RecordBatch]:
    """List some blocks of each document: DOCUMENTS, and `leads` if any, to `blocks_schema`."""
    masks = _masks(settings.match.distance or 0, settings.bits)
    names = [x for x in (*carried_of(settings), "leads") if x != "block"]
    for batch in batches:
        codes = flat(batch.column("codes"))[0].reshape(len(batch), -1)
        columns = {
            f"word{w}": pa.array(word.view(np.int64)) for w, word in enumerate(codes.T.copy())
        }
        columns |= {x: batch.column(x) for x in names if x in batch.schema.names}
        carried = {x: columns[x] for x in names if x in columns}
        for block in blocks:
            keys = np.full(len(codes), block, np.uint64)
            for word in (codes & masks[block]).T:
                keys = mixed(keys ^ word)
            own = {"key": keys.view(np.int64), "block": np.full(len(codes), block, np.int32)}
            yield pa.record_batch(own | carried)


def near_pairs(
    batches: Iterable[pa.RecordBatch], settings: Settings, *, leads: bool
) -> Iterator[pa.RecordBatch]:
    """Find the pairs within the distance among routed blocks; gives EDGES, each once.

    Memory: the partition's rows, 40 bytes each, and search tables. With `leads` the left document
    is of side 1, else it has the lower number.
    """
    for part, block in _of_blocks(batches):
        yield from _edges(part, *_of_block(part, block, settings), leads)


def near_links(batches: Iterable[pa.RecordBatch], settings: Settings) -> Iterator[pa.RecordBatch]:
    """Link the documents within the distance among routed blocks; gives PAIRS.

    These are pairs of `near_pairs`, or others that match, and join the same documents. They are
    fewer than rows, however many pairs match.
    """
    for part, block in _of_blocks(batches):
        if settings.has_within:
            left, right, _ = _of_block(part, block, settings)
            roots = roots_of(left, right, len(part))
        else:
            distance, bits = settings.match.distance or 0, settings.bits
            roots = labels_of_block(
                _codes(part), _masks(distance, bits)[: block + 1], distance, bits
            )
        (numbers,) = arrays_of(part, "number")
        rows = np.flatnonzero(roots != np.arange(len(part)))
        yield from batches_of(pa.table({"left": numbers[roots[rows]], "right": numbers[rows]}))


def _of_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Table, int]]:
    """The rows of each block in a partition, and apart those of each two pieces of a block.

    A pair is given once in all: only where its keys are equal, and by the first block in which it
    agrees.
    """
    table = whole(batches)
    if table is None:
        return
    blocks, sides = arrays_of(table, "block", "side")
    for block in np.flatnonzero(np.bincount(blocks)).tolist():
        for is_cross in (False, True):
            mine = (blocks == block) & ((sides > 0) == is_cross)
            if mine.any():
                yield table if mine.all() else table.filter(pa.array(mine)), block


def _codes(part: pa.Table) -> Codes:
    words = arrays_of(part, *(x for x in part.column_names if x.startswith("word")))
    return np.stack(words, 1).view(np.uint64)


def _of_block(part: pa.Table, block: int, settings: Settings) -> tuple[Rows, Rows, Rows]:
    """The pairs whose first equal block is `block`: rows of both, and distances."""
    keys, sides = arrays_of(part, "key", "side")
    left, right, apart = _joined(_codes(part), sides, block, settings)
    mine = keys[left] == keys[right]
    if settings.has_within:
        within = part.column("within").cast(pa.string()).combine_chunks()
        groups = within.dictionary_encode(null_encoding="encode").indices.to_numpy()
        mine &= groups[left] == groups[right]
    return left[mine], right[mine], apart[mine]


def _joined(codes: Codes, sides: Rows, block: int, settings: Settings) -> tuple[Rows, Rows, Rows]:
    """Rows of the pairs, and their distances: among all, or of side 1 with side 2."""
    distance, bits = settings.match.distance or 0, settings.bits
    masks = _masks(distance, bits)
    if not sides.any():
        return pairs_of_block(codes, masks[: block + 1], distance, bits)
    ones, twos = np.flatnonzero(sides == 1), np.flatnonzero(sides == 2)
    batches = list(cross_pairs(codes[ones], [codes[twos]], distance, bits, workers=1))
    if not batches:
        return ones[:0], ones[:0], ones[:0]
    left, right, apart = arrays_of(pa.Table.from_batches(batches), "left", "right", "distance")
    left, right = ones[left], twos[right]
    differ = codes[left] ^ codes[right]
    mine = ~(differ & masks[block]).any(axis=1)
    for earlier in masks[:block]:
        mine &= (differ & earlier).any(axis=1)
    return left[mine], right[mine], apart[mine]


def _edges(
    part: pa.Table, left: Rows, right: Rows, apart: Rows, leads: bool
) -> Iterator[pa.RecordBatch]:
    (numbers,) = arrays_of(part, "number")
    swapped = (numbers[left] > numbers[right]) & (not leads)
    low, high = np.where(swapped, right, left), np.where(swapped, left, right)
    score = np.zeros(len(numbers))
    if "score" in part.column_names:
        (score,) = arrays_of(part, "score")
    columns = {
        "left": numbers[low],
        "right": numbers[high],
        "left_score": score[low],
        "right_score": score[high],
        "distance": np.asarray(apart, np.int32),
        "similarity": pa.nulls(len(low), pa.float64()),
    }
    yield from batches_of(pa.table(columns))
