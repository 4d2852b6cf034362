"""On the workers: the keys by which similar documents meet, and how heavy each is.

Features are counted in cells, which merge; so all documents choose their rarest features under one
order. A feature of only one document is not a key. Keys are counted in cells too: a heavy key is
cut in pieces, and every two pieces meet in a task of their own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from neardup.similarity.feature_counts import count_features, merge_cells
from neardup.similarity.key_choice import keys_of_part
from neardup.spark.workers.partition_rows import (
    arrays_of,
    batches_of,
    flat,
    mixed,
    part_of,
    sets_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from neardup.runtime.types import Bitmap, Hashes, Rows
    from neardup.similarity.feature_sets import FeatureSets, Match

__all__ = [
    "CARRIED",
    "CELLS",
    "KEYS",
    "LOADS",
    "NONE_HEAVY",
    "POSTINGS",
    "Heavy",
    "cells_of",
    "keys_of",
    "loads_of",
    "merged_cells",
    "merged_loads",
    "routed",
]

CELLS: Final = "cells binary"
LOADS: Final = "loads binary"
KEYS: Final = "key long, number long, size int, before int, sketch long"
POSTINGS: Final = f"p int, side int, {KEYS}"
CARRIED: Final = ("number", "size", "before", "sketch")
"""Columns of a posting that its task reads: document, features, features rarer than the key, and
the parities of 64 classes of features.

In POSTINGS, documents of side 0 meet each other, and those of side 1 meet those of side 2.
"""

LOAD_BITS: Final = 18
FEATURES_AT_ONCE: Final = 1 << 22
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Heavy:
    """The cells of heavy keys, int64 (c,), ascending, and the pieces of each, int64 (c,)."""

    cells: Rows
    pieces: Rows

    def pieces_of(self, keys: Rows) -> Rows:
        """The number of pieces of each key; int64, 1 for most."""
        cells = _load_cells(keys)
        pieces = np.ones(len(keys), np.int64)
        if len(self.cells):
            places = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
            is_heavy = self.cells[places] == cells
            pieces[is_heavy] = self.pieces[places[is_heavy]]
        return pieces


NONE_HEAVY: Final = Heavy(np.zeros(0, np.int64), np.zeros(0, np.int64))


def cells_of(batches: Iterable[pa.RecordBatch], bits: int) -> Iterator[pa.RecordBatch]:
    """Count the features of a partition's documents; gives CELLS, one row."""
    parts = (count_features(features, bits) for features in _features_of(batches))
    yield _cells(merge_cells(parts, bits))


def _features_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Hashes]:
    """The features of batches, FEATURES_AT_ONCE together: each count takes memory for all cells."""
    waiting: list[Hashes] = []
    for batch in batches:
        waiting.append(flat(batch.column("features"))[0])
        if sum(map(len, waiting)) >= FEATURES_AT_ONCE:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def merged_cells(batches: Iterable[pa.RecordBatch], bits: int) -> Iterator[pa.RecordBatch]:
    """Merge CELLS into one row."""
    cells = (np.frombuffer(x, np.uint8) for b in batches for x in b.column("cells").to_pylist())
    yield _cells(merge_cells(cells, bits))


def _cells(cells: Bitmap) -> pa.RecordBatch:
    return pa.record_batch({"cells": pa.array([cells.tobytes()], pa.binary())})


def keys_of(
    batches: Iterable[pa.RecordBatch], cells: bytes, match: Match
) -> Iterator[pa.RecordBatch]:
    """Choose the keys of documents; gives KEYS.

    Documents of different `within` have different keys; equal ones by chance cost only time.
    """
    counts = np.frombuffer(cells, np.uint8)
    for batch in batches:
        numbers, sets, _ = sets_of(batch)
        if not len(sets):
            continue
        keys, before, offsets = keys_of_part(sets, counts, match)
        owner = np.repeat(np.arange(len(sets)), np.diff(offsets))
        columns = {
            "key": (keys ^ _salts(batch.column("within"))[owner]).view(np.int64),
            "number": numbers[owner],
            "size": np.diff(sets.offsets).astype(np.int32)[owner],
            "before": before,
            "sketch": _sketches(sets)[owner].view(np.int64),
        }
        yield from batches_of(pa.table(columns))


def _sketches(sets: FeatureSets) -> Hashes:
    """The parities of the features in 64 classes: a bit that differs is a feature that does."""
    bits = np.uint64(1) << (sets.features * _SPREAD >> np.uint64(58))
    sizes = np.diff(sets.offsets)
    sketches = np.zeros(len(sets), np.uint64)
    full = np.flatnonzero(sizes)
    if len(full):
        sketches[full] = np.bitwise_xor.reduceat(bits, sets.offsets[full])
    return sketches


def _salts(within: pa.Array) -> Hashes:
    """A number for each value of `within`, mixed in the keys; 0 for null."""
    encoded = within.cast(pa.string()).dictionary_encode(null_encoding="encode")
    values = [0 if x is None else _salt(x) for x in encoded.dictionary.to_pylist()]
    salts: Hashes = np.array(values, np.uint64)[encoded.indices.to_numpy()]
    return salts


def _salt(value: str) -> int:
    data = value.encode("utf8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def _load_cells(keys: Rows) -> Rows:
    return (mixed(keys) >> np.uint64(64 - LOAD_BITS)).astype(np.int64)


def loads_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count the keys of a partition in 2**LOAD_BITS cells; gives LOADS, one row of int64."""
    total = np.zeros(1 << LOAD_BITS, np.int64)
    for batch in batches:
        total += np.bincount(_load_cells(arrays_of(batch, "key")[0]), minlength=total.size)
    yield _loads(total)


def merged_loads(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add LOADS up into one row."""
    total = np.zeros(1 << LOAD_BITS, np.int64)
    for batch in batches:
        for row in batch.column("loads").to_pylist():
            total += np.frombuffer(row, np.int64)
    yield _loads(total)


def _loads(total: Rows) -> pa.RecordBatch:
    return pa.record_batch({"loads": pa.array([total.tobytes()], pa.binary())})


def routed(
    batches: Iterable[pa.RecordBatch], heavy: Heavy, parts: int, carried: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Send rows to the tasks that list the pairs of their keys: `p`, `side`, `key` and `carried`.

    With a column `leads`, documents that lead meet those that do not; else all meet all. For a key
    in g pieces each document is sent g times, or once if it does not lead.
    """
    for batch in batches:
        keys, numbers = arrays_of(batch, "key", "number")
        if not len(heavy.cells) and "leads" not in batch.schema.names:
            columns = {
                "p": part_of(keys, parts),
                "side": np.zeros(len(keys), np.int32),
                "key": keys,
            }
            yield pa.record_batch(columns | {name: batch.column(name) for name in carried})
            continue
        pieces = heavy.pieces_of(keys)
        own = (mixed(numbers) >> np.uint64(1)).astype(np.int64) % pieces
        leads, copies = None, pieces
        if "leads" in batch.schema.names:
            leads = np.asarray(batch.column("leads").to_numpy(zero_copy_only=False), np.bool_)
            copies = np.where(leads, pieces, 1)
        rows = np.repeat(np.arange(len(keys)), copies)
        other = np.arange(len(rows)) - np.repeat(np.cumsum(copies) - copies, copies)
        own, pieces = own[rows], pieces[rows]
        if leads is None:
            task = np.minimum(own, other) * pieces + np.maximum(own, other)
            side = np.where(own == other, 0, np.where(own < other, 1, 2))
        else:
            task = np.where(leads[rows], other, own)
            side = np.where(leads[rows], 1, 2)
        sent = np.where(pieces > 1, mixed(keys[rows] + task * 2 + 1).view(np.int64), keys[rows])
        moved = batch.take(pa.array(rows))
        columns = {"p": part_of(sent, parts), "side": side.astype(np.int32), "key": sent}
        yield from batches_of(pa.table(columns | {name: moved.column(name) for name in carried}))
