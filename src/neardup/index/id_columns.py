"""Ids of stored documents: a column of whole numbers or of strings, and each id's row in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import DataError, UsageError
from neardup.runtime.arrays import check_given, frozen

if TYPE_CHECKING:
    from neardup.index.hits import Id

__all__ = [
    "ID_KINDS", "IdColumn", "IdColumns", "check_id_kind", "id_array", "id_kind", "is_one_id",
    "kind_of_array", "no_ids", "stored_id",
]  # fmt: skip

ID_KINDS: Final = {"int": pa.int64(), "str": pa.large_string()}


def id_kind(value: Any) -> str:
    """The kind of an id: "int" or "str".

    Raises:
        UsageError: If it is neither, a whole number that does not fit 64 signed bits, or a string
            that is not Unicode text.
    """
    if isinstance(value, str):
        if not value.isascii():
            _check_unicode(value)
        return "str"
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        if not -(2**63) <= int(value) < 2**63:
            raise UsageError(f"id {value} does not fit 64 signed bits: give it as a string")
        return "int"
    raise UsageError(f"id {value!r:.60} is {type(value).__name__}: ids are strings or integers")


def kind_of_array(values: pa.Array) -> str:
    """The type of the ids of an array of `id_array`: "int" or "str"."""
    return "int" if pa.types.is_integer(values.type) else "str"


def no_ids(kind: pa.DataType, count: int) -> pa.Array:
    """Null ids of a type, for rows whose ids are of the other type."""
    empty = pa.scalar(0 if pa.types.is_integer(kind) else "", kind)
    return pa.repeat(empty, count)


def stored_id(identity: Id, index_kind: str | None) -> Id:
    """An id as it is stored in an index whose ids are of a kind, or may be of either (None).

    Raises:
        UsageError: If it is of the other kind, or cannot be an id.
    """
    if type(identity) is str and index_kind == "str" and identity.isascii():
        return identity
    kind = id_kind(identity)
    check_id_kind(kind, index_kind)
    return str(identity) if kind == "str" else int(identity)


def check_id_kind(kind: str, id_kind: str | None) -> None:
    """Raise UsageError if ids are of another kind than the ids of the index."""
    if id_kind not in {None, kind}:
        raise UsageError(f"the index has ids of kind {id_kind}, not {kind}")


def is_one_id(ids: Any) -> bool:
    """Whether this is one id, not a list of them.

    Raises:
        UsageError: If it is neither; ids without an order, such as a set, match no documents.
    """
    if isinstance(ids, (str, int, np.integer)):
        return True
    if ids is None or isinstance(ids, (bytes, bytearray, float)):
        id_kind(ids)
    if isinstance(ids, dict) or not hasattr(ids, "__getitem__"):
        raise UsageError(f"ids are {type(ids).__name__}: use one id, a list or an array")
    return False


def id_array(ids: Any) -> Any:
    """Bring ids into an Arrow array of int64 or large_string.

    Args:
        ids: A sequence of int or of str, a NumPy array of whole numbers, or an Arrow array.

    Raises:
        UsageError: If one is missing or of another kind, kinds are mixed, or a string is not
            Unicode text.
    """
    if isinstance(ids, (pa.Array, pa.ChunkedArray)):
        check_given("ids", ids)
    plain = _plain_array(ids) if type(ids) is list else None
    return _checked_array(ids) if plain is None else plain


def _checked_array(ids: Any) -> Any:
    """As `id_array`, for values of any type."""
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    try:
        array = ids if isinstance(ids, pa.Array) else pa.array(ids)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        kinds = sorted({id_kind(each) for each in ids})
        raise UsageError(f"ids of kinds {kinds} are mixed: use strings or integers only") from None
    if pa.types.is_dictionary(array.type):  # whose values may be null, not only its rows
        array = array.dictionary_decode()
    if array.null_count:
        raise UsageError(f"{array.null_count:,} ids are missing: give every document an id")
    kind = array.type
    if pa.types.is_integer(kind):
        try:
            return array.cast(pa.int64())
        except pa.ArrowInvalid:
            worst = pc.max(array).as_py()
            raise UsageError(
                f"id {worst} does not fit 64 signed bits: give it as a string"
            ) from None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_view(kind):
        return array.cast(pa.large_string())
    if len(array) == 0:
        return array.cast(pa.int64())
    raise UsageError(f"ids are {kind}: use strings or integers")


def _plain_array(ids: list[Any]) -> pa.Array | None:
    """The array of values of exactly `str` or `int`; None for others, or for invalid ids.

    Arrow takes a tenth of the time if it need not find the type of each value.
    """
    kinds = set(map(type, ids))
    if kinds not in ({str}, {int}):
        return None
    try:
        return pa.array(ids, ID_KINDS["str" if kinds == {str} else "int"])
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
        return None


def _check_unicode(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"id {value!r:.60} has a lone surrogate at character {error.start}: give it without,"
            " since it cannot be stored as UTF-8"
        ) from None


def _is_view(kind: pa.DataType) -> bool:
    return bool(getattr(pa.types, "is_string_view", lambda _: False)(kind))


class IdColumn:
    """The ids of some rows, unchanging.

    Args:
        values: Arrow array of int64 or large_string, without nulls.
        slots: The hash table, if it was made before.
        ascending: Whether these are whole numbers in ascending order, if that is known.
    """

    def __init__(self, values: Any, slots: Any = None, ascending: bool | None = None) -> None:
        """Make no hash table yet."""
        self._values = values
        self._slots = slots
        self._ascending = ascending
        self._ends: tuple[int, int] | None = None
        self._table: Any = None
        """The argument of `find_ids`, and the arrays to which it points."""
        self._numbers = values.to_numpy() if self.kind == "int" else None

    @property
    def values(self) -> Any:
        """The ids, an Arrow array of int64 or large_string."""
        return self._values

    def __len__(self) -> int:
        """Rows."""
        return len(self._values)

    @property
    def kind(self) -> str:
        """The kind of the ids: "int" or "str"."""
        return kind_of_array(self._values)

    def bytes_and_offsets(self) -> tuple[Any, Any]:
        """The ids as bytes one after the other, uint8, and where each begins, int64 (n + 1,).

        Whole numbers have 8 bytes each and no offsets.
        """
        buffers = self._values.buffers()
        if self.kind == "int":
            numbers = self._values.to_numpy()
            return frozen(numbers).view(np.uint8), _NO_OFFSETS
        offsets = np.frombuffer(buffers[1], np.int64)[self._values.offset :][: len(self) + 1]
        data = np.frombuffer(buffers[2] or b"", np.uint8)
        return frozen(data), frozen(offsets)

    @property
    def ascending(self) -> bool:
        """Whether these are whole numbers, each greater than the one before."""
        if self._ascending is None:
            numbers = self._values.to_numpy() if self.kind == "int" else None
            self._ascending = numbers is not None and bool(np.all(numbers[1:] > numbers[:-1]))
        return self._ascending

    def repeated(self) -> Any:
        """Whether each row has an id that comes again later: bool (n,), or None if none has."""
        if self.ascending:
            return None
        replaced = np.zeros(len(self), np.bool_)
        return replaced if self._fill(replaced) else None

    def value(self, row: int) -> Any:
        """One id, an int or a str."""
        if self._numbers is not None:
            return int(self._numbers[row])
        return self._values[row].as_py()

    def find_ascending(self, number: int) -> int:
        """The row of one number in a column whose numbers ascend, or -1."""
        numbers = self._numbers
        if numbers is None or not len(numbers):
            return -1
        if self._ends is None:
            self._ends = int(numbers[0]), int(numbers[-1])
        if not self._ends[0] <= number <= self._ends[1]:
            return -1
        row = int(np.searchsorted(numbers, number))
        return row if numbers[row] == number else -1

    @property
    def table(self) -> tuple[Any, Any]:
        """The ids and their hash table as `find_ids` takes them, int64 (6,), and what must live.

        Another thread may make other arrays at the same time, so who has the addresses keeps these.
        """
        from neardup.kernels.index.ids import table_of

        if self._table is None:
            arrays = *self.bytes_and_offsets(), self.slots
            self._table = table_of(*arrays), arrays
        table: tuple[Any, Any] = self._table
        return table

    def disagreement(self) -> DataError:
        """The error for a hash table, perhaps from a file, that refers to ids that do not exist."""
        return DataError("the hash table does not agree with the ids: make the index again")

    @property
    def slots(self) -> Any:
        """The hash table: uint32, row plus 1, or 0."""
        if self._slots is None:
            self._fill(np.zeros(len(self), np.bool_))
        return self._slots

    def _fill(self, replaced: Any) -> int:
        from neardup.kernels.index.ids import fill_slots

        slots = np.zeros(1 << (2 * len(self)).bit_length(), np.uint32)
        repeats = int(fill_slots(*self.bytes_and_offsets(), len(self), slots, replaced))
        self._slots = frozen(slots)
        return repeats


class IdColumns:
    """Several columns of ids of one kind, in all of which ids are looked up together.

    Args:
        columns: The ids; of equal ids in a column the last one counts.
    """

    def __init__(self, columns: list[IdColumn]) -> None:
        """Make the hash tables that are not there yet."""
        filled = [(at, each) for at, each in enumerate(columns) if len(each)]
        self._count = len(columns)
        self._ascending = [(at, each) for at, each in filled if each.ascending]
        self._hashed = [(at, each) for at, each in filled if not each.ascending]
        self._places = np.array([at for at, _ in self._hashed], np.int64)
        tables = [each.table for _, each in self._hashed]
        self._tables = np.stack([addresses for addresses, _ in tables]) if tables else None
        self._arrays = [arrays for _, arrays in tables]
        """The memory at the addresses of the tables."""

    def rows_of(self, ids: IdColumn) -> Any:
        """The row of each of some ids in each of the columns, or -1: int64 (c, n).

        Raises:
            DataError: If a hash table, which may come from a file, does not match the ids.
        """
        rows = np.full((self._count, len(ids)), -1, np.int64)
        for at, column in self._ascending:
            numbers, ids_ = column.values.to_numpy(), ids.values.to_numpy()
            places = np.minimum(np.searchsorted(numbers, ids_), len(numbers) - 1)
            rows[at] = np.where(numbers[places] == ids_, places, -1)
        if self._hashed:
            stored_rows = self._look_up(*ids.bytes_and_offsets(), len(ids))
            if not self._ascending and len(stored_rows) == self._count:
                return stored_rows
            rows[self._places] = stored_rows
        return rows

    def places_of(self, identity: Id) -> list[tuple[int, int]]:
        """The columns that have an id, and its row there; see `rows_of`."""
        places = [(at, column.find_ascending(identity)) for at, column in self._ascending]  # type: ignore[arg-type]  # a number then
        if self._hashed:
            if isinstance(identity, str):
                data = np.frombuffer(identity.encode(), np.uint8)
                offsets = frozen(np.array([0, len(data)]))
            else:
                data, offsets = frozen(np.array([identity], np.int64)).view(np.uint8), _NO_OFFSETS
            rows = self._look_up(data, offsets, 1)[:, 0].tolist()
            places += zip(self._places.tolist(), rows, strict=True)
        return [(at, row) for at, row in places if row >= 0]

    def _look_up(self, data: Any, offsets: Any, count: int) -> Any:
        """The row of each id in each column that has a hash table, int64 (c, count)."""
        from neardup.kernels.index.ids import find_ids

        rows = np.empty((len(self._hashed), count), np.int64)
        wrong = find_ids(data, offsets, self._tables, rows)
        if wrong >= 0:
            raise self._hashed[wrong][1].disagreement()
        return rows


_NO_OFFSETS: Final = frozen(np.empty(0, np.int64))
