"""What an index will cost, before anything is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.runtime.lazy import lazily

if TYPE_CHECKING:
    from neardup.index.plans.similar import plan_similar

__all__ = ["plan_similar"]

_HOMES: Final = {"similar": ("plan_similar",)}
__getattr__ = lazily(__name__, _HOMES)
