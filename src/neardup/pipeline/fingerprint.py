"""Write the fingerprints of files' documents to a fingerprint file.

A part of the documents is fingerprinted while the next one is read, and written after that; so only
two parts are in memory.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.documents import Rejects, rejects_doubt, write_table
from neardup.documents.extensions import format_of_path
from neardup.documents.record_addresses import Addresses
from neardup.errors import UsageError
from neardup.fingerprinting.fingerprint_files import (
    Sealing,
    check_form,
    fingerprint_table,
    text_table,
)
from neardup.fingerprinting.fingerprints import Fingerprinter
from neardup.pipeline.run.read_documents import begin_reading, open_inputs
from neardup.pipeline.run.rule import Limits
from neardup.pipeline.run.run_outputs import messages, output_set
from neardup.pipeline.run.summary import FingerprintSummary
from neardup.runtime.progress import Quiet, Stopwatch
from neardup.runtime.threads import worker_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from neardup.documents import Batch, ReadOptions, Source
    from neardup.fingerprinting.recipe import Recipe
    from neardup.runtime.progress import Progress

__all__ = ["fingerprint_files"]

_TEXT_KINDS: Final = ("csv", "tsv", "jsonl")
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
    form: str | None = None,
) -> FingerprintSummary:
    """Write the fingerprints of files' documents to a fingerprint file, or as text.

    Args:
        paths: Inputs, as for `open_sources`.
        output: A Parquet file, which holds the recipe too; or CSV, TSV or JSON lines.
        recipe: How to fingerprint.
        read: Which fields to read, and what to do with bad records.
        limits: Its threads, and the folder for temporary files.
        rejects_path: Where bad records go if they are skipped.
        progress: Shows the progress.
        form: Of fingerprints as text: "hex", the default, or "signed".

    Raises:
        UsageError, DataError, FileError: As `dedup`.
    """
    table_of = _table_of(output, recipe, form)
    reporter, using = progress or Quiet(), limits or Limits()
    watch = Stopwatch(reporter)
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, using, read.input_format)
        written = stack.enter_context(output_set(sources, using))
        rejects = Rejects(rejects_path, written)
        begin_reading(sources, watch)
        parts = Parts(sources, recipe, table_of, using.workers)
        stack.callback(parts.close)
        none = np.empty((0, recipe.words), np.uint64)
        schema = table_of(pa.array([], pa.large_string()), none).schema
        sealing, rows = Sealing(recipe), parts.written(read, rejects, reporter)
        if format_of_path(output) == "parquet":
            rows = sealing.passing(rows)
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


def _table_of(output: str, recipe: Recipe, form: str | None) -> Callable[[Any, Any], pa.Table]:
    """A function from ids and fingerprints to the rows of an output.

    Raises:
        UsageError: For an extension or a form in which fingerprints cannot be written.
    """
    kind = format_of_path(output)
    if kind == "parquet":
        if form is not None:
            raise UsageError(
                f"{output}: --form is for CSV and JSON lines; Parquet has whole numbers"
            )
        return lambda ids, values: fingerprint_table(ids, values, recipe)
    if kind not in _TEXT_KINDS:
        raise UsageError(
            f"{output}: a fingerprint file is Parquet; use the extension .parquet, or .csv, .tsv or"
            " .jsonl to load it elsewhere"
        )
    named = "hex" if form is None else form
    check_form(named, recipe)
    return lambda ids, values: text_table(ids, values, recipe, named)


class Parts:
    """The documents of some inputs, a part at a time.

    Args:
        sources: The inputs.
        recipe: How to fingerprint.
        table_of: From ids and fingerprints to rows.
        workers: Threads.

    Attributes:
        documents: The number so far; `empty` of them have no tokens.
        nbytes: Bytes that were read.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        recipe: Recipe,
        table_of: Callable[[Any, Any], pa.Table],
        workers: int | None,
    ) -> None:
        """Read nothing yet."""
        self.documents = self.empty = self.nbytes = 0
        self._sources, self._recipe, self._workers = sources, recipe, workers
        self._table_of = table_of
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
        """The batches of the oldest parts; the newest `but` parts stay open."""
        while len(self._open) > but:
            part = self._open[0]
            values = part.fingerprinter.finish()
            part.fingerprinter.close()
            self._open.pop(0)
            self.documents += len(values)
            self.empty += int(np.ma.getmaskarray(values)[:, 0].sum())
            ids = part.addresses.of(np.arange(len(values)))
            yield from self._table_of(ids, values).to_batches()


class _Part:
    """Consecutive batches."""

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
