"""`neardup decontaminate --engine spark`: files in, files out, as one machine writes them.

1. The questions are read here, and written where the workers see them.
2. Each file is searched in one task; what is found comes here.
3. Which findings are leaks is decided here, as on one machine.
4. Each file's other documents are written in one task.
5. All outputs appear together.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neardup.documents import OutputSet, open_sources, rejects_doubt, write_table
from neardup.errors import UsageError
from neardup.pipeline.benchmarks import BenchmarkQuestions
from neardup.pipeline.contamination import summary_of
from neardup.pipeline.leak_findings import FOUND, LeakFindings, found_rows
from neardup.pipeline.run.rule import Limits
from neardup.runtime.progress import Quiet, Stopwatch
from neardup.spark.engine import Engine, Place
from neardup.spark.engine_messages import worker_errors
from neardup.spark.engine_session import check_master, open_session
from neardup.spark.file_run import bytes_of, check_inputs, parts_for, work_folder
from neardup.spark.input_frame import Inputs, frame_of_files, notes_of
from neardup.spark.publishing import (
    check_outputs,
    join_tables,
    publish,
    removed_unless,
    staging,
    write_decided,
)
from neardup.spark.workers.file_outputs import make_folders
from neardup.spark.workers.leaks import SEARCHED, search_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.contamination.rules import LeakRule
    from neardup.documents import ReadOptions
    from neardup.pipeline.benchmarks import Benchmarks
    from neardup.pipeline.contamination import CleanOutputs
    from neardup.pipeline.run.summary import ContaminationSummary
    from neardup.runtime.progress import Progress
    from neardup.spark.engine_session import Frame

__all__ = ["decontaminate_files"]


def decontaminate_files(
    paths: Sequence[str],
    benchmarks: Benchmarks,
    outputs: CleanOutputs,
    rule: LeakRule,
    read: ReadOptions,
    place: Place | None = None,
    *,
    progress: Progress | None = None,
) -> ContaminationSummary:
    """Write the documents without questions, as `neardup.pipeline.decontaminate_files` does.

    Args:
        paths: Files of records that all workers see; each is read by one task.
        benchmarks: The questions, read here.
        outputs: Where to write; `clean` is a folder that must not exist.
        rule: When a question counts as found.
        read: Which fields to read.
        place: Where; by default Place().
        progress: Hears where the run is.

    Raises:
        UsageError: For what only one machine does, a missing engine, or a folder that exists.
        DataError, FileError: As one machine.
        NeardupError: If the engine fails.
    """
    place, input_format = place or Place(), read.input_format
    _check(outputs)
    check_master(place.master)
    limits, watch = Limits(tmp=place.tmp), Stopwatch(progress or Quiet())
    # The table of findings is written here, not by the workers.
    written_there = replace(outputs.of_run(), duplicates=None)
    kinds = tuple(x for x in ("kept", "rejects") if getattr(written_there, x) is not None)
    with ExitStack() as stack:
        sources = open_sources(paths, None, input_format)
        for source in sources:
            stack.callback(source.close)
        watch.begin("questions")
        benchmark = BenchmarkQuestions(benchmarks, read, limits, rule)
        inputs = [x for source in sources for x in source.paths]
        written = stack.enter_context(OutputSet([*benchmark.paths, *inputs]))
        check_inputs(sources)
        check_outputs(sources, outputs.of_run(), written)
        folder = stack.enter_context(staging(outputs.of_run(), place))
        stack.enter_context(removed_unless(written_there, written))
        against = f"{folder}/questions.arrow", rule
        _write_texts(benchmark.texts, against[0])
        watch.begin("start")
        session = stack.enter_context(open_session(place.master))
        stack.enter_context(worker_errors())
        work = stack.enter_context(work_folder(folder, place))
        engine = Engine(session, work, parts_for(place, bytes_of(sources)))
        watch.begin("read")
        make_folders(folder, kinds)
        files, parts = frame_of_files(engine, sources)
        step = partial(
            search_files, how=(read, input_format), against=against, folder=folder,
            counts_documents=benchmarks.common is not None, has_rejects="rejects" in kinds,
        )  # fmt: skip
        searched = engine.step(files, step, SEARCHED, keep="searched")
        notes, warnings = notes_of(searched, sources)
        findings = stack.enter_context(LeakFindings(benchmark.questions, benchmarks.common, limits))
        rejected, nbytes = _collect(searched, findings)
        tally = findings.tally()
        doubt = rejects_doubt(findings.documents, rejected)
        watch.begin("write")
        if outputs.clean is not None:
            rows = [(number, True) for number in sorted(tally.documents)]
            decided = engine.session.createDataFrame(rows, "number long, dropped boolean")
            there = Inputs(sources, files, parts, searched, {}, notes, warnings)
            write_decided(engine, there, decided, (read, input_format), (folder, kinds))
        if outputs.found is not None:
            leak_rows = found_rows(findings, benchmark)
            write_table(written, outputs.found, FOUND, leak_rows, csv_safe=outputs.csv_safe)
        join_tables(folder, parts, kinds, written_there, written)
        publish(engine, folder, written_there, written)
    summary = summary_of(
        (rule, benchmarks, benchmark, outputs), tally, (findings.documents, rejected),
        dropped=len(tally.documents), cut=0, nbytes=nbytes,
        outputs=([outputs.clean] if outputs.clean else []) + outputs.of_run().tables,
        warnings=[*warnings, *filter(None, [doubt])],
        notes=[*notes, *(f"{path} was replaced" for path in written.replaced)],
    )  # fmt: skip
    return replace(summary, seconds=watch.stop())


def _collect(searched: Frame, findings: LeakFindings) -> tuple[int, int]:
    """Collect findings in the order of the inputs; returns the numbers of bad records and bytes."""
    rejected = nbytes = 0
    for row in sorted(searched.collect(), key=lambda row: int(row["number"])):
        if row["number"] >= 0:
            findings.add_encoded(bytes(row["findings"]))
            continue
        findings.documents += row["documents"]
        rejected, nbytes = rejected + row["rejected"], nbytes + row["nbytes"]
        if findings.common is not None:
            findings.having = findings.having + np.frombuffer(row["having"], np.int64)
    findings.go_on()
    return rejected, nbytes


def _check(outputs: CleanOutputs) -> None:
    """Refuse options that only one machine supports."""
    for option in ("cut", "resume", "report"):
        if getattr(outputs, option) is not None:
            raise UsageError(f"--{option} requires --engine local: leave it out")


def _write_texts(texts: pa.LargeStringArray, path: str) -> None:
    table = pa.table({"text": texts})
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
