"""Parquet files that are read column chunk by column chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["open_parquet"]


def open_parquet(source: Any, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """A Parquet file whose column chunks are checked and read on demand.

    Arrow would rather fetch all that is wanted ahead, and hold it until the file is closed: as much
    memory as the file is long.

    Args:
        source: A path, or an open file of Arrow.
        metadata: Of the file, if it has been read.
    """
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        source, metadata=metadata, page_checksum_verification=True, pre_buffer=False
    )
