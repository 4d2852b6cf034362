"""Compile the kernels of the search in a second process, while the first one reads.

Numba compiles one kernel at a time in a process, so another process takes half of the work of a
first start. Both find in the cache (kernels/cache.py) what either has compiled.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from neardup.runtime.storage.spool import FeatureSpool
from neardup.runtime.threads import worker_count
from neardup.similarity.feature_sets import FeatureSets, Match
from neardup.similarity.join import similar_greedy

__all__ = ["compile_search", "search_compiler"]

_SPOOL_BYTES = 1 << 12


def compile_search() -> None:
    """Load the kernels of a search by similarity, as a run over documents does."""
    features = np.arange(3, dtype=np.uint64)
    with FeatureSpool(_SPOOL_BYTES) as spool:
        spool.append(features)
        spool.append(features)
        values, offsets = np.zeros((2, 1), np.uint64), np.array([0, 3, 6])
        sets = FeatureSets(spool.finish(), offsets, values)
        similar_greedy(sets, np.arange(2), Match())


def search_compiler() -> subprocess.Popen[bytes] | None:
    """Start `compile_search` in a process of its own; None if there is no core for it."""
    if worker_count(None) == 1:
        return None
    program = "from neardup.pipeline.warm import compile_search; compile_search()"
    silent = subprocess.DEVNULL
    return subprocess.Popen(  # noqa: S603  # nothing in it comes from outside
        [sys.executable, "-c", program], stdin=silent, stdout=silent, stderr=silent
    )
