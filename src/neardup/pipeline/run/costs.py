"""What a run takes at its peak, from what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from neardup.pipeline.run.matching import Matching
    from neardup.pipeline.run.resources import Resources

__all__ = ["WRITE_BYTES_A_SECOND", "memory_and_disk"]

BYTES_A_DOCUMENT: Final = 96
"""Measured: counts, offsets, record positions, priorities, decisions and scratch of the search."""
BYTES_A_POSTING: Final = 64
BYTES_AT_REST: Final = 350 << 20
"""Measured: libraries, kernels, and the texts on their way through."""
WRITE_BYTES_A_SECOND: Final = 1e9


def memory_and_disk(
    matching: Matching, resources: Resources, documents: int, features: int, postings: int
) -> tuple[int, int]:
    """Bytes of memory at the peak, and of temporary files.

    Args:
        matching: How it decides.
        resources: Of which the budget counts.
        documents: How many there are.
        features: Of all documents together.
        postings: Entries of the search's index.
    """
    spool = 8 * features if matching.by_features else 0
    on_disk = spool if spool > resources.memory // 8 else 0
    counts = min(4 * features, resources.memory // 8) if matching.by_features else 0
    memory = (
        documents * (BYTES_A_DOCUMENT + 8 * matching.recipe.words)
        + (0 if on_disk else spool)
        + counts
        + postings * BYTES_A_POSTING
        + BYTES_AT_REST
    )
    return memory, on_disk
