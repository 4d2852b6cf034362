"""The pairs of fingerprint files, in bounded memory: `neardup pairs`."""

from __future__ import annotations

import glob
import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import OutputSet, write_table
from neardup.documents.files.finding import find_files
from neardup.documents.result_tables import CLUSTERS
from neardup.errors import RecipeError, UsageError
from neardup.fingerprinting.fingerprint_files import FingerprintReader
from neardup.hamming.chance import chance_warning
from neardup.hamming.new_and_old import cross_pairs
from neardup.hamming.spilled.batches import PAIRS, Limits, check_request, joined_rows
from neardup.hamming.spilled.sources import open_rows
from neardup.hamming.spilled.spilled_groups import spilled_components, spilled_greedy
from neardup.pipeline.run.summary import ClustersSummary, PairsSummary
from neardup.runtime.progress import Quiet, Stopwatch
from neardup.runtime.storage.temporary import TemporaryRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from neardup.hamming.spilled.batches import FoundPairs
    from neardup.runtime.progress import Progress

__all__ = [
    "RowIds",
    "check_width",
    "clusters_file",
    "fingerprint_files_of",
    "new_pairs_file",
    "pairs_file",
]

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
            numbered across files.
        output: Table file: left, right, distance, left_id, right_id.
        distance: Largest Hamming distance, 0 or more.
        plan: As for `pairs`.
        limits: Memory, folder for spill files, threads, most pairs.
        progress: Shows the progress.
        csv_safe: Put a quote (') before cells of CSV tables that a spreadsheet would compute.

    Raises:
        UsageError: For a wrong plan or distance.
        FileError, DataError, RecipeError: If a file cannot be used, or they do not match.
        TooManyPairsError: If there are more pairs than the disk holds.
    """
    limits = limits or Limits()
    check_request(distance, plan, limits)
    reporter = progress or Quiet()
    watch = Stopwatch(reporter)
    files = fingerprint_files_of(paths)
    with OutputSet(files, limits.tmp, workers=limits.workers) as written:
        written.check(output)
        reader = FingerprintReader(files)
        check_width(distance, reader.bits)
        watch.begin("read", 8 * -(-reader.bits // 64) * reader.rows)
        batches = _with_progress(reader.batches(), reporter)
        with open_rows(batches, reader.bits, limits.tmp) as (rows, bits):
            watch.begin("match")
            with joined_rows(rows, bits, distance, plan, limits, reporter) as joined:
                watch.begin("write")
                with RowIds(rows.count, limits.tmp) as ids:
                    named = _named(joined, reader, ids)
                    write_table(written, output, NAMED_PAIRS, named, csv_safe=csv_safe)
                    spilled = rows.nbytes + joined.spilled + ids.nbytes
                pairs = joined.spool.count
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
            and its cluster is the first such row; "components": chains of matches are groups, and
            the first row of each is kept.
        limits: Memory, folder for spill files, threads.
        progress: Shows the progress.
        csv_safe: Put a quote (') before cells of CSV tables that a spreadsheet would compute.

    Raises:
        UsageError: For a wrong plan, distance or policy, or too little memory.
        FileError, DataError, RecipeError: If a file cannot be used, or they do not match.
    """
    limits = limits or Limits()
    find = SEARCHES.get(policy)
    if find is None:
        raise UsageError(f"policy is {policy!r}: use greedy or components")
    reporter = progress or Quiet()
    watch = Stopwatch(reporter)
    files = fingerprint_files_of(paths)
    with OutputSet(files, limits.tmp, workers=limits.workers) as written:
        written.check(output)
        reader = FingerprintReader(files)
        check_width(distance, reader.bits)
        watch.begin("match")
        labels = find(reader.batches(), distance, reader.bits, plan, limits, reporter)
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
    """The labels with their rows, in batches."""
    for first in range(0, len(labels), ROWS_AT_ONCE):
        part = labels[first : first + ROWS_AT_ONCE].astype(np.uint64)
        yield part, np.arange(first, first + len(part), dtype=np.uint64)


def _doubts(distance: int, bits: int, rows: int) -> list[str]:
    """Reasons to doubt the result, one line each."""
    doubt = chance_warning(distance, bits, rows, verified=False)
    return [] if doubt is None else [doubt]


def check_width(distance: int, bits: int) -> None:
    """Refuse a distance within which any two fingerprints are.

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
        files += [file.path for file in find_files(path)] if many else [path]
    return files


def _with_progress(batches: Iterator[Any], progress: Progress) -> Iterator[Any]:
    for batch in batches:
        yield batch
        progress.advance(batch.nbytes)


def _named(pairs: FoundPairs, reader: FingerprintReader, ids: RowIds) -> Iterator[pa.RecordBatch]:
    for numbers in pairs.spool.row_numbers():
        ids.want(numbers)
    ids.fill(reader.ids())
    for batch in pairs.batches():
        sides = [ids.take(batch[side].to_numpy()) for side in ("left", "right")]
        yield pa.record_batch([*batch.columns, *sides], schema=NAMED_PAIRS)


class RowIds:
    """Ids of some rows, looked up by the rows' numbers.

    Args:
        rows: How many rows there are.
        tmp: Folder for unlinked temporary files; the system's own if None.

    Example:
        >>> with RowIds(3) as ids:
        ...     ids.want(np.array([2]))
        ...     ids.fill([pa.array(["a", "b", "c"], pa.large_string())])
        ...     ids.take(np.array([2])).to_pylist()
        ['c']
    """

    def __init__(self, rows: int, tmp: str | None = None) -> None:
        """Begin without requests; takes rows / 4 bytes of memory."""
        self._bits = np.zeros(-(-rows // 64) * 8, np.uint8)
        self._before = np.empty(0, np.int64)
        self._ends, self._text = TemporaryRows(tmp), TemporaryRows(tmp)
        self._count = 0

    @property
    def nbytes(self) -> int:
        """Bytes on disk."""
        return self._ends.nbytes + self._text.nbytes

    def want(self, numbers: Any) -> None:
        """Request the ids of rows, before `fill`."""
        places = (numbers >> 3).astype(np.int64)
        np.bitwise_or.at(self._bits, places, np.uint8(1) << (numbers & 7).astype(np.uint8))

    def fill(self, batches: Iterable[Any]) -> None:
        """Store the requested ids among all rows' ids (Arrow large strings, in order)."""
        first, total = 0, 0
        self._ends.append(np.zeros(1, np.int64))
        for batch in batches:
            last = first + len(batch)
            flags = np.unpackbits(self._bits[first >> 3 : last + 7 >> 3], bitorder="little")
            rows = np.flatnonzero(flags[first & 7 :][: len(batch)])
            first = last
            if not len(rows):
                continue
            ids = batch.take(pa.array(rows)).fill_null("")
            self._ends.append(total + np.cumsum(pc.binary_length(ids).to_numpy()))
            data = b"".join(ids.cast(pa.large_binary()).to_pylist())
            self._text.append(np.frombuffer(data, np.uint8))
            total, self._count = total + len(data), self._count + len(ids)
        counts = np.bitwise_count(self._bits.view(np.uint64)).astype(np.int64)
        self._before = np.cumsum(counts) - counts

    def take(self, numbers: Any) -> pa.Array:
        """The ids of requested rows."""
        words = self._bits.view(np.uint64)[numbers >> 6]
        below = (np.uint64(1) << (numbers & 63).astype(np.uint64)) - np.uint64(1)
        places = self._before[numbers >> 6] + np.bitwise_count(words & below)
        buffers = [pa.py_buffer(_mapped(file)) for file in (self._ends, self._text)]
        ids = pa.LargeStringArray.from_buffers(self._count, *buffers)
        return ids.take(pa.array(places))

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Free the disk space."""
        self._ends.close()
        self._text.close()


def _mapped(file: TemporaryRows) -> Any:
    return mmap.mmap(file.fd, file.nbytes, access=mmap.ACCESS_READ) if file.nbytes else b""


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

    The new ones are in memory with search tables; the old ones are read once, in batches.

    Args:
        new: Fingerprint files, folders of them or patterns; their rows are numbered across files.
        old: As `new`.
        output: Table file: left (new), right (old), distance, left_id, right_id; by right, left.
        distance: Largest Hamming distance, 0 or more.
        plan: How the new ones are searched, as for `neardup.Index`.
        limits: Threads, and the folder for temporary files.
        progress: Shows the progress.
        csv_safe: Put a quote (') before cells of CSV tables that a spreadsheet would compute.

    Raises:
        UsageError: For a wrong plan or distance.
        FileError, DataError, RecipeError: If a file cannot be used, or they do not match.
    """
    limits = limits or Limits()
    reporter = progress or Quiet()
    watch = Stopwatch(reporter)
    files, others = fingerprint_files_of(new), fingerprint_files_of(old)
    with OutputSet([*files, *others], limits.tmp, workers=limits.workers) as written:
        written.check(output)
        reader, against = FingerprintReader(files), FingerprintReader(others)
        FingerprintReader([*files[:1], *others[:1]])  # refuses two recipes
        check_width(distance, reader.bits)
        words = -(-reader.bits // 64)
        watch.begin("read", BYTES * words * reader.rows)
        values, ids = _loaded(reader)
        watch.begin("match", BYTES * words * against.rows)
        count = 0

        def pair_rows() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for batch in _with_ids(
                values, ids, against, (distance, reader.bits, plan), limits, reporter
            ):
                count += len(batch)
                yield batch

        write_table(written, output, NAMED_PAIRS, pair_rows(), csv_safe=csv_safe)
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


def _with_ids(
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
