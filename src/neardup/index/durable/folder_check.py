"""Verify the folder of a durable index: every checksum, and that its parts agree."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.errors import DataError, NeardupError
from neardup.index.durable.environment import check_pages
from neardup.index.durable.log_entries import joined_records
from neardup.index.durable.log_store import LogStore, current_environment
from neardup.index.id_columns import IdColumn
from neardup.index.segment_files import SegmentFile

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.index.durable.log_entries import FileEntry, Manifest, Record
    from neardup.index.durable.log_reading import Changes
    from neardup.runtime.types import Rows

__all__ = ["check_folder", "verify_folder"]

REMEDY = "restore the index from a copy, or make it again from the documents"


def check_folder(path: Path) -> list[str]:
    """Read everything in the folder of an index, on one snapshot.

    Returns:
        Problems, each with what to do; none if all is well.
    """
    try:
        with contextlib.suppress(FileNotFoundError):
            check_pages(current_environment(path), math.inf)
        store = LogStore(path, readonly=True)
    except FileNotFoundError:
        return [f"there is no index in {path}: name its folder"]
    except NeardupError as error:
        return [str(error)]
    try:
        return _check_store(store)
    except NeardupError as error:
        return [str(error)]
    finally:
        store.close()


def verify_folder(path: Path) -> None:
    """Raise DataError with the first problem that `check_folder` finds."""
    problems = check_folder(path)
    if problems:
        raise DataError(problems[0])


def _check_store(store: LogStore) -> list[str]:
    contents = None
    while True:
        with contextlib.closing(store.pin()) as reading:
            changes = reading.changes(-1, 0)
            manifest = changes.manifest
            if manifest is None:
                raise AssertionError
            files, problems, is_complete = _opened(store, manifest)
            if is_complete or store.transaction == changes.transaction:
                if not problems:  # of the same commit as the rows, whatever a writer does
                    contents = reading.check_contents()
                break  # else a checkpoint came between and removed a file
    for file, entry in files:
        problems += _check_file(file, entry)
    if contents is not None and not problems:
        problems += _check_rows(store, manifest, [file for file, _ in files], changes, contents)
    return problems


def _opened(
    store: LogStore, manifest: Manifest
) -> tuple[list[tuple[SegmentFile, FileEntry]], list[str], bool]:
    """The files that can be opened, the problems of others, and whether none is missing."""
    files, problems, is_complete = [], [], True
    for entry in manifest.files:
        path = store.file(entry.name)
        try:
            files.append((SegmentFile(path), entry))
        except FileNotFoundError:
            problems.append(f"{path} is missing, but the index names it: {REMEDY}")
            is_complete = False
        except NeardupError as error:
            problems.append(str(error))
    return files, problems, is_complete


def _check_file(file: SegmentFile, entry: FileEntry) -> list[str]:
    if file.checksum != entry.checksum:
        return [f"{file.path} is not the file that the index names: {REMEDY}"]
    broken = file.broken_arrays()
    if broken:
        return [f"{file.path} is damaged (in {', '.join(broken)}): {REMEDY}"]
    numbers = file.array("numbers")
    is_right = len(numbers) == entry.rows and (entry.first, entry.last) == (
        int(numbers[0]),
        int(numbers[-1]),
    )
    if not is_right or np.any(numbers[1:] <= numbers[:-1]):
        return [f"{file.path} does not hold the rows that the index names: {REMEDY}"]
    return []


def _check_rows(
    store: LogStore, manifest: Manifest, files: list[SegmentFile], changes: Changes,
    contents: tuple[Rows, list[str]],
) -> list[str]:  # fmt: skip
    """Check that numbers ascend, ids are different and each content has a row."""
    problems = []
    ends = [number for entry in manifest.files for number in (entry.first, entry.last + 1)]
    if sorted(ends) != ends or any(end > manifest.next for end in ends):
        problems.append(f"{store.path}: segments overlap: {REMEDY}")
    next_number = manifest.next
    for record in changes.records:
        if record.first != next_number:
            problems.append(
                f"{store.path}: the log goes on at row {record.first}, not {next_number}: {REMEDY}"
            )
        next_number = record.end
    numbers, ids = _living(files, changes)
    if len(ids) and IdColumn(ids).repeated() is not None:
        problems.append(f"{store.path}: an id is stored twice: {REMEDY}")
    kept, faults = contents
    stray = np.setdiff1d(kept, numbers, assume_unique=True)
    if len(stray):
        faults = [*faults, f"{len(stray):,} contents belong to no document"]
    return problems + [f"{store.path}: {each}: {REMEDY}" for each in faults]


def _living(files: list[SegmentFile], changes: Changes) -> tuple[Rows, Any]:
    """Numbers and ids of all rows that are not removed."""
    numbers: list[Rows] = [np.empty(0, np.int64)]
    ids: list[Any] = []
    for file in files:
        dead = changes.dead.get(file.path.name)
        live = np.arange(file.header["rows"]) if dead is None else np.flatnonzero(~dead)
        numbers.append(file.array("numbers")[live])
        ids.append(file.ids().values.take(pa.array(live)))
    records: list[Record] = [joined_records(changes.records)] if changes.records else []
    for record in records:
        numbers.append(np.arange(record.first, record.end))
        ids += [record.ids] if len(record) else []
    every = np.concatenate(numbers)
    removed = [record.removed for record in records] or [np.empty(0, np.int64)]
    live = np.flatnonzero(~np.isin(every, removed[0]))
    if not ids:
        return every[live], pa.array([], pa.int64())
    return every[live], pa.concat_arrays(ids).take(pa.array(live))
