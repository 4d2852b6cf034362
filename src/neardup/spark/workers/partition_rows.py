"""Helpers of all steps on workers: whole partitions as tables, and partition numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.errors import DataError
from neardup.similarity.feature_sets import FeatureSets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from neardup.runtime.types import Codes, Hashes, Offsets, Rows

__all__ = [
    "MOST_VALUES",
    "ROWS_A_BATCH",
    "arrays_of",
    "batches_of",
    "binary",
    "flat",
    "in_turn",
    "mixed",
    "part_of",
    "sent_in_turn",
    "sets_of",
    "sorted_sets",
    "whole",
]

ROWS_A_BATCH: Final = 1 << 15
MOST_VALUES: Final = (1 << 28) - 1
"""The most 64-bit values in an array of binary cells, whose offsets have 32 bits."""
_MIX: Final = np.uint64(0xD6E8FEB86659FD93)


def part_of(numbers: Rows | Hashes, parts: int) -> npt.NDArray[np.int32]:
    """The partition that each number (any 64-bit integer) belongs to; int32, from 0 to parts - 1.

    Example:
        >>> part_of(np.array([7, 7, 8]), 1).tolist()
        [0, 0, 0]
    """
    return ((mixed(numbers) >> np.uint64(33)) % np.uint64(parts)).astype(np.int32)


def mixed(numbers: Rows | Hashes) -> Hashes:
    """Each number (any 64-bit integer) with its bits spread; uint64."""
    hashes = np.asarray(numbers).view(np.uint64) * _MIX
    hashes ^= hashes >> np.uint64(32)
    return hashes * _MIX


def whole(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    """All rows of a partition, in no order; None without rows."""
    filled = [batch for batch in batches if len(batch)]
    if not filled:
        return None
    table = pa.Table.from_batches(filled)
    return table.cast(pa.schema([_wide(field) for field in table.schema])).combine_chunks()


def _wide(field: pa.Field) -> pa.Field:
    """The field with 64-bit offsets for bytes and text, which may pass 2 GB in a partition."""
    kind = field.type
    if kind in {pa.binary(), pa.binary_view()}:
        return field.with_type(pa.large_binary())
    return field.with_type(pa.large_string()) if pa.types.is_string(kind) else field


def arrays_of(table: pa.Table | pa.RecordBatch, *names: str) -> list[Any]:
    """Columns of numbers without nulls as NumPy arrays."""
    return [np.asarray(table.column(name).to_numpy()) for name in names]


def batches_of(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows of a result, in batches that the engine can hold."""
    yield from table.to_batches(ROWS_A_BATCH)


def in_turn(
    batches: Iterable[pa.RecordBatch],
    steps: Iterable[Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]],
) -> Iterator[pa.RecordBatch]:
    """Run several steps as one, so that rows between them do not pass through the engine."""
    for step in steps:
        batches = step(batches)
    yield from batches


def sent_in_turn(
    batches: Iterable[pa.RecordBatch],
    parts: int,
    steps: Iterable[Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]],
    last: Callable[..., Iterable[pa.RecordBatch]],
) -> Iterator[pa.RecordBatch]:
    """Run steps and then a sender, which takes the number of partitions, as one."""
    yield from last(in_turn(batches, steps), parts=parts)


def binary(values: Hashes, offsets: Offsets) -> pa.Array:
    """Runs of uint64 values as binary cells, little-endian.

    Raises:
        DataError: For more than 2 GiB, which cells of one array cannot hold.

    Example:
        >>> cells = binary(np.array([1, 2, 3], np.uint64), np.array([0, 1, 3]))
        >>> [len(cell) for cell in cells.to_pylist()]
        [8, 16]
    """
    if offsets[-1] > MOST_VALUES:
        raise DataError(
            f"{int(offsets[-1]):,} features are in one batch, and the engine holds"
            f" {MOST_VALUES:,}: split the longest document, or use --engine local"
        )
    data = np.ascontiguousarray(values, "<u8")
    ends = pa.py_buffer(np.ascontiguousarray(offsets * 8, np.int32))
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, ends, pa.py_buffer(data)])


def flat(column: pa.Array | pa.ChunkedArray) -> tuple[Hashes, Offsets]:
    """Binary cells as one uint64 array, and where each cell begins in it, int64 (n + 1,)."""
    cells = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    cells = cells.cast(pa.large_binary())
    ends = np.frombuffer(cells.buffers()[1], np.int64)[cells.offset : cells.offset + len(cells) + 1]
    data = cells.buffers()[2]
    if data is None or not len(cells):
        return np.zeros(0, np.uint64), np.zeros(len(cells) + 1, np.int64)
    values = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].tobytes()
    return np.frombuffer(values, "<u8"), (ends - ends[0]) // 8


def sorted_sets(features: Hashes, ends: Offsets) -> Hashes:
    """Feature sets, each in ascending order: equal ones have equal bytes.

    Args:
        features: uint64: the sets, each of distinct features.
        ends: int64 (n + 1,): where each begins.
    """
    from neardup.kernels.index.sets import sort_sets

    ordered = np.array(features, np.uint64)
    sort_sets(ordered, np.array(ends, np.int64))
    return ordered


def sets_of(documents: pa.Table | pa.RecordBatch) -> tuple[Rows, FeatureSets, Codes]:
    """Numbers, feature sets and codes of documents that have features."""
    (numbers,) = arrays_of(documents, "number")
    features, offsets = flat(documents.column("features"))
    codes = flat(documents.column("codes"))[0]
    codes = codes.reshape(len(numbers), -1) if len(numbers) else np.zeros((0, 1), np.uint64)
    return numbers, FeatureSets(features, offsets, codes), codes
