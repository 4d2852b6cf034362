"""Texts in, blocks of UTF-8 bytes and offsets out: the form in which kernels read documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import UsageError
from neardup.runtime.arrays import check_given, frozen

__all__ = [
    "TextBlock",
    "arrow_texts",
    "decoded",
    "is_encoded",
    "one_block",
    "text_array",
    "text_blocks",
]

BLOCK_BYTES: Final = 1 << 20
"""A block ends with the document that passes this many bytes: what one thread takes at a time."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_TEXT_TYPES: Final = (
    pa.types.is_large_string,
    pa.types.is_string,
    pa.types.is_string_view,
)
_BINARY_TYPES: Final = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
)
"""As Parquet files have texts that Spark or Impala wrote."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Consecutive documents.

    Attributes:
        first: Row of the first document in the array.
        data: uint8, read-only, UTF-8; shared with the Arrow buffer.
        offsets: int64 (documents + 1,), read-only: document i is data[offsets[i]:offsets[i + 1]].
    """

    first: int
    data: np.ndarray[Any, np.dtype[np.uint8]]
    offsets: np.ndarray[Any, np.dtype[np.int64]]

    def __len__(self) -> int:
        """Count the documents."""
        return self.offsets.size - 1

    @property
    def nbytes(self) -> int:
        """Bytes of text."""
        return int(self.offsets[-1] - self.offsets[0])

    @property
    def longest(self) -> int:
        """Bytes of the longest document."""
        return int(np.diff(self.offsets).max(initial=0))


def text_array(texts: Any) -> pa.ChunkedArray:
    """Take texts in any form as Arrow large strings; null becomes the empty text.

    Args:
        texts: A sequence of str (None is null), an Arrow array or chunked array of any string type
            or of dictionary-encoded strings, or anything that speaks the Arrow C interface or that
            Arrow can read, such as a pandas or polars series. A lone surrogate in a str becomes
            U+FFFD.

    Raises:
        UsageError: If something in it is not a text, or an Arrow array is not a valid one.
    """
    array = arrow_texts(texts)
    check_given("texts", array)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return pa.chunked_array([_large_strings(chunk) for chunk in chunks], pa.large_string())


def text_blocks(texts: pa.Array, block_bytes: int = BLOCK_BYTES) -> Iterator[TextBlock]:
    """Cut a large-string array into blocks of about `block_bytes` bytes, without copying text."""
    data, offsets = _buffers(texts)
    begin = 0
    while begin < len(texts):
        limit = offsets[begin] + block_bytes
        end = max(begin + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
        yield TextBlock(begin, data, offsets[begin : end + 1])
        begin = end


def one_block(text: str) -> TextBlock:
    """One text as a block, without Arrow; a lone surrogate becomes U+FFFD.

    Raises:
        UsageError: If it is not a text.
    """
    data = _text_bytes(text)
    return TextBlock(0, np.frombuffer(data, np.uint8), frozen(np.array((0, len(data)), np.int64)))


def _text_bytes(text: str) -> bytes:
    """One text as UTF-8; a lone surrogate becomes U+FFFD.

    Raises:
        UsageError: If it is not a text.
    """
    if not isinstance(text, str):
        raise UsageError(f"text is {type(text).__name__}, not str: {text!r:.60}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


def arrow_texts(texts: Any) -> Any:
    """Take texts as Arrow, as `text_array`, but of any type and with their nulls."""
    _refuse_containers(texts)
    if isinstance(texts, pa.Array | pa.ChunkedArray):
        return texts
    if hasattr(texts, "__arrow_c_stream__"):
        return pa.chunked_array(texts)
    if hasattr(texts, "__arrow_c_array__"):
        return pa.array(texts)
    if isinstance(texts, Iterable) and not hasattr(texts, "__array__"):
        texts = list(texts)
        try:
            return pa.array(texts, pa.large_string())
        except UnicodeEncodeError:
            texts = [_without_surrogates(text) for text in texts]
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            _refuse_other_types(texts)
        return pa.array(texts, pa.large_string())
    try:
        return pa.array(texts, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(f"texts cannot be read as an array of strings: {error}") from None


def _refuse_containers(texts: Any) -> None:
    """Raise UsageError for iterables that are not sequences of texts."""
    if isinstance(texts, str | bytes):
        raise UsageError("texts is one string: pass a list of them, or call fingerprint(text)")
    if isinstance(texts, Mapping):
        raise UsageError(
            f"texts is a mapping (its first key is {next(iter(texts), None)!r:.40}): pass"
            " list(texts.values()), or one column of a table"
        )
    if isinstance(texts, set | frozenset):
        raise UsageError(
            "texts is a set, whose order changes from one start to the next: pass sorted(texts)"
        )


def _without_surrogates(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    return _SURROGATE.sub("\ufffd", text)


def _refuse_other_types(texts: list[Any]) -> None:
    for row, text in enumerate(texts):
        if text is not None and not isinstance(text, str):
            raise UsageError(f"row {row} is {type(text).__name__}, not str: {text!r:.60}")


def is_encoded(kind: pa.DataType) -> bool:
    """Whether texts of a type are run-end encoded or binary: see `decoded`."""
    return pa.types.is_run_end_encoded(kind) or any(test(kind) for test in _BINARY_TYPES)


def decoded(texts: pa.Array | pa.ChunkedArray) -> Any:
    """Run-end encoded or binary texts, which are valid arrays, as strings; what is neither stays.

    Raises:
        UsageError: If bytes are not UTF-8.
    """
    if pa.types.is_run_end_encoded(texts.type):
        texts = _run_end_decoded(texts)
    if not any(is_binary(texts.type) for is_binary in _BINARY_TYPES):
        return texts
    try:
        return texts.cast(pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        raise UsageError("the texts are bytes, and some are not UTF-8: decode them first") from None


def _run_end_decoded(texts: pa.Array | pa.ChunkedArray) -> Any:
    if isinstance(texts, pa.Array):
        return pc.run_end_decode(texts)
    chunks = [pc.run_end_decode(chunk) for chunk in texts.chunks]
    return pa.chunked_array(chunks, texts.type.value_type)


def _large_strings(chunk: pa.Array) -> pa.Array:
    if is_encoded(chunk.type):
        chunk = decoded(chunk)
    if pa.types.is_dictionary(chunk.type):
        if pa.types.is_string_view(chunk.type.value_type):  # of Polars; Arrow takes no views
            chunk = chunk.cast(pa.dictionary(chunk.type.index_type, pa.large_string()))
        chunk = chunk.dictionary_decode()
    if pa.types.is_null(chunk.type):
        return pa.array([""] * len(chunk), pa.large_string())
    if len(chunk) == 0:
        return pa.array([], pa.large_string())
    if pa.types.is_struct(chunk.type):
        names = ", ".join(field.name for field in chunk.type)
        raise UsageError(f"texts is a table with the columns {names}: pass one, as table['text']")
    if not any(is_text(chunk.type) for is_text in _TEXT_TYPES):
        raise UsageError(f"texts have the Arrow type {chunk.type}: pass strings")
    return pc.fill_null(chunk.cast(pa.large_string()), "")


def _buffers(chunk: pa.Array) -> tuple[Any, Any]:
    _, offsets, data = chunk.buffers()
    if len(chunk) == 0 or offsets is None:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    everything = np.frombuffer(offsets, np.int64)
    text = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return frozen(text), frozen(everything[chunk.offset : chunk.offset + len(chunk) + 1])
