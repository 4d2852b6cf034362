"""What reading yields: batches of accepted records, and the options that shape them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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

    def __post_init__(self) -> None:
        """Refuse options without a text field or with empty batches."""
        if not self.text:
            raise UsageError("no text field; name at least one")
        if self.batch_bytes < 1:
            raise UsageError(f"batch_bytes is {self.batch_bytes}: use 1 or more")

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


class Joiner:
    """Joins parts, small enough to be parsed in the cache, to batches of the size asked for."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._texts: list[pa.LargeStringArray] = []
        self._ids: list[pa.LargeStringArray] = []
        self._rows: list[npt.NDArray[np.int64]] = []
        self._reported = 0

    def add(
        self,
        texts: pa.LargeStringArray,
        ids: pa.LargeStringArray | None,
        rows: npt.NDArray[np.int64],
    ) -> None:
        """Append the records of one part, which may be none."""
        if len(texts):
            self._texts.append(texts)
            self._rows.append(rows)
            if ids is not None:
                self._ids.append(ids)

    def take(self, consumed: int) -> Iterator[Batch]:
        """Give what is there as one batch, or nothing; `consumed` counts from the start."""
        if self._texts:
            ids = pa.concat_arrays(self._ids) if self._ids else None
            rows = np.concatenate(self._rows)
            yield Batch(pa.concat_arrays(self._texts), ids, rows, consumed - self._reported)
            self._reported = consumed
            self._texts, self._ids, self._rows = [], [], []


def string_array(values: Sequence[str | None]) -> pa.LargeStringArray:
    """Make an Arrow array of texts; TypeError or ValueError if one is neither text nor None."""
    return pa.array(values, pa.large_string())
