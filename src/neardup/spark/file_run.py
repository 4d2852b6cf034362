"""`neardup dedup --engine spark`: files in, files out, as one machine writes them.

The files are read as a frame (`input_frame`), the plan of frames decides (`decision_plan`), and the
rows of its decision go back to the files that they are about (`publishing`).
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from neardup.documents import OutputSet, open_sources, rejects_doubt
from neardup.errors import UsageError
from neardup.pipeline.run.against import Against, ReferenceIndex
from neardup.pipeline.run.kept_options import keep_options
from neardup.pipeline.run.rule import settings as settings_of
from neardup.pipeline.run.run_folder import described
from neardup.pipeline.run.summary import Summary, missing_note
from neardup.runtime.progress import Quiet, Stopwatch
from neardup.spark.decision_plan import decide, named
from neardup.spark.engine import LEAST_PARTS, Engine, Place, Settings
from neardup.spark.engine_messages import worker_errors
from neardup.spark.engine_session import check_master, open_session
from neardup.spark.exported_index import reference_of_file, write_reference
from neardup.spark.input_frame import read_inputs
from neardup.spark.publishing import (
    check_outputs,
    join_tables,
    kinds_of,
    publish,
    removed_unless,
    staging,
    write_decided,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.documents import ReadOptions, Source
    from neardup.pipeline.run.rule import Choice, Rule
    from neardup.pipeline.run.run_outputs import Outputs
    from neardup.runtime.progress import Progress
    from neardup.spark.engine_session import Frame
    from neardup.spark.input_frame import Inputs

__all__ = ["bytes_of", "check_inputs", "dedup_files", "parts_for", "work_folder"]

BYTES_A_PART: Final = 1 << 25
MOST_PARTS: Final = 1 << 15


def dedup_files(
    paths: Sequence[str],
    outputs: Outputs,
    rule: Rule,
    choice: Choice,
    read: ReadOptions,
    place: Place | None = None,
    *,
    progress: Progress | None = None,
    against: str | None = None,
) -> Summary:
    """Remove near-duplicates from files, as `neardup.pipeline.dedup_files` does.

    Args:
        paths: Files of records that all workers see; each is read by one task.
        outputs: Where to write; `kept` is a folder that must not exist, on a disk that all
            workers see, or behind a URI, to which they upload.
        rule: When documents match.
        choice: Which documents are kept.
        read: Which fields to read.
        place: Where; by default Place().
        progress: Hears where the run is.
        against: Folder of a DurableIndex: what matches one of its documents is dropped.

    Raises:
        UsageError: For what only one machine does, a missing engine, or a folder that exists.
        DataError, FileError: As one machine.
        NeardupError: If the engine fails.
    """
    settings, input_format = Settings.of(rule, choice, read.within), read.input_format
    place = place or Place()
    check_master(place.master)
    watch = Stopwatch(progress or Quiet())
    with ExitStack() as stack:
        sources = open_sources(paths, None, input_format)
        for source in sources:
            stack.callback(source.close)
        written = stack.enter_context(OutputSet(x for source in sources for x in source.paths))
        check_inputs(sources)
        check_outputs(sources, outputs, written)
        folder = stack.enter_context(staging(outputs, place))
        # Before the session: what was uploaded is removed when no task can upload any more.
        stack.enter_context(removed_unless(outputs, written))
        if against is not None:
            read = _ship_index(against, rule, choice, read, _reference_path(folder))
        watch.begin("start")
        session = stack.enter_context(open_session(place.master))
        stack.enter_context(worker_errors())
        work = stack.enter_context(work_folder(folder, place))
        engine = Engine(session, work, parts_for(place, bytes_of(sources)))
        kinds = kinds_of(outputs, choice)
        watch.begin("read")
        inputs = read_inputs(engine, sources, (read, input_format), rule, choice, (folder, kinds))
        watch.begin("match")
        names, reference = inputs.documents.selectExpr("number", "address AS id"), None
        if against is not None:
            ids, reference = reference_of_file(engine, _reference_path(folder), rule)
            names = names.unionByName(ids)
        decided = decide(engine, inputs.documents, settings, reference).decided
        watch.begin("write")
        rows = named(decided, names, with_via="via" in kinds)
        write_decided(engine, inputs, rows, (read, input_format), (folder, kinds))
        total = inputs.counts | _decided_counts(decided)
        join_tables(folder, inputs.parts, kinds, outputs, written)
        keep_options(outputs.duplicates, paths, described(rule, choice, read), written)
        publish(engine, folder, outputs, written)
    summary = _summary(total, inputs, outputs, (rule, choice), written.replaced)
    return replace(summary, seconds=watch.stop())


@contextmanager
def work_folder(folder: str, place: Place) -> Iterator[str]:
    """A context with a folder for files written between the steps."""
    if place.tmp is None:
        yield f"{folder}/work"
        return
    with tempfile.TemporaryDirectory(prefix=".neardup-", dir=place.tmp) as work:
        yield str(Path(work).absolute())


def _reference_path(folder: str) -> str:
    return f"{folder}/past.parquet"


def _ship_index(
    against: str, rule: Rule, choice: Choice, read: ReadOptions, path: str
) -> ReadOptions:
    """Write the documents of an index to a file that the workers see; gives the run's reading."""
    reference = ReferenceIndex(Against(against), rule, choice, read)
    try:
        write_reference(reference, rule.recipe, path)
        return reference.reading(read)
    finally:
        reference.close()


def check_inputs(sources: Sequence[Source]) -> None:
    """Refuse inputs that tasks cannot read."""
    for source in sources:
        if source.archive is not None:
            raise UsageError(
                f"{source.archive}: --engine spark reads files, and no archives; unpack it first,"
                " or use --engine local"
            )
        if source.path is None and source.format != "text":
            raise UsageError(
                f"{source.name}: --engine spark reads files, which are read twice, not a pipe;"
                " use --engine local"
            )


def bytes_of(sources: Sequence[Source]) -> int:
    """The size of all inputs."""
    return sum(source.nbytes or 0 for source in sources)


def parts_for(place: Place, nbytes: int) -> int:
    """The number of partitions: one for each BYTES_A_PART; here at least two for each processor."""
    least = 2 * (os.cpu_count() or 1) if place.is_here else LEAST_PARTS
    return min(MOST_PARTS, max(least, -(-nbytes // BYTES_A_PART)))


def _decided_counts(decided: Frame) -> dict[str, int]:
    (row,) = decided.where("number != kept_by").selectExpr(
        "count(*) AS dropped", "count(DISTINCT label) AS clusters"
    ).collect()  # fmt: skip
    return dict(row.asDict())


def _summary(
    total: dict[str, int],
    inputs: Inputs,
    outputs: Outputs,
    question: tuple[Rule, Choice],
    replaced: list[str],
) -> Summary:
    rule, choice = question
    documents, dropped = total["documents"], total["dropped"]
    doubts = rule.doubt(documents), rejects_doubt(documents, total["rejected"])
    undated = missing_note(choice, documents - total["scored"])
    return Summary(
        read=documents + total["rejected"],
        kept=documents - dropped,
        dropped=dropped,
        rejected=total["rejected"],
        empty=total["empty"],
        clusters=total["clusters"],
        nbytes=bytes_of(inputs.sources),
        seconds={},
        outputs=([outputs.kept] if outputs.kept else []) + outputs.tables,
        settings=settings_of(rule, choice),
        notes=[
            *inputs.notes,
            *([] if undated is None else [undated]),
            *(f"{path} was replaced" for path in replaced),
        ],
        warnings=[*inputs.warnings, *filter(None, doubts)],
    )
