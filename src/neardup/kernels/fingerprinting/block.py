"""Fingerprint a block of documents: tokenise, hash each feature, fold. One pass a document."""

from __future__ import annotations

from typing import Any

import numpy as np

from neardup.kernels.features.hashes import hash_feature
from neardup.kernels.features.tokenise import (
    BUFFER_RATIO,
    SEGMENT_RATIO,
    SLACK,
    TOKEN_RATIO,
    tokenise,
)
from neardup.kernels.features.xxh3 import SCRATCH, seeded_secret, xxh3_runs
from neardup.kernels.fingerprinting.fold import PLANES, distinct, fold_equal
from neardup.kernels.jit import fill, inner, kernel, move

SET, COUNT = 0, 1


@inner
def hash_features(
    buffer: Any, starts: Any, tokens: int, ngram: int, gap: int, seed: Any, secret: Any,
    lanes: Any, hashes: Any, kind: Any = None,
) -> int:  # fmt: skip
    """Hash every run of `ngram` of the 1 or more tokens, or all of fewer; returns how many.

    `kind` None is XXH3, and compiles without the other hashes; else see `hash_feature`.
    """
    width = min(ngram, tokens)
    count = tokens - width + 1
    hash_runs(buffer, starts, np.int64(0), count, width, gap, seed, secret, lanes, hashes, kind)
    return count


@inner
def hash_runs(
    buffer: Any, starts: Any, first: int, last: int, width: int, gap: int, seed: Any, secret: Any,
    lanes: Any, hashes: Any, kind: Any = None,
) -> None:  # fmt: skip
    """Hash the runs of `width` tokens that begin with tokens `first` to `last` - 1."""
    if kind is None:
        xxh3_runs(buffer, starts, first, last, width, gap, seed, secret, lanes, hashes)
        return
    for i in range(first, last):
        start = starts[i]
        size = starts[i + width] - gap - start
        hashes[i] = hash_feature(kind, buffer, start, size, seed, secret, lanes)


@inner
def longest_text(offsets: Any) -> int:
    """Bytes of the longest document."""
    longest = 0
    for i in range(offsets.size - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    return longest


@inner
def table_size(items: int) -> int:
    """Slots, a power of two, of an open table for so many items: at least twice as many."""
    size = 2
    while size < 2 * items:
        size *= 2
    return size


@kernel
def fingerprint_block(
    data: Any, offsets: Any, tables: Any, case_bit: Any, chars: bool, ngram: int, weight: int,
    seed: Any, tie_one: bool, out: Any, counts: Any, keep_features: bool, kind: Any,
) -> Any:  # fmt: skip
    """Fingerprint documents data[offsets[i]:offsets[i + 1]]; writes out[i] and counts[i].

    O(bytes + features * words); scratch is that of the longest document.

    Args:
        data: uint8, valid UTF-8, may be read-only.
        offsets: int64 (n + 1,), may be read-only.
        tables: neardup.features.unicode.Tables of the recipe's normal form and folding.
        case_bit: uint8, 0x20 to fold case, else 0.
        chars: Tokens are code points, not words.
        ngram: Tokens a feature.
        weight: SET or COUNT.
        seed: uint64, of the hash.
        tie_one: The bit where a sum is exactly 0.
        out: uint64 (n, words), C contiguous, written; rows of empty documents become 0; no
            fingerprints are made if words is 0.
        counts: int64 (n,), written: the document's features; 0 if it has no tokens. Distinct ones
            unless the weight is COUNT and features are not kept.
        keep_features: Return the distinct feature hashes.
        kind: None for XXH3; else the hash, as `hash_feature` takes it (compiled apart).

    Returns:
        uint64: the feature hashes of document 0, then of document 1, and so on, each in order of
        first occurrence; empty unless wanted.
    """
    longest = longest_text(offsets)
    points = np.empty(SEGMENT_RATIO * longest + SLACK, np.uint32)
    classes = np.empty(points.size, np.uint8)
    buffer = np.empty(BUFFER_RATIO * longest + SLACK, np.uint8)
    most = TOKEN_RATIO * longest + SLACK
    starts = np.empty(most, np.int64)
    hashes = np.empty(most, np.uint64)
    table = np.empty(1 if weight == COUNT and not keep_features else table_size(most), np.uint64)
    nothing = np.empty(0, np.int64)
    planes = np.empty(PLANES, np.uint64)
    secret, lanes = seeded_secret(seed), np.empty(SCRATCH, np.uint64)
    features = np.empty((offsets[-1] - offsets[0]) // 4 if keep_features else 0, np.uint64)
    used = 0
    gap = 0 if chars else 1
    for i in range(offsets.size - 1):
        tokens = tokenise(
            data, offsets[i], offsets[i + 1], tables, chars, case_bit, points, classes, buffer,
            starts,
        )  # fmt: skip
        count = np.int64(0)
        if tokens:
            count = hash_features(
                buffer, starts, tokens, ngram, gap, seed, secret, lanes, hashes, kind
            )  # fmt: skip
        if weight != COUNT:
            count = distinct(hashes, count, table, nothing)
        if count == 0:
            fill(out[i], 0, out.shape[1], np.uint64(0))
        else:
            fold_equal(hashes, count, tie_one, planes, out[i])
        if weight == COUNT and keep_features:
            count = distinct(hashes, count, table, nothing)
        counts[i] = count
        if keep_features:
            if used + count > features.size:
                larger = np.empty(2 * (used + count), np.uint64)
                move(features, used, larger)
                features = larger
            move(hashes, count, features[used:])
            used += count
    return features[:used]
