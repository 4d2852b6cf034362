"""Write the fingerprints of files' documents to a fingerprint file.

A part of the documents is fingerprinted while the next one is read, and written after that; so only
two parts are in memory.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from neardup.documents import Rejects, rejects_doubt, write_table
from neardup.documents.record_addresses import Addresses
from neardup.fingerprinting.fingerprint_files import Sealing, fingerprint_table
from neardup.fingerprinting.fingerprints import Fingerprinter
from neardup.pipeline.run.read_documents import begin_reading, open_inputs
from neardup.pipeline.run.rule import Limits
from neardup.pipeline.run.run_outputs import messages, output_set
from neardup.pipeline.run.summary import FingerprintSummary
from neardup.runtime.progress import Quiet, Stopwatch
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.documents import Batch, InputFormat, ReadOptions, Source
    from neardup.fingerprinting.recipe import Recipe
    from neardup.runtime.progress import Progress

__all__ = ["fingerprint_files"]

ROWS_A_PART: Final = 1 << 16
BYTES_A_PART: Final = 1 << 26


def fingerprint_files(
    paths: Sequence[str],
    output: str,
    recipe: Recipe,
    read: ReadOptions,
    limits: Limits | None = None,
    rejects_path: str | None = None,
    progress: Progress | None = None,
    format_name: InputFormat | str | None = None,
) -> FingerprintSummary:
    """Write the fingerprints of files' documents to a fingerprint file.

    Args:
        paths: Inputs, as for `open_sources`.
        output: A Parquet file.
        recipe: How to fingerprint.
        read: Which fields to read, and what to do with bad records.
        limits: Its threads, and the folder for temporary files.
        rejects_path: Where bad records go if they are skipped.
        progress: Told where the run is.
        format_name: Format of all inputs; their extensions tell unless given.

    Raises:
        UsageError, DataError, FileError: As `dedup`.
    """
    shown, using = progress or Quiet(), limits or Limits()
    watch = Stopwatch(shown)
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, using, format_name)
        written = stack.enter_context(output_set(sources, using))
        rejects = Rejects(rejects_path, written)
        begin_reading(sources, watch)
        parts = Parts(sources, recipe, using.workers)
        stack.callback(parts.close)
        none = np.empty((0, recipe.words), np.uint64)
        schema = fingerprint_table(pa.array([], pa.large_string()), none, recipe).schema
        sealing = Sealing(recipe)
        rows = sealing.passing(parts.written(read, rejects, shown))
        write_table(written, output, schema, rows, closing=sealing.metadata)
        doubt = rejects_doubt(parts.documents, rejects.count)
        written.commit()
    notes, warnings = messages(sources, written)
    return FingerprintSummary(
        documents=parts.documents,
        fingerprints=parts.documents - parts.empty,
        empty=parts.empty,
        rejected=rejects.count,
        nbytes=parts.nbytes,
        seconds=watch.stop(),
        outputs=[output],
        settings={"recipe": recipe.to_json(), "digest": recipe.digest},
        notes=notes,
        warnings=[*warnings, *filter(None, [doubt])],
    )


class Parts:
    """The documents of some inputs, a part at a time.

    Args:
        sources: The inputs.
        recipe: How to fingerprint.
        workers: Threads.

    Attributes:
        documents: How many there were so far; `empty` ones of these have no tokens.
        nbytes: Bytes that were read.
    """

    def __init__(self, sources: Sequence[Source], recipe: Recipe, workers: int | None) -> None:
        """Read nothing yet."""
        self.documents = self.empty = self.nbytes = 0
        self._sources, self._recipe, self._workers = sources, recipe, workers
        self._open: list[_Part] = []

    def written(
        self, read: ReadOptions, rejects: Rejects, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a fingerprint file."""
        part = self._begin()
        read = replace(read, workers=worker_count(self._workers))
        for number, source in enumerate(self._sources):
            for batch in source.batches(read, rejects):
                part.add(number, batch)
                progress.advance(batch.nbytes)
                if part.is_full:
                    part = self._begin()
                    yield from self._finished(but=2)
            self.nbytes += source.bytes_read
        yield from self._finished(but=0)

    def close(self) -> None:
        """Stop the threads."""
        for part in self._open:
            part.fingerprinter.close()

    def _begin(self) -> _Part:
        names = [source.name for source in self._sources]
        self._open.append(_Part(names, self._recipe, self._workers))
        return self._open[-1]

    def _finished(self, but: int) -> Iterator[pa.RecordBatch]:
        """The oldest parts, but for so many that go on."""
        while len(self._open) > but:
            part = self._open[0]
            values = part.fingerprinter.finish()
            part.fingerprinter.close()
            self._open.pop(0)
            self.documents += len(values)
            self.empty += int(np.ma.getmaskarray(values)[:, 0].sum())
            ids = part.addresses.of(np.arange(len(values)))
            yield from fingerprint_table(ids, values, self._recipe).to_batches()


class _Part:
    """Batches that are read one after the other."""

    def __init__(self, names: Sequence[str], recipe: Recipe, workers: int | None) -> None:
        self.addresses = Addresses(names)
        self.fingerprinter = Fingerprinter(recipe, workers)
        self._rows = self._bytes = 0

    def add(self, source: int, batch: Batch) -> None:
        self.fingerprinter.add(batch.texts)
        self.addresses.add(source, batch.rows, batch.ids)
        self._rows += len(batch.texts)
        self._bytes += batch.nbytes

    @property
    def is_full(self) -> bool:
        return self._rows >= ROWS_A_PART or self._bytes >= BYTES_A_PART
