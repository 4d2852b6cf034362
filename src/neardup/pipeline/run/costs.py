"""The peak memory and disk of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.similarity.spilled import BYTES_A_KEY

if TYPE_CHECKING:
    from neardup.pipeline.run.rule import Limits, Rule

__all__ = ["WRITE_BYTES_A_SECOND", "memory_and_disk"]

BYTES_A_DOCUMENT: Final = 128
"""Measured: counts, offsets, record positions, priorities, decisions and scratch of the search."""
BYTES_A_POSTING: Final = 70
BYTES_A_KEY_ON_DISK: Final = 16
BYTES_AT_REST: Final = 350 << 20
"""Measured: libraries, kernels, and the texts on their way through."""
WRITE_BYTES_A_SECOND: Final = 1e9


def memory_and_disk(
    rule: Rule, limits: Limits, documents: int, features: int, postings: int
) -> tuple[int, int]:
    """Bytes of memory at the peak, and of temporary files.

    Args:
        rule: Of the run.
        limits: With the memory budget.
        documents: The number of documents.
        features: Of all documents together.
        postings: Entries of the search's index.
    """
    spool = 8 * features if rule.by_features else 0
    in_memory = 0 if spool > limits.memory // 8 else spool
    index, keys = postings * BYTES_A_POSTING, 0
    if rule.by_features and postings * BYTES_A_KEY > limits.memory // 2:
        index, keys = limits.memory // 2, postings * BYTES_A_KEY_ON_DISK
    counts = min(4 * features, limits.memory // 8) if rule.by_features else 0
    memory = (
        documents * (BYTES_A_DOCUMENT + 8 * rule.recipe.words)
        + in_memory
        + counts
        + index
        + BYTES_AT_REST
    )
    return memory, spool - in_memory + keys
