"""Find the pairs of fingerprint files: what `neardup pairs` does, in bounded memory."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import OutputSet, write_table
from neardup.documents.files.finding import find_files
from neardup.documents.tables import CLUSTERS
from neardup.errors import UsageError
from neardup.fingerprinting.files import FingerprintReader
from neardup.hamming.chance import chance_warning
from neardup.hamming.spilled.batches import PAIRS, Limits, check_request, joined_rows
from neardup.hamming.spilled.groups import spilled_components, spilled_greedy
from neardup.hamming.spilled.sources import open_rows
from neardup.pipeline.row_ids import RowIds
from neardup.pipeline.run.summary import ClustersSummary, PairsSummary
from neardup.runtime.progress import Quiet, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.hamming.spilled.batches import FoundPairs
    from neardup.runtime.progress import Progress

__all__ = ["check_width", "clusters_file", "fingerprint_files_of", "pairs_file"]

ROWS_AT_ONCE: Final = 1 << 20
SEARCHES: Final = {"greedy": spilled_greedy, "components": spilled_components}
NAMED_PAIRS: Final = pa.schema(
    [*PAIRS, ("left_id", pa.large_string()), ("right_id", pa.large_string())]
)


def pairs_file(
    paths: str | Sequence[str],
    output: str,
    distance: int = 3,
    plan: str = "auto",
    limits: Limits | None = None,
    progress: Progress | None = None,
    *,
    csv_safe: bool = False,
) -> PairsSummary:
    """Write every pair within `distance` bits of fingerprint files, sorted.

    Args:
        paths: A fingerprint file, a folder of them or a pattern, or several; their rows are
            numbered through.
        output: Table file: left, right, distance, left_id, right_id.
        distance: Largest Hamming distance, 0 or more.
        plan: As for `pairs`.
        limits: Memory, folder for spill files, threads, most pairs.
        progress: Told where the run is.
        csv_safe: Put a quote (') before cells of CSV tables that a spreadsheet would compute.

    Raises:
        UsageError: For a wrong plan or distance.
        FileError, DataError, RecipeError: If a file cannot be used, or they do not match.
        TooManyPairsError: If there are more pairs than the disk holds.
    """
    limits = limits or Limits()
    check_request(distance, plan, limits)
    shown = progress or Quiet()
    watch = Stopwatch(shown)
    files = fingerprint_files_of(paths)
    with OutputSet(files, limits.tmp) as written:
        written.check(output)
        reader = FingerprintReader(files)
        check_width(distance, reader.bits)
        watch.begin("read", 8 * -(-reader.bits // 64) * reader.rows)
        batches = _told(reader.batches(), shown)
        with open_rows(batches, reader.bits, limits.tmp) as (rows, bits):
            watch.begin("match")
            with joined_rows(rows, bits, distance, plan, limits, shown) as found:
                watch.begin("write")
                with RowIds(rows.count, limits.tmp) as ids:
                    named = _named(found, reader, ids)
                    write_table(written, output, NAMED_PAIRS, named, csv_safe=csv_safe)
                    spilled = rows.nbytes + found.spilled + ids.nbytes
                pairs = found.spool.count
        written.commit()
    return PairsSummary(
        rows.count, pairs, distance, bits, plan, output, spilled, seconds=watch.stop(),
        warnings=_doubts(distance, bits, rows.count),
    )  # fmt: skip


def clusters_file(
    paths: str | Sequence[str],
    output: str,
    distance: int = 3,
    plan: str = "auto",
    policy: str = "greedy",
    limits: Limits | None = None,
    progress: Progress | None = None,
    *,
    csv_safe: bool = False,
) -> ClustersSummary:
    """Write the cluster of every row of fingerprint files, and whether it is kept.

    Args:
        paths: As for `pairs_file`.
        output: Table file: id, cluster, kept; a row for each fingerprint, in order.
        distance: Largest Hamming distance, 0 or more.
        plan: As for `pairs`.
        policy: "greedy": a row is dropped if it is within the distance of a kept one before it,
            and its cluster is the first such; "components": matches are followed as chains, the
            first row of each is kept.
        limits: Memory, folder for spill files, threads.
        progress: Told where the run is.
        csv_safe: Put a quote (') before cells of CSV tables that a spreadsheet would compute.

    Raises:
        UsageError: For a wrong plan, distance or policy, or too little memory.
        FileError, DataError, RecipeError: If a file cannot be used, or they do not match.
    """
    limits = limits or Limits()
    find = SEARCHES.get(policy)
    if find is None:
        raise UsageError(f"policy is {policy!r}: use greedy or components")
    shown = progress or Quiet()
    watch = Stopwatch(shown)
    files = fingerprint_files_of(paths)
    with OutputSet(files, limits.tmp) as written:
        written.check(output)
        reader = FingerprintReader(files)
        check_width(distance, reader.bits)
        watch.begin("match")
        labels = find(reader.batches(), distance, reader.bits, plan, limits, shown)
        watch.begin("write")
        with RowIds(len(labels), limits.tmp) as ids:
            batches = _clusters(labels, reader, ids)
            write_table(written, output, CLUSTERS, batches, csv_safe=csv_safe)
        written.commit()
    kept = sum(int((part == rows).sum()) for part, rows in _runs(labels))
    return ClustersSummary(
        len(labels), kept, distance, reader.bits, plan, policy, output, seconds=watch.stop(),
        warnings=_doubts(distance, reader.bits, len(labels)),
    )  # fmt: skip


def _clusters(labels: Any, reader: FingerprintReader, ids: RowIds) -> Iterator[pa.RecordBatch]:
    for part, rows in _runs(labels):
        ids.want(part[part != rows])
    ids.fill(reader.ids())
    first = 0
    for own in reader.ids():
        part = labels[first : first + len(own)]
        dropped = part != np.arange(first, first + len(own))
        first += len(own)
        taken = ids.take(part[dropped].astype(np.uint64))
        cluster = pc.replace_with_mask(own, pa.array(dropped), taken)
        yield pa.record_batch([own, cluster, pa.array(~dropped)], schema=CLUSTERS)


def _runs(labels: Any) -> Iterator[tuple[Any, Any]]:
    """The labels with their rows, some at a time."""
    for first in range(0, len(labels), ROWS_AT_ONCE):
        part = labels[first : first + ROWS_AT_ONCE].astype(np.uint64)
        yield part, np.arange(first, first + len(part), dtype=np.uint64)


def _doubts(distance: int, bits: int, rows: int) -> list[str]:
    """What makes the result doubtful, a line each."""
    doubt = chance_warning(distance, bits, rows, verified=False)
    return [] if doubt is None else [doubt]


def check_width(distance: int, bits: int) -> None:
    """Refuse a distance that any two fingerprints have.

    Raises:
        UsageError: If it is refused.
    """
    if distance >= bits:
        raise UsageError(
            f"distance is {distance}, and fingerprints have {bits} bits, so that any two match: use"
            " a few bits, such as 3"
        )


def fingerprint_files_of(paths: str | Sequence[str]) -> list[str]:
    """The files that one path or several name."""
    files = []
    for path in [paths] if isinstance(paths, str) else paths:
        many = glob.has_magic(path) or Path(path).is_dir()
        files += [found.path for found in find_files(path)] if many else [path]
    return files


def _told(batches: Iterator[Any], progress: Progress) -> Iterator[Any]:
    for batch in batches:
        yield batch
        progress.advance(batch.nbytes)


def _named(found: FoundPairs, reader: FingerprintReader, ids: RowIds) -> Iterator[pa.RecordBatch]:
    for numbers in found.spool.row_numbers():
        ids.want(numbers)
    ids.fill(reader.ids())
    for batch in found.batches():
        sides = [ids.take(batch[side].to_numpy()) for side in ("left", "right")]
        yield pa.record_batch([*batch.columns, *sides], schema=NAMED_PAIRS)
