"""`neardup dedup --engine spark`: files in, files out, as one machine writes them."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neardup import errors
from neardup.documents import OutputSet, open_sources, rejects_doubt
from neardup.errors import NeardupError, UsageError
from neardup.pipeline.run.against import Against, ReferenceIndex
from neardup.pipeline.run.rule import settings
from neardup.pipeline.run.summary import Summary
from neardup.runtime.progress import Quiet, Stopwatch
from neardup.similarity.feature_sets import Match
from neardup.spark.counts import counts_of, notes_of
from neardup.spark.engine import LEAST_PARTS, Engine, Place, Settings
from neardup.spark.java import line_of
from neardup.spark.past import past_of_file, write_past
from neardup.spark.plan import decide
from neardup.spark.publishing import (
    check_outputs,
    join_tables,
    publish,
    removed_unless,
    staging,
)
from neardup.spark.session import check_master, mapped, open_session
from neardup.spark.workers.documents import DOCUMENTS, read_files
from neardup.spark.workers.inputs import FILE, file_rows
from neardup.spark.workers.outputs import WRITTEN, make_folders, write_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.documents import ReadOptions, Source
    from neardup.pipeline.run.outputs import Outputs
    from neardup.pipeline.run.rule import Choice, Rule
    from neardup.runtime.progress import Progress

__all__ = ["dedup_files", "settings_of"]

BYTES_A_PART: Final = 1 << 25
MOST_PARTS: Final = 1 << 15


_RAISED: Final = re.compile(
    r"neardup\.errors\.(NeardupError|DataError|UsageError|RecipeError|FileError): ([^\n]+)"
)
"""An error of a worker in an engine's report."""


def settings_of(rule: Rule, choice: Choice, within: str | None = None) -> Settings:
    """What workers need of a rule and a choice, and of the field that matches share.

    Raises:
        UsageError: For what only one machine does.
    """
    if rule.recall < 1:
        raise UsageError("--recall below 1 belongs to --engine local: on Spark every pair is found")
    if choice.decisions is not None:
        raise UsageError("--decisions belongs to --engine local: leave it out")
    if "custom" in rule.recipe.to_json():
        raise UsageError("the recipe has a function of this process: use --engine local")
    match = rule.match if rule.by_features else Match(distance=rule.distance or 0)
    return Settings(
        match, rule.by_features, rule.recipe.bits, choice.keep, choice.policy,
        has_within=within is not None,
    )  # fmt: skip


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
        outputs: Where to write; `kept` is a folder that is not there yet, on a disk that all
            workers see, or behind a URI, to which they upload.
        rule: When documents match.
        choice: Which are kept.
        read: Which fields to read.
        place: Where; Place() unless given.
        progress: Told where the run is.
        against: Folder of a DurableIndex: what matches one of its documents is dropped.

    Raises:
        UsageError: For what only one machine does, a missing engine, or a folder that exists.
        DataError, FileError: As one machine.
        NeardupError: If the engine fails.
    """
    settings, given = settings_of(rule, choice, read.within), read.input_format
    place = place or Place()
    check_master(place.master)
    watch = Stopwatch(progress or Quiet())
    with ExitStack() as stack:
        sources = open_sources(paths, None, given)
        for source in sources:
            stack.callback(source.close)
        written = stack.enter_context(OutputSet(x for source in sources for x in source.paths))
        _check_inputs(sources)
        check_outputs(sources, outputs, written)
        folder = stack.enter_context(staging(outputs, place))
        stack.enter_context(removed_unless(outputs, written))
        if against is not None:
            _ship_index(against, rule, choice, read, _past_path(folder))
        watch.begin("start")
        session = stack.enter_context(open_session(place.master))
        stack.enter_context(told())
        work = stack.enter_context(_work(folder, place))
        engine = Engine(session, work, _parts(place, _bytes_of(sources)))
        kinds = _kinds(outputs, choice)
        make_folders(folder, kinds)
        watch.begin("read")
        files, count = _files_frame(session, sources, engine.parts)
        step = partial(
            read_files, read=read, told=given, recipe=engine.ship(rule.recipe),
            how=(choice.keep, settings.by_features), folder=folder,
            has_rejects="rejects" in kinds,
        )  # fmt: skip
        documents = engine.keep(mapped(files, step, DOCUMENTS), "documents", DOCUMENTS)
        notes, warnings = notes_of(documents, sources)
        total = counts_of(documents, choice)
        rejects_doubt(total["documents"], total["rejected"])
        watch.begin("match")
        own = documents.where("number >= 0")
        names, past = own.select("number", "address"), None
        if against is not None:
            ids, past = past_of_file(engine, _past_path(folder), rule)
            names = names.unionByName(ids.withColumnRenamed("id", "address"))
        decided = decide(engine, own, settings, past).decided
        watch.begin("write")
        rows = _rows_to_write(files, names, decided)
        step = partial(write_files, folder=folder, read=read, told=given, kinds=kinds)
        engine.keep(mapped(engine.exchange(rows), step, WRITTEN), "written", WRITTEN)
        total |= _decided_counts(decided)
        join_tables(folder, count, outputs, written, with_via="via" in kinds)
        publish(engine, folder, outputs, written)
    notes += [f"{path} was replaced" for path in written.replaced]
    summary = _summary(total, sources, outputs, (rule, choice), (notes, warnings))
    return replace(summary, seconds=watch.stop())


@contextmanager
def _work(folder: str, place: Place) -> Iterator[str]:
    """A folder for what is written between the steps."""
    if place.tmp is None:
        yield f"{folder}/work"
        return
    with tempfile.TemporaryDirectory(prefix=".neardup-", dir=place.tmp) as work:
        yield str(Path(work).absolute())


def _kinds(outputs: Outputs, choice: Choice) -> tuple[str, ...]:
    """What the workers write, a folder for each."""
    names = ("kept", "duplicates", "clusters", "rejects")
    kinds = [x for x in names if getattr(outputs, x) is not None]
    return (*kinds, "via") if choice.policy == "components" else tuple(kinds)


def _past_path(folder: str) -> str:
    return f"{folder}/past.parquet"


def _ship_index(against: str, rule: Rule, choice: Choice, read: ReadOptions, path: str) -> None:
    """Write the index's documents where the workers see them."""
    known = ReferenceIndex(Against(against), rule, choice, read)
    try:
        write_past(known, rule.recipe, path)
    finally:
        known.close()


def _check_inputs(sources: Sequence[Source]) -> None:
    for source in sources:
        if source.path is None and source.format != "text":
            raise UsageError(
                f"{source.name}: --engine spark reads files, which are read twice, not a pipe;"
                " use --engine local"
            )


def _bytes_of(sources: Sequence[Source]) -> int:
    return sum(source.nbytes or 0 for source in sources)


def _parts(place: Place, nbytes: int) -> int:
    """Partitions: of BYTES_A_PART of the inputs each; here two for each processor at least."""
    least = 2 * (os.cpu_count() or 1) if place.is_here else LEAST_PARTS
    return min(MOST_PARTS, max(least, -(-nbytes // BYTES_A_PART)))


def _files_frame(session: Any, sources: Sequence[Source], parts: int) -> tuple[Any, int]:
    rows = [(rank, *row) for rank, row in enumerate(file_rows(sources))]
    frame = session.createDataFrame(rows, f"rank long, {FILE}")
    return frame.repartition(max(1, min(parts, len(rows))), "rank"), len(rows)


def _rows_to_write(files: Any, names: Any, decided: Any) -> Any:
    """DECIDED: what each file's task needs to write, sent by the file's place."""
    kept = names.selectExpr("number AS kept_by", "address AS kept")
    label = names.selectExpr("number AS label", "address AS label_name")
    way = names.selectExpr("number AS via_number", "address AS via")
    decided = decided.withColumnRenamed("via", "via_number")
    rows = decided.join(kept, "kept_by").join(label, "label").join(way, "via_number").selectExpr(
        "shiftright(number, 40) AS p", "CAST(NULL AS string) AS path",
        "CAST(NULL AS string) AS name", "CAST(NULL AS string) AS format",
        "CAST(NULL AS string) AS relative", "number", "number != kept_by AS dropped", "kept",
        "label_name AS label", "distance", "similarity", "via",
    )  # fmt: skip
    heads = files.selectExpr(
        "rank AS p", "path", "name", "format", "relative", "CAST(-1 AS long) AS number",
        "false AS dropped", "CAST(NULL AS string) AS kept", "CAST(NULL AS string) AS label",
        "CAST(NULL AS int) AS distance", "CAST(NULL AS double) AS similarity",
        "CAST(NULL AS string) AS via",
    )  # fmt: skip
    return heads.unionByName(rows)


def _decided_counts(decided: Any) -> dict[str, int]:
    (row,) = decided.where("number != kept_by").selectExpr(
        "count(*) AS dropped", "count(DISTINCT label) AS clusters"
    ).collect()  # fmt: skip
    return dict(row.asDict())


def _summary(
    total: dict[str, int], sources: Sequence[Source], outputs: Outputs,
    asked: tuple[Rule, Choice], told: tuple[list[str], list[str]],
) -> Summary:  # fmt: skip
    documents, dropped = total["documents"], total["dropped"]
    rule, choice = asked
    doubts = rule.doubt(documents), rejects_doubt(documents, total["rejected"])
    return Summary(
        read=documents + total["rejected"],
        kept=documents - dropped,
        dropped=dropped,
        rejected=total["rejected"],
        empty=total["empty"],
        clusters=total["clusters"],
        nbytes=_bytes_of(sources),
        seconds={},
        outputs=([outputs.kept] if outputs.kept else []) + outputs.tables,
        settings=settings(rule, choice, documents),
        notes=told[0],
        warnings=[*told[1], *filter(None, doubts)],
    )


@contextmanager
def told() -> Iterator[None]:
    """Turn the failure of a worker into the error that it raised, in one line."""
    try:
        yield
    except NeardupError:
        raise
    except Exception as error:
        _raise_interrupt(error)
        if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
            raise
        gone = re.search(r'StatusCode\.UNAVAILABLE\s+details = "([^"\n]*)', str(error))
        if gone is not None:
            raise NeardupError(
                f"the engine was lost: {gone[1]}; nothing was written: start it, and run this again"
            ) from error
        found = _RAISED.search(str(error))
        if found is None:
            raise NeardupError(f"the engine failed: {line_of(error)}") from error
        raise getattr(errors, found[1])(found[2]) from None


def _raise_interrupt(error: BaseException | None) -> None:
    """Raise the interrupt that an error followed: PySpark tells an engine of it that has ended."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            raise error
        error = error.__context__
