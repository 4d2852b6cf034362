"""Fold weighted feature hashes into fingerprints, and measure how far two fingerprints are apart.

Source: Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002; Manku, Jain
and Das Sarma, Detecting near-duplicates for web crawling, WWW 2007, section 3.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.recipe import MAX_BITS, Recipe
from neardup.text import TextBlock, text_array, text_blocks
from neardup.workers import worker_count

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["distance", "fingerprint", "fingerprints", "simhash"]

_WEIGHT_CODES: Final = {"set": 0, "count": 1, "log": 2}
_ONE: Final = 1 << 16


def simhash(features: Iterable[tuple[int, float]], bits: int = 64) -> int:
    """Fold (hash, weight) pairs into a fingerprint: bit j is 1 where the weights with bit j lead.

    Args:
        features: Hashes (ints, of which the low `bits` bits count) with finite weights, which are
            rounded to multiples of 2**-16. A weight may be negative, as a vector's coordinate.
        bits: Width of the result, 1 or more.

    Returns:
        The fingerprint; 0 for no features.

    Raises:
        UsageError: If a weight is not finite or `bits` is out of range.

    Example:
        >>> simhash([(0b1010, 1), (0b1000, 1), (0b0111, 1)], bits=4)
        10
    """
    if not 1 <= bits <= MAX_BITS:
        raise UsageError(f"bits is {bits!r}: use a whole number from 1 to {MAX_BITS:,}")
    sums = [0] * bits
    for feature_hash, weight in features:
        units = _units(weight)
        for bit in range(bits):
            sums[bit] += units if feature_hash >> bit & 1 else -units
    return sum(1 << bit for bit, total in enumerate(sums) if total > 0)


def fingerprint(text: str, recipe: Recipe | None = None) -> int | None:
    """Fingerprint one text; None if it has no tokens.

    Args:
        text: The document. A lone surrogate counts as U+FFFD.
        recipe: How; Recipe() unless given.

    Returns:
        An int below 2**bits, or None.

    Example:
        >>> from neardup import distance, fingerprint
        >>> one = fingerprint("the quick brown fox jumps over the lazy dog")
        >>> distance(one, fingerprint("The quick brown fox -- jumps over the lazy dog!"))
        0
    """
    if not isinstance(text, str):
        raise UsageError(f"text is {type(text).__name__}, not str: {text!r:.60}")
    values = fingerprints([text], recipe, workers=1)
    if np.ma.is_masked(values):
        return None
    return sum(int(word) << 64 * i for i, word in enumerate(values[0]))


def fingerprints(
    texts: Any,
    recipe: Recipe | None = None,
    workers: int | None = None,
    *,
    progress: Callable[[int], object] | None = None,
) -> Any:
    """Fingerprint many texts.

    Args:
        texts: A sequence of str or None, or strings in Arrow form: `string`, `large_string`,
            `string_view`, dictionary; chunked and sliced; a pandas or polars series.
        recipe: How; Recipe() unless given.
        workers: Threads; the processors at hand unless given.
        progress: Called with the bytes of each block that is done.

    Returns:
        uint64, shape (n, ceil(bits / 64)), low word first, unused bits 0. Where a text is null or
        has no tokens, it is a masked array with that row masked.

    Raises:
        UsageError: If something in `texts` is not a text.

    Example:
        >>> fingerprints(["one two three four", ""]).mask.tolist()
        [[False], [True]]
    """
    recipe = recipe or Recipe()
    array = text_array(texts)
    values = np.zeros((len(array), recipe.words), np.uint64)
    empty = np.zeros(len(array), np.bool_)
    work = partial(_fingerprint_block, recipe=recipe, values=values, empty=empty)
    threads = worker_count(workers)
    if threads == 1 or array.nbytes < _ONE:
        done = map(work, text_blocks(array))
        _drain(done, progress)
    else:
        with ThreadPoolExecutor(threads) as pool:
            _drain(pool.map(work, text_blocks(array)), progress)
    if recipe.bits % 64:
        values[:, -1] &= np.uint64((1 << recipe.bits % 64) - 1)
    if empty.any():
        return np.ma.MaskedArray(values, np.repeat(empty[:, None], recipe.words, axis=1))
    return values


def distance(a: Any, b: Any) -> Any:
    """Count the bits in which fingerprints differ (Hamming distance).

    Args:
        a: An int, or a uint64 array of shape (..., words) or, for one word, (n,).
        b: The same; arrays broadcast.

    Returns:
        An int for two ints, else an int64 array.

    Raises:
        UsageError: If an int is negative, or arrays are not uint64.

    Example:
        >>> distance(0b1011, 0b0001)
        2
    """
    if isinstance(a, int) and isinstance(b, int):
        if a < 0 or b < 0:
            raise UsageError(f"a fingerprint is {min(a, b)}: a signed 64-bit value is value % 2**64")
        return operator.xor(a, b).bit_count()
    left, right = _words(a), _words(b)
    counts = np.bitwise_count(left ^ right).astype(np.int64)
    return counts if max(left.ndim, right.ndim) == 1 else counts.sum(axis=-1)


def _units(weight: float) -> int:
    if isinstance(weight, int):
        return weight * _ONE
    if not math.isfinite(weight):
        raise UsageError(f"a weight is {weight!r}: weights must be finite numbers")
    return round(weight * _ONE)


def _words(value: Any) -> Any:
    array = np.asarray(value, dtype=np.uint64 if isinstance(value, int) else None)
    if array.dtype != np.uint64:
        raise UsageError(f"fingerprints have dtype {array.dtype}: use uint64")
    return array


def _drain(blocks: Iterable[int], progress: Callable[[int], object] | None) -> None:
    for size in blocks:
        if progress:
            progress(size)


def _fingerprint_block(block: TextBlock, *, recipe: Recipe, values: Any, empty: Any) -> int:
    from neardup.kernels.fingerprint import fingerprint_block
    from neardup.unicode import tables

    rows = slice(block.first, block.first + len(block))
    fingerprint_block(
        block.data,
        block.offsets,
        tables(recipe.normalize, recipe.casefold),
        np.uint8(0x20 if recipe.casefold else 0),
        recipe.tokens == "chars",
        recipe.ngram,
        _WEIGHT_CODES[recipe.weight],
        np.uint64(recipe.seed),
        recipe.tie == "one",
        values[rows],
        empty[rows],
    )
    empty[rows] |= block.missing
    values[rows][block.missing] = 0
    return int(block.offsets[-1] - block.offsets[0])
