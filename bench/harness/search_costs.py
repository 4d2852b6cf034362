"""What a plan's search does cost: an index is built and asked, on one thread."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from neardup.hamming.search.build import build_searcher
from neardup.hamming.search.permuted import measured_recall
from neardup.index.id_columns import IdColumn
from neardup.index.incoming import sorted_sets
from neardup.index.set_arrays import Sets, joined_sets
from neardup.index.set_segments import SetRows, SetSegment, merged
from neardup.index.similarity_kind import search
from neardup.runtime.arrays import frozen

__all__ = [
    "IndexCost", "SearchCost", "measure_parts", "measure_plan", "random_fingerprints",
]  # fmt: skip

MOST_QUERIES: Final = 20_000
SECONDS_EACH: Final = 0.1
REPEATS: Final = 5
INDEX_QUERIES: Final = 2_000
INDEX_REPEATS: Final = 3
SEED: Final = 2007


@dataclass(frozen=True, slots=True)
class SearchCost:
    """What a search did cost, on one thread.

    Args:
        microseconds: For one query of a batch.
        build_seconds: To build it, on all threads.
        bytes_per_document: Memory beside the fingerprints.
        recall: Of what is exactly at the distance, the share that is found.
    """

    microseconds: float
    build_seconds: float
    bytes_per_document: float
    recall: float


def measure_plan(
    codes: Any, each: Any, distance: int, bits: int, workers: int | None = None
) -> SearchCost:
    """Build a plan for uint64 (n, width) and ask it for rows near its own."""
    begin = time.perf_counter()
    searcher = build_searcher(codes, each, distance, bits, workers)
    built = time.perf_counter() - begin
    count = int(min(max(SECONDS_EACH / each.seconds, 8), MOST_QUERIES))
    queries = _queries(codes, count, distance, bits)
    searcher.search(queries[:1], distance, 1)
    times = []
    for _ in range(REPEATS):
        begin = time.thread_time()
        searcher.search(queries, distance, 1)
        times.append(time.thread_time() - begin)
    recall = measured_recall(searcher, codes, distance, bits) if each.recall < 1 else 1.0
    size = searcher.nbytes / max(len(codes), 1)
    return SearchCost(min(times) / count * 1e6, built, size, recall)


def random_fingerprints(n: int, bits: int) -> Any:
    """Fingerprints of independent bits: uint64 (n, width), always the same."""
    width = -(-bits // 64)
    codes = np.random.default_rng(SEED).integers(0, 2**64, (n, width), dtype=np.uint64)
    if bits % 64:
        codes[:, -1] &= np.uint64(2 ** (bits % 64) - 1)
    return frozen(codes)


def _queries(codes: Any, count: int, distance: int, bits: int) -> Any:
    """Sampled rows with up to `distance` bits as another row has them: uint64 (count, width).

    So a query is as near to the other rows as they are to each other, however skewed they are.
    """
    draw = np.random.default_rng(SEED)
    queries = codes[draw.integers(0, len(codes), count)].copy()
    for _ in range(min(distance, 64)):
        bit, other = draw.integers(0, bits, count), draw.integers(0, len(codes), count)
        at, mask = (np.arange(count), bit >> 6), np.uint64(1) << (bit & 63).astype(np.uint64)
        queries[at] ^= (queries[at] ^ codes[other, bit >> 6]) & mask
    return frozen(queries)


@dataclass(frozen=True, slots=True)
class IndexCost:
    """What an index did cost, features given, on one thread.

    Args:
        microseconds: Processor time of a query of a batch; every tenth is stored.
        build_microseconds: To bring a document into its part.
        bytes_per_document: Memory.
    """

    microseconds: float
    build_microseconds: float
    bytes_per_document: float


def measure_parts(parts: list[int], settings: Any, size: int) -> IndexCost:
    """Build parts of so many documents of about so many features at random, and ask them.

    Args:
        parts: Documents of each.
        settings: Of the index.
        size: Features of a document: from half to one and a half times as many.
    """
    draw = np.random.default_rng(SEED)
    segments: list[SetSegment] = []
    spent = 0.0
    for rows in parts:
        sets = _random_sets(draw, rows, size)
        ids = IdColumn(pa.array(np.arange(rows)))
        begin = time.process_time()
        segments.append(merged([SetRows(sets, np.arange(rows), ids, np.arange(rows))], settings))
        spent += time.process_time() - begin
    known = segments[0].sets
    stored = known.take(draw.integers(0, known.size, INDEX_QUERIES // 10))
    queries = joined_sets([stored, _random_sets(draw, INDEX_QUERIES - stored.size, size)])
    condition, times = settings.condition(), []
    search(segments, queries, condition, 1, None)
    for _ in range(INDEX_REPEATS):
        begin = time.thread_time()
        search(segments, queries, condition, 1, None)
        times.append(time.thread_time() - begin)
    nbytes = sum(array.nbytes for part in segments for array in part.arrays.values())
    nbytes += sum(part.ids.values.nbytes + part.numbers.nbytes for part in segments)
    count = sum(parts)
    return IndexCost(min(times) / INDEX_QUERIES * 1e6, spent / count * 1e6, nbytes / count)


def _random_sets(draw: Any, count: int, size: int) -> Sets:
    sizes = draw.integers(max(1, size // 2), size + size // 2 + 1, count)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return sorted_sets(draw.integers(0, 1 << 64, int(offsets[-1]), np.uint64), offsets)
