"""Cut paragraphs or lines that many documents have out of files.

1. read: hash the units of each document while the next batch is read;
2. match: group the hashes, and find the units to cut;
3. write the records without these units, and the table of cuts;
4. commit: all outputs appear together.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import orjson
import pyarrow as pa

from neardup.documents import (
    OutputSet,
    Rejects,
    check_kept,
    rejects_doubt,
    write_outputs,
    write_table,
)
from neardup.documents.extensions import check_extension
from neardup.documents.record_addresses import Addresses
from neardup.documents.record_edits import TextEdits
from neardup.errors import UsageError
from neardup.features.passages import UNITS, unit_hashes
from neardup.fingerprinting.recipe import Recipe
from neardup.pipeline.repeated_units import CutUnits, RepeatedUnits
from neardup.pipeline.run.read_documents import begin_reading, open_inputs
from neardup.pipeline.run.rule import Limits
from neardup.pipeline.run.run_outputs import messages
from neardup.pipeline.run.summary import LinesSummary
from neardup.runtime.progress import Quiet, Stopwatch
from neardup.runtime.storage.temporary import temporary_file
from neardup.runtime.threads import read_ahead, worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.documents import ReadOptions, Source
    from neardup.runtime.progress import Progress

__all__ = ["CUTS", "LineOutputs", "Repeated", "lines_files"]

KEEPS: Final = ("first", "none")
CUTS: Final = pa.schema(
    [
        ("text", pa.large_string()),
        ("documents", pa.int64()),
        ("first", pa.large_string()),
        ("cuts", pa.int64()),
        ("bytes", pa.int64()),
    ]
)
_ROWS_A_BATCH: Final = 1 << 12
_MOST_WORDS: Final = (1 << 31) - 1
_RECIPE: Final = Recipe()


@dataclass(frozen=True, slots=True)
class Repeated:
    """The rule by which units are cut.

    Args:
        unit: "paragraph" or "line".
        seen_in: The least number of documents that have a unit; 2 or more.
        min_words: A unit of fewer words is never cut.
        keep: "first" leaves the first of equal units, "none" leaves none.

    Raises:
        UsageError: For another unit, number or keep.
    """

    unit: str = "paragraph"
    seen_in: int = 5
    min_words: int = 5
    keep: str = "first"

    def __post_init__(self) -> None:
        """Refuse other values."""
        for name, choices in (("unit", UNITS), ("keep", KEEPS)):
            if getattr(self, name) not in choices:
                raise UsageError(
                    f"{name} is {getattr(self, name)!r}: use one of {', '.join(choices)}"
                )
        if self.seen_in < 2:
            raise UsageError(f"seen_in is {self.seen_in}: use 2 or more documents")
        if not 1 <= self.min_words <= _MOST_WORDS:
            raise UsageError(f"min_words is {self.min_words}: use 1 to {_MOST_WORDS:,}")

    def to_dict(self) -> dict[str, Any]:
        """The options, for the summary."""
        return {
            "unit": self.unit, "seen_in": self.seen_in, "min_words": self.min_words,
            "keep": self.keep, "recipe": _RECIPE.digest,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class LineOutputs:
    """The outputs of a run; None writes no output of the kind.

    Args:
        records: A file, "-" or a folder for all records.
        cut: Table file with a row for each distinct unit that was cut.
        rejects: JSON lines of the records that could not be used.
        csv_safe: Put a quote (') before cells of CSV tables that a spreadsheet would compute.
    """

    records: str
    cut: str | None = None
    rejects: str | None = None
    csv_safe: bool = False

    @property
    def tables(self) -> list[str]:
        """The paths other than the records'."""
        return [path for path in (self.cut, self.rejects) if path is not None]

    def check(self, sources: Sequence[Source], written: OutputSet) -> None:
        """Refuse, before hours of reading, outputs that cannot be written."""
        whole = next((source for source in sources if not source.takes_edits), None)
        if whole is not None:
            raise UsageError(
                f"{whole.name} is {whole.format}, whose records are copied whole: nothing can be"
                " cut out of them; write their texts to JSON lines first"
            )
        if self.cut is not None:
            check_extension(self.cut)
        check_kept(sources, self.records, self.tables, written)


def lines_files(
    paths: Sequence[str],
    outputs: LineOutputs,
    repeated: Repeated,
    read: ReadOptions,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> LinesSummary:
    """Write the records of files without the paragraphs or lines that many documents have.

    Args:
        paths: Inputs, as for `open_sources`.
        outputs: Where to write.
        repeated: Which units are cut.
        read: Which field to read, and what to do with bad records.
        limits: The resources of the run.
        progress: Shows the progress.

    Raises:
        UsageError, DataError, FileError: As `dedup`.
    """
    if len(read.text) > 1:
        raise UsageError(
            f"--text is {','.join(read.text)}: passages are cut out of one field; name one"
        )
    reporter, using = progress or Quiet(), limits or Limits()
    watch = Stopwatch(reporter)
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, using, read.input_format)
        inputs = [path for source in sources for path in source.paths]
        written = stack.enter_context(OutputSet(inputs, using.tmp, workers=using.workers))
        outputs.check(sources, written)
        rejects = Rejects(outputs.rejects, written)
        units = RepeatedUnits(
            repeated.seen_in, keeps_first=repeated.keep == "first",
            memory=using.memory, tmp=using.tmp,
        )  # fmt: skip
        stack.callback(units.close)
        begin_reading(sources, watch)
        documents = _Documents(sources)
        documents.read(replace(read, extract="none"), rejects, repeated, units, using, reporter)
        watch.begin("match")
        cuts = units.cuts(documents.count)
        stack.callback(cuts.close)
        begin_reading(sources, watch, "write")
        rows = stack.enter_context(_Rows(documents.addresses, using.tmp))
        cutter = CutUnits(cuts, repeated.unit, None if outputs.cut is None else rows.add)
        names = documents.write(outputs.records, cutter, read.text[0], written, reporter)
        if outputs.cut is not None:
            write_table(written, outputs.cut, CUTS, rows.batches(), csv_safe=outputs.csv_safe)
        doubt = rejects_doubt(documents.count, rejects.count)
        spilled = units.spilled + cuts.spilled
        written.commit()
    notes, warnings = messages(sources, written)
    return LinesSummary(
        documents=documents.count,
        changed=cutter.texts,
        emptied=cutter.emptied,
        rejected=rejects.count,
        units=units.units,
        repeated=units.repeated,
        cut=units.cut,
        cut_bytes=cutter.nbytes,
        spilled=spilled,
        nbytes=documents.nbytes,
        seconds=watch.stop(),
        outputs=names + outputs.tables,
        settings=repeated.to_dict(),
        notes=notes,
        warnings=[*warnings, *filter(None, [doubt])],
    )


class _Documents:
    """The documents of some inputs: read for their units, then written."""

    def __init__(self, sources: Sequence[Source]) -> None:
        """Read nothing yet."""
        self.count = self.nbytes = 0
        self.addresses = Addresses([source.name for source in sources])
        self._sources = sources
        self._firsts: list[int] = []

    def read(
        self,
        read: ReadOptions,
        rejects: Rejects,
        repeated: Repeated,
        units: RepeatedUnits,
        limits: Limits,
        progress: Progress,
    ) -> None:
        """Hash the units of every input, a batch while the next one is read."""
        workers = worker_count(limits.workers)
        read = replace(read, workers=workers)
        for number, source in enumerate(self._sources):
            self._firsts.append(self.count)
            batches = source.batches(read, rejects)
            for batch in read_ahead(batches) if source.is_here else batches:
                rows = unit_hashes(batch.texts, repeated.unit, repeated.min_words, _RECIPE, workers)
                rows[:, 2] += np.uint64(self.count)
                units.add(rows)
                self.addresses.add(number, batch.rows, batch.ids)
                self.count += len(batch.texts)
                progress.advance(batch.nbytes)
            self.nbytes += source.bytes_read

    def write(
        self, output: str, cutter: CutUnits, field: str, written: OutputSet, progress: Progress
    ) -> list[str]:
        """Write all records, without the stretches of the cutter; returns the written paths."""
        ends = [*self._firsts[1:], self.count]
        masks = []
        for source, first, end in zip(self._sources, self._firsts, ends, strict=True):
            source.edits = TextEdits(cutter, first, field, source.name)
            masks.append(np.ones(end - first, np.bool_))
        return write_outputs(self._sources, masks, output, written, progress.advance)


class _Rows:
    """The rows of the table of cuts, on disk until the records are written."""

    def __init__(self, addresses: Addresses, tmp: str | None) -> None:
        """Begin without rows."""
        self._addresses = addresses
        self._file = temporary_file(tmp, "cuts")

    def add(self, document: int, text: str, documents: int, cuts: int, nbytes: int) -> None:
        """Append a row."""
        row = (text, documents, document, cuts, nbytes)
        self._file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in order."""
        self._file.seek(0)
        while lines := self._file.readlines(_ROWS_A_BATCH << 8):
            columns: list[Any] = list(zip(*map(orjson.loads, lines), strict=True))
            columns[2] = self._addresses.of(np.array(columns[2]))
            yield pa.RecordBatch.from_arrays(
                [pa.array(x, each.type) for x, each in zip(columns, CUTS, strict=True)], schema=CUTS
            )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Free the disk space."""
        self._file.close()
