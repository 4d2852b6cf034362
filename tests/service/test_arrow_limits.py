"""Arrow bodies that stand for more than they hold, and those that are damaged, are refused."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from neardup.service.arrow_limits import check_packed
from neardup.service.bodies import arrow_rows, arrow_table
from neardup.service.messages import Document
from neardup.service.problem_details import Problem
from neardup.service.settings import Limits

LIMITS = Limits(body_bytes=1 << 16)
IDS = pa.array(range(100))
LONG = pa.array(["x" * 1000])
SHORT = pa.array(["one two"])
ROWS = pa.array([0] * 100, pa.int8())


def repeated(text: pa.Array) -> pa.Array:
    """A hundred times the same bytes, by way of a dictionary."""
    return pa.DictionaryArray.from_arrays(ROWS, text)


def viewed(text: pa.Array) -> pa.Array:
    """The same by way of views."""
    valid, views, *data = text.cast(pa.string_view()).buffers()
    assert valid is None
    every = pa.py_buffer(views.to_pybytes()[:16] * 100)
    return pa.Array.from_buffers(pa.string_view(), 100, [None, every, *data])


def body_of(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def refusal(body: bytes) -> str:
    with pytest.raises(Problem) as raised:
        arrow_rows(arrow_table(body, LIMITS), Document)
    return raised.value.name


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
@pytest.mark.parametrize("text", [repeated(SHORT), viewed(SHORT), pa.array(["a b"] * 100)])
def test_what_unpacks_to_little_is_read(text: pa.Array, compression: str | None) -> None:
    table = pa.table({"id": IDS, "text": text})
    rows = arrow_rows(arrow_table(body_of(table, compression), LIMITS), Document)
    assert [(row.id, row.text) for row in rows] == [
        (row["id"], row["text"]) for row in table.to_pylist()
    ]


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize(
    "columns",
    [
        {"id": pa.array([0] * 10_000, pa.int64())},
        {"id": IDS, "text": pa.array(["x" * 1000] * 100)},
        {"id": IDS, "text": repeated(pa.array(["x" * 70_000]))},
        {"id": [1], "features": [[7] * 10_000]},
    ],
)
def test_compressed_streams_count_unpacked(columns: dict[str, Any], compression: str) -> None:
    body = body_of(pa.table(columns), compression)
    assert len(body) < 10_000
    with pytest.raises(Problem, match="unpacks to"):
        check_packed(body, LIMITS)  # before anything is unpacked
    assert refusal(body) == "too-large"


@pytest.mark.parametrize("text", [repeated(LONG), viewed(LONG)])
def test_a_text_counts_as_often_as_it_is_named(text: pa.Array) -> None:
    assert refusal(body_of(pa.table({"id": IDS, "text": text}))) == "too-large"


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**62], pa.timestamp("s")), pa.array([1], pa.timestamp("us", "No/Where")),
        pa.array([2**62], pa.duration("s")), pa.array([2**31 - 1]).cast(pa.int32()).view("date32"),
        pa.RunEndEncodedArray.from_arrays([1], ["x"]), pa.nulls(1), pa.array([b"\xff"]),
        pa.array([[["x"]]]), pa.array([{"a": 1}]),
    ],
)  # fmt: skip
def test_columns_that_no_request_has_are_refused(column: pa.Array) -> None:
    assert refusal(body_of(pa.table({"id": ["a"], "text": column}))) == "invalid-document"


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_damaged_streams_are_refused(compression: str | None) -> None:
    whole = body_of(pa.table({"id": IDS, "text": repeated(SHORT)}), compression)
    chosen = random.Random(7)
    for _ in range(300):
        body = bytearray(whole)
        for _ in range(chosen.randrange(1, 4)):
            body[chosen.randrange(len(body))] = chosen.randrange(256)
        try:
            arrow_rows(
                arrow_table(bytes(body[: chosen.randrange(len(body) * 2)]), LIMITS), Document
            )
        except Problem:
            continue
