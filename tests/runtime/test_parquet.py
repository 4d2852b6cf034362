"""Parquet files are read without holding what was read."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup.runtime.storage.open_parquet import open_parquet

if TYPE_CHECKING:
    from pathlib import Path

GROUP_ROWS = 256
GROUPS = 12


@pytest.mark.parametrize("opened", [str, pa.memory_map, pa.OSFile])
def test_a_file_is_not_held_while_it_is_read(tmp_path: Path, opened: type) -> None:
    path = tmp_path / "long.parquet"
    schema = pa.schema({"text": pa.binary()})
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for _ in range(GROUPS):
            rows = [secrets.token_bytes(8_192) for _ in range(GROUP_ROWS)]
            file.write_table(pa.table({"text": rows}, schema=schema))
    before = pa.total_allocated_bytes()
    count = most = 0
    with open_parquet(opened(str(path))) as file:
        for batch in file.iter_batches(64):
            count += len(batch)
            most = max(most, pa.total_allocated_bytes() - before)
    assert count == GROUPS * GROUP_ROWS
    assert most < path.stat().st_size / 3
