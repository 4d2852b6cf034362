"""Arrow data from elsewhere, looked at before anything follows its offsets.

Arrow trusts an array: offsets beyond its buffers, or indices beyond its dictionary, are read from
whatever memory is there. So what comes from a file or from a caller is checked first.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from neardup.errors import UsageError

__all__ = ["check_arrow", "check_given"]


def check_arrow(data: Any) -> None:
    """Check that every offset, length and index of Arrow data stays within its buffers.

    Whether text is UTF-8 is not looked at: a reader says that of each record. It costs a look at
    each offset, not at each byte: a millisecond for some 300,000 texts of any length.

    Args:
        data: An array, chunked array, record batch or table.

    Raises:
        pa.ArrowInvalid: If one does not.
    """
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
    """As `check_arrow`, of what a caller hands over under a name.

    Raises:
        UsageError: If something in it leads out of its buffers.
    """
    try:
        check_arrow(data)
    except pa.ArrowInvalid as error:
        raise UsageError(f"{name}: no valid Arrow data: {error}; make it anew") from None


_BYTES: Final = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def _of_bytes(kind: Any) -> Any:
    """The type whose values are laid out alike, with binary instead of text; itself without any."""
    types = pa.types
    if types.is_dictionary(kind):
        made = pa.dictionary(kind.index_type, _of_bytes(kind.value_type), kind.ordered)
    elif types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        made = pa.struct([field.with_type(_of_bytes(field.type)) for field in fields])
    elif types.is_list(kind) or types.is_large_list(kind):
        make = pa.list_ if types.is_list(kind) else pa.large_list
        made = make(kind.value_field.with_type(_of_bytes(kind.value_type)))
    else:
        made = _BYTES.get(kind, kind)
    return kind if made == kind else made
