"""The outputs of a run over files, and the writing of its decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.documents import (
    OutputSet,
    check_extension,
    check_kept,
    result_tables,
    write_outputs,
    write_table,
)
from neardup.documents.extensions import check_page
from neardup.documents.record_addresses import RowAddresses
from neardup.documents.result_tables import CLUSTERS, DUPLICATES, VIA
from neardup.fingerprinting.values import distance
from neardup.pipeline.run.kept_options import options_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from neardup.documents import Source
    from neardup.documents.record_addresses import Addresses, ReferenceAddresses
    from neardup.pipeline.run.decision import Decision, References
    from neardup.pipeline.run.read_documents import Documents
    from neardup.pipeline.run.rule import Limits
    from neardup.runtime.progress import Progress
    from neardup.runtime.types import Flags, Rows

__all__ = [
    "ROWS_A_BATCH",
    "Outputs",
    "ReportOptions",
    "check_outputs",
    "cluster_batches",
    "clusters_schema",
    "duplicates_table",
    "messages",
    "output_set",
    "write_kept",
    "write_result_tables",
]


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of the report about a run.

    Args:
        path: The page.
        lowest: Its lowest threshold; by default 0.1 below the run's own.
        source: Field by which documents are counted; by default `within` or the input.
        summary: Write the numbers to this JSON file as well.
        command: The command of the run, which the page shows.
        seed: Of the clusters shown at random.
        fields: Of the records, shown next to the compared texts.

    Raises:
        UsageError: For a path without the extension of a page.
    """

    path: str
    lowest: float | None = None
    source: str | None = None
    summary: str | None = None
    command: str | None = None
    seed: int = 0
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        check_page(self.path)

    @property
    def paths(self) -> list[str]:
        """The files that are written."""
        return [self.path] if self.summary is None else [self.path, self.summary]


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of a run; None writes no output of the kind.

    Args:
        kept: A file, "-" or a folder for the kept documents.
        duplicates: Table file with one row for each dropped document.
        clusters: Table file with one row for each document.
        rejects: JSON lines of the records that could not be used.
        csv_safe: Put a quote (') before cells of CSV tables that a spreadsheet would compute.
        report: A page about the run.
        resume: Folder for the state of the run, from which a killed run continues; or None.
    """

    kept: str | None = None
    duplicates: str | None = None
    clusters: str | None = None
    rejects: str | None = None
    csv_safe: bool = False
    report: ReportOptions | None = None
    resume: str | None = None

    @property
    def tables(self) -> list[str]:
        """The paths other than the kept documents'."""
        paths = [
            path for path in (self.duplicates, self.clusters, self.rejects) if path is not None
        ]
        return paths if self.report is None else paths + self.report.paths


def output_set(
    sources: Sequence[Source],
    limits: Limits,
    note: Callable[[list[str]], None] | None = None,
    others: Sequence[str] = (),
) -> OutputSet:
    """The outputs of a run; none may replace an input or `others`; `note` gets temporary paths."""
    inputs = (path for source in sources for path in source.paths)
    return OutputSet((*others, *inputs), limits.tmp, note, limits.workers)


def write_kept(
    sources: Sequence[Source],
    decision: Decision,
    counts: Sequence[int],
    outputs: Outputs,
    written: OutputSet,
    progress: Progress,
    workers: int | None,
) -> list[str]:
    """Write the kept documents of each source, if there is an output; returns the paths."""
    if outputs.kept is None:
        return []
    masks = np.split(decision.kept, np.cumsum(counts)[:-1])
    return write_outputs(sources, masks, outputs.kept, written, progress.advance, workers)


def write_result_tables(
    duplicates: pa.Table,
    decision: Decision,
    addresses: Addresses,
    outputs: Outputs,
    written: OutputSet,
) -> None:
    """Write the tables of duplicates and of clusters, if there are outputs."""
    if outputs.duplicates is not None:
        rows = duplicates.to_batches(ROWS_A_BATCH)
        safe = outputs.csv_safe
        write_table(written, outputs.duplicates, duplicates.schema, rows, csv_safe=safe)
    if outputs.clusters is not None:
        batches = cluster_batches(decision, addresses)
        write_table(written, outputs.clusters, CLUSTERS, batches, csv_safe=outputs.csv_safe)


def check_outputs(sources: Sequence[Source], outputs: Outputs, written: OutputSet) -> None:
    """Refuse, before hours of reading, outputs that cannot be written."""
    for path in filter(None, (outputs.duplicates, outputs.clusters)):
        check_extension(path)
    options = options_path(outputs.duplicates)
    others = outputs.tables if options is None else [*outputs.tables, options]
    check_kept(sources, outputs.kept, others, written)


def messages(
    sources: Sequence[Source], written: OutputSet, others: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Notes on less visible decisions of a run over files, and reasons to doubt its result.

    Args:
        sources: The inputs.
        written: The outputs.
        others: Further notes.

    Returns:
        Lines of notes, and lines of warnings.
    """
    notes = list(dict.fromkeys(note for source in sources for note in source.notes))
    notes += [*others, *(f"{path} was replaced" for path in written.replaced)]
    warnings = [f"{source.name}: {line}" for source in sources for line in source.warnings]
    return notes, warnings


ROWS_A_BATCH: Final = 1 << 16


def duplicates_table(
    documents: Documents, decision: Decision, own: Addresses | RowAddresses
) -> pa.Table:
    """One row for each dropped document: the one kept for it, their similarity, the path.

    The columns are those of DUPLICATES, with addresses of the type of `own`.
    """
    addresses = _addresses(decision, own)
    dropped = np.flatnonzero(~decision.kept)
    kept = decision.kept_by[dropped]
    codes = documents.codes[: documents.own]
    if decision.references is not None and len(decision.references.codes):
        codes = np.concatenate([codes, _codes_of(decision.references, codes.shape[1])])
    similarity = pa.nulls(dropped.size, pa.float64())
    if decision.similarity is not None:
        similarity = pa.array(decision.similarity[dropped])
    columns = [
        addresses.of(dropped),
        addresses.of(kept),
        pa.array(distance(codes[dropped], codes[kept]), pa.int32(), mask=_unknown(decision, kept)),
        similarity,
        addresses.of(decision.label[dropped]),
    ]
    if decision.via is None:
        return pa.table(columns, DUPLICATES.names)
    return pa.table([*columns, addresses.of(decision.via[dropped])], DUPLICATES.append(VIA).names)


def _codes_of(references: References, width: int) -> Any:
    """The fingerprints of references, uint64 (m, width); zeros if they are unknown."""
    codes = references.codes
    return codes if codes.shape[1] else np.zeros((len(codes), width), np.uint64)


def _unknown(decision: Decision, kept: Rows) -> Flags | None:
    """Whether each kept document is of an index without fingerprints: bool, or None."""
    references = decision.references
    if references is None or references.codes.shape[1]:
        return None
    return kept >= len(decision.kept_by)


def clusters_schema(own: Addresses | RowAddresses) -> pa.Schema:
    """CLUSTERS with addresses of the type of `own`."""
    return result_tables.clusters_schema(own.of(np.zeros(0, np.int64)).type)


def cluster_batches(decision: Decision, own: Addresses | RowAddresses) -> Iterator[pa.RecordBatch]:
    """One row for each document: the address that names its cluster, and whether it is kept."""
    addresses = _addresses(decision, own)
    kept = decision.kept
    for begin in range(0, kept.size, ROWS_A_BATCH):
        rows = np.arange(begin, min(begin + ROWS_A_BATCH, kept.size))
        yield result_tables.clusters_batch(
            addresses.of(rows), addresses.of(decision.label[rows]), kept[rows]
        )


def _addresses(
    decision: Decision, own: Addresses | RowAddresses
) -> Addresses | RowAddresses | ReferenceAddresses:
    if decision.references is None or isinstance(own, RowAddresses):
        return own
    return own.with_references(decision.references.ids)
