"""Copying kept stretches of an input: front to back, or in threads where bytes stay as they are."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from neardup.documents.files.problems import file_error
from neardup.errors import FileError
from neardup.runtime.storage.durable_files import HAS_PLACED_IO
from neardup.runtime.threads import ahead, read_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.compression import ByteReader
    from neardup.documents.files.encodings import EncodedFile
    from neardup.documents.record_edits import EditedRecords

__all__ = ["copy_in_threads", "copy_runs"]

_PIECE_BYTES: Final = 1 << 20
_RUNS_AT_ONCE: Final = 1 << 16
_TASK_BYTES: Final = 4 << 20
_MOST_WRITERS: Final = 4
"""Threads: a file system lets one at a time write to a file, while the others read."""
_GAP_BYTES: Final = 1 << 16
"""Bytes between two runs that are read too, rather than by another call."""
_MOST_VIEWS: Final = 1000  # that one call of the system writes; Linux allows 1024


def copy_runs(
    reader: ByteReader,
    runs: npt.NDArray[np.int64],
    target: AtomicFile | EncodedFile | EditedRecords,
    tell: Callable[[int], object],
) -> None:
    """Copy byte ranges, int64 (m, 2) in ascending order, from a reader at its start.

    Now and then `tell` is called with what the reader has consumed.

    Raises:
        FileError: If the input ends too early, or the write fails.
    """
    pieces = _pieces(reader, runs, target)
    for some, consumed in pieces if reader.codec is None else read_ahead(pieces):
        for data in some:
            target.write(data)
        tell(consumed)


def _pieces(
    reader: ByteReader,
    runs: npt.NDArray[np.int64],
    target: AtomicFile | EncodedFile | EditedRecords,
) -> Iterator[tuple[list[bytes], int]]:
    """The bytes of runs, as many pieces at a time as _PIECE_BYTES hold, and what was consumed."""
    position = begin = 0
    some: list[bytes] = []
    for start, stop in _pairs(runs):
        if start > position:
            reader.skip(start - position)
        position = start
        while position < stop:
            data = reader.read(min(stop - position, _PIECE_BYTES))
            if not data:
                raise _shorter(target)
            some.append(data)
            position += len(data)
            if position - begin >= _PIECE_BYTES:
                yield some, reader.consumed
                begin, some = position, []
    yield some, reader.consumed


def _pairs(runs: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    for at in range(0, len(runs), _RUNS_AT_ONCE):
        yield from runs[at : at + _RUNS_AT_ONCE].tolist()


class _Task(NamedTuple):
    """Runs of the input that lie in the output one after the other."""

    runs: npt.NDArray[np.int64]
    begin: int  # in the output
    end: int


def copy_in_threads(
    file: int,
    runs: npt.NDArray[np.int64],
    target: AtomicFile,
    tell: Callable[[int], object],
    workers: int,
) -> bool:
    """Copy as `copy_runs` does, from a file to where each run belongs in the output.

    Args:
        file: Descriptor of the input.
        runs: See `copy_runs`.
        target: The output.
        tell: See `copy_runs`.
        workers: Threads.

    Returns:
        False, and nothing is written, if the output cannot be written to at any place.

    Raises:
        FileError: As copy_runs, or if the input cannot be read.
    """
    into = target.descriptor()
    if into is None or not HAS_PLACED_IO:
        return False
    tasks = _tasks(runs, target.tell())

    def copy(task: _Task) -> bytes:
        views = _views(file, task.runs, target)
        try:
            _write(into, views, task.begin)
        except OSError as error:
            raise file_error(target.path, "write", error) from None
        return bytes(views[-1][-1:])

    # Tasks write to different places: the file is the same whichever ends first.
    at_once = min(workers, len(tasks), _MOST_WRITERS)
    copied = ahead(at_once, copy, tasks) if at_once > 1 else map(copy, tasks)
    for task, last in zip(tasks, copied, strict=True):
        tell(int(task.runs[-1, 1]))
        target.went_on(task.end, ends_line=last == b"\n")
    return True


def _tasks(runs: npt.NDArray[np.int64], begin: int) -> list[_Task]:
    """The runs that begin in the same _TASK_BYTES of input are a task."""
    runs = _cut(runs[runs[:, 1] > runs[:, 0]])
    ends = begin + np.append(0, np.cumsum(runs[:, 1] - runs[:, 0]))
    firsts = np.flatnonzero(np.diff(runs[:, 0] // _TASK_BYTES, prepend=-1))
    bounds = pairwise([*firsts.tolist(), len(runs)])
    return [_Task(runs[one:two], int(ends[one]), int(ends[two])) for one, two in bounds]


def _cut(runs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The same bytes in runs of _TASK_BYTES at most."""
    pieces = -(-(runs[:, 1] - runs[:, 0]) // _TASK_BYTES)
    if not (pieces > 1).any():
        return runs
    numbers = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begins = np.repeat(runs[:, 0], pieces) + numbers * _TASK_BYTES
    ends = np.minimum(begins + _TASK_BYTES, np.repeat(runs[:, 1], pieces))
    return np.stack([begins, ends], 1)


def _views(file: int, runs: npt.NDArray[np.int64], target: AtomicFile) -> list[memoryview]:
    """The bytes of runs of a file; those of near runs are read at once."""
    gaps = np.flatnonzero(runs[1:, 0] - runs[:-1, 1] > _GAP_BYTES) + 1
    views: list[memoryview] = []
    for some in np.split(runs, gaps):
        begin, end = int(some[0, 0]), int(some[-1, 1])
        data = memoryview(os.pread(file, end - begin, begin))
        if len(data) < end - begin:
            raise _shorter(target)
        views += [data[start:stop] for start, stop in (some - begin).tolist()]
    return views


def _write(file: int, views: list[memoryview], begin: int) -> None:
    """Write bytes to a file from a place on."""
    for at in range(0, len(views), _MOST_VIEWS):
        some = views[at : at + _MOST_VIEWS]
        while some:
            done = os.pwritev(file, some, begin)
            begin += done
            while some and done >= len(some[0]):
                done -= len(some.pop(0))
            if some:
                some[0] = some[0][done:]


def _shorter(target: AtomicFile | EncodedFile | EditedRecords) -> FileError:
    return FileError(f"{target.path}: the input became shorter while it was read")
