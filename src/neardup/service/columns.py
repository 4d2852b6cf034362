"""Documents of an Arrow stream as columns: ids, and texts, features or fingerprints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from neardup.service.messages import MOST_FEATURES

if TYPE_CHECKING:
    from neardup.service.messages import Terms
    from neardup.service.settings import Limits

__all__ = ["Columns"]

FIELDS: Final = 2
FINGERPRINT_CUTS: Final = 4
"""Times as many fingerprints as texts are committed together: a commit costs as much as hundreds of
them, and 2,048 take the committer less time than 512 texts."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Documents of one form as Arrow columns, each of them valid.

    Args:
        ids: Arrow array of strings or whole numbers, without nulls.
        documents: Arrow array of texts, lists of features or fingerprints, without nulls.
    """

    ids: pa.Array
    documents: pa.Array

    @classmethod
    def of(cls, table: pa.Table, terms: Terms) -> Self | None:
        """The columns of a table; None if rows must be read singly to report what is wrong."""
        names = table.column_names
        if len(names) != FIELDS or "id" not in names or not len(table):
            return None
        form = names[1 - names.index("id")]
        if form not in terms.takes or any(each.null_count for each in table.columns):
            return None
        ids, documents = (table[name].combine_chunks() for name in ("id", form))
        if not (_are_ids(ids, terms.limits) and _FITS[form](documents, terms)):
            return None
        return cls(ids, documents)

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.ids)

    def __getitem__(self, cut: slice) -> Self:
        """A slice of the documents."""
        return type(self)(self.ids[cut], self.documents[cut])

    def cut_rows(self, limits: Limits) -> int:
        """The number of documents that one commit takes."""
        is_cheap = pa.types.is_integer(self.documents.type)
        return limits.cut_rows * (FINGERPRINT_CUTS if is_cheap else 1)

    @property
    def nbytes(self) -> int:
        """The approximate bytes of the documents."""
        return 100 * len(self) + int(self.documents.nbytes)


def _are_ids(ids: pa.Array, limits: Limits) -> bool:
    if _is_text(ids):
        return _longest(pc.utf8_length(ids)) <= limits.id_characters
    return bool(pa.types.is_signed_integer(ids.type))


def _is_text(array: pa.Array) -> bool:
    return bool(pa.types.is_string(array.type) or pa.types.is_large_string(array.type))


def _longest(lengths: pa.Array) -> int:
    return pc.max(lengths).as_py() or 0


def _are_texts(texts: pa.Array, terms: Terms) -> bool:
    return _is_text(texts) and _longest(pc.utf8_length(texts)) <= terms.limits.text_characters


def _are_features(lists: pa.Array, _: Terms) -> bool:
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        return False
    values = lists.flatten()
    is_short = _longest(pc.list_value_length(lists)) <= MOST_FEATURES
    return is_short and not values.null_count and _are_below(values, 64)


def _are_fingerprints(values: pa.Array, terms: Terms) -> bool:
    return _are_below(values, terms.bits)


def _are_below(values: pa.Array, bits: int) -> bool:
    """Whether all values are whole numbers of at most `bits` bits."""
    if not pa.types.is_integer(values.type):
        return False
    if not len(values):
        return True
    ends: Any = pc.min_max(values).as_py()
    return bool(ends["min"] >= 0 and ends["max"] >> bits == 0)


_FITS: Final = {"text": _are_texts, "features": _are_features, "fingerprint": _are_fingerprints}
