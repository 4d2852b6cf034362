"""Near-duplicate removal from end to end: the only place that composes the steps.

Plan of a run:
1. read the inputs, and fingerprint each batch while the next one is read;
2. find the matches and group them, in memory that is linear in the documents;
3. write the kept documents, the duplicates and the clusters; then all outputs appear together.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.addresses import Addresses
from neardup.clusters import components, greedy
from neardup.documents import (
    OutputSet,
    ReadOptions,
    Rejects,
    open_sources,
    plan_outputs,
    write_outputs,
    write_table,
)
from neardup.errors import UsageError
from neardup.fingerprint_files import fingerprint_table, read_fingerprints
from neardup.fold import Fingerprinter, distance
from neardup.neighbours import pairs
from neardup.progress import Quiet, Stopwatch
from neardup.recipe import Recipe
from neardup.report import Summary
from neardup.text import text_array

if TYPE_CHECKING:
    from neardup.documents import Source
    from neardup.progress import Progress

__all__ = [
    "KEEPS",
    "POLICIES",
    "DedupOptions",
    "DedupResult",
    "Outputs",
    "dedup",
    "dedup_files",
    "fingerprint_files",
    "pairs_file",
]

KEEPS: Final = ("first", "last", "longest")
POLICIES: Final = ("greedy", "components")
DUPLICATES: Final = pa.schema(
    [
        ("dropped", pa.large_string()),
        ("kept", pa.large_string()),
        ("distance", pa.int32()),
        ("similarity", pa.float64()),
        ("cluster", pa.large_string()),
    ]
)
CLUSTERS: Final = pa.schema(
    [("id", pa.large_string()), ("cluster", pa.large_string()), ("kept", pa.bool_())]
)
_ROWS_A_BATCH: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class DedupOptions:
    """How to find duplicates and which document of a group to keep.

    Args:
        distance: Documents whose fingerprints differ in at most this many bits match.
        recipe: How a document becomes a fingerprint.
        policy: "greedy" drops a document only if it matches a kept one; "components" keeps one of
            each transitive group.
        keep: Which document has priority: "first", "last" or "longest" (in code points; then first).
        plan: How to search, as for `pairs`.
        read: Fields and what to do with bad records.
        workers: Threads; the processors at hand unless given.
        tmp: Folder for temporary files; the system's unless given.

    Raises:
        UsageError: For an unknown policy or keep, or a distance below 0.
    """

    distance: int = 3
    recipe: Recipe = field(default_factory=Recipe)
    policy: str = "greedy"
    keep: str = "first"
    plan: str = "auto"
    read: ReadOptions = field(default_factory=ReadOptions)
    workers: int | None = None
    tmp: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is unknown."""
        if self.keep not in KEEPS:
            raise UsageError(f"keep is {self.keep!r}: use one of {', '.join(KEEPS)}")
        if self.policy not in POLICIES:
            raise UsageError(f"policy is {self.policy!r}: use one of {', '.join(POLICIES)}")
        if self.distance < 0:
            raise UsageError(f"distance is {self.distance}: use 0 or more bits")


@dataclass(frozen=True, slots=True)
class DedupResult:
    """What a run decided.

    Args:
        kept: bool, shape (n,): the document is kept.
        cluster: int64, shape (n,): the row that stands for the document's group: its kept document
            (greedy) or its first one (components). A document without matches names itself.
        duplicates: Arrow table with one row for each dropped document: dropped, kept (addresses),
            distance, similarity (null unless verified), cluster.
        summary: Counts and times.
    """

    kept: Any
    cluster: Any
    duplicates: pa.Table
    summary: Summary


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where to write; None writes nothing of the kind.

    Args:
        kept: A file, "-" or a folder for the kept documents.
        duplicates: Table file with one row for each dropped document.
        clusters: Table file with one row for each document.
        rejects: JSON lines of the records that could not be used.
    """

    kept: str | None = None
    duplicates: str | None = None
    clusters: str | None = None
    rejects: str | None = None


@dataclass(frozen=True, slots=True)
class _Grouping:
    """kept_by[i] is the row kept for row i, label[i] the row that names its cluster."""

    kept_by: Any
    label: Any

    @property
    def kept(self) -> Any:
        return self.kept_by == np.arange(self.kept_by.size)


class _Collection:
    """What stays of the documents once their text is gone: O(1) for each."""

    def __init__(self, names: Sequence[str], options: DedupOptions) -> None:
        self.addresses = Addresses(names)
        self._options = options
        self._lengths: list[Any] = [np.zeros(0, np.int64)]
        self._fingerprinter = Fingerprinter(options.recipe, options.workers)

    def __enter__(self) -> _Collection:
        return self

    def __exit__(self, *error: object) -> None:
        self._fingerprinter.__exit__(*error)

    def add(self, source: int, texts: pa.Array, rows: Any, ids: pa.Array | None) -> None:
        self._fingerprinter.add(texts)
        self.addresses.add(source, rows, ids)
        if self._options.keep == "longest":
            self._lengths.append(np.asarray(pc.fill_null(pc.utf8_length(texts), 0), np.int64))

    def finish(self) -> Any:
        return self._fingerprinter.finish()

    def order(self, n: int) -> Any:
        """Rows from the highest priority to the lowest."""
        if self._options.keep == "longest":
            return np.argsort(-np.concatenate(self._lengths), kind="stable")
        rows = np.arange(n, dtype=np.int64)
        return rows[::-1].copy() if self._options.keep == "last" else rows


def dedup(  # noqa: PLR0913
    source: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    distance: int = 3,
    recipe: Recipe | None = None,
    keep: str = "first",
    policy: str = "greedy",
    text: str | Sequence[str] = "text",
    id: str | None = None,  # noqa: A002
    duplicates: str | os.PathLike[str] | None = None,
    clusters: str | os.PathLike[str] | None = None,
    on_error: str = "stop",
    workers: int | None = None,
) -> DedupResult:
    """Find near-duplicates among files or documents in memory, and keep one of each group.

    Args:
        source: One path or a list of pathlib paths (any list of paths if `output` is given), an
            Arrow table or anything with the Arrow C stream interface and a text column, or texts.
        output: Where files' kept documents go; a folder (ending in "/") gets one file for each.
        distance: Largest number of differing fingerprint bits.
        recipe: How to fingerprint; Recipe() unless given.
        keep: "first", "last" or "longest".
        policy: "greedy" or "components".
        text: Field or fields with the text.
        id: Field with the document's id; its address is its row or `file:row` unless given.
        duplicates: Table file to write: dropped, kept, distance, similarity, cluster.
        clusters: Table file to write: id, cluster, kept; one row for each document.
        on_error: "stop" or "skip" bad records.
        workers: Threads; the processors at hand unless given.

    Returns:
        What was decided, as arrays and an Arrow table.

    Raises:
        UsageError: For options that are wrong or contradict each other.
        DataError: For a bad record, unless skipped.
        FileError: If a file cannot be read or written.

    Example:
        >>> result = dedup(["to be or not to be", "To be, or not to be!", "that is the question"])
        >>> result.kept.tolist()
        [True, False, True]
    """
    if on_error not in {"stop", "skip"}:
        raise UsageError(f"on_error is {on_error!r}: use stop or skip")
    fields = (text,) if isinstance(text, str) else tuple(text)
    options = DedupOptions(
        distance=distance,
        recipe=recipe or Recipe(),
        keep=keep,
        policy=policy,
        read=ReadOptions(fields, id, skip_errors=on_error == "skip"),
        workers=workers,
    )
    paths = _paths(source, output is not None)
    if paths is None:
        if output or duplicates or clusters:
            raise UsageError("documents in memory have no output file: use the result's `kept`")
        return _dedup_memory(source, options)
    outputs = Outputs(
        *(None if p is None else os.fspath(p) for p in (output, duplicates, clusters))
    )
    return dedup_files(paths, outputs, options)


def dedup_files(
    paths: Sequence[str],
    outputs: Outputs,
    options: DedupOptions,
    progress: Progress | None = None,
) -> DedupResult:
    """Remove near-duplicates from files.

    Args:
        paths: Inputs; "-" is standard input.
        outputs: Where to write.
        options: How to decide.
        progress: Told where the run is; nothing is shown unless given.

    Raises:
        UsageError, DataError, FileError: As `dedup`.
    """
    watch = Stopwatch(progress or Quiet())
    sources = open_sources(paths, options.tmp)
    try:
        with OutputSet(source.path for source in sources) as written:
            if outputs.kept is not None:
                plan_outputs(sources, outputs.kept)
            rejects = Rejects(outputs.rejects, written)
            with _Collection([source.name for source in sources], options) as collection:
                counts = _read(sources, collection, options, rejects, watch, progress or Quiet())
                values = collection.finish()
            watch.begin("match")
            grouping = _group(values, collection.order(len(values)), options)
            watch.begin("write")
            result_table = _duplicates(values, grouping, collection.addresses)
            paths_written = _write(sources, counts, grouping, collection, outputs, written)
            if outputs.duplicates is not None:
                batches = result_table.to_batches(_ROWS_A_BATCH)
                write_table(written, outputs.duplicates, DUPLICATES, batches)
            written.commit()
    finally:
        for source in sources:
            source.close()
    extra = (outputs.duplicates, outputs.clusters, outputs.rejects)
    summary = _summary(
        values, grouping, options, watch,
        rejected=rejects.count,
        nbytes=sum(source.nbytes or 0 for source in sources),
        outputs=paths_written + [path for path in extra if path is not None],
    )  # fmt: skip
    return DedupResult(grouping.kept, grouping.label, result_table, summary)


def fingerprint_files(  # noqa: PLR0913
    paths: Sequence[str],
    output: str,
    recipe: Recipe,
    read: ReadOptions,
    rejects_path: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Write the fingerprints of files' documents to a fingerprint file.

    Raises:
        UsageError, DataError, FileError: As `dedup`.
    """
    options = DedupOptions(recipe=recipe, read=read, workers=workers)
    watch = Stopwatch(progress or Quiet())
    sources = open_sources(paths)
    try:
        with OutputSet(source.path for source in sources) as written:
            rejects = Rejects(rejects_path, written)
            with _Collection([source.name for source in sources], options) as collection:
                _read(sources, collection, options, rejects, watch, progress or Quiet())
                values = collection.finish()
            watch.begin("write")
            ids = collection.addresses.of(np.arange(len(values)))
            table = fingerprint_table(ids, values, recipe)
            write_table(written, output, table.schema, table.to_batches(_ROWS_A_BATCH))
            written.commit()
    finally:
        for source in sources:
            source.close()
    rows = np.arange(len(values))
    nbytes = sum(source.nbytes or 0 for source in sources)
    return _summary(
        values, _Grouping(rows, rows), options, watch,
        rejected=rejects.count, nbytes=nbytes, outputs=[output],
    )  # fmt: skip


def pairs_file(
    path: str, output: str, distance: int = 3, plan: str = "auto", workers: int | None = None
) -> dict[str, Any]:
    """Write every pair within `distance` bits of a fingerprint file.

    Returns:
        How many fingerprints and pairs there are, the plan, and the seconds of each step.

    Raises:
        FileError, DataError: If the file cannot be used.
        TooManyPairsError: If there are more pairs than fit in memory.
    """
    watch = Stopwatch(Quiet())
    watch.begin("read")
    stored = read_fingerprints(path)
    watch.begin("match")
    found = pairs(stored.values, distance, stored.bits, plan, workers=workers)
    watch.begin("write")
    with OutputSet([path]) as written:
        ids = {side: stored.ids.take(found[side]) for side in ("left", "right")}
        table = found.append_column("left_id", ids["left"]).append_column("right_id", ids["right"])
        write_table(written, output, table.schema, table.to_batches(_ROWS_A_BATCH))
        written.commit()
    return {
        "fingerprints": len(stored.values),
        "pairs": found.num_rows,
        "distance": distance,
        "bits": stored.bits,
        "plan": plan,
        "output": output,
        "seconds": watch.stop(),
    }


def _dedup_memory(source: Any, options: DedupOptions) -> DedupResult:
    watch = Stopwatch(Quiet())
    watch.begin("read")
    texts, ids = _columns(source, options.read)
    with _Collection([""], options) as collection:
        row = 0
        for chunk in texts.chunks:
            rows = np.arange(row, row + len(chunk), dtype=np.int64)
            collection.add(0, chunk, rows, None if ids is None else ids[row : row + len(chunk)])
            row += len(chunk)
        values = collection.finish()
    watch.begin("match")
    grouping = _group(values, collection.order(len(values)), options)
    table = _duplicates(values, grouping, collection.addresses)
    summary = _summary(
        values, grouping, options, watch, rejected=0, nbytes=texts.nbytes, outputs=[]
    )
    return DedupResult(grouping.kept, grouping.label, table, summary)


def _paths(source: Any, has_output: bool) -> list[str] | None:
    if isinstance(source, str | os.PathLike):
        return [os.fspath(source)]
    if isinstance(source, list | tuple) and source:
        if all(isinstance(item, os.PathLike) for item in source):
            return [os.fspath(item) for item in source]
        if has_output and all(isinstance(item, str | os.PathLike) for item in source):
            return [os.fspath(item) for item in source]
    return None


def _columns(source: Any, read: ReadOptions) -> tuple[pa.ChunkedArray, Any]:
    if not isinstance(source, pa.Table) and hasattr(source, "__arrow_c_stream__"):
        stream = (
            pa.RecordBatchReader.from_stream if hasattr(source, "columns") else pa.chunked_array
        )
        source = stream(source)
        source = source.read_all() if isinstance(source, pa.RecordBatchReader) else source
    if not isinstance(source, pa.Table):
        return text_array(source), None
    for name in read.fields:
        if name not in source.column_names:
            raise UsageError(f"no column {name!r}: there are {', '.join(source.column_names)}")
    texts = [text_array(source[name]) for name in read.text]
    joined = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "\n")
    return joined, None if read.id is None else source[read.id].cast(pa.large_string())


def _read(
    sources: Sequence[Source],
    collection: _Collection,
    options: DedupOptions,
    rejects: Rejects,
    watch: Stopwatch,
    progress: Progress,
) -> list[int]:
    """Read every input to the end; how many documents each has."""
    sizes = [source.nbytes for source in sources]
    watch.begin("read", None if None in sizes else sum(size or 0 for size in sizes))
    counts = []
    for number, source in enumerate(sources):
        count = 0
        for batch in source.batches(options.read, rejects):
            collection.add(number, batch.texts, batch.rows, batch.ids)
            count += len(batch.texts)
            progress.advance(batch.nbytes)
        counts.append(count)
    return counts


def _group(values: Any, order: Any, options: DedupOptions) -> _Grouping:
    search = {
        "distance": options.distance,
        "bits": options.recipe.bits,
        "plan": options.plan,
        "workers": options.workers,
    }
    if options.policy == "greedy":
        kept_by = greedy(values, order, **search)
        return _Grouping(kept_by, kept_by)
    label = components(values, **search)
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    best = np.full(order.size, order.size, np.int64)
    np.minimum.at(best, label, rank)
    return _Grouping(order[best[label]] if order.size else label, label)


def _duplicates(values: Any, grouping: _Grouping, addresses: Addresses) -> pa.Table:
    dropped = np.flatnonzero(~grouping.kept)
    kept = grouping.kept_by[dropped]
    words = np.ma.getdata(values)
    columns = [
        addresses.of(dropped),
        addresses.of(kept),
        pa.array(distance(words[dropped], words[kept]), pa.int32()),
        pa.nulls(dropped.size, pa.float64()),
        addresses.of(grouping.label[dropped]),
    ]
    return pa.table(columns, schema=DUPLICATES)


def _write(
    sources: Sequence[Source],
    counts: Sequence[int],
    grouping: _Grouping,
    collection: _Collection,
    outputs: Outputs,
    written: OutputSet,
) -> list[str]:
    if outputs.clusters is not None:
        batches = _cluster_batches(grouping, collection.addresses)
        write_table(written, outputs.clusters, CLUSTERS, batches)
    if outputs.kept is None:
        return []
    masks = np.split(grouping.kept, np.cumsum(counts)[:-1])
    return write_outputs(sources, masks, outputs.kept, written)


def _cluster_batches(grouping: _Grouping, addresses: Addresses) -> Any:
    kept = grouping.kept
    for begin in range(0, kept.size, _ROWS_A_BATCH):
        rows = np.arange(begin, min(begin + _ROWS_A_BATCH, kept.size))
        columns = [
            addresses.of(rows),
            addresses.of(grouping.label[rows]),
            pa.array(kept[rows], pa.bool_()),
        ]
        yield pa.record_batch(columns, schema=CLUSTERS)


def _summary(
    values: Any,
    grouping: _Grouping,
    options: DedupOptions,
    watch: Stopwatch,
    *,
    rejected: int,
    nbytes: int,
    outputs: list[str],
) -> Summary:
    kept = int(grouping.kept.sum())
    grouped = np.bincount(grouping.label, minlength=1)
    settings = {
        "distance": options.distance,
        "policy": options.policy,
        "keep": options.keep,
        "recipe": options.recipe.to_json(),
        "digest": options.recipe.digest,
    }
    return Summary(
        read=len(values) + rejected,
        kept=kept,
        dropped=len(values) - kept,
        rejected=rejected,
        empty=int(np.ma.getmaskarray(values)[:, 0].sum()) if len(values) else 0,
        clusters=int((grouped > 1).sum()),
        nbytes=nbytes,
        seconds=watch.stop(),
        outputs=outputs,
        settings=settings,
    )
