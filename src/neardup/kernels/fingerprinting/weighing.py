"""Stop words, document frequencies and the top features: fingerprints of weighed features."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import prefetch, trailing_zeros
from neardup.kernels.features.lookup import find
from neardup.kernels.features.runs import hash_features, hash_runs
from neardup.kernels.features.xxh3 import xxh3_64
from neardup.kernels.fingerprinting.fold import WEIGHT_ONE, distinct, fold_equal, fold_weighted
from neardup.kernels.jit import fill, inner, move

if TYPE_CHECKING:
    from neardup.kernels.array_types import Hashes, Int64s, Uint64s
    from neardup.kernels.features.token_arguments import Cutting, Hasher, Tokens
    from neardup.kernels.fingerprinting.fold_arguments import Folding, Weighing, Work

SET, COUNT, LOG, TFIDF = 0, 1, 2, 3

_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_LOW_6: Final = np.uint64(63)
_BATCH: Final = 64


@inner
def _drop_stops(tokens: Tokens, count: int, stops: Uint64s, hasher: Hasher) -> int:
    """Remove stop words from the tokens, in place; returns how many tokens are left."""
    buffer, starts = tokens.buffer, tokens.starts
    mask = np.uint64(stops.size // 2 - 1)
    kept, to = 0, starts[0]
    for i in range(count):
        begin, end = starts[i], starts[i + 1]
        size = end - 1 - begin
        h = xxh3_64(buffer, begin, size, hasher.seed, hasher.secret, hasher.scratch)
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
def _nth_largest(values: Int64s, count: int, n: int) -> int:
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
def _keep_heaviest(hashes: Hashes, units: Int64s, count: int, top: int, scratch: Int64s) -> int:
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
    hashes: Hashes, first: int, last: int, weighing: Weighing, entries: Int64s, places: Int64s,
    lookups: int,
) -> int:  # fmt: skip
    """Begin to look up hashes[first:last]; lists the places of those that may be in the table.

    The sieve, small enough for the cache, leaves out most that are not: their units are `missing`.
    The slots of the others are on their way from memory while the caller does something else.
    """
    table, sieve = weighing.table, weighing.sieve
    mask = np.uint64(table.size // 2 - 1)
    if sieve.size == 0:
        for i in range(first, last):
            places[i] = i
        return last
    shift = np.uint64(64 - trailing_zeros(np.uint64(sieve.size * 64)))
    begin = lookups
    for i in range(first, last):
        bit = hashes[i] >> shift
        entries[i] = weighing.missing
        places[lookups] = i
        lookups += np.int64((sieve[bit >> np.uint64(6)] >> (bit & _LOW_6)) & _ONE)
    for j in range(begin, lookups):
        prefetch(table, 2 * np.int64(hashes[places[j]] & mask))
    return lookups


@inner
def _hash_and_look_up(count: int, ngram: int, gap: int, weighing: Weighing, work: Work) -> int:
    """Hash the features with seed 0, to work.keys; the units of each go to work.units."""
    keys, entries, places, table = work.keys, work.units, work.spare, weighing.table
    width = min(ngram, count)
    runs, lookups = count - width + 1, np.int64(0)
    for first in range(0, runs, _BATCH):
        last = min(first + _BATCH, runs)
        hash_runs(work.tokens, first, last, width, gap, work.key_hasher, keys)
        lookups = _ask(keys, first, last, weighing, entries, places, lookups)
    mask = np.uint64(table.size // 2 - 1)
    for j in range(lookups):
        i = places[j]
        entries[i] = find(table, mask, keys[i], weighing.missing)
    return runs


@inner
def _fold(count: int, folding: Folding, work: Work, out: Uint64s) -> None:
    hashes, units, tie_one = work.hashes, work.units, folding.tie_one
    if count == 0:
        fill(out, 0, out.size, _ZERO)
    elif folding.weight == SET:
        fold_equal(hashes, count, tie_one, work.planes, out)
    else:
        if folding.weight == LOG:
            for i in range(count):
                units[i] = np.int64(np.floor((1.0 + math.log(units[i])) * WEIGHT_ONE + 0.5))
        fold_weighted(hashes, units, count, tie_one, work.sums, out)


@inner
def fold_weighed(
    tokens: int, cutting: Cutting, folding: Folding, weighing: Weighing, kind: Any, work: Work,
    out: Uint64s,
) -> int:  # fmt: skip
    """Fold a text, cut in `tokens` tokens, into out (uint64 (words,)); returns how many features.

    The distinct ones are left in work.hashes, unless occurrences are summed up.
    """
    hashes, units, weight = work.hashes, work.units, folding.weight
    if weighing.stops.size:
        tokens = _drop_stops(work.tokens, tokens, weighing.stops, work.hasher)
    count, gap = np.int64(0), 0 if cutting.chars else 1
    if tokens and weight == TFIDF:
        count = _hash_and_look_up(tokens, cutting.ngram, gap, weighing, work)
    if tokens and (weight != TFIDF or kind is not None):
        count = hash_features(work.tokens, tokens, cutting.ngram, gap, work.hasher, hashes, kind)
    if weight != TFIDF:
        fill(units, 0, count, 1)
    # A sum over occurrences is the sum of count times weight over features, and needs no counts.
    if weight != TFIDF or weighing.top or folding.keep_features:
        count = distinct(hashes, count, work.cells, units)
    if weighing.top:
        count = _keep_heaviest(hashes, units, count, weighing.top, work.spare)
    _fold(count, folding, work, out)
    return count
