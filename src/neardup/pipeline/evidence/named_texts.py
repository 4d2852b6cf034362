"""Texts by name: a file, or a record by its address in result files."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import InputFormat, ReadOptions, format_of_path, open_sources
from neardup.errors import DataError, FileError, UsageError
from neardup.runtime.storage.durable_files import name_as_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from neardup.documents import Batch, Source

__all__ = ["fields_of", "read_document", "texts_of"]

_ADDRESS: Final = re.compile(r"(.+):(\d{1,18})", re.DOTALL)


def read_document(
    name: str, read: ReadOptions | None = None, input_format: InputFormat | None = None
) -> str:
    """Read one text: a file, also compressed; a record, as in `news.jsonl:17`; "-" the input.

    Args:
        name: The file or address.
        read: The fields of the text, for records, and the part of HTML that is read.
        input_format: The format of files whose names do not decide it.

    Raises:
        UsageError: For a file of records without the number of one.
        FileError: If it cannot be read.
        DataError: If it is not a text, or the file has no such record.
    """
    read, input_format = read or ReadOptions(), input_format or InputFormat()
    if name == "-":
        return _decoded("the standard input", sys.stdin.buffer.read())
    path = Path(name)
    address = _ADDRESS.fullmatch(name)
    if address and not path.exists():
        address_text = name_as_text(name)
        texts = texts_of([address_text], [address[1]], read, format_name=input_format)
        if address_text not in texts:
            _check_record(address_text, address[1], read, input_format)
            raise DataError(
                f"{address[1]}: no document at {address[2]}; result files name the line of JSON and"
                " CSV, and the row of Parquet and Arrow"
            )
        return texts[address_text]
    if path.is_file() and format_of_path(name) is not None:
        raise UsageError(
            f"{name} holds records: name one, such as {name}:1; to take the whole file as one text,"
            f" pass - and < {name}"
        )
    if path.exists() and not path.is_file() and not path.is_dir():
        return _decoded(name, _bytes_of(path))
    for source in open_sources([name], format=replace(input_format, name="text", records=None)):
        for batch in source.batches(ReadOptions(extract=read.extract)):
            return str(batch.texts[0].as_py())
    raise FileError(f"cannot read {name}: it is a folder; name a file in it")


def texts_of(
    names: Collection[str],
    paths: Sequence[str],
    read: ReadOptions,
    tmp: str | None = None,
    format_name: InputFormat | str | None = None,
) -> dict[str, str]:
    """Find documents by their ids or addresses, reading every file at most once.

    Args:
        names: Ids if `read` names a field of ids, or if files are documents; otherwise `file:row`,
            in which the file may be called by another path than in `paths`: it is the input whose
            path ends alike, if there is only one.
        paths: The inputs with them.
        read: The fields of text and id; bad records are passed over.
        tmp: Folder for temporary files.
        format_name: Of all inputs, if their extensions do not decide.

    Returns:
        The text of each name that occurs; for a repeated name, the first.

    Raises:
        UsageError, FileError, DataError: As when a run reads them.
    """
    texts: dict[str, str] = {}
    ids = pa.array(sorted(set(names)), pa.large_string())
    sources = open_sources(paths, tmp, format_name)
    rows = _rows_by_input(names, [source.name for source in sources])
    try:
        for source in sources:
            for batch in source.batches(replace(read, skip_errors=True)):
                for name, at in _hits(source, batch, ids, rows):
                    texts.setdefault(name, str(batch.texts[at].as_py()))
                if len(texts) == len(ids):
                    return texts
    finally:
        for source in sources:
            source.close()
    return texts


def fields_of(
    names: Collection[str],
    fields: Sequence[str],
    paths: Sequence[str],
    read: ReadOptions,
    format_name: InputFormat | str | None = None,
) -> dict[str, tuple[str | None, ...]]:
    """Find fields of documents by their ids or addresses, as texts.

    Args:
        names: As for `texts_of`.
        fields: Names; "author.name" is a nested field.
        paths: The inputs with the documents.
        read: Names the field of the id.
        format_name: Of all inputs, if their extensions do not decide.

    Returns:
        The values of each name that occurs, None if it has none.

    Raises:
        UsageError: If no record has one of the fields, or the inputs are not records.
        FileError, DataError: If an input cannot be read.
    """
    fields_by_name: dict[str, tuple[str | None, ...]] = {}
    missing, present = set(fields), dict[str, None]()
    sources, ids = open_sources(paths, None, format_name), set(names)
    rows = _rows_by_input(names, [source.name for source in sources])
    try:
        for source in sources:
            numbers = rows.get(source.name, {})
            for number, row in source.rows():
                if missing:
                    missing -= {name for name in missing if _value(row, name) is not _ABSENT}
                    present |= dict.fromkeys(row)
                identity = numbers.get(number) if read.id is None else str(_value(row, read.id))
                if identity in ids and identity not in fields_by_name:
                    values = tuple(_as_text(_value(row, name)) for name in fields)
                    fields_by_name[str(identity)] = values
                if len(fields_by_name) == len(ids) and not missing:
                    return fields_by_name
    finally:
        for source in sources:
            source.close()
    if missing and present:
        name = next(name for name in fields if name in missing)
        raise UsageError(f"no record has the field {name!r}: they have {', '.join(present)[:400]}")
    return fields_by_name


_ABSENT: Final = object()


def _value(row: Any, name: str) -> Any:
    """The value of a field, or of a field in a field; _ABSENT if there is none."""
    if name in row:
        return row[name]
    for part in name.split("."):
        if not isinstance(row, dict) or part not in row:
            return _ABSENT
        row = row[part]
    return row


def _as_text(value: Any) -> str | None:
    if value is None or value is _ABSENT:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _check_record(name: str, path: str, read: ReadOptions, input_format: InputFormat) -> None:
    """Raise the error of an addressed record, if it is the first bad one of its file."""
    for source in open_sources([path], format=input_format):
        try:
            for _ in source.batches(read):
                pass
        except DataError as error:
            if str(error).startswith(f"{name}:"):
                raise
        finally:
            source.close()


def _rows_by_input(names: Collection[str], inputs: Sequence[str]) -> dict[str, dict[int, str]]:
    """The addresses among names: for each input, the name of each requested row."""
    rows: dict[str, dict[int, str]] = {}
    for name in names:
        address = _ADDRESS.fullmatch(name)
        if address:
            rows.setdefault(address[1], {})[int(address[2])] = name
    others = _called_otherwise(rows.keys() - set(inputs), set(inputs) - rows.keys())
    return {others.get(file, file): numbers for file, numbers in rows.items()}


def _called_otherwise(files: Collection[str], inputs: Collection[str]) -> dict[str, str]:
    """The input that each file is, if one path ends alike in more parts than all others."""
    by_name: dict[str, list[str]] = {}
    for each in inputs:
        by_name.setdefault(Path(each).name, []).append(each)
    same: dict[str, list[str]] = {}
    for file in files:
        common = {x: _common_end(file, x) for x in by_name.get(Path(file).name, ())}
        most = [x for x, parts in common.items() if parts == max(common.values())]
        if len(most) == 1:
            same.setdefault(most[0], []).append(file)
    return {own[0]: each for each, own in same.items() if len(own) == 1}


def _common_end(one: str, other: str) -> int:
    """How many parts two paths have in common, from the last one on."""
    pairs = zip(reversed(Path(one).parts), reversed(Path(other).parts), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _hits(
    source: Source, batch: Batch, ids: pa.Array, rows: dict[str, dict[int, str]]
) -> Iterator[tuple[str, int]]:
    """The requested documents of a batch: name and place."""
    if batch.ids is not None:
        for at in np.flatnonzero(pc.is_in(batch.ids, ids).to_numpy(zero_copy_only=False)):
            yield str(batch.ids[int(at)].as_py()), int(at)
        return
    numbers = rows.get(source.name, {})
    for at in np.flatnonzero(np.isin(batch.rows, np.fromiter(numbers, np.int64))):
        yield numbers[int(batch.rows[at])], int(at)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None


def _decoded(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: not UTF-8 at byte {error.start + 1}; convert it first") from None
