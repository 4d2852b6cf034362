"""Places spread over a long file, read one after the other as if they were a file of their own."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.documents.files.compression import ByteReader, codec_of_path
from neardup.documents.files.inputs import RegularInput, WrappedInput
from neardup.documents.files.problems import file_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.documents.files.inputs import Input

__all__ = ["SpreadInput", "spread_input", "whole_lines", "whole_rows"]

PLACES: Final = 64
LEAST_BYTES: Final = 1 << 14
"""Of a place; some of them are no whole record."""

_LONGER: Final = 16
"""A place without a whole record is read so many times as far."""

_STARTS_TRIED: Final = 64
_SEED: Final = 0


def spread_input(
    origin: Input, begin: int, nbytes: int, head: bytes, whole: Callable[[bytes], bytes]
) -> SpreadInput | None:
    """A sample of a file from `begin` on; None where it can be read from front to back only.

    Args:
        origin: The file.
        begin: A byte of it; what is before is left out.
        nbytes: About how much the sample is to have.
        head: What comes before the sample, such as a header row.
        whole: The whole records of a piece that begins and ends anywhere.
    """
    if not isinstance(origin, RegularInput) or codec_of_path(origin.name) is not None:
        return None
    return SpreadInput(origin, begin, nbytes, head, whole)


class SpreadInput(WrappedInput):
    """An Input of whole records at PLACES places of a file, in random order: always the same ones.

    One place is in each of PLACES parts of equal length, so that however few are read, they are
    from anywhere. Arguments as for `spread_input`.
    """

    def __init__(
        self,
        origin: RegularInput,
        begin: int,
        nbytes: int,
        head: bytes,
        whole: Callable[[bytes], bytes],
    ) -> None:
        """Choose the places; nothing is read yet."""
        super().__init__(origin)
        self._head, self._whole = head, whole
        part = ((origin.nbytes or 0) - begin) // PLACES
        self._length = min(part, max(LEAST_BYTES, nbytes // PLACES))
        random = np.random.default_rng(_SEED)
        places = (
            begin + part * np.arange(PLACES) + random.integers(0, part - self._length + 1, PLACES)
        )
        self._places: list[int] = random.permutation(places).tolist()

    def open(self) -> ByteReader:
        """Start reading the sample."""
        try:
            file = io.FileIO(self.name)
        except OSError as error:
            raise file_error(self.name, "read", error) from None
        return ByteReader(
            self.name, _Stretches(file, self._places, self._length, self._head, self._whole)
        )


class _Stretches(io.RawIOBase):
    def __init__(
        self,
        file: io.FileIO,
        places: list[int],
        length: int,
        head: bytes,
        whole: Callable[[bytes], bytes],
    ) -> None:
        self._file, self._places, self._length, self._whole = file, iter(places), length, whole
        self._rest = head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            place = next(self._places, None)
            if place is None:
                return 0
            for length in (self._length, _LONGER * self._length):
                self._file.seek(place)
                self._rest = self._whole(self._file.read(length))
                if self._rest:
                    break
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


def whole_lines(piece: bytes) -> bytes:
    r"""The whole lines of a piece of a file that begins and ends anywhere.

    Example:
        >>> whole_lines(b"lf\none\ntwo\nha")
        b'one\ntwo\n'
    """
    return piece[piece.find(b"\n") + 1 : piece.rfind(b"\n") + 1]


def whole_rows(piece: bytes, delimiter: str, columns: int) -> bytes:
    r"""The whole rows of a piece of CSV that begins and ends anywhere, perhaps between quotes.

    A row begins at the first line end from which on all have so many columns; empty if there is no
    such place.

    Example:
        >>> whole_rows(b'b, c"\n1,"d\n e"\n2,f\n3,g', ",", 2)
        b'1,"d\n e"\n2,f\n'
    """
    begin = piece.find(b"\n") + 1
    for _ in range(_STARTS_TRIED):
        if begin == 0:
            break
        end = _end_of_rows(piece, begin, delimiter, columns)
        if end > begin:
            return piece[begin:end]
        begin = piece.find(b"\n", begin) + 1
    return b""


def _end_of_rows(piece: bytes, begin: int, delimiter: str, columns: int) -> int:
    """Where the last but one row from `begin` on ends; `begin` if one has other columns."""
    lines = io.BytesIO(piece[begin:]).readlines()
    ends = (begin + np.append(0, np.cumsum([len(line) for line in lines]))).tolist()
    texts = (line.decode("utf-8", "replace") for line in lines)
    rows = csv.reader(texts, delimiter=delimiter, strict=True)
    end = before = begin
    try:
        for row in rows:
            if row and len(row) != columns and rows.line_num < len(lines):
                return begin
            before, end = end, ends[rows.line_num]
    except csv.Error:
        return end if rows.line_num == len(lines) else begin
    return before
