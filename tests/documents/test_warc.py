"""Web archives: answers of servers are documents, kept records are copied byte for byte."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

import neardup as nd
from neardup.documents import ReadOptions, open_sources, read_table
from neardup.errors import DataError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

warc = pytest.importorskip("fastwarc.warc")
pytest.importorskip("resiliparse")

MENU = "<nav>" + "".join(f"<a href='/{i}'>Section {i} of the site</a>" for i in range(9)) + "</nav>"


def page(text: str) -> bytes:
    return f"<html><body>{MENU}<main><article><p>{text}</p></article></main></body></html>".encode()


def tea(number: int) -> str:
    return " ".join(f"tea{number} in the{number} evening of day {i} is{number}" for i in range(9))


def http(body: bytes, kind: str = "text/html; charset=utf-8", *more: str, code: int = 200) -> bytes:
    lines = [f"HTTP/1.1 {code} x", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *more]
    return "\r\n".join([*lines, "", ""]).encode() + body


def record(number: int, content: bytes, kind: str = "response", **header: str) -> bytes:
    fields = {
        "WARC-Type": kind, "WARC-Record-ID": f"<urn:uuid:{number}>",
        "WARC-Target-URI": f"http://x.org/{number}",
        "WARC-Date": f"2024-01-{number + 1:02}T00:00:00Z",
        "Content-Type": "application/http; msgtype=response",
    }  # fmt: skip
    fields |= {name.replace("_", "-"): value for name, value in header.items()}
    fields["Content-Length"] = str(len(content))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"WARC/1.1\r\n{lines}\r\n".encode() + content + b"\r\n\r\n"


def plain() -> list[bytes]:
    """Two pages that are alike, and what belongs to them."""
    return [
        record(0, b"software: x\r\n", "warcinfo", Content_Type="application/warc-fields"),
        record(1, b"GET /2 HTTP/1.1\r\n\r\n", "request", WARC_Concurrent_To="<urn:uuid:2>"),
        record(2, http(page(tea(1)))),
        record(3, http(page(tea(1) + " again"), "text/html"), WARC_Concurrent_To="<urn:uuid:4>"),
        record(4, b"GET /3 HTTP/1.1\r\n\r\n", "request"),
        record(5, b"fetchTimeMs: 9\r\n", "metadata", WARC_Concurrent_To="<urn:uuid:3>"),
        record(6, http(b"\x89PNG\r\n", "image/png")),
        record(7, http(b"moved", code=301)),
        record(8, http(gzip.compress(page(tea(8))), "text/html", "Content-Encoding: gzip")),
        record(9, http("Grüße aus dem Tee".encode("latin-1"), "text/plain")),
    ]  # fmt: skip


KEPT = [0, 1, 2, 6, 7, 8, 9]


def texts(path: Path, **options: Any) -> list[str]:
    (source,) = open_sources([str(path)])
    return [x for batch in source.batches(ReadOptions(**options)) for x in batch.texts.to_pylist()]


@pytest.mark.parametrize("ending", [".warc", ".warc.gz"])
def test_kept_records_are_copied_byte_for_byte(ending: str, tmp_path: Path) -> None:
    packed = [gzip.compress(x) if ending == ".warc.gz" else x for x in plain()]
    path, out = tmp_path / f"in{ending}", tmp_path / f"kept{ending}"
    path.write_bytes(b"".join(packed))
    result = nd.dedup(path, out, id="id", duplicates=tmp_path / "d.jsonl")
    assert (result.summary.read, result.summary.kept, result.summary.rejected) == (
        4,
        3,
        0,
    )
    (row,) = map(json.loads, (tmp_path / "d.jsonl").read_text().splitlines())
    assert (row["dropped"], row["kept"]) == ("<urn:uuid:3>", "<urn:uuid:2>")
    assert out.read_bytes() == b"".join(packed[i] for i in KEPT)
    records = warc.ArchiveIterator(io.BytesIO(out.read_bytes()))
    assert [each.record_id for each in records] == [f"<urn:uuid:{i}>" for i in KEPT]
    assert any("6 records" in note for note in result.summary.notes)
    latest = nd.dedup(path, f"{tmp_path}/out/", keep="newest:date", duplicates=tmp_path / "e.csv")
    assert latest.summary.kept == 3
    assert f"{path}:3,{path}:4" in (tmp_path / "e.csv").read_text()
    both = tmp_path / f"both{ending}"
    other = tmp_path / f"b{ending}"
    other.write_bytes(packed[9])
    nd.dedup([path, other], both)
    assert both.read_bytes() == out.read_bytes()


def test_the_main_text_of_pages_is_compared(tmp_path: Path) -> None:
    path = tmp_path / "in.warc"
    path.write_bytes(b"".join(plain()))
    assert texts(path)[0] == tea(1)
    assert texts(path)[3] == "Grüße aus dem Tee"
    assert "Section 3" in texts(path, extract="all")[0]
    assert texts(path, extract="none")[0] == page(tea(1)).decode()
    assert texts(path, text=("url",), id="id")[0] == "http://x.org/2"
    assert [row["type"] for _, row in read_table(str(path))] == ["text/html"] * 3 + ["text/plain"]


def test_texts_of_wet_files_are_documents(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.wet.gz"
    data = [
        record(0, b"x", "warcinfo"),
        record(1, "Grüße".encode(), "conversion", Content_Type="text/plain"),
        record(2, b"Tea", "conversion", Content_Type="text/plain"),
    ]  # fmt: skip
    path.write_bytes(b"".join(map(gzip.compress, data)))
    assert texts(path) == ["Grüße", "Tea"]
    nd.dedup(path, tmp_path / "kept.wet.gz")
    assert (tmp_path / "kept.wet.gz").read_bytes() == path.read_bytes()


BAD: dict[str, tuple[bytes, str]] = {
    "no answer": (record(1, b"<p>no HTTP"), ":1: its content is not an HTTP answer"),
    "encoding": (record(1, http(b"\x1f\x8b\x08abc", "text/html", "Content-Encoding: gzip")),
                 "its Content-Type is text/html, but it is gzip data"),
    "no page": (record(1, http(b"%PDF-1.7")), "is text/html, but it is a PDF file"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("ending", [".warc", ".warc.gz"])
def test_a_broken_answer_is_a_bad_record(case: str, ending: str, tmp_path: Path) -> None:
    data, says = BAD[case]
    records = [data, record(2, http(page("Tea is green")))]
    packed = [gzip.compress(x) if ending == ".warc.gz" else x for x in records]
    path = tmp_path / f"in{ending}"
    path.write_bytes(b"".join(packed))
    with pytest.raises(DataError, match=says):
        nd.dedup(path, tmp_path / f"kept{ending}")
    result = nd.dedup(path, tmp_path / f"kept{ending}", on_error="skip")
    assert (result.summary.kept, result.summary.rejected) == (1, 1)
    assert (tmp_path / f"kept{ending}").read_bytes() == packed[1]


def test_a_member_that_is_no_record_is_a_bad_record(tmp_path: Path) -> None:
    path = tmp_path / "in.warc.gz"
    path.write_bytes(gzip.compress(b"no record") + gzip.compress(record(2, http(page("Tea")))))
    with pytest.raises(DataError, match=r"in\.warc\.gz:1: not a WARC record"):
        texts(path)
    assert texts(path, skip_errors=True) == ["Tea"]


WHOLE = b"".join(plain())
BROKEN: dict[str, tuple[str, bytes, str]] = {
    "cut": ("in.warc", WHOLE[:-9], ":10: the WARC file is broken here: it ends too early"),
    "cut.gz": ("in.warc.gz", gzip.compress(plain()[2])[:-9], ":1: .* ends too early"),
    "flipped": ("in.warc.gz", gzip.compress(plain()[2])[:-6] + b"123456", ":1: .*incorrect data"),
    "no gzip": ("in.warc.gz", WHOLE, ":1: .*incorrect header"),
    "no warc": ("in.warc", b"hello\r\n", ":1: .*no line WARC/1.0"),
    "length": ("in.warc", WHOLE.replace(b"Content-Length", b"Length"), ":1: .*no Content-Length"),
    "between": ("in.warc", plain()[0] + b"junk" + plain()[1], ":2: .*no line WARC/1.0"),
    "one member": ("in.warc.gz", gzip.compress(WHOLE), "more than one record"),
    "header": ("in.warc", b"WARC/1.0\r\nX: " + b"y" * (2 << 20), ":1: .*header is too long"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_one_line(case: str, tmp_path: Path) -> None:
    name, data, says = BROKEN[case]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DataError, match=re.escape(name) + says if says[0] == ":" else says):
        nd.dedup(path, f"{tmp_path}/out/", on_error="skip")
    assert not (tmp_path / "out").exists()


def test_long_records_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "in.warc"
    bomb = http(gzip.compress(page("x" * 90_000)), "text/html", "Content-Encoding: gzip")
    data = [
        record(1, http(page("x" * 9000))), record(2, http(b"\0" * 9000, "video/mp4")),
        record(3, bomb), record(4, http(page("Tea"))),
    ]  # fmt: skip
    path.write_bytes(b"".join(data))
    with pytest.raises(DataError, match=r"in\.warc:1: a record of .* is too long"):
        texts(path, record_bytes=4000)
    assert texts(path, record_bytes=4000, skip_errors=True) == ["Tea"]


def test_what_a_warc_file_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "in.warc"
    path.write_bytes(WHOLE)
    with pytest.raises(UsageError, match=r"stay compressed as they are; name it \.warc$"):
        nd.dedup(path, tmp_path / "kept.warc.gz")
    with pytest.raises(UsageError, match="a WARC file cannot be a stream"):
        open_sources(["-"], None, "warc")
    (tmp_path / "in.warc.zst").write_bytes(b"")
    with pytest.raises(UsageError, match="zstd -d"):
        texts(tmp_path / "in.warc.zst")
    from neardup.documents.formats.warc import _archive_iterator

    _archive_iterator.cache_clear()
    monkeypatch.setitem(sys.modules, "fastwarc.warc", None)
    with pytest.raises(UsageError, match=r"pip install 'neardup\[warc\]'"):
        texts(path)
    _archive_iterator.cache_clear()


@pytest.mark.parametrize("is_packed", [False, True])
def test_what_fastwarc_writes_is_read(is_packed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("in.warc.gz" if is_packed else "in.warc")
    written = []
    for each in warc.ArchiveIterator(io.BytesIO(WHOLE), parse_http=False):
        one = io.BytesIO()
        each.write(one)
        written.append(gzip.compress(one.getvalue()) if is_packed else one.getvalue())
    path.write_bytes(b"".join(written))
    assert len(texts(path)) == 4
    nd.dedup(path, tmp_path / f"kept{path.name}")
    kept = [x.record_id for x in warc.ArchiveIterator(str(tmp_path / f"kept{path.name}"))]
    assert kept == [f"<urn:uuid:{i}>" for i in KEPT]
