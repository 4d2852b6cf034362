"""The index, "have I seen this?": by distance or by similarity, in memory and durable.

`memory_index`, `durable` and `base_index` are the calls, `row_writer` the rules of adding,
`prepared` the form of documents before they are added, `queries` the questions. A kind
(`distance_kind`, `similarity_kind`) says what rows hold and how they are searched; a version
(`versions`) is the content of an index at one moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.runtime.lazy import lazily

if TYPE_CHECKING:
    from neardup.index.durable import DurableIndex
    from neardup.index.hits import Answer, Hits, Id
    from neardup.index.memory_index import Index
    from neardup.index.prepared import Prepared
    from neardup.index.protocol import AnyIndex, Stored

__all__ = ["Answer", "AnyIndex", "DurableIndex", "Hits", "Id", "Index", "Prepared", "Stored"]

_HOMES: Final = {
    "memory_index": ("Index",),
    "prepared": ("Prepared",),
    "durable": ("DurableIndex",),
    "protocol": ("AnyIndex", "Stored"),
    "hits": ("Answer", "Hits", "Id"),
}
__getattr__ = lazily(__name__, _HOMES)
