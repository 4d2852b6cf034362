"""Hash the features of a text: its runs of n tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.kernels.features.byte_hashes import hash_bytes
from neardup.kernels.features.xxh3 import xxh3_runs
from neardup.kernels.jit import inner

if TYPE_CHECKING:
    from neardup.kernels.array_types import Hashes
    from neardup.kernels.features.token_arguments import Hasher, Tokens


@inner
def hash_features(
    tokens: Tokens, count: int, ngram: int, gap: int, hasher: Hasher, hashes: Hashes,
    kind: Any = None,
) -> int:  # fmt: skip
    """Hash every run of `ngram` of the 1 or more tokens, or all of fewer; returns how many.

    `kind` None is XXH3, and compiles without the other hashes; else see `hash_bytes`.
    """
    width = min(ngram, count)
    runs = count - width + 1
    if kind is None:
        hash_runs(tokens, np.int64(0), runs, width, gap, hasher, hashes)
        return runs
    buffer, starts = tokens.buffer, tokens.starts
    seed, secret, scratch = hasher.seed, hasher.secret, hasher.scratch
    for i in range(runs):
        start = starts[i]
        size = starts[i + width] - gap - start
        hashes[i] = hash_bytes(kind, buffer, start, size, seed, secret, scratch)
    return runs


@inner
def hash_runs(
    tokens: Tokens, first: int, last: int, width: int, gap: int, hasher: Hasher, hashes: Hashes
) -> None:
    """XXH3 of the runs of `width` tokens that begin with tokens `first` to `last` - 1."""
    xxh3_runs(tokens.buffer, tokens.starts, first, last, width, gap, hasher, hashes)
