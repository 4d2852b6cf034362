"""Tables as people have them: columns that no call names do not matter, odd ones are served."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import neardup as nd
from neardup.documents import ReadOptions
from neardup.pipeline.run.in_memory import InMemory
from suite import needs_jit

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

pytestmark = needs_jit

TEXTS = ["one two three four", "One, two, three four!", "five six", "", "one  two three FOUR", "ß"]
KEPT = nd.dedup(TEXTS).kept
BYTES = pa.array([text.encode() for text in TEXTS])
ODD = [{"a": 1}, [1], 3, None, "x", {2}]


def doubled() -> Any:
    """A frame of which two columns that no call names have one name."""
    frame = pd.DataFrame({"text": TEXTS, "x": ODD, "y": ODD})
    frame.columns = ["text", "x", "x"]
    return frame


@pytest.mark.parametrize(
    "source",
    [
        pd.DataFrame({"text": TEXTS, "odd": ODD}),
        doubled(),
        pl.DataFrame({"odd": pl.Series(ODD, dtype=pl.Object), "text": TEXTS}),
        pl.DataFrame({"text": [text.split(" ") for text in TEXTS]}),
        pa.table({"text": pc.run_end_encode(pa.array(TEXTS))}),
        pa.table({"text": pa.chunked_array([pc.run_end_encode(pa.array(TEXTS))] * 1)}),
        pc.run_end_encode(pa.array(TEXTS)),
        pa.table({"text": BYTES}),
        pa.table({"text": BYTES.cast(pa.binary_view())}),
        BYTES.cast(pa.large_binary()),
    ],
    ids=lambda source: str(getattr(source, "type", type(source))),
)
def test_what_holds_texts_is_served(source: Any) -> None:
    assert (nd.dedup(source).kept == KEPT).all()
    assert len(nd.similar_pairs(source, similarity=0.7)) == len(nd.similar_pairs(TEXTS, 0.7))


def test_fingerprints_of_odd_columns_are_those_of_texts() -> None:
    for column in (BYTES, BYTES.cast(pa.binary_view()), pc.run_end_encode(pa.array(TEXTS))):
        codes, want = nd.fingerprints(column), nd.fingerprints(TEXTS)
        assert (np.ma.getmaskarray(codes) == np.ma.getmaskarray(want)).all()
        assert (codes == want).all()


def test_rows_that_are_a_chunk_each_are_read_together() -> None:
    rows = [{"text": f"text {at} of many", "id": at} for at in range(200)]
    table = pa.concat_tables(pa.Table.from_pylist([row]) for row in rows)
    assert table.column("text").num_chunks == 200
    source = InMemory(table, ReadOptions(id="id"))
    assert len(source.batches) < 20
    assert source.rows.tolist() == list(range(200))
    assert source.addresses.of(np.arange(200)).to_pylist() == list(range(200))


def open_result() -> Any:
    """A relation of a connection that has an open result."""
    connection = duckdb.connect()
    connection.execute("select * from range(3)")
    return connection.sql("select 'a' as text")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pd.DataFrame([["a"] * 2], columns=["text"] * 2), "2 columns are named 'text'"),
        (lambda: pa.table([pa.array(["a"])] * 2, ["text", "text"]), "2 columns are named 'text'"),
        (lambda: pa.table({"text": [b"\xff\xfe"]}), "some are not UTF-8: decode them first"),
        (
            lambda: duckdb.connect().execute("select 'a' as text"),
            "the result of its to_arrow_table",
        ),
        (open_result, "the DuckDBPyRelation cannot be read: .* unfinished result"),
        (lambda: {"a", "b"}, "texts is a set"),
    ],
)
def test_what_cannot_be_served_is_one_line(make: Any, message: str) -> None:
    with pytest.raises(nd.UsageError, match=message):
        nd.dedup(make())
