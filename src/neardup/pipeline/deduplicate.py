"""Remove near-duplicates, from files or from memory.

A run over files takes five steps:
1. open: check the inputs, the outputs and the reference index;
2. read the inputs, and fingerprint each batch while the next one is read;
3. match: find the matches and group them, in memory that is linear in the documents;
4. write the kept documents, the duplicates and the clusters under temporary names;
5. commit: all outputs appear together.
`Transaction` resumes, repeats and updates an index.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from neardup.documents import InputFormat, ReadOptions, Rejects
from neardup.documents.files.finding import find_files
from neardup.errors import UsageError, suggests_names, warn_of_doubt
from neardup.pipeline.evidence.run_report import (
    check_reference,
    check_report,
    with_source,
    write_report,
)
from neardup.pipeline.judgement.decisions import check_decisions, with_decisions
from neardup.pipeline.result import DedupResult, Origin
from neardup.pipeline.rule_of import rule_of, rule_of_index
from neardup.pipeline.run.against import Against, ReferenceIndex
from neardup.pipeline.run.in_memory import InMemory, check_documents, check_on_error
from neardup.pipeline.run.kept_options import keep_options
from neardup.pipeline.run.matching import match
from neardup.pipeline.run.read_documents import (
    Inputs,
    Reader,
    begin_reading,
    open_inputs,
    read_sources,
)
from neardup.pipeline.run.rule import Choice, Limits, Rule
from neardup.pipeline.run.run_folder import described
from neardup.pipeline.run.run_outputs import (
    Outputs,
    ReportOptions,
    duplicates_table,
    messages,
    write_kept,
    write_result_tables,
)
from neardup.pipeline.run.summary import Outcome, summarise
from neardup.pipeline.run.transaction import Transaction
from neardup.runtime.free_memory import memory_bytes
from neardup.runtime.progress import Quiet, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import Source
    from neardup.fingerprinting.question import Question
    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.run.decision import Decision
    from neardup.pipeline.run.read_documents import Documents
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
    measure: str | None = None,
    recipe: Recipe | None = None,
    question: Question | None = None,
    keep: str = "first",
    date_format: str | None = None,
    policy: str = "greedy",
    text: str | Sequence[str] = "text",
    id: str | None = None,  # noqa: A002
    within: str | None = None,
    format: str | None = None,  # noqa: A002
    delimiter: str | None = None,
    encoding: str | None = None,
    records: str | None = None,
    extract: str | None = None,
    duplicates: str | os.PathLike[str] | None = None,
    clusters: str | os.PathLike[str] | None = None,
    rejects: str | os.PathLike[str] | None = None,
    on_error: str = "stop",
    workers: int | None = None,
    memory: str | int | None = None,
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
        similarity: Least similarity of the documents' features. The default is 0.7 if the call
            names neither a distance nor a part of a question, and 0.8 with a measure or a recipe
            alone. Every match is verified, and none is missed.
        distance: Exact mode instead: largest number of differing fingerprint bits.
        verify: With a distance: least similarity of a match as well.
        measure: "jaccard", "cosine", "containment" or "dice".
        recipe: How to tokenise, hash and fingerprint; by default Recipe().
        question: Similarity, measure and recipe as one value, as `Question.load` reads it.
        keep: "first", "last", "longest", "max:FIELD" or "min:FIELD" for numbers, "newest:FIELD" or
            "oldest:FIELD" for dates.
        date_format: The form of dates that are texts, such as "%d.%m.%Y"; by default ISO 8601.
        policy: "greedy" or "components".
        text: Field or fields with the text.
        id: Field with the document's id; by default its address, the row or `file:row`.
        within: Field that documents must have in common to be compared.
        format: Format of all files, as for `open_sources`; by default their extensions decide.
        delimiter: The character between the fields of CSV; by default the first lines decide.
        encoding: Of text files, JSON lines and CSV; by default that of the byte-order mark, or
            UTF-8.
        records: Path of the list of records in JSON documents, such as "data" or "result.items".
        extract: Of a text that is HTML, compare the "main" content ("trafilatura": by that
            library), "all" that is visible, or "none": the markup too. The default is "main" for
            files named as HTML, and "none" for others.
        duplicates: Table file to write: dropped, kept, distance, similarity, cluster.
        clusters: Table file to write: id, cluster, kept; one row for each document.
        rejects: File for the bad records, if they are skipped.
        on_error: "stop" or "skip" bad records.
        workers: Number of threads; by default all available processors.
        memory: Budget, such as "2G".
        resume: Folder for the state of a run over files: a killed run continues from there when it
            is called again with the same arguments. It is removed when the run succeeds.
        against: Folder of a DurableIndex, or address of a service: a document that matches one
            that it has is dropped. Recipe, similarity, measure, distance and extract are those of
            the index where the call names none.
        update: Add the kept documents to that index.
        own_ids: The fate of a document that the index has under its own id: "seen", it is compared
            with that version too, and dropped; "keep", it is compared only with all others, and not
            at all if the content is the same.
        csv_safe: Put a quote (') before cells of CSV tables that a spreadsheet would compute.
        report: Page about a run over files; `DedupResult.report` writes it afterwards.
        decisions: A file of answers from `neardup review`, which override the matching.

    Returns:
        The decision, as arrays and an Arrow table.

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
    paths = _paths(source, output is not None)
    choice = Choice(keep, policy, None if decisions is None else os.fspath(decisions), date_format)
    check_decisions(choice, against)  # before the index is opened for its rule
    stored = None if paths is None or against is None else partial(rule_of_index, against)
    rule = rule_of(question, similarity, distance, verify, measure, recipe, stored)
    limits = Limits(memory_bytes(memory), workers=workers)
    read = ReadOptions(
        fields, id, skip, within=within, extract=extract,
        record_bytes=limits.record_bytes, **choice.reading,
    )  # fmt: skip
    files = (output, duplicates, clusters, rejects)
    if update and against is None:
        raise UsageError("update requires against: name the index that kept documents go to")
    if own_ids != "seen" and against is None:
        raise UsageError(f"own_ids={own_ids!r} requires against: name the index that has the ids")
    if paths is not None:
        _warn([rule.doubt()])
        named = [None if path is None else os.fspath(path) for path in files]
        about = None if report is None else ReportOptions(os.fspath(report))
        folder = None if resume is None else os.fspath(resume)
        outputs = Outputs(named[0], named[1], named[2], named[3], csv_safe, about, folder)
        seen = None if against is None else Against(os.fspath(against), update, own_ids)
        read = replace(read, input_format=InputFormat(format, delimiter, encoding, records=records))
        return _warned(dedup_files(paths, outputs, rule, choice, read, limits, against=seen))
    if against is not None:
        raise UsageError("against requires files: query the index with documents in memory")
    if resume is not None:
        raise UsageError("resume requires files: documents in memory are gone with the process")
    if any(path is not None for path in files):
        raise UsageError("documents in memory have no output file: use the result's `kept`")
    if not (format is delimiter is encoding is records is None):
        raise UsageError("format, delimiter, encoding and records require files")
    if report is not None:
        raise UsageError("documents in memory: write the report with the result's `report`")
    check_documents(source)
    return _warned(dedup_texts(source, rule, choice, limits, read))


def dedup_files(
    paths: Sequence[str],
    outputs: Outputs,
    rule: Rule,
    choice: Choice,
    read: ReadOptions,
    limits: Limits,
    progress: Progress | None = None,
    against: Against | None = None,
) -> DedupResult:
    """Remove near-duplicates from files.

    Args:
        paths: Inputs, as for `open_sources`.
        outputs: Where to write.
        rule: When documents match.
        choice: Which documents are kept.
        read: The fields, their format, and the treatment of bad records.
        limits: The resources of the run.
        progress: Shows the progress; by default nothing is shown.
        against: A reference index.

    Raises:
        UsageError, DataError, FileError: As `dedup`.
    """
    rule.check_plan(limits.plan)
    check_report(outputs, rule, read, against)
    check_decisions(choice, against)
    shown = progress or Quiet()
    watch = Stopwatch(shown)
    with ExitStack() as stack:
        # Open: all reasons to refuse a run are checked before the first document.
        reference = _reference(stack, against, rule, choice, read, limits)
        if reference is not None:
            read = reference.reading(read)
        check_reference(outputs.report, reference)
        sources = open_inputs(stack, paths, limits, read.input_format)
        options = described(rule, choice, read)
        run = stack.enter_context(
            Transaction(
                sources, outputs, options, limits, reference, skip_errors=read.skip_errors,
                others=_read_besides(choice, against),
            )
        )  # fmt: skip
        # Read.
        rejects = Rejects(outputs.rejects, run.files)
        read, restrict = with_source(outputs.report, read)
        needs = outputs.report is not None or (reference is not None and reference.needs_features)
        reader = Reader(
            [source.name for source in sources], rule, limits, run.resume,
            keep=choice.keep, keep_features=needs, restrict=restrict, progress=shown,
        )  # fmt: skip
        documents = read_sources(sources, stack.enter_context(reader), read, rejects, watch, shown)
        # Match.
        watch.begin("match", documents.sets.features.nbytes if rule.by_features else None)
        documents, decision = _decided(run, documents, rule, choice, limits, reference)
        decision, notes = with_decisions(decision, documents, rule, choice, limits)
        if not needs:
            documents = documents.without_features()
        run.prepare(documents, decision)
        # Write, under temporary names.
        begin_reading([] if outputs.kept is None else sources, watch, "write")
        table = duplicates_table(documents, decision, documents.addresses)
        kept = write_kept(
            sources, decision, documents.counts, outputs, run.files, shown, limits.workers
        )
        write_result_tables(table, decision, documents.addresses, outputs, run.files)
        files = () if against is None else against.files
        keep_options(outputs.duplicates, paths, options, run.files, files)
        outcome = Outcome(documents, decision, rule, choice, limits, rejects.count, read.within)
        texts_of = partial(_texts_at, sources, read, reference, decision)
        write_report(outcome, outputs.report, texts_of, run.files)
        # Commit.
        run.commit(decision, read)
    lines = messages(sources, run.files, [*run.notes, *notes])
    summary = summarise(outcome, watch, kept + outputs.tables, lines)
    origin = Origin(decision, documents.addresses, rule, choice, read, limits, Inputs(paths))
    return DedupResult(decision.kept, decision.label, table, summary, origin)


def _read_besides(choice: Choice, against: Against | None) -> list[str]:
    """The files of a run besides its inputs, which no output may replace either."""
    named = () if against is None else against.files
    files = [file.path for name in named for file in find_files(name)]
    return files if choice.decisions is None else [*files, choice.decisions]


def _reference(
    stack: ExitStack,
    against: Against | None,
    rule: Rule,
    choice: Choice,
    read: ReadOptions,
    limits: Limits,
) -> ReferenceIndex | None:
    """The index that the run is compared with, closed with the stack."""
    if against is None:
        return None
    reference = ReferenceIndex(against, rule, choice, read, limits)
    stack.callback(reference.close)
    return reference


def _decided(
    run: Transaction,
    documents: Documents,
    rule: Rule,
    choice: Choice,
    limits: Limits,
    reference: ReferenceIndex | None,
) -> tuple[Documents, Decision]:
    """Decide, unless a killed run did; documents of a reference index follow the run's own."""
    decision = run.earlier_decision(documents)
    if decision is not None:
        return documents, decision
    if reference is None:
        decision = match(documents, rule, choice, limits)
    else:
        documents, decision = reference.match(documents)
    run.keep(decision)
    return documents, decision


def _texts_at(
    sources: Sequence[Source],
    read: ReadOptions,
    reference: ReferenceIndex | None,
    decision: Decision,
    rows: set[int],
) -> dict[int, str]:
    from neardup.pipeline.evidence.gather import texts_with_references
    from neardup.pipeline.evidence.pair_texts import texts_at  # a run without a report needs none

    return texts_with_references(partial(texts_at, sources, read), reference, decision)(rows)


def dedup_texts(
    source: Any, rule: Rule, choice: Choice, limits: Limits, read: ReadOptions | None = None
) -> DedupResult:
    """Decide about documents in memory: texts, or a table whose columns `read` names."""
    watch = Stopwatch(Quiet())
    watch.begin("read")
    read = read or ReadOptions(**choice.reading)
    in_memory = InMemory(source, read)
    with Reader([""], rule, limits, keep=choice.keep) as reader:
        for batch in in_memory.batches:
            reader.add(0, batch)
        documents = reader.finish()
        watch.begin("match")
        decision = match(documents, rule, choice, limits)
        decision, notes = with_decisions(decision, documents, rule, choice, limits)
        table = duplicates_table(documents, decision, in_memory.addresses)
    outcome = Outcome(documents, decision, rule, choice, limits, in_memory.rejected)
    summary = summarise(outcome, watch, [], (in_memory.notes + notes, in_memory.warnings))
    kept, cluster = in_memory.of_all_rows(decision)
    inputs = Inputs(in_memory.batches, in_memory.rejected)
    origin = Origin(decision, in_memory.addresses, rule, choice, read, limits, inputs)
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
