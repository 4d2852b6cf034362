"""Find the pairs of fingerprint files: what `neardup pairs` does, in bounded memory."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from neardup.documents import OutputSet, write_table
from neardup.documents.inputs import find_files
from neardup.fingerprint_files import FingerprintReader
from neardup.pair_batches import PAIRS, Limits, check_request, joined_rows
from neardup.progress import Quiet, Stopwatch
from neardup.row_ids import RowIds
from neardup.row_sources import open_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.pair_batches import FoundPairs
    from neardup.progress import Progress

__all__ = ["pairs_file"]

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
) -> dict[str, Any]:
    """Write every pair within `distance` bits of fingerprint files, sorted.

    Args:
        paths: A fingerprint file, a folder of them or a pattern, or several; their rows are
            numbered through.
        output: Table file: left, right, distance, left_id, right_id.
        distance: Largest Hamming distance, 0 or more.
        plan: As for `pairs`.
        limits: Memory, folder for spill files, threads, most pairs.
        progress: Told where the run is.

    Returns:
        How many fingerprints and pairs there are, the plan, bytes spilled, and the seconds of each
        step.

    Raises:
        UsageError: For a wrong plan or distance.
        FileError, DataError, RecipeError: If a file cannot be used, or they do not match.
        TooManyPairsError: If there are more pairs than the disk holds.
    """
    limits = limits or Limits()
    check_request(distance, plan, limits)
    shown = progress or Quiet()
    watch = Stopwatch(shown)
    named = [paths] if isinstance(paths, str) else paths
    files = [file for path in named for file in _files(path)]
    with OutputSet(files, limits.tmp) as written:
        written.check(output)
        reader = FingerprintReader(files)
        watch.begin("read", 8 * -(-reader.bits // 64) * reader.rows)
        batches = _told(reader.batches(), shown)
        with open_rows(batches, reader.bits, limits.tmp) as (rows, bits):
            watch.begin("match")
            with joined_rows(rows, bits, distance, plan, limits, shown) as found:
                watch.begin("write")
                with RowIds(rows.count, limits.tmp) as ids:
                    write_table(written, output, NAMED_PAIRS, _named(found, reader, ids))
                    spilled = rows.nbytes + found.spilled + ids.nbytes
                pairs = found.spool.count
        written.commit()
    return {
        "fingerprints": rows.count,
        "pairs": pairs,
        "distance": distance,
        "bits": bits,
        "plan": plan,
        "output": output,
        "spilled": spilled,
        "seconds": watch.stop(),
    }


def _files(path: str) -> list[str]:
    if glob.has_magic(path) or Path(path).is_dir():
        return [found.path for found in find_files(path)]
    return [path]


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
