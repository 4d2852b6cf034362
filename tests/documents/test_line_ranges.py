"""One file read by ranges gives what it gives from front to back, for any number of threads."""

from __future__ import annotations

import codecs
import json
import mmap
import os
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from neardup.documents import ReadOptions, open_sources
from neardup.documents.files import line_ranges
from neardup.documents.files.output_set import OutputSet
from neardup.documents.formats import jsonl
from neardup.documents.formats.jsonl import JsonlSource
from neardup.documents.rejects import Rejects
from neardup.errors import DataError, FileError
from suite import examples

if TYPE_CHECKING:
    from pathlib import Path

RANGE = 64
CONTENTS = st.lists(st.integers(0, 40), max_size=30)
needs_placed_reads = pytest.mark.skipif(not hasattr(os, "preadv"), reason="not here")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ranges")


@needs_placed_reads
@settings(max_examples=examples(300, 60), deadline=None)
@given(CONTENTS, st.booleans(), st.integers(1, 50), st.sampled_from([1, 7, 1 << 15]))
def test_each_line_begins_in_one_range(
    folder: Path, sizes: list[int], ends: bool, width: int, further: int
) -> None:
    content = b"".join(b"x" * size + b"\n" for size in sizes)
    content = content if ends else content.rstrip(b"\n")
    path = folder / "lines"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch, path.open("rb") as file:
        patch.setattr(line_ranges, "_FURTHER_BYTES", further)
        at = 0
        for begin in range(0, len(content), width):
            buffer, end = mmap.mmap(-1, width + 80), min(begin + width, len(content))
            place = line_ranges.read_lines(file.fileno(), begin, end, buffer)
            assert place is not None
            lines = buffer[place[0] : place[1]]
            assert content.startswith(lines, at)
            at += len(lines)
            assert at >= end  # no line that begins in the range is left
            assert at == len(content) or content[at - 1 : at] == b"\n" or not lines
        assert at == len(content)


@needs_placed_reads
def test_a_line_that_does_not_fit_is_left_to_others(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n" + b"x" * 200 + b"\nb\n")
    buffer = mmap.mmap(-1, 100)
    with path.open("rb") as file:
        assert line_ranges.read_lines(file.fileno(), 0, 50, buffer) is None
        assert line_ranges.read_lines(file.fileno(), 100, 150, buffer) == (0, 0)
        first, last = line_ranges.read_lines(file.fileno(), 200, 204, buffer) or (0, 0)
        assert buffer[first:last] == b"b\n"


def read(path: Path, workers: int, record_bytes: int) -> dict[str, Any]:
    """Everything that reading and writing again gives, or the error."""
    options = ReadOptions(
        id="id", skip_errors=True, batch_bytes=RANGE, record_bytes=record_bytes, workers=workers
    )
    (source,) = open_sources([str(path)])
    rejected, kept = path.parent / "rejected.jsonl", path.parent / "kept.jsonl"
    columns: dict[str, Any] = {"texts": [], "ids": [], "rows": [], "batches": []}
    with Rejects(str(rejected)) as rejects:
        for batch in source.batches(options, rejects):
            columns["texts"] += batch.texts.to_pylist()
            columns["ids"] += batch.ids.to_pylist()  # type: ignore[union-attr]
            columns["rows"] += batch.rows.tolist()
            columns["batches"].append((len(batch.texts), batch.nbytes))
    keep = np.arange(len(columns["rows"])) % 3 != 1
    with OutputSet() as outputs:
        source.write_kept(keep, outputs.create(str(kept)))
        outputs.commit()
    columns["rejected"] = rejected.read_bytes() if rejected.exists() else b""
    return columns | {"kept": kept.read_bytes(), "read": source.bytes_read}


KINDS = st.sampled_from(["good", "good", "good", "blank", "bad", "long", "escaped", "null"])


@needs_placed_reads
@settings(max_examples=examples(150, 30), deadline=None)
@given(
    kinds=st.lists(st.tuples(KINDS, st.integers(0, 60)), max_size=40),
    ends=st.booleans(),
    mark=st.sampled_from([b"", codecs.BOM_UTF8]),
    record_bytes=st.sampled_from([RANGE, 200, 1 << 20]),
    prefix=st.sampled_from([1, 100]),
    parsed=st.sampled_from([0, 1 << 40]),
)
@example([("good", 9)] * 9 + [("long", 9)] * 2 + [("good", 9)] * 9, True, b"", 200, 100, 1 << 40)
def test_ranges_give_what_front_to_back_gives(
    folder: Path,
    kinds: list[tuple[str, int]],
    ends: bool,
    mark: bytes,
    record_bytes: int,
    prefix: int,
    parsed: int,
) -> None:
    lines = [line(number, *each) for number, each in enumerate(kinds)]
    if lines and not ends:
        lines[-1] = lines[-1].rstrip(b"\n")
    path = folder / "in.jsonl"
    path.write_bytes(mark + b"".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "_RANGE_BYTES", RANGE)
        patch.setattr(jsonl, "PART_BYTES", 30)
        patch.setattr(jsonl, "_KERNEL_PAYS", prefix)
        patch.setattr(JsonlSource, "plainly_parsed", parsed)
        one, three = (read(path, workers, record_bytes) for workers in (1, 3))
        assert one == three
        patch.setattr(jsonl, "HAS_PLACED_IO", False)
        plain = read(path, 1, record_bytes)
    del one["batches"], plain["batches"]
    assert one == plain


def line(number: int, kind: str, size: int) -> bytes:
    record: dict[str, Any] = {"id": number, "text": "wé"[: 1 + size % 2] * size}
    if kind == "blank":
        return b" " * (size % 3) + b"\n"
    if kind == "bad":
        return b'{"id": 1, "text": ' + b"x" * size + b"\n"
    if kind == "long":
        record["text"] = "w" * (RANGE + 5 * size)
    if kind == "escaped":
        record["text"] = '"\n\\' * (size // 9)
    if kind == "null":
        record["text"] = None
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


@needs_placed_reads
@pytest.mark.parametrize("workers", [1, 3])
def test_a_bad_line_of_a_range_is_named_and_so_is_a_file_that_changes(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "_RANGE_BYTES", RANGE)
    monkeypatch.setattr(jsonl, "_KERNEL_PAYS", 50)
    path, other = tmp_path / "in.jsonl", tmp_path / "other.jsonl"
    good = [line(number, "good", 20) for number in range(40)]
    path.write_bytes(b"".join([*good, b"{\n", *good]))
    options = ReadOptions(batch_bytes=RANGE, record_bytes=1000, workers=workers)
    (source,) = open_sources([str(path)])
    with pytest.raises(DataError, match=r"in\.jsonl:41: not valid JSON"):
        list(source.batches(options))
    path.write_bytes(b"".join(good))
    (source,) = open_sources([str(path)])
    batches = source.batches(options)
    next(batches)
    other.write_bytes(b"".join(good[:20]))
    shutil.move(other, path)
    with pytest.raises(FileError, match="changed while it was being read"):
        list(batches)
