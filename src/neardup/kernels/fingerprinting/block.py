"""Fingerprint a block of documents: tokenise, hash each feature, fold. One pass a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.features.capacity import capacity_for
from neardup.kernels.features.runs import hash_features
from neardup.kernels.features.token_arguments import Capacity, Hasher
from neardup.kernels.features.tokenise import (
    BUFFER_RATIO,
    SEGMENT_RATIO,
    SLACK,
    TOKEN_RATIO,
    made_tokens,
    plain_tokens,
    tokenise,
)
from neardup.kernels.features.xxh3 import SCRATCH, hasher_of, seeded_secret
from neardup.kernels.fingerprinting.fold import PLANES, distinct, fold_equal
from neardup.kernels.fingerprinting.fold_arguments import Work
from neardup.kernels.fingerprinting.weighing import COUNT, fold_weighed
from neardup.kernels.jit import fill, inlined, inner, kernel, making, move

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Int64s, Offsets, Uint64s
    from neardup.kernels.features.token_arguments import Cutting, Tokens
    from neardup.kernels.fingerprinting.fold_arguments import Folding, Weighing


def _plain_work(
    capacity: Capacity, tokens: Tokens, hashers: tuple[Hasher, Hasher], features: int,
    folding: Folding, weighing: Weighing, kind: Any,
) -> Work:  # fmt: skip
    """Working memory for texts that need this capacity, with `tokens` as a part of it."""
    most = capacity.tokens + SLACK
    cells, weighed = 2, 0 if weighing is None else most
    while cells < 2 * most:
        cells *= 2
    if weighing is None and folding.weight == COUNT and not folding.keep_features:
        cells = 1
    hashes = np.empty(most, np.uint64)
    return Work(
        tokens,
        hashers[0],
        hashes,
        np.empty(cells, np.uint64),
        np.empty(PLANES, np.uint64),
        hashers[1],
        hashes if kind is None else np.empty(weighed, np.uint64),
        np.empty(weighed, np.int64),
        np.empty(weighed, np.int64),
        np.empty(64, np.int64),
        np.empty(features, np.uint64),
        kind,
    )


_made_work: Final[Any] = making(_plain_work)


def work_for(
    longest: int, features: int, folding: Folding, weighing: Weighing | None, kind: Any
) -> Work:
    """Make the working memory of `fingerprint_block` for texts of up to `longest` bytes.

    Physical memory is used only as far as texts reach into it.

    Args:
        longest: Bytes.
        features: Room for the features of a block, if they are kept; the kernel makes more.
        folding: As for `fingerprint_block`.
        weighing: Likewise.
        kind: The hash: see `Work`.
    """
    capacity = Capacity(TOKEN_RATIO * longest, BUFFER_RATIO * longest, SEGMENT_RATIO * longest)
    hashers = [
        Hasher(seed, seeded_secret(seed), np.empty(SCRATCH, np.uint64))
        for seed in (folding.seed, folding.seed if kind is None else np.uint64(0))
    ]
    count = features if folding.keep_features else 0
    tokens = plain_tokens(capacity)
    return _plain_work(capacity, tokens, (hashers[0], hashers[1]), count, folding, weighing, kind)


@making
def _larger_work(
    capacity: Capacity, features: int, folding: Folding, weighing: Weighing, kind: Any
) -> Work:
    """As `work_for`, in a kernel, for a capacity that it has counted."""
    hasher = hasher_of(folding.seed)
    hashers = hasher, hasher if kind is None else hasher_of(np.uint64(0))
    tokens = made_tokens(capacity)
    return _made_work(capacity, tokens, hashers, features, folding, weighing, kind)


@inner
def _is_enough(work: Work, capacity: Capacity) -> bool:
    tokens = work.tokens
    return (
        tokens.starts.size >= capacity.tokens + SLACK
        and tokens.buffer.size >= capacity.nbytes + SLACK
        and tokens.points.size >= capacity.points + SLACK
    )


@inlined
def _fold_plain(
    tokens: int, cutting: Cutting, folding: Folding, kind: Any, work: Work, out: Uint64s
) -> int:
    """As `fold_weighed`, where all features count and none has a weight of its own.

    Always inlined: passing its arguments on takes a fifth of the time of a short text.
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
    given: Work, out: Uint64s, counts: Int64s,
) -> Any:  # fmt: skip
    """Fingerprint documents data[offsets[i]:offsets[i + 1]]; writes out[i] and counts[i].

    O(bytes + features * words).

    Args:
        data: uint8, valid UTF-8, may be read-only.
        offsets: int64 (n + 1,), may be read-only.
        cutting: Cutting.
        folding: Folding.
        weighing: Weighing, or None (compiled apart, and faster).
        given: Work, written; where a document takes more (see `capacity_for`), other memory is
            made. Each kind of hash is compiled apart.
        out: uint64 (n, words), C contiguous, written; rows of empty documents become 0; no
            fingerprints are made if words is 0.
        counts: int64 (n,), written: the document's features; 0 if none are left. Distinct ones
            unless features are summed up by occurrence and are not kept.

    Returns:
        uint64: the feature hashes of document 0, then of document 1, and so on, each in order of
        first occurrence; empty unless kept. They may be in `given`, until it is used again.
    """
    # Taken out of the tuples once: an access in the loop would count references each time.
    keep_features, kind = folding.keep_features, given.kind
    needed, work = capacity_for(data, offsets, cutting), given
    if not _is_enough(work, needed):
        work = _larger_work(needed, work.features.size, folding, weighing, kind)
    capacity, hashes, features = work.tokens, work.hashes, work.features
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
