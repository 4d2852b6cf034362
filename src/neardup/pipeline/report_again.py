"""A report of a finished run: its inputs are read again, its decision is not made again."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import Rejects
from neardup.errors import UsageError
from neardup.pipeline.evidence.named_texts import fields_of
from neardup.pipeline.evidence.pair_rows import field_of, result_rows
from neardup.pipeline.evidence.pair_texts import texts_at, texts_in
from neardup.pipeline.evidence.removed import duplicate_rows
from neardup.pipeline.evidence.run_report import check_report, with_source, write_report
from neardup.pipeline.run.decision import Decision
from neardup.pipeline.run.read_documents import Reader, open_inputs, read_sources
from neardup.pipeline.run.run_outputs import Outputs, output_set
from neardup.pipeline.run.summary import Outcome
from neardup.runtime.progress import Quiet, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.documents import ReadOptions
    from neardup.pipeline.run.read_documents import Documents, Inputs
    from neardup.pipeline.run.rule import Choice, Limits, Rule
    from neardup.pipeline.run.run_outputs import ReportOptions
    from neardup.runtime.progress import Progress

__all__ = ["report_files", "report_of"]

_ROWS_AT_ONCE: Final = 1 << 16


def report_files(
    files: tuple[str, str | None],
    inputs: Inputs,
    options: ReportOptions,
    rule: Rule,
    choice: Choice,
    read: ReadOptions,
    limits: Limits,
    progress: Progress | None = None,
) -> None:
    """Write the report of a run from its result files and its inputs.

    Args:
        files: The table of `dedup --duplicates`, and that of `dedup --clusters` or None.
        inputs: The run's inputs.
        options: Of the report.
        rule: Of the run.
        choice: Of the run; with decisions, which are not read, no least similarity is expected.
        read: Of the run.
        limits: Threads, memory and temporary files.
        progress: Shows the progress.

    Raises:
        UsageError: If the files do not fit the inputs or the matching.
        DataError, FileError: If a file cannot be read or written.
    """

    def decision_of(documents: Documents) -> Decision:
        decision = _decision(documents.addresses.of(np.arange(len(documents))), files)
        if choice.decisions is None:
            check_decision(decision, rule, choice)
        return decision

    report_of(inputs, decision_of, options, rule, choice, read, limits, progress)


def report_of(
    inputs: Inputs,
    decision_of: Callable[[Documents], Decision],
    options: ReportOptions,
    rule: Rule,
    choice: Choice,
    read: ReadOptions,
    limits: Limits,
    progress: Progress | None = None,
) -> None:
    """Write the report of the decision that `decision_of` returns for the documents."""
    check_report(Outputs(report=options), rule, read)
    reporter = progress or Quiet()
    watch = Stopwatch(reporter)
    paths, batches = inputs.paths, inputs.batches
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, limits, read.input_format) if paths else []
        written = stack.enter_context(output_set(sources, limits))
        for path in options.paths:
            written.check(path)
        read, restrict = with_source(options, read)
        if batches and not restrict:
            raise UsageError("source requires files: documents in memory have the fields of within")
        names = [source.name for source in sources] or [""]
        reader = stack.enter_context(
            Reader(names, rule, limits, keep=choice.keep, keep_features=True, restrict=restrict)
        )
        rejects = Rejects(None, written)
        for batch in batches:
            reader.add(0, batch)
        documents = read_sources(sources, reader, read, rejects, watch, reporter)
        watch.begin("report")
        decision = decision_of(documents)
        rejected = rejects.count + inputs.rejected
        run = Outcome(documents, decision, rule, choice, limits, rejected, read.within)

        def texts_of(rows: set[int]) -> dict[int, str]:
            return texts_in(batches, rows) if batches else texts_at(sources, read, rows)

        def values_of(names: set[str]) -> dict[str, tuple[str | None, ...]]:
            return fields_of(names, options.fields, paths, read, read.input_format)

        write_report(run, options, texts_of, written, values_of if options.fields else None)
        written.commit()


def check_decision(decision: Decision, rule: Rule, choice: Choice) -> None:
    """Refuse a decision by another threshold."""
    if not rule.by_features or choice.policy != "greedy" or decision.similarity is None:
        return
    least = float(decision.similarity.min(initial=1.0))
    if least < rule.match.similarity:
        raise UsageError(
            f"a document was dropped at similarity {least:.4g}, below"
            f" {rule.match.similarity:g}: give --similarity, --measure and"
            " --policy as the run had them"
        )


def _decision(names: pa.Array, files: tuple[str, str | None]) -> Decision:
    """The decision in result files about documents of these names."""
    duplicates, clusters = files
    count = len(names)
    if pc.count_distinct(names).as_py() < count:
        raise UsageError("two documents have the same id: result files do not tell them apart")
    rows = list(duplicate_rows(duplicates))
    dropped = _places([each.dropped for each in rows], names, duplicates)
    kept_by = np.arange(count)
    kept_by[dropped] = _places([each.kept for each in rows], names, duplicates)
    similarity = None
    if all(each.similarity is not None for each in rows):
        similarity = np.ones(count)
        similarity[dropped] = [each.similarity for each in rows]
    label = kept_by
    if clusters is not None:
        label = np.arange(count)
        table = result_rows(clusters, "clusters", ("id", "cluster"))
        while some := list(islice(table, _ROWS_AT_ONCE)):
            identity, cluster = (
                _places([field_of(row, name, place) for place, row in some], names, clusters)
                for name in ("id", "cluster")
            )
            label[identity] = cluster
    return Decision(kept_by, label, similarity)


def _places(addresses: Any, names: pa.Array, file: str) -> Any:
    """The numbers of documents by their names; int64."""
    places = pc.index_in(pa.array(addresses, pa.large_string()), value_set=names)
    if places.null_count:
        name = addresses[places.to_pylist().index(None)]
        raise UsageError(
            f"{file} names {name!s:.80}, which the inputs do not contain: give the run's inputs, in"
            " its order, with its --id"
        )
    return places.to_numpy().astype(np.int64)
