"""Columns by name, and fields of struct columns: "doc.body" unless a column is named so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.files.problems import longest_field

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "column_of",
    "is_list_of_text",
    "join_lists",
    "leaf_names",
    "text_like",
    "top_column",
    "type_of",
]

_END = pa.scalar("\n", pa.large_string())
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)


def type_of(schema: pa.Schema, name: str) -> pa.DataType | None:
    """The type of a column or of a field in it; None if there is none, or more than one."""
    if schema.names.count(name):
        return schema.field(name).type if schema.names.count(name) == 1 else None
    first, _, rest = name.partition(".")
    if not rest or schema.names.count(first) != 1:
        return None
    kind = schema.field(first).type
    for part in rest.split("."):
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        kind = kind.field(part).type
    return kind


def top_column(schema: pa.Schema, name: str) -> str:
    """The column that a name, which `type_of` knows, lies in."""
    return name if name in schema.names else name.partition(".")[0]


def column_of(table: pa.Table | pa.RecordBatch, name: str) -> Any:
    """A column, or a field in it; null where any struct around it is null.

    Views of strings, as Polars has them, become large strings: Arrow takes no rows of views.
    """
    top = top_column(table.schema, name)
    column = table.column(table.schema.get_field_index(top))
    values = column if top == name else pc.struct_field(column, name.split(".")[1:])
    if pa.types.is_dictionary(values.type) and pa.types.is_string_view(values.type.value_type):
        return values.cast(pa.dictionary(values.type.index_type, pa.large_string()))
    return values.cast(pa.large_string()) if pa.types.is_string_view(values.type) else values


def is_list_of_text(kind: pa.DataType) -> bool:
    """Whether a column's type is a list of strings."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in lists) and any(test(kind.value_type) for test in _TEXTS)


def join_lists(column: pa.Array) -> pa.Array:
    """Each list of strings as one text, its strings joined by line ends; null with a null in it."""
    kind = pa.large_list(pa.large_string())
    return pc.binary_join(column.cast(kind), _END)


def leaf_names(schema: pa.Schema) -> list[str]:
    """Every column, and every field in a struct column by its path."""
    return [name for field in schema for name, _ in _leaves(field.name, field.type)]


def text_like(sample: pa.Table) -> str | None:
    """The column or field with the longest texts in some rows; None without any text."""
    sizes: dict[str, int] = {}
    for field in sample.schema:
        for name, kind in _leaves(field.name, field.type):
            if not any(test(kind) for test in _TEXTS):
                continue
            if type_of(sample.schema, name) is None:
                continue
            sizes[name] = pc.sum(pc.utf8_length(column_of(sample, name))).as_py() or 0
    return longest_field(sizes)


def _leaves(name: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if not pa.types.is_struct(kind):
        yield name, kind
        return
    for field in kind:
        yield from _leaves(f"{name}.{field.name}", field.type)
