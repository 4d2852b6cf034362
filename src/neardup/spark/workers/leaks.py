"""On the workers: search files for the questions of benchmarks."""

from __future__ import annotations

import functools
import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.contamination.finding_log import encoded
from neardup.contamination.questions import lay_out
from neardup.contamination.search import Search
from neardup.documents import Rejects
from neardup.documents.record_addresses import Addresses
from neardup.errors import DataError, FileError, UsageError
from neardup.spark.workers.documents import ROW_BITS, messages_of, rejects_path
from neardup.spark.workers.file_inputs import FailedRanks, opened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from neardup.contamination.questions import Questions
    from neardup.contamination.rules import LeakRule
    from neardup.documents import InputFormat, ReadOptions

__all__ = ["SEARCHED", "search_files"]

SEARCHED: Final = (
    "number long, address string, findings binary, documents long, rejected long, nbytes long,"
    " having binary"
)
"""A batch with findings: `number` of its first document, `findings` as `encoded` gives them.
The last row of a file has -1 - the file's place as `number`, the messages of the file as `address`
(as in DOCUMENTS), the counts of its documents and bad records, its bytes, and int64 counts of
features."""


def search_files(
    batches: Iterable[pa.RecordBatch],
    how: tuple[ReadOptions, InputFormat],
    against: tuple[str, LeakRule],
    folder: str,
    *,
    counts_documents: bool,
    has_rejects: bool,
) -> Iterator[pa.RecordBatch]:
    """Search the inputs of rows of `rank` and FILE; gives SEARCHED.

    An error goes to the driver as in `read_files`.

    Args:
        batches: The rows.
        how: Which fields to read, and the inputs' format.
        against: Arrow file of the questions' texts, and the rule.
        folder: Of the run.
        counts_documents: Whether to count how many documents have each feature.
        has_rejects: Whether bad records are written down.
    """
    questions, failed = _laid_out(*against), FailedRanks(folder)
    files = sorted((x for batch in batches for x in batch.to_pylist()), key=itemgetter("rank"))
    for file in files:
        rank = file["rank"]
        search = Search(questions, 1, counts_documents=counts_documents)
        # A number is the rank of the file, shifted, and the row, as in DOCUMENTS.
        search.skip(rank << ROW_BITS)
        try:
            with Rejects(rejects_path(folder, rank) if has_rejects else None) as rejects:
                for row in _search(file, how, search, rejects):
                    yield row
                    if failed.before(rank):
                        return
        except (DataError, FileError, UsageError) as error:
            failed.add(rank)
            message = {"error": [type(error).__name__, str(error)]}
            yield _row(-1 - rank, address=json.dumps(message))
            return


def _search(
    file: dict[str, Any], how: tuple[ReadOptions, InputFormat], search: Search, rejects: Rejects
) -> Iterator[pa.RecordBatch]:
    read, input_format = how
    source = opened(file, input_format)
    try:
        for batch in source.batches(read, rejects):
            first = search.documents
            findings = search.add(batch.texts)
            if findings:
                named = Addresses([file["name"]])
                named.add(0, batch.rows, batch.ids)
                rows = np.array([each.document for each in findings], np.int64) - first
                yield _row(first, findings=encoded(findings, named.of(rows).to_pylist()))
    finally:
        source.close()
    messages = messages_of(file["name"], source)
    yield _row(
        -1 - file["rank"],
        address=None if messages is None else json.dumps(messages),
        documents=search.documents - (file["rank"] << ROW_BITS),
        rejected=rejects.count,
        nbytes=source.bytes_read,
        having=search.having.tobytes(),
    )


def _row(number: int, **values: Any) -> pa.RecordBatch:
    types = {"address": pa.string(), "findings": pa.binary(), "having": pa.binary()}
    names = [part.partition(" ")[0] for part in SEARCHED.split(", ")]
    row = {"number": number} | values
    columns = [pa.array([row.get(name)], types.get(name, pa.int64())) for name in names]
    return pa.RecordBatch.from_arrays(columns, names)


@functools.lru_cache(maxsize=1)
def _laid_out(path: str, rule: LeakRule) -> Questions:
    with pa.OSFile(path) as file, pa.ipc.open_file(file) as stored:
        return lay_out(stored.read_all().column("text").combine_chunks(), rule)
