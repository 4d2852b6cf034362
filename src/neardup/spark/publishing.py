"""Publishing: outputs wait in folders of the workers, and appear at one moment."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from neardup.documents import plan_outputs, write_table
from neardup.documents.extensions import check_extension
from neardup.documents.files.output_set import check_empty, is_folder
from neardup.documents.files.problems import file_error
from neardup.documents.files.remote import as_local, is_uri, locate
from neardup.documents.result_tables import CLUSTERS, DUPLICATES, VIA
from neardup.errors import FileError, UsageError
from neardup.pipeline.run.run_outputs import ROWS_A_BATCH
from neardup.runtime.signals import uninterrupted
from neardup.runtime.storage.durable_files import name_as_text, sync_folder
from neardup.spark.workers.documents import rejects_path
from neardup.spark.workers.file_outputs import (
    DECIDED,
    UPLOADED,
    WRITTEN,
    part_path,
    upload_files,
    write_files,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from neardup.documents import InputFormat, OutputSet, ReadOptions, Source
    from neardup.pipeline.run.rule import Choice
    from neardup.pipeline.run.run_outputs import Outputs
    from neardup.spark.engine import Engine, Place
    from neardup.spark.engine_session import Frame
    from neardup.spark.input_frame import Inputs

__all__ = [
    "check_outputs",
    "in_batches",
    "join_tables",
    "kinds_of",
    "publish",
    "removed_unless",
    "staging",
    "write_decided",
]


def kinds_of(outputs: Outputs, choice: Choice) -> tuple[str, ...]:
    """The folders that the workers write, one for each output; "via" if tables name paths."""
    names = ("kept", "duplicates", "clusters", "rejects")
    kinds = [x for x in names if getattr(outputs, x) is not None]
    return (*kinds, "via") if choice.policy == "components" else tuple(kinds)


def check_outputs(sources: Sequence[Source], outputs: Outputs, written: OutputSet) -> None:
    """Refuse outputs that could not be written, before anything is read.

    Raises:
        UsageError: For outputs of one machine only, or a folder that is there.
        FileError: If there is no place for one.
    """
    if outputs.report is not None:
        raise UsageError("--report and --summary require --engine local: leave them out")
    kept = outputs.kept
    if kept is not None:
        if kept == "-" or not is_folder(kept):
            raise UsageError(
                f"-o is {kept!r}: with --engine spark name a folder/, since each input gets an"
                " output of its own"
            )
        if is_uri(kept):
            check_empty(kept)
        elif os.path.lexists(as_local(kept)):
            raise UsageError(f"-o {kept} exists: name a new folder, or remove it")
        plan_outputs(sources, kept)
    for path in (outputs.duplicates, outputs.clusters):
        if path is not None:
            check_extension(path)
    for path in outputs.tables:
        written.check(path)


@contextlib.contextmanager
def staging(outputs: Outputs, place: Place) -> Iterator[str]:
    """A context with a folder that all workers see, removed at its end with its content.

    On a disk it is next to the outputs, so that the kept files need one rename. What goes to
    URIs waits in the place's own folder for its upload.

    Raises:
        UsageError: If a cluster has no place for what is uploaded.
        FileError: If there is no folder for it.
    """
    output = next(x for x in (outputs.kept, *outputs.tables) if x is not None)
    if not is_uri(output):
        path = Path(as_local(output).rstrip("/")).absolute()
        parent, what = path.parent, output
    elif place.tmp is not None or place.is_here:
        parent = Path(place.tmp or tempfile.gettempdir()).absolute()
        what = f"to --tmp {parent}"
    else:
        raise UsageError(
            f"{output} is uploaded when all is done: name a folder on a disk that all workers of"
            f" {place.master} see, where it waits: --tmp /shared/folder"
        )
    if name_as_text(str(parent)) != str(parent):
        raise UsageError(
            f"{output} is in {parent}, whose name is not UTF-8, and engines take no other: name"
            " another folder"
        )
    if not parent.is_dir():
        raise FileError(f"cannot write {what}: there is no folder {parent}; create it")
    with tempfile.TemporaryDirectory(prefix=".neardup-", dir=parent) as folder:
        yield folder


@contextlib.contextmanager
def removed_unless(outputs: Outputs, written: OutputSet) -> Iterator[None]:
    """A context that removes uploaded files at its end, unless the tables are committed.

    Enter it before the session: the engine has then stopped when it is left.
    """
    try:
        yield
    finally:
        if outputs.kept is not None and is_uri(outputs.kept) and not written.is_committed:
            with contextlib.suppress(Exception):  # the error that brought us here is the one told
                fs, key = locate(outputs.kept)
                if fs.exists(key):
                    fs.rm(key, recursive=True)


def write_decided(
    engine: Engine,
    inputs: Inputs,
    decided: Frame,
    how: tuple[ReadOptions, InputFormat],
    to: tuple[str, tuple[str, ...]],
) -> None:
    """Write each file's kept records, and its part of each table, in the task that reads it.

    Args:
        engine: Where.
        inputs: The files.
        decided: As `decision_plan.named` gives it.
        how: Which fields were read, and the inputs' format.
        to: Folder of the run, and what is written below it.
    """
    folder, kinds = to
    columns = [part.rsplit(" ", 1) for part in DECIDED.split(", ")]
    values_of = {"p": "shiftright(number, 40)"} | {name: name for name in decided.columns}
    heads = {"p": "rank", **{name: name for name in inputs.files.columns if name != "rank"}}
    heads |= {"number": "-1", "dropped": "false"}
    rows, files = (
        frame.selectExpr(*(f"CAST({values.get(name, 'NULL')} AS {kind}) AS {name}"
                           for name, kind in columns))
        for frame, values in ((decided, values_of), (inputs.files, heads))
    )  # fmt: skip
    step = partial(write_files, folder=folder, read=how[0], input_format=how[1], kinds=kinds)
    engine.step(files.unionByName(rows), step, WRITTEN, to="p", keep="written")


def publish(engine: Engine, folder: str, outputs: Outputs, written: OutputSet) -> None:
    """Move the kept files of a folder, and the tables, to their place: all or none.

    Until here the workers wrote below `folder` alone, which goes with the run: an interrupt or a
    lost task leaves nothing next to it. From here on the order decides what a crash can leave. The
    kept folder appears by one rename, then the tables; if a table fails, the folder goes back. A
    process that is killed between the two leaves the kept files without tables, never a part of
    either.

    Args:
        engine: Where uploads run.
        folder: Of the run.
        outputs: Where to.
        written: The set with the tables.

    Raises:
        FileError: If one of them cannot.
    """
    kept = outputs.kept
    if kept is not None and is_uri(kept):
        _upload(engine, Path(folder, "kept"), kept)
    if kept is None or is_uri(kept):
        written.commit()
        return
    os.sync()  # one call instead of one for each of many small files
    waiting, target = Path(folder, "kept"), Path(as_local(kept).rstrip("/"))
    with uninterrupted():
        try:
            waiting.rename(target)
        except OSError as error:
            raise file_error(kept, "write", error) from None
        try:
            written.commit()
        except BaseException:
            target.rename(waiting)
            raise
        with contextlib.suppress(OSError):
            sync_folder(target.parent)


def _upload(engine: Engine, kept: Path, target: str) -> None:
    """Upload every file below a folder, on the workers.

    Raises:
        FileError: If the file system of the URI fails.
    """
    files = sorted(x for x in kept.rglob("*") if x.is_file())
    names = [(str(x), x.relative_to(kept).as_posix()) for x in files]
    rows = [(number, *map(json.dumps, pair)) for number, pair in enumerate(names)]
    if rows:
        frame = engine.session.createDataFrame(rows, "p long, path string, relative string")
        frame = frame.repartition(max(1, min(engine.parts, len(rows))), "p")
        engine.step(frame, partial(upload_files, target=target), UPLOADED, keep="uploaded")


def join_tables(
    folder: str, files: int, kinds: Sequence[str], outputs: Outputs, written: OutputSet
) -> None:
    """Join the files' parts of each table in the order of the inputs.

    Args:
        folder: Of the run.
        files: How many parts each table has.
        kinds: What was written.
        outputs: Where to.
        written: The set that the tables become part of.
    """
    duplicates = DUPLICATES.append(VIA) if "via" in kinds else DUPLICATES
    for kind, schema in (("duplicates", duplicates), ("clusters", CLUSTERS)):
        path = getattr(outputs, kind)
        if path is not None:
            parts = in_batches(_parts_of(folder, kind, files), ROWS_A_BATCH)
            write_table(written, path, schema, parts, csv_safe=outputs.csv_safe)
    if outputs.rejects is not None:
        joined = written.create(outputs.rejects)
        for rank in range(files):
            joined.write(Path(rejects_path(folder, rank)).read_bytes())


def in_batches(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in the batch size of one machine: a batch is a row group."""
    collected: list[pa.RecordBatch] = []
    room = rows
    for batch in batches:
        for begin in range(room - rows, len(batch), rows):
            part = batch.slice(max(0, begin), begin + rows - max(0, begin))
            collected.append(part)
            room -= len(part)
            if not room:
                yield _one(collected)
                collected, room = [], rows
    if room < rows:
        yield _one(collected)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _parts_of(folder: str, kind: str, files: int) -> Iterator[pa.RecordBatch]:
    for rank in range(files):
        with pa.OSFile(part_path(folder, kind, rank)) as file, pa.ipc.open_file(file) as part:
            for number in range(part.num_record_batches):
                yield part.get_batch(number)
