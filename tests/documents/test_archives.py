"""Archives are folders: the same documents, ids and outputs as the folder that they unpack to."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import shutil
import stat
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup as nd
from neardup.documents.files import archives
from neardup.pipeline.evidence.named_texts import read_document

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = "a few words of a text that is here more than once "
FILES = {
    "a.txt": TEXT.encode(),
    "b/again.txt": TEXT.encode(),
    "b/c/other.txt": b"quite another text about tea",
    "b/packed.txt.gz": gzip.compress(TEXT.encode()),
    ".hidden": b"passed over",
    "page.html": b"<p>A page of the collection</p>",
}
RECORDS = {
    "a.jsonl": "".join(f'{{"text": "{TEXT} {i // 2}"}}\n' for i in range(6)).encode(),
    "part/b.csv": f"text,n\r\n{TEXT} 1,8\r\nnothing like it,9\r\n".encode(),
    "part/c.jsonl.gz": gzip.compress(b'{"text": "one of its own kind"}\n'),
    "_SUCCESS": b"",
}  # fmt: skip


def table() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"text": [TEXT + " 2", "in a table of columns"]}), buffer)
    return buffer.getvalue()


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as packed:
        packed.mkdir("empty") if hasattr(packed, "mkdir") else None
        for name, data in files.items():
            packed.writestr(name, data)
    return buffer.getvalue()


def tarred(files: dict[str, bytes], *more: tarfile.TarInfo, prefix: str = "./") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as packed:
        folder = tarfile.TarInfo(prefix or "b")
        folder.type = tarfile.DIRTYPE
        packed.addfile(folder)
        for name, data in files.items():
            info = tarfile.TarInfo(prefix + name)
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
        for info in more:
            packed.addfile(info)
    return buffer.getvalue()


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def halves(data: bytes) -> tuple[bytes, bytes]:
    return data[:1536], data[1536:]


KINDS: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    ".zip": zipped,
    ".stored.zip": lambda files: zipped(files, zipfile.ZIP_STORED),
    ".lzma.zip": lambda files: zipped(files, zipfile.ZIP_LZMA),
    ".tar": tarred,
    ".tar.gz": lambda files: gzip.compress(tarred(files, prefix="")),
    ".tgz": lambda files: gzip.compress(tarred(files)),
    ".tar.zst": lambda files: pa.Codec("zstd").compress(tarred(files), asbytes=True),
    ".tar.bz2": lambda files: bz2.compress(tarred(files)),
    ".tar.xz": lambda files: b"".join(map(lzma.compress, halves(tarred(files)))),
}  # fmt: skip


def laid_out(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def outcome(source: Path, folder: Path, **options: Any) -> dict[str, Any]:
    """Everything that a run writes; the name of the source is put as IN.

    But for the options beside a table, which have the checksum of that name too.
    """
    folder.mkdir()
    tables = {name: folder / f"{name}.csv" for name in ("duplicates", "clusters")}
    result = nd.dedup(source, f"{folder}/out/", **tables, **options, on_error="skip",
                     rejects=folder / "rejects.jsonl", similarity=0.9)  # fmt: skip
    written = {
        str(x.relative_to(folder)): x.read_bytes().replace(os.fsencode(source), b"IN")
        for x in sorted(folder.rglob("*"))
        if x.is_file() and not x.name.endswith(".options.json")
    }
    return written | {"counts": (result.summary.read, result.summary.kept, result.summary.rejected)}


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_gives_what_its_folder_gives(kind: str, tmp_path: Path) -> None:
    for number, files in enumerate((FILES, RECORDS | {"z.parquet": table()})):
        folder = laid_out(tmp_path / f"in{number}", files)
        packed = tmp_path / f"packed{number}{kind}"
        packed.write_bytes(KINDS[kind](files))
        expected = outcome(folder, tmp_path / f"expected{number}")
        assert outcome(packed, tmp_path / f"got{number}") == expected
        assert expected["counts"][1] < expected["counts"][0]


def test_addresses_lead_into_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.zip").write_bytes(zipped(RECORDS))
    Path("t.tar.gz").write_bytes(gzip.compress(tarred(FILES)))
    nd.dedup(Path("r.zip"), "out/", duplicates="d.csv")
    rows = list(csv.DictReader(Path("d.csv").read_text().splitlines()))
    assert {"r.zip/a.jsonl:2", "r.zip/part/b.csv:2"} <= {row["dropped"] for row in rows}
    assert read_document("r.zip/a.jsonl:2") == f"{TEXT} 0"
    assert read_document("t.tar.gz/b/c/other.txt") == "quite another text about tea"
    result = nd.dedup([Path("t.tar.gz/b")], "inner/")
    assert (result.summary.read, result.summary.kept) == (3, 2)
    assert {str(x) for x in Path("inner").rglob("*.*")} == {"inner/again.txt", "inner/c/other.txt"}
    with pytest.raises(nd.DataError, match=r't\.tar\.gz: there is no "nowhere" in it'):
        nd.dedup(Path("t.tar.gz/nowhere"), "x/")
    with pytest.raises(nd.UsageError, match=r"archives can be read but not written"):
        nd.dedup(Path("r.zip/a.jsonl"), "kept.zip")


def test_archives_in_a_folder_are_folders_in_it(tmp_path: Path) -> None:
    both = laid_out(tmp_path / "both", {"x.zip": zipped(FILES), "y/z.tar": tarred(FILES)})
    nd.dedup(both, f"{tmp_path}/out/", clusters=tmp_path / "c.csv", on_error="skip")
    ids = [row["id"] for row in csv.DictReader((tmp_path / "c.csv").read_text().splitlines())]
    expected = [name for name in sorted(FILES) if name[0] != "."]
    assert ids == [f"x.zip/{x}" for x in expected] + [f"y/z.tar/{x}" for x in expected]
    with pytest.raises(nd.UsageError, match=r"both named a\.txt; name the folder"):
        nd.dedup([both / "x.zip", both / "y/z.tar"], f"{tmp_path}/out2/")


def test_links_within_an_archive_are_what_they_lead_to(tmp_path: Path) -> None:
    links = [
        link("hard.txt", "a.txt", tarfile.LNKTYPE), link("b/soft.txt", "../hard.txt"),
        link("up.txt", "../../etc/passwd"), link("round.txt", "round.txt"),
        link("root.txt", "/etc/passwd"), link("fifo", "", tarfile.FIFOTYPE),
    ]  # fmt: skip
    path = tmp_path / "in.tar"
    path.write_bytes(tarred({"a.txt": b"one", "a2.txt": b"two"}, *links, prefix=""))
    nd.dedup(path, f"{tmp_path}/out/", clusters=tmp_path / "c.jsonl", distance=0)
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == ["a.txt", "a2.txt", "b/soft.txt", "hard.txt"]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("a.txt", "one")
        for name, target, mode in ("s", "a.txt", stat.S_IFLNK), ("p", "", stat.S_IFIFO):
            info = zipfile.ZipInfo(name)
            info.external_attr = (mode | 0o777) << 16
            packed.writestr(info, target)
    path = tmp_path / "in.zip"
    path.write_bytes(buffer.getvalue())
    assert nd.dedup(path, f"{tmp_path}/out2/").summary.read == 2


def encrypted() -> bytes:
    data = bytearray(zipped({"a.txt": b"secret"}))
    for magic, at in (b"PK\x03\x04", 6), (b"PK\x01\x02", 8):
        data[data.rindex(magic) + at] |= 1
    return bytes(data)


def by_method(number: int) -> bytes:
    data = bytearray(zipped({"a.txt": b"packed"}))
    for magic, at in (b"PK\x03\x04", 8), (b"PK\x01\x02", 10):
        data[data.rindex(magic) + at : data.rindex(magic) + at + 2] = struct.pack("<H", number)
    return bytes(data)


def overwritten(data: bytes, at: int, more: bytes) -> bytes:
    return data[:at] + more + data[at + len(more) :]


TWO = {"a.txt": b"x" * 600, "b.txt": b"y" * 600}
BROKEN: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "up": ("in.zip", lambda: zipped({"../a.txt": b"x"}), r'entry "\.\./a\.txt" leads out'),
    "root": ("in.tar", lambda: tarred({"/etc/a.txt": b"x"}, prefix=""), "leads out of the archive"),
    "drive": ("in.zip", lambda: zipped({"C:\\a.txt": b"x"}), "leads out of the archive"),
    "hard link": ("in.tar", lambda: tarred({}, link("x", "y", tarfile.LNKTYPE)), "links to a file"),
    "encrypted": ("in.zip", encrypted, r'"a\.txt" is encrypted: unpack it first'),
    "method": ("in.zip", lambda: by_method(9), "compressed by method 9"),
    "no zip": ("in.zip", lambda: b"nothing of the kind", "archive is damaged: File is not a zip"),
    "cut zip": ("in.zip", lambda: zipped(TWO)[:-30], "archive is damaged"),
    "no tar": ("in.tar", lambda: b"nothing of the kind", "archive is damaged"),
    "cut tar": ("in.tar", lambda: tarred(TWO)[:1700], "archive is damaged: unexpected end"),
    "no end": ("in.tar", lambda: tarred(TWO)[: 512 * 7], "no end mark"),
    "bad header": ("in.tar", lambda: overwritten(tarred(TWO), 512 * 4, b"\xff" * 99), "at byte 2,"),
    "cut gz": ("in.tar.gz", lambda: gzip.compress(tarred(TWO))[:-20], "its gzip stream breaks"),
    "cut xz": ("in.tar.xz", lambda: lzma.compress(tarred(TWO))[:-20], "its xz stream breaks"),
    "no xz": ("in.tar.xz", lambda: b"no xz" * 9, "its xz stream breaks"),
    "cut bz2": ("in.tar.bz2", lambda: bz2.compress(tarred(TWO))[:-20], "its bz2 stream breaks"),
    "empty": ("in.zip", lambda: zipped({}), "the archive has no documents"),
    "nested": ("in.zip", lambda: zipped({"a.jsonl": b"", "b.zip": zipped(TWO)}), "archive in an"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_wrong_with_an_archive_is_one_line(case: str, tmp_path: Path) -> None:
    name, make, says = BROKEN[case]
    path = tmp_path / name
    path.write_bytes(make())
    for on_error in ("stop", "skip"):
        with pytest.raises(nd.DataError, match=says) as caught:
            nd.dedup(path, f"{tmp_path}/out/", on_error=on_error)
        assert str(caught.value).startswith(f"{path}")
        assert str(caught.value).isprintable()
    assert not (tmp_path / "out").exists()


def test_a_damaged_or_nested_entry_is_a_bad_record(tmp_path: Path) -> None:
    stored = zipped({**TWO, "c.txt": b"good", "in.zip": zipped(TWO)}, zipfile.ZIP_STORED)
    path = tmp_path / "in.zip"
    path.write_bytes(overwritten(stored, stored.index(b"x" * 600) + 9, b"#"))
    with pytest.raises(
        nd.DataError, match=r"in\.zip/a\.txt:1: the archive is damaged here: Bad CRC"
    ):
        nd.dedup(path, f"{tmp_path}/out/")
    rejects = tmp_path / "rejects.jsonl"
    result = nd.dedup(path, f"{tmp_path}/out/", on_error="skip", rejects=rejects)
    assert (result.summary.kept, result.summary.rejected) == (2, 2)
    assert [json.loads(x)["file"] for x in rejects.read_text().splitlines()] == [
        f"{path}/a.txt", f"{path}/in.zip",
    ]  # fmt: skip
    lines = zipped({"a.jsonl": b'{"text": "one"}\n' * 9}, zipfile.ZIP_STORED)
    path.write_bytes(overwritten(lines, lines.index(b"one"), b"two"))
    with pytest.raises(nd.DataError, match=r"in\.zip/a\.jsonl: the archive is damaged here"):
        nd.dedup(path, f"{tmp_path}/kept.jsonl", on_error="skip")


@pytest.mark.parametrize("kind", [".zip", ".tar.gz", ".tar.xz"])
def test_a_bomb_is_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LEAST_BYTES", 1 << 20)
    path = tmp_path / f"in{kind}"
    path.write_bytes(KINDS[kind]({"a.txt": bytes(3 << 20)}))
    with pytest.raises(nd.DataError, match="unpacks to more than 256 times its"):
        nd.dedup(path, f"{tmp_path}/out/", on_error="skip")


def test_a_header_of_a_tar_archive_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "in.tar"
    long = tarfile.TarInfo("a" * (5 << 20))
    path.write_bytes(tarred({}, long))
    with pytest.raises(nd.DataError, match=r"a header has more than 4,194,304 bytes"):
        nd.dedup(path, f"{tmp_path}/out/")


def test_an_entry_longer_than_a_record_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "in.zip"
    path.write_bytes(zipped({"a.txt": b"x" * (17 << 20), "b.txt": b"short"}))
    result = nd.dedup(path, f"{tmp_path}/out/", on_error="skip", memory="64M")
    assert (result.summary.kept, result.summary.rejected) == (1, 1)


def test_every_reader_takes_archives(tmp_path: Path) -> None:
    packed = tmp_path / "in.tar.gz"
    packed.write_bytes(gzip.compress(tarred(RECORDS)))
    plain = laid_out(tmp_path / "in", RECORDS)
    result = nd.dedup(packed)
    assert result.summary.read == nd.dedup(plain).summary.read == 9
    assert "a few words" in str(result.why(f"{packed}/a.jsonl:2")) or result.summary.dropped
    resumed = nd.dedup(packed, f"{tmp_path}/out/", resume=tmp_path / "state", workers=2)
    assert resumed.summary.kept == result.summary.kept
    shutil.rmtree(tmp_path / "in")
