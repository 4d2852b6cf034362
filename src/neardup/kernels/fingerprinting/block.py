"""Fingerprint a block of documents: tokenise, hash each feature, fold. One pass a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.kernels.features.capacity import capacity_for
from neardup.kernels.features.runs import hash_features
from neardup.kernels.features.tokenise import SLACK, made_tokens, tokenise
from neardup.kernels.features.xxh3 import hasher_of
from neardup.kernels.fingerprinting.fold import PLANES, distinct, fold_equal
from neardup.kernels.fingerprinting.fold_arguments import Work
from neardup.kernels.fingerprinting.weighing import COUNT, fold_weighed
from neardup.kernels.jit import fill, inlined, inner, kernel, making, move

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Int64s, Offsets, Uint64s
    from neardup.kernels.features.token_arguments import Capacity, Cutting
    from neardup.kernels.fingerprinting.fold_arguments import Folding, Weighing


@inner
def table_size(items: int) -> int:
    """The slots of an open table for a number of items: a power of two, at least twice it."""
    size = 2
    while size < 2 * items:
        size *= 2
    return size


@making
def _work_for(capacity: Capacity, folding: Folding, weighing: Weighing, kind: Any) -> Work:
    """Working memory for texts that take so much."""
    most = capacity.tokens + SLACK
    all_count = weighing is None and folding.weight == COUNT and not folding.keep_features
    weighed = 0 if weighing is None else most
    hasher, hashes = hasher_of(folding.seed), np.empty(most, np.uint64)
    return Work(
        made_tokens(capacity),
        hasher,
        hashes,
        np.empty(1 if all_count else table_size(most), np.uint64),
        np.empty(PLANES, np.uint64),
        hasher if kind is None else hasher_of(np.uint64(0)),
        hashes if kind is None else np.empty(weighed, np.uint64),
        np.empty(weighed, np.int64),
        np.empty(weighed, np.int64),
        np.empty(64, np.int64),
    )


@inlined
def _fold_plain(
    tokens: int, cutting: Cutting, folding: Folding, kind: Any, work: Work, out: Uint64s
) -> int:
    """As `fold_weighed`, where all features count and none has a weight of its own.

    Always compiled into the kernel: passing its arguments on takes a fifth of a short text.
    """
    hashes, by_count, count = work.hashes, folding.weight == COUNT, np.int64(0)
    if tokens:
        gap = 0 if cutting.chars else 1
        count = hash_features(work.tokens, tokens, cutting.ngram, gap, work.hasher, hashes, kind)
    if not by_count:
        count = distinct(hashes, count, work.cells, work.units)
    if count == 0:
        fill(out, 0, out.size, np.uint64(0))
    else:
        fold_equal(hashes, count, folding.tie_one, work.planes, out)
    if by_count and folding.keep_features:
        count = distinct(hashes, count, work.cells, work.units)
    return count


@kernel
def fingerprint_block(
    data: Bytes, offsets: Offsets, cutting: Cutting, folding: Folding, weighing: Weighing,
    kind: Any, out: Uint64s, counts: Int64s,
) -> Any:  # fmt: skip
    """Fingerprint documents data[offsets[i]:offsets[i + 1]]; writes out[i] and counts[i].

    O(bytes + features * words), with scratch for the document that takes most (`capacity_for`).

    Args:
        data: uint8, valid UTF-8, may be read-only.
        offsets: int64 (n + 1,), may be read-only.
        cutting: Cutting.
        folding: Folding.
        weighing: Weighing, or None (compiled apart, and faster).
        kind: None for XXH3 and, for TFIDF, seed 0; else the hash, as `hash_bytes` takes it
            (compiled apart).
        out: uint64 (n, words), C contiguous, written; rows of empty documents become 0; no
            fingerprints are made if words is 0.
        counts: int64 (n,), written: the document's features; 0 if none are left. Distinct ones
            unless features are summed up by occurrence and are not kept.

    Returns:
        uint64: the feature hashes of document 0, then of document 1, and so on, each in order of
        first occurrence; empty unless wanted.
    """
    # Taken out of the tuples once: an access in the loop would count references each time.
    keep_features = folding.keep_features
    work = _work_for(capacity_for(data, offsets, cutting), folding, weighing, kind)
    capacity, hashes = work.tokens, work.hashes
    features = np.empty((offsets[-1] - offsets[0]) // 4 if keep_features else 0, np.uint64)
    used = 0
    for i in range(offsets.size - 1):
        tokens = tokenise(data, offsets[i], offsets[i + 1], cutting, capacity)
        if weighing is None:
            count = _fold_plain(tokens, cutting, folding, kind, work, out[i])
        else:
            count = fold_weighed(tokens, cutting, folding, weighing, kind, work, out[i])
        counts[i] = count
        if keep_features:
            if used + count > features.size:
                larger = np.empty(2 * (used + count), np.uint64)
                move(features, used, larger)
                features = larger
            move(hashes, count, features[used:])
            used += count
    return features[:used]
