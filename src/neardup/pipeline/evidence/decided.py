"""A run after its decision, as a report looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neardup.pipeline.run.collection import Collection
    from neardup.pipeline.run.matching import Grouping, Matching

__all__ = ["Decided"]


@dataclass(frozen=True, slots=True)
class Decided:
    """A run after its decision.

    Args:
        collection: Its documents, with their features.
        values: Their fingerprints.
        grouping: The decision.
        matching: How it came about.
        rejected: Records that could not be used.
        field: What the groups of the collection are; None: there are none.
    """

    collection: Collection
    values: Any
    grouping: Grouping
    matching: Matching
    rejected: int
    field: str | None = None
