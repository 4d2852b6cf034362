"""The index that survives: the calls of `neardup.Index`, and each commit whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.runtime.lazy import lazily

if TYPE_CHECKING:
    from neardup.index.durable.durable_index import DurableIndex

__all__ = ["DurableIndex"]

_HOMES: Final = {
    "durable_index": ("DurableIndex",),
}
__getattr__ = lazily(__name__, _HOMES)
