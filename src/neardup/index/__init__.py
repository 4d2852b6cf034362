"""The index, "have I seen this?": fingerprints by distance, in memory and durable.

`memory` and `durable` are the calls; `queries` answers, `writing` takes, `segments` hold the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.runtime.lazy import lazily

if TYPE_CHECKING:
    from neardup.index.durable import DurableIndex
    from neardup.index.hits import Hits
    from neardup.index.memory import Index

__all__ = ["DurableIndex", "Hits", "Index"]

_HOMES: Final = {
    "memory": ("Index",),
    "durable": ("DurableIndex",),
    "hits": ("Hits",),
}
__getattr__ = lazily(__name__, _HOMES)
