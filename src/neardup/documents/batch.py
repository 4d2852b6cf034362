"""What reading yields: batches of accepted records, and the options that shape them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

__all__ = ["Batch", "ReadOptions"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    r"""How records become documents.

    Args:
        text: Fields that hold the text; several are joined by "\n".
        id: Field that holds the document's id, a string or a whole number, or None.
        skip_errors: False raises DataError at the first bad record; True hands it to the rejects.
        batch_bytes: About how many bytes of records make one batch.

    Example:
        >>> ReadOptions(text=("title", "body")).fields
        ('title', 'body')
    """

    text: tuple[str, ...] = ("text",)
    id: str | None = None
    skip_errors: bool = False
    batch_bytes: int = 8 << 20

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are read: those of the text, then that of the id."""
        return self.text if self.id is None else (*self.text, self.id)


@dataclass(frozen=True, slots=True)
class Batch:
    """Accepted records of one input, in order.

    Args:
        texts: LargeStringArray of n texts, no nulls.
        ids: LargeStringArray of n ids, or None without an id field.
        rows: int64 array (n,), the 1-based number of each record: its line in JSONL, the line
            where it begins in CSV, its row in Parquet.
        nbytes: Bytes of input, compressed as it is, consumed since the batch before; for progress.
    """

    texts: pa.LargeStringArray
    ids: pa.LargeStringArray | None
    rows: npt.NDArray[np.int64]
    nbytes: int


def string_array(values: Sequence[str | None]) -> pa.LargeStringArray:
    """Make an Arrow array of texts; TypeError or ValueError if one is neither text nor None."""
    return pa.array(values, pa.large_string())
