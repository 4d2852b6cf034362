"""Batches of accepted records that reading yields, and the options that shape them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.documents.extensions import InputFormat
from neardup.documents.files.problems import BadRecordError
from neardup.documents.markup import EXTRACTS
from neardup.documents.ordering import Order
from neardup.errors import UsageError
from neardup.runtime.free_memory import default_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

__all__ = [
    "HELD_RECORDS",
    "Batch",
    "Columns",
    "Gathered",
    "Joiner",
    "ReadOptions",
    "joined_columns",
    "longest_record",
    "string_array",
    "too_long",
]

_MEMORY_SHARE: Final = 16
"""The share of the budget for a record: reading and fingerprinting plain words takes some 13 times
their bytes."""
HELD_RECORDS: Final = 4
"""The longest input that is read as a whole, such as an array or a sheet, in longest records."""
_LEAST_RECORD: Final = 16 << 20
_MEGA: Final = 10**6


def longest_record(memory: int) -> int:
    """The most bytes of one record: a 16th of the budget, at least 16 MiB."""
    return max(memory // _MEMORY_SHARE, _LEAST_RECORD)


def too_long(nbytes: int | None, longest: int) -> BadRecordError:
    """The error for a record above the limit, of `nbytes` bytes; None if it was not read whole."""
    size = "" if nbytes is None else f" of {nbytes / _MEGA:,.1f} MB"
    return BadRecordError(
        f"a record{size} is too long: at most {longest / _MEGA:,.1f} MB fit in memory",
        "cut it into parts, or pass --on-error skip or a larger --memory",
    )


@dataclass(frozen=True, slots=True)
class ReadOptions:
    r"""Options for making documents from records.

    Args:
        text: Fields with the text; several are joined by "\n".
        id: Field with the document's id, a string or a whole number, or None.
        skip_errors: False raises DataError at the first bad record; True hands it to the rejects.
        batch_bytes: About how many bytes of records make one batch.
        within: Field that two documents must have in common to be compared: a string, a whole
            number, a boolean or null; or None.
        number: Field with the number or date that a document's priority depends on, or None.
        dates: Whether that field has dates.
        date_format: Their form if they are texts, as in `datetime.strptime`; by default ISO 8601.
        extract: The part of HTML texts that is compared: "main" or "trafilatura" (the main
            content), "all" (the visible text), "none" (the markup too); None means "main" for files
            named as HTML.
        record_bytes: Bytes that one record may have: a line, a row of CSV, a text file. Longer ones
            are bad records; by default a 16th of the default budget.
        workers: Threads that parse; the result does not depend on their number.
        input_format: Hints about all inputs, in addition to their names and first bytes.
        numbers: Whether the text field has fingerprints: whole numbers, or texts of their digits.

    Example:
        >>> ReadOptions(text=("title", "body")).fields
        ('title', 'body')
    """

    text: tuple[str, ...] = ("text",)
    id: str | None = None
    skip_errors: bool = False
    batch_bytes: int = 8 << 20
    within: str | None = None
    number: str | None = None
    dates: bool = False
    date_format: str | None = None
    extract: str | None = None
    record_bytes: int = field(default_factory=lambda: longest_record(default_memory()))
    workers: int = 1
    input_format: InputFormat = field(default_factory=InputFormat)
    numbers: bool = False

    def __post_init__(self) -> None:
        """Refuse options without a text field or with empty batches."""
        if not self.text:
            raise UsageError("no text field; name at least one")
        if self.batch_bytes < 1:
            raise UsageError(f"batch_bytes is {self.batch_bytes}: use 1 or more")
        if self.extract not in (None, *EXTRACTS):
            raise UsageError(f"extract is {self.extract!r}: use one of {', '.join(EXTRACTS)}")

    @property
    def text_option(self) -> str:
        """The option of the command line that names the text field, for errors."""
        return "--fingerprint-field" if self.numbers else "--text"

    @property
    def order(self) -> Order | None:
        """The form in which the field of the priority is read."""
        return None if self.number is None else Order(self.number, self.dates, self.date_format)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are read: of the text, the id, the group and the number, in order."""
        others = (self.id, self.within, self.number)
        return self.text + tuple(name for name in others if name is not None)


@dataclass(frozen=True, slots=True)
class Batch:
    """Accepted records of one input, in order.

    Args:
        texts: LargeStringArray of n texts, no nulls.
        ids: LargeStringArray of n ids, or None without an id field.
        rows: int64 array (n,), the 1-based number of each record: its line in JSONL, the line
            where it begins in CSV, its row in Parquet and Arrow, the file among text files.
        nbytes: Bytes of input, compressed as it is, consumed since the batch before; for progress.
        within: LargeStringArray of n values of that field, null for null; None without the field.
        numbers: DoubleArray of n numbers, or of values of dates, null if missing; None without the
            field.
    """

    texts: pa.LargeStringArray
    ids: pa.LargeStringArray | None
    rows: npt.NDArray[np.int64]
    nbytes: int
    within: pa.LargeStringArray | None = None
    numbers: pa.DoubleArray | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields of n accepted records; the parts are those of a batch."""

    texts: pa.LargeStringArray
    ids: pa.LargeStringArray | None = None
    within: pa.LargeStringArray | None = None
    numbers: pa.DoubleArray | None = None

    def __len__(self) -> int:
        """The number of records."""
        return len(self.texts)

    def batch(self, rows: npt.NDArray[np.int64], nbytes: int) -> Batch:
        """Make them a batch."""
        return Batch(self.texts, self.ids, rows, nbytes, self.within, self.numbers)


class Gathered:
    """Columns in the making, one record after the other."""

    def __init__(self, options: ReadOptions) -> None:
        """Begin with nothing."""
        self._options = options
        self.texts: list[str] = []
        self._ids: list[str] = []
        self._within: list[str | None] = []
        self._numbers: list[float | None] = []

    def __len__(self) -> int:
        """The number of records."""
        return len(self.texts)

    def add(
        self, text: str, identity: str = "", within: str | None = None, number: float | None = None
    ) -> None:
        """Append one record; values without a field in the options are ignored."""
        self.texts.append(text)
        self._ids.append(identity)
        self._within.append(within)
        self._numbers.append(number)

    def columns(self) -> Columns:
        """The columns that the options name."""
        options = self._options
        return Columns(
            string_array(self.texts),
            None if options.id is None else string_array(self._ids),
            None if options.within is None else string_array(self._within),
            None if options.number is None else pa.array(self._numbers, pa.float64()),
        )


class Joiner:
    """Joins small parts, which are parsed in the cache, to batches of the requested size."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._parts: list[Columns] = []
        self._rows: list[npt.NDArray[np.int64]] = []
        self._reported = 0

    def add(self, columns: Columns, rows: npt.NDArray[np.int64]) -> None:
        """Append the records of one part, which may be none."""
        if len(columns):
            self._parts.append(columns)
            self._rows.append(rows)

    def take(self, consumed: int) -> Iterator[Batch]:
        """The records so far as one batch, if there are any; `consumed` counts from the start."""
        if self._parts:
            yield joined_columns(self._parts).batch(
                np.concatenate(self._rows), consumed - self._reported
            )
            self._reported = consumed
            self._parts, self._rows = [], []


def joined_columns(parts: Sequence[Columns]) -> Columns:
    """The records of several parts, one part or more, one after the other."""
    if len(parts) == 1:
        return parts[0]
    names = ("texts", "ids", "within", "numbers")
    return Columns(*(_joined([getattr(part, name) for part in parts]) for name in names))


def _joined(arrays: list[Any]) -> Any:
    return None if arrays[0] is None else pa.concat_arrays(arrays)


def string_array(values: Sequence[str | None]) -> pa.LargeStringArray:
    """Make an Arrow array of texts; TypeError or ValueError if one is neither text nor None."""
    return pa.array(values, pa.large_string())
