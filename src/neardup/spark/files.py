"""`neardup dedup --engine spark`: files in, files out, as one machine writes them."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from neardup import errors
from neardup.documents import InputFormat, OutputSet, open_sources, plan_outputs, write_table
from neardup.documents.files.problems import file_error
from neardup.errors import NeardupError, UsageError
from neardup.pipeline.run.against import Against, ReferenceIndex
from neardup.pipeline.run.summary import Summary
from neardup.runtime.progress import Quiet, Stopwatch
from neardup.runtime.signals import uninterrupted
from neardup.runtime.storage.files import name_as_text, sync_folder
from neardup.similarity.feature_sets import Match
from neardup.spark.engine import Engine, Settings
from neardup.spark.past import past_of_file, write_past
from neardup.spark.plan import decide
from neardup.spark.session import check_master, mapped, open_session
from neardup.spark.workers.documents import DOCUMENTS, read_files, rejects_path
from neardup.spark.workers.inputs import FILE, file_rows
from neardup.spark.workers.outputs import (
    CLUSTERS,
    DUPLICATES,
    VIA,
    WRITTEN,
    make_folders,
    part_path,
    write_files,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neardup.documents import ReadOptions, Source
    from neardup.pipeline.run.matching import Matching
    from neardup.pipeline.run.outputs import Outputs
    from neardup.runtime.progress import Progress

__all__ = ["dedup_files", "settings_of"]

BYTES_A_PART: Final = 1 << 25
LEAST_PARTS: Final = 8
MOST_PARTS: Final = 1 << 15


_RAISED: Final = re.compile(
    r"neardup\.errors\.(NeardupError|DataError|UsageError|RecipeError|FileError): ([^\n]+)"
)
"""An error of a worker in an engine's report."""


def settings_of(matching: Matching) -> Settings:
    """What workers need of a matching.

    Raises:
        UsageError: For what only one machine does.
    """
    if matching.recall < 1:
        raise UsageError("--recall below 1 belongs to --engine local: on Spark every pair is found")
    if "custom" in matching.recipe.to_json():
        raise UsageError("the recipe has a function of this process: use --engine local")
    match = matching.match if matching.by_features else Match(distance=matching.distance or 0)
    return Settings(
        match, matching.by_features, matching.recipe.bits, matching.keep, matching.policy
    )


def dedup_files(
    paths: Sequence[str],
    outputs: Outputs,
    matching: Matching,
    read: ReadOptions,
    master: str = "sail",
    *,
    progress: Progress | None = None,
    input_format: InputFormat | None = None,
    against: str | None = None,
) -> Summary:
    """Remove near-duplicates from files, as `neardup.pipeline.dedup_files` does.

    Args:
        paths: Files of records that all workers see; each is read by one task.
        outputs: Where to write; `kept` is a folder that is not there yet, which all workers see.
        matching: How to decide.
        read: Which fields to read.
        master: As for `open_session`.
        progress: Told where the run is.
        input_format: Of all inputs; their extensions and first lines tell unless given.
        against: Folder of a DurableIndex: what matches one of its documents is dropped.

    Raises:
        UsageError: For what only one machine does, a missing engine, or a folder that exists.
        DataError, FileError: As one machine.
        NeardupError: If the engine fails.
    """
    settings, given = settings_of(matching), input_format or InputFormat()
    check_master(master)
    watch = Stopwatch(progress or Quiet())
    with ExitStack() as stack:
        sources = open_sources(paths, None, given)
        for source in sources:
            stack.callback(source.close)
        written = stack.enter_context(OutputSet(x for source in sources for x in source.paths))
        _check(sources, outputs, written)
        folder = stack.enter_context(_staging(outputs))
        if against is not None:
            _ship_index(against, matching, read, _past_path(folder))
        watch.begin("start")
        session = stack.enter_context(open_session(master))
        stack.enter_context(told())
        engine = Engine(
            session, f"{folder}/work", _parts(master, sum(x.nbytes or 0 for x in sources))
        )
        kinds = _kinds(outputs, matching)
        make_folders(folder, kinds)
        watch.begin("read")
        files, count = _files_frame(session, sources, engine.parts)
        step = partial(
            read_files, read=read, told=given, recipe=engine.ship(matching.recipe),
            keep=matching.keep, by_features=settings.by_features,
            rejects=folder if "rejects" in kinds else None,
        )  # fmt: skip
        documents = engine.keep(mapped(files, step, DOCUMENTS), "documents", DOCUMENTS)
        watch.begin("match")
        own = documents.where("number >= 0")
        names, past = own.select("number", "address"), None
        if against is not None:
            ids, past = past_of_file(engine, _past_path(folder), matching)
            names = names.unionByName(ids.withColumnRenamed("id", "address"))
        decided = decide(engine, own, settings, past).decided
        watch.begin("write")
        rows = _rows_to_write(files, names, decided)
        step = partial(write_files, folder=folder, read=read, told=given, kinds=kinds)
        engine.keep(mapped(engine.exchange(rows), step, WRITTEN), "written", WRITTEN)
        total = _counts(documents, decided)
        _publish(folder, count, outputs, written, matching)
    return _summary(total, sources, outputs, matching, watch)


def _kinds(outputs: Outputs, matching: Matching) -> tuple[str, ...]:
    """What the workers write, a folder for each."""
    names = ("kept", "duplicates", "clusters", "rejects")
    kinds = [x for x in names if getattr(outputs, x) is not None]
    return (*kinds, "via") if matching.policy == "components" else tuple(kinds)


def _past_path(folder: str) -> str:
    return f"{folder}/past.parquet"


def _ship_index(against: str, matching: Matching, read: ReadOptions, path: str) -> None:
    """Write the index's documents where the workers see them."""
    known = ReferenceIndex(Against(against), matching, read)
    try:
        write_past(known, matching.recipe, path)
    finally:
        known.close()


def _check(sources: Sequence[Source], outputs: Outputs, written: OutputSet) -> None:
    if outputs.report is not None:
        raise UsageError("--report and --summary belong to --engine local: leave them out")
    for source in sources:
        if source.path is None and source.format != "text":
            raise UsageError(
                f"{source.name}: --engine spark reads files, which are read twice, not a pipe;"
                " use --engine local"
            )
    kept = outputs.kept
    if kept is not None:
        if not kept.endswith("/") or "://" in kept:
            raise UsageError(
                f"-o is {kept!r}: with --engine spark name a folder/ on a disk that all workers see"
            )
        if Path(kept).exists():
            raise UsageError(f"-o {kept} exists: name a new folder, or remove it")
        plan_outputs(sources, kept)
    for path in outputs.tables:
        written.check(path)


@contextmanager
def _staging(outputs: Outputs) -> Iterator[str]:
    """A folder beside the output, on the same disk, which goes with whatever is left in it."""
    beside = outputs.kept or outputs.tables[0]
    parent = Path(beside).absolute().parent
    if name_as_text(str(parent)) != str(parent):
        raise UsageError(
            f"{beside} is in {parent}, whose name is not UTF-8, and engines take no other: name"
            " another folder"
        )
    if not parent.is_dir():
        raise errors.FileError(f"cannot write {beside}: there is no folder {parent}; create it")
    with tempfile.TemporaryDirectory(prefix=".neardup-", dir=parent) as folder:
        yield folder


def _bytes_of(sources: Sequence[Source]) -> int:
    return sum(source.nbytes or 0 for source in sources)


def _parts(master: str, nbytes: int) -> int:
    """Partitions: of BYTES_A_PART of the inputs each; here two for each processor at least."""
    least = 2 * (os.cpu_count() or 1) if master.startswith(("sail", "local")) else LEAST_PARTS
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


def _counts(documents: Any, decided: Any) -> dict[str, int]:
    (row,) = documents.selectExpr(
        "count_if(number >= 0) AS documents",
        "count_if(number >= 0 AND octet_length(codes) = 0) AS empty",
        "coalesce(sum(rejected), 0) AS rejected",
    ).collect()
    (other,) = decided.where("number != kept_by").selectExpr(
        "count(*) AS dropped", "count(DISTINCT label) AS clusters"
    ).collect()  # fmt: skip
    return {**row.asDict(), **other.asDict()}


def _publish(
    folder: str, files: int, outputs: Outputs, written: OutputSet, matching: Matching
) -> None:
    """Join the files' parts in order, and let all outputs appear, or none."""
    duplicates = DUPLICATES.append(VIA) if matching.policy == "components" else DUPLICATES
    for kind, schema in (("duplicates", duplicates), ("clusters", CLUSTERS)):
        path = getattr(outputs, kind)
        if path is not None:
            write_table(
                written, path, schema, _parts_of(folder, kind, files), csv_safe=outputs.csv_safe
            )
    if outputs.rejects is not None:
        joined = written.create(outputs.rejects)
        for rank in range(files):
            joined.write(Path(rejects_path(folder, rank)).read_bytes())
    if outputs.kept is not None:
        os.sync()  # one call instead of one for each of many small files
    with uninterrupted():
        if outputs.kept is None:
            written.commit()
            return
        kept, target = Path(folder, "kept"), Path(outputs.kept.rstrip("/"))
        try:
            kept.rename(target)
        except OSError as error:
            raise file_error(outputs.kept, "write", error) from None
        try:
            written.commit()
        except BaseException:
            target.rename(kept)
            raise
        with suppress(OSError):
            sync_folder(target.parent)


def _parts_of(folder: str, kind: str, files: int) -> Iterator[pa.RecordBatch]:
    for rank in range(files):
        with pa.OSFile(part_path(folder, kind, rank)) as file, pa.ipc.open_file(file) as part:
            for number in range(part.num_record_batches):
                yield part.get_batch(number)


def _summary(
    total: dict[str, int], sources: Sequence[Source], outputs: Outputs, matching: Matching,
    watch: Stopwatch,
) -> Summary:  # fmt: skip
    documents, dropped = total["documents"], total["dropped"]
    return Summary(
        read=documents + total["rejected"],
        kept=documents - dropped,
        dropped=dropped,
        rejected=total["rejected"],
        empty=total["empty"],
        clusters=total["clusters"],
        nbytes=_bytes_of(sources),
        seconds=watch.stop(),
        outputs=([outputs.kept] if outputs.kept else []) + outputs.tables,
        settings=matching.settings(documents),
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
        found = _RAISED.search(str(error))
        if found is None:
            raise NeardupError(f"the engine failed: {_line(str(error))}") from error
        raise getattr(errors, found[1])(found[2]) from None


def _raise_interrupt(error: BaseException | None) -> None:
    """Raise the interrupt that an error followed: PySpark tells an engine of it that has ended."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            raise error
        error = error.__context__


def _line(message: str) -> str:
    """What an engine's message says in one line: what a worker raised, if it is there."""
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"(\w+\.)*\w*(Error|Exception)\b.*: .", line)]
    return ([*raised[-1:], *lines] or ["no message"])[0]
