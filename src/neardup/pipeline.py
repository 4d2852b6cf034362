"""Near-duplicate removal from end to end: the only place that composes the steps.

Plan of a run:
1. read the inputs, and fingerprint each batch while the next one is read;
2. find the matches and group them, in memory that is linear in the documents;
3. write the kept documents, the duplicates and the clusters; then all outputs appear together.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.collection import Collection, Resources, batches_of
from neardup.documents import (
    OutputSet,
    ReadOptions,
    Rejects,
    is_folder,
    open_sources,
    plan_outputs,
    write_outputs,
    write_table,
)
from neardup.errors import UsageError
from neardup.fingerprint_files import fingerprint_table, read_fingerprints
from neardup.fold import distance as hamming_distance
from neardup.matching import Grouping, Matching, partners
from neardup.memory import memory_bytes
from neardup.neighbours import pairs
from neardup.progress import Quiet, Stopwatch
from neardup.recipe import Recipe
from neardup.report import Summary
from neardup.results import (
    CLUSTERS,
    DUPLICATES,
    ROWS_A_BATCH,
    cluster_batches,
    duplicates_table,
)
from neardup.similarity import similar_sets, similarities
from neardup.text import text_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import Source
    from neardup.progress import Progress

__all__ = [
    "DedupResult",
    "Outputs",
    "Resources",
    "dedup",
    "dedup_files",
    "dedup_texts",
    "fingerprint_files",
    "pairs_file",
    "similar_pairs",
]


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

    @property
    def tables(self) -> list[str]:
        """The paths beside the kept documents'."""
        return [path for path in (self.duplicates, self.clusters, self.rejects) if path is not None]


@dataclass(frozen=True, slots=True)
class DedupResult:
    """What a run decided.

    Args:
        kept: bool, shape (n,): the document is kept.
        cluster: int64, shape (n,): the row that stands for the document's group: its kept document
            (greedy) or its first one (components). A document without matches names itself.
        duplicates: Arrow table with one row for each dropped document: dropped, kept (addresses),
            distance, similarity (null in exact mode without verification), cluster.
        summary: Counts and times.
    """

    kept: Any
    cluster: Any
    duplicates: pa.Table
    summary: Summary


def dedup(  # noqa: PLR0913
    source: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    similarity: float | None = None,
    distance: int | None = None,
    verify: float | None = None,
    measure: str = "jaccard",
    recipe: Recipe | None = None,
    keep: str = "first",
    policy: str = "greedy",
    text: str | Sequence[str] = "text",
    id: str | None = None,  # noqa: A002
    within: str | None = None,
    format: str | None = None,  # noqa: A002
    duplicates: str | os.PathLike[str] | None = None,
    clusters: str | os.PathLike[str] | None = None,
    rejects: str | os.PathLike[str] | None = None,
    on_error: str = "stop",
    workers: int | None = None,
    memory: str | int | None = None,
    recall: float = 1.0,
) -> DedupResult:
    """Find near-duplicates among files or documents in memory, and keep one of each group.

    Args:
        source: One path or a list of pathlib paths (any list of paths if `output` is given), an
            Arrow table or anything with the Arrow C stream interface and a text column, or texts.
        output: Where files' kept documents go; a folder (ending in "/") gets one file for each.
        similarity: Least similarity of the documents' features; 0.8 unless a distance is given.
            Every match is verified, none is missed unless a recall below 1 is given.
        distance: Exact mode instead: largest number of differing fingerprint bits.
        verify: With a distance: least similarity of a match as well.
        measure: "jaccard", "cosine" or "containment".
        recipe: How to tokenise, hash and fingerprint; Recipe() unless given.
        keep: "first", "last", "longest", "max:FIELD" or "min:FIELD".
        policy: "greedy" or "components".
        text: Field or fields with the text.
        id: Field with the document's id; its address is its row or `file:row` unless given.
        within: Field that documents must have in common to be compared.
        format: Format of all files, as for `open_sources`; their extensions tell unless given.
        duplicates: Table file to write: dropped, kept, distance, similarity, cluster.
        clusters: Table file to write: id, cluster, kept; one row for each document.
        rejects: File to write the bad records to, if they are skipped.
        on_error: "stop" or "skip" bad records.
        workers: Threads; the processors at hand unless given.
        memory: Budget, such as "2G".
        recall: Least share of the pairs exactly at the threshold that is found; 1 finds all.

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
    matching = Matching(
        similarity,
        distance,
        verify,
        measure,
        keep=keep,
        policy=policy,
        workers=workers,
        recipe=recipe or Recipe(),
        recall=recall,
    )
    read = ReadOptions(fields, id, on_error == "skip", within=within, number=matching.number)
    resources = Resources(memory_bytes(memory))
    files = (output, duplicates, clusters, rejects)
    paths = _paths(source, output is not None)
    if paths is not None:
        outputs = Outputs(*(None if path is None else os.fspath(path) for path in files))
        return dedup_files(paths, outputs, matching, read, resources, format_name=format)
    if any(path is not None for path in files):
        raise UsageError("documents in memory have no output file: use the result's `kept`")
    return dedup_texts(source, matching, resources, read)


def dedup_files(
    paths: Sequence[str],
    outputs: Outputs,
    matching: Matching,
    read: ReadOptions,
    resources: Resources,
    progress: Progress | None = None,
    format_name: str | None = None,
) -> DedupResult:
    """Remove near-duplicates from files.

    Args:
        paths: Inputs, as for `open_sources`.
        outputs: Where to write.
        matching: How to decide.
        read: Which fields to read, and what to do with bad records.
        resources: What the run may use.
        progress: Told where the run is; nothing is shown unless given.
        format_name: Format of all inputs; their extensions tell unless given.

    Raises:
        UsageError, DataError, FileError: As `dedup`.
    """
    shown = progress or Quiet()
    watch = Stopwatch(shown)
    with ExitStack() as stack:
        sources = _opened(stack, paths, resources, format_name)
        written = stack.enter_context(_outputs(sources, resources))
        _check_outputs(sources, outputs, written)
        rejects = Rejects(outputs.rejects, written)
        names = [source.name for source in sources]
        collection = stack.enter_context(Collection(names, matching, resources))
        counts = _read(sources, collection, read, rejects, watch, shown)
        values = collection.finish()
        watch.begin("match")
        grouping = collection.group(values)
        watch.begin("write")
        table = duplicates_table(values, grouping, collection.addresses)
        paths_written = []
        if outputs.kept is not None:
            masks = np.split(grouping.kept, np.cumsum(counts)[:-1])
            paths_written = write_outputs(sources, masks, outputs.kept, written)
        if outputs.duplicates is not None:
            write_table(written, outputs.duplicates, DUPLICATES, table.to_batches(ROWS_A_BATCH))
        if outputs.clusters is not None:
            batches = cluster_batches(grouping, collection.addresses)
            write_table(written, outputs.clusters, CLUSTERS, batches)
        written.commit()
    summary = _summarise(
        values, grouping, matching, watch,
        rejected=rejects.count,
        nbytes=collection.nbytes,
        outputs=paths_written + outputs.tables,
    )  # fmt: skip
    return DedupResult(grouping.kept, grouping.label, table, summary)


def fingerprint_files(
    paths: Sequence[str],
    output: str,
    matching: Matching,
    read: ReadOptions,
    rejects_path: str | None = None,
    progress: Progress | None = None,
    format_name: str | None = None,
) -> Summary:
    """Write the fingerprints of files' documents to a fingerprint file.

    Args:
        paths: Inputs, as for `open_sources`.
        output: A Parquet file.
        matching: Its recipe and workers count.
        read: Which fields to read, and what to do with bad records.
        rejects_path: Where bad records go if they are skipped.
        progress: Told where the run is.
        format_name: Format of all inputs; their extensions tell unless given.

    Raises:
        UsageError, DataError, FileError: As `dedup`.
    """
    shown = progress or Quiet()
    watch = Stopwatch(shown)
    with ExitStack() as stack:
        sources = _opened(stack, paths, Resources(), format_name)
        written = stack.enter_context(_outputs(sources, Resources()))
        rejects = Rejects(rejects_path, written)
        names = [source.name for source in sources]
        collection = stack.enter_context(Collection(names, matching, Resources()))
        _read(sources, collection, read, rejects, watch, shown)
        values = collection.finish()
        watch.begin("write")
        ids = collection.addresses.of(np.arange(len(values)))
        table = fingerprint_table(ids, values, matching.recipe)
        write_table(written, output, table.schema, table.to_batches(ROWS_A_BATCH))
        written.commit()
    rows = np.arange(len(values))
    return _summarise(
        values, Grouping(rows, rows, None), matching, watch,
        rejected=rejects.count, nbytes=collection.nbytes, outputs=[output],
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
        write_table(written, output, table.schema, table.to_batches(ROWS_A_BATCH))
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


def similar_pairs(
    texts: Any,
    similarity: float = 0.8,
    *,
    measure: str = "jaccard",
    recipe: Recipe | None = None,
    workers: int | None = None,
    memory: str | int | None = None,
    recall: float = 1.0,
) -> pa.Table:
    """Find every pair of texts whose features are similar enough; each is verified, none is missed.

    Args:
        texts: As for `fingerprints`.
        similarity: Least similarity of the feature sets, above 0, up to 1.
        measure: "jaccard", "cosine" or "containment".
        recipe: How to tokenise, hash and fingerprint; Recipe() unless given.
        workers: Threads; the processors at hand unless given.
        memory: Budget, such as "2G".
        recall: As for `dedup`.

    Returns:
        Arrow table of left int64, right int64, distance int32 (of the fingerprints), similarity
        float64; left < right, sorted. Texts without features match nothing.

    Raises:
        UsageError: For a value out of range, or something that is not a text.

    Example:
        >>> similar_pairs(["a b c d e", "A, b, c, d, e!", "f"]).to_pylist()
        [{'left': 0, 'right': 1, 'distance': 0, 'similarity': 1.0}]
    """
    chosen = recipe or Recipe()
    matching = Matching(similarity, measure=measure, workers=workers, recipe=chosen, recall=recall)
    with Collection([""], matching, Resources(memory_bytes(memory))) as collection:
        for batch in batches_of(text_array(texts), ReadOptions()):
            collection.add(0, batch)
        values = collection.finish()
        sets = collection.sets(values)
        chunks = list(similar_sets(sets, matching.match, workers, partners(matching, sets)))
        found = np.concatenate([np.zeros((0, 2), np.int64), *chunks])
        left, right = found[np.lexsort((found[:, 1], found[:, 0]))].T
        words = np.ma.getdata(values)
        columns = {
            "left": left,
            "right": right,
            "distance": pa.array(hamming_distance(words[left], words[right]), pa.int32()),
            "similarity": similarities(sets, left, right, measure),
        }
    return pa.table(columns)


def _check_outputs(sources: Sequence[Source], outputs: Outputs, written: OutputSet) -> None:
    """Refuse now what could not be written after hours of reading."""
    planned = [] if outputs.kept is None else plan_outputs(sources, outputs.kept)
    into_folder = outputs.kept is not None and is_folder(outputs.kept)
    for path in outputs.tables + [path for path, _ in planned if not into_folder]:
        written.check(path)


def _outputs(sources: Sequence[Source], resources: Resources) -> OutputSet:
    return OutputSet((path for source in sources for path in source.paths), resources.tmp)


def _opened(
    stack: ExitStack, paths: Sequence[str], resources: Resources, format_name: str | None
) -> list[Source]:
    sources = open_sources(paths, resources.tmp, format_name)
    for source in sources:
        stack.callback(source.close)
    return sources


def _read(
    sources: Sequence[Source],
    collection: Collection,
    read: ReadOptions,
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
        for batch in source.batches(read, rejects):
            collection.add(number, batch)
            count += len(batch.texts)
            progress.advance(batch.nbytes)
        counts.append(count)
    return counts


def dedup_texts(
    source: Any, matching: Matching, resources: Resources, read: ReadOptions | None = None
) -> DedupResult:
    """Decide about documents in memory: texts, or a table with the columns that `read` names."""
    watch = Stopwatch(Quiet())
    watch.begin("read")
    batches = batches_of(source, read or ReadOptions(number=matching.number))
    with Collection([""], matching, resources) as collection:
        for batch in batches:
            collection.add(0, batch)
        values = collection.finish()
        watch.begin("match")
        grouping = collection.group(values)
        table = duplicates_table(values, grouping, collection.addresses)
    summary = _summarise(
        values, grouping, matching, watch, rejected=0, nbytes=collection.nbytes, outputs=[]
    )
    return DedupResult(grouping.kept, grouping.label, table, summary)


def _paths(source: Any, has_output: bool) -> list[str] | None:
    if isinstance(source, str | os.PathLike):
        return [os.fspath(source)]
    if isinstance(source, list | tuple) and source:
        allowed = str | os.PathLike if has_output else os.PathLike
        if all(isinstance(item, allowed) for item in source):
            return [os.fspath(item) for item in source]
    return None


def _summarise(
    values: Any,
    grouping: Grouping,
    matching: Matching,
    watch: Stopwatch,
    *,
    rejected: int,
    nbytes: int,
    outputs: list[str],
) -> Summary:
    kept = int(grouping.kept.sum())
    grouped = np.bincount(grouping.label, minlength=1)
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
        settings=matching.settings(len(values)),
    )
