"""Documents on their way in: fingerprinted, and reduced to what the later steps need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.addresses import Addresses
from neardup.errors import UsageError
from neardup.fold import Fingerprinter
from neardup.matching import Grouping, Matching, group, priorities
from neardup.memory import memory_bytes
from neardup.similarity import FeatureSets
from neardup.spool import FeatureSpool
from neardup.text import text_array

if TYPE_CHECKING:
    from neardup.documents import ReadOptions

__all__ = ["Collection", "Resources", "columns_of"]


@dataclass(frozen=True, slots=True)
class Resources:
    """What a run may use.

    Args:
        memory: Bytes that the run should stay below, beside what grows with the number of
            documents; what does not fit goes to disk.
        tmp: Folder for temporary files; the system's unless given.
    """

    memory: int = field(default_factory=lambda: memory_bytes(None))
    tmp: str | None = None


class Collection:
    """What stays of the documents once their text is gone: O(1) for each, and the feature spool.

    Args:
        names: The inputs' names, for addresses.
        matching: Decides what must stay.
        resources: How much memory it may take, and where the rest goes.
    """

    def __init__(self, names: Sequence[str], matching: Matching, resources: Resources) -> None:
        """Begin without documents."""
        self.addresses = Addresses(names)
        self.nbytes = 0
        self._matching = matching
        self._resources = resources
        self._lengths: list[Any] = [np.zeros(0, np.int64)]
        self._spool = FeatureSpool(resources.memory // 8, resources.tmp)
        self._fingerprinter = Fingerprinter(
            matching.recipe, matching.workers, self._spool if matching.by_features else None
        )

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the threads and remove the spool."""
        self._fingerprinter.__exit__(*error)
        self._spool.__exit__(*error)

    def add(self, source: int, texts: pa.Array, rows: Any, ids: pa.Array | None) -> None:
        """Take a batch of large-string texts of input number `source`, with row numbers and ids."""
        self._fingerprinter.add(texts)
        self.addresses.add(source, rows, ids)
        if self._matching.keep == "longest":
            self._lengths.append(np.asarray(pc.utf8_length(texts), np.int64))

    def add_texts(self, texts: pa.ChunkedArray, ids: Any = None) -> None:
        """Take documents in memory, whose rows count from 0."""
        row = 0
        for chunk in texts.chunks:
            rows = np.arange(row, row + len(chunk), dtype=np.int64)
            self.add(0, chunk, rows, None if ids is None else ids[row : row + len(chunk)])
            row += len(chunk)

    def finish(self) -> Any:
        """Wait for the fingerprints; uint64 (n, words), masked where a document is empty."""
        return self._fingerprinter.finish()

    def sets(self, values: Any) -> FeatureSets:
        """The feature sets, after `finish`, whose result is `values`."""
        return FeatureSets(
            self._spool.finish(),
            self._fingerprinter.feature_offsets(),
            np.ma.getdata(values),
            cell_limit=self._resources.memory // 8,
            forget=self._spool.forget_pages,
        )

    def group(self, values: Any) -> Grouping:
        """Decide for every document, after `finish`, whose result is `values`."""
        order = priorities(len(values), self._matching.keep, np.concatenate(self._lengths))
        sets = self.sets(values) if self._matching.by_features else None
        return group(self._matching, values, order, sets)


def columns_of(source: Any, read: ReadOptions) -> tuple[pa.ChunkedArray, Any]:
    """Take texts and, where asked for, ids out of a table, an Arrow stream or a sequence of texts.

    Raises:
        UsageError: If a column is missing or something is not a text.
    """
    if not isinstance(source, pa.Table | pa.Array | pa.ChunkedArray):
        source = _from_stream(source)
    if not isinstance(source, pa.Table):
        return text_array(source), None
    for name in read.fields:
        if name not in source.column_names:
            raise UsageError(f"no column {name!r}: there are {', '.join(source.column_names)}")
    texts = [text_array(source[name]) for name in read.text]
    joined = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, pa.scalar("\n", pa.large_string()))
    return joined, None if read.id is None else source[read.id].cast(pa.large_string())


def _from_stream(source: Any) -> Any:
    if not hasattr(source, "__arrow_c_stream__"):
        return source
    stream = pa.chunked_array(source)
    if pa.types.is_struct(stream.type):
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(c) for c in stream.chunks])
    return stream
