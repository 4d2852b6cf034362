"""Pairs of new fingerprint files with old ones: what `neardup pairs NEW --against OLD` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.documents import OutputSet, write_table
from neardup.errors import RecipeError
from neardup.fingerprinting.files import FingerprintReader
from neardup.hamming.new_pairs import cross_pairs
from neardup.hamming.spilled.batches import Limits
from neardup.pipeline.pair_files import NAMED_PAIRS, check_width, fingerprint_files_of
from neardup.pipeline.run.summary import PairsSummary
from neardup.runtime.progress import Quiet, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.runtime.progress import Progress

__all__ = ["new_pairs_file"]

BYTES: Final = 8


def new_pairs_file(
    new: str | Sequence[str],
    old: str | Sequence[str],
    output: str,
    distance: int = 3,
    plan: str = "auto",
    limits: Limits | None = None,
    progress: Progress | None = None,
    *,
    csv_safe: bool = False,
) -> PairsSummary:
    """Write every pair of a new and an old fingerprint within `distance` bits.

    The new ones are held in memory with search tables; the old ones pass by once, however many.

    Args:
        new: Fingerprint files, folders of them or patterns; their rows are numbered through.
        old: As `new`.
        output: Table file: left (new), right (old), distance, left_id, right_id; by right, left.
        distance: Largest Hamming distance, 0 or more.
        plan: How the new ones are searched, as for `neardup.Index`.
        limits: Threads, and the folder for temporary files.
        progress: Told where the run is.
        csv_safe: Put a quote (') before cells of CSV tables that a spreadsheet would compute.

    Raises:
        UsageError: For a wrong plan or distance.
        FileError, DataError, RecipeError: If a file cannot be used, or they do not match.
    """
    limits = limits or Limits()
    shown = progress or Quiet()
    watch = Stopwatch(shown)
    files, others = fingerprint_files_of(new), fingerprint_files_of(old)
    with OutputSet([*files, *others], limits.tmp) as written:
        written.check(output)
        reader, against = FingerprintReader(files), FingerprintReader(others)
        FingerprintReader([*files[:1], *others[:1]])  # refuses two recipes
        check_width(distance, reader.bits)
        words = -(-reader.bits // 64)
        watch.begin("read", BYTES * words * reader.rows)
        values, ids = _loaded(reader)
        watch.begin("match", BYTES * words * against.rows)
        count = 0

        def found() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for batch in _named(values, ids, against, (distance, reader.bits, plan), limits, shown):
                count += len(batch)
                yield batch

        write_table(written, output, NAMED_PAIRS, found(), csv_safe=csv_safe)
        written.commit()
    rows, bits = reader.rows + against.rows, reader.bits
    return PairsSummary(rows, count, distance, bits, plan, output, 0, seconds=watch.stop())


def _loaded(reader: FingerprintReader) -> tuple[Any, pa.Array]:
    """All fingerprints, uint64 (n, width), masked where there is none, and their ids."""
    parts = list(reader.batches())
    if not parts:
        raise RecipeError("no fingerprints: name a file of neardup fingerprint")
    merge: Any = np.ma.concatenate if any(map(np.ma.isMaskedArray, parts)) else np.concatenate
    return merge(parts), pa.concat_arrays(list(reader.ids()))


def _named(
    values: Any,
    ids: pa.Array,
    against: FingerprintReader,
    search: tuple[int, int, str],
    limits: Limits,
    progress: Progress,
) -> Iterator[pa.RecordBatch]:
    """The pairs with their ids; the old files are read a batch at a time."""
    distance, bits, plan = search
    first, names = 0, ids

    def old() -> Iterator[Any]:
        nonlocal first, names
        row = 0
        for codes, named in zip(against.batches(), against.ids(), strict=True):
            first, names = row, named
            yield codes
            row += len(codes)
            progress.advance(codes.nbytes)

    for batch in cross_pairs(values, old(), distance, bits, plan, limits.workers):
        here = pa.array(batch["right"].to_numpy() - first)
        named = ids.take(batch["left"]), names.take(here)
        yield pa.record_batch([*batch.columns, *named], schema=NAMED_PAIRS)
