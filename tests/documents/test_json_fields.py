"""The kernel gives what the complete parser gives, or nothing, whatever the lines look like."""

from __future__ import annotations

import gzip
import io
import json
import re
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.documents.batch import ReadOptions
from neardup.documents.formats.json_fields import JsonFields
from neardup.documents.formats.open import open_sources
from neardup.documents.rejects import Rejects
from neardup.errors import DataError
from suite import needs_jit

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = ReadOptions(text=("text", "title"), id="id", within="site", number="score")
FIELDS = [*OPTIONS.fields, "other"]

strings = st.text(max_size=80) | st.sampled_from(
    ["\\", '"', "\\\\n", "\n" * 70, "a" * 64, "a" * 63 + "\\", "\ud83d", "\U0001f600", "\x00\x7f"]
)
numbers = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, -1, 2**53, 2**63, 10**18, -(10**17), 1e300])
)
values = st.recursive(
    strings | numbers | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strings, inner, max_size=4),
    max_leaves=8,
)
good = st.fixed_dictionaries(
    {"text": strings, "title": strings, "id": strings | st.integers(-(10**17), 10**17)},
    optional={"other": strings | st.lists(st.booleans() | st.none() | st.integers(0, 9))},
).flatmap(
    lambda record: st.fixed_dictionaries(
        {
            "site": strings | st.booleans() | st.none() | st.integers(0, 9),
            "score": st.none() | st.floats(-1e9, 1e9).map(lambda x: round(x, 6)),
        }
    ).map(lambda rest: {**rest, **record})
)
records = good | st.dictionaries(st.sampled_from(FIELDS) | strings, values, max_size=7)


@st.composite
def lines(draw: st.DrawFn, what: Any = records) -> bytes:
    written = json.dumps(
        draw(what),
        ensure_ascii=draw(st.booleans()),
        indent=None,
        separators=draw(st.sampled_from([(",", ":"), (", ", ": "), ("\t,", " :\r ")])),
    )
    blank = draw(st.sampled_from([b"", b" ", b"\t\r"]))
    return blank + written.encode("utf-8", "surrogatepass") + blank


def joined(parts: list[bytes], *, ends: bool) -> bytes:
    return b"\n".join(parts) + b"\n" * (ends and bool(parts))


def plainly(block: bytes) -> tuple[list[Any], list[int], list[bool]] | None:
    """What orjson makes of whole lines; None if one of them is no good record."""
    result: list[Any] = []
    accepted = []
    rows = io.BytesIO(block).readlines()
    for line in rows:
        accepted.append(bool(line.strip(b" \t\r\n")))
        if accepted[-1]:
            try:
                record = orjson.loads(line)
                text, title, score = record["text"], record["title"], record["score"]
                identity, site = record["id"], record["site"]
                assert {type(text), type(title)} == {str}
                assert type(identity) in {str, int}
                assert type(score) in {int, float, type(None)}
                assert type(site) in {str, int, bool, type(None)}
            except (ValueError, LookupError, TypeError, AssertionError):
                return None
            group = None if site is None else str(site).lower() if site in (True, False) else site
            group = str(group) if type(site) is int else group
            number = None if score is None else float(score)
            result.append((f"{text}\n{title}", str(identity), group, number))
    return result, [len(line) for line in rows], accepted


def by_kernel(block: bytes) -> tuple[list[Any], list[int], list[bool]] | None:
    (result,) = JsonFields(OPTIONS).find(block, 1 << 19)
    if isinstance(result, bytes):
        return None
    columns = result.columns
    arrays = (columns.texts, columns.ids, columns.within, columns.numbers)
    for array in arrays:
        array.validate(full=True)
    rows = list(zip(*(array.to_pylist() for array in arrays), strict=True))
    return rows, result.lengths.tolist(), result.accepted.tolist()


@given(st.lists(lines(good) | st.sampled_from([b"", b" \t\r"]), max_size=6), st.booleans())
def test_ordinary_records_are_found(parts: list[bytes], ends: bool) -> None:
    block = joined(parts, ends=ends)
    assert by_kernel(block) == plainly(block)


@given(st.lists(lines(), max_size=4), st.booleans(), st.data())
def test_what_is_found_is_what_the_complete_parser_gives(
    parts: list[bytes], ends: bool, data: st.DataObject
) -> None:
    block = bytearray(joined(parts, ends=ends))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(block)))
        new = data.draw(st.binary(max_size=3) | st.sampled_from(MARKS))
        block[at : at + data.draw(st.integers(0, 3))] = new
    result = by_kernel(bytes(block))
    assert result is None or result == plainly(bytes(block))


MARKS = [
    *(bytes([x]) for x in b'"\\{}[]:,\n\r\t 0123456789eE+-.tfnu\x00\x0b\x1f\x7f\x80\xff'),
    b'\\"', b"\\u", b"\\ud83d\\ude00", b"true", b"null", b"[[", b"]]", b'":', b'"text":""', b"\xc0",
]  # fmt: skip

RECORD = b'{"text":"a","title":"b","id":1,"site":null,"score":2,"other":%s}'


@pytest.mark.parametrize(
    "value",
    [
        b"01", b"-", b"+1", b"1.", b".5", b"1e", b"1e+", b"0x1", b"1 2", b"NaN", b"Infinity",
        b"tru", b"truex", b"nulll", b"True", b"'a'", b'"a', b'a"', b'"\\x"', b'"\\u12"',
        b'"\\u12g4"', b'"\\ud800"', b'"\\udc00"', b'"\\ud800\\u0041"', b'"\t"', b'"\x00"', b"[1,]",
        b"[,1]", b"{1:2}", b'{"a"}', b'{"a":}', b'{"a":1,}', b"[1}", b"{]", b"[", b"{", b"]", b"}",
        b"1}", b"1]", b'"a""b"', b'"a"b', b'1"a"', b"[1 2]", b"\xff", b'"\xed\xa0\x80"', b"1\x0c",
        b"1\xc2\xa0", b"1e999", b"", b":", b",", b"\\", b'\\"', b"//", b'"\\',
    ],
)  # fmt: skip
def test_what_the_complete_parser_refuses_is_not_found(value: bytes) -> None:
    block = joined([RECORD % b"1", RECORD % value, RECORD % b"1"], ends=True)
    assert plainly(block) is None
    assert by_kernel(block) is None


@pytest.mark.parametrize(
    "value",
    [
        b"0", b"-0", b"-0.0", b"1E5", b"1e-7", b"123456789012345678901234567890", b'"\\/\\b\\f"',
        b'"\\ud83d\\ude00\\u00e9\\u4e2d\\u0000"', b"[]", b"{}", b"[[],{}]", b'{"text":5}', b"true",
        b'{"a":[{"b":[1,2,"\\\\"]}]}', b'"\\\\\\""', b" [ 1 , 2 ] ", b"[" * 58 + b"]" * 58,
        b'"' + b"\\\\" * 64 + b'"', b'"' + b"x" * 61 + b'\\""', '"中文"'.encode(),
    ],
)  # fmt: skip
def test_whatever_json_there_is_beside_the_fields_is_read(value: bytes) -> None:
    block = joined([RECORD % value] * 3, ends=False)
    assert by_kernel(block) == plainly(block) is not None


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("marks", [40, 1 << 19])
def test_files_are_read_alike_with_the_kernel_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ascii_only: bool, marks: int
) -> None:
    texts = ['naïve 中文\n"quoted" \\ \U0001f600' * (i % 5) for i in range(400)]
    written = [
        json.dumps({"id": i, "text": t}, ensure_ascii=ascii_only) for i, t in enumerate(texts)
    ]
    written[137] = '{"id": 1}'
    written[200] = ""
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(written).encode())
    monkeypatch.setattr("neardup.documents.formats.jsonl.PART_BYTES", 1_000)
    monkeypatch.setattr("neardup.documents.formats.field_spans.PART_BYTES", marks)
    read = []
    for pays, workers in ((-1, 1), (-1, 3), (1 << 60, 1), (1 << 60, 3)):
        monkeypatch.setattr("neardup.documents.formats.jsonl._KERNEL_PAYS", pays)
        options = ReadOptions(id="id", skip_errors=True, batch_bytes=5_000, workers=workers)
        (source,) = open_sources([str(path)])
        read.append(
            [
                (b.rows.tolist(), b.texts.to_pylist(), b.ids.to_pylist(), b.nbytes)
                for b in source.batches(options)
            ]
        )
        source.close()
    assert len(read[0]) > 3
    assert read[0] == read[1] == read[2] == read[3]


@pytest.mark.parametrize("pays", [-1, 1 << 60])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_batch_has_the_bytes_that_were_asked_for_and_at_most_a_range_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pays: int, workers: int
) -> None:
    written = [json.dumps({"text": "word " * (i % 7)}).encode() + b"\n" for i in range(400)]
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"".join(written))
    monkeypatch.setattr("neardup.documents.formats.jsonl.PART_BYTES", 200)
    monkeypatch.setattr("neardup.documents.formats.jsonl._RANGE_BYTES", 1_000)
    monkeypatch.setattr("neardup.documents.formats.jsonl._KERNEL_PAYS", pays)
    (source,) = open_sources([str(path)])
    batches = source.batches(ReadOptions(batch_bytes=1 << 20, workers=workers))
    sizes = [sum(len(written[row - 1]) for row in batch.rows.tolist()) for batch in batches]
    assert sum(sizes) == path.stat().st_size
    assert all(1_000 <= size < 2_100 for size in sizes[:-1])
    assert len(sizes) > 5


@pytest.mark.parametrize("room", [1, 24, 25, 26, 1000])
def test_records_with_more_marks_than_there_is_room_for_are_left_to_the_complete_parser(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    record = b'{"text":"a","id":7}' + b" " * 200 + b"\n"
    monkeypatch.setattr("neardup.documents.formats.field_spans._MARK_EVERY", 1 << 30)
    monkeypatch.setattr("neardup.documents.formats.field_spans.PART_BYTES", room)
    (stretch,) = JsonFields(ReadOptions(id="id")).find(record * 2, 1 << 19)
    needed = 2 * len([*'{"":"",""' + ":7}", "\n"])
    assert isinstance(stretch, bytes) is (room < needed)


@needs_jit
@pytest.mark.parametrize("workers", [1, 3])
def test_threads_tell_what_is_wrong_first_and_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr("neardup.documents.formats.jsonl._KERNEL_PAYS", -1)
    monkeypatch.setattr("neardup.documents.formats.jsonl.PART_BYTES", 100)
    lines = [b'{"text": "%d"}\n' % i for i in range(50_000)]
    path = tmp_path / "in.jsonl.gz"
    options = ReadOptions(workers=workers)

    def failure() -> str:
        (source,) = open_sources([str(path)])
        with pytest.raises(DataError) as caught:
            list(source.batches(options))
        source.close()
        return str(caught.value)

    path.write_bytes(gzip.compress(b"".join(lines))[:-9_000])
    match = re.match(r".*in\.jsonl\.gz:(\d+): the gzip stream is broken near here", failure())
    assert match is not None
    assert 1_000 < int(match[1]) < 50_000
    lines[int(match[1]) - 20] = b"bad\n"
    path.write_bytes(gzip.compress(b"".join(lines))[:-9_000])
    assert f"in.jsonl.gz:{int(match[1]) - 19}: not valid JSON" in failure()


def test_bad_lines_behind_found_ones_are_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.documents.formats.jsonl._KERNEL_PAYS", -1)
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"text": "a"}\n' * 9 + b"bad\n" + b'{"text": "b"}\n' * 9)
    (source,) = open_sources([str(path)])
    with Rejects(str(tmp_path / "bad.jsonl")) as rejects:
        list(source.batches(ReadOptions(skip_errors=True, batch_bytes=50), rejects))
    (bad,) = (tmp_path / "bad.jsonl").read_bytes().splitlines()
    assert orjson.loads(bad)["row"] == 10
