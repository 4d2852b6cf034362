"""Documents of many features: the arrays that an engine takes hold 2 GiB of them and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import neardup as nd
from neardup.errors import DataError
from neardup.spark import export_index, exported_index
from neardup.spark.exported_index_file import check_reference, reference_batches
from neardup.spark.workers import documents
from neardup.spark.workers.file_inputs import Shipped
from neardup.spark.workers.partition_rows import MOST_VALUES, binary

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [" ".join(f"w{at * word % 31}" for word in range(at % 9)) for at in range(40)]


def test_more_than_an_array_holds_is_an_error() -> None:
    with pytest.raises(DataError, match=f"the engine holds {MOST_VALUES:,}"):
        binary(np.zeros(0, np.uint64), np.array([0, MOST_VALUES + 1]))


@pytest.mark.parametrize("texts", [TEXTS, [*TEXTS[:5], None], []])
def test_large_texts_are_read_in_parts(texts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    count = len(texts)
    columns = {
        "number": np.arange(count), "address": pa.nulls(count, pa.string()),
        "text": pa.array(texts, pa.string()), "measured": pa.nulls(count, pa.float64()),
        "within": pa.nulls(count, pa.string()),
    }  # fmt: skip
    batch = pa.record_batch(columns)

    def made() -> list[pa.RecordBatch]:
        recipe = Shipped(nd.Recipe().to_json())
        return list(documents.texts_to_documents([batch], recipe, "longest", None, True))

    whole = made()
    assert len(whole) == bool(texts)
    monkeypatch.setattr(documents, "_TEXT_BYTES", 60)
    monkeypatch.setattr(documents, "_TEXTS", 4)
    parts = made()
    assert all(part.num_rows <= 4 for part in parts)
    assert [row for part in parts for row in part.to_pylist()] == [
        row for part in whole for row in part.to_pylist()
    ]


def test_an_index_of_large_documents_is_exported_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nd.DurableIndex.open(tmp_path / "i", similarity=0.7, recipe=nd.Recipe()) as index:
        index.add([f"d{at}" for at in range(len(TEXTS))], TEXTS)

    def exported(name: str) -> list[dict[str, Any]]:
        path = str(tmp_path / name)
        export_index(tmp_path / "i", path)
        check_reference(path)
        return [row for batch in reference_batches(path) for row in batch.to_pylist()]

    whole = exported("whole.parquet")
    monkeypatch.setattr(exported_index, "MOST_VALUES", 7)
    assert exported("parts.parquet") == whole
    assert len(whole) > 30
