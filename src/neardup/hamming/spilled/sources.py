"""Sources of fingerprints, brought into a file of rows that can be read by chunks."""

from __future__ import annotations

import mmap
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import FileError, UsageError
from neardup.fingerprinting.fingerprint_files import FingerprintReader
from neardup.fingerprinting.values import as_codes
from neardup.hamming.spilled.row_file import RowFile
from neardup.runtime.storage.temporary import TemporaryRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["open_rows"]

BATCH_ROWS: Final = 1 << 20
MOST_NUMBER: Final = 1 << 48


@contextmanager
def open_rows(
    source: Any, bits: int | None = None, tmp: str | None = None, first_row: int = 0
) -> Iterator[tuple[RowFile, int]]:
    """A context with a source of fingerprints as rows of a file.

    Args:
        source: A whole np.memmap (uint64 or int64, (n,) or (n, width)), which is read where it is.
            Anything else is copied to an unlinked file in `tmp`: the path of a fingerprint file or
            a list of paths, an array, or an iterable of arrays (masked rows are skipped).
        bits: Width of a fingerprint; by default what the files say, or 64 * words.
        tmp: Folder for the copy; the system's own if None.
        first_row: Number of the first row.

    Yields:
        The rows, and the width in bits.

    Raises:
        UsageError: For a wrong dtype, shape or width.
        DataError, FileError: For a file that cannot be used, or a full disk.
    """
    if isinstance(source, np.memmap) and isinstance(source.base, mmap.mmap):
        row_source = _of_memmap(source, bits, first_row)
        try:
            yield row_source
        finally:
            os.close(row_source[0].fd)
        return
    if isinstance(source, (str, os.PathLike)):
        source = [source]
    if isinstance(source, (list, tuple)) and all(isinstance(x, (str, os.PathLike)) for x in source):
        reader = FingerprintReader([os.fspath(path) for path in source])
        bits, source = reader.bits if bits is None else bits, reader.batches()
    elif hasattr(source, "shape"):
        array = source
        source = (array[at : at + BATCH_ROWS] for at in range(0, max(len(array), 1), BATCH_ROWS))
    file = TemporaryRows(tmp)
    try:
        yield _copied(source, bits, file, first_row)
    finally:
        file.close()


def _of_memmap(source: np.memmap[Any, Any], bits: int | None, first_row: int) -> Any:
    width, bits = _checked_width(source, bits)
    try:
        fd = os.open(str(source.filename), os.O_RDONLY)
    except OSError as error:
        raise FileError(f"cannot read {source.filename}: {error.strerror}") from None
    rows = RowFile(fd, len(source), width, int(source.offset), base=first_row)
    _check_numbers(rows)
    if bits % 64:
        for chunk in rows.chunks(0, rows.count):
            as_codes(chunk.codes, bits)
    return rows, bits


def _checked_width(source: Any, bits: int | None) -> tuple[int, int]:
    if not source.flags.c_contiguous:
        raise UsageError("fingerprints on disk must lie row by row: save them in C order")
    width = 1 if source.ndim == 1 else source.shape[1]
    _, _, bits = as_codes(np.empty((0, *source.shape[1:]), source.dtype), bits)
    return width, bits


def _copied(
    batches: Iterable[Any], bits: int | None, file: TemporaryRows, first_row: int
) -> tuple[RowFile, int]:
    """Copy batches of fingerprints to a file."""
    count, width, present = 0, 0, _Bitmap()
    for batch in batches:
        array = np.asanyarray(batch)
        codes, _, own = as_codes(np.ma.getdata(array), bits)
        if width not in (0, codes.shape[1]):
            raise UsageError(
                f"a batch has {codes.shape[1]} words, the ones before {width}: use one width"
            )
        bits, width = own, codes.shape[1]
        masked = np.ma.getmaskarray(array).reshape(codes.shape).any(axis=1)
        present.add(~masked)
        file.append(codes)
        count += len(codes)
    rows = RowFile(file.fd, count, width or 1, base=first_row, present=present.finish())
    _check_numbers(rows)
    return rows, bits or 64


def _check_numbers(rows: RowFile) -> None:
    if rows.base < 0 or rows.base + rows.count > MOST_NUMBER:
        raise UsageError(f"row numbers reach {rows.base + rows.count:,}: use 0 to {MOST_NUMBER:,}")


class _Bitmap:
    """A growing array of flags as bits; it has no bits while all flags are set."""

    def __init__(self) -> None:
        self._count, self._clear = 0, False
        self._tail = np.empty(0, np.bool_)
        self._parts: list[Any] = []

    def add(self, flags: Any) -> None:
        if not self._clear and flags.all():
            self._count += len(flags)
            return
        if not self._clear:
            self._clear = True
            self._parts.append(np.full(self._count >> 3, 0xFF, np.uint8))
            self._tail = np.ones(self._count & 7, np.bool_)
        joined = np.concatenate([self._tail, flags])
        whole = len(joined) & ~7
        self._parts.append(np.packbits(joined[:whole], bitorder="little"))
        self._tail = joined[whole:]

    def finish(self) -> Any:
        """The bits, uint8; an empty array where all flags are set."""
        last = np.packbits(self._tail, bitorder="little")
        return np.concatenate([np.empty(0, np.uint8), *self._parts, last])
