"""Parquet files joined to one: column chunks as they are, and a footer with their new places.

Arrow encodes the row groups of a file in one thread, and joins no files. A footer is a value of
Thrift's compact protocol (thrift-compact-protocol.md of Apache Thrift); parquet.thrift of Apache
Parquet has its fields. A number takes as many bytes as it needs, so one that changes is cut out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JoinedParquet"]

_MAGIC: Final = b"PAR1"
_TAIL_BYTES: Final = 8
"""What follows the footer: its length and _MAGIC."""
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST = range(1, 10)
_STRUCT: Final = 12
_FIXED_BYTES: Final = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}  # a field's type has its truth
_LONG: Final = 15  # as the count in a list's first byte: the count follows
_FILE: Final = {3: "rows", 4: "groups"}
_GROUP: Final = {
    1: {  # columns
        2: "offset",
        3: {9: "offset", 10: "offset", 11: "offset", 14: "offset"},  # pages and bloom filters
    },
    5: "offset",
    7: "ordinal",
}
"""Fields of a row group that tell where in a file it is; an offset counts from the first byte."""


class JoinedParquet:
    """Parquet files with the same schema and without page indexes, one after the other in one file.

    The bytes are those of Arrow, if it had written one file.

    Args:
        write: Takes the bytes of the joined file in order.
        empty: A file without row groups; the joined file gets its schema and its metadata.
    """

    def __init__(self, write: Callable[[memoryview | bytes], object], empty: memoryview) -> None:
        """Begin the joined file."""
        self._write, self._footer = write, _footer(empty)
        self._end = len(_MAGIC)
        self._rows = self._count = 0
        self._groups: list[bytes] = []
        write(_MAGIC)

    def append(self, file: memoryview) -> None:
        """Write the row groups of a file after those before it."""
        footer = _footer(file)
        (_, rows, _), (_, begin, end) = _places(footer, _STRUCT, _FILE)
        count, first = _list_head(footer, begin)
        more = {"offset": self._end - len(_MAGIC), "ordinal": self._count}
        self._groups.append(_moved(footer[begin:end], more)[first - begin :])
        self._count += count
        self._rows += _number(footer, rows)[0]
        chunks = file[len(_MAGIC) : len(file) - _TAIL_BYTES - len(footer)]
        self._end += len(chunks)
        self._write(chunks)

    def close(self) -> None:
        """Write the footer."""
        old = self._footer
        (_, rows, rows_end), (_, begin, end) = _places(old, _STRUCT, _FILE)
        parts = [old[:rows], _number_bytes(self._rows), old[rows_end:begin]]
        parts += [_list_head_bytes(self._count), *self._groups, old[end:]]
        footer = b"".join(parts)
        self._write(footer + len(footer).to_bytes(4, "little") + _MAGIC)


def _footer(file: memoryview) -> bytes:
    length = int.from_bytes(file[-_TAIL_BYTES:-4], "little")
    return bytes(file[-_TAIL_BYTES - length : -_TAIL_BYTES])


def _moved(groups: bytes, more: dict[str, int]) -> bytes:
    """A list of row groups with higher numbers; an offset of zero means that there is none."""
    parts, done = list[bytes](), 0
    for name, begin, end in _places(groups, _LIST, _GROUP):
        value, _ = _number(groups, begin)
        if value or name == "ordinal":
            parts += [groups[done:begin], _number_bytes(value + more[name])]
            done = end
    return b"".join([*parts, groups[done:]])


def _places(data: bytes, kind: int, wanted: dict[int, Any]) -> list[tuple[str, int, int]]:
    """Name, begin and end of wanted fields of a struct, or of each struct of a list."""
    places: list[tuple[str, int, int]] = []
    _walk(data, 0, kind, wanted, places)
    return places


def _walk(data: bytes, at: int, kind: int, wanted: Any, places: list[tuple[str, int, int]]) -> int:
    """Walk over a value of the compact protocol.

    Args:
        data: What it is in.
        at: Its first byte.
        kind: Its type.
        wanted: Its name, if it is wanted; else the names of wanted fields by field id, in a dict
            for each struct.
        places: Gets name, begin and end of what is wanted.

    Returns:
        Its end.

    Raises:
        KeyError: For a type that no footer has.
    """
    if isinstance(wanted, str):
        end = _walk(data, at, kind, {}, places)
        places.append((wanted, at, end))
        return end
    if _I16 <= kind <= _I64:
        return _varint(data, at)[1]
    if kind == _BINARY:
        nbytes, at = _varint(data, at)
        return at + nbytes
    if kind == _STRUCT:
        number = 0
        while head := data[at]:
            number, at = (number + (head >> 4), at + 1) if head > 15 else _number(data, at + 1)
            at = _walk(data, at, head & 15, wanted.get(number, {}), places)
        return at + 1
    if kind == _LIST:
        inner = data[at] & 15
        count, at = _list_head(data, at)
        for _ in range(count):
            at = _walk(data, at, inner, wanted, places)
        return at
    return at + _FIXED_BYTES[kind]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A count, and its end."""
    value = bits = 0
    while (byte := data[at]) > 127:
        value |= (byte & 127) << bits
        bits += 7
        at += 1
    return value | byte << bits, at + 1


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number, and its end; its lowest bit is the sign, which none of ours has."""
    value, end = _varint(data, at)
    return value >> 1, end


def _list_head(data: bytes, at: int) -> tuple[int, int]:
    """How many items a list has, and where the first one begins."""
    count = data[at] >> 4
    return _varint(data, at + 1) if count == _LONG else (count, at + 1)


def _varint_bytes(value: int) -> bytes:
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes([*data, value])


def _number_bytes(value: int) -> bytes:
    return _varint_bytes(value << 1)


def _list_head_bytes(count: int) -> bytes:
    """What a list of structs begins with."""
    if count < _LONG:
        return bytes([count << 4 | _STRUCT])
    return bytes([_LONG << 4 | _STRUCT]) + _varint_bytes(count)
