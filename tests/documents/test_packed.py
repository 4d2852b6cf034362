"""Archives are refused by their first bytes, and .zst files carry checksums of their content."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
import subprocess
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import example, given
from hypothesis import strategies as st

import neardup as nd
from neardup.documents import ReadOptions, open_sources
from neardup.documents.files import compression
from neardup.documents.files.compression import UNCHECKED, encoder, lacks_checksum
from neardup.documents.files.foreign import kind_of_bytes
from suite import JIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LINES = b'{"text": "one two three four"}\n{"text": "quite another text"}\n'


def tar(kind: int = tarfile.PAX_FORMAT) -> bytes:
    """An archive of three texts."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=kind) as packed:
        for i in range(3):
            info = tarfile.TarInfo(f"texts/{i}.txt")
            info.size = 12
            packed.addfile(info, io.BytesIO(b"a text of " + bytes([48 + i, 10])))
    return buffer.getvalue()


def old_tar() -> bytes:
    """As tar of 1979 wrote it: without the word ustar, with another sum."""
    data = bytearray(tar(tarfile.USTAR_FORMAT))
    data[257:265] = bytes(8)
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


def zipped(name: str = "a.txt") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr(name, "a text, stored as it is")
    return buffer.getvalue()


PACKED: dict[str, tuple[Callable[[], bytes], str]] = {
    "pax.bin": (tar, "a tar archive"),
    "gnu.bin": (lambda: tar(tarfile.GNU_FORMAT), "a tar archive"),
    "old.bin": (old_tar, "a tar archive"),
    "one.gz": (lambda: gzip.compress(tar()), "a tar archive"),
    "one.zst": (lambda: pa.Codec("zstd").compress(tar(), asbytes=True), "a tar archive"),
    "tgz.bin": (lambda: gzip.compress(tar()), "gzip data"),
    "bz2.bin": (lambda: bz2.compress(tar()), "bzip2 data"),
    "xz.bin": (lambda: lzma.compress(tar()), "xz data"),
    "zip.bin": (zipped, r"a ZIP archive \(\.zip, \.docx, \.epub\)"),
    "twice.gz.gz": (lambda: gzip.compress(gzip.compress(LINES)), "gzip data"),
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("encoding", [None, "latin-1", "utf-16-le"])
def test_an_archive_of_another_name_is_no_document(
    name: str, encoding: str | None, tmp_path: Path
) -> None:
    make, kind = PACKED[name]
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / name
    path.write_bytes(make())
    out = f"{tmp_path}/out/"
    refusal = f"{name}:1: {kind}, not a text; unpack it first, and name the files in it"
    with pytest.raises(nd.DataError, match=refusal):
        nd.dedup(path, out, format="text", encoding=encoding)
    (tmp_path / "in" / "a.txt").write_text("a text of one", encoding=encoding)
    with pytest.raises(nd.DataError, match=refusal):
        nd.dedup(tmp_path / "in", out, encoding=encoding)
    summary = nd.dedup(tmp_path / "in", out, encoding=encoding, on_error="skip").summary
    assert (summary.kept, summary.rejected) == (1, 1)
    refusal = f"{name}: it is {kind}, which cannot be read: unpack it first"
    with pytest.raises(nd.DataError, match=refusal):
        nd.dedup(path, out)
    for form in ("jsonl", "json", "csv", "tsv"):
        with pytest.raises(nd.DataError, match=refusal):
            nd.dedup(path, out, format=form, encoding=encoding, on_error="skip")


@pytest.mark.parametrize(
    "text", ["PK is a kind of sound", "BZh", "7z", "Rar!", "x" * 257 + "ustar"]
)
def test_a_text_about_archives_is_a_text(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text)
    assert nd.dedup(tmp_path / "a.txt", f"{tmp_path}/out/").summary.kept == 1


@given(st.binary(max_size=1100))
@example(bytes(1024))
@example(b"a\0" * 300)
def test_bytes_are_an_archive_only_if_a_header_says_so(data: bytes) -> None:
    begins = (b"PK", b"7z", b"Rar!", b"\xfd7z", b"BZh", b"\x1f\x8b", b"\x28\xb5")
    others = (b"%PDF-", b"AT&T", b"{\\rtf", b"\x89PNG", b"\xff\xd8", b"GIF8", b"II", b"MM", b"\xd0")
    assert kind_of_bytes(data) is None or data.startswith((*begins, *others, b"SQLite format 3\0"))


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("paper.pdf", b"%PDF-1.7\n", "a PDF file, .*pdftotext"),
        ("paper", b"%PDF-1.7\n", "a PDF file, .*pdftotext"),
        ("scan", b"\xff\xd8\xff\xe0", "an image, .*tesseract"),
        ("letter.docx", zipped(), "a Word document, .*pandoc"),
        (
            "letter.doc",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
            "a document of old Office programs, .*soffice",
        ),
        ("note.eml", b"Subject: tea\n\nhello", "a message, .*mailbox"),
        ("a.sqlite", b"SQLite format 3\0", "an SQLite database, .*sqlite3"),
    ],
)
def test_what_other_programs_read_names_the_program(
    name: str, data: bytes, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "in" / name
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(nd.DataError, match=f"{name}: it is {says}"):
        nd.dedup(path, f"{tmp_path}/out/")
    if not name.endswith(".eml"):  # in a folder it is a text, headers and all
        with pytest.raises(nd.DataError, match=f"{name}:1: {says.replace(', ', ', not a text; ')}"):
            nd.dedup(path.parent, f"{tmp_path}/out/")


class Sink(io.BytesIO):
    """A file that is not closed with its encoder."""


def zst(parts: list[bytes]) -> bytes:
    sink = Sink()
    packing = encoder(sink, "zstd")
    for part in parts:
        packing.write(part)
    packing.close()
    return sink.getvalue()


def unpacked(data: bytes) -> bytes:
    whole: bytes = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
    return whole


@given(st.lists(st.binary(max_size=300), max_size=5))
@example([])
@example([b"x" * 31, b"y" * 32, b"z" * 33])
def test_a_frame_carries_the_checksum_of_its_content(parts: list[bytes]) -> None:
    data, content = zst(parts), b"".join(parts)
    assert unpacked(data) == content
    assert not lacks_checksum(data)
    assert int.from_bytes(data[-4:], "little") == xxhash.xxh64_intdigest(content) & 0xFFFFFFFF


def test_as_many_threads_compress_as_a_run_has_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def noting(workers: int, name: str) -> ThreadPoolExecutor:
        threads.append(workers)
        return ThreadPoolExecutor(workers, name)

    monkeypatch.setattr(compression, "ThreadPoolExecutor", noting)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(b'{"text": "%d%s"}\n' % (i, b" tea" * 99999) for i in range(8)))
    written = []
    for workers in (1, 3):
        nd.dedup(path, tmp_path / "out.jsonl.gz", workers=workers)
        written.append((tmp_path / "out.jsonl.gz").read_bytes())
    assert threads == [1, 3]
    assert written[0] == written[1]


@pytest.mark.skipif(shutil.which("zstd") is None, reason="the program zstd is not installed")
def test_the_program_zstd_finds_the_frames_whole(tmp_path: Path) -> None:
    size = (3 << 20) + 5 if JIT else 5000
    content = np.random.default_rng(1).integers(97, 105, size, np.uint8).tobytes()
    (tmp_path / "a.zst").write_bytes(zst([content[:7], content[7:]]))
    tested = subprocess.run(["zstd", "-tv", "a.zst"], cwd=tmp_path, capture_output=True, check=True)
    assert b"XXH64" in subprocess.run(
        ["zstd", "-lv", "a.zst"], cwd=tmp_path, capture_output=True, check=True
    ).stdout, tested  # fmt: skip
    process = subprocess.run(
        ["zstd", "-dc", "a.zst"], cwd=tmp_path, capture_output=True, check=True
    )
    assert process.stdout == content


def texts_of(path: Path) -> list[str]:
    (source,) = open_sources([str(path)])
    batches = source.batches(ReadOptions(skip_errors=True))
    return [text for batch in batches for text in batch.texts.to_pylist()]


def test_no_flipped_bit_of_a_written_file_is_read_as_other_records(tmp_path: Path) -> None:
    expected = [f"record {i} of some words" for i in range(40)]
    lines = b"".join(b'{"text": "%s"}\n' % text.encode() for text in expected)
    path, whole = tmp_path / "a.jsonl.zst", zst([lines])
    path.write_bytes(whole)
    assert texts_of(path) == expected
    for at in range(0, len(whole), 1 if JIT else 7):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        try:
            texts = texts_of(path)
        except nd.DataError:
            continue
        assert texts == expected, at


def run_notes(path: Any, out: Path, **options: Any) -> list[str]:
    return [x for x in nd.dedup(path, out, **options).summary.notes if "checksum" in x]


def test_a_zst_input_without_a_checksum_is_noted_once(tmp_path: Path) -> None:
    bare = pa.Codec("zstd").compress(LINES, asbytes=True)
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl.zst").write_bytes(bare)
    out = tmp_path / "out.jsonl.zst"
    assert run_notes([tmp_path / "a.jsonl.zst", tmp_path / "b.jsonl.zst"], out) == [UNCHECKED]
    assert run_notes(out, tmp_path / "again.jsonl") == []
    assert run_notes(tmp_path / "a.jsonl.zst", out, encoding="latin-1") == [UNCHECKED]
    array = pa.Codec("zstd").compress(b'[{"text": "a b c"}]', asbytes=True)
    table = pa.Codec("zstd").compress(b"text\na b c\n", asbytes=True)
    for name, data in (("a.json.zst", array), ("a.csv.zst", table)):
        (tmp_path / name).write_bytes(data)
        ending = name.removesuffix(".zst")
        assert run_notes(tmp_path / name, tmp_path / f"o.{ending}") == [UNCHECKED]
    (tmp_path / "texts").mkdir()
    for name in ("a", "b"):
        (tmp_path / "texts" / f"{name}.txt.zst").write_bytes(bare)
    assert run_notes(tmp_path / "texts", f"{tmp_path}/texts-out/") == [UNCHECKED]
    (tmp_path / "texts" / "a.txt.zst").write_bytes(zst([LINES]))
    (tmp_path / "texts" / "b.txt.zst").unlink()
    assert run_notes(tmp_path / "texts", f"{tmp_path}/more-out/") == []
