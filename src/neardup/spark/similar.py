"""On the workers: documents whose feature sets are similar, exactly.

The flow: count features in cells, which merge; choose each document's keys under that one order and
send them by key; list the pairs that share one; and measure each pair where its features were sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.fingerprinting.values import distance
from neardup.similarity.feature_sets import FeatureSets, Match, similarities
from neardup.similarity.shared_order import count_cells, least_ratio, merge_cells, rare_keys
from neardup.spark.tables import arrays_of, batches_of, flat, part_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "ASKED",
    "CELLS",
    "EDGES",
    "PAIRS",
    "POSTINGS",
    "REQUESTS",
    "asked",
    "candidates",
    "cells_of",
    "measure",
    "merged_cells",
    "postings",
    "requests",
]

CELLS: Final = "cells binary"
POSTINGS: Final = "p int, key long, number long, size int"
PAIRS: Final = "left long, right long"
REQUESTS: Final = "p int, number long"
ASKED: Final = "p int, number long, right long"
EDGES: Final = (
    "left long, right long, left_score double, right_score double, distance int, similarity double"
)

PAIRS_AT_ONCE: Final = 1 << 20


def cells_of(batches: Iterable[pa.RecordBatch], bits: int) -> Iterator[pa.RecordBatch]:
    """Count the features of a partition's documents; gives CELLS, one row."""
    parts = (count_cells(flat(batch.column("features"))[0], bits) for batch in batches)
    yield _cells(merge_cells(parts, bits))


def merged_cells(batches: Iterable[pa.RecordBatch], bits: int) -> Iterator[pa.RecordBatch]:
    """Merge CELLS to one row."""
    cells = (np.frombuffer(x, np.uint8) for b in batches for x in b.column("cells").to_pylist())
    yield _cells(merge_cells(cells, bits))


def _cells(cells: Any) -> pa.RecordBatch:
    return pa.record_batch({"cells": pa.array([cells.tobytes()], pa.binary())})


def postings(
    batches: Iterable[pa.RecordBatch], cells: bytes, match: Match, parts: int
) -> Iterator[pa.RecordBatch]:
    """Choose the keys of documents; gives POSTINGS. What only one document has is never sent.

    Documents of different `within` have different keys, but for a chance that costs time only.
    """
    counts = np.frombuffer(cells, np.uint8)
    for batch in batches:
        numbers, sets, _ = _sets(batch)
        if not len(sets):
            continue
        keys, offsets = rare_keys(sets, counts, match)
        owner = np.repeat(np.arange(len(sets)), np.diff(offsets))
        keys = (keys ^ _salts(batch.column("within"))[owner]).view(np.int64)
        columns = {
            "p": part_of(keys, parts),
            "key": keys,
            "number": numbers[owner],
            "size": np.diff(sets.offsets).astype(np.int32)[owner],
        }
        yield from batches_of(pa.table(columns))


def _salts(within: Any) -> Any:
    """A number for each value of `within`, mixed in the keys; 0 for null."""
    encoded = within.cast(pa.string()).dictionary_encode(null_encoding="encode")
    values = [0 if x is None else _salt(x) for x in encoded.dictionary.to_pylist()]
    return np.array(values, np.uint64)[encoded.indices.to_numpy()]


def _salt(value: str) -> int:
    import hashlib

    data = value.encode("utf8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def candidates(batches: Iterable[pa.RecordBatch], match: Match) -> Iterator[pa.RecordBatch]:
    """List the pairs that share a key and are of alike size: POSTINGS to PAIRS, some repeated.

    Holds the postings of the partition, and about PAIRS_AT_ONCE pairs at a time.
    """
    table = whole(batches)
    if table is None:
        return
    keys, numbers, sizes = arrays_of(table, "key", "number", "size")
    order = np.lexsort((numbers, sizes, keys))
    keys, numbers, sizes = keys[order], numbers[order], sizes[order].astype(np.float64)
    ends = np.searchsorted(keys, keys, side="right")
    ratio = least_ratio(match)
    last = ends if ratio == 0 else _last_alike(keys, sizes, ends, ratio)
    counts = last - np.arange(len(keys)) - 1
    begin = 0
    while begin < len(keys):
        total = np.cumsum(counts[begin : begin + PAIRS_AT_ONCE])
        end = begin + max(1, int(np.searchsorted(total, PAIRS_AT_ONCE)))
        some = counts[begin:end]
        left = np.repeat(np.arange(begin, begin + len(some)), some)
        right = left + 1 + np.arange(len(left)) - np.repeat(np.cumsum(some) - some, some)
        one, other = numbers[left], numbers[right]
        pairs = np.unique(np.stack([np.minimum(one, other), np.maximum(one, other)]), axis=1)
        yield from batches_of(pa.table({"left": pairs[0], "right": pairs[1]}))
        begin += len(some)


def _last_alike(keys: Any, sizes: Any, ends: Any, ratio: float) -> Any:
    """For each posting the end of those of its key that are not too large for it, by bisection."""
    low, high, limit = np.arange(len(keys)) + 1, ends.copy(), sizes / ratio
    while (open_ := low < high).any():
        middle = (low + high) // 2
        fits = open_ & (sizes[np.minimum(middle, len(keys) - 1)] <= limit)
        low = np.where(fits, middle + 1, low)
        high = np.where(open_ & ~fits, middle, high)
    return low


def requests(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    """Say which documents each partition of PAIRS needs: REQUESTS, some repeated."""
    for batch in batches:
        left, right = arrays_of(batch, "left", "right")
        p = part_of(right, parts).astype(np.int64)
        both = np.stack([np.concatenate([p, p]), np.concatenate([left, right])])
        pairs = np.unique(both, axis=1)
        yield pa.record_batch({"p": pa.array(pairs[0].astype(np.int32)), "number": pairs[1]})


def asked(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    """Send PAIRS to the partition that `requests` named; gives ASKED."""
    for batch in batches:
        left, right = arrays_of(batch, "left", "right")
        yield pa.record_batch({"p": part_of(right, parts), "number": left, "right": right})


def measure(
    batches: Iterable[pa.RecordBatch], match: Match | None, measure_name: str
) -> Iterator[pa.RecordBatch]:
    """Measure pairs beside the documents that they name; gives EDGES.

    Args:
        batches: Rows of `right` null, which are documents, and of `right` a number: pairs.
        match: Give only pairs that match; None: all.
        measure_name: Of the similarity; "" for none.
    """
    table = whole(batches)
    if table is None:
        return
    is_pair = table.column("right").is_valid()
    pairs, documents = table.filter(is_pair), table.filter(is_pair.to_numpy() ^ True)
    numbers, sets, codes = _sets(documents)
    order = np.argsort(numbers, kind="stable")
    left, right = arrays_of(pairs, "number", "right")
    one, other = (order[np.searchsorted(numbers[order], side)] for side in (left, right))
    within = documents.column("within").cast(pa.string()).combine_chunks()
    groups = within.dictionary_encode(null_encoding="encode").indices.to_numpy()
    (score,) = arrays_of(documents, "score")
    columns: dict[str, Any] = {
        "left": left,
        "right": right,
        "left_score": score[one],
        "right_score": score[other],
        "distance": distance(codes[one], codes[other]).astype(np.int32),
        "similarity": pa.nulls(len(left), pa.float64()),
    }
    good = np.ones(len(left), np.bool_)
    if measure_name:
        columns["similarity"] = reached = similarities(sets, one, other, measure_name)
        if match is not None:
            good = (reached >= match.similarity) & (groups[one] == groups[other])
    if match is not None and match.distance is not None:
        good &= columns["distance"] <= match.distance
    yield from batches_of(pa.table(columns).filter(pa.array(good)))


def _sets(documents: pa.Table | pa.RecordBatch) -> tuple[Any, FeatureSets, Any]:
    """Numbers, feature sets and codes of documents that have features."""
    (numbers,) = arrays_of(documents, "number")
    features, offsets = flat(documents.column("features"))
    codes = flat(documents.column("codes"))[0]
    codes = codes.reshape(len(numbers), -1) if len(numbers) else np.zeros((0, 1), np.uint64)
    return numbers, FeatureSets(features, offsets, codes), codes
