"""Prepared documents, which can be offered, and sent from one process to another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.index.id_columns import kind_of_array, no_ids
from neardup.index.set_arrays import Sets, joined_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.index.hits import Id
    from neardup.runtime.types import Rows

__all__ = ["Prepared"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Documents with their features or fingerprints, for `Index.add` and `Index.add_new`.

    It can be pickled, so another process may prepare documents for the writer.

    Args:
        made_for: Kind, width, recipe and contents of the index; other indexes refuse it.
        ids: Of all documents.
        column: The same as an Arrow array; any value for a document with a problem.
        contents: Fingerprints, uint64 (m, width), or Sets of those that have tokens.
        rows: int64 (m,), ascending: which documents these are.
        attachments: The attachment of each document; None if there are none.
        problems: The error of each invalid document, by its position in `ids`.
    """

    made_for: tuple[Any, ...]
    ids: list[Id]
    column: pa.Array
    contents: Any
    rows: Rows
    attachments: list[bytes | None] | None = None
    problems: dict[int, str] = field(default_factory=dict)

    @property
    def id_kind(self) -> str:
        """The kind of the ids: "int" or "str"."""
        return kind_of_array(self.column)

    def __len__(self) -> int:
        """Documents, empty and refused ones included."""
        return len(self.ids)

    @classmethod
    def joined(cls, parts: Sequence[Prepared]) -> Self:
        """The documents of several Prepared, one after the other, to be offered in one call.

        Args:
            parts: One or more. Ids of another type than those of the first become problems.

        Raises:
            UsageError: If they were prepared for different indexes, or there are none.

        Example:
            >>> from neardup import Index
            >>> from neardup.index import Prepared
            >>> index = Index(distance=1)
            >>> parts = [index.prepare("a", 0b1011), index.prepare("b", 0b1010)]
            >>> [answer.state for answer in index.offer_many(Prepared.joined(parts))]
            ['new', 'seen']
        """
        if not parts:
            raise UsageError("no prepared documents: pass one or more")
        head = next((each for each in parts if len(each.problems) < len(each)), parts[0])
        ids, rows, contents, problems = list[Any](), list[Any](), list[Any](), dict[int, str]()
        columns = list[Any]()
        has_attachments = any(each.attachments is not None for each in parts)
        attachments = list[bytes | None]()
        for part in parts:
            part.check_made_for(head.made_for)
            first = len(ids)
            ids += part.ids
            attachments += part.attachments or [None] * len(part)
            problems.update({first + row: each for row, each in part.problems.items()})
            if part.id_kind == head.id_kind:
                columns.append(part.column)
                rows.append(part.rows + first)
                contents.append(part.contents)
            else:
                columns.append(no_ids(head.column.type, len(part)))
                other = f"the index has ids of kind {head.id_kind}, not {part.id_kind}"
                problems.update({first + row: other for row in range(len(part))} | problems)
        many = joined_sets(contents) if isinstance(head.contents, Sets) else _stacked(contents)
        kept = attachments if has_attachments else None
        column = pa.concat_arrays(columns)
        return cls(head.made_for, ids, column, many, np.concatenate(rows), kept, problems)

    def check_made_for(self, index: tuple[Any, ...]) -> None:
        """Raise UsageError if it was prepared for another kind of index."""
        if self.made_for != index:
            raise UsageError(
                f"the documents were prepared for an index of {self.made_for}, and this one is of"
                f" {index}: prepare them with this index, or with one that has its settings"
            )


def _stacked(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
