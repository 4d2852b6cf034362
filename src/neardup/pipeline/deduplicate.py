"""Remove near-duplicates, from files or from memory.

Plan of a run:
1. read the inputs, and fingerprint each batch while the next one is read;
2. find the matches and group them, in memory that is linear in the documents;
3. write the kept documents, the duplicates and the clusters; then all outputs appear together.
With a folder to resume from, steps 1 and 2 are kept there as they go.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from neardup.documents import InputFormat, ReadOptions, Rejects
from neardup.errors import UsageError, suggests_names, warn_of_doubt
from neardup.fingerprinting.recipe import recipe_of
from neardup.pipeline.evidence.decided import Decided
from neardup.pipeline.evidence.write import check_report, with_source, write_report
from neardup.pipeline.judgement.decisions import check_decisions, with_decisions
from neardup.pipeline.result import DedupResult, Origin
from neardup.pipeline.run.against import Against, ReferenceIndex
from neardup.pipeline.run.collection import Collection
from neardup.pipeline.run.folder.facts import run_facts
from neardup.pipeline.run.folder.last_update import LastUpdate, asked_of
from neardup.pipeline.run.folder.resume import Resume
from neardup.pipeline.run.folder.state import RunFolder
from neardup.pipeline.run.in_memory import InMemory, check_documents, check_on_error
from neardup.pipeline.run.matching import Matching
from neardup.pipeline.run.new_documents import NewDocuments
from neardup.pipeline.run.outputs import (
    Outputs,
    ReportOptions,
    check_outputs,
    less_published,
    write_kept,
    write_result_tables,
)
from neardup.pipeline.run.resources import Resources
from neardup.pipeline.run.results import duplicates_table
from neardup.pipeline.run.steps import (
    Inputs,
    begin_reading,
    open_inputs,
    output_set,
    read_all,
    summarise,
    told,
)
from neardup.runtime.memory import memory_bytes
from neardup.runtime.progress import Quiet, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import Source
    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.run.matching import Grouping
    from neardup.runtime.progress import Progress

__all__ = ["DedupResult", "Outputs", "dedup", "dedup_files", "dedup_texts"]


@suggests_names
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
    delimiter: str | None = None,
    encoding: str | None = None,
    extract: str | None = None,
    duplicates: str | os.PathLike[str] | None = None,
    clusters: str | os.PathLike[str] | None = None,
    rejects: str | os.PathLike[str] | None = None,
    on_error: str = "stop",
    workers: int | None = None,
    memory: str | int | None = None,
    recall: float = 1.0,
    resume: str | os.PathLike[str] | None = None,
    against: str | os.PathLike[str] | None = None,
    update: bool = False,
    own_ids: str = "seen",
    csv_safe: bool = False,
    report: str | os.PathLike[str] | None = None,
    decisions: str | os.PathLike[str] | None = None,
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
        measure: "jaccard", "cosine", "containment" or "dice".
        recipe: How to tokenise, hash and fingerprint; Recipe() unless given.
        keep: "first", "last", "longest", "max:FIELD" or "min:FIELD".
        policy: "greedy" or "components".
        text: Field or fields with the text.
        id: Field with the document's id; its address is its row or `file:row` unless given.
        within: Field that documents must have in common to be compared.
        format: Format of all files, as for `open_sources`; their extensions tell unless given.
        delimiter: The character between the fields of CSV; the first lines tell unless given.
        encoding: Of text files, JSON lines and CSV; UTF-8, or what a byte-order mark says, unless
            given.
        extract: Of a text that is HTML, compare the "main" content, "all" that is visible, or
            "none": the markup too. Files that are named as HTML are "main" unless given.
        duplicates: Table file to write: dropped, kept, distance, similarity, cluster.
        clusters: Table file to write: id, cluster, kept; one row for each document.
        rejects: File to write the bad records to, if they are skipped.
        on_error: "stop" or "skip" bad records.
        workers: Threads; the processors at hand unless given.
        memory: Budget, such as "2G".
        recall: Least share of the pairs exactly at the threshold that is found; 1 finds all.
        resume: Folder where a run over files keeps what it has done: killed, it goes on there when
            it is called again with the same arguments. Removed when the run succeeds.
        against: Folder of a DurableIndex: a document that matches one of its documents is dropped.
        update: Add the kept documents to that index.
        own_ids: What becomes of a document that the index has under its own id: "seen", it is
            compared with that too, and dropped; "keep", it is compared with all others only, and
            not at all if the content is the same.
        csv_safe: Put a quote (') before cells of CSV tables that a spreadsheet would compute.
        report: Page about the run to write, of files; `DedupResult.report` writes it afterwards.
        decisions: Answers about pairs, as `neardup review` keeps them, taken as given.

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
    skip = check_on_error(on_error)
    fields = (text,) if isinstance(text, str) else tuple(text)
    matching = Matching(
        similarity,
        distance,
        verify,
        measure,
        keep=keep,
        policy=policy,
        recipe=recipe_of(recipe),
        recall=recall,
        decisions=None if decisions is None else os.fspath(decisions),
    )
    folder = None if resume is None else os.fspath(resume)
    resources = Resources(memory_bytes(memory), resume=folder, workers=workers)
    read = ReadOptions(
        fields, id, skip, within=within, number=matching.number, extract=extract,
        record_bytes=resources.record_bytes,
    )  # fmt: skip
    files = (output, duplicates, clusters, rejects)
    if update and against is None:
        raise UsageError("update belongs to against: name the index that kept documents go to")
    if own_ids != "seen" and against is None:
        raise UsageError(f"own_ids={own_ids!r} needs against: name the index that has the ids")
    paths = _paths(source, output is not None)
    if paths is not None:
        _warn([matching.doubt()])
        named = [None if path is None else os.fspath(path) for path in files]
        about = None if report is None else ReportOptions(os.fspath(report))
        outputs = Outputs(named[0], named[1], named[2], named[3], csv_safe, about)
        seen = None if against is None else Against(os.fspath(against), update, own_ids)
        form = InputFormat(format, delimiter, encoding)
        return _warned(
            dedup_files(paths, outputs, matching, read, resources, format_name=form, against=seen)
        )
    if against is not None:
        raise UsageError("against belongs to files: query the index with documents in memory")
    if resume is not None:
        raise UsageError("resume belongs to files: documents in memory are gone with the process")
    if any(path is not None for path in files):
        raise UsageError("documents in memory have no output file: use the result's `kept`")
    if not (format is delimiter is encoding is None):
        raise UsageError("format, delimiter and encoding belong to files")
    if report is not None:
        raise UsageError("documents in memory: write the report with the result's `report`")
    check_documents(source)
    return _warned(dedup_texts(source, matching, resources, read))


def dedup_files(
    paths: Sequence[str],
    outputs: Outputs,
    matching: Matching,
    read: ReadOptions,
    resources: Resources,
    progress: Progress | None = None,
    format_name: InputFormat | str | None = None,
    against: Against | None = None,
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
        against: An index whose documents came before.

    Raises:
        UsageError, DataError, FileError: As `dedup`.
    """
    matching.check_plan(resources.plan)
    check_report(outputs.report, matching, read, against, resources)
    shown = progress or Quiet()
    watch = Stopwatch(shown)
    with ExitStack() as stack:
        known = _index_of(stack, against, matching, read, resources, outputs)
        sources = open_inputs(stack, paths, resources, format_name)
        asked = [outputs.kept, outputs.duplicates, outputs.clusters, outputs.rejects]
        folder = None
        if resources.resume is not None:
            index = None if known is None else known.facts
            folder = stack.enter_context(RunFolder(resources.resume))
            folder.begin(run_facts(sources, matching, read, format_name, index))
        written = stack.enter_context(output_set(sources, resources, folder))
        last = None if known is None or not known.updates else LastUpdate(
            known, asked_of(sources, asked, matching, read, format_name, known.own_ids)
        )  # fmt: skip
        whole, was_publishing = outputs, folder is not None and folder.was_publishing
        if was_publishing or (last is not None and last.may_repeat):
            outputs = less_published(sources, outputs)
        check_outputs(sources, outputs, written)
        rejects = Rejects(outputs.rejects, written)
        resume = None if folder is None else Resume(folder, matching.recipe.words)
        needs = outputs.report is not None or (known is not None and known.needs_features)
        read, restrict = with_source(outputs.report, read)
        collection = stack.enter_context(
            Collection(
                [source.name for source in sources],
                matching,
                resources,
                resume,
                keep_features=needs,
                restrict=restrict,
                progress=shown,
            )
        )
        counts = read_all(sources, collection, read, rejects, watch, shown)
        values = collection.finish()
        watch.begin("match", collection.match_bytes)
        grouping, notes = _decided(collection, values, known, folder, last)
        if not needs:
            collection.drop_features()
        if not (was_publishing or (last is not None and last.first is not None)):
            check_outputs(sources, whole, written)  # nobody has published a folder that is there
        batch = None if known is None or last is None else NewDocuments(
            known, collection, values, grouping, folder, last.first
        )  # fmt: skip
        begin_reading([] if outputs.kept is None else sources, watch, "write")
        table = duplicates_table(values, grouping, collection.addresses)
        kept = write_kept(sources, grouping, counts, outputs, written, shown)
        write_result_tables(table, grouping, collection.addresses, outputs, written)
        write_report(
            Decided(collection, values, grouping, matching, rejects.count, read.within),
            outputs.report, partial(_texts_at, sources, read, known, grouping), written,
        )  # fmt: skip
        if last is not None and last.first is None:
            last.save(grouping, folder)
        with nullcontext() if folder is None else folder.publishing(written):
            written.commit()
        if batch is not None:
            batch.add(sources, read)
        if folder is not None:
            folder.remove()
    summary = summarise(
        values, grouping, matching, watch,
        rejected=rejects.count,
        collection=collection,
        outputs=kept + outputs.tables,
        told=told(sources, written, notes if resume is None else [*resume.notes, *notes]),
    )  # fmt: skip
    inputs = Inputs(paths, format_name)
    origin = Origin(grouping, collection.addresses, matching, read, resources, inputs)
    return DedupResult(grouping.kept, grouping.label, table, summary, origin)


def _texts_at(
    sources: Sequence[Source],
    read: ReadOptions,
    known: ReferenceIndex | None,
    grouping: Grouping,
    rows: set[int],
) -> dict[int, str]:
    from neardup.pipeline.evidence.pairs import texts_at  # a run without a report needs none
    from neardup.pipeline.evidence.references import texts_beside

    return texts_beside(partial(texts_at, sources, read), known, grouping)(rows)


def _index_of(
    stack: ExitStack,
    against: Against | None,
    matching: Matching,
    read: ReadOptions,
    resources: Resources,
    outputs: Outputs,
) -> ReferenceIndex | None:
    """The index that the run is compared with, closed with the stack; answers are checked."""
    check_decisions(matching, against)
    if against is None:
        return None
    known = ReferenceIndex(against, matching, read, resources.workers)
    stack.callback(known.close)
    if outputs.report is not None and known.is_similar:
        raise UsageError(
            f"{against.folder} is by similarity, and the report needs an index of fingerprints with"
            " --store features or text: leave out --report"
        )
    return known


def _decided(
    collection: Collection,
    values: Any,
    known: ReferenceIndex | None,
    folder: RunFolder | None,
    last: LastUpdate | None,
) -> tuple[Grouping, list[str]]:
    """Decide, unless a killed run did, and keep that; with answers as given, and what says so."""
    found = None if last is None else last.decision(values)
    if found is None and folder is not None:
        found = folder.grouping()
    if found is None:
        found = collection.group(values) if known is None else known.group(collection, values)
        if folder is not None:
            folder.save_grouping(found)
    return with_decisions(found, collection.matching, collection, values)


def dedup_texts(
    source: Any, matching: Matching, resources: Resources, read: ReadOptions | None = None
) -> DedupResult:
    """Decide about documents in memory: texts, or a table with the columns that `read` names."""
    watch = Stopwatch(Quiet())
    watch.begin("read")
    documents = InMemory(source, read or ReadOptions(number=matching.number))
    with Collection([""], matching, resources) as collection:
        for batch in documents.batches:
            collection.add(0, batch)
        values = collection.finish()
        watch.begin("match")
        grouping, notes = with_decisions(collection.group(values), matching, collection, values)
        table = duplicates_table(values, grouping, documents.addresses)
    summary = summarise(
        values, grouping, matching, watch,
        rejected=documents.rejected,
        collection=collection,
        outputs=[],
        told=(documents.notes + notes, documents.warnings),
    )  # fmt: skip
    kept, cluster = documents.of_all_rows(grouping)
    inputs = Inputs(documents.batches, rejected=documents.rejected)
    asked = read or ReadOptions()
    origin = Origin(grouping, documents.addresses, matching, asked, resources, inputs)
    return DedupResult(kept, cluster, table, summary, origin)


def _warned(result: DedupResult) -> DedupResult:
    _warn(result.summary.warnings)
    return result


def _warn(lines: Sequence[str | None]) -> None:
    for line in filter(None, lines):
        warn_of_doubt(line)


def _paths(source: Any, has_output: bool) -> list[str] | None:
    if isinstance(source, str | os.PathLike):
        return [os.fspath(source)]
    if isinstance(source, list | tuple) and source:
        allowed = str | os.PathLike if has_output else os.PathLike
        if all(isinstance(item, allowed) for item in source):
            return [os.fspath(item) for item in source]
    return None
