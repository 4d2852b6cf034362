"""Fingerprint a block of documents with stop words, document frequencies or the top features.

As kernels/fingerprinting/block.py, which serves the recipes that have none of these, and is faster.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from neardup.kernels.bits import prefetch, trailing_zeros
from neardup.kernels.features.lookup import find
from neardup.kernels.features.tokenise import (
    BUFFER_RATIO,
    SEGMENT_RATIO,
    SLACK,
    TOKEN_RATIO,
    tokenise,
)
from neardup.kernels.features.xxh3 import SCRATCH, seeded_secret, xxh3_64
from neardup.kernels.fingerprinting.block import hash_features, hash_runs, longest_text, table_size
from neardup.kernels.fingerprinting.fold import (
    PLANES,
    WEIGHT_ONE,
    distinct,
    fold_equal,
    fold_weighted,
)
from neardup.kernels.jit import fill, inner, kernel, move

SET, COUNT, LOG, TFIDF = 0, 1, 2, 3

_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_LOW_6: Final = np.uint64(63)
_BATCH: Final = 64


@inner
def _drop_stops(
    buffer: Any, starts: Any, tokens: int, stops: Any, seed: Any, secret: Any, lanes: Any
) -> int:
    """Move the words that are no stop words together; returns how many there are."""
    mask = np.uint64(stops.size // 2 - 1)
    kept, to = 0, starts[0]
    for i in range(tokens):
        begin, end = starts[i], starts[i + 1]
        h = xxh3_64(buffer, begin, end - 1 - begin, seed, secret, lanes)
        if find(stops, mask, h, 0):
            continue
        starts[kept] = to
        kept += 1
        if to == begin:
            to = end
        else:
            for at in range(begin, end):
                buffer[to] = buffer[at]
                to += 1
    starts[kept] = to
    return kept


@inner
def _nth_largest(values: Any, count: int, n: int) -> int:
    """Give the n-th largest (1: the largest) of values[:count], which it reorders; O(count)."""
    low, high, want = 0, count - 1, n - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        left, right = low, high
        while left <= right:
            while values[left] > pivot:
                left += 1
            while values[right] < pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if want <= right:
            high = right
        elif want >= left:
            low = left
        else:
            break
    return values[want]


@inner
def _keep_heaviest(hashes: Any, units: Any, count: int, top: int, scratch: Any) -> int:
    """Move the `top` heaviest features to the front, ties by first occurrence, order kept."""
    if count <= top:
        return count
    move(units, count, scratch)
    least = _nth_largest(scratch, count, top)
    ties = top
    for i in range(count):
        if units[i] > least:
            ties -= 1
    kept = 0
    for i in range(count):
        if units[i] > least or (units[i] == least and ties > 0):
            if units[i] == least:
                ties -= 1
            hashes[kept], units[kept] = hashes[i], units[i]
            kept += 1
    return kept


@inner
def _ask(
    hashes: Any, first: int, last: int, table: Any, sieve: Any, missing: int, found: Any,
    places: Any, asked: int,
) -> int:  # fmt: skip
    """Begin to look up hashes[first:last]; lists the places of those that may be in the table.

    The sieve, small enough for the cache, leaves out most that are not: their units are `missing`.
    The slots of the others are on their way from memory while the caller does something else.
    """
    mask = np.uint64(table.size // 2 - 1)
    if sieve.size == 0:
        for i in range(first, last):
            places[i] = i
        return last
    shift = np.uint64(64 - trailing_zeros(np.uint64(sieve.size * 64)))
    begin = asked
    for i in range(first, last):
        bit = hashes[i] >> shift
        found[i] = missing
        places[asked] = i
        asked += np.int64((sieve[bit >> np.uint64(6)] >> (bit & _LOW_6)) & _ONE)
    for j in range(begin, asked):
        prefetch(table, 2 * np.int64(hashes[places[j]] & mask))
    return asked


@inner
def _hash_and_look_up(
    buffer: Any, starts: Any, tokens: int, ngram: int, gap: int, secret: Any, lanes: Any,
    keys: Any, table: Any, sieve: Any, missing: int, found: Any, places: Any,
) -> int:  # fmt: skip
    """As `hash_features` with seed 0; the units of each hash go to `found`."""
    width = min(ngram, tokens)
    count, asked = tokens - width + 1, np.int64(0)
    for first in range(0, count, _BATCH):
        last = min(first + _BATCH, count)
        hash_runs(buffer, starts, first, last, width, gap, _ZERO, secret, lanes, keys)
        asked = _ask(keys, first, last, table, sieve, missing, found, places, asked)
    mask = np.uint64(table.size // 2 - 1)
    for j in range(asked):
        i = places[j]
        found[i] = find(table, mask, keys[i], missing)
    return count


@inner
def _fold(
    hashes: Any, units: Any, count: int, weight: int, tie_one: bool, sums: Any, planes: Any,
    out: Any,
) -> None:  # fmt: skip
    if count == 0:
        fill(out, 0, out.size, _ZERO)
    elif weight == SET:
        fold_equal(hashes, count, tie_one, planes, out)
    else:
        if weight == LOG:
            for i in range(count):
                units[i] = np.int64(np.floor((1.0 + math.log(units[i])) * WEIGHT_ONE + 0.5))
        fold_weighted(hashes, units, count, tie_one, sums, out)


@kernel
def weighted_block(
    data: Any, offsets: Any, tables: Any, case_bit: Any, chars: bool, ngram: int, weight: int,
    seed: Any, tie_one: bool, out: Any, counts: Any, keep_features: bool, stops: Any, table: Any,
    sieve: Any, missing: int, top: int, kind: Any,
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
        weight: SET, COUNT, LOG or TFIDF.
        seed: uint64, of the hash.
        tie_one: The bit where a sum is exactly 0.
        out: uint64 (n, words), C contiguous, written; rows of empty documents become 0; no
            fingerprints are made if words is 0.
        counts: int64 (n,), written: the document's features; 0 if none are left.
        keep_features: Return the distinct feature hashes.
        stops: hash_table of the hashes of the stop words; empty where there are none.
        table: hash_table of the units of inverse document frequency, for TFIDF.
        sieve: hash_sieve of the table's keys; empty for a table that fits the cache itself.
        missing: Units of a feature that is not in it.
        top: How many of the heaviest features are kept; 0: all.
        kind: None for XXH3 and, for TFIDF, seed 0; else the hash, as `hash_feature` takes it.

    Returns:
        uint64: the feature hashes of document 0, then of document 1, and so on, each in order of
        first occurrence; empty unless wanted.
    """
    longest = longest_text(offsets)
    points = np.empty(SEGMENT_RATIO * longest + SLACK, np.uint32)
    classes = np.empty(points.size, np.uint8)
    buffer = np.empty(BUFFER_RATIO * longest + SLACK, np.uint8)
    most = TOKEN_RATIO * longest + SLACK
    starts, hashes = np.empty(most, np.int64), np.empty(most, np.uint64)
    cells = np.empty(table_size(most), np.uint64)
    units, scratch = np.empty(most, np.int64), np.empty(most, np.int64)
    planes, sums = np.empty(PLANES, np.uint64), np.empty(64, np.int64)
    secret, lanes = seeded_secret(seed), np.empty(SCRATCH, np.uint64)
    # Document frequencies are known by the XXH3 of seed 0.
    keys = hashes if kind is None else np.empty(most, np.uint64)
    key_secret = secret if kind is None else seeded_secret(_ZERO)
    features = np.empty((offsets[-1] - offsets[0]) // 4 if keep_features else 0, np.uint64)
    used = 0
    gap = 0 if chars else 1
    # A sum over occurrences is the sum of count times weight over features, and needs no counts.
    by_occurrence = weight == TFIDF and top == 0 and not keep_features
    for i in range(offsets.size - 1):
        tokens = tokenise(
            data, offsets[i], offsets[i + 1], tables, chars, case_bit, points, classes, buffer,
            starts,
        )  # fmt: skip
        if stops.size:
            tokens = _drop_stops(buffer, starts, tokens, stops, seed, secret, lanes)
        count = 0
        if tokens and weight == TFIDF:
            count = _hash_and_look_up(
                buffer, starts, tokens, ngram, gap, key_secret, lanes, keys, table, sieve, missing,
                units, scratch,
            )  # fmt: skip
        if tokens and (weight != TFIDF or kind is not None):
            count = hash_features(
                buffer, starts, tokens, ngram, gap, seed, secret, lanes, hashes, kind
            )  # fmt: skip
        if weight != TFIDF:
            fill(units, 0, count, 1)
        if not by_occurrence:
            count = distinct(hashes, count, cells, units)
        if top:
            count = _keep_heaviest(hashes, units, count, top, scratch)
        _fold(hashes, units, count, weight, tie_one, sums, planes, out[i])
        counts[i] = count
        if keep_features:
            if used + count > features.size:
                larger = np.empty(2 * (used + count), np.uint64)
                move(features, used, larger)
                features = larger
            move(hashes, count, features[used:])
            used += count
    return features[:used]
