"""Files that name pairs of documents: duplicates, matches, labels, answers."""

from __future__ import annotations

import codecs
import csv
import io
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
import pyarrow as pa

from neardup.documents import format_of_path
from neardup.errors import DataError, FileError
from neardup.runtime.arrays import check_arrow
from neardup.runtime.storage.parquet import open_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["PairRow", "is_cut", "pair_rows", "similarity_of", "table_rows"]

NAMES: Final = (
    ("kept", "dropped"),
    ("first", "second"),
    ("id1", "id2"),
    ("left_id", "right_id"),
    ("left", "right"),
    ("a", "b"),
)
"""Columns that may name the two documents, the earlier one first."""

_SIMILARITIES: Final = ("similarity", "jaccard", "score")
_LABELS: Final = ("label", "answer", "duplicate", "match")
_YES: Final = frozenset({"1", "1.0", "true", "yes", "y", "t", "duplicate", "match"})
_NO: Final = frozenset({"0", "0.0", "false", "no", "n", "f", "distinct", "different"})


@dataclass(frozen=True, slots=True)
class PairRow:
    """One row.

    Attributes:
        first: Id or address of the one document, the kept one of duplicates.
        second: Of the other.
        similarity: Theirs, if the row says so.
        label: Whether they are duplicates; None: the row does not say, or its author is unsure.
        answered: Whether there is a column of labels.
    """

    first: str
    second: str
    similarity: float | None = None
    label: bool | None = None
    answered: bool = False


def pair_rows(path: str) -> Iterator[PairRow]:
    """Read a file of pairs: JSON lines, CSV, TSV, also compressed, or Parquet.

    Raises:
        DataError: If it has no columns that name two documents, or a row is broken.
        FileError: If it cannot be read.
    """
    named: tuple[str, str] | None = None
    for number, row in enumerate(table_rows(path), 1):
        if named is None:
            named = next((pair for pair in NAMES if pair[0] in row and pair[1] in row), None)
        if named is None:
            wanted = "; ".join(f"{first}, {second}" for first, second in NAMES)
            raise DataError(
                f"{path} names no pairs: it has {', '.join(map(str, row))[:200]}; give it two of"
                f" the columns {wanted}"
            )
        first, second = row.get(named[0]), row.get(named[1])
        if _is_blank(first) or _is_blank(second):
            raise DataError(f"{path}, row {number}: {named[0]} or {named[1]} is missing")
        label = next((row[name] for name in _LABELS if name in row), None)
        answered = any(name in row for name in _LABELS)
        found = similarity_of(row, path, number)
        yield PairRow(str(first), str(second), found, _label(label, path, number), answered)


def table_rows(path: str, head: bytes | None = None) -> Iterator[Mapping[str, Any]]:
    """The rows of a table file, as they come; values of CSV are texts.

    Args:
        path: The file; JSON lines where its name does not tell.
        head: How each line begins that neardup appends to it. A last line that is such a one cut
            short was never acknowledged, and is passed over.

    Raises:
        DataError, FileError: As `pair_rows`.
    """
    kind = format_of_path(path) or "jsonl"
    try:
        if kind == "parquet":
            for batch in open_parquet(path).iter_batches():
                check_arrow(batch)
                yield from batch.to_pylist()
            return
        with _opened(path) as file:
            if kind in {"csv", "tsv"}:
                text = io.TextIOWrapper(file, "utf-8-sig", newline="")
                yield from csv.DictReader(text, delimiter="," if kind == "csv" else "\t")
                return
            for number, line in enumerate(file, 1):
                whole = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if whole.strip() and not (head and is_cut(whole, head)):
                    yield _record(whole, path, number)
    except OSError as error:
        if error.errno is None:  # of a decoder
            raise DataError(f"{path} is no table that can be read: {error}") from None
        raise FileError(f"cannot read {path}: {reason(error)}") from None
    except UnicodeEncodeError:
        raise FileError(f"cannot read {path}: its name is not UTF-8; rename it") from None
    except (UnicodeDecodeError, csv.Error, pa.ArrowInvalid) as error:
        raise DataError(f"{path} is no table that can be read: {error}") from None


def reason(error: OSError) -> str:
    """Why a file cannot be read, in the words of the system; Arrow's repeat the path."""
    return os.strerror(error.errno) if error.errno else str(error)


def is_cut(line: bytes, head: bytes) -> bool:
    """Whether a line is one that begins by `head`, of which only a part was written.

    Example:
        >>> [is_cut(line, b'{"first":') for line in (b'{"fi', b'{"first":1}', b"hello")]
        [True, False, False]
    """
    if line.endswith(b"\n") or not (line.startswith(head) or head.startswith(line)):
        return False
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return True
    return False


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    packed = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}.get(Path(path).suffix)
    with pa.input_stream(path, compression=packed) as stream:
        yield io.BufferedReader(stream)


def _record(line: bytes, path: str, number: int) -> Mapping[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DataError(f"{path}, line {number}: no JSON: {error}") from None
    if not isinstance(row, dict):
        raise DataError(f"{path}, line {number}: {str(row)[:60]!r} is no record with fields")
    return row


def _is_blank(value: Any) -> bool:
    return value is None or value == ""


def similarity_of(row: Mapping[str, Any], path: str, number: int) -> float | None:
    """What a row says under one of the names of a similarity.

    Raises:
        DataError: If it is no number from 0 to 1.
    """
    told = next((row[name] for name in _SIMILARITIES if not _is_blank(row.get(name))), None)
    if told is None:
        return None
    try:
        found = float(told)
    except (TypeError, ValueError, OverflowError):
        found = -1.0
    if 0 <= found <= 1:
        return found
    raise DataError(
        f"{path}, row {number}: the similarity is {told!r:.80}: use a number from 0 to 1"
    )


def _label(told: Any, path: str, number: int) -> bool | None:
    if _is_blank(told) or str(told).casefold() in {"unsure", "unknown"}:
        return None
    text = str(told).casefold()
    if text in _YES or text in _NO:
        return text in _YES
    raise DataError(
        f"{path}, row {number}: the label is {told!r:.80}: use 1 or 0, yes or no, or unsure"
    )
