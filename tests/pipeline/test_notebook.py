"""Results in a notebook and a session, and pairs of tables."""

from __future__ import annotations

import pyarrow as pa
import pytest

import neardup as nd
from neardup.errors import DataError, UsageError

BODIES = ["a b c d e", "A, b, c, d, e!", "<f>"]


def test_a_result_shows_counts_and_the_doubtful_drops() -> None:
    result = nd.dedup([*BODIES, "a b c d e <g>"], similarity=0.5)
    assert repr(result) == "DedupResult(read=4, kept=2, dropped=2)"
    assert str(result) == str(result.summary)
    html = result._repr_html_()
    assert html.startswith("<pre>read ")
    assert html.index("0.750") < html.index("1.000")
    assert "<table>" not in nd.dedup(["a", "b"])._repr_html_()


def test_pairs_of_a_table_have_its_ids_as_they_are() -> None:
    table = pa.table({"body": BODIES, "title": ["x", "x", "y"], "uid": [10, 20, 30]})
    (pairs,) = nd.similar_pairs(table, text="body", id="uid").to_pylist()
    assert (pairs["left"], pairs["right"]) == (0, 1)
    assert (pairs["left_id"], pairs["right_id"]) == (10, 20)
    assert nd.similar_pairs(table, text=("title", "body")).num_rows == 1
    assert "left_id" not in nd.similar_pairs(table, text="body").column_names


def test_a_table_needs_its_columns_and_texts_have_none() -> None:
    table = pa.table({"body": BODIES, "uid": [1, 2, 3]})
    with pytest.raises(UsageError, match="no column 'text': there are body, uid"):
        nd.similar_pairs(table)
    with pytest.raises(UsageError, match="plain texts have no fields, and id names 'uid'"):
        nd.similar_pairs(BODIES, id="uid")
    with pytest.raises(DataError, match=r"row 1: .*null"):
        nd.similar_pairs(pa.table({"text": ["a", None]}))
