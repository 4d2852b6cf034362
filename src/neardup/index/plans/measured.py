"""Measuring an index by similarity: what a query does cost, on one thread."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.index.ids import IdColumn
from neardup.index.similar.incoming import sorted_sets
from neardup.index.similar.searching import search
from neardup.index.similar.segment import Rows, Segment, build
from neardup.index.similar.sets import Sets, joined_sets

if TYPE_CHECKING:
    from neardup.index.similar.settings import SimilarSettings

__all__ = ["Measured", "measure_parts"]

QUERIES: Final = 2_000
REPEATS: Final = 3
SEED: Final = 2007


@dataclass(frozen=True, slots=True)
class Measured:
    """What an index did cost, features given, on one thread.

    Args:
        microseconds: Processor time of a query of a batch; every tenth is stored.
        build_microseconds: To bring a document into its part.
        bytes_per_document: Memory.
    """

    microseconds: float
    build_microseconds: float
    bytes_per_document: float


def measure_parts(parts: list[int], settings: SimilarSettings, size: int) -> Measured:
    """Build parts of so many documents of about so many features at random, and ask them.

    Args:
        parts: Documents of each.
        settings: Of the index.
        size: Features of a document: from half to one and a half times as many.
    """
    draw = np.random.default_rng(SEED)
    segments: list[Segment] = []
    spent = 0.0
    for rows in parts:
        sets = _random_sets(draw, rows, size)
        ids = IdColumn(pa.array(np.arange(rows)))
        begin = time.process_time()
        segments.append(build(Rows(sets, np.arange(rows), ids, np.arange(rows)), settings))
        spent += time.process_time() - begin
    known = segments[0].sets
    stored = known.take(draw.integers(0, known.size, QUERIES // 10))
    queries = joined_sets([stored, _random_sets(draw, QUERIES - stored.size, size)])
    condition, times = settings.condition(), []
    search(segments, queries, condition, 1, None)
    for _ in range(REPEATS):
        begin = time.thread_time()
        search(segments, queries, condition, 1, None)
        times.append(time.thread_time() - begin)
    held = sum(array.nbytes for part in segments for array in part.arrays.values())
    held += sum(part.ids.values.nbytes for part in segments)
    count = sum(parts)
    return Measured(min(times) / QUERIES * 1e6, spent / count * 1e6, held / count)


def _random_sets(draw: Any, count: int, size: int) -> Sets:
    sizes = draw.integers(max(1, size // 2), size + size // 2 + 1, count)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return sorted_sets(draw.integers(0, 1 << 64, int(offsets[-1]), np.uint64), offsets)
