"""Inputs that are too many, too large, endless or loops: a stated behaviour each."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import os
import re
import resource
import shutil
import threading
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import neardup as nd
from damage import RIGHT, address_space, in_victim
from neardup.documents import OutputSet, ReadOptions, open_sources, write_table
from neardup.documents.files.compression import _Decoded
from neardup.documents.formats.jsonl import RecordParser
from suite import LONG, needs_jit

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.documents import Source

GIB = 1 << 30


def test_a_decompression_bomb_of_records_is_read_piece_by_piece(tmp_path: Path) -> None:
    path, size = tmp_path / "bomb.jsonl.gz", (1 << 22 if LONG else 1 << 17)
    line = b'{"text": "' + b"word " * 20 + b'"}\n'
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(size // 4096):
            file.write(line * 4096)
    (tmp_path / "warm.jsonl").write_bytes(line * 2)  # so that every kernel is loaded before
    nd.dedup([str(tmp_path / "warm.jsonl")], str(tmp_path / "out.jsonl"), memory="64M")

    def run() -> int:
        limit = 2 * GIB + address_space()
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        result = nd.dedup([str(path)], str(tmp_path / "out.jsonl"), memory="64M")
        return RIGHT if result.summary.kept == 1 else 2

    assert in_victim(run, tmp_path / "log") == RIGHT, (tmp_path / "log").read_text()


def packed(path: Path, head: bytes, piece: bytes, count: int, tail: bytes = b"") -> None:
    """Append a member of gzip: a head, so many pieces, and a tail."""
    packer = zlib.compressobj(9, wbits=31)
    with path.open("ab") as file:
        for part in itertools.chain([head], itertools.repeat(piece, count), [tail]):
            file.write(packer.compress(part))
        file.write(packer.flush())


def warc_head(content: bytes, more: int = 0) -> bytes:
    """A record of WARC but for its end: its block begins with this, and so many bytes follow."""
    return (
        b"WARC/1.1\r\nWARC-Type: response\r\nContent-Type: application/http; msgtype=response\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(content) + more, content)
    )


BOMB = GIB if LONG else 320 << 20
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
PIECE = b"a " * (1 << 19)
WARC_BOMBS: dict[str, tuple[tuple[bytes, bytes, bytes], tuple[int, int] | str]] = {
    "a long block": ((warc_head(PAGE + b"\r\n", BOMB), PIECE, b"\r\n\r\n"), (1, 1)),
    "no record": ((b"", bytes(1 << 20), b""), "a header is too long"),
    "one field": ((b"WARC/1.1\r\n", PIECE, b""), "a header is too long"),
    "lines before": ((b"", b"\r\n" * (1 << 19), b""), (1, 1)),
    "lines behind": ((warc_head(PAGE + b"\r\n<p>tea"), b"\r\n" * (1 << 19), b""), (2, 0)),
}
"""A member of BOMB bytes, and how many records are kept and rejected, or what the error says."""


@pytest.mark.parametrize("name", [*WARC_BOMBS, "a body that is packed again"])
def test_a_bomb_in_a_web_archive_takes_bounded_memory_and_time(name: str, tmp_path: Path) -> None:
    pytest.importorskip("fastwarc")
    path, out = tmp_path / "bomb.warc.gz", tmp_path / "out.warc.gz"
    packed(path, warc_head(PAGE + b"\r\n<p>green tea"), b"", 0, b"\r\n\r\n")
    nd.dedup(path, out)  # so that every kernel is loaded before
    if name in WARC_BOMBS:
        (head, piece, tail), counts = WARC_BOMBS[name]
        packed(path, head, piece, BOMB >> 20, tail)
    else:
        packed(tmp_path / "body", b"<p>", PIECE, BOMB >> 20)
        body = PAGE + b"Content-Encoding: gzip\r\n\r\n" + (tmp_path / "body").read_bytes()
        packed(path, warc_head(body), b"", 0, b"\r\n\r\n")
        counts = (1, 1)

    def run() -> int:
        limit = BOMB - (64 << 20) + address_space()
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        begun = time.process_time()
        try:
            summary = nd.dedup(path, out, on_error="skip", memory="64M").summary
        except nd.DataError as error:
            return RIGHT if isinstance(counts, str) and counts in str(error) else 2
        is_fast = time.process_time() - begun < 30
        return RIGHT if is_fast and (summary.kept, summary.rejected) == counts else 3

    assert in_victim(run, tmp_path / "log") == RIGHT, (tmp_path / "log").read_text()


def test_a_record_for_which_memory_is_short_is_not_called_bad(tmp_path: Path) -> None:
    record = json.dumps({"text": "w " * (20 << 20)}).encode()

    def parse() -> int:
        limit = (100 << 20) + address_space()
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            RecordParser(ReadOptions(skip_errors=True)).one(record)
        except MemoryError:
            return RIGHT
        return 2

    assert in_victim(parse, tmp_path / "log") == RIGHT, (tmp_path / "log").read_text()


def test_a_long_text_takes_room_for_what_it_is_and_not_for_what_it_could_be(tmp_path: Path) -> None:
    words = "größere Wörter, e\u0301te\u0301 漢字 ﷺ and plain ones "
    expected, text = nd.fingerprint(words * 3), words * 400_000  # with the same set of features
    nd.fingerprints([words])  # so that every kernel is loaded before

    def run() -> int:
        limit = 3 * GIB // 2 + address_space()
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        codes = nd.fingerprint(text), int(nd.fingerprints([text], workers=1)[0, 0])
        return RIGHT if codes == (expected, expected) else 2

    assert in_victim(run, tmp_path / "log") == RIGHT, (tmp_path / "log").read_text()


def test_a_long_line_is_a_record_like_any_other(tmp_path: Path) -> None:
    path, words = tmp_path / "in.jsonl", (60_000_000 if LONG else 200_000)
    record = json.dumps({"text": "w " * words})
    path.write_text(f"{record}\n{record}\n")
    result = nd.dedup([str(path)], str(tmp_path / "out.jsonl"), memory=2 << 30)
    assert result.summary.kept == 1


def spout(path: Path, *begin: bytes) -> threading.Thread:
    """Write to a pipe for ever: first these bytes, the last of them again and again."""

    def feed() -> None:
        with contextlib.suppress(BrokenPipeError), path.open("wb", buffering=0) as pipe:
            pipe.write(b"".join(begin[:-1]))
            while True:
                pipe.write(begin[-1] * (1 << 16))

    feeder = threading.Thread(target=feed)
    feeder.start()
    return feeder


ENDLESS: dict[str, tuple[str, tuple[bytes, ...], str]] = {
    "jsonl": ("jsonl", (b'{"text": "', b"x"), ":1: a record is too long: at most 16.8 MB"),
    "later": ("jsonl", (b'{"text": "a"}\n', b"x"), ":2: a record is too long"),
    "csv": ("csv", (b"x",), ":1: the header row: a record is too long"),
    "row": ("csv", (b"id,text\n1,", b"x"), ":2: a record is too long"),
    "quoted": ("csv", (b'id,text\n1,"', b"xy\n" * 99), ":2: a record is too long"),
    "tsv": ("tsv", (b"text\n", b"x"), ":2: a record is too long"),
    "json": ("json", (b"[", b"x"), ": a JSON array is held in memory"),
}


@needs_jit
@pytest.mark.parametrize("name", ENDLESS)
def test_a_pipe_without_line_ends_is_read_up_to_the_limit(name: str, tmp_path: Path) -> None:
    ending, begin, words = ENDLESS[name]
    pipe, out = tmp_path / "pipe", tmp_path / f"out.{ending}"
    os.mkfifo(pipe)
    feeder = spout(pipe, *begin)
    with pytest.raises(nd.DataError, match=re.escape(words)) as caught:
        nd.dedup([str(pipe)], str(out), format=ending, memory="64M")
    feeder.join()
    assert str(caught.value).isprintable()
    assert not out.exists()


@needs_jit
@pytest.mark.parametrize("ending", ["jsonl", "csv", "json", "tsv"])
def test_a_device_without_end_is_one_line(ending: str, tmp_path: Path) -> None:
    with pytest.raises(nd.DataError, match="/dev/zero:"):
        nd.dedup(["/dev/zero"], f"{tmp_path}/out.{ending}", format=ending, memory="64M")


@needs_jit
@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_packed_zeros_are_unpacked_up_to_the_limit(
    ending: str, codec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"in.{ending}.{'gz' if codec == 'gzip' else 'zst'}"
    with pa.CompressedOutputStream(str(path), codec) as packed:
        for _ in range(48):
            packed.write(bytes(1 << 20))
    unpacked = 0
    readinto = _Decoded.readinto

    def counted(self: _Decoded, buffer: object) -> int:
        nonlocal unpacked
        unpacked += (count := readinto(self, buffer))
        return count

    monkeypatch.setattr(_Decoded, "readinto", counted)
    with pytest.raises(nd.DataError, match="record is too long"):
        nd.dedup(path, f"{tmp_path}/out.{ending}", memory="64M")
    assert unpacked < 20 << 20


def test_many_empty_files_are_documents_without_tokens(tmp_path: Path) -> None:
    count = 1_000_000 if LONG else 2000
    folder = tmp_path / "in"
    for i in range(count):
        if i % 1000 == 0:
            (folder / f"{i // 1000}").mkdir(parents=True)
        (folder / f"{i // 1000}" / f"{i}.txt").touch()
    summary = nd.dedup(folder, f"{tmp_path}/out/").summary
    assert (summary.read, summary.kept, summary.empty) == (count, count, count)


def test_loops_of_folders_and_links_to_themselves_end(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "up").symlink_to(folder)
    (folder / "a" / "self.txt").symlink_to(folder / "a" / "self.txt")
    (folder / "a" / "one.txt").write_text("one two three")
    result = nd.dedup(folder, f"{tmp_path}/out/")
    assert result.summary.read == 1
    assert [x.name for x in (tmp_path / "out").rglob("*")] == ["a", "one.txt"]


def test_a_fifo_in_a_folder_is_left_out_and_a_named_one_is_a_stream(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "a.jsonl").write_text('{"text": "one two"}\n')
    assert nd.dedup(folder, f"{tmp_path}/out/").summary.read == 1

    def feed() -> None:
        with (folder / "pipe.jsonl").open("w") as pipe:
            pipe.write('{"text": "one"}\n{"text": "one"}\n')

    feeder = threading.Thread(target=feed)
    feeder.start()
    result = nd.dedup([str(folder / "pipe.jsonl")], str(tmp_path / "piped.jsonl"))
    feeder.join()
    assert result.summary.kept == 1


def until_it_fails(folder: Path, out: Path) -> None:
    """Run again and again: on a busy machine a file may not grow while it is read."""
    for _ in range(100):
        nd.dedup(folder, f"{out}/")
        shutil.rmtree(out)


@pytest.mark.parametrize("ending", ["jsonl", "txt"])
def test_a_file_that_grows_while_it_is_read_is_an_error(ending: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    path = folder / f"log.{ending}"
    path.write_text('{"text": "one two three"}\n' * 2000)
    stop = threading.Event()

    def grow() -> None:
        while not stop.is_set():
            with path.open("a") as file:
                file.write('{"text": "more"}\n')
            time.sleep(0.0005)

    grower = threading.Thread(target=grow)
    grower.start()
    try:
        with pytest.raises(nd.FileError, match="changed while it was being read"):
            until_it_fails(folder, tmp_path / "out")
    finally:
        stop.set()
        grower.join()
    assert not (tmp_path / "out").exists()


CHANGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "emptied": lambda path: path.write_bytes(b""),
    "replaced": lambda path: Path(shutil.copy(path, path.with_name("new"))).replace(path),
    "removed": lambda path: path.unlink(),
}  # fmt: skip


def write_all(source: Source, count: int, kept: Path) -> None:
    with OutputSet() as outputs:
        source.write_kept(np.ones(count, np.bool_), outputs.create(str(kept)))
        outputs.commit()


@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("ending", ["jsonl", "csv", "json", "parquet", "arrow", "jsonl.gz"])
def test_a_file_that_is_changed_between_reading_and_writing_is_an_error(
    ending: str, change: str, tmp_path: Path
) -> None:
    path, kept = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    rows = [{"text": f"one two {i}"} for i in range(500)]
    if ending == "json":
        path.write_text(json.dumps(rows))
    else:
        with OutputSet() as outputs:
            table = pa.Table.from_pylist(rows)
            write_table(outputs, str(path), table.schema, table.to_batches())
            outputs.commit()
    (source,) = open_sources([str(path)])
    count = sum(len(batch.texts) for batch in source.batches(ReadOptions()))
    time.sleep(0.01)
    CHANGES[change](path)
    with pytest.raises((nd.FileError, nd.DataError), match=r"in\.") as caught:
        write_all(source, count, kept)
    assert "\n" not in str(caught.value)
    assert not kept.exists()
