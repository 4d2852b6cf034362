"""On the workers: read files, and make fingerprints and feature sets of texts."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import Rejects
from neardup.documents.ordering import LARGEST_FIRST, SMALLEST_FIRST
from neardup.documents.record_addresses import Addresses
from neardup.errors import DataError, FileError, UsageError
from neardup.fingerprinting.fingerprints import Fingerprinter
from neardup.runtime.arrays import cut
from neardup.runtime.storage.spool import FeatureSpool
from neardup.spark.workers.file_inputs import FailedRanks, opened
from neardup.spark.workers.partition_rows import arrays_of, binary, sorted_sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from neardup.documents import InputFormat, ReadOptions, Source
    from neardup.documents.ordering import Order
    from neardup.fingerprinting.recipe import Recipe
    from neardup.spark.workers.file_inputs import Shipped

__all__ = [
    "DOCUMENTS",
    "ROW_BITS",
    "codes_to_documents",
    "fingerprinted",
    "messages_of",
    "read_files",
    "rejects_path",
    "texts_to_documents",
]

ROW_BITS: Final = 40
"""The low bits of a document's number, which hold its row; above is its file's place among the
sorted inputs."""

DOCUMENTS: Final = (
    "number long, address string, score double, within string, codes binary, features binary,"
    " rejected long"
)
"""One row a document; codes are empty where it has no features. The last row of a file is not a
document: its number is -1 - the file's place, `rejected` counts the bad records of the file, and
`address` has the messages of reading it, as JSON, or null: `notes`, `warnings` and what it
`compares`, or the `error` at its end."""

_TEXTS: Final = 1 << 12
_TEXT_BYTES: Final = 1 << 26
"""The most texts, and bytes of texts, whose features are in one array: see `binary`."""


def read_files(
    batches: Iterable[pa.RecordBatch],
    read: ReadOptions,
    input_format: InputFormat,
    recipe: Shipped,
    how: tuple[str, bool],
    folder: str,
    *,
    has_rejects: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Read the inputs of rows of `rank` and FILE; gives DOCUMENTS.

    An input that cannot be used does not end the run here, since another task may meet an error in
    an earlier input: the driver raises the first error in the order of the inputs. A task reads its
    inputs in that order, up to its first error or the first of another task.

    Args:
        batches: The rows.
        read: Which fields to read.
        input_format: Of the inputs.
        recipe: How to fingerprint.
        how: What is kept, and whether features are.
        folder: Of the run; with `has_rejects` the bad records of each file go to its own
            `rejects_path` there.
        has_rejects: Whether they are written down.
    """
    own_recipe, failed = recipe.load(), FailedRanks(folder)
    files = sorted((x for batch in batches for x in batch.to_pylist()), key=itemgetter("rank"))
    for file in files:
        rank = file["rank"]
        path = rejects_path(folder, rank) if has_rejects else None
        try:
            with Rejects(path) as refused:
                for documents in _read_file(file, (read, input_format), own_recipe, how, refused):
                    yield documents
                    if failed.before(rank):
                        return
        except (DataError, FileError, UsageError) as error:
            failed.add(rank)
            yield _last(rank, {"error": [type(error).__name__, str(error)]}, 0)
            return


def rejects_path(folder: str, rank: int) -> str:
    """The path of the bad records of a file."""
    return f"{folder}/rejects/{rank:010}.jsonl"


def _read_file(
    file: dict[str, Any],
    how_to_read: tuple[ReadOptions, InputFormat],
    recipe: Recipe,
    how: tuple[str, bool],
    rejects: Rejects,
) -> Iterator[pa.RecordBatch]:
    read, input_format = how_to_read
    source = opened(file, input_format)
    (keep, by_features), first, row = how, file["rank"] << ROW_BITS, 0
    try:
        for batch in source.batches(read, rejects):
            addresses = Addresses([file["name"]])
            addresses.add(0, batch.rows, batch.ids)
            names = addresses.of(np.arange(len(batch.texts)))
            for part in _parts(batch.texts):
                texts = batch.texts[part]
                numbers = first + row + np.arange(len(texts))
                score = _scores(keep, texts, None if batch.numbers is None else batch.numbers[part])
                within = pa.nulls(len(texts)) if batch.within is None else batch.within[part]
                columns = (numbers, names[part], score, within)
                yield _documents(columns, texts, recipe, by_features)
                row += len(texts)
    finally:
        source.close()
    yield _last(file["rank"], messages_of(file["name"], source), rejects.count)


def _last(rank: int, messages: dict[str, Any] | None, rejected: int) -> pa.RecordBatch:
    none = pa.array([b""], pa.binary())
    encoded_messages = pa.nulls(1) if messages is None else pa.array([json.dumps(messages)])
    columns = (np.array([-1 - rank]), encoded_messages, np.zeros(1), pa.nulls(1))
    return _batch(columns, none, none, rejected)


def messages_of(name: str, source: Source) -> dict[str, Any] | None:
    """The messages of reading a file, in the form of DOCUMENTS."""
    if not (source.notes or source.warnings or source.compares):
        return None
    lines = {"name": name, "notes": source.notes, "warnings": source.warnings}
    return lines | {"compares": source.compares}


def texts_to_documents(
    batches: Iterable[pa.RecordBatch],
    recipe: Shipped,
    keep: str,
    order: Order | None,
    by_features: bool,
) -> Iterator[pa.RecordBatch]:
    """Make DOCUMENTS of rows of `number`, `address`, `text`, `measured` and `within`."""
    own_recipe = recipe.load()
    for batch in batches:
        every = batch.column("text").cast(pa.large_string()).fill_null("")
        for rows in _parts(every):
            part, texts = batch.slice(rows.start, rows.stop - rows.start), every[rows]
            (numbers,) = arrays_of(part, "number")
            measured = None if order is None else _measured(part, order)
            score = _scores(keep, texts, measured)
            columns = (numbers, part.column("address"), score, part.column("within"))
            yield _documents(columns, texts, own_recipe, by_features)


def codes_to_documents(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make DOCUMENTS without features of rows of `number`, `address` and `fingerprint`."""
    for batch in batches:
        column = batch.column("fingerprint")
        used = column.is_valid().to_numpy(zero_copy_only=False)
        words = column.drop_null().to_numpy().view(np.uint64)
        none = binary(np.zeros(0, np.uint64), np.zeros(len(batch) + 1, np.int64))
        columns = (batch.column("number"), batch.column("address"), np.zeros(len(batch)))
        codes = binary(words, np.append(0, np.cumsum(used)))
        yield _batch((*columns, pa.nulls(len(batch))), codes, none, 0)


def fingerprinted(
    batches: Iterable[pa.RecordBatch], text: str, recipe: Shipped
) -> Iterator[pa.RecordBatch]:
    """Append a column `fingerprint` (int64, null without tokens) to rows with a column of texts."""
    own_recipe = recipe.load()
    for batch in batches:
        texts = batch.column(text).cast(pa.large_string()).fill_null("")
        with Fingerprinter(own_recipe, 1) as fingerprinter:
            fingerprinter.add(texts)
            values = fingerprinter.finish()
        words = np.ma.getdata(values)[:, 0].view(np.int64)
        empty = np.ma.getmaskarray(values)[:, 0]
        arrays = [*batch.columns, pa.array(words, mask=empty)]
        yield pa.record_batch(arrays, [*batch.schema.names, "fingerprint"])


def _measured(part: pa.RecordBatch, order: Order) -> pa.Array:
    """The values of the column `measured`; DataError for a date that cannot be read."""
    column = part.column("measured")
    worths, bad = order.of_column(column)
    if bad.any():
        wrong = order.unreadable(column[int(bad.argmax())].as_py())
        advice = wrong.advice.replace("--date-format FORMAT", "date_format")
        if order.date_format is not None:
            advice = "fix these rows or leave them out"
        raise DataError(f"{wrong.problem}; {advice}")
    return worths


def _scores(keep: str, texts: pa.Array, measured: pa.Array | None) -> npt.NDArray[np.float64]:
    """The score that decides priority before the number, smallest first; NaN comes last."""
    if keep == "longest":
        return -np.asarray(pc.utf8_length(texts), np.float64)
    by = keep.partition(":")[0]
    if by not in {*LARGEST_FIRST, *SMALLEST_FIRST}:
        return np.zeros(len(texts))
    numbers = pa.nulls(len(texts)) if measured is None else measured
    values = np.asarray(numbers.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    return -values if by in LARGEST_FIRST else values


def _parts(texts: pa.Array) -> Iterator[slice]:
    """Slices of at most _TEXTS texts and _TEXT_BYTES, or of one longer text."""
    sizes = np.asarray(pc.binary_length(texts), np.int64)
    for first, last in cut(np.maximum(sizes, _TEXT_BYTES // _TEXTS), _TEXT_BYTES):
        yield slice(first, last)


def _documents(
    columns: tuple[Any, Any, Any, Any], texts: Any, recipe: Recipe, by_features: bool
) -> pa.RecordBatch:
    spool: FeatureSpool | None = FeatureSpool(1 << 30) if by_features else None
    with Fingerprinter(recipe, 1, spool) as fingerprinter:
        fingerprinter.add(texts)
        values, ends = fingerprinter.finish(), fingerprinter.feature_offsets()
    features = binary(np.zeros(0, np.uint64), np.zeros(len(texts) + 1, np.int64))
    if spool is not None:
        features = binary(sorted_sets(spool.finish(), ends), ends)
        spool.close()
    used = np.diff(ends) > 0
    words = np.append(0, np.cumsum(used * recipe.words))
    return _batch(columns, binary(np.ma.getdata(values)[used].reshape(-1), words), features, 0)


def _batch(
    columns: tuple[Any, Any, Any, Any], codes: Any, features: Any, rejected: int
) -> pa.RecordBatch:
    numbers, names, score, within = columns
    arrays = {
        "number": pa.array(numbers, pa.int64()),
        "address": names.cast(pa.string()),
        "score": pa.array(score, pa.float64()),
        "within": within.cast(pa.string()),
        "codes": codes,
        "features": features,
        "rejected": pa.array(np.full(len(numbers), rejected)),
    }
    return pa.record_batch(arrays)
