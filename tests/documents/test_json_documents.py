"""JSON documents with their records in a list at a path."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.documents import InputFormat, OutputSet, ReadOptions, open_sources, write_outputs
from neardup.errors import DataError, UsageError

ROWS = [{"text": f"one two three {i // 2} four"} for i in range(4)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
MEMBERS = st.dictionaries(st.text(max_size=3), JSON, max_size=3)


def written(data: str, records: str, keep: list[bool], folder: str) -> str:
    """What is written of a document of which some records are kept."""
    path, out = Path(folder, "in.json"), Path(folder, "out.json")
    path.write_text(data, encoding="utf-8")
    (source,) = open_sources([str(path)], None, InputFormat(records=records))
    texts = [x for batch in source.batches(ReadOptions()) for x in batch.texts.to_pylist()]
    assert texts == [row["text"] for row in ROWS[: len(keep)]]
    with OutputSet(source.paths) as outputs:
        write_outputs([source], [np.array(keep, np.bool_)], str(out), outputs)
        outputs.commit()
    return out.read_text(encoding="utf-8")


@given(
    st.lists(st.sampled_from(["data", "rows", "x.y"]), min_size=1, max_size=3),
    st.lists(st.tuples(MEMBERS, MEMBERS), min_size=3, max_size=3),
    st.lists(st.booleans(), max_size=len(ROWS)),
    st.sampled_from([None, 2]),
    st.sampled_from(["", "\ufeff"]),
)
def test_what_is_around_a_list_at_any_path_stays(
    names: list[str], around: list[Any], keep: list[bool], indent: int | None, mark: str
) -> None:
    def document(rows: Any) -> Any:
        for name, (before, after) in zip(reversed(names), around, strict=False):
            others = {x: y for x, y in before.items() if x[:1] not in name}
            last = {x: y for x, y in after.items() if x[:1] not in name and x not in others}
            rows = others | {name: rows} | last
        return rows

    whole = mark + json.dumps(document(ROWS[: len(keep)]), indent=indent)
    with TemporaryDirectory() as folder:
        path = ".".join(names)
        assert written(whole, path, [True] * len(keep), folder) == whole
        kept = [row for row, stays in zip(ROWS[: len(keep)], keep, strict=True) if stays]
        cut = written(whole, path, keep, folder)
        assert (cut[: len(mark)], json.loads(cut[len(mark) :])) == (mark, document(kept))


def test_a_document_without_records_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    for data, kept in ("\ufeff\n", "[]\n"), ('\ufeff{"data": []}', '\ufeff{"data": []}'):
        assert written(data, "data", [], str(tmp_path)) == kept


@pytest.mark.parametrize(
    ("document", "records", "says"),
    [
        ({"data": ROWS, "n": 1}, "rows", r'at "rows": there is "data", "n"; pass --records data'),
        ({"a": {"b": ROWS}}, "a", r'at "a": there is "a\.b"; pass --records a\.b'),
        ({"a": {"b": 1}}, "a.b", r'"a\.b" is a number or null; pass --records PATH'),
        ({"a": ROWS}, "a.text", r'"a" is a list'),
        ([ROWS], "a", "the document is a list"),
        ({"a": ROWS}, "a.", "records is 'a.'"),
    ],
)
def test_a_path_without_a_list_is_one_line(
    tmp_path: Path, document: Any, records: str, says: str
) -> None:
    path = tmp_path / "in.json"
    path.write_text(json.dumps(document))
    with pytest.raises(UsageError, match=says):
        nd.dedup(path, records=records)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ('{"data": [{"text": "a"}]', r"in\.json:1: .*a comma or } is expected"),
        ('{"data": [{"text": "a"}]} 1', "more text follows the document"),
        ('{"data": [{"text": "a"}], "data": []}', '"data" is there twice'),
        ('{"data" 1}', "a colon and a value"),
        ('{"data":', "a colon and a value"),
        ("{1}", "a name in double quotes"),
    ],
)
def test_a_broken_document_is_one_line(tmp_path: Path, data: str, says: str) -> None:
    path = tmp_path / "in.json"
    path.write_text(data)
    with pytest.raises(DataError, match=says):
        nd.dedup(path, records="data")


def test_a_document_read_as_lines_names_the_option(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    for data, says in ({"data": ROWS}, "data"), ({"a": {"b": ROWS}}, r"a\.b"):
        path.write_text(json.dumps(data))
        with pytest.raises(DataError, match=f"pass --records {says}"):
            nd.dedup(path)
    path.write_text(json.dumps({"data": ROWS}, indent=2))
    with pytest.raises(DataError, match="--records PATH"):
        nd.dedup(path)
    assert nd.dedup(path, records="data").summary.kept == 2
    with pytest.raises(UsageError, match="require files"):
        nd.dedup(["a"], records="data")
    with pytest.raises(UsageError, match="the format is csv"):
        nd.dedup(path, records="data", format="csv")
