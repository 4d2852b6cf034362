"""What a run takes at its peak, and where another search would take much less time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.errors import UsageError
from neardup.runtime.threads import worker_count
from neardup.similarity.band_plans import plan_bands, seconds_of
from neardup.similarity.recall import LEAST_FEATURES
from neardup.similarity.spilled import BYTES_A_KEY

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.pipeline.run.rule import Limits, Rule

__all__ = ["WRITE_BYTES_A_SECOND", "bands_instead", "memory_and_disk"]

BYTES_A_DOCUMENT: Final = 128
"""Measured: counts, offsets, record positions, priorities, decisions and scratch of the search."""
BYTES_A_POSTING: Final = 70
BYTES_A_KEY_ON_DISK: Final = 16
BYTES_AT_REST: Final = 350 << 20
"""Measured: libraries, kernels, and the texts on their way through."""
WRITE_BYTES_A_SECOND: Final = 1e9

RECALL: Final = 0.99
SLOW_SECONDS: Final = 10
"""Of an exact search; quicker ones are left in peace."""
TIMES_QUICKER: Final = 3
MOST_SMALL: Final = 0.1
"""Share of the features in documents that have too few for bands, and are joined exactly anyway."""


def memory_and_disk(
    rule: Rule, limits: Limits, documents: int, features: int, postings: int
) -> tuple[int, int]:
    """Bytes of memory at the peak, and of temporary files.

    Args:
        rule: How it decides.
        limits: Of which the budget counts.
        documents: How many there are.
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


def bands_instead(
    rule: Rule,
    sizes: npt.NDArray[np.int64],
    documents: int,
    seconds: float,
    workers: int | None = None,
) -> str | None:
    """Say that `--recall` below 1 is worth a thought, where an exact search is slow; else None.

    Args:
        rule: What was asked for.
        sizes: int64: how many features documents have, all of them or a sample.
        documents: How many there are.
        seconds: What the exact search takes.
        workers: Threads; the processors at hand unless given.
    """
    slow = rule.by_features and rule.recall == 1 and seconds >= SLOW_SECONDS
    if not slow or not len(sizes) or not rule.match.kind.has_bands:
        return None
    similarity = rule.match.similarity
    small = (sizes - 1) * rule.match.kind.size_ratio(similarity) < LEAST_FEATURES
    if sizes[small].sum() > MOST_SMALL * sizes.sum():
        return None
    try:
        plan = plan_bands(similarity, RECALL, documents, rule.measure)
    except UsageError:
        return None
    likely = seconds_of(plan, documents, int(np.mean(sizes))) / worker_count(workers)
    if TIMES_QUICKER * likely > seconds:
        return None
    return (
        f"the exact search takes about {seconds:,.0f} s; --recall {RECALL} takes about"
        f" {max(likely, 1):,.0f} s and what verifying its candidates takes, and finds"
        f" {RECALL:.0%} or more of the pairs"
    )
