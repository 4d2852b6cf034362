"""On the workers: write the kept records of each file, and its part of the tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.documents import OutputSet, Rejects, write_outputs, write_table
from neardup.documents.files.finding import path_below
from neardup.documents.files.remote import locate, remote_errors
from neardup.documents.record_addresses import Addresses
from neardup.documents.result_tables import CLUSTERS, DUPLICATES, VIA, clusters_batch
from neardup.documents.source import DocumentFiles
from neardup.spark.workers.documents import ROW_BITS
from neardup.spark.workers.file_inputs import FILE, Folder, opened
from neardup.spark.workers.partition_rows import arrays_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from neardup.documents import InputFormat, ReadOptions
    from neardup.runtime.types import Flags, Rows

__all__ = [
    "DECIDED",
    "UPLOADED",
    "WRITTEN",
    "make_folders",
    "part_path",
    "upload_files",
    "write_files",
]

_SQL_TYPES: Final = {pa.large_string(): "string", pa.int32(): "int", pa.float64(): "double"}
DECIDED: Final = f"p long, {FILE}, number long, dropped boolean, " + ", ".join(
    f"{field.name} {_SQL_TYPES[field.type]}"
    for field in [*DUPLICATES, VIA]
    if field.name != "dropped"
)
"""A row of a file (`path` is set), or of one of its documents that matches another."""

WRITTEN: Final = "p long, kept long, dropped long"
UPLOADED: Final = "p long, bytes long"


def part_path(folder: str, kind: str, rank: int) -> str:
    """The path of a file's part of a table."""
    return f"{folder}/{kind}/{rank:010}.arrow"


def write_files(
    batches: Iterable[pa.RecordBatch],
    folder: str,
    read: ReadOptions,
    input_format: InputFormat,
    kinds: tuple[str, ...],
) -> Iterator[pa.RecordBatch]:
    """Write the outputs of the files of a partition: DECIDED to WRITTEN.

    A file that is written twice, since its worker was lost, has the same bytes.

    Args:
        batches: Files and their documents.
        folder: With a folder for each of `kinds`.
        read: As the files were read.
        input_format: Likewise.
        kinds: What to write: "kept", "duplicates" (with "via": the column), "clusters".
    """
    table = whole(batches)
    if table is None:
        return
    (ranks,) = arrays_of(table, "p")
    for rank in np.unique(ranks).tolist():
        rows = table.filter(pa.array(ranks == rank))
        is_file = rows.column("path").is_valid()
        (file,) = rows.filter(is_file).to_pylist()
        documents = rows.filter(is_file.to_numpy() ^ True).sort_by("number")
        kept, dropped = _write_file(rank, file, documents, folder, (read, input_format, kinds))
        yield pa.record_batch({"p": [rank], "kept": [kept], "dropped": [dropped]})


def _write_file(
    rank: int,
    file: dict[str, Any],
    documents: pa.Table,
    folder: str,
    how: tuple[ReadOptions, InputFormat, tuple[str, ...]],
) -> tuple[int, int]:
    read, input_format, kinds = how
    source = opened(file, input_format)
    # A number is the rank of the file, shifted, and the row: numbers follow the inputs' order.
    places = arrays_of(documents, "number")[0] - (rank << ROW_BITS)
    dropped = documents.column("dropped").to_numpy()
    addresses, count = Addresses([file["name"]]), 0
    try:
        for batch in source.batches(read, Rejects(None)):
            addresses.add(0, batch.rows, batch.ids)
            count += len(batch.texts)
        keep = np.ones(count, np.bool_)
        keep[places[dropped]] = False
        with OutputSet() as written:
            if "kept" in kinds and isinstance(source, DocumentFiles):
                source.copy_kept(keep, Folder(f"{folder}/kept"))
            elif "kept" in kinds:
                write_outputs([source], [keep], f"{folder}/kept/", written)
            if "duplicates" in kinds:
                gone = documents.filter(pa.array(dropped))
                rows = _duplicates(gone, addresses, places[dropped], with_via="via" in kinds)
                path = part_path(folder, "duplicates", rank)
                write_table(written, path, rows.schema, rows.to_batches())
            if "clusters" in kinds:
                rows = _clusters(documents, addresses, places, keep)
                path = part_path(folder, "clusters", rank)
                write_table(written, path, CLUSTERS, rows.to_batches())
            # Tables get their names when they are whole: a lost task leaves no part of one, and
            # its repetition writes the same bytes.
            written.commit()
    finally:
        source.close()
    return int(keep.sum()), int(dropped.sum())


def _duplicates(
    documents: pa.Table, addresses: Addresses, places: Rows, *, with_via: bool
) -> pa.Table:
    schema = DUPLICATES.append(VIA) if with_via else DUPLICATES
    named = pa.chunked_array([addresses.of(places)]) if len(places) else pa.nulls(0)
    table = documents.set_column(documents.column_names.index("dropped"), "dropped", named)
    return table.select(schema.names).cast(schema)


def _clusters(documents: pa.Table, addresses: Addresses, places: Rows, keep: Flags) -> pa.Table:
    own = addresses.of(np.arange(len(keep))) if len(keep) else pa.nulls(0, pa.large_string())
    matched = np.zeros(len(keep), np.bool_)
    matched[places] = True
    names = documents.column("cluster").combine_chunks().cast(pa.large_string())
    if isinstance(names, pa.ChunkedArray):
        names = pa.concat_arrays(names.chunks)
    take = np.arange(len(keep))
    take[places] = len(keep) + np.arange(len(places))
    labels = pa.concat_arrays([own, names]).take(pa.array(take))
    return pa.Table.from_batches([clusters_batch(own, labels, keep)])


def make_folders(folder: str, kinds: tuple[str, ...]) -> None:
    """Make the folders that `write_files` writes to."""
    for kind in kinds:
        Path(folder, kind).mkdir(parents=True, exist_ok=True)


def upload_files(batches: Iterable[pa.RecordBatch], target: str) -> Iterator[pa.RecordBatch]:
    """Upload files, rows of `p`, `path` and `relative` (as JSON), below a URI; gives UPLOADED."""
    for batch in batches:
        sizes = []
        for row in batch.to_pylist():
            path, uri = json.loads(row["path"]), path_below(target, json.loads(row["relative"]))
            with remote_errors(uri, "write"):
                fs, key = locate(uri)
                fs.put_file(path, key)
            sizes.append(Path(path).stat().st_size)
        yield pa.record_batch({"p": batch.column("p"), "bytes": pa.array(sizes, pa.int64())})
