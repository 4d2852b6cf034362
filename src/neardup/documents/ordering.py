"""Numbers and dates by which documents have priority: what a value of a field is worth.

A date is worth its microseconds since 1970 in UTC; without a time zone it is taken to be in UTC, so
that dates with and without one have one order. As float64 that is exact from 1684 to 2255, and
beyond never out of order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.documents.files.problems import NUMBERS_ONLY, BadRecordError, quoted
from neardup.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

__all__ = [
    "LARGEST_FIRST",
    "SMALLEST_FIRST",
    "OneKind",
    "Order",
    "check_date_format",
    "is_date",
]

LARGEST_FIRST: Final = ("max", "newest")
SMALLEST_FIRST: Final = ("min", "oldest")
"""What comes before the colon of a `keep` that names a field."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DAY: Final = 86_400 * 10**6
_NANOSECONDS: Final = 1000
_PER_UNIT: Final = {"s": 10**6, "ms": 1000, "us": 1}
_YEAR_OR_MONTH: Final = re.compile(r"\d{4}(-\d\d)?")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")
_UNCLEAR_COMMA: Final = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_ISO: Final = (
    "write it as in 2024-01-31T09:30, or pass --date-format FORMAT, such as %d.%m.%Y for 31.01.2024"
)
_NUMBERS: Final = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_DATES: Final = (pa.types.is_date, pa.types.is_timestamp)
_TEXTS: Final = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
)


@dataclass(frozen=True, slots=True)
class Order:
    """The field by which documents have priority.

    Args:
        field: Its name.
        dates: Whether its values are dates; else numbers, and dates only where a column is typed.
        date_format: The form of dates that are texts, as in `datetime.strptime`; ISO 8601 by
            default.

    Example:
        >>> order = Order("at", dates=True)
        >>> order.of_text("1970-01-01T01:00+01:00"), order.of_text("1970-01-02"), order.of_text(" ")
        (0.0, 86400000000.0, None)
        >>> Order("price").of_text("1.234,50")
        1234.5
    """

    field: str
    dates: bool = False
    date_format: str | None = None

    @property
    def expected_type(self) -> str:
        """The types that a column may have, in words."""
        return (
            "a date, a timestamp or a string" if self.dates else "a number, a date or a timestamp"
        )

    @property
    def advice(self) -> str:
        """The option for columns of other types."""
        if self.dates:
            return "for numbers --keep max: or min:, or another --keep"
        return "for texts that are dates --keep newest: or oldest:, or another --keep"

    def takes(self, kind: pa.DataType) -> bool:
        """Whether a column of this type can be compared."""
        others = _TEXTS if self.dates else _NUMBERS
        kind = _values_of(kind)
        return pa.types.is_null(kind) or is_date(kind) or any(test(kind) for test in others)

    def of_text(self, text: str) -> float | None:
        """The value of a text; None for a blank one.

        Raises:
            BadRecordError: If it is neither.
        """
        text = text.strip()
        if not text:
            return None
        return self._date(text) if self.dates else self._number(text)

    def of_json(self, value: Any, kinds: dict[type, str]) -> float | None:
        """The value of a JSON value; None for null, and for a blank text among dates.

        Args:
            value: Of the field; None if there is none.
            kinds: What values of other types are called.

        Raises:
            BadRecordError: If it is of another type, or unreadable.
        """
        if value is None:
            return None
        if self.dates:
            if isinstance(value, str):
                return self.of_text(value)
            advice = "--keep newest: and oldest: compare dates: name a FIELD of dates"
            raise BadRecordError(f"{self.field} is {kinds[type(value)]}, not a date", advice)
        if type(value) not in {int, float}:
            what = f"{self.field} is {kinds[type(value)]}, not a number"
            raise BadRecordError(what, NUMBERS_ONLY)
        return float(value)

    def of_column(self, column: pa.Array) -> tuple[pa.DoubleArray, npt.NDArray[np.bool_]]:
        """The value of each cell of a column of an accepted type, null for a missing one.

        Returns:
            float64 (n,), and bool (n,), which values are unreadable; these are null too.
        """
        readable = np.zeros(len(column), np.bool_)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if is_date(column.type):
            return _microseconds(column), readable
        if any(test(column.type) for test in _TEXTS):
            return self._of_texts(column)
        return column.cast(pa.float64(), safe=False), readable

    def unreadable(self, text: str) -> BadRecordError:
        """The error of a text that is unreadable."""
        try:
            self.of_text(text)
        except BadRecordError as bad:
            return bad
        raise ValueError(text)

    def _of_texts(self, column: pa.Array) -> tuple[pa.DoubleArray, npt.NDArray[np.bool_]]:
        worths: list[float | None] = []
        bad = np.zeros(len(column), np.bool_)
        for i, text in enumerate(column.to_pylist()):
            try:
                worths.append(None if text is None else self.of_text(text))
            except BadRecordError:
                worths.append(None)
                bad[i] = True
        return pa.array(worths, pa.float64()), bad

    def _date(self, text: str) -> float:
        try:
            if self.date_format is not None:
                return _worth(datetime.strptime(text, self.date_format))  # noqa: DTZ007
            if _YEAR_OR_MONTH.fullmatch(text):
                text = f"{text}-01-01"[:10]
            return _worth(datetime.fromisoformat(text))
        except ValueError:
            if self.date_format is None:
                raise BadRecordError(
                    f"{self.field} is {quoted([text])}, not a date", _ISO
                ) from None
            what = f"{self.field} is {quoted([text])}, not a date of the form {self.date_format}"
            raise BadRecordError(what) from None

    def _number(self, text: str) -> float:
        if _UNCLEAR_COMMA.fullmatch(text):
            what = f"{self.field} is {quoted([text])}, {text.replace(',', '.')} or"
            raise BadRecordError(f"{what} {text.replace(',', '')}", "write it without a comma")
        plain = text
        if _DECIMAL_COMMA.fullmatch(text):
            plain = text.replace(".", "").replace(",", ".")
        try:
            number = float(plain)
        except ValueError:
            number = np.nan
        if np.isnan(number):
            raise BadRecordError(f"{self.field} is {quoted([text])}, not a number", NUMBERS_ONLY)
        return number


class OneKind:
    """Refuses numbers in one input and dates in another: these have no order among each other.

    Args:
        field: That has them.

    Attributes:
        firsts: The first input of each kind.
    """

    def __init__(self, field: str | None) -> None:
        """Begin without inputs."""
        self._field = field
        self.firsts: dict[str, str] = {}

    def check(self, name: str, kind: str | None) -> None:
        """Take an input that was read, and what it compares: numbers or dates.

        Raises:
            DataError: If an earlier one compares the other kind.
        """
        if kind is None:
            return
        self.firsts.setdefault(kind, name)
        for other, first in self.firsts.items():
            if other != kind:
                raise DataError(
                    f"{name}: {self._field} has {kind}, and in {first} it has {other}, which"
                    " cannot be compared; write them alike, or use another --keep"
                )


def _worth(date: datetime) -> float:
    aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return float((aware - _EPOCH) // _MICROSECOND)


def _microseconds(column: pa.Array) -> pa.DoubleArray:
    """Microseconds of dates or timestamps; Arrow stores those with a time zone in UTC."""
    kind = column.type
    missing = column.is_null().to_numpy(zero_copy_only=False)
    stored = column.cast(pa.int32()) if pa.types.is_date32(kind) else column
    ticks = stored.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        worths = (ticks // _NANOSECONDS).astype(np.float64)
    elif pa.types.is_timestamp(kind):
        worths = ticks.astype(np.float64) * _PER_UNIT[kind.unit]
    else:
        worths = ticks.astype(np.float64) * (_DAY if pa.types.is_date32(kind) else 1000)
    return pa.array(worths, pa.float64(), mask=missing)


def is_date(kind: pa.DataType) -> bool:
    """Whether a column of this type has dates or timestamps."""
    return any(test(_values_of(kind)) for test in _DATES)


def _values_of(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def check_date_format(form: str) -> None:
    """Raise UsageError for a form of dates that says nothing, or has an unknown directive."""
    parse: Callable[[str, str], datetime] = datetime.strptime
    problem = None if "%" in form else "it has no directive"
    try:
        parse("", form)
    except ValueError as error:
        text = str(error)
        problem = text if "bad directive" in text or "stray %" in text else problem
    if problem is not None:
        raise UsageError(
            f"the date format is {form!r}: {problem}; use directives of strptime, such as %d.%m.%Y"
        )
