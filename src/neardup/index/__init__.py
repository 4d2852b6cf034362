"""The index, "have I seen this?": by distance or by similarity, in memory and durable.

`memory` and `durable` are the calls; `queries` answers, `writing` takes, `segments` hold the rows;
`similar` has the same by similarity, and `base` what both share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.runtime.lazy import lazily

if TYPE_CHECKING:
    from neardup.index.durable import DurableIndex
    from neardup.index.hits import Hits, Id
    from neardup.index.memory import Index
    from neardup.index.protocol import Answer, AnyIndex, Stored

__all__ = ["Answer", "AnyIndex", "DurableIndex", "Hits", "Id", "Index", "Stored"]

_HOMES: Final = {
    "memory": ("Index",),
    "durable": ("DurableIndex",),
    "protocol": ("Answer", "AnyIndex", "Stored"),
    "hits": ("Hits", "Id"),
}
__getattr__ = lazily(__name__, _HOMES)
