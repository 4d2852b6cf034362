"""Tables of a banded search: partition by the bits of a key, then compare what shares it.

Rows are partitioned by a hash of the key; whether two rows agree on the key is seen on the
fingerprints themselves, so that a collision of hashes adds no candidate. A pair is looked at by the
first table only whose key it shares.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neardup.kernels.bits import popcount
from neardup.kernels.fold import PLANES, fold_equal
from neardup.kernels.jit import fill, inner, kernel, move
from neardup.kernels.similar import _fill, _is_match

_NONE = -1
_SPREAD = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)


@kernel
def fold_rows(features: Any, offsets: Any, rows: Any, out: Any) -> None:
    """Fold the feature sets of `rows` (int64) into out (uint64 (rows, words)); ties give 0.

    O(features of the rows times words). Features: uint64; offsets: int64.
    """
    planes = np.empty(PLANES, np.uint64)
    for i in range(rows.size):
        begin, end = offsets[rows[i]], offsets[rows[i] + 1]
        fold_equal(features[begin:end], end - begin, False, planes, out[i])


@kernel
def hash_keys(
    words: Any, first: int, last: int, mask: Any, odd: Any, shift: Any, keys: Any, counts: Any
) -> None:
    """Hash the bits of rows first..last-1 under a mask, and count them by the top of the hash.

    O(rows times words).

    Args:
        words: uint64 (n, W).
        first: The first row.
        last: The row after the last.
        mask: uint64 (W,).
        odd: uint64 (W,), odd multipliers.
        shift: uint64.
        keys: uint64 (n,): the hashes, written.
        counts: int64 (2**(64 - shift),), added to.
    """
    for row in range(first, last):
        total = np.uint64(0)
        for w in range(mask.size):
            total += (words[row, w] & mask[w]) * odd[w]
        total = (total ^ (total >> _HALF)) * _SPREAD
        keys[row] = total
        counts[np.int64(total >> shift)] += 1


@kernel
def scatter_keys(
    keys: Any, first: int, last: int, shift: Any, places: Any, hashes: Any, ids: Any
) -> None:
    """Write hash (uint64) and number (uint32) of each row to places[bin], advancing it; stable."""
    for row in range(first, last):
        h = keys[row]
        place = places[np.int64(h >> shift)]
        places[np.int64(h >> shift)] = place + 1
        hashes[place] = h
        ids[place] = row


@inner
def _agrees(words: Any, x: int, y: int, mask: Any) -> bool:
    differing = np.uint64(0)
    for w in range(mask.size):
        differing |= (words[x, w] ^ words[y, w]) & mask[w]
    return differing == np.uint64(0)


@inner
def _is_candidate(words: Any, x: int, y: int, masks: Any, table: int, distance: int) -> bool:
    """Whether `table` is the first table whose key two rows share, and they are near."""
    count = 0
    for w in range(masks.shape[1]):
        difference = words[x, w] ^ words[y, w]
        if difference & masks[table, w]:
            return False
        count += popcount(difference)
    if count > distance:
        return False
    earlier = 0
    while earlier < table and not _agrees(words, x, y, masks[earlier]):
        earlier += 1
    return earlier == table


@inner
def _slots(count: int) -> int:
    size = 2
    while size < 2 * count:
        size *= 2
    return size


@kernel
def candidate_pairs(
    hashes: Any, ids: Any, starts: Any, first: int, last: int, words: Any, masks: Any, table: int,
    distance: int, scratch: Any,
) -> Any:  # fmt: skip
    """List the candidate pairs of bins first..last-1.

    Args:
        hashes: uint64 (n,), from `scatter_keys`.
        ids: uint32 (n,), likewise; ascending in a bin.
        starts: int64 (bins + 1,).
        first: The first bin.
        last: The bin after the last.
        words: uint64 (n, W), the fingerprints.
        masks: uint64 (tables, W), the bits of every table's key.
        table: The table that the bins are for.
        distance: Most bits in which a pair may differ.
        scratch: int32 (2 or more, slots): slots a power of two of at least twice the largest bin.

    Returns:
        int64 (2 p,): the two rows of each pair, the smaller first.
    """
    heads, nexts = scratch[0], scratch[1]
    pairs, used = np.empty(256, np.int64), 0
    for b in range(first, last):
        low, high = starts[b], starts[b + 1]
        size = _slots(high - low)
        fill(heads, 0, size, np.int32(_NONE))
        for i in range(low, high):
            x = np.int64(ids[i])
            slot = np.int64(hashes[i] & np.uint64(size - 1))
            at = np.int64(heads[slot])
            while at != _NONE:
                y = np.int64(ids[low + at])
                if hashes[low + at] == hashes[i] and _is_candidate(
                    words, x, y, masks, table, distance
                ):
                    if used == pairs.size:
                        larger = np.empty(2 * used, np.int64)
                        move(pairs, used, larger)
                        pairs = larger
                    pairs[used], pairs[used + 1] = y, x
                    used += 2
                at = np.int64(nexts[at])
            nexts[i - low] = heads[slot]
            heads[slot] = i - low
    return pairs[:used]


@inner
def _matches(
    x: int, y: int, rows: Any, features: Any, offsets: Any, groups: Any, measure: int,
    similarity: float, fingerprints: Any, most: int, members: Any, owner: Any,
) -> bool:  # fmt: skip
    """Whether the documents of two rows match; `members` holds the features of row owner[0]."""
    a, b = rows[x], rows[y]
    if groups.size and groups[a] != groups[b]:
        return False
    if owner[0] != x:
        _fill(features, offsets[a], offsets[a + 1], members)
        owner[0] = x
    return _is_match(
        a, b, members, features, offsets, measure, similarity, fingerprints, most
    ) >= 0.0  # fmt: skip


@kernel
def flag_partners(
    hashes: Any, ids: Any, starts: Any, first: int, last: int, words: Any, masks: Any, table: int,
    distance: int, scratch: Any, flags: Any, rows: Any, features: Any, offsets: Any, groups: Any,
    measure: int, similarity: float, fingerprints: Any, most: int, members: Any,
) -> None:  # fmt: skip
    """Flag the rows of bins first..last-1 that match another one by a candidate pair.

    Pairs of two flagged rows are never compared, so that n copies take n comparisons. Each slot has
    two chains: rows that were flagged when they were put there or last visited, and the others.

    Args:
        hashes: As for `candidate_pairs`, like the arguments that follow.
        ids: Likewise.
        starts: Likewise.
        first: Likewise.
        last: Likewise.
        words: Likewise.
        masks: Likewise.
        table: Likewise.
        distance: Likewise.
        scratch: int32 (3, slots).
        flags: uint8 (n,), 1 is written; threads may share it, as nothing is ever taken back.
        rows: int64 (n,), the document of each row.
        features: uint64, may be read-only: the documents' features.
        offsets: int64 (documents + 1,).
        groups: int32 (documents,): only equal numbers match; empty: all do.
        measure: As for `similar.match_chunk`.
        similarity: The threshold.
        fingerprints: uint64 (documents, w), those of the recipe.
        most: Most bits in which those may differ.
        members: uint64, scratch, at least 4 times the features of a document, and 4 more.
    """
    plain, flagged, nexts = scratch[0], scratch[1], scratch[2]
    owner = np.full(1, _NONE, np.int64)
    for b in range(first, last):
        low, high = starts[b], starts[b + 1]
        size = _slots(high - low)
        fill(plain, 0, size, np.int32(_NONE))
        fill(flagged, 0, size, np.int32(_NONE))
        for i in range(low, high):
            x = np.int64(ids[i])
            slot = np.int64(hashes[i] & np.uint64(size - 1))
            before, at = np.int64(_NONE), np.int64(plain[slot])
            while at != _NONE:
                y, after = np.int64(ids[low + at]), np.int64(nexts[at])
                if (
                    not flags[y]
                    and hashes[low + at] == hashes[i]
                    and _is_candidate(words, x, y, masks, table, distance)
                    and _matches(
                        x, y, rows, features, offsets, groups, measure, similarity, fingerprints,
                        most, members, owner,
                    )
                ):  # fmt: skip
                    flags[x], flags[y] = 1, 1
                if flags[y]:
                    if before == _NONE:
                        plain[slot] = after
                    else:
                        nexts[before] = after
                    nexts[at] = flagged[slot]
                    flagged[slot] = at
                else:
                    before = at
                at = after
            at = np.int64(flagged[slot])
            while at != _NONE and not flags[x]:
                y = np.int64(ids[low + at])
                if (
                    hashes[low + at] == hashes[i]
                    and _is_candidate(words, x, y, masks, table, distance)
                    and _matches(
                        x, y, rows, features, offsets, groups, measure, similarity, fingerprints,
                        most, members, owner,
                    )
                ):  # fmt: skip
                    flags[x] = 1
                at = np.int64(nexts[at])
            if flags[x]:
                nexts[i - low] = flagged[slot]
                flagged[slot] = i - low
            else:
                nexts[i - low] = plain[slot]
                plain[slot] = i - low
