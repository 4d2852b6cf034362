"""Preparation of documents for an offer: all steps without a lock, in any thread or process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.errors import DataError, UsageError
from neardup.index.id_columns import ID_KINDS, check_id_kind, id_array, is_one_id, no_ids
from neardup.index.prepared import Prepared

if TYPE_CHECKING:
    from neardup.index.attachments import ContentCodec
    from neardup.index.protocol import Contents, Documents, Ids, Payloads
    from neardup.index.versions import AnyKind

__all__ = ["Preparer"]


class Preparer:
    """Prepares documents for an index.

    Args:
        kind: Of the index.
        codec: For the contents that it stores.
    """

    def __init__(self, kind: AnyKind, codec: ContentCodec) -> None:
        """Take the settings."""
        self._kind, self._codec = kind, codec
        settings = kind.settings()
        self.made_for = (kind.name, settings.get("bits"), settings["digest"], codec.kind)
        """The settings that two indexes must share for one to accept documents prepared for the
        other."""

    def prepared(
        self, ids: Ids, documents: Documents, contents: Contents | None, payloads: Payloads
    ) -> Prepared:
        """One document or many; UsageError for a bad one, as `BaseIndex.add_new` says."""
        if is_one_id(ids):
            ids, documents, contents, payloads = _as_many(ids, documents, contents, payloads)
        column = id_array(ids)
        names = ids if type(ids) is list and _are_plain(ids) else column.to_pylist()
        if (
            isinstance(documents, list) and len(documents) == 1
        ):  # a batch of one costs ten times as much
            one = self._kind.one(documents[0])
            many = self._kind.none() if one is None else self._kind.bunched([one])
            rows, offered = np.arange(0 if one is None else 1), 1
        else:
            many, rows, offered = self._kind.many(documents)
        if len(names) != offered:
            noun = self._kind.noun
            raise UsageError(f"{len(names):,} ids for {offered:,} {noun}: give one for each")
        kept = self._codec.attachments(names, documents, contents, payloads)
        return Prepared(self.made_for, list(names), column, many, rows, kept)

    def sifted(
        self, ids: Ids, documents: Documents, contents: Contents | None, payloads: Payloads,
        id_kind: str | None,
    ) -> Prepared:  # fmt: skip
        """As `prepared`, but bad documents become `problems` and the others are prepared.

        Args:
            ids: As in `prepared`.
            documents: As in `prepared`.
            contents: As in `prepared`.
            payloads: As in `prepared`.
            id_kind: The kind of the ids of the index, if it has any.

        Raises:
            UsageError: If there are not as many documents as ids.
        """
        try:
            prepared = self.prepared(ids, documents, contents, payloads)
            check_id_kind(prepared.id_kind, id_kind if len(prepared) else None)
        except (UsageError, DataError):
            if is_one_id(ids):
                ids, documents, contents, payloads = _as_many(ids, documents, contents, payloads)
        else:
            return prepared
        columns = [_listed(each) for each in (ids, documents, contents, payloads)]
        counts = {len(each) for each in columns if each is not None}
        if len(counts) > 1:
            return self.prepared(ids, documents, contents, payloads)  # which says what is wrong
        return self._row_by_row(columns, id_kind)

    def _row_by_row(self, columns: list[Any], id_kind: str | None) -> Prepared:
        """Each document prepared alone."""
        names, documents, contents, payloads = [*columns[0]], *columns[1:]
        good, rows, problems = list[Prepared](), list[int](), dict[int, str]()
        for row, (name, document) in enumerate(zip(names, documents, strict=True)):
            content = contents and [contents[row]]
            payload = payloads and [payloads[row]]
            try:
                part = self.prepared([name], [document], content, payload)
                check_id_kind(part.id_kind, id_kind)
            except (UsageError, DataError) as error:
                problems[row] = str(error)
                continue
            id_kind, names[row] = part.id_kind, part.ids[0]  # as it is stored
            good.append(part)
            rows.append(row)
        none = no_ids(ID_KINDS[id_kind or "str"], 0)
        nothing = Prepared(self.made_for, [], none, self._kind.none(), np.empty(0, np.int64))
        whole = Prepared.joined(good) if good else nothing
        places = np.array(rows, np.int64)
        kept: list[bytes | None] | None = None
        if whole.attachments is not None:
            kept = [None] * len(names)
            for row, each in zip(rows, whole.attachments, strict=True):
                kept[row] = each
        at = places[whole.rows]
        where = np.full(len(names), len(rows))
        where[rows] = np.arange(len(rows))
        column = pa.concat_arrays([whole.column, no_ids(whole.column.type, 1)])
        column = column.take(pa.array(where))
        return Prepared(self.made_for, names, column, whole.contents, at, kept, problems)


def _are_plain(ids: list[Any]) -> bool:
    """Whether all are values of exactly `str` or `int`, which are stored as they are."""
    kinds = set(map(type, ids))
    return kinds in ({str}, {int})


def _as_many(one: Any, document: Any, content: Any, payload: Any) -> tuple[Any, ...]:
    """One document as a batch of one."""
    return (
        [one],
        [document],
        None if content is None else [content],
        None if payload is None else [payload],
    )


def _listed(values: Any) -> list[Any] | None:
    if values is None or isinstance(values, list):
        return values
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return list(values.to_pylist())
    return list(values)
