"""Arrays in the form that kernels require, and checks of arrays from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.errors import UsageError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["check_arrow", "check_given", "cut", "frozen"]


def frozen(words: Any) -> Any:
    """A read-only contiguous view, so that kernels are compiled for one type only."""
    if type(words) is np.ndarray and words.flags.c_contiguous and not words.flags.writeable:
        return words
    view = np.ascontiguousarray(words).view()
    view.flags.writeable = False
    return view


def cut(totals: npt.NDArray[np.int64], most: int) -> list[tuple[int, int]]:
    """Ranges of bins with at most `most` rows, or one larger bin: pairs of first, last + 1.

    Args:
        totals: int64 (bins,): rows of each bin.
        most: Rows of a range.

    Example:
        >>> cut(np.array([3, 3, 0, 5, 1]), 6)
        [(0, 3), (3, 5)]
    """
    sums = np.cumsum(totals)
    cuts, first, before = [], 0, 0
    while first < len(totals) and before < sums[-1]:
        last = max(first + 1, int(np.searchsorted(sums, before + most, side="right")))
        cuts.append((first, last))
        first, before = last, int(sums[last - 1])
    return cuts


def check_arrow(data: Any) -> None:
    """Check that every offset, length and index of Arrow data stays within its buffers.

    Arrow trusts an array: offsets beyond its buffers, or indices beyond its dictionary, are read
    from whatever memory is there. So what comes from a file or a caller is checked first.

    Whether text is UTF-8 is not looked at: a reader says that of each record. It costs a look at
    each offset, not at each byte: a millisecond for some 300,000 texts of any length.

    Args:
        data: An array, chunked array, record batch or table.

    Raises:
        pa.ArrowInvalid: If one does not.
    """
    import pyarrow as pa

    if isinstance(data, pa.ChunkedArray):
        arrays = data.chunks
    elif isinstance(data, pa.Array):
        arrays = [data]
    else:
        arrays = [part for column in data.columns for part in getattr(column, "chunks", [column])]
    for array in arrays:
        while isinstance(array, pa.ExtensionArray):
            array = array.storage  # noqa: PLW2901
        array.validate()
        kind = _of_bytes(array.type)
        (array if kind is array.type else array.view(kind)).validate(full=True)


def check_given(name: str, data: Any) -> None:
    """Check Arrow data from a caller as `check_arrow` does; the error names it.

    Raises:
        UsageError: If something in it leads out of its buffers.
    """
    import pyarrow as pa

    try:
        check_arrow(data)
    except pa.ArrowInvalid as error:
        raise UsageError(f"{name}: not valid Arrow data: {error}; make it again") from None


def _of_bytes(kind: Any) -> Any:
    """The Arrow type with the same layout and binary in place of text."""
    import pyarrow as pa

    types = pa.types
    plain = {
        pa.string(): pa.binary(),
        pa.large_string(): pa.large_binary(),
        pa.string_view(): pa.binary_view(),
    }
    if types.is_dictionary(kind):
        result = pa.dictionary(kind.index_type, _of_bytes(kind.value_type), kind.ordered)
    elif types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        result = pa.struct([field.with_type(_of_bytes(field.type)) for field in fields])
    elif types.is_list(kind) or types.is_large_list(kind):
        make = pa.list_ if types.is_list(kind) else pa.large_list
        result = make(kind.value_field.with_type(_of_bytes(kind.value_type)))
    else:
        result = plain.get(kind, kind)
    return kind if result == kind else result
