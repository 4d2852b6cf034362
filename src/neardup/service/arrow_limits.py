"""Limits of an Arrow stream: the bytes that it unpacks to, and the columns that it may have.

Some kilobytes of a compressed buffer may stand for gigabytes, and so may one value that a
dictionary or a view names again and again. So this is measured before anything is unpacked.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.service.problem_details import Problem

if TYPE_CHECKING:
    from neardup.service.settings import Limits

__all__ = ["check_columns", "check_packed"]

_DICTIONARY, _RECORDS = 2, 3
"""Kinds of messages, as the format's Message.fbs numbers them; others have no buffers."""
_FORMER_COMPRESSION: Final = b"ARROW:experimental_compression"
"""A key in the metadata of a message by which Arrow 0.17 named its compression."""
_SIZE: Final = struct.Struct("<q")
_PLAIN: Final = -1
"""The size before a buffer that was not worth compressing."""


def check_packed(body: bytes, limits: Limits) -> None:
    """Refuse a stream whose buffers unpack to more than a body may have.

    Raises:
        Problem: If they do.
        pa.ArrowException, struct.error, ValueError: If it is not a stream.
    """
    total = 0
    for message in pa.ipc.MessageReader.open_stream(body):
        total += _unpacked_bytes(message.metadata.to_pybytes(), message.body or b"")
        _check_size(total, limits)


def check_columns(table: pa.Table, limits: Limits) -> None:
    """Refuse columns of which no request is made, and values of more bytes than a body may have.

    Raises:
        Problem: Which.
    """
    if table.num_rows and not table.num_columns:
        raise Problem("invalid-document", f"{table.num_rows:,} rows have no columns")
    total = 0
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        is_text = pa.types.is_string(inner) or pa.types.is_large_string(inner)
        is_text = is_text or pa.types.is_string_view(inner)
        is_number = pa.types.is_integer(inner) or pa.types.is_floating(inner)
        if not (is_text or is_number or _is_list(kind)):
            raise Problem(
                "invalid-document",
                f"column {name!r:.60} is {kind}: send strings, whole numbers or lists of these",
            )
        if is_text:
            total += sum(pc.sum(_lengths(chunk)).as_py() or 0 for chunk in column.chunks)
    _check_size(total, limits)


def _is_list(kind: pa.DataType) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return bool(is_list and pa.types.is_integer(kind.value_type))


def _lengths(texts: pa.Array) -> pa.Array:
    """The bytes of each text, counted as often as it comes: int64, null or 0 for a null."""
    if pa.types.is_dictionary(texts.type):
        return _lengths(texts.dictionary).take(texts.indices)
    if pa.types.is_string_view(texts.type):  # a view has 16 bytes, the first four of them its size
        views = np.frombuffer(texts.buffers()[1] or b"", "<i4")
        sizes = views[4 * texts.offset : 4 * (texts.offset + len(texts)) : 4].astype(np.int64)
        return pa.array(np.maximum(sizes, 0))
    return pc.binary_length(texts).cast(pa.int64())


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.body_bytes:
        raise Problem(
            "too-large",
            f"the Arrow stream unpacks to {size:,} bytes or more, and the limit is"
            f" {limits.body_bytes:,}",
        )


def _unpacked_bytes(metadata: bytes, body: Any) -> int:
    """The bytes to which the buffers of a message unpack: a FlatBuffer of Message.fbs, and body."""
    message = _followed(metadata, 0)
    kind, header = _field(metadata, message, 1), _field(metadata, message, 2)
    number = metadata[kind] if kind else 0
    if number not in {_DICTIONARY, _RECORDS} or not header:
        return 0
    batch = _followed(metadata, header)
    if number == _DICTIONARY:
        batch = _followed(metadata, _field(metadata, batch, 1))
    if not _field(metadata, batch, 3) and _FORMER_COMPRESSION not in metadata:
        return len(body)
    buffers = _followed(metadata, _field(metadata, batch, 2))
    (count,) = struct.unpack_from("<I", metadata, buffers)
    places = np.frombuffer(metadata, "<i8", 2 * count, buffers + 4).reshape(-1, 2).tolist()
    total, data = 0, memoryview(body)
    for begin, length in places:
        if length:
            (size,) = _SIZE.unpack_from(data, begin)
            total += length if size == _PLAIN else abs(size)
    return total


def _followed(data: bytes, at: int) -> int:
    """The place to which a relative offset leads."""
    return int(at + struct.unpack_from("<I", data, at)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """The place of a field of a table; 0 if the table lacks it."""
    (back,) = struct.unpack_from("<i", data, table)
    entry = 4 + 2 * number
    if entry >= struct.unpack_from("<H", data, table - back)[0]:
        return 0
    (offset,) = struct.unpack_from("<H", data, table - back + entry)
    return table + offset if offset else 0
